"""The models of scikit-learn that `compare` trains as rivals: three kinds of logistic regression, and boosted trees."""

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from scoreline.measures import Measure, best_threshold, get_scorer
from scoreline.operators import as_operator
from scoreline.operators.column_maps import KINDS, ColumnMap
from scoreline.runtime.checks import check_choice
from scoreline.runtime.types import AnyArray, FloatArray

PLAIN, BALANCED, TUNED = "logistic regression", "logistic regression, balanced", "logistic regression, tuned threshold"
BOOSTED = "boosted trees"
TREE_TITLES = {
    BOOSTED: "Boosted trees (HistGradientBoosting)",
    "lightgbm": "Boosted trees (LightGBM)",
    "xgboost": "Boosted trees (XGBoost)",
    "ebm": "Boosted bins (EBM)",
}
RIVALS = {  # package and class
    "lightgbm": ("lightgbm", "LGBMClassifier", {"verbose": -1}),
    "xgboost": ("xgboost", "XGBClassifier", {}),
    "ebm": ("interpret.glassbox", "ExplainableBoostingClassifier", {}),
}
SINGLE_THREAD_VALUES = 2_000_000  # below, several threads of BLAS and OpenMP cost more time than they save
MOST_TREE_VALUES = 20_000_000  # rows times features; a fit of boosted trees takes about ten seconds there
MOST_SPARSE_TREE_FEATURES = 1000


def baseline_names(measure: Measure) -> list[str]:
    """Return the linear baselines; a threshold is tuned only for measures that depend on it."""
    return [PLAIN, BALANCED] if measure.uses_order else [PLAIN, BALANCED, TUNED]


def check_rival(name: str) -> None:
    """Raise unless this is a rival whose package is installed."""
    check_choice("rivals", name, tuple(RIVALS))
    package = RIVALS[name][0].partition(".")[0]
    if importlib.util.find_spec(package) is None:
        wanted = "interpret-core" if name == "ebm" else package
        raise ValueError(
            f"the rival {name!r} needs {wanted}, which is not installed. Install it with: pip install {wanted}"
        )


def reason_without_trees(X: Any) -> str | None:
    """Return why boosted trees are left out, or None where they can be trained."""
    n, p = X.shape
    if sp.issparse(X) and p > MOST_SPARSE_TREE_FEATURES:
        return (
            f"they need dense data, and there are {p:,} sparse features (at most {MOST_SPARSE_TREE_FEATURES:,} are "
            "converted)"
        )
    if n * p > MOST_TREE_VALUES:
        return (
            f"{n:,} rows of {p:,} features would take too long; a sample of at most max_rows={MOST_TREE_VALUES // p} rows "
            "includes them"
        )
    return None


class MappedScaler(TransformerMixin, BaseEstimator):
    """The scaling of MeasureClassifier for heavy tails, "robust" or "quantile", as a step of a pipeline."""

    def __init__(self, scaling: str):
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None) -> "MappedScaler":
        """Learn the knots of the columns, and the scale of their mapped values."""
        from sklearn.preprocessing import MaxAbsScaler, StandardScaler

        self.column_map_ = ColumnMap.learn(as_operator(X), self.scaling)
        self.scaler_ = MaxAbsScaler() if sp.issparse(X) else StandardScaler()
        self.scaler_.fit(self.column_map_.transform(X))
        return self

    def transform(self, X: Any) -> Any:
        """Return the mapped and scaled rows."""
        return self.scaler_.transform(self.column_map_.transform(X))


