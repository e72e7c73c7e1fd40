"""The group lasso: features enter and leave a model in groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreline.penalties.base import Penalty, Terms, feature_weights
from scoreline.penalties.elastic_net import check_ratio
from scoreline.runtime.checks import column_index


class GroupPenalty(Penalty):
    """The penalty omega(w) = (1 - l1_ratio) / 2 sum_j weights_j w_j^2 + l1_ratio sum_g sqrt(sum_(j in g) weights_j) |w_g|.

    All coefficients of a group are 0 or none is: the columns of a category, say, or of a spline.

    Parameters
    ----------
    groups : list of lists of columns
        Names or numbers; every feature is in exactly one group.
    l1_ratio : float
        Share of the norms of groups; the rest is a squared norm.
    weights : array of p numbers, optional
        What each feature costs relative to the others, 1 by default.
    """

    name = "group"
    formula = "(1 - l1_ratio) / 2 sum_j weights_j w_j^2 + l1_ratio sum_g sqrt(sum weights_g) |w_g|"

    def __init__(self, groups: Sequence[Sequence[Any]], l1_ratio: float = 0.5, weights: Any = None):
        check_ratio(l1_ratio)
        self.groups, self.l1_ratio, self.weights = groups, l1_ratio, weights

    def terms(self, p: int, names: Any = None) -> Terms:
        """Return the curvatures, and the group of each feature with the factor of its norm."""
        weights, group = feature_weights(self.weights, p), np.full(p, -1)
        if isinstance(self.groups, str) or not isinstance(self.groups, Sequence):
            raise ValueError(f"groups={self.groups!r:.100} must be a list of lists of columns")
        for number, columns in enumerate(self.groups):
            if isinstance(columns, str) or not isinstance(columns, (Sequence, np.ndarray)) or len(columns) == 0:
                raise ValueError(f"groups[{number}]={columns!r:.100} must be a list of one or more columns")
            for column in columns:
                j = column_index(column, p, names, f"groups[{number}]")
                if group[j] >= 0:
                    raise ValueError(
                        f"column {column!r} is in groups[{group[j]}] and groups[{number}]; groups must not overlap"
                    )
                group[j] = number
        if (group < 0).any():
            missing = np.flatnonzero(group < 0)
            shown = ", ".join(str(j if names is None else names[j]) for j in missing[:5])
            raise ValueError(
                f"{len(missing)} of {p} columns are in no group, {shown} among them; put each into one group, alone perhaps"
            )
        norms = self.l1_ratio * np.sqrt(np.bincount(group, weights, len(self.groups)))
        return Terms((1.0 - self.l1_ratio) * weights, np.zeros(p), group, norms)
