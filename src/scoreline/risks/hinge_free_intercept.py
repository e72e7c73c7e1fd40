"""Hinge loss with an unpenalised intercept, as in the textbook support vector machine."""

from scoreline.risks.balanced import BalancedRisk
from scoreline.runtime.types import Scores


class FreeInterceptHingeRisk(BalancedRisk):
    """R(z) = min_b sum_i s_i max(0, 1 - y_i (z_i + b)) / S (eq. free-intercept).

    The intercept b is part of the risk, so it is not penalised, and adding a constant to all scores changes nothing. In the
    dual, with beta in [0,1]^n, it becomes the equality sum_P s beta = sum_N s beta (`BalancedRisk` with tau = b + 1).
    """

    name = "hinge_free_intercept"
    research = True

    @staticmethod
    def shape(positive: float, total: float) -> tuple[float, float]:
        """Return (2, 1 / S)."""
        return 2.0, 1.0 / total

    @property
    def prox_bound(self) -> float:
        """The largest sum s beta^2 / 2: min(S+, S-)."""
        return min(self.labels.positive, self.labels.negative)

    def intercept(self, z: Scores) -> float:
        """Return a b that minimises the sum."""
        return self.space.balancing_bias(z, self.labels, self.offset) - 1.0
