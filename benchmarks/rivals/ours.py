"""scoreline itself: the default for the measure, the squared pairs of liblinear-ranksvm, and plain logistic regression."""

from typing import Any

from rivals.base import MEASURES, Linear, Rival


class Ours(Rival):
    """MeasureClassifier; efforts are tolerances of the duality gap."""

    package, module, aware = "scoreline", "scoreline", True
    efforts = (0.5, 0.1, 0.01, 0.001)
    default = 0.01

    def __init__(self, name: str, risk: str = "auto", measures: tuple[str, ...] = MEASURES):
        self.name, self.risk, self.measures = name, risk, measures

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Fit with all else at its default: the intercept has no penalty, as that of most rivals."""
        from scoreline import MeasureClassifier

        model = MeasureClassifier(measure, risk=self.risk, alpha=alpha, tol=effort, max_iter=100_000, random_state=0)
        model.fit(*data)
        return Linear(model.coef_.ravel(), float(model.intercept_[0]), threshold=True)


RIVALS = (
    Ours("scoreline"),
    Ours("scoreline squared pairs", "roc_area_squared", ("roc_auc",)),
    Ours("scoreline logistic", "logistic"),
)
