"""scikit-learn estimators: they choose risk and solver by name and hold nothing numerical."""

from scoreline.estimators.catalog import list_measures, list_solvers
from scoreline.estimators.classifier import MeasureClassifier
from scoreline.estimators.persist import load_model
from scoreline.estimators.search import MeasureClassifierCV

__all__ = ["MeasureClassifier", "MeasureClassifierCV", "list_measures", "list_solvers", "load_model"]
