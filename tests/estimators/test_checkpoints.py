"""Checkpoints: a fit that was interrupted goes on to the same bits, and a file that belongs to another fit is refused."""

import os
import tempfile
import warnings
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cases import fewer, for_each
from scoreline import MeasureClassifier, list_solvers
from scoreline.io.model_archive import read_archive, write_archive
from scoreline.solvers import Checkpoint
from scoreline.solvers.common.checkpoint import KIND, VERSION
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.registry import all_solvers
from tiers import tiered

SOLVERS = [name for name, solver in all_solvers().items() if "checkpoint" in solver.options()]
ROWS = [name for name in SOLVERS if issubclass(all_solvers()[name], RowMethod)]
LOOPS = [name for name in SOLVERS if name not in ROWS]
SEARCHES = ["amp", "cost_search"]
MEASURE = {info.name: "f1" if "f1" in info.measures else info.measures[0] for info in list_solvers()}
TOL = {"bundle_ls": 0.5, "excessive_gap": 0.8, "bundle": 0.05, "bundle_ocas": 0.02, "accelerated": 3e-2, "amp": 1e-2}
MODEL = (
    "coef_",
    "intercept_",
    "trained_intercept_",
    "objective_",
    "lower_bound_",
    "gap_",
    "n_iter_",
    "status_",
    "cost_",
)
MORE = ("levels_", "level_bound_")

ONE_OF_EACH_KIND = ["lbfgs", "cost_search", "spade"]  # a loop over all rows, a search of several fits, row by row
every_solver = for_each("solver", fewer(SOLVERS, in_quick=ONE_OF_EACH_KIND))
every_loop = for_each("solver", fewer(LOOPS, in_quick=["lbfgs", "cost_search"]))
pytestmark = pytest.mark.filterwarnings("ignore:solver=.moments. predicts:UserWarning")


class Killed(Exception):  # noqa: N818 - an event, not an error
    """Stands for whatever ends a process."""


class Stop:
    """A callback that counts its calls, and raises at one of them."""

    def __init__(self, at=np.inf, error=Killed):
        self.at, self.error, self.calls = at, error, 0

    def __call__(self, progress):
        self.calls += 1
        if self.calls == self.at:
            raise self.error


@cache
def data(n=150, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * ([1, 2, 4, 1, 0.5, 3] * p)[:p]
    return X, (X[:, 0] + rng.standard_normal(n) > 0.6).astype(int)


def classifier(solver, path, stop=None, options=(), **parameters):
    own = {
        "checkpoint": Checkpoint(path, every=2, seconds=0),
        "callbacks": [] if stop is None else [stop],
        **dict(options),
    }
    own |= {"passes": 10} if solver in ROWS and "passes" not in own else {}
    parameters = {
        "measure": MEASURE[solver],
        "alpha": 1e-2,
        "tol": TOL.get(solver, 1e-4),
        "random_state": 0,
        **parameters,
    }
    return MeasureClassifier(solver=solver, solver_params=own, **parameters)


def model(clf):
    """Return what the fit gives, to the last bit."""
    found = {name: getattr(clf, name) for name in (*MODEL, *MORE) if hasattr(clf, name)}
    found |= {name: clf.history_.get(name) for name in ("iteration", "objective", "lower_bound")}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else repr(value) for name, value in found.items()}


def interrupted(solver, path, at, error=Killed, **parameters):
    """Fit until the callback raises; return whether it did."""
    try:
        classifier(solver, path, Stop(at, error), **parameters).fit(*data())
    except error:
        return True
    return False


def begun(solver, path, at=5, **parameters):
    assert interrupted(solver, path, at, **parameters)
    assert path.exists()
    return path


def uninterrupted(solver, **parameters):
    """Return the model of a fit without an interruption, and how often its callback was called."""
    with tempfile.TemporaryDirectory() as folder:
        stop = Stop()
        clf = classifier(solver, Path(folder, "whole"), stop, **parameters).fit(*data())
        assert list(Path(folder).iterdir()) == [], "the file must go when the fit has converged"
    return model(clf), stop.calls


@cache
def plain(solver):
    return uninterrupted(solver)


# --------------------------------------------------------------------------------------------------------- to the same bits


def test_all_solvers_but_moments_take_checkpoints():
    assert set(all_solvers()) - set(SOLVERS) == {"moments"}
    assert len(ROWS) >= 2


