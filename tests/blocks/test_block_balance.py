"""The balancing bias of scores in blocks: the one that the kernel finds with all rows in one memory."""

import numpy as np
import pytest
from block_layouts import both_spaces, even_spans, in_blocks, layout_of

from cases import for_each
from scoreline import kernels
from scoreline.distributed import balance as block_balance
from scoreline.distributed import selection
from tiers import TIER, tiered

N = 20_000 if TIER == "quick" else 100_000
EPS = float(np.finfo(float).eps)
# The largest relative difference of two sums of the same N terms of one sign: each has an error of at most N EPS / 2 in any
# order of its terms. How many running sums a compiled kernel keeps, and so its error, depends on the processor.
ANY_ORDER = N * EPS
WIDTHS = (0.0, 1e-12, 1e-6, 1e-2, 0.3, 10.0)


def labels_with(share, n):
    y = np.where(np.random.default_rng(1).random(n) < share, 1, -1)
    y[0], y[1] = 1, -1
    return y


def scores(name, n, y):
    rng = np.random.default_rng(2)
    z = rng.standard_normal(n)
    return {
        "gaussian": z + 0.5 * y,
        "far from 0": 1e6 + z,
        "ties": np.round(z, 1),
        "all equal": np.full(n, 0.3),
        "zeros": np.zeros(n),
        "separated": 3.0 * y + 0.1 * z,
        "wrong way": -3.0 * y + 0.1 * z,
        "heavy tails": rng.standard_cauchy(n),
    }[name]


NAMES = ("gaussian", "far from 0", "ties", "all equal", "zeros", "separated", "wrong way", "heavy tails")
CASES = [
    *((name, 0.1) for name in NAMES),
    *((name, share) for name in ("gaussian", "all equal", "ties") for share in (0.0, 0.5, 0.9)),
]  # share 0: one positive
ROUNDS = ("few", "many")  # "few" must come first: constants that are changed stay so until the end of a test


def make_many_rounds(monkeypatch):
    """With few kinks sent and few intervals counted, a root takes several rounds; constants are read at every call."""
    for module, name, value in (
        (block_balance, "MAX_SENT_KINKS", 16),
        (block_balance, "INTERVALS", 32),
        (selection, "INTERVALS", 32),
        (selection, "MAX_SENT_ENTRIES", 16),
        (selection, "SAMPLE", 64),
    ):
        monkeypatch.setattr(module, name, value)


def both(z, y, weight, parts=4):
    """Return (space, scores, labels) of the host and in blocks."""
    layout = layout_of(even_spans(len(z), parts))
    (host, here), (blocks, there) = both_spaces(y, weight, layout)
    return (host, z, here), (blocks, in_blocks(layout, z), there)


def betas(z, y, s, offset, width, found):
    """Return beta, and the weight on the ramp: rows at its ends, to rounding, may be on it on the host."""
    t = np.where(y > 0, ((offset - z) - found.base) - found.shift, (z + found.base) + found.shift) / width
    return np.clip(t, 0.0, 1.0), float(s[(t > -1e-9) & (t < 1.0 + 1e-9)].sum())


def rounding_of_sums(places, base, width):
    """Return the relative imbalance that `kernels.balance` may leave: rounding of sums over the rows near the bias."""
    return EPS * max(32.0, np.count_nonzero(np.abs(places - base) <= 2.0 * width))  # as ANY_ORDER


def excess_before(places, y, s, base, width):
    """Return the excess at the left end, from which k-section counts down: its roundings are relative to that.

    512 of them are four times the root of the 16 384 kinks that four parts send, over which two running sums go.
    """
    t = np.where(y > 0, (places - base) + width, (base - places) - width)
    moved = np.clip(t / width, 0.0, 1.0) * s
    return float(moved[y > 0].sum() - moved[y < 0].sum())


