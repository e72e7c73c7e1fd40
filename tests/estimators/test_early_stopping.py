"""Early stopping: the point that validation rows favour is kept, rows held out are not trained on, and the proof stays one."""

import copy
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cases import fewer, for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier, MeasureClassifierCV, list_solvers, load_model
from scoreline.fitting.sigmoid import fit_sigmoid
from scoreline.fitting.threshold import held_out_rows
from scoreline.measures import RankingMeasure, best_threshold, get_measure
from scoreline.solvers import Checkpoint, EarlyStopping
from scoreline.solvers.registry import all_solvers
from tiers import tiered

SOLVERS = [name for name, solver in all_solvers().items() if "early_stopping" in solver.options()]
CERTIFIED = [name for name in SOLVERS if all_solvers()[name].certified]
SEARCHES = ["amp", "cost_search"]
MEASURE = {info.name: "f1" if "f1" in info.measures else info.measures[0] for info in list_solvers()}
every_solver = for_each("solver", fewer(SOLVERS, in_quick=["lbfgs", "smoothed", "cost_search", "spade"]))


def problem(n=500, p=20, seed=0):
    X, y = overlapping_rows(n, p, seed, informative=4, separation=0.7, flipped=0.2)
    half = n // 2
    return X[:half], y[:half], X[half:], y[half:]


def fitted(X, y, solver="auto", measure=None, weight=None, alpha=1e-5, more=None, **options):
    params = {"early_stopping": EarlyStopping(0.3, patience=4), **(more or {})}
    options = {"tol": 1e-6, "max_iter": 60, "random_state": 0, "threshold": "train", **options}
    clf = MeasureClassifier(measure or MEASURE[solver], solver=solver, alpha=alpha, solver_params=params, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, y, weight)


def validation_value(clf, X, y, weight=None):
    """The measure as early stopping takes it, by other code."""
    measure, z = get_measure(clf.measure), X @ clf.coef_[0] + clf.trained_intercept_
    if isinstance(measure, RankingMeasure):
        return measure.value(y > 0, z, weight)
    return best_threshold(np.where(y > 0, 1, -1), z, measure, weight).value


@every_solver
@for_each("scaling", [None, "standard"])
def test_the_point_with_the_best_value_is_kept(solver, scaling):
    X, y, Xv, yv = problem()
    clf = fitted(X, y, solver, more={"early_stopping": EarlyStopping((Xv, yv), patience=4)}, scaling=scaling)
    values = clf.history_["validation"]
    assert len(values) == len(clf.history_["iteration"])
    if solver in SEARCHES:  # the search chose between several fits, the history is of one of them
        assert max(values) == pytest.approx(validation_value(clf, Xv, yv), abs=0.02)
    else:
        assert max(values) == validation_value(clf, Xv, yv)
    if clf.gap_ is not None:
        if solver not in SEARCHES:
            assert clf.objective(X, y) == pytest.approx(clf.objective_, rel=1e-12)
            best = MeasureClassifier(  # hybrid and cutting planes penalise the intercept: by the same method, without stopping
                clf.measure, solver=solver, risk=clf.risk_, alpha=1e-5, tol=1e-3, scaling=scaling, threshold="none"
            ).fit(X, y)
            assert clf.lower_bound_ <= best.objective_ * (1 + 1e-12)
            assert best.lower_bound_ <= clf.objective_ * (1 + 1e-12)
        assert clf.gap_ >= 0.0


@every_solver
def test_patience_counts_new_points(solver):
    X, y, Xv, yv = problem()
    clf = fitted(X, y, solver, more={"early_stopping": EarlyStopping((Xv, yv), patience=2)}, max_iter=3000)
    assert clf.status_ == "early_stopping"
    values = np.array(clf.history_["validation"])
    after = values[np.argmax(values) + 1 :]
    if "objective" in clf.history_:
        objective = np.array(clf.history_["objective"])[np.argmax(values) :]
        assert np.count_nonzero(np.diff(objective)) == 2
    else:
        assert len(after) == 2
    assert (after <= values.max()).all()


