"""SPADE and STAMP row by row: dual projections, and the kernels against a literal version without any lazy update."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from cases import for_each
from scoreline.kernels import point_updates
from scoreline.kernels.dual_regions import GMEAN, HMEAN, MIN, QMEAN, project_dual
from scoreline.kernels.point_updates import ERROR, FBETA, JACCARD
from scoreline.kernels.shuffle import shuffled
from scoreline.operators import as_operator
from scoreline.solvers.common.row_state import RowState
from tiers import tiered

DUALS = {"min": MIN, "hmean": HMEAN, "qmean": QMEAN, "gmean": GMEAN}
CAPS = (0.6, 2.0, 50.0)
REGIONS = [("min", 0.0), ("hmean", 0.0), ("qmean", 0.0), *(("gmean", cap) for cap in CAPS)]
every_region = for_each(("name", "cap"), REGIONS)


# ---------------------------------------------------------------------------------------------- dual projections


def outside(name, cap, a, b):
    """Return by how much (a, b) misses the region, 0 inside."""
    if name == "min":
        return max(abs(a + b - 1.0), -a, -b)
    if name == "qmean":
        return max(np.hypot(a, b) - np.sqrt(0.5), -a, -b)
    if name == "hmean":
        return max(-a, -b, np.sqrt(2.0) - np.sqrt(max(a, 0.0)) - np.sqrt(max(b, 0.0)), np.hypot(a, b) - 2.0)
    return max(0.25 - a * b, a - cap, b - cap, -a)


def boundary(name, cap):
    """Return a few thousand points of the region: its edges and corners."""
    s = np.linspace(0.0, 1.0, 2001)
    angle = 0.5 * np.pi * s
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    if name == "min":
        return np.column_stack([s, 1.0 - s])
    if name == "qmean":
        zero = np.zeros_like(s)
        arc = circle * np.sqrt(0.5)
        return np.vstack([arc, 0.5 * arc, np.column_stack([s, zero])[s <= 0.7], np.column_stack([zero, s])[s <= 0.7]])
    if name == "hmean":
        return np.vstack([np.column_stack([2.0 * s**2, 2.0 * (1.0 - s) ** 2]), 2.0 * circle])
    x = np.geomspace(0.25 / cap, cap, 2001)
    edge = np.full_like(x, cap)
    return np.vstack([np.column_stack(p) for p in ((x, 0.25 / x), (x, edge), (edge, x))])


def points(name, cap):
    """Return hundreds of points: near, negative, far away, on the boundary, just off it, and at odd places."""
    rng = np.random.default_rng(11)
    on = boundary(name, cap)[::37]
    odd = [
        (0.0, 0.0),
        (2.0, 2.0),
        (0.5, 0.5),
        (-1.0, 2.0),
        (2.0, -1.0),
        (2.0, 0.0),
        (0.0, 2.0),
        (1e6, 1e6),
        (-1e6, -1e6),
    ]
    parts = [rng.normal(0.5, 1.5, (300, 2)), rng.normal(0.0, 100.0, (60, 2)), on]
    parts += [on + rng.normal(0.0, 1e-3, on.shape), rng.uniform(-3.0, 0.0, (60, 2)), np.array(odd)]
    return np.vstack(parts)


@every_region
def test_projections_land_in_the_region_and_stay_there(name, cap):
    for a, b in points(name, cap):
        x, y = project_dual(DUALS[name], a, b, cap)
        # Roundings of sums of size 1; at a corner of the H-mean the root of a rounding of 1e-17 is 3e-9.
        assert outside(name, cap, x, y) <= (1e-8 if name == "hmean" else 1e-13 * max(1.0, cap))
        again = project_dual(DUALS[name], x, y, cap)
        assert np.hypot(again[0] - x, again[1] - y) <= 1e-12 * max(1.0, cap)  # a point that rounding put outside


@every_region
def test_projections_are_the_nearest_points(name, cap):
    """The regions are convex: p is the nearest point exactly if no point q of the region has <x - p, q - p> > 0."""
    grid = boundary(name, cap)
    assert max(outside(name, cap, *q) for q in grid) <= 1e-12 * max(1.0, cap)
    for point in points(name, cap):
        p = np.array(project_dual(DUALS[name], *point, cap))
        away = np.linalg.norm(point - p)
        # An error d of p shows as |x - p| d + d |q - p|; d is a rounding, 1e-10 leaves room for the roots.
        assert ((grid - p) @ (point - p)).max() <= 1e-10 * (away + 1.0) * max(1.0, cap)
        assert away <= np.linalg.norm(grid - point, axis=1).min() + 1e-12 * (away + 1.0)


@for_each(("name", "cap"), REGIONS[1:])  # a segment has no inside
def test_points_inside_are_not_moved(name, cap):
    rng = np.random.default_rng(3)
    inside = [q for q in rng.uniform(0.0, 2.0, (400, 2)) if outside(name, cap, *q) <= -1e-6]
    assert inside
    for a, b in inside:
        assert project_dual(DUALS[name], a, b, cap) == (a, b)


@for_each(
    ("name", "cap", "point", "expected"),
    [
        ("min", 0.0, (1.1588, 2.0985), (0.03015, 0.96985)),
        ("min", 0.0, (-0.7814, -0.5271), (0.37285, 0.62715)),
        ("min", 0.0, (2.7854, -0.1899), (1.0, 0.0)),
        ("qmean", 0.0, (1.0163, 1.2005), (0.4568791009080955, 0.5396864711602565)),
        ("qmean", 0.0, (-1.3355, 0.4158), (0.0, 0.4158)),
        ("qmean", 0.0, (-0.5551, 1.6001), (0.0, 0.7071067811865475)),
        ("hmean", 0.0, (1.2594, 2.7299), (0.837812600962339, 1.816058932322605)),
        ("hmean", 0.0, (-0.8595, 1.8582), (0.001724842391527634, 1.8842568078790654)),
        ("hmean", 0.0, (0.1631, -0.6333), (0.7517381853372984, 0.29941164046233265)),
        ("hmean", 0.0, (2.7802, -1.5813), (2.0, 0.0)),
        ("gmean", 1e6, (-0.4241, 1.5979), (0.15145034288948953, 1.6507060679447938)),
        ("gmean", 1e6, (-1.7755, 2.3422), (0.10320982226608472, 2.422250077666797)),
        ("gmean", 1e6, (-0.5124, -0.0639), (0.42023525886739704, 0.5949048651314767)),
        ("gmean", 1.5, (-1.6096, -1.3092), (0.4703639234507586, 0.5315033478033567)),
        ("gmean", 1.5, (2.3132, -0.0464), (1.5, 0.16666666666666666)),
        ("gmean", 1.5, (1.5591, 1.774), (1.5, 1.5)),
    ],
)
def test_projections_have_the_reference_values(name, cap, point, expected):
    assert project_dual(DUALS[name], *point, cap) == pytest.approx(expected, abs=1e-8)  # their own accuracy


# ------------------------------------------------------------------------------------------- the literal methods


class Literal:
    """w, the sum of iterates, the projection and the step rules as they are written, in dense vectors."""

    base = None  # scores that are added

    def __init__(self, X, constant, paper, radius, old=False):
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        self.A = np.hstack([X.astype(np.float64), np.full((len(X), 1), constant)])
        self.w, self.total = np.zeros(self.A.shape[1]), np.zeros(self.A.shape[1])
        self.paper, self.radius, self.old = paper, radius, old
        self.unit, self.reach, self.squares = np.ones(self.A.shape[1]), 1e-3, 0.0
        self.t, self.projections, self.longest, self.weights, self.horizon = 0.0, 0, 0.0, 0.0, (0.0, np.inf)

    def score(self, i):
        return self.A[i] @ self.w + (0.0 if self.base is None else self.base[i])

    def step(self, x, slope):
        """Move in features divided by the root mean square of their column, or with the paper in features as they are."""
        unit = self.unit
        gradient, u = slope * x / unit, self.w * unit
        if not gradient.any():
            return
        if self.paper:
            step = 1.0 / np.sqrt(self.t)
        else:
            self.squares += gradient @ gradient
            self.reach = max(self.reach, np.linalg.norm(u))
            after, until = self.horizon
            fade = 1.0 if np.isinf(until) or self.t <= after else (until - self.t) / (until - after)
            step = fade * self.reach / np.sqrt(self.squares)
        u = u + step * gradient
        self.longest = max(self.longest, np.linalg.norm(u / unit))
        if np.linalg.norm(u) > self.radius:
            u, self.projections = u * self.radius / np.linalg.norm(u), self.projections + 1
        self.w = u / unit

    def learn_units(self, weight):
        """Set the root mean square of the entries of each column that are not 0, over rows with these weights."""
        if not self.paper:
            s = np.ones(len(self.A)) if weight is None else weight
            counts, squares = s @ (self.A != 0.0), s @ self.A**2
            self.unit = np.sqrt(np.where(squares > 0.0, squares, 1.0) / np.where(squares > 0.0, counts, 1.0))

    def add(self, s):
        o = s if self.paper else s * self.t**3
        self.total, self.weights = self.total + o * self.w, self.weights + o

    def average(self):
        return self.total / self.weights


class LiteralSpade(Literal):
    def __init__(self, kind, *options, share=None, **more):
        super().__init__(*options, **more)
        self.kind, self.share, self.dual, self.weight_so_far = kind, share, np.array([0.5, 0.5]), np.zeros(2)

    def take(self, i, y, s):
        side = 0 if y > 0 else 1
        self.t += s
        self.weight_so_far[side] += s
        share = (self.weight_so_far[side] + 1.0) / (self.t + 2.0) if self.share is None else self.share[side]
        margin = y * self.score(i)
        if self.old:
            self.add(s)
        if margin < 1.0 and self.dual[side] > 0.0:
            self.step(self.A[i], s * self.dual[side] / share * y)
        if not self.old:
            self.add(s)
        lift = 1.0 / np.sqrt(self.t) if self.kind == GMEAN else 0.0
        change = np.ones(2) if self.kind == QMEAN else np.zeros(2)
        change[side] -= (min(1.0, margin) + lift) / share
        cap = 0.5 * np.sqrt((1.0 + lift) / lift) if self.kind == GMEAN else 0.0
        self.dual = np.array(project_dual(self.kind, *(self.dual + s / np.sqrt(self.t) * change), cap))


class LiteralStamp(Literal):
    def __init__(self, kind, beta, first, *options):
        super().__init__(*options)
        self.kind, self.beta2, self.length = kind, beta**2, first
        self.level, self.epochs, self.counts = 0.0, 0, dict.fromkeys(("tp", "fp", "fn", "tn"), 0.0)

    def take(self, i, y, s):
        self.t += s
        score = self.score(i)
        self.counts[("tp" if score > 0 else "fn") if y > 0 else ("fp" if score > 0 else "tn")] += s
        positive, negative = {
            FBETA: (1.0 + self.beta2 - self.level, self.level),
            JACCARD: (1.0, self.level),
            ERROR: (1.0, 1.0),
        }[self.kind]
        gain = positive if y > 0 else negative
        if y * score < 1.0 and gain > 0.0:
            self.step(self.A[i], s * gain * y)
        self.add(s)
        if sum(self.counts.values()) >= self.length:
            tp, fp, fn = (self.counts[name] for name in ("tp", "fp", "fn"))
            if self.kind == JACCARD:
                top, bottom = tp, tp + fp + fn
            else:
                top, bottom = (1.0 + self.beta2) * tp, (1.0 + self.beta2) * tp + self.beta2 * fn + fp
            self.level, self.epochs, self.length = top / bottom if bottom else 0.0, self.epochs + 1, 2 * self.length
            self.counts = dict.fromkeys(self.counts, 0.0)


def data(n=60, p=5, seed=0, zeros=0.4):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-1.0, 1.0, p) * (rng.random((n, p)) > zeros)
    y = np.where(X @ rng.standard_normal(p) + rng.standard_normal(n) > 0.7 * np.std(X), 1, -1)
    y[:2] = 1, -1
    return X, y


def with_long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def with_short_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


STORAGES = {
    "c": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "csr_int32": with_short_indices,
    "csr_int64": with_long_indices,
    "float32": lambda X: X.astype(np.float32),
}
STAMPS = {
    "f1": (FBETA, 1.0),
    "f2": (FBETA, 2.0),
    "f_half": (FBETA, 0.5),
    "jaccard": (JACCARD, 1.0),
    "gower_legendre": (ERROR, 1.0),
}
START = {FBETA: lambda beta: (1.0 + beta**2, 0.0), JACCARD: lambda _: (1.0, 0.0), ERROR: lambda _: (1.0, 1.0)}
SMALL, LARGE = 2e-3, 1e3  # radius: many steps are projected, or none


def orders(n, passes, seed=5):
    rng = np.random.default_rng(seed)
    return [rng.permutation(n).astype(np.uint64) for _ in range(passes)]


def run_both(literal, X, y, weight, constant, start=((0.5, 0.5), np.inf), beta=1.0, passes=4):
    """Take in the same rows by both, and return the kernel's state, and how often it wrote out w."""
    paper, radius = literal.paper, literal.radius
    state = RowState.new(X.shape[1], *start, paper=paper)
    rows = float(len(y)) if weight is None else weight.sum()
    literal.horizon = rows, passes * rows
    state.fade(*literal.horizon)
    literal.learn_units(weight)
    state.learn_units(as_operator(X), weight, constant)
    arrays = as_operator(X).row_arrays(0, X.shape[0])
    sign, rewritten = y.astype(np.int8), 0
    for order in orders(len(y), passes):
        for chunk in np.array_split(order, 4):
            scale, projected = state.numbers[point_updates.SCALE], literal.projections
            own = (state.v, state.units, state.behind, state.numbers)
            kernel_options = literal.kind, beta**2, paper, radius
            point_updates.process_rows(*arrays[:5], chunk, sign, weight, literal.base, constant, *kernel_options, *own)
            for i in chunk.astype(int):
                s = 1.0 if weight is None else float(weight[i])
                if s > 0.0:
                    literal.take(i, float(y[i]), s)
            now = state.numbers[point_updates.SCALE]
            rewritten += literal.projections > projected and now >= scale  # a projection lowers it
            assert now >= point_updates.TINY_SCALE
        close_to(literal, state)
    return state, rewritten


