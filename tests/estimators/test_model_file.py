"""Models on disk: what is loaded is what was saved, to the last bit, and what is not a model is refused."""

import copy
import os
import pickle
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from cases import fewer, for_each
from scoreline import CountMeasure, MeasureClassifier, list_measures, load_model
from scoreline.fitting.persist import KIND, VERSION
from scoreline.io.encoding import Column, Encoding
from scoreline.io.model_archive import read_archive, write_archive
from scoreline.measures import all_measures, get_measure
from scoreline.solvers import Checkpoint
from scoreline.solvers.registry import all_solvers
from tiers import tiered

PAIRS = [(info.name, solver) for info in list_measures() for solver in info.solvers]
STREAMING = [name for name, solver in all_solvers().items() if solver.streams]
STREAMED = {"moments": "roc_auc", "spade": "gmean", "stamp": "fbeta"}
PARAMETERS = {
    "fbeta": {"beta": 2.5},
    "gower_legendre": {"sigma": 0.25},
    "recall_at_precision": {"precision": 0.6, "confidence": 0.7},
    "precision_at_recall": {"recall": 0.7},
    "tpr_at_fpr": {"fpr": 0.3},
    "recall_at_alarms": {"alarms": 0.4},
    "recall_at_cost": {"cost": 0.5, "cost_fp": 2.0, "cost_fn": 3.0},
    "savings": {"cost_fp": 2.0, "cost_fn": 3.0},
    "precision_at_k": {"k": 12},
    "recall_at_k": {"k": 0.25},
    "partial_roc_auc": {"max_fpr": 0.4},
}

pytestmark = pytest.mark.filterwarnings(
    "ignore:measure .* no threshold:UserWarning",
    "ignore:solver=.moments. predicts:UserWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@cache
def data(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, (X[:, 0] + 0.7 * rng.standard_normal(n) > 0.6).astype(int)


def fitted(measure="f1", **options):
    return MeasureClassifier(measure, **{"max_iter": 5, "random_state": 0} | options).fit(*data())


def saved(clf, path):
    clf.save(path)
    return load_model(path)


def same(one, other):
    """Equal in type and bits, whatever the nesting."""
    if isinstance(one, np.ndarray):
        return (
            type(other) is type(one)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and one.tolist() == other.tolist()
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return repr(getattr(one, "item", lambda: one)()) == repr(getattr(other, "item", lambda: other)())


def attributes(clf):
    return {name: value for name, value in vars(clf).items() if name.endswith("_") or name == "_penalty"}


def assert_the_same(clf, loaded, X=None, y=None):
    X, y = data() if X is None else (X, y)
    mine, others = clf.get_params(), loaded.get_params()
    if not isinstance(clf.measure, str):
        measures = mine.pop("measure"), others.pop("measure")
        assert type(measures[0]) is type(measures[1])
        assert vars(measures[0]) == vars(measures[1])
    assert mine == others
    assert same(attributes(clf), attributes(loaded))
    assert loaded.decision_function(X).tobytes() == clf.decision_function(X).tobytes()
    assert same(loaded.predict(X), clf.predict(X))
    assert loaded.score(X, y) == clf.score(X, y)


# ----------------------------------------------------------------------------------------------------- there and back again


@for_each("measure, solver", tiered(PAIRS, strength=1))
def test_a_loaded_model_is_the_one_that_was_saved(measure, solver, tmp_path):
    clf = fitted(measure, solver=solver)
    loaded = saved(clf, tmp_path / "model")
    assert_the_same(clf, loaded)
    if clf.objective_ is not None:
        assert loaded.objective(*data()) == clf.objective(*data())
    assert same(attributes(clf.tune_threshold(*data())), attributes(loaded.tune_threshold(*data())))


@for_each("measure", fewer(all_measures(), in_quick=PARAMETERS))
def test_a_measure_keeps_its_parameters(measure, tmp_path):
    params = PARAMETERS.get(measure, {})
    for clf in (fitted(get_measure(measure, params)), fitted(measure, measure_params=params)):
        assert_the_same(clf, saved(clf, tmp_path / "model"))


def test_the_list_of_parameters_covers_all_measures_that_take_some():
    taking = {name for name, measure in all_measures().items() if vars(measure()) and name not in ("f1", "prbep")}
    assert taking == set(PARAMETERS)


@for_each(
    "labels",
    [
        [3, 7],
        [-1, 1],
        [False, True],
        ["no", "yes"],
        ["né", "oui→"],
        [-1.0, 2.0],
        np.array(["a", "b"], dtype=object),
        np.int8([0, 1]),
    ],
)
@for_each("solver", ["auto", "moments"])
def test_class_labels_keep_their_type(labels, solver, tmp_path):
    X, y = data()
    y = np.asarray(labels)[y]
    clf = MeasureClassifier("balanced_accuracy", solver=solver).fit(X, y)
    assert_the_same(clf, saved(clf, tmp_path / "model"), X, y)


def test_names_of_features_are_kept_and_checked(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "é", "$array", "d"])
    clf = MeasureClassifier("f1").fit(frame, y)
    loaded = saved(clf, tmp_path / "model")
    assert_the_same(clf, loaded, frame, y)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "b"}))


