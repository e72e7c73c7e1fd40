"""The tutorials as notebooks: `python docs/notebooks.py` writes docs/notebooks/*.ipynb from the Markdown pages.

Blocks of Python and commands become cells, and their printed output is left out: running the notebook makes it again.
`make docs` writes them as well and offers them for download.
"""

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
OUT = DOCS / "notebooks"
TUTORIALS = ("quickstart", "imbalanced", "production", "scorecards")
CELL = re.compile(r"^```(python|console)\n(.*?)^```$(?:\n\n^```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)
# Links to other pages, files to download and labels mean nothing outside the notebook.
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
DOWNLOAD = re.compile(r"^.*\{download\}.*\n\n", re.MULTILINE)
LABEL = re.compile(r"^\([\w-]+\)=\n", re.MULTILINE)


def commands(text):
    """Return the commands of a console block as lines of a cell."""
    return "\n".join("!" + line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ "))


def cells_of(page):
    """Yield (kind, source) of a page, "markdown" or "code"."""
    text, position = LABEL.sub("", DOWNLOAD.sub("", page)), 0
    for match in CELL.finditer(text):
        yield "markdown", text[position : match.start()]
        yield "code", commands(match[2]) if match[1] == "console" else match[2]
        position = match.end()
    yield "markdown", text[position:]


def notebook(page):
    """Return the notebook of a page as a dict in the format of Jupyter (4.5)."""
    cells = []
    for number, (kind, source) in enumerate(cells_of(page)):
        source = source.strip("\n")
        if kind == "markdown":
            source = LINK.sub(r"\1", source)
        if source:
            lines = source.splitlines(keepends=True)
            cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
            cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write():
    """Write the notebooks of all tutorials."""
    OUT.mkdir(exist_ok=True)
    for name in TUTORIALS:
        page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        text = json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"
        (OUT / f"{name}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
