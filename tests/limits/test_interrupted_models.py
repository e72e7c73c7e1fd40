"""Ctrl-C in every phase of a fit leaves a model that can be used, or none and says so."""

import signal

import numpy as np
import pytest
from sklearn.base import clone

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline import classifier as classifier_module
from scoreline.classifier import load_model
from scoreline.cli import train as train_module
from scoreline.cli.main import main
from scoreline.fitting import certified
from scoreline.fitting.interim import Interim
from scoreline.fitting.parameters import Parameters
from scoreline.model_selection import search
from scoreline.operators import DenseOperator
from scoreline.solvers import cost_search
from scoreline.solvers.common import sample_start
from tiers import TIER

# phase: (parameters, where Ctrl-C comes: module or class, function, number of the call)
PHASES = {
    "sample start, second sample": ({"init": "samples"}, sample_start.Samples, "of", 2),
    "after the samples": ({"init": "samples"}, sample_start, "Sampled", 2),
    "search over costs, between fits": ({"measure": "gmean"}, certified, "with_cost", 1),
    "fit on held-out rows": (
        {"measure": "f1", "threshold": "holdout", "solver": "smoothed", "risk": "hinge"},
        certified,
        "threshold_with_margin",
        1,
    ),
    "threshold": ({}, certified, "best_threshold", 1),
    "leave-one-out": ({"measure": "f1", "risk": "logistic"}, certified, "leave_one_out", 1),
    "two methods, before the second": ({"measure": "f1", "alpha": 1.0}, certified, "is_weak", 1),
    "two methods, in the second": ({"measure": "f1", "alpha": 1.0}, cost_search, "leave_one_out", 1),
    "two methods compared": ({"measure": "f1", "alpha": 1.0}, certified, "paired_gain", 1),
    "attributes": ({}, classifier_module, "set_model", 1),
    "calibration": ({"probability": True}, classifier_module, "cross_fitted_scores", 1),
    "rows one by one, held out": (
        {"measure": "gmean", "solver": "spade", "threshold": "holdout"},
        "row_by_row",
        "threshold_with_margin",
        1,
    ),
}
FOLDS = {
    "first fold": ({}, search, "is_degenerate", 1),
    "last fold": ({}, search, "is_degenerate", 5),
    "folds of whole fits": ({"measure": "f1", "solver": "amp"}, search, "with_features", 3),
    "final fit": ({}, search, "pooled", 1),
    "threshold of the folds": ({}, search, "threshold_of", 1),
    "calibration": ({"probability": True}, search, "calibration", 1),
    "results": ({}, search, "undefined_folds", 1),
}


def rows(n=20_000, p=4):
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.3
    X = rng.standard_normal((n, p))
    X[y] += 0.7
    return X, y


def press(monkeypatch, place, name, number):
    """Have the n-th call of a function interrupted; returns what tells whether it was."""
    if place == "row_by_row":
        from scoreline.fitting import row_by_row as place
    plain, calls = getattr(place, name), []

    def pressed(*arguments, **options):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(place, name, pressed)
    return lambda: len(calls) >= number


def assert_usable(clf, X, y):
    assert clf.status_ == "interrupted"
    assert clf.coef_.shape == (1, X.shape[1])
    decision = clf.decision_function(X)
    assert np.mean(decision[y]) > np.mean(decision[~y]) + 0.1 * np.ptp(np.quantile(decision, [0.1, 0.9]))
    assert 0.0 < np.mean(clf.predict(X)) < 1.0


@for_each("phase", ("threshold", "rows one by one, held out") if TIER == "quick" else PHASES)
def test_every_phase_leaves_a_model(phase, monkeypatch, tmp_path):
    options, *where = PHASES[phase]
    X, y = rows(80_000, 20) if "init" in options else rows()
    params = {"init": options["init"]} if "init" in options else None
    clf = MeasureClassifier(**{k: v for k, v in options.items() if k != "init"}, solver_params=params, random_state=0)
    with monkeypatch.context() as patch:
        interrupted = press(patch, *where)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
    assert interrupted()
    assert_usable(clf, X, y)
    assert not hasattr(clf, "_interim")
    clf.solver_params = None
    clf.save(tmp_path / "model.npz")
    assert np.array_equal(load_model(tmp_path / "model.npz").predict(X), clf.predict(X))


@for_each("n_jobs", [1] if TIER == "quick" else [1, 2])
@for_each("phase", ["final fit"] if TIER == "quick" else FOLDS)
def test_every_phase_of_a_search_leaves_a_model(phase, n_jobs, monkeypatch, tmp_path):
    options, *where = FOLDS[phase]
    X, y = rows(2000)
    clf = MeasureClassifierCV(**options, alphas=[1e-2, 1e-3], cv=3, n_jobs=n_jobs, random_state=0)
    with monkeypatch.context() as patch:
        interrupted = press(patch, *where)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
    assert interrupted()
    assert_usable(clf, X, y)
    assert clf.alpha_ in (1e-2, 1e-3)
    clf.save(tmp_path / "model.npz")
    assert np.array_equal(load_model(tmp_path / "model.npz").predict(X), clf.predict(X))


