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
COTTONWOOD = "covtype-4"  # covtype with type 4 as positive class, from two files
COTTONWOOD_FILES, NUMERIC = ("covtype", "cover-4v2"), 10


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
        if name == COTTONWOOD:
            return all(is_available(each, self.folder) for each in COTTONWOOD_FILES)
        return is_available(name, self.folder)

    def raw(self, name: str) -> tuple[Any, AnyArray]:
        """Return rows as they are in the file, as CSR, and labels +1 and -1 (the larger one is +1)."""
        if name == COTTONWOOD:
            return self._cottonwood()
        if self._last is None or self._last[0] != name:
            X, y = load_named(name, folder=self.folder)
            self._last = (name, X, np.where(y == y.max(), 1, -1))
        return self._last[1], self._last[2]

    def classes(self, name: str) -> tuple[Any, AnyArray]:
        """Return the rows of the file NAME-classes as they are, and the whole numbers of their classes."""
        X, labels = load_named(f"{name}-classes", folder=self.folder)
        return X, labels.astype(int)

    def _cottonwood(self) -> tuple[Any, AnyArray]:
        """Return covtype with cover type 4 against all others.

        The file of covtype has type 2 against the rest. The positives of cover-4v2 are the rows of type 4, with the ten numeric
        columns, which tell rows apart: every positive has one row of covtype.
        """
        if self._last is None or self._last[0] != COTTONWOOD:
            few, y_few = self.raw(COTTONWOOD_FILES[1])
            positives = _row_keys(few[y_few > 0])
            X, _ = self.raw(COTTONWOOD_FILES[0])
            found = np.isin(_row_keys(X[:, :NUMERIC]), positives)
            if np.count_nonzero(found) != len(positives):
                raise ValueError(
                    f"covtype has {np.count_nonzero(found)} rows that match the {len(positives)} positives of cover-4v2, "
                    "expected one for each; are both files those of docs/datasets.md?"
                )
            self._last = (COTTONWOOD, X, np.where(found, 1, -1))
        return self._last[1], self._last[2]

    def random_split(self, name: str, seed: int, test_share: float, most: int | None = None) -> Split:
        """Return a stratified random split of the file NAME; what NAME.t has is left aside."""
        X, y = self.raw(name)
        X, X_test, y, y_test = train_test_split(X, y, test_size=test_share, stratify=y, random_state=SEED + seed)
        return _scaled(X, y, X_test, y_test, most)

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
        return _scaled(X, y, X_test, y_test, most)


def _scaled(X: Any, y: AnyArray, X_test: Any, y_test: AnyArray, most: int | None) -> Split:
    """Return a split whose features have the scale of the training rows, at most so many of these."""
    if most is not None and len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=SEED)
    scaler = MaxAbsScaler().fit(X)
    return Split(scaler.transform(X).tocsr(), y, scaler.transform(X_test).tocsr(), y_test)


def _row_keys(X: Any) -> AnyArray:
    """Return one value per row that is equal where all whole numbers of two rows are."""
    integers = np.ascontiguousarray(X.toarray().astype(np.int64))
    return np.asarray(integers.view([("", np.int64)] * X.shape[1]).ravel())
