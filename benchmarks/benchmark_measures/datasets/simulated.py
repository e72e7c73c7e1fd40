"""Rows made on the spot."""

from typing import Any

import numpy as np
from benchopt import BaseDataset
from scipy.sparse import csr_matrix

from scoreline.io import make_imbalanced


class Dataset(BaseDataset):
    """`make_imbalanced`: normal features, few positives."""

    name = "simulated"
    parameters = {"n_samples": [10_000], "n_features": [50], "positive_share": [0.05]}
    test_config = {"n_samples": 500, "n_features": 5, "positive_share": 0.2}

    def get_data(self) -> dict[str, Any]:
        """Return CSR rows and labels 1 and -1."""
        X, y = make_imbalanced(
            n_samples=self.n_samples, n_features=self.n_features, positive_share=self.positive_share, random_state=0
        )
        return {"X": csr_matrix(X), "y": np.where(y > 0, 1, -1)}
