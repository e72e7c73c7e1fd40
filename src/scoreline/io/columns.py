"""Columns of Arrow tables as NumPy arrays: numbers, categories and labels, with errors that say which column and row."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scoreline.runtime.optional import require
from scoreline.runtime.types import AnyArray, FloatArray

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
SHORTER = (  # rewrites texts that mean the same number or truth value to one spelling
    (r"^(-?(?:0|[1-9][0-9]*))\.0+$", r"\1"),
    (r"^(-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])0+$", r"\1"),
    (r"^-0$", "0"),
    (r"^(?i:true)$", "true"),
    (r"^(?i:false)$", "false"),
)

# Among these texts 3, 3.0 and 3.00 are one category, and so are True and true. Codes like 007 or 1.2.0 do not match.
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?|(?i:true|false)")


@dataclass(frozen=True)
class Column:
    """A column: its name, its kind ("number" or "category"), and how its values become features.

    `categories` are in the order of their features. `fill` replaces missing values: a number, or one of the categories. If it
    is None, missing values are not filled. A number column with `indicator` has a second feature, which is 1 where the value is
    missing. `other` gives a category column a last feature, which is 1 for every text that is not one of the categories.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | str | None = None
    indicator: bool = False
    other: bool = False

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.categories) + self.other if self.kind == "category" else 1 + self.indicator

    @cached_property
    def plain(self) -> bool:
        """Whether all categories are written like numbers or truth values, so that 3 and 3.0 are the same."""
        return all(PLAIN.fullmatch(text) for text in self.categories if text != self.fill)


class TableError(ValueError):
    """The content of a table is wrong; `row` (from 1) is set if a single row is to blame."""

    def __init__(self, message: str, row: int | None = None):
        super().__init__(message)
        self.row = row


def arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or a part of it."""
    return require(module, "io", "reading CSV, Parquet and frames")


def fail(name: str, row: int, message: str) -> TableError:
    """Return the error of a cell."""
    return TableError(f"column {name!r}, row {row}: {message}", row)


def missing_value(name: str, row: int) -> TableError:
    """Return the error of a value that is missing."""
    repair = "learn with impute='mean' or impute='zero', fill it in, or leave the column out with"
    return fail(name, row, f"the value is missing, expected one; {repair} drop=[{name!r}]")


class MissingValuesError(TableError):
    """Columns lack values."""


def missing_values(gaps: list[tuple[str, int, int]]) -> MissingValuesError:
    """Return the error of columns that lack values: (name, rows without one, the first of them)."""
    first = min(row for _, _, row in gaps)
    names = [name for name, _, _ in gaps]
    if len(gaps) == 1:
        head = f"column {names[0]!r}, row {first}: the value is missing (in {gaps[0][1]:,} rows)"
    else:
        shown = first_twenty([f"{name!r} ({count:,} rows)" for name, count, _ in gaps])
        head = f"columns {shown}, row {first}: values are missing"
    return MissingValuesError(
        f"{head}; impute='mean', the default, takes the mean of numbers and makes missing text a category of its own "
        f"(impute='zero': 0 for numbers), drop={names!r} leaves {'it' if len(gaps) == 1 else 'them'} out",
        first,
    )


def first_twenty(texts: list[str]) -> str:
    """Return texts for a message, at most twenty."""
    return ", ".join(texts[:20]) + (f" and {len(texts) - 20} more" if len(texts) > 20 else "")


def listed(names: Iterable[str]) -> str:
    """Return names in quotes for a message, at most twenty."""
    return first_twenty(list(map(repr, names)))


def twice(names: Iterable[Any]) -> list[Any]:
    """Return what occurs more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def names_of(argument: str, names: Any) -> list[str]:
    """Return names as a list; a single string is an error, because it would be read letter by letter."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{argument}={names!r} must be a list of strings, like [{names!r}]")
    found: list[str] = list(names)
    for name in found:
        if not isinstance(name, str):
            raise ValueError(f"{argument} holds {name!r}, expected strings")
    return found


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type is text, of any layout."""
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def kind_of(name: str, kind: Any, declared: bool = False) -> str:
    """Return "number" or "category" for an Arrow type; `declared` says that the user asked for a category."""
    types = arrow().types
    if types.is_dictionary(kind):
        return kind_of(name, kind.value_type, declared=True)
    if is_text(kind):
        return "category"
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    if any(is_kind(kind) for is_kind in numeric):
        return "category" if declared else "number"
    if types.is_temporal(kind):
        if declared and not types.is_interval(kind):  # intervals of several units have no text
            return "category"
        raise TableError(
            f"column {name!r} holds dates or times ({kind}), expected numbers, truth values or text; convert it to a number or "
            f"drop it with drop=[{name!r}]"
        )
    raise TableError(
        f"column {name!r} has type {kind}, expected numbers, truth values or text; drop it with drop=[{name!r}] or turn it "
        "into columns of these"
    )


