"""Features that have been learnt: how columns become codes, and what functions of the codes are features."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreline.features.bins import ColumnBins
from scoreline.features.columns import Columns, columns_of, place_of
from scoreline.operators import Operator
from scoreline.operators.codes import CODES, CodesOperator, Group, PackedCodes
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import room_module

KINDS = ("linear", "additive", "pairs")


class FittedFeatures:
    """What `features="additive"` or `"pairs"` has learnt from the training rows: `MeasureClassifier.feature_map_`.

    Parameters
    ----------
    kind : {"linear", "additive", "pairs"}
        Which functions of the codes are features.
    columns : sequence of ColumnBins
        How the values of each column become codes.
    groups : sequence of Group
        The features: one group for each column, in their order, then those of pairs.
    counts : array
        Weight of the training rows in each cell of each group, one after another.
    signs : sequence of int, optional
        For each column 1 if its function may not fall, -1 if it may not rise, 0 if it may do both; 0 by default.
    """

    def __init__(
        self,
        kind: str,
        columns: Sequence[ColumnBins],
        groups: Sequence[Group],
        counts: FloatArray,
        signs: Sequence[int] = (),
    ):
        self.kind, self.columns, self.groups, self.counts = kind, tuple(columns), tuple(groups), counts
        self.signs = tuple(signs) or (0,) * len(self.columns)

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return len(self.columns)

    @property
    def n_features(self) -> int:
        """Number of features, as long as `coef_` is."""
        return sum(group.basis.shape[1] for group in self.groups)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of columns that have features of their own."""
        return [group.columns for group in self.groups[self.n_columns :]]

    def codes(self, X: Any, out: AnyArray | None = None) -> AnyArray:
        """Return the codes of the rows of X, one line of bytes per column, perhaps in `out`."""
        table = columns_of(X, [column.texts for column in self.columns])
        if table.shape[1] != self.n_columns:
            raise ValueError(
                f"X has {table.shape[1]} columns, but the classifier was trained with {self.n_columns} features"
            )
        return table_codes(table, self.columns, out)

    def operator(self, X: Any) -> CodesOperator:
        """Return the features of the rows of X as an operator."""
        return self.of_codes(self.codes(X))

    def applied(self, X: Any) -> Operator:
        """Return the features of rows wherever they are; rows whose features are known must have the same bins."""
        if not isinstance(X, Operator) or X.feature_map is None:
            place = place_of(X)
            return self.operator(X) if place == "host" else room_module(place, "coded_rows").coded(self, X)
        if not self.has_bins_of(X.feature_map):
            raise ValueError(
                "X holds codes of other bins than the model was trained with. Code the rows by the features of the model, "
                "clf.feature_map_.operator(rows), or convert them with --like and the folder of the training rows."
            )
        return with_features(X, self)

    def has_bins_of(self, other: "FittedFeatures") -> bool:
        """Tell whether the same values have the same codes."""
        return len(self.columns) == len(other.columns) and all(
            one.kind == two.kind and one.texts == two.texts and np.array_equal(one.values, two.values)
            for one, two in zip(self.columns, other.columns, strict=True)
        )

    def of_codes(self, codes: AnyArray | PackedCodes, lines: AnyArray | None = None) -> CodesOperator:
        """Return the features of rows whose codes are known."""
        made = CodesOperator(codes, self.groups, lines)
        made.feature_map = self
        return made

    def tables(self, coef: FloatArray) -> list[FloatArray]:
        """Return the value of each cell of every group: its basis times its part of the coefficients.

        Every cell adds up its terms in the same order, so that rounding keeps what is monotone monotone; BLAS might not.
        """
        ends = np.cumsum([group.basis.shape[1] for group in self.groups])[:-1]
        return [(group.basis * part).sum(axis=1) for group, part in zip(self.groups, np.split(coef, ends), strict=True)]

    def bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the bounds of coefficients that make the functions of columns with a sign monotone; None if there are none.

        Their bases consist of functions that do not fall from bin to bin (eq. monotone-basis), and of that of missing values,
        which is the same in all bins of numbers.
        """
        if not any(self.signs):
            return None
        lower = np.full(self.n_features, -np.inf)
        upper, start = -lower, 0
        for group, sign in zip(self.groups, (*self.signs, *(0,) * len(self.groups)), strict=False):
            part = slice(start, start + group.basis.shape[1])
            rises = np.ptp(group.basis[1:], axis=0) > 0.0
            if sign > 0:
                lower[part][rises] = 0.0
            elif sign < 0:
                upper[part][rises] = 0.0
            start = part.stop
        return lower, upper

    def cell_counts(self) -> list[FloatArray]:
        """Return the weight of the training rows in each cell of every group."""
        return np.split(self.counts, np.cumsum([len(group.basis) for group in self.groups])[:-1])

    def record(self) -> dict[str, Any]:
        """Return plain values from which `restored` makes the same."""
        return {
            "kind": self.kind,
            "columns": [column._asdict() for column in self.columns],
            "groups": [{**group._asdict(), "columns": list(group.columns)} for group in self.groups],
            "counts": self.counts,
            "signs": list(self.signs),
        }

    @classmethod
    def restored(cls, record: Any) -> "FittedFeatures":
        """Return the features of a record; anything else is an error, since kernels follow codes without checking them."""
        columns = [ColumnBins(**column) for column in record["columns"]]
        groups = [Group(**{**group, "columns": tuple(group["columns"])}) for group in record["groups"]]
        found = cls(record["kind"], columns, groups, record["counts"], record.get("signs", ()))
        if not found._is_complete():
            raise ValueError("feature_map_ does not hold bins for each column and a basis for each group")
        return found

    def _is_complete(self) -> bool:
        p = len(self.columns)
        return (
            self.kind in KINDS
            and 1 <= p <= len(self.groups)
            and len(self.signs) == p
            and all(sign in (-1, 0, 1) for sign in self.signs)
            and all(_is_valid_column(column) for column in self.columns)
            and all(_fits(group, k, self.columns) for k, group in enumerate(self.groups))
            and _is_finite(self.counts, (sum(len(group.basis) for group in self.groups),))
        )


def with_features(operator: Operator, features: FittedFeatures | None) -> Operator:
    """Return the rows of an operator with the features of a trained classifier, which may have pairs beyond those."""
    if features is None or features is operator.feature_map:
        return operator
    if isinstance(operator, CodesOperator):
        return features.of_codes(operator.packed, operator.lines)
    if operator.feature_map is None:
        return operator
    found: Operator = room_module(operator.scores, "coded_rows").recoded(operator, features)
    return found


def table_codes(table: Columns, columns: Sequence[ColumnBins], out: AnyArray | None = None) -> AnyArray:
    """Return the codes of a table, one line per column, perhaps in `out`."""
    exact = np.array([column.kind == "category" for column in columns])
    return table.codes([column.values for column in columns], exact, out)


def _is_valid_column(column: ColumnBins) -> bool:
    values, centers, texts = column.values, column.centers, column.texts
    if column.kind not in ("number", "category") or not isinstance(column.name, str):
        return False
    if not (isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1):
        return False
    increasing = bool((np.diff(values) > 0.0).all()) and not np.isnan(values).any() and len(values) + 2 <= CODES
    if column.kind == "number":
        return increasing and _is_finite(centers, (len(values) + 1,)) and texts is None
    places = values.astype(np.int64) if texts is not None else np.zeros(0, dtype=np.int64)
    known = texts is None or (
        all(isinstance(text, str) for text in texts)
        and bool(((places >= 0) & (places < len(texts)) & (places == values)).all())
    )
    return increasing and known


def _fits(group: Group, k: int, columns: Sequence[ColumnBins]) -> bool:
    """Tell whether every code of the columns of a group has a cell in its basis."""
    p, (one, other) = len(columns), group.columns
    if not (
        isinstance(group.basis, np.ndarray) and group.basis.ndim == 2 and _is_finite(group.basis, group.basis.shape)
    ):
        return False
    for line in (group.near, group.far):
        if not (isinstance(line, np.ndarray) and line.dtype == np.uint32 and line.shape == (CODES,)):
            return False
    if k < p:
        return (one, other) == (k, -1) and len(group.basis) == columns[k].size and _is_identity(group)
    most = int(group.near.max()) + int(group.far.max())
    return 0 <= one < p and 0 <= other < p and most < len(group.basis)


def _is_identity(group: Group) -> bool:
    return bool((group.near == np.arange(CODES)).all() and not group.far.any())


def _is_finite(array: Any, shape: tuple[int, ...]) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.shape == shape
        and bool(np.isfinite(array).all())
    )
