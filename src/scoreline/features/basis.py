"""Bases of bins: functions of a code, scaled so that the penalty |w|^2 means the same roughness for any number of bins.

Every function has mean 0 over the training rows, and each basis is rotated so that its functions are uncorrelated there; those
of hardly any variance are left out. A rotation changes no model: |w|^2 is the same.
"""

from collections.abc import Sequence

import numpy as np

from scoreline.features.bins import ColumnBins
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray

# A ridge penalty on the heights of steps is a penalty on differences of neighbouring bins. Its strength is that of
# STEP_SCALE steps, and a linear function is LINEAR_WEIGHT times cheaper; benchmarks/additive.py has the evidence.
STEP_SCALE, LINEAR_WEIGHT = 32.0, 3.0
LEAST_VARIANCE_SHARE = 2e-3  # of the largest variance of a function of the same basis
# The same for pairs. It is smaller because "both columns have the same value" varies little in each of many functions.
LEAST_PAIR_VARIANCE_SHARE = 5e-4
RARE_ROWS = 10.0  # weight of a category below which it shares an effect with other rare ones


def column_basis(bins: ColumnBins, counts: FloatArray, monotone: bool = False) -> FloatArray:
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
    monotone : bool
        Leave the functions of numbers as they are, not rotated: each rises with the bin or is constant, so that bounds of the
        coefficients at 0 give all monotone functions and no others (eq. monotone-basis).
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
    centred = functions - share @ functions
    return _with_missing(centred if monotone else rotated(centred, share), counts)


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


def rotated(functions: FloatArray, share: FloatArray, least: float = LEAST_VARIANCE_SHARE) -> FloatArray:
    """Return the functions rotated to be uncorrelated, without those of hardly any variance (eq. rotated-basis)."""
    if functions.shape[1] < 2:
        return functions[:, np.abs(functions).max(axis=0, initial=0.0) > 0.0]
    with parallel.one_blas_thread():  # its threads take a thousand times as long where another core is busy
        _, sizes, turn = np.linalg.svd(np.sqrt(share)[:, None] * functions, full_matrices=False)
    large = np.square(sizes) > least * sizes[0] ** 2
    return np.ascontiguousarray(functions @ turn[large].T)


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


def pair_grid(bins: ColumnBins, counts: FloatArray, most: int) -> AnyArray:
    """Return the cell of each code on a grid of at most `most` cells.

    Cells of numbers have about equal weight, in the order of the values; the most frequent categories have a cell each, and all
    others share one. Missing values have the first cell to themselves if there are any.
    """
    own = counts[1 : bins.size]
    missing = int(counts[0] > 0.0)
    room = max(1, most - missing)
    if bins.kind == "category":
        rank = np.argsort(np.argsort(-own, kind="stable"), kind="stable")
        cells = np.minimum(rank, min(room, max(1, int(np.count_nonzero(own)))) - 1)
    else:
        middle = (np.cumsum(own) - 0.5 * own) / max(float(own.sum()), 1e-300)
        cells = np.unique(np.minimum((middle * room).astype(np.int64), room - 1), return_inverse=True)[1]
    typical = int(cells[int(np.argmax(own))]) if len(own) else 0
    return np.concatenate([[0 if missing else typical], cells + missing]).astype(np.uint32)


def pair_basis(counts: FloatArray, kinds: Sequence[str], missing: Sequence[bool]) -> FloatArray:
    """Return the basis of the cells of a pair, one line per cell.

    Its functions are products of a function of the first column and one of the second, centred: steps between neighbouring
    cells for numbers, and one function per category. Their variances add up to 1 (eq. pair-functions).

    Parameters
    ----------
    counts : array of shape (cells of the first column, cells of the second)
        Weight of the training rows in each cell.
    kinds : pair of str
        "number" or "category", for each of the two columns.
    missing : pair of bool
        Whether the first cell of the column holds the missing values.
    """
    share = (counts / max(float(counts.sum()), 1e-300)).ravel()
    margins = counts.sum(axis=1), counts.sum(axis=0)
    one, other = (_cell_functions(*each) for each in zip(margins, kinds, missing, strict=True))
    functions = np.kron(one, other)
    functions -= share @ functions
    variance = float(share @ np.square(functions).sum(axis=1))
    return rotated(functions / np.sqrt(max(variance, 1e-300)), share, LEAST_PAIR_VARIANCE_SHARE)


def _cell_functions(counts: FloatArray, kind: str, missing: bool) -> FloatArray:
    """Return functions of the cells of one column of a pair, of mean 0."""
    places = np.arange(len(counts))
    if kind == "category":
        functions = np.eye(len(counts))
    else:
        functions = (places[:, None] > places[None, int(missing) : -1]).astype(np.float64)
        if missing:
            functions = np.hstack([functions, (places == 0)[:, None]])
    return functions - (counts / max(float(counts.sum()), 1e-300)) @ functions
