"""Pieces of HTML. All text is escaped here and nowhere else."""

import html
import re
from collections.abc import Sequence
from typing import Any

from scoreline.report.wording import clean

NUMBER = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?( ?%| ?s| ?ms)?|[-–]?")  # noqa: RUF001 - minus and dash of print
LONGEST_TABLE = 12  # rows; a longer table is folded


def escaped(text: Any) -> str:
    """Return text for HTML, cleaned and escaped; a number and its percent sign stay on one line."""
    return html.escape(clean(text), quote=True).replace(" %", "\N{NO-BREAK SPACE}%")


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph, or nothing for no text."""
    return f"<p{_class(kind)}>{escaped(text)}</p>" if text else ""


def section(key: str, heading: str, *parts: str) -> str:
    """Return a section with its heading, or nothing if all parts are empty."""
    body = "\n".join(part for part in parts if part)
    head = f'<section id="{key}" aria-labelledby="{key}-h">\n<h2 id="{key}-h">{escaped(heading)}</h2>'
    return f"{head}\n{body}\n</section>" if body else ""


def side_by_side(*parts: str) -> str:
    """Return figures and tables side by side where there is room."""
    return f'<div class="figures">\n{"".join(parts)}\n</div>'


def table(rows: Sequence[dict[str, str]], caption: str, mark_first: bool = False) -> str:
    """Return a table in a scrollable container; of a long table only the first rows are shown until it is unfolded."""
    if len(rows) <= LONGEST_TABLE:
        return _scrolling(rows, caption, mark_first) if rows else ""
    first = LONGEST_TABLE - 4
    folded = _scrolling(rows, f"{caption}, all of them", mark_first)
    return (
        _scrolling(rows[:first], f"{caption}: the first {first} of {len(rows)}", mark_first)
        + f"\n<details><summary>All {len(rows)} rows</summary>\n{folded}\n</details>"
    )


def _scrolling(rows: Sequence[dict[str, str]], caption: str, mark_first: bool) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {name for name in columns[1:] if all(NUMBER.fullmatch(clean(row.get(name, ""))) for row in rows)}
    head = "".join(f'<th scope="col"{_class("number" * (name in numeric))}>{escaped(name)}</th>' for name in columns)
    body = []
    for k, row in enumerate(rows):
        cells = f'<th scope="row">{escaped(row.get(columns[0], ""))}</th>'
        for name in columns[1:]:
            text = row.get(name, "")
            kind = "number" if name in numeric else "short" * (len(clean(text)) <= 28)
            cells += f"<td{_class(kind)}>{escaped(text)}</td>"
        body.append(f"<tr{_class('first' * (mark_first and k == 0))}>{cells}</tr>")
    # A scrollable region must be reachable by the keyboard and therefore needs a name. The caption is outside of the table,
    # so that it does not scroll.
    name = escaped(caption)
    return (
        f'<p class="caption" aria-hidden="true">{name}</p>\n'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">\n<table aria-label="{name}">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(body) + "\n</tbody>\n</table>\n</div>"
    )


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a list of names and values."""
    items = "\n".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs)
    return f"<dl>\n{items}\n</dl>" if pairs else ""


def warning_list(warnings: Sequence[str]) -> str:
    """Return warnings as a list."""
    items = "\n".join(f"<li><strong>Warning:</strong> {escaped(text)}</li>" for text in warnings)
    return f'<ul class="warnings">\n{items}\n</ul>' if warnings else ""


def code(lines: Sequence[str]) -> str:
    """Return commands to be typed, with their line breaks."""
    printable = ("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(line)) for line in lines)
    words = html.escape("\n".join(printable), quote=True)
    return f'<pre tabindex="0" role="region" aria-label="Commands"><code>{words}</code></pre>' if lines else ""


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
