"""What "auto" takes is the same for fits, folds and the command line, and no degenerate fit where there is a better one."""

import logging
import warnings

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.classifier import load_model
from scoreline.io import make_imbalanced
from scoreline.solvers import Checkpoint, EarlyStopping

CHOSEN = ("solver_", "risk_", "rejected_", "cost_", "n_iter_", "status_")


def rows(n=1500, p=3, share=0.05, seed=0):
    rng = np.random.default_rng([seed, n, p])
    y = rng.random(n) < share
    X = rng.standard_normal((n, p))
    X[y] += 0.5
    return X, y


def assert_same(one, other):
    for name in CHOSEN:
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_array_equal(other.coef_, one.coef_)
    np.testing.assert_array_equal(other.intercept_, one.intercept_)


@for_each("measure", ["f1", "prbep", "accuracy", "roc_auc"])
def test_watching_a_fit_does_not_change_it(measure, tmp_path):
    """Callbacks and verbosity show what is done, and early stopping by rows of one's own does not choose another method."""
    for seed in range(3):
        X, y = rows(seed=seed)
        plain = MeasureClassifier(measure).fit(X, y)
        watched = MeasureClassifier(measure, solver_params={"callbacks": [lambda progress: None]}, verbose=1).fit(X, y)
        assert_same(plain, watched)
        saved = MeasureClassifier(measure, solver_params={"checkpoint": Checkpoint(tmp_path / "fit.npz")}).fit(X, y)
        assert (saved.solver_, saved.risk_, saved.rejected_) == (plain.solver_, plain.risk_, plain.rejected_)


@for_each("measure", ["f1", "accuracy"])
@for_each("n", [280, 320])
def test_rows_count_as_often_as_their_weight_says(measure, n):
    """With three features "auto" takes another method from 300 rows on."""
    X, y = rows(n, share=0.3)
    rng = np.random.default_rng(0)
    more = np.r_[X, rng.standard_normal((200, 3))], np.r_[y, rng.random(200) < 0.5]
    padded = MeasureClassifier(measure, tol=1e-6).fit(*more, np.r_[np.ones(n), np.zeros(200)])
    alone = MeasureClassifier(measure, tol=1e-6).fit(X, y)
    assert (padded.solver_, padded.risk_) == (alone.solver_, alone.risk_)
    times = np.full(n, 2)
    weighted = MeasureClassifier(measure, tol=1e-6).fit(X, y, times)
    repeated = MeasureClassifier(measure, tol=1e-6).fit(np.repeat(X, times, 0), np.repeat(y, times))
    first = [(clf.rejected_ or clf.solver_).split()[0] for clf in (weighted, repeated)]
    assert first[0] == first[1]


@for_each("n", [440, 380])
def test_folds_train_what_the_final_fit_trains(n, monkeypatch):
    """All rows are ample for three features and four fifths of them are not, or neither is; "auto" must not change its mind."""
    X, y = rows(n, share=0.3)
    fitted = []
    fit = MeasureClassifier.fit

    def recording(self, *arguments):
        fit(self, *arguments)
        fitted.append((self.solver, self.solver_, self.risk_, self.rejected_))
        return self

    monkeypatch.setattr(MeasureClassifier, "fit", recording)
    clf = MeasureClassifierCV("f1", alphas=[0.1, 0.01], cv=3).fit(X, y)
    assert all(solver != "auto" and rejected is None for solver, _, _, rejected in fitted)
    assert fitted[-1][1:3] == (clf.solver_, clf.risk_)
    # Both methods for ample rows, judged by the same folds: whole fits of `amp`, and a path for each cost of `cost_search`.
    assert {each[1] for each in fitted[:-1]} == {"amp"}
    assert set(clf.cv_results_["risk"]) == {"hinge", "logistic"}


@for_each("risk", [["logistic"], ("logistic",), "logistic"])
@for_each("measure", ["roc_auc", "accuracy", "prbep"])
def test_one_risk_in_a_list_is_that_risk(measure, risk):
    X, y = rows(600, share=0.4)
    clf = MeasureClassifierCV(measure, alphas=[1e-3], cv=3, risk=risk, probability=True).fit(X, y)
    named = MeasureClassifierCV(measure, alphas=[1e-3], cv=3, risk="logistic", probability=True).fit(X, y)
    assert clf.risk_ == "logistic"
    assert_same(named, clf)
    np.testing.assert_array_equal(clf.calibration_, named.calibration_)


def test_a_search_saves_the_method_that_it_has_chosen(tmp_path):
    X, y = rows(600, share=0.4)
    clf = MeasureClassifierCV("average_precision", alphas=[1e-2], cv=3).fit(X, y)
    clf.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert (loaded.risk, loaded.solver) == (clf.risk_, clf.solver_)


def test_a_degenerate_fit_is_followed_by_the_logistic_loss(caplog):
    """PRBEP with few positives: w = 0 is the optimum of its own risk, and proved to be."""
    X, y = rows(share=0.02)
    with caplog.at_level(logging.INFO, "scoreline"):
        clf = MeasureClassifier("prbep").fit(X, y)
    assert (clf.solver_, clf.risk_) == ("newton", "logistic")
    assert clf.rejected_ == "smoothed with risk prbep gave all rows the same score (a degenerate fit)"
    assert clf.rejected_ in caplog.text
    named = MeasureClassifier("prbep", risk="logistic").fit(X, y)
    np.testing.assert_array_equal(clf.coef_, named.coef_)
    with pytest.warns(UserWarning, match="Degenerate fit: all rows have the same score"):
        degenerate = MeasureClassifier("prbep", risk="prbep").fit(X, y)
    assert (degenerate.risk_, degenerate.rejected_) == ("prbep", None)
    assert not degenerate.coef_.any()
    with pytest.warns(UserWarning, match="Degenerate fit"):  # mu belongs to the other solver
        assert MeasureClassifier("prbep", solver_params={"mu": 1e-6}).fit(X, y).risk_ == "prbep"


