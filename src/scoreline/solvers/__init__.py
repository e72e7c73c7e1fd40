"""How it is minimised: one algorithm a file, found by `registry`; loop, clock, stopping and history are in `base`."""

from scoreline.solvers.base import Progress, Result, Solver
from scoreline.solvers.lbfgs import LbfgsSolver
from scoreline.solvers.smoothed import SmoothedSolver

__all__ = ["LbfgsSolver", "Progress", "Result", "SmoothedSolver", "Solver"]
