"""Ctrl-C at any line of the library: it comes through, what is left is a whole model or none, and the next fit is as ever."""

import gc
import linecache
import signal
import sys
import threading
import timeit
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from limited_fits import CASES, SOME, classifier, rows
from sklearn.exceptions import ConvergenceWarning

import scoreline
from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline import classifier as classifier_module
from scoreline.fitting.model import all_at_once
from scoreline.operators import DenseOperator
from scoreline.runtime import parallel
from tiers import TIER

SOURCE = str(Path(scoreline.__file__).parent)


class Interrupt:
    """Raise KeyboardInterrupt at the k-th line that runs in the library; without k, count the lines.

    Lines with a `with` are left out: a tracer sees them again on the way out, just before the lock or file is released, where
    Python itself lets no signal in.
    """

    def __init__(self, at=None):
        self.at, self.lines, self.raised = at, 0, False

    def _trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with "
        ):
            self.lines += 1
            if self.lines == self.at:
                self.raised = True
                raise KeyboardInterrupt
        return self._trace

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)


def facts(clf):
    """Return what a fit leaves behind that must be of one fit."""
    names = (
        "classes_",
        "n_features_in_",
        "coef_",
        "intercept_",
        "trained_intercept_",
        "status_",
        "objective_",
        "lower_bound_",
    )
    return {name: np.array(getattr(clf, name)).tolist() for name in names if hasattr(clf, name)}


