"""Vectors in blocks against the same vectors in one piece, and what is computed, kept and moved for them."""

import gc
import logging
import weakref

import numpy as np
import pytest
from block_layouts import layout_of

from cases import for_each
from scoreline.distributed import BlockVector, Every, Parts, Ref, added
from scoreline.distributed import cluster as _cluster
from scoreline.distributed.blocks import MAX_TASK_BYTES
from scoreline.distributed.score_space import Space as BlockSpace
from scoreline.runtime.vectors import as_vector

N = 23
SPANS = {
    "one part": [((0, N),)],
    "three parts": [((0, 5),), ((5, 6),), ((6, N),)],
    "spans out of order": [((9, 14), (0, 3)), ((20, N), (3, 9)), ((14, 20),)],
    "a part for each row": [((k, k + 1),) for k in range(N)],
}


every_split = for_each("split", SPANS)

X, Y = np.random.default_rng(0).standard_normal((2, N))
K = np.random.default_rng(1).integers(0, 4, N)


def same_as(got, expected):
    """Elementwise functions give the same bits, and the same type, however the rows are cut."""
    got = np.asarray(got)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


ELEMENTWISE = {
    "sum": lambda x, y, k: x + y,
    "number first": lambda x, y, k: 2.0 - x,
    "NumPy number first": lambda x, y, k: np.float64(2.0) * x,
    "array of no dimension": lambda x, y, k: np.array(3.0) * x,
    "power": lambda x, y, k: x**2,
    "another power": lambda x, y, k: k**3 + 2.0**k,
    "integers": lambda x, y, k: k // 2 + k % 3,
    "negative": lambda x, y, k: -abs(x),
    "ufunc": lambda x, y, k: np.exp(np.minimum(x, y)),
    "comparison": lambda x, y, k: x <= y,
    "equal": lambda x, y, k: k == 2,
    "logic": lambda x, y, k: ~((x > 0) & (y > 0) | (k != 1)),
    "where": lambda x, y, k: np.where(x > y, x, 0.0),
    "clip": lambda x, y, k: np.clip(x, -0.5, 0.5),
    "clip by names": lambda x, y, k: np.clip(x, a_min=-0.5, a_max=0.5),
    "like": lambda x, y, k: np.zeros_like(k) + np.ones_like(x) + np.full_like(x, 3.0),
    "nan to num": lambda x, y, k: np.nan_to_num(np.log(x)),
    "type": lambda x, y, k: k.astype(np.int8),
    "type of a comparison": lambda x, y, k: (x > 0).astype(np.float32),
    "host operand": lambda x, y, k: x + np.asarray(Y),
    "host operand first": lambda x, y, k: np.asarray(Y) - x,
    "list": lambda x, y, k: x + list(range(N)),
    "host mask": lambda x, y, k: x[np.asarray(X) > 0],
    "mask": lambda x, y, k: x[(x > 0) & (k != 1)],
    "mask of a selection": lambda x, y, k: (x[x > 0] * 2.0)[y[x > 0] > 0],
    "nothing selected": lambda x, y, k: x[k > 99],
}


@for_each("name", ELEMENTWISE)
@every_split
def test_elementwise_functions_are_numpys(name, split):
    layout = layout_of(SPANS[split])
    compute = ELEMENTWISE[name]
    with np.errstate(invalid="ignore"):
        expected = compute(X, Y, K)
    got = compute(*(BlockVector.of(layout, v) for v in (X, Y, K)))
    selected = "mask" in name or "selected" in name
    if selected and layout.n_parts > 1:  # a selection knows its parts, not its rows: these come part by part
        assert sorted(np.asarray(got)) == sorted(expected)
        assert len(got) == len(expected)
        assert got.shape == expected.shape
    else:
        same_as(got, expected)
        assert len(got) == len(expected)


@every_split
def test_numbers_are_numpys(split):
    layout = layout_of(SPANS[split])
    x, y, k = (BlockVector.of(layout, v) for v in (X, Y, K))
    for blocks, here in ((x, X), (k, K), (x > 0, X > 0), (x[k > 1], X[K > 1])):
        # Sums of 23 terms in another order: a few roundings of the sum of magnitudes.
        assert blocks.sum() == pytest.approx(here.sum(), rel=0, abs=1e-14 * np.abs(here).sum())
        assert blocks.mean() == pytest.approx(here.mean(), rel=0, abs=1e-14 * np.abs(here).max())
        assert blocks.max() == here.max()
        assert blocks.min() == here.min()
        assert blocks.any() == here.any()
        assert blocks.all() == here.all()
        assert np.count_nonzero(blocks) == np.count_nonzero(here)
    assert not (k > 99).any()
    assert (k < 99).all()
    assert x[k > 99].max(initial=0.0) == 0.0
    assert x[k > 99].sum() == 0.0
    assert x.max(initial=99.0) == 99.0
    with pytest.raises(ValueError, match="zero-size"):
        x[k > 99].min()
    for a, b in ((x, y), (x, Y), (X, y), (k.astype(float), y)):
        assert isinstance(a @ b, float)
        assert a @ b == pytest.approx(np.asarray(a) @ np.asarray(b), rel=0, abs=1e-14 * N)


