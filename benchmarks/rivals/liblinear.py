"""LIBLINEAR by its own Python package: logistic regression and squared hinge, primal trust-region Newton and dual."""

from typing import Any

import numpy as np

from rivals.base import Linear, Rival

KINDS = {"logistic, primal": 0, "squared hinge, dual": 1, "squared hinge, primal": 2, "hinge, dual": 3}


class Liblinear(Rival):
    """C = 1 / (n alpha), half of it for the squared hinge; efforts are values of -e (defaults 0.01 primal, 0.1 dual)."""

    package, module = "liblinear-official", "liblinear"
    efforts = (1.0, 0.1, 0.01, 0.001)
    default = 0.01

    def __init__(self, kind: str):
        self.name, self.kind = f"LIBLINEAR {kind}", KINDS[kind]

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Make LIBLINEAR's own rows, with a bias feature of 100."""
        from liblinear.liblinearutil import problem

        return problem(np.where(y > 0, 1.0, 0.0), X, 100.0), len(y), X.shape[1]

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Call train; the first label it met decides the sign."""
        from liblinear.liblinearutil import parameter, train

        rows, n, features = data
        C = (0.5 if "squared" in self.name else 1.0) / (n * alpha)
        model = train(rows, parameter(f"-s {self.kind} -c {C!r} -e {effort!r} -B 100 -q"))
        sign = 1.0 if model.get_labels()[0] == 1 else -1.0
        w = sign * np.array(model.w[: features + 1])
        return Linear(w[:-1].copy(), 100.0 * float(w[-1]))


RIVALS = tuple(Liblinear(kind) for kind in KINDS)
