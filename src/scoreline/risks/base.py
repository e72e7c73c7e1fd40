"""The interface of a risk: R(z) of scores and labels, its gradient, and its smooth approximation from below."""

import copy
import zlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from scoreline.measures import Measure
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.runtime.vectors import as_vector, scaled_to_safe_range
from scoreline.scores import HostSpace, Labels, ScoreSpace

MIN_CLASS_RATIO = 1e-100  # least ratio of the weights of the classes, at which their products do not underflow
MAX_COPIES = 2**31  # rows that integer weights may represent: 16 GiB of scores


Reference = tuple[float, FloatArray, float]  # R_mu, its gradient, and the constant of the plane


class Evaluation(NamedTuple):
    """The result of one evaluation.

    value : R_mu(z), or R(z) for mu = 0
    grad : its gradient in z (a subgradient where R has a kink), None if not requested
    hard : R(z) without smoothing
    plane : c such that R(z') >= c + <grad, z'> for all z' (NaN without grad) (eq. plane): the dual constant -g(beta)
    mass : sum of |grad_i| (NaN without grad), which bounds the rounding error of the plane
    """

    value: float
    grad: Scores
    hard: float
    plane: float
    mass: float


class Hessian(NamedTuple):
    """The Hessian in z as diag(diagonal) + sum_k factor_k u_k u_k' over `rank_one` = [(u_k, factor_k)]; `exact` or not."""

    diagonal: Scores
    rank_one: tuple[tuple[Scores, float], ...] = ()
    exact: bool = False


