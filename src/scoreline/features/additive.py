"""Additive features: a function of each column, made of bins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.features.basis import column_basis, linear_basis
from scoreline.features.bins import ColumnBins, category_bins, number_bins
from scoreline.features.columns import Columns, ColumnSample, columns_of, place_of, sampled_rows
from scoreline.features.fitted import FittedFeatures, table_codes, with_features
from scoreline.operators import Operator
from scoreline.operators.codes import CODES, CodesOperator, Group, PackedCodes
from scoreline.runtime.checks import check_number, column_signs
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import room_module

MOST_BINS = CODES - 2


@dataclass(frozen=True)
class Additive:
    """A smooth function of each column: the score is a sum of one function per column (eq. additive-score).

    Numeric columns are divided into bins of about equal weight. Their function is a linear function plus a step between each
    two neighbouring bins, and the penalty on the steps makes it smooth. Each category has a value of its own, which is shrunk
    towards the mean of all categories; rare ones are shrunk more. Missing values (NaN) have a bin of their own. Everything
    is learnt from X alone, and each value takes one byte.

    Parameters
    ----------
    max_bins : int, default=128
        Largest number of bins of a numeric column, at most 254.
    categories : sequence of str or int, default=()
        Columns of numbers that are categories, by name or by position. Columns of text in a frame are categories anyway.

    Examples
    --------
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.features import Additive
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(2000, 2))
    >>> y = np.abs(X[:, 0]) > 1
    >>> clf = MeasureClassifier("roc_auc", features=Additive(max_bins=32), alpha=0.01).fit(X, y)
    >>> round(clf.score(X, y), 2)
    1.0
    """

    max_bins: int = 128
    categories: Sequence[str | int] = ()

    kind = "additive"

    def check(self) -> None:
        """Raise an error if a parameter is invalid."""
        check_number("max_bins", self.max_bins, least=2, integer=True)
        if self.max_bins > MOST_BINS:
            raise ValueError(f"max_bins={self.max_bins} must be at most {MOST_BINS}: a code is one byte")
        if isinstance(self.categories, str):
            raise ValueError(f"categories={self.categories!r} must be a list of names or positions of columns")

    def learn(self, X: Any, weight: Any = None, monotone: Mapping[Any, int] | None = None, names: Any = None) -> Any:
        """Return the features of X as an operator that knows what was learnt (`feature_map`).

        Parameters
        ----------
        X : array, frame, sparse matrix, Dask array or Operator that can be read in blocks, of shape (n, p)
            Rows are examples; NaN is allowed. Of rows on a cluster, only sketches of the columns leave the workers, and
            of a device a sample of the rows.
        weight : array of n weights, optional
            How often each row counts; bins are learnt from at most 100,000 rows of positive weight, evenly spread.
        monotone : dict, optional
            1 for a column of numbers whose function may not fall, -1 for one whose function may not rise.
        names : sequence of str, optional
            Names of the columns where X has none.

        Returns
        -------
        CodesOperator
            n x p bytes, on the workers or on the device where X is there.
        """
        self.check()
        place = place_of(X)
        if place != "host":
            return room_module(place, "coded_rows").learn(self, X, weight, monotone, names)
        table = columns_of(X)
        return self.learnt(table, weight, column_signs(monotone, table.shape[1], names or table.names))

    def learnt(self, table: Columns, weight: Any, signs: Sequence[int], out: AnyArray | None = None) -> CodesOperator:
        """Return the features of a table as an operator; its codes lie in `out`, if that is given."""
        n, p = table.shape
        counted = np.ones(n) if weight is None else np.broadcast_to(np.asarray(weight, dtype=np.float64), (n,))
        rows = sampled_rows(counted)
        samples = [ColumnSample(values, counted[rows]) for values in table.sample(rows)]
        categories = [table.is_category(j) for j in range(p)]
        bins = self.bins_of(samples, table.names, signs, categories, [table.texts(j) for j in range(p)])
        codes = table_codes(table, bins, out)
        counts = counting(codes, bins).rmatvec(counted)
        return learnt_features(bins, counts, signs).of_codes(PackedCodes.packed(codes) if out is None else codes)

    def bins_of(
        self,
        samples: Sequence[ColumnSample],
        given_names: list[str] | None,
        signs: Sequence[int],
        categories: Sequence[bool] = (),
        texts: Sequence[tuple[str, ...] | None] = (),
    ) -> list[ColumnBins]:
        """Return the bins of each column from a sample of its values; names are None where X has none."""
        p = len(samples)
        declared = self.declared(p, given_names)
        names = given_names or [f"x{j}" for j in range(p)]
        known_texts = texts or (None,) * p
        found = []
        for j, (values, weight) in enumerate(samples):
            if not (j in declared or (categories and categories[j])):
                found.append(number_bins(names[j], values, weight, self.max_bins))
            elif signs[j]:
                raise ValueError(
                    f"monotone names column {names[j]!r}, which holds categories: these have no order. Leave it out, or "
                    "replace the categories by numbers."
                )
            else:
                found.append(category_bins(names[j], values, weight, known_texts[j]))
        return found

    def declared(self, columns: int, names: list[str] | None) -> set[int]:
        """Return the positions of the columns that were declared as categories."""
        found = set()
        for each in self.categories:
            if isinstance(each, str):
                if names is None or each not in names:
                    raise ValueError(
                        f"categories names column {each!r}, which X does not have; its columns are "
                        f"{'numbered' if names is None else names[:10]}"
                    )
                found.add(names.index(each))
            elif not 0 <= int(each) < columns:
                raise ValueError(f"categories has position {each}, expected 0 to {columns - 1}")
            else:
                found.add(int(each))
        return found


def linear_part(operator: Operator) -> Operator:
    """Return the same rows with the part of their features that is linear in the columns."""
    features: FittedFeatures = operator.feature_map
    counts = features.cell_counts()[: features.n_columns]
    groups = [
        Group.of_column(j, linear_basis(column, own))
        for j, (column, own) in enumerate(zip(features.columns, counts, strict=True))
    ]
    linear = FittedFeatures("linear", features.columns, groups, np.concatenate(counts), features.signs)
    return with_features(operator, linear)


def counting_groups(bins: Sequence[ColumnBins]) -> list[Group]:
    """Return a function for each code: X'u are the sums of u over the rows of each code."""
    return [Group.of_column(j, np.eye(each.size)) for j, each in enumerate(bins)]


def counting(codes: AnyArray, bins: Sequence[ColumnBins]) -> CodesOperator:
    """Return rows with a function for each code."""
    return CodesOperator(codes, counting_groups(bins))


def with_bases(bins: Sequence[ColumnBins], counts: FloatArray, signs: Sequence[int] = ()) -> FittedFeatures:
    """Return the features of columns: the basis of each, from the weight of its codes, one column after another."""
    signs = signs or (0,) * len(bins)
    own = np.split(counts, np.cumsum([each.size for each in bins])[:-1])
    groups = [Group.of_column(j, column_basis(each, own[j], bool(signs[j]))) for j, each in enumerate(bins)]
    return FittedFeatures("additive", bins, groups, counts, signs)


def learnt_features(bins: Sequence[ColumnBins], counts: FloatArray, signs: Sequence[int]) -> FittedFeatures:
    """Return the same, or raise where no column has two codes."""
    features = with_bases(bins, counts, signs)
    if features.n_features == 0:
        raise ValueError(
            "Every column of X is constant or missing in the rows of positive weight, so there is nothing to learn from. "
            "Pass columns with two different values or more."
        )
    return features