def test_a_search_goes_on_from_a_degenerate_risk():
    X, y = rows(share=0.02)
    clf = MeasureClassifierCV("accuracy", alphas=[10.0, 1.0], cv=3).fit(X, y)
    assert set(clf.cv_results_["risk"]) == {"hinge", "logistic"}
    best = [clf.cv_results_["mean_test_score"][clf.cv_results_["risk"] == risk].max() for risk in ("hinge", "logistic")]
    assert clf.risk_ == ("logistic" if best[1] >= best[0] else "hinge")


def test_the_alternative_stops_early_too():
    X, y = rows(share=0.02)
    new = rows(share=0.02, seed=1)
    clf = MeasureClassifier("prbep", solver_params={"early_stopping": EarlyStopping(new)}).fit(X, y)
    assert clf.risk_ == "logistic"
    assert len(clf.history_["validation"]) == len(clf.history_["iteration"])


def test_a_checkpoint_of_the_alternative_is_gone_on_from(tmp_path):
    X, y = make_imbalanced(4000, 5, positive_share=0.02, random_state=0)
    path = tmp_path / "fit.npz"
    options = {"measure": "prbep", "tol": 1e-10, "alpha": 1e-6, "random_state": 0}
    uninterrupted = MeasureClassifier(**options, solver_params={"checkpoint": Checkpoint(tmp_path / "a", every=1)}).fit(
        X, y
    )
    assert uninterrupted.risk_ == "logistic"

    def stop(progress):
        return progress.objective < 0.5 and progress.iteration == 3  # of the logistic loss: PRBEP begins at 1

    params = {"checkpoint": Checkpoint(path, every=1, seconds=0.0)}
    part = MeasureClassifier(**options, solver_params={**params, "callbacks": [stop]}).fit(X, y)
    assert (part.status_, part.risk_) == ("interrupted", "logistic")
    assert path.exists()
    rest = MeasureClassifier(**options, solver_params=params).fit(X, y)
    np.testing.assert_array_equal(rest.coef_, uninterrupted.coef_)
    assert not path.exists()


def test_scores_of_noise_are_no_ranking():
    """The hinge has a constant as its optimum here. Its fit ends 1e-9 away from it; what differs there is rounding."""
    X, y = rows(600, share=0.05, seed=23)
    X *= 0.3
    with pytest.warns(UserWarning, match="Degenerate fit"):
        clf = MeasureClassifier("f1", risk="hinge", solver="smoothed", tol=1e-8, alpha=1e-2).fit(X, y)
    assert not clf.coef_.any()
    assert clf.trained_intercept_ == -1.0
    assert clf.objective_ - clf.lower_bound_ <= 1e-8
    assert len(set(clf.predict(X))) == 1


@for_each(("measure", "most"), [("f1", 8), ("prbep", 2)])
def test_a_checkpoint_does_not_change_a_first_method_ended_by_max_iter(measure, most, tmp_path):
    X, y = rows(share=0.02 if measure == "prbep" else 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of max_iter
        plain = MeasureClassifier(measure, max_iter=most).fit(X, y)
        saved = MeasureClassifier(measure, max_iter=most, solver_params={"checkpoint": tmp_path / "fit.npz"}).fit(X, y)
    assert (saved.solver_, saved.rejected_) == (plain.solver_, plain.rejected_)


@for_each("seed", [0, None])
def test_a_checkpoint_of_the_alternative_and_early_stopping(tmp_path, seed):
    """The rows that were held out are those of the run that was killed."""
    X, y = rows(share=0.02)
    path = tmp_path / "fit.npz"
    params = {"checkpoint": Checkpoint(path, every=1, seconds=0.0), "early_stopping": EarlyStopping(0.2, patience=3)}

    def killed(progress):
        if progress.objective < 0.5 and progress.iteration == 3:  # of the logistic loss
            raise RuntimeError("killed")

    options = {"measure": "prbep", "random_state": seed}
    with pytest.raises(RuntimeError, match="killed"):
        MeasureClassifier(**options, solver_params={**params, "callbacks": [killed]}).fit(X, y)
    assert path.exists()
    rest = MeasureClassifier(**options, solver_params=params).fit(X, y)
    assert rest.risk_ == "logistic"
    if seed is not None:
        uninterrupted = MeasureClassifier(
            **options, solver_params={**params, "checkpoint": Checkpoint(tmp_path / "b", every=1)}
        )
        np.testing.assert_array_equal(rest.coef_, uninterrupted.fit(X, y).coef_)


@for_each("call", [1, 2, 3])
def test_ctrl_c_and_callbacks_end_the_second_method_too(call):
    """The first model stays, and says that the fit was interrupted."""
    X, y = rows()
    first = MeasureClassifier("f1", solver="amp").fit(X, y)
    for signal in (True, False):
        fits = []

        def press(progress, fits=fits, signal=signal):
            fits.append(progress.iteration)
            # amp's runs come first; those of the logistic loss begin below its hinge.
            if progress.objective < 0.3 and fits[-1] == call:
                if signal:
                    raise KeyboardInterrupt
                return True
            return False

        clf = MeasureClassifier("f1", solver_params={"callbacks": [press]})
        if signal:
            with pytest.raises(KeyboardInterrupt):
                clf.fit(X, y)
        else:
            clf.fit(X, y)
        assert clf.status_ == "interrupted"
        if clf.solver_ == "amp" and clf.gap_ is not None:
            assert clf.coef_.any()
    assert first.status_ == "converged"
