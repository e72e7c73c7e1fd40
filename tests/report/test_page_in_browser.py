"""The page in a browser: three widths, light and dark, on paper; nothing overflows, nothing is cut off, nothing is said."""

import itertools
import os
from pathlib import Path

import pytest
from devtools import Browser, find_browser
from examples import EXAMPLES

from cases import for_each
from scoreline.report import write_page

pytestmark = pytest.mark.slow
WIDTHS = (360, 768, 1280)
# Words of the page and of its figures that lie outside of their figure, or upon each other.
BAD_LABELS = """
[...document.querySelectorAll('figure svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim())
    .map(t => [t.textContent, t.getBoundingClientRect()]);
  const bad = boxes.filter(([_, b]) => b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 ||
    b.bottom > frame.bottom + 1).map(([text]) => 'cut off: ' + text);
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([two, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 0.35 * Math.min(a.height, b.height)) bad.push(`overlap: ${one} | ${two}`);
  }));
  return bad;
})
"""
# The contrast of every text with what lies behind it.
LOW_CONTRAST = """
(() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => channels(colour).slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (channels(colour)[3] !== 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const bad = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join('');
    if (!own || element.closest('title, desc')) continue;
    const style = getComputedStyle(element);
    const colour = element.closest('svg') ? style.fill : style.color;
    const [a, b] = [light(colour), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`${own.slice(0, 40)}: ${colour} on ${behind(element)}`);
  }
  return bad;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    command = find_browser()
    if command is None:
        pytest.skip("no Chromium here: install one, or set CHROMIUM to its command")
    opened = Browser(command, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: write_page(folder / f"{name}.html", make()) for name, make in EXAMPLES.items()}


@for_each(("name", "width", "dark"), list(itertools.product(EXAMPLES, WIDTHS, [False, True])))
def test_a_page_fits(browser, pages, tmp_path, name, width, dark):
    browser.open(pages[name], width, dark=dark)
    assert browser.value("document.documentElement.scrollWidth") <= width, "the page must not scroll sideways"
    assert browser.value(BAD_LABELS) == []
    assert browser.value(LOW_CONTRAST) == []
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == [], "nothing is loaded"
    smallest = "Math.min(...[...document.querySelectorAll('figure text')].map(t => t.getBoundingClientRect().height))"
    assert browser.value(smallest) >= 9.0, "letters of figures can be read"
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(253, 252, 250)")
    # SCREENSHOTS names a folder to keep the pictures in, for a look at them.
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    picture = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
    browser.screenshot(picture)
    assert picture.stat().st_size > 50_000, "an empty page is smaller"


@for_each("name", EXAMPLES)
def test_paper_is_white_with_dark_ink_even_in_the_dark(browser, pages, name):
    browser.open(pages[name], 794, dark=True, media="print")  # A4 at 96 dots an inch
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.body).color") == "rgb(34, 34, 34)"
    assert browser.value("document.documentElement.scrollWidth") <= 794
    assert browser.value(BAD_LABELS) == []
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.value(LOW_CONTRAST) == []


def test_the_keyboard_reaches_the_skip_link_first_and_sees_where_it_is(browser, pages):
    browser.open(pages["easy"])
    browser.press("Tab")
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Tab")
    assert browser.value("document.activeElement.getAttribute('href')") == "#results"
    assert browser.value("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


def test_figures_have_names_and_descriptions_for_those_who_hear_them(browser, pages):
    browser.open(pages["easy"])
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        node["name"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in ("image", "img", "graphics-document")
    ]
    assert len(named) == 8
    assert any("Area under the ROC curve" in name for name in named)
    landmarks = {node.get("role", {}).get("value") for node in nodes}
    assert {"main", "banner", "navigation", "contentinfo", "table", "region"} <= landmarks


def test_a_page_is_whole_without_scripts(browser, pages):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["easy"])
        tree = browser.call("DOM.getDocument", depth=-1)
        assert "How to reproduce it" in str(tree)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
