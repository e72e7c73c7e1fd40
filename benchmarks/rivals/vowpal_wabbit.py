"""Vowpal Wabbit: adaptive, normalised stochastic gradients on the logistic loss, from its own text file with a cache."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import dump_svmlight_file

from rivals.base import Linear, Rival

CONSTANT = 11650396  # the index of its intercept, before the mask
BITS = 18


class VowpalWabbit(Rival):
    """--l2 is alpha; efforts are passes. Its time has the reading of the file in it: it has no other way in."""

    name, package, module = "Vowpal Wabbit", "vowpalwabbit", "vowpalwabbit"
    efforts = (1, 3, 10, 30)
    default = 10

    def refuses(self, rows: int, features: int) -> str | None:
        """Refuse features that would not have a weight of their own."""
        return f"more than {1 << BITS} features" if features >= 1 << BITS else None

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Write the rows: a label, a bar, index:value; numbers are their own hash."""
        folder = tempfile.TemporaryDirectory(prefix="rival-")
        plain, rows = Path(folder.name, "plain"), Path(folder.name, "rows")
        dump_svmlight_file(X, y, str(plain))
        with plain.open() as source, rows.open("w") as target:
            for line in source:
                label, _, rest = line.partition(" ")
                target.write(f"{label} | {rest}" if rest else f"{label.strip()} |\n")
        plain.unlink()
        return folder, X.shape[1]

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Run over the file in its own process of passes, and read the weights."""
        from vowpalwabbit import Workspace

        folder, features = data
        rows, cache = Path(folder.name, "rows"), Path(folder.name, "cache")
        run = Workspace(
            f"-d {rows} --cache_file {cache} -k --passes {effort} --holdout_off --loss_function logistic --l2 {alpha!r} "
            f"-b {BITS} --quiet"
        )
        w = np.array([run.get_weight(j) for j in range(features)])
        b = float(run.get_weight(CONSTANT & ((1 << BITS) - 1)))
        run.finish()
        return Linear(w, b)


RIVALS = (VowpalWabbit(),)
