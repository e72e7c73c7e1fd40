"""Scores on a device: every risk gives what it gives on the host."""

import numpy as np
import pytest
from device_arrays import LIBRARIES, vector
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from risk_variants import RISKS, problem
from scoreline.gpu import score_space
from scoreline.gpu.score_space import Space as DeviceSpace
from scoreline.scores import HostSpace, smallest_reaching, space_of
from tiers import examples


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("risk", RISKS.values())
def test_risks_are_those_of_the_host(risk, library):
    """Derivatives on a ramp are differences of running sums over its width: a part of 1e-12 / width of their sum."""
    for seed in range(8):
        z, y, s = problem(seed)
        for weight in (None, s):
            here = risk.prepare(y, weight)
            there = risk.prepare(vector(y, library), vector(weight, library), DeviceSpace())
            assert there.labels.positive == here.labels.positive
            assert there.labels.n_negative == here.labels.n_negative
            assert there.fingerprint() == here.fingerprint()
            scores, size = vector(z, library), max(1.0, np.abs(z).max())
            for mu in (0.0, 1e-4, 0.31) if risk.smoothable else (0.0,):
                mu /= here.ramp_scale or 1.0
                a, b = here.evaluate(z, mu), there.evaluate(scores, mu)
                width = mu * here.ramp_scale
                tolerance = 1e-13 * size * risk.steepness / min(1.0, width or 1.0)
                # The partial ROC area multiplies slopes by how far scores were lifted, which is as much as they differ.
                lifted = size if risk.name == "partial_roc" and width else 1.0
                for name in ("value", "hard", "plane", "mass"):
                    assert getattr(b, name) == pytest.approx(
                        getattr(a, name), rel=1e-12, abs=max(1e-12 * size, tolerance) * lifted
                    ), name
                assert b.hard == pytest.approx(there.evaluate(scores, mu, grad=False).hard, abs=1e-13 * size)
                np.testing.assert_allclose(np.asarray(b.grad), a.grad, atol=max(1e-15, tolerance), rtol=1e-9)
                hessians = here.hessian(z, mu), there.hessian(scores, mu)
                assert (hessians[0] is None) == (hessians[1] is None)
                if hessians[0] is not None:
                    np.testing.assert_allclose(
                        np.asarray(hessians[1].diagonal), hessians[0].diagonal, rtol=1e-9, atol=tolerance
                    )
                    for (u, factor), (v, other) in zip(hessians[0].rank_one, hessians[1].rank_one, strict=True):
                        np.testing.assert_allclose(np.asarray(v), u, rtol=1e-9, atol=tolerance)
                        assert other == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_operations_on_scores(library):
    z, y, s = problem(1)
    host, device = HostSpace(), space_of(vector(z, library))
    assert isinstance(device, DeviceSpace)
    for weight in (None, s):
        here, there = host.labels(y, weight), device.labels(vector(y, library), vector(weight, library))
        x, zs = np.abs(z), vector(z, library)
        numbers = [
            (space.dot(a, a), space.max_abs(a, labels), space.span(a, labels), space.total(a), space.is_finite(a))
            for space, a, labels in ((host, z, here), (device, zs, there))
        ]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-13)
        for name, arguments in (
            ("select", (1,)), ("weighted", ()), ("per_weight", ()), ("significant", (0.05,)),
        ):  # fmt: skip
            wanted = getattr(host, name)(x, here, *arguments)
            np.testing.assert_allclose(
                np.asarray(getattr(device, name)(vector(x, library), there, *arguments)), wanted, rtol=1e-15
            )
        np.testing.assert_array_equal(np.asarray(device.combine(2.0, zs, -1.0, zs)), z)
        np.testing.assert_array_equal(np.asarray(device.zeros(there)), 0.0)
        assert device.balancing_bias(zs, there, 0.7) == host.balancing_bias(z, here, 0.7)
        halved = device.reweighted(there, vector(np.full(len(z), 0.5), library))
        assert halved.positive == 0.5 * here.positive
    assert not device.is_finite(vector(np.array([1.0, np.nan]), library))
    with pytest.raises(ValueError, match="one for each label"):
        device.point_sums("hinge", vector(z[:5], library), there)


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([1e-9, 1.0, 1e9]),
    width=st.sampled_from([0.0, 1e-6, 0.1, 3.0]),
    margin=st.sampled_from([0.0, 1.0]),
)
def test_pairs_of_any_scores(seed, spread, width, margin):
    """Against all pairs, one by one; errors are relative to the size of scores over the width."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    y = np.where(rng.random(n) < rng.random(), 1, -1)
    y[0], y[1] = 1, -1
    z = np.round(spread * rng.standard_normal(n), int(rng.integers(0, 12)))
    s = rng.integers(1, 4, n).astype(float)
    t = margin - z[y > 0][:, None] + z[y < 0][None, :]
    lost = (z[y > 0] - margin == z[y > 0])[:, None] & (margin > 0) & (z[y < 0][None, :] == z[y > 0][:, None])
    beta = np.clip(t / width, 0.0, 1.0) if width else ((t > 0.0) | lost).astype(float)
    pairs = np.outer(s[y > 0], s[y < 0])
    space = DeviceSpace()
    labels = space.labels(vector(y, "array-api-strict"), vector(s, "array-api-strict"))
    sums = space.pair_sums(vector(z, "array-api-strict"), labels, width, 1.0, margin=margin)
    grad = np.empty(n)
    grad[y > 0], grad[y < 0] = -(pairs * beta).sum(axis=1), (pairs * beta).sum(axis=0)
    size = max(1.0, np.abs(z).max())
    near = width > 0.0 and spread * 1e-15 > 1e-9 * width  # the ramp is finer than the digits of the scores
    if not near:
        np.testing.assert_allclose(
            np.asarray(sums.grad), grad, atol=1e-13 * pairs.sum() * size / min(1.0, width or 1.0)
        )
    assert sums.hard == pytest.approx((pairs * np.maximum(t, 0.0)).sum(), abs=1e-12 * size * pairs.sum())


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("kind", ["normal", "sorted", "ties", "equal", "heavy tails"])
@for_each("weighted", [False, True])
def test_selection_by_a_sample_is_exact(kind, weighted, library, monkeypatch):
    monkeypatch.setattr(score_space, "SAMPLE", 64)
    rng = np.random.default_rng(0)
    n = 3000
    x = {
        "normal": rng.standard_normal(n),
        "sorted": np.sort(rng.standard_normal(n)),
        "ties": np.round(rng.standard_normal(n), 1),
        "equal": np.full(n, 0.5),
        "heavy tails": rng.standard_cauchy(n) ** 3,
    }[kind]
    s = rng.integers(0, 4, n).astype(float) if weighted else None
    order = np.argsort(x, kind="stable")
    running = np.cumsum(np.ones(n) if s is None else s[order])
    for target in (1.0, 2.0, 0.3 * running[-1], 0.5 * running[-1], running[-1] - 1.0, running[-1]):
        wanted = x[order[np.searchsorted(running, target)]]
        assert smallest_reaching(vector(x, library), vector(s, library), target) == wanted


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_rank_is_found(library, monkeypatch):
    """Also those at the ends of the bracket that a sample gives."""
    monkeypatch.setattr(score_space, "SAMPLE", 16)
    mixed = np.random.default_rng(1).permutation(200).astype(float)
    misleading = np.empty(200)  # the sample has the largest entries only
    misleading[::12], misleading[np.arange(200) % 12 > 0] = np.arange(183.0, 200.0), np.arange(183.0)
    for x in (mixed, misleading):
        for rank in range(1, 201):
            assert smallest_reaching(vector(x, library), None, float(rank)) == rank - 1.0


@pytest.mark.parametrize("library", LIBRARIES)
def test_scores_too_large_for_the_margin_and_ramps_too_fine_for_sums(library):
    y = np.array([1, -1, 1, -1])
    host, device = HostSpace(), DeviceSpace()
    here, there = host.labels(y), device.labels(vector(y, library))
    equal = np.full(4, 1e17)  # less 1, it is the same number: still no pair is in the right order
    a, b = host.pair_sums(equal, here), device.pair_sums(vector(equal, library), there)
    assert (a.ramps, b.ramps) == (4.0, 4.0)
    assert b.hard == a.hard
    fine = np.array([0.0, -0.99997, -1e6, 1e6])  # a ramp of 1e-4 over a spread of 2e6
    sums = [
        space.pair_sums(z, labels, 1e-4)
        for space, z, labels in ((host, fine, here), (device, vector(fine, library), there))
    ]
    np.testing.assert_allclose(np.asarray(sums[1].grad), sums[0].grad, rtol=1e-12)
    curved = [
        space.pair_curvatures(z, labels, 1e-4)
        for space, z, labels in ((host, fine, here), (device, vector(fine, library), there))
    ]
    np.testing.assert_array_equal(np.asarray(curved[1]), curved[0])
