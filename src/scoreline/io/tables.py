"""Tables (CSV, Parquet, Arrow, frames) that can be read several times, in batches of rows."""

import base64
import contextlib
import csv
import io
import itertools
import lzma
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from scoreline.io.columns import TableError, arrow, as_dictionary, is_text, listed, names_of, twice
from scoreline.runtime.registry import unknown_name

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PACKED = (".gz", ".bz2", ".xz", ".zst")
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
TABLES = (*SEPARATORS, *PARQUET, *ARROW)
CSV_BLOCK_BYTES = 1 << 22  # text that is parsed at once; no value can be longer
MAX_BATCH_ROWS = 65_536
MAX_BATCH_CELLS = 1 << 24  # limits the rows of tables with many columns
MAX_RELEASE_SECONDS = 10.0  # how long to wait for Arrow's threads to release a Python file


class Table(ABC):
    """A table in a file or in memory; `open_table` makes one.

    `rows` is None if it is not known. `missing` are texts that stand for missing values.
    """

    rows: int | None = None

    def __init__(self, name: str, columns: Iterable[str], missing: Iterable[str] = ()):
        self.name, self.columns, self.missing = name, list(columns), tuple(missing)
        self._known = frozenset(self.columns)  # for lookups in constant time
        if twice(self.columns):
            raise ValueError(f"{name}: column {twice(self.columns)[0]!r} occurs more than once; rename one")
        if not self.columns:
            raise ValueError(f"{name} has no columns")

    def has(self, name: Any) -> bool:
        """Tell whether the table has a column of this name."""
        return isinstance(name, str) and name in self._known

    def batches(
        self, columns: Iterable[str] | None = None, *, exact: Iterable[str] = (), text: Iterable[str] = ()
    ) -> Iterator[Any]:
        """Yield the rows as `pyarrow.RecordBatch` of at most 65,536 rows; every call starts from the first row.

        In CSV files, columns in `exact` (labels) keep integers as integers, while others become float64. Columns in `text`
        (categories) stay text. If text follows in a column that began with numbers, the column changes its type, and later
        calls use the new type from the start.
        """
        chosen = self.columns if columns is None else list(columns)
        for name in chosen:
            if not self.has(name):
                raise unknown_name("column", name, self.columns)
        yield from map(self._without_markers, self._read(chosen, set(exact), set(text)))

    @abstractmethod
    def _read(self, columns: list[str], exact: set[str], text: set[str]) -> Iterator[Any]:
        """Yield batches of some columns."""

    def _without_markers(self, batch: Any) -> Any:
        """Return a batch with null for texts that stand for missing values."""
        if not self.missing:
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

    def loaded(self, columns: list[str], text: Iterable[str]) -> "Table":
        """Return a table of some columns that is fast to read twice: CSV is parsed into memory, others are not changed."""
        return self

    def line_of(self, row: int) -> int | None:
        """Return the line of a row (from 1), if it has one that can be found."""
        return None

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Add the name of the table, and for CSV the line, to errors about its content."""
        try:
            yield
        except TableError as error:
            line = self.line_of(error.row) if error.row else None
            where = self.name if line is None else f"{self.name}, line {line}"
            raise ValueError(f"{where}: {error}") from error


def open_table(source: Any, *, missing: Iterable[str] = (), separator: str | None = None) -> Table:
    """Open a file by its suffix, or wrap a frame; see `read_data`. Only the beginning of a file is read."""
    markers = names_of("missing", missing)
    for marker in markers:
        if not _is_unicode(marker):
            raise ValueError(f"missing holds {marker!r}, which is not valid Unicode text; it cannot be in a table")
    if not isinstance(source, (str, Path)):
        if separator is not None:
            raise ValueError(f"separator={separator!r} is for CSV files, source is a {type(source).__name__}")
        return MemoryTable(from_frame(source), "the table", markers)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    suffix = unpacked_suffix(path)
    if path.is_dir() or suffix not in (SEPARATORS if path.suffix.lower() in PACKED else TABLES):
        raise ValueError(
            f"{path} is not a readable file; expected one that ends in {listed(TABLES)}, "
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
        return CsvTable(path, mark, markers)
    if separator is not None:
        raise ValueError(f"separator={separator!r} is for CSV files, got {path}")
    return (ParquetTable if suffix in PARQUET else ArrowTable)(path, markers)


def unpacked_suffix(path: Path) -> str:
    """Return the suffix that tells the format of a file, in small letters: .csv of x.CSV.gz."""
    return (Path(path.stem) if path.suffix.lower() in PACKED else path).suffix.lower()


def _is_unicode(text: str) -> bool:
    """Tell whether UTF-8 can hold a text: file names and arguments may contain bytes that are not characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_frame(source: Any) -> Any:
    """Return a frame as a `pyarrow.Table`, without importing pandas or polars."""
    package = type(source).__module__.partition(".")[0]
    pa: Any = arrow() if package in ("pandas", "polars", "pyarrow") else None
    if package == "pyarrow" and isinstance(source, pa.Table):
        return source
    if package == "pyarrow" and isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if package == "polars" and hasattr(source, "to_arrow") and hasattr(source, "columns"):
        try:
            return source.to_arrow()
        except Exception as error:  # polars has its own errors, which cannot be named without importing it
            raise ValueError(f"the frame cannot be converted to Arrow ({error}); drop columns of objects") from error
    if package == "pandas" and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        if twice(names):
            raise ValueError(f"the frame has the column {twice(names)[0]!r} more than once; rename one")
        for name, dtype in zip(names, source.dtypes, strict=True):
            if type(dtype).__name__ == "SparseDtype" or getattr(dtype, "kind", "") == "c":
                raise ValueError(
                    f"column {name!r} has dtype {dtype}, expected real numbers or text that is not sparse; convert it with "
                    "astype, or for sparse features pass a matrix of scipy.sparse instead of a table"
                )
        try:
            return pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            message = "; ".join(map(str, error.args))
            found = re.search(r"Conversion failed for column (.*) with type", message, re.S)
            where = f"column {found[1]!r}" if found else "the frame"
            raise ValueError(f"{where} mixes types or holds objects ({message}); convert it with astype") from error
    hint = "; call collect() first" if type(source).__name__ == "LazyFrame" else ""
    raise ValueError(
        f"source is a {type(source).__name__}, expected a path, a pandas or polars frame, or a pyarrow table{hint}"
    )


