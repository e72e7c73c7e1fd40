"""ContingencyRisk: every measure against all labellings, the table of all counts, exact arithmetic and known values."""

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from random_labels import labels

from cases import for_each
from scoreline.measures import CountMeasure, get_measure
from scoreline.risks import ContingencyRisk, HingeRisk, PrbepRisk
from tiers import TIER

EPS = np.finfo(float).eps
AT_K = ("prbep", "precision_at_k", "recall_at_k")


def label(risk):
    given = [f"{key}={value}" for key, value in vars(risk.measure).items() if key in ("beta", "sigma", "k") and value]
    return "-".join([risk.measure.name, *given])


RISKS = [*ContingencyRisk.variants(), *(ContingencyRisk("fbeta", {"beta": beta}) for beta in (0.05, 0.5, 0.9, 2.0))]
RISKS += [ContingencyRisk("gower_legendre", {"sigma": 1.0}), ContingencyRisk("recall_at_k", {"k": 0.3})]
every_variant = for_each("risk", RISKS, labels=map(label, RISKS))


def rows_called_positive(risk, n_positive, n):
    """Return how many rows the measure wants called positive; 0 if any number may be."""
    if risk.measure.name not in AT_K:
        return 0
    k = risk.measure.k
    return n_positive if k is None else k if isinstance(k, int) else max(1, round(k * n))


def literal_loss(risk, b, c, plus, minus, k=0, sqrt=np.sqrt, number=float):
    """Return 1 - measure, written out, of arrays or of exact fractions; labellings of the wrong size are not excluded."""
    name, parameters = risk.measure.name, vars(risk.measure)
    square, sigma = number(parameters.get("beta", 1.0)) ** 2, number(parameters.get("sigma", 1.0))
    p, q = (plus - b) / plus, (minus - c) / minus
    right, wrong = plus - b + minus - c, b + c
    losses = {
        "accuracy": lambda: wrong / (plus + minus),
        "balanced_accuracy": lambda: 1 - (p + q) / 2,
        "min_tpr_tnr": lambda: 1 - (p + q - abs(p - q)) / 2,
        "f1": lambda: 1 - 2 * (plus - b) / (2 * plus - b + c),
        "fbeta": lambda: 1 - (1 + square) * (plus - b) / ((1 + square) * plus - b + c),
        "jaccard": lambda: wrong / (plus + c),
        "gower_legendre": lambda: 1 - right / (right + sigma * wrong),
        "gmean": lambda: 1 - sqrt(p * q),
        "hmean": lambda: 1 - 2 * p * q / (p + q + (p + q == 0)),
        "qmean": lambda: sqrt(((1 - p) ** 2 + (1 - q) ** 2) / 2),
        "prbep": lambda: b / plus,
        "recall_at_k": lambda: b / plus,
        "precision_at_k": lambda: 1 - (plus - b) / k,
    }
    return losses[name]()


def over_all_labellings(risk, z, y):
    """Return R(z) by trying all 2^n labellings."""
    n, positive = len(z), y > 0
    flips = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    b, c = flips[:, positive].sum(axis=1), flips[:, ~positive].sum(axis=1)
    plus, minus = int(positive.sum()), int((~positive).sum())
    k = rows_called_positive(risk, plus, n)
    values = literal_loss(risk, b, c, plus, minus, k) - 2.0 / n * (flips @ (y * z))
    if not k:
        return values.max()
    best = values[plus - b + c == k].max()
    return best if risk.measure.name == "prbep" else max(0.0, best)


