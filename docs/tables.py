"""What is made from the code: tables of the reference pages, the man page, and the completions for shells.

`python docs/tables.py` writes the tables into the pages, between the comments that mark them, and the other files into
`packaging/share`, from where the wheel installs them. Tests compare.
"""

import argparse
import inspect
from pathlib import Path

from scoreline.cli.parser import COMMANDS, EPILOG, completion, make_parser
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.measures import AtKMeasure, CountsBasedMeasure, OperatingPoint, RankingMeasure, all_measures
from scoreline.measures.registry import get_measure
from scoreline.solvers.registry import all_solvers

DOCS = Path(__file__).resolve().parent


def grid(head, rows):
    """Return a table as Markdown."""
    lines = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def code(text):
    """Return a piece of code as Markdown."""
    return f"`{text}`"


def options_of(parser):
    """Yield (group, argument) of a command, without help and hidden arguments."""
    for group in parser._action_groups:
        for each in group._group_actions:
            if not isinstance(each, argparse._HelpAction) and each.help != argparse.SUPPRESS:
                yield group.title, each


def spelling(action):
    """Return how an argument is written."""
    if not action.option_strings:
        return code(action.metavar or action.dest)
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return ", ".join(map(code, action.option_strings))
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    return ", ".join(code(f"{name} {value}") for name in action.option_strings)


SHARED = ("reading the file", "output")  # groups of options that several commands have


def command_line():
    """Return one section per command of the command line, and one per group of options that commands share."""
    parser = make_parser(list(COMMANDS))
    commands = next(each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    shared, parts = {group: {} for group in SHARED}, []
    for name, command in commands.items():
        rows = []
        for group, action in options_of(command):
            row = (spelling(action), action.help.replace("%%", "%"))
            if group in shared:
                shared[group].setdefault(row, []).append(name)
            else:
                rows.append(row)
        parts += [f"## {name}", command.description, *([grid(["argument", "meaning"], rows)] if rows else [])]
    for group, options in shared.items():
        rows = [(*row, "all" if len(names) == len(commands) else ", ".join(names)) for row, names in options.items()]
        parts += [f"## {group.capitalize()}", grid(["option", "meaning", "commands"], rows)]
    return "\n\n".join(parts)


def parameters(measure):
    """Return the parameters of a measure with their defaults."""
    known = inspect.signature(type(measure).__init__).parameters.values()
    shown = [f"`{each.name}` ({each.default})" for each in known if each.default is not each.empty]
    return ", ".join(shown).replace("(None)", "(optional)")


FAMILIES = {
    "Measures at k": AtKMeasure,  # these are ranking measures, too
    "Ranking measures": RankingMeasure,
    "Operating points": OperatingPoint,
    "Count-based measures": CountsBasedMeasure,
}


def measures():
    """Return one table per family of measures: what each is, and the risks that may be trained for it."""
    left, parts = {name: get_measure(name) for name in sorted(all_measures())}, []
    for title, family in FAMILIES.items():
        members = {name: each for name, each in left.items() if isinstance(each, family)}
        left = {name: each for name, each in left.items() if name not in members}
        rows = []
        for name, each in sorted(members.items(), key=lambda pair: (pair[1].research, pair[0])):
            summary = each.summary + (" (research)" if each.research else "")
            rows.append((code(name), summary, parameters(each), ", ".join(map(code, each.risks))))
        parts += [f"## {title}", grid(["measure", "what it is", "parameters (default)", "risks"], rows)]
    if left:
        raise ValueError(f"measures of no family: {', '.join(left)}")
    return "\n\n".join(parts)


def solvers():
    """Return one table of the solvers that "auto" may choose or that users ask for, and one for research."""
    from scoreline import list_solvers

    parts = []
    for title, research in {"Solvers": False, "Solvers for research": True}.items():
        known = [each for each in list_solvers() if each.research == research]
        rows = [
            (
                code(each.name),
                each.summary,
                ", ".join(map(code, each.risks)),
                "yes" if all_solvers()[each.name].certified else "no",
                each.alpha,
            )
            for each in known
        ]
        parts += [f"## {title}", grid(["solver", "what it does", "risks", "certificate", "what alpha means"], rows)]
    return "\n\n".join(parts)


SHAPES = {
    "a hundred rows per feature or more": Shape(10_000, 10, 3_000),
    "fewer rows": Shape(900, 10, 300),
    "a thousand features or more": Shape(5_000, 2_000, 1_500),
}


def plans():
    """Return a table of what "auto" takes for each measure and shape; measures of equal plans share a row."""
    rows = {}
    for name in all_measures():
        decided = [plan(Request(), get_measure(name), shape) for shape in SHAPES.values()]
        cells = [f"{code(each.solver.name)}, {each.risk.name}" for each in decided]
        scarce = decided[list(SHAPES).index("fewer rows")]
        rows.setdefault((*cells, scarce.training.value, scarce.solver.reason), []).append(code(name))
    head = ["measure", *SHAPES, "trained by", "why"]
    return grid(head, [(", ".join(names), *cells) for cells, names in rows.items()])


# The tables of a page in their order.
MADE = {"cli.md": [command_line], "measures.md": [measures], "solvers.md": [plans, solvers]}
SHARE = DOCS.parent / "packaging" / "share"
COMPLETIONS = {"bash": "bash-completion/completions/scoreline", "zsh": "zsh/site-functions/_scoreline"}
MAN_PAGE = "man/man1/scoreline.1"


def roff(text):
    """Return a text for `man`: its backslashes and hyphens, and lines that would be commands, are quoted."""
    quoted = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in quoted.splitlines())


