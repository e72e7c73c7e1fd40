"""Objectives and metrics inside LightGBM, XGBoost and CatBoost, against their own losses and against our formulas."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import cross_val_score

from scoreline.measures import best_threshold, get_scorer
from scoreline.objectives import (
    Surrogate,
    catboost_metric,
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

ROWS = 1600


def made(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 5))
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-(2 * X[:, 0] * X[:, 1] + X[:, 2] - 1.5)))).astype(int)
    return X, y, rng.integers(1, 4, ROWS).astype(float)


X, Y, WEIGHT = made()
TRAIN, TEST = slice(0, 800), slice(800, None)
MEASURES = ("roc_auc", "partial_roc_auc", "average_precision", "prbep", "f1")
TREES = {"n_estimators": 10, "n_jobs": 1}


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def catboost():
    return pytest.importorskip("catboost")


def test_callables_without_a_library():
    z = X[:, 0]
    for make in (lightgbm_objective, xgboost_objective):
        objective = make("roc_auc")
        expected = Surrogate("roc_auc").prepare(Y, WEIGHT).for_boosting(z)
        for labels, weight in ((Y, WEIGHT), (Y.copy(), WEIGHT.copy())):
            for own, other in zip(objective(labels, z, weight), expected, strict=True):
                np.testing.assert_array_equal(own, other)
        assert not np.array_equal(objective(Y, z)[0], expected[0])  # without weights, after a call with weights
        again = pickle.loads(pickle.dumps(objective))
        np.testing.assert_array_equal(again(Y, z, WEIGHT)[0], expected[0])
        assert "roc_auc" in repr(objective)
        with pytest.raises(ValueError, match="two classes"):
            objective(Y, np.zeros((ROWS, 3)))
        with pytest.raises(ValueError, match="both of them"):
            objective(np.ones(ROWS), z)


def test_metrics_are_the_measures():
    z = X[:, 0] + Y
    sign = np.where(Y > 0, 1, -1)
    assert lightgbm_metric("roc_auc")(Y, z, WEIGHT) == (
        "roc_auc",
        pytest.approx(roc_auc_score(Y, z, sample_weight=WEIGHT)),
        True,
    )
    assert xgboost_metric("average_precision")(Y, z) == pytest.approx(-average_precision_score(Y, z))
    assert xgboost_metric("average_precision").__name__ == "minus_average_precision"
    assert lightgbm_metric("f1")(Y, z)[1] == pytest.approx(best_threshold(sign, z, "f1").value)
    at_zero = lightgbm_metric("fbeta", {"beta": 2.0}, threshold=0.0)(Y, z)[1]
    assert at_zero < lightgbm_metric("fbeta", {"beta": 2.0})(Y, z)[1]
    metric = catboost_metric("f1")
    assert metric.is_max_optimal()
    value = metric.get_final_error(*metric.evaluate([z], Y, None))
    assert value == pytest.approx(best_threshold(sign, z, "f1").value)
    for make in (lightgbm_metric, xgboost_metric, catboost_metric):
        with pytest.raises(ValueError, match="threshold='high'"):
            make("f1", threshold="high")


@pytest.mark.parametrize("measure", MEASURES)
def test_lightgbm_in_both_interfaces(lightgbm, measure):
    objective, metric = lightgbm_objective(measure), lightgbm_metric(measure)
    model = lightgbm.LGBMClassifier(objective=objective, metric="None", verbose=-1, **TREES)
    model.fit(X[TRAIN], Y[TRAIN], sample_weight=WEIGHT[TRAIN], eval_set=[(X[TEST], Y[TEST])], eval_metric=metric,
              callbacks=[lightgbm.early_stopping(5, verbose=False)])  # fmt: skip
    scores = model.predict(X[TEST], raw_score=True)
    assert roc_auc_score(Y[TEST], scores) > 0.7
    best = model.best_score_["valid_0"][measure]
    assert best == pytest.approx(metric(Y[TEST], scores)[1], rel=1e-6)
    options = {"objective": objective, "metric": "None", "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X[TRAIN], Y[TRAIN], weight=WEIGHT[TRAIN])
    rounds = model.best_iteration_ or 10
    native = lightgbm.train(options, data, rounds, valid_sets=[data.create_valid(X[TEST], Y[TEST])], feval=metric)
    np.testing.assert_allclose(native.predict(X[TEST]), scores, rtol=1e-6)
    assert native.best_score["valid_0"][measure] == pytest.approx(best, rel=1e-6)


def test_lightgbm_sees_its_own_log_loss(lightgbm):
    own = lightgbm.LGBMClassifier(boost_from_average=False, verbose=-1, **TREES).fit(X, Y, sample_weight=WEIGHT)
    ours = lightgbm.LGBMClassifier(objective=lightgbm_objective("accuracy"), verbose=-1, **TREES)
    ours = clone(ours).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(ours.predict(X, raw_score=True), own.predict(X, raw_score=True), rtol=1e-4, atol=1e-4)
    scores = cross_val_score(ours, X, Y, cv=3, scoring=lambda m, a, b: roc_auc_score(b, m.predict(a, raw_score=True)))
    assert scores.min() > 0.7


@pytest.mark.parametrize("measure", MEASURES)
def test_xgboost_in_both_interfaces(xgboost, measure):
    objective, metric = xgboost_objective(measure), xgboost_metric(measure)
    model = xgboost.XGBClassifier(
        objective=objective, eval_metric=metric, early_stopping_rounds=5, disable_default_eval_metric=True, **TREES
    )
    model = clone(model).fit(
        X[TRAIN], Y[TRAIN], sample_weight=WEIGHT[TRAIN], eval_set=[(X[TEST], Y[TEST])], verbose=False
    )
    scores = model.predict(X[TEST], output_margin=True)
    assert roc_auc_score(Y[TEST], scores) > 0.7
    assert model.best_score == pytest.approx(metric(Y[TEST], scores), rel=1e-6)
    options = {"nthread": 1, "disable_default_eval_metric": True, "base_score": 0.0}
    data = xgboost.DMatrix(X[TRAIN], Y[TRAIN], weight=WEIGHT[TRAIN])
    test = xgboost.DMatrix(X[TEST], Y[TEST])
    log = {}
    native = xgboost.train(options, data, model.best_iteration + 1, obj=objective, custom_metric=metric,
                           evals=[(test, "test")], evals_result=log, verbose_eval=False)  # fmt: skip
    np.testing.assert_allclose(native.predict(test, output_margin=True) - scores, 0.0, atol=1e-4)
    assert log["test"][f"minus_{measure}"][-1] == pytest.approx(model.best_score, rel=1e-4)


def test_xgboost_sees_its_own_log_loss(xgboost):
    options = {"nthread": 1, "max_depth": 3}
    data = xgboost.DMatrix(X, Y, weight=WEIGHT)
    own = xgboost.train({**options, "objective": "binary:logistic", "base_score": 0.5}, data, 5)
    ours = xgboost.train({**options, "base_score": 0.0}, data, 5, obj=xgboost_objective("accuracy"))
    found, expected = (model.predict(data, output_margin=True) for model in (ours, own))
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("measure", MEASURES)
def test_catboost(catboost, measure):
    objective = catboost_objective(measure)
    options = {"iterations": 10, "thread_count": 1, "verbose": 0, "allow_writing_files": False, "learning_rate": 0.1}
    model = catboost.CatBoostClassifier(
        loss_function=objective, eval_metric=objective, early_stopping_rounds=5, **options
    )
    model.fit(X[TRAIN], Y[TRAIN], sample_weight=WEIGHT[TRAIN], eval_set=(X[TEST], Y[TEST]))
    scores = model.predict(X[TEST], prediction_type="RawFormulaVal")
    assert roc_auc_score(Y[TEST], scores) > 0.7
    sign = np.where(Y[TEST] > 0, 1, -1)
    expected = get_scorer(measure)._score_func(Y[TEST], scores) if measure == "roc_auc" else None
    best = model.get_best_score()["validation"]
    if expected is not None:
        assert next(iter(best.values())) == pytest.approx(expected)
    if measure == "f1":
        assert next(iter(best.values())) == pytest.approx(best_threshold(sign, scores, "f1").value)
    again = catboost.CatBoostClassifier(
        loss_function=objective, eval_metric=objective, early_stopping_rounds=5, **options
    )
    again.fit(X[TRAIN], Y[TRAIN], sample_weight=WEIGHT[TRAIN], eval_set=(X[TEST], Y[TEST]))
    np.testing.assert_allclose(again.predict(X[TEST], prediction_type="RawFormulaVal"), scores)  # used twice
    assert pickle.loads(pickle.dumps(objective)).surrogate.measure.name == measure


def test_catboost_sees_all_rows_through_the_metric():
    """The derivatives of blocks are those of all rows, at the scores of the last call of the metric."""
    objective = catboost_objective("roc_auc")
    blocks = [slice(0, 1000), slice(1000, ROWS)]
    z = np.zeros(ROWS)
    first = [objective.calc_ders_range(z[b], Y[b], WEIGHT[b]) for b in blocks]
    expected = Surrogate("roc_auc").prepare(Y, WEIGHT).for_boosting(z)
    np.testing.assert_allclose(first[1][:, 0], -expected[0][blocks[1]])  # the last block has seen all counts
    z = X[:, 0]
    objective.evaluate([z], Y, WEIGHT)
    objective.evaluate([z[:100]], Y[:100], None)  # rows to evaluate on change nothing
    grad, curvature = Surrogate("roc_auc").prepare(Y, WEIGHT).for_boosting(z)
    found = np.concatenate([objective.calc_ders_range(z[b], Y[b], WEIGHT[b]) for b in blocks])
    np.testing.assert_allclose(found[:, 0], -grad, atol=1e-12)
    np.testing.assert_allclose(found[:, 1], -curvature)
    with pytest.raises(ValueError, match="metric_period=1"):
        objective.evaluate([z[:7]], Y[:7], None)


def test_catboost_needs_the_metric():
    objective = catboost_objective("roc_auc")
    for _ in range(101):
        objective.calc_ders_range(np.zeros(ROWS), Y, None)
    with pytest.raises(ValueError, match="as loss_function and as eval_metric"):
        objective.calc_ders_range(np.zeros(ROWS), Y, None)


def test_catboost_sees_its_own_log_loss(catboost):
    options = {"iterations": 10, "thread_count": 1, "verbose": 0, "allow_writing_files": False, "learning_rate": 0.1,
               "leaf_estimation_iterations": 1, "boost_from_average": False}  # fmt: skip
    own = catboost.CatBoostClassifier(**options).fit(X, Y, sample_weight=WEIGHT)
    objective = catboost_objective("accuracy")
    options.pop("boost_from_average")
    ours = catboost.CatBoostClassifier(loss_function=objective, eval_metric=objective, **options)
    ours.fit(X, Y, sample_weight=WEIGHT)
    raw = [m.predict(X, prediction_type="RawFormulaVal") for m in (own, ours)]
    assert np.corrcoef(*raw)[0, 1] > 0.99
