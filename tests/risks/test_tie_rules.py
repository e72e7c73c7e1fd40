"""The tie rule "smallest": valid planes, one row or pair at ties, the sequence that the papers' lower bounds need."""

import itertools
import math

import numpy as np
import pytest
from random_labels import labels

from cases import for_each
from scoreline.risks import ContingencyRisk, HingeRisk, RocAreaRisk
from scoreline.risks.ties import TIED_WITHIN

EPS = np.finfo(float).eps
RISKS = {"hinge": HingeRisk, "roc_area": RocAreaRisk}
RISKS |= {
    f"contingency-{name}": lambda ties="any", name=name: ContingencyRisk(name, ties=ties)
    for name in ("accuracy", "f1", "gmean", "prbep", "min_tpr_tnr", "recall_at_k")
}
RISKS["contingency-fbeta-0.3"] = lambda ties="any": ContingencyRisk("fbeta", {"beta": 0.3}, ties=ties)
RISKS["contingency-precision_at_2"] = lambda ties="any": ContingencyRisk("precision_at_k", {"k": 2}, ties=ties)
every_risk = for_each("make", RISKS.values(), labels=RISKS)


def scores(rng, y, kind):
    """Return scores at which losses and gains tie: multiples of n / (2 n+), of 1/2 or 1/4, some moved by less than a tie."""
    n = len(y)
    grid = (0.5, 0.25, n / (2.0 * (y > 0).sum()), 1.0)[kind % 4]
    z = rng.integers(-2, 3, size=n) * grid
    z = np.abs(z) * y if kind % 3 == 0 else z
    return z + (1e-11 * rng.standard_normal(n) if kind % 2 else 0.0)


@every_risk
def test_planes_are_valid_and_touch(make):
    rng = np.random.default_rng(1)
    for trial in range(60):
        y = labels(rng, 2 + trial % 12)
        z = scores(rng, y, trial)
        prepared, plain = make("smallest").prepare(y), make().prepare(y)
        got = prepared.evaluate(z)
        assert abs(got.value - plain.value(z)) <= TIED_WITHIN
        assert abs(got.hard - got.value) <= TIED_WITHIN
        assert abs(got.plane + got.grad @ z - got.value) <= 1.1 * TIED_WITHIN  # and a few roundings
        assert abs(got.mass - np.abs(got.grad).sum()) <= 16 * EPS
        for other in (np.zeros(len(y)), 1.0 * y, -9.0 * y, *rng.standard_normal((4, len(y)))):
            # The numbers of the plane are counts over n or n+ n-: only the sum of 13 terms is rounded.
            size = 32 * EPS * (1.0 + 2.0 * np.abs(other).max())
            assert got.plane + got.grad @ other <= plain.value(other) + size


@every_risk
def test_without_ties_both_rules_give_the_same_plane(make):
    rng = np.random.default_rng(2)
    for trial in range(20):
        y = labels(rng, 4 + trial)
        z = rng.standard_normal(len(y))
        got, expected = (make(ties).prepare(y).evaluate(z) for ties in ("smallest", "any"))
        if make("smallest").shift == "needed" and expected.value == 0.0:
            continue  # nothing is worse than the true labelling: only the other rule answers with it
        np.testing.assert_allclose(got.grad, expected.grad, rtol=0, atol=16 * EPS)
        assert abs(got.plane - expected.plane) <= 16 * EPS
        assert abs(got.value - expected.value) <= 32 * EPS * (1.0 + np.abs(z).max())


@every_risk
def test_the_default_rule_is_any_and_out_receives_the_gradient(make):
    y, z = np.array([1, -1, 1, -1]), np.array([0.5, -0.5, 1.0, -1.0])
    plain, named, smallest = make().prepare(y), make("any").prepare(y), make("smallest").prepare(y)
    assert plain.ties == named.ties == "any"
    assert smallest.ties == "smallest"
    assert plain.evaluate(z).value == named.evaluate(z).value
    assert np.array_equal(plain.evaluate(z).grad, named.evaluate(z).grad)
    out = np.full(4, np.nan)
    assert smallest.evaluate(z, out=out).grad is out
    assert np.array_equal(out, smallest.evaluate(z).grad)
    assert smallest.evaluate(z, grad=False).grad is None


