"""scoreline: linear classifiers trained for the score you report, with a proof of optimality."""

from scoreline.estimators import MeasureClassifier, MeasureClassifierCV, list_measures, list_solvers, load_model
from scoreline.measures import CountMeasure

__version__ = "0.1.0"

__all__ = [
    "CountMeasure",
    "MeasureClassifier",
    "MeasureClassifierCV",
    "__version__",
    "list_measures",
    "list_solvers",
    "load_model",
]
