"""Pairs of rows in different blocks: sums, gradients and curvatures of the host, and few bytes for them."""

from itertools import pairwise, product

import numpy as np
import pytest
from block_layouts import both_spaces, even_spans, layout_of

from cases import for_each
from scoreline.distributed import BlockVector
from tiers import TIER, tiered

N = 20_000 if TIER == "quick" else 100_000


def even_layout(n, parts, workers=2):
    return layout_of(even_spans(n, parts), workers)


def problem(share, kind="gaussian", n=N):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(n) < share, 1, -1)
    y[0], y[1] = 1, -1
    z = rng.standard_normal(n) + 0.5 * y
    if kind == "ties":
        z = np.round(z, 1)
    if kind == "all equal":
        z = np.full(n, 0.25)
    if kind == "by class":  # parts without one of the classes
        order = np.argsort(y, kind="stable")
        y, z = y[order], z[order]
    weight = rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.9)
    weight[:2] = weight[-2:] = 1.0
    return z, y, weight


def check(z, y, weight, layout, widths=(0.0, 1e-9, 0.1, 5.0), curved=True):
    """Compare with the host. Every derivative is a sum over the other class, so its error is relative to its weight there.

    1e-12 of it is a few thousand roundings: those of running sums over 1e5 rows, in blocks of other lengths. Where all scores
    are equal the roundings of a running sum of n rows do not cancel: n / 2 of them, as in the proof.
    """
    (host, here), (space, there) = both_spaces(y, weight, layout)
    blocks = BlockVector.of(layout, z)
    s = np.ones(len(z)) if weight is None else weight
    other = s * np.where(y > 0, here.negative, here.positive)
    size = here.positive * here.negative * max(1.0, float(np.abs(z).max()))
    relative = max(1e-12, len(z) * np.finfo(float).eps / 2.0) if np.ptp(z) == 0.0 else 1e-12
    for width in widths:
        a, b = host.pair_sums(z, here, width, 0.5), space.pair_sums(blocks, there, width, 0.5)
        for name in ("smooth", "ramps", "hard"):
            assert getattr(b, name) == pytest.approx(getattr(a, name), rel=relative, abs=1e-13 * size), (name, width)
        grad, uncertainty = np.asarray(b.grad), 1e-12 * other
        if width > 0.0:  # a rounding of a score moves a pair on the ramp by as much over the width
            uncertainty = uncertainty + 4.0 * np.spacing(np.abs(z).max() + 1.0) / width * host.pair_curvatures(
                z, here, width
            )
        assert (np.abs(grad - a.grad) <= 0.5 * uncertainty).all(), width
        mass = float(np.abs(a.grad).sum())
        assert space.total(b.grad) == pytest.approx(grad.sum(), rel=0, abs=1e-12 * mass)
        assert space.dot(b.grad, blocks) == pytest.approx(grad @ z, rel=0, abs=1e-12 * float(np.abs(grad) @ np.abs(z)))
        assert space.max_abs(blocks, there) == host.max_abs(z, here)
        without = space.pair_sums(blocks, there, width, 0.5, grad=False)
        assert without.grad is None
        assert (without.smooth, without.ramps, without.hard) == (b.smooth, b.ramps, b.hard)
        if width > 0.0 and curved:
            a, b = host.pair_curvatures(z, here, width), np.asarray(space.pair_curvatures(blocks, there, width))
            assert (np.abs(a - b) <= 1e-12 * other).all(), width


@for_each(["parts", "weighted"], tiered(product([1, 2, 4, 5, 9, 20], [False, True]), strength=1))
def test_any_number_of_parts(parts, weighted):
    """Up to four parts every one adds what the others send; beyond, keys and sums are merged in a tree."""
    z, y, weight = problem(0.1)
    check(z, y, weight if weighted else None, even_layout(N, parts, workers=3))


@for_each(["share", "parts"], tiered(product([0.0, 0.5, 0.9, 1.0], [3, 9]), strength=1))
def test_either_class_may_be_the_smaller(share, parts):
    """A share of 0 or 1 leaves a single key."""
    z, y, weight = problem(share)
    for own in (None, weight):
        check(z, y, own, even_layout(N, parts), widths=(0.0, 0.1))


