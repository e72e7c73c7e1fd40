"""Every risk through `check_risk`, and what `prepare` and `smoothed` must refuse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoreline.risks import LogisticRisk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.testing import check_risk

RISKS = sorted(all_risks())
SMOOTHABLE = [name for name in RISKS if all_risks()[name].smoothable]
EPS = np.finfo(float).eps


def test_the_registry_finds_the_risks():
    assert {"hinge", "logistic", "roc_area", "squared_hinge"} <= set(RISKS)
    assert all(name == risk.name for name, risk in all_risks().items())
    assert get_risk("hinge") is not get_risk("hinge")


@pytest.mark.parametrize("name", ["roc_aera", "", None, ["hinge"]], ids=repr)
def test_unknown_names_are_refused_with_the_nearest(name):
    with pytest.raises(ValueError, match="roc_area"):
        get_risk(name)


@pytest.mark.parametrize("name", RISKS)
@pytest.mark.parametrize(("n", "seed"), [(2, 0), (3, 1), (40, 2)])
def test_risks_keep_the_contract(name, n, seed):
    check_risk(get_risk(name), n=n, seed=seed)


@pytest.mark.parametrize("name", RISKS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_risks_are_convex_along_lines_and_independent_of_row_order(name, data):
    n = data.draw(st.integers(2, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    scale = 10.0 ** data.draw(st.integers(-3, 3))
    y = np.where(rng.random(n) < data.draw(st.sampled_from([0.1, 0.5, 0.9])), 1, -1)
    y[:2] = 1, -1
    s = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    s[:2] = 0.5
    risk = get_risk(name).prepare(y, s)
    mu = data.draw(st.sampled_from([0.0, 1e-3, 0.5])) / risk.ramp_scale if risk.smoothable else 0.0
    a, b = rng.standard_normal((2, n)) * scale
    t = data.draw(st.floats(0.0, 1.0))
    values = [risk.evaluate(z, mu).value for z in (a, b, (1 - t) * a + t * b)]
    # n terms, each as large as the largest value (squared for the squared hinge), n roundings.
    size = max(1.0, *values) + 2 * max(np.abs(a).max(), np.abs(b).max())
    assert values[2] <= (1 - t) * values[0] + t * values[1] + n * EPS * size

    order = rng.permutation(n)
    permuted, plain = get_risk(name).prepare(y[order], s[order]).evaluate(a[order], mu), risk.evaluate(a, mu)
    assert abs(permuted.value - plain.value) <= n * EPS * size
    assert abs(permuted.hard - plain.hard) <= n * EPS * size
    width = mu * risk.ramp_scale
    # A ramp magnifies the rounding of a score difference by 1 / width; otherwise only sums are reordered.
    atol = n * EPS * (1 + (1 + 2 * np.abs(a).max()) / (width or 1.0))
    np.testing.assert_allclose(permuted.grad, plain.grad[order], rtol=0, atol=atol)


REFUSED = {
    "only_positive": ([1, 1, 1], None, "both of them"),
    "only_negative": ([-1, -1], None, "both of them"),
    "only_zero": ([0, 0], None, "both of them"),
    "empty": ([], None, "both of them"),
    "one_and_two": ([1, 2], None, r"\[1 2\]"),
    "three_classes": ([-1, 0, 1], None, r"must hold \+1 and -1"),
    "halves": ([0.5, -1.0], None, "must hold"),
    "nan_label": ([1.0, np.nan, -1.0], None, "must hold"),
    "matrix": ([[1], [-1]], None, "one label per row"),
    "weight_negative": ([1, -1], [1.0, -1.0], "non-negative"),
    "weight_nan": ([1, -1], [1.0, np.nan], "finite"),
    "weight_infinite": ([1, -1], [np.inf, 1.0], "finite"),
    "weight_short": ([1, -1], [1.0], r"shape \(1,\), expected \(2,\)"),
    "weight_matrix": ([1, -1], [[1.0], [1.0]], "shape"),
    "weight_zero_for_positives": ([1, 1, -1], [0.0, 0.0, 1.0], "zero for all rows of a class"),
    "weight_zero_for_negatives": ([1, 1, -1], [1.0, 1.0, 0.0], "zero for all rows of a class"),
}


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("name", REFUSED)
def test_wrong_labels_and_weights_are_refused(name, risk):
    y, weight, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        get_risk(risk).prepare(y, weight)


@pytest.mark.parametrize("risk", RISKS)
def test_labels_of_every_kind_mean_the_same(risk):
    z = np.array([0.3, -1.2, 0.1, 0.7])
    expected = get_risk(risk).prepare([1, -1, -1, 1]).value(z)
    for y in ([1, 0, 0, 1], [True, False, False, True], np.array([1.0, -1.0, -1.0, 1.0]), np.int8([1, -1, -1, 1])):
        assert get_risk(risk).prepare(y).value(z) == expected


@pytest.mark.parametrize("risk", RISKS)
def test_prepare_leaves_the_risk_and_the_arrays_alone(risk):
    plain, y, s = get_risk(risk), np.array([1, -1, -1]), np.array([0.5, 1.0, 2.0])
    a, b = plain.prepare(y), plain.prepare(-y, s)
    assert not hasattr(plain, "labels")
    assert a.labels.sign.tolist() == [1, -1, -1]
    assert b.labels.sign.tolist() == [-1, 1, 1]
    z = np.array([1.0, -0.5, 0.25])
    kept = z.copy()
    b.evaluate(z)
    assert np.array_equal(z, kept)
    assert y.tolist() == [1, -1, -1]
    assert s.tolist() == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, -math.inf], ids=str)
@pytest.mark.parametrize("risk", SMOOTHABLE)
def test_smoothing_needs_a_positive_mu(risk, mu):
    with pytest.raises(ValueError, match=r"mu=.*positive"):
        get_risk(risk).prepare([1, -1]).smoothed(np.zeros(2), mu)


@pytest.mark.parametrize("risk", sorted(set(RISKS) - set(SMOOTHABLE)))
def test_smooth_risks_are_not_smoothed_again(risk):
    prepared = get_risk(risk).prepare([1, -1])
    with pytest.raises(TypeError, match="smooth already"):
        prepared.smoothed(np.zeros(2), 0.1)
    assert prepared.ramp_scale == 0.0


@pytest.mark.parametrize("risk", RISKS)
def test_the_short_forms_agree_with_evaluate(risk):
    rng = np.random.default_rng(0)
    prepared = get_risk(risk).prepare(np.where(rng.random(20) < 0.4, 1, -1), rng.random(20))
    z = rng.standard_normal(20)
    full = prepared.evaluate(z)
    value, grad = prepared.value_grad(z)
    assert prepared.value(z) == full.hard
    assert value == full.value
    assert np.array_equal(grad, full.grad)
    bare = prepared.evaluate(z, grad=False)
    assert bare.grad is None
    assert math.isnan(bare.plane)
    if prepared.smoothable:
        mu = 0.3 / prepared.ramp_scale
        full = prepared.evaluate(z, mu)
        value, grad, plane = prepared.smoothed(z, mu)
        assert (value, plane) == (full.value, full.plane)
        assert np.array_equal(grad, full.grad)


@pytest.mark.parametrize(
    ("risk", "expected"), [("roc_area", 1.0), ("hinge", 1.0), ("squared_hinge", 0.5), ("logistic", math.log(2.0))]
)
def test_the_value_of_zero_scores_is_known(risk, expected):
    for y, s in (([1, -1, -1], None), ([1, 1, -1], [0.3, 0.7, 0.1])):
        assert abs(get_risk(risk).prepare(y, s).value_at_zero() - expected) <= 2 * EPS


@pytest.mark.parametrize("size", [1e3, 1e4, 1e150, 1e308])
def test_logistic_neither_overflows_nor_loses_large_margins(size):
    z, y = np.array([size, -size, size, -size]), np.array([1, -1, -1, 1])
    with np.errstate(all="raise"):
        result = LogisticRisk().prepare(y).evaluate(z / 4)
    # exp(-250) is far below one rounding, so the loss is max(0, -m) and its slope 0 or -1, exactly.
    assert result.value == result.hard == size / 8
    assert result.grad[2:].tolist() == [0.25, -0.25]
    assert np.abs(result.grad[:2]).max() <= math.exp(-249)
    assert np.isfinite(result.plane)


def test_logistic_keeps_its_digits_for_small_and_large_margins():
    for m in (1e-300, 1e-10, 1.0, 30.0, 700.0):
        result = LogisticRisk().prepare([1, -1]).evaluate(np.array([m, -m]))
        # log1p(exp(-m)) is exp(-m) to full precision for large m: a relative error of a few roundings.
        assert math.isclose(result.value, math.log1p(math.exp(-m)), rel_tol=4 * EPS)
        assert math.isclose(result.grad[0], -0.5 * math.exp(-m) / (1.0 + math.exp(-m)), rel_tol=8 * EPS)
