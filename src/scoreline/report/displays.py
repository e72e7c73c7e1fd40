"""Figures in scikit-learn's manner: a class holds the arrays, `plot` draws them on axes."""

from scoreline.report.convergence_display import ConvergenceDisplay
from scoreline.report.ranking_displays import PrecisionRecallDisplay, RocDisplay
from scoreline.report.score_displays import ReliabilityDisplay, ScoreDistributionDisplay
from scoreline.report.threshold_display import ThresholdDisplay
from scoreline.report.weights_display import WeightsDisplay

__all__ = [
    "ConvergenceDisplay",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistributionDisplay",
    "ThresholdDisplay",
    "WeightsDisplay",
]
