"""Time and passes to a duality gap of 1 % and 0.1 %, on files from SCORELINE_DATA and on one set made on the spot."""

import lzma
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

from common import SEED, SPIN, Report, standalone
from scoreline import MeasureClassifier

NAME, TITLE = "solvers", "seconds and passes to a duality gap, maxabs-scaled, no intercept"
VARIABLE = "SCORELINE_DATA"
SETS = ("a9a", "letter", "mnist")
TRAININGS = (("roc_auc", "roc_area", "smoothed"), ("accuracy", "hinge", "smoothed"), ("accuracy", "logistic", "lbfgs"))
ALPHAS = (1e-2, 1e-4, 1e-6)
GAPS = (1e-2, 1e-3)
MAX_TIME = 10.0


def synthetic():
    """Return 50,000 x 2,000 sparse rows, 2 % positive, a noisy linear rule."""
    rng = np.random.default_rng(SEED)
    n, p, per_row = 50_000, 2_000, 20
    popular = (p * rng.random((n, per_row)) ** 2).astype(np.int32)
    X = sp.csr_array((rng.random(n * per_row), popular.ravel(), np.arange(n + 1) * per_row), shape=(n, p))
    X.sum_duplicates()
    score = X @ rng.standard_normal(p) + rng.logistic(size=n)
    return X, np.where(score > np.quantile(score, 0.98), 1, -1)


def load(name: str):
    """Return (X, y) of NAME.svm or NAME.svm.xz, or None if there is no such file."""
    for path in (Path(os.environ[VARIABLE], f"{name}.svm"), Path(os.environ[VARIABLE], f"{name}.svm.xz")):
        if path.exists():
            with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
                X, y = load_svmlight_file(file)
            return MaxAbsScaler().fit_transform(X), np.where(y > 0, 1, -1)
    return None


def reached(history, floor: float, gap: float):
    """Return (seconds, passes) at which the duality gap was reached, or None."""
    for seconds, passes, value, bound in zip(
        *(history[k] for k in ("seconds", "passes", "objective", "lower_bound")), strict=True
    ):
        if value - bound <= gap * max(bound, floor):
            return seconds, passes
    return None


def certified(report: Report, title: str, X, y, measure: str, risk: str, solver: str, alpha: float):
    """Train once to the smaller gap; its history tells about the larger one too."""
    clf = MeasureClassifier(
        measure=measure, risk=risk, solver=solver, alpha=alpha, fit_intercept=False, tol=min(GAPS), max_time=MAX_TIME
    )
    clf.fit(X, y)
    floor = 1e-3 * (np.log(2.0) if risk == "logistic" else 1.0)
    for gap in GAPS:
        at = reached(clf.history_, floor, gap)
        label = f"{title} {risk} alpha {alpha:g}, gap {100 * gap:g} %"
        if at is None:
            gap_now = clf.gap_ / max(clf.lower_bound_, floor)
            report.add(label, None, "s", "", f"not reached: {clf.status_} at {100 * gap_now:.2g} %")
        else:
            # Without the proof: when the objective itself came that near to what was proved in the end.
            near = reached(
                {**clf.history_, "lower_bound": [clf.lower_bound_] * len(clf.history_["passes"])}, floor, gap
            )
            note = f"{at[1]:.0f} passes; the objective was there after {near[0]:.3g} s, {near[1]:.0f} passes"
            report.add(label, at[0], "s", "", note)
    return clf


def logistic_rival(report: Report, title: str, X, y, alpha: float, clf) -> None:
    """Time LogisticRegression with the loosest tol whose objective is within 1 % of what we proved to be possible."""
    limit = 1.01 * clf.lower_bound_
    for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        rival = LogisticRegression(C=1.0 / (len(y) * alpha), fit_intercept=False, tol=tol, max_iter=2000)
        start = time.perf_counter()
        rival.fit(X, y)
        seconds = time.perf_counter() - start
        w = rival.coef_[0]
        value = 0.5 * alpha * w @ w + np.logaddexp(0.0, -y * (X @ w)).mean()
        if value <= limit or seconds > MAX_TIME:
            break
    note = f"tol {tol:g}, {rival.n_iter_[0]} iterations, objective {value / clf.lower_bound_ - 1:.2%} above our bound"
    report.add(f"{title} LogisticRegression alpha {alpha:g}, no proof", seconds, "s", "", note)


def data_sets(report: Report):
    yield "synthetic", synthetic()
    if not os.environ.get(VARIABLE):
        report.say(
            f"{VARIABLE} is unset: no {', '.join(SETS)} (name a folder with NAME.svm or NAME.svm.xz to have them)"
        )
        return
    for name in SETS:
        data = load(name)
        if data is None:
            report.say(f"{name}: neither {name}.svm nor {name}.svm.xz in the folder {VARIABLE} names")
        else:
            yield name, data


def main(report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # the figures say it
    for measure, risk, solver in TRAININGS:  # compile
        MeasureClassifier(measure=measure, risk=risk, solver=solver).fit(sp.eye_array(4).tocsr(), [1, -1, 1, -1])
    for name, (X, y) in data_sets(report):
        report.say(f"{name}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros, {np.mean(y > 0):.1%} positive")
        for measure, risk, solver in TRAININGS:
            for alpha in ALPHAS:
                clf = certified(report, name, X, y, measure, risk, solver, alpha)
                if risk == "logistic":
                    logistic_rival(report, name, X, y, alpha, clf)
                    time.sleep(SPIN)


if __name__ == "__main__":
    standalone(sys.modules[__name__])
