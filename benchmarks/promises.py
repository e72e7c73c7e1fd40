"""Are promises kept, and what do they cost? Violations and recall of `guarantee`, `confidence` and MAPIE.

    SCORELINE_DATA=folder python benchmarks/promises.py [--splits 200] [--sets adult-raw,campaign] [--jobs 16] [--limit 500]
    SCORELINE_DATA=folder python benchmarks/promises.py --thresholds [--model lightgbm] [--splits 10] ...
    python benchmarks/promises.py [--thresholds] --join FILE.jsonl [--table FILE.md]

The rows of a set are the distribution: ROWS training rows are drawn from them with replacement, so they are independent, and
the constraint is checked on all rows, so a broken promise is known without error. Fits that promise nothing flag nothing, and
are not counted as broken. `guarantee` and `confidence` are those of
MeasureClassifier at 0.95. MAPIE (optional: pip install mapie) has logistic regression on 60 % of the same rows and calibrates
on the other 40 %, by Bonferroni-Holm (its default), by a fixed sequence, by one of five starts, and by a sequence that is
learned on a quarter of these rows. Each has the 100 thresholds of MAPIE's default, and 100 quantiles of the probabilities of
its training positives, which suit rare positives better. The best of the eight is chosen afterwards for every set and
constraint. The thirteenth case is a floor that is hard to reach: campaign at a precision of 0.7, with this constraint only.
`--methods guarantee` leaves the others out: violations alone take a tenth of the time.

With --thresholds, ThresholdClassifier is compared with scikit-learn's TunedThresholdClassifierCV on F1, MCC and G-mean, both
with the same estimator and five folds, in turn, on stratified splits with 30 % test rows.
"""

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

import cells
from common import header
from scoreline import MeasureClassifier, ThresholdClassifier
from scoreline.measures import get_measure, get_scorer
from tuned_threshold import SETS as THRESHOLD_SETS
from tuned_threshold import load

CASES = {  # training rows, floor of precision
    "adult-raw": (4000, 0.85),
    "a9a": (4000, 0.8),
    "campaign": (4000, 0.6),
    "page-blocks0": (1500, 0.8),
    "magic04": (4000, 0.9),
    "ijcnn1": (4000, 0.7),
    "letter": (4000, 0.9),
    "annthyroid": (2000, 0.5),
    "w8a": (4000, 0.8),
    "cod-rna": (12_000, 0.9),
    "covtype": (20_000, 0.8),
    "census-income": (20_000, 0.6),
    "campaign at 0.7": (4000, 0.7),
}
GRID = 100  # thresholds that MAPIE tests
CONSTRAINTS = ("precision", "recall", "fpr", "alarms", "cost")
MAPIE_RISKS = {"precision": "precision", "recall": "recall", "fpr": "fpr", "alarms": "predicted_positive_fraction"}
RECALL, FPR, ALARMS, COST_FN, COST_SHARE = 0.8, 0.02, 0.05, 5.0, 0.8
METHODS = ["guarantee", "confidence", "MAPIE"]  # those of --methods
LEVEL, MEASURES, ALPHA, MOST_TREE_ROWS = 0.95, ("f1", "mcc", "gmean"), 1e-4, 20_000


def operating_point(constraint, name, y):
    """Return the measure and its parameters; the limit of the cost is a share of that of the better constant prediction."""
    share = y.mean()
    cost = COST_SHARE * min(COST_FN * share, 1.0 - share)
    return {
        "precision": ("recall_at_precision", {"precision": CASES[name][1]}),
        "recall": ("precision_at_recall", {"recall": RECALL}),
        "fpr": ("tpr_at_fpr", {"fpr": FPR}),
        "alarms": ("recall_at_alarms", {"alarms": ALARMS}),
        "cost": ("recall_at_cost", {"cost": cost, "cost_fn": COST_FN}),
    }[constraint]