def disturbed(clf, at, X, y):
    """Fit with Ctrl-C at a line; tell whether it came through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with Interrupt(at) as interrupt:
            try:
                clf.fit(X, y)
            except KeyboardInterrupt:
                return True
    assert not interrupt.raised, f"Ctrl-C at line {at} was swallowed"
    return False


def check_consistent(clf, X, y, plain):
    """A model with everything that says that it was interrupted, unless Ctrl-C came after the last line of the fit."""
    if clf.status_ != "interrupted":
        names = [name for name in facts(plain) if name != "classes_"]
        assert [facts(clf)[name] for name in names] == [facts(plain)[name] for name in names]
    assert np.isfinite(clf.coef_).all()
    assert np.isfinite(clf.intercept_).all()
    assert clf.coef_.shape == (1, X.shape[1])
    assert set(clf.predict(X)) <= set(clf.classes_.tolist()) == set(y.tolist())
    if clf.lower_bound_ is not None:
        assert clf.lower_bound_ <= clf.objective_


def places(total, number, seed):
    """Return lines spread over the whole fit, and some at random."""
    rng = np.random.default_rng(seed)
    return sorted(
        {*np.linspace(1, total, number // 2).astype(int).tolist(), *rng.integers(1, total, number // 2).tolist()}
    )


def check_interrupts(case, number, **options):
    X, y = rows()
    other = np.where(y == 1, "yes", "no")

    def make():
        return classifier(case, max_iter=15, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = make().fit(X, y)
        with Interrupt() as count:
            make().fit(X, y)
    met = 0
    for at in places(count.lines, number, 0):
        fresh, old = make(), make()
        old.__dict__.update(plain.__dict__)  # of an earlier fit, with other classes
        before = facts(old)
        interrupted = disturbed(fresh, at, X, y)
        met += interrupted
        if interrupted and hasattr(fresh, "coef_"):
            check_consistent(fresh, X, y, plain)
        if disturbed(old, at, X, other) and facts(old) != before:
            check_consistent(old, X, other, plain)
        assert not getattr(parallel._local, "inside", False)
    assert met > 0.8 * number / 2, case
    with ThreadPoolExecutor(1) as other:  # no lock is left behind
        free = other.submit(parallel._lock.acquire, True, 10.0).result()
        assert free
        other.submit(parallel._lock.release).result()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again = make().fit(X, y)
    assert facts(again) == facts(plain), case


LINES = {"quick": 12, "all": 24, "soak": 120}[TIER]
GROUPS = [[("roc_auc", "auto")]] if TIER == "quick" else [CASES[k::6] for k in range(6)]


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_ctrl_c_at_many_lines(group):
    for case in GROUPS[group]:
        check_interrupts(case, LINES)


@pytest.mark.slow
@for_each("options", [{"probability": True}, {"scaling": "standard", "threshold": "holdout"}])
@for_each("measure", ["roc_auc", "f1"])
def test_ctrl_c_with_probabilities_and_rows_held_out(measure, options):
    check_interrupts((measure, "auto"), LINES, **options)


@pytest.mark.slow
@for_each("case", [("roc_auc", "auto"), ("roc_auc", "moments"), ("f1", "stamp")])
def test_ctrl_c_at_each_of_the_last_lines(case):
    """Where the attributes are set: of the old fit or of the new one, never of both."""
    X, y = rows()

    def make():
        return classifier(case, max_iter=5)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain, other = make().fit(X, y), np.where(y == 1, "yes", "no")
        with Interrupt() as count:
            make().fit(X, y)
    for at in range(count.lines - 80, count.lines + 1):
        clf = make()
        clf.__dict__.update(plain.__dict__)
        if disturbed(clf, at, X, other) and facts(clf) != facts(plain):
            check_consistent(clf, X, other, plain)


def test_attributes_come_all_at_once_or_not_at_all():
    class Estimator:
        pass

    one = Estimator()
    one.a = 1
    with suppress(KeyboardInterrupt), all_at_once(one) as new:
        new.a, new.b = 2, 3
        assert vars(one) == {"a": 1}
        raise KeyboardInterrupt
    assert vars(one) == {"a": 1}
    with all_at_once(one) as new:
        del new.a
        new.b = 3
    assert vars(one) == {"b": 3}


@for_each("error", [KeyboardInterrupt, ValueError])
def test_what_comes_when_the_model_is_set_already(error, monkeypatch):
    """While probabilities are learnt: Ctrl-C leaves the model, marked as interrupted; an error leaves what was there before."""

    def fails(*_):
        raise error("in a fold")

    X, y = rows()
    clf = MeasureClassifier(probability=True).fit(X, y)
    before, calibration = facts(clf), clf.calibration_
    with monkeypatch.context() as patch:
        patch.setattr(classifier_module, "cross_fitted_scores", fails)
        with pytest.raises(error, match="in a fold"):
            clf.fit(X + 1.0, y)
    if error is ValueError:
        assert facts(clf) == before
        assert clf.calibration_ is calibration
    else:
        assert clf.status_ == "interrupted"
        assert facts(clf)["coef_"] != before["coef_"]


class Held(np.ndarray):
    """An array that can be watched."""


def press_once(monkeypatch):
    """Have the first look at X interrupted, whatever it is."""
    left = [1]

    def watched(plain):
        def call(*arguments):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return plain(*arguments)

        return call

    for cls in (DenseOperator, *DenseOperator.__subclasses__()):
        for name in ("rmatvec", "class_moments", "row_arrays"):
            monkeypatch.setattr(cls, name, watched(getattr(cls, name)))


@for_each("case", [case for case in SOME if case[1] != "auto"])
@for_each("folds", [False, True])
def test_x_is_let_go_after_ctrl_c(case, folds, monkeypatch):
    """At once, not when Python looks for circles: the user may need the memory now."""
    X, y = rows()
    X = X.view(Held)
    watched, (measure, name) = weakref.ref(X), case
    clf = MeasureClassifierCV(measure, alphas=[1e-3, 1e-2], solver=name, cv=2) if folds else classifier(case)
    gc.disable()
    try:
        with monkeypatch.context() as patch:
            press_once(patch)
            with pytest.raises(KeyboardInterrupt):
                clf.fit(X, y)
        del X
        assert watched() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------------------- real signals


class Alarm:
    """A signal that raises KeyboardInterrupt in the main thread after some time, if that is still within."""

    def __init__(self, seconds):
        self.seconds, self.armed = seconds, False

    def _ring(self, *_):
        if self.armed:
            raise KeyboardInterrupt

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, self._ring)
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(self, *_):
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self._before)


def work_on(kind):
    """Return a function that makes, fits and returns an estimator, on data of several chunks where threads matter."""
    if kind == "threads":
        X, y = rows(60_000, 20)
        return lambda: MeasureClassifier(alpha=1e-5, tol=1e-4, n_jobs=2).fit(X, y)
    X, y = rows(2000, 5)
    if kind == "search":
        return lambda: MeasureClassifierCV(alphas=[1e-2, 1e-3, 1e-4], cv=3, n_jobs=2).fit(X, y)
    return lambda: MeasureClassifier(kind, alpha=1e-5, tol=1e-6, max_iter=100).fit(X, y)


@pytest.mark.slow
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
@pytest.mark.parametrize("kind", ["threads", "search", "f1", "prbep"])
def test_signals_at_random_moments(kind):
    """Sixty fits are stopped anywhere, also inside kernels of several threads; those that follow give the same bits."""
    work, rng, met = work_on(kind), np.random.default_rng(0), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        work()
        plain, duration = facts(work()), min(timeit.repeat(work, number=1, repeat=3))
        for _ in range(60):
            try:
                with Alarm(rng.uniform(1e-4, duration)):
                    work()
            except KeyboardInterrupt:
                met += 1
            else:
                duration *= 0.9  # the machine was busier when the work was timed
            assert not getattr(parallel._local, "inside", False)
        assert met > 10
        assert facts(work()) == plain
