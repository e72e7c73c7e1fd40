"""scoreline: linear classifiers trained for the score you report, with a proof of optimality."""

from scoreline.classifier import MeasureClassifier, load_model
from scoreline.fitting.catalog import list_measures, list_solvers
from scoreline.fitting.promise import check_promise
from scoreline.measures import CountMeasure
from scoreline.model_selection import Blend, MeasureClassifierCV, ThresholdClassifier

__version__ = "0.1.0"

__all__ = [
    "Blend",
    "CountMeasure",
    "MeasureClassifier",
    "MeasureClassifierCV",
    "ThresholdClassifier",
    "__version__",
    "check_promise",
    "list_measures",
    "list_solvers",
    "load_model",
]
