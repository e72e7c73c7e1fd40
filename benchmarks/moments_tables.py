"""The tables of Ghanbari and Scheinberg (2018), "Novel and efficient approximations for zero-one loss", made again.

    SCORELINE_DATA=folder python benchmarks/moments_tables.py [--tables 4.5,4.6] [--sets a9a,data_1] [--methods F_n01,LDA]
        [--scaling range] [--runs 20] [--cache file.jsonl] [--out file.md]

4.5 (with 4.7): accuracy on real sets; 4.6: AUC on them. 4.2, 4.3: accuracy and AUC on the nine Gaussian sets of 4.1. Every run
goes to the cache as soon as it is done, a rerun does what is not there: delete the cache after a change of the library.

Real sets: features divided by their largest magnitude (--scaling range: dense ones taken to [-1, 1], as LIBSVM's scaled files
are; none: as they are, which fits the paper's segment), 5 stratified folds, 4 times. Not here: svm1, magic, satimage, w8a,
gisette, rcv1, real-sim. Which class is positive in letter, poker, vowel, segment, shuttle and mnist the paper does not say.

Gaussian sets: how moments were drawn the paper does not say. Here either class has A A'/d + 0.1 I with a Gaussian A of its own,
and Gaussian means scaled so that the best linear classifier is as accurate as the paper's with exact moments. Moments are
fixed per set; rows, split and swapped labels are new in every run. So these stand beside the paper's but are not judged.
"""

import argparse
import functools
import json
import math
import os
import time
import warnings
from collections import Counter, defaultdict, namedtuple
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from common import OUTPUT, SEED, header
from scoreline import MeasureClassifier
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.solvers import MomentsSolver
from scoreline.solvers.normal_model import Projected, best_intercept, best_ranking_direction, error
from smoothing_data import VARIABLE, narrow, read

FOLDS, REPEATS = 5, 4
SPARSE_BELOW = 0.25  # share of non-zeros: denser sets are faster as arrays
TINY_PENALTY = 1e-6  # "no regularisation", yet with a minimum where the classes are separable
ADAM_EPOCHS, ADAM_ROWS, ADAM_BATCH = 500, 15_000_000, {"colon-cancer": 10, "vowel": 20, "sonar": 20}
OTHER_NAMES = {"svmguide3": "svm3", "german.numer": "german", "colon-cancer": "colon"}  # here: in the paper