@every_solver
@for_each("error", [Killed, KeyboardInterrupt])
@for_each("share", [0.0, 0.4, 0.9])
def test_an_interrupted_fit_goes_on_to_the_same_bits(solver, error, share, tmp_path):
    expected, calls = plain(solver)
    at = max(2, int(share * calls))
    assert interrupted(solver, tmp_path / "own", at, error)
    assert (tmp_path / "own").exists()
    stop = Stop()
    assert model(classifier(solver, tmp_path / "own", stop).fit(*data())) == expected
    assert stop.calls <= calls - at + 2, "what was done was done again"
    assert list(tmp_path.iterdir()) == [], "files are removed at the end"


@every_solver
def test_many_interruptions_lead_to_the_same_bits(solver, tmp_path):
    expected, calls = plain(solver)
    tries = 1
    while interrupted(solver, tmp_path / "own", 3):
        tries += 1
        assert tries <= calls
    assert tries > 1
    assert model_after(solver, tmp_path / "own") == expected  # all over: once more from the beginning


def model_after(solver, path, **parameters):
    return model(classifier(solver, path, **parameters).fit(*data()))


@every_solver
def test_a_fit_that_is_killed_before_its_first_record_begins_again(solver, tmp_path):
    assert interrupted(solver, tmp_path / "own", 1)
    assert model_after(solver, tmp_path / "own") == plain(solver)[0]


@pytest.mark.slow
@for_each("solver", SEARCHES)
def test_a_search_goes_on_in_any_of_its_fits(solver, tmp_path):
    """All places: also the last iteration of a fit and the first of the next."""
    expected, calls = uninterrupted(solver, tol=1e-2)
    runs = set()
    for at in range(2, calls + 1):
        path = tmp_path / str(at)
        begun(solver, path, at, tol=1e-2)
        runs.add(len(read_archive(path, KIND, VERSION)["runs"]))
        assert model_after(solver, path, tol=1e-2) == expected
    assert max(runs) >= 2, "no later fit was interrupted"


