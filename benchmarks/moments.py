"""solver="moments": the cost of the pass against BLAS and SciPy, what follows it, and AUC and time against LogisticRegression.

    SCORELINE_DATA=folder python benchmarks/moments.py [--sets a9a,covtype] [--parts pass,rows,auc] [--out bench-output/m.json]

pass: class moments of a dense matrix beside X.T @ X in float64 (both with all threads, in turn), of CSR beside SciPy's. rows:
the time after the pass from 1e4 to 1e7 rows of 100 columns. auc: test AUC (30 % held out, or NAME.t) and time to fit of
LogisticRegression(C=1), features scaled to at most 1 in magnitude. Ratios are rival / ours: above 1 we are faster.
"""

import argparse
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from common import OUTPUT, SEED, SPIN, standalone
from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.operators import as_operator
from scoreline.solvers import MomentsSolver
from smoothing_data import VARIABLE, held_out, load

NAME, TITLE = "moments", "solver='moments': one pass, one solve; ratios are rival / ours"
SETS = "a9a ijcnn1 covtype mnist census-income synthetic".split()
TIMED = ("covtype", "mnist", "census-income", "synthetic")
SHAPES = ((1_000_000, 50), (1_000_000, 100), (200_000, 500), (50_000, 2000))
SPARSE = ((200_000, 100, 14), (200_000, 1000, 50), (100_000, 4000, 50))
REPEATS = 3


def best_of(*tasks):
    """Return the least seconds of each task; they take turns, and wait for BLAS threads that spin."""
    least = [np.inf] * len(tasks)
    for _ in range(REPEATS):
        for k, task in enumerate(tasks):
            time.sleep(SPIN)
            begin = time.perf_counter()
            task()
            least[k] = min(least[k], time.perf_counter() - begin)
    return least


def the_pass(report):
    """Moments beside X.T @ X."""
    rng = np.random.default_rng(SEED)
    for n, p in SHAPES:
        X, sign = rng.standard_normal((n, p)), np.where(rng.random(n) < 0.1, 1, -1)
        operator = as_operator(X)
        ours, blas = best_of(lambda: operator.class_moments(sign), lambda: X.T @ X)
        report.add(
            f"dense {n} x {p}: X.T @ X / moments", blas / ours, "x", ">= 0.5", f"{ours:.3g} s, BLAS {blas:.3g} s"
        )
        single = as_operator(X.astype(np.float32))
        seconds = best_of(lambda: single.class_moments(sign))[0]
        report.add(
            "the same in float32, widened: X.T @ X (float64) / moments", blas / seconds, "x", "", f"{seconds:.3g} s"
        )
    for n, p, row in SPARSE:
        X = sp.random(n, p, density=row / p, format="csr", random_state=SEED, dtype=np.float64)
        sign, operator = np.where(rng.random(n) < 0.1, 1, -1), as_operator(X)
        ours, scipy = best_of(lambda: operator.class_moments(sign), lambda: X.T @ X)
        report.add(
            f"CSR {n} x {p}, {row} a row: X.T @ X / moments",
            scipy / ours,
            "x",
            ">= 0.5",
            f"{ours:.3g} s, SciPy {scipy:.3g} s",
        )


def after_the_pass(report):
    """Seconds from moments to coefficients for more and more rows."""
    rng = np.random.default_rng(SEED)
    for n in (10_000, 100_000, 1_000_000, 10_000_000):
        X = rng.standard_normal((n, 100), dtype=np.float32)
        sign = np.where(X[:, 0] + rng.standard_normal(n, dtype=np.float32) > 1.0, 1, -1)
        operator = as_operator(X)
        begin = time.perf_counter()
        moments = operator.class_moments(sign)
        pass_seconds = time.perf_counter() - begin
        for measure in ("roc_auc", "accuracy"):
            seconds = best_of(lambda: MomentsSolver().from_moments(moments, measure, (1.0, 1.0)))[0]
            report.add(
                f"{n} x 100, {measure}: after the pass",
                1e3 * seconds,
                "ms",
                "",
                f"the pass itself {pass_seconds:.3g} s",
            )
        del X, operator


def compare_with_logistic(report, names):
    """Test AUC and time to fit."""
    ratios = []
    for name in names:
        data = synthetic() if name == "synthetic" else load(name, test=True)
        if data is None:
            report.say(f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        own = MeasureClassifier("roc_auc", solver="moments", solver_params={"diagnostics": False})
        rival = LogisticRegression(C=1.0, max_iter=1000)
        seconds = best_of(lambda: own.fit(data.X, data.y), lambda: rival.fit(data.X, data.y))
        auc = [roc_auc_score(data.y_test > 0, model.decision_function(data.X_test)) for model in (own, rival)]
        target = ">= -0.01" if name != "synthetic" else ""
        note = f"{auc[0]:.4f}, LogisticRegression {auc[1]:.4f}"
        report.add(f"{name}: test AUC, difference", auc[0] - auc[1], "", target, note)
        note = f"{seconds[0]:.3g} s, LogisticRegression {seconds[1]:.3g} s"
        report.add(f"{name}: time of LogisticRegression / ours", seconds[1] / seconds[0], "x", "", note)
        if name in TIMED:
            ratios.append(seconds[1] / seconds[0])
    if ratios:
        value = float(np.exp(np.mean(np.log(ratios))))
        report.add(f"geometric mean over {len(ratios)} large sets", value, "x", ">= 4")


def synthetic():
    X, y = make_imbalanced(1_000_000, 50, positive_share=0.05, tail=5.0, random_state=SEED)
    X /= np.abs(X).max(axis=0)
    return held_out("synthetic", X, np.where(y > 0, 1, -1))


def main(report, options):
    warnings.simplefilter("ignore", ConvergenceWarning)
    for X in (np.random.default_rng(0).random((200, 3)), sp.random(200, 3, density=0.5, format="csr", random_state=0)):
        MeasureClassifier("roc_auc", solver="moments", solver_params={"diagnostics": False}).fit(X, np.arange(200) % 2)
    if "pass" in options.parts:
        the_pass(report)
    if "rows" in options.parts:
        after_the_pass(report)
    if "auc" in options.parts:
        compare_with_logistic(report, options.sets)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--sets", type=names, default=SETS)
    parser.add_argument("--parts", type=names, default=["pass", "rows", "auc"])
    parser.add_argument("--out", type=Path, default=OUTPUT / "moments.json")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = parsed()
    standalone(SimpleNamespace(NAME=NAME, TITLE=TITLE, main=lambda report: main(report, chosen)), out=chosen.out)