def close_to(literal, state):
    numbers = state.numbers
    # Lengths and sums are kept up to date instead of computed again: a rounding of 1e-16 for each of some hundred updates,
    # for which 1e-9 has room. In the averages, steps (before the projection) are divided by a scale of at least TINY_SCALE.
    size = np.abs(literal.w).max() + 1e-3
    lost = np.finfo(float).eps * literal.longest / point_updates.TINY_SCALE
    np.testing.assert_allclose(numbers[point_updates.SCALE] * state.v, literal.w, rtol=1e-9, atol=1e-9 * size)
    np.testing.assert_allclose(state.average(), literal.average(), rtol=1e-9, atol=1e-9 * size + lost)
    u = literal.w * literal.unit
    assert numbers[point_updates.NORM2] == pytest.approx(u @ u, rel=1e-8, abs=1e-9 * (u @ u + 1e-3))
    assert numbers[point_updates.TIME] == pytest.approx(literal.t, rel=1e-14)
    if not literal.paper:
        assert numbers[point_updates.REACH] == pytest.approx(literal.reach, rel=1e-8)
    np.testing.assert_allclose(state.units, literal.unit**-2, rtol=1e-13)  # sums of some dozen squares


@for_each("solver", ["spade", "stamp"])
def test_base_scores_are_added_to_those_of_the_rows(solver):
    X, y = data()
    literal = (
        LiteralSpade(MIN, X, 1.0, False, LARGE)
        if solver == "spade"
        else LiteralStamp(FBETA, 1.0, 20.0, X, 1.0, False, LARGE)
    )
    literal.base = np.random.default_rng(6).standard_normal(len(y))
    start = ((0.5, 0.5), np.inf) if solver == "spade" else (START[FBETA](1.0), 20.0)
    run_both(literal, X, y, None, 1.0, start)  # which compares


