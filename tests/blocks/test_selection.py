"""`smallest_reaching` against a sort of all entries: the same entry, whatever the entries, weights and parts are."""

import math
from itertools import product

import numpy as np
import pytest
from block_layouts import both_spaces, even_spans, in_blocks, layout_of
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline.distributed import BlockVector, selection
from scoreline.distributed import balance as block_balance
from scoreline.distributed.selection import intervals, smallest_reaching
from tiers import TIER, examples, tiered


def found(values, weight, target, parts=3):
    """Return the entry, and in how many rounds it was found."""
    layout = layout_of(even_spans(len(values), parts))
    entry = smallest_reaching(in_blocks(layout, values), in_blocks(layout, weight), target)
    return entry, layout.cluster.rounds


def sorted_reference(values, weight, target):
    """Return the definition: the smallest entry at which the running weight reaches the target, the largest if none does."""
    order = np.argsort(values, kind="stable")
    running = np.cumsum(np.ones(len(values)) if weight is None else weight[order])
    return values[order[min(np.searchsorted(running, target), len(values) - 1)]]


def assert_reached_up_to_rounding(values, weight, target, entry):
    """Real weights have no exact sums: the entry must be right for a target that differs by the rounding of n additions."""
    allowed = len(values) * np.finfo(float).eps * math.fsum(weight)
    assert entry in values
    if entry < values.max():
        assert math.fsum(weight[values <= entry]) >= target - allowed
    if entry > values.min():
        assert math.fsum(weight[values < entry]) < target + allowed


def few_at_a_time(monkeypatch, few=3, count=8, sample=16):
    """Make every selection take many rounds: the constants are read at every call."""
    for name, value in (("MAX_SENT_ENTRIES", few), ("INTERVALS", count), ("SAMPLE", sample)):
        monkeypatch.setattr(selection, name, value)
    monkeypatch.setattr(block_balance, "INTERVALS", count)


ROUNDS = ("few", "many")  # "few" must come first: constants that are changed stay so until the end of a test


