"""docs/command_line.md is what happens: every command is run, and its output compared with what stands there.

`make update-docs` writes the outputs that differ again, with what differs between machines elided.
"""

import contextlib
import doctest
import importlib
import io
import math
import os
import re
import shlex
import tempfile
from pathlib import Path

import pytest

from scoreline.cli import output
from scoreline.cli.main import main
from tiers import TIER

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARIES = (
    (re.compile(r"^(  boosted trees +).*$", re.MULTILINE), r"\1..."),  # values depend on the version of scikit-learn
    (
        re.compile(r"(HistGradientBoosting\) reach )\S+( against \S+ with the best linear model \().*?(\): ).*"),
        r"\1...\2...\3...",
    ),
    (re.compile(r"after \d+ iterations"), "after ... iterations"),
    (re.compile(r"\(gap [^)]*\)"), "(gap ...)"),
    (re.compile(r"\b\d+\.\d+ s\b"), "... s"),
    (re.compile(r" Training is \d+\.\d times (faster|slower) than [^.]*\."), "..."),
    (re.compile(r"^(  (?:scoreline|logistic|boosted) .*?) +\d+\.\d+$", re.MULTILINE), r"\1 ..."),  # seconds
    (re.compile(r"--alpha \d\S*(?= --out)"), "--alpha ..."),
    (re.compile(r"(?!0\.000[01]\b)(\d\.\d\d)\d+(e-\d+)?"), r"\1..."),
    (re.compile(r'("seconds": )[^,}]*'), r"\1..."),
)


def commands(text):
    """Return [command, what it prints] of a block."""
    found = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:].strip(), ""])
        else:
            found[-1][1] += line
    return found


def printed(command):
    """Return what a command prints, messages among results as on a terminal."""
    line, _, head = command.partition(" | head -")
    name, *arguments = shlex.split(line)
    assert name == "scoreline"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        assert main(arguments) == 0, out.getvalue()
    lines = out.getvalue().splitlines(keepends=True)
    return "".join(lines[: int(head)] if head else lines)


def matches(shown, got):
    """Tell whether the output on a page is what was printed, apart from what the page elides."""
    return doctest.OutputChecker().check_output(shown, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def hide_what_depends_on_speed(set_attribute):
    """Print no progress, which is a bar on a terminal and goes away, and no estimate of the time."""
    set_attribute(output, "PROGRESS_SECONDS", math.inf)
    set_attribute(importlib.import_module("scoreline.model_selection.trials"), "LONG", math.inf)


def test_the_page_is_what_happens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hide_what_depends_on_speed(monkeypatch.setattr)
    count = 0
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "python":
            exec(text, {})
            continue
        for command, expected in commands(text):
            if TIER == "quick" and command.startswith("scoreline compare"):  # many fits of boosted trees
                continue
            count += 1
            got = printed(command)
            if not matches(expected, got):
                pytest.fail(f"$ {command}\nexpected:\n{expected}\ngot:\n{got}")
    assert count > 10


def test_only_outputs_that_differ_are_written_again(monkeypatch):
    outputs = {"scoreline info": "rows 7\nin 1.25 s\n", "scoreline train": "gap of 8 rows\n(gap 0.43 %)\n"}
    monkeypatch.setitem(globals(), "printed", outputs.get)
    block = "```console\n$ scoreline info\nrows\n   7 in ...\n$ scoreline train\ngap of 7 rows\n```"
    assert BLOCK.sub(renewed, block) == block.replace("of 7 rows", "of 8 rows\n(gap ...)")


def elided(text):
    for pattern, replacement in VARIES:
        text = pattern.sub(replacement, text)
    return text


def current(shown, got):
    """Return the output for a page: what it shows if that is still right."""
    return shown if matches(shown, got) else elided(got)


def renewed_commands(text):
    """Return a block of commands with their current outputs."""
    return "".join(f"$ {command}\n{current(shown, printed(command))}" for command, shown in commands(text))


def renewed(match):
    if match[1] == "python":
        exec(match[2], {})
        return match[0]
    return f"```console\n{renewed_commands(match[2])}```"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        hide_what_depends_on_speed(setattr)
        PAGE.write_text(BLOCK.sub(renewed, PAGE.read_text()))