def scaler_for(scaling: str | None) -> Any:
    """Return the scaler, or what a pipeline takes for none."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if scaling in KINDS:
        return MappedScaler(scaling)
    return {"standard": StandardScaler, "maxabs": MaxAbsScaler, None: lambda: "passthrough"}[scaling]()


def penalty_decisions(
    X: Any, y: AnyArray, held: Any, alphas: Sequence[float], scaling: str | None, balanced: bool
) -> list[FloatArray]:
    """Return the decision values of held-out rows by logistic regression, for each alpha in the order given.

    Fits go from the strongest penalty to the weakest, each from the coefficients of the one before.
    """
    from sklearn.linear_model import LogisticRegression

    scaler = scaler_for(scaling)
    if scaler != "passthrough":
        X, held = scaler.fit_transform(X), scaler.transform(held)
    model = LogisticRegression(max_iter=1000, warm_start=True, class_weight="balanced" if balanced else None)
    found = {}
    for alpha in sorted(alphas, reverse=True):
        model.set_params(C=1.0 / (len(y) * alpha)).fit(X, y)
        found[alpha] = np.asarray(model.decision_function(held), dtype=np.float64)
    return [found[alpha] for alpha in alphas]


def mean_values(
    name: str, measure: Measure, alphas: Sequence[float], truths: list[AnyArray], decisions: list[list[FloatArray]]
) -> dict[float, float]:
    """Return the mean measure over the folds of each alpha.

    `decisions` are those of the held-out rows, by fold and alpha. Where the threshold will be tuned, the held-out rows of the
    other folds give it.
    """
    means = {}
    for k, alpha in enumerate(alphas):
        values = []
        for fold, truth in enumerate(truths):
            scores = decisions[fold][k]
            if name == TUNED:
                others = [other for other in range(len(truths)) if other != fold] or [fold]
                labels = np.concatenate([truths[other] for other in others])
                held_out = np.concatenate([decisions[other][k] for other in others])
                scores = scores - best_threshold(labels, held_out, measure).threshold
            values.append(measure.value(truth, scores))
        means[float(alpha)] = float(np.mean(values))
    return means


def baseline_model(
    name: str, measure: Measure, alpha: float | None, scaling: str | None, n: int, random_state: int
) -> Any:
    """Return the unfitted model for n training rows. Boosted trees have no alpha and need no scaling."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import TunedThresholdClassifierCV
    from sklearn.pipeline import make_pipeline

    model: Any
    if name in RIVALS:
        module, class_name, options = RIVALS[name]
        model = getattr(importlib.import_module(module), class_name)(random_state=random_state, **options)
    elif alpha is None:
        model = HistGradientBoostingClassifier(random_state=random_state)
    else:
        weight = "balanced" if name == BALANCED else None
        model = make_pipeline(
            scaler_for(scaling), LogisticRegression(C=1.0 / (n * alpha), max_iter=1000, class_weight=weight)
        )
    tuned = name == TUNED or (name in TREE_TITLES and not measure.uses_order)
    return TunedThresholdClassifierCV(model, scoring=get_scorer(measure), cv=5) if tuned else model


def decision_values(model: Any, X: Any) -> FloatArray:
    """Return decision values that are positive where the model predicts the positive class."""
    from sklearn.model_selection import TunedThresholdClassifierCV

    if isinstance(model, TunedThresholdClassifierCV):  # it tunes a threshold of probabilities
        threshold = float(np.clip(model.best_threshold_, 1e-300, 1.0 - 1e-16))
        scores = _scores(model.estimator_, X)
        return scores - float(np.log(threshold) - np.log1p(-threshold))
    return _scores(model, X)


def _scores(model: Any, X: Any) -> FloatArray:
    """Return decision values; of a model that has probabilities only, their log odds."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64).ravel()
    share = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1], 1e-300, 1.0 - 1e-16)
    return np.asarray(np.log(share) - np.log1p(-share))


@contextmanager
def suitable_threads(X: Any) -> Iterator[None]:
    """Give BLAS and OpenMP one thread for small data.

    On a busy machine with two cores, boosted trees took 3.5 s for 400 rows with two threads, and 0.2 s with one.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    small = (X.nnz if sp.issparse(X) else X.size) < SINGLE_THREAD_VALUES
    with threadpool_limits(1 if small else None):
        yield