def test_no_warning_where_validation_rows_ended_the_fit():
    X, y, Xv, yv = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MeasureClassifier(
            "roc_auc", alpha=1e-6, tol=1e-8, solver_params={"early_stopping": EarlyStopping((Xv, yv), patience=1)}
        ).fit(X, y)


SINGLE_FITS = [name for name in CERTIFIED if name not in ("amp", "cost_search", "hybrid")]


@for_each(
    "solver, weighted", fewer(product(SINGLE_FITS, [False, True]), in_quick=[("lbfgs", True), ("smoothed", False)])
)
def test_a_share_held_out_is_a_fit_of_the_other_rows(solver, weighted):
    """Rows of weight 0 add 0 to sums, in another order than a copy without them: hence 1e-6 after many iterations."""
    X, y, _, _ = problem()
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else None
    clf = fitted(X, y, solver, weight=weight, scaling="standard", max_iter=12)
    held = held_out_rows(np.where(y > 0, 1, -1), weight, 0, 0.3)
    assert abs(held.sum() - 0.3 * (len(y) if weight is None else np.count_nonzero(weight))) <= 2
    of = [None, None] if weight is None else [weight[~held], weight[held]]
    own = EarlyStopping((X[held], y[held], of[1]), patience=4)
    other = fitted(
        X[~held], y[~held], solver, weight=of[0], scaling="standard", max_iter=12, more={"early_stopping": own}
    )
    np.testing.assert_allclose(clf.history_["validation"], other.history_["validation"], atol=1e-3)
    assert clf.objective_ == pytest.approx(other.objective_, rel=1e-5)


def test_weights_of_validation_rows_are_repeats():
    X, y, Xv, yv = problem()
    times = np.random.default_rng(0).integers(0, 4, len(yv))
    one = fitted(X, y, more={"early_stopping": EarlyStopping((Xv, yv, times))}, measure="roc_auc")
    other = fitted(
        X, y, more={"early_stopping": EarlyStopping((np.repeat(Xv, times, 0), np.repeat(yv, times)))}, measure="roc_auc"
    )
    np.testing.assert_allclose(one.history_["validation"], other.history_["validation"], rtol=1e-12)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@for_each("solver", fewer([name for name in SOLVERS if name not in SEARCHES], in_quick=["lbfgs", "spade"]))
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(solver, tmp_path):
    X, y, _, _ = problem()

    class Killed(Exception):  # noqa: N818 - an event, not an error
        pass

    def kill(progress):
        if progress.iteration == 3:
            raise Killed

    def run(name, callbacks=()):
        more = {
            "early_stopping": EarlyStopping(0.3, patience=2),
            "checkpoint": Checkpoint(tmp_path / name, every=2, seconds=0.0),
            "callbacks": callbacks,
        }
        return fitted(X, y, solver, more=more)

    uninterrupted = run("whole")
    with pytest.raises(Killed):
        run("killed", [kill])
    assert (tmp_path / "killed").exists()
    again = run("killed")
    np.testing.assert_array_equal(again.coef_, uninterrupted.coef_)
    assert again.history_["validation"] == uninterrupted.history_["validation"]
    assert again.status_ == uninterrupted.status_
    if uninterrupted.status_ == "early_stopping":
        assert not (tmp_path / "killed").exists()


@for_each("share", [True, 0.2, np.float64(0.2), EarlyStopping(), EarlyStopping(0.2, 3, 1e-3)])
def test_ways_to_ask(share):
    X, y, _, _ = problem()
    clf = fitted(X, y, measure="roc_auc", more={"early_stopping": share})
    assert len(clf.history_["validation"]) == len(clf.history_["iteration"])
    assert "validation" not in fitted(X, y, measure="roc_auc", more={"early_stopping": None}).history_
    assert "validation" not in fitted(X, y, measure="roc_auc", more={"early_stopping": False}).history_