def numbers_of(name: str, array: Any, first_row: int, fill: Any) -> FloatArray:
    """Return a column as float64 with `fill` in place of missing values, which are an error if `fill` is None."""
    pa, pc = arrow(), arrow("pyarrow.compute")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_text(array.type):
        array = array.cast(pa.large_string())
        is_number = pc.match_substring_regex(array, NUMBER).fill_null(True).to_numpy(zero_copy_only=False)
        if not is_number.all():
            at = int(np.argmin(is_number))
            raise fail(
                name,
                first_row + at + 1,
                f"got {array[at].as_py()!r:.100}, expected a number; correct it, or pass missing=[...] with it if it stands "
                "for a missing value",
            )
    elif kind_of(name, array.type, declared=True) and pa.types.is_temporal(array.type):
        raise fail(name, first_row + 1, f"got {array.type}, expected numbers; convert it to a number")
    values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    bad = ~np.isfinite(values)
    if bad.any():
        infinite = np.isinf(values)
        if infinite.any():
            at = int(np.argmax(infinite))
            raise fail(
                name, first_row + at + 1, f"got {values[at]}, expected a finite number; correct it or drop the row"
            )
        if fill is None:
            raise missing_value(name, first_row + int(np.argmax(bad)) + 1)
        values = np.where(bad, fill, values)
    return np.asarray(values)


def as_dictionary(array: Any) -> Any:
    """Return an array as a dictionary; decimals as floats, because pyarrow has no dictionaries of short decimals."""
    types = arrow().types
    if types.is_dictionary(array.type):
        return array
    return (array.cast(arrow().float64()) if types.is_decimal(array.type) else array).dictionary_encode()


def distinct_texts(name: str, array: Any, first_row: int) -> tuple[Any, AnyArray]:
    """Return distinct values of a column as text, and for each row which of them it holds, -1 for missing."""
    pa, pc = arrow(), arrow("pyarrow.compute")
    types = pa.types
    kind_of(name, array.type, declared=True)
    if types.is_dictionary(array.type) and (array.dictionary.null_count or len(array.dictionary) > 2 * len(array) + 64):
        array = array.dictionary_decode()  # nulls must show in the codes, and most of a huge dictionary is unused
    if types.is_null(array.type) or types.is_string_view(array.type):
        array = array.cast(pa.large_string())  # pyarrow 26 reads nulls of string_view as empty texts
    array = as_dictionary(array)
    codes, values = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(), array.dictionary
    if types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if types.is_floating(values.type):
        floats = values.cast(pa.float64()).to_numpy()
        hits = np.append(np.isinf(floats), False)[codes]
        if hits.any():
            raise fail(name, first_row + int(np.argmax(hits)) + 1, "got infinity, expected a finite number")
        codes = np.append(np.where(np.isnan(floats), -1, np.arange(len(floats))), -1)[codes]
        is_integer = (floats == np.trunc(floats)) & (np.abs(floats) < 2.0**63)
        integers = pa.array(np.where(is_integer, floats, 0).astype(np.int64)).cast(pa.large_string())
        values = pc.if_else(pa.array(is_integer), integers, values.cast(pa.large_string()))
    return values.cast(pa.large_string()), codes


def shorter(texts: Any) -> Any:
    """Return texts with 3.0 as 3 and True as true."""
    for pattern, replacement in SHORTER:
        texts = arrow("pyarrow.compute").replace_substring_regex(texts, pattern, replacement)
    return texts


def label_array(name: str, array: Any, first_row: int) -> Any:
    """Return a column of labels as Arrow int64, float64, bool or text, without missing values."""
    pa, types = arrow(), arrow().types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    lost = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if lost.any():
        raise fail(name, first_row + int(np.argmax(lost)) + 1, "the label is missing; fill it in or drop the row")
    if types.is_floating(array.type) or types.is_decimal(array.type):
        array = array.cast(pa.float64())
        infinite = np.isinf(array.to_numpy(zero_copy_only=False))
        if infinite.any():
            raise fail(
                name, first_row + int(np.argmax(infinite)) + 1, "the label is infinite, expected a finite number"
            )
        return array
    if types.is_integer(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise TableError(f"column {name!r}: a label does not fit into 64 bits ({error}); make it text") from None
    if is_text(array.type):
        return array.cast(pa.large_string())
    if types.is_boolean(array.type) or types.is_null(array.type):
        return array
    raise TableError(
        f"column {name!r} has type {array.type}, expected labels that are integers, text, truth values or floats"
    )


def label_values(name: str, array: Any, first_row: int = 0) -> AnyArray:
    """Return a column of labels as an array of int64, float64, bool or unicode."""
    array = label_array(name, array, first_row)
    if is_text(array.type):
        coded = array.dictionary_encode()
        words: AnyArray = np.array(coded.dictionary.to_pylist(), dtype=np.str_)[coded.indices.to_numpy()]
        return words
    return np.asarray(array.to_numpy(zero_copy_only=False))
