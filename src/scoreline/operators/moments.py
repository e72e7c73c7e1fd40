"""Weight, mean and scatter of the rows of two classes: all that `solver="moments"` knows of the data.

Two parts of the data merge exactly (Chan, Golub and LeVeque 1983), in any order and for means far from 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from scoreline.runtime.types import FloatArray

ROWS_AT_A_TIME = 256
LEAST_COLUMN_SIZE, MOST_COLUMN_SIZE = 1e-75, 1e75  # of columns: the ridge adds up fourth powers
LEAST_SCALED_SIZE, MOST_SCALED_SIZE = 1e-140, 1e140  # of columns whose squares are rounded like other numbers
OUT_OF_RANGE = "squares of X leave the range of floats; divide its columns by their largest magnitude first"


@dataclass
class Moments:
    """Moments of some rows: weight n = sum s, mean sum s x / n, scatter sum s (x - mean)(x - mean)' of shape (p, p)."""

    weight: float
    mean: FloatArray
    scatter: FloatArray

    @classmethod
    def empty(cls, p: int) -> "Moments":
        """Return the moments of no rows."""
        return cls(0.0, np.zeros(p), np.zeros((p, p)))

    def merge(self, other: "Moments") -> None:
        """Take in other rows; O(p^2), a few rows of the scatter at a time.

        With D = mean_b - mean_a: mean = mean_a + D n_b / n, scatter = sum of both + D D' n_a n_b / n
        (eq. merge-moments).
        """
        total = self.weight + other.weight
        if other.weight <= 0.0:
            return
        share = other.weight / total
        with np.errstate(over="ignore", invalid="ignore"):  # `check_finite` has the words for it
            step = other.mean - self.mean
            self.scatter += other.scatter
            weighted = self.weight * share * step
            for j in range(0, len(step), ROWS_AT_A_TIME):
                self.scatter[j : j + ROWS_AT_A_TIME] += step[j : j + ROWS_AT_A_TIME, None] * weighted
            self.mean = self.mean + share * step
        self.weight = total

    @property
    def covariance(self) -> FloatArray:
        """Scatter / (n - 1), the weights being counts of rows; 0 for a single row, whose covariance is not known."""
        return self.scatter / (self.weight - 1.0) if self.weight > 1.0 else np.zeros_like(self.scatter)

    def scaled(self, scale: FloatArray, center: FloatArray | None = None) -> "Moments":
        """Return the moments of (x - center) * scale."""
        mean = self.mean if center is None else self.mean - center
        return Moments(self.weight, mean * scale, self.scatter * scale[:, None] * scale)


@dataclass
class ClassMoments:
    """Moments of the positive and of the negative rows."""

    positive: Moments
    negative: Moments

    @classmethod
    def empty(cls, p: int) -> "ClassMoments":
        """Return the moments of no rows."""
        return cls(Moments.empty(p), Moments.empty(p))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.positive.mean)

    def merge(self, other: "ClassMoments") -> None:
        """Take in other rows."""
        self.positive.merge(other.positive)
        self.negative.merge(other.negative)

    def check_finite(self) -> None:
        """Raise if squares of the rows left the range of floats, or squares of those would."""
        for part in (self.positive, self.negative):
            if not (np.isfinite(part.mean).all() and np.isfinite(part.scatter).all()):
                raise ValueError(OUT_OF_RANGE)
        self._check_sizes(LEAST_COLUMN_SIZE, MOST_COLUMN_SIZE)

    def _check_sizes(self, low: float, high: float) -> None:
        parts = (self.positive, self.negative)
        roots = [np.sqrt(np.maximum(np.diag(m.scatter), 0.0)) for m in parts]
        sizes = np.max([*roots, *(np.abs(m.mean) for m in parts)], axis=0)
        if ((sizes > 0.0) & ~((sizes > low) & (sizes < high))).any():
            raise ValueError(OUT_OF_RANGE)

    def scaled(self, scale: FloatArray, center: FloatArray | None = None) -> "ClassMoments":
        """Return the moments of (x - center) * scale."""
        self._check_sizes(LEAST_SCALED_SIZE, MOST_SCALED_SIZE)
        return ClassMoments(self.positive.scaled(scale, center), self.negative.scaled(scale, center))

    def columns(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (divided by the weight) of every column over both classes."""
        a, b = self.positive, self.negative
        total = max(a.weight + b.weight, 1e-300)
        step = b.mean - a.mean
        mean = a.mean + step * (b.weight / total)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.diag(a.scatter) + np.diag(b.scatter) + step**2 * (a.weight * b.weight / total)
        if not np.isfinite(squares).all():
            raise ValueError(OUT_OF_RANGE)
        return mean, squares / total

    def record(self) -> dict[str, Any]:
        """Return a copy as a dict of arrays and numbers."""
        return {
            side.name: {f.name: np.copy(getattr(getattr(self, side.name), f.name)) for f in fields(Moments)}
            for side in fields(self)
        }

    @classmethod
    def restored(cls, record: Mapping[str, Any], p: int | None = None) -> "ClassMoments":
        """Return the moments that `record` described, for p features if that is known."""
        parts = [
            Moments(float(part["weight"]), np.array(part["mean"], dtype=float), np.array(part["scatter"], dtype=float))
            for part in (record["positive"], record["negative"])
        ]
        p = len(parts[0].mean) if p is None else p
        if any(part.mean.shape != (p,) or part.scatter.shape != (p, p) or not part.weight >= 0.0 for part in parts):
            raise ValueError(f"the moments are not those of {p} features")
        return cls(*parts)
