"""scoreline, with all options but the tolerance at their defaults."""

from importlib import import_module

from benchmark_utils.adapter import AdapterSolver

import_module("scoreline")  # benchopt takes an ImportError as "not installed"


class Solver(AdapterSolver):
    """Efforts are tolerances of the certified relative gap."""

    name = "scoreline"
    requirements = ["pip::scoreline"]
    adapters = {
        "default": "scoreline",
        "squared-pairs": "scoreline squared pairs",
        "logistic": "scoreline logistic",
    }
    parameters = {"variant": ["default"]}