@for_each(["rounds", "name", "share"], tiered([(rounds, *case) for rounds in ROUNDS for case in CASES], strength=1))
def test_bias_is_that_of_the_kernel(rounds, name, share, monkeypatch):
    """Counts and integer weights have exact sums: the same base bit for bit. Its shift has the roundings of sums over rows."""
    if rounds == "many":
        make_many_rounds(monkeypatch)
    y = labels_with(share, N)
    z, integers = scores(name, N, y), np.random.default_rng(3).integers(1, 4, N).astype(float)
    for weight in (None, integers):
        _, (_, blocks, labels) = both(z, y, weight)
        s = np.ones(N) if weight is None else weight
        for width in WIDTHS:
            expected = kernels.balance.balance(z, y.astype(np.int8), weight, 1.0, width)
            found = block_balance.balance(labels.rows(blocks), 1.0, width, labels.positive)
            assert found.base == expected.base
            assert found.base == block_balance.base_of(labels.rows(blocks), 1.0, labels.positive)
            if width == 0.0:
                assert found.shift == 0.0
                np.testing.assert_allclose(found.parts, expected.parts, rtol=4 * EPS)
                continue
            assert abs(found.shift) <= width
            moved, active = betas(z, y, s, 1.0, width, found)
            above, below = float((s * moved)[y > 0].sum()), float((s * moved)[y < 0].sum())
            places = np.where(y > 0, 1.0, 0.0) - z
            allowed = 512.0 * EPS * excess_before(places, y, s, found.base, width)
            allowed += rounding_of_sums(places, found.base, width) * max(above, below)
            assert abs(above - below) <= allowed + 8.0 * EPS * active
            if active > 0.0:  # the excess falls by active / width: on a flat piece any shift is right
                assert found.shift == pytest.approx(
                    expected.shift, rel=0, abs=width * (2.0 * allowed / active + 16.0 * EPS)
                )


@for_each(["name", "share"], tiered(CASES, strength=1))
def test_sums_and_gradients_are_those_of_the_host(name, share):
    """Both betas balance to rounding, so they differ by no more than two roundings of the sums, over the weight on the ramp."""
    y = labels_with(share, N)
    z, real = scores(name, N, y), np.random.default_rng(3).uniform(0.1, 2.0, N)
    real[np.random.default_rng(4).random(N) < 0.1] = 0.0
    real[:2] = 1.0
    for weight in (None, real):
        (host, _, here), (space, blocks, there) = both(z, y, weight)
        spread = float(np.abs(z - np.median(z)).sum()) + N
        for width in WIDTHS:
            a, b = host.balance_sums(z, here, 1.0, width, 0.5), space.balance_sums(blocks, there, 1.0, width, 0.5)
            assert b.moved == pytest.approx(a.moved, rel=ANY_ORDER)
            assert b.smooth == pytest.approx(a.smooth, rel=ANY_ORDER, abs=4 * EPS * spread)
            assert b.hard == pytest.approx(a.hard, rel=ANY_ORDER, abs=4 * EPS * spread)
            grad = np.asarray(b.grad)
            found = block_balance.balance(there.rows(blocks), 1.0, width, there.positive)
            s, places = np.ones(N) if weight is None else weight, np.where(y > 0, 1.0, 0.0) - z
            rounding = rounding_of_sums(places, found.base, width)
            if width > 0.0:
                moved, active = betas(z, y, s, 1.0, width, found)
                off = rounding * b.moved + 512.0 * EPS * excess_before(places, y, s, found.base, width)
            else:
                active, off = float(s[places == found.base].sum()), rounding * b.moved
            # An imbalance shows in the rows on the ramp (or tied), and in the share by which a class is scaled down.
            off = off / active if active > 0.0 else 0.0
            np.testing.assert_allclose(grad, a.grad, rtol=2.0 * rounding, atol=0.5 * s.max() * (2.0 * off + 16.0 * EPS))
            # What came with the round is what another would bring, to the rounding of a sum of n terms that may be equal.
            mass = float(np.abs(grad).sum())
            assert space.total(b.grad) == pytest.approx(grad.sum(), rel=0, abs=ANY_ORDER * mass)
            assert abs(grad.sum()) <= ANY_ORDER * mass, "the classes must balance"
            expected, size = float(grad @ z), float(np.abs(grad) @ np.abs(z))
            assert space.dot(b.grad, blocks) == pytest.approx(expected, rel=0, abs=ANY_ORDER * size)
            assert space.max_abs(blocks, there) == host.max_abs(z, here)
            if width == 0.3:
                plain = space.balance_sums(blocks, there, 1.0, width, 0.5, grad=False)
                assert plain.grad is None
                assert (plain.smooth, plain.hard, plain.moved) == (b.smooth, b.hard, b.moved)
                on_ramp = np.asarray(space.balance_curvatures(blocks, there, 1.0, width))
                differ = np.flatnonzero(on_ramp != host.balance_curvatures(z, here, 1.0, width))
                ends = np.minimum(moved, 1.0 - moved)[differ]  # only rows on an end of the ramp, to rounding
                assert (ends <= 2.0 * off + 16.0 * EPS).all()
        bias, allowed = space.balancing_bias(blocks, there, 1.0), ANY_ORDER * here.total
        assert s[places <= bias].sum() >= here.positive - allowed
        assert s[places < bias].sum() <= here.positive + allowed
        if weight is None:  # real weights may or may not reach the target at a gap between places
            assert bias == host.balancing_bias(z, here, 1.0)


