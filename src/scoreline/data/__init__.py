"""Data from files and generators."""

from scoreline.data.libsvm import read_libsvm
from scoreline.data.synthetic import HardExample, hard_for_cutting_planes, make_imbalanced

__all__ = ["HardExample", "hard_for_cutting_planes", "make_imbalanced", "read_libsvm"]
