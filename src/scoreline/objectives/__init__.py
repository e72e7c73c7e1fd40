"""The risks as objectives of other libraries: gradients for boosted trees and losses for PyTorch.

Measures, risks and scores are used here. The libraries themselves are imported when they are needed only.
"""

from scoreline.objectives.boosting import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective
from scoreline.objectives.catboost import catboost_metric, catboost_objective
from scoreline.objectives.losses import torch_loss
from scoreline.objectives.surrogate import Surrogate, cost_of_errors

__all__ = [
    "Surrogate",
    "catboost_metric",
    "catboost_objective",
    "cost_of_errors",
    "lightgbm_metric",
    "lightgbm_objective",
    "torch_loss",
    "xgboost_metric",
    "xgboost_objective",
]
