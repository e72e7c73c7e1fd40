"""Every variant of every risk through `check_risk`, and what `prepare` and `smoothed` must refuse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from risk_variants import RISKS
from scoreline.measures import get_measure
from scoreline.risks import LogisticRisk
from scoreline.risks.registry import all_risks, get_risk
from scoreline.testing import check_risk
from tiers import TIER, examples

EPS = np.finfo(float).eps
NAMES = sorted(all_risks())


every_risk = for_each("risk", RISKS.values(), labels=RISKS)


def those(condition):
    chosen = {name: risk for name, risk in RISKS.items() if condition(risk)}
    return for_each("risk", chosen.values(), labels=chosen)


def weights_for(risk, weights, copies):
    """Return weights, or whole numbers for a risk that takes only those."""
    return np.array(weights if risk.real_weights else copies, dtype=float)


def test_the_registry_finds_the_risks():
    assert {"hinge", "logistic", "roc_area", "squared_hinge"} <= set(NAMES)
    assert {"average_precision", "contingency", "partial_roc", "prbep"} <= set(NAMES)
    assert all(name == risk.name for name, risk in all_risks().items())
    assert get_risk("hinge") is not get_risk("hinge")


def test_the_variants_are_of_their_class_and_all_different():
    variants = {name: risk.variants() for name, risk in all_risks().items()}
    assert all(type(variant) is all_risks()[name] for name, those in variants.items() for variant in those)
    assert all(those for those in variants.values())
    assert len(RISKS) == sum(len(those) for those in variants.values())  # ids, so names and parameters, differ


def test_a_risk_that_depends_on_the_measure_takes_it():
    jaccard, area = get_measure("jaccard"), get_measure("partial_roc_auc", {"max_fpr": 0.3})
    assert get_risk("contingency", jaccard).measure is jaccard
    assert get_risk("partial_roc", area).max_fpr == 0.3
    assert vars(get_risk("hinge", jaccard)) == vars(get_risk("hinge"))


@for_each("name", ["roc_aera", "", None, ["hinge"]])
def test_unknown_names_are_refused_with_the_nearest(name):
    with pytest.raises(ValueError, match="roc_area"):
        get_risk(name)


@every_risk
@for_each("n, seed", [(12, 3)] if TIER == "quick" else [(2, 0), (3, 1), (12, 3), (40, 2)])
def test_risks_keep_the_contract(risk, n, seed):
    check_risk(risk, n=n, trials=8 if TIER == "quick" else 20, seed=seed)  # eight kinds of scores and labels


@every_risk
@examples(40)
@given(data=st.data())
def test_risks_are_convex_along_lines_and_independent_of_row_order(risk, data):
    n = data.draw(st.integers(2, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    scale = 10.0 ** data.draw(st.integers(-3, 3))
    y = np.where(rng.random(n) < data.draw(st.sampled_from([0.1, 0.5, 0.9])), 1, -1)
    y[:2] = 1, -1
    s = weights_for(risk, np.where(rng.random(n) < 0.2, 0.0, rng.random(n)), rng.integers(0, 4, size=n))
    s[:2] = 0.5 if risk.real_weights else 1.0
    prepared = risk.prepare(y, s)
    mu = data.draw(st.sampled_from([0.0, 1e-3, 0.5])) / prepared.ramp_scale if risk.smoothable else 0.0
    a, b = rng.standard_normal((2, n)) * scale
    t = data.draw(st.floats(0.0, 1.0))
    values = [prepared.evaluate(z, mu).value for z in (a, b, (1 - t) * a + t * b)]
    # n terms, each as large as the largest value (squared for the squared hinge), n roundings.
    size = max(1.0, *values) + 2 * max(np.abs(a).max(), np.abs(b).max())
    assert values[2] <= (1 - t) * values[0] + t * values[1] + n * EPS * size

    order = rng.permutation(n)
    permuted, plain = risk.prepare(y[order], s[order]).evaluate(a[order], mu), prepared.evaluate(a, mu)
    assert abs(permuted.value - plain.value) <= n * EPS * size
    assert abs(permuted.hard - plain.hard) <= n * EPS * size
    width = mu * prepared.ramp_scale
    # Gaussian scores have no ties, so that the worst labelling or ranking is unique and the same in any order of the rows.
    # A ramp magnifies the rounding of a score difference by 1 / width; otherwise only sums are reordered.
    atol = n * EPS * (1 + risk.steepness * (1 + 2 * np.abs(a).max()) / (width or 1.0))
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


@every_risk
@for_each("y, weight, message", REFUSED.values(), labels=REFUSED)
def test_wrong_labels_and_weights_are_refused(y, weight, message, risk):
    with pytest.raises(ValueError, match=message):
        risk.prepare(y, weight)


@those(lambda risk: not risk.real_weights)
def test_weights_that_are_no_copies_are_refused_with_the_row(risk):
    y = [1, -1, -1, 1]
    for weight, found in (
        ([1, 2, 2.5, 0.5], "2.5 in row 2"),
        ([0.25, 1, 1, 1], "0.25 in row 0"),
        ([2e9] * 4, "a sum of 8e"),
    ):
        with pytest.raises(ValueError, match=found) as caught:
            risk.prepare(y, weight)
        for part in (risk.name, "whole numbers", "integer sample_weight", "class_weight=None", "another risk"):
            assert part in str(caught.value)
    assert risk.prepare(y, [1, 2, 0, 3]).labels.total == 6.0
    assert risk.prepare(y, None).labels.total == 4.0


@those(lambda risk: not risk.real_weights)
def test_whole_weights_beyond_any_number_of_rows_are_refused(risk):
    """Weights beyond 1e100 are rescaled; they must not slip through as few copies, or none."""
    with pytest.raises(ValueError, match=r"whole numbers .* a sum of 4e\+120"):
        risk.prepare([1, -1, -1], [1e120, 1e120, 2e120])


@those(lambda risk: risk.real_weights and risk.name != "partial_roc")  # there a weight of at least 1 counts
def test_only_ratios_of_real_weights_matter(risk):
    y, s, z = np.array([1, -1, -1, 1]), np.array([0.3, 1.0, 4.5, 0.7]), np.array([0.3, -0.2, 0.1, -0.4])
    expected = risk.prepare(y, s).value(z)
    for factor in (2.0**-400, 0.5, 1024.0, 2.0**400):  # powers of two change no digit
        assert risk.prepare(y, factor * s).value(z) == expected


@every_risk
def test_labels_of_every_kind_mean_the_same(risk):
    z = np.array([0.3, -1.2, 0.1, 0.7])
    expected = risk.prepare([1, -1, -1, 1]).value(z)
    for y in ([1, 0, 0, 1], [True, False, False, True], np.array([1.0, -1.0, -1.0, 1.0]), np.int8([1, -1, -1, 1])):
        assert risk.prepare(y).value(z) == expected


@every_risk
def test_prepare_leaves_the_risk_and_the_arrays_alone(risk):
    y, s = np.array([1, -1, -1]), weights_for(risk, [0.5, 1.0, 2.0], [3.0, 1.0, 2.0])
    before, weights = dict(vars(risk)), s.tolist()
    a, b = risk.prepare(y), risk.prepare(-y, s)
    assert not hasattr(risk, "labels")
    assert vars(risk) == before
    assert a.labels.sign.tolist() == [1, -1, -1]
    assert b.labels.sign.tolist() == [-1, 1, 1]
    z = np.array([1.0, -0.5, 0.25])
    original = z.copy()
    b.evaluate(z)
    assert np.array_equal(z, original)
    assert y.tolist() == [1, -1, -1]
    assert s.tolist() == weights


@for_each("mu", [0.0, -1.0, math.nan, -math.inf])
@those(lambda risk: risk.smoothable)
def test_smoothing_needs_a_positive_mu(risk, mu):
    with pytest.raises(ValueError, match=r"mu=.*positive"):
        risk.prepare([1, -1]).smoothed(np.zeros(2), mu)


@those(lambda risk: risk.smooth)
def test_smooth_risks_are_not_smoothed_again(risk):
    prepared = risk.prepare([1, -1])
    assert not risk.smoothable
    with pytest.raises(TypeError, match="smooth already"):
        prepared.smoothed(np.zeros(2), 0.1)
    assert prepared.ramp_scale == 0.0


@those(lambda risk: not (risk.smooth or risk.smoothable))
def test_risks_without_a_smoothed_version_say_so(risk):
    prepared = risk.prepare([1, -1])
    with pytest.raises(TypeError, match=f"'{risk.name}' has no smoothed version; call value_grad"):
        prepared.smoothed(np.zeros(2), 0.1)
    assert prepared.ramp_scale == 0.0
    assert prepared.hessian(np.zeros(2)) is None


@every_risk
def test_the_short_forms_agree_with_evaluate(risk):
    rng = np.random.default_rng(0)
    y, s = np.where(rng.random(20) < 0.4, 1, -1), rng.random(20)
    prepared = risk.prepare(y, weights_for(risk, s, np.rint(3 * s)))
    z = rng.standard_normal(20)
    full = prepared.evaluate(z)
    value, grad = prepared.value_grad(z)
    assert prepared.value(z) == full.hard
    assert value == full.value
    assert np.array_equal(grad, full.grad)
    bare = prepared.evaluate(z, grad=False)
    assert bare.grad is None
    assert math.isclose(bare.value, full.value, rel_tol=4 * EPS)
    assert math.isnan(bare.plane)
    if prepared.smoothable:
        mu = 0.3 / prepared.ramp_scale
        full = prepared.evaluate(z, mu)
        value, grad, plane = prepared.smoothed(z, mu)
        assert (value, plane) == (full.value, full.plane)
        assert np.array_equal(grad, full.grad)
        bare = prepared.evaluate(z, mu, grad=False)
        # Without the gradient the same sums may be taken by other instructions: a rounding or two.
        assert math.isclose(bare.value, full.value, rel_tol=4 * EPS)
        assert math.isclose(bare.hard, full.hard, rel_tol=4 * EPS)
        assert bare.grad is None
        assert math.isnan(bare.plane)


@for_each(
    "risk, expected",
    [("roc_area", 1.0), ("hinge", 1.0), ("squared_hinge", 0.5), ("logistic", math.log(2.0)), ("partial_roc", 1.0)],
)
def test_the_value_of_zero_scores_is_known(risk, expected):
    for y, s in (([1, -1, -1], None), ([1, 1, -1], [0.3, 0.7, 0.1])):
        assert abs(get_risk(risk).prepare(y, s).value_at_zero() - expected) <= 2 * EPS


@for_each("size", [1e3, 1e4, 1e150, 1e308])
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
