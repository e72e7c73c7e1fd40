"""Contract checks for new operators, risks and solvers: call them from a test, they raise AssertionError."""

from scoreline.testing.operators import check_operator
from scoreline.testing.risks import check_risk
from scoreline.testing.solvers import check_solver

__all__ = ["check_operator", "check_risk", "check_solver"]
