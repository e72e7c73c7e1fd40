"""Part "default" of benchmarks/cutting_planes.py: does the risk or solver made for a measure pay, compared with "auto"?

For each data set and split: 70 % of the rows (at most --rows) are trained on; tested is on NAME.t where there is one, else on
the other 30 %. alpha is chosen for each side from the same three values, by the measure on a quarter of the training rows,
then the side is fitted to all of them. Everything else is the package's default, with scaling="maxabs" and a limit of seconds.
Differences are to the first side, what "auto" takes (for F1 and Jaccard with fewer than 100 rows per feature), on test rows,
with the standard error over splits. Two sides are there to tell what a difference is due to: the logistic risk for measures of
rankings, and for F1 a threshold on held-out rows.
"""

import json
import time

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifier
from smoothing_data import VARIABLE, narrow, read

SETS = "a9a ijcnn1 letter mnist reuters-mfx cod-rna covtype".split()
PLAIN = {"risk": "logistic", "solver": "cost_search"}
SIDES = {  # measure: sides and their options; the first is what auto takes
    "partial_roc_auc": {"roc_area": {}, "partial_roc": {}, "logistic": {}},
    "average_precision": {"roc_area": {}, "average_precision": {}, "logistic": {}},
    "f1": {"cost_search": PLAIN, "contingency": {}, "contingency, held out": {"risk": "contingency", "threshold": "holdout"},
           "amp": {"solver": "amp"}, "stamp": {"solver": "stamp"}},
    "jaccard": {"cost_search": PLAIN, "amp": {"solver": "amp"}, "stamp": {"solver": "stamp"}},
    "qmean": {"cost_search": PLAIN, "spade": {"solver": "spade"}},
    "min_tpr_tnr": {"cost_search": PLAIN, "spade": {"solver": "spade"}},
    "gmean": {"cost_search": PLAIN, "spade": {"solver": "spade"}},
    "hmean": {"cost_search": PLAIN, "spade": {"solver": "spade"}},
}  # fmt: skip
ALPHAS = (1e-2, 1e-4, 1e-6)
NOTABLE = 0.002


def add_options(parser):
    names = lambda text: text.split(",")
    parser.add_argument("--sets", type=names, default=SETS, help="default: data sets")
    parser.add_argument("--measures", type=names, default=list(SIDES), help="default: measures")
    parser.add_argument("--splits", type=int, default=3, help="default: splits of every set")
    parser.add_argument("--rows", type=int, default=50_000, help="default: training rows at most")
    parser.add_argument("--fit-cap", type=float, default=60.0, help="default: seconds a fit at most")
    parser.add_argument("--resume", action="store_true", help="default: keep what the file next to --out has")


def compile_kernels():
    """Fit tiny data once, so that no side pays for compilation."""
    rng = np.random.default_rng(0)
    X, y = csr_array(rng.standard_normal((200, 3)) * (rng.random((200, 3)) < 0.5)), np.arange(200) % 3 == 0
    for measure, sides in SIDES.items():
        for side in sides:
            model_of(measure, side).fit(X, y).predict(X)


def model_of(measure, side, **options):
    own = SIDES[measure][side]
    return MeasureClassifier(
        measure,
        **({"risk": "auto" if "solver" in own else side, "scaling": "maxabs", "random_state": 0} | own | options),
    )


def load(name):
    """Return (X, y, X_test, y_test), the last two None where there is no NAME.t; None if the set is missing."""
    found = read(name)
    if found is None:
        return None
    X, y, other = narrow(found[0]), (found[1] > 0).astype(int), read(f"{name}.t")
    if other is None or other[0].shape[1] > X.shape[1]:
        return X, y, None, None
    X_test = other[0].copy()
    X_test.resize(X_test.shape[0], X.shape[1])
    return X, y, narrow(X_test), (other[1] > 0).astype(int)


def split_of(data, split, rows):
    """Return training and test rows of a split."""
    X, y, X_test, y_test = data
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    if len(y_train) > rows:
        X_train, _, y_train, _ = train_test_split(
            X_train, y_train, train_size=rows, stratify=y_train, random_state=split
        )
    return (X_train, y_train, X_rest, y_rest) if X_test is None else (X_train, y_train, X_test, y_test)