@every_split
def test_counts_are_numpys(split):
    """The parts of a vector need not have the same largest entry."""
    layout = layout_of(SPANS[split])
    x, k = BlockVector.of(layout, np.abs(X)), BlockVector.of(layout, K)
    assert np.array_equal(np.bincount(k, None, 6), np.bincount(K, None, 6))
    assert np.array_equal(np.bincount(k, minlength=9), np.bincount(K, minlength=9))
    assert np.array_equal(np.bincount(k), np.bincount(K))
    assert np.array_equal(np.bincount(k[k < 2], None, 3), np.bincount(K[K < 2], None, 3))
    for got in (np.bincount(k, x, 4), np.bincount(k, weights=x), np.bincount(k, weights=np.abs(X))):
        np.testing.assert_allclose(got, np.bincount(K, np.abs(X)), rtol=1e-14)


@every_split
def test_other_functions_bring_all_entries_here(split, caplog):
    """Correct, at a price that is logged."""
    layout = layout_of(SPANS[split])
    x, y = BlockVector.of(layout, X), BlockVector.of(layout, Y)
    with caplog.at_level(logging.INFO, "scoreline"):
        assert np.median(x) == np.median(X)
    assert "median needs all entries" in caplog.text
    assert np.array_equal(np.concatenate([x, y]), np.concatenate([X, Y]))
    assert np.average(X, weights=np.abs(y)) == np.average(X, weights=np.abs(Y))
    assert np.array_equal(np.where(x > 0)[0], np.where(X > 0)[0])
    assert np.array_equal(np.sort(x), np.sort(X))
    assert np.shape(x) == (N,)
    assert np.ndim(x) == x.ndim == 1


def test_arrays_come_in_the_order_of_the_rows():
    """Whatever spans a part has; a type may be asked for, and large arrays are logged."""
    layout = layout_of(SPANS["spans out of order"])
    x = BlockVector.of(layout, K)
    assert [p.tolist() for p in layout.gather(np.copy, x)] == [
        np.concatenate([K[a:b] for a, b in spans]).tolist() for spans in layout.spans
    ]
    same_as(x, K)
    same_as(np.asarray(x, dtype=np.float32), K.astype(np.float32))
    assert as_vector(x) is x
    same_as(as_vector(x, np.float64), K.astype(float))
    assert isinstance(as_vector([1, 2]), np.ndarray)


@every_split
def test_adding_in_place_makes_another_vector(split):
    layout = layout_of(SPANS[split])
    x = BlockVector.of(layout, X)
    before, known = x, x.sum()
    x += 1.0
    x *= 2.0
    same_as(x, (X + 1.0) * 2.0)
    same_as(before, X)
    assert x is not before
    assert x.sum() == pytest.approx(2.0 * (known + N), rel=1e-13)
    assert before.copy() is before


@every_split
def test_wrong_use_is_refused(split):
    layout = layout_of(SPANS[split])
    x, k = BlockVector.of(layout, X), BlockVector.of(layout, K)
    with pytest.raises(TypeError, match=r"numpy\.where"):
        x[x > 0] = 1.0
    for index in (0, slice(2), K, [0, 1], np.ones((N, 1), dtype=bool)):
        with pytest.raises(TypeError, match="a boolean for each row"):
            x[index]
    with pytest.raises(TypeError, match="a boolean for each row"):
        np.asarray(x[k])
    with pytest.raises(TypeError, match="a boolean for each row"):
        list(x)
    for wrong in (X[1:], np.append(X, 0.0), [1.0, 2.0]):
        with pytest.raises(ValueError, match="does not fit"):
            x + wrong
    with pytest.raises(ValueError, match="does not fit"):
        x[np.ones(N + 1, dtype=bool)]
    with pytest.raises(ValueError, match="does not fit"):
        x[x > 0] + X
    with pytest.raises(ValueError, match="does not fit"):
        x @ X[1:]
    with pytest.raises(TypeError, match="do not fit into a host array"):
        np.sqrt(abs(x), out=np.empty(N))
    with pytest.raises(TypeError):
        np.add.reduce(x)


