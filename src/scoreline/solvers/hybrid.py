"""L-BFGS on growing batches of rows that ends on all of them, skipping rows that provably do not matter."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scoreline import kernels
from scoreline.objective import Objective, Point
from scoreline.runtime.checks import check_bool, check_choice, check_number
from scoreline.runtime.types import AnyArray, FloatArray, Scores
from scoreline.solvers.common.base import Solver, State
from scoreline.solvers.common.hessian import CurvatureMemory, Preconditioner, has_factor
from scoreline.solvers.common.lower_bound import LowerBound
from scoreline.solvers.common.sample_start import PENALTY
from scoreline.solvers.shrinking import SHRINKINGS

LEAST_BATCH_ROWS, BATCH_ROWS_PER_FEATURE = 500, 10  # rows of the first batch
BATCH_GROWTH = 4.0  # of a batch that is too noisy; a Hessian is recomputed when the batch has grown by as much
ARMIJO_DECREASE, ALLOWED_RISE = 1e-4, 1e-15  # Armijo's constant; what J may rise by because of rounding, relative
MOST_TRIALS = 30
MOST_IDLE_STEPS = 3  # steps on all rows that improve neither J nor the bound: rounding is all that is left


@dataclass
class HybridState(State):
    """State plus the batch, the plan it belongs to and its slope, curvature pairs, the Hessian with rows and age, the plane."""

    rows: int = 0
    plan: list[float] = field(default_factory=list)
    slope: FloatArray | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    plane: dict[str, Any] = field(default_factory=dict)
    hessian: dict[str, Any] = field(default_factory=dict)
    hessian_rows: int = 0
    hessian_age: int = 0


class HybridSolver(Solver):
    """Quasi-Newton steps on nested random batches that grow to all rows, for smooth losses of single rows; certified.

    Early steps need no more rows than it takes to tell their direction from noise (Friedlander and Schmidt 2012). A batch is
    a prefix of one permutation of the rows; X is read where it lies. The pair (s, y) of a step is taken on the batch of that
    step, the new rows of the next batch are then added to its gradient: a step costs two products with the batch. The search is
    Armijo's, on scores. Up to 1000 features a Hessian of the batch is the starting matrix and follows its growth. On all
    all rows every gradient gives a plane below the risk, and the gap is proved as in `lbfgs`.

    With the squared hinge, rows beyond the margin have no part in value and slope. `shrink` skips the products of rows
    whose margin is provably still beyond 1, given the distance that w has moved since they were computed. Skipping changes no
    digit of any iterate. `history_["skipped"]` has the share of the batch that each iteration skipped.

    Parameters
    ----------
    shrink : {"none", "sum", "path"}
        How the distance is bounded: "sum" adds the lengths of all steps (one comparison per row), "path" measures it from
        the point where the row was last computed.
    growth : {"variance", "paper"}
        "variance" multiplies the batch by 4 when the decrease it promises is no more than noise of its rows would promise,
        "paper" takes 1.1 times the batch plus 1 after every step.
    first_rows : int, optional
        Rows of the first batch; by default 500, or 10 for every feature. The paper begins with 1.
    precondition : bool
        Use a Hessian of the batch where there are at most 1000 features and X can be read in blocks.
    seed : int
        Of the permutation.
    memory : int
        Pairs of curvature kept.
    **options
        tol, max_iter, max_time, abs_tol, callbacks: see Solver.
    """

    name = "hybrid"
    takes_base_scores = False
    automatic = "never"
    research_options = ("shrink",)
    needs = "curved"
    state_class = HybridState

    def __init__(
        self,
        shrink: str = "none",
        growth: str = "variance",
        first_rows: int | None = None,
        precondition: bool = True,
        seed: int = 0,
        memory: int = 10,
        **options: Any,
    ):
        super().__init__(**options)
        check_choice("shrink", shrink, tuple(SHRINKINGS))
        check_choice("growth", growth, ("variance", "paper"))
        if first_rows is not None:
            check_number("first_rows", first_rows, least=1, integer=True)
        check_number("memory", memory, least=1, integer=True)
        check_number("seed", seed, least=0, integer=True)
        check_bool("precondition", precondition)
        self.shrink, self.growth, self.first_rows = shrink, growth, first_rows
        self.precondition, self.seed, self.memory = precondition, seed, memory

    def start(self, objective: Objective, w0: FloatArray) -> HybridState:
        """Return the state at w0, on all rows; in place of w0 = 0, at the best model without features, on the first batch."""
        if w0.any():
            return HybridState(w=w0, best_w=w0, rows=objective.operator.shape[0])
        w0 = objective.operator.shifted(w0, objective.risk.best_constant())
        return HybridState(w=w0, best_w=w0, rows=self.sizes(objective)[0])

    def _check_rows(self, objective: Objective) -> None:
        """Raise if rows cannot be read one by one, or skipped, here."""
        if objective.operator.scores != "host":
            raise TypeError(
                "solver='hybrid' needs products restricted to rows of this process, and X is on a cluster or a "
                "device: use another solver (solver='auto'), or pass X as an array or sparse matrix of this process"
            )
        if self.shrink != "none" and objective.risk.name != "squared_hinge":
            raise ValueError(
                f"shrink={self.shrink!r} skips rows beyond the margin, which have no loss in risk 'squared_hinge' only, got "
                f"risk {objective.risk.name!r}. Pass risk='squared_hinge', or shrink='none'."
            )
        if self.shrink != "none" and not objective.operator.cheap_rows:
            raise TypeError(
                f"shrink={self.shrink!r} reads single rows, which X in this order of memory (or a computed X) cannot do at the "
                "cost of these rows alone. Pass a C-ordered array or a CSR matrix (np.ascontiguousarray(X), X.tocsr()), or "
                "shrink='none'."
            )

    @property
    def _penalty(self) -> float:
        """Return m times the least alpha of a batch of m rows, see `sample_start`; the paper has none."""
        return 0.0 if self.growth == "paper" else PENALTY

    def sizes(self, objective: Objective) -> list[int]:
        """Return the rows of all batches, the last of which has all; only that one where rows cannot be read one by one."""
        n, p = objective.operator.shape
        m = max(LEAST_BATCH_ROWS, BATCH_ROWS_PER_FEATURE * p) if self.first_rows is None else self.first_rows
        found = []
        while objective.operator.cheap_rows and m < (n if self.growth == "paper" else n // 2):
            found.append(m)
            m = math.ceil(1.1 * m + 1) if self.growth == "paper" else int(BATCH_GROWTH * m)
        return [*found, n]

    def resume(self, objective: Objective, state: State) -> None:
        """Compute scores and gradient of the batch at state.w; restore memory, Hessian and plane."""
        assert isinstance(state, HybridState)
        self._check_rows(objective)
        self._sizes = self.sizes(objective)
        plan = [float(self.seed), self._penalty, *map(float, self._sizes)]
        if state.plan and state.plan != plan:  # other batches: what is known of the old one does not hold
            state.slope, state.rows = None, objective.operator.shape[0]
        state.plan = plan
        self._batches = Batches(objective, self._sizes, self.seed, norms=self.shrink != "none")
        self._part = part = self._batches.of(state.rows, self._penalty)
        self._idle = 0
        self._counted = 0.0  # passes of the batch that are counted as passes of all rows
        self._curvature = CurvatureMemory(objective.n_features, self.memory)
        self._curvature.restore(state.memory)
        self._bound = LowerBound(objective.n_features, objective.alpha)
        self._bound.restore(state.plane)
        if not math.isfinite(state.best_objective):  # J(0) is known; a batch knows no J
            state.best_objective, state.best_w = objective.risk.value_at_zero(), np.zeros_like(state.w)
        self._point = part.at(state.w, part.scores_at_start(state.w))
        self._slope = part.slope(self._point) if state.slope is None else np.array(state.slope, dtype=np.float64)
        self._exact: AnyArray | None = None  # rows whose score is that of w; None: all
        self._skipping = SHRINKINGS[self.shrink](self._batches.norms(state.rows))
        self._skipping.update(None, state.w, self._batches.margins(self._point.z))
        self._preconditioner = Preconditioner()
        self._count(objective, part)
        self._preconditioner.restore(state.hessian, part, self._curvature)
        self._prove(objective, state)
        state.history.setdefault("skipped", [])

    def store(self, state: State) -> None:
        """Put curvature, Hessian and plane into the state; a run that ends on a batch returns its point if J is lower there."""
        assert isinstance(state, HybridState)
        objective = self._batches.objective
        self._fill(state)
        state.memory, state.slope = dict(self._curvature.record()), self._slope
        state.hessian = self._preconditioner.record(self._part)
        state.plane = self._bound.record()
        if self._part is not objective:
            state.improve(state.w, objective.value(state.w))

    def step(self, objective: Objective, state: State) -> bool:
        """Do one iteration: direction, search on the batch, pair on the same batch, then more rows if it is time."""
        assert isinstance(state, HybridState)
        part, old = self._part, self._point
        self._precondition(part, state)
        gradient = part.alpha * old.w + self._slope
        d = self._direction(part, gradient)
        new, skipped = self._search(part, gradient, d)
        if new is None and not self._curvature.empty:  # once more from the gradient alone
            self._curvature.clear()
            self._preconditioner, state.hessian_rows = Preconditioner(), 0
            d = self._direction(part, gradient)
            new, skipped = self._search(part, gradient, d)
        noisy = new is None or self._noisy(part, gradient, d, new)
        if new is not None:
            self._point, state.w = new, new.w
            self._slope = part.slope(new)
            self._curvature.add(new.w - old.w, part.alpha * new.w + self._slope - gradient)
        self._count(objective, part)
        if part is not objective and (noisy or self.growth == "paper"):
            self._grow(objective, state)
        proved = state.lower_bound
        self._prove(objective, state)
        better = state.lower_bound > proved or (new is not None and new.value < old.value)
        self._idle = 0 if better else self._idle + 1
        self._fill(state)
        state.history["skipped"].append(skipped)
        return part is not objective or (new is not None and self._idle < MOST_IDLE_STEPS)

    def _fill(self, state: HybridState) -> None:
        """Give rows of the history that no step has made, those a run begins with, a share of 0."""
        column = state.history["skipped"]
        column += [0.0] * (len(state.history["iteration"]) - len(column))

    def _direction(self, part: Objective, gradient: FloatArray) -> FloatArray:
        """Return -H g; without any curvature yet -g at the length that the second derivative along it gives."""
        if not self._curvature.empty:
            return self._curvature.direction(gradient)
        z_g, square = part.scores(gradient), kernels.vectors.dot(gradient, gradient)
        second_derivative = part.space.dot(part.risk.curvature(self._point.z) * z_g, z_g) + part.alpha * square
        return -gradient * (square / second_derivative if second_derivative > 0.0 else 1.0)

    def _search(self, part: Objective, gradient: FloatArray, d: FloatArray) -> tuple[Point | None, float]:
        """Return the point w + a d with enough decrease, None if there is none, and the share of rows skipped."""
        # One product at w + d, with the rows that may matter there. If a = 1 is too long, scores between are mixtures of those
        # at both ends; the point that is taken gets fresh ones, so that no score depends on what was skipped before.
        dot, point = kernels.vectors.dot, self._point
        slope, length, a = dot(gradient, d), math.sqrt(dot(d, d)), 1.0
        if not slope < 0.0:
            return None, 0.0
        target = point.w + d
        needed = self._skipping.needed(target, length)
        if needed is not None and needed.all():
            needed = None
        skipped = 0.0 if needed is None else 1.0 - float(needed.mean())
        far = _scores(part, target, needed, point.z)
        new = part.at(target, far)
        if not _enough(new.value, point.value, slope):
            near = point.z
            if self._exact is not None:  # rows that were skipped at w and are needed between
                near = _scores(part, point.w, ~self._exact if needed is None else needed & ~self._exact, near)
            along = far - near
            for _ in range(MOST_TRIALS):
                second_derivative = new.value - point.value - a * slope
                a *= (
                    min(0.5, max(0.1, -0.5 * a * slope / second_derivative))
                    if math.isfinite(second_derivative) and second_derivative > 0.0
                    else 0.1
                )
                new = part.at(point.w + a * d, part.space.combine(1.0, near, a, along))
                if _enough(new.value, point.value, a * slope):
                    break
            else:
                return None, skipped
            new = part.at(new.w, _scores(part, new.w, needed, point.z))
        self._exact = needed
        self._skipping.moved(a * length)
        self._skipping.update(needed, new.w, self._batches.margins(new.z))
        return new, skipped

    def _noisy(self, part: Objective, gradient: FloatArray, d: FloatArray, new: Point) -> bool:
        """Tell whether the decrease -<g, d> that a batch promised is about what noise would promise (eq. batch-noise)."""
        # Assume that the covariance of the rows' slopes is about c H. Then noise in g makes -<g, d> = g'H^-1 g about p
        # c / m. Its variance along d is c / m times -<g, d>, which is sum_i (u_i z_d,i)^2 and needs scores only.
        # Skipped rows have u_i = 0.
        promised = -kernels.vectors.dot(gradient, d)
        terms = self._point.risk.grad * (new.z - self._point.z)  # up to the length of the step, which drops out
        total, square = float(terms.sum()), kernels.vectors.dot(d, d)
        if not square > 0.0:  # a direction whose square is lost in rounding promises nothing
            return True
        noise = float(terms @ terms) - total * total / len(terms)
        decrease = kernels.vectors.dot(new.w - self._point.w, d) / square * promised
        return not decrease * decrease > 2.0 * part.operator.shape[1] * noise

    def _grow(self, objective: Objective, state: HybridState) -> None:
        """Add rows to the batch, with their scores and their part of the gradient (eq. batch-slope)."""
        m = state.rows
        size = next(size for size in self._sizes if size > m)
        old, new = self._part, self._batches.of(size, self._penalty)
        known, fresh = self._batches.places(0, m, size), self._batches.places(m, size, size)
        z = np.empty(size)
        z[known], z[fresh] = self._point.z, new.operator.matvec_rows(state.w, fresh)
        if self._exact is not None:
            exact = np.ones(size, dtype=bool)
            exact[known] = self._exact
            self._exact = exact
        self._part, self._counted, self._point = new, 0.0, new.at(state.w, z)
        share = old.risk.labels.total / new.risk.labels.total
        self._slope = share * self._slope + new.operator.rmatvec_rows(self._point.risk.grad[fresh], fresh)
        self._skipping.grown(known, self._batches.norms(size))
        computed = np.zeros(size, dtype=bool)
        computed[fresh] = True
        self._skipping.update(computed, state.w, self._batches.margins(z))
        self._count(objective, new)
        state.rows = size

    def _precondition(self, part: Objective, state: HybridState) -> None:
        """Make the Hessian of the batch if there is none, the batch has grown much, or it has served for as long as it cost."""
        # Iterations are counted, not passes: those depend on the rows skipped, which must not change an iterate.
        if not (self.precondition and has_factor(part)):
            return
        rows = part.operator.shape[0]
        if rows >= BATCH_GROWTH * state.hessian_rows or 2.0 * state.hessian_age >= self._preconditioner.interval(part):
            self._preconditioner.due = 0.0
            self._preconditioner.renew(part, self._curvature, lambda: part.risk.hessian(self._point.z))
            state.hessian_rows, state.hessian_age = rows, 0
        state.hessian_age += 1

    def _prove(self, objective: Objective, state: HybridState) -> None:
        """Update bound and best point by a point on all rows. A batch proves nothing."""
        if self._part is not objective:
            return
        point, slope = self._point, self._slope
        allowance = objective.rounding_allowance(point, slope)
        state.lower_bound = max(state.lower_bound, self._bound.add(slope, point.risk.plane, allowance))
        state.improve(point.w, point.objective)

    def _count(self, objective: Objective, part: Objective) -> None:
        """Count the passes of a batch so far as the fractions that they are of passes over all rows."""
        if part is not objective:
            operator = part.operator
            objective.operator._count(
                (operator.n_passes - self._counted) * operator.shape[0] / objective.operator.shape[0]
            )
            self._counted = operator.n_passes


def _scores(part: Objective, w: FloatArray, needed: AnyArray | None, z: Scores) -> Scores:
    """Return Xw on the rows that are needed; on the others scores of an earlier point, which lie beyond the margin too."""
    if needed is None:
        return part.scores(w)
    found, rows = z.copy(), np.flatnonzero(needed)
    found[rows] = part.operator.matvec_rows(w, rows)
    return found


def _enough(value: float, before: float, slope: float) -> bool:
    """Tell whether J has fallen by Armijo's share of what the slope promised, up to rounding."""
    return value <= before + ARMIJO_DECREASE * slope + ALLOWED_RISE * abs(before)


