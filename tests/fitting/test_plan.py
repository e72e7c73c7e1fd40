"""The plan of a fit: what "auto" takes, and that everybody asks the same function."""

import numpy as np

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV, list_measures, load_model
from scoreline.fitting.plan import Request, Shape, ThresholdRule, Training, contenders, plan
from scoreline.measures import all_measures, get_measure
from scoreline.report.wording import fit_facts
from scoreline.risks.registry import all_risks
from scoreline.solvers.registry import all_solvers

AMPLE, SCARCE, WIDE = Shape(10_000, 10, 3_000), Shape(900, 10, 300), Shape(5_000, 2_000, 1_500)
every_measure = for_each("name", sorted(all_measures()))


@every_measure
@for_each("shape", [AMPLE, SCARCE, WIDE])
def test_auto_gives_a_method_that_serves_the_measure(name, shape):
    measure = get_measure(name)
    decided = plan(Request(), measure, shape)
    assert decided.risk.name in measure.risks
    assert decided.solver.serves(decided.risk)
    assert decided.solver.trains(measure)
    assert not decided.solver.research
    assert not decided.risk.research
    assert decided.reason in str(decided)
    assert decided.fallback is None or decided.fallback.risk.curved


@every_measure
def test_a_fit_follows_its_plan(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + rng.standard_normal(300) > 0.5).astype(int)
    clf = MeasureClassifier(name, alpha=1e-2, random_state=0)
    with np.errstate(all="ignore"):
        clf.fit(X, y)
    decided = plan(Request(), get_measure(name), Shape.of(np.where(y, 1, -1), None, 3))
    assert clf.plan_ == str(decided)
    if clf.rejected_ is None:
        assert (clf.solver_, clf.risk_) == (decided.solver.name, decided.risk.name)
    else:
        assert (clf.solver_, clf.risk_) == (decided.fallback.solver.name, decided.fallback.risk.name)


def test_the_plan_is_one_sentence_that_is_shown_and_saved(tmp_path, caplog):
    X = np.random.default_rng(0).standard_normal((200, 2))
    y = X[:, 0] > 0.3
    caplog.set_level("INFO", "scoreline")
    clf = MeasureClassifier("gmean").fit(X, y)
    assert clf.plan_.startswith("gmean: cost_search minimises the logistic risk because ")
    assert "leave-one-out scores" in clf.plan_
    assert any(clf.plan_ in record.getMessage() for record in caplog.records)
    clf.save(tmp_path / "m.npz")
    assert load_model(tmp_path / "m.npz").plan_ == clf.plan_
    searched = MeasureClassifierCV("gmean", alphas=[1e-2, 1e-3], cv=2).fit(X, y)
    assert searched.plan_.startswith("gmean: cost_search")


@for_each(
    ("options", "reason"),
    [
        ({"measure": "gmean"}, "the measure is count-based"),  # the only contender
        ({"measure": "f1"}, "cross-validation chose it"),  # amp or cost_search
        ({"measure": "f1", "risk": ["logistic", "squared_hinge"]}, "cross-validation chose it"),
        ({"measure": "f1", "solver": "amp"}, "it was requested"),
    ],
)
def test_the_plan_of_a_search_says_who_chose_the_solver(options, reason, caplog):
    X = np.random.default_rng(0).standard_normal((400, 2))
    y = X[:, 0] + 0.1 * X[:, 1] > 0.3
    caplog.set_level("INFO", "scoreline")
    clf = MeasureClassifierCV(**options, alphas=[1e-2, 1e-3], cv=2).fit(X, y)
    assert f" because {reason}" in clf.plan_
    assert any(clf.plan_ in record.getMessage() for record in caplog.records)


def test_the_plan_of_a_search_says_where_the_threshold_comes_from():
    X = np.random.default_rng(0).standard_normal((400, 2))
    y = X[:, 0] > 0.3
    searched = MeasureClassifierCV("gmean", alphas=[1e-2, 1e-3], cv=2).fit(X, y)
    assert searched.plan_.endswith(ThresholdRule.ALL_FOLDS.value)
    trained = MeasureClassifierCV("gmean", alphas=[1e-2, 1e-3], cv=2, threshold="train").fit(X, y)
    assert trained.plan_.endswith(ThresholdRule.TRAINING_SCORES.value)


