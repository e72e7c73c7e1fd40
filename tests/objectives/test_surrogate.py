"""The surrogate of each measure: gradients by finite differences and by all pairs, weights, ties, costs, errors."""

import numpy as np
import pytest

from scoreline import CountMeasure
from scoreline.measures import all_measures, best_threshold, get_measure
from scoreline.objectives import Surrogate, cost_of_errors
from tiers import tiered


def made(n=200, positives=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=int)
    y[:positives] = 1
    rng.shuffle(y)
    return y, rng.standard_normal(n) + y


OPTIONS = [
    *((measure, "auto") for measure in all_measures()),
    ("roc_auc", "roc_area"),
    ("partial_roc_auc", "roc_area_squared"),
    ("average_precision", "roc_area"),
    ("f1", "squared_hinge"),
    ("f1", "hinge"),
    ("f1", "contingency"),
    ("prbep", "logistic"),
]


@pytest.mark.parametrize(("measure", "risk"), tiered(OPTIONS, strength=1))
def test_the_gradient_is_that_of_the_value(measure, risk):
    y, z = made()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    prepared = Surrogate(measure, risk=risk).prepare(y, weight)
    found = prepared.evaluate(z)
    fixed = prepared  # an estimated cost counts as a constant
    if prepared.estimates_cost:
        fixed = Surrogate(measure, risk=risk, cost=found.cost).prepare(y, weight)
        assert fixed.evaluate(z).value == pytest.approx(found.value)
    for direction in np.random.default_rng(2).standard_normal((3, len(y))):
        step = 1e-6
        ends = [fixed.evaluate(z + sign * step * direction).value for sign in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(found.grad @ direction, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(("measure", "risk"), tiered(OPTIONS, strength=1))
@pytest.mark.parametrize("positives", [1, 40])
def test_the_literal_definition(measure, risk, positives):
    y, z = made(positives=positives)
    z = np.round(z, 1)  # with ties
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    prepared = Surrogate(measure, risk=risk, ramp=0.7).prepare(y, weight)
    found = prepared.evaluate(z)
    own = prepared.risk
    if own.name == "contingency":
        pytest.skip("subgradients differ at ties")
    unit = own.prepare(y, weight).offset if own.name in ("prbep", "hinge_free_intercept") else 1.0
    weight = np.where(y > 0, found.cost, 1.0) * weight
    mu = 0.7 * unit / own.prepare(y, weight).ramp_scale if own.smoothable else 0.0
    value, grad, _ = own.reference(unit * z, np.where(y > 0, 1, -1), weight, mu)
    assert found.value == pytest.approx(value, rel=1e-9)
    if own.name != "average_precision":  # with ties it has many subgradients
        np.testing.assert_allclose(found.grad, unit * grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("measure", tiered(all_measures(), strength=1))
def test_weights_are_repeated_rows(measure):
    y, z = made(120, 30, 3)
    weight = np.random.default_rng(4).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    once = Surrogate(measure).prepare(y, weight).for_boosting(z)
    repeated = Surrogate(measure).prepare(y[rows], None).for_boosting(z[rows])
    for own, other in zip(once, repeated, strict=True):
        np.testing.assert_allclose(own, np.bincount(rows, other), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("measure", tiered(all_measures(), strength=1))
@pytest.mark.parametrize("positives", [1, 199])
def test_equal_scores_and_rare_classes(measure, positives):
    y, _ = made(200, positives)
    grad, curvature = Surrogate(measure).prepare(y).for_boosting(np.zeros(200))
    assert np.isfinite(grad).all()
    assert (grad[y > 0] < 0).all() or measure == "precision_at_k"
    assert (grad[y == 0] >= 0).all()
    assert (curvature > 0).all()


def test_all_pairs():
    y, z = made()
    f, g = z[y > 0], z[y == 0]
    t = np.maximum(0.0, 1.0 - f[:, None] + g[None, :])
    found = Surrogate("roc_auc").prepare(y).evaluate(z, curvature=True)
    assert found.value == pytest.approx((t**2).mean() / 2)
    np.testing.assert_allclose(found.grad[y > 0], -t.mean(axis=1) / len(f))
    np.testing.assert_allclose(found.grad[y == 0], t.mean(axis=0) / len(g))
    np.testing.assert_allclose(found.curvature[y > 0], (t > 0).mean(axis=1) / len(f))  # the diagonal of the Hessian
    beta = np.clip(t, 0.0, 1.0)
    hinge = Surrogate("roc_auc", risk="roc_area").prepare(y).evaluate(z, curvature=True)
    assert hinge.value == pytest.approx((beta * (t - 0.5 * beta)).mean())
    np.testing.assert_allclose(hinge.grad[y == 0], beta.mean(axis=0) / len(g))
    expected = np.maximum(((t > 0) & (t < 1)).mean(axis=0), beta.mean(axis=0)) / len(g)
    np.testing.assert_allclose(hinge.curvature[y == 0], expected)


def test_boosting_sees_the_log_loss():
    """Without costs, gradient and curvature are those that boosted trees use for two classes."""
    y, z = made()
    weight = np.random.default_rng(1).random(len(y))
    p = 1.0 / (1.0 + np.exp(-z))
    grad, curvature = Surrogate("accuracy").prepare(y, weight).for_boosting(z)
    np.testing.assert_allclose(grad, weight * (p - y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(curvature, weight * p * (1 - p))
    costly, _ = Surrogate("f1", cost=3.0).prepare(y, weight).for_boosting(z)
    np.testing.assert_allclose(costly, np.where(y > 0, 3.0, 1.0) * grad)
    share = weight[y > 0].sum() / weight.sum()
    for measure in ("roc_auc", "partial_roc_auc"):
        grad, curvature = Surrogate(measure).prepare(y, weight).for_boosting(np.zeros(len(y)))
        assert -grad[y > 0].sum() == pytest.approx(share * (1 - share) * weight.sum())
        assert curvature.sum() <= 2.001 * share * (1 - share) * weight.sum() or measure != "roc_auc"


def test_costs_of_errors():
    y, z = made(2000, 400)
    for beta in (0.5, 1.0, 2.0):
        measure = get_measure("fbeta", {"beta": beta})
        value = best_threshold(np.where(y > 0, 1, -1), z, measure).value
        assert cost_of_errors(y, z, measure) == pytest.approx((1 + beta**2) / value - 1, rel=1e-3)
    assert cost_of_errors(y, z, "accuracy") == pytest.approx(1.0)
    assert cost_of_errors(y, z, "balanced_accuracy") == pytest.approx(4.0)
    assert cost_of_errors(y, z, "min_tpr_tnr") == pytest.approx(4.0, rel=0.5)
    assert cost_of_errors(y, z, "recall_at_precision") == 1.0
    assert cost_of_errors(
        y, z, CountMeasure(lambda tp, fp, fn, tn: 9.0 * tp - 2.0 * fp, name="profit")
    ) == pytest.approx(4.5)
    extreme = CountMeasure(lambda tp, fp, fn, tn: 1e9 * tp - fp, name="extreme")
    assert cost_of_errors(y, z, extreme) == 40.0  # ten times the ratio of the classes
    never = CountMeasure(lambda tp, fp, fn, tn: 0.0 * tp, name="constant")
    assert cost_of_errors(y, z, never) == 4.0
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    assert cost_of_errors(y, z, "f1", weight) == pytest.approx(cost_of_errors(y[rows], z[rows], "f1"))


def test_scores_in_float32_and_labels_of_any_kind():
    y, z = made()
    z = z.astype(np.float32)
    first = Surrogate("roc_auc").prepare(y).evaluate(z.astype(np.float64))
    for labels in (y > 0, 2 * y - 1, y.astype(np.float32)):
        np.testing.assert_array_equal(Surrogate("roc_auc").prepare(labels).evaluate(z).grad, first.grad)


def test_what_is_wrong_is_said():
    y, z = made()
    with pytest.raises(ValueError, match="risk"):
        Surrogate("roc_auc", risk="roc")
    with pytest.raises(ValueError, match="measure"):
        Surrogate("auc")
    with pytest.raises(ValueError, match="Use risk='logistic'"):
        Surrogate("roc_auc", cost=2.0)
    with pytest.raises(ValueError, match="cost=-1"):
        Surrogate("f1", cost=-1)
    with pytest.raises(ValueError, match="ramp=-1"):
        Surrogate("f1", ramp=-1)
    with pytest.raises(ValueError, match="both of them"):
        Surrogate("roc_auc").prepare(np.ones(5))
    with pytest.raises(ValueError, match="whole numbers"):
        Surrogate("average_precision").prepare(y, np.full(len(y), 0.5))
    with pytest.raises(ValueError, match="ranking measure"):
        cost_of_errors(y, z, "roc_auc")
    with pytest.raises(ValueError, match="shape"):
        Surrogate("roc_auc").prepare(y).evaluate(z[1:])
