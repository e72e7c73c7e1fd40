"""glum's generalised linear model with the binomial family: logistic regression by iteratively reweighted least squares."""

from typing import Any

import numpy as np

from rivals.base import Linear, Rival


class Glum(Rival):
    """alpha is alpha; efforts are tolerances of the gradient, the default is 1e-4."""

    name, package, module = "glum logistic", "glum", "glum"
    efforts = (1e-2, 1e-3, 1e-4)
    default = 1e-4

    def refuses(self, rows: int, features: int) -> str | None:
        """Refuse wide data: it makes a dense matrix of features by features."""
        return "more than 2000 features" if features > 2000 else None

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Return columns, and labels 0 and 1."""
        return X.tocsc(), (y > 0).astype(float)

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Minimise the logistic loss, the intercept free of penalty."""
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            family="binomial", alpha=alpha, l1_ratio=0.0, gradient_tol=effort, max_iter=1000
        )
        model.fit(*data)
        return Linear(np.asarray(model.coef_, dtype=float), float(model.intercept_))


RIVALS = (Glum(),)
