"""How far new rows are from those that a model was trained on: the drift of columns and of scores.

The room knows tables and scores, and never labels.
"""

from scoreline.monitoring.reference import Drift, Reference
from scoreline.monitoring.stability import population_stability

__all__ = ["Drift", "Reference", "population_stability"]
