"""Choosing alpha, risk and method on held-out rows: `MeasureClassifierCV`, and the trials behind `scoreline compare`.

This room may use the classifier and everything below it; only the report and the command line use this room.
"""

from scoreline.model_selection.search import MeasureClassifierCV
from scoreline.model_selection.trials import Comparison, Contender, compare

__all__ = ["Comparison", "Contender", "MeasureClassifierCV", "compare"]