RNG = np.random.default_rng(5)
N = 2000
SIGNS = RNG.choice([-1.0, 1.0], N)
ENTRIES = {
    "gaussian": RNG.standard_normal(N),
    "sorted": np.sort(RNG.standard_normal(N)),
    "falling": -np.sort(RNG.standard_normal(N)),
    "ties": RNG.integers(-3, 4, N).astype(float),
    "all equal": np.full(N, 0.1),
    "all zero, either sign": np.where(RNG.random(N) < 0.5, -0.0, 0.0),
    "two entries": np.where(RNG.random(N) < 0.3, -1.0, 1e6),
    "huge": 1e300 * RNG.standard_normal(N),
    "tiny": 1e-300 * RNG.standard_normal(N),
    "denormal": 5e-324 * RNG.integers(-50, 50, N),
    "full range": 1.7e308 * RNG.uniform(-1, 1, N),
    "600 decades": SIGNS * 10.0 ** RNG.uniform(-300, 300, N),
    "tiny and huge": np.where(RNG.random(N) < 0.5, 1e-300, 1e300) * RNG.uniform(1, 2, N),
    "heavy tails": RNG.standard_cauchy(N) ** 3,
    "single floats apart": 1.0 + np.finfo(float).eps * RNG.integers(0, 40, N),
    "one far away": np.append(RNG.standard_normal(N - 1), 1e12),
    "one entry": np.array([3.5]),
    "three entries": np.array([2.0, -1.0, 0.5]),
}
WEIGHTS = {
    "none": lambda n: None,
    "integers": lambda n: np.random.default_rng(n).integers(0, 5, n).astype(float),
    "mostly 0": lambda n: (np.arange(n) % 97 == 0).astype(float),
    "zeros": lambda n: np.zeros(n),
    "one heavy": lambda n: np.where(np.arange(n) == n // 2, 1e6, 1.0),
}


@for_each(["rounds", "name", "kind"], tiered(product(ROUNDS, ENTRIES, WEIGHTS), strength=1))
def test_exact_sums_give_the_entry_of_a_sort(rounds, name, kind, monkeypatch):
    """Counts and integer weights have exact sums, so that no tolerance is needed."""
    if rounds == "many":
        few_at_a_time(monkeypatch)
    values = ENTRIES[name]
    weight = WEIGHTS[kind](len(values))
    total = float(len(values) if weight is None else weight.sum())
    targets = [0.0, 1.0, 0.5, total, total - 1.0, total + 0.5, 2.0 * total + 1.0, np.floor(total / 2), 0.37 * total]
    for parts in (1, 3) if len(values) > 2 else (1,):
        for target in targets:
            assert found(values, weight, target, parts)[0] == sorted_reference(values, weight, target), target


@for_each(["rounds", "name", "scale"], tiered(product(ROUNDS, ENTRIES, [1.0, 1e-200, 1e-320, 1e300]), strength=1))
def test_real_weights_give_an_entry_that_rounding_allows(rounds, name, scale, monkeypatch):
    """Targets are partial sums themselves, in the order of a sort: whether they are reached is decided by last digits.

    Squares of the small and of the large weights leave the range of floats. The small ones are curvatures of a logistic loss.
    """
    if rounds == "many":
        few_at_a_time(monkeypatch)
    values = ENTRIES[name]
    rng = np.random.default_rng(len(values))
    weight = rng.random(len(values)) * (rng.random(len(values)) < 0.8) * scale
    weight[0] = scale
    running = np.cumsum(weight[np.argsort(values, kind="stable")])
    for target in (*running[:: max(1, len(running) // 7)], running[-1], 0.5 * running[-1]):
        parts = min(3, len(values))
        assert_reached_up_to_rounding(values, weight, target, found(values, weight, target, parts)[0])


def test_sums_in_another_order_end(monkeypatch):
    """Targets that one order of summation reaches and another misses must not send the search back and forth."""
    few_at_a_time(monkeypatch)
    rng = np.random.default_rng(0)
    for n in (50,) if TIER == "quick" else (50, 400):
        values, weight = rng.standard_normal(n), 10.0 ** rng.uniform(-3, 3, n)
        order = np.argsort(values)
        for running in (np.cumsum(weight[order]), weight.sum() - np.cumsum(weight[order][::-1])[::-1]):
            for target in running:
                for around in (target, np.nextafter(target, 0.0), np.nextafter(target, np.inf)):
                    assert_reached_up_to_rounding(values, weight, around, found(values, weight, around)[0])


@examples(150)
@given(data=st.data())
def test_any_entries_and_counts(data):
    finite = st.floats(-1.7e308, 1.7e308)
    values = data.draw(
        st.lists(st.one_of(finite, st.integers(-2, 2).map(float)), min_size=1, max_size=60).map(np.array)
    )
    counts = st.lists(st.integers(0, 3).map(float), min_size=len(values), max_size=len(values)).map(np.array)
    weight = data.draw(st.one_of(st.none(), counts))
    target = data.draw(st.floats(-1.0, 3.0 * len(values) + 1.0))
    parts = data.draw(st.integers(1, min(4, len(values))))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            few_at_a_time(patch, few=data.draw(st.integers(1, 4)))
        assert found(values, weight, target, parts)[0] == sorted_reference(values, weight, target)


@for_each(["rounds", "weighted"], list(product(ROUNDS, [False, True])))
def test_a_selection_with_empty_parts(rounds, weighted, monkeypatch):
    """A mask may select nothing in a part: the entries of the others count."""
    if rounds == "many":
        few_at_a_time(monkeypatch)
    rng = np.random.default_rng(1)
    values, weight = rng.standard_normal(900), rng.integers(0, 3, 900).astype(float)
    mask = (np.arange(900) >= 300) & (rng.random(900) < 0.4)
    layout = layout_of(even_spans(900, 3))
    chosen, sent = BlockVector.of(layout, values)[mask], BlockVector.of(layout, weight)[mask] if weighted else None
    own = weight[mask] if weighted else None
    total = own.sum() if weighted else np.count_nonzero(mask)
    for target in (0.0, 1.0, total // 2, total, total + 1.0):
        assert smallest_reaching(chosen, sent, float(target)) == sorted_reference(values[mask], own, target)
    nothing = BlockVector.of(layout, values)[np.zeros(900, dtype=bool)]
    assert np.isnan(smallest_reaching(nothing, None, 1.0))


@for_each("place", [0, 299, 600])
def test_nan_is_not_passed_over(place):
    """Whichever part has it."""
    values = np.random.default_rng(2).standard_normal(900)
    values[place] = np.nan
    assert np.isnan(found(values, None, 450.0)[0])


LARGE = 100_000 if TIER == "quick" else 300_000
SMOOTH = {
    "gaussian": lambda rng: rng.standard_normal(LARGE),
    "sorted": lambda rng: np.sort(rng.standard_normal(LARGE)),
    "two classes": lambda rng: rng.standard_normal(LARGE) + 3.0 * (rng.random(LARGE) < 0.1),
    "lognormal": lambda rng: np.exp(3.0 * rng.standard_normal(LARGE)),
    "cauchy": lambda rng: rng.standard_cauchy(LARGE),
}


@for_each(["name", "parts"], tiered(product(SMOOTH, [1, 4, 9]), strength=1))
def test_three_rounds_as_a_rule(name, parts):
    """One for the sample, one for counts, one for what is left in an interval; few bytes a part in each."""
    rng = np.random.default_rng(3)
    values, weight = SMOOTH[name](rng), rng.integers(0, 4, LARGE).astype(float)
    for own in (None, weight):
        total = LARGE if own is None else own.sum()
        for share in (0.001, 0.1, 0.5, 0.99):
            target, layout = float(np.floor(share * total)), layout_of(even_spans(LARGE, parts))
            sent, vector = in_blocks(layout, own), in_blocks(layout, values)
            before = layout.cluster.bytes
            assert smallest_reaching(vector, sent, target) == sorted_reference(values, own, target)
            assert layout.cluster.rounds <= 3
            # The sample has at most twice SAMPLE pairs; a part answers with at most FEW pairs, or INTERVALS counts.
            assert layout.cluster.bytes - before <= 16 * 2 * 4096 + 2 * parts * 17_000


@for_each("name", ["half tiny, half huge", "ties", "all equal", "600 decades"])
def test_rounds_of_entries_that_no_sample_foresees(name):
    """Even intervals would need a hundred rounds for 600 decades; intervals of equally many floats need seven at most."""
    rng = np.random.default_rng(4)
    values = {
        "half tiny, half huge": np.where(rng.random(LARGE) < 0.5, 1e-300, 1e300) * rng.uniform(1, 2, LARGE),
        "ties": np.round(rng.standard_normal(LARGE), 1),
        "all equal": np.full(LARGE, -2.5),
        "600 decades": rng.choice([-1.0, 1.0], LARGE) * 10.0 ** rng.uniform(-300, 300, LARGE),
    }[name]
    for target in (1.0, float(np.count_nonzero(values < 1.0)), 0.5 * LARGE, 0.9 * LARGE, LARGE):
        entry, rounds = found(values, None, target, 4)
        assert entry == sorted_reference(values, None, target)
        assert rounds <= 1 + selection.EVEN_ROUNDS + 7 + 1


@for_each(
    ["low", "high"], [(-1.0, 1.0), (-1.7e308, 1.7e308), (0.0, 5e-324), (1.0, np.nextafter(1.0, 2.0)), (-1e-300, 1e300)]
)
def test_intervals_rise_and_stay_inside(low, high):
    for even in (True, False):
        edges = intervals(low, high, even)
        assert (edges[0], edges[-1]) == (low, high)
        assert (np.diff(edges) >= 0.0).all()
        assert edges.min() >= low
        assert edges.max() <= high
        assert len(edges) == selection.INTERVALS + 1


@for_each("scale", [1.0, 1e-220])
@for_each("weighted", [False, True])
def test_significant_rows_are_those_of_the_host(weighted, scale):
    """Rows of negligible curvature are left out by both spaces alike, also where all curvatures are tiny."""
    rng = np.random.default_rng(6)
    n = 5000
    y, s = np.where(rng.random(n) < 0.3, 1, -1), rng.integers(0, 3, n).astype(float)
    x = scale * np.exp(-10.0 * rng.random(n)) * (s if weighted else 1.0)
    layout = layout_of(even_spans(n, 3))
    (host, here), (space, there) = both_spaces(y, s if weighted else None, layout)
    for negligible in (0.0, 1e-6, 1e-3, 0.1, 1.0):
        expected = host.significant(x, here, negligible)
        assert np.array_equal(np.asarray(space.significant(BlockVector.of(layout, x), there, negligible)), expected)
