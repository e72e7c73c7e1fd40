"""The elastic net: a squared norm, and absolute values that make coefficients exactly 0."""

from typing import Any

from scoreline.penalties.base import Penalty, Terms, feature_weights
from scoreline.runtime.checks import check_number


class ElasticNetPenalty(Penalty):
    """The penalty omega(w) = sum_j weights_j ((1 - l1_ratio) / 2 w_j^2 + l1_ratio |w_j|), as in scikit-learn.

    Parameters
    ----------
    l1_ratio : float
        Between 0 (the squared norm) and 1 (absolute values alone, the lasso).
    weights : array of p numbers, optional
        What each feature costs relative to the others: 1 by default, 0 for a free coefficient, which needs
        two finite bounds.
    """

    name = "elastic_net"
    formula = "sum_j weights_j ((1 - l1_ratio) / 2 w_j^2 + l1_ratio |w_j|)"

    def __init__(self, l1_ratio: float = 0.5, weights: Any = None):
        check_ratio(l1_ratio)
        self.l1_ratio, self.weights = l1_ratio, weights

    def terms(self, p: int, names: Any = None) -> Terms:
        """Return both parts."""
        weights = feature_weights(self.weights, p)
        return Terms((1.0 - self.l1_ratio) * weights, self.l1_ratio * weights)


def check_ratio(l1_ratio: Any) -> None:
    """Raise unless the share of the absolute values is a number between 0 and 1."""
    check_number("l1_ratio", l1_ratio, least=0)
    if l1_ratio > 1:
        raise ValueError(f"l1_ratio={l1_ratio!r} must be at most 1")