def one_side(measure, side, data, split, cap):
    """Return what one side reaches: alpha, test value, seconds of the fit and of the choice, and what there is to say."""
    X, y, X_test, y_test = data
    inner = train_test_split(X, y, test_size=0.25, stratify=y, random_state=split)
    options = {"max_time": cap, "max_iter": 10**6}
    values, begin = {}, time.perf_counter()
    for alpha in ALPHAS:
        model = model_of(measure, side, alpha=alpha, **options).fit(inner[0], inner[2])
        values[alpha] = float(model.score(inner[1], inner[3]))
    chosen, choice = max(values, key=values.get), time.perf_counter() - begin
    begin = time.perf_counter()
    model = model_of(measure, side, alpha=chosen, **options).fit(X, y)
    seconds = time.perf_counter() - begin
    found = {
        "value": float(model.score(X_test, y_test)), "alpha": chosen, "seconds": seconds, "choice": choice,
        "status": model.status_, "zero": not model.coef_.any(), "validation": list(values.values()),
    }  # fmt: skip
    if measure == "f1":
        z = X_test @ model.coef_.ravel() + model.trained_intercept_
        found["uncut"] = float(f1_score(y_test, z > 0.0, zero_division=0.0))
    return found


def run(report, options):
    """Train both sides on all sets and splits, then say what they reach."""
    path = options.out.with_name(f"{options.out.stem}-default.json")
    path.parent.mkdir(exist_ok=True)
    results = json.loads(path.read_text()) if options.resume and path.exists() else {}
    compile_kernels()
    for name in options.sets:
        keys = [(split, measure) for split in range(options.splits) for measure in options.measures]
        if all(f"{name} {split} {measure}" in results for split, measure in keys):
            continue
        data = load(name)
        if data is None:
            report.say(f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        for split in range(options.splits):
            parts = split_of(data, split, options.rows)
            for measure in options.measures:
                key = f"{name} {split} {measure}"
                if key in results:
                    continue
                sides = list(SIDES[measure])[:: 1 if split % 2 == 0 else -1]  # they take turns in coming first
                results[key] = {side: one_side(measure, side, parts, split, options.fit_cap) for side in sides}
                path.write_text(json.dumps(results, indent=1))
    for measure in options.measures:
        auto, *others = SIDES[measure]
        for own in others:
            summary(report, measure, auto, own, results, options)


def summary(report, measure, auto, own, results, options):
    """Say what one side reaches beside the first on each set and over all."""
    differences, slower = [], []
    for name in options.sets:
        runs = [results.get(f"{name} {split} {measure}") for split in range(options.splits)]
        runs = [run for run in runs if run is not None]
        if not runs:
            continue
        values = {side: np.array([run[side]["value"] for run in runs]) for side in (auto, own)}
        d = values[own] - values[auto]
        differences.append(float(d.mean()))
        error = d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else np.nan
        seconds = {s: np.mean([run[s]["seconds"] for run in runs]) for s in (auto, own)}
        slower.append(seconds[own] / seconds[auto])
        note = f"+- {error:.4f}; {values[auto].mean():.4f}, then {values[own].mean():.4f}; fit "
        note += f"{seconds[auto]:.2f}, then {seconds[own]:.2f} s; alpha {alphas(runs, auto)}, then {alphas(runs, own)}"
        report.add(f"{measure}, {name}: {own} - {auto}", float(d.mean()), "", "", note + remarks(runs, auto, own))
    if not differences:
        return
    d = np.array(differences)
    means = d[np.random.default_rng(0).integers(0, len(d), (10_000, len(d)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    note = (
        f"interval over sets [{low:+.4f}, {high:+.4f}], median {np.median(d):+.4f}; better by more than {NOTABLE:g} on "
    )
    note += f"{int((d > NOTABLE).sum())}, worse on {int((d < -NOTABLE).sum())} of {len(d)}"
    report.add(f"{measure}: {own} - {auto}, mean of {len(d)} sets", float(d.mean()), "", "", note)
    report.add(f"{measure}: time of {own} / {auto}", float(np.exp(np.mean(np.log(slower)))), "x", "", "geometric mean")


def alphas(runs, side):
    return "/".join(f"{run[side]['alpha']:.0e}".replace("e-0", "e-") for run in runs)


def remarks(runs, auto, own):
    """Return what else there is to say of the runs: coefficients of 0, fits not proved, F1 with the trained intercept."""
    notes = []
    for side in (auto, own):
        if zeros := sum(run[side]["zero"] for run in runs):
            notes.append(f"{side} ends at w = 0 in {zeros} of {len(runs)}")
        if late := sum(run[side]["status"] != "converged" for run in runs):
            notes.append(f"{side} unproved in {late} of {len(runs)}")
    if "uncut" in runs[0][own] and own == "contingency":
        notes.append(f"without a tuned threshold {np.mean([run[own]['uncut'] for run in runs]):.4f}")
    return "".join(f"; {text}" for text in notes)
