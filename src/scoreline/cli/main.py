"""The entry point, which runs the command and turns errors into a message and an exit code."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from scoreline.cli.output import Output, as_options, finish_stdout
from scoreline.cli.parser import UsageError, parse
from scoreline.runtime.vectors import ClusterError

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
WRITTEN = ("out", "report", "folder")  # options that name a file or folder for the results


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    0: done. 1: failed, with a message on standard error. 2: wrong usage. 130: Ctrl-C; the best model so far is saved, and a
    message says where.
    """
    return exit_code_of(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; expected errors become a message on standard error and a code."""
    output = Output()
    try:
        code = command()
        finish_stdout()
        return code
    except BrokenPipeError:  # the reader, for example `| head`, needs no more: not a failure
        _leave_stdout()
        return DONE
    except UsageError as error:
        output.error(_message(error))
        return USAGE
    except KeyboardInterrupt as pressed:
        output.error(f"interrupted: {pressed}" if str(pressed) else "interrupted")
        return INTERRUPTED
    except MemoryError as error:
        output.error(
            f"not enough memory ({error}); convert the data to a folder and train from there: scoreline convert --help"
        )
    except (ValueError, TypeError, OSError, ImportError, ClusterError) as error:
        output.error(_message(error))
    _leave_stdout()
    return FAILED


def _run(arguments: list[str]) -> int:
    """Run the command and return its exit code, or that of argparse."""
    try:
        options, parser = parse(arguments)
    except SystemExit as ended:
        return int(ended.code or DONE)
    if not hasattr(options, "run"):
        parser.print_help(sys.stderr)
        return USAGE
    if sys.stdout is None and not any(getattr(options, name, None) for name in WRITTEN):
        hint = "; name a file with --out" if hasattr(options, "out") else ""
        raise ValueError(f"standard output is closed, and the results would be written there{hint}")
    output = Output(options.json, options.quiet)
    code = options.run(options, output)
    output.finish()
    return int(code or DONE)


def _leave_stdout() -> None:
    """Discard output that could not be written; otherwise Python would try again at exit, and complain."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    """Return the message of an exception; for errors of the system the reason and the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return as_options(str(error)) or type(error).__name__


def entry(program: Callable[[], int] = main) -> None:
    """Run as a program."""
    signal.signal(signal.SIGTERM, _stop)  # from a scheduler: the best model so far is saved, as after Ctrl-C
    sys.exit(program())


def _stop(*_: object) -> None:
    raise KeyboardInterrupt
