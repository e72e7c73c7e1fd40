"""Measures: functions of the ranking or of the confusion counts, their scorers, and the best threshold for each."""

from scoreline.measures.averages import class_average
from scoreline.measures.base import CountsBasedMeasure, Measure, RankingMeasure
from scoreline.measures.counts import CountMeasure
from scoreline.measures.intervals import Difference, Interval, compare_scores, interval
from scoreline.measures.operating_points import (
    OperatingPoint,
    PrecisionAtRecall,
    RecallAtAlarms,
    RecallAtCost,
    RecallAtPrecision,
    TprAtFpr,
)
from scoreline.measures.promises import Promise, PromiseCheck, PromisedThreshold, check_counts, promised_threshold
from scoreline.measures.ranking import AtKMeasure
from scoreline.measures.registry import all_measures, get_measure
from scoreline.measures.row_costs import row_costs
from scoreline.measures.scorer import get_scorer
from scoreline.measures.thresholds import TunedThreshold, best_threshold, robust_threshold

__all__ = [
    "AtKMeasure",
    "CountMeasure",
    "CountsBasedMeasure",
    "Difference",
    "Interval",
    "Measure",
    "OperatingPoint",
    "PrecisionAtRecall",
    "Promise",
    "PromiseCheck",
    "PromisedThreshold",
    "RankingMeasure",
    "RecallAtAlarms",
    "RecallAtCost",
    "RecallAtPrecision",
    "TprAtFpr",
    "TunedThreshold",
    "all_measures",
    "best_threshold",
    "check_counts",
    "class_average",
    "compare_scores",
    "get_measure",
    "get_scorer",
    "interval",
    "promised_threshold",
    "robust_threshold",
    "row_costs",
]
