"""liblinear-ranksvm (its program `train` on PATH): the squared pairwise hinge by a trust-region Newton method."""

from typing import Any

import numpy as np

from rivals.base import Binary, Linear


class RankSvm(Binary):
    """-c = 1 / (2 alpha n+ n-), as its loss is the sum over pairs of max(0, 1 - t)²; efforts are values of -e (0.001)."""

    name, package, binary, says = "liblinear-ranksvm", "liblinear-ranksvm", "train", "L2-loss RankSVM"
    efforts = (0.1, 0.01, 0.001)
    default = 0.001
    queries = True

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Write the rows, and count the pairs."""
        return *super().prepare(X, y), float((y > 0).sum()) * float((y <= 0).sum())

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Run solver 8, and read the lines below "w"."""
        text = self.run(data, "-s", "8", "-c", repr(0.5 / (alpha * data[3])), "-e", repr(effort), "-q")
        w = np.zeros(data[2])
        found = np.array([float(line) for line in text.partition("\nw\n")[2].split()])
        w[: len(found)] = found
        return Linear(w)


RIVALS = (RankSvm(),)