@for_each(
    "options",
    [
        {"class_weight": {0: 1.0, 1: 3.5}},
        {"class_weight": "balanced"},
        {"scaling": "standard", "alpha": np.float32(0.1)},
        {"scaling": "maxabs", "alpha": np.float64(0.01), "tol": 1e-3},
        {"max_iter": np.int64(4), "n_jobs": np.int32(1), "fit_intercept": np.bool_(False)},
        {"solver": "lbfgs", "solver_params": {"memory": 3, "abs_tol": 1e-3, "init": "zero"}},
        {"solver": "amp", "solver_params": {"level": "rewards", "rounds": 2}},
        {"solver": "stamp", "solver_params": {"passes": 3, "step": "paper", "first_epoch": 10}},
        {
            "threshold": "holdout",
            "random_state": np.int64(3),
            "max_time": 100.0,
            "warm_start": True,
            "intercept_scaling": 2.0,
        },
        {"risk": "squared_hinge", "verbose": 0, "threshold": "none"},
    ],
)
def test_parameters_are_kept(options, tmp_path):
    clf = fitted("f1", **options)
    assert_the_same(clf, saved(clf, tmp_path / "model"))


def test_files_with_the_earlier_names_of_the_threshold_load(tmp_path):
    """Files say `cut` where they were written before the parameter was called `threshold`."""
    X, y = data()
    clf = MeasureClassifier("gmean", solver="spade", threshold="train", random_state=0).partial_fit(X, y)
    clf.save(tmp_path / "model")
    content = read_archive(tmp_path / "model", KIND, VERSION)
    content["parameters"]["cut"] = content["parameters"].pop("threshold")
    content["trained"]["cut_rank_error_"] = content["trained"].pop("threshold_rank_error_")
    write_archive(tmp_path / "earlier", KIND, VERSION, content)
    loaded = load_model(tmp_path / "earlier")
    assert loaded.get_params() == clf.get_params()
    assert loaded.threshold_rank_error_ == clf.threshold_rank_error_
    assert same(loaded.decision_function(X), clf.decision_function(X))


def test_class_weights_may_have_keys_of_any_kind(tmp_path):
    X, y = data()
    for classes in ([0, 1], ["no", "$yes"], [-1.0, 2.0], [False, True]):
        weights = dict(zip(classes, (1.0, 2.0), strict=True))
        clf = MeasureClassifier("f1", class_weight=weights).fit(X, np.array(classes)[y])
        loaded = saved(clf, tmp_path / "model")
        assert same(loaded.class_weight, weights)
        assert same(loaded.fit(X, np.array(classes)[y]).coef_, clf.coef_)


def test_weights_of_few_features_take_little_room(tmp_path):
    """A hundred thousand features, ten of which occur."""
    _, y = data()
    rng = np.random.default_rng(0)
    columns = np.tile(np.arange(10) * 9_973, len(y))
    X = sp.csr_array(
        (rng.standard_normal(len(columns)), (np.repeat(np.arange(len(y)), 10), columns)), shape=(len(y), 10**5)
    )
    for solver in ("auto", "spade"):
        clf = MeasureClassifier("gmean", solver=solver, threshold="train", random_state=0).fit(X, y)
        loaded = saved(clf, tmp_path / "model")
        assert np.count_nonzero(clf.coef_) == 10
        assert loaded.coef_.tobytes() == clf.coef_.tobytes()
        assert (tmp_path / "model").stat().st_size < 20_000
        assert_the_same(clf, loaded, X, y)


