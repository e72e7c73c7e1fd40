"""LIBLINEAR by its own Python package."""

from importlib import import_module

from benchmark_utils.adapter import AdapterSolver

import_module("liblinear")  # benchopt takes an ImportError as "not installed"


class Solver(AdapterSolver):
    """Efforts are values of its option -e."""

    name = "LIBLINEAR"
    requirements = ["pip::liblinear-official"]
    adapters = {
        "logistic-primal": "LIBLINEAR logistic, primal",
        "squared-hinge-primal": "LIBLINEAR squared hinge, primal",
        "squared-hinge-dual": "LIBLINEAR squared hinge, dual",
    }
    parameters = {"variant": ["logistic-primal", "squared-hinge-primal", "squared-hinge-dual"]}
