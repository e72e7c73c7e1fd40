"""Classifiers on a device: those of the host for every measure, solver and risk, with the same certificate."""

import sys
import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from device_arrays import LIBRARIES, sent
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cases import for_each
from problems import overlapping_rows
from scoreline import MeasureClassifier, list_measures, load_model
from scoreline.gpu.backend import Backend, backend_of
from scoreline.measures import get_measure
from scoreline.risks.registry import all_risks
from scoreline.solvers import Checkpoint
from scoreline.solvers.registry import all_solvers
from tiers import tiered

MEASURES = [info.name for info in list_measures()]
HAS_TORCH = pytest.mark.skipif("torch" not in LIBRARIES, reason="device= moves data by PyTorch or CuPy")


def problem(n=900, p=8, seed=0):
    return overlapping_rows(n, p, seed, 4, 2, share=0.2, separation=0.7, flipped=0.05)


def fitted(X, y, weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MeasureClassifier(**{"random_state": 0, **options}).fit(X, y, weight)


def same(a, b, digits=7):
    np.testing.assert_allclose(b.coef_, a.coef_, rtol=10.0**-digits, atol=1e-9 * np.abs(a.coef_).max())
    np.testing.assert_allclose(b.intercept_, a.intercept_, rtol=1e-7, atol=1e-9)
    assert (a.solver_, a.risk_, a.n_iter_, a.cost_) == (b.solver_, b.risk_, b.n_iter_, pytest.approx(b.cost_))
    if a.gap_ is not None:
        assert b.objective_ == pytest.approx(a.objective_, rel=1e-9)
        assert b.lower_bound_ == pytest.approx(a.lower_bound_, rel=1e-6, abs=1e-9)


def to_host(z):
    return backend_of(z).host(z)


@pytest.mark.parametrize("library", LIBRARIES)
@for_each(["measure", "weighted"], tiered(product(MEASURES, [False, True]), strength=1))
def test_every_measure_trains_as_on_the_host(measure, weighted, library):
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    here = fitted(X, y, weight, measure=measure, scaling="standard")
    there, truth = sent(X, library), sent(y, library)
    s = None if weight is None else sent(weight, library)
    clf = fitted(there, truth, s, measure=measure, scaling="standard")
    same(here, clf)
    assert isinstance(clf.coef_, np.ndarray)
    assert clf.score(there, truth, s) == pytest.approx(here.score(X, y, weight), abs=1e-12)
    assert clf.objective(there, truth, s) == pytest.approx(here.objective(X, y, weight), rel=1e-9)
    decision, predicted = clf.decision_function(there), clf.predict(there)
    assert type(decision) is type(there)
    assert type(predicted) is type(there)
    np.testing.assert_allclose(to_host(decision), here.decision_function(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(to_host(predicted), clf.predict(X))
    tune_threshold = clf.tune_threshold(there, truth, sample_weight=s).intercept_
    np.testing.assert_allclose(
        tune_threshold, here.tune_threshold(X, y, sample_weight=weight).intercept_, rtol=1e-7, atol=1e-9
    )


PAIRS = [
    (solver.name, name)
    for solver in all_solvers().values()
    if solver.certified
    for name, risk in all_risks().items()
    if all(solver.serves(variant) for variant in risk.variants()[:1])
]


@for_each(["solver", "risk"], tiered(PAIRS, strength=1))
def test_every_solver_trains_every_risk_as_on_the_host(solver, risk):
    known = {info.name: info for info in list_measures()}
    measure = next(m for m in MEASURES if risk in known[m].risks)
    if not all_solvers()[solver].trains(type(get_measure(measure))):
        measure = next(m for m in ("f1", "gmean", "roc_auc") if risk in known[m].risks)
    X, y = problem(60 if "entropy" in risk else 300, 6)
    options = {"measure": measure, "risk": risk, "solver": solver, "max_iter": 12, "threshold": "train", "alpha": 1e-2}
    there = sent(X, LIBRARIES[-1])
    if solver == "hybrid":
        with pytest.raises(TypeError, match="products restricted to rows"):
            fitted(there, y, **options)
        return
    same(fitted(X, y, **options), fitted(there, y, **options))


PENALISED = [
    ("roc_auc", "roc_area", {"penalty": "elastic_net", "penalty_params": {"l1_ratio": 0.8}}),
    ("accuracy", "logistic", {"penalty": "group", "penalty_params": {"groups": [[0, 1], [2, 3, 4], [5, 6, 7]]}}),
    ("accuracy", "hinge", {"bounds": {0: (None, 0), 1: (0.05, 0.1), 3: (0, None)}}),
    ("prbep", "prbep", {"bounds": (0.0, None), "penalty_params": {"weights": [1, 2, 1, 1, 0.5, 1, 1, 3]}}),
]


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("sparse", [False, True])
@for_each("measure, risk, options", PENALISED)
def test_penalties_and_bounds_as_on_the_host(measure, risk, options, sparse, library):
    X, y = problem()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.6, X, 0.0) if sparse else X
    rows = sp.csr_matrix(X) if sparse else X
    options = {"measure": measure, "risk": risk, "alpha": 0.02, "tol": 1e-3, **options}
    here, there = fitted(rows, y, **options), fitted(sent(rows, library), y, **options)
    assert (there.solver_, there.status_) == ("proximal", "converged")
    assert abs(there.objective_ - here.objective_) <= here.gap_ + there.gap_
    assert there.lower_bound_ <= here.objective_ * (1 + 1e-12)
    assert there.objective_ == pytest.approx(there.objective(rows, y), rel=1e-10)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=0.2 * np.abs(here.coef_).max())


FIRST_ITERATIONS = {  # a measure that each risk trains for
    "roc_area": "roc_auc", "roc_area_squared": "roc_auc", "prbep": "prbep",
    "hinge": "accuracy", "squared_hinge": "accuracy", "logistic": "accuracy",
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
@for_each(["risk", "sparse"], tiered(product(FIRST_ITERATIONS, [False, True]), strength=1))
def test_the_first_iterations_of_float32_are_those_of_the_host(risk, sparse, library):
    """Sums are those of float64 whatever X is stored in: 1e-11 after five iterations; J at the end within both gaps."""
    X, y = problem(3000, 12)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.4, X, 0.0) if sparse else X
    X = X.astype(np.float32)
    here = sp.csr_matrix(X.astype(np.float64)) if sparse else X.astype(np.float64)
    there = sent(sp.csr_matrix(X) if sparse else X, library)
    plain = {"init": "zero", **({"precondition": False} if risk in ("roc_area", "prbep", "hinge") else {})}
    options = {"measure": FIRST_ITERATIONS[risk], "risk": risk, "scaling": "standard", "tol": 1e-3}
    a, b = (fitted(rows, y, max_iter=5, solver_params=plain, **options) for rows in (here, there))
    np.testing.assert_allclose(b.history_["objective"], a.history_["objective"], rtol=1e-11)
    np.testing.assert_allclose(b.history_["lower_bound"], a.history_["lower_bound"], rtol=1e-8, atol=1e-10)
    a, b = (fitted(rows, y, **options) for rows in (here, there))
    assert abs(a.objective_ - b.objective_) <= a.gap_ + b.gap_
    assert b.lower_bound_ <= a.objective_
    assert b.status_ == "converged"


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("scaling", [None, "maxabs", "standard"])
def test_moments(scaling, library):
    X, y = problem()
    for measure in ("roc_auc", "accuracy", "balanced_accuracy"):
        here, there = (
            fitted(rows, y, measure=measure, solver="moments", scaling=scaling) for rows in (X, sent(X, library))
        )
        same(here, there, digits=5 if measure == "balanced_accuracy" else 7)
        assert there.moments_report_["empirical"] == pytest.approx(here.moments_report_["empirical"], abs=1e-12)
    stream = MeasureClassifier(solver="moments").partial_fit(sent(X[:500], library), y[:500], classes=[0, 1])
    stream.partial_fit(sent(X[500:], library), sent(y[500:], library))
    np.testing.assert_allclose(stream.coef_, fitted(X, y, solver="moments").coef_, rtol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
@for_each(
    "options",
    [
        {"threshold": "holdout"}, {"threshold": "none"}, {"class_weight": "balanced"},
        {"fit_intercept": False, "measure": "f1"},
        {"measure": "recall_at_precision", "measure_params": {"precision": 0.6}}, {"solver_params": {"init": "moments"}},
        {"measure": "accuracy", "risk": "hinge_free_intercept"}, {"measure": "f1", "solver": "amp"}, {"alpha": 1e-6},
    ],
)  # fmt: skip
def test_options(options, library):
    X, y = problem()
    same(fitted(X, y, **options), fitted(sent(X, library), sent(y, library), **options), digits=5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_starts_on_samples(library):
    X, y = problem(20_000)
    here, there = fitted(X, y, tol=1e-3), fitted(sent(X, library), y, tol=1e-3)
    assert there.n_passes_ % 1.0 != 0.0  # parts of a pass
    assert abs(here.objective_ - there.objective_) <= here.gap_ + there.gap_


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("kind", ["text", "bool", "floats", "column", "list", "minus"])
def test_labels_of_any_kind(kind, library):
    X, y = problem(300)
    here = {
        "text": np.where(y, "yes", "no"), "bool": y > 0, "floats": y + 0.5, "column": y[:, None], "list": y.tolist(),
        "minus": 2 * y - 1,
    }[kind]  # fmt: skip
    given = here if kind in ("text", "list") else sent(here, library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a column
        a, b = MeasureClassifier("f1").fit(X, here), MeasureClassifier("f1").fit(sent(X, library), given)
        same(a, b)
        np.testing.assert_array_equal(b.classes_, a.classes_)
        assert b.score(sent(X, library), given) == a.score(X, here)
        assert b.objective(sent(X, library), given) == pytest.approx(a.objective(X, here), rel=1e-9)
        np.testing.assert_array_equal(b.predict(X), a.predict(X))
        predicted = b.predict(sent(X, library))
    np.testing.assert_array_equal(predicted if kind == "text" else to_host(predicted), a.predict(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_labels_and_weights_of_odd_types(library):
    X, y = problem(300)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    here, there = fitted(X, y, weight.astype(float)), sent(X, library)
    for labels in (
        y.astype(">i4"),
        y.astype(np.longdouble),
        y.astype(np.uint64),
        y.astype(np.float16),
        y.astype(object),
    ):
        same(here, fitted(there, labels, weight.astype(">f8")))
    same(here, fitted(X, sent(y, library), sent(weight, library)))  # X of this process, labels of a device
    if library == "torch":
        import torch

        same(here, fitted(there, torch.tensor(y).to(torch.bfloat16), torch.tensor(weight).to(torch.bfloat16)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_checkpoint_of_the_host_goes_on_on_a_device(library, tmp_path):
    X, y = problem()
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=2, seconds=0.0)
    options = {"tol": 1e-4, "solver_params": {"checkpoint": checkpoint, "precondition": False, "init": "zero"}}
    with pytest.warns(ConvergenceWarning):
        MeasureClassifier(max_iter=6, random_state=0, **options).fit(X, y)
    there = fitted(sent(X, library), y, **options)
    here = fitted(X, y, tol=1e-4)
    assert there.n_iter_ > 6
    assert len(there.history_["iteration"]) == there.n_iter_ + 1  # from the first one on
    assert abs(there.objective_ - here.objective_) <= there.gap_ + here.gap_


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_estimator_is_the_same_thing(library, tmp_path):
    X, y = problem(300)
    clf = fitted(sent(X, library), y, warm_start=True)
    clf.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "model.npz").predict(X), clf.predict(X))
    first = clf.n_iter_
    clf.fit(sent(X, library), y)
    assert clf.n_iter_ < first
    assert not hasattr(clone(clf), "coef_")
    again = [fitted(sent(X, library), y).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("library", LIBRARIES)
def test_wrong_use_is_explained(library):
    X, y = problem(300)
    there = sent(X, library)
    for solver, measure in (("spade", "gmean"), ("stamp", "f1")):
        with pytest.raises(TypeError, match="single rows on the host"):
            MeasureClassifier(measure, solver=solver).fit(there, y)
        with pytest.raises(TypeError, match="X is on a device"):
            MeasureClassifier(measure, solver=solver).partial_fit(there, y, classes=[0, 1])
    for given, words in (
        (y[:5], "inconsistent numbers of samples"),
        (np.zeros(300), "one class"),
        (np.arange(300) % 3, "3 classes"),
    ):
        with pytest.raises(ValueError, match=words):
            MeasureClassifier().fit(there, sent(given, library))
    for weight, words in (
        (np.full(300, -1.0), "negative"),
        (np.zeros(300), "zero everywhere"),
        (np.full(300, np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            MeasureClassifier().fit(there, y, sent(weight, library))
    labels = y.astype(float)
    labels[17] = np.nan
    with pytest.raises(ValueError, match="first seen in row 17"):
        MeasureClassifier().fit(there, sent(labels, library))
    with pytest.raises(ValueError, match="300 classes"):
        MeasureClassifier().fit(there, sent(np.arange(300), library))
    with pytest.raises(ValueError, match="sample_weight has shape"):
        MeasureClassifier().fit(there, y, sent(np.ones((300, 1)), library))
    with pytest.raises(ValueError, match="device works only with fit"):
        MeasureClassifier(solver="moments", solver_params={"device": "cpu"}).partial_fit(X, y, [0, 1])
    text = fitted(there, np.where(y, "yes", "no"), measure="f1")
    with pytest.raises(ValueError, match=r"expected the classes of the fit: \['no', 'yes'\]"):
        text.score(there, sent(y, library))
    clf = fitted(there, y)
    with pytest.raises(ValueError, match="expecting 8 features"):
        clf.predict(there[:, :5])
    with pytest.raises(ValueError, match="classes of the fit"):
        clf.score(there, sent(y + 1, library))


@HAS_TORCH
@for_each("sparse", [False, True])
def test_device_moves_host_data_there_and_the_model_is_the_same(sparse):
    X, y = problem()
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)) if sparse else X
    for options in ({"measure": "roc_auc"}, {"measure": "f1", "scaling": "standard"}, {"solver": "moments"}):
        clf = fitted(X, y, solver_params={"device": "cpu"}, **options)
        here = fitted(X, y, **options)
        np.testing.assert_allclose(clf.coef_, here.coef_, rtol=1e-6, atol=1e-9)
        assert isinstance(clf.predict(X), np.ndarray)


@HAS_TORCH
def test_what_does_not_fit_is_not_begun(monkeypatch):
    X, y = problem(100)
    monkeypatch.setattr(Backend, "free_bytes", lambda self: 1000)
    for rows, twice in ((X, ""), (sp.csr_matrix(X), ", twice")):
        with pytest.raises(MemoryError, match=f"device='cpu'{twice}.*1e-06 GB are free.*without device="):
            fitted(rows, y, solver_params={"device": "cpu"})


@HAS_TORCH
def test_names_of_devices():
    X, y = problem(100)
    for device, words in (
        ("gpu", "not known"),
        (5, "name of a device"),
        ("", "name of a device"),
        ("cuda:x", "not known"),
        ("cpu:1", "not known"),
        ("cupy:1", "not known"),
    ):
        with pytest.raises(ValueError, match=words):
            MeasureClassifier(solver_params={"device": device}).fit(X, y)
    import torch

    for device in ("cpu", torch.device("cpu")):  # it is there
        clf = fitted(torch.tensor(X), y, solver_params={"device": device})
        np.testing.assert_array_equal(clf.coef_, fitted(torch.tensor(X), y).coef_)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="sees no CUDA device"):
            MeasureClassifier(solver_params={"device": "cuda"}).fit(X, y)


def test_errors_name_the_command_that_installs_a_missing_library(monkeypatch):
    X, y = problem(100)
    for name in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'scoreline\[gpu\]' torch"):
        MeasureClassifier(solver_params={"device": "cuda"}).fit(X, y)
    with pytest.raises(ImportError, match="cupy-cuda"):
        MeasureClassifier(solver_params={"device": "cupy"}).fit(X, y)
    there = sent(X, "array-api-strict")
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"pip install 'scoreline\[gpu\]'"):
        MeasureClassifier().fit(there, y)


class OutOfMemoryError(RuntimeError):
    """As PyTorch and CuPy name theirs."""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_full_device_gives_advice_and_changes_nothing(library, monkeypatch):
    X, y = problem(200)
    there, before = sent(X, library), X.copy()
    clf = fitted(there, y)
    coef = clf.coef_.copy()

    def full(*arguments):
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nmore")

    monkeypatch.setattr(Backend, "full", full)
    with pytest.raises(
        MemoryError, match=r"no memory left \(CUDA out of memory. Tried to allocate 20.00 GiB.\).*float32.*host"
    ):
        clf.fit(there, y)
    monkeypatch.undo()
    monkeypatch.setattr(Backend, "array", full)
    with pytest.raises(MemoryError, match="no memory left"):
        clf.score(there, y)
    monkeypatch.undo()
    np.testing.assert_array_equal(clf.coef_, coef)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(clf.fit(X, y).coef_, coef, rtol=1e-6)
