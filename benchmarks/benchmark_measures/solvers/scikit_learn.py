"""scikit-learn: logistic regression, LinearSVC, and a tuned threshold."""

from importlib import import_module

from benchmark_utils.adapter import AdapterSolver

import_module("sklearn")  # benchopt takes an ImportError as "not installed"


class Solver(AdapterSolver):
    """Efforts are tolerances."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    adapters = {
        "lbfgs": "LogisticRegression lbfgs",
        "newton-cholesky": "LogisticRegression newton-cholesky",
        "linear-svc": "LinearSVC",
        "tuned-threshold": "LogisticRegression, tuned threshold",
    }
    parameters = {"variant": ["lbfgs", "linear-svc", "tuned-threshold"]}