# The paper's figures, "-" where there are none: mean and standard deviation of F_n01, logistic, LDA, Adam, F_nrank, hinge.
REAL_FIGURES = """
fourclass 0.7564 0.0323  0.7602 0.0293  0.7572 0.0314  0.7378 0.0444  0.8362 0.0312  0.8361 0.0312
diabetes  0.7667 0.0371  0.7680 0.0397  0.7703 0.0366  0.7333 0.3860  0.8311 0.0312  0.8308 0.0329
shuttle   -      -       -      -       -      -       -      -       0.9840 0.0016  0.9892 0.0015
vowel     0.9619 0.0207  0.9652 0.0176  0.9600 0.0224  0.9276 0.0238  0.9585 0.0333  0.9737 0.0202
poker     0.9795 0.0017  0.9795 0.0017  0.9795 0.0017  0.9795 0.0017  0.5053 0.0224  0.5070 0.0223
letter    0.9710 0.0030  0.9824 0.0019  0.9711 0.0029  0.9709 0.0034  0.9830 0.0029  0.9884 0.0022
segment   0.9845 0.0292  0.9978 0.0022  0.9617 0.0331  0.9968 0.0032  0.9947 0.0055  0.9999 0.0001
svm3      0.8208 0.0245  0.7929 0.0209  0.8238 0.0259  0.7619 0.0192  0.7996 0.0421  0.7731 0.0457
ijcnn1    0.9054 0.0026  0.9142 0.0025  0.9081 0.0029  0.9024 0.0023  0.9269 0.0036  0.9291 0.0037
german    0.7553 0.0252  0.7648 0.0320  0.7675 0.0275  0.7355 0.0308  0.7938 0.0292  0.7929 0.0292
sonar     0.7573 0.0610  0.7549 0.0761  0.7622 0.0499  0.6768 0.0703  0.8150 0.0672  0.8470 0.0559
a9a       0.8376 0.0043  0.8472 0.0041  0.8452 0.0038  0.8066 0.0061  0.9002 0.0040  0.9033 0.0037
mnist     0.9819 0.0008  0.9877 0.0005  0.9778 0.0013  0.9722 0.0032  0.9942 0.0009  0.9953 0.0007
colon     0.7833 0.1191  0.7167 0.1221  0.8875 0.0985  0.7375 0.1332  0.8715 0.0933  0.8774 0.0998
covtype   0.5502 0.0134  0.7562 0.0010  0.7553 0.0009  0.6304 0.0142  0.8243 0.0001  0.8272 0.0009
"""
# The same: accuracy of exact moments, approximate moments and logistic, AUC of exact moments, approximate moments and hinge.
GAUSSIAN_FIGURES = """
data_1 0.9965 0.0008  0.9907 0.0014  0.9897 0.0018  0.9972 0.0014  0.9941 0.0027  0.9790 0.0089
data_2 0.9905 0.0023  0.9806 0.0032  0.9557 0.0049  0.9963 0.0016  0.9956 0.0018  0.9634 0.0056
data_3 0.9884 0.0030  0.9745 0.0037  0.9537 0.0048  0.9965 0.0015  0.9959 0.0018  0.9766 0.0041
data_4 0.9935 0.0017  0.9791 0.0034  0.9782 0.0031  0.9957 0.0018  0.9933 0.0022  0.9782 0.0054
data_5 0.9899 0.0026  0.9716 0.0048  0.9424 0.0055  0.9962 0.0011  0.9951 0.0013  0.9589 0.0068
data_6 0.9904 0.0017  0.9670 0.0058  0.9291 0.0076  0.9962 0.0013  0.9949 0.0015  0.9470 0.0086
data_7 0.9945 0.0019  0.9786 0.0028  0.9697 0.0031  0.9965 0.0021  0.9874 0.0034  0.9587 0.0092
data_8 0.9901 0.0013  0.9290 0.0045  0.9263 0.0069  0.9966 0.0008  0.9929 0.0017  0.9514 0.0051
data_9 0.9899 0.0028  0.9249 0.0096  0.9264 0.0067  0.9962 0.0014  0.9932 0.0020  0.9463 0.0085
"""
GAUSSIAN = {  # Table 4.1: columns, rows, share of positives, share of training labels swapped
    "data_1": (500, 5000, 0.05, 0.0), "data_2": (500, 5000, 0.35, 0.05), "data_3": (500, 5000, 0.5, 0.1),
    "data_4": (1000, 5000, 0.15, 0.0), "data_5": (1000, 5000, 0.4, 0.05), "data_6": (1000, 5000, 0.5, 0.1),
    "data_7": (2500, 5000, 0.1, 0.0), "data_8": (2500, 5000, 0.35, 0.05), "data_9": (2500, 5000, 0.5, 0.1),
}  # fmt: skip
REAL = "fourclass diabetes shuttle vowel poker letter segment svmguide3 ijcnn1 german.numer sonar".split()
REAL += ["a9a", "mnist", "colon-cancer", "covtype"]
MEASURE = {"4.5": "accuracy", "4.6": "roc_auc", "4.2": "accuracy", "4.3": "roc_auc"}
METHODS = {
    "4.5": ("F_n01", "F_n01 exact", "logistic", "LDA", "Adam"), "4.6": ("F_nrank", "F_nrank exact", "pairwise hinge"),
    "4.2": ("exact moments", "paper moments", "default moments", "logistic"),
    "4.3": ("exact moments", "paper moments", "default moments", "pairwise hinge"),
}  # fmt: skip
# What a column of ours without one of its own in the paper stands beside.
COUNTERPARTS = {"F_n01 exact": "F_n01", "F_nrank exact": "F_nrank", "default moments": "paper moments"}


def paper_figures():
    """Return (mean, standard deviation) by table, set as the paper calls it and column."""
    found = {}
    for tables, text in ((("4.5", "4.6"), REAL_FIGURES), (("4.2", "4.3"), GAUSSIAN_FIGURES)):
        columns = [(table, method) for table in tables for method in METHODS[table] if method not in COUNTERPARTS]
        for name, *numbers in map(str.split, text.strip().splitlines()):
            for (table, column), mean, std in zip(columns, numbers[::2], numbers[1::2], strict=True):
                found[table, name, column] = None if mean == "-" else (float(mean), float(std))
    return found


