"""Pictures of a fit and a page about a model; matplotlib is imported when one is drawn."""

from scoreline.report.displays import (
    ConvergenceDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdDisplay,
    WeightsDisplay,
)
from scoreline.report.page import PageContent, write_page
from scoreline.report.plots import plot_convergence, plot_score_distributions

__all__ = [
    "ConvergenceDisplay",
    "PageContent",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistributionDisplay",
    "ThresholdDisplay",
    "WeightsDisplay",
    "plot_convergence",
    "plot_score_distributions",
    "write_page",
]