def test_small_constants_make_many_rounds(monkeypatch):
    """Without them the tests above would hardly look at k-section of the bias at all."""
    y = labels_with(0.2, N)
    _, (_, blocks, labels) = both(scores("gaussian", N, y), y, None)

    def rounds_of_the_shift():
        cluster = blocks.layout.cluster
        base, before = block_balance.base_of(labels.rows(blocks), 1.0, labels.positive), cluster.rounds
        block_balance._shift(labels.rows(blocks), 1.0, base, 0.3)
        return cluster.rounds - before

    assert rounds_of_the_shift() < 3
    make_many_rounds(monkeypatch)
    assert rounds_of_the_shift() >= 3


@for_each("parts", [1, 2, 7])
def test_gaussian_scores_take_few_rounds(parts):
    """Three for the selection, at most two more for the root where the ramp holds many rows."""
    y = labels_with(0.2, N)
    _, (_, blocks, labels) = both(scores("gaussian", N, y), y, None, parts)
    cluster = blocks.layout.cluster
    for width in WIDTHS:
        before = cluster.rounds
        block_balance.balance(labels.rows(blocks), 1.0, width, labels.positive)
        assert cluster.rounds - before <= 5


@for_each("row", [0, N // 2, N - 1])
def test_nan_reaches_the_sums(row):
    """A solver that has left the range of floats must learn of it, whichever part has the NaN."""
    y = labels_with(0.2, N)
    z = scores("gaussian", N, y)
    z[row] = np.nan
    _, (space, blocks, labels) = both(z, y, None)
    for width in (0.0, 0.1):
        assert np.isnan(space.balance_sums(blocks, labels, 1.0, width).hard)


def test_parts_with_one_class():
    """Rows sorted by class: a part knows nothing of the other one."""
    y = np.sort(labels_with(0.3, N))
    z = scores("gaussian", N, y)
    (host, _, here), (space, blocks, there) = both(z, y, None, 5)
    for width in WIDTHS:
        a, b = host.balance_sums(z, here, 1.0, width), space.balance_sums(blocks, there, 1.0, width)
        assert b.smooth == pytest.approx(a.smooth, rel=ANY_ORDER)
        np.testing.assert_allclose(np.asarray(b.grad), a.grad, rtol=1e-11, atol=1e-12)
