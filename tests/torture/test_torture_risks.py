"""Every risk at scores and weights of any size, against sums of fractions: value, gradient, and the plane as a proof.

A risk may refuse weights of which floats cannot hold both classes, in words. What leaves the range of floats shows as infinity
or NaN, which solvers look for: a finite number is right, and there are no warnings. Rounding is relative to the largest score.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from exact_objectives import exact_risk
from hypothesis import given
from hypothesis import strategies as st
from torture_data import LARGEST, WEIGHTS, labels, scores, weights

from cases import for_each
from risk_variants import RISKS
from scoreline.distributed import Layout
from scoreline.distributed.cluster import InlineCluster, Placement
from scoreline.risks.balanced import project_balanced
from scoreline.risks.contingency import ContingencyRisk
from scoreline.risks.marginals import label_marginals
from scoreline.risks.partial_roc import PartialRocRisk
from scoreline.risks.roc_area import RocAreaRisk
from scoreline.scores import space_of
from tiers import examples

EPS = float(np.finfo(float).eps)
WIDTHS = (0.0, 0.0, 1e-300, 1e-12, 1e-3, 1.0, 1e3, 1e12, 1e100)  # of the ramp
SQUARED = ("squared_hinge", "roc_area_squared")
every_risk = for_each("risk", RISKS.values(), labels=RISKS)


@st.composite
def cases(draw, risk, most=6):
    """Draw labels, scores, weights that the risk takes, the width of a ramp and other scores."""
    n = draw(st.integers(2, most))
    y = draw(labels(n))
    kinds = ("none", *WEIGHTS) if risk.real_weights else ("none", "whole", "ones")
    width = draw(st.sampled_from(WIDTHS)) if risk.smoothable else 0.0
    return y, draw(scores(n)), draw(weights(n, kinds, y)), width, draw(scores(n))


def prepared_quietly(risk, y, weight):
    """Return the prepared risk, or None if it refuses weights that no floats hold."""
    words = ""
    try:
        return risk.prepare(y, weight)
    except ValueError as error:
        words = str(error)
    assert "expected a ratio" in words, words
    sums = [sum(map(Fraction, weight[side].tolist())) for side in (y > 0, y < 0)]
    assert min(sums) < Fraction(2e-100) * max(sums)
    return None


def size_of_terms(risk, z, weight):
    """Return the size of the terms of the risk, at least 1, as a fraction: the largest score of a row that counts."""
    counted = z if weight is None else z[weight > 0.0]
    largest = max(Fraction(1), *(abs(Fraction(v)) for v in counted.tolist()))
    return 8 * largest**2 if risk.name in SQUARED else 4 * largest


def fits(number, weight=None):
    """Tell whether numbers of this size, times the weights of a pair, are safely within the range of floats.

    Weights above 1e30 are divided by the largest of them before they are used (`scaled_to_safe_range`).
    """
    heaviest = 1 if weight is None else max(1, *map(Fraction, weight.tolist()))
    return number * (heaviest**2 if heaviest <= Fraction(1e30) else 1) < Fraction(1e300)


def close(got, expected, allowed):
    return bool(np.isfinite(got)) and abs(Fraction(got) - expected) <= allowed


def smooth(t, h):
    """Return the hinge of t with a ramp of width h."""
    if t <= 0 or h == 0:
        return max(t, Fraction(0))
    return t * t / (2 * h) if t < h else t - h / 2


def exact_smoothed(risk, y, z, weight, width):
    """Return R_mu where it is a plain sum: of rows or of pairs."""
    s = [Fraction(1)] * len(z) if weight is None else list(map(Fraction, weight.tolist()))
    z, width = list(map(Fraction, z.tolist())), Fraction(width)
    if risk.name == "hinge":
        return sum(q * smooth(1 - int(a) * v, width) for q, a, v in zip(s, y, z, strict=True)) / sum(s)
    above, below = ([(v, q) for v, q, a in zip(z, s, y, strict=True) if a == side] for side in (1, -1))
    pairs = sum(q for _, q in above) * sum(q for _, q in below)
    return sum(p * q * smooth(1 - a + b, width) for a, p in above for b, q in below) / pairs


def check_risk_at(risk, y, z, weight, width, other):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = prepared_quietly(risk, y, weight)
        if prepared is None:
            return
        mu = width / prepared.ramp_scale if width else 0.0
        got = prepared.evaluate(z, mu)
        bare = prepared.value(z)
        prepared.hessian(z, mu)
        constants = prepared.best_constant(), prepared.intercept(z), prepared.value_at_zero()
    assert np.isfinite(constants[::2]).all()
    width = mu * prepared.ramp_scale
    n = len(z) if weight is None or risk.real_weights else int(max(1, weight.sum()))
    terms = size_of_terms(risk, z, weight)
    allowed = 16 * n * Fraction(EPS) * terms
    exact = exact_risk(risk, z, y, weight)

    # The value: right, or not a number at all where terms leave the range of floats.
    if fits(terms, weight) or np.isfinite(got.hard):
        assert close(got.hard, exact, allowed)
        assert close(bare, exact, allowed)
        assert got.hard >= 0.0
    if fits(terms + Fraction(width), weight):
        lowest = exact - Fraction(prepared.looseness) * Fraction(width) * (1 + 16 * n * Fraction(EPS)) - allowed
        assert lowest <= Fraction(got.value) <= exact + allowed
        if risk.name in ("hinge", "roc_area"):
            # Differences of scores are right to the roundings of a score, and narrow ramps do not magnify that in the value.
            assert close(got.value, exact_smoothed(risk, y, z, weight, width), allowed)

    # The gradient: finite, no larger than the risk is steep, zero for rows that are not there.
    if fits(terms, weight):
        assert np.isfinite(got.grad).all()
        if weight is not None:
            assert not got.grad[weight == 0.0].any()
        assert abs(sum(abs(Fraction(g)) for g in got.grad.tolist()) - Fraction(got.mass)) <= 64 * n * Fraction(EPS) * (
            1 if risk.name not in SQUARED else terms
        )

    # The plane proves a lower bound of R everywhere: rounding is that of the scores here (only where c is computed from them)
    # and of the products with the scores there.
    if np.isfinite(got.grad).all() and np.isfinite(got.plane):
        made_of_scores = terms if risk.smooth else max(Fraction(1), abs(Fraction(got.plane)))
        slope = list(map(Fraction, got.grad.tolist()))
        for point in (z, np.zeros(len(z)), -z, other):
            there = Fraction(got.plane) + sum(g * Fraction(v) for g, v in zip(slope, point.tolist(), strict=True))
            reach = max(Fraction(1), *(abs(Fraction(v)) for v in point.tolist()))
            rounding = 32 * n * Fraction(EPS) * (made_of_scores + Fraction(got.mass) * reach)
            assert there <= exact_risk(risk, point, y, weight) + rounding
    elif (
        fits(terms, weight) and risk.name != "contingency_entropy"
    ):  # whose plane stays below whatever rounding did: -inf
        raise AssertionError("no plane")


@every_risk
@examples(100)
@given(data=st.data())
def test_risks_at_any_scale(risk, data):
    check_risk_at(risk, *data.draw(cases(risk)))


WEIGHTED = {name: risk for name, risk in RISKS.items() if risk.real_weights}
RATIOS = {
    name: risk for name, risk in WEIGHTED.items() if risk.name != "partial_roc"
}  # which counts whole numbers as rows


@for_each("risk", WEIGHTED.values(), labels=WEIGHTED)
@for_each("weight", [[9e-205, 6e-147, 1e289], [1.0, 1.0, 1e250], [5e-324, 1e-10, 1.0]])
def test_a_class_that_weighs_nothing_next_to_the_other_is_refused(risk, weight):
    """Its weight became 0 or its product with the other did, and a division by it failed somewhere below."""
    with pytest.raises(ValueError, match=r"positive class a weight of .* expected a ratio of at most 1e\+100"):
        risk.prepare([1, -1, -1], weight)


@for_each("risk", RATIOS.values(), labels=RATIOS)
def test_powers_of_two_in_the_weights_change_no_bit(risk):
    y, z, s = np.array([1, -1, -1, 1]), np.array([0.3, -0.2, 0.1, -0.4]), np.array([0.25, 1.0, 4.5, 0.75])
    expected = risk.prepare(y, s).evaluate(z)
    for factor in (2.0**-1070, 2.0**-300, 2.0**300, 2.0**1020):
        got = risk.prepare(y, factor * s).evaluate(z)
        assert (got.value, got.plane) == (expected.value, expected.plane)
        assert np.array_equal(got.grad, expected.grad)


def test_copies_beyond_counting_share_the_negatives_of_partial_roc():
    """One in ten of 1e120 copies of two rows: not the whole first row, as of weights that are no whole numbers."""
    y, z = np.array([1, -1, -1]), np.array([0.0, 1.0, -1.0])
    risk = PartialRocRisk(0.1)
    counted, huge = risk.prepare(y, np.full(3, 1e9)), risk.prepare(y, np.full(3, 2.0**400))
    assert abs(counted.top / counted.labels.negative - huge.top / huge.labels.negative) <= 4 * EPS
    assert abs(counted.value(z) - huge.value(z)) <= 8 * EPS


def test_a_walk_over_hundreds_of_decades_does_not_end_below_zero():
    """Sums of two floats lost the scores below 1e235, and the labelling found was better than the true one: -5e60."""
    y, s = np.array([1, -1, 1, -1, -1]), np.array([4.0, 3.0, 2.0, 1.0, 1.0])
    z = np.array([1.62368781e253, -9.27400193e60, 1.32996526e138, 2.49169362e21, -1.68066880e267])
    for measure in ("f1", "jaccard"):
        got = ContingencyRisk(measure).prepare(y, s).evaluate(z)
        assert got.hard == got.value >= 0.0
        assert got.plane + float(got.grad @ z) >= 0.0
    light = ContingencyRisk("accuracy").prepare([-1, 1], [1.0, 1e20]).evaluate(np.array([-0.25, 0.75]))
    assert (light.value, light.plane, light.grad.tolist()) == (0.0, 0.0, [0.0, 0.0])


@for_each("name", [n for n in RISKS if n.startswith(("contingency", "average_precision"))])
def test_scores_whose_sums_overflow_have_no_finite_value(name):
    """Differences of infinities were passed over: F1 of scores of 1.8e308 had a risk of 0, and its entropy one of 0.07."""
    y = np.array([-1, 1, 1])
    for z in (np.full(3, LARGEST), np.array([LARGEST, -LARGEST, LARGEST])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = RISKS[name].prepare(y).evaluate(z)
        exact = exact_risk(RISKS[name], z, y, None)
        assert not np.isfinite(got.hard) or abs(Fraction(got.hard) - exact) <= Fraction(1e-12) * Fraction(LARGEST)


def test_the_slope_of_an_entropy_of_fixed_size_balances_the_classes():
    """Logs of 1e16 lose the digits of chances; a slope that does not balance lies below no shift-invariant risk."""
    y, z, s = np.array([-1, 1]), np.array([1e15, 1e15]), np.array([4.0, 3.0])
    risk = next(r for n, r in RISKS.items() if n.startswith("contingency_entropy-prbep"))
    grad = risk.prepare(y, s).evaluate(z).grad
    assert abs(grad.sum()) <= 4 * EPS


@for_each("width", [1e-310, 1e-300, 1e-200, 1e-100, 1e-99, 1e-50])
@for_each("weight", [[1.0, 1e20], [1e-90, 1e5], [1e186, 1e216], [1e-30, 1e-120]])
@for_each("risk", [PartialRocRisk(0.1), RocAreaRisk()])
def test_ramps_narrower_than_weights_allow_are_none(risk, weight, width):
    """1e20 / 1e-300 was infinite and 1e-90 * 1e-300 was 0: the risk was no number, or there was a division by zero."""
    y = np.array([-1, 1])
    for z in (np.array([0.125, -0.132]), np.array([1e-305, 1.0]), np.array([width / 2, 1.0])):
        for s in (weight, weight[::-1]):
            check_risk_at(risk, y, z, np.array(s), width, -z)


@every_risk
def test_rows_that_are_not_there_may_have_any_score(risk):
    """0 times the square of 1e286 was no number."""
    y, s = np.array([-1, -1, 1, -1]), np.array([2.0, 0.0, 1.0, 0.0])
    for far in (1e286, -1e286):
        z = np.array([-0.25, far, 0.5, -far])
        check_risk_at(risk, y, z, s, 0.0, np.zeros(4))


def test_hessians_of_ramps_wider_than_floats_can_tell_are_not_known():
    y = np.array([-1, -1, 1])
    for risk in (r for r in RISKS.values() if r.smoothable):
        prepared = risk.prepare(y, np.array([1.0, 1.0, 1e20]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = prepared.hessian(np.full(3, 0.65), 1e300 / prepared.ramp_scale)
        assert found is None or np.isfinite(found.diagonal).all()


@for_each("mu", [np.inf, np.nan, 0.0, -1.0])
def test_smoothing_needs_a_finite_positive_mu(mu):
    with pytest.raises(ValueError, match="positive number"):
        RocAreaRisk().prepare([1, -1]).smoothed(np.zeros(2), mu)


def test_marginals_of_scores_whose_sums_overflow_are_refused():
    with pytest.raises(ValueError, match="range of floats"):
        label_marginals(np.full(3, LARGEST), [1, -1, 1])
    found = label_marginals(np.array([1e300, -1e300]), [1, -1])
    assert np.isfinite(found.log_z)
    assert found.flipped.tolist() == [0.0, 0.0]


@examples(30)
@given(data=st.data(), n=st.integers(2, 8))
def test_projections_balance_at_any_scale(data, n):
    y = data.draw(labels(n))
    v, high = data.draw(scores(n, ("normal", "huge", "tiny", "subnormal", "mixed", "tied", "margin"))), 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = project_balanced(v, y, high=high)
    assert (x >= 0.0).all()
    assert (x <= high).all()
    assert abs(x[y > 0].sum() - x[y < 0].sum()) <= 8 * n * EPS


@every_risk
def test_masked_arrays_are_refused(risk):
    hidden = [False, True, False]
    for y, weight in (
        ([1, -1, -1], np.ma.masked_array([1.0, 2.0, 1.0], hidden)),
        (np.ma.masked_array([1, -1, -1], hidden), None),
    ):
        with pytest.raises(ValueError, match="masked"):
            risk.prepare(y, weight)


@every_risk
def test_a_score_that_is_no_number_shows_in_the_value(risk):
    """It had no place among the sorted scores of ROC area, and the risk was that of the other rows."""
    prepared = risk.prepare([1, -1, -1, 1])
    for row in range(4):
        z = np.array([0.5, -0.25, 1.0, 2.0])
        z[row] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isnan(prepared.evaluate(z).value)
            assert np.isnan(prepared.value(z))


@every_risk
@for_each("dtype", [np.float16, np.float32, ">f8", np.int8, np.longdouble, bool])
def test_scores_of_any_type_and_stride(risk, dtype):
    """Kernels took only native floats for the plane of a smooth risk."""
    prepared, z = risk.prepare([1, -1, -1, 1]), np.array([1, 0, 1, 0])
    expected = prepared.evaluate(z.astype(np.float64))
    for view in (z.astype(dtype), np.repeat(z, 3).astype(dtype)[::3], z[::-1].astype(dtype)[::-1]):
        view.flags.writeable = False
        got = prepared.evaluate(view)
        assert (got.value, got.plane) == (expected.value, expected.plane)
        assert np.array_equal(got.grad, expected.grad)


def in_blocks(layout, rows):
    return layout.vector(np.array, layout.split(rows))


@pytest.mark.slow
@every_risk
@examples(20)
@given(data=st.data())
def test_rows_in_blocks_have_the_same_risk(risk, data):
    y, z, weight, width, _ = data.draw(cases(risk))
    layout = Layout(
        InlineCluster(), [Placement("a", 1), Placement("b", 1)], [[(0, len(z) // 2)], [(len(z) // 2, len(z))]]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here = prepared_quietly(risk, y, weight)
        if here is None:
            return
        there = in_blocks(layout, z)
        own = None if weight is None else in_blocks(layout, weight)
        prepared = risk.prepare(in_blocks(layout, y), own, space_of(there))
        mu = width / here.ramp_scale if width else 0.0
        got, expected = prepared.evaluate(there, mu), here.evaluate(z, mu)
    terms = size_of_terms(risk, z, weight)
    if fits(terms, weight):
        assert close(got.hard, Fraction(expected.hard), 32 * len(z) * Fraction(EPS) * terms)
        assert np.isfinite(np.asarray(got.grad)).all()


MILLION = {
    name: risk for name, risk in RISKS.items() if risk.name != "contingency_entropy"
}  # which takes 5000 rows at most


@pytest.mark.slow
@for_each("risk", MILLION.values(), labels=MILLION)
def test_one_positive_among_a_million(risk):
    """The literal definitions, O(n+ n-), against the fast ones: value, and a plane that touches."""
    n, rng = 10**6, np.random.default_rng(3)
    z, y = rng.standard_normal(n), np.full(n, -1, dtype=np.int8)
    y[n // 3] = 1
    got, (value, _, _) = risk.prepare(y).evaluate(z), risk.reference(z, y)
    # Sums of 1e6 terms in another order: 1e-16 times the root of the number of terms, and its worst case still below 1e-9.
    assert abs(got.value - value) <= 1e-10 * max(1.0, abs(value))
    assert abs(got.plane + float(got.grad @ z) - got.value) <= 1e-9 * max(1.0, abs(value))
