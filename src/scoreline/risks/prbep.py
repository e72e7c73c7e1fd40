"""Precision-recall break-even point: the multivariate hinge of the error among the n+ highest scores."""

from scoreline.risks.balanced import BalancedRisk


class PrbepRisk(BalancedRisk):
    """R(z) = max over beta in [0,1]^n with sum_P s beta = sum_N s beta of sum_P s beta / S+ - (2/S) sum_i s_i y_i z_i beta_i.

    beta selects the rows that change sides, as many positives as negatives. R is the hinge over all labellings with n+
    positives, an upper bound of 1 - PRBEP (eq. prbep-risk), and R(0) = min(S+, S-) / S+. Its dual is a hinge with a
    free bias tau, R(z) = (2/S) min_tau sum_P s max(0, S/(2 S+) - z - tau) + sum_N s max(0, z + tau) (`BalancedRisk`).
    Zhang, Saha and Vishwanathan (2012), sections 2.2 and 3.1.
    """

    name = "prbep"

    @staticmethod
    def shape(positive: float, total: float) -> tuple[float, float]:
        """Return (S / (2 S+), 2 / S)."""
        return 0.5 * total / positive, 2.0 / total

    def value_at_zero(self) -> float:
        """Return min(S+, S-) / S+."""
        return min(self.labels.positive, self.labels.negative) / self.labels.positive

    @property
    def prox_bound(self) -> float:
        """The paper's D, S / 2, although min(S+, S-) would be enough."""
        return 0.5 * self.labels.total
