"""The squared norm, with a weight per feature."""

from typing import Any

import numpy as np

from scoreline.penalties.base import Penalty, Terms, feature_weights


class L2Penalty(Penalty):
    """The penalty omega(w) = 1/2 sum_j weights_j w_j^2.

    Parameters
    ----------
    weights : array of p numbers, optional
        What the coefficient of each feature costs, relative to the others: 1 by default, 0 for a free coefficient, which needs
        two finite bounds.
    """

    name = "l2"
    formula = "1/2 sum_j weights_j w_j^2"

    def __init__(self, weights: Any = None):
        self.weights = weights

    def terms(self, p: int, names: Any = None) -> Terms:
        """Return the weights as curvatures."""
        return Terms(feature_weights(self.weights, p), np.zeros(p))
