"""Tables (CSV, Parquet, Arrow, frames) as matrices: opened once, read in blocks, encoded as an `Encoding` says."""

import contextlib
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scoreline.io.assembly import assembled
from scoreline.io.columns import TableError, arrow, is_text, label_values, listed, names_of, twice
from scoreline.io.encoding import Encoding
from scoreline.io.frames import from_frame
from scoreline.io.survey import MIN_CATEGORY_ROWS
from scoreline.io.table_files import ArrowTable, CsvTable, MemoryTable, ParquetTable
from scoreline.runtime.registry import unknown_name
from scoreline.runtime.types import AnyArray

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PACKED = (".gz", ".bz2", ".xz", ".zst")
LEARNT = {"impute": "mean", "indicators": True, "min_category_rows": MIN_CATEGORY_ROWS}  # options with their defaults
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


class Table:
    """A table that can be read again and again, in blocks of rows.

    `Table.open` makes one.

    Parameters
    ----------
    source : object
        Has `names`, `rows` (None if not known) and `batches(columns, exact, text)`.
    name : str
        What errors call it.
    missing : sequence of str
        Texts that stand for missing values.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    """

    def __init__(self, source: Any, name: str, missing: Iterable[str] = ()):
        self.source, self.name, self.missing = source, name, tuple(missing)
        self.lines = source  # where lines are looked up
        self.columns = list(source.names)
        self._known = frozenset(self.columns)  # so that looking up all columns takes time linear in their number
        if twice(self.columns):
            raise ValueError(f"{name}: column {twice(self.columns)[0]!r} occurs more than once; rename one")
        if not self.columns:
            raise ValueError(f"{name} has no columns")

    @classmethod
    def open(cls, source: Any, *, missing: Iterable[str] = (), separator: str | None = None) -> "Table":
        """Open a file or wrap a frame.

        Parameters
        ----------
        source : path, pandas or polars frame, pyarrow Table or RecordBatch
            Files are known by their suffix: .csv and .tsv (also .csv.gz, .bz2, .xz, .zst), .parquet or .pq, and .arrow,
            .feather or .ipc. CSV is UTF-8 with a header.
        missing : iterable of str
            Texts that stand for missing values. CSV has its usual ones besides: empty, NA, N/A, n/a, NaN, nan, NULL, null.
        separator : str, optional
            Character between the values of CSV; by default a comma, a tab for .tsv.

        Returns
        -------
        Table
            The table; of a file only the beginning has been read.
        """
        markers = names_of("missing", missing)
        for marker in markers:
            if not _is_unicode(marker):
                raise ValueError(f"missing holds {marker!r}, which is not valid Unicode text; it cannot be in a table")
        if not isinstance(source, (str, Path)):
            if separator is not None:
                raise ValueError(f"separator={separator!r} is for CSV files, source is a {type(source).__name__}")
            return cls(MemoryTable(from_frame(source)), "the table", markers)
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        suffixes = [suffix.lower() for suffix in path.suffixes]
        packed = suffixes[-1:] if suffixes[-1:] and suffixes[-1] in PACKED else []
        suffix = "".join(suffixes[-1 - len(packed) :][:1])
        if path.is_dir() or suffix not in (*SEPARATORS, *(() if packed else PARQUET + ARROW)):
            raise ValueError(
                f"{path} is no file that can be read; expected one that ends in {listed((*SEPARATORS, *PARQUET, *ARROW))}, "
                f"or .csv or .tsv followed by one of {listed(PACKED)}"
            )
        if not _is_unicode(str(path)):
            raise ValueError(
                f"{path}: the name of the file is not valid Unicode, and pyarrow cannot open it; rename the file, or set "
                "PYTHONUTF8=1 if the name is UTF-8 and the locale is not"
            )
        if suffix in SEPARATORS:
            mark = SEPARATORS[suffix] if separator is None else separator
            if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '\r\n"':
                raise ValueError(f"separator={separator!r} must be one ASCII character, like ',' or ';'")
            return cls(CsvTable(path, mark, markers), str(path), markers)
        if separator is not None:
            raise ValueError(f"separator={separator!r} is for CSV files, got {path}")
        return cls(ParquetTable(path) if suffix in PARQUET else ArrowTable(path), str(path), markers)

    def has(self, name: Any) -> bool:
        """Tell whether the table has a column of this name."""
        return isinstance(name, str) and name in self._known

    def batches(
        self, columns: Iterable[str] | None = None, *, exact: Iterable[str] = (), text: Iterable[str] = ()
    ) -> Iterator[Any]:
        """Yield the rows as `pyarrow.RecordBatch`, of at most 65,536 rows each; every call starts from the first.

        Parameters
        ----------
        columns : iterable of str, optional
            The columns to read; by default all.
        exact : iterable of str
            Columns of a CSV file whose integers stay integers: labels. Others become float64.
        text : iterable of str
            Columns of a CSV file that stay text: categories.

        Yields
        ------
        pyarrow.RecordBatch
            Rows. Where CSV has text in a column that began with numbers, its type changes; the next call knows it.
        """
        chosen = self.columns if columns is None else list(columns)
        for name in chosen:
            if not self.has(name):
                raise unknown_name("column", name, self.columns)
        for batch in self.source.batches(chosen, set(exact), set(text)):
            yield self._without_markers(batch)

    def _without_markers(self, batch: Any) -> Any:
        """Return a batch with null for texts that stand for missing values; CSV has been read so."""
        if not self.missing or isinstance(self.lines, CsvTable):
            return batch
        pa, pc = arrow(), arrow("pyarrow.compute")
        lost, marks = pa.scalar(None, pa.large_string()), pa.array(self.missing, pa.large_string())
        arrays = []
        for array in batch.columns:
            coded = pa.types.is_dictionary(array.type)
            if is_text(array.type.value_type if coded else array.type):
                words = (array.dictionary if coded else array).cast(pa.large_string())
                words = pc.if_else(pc.is_in(words, marks), lost, words)
                array = pa.DictionaryArray.from_arrays(array.indices, words) if coded else words
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _loaded(self, columns: Iterable[str] | None = None, *, text: Iterable[str] = ()) -> "Table":
        """Return a table of some columns that is read fast twice: CSV is parsed once by all threads, others stay."""
        if not isinstance(self.source, CsvTable):
            return self
        chosen = self.columns if columns is None else list(columns)
        loaded = Table(MemoryTable(self.source.load(chosen, text)), self.name, self.missing)
        loaded.lines = self.source
        return loaded

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Add the name of the table, and for CSV the line, to errors about its content."""
        try:
            yield
        except TableError as error:
            line = self.lines.line_of(error.row) if error.row and isinstance(self.lines, CsvTable) else None
            where = self.name if line is None else f"{self.name}, line {line}"
            raise ValueError(f"{where}: {error}") from error


def _is_unicode(text: str) -> bool:
    """Tell whether UTF-8 can hold a text: names of files and arguments of programs may have bytes that are not characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def learn_table(
    table: Table,
    label: str | None,
    *,
    categories: Iterable[str] = (),
    drop: Iterable[str] = (),
    **options: Any,
) -> Encoding:
    """Learn the encoding of a table; columns that are dropped are not read.

    Parameters
    ----------
    table : Table
        The training rows.
    label : str or None
        Name of the column of labels.
    categories, drop, **options
        As for `Encoding.learn`: impute, indicators, min_category_rows, max_categories.

    Returns
    -------
    Encoding
        The encoding.
    """
    wanted, dropped = _checked_names(table, label, categories, drop)
    left_out = set(dropped)
    kept = [name for name in table.columns if name not in left_out]
    with table.named():
        return Encoding.learn(
            lambda: table.batches(kept, exact=[] if label is None else [label], text=wanted),
            label=label,
            categories=wanted,
            missing=table.missing,
            **options,
        )


