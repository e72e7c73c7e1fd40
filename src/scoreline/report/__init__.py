"""Displays of a fit and of its scores, facts about data, and a page about a model; matplotlib is imported when one is drawn."""

from scoreline.report.facts import Facts, describe
from scoreline.report.model_displays import ConvergenceDisplay, GapDisplay, WeightsDisplay, plot_alpha_path
from scoreline.report.page import PageContent, write_page
from scoreline.report.score_displays import (
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdDisplay,
)

__all__ = [
    "ConvergenceDisplay",
    "Facts",
    "GapDisplay",
    "PageContent",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistributionDisplay",
    "ThresholdDisplay",
    "WeightsDisplay",
    "describe",
    "plot_alpha_path",
    "write_page",
]
