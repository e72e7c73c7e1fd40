"""Scorecards as text: a page of HTML that prints on one sheet, Markdown, LaTeX."""

import html
import itertools
import math
import re
from pathlib import Path

from scoreline.scorecards.card import CardColumn, Scorecard

SHEET_WIDTH, SHEET_HEIGHT = 527.0, 774.0  # points of A4 without the margins of card.html
SIZES = (9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0)  # of letters in points; print below 6 is hard to read
MOST_COLUMNS, COLUMN_GAP = 4, 1.6  # columns of tables on a sheet, and the gap between them in ems
LEAST_LETTERS = 15  # of a label on one line
LETTER_WIDTH = 0.5  # of a letter on average, in ems
NUMBERS_WIDTH = 11.0  # of the three columns of numbers of a table, in ems
LINE_HEIGHT, SPACE_BETWEEN_TABLES = 1.55, 0.6  # in ems
TITLE_LINES = 2.5
FULL_SHARE = 0.9  # of the height of the columns; the rest is lost because tables are not divided
SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def html_page(card: Scorecard, title: str) -> str:
    """Return a page with the card, its scale, and what bins and rounding cost. It loads nothing."""
    columns, points = _density(card)
    template = Path(__file__).with_name("card.html").read_text(encoding="utf-8")
    words = "\n".join(f"<p>{html.escape(text)}</p>" for text in sentences(card))
    parts = {"columns": str(columns), "points": f"{points:g}", "title": html.escape(title), "words": words}
    parts["tables"] = html_tables(card)
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def html_tables(card: Scorecard) -> str:
    """Return one table per column of the card."""
    return '<div class="cards">\n' + "\n".join(_html_table(column) for column in card.columns) + "\n</div>"


def _html_table(column: CardColumn) -> str:
    head = "".join(f'<th scope="col">{text}</th>' for text in (html.escape(column.name), "Points", "Rows", "Events"))
    body = []
    for line in column.lines:
        kind = ' class="empty"' if line.rows == 0.0 else ""
        body.append(
            f'<tr{kind}><th scope="row">{html.escape(line.label)}</th><td class="points">{line.points}</td>'
            f"<td>{line.share:.1%}</td><td>{_rate(line.event_rate)}</td></tr>"
        )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(body) + "\n</tbody>\n</table>"


def _density(card: Scorecard) -> tuple[int, float]:
    """Return columns and size of letters, in points: the largest with which the card fits a sheet, or the largest of all."""
    for size, columns in itertools.product(SIZES, range(2, MOST_COLUMNS + 1)):
        width, height = SHEET_WIDTH / size, SHEET_HEIGHT / size
        head = TITLE_LINES + sum(math.ceil(len(text) * LETTER_WIDTH / width) for text in sentences(card))
        letters = int(((width - COLUMN_GAP * (columns - 1)) / columns - NUMBERS_WIDTH) / LETTER_WIDTH)
        if letters < LEAST_LETTERS:
            continue
        texts = [[column.name, *(line.label for line in column.lines)] for column in card.columns]
        lines = sum(math.ceil(len(text) / letters) for table in texts for text in table)
        needed = LINE_HEIGHT * lines + SPACE_BETWEEN_TABLES * len(texts)
        if needed <= FULL_SHARE * columns * (height - LINE_HEIGHT * head):
            return columns, size
    return 2, SIZES[0]


def sentences(card: Scorecard) -> list[str]:
    """Return how to read the card, and what it costs."""
    side = "at most" if card.pdo > 0 else "at least"
    more = "less" if card.pdo > 0 else "more"
    found = [
        f"The points of a row are {card.base_points} plus those of one line per table. More points mean that "
        f"{card.classes[1]!s} is {more} likely; rows with {side} {card.cutoff} points are classified as {card.classes[1]!s}.",
        f"{card.points:g} points stand for odds of {card.base:g} to 1 against {card.classes[1]!s}, and {abs(card.pdo):g} more "
        f"points {'double' if card.pdo > 0 else 'halve'} these odds. Made of {card.rows:,.0f} rows, {card.event_rate:.2%} of "
        "them events. Bins of numbers contain their upper edge.",
    ]
    loss = card.loss
    if loss:
        values, objective = loss["measure"], loss["objective"]
        found.append(
            f"{card.measure} on these rows: {values['card']:.4f} (unrounded {values['bins']:.4f}, model "
            f"{values['model']:.4f}). "
            f"Objective: {objective['card']:.5g}; no points for these bins have less than {loss['lower_bound']:.5g}."
        )
    return found


def markdown_table(card: Scorecard) -> str:
    """Return the sentences and one table as Markdown."""
    lines = [f"| {' | '.join(_row_heads())} |", "| --- | --- | ---: | ---: | ---: |"]
    for name, cells in _rows(card):
        lines.append(
            "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in (name, *cells)) + " |"
        )
    return "\n\n".join(sentences(card)) + "\n\n" + "\n".join(lines) + "\n"


def latex_table(card: Scorecard) -> str:
    """Return one tabular, with the sentences as comments."""
    comments = [f"% {text}" for text in sentences(card)]
    lines = [*comments, r"\begin{tabular}{llrrr}", r"\hline", " & ".join(_row_heads()) + r" \\", r"\hline"]
    for name, cells in _rows(card):
        lines.append(" & ".join(_latex(cell) for cell in (name, *cells)) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _row_heads() -> tuple[str, ...]:
    return ("Column", "Bin", "Points", "Rows", "Events")


def _rows(card: Scorecard) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (column.name if k == 0 else "", (line.label, str(line.points), f"{line.share:.1%}", _rate(line.event_rate)))
        for column in card.columns
        for k, line in enumerate(column.lines)
    ]


def _latex(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def _rate(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1%}"
