"""A strong baseline: logistic regression, then the best threshold."""

from scoreline.risks.base import Risk
from scoreline.solvers.newton import NewtonSolver


class PluginSolver(NewtonSolver):
    """Logistic regression by Newton's method or L-BFGS, certified; the threshold is then tuned for the measure.

    The scores estimate log-odds, and for count measures some threshold of the true log-odds is optimal, so plugging in the
    estimate is the natural rival of every direct method.
    """

    name = "plugin"
    automatic = "never"

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        """Tell whether the risk is the logistic one."""
        return bool(risk.name == "logistic")