def outcome(measure, predicted, y):
    """Return whether the constraint holds (nothing flagged breaks no floor of precision), recall and precision."""
    tp, fp = float((predicted & y).sum()), float((predicted & ~y).sum())
    counts = {"tp": tp, "fp": fp, "fn": y.sum() - tp, "tn": (~y).sum() - fp}
    value, trials = measure.limited(*counts.values()), measure.trials(*counts.values())[1]
    holds = trials == 0 or bool(measure.is_met(**counts))
    return [holds, tp / float(y.sum()), tp / (tp + fp) if tp + fp > 0 else 0.0, float(value) if trials > 0 else None]


def data_of(name):
    """Return the name of the data set of a case."""
    return name.partition(" at ")[0]


def mapie_settings(constraint, limit, X_hold, y_hold, model, grids):
    """Yield the name and a calibrated controller of every setting of MAPIE."""
    from mapie.risk_control import BinaryClassificationController, FWERFixedSequenceTesting

    choice = "precision" if constraint == "recall" else "recall"
    quarter = len(y_hold) // 4
    for (name, method), (grid, thresholds) in product(
        (
            ("Bonferroni-Holm", "bonferroni_holm"),
            ("fixed sequence", "fixed_sequence"),
            ("five starts", FWERFixedSequenceTesting(n_starts=5)),
            ("learned sequence", "split_fixed_sequence"),
        ),
        grids.items(),
    ):
        control = BinaryClassificationController(
            model.predict_proba, risk=MAPIE_RISKS[constraint], target_level=limit, confidence_level=LEVEL,
            best_predict_param_choice=choice, fwer_method=method, list_predict_params=thresholds,
        )  # fmt: skip
        try:
            if name == "learned sequence":
                control.learn_fixed_sequence_order(X_hold[:quarter], y_hold[:quarter])
                yield f"{name}, {grid}", control.calibrate(X_hold[quarter:], y_hold[quarter:])
            else:
                yield f"{name}, {grid}", control.calibrate(X_hold, y_hold)
        except ValueError:
            yield f"{name}, {grid}", None


def promises(cell):
    """Return the outcome of every method and constraint for one draw of training rows."""
    name, split = cell
    warnings.simplefilter("ignore")
    X, y = cells.DATA[data_of(name)]
    rng = np.random.default_rng(split)
    drawn = rng.integers(len(y), size=CASES[name][0])
    X_train, y_train, truth = X[drawn], y[drawn], y > 0
    C = 1.0 / (len(drawn) * ALPHA)
    found = {}
    if "MAPIE" in METHODS:
        X_fit, X_hold, y_fit, y_hold = train_test_split(X_train, y_train, test_size=0.4, random_state=split)
        model = LogisticRegression(C=C, max_iter=500).fit(X_fit, y_fit)
        of_positives = model.predict_proba(X_fit[y_fit > 0])[:, 1]
        quantiles = np.unique(np.quantile(of_positives, np.linspace(0.0, 1.0, GRID, endpoint=False)))
        grids = {"default thresholds": np.linspace(0.0, 0.99, GRID), "quantiles": quantiles}
    for constraint in CONSTRAINTS[:1] if name != data_of(name) else CONSTRAINTS:
        point, params = operating_point(constraint, name, y)
        measure = get_measure(point, params)
        for kind in [each for each in METHODS if each != "MAPIE"]:
            begin = time.perf_counter()
            clf = MeasureClassifier(point, params | {kind: LEVEL}, alpha=ALPHA, random_state=split)
            predicted = clf.fit(X_train, y_train).predict(X) > 0
            held = [clf.promise_.holds] if kind == "guarantee" else [True]
            found[f"{constraint}, {kind}"] = [
                *outcome(measure, predicted, truth),
                time.perf_counter() - begin,
                *held,
            ]
        if constraint not in MAPIE_RISKS or "MAPIE" not in METHODS:
            continue
        limit = next(iter(params.values()))
        try:
            for title, control in mapie_settings(constraint, limit, X_hold, y_hold, model, grids):
                try:
                    predicted = np.asarray(control.predict(X)) > 0 if control is not None else None
                except ValueError:
                    predicted = None
                least = np.ones(len(y), dtype=bool) if constraint == "recall" else np.zeros(len(y), dtype=bool)
                holds = predicted is not None
                found[f"{constraint}, MAPIE {title}"] = [
                    *outcome(measure, predicted if holds else least, truth),
                    0.0,
                    holds,
                ]
        except ImportError:
            pass
    return found


