"""Bases of bins: functions of a code, scaled so that the penalty |w|^2 means the same roughness for any number of bins.

Every function has mean 0 over the training rows, and each basis is rotated so that its functions are uncorrelated there; those
of hardly any variance are left out. A rotation changes no model: |w|^2 is the same.
"""

import numpy as np

from scoreline.features.bins import ColumnBins
from scoreline.runtime.types import AnyArray, FloatArray

# A ridge penalty on the heights of steps is a penalty on differences of neighbouring bins. Its strength is that of
# STEP_SCALE steps, and a linear function is LINEAR_WEIGHT times cheaper; benchmarks/additive.py has the evidence.
STEP_SCALE, LINEAR_WEIGHT = 32.0, 3.0
LEAST_VARIANCE_SHARE = 2e-3  # of the largest variance of a function of the same basis
RARE_ROWS = 10.0  # weight of a category below which it shares an effect with other rare ones


def column_basis(bins: ColumnBins, counts: FloatArray) -> FloatArray:
    """Return the basis of a column, one line per code.

    Numbers: steps between neighbouring bins and a linear function; missing values have a function of their own, and are at the
    mean of the others. Categories: one function each, and one that all rare ones share, so that these are shrunk towards each
    other (eq. steps).

    Parameters
    ----------
    bins : ColumnBins
        The codes.
    counts : array
        Weight of the training rows of each code.
    """
    if bins.kind == "category":
        return _category_basis(counts)
    own = counts[1:]
    bins_count, total = len(own), max(float(own.sum()), 1e-300)
    share = own / total
    parts = []
    if bins_count > 1:
        places = np.arange(bins_count)
        height = np.sqrt(min(STEP_SCALE / (bins_count - 1), 1.0))
        parts.append(height * (places[:, None] > places[None, :-1]))
    if bins_count > 2:
        parts.append(LINEAR_WEIGHT * _standardised(bins.centers, share))
    functions = np.hstack([np.zeros((bins_count, 0)), *parts])
    return _with_missing(rotated(functions - share @ functions, share), counts)


def linear_basis(bins: ColumnBins, counts: FloatArray) -> FloatArray:
    """Return the part of `column_basis` that is linear in numbers; categories and missing values keep theirs."""
    if bins.kind == "category":
        return _category_basis(counts)
    own = counts[1:]
    return _with_missing(_standardised(bins.centers, own / max(float(own.sum()), 1e-300)), counts)


def _standardised(values: FloatArray, share: FloatArray) -> FloatArray:
    """Return the values at mean 0 and variance 1 as a column, or no column where they are constant."""
    values = values / max(float(np.abs(values).max(initial=0.0)), 1e-300)  # so that squares stay in range
    centred = values - share @ values
    deviation = float(np.sqrt(share @ centred**2))
    return (centred / deviation)[:, None] if deviation > 1e-12 else np.zeros((len(values), 0))


def _with_missing(functions: FloatArray, counts: FloatArray) -> FloatArray:
    """Return functions of values with a line for missing values: the mean, and a function of their own if there are any."""
    found = np.vstack([np.zeros(functions.shape[1]), functions])
    if counts[0] > 0.0 and counts[1:].sum() > 0.0:
        found = np.hstack([found, (np.arange(len(counts)) == 0)[:, None] - counts[0] / counts.sum()])
    return found


def rotated(functions: FloatArray, share: FloatArray) -> FloatArray:
    """Return the functions rotated to be uncorrelated, without those of hardly any variance (eq. rotated-basis)."""
    if functions.shape[1] < 2:
        return functions[:, np.abs(functions).max(axis=0, initial=0.0) > 0.0]
    _, sizes, turn = np.linalg.svd(np.sqrt(share)[:, None] * functions, full_matrices=False)
    kept = np.square(sizes) > LEAST_VARIANCE_SHARE * sizes[0] ** 2
    return np.ascontiguousarray(functions @ turn[kept].T)


def _category_basis(counts: FloatArray) -> FloatArray:
    """Return one function per category that occurs, and one that those of few rows share."""
    total = max(float(counts.sum()), 1e-300)
    present = np.flatnonzero(counts > 0.0)
    found = np.eye(len(counts))[:, present]
    rare = counts < RARE_ROWS  # unseen categories among them
    rare[0] = False
    if np.count_nonzero(rare & (counts > 0.0)) > 1:
        found = np.hstack([found, rare[:, None].astype(np.float64)])
    return found - (counts / total) @ found


def pair_grid(counts: FloatArray, most: int) -> AnyArray:
    """Return the cell of each code on a grid of at most `most` cells of about equal weight, in the order of the codes.

    Missing values have the first cell to themselves if there are any.
    """
    own = counts[1:]
    total = float(own.sum())
    if total <= 0.0:
        return np.zeros(len(counts), dtype=np.uint32)
    missing = int(counts[0] > 0.0)
    middle = (np.cumsum(own) - 0.5 * own) / total
    room = max(1, most - missing)
    cells = np.minimum((middle * room).astype(np.int64), room - 1)
    found = np.concatenate([[0], cells])
    found[1:] = np.unique(found[1:], return_inverse=True)[1] + missing
    if not missing:
        found[0] = found[1 + int(np.searchsorted(middle, 0.5, side="right").clip(0, len(own) - 1))]
    return found.astype(np.uint32)