@for_each("options", [{"class_weight": "balanced"}, {"class_weight": {False: 1.0, True: 50.0}}, {"threshold": "none"}])
def test_the_threshold_of_an_interrupted_model_is_that_of_the_fit(options, monkeypatch):
    X, y = rows()
    uninterrupted = MeasureClassifier(**options).fit(X, y)
    clf = clone(uninterrupted)
    with monkeypatch.context() as patch:
        press(patch, certified, "is_degenerate", 1)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
    assert np.mean(clf.predict(X) == uninterrupted.predict(X)) > 0.98


def test_methods_of_rows_have_a_model_after_every_pass():
    X, y = rows(2000)
    ready = []
    clf = MeasureClassifier("gmean", solver="spade")
    clf.solver_params = {"callbacks": [lambda progress: ready.append(clf._interim.ready)]}
    clf.fit(X, y)
    assert ready
    assert all(ready)


def test_the_best_fold_is_kept():
    """Of finished fits the one with the best measure on held-out rows, before any that is under way."""
    interim, operator = Interim(), DenseOperator(np.eye(2))
    fold = interim.of_fold()
    assert not interim.ready
    fold.begin(lambda w: (w, 0.0), solver_="a", risk_="hinge")
    fold.see(np.zeros(2))
    assert not interim.ready
    fold.see(np.array([1.0, 0.0]))
    assert interim.ready
    sign = np.array([1, -1])
    assert interim.model(operator, sign, None, Parameters.of(MeasureClassifier()).measure)["coef_"].tolist() == [
        [1.0, 0.0]
    ]
    for value in (0.5, 0.7, 0.6):
        interim.of_fold().finish(lambda value=value: (value, 0.1), np.array([value, 1.0]), 0.0, alpha_=value)
    found = interim.model(operator, sign, None, Parameters.of(MeasureClassifier()).measure)
    assert (found["alpha_"], found["intercept_"].tolist()) == (0.7, [-0.1])


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = rows(3000)
    np.savez("rows.npz", X=X, y=np.where(y, 1, -1))
    return X, y


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--alpha", "auto"), marks=pytest.mark.slow)], ids=["fit", "search"]
)
@pytest.mark.parametrize(
    "place", ["before", "fit", *(pytest.param(p, marks=pytest.mark.slow) for p in ("score", "save", "after"))]
)
def test_the_command_line_saves_what_there_is(table, place, options, monkeypatch, capsys, tmp_path):
    """Before the fit, in the fit, in the evaluation on the training rows, while the file is written, and in the report."""
    X, y = table
    kind = MeasureClassifierCV if options else MeasureClassifier
    if place == "before":
        press(monkeypatch, DenseOperator, "inspect", 1)
    elif place == "fit":
        press(monkeypatch, *((search, "is_degenerate", 4) if options else (certified, "best_threshold", 1)))
    elif place == "score":
        press(monkeypatch, kind, "score", 1)
    elif place == "after":
        press(monkeypatch, train_module, "_certificate", 1)
    else:
        save = kind.save

        def slow(self, *arguments):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            save(self, *arguments)

        monkeypatch.setattr(kind, "save", slow)
    code = main(["train", "rows.npz", *options])
    err = capsys.readouterr().err
    saved = (tmp_path / "model.npz").exists()
    if place == "before":
        assert (code, saved) == (130, False)
        assert "there is no model yet" in err
        return
    assert saved
    assert code == (0 if place == "save" else 130)
    if place in ("fit", "score"):
        assert "the best model so far is saved in model.npz" in err
    if place == "after":
        assert "interrupted: the model is saved in model.npz" in err
    clf = load_model("model.npz")
    decision = clf.decision_function(X)
    assert decision[y].mean() > decision[~y].mean()


def test_progress_is_shown_once_there_is_a_model(table, monkeypatch, capsys):
    monkeypatch.setattr("scoreline.cli.output.PROGRESS_SECONDS", 0.0)
    fitted, shown = [], []
    fit, update = MeasureClassifier.fit, train_module.Progress.update

    def recording(self, *arguments):
        fitted.append(self)
        return fit(self, *arguments)

    def updated(self, *arguments):
        shown.append(fitted[0]._interim.ready)
        update(self, *arguments)

    monkeypatch.setattr(MeasureClassifier, "fit", recording)
    monkeypatch.setattr(train_module.Progress, "update", updated)
    assert main(["train", "rows.npz", "--measure", "f1"]) == 0
    assert shown
    assert all(shown)
    assert "training: iteration" in capsys.readouterr().err