def promise_table(found, sets):
    """Return the lines of both tables: one line per set, constraint and method, and what the issue asks for."""
    lines = [
        "| set, rows | constraint | method | draws | broken | recall | precision | promised |",
        "|---|---|---|---|---|---|---|---|",
    ]
    worst, ratios = {}, []
    for name in sets:
        own = [each["found"] for each in found if each["cell"][0] == name and each["found"]]
        if not own:
            continue
        for constraint in CONSTRAINTS:
            of_mapie = {}
            for method in [key for key in own[0] if key.startswith(f"{constraint}, ")]:
                results = [each[method] for each in own if method in each]
                kind, n = method.partition(", ")[2], len(results)
                broken = sum(each[5] and not each[0] for each in results)
                p_value = binomtest(broken, n, 1.0 - LEVEL, alternative="greater").pvalue if broken else 1.0
                share = f"{broken} ({broken / n:.1%}, p = {p_value:.2g})"
                recall, precision = (np.mean([each[k] for each in results]) for k in (1, 2))
                lines.append(
                    f"| {name}, {CASES[name][0]} | {constraint} | {kind} | {n} | {share} | "
                    f"{recall:.3f} | {precision:.3f} | {np.mean([each[5] for each in results]):.0%} |"
                )
                value = precision if constraint == "recall" else recall
                if kind == "guarantee":
                    worst.setdefault(constraint, []).append((broken / n, p_value, name))
                    ours = value
                elif kind.startswith("MAPIE"):
                    of_mapie[kind] = value
            if of_mapie:
                best = max(of_mapie, key=lambda each: of_mapie[each])
                ratios.append((name, constraint, ours, of_mapie[best], best))
    lines += ["", "Violations of `guarantee`, over the sets:", ""]
    for constraint, every in worst.items():
        share, p_value = max(each[0] for each in every), min(each[1] for each in every)
        lines.append(
            f"- {constraint}: largest share {share:.1%}, mean {np.mean([each[0] for each in every]):.1%}, least p-value of "
            f"more than 5 % {p_value:.2g} ({len(every)} sets)."
        )
    lines += [
        "",
        "Recall (for a floor of recall: precision) of `guarantee` and of MAPIE's best setting:",
        "",
        "| set, rows | constraint | guarantee | MAPIE | its setting | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, constraint, ours, theirs, setting in ratios:
        ratio = "infinite" if theirs == 0.0 and ours > 0.0 else f"{ours / theirs:.2f}" if theirs > 0.0 else "both 0"
        lines.append(
            f"| {name}, {CASES[name][0]} | {constraint} | {ours:.3f} | {theirs:.3f} | {setting[6:]} | {ratio} |"
        )
    return lines


def estimator(kind):
    """Return a new classifier."""
    if kind == "logistic":
        return LogisticRegression(C=10.0, max_iter=1000)
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=100, num_leaves=15, n_jobs=1, verbose=-1, random_state=0)


def thresholds(cell):
    """Return test value and seconds of both sides for every measure."""
    name, kind, split = cell
    warnings.simplefilter("ignore")
    X, y = cells.DATA[name]
    if kind != "logistic" and len(y) > MOST_TREE_ROWS:
        keep = np.random.default_rng(split).permutation(len(y))[:MOST_TREE_ROWS]
        X, y = X[keep], y[keep]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
    found = {}
    small = np.concatenate([np.flatnonzero(y_train == k)[:20] for k in (0, 1)])
    for measure in MEASURES:
        scorer = get_scorer(measure)
        sides = {
            "scikit-learn": TunedThresholdClassifierCV(estimator(kind), scoring=scorer, cv=5),
            "scoreline": ThresholdClassifier(estimator(kind), measure, cv=5),
        }
        sides["scoreline"].fit(X_train[small], y_train[small])  # compiled
        for title in sides if split % 2 else reversed(sides):
            begin = time.perf_counter()
            clf = sides[title].fit(X_train, y_train)
            seconds = time.perf_counter() - begin
            value = get_measure(measure).value(
                np.where(y_test > 0, 1, -1), np.where(clf.predict(X_test) > 0, 1.0, -1.0)
            )
            found[f"{measure}, {title}"] = [float(value), seconds]
    return found


