"""Displays of a model and its scores, facts about data, and the HTML page about a model.

This package reads fitted classifiers and decision values, not files of data. It imports matplotlib when it draws a figure.
"""

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
from scoreline.report.shape_display import ShapeDisplay

__all__ = [
    "ConvergenceDisplay",
    "Facts",
    "GapDisplay",
    "PageContent",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistributionDisplay",
    "ShapeDisplay",
    "ThresholdDisplay",
    "WeightsDisplay",
    "describe",
    "plot_alpha_path",
    "write_page",
]
