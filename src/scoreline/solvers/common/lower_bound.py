"""The best lower bound on min J that planes below the risk give."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.objective import Objective, Point
from scoreline.runtime.types import FloatArray

# Rounding of c and |v|^2 / alpha when two planes are mixed: two products and a sum each.
MIXING_ROUNDING = float(np.finfo(float).eps)


class LowerBound:
    """max over mixtures of planes of  c - |v|^2 / (2 alpha)  <=  min J (eq. lower-bound).

    A plane (v, c) satisfies R(Xw) >= c + <v, w> for all w, so J(w) >= min_w alpha/2 |w|^2 + <v, w> + c, which is the
    bound above. Mixtures of planes are planes; (0, 0) is one because risks are not negative. Three are mixed at a time,
    exactly: nothing, the best mixture so far, and the new plane. The best mixture is kept, so memory is one vector.

    Attributes
    ----------
    value : float
        The best bound so far, with the rounding allowance taken off.
    slope, constant, allowance : ndarray, float, float
        The mixture (v, c) that `value` belongs to, and the allowance that was taken off.
    """

    def __init__(self, p: int, alpha: float):
        self.alpha = alpha
        self.value = 0.0
        self.slope = np.zeros(p)
        self.constant = 0.0
        self.allowance = 0.0

    def record(self) -> dict[str, Any]:
        """Return what `restore` needs, as plain arrays and numbers."""
        return {name: getattr(self, name) for name in ("value", "slope", "constant", "allowance")}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from a record; an empty one changes nothing."""
        for name, value in record.items():
            setattr(self, name, np.array(value, dtype=np.float64) if name == "slope" else float(value))

    @staticmethod
    def at_alpha(record: Mapping[str, Any], before: float, alpha: float) -> dict[str, Any]:
        """Return the record for another alpha: a plane below the risk does not know it, only its bound does.

        Of the allowance for rounding a part grows like 1 / alpha, so all of it is taken to. Nothing is kept where the plane,
        mixed with (0, 0), proves no more than J >= 0.
        """
        if not record:
            return {}
        slope, constant = np.asarray(record["slope"], dtype=np.float64), float(record["constant"])
        allowance = float(record["allowance"]) * max(1.0, before / alpha)
        square = kernels.vectors.dot(slope, slope)
        t = 1.0 if square <= 0.0 else min(1.0, max(0.0, alpha * (constant - allowance) / square))
        value = t * (constant - allowance) - t * t * square / (2.0 * alpha)
        if not value > 0.0:
            return {}
        return {"value": value, "slope": t * slope, "constant": t * constant, "allowance": t * allowance}

    def add(self, slope: FloatArray, constant: float, allowance: float) -> float:
        """Mix in the plane (slope, constant), whose bound is uncertain by `allowance`, and return the best bound."""
        dot = kernels.vectors.dot
        own, cross, new = dot(self.slope, self.slope), dot(self.slope, slope), dot(slope, slope)
        if not all(map(math.isfinite, (own, cross, new, constant, allowance))):
            return self.value  # squares beyond the range of floats prove nothing
        constants, allowances = (self.constant, constant), (self.allowance, allowance)
        t = _best_mixture(own, cross, new, constants, self.alpha)
        mixed = t[0] * allowances[0] + t[1] * allowances[1]
        if 1.0 not in t:  # mixing rounds too, and what was mixed once is mixed again: every time a little is added
            mixed += MIXING_ROUNDING * (
                t[0] * abs(constants[0]) + t[1] * abs(constant) + (t[0] * own + t[1] * new) / self.alpha
            )
        bound = _bound(t, own, cross, new, constants, self.alpha) - mixed
        if bound > self.value:
            self.value = bound
            self.slope = t[0] * self.slope + t[1] * slope
            self.constant, self.allowance = t[0] * constants[0] + t[1] * constants[1], mixed
        return self.value


Pair = tuple[float, float]


def _bound(t: Pair, own: float, cross: float, new: float, constants: Pair, alpha: float) -> float:
    """Return <c, t> - t'Gt / (2 alpha), G = [[own, cross], [cross, new]]."""
    square = t[0] * t[0] * own + 2.0 * t[0] * t[1] * cross + t[1] * t[1] * new
    return t[0] * constants[0] + t[1] * constants[1] - square / (2.0 * alpha)


