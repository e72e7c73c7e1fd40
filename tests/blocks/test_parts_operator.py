"""X in parts on a cluster, and pieces on top of each other: the same matrix as in one piece."""

import functools
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from block_layouts import layout_of

from cases import for_each
from scoreline.distributed import BlockVector, Ref
from scoreline.distributed.cluster import InlineCluster
from scoreline.distributed.parts_operator import PartsOperator
from scoreline.operators import InterceptOperator, ScaledOperator, as_operator
from scoreline.operators.mapped import MappedCsr, MappedDense
from scoreline.operators.stacked import StackedOperator
from scoreline.operators.wrappers import scaled
from scoreline.testing import check_operator
from tiers import tiered

N, P = 53, 9
SPLITS = {
    "one part": [((0, N),)],
    "uneven": [((0, 1),), ((1, 30),), ((30, 32),), ((32, N),)],
    "out of order": [((40, N), (3, 9)), ((9, 40),), ((0, 1), (1, 3))],
    "many": [((k, min(k + 3, N)),) for k in range(0, N, 3)],
}


def rows_of(dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((N, P)) < 0.6, rng.standard_normal((N, P)), 0.0).astype(dtype)


def mapped_dense(X, folder):
    np.save(folder / "X.npy", X)
    return MappedDense(folder)


def mapped_csr(X, folder):
    X = sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))
    return MappedCsr(folder, X.shape)


as_piece = functools.partial(as_operator, check_finite=False)  # as blocks of Dask become pieces: `inspect` looks later

STORAGES = {
    "dense": lambda X, folder: as_piece(X),
    "columns": lambda X, folder: as_piece(np.asfortranarray(X)),
    "float32": lambda X, folder: as_piece(X.astype(np.float32)),
    "csr": lambda X, folder: as_piece(sp.csr_array(X)),
    "csr32": lambda X, folder: as_piece(sp.csr_array(X.astype(np.float32))),
    "mapped": mapped_dense,
    "mapped csr": mapped_csr,
}


class Folders:
    """A new folder for every piece."""

    def __init__(self, path):
        self.path, self.count = path, 0

    def __call__(self):
        self.count += 1
        folder = self.path / str(self.count)
        folder.mkdir()
        return folder


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path)


def in_parts(X, spans, make):
    """Return the operator; a part with several spans is stacked of pieces, as blocks of Dask are."""
    layout = layout_of(spans)
    refs = []
    for group, placement in zip(layout.spans, layout.placements, strict=True):
        pieces = [make(X[a:b]) for a, b in group]
        part = pieces[0] if len(pieces) == 1 else StackedOperator(pieces)
        refs.append(Ref(layout.cluster.submit(lambda part=part: part, placement=placement)))
    return PartsOperator(layout, refs)


def stacked(X, spans, make):
    edges = sorted(a for group in spans for a, _ in group)
    return StackedOperator([make(X[a:b]) for a, b in zip(edges, [*edges[1:], len(X)], strict=True)])


KINDS = {"parts": in_parts, "stacked": stacked}


def made(kind, X, split, storage, folders):
    def make(rows):
        return STORAGES[storage](rows, folders() if "mapped" in storage else None)

    return KINDS[kind](X, SPLITS[split], make)


@for_each(["kind", "storage", "split"], tiered(product(KINDS, STORAGES, SPLITS)))
def test_contract(kind, storage, split, folders):
    X = rows_of(np.float32 if "32" in storage else np.float64)
    operator = made(kind, X, split, storage, folders)
    assert operator.scores == ("blocks" if kind == "parts" else "host")
    assert operator.capabilities == {"row_blocks", "statistics"}
    check_operator(operator, X.astype(np.float64))
    assert operator.inspect() is None
    np.testing.assert_allclose(operator.largest, np.abs(X).max(axis=0), rtol=0)
    check_operator(operator, X.astype(np.float64), seed=1)  # allowances may rest on `largest` now


SCALE = np.random.default_rng(5).uniform(0.5, 2.0, P)
SCALE[3] = 0.0
CENTER = np.random.default_rng(6).standard_normal(P)
WRAPPERS = {
    "intercept": (lambda o: InterceptOperator(o, 0.1), lambda A: np.hstack([A, np.full((N, 1), 0.1)])),
    "scaled": (lambda o: ScaledOperator(o, SCALE), lambda A: A * SCALE),
    "centred": (lambda o: ScaledOperator(o, SCALE, CENTER), lambda A: (A - CENTER) * SCALE),
    "maxabs": (lambda o: scaled(o, "maxabs"), lambda A: A / np.abs(A).max(axis=0)),
    "standard": (lambda o: scaled(o, "standard"), lambda A: (A - A.mean(axis=0)) / A.std(axis=0)),
    "intercept of maxabs": (
        lambda o: InterceptOperator(scaled(o, "maxabs"), 2.0),
        lambda A: np.hstack([A / np.abs(A).max(axis=0), np.full((N, 1), 2.0)]),
    ),
    "intercept of standard": (
        lambda o: InterceptOperator(scaled(o, "standard"), 2.0),
        lambda A: np.hstack([(A - A.mean(axis=0)) / A.std(axis=0), np.full((N, 1), 2.0)]),
    ),
}