def test_the_same_model_gives_the_same_file(tmp_path):
    clf = fitted("f1")
    clf.save(tmp_path / "one")
    load_model(tmp_path / "one").save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_loaded_model_can_be_fitted_cloned_pickled_and_saved(tmp_path):
    X, y = data()
    clf = fitted(get_measure("fbeta", {"beta": 2.0}), solver="cost_search")
    loaded = saved(clf, tmp_path / "model")
    assert_the_same(clf, pickle.loads(pickle.dumps(loaded)))
    assert_the_same(clf, copy.deepcopy(loaded))
    assert_the_same(clf, saved(loaded, tmp_path / "again"))
    for again in (clone(loaded).fit(X, y), loaded.fit(X, y)):
        assert again.coef_.tobytes() == clf.coef_.tobytes()
        assert again.intercept_.tobytes() == clf.intercept_.tobytes()


def test_a_warm_start_goes_on_from_a_loaded_model(tmp_path):
    clf = fitted("roc_auc", warm_start=True, max_iter=2)
    loaded = saved(clf, tmp_path / "model")
    assert same(clf.fit(*data()).coef_, loaded.fit(*data()).coef_)


# ------------------------------------------------------------------------------------------------------------------ streams


def test_the_registry_has_the_solvers_that_stream():
    assert set(STREAMING) == set(STREAMED)


@for_each("solver", STREAMING)
@for_each("random_state", fewer([0, None], in_quick=[None]))
def test_a_stream_goes_on_from_a_file_with_the_same_bits(solver, random_state, tmp_path):
    X, y = data(400)
    weight = np.random.default_rng(1).random(400)
    clf = MeasureClassifier(STREAMED[solver], solver=solver, random_state=random_state)
    clf.partial_fit(X[:50], y[:50], classes=[0, 1], sample_weight=weight[:50])
    for k in range(50, 400, 50):
        other = saved(clf, tmp_path / "model")
        for each in (clf, other):
            each.partial_fit(X[k : k + 50], y[k : k + 50], sample_weight=weight[k : k + 50])
        assert_the_same(clf, other, X, y)
        clf = other


@for_each("solver", STREAMING)
@for_each("first", [0, 1])
def test_a_stream_that_has_seen_one_class_is_kept(solver, first, tmp_path):
    X, y = data()
    clf = MeasureClassifier(STREAMED[solver], solver=solver, random_state=0)
    clf.partial_fit(X[y == first], y[y == first], classes=[0, 1])
    loaded = saved(clf, tmp_path / "model")
    assert not hasattr(loaded, "coef_")
    assert same(attributes(clf), attributes(loaded))
    for each in (clf, loaded):
        each.partial_fit(X[y != first], y[y != first])
    assert_the_same(clf, loaded)


def test_a_stream_of_many_rows_keeps_its_sketches(tmp_path):
    X, y = data(6000)
    clf = MeasureClassifier("gmean", solver="spade", random_state=0).partial_fit(X[:5000], y[:5000])
    loaded = saved(clf, tmp_path / "model")
    for each in (clf, loaded):
        each.partial_fit(X[5000:], y[5000:])
    assert clf.threshold_rank_error_ > 0
    assert_the_same(clf, loaded)


def test_saved_streams_of_moments_can_be_merged(tmp_path):
    X, y = data(200)
    parts = [
        MeasureClassifier("roc_auc", solver="moments").partial_fit(X[own], y[own])
        for own in (slice(90), slice(90, 200))
    ]
    loaded = [saved(part, tmp_path / "model") for part in parts]
    assert_the_same(parts[0].merge(parts[1]), loaded[0].merge(loaded[1]))


def test_a_fit_after_a_stream_is_saved_as_a_fit(tmp_path):
    clf = MeasureClassifier("gmean", solver="spade", random_state=0).partial_fit(*data()).fit(*data())
    loaded = saved(clf, tmp_path / "model")
    assert loaded._stream is None
    assert same(clf.partial_fit(*data()).coef_, loaded.partial_fit(*data()).coef_)


