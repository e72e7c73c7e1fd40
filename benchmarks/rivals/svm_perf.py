"""SVM-perf (svm_perf_learn on PATH): cutting planes on the measure itself."""

from typing import Any

import numpy as np

from rivals.base import Binary, Linear

LOSSES = {"roc_auc": 10, "prbep": 3, "f1": 1}


class SvmPerf(Binary):
    """c = 1 / (100 alpha), as its losses are in percent; efforts are values of -e, the default is 0.1 (percent)."""

    name, package, binary, says = "SVM-perf", "SVM-perf", "svm_perf_learn", "SVM-perf"
    efforts = (10.0, 1.0, 0.1)
    default = 0.1
    measures = tuple(LOSSES)
    aware = True

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Run it with the loss of the measure; its only support vector is w."""
        options = ["-v", "0", "-l", LOSSES[measure], "-w", 3, "-c", 0.01 / alpha, "-e", effort]
        bias = 0 if measure == "roc_auc" else 1
        text = self.run(data, *map(str, [*options, "--b", bias]))
        lines = text.splitlines()
        threshold = float(next(line for line in lines if "threshold b" in line).split()[0])
        w = np.zeros(data[2])
        factor, *terms = lines[-1].partition("#")[0].split()
        for term in terms:
            index, value = term.split(":")
            if int(index) <= len(w):
                w[int(index) - 1] = float(factor) * float(value)
        return Linear(w, -threshold, threshold=measure == "f1")


RIVALS = (SvmPerf(),)