def test_least_gain_stops_sooner():
    X, y, Xv, yv = problem()

    def iterations(gain):
        return fitted(X, y, measure="roc_auc", more={"early_stopping": EarlyStopping((Xv, yv), 2, gain)}).n_iter_

    assert iterations(0.5) == 2 <= iterations(0.0)


def test_clones_do_not_copy_validation_rows():
    _, _, Xv, yv = problem()
    own = EarlyStopping((Xv, yv))
    clf = clone(MeasureClassifier(solver_params={"early_stopping": own}))
    assert clf.solver_params["early_stopping"].validation[0] is Xv
    assert copy.deepcopy(own) is own
    assert repr(own) == "EarlyStopping(250 rows, patience=10, least_gain=0)"
    assert repr(EarlyStopping(0.25)) == "EarlyStopping(0.25, patience=10, least_gain=0)"


def test_storages():
    X, y, Xv, yv = problem()
    more = {"early_stopping": 0.3, "init": "zero"}  # "auto" may begin on samples, where rows are cheap to read
    dense = fitted(X, y, measure="roc_auc", more=more)
    again = fitted(np.asfortranarray(X), y, measure="roc_auc", more=more)
    np.testing.assert_allclose(again.history_["validation"][:5], dense.history_["validation"][:5], atol=1e-9)
    sparse = fitted(sp.csr_matrix(X), y, measure="roc_auc", more=more)  # other steps: no Hessian there
    held = held_out_rows(np.where(y > 0, 1, -1), None, 0, 0.3)
    assert max(sparse.history_["validation"]) == validation_value(sparse, X[held], y[held])
    given = fitted(aslinearoperator(X), y, measure="roc_auc", more={"early_stopping": EarlyStopping((Xv, yv))})
    assert given.history_["validation"]
    with pytest.raises(TypeError, match=r"early_stopping=0.3 holds rows of X out.*EarlyStopping\(\(X, y\)\)"):
        fitted(aslinearoperator(X), y, measure="roc_auc")


@for_each(
    ("option", "message"),
    [
        (0.7, "at most 0.5"),
        (0.0, "validation=0.0 must be a finite number greater than 0"),
        (3, "early_stopping must be an EarlyStopping.* got 3"),
        ("yes", "early_stopping must be an EarlyStopping.* got 'yes'"),
        ((np.eye(2), [0, 1]), r"got a tuple; write EarlyStopping\(\(X, y\)\)"),
    ],
)
def test_bad_options(option, message):
    X, y, _, _ = problem()
    with pytest.raises(ValueError, match=message):
        fitted(X, y, measure="roc_auc", more={"early_stopping": option})


def test_bad_rows():
    X, y, Xv, yv = problem()

    def fit(*rows):
        fitted(X, y, measure="roc_auc", more={"early_stopping": EarlyStopping(rows)})

    with pytest.raises(ValueError, match="1 parts, expected"):
        EarlyStopping((Xv,))
    with pytest.raises(ValueError, match="patience=0"):
        EarlyStopping(patience=0)
    with pytest.raises(ValueError, match="validation rows have 19 features, X has 20"):
        fit(Xv[:, :19], yv)
    with pytest.raises(ValueError, match="expected the classes of the fit"):
        fit(Xv, yv + 1)
    with pytest.raises(ValueError, match="of one class"):
        fit(Xv[yv == 0], yv[yv == 0])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        fit(Xv, yv[:-1])
    with pytest.raises(ValueError, match="needs two rows of each class"):
        fitted(np.arange(5.0).reshape(-1, 1), [0, 0, 0, 0, 1], measure="roc_auc")


def test_who_refuses_it():
    X, y, _, _ = problem()
    params = {"early_stopping": 0.1}
    with pytest.raises(ValueError, match="early_stopping belongs to one fit"):
        MeasureClassifierCV(solver_params=params).fit(X, y)
    with pytest.raises(ValueError, match="does not fit solver 'moments'"):
        MeasureClassifier(solver="moments", solver_params=params).fit(X, y)
    with pytest.raises(ValueError, match="early_stopping is for fit"):
        MeasureClassifier("qmean", solver="spade", solver_params=params).partial_fit(X, y)