@contextlib.contextmanager
def _readable(path: Path, what: str) -> Iterator[None]:
    """Turn errors of pyarrow into ValueErrors that name the file."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError, TableError):
        raise
    except (arrow().ArrowException, OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise ValueError(
            f"{path} cannot be read as {what} ({error}); it is damaged or not what its name says"
        ) from error


def _batch_rows(columns: list[str]) -> int:
    return int(min(MAX_BATCH_ROWS, max(256, MAX_BATCH_CELLS // max(len(columns), 1))))


class MemoryTable(Table):
    """A `pyarrow.Table`."""

    def __init__(self, table: Any, name: str, missing: Iterable[str] = ()):
        super().__init__(name, table.column_names, missing)
        self.table, self.rows = table, table.num_rows

    def _read(self, columns: list[str], exact: set[str], text: set[str]) -> Iterator[Any]:
        yield from self.table.select(columns).to_batches(max_chunksize=_batch_rows(columns))


class ParquetTable(Table):
    """A Parquet file."""

    def __init__(self, path: Path, missing: Iterable[str] = ()):
        self.path = path
        with _readable(path, "Parquet"), arrow("pyarrow.parquet").ParquetFile(path) as file:
            self.rows = file.metadata.num_rows
            self.dictionaries = _lost_dictionaries(file)
            names = file.schema_arrow.names
        super().__init__(str(path), names, missing)

    def _read(self, columns: list[str], exact: set[str], text: set[str]) -> Iterator[Any]:
        """Yield batches; memory holds one batch and one page per column."""
        with _readable(self.path, "Parquet"), arrow("pyarrow.parquet").ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(_batch_rows(columns), columns=columns):
                batch.validate(full=True)  # checks that texts are UTF-8
                yield self._restored(batch.select(columns))

    def _restored(self, batch: Any) -> Any:
        """Return a batch in which columns that were written as dictionaries are dictionaries again."""
        names = batch.schema.names
        if self.dictionaries.isdisjoint(names):
            return batch
        columns = zip(names, batch.columns, strict=True)
        arrays = [as_dictionary(array) if name in self.dictionaries else array for name, array in columns]
        return arrow().RecordBatch.from_arrays(arrays, names=names)


def _lost_dictionaries(file: Any) -> frozenset[str]:
    """Return the columns that were dictionaries when they were written; pyarrow only restores those of texts."""
    stored = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return frozenset()
    pa = arrow()
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
    except (ValueError, pa.ArrowException, OSError):  # the values can be read without the schema
        return frozenset()
    were = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    return frozenset(f.name for f in file.schema_arrow if f.name in were and not pa.types.is_dictionary(f.type))


class ArrowTable(Table):
    """An Arrow IPC file or stream (Feather)."""

    def __init__(self, path: Path, missing: Iterable[str] = ()):
        self.path = path
        with self._opened() as reader:
            names = reader.schema.names
        super().__init__(str(path), names, missing)

    @property
    def rows(self) -> int:  # type: ignore[override]  # an attribute of the base class
        """Number of rows; the file is read to count them."""
        with self._opened() as reader:
            return sum(batch.num_rows for batch in self._stored(reader))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the memory-mapped file in the file format, or else in the stream format."""
        pa = arrow()
        with _readable(self.path, "Arrow IPC"), pa.memory_map(str(self.path)) as file:
            try:
                reader = pa.ipc.open_file(file)
            except pa.ArrowInvalid:
                file.seek(0)
                reader = pa.ipc.open_stream(file)
            yield reader

    def _stored(self, reader: Any) -> Iterator[Any]:
        """Yield the batches as they were written, validated: by default Arrow trusts the offsets in a file."""
        count = getattr(reader, "num_record_batches", None)
        for batch in reader if count is None else map(reader.get_batch, range(count)):
            batch.validate(full=True)
            yield batch

    def _read(self, columns: list[str], exact: set[str], text: set[str]) -> Iterator[Any]:
        step = _batch_rows(columns)
        with self._opened() as reader:
            for batch in self._stored(reader):
                yield from (batch.select(columns).slice(at, step) for at in range(0, batch.num_rows, step))


