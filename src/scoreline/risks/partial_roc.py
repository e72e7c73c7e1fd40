"""Partial ROC area: the pairwise hinge with only the negatives of highest score."""

import math
from typing import Any, Self

import numpy as np

from scoreline.measures import Measure
from scoreline.risks.base import Evaluation, Hessian, Reference, Risk
from scoreline.risks.roc_area import pair_hessian, ramp_width
from scoreline.runtime.checks import check_rate
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.runtime.vectors import MAX_SAFE_WEIGHT, as_vector
from scoreline.scores import ScoreSpace


class PartialRocRisk(Risk):
    """R(z) = sum of s_i s_j max(0, 1 - z_i + z_j) / (S+ J) over positives i and the J negatives j of highest score.

    J = floor(max_fpr S-), at least 1 (eq. partial-roc). R is an upper bound of 1 - (area under the ROC curve up to max_fpr) /
    max_fpr if weights are integers; docs/math/partial_roc_auc.md discusses other weights. It is convex, as the maximum of such
    sums over all sets of negatives of weight J, and takes O(n log n). Adding a constant to all scores changes nothing.

    The smoothed risk is exact. With beta_ij <= q_j and sum_j s_j q_j <= J, the best q is clip((z_j - theta) / width, 0, 1),
    where theta makes the sum J, and beta_ij = clip((z_j - max(z_i - 1, theta)) / width, 0, 1). So one threshold is found
    among the negatives, scores of positives are lifted to at least theta + 1, and the rest is the smoothed ROC area.

    Parameters
    ----------
    max_fpr : float
        Share of the negatives that count, in (0, 1]; 1 is `RocAreaRisk`.
    """

    name = "partial_roc"
    at_zero = 1.0
    smoothable = True
    shift = "invariant"
    top: float  # J

    def __init__(self, max_fpr: float = 0.1):
        check_rate("max_fpr", max_fpr)
        self.max_fpr = max_fpr

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the risk with the measure's max_fpr."""
        return cls(getattr(measure, "max_fpr", 0.1))

    @classmethod
    def variants(cls) -> list[Risk]:
        """Return risks from one negative to all of them."""
        return [cls(max_fpr) for max_fpr in (0.1, 1e-6, 0.5, 1.0)]

    def prepare(self, y: Any, sample_weight: Any = None, space: ScoreSpace | None = None) -> Self:
        """Return a copy that holds labels, weights, and the weight J of negatives that count (eq. partial-top)."""
        prepared = super().prepare(y, sample_weight, space)
        negative = prepared.labels.negative
        share, least = self.max_fpr * negative, 1.0
        if sample_weight is None or (as_vector(sample_weight) == np.rint(sample_weight)).all():
            if sample_weight is None or float(as_vector(sample_weight).max()) <= MAX_SAFE_WEIGHT:
                share = math.floor(share + 1e-9)  # 0.1 * 30 is 3
            else:  # weights were scaled down, and single copies are negligible
                least = 0.0
        else:  # only ratios of weights matter
            least = negative / prepared.labels.n_negative
        prepared.top = min(negative, max(least, share))
        return prepared

    @property
    def ramp_scale(self) -> float:
        """Ramp width over mu: the weight of the pairs that count, S+ J."""
        return self.labels.positive * self.top

    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane: the ROC area of the top negatives, with two look-ups per row.

        grad_i = -y_i s_i sum_j s_j beta_ij / (S+ J); c = sum_ij s_i s_j beta_ij / (S+ J) (eq. partial-smooth).
        """
        space, labels, pairs = self.space, self.labels, self.ramp_scale
        width = ramp_width(self, mu)
        if not width > 0.0:
            top = space.top_share(z, labels, -1, self.top)
            sums = space.pair_sums(z, space.reweighted(labels, top), 0.0, 1.0 / pairs, out, grad)
            plane = sums.ramps / pairs if grad else math.nan
            return Evaluation(sums.hard / pairs, sums.grad, sums.hard / pairs, plane, 2.0 * plane)
        hard = self.evaluate(z, grad=False).hard
        lifted, lift = space.lifted(z, labels, space.soft_threshold(z, labels, -1, self.top, width))
        sums = space.pair_sums(lifted, labels, width, 1.0 / pairs, out, True, margin=0.0)
        # The ramps are those of the lifted scores. The true scores of positives are lower, which adds slope times lift.
        value = sums.smooth / pairs - space.dot(sums.grad, lift)
        plane = sums.ramps / pairs if grad else math.nan
        return Evaluation(value, sums.grad if grad else None, hard, plane, 2.0 * plane)

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return an approximate Hessian: that of ROC area (`pair_hessian`) at the lifted scores."""
        width = ramp_width(self, mu)
        if not width > 0.0:
            return None
        scale = 1.0 / (self.ramp_scale * width)
        if self.top >= self.labels.negative:  # no negative is left out, and no positive lifted to where a ramp ends
            return pair_hessian(self, z, width, scale)
        lifted, _ = self.space.lifted(z, self.labels, self.space.soft_threshold(z, self.labels, -1, self.top, width))
        return pair_hessian(self, lifted, width, scale, margin=0.0)

    def reference(
        self, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R_mu, gradient, c) by visiting all pairs, O(n+ n-), with a threshold by bisection in extended precision."""
        s = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        positive = np.asarray(y) > 0
        top = self.prepare(y, sample_weight).top
        f, g, s_f, s_g = z[positive], z[~positive], s[positive], s[~positive]
        pairs, width = s_f.sum() * top, mu * s_f.sum() * top
        t = 1.0 - f[:, None] + g[None, :]
        order = np.argsort(-g, kind="stable")
        before = np.cumsum(s_g[order]) - s_g[order]
        if width > 0.0:
            last = order[np.flatnonzero((before < top) & (s_g[order] > 0.0))[-1]]
            near = g.astype(np.longdouble) - g[last]
            low, high = -2.0 * np.longdouble(width), np.longdouble(width)
            for _ in range(300):
                theta = 0.5 * (low + high)
                more = (s_g * np.clip((near - theta) / width, 0.0, 1.0)).sum() > top
                low, high = (theta, high) if more else (low, theta)
            q = np.clip((near - high) / width, 0.0, 1.0).astype(np.float64)
            beta = np.clip(np.minimum(t / width, q[None, :]), 0.0, 1.0)
        else:
            q = np.empty(len(g))
            q[order] = np.clip((top - before) / np.where(s_g[order] > 0.0, s_g[order], 1.0), 0.0, 1.0)
            beta = (t > 0.0) * q[None, :]
        weight = np.outer(s_f, s_g)
        grad = np.empty(len(z))
        grad[positive], grad[~positive] = -(weight * beta).sum(axis=1) / pairs, (weight * beta).sum(axis=0) / pairs
        value = float((weight * (beta * t - 0.5 * width * beta**2)).sum() / pairs)
        return value, grad, float((weight * beta).sum() / pairs)
