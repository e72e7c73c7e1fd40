"""The minimum of J on a line, exactly but for a stated error, by evaluations of the risk on scores alone."""

from dataclasses import dataclass

from scoreline import kernels
from scoreline.objective import Objective
from scoreline.runtime.types import FloatArray, Scores

MOST_TRIALS = 25
WIDENING = 4.0  # while J still falls at a trial, the next lies so many times as far
SLOW_SHRINKING = 0.7  # bisect if the bracket has not shrunk to this share


@dataclass
class End:
    """One end of the bracket: where it is, R there, its slope along the line, and J."""

    share: float
    risk: float
    slope: float
    value: float


class LineMinimum:
    """Minimise J(w + s d) over s >= 0 with scores z + s z_d; J is convex, so tangents on two sides bound what is left.

    `z_trial` and `grad_trial` are written to; the subgradient at the best s is kept in `grad_best`, which may trade places
    with `grad_trial`.
    """

    def __init__(self, objective: Objective, w: FloatArray, z: Scores, d: FloatArray, z_d: Scores, risk: float):
        dot = kernels.vectors.dot
        self._objective, self._z, self._z_d = objective, z, z_d
        alpha = objective.alpha
        self._penalty = 0.5 * alpha * dot(w, w), alpha * dot(w, d), alpha * dot(d, d)
        self._risk = risk

    def search(
        self, grad_best: Scores, z_trial: Scores, grad_trial: Scores, first: float, error: float
    ) -> tuple[End, Scores, Scores]:
        """Return the best end, its subgradient, and the other buffer; within `error` of the minimum, or after MOST_TRIALS.

        Parameters
        ----------
        grad_best : scores
            Subgradient of R at s = 0.
        z_trial, grad_trial : scores
            Scratch.
        first : float
            First trial.
        error : float
            What may be left to gain.
        """
        space = self._objective.space
        low = best = self._end(0.0, self._risk, space.dot(grad_best, self._z_d))
        high: End | None = None
        trial, before = first, float("inf")
        if low.slope + self._slope(0.0) >= 0.0:  # d does not lead down
            return best, grad_best, grad_trial
        for _ in range(MOST_TRIALS):
            z = space.combine(1.0, self._z, trial, self._z_d, z_trial)
            result = self._objective.risk.evaluate(z, out=grad_trial)
            grad_trial = result.grad  # what cannot be written to is made anew
            end = self._end(trial, result.hard, space.dot(result.grad, self._z_d))
            if end.value < best.value:
                best, grad_best, grad_trial = end, grad_trial, grad_best
            if end.slope + self._slope(trial) < 0.0:
                low = end
            else:
                high = end
            if high is None:
                trial = WIDENING * trial
                continue
            trial, bound = self._model(low, high)
            width = high.share - low.share
            if best.value - bound <= error or width <= 1e-12 * high.share:
                break
            if width > SLOW_SHRINKING * before or not low.share < trial < high.share:
                trial = 0.5 * (low.share + high.share)
            before = width
        return best, grad_best, grad_trial

    def _end(self, share: float, risk: float, slope: float) -> End:
        constant, linear, square = self._penalty
        return End(share, risk, slope, constant + share * (linear + 0.5 * share * square) + risk)

    def _slope(self, share: float) -> float:
        return self._penalty[1] + share * self._penalty[2]

    def _model(self, low: End, high: End) -> tuple[float, float]:
        """Return where the larger of the two tangents of R plus the penalty is least, and that value: a lower bound of J."""
        constant, linear, square = self._penalty
        rise = high.slope - low.slope
        if rise <= 0.0:  # one straight piece
            share = 0.5 * (low.share + high.share)
        else:
            share = (low.risk - low.slope * low.share - high.risk + high.slope * high.share) / rise
        for end, side in ((low, 1.0), (high, -1.0)):
            if square > 0.0:
                own = -(linear + end.slope) / square  # least of this tangent plus the penalty
                if side * own < side * share:
                    share = own
                    break
        share = min(max(share, low.share), high.share)
        risk = max(end.risk + end.slope * (share - end.share) for end in (low, high))
        return share, constant + share * (linear + 0.5 * share * square) + risk
