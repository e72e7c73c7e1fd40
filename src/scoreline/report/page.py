"""A page about a model: one HTML file without scripts or anything from the network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.io.files import whole_file
from scoreline.report import html_parts as parts
from scoreline.report.page_sections import (
    curve_section,
    cut_section,
    data_section,
    proof_section,
    reproduce_section,
    score_section,
    weight_section,
)
from scoreline.report.page_style import style_sheet
from scoreline.runtime.types import AnyArray, FloatArray

KINDS = {"pays": "Training for the measure pays", "tie": "A tie", "loses": "It does not pay here", "model": "The model"}


@dataclass(frozen=True)
class PageContent:
    """What a page says.

    Attributes
    ----------
    title : str
        Heading of the page.
    verdict : str
        One plain sentence: what came out.
    verdict_kind : {"pays", "tie", "loses", "model"}
        How a comparison ended, or "model" where nothing was compared.
    table : list of dict of str to str
        Rows of the comparison; keys are the columns. May be empty.
    classifier : MeasureClassifier
        The fitted classifier that the page is about.
    y_true : array of n bool
        Which of the evaluated rows are positive.
    decisions : dict of str to array of n numbers
        Decision values of each model on the evaluated rows; the first are those of `classifier`.
    evaluated_on : str
        What the evaluated rows are: "143 test rows".
    names : list of str or None
        Names of the features.
    facts : list of (str, str)
        Facts about the data.
    warnings : list of str
        What the reader should beware of.
    commands : list of str
        How to do it again.
    column_scale : array of p numbers or None
        Standard deviations of the columns; weights are shown times these.
    created : str
        When, and by which version.
    table_caption : str
        What the numbers of the table are; by default those of the evaluated rows.
    second_verdict : str
        A sentence below the verdict: how another kind of model compares. May be empty.
    """

    title: str
    verdict: str
    verdict_kind: str
    table: list[dict[str, str]]
    classifier: Any
    y_true: AnyArray
    decisions: dict[str, FloatArray]
    evaluated_on: str
    names: list[str] | None
    facts: list[tuple[str, str]]
    warnings: list[str]
    commands: list[str]
    column_scale: AnyArray | None = None
    created: str = ""
    table_caption: str = ""
    second_verdict: str = ""

    def __post_init__(self) -> None:
        if self.verdict_kind not in KINDS:
            raise ValueError(f"verdict_kind={self.verdict_kind!r} must be one of {list(KINDS)}")
        if not self.decisions:
            raise ValueError("decisions must hold the decision values of the classifier")
        rows = np.shape(self.y_true)
        for name, values in self.decisions.items():
            if np.shape(values) != rows or len(rows) != 1 or rows[0] == 0:
                raise ValueError(
                    f"decisions[{name!r}] has shape {np.shape(values)} and y_true {rows}: they must be vectors of one length"
                )


def write_page(path: Any, content: PageContent) -> Path:
    """Write a page about a model as one HTML file: no script, no font, no picture from anywhere else.

    The file is there as a whole or not at all, and the same content gives the same bytes.

    Parameters
    ----------
    path : path
        Where to write.
    content : PageContent
        What it says.

    Returns
    -------
    Path
        The file that was written.
    """
    path = Path(path)
    text = page_text(content)
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
    return path


def page_text(content: PageContent) -> str:
    """Return the HTML of a page.

    Parameters
    ----------
    content : PageContent
        What it says.

    Returns
    -------
    str
        The whole document.
    """
    sections = [
        ("results", "Results", _results(content)),
        ("proof", "Certificate", proof_section(content)),
        ("curves", "Curves", curve_section(content)),
        ("cut", "Cut", cut_section(content)),
        ("scores", "Scores", score_section(content)),
        ("weights", "Weights", weight_section(content)),
        ("data", "Data", data_section(content)),
        ("reproduce", "Reproduce", reproduce_section(content)),
    ]
    shown = [(key, name, body) for key, name, body in sections if body]
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, _ in shown)
    created = parts.paragraph(content.created, "small")
    title = parts.escaped(content.title)
    body = "\n".join(body for _, _, body in shown)
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style_sheet()}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header class="wrap">
<p class="kicker">scoreline report</p>
<h1>{title}</h1>
<p class="meta">Evaluated on {parts.escaped(content.evaluated_on)}.</p>
</header>
<main id="main" class="wrap" tabindex="-1">
<div class="verdict {content.verdict_kind}" role="region" aria-labelledby="verdict-h">
<h2 id="verdict-h">{KINDS[content.verdict_kind]}</h2>
<p>{parts.escaped(content.verdict)}</p>
{parts.paragraph(content.second_verdict)}
</div>
<nav aria-label="Sections"><ul>{links}</ul></nav>
{body}
</main>
<footer class="wrap">
{created}
<p class="small">Made by scoreline. This page is one file and loads nothing.</p>
</footer>
</body>
</html>
"""


def _results(content: PageContent) -> str:
    if not content.table:
        return ""
    return parts.section(
        "results", "Results", parts.table(content.table, content.table_caption or f"On {content.evaluated_on}", True)
    )
