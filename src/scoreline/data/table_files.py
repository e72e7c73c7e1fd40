"""Arrow behind one door: files of tables as batches of rows, and columns as NumPy arrays, with errors that say where."""

import contextlib
import csv
import io
import itertools
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scoreline._optional import require
from scoreline._typing import AnyArray, FloatArray

BLOCK = 1 << 22  # bytes of CSV that are parsed at a time; no value can be longer
ROWS = 65_536  # most rows of a batch
CELLS = 1 << 24  # most cells of a batch: fewer rows where there are many columns
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
SHORTER = (  # how texts that mean the same number or truth value become the same
    (r"^(-?(?:0|[1-9][0-9]*))\.0+$", r"\1"),
    (r"^(-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])0+$", r"\1"),
    (r"^-0$", "0"),
    (r"^(?i:true)$", "true"),
    (r"^(?i:false)$", "false"),
)


class TableError(ValueError):
    """What is wrong with the content of a table, and in which row (from 1) if it is in one."""

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


def listed(names: Iterable[str]) -> str:
    """Return names for a message, the first twenty."""
    names = list(names)
    return ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def twice(names: Iterable[Any]) -> list[Any]:
    """Return what occurs more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def names_of(argument: str, names: Any) -> list[str]:
    """Return names as a list; one string is an error, its letters would be taken for names."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{argument}={names!r} must be a list of strings, like [{names!r}]")
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"{argument} holds {name!r}, expected strings")
    return names


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type is text, of any layout."""
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def kind_of(name: str, kind: Any, declared: bool = False) -> str:
    """Return what an Arrow type becomes: "number" or "category"; `declared`: it is to be a category."""
    types = arrow().types
    if types.is_dictionary(kind):
        return kind_of(name, kind.value_type, declared=True)
    if is_text(kind):
        return "category"
    if any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)):
        return "category" if declared else "number"
    if types.is_null(kind):
        return "category" if declared else "number"
    if types.is_temporal(kind):
        if declared:
            return "category"
        raise TableError(
            f"column {name!r} holds dates or times ({kind}); convert it to a number or drop it with drop=[{name!r}]"
        )
    raise TableError(
        f"column {name!r} has type {kind}, expected numbers, truth values or text; drop it with drop=[{name!r}] or turn it "
        "into columns of these"
    )


def numbers_of(name: str, array: Any, first_row: int, fill: Any) -> FloatArray:
    """Return a column as float64 with `fill` for what is missing; None: missing values are an error."""
    pa, pc = arrow(), arrow("pyarrow.compute")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_text(array.type):
        array = array.cast(pa.large_string())
        fits = pc.match_substring_regex(array, NUMBER).fill_null(True).to_numpy(zero_copy_only=False)
        if not fits.all():
            at = int(np.argmin(fits))
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


def distinct_texts(name: str, array: Any, first_row: int) -> tuple[Any, AnyArray]:
    """Return distinct values of a column as text, and for each row which of them it holds, -1 for missing."""
    pa, pc = arrow(), arrow("pyarrow.compute")
    types = pa.types
    kind_of(name, array.type, declared=True)
    if types.is_dictionary(array.type) and (array.dictionary.null_count or len(array.dictionary) > 2 * len(array) + 64):
        array = array.dictionary_decode()  # codes must tell what is missing; and most of a huge dictionary is not used
    if types.is_null(array.type) or types.is_string_view(array.type):
        array = array.cast(pa.large_string())  # pyarrow 26 takes nulls of string_view for empty texts
    if not types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes, values = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(), array.dictionary
    if types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if types.is_floating(values.type):
        floats = values.cast(pa.float64()).to_numpy()
        hits = np.append(np.isinf(floats), False)[codes]
        if hits.any():
            raise fail(name, first_row + int(np.argmax(hits)) + 1, "got infinity, expected a finite number")
        codes = np.append(np.where(np.isnan(floats), -1, np.arange(len(floats))), -1)[codes]
        whole = (floats == np.trunc(floats)) & (np.abs(floats) < 2.0**63)
        integers = pa.array(np.where(whole, floats, 0).astype(np.int64)).cast(pa.large_string())
        values = pc.if_else(pa.array(whole), integers, values.cast(pa.large_string()))
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
        return np.array(coded.dictionary.to_pylist(), dtype=np.str_)[coded.indices.to_numpy()]
    return np.asarray(array.to_numpy(zero_copy_only=False))


@contextlib.contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Turn errors of pyarrow into ours, with the file."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError, TableError):
        raise
    except (arrow().ArrowException, OSError, EOFError, lzma.LZMAError) as error:
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

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches of some columns; beyond them a page per column is in memory."""
        with readable(self.path, "Parquet"), arrow("pyarrow.parquet").ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(rows_of_batch(len(columns)), columns=columns):
                yield batch.select(columns)


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
        """Yield the batches as they were written."""
        count = getattr(reader, "num_record_batches", None)
        yield from reader if count is None else map(reader.get_batch, range(count))

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches of some columns."""
        step = rows_of_batch(len(columns))
        with self._opened() as reader:
            for batch in self._read(reader):
                yield from (batch.select(columns).slice(at, step) for at in range(0, batch.num_rows, step))


class CsvTable:
    """A CSV file with a header, plain or compressed."""

    rows = None

    def __init__(self, path: Path, separator: str, missing: Iterable[str]):
        self.path, self.separator, self.missing = path, separator, list(missing)
        self.settled: dict[tuple[str, bool], Any] = {}  # types that the first block did not tell
        with self._explained():
            self.names = list(self._opened("open_csv", ahead=False).schema.names)

    def _opened(self, function: str, ahead: bool = True, **convert: Any) -> Any:
        """Call pyarrow.csv.open_csv or read_csv; `ahead`: more than the beginning will be read."""
        module = arrow("pyarrow.csv")
        convert["null_values"] = [*module.ConvertOptions().null_values, *self.missing]
        # Line breaks inside quotes cost about a tenth of the time; without them a file that has some cannot be read.
        return getattr(module, function)(
            lzma.open(self.path) if self.path.suffix == ".xz" else self.path,
            read_options=module.ReadOptions(block_size=BLOCK, use_threads=ahead),
            parse_options=module.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=module.ConvertOptions(strings_can_be_null=True, **convert),
        )

    def load(self, columns: list[str], text: Any) -> Any:
        """Return the whole as a table, by all threads; types are those that fit all rows."""
        types = dict.fromkeys(set(text) & set(columns), arrow().string())
        with self._explained():
            table = self._checked(self._opened("read_csv", include_columns=columns, column_types=types))
        arrow().default_memory_pool().release_unused()  # parsing takes as much again, which is now free
        return table

    def batches(self, columns: list[str], exact: Any, text: Any) -> Iterator[Any]:
        """Yield batches; where a value does not fit its column, the column has another type from there on, and next time."""
        pa, step, done = arrow(), rows_of_batch(len(columns)), 0
        while True:
            types = self._types(columns, exact, text)
            try:
                skip = done
                for batch in self._checked(self._opened("open_csv", include_columns=columns, column_types=types)):
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
            schema = self._checked(self._opened("open_csv", ahead=False, include_columns=columns)).schema
        types = {}
        for name in columns:
            kind, whole = schema.field(name).type, name in exact
            if pa.types.is_null(kind) or (pa.types.is_integer(kind) and not whole):
                kind = pa.int64() if whole else pa.float64()
            types[name] = pa.string() if name in text else self.settled.get((name, whole), kind)
        return types

    def _checked(self, table: Any) -> Any:
        """Return it unless a column is not UTF-8, which pyarrow takes for binary."""
        for field in table.schema:
            if arrow().types.is_binary(field.type):
                raise arrow().ArrowInvalid(f"column {field.name!r}: invalid UTF8 data")
        return table

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
            with contextlib.suppress(csv.Error):
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
        return arrow().input_stream(lzma.open(self.path) if self.path.suffix == ".xz" else self.path)

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


def _wider(kind: Any, value: str) -> Any:
    """Return the type to try where a value does not fit."""
    pa = arrow()
    truth = value.lower() in ("true", "false")
    if pa.types.is_integer(kind):
        return pa.bool_() if truth else pa.float64()
    if pa.types.is_date(kind):
        return pa.timestamp("ns")
    return pa.bool_() if truth and pa.types.is_floating(kind) else pa.string()
