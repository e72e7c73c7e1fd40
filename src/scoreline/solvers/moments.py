"""AUC or error from one pass: class moments, one linear solve, a model of normal scores."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from scoreline.measures import Measure
from scoreline.operators.linear_map import LinearMap
from scoreline.operators.moments import ClassMoments
from scoreline.risks import Risk
from scoreline.runtime.checks import check_bool, check_choice, check_number
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.method import Method
from scoreline.solvers.normal_model import (
    Covariance,
    Penalised,
    Projected,
    Term,
    best_error_direction,
    best_intercept,
    best_ranking_direction,
    error,
    paper_lbfgs,
    paper_start,
    ranking_error,
)

EXPLICIT = 4096  # columns: two classes take 256 MiB there; beyond, covariances are only ever multiplied
LEAST_RIDGE = 1e-10  # relative to the variances: what keeps a singular covariance solvable
PROBES = 8  # random vectors that estimate the sum of squares of the correlations: two passes each
SYSTEM_TOLERANCE = 1e-6  # of conjugate gradients, relative
ERROR_TOLERANCE = 1e-7  # largest component of the gradient of F_n01 where L-BFGS stops on wide data
RANKING, ERRORS = ("roc_auc",), ("accuracy", "balanced_accuracy")


@dataclass
class Direction:
    """A classifier from moments: w scaled so that scores have a variance of 1 within the classes on average.

    `predicted` is the AUC, or the (balanced) accuracy, that the normal model expects. `ridge` was added to the covariance,
    relative to its diagonal or, if the user gave it, absolute. `n_iter` counts the iterations of an iterative method, and
    `solved` tells whether they were enough.
    """

    w: FloatArray
    intercept: float
    predicted: float
    ridge: float
    scores: Projected
    n_iter: int = 1
    solved: bool = True


class MomentsSolver(Method):
    """One pass for the moments of both classes, then a closed form: no iterations over rows, no certificate.

    For AUC w ~ (S+ + S- + ridge)^-1 (mu+ - mu-), the exact minimum of the ranking error of normal scores; for accuracy the
    exact minimum of their error with intercept, by one eigendecomposition and a search over an angle. Beyond 4096 features
    the covariances are multiplied without being formed: AUC by conjugate gradients, two passes each, and then the error by
    L-BFGS, three passes each, to a local minimum. Ghanbari, Li and Scheinberg (2018).

    Parameters
    ----------
    ridge : float or "auto"
        Added to the diagonal of S+ + S-. "auto" shrinks the correlations instead: rho / (1 - rho) times the diagonal, rho
        by oracle approximating shrinkage (Chen, Wiesel, Eldar and Hero 2010), which needs the moments alone.
    method : {"exact", "paper"}
        "paper" runs the paper's own procedure: L-BFGS on the penalised function, its starting point and stopping rule.
    diagnostics : bool
        Let `fit` use one more pass for the exact threshold and for comparing the model with the scores.
    **options
        max_iter (of conjugate gradients and of L-BFGS on wide data), max_time and tol, which are not used otherwise.
    """

    name = "moments"
    takes_base_scores = False
    feature_vectors = 200.0  # of conjugate gradients and L-BFGS on wide data
    automatic = "never"
    certified = False
    direct = True  # under normal scores
    streams = True
    alpha_means = "alpha is not used: see ridge"
    trains_for = "roc_auc, accuracy or balanced_accuracy"
    length_penalty = 1e-3  # of (1 - |w|^2)^2; the minimum has the same direction for all of them
    gradient_norm = 2.0  # order of the norm of the gradient by which the paper's procedure stops

    def __init__(
        self, ridge: float | str = "auto", method: str = "exact", diagnostics: bool = True, **options: Any
    ) -> None:
        super().__init__(**options)
        if ridge != "auto":
            check_number("ridge", ridge, least=0)
        check_choice("method", method, ("exact", "paper"))
        check_bool("diagnostics", diagnostics)
        self.ridge, self.method, self.diagnostics = ridge, method, diagnostics

    def working_bytes(self, n: int, p: int) -> float:
        """Return an estimate of the peak memory beyond X in bytes, with covariances and a factor where they are stored."""
        return super().working_bytes(n, p) + (8.0 * 10.0 * p * p if p <= EXPLICIT else 0.0)

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        """Tell whether the risk stands for AUC or for the error: the moments replace it."""
        return risk.name in ("roc_area", "hinge", "logistic")

    @classmethod
    def trains(cls, measure: Measure | type[Measure]) -> bool:
        return measure.name in (*RANKING, *ERRORS)

    def train(
        self, operator: LinearMap, sign: AnyArray, copies: FloatArray | None, measure: str, weights: tuple[float, float]
    ) -> Direction:
        """Return the classifier for the rows of an operator; `weights` are those of the two classes."""
        if self.explicit(operator):
            return self.from_moments(operator.class_moments(sign, copies), measure, weights)
        return self._implicit(operator, sign, copies, measure, weights)

    def _implicit(
        self, operator: LinearMap, sign: AnyArray, copies: FloatArray | None, measure: str, weights: tuple[float, float]
    ) -> Direction:
        """Return the classifier by products with the covariances, which are never formed."""
        S = ImplicitCovariance(operator, sign, copies)
        diagonal, added, extra = self._implicit_ridge(operator, S)
        prior = _prior(S.n, measure, weights)
        halves = [OneClass(S, side, 0.5 * extra) for side in (0, 1)]
        w, n_iter, solved = self._conjugate_gradients(S, diagonal, extra) if self.method == "exact" else (None, 0, True)
        if self.method == "paper":
            both = BothClasses(S, extra)
            w, intercept, n_iter = self._paper(S.means, halves, both, measure, prior, S.projected)
            return _direction(w, S.projected(w), measure, prior, added, n_iter, intercept)
        assert w is not None
        if measure in ERRORS:
            # The best ranking direction is where the search for the least error starts.
            function = Penalised(_error_terms(S.means, halves, prior), self.length_penalty)
            found = minimize(
                function.value_grad, _error_start(S.means, w, S.projected(w), prior), jac=True, method="L-BFGS-B",
                options={"maxcor": 20, "gtol": ERROR_TOLERANCE, "ftol": 0.0, "maxiter": self.max_iter},
            )  # fmt: skip
            w, n_iter, solved = found.x[:-1], n_iter + int(found.nit), solved and found.nit < self.max_iter
        direction = _direction(w, S.projected(w), measure, prior, added, n_iter)
        direction.solved = solved
        return direction

    def _implicit_ridge(self, operator: LinearMap, S: "ImplicitCovariance") -> tuple[FloatArray, float, FloatArray]:
        """Return the diagonal of S+ + S- (1 for constant columns), the ridge, and what it adds to the diagonal."""
        if operator.capabilities & {"statistics", "row_blocks"}:
            variances = S.variances()
        elif self.ridge == "auto":
            raise ValueError(
                f"solver='moments' with ridge='auto' needs the variances of columns, and {type(operator).__name__} has "
                "products only; give solver_params={'ridge': number}"
            )
        else:  # they serve the preconditioner alone
            variances = [np.ones(operator.shape[1])] * 2
        diagonal = variances[0] + variances[1]
        live = diagonal > 0.0
        safe = np.where(live, diagonal, 1.0)
        if self.ridge == "auto":
            scale, rng, square = 1.0 / np.sqrt(safe), np.random.default_rng(0), 0.0
            for _ in range(PROBES):
                probe = np.where(live, rng.choice([-1.0, 1.0], size=len(safe)), 0.0)
                square += float(np.sum((scale * S.product(scale * probe)) ** 2)) / PROBES
            shares = [float((v / safe).mean()) for v in variances]
            columns = max(1, int(live.sum()))  # constant ones do not count
            added = shrinkage(columns, square, float(columns), effective_rows(shares, S.n))
            extra = added * safe
        else:
            added = float(self.ridge)
            extra = np.full(len(safe), added)
        return safe, added, np.where(live, extra, np.maximum(extra, 1e-8))

    def _conjugate_gradients(
        self, S: "ImplicitCovariance", diagonal: FloatArray, extra: FloatArray
    ) -> tuple[FloatArray, int, bool]:
        """Return w ~ (S+ + S- + ridge)^-1 (mu+ - mu-), the iterations, and whether they sufficed."""
        iterations = 0

        def count(_: FloatArray) -> None:
            nonlocal iterations
            iterations += 1

        p = len(diagonal)
        system = LinearOperator((p, p), matvec=lambda v: S.product(np.ravel(v)) + extra * np.ravel(v), dtype=np.float64)
        jacobi = LinearOperator((p, p), matvec=lambda v: np.ravel(v) / (diagonal + extra), dtype=np.float64)
        w, info = cg(
            system, S.means[0] - S.means[1], rtol=SYSTEM_TOLERANCE, maxiter=self.max_iter, M=jacobi, callback=count
        )
        return w, iterations, info == 0

    @staticmethod
    def explicit(operator: LinearMap) -> bool:
        """Tell whether the covariances can be written down: at most 4096 columns, rows that can be read in blocks."""
        return bool(operator.shape[1] <= EXPLICIT and "row_blocks" in operator.capabilities)

    def from_moments(self, moments: ClassMoments, measure: str, weights: tuple[float, float]) -> Direction:
        """Return the classifier for these moments: O(p^3), whatever the number of rows was."""
        a, b = moments.positive, moments.negative
        moments.check_finite()
        plus, minus = a.covariance, b.covariance
        diagonal = np.diag(plus) + np.diag(minus)
        spread = moments.columns()[1]
        # A column that is constant within the classes gets a little variance, so that it can be divided by.
        diagonal = np.maximum(diagonal, 1e-8 * spread)
        diagonal = np.where(diagonal > 0.0, diagonal, 1.0)
        ridge = self._ridge(plus + minus, diagonal, (a.weight, b.weight), (np.diag(plus), np.diag(minus)))
        extra = np.full(len(diagonal), ridge) if self.ridge != "auto" else ridge * diagonal
        extra = np.maximum(extra, np.where(np.diag(plus) + np.diag(minus) > 0.0, 0.0, LEAST_RIDGE * diagonal))
        prior = _prior((a.weight, b.weight), measure, weights)
        n_iter, intercept = 1, None
        try:
            if self.method == "paper":
                halves = [S + np.diag(0.5 * extra) for S in (plus, minus)]
                w, intercept, n_iter = self._paper(
                    [a.mean, b.mean], halves, halves[0] + halves[1], measure, prior,
                    lambda w: _projected(w, (a.mean, b.mean), (plus, minus)),
                )  # fmt: skip
            elif measure in RANKING:
                w = best_ranking_direction(a.mean - b.mean, plus + minus + np.diag(extra))
            else:
                half = np.diag(0.5 * np.maximum(extra, LEAST_RIDGE * diagonal))
                w = best_error_direction(a.mean, b.mean, plus + half, minus + half, prior)[0]
        except np.linalg.LinAlgError:
            raise ValueError(
                f"solver_params={{'ridge': {self.ridge!r}}}: the covariance is singular (constant or repeated columns, or more "
                "columns than rows); use ridge='auto' or a larger number"
            ) from None
        scores = _projected(w, (a.mean, b.mean), (plus, minus))
        return _direction(w, scores, measure, prior, ridge, n_iter, intercept)

    def _ridge(
        self, both: FloatArray, diagonal: FloatArray, n: tuple[float, float], variances: tuple[FloatArray, FloatArray]
    ) -> float:
        if self.ridge != "auto":
            return float(self.ridge)
        scale = 1.0 / np.sqrt(diagonal)
        square = float(np.einsum("ij,ij,i,j->", both, both, scale**2, scale**2, optimize=True))
        shares = [float((v / diagonal).mean()) for v in variances]
        live = max(1, int(np.count_nonzero(np.diag(both) > 1e-14 * diagonal)))  # constant columns do not count
        return shrinkage(live, square, float((np.diag(both) / diagonal).sum()), effective_rows(shares, n))

    def _paper(
        self,
        means: Sequence[FloatArray],
        halves: Sequence[Covariance],
        both: Covariance,
        measure: str,
        prior: float,
        projected: Callable[[FloatArray], Projected],
    ) -> tuple[FloatArray, float | None, int]:
        """Minimise the penalised function as the paper did; for the error the intercept is one more coordinate.

        `halves` are the covariances of the classes, each with half of the ridge, `both` is their sum.
        """
        start = paper_start(*means)
        if measure in RANKING:
            terms = [(1.0, Term(means[1] - means[0], both))]
        else:
            terms = _error_terms(means, halves, prior)
            start = _error_start(means, start, projected(start), prior)
        x, iterations = paper_lbfgs(Penalised(terms, self.length_penalty).value_grad, start, self.gradient_norm)
        p = len(means[0])
        return x[:p], None if measure in RANKING else float(x[p]), iterations


def _error_terms(
    means: Sequence[FloatArray], covariances: Sequence[Covariance], prior: float
) -> list[tuple[float, Term]]:
    """Return the two terms of F_n01; the intercept is one more coordinate with mean 1 and variance 0."""
    plus, minus = (Bordered(S) for S in covariances)
    a, b = (np.append(mean, 1.0) for mean in means)
    return [(prior, Term(-a, plus)), (1.0 - prior, Term(b, minus))]


def _error_start(means: Sequence[FloatArray], w: FloatArray, scores: Projected, prior: float) -> FloatArray:
    """Return w with its best intercept, of length 1."""
    # The paper does not say where the intercept starts. As one more coordinate of the means it ends on the plateau of one
    # class for all rows where features lie in [0, 1] (diabetes, german, ijcnn1, letter), so it starts at its best.
    b = best_intercept(scores, prior)
    start = np.append(w, b) if math.isfinite(b) else paper_start(*(np.append(mean, 1.0) for mean in means))
    return start / np.linalg.norm(start)


def _projected(
    w: FloatArray, means: tuple[FloatArray, FloatArray], covariances: tuple[FloatArray, FloatArray]
) -> Projected:
    """Return mean and deviation of the scores of both classes."""
    spreads = [math.sqrt(max(0.0, float(w @ covariance @ w))) for covariance in covariances]
    return Projected(*(float(mean @ w) for mean in means), *spreads)


def _prior(n: tuple[float, float], measure: str, weights: tuple[float, float]) -> float:
    """Return the share of positives that the threshold reckons with: 1/2 for a balanced threshold, which rankings take."""
    if measure == "balanced_accuracy" or (measure in RANKING and weights == (1.0, 1.0)):
        return 0.5
    plus, minus = weights[0] * n[0], weights[1] * n[1]
    return plus / (plus + minus)


def _direction(
    w: FloatArray,
    scores: Projected,
    measure: str,
    prior: float,
    ridge: float,
    n_iter: int,
    intercept: float | None = None,
) -> Direction:
    """Return the classifier with its threshold (the best one, unless an intercept was trained), scaled."""
    spread = math.sqrt(0.5 * (scores.std_positive**2 + scores.std_negative**2))
    size = spread if spread > 0.0 else abs(scores.mean_positive - scores.mean_negative)
    factor = 1.0 / size if size > 0.0 and math.isfinite(1.0 / size) else 1.0
    scores = Projected(*(factor * value for value in scores))
    b = best_intercept(scores, prior) if intercept is None else factor * intercept
    if not math.isfinite(b):  # one class for all rows: far beyond every score
        middle = 0.5 * (scores.mean_positive + scores.mean_negative)
        reach = abs(scores.mean_positive - scores.mean_negative) + 50.0 * max(
            scores.std_positive, scores.std_negative, 1.0
        )
        b = math.copysign(reach, b) - middle
    value = 1.0 - (ranking_error(scores) if measure in RANKING else error(scores, b, prior))
    return Direction(factor * w, b, value, ridge, scores, n_iter)


class ImplicitCovariance:
    """S+ and S-, multiplied without being formed: S v = X'(Xv), centred between the two so that no digits are lost.

    u = (Xv - mean'v) s / (n - 1) class by class, then X'u - sum_c mean_c sum(u_c). X stays sparse.
    """

    def __init__(self, operator: LinearMap, sign: AnyArray, copies: FloatArray | None):
        self.operator = operator
        s = 1.0 if copies is None else copies
        self.sides = [np.where(sign == side, s, 0.0) for side in (1, -1)]
        self.n = (float(self.sides[0].sum()), float(self.sides[1].sum()))
        self.means = [operator.rmatvec(s) / n for s, n in zip(self.sides, self.n, strict=True)]
        self.factors = [1.0 / (n - 1.0) if n > 1.0 else 0.0 for n in self.n]
        self._last: tuple[FloatArray, Any] | None = None  # what was multiplied last, and its scores

    def variances(self) -> list[FloatArray]:
        """Return the diagonals of both covariances; two passes."""
        if "statistics" in self.operator.capabilities:  # merged around the means
            parts = [self.operator.column_statistics(s).variance for s in self.sides]
            return [n * factor * part for n, factor, part in zip(self.n, self.factors, parts, strict=True)]
        found = []
        for s, n, mean, factor in zip(self.sides, self.n, self.means, self.factors, strict=True):
            squares = self.operator.square_rmatvec(s)
            rest = squares - n * mean**2
            found.append(factor * np.where(rest > 1e-12 * squares, rest, 0.0))
        return found

    def product(self, v: FloatArray) -> FloatArray:
        """Return (S+ + S-) v (eq. implicit-covariance); two passes."""
        own = [self._weighted(v, side) for side in (0, 1)]
        back = sum(mean * u.sum() for mean, u in zip(self.means, own, strict=True))
        return np.asarray(self.operator.rmatvec(own[0] + own[1]) - back)

    def product_of(self, v: FloatArray, side: int) -> FloatArray:
        """Return S+ v (side 0) or S- v (side 1); two passes, or one if the other class has just been multiplied by v."""
        u = self._weighted(v, side)
        return np.asarray(self.operator.rmatvec(u) - self.means[side] * u.sum())

    def _weighted(self, v: FloatArray, side: int) -> Any:
        """Return (Xv - mean'v) s / (n - 1) of one class."""
        if self._last is None or not np.array_equal(self._last[0], v):
            self._last = v.copy(), self.operator.matvec(v)
        return self.factors[side] * self.sides[side] * (self._last[1] - self.means[side] @ v)

    def projected(self, w: FloatArray) -> Projected:
        """Return mean and deviation of the scores of both classes; one pass."""
        z = self.operator.matvec(w)
        means = [float(s @ z) / n for s, n in zip(self.sides, self.n, strict=True)]
        spreads = [
            math.sqrt(max(0.0, factor * float(s @ (z - mean) ** 2)))
            for s, mean, factor in zip(self.sides, means, self.factors, strict=True)
        ]
        return Projected(*means, *spreads)


@dataclass
class OneClass:
    """S+ + diag(extra) (side 0) or S- + diag(extra) (side 1), multiplied without being formed."""

    covariance: ImplicitCovariance
    side: int
    extra: FloatArray

    def __matmul__(self, v: FloatArray) -> FloatArray:
        return self.covariance.product_of(v, self.side) + self.extra * v


@dataclass
class BothClasses:
    """S+ + S- + diag(extra), multiplied without being formed."""

    covariance: ImplicitCovariance
    extra: FloatArray

    def __matmul__(self, v: FloatArray) -> FloatArray:
        return self.covariance.product(v) + self.extra * v


@dataclass
class Bordered:
    """A covariance with one more coordinate, the intercept, of variance 0."""

    covariance: Covariance

    def __matmul__(self, v: FloatArray) -> FloatArray:
        return np.append(self.covariance @ v[:-1], 0.0)


def shrinkage(p: int, square: float, trace: float, n: float) -> float:
    """Return rho / (1 - rho), rho the oracle approximating shrinkage of a covariance with that trace and sum of squares.

    rho = ((1 - 2/p) tr(S^2) + tr(S)^2) / ((n + 1 - 2/p) (tr(S^2) - tr(S)^2 / p)), at most 1 (eq. oracle-shrinkage).
    Chen et al. (2010), (23).
    """
    rest = square - trace**2 / p
    if rest <= 1e-12 * square or p == 1:  # uncorrelated columns: nothing to shrink
        return LEAST_RIDGE
    rho = ((1.0 - 2.0 / p) * square + trace**2) / ((n + 1.0 - 2.0 / p) * rest)
    return max(LEAST_RIDGE, rho / (1.0 - rho)) if rho < 0.999 else 999.0


def effective_rows(shares: list[float], n: tuple[float, float]) -> float:
    """Return how many rows one covariance would need to be as certain as the sum of the two: 1 / sum share^2 / n."""
    total = sum(shares)
    if total <= 0.0:
        return 1.0
    return 1.0 / sum((share / total) ** 2 / max(1.0, rows - 1.0) for share, rows in zip(shares, n, strict=True))
