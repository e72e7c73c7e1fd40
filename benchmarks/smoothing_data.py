"""The data sets of benchmarks/smoothing.py: LIBSVM files from the folder SCORELINE_DATA names, and one made on the spot."""

import lzma
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler

from common import SEED
from scoreline.io import make_imbalanced

VARIABLE = "SCORELINE_DATA"


class Data(NamedTuple):
    """Training rows, and test rows where a figure wants them."""

    name: str
    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None


def path_of(name):
    """Return the path of NAME.svm or NAME.svm.xz in the folder, or None."""
    for path in (Path(os.environ.get(VARIABLE, "."), f"{name}{end}") for end in (".svm", ".svm.xz")):
        if os.environ.get(VARIABLE) and path.exists():
            return path
    return None


def read(name):
    """Return rows and labels of NAME.svm or NAME.svm.xz, or None."""
    path = path_of(name)
    if path is None:
        return None
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        return load_svmlight_file(file)


def narrow(X):
    """Return CSR with 32-bit indices, which SciPy multiplies faster."""
    X = X.tocsr()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def load(name, test=False):
    """Return the data set, or None if there is no such file; with `test` also NAME.t or, without one, 30 % of the rows."""
    if name == "dense":
        X, y = make_imbalanced(500_000, 100, positive_share=0.05, tail=5.0, random_state=SEED)
        parts = X, np.where(y > 0, 1, -1)
        return Data(name, *parts) if not test else held_out(name, *parts)
    found = read(name)
    if found is None:
        return None
    scaler = MaxAbsScaler()
    X, y = narrow(scaler.fit_transform(found[0])), np.where(found[1] > 0, 1, -1)
    if not test:
        return Data(name, X, y)
    other = read(f"{name}.t")
    if other is None or other[0].shape[1] > X.shape[1]:
        return held_out(name, X, y)
    X_test = other[0].copy()
    X_test.resize(X_test.shape[0], X.shape[1])
    return Data(name, X, y, narrow(scaler.transform(X_test)), np.where(other[1] > 0, 1, -1))


def held_out(name, X, y):
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=SEED)
    return Data(name, X, y, X_test, y_test)
