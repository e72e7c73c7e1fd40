"""How the columns of a table become features: learnt on training rows, kept as JSON, applied to what is predicted."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline._checks import check_choice, check_number
from scoreline._registry import unknown_name
from scoreline._typing import AnyArray
from scoreline.data import table_files as files
from scoreline.data.table_files import TableError

VERSION = 1
SPARSE_BELOW = 0.25  # share of entries per row that can differ from zero, below which a matrix is stored as CSR
MISSING = "?"  # the category of missing values
MOSTLY = 0.9  # share of distinct texts that are numbers, from which a text column looks like numbers with slips
SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can hold them, UTF-8 cannot
# Texts for which 3, 3.0 and 3.00, or True and true, are one category; 007 and 1.2.0 are not among them: they are codes.
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?|(?i:true|false)")


@dataclass(frozen=True)
class Column:
    """A column: name, kind ("number" or "category"), categories in the order of their features, fill for what is missing.

    `fill` is a number, or for categories the one that missing values belong to; None: there is none.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.categories) if self.kind == "category" else 1

    @cached_property
    def plain(self) -> bool:
        """Whether all categories are written like numbers or truth values, so that 3 and 3.0 are the same."""
        return all(PLAIN.fullmatch(text) for text in self.categories if text != self.fill)


class Encoding:
    """How the columns of a table become features.

    Numbers become one feature, categories one feature each that is 1 in their rows. A category is known by its text.
    Integers are written as 3; floats that are whole likewise, others as the shortest text that reads back; truth values
    as true and false; dates in ISO form. Texts are kept as they are, unless all texts of the column are written like
    numbers without leading zeros (then 3.0 becomes 3) or truth values (then True becomes true): so a column means the
    same whether it is read from CSV, as integers or as floats.

    Parameters
    ----------
    columns : sequence of Column
        The columns in the order of their features.
    label : str, optional
        Name of the column of labels.
    labels : sequence of int, float, bool or str
        The distinct labels, sorted.
    rows : int
        Number of rows it was learnt from.
    missing : sequence of str
        Texts that stand for missing values, beyond those that are always understood.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        label: str | None = None,
        labels: Sequence[Any] = (),
        rows: int = 0,
        missing: Sequence[str] = (),
    ):
        self.columns, self.label, self.labels, self.rows = list(columns), label, list(labels), rows
        self.missing, self.unseen = tuple(missing), dict[str, int]()
        self._check()
        self.starts = [0, *np.cumsum([column.width for column in self.columns]).tolist()]
        self._known: dict[str, Any] = {}  # categories as Arrow arrays, made when first needed

    def _check(self) -> None:
        """Raise unless columns, their categories and the names of features are distinct."""
        if not self.columns:
            raise ValueError("an encoding needs at least one column of features")
        names = [column.name for column in self.columns] + ([] if self.label is None else [self.label])
        for what, texts in (("column", names), ("feature", self.names)):
            again = files.twice(texts)
            if again:
                raise ValueError(f"{what} {again[0]!r} occurs more than once in the encoding; rename a column")
        for column in self.columns:
            check_choice(f"the kind of column {column.name!r}", column.kind, ("number", "category"))
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
        """Names of the features: age, color=red, color=? for missing values."""
        return [
            name
            for c in self.columns
            for name in ([c.name] if c.kind == "number" else [f"{c.name}={text}" for text in c.categories])
        ]

    @property
    def storage(self) -> str:
        """Either "dense" or "csr", by how many of a row's entries can differ from zero."""
        return "csr" if len(self.columns) < SPARSE_BELOW * self.n_features else "dense"

    @classmethod
    def learn(
        cls,
        batches: Callable[[], Iterator[Any]],
        *,
        label: str | None = None,
        categories: Iterable[str] = (),
        drop: Iterable[str] = (),
        impute: str | None = None,
        max_categories: int = 100_000,
        missing: Iterable[str] = (),
    ) -> "Encoding":
        """Learn from one pass over training rows (another one each time a column changes its type on the way).

        Parameters
        ----------
        batches : callable
            Returns an iterator of `pyarrow.RecordBatch`.
        label : str, optional
            Name of the column of labels.
        categories : iterable of str
            Columns that are categories though they hold numbers, dates, or texts that look like numbers.
        drop : iterable of str
            Columns that are left out.
        impute : {None, "mean", "zero"}
            What missing numbers become; missing categories become a category of their own. None: they are an error.
        max_categories : int
            Most categories of a column, and most labels.
        missing : iterable of str
            Kept in the encoding, for those who read further tables.

        Returns
        -------
        Encoding
            The encoding. It does not depend on the order of the rows, up to rounding of the means.
        """
        check_choice("impute", impute, (None, "mean", "zero"))
        check_number("max_categories", max_categories, least=1, integer=True)
        for _ in range(1000):  # a source widens a type only so often; others that do not settle must not run for ever
            survey = _Survey(
                label, files.names_of("categories", categories), files.names_of("drop", drop), impute, max_categories
            )
            if survey.read(batches()):
                columns = [survey.column(name, batches) for name in survey.seen]
                if not survey.rows:
                    raise TableError("there are no rows, expected at least one")
                labels = sorted(survey.labels)
                return cls(columns, label=label, labels=labels, rows=survey.rows, missing=tuple(missing))
        raise TableError("the types of columns differ between batches; give every batch the same schema")

    def encode(self, batch: Any, first_row: int = 0) -> Any:
        """Return the features of a batch; unseen categories are no feature and are counted in `unseen`.

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
        absent = [c.name for c in self.columns if c.name not in batch.schema.names]
        if absent:
            raise TableError(
                f"column(s) {files.listed(absent)} are missing, the encoding was learnt with them; "
                f"got columns {files.listed(batch.schema.names)}"
            )
        n, sparse = batch.num_rows, self.storage == "csr"
        shape = (n, len(self.columns)) if sparse else (n, self.n_features)
        X, places = np.zeros(shape), np.empty(shape if sparse else (0, 0), dtype=np.int32)
        for k, (column, start) in enumerate(zip(self.columns, self.starts, strict=False)):
            array = batch.column(column.name)
            if column.kind == "number":
                X[:, k if sparse else start] = files.numbers_of(column.name, array, first_row, column.fill)
                if sparse:
                    places[:, k] = start
                continue
            codes = self._codes(column, array, first_row)
            if sparse:
                X[:, k], places[:, k] = codes >= 0, start + codes
            else:
                rows = np.flatnonzero(codes >= 0)
                X[rows, start + codes[rows]] = 1.0
        if not sparse:
            return X
        kept = X != 0  # columns stand in the order of their features: what is kept of a row is sorted
        indptr = np.zeros(n + 1, dtype=np.int32 if X.size < 2**31 else np.int64)
        np.cumsum(kept.sum(axis=1), out=indptr[1:])
        return sp.csr_array((X[kept], places[kept].astype(indptr.dtype, copy=False), indptr), (n, self.n_features))

    def _codes(self, column: Column, array: Any, first_row: int) -> AnyArray:
        """Return the position of each row's category, -1 if it is unseen, which is counted."""
        pc = files.arrow("pyarrow.compute")
        if column.name not in self._known:
            self._known[column.name] = files.arrow().array(column.categories, files.arrow().large_string())
        texts, codes = files.distinct_texts(column.name, array, first_row)
        found = pc.index_in(files.shorter(texts) if column.plain else texts, value_set=self._known[column.name])
        lost = -1 if column.fill is None else column.categories.index(str(column.fill))
        table = np.append(found.fill_null(-1).to_numpy(zero_copy_only=False), lost)  # code -1 takes the last
        codes = table[codes]
        unseen = int(np.count_nonzero(codes < 0))
        if unseen:
            self.unseen[column.name] = self.unseen.get(column.name, 0) + unseen
        return np.asarray(codes)

    def forget_unseen(self) -> None:
        """Count unseen categories from zero again."""
        self.unseen.clear()

    def labels_of(self, batch: Any, first_row: int = 0) -> AnyArray:
        """Return the labels of a batch as int64, float64, bool or unicode; `first_row` is for messages."""
        if self.label is None or self.label not in batch.schema.names:
            raise TableError(f"the column of labels, {self.label!r}, is not in {files.listed(batch.schema.names)}")
        return files.label_values(self.label, batch.column(self.label), first_row)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists, strings and numbers from which `from_json` makes the same encoding."""
        columns = [
            {"name": c.name, "kind": c.kind, "categories": list(c.categories), "fill": c.fill} for c in self.columns
        ]
        rest = {"label": self.label, "labels": list(self.labels), "rows": self.rows, "missing": list(self.missing)}
        return {"version": VERSION, "columns": columns, **rest}

    @classmethod
    def from_json(cls, content: Any) -> "Encoding":
        """Return the encoding that `to_json` wrote; anything else is an error that says what is wrong."""
        _fields("the encoding", content, {"version", "columns", "label", "labels", "rows", "missing"})
        _typed("version", [content["version"]], int)
        if content["version"] != VERSION:
            raise ValueError(f"the encoding has version={content['version']!r}, expected {VERSION}")
        _typed("columns", content["columns"], dict)
        for k, column in enumerate(content["columns"]):
            _fields(f"columns[{k}]", column, {"name", "kind", "categories", "fill"})
            _typed(f"columns[{k}]: name and kind", [column["name"], column["kind"]], str)
            _typed(f"columns[{k}]: categories", column["categories"], str, distinct=True)
            _typed(f"columns[{k}]: fill", [column["fill"]], float, str, type(None))
        _typed("label", [content["label"]], str, type(None))
        _typed("labels", content["labels"], bool, int, float, str, distinct=True)
        _typed("rows", [content["rows"]], int)
        _typed("missing", content["missing"], str)
        if content["rows"] < 0:
            raise ValueError(f"rows={content['rows']} must be at least 0")
        columns = [Column(c["name"], c["kind"], tuple(c["categories"]), c["fill"]) for c in content["columns"]]
        rest = {key: content[key] for key in ("label", "labels", "rows", "missing")}
        return cls(columns, **rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        numbers = sum(c.kind == "number" for c in self.columns)
        return f"Encoding({numbers} numbers, {len(self.columns) - numbers} categories, n_features={self.n_features})"


@dataclass
class _Seen:
    """What the rows so far have shown of a column."""

    kind: str
    declared: bool  # a dictionary, or named in categories: texts that look like numbers are meant
    known: Any = None
    total: float = 0.0
    count: int = 0
    missing: bool = False


@dataclass
class _Survey:
    """One pass over training rows."""

    label: str | None
    categories: list[str]
    drop: list[str]
    impute: str | None
    most: int
    rows: int = 0
    seen: dict[str, _Seen] = field(default_factory=dict)
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
            for name, seen in self.seen.items():
                self._add(name, seen, batch.column(name))
            if self.label is not None:
                self.labels.update(
                    files.label_array(self.label, batch.column(self.label), self.rows).unique().to_pylist()
                )
                if len(self.labels) > self.most:
                    raise TableError(
                        f"column {self.label!r} holds more than {self.most} distinct labels, expected classes"
                    )
            self.rows += batch.num_rows
        return True

    def _start(self, schema: Any) -> None:
        """Say what each column is."""
        names = schema.names
        if files.twice(names):
            raise TableError(f"column {files.twice(names)[0]!r} occurs more than once; rename one")
        labels = [] if self.label is None else [self.label]
        for argument, given in (("label", labels), ("categories", self.categories), ("drop", self.drop)):
            for name in given:
                if name not in names:
                    raise unknown_name(argument, name, names)
                if argument != "label" and name in (*labels, *(self.drop if argument == "categories" else ())):
                    raise ValueError(f"{argument}: column {name!r} is the label or dropped as well; name it once")
        for name in names:
            if name not in (*labels, *self.drop):
                declared = name in self.categories
                kind = files.kind_of(name, schema.field(name).type, declared)
                self.seen[name] = _Seen(kind, declared or files.arrow().types.is_dictionary(schema.field(name).type))
        if not self.seen:
            raise TableError(f"no column is left for features: got columns {files.listed(names)}")

    def _add(self, name: str, seen: _Seen, array: Any) -> None:
        """Take note of the rows of a batch."""
        if seen.kind == "number":
            values = files.numbers_of(name, array, self.rows, None if self.impute is None else math.nan)
            if self.impute == "mean":
                values = values[~np.isnan(values)]
                with np.errstate(over="ignore"):  # looked for where the mean is needed
                    seen.total += float(values.sum())
                seen.count += len(values)
            return
        texts, codes = files.distinct_texts(name, array, self.rows)
        counts = np.bincount(codes + 1, minlength=1)
        seen.missing |= bool(counts[0])
        if counts[0] and self.impute is None:
            raise files.missing_value(name, self.rows + int(np.argmax(codes < 0)) + 1)
        present = np.flatnonzero(counts[1:])  # a dictionary may hold more than the rows use
        texts = texts.take(files.arrow().array(present))
        seen.known = texts if seen.known is None else files.arrow().concat_arrays([seen.known, texts]).unique()
        if len(seen.known) > self.most:
            raise TableError(
                f"column {name!r} holds more than max_categories={self.most} distinct values "
                f"({len(seen.known)} in the first {self.rows + len(array)} rows); pass drop=[{name!r}] if it names rows, "
                "or a larger max_categories"
            )

    def column(self, name: str, batches: Callable[[], Iterator[Any]]) -> Column:
        """Return what was learnt of a column."""
        seen = self.seen[name]
        if seen.kind == "number":
            if self.rows and self.impute == "mean" and not (seen.count and math.isfinite(seen.total)):
                why = "the sum of its values is too large" if seen.count else "it has no values at all"
                raise TableError(f"column {name!r} has no mean: {why}; pass drop=[{name!r}], or fill it in or scale it")
            fill = {None: None, "zero": 0.0, "mean": seen.total / max(seen.count, 1)}[self.impute]
            return Column(name, "number", fill=fill)
        if not seen.declared and seen.known is not None and len(seen.known):
            self._check_texts(name, seen.known, batches)
        texts = [] if seen.known is None else seen.known.to_pylist()
        if Column(name, "category", tuple(texts)).plain:
            texts = list(set(files.shorter(seen.known).to_pylist())) if texts else []
            texts.sort(key=lambda text: (float(text) if text[-1] != "e" else -1.0, text))  # true and false end in e
        else:
            texts.sort()
        if seen.missing and MISSING not in texts:
            texts.append(MISSING)
        return Column(name, "category", tuple(texts), MISSING if seen.missing else None)

    def _check_texts(self, name: str, texts: Any, batches: Callable[[], Iterator[Any]]) -> None:
        """Raise if most texts of a column are numbers: a slip would turn it into a hundred categories."""
        pc = files.arrow("pyarrow.compute")
        numeric = pc.match_substring_regex(texts, files.NUMBER)
        if pc.mean(numeric).as_py() < MOSTLY:
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
                raise files.fail(
                    name,
                    row + at + 1,
                    f"got {value!r} in a column of numbers; pass missing=[{value!r}] if it stands for a missing value, "
                    f"or categories=[{name!r}] if the numbers are categories",
                )
            row += batch.num_rows


def _fields(what: str, content: Any, expected: set[str]) -> None:
    """Raise unless content is a dict with exactly the expected keys."""
    if not isinstance(content, dict) or set(content) != expected:
        got = sorted(map(repr, content)) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{what}: got {got}, expected a dict with the keys {files.listed(sorted(expected))}")


def _typed(what: str, values: Any, *kinds: type, distinct: bool = False) -> None:
    """Raise unless values is a list of the given types exactly (a bool is no int), finite, distinct if asked."""
    if not isinstance(values, list):
        raise ValueError(f"{what}: got {type(values).__name__}, expected a list")
    for value in values:
        fits = not (isinstance(value, float) and not math.isfinite(value)) and type(value) in kinds
        if not fits or (isinstance(value, str) and SURROGATE.search(value)):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{what}: got {value!r:.100}, expected {names} (finite, Unicode)")
    if distinct and len(set(values)) < len(values):
        raise ValueError(f"{what}: {files.twice(values)[0]!r:.100} occurs more than once")
