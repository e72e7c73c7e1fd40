"""Output of the commands: text for people, one JSON object for programs, progress on a terminal or as plain lines."""

import ast
import errno
import io
import json as json_module
import logging
import math
import os
import re
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import numpy as np

STDOUT = "standard output"
PROGRESS_SECONDS = 5.0  # between two lines of progress without a terminal
# Control characters except line end and tab, and unpaired surrogates, as escapes: column names and labels come from
# files, which could otherwise send commands to the terminal.
CONTROLS = {k: f"\\x{k:02x}" for k in (*range(9), *range(11, 32), *range(127, 160))}
CONTROLS |= {k: f"\\u{k:04x}" for k in range(0xD800, 0xE000)}


def say(line: str) -> None:
    """Print a line to standard error; a closed standard error is not an error."""
    if sys.stderr is not None:  # if it is closed, print would write to standard output
        with suppress(OSError):
            print(line.translate(CONTROLS), file=sys.stderr, flush=True)


@contextmanager
def writing(path: Any) -> Iterator[None]:
    """Add the name of the file to system errors without one, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None and "cannot write" not in str(error.strerror):
            error.filename = str(path)
        raise


def write_stdout(text: str) -> None:
    """Write a text to standard output completely, unless it is closed."""
    stream = sys.stdout
    if stream is None:
        return
    try:
        text.encode(stream.encoding or "utf-8", stream.errors or "strict")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"standard output has the encoding {stream.encoding}, which has no {text[error.start]!r}; set "
            "PYTHONIOENCODING=utf-8, or name a file with --out, which is always UTF-8"
        ) from None
    with writing(STDOUT):
        raw: Any = getattr(stream, "buffer", None)
        if not isinstance(raw, io.RawIOBase):
            stream.write(text)
            return
        # With PYTHONUNBUFFERED there is no buffer, and Python ignores how much of the text was written.
        rest = memoryview(text.replace("\n", os.linesep).encode(stream.encoding, stream.errors or "strict"))
        while rest:
            count = raw.write(rest)
            if count is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            rest = rest[count:]


def finish_stdout() -> None:
    """Flush standard output, and raise if it could not be written completely."""
    if sys.stdout is None:
        return
    with writing(STDOUT):
        sys.stdout.flush()
        try:
            copy = os.dup(sys.stdout.fileno())
        except (OSError, ValueError):  # the caller's stream has no file descriptor
            return
        os.close(copy)  # network file systems report some failed writes only when a file is closed


# Arguments of the library that are options of a command. The names of the options follow from those of the arguments,
# except RENAMED.
OPTIONS = (
    "label", "positive", "categories", "drop", "missing", "impute", "indicators", "min_category_rows", "separator",
    "zero_based", "overwrite", "measure", "measure_params", "solver", "solvers", "risk", "scaling", "alpha",
    "alphas", "tol", "max_iter", "max_time", "max_rows", "test_share", "splits",
    "probability", "early_stopping", "device", "checkpoint", "random_state", "table", "keep", "dialect", "dtype",
)  # fmt: skip
RENAMED = {"random_state": "--seed", "measure_params": "--measure-param"}
TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
VALUE = rf"(?:{TEXT}|[\[({{](?:{TEXT}|[^\])}}'\"])*[\])}}]|-?[0-9][0-9.e+-]*\b|True|False|None|\.\.\.|(?=[\s,;.]|$))"
ARGUMENT = re.compile(rf"(?<![-\w./])({'|'.join(OPTIONS)})=({VALUE})")
BARE = re.compile(rf"(?<![-\w./'])({'|'.join(name for name in OPTIONS if '_' in name)})(?![\w='./])")
WORDS = (  # rewrites arguments that the command line does not have, or has in another form
    (re.compile(rf"(?<![-\w./])folder=({TEXT})"), lambda found: str(ast.literal_eval(found[1]))),
    (re.compile(rf"(?<![-\w./])(column|demo)=({TEXT})"), r"\1 \2"),
    (re.compile(r", or a larger max_categories|, n_features\b(?!=)"), ""),
    (re.compile(r"\bmax_categories=([0-9]+)"), r"\1"),
    (re.compile(r"\bn_features=([0-9]+)"), r"a model of \1 features"),
    (re.compile(r"pass zero_based='auto'"), "leave --no-zero-based out"),
    (re.compile(r"solver_params=\{'checkpoint': PATH\}"), "--checkpoint PATH"),
)


def as_options(text: str) -> str:
    """Rewrite a message of the library for the command line: drop=['a', 'b'] becomes --drop a,b."""
    for pattern, words in WORDS:
        text = pattern.sub(words, text)
    return BARE.sub(lambda found: _option(found[1]), ARGUMENT.sub(_with_value, text))


def _option(name: str) -> str:
    return RENAMED.get(name, f"--{name.replace('_', '-')}")


def _with_value(found: re.Match[str]) -> str:
    """Return an argument with its value as typed in a shell."""
    name, option = found[1], _option(found[1])
    try:
        value = ast.literal_eval(found[2])
    except (ValueError, SyntaxError):  # nothing, or an ellipsis in a list
        return option
    if value is ... or value is True:
        return option
    if value is False:
        return f"--no-{option[2:]}"
    if value is None:
        return f"{option} none" if name == "scaling" else f"no {option}"
    if isinstance(value, dict):
        return " ".join(f"{option} {shlex.quote(f'{key}={item}')}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        if any(part is ... for part in value):
            return option
        value = ("." if name == "table" else ",").join(map(str, value))
    typed = str(value)
    return f"{option} {shlex.quote(typed) if typed.isprintable() else f'${typed!r}'}"  # a tab is $'\\t' in a shell


class Output:
    """Prints results: as text to standard output immediately, or as one JSON object at the end.

    Messages, warnings and progress go to standard error; with `quiet` only errors do.
    """

    def __init__(self, json: bool = False, quiet: bool = False):
        self.json, self.quiet = json, quiet
        self.content: dict[str, Any] = {}

    def results(self, /, **values: Any) -> None:
        """Add results to the JSON object."""
        self.content |= values

    def text(self, line: str = "") -> None:
        """Print a line for people."""
        if not self.json:
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            written = line.translate(CONTROLS).encode(encoding, "backslashreplace")
            write_stdout(written.decode(encoding) + "\n")

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Print rows as columns under the first row as header; columns in `right` are aligned to the right."""
        widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
        for row in rows:
            columns = enumerate(zip(row, widths, strict=True))
            cells = [f"{c:>{w}}" if k in right else f"{c:<{w}}" for k, (c, w) in columns]
            self.text(("  " + "  ".join(cells)).rstrip())

    def note(self, line: str) -> None:
        """Print a message to standard error, unless quiet."""
        if not self.quiet:
            say(line)

    def error(self, line: str) -> None:
        """Print an error to standard error."""
        say(f"scoreline: error: {line}")

    def finish(self) -> None:
        """Print the JSON object."""
        if self.json:
            write_stdout(json_module.dumps(plain(self.content), allow_nan=False) + "\n")

    @contextmanager
    def messages(self, notes: bool = True) -> Iterator[None]:
        """Show warnings, and notes of the library's logger if wanted, as plain lines, and add them to the JSON object."""
        logged: list[tuple[str, bool]] = []
        with warnings.catch_warnings(record=True) as caught, _listening(lambda *message: logged.append(message)):
            warnings.simplefilter("always")
            yield
        note_texts = [text for text, is_note in logged if is_note and notes]
        warned = [as_options(str(w.message)) for w in caught if not issubclass(w.category, DeprecationWarning)]
        for kind, texts in (("note", dict.fromkeys(note_texts)), ("warning", dict.fromkeys(warned))):
            if texts:
                self.content.setdefault(f"{kind}s", []).extend(texts)
            for text in texts:
                self.note(f"{kind}: {text}")

    @contextmanager
    def progress(self, what: str, repeat: bool = False) -> Iterator["Progress"]:
        """Show progress: a bar on a terminal if rich is installed, otherwise a line every few seconds.

        With `repeat`, the last line is repeated with the elapsed seconds while nothing new is reported.
        """
        bar = None if self.quiet or sys.stderr is None or not sys.stderr.isatty() else _bar()
        shown = Progress(what, bar, self.quiet, repeat)
        try:
            yield shown
        finally:
            shown.close()


