"""Data from files and generators."""

from scoreline.data.synthetic import make_imbalanced

__all__ = ["make_imbalanced"]