def test_vectors_of_other_rows_do_not_mix():
    """The same workers may hold other cuts of the rows: parts of one entry would be spread over those of many."""
    x = BlockVector.of(layout_of(SPANS["three parts"]), X)
    others = (
        BlockVector.of(layout_of(SPANS["three parts"], workers=3), X),
        BlockVector.of(layout_of([((0, 6),), ((6, 7),), ((7, N),)]), X),
        x[x > 0],
    )
    for other in others:
        for mix in (lambda y: x + y, lambda y: np.where(y > 0, x, 0.0), lambda y: x @ y, lambda y: x[y > 0]):
            with pytest.raises(ValueError, match="different blocks"):
                mix(other)
    same_as(x + BlockVector.of(layout_of(SPANS["three parts"]), Y), X + Y)


@every_split
def test_repr_says_where(split):
    layout = layout_of(SPANS[split])
    assert repr(BlockVector.of(layout, X)) == f"BlockVector({layout.n_parts} parts on {layout.n_workers} workers)"


class Calls:
    """A function that counts its calls."""

    def __init__(self):
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return x + 1.0


def pair(x, y):
    return float(x.sum() + y.sum())


def test_described_vectors_are_computed_once_in_a_task_and_then_kept():
    """Nothing at first; once in every task that reads them; not again once a task has left vectors behind."""
    layout, calls = layout_of(SPANS["three parts"]), Calls()
    x = BlockVector.of(layout, X)
    made = layout.vector(calls, x)
    twice = made + made * 2.0
    assert calls.count == 0
    layout.gather(pair, twice, made)
    assert calls.count == 3, "once for each part, though it is read three times"
    layout.gather(np.sum, twice)
    assert calls.count == 6, "nothing was kept"
    stored = BlockVector(layout, layout.each(np.copy, x, keep=True))
    assert calls.count == 9, "another task that leaves a vector behind keeps what was read before"
    assert made.refs is not None
    assert twice.refs is not None
    assert twice.recipe is None
    same_as(twice, (X + 1.0) * 3.0)
    same_as(made, X + 1.0)
    same_as(stored, X)
    assert calls.count == 9
    assert made.computed() is made
    assert calls.count == 9


def test_vectors_nobody_has_read_are_not_kept():
    layout, calls = layout_of(SPANS["three parts"]), Calls()
    x = BlockVector.of(layout, X)
    made = layout.vector(calls, x)
    layout.each(np.copy, x, keep=True)
    assert calls.count == 0
    assert made.refs is None
    made.computed()
    assert calls.count == 3
    same_as(made, X + 1.0)
    assert calls.count == 3


def test_dropped_vectors_are_released():
    """Neither what a vector was made of nor what has read it may hold it: scores of all iterations would fill the memory."""
    layout = layout_of(SPANS["three parts"])
    x = BlockVector.of(layout, X)
    made = x * 2.0
    layout.gather(np.sum, made)  # noted, for the next task that keeps
    alive = weakref.ref(made)
    del made
    gc.collect()
    assert alive() is None
    assert not layout._read
    layout.each(np.copy, x, keep=True)

    source = x + 1.0
    made, alive = (source * 2.0).computed(), weakref.ref(source)
    del source
    gc.collect()
    assert alive() is None, "a vector that is there does not need what it was made of"
    same_as(made, (X + 1.0) * 2.0)


def test_iterations_release_the_scores_before_them():
    space, layout = BlockSpace(), layout_of(SPANS["three parts"])
    labels = space.labels(BlockVector.of(layout, np.where(X > 0, 1, -1)))
    scores, step, alive = BlockVector.of(layout, X), BlockVector.of(layout, Y), []
    for _ in range(5):
        scores = space.combine(1.0, scores, 0.5, step)
        sums = space.point_sums("logistic", scores, labels)
        expected = float(np.asarray(sums.grad) @ np.asarray(step))
        assert space.dot(sums.grad, step) == pytest.approx(expected, rel=1e-13, abs=1e-15)
        sums.grad.computed()
        alive.append(weakref.ref(scores))
    del sums
    gc.collect()
    assert [ref() is not None for ref in alive] == [False, False, False, True, True], "this one and what it is made of"


def test_known_numbers_cost_no_round():
    """A sum is brought here once, and stays with the vector it belongs to."""
    layout = layout_of(SPANS["three parts"])
    x = BlockVector.of(layout, X)
    assert x.known_sum is None
    total, before = x.sum(), layout.cluster.bytes
    assert x.sum() == total == x.known_sum
    assert layout.cluster.bytes == before
    assert (x + 0.0).known_sum is None


