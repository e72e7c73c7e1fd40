"""A penalty for p features, with bounds: value, proximal step, and the least value of a line plus the penalty."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.penalties.base import Penalty, Terms
from scoreline.runtime.checks import column_index
from scoreline.runtime.types import AnyArray, FloatArray

EPS = float(np.finfo(float).eps)


class BoundedPenalty:
    """The penalty Omega(w) = alpha omega(w) for lower <= w <= upper, infinite elsewhere (eq. bounded-penalty).

    Parameters
    ----------
    terms : Terms
        Those of omega.
    lower, upper : array of p numbers, optional
        Bounds of the coefficients; infinite by default.
    """

    def __init__(self, terms: Terms, lower: FloatArray | None = None, upper: FloatArray | None = None):
        p = len(terms.quadratic)
        self.quadratic, self.absolute = terms.quadratic, terms.absolute
        self.lower = np.full(p, -np.inf) if lower is None else lower
        self.upper = np.full(p, np.inf) if upper is None else upper
        self.groups = terms.groups
        self.norms = None
        if terms.groups is not None and terms.norms is not None:
            self.norms = terms.norms
            self._order = np.argsort(terms.groups, kind="stable")
            self._starts = np.concatenate([[0], np.cumsum(np.bincount(terms.groups, minlength=len(terms.norms)))])
        self.bounded = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
        kinked = self.absolute.any() or (self.norms is not None and self.norms.any())
        self.smooth = not (self.bounded or kinked)
        self.uniform = self.smooth and bool((self.quadratic == 1.0).all())

    @classmethod
    def of(cls, penalty: Penalty, p: int, names: Any = None, bounds: Any = None) -> "BoundedPenalty":
        """Check the bounds, and return the penalty for p features within them."""
        prepared = cls(penalty.terms(p, names), *checked_bounds(bounds, p, names))
        if len(prepared.free):
            j = int(prepared.free[0])
            ends = np.isfinite([prepared.lower[j], prepared.upper[j]])
            limits = "no bounds" if not ends.any() else f"no {'upper' if ends[0] else 'lower'} bound"
            raise ValueError(
                f"column {j if names is None else str(names[j])!r} has weight 0 and {limits}: nothing limits its coefficient, "
                "so no certificate exists. Give it bounds=(lower, upper), both finite, or a small weight, such as 1e-3"
            )
        return prepared

    def scaled(self, scale: FloatArray) -> "BoundedPenalty":
        """Return the penalty of coefficients u = w / scale, with bounds on w; columns of scale 0 have w = 0."""
        if not self.bounded:
            return self
        outside = np.flatnonzero((scale == 0.0) & ((self.lower > 0.0) | (self.upper < 0.0)))
        if len(outside):
            raise ValueError(f"bounds exclude 0 for column {outside[0]}, which is constant: its coefficient is 0")
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(scale == 0.0, -np.inf, self.lower / scale)
            upper = np.where(scale == 0.0, np.inf, self.upper / scale)
        return BoundedPenalty(self._terms(), lower, upper)

    def with_constant(self, weight: float) -> "BoundedPenalty":
        """Return the penalty of one more coefficient, without bounds, whose square has this weight: 0 for a free one."""
        groups, norms = self.groups, self.norms
        if groups is not None and norms is not None:
            groups, norms = np.append(groups, len(norms)), np.append(norms, 0.0)
        terms = Terms(np.append(self.quadratic, weight), np.append(self.absolute, 0.0), groups, norms)
        return BoundedPenalty(terms, np.append(self.lower, -np.inf), np.append(self.upper, np.inf))

    def on_features(self, features: AnyArray) -> "BoundedPenalty":
        """Return the penalty of some of the coefficients; groups are whole or not there."""
        groups, norms = self.groups, self.norms
        if groups is not None and norms is not None:
            remaining, groups = np.unique(groups[features], return_inverse=True)
            norms = norms[remaining]
        terms = Terms(self.quadratic[features], self.absolute[features], groups, norms)
        return BoundedPenalty(terms, self.lower[features], self.upper[features])

    def _terms(self) -> Terms:
        return Terms(self.quadratic, self.absolute, self.groups, self.norms)

    @property
    def traits(self) -> frozenset[str]:
        """The properties that a solver must support for this penalty."""
        found = {"bounds"} if self.bounded else set()
        if self.norms is not None and self.norms.any():
            found.add("group")
        if self.absolute.any():
            found.add("elastic_net")
        if not (self.quadratic == 1.0).all():
            found.add("weights")
        return frozenset(found or {"l2"})

    @property
    def free(self) -> AnyArray:
        """The features that have neither a penalty nor two bounds."""
        unbounded = ~(np.isfinite(self.lower) & np.isfinite(self.upper))
        cost = self.quadratic + self.absolute
        if self.groups is not None and self.norms is not None:
            cost = cost + self.norms[self.groups]
        return np.flatnonzero(unbounded & (cost == 0.0))

    def value(self, w: FloatArray, alpha: float) -> float:
        """Return Omega(w) of a w within the bounds."""
        dot = kernels.vectors.dot
        total = 0.5 * dot(w, self.quadratic * w) + dot(np.abs(w), self.absolute)
        if self.groups is not None and self.norms is not None:
            total += float(self.norms @ np.sqrt(np.bincount(self.groups, w * w, len(self.norms))))
        return alpha * total

    def nearest(self, w: FloatArray) -> FloatArray:
        """Return the point nearest to w within the bounds."""
        return np.clip(w, self.lower, self.upper) if self.bounded else w

    def minimum(self, v: FloatArray, alpha: float, curvature: float | FloatArray = 0.0) -> FloatArray:
        """Return argmin over w of <v, w> + Omega(w) + sum curvature/2 w^2; the proximal step is that of -curvature u."""
        return self._minimum(v, alpha * self.quadratic + curvature, alpha, self.lower, self.upper)

    def prox(self, u: FloatArray, step: float, alpha: float) -> FloatArray:
        """Return argmin over w of |w - u|^2 / (2 step) + Omega(w) (eq. penalty-prox)."""
        return self.minimum(-u / step, alpha, 1.0 / step)

    def _minimum(
        self, v: FloatArray, quadratic: FloatArray, alpha: float, lower: FloatArray, upper: FloatArray
    ) -> FloatArray:
        out = np.empty_like(v)
        if self.norms is None:
            kernels.penalties.minimum(v, quadratic, alpha * self.absolute, lower, upper, out)
        else:
            norms = alpha * self.norms
            kernels.penalties.group_minimum(v, quadratic, norms, lower, upper, self._order, self._starts, out)
        return out

    def least(self, v: FloatArray, alpha: float, uncertainty: FloatArray, reach: FloatArray) -> float:
        """Return a lower bound of <v', w> + Omega(w) over all |v' - v| <= uncertainty and all w with |w| <= reach (eq. least).

        It is the minimum itself but for an allowance for rounding. O(p), O(100 p) with groups.

        Parameters
        ----------
        v, uncertainty : array of p numbers
            A slope, and what it may be off by.
        alpha : float
            Strength of the penalty.
        reach : array of p numbers
            Limits of |w_j| that the minimum of J is known to keep (`reach`); infinite where there is none.
        """
        lower, upper = np.maximum(self.lower, -reach), np.minimum(self.upper, reach)
        quadratic, absolute = alpha * self.quadratic, alpha * self.absolute
        if self.norms is not None:
            norms = alpha * self.norms
            w, moved = self._minimum(v, quadratic, alpha, lower, upper), np.empty_like(v)
            kernels.penalties.group_slopes(v, w, norms, lower, upper, self._order, self._starts, moved)
            uncertainty = uncertainty + 4.0 * EPS * (np.abs(v) + norms[self.groups])
            v = moved
        total, size = kernels.penalties.least(v, uncertainty, quadratic, absolute, lower, upper)
        return float(total - (len(v) + 8.0 * math.sqrt(len(v)) + 16.0) * EPS * size)

    def reach(self, level: float, alpha: float) -> FloatArray:
        """Return limits of |w_j| for all w with Omega(w) <= level (eq. penalty-reach); infinite where nothing limits it."""
        found, more = np.maximum(np.abs(self.lower), np.abs(self.upper)), 1.0 + 8.0 * EPS
        norms = None if self.groups is None or self.norms is None else self.norms[self.groups]
        for cost, squared in ((self.quadratic, True), (self.absolute, False), (norms, False)):
            if cost is not None:
                some = cost > 0.0  # 0 / 0, of a level of 0, is no limit
                with np.errstate(divide="ignore", over="ignore"):
                    limit = level / (alpha * cost[some])
                    found[some] = np.minimum(found[some], more * (np.sqrt(2.0 * limit) if squared else limit))
        return found

    def largest_alpha(self, slope: FloatArray) -> float:
        """Return the smallest alpha for which w = 0 is optimal, given the slope of the risk there (eq. alpha-max).

        Infinite where coefficients leave 0 at any alpha: those with a slope and neither an absolute value nor a norm.
        """
        if not np.array_equal(self.nearest(np.zeros_like(slope)), np.zeros_like(slope)):
            return math.inf
        blocked = ((slope > 0.0) & (self.lower == 0.0)) | ((slope < 0.0) & (self.upper == 0.0))
        pull, cost = np.where(blocked, 0.0, np.abs(slope)), self.absolute
        if self.groups is not None and self.norms is not None:
            pull, cost = np.sqrt(np.bincount(self.groups, pull * pull, len(self.norms))), self.norms
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(pull > 0.0, pull / cost, 0.0).max(initial=0.0))

    def steepest(self, w: FloatArray, gradient: FloatArray, alpha: float) -> FloatArray:
        """Return the subgradient of J of least length, 0 where a bound is in the way; `gradient` is that of the risk."""
        slope = gradient + alpha * self.quadratic * w
        if self.groups is not None and self.norms is not None:
            length = np.sqrt(np.bincount(self.groups, w * w, len(self.norms)))[self.groups]
            norm = alpha * self.norms[self.groups]
            with np.errstate(invalid="ignore", divide="ignore"):
                slope = slope + np.where(length > 0.0, norm * w / length, 0.0)
            slope = np.where(((w <= self.lower) & (slope > 0.0)) | ((w >= self.upper) & (slope < 0.0)), 0.0, slope)
            own = np.sqrt(np.bincount(self.groups, slope * slope, len(self.norms)))[self.groups]
            with np.errstate(invalid="ignore", divide="ignore"):
                shrunk = np.where(own > norm, slope * (1.0 - norm / own), 0.0)
            return np.where(length > 0.0, slope, shrunk)
        absolute = alpha * self.absolute
        up = slope + np.where(w >= 0.0, absolute, -absolute)
        down = slope + np.where(w > 0.0, absolute, -absolute)
        up, down = (
            np.where(w >= self.upper, 0.0, np.minimum(up, 0.0)),
            np.where(w <= self.lower, 0.0, np.maximum(down, 0.0)),
        )
        return up + down  # one of them is 0

    def violation(self, w: FloatArray, gradient: FloatArray, alpha: float) -> FloatArray:
        """Return by how much each coefficient is off the optimum: the distance of -gradient to the subgradients of Omega.

        `gradient` is that of the risk. Groups have the same distance for all their features.
        """
        found = np.abs(self.steepest(w, gradient, alpha))
        if self.groups is not None and self.norms is not None:
            found = np.sqrt(np.bincount(self.groups, found * found, len(self.norms)))[self.groups]
        return found

    def fingerprint(self) -> float:
        """Return a number that differs for another penalty."""
        parts = [self.quadratic, self.absolute, self.lower, self.upper]
        if self.groups is not None and self.norms is not None:
            parts += [self.groups.astype(np.float64), self.norms]
        return float(zlib.crc32(np.concatenate(parts).tobytes()))


def checked_bounds(bounds: Any, p: int, names: Any = None) -> tuple[FloatArray | None, FloatArray | None]:
    """Return lower and upper bounds of p coefficients, both None where there are none.

    Parameters
    ----------
    bounds : None, pair or dict
        (lower, upper), each a number or p numbers, or a dict of column to (lower, upper); None stands for no bound.
    p : int
        How many features there are.
    names : sequence of str, optional
        Names of the columns.
    """
    if bounds is None:
        return None, None
    lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
    if isinstance(bounds, Mapping):
        for column, pair in bounds.items():
            j = column_index(column, p, names, "bounds")
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"bounds[{column!r}]={pair!r} must be a pair (lower, upper); None for no bound")
            lower[j], upper[j] = _ends(pair, f"bounds[{column!r}]")
    else:
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise ValueError(
                f"bounds={bounds!r:.100} must be a pair (lower, upper) or a dict of column to (lower, upper)"
            )
        for end, target, word, none in zip(bounds, (lower, upper), ("lower", "upper"), (-np.inf, np.inf), strict=True):
            try:
                given = np.array(none if end is None else end, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"the {word} bounds={end!r:.100} must be a number or {p} numbers") from None
            if given.shape not in ((), (p,)):
                raise ValueError(f"the {word} bounds have shape {given.shape}, expected one number or ({p},)")
            target[:] = given
    wrong = np.flatnonzero(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))
    if len(wrong):
        j = int(wrong[0])
        name = j if names is None else str(names[j])
        raise ValueError(
            f"bounds of column {name!r} exclude every coefficient: lower {lower[j]:g}, upper {upper[j]:g}; "
            "the lower bound must not exceed the upper one"
        )
    return lower, upper


def signed_bounds(bounds: Any, signs: Sequence[int], names: Any = None) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds within those given that also keep the sign of each coefficient, where it has one."""
    sign = np.array(signs)
    lower, upper = checked_bounds(bounds, len(sign), names)
    lower = np.full(len(sign), -np.inf) if lower is None else lower
    upper = np.full(len(sign), np.inf) if upper is None else upper
    return np.where(sign > 0, np.maximum(lower, 0.0), lower), np.where(sign < 0, np.minimum(upper, 0.0), upper)


def _ends(pair: Any, what: str) -> tuple[float, float]:
    try:
        low, high = (float(none if end is None else end) for end, none in zip(pair, (-np.inf, np.inf), strict=True))
    except (TypeError, ValueError):
        raise ValueError(f"{what}={pair!r} must hold two numbers, or None for no bound") from None
    return low, high