def threshold_table(found, sets):
    """Return the lines of the table of differences to TunedThresholdClassifierCV."""
    lines = [
        "| set | model | measure | splits | scikit-learn | difference | times faster |",
        "|---|---|---|---|---|---|---|",
    ]
    means, ratios = {}, {}
    for kind in sorted({each["cell"][1] for each in found}):
        for name in sets:
            own = [each["found"] for each in found if each["cell"][:2] == [name, kind] and each["found"]]
            if len(own) < 2:
                continue
            for measure in MEASURES:
                theirs, ours = (
                    np.array([each[f"{measure}, {title}"] for each in own]) for title in ("scikit-learn", "scoreline")
                )
                gains = ours[:, 0] - theirs[:, 0]
                faster = float(np.exp(np.mean(np.log(theirs[:, 1] / ours[:, 1]))))
                means.setdefault((kind, measure), []).append(gains.mean())
                ratios.setdefault((kind, measure), []).append(faster)
                lines.append(
                    f"| {name} | {kind} | {measure} | {len(own)} | {theirs[:, 0].mean():.4f} | {gains.mean():+.4f} ± "
                    f"{1.96 * gains.std(ddof=1) / np.sqrt(len(own)):.4f} | {faster:.2f} |"
                )
    lines.append("")
    rng = np.random.default_rng(0)
    for (kind, measure), values in means.items():
        gains = np.array(values)
        drawn = gains[rng.integers(len(gains), size=(10_000, len(gains)))].mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        faster = np.exp(np.mean(np.log(ratios[kind, measure])))
        lines.append(
            f"- {kind}, {measure}: mean difference {gains.mean():+.4f}, 95 % interval over {len(gains)} sets {low:+.4f} to "
            f"{high:+.4f}; {faster:.2f} times faster."
        )
    return lines


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", default=None)
    parser.add_argument("--thresholds", action="store_true", help="compare ThresholdClassifier")
    parser.add_argument("--model", choices=("logistic", "lightgbm"), default="logistic")
    parser.add_argument("--methods", default=",".join(METHODS), help="of promises, such as guarantee,MAPIE")
    parser.add_argument("--table", type=Path, default=None, help="write the table to this file")
    cells.add_options(parser, "promises")
    options = parser.parse_args()
    METHODS[:] = options.methods.split(",")
    sets = options.sets.split(",") if options.sets else list(THRESHOLD_SETS if options.thresholds else CASES)
    if options.thresholds:
        wanted = [[name, options.model, split] for split in range(options.splits) for name in sets]
        found = cells.run(options, wanted, thresholds, load, sets)
        lines, title = threshold_table(found, sets), "# ThresholdClassifier less TunedThresholdClassifierCV"
    else:
        wanted = [[name, split] for split in range(options.splits) for name in reversed(sets)]
        found = cells.run(options, wanted, promises, load, sorted({data_of(name) for name in sets}))
        lines, title = promise_table(found, sets), "# Promises at level 0.95"
    text = [
        title, "", "`python benchmarks/promises.py" + (" --thresholds" if options.thresholds else "") + "`", "",
        *(f"- {key}: {value}" for key, value in header().items()),
        *(f"- {each['cell']}: {each['error']}" for each in found if "error" in each), "", *lines,
    ]  # fmt: skip
    print("\n".join(text))
    if options.table:
        options.table.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