@every_solver
def test_held_out_rows_are_the_same_after_an_interruption_without_a_seed(solver, tmp_path):
    """The seed is drawn once, and kept in the file: in either of the two fits."""
    parameters = {"threshold": "holdout", "random_state": None}
    np.random.seed(5)  # noqa: NPY002 - what random_state=None draws from
    expected, calls = uninterrupted(solver, **parameters)
    for at in sorted({2, calls // 2, calls - 1}):
        np.random.seed(5)  # noqa: NPY002 - what random_state=None draws from
        begun(solver, tmp_path / "own", at, **parameters)
        np.random.seed(6)  # noqa: NPY002 - what random_state=None draws from
        assert model_after(solver, tmp_path / "own", **parameters) == expected


@every_solver
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scaled_weighted_data_go_on_too(solver, tmp_path):
    X, y = data()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    parameters = {"scaling": "standard", "class_weight": {0: 1.0, 1: 2.0}, "max_iter": 8}
    parameters |= {"risk": "hinge"} if solver.startswith("bundle") else {}  # others take whole weights only
    expected = model(classifier(solver, tmp_path / "whole", **parameters).fit(X, y, weight))
    with pytest.raises(Killed):
        classifier(solver, tmp_path / "own", Stop(4), **parameters).fit(X, y, weight)
    assert model(classifier(solver, tmp_path / "own", **parameters).fit(X, y, weight)) == expected


@every_loop
def test_where_a_record_is_written_does_not_matter(solver, tmp_path):
    """Records that stay in memory lead the same way as those on the disk, and a path stands for a Checkpoint."""
    often = plain(solver)[0]
    seldom = {"checkpoint": Checkpoint(tmp_path / "b", every=2, seconds=1000)}
    assert model(classifier(solver, tmp_path / "b", options=seldom).fit(*data())) == often
    defaults = [{"checkpoint": path} for path in (str(tmp_path / "c"), Checkpoint(tmp_path / "d", every=20))]
    one, other = (model(classifier(solver, tmp_path / "c", options=option).fit(*data())) for option in defaults)
    assert one == other


@every_loop
def test_a_fit_with_checkpoints_is_as_good_as_one_without(solver, tmp_path):
    """Both are proved to be within tol of the optimum."""
    clf = classifier(solver, tmp_path / "own").fit(*data())
    without = classifier(solver, tmp_path / "own", options={"checkpoint": None}).fit(*data())
    assert clf.status_ == without.status_ == "converged"
    assert clf.objective_ == pytest.approx(without.objective_, rel=clf.tol)


# ---------------------------------------------------------------------------------------------------------- limits of a fit


@every_loop
def test_a_larger_max_iter_goes_on(solver, tmp_path):
    if solver == "cost_search":
        return  # its later fits converge
    expected, calls = plain(solver)
    with pytest.warns(ConvergenceWarning):
        clf = classifier(solver, tmp_path / "own", max_iter=2).fit(*data())
    assert clf.n_iter_ == 2
    assert (tmp_path / "own").exists()
    stop = Stop()
    assert model(classifier(solver, tmp_path / "own", stop).fit(*data())) == expected
    assert stop.calls < calls
    assert not (tmp_path / "own").exists()


@every_loop
def test_the_same_max_iter_gives_the_same_model_again(solver, tmp_path):
    stop = Stop()
    with pytest.warns(ConvergenceWarning):
        first = model_after(solver, tmp_path / "own", max_iter=3)
    with pytest.warns(ConvergenceWarning):
        assert model(classifier(solver, tmp_path / "own", stop, max_iter=3).fit(*data())) == first
    assert stop.calls == 0


@every_solver
def test_a_larger_max_time_goes_on(solver, tmp_path, monkeypatch):
    """The clock of the solver moves by a second with every reading."""
    from scoreline.solvers.common import base

    expected, calls = plain(solver)
    ticks = iter(range(10**9))
    with monkeypatch.context() as patch:
        patch.setattr(base.Clock, "elapsed", lambda self: float(next(ticks)))
        clf = classifier(solver, tmp_path / "own", max_time=2.5 if solver in LOOPS else 4.5)
        if solver in LOOPS:
            with pytest.warns(ConvergenceWarning, match="max_time"):
                clf.fit(*data())
        else:
            clf.fit(*data())
    assert clf.status_ == "max_time"
    assert (tmp_path / "own").exists()
    stop = Stop()
    assert model(classifier(solver, tmp_path / "own", stop, max_time=1e9).fit(*data())) == expected
    assert stop.calls < calls
    assert not (tmp_path / "own").exists()


# ------------------------------------------------------------------------------------------------------------- another fit

REPAIR = r"checkpoint '.*own' .*; delete it to start again, or give another path"


def refused(path, solver, X=None, y=None, weight=None, **parameters):
    before = path.read_bytes()
    X, y = data()[0] if X is None else X, data()[1] if y is None else y
    with pytest.raises(ValueError, match=REPAIR):
        classifier(solver, path, **parameters).fit(X, y, weight)
    assert path.read_bytes() == before, "the file must stay"


@every_solver
def test_other_data_are_refused(solver, tmp_path):
    path = begun(solver, tmp_path / "own", at=3)
    X, y = data()
    refused(path, solver, X=X[:-1], y=y[:-1])
    refused(path, solver, X=X[:, :-1])
    refused(path, solver, X=1.5 * X)
    refused(path, solver, y=1 - y)
    refused(path, solver, weight=np.arange(1.0, 1.0 + len(y)))
    assert model_after(solver, path) == plain(solver)[0]


@every_solver
def test_changed_entries_are_noticed_though_columns_keep_their_magnitude(solver, tmp_path):
    """What was proved of the old rows is false for the new ones, which are far easier."""
    path = begun(solver, tmp_path / "own", at=plain(solver)[1] - 1)
    X, y = data()
    easy = X.copy()
    easy[:, 0] = np.where(np.abs(X[:, 0]) < np.abs(X[:, 0]).max(), np.where(y > 0, 1, -1) * np.abs(X[:, 0]), X[:, 0])
    refused(path, solver, X=easy)


@every_solver
@for_each(
    "parameters",
    [
        {"alpha": 2e-2},
        {"tol": 1e-6},
        {"fit_intercept": False},
        {"intercept_scaling": 3.0},
        {"scaling": "maxabs"},
        {"class_weight": "balanced"},
    ],
)
def test_other_parameters_are_refused(solver, parameters, tmp_path):
    if solver == "excessive_gap" and {"fit_intercept", "intercept_scaling"} & set(parameters):
        return  # its risk has an intercept of its own
    risk = "hinge" if solver.startswith("bundle") else "auto"  # others take whole weights only
    path = begun(solver, tmp_path / "own", at=3, risk=risk)
    refused(path, solver, risk=risk, **parameters)


@for_each(("solver", "other"), [("spade", "qmean"), ("stamp", "jaccard"), ("bundle", "jaccard")])
def test_another_measure_is_refused(solver, other, tmp_path):
    refused(begun(solver, tmp_path / "own", at=3), solver, measure=other)


@for_each("solver", ["stamp", "bundle", "amp"])
def test_another_parameter_of_the_measure_is_refused(solver, tmp_path):
    two, half = ({"measure": "fbeta", "measure_params": {"beta": beta}} for beta in (2.0, 0.5))
    last = uninterrupted(solver, **two)[1] if solver == "amp" else 3  # the first of its fits is the same for all
    refused(begun(solver, tmp_path / "own", last, **two), solver, **half)


@for_each(
    ("solver", "other"), [("lbfgs", "newton"), ("newton", "plugin"), ("bundle", "bundle_ocas"), ("stamp", "lbfgs")]
)
def test_another_solver_is_refused(solver, other, tmp_path):
    refused(begun(solver, tmp_path / "own", at=3), other)


@for_each(
    ("solver", "options"),
    [
        ("lbfgs", {"memory": 3}),
        ("smoothed", {"mu": 0.1}),
        ("lbfgs", {"abs_tol": 1e-3}),
        ("stamp", {"passes": 11}),
        ("stamp", {"step": "paper"}),
        ("stamp", {"weights": "equal"}),
        ("hybrid", {"seed": 1}),
    ],
)
def test_other_options_are_refused(solver, options, tmp_path):
    refused(begun(solver, tmp_path / "own", at=3), solver, options=options)


def test_the_error_says_what_differs(tmp_path):
    path = begun("lbfgs", tmp_path / "own")
    with pytest.raises(ValueError, match=r"belongs to a fit with tol='0\.0001', this one has '0\.1'"):
        classifier("lbfgs", path, tol=0.1).fit(*data())
    with pytest.raises(ValueError, match=r"belongs to a fit with solver='lbfgs', this one has 'newton'|memory"):
        classifier("newton", path).fit(*data())


# -------------------------------------------------------------------------------------------------------------- bad files


@every_solver
def test_a_damaged_file_is_named(solver, tmp_path):
    path = begun(solver, tmp_path / "own", at=3)
    raw = path.read_bytes()
    for damage in (raw[:-30], raw[: len(raw) // 2], b"", b"nonsense", raw[:200] + b"\x00\xff" + raw[202:]):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match="own"):
            classifier(solver, path).fit(*data())
        assert path.read_bytes() == damage


def test_a_model_file_is_not_taken_for_a_checkpoint(tmp_path):
    MeasureClassifier("f1").fit(*data()).save(tmp_path / "own")
    with pytest.raises(ValueError, match=r"own.*expected a scoreline checkpoint"):
        classifier("lbfgs", tmp_path / "own").fit(*data())


@every_solver
@for_each("part", ["runs", "seed", "options", "state", "fields", "status"])
def test_a_file_that_is_not_complete_is_refused(solver, part, tmp_path):
    path = begun(solver, tmp_path / "own", at=3)
    content = read_archive(path, KIND, VERSION)
    if part in content:
        del content[part]
    elif part in ("state", "status"):
        del content["runs"][0][part]
    else:
        content["runs"][0]["state"] = {}
    write_archive(path, KIND, VERSION, content)
    with pytest.raises(ValueError, match="own"):
        classifier(solver, path).fit(*data())


def shorten(record):
    """Cut all vectors."""
    for name, value in record.items():
        if isinstance(value, dict):
            shorten(value)
        elif isinstance(value, np.ndarray):
            record[name] = value[:2]


@pytest.mark.slow
@every_solver
def test_vectors_that_do_not_fit_are_refused(solver, tmp_path):
    """Kernels do not check bounds: in a process of its own, since it may not survive."""
    path = begun(solver, tmp_path / "own", at=3)
    content = read_archive(path, KIND, VERSION)
    shorten(content["runs"][0]["state"])
    write_archive(path, KIND, VERSION, content)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            classifier(solver, path).fit(*data())
        except ValueError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@for_each("solver", ["lbfgs", "spade"])
def test_a_folder_that_does_not_exist_is_named(solver, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere.*folder that does not exist; create it first"):
        Checkpoint(tmp_path / "nowhere" / "own")
    clf = MeasureClassifier(
        MEASURE[solver], solver=solver, solver_params={"checkpoint": str(tmp_path / "nowhere" / "own")}
    )
    with pytest.raises(ValueError, match="nowhere"):
        clf.fit(*data())


@for_each("options", [{"every": 0}, {"every": 1.5}, {"seconds": -1}, {"seconds": np.nan}, {"path": 5}])
def test_settings_that_make_no_sense_are_refused(options, tmp_path):
    with pytest.raises(ValueError, match=next(iter(options)) if "path" not in options else "checkpoint"):
        Checkpoint(**{"path": tmp_path / "own", **options})


def test_moments_take_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="checkpoint"):
        MeasureClassifier(solver="moments", solver_params={"checkpoint": tmp_path / "own"}).fit(*data())


# ----------------------------------------------------------------------------------------------------------- a full disk


@every_solver
def test_a_full_disk_costs_a_warning_and_not_the_fit(solver, tmp_path, monkeypatch):
    expected, _ = plain(solver)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"checkpoint not written: .*No space left on device.*The fit continues"):
        clf = classifier(solver, tmp_path / "own").fit(*data())
    assert model(clf) == expected
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_becomes_full_leaves_the_last_record(tmp_path, monkeypatch):
    expected, _ = plain("lbfgs")
    path = begun("lbfgs", tmp_path / "own", at=5)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(UserWarning, match="checkpoint not written"):
            assert interrupted("lbfgs", path, 5)
    assert path.read_bytes() == before
    assert model_after("lbfgs", path) == expected


@for_each(
    "solver, first",
    tiered(product(["accelerated", "bundle_ocas", "lbfgs", "newton", "smoothed"], [1, 3, 4]), strength=1),
)
def test_more_iterations_later_are_the_iterations_of_one_run(solver, first, tmp_path):
    full_run, own = tmp_path / "whole", tmp_path / "own"
    kind = {
        "measure": "roc_auc" if solver in ("smoothed", "bundle_ocas") else "accuracy",
        "solver": solver,
        "tol": 1e-9,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [
            MeasureClassifier(**kind, max_iter=n, solver_params={"checkpoint": Checkpoint(path, 2, 0)}).fit(*data())
            for n, path in ((7, full_run), (first, own), (7, own))
        ]
    assert fits[1].n_iter_ == first
    assert fits[2].coef_.tobytes() == fits[0].coef_.tobytes()
    assert fits[2].history_["objective"] == fits[0].history_["objective"]


def test_another_seed_is_refused_and_the_same_one_is_used_as_it_is(tmp_path):
    X, y = data()
    kind = {"measure": "qmean", "solver": "spade", "solver_params": {"checkpoint": Checkpoint(tmp_path / "own", 1, 0)}}
    plain = MeasureClassifier("qmean", solver="spade", random_state=3).fit(X, y)
    assert MeasureClassifier(**kind, random_state=3).fit(X, y).coef_.tobytes() == plain.coef_.tobytes()
    kind["solver_params"]["callbacks"] = [stop_with_an_error]
    with pytest.raises(RuntimeError):
        MeasureClassifier(**kind, random_state=3).fit(X, y)
    with pytest.raises(ValueError, match="random_state=3, this one has 4; delete it"):
        MeasureClassifier(**kind, random_state=4).fit(X, y)


def stop_with_an_error(progress):
    raise RuntimeError


def test_a_stream_takes_no_checkpoint(tmp_path):
    clf = MeasureClassifier("qmean", solver="spade", solver_params={"checkpoint": tmp_path / "own"})
    with pytest.raises(ValueError, match="checkpoint works only with fit"):
        clf.partial_fit(*data())


def test_rows_that_changed_their_sign_are_noticed(tmp_path):
    X, y = data()
    other = np.where(np.arange(len(X))[:, None] % 3 == 0, -X, X)
    kind = {"measure": "accuracy", "solver": "lbfgs", "tol": 1e-9, "max_iter": 3}
    with pytest.warns(ConvergenceWarning):
        MeasureClassifier(**kind, solver_params={"checkpoint": Checkpoint(tmp_path / "own", 1, 0)}).fit(other, y)
    with pytest.raises(ValueError, match="belongs to another problem"):
        MeasureClassifier(**kind, solver_params={"checkpoint": Checkpoint(tmp_path / "own", 1, 0)}).fit(X, y)


def test_a_subclass_is_not_saved_as_something_else(tmp_path):
    class Own(MeasureClassifier):
        pass

    clf = Own("roc_auc").fit(*data())
    with pytest.raises(TypeError, match="this is a Own"):
        clf.save(tmp_path / "model")