class Batches:
    """Batches of the rows of an objective, of given sizes; that of all rows is the objective itself, in its own order.

    What a batch has more than the one before it is a random sample of the rows left, in the order of memory: reading rows at
    random takes ten times as long as one after the other. Rows of weight 0 come last. `norms` asks for the length of every
    row, one pass.
    """

    def __init__(self, objective: Objective, sizes: Sequence[int], seed: int, norms: bool):
        labels = objective.risk.labels
        self.objective = objective
        self.n = len(labels.sign)
        counted = np.arange(self.n) if labels.weight is None else np.flatnonzero(labels.weight > 0.0)
        edges = [min(m, len(counted)) for m in sizes if m < self.n]
        drawn = counted[np.random.default_rng(seed).choice(len(counted), max(edges, default=0), replace=False)]
        left = np.ones(self.n, dtype=bool)
        left[drawn] = False
        parts = [np.sort(drawn[a:b]) for a, b in zip([0, *edges], edges, strict=False)]
        self.order = np.concatenate([*parts, np.flatnonzero(left)])
        self._sign = labels.sign[self.order]
        self._weight = None if labels.weight is None else labels.weight[self.order]
        self._norms = objective.operator.row_norms() if norms else np.zeros(self.n)

    def of(self, m: int, penalty: float = 0.0) -> Objective:
        """Return the objective of the first m rows of the permutation, its alpha at least penalty / m."""
        if m == self.n:
            return self.objective
        objective = self.objective
        risk = copy.copy(objective.risk)
        risk.labels = objective.space.labels(self._sign[:m], None if self._weight is None else self._weight[:m])
        return Objective(objective.operator.on_rows(self.order[:m]), risk, max(objective.alpha, penalty / m))

    def places(self, first: int, last: int, m: int) -> AnyArray:
        """Return where the rows first..last of the permutation stand in the batch of m rows."""
        return np.arange(first, last) if m < self.n else self.order[first:last]

    def norms(self, m: int) -> FloatArray:
        """Return the lengths of the rows of the batch."""
        return self._norms[self.order[:m]] if m < self.n else self._norms

    def margins(self, z: FloatArray) -> FloatArray:
        """Return y_i z_i of the rows of a batch."""
        sign = self._sign[: len(z)] if len(z) < self.n else self.objective.risk.labels.sign
        return np.asarray(sign * z)