def table_blocks(table: Table, encoding: Encoding, label: str | None = None) -> Iterator[tuple[Any, AnyArray | None]]:
    """Yield blocks of features with their labels, in bounded memory.

    Parameters
    ----------
    table : Table
        The rows; columns in any order, others than those of the encoding are not read.
    encoding : Encoding
        How columns become features.
    label : str, optional
        Name of the column of labels.

    Yields
    ------
    tuple
        A dense or CSR block as `encoding.storage` says, and its labels or None.
    """
    columns, text = _needed(table, encoding, label)
    row = 0
    with table.named():
        for batch in table.batches(columns, exact=[] if label is None else [label], text=text):
            y = None if label is None else label_values(label, batch.column(label), row)
            yield encoding.encode(batch, row), y
            row += batch.num_rows


def read_table(
    source: Any,
    label: str | None = None,
    *,
    categories: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Iterable[str] = (),
    impute: str | None = "mean",
    indicators: bool = True,
    min_category_rows: int = MIN_CATEGORY_ROWS,
    max_categories: int = 100_000,
    encoding: Encoding | None = None,
    separator: str | None = None,
) -> tuple[Any, AnyArray | None, Encoding]:
    r"""Read a table as a matrix of features, labels, and the encoding that makes the same features of other tables.

    Numbers and truth values become one feature, texts one feature per category. Missing numbers are filled in and marked by
    an indicator feature; rare categories of a column with many are grouped. CSV is parsed once by all threads;
    Parquet and Arrow files are read twice in blocks. Beyond the result, memory is needed for the columns of CSV, or for
    the blocks of a CSR matrix before they are joined.

    Parameters
    ----------
    source : path, pandas or polars frame, pyarrow Table or RecordBatch
        CSV, TSV (plain or compressed), Parquet, Arrow IPC or Feather by the suffix; see `Table.open`.
    label : str, optional
        Name of the column of labels; needed unless `encoding` is given.
    categories : iterable of str
        Columns that are categories though they hold numbers or dates.
    drop : iterable of str
        Columns that are left out.
    missing : iterable of str
        Texts that stand for missing values, like "?"; the encoding keeps them.
    impute : {"mean", "zero", "none", None}
        The value of missing numbers; missing categories become a category of their own. "none" or None: they are an error.
    indicators : bool
        Give each number column in which values are missing a second feature, which is 1 where the value is missing.
    min_category_rows : int
        In a column of more than 50 categories, categories with fewer rows than this become one feature together.
    max_categories : int
        Most distinct values of a column of categories.
    encoding : Encoding, optional
        The one of the training table, for a test table: its features in its order. Categories that it does not know are
        no feature, with a warning.
    separator : str, optional
        Character between the values of CSV; by default a comma, a tab for .tsv.

    Returns
    -------
    tuple
        X, a float64 array or `scipy.sparse.csr_array` as `encoding.storage` says; the labels as int64, float64, bool or
        unicode array, None without `label`; and the encoding.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from scoreline.io.tables import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("age,color,bought\n31,red,yes\n45,blue,no\n")
    >>> X, y, encoding = read_table(path, "bought")
    >>> encoding.names, X.tolist(), y.tolist()
    (['age', 'color=blue', 'color=red'], [[31.0, 0.0, 1.0], [45.0, 1.0, 0.0]], ['yes', 'no'])
    """
    rest: Any = {"missing": missing, "encoding": encoding, "separator": separator, "max_categories": max_categories}
    rest |= {"impute": impute, "indicators": indicators, "min_category_rows": min_category_rows}
    return load_table(source, label, categories=categories, drop=drop, **rest)


