"""What keeps coefficients small, sparse or within bounds: one penalty per file, found by `registry`. A penalty sees w only."""

from scoreline.penalties.base import Penalty, Terms
from scoreline.penalties.bounded import BoundedPenalty
from scoreline.penalties.elastic_net import ElasticNetPenalty
from scoreline.penalties.group import GroupPenalty
from scoreline.penalties.l2 import L2Penalty

__all__ = ["BoundedPenalty", "ElasticNetPenalty", "GroupPenalty", "L2Penalty", "Penalty", "Terms"]
