"""Covariances that are multiplied and never formed (section 4 of Ghanbari, Li and Scheinberg 2018), checked in two ways."""

from typing import Any

import numpy as np

from scoreline.operators import as_operator
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers import MomentsSolver

COLUMNS = 1000  # of the most non-zeros, for which covariances are formed, too
RIDGE = 1e-4  # without which the direct solution of more columns than rows does not exist


class Unformed(MomentsSolver):
    """Never forms a covariance, however few columns there are."""

    @staticmethod
    def explicit(operator: Any) -> bool:
        """Return False."""
        return False


def compared(X: Any, y: AnyArray) -> dict[str, float]:
    """Return 1 - cosine of the coefficients, by products and in another way; `X` is CSR.

    "accuracy" and "roc_auc" are the paper's procedure on the columns of the most non-zeros, with covariances that are formed.
    "all columns" is the exact minimum of F_nrank on all columns, by a system of as many equations as there are rows.
    """
    most = np.sort(np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")[:COLUMNS])
    few, found = as_operator(X[:, most].tocsr()), {}
    for measure in ("accuracy", "roc_auc"):
        ends = [
            kind(method="paper", ridge=0.0).train(few, y, None, measure, (1.0, 1.0))
            for kind in (MomentsSolver, Unformed)
        ]
        found[measure] = cosine_distance(ends[0].w, ends[1].w)
    end = Unformed(ridge=RIDGE).train(as_operator(X), y, None, "roc_auc", (1.0, 1.0))
    return {**found, "all columns": cosine_distance(end.w, by_rows(X, y, RIDGE)), "iterations": float(end.n_iter)}


def cosine_distance(first: FloatArray, second: FloatArray) -> float:
    """Return 1 - cosine of two vectors, as half of the square of the distance of their directions."""
    difference = first / np.linalg.norm(first) - second / np.linalg.norm(second)
    return 0.5 * float(difference @ difference)


def by_rows(X: Any, y: AnyArray, ridge: float) -> FloatArray:
    """Return (S+ + S- + ridge I)^-1 (mean+ - mean-) by a dense system with a row for each row of X.

    With Z the rows less the mean of their class, over sqrt(n - 1) of it, S+ + S- = Z'Z, and
    (Z'Z + k I)^-1 d = (d - Z' (Z Z' + k I)^-1 Z d) / k.
    """
    side = np.where(y > 0, 0, 1)
    counts = np.bincount(side)
    means = np.array([np.asarray(X[side == k].mean(axis=0)).ravel() for k in (0, 1)])
    root, delta = 1.0 / np.sqrt(counts[side] - 1.0), means[0] - means[1]
    products, between = np.asarray(X @ means.T), means @ means.T
    gram = (X @ X.T).toarray()
    gram += between[np.ix_(side, side)] - products[:, side] - products[:, side].T
    gram *= root[:, None] * root
    gram[np.diag_indices_from(gram)] += ridge
    v = np.linalg.solve(gram, (np.asarray(X @ delta) - (means @ delta)[side]) * root) * root
    back = np.asarray(X.T @ v) - np.bincount(side, v) @ means
    return np.asarray((delta - back) / ridge)