def _best_mixture(own: float, cross: float, new: float, constants: Pair, alpha: float) -> Pair:
    """Return t >= 0 with t_0 + t_1 <= 1 that maximises `_bound` (eq. mixing-planes), by looking at every face."""
    # Plain floats: called each step.
    first, second = constants
    candidates: list[Pair] = [
        (0.0, 0.0),
        (1.0 if own <= 0.0 else min(1.0, max(0.0, alpha * first / own)), 0.0),  # one plane, scaled
        (0.0, 1.0 if new <= 0.0 else min(1.0, max(0.0, alpha * second / new))),
    ]
    # Both planes, weights adding to 1: along t = (1 - x, x).
    spread = own - 2.0 * cross + new
    if spread > 0.0:
        x = min(1.0, max(0.0, (alpha * (second - first) + own - cross) / spread))
        candidates.append((1.0 - x, x))
    # Both planes, weights adding to less.
    determinant = own * new - cross * cross
    if determinant > 1e-14 * own * new:
        t = alpha * (new * first - cross * second) / determinant, alpha * (own * second - cross * first) / determinant
        if min(t) >= 0.0 and sum(t) <= 1.0:
            candidates.append(t)
    values = [_bound(t, own, cross, new, constants, alpha) for t in candidates]
    best = max((v for v in values if not math.isnan(v)), default=None)
    return candidates[0] if best is None else candidates[values.index(best)]


GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
MIXING_TRIALS = 14  # of a golden section: the best share of a plane to a thousandth


class PenaltyBound:
    """max over mixtures of planes of  c + min_w <v, w> + Omega(w)  <=  min J, for any penalty (eq. penalty-bound).

    The closed form of the minimum is that of `BoundedPenalty.least`; rounding of a plane's slope is part of it. The new plane
    is mixed with (0, 0), and then with the best mixture so far. O(p) for each of about 30 shares.

    Attributes
    ----------
    value : float
        The best bound so far.
    slope, constant, mass, size : ndarray, float, float, float
        The mixture, and what its rounding is relative to.
    """

    def __init__(self, objective: Objective):
        self.objective = objective
        self.value = 0.0
        self.slope = np.zeros(objective.n_features)
        self.constant = self.mass = self.size = 0.0

    def record(self) -> dict[str, Any]:
        """Return what `restore` needs, as plain arrays and numbers."""
        return {name: getattr(self, name) for name in ("value", "slope", "constant", "mass", "size")}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from a record; an empty one changes nothing."""
        for name, value in record.items():
            setattr(self, name, np.array(value, dtype=np.float64) if name == "slope" else float(value))

    def add(self, point: Point, slope: FloatArray, level: float) -> float:
        """Mix in the plane at a point and return the best bound; J is at most `level` somewhere."""
        objective = self.objective
        z_max = objective.space.max_abs(point.z, objective.risk.labels)
        wide = not 0.0 < point.mu * objective.risk.ramp_scale < objective.least_width(point.z, z_max)
        if not (wide and math.isfinite(point.risk.plane) and np.isfinite(slope).all()):
            return self.value
        constants = np.array([point.risk.plane, point.risk.mass, objective.plane_size(point, z_max)])
        own = np.array([self.constant, self.mass, self.size])

        def bound(t: float, s: float) -> float:
            constant, mass, size = (t * own + s * constants).tolist()
            return objective.mixture_bound(t * self.slope + s * slope, constant, mass, size, level)

        _, alone = _largest(lambda s: bound(0.0, s))
        candidates = [(0.0, alone)]
        if self.value > 0.0:
            _, share = _largest(lambda x: bound(1.0 - x, x * alone))
            candidates += [(1.0 - share, share * alone), (1.0, 0.0)]
        values = [bound(*pair) for pair in candidates]
        best = max(values)
        if best > self.value:
            t, s = candidates[values.index(best)]
            self.value, self.slope = best, t * self.slope + s * slope
            self.constant, self.mass, self.size = (t * own + s * constants).tolist()
            if t > 0.0:  # mixing rounds too, and what was mixed once is mixed again
                self.size += MIXING_ROUNDING * (self.size + abs(self.constant))
        return self.value


def _largest(function: Callable[[float], float]) -> tuple[float, float]:
    """Return the largest value of a concave function on [0, 1], and where it is, by golden section."""
    low, high = 0.0, 1.0
    one, two = high - GOLDEN, low + GOLDEN
    first, second = function(one), function(two)
    best = max((function(1.0), 1.0), (first, one), (second, two))
    for _ in range(MIXING_TRIALS):
        if first < second:
            low, one, first = one, two, second
            two = low + GOLDEN * (high - low)
            second = function(two)
            best = max(best, (second, two))
        else:
            high, two, second = two, one, first
            one = high - GOLDEN * (high - low)
            first = function(one)
            best = max(best, (first, one))
    return best
