"""Corners that were slow, each beside its rival in the same run: processor time, one thread, and the measure on test rows.

search: `MeasureClassifierCV` for F1 and G-mean against LogisticRegressionCV with as many alphas and folds, standardised.
text: `MeasureClassifier("f1")` with p > n against LogisticRegression + TunedThresholdClassifierCV with the same penalty.
prbep: PRBEP on breast cancer, 569 rows that are nearly separable, against cutting planes and LogisticRegression.
rows: products of CSR with a quarter of its rows and statistics of columns, against the product with all rows.

    SCORELINE_DATA=folder OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/corners.py --parts search,text,prbep,rows
"""

import argparse
import json
import logging
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from defaults import read, split_rows
from kernel_storages import compressed, dense
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.measures import get_measure
from scoreline.runtime import parallel

SETS = "letter,page-blocks0,magic04,ijcnn1,cod-rna,satimage,shuttle,svmguide1,annthyroid"
TEXT = "reuters-mfx,hiva,sector"
ALPHA = 1e-4
REPEATS = 15


def fitted(model, X, y):
    """Return the processor seconds of a fit."""
    begin = time.process_time()
    model.fit(X, y)
    return time.process_time() - begin


def shortest(call):
    """Return the least processor time of some calls, in milliseconds."""
    call()
    seconds = []
    for _ in range(REPEATS):
        begin = time.process_time()
        call()
        seconds.append(time.process_time() - begin)
    return round(1e3 * min(seconds), 2)


def measured(measure, model, X, y):
    return round(float(get_measure(measure).value(y, model.decision_function(X))), 4)


def search(options):
    for measure in ("f1", "gmean"):
        ours = MeasureClassifierCV(measure, scaling="standard", n_jobs=1, random_state=0)
        scoring = "f1" if measure == "f1" else "balanced_accuracy"  # scikit-learn has no G-mean
        rival = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=13, cv=5, scoring=scoring, max_iter=1000))
        ratios = []
        for name in options.sets.split(","):
            X, y = read(name, options.rows + 10_000)
            X, y, X_test, y_test = split_rows(X, y, 0, options.rows)
            ours.fit(X[::9], y[::9])  # compiles
            seconds, others = fitted(ours, X, y), fitted(rival, X, y)
            ratios.append(seconds / others)
            found = {
                "set": name,
                "rows": len(y),
                "measure": measure,
                "solver": ours.solver_,
                "seconds": round(seconds, 3),
            }
            values = {
                "test": measured(measure, ours, X_test, y_test),
                "rival": measured(measure, rival, X_test, y_test),
            }
            print(json.dumps(found | values | {"times the rival": round(seconds / others, 2)}), flush=True)
        print(f"{measure}: {np.exp(np.mean(np.log(ratios))):.2f} times LogisticRegressionCV", flush=True)


def text(options):
    for name in TEXT.split(","):
        X, y = read(name, 10**9)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
        ours = MeasureClassifier("f1", alpha=ALPHA, n_jobs=1, random_state=0)
        rival = LogisticRegression(C=1.0 / (len(y) * ALPHA), max_iter=1000)
        rival = TunedThresholdClassifierCV(rival, scoring="f1", cv=5)
        ours.fit(X[::9], y[::9])
        seconds, others = fitted(ours, X, y), fitted(rival, X, y)
        wrong = (rival.predict(X_test) == 1) != (y_test == 1)
        missed, false = int((wrong & (y_test == 1)).sum()), int((wrong & (y_test == 0)).sum())
        hits = int((y_test == 1).sum()) - missed
        found = {"set": name, "rows": len(y), "columns": X.shape[1], "seconds": round(seconds, 3)}
        values = {
            "test": measured("f1", ours, X_test, y_test),
            "rival": round(2 * hits / (2 * hits + missed + false), 4),
        }
        print(json.dumps(found | values | {"times faster": round(others / seconds, 1)}), flush=True)


def prbep(options):
    X, y = load_breast_cancer(return_X_y=True)
    for scaling in (None, "standard"):
        scaled = X if scaling is None else StandardScaler().fit_transform(X)
        sides = {
            "prbep": MeasureClassifier("prbep", scaling=scaling, n_jobs=1),
            "prbep by cutting planes": MeasureClassifier("prbep", solver="bundle_ocas", scaling=scaling, n_jobs=1),
            "LogisticRegression": LogisticRegression(C=1.0 / (len(y) * ALPHA), max_iter=10_000),
        }
        for name, model in sides.items():
            rows = scaled if name == "LogisticRegression" else X
            found = shortest(lambda model=model, rows=rows: model.fit(rows, y))
            print(json.dumps({"scaling": scaling, "fit": name, "ms": found}), flush=True)


def rows(options):
    rng, n = np.random.default_rng(0), 200_000
    with parallel.thread_limit(1):
        for form in ("CSR", "CSC"):
            operator = compressed(n, form).operator
            listed = np.sort(rng.choice(n, n // 4, replace=False))
            w, u, part = (rng.standard_normal(k) for k in (operator.shape[1], n, n // 4))
            calls = {
                "Xw": lambda: operator.matvec(w),
                "X'u": lambda: operator.rmatvec(u),
                "Xw on a quarter": lambda: operator.matvec_rows(w, listed),
                "X'u on a quarter": lambda: operator.rmatvec_rows(part, listed),
                "statistics": lambda: operator.column_statistics(),
            }
            print(form, json.dumps({name: shortest(call) for name, call in calls.items()}), flush=True)
        for order in "CF":
            operator = dense(n, order).operator
            found = {"Xw": shortest(lambda: operator.matvec(np.ones(operator.shape[1])))}
            print(order, json.dumps(found | {"statistics": shortest(lambda: operator.column_statistics())}), flush=True)


def main():
    parts = {"search": search, "text": text, "prbep": prbep, "rows": rows}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(parts))
    parser.add_argument("--sets", default=SETS, help="of the search")
    parser.add_argument("--rows", type=int, default=3_000, help="of the search, for training")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for part in options.parts.split(","):
        parts[part](options)


if __name__ == "__main__":
    main()
