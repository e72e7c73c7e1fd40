"""STAMP: row-by-row training at a level of the measure that rises from epoch to epoch."""

from typing import Any, ClassVar

from scoreline import kernels
from scoreline.measures import Measure
from scoreline.runtime.checks import check_choice, check_number
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.common.row_state import RowState


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
    weights : str
        "level": those of the level. "equal": 1 and 1, the plain hinge. "auto": whichever gave the better measure, at the best
        threshold of the training scores, after a fifth of the passes. The threshold makes up for much of what the weights
        do, and on some data for more. A stream has no second chance and takes those of the level, as fits of fewer than
        five passes do, and threshold="none".
    **options
        passes, step: see RowMethod.
    """

    name = "stamp"
    measures: ClassVar[tuple[str, ...]] = ("f1", "fbeta", "gower_legendre", "jaccard")
    trains_for = "F-beta, Jaccard or Gower-Legendre"

    def __init__(self, first_epoch: int = 100, weights: str = "auto", **options: Any):
        super().__init__(**options)
        check_choice("weights", weights, ("auto", "level", "equal"))
        self.weights = weights
        check_number("first_epoch", first_epoch, least=1, integer=True)
        self.first_epoch = first_epoch

    def rules(self) -> dict[str, Any]:
        """Return the options that must not change in a stream."""
        return super().rules() | {"weights": self.weights, "first_epoch": self.first_epoch}

    def starts(self, p: int, measure: Measure) -> list[RowState]:
        """Return w = 0 at the level 0, where negatives weigh nothing, and w = 0 with equal weights."""
        module = kernels.point_updates
        equal = RowState.new(p, (1.0, 1.0), self.first_epoch, module.ERROR, self.step == "paper")
        if measure.name == "gower_legendre" or self.weights == "equal":
            return [equal]
        positive = 1.0 if measure.name == "jaccard" else 1.0 + float(getattr(measure, "beta", 1.0)) ** 2
        kind = module.JACCARD if measure.name == "jaccard" else module.FBETA
        at_level = RowState.new(p, (positive, 0.0), self.first_epoch, kind, self.step == "paper")
        return [at_level, equal] if self.weights == "auto" else [at_level]