@for_each(
    ["name", "kind", "storage", "split"],
    tiered(product(WRAPPERS, KINDS, ["dense", "csr", "float32"], ["uneven", "out of order", "many"])),
)
def test_wrappers_keep_the_contract(name, kind, storage, split, folders):
    X = rows_of(np.float32 if "32" in storage else np.float64)
    wrap, apply = WRAPPERS[name]
    operator = wrap(made(kind, X, split, storage, folders))
    # Mean and deviation are sums themselves, of 53 terms, and columns are centred by them: a few roundings more.
    check_operator(operator, apply(X.astype(np.float64)), rtol=1e-12 if "standard" not in name else 4e-12)
    before, inner = operator.n_passes, operator.inner.n_passes
    operator.gram(np.ones(N))
    assert operator.n_passes - before == operator.inner.n_passes - inner > 0.0


def far(dtype=np.float64):
    """Columns of mean 1e6 and deviation 1, one far below 0 and one near it."""
    X = 1e6 + np.random.default_rng(2).standard_normal((N, P))
    X[:, 1] -= 3e6
    X[:, 2] -= 1e6
    return X.astype(dtype)


@for_each(
    ["split", "kind", "storage", "intercept"],
    tiered(product(["uneven", "out of order", "many"], KINDS, ["dense", "csr", "mapped"], [False, True])),
)
def test_standard_scaling_of_columns_far_from_zero(split, kind, storage, intercept, folders):
    """Squares are taken after centring, where the rows are: a difference of squares of 1e6 would leave four digits.

    Mean and deviation are compared with those of longdouble; both keep what X has, 1e6 * 2^-53 = 1e-10 of a deviation.
    """
    X = far()
    operator = scaled(made(kind, X, split, storage, folders), "standard")
    exact = X.astype(np.longdouble)
    mean, deviation = exact.mean(axis=0), exact.std(axis=0)
    np.testing.assert_allclose(operator.center, mean.astype(float), rtol=4e-16)
    np.testing.assert_allclose(operator.scale, (1.0 / deviation).astype(float), rtol=1e-9)
    # The centre and scale that the operator has: what is compared is the rounding of the products alone.
    dense = ((exact - operator.center) * operator.scale).astype(float)
    if intercept:
        operator, dense = InterceptOperator(operator, 0.5), np.hstack([dense, np.full((N, 1), 0.5)])
    p = dense.shape[1]
    rng = np.random.default_rng(3)
    w, u, weight = rng.standard_normal(p), rng.standard_normal(N), rng.integers(0, 3, N).astype(float)
    root = rng.standard_normal((p, p))
    # Products are of X itself: roundings of 3e6 in each of p or n terms. Second-order sums are of centred rows.
    product = 1e-14 * 3e6
    np.testing.assert_allclose(np.asarray(operator.matvec(w)), dense @ w, rtol=0, atol=product * np.abs(w).sum())
    np.testing.assert_allclose(operator.rmatvec(u), dense.T @ u, rtol=0, atol=product * np.abs(u).sum())
    # With an intercept the border of the matrix is a product again.
    second = product if intercept else 1e-12
    size = np.abs(dense).max()
    gram = (dense.T * weight) @ dense
    np.testing.assert_allclose(operator.gram(weight), gram, rtol=0, atol=second * size**2 * weight.sum())
    np.testing.assert_allclose(
        operator.square_rmatvec(weight), (dense**2).T @ weight, rtol=0, atol=1e-12 * size**2 * weight.sum()
    )
    matrix = root @ root.T
    expected = np.einsum("ij,jk,ik->i", dense, matrix, dense)
    np.testing.assert_allclose(
        np.asarray(operator.quadratics(matrix)), expected, rtol=0, atol=second * np.abs(matrix).sum() * size**2
    )
    diagonal = (dense**2).T @ weight + (dense**2).max() + 1.0
    own = (dense**2 / (diagonal - weight[:, None] * dense**2)).sum(axis=1)
    np.testing.assert_allclose(np.asarray(operator.diagonal_leverages(diagonal, weight)), own, rtol=1e-12)


