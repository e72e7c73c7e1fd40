"""What is reported: functions of the ranking or of the confusion counts, their scorers, and the best cut for each."""

from scoreline.measures.averages import class_average
from scoreline.measures.base import CountsBasedMeasure, Measure, RankingMeasure
from scoreline.measures.counts import CountMeasure
from scoreline.measures.cut import Cut, best_cut, steady_cut
from scoreline.measures.operating_points import OperatingPoint
from scoreline.measures.ranking import AtKMeasure
from scoreline.measures.registry import all_measures, get_measure
from scoreline.measures.scorer import get_scorer

__all__ = [
    "AtKMeasure",
    "CountMeasure",
    "CountsBasedMeasure",
    "Cut",
    "Measure",
    "OperatingPoint",
    "RankingMeasure",
    "all_measures",
    "best_cut",
    "class_average",
    "get_measure",
    "get_scorer",
    "steady_cut",
]