def weights_for(kind, n):
    rng = np.random.default_rng(9)
    return None if kind == "none" else rng.integers(0, 4, n).astype(np.float64)


# Numba compiles every combination of types again: weights are varied where the types are the plainest.
CASES = [(s, "some") for s in STORAGES] + [("c", "none"), ("csr_int32", "none")]


@for_each(
    ("case", "name", "paper", "radius"), tiered(itertools.product(CASES, DUALS, (True, False), (SMALL, 1.0, LARGE)))
)
def test_spade_follows_its_literal_version(case, name, paper, radius):
    storage, weighted = case
    X, y = data()
    X = STORAGES[storage](X)
    for constant in (0.0, 0.7) if storage in ("c", "csr_int32") else (0.7,):
        literal = LiteralSpade(DUALS[name], X, constant, paper, radius)
        weight = weights_for(weighted, len(y))
        state, _ = run_both(literal, X, y, weight, constant)
        dual = state.numbers[[point_updates.ALPHA, point_updates.BETA]]
        np.testing.assert_allclose(dual, literal.dual, rtol=1e-9, atol=1e-9)  # as for w
        assert literal.projections > 0 or radius != SMALL
        assert literal.projections == 0 or radius != LARGE
        assert constant != 0.0 or state.v[-1] == 0.0