@for_each(["far_away", "kind", "split"], tiered(product([False, True], KINDS, SPLITS)))
def test_moments_and_statistics_are_those_of_one_matrix(far_away, kind, split, folders):
    """Parts are merged as Chan, Golub and LeVeque do: nothing is lost far from 0, and 18 parts make a tree."""
    X = far() if far_away else rows_of()
    y = np.where(np.random.default_rng(3).random(N) < 0.3, 1, -1).astype(np.int8)
    y[:9] = 1  # parts without a class
    weights = np.random.default_rng(4).integers(0, 3, N).astype(float)
    one, operator = as_operator(X), made(kind, X, split, "dense", folders)
    for weight in (None, weights):
        a, b = one.class_moments(y, weight), operator.class_moments(y, weight)
        for side in ("positive", "negative"):
            rows, s = (y > 0) == (side == "positive"), np.ones(N) if weight is None else weight
            here, there = getattr(a, side), getattr(b, side)
            assert there.weight == here.weight == s[rows].sum()
            np.testing.assert_allclose(there.mean, here.mean, rtol=1e-14, atol=1e-15)
            # Against the definition in longdouble; distances from the mean carry the roundings of X's magnitude.
            exact = X[rows].astype(np.longdouble)
            distance = exact - (s[rows] @ exact) / s[rows].sum()
            scatter = ((distance.T * s[rows]) @ distance).astype(float)
            allowed = (1e-14 * max(1.0, np.abs(X).max())) * s[rows].sum()
            np.testing.assert_allclose(there.scatter, scatter, rtol=1e-12, atol=allowed)
        a, b = one.column_statistics(weight), operator.column_statistics(weight)
        np.testing.assert_allclose(b.weight, a.weight, rtol=0)
        np.testing.assert_allclose(b.mean, a.mean, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(b.variance, a.variance, rtol=1e-9 if far_away else 1e-13)
        np.testing.assert_allclose(b.max_abs, a.max_abs, rtol=0)
    centred = scaled(operator, "standard").class_moments(y)
    expected = scaled(one, "standard").class_moments(y)
    np.testing.assert_allclose(centred.positive.scatter, expected.positive.scatter, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        InterceptOperator(operator, 2.0).class_moments(y).negative.mean,
        np.append(one.class_moments(y).negative.mean, 2.0),
    )


@for_each(
    ["kind", "storage", "split", "value"], tiered(product(KINDS, ["dense", "csr"], SPLITS, [np.nan, np.inf, -np.inf]))
)
def test_inspect_names_the_row_of_x(kind, storage, split, value, folders):
    """Of whole X, whichever part, span and piece has it; of several one of them, and the first where parts are in order."""
    for row in (0, 2, 5, 30, 31, 39, 40, N - 1):
        X = rows_of()
        X[row, 4] = value
        operator = made(kind, X, split, storage, folders)
        assert operator.inspect() == (row, 4)
        assert operator.largest is None
    X[7, 2] = value
    place = made(kind, X, split, storage, folders).inspect()
    assert place == (7, 2) or (place == (N - 1, 4) and split == "out of order")


@for_each(["kind", "split", "storage"], tiered(product(KINDS, SPLITS, ["dense", "csr", "mapped csr"])))
def test_blocks_cross_parts(kind, split, storage, folders):
    X = rows_of()
    operator = made(kind, X, split, storage, folders)
    for start, stop in ((0, 1), (0, N), (2, 4), (8, 41), (29, 33), (N - 1, N)):
        block = operator._block(start, stop)
        assert sp.issparse(block) == ("csr" in storage)
        assert np.array_equal(block.toarray() if sp.issparse(block) else block, X[start:stop])


@for_each("kind", KINDS)
def test_dense_and_sparse_pieces_together(kind):
    X, kinds = rows_of(), iter([np.asarray, sp.csr_array] * 3)
    operator = KINDS[kind](X, SPLITS["out of order"], lambda rows: as_operator(next(kinds)(rows)))
    assert not operator.stores_zeros
    check_operator(operator, X)


@for_each("kind", KINDS)
def test_facts_are_means_over_the_rows(kind):
    X = rows_of()
    dense, sparse = (
        KINDS[kind](X, SPLITS["uneven"], make) for make in (as_operator, lambda A: as_operator(sp.csr_array(A)))
    )
    assert dense.stores_zeros
    assert not sparse.stores_zeros
    assert dense.row_bytes == as_operator(X).row_bytes
    # A matrix in CSR has one number more than rows in `indptr`: for four pieces that is three more.
    assert sparse.row_bytes == pytest.approx(as_operator(sp.csr_array(X)).row_bytes, rel=0.1)
    assert dense.gram_passes() > 0.0


@for_each("kind", KINDS)
def test_pieces_must_have_the_same_columns(kind):
    widths = iter([5, 4, 5, 5])
    with pytest.raises(ValueError, match=r"\[4, 5\] columns"):
        KINDS[kind](rows_of(), SPLITS["uneven"], lambda rows: as_operator(rows[:, : next(widths)]))


def test_inspect_of_pieces_that_learn_nothing():
    """Operators that compute their entries have no largest magnitude: neither has what is stacked of them."""
    from scipy.sparse.linalg import aslinearoperator

    X = rows_of()
    operator = StackedOperator([as_operator(X[:20]), as_operator(aslinearoperator(X[20:]))])
    assert operator.inspect() is None
    assert operator.largest is None
    assert operator.capabilities == frozenset()
    check_operator(operator, X)


def test_vectors_in_the_blocks_of_x():
    X = rows_of()
    operator = in_parts(X, SPLITS["out of order"], as_operator)
    u = np.random.default_rng(0).standard_normal(N)
    blocks = BlockVector.of(operator.layout, u)
    assert np.array_equal(operator.rmatvec(blocks), operator.rmatvec(u))
    assert operator.aligned(blocks) is blocks
    assert operator.aligned(None) is None
    assert operator.aligned(1.5) == 1.5
    assert np.array_equal(np.asarray(operator.aligned(u[:, None])), u)
    z = operator.matvec(np.ones(P))
    assert isinstance(z, BlockVector)
    np.testing.assert_allclose(operator.rmatvec(z * 2.0), 2.0 * X.T @ (X @ np.ones(P)), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(np.asarray(operator.row_norms()), np.linalg.norm(X, axis=1), rtol=1e-14)
    other = BlockVector.of(layout_of(SPLITS["uneven"]), u)
    with pytest.raises(ValueError, match="u is divided into other blocks than X"):
        operator.rmatvec(other)
    for wrong in (u[1:], np.ones((N, 2))):
        with pytest.raises(ValueError, match=r"sign has shape .* expected \(53,\)"):
            operator.class_moments(wrong)
    with pytest.raises(TypeError, match="products restricted to rows"):
        operator.matvec_rows(np.ones(P), np.arange(3))


@for_each("split", ["uneven", "many"])
def test_bytes_of_products(split):
    """Coefficients go to every part and come back from it, or in a tree from every worker; n scores never do."""
    operator = in_parts(rows_of(), SPLITS[split], as_operator)
    cluster, parts = operator.layout.cluster, operator.layout.n_parts
    before = operator.traffic
    z = operator.matvec(np.ones(P))
    assert cluster.bytes - before == 8 * P * parts
    before = cluster.bytes
    operator.rmatvec(z)
    # Half of the parts lie on the other worker; a tree of 18 parts has three groups on its way.
    assert cluster.bytes - before <= 8 * P * (parts if parts <= 4 else parts / 2 + 3)


def test_a_part_may_be_wrapped_where_it_is():
    X = rows_of()
    operator = in_parts(X, SPLITS["out of order"], as_operator)
    check_operator(
        operator.wrap_parts(functools.partial(ScaledOperator, scale=SCALE, center=CENTER)), (X - CENTER) * SCALE
    )


@for_each("blocks", [1, 2, 3, 4, 5, 9])
def test_blocks_of_a_worker_become_few_parts_that_share_its_threads(blocks):
    """Equal blocks of half a gigabyte: at most four parts, no block lost, and together all threads but what does not divide."""
    from scoreline.distributed.dask_operator import arranged

    groups, layout = arranged(InlineCluster(), [10] * blocks, [5e8] * blocks, ["a"] * blocks, {"a": 16})
    assert sorted(k for group in groups for k in group) == list(range(blocks))
    assert len(groups) == min(4, blocks)
    assert {placement.threads for placement in layout.placements} == {16 // len(groups)}


def test_small_and_empty_blocks_make_one_part_a_worker():
    from scoreline.distributed.dask_operator import arranged

    workers = ["a", "b", "b", "a", "c"]
    groups, layout = arranged(InlineCluster(), [5, 0, 3, 2, 0], [8.0, 0.0, 8.0, 8.0, 0.0], workers, {"a": 2, "b": 1})
    assert groups == [[0, 3], [2]]
    assert layout.spans == (((0, 5), (8, 10)), ((5, 8),))