def load_table(
    source: Any,
    label: str | None,
    *,
    categories: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Iterable[str] = (),
    encoding: Encoding | None = None,
    separator: str | None = None,
    **options: Any,
) -> tuple[Any, AnyArray | None, Encoding]:
    """Do the work of `read_table`, whose defaults hold for the options that are not given."""
    markers, known = names_of("missing", missing), encoding is not None
    if encoding is not None:
        check_encoding(encoding, {"categories": categories, "drop": drop, **options})
        markers = [*markers, *encoding.missing]
    table = Table.open(source, missing=markers, separator=separator)
    if encoding is None:
        if label is None:
            raise ValueError(f"{table.name}: label=None, expected the column of labels: one of {listed(table.columns)}")
        wanted, dropped = _checked_names(table, label, categories, drop)
        left_out = set(dropped)
        table = table._loaded([name for name in table.columns if name not in left_out], text=wanted)
        dropped = [name for name in dropped if table.has(name)]
        encoding = learn_table(table, label, categories=wanted, drop=dropped, **options)
        rows = encoding.rows
    else:
        columns, text = _needed(table, encoding, label)
        table = table._loaded(columns, text=text)
        rows = table.source.rows
    if not rows:
        raise ValueError(f"{table.name} holds no rows, expected at least one")
    encoding.forget_unseen()
    with table.named():
        X, y = assembled(table_blocks(table, encoding, label), encoding, rows)
    if known:
        warn_unseen(encoding, source, rows)
    return X, y, encoding