@for_each(
    ("case", "name", "paper", "radius"), tiered(itertools.product(CASES, STAMPS, (True, False), (SMALL, 1.0, LARGE)))
)
def test_stamp_follows_its_literal_version(case, name, paper, radius):
    storage, weighted = case
    X, y = data(seed=1)
    X = STORAGES[storage](X)
    kind, beta = STAMPS[name]
    for constant in (0.0, 0.7) if storage in ("c", "csr_int32") else (0.7,):
        literal = LiteralStamp(kind, beta, 7, X, constant, paper, radius)
        weight = weights_for(weighted, len(y))
        state, _ = run_both(literal, X, y, weight, constant, (START[kind](beta), 7.0), beta)
        assert state.numbers[point_updates.EPOCH] == literal.length == 7 * 2**literal.epochs
        assert literal.epochs >= 4
        assert state.numbers[point_updates.LEVEL] == pytest.approx(literal.level, rel=1e-14)
        tp, fp, fn, tn = (literal.counts[c] for c in ("tp", "fp", "fn", "tn"))
        places = [getattr(point_updates, c) for c in ("TP", "FP", "POSITIVE", "NEGATIVE")]
        np.testing.assert_allclose(state.numbers[places], (tp, fp, tp + fn, fp + tn), rtol=1e-14)