@for_each(["kind", "parts"], tiered(product(["ties", "all equal", "by class"], [4, 9]), strength=1))
def test_ties_and_parts_without_a_class(kind, parts):
    z, y, weight = problem(0.2, kind)
    for own in (None, weight):
        check(z, y, own, even_layout(N, parts), widths=(0.0, 1e-9, 0.3))


def test_spans_out_of_order():
    """Two spans in each part, the later one first."""
    z, y, weight = problem(0.3)
    pieces = list(pairwise(np.linspace(0, N, 7).astype(int).tolist()))
    spans = [(pieces[-1 - k], pieces[k]) for k in range(3)]
    for own in (None, weight):
        check(z, y, own, layout_of(spans), widths=(0.1,))


def test_small_problems_against_all_pairs():
    """The definition itself, pair by pair: both spaces could share a mistake."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 40
        y = np.where(rng.random(n) < (0.3, 0.8)[seed % 2], 1, -1)
        y[0], y[1] = 1, -1
        z, s = np.round(rng.standard_normal(n), 1 if seed % 3 else 6), rng.integers(0, 3, n).astype(float)
        for parts in (1, 3, 7):
            layout = even_layout(n, parts)
            for weight in (None, s):
                _, (space, there) = both_spaces(y, weight, layout)
                own = np.ones(n) if weight is None else weight
                for width in (0.0, 0.25):
                    got = space.pair_sums(BlockVector.of(layout, z), there, width)
                    t = 1.0 - (z[:, None] - z[None, :])
                    both_classes = np.outer(own * (y > 0), own * (y < 0))
                    assert got.hard == pytest.approx((both_classes * np.maximum(t, 0.0)).sum(), rel=1e-13, abs=1e-13)
                    if width > 0.0:
                        slope = both_classes * np.clip(t / width, 0.0, 1.0)
                        grad = slope.sum(axis=0) - slope.sum(axis=1)
                        np.testing.assert_allclose(np.asarray(got.grad), grad, rtol=1e-12, atol=1e-12)


@for_each(["workers", "most"], [(2, 8 * N / 20), (8, 4 * 8 * (N // 100) * 7 + 2000)])
def test_bytes_of_an_evaluation(workers, most):
    """With 1 % positives on two workers a value with its gradient moves at most 1/20 of what the scores would be.

    On many workers it is the 8 k (W - 1) each way for keys and sums that `distributed/pairs.py` promises, and a few numbers.
    """
    y = np.where(np.arange(N) % 100 == 0, 1, -1)
    z = np.random.default_rng(0).standard_normal(N)
    layout = even_layout(N, workers, workers)
    _, (space, labels) = both_spaces(y, None, layout)
    blocks = BlockVector.of(layout, z)
    before = layout.cluster.bytes
    made = space.pair_sums(blocks, labels, 0.1, 1.0 / N)
    assert 0.0 < layout.cluster.bytes - before <= most
    space.dot(made.grad, blocks)
    space.total(made.grad)
    made.grad.computed()
    assert layout.cluster.bytes - before <= most, "numbers came with the evaluation, and the gradient stays"


@for_each(["operation", "times"], [("pair_sums", 20), ("balance_sums", 10)])
def test_gathering_is_the_reference_and_moves_far_more(operation, times):
    n = 100_000  # fewer rows would be sent by the k-section, too
    z, y, _ = problem(0.01, n=n)
    layout = even_layout(n, 4)
    _, (space, labels) = both_spaces(y, None, layout)
    arguments = (0.1, 1.0) if operation == "pair_sums" else (1.0, 0.1, 1.0)
    bytes_moved, results = [], []
    for call in (lambda *a: getattr(space, operation)(*a), lambda *a: space.by_gathering(operation, *a)):
        scores = BlockVector.of(layout, z)
        before = layout.cluster.bytes
        results.append(call(scores, labels, *arguments))
        bytes_moved.append(layout.cluster.bytes - before)
    few, gathered = results
    assert few.smooth == pytest.approx(gathered.smooth, rel=1e-11)
    np.testing.assert_allclose(np.asarray(few.grad), np.asarray(gathered.grad), rtol=1e-7, atol=1e-9)
    assert bytes_moved[1] > times * bytes_moved[0]
