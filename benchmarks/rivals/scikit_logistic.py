"""scikit-learn's LogisticRegression with each of its solvers."""

from typing import Any

from rivals.base import Linear, Rival

SOLVERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


class Logistic(Rival):
    """C = 1 / (n alpha); efforts are tolerances, the default is 1e-4."""

    package, module = "scikit-learn", "sklearn"
    efforts = (1e-1, 1e-2, 1e-3, 1e-4)
    default = 1e-4

    def __init__(self, solver: str):
        self.name, self.solver = f"LogisticRegression {solver}", solver

    def refuses(self, rows: int, features: int) -> str | None:
        """Refuse wide data for the one solver that makes a dense matrix of features by features."""
        return "more than 2000 features" if self.solver == "newton-cholesky" and features > 2000 else None

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Minimise the logistic loss, the intercept free of penalty (liblinear: a constant feature of 100)."""
        from sklearn.linear_model import LogisticRegression

        X, y = data
        options = {"C": 1.0 / (len(y) * alpha), "tol": effort, "max_iter": 10_000, "random_state": 0}
        if self.solver == "liblinear":
            options["intercept_scaling"] = 100.0
        model = LogisticRegression(solver=self.solver, **options).fit(X, y)
        return Linear(model.coef_[0], float(model.intercept_[0]))


RIVALS = tuple(Logistic(solver) for solver in SOLVERS)
