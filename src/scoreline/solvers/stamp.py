"""STAMP: row-by-row training at a level of the measure that rises from epoch to epoch."""

from typing import Any, ClassVar

from scoreline import kernels
from scoreline._checks import check_number
from scoreline.measures import Measure
from scoreline.solvers.row_method import RowMethod, RowState


class StampSolver(RowMethod):
    """Stochastic alternating maximisation for ratios of linear functions (Narasimhan, Kar and Jain 2015, Algorithm 3).

    A classifier reaches the level v of F-beta exactly if its rewards, weighted 1 + beta^2 - v for positives and v for
    negatives, do; for Jaccard the weights are 1 and v, for Gower-Legendre 1 and 1. So rows are trained on with the weights
    of the level, and the level becomes the measure that the predictions of the epoch reached, each made before its update.
    Epochs double. Cost: the non-zeros of the row.

    Parameters
    ----------
    first_epoch : int
        Rows in the first epoch.
    **options
        passes, step: see RowMethod.
    """

    name = "stamp"
    measures: ClassVar[tuple[str, ...]] = ("f1", "fbeta", "gower_legendre", "jaccard")
    trains_for = "F-beta, Jaccard or Gower-Legendre"

    def __init__(self, first_epoch: int = 100, **options: Any):
        super().__init__(**options)
        check_number("first_epoch", first_epoch, least=1, integer=True)
        self.first_epoch = first_epoch

    def kind(self, measure: Measure) -> int:
        """Return the rule of the class weights."""
        module = kernels.point_updates
        return int({"jaccard": module.JACCARD, "gower_legendre": module.ERROR}.get(measure.name, module.FBETA))

    def start(self, p: int, measure: Measure) -> RowState:
        """Return w = 0 at the level 0, where negatives weigh nothing (except for Gower-Legendre)."""
        module, kind = kernels.point_updates, self.kind(measure)
        positive = 1.0 + float(getattr(measure, "beta", 1.0)) ** 2 if kind == module.FBETA else 1.0
        return RowState.new(p, (positive, 1.0 if kind == module.ERROR else 0.0), self.first_epoch)
