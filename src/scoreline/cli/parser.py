"""The arguments of all commands, with their help."""

import argparse
import difflib
import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from scoreline.runtime.checks import check_number, is_finite

COMMANDS = {
    "train": "train a model for a measure and save it",
    "predict": "predict rows with a saved model and write CSV",
    "evaluate": "evaluate a saved model on labelled rows",
    "compare": "compare scoreline with logistic regression and boosted trees on your data",
    "scorecard": "make a scorecard of a table: integer points for a few bins of each column",
    "monitor": "compare new rows with those that a model or a scorecard was trained on",
    "export": "export a saved model to ONNX, SQL or JSON",
    "convert": "convert a file to a folder that can be larger than memory",
    "info": "describe a data file or a saved model, and point out problems",
    "measures": "list the measures, or the solvers",
    "doctor": "describe the installation for an issue: versions, threads, caches, devices, what is missing",
}
PATHS = (
    "FILE",
    "FOLDER",
    "MODEL",
    "HTML",
    "CSV",
    "FOLDER_OR_MODEL",
    "CARD",
    "MODEL_OR_CARD",
)  # what arguments are called that name a file
EPILOG = """examples:
  scoreline info payments.csv --label outcome
  scoreline compare payments.csv --label outcome --positive fraud --measure average_precision
  scoreline train payments.csv --label outcome --positive fraud --measure average_precision --out model.npz
  scoreline predict model.npz today.csv > scores.csv

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted"""


class UsageError(ValueError):
    """Wrong usage that is detected after the arguments were parsed."""


class Parser(argparse.ArgumentParser):
    """Prints errors in one line instead of the usage, which fills a screen."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end with the code of wrong usage."""
        self.exit(2, f"scoreline: error: {message}\nsee {self.prog} --help\n")

    def near(self, wrong: Sequence[str]) -> str:
        """Return a hint with the options nearest to the unknown ones."""
        given = [text.partition("=")[0] for text in wrong if text.startswith("--")]
        near = [name for text in given for name in difflib.get_close_matches(text, self._option_string_actions, 1, 0.7)]
        return f"; did you mean {' and '.join(near)}?" if near else ""