def test_large_arrays_are_sent_once_to_each_worker():
    """Small ones go along with every task; large ones to one worker, from which the others fetch them."""
    layout = layout_of(SPANS["a part for each row"], workers=3)
    for size, copies in ((MAX_TASK_BYTES // 8, N), (MAX_TASK_BYTES // 8 + 1, 3)):
        value, before = np.arange(float(size)), layout.cluster.bytes
        sent = layout.broadcast(value)
        assert isinstance(sent, Ref) == (copies == 3)
        assert layout.gather(np.sum, sent) == [value.sum()] * N
        assert layout.cluster.bytes - before == copies * value.nbytes + N * 8
    one = layout_of(SPANS["one part"])
    assert one.broadcast(value) is value


def joined(*texts):
    return "(" + " ".join(texts) + ")"


@for_each("workers", [1, 3, 30])
@for_each("parts", [1, 2, 7, 8, 9, 23])
def test_folding_keeps_the_order_of_the_parts(parts, workers):
    """Sums of floats depend on the order: those of a worker first, then eight workers at a time, as parts come."""
    layout = layout_of([((k, k + 1),) for k in range(parts)], workers=workers)
    refs = layout.each(str, Parts(range(parts)))
    (text,) = layout.cluster.gather([layout.folded(refs, joined, 1.0).future])
    own = [[str(k) for k in range(parts) if k % workers == w] for w in range(min(workers, parts))]
    level = [joined(*group) if len(group) > 1 else group[0] for group in own]
    while len(level) > 1:
        groups = [level[i : i + 8] for i in range(0, len(level), 8)]
        level = [joined(*group) if len(group) > 1 else group[0] for group in groups]
    assert text == level[0]


@for_each("parts", [1, 4, 5, 20])
def test_totals_add_all_parts(parts):
    layout = layout_of([((k, k + 1),) for k in range(parts)], workers=3)
    total = layout.total(16.0, np.full, 2, Parts(float(k) for k in range(parts)))
    assert np.array_equal(total, np.full(2, parts * (parts - 1) / 2))


def test_arguments_of_every_kind():
    """A part gets its own piece of vectors and Parts, all of Every, and items of results."""
    layout = layout_of(SPANS["three parts"])
    refs = layout.each(np.copy, BlockVector.of(layout, X))
    got = layout.gather(lambda every, own, value: (len(every), own, value), Every(refs), Parts("abc"), {"a": 1})
    assert got == [(3, own, {"a": 1}) for own in "abc"]
    pairs = layout.each(lambda x: (x[0], (x[-1], None)), BlockVector.of(layout, X))
    lasts = layout.cluster.gather([ref.future for ref in layout.items(pairs, 1, 0)])
    assert lasts == [X[4], X[5], X[-1]]
    assert layout.gather(float, Parts(Ref(ref.future, (1, 0)) for ref in pairs)) == lasts


def test_sums_leave_what_they_add_alone():
    first, second = np.ones(3), np.ones(3)
    assert np.array_equal(added(first, second, second), np.full(3, 3.0))
    assert np.array_equal(first, np.ones(3))


def test_bytes_are_those_of_arrays_and_numbers():
    class Holder:
        def __init__(self):
            self.a, self.b = np.zeros(4), "text"

    values = {"x": [np.zeros(2, dtype=np.float32), 1.0, None], "y": (np.zeros((2, 2)), "no"), "z": Holder()}
    assert _cluster.size_of(values) == 8 + 8 + 32 + 32


def test_tasks_do_not_warn():
    """What overflows on a worker is for whoever looks at the result: a warning there would reach nobody."""
    layout = layout_of(SPANS["spans out of order"])
    with np.errstate(all="raise"):
        assert np.isinf(np.exp(BlockVector.of(layout, 1e3 * np.abs(X) + 1e3))).all()


@every_split
def test_nan_is_seen_by_extremes(split):
    """Whichever part has it, as in NumPy."""
    layout = layout_of(SPANS[split])
    for row in (0, 4, N - 1):
        values = X.copy()
        values[row] = np.nan
        x = BlockVector.of(layout, values)
        assert np.isnan(x.max())
        assert np.isnan(x.min())
        space = BlockSpace()
        labels = space.labels(BlockVector.of(layout, np.where(Y > 0, 1, -1)))
        assert np.isnan(space.span(x, labels))
        assert not space.is_finite(x)
