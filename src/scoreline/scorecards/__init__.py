"""Scorecards: additive models as tables of integer points.

The room takes trained classifiers and rows; it knows neither files nor the command line.
"""

from scoreline.scorecards.card import CardColumn, Line, Scorecard

__all__ = ["CardColumn", "Line", "Scorecard"]