# -------------------------------------------------------------------------------------------------------------- what is code


def profit(tp, fp, fn, tn):
    return 5.0 * tp - fp


def test_a_function_of_the_user_is_asked_for_where_it_is_needed(tmp_path):
    X, y = data()
    clf = fitted(CountMeasure(profit, "profit"))
    loaded = saved(clf, tmp_path / "model")
    assert loaded.decision_function(X).tobytes() == clf.decision_function(X).tobytes()
    assert same(loaded.predict(X), clf.predict(X))
    for call in (loaded.score, loaded.tune_threshold, loaded.fit, clone(loaded).fit):
        with pytest.raises(ValueError, match=r"'profit' was a function of yours.*load_model\(path, measure=\.\.\.\)"):
            call(X, y)
    again = load_model(tmp_path / "model", measure=CountMeasure(profit, "profit"))
    assert again.score(X, y) == clf.score(X, y)
    assert again.fit(X, y).coef_.tobytes() == clf.coef_.tobytes()
    assert saved(loaded, tmp_path / "again").measure.name == "profit"


@for_each("given", [CountMeasure(profit, "loss"), get_measure("f1"), "profit", profit])
def test_a_measure_of_another_name_is_refused(given, tmp_path):
    fitted(CountMeasure(profit, "profit")).save(tmp_path / "model")
    with pytest.raises(ValueError, match="'profit' that the model was trained for"):
        load_model(tmp_path / "model", measure=given)


def test_a_measure_of_the_user_that_bears_a_known_name_is_not_taken_for_it(tmp_path):
    X, y = data()
    loaded = saved(fitted(CountMeasure(profit, "f1")), tmp_path / "model")
    with pytest.raises(ValueError, match="function of yours"):
        loaded.score(X, y)


@for_each("option", ["callbacks", "checkpoint"])
def test_callbacks_and_checkpoints_are_left_out_with_a_warning(option, tmp_path):
    value = [print] if option == "callbacks" else Checkpoint(tmp_path / "checkpoint")
    clf = fitted("f1", solver="lbfgs", solver_params={"memory": 3}).set_params(
        solver_params={"memory": 3, option: value}
    )
    with pytest.warns(UserWarning, match=f"'{option}'.*not saved"):
        clf.save(tmp_path / "model")
    assert load_model(tmp_path / "model").solver_params == {"memory": 3}
    assert option in clf.solver_params


