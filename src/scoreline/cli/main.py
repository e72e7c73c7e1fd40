"""The entry point: finds the verb, and turns what goes wrong into a message and an exit code."""

import os
import signal
import sys
from collections.abc import Sequence

from scoreline.cli.output import Output
from scoreline.cli.parser import make_parser

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    0: done. 1: failed, with a message on standard error. 2: wrong usage. 130: Ctrl-C (what was learnt so far is saved, and a
    line says where).
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    output = Output()
    try:
        parser = make_parser(arguments)
        options = parser.parse_args(arguments)
        if not hasattr(options, "run"):
            parser.print_help(sys.stderr)
            return USAGE
        output = Output(options.json, options.quiet)
        code = options.run(options, output)
        output.finish()
        sys.stdout.flush()
        return int(code or DONE)
    except BrokenPipeError:  # `| head` has what it wanted: nothing failed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        output.error("interrupted")
        return INTERRUPTED
    except MemoryError as error:
        output.error(
            f"not enough memory ({error}); convert the data to a folder and train from there: scoreline convert --help"
        )
    except (ValueError, TypeError, OSError, ImportError) as error:
        output.error(_message(error))
    return FAILED


def _message(error: Exception) -> str:
    """Return what an exception says; of the system's the reason and the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def entry() -> None:
    """Run as a program."""
    signal.signal(signal.SIGTERM, _stop)  # from a scheduler: what was learnt is saved as with Ctrl-C
    sys.exit(main())


def _stop(*_: object) -> None:
    raise KeyboardInterrupt
