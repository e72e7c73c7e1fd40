"""scikit-learn's TunedThresholdClassifierCV around LogisticRegression: the strong simple method for counts."""

from typing import Any

from rivals.base import COUNTS, Linear, Rival


class TunedThreshold(Rival):
    """Five folds choose the threshold by the measure; efforts are tolerances of the logistic regression."""

    name, package, module, aware = "LogisticRegression, tuned threshold", "scikit-learn", "sklearn", True
    efforts = (1e-1, 1e-2, 1e-4)
    default = 1e-4
    measures = COUNTS

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Fit six times, and take the threshold off the intercept."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import TunedThresholdClassifierCV

        from scoreline.measures import get_scorer

        X, y = data
        inner = LogisticRegression(C=1.0 / (len(y) * alpha), tol=effort, max_iter=10_000)
        model = TunedThresholdClassifierCV(inner, scoring=get_scorer(measure), response_method="decision_function")
        model.fit(X, y)
        fitted = model.estimator_
        return Linear(fitted.coef_[0], float(fitted.intercept_[0] - model.best_threshold_), threshold=True)


RIVALS = (TunedThreshold(),)