def exact_root(x):
    """Return the square root of a fraction to 40 digits."""
    return Fraction(math.isqrt(x.numerator * 10**80 // x.denominator), 10**40)


def exactly(risk, z, y):
    """Return R(z) in exact arithmetic (roots to 40 digits), over all counts."""
    above = sorted(Fraction(x) for x in z[y > 0])
    below = sorted((Fraction(x) for x in z[y < 0]), reverse=True)
    n, plus, minus = len(z), len(above), len(below)
    k = rows_called_positive(risk, plus, n)
    values = [
        literal_loss(risk, Fraction(b), Fraction(c), Fraction(plus), Fraction(minus), k, exact_root, Fraction)
        + Fraction(2, n) * (sum(below[:c]) - sum(above[:b]))
        for b, c in itertools.product(range(plus + 1), range(minus + 1))
        if not k or plus - b + c == k
    ]
    return max(values) if risk.shift != "linear" else max(Fraction(0), *values)


def scores(rng, y, kind):
    """Return Gaussian, tied, nearly tied or zero scores, spaced as the steps of the losses are: h z is about 1 / n+."""
    n, plus = len(y), int((y > 0).sum())
    grid = (0.25, 1.0 / (2 * n), n / (2 * plus), n / (2 * (n - plus)), n / (8 * plus), 0.5)[kind % 6]
    z = rng.integers(-5, 6, size=n) * grid
    what = kind % 7
    if what == 0:
        return rng.standard_normal(n) * (0.1, 1.0, 3.0)[kind % 3]
    if what == 1:
        return np.zeros(n)
    if what in (2, 3):
        return z
    noise = rng.standard_normal(n) * (1e-9, 1e-15, 1e-3)[kind % 3]
    # Mostly on the right side: there losses and gains are of one size.
    return (np.abs(z) * y if what == 4 else z) + noise


def check_plane(risk, prepared, z, y, got):
    """The gradient is that of a labelling: rows flipped have 2 / n, and the plane touches."""
    n = len(z)
    flips = -got.grad * y * n / 2.0
    assert np.abs(flips - np.rint(flips)).max() <= 4 * EPS
    assert set(np.rint(flips)) <= {0.0, 1.0}
    size = 1.0 + 2.0 * np.abs(z).max()
    assert abs(got.plane + got.grad @ z - got.value) <= 2 * n * EPS * size
    if risk.shift == "linear" and got.value == 0.0:
        assert not flips.any()
        assert got.plane == 0.0
        return
    b, c = np.rint(flips)[y > 0].sum(), np.rint(flips)[y < 0].sum()
    expected = literal_loss(risk, b, c, prepared.labels.positive, prepared.labels.negative, prepared.k)
    assert abs(got.plane - expected) <= 8 * EPS
    assert abs(got.mass - 2.0 / n * (b + c)) <= 8 * EPS
    if prepared.k:
        assert prepared.labels.positive - b + c == prepared.k


@every_variant
def test_the_risk_is_the_worst_of_all_labellings(risk):
    rng = np.random.default_rng(1)
    for trial in range(105):
        y = labels(rng, 2 + trial % 7 if trial % 15 else 10, trial)
        z = scores(rng, y, trial)
        prepared = risk.prepare(y)
        got = prepared.evaluate(z)
        # n terms of up to 2 max|z| / n on either side, each rounded a few times.
        tolerance = 16 * EPS * (1.0 + 2.0 * np.abs(z).max())
        expected = over_all_labellings(risk, z, y)
        assert abs(got.value - expected) <= tolerance, f"{got.value} instead of {expected} for z={z!r}, y={y!r}"
        assert got.hard == got.value
        assert abs(risk.reference(z, y)[0] - expected) <= tolerance
        check_plane(risk, prepared, z, y, got)


@every_variant
def test_the_risk_is_the_largest_of_all_counts_with_near_ties(risk):
    rng = np.random.default_rng(2)
    for trial in range(42):
        y = labels(rng, int(rng.integers(9, 201)), trial)
        z = scores(rng, y, trial)
        s = rng.integers(0, 4, size=len(y)).astype(float) if trial % 3 == 0 else None
        if s is not None:
            s[np.flatnonzero(y > 0)[0]] = s[np.flatnonzero(y < 0)[0]] = 1.0
        prepared = risk.prepare(y, s)
        got = prepared.evaluate(z)
        # Both add up to 600 gains of size 2 max|z| / n; the reference does so one after the other.
        size = 600 * EPS * (1.0 + 2.0 * np.abs(z).max())
        assert abs(got.value - risk.reference(z, y, s)[0]) <= size, f"trial {trial}"
        assert abs(got.plane + got.grad @ z - got.value) <= size
        if s is None:
            check_plane(risk, prepared, z, y, got)


@every_variant
def test_separated_scores_have_every_flip_at_its_price(risk):
    """All rows on the right side: every flip costs, and the loss alone decides which are worth it. Many small problems."""
    rng = np.random.default_rng(13)
    for trial in range(100 if TIER == "quick" else 500):
        y = labels(rng, int(rng.integers(3, 9)), (0, 2, 1, 0)[trial % 4])
        spread = ((1.0, 0.25), (1.5, 0.5), (0.25, 1.0), (0.5, 0.5))[trial // 4 % 4]
        z = y * rng.random(len(y)) * np.where(y > 0, *spread)
        got, expected = risk.prepare(y).value(z), risk.reference(z, y)[0]
        assert abs(got - expected) <= 16 * EPS, (
            f"{got} instead of {expected} for z={z!r}, y={y!r}"
        )  # eight terms below 1


def test_the_walk_over_called_positives_serves_betas_below_one():
    """The best c does not fall with b here; a search that relies on it returns -1/21."""
    risk = ContingencyRisk("fbeta", {"beta": 0.5})
    z, y = np.array([0.75, 1.25, -0.5]), np.array([1, 1, -1])
    got = risk.prepare(y).evaluate(z)
    assert got.value == 0.0
    assert got.plane == 0.0
    assert got.grad.tolist() == [0.0, 0.0, 0.0]


# Reference values derived independently of this code (items a of the formula sheet): scores, labels, R, rows flipped.
GOLDEN = {
    "a00": ("accuracy", {}, [0.4464, -0.537, 0.5811, 0.3646, 0.2941, 0.0284, 0.5467, -0.7365],
            [-1, 1, 1, -1, 1, -1, -1, -1], 1.15725, [0, 1, 3, 4, 5, 6]),
    "a01": ("prbep", {}, [-0.7819, -0.2572, 0.0081, -0.2756, 1.2941, 1.0067, -2.7112, -1.889, -0.1748],
            [1, 1, -1, 1, -1, -1, -1, -1, -1], 1.8052444444444444, [0, 1, 2, 3, 4, 5]),
    "a02": ("prbep", {}, [1.0589, -0.556, -0.1888, 1.0214, 0.3234, 0.3315, -0.257, -0.824],
            [1, 1, 1, 1, 1, -1, -1, 1], 0.6969583333333333, [1, 5, 6, 7]),
    "a04": ("f1", {}, [0.5487, -0.012, -0.7492, -0.1883, 0.0325, 0.1637, -0.5893, -0.6644, 0.1198],
            [-1, 1, -1, -1, -1, 1, -1, 1, 1], 1.2164666666666666, [0, 1, 4, 5, 7, 8]),
    "a05": ("fbeta", {"beta": 0.5}, [0.6123, -0.1488, -0.4054, 0.3761, 0.1267, 0.4479, -0.1726, -0.7409, -0.055],
            [-1, -1, 1, 1, -1, 1, 1, -1, 1], 1.1217777777777778, [0, 2, 3, 4, 5, 6, 8]),
    "a06": ("fbeta", {"beta": 2.0}, [0.4419, 0.3399, -0.3201, -0.0005, 0.2228, 0.2342, 0.4381, 0.1282],
            [-1, -1, -1, -1, 1, -1, -1, -1], 1.339875, [0, 1, 4, 5, 6, 7]),
    "a07": ("jaccard", {}, [-0.7127, 0.1664, -0.3256, 0.4312, -0.0628, 0.3346, 0.6094, 0.1915, -0.4379],
            [1, -1, -1, -1, 1, 1, -1, 1, -1], 1.3236444444444444, [0, 1, 3, 4, 5, 6, 7]),
    "a08": ("precision_at_k", {"k": 3}, [-0.1914, 0.8521, 0.0339, 0.0137, -0.7146, 0.4696, -1.0339, 0.6659, 1.5239],
            [-1, -1, 1, 1, 1, -1, -1, 1, -1], 1.6326, [1, 2, 3, 4, 5, 7, 8]),
    "a09": ("recall_at_k", {"k": 5}, [0.589, -0.8407, -0.506, -0.3481, 0.532, -0.4053, 0.2779, -0.1765, -0.8447],
            [-1, -1, 1, -1, -1, 1, -1, 1, -1], 1.2884222222222221, [0, 1, 2, 3, 4, 5, 6, 7]),
    "a10": ("gmean", {}, [0.7285, -0.0266, -0.027, 0.2558, -0.2104, -0.1143, 0.2126, 0.1412, -0.5796],
            [-1, 1, -1, -1, -1, 1, -1, 1, -1], 1.2659111111111112, [0, 1, 3, 5, 6, 7]),
    "a11_ties": ("qmean", {}, [-0.5, -0.0, 1.0, -0.5, 0.0, -1.0, -0.0, 0.5],
                 [1, -1, -1, 1, 1, -1, -1, 1], 1.2588834764831844, [0, 1, 2, 3, 4, 6, 7]),
    "a12": ("hmean", {}, [0.1046, -0.2962, -0.063, -0.0362, 0.0544, -0.015, 0.087, -0.8354],
            [-1, -1, -1, 1, -1, -1, 1, 1], 1.2359, [0, 3, 4, 6, 7]),
}  # fmt: skip


@for_each("measure, parameters, z, y, value, flipped", GOLDEN.values(), labels=GOLDEN)
def test_golden(measure, parameters, z, y, value, flipped):
    z, y = np.array(z), np.array(y)
    got = ContingencyRisk(measure, parameters).prepare(y).evaluate(z)
    # The golden file allows 1e-10; its numbers have 16 digits and these sums nine terms, so 1e-14 holds.
    assert abs(got.value - value) <= 1e-14
    expected = np.zeros(len(z))
    expected[flipped] = -2.0 / len(z) * y[flipped]
    np.testing.assert_allclose(got.grad, expected, rtol=0, atol=EPS)


@every_variant
def test_weights_are_copies_with_ties_and_zeros(risk):
    rng = np.random.default_rng(3)
    for trial in range(28):
        y = labels(rng, int(rng.integers(2, 25)), trial)
        z = scores(rng, y, trial)
        s = rng.integers(0, 4, size=len(y))
        s[np.flatnonzero(y > 0)[-1]], s[np.flatnonzero(y < 0)[-1]] = 2, 1
        rows = np.repeat(np.arange(len(y)), s)
        weighted, repeated = risk.prepare(y, s).evaluate(z), risk.prepare(y[rows]).evaluate(z[rows])
        size = 75 * EPS * (1.0 + 2.0 * np.abs(z).max())  # 75 terms at most
        assert abs(weighted.value - repeated.value) <= size
        assert abs(weighted.plane - repeated.plane) <= size
        # Rows of equal score go in their order, copies of a row one after the other: the same copies are flipped.
        summed = np.zeros(len(y))
        np.add.at(summed, rows, repeated.grad)
        np.testing.assert_allclose(weighted.grad, summed, rtol=0, atol=16 * EPS)


@for_each("measure", ["accuracy", "balanced_accuracy", "min_tpr_tnr"])
def test_measures_that_take_real_weights_equal_all_weighted_labellings(measure):
    risk = ContingencyRisk(measure)
    assert risk.real_weights
    rng = np.random.default_rng(4)
    for trial in range(60):
        y = labels(rng, 2 + trial % 7, trial)
        n, positive, z = len(y), y > 0, scores(rng, y, trial)
        s = rng.random(n) * np.where(rng.random(n) < 0.2, 0.0, 1.0)
        s[np.flatnonzero(positive)[0]], s[np.flatnonzero(~positive)[0]] = 0.3, 0.8
        flips = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        b, c = flips[:, positive] @ s[positive], flips[:, ~positive] @ s[~positive]
        loss = literal_loss(risk, b, c, s[positive].sum(), s[~positive].sum())
        expected = (loss - 2.0 / s.sum() * (flips @ (s * y * z))).max()
        size = 16 * EPS * (1.0 + 2.0 * np.abs(z).max())  # up to eight terms
        got = risk.prepare(y, s).evaluate(z)
        assert abs(got.value - expected) <= size
        assert abs(got.plane + got.grad @ z - expected) <= size
        assert abs(risk.reference(z, y, s)[0] - expected) <= size


@every_variant
def test_the_risk_bounds_the_loss_of_the_labelling_by_sign(risk):
    """Rows on the wrong side of 0 gain by their flip. At k that takes scores whose k highest are the positive ones."""
    rng = np.random.default_rng(5)
    for trial in range(40):
        y = labels(rng, int(rng.integers(2, 40)), trial)
        plus, minus = int((y > 0).sum()), int((y < 0).sum())
        k = rows_called_positive(risk, plus, len(y))
        prepared = risk.prepare(y)
        for shift in (0.0, 0.7, -0.7):
            z = rng.standard_normal(len(y)) + shift
            if risk.shift == "linear":
                order = np.sort(z)[::-1]
                z = z - (0.5 * (order[k - 1] + order[k]) if k < len(z) else order[-1] - 0.1)
            called = np.argsort(np.argsort(-z)) < k if k else z > 0.0
            b, c = (~called)[y > 0].sum(), called[y < 0].sum()
            # The risk is a largest value of sums of n terms; the loss is one of them with gains that are not negative.
            assert prepared.value(z) >= literal_loss(risk, b, c, plus, minus, k) - len(z) * EPS


@every_variant
def test_zero_scores_have_the_largest_loss(risk):
    for plus, minus in ((1, 1), (1, 9), (9, 1), (4, 6), (7, 3)):
        y = np.repeat([1, -1], (plus, minus))
        k = rows_called_positive(risk, plus, plus + minus)
        largest = {
            "prbep": min(plus, minus) / plus,
            "precision_at_k": 1.0 - max(0, k - minus) / max(k, 1),
            "recall_at_k": min(plus, minus + plus - k) / plus,
        }.get(risk.measure.name, 1.0)
        assert abs(risk.prepare(y).value_at_zero() - largest) <= 4 * EPS
        if not k:
            assert abs(risk.prepare(y, np.arange(1, plus + minus + 1)).value_at_zero() - largest) <= 4 * EPS


def test_the_variant_of_prbep_is_the_risk_of_prbep():
    rng = np.random.default_rng(6)
    for trial in range(70):
        y = labels(rng, int(rng.integers(2, 60)), trial)
        z = scores(rng, y, trial)
        s = rng.integers(1, 4, size=len(y)) if trial % 2 else None
        contingency, own = ContingencyRisk("prbep").prepare(y, s), PrbepRisk().prepare(y, s)
        size = 240 * EPS * (1.0 + 2.0 * np.abs(z).max())  # up to 180 terms, added in two orders
        assert abs(contingency.value(z) - own.value(z)) <= size
        assert abs(contingency.value(z + 0.4) - contingency.value(z)) <= size
        if trial % 7 == 0:  # Gaussian scores: the worst labelling is unique
            np.testing.assert_allclose(contingency.evaluate(z).grad, own.evaluate(z).grad, rtol=0, atol=16 * EPS)
    assert ContingencyRisk("prbep").shift == "invariant"


def test_the_variant_of_accuracy_is_the_hinge_of_doubled_scores():
    rng = np.random.default_rng(7)
    for trial in range(60):
        y = labels(rng, int(rng.integers(2, 60)), trial)
        z = scores(rng, y, trial)
        s = (None, rng.integers(1, 4, size=len(y)), rng.random(len(y)) + 0.1)[trial % 3]
        contingency, hinge = ContingencyRisk("accuracy").prepare(y, s), HingeRisk().prepare(y, s)
        size = 60 * EPS * (1.0 + 2.0 * np.abs(z).max())  # up to 60 terms
        assert abs(contingency.value(z) - hinge.value(2.0 * z)) <= size
        got, other = contingency.evaluate(z), hinge.evaluate(2.0 * z)
        if np.abs(1.0 - 2.0 * y * z).min() > 1e-12:  # no row at the kink, where either slope is right
            np.testing.assert_allclose(got.grad, 2.0 * other.grad, rtol=8 * EPS)
            assert abs(got.plane - other.plane) <= 60 * EPS


def test_f1_is_fbeta_with_beta_one():
    rng = np.random.default_rng(8)
    y, z = labels(rng, 40, 0), rng.standard_normal(40)
    one, other = (ContingencyRisk(name).prepare(y).evaluate(z) for name in ("f1", "fbeta"))
    assert one.value == other.value
    assert np.array_equal(one.grad, other.grad)


@for_each("measure", ["precision_at_k", "recall_at_k"])
@for_each("k", [1, 2, 5, 6])
def test_at_k_the_risk_is_not_negative(measure, k):
    """Without the true labelling, separated scores would drive the largest value to minus infinity."""
    y = np.array([1, 1, 1, -1, -1, -1])
    z = np.array([3.0, 2.0, 1.0, -1.0, -2.0, -3.0])
    prepared = ContingencyRisk(measure, {"k": k}).prepare(y)
    for factor in (10.0, 100.0, 1e12):
        got = prepared.evaluate(factor * z)
        assert (got.value, got.hard, got.plane, got.mass) == (0.0, 0.0, 0.0, 0.0)
        assert got.grad.tolist() == [0.0] * 6
        assert prepared.value(factor * z) == 0.0
    assert prepared.value(-z) > 0.0
    assert prepared.shift == "linear"


def test_k_beyond_the_rows_is_refused():
    y = [1, -1, -1]
    for measure in ("precision_at_k", "recall_at_k"):
        with pytest.raises(ValueError, match=f"k=4 of measure '{measure}' exceeds the 3 rows"):
            ContingencyRisk(measure, {"k": 4}).prepare(y)
        with pytest.raises(ValueError, match=r"k=3 .* exceeds the 2 rows"):
            ContingencyRisk(measure, {"k": 3}).prepare(y, [1, 1, 0])
        assert ContingencyRisk(measure, {"k": 3}).prepare(y).k == 3
        assert ContingencyRisk(measure, {"k": 4}).prepare(y, [1, 2, 1]).k == 4
        assert ContingencyRisk(measure, {"k": 0.01}).prepare(y).k == 1
        assert ContingencyRisk(measure, {"k": 0.5}).prepare([1, -1] * 3).k == 3
        assert ContingencyRisk(measure).prepare([1, -1, 1]).k == 2


@for_each("name", ["mcc", "kappa", "roc_auc", "average_precision", "partial_roc_auc", "profit"])
def test_measures_without_a_known_worst_labelling_are_refused(name):
    measure = CountMeasure(lambda tp, fp, fn, tn: tp - 2.0 * fp, name="profit") if name == "profit" else name
    with pytest.raises(ValueError, match="worst labelling") as caught:
        ContingencyRisk(measure)
    assert repr(name) in str(caught.value)
    assert "risk='auto'" in str(caught.value)
    for known in ("f1", "fbeta", "jaccard", "gmean", "prbep", "recall_at_k"):
        assert known in str(caught.value)


def test_a_measure_of_ones_own_is_refused_whatever_it_is_called():
    with pytest.raises(ValueError, match="worst labelling"):
        ContingencyRisk(CountMeasure(lambda tp, fp, fn, tn: tp - 2.0 * fp, name="f1"))


def test_measures_come_by_name_with_parameters_or_as_objects():
    by_name, by_object = ContingencyRisk("fbeta", {"beta": 0.3}), ContingencyRisk(get_measure("fbeta", {"beta": 0.3}))
    z, y = np.array([0.3, -0.2, 0.1]), [1, -1, -1]
    assert by_name.prepare(y).value(z) == by_object.prepare(y).value(z)
    with pytest.raises(ValueError, match="jaccard"):
        ContingencyRisk("jacard")


@every_variant
def test_planes_lie_below_the_risk_everywhere(risk):
    rng = np.random.default_rng(9)
    for trial in range(21):
        y = labels(rng, int(rng.integers(2, 30)), trial)
        prepared = risk.prepare(y)
        got = prepared.evaluate(scores(rng, y, trial))
        for other in (np.zeros(len(y)), scores(rng, y, trial + 1), 1.0 * y, -30.0 * y, rng.standard_normal(len(y))):
            # The plane's numbers are a loss and multiples of 2 / n: only the sum of 30 terms is rounded.
            size = 30 * EPS * (1.0 + 2.0 * np.abs(other).max())
            assert got.plane + got.grad @ other <= prepared.value(other) + size


@for_each("scale", [1e-150, 1e-16, 1e16, 1e150])
@every_variant
def test_scores_of_any_size(risk, scale):
    rng = np.random.default_rng(10)
    for trial in range(10):
        y = labels(rng, 2 + trial % 6, trial)
        z = (rng.standard_normal(len(y)) if trial % 2 else rng.integers(-2, 3, size=len(y))) * scale
        with np.errstate(over="raise", invalid="raise"):
            got = risk.prepare(y).evaluate(z)
        # A dozen roundings of the largest gain (in fixed numbers of flips large gains may cancel) and of the loss.
        assert abs(Fraction(got.value) - exactly(risk, z, y)) <= 16 * EPS * (1.0 + np.abs(z).max())
        assert np.isfinite(got.grad).all()
        assert np.isfinite(got.plane)


@for_each("outlier", [1e4, 1e12, 1e20])
@every_variant
def test_outliers_do_not_spoil_the_choice_among_the_others(risk, outlier):
    """Rows far on their own side are not flipped (unless the number of flips is fixed): the others keep all their digits."""
    rng = np.random.default_rng(11)
    for trial in range(12 if TIER == "quick" else 40):
        y = labels(rng, 4 + trial % 5, trial % 3)
        rows = rng.choice(len(y), size=1 + trial % 3, replace=False)
        z = rng.standard_normal(len(y)) * (0.2, 1.0)[trial % 2] + 0.5 * y * (trial % 3)
        z[rows] = y[rows] * outlier * (1.0 + rng.random(len(rows)))
        check_exactly(risk, z, y)
        z[rows[0]] *= -1.0
        got = check_exactly(risk, z, y)
        moderate = rng.standard_normal(len(y))
        assert got.plane + got.grad @ moderate <= risk.prepare(y).value(moderate) + 16 * EPS * (
            1 + np.abs(moderate).max()
        )


def check_exactly(risk, z, y):
    got = risk.prepare(y).evaluate(z)
    # Relative to the largest score that is flipped: where no outlier is, a few roundings of 1.
    size = 16 * EPS * (1.0 + np.abs(z[got.grad != 0.0]).max(initial=0.0))
    assert abs(Fraction(got.value) - exactly(risk, z, y)) <= size, f"z={z!r}, y={y!r}"
    return got


DENSE = ["f1", "jaccard", "gmean", "hmean", "qmean"]


@for_each("kind", ["gaussian", "separated", "near_ties"])
@for_each("measure", DENSE)
def test_five_thousand_rows_equal_the_table_of_all_counts(measure, kind):
    rng = np.random.default_rng(12)
    n, plus = 5000, 1400
    y = np.repeat([1, -1], (plus, n - plus))[rng.permutation(n)]
    z = rng.standard_normal(n)
    if kind == "separated":  # losses and gains of one size: neither all rows nor none are flipped
        z = 0.6 * y * rng.random(n) + 0.1 * z
    if kind == "near_ties":
        z = np.rint(4.0 * np.abs(z)) / 4.0 * y + 1e-9 * rng.standard_normal(n)
    risk = ContingencyRisk(measure)
    above, below = np.sort(z[y > 0]), np.sort(z[y < 0])[::-1]
    gain_above = -2.0 / n * np.append(0.0, np.cumsum(above))
    gain_below = 2.0 / n * np.append(0.0, np.cumsum(below))
    best = -np.inf
    for first in range(0, plus + 1, 200):
        b, c = np.arange(first, min(first + 200, plus + 1), dtype=float)[:, None], np.arange(n - plus + 1.0)[None, :]
        table = (
            literal_loss(risk, b, c, float(plus), float(n - plus)) + gain_above[first : first + 200, None] + gain_below
        )
        best = max(best, table.max())
    got = risk.prepare(y).evaluate(z)
    # Running sums of 5000 gains of about 2 / n: eps sqrt(n) would do, n eps / 10 is allowed.
    assert abs(got.value - best) <= 500 * EPS * (1.0 + best)
    assert abs(got.plane + got.grad @ z - best) <= 500 * EPS * (1.0 + best)
    assert kind != "separated" or 0.0 < got.mass < 2.0


NAN_SCORES = """
import numpy as np
from scoreline.risks import AveragePrecisionRisk, ContingencyRisk
y = np.array([1, -1, 1, -1, -1])
for risk in (*ContingencyRisk.variants(), AveragePrecisionRisk()):
    for row in (0, 1):
        z = np.array([0.1, 0.2, 0.3, -0.4, 0.5])
        z[row] = np.nan
        value = risk.prepare(y).value(z)
        print("risk", getattr(getattr(risk, "measure", risk), "name", ""), row, value, flush=True)
"""


@pytest.mark.slow
def test_scores_that_are_nan_give_nan_and_no_endless_walk():
    """In a process of its own: a kernel that does not end cannot be interrupted."""
    try:
        run = subprocess.run(
            [sys.executable, "-c", NAN_SCORES], capture_output=True, text=True, timeout=1800, check=False
        )
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"no end after {(error.stdout or b'').decode().splitlines()[-1:]}")
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("risk")]
    assert len(lines) == 2 * (len(ContingencyRisk.variants()) + 1)
    assert [line for line in lines if not line.endswith(" nan")] == []
