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
from scoreline.report.facts import Facts, describe
from scoreline.report.page import PageContent, write_page
from scoreline.report.plots import plot_alpha_path, plot_convergence, plot_score_distributions

__all__ = [
    "ConvergenceDisplay",
    "Facts",
    "PageContent",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistributionDisplay",
    "ThresholdDisplay",
    "WeightsDisplay",
    "describe",
    "plot_alpha_path",
    "plot_convergence",
    "plot_score_distributions",
    "write_page",
]
