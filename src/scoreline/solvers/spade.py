"""SPADE: a step for the coefficients and a step for the weights of the classes after every row."""

from typing import ClassVar

from scoreline import kernels
from scoreline.measures import Measure
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.common.row_state import RowState


class SpadeSolver(RowMethod):
    """Stochastic primal-dual updates for concave functions of the two rates (Narasimhan, Kar and Jain 2015, Algorithm 1).

    G-, H-, Q-mean and min(TPR, TNR) are the least value over dual weights (a, b) of a TPR + b TNR minus a constant
    (eq. spade-problem). Every row causes two steps. One step raises the row's reward min(1, y s), weighted by a or b and the
    share of its class. The other lowers (a, b) where the reward is high, with an exact projection onto the region of the
    measure. The updates are corrected: they add the gradient of the conjugate (the paper prints minus, which stalls the
    Q-mean), and rewards of the G-mean are increased by 1/sqrt t. An update costs the non-zeros of the row. Options: those of
    RowMethod.
    """

    name = "spade"
    measures: ClassVar[tuple[str, ...]] = ("gmean", "hmean", "min_tpr_tnr", "qmean")
    trains_for = "G-mean, H-mean, Q-mean or min(TPR, TNR)"

    def starts(self, p: int, measure: Measure) -> list[RowState]:
        """Return w = 0 with the dual weights of two equal rates, (1/2, 1/2)."""
        regions = kernels.dual_regions
        kinds = {"min_tpr_tnr": regions.MIN, "hmean": regions.HMEAN, "qmean": regions.QMEAN, "gmean": regions.GMEAN}
        return [RowState.new(p, (0.5, 0.5), kind=kinds[measure.name], paper=self.step == "paper")]
