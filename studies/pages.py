"""What a study leaves behind: NAME.json, NAME.md and pictures."""

import datetime
import json
import os
import platform
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from scoreline.io.files import atomic_file
from scoreline.runtime.optional import require
from studies.study import Findings, Study, Table


def markdown(study: Study, findings: Findings, pictures: dict[str, str]) -> str:
    """Return the page of a study."""
    from scoreline import __version__

    made = (
        f"scoreline {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {datetime.date.today()}"
    )
    options = ["--quick"] * study.quick + ([] if study.limit is None else [f"--limit {study.limit:g}"])
    command = f"make reproduce NAME={study.name}"
    if options:
        command += f' ARGS="{" ".join(options)}"' if study.limit is not None else " ARGS=--quick"
    took = f"One after the other, the parts took {findings.seconds / 60.0:.1f} minutes of one core."
    parts = [f"# {study.name}", filled(study.paper + "."), filled(f"`{command}`; {made}."), took]
    if study.limit is not None:
        parts.append(
            filled(f"Reduced run: every fit had at most {study.limit:g} s, instead of the limit of the study.")
        )
    if study.quick:
        parts.append("Quick run: small problems, whose figures say little about the paper's.")
    if findings.missing:
        parts.append(filled(f"Not on this machine: {', '.join(findings.missing)}."))
    if findings.left:
        parts.append("Not run, for lack of time:\n\n" + "\n".join(f"- {cell}" for cell in findings.left))
    if findings.claims:
        head = ("the paper says", "its figure", "found, as printed", "with scoreline's defaults", "verdict, as printed")
        rows = [
            (c.text, c.paper, c.found, c.defaults or "-", c.verdict + (f": {c.reason}" if c.reason else ""))
            for c in findings.claims
        ]
        parts += ["## Claims", grid(Table("", head, rows), right=False)]
    for table in findings.tables:
        parts += [f"## {table.title}", grid(table)] + ([filled(table.note)] if table.note else [])
    parts += [f"![{name}]({path})" for name, path in pictures.items()]
    return "\n\n".join(parts) + "\n"


def filled(text: str) -> str:
    """Return a paragraph in lines of at most 100 characters, as in the rest of the documentation."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def grid(table: Table, right: bool = True) -> str:
    """Return a table as Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (table.head, *table.rows)]
    rules = ["---"] + ["---:" if right else "---"] * (len(table.head) - 1)
    lines.insert(1, "| " + " | ".join(rules) + " |")
    return "\n".join(lines)


def write(out: Path, study: Study, findings: Findings, results: dict[str, Any]) -> list[str]:
    """Write NAME.json, NAME.md and NAME-FIGURE.png; return what could not be drawn, and why."""
    pictures, notes = {}, []
    for name, draw in findings.figures.items():
        path = out.with_name(f"{out.name}-{name}.png")
        try:
            _draw(path, draw)
        except ImportError as error:
            notes.append(str(error))
            break
        pictures[name] = path.name
    content = {
        "study": study.name, "paper": study.paper, "quick": study.quick, "reproduces": findings.reproduces,
        "missing": findings.missing, "left": findings.left, "seconds": findings.seconds,
        "claims": [claim._asdict() for claim in findings.claims],
        "tables": [table._asdict() for table in findings.tables], "cells": results, "versions": _versions(),
    }  # fmt: skip
    with atomic_file(out.with_name(out.name + ".json")) as file:
        file.write(json.dumps(content, indent=1, allow_nan=False).encode())
    with atomic_file(out.with_name(out.name + ".md")) as file:
        file.write(markdown(study, findings, pictures).encode())
    return notes


def _draw(path: Path, draw: Any) -> None:
    figures = require("matplotlib.figure", "plot", "pictures of a study")
    figure = figures.Figure(layout="constrained")
    draw(figure)
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=110)


def _versions() -> dict[str, str]:
    from scoreline import __version__

    return {
        "scoreline": __version__, "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }  # fmt: skip
