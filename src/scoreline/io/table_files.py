"""Files of tables as batches of rows: Parquet, Arrow, CSV, and tables in memory."""

import base64
import contextlib
import csv
import io
import itertools
import lzma
import re
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from scoreline.io.columns import TableError, arrow, as_dictionary

BLOCK = 1 << 22  # bytes of CSV that are parsed at a time; no value can be longer
ROWS = 65_536  # most rows of a batch
CELLS = 1 << 24  # most cells of a batch: fewer rows where there are many columns
RELEASE = 10.0  # most seconds to wait until Arrow's threads have finished with a Python file


@contextlib.contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Turn errors of pyarrow into ours, with the file."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError, TableError):
        raise
    except (arrow().ArrowException, OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise ValueError(
            f"{path} cannot be read as {what} ({error}); it is damaged or not what its name says"
        ) from error


def rows_of_batch(columns: int) -> int:
    """Return how many rows of so many columns are read at a time."""
    return int(min(ROWS, max(256, CELLS // max(columns, 1))))


class MemoryTable:
    """A `pyarrow.Table`."""

    def __init__(self, table: Any):
        self.table, self.names, self.rows = table, table.column_names, table.num_rows

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches of some columns without copying them."""
        yield from self.table.select(columns).to_batches(max_chunksize=rows_of_batch(len(columns)))


class ParquetTable:
    """A Parquet file."""

    def __init__(self, path: Path):
        self.path = path
        with readable(path, "Parquet"), arrow("pyarrow.parquet").ParquetFile(path) as file:
            self.names, self.rows = file.schema_arrow.names, file.metadata.num_rows
            self.dictionaries = _lost_dictionaries(file)

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches of some columns; beyond them a page per column is in memory."""
        with readable(self.path, "Parquet"), arrow("pyarrow.parquet").ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(rows_of_batch(len(columns)), columns=columns):
                batch.validate(full=True)  # texts need not be UTF-8
                yield self._restored(batch.select(columns))

    def _restored(self, batch: Any) -> Any:
        """Return a batch with the dictionaries that its columns were before they were written."""
        names = batch.schema.names
        if self.dictionaries.isdisjoint(names):
            return batch
        columns = zip(names, batch.columns, strict=True)
        arrays = [as_dictionary(array) if name in self.dictionaries else array for name, array in columns]
        return arrow().RecordBatch.from_arrays(arrays, names=names)


def _lost_dictionaries(file: Any) -> frozenset[str]:
    """Return the columns that were dictionaries, and that Parquet holds as plain values: pyarrow only brings texts back."""
    stored = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return frozenset()
    pa = arrow()
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
    except (ValueError, pa.ArrowException, OSError):  # the values are there all the same
        return frozenset()
    were = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    return frozenset(f.name for f in file.schema_arrow if f.name in were and not pa.types.is_dictionary(f.type))


class ArrowTable:
    """An Arrow IPC file or stream (Feather)."""

    def __init__(self, path: Path):
        self.path = path
        with self._opened() as reader:
            self.names = reader.schema.names

    @property
    def rows(self) -> int:
        """Number of rows, which takes reading the file."""
        with self._opened() as reader:
            return sum(batch.num_rows for batch in self._read(reader))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open it, mapped into memory: the file format, or else the stream format."""
        pa = arrow()
        with readable(self.path, "Arrow IPC"), pa.memory_map(str(self.path)) as file:
            try:
                reader = pa.ipc.open_file(file)
            except pa.ArrowInvalid:
                file.seek(0)
                reader = pa.ipc.open_stream(file)
            yield reader

    def _read(self, reader: Any) -> Iterator[Any]:
        """Yield the batches as they were written; Arrow trusts offsets in a file unless it is told to look at them all."""
        count = getattr(reader, "num_record_batches", None)
        for batch in reader if count is None else map(reader.get_batch, range(count)):
            batch.validate(full=True)
            yield batch

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches of some columns."""
        step = rows_of_batch(len(columns))
        with self._opened() as reader:
            for batch in self._read(reader):
                yield from (batch.select(columns).slice(at, step) for at in range(0, batch.num_rows, step))


class XzText(io.RawIOBase):
    """The text of an .xz file, which Arrow cannot unpack: its threads call `read` instead.

    A thread that calls into Python while the interpreter exits aborts the process ("terminate called without an active
    exception"). `release` therefore ends the text and waits until Arrow has dropped its last reference to this object.
    """

    def __init__(self, path: Path):
        self._file, self._ended, self._failed = _open_xz(path), threading.Event(), threading.Event()

    def readable(self) -> bool:
        """Return True: the text can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, none once the text has been released."""
        try:
            return b"" if self._ended.is_set() else self._file.read(size)
        except BaseException:
            self._failed.set()  # the error, which Arrow passes on, keeps this object alive; nothing reads it any more
            raise

    def release(self) -> Callable[[], None]:
        """Return a function to call when all other references to this object are gone, save for those of Arrow."""
        ended, failed, dropped, file = self._ended, self._failed, threading.Event(), self._file
        weakref.finalize(self, dropped.set)

        def wait() -> None:
            ended.set()
            if failed.is_set() or dropped.wait(RELEASE):
                file.close()

        return wait


class CsvTable:
    """A CSV file with a header, plain or compressed."""

    rows = None

    def __init__(self, path: Path, separator: str, missing: Iterable[str]):
        self.path, self.separator, self.missing = path, separator, list(missing)
        self.settled: dict[tuple[str, bool], Any] = {}  # types that the first block did not tell
        with self._explained():
            self.names = list(self._schema().names)

    def _opened(self, function: str, ahead: bool = True, **convert: Any) -> tuple[Any, Callable[[], None]]:
        """Call pyarrow.csv.open_csv or read_csv; return the result and a function to call once the reader is dropped.

        `ahead`: more than the beginning will be read.
        """
        module = arrow("pyarrow.csv")
        convert["null_values"] = [*module.ConvertOptions().null_values, *self.missing]
        source: Any = XzText(self.path) if self.path.suffix.lower() == ".xz" else self.path
        release = source.release() if isinstance(source, XzText) else _nothing
        try:
            # Line breaks inside quotes cost about a tenth of the time; without them a file that has some cannot be read.
            result = getattr(module, function)(
                source,
                read_options=module.ReadOptions(block_size=BLOCK, use_threads=ahead),
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
        reader, release = self._opened("open_csv", ahead=False, **convert)
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

    def load(self, columns: list[str], text: Any) -> Any:
        """Return the whole as a table, by all threads; types are those that fit all rows."""
        types = dict.fromkeys(set(text) & set(columns), arrow().string())
        with self._explained():
            table, release = self._opened("read_csv", include_columns=columns, column_types=types)
            release()
            self._check_text(table.schema)
        arrow().default_memory_pool().release_unused()  # parsing takes as much again, which is now free
        return table

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches; where a value does not fit its column, the column has another type from there on, and next time."""
        pa, step, done = arrow(), rows_of_batch(len(columns)), 0
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
                found = re.match(
                    r"In CSV column #(\d+): .*CSV conversion error to .*: invalid value '(.*)'", str(error), re.S
                )
                with self._explained():
                    if found is None:
                        raise
                name = self.names[int(found[1])]
                self.settled[name, name in exact] = _wider(types[name], found[2])
            except OSError:
                with self._explained():
                    raise

    def _types(self, columns: list[str], exact: Any, text: Any) -> dict[str, Any]:
        """Return the type of each column: what its first block tells, with room for more, or what was found later."""
        pa = arrow()
        with self._explained():
            schema = self._schema(include_columns=columns)
            self._check_text(schema)
        types = {}
        for name in columns:
            kind, whole = schema.field(name).type, name in exact
            if pa.types.is_null(kind) or (pa.types.is_integer(kind) and not whole):
                kind = pa.int64() if whole else pa.float64()
            types[name] = pa.string() if name in text else self.settled.get((name, whole), kind)
        return types

    def _check_text(self, schema: Any) -> None:
        """Raise if a column is not UTF-8, which pyarrow takes for binary."""
        for field in schema:
            if arrow().types.is_binary(field.type):
                raise arrow().ArrowInvalid(f"column {field.name!r}: invalid UTF8 data")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of pyarrow into ours, with file and line."""
        try:
            with readable(self.path, "CSV"):
                try:
                    yield
                except (arrow().ArrowInvalid, UnicodeDecodeError) as error:
                    message = self._message(str(error))
                    if message is None:
                        raise
                    raise TableError(message) from error
        except TableError as error:
            raise ValueError(str(error)) from error.__cause__

    def _message(self, said: str) -> str | None:
        """Return our words for an error of pyarrow."""
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", said)
        if "UTF8" in said or "codec" in said or (ragged and not self._is_utf8()):
            return f"{self.path} is not UTF-8 text ({said:.200}); save it as UTF-8"
        if ragged:
            line = None
            with contextlib.suppress(csv.Error, UnicodeDecodeError):
                line = next((line for line, record in self._records() if len(record) != int(ragged[1])), None)
            where = f"{self.path}, line {line}" if line else str(self.path)
            return (
                f"{where}: got {ragged[2]} values, expected {ragged[1]} as in the header; put values that contain the "
                f"separator {self.separator!r} into double quotes, or pass separator=..."
            )
        if "mpty CSV" in said and ("block" not in said or self.path.stat().st_size < BLOCK):
            return f"{self.path} is empty, expected a line with the names of the columns, then rows"
        if "straddling" in said or "Empty CSV file or block" in said:
            return f"{self.path}: a value is longer than {BLOCK} bytes; a double quote that is not closed is the usual cause"
        return None

    def _is_utf8(self) -> bool:
        """Tell whether the beginning is UTF-8; UTF-16 looks like lines of the wrong length."""
        with self._bytes() as file:
            return b"\0" not in file.read(4096)

    def _bytes(self) -> Any:
        """Open the text that the file unpacks to."""
        return arrow().input_stream(lzma.open(self.path) if self.path.suffix.lower() == ".xz" else self.path)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line at which each record starts, and its values; slow, for messages only."""
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


def _open_xz(path: Path) -> Any:
    return lzma.open(path)


def _nothing() -> None:
    """Do nothing: Arrow reads the file by itself."""


def _wider(kind: Any, value: str) -> Any:
    """Return the type to try where a value does not fit."""
    pa = arrow()
    truth = value.lower() in ("true", "false")
    if pa.types.is_integer(kind):
        return pa.bool_() if truth else pa.float64()
    if pa.types.is_date(kind):
        return pa.timestamp("ns")
    return pa.bool_() if truth and pa.types.is_floating(kind) else pa.string()
