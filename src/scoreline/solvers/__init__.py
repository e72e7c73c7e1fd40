"""Solvers: one algorithm per file, found by `registry`. Loop, clock, stopping and history are in `common`."""

from scoreline.solvers.accelerated import AcceleratedSolver
from scoreline.solvers.amp import AmpSolver
from scoreline.solvers.bundle import BundleSolver
from scoreline.solvers.bundle_ls import BundleLineSearchSolver
from scoreline.solvers.bundle_ocas import BundleOcasSolver
from scoreline.solvers.common.base import Result, Solver
from scoreline.solvers.common.checkpoint import Checkpoint
from scoreline.solvers.common.early_stopping import EarlyStopping
from scoreline.solvers.common.loop import Progress
from scoreline.solvers.common.method import Method
from scoreline.solvers.cost_search import CostSearchSolver
from scoreline.solvers.excessive_gap import ExcessiveGapSolver
from scoreline.solvers.hybrid import HybridSolver
from scoreline.solvers.lbfgs import LbfgsSolver
from scoreline.solvers.moments import MomentsSolver
from scoreline.solvers.newton import NewtonSolver
from scoreline.solvers.plugin import PluginSolver
from scoreline.solvers.proximal import ProximalSolver
from scoreline.solvers.smoothed import SmoothedSolver
from scoreline.solvers.spade import SpadeSolver
from scoreline.solvers.stamp import StampSolver

__all__ = [
    "AcceleratedSolver",
    "AmpSolver",
    "BundleLineSearchSolver",
    "BundleOcasSolver",
    "BundleSolver",
    "Checkpoint",
    "CostSearchSolver",
    "EarlyStopping",
    "ExcessiveGapSolver",
    "HybridSolver",
    "LbfgsSolver",
    "Method",
    "MomentsSolver",
    "NewtonSolver",
    "PluginSolver",
    "Progress",
    "ProximalSolver",
    "Result",
    "SmoothedSolver",
    "Solver",
    "SpadeSolver",
    "StampSolver",
]