@for_each("risk", [HingeRisk, RocAreaRisk])
def test_smoothed_risks_have_no_ties(risk):
    y, z = np.array([1, -1, 1, -1]), np.array([0.5, -0.5, 1.0, -1.0])
    got, expected = (risk(ties).prepare(y).evaluate(z, 0.1) for ties in ("smallest", "any"))
    assert (got.value, got.plane, got.hard) == (expected.value, expected.plane, expected.hard)
    assert np.array_equal(got.grad, expected.grad)


@every_risk
@for_each("ties", ["smalest", "", None, 1, "largest"])
def test_unknown_rules_are_refused(make, ties):
    with pytest.raises(ValueError, match=r"ties=.*'any', 'smallest'"):
        make(ties)


# The points of the counter-examples (Zhang, Saha and Vishwanathan 2010, 2012), as scores after k steps, n rows or negatives.


@for_each("k", [1, 2, 5, 7])
def test_the_hinge_takes_the_first_row_not_used_yet(k):
    """y z is 1 + n / k for the k rows used, 1 for the others: R = 0, and the rows at the kink are all the same."""
    n = 8
    y = (-1) ** np.arange(1, n + 1)
    used = np.arange(n) < k
    w = math.sqrt(n) * (1.0 / math.sqrt(n))  # 1, up to rounding
    got = HingeRisk("smallest").prepare(y).evaluate(y * (w + np.where(used, n / k, 0.0)))
    expected = np.zeros(n)
    expected[k] = -y[k] / n
    np.testing.assert_allclose(got.grad, expected, rtol=0, atol=EPS)
    assert abs(got.plane - 1.0 / n) <= EPS
    assert abs(got.value) <= 4 * EPS


@for_each("k", [1, 3, 7])
def test_the_roc_area_takes_the_first_pair_not_used_yet(k):
    n = 8
    y = np.append(1, -np.ones(n, dtype=int))
    z = np.append(math.sqrt(n) * (1.0 / math.sqrt(n)), np.where(np.arange(n) < k, -n / k, 0.0))
    got = RocAreaRisk("smallest").prepare(y).evaluate(z)
    expected = np.zeros(n + 1)
    expected[0], expected[k + 1] = -1.0 / n, 1.0 / n
    np.testing.assert_allclose(got.grad, expected, rtol=0, atol=EPS)
    assert abs(got.plane - 1.0 / n) <= EPS


@for_each("k", [1, 3, 6])
def test_f1_flips_the_first_negative_not_used_yet(k):
    """One negative more costs -1/3 and adds 1/3 to the loss; the positive costs too much."""
    n = 8
    y = np.append(-np.ones(n - 1, dtype=int), 1)
    w = 1.0 / math.sqrt(3.0)
    z = np.append(
        -n / (2.0 * math.sqrt(3.0)) * w - np.where(np.arange(n - 1) < k, n / 2.0 / k, 0.0), math.sqrt(3.0) * n / 2.0 * w
    )
    got = ContingencyRisk("f1", ties="smallest").prepare(y).evaluate(z)
    expected = np.zeros(n)
    expected[k] = 2.0 / n
    np.testing.assert_allclose(got.grad, expected, rtol=0, atol=EPS)
    assert abs(got.plane - 1.0 / 3.0) <= 4 * EPS
    assert abs(got.value) <= TIED_WITHIN


@for_each("k", [1, 3, 6])
def test_prbep_flips_the_positive_and_the_first_negative_not_used_yet(k):
    n, q = 8, math.sqrt(2.0) / 4.0  # not a float: scores tie only up to rounding
    y = np.append(1, -np.ones(n - 1, dtype=int))
    used = np.arange(n - 1) < k
    z = np.append(q * n * 2.0 * q, -q * n * (2.0 * q + np.where(used, 2.0 * q / k, 0.0)))
    got = ContingencyRisk("prbep", ties="smallest").prepare(y).evaluate(z)
    expected = np.zeros(n)
    expected[0], expected[k + 1] = -2.0 / n, 2.0 / n
    np.testing.assert_allclose(got.grad, expected, rtol=0, atol=EPS)
    assert got.plane == 1.0


