"""One pass over the rows of a table: what its columns are, which categories they have, what is missing."""

import logging
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scoreline.io import columns as cells
from scoreline.io.columns import Column, TableError

logger = logging.getLogger("scoreline")

MISSING = "?"  # the category of missing values
ROW_NAME_SHARE, ROW_NAME_MIN_ROWS = (
    0.5,
    50,
)  # a column with this share of distinct texts, in as many rows, looks like names
NUMERIC_SHARE = 0.9  # share of distinct texts that are numbers, from which a text column looks like numbers with slips
MANY_CATEGORIES = 50  # distinct texts beyond which the rare ones of a column are grouped
MIN_CATEGORY_ROWS = 10  # rows below which a category of such a column is rare


def note(message: str, *values: object) -> None:
    """Log what was done about a table; the command line prints it as a line of its own."""
    logger.info(message, *values, extra={"note": True})


@dataclass
class Summary:
    """What the rows so far have shown of a column."""

    kind: str
    declared: bool  # a dictionary, or named in categories: texts that look like numbers are meant
    texts: Any = None  # distinct ones, an Arrow array
    counts: Any = None  # their rows
    total: float = 0.0
    count: int = 0
    missing: int = 0  # rows without a value
    first_missing: int = 0  # the first of them, from 1

    def add_missing(self, gaps: Any, row: int) -> None:
        """Take note of gaps in rows that follow `row` others."""
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
        """Read all rows; False if a column changed its type, and what was seen of it so far is of no use."""
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
                with np.errstate(over="ignore"):  # looked for where the mean is needed
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
        """Return what was learnt of the columns, without those that hold no value at all."""
        empty = [name for name, summary in self.summaries.items() if summary.missing == self.rows]
        if len(empty) == len(self.summaries):
            raise TableError(f"no column is left for features: {cells.listed(empty)} hold no values at all")
        if empty:
            warnings.warn(
                f"column(s) {cells.listed(empty)} hold no values at all and are left out; drop={empty!r} does the same",
                UserWarning,
                stacklevel=2,
            )
        columns = []
        for name, summary in self.summaries.items():
            if summary.missing < self.rows:
                make = self._number if summary.kind == "number" else self._category
                columns.append(make(name, summary, batches))
        self._note_missing(columns)
        return columns

    def _note_missing(self, columns: list[Column]) -> None:
        """Say what was done about missing values."""
        lacking = [column for column in columns if self.summaries[column.name].missing]
        if not lacking:
            return
        done = []
        if any(column.kind == "number" for column in lacking):
            value = "the mean" if self.impute == "mean" else "0"
            marked = ", and marked by an indicator feature" if self.indicators else ""
            done.append(f"numbers are filled with {value}{marked}")
        if any(column.kind == "category" for column in lacking):
            done.append("missing text is a category of its own")
        counts = [(column.name, self.summaries[column.name].missing) for column in lacking]
        shown = [f"{name!r} ({count:,} row{'' if count == 1 else 's'})" for name, count in counts]
        have = "1 column has" if len(lacking) == 1 else f"{len(lacking)} columns have"
        note("%s missing values: %s: %s", have, "; ".join(done), cells.first_twenty(shown))

    def _number(self, name: str, summary: Summary, batches: Any) -> Column:
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
        if self.rows >= ROW_NAME_MIN_ROWS and len(counts) > ROW_NAME_SHARE * self.rows:
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
            counts = _canonical(name, counts, missing)  # those that are left may all be numbers
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
        """Raise if most texts of a column are numbers: a slip would turn it into a hundred categories."""
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
