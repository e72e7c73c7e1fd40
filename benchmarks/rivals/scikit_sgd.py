"""scikit-learn's SGDClassifier, averaged."""

from typing import Any

from rivals.base import Linear, Rival


class Sgd(Rival):
    """alpha is alpha; efforts are passes."""

    package, module = "scikit-learn", "sklearn"
    efforts = (1, 5, 20, 50)
    default = 20

    def __init__(self, loss: str):
        self.name, self.loss = f"SGDClassifier {loss}", loss

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Take `effort` passes, with the mean of the iterates."""
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(loss=self.loss, alpha=alpha, max_iter=effort, tol=None, average=True, random_state=0)
        model.fit(*data)
        return Linear(model.coef_[0], float(model.intercept_[0]))


RIVALS = (Sgd("log_loss"), Sgd("hinge"))