class Risk(ABC):
    """A convex, non-negative function R of the scores, given labels and weights.

    Attributes
    ----------
    name : str
        The name used in `MeasureClassifier(risk=...)`.
    smooth : bool
        Whether R itself has a Lipschitz gradient; then mu is not used.
    smoothable : bool
        Whether `smoothed` exists: R - looseness * width <= R_mu <= R with width = mu * ramp_scale, in units of the scores.
    curved : bool
        Whether `curvature` exists, because the Hessian in z is diagonal.
    shift : str
        The effect of adding a constant to all scores: "invariant" (no intercept needed), "needed" or "linear".
    convex : bool
        True for all risks; cutting planes need nothing else.
    real_weights : bool
        Whether weights may be any numbers. If not, they must be integers, the numbers of copies.
    samples : bool
        Whether its value on a sample of the rows estimates that on all rows, which is false for risks that count rows.
    at_zero : float or None
        R(0) if it is the same for all labels and weights.
    research : bool
        Whether it is only of scientific interest; lists show such risks last, and risk="auto" never chooses them.
    """

    name: ClassVar[str]
    smooth: ClassVar[bool] = False
    smoothable: ClassVar[bool] = False
    curved: ClassVar[bool] = False
    shift: str = "needed"
    convex: ClassVar[bool] = True
    real_weights: bool = True
    at_zero: ClassVar[float | None] = None
    samples: bool = True
    research: ClassVar[bool] = False

    space: ScoreSpace
    labels: Labels
    largest_base_score: float = 0.0  # magnitude, see RiskOnBaseScores

    def prepare(self, y: Any, sample_weight: Any = None, space: ScoreSpace | None = None) -> Self:
        """Return a copy with labels and weights in `space`, after all work that depends only on y.

        Parameters
        ----------
        y : array of n labels
            +1 and -1, or 1 and 0, or booleans; both classes must occur.
        sample_weight : array of n weights, optional
            Non-negative; an integer weight equals that many copies of the row.
        space : ScoreSpace, optional
            The score space; the host by default.

        Returns
        -------
        Risk
            The prepared copy.
        """
        prepared = copy.copy(self)
        prepared.space = HostSpace() if space is None else space
        sign, weight = checked_labels(y, sample_weight)
        prepared.labels = check_classes(prepared.space.labels(sign, weight))
        if not self.real_weights:
            check_copies(self.title(), sample_weight)
        return prepared

    def on_rows(self, rows: AnyArray) -> "Risk":
        """Return the risk of some of the rows, which is still to be prepared with their labels."""
        return self

    def full_scores(self, z: Scores) -> Scores:
        """Return the scores that labels are compared with: z, with base scores added where there are some."""
        return z

    def title(self) -> str:
        """Return the name of the risk in errors."""
        return f"risk {self.name!r}"

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the risk for a measure; a risk that is defined by the measure overrides this."""
        return cls()

    @classmethod
    def variants(cls) -> "list[Risk]":
        """Return the risks of this class for tests: one, or one for every kind of parameter."""
        return [cls()]

    @property
    def ramp_scale(self) -> float:
        """Width of the ramp in score units divided by mu; 0 without a ramp."""
        return 0.0

    @property
    def steepness(self) -> float:
        """Factor by which a smooth risk magnifies a change of the scores in n grad: 1, or more for sharp bends."""
        return 1.0

    @property
    def looseness(self) -> float:
        """Largest difference R - R_mu in widths of the ramp (eq. smoothing-error): 1/2 for a mean of ramps."""
        return 0.5

    @property
    def prox_bound(self) -> float:
        """D of Zhang, Saha and Vishwanathan (2012): the largest d(beta), so that R - R_mu <= mu D."""
        return 0.5 * self.ramp_scale

    @abstractmethod
    def evaluate(self, z: Scores, mu: float = 0.0, out: Scores | None = None, grad: bool = True) -> Evaluation:
        """Return value, gradient, hard value and plane at z; `out` receives the gradient if given."""

    @abstractmethod
    def reference(
        self, z: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None, mu: float = 0.0
    ) -> Reference:
        """Return (R_mu, gradient, c) by the literal definition, slowly, for tests. The gradient at a kink is zero."""

    def intercept(self, z: Scores) -> float:
        """Return the intercept for scores z if the risk determines one; 0 for most."""
        return 0.0

    def value(self, z: Scores) -> float:
        """Return R(z)."""
        return self.evaluate(z, grad=False).hard

    def value_grad(self, z: Scores) -> tuple[float, Scores]:
        """Return R(z) and a subgradient in z."""
        result = self.evaluate(z)
        return result.value, result.grad

    def smoothed(self, z: Scores, mu: float) -> tuple[float, Scores, float]:
        """Return R_mu(z) (eq. smoothing), its gradient in z and the dual constant c = -g(beta).

        R_mu(z) = max_beta <A beta, z> - g(beta) - mu d(beta), d = 1/2 |beta|^2 (weighted where there are weights). The
        pair (gradient, c) is a plane below R: R(z') >= c + <gradient, z'>.
        """
        if not self.smoothable:
            why = "is smooth already" if self.smooth else "has no smoothed version"
            raise TypeError(f"risk {self.name!r} {why}; call value_grad")
        if not 0.0 < mu < np.inf:
            raise ValueError(f"mu={mu!r} must be a positive number; mu -> 0 gives the risk itself, see value_grad")
        result = self.evaluate(z, mu)
        return result.value, result.grad, result.plane

    def curvature(self, z: Scores) -> Scores:
        """Return the second derivatives d2R/dz_i2, row by row, of a risk with a diagonal Hessian."""
        raise TypeError(f"risk {self.name!r} has no diagonal Hessian")

    def hessian(self, z: Scores, mu: float = 0.0) -> Hessian | None:
        """Return the Hessian of R_mu in z for preconditioning, or None if this risk does not know it. O(n log n)."""
        return None

    def best_constant(self) -> float:
        """Return the best common score of all rows, from which a solver may start; 0 if it does not matter."""
        return 0.0

    def value_at_constant(self, score: float, ones: Scores) -> float:
        """Return R if all rows have the same score; `ones` are scores of 1."""
        return self.value(self.space.combine(score, ones, 0.0, ones))

    def fingerprint(self) -> float:
        """Return a checksum of the risk, its parameters, labels and weights, which identifies a saved state."""
        parts = [self.name]
        for owner in (self, getattr(self, "measure", None)):
            public = {} if owner is None else {k: v for k, v in vars(owner).items() if not k.startswith("_")}
            parts += [f"{k}={v!r}" for k, v in sorted(public.items()) if isinstance(v, (int, float, str))]
        return float(zlib.crc32(" ".join(parts).encode())) + self.space.fingerprint(self.labels) / 2.0**32

    def value_at_zero(self) -> float:
        """Return R(0), the value of w = 0."""
        return self.value(self.space.zeros(self.labels)) if self.at_zero is None else self.at_zero


def checked_labels(y: Any, sample_weight: Any) -> tuple[AnyArray, AnyArray | None]:
    """Return labels as +1 and -1 and checked weights, or raise unless both classes occur."""
    labels = as_vector(y)
    if labels.ndim != 1:
        raise ValueError(f"y has shape {labels.shape}, expected one label per row")
    positive = labels > 0
    negative = (labels == -1) if (labels == -1).any() else (labels == 0)
    if not (((labels == 1) | negative).all() and positive.any() and not positive.all()):
        raise ValueError(f"y must hold +1 and -1 (or 1 and 0), both of them; got {np.unique(labels)[:5]}")
    sign = np.where(positive, 1, -1).astype(np.int8)
    if sample_weight is None:
        return sign, None
    weight = as_vector(sample_weight, np.float64)
    if weight.shape != labels.shape:
        raise ValueError(f"sample_weight has shape {weight.shape}, expected {labels.shape} like y")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and non-negative")
    if not (weight[positive].any() and weight[~positive].any()):
        raise ValueError("sample_weight is zero for all rows of a class; give both classes a positive weight")
    return sign, safe_weights(weight)


def check_copies(what: str, sample_weight: Any) -> None:
    """Raise unless weights are integers, the numbers of copies of a row, for a risk that supports no others."""
    if sample_weight is None:
        return
    weight = np.asarray(sample_weight, dtype=np.float64)
    with np.errstate(over="ignore"):
        wrong, total = (
            np.flatnonzero(weight != np.rint(weight)),
            float(weight.sum()),
        )  # before any scaling
    if wrong.size or total > MAX_COPIES:
        got = f"{float(weight[wrong[0]])!r} in row {wrong[0]}" if wrong.size else f"a sum of {total:.3g}"
        raise ValueError(
            f"{what} takes sample weights that are whole numbers (copies of a row, {MAX_COPIES:.2g} in all), got {got} "
            "(class_weight included). Give integer sample_weight and class_weight=None, or another risk, like 'logistic'."
        )


def safe_weights(weight: FloatArray) -> FloatArray:
    """Return weights whose sums and products do not overflow, scaled by a power of two if necessary.

    Only ratios of weights matter to a risk, and a power of two does not change their digits.
    """
    scaled: FloatArray = scaled_to_safe_range(weight)[0]
    return scaled


def copied_rows(n: int, sample_weight: FloatArray | None) -> AnyArray:
    """Return the index of every row as often as its integer weight."""
    return np.repeat(np.arange(n), 1 if sample_weight is None else np.asarray(sample_weight).astype(int))


def check_classes(labels: Labels) -> Labels:
    """Return the labels, or raise if the weight of a class is negligible compared with the other."""
    low, high = sorted((labels.positive, labels.negative))
    if not low > MIN_CLASS_RATIO * high:
        raise ValueError(
            f"sample_weight gives the positive class a weight of {labels.positive:.3g} and the negative "
            f"{labels.negative:.3g} (after scaling), expected a ratio of at most {1.0 / MIN_CLASS_RATIO:.0e}; use "
            "weights (or class_weight) that differ less"
        )
    return labels
