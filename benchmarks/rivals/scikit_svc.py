"""scikit-learn's LinearSVC with the squared hinge, which is LIBLINEAR's dual or primal solver."""

from typing import Any

from rivals.base import Linear, Rival


class Svc(Rival):
    """C = 1 / (2 n alpha) for the squared hinge with its factor 1/2; efforts are tolerances, the default is 1e-4."""

    name, package, module = "LinearSVC", "scikit-learn", "sklearn"
    efforts = (1e-1, 1e-2, 1e-3, 1e-4)
    default = 1e-4

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Minimise the squared hinge."""
        from sklearn.svm import LinearSVC

        X, y = data
        model = LinearSVC(
            C=0.5 / (len(y) * alpha), tol=effort, intercept_scaling=100.0, dual="auto", max_iter=2000, random_state=0
        )
        model.fit(X, y)
        return Linear(model.coef_[0], float(model.intercept_[0]))


RIVALS = (Svc(),)
