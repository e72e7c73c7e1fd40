"""Marginals of labellings: reference values, enumeration of all labellings, large scores, refusals."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from cases import for_each
from scoreline.measures import get_measure
from scoreline.risks import label_marginals
from scoreline.risks.marginals import loss_table

LOSSES = [
    ("f1", None), ("fbeta", {"beta": 0.5}), ("jaccard", None), ("accuracy", None), ("balanced_accuracy", None), ("gmean", None),
    ("hmean", None), ("qmean", None), ("min_tpr_tnr", None), ("gower_legendre", {"sigma": 2.0}), ("prbep", None),
]  # fmt: skip


def enumerated(a, y, measure, params, c):
    """Return log Z and expected labels from all 2^n labellings."""
    labellings = np.array(list(itertools.product((-1, 1), repeat=len(a))))
    table = loss_table(get_measure(measure, params), int((y > 0).sum()), int((y < 0).sum()))
    losses = np.array([table[((y > 0) & (z < 0)).sum(), ((y < 0) & (z > 0)).sum()] for z in labellings])
    logs = np.where(np.isneginf(losses), -np.inf, c * np.where(np.isneginf(losses), 0.0, losses) + labellings @ a)
    total = logsumexp(logs)
    return total, np.exp(logs - total) @ labellings


@for_each("measure, params", LOSSES)
@for_each("c", [0.0, 1.0, 30.0])
@for_each("n", [1, 2, 5, 10])
def test_marginals_are_those_of_all_labellings(measure, params, c, n):
    rng = np.random.default_rng([n, int(c)])
    for share in (0.3, 0.8):
        y = np.where(rng.random(n) < share, 1, -1)
        if measure == "prbep" or n == 1:
            y[0] = 1
        a = rng.standard_normal(n)
        got, (total, label) = label_marginals(a, y, measure, params, c), enumerated(a, y, measure, params, c)
        assert got.log_z == pytest.approx(total, rel=1e-12, abs=1e-12)  # sums of at most 1024 terms
        np.testing.assert_allclose(got.label, label, atol=1e-12)
        np.testing.assert_allclose(got.flipped, 0.5 * (1.0 - y * label), atol=1e-12)


@for_each("measure, a, y, log_z, label", [
        (
            "f1", [-0.3099, 0.7122, -0.9146, -0.2882, 1.2793, -0.1001, 0.9363, 0.123], [-1, 1, -1, -1, 1, 1, -1, -1],
            8.674747558318607,
            [-0.20787676971848823, 0.3597609675278349, -0.6754565257187832, -0.18678396241684708, 0.7249600002089911,
             -0.3792459837440989, 0.7815627053987915, 0.22359935011002158],
        ),
        (
            "prbep", [-0.5913, -0.5617, -1.0531, 0.0624, 0.2605, 0.5091, -1.2793, 0.5487], [1, -1, 1, -1, -1, -1, 1, -1],
            8.985799203327256,
            [-0.8609983320839746, -0.6237735520302014, -0.9436823992422486, 0.02257066921877822, 0.27960177133328157,
             0.5290593491103714, -0.9640037484187717, 0.5612262421127647],
        ),
        (
            "jaccard", [0.4923, 0.6463, 0.6118, -0.0402, -1.473, -0.5469, 0.2342, -0.3436], [-1, -1, 1, 1, -1, 1, -1, -1],
            9.355139688984867,
            [0.5054642936598214, 0.6118611098644811, 0.3240519330476293, -0.30431626762851033, -0.8897399960093649,
             -0.6751245222406582, 0.28775893048422935, -0.2792618314233324],
        ),
    ])  # fmt: skip
def test_marginals_have_the_reference_values(measure, a, y, log_z, label):
    got = label_marginals(a, y, measure, c=3.0)
    assert got.log_z == pytest.approx(log_z, abs=1e-10)  # the accuracy of the reference values
    np.testing.assert_allclose(got.label, label, atol=1e-10)


@for_each("size", [1e2, 1e4, 1e8])
def test_large_scores_leave_finite_numbers(size):
    rng = np.random.default_rng(0)
    a, y = size * rng.standard_normal(60), np.where(rng.random(60) < 0.3, 1, -1)
    got = label_marginals(a, y, "f1", c=1.0)
    assert np.isfinite(got.log_z)
    sure = np.abs(a) > 10.0  # e^-20 is 2e-9, and the loss adds 1 at most
    assert sure.sum() > 40
    np.testing.assert_allclose(got.label[sure], np.sign(a[sure]), atol=1e-6)


def test_marginals_are_the_gradient_of_log_z():
    rng = np.random.default_rng(1)
    a, y, h = rng.standard_normal(30), np.where(rng.random(30) < 0.4, 1, -1), 1e-5
    label = label_marginals(a, y, "jaccard", c=20.0).label
    for i in (0, 7, 29):
        up, down = (label_marginals(a + s * h * (np.arange(30) == i), y, "jaccard", c=20.0).log_z for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(label[i], abs=1e-8)  # h^2 and the rounding of log Z over h


def test_wrong_input_is_refused_by_name():
    with pytest.raises(ValueError, match="scores and y"):
        label_marginals([1.0, 2.0], [1], "f1")
    with pytest.raises(ValueError, match="scores finite"):
        label_marginals([1.0, np.nan], [1, -1], "f1")
    with pytest.raises(ValueError, match="c=-1"):
        label_marginals([1.0, 2.0], [1, -1], "f1", c=-1)
    with pytest.raises(ValueError, match="'roc_auc' is not one of confusion counts"):
        label_marginals([1.0, 2.0], [1, -1], "roc_auc")
