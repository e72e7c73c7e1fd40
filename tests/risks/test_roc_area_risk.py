"""RocAreaRisk: golden values, and its O(n log n) sums against the literal sum over all pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from cases import for_each
from scoreline.risks import RocAreaRisk
from tiers import examples

EPS = np.finfo(float).eps

# Reference values derived independently of this code (cases b14 to b16 and c22 to c24 of the formula sheet).
HARD = {
    "b14": (
        [0.493, 0.1612, -0.9322, 2.8716, 0.8803, -1.1393, -0.7796, 0.087, -1.5547, 0.1686],
        [-1, -1, 1, 1, -1, -1, -1, 1, 1, -1],
        1.3324291666666668,
        [3, 3, -6, 0, 3, 2, 3, -5, -6, 3],
    ),
    "b15_ties": (
        [1.0, 0.0, 0.5, -1.0, 2.0, 2.0, -1.0, 0.5, -0.5, -0.0],
        [1, -1, -1, -1, 1, -1, 1, 1, -1, 1],
        0.98,
        [-2, 3, 4, 1, -1, 5, -5, -3, 2, -4],
    ),
    "b16_one_positive": (
        [0.5015, -0.6476, -0.2393, -0.5636, -0.1335, -1.1705, -0.438, -0.2069],
        [-1, -1, -1, -1, -1, -1, -1, 1],
        0.8224714285714286,
        [1, 1, 1, 1, 1, 1, 1, -7],
    ),
}
SMOOTH = {
    "c22": (
        [1.7847, -0.3097, -0.5928, -0.1578, -0.4813, -0.7015, 0.1382, -0.2909, 1.4389],
        [1, -1, -1, -1, -1, 1, -1, -1, 1],
        0.02,
        0.41303888888888896,
        [0.0, 1.0, 1.0, 1.0, 1.0, 6.0, 1.0, 1.0, 0.0],
    ),
    "c23_one_negative": (
        [1.4367, -0.6327, -0.8083, -0.3663, -0.1147, -1.4013, -0.0351, -1.6675, 1.3921],
        [1, 1, 1, 1, 1, 1, 1, 1, -1],
        0.3,
        1.6950955510416668,
        [0.3980833333333333, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 7.398083333333333],
    ),
    "c24_zero_scores": (
        [-0.0, -0.0, -0.0, -0.0, -0.0, 0.0, 0.0, 0.0],
        [1, -1, -1, -1, 1, -1, 1, -1],
        0.2,
        0.16666666666666663,
        [1.6666666666666665, 1.0, 1.0, 1.0, 1.6666666666666665, 1.0, 1.6666666666666665, 1.0],
    ),
}


@for_each("z, y, value, counts", HARD.values(), labels=HARD)
def test_golden_hard(z, y, value, counts):
    z, y, counts = (np.array(a, dtype=float) for a in (z, y, counts))
    prepared = RocAreaRisk().prepare(y)
    result = prepared.evaluate(z)
    pairs = prepared.ramp_scale
    # The golden file allows 1e-10; its numbers have 16 digits and these sums ten terms, so 1e-14 holds.
    assert abs(result.value - value) <= 1e-14
    assert abs(result.hard - value) <= 1e-14
    np.testing.assert_allclose(result.grad * pairs, counts, rtol=0, atol=1e-14 * pairs)
    assert abs(result.plane - counts[y < 0].sum() / pairs) <= 1e-14
    assert abs(RocAreaRisk.reference(z, y)[0] - value) <= 1e-14


@for_each("z, y, mu, value, gamma", SMOOTH.values(), labels=SMOOTH)
def test_golden_smooth(z, y, mu, value, gamma):
    z, y, gamma = (np.array(a, dtype=float) for a in (z, y, gamma))
    prepared = RocAreaRisk().prepare(y)
    got, grad, plane = prepared.smoothed(z, mu)
    pairs = prepared.ramp_scale
    # As above; the ramps here are 0.36 to 3 wide and magnify rounding threefold at most.
    assert abs(got - value) <= 1e-14
    np.testing.assert_allclose(grad, -y * gamma / pairs, rtol=0, atol=1e-14)
    assert abs(plane - gamma[y > 0].sum() / pairs) <= 1e-14


@for_each("width", [1e-10, 1e-3, 0.5, 1.0, 1.5, 1e3])
@for_each("shape", [(1, 1), (1, 9), (9, 1), (5, 5), (3, 8)])
def test_zero_scores_have_a_closed_form(shape, width):
    """w = 0: every t is 1, so b = min(1, 1 / width) and R_mu = b - width b^2 / 2."""
    y = np.repeat([1, -1], shape)
    prepared = RocAreaRisk().prepare(y)
    value, grad, plane = prepared.smoothed(np.zeros(len(y)), width / prepared.ramp_scale)
    b = min(1.0, 1.0 / width)
    # width / m * m may round, and b^2 width / 2 cancels half of b.
    assert abs(value - (b - 0.5 * width * b * b)) <= 8 * EPS
    assert abs(plane - b) <= 8 * EPS
    np.testing.assert_allclose(grad, -b * y / np.where(y > 0, shape[0], shape[1]), rtol=16 * EPS)


LATTICE = [k / 4 for k in range(-8, 9)]  # differences of exactly 1 are frequent


def ulps(x, k):
    """Return x moved by k floats, to make near-ties."""
    for _ in range(abs(k)):
        x = np.nextafter(x, np.inf * k)
    return float(x)


@st.composite
def problems(draw):
    """Draw scores of one order of magnitude (1e-300 to 1e150), with ties and near-ties, labels and weights."""
    n_positive, n_negative = draw(st.tuples(st.integers(1, 14), st.integers(1, 14)))
    n = n_positive + n_negative
    nudged = st.builds(ulps, st.sampled_from(LATTICE), st.integers(-2, 2))
    kind = draw(st.sampled_from(["lattice", "nudged", "any", "normal"]))
    scale = 10.0 ** draw(st.sampled_from([-300, -20, -8, 0, 0, 0, 0, 3, 8, 15, 17, 100, 150]))
    if kind == "normal":
        z = np.random.default_rng(draw(st.integers(0, 10**6))).standard_normal(n)
    else:
        entry = {"lattice": st.sampled_from(LATTICE), "nudged": nudged, "any": st.floats(-3, 3)}[kind]
        z = np.array(draw(st.lists(entry, min_size=n, max_size=n)))
    y = np.array(draw(st.permutations([1] * n_positive + [-1] * n_negative)))
    weights = draw(st.sampled_from(["none", "integers", "fractions"]))
    if weights == "none":
        return z * scale, y, None
    entry = st.integers(0, 3) if weights == "integers" else st.floats(0.0, 2.0)
    s = np.array(draw(st.lists(entry, min_size=n, max_size=n)), dtype=float)
    s[np.flatnonzero(y > 0)[0]], s[np.flatnonzero(y < 0)[0]] = 1.0, 0.7
    return z * scale, y, s


def pair_tolerance(z, y, s, width):
    """Return what rounding may do to the sums of ramps of each row, and to the sum over all pairs, over all pairs.

    t = 1 - z_i + z_j is known to e = n eps (1 + |z_i| + |z_j|) when it is a sum of up to n neighbouring gaps. A pair with
    t outside of [-e, width + e] has ramp 0 or 1 whatever the rounding; inside, the ramp is known to e / width.
    """
    s = np.ones(len(z)) if s is None else s
    positive = y > 0
    weight = np.outer(s[positive], s[~positive])
    zp, zn = z[positive][:, None], z[~positive][None, :]
    t = 1.0 - zp + zn
    error = len(z) * EPS * (1.0 + np.abs(zp) + np.abs(zn))
    sure = (t < -error) | (t > width + error)
    ramp = np.where(sure, 0.0, np.minimum(1.0, error / width)) * weight / weight.sum()
    per_row = np.empty(len(z))
    per_row[positive], per_row[~positive] = ramp.sum(axis=1), ramp.sum(axis=0)
    sums_of_weights = len(z) * EPS
    return per_row + sums_of_weights, ramp.sum() + sums_of_weights


def check_against_pairs(z, y, s, width):
    prepared = RocAreaRisk().prepare(y, s)
    mu = width / prepared.ramp_scale
    got = prepared.evaluate(z, mu)
    value, grad, plane = RocAreaRisk.reference(z, y, s, mu)
    # The value is a mean of t, each known to a few roundings of 1 + 2 max |z|; the sums have n terms.
    tolerance = len(z) * EPS * (1.0 + 2.0 * np.abs(z).max())
    assert abs(got.value - value) <= tolerance
    assert abs(got.hard - RocAreaRisk.reference(z, y, s)[0]) <= tolerance
    per_row, total = pair_tolerance(z, y, s, width)
    excess = np.abs(got.grad - grad) - per_row
    assert (excess <= 0.0).all(), f"gradient off by {np.abs(got.grad - grad).max():.3g}, allowed {per_row}"
    assert abs(got.plane - plane) <= total
    # Both classes count the same pairs, whichever of them was sorted.
    assert abs(got.grad.sum()) <= 2.0 * total
    assert abs(got.plane - got.grad[y < 0].sum()) <= 2.0 * total


@examples(300)
@given(problem=problems(), log_width=st.floats(-10.0, 3.0))
def test_smoothed_risk_equals_the_sum_over_pairs(problem, log_width):
    check_against_pairs(*problem, 10.0**log_width)


@examples(100)
@given(problem=problems(), width=st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_ramps_that_end_exactly_on_scores(problem, width):
    check_against_pairs(*problem, width)


@examples(300)
@given(problem=problems())
def test_hard_risk_equals_the_sum_over_pairs(problem):
    z, y, s = problem
    prepared = RocAreaRisk().prepare(y, s)
    got = prepared.evaluate(z)
    value, grad, plane = RocAreaRisk.reference(z, y, s)
    n = len(z)
    assert abs(got.value - value) <= n * EPS * (1.0 + 2.0 * np.abs(z).max())
    assert got.hard == got.value >= 0.0
    # The sign of a difference of two floats is exact, so the same pairs count, ties and near-ties included: only sums of
    # weights are rounded.
    np.testing.assert_allclose(got.grad, grad, rtol=0, atol=n * EPS)
    assert abs(got.plane - plane) <= n * EPS
    assert abs(got.grad.sum()) <= n * EPS
    if s is None:
        counts = np.rint(got.grad * prepared.ramp_scale)
        np.testing.assert_allclose(got.grad * prepared.ramp_scale, counts, rtol=4 * EPS)
        assert counts.sum() == 0.0


@examples(100)
@given(problem=problems())
def test_the_risk_bounds_one_minus_auc(problem):
    z, y, s = problem
    if s is not None:
        weighted = s > 0
        z, y, s = z[weighted], y[weighted], s[weighted]
    auc = roc_auc_score(y, z, sample_weight=s)
    # scikit-learn sums in its own order: a few roundings of 1.
    assert RocAreaRisk().prepare(y, s).value(z) >= 1.0 - auc - 16 * EPS


@for_each("outlier", [1e4, 1e8, 1e12, 1e17, 1e150])
@for_each("sign", [1, -1])
@for_each("shape", [(20, 30), (30, 20)])
@for_each("width", [1e-3, 0.5])
def test_an_outlier_does_not_spoil_the_other_pairs(width, shape, sign, outlier):
    """One misranked row far away: its own pairs have ramp 1, and the ramps of all other pairs keep their digits."""
    y = np.repeat([1, -1], shape)
    for seed in range(5):
        # Margins around the kink, so that most ramps are under way.
        z = np.where(y > 0, 1.0, 0.0) + np.random.default_rng(seed).standard_normal(50) * width
        z[0 if sign > 0 else -1] = -sign * outlier
        check_against_pairs(z, y, None, width)


@for_each("outlier", [1e8, 1e12])
def test_planes_stay_below_the_risk_with_an_outlier(outlier):
    """What the certificate needs: c + <grad, z'> <= R(z') for moderate z'."""
    rng = np.random.default_rng(4)
    y = np.repeat([1, -1], (20, 30))
    z = np.where(y > 0, 1.0, 0.0) + rng.standard_normal(50) * 1e-3
    z[-1] = outlier
    prepared = RocAreaRisk().prepare(y)
    _, grad, plane = prepared.smoothed(z, 1e-3 / prepared.ramp_scale)
    for shift in (0.0, 1e3, -1e3):
        other = np.where(y > 0, 2.0, 0.0) + shift
        # Sums of 50 terms of size 1000 / 50.
        assert plane + grad @ other <= prepared.value(other) + 50 * EPS * (1 + abs(shift))


@for_each("weighted", [False, True])
@for_each("share", [0.02, 0.5, 0.95])
def test_several_chunks_equal_the_sum_over_pairs(share, weighted):
    rng = np.random.default_rng(5)
    n = 20_000 if share == 0.02 else 2_000  # 20,000 * 16 operations make two chunks
    y = np.where(rng.random(n) < share, 1, -1)
    z = rng.standard_normal(n) + 0.5 * y
    s = rng.random(n) if weighted else None
    prepared = RocAreaRisk().prepare(y, s)
    for width in (0.0, 0.3):
        got = prepared.evaluate(z, width / prepared.ramp_scale)
        value, grad, plane = RocAreaRisk.reference(z, y, s, width / prepared.ramp_scale)
        # Running sums of n weights: about eps sqrt(n) relative, n eps / 10 allowed.
        assert abs(got.value - value) <= 0.1 * n * EPS
        assert abs(got.plane - plane) <= 0.1 * n * EPS
        np.testing.assert_allclose(got.grad, grad, rtol=0.1 * n * EPS, atol=EPS / 10)
