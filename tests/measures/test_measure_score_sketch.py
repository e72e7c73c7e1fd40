"""Sketches of scores: ranks within the stated error, bounded memory, and the threshold of the later half of a stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline.measures import best_threshold, get_measure, score_sketch
from scoreline.measures.score_sketch import RecentScores, ScoreSketch
from tiers import examples

KINDS = {
    "normal": lambda rng, m: rng.standard_normal(m),
    "ties": lambda rng, m: rng.integers(-3, 4, m).astype(float),
    "equal": lambda rng, m: np.full(m, 1.5),
    "wide": lambda rng, m: rng.standard_normal(m) * 10.0 ** rng.integers(-200, 200, m),
}
WEIGHTS = {
    "ones": lambda rng, m: np.ones(m),
    "integers": lambda rng, m: rng.integers(1, 9, m).astype(float),
    "uneven": lambda rng, m: 10.0 ** rng.uniform(-6.0, 6.0, m),
}
ORDERS = {
    "given": lambda z: np.arange(len(z)),
    "rising": np.argsort,
    "falling": lambda z: np.argsort(-z),
    "inwards": lambda z: np.argsort(-np.abs(z - np.median(z))),
}
# Weights are added some hundred times: 1e-12 is ten thousand roundings of the total.
ROUNDING = 1e-12


@pytest.fixture
def small(monkeypatch):
    """Let a part have 16 points, so that a few hundred numbers are compressed several times."""
    monkeypatch.setattr(score_sketch, "SIZE", 16)
    return 16


def sketched(numbers, weights, sizes):
    """Return the sketch of blocks of these sizes, repeated until all numbers are in."""
    sketch, start, k = ScoreSketch(), 0, 0
    while start < len(numbers):
        stop = start + sizes[k % len(sizes)]
        sketch.add(numbers[start:stop], weights[start:stop])
        start, k = stop, k + 1
    return sketch


def largest_shift(sketch, numbers, weights):
    """Return by how much of the weight below a threshold, or up to it, the points are off, at most, as a share of all."""
    points, standing = sketch.points()
    shifts = []
    for side in ("left", "right"):
        below = []
        for z, w in ((numbers, weights), (points, standing)):
            order = np.argsort(z)
            places = np.searchsorted(z[order], np.unique(np.r_[numbers, points]), side=side)
            below.append(np.r_[0.0, np.cumsum(w[order])][places])
        shifts.append(np.abs(below[0] - below[1]).max())
    return max(shifts) / weights.sum()


# ------------------------------------------------------------------------------------------------ one class


@st.composite
def streams(draw):
    """Draw numbers and weights of several kinds, sizes of blocks, and a size of the parts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, size = draw(st.integers(1, 500)), draw(st.sampled_from([1, 2, 8, 16]))
    numbers, weights = (draw(st.sampled_from(list(kinds)))(rng, n) for kinds in (KINDS.values(), WEIGHTS.values()))
    sizes = draw(st.lists(st.one_of(st.integers(1, 20), st.integers(1, 200)), min_size=1, max_size=6))
    order = draw(st.sampled_from(list(ORDERS.values())))(numbers)
    return numbers[order], weights[order], sizes, size


@examples(200)
@given(streams())
def test_ranks_are_off_by_the_stated_error_at_most(stream):
    numbers, weights, sizes, size = stream
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_sketch, "SIZE", size)
        sketch = sketched(numbers, weights, sizes)
        points, standing = sketch.points()
    assert standing.sum() == pytest.approx(weights.sum(), rel=ROUNDING)
    assert sketch.weight == pytest.approx(weights.sum(), rel=ROUNDING)
    assert (standing > 0.0).all()
    assert np.isin(points, numbers).all(), "points are numbers that were seen"
    assert largest_shift(sketch, numbers, weights) <= sketch.rank_error + ROUNDING
    # Every number went through 1 + log2(N / SIZE) compressions at most: parts of a depth are made of two of the one below.
    levels = 1.0 + np.log2(max(1.0, len(numbers) / size))
    assert sketch.rank_error <= 0.5 * levels / size + ROUNDING
    assert len(points) <= (1.0 + levels) * size
    assert len(sketch.parts) <= levels