def man_options(parser):
    """Return the arguments of a command for `man`."""
    lines = []
    for _, action in options_of(parser):
        lines += [".TP", ".B " + roff(spelling(action).replace("`", "")), roff(action.help or "")]
    return lines


def man_page():
    """Return the man page: every command with its options and its examples."""
    parser = make_parser(list(COMMANDS))
    commands = next(each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    examples, _, codes = EPILOG.partition("exit codes: ")
    examples = "\n".join(line.strip() for line in examples.splitlines()[1:])
    lines = [
        f'.\\" Written by docs/{Path(__file__).name}.',
        '.TH SCORELINE 1 "" "scoreline" "User Commands"',
        *(".SH NAME", "scoreline \\- " + roff(parser.description[0].lower() + parser.description[1:].rstrip("."))),
        *(".SH SYNOPSIS", ".B scoreline", "COMMAND [options]", ".br", ".B scoreline", roff("--version | --help")),
        *(".SH DESCRIPTION", roff("Each command has its own --help.")),
        ".SH COMMANDS",
    ]
    for name, command in commands.items():
        lines += [f".SS {name}", roff(command.description), *man_options(command)]
        lines += [".PP", ".EX", roff("\n".join(line.strip() for line in command.epilog.splitlines()[1:])), ".EE"]
    lines += [".SH EXAMPLES", ".EX", roff(examples.strip()), ".EE", ".SH EXIT STATUS", roff(codes)]
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- begin: written by docs/tables.py -->", "<!-- end -->"


def renewed(page):
    """Return the text of a page with its tables recomputed."""
    text = (DOCS / page).read_text(encoding="utf-8")
    before, *parts = text.split(BEGIN)
    for table, part in zip(MADE[page], parts, strict=True):
        before += f"{BEGIN}\n\n{table()}\n\n{END}{part.partition(END)[2]}"
    return before


if __name__ == "__main__":
    for name in MADE:
        (DOCS / name).write_text(renewed(name), encoding="utf-8")
    written = {
        MAN_PAGE: man_page(),
        **{path: completion(make_parser(["--completion"]), shell) for shell, path in COMPLETIONS.items()},
    }
    for name, text in written.items():
        (SHARE / name).parent.mkdir(parents=True, exist_ok=True)
        (SHARE / name).write_text(text, encoding="utf-8")