class XzText(io.RawIOBase):
    """The text of an .xz file, which Arrow cannot unpack itself; its threads call `read`.

    A thread that calls into Python while the interpreter exits aborts the process ("terminate called without an active
    exception"). `release` therefore ends the text and waits until Arrow has dropped its last reference to this object.
    """

    def __init__(self, path: Path):
        self._file: Any = lzma.open(path)  # noqa: SIM115 - `release` closes it
        self._ended, self._failed = threading.Event(), threading.Event()

    def readable(self) -> bool:
        """Return True: the text can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, or none once the text has been released."""
        try:
            return b"" if self._ended.is_set() else self._file.read(size)
        except BaseException:
            self._failed.set()  # Arrow passes the error on, which keeps this object alive, but no longer reads
            raise

    def release(self) -> Callable[[], None]:
        """Return a function to call once only Arrow refers to this object."""
        ended, failed, dropped, file = self._ended, self._failed, threading.Event(), self._file
        weakref.finalize(self, dropped.set)

        def wait() -> None:
            ended.set()
            if failed.is_set() or dropped.wait(MAX_RELEASE_SECONDS):
                file.close()

        return wait


class CsvTable(Table):
    """A CSV file with a header, plain or compressed."""

    def __init__(self, path: Path, separator: str, missing: Iterable[str] = ()):
        self.path, self.separator, self._null_texts = path, separator, list(missing)
        self._found_types: dict[tuple[str, bool], Any] = {}  # of columns whose later values do not fit the first block
        with self._explained():
            names = list(self._schema().names)
        super().__init__(str(path), names)

    def _opened(self, function: str, threads: bool = True, **convert: Any) -> tuple[Any, Callable[[], None]]:
        """Call pyarrow.csv.open_csv or read_csv; return the result and a function to call once the reader is dropped."""
        module = arrow("pyarrow.csv")
        convert["null_values"] = [*module.ConvertOptions().null_values, *self._null_texts]
        source: Any = XzText(self.path) if self.path.suffix.lower() == ".xz" else self.path
        release = source.release() if isinstance(source, XzText) else lambda: None
        try:
            # Support for line breaks inside quotes takes about a tenth of the time, and some files need it.
            result = getattr(module, function)(
                source,
                read_options=module.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=threads),
                parse_options=module.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=module.ConvertOptions(strings_can_be_null=True, **convert),
            )
        except BaseException:
            del source
            release()
            raise
        return result, release

    def _schema(self, **convert: Any) -> Any:
        """Return the names and types of the columns that the first block tells."""
        reader, release = self._opened("open_csv", threads=False, **convert)
        schema = reader.schema
        del reader
        release()
        return schema

    def _stream(self, **convert: Any) -> Generator[Any, None, None]:
        """Yield the batches that pyarrow reads."""
        reader, release = self._opened("open_csv", **convert)
        try:
            self._check_text(reader.schema)
            yield from reader
        finally:
            del reader
            release()

    def loaded(self, columns: list[str], text: Iterable[str]) -> Table:
        """Return a table of some columns in memory; types are those that fit all rows."""
        types = dict.fromkeys(set(text) & set(columns), arrow().string())
        with self._explained():
            table, release = self._opened("read_csv", include_columns=columns, column_types=types)
            release()
            self._check_text(table.schema)
        arrow().default_memory_pool().release_unused()  # parsing needed as much memory again
        loaded = MemoryTable(table, self.name)
        loaded.line_of = self.line_of  # type: ignore[method-assign]  # the lines of the file
        return loaded

    def _read(self, columns: list[str], exact: set[str], text: set[str]) -> Iterator[Any]:
        """Yield batches; if a value does not fit the type of its column, the type is widened from there on."""
        pa, step, done = arrow(), _batch_rows(columns), 0
        while True:
            types = self._types(columns, exact, text)
            try:
                skip = done
                with contextlib.closing(self._stream(include_columns=columns, column_types=types)) as stream:
                    for batch in stream:
                        past = min(skip, batch.num_rows)
                        skip -= past
                        for at in range(past, batch.num_rows, step):
                            piece = batch.slice(at, step)
                            done += piece.num_rows
                            yield piece
                return
            except pa.ArrowInvalid as error:
                unfit = r"In CSV column #(\d+): .*CSV conversion error to .*: invalid value '(.*)'"
                found = re.match(unfit, str(error), re.S)
                with self._explained():
                    if found is None:
                        raise
                name = self.columns[int(found[1])]
                self._found_types[name, name in exact] = _wider(types[name], found[2])
            except OSError:
                with self._explained():
                    raise

    def _types(self, columns: list[str], exact: set[str], text: set[str]) -> dict[str, Any]:
        """Return the type of each column: that of the first block, widened, or one that a later value needed."""
        pa = arrow()
        with self._explained():
            schema = self._schema(include_columns=columns)
            self._check_text(schema)
        types = {}
        for name in columns:
            kind, as_integer = schema.field(name).type, name in exact
            if pa.types.is_null(kind) or (pa.types.is_integer(kind) and not as_integer):
                kind = pa.int64() if as_integer else pa.float64()
            types[name] = pa.string() if name in text else self._found_types.get((name, as_integer), kind)
        return types

    def _check_text(self, schema: Any) -> None:
        """Raise if a column is not UTF-8; pyarrow reads such a column as binary."""
        for field in schema:
            if arrow().types.is_binary(field.type):
                raise arrow().ArrowInvalid(f"column {field.name!r}: invalid UTF8 data")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of pyarrow into ValueErrors that name the file and line."""
        with _readable(self.path, "CSV"):
            try:
                yield
            except (arrow().ArrowInvalid, UnicodeDecodeError) as error:
                message = self._message(str(error))
                if message is None:
                    raise
                raise ValueError(message) from error

    def _message(self, message: str) -> str | None:
        """Return a plain message for an error of pyarrow, or None if there is none."""
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", message)
        if "UTF8" in message or "codec" in message or (ragged and not self._is_utf8()):
            return f"{self.path} is not UTF-8 text ({message:.200}); save it as UTF-8"
        if ragged:
            line = None
            with contextlib.suppress(csv.Error, UnicodeDecodeError):
                line = next((line for line, record in self._records() if len(record) != int(ragged[1])), None)
            where = f"{self.path}, line {line}" if line else str(self.path)
            return (
                f"{where}: got {ragged[2]} values, expected {ragged[1]} as in the header; put values that contain the "
                f"separator {self.separator!r} into double quotes, or pass separator=..."
            )
        if "mpty CSV" in message and ("block" not in message or self.path.stat().st_size < CSV_BLOCK_BYTES):
            return f"{self.path} is empty, expected a line with the names of the columns, then rows"
        if "straddling" in message or "Empty CSV file or block" in message:
            length = f"a value is longer than {CSV_BLOCK_BYTES} bytes"
            return f"{self.path}: {length}; a double quote that is not closed is the usual cause"
        return None

    def _is_utf8(self) -> bool:
        """Tell whether the beginning looks like UTF-8; UTF-16 appears as rows of the wrong length."""
        with self._bytes() as file:
            return b"\0" not in file.read(4096)

    def _bytes(self) -> Any:
        """Open the text that the file unpacks to."""
        return arrow().input_stream(lzma.open(self.path) if self.path.suffix.lower() == ".xz" else self.path)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line at which each record starts, and its values; slow, used in messages only."""
        with self._bytes() as file:
            reader, line = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""), delimiter=self.separator), 1
            for record in reader:
                if record:
                    yield line, record
                line = reader.line_num + 1

    def line_of(self, row: int) -> int | None:
        """Return the line of a row (from 1), if it can be found."""
        with contextlib.suppress(Exception):
            return next(itertools.islice(self._records(), row, None))[0]
        return None


def _wider(kind: Any, value: str) -> Any:
    """Return the type to try where a value does not fit."""
    pa = arrow()
    truth = value.lower() in ("true", "false")
    if pa.types.is_integer(kind):
        return pa.bool_() if truth else pa.float64()
    if pa.types.is_date(kind):
        return pa.timestamp("ns")
    return pa.bool_() if truth and pa.types.is_floating(kind) else pa.string()