def test_a_file_keeps_the_model_not_the_rows(tmp_path):
    X, y, Xv, yv = problem()
    clf = fitted(X, y, measure="roc_auc", more={"early_stopping": EarlyStopping((Xv, yv))})
    with pytest.warns(UserWarning, match=r"\['early_stopping'\] are not saved"):
        clf.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert (again.status_, again.history_["validation"]) == (clf.status_, clf.history_["validation"])
    np.testing.assert_array_equal(again.predict(Xv), clf.predict(Xv))


@for_each("risk, p", tiered(product(["logistic", "squared_hinge"], [300, 1500]), strength=1))
def test_leave_one_out_is_not_used_far_from_the_optimum(risk, p):
    """Leave-one-out supposes an optimum: far from it the threshold would lie beyond all scores."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((1500, p))
    w = np.r_[2.0 * rng.standard_normal(20), np.zeros(p - 20)]
    y = (3.0 * X @ w + rng.logistic(size=1500) > 1.0).astype(int)
    A, a, B, b = X[:700], y[:700], X[700:], y[700:]
    clf = fitted(
        A,
        a,
        measure="f1",
        alpha=1e-6,
        risk=risk,
        threshold="auto",
        probability=True,
        more={"early_stopping": 0.2},
        tol=1e-2,
    )
    scores = B @ clf.coef_[0] + clf.trained_intercept_
    best = best_threshold(np.where(b > 0, 1, -1), scores, get_measure("f1")).value
    assert clf.score(B, b) > best - 0.06
    P = clf.predict_proba(B)[:, 1]
    loss = -np.mean(np.where(b > 0, np.log(P), np.log1p(-P)))
    ideal = fit_sigmoid(np.where(b > 0, 1, -1), scores).probability(scores)[:, 1]
    assert loss < -np.mean(np.where(b > 0, np.log(ideal), np.log1p(-ideal))) + 0.06


@for_each("measure", ["f1", "accuracy", "roc_auc"])
@for_each("balanced", [None, "balanced"])
def test_weights_of_rows_held_out_do_not_reach_the_model(measure, balanced):
    X, y, _, _ = problem()
    held = held_out_rows(np.where(y > 0, 1, -1), None, 0, 0.3)
    one, other = (
        fitted(
            X,
            y,
            measure=measure,
            weight=np.where(held, s, 1.0),
            class_weight=balanced,
            threshold="auto",
            probability=True,
        )
        for s in (1.0, 4.0)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_allclose(
        one.calibration_, other.calibration_, rtol=0.1
    )  # Platt's targets know how many there are
    assert one.trained_intercept_ == other.trained_intercept_


def test_columns_of_validation_frames_are_those_of_training():
    X, y, Xv, yv = problem()
    frame, other = (pd.DataFrame(rows, columns=[f"c{k}" for k in range(20)]) for rows in (X, Xv))
    fitted(frame, y, measure="roc_auc", more={"early_stopping": EarlyStopping((other, yv))})
    with pytest.raises(ValueError, match="feature names"):
        fitted(frame, y, measure="roc_auc", more={"early_stopping": EarlyStopping((other.iloc[:, ::-1], yv))})


def test_a_checkpoint_knows_its_validation_rows(tmp_path):
    X, y, Xv, yv = problem()

    def stop(progress):
        if progress.iteration == 5:
            raise KeyboardInterrupt

    def run(rows, callbacks=()):
        more = {
            "early_stopping": EarlyStopping((rows, yv)), "callbacks": callbacks, "init": "zero",
            "checkpoint": Checkpoint(tmp_path / "c", every=2, seconds=0.0),
        }  # fmt: skip
        return fitted(X, y, measure="roc_auc", more=more)

    with pytest.raises(KeyboardInterrupt):
        run(Xv, [stop])
    with pytest.raises(ValueError, match="early_stopping"):
        run(-Xv)
    run(Xv)