@examples(100)
@given(
    st.lists(
        st.tuples(st.sampled_from([-1e300, -1.0, 0.0, -0.0, 5e-324, 2.0, 1e300]), st.floats(1e-3, 1e3)),
        min_size=1, max_size=40,
    ),
    st.integers(1, 40),
)  # fmt: skip
def test_ranks_of_few_levels_are_off_by_the_stated_error_at_most(rows, block):
    numbers, weights = (np.array(column) for column in zip(*rows, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_sketch, "SIZE", 4)
        sketch = sketched(numbers, weights, [block])
        assert largest_shift(sketch, numbers, weights) <= sketch.rank_error + ROUNDING


@for_each("blocks", [1, 2, 4, 8, 16])
def test_the_error_is_half_a_point_for_every_compression(small, blocks):
    """2^d blocks are compressed d + 1 times each; the stated error must have all of them, as the true one may."""
    numbers = np.random.default_rng(0).standard_normal(blocks * 3 * small)
    sketch = sketched(numbers, np.ones(len(numbers)), [3 * small])
    assert len(sketch.parts) == 1
    assert sketch.parts[0].depth == 1 + np.log2(blocks)
    assert sketch.rank_error == pytest.approx(0.5 * (1 + np.log2(blocks)) / small, rel=ROUNDING)


def test_the_error_of_several_parts_is_their_mean_by_weight(small):
    sketch = sketched(np.arange(3.0 * 32), np.ones(96), [32])
    assert [part.depth for part in sketch.parts] == [2, 1]
    # Two thirds of the numbers were compressed twice, a third once; each time half a point of the share 1/16 goes.
    assert sketch.rank_error == pytest.approx((2 / 3 * 2 + 1 / 3) * 0.5 / small, rel=ROUNDING)
    before = sketch.rank_error * sketch.weight
    sketch.add(np.arange(4.0), np.ones(4))
    assert sketch.rank_error * sketch.weight == pytest.approx(before, rel=ROUNDING), "loose numbers are exact"


def test_one_huge_block_is_stood_for_by_its_quantiles():
    numbers = np.random.default_rng(0).permutation(100_000).astype(float)
    sketch = sketched(numbers, np.ones(len(numbers)), [len(numbers)])
    points, standing = sketch.points()
    size = score_sketch.SIZE
    assert len(points) == size
    assert np.array_equal(standing, np.full(size, 100_000 / size))
    assert sketch.rank_error == 0.5 / size
    assert largest_shift(sketch, numbers, np.ones(len(numbers))) <= 0.5 / size + ROUNDING
    # The k-th point is the number with (k + 1/2) N / SIZE numbers up to it, so the mean of the points is that of the numbers
    # but for half a number.
    assert points.mean() == pytest.approx(numbers.mean(), abs=0.5)


@for_each("weights", WEIGHTS.values(), labels=WEIGHTS)
@for_each("numbers", KINDS.values(), labels=KINDS)
def test_all_numbers_are_kept_up_to_the_size_of_a_part(small, numbers, weights):
    rng = np.random.default_rng(0)
    z, w = numbers(rng, small), weights(rng, small)
    for sizes in ([1], [5], [small]):
        sketch = sketched(z, w, sizes)
        points, standing = sketch.points()
        assert sketch.rank_error == 0.0
        assert not sketch.parts
        assert sorted(zip(points, standing, strict=True)) == sorted(zip(z, w, strict=True))
        sketch.add(np.zeros(1), np.ones(1))
        assert sketch.rank_error > 0.0
        assert len(sketch.parts) == 1


def test_equal_numbers_are_exact_however_many(small):
    sketch = sketched(np.full(1000, 2.5), np.ones(1000), [7, 100])
    points, standing = sketch.points()
    assert (points == 2.5).all()
    assert standing.sum() == pytest.approx(1000.0, rel=ROUNDING)


def test_a_number_that_weighs_nearly_all_is_kept(small):
    """Weights decide, not counts: of 17 numbers one is 99 % of the weight, so nearly all points are that number."""
    sketch = sketched(np.arange(17.0), np.r_[np.ones(8), 1600.0, np.ones(8)], [17])
    points, _ = sketch.points()
    assert np.count_nonzero(points == 8.0) >= small - 1


def test_nothing_is_a_stream_too():
    sketch = ScoreSketch()
    sketch.add(np.zeros(0), np.zeros(0))
    assert sketch.rank_error == sketch.weight == 0.0
    assert [len(column) for column in sketch.points()] == [0, 0]


def test_what_was_added_is_not_changed_and_not_kept_as_it_lies(small):
    numbers, weights = np.array([3.0, 1.0, 2.0]), np.ones(3)
    sketch = ScoreSketch()
    sketch.add(numbers, weights)
    assert numbers.tolist() == [3.0, 1.0, 2.0]
    numbers[:], weights[:] = 9.0, 9.0
    assert [column.tolist() for column in sketch.points()] == [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]


@for_each("order", ORDERS.values(), labels=ORDERS)
def test_the_error_stays_small_in_any_order_of_a_long_stream(order):
    """Half a percent is what the docstring promises up to a billion; 200 000 numbers stay below 0.2 %."""
    numbers = np.random.default_rng(1).standard_normal(200_000)
    numbers = numbers[order(numbers)]
    weights = np.ones(len(numbers))
    sketch = sketched(numbers, weights, [5000])
    assert sketch.rank_error <= 0.5 * (1 + np.log2(200_000 / score_sketch.SIZE)) / score_sketch.SIZE < 0.002
    assert largest_shift(sketch, numbers, weights) <= sketch.rank_error + ROUNDING
    assert len(sketch.points()[0]) <= (2 + np.log2(200_000 / score_sketch.SIZE)) * score_sketch.SIZE


# ------------------------------------------------------------------------------------------------ both classes, later half


def blocks_of(sizes, seed=0, share=0.3, weighted=False):
    """Yield (sign, scores, weight) of blocks, each with both classes; the scores of all blocks differ."""
    rng = np.random.default_rng(seed)
    for m in sizes:
        sign = np.where(rng.random(m) < share, 1, -1)
        sign[:2] = 1, -1
        yield (
            sign,
            sign + 1.5 * rng.standard_normal(m),
            rng.integers(0, 4, m) + (np.arange(m) < 2.0) if weighted else None,
        )


def weight_of(block):
    sign, _, weight = block
    return float(len(sign) if weight is None else weight.sum())


def weight_in_sketch(recent):
    return sum(sketch.weight for pair in recent.generations for sketch in pair)


def latest(blocks, weight):
    """Return the last blocks, joined, that weigh so much together."""
    found, total = [], 0.0
    for block in reversed(blocks):
        if total >= weight:
            break
        found.append(block)
        total += weight_of(block)
    assert total == weight, "whole blocks are kept"
    ones = [np.ones(len(sign)) if weight is None else weight for sign, _, weight in found]
    return np.concatenate([b[0] for b in found]), np.concatenate([b[1] for b in found]), np.concatenate(ones)


SIZES = st.one_of(
    st.lists(st.integers(2, 40), min_size=1, max_size=60),
    st.lists(st.sampled_from([2, 3, 300]), min_size=1, max_size=40),
    st.tuples(st.integers(2, 9), st.integers(1, 150)).map(lambda pair: [pair[0]] * pair[1]),
)


@examples(60)
@given(SIZES, st.booleans(), st.integers(0, 1000))
def test_the_later_half_is_held_and_an_eighth_and_a_block_more_at_most(sizes, weighted, seed):
    recent, blocks = RecentScores(), []
    for block in blocks_of(sizes, seed, weighted=weighted):
        recent.add(*block)
        blocks.append(block)
        total, in_sketch = sum(map(weight_of, blocks)), weight_in_sketch(recent)
        assert recent.total == total
        assert 2.0 * in_sketch >= total
        # All but the oldest generation are less than a half, and it has an eighth of what came until its end, and a block:
        # kept <= rest + (total - rest) / 8 + block with rest <= total / 2.
        assert in_sketch <= 0.5625 * total + max(map(weight_of, blocks))
        assert (
            len(recent.generations) <= 12
        )  # an eighth each: 8/7 more rows from one to the next, and 8/3 of them in all
        sign, scores, weight = latest(blocks, in_sketch)
        held = [column for generation in recent.generations for column in generation]
        for side in (0, 1):
            points = np.sort(np.concatenate([sketch.points()[0] for sketch in held[side::2]]))
            mine = (sign == (-1, 1)[side]) & (weight > 0)
            assert np.array_equal(points, np.sort(scores[mine])), "the scores of the later blocks and no others"


@for_each("measure", ["f1", "gmean", "accuracy", "min_tpr_tnr"])
@for_each("weighted", [False, True])
def test_the_threshold_is_the_best_of_the_later_scores(measure, weighted):
    """Up to SIZE scores of a class in a generation nothing is lost; counts of integer weights are exact in any order."""
    recent, blocks = RecentScores(), []
    for block in blocks_of([20, 50, 7, 2, 100] * 8, weighted=weighted):
        recent.add(*block)
        blocks.append(block)
        sign, scores, weight = latest(blocks, weight_in_sketch(recent))
        assert recent.rank_error == 0.0
        assert recent.best_threshold(get_measure(measure)) == best_threshold(sign, scores, get_measure(measure), weight)
    assert len(sign) < 0.7 * sum(len(b[0]) for b in blocks), "early scores were let go"


def test_early_scores_have_no_say_in_the_threshold():
    """A model that learns: early scores are of another scale and would move the threshold."""
    recent, later = RecentScores(), []
    for k, (sign, scores, weight) in enumerate(blocks_of([100] * 40)):
        block = sign, scores + (1000.0 if k < 15 else 0.0), weight
        recent.add(*block)
        later.append(block)
    assert recent.best_threshold(get_measure("gmean")) == best_threshold(
        *latest(later, weight_in_sketch(recent))[:2], get_measure("gmean")
    )
    assert abs(recent.best_threshold(get_measure("gmean")).threshold) < 2.0


@for_each("side", [-1, 1])
def test_a_class_that_the_later_half_lacks_is_kept(side):
    recent, rng = RecentScores(), np.random.default_rng(0)
    blocks = [(np.array([side] * 5), rng.standard_normal(5), None)]
    blocks += [(np.full(20, -side), rng.standard_normal(20), None) for _ in range(40)]
    for block in blocks:
        recent.add(*block)
    assert sum(pair[(side + 1) // 2].weight for pair in recent.generations) == 5.0
    tuned, others = (
        recent.best_threshold(get_measure("balanced_accuracy")),
        latest(blocks[1:], weight_in_sketch(recent) - 5.0),
    )
    sign, scores = (np.concatenate([early, late]) for early, late in zip(blocks[0][:2], others[:2], strict=True))
    assert tuned == best_threshold(sign, scores, get_measure("balanced_accuracy"))
    assert weight_in_sketch(recent) <= 0.5625 * recent.total + 20 + 5, "the other class of old rows is let go"
    # As soon as both are there, what is old goes.
    for block in blocks_of([50] * 40):
        recent.add(*block)
    assert weight_in_sketch(recent) <= 0.5625 * recent.total + 50
    assert recent.generations[0][0].weight + recent.generations[0][1].weight < 0.2 * recent.total


def counts_at(sign, scores, weight, threshold):
    above = scores > threshold
    return weight[above & (sign > 0)].sum(), weight[above & (sign < 0)].sum()


def value_if_off(measure, counts, sums, off):
    """Return the measure with ranks off by a share `off` of either class, for the better if it is positive."""
    tp, fp = np.clip(counts[0] + off * sums[0], 0, sums[0]), np.clip(counts[1] - off * sums[1], 0, sums[1])
    return float(measure.from_counts(tp, fp, sums[0] - tp, sums[1] - fp))


@for_each("measure", ["f1", "gmean"])
@for_each("weighted", [False, True])
@for_each("size", [16, 64, 2048])
def test_a_compressed_threshold_is_as_good_as_its_error_allows(monkeypatch, measure, weighted, size):
    monkeypatch.setattr(score_sketch, "SIZE", size)
    measure, recent, blocks = get_measure(measure), RecentScores(), []
    for block in blocks_of([1000, 3000, 500] * 10, share=0.1, weighted=weighted):
        recent.add(*block)
        blocks.append(block)
    rows = latest(blocks, weight_in_sketch(recent))
    sign, scores, weight = rows
    sums, error, tuned = (
        [weight[sign > 0].sum(), weight[sign < 0].sum()],
        recent.rank_error,
        recent.best_threshold(measure),
    )
    assert 0.0 < error <= 0.5 * (1 + np.log2(weight.sum() / size)) / size
    got, ideal = counts_at(*rows, tuned.threshold), best_threshold(sign, scores, measure, weight)
    best = counts_at(*rows, ideal.threshold)
    slack = 1e-9  # sums of ten thousand weights of a part
    # The measure of the points at a threshold is that of counts off by the error, for either threshold.
    assert (
        value_if_off(measure, got, sums, -error) - slack
        <= tuned.value
        <= value_if_off(measure, got, sums, error) + slack
    )
    assert tuned.value >= value_if_off(measure, best, sums, -error) - slack
    reached = value_if_off(measure, got, sums, 0.0)
    assert reached <= ideal.value + slack
    # 16 points for 3 % of a rank, 2048 for 0.02 %: F1 at a tenth of positives moves by some tens of that, G-mean by one.
    assert reached >= ideal.value - {16: 0.1, 64: 0.02, 2048: 0.002}[size]


def test_the_error_of_both_classes_is_the_larger_one(small):
    recent = RecentScores()
    sign = np.r_[np.full(10, 1), np.full(100, -1)]
    recent.add(sign, np.arange(110.0), None)
    assert recent.rank_error == 0.5 / small  # negatives compressed once; positives are kept as they are
    recent.add(np.r_[np.full(20, 1), np.full(5, -1)], np.arange(25.0), None)
    # 20 of 30 positives and 100 of 105 negatives are not exact.
    assert recent.rank_error == pytest.approx(0.5 / small * 100 / 105, rel=ROUNDING)


def test_rows_of_weight_zero_are_not_there(small):
    rng = np.random.default_rng(0)
    sign, scores, weight = (
        np.where(rng.random(500) < 0.3, 1, -1),
        rng.standard_normal(500),
        rng.integers(0, 3, 500) * 1.0,
    )
    one, other = RecentScores(), RecentScores()
    for k in range(0, 500, 100):
        rows = np.arange(k, k + 100)
        one.add(sign[rows], scores[rows], weight[rows])
        rows = rows[weight[rows] > 0]
        other.add(sign[rows], scores[rows], weight[rows])
    assert one.best_threshold(get_measure("f1")) == other.best_threshold(get_measure("f1"))
    assert one.rank_error == other.rank_error


def test_memory_grows_with_the_logarithm_of_the_stream(small):
    """12 generations of two sketches, each of 2 + log2(N / SIZE) parts at most."""
    recent, rng = RecentScores(), np.random.default_rng(0)
    for k in range(1, 1001):
        sign = np.where(rng.random(50) < 0.5, 1, -1)
        recent.add(sign, rng.standard_normal(50), None)
        if k in (10, 100, 1000):
            points = sum(len(sketch.points()[0]) for pair in recent.generations for sketch in pair)
            assert points <= 12 * 2 * (2 + np.log2(50 * k / small)) * small
            assert len(recent.generations) <= 12


def test_a_class_that_no_longer_comes_does_not_let_memory_grow(small):
    recent, rng = RecentScores(), np.random.default_rng(0)
    recent.add(np.array([1, -1]), np.zeros(2), None)
    for _ in range(2000):
        recent.add(np.full(50, -1), rng.standard_normal(50), None)
    assert len(recent.generations) <= 12
