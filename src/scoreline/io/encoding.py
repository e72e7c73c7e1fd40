"""How the columns of a table become features: learnt from training rows, saved as JSON, applied to rows to predict."""

import dataclasses
import json
import logging
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.io import columns as cells
from scoreline.io.columns import Column, TableError
from scoreline.runtime.checks import check_choice, check_number
from scoreline.runtime.types import AnyArray

logger = logging.getLogger("scoreline")

VERSION = 2  # version 1 had neither indicators nor other
COLUMN_KEYS = {1: {"name", "kind", "categories", "fill"}}
COLUMN_KEYS[2] = COLUMN_KEYS[1] | {"indicator", "other"}
SPARSE_BELOW = 0.25  # share of non-zero entries per row below which a matrix is stored as CSR
SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can hold them, UTF-8 cannot
MISSING = "?"  # the category of missing values
IDENTIFIER_SHARE, IDENTIFIER_MIN_ROWS = 0.5, 50  # a column with this share of distinct texts looks like row identifiers
NUMERIC_SHARE = 0.9  # a text column with at least this share of numbers looks like numbers with typing errors
MANY_CATEGORIES = 50  # distinct texts beyond which the rare ones of a column are grouped
MIN_CATEGORY_ROWS = 10  # rows below which a category of such a column is rare


