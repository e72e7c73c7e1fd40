"""dlib's ranking support vector machine."""

from importlib import import_module

from benchmark_utils.adapter import AdapterSolver

import_module("dlib")  # benchopt takes an ImportError as "not installed"


class Solver(AdapterSolver):
    """Efforts are its epsilons; it is for ranking measures only."""

    name = "dlib"
    requirements = ["pip::dlib-bin"]
    adapters = {
        "rank": "dlib rank",
    }
    parameters = {"variant": ["rank"]}
