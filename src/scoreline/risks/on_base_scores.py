"""A risk of scores that are added to those of an existing model."""

import copy
import zlib
from typing import Any, Self

import numpy as np

from scoreline.risks.base import Evaluation, Hessian, Reference, Risk
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.scores import ScoreSpace

TRAITS = ("name", "smooth", "smoothable", "curved", "shift", "real_weights", "samples", "research")


class RiskOnBaseScores(Risk):
    """R(z + b), where b are the base scores: a solver sees a risk of z and learns what b lacks (eq. base-scores).

    A plane R(z') >= c + <u, z'> is one of z with the constant c + <u, b>.

    Parameters
    ----------
    risk : Risk
        R, prepared or not.
    base_scores : scores
        One number per row, where the rows are.
    """

    name: str  # type: ignore[misc]  # of the inner risk: this class is no entry of the registry

    def __init__(self, risk: Risk, base_scores: Scores):
        self.risk, self.base_scores = risk, base_scores
        for trait in TRAITS:
            setattr(self, trait, getattr(risk, trait))

    def prepare(self, y: Any, sample_weight: Any = None, space: ScoreSpace | None = None) -> Self:
        """Return a copy whose risk is prepared."""
        prepared = copy.copy(self)
        prepared.risk = self.risk.prepare(y, sample_weight, space)
        prepared.space, prepared.labels = prepared.risk.space, prepared.risk.labels
        prepared.largest_base_score = prepared.space.max_abs(self.base_scores, prepared.labels)
        return prepared

    def on_rows(self, rows: AnyArray) -> "RiskOnBaseScores":
        """Return the risk of some of the rows, which is still to be prepared."""
        return RiskOnBaseScores(self.risk, self.base_scores[rows])

    def full_scores(self, z: Scores) -> Scores:
        """Return z with the base scores added."""
        return z + self.base_scores

    @property
    def ramp_scale(self) -> float:
        """That of the inner risk, as all that follow."""
        return self.risk.ramp_scale

    @property
    def steepness(self) -> float:
        return self.risk.steepness

    @property
    def looseness(self) -> float:
        return self.risk.looseness

    @property
    def prox_bound(self) -> float:
        return self.risk.prox_bound

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane at z."""
        found = self.risk.evaluate(self.full_scores(z), mu, out, grad)
        if not grad:
            return found
        return found._replace(plane=found.plane + self.space.dot(found.grad, self.base_scores))

    def reference(
        self, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R_mu, gradient, c) by the literal definition."""
        value, grad, constant = self.risk.reference(z + self.base_scores, y, sample_weight, mu)
        return value, grad, constant + float(grad @ self.base_scores)

    def intercept(self, z: Scores) -> float:
        return self.risk.intercept(self.full_scores(z))

    def curvature(self, z: Scores) -> Scores:
        return self.risk.curvature(self.full_scores(z))

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        return self.risk.hessian(self.full_scores(z), mu)

    def best_constant(self) -> float:
        return self.risk.best_constant()

    def fingerprint(self) -> float:
        """Return a checksum of the risk and the base scores."""
        own = self.space.dot(self.base_scores, self.base_scores), float(self.base_scores.sum())
        return self.risk.fingerprint() + zlib.crc32(np.array(own).tobytes()) / 2.0**32


def on_base_scores(risk: Risk, base_scores: Scores | None) -> Risk:
    """Return the risk of scores that are added to these; itself where there are none."""
    return risk if base_scores is None else RiskOnBaseScores(risk, base_scores)