def check_encoding(encoding: Any, options: Mapping[str, Any]) -> None:
    """Raise unless it is an encoding, and no option comes with it that it has settled."""
    if not isinstance(encoding, Encoding):
        raise ValueError(f"encoding is a {type(encoding).__name__}, expected an Encoding")
    settled = [names_of(name, options.get(name) or ()) for name in ("categories", "drop")]
    if any(settled) or any(options.get(name, default) != default for name, default in LEARNT.items()):
        raise ValueError(
            "categories, drop, impute, indicators and min_category_rows are part of encoding=...; pass them when it is learnt"
        )


def warn_unseen(encoding: Encoding, source: Any, rows: int) -> None:
    """Warn of values that the training rows did not have, with their counts."""
    name = str(source) if isinstance(source, (str, Path)) else "the table"
    for counts, what, done in (
        (encoding.unseen, "unseen categories", "they count as none of the known ones"),
        (encoding.filled, "missing values in columns without an indicator feature", "filled as in training"),
    ):
        if not counts:
            continue
        shown = ", ".join(f"{column} {count} of {rows} rows" for column, count in counts.items())
        message = f"{name}: {what}: {shown}; {done}"
        level, frame = 1, inspect.currentframe()
        while frame is not None and frame.f_globals.get("__name__", "").startswith("scoreline."):
            level, frame = level + 1, frame.f_back  # the line of the caller, whichever function was called
        warnings.warn(message, UserWarning, stacklevel=level)


def _checked_names(table: Table, label: Any, categories: Any, drop: Any) -> tuple[list[str], list[str]]:
    """Return categories and drop as lists, or raise if a name is unknown or used twice."""
    wanted, dropped = names_of("categories", categories), names_of("drop", drop)
    for argument, names in (("label", [] if label is None else [label]), ("categories", wanted), ("drop", dropped)):
        for name in names:
            _check_name(table, argument, name)
    both = set(dropped) & {label, *wanted} or {label} & set(wanted)
    if both:
        raise ValueError(f"column {both.pop()!r} is named more than once among label, categories and drop; choose one")
    return wanted, dropped


def _check_name(table: Table, argument: str, name: Any) -> None:
    """Raise unless the table has a column of this name."""
    if table.has(name):
        return
    error = unknown_name(argument, name, table.columns)
    only = table.columns[0] if len(table.columns) == 1 and isinstance(table.lines, CsvTable) else ""
    marks = [mark for mark in ";\t|," if mark in only]
    hint = f" The header is one name; pass separator={marks[0]!r}?" if marks else ""
    raise ValueError(f"{table.name}: {error}{hint}")


def _needed(table: Table, encoding: Encoding, label: str | None) -> tuple[list[str], list[str]]:
    """Return the columns to read for an encoding, and which of them as text."""
    absent = [c.name for c in encoding.columns if not table.has(c.name)]
    if absent:
        raise ValueError(
            f"{table.name}: column(s) {listed(absent)} are not there, the encoding was learnt with them; got the columns "
            f"{listed(table.columns)}"
        )
    if label is not None:
        _check_name(table, "label", label)
    names = [c.name for c in encoding.columns]
    if label in names:
        raise ValueError(f"label={label!r} is a feature of the encoding; pass the column of labels, or None")
    return names + ([] if label is None else [label]), [c.name for c in encoding.columns if c.kind == "category"]
