"""Figures as SVG inside a page: small, in the colours of the page, and with a description for screen readers."""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from scoreline.report.axes import HEIGHT, WIDTH
from scoreline.report.palette import LIGHT
from scoreline.report.wording import clean
from scoreline.runtime.optional import require

VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
VARIABLES |= {"#ffffff": "var(--paper)", "#000000": "var(--ink)"}
COLOUR, DECIMALS = re.compile(r"#[0-9a-f]{6}\b"), re.compile(r"-?\d+\.\d{3,}")
REFERENCE = re.compile(r"(?<=url\(#)[\w.-]+|(?<=^#)[\w.-]+")
# Text stays text, which is small, sharp and searchable. The page's font is narrower than the one that matplotlib measures.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "scoreline", "path.simplify": True, "path.simplify_threshold": 0.15}


def draw(plot: Callable[[Any], Any], prefix: str, title: str, description: str, height: float = HEIGHT) -> str:
    """Return the svg element that `plot` draws; `prefix` starts every id and must be unique in the page.

    All figures have the same width, so that letters have the same size. The user's style is not used.
    """
    style = require("matplotlib.style", "plot", "a page")
    matplotlib = require("matplotlib", "plot", "a page")
    figure_class = require("matplotlib.figure", "plot", "a page").Figure  # not pyplot: no window, no global state
    with style.context("default"), matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # browsers have more glyphs than matplotlib
        figure = figure_class(figsize=(WIDTH, height), layout="constrained")
        plot(figure.subplots())
        written = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    root = ElementTree.fromstring(written.getvalue())
    _make_small(root, prefix)
    root.attrib = {
        "viewBox": root.attrib["viewBox"], "role": "img", "aria-labelledby": f"{prefix}-title {prefix}-desc"
    }  # fmt: skip
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = clean(words)
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _make_small(root: ElementTree.Element, prefix: str) -> None:
    """Remove namespaces, white space and unused ids, and add the prefix to the other ids."""
    for parent in root.iter():
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    used = {name for element in root.iter() for value in element.attrib.values() for name in REFERENCE.findall(value)}
    for element in root.iter():
        element.tag, element.tail = _local(element.tag), (element.tail or "").strip()
        element.text = element.text if element.tag in ("text", "tspan") else None
        element.attrib = {
            _local(name): _value(_local(name), value, prefix)
            for name, value in element.attrib.items()
            if _local(name) != "id" or value in used
        }


def _local(name: Any) -> str:
    """Return a name without its namespace, which HTML does not need."""
    return str(name).rpartition("}")[2]


def _value(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    value = REFERENCE.sub(lambda m: f"{prefix}-{m[0]}", value)
    if name == "style":
        value = COLOUR.sub(lambda m: VARIABLES.get(m[0], m[0]), value)
        value = re.sub(r"font:\s*[^;]*?([\d.]+)px[^;]*", r"font-size: \1px", value)
        value = re.sub(r"font-family:[^;]*;?\s*", "", value)
        return re.sub(r"\s*([:;])\s*", r"\1", value).rstrip(";")
    # Two decimals of a point are enough, and paths are most of a page.
    return DECIMALS.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), " ".join(value.split()))
