"""The small table that scikit-learn has with it."""

from typing import Any

import numpy as np
from benchopt import BaseDataset
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer


class Dataset(BaseDataset):
    """569 rows, 30 features; the positive class is malignant."""

    name = "breast-cancer"

    def get_data(self) -> dict[str, Any]:
        """Return CSR rows and labels 1 and -1."""
        X, y = load_breast_cancer(return_X_y=True)
        return {"X": csr_matrix(X), "y": np.where(y == 0, 1, -1)}
