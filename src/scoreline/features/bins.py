"""Bins of a column, learnt from a sample of its values: quantiles of numbers, categories with the rare ones together."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scoreline.runtime.types import FloatArray

MOST_CATEGORIES = 254  # with a code of their own: one byte also tells missing values and all other categories


class ColumnBins(NamedTuple):
    """How the values of a column become codes.

    Code 0 is a missing value. Of numbers, code 1 + k is a value between cut points k - 1 and k. Of categories, it is value k,
    and the last code is any other category.
    """

    name: str
    kind: str  # "number" or "category"
    values: FloatArray  # cut points, or categories; increasing
    centers: FloatArray  # mean of the values of each bin of numbers, in units of the column
    texts: tuple[str, ...] | None  # of categories that are texts: category k is texts[int(values[k])]

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.values) + 2

    def labels(self) -> list[str]:
        """Return what each code stands for, in words."""
        if self.kind == "number":
            edges = [f"{value:.6g}" for value in self.values]
            if not edges:
                return ["missing", "all values"]
            inner = [f"{low} to {high}" for low, high in pairwise(edges)]
            return ["missing", f"up to {edges[0]}", *inner, f"above {edges[-1]}"]
        named = [f"{value:g}" if self.texts is None else self.texts[int(value)] for value in self.values]
        return ["missing", *named, "other"]


def number_bins(name: str, values: FloatArray, weight: FloatArray, most: int) -> ColumnBins:
    """Return at most `most` bins of about equal weight; every distinct value has its own where they are few.

    Parameters
    ----------
    name : str
        Name of the column.
    values, weight : array of n numbers
        A sample of rows, with NaN for missing values.
    most : int
        Largest number of bins.
    """
    distinct, upto, finite = _distinct(values, weight)
    if len(distinct) <= most:
        last = np.arange(len(distinct))
    else:
        levels = upto[-1] * np.arange(1, most + 1) / most
        last = np.unique(np.minimum(np.searchsorted(upto, levels * (1.0 - 1e-12)), len(distinct) - 1))
        last = np.unique(np.append(last, len(distinct) - 1))
    inner = last[:-1]
    boundaries = _between(distinct[inner], distinct[inner + 1]) if len(inner) else np.empty(0)
    total = np.diff(np.concatenate([[0.0], upto[last]])) if len(last) else np.zeros(1)
    exponent = np.frexp(np.abs(finite).max(initial=1.0))[1]  # so that sums stay in range
    sums = np.cumsum(np.diff(np.concatenate([[0.0], upto])) * np.ldexp(finite, -exponent))
    added = np.diff(np.concatenate([[0.0], sums[last]])) if len(last) else np.zeros(1)
    centers = np.ldexp(np.divide(added, total, out=np.zeros_like(added), where=total > 0.0), exponent)
    return ColumnBins(name, "number", boundaries, centers, None)


def category_bins(
    name: str, values: FloatArray, weight: FloatArray, texts: tuple[str, ...] | None, most: int = MOST_CATEGORIES
) -> ColumnBins:
    """Return one bin for each of the most frequent categories."""
    distinct, upto, _ = _distinct(values, weight)
    counts = np.diff(np.concatenate([[0.0], upto]))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:most])
    return ColumnBins(name, "category", distinct[frequent], np.empty(0), texts)


def _distinct(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct values in increasing order, the weight up to each of them, and the nearest finite values."""
    known = ~np.isnan(values)
    found, place = np.unique(values[known], return_inverse=True)
    own = np.bincount(place, weight[known], len(found)) if len(found) else np.empty(0)
    bounded = found[np.isfinite(found)]
    finite = np.clip(found, bounded[0], bounded[-1]) if len(bounded) else np.zeros(len(found))
    return found, np.cumsum(own), finite


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return numbers with low <= number < high: the middle where it can be told from both."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = 0.5 * low + 0.5 * high
    return np.where((middle >= low) & (middle < high), middle, low)
