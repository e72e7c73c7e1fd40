"""Scores of a stream in bounded memory, for a threshold whose error is known."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from scoreline.measures.base import MOST_WEIGHT, Measure
from scoreline.measures.thresholds import TunedThreshold, best_threshold
from scoreline.runtime.types import AnyArray, FloatArray

SIZE = 2048  # points that stand for a part of the scores


@dataclass
class Part:
    """Points with weights that stand for many, sorted; the error is the weight by which a rank may be off, at most."""

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
        """Return SIZE points of equal weight W / SIZE: those at (k + 1/2) W / SIZE. Ranks move by half of that at most."""
        total = self.weights.sum()
        places = (np.arange(SIZE) + 0.5) * (total / SIZE)
        at = np.minimum(np.searchsorted(np.cumsum(self.weights), places), len(self.points) - 1)
        error = self.error + 0.5 * total / SIZE
        return Part(self.points[at], np.full(SIZE, total / SIZE), error, self.depth + 1)


@dataclass
class ScoreSketch:
    """A summary of weighted numbers that can be added to: ranks are right but for a share of `rank_error`.

    Numbers are kept as they are up to SIZE; more are compressed into a part of SIZE points, and two parts of the same depth
    into one (Munro and Paterson 1980). After N numbers that makes at most 1 + log2(N / SIZE) parts, and half as many
    per SIZE is the largest error: 0.5 % for a billion numbers, in 0.7 MB.
    """

    weight: float = 0.0
    loose: Part = field(default_factory=lambda: Part(np.zeros(0), np.zeros(0)))
    parts: list[Part] = field(default_factory=list)

    def add(self, numbers: FloatArray, weights: FloatArray) -> None:
        """Take in numbers of positive weight; O(m log m) for m of them."""
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
        """Share of the weight by which the rank of a number may be off, at most."""
        return sum(part.error for part in self.parts) / self.weight if self.weight > 0.0 else 0.0

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return points and weights that stand for all numbers; their weights sum to that of all."""
        every = [self.loose, *self.parts]
        return np.concatenate([p.points for p in every]), np.concatenate([p.weights for p in every])


@dataclass
class RecentScores:
    """Scores of both classes of the later half of a stream, and up to an eighth of it more, for the threshold.

    A model that is still learning gives early rows scores that say little of it, so these are let go. Each generation holds the
    sketches of negatives and positives of an eighth of the rows met until it was full; the oldest is dropped when the others
    have half of all rows, except for a class that they have no row of.
    """

    generations: list[tuple[ScoreSketch, ScoreSketch]] = field(default_factory=list)
    total: float = 0.0

    def add(self, sign: AnyArray, scores: FloatArray, weight: FloatArray | None) -> None:
        """Take in scores with their labels, +1 and -1."""
        base = np.ones(len(sign)) if weight is None else weight
        with np.errstate(over="ignore"):
            added = float(base.sum())
        if not self.total + added <= MOST_WEIGHT:
            raise ValueError(
                f"the sample weights seen so far sum to {self.total + added:.3g}, expected at most {MOST_WEIGHT:g}; divide all "
                "weights by one number"
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
        """Return the best threshold of the points that stand for the scores."""
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
        """Share of a class by which the rank of the threshold may be off, at most: the larger of the two classes."""
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
