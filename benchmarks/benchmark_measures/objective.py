"""The measure of a linear classifier on test rows."""

from typing import Any

import numpy as np
from benchmark_utils.adapter import AllEfforts
from benchopt import BaseObjective

from rivals.base import Linear
from rivals.protocol import split_of, value_on_test_rows


class Objective(BaseObjective):
    """1 - measure, on test rows (`value`) and on the rows of the fit (`train`)."""

    name = "test-measure"
    min_benchopt_version = "1.10"
    sampling_strategy = "tolerance"
    stopping_criterion = AllEfforts(strategy="tolerance")
    parameters = {"measure": ["roc_auc", "f1"], "split": [0]}
    test_dataset_name = "simulated"

    def set_data(self, X: Any, y: np.ndarray) -> None:
        """Split the rows, and divide features by their largest magnitude in training."""
        self.rows = split_of(X, y, self.split, None)

    def get_objective(self) -> dict[str, Any]:
        """Return what a solver needs."""
        return {"rows": self.rows, "measure": self.measure}

    def evaluate_result(self, model: Linear) -> dict[str, float]:
        """Return how far the measure is from 1."""
        training = self.rows._replace(X_test=self.rows.X, y_test=self.rows.y)
        return {
            "value": 1.0 - value_on_test_rows(model, self.measure, self.rows),
            "train": 1.0 - value_on_test_rows(model, self.measure, training),
        }

    def get_one_result(self) -> dict[str, Linear]:
        """Return the empty model."""
        return {"model": Linear(np.zeros(self.rows.X.shape[1]))}
