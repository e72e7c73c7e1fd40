"""The data matrix as a pair of products: w -> z = Xw and u -> X'u, whatever the storage."""

from scoreline.operators.base import Operator
from scoreline.operators.blocks import BlockOperator
from scoreline.operators.convert import as_operator
from scoreline.operators.dense import DenseOperator
from scoreline.operators.fourier import RandomFourierFeatures
from scoreline.operators.linear_map import LinearMap
from scoreline.operators.sequences import Sequences
from scoreline.operators.sparse import CompressedOperator
from scoreline.operators.statistics import ColumnStatistics
from scoreline.operators.strings import Motif, StringFeatures, StringOperator, strongest_motifs
from scoreline.operators.wrappers import InterceptOperator, LinearMapOperator, RowsOperator, ScaledOperator

__all__ = [
    "BlockOperator",
    "ColumnStatistics",
    "CompressedOperator",
    "DenseOperator",
    "InterceptOperator",
    "LinearMap",
    "LinearMapOperator",
    "Motif",
    "Operator",
    "RandomFourierFeatures",
    "RowsOperator",
    "ScaledOperator",
    "Sequences",
    "StringFeatures",
    "StringOperator",
    "as_operator",
    "strongest_motifs",
]