class Linear:
    """A linear classifier; `find` gets X and y and returns w and b."""

    def __init__(self, find):
        self.find = find

    def fit(self, X, y):
        self.w, self.b = self.find(X, y)

    def decision_function(self, X):
        return X @ self.w + self.b

    def predict(self, X):
        return np.where(self.decision_function(X) > 0.0, 1, -1)


def adam(X, y, batch):
    """Adam (Kingma and Ba 2015) on mean logistic loss + |w|^2 / n from 0; whole epochs, at most ADAM_ROWS row updates."""
    n, rng, step = len(y), np.random.default_rng(SEED), 0
    X = np.column_stack([X, np.ones(n)])
    w, m, v = (np.zeros(X.shape[1]) for _ in range(3))
    shrink = np.append(np.full(len(w) - 1, 2.0 / n), 0.0)
    for _ in range(max(1, min(ADAM_EPOCHS, ADAM_ROWS // n))):
        for rows in np.split(rng.permutation(n), range(batch, n, batch)):
            A, s, step = X[rows], y[rows], step + 1
            g = shrink * w - A.T @ (s * expit(-s * (A @ w))) / len(rows)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            w = w - 0.001 * (m / (1.0 - 0.9**step)) / (np.sqrt(v / (1.0 - 0.999**step)) + 1e-8)
    return w[:-1], w[-1]


def from_truth(truth, measure):
    """Return w and b of exact moments."""
    found = MomentsSolver(ridge=0.0).from_moments(truth, measure, (1.0, 1.0))
    return found.w, found.intercept


# Training and test rows of one run; `truth` are the exact moments of a Gaussian set.
Task = namedtuple("Task", "name X y X_test y_test truth", defaults=(None,))


def model_of(method, measure, task):
    """Return what is fitted: mean loss + penalty |w|^2 for the rivals, as the paper has them."""
    n, plus = len(task.y), np.count_nonzero(task.y > 0)
    weight = n if method == "logistic" else math.sqrt(plus * (n - plus))
    penalty = 1.0 / weight if task.truth is None else TINY_PENALTY
    rivals = {
        "LDA": LinearDiscriminantAnalysis(),
        "Adam": Linear(lambda X, y: adam(X, y, ADAM_BATCH.get(task.name, 200))),
        "exact moments": Linear(lambda *_: from_truth(task.truth, measure)),
        # scikit-learn's: its intercept is free; tolerance and iterations as in the paper
        "logistic": LogisticRegression(C=0.5 / (penalty * n), tol=1e-4, max_iter=500),
        "pairwise hinge": MeasureClassifier("roc_auc", solver="smoothed", alpha=2.0 * penalty, tol=1e-3, max_time=120),
    }
    if method in rivals:
        return rivals[method]
    # The normal model's own intercept and no diagnostic pass: moments and solution, which is what the paper times.
    as_paper = {"method": "paper", "ridge": 0.0} if method in ("F_n01", "F_nrank", "paper moments") else {}
    return MeasureClassifier(
        measure, solver="moments", solver_params={"diagnostics": False} | as_paper, threshold="none"
    )


@functools.cache
def real_set(name, scaling):
    """Return rows, signs and the folds, or None without the file."""
    if (found := read(name)) is None:
        return None
    X, y = found[0] if scaling == "none" else MaxAbsScaler().fit_transform(found[0]), np.where(found[1] > 0, 1, -1)
    X, y = (narrow(X)[:35_000], y[:35_000]) if name == "ijcnn1" else (narrow(X), y)  # the paper's rows
    if X.nnz >= SPARSE_BELOW * math.prod(X.shape):
        X = X.toarray()
        X = MinMaxScaler((-1.0, 1.0)).fit_transform(X) if scaling == "range" else X
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=SEED)
    return X, y, list(folds.split(np.zeros(len(y)), y))


def gaussian_moments(name):
    """Return means, covariances and weights of the training rows as ClassMoments; the same in every run."""
    d, n, share, _ = GAUSSIAN[name]
    rng = np.random.default_rng([SEED, int(name[-1])])
    covariances = [A @ A.T / d + 0.1 * np.eye(d) for A in rng.standard_normal((2, d, d))]
    means = rng.standard_normal((2, d))
    w = best_ranking_direction(means[0] - means[1], covariances[0] + covariances[1])
    spread = [math.sqrt(w @ S @ w) for S in covariances]

    def accuracy(log_size):  # of this direction: nearly the best one, in closed form at any length of the means
        scores = Projected(*(math.exp(log_size) * (means @ w)), *spread)
        return 1.0 - error(scores, best_intercept(scores, share), share)

    target = paper_figures()["4.2", name, "exact moments"][0]
    means *= math.exp(brentq(lambda s: accuracy(s) - target, -15.0, 5.0, xtol=1e-6))
    weights = 0.8 * n * share, 0.8 * n * (1.0 - share)
    return ClassMoments(*(Moments(k, m, S * (k - 1.0)) for k, m, S in zip(weights, means, covariances, strict=True)))


@functools.lru_cache(maxsize=1)
def task_of(name, run, scaling):
    """Return the task of one run; its methods come one after the other."""
    if name not in GAUSSIAN:
        X, y, folds = real_set(name, scaling)
        train, test = folds[run]
        return Task(name, X[train], y[train], X[test], y[test])
    d, n, share, swapped = GAUSSIAN[name]
    truth = gaussian_moments(name)
    rng = np.random.default_rng([SEED, int(name[-1]), 1 + run])
    y = np.where(rng.permutation(n) < round(share * n), 1, -1)
    X = np.empty((n, d))
    for sign, part in ((1, truth.positive), (-1, truth.negative)):
        rows = np.flatnonzero(y == sign)
        X[rows] = part.mean + rng.standard_normal((len(rows), d)) @ np.linalg.cholesky(part.covariance).T
    n_train, noisy = round(0.8 * n), y[: round(0.8 * n)].copy()
    noisy[rng.permutation(n_train)[: round(swapped * n_train)]] *= -1
    return Task(name, X[:n_train], noisy, X[n_train:], y[n_train:], truth)


def one_run(table, name, method, run, scaling):
    """Return the test value and the seconds of fit."""
    task = task_of(name, run, scaling)
    X, X_test = task.X, task.X_test
    if method in ("LDA", "Adam") and not isinstance(X, np.ndarray):
        X, X_test = X.toarray(), X_test.toarray()
    model = model_of(method, MEASURE[table], task)
    start = time.perf_counter()
    model.fit(X, task.y)
    seconds = time.perf_counter() - start
    if MEASURE[table] == "accuracy":
        return float(np.mean(model.predict(X_test) == task.y_test)), seconds
    return float(roc_auc_score(task.y_test, model.decision_function(X_test))), seconds


def summarise(records, runs):
    """Return one row per table, set and method, beside the paper's figure where there is one."""
    paper, cells, rows = paper_figures(), defaultdict(list), []
    for r in records:
        if FOLDS * r["repeat"] + r["fold"] < runs:
            cells[r["table"], r["set"], r["method"]].append((r["value"], r["seconds"]))
    order = [(t, s, m) for t in METHODS for s in (*REAL, *GAUSSIAN) for m in METHODS[t]]
    for table, name, method in (cell for cell in order if cell in cells):
        values, seconds = np.array(cells[table, name, method]).T
        row = {"table": table, "set": name, "method": method, "runs": len(values), "seconds": float(np.median(seconds))}
        row |= {"mean": float(values.mean()), "std": float(values.std()), "within": None}
        if their := paper.get((table, OTHER_NAMES.get(name, name), COUNTERPARTS.get(method, method))):
            row |= {"paper_mean": their[0], "paper_std": their[1], "difference": row["mean"] - their[0]}
            row["within"] = None if name in GAUSSIAN else bool(abs(row["difference"]) <= 2.0 * their[1])
        rows.append(row)
    return rows


def markdown(head, rows):
    """Return the tables and the cells that differ."""
    lines = ["# Tables of Ghanbari and Scheinberg (2018)", ""] + [f"- {key}: {value}" for key, value in head.items()]
    columns = "set", "method", "ours", "paper", "difference", "within 2 std", "fit, median s", "runs"
    for table in dict.fromkeys(r["table"] for r in rows):
        own = [r for r in rows if r["table"] == table]
        lines += [f"\n## Table {table}: {MEASURE[table]}\n", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for r in own:
            cells = [r["set"], r["method"], f"{r['mean']:.4f} ± {r['std']:.4f}"]
            there = "paper_mean" in r
            cells += [f"{r['paper_mean']:.4f} ± {r['paper_std']:.4f}", f"{r['difference']:+.4f}"] if there else ["", ""]
            cells += [{True: "yes", False: "NO", None: ""}[r["within"]], f"{r['seconds']:.3g}", str(r["runs"])]
            lines.append(f"| {' | '.join(cells)} |")
        outside, compared = ([r for r in own if r["within"] in which] for which in ([False], [False, True]))
        if compared:
            lines.append(
                f"\n{len(outside)} of {len(compared)} cells lie outside two of the paper's standard deviations.\n"
            )
        for r in outside:
            deviations = r["difference"] / r["paper_std"]
            lines.append(f"- {r['set']}, {r['method']}: {r['difference']:+.4f}, {deviations:+.1f} std")
    return "\n".join(lines) + "\n"


def read_cache(path):
    """Return the runs of a cache; a last line that an interruption cut short goes, and that run is done again."""
    text = path.read_text() if path.exists() else ""
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        path.write_text(complete)
    return [json.loads(line) for line in complete.splitlines()]


def work(jobs, scaling, cache):
    """Yield the record of every job as it is done, written to the cache."""
    spent, cells = defaultdict(list), Counter(job[:3] for job in jobs)
    for k, (table, name, method, run) in enumerate(jobs, 1):
        start = time.perf_counter()
        value, seconds = one_run(table, name, method, run, scaling)
        spent[table, name, method].append(time.perf_counter() - start)
        cells[table, name, method] -= 1
        usual = np.mean([s for own in spent.values() for s in own])
        left = sum(count * np.mean(spent.get(cell, usual)) for cell, count in cells.items())
        record = {"table": table, "set": name, "method": method, "repeat": run // FOLDS, "fold": run % FOLDS}
        record |= {"value": value, "seconds": seconds, "scaling": scaling}
        cache.write(json.dumps(record) + "\n")
        cache.flush()
        place = f"{table} {name}, {method}, run {run + 1}"
        print(f"{k}/{len(jobs)} {place}: {value:.4f}, {seconds:.2f} s; {left / 60:.0f} min left", flush=True)
        yield record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(METHODS), help="4.7 is part of 4.5, 4.1 of 4.2 and 4.3")
    parser.add_argument("--sets", default=",".join([*REAL, *GAUSSIAN]))
    parser.add_argument("--methods", default=None, help="names as in the tables, default: all")
    parser.add_argument("--scaling", choices=("magnitude", "range", "none"), default="magnitude")
    parser.add_argument("--runs", type=int, default=FOLDS * REPEATS, help="the first so many of the 20")
    parser.add_argument("--cache", type=Path, default=OUTPUT / "moments_tables.jsonl")
    parser.add_argument("--out", type=Path, default=OUTPUT / "moments_tables.md", help="Markdown; JSON goes next to it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets, tables = options.sets.split(","), options.tables.split(",")
    known = {m for own in METHODS.values() for m in own}
    methods = options.methods.split(",") if options.methods else known
    if wrong := [*({*sets} - {*REAL, *GAUSSIAN}), *({*tables} - {*METHODS}), *({*methods} - known)]:
        parser.error(f"unknown: {', '.join(wrong)}")
    real = [s for s in sets if s in REAL] if {"4.5", "4.6"} & {*tables} else []
    if missing := [s for s in real if real_set(s, options.scaling) is None]:
        print(f"skipped, not in {VARIABLE}={os.environ.get(VARIABLE, '(not set)')}: {', '.join(missing)}", flush=True)
    for path in (options.cache, options.out):
        path.parent.mkdir(parents=True, exist_ok=True)
    records = [r for r in read_cache(options.cache) if r["scaling"] == options.scaling]
    done = {(r["table"], r["set"], r["method"], FOLDS * r["repeat"] + r["fold"]) for r in records}
    # Runs outermost: after the first, every cell has a value and the time left is known.
    jobs = [
        (table, name, method, run)
        for run in range(min(options.runs, FOLDS * REPEATS)) for name in sets if name not in missing
        for table in tables if (name in GAUSSIAN) == (table in ("4.2", "4.3"))
        for method in METHODS[table] if method in methods and (table, name, method, run) not in done
    ]  # fmt: skip
    print(f"{len(records)} runs in {options.cache}, {len(jobs)} to do", flush=True)
    with options.cache.open("a") as cache:
        records += work(jobs, options.scaling, cache)
    head = header() | {"scaling": options.scaling, "Adam": f"{ADAM_EPOCHS} epochs, at most {ADAM_ROWS} row updates"}
    rows = summarise(records, options.runs)
    options.out.with_suffix(".json").write_text(json.dumps({"header": head, "rows": rows}, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(text := markdown(head, rows))
    print(text)


if __name__ == "__main__":
    main()