def test_scores_that_differ_by_less_than_a_tie_count_as_equal():
    """The last row would be taken by its score, the first by its index."""
    close = np.array([3e-10, 2e-10, -4e-10, 0.0])
    y = np.array([1, 1, -1, -1])
    got = HingeRisk("smallest").prepare(y).evaluate(y * (1.0 + close))
    assert np.flatnonzero(got.grad).tolist() == [0]
    got = RocAreaRisk("smallest").prepare(y).evaluate(np.where(y > 0, 1.0, 0.0) + close)
    assert np.flatnonzero(got.grad).tolist() == [0, 2]
    got = HingeRisk("smallest").prepare(y).evaluate(y * (1.0 + np.array([1.0, 1e-8, 1.0, 1.0])))  # beyond a tie
    assert not got.grad.any()
    got = HingeRisk("smallest").prepare(y).evaluate(y * (1.0 - np.array([0.0, 1e-8, 0.0, 5e-10])))
    assert np.flatnonzero(got.grad).tolist() == [1]


@for_each("measure", ["accuracy", "f1", "jaccard", "gmean", "hmean", "qmean", "min_tpr_tnr", "gower_legendre", "prbep"])
def test_counts_take_the_fewest_flips_but_one_at_least(measure):
    rng = np.random.default_rng(3)
    risk, tied = ContingencyRisk(measure, ties="smallest"), 0
    for trial in range(60):
        y = labels(rng, 3 + trial % 6)
        n, z, prepared = len(y), np.round(scores(rng, y, trial), 9), risk.prepare(y)
        flips = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        b, c = flips[:, y > 0].sum(axis=1), flips[:, y < 0].sum(axis=1)
        loss, number = prepared.loss(b.astype(float), c.astype(float)), flips.sum(axis=1)
        if measure == "prbep":
            loss = np.where(b == c, loss, -np.inf)
        if trial % 2:  # scores on the right side, of the size at which the true labelling is just as bad as another
            z = rng.integers(1, 4, size=n) * y
            z = z * (loss[1:] / (2.0 / n * (flips @ (y * z))[1:])).max()
        values = loss - 2.0 / n * (flips @ (y * z))
        worst = values >= values.max() - TIED_WITHIN
        changes = worst & (number > 0)
        tied += worst[0] and changes.any()
        flipped = prepared.evaluate(z).grad != 0.0
        assert flipped.sum() == (number[changes].min() if changes.any() else 0)
        assert worst[(flips == flipped).all(axis=1)].all()
        for i, j in itertools.combinations(range(n), 2):  # of rows that are alike the first
            assert not (y[i] == y[j] and z[i] == z[j] and flipped[j] and not flipped[i])
    assert tied >= 30


def test_weights_of_zero_are_no_change():
    """The first tied row is not there; a plane of slope 0 would end the run."""
    y, s = np.array([1, -1, 1, -1]), np.array([0.0, 0.0, 1.0, 2.0])
    got = HingeRisk("smallest").prepare(y, s).evaluate(1.0 * y)
    np.testing.assert_allclose(got.grad, [0.0, 0.0, -1.0 / 3.0, 0.0], rtol=0, atol=EPS)
    got = RocAreaRisk("smallest").prepare(y, s).evaluate(0.5 * y)
    np.testing.assert_allclose(got.grad, [0.0, 0.0, -1.0, 1.0], rtol=0, atol=EPS)


def test_weights_count_in_the_tied_row_and_pair():
    y, s = np.array([1, -1, 1, -1]), np.array([3.0, 1.0, 1.0, 2.0])
    got = HingeRisk("smallest").prepare(y, s).evaluate(1.0 * y)
    np.testing.assert_allclose(got.grad, [-3.0 / 7.0, 0.0, 0.0, 0.0], rtol=0, atol=EPS)
    assert abs(got.plane - 3.0 / 7.0) <= EPS
    got = RocAreaRisk("smallest").prepare(y, s).evaluate(0.5 * y)
    np.testing.assert_allclose(got.grad, [-0.25, 0.25, 0.0, 0.0], rtol=0, atol=EPS)


def test_counts_take_no_weights_under_this_rule():
    prepared = ContingencyRisk("f1", ties="smallest").prepare([1, -1], [1, 2])
    with pytest.raises(ValueError, match="ties='smallest' takes no sample weights"):
        prepared.evaluate(np.zeros(2))
