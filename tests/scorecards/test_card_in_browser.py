"""The page of a scorecard in a browser: one sheet of paper with letters that can be read, and nothing that overflows."""

import base64
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from card_rows import trained

from scoreline import MeasureClassifier

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from devtools import Browser, find_browser

pytestmark = pytest.mark.slow
SHEET = (794, 1123)  # A4 at 96 dots per inch
LEAST_LETTERS = 6.0 * 96 / 72
SMALLEST = (
    "Math.min(...[...document.querySelectorAll('h1, p, th, td')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
)
# Cells whose text is wider than they are.
CLIPPED = """
[...document.querySelectorAll('th, td')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)
"""
# Tables that begin in one column of the sheet and end in another.
DIVIDED = "[...document.querySelectorAll('table')].filter(e => e.getClientRects().length > 1).length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    command = find_browser()
    if command is None:
        pytest.skip("no Chromium here: install one, or set CHROMIUM to its command")
    opened = Browser(command, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def lender_card():
    clf, rows, y = trained()
    return clf.scorecard(rows.rename(columns=str), y)


def long_card(columns):
    """Return a card of this many columns, half of them with long names and two values each."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(3000, columns)).round(2), columns=[f"measurement {j}" for j in range(columns)])
    for j in range(1, columns, 2):
        rows[f"measurement {j}"] = rng.integers(0, 2, 3000)
    y = rows.to_numpy() @ rng.uniform(0.2, 1, columns) + columns**0.5 * rng.normal(size=3000) > columns / 8
    rows.columns = [name if j % 2 == 0 else f"{name} was taken at the second visit" for j, name in enumerate(rows)]
    return MeasureClassifier("roc_auc", features="additive", alpha=0.1).fit(rows, y).scorecard(rows, y)


CARDS = {"lender": lender_card, "ten": lambda: long_card(10), "twenty": lambda: long_card(20)}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_prints_on_one_sheet_that_can_be_read(browser, tmp_path, name):
    page = tmp_path / "card.html"
    CARDS[name]().to_html(page, title="Consumer loans")
    browser.open(page, *SHEET, media="print")
    printed = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert browser.value(SMALLEST) >= LEAST_LETTERS - 0.01
    assert browser.value("document.documentElement.scrollWidth") <= SHEET[0]
    assert browser.value(CLIPPED) == []
    assert browser.value(DIVIDED) == 0
    # SCREENSHOTS names a folder to keep the sheets in, for a look at them.
    Path(os.environ.get("SCREENSHOTS", tmp_path), f"card-{name}.pdf").write_bytes(printed)


def test_a_long_card_has_several_sheets_rather_than_tiny_letters(browser, tmp_path):
    page = tmp_path / "card.html"
    long_card(60).to_html(page)
    browser.open(page, *SHEET, media="print")
    printed = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 1
    assert browser.value(SMALLEST) >= LEAST_LETTERS - 0.01


@pytest.mark.parametrize("width", [360, 1280])
def test_a_card_fits_a_screen(browser, tmp_path, width):
    page = tmp_path / "card.html"
    long_card(10).to_html(page)
    browser.open(page, width)
    assert browser.value("document.documentElement.scrollWidth") <= width, "the page must not scroll sideways"
    assert browser.value(CLIPPED) == []
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == [], "nothing is loaded"
