"""Choosing alpha, risk, method or threshold on held-out rows: `MeasureClassifierCV`, `ThresholdClassifier`, `compare`.

This room may use the classifier and everything below it; only the report and the command line use this room.
"""

from scoreline.model_selection.blend import Blend
from scoreline.model_selection.search import MeasureClassifierCV
from scoreline.model_selection.threshold_classifier import ThresholdClassifier
from scoreline.model_selection.trials import Comparison, Contender, compare

__all__ = ["Blend", "Comparison", "Contender", "MeasureClassifierCV", "ThresholdClassifier", "compare"]
