"""Small fits of every solver and every measure, to be interrupted and limited."""

import numpy as np

from scoreline import MeasureClassifier
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.measures.registry import all_measures, get_measure
from scoreline.solvers.registry import all_solvers
from tiers import TIER

PARAMS = {
    "precision_at_k": {"k": 20}, "recall_at_k": {"k": 20}, "recall_at_precision": {"precision": 0.6},
    "precision_at_recall": {"recall": 0.6}, "tpr_at_fpr": {"fpr": 0.2},
    "partial_roc_auc": {"max_fpr": 0.3}, "fbeta": {"beta": 2.0},
}  # fmt: skip


def rows(n=300, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, (X @ np.arange(1.0, p + 1.0) + 3.0 * rng.standard_normal(n) > 3.0).astype(int)


def trains(measure, solver):
    """Tell whether a solver trains for a measure."""
    try:
        plan(Request(solver=solver), get_measure(measure, PARAMS.get(measure)), Shape(1000, 3))
        return True
    except ValueError:
        return False


MEASURES = sorted(all_measures())
# Every measure as users train it, and every solver for the first measure that it trains for.
CASES = [(measure, "auto") for measure in MEASURES] + [
    (next(m for m in ("roc_auc", "accuracy", "f1", "qmean", *MEASURES) if trains(m, name)), name)
    for name in sorted(all_solvers())
]


SOME = CASES[:: 6 if TIER == "quick" else 1]


def classifier(case, **options):
    """Return the classifier of a case, which takes a while: a tight proof."""
    measure, solver = case
    defaults = {"tol": 1e-5, "max_iter": 300, "alpha": 1e-3, "random_state": 0}
    return MeasureClassifier(measure, PARAMS.get(measure), solver=solver, **defaults | options)
