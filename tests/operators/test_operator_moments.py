"""Class moments of every storage: against extended precision, far from 0, in chunks, with weights, merged from parts."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator
from storages import (
    COMPUTED,
    CONVERSIONS,
    DENSE,
    FRAMES,
    LARGE,
    SPARSE,
    SPARSE_NAMES,
    WRAPPERS,
    dense_array,
    duplicated,
    inner_operators,
    with_slack,
)

from cases import for_each
from scoreline.operators import BlockOperator, InterceptOperator, ScaledOperator, as_operator
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.runtime import parallel
from tiers import examples

EPS = np.finfo(float).eps


def signs(n, seed=0, share=0.4):
    """Return labels of n rows, both classes where there are two rows."""
    sign = np.where(np.random.default_rng(seed).random(n) < share, 1, -1)
    sign[: min(2, n)] = (1, -1)[:n]
    return sign


def literal(A, s):
    """Return weight, mean and scatter by the definition, in 80 bits."""
    A, s = np.asarray(A).astype(np.longdouble), np.asarray(s).astype(np.longdouble)
    total = s.sum()
    if total == 0.0:
        return 0.0, np.zeros(A.shape[1]), np.zeros((A.shape[1],) * 2)
    mean = (s[:, None] * A).sum(axis=0) / total
    centred = A - mean
    return float(total), mean.astype(float), ((s[:, None] * centred).T @ centred).astype(float)


def sides(moments):
    return (1, moments.positive), (-1, moments.negative)


def check_moments(got, A, sign, weight=None, rtol=1e-12):
    """Compare with the definition; errors relative to n times the squares of the largest entries, which one pass rounds.

    1e-12 is 4500 roundings: the 37 to 36000 rows are summed in blocks of BLAS, and its errors add like a random walk.
    """
    largest = np.abs(A).max(axis=0)
    for side, part in sides(got):
        s = np.where(sign == side, 1.0 if weight is None else weight, 0.0)
        total, mean, scatter = literal(A, s)
        assert part.weight == pytest.approx(total, rel=1e-14)  # a sum of at most 36000 weights, pairwise
        assert part.mean.dtype == part.scatter.dtype == np.float64
        size = np.sqrt(total) * largest
        off = np.abs(part.mean - mean) - rtol * largest - 1e-323
        assert not (off > 0.0).any(), f"mean off by {np.abs(part.mean - mean).max():.3g}"
        off = np.abs(part.scatter - scatter) - rtol * np.outer(size, size) - 1e-323
        assert not (off > 0.0).any(), f"scatter off by {np.abs(part.scatter - scatter).max():.3g}"
        # BLAS fills one triangle, which is mirrored; merging adds outer products, symmetric up to a rounding.
        np.testing.assert_allclose(part.scatter, part.scatter.T, rtol=0, atol=4 * EPS * np.outer(size, size).max())


def check_storage(operator, A, rtol=1e-12):
    sign = signs(len(A))
    rng = np.random.default_rng(1)
    for weight in (None, rng.integers(0, 4, len(A)).astype(float), rng.random(len(A))):
        before = operator.n_passes
        got = operator.class_moments(sign, weight)
        assert operator.n_passes == before + 1.0
        assert got.n_features == A.shape[1]
        check_moments(got, A, sign, weight, rtol)


# ---- every storage


@for_each("name", DENSE)
def test_dense_storages(name):
    A = np.asarray(DENSE[name]()).astype(np.float64)
    # Denormal numbers of size 1e-310 have 13 digits, and their squares are 0.
    check_storage(as_operator(DENSE[name]()), A, rtol=1e-11 if name == "denormal" else 1e-12)


@for_each("name", SPARSE_NAMES)
def test_sparse_storages(name):
    X = SPARSE[name]()
    original = X.copy() if X.format in ("csr", "csc") else None
    check_storage(as_operator(X), X.astype(np.float64).toarray())
    if original is not None:
        assert np.array_equal(X.indptr, original.indptr)
        stored = X.indptr[-1]
        assert np.array_equal(X.indices[:stored], original.indices[:stored]), "the caller's matrix was changed"
        assert np.array_equal(X.data[:stored], original.data[:stored]), "the caller's matrix was changed"


@for_each("name", FRAMES)
def test_frames(name):
    check_storage(as_operator(FRAMES[name]()), np.asarray(FRAMES[name]().to_numpy()).astype(np.float64))


@for_each("name", COMPUTED)
def test_computed_matrices(name):
    operator, A = COMPUTED[name]()
    if "row_blocks" in operator.capabilities:
        # As in the contract: the features themselves are computed by BLAS and by a dot product.
        check_storage(operator, A, rtol=1e-11 if name.startswith("fourier") else 1e-12)
        return
    with pytest.raises(TypeError, match="moments of the classes"):
        operator.class_moments(signs(len(A)))
    assert operator.n_passes == 0.0


@for_each("inner", [name for name in inner_operators() if name != "linear"])
@for_each("name", WRAPPERS)
def test_wrappers(name, inner):
    make, dense = inner_operators()[inner]
    wrap, apply = WRAPPERS[name]
    operator = wrap(make())
    # The moments of X are scaled afterwards: rounding is that of X, which the wrappers here make at most 3 times larger
    # than their own entries, so 10 times in the squares.
    check_storage(operator, apply(dense), rtol=1e-11)
    assert operator.inner.n_passes == operator.n_passes == 3.0


def test_the_constant_column_of_an_intercept_has_no_spread():
    operator = InterceptOperator(as_operator(DENSE["c"]()), 0.1)
    for _, part in sides(operator.class_moments(signs(37))):
        assert part.mean[-1] == 0.1
        assert not part.scatter[-1].any()
        assert not part.scatter[:, -1].any()


@for_each("make", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_numpy_mean_and_cov(make):
    rng = np.random.default_rng(0)
    A = np.where(rng.random((500, 6)) < 0.5, rng.standard_normal((500, 6)), 0.0)
    sign = signs(500)
    got = as_operator(make(A)).class_moments(sign)
    for side, part in sides(got):
        # 500 terms of size 1 in another order.
        np.testing.assert_allclose(part.mean, A[sign == side].mean(axis=0), rtol=0, atol=1e-14)
        np.testing.assert_allclose(part.covariance, np.cov(A[sign == side].T), rtol=0, atol=1e-14)
        assert part.weight == np.count_nonzero(sign == side)
    mean, variance = got.columns()
    np.testing.assert_allclose(mean, A.mean(axis=0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(variance, A.var(axis=0), rtol=0, atol=1e-14)


# ---- weights


@for_each("name", CONVERSIONS)
def test_weights_are_repeated_rows(name):
    rng = np.random.default_rng(2)
    A = np.where(rng.random((300, 7)) < 0.6, 1.0 + rng.standard_normal((300, 7)), 0.0)
    sign, repeats = signs(300), rng.integers(0, 5, 300)
    weighted = as_operator(CONVERSIONS[name](A)).class_moments(sign, repeats.astype(float))
    repeated = as_operator(CONVERSIONS[name](np.repeat(A, repeats, axis=0))).class_moments(np.repeat(sign, repeats))
    for (_, a), (_, b) in zip(sides(weighted), sides(repeated), strict=True):
        assert a.weight == b.weight
        # 600 terms of size 1 to 10: a few hundred roundings at worst.
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(a.covariance, b.covariance, rtol=0, atol=1e-13)


@for_each("outlier", [1.0, 1e8, 1e200])
@for_each("name", CONVERSIONS)
def test_rows_of_weight_zero_are_not_there(name, outlier):
    """Whatever they hold: a weight of 0 is how rows are left out."""
    rng = np.random.default_rng(3)
    A, sign, weight = rng.standard_normal((400, 4)), signs(400), rng.uniform(0.5, 2.0, 400)
    out = rng.random(400) < 0.2
    out[:2] = True
    A[out] *= outlier
    weight[out] = 0.0
    with np.errstate(over="ignore"):
        got = as_operator(CONVERSIONS[name](A)).class_moments(sign, weight)
    check_moments(got, A[~out], sign[~out], weight[~out])


@for_each("name", CONVERSIONS)
def test_a_class_without_rows_is_empty(name):
    A = np.random.default_rng(4).standard_normal((30, 3))
    got = as_operator(CONVERSIONS[name](A)).class_moments(np.ones(30))
    check_moments(got, A, np.ones(30))
    assert got.negative.weight == 0.0
    assert not got.negative.mean.any()
    assert not got.negative.scatter.any()
    weight = np.where(np.arange(30) < 10, 0.0, 1.0)
    sign = np.where(np.arange(30) < 10, -1, 1)
    assert as_operator(CONVERSIONS[name](A)).class_moments(sign, weight).negative.weight == 0.0


@for_each("name", CONVERSIONS)
def test_one_positive_row(name):
    A = np.random.default_rng(5).standard_normal((50, 4))
    sign = np.where(np.arange(50) == 17, 1, -1)
    got = as_operator(CONVERSIONS[name](A)).class_moments(sign)
    assert got.positive.weight == 1.0
    # The mean of one row is that row, up to a rounding of its distance from an origin.
    np.testing.assert_allclose(got.positive.mean, A[17], rtol=4 * EPS)
    np.testing.assert_allclose(got.positive.scatter, 0.0, rtol=0, atol=4 * EPS * (A[17] ** 2).max())
    assert not got.positive.covariance.any(), "the covariance of one row is not known"
    check_moments(got, A, sign)


def test_wrong_lengths_are_refused():
    for make in (np.asarray, sp.csr_array, sp.csc_array):
        operator = as_operator(make(np.eye(5) + 1.0))
        with pytest.raises(ValueError, match="weight"):
            operator.class_moments(signs(5), np.ones(4))
        for n in (4, 6):
            with pytest.raises(ValueError, match="sign"):
                operator.class_moments(signs(n))


# ---- columns far from 0


def far_columns(n=2000, p=5, seed=0, far=1e6):
    """Return columns whose mean is `far` times their deviation, of several sizes and signs, correlated."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** np.arange(p)
    noise = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    return (np.where(np.arange(p) % 2, -far, far) + noise) * scale, signs(n, seed)