class Progress:
    """Progress of one piece of work."""

    def __init__(self, what: str, bar: Any, quiet: bool, repeat: bool = False):
        self.what, self.bar, self.quiet = what, bar, quiet
        self.begin = self.last = time.perf_counter()
        self.task = None
        self.latest = ""
        self.closed = threading.Event()
        self.ticker: threading.Thread | None = None
        if repeat and bar is None and not quiet and math.isfinite(PROGRESS_SECONDS):
            self.ticker = threading.Thread(target=self._tick, name="scoreline_progress", daemon=True)
            self.ticker.start()
        if bar is not None:
            bar.start()
            self.task = bar.add_task(what, total=None)

    def update(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Show the progress."""
        if self.bar is not None:
            self.bar.update(self.task, description=f"{self.what}: {text}", completed=done, total=total)
            return
        share = f" ({done:.0f} of {total:.0f})" if done is not None and total else ""
        self.latest = f"{self.what}: {text}{share}"
        if self.ticker is None and not self.quiet and time.perf_counter() - self.last >= PROGRESS_SECONDS:
            self.last = time.perf_counter()
            say(self.latest)

    def _tick(self) -> None:
        """Print the latest state every few seconds, even while the main thread is inside a long fit."""
        while not self.closed.wait(PROGRESS_SECONDS):
            if self.latest:
                say(f"{self.latest}, {time.perf_counter() - self.begin:.0f} s")

    def close(self) -> None:
        """Remove the bar, or end the ticker."""
        if self.bar is not None:
            self.bar.stop()
        if self.ticker is not None:
            self.closed.set()
            self.ticker.join()


def _bar() -> Any:
    """Return rich's progress bar, or None if it is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def reported(update: Callable[[str], None]) -> AbstractContextManager[None]:
    """Show the messages of the library's logger as progress, except notes."""
    return _listening(lambda text, is_note: None if is_note else update(text))


class _Listener(logging.Handler):
    """Passes on the messages of the library, rewritten for the command line, and whether they are notes."""

    def __init__(self, take: Callable[[str, bool], Any]):
        super().__init__(logging.INFO)
        self.take = take

    def emit(self, record: logging.LogRecord) -> None:
        self.take(as_options(record.getMessage()), hasattr(record, "note"))


@contextmanager
def _listening(take: Callable[[str, bool], Any]) -> Iterator[None]:
    logger, handler = logging.getLogger("scoreline"), _Listener(take)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def plain(value: Any) -> Any:
    """Return a value for strict JSON: without NumPy types, and with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