@for_each("radius", [1e-8, 1e-4, SMALL])
@for_each("paper", [True, False])
def test_writing_out_the_weights_again_keeps_iterates_and_their_mean(paper, radius):
    """Steps far longer than the ball shrink the scale below TINY_SCALE again and again."""
    X, y = data(seed=2)
    literal = LiteralSpade(MIN, X, 1.0, paper, radius)
    _, rewritten = run_both(literal, X, y, None, 1.0, passes=20 if radius == SMALL else 4)
    assert literal.projections > 50
    if paper:
        assert rewritten > 0, "this test is about scales that were written out"


TRACES = [
    (
        "min",
        (
            *([-0.7917, -0.8946], [-0.6181, -0.982], [0.9803, 0.9232], [1.2723, -0.0253], [0.2744, -0.5784]),
            *([-1.151, 0.447], [0.2684, -1.107], [0.5853, -1.7417], [-0.179, -0.6303], [-0.5293, -1.0835]),
        ),
        (0.34451929965503625, -0.1291409917303769),
        (0.1729264013337044, 0.8270735986662956),
    ),
    (
        "qmean",
        (
            *([0.9525, 0.5659], [1.1834, 0.1305], [-1.2981, -0.379], [-1.1915, 0.4468], [1.1987, 0.3161]),
            *([-0.6125, -0.3833], [0.1905, -1.4604], [0.1346, 0.1835], [-0.5602, -0.434], [0.1538, -0.8383]),
        ),
        (0.12870091050096572, 0.8188940046424611),
        (0.6382547810440666, 0.30435314106213923),
    ),
    (
        "hmean",
        (
            *([-0.8405, 0.76], [0.2034, 1.6587], [-1.008, -1.801], [0.9188, 0.9341], [-0.7622, -1.4929]),
            *([-0.0722, -1.7779], [-0.369, -2.2109], [-0.2679, -2.1514], [-0.2688, 1.4845], [-0.3007, 0.7352]),
        ),
        (-0.09071248600639381, 1.4310850541714577),
        (1.9652387009417842, 0.3712638526986547),
    ),
]


