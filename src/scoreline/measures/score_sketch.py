"""Scores of a stream in bounded memory, for a threshold with a known error."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from scoreline.measures.base import MAX_TOTAL_WEIGHT, Measure
from scoreline.measures.thresholds import TunedThreshold, best_threshold
from scoreline.runtime.types import AnyArray, FloatArray

SIZE = 2048  # points that represent a part of the scores


@dataclass
class Part:
    """Sorted points with weights that represent many numbers; `error` bounds the error of a rank, as a weight."""

    points: FloatArray
    weights: FloatArray
    error: float = 0.0
    depth: int = 0

    def joined(self, other: "Part") -> "Part":
        """Return the points of both, sorted."""
        points, weights = np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights])
        order = np.argsort(points, kind="stable")
        return Part(points[order], weights[order], self.error + other.error, max(self.depth, other.depth))

    def compressed(self) -> "Part":
        """Return SIZE points of equal weight W / SIZE, at (k + 1/2) W / SIZE, which moves ranks by at most half of that."""
        total = self.weights.sum()
        places = (np.arange(SIZE) + 0.5) * (total / SIZE)
        at = np.minimum(np.searchsorted(np.cumsum(self.weights), places), len(self.points) - 1)
        error = self.error + 0.5 * total / SIZE
        return Part(self.points[at], np.full(SIZE, total / SIZE), error, self.depth + 1)


@dataclass
class ScoreSketch:
    """A summary of a growing set of weighted numbers; ranks are correct up to a share of `rank_error`.

    Up to SIZE numbers are stored exactly. More are compressed into a part of SIZE points, and two parts of the same depth into
    one (Munro and Paterson 1980). After N numbers there are at most m = 1 + log2(N / SIZE) parts, and the largest error is
    m / (2 SIZE): 0.5 % for a billion numbers, in 0.7 MB.
    """

    weight: float = 0.0
    loose: Part = field(default_factory=lambda: Part(np.zeros(0), np.zeros(0)))
    parts: list[Part] = field(default_factory=list)

    def add(self, numbers: FloatArray, weights: FloatArray) -> None:
        """Add m numbers of positive weight, in O(m log m)."""
        order = np.argsort(numbers, kind="stable")
        self.weight += float(weights.sum())
        self.loose = self.loose.joined(Part(numbers[order], weights[order]))
        if len(self.loose.points) <= SIZE:
            return
        part, self.loose = self.loose.compressed(), Part(np.zeros(0), np.zeros(0))
        while self.parts and self.parts[-1].depth <= part.depth:
            part = self.parts.pop().joined(part).compressed()
        self.parts.append(part)

    @property
    def rank_error(self) -> float:
        """Largest error of the rank of a number, as a share of the weight."""
        return sum(part.error for part in self.parts) / self.weight if self.weight > 0.0 else 0.0

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return points and weights that represent all numbers, with the same total weight."""
        every = [self.loose, *self.parts]
        return np.concatenate([p.points for p in every]), np.concatenate([p.weights for p in every])


@dataclass
class RecentScores:
    """Scores of both classes of the later half of a stream (up to 5/8 of it), for the threshold.

    Scores of early rows come from a model that was still learning, so they are dropped. Each generation has the sketches of
    negatives and positives for an eighth of the rows that were processed until it was full. The oldest one is dropped when the
    others have half of all rows, except for a class without rows in the others.
    """

    generations: list[tuple[ScoreSketch, ScoreSketch]] = field(default_factory=list)
    total: float = 0.0

    def add(self, sign: AnyArray, scores: FloatArray, weight: FloatArray | None) -> None:
        """Add scores with their labels, +1 and -1."""
        base = np.ones(len(sign)) if weight is None else weight
        with np.errstate(over="ignore"):
            added = float(base.sum())
        if not self.total + added <= MAX_TOTAL_WEIGHT:
            raise ValueError(
                f"the sample weights seen so far sum to {self.total + added:.3g}, expected at most {MAX_TOTAL_WEIGHT:g}; "
                "divide all weights by one number"
            )
        if not self.generations or 8.0 * _weight(self.generations[-1:]) >= self.total:
            self.generations.append((ScoreSketch(), ScoreSketch()))
        for sketch, side in zip(self.generations[-1], (-1, 1), strict=True):
            rows = (sign == side) & (base > 0.0)
            sketch.add(scores[rows], base[rows])
        self.total += added
        while 2.0 * _weight(self.generations[1:]) >= self.total:
            oldest, *rest = self.generations
            for side in (0, 1):
                if not any(pair[side].weight > 0.0 for pair in rest):
                    rest[0] = (oldest[0], rest[0][1]) if side == 0 else (rest[0][0], oldest[1])
            self.generations = rest

    def best_threshold(self, measure: Measure) -> TunedThreshold:
        """Return the best threshold for the points that represent the scores."""
        signs, points, weights = [], [], []
        for generation in self.generations:
            for sketch, side in zip(generation, (-1, 1), strict=True):
                z, w = sketch.points()
                signs.append(np.full(len(z), side))
                points.append(z)
                weights.append(w)
        return best_threshold(np.concatenate(signs), np.concatenate(points), measure, np.concatenate(weights))

    def record(self) -> dict[str, Any]:
        """Return a copy as a dict of arrays and numbers."""
        return asdict(self)

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> "RecentScores":
        """Return the scores that `record` described."""
        pairs = [(_sketch(first), _sketch(second)) for first, second in record["generations"]]
        return cls(pairs, float(record["total"]))

    @property
    def rank_error(self) -> float:
        """Largest error of the rank of the threshold, as a share of a class: the maximum of both classes."""
        errors = [0.0]
        for sketches in zip(*self.generations, strict=True):
            weight = sum(sketch.weight for sketch in sketches)
            off = sum(sketch.rank_error * sketch.weight for sketch in sketches)
            errors.append(off / weight if weight > 0.0 else 0.0)
        return max(errors)


def _sketch(record: Mapping[str, Any]) -> ScoreSketch:
    return ScoreSketch(record["weight"], Part(**record["loose"]), [Part(**part) for part in record["parts"]])


def _weight(generations: list[tuple[ScoreSketch, ScoreSketch]]) -> float:
    return sum(sketch.weight for pair in generations for sketch in pair)
