"""Features that are learnt from X alone: bins of columns and of pairs of columns, whose products are computed on the fly.

A feature map knows columns and codes, and never labels; `operators/codes.py` multiplies with what it makes.
"""

from scoreline.features.additive import Additive
from scoreline.features.fitted import FittedFeatures
from scoreline.features.pairs import Pairs
from scoreline.features.shapes import ShapeFunction

__all__ = ["Additive", "FittedFeatures", "Pairs", "ShapeFunction"]