@for_each(("name", "X", "mean", "dual"), TRACES)
def test_the_literal_version_has_the_reference_trace(name, X, mean, dual):
    """The trace knows the share of positives and averages iterates before their update; the rest is what the kernel does."""
    y = np.array([1, -1, -1, 1, -1, -1, 1, -1, -1, -1])
    literal = LiteralSpade(DUALS[name], np.array(X), 0.0, True, 3.0, share=(0.3, 0.7), old=True)
    for t in range(40):
        literal.take(t % 10, float(y[t % 10]), 1.0)
    assert literal.average()[:2] == pytest.approx(mean, abs=1e-7)  # their own accuracy
    assert literal.dual == pytest.approx(dual, abs=1e-7)


def test_rows_of_zeros_change_nothing_but_the_counts():
    X, y = np.zeros((6, 3)), np.array([1, -1, 1, -1, -1, -1])
    for X_stored in (X, sp.csr_array(X)):
        state = RowState.new(3, (0.5, 0.5))
        arrays = as_operator(X_stored).row_arrays(0, 6)
        own = (state.v, state.units, state.behind, state.numbers)
        rows = np.arange(6, dtype=np.uint64)
        point_updates.process_rows(*arrays[:5], rows, y.astype(np.int8), None, None, 0.0, MIN, 1.0, False, 1.0, *own)
        assert not state.v.any()
        assert not state.average().any()
        assert state.numbers[point_updates.TIME] == 6.0


def stamp_row(sign, kind, beta, counts, epoch):
    """Take in one row, x = 1, from w = 0 with the counts TP, FN, FP, TN of the epoch so far, and return the numbers."""
    state = RowState.new(1, START[kind](beta), epoch, paper=True)
    tp, fn, fp, tn = counts
    places = [getattr(point_updates, name) for name in ("TP", "FP", "POSITIVE", "NEGATIVE")]
    state.numbers[places] = tp, fp, tp + fn, fp + tn
    arrays, rows = as_operator(np.ones((1, 1))).row_arrays(0, 1), np.zeros(1, dtype=np.uint64)
    own = (state.v, state.units, state.behind, state.numbers)
    label = np.array([sign], dtype=np.int8)
    point_updates.process_rows(*arrays[:5], rows, label, None, None, 0.0, kind, beta**2, True, 1e3, *own)
    return state.numbers