class Encoding:
    """How the columns of a table become features.

    A number column becomes one feature. If it has an indicator, it has a second feature, which is 1 where the value is
    missing. A category column becomes one feature per category, which is 1 in the rows of that category. If the column
    groups rare texts, it has one more feature for all other texts.

    A category is identified by its text. Integers, and floats with an integer value, are written as 3; other floats as the
    shortest text that reads back; truth values as true and false; dates in ISO form. Texts are not changed, with one
    exception: if all texts of a column look like numbers or truth values, 3.0 becomes 3 and True becomes true. A column
    therefore means the same whether it was read from CSV, as integers or as floats.

    Parameters
    ----------
    columns : sequence of Column
        The columns in the order of their features.
    label : str, optional
        Name of the column of labels.
    labels : sequence of int, float, bool or str
        The distinct labels, sorted.
    rows : int
        Number of rows that it was learnt from.
    missing : sequence of str
        Texts that stand for missing values, in addition to the usual ones.
    impute : {None, "mean", "zero"}
        How missing values were filled; None means that they are errors.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        label: str | None = None,
        labels: Sequence[Any] = (),
        rows: int = 0,
        missing: Sequence[str] = (),
        impute: str | None = None,
    ):
        self.impute = impute
        self.columns, self.label, self.labels, self.rows = list(columns), label, list(labels), rows
        self.missing, self.unseen, self.filled = tuple(missing), dict[str, int](), dict[str, int]()
        self._check()
        self.starts = [0, *np.cumsum([column.width for column in self.columns]).tolist()]

    def _check(self) -> None:
        """Raise unless columns, their categories and the names of features are distinct."""
        if not self.columns:
            raise ValueError("an encoding needs at least one column of features")
        names = [column.name for column in self.columns] + ([] if self.label is None else [self.label])
        for what, texts in (("column", names), ("feature", [name for c in self.columns for name in _own_names(c)])):
            again = cells.twice(texts)
            if again:
                raise ValueError(f"{what} {again[0]!r} occurs more than once in the encoding; rename a column")
        for column in self.columns:
            check_choice(f"the kind of column {column.name!r}", column.kind, ("number", "category"))
            if column.indicator and (column.kind != "number" or column.fill is None):
                raise ValueError(f"column {column.name!r}: indicator=True needs a number column with a fill")
            if column.other and column.kind != "category":
                raise ValueError(f"column {column.name!r}: other=True needs a category column, got a number column")
            if column.kind == "number":
                fits = column.fill is None or (isinstance(column.fill, float) and math.isfinite(column.fill))
                fits = fits and not column.categories
            else:
                fits = column.fill is None or column.fill in column.categories
            if not fits:
                raise ValueError(
                    f"column {column.name!r}: fill={column.fill!r} must be None, a finite number for a number, or one "
                    "of the categories; numbers have no categories"
                )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.starts[-1])

    @property
    def names(self) -> list[str]:
        """Names of the features: age, age is missing, color=red, color=? for missing values, color=(other)."""
        found, taken = list[str](), {name for c in self.columns for name in (c.name, *_own_names(c))}
        for column in self.columns:
            found += _own_names(column)
            if column.width > len(_own_names(column)):
                extra = f"{column.name} is missing" if column.indicator else f"{column.name}=(other)"
                while extra in taken:
                    extra += "_"
                taken.add(extra)
                found.append(extra)
        return found

    @property
    def storage(self) -> str:
        """Either "dense" or "csr", depending on how many entries of a row can be non-zero."""
        return "csr" if self._slots < SPARSE_BELOW * self.n_features else "dense"

    @property
    def _slots(self) -> int:
        """Number of entries of a row that can be non-zero."""
        return sum(1 + column.indicator for column in self.columns)

    @classmethod
    def learn(
        cls,
        batches: Callable[[], Iterator[Any]],
        *,
        label: str | None = None,
        categories: Iterable[str] = (),
        impute: str | None = "mean",
        indicators: bool = True,
        min_category_rows: int = MIN_CATEGORY_ROWS,
        max_categories: int = 100_000,
        missing: Iterable[str] = (),
    ) -> "Encoding":
        """Learn from one pass over the batches of training rows (`pyarrow.RecordBatch`), with the options of `read_data`.

        If a column changes its type between batches, `batches` is called again. The result does not depend on the order of
        the rows, up to rounding of the means.
        """
        check_choice("impute", impute, (None, "mean", "zero", "none"))
        impute = None if impute == "none" else impute
        check_choice("indicators", indicators, (True, False))
        check_number("min_category_rows", min_category_rows, least=1, integer=True)
        check_number("max_categories", max_categories, least=1, integer=True)
        marked = bool(indicators) and impute is not None
        for _ in range(
            1000
        ):  # types are widened a few times at most; a source that never settles must not run for ever
            survey = Survey(label, set(categories), impute, marked, min_category_rows, max_categories)
            if survey.read(batches()):
                columns = survey.columns(batches)
                labels = sorted(survey.labels)
                return cls(columns, label=label, labels=labels, rows=survey.rows, missing=tuple(missing), impute=impute)
        raise TableError("the types of columns differ between batches; give every batch the same schema")

    def encode(self, batch: Any, first_row: int = 0) -> Any:
        """Return the features of a batch.

        Texts that are not among the categories of a column set its feature for other texts. Where it has none, they set no
        feature and are counted in `unseen`. Missing numbers of columns without an indicator are counted in `filled`.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            The columns, in any order and among others.
        first_row : int
            Rows before the batch, for messages.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            float64, as `storage` says; CSR with int32 indices that are sorted, without zeros.
        """
        names = batch.schema.names  # a new list at every access
        known = set(names)
        absent = [c.name for c in self.columns if c.name not in known]
        if absent:
            raise TableError(
                f"column(s) {cells.listed(absent)} are missing, the encoding was learnt with them; "
                f"got columns {cells.listed(names)}"
            )
        n, sparse = batch.num_rows, self.storage == "csr"
        shape = (n, self._slots) if sparse else (n, self.n_features)
        X, places = np.zeros(shape), np.empty(shape if sparse else (0, 0), dtype=np.int32)
        slot = 0  # the next entry of the rows, if only possible non-zeros are stored
        for column, start in zip(self.columns, self.starts, strict=False):
            array = batch.column(column.name)
            first = slot if sparse else start
            slot += 1 + column.indicator
            if column.kind == "number":
                mark = None if column.fill is None else math.nan
                X[:, first] = cells.numbers_of(column.name, array, first_row, mark)
                gaps = np.isnan(X[:, first])
                if column.indicator:
                    X[:, first + 1] = gaps
                elif gaps.any():
                    self.filled[column.name] = self.filled.get(column.name, 0) + int(np.count_nonzero(gaps))
                X[gaps, first] = column.fill
                if sparse:
                    places[:, first:slot] = np.arange(start, start + column.width)
                continue
            codes = self._codes(column, array, first_row)
            if sparse:
                X[:, first], places[:, first] = codes >= 0, start + codes
            else:
                rows = np.flatnonzero(codes >= 0)
                X[rows, start + codes[rows]] = 1.0
        if not sparse:
            return X
        nonzero = X != 0  # columns are in the order of their features, so the indices of a row are sorted
        indptr = np.zeros(n + 1, dtype=np.int32 if X.size < 2**31 else np.int64)
        np.cumsum(nonzero.sum(axis=1), out=indptr[1:])
        indices = places[nonzero].astype(indptr.dtype, copy=False)
        return sp.csr_array((X[nonzero], indices, indptr), (n, self.n_features))

    def columns_of(self, batch: Any, first_row: int = 0) -> dict[str, Any]:
        """Return the columns of a batch as Arrow arrays, neither filled nor coded: numbers, or texts, and null if missing."""
        pa, found = cells.arrow(), {}
        for column in self.columns:
            array = batch.column(column.name)
            if column.kind == "number":
                values = cells.numbers_of(column.name, array, first_row, math.nan)
                found[column.name] = pa.array(values, mask=np.isnan(values))
                continue
            texts, codes = cells.distinct_texts(column.name, array, first_row)
            texts = cells.shorter(texts) if column.plain else texts
            found[column.name] = texts.take(pa.array(codes, mask=codes < 0))
        return found

    def _codes(self, column: Column, array: Any, first_row: int) -> AnyArray:
        """Return the position of each row's category among the features of the column, -1 if it is unseen and counted."""
        pa, pc = cells.arrow(), cells.arrow("pyarrow.compute")
        texts, codes = cells.distinct_texts(column.name, array, first_row)
        if self.impute is None and column.fill is None and codes.min(initial=0) < 0:
            raise cells.missing_value(column.name, first_row + int(np.argmax(codes < 0)) + 1)
        known = pa.array(column.categories, pa.large_string())
        found = pc.index_in(cells.shorter(texts) if column.plain else texts, value_set=known)
        lost = -1 if column.fill is None else column.categories.index(str(column.fill))
        unlisted = len(column.categories) if column.other else -1
        table = np.append(found.fill_null(unlisted).to_numpy(zero_copy_only=False), lost)  # code -1 is the last entry
        codes = table[codes]
        unseen = int(np.count_nonzero(codes < 0))
        if unseen:
            self.unseen[column.name] = self.unseen.get(column.name, 0) + unseen
        return np.asarray(codes)

    def forget_unseen(self) -> None:
        """Count unseen categories and missing numbers from zero again."""
        self.unseen.clear()
        self.filled.clear()

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists, strings and numbers from which `from_json` makes the same encoding."""
        columns = [{**dataclasses.asdict(c), "categories": list(c.categories)} for c in self.columns]
        labels, missing = list(self.labels), list(self.missing)
        return {
            "version": VERSION, "columns": columns, "label": self.label, "labels": labels, "rows": self.rows,
            "missing": missing, "impute": self.impute,
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: Any) -> "Encoding":
        """Return the encoding that `to_json` described, given as a dict or as JSON text."""
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"the encoding is not valid JSON ({error!s:.200}): got {content!r:.100}") from None
        _fields("the encoding", content, {"version", "columns", "label", "labels", "rows", "missing", "impute"})
        _typed("version", [content["version"]], int)
        if content["version"] not in COLUMN_KEYS:
            raise ValueError(f"the encoding has version={content['version']!r}, expected 1 to {VERSION}")
        _typed("columns", content["columns"], dict)
        for k, column in enumerate(content["columns"]):
            _fields(f"columns[{k}]", column, COLUMN_KEYS[content["version"]])
            _typed(f"columns[{k}]: name and kind", [column["name"], column["kind"]], str)
            _typed(f"columns[{k}]: categories", column["categories"], str, distinct=True)
            _typed(f"columns[{k}]: fill", [column["fill"]], float, str, type(None))
            flags = [column[name] for name in ("indicator", "other") if name in column]
            _typed(f"columns[{k}]: indicator and other", flags, bool)
        _typed("label", [content["label"]], str, type(None))
        _typed("labels", content["labels"], bool, int, float, str, distinct=True)
        _typed("rows", [content["rows"]], int)
        _typed("missing", content["missing"], str)
        check_choice("impute", content["impute"], (None, "mean", "zero"))
        if content["rows"] < 0:
            raise ValueError(f"rows={content['rows']} must be at least 0")
        columns = [Column(**{**column, "categories": tuple(column["categories"])}) for column in content["columns"]]
        rest = {key: content[key] for key in ("label", "labels", "rows", "missing", "impute")}
        return cls(columns, **rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # as Python wants it of what is equal by content and may change

    def __repr__(self) -> str:
        numbers = sum(c.kind == "number" for c in self.columns)
        return f"Encoding({numbers} numbers, {len(self.columns) - numbers} categories, n_features={self.n_features})"


def _own_names(column: Column) -> list[str]:
    """Return the names of the features of a number or of its categories, without an indicator and other."""
    return [column.name] if column.kind == "number" else [f"{column.name}={text}" for text in column.categories]


def _fields(what: str, content: Any, expected: set[str]) -> None:
    """Raise unless content is a dict with exactly the expected keys."""
    if not isinstance(content, dict) or set(content) != expected:
        got = sorted(map(repr, content)) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{what}: got {got}, expected a dict with the keys {cells.listed(sorted(expected))}")


def _typed(what: str, values: Any, *kinds: type, distinct: bool = False) -> None:
    """Raise unless values is a list of finite values of exactly the given types (a bool is not an int)."""
    if not isinstance(values, list):
        raise ValueError(f"{what}: got {type(values).__name__}, expected a list")
    for value in values:
        fits = not (isinstance(value, float) and not math.isfinite(value)) and type(value) in kinds
        if not fits or (isinstance(value, str) and SURROGATE.search(value)):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{what}: got {value!r:.100}, expected {names} (finite, Unicode)")
    if distinct and len(set(values)) < len(values):
        raise ValueError(f"{what}: {cells.twice(values)[0]!r:.100} occurs more than once")


def note(message: str, *values: object) -> None:
    """Log how a table was changed; the command line prints the message on its own line."""
    logger.info(message, *values, extra={"note": True})


@dataclass
class Summary:
    """Statistics of one column over the rows read so far."""

    kind: str
    declared: bool  # the user or the file says that it is categorical, even if its texts look like numbers
    texts: Any = None  # distinct texts, an Arrow array
    counts: Any = None  # rows per text
    total: float = 0.0
    count: int = 0
    missing: int = 0  # rows without a value
    first_missing: int = 0  # the first of those rows, from 1

    def add_missing(self, gaps: Any, row: int) -> None:
        """Count the gaps of a batch that starts after `row` rows."""
        found = int(np.count_nonzero(gaps))
        if found and not self.missing:
            self.first_missing = row + int(np.argmax(gaps)) + 1
        self.missing += found


@dataclass
class Survey:
    """One pass over training rows."""

    label: str | None
    categories: set[str]
    impute: str | None
    indicators: bool
    min_category_rows: int
    max_categories: int
    rows: int = 0
    summaries: dict[str, Summary] = field(default_factory=dict)
    labels: set[Any] = field(default_factory=set)

    def read(self, batches: Iterator[Any]) -> bool:
        """Read all rows; return False if a column changed its type, which makes the statistics useless."""
        types: Any = None
        for batch in batches:
            if types is None:
                self._start(batch.schema)
            elif batch.schema.types != types:
                return False
            types = batch.schema.types
            for name, summary in self.summaries.items():
                self._add(name, summary, batch.column(name))
            if self.label is not None:
                self._add_labels(self.label, batch.column(self.label))
            self.rows += batch.num_rows
        if not self.rows:
            raise TableError("there are no rows, expected at least one")
        gaps = [(name, found.missing, found.first_missing) for name, found in self.summaries.items() if found.missing]
        if gaps and self.impute is None:
            raise cells.missing_values(gaps)
        return True

    def _start(self, schema: Any) -> None:
        """Say what each column is."""
        for name, kind in zip(schema.names, schema.types, strict=True):
            if name != self.label:
                declared = name in self.categories
                coded = cells.arrow().types.is_dictionary(kind)
                self.summaries[name] = Summary(cells.kind_of(name, kind, declared), declared or coded)
        if not self.summaries:
            raise TableError(f"no column is left for features: got columns {cells.listed(schema.names)}")

    def _add_labels(self, name: str, array: Any) -> None:
        self.labels.update(cells.label_array(name, array, self.rows).unique().to_pylist())
        if len(self.labels) > self.max_categories:
            raise TableError(f"column {name!r} holds more than {self.max_categories} distinct labels, expected classes")

    def _add(self, name: str, summary: Summary, array: Any) -> None:
        if summary.kind == "number":
            values = cells.numbers_of(name, array, self.rows, math.nan)
            summary.add_missing(np.isnan(values), self.rows)
            if self.impute == "mean":
                values = values[~np.isnan(values)]
                with np.errstate(over="ignore"):  # `_number` checks the sum if the mean is needed
                    summary.total += float(values.sum())
                summary.count += len(values)
            return
        texts, codes = cells.distinct_texts(name, array, self.rows)
        counts = np.bincount(codes + 1, minlength=1)
        if counts[0]:
            summary.add_missing(codes < 0, self.rows)
        present = np.flatnonzero(counts[1:])  # a dictionary may hold more than the rows use
        texts, counts = texts.take(cells.arrow().array(present)), counts[1:][present]
        if summary.texts is not None:
            texts = cells.arrow().concat_arrays([summary.texts, texts])
            counts = np.concatenate([summary.counts, counts])
        coded = texts.dictionary_encode()
        summary.texts = coded.dictionary
        summary.counts = np.bincount(coded.indices.to_numpy(), counts).astype(np.int64)
        if len(summary.texts) > self.max_categories:
            raise TableError(
                f"column {name!r} holds more than max_categories={self.max_categories} distinct values "
                f"({len(summary.texts)} in the first {self.rows + len(array)} rows); pass drop=[{name!r}] if it names rows, "
                "or a larger max_categories"
            )

    def columns(self, batches: Callable[[], Iterator[Any]]) -> list[Column]:
        """Return the columns that hold at least one value."""
        empty = [name for name, summary in self.summaries.items() if summary.missing == self.rows]
        if len(empty) == len(self.summaries):
            raise TableError(f"no column is left for features: {cells.listed(empty)} hold no values at all")
        if empty:
            warnings.warn(
                f"column(s) {cells.listed(empty)} hold no values at all and are left out; drop={empty!r} does the same",
                UserWarning,
                stacklevel=2,
            )
        columns = [
            self._number(name, summary) if summary.kind == "number" else self._category(name, summary, batches)
            for name, summary in self.summaries.items()
            if summary.missing < self.rows
        ]
        self._note_missing(columns)
        return columns

    def _note_missing(self, columns: list[Column]) -> None:
        """Say what was done about missing values."""
        with_gaps = [column for column in columns if self.summaries[column.name].missing]
        if not with_gaps:
            return
        done = []
        if any(column.kind == "number" for column in with_gaps):
            value = "the mean" if self.impute == "mean" else "0"
            marked = ", and marked by an indicator feature" if self.indicators else ""
            done.append(f"numbers are filled with {value}{marked}")
        if any(column.kind == "category" for column in with_gaps):
            done.append("missing text is a category of its own")
        counts = [(column.name, self.summaries[column.name].missing) for column in with_gaps]
        shown = [f"{name!r} ({count:,} row{'' if count == 1 else 's'})" for name, count in counts]
        have = "1 column has" if len(with_gaps) == 1 else f"{len(with_gaps)} columns have"
        note("%s missing values: %s: %s", have, "; ".join(done), cells.first_twenty(shown))

    def _number(self, name: str, summary: Summary) -> Column:
        mean: float | None = summary.total / max(summary.count, 1)
        if self.impute == "mean" and not math.isfinite(summary.total):
            if summary.missing:
                raise TableError(
                    f"column {name!r} has no mean: the sum of its values is too large; pass drop=[{name!r}], or fill it in "
                    "or scale it"
                )
            mean = None  # nothing was missing, so that the mean is not needed
        fill = {None: None, "zero": 0.0, "mean": mean}[self.impute]
        return Column(name, "number", fill=fill, indicator=self.indicators and summary.missing > 0)

    def _category(self, name: str, summary: Summary, batches: Callable[[], Iterator[Any]]) -> Column:
        if not summary.declared and len(summary.texts):
            self._check_texts(name, summary.texts, batches)
        counts = Counter[str](dict(zip(summary.texts.to_pylist(), summary.counts.tolist(), strict=True)))
        if self.rows >= IDENTIFIER_MIN_ROWS and len(counts) > IDENTIFIER_SHARE * self.rows:
            warnings.warn(
                f"column {name!r} has {len(counts):,} different values in {self.rows:,} rows: if it names rows, leave it out "
                f"with drop=[{name!r}]",
                UserWarning,
                stacklevel=2,
            )
        missing = MISSING if summary.missing else None
        counts = _canonical(name, counts, missing)
        rare = [text for text, count in counts.items() if count < self.min_category_rows and text != missing]
        other = len(counts) > MANY_CATEGORIES and bool(rare)
        if other:
            grouped = f"{len(rare):,} of them have fewer than {self.min_category_rows} rows"
            note("column %r has %s categories: %s and are grouped as one feature", name, f"{len(counts):,}", grouped)
            for text in rare:
                del counts[text]
            counts = _canonical(name, counts, missing)  # the remaining texts may all be numbers
        texts = list(counts)
        if Column(name, "category", tuple(texts), missing).plain:
            texts = [text for text in texts if text != missing]
            texts.sort(key=lambda text: (float(text) if text[-1] != "e" else -1.0, text))  # true and false end in e
        else:
            texts.sort()
        if summary.missing and MISSING not in texts:
            texts.append(MISSING)
        return Column(name, "category", tuple(texts), missing, other=other)

    def _check_texts(self, name: str, texts: Any, batches: Callable[[], Iterator[Any]]) -> None:
        """Raise if most texts of a column are numbers: one typing error would turn it into hundreds of categories."""
        pc = cells.arrow("pyarrow.compute")
        numeric = pc.match_substring_regex(texts, cells.NUMBER)
        if pc.mean(numeric).as_py() < NUMERIC_SHARE:
            return
        others = texts.filter(pc.invert(numeric))
        if not len(others):
            raise TableError(
                f"column {name!r} is text, but all its values are numbers, like {texts[0].as_py()!r}; convert it to "
                f"numbers, or pass categories=[{name!r}]"
            )
        row = 0
        for batch in batches():
            hits = pc.is_in(batch.column(name).cast(texts.type), value_set=others).to_numpy(zero_copy_only=False)
            if hits.any():
                at = int(np.argmax(hits))
                value = batch.column(name)[at].as_py()
                raise cells.fail(
                    name,
                    row + at + 1,
                    f"got {value!r} in a column of numbers; pass missing=[{value!r}] if it stands for a missing value, "
                    f"or categories=[{name!r}] if the numbers are categories",
                )
            row += batch.num_rows


def _canonical(name: str, counts: Counter[str], fill: str | None) -> Counter[str]:
    """Return the rows of each category, with 3.0 as 3 and True as true where all are numbers or truth values."""
    if not counts or not Column(name, "category", tuple(counts), fill).plain:
        return counts
    shortened = cells.shorter(cells.arrow().array(list(counts), cells.arrow().large_string())).to_pylist()
    found = Counter[str]()
    for text, count in zip(shortened, counts.values(), strict=True):
        found[text] += count
    return found
