"""Pieces of HTML: every text of theirs is escaped here, and nowhere else."""

import html
import re
from collections.abc import Sequence
from typing import Any

from scoreline.report.wording import clean

NUMBER = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?( ?%| ?s| ?ms)?")  # noqa: RUF001 (a minus sign of print)
LONG = 12  # rows of a table that are shown at once


def escaped(text: Any) -> str:
    """Return text for HTML, cleaned and escaped; a number and its percent sign stay on one line."""
    return html.escape(clean(text), quote=True).replace(" %", "\N{NO-BREAK SPACE}%")


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph, or nothing for no text."""
    return f"<p{_class(kind)}>{escaped(text)}</p>" if text else ""


def section(key: str, heading: str, *parts: str) -> str:
    """Return a section with its heading."""
    body = "\n".join(part for part in parts if part)
    return (
        f'<section id="{key}" aria-labelledby="{key}-h">\n<h2 id="{key}-h">{escaped(heading)}</h2>\n{body}\n</section>'
    )


def figure(svg: str, caption: str) -> str:
    """Return a figure with its caption; svg is an element that is already safe."""
    return f"<figure>\n{svg}\n<figcaption>{escaped(caption)}</figcaption>\n</figure>"


def figures(*parts: str) -> str:
    """Return figures side by side where there is room."""
    return f'<div class="figures">\n{"".join(parts)}\n</div>'


def table(rows: Sequence[dict[str, str]], caption: str, mark_first: bool = False) -> str:
    """Return a table in a container that scrolls on its own; what is beyond the first rows is folded away."""
    if not rows:
        return ""
    if len(rows) <= LONG:
        return _scrolling(rows, caption, mark_first)
    folded = _scrolling(rows, f"{caption}, all of them", mark_first)
    return (
        _scrolling(rows[: LONG - 4], f"{caption}: the first {LONG - 4} of {len(rows)}", mark_first)
        + f"\n<details><summary>All {len(rows)} rows</summary>\n{folded}\n</details>"
    )


def _scrolling(rows: Sequence[dict[str, str]], caption: str, mark_first: bool) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {name for name in columns[1:] if all(_is_number(row.get(name, "")) for row in rows)}
    head = "".join(f'<th scope="col"{_class("number" * (name in numeric))}>{escaped(name)}</th>' for name in columns)
    body = []
    for k, row in enumerate(rows):
        cells = [f'<th scope="row">{escaped(row.get(columns[0], ""))}</th>']
        cells += [
            f"<td{_class('number' if name in numeric else _short(row.get(name, '')))}>{escaped(row.get(name, ''))}</td>"
            for name in columns[1:]
        ]
        body.append(f"<tr{_class('first' * (mark_first and k == 0))}>{''.join(cells)}</tr>")
    # A region that scrolls must be reached by the keyboard, and so needs a name. The caption is no part of the table: it
    # would scroll away with it.
    name = escaped(caption)
    return (
        f'<p class="caption" aria-hidden="true">{name}</p>\n'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">\n<table aria-label="{name}">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(body) + "\n</tbody>\n</table>\n</div>"
    )


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a list of names and values."""
    if not pairs:
        return ""
    return "<dl>\n" + "\n".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in pairs) + "\n</dl>"


def warning_list(warnings: Sequence[str]) -> str:
    """Return warnings as a list."""
    if not warnings:
        return ""
    items = "\n".join(f"<li><strong>Warning:</strong> {escaped(text)}</li>" for text in warnings)
    return f'<ul class="warnings">\n{items}\n</ul>'


def code(lines: Sequence[str]) -> str:
    """Return commands as they are to be typed, line breaks kept."""
    kept = ("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(line)) for line in lines)
    words = html.escape("\n".join(kept), quote=True)
    return f'<pre tabindex="0" role="region" aria-label="Commands"><code>{words}</code></pre>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _short(text: Any) -> str:
    return "short" if len(clean(text)) <= 28 else ""


def _is_number(text: Any) -> bool:
    text = clean(text)
    return text in ("", "-", "–") or NUMBER.fullmatch(text) is not None  # noqa: RUF001 (a dash of print)