@for_each(
    ("options", "expected"),
    [
        ({"measure": "accuracy"}, Training.DIRECT),
        ({"measure": "accuracy", "risk": "logistic"}, Training.THRESHOLD),  # everybody trains that
        ({"measure": "accuracy", "risk": "squared_hinge"}, Training.THRESHOLD),
        ({"measure": "average_precision"}, Training.RANKING),
        ({"measure": "average_precision", "risk": "average_precision"}, Training.DIRECT),
        ({"measure": "roc_auc", "risk": "logistic"}, Training.RANKING),
        ({"measure": "prbep"}, Training.DIRECT),
        ({"measure": "f1"}, Training.COST_AND_THRESHOLD),
        ({"measure": "f1", "solver": "plugin"}, Training.THRESHOLD),
    ],
)
def test_the_report_says_what_the_measure_decides(options, expected):
    X = np.random.default_rng(0).standard_normal((100, 2))
    clf = MeasureClassifier(**options, alpha=1e-2).fit(X, X[:, 0] + X[:, 1] ** 3 > 0.3)
    assert f"the measure is trained by {expected.value};" in dict(fit_facts(clf))["plan"]


@for_each(
    ("request_", "measure", "shape", "expected"),
    [
        (Request(), "roc_auc", SCARCE, ThresholdRule.TRAINING_SCORES),
        (Request(class_weight="balanced"), "roc_auc", Shape(90, 10, 60), ThresholdRule.HELD_OUT_ROWS),
        (Request(), "f1", SCARCE, ThresholdRule.LEAVE_ONE_OUT),
        (Request(), "f1", AMPLE, ThresholdRule.TRAINING_SCORES),
        (Request(risk="hinge"), "f1", Shape(90, 10, 50), ThresholdRule.HELD_OUT_ROWS),
        (Request(risk="hinge"), "f1", Shape(100, 10, 50), ThresholdRule.TRAINING_SCORES),
        (Request(risk="hinge"), "f1", Shape(90, 10, 49), ThresholdRule.TRAINING_SCORES),
        (Request(solver="stamp"), "f1", Shape(90, 10, 50), ThresholdRule.HELD_OUT_ROWS),
        (Request(solver="moments"), "accuracy", Shape(90, 10, 50), ThresholdRule.TRAINING_SCORES),
        (Request(options={"early_stopping": 0.1}), "f1", SCARCE, ThresholdRule.VALIDATION_ROWS),
        (Request(options={"early_stopping": 0.1}), "roc_auc", SCARCE, ThresholdRule.TRAINING_SCORES),
        (Request(threshold="none"), "f1", SCARCE, ThresholdRule.NONE),
        (Request(threshold="holdout"), "roc_auc", SCARCE, ThresholdRule.HELD_OUT_ROWS),
        (Request(threshold="train"), "f1", SCARCE, ThresholdRule.TRAINING_SCORES),
    ],
)  # fmt: skip
def test_threshold_rules(request_, measure, shape, expected):
    assert plan(request_, get_measure(measure), shape).threshold is expected


@every_measure
def test_cross_validation_starts_with_the_plan_of_a_fit(name):
    measure = get_measure(name)
    for shape in (AMPLE, SCARCE, WIDE):
        first = contenders(Request(), None, measure, shape)[0]
        decided = plan(Request(), measure, shape)
        assert (first.risk.name, first.solver) == (decided.risk.name, decided.solver)


def test_lists_agree_with_what_can_be_planned():
    """Every solver and risk that a list offers for a measure can be planned, and no other."""
    for info in list_measures():
        measure = get_measure(info.name)
        for solver in all_solvers():
            for risk in all_risks():
                try:
                    decided = plan(Request(risk, solver), measure, SCARCE)
                except (ValueError, TypeError):
                    assert (
                        solver not in info.solvers
                        or risk not in info.risks
                        or not all_solvers()[solver].serves(all_risks()[risk])
                    )
                    continue
                assert decided.solver.name == solver
                assert decided.risk.name == risk