@for_each(
    ("kind", "beta", "counts", "level", "ratio"),
    [
        (FBETA, 1.0, (4, 9, 3, 9), 0.4, 0.25),
        (FBETA, 2.0, (4, 6, 6, 9), 0.4, 0.08695652173913045),
        (FBETA, 2.0, (33, 33, 38, 34), 0.4925373134328358, None),
        (JACCARD, 1.0, (4, 3, 3, 9), 0.4, 0.4),
        (JACCARD, 1.0, (33, 23, 1, 29), 0.5789473684210527, None),
        (ERROR, 1.0, (4, 9, 3, 9), None, 1.0),
    ],
)
def test_the_level_is_the_measure_of_the_epoch_and_sets_the_weights(kind, beta, counts, level, ratio):
    before = np.array(counts, dtype=np.float64) - (0, 0, 0, 1)  # the row taken in is a true negative: its score is 0
    rows = float(sum(counts))
    numbers = stamp_row(-1, kind, beta, before, rows)
    if level is not None:
        assert numbers[point_updates.LEVEL] == pytest.approx(level, abs=1e-10)  # the accuracy of the reference values
    if ratio is not None:
        assert numbers[point_updates.BETA] / numbers[point_updates.ALPHA] == pytest.approx(ratio, abs=1e-10)
    assert numbers[point_updates.EPOCH] == 2.0 * rows
    places = [getattr(point_updates, name) for name in ("TP", "FP", "POSITIVE", "NEGATIVE")]
    assert not numbers[places].any()
    assert stamp_row(-1, kind, beta, before, rows + 1.0)[point_updates.EPOCH] == rows + 1.0
    assert stamp_row(-1, kind, beta, before, rows + 1.0)[point_updates.BETA] == START[kind](beta)[1]


@for_each("count", [0, 1, 2, 7, 1000])
def test_shuffled_orders_are_permutations_that_depend_on_the_seed(count):
    order = shuffled(np.uint64(5), count, np.uint64(1))
    assert order.dtype == np.uint64
    np.testing.assert_array_equal(np.sort(order), np.arange(5, 5 + count))
    np.testing.assert_array_equal(order, shuffled(np.uint64(5), count, np.uint64(1)))
    assert count < 7 or not np.array_equal(order, shuffled(np.uint64(5), count, np.uint64(2)))


def test_all_orders_of_four_are_equally_likely():
    orders = np.array([shuffled(np.uint64(0), 4, np.uint64(seed)) for seed in range(24_000)]).astype(int) @ [
        64,
        16,
        4,
        1,
    ]
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 24
    assert (
        (counts - 1000.0) ** 2 / 1000.0
    ).sum() < 58.6  # chi-squared with 23 degrees of freedom: 1 in 20,000 lies above


def test_units_of_a_stream_follow_its_rows_and_so_does_the_length_of_w():
    X, y = data(seed=3)
    state, rows = RowState.new(X.shape[1], (0.5, 0.5)), np.arange(len(y), dtype=np.uint64)

    def own():  # of the moment: `units` is replaced
        return state.v, state.units, state.behind, state.numbers

    for block in (X, 10.0 * X):
        operator = as_operator(block)
        state.learn_units(operator, None, 1.0)
        w = state.numbers[point_updates.SCALE] * state.v
        assert state.numbers[point_updates.NORM2] == pytest.approx(np.sum(w**2 / state.units), rel=1e-12)
        arrays = operator.row_arrays(0, len(y))
        point_updates.process_rows(*arrays[:5], rows, y.astype(np.int8), None, None, 1.0, MIN, 1.0, False, 1e3, *own())
    both = np.vstack([X, 10.0 * X])
    mean_square = np.sum(both**2, axis=0) / np.count_nonzero(both, axis=0)
    np.testing.assert_allclose(state.units, np.append(1.0 / mean_square, 1.0), rtol=1e-13)  # sums of some dozen squares