def check_relative(got, A, sign, weight=None, rtol=1e-8):
    """Compare covariances relative to the variances, and means relative to the deviations.

    Entries of size 1e6 deviations are themselves known to 1e-10 deviations; the mean and the covariance of n of them are
    known better than that, and the sums lose no more than a few digits of it: 1e-8.
    """
    for side, part in sides(got):
        s = np.where(sign == side, 1.0 if weight is None else weight, 0.0)
        total, mean, scatter = literal(A, s)
        deviation = np.sqrt(np.diag(scatter) / total)
        assert (np.abs(part.mean - mean) <= rtol * deviation).all()
        assert (np.abs(part.scatter - scatter) <= rtol * total * np.outer(deviation, deviation)).all()


def unsorted(X):
    """Return the same matrix, the entries of each line in reverse order."""
    order = np.concatenate([np.arange(hi - 1, lo - 1, -1) for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    out = type(X)((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    assert not out.has_sorted_indices
    return out


FAR = CONVERSIONS | {
    "csr_unsorted": lambda A: unsorted(sp.csr_array(A)),
    "csc_unsorted": lambda A: unsorted(sp.csc_array(A)),
    "csr_slack": lambda A: with_slack(sp.csr_matrix(A)),
    "csc_slack": lambda A: with_slack(sp.csc_matrix(A)),
    "csr_int64": lambda A: int64(sp.csr_array(A)),
    "csc_int64": lambda A: int64(sp.csc_array(A)),
    "unsorted_duplicates": lambda A: unsorted(duplicated(sp.csr_array(A))),
}


def int64(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@for_each("weighted", ["none", "integer", "fraction"])
@for_each("name", FAR)
def test_covariances_survive_means_of_a_million_deviations(name, weighted):
    A, sign = far_columns()
    rng = np.random.default_rng(1)
    weight = {"none": None, "integer": rng.integers(0, 4, len(A)).astype(float), "fraction": rng.random(len(A))}[
        weighted
    ]
    check_relative(as_operator(FAR[name](A)).class_moments(sign, weight), A, sign, weight)


@for_each("name", FAR)
def test_far_columns_with_sparse_and_empty_ones_and_empty_rows(name):
    A, sign = far_columns()
    rng = np.random.default_rng(6)
    A[:, 1] = np.where(rng.random(len(A)) < 0.02, 1.0, 0.0)
    A[:, 2] = 0.0
    A[:, 3] = np.where(rng.random(len(A)) < 0.9, A[:, 3], 0.0)  # far from 0 but for the zeros: a large variance
    check_relative(as_operator(FAR[name](A)).class_moments(sign), A, sign)
    # In one class some rows are empty, so that its columns are not full; in the other they are.
    A[np.flatnonzero(sign < 0)[::10]] = 0.0
    check_relative(as_operator(FAR[name](A)).class_moments(sign), A, sign)


@for_each("name", ["c", "f", "strided", "csr", "csc", "csr_duplicates"])
def test_far_columns_in_float32(name):
    """Entries are rounded to float32 once; what follows is float64."""
    A, sign = far_columns(far=1e3)
    A = A.astype(np.float32)
    X = duplicated(sp.csr_matrix(A)) if name == "csr_duplicates" else CONVERSIONS[name](A)
    operator = as_operator(X)
    # Squares are 1e6 variances: thousands of terms summed one by one lose sqrt(5000) roundings of that, 1e-8, where sums
    # in float32 would be off by more than the variance.
    check_relative(operator.class_moments(sign), A.astype(float), sign)


@for_each("name", FAR)
def test_far_columns_under_wrappers(name):
    A, sign = far_columns(n=500)
    center, scale = A.mean(axis=0), 1.0 / A.std(axis=0)
    operator = InterceptOperator(ScaledOperator(as_operator(FAR[name](A)), scale, center), 2.0)
    got = operator.class_moments(sign)
    standard = (A.astype(np.longdouble) - center) * scale
    for side, part in sides(got):
        _, mean, scatter = literal(standard, sign == side)
        # Entries of size 1e6 deviations have 10 digits of a deviation, and the mean of 250 of them not many fewer.
        np.testing.assert_allclose(part.mean[:-1], mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(part.scatter[:-1, :-1], scatter, rtol=0, atol=1e-8 * part.weight)
        assert part.mean[-1] == 2.0


@for_each("name", FAR)
def test_a_constant_column_has_no_spread(name):
    A = np.random.default_rng(7).standard_normal((1000, 3))
    A[:, 1], A[:, 2] = 0.1, 1e8
    got = as_operator(FAR[name](A)).class_moments(signs(1000), np.random.default_rng(8).random(1000))
    for _, part in sides(got):
        deviation = np.sqrt(np.maximum(np.diag(part.scatter)[1:], 0.0) / part.weight)
        # As in the statistics of columns: 8 roundings of the mean count as none.
        assert (deviation <= 8 * EPS * np.abs(part.mean[1:])).all()


# ---- chunks and threads


@for_each("name", LARGE)
def test_several_chunks_have_the_same_bits_for_any_number_of_threads(name):
    X = LARGE[name]()
    A = dense_array(X)
    operator, sign, weight = as_operator(X), signs(len(A)), np.random.default_rng(3).random(len(A))
    results = []
    for threads in (1, 2, 3):
        with parallel.thread_limit(threads):
            results.append(operator.class_moments(sign, weight))
    for other in results[1:]:
        for (_, a), (_, b) in zip(sides(results[0]), sides(other), strict=True):
            assert a.weight == b.weight
            assert np.array_equal(a.mean, b.mean)
            assert np.array_equal(a.scatter, b.scatter)
    check_some(results[0], A, sign, weight)


def check_some(got, A, sign, weight):
    """Compare the moments of 12 columns: products in 80 bits are slow."""
    some = np.arange(0, A.shape[1], A.shape[1] // 12)
    parts = [Moments(m.weight, m.mean[some], m.scatter[np.ix_(some, some)]) for _, m in sides(got)]
    check_moments(ClassMoments(*parts), A[:, some], sign, weight)


def test_many_chunks_far_from_zero():
    """40000 x 100 is four blocks; sorted rows, so that every chunk has another mean and some have one class only."""
    rng = np.random.default_rng(9)
    A = 1e6 + rng.standard_normal((40000, 100)) + np.linspace(0.0, 5.0, 40000)[:, None]
    sign = np.where(np.arange(40000) < 9000, 1, -1)
    got = as_operator(A).class_moments(sign)
    some = [0, 50, 99]
    parts = [Moments(m.weight, m.mean[some], m.scatter[np.ix_(some, some)]) for _, m in sides(got)]
    check_relative(ClassMoments(*parts), A[:, some], sign)


def test_block_operators_are_read_once():
    class Counted(BlockOperator):
        def __init__(self):
            super().__init__((40000, 100))
            self.rows = 0

        def _block(self, start, stop):
            self.rows += stop - start
            return np.random.default_rng(start).standard_normal((stop - start, 100))

    operator = Counted()
    operator.class_moments(signs(40000))
    assert operator.rows == 40000


# ---- merging


def parts_of(A, sign, edges, weight=None):
    spans = itertools.pairwise(edges)
    return [
        as_operator(A[a:b]).class_moments(sign[a:b], None if weight is None else weight[a:b]) for a, b in spans if b > a
    ]


def merged(parts, p):
    total = ClassMoments.empty(p)
    for part in parts:
        total.merge(part)
    return total


@for_each("far", [0.0, 1e6])
@for_each("size", [1, 7, 400, 1999])
def test_parts_in_any_order_give_the_whole(size, far):
    A, sign = far_columns(n=700 if size == 1 else 2000, far=far)
    weight = np.random.default_rng(1).integers(0, 3, len(A)).astype(float)
    at_once = as_operator(A).class_moments(sign, weight)
    parts = parts_of(A, sign, [*range(0, len(A), size), len(A)], weight)
    rng = np.random.default_rng(2)
    for order in (np.arange(len(parts)), np.arange(len(parts))[::-1], rng.permutation(len(parts))):
        got = merged([parts[k] for k in order], A.shape[1])
        for (_, a), (_, b) in zip(sides(got), sides(at_once), strict=True):
            assert a.weight == b.weight
            deviation = np.sqrt(np.diag(b.covariance))
            # A mean of size 1e6 deviations has 1e-10 of one, and 700 merges round it 700 times: like a random walk
            # 3e-9 deviations. The scatter adds squares of distances that are known that well.
            allowed = 1e-9 if far == 0.0 else 2e-8
            assert (np.abs(a.mean - b.mean) <= allowed * deviation).all()
            assert (np.abs(a.covariance - b.covariance) <= allowed * np.outer(deviation, deviation)).all()


def test_merging_leaves_the_other_unchanged_and_shares_no_memory():
    A, sign = far_columns(n=60)
    a, b = parts_of(A, sign, [0, 30, 60])
    before = copy.deepcopy(b.record())
    total = ClassMoments.empty(A.shape[1])
    total.merge(b)
    total.merge(a)
    for side in ("positive", "negative"):
        for name in ("weight", "mean", "scatter"):
            assert np.array_equal(b.record()[side][name], before[side][name])
    assert not np.may_share_memory(total.positive.scatter, b.positive.scatter)


def test_nothing_merges_to_the_same():
    A, sign = far_columns(n=60)
    total = as_operator(A).class_moments(sign)
    before = total.record()
    total.merge(ClassMoments.empty(A.shape[1]))
    for side in ("positive", "negative"):
        for name in ("weight", "mean", "scatter"):
            assert np.array_equal(total.record()[side][name], before[side][name])


def test_more_columns_than_are_merged_at_a_time():
    A = np.random.default_rng(0).standard_normal((40, 600))
    check_moments(merged(parts_of(A, signs(40), [0, 3, 20, 40]), 600), A, signs(40))


@st.composite
def three_groups(draw):
    """Return three groups of rows (one may be empty) with their weights, at some distance from 0."""
    p, far = draw(st.integers(1, 4)), draw(st.sampled_from([0.0, 1.0, -1e3, 1e6]))
    numbers = st.floats(-10.0, 10.0, allow_nan=False, width=32)
    groups = []
    for _ in range(3):
        n = draw(st.integers(0, 5))
        rows = draw(st.lists(st.lists(numbers, min_size=p, max_size=p), min_size=n, max_size=n))
        weight = draw(st.lists(st.floats(0.0625, 16.0, width=32), min_size=n, max_size=n))
        groups.append((far + np.array(rows, dtype=float).reshape(n, p), np.array(weight, dtype=float)))
    return p, far, groups


def moments_of(p, rows, weight):
    total, mean, scatter = literal(rows, weight)
    return Moments(total, mean, scatter)


@examples(60)
@given(three_groups())
def test_merge_is_associative_and_commutative(problem):
    p, far, groups = problem

    def join(*parts):
        total = Moments.empty(p)
        for part in parts:
            total.merge(part)
        return total

    a, b, c = (moments_of(p, *group) for group in groups)
    rows, weight = (np.concatenate(part) for part in zip(*groups, strict=True))
    at_once = moments_of(p, rows, weight)
    for got in (join(join(a, b), c), join(a, join(b, c)), join(c, b, a), join(join(c, a), b)):
        assert got.weight == pytest.approx(at_once.weight, rel=1e-14)  # 15 numbers
        # Means are rounded at |far|, three times; distances of at most 20 with that error are squared, weight at most 240.
        error = 8 * EPS * (abs(far) + 20.0)
        np.testing.assert_allclose(got.mean, at_once.mean, rtol=0, atol=error)
        np.testing.assert_allclose(got.scatter, at_once.scatter, rtol=0, atol=240 * 20 * 2 * error)
        assert (np.diag(got.scatter) >= 0.0).all()


# ---- what is made of them


def test_record_and_restored():
    A, sign = far_columns(n=60)
    moments = as_operator(A).class_moments(sign)
    record = moments.record()
    again = ClassMoments.restored(pickle.loads(pickle.dumps(record)))
    for (_, a), (_, b) in zip(sides(moments), sides(again), strict=True):
        assert a.weight == b.weight
        assert isinstance(b.weight, float)
        assert np.array_equal(a.mean, b.mean)
        assert np.array_equal(a.scatter, b.scatter)
    record["positive"]["mean"][:] = 0.0
    record["positive"]["scatter"][:] = 0.0
    assert moments.positive.mean.all(), "a record is a copy"
    assert again.positive.scatter.any(), "restoring copies"
    lists = {
        side: {"weight": float(m["weight"]), "mean": m["mean"].tolist(), "scatter": m["scatter"].tolist()}
        for side, m in moments.record().items()
    }
    assert np.array_equal(ClassMoments.restored(lists).negative.scatter, moments.negative.scatter)


def test_scaled_moments_are_those_of_scaled_rows():
    A, sign = far_columns(n=200, far=10.0)
    scale, center = np.array([0.5, 0.0, -2.0, 1e-3, 1.0]), A.mean(axis=0)
    moments = as_operator(A).class_moments(sign)
    # Scaling afterwards: the rounding is that of the rows before centring, 10 deviations from 0.
    check_moments(moments.scaled(scale), A * scale, sign, rtol=1e-12)
    deviation = np.abs(scale) * A.std(axis=0)
    for side, part in sides(moments.scaled(scale, center)):
        _, mean, scatter = literal((A - center) * scale, sign == side)
        assert (np.abs(part.mean - mean) <= 1e-12 * deviation).all()
        assert (np.abs(part.scatter - scatter) <= 1e-12 * part.weight * np.outer(deviation, deviation)).all()


def test_linear_operators_have_no_moments():
    with pytest.raises(TypeError, match="moments of the classes"):
        as_operator(aslinearoperator(np.eye(3))).class_moments(np.array([1, -1, 1]))


@for_each("weighted", [False, True])
@for_each("storage", sorted(CONVERSIONS))
def test_some_rows_as_an_operator_have_their_own_moments(storage, weighted):
    rng = np.random.default_rng(3)
    A = np.round(rng.standard_normal((40, 4)), 1) * (rng.random((40, 4)) < 0.6)
    rows = rng.permutation(40)[:23]
    sign, weight = signs(23), rng.random(23) if weighted else None
    for wrap in (lambda o: o, InterceptOperator, lambda o: ScaledOperator(o, np.arange(1.0, 5.0), A.mean(axis=0))):
        found = wrap(as_operator(CONVERSIONS[storage](A))).on_rows(rows).class_moments(sign, weight)
        expected = wrap(as_operator(A[rows])).class_moments(sign, weight)
        for one, other in zip(sides(found), sides(expected), strict=True):
            # The same rows in another storage: rounding of sums of 23 numbers of size 1 to 10.
            np.testing.assert_allclose(one[1].mean, other[1].mean, atol=1e-13)
            np.testing.assert_allclose(one[1].scatter, other[1].scatter, atol=1e-11)
