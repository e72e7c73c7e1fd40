"""What is trained: rows, labels, weights, risk and measure, for methods that make several objectives of them."""

from dataclasses import dataclass

from scoreline.measures import Measure
from scoreline.objective import Objective
from scoreline.operators.linear_map import LinearMap
from scoreline.risks.base import Risk
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import ScoreSpace


@dataclass(frozen=True)
class Problem:
    """What is trained: rows, labels and weights, the risk, the measure, and the measure that the cut serves.

    `weight` is what rows weigh (class weights included), `copies` how often they are there (sample weights alone).
    """

    operator: LinearMap
    space: ScoreSpace
    sign: AnyArray
    weight: FloatArray | None
    copies: FloatArray | None
    risk: Risk
    alpha: float
    measure: Measure
    cut_measure: Measure

    def objective(self, weight: FloatArray | None) -> Objective:
        """Return J with these weights."""
        return Objective(self.operator, self.risk.prepare(self.sign, weight, self.space), self.alpha)
