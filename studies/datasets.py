"""Data sets by name for the studies: from a folder or the cache, features divided by their largest magnitude."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler

from scoreline.io import load_named
from scoreline.io.named import is_available
from scoreline.runtime.types import AnyArray

SEED = 20240


class Split(NamedTuple):
    """Training and test rows, labels +1 and -1."""

    X: Any
    y: AnyArray
    X_test: Any
    y_test: AnyArray


class Datasets:
    """Data sets of a folder (by default the one in SCORELINE_DATA) or of the cache; nothing is downloaded.

    Parameters
    ----------
    folder : path, optional
        Where NAME.svm or NAME.svm.xz are.
    """

    def __init__(self, folder: Any = None):
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"data={str(folder)!r} is not a folder; expected one with NAME.svm or NAME.svm.xz")
        self.folder = folder if folder is not None else os.environ.get("SCORELINE_DATA")
        self._last: tuple[str, Any, AnyArray] | None = None  # one at a time stays in memory

    def has(self, name: str) -> bool:
        """Tell whether a set is on this machine; nothing is read."""
        return is_available(name, self.folder)

    def raw(self, name: str) -> tuple[Any, AnyArray]:
        """Return rows as they are in the file, as CSR, and labels +1 and -1 (the larger one is +1)."""
        if self._last is None or self._last[0] != name:
            X, y = load_named(name, folder=self.folder)
            self._last = (name, X, np.where(y == y.max(), 1, -1))
        return self._last[1], self._last[2]

    def split(self, name: str, most: int | None = None, test_share: float = 0.2) -> Split:
        """Return training and test rows: NAME.t for testing where it is there, else a stratified share of the rows.

        `most` limits the training rows (a stratified sample). The scale of features is that of the training rows.
        """
        X, y = self.raw(name)
        if self.has(f"{name}.t"):
            X_test, y_test = load_named(f"{name}.t", folder=self.folder, n_features=X.shape[1])
            y_test = np.where(y_test == y_test.max(), 1, -1)
        else:
            X, X_test, y, y_test = train_test_split(X, y, test_size=test_share, stratify=y, random_state=SEED)
        if most is not None and len(y) > most:
            X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=SEED)
        scaler = MaxAbsScaler().fit(X)
        return Split(scaler.transform(X).tocsr(), y, scaler.transform(X_test).tocsr(), y_test)