@for_each("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_a_random_state_is_left_out_with_a_warning(state, tmp_path):
    clf = fitted("f1").set_params(random_state=state)
    with pytest.warns(UserWarning, match=r"random_state=.*not saved"):
        clf.save(tmp_path / "model")
    assert load_model(tmp_path / "model").random_state is None


def test_a_model_without_code_is_saved_without_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = MeasureClassifier("f1", random_state=0).fit(*data())
        assert_the_same(clf, saved(clf, tmp_path / "model"))


def test_a_parameter_that_is_code_is_named_and_nothing_is_written(tmp_path):
    clf = fitted("f1").set_params(solver_params={"memory": print})
    with pytest.raises(TypeError, match=r"parameters\.solver_params\.memory"):
        clf.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------- encodings


def test_an_encoding_is_kept_with_the_model(tmp_path):
    encoding = Encoding(
        [Column("age", "number", fill=1.5), Column("color", "category", ("red", "é", "?"), "?")], label="y"
    )
    clf = fitted("f1")
    clf.save(tmp_path / "model", encoding=encoding)
    loaded = load_model(tmp_path / "model")
    assert loaded.encoding_ == encoding
    assert saved(loaded, tmp_path / "again").encoding_ == encoding
    assert not hasattr(clf, "encoding_")


def test_an_encoding_of_another_width_is_refused(tmp_path):
    with pytest.raises(ValueError, match="encoding has 1 features, the classifier 4"):
        fitted("f1").save(tmp_path / "model", encoding=Encoding([Column("age", "number")]))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------- the disk


def test_what_has_learnt_nothing_is_not_saved(tmp_path):
    for clf in (MeasureClassifier("f1"), clone(fitted("f1"))):
        with pytest.raises(ValueError, match="call fit or partial_fit"):
            clf.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_leaves_the_old_model(tmp_path, monkeypatch):
    path = tmp_path / "model"
    old, new = fitted("f1"), fitted("f1", alpha=1.0)
    old.save(path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            new.save(path)
    with pytest.raises(TypeError, match="class_weight"):
        copy.copy(new).set_params(class_weight={0: print}).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert_the_same(new, saved(new, path))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        fitted("f1").save(tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing")


# ---------------------------------------------------------------------------------------------------------- altered content


@cache
def contents(kind):
    """Return what a file holds of a model that was fitted, or of a stream."""
    streamed = MeasureClassifier(STREAMED.get(kind), solver=kind, random_state=0)
    clf = fitted("f1") if kind == "fit" else streamed.partial_fit(*data())
    with tempfile.TemporaryDirectory() as folder:
        clf.save(Path(folder, "model"))
        return read_archive(Path(folder, "model"), KIND, VERSION)


def altered(change, kind="fit"):
    content = copy.deepcopy(contents(kind))
    change(content)
    return content


ALTERED = {
    "more features": lambda c: c["trained"].update(n_features_in_=5),
    "no features": lambda c: c["trained"].update(n_features_in_=0, coef_=np.zeros((1, 0))),
    "features that are text": lambda c: c["trained"].update(n_features_in_="4"),
    "features not given": lambda c: c["trained"].pop("n_features_in_"),
    "NaN coefficients": lambda c: c["trained"].update(coef_=np.full((1, 4), np.nan)),
    "coefficients that are text": lambda c: c["trained"].update(coef_=np.array([["a", "b", "c", "d"]])),
    "coefficients that are a list": lambda c: c["trained"].update(coef_=[[1.0, 2.0, 3.0, 4.0]]),
    "coefficients of another shape": lambda c: c["trained"].update(coef_=np.ones(4)),
    "an infinite intercept": lambda c: c["trained"].update(intercept_=np.array([np.inf])),
    "no intercept": lambda c: c["trained"].pop("intercept_"),
    "two intercepts": lambda c: c["trained"].update(intercept_=np.zeros(2)),
    "three classes": lambda c: c["trained"].update(classes_=np.arange(3)),
    "classes that are a list": lambda c: c["trained"].update(classes_=[0, 1]),
    "no classes": lambda c: c["trained"].pop("classes_"),
    "an unknown parameter": lambda c: c["parameters"].update(unknown=1),
    "a parameter self": lambda c: c["parameters"].update(self=1),
    "parameters that are a list": lambda c: c.update(parameters=[1]),
    "a class": lambda c: c["trained"].update(__class__="int"),
    "a method": lambda c: c["trained"].update(predict=1),
    "a parameter among attributes": lambda c: c["trained"].update(measure="f1"),
    "a private attribute": lambda c: c["trained"].update(_stream=1),
    "a dunder": lambda c: c["trained"].update(__dict__={}),
    "an encoding among attributes": lambda c: c["trained"].update(encoding_=1),
    "attributes that are numbers": lambda c: c.update(trained={1: 2}),
    "attributes that are a list": lambda c: c.update(trained=["coef_"]),
    "no attributes": lambda c: c.pop("trained"),
    "another estimator": lambda c: c.update(estimator="SGDClassifier"),
    "no estimator": lambda c: c.pop("estimator"),
    "no measure": lambda c: c["parameters"].pop("measure"),
    "a measure that is a number": lambda c: c["parameters"].update(measure=5),
    "an unknown measure": lambda c: c["parameters"].update(measure={"name": "unknown", "params": {}}),
    "a measure with another parameter": lambda c: c["parameters"].update(measure={"name": "f1", "params": {"beta": 2.0}}),
    "a measure without parameters": lambda c: c["parameters"].update(measure={"name": "f1"}),
    "an encoding that is none": lambda c: c.update(encoding={"columns": []}),
    "an encoding of another width": lambda c: c.update(encoding=Encoding([Column("age", "number")]).to_json()),
    "moments that are a number": lambda c: c.update(moments=5),
    "a stream without state": lambda c: c.update(stream={"seed": 1}),
    "a stream that is a list": lambda c: c.update(stream=[1]),
    "no stream": lambda c: c.pop("stream"),
}  # fmt: skip


@for_each("name", ALTERED)
def test_altered_content_is_refused(name, tmp_path):
    write_archive(tmp_path / "altered", KIND, VERSION, altered(ALTERED[name]))
    with pytest.raises(ValueError, match="altered"):
        load_model(tmp_path / "altered")


def short(field):
    return lambda c: c["stream"]["state"].update({field: c["stream"]["state"][field][:2]})


STREAMS = {
    "short coefficients": short("v"),
    "short sums": short("behind"),
    "short units": short("units"),
    "short squares": short("squares"),
    "short counts": short("counts"),
    "short numbers": short("numbers"),
    "coefficients of another type": lambda c: c["stream"]["state"].update(
        v=c["stream"]["state"]["v"].astype("float32")
    ),
    "no scores": lambda c: c["stream"].pop("scores"),
    "an unknown part": lambda c: c["stream"].update(unknown=1),
    "an unknown part of the state": lambda c: c["stream"]["state"].update(unknown=1),
}


@for_each("name", STREAMS)
@for_each("solver", ["spade", "stamp"])
def test_an_altered_stream_is_refused(name, solver, tmp_path):
    """Kernels do not check bounds: what does not fit must not come in."""
    write_archive(tmp_path / "altered", KIND, VERSION, altered(STREAMS[name], solver))
    with pytest.raises(ValueError, match="altered"):
        load_model(tmp_path / "altered")


@for_each("part", ["mean", "scatter", "weight"])
def test_altered_moments_are_refused(part, tmp_path):
    def change(c):
        c["moments"]["positive"][part] = np.full((2, 2), np.nan)

    write_archive(tmp_path / "altered", KIND, VERSION, altered(change, "moments"))
    with pytest.raises(ValueError, match="altered"):
        load_model(tmp_path / "altered")


def test_what_is_not_altered_is_loaded(tmp_path):
    for kind in ("fit", *STREAMING):
        write_archive(tmp_path / "model", KIND, VERSION, altered(lambda content: None, kind))
        load_model(tmp_path / "model").predict(data()[0])


def test_other_files_are_refused(tmp_path):
    write_archive(tmp_path / "other", "scoreline checkpoint", 1, {})
    with pytest.raises(ValueError, match=r"other.*expected a scoreline model file"):
        load_model(tmp_path / "other")
    write_archive(tmp_path / "other", KIND, VERSION + 1, contents("fit"))
    with pytest.raises(ValueError, match="newer scoreline"):
        load_model(tmp_path / "other")


EARLIER = Path(__file__).parent / "models"  # its README says which commit wrote the files


def test_a_model_of_an_earlier_version_is_loaded():
    """The parameter `threshold` was called `cut` when the file was written."""
    clf = load_model(EARLIER / "before_threshold.npz")
    assert (clf.threshold, clf.measure, clf.solver_) == ("train", "f1", "cost_search")
    assert not hasattr(clf, "cut")
    np.testing.assert_allclose(clf.coef_, [[1.2640568, -0.32929992, 0.05323807]], rtol=1e-6)
    np.testing.assert_allclose(clf.intercept_, [-1.19779146], rtol=1e-6)
    assert clf.predict([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).tolist() == ["yes", "no"]
    assert clf.gap_ <= 0.01 * clf.lower_bound_


def test_a_stream_of_an_earlier_version_is_continued():
    clf = load_model(EARLIER / "before_threshold_stream.npz")
    assert (clf.threshold, clf.threshold_rank_error_) == ("train", 0.0)
    assert clf.predict([[4.0, 0.0, 0.0], [-4.0, 0.0, 0.0]]).tolist() == ["yes", "no"]
    before = clf.coef_.copy()
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 3))
    clf.partial_fit(X, np.where(X[:, 0] > 1.0, "yes", "no"))
    assert not np.array_equal(clf.coef_, before)
    assert clf.predict([[4.0, 0.0, 0.0], [-4.0, 0.0, 0.0]]).tolist() == ["yes", "no"]