def make_parser(arguments: Sequence[str] = ()) -> Parser:
    """Return the parser of the command line, with the arguments of the commands named in `arguments`.

    A command is a module of this folder with `EXAMPLES`, `add_arguments`, and `run`, which may return an exit code. It is
    imported only when it is needed, so that --help and --version are fast.
    """
    from scoreline import __version__

    parser = Parser(
        prog="scoreline",
        description="Train linear and additive classifiers for the measure you report, with a certificate of optimality.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"scoreline {__version__}")
    parser.add_argument(
        "--completion", action=Completion, choices=("bash", "zsh", "tcsh"), help="print tab completions for this shell"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ("" if summary.endswith("?") else "."),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in arguments or any(argument.startswith("--completion") for argument in arguments):
            module = importlib.import_module(f"scoreline.cli.{name}")
            command.epilog = module.EXAMPLES
            module.add_arguments(command)
            add_output(command)
            command.set_defaults(run=module.run, command=command)
    return parser


def parse(arguments: Sequence[str]) -> tuple[Any, Parser]:
    """Return the options and the parser; wrong commands and options end the program with the nearest right ones."""
    parser = make_parser(arguments)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        near = difflib.get_close_matches(arguments[0], COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        parser.error(f"{arguments[0]!r} is not a command, expected one of {', '.join(COMMANDS)}{hint}")
    options, rest = parser.parse_known_args(arguments)
    if rest:
        command: Parser = getattr(options, "command", parser)
        command.error(f"unrecognized arguments: {' '.join(rest)}{command.near(rest)}")
    return options, parser


class Completion(argparse.Action):
    """Prints the completions for a shell."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None) -> None:
        """Print and end."""
        from scoreline.cli.output import write_stdout

        try:
            text = completion(parser, values)
        except ImportError as error:
            parser.error(str(error))
        write_stdout(text)
        parser.exit()


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completions for a shell, which shtab generates from the parser of all commands."""
    from scoreline.runtime.optional import require

    shtab = require("shtab", "cli", "shell completion")
    commands = next(each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    for command in commands.values():
        for action in command._actions:
            if (action.metavar or action.dest.upper()) in PATHS:
                action.complete = shtab.FILE
    return str(shtab.complete(parser, shell)) + "\n"


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command."""
    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="print the result as one JSON object")
    add("--quiet", action="store_true", help="print only results and errors, without progress and notes")


def add_reading(parser: argparse.ArgumentParser, label: bool = True, encoded: bool = True) -> None:
    """Add the options of reading files: with labels, and with how columns become features."""
    add = parser.add_argument_group("reading the file").add_argument
    if label:
        add("--label", metavar="COLUMN", help="name of the label column; needed for tables")
        add(
            "--positive",
            metavar="VALUE",
            help="label of the positive class, the one to detect (default: the last label in sorted order)",
        )
        add(
            "--categories",
            type=names,
            default=(),
            metavar="A,B",
            help="numeric columns to treat as categories, such as codes",
        )
        add("--drop", type=names, default=(), metavar="A,B", help="columns to ignore, such as row numbers and keys")
    if label and encoded:
        add(
            "--impute",
            choices=("mean", "zero", "none"),
            help="how to fill missing numbers (default: mean); none makes them an error",
        )
        add(
            "--no-indicators",
            dest="indicators",
            action="store_const",
            const=False,
            help="do not add a 0/1 feature for each column with missing numbers",
        )
        add(
            "--min-category-rows",
            type=number(least=1, integer=True),
            metavar="ROWS",
            help="in columns with more than 50 categories, merge those with fewer rows than this (default: 10); 1 merges none",
        )
    add("--missing", type=names, default=(), metavar="A,B", help="texts that mean a missing value, such as ?")
    add("--separator", metavar="CHAR", help="character between CSV values (default: a comma, or a tab for .tsv)")
    add(
        "--zero-based",
        action=argparse.BooleanOptionalAction,
        help="whether indices of LIBSVM text start at 0 (default: detected)",
    )


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options of training."""
    add = parser.add_argument_group("training").add_argument
    add("--measure", default="roc_auc", help="measure to train for; `scoreline measures` lists them (default: roc_auc)")
    add(
        "--measure-param",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of the measure, such as beta=2 or precision=0.9; repeat for more",
    )
    scales = ("auto", "none", "maxabs", "standard", "robust", "quantile")
    add(
        "--scaling",
        choices=scales,
        default="auto",
        help="how to scale columns (default: auto, which is standard for dense and maxabs for sparse data); "
        "use robust or quantile if columns have extreme values",
    )
    add("--seed", type=number(least=0, integer=True), default=0, help="random seed (default: 0)")


def check_measure(options: Any, solvers: Sequence[str] = ()) -> None:
    """Raise before anything is read if a measure, its parameters or a solver are unknown."""
    from scoreline.measures import get_measure
    from scoreline.solvers.registry import get_solver

    try:
        get_measure(options.measure, dict(options.measure_param) or None)
        for solver in solvers:
            if solver != "auto":
                get_solver(solver)
    except ValueError as error:
        text = str(error)
        raise UsageError(text.replace("solver=", "solvers=", 1) if hasattr(options, "solvers") else text) from None


def check_outputs(options: Any, written: Sequence[str], read: Sequence[str] = ("file",)) -> None:
    """Raise early if results cannot be written, or would overwrite each other or the data.

    `written` and `read` are the names of the options with paths.
    """
    taken = {Path(path).resolve(): name for name in read if (path := getattr(options, name, None))}
    for name in written:
        path = getattr(options, name, None)
        if not path:
            continue
        option, folder = f"--{name}", Path(path).absolute().parent
        if not folder.is_dir():
            raise ValueError(f"{option} {path}: the folder {folder} does not exist; create it first")
        if Path(path).is_dir():
            raise ValueError(f"{option} {path} is a folder, expected a file")
        other = taken.setdefault(Path(path).resolve(), option)
        if other != option:
            what = other if other.startswith("--") else f"the {other} that is read"
            raise UsageError(f"{option} {path} is also {what}; choose another path")


def names(text: str) -> tuple[str, ...]:
    """Return names separated by commas."""
    return tuple(name for name in text.split(",") if name)


def number(**limits: Any) -> Callable[[str], Any]:
    """Return a parser of numbers within the limits of `check_number`."""

    def read(text: str) -> Any:
        integer = limits.get("integer", False)
        value = _as_number(text, (int,) if integer else (int, float))
        try:
            check_number("", value, **limits)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r:.100} {str(error).partition(' ')[2]:.200}") from None
        return value if integer else float(value)

    return read


def pair(text: str) -> tuple[str, Any]:
    """Return NAME=VALUE as a name and a number, or a text if the value is not a number."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE, such as precision=0.9")
    found = _as_number(value, (int, float))
    if isinstance(found, int) and not is_finite(found):
        raise argparse.ArgumentTypeError(f"{text!r:.100} must be a number that 64 bits hold")
    return name, found


def _as_number(text: str, kinds: tuple[type, ...]) -> Any:
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text
