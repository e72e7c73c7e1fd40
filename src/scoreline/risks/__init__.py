"""Risks: convex functions of the scores and labels, never of X. Each risk is one file, found by `registry`."""

from scoreline.risks.average_precision import AveragePrecisionRisk
from scoreline.risks.balanced import project_balanced
from scoreline.risks.base import Evaluation, Risk
from scoreline.risks.contingency import ContingencyRisk
from scoreline.risks.contingency_entropy import EntropyContingencyRisk
from scoreline.risks.hinge import HingeRisk
from scoreline.risks.hinge_free_intercept import FreeInterceptHingeRisk
from scoreline.risks.logistic import LogisticRisk
from scoreline.risks.marginals import Marginals, label_marginals
from scoreline.risks.partial_roc import PartialRocRisk
from scoreline.risks.prbep import PrbepRisk
from scoreline.risks.roc_area import RocAreaRisk
from scoreline.risks.roc_area_squared import SquaredRocAreaRisk
from scoreline.risks.squared_hinge import SquaredHingeRisk

__all__ = [
    "AveragePrecisionRisk",
    "ContingencyRisk",
    "EntropyContingencyRisk",
    "Evaluation",
    "FreeInterceptHingeRisk",
    "HingeRisk",
    "LogisticRisk",
    "Marginals",
    "PartialRocRisk",
    "PrbepRisk",
    "Risk",
    "RocAreaRisk",
    "SquaredHingeRisk",
    "SquaredRocAreaRisk",
    "label_marginals",
    "project_balanced",
]
