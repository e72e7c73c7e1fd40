"""Snap ML's logistic regression and support vector machine, by coordinate descent."""

from typing import Any

from rivals.base import Linear, Rival


class Snap(Rival):
    """regularizer = n alpha; efforts are tolerances, the default is 1e-3."""

    package, module = "snapml", "snapml"
    efforts = (1e-1, 1e-2, 1e-3, 1e-4)
    default = 1e-3

    def __init__(self, kind: str):
        self.name, self.kind = f"snapml {kind}", kind

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Fit with an intercept as a constant feature of 100."""
        import snapml

        X, y = data
        options = {
            "regularizer": len(y) * alpha,
            "tol": effort,
            "fit_intercept": True,
            "intercept_scaling": 100.0,
            "random_state": 0,
        }
        kind = snapml.LogisticRegression if self.kind == "logistic" else snapml.SupportVectorMachine
        model = kind(**options).fit(X, y)
        intercept = model.intercept_ if self.kind == "logistic" else getattr(model, "intercept_", 0.0)
        return Linear(model.coef_.ravel(), float(intercept[0] if hasattr(intercept, "__len__") else intercept))


RIVALS = (Snap("logistic"), Snap("hinge"))
