"""The page: one file, safe with names of strangers, readable by everyone. What a browser makes of it is tested elsewhere."""

import itertools
import re
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
from examples import EXAMPLES, NASTY, content_of, degenerate, easy

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.report import PageContent, write_page
from scoreline.report.html_parts import table
from scoreline.report.page import page_text
from scoreline.report.palette import DARK, LIGHT
from scoreline.report.wording import clean, distinct_digits, percent, rate, shorten
from tiers import TIER

WITHOUT_CERTIFICATE = [("roc_auc", "moments"), ("gmean", "spade"), ("f1", "stamp")][: 1 if TIER == "quick" else None]
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Outline(HTMLParser):
    """What a page is made of; complains where tags do not close."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.words = [], [], [], [], {}
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open, f"{tag} closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.words.setdefault(self.open[-1], []).append(data)


@pytest.fixture(scope="module")
def pages():
    return {name: page_text(make()) for name, make in EXAMPLES.items()}


@for_each("name", EXAMPLES)
def test_a_page_is_one_small_safe_document(pages, name):
    text = pages[name]
    outline = Outline(text)
    assert len(text.encode()) < 300_000
    assert len(set(outline.ids)) == len(outline.ids), "ids are unique"
    assert "script" not in outline.tags
    assert not [a for a in outline.attributes if a[1].startswith("on")], "no event handlers"
    for tag, attribute, value in outline.attributes:
        if attribute in ("href", "src"):
            assert value.startswith("#") or value == "data:,", f"<{tag} {attribute}={value!r}> leaves the page"
    assert not re.search(r"https?://|@import|url\((?!#)", text), "nothing is loaded"
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | {
        v[1:] for _, a, v in outline.attributes if a == "href" and v[1:]
    }
    assert used <= {*outline.ids, "ata:,"}, "what is referred to is there"
    assert "nan" not in re.sub(r"[a-z]*nan[a-z]+", "", re.sub(r"<[^>]*>", "", text).lower())


@for_each("name", EXAMPLES)
def test_a_page_has_the_marks_that_assistive_programs_need(pages, name):
    text = pages[name]
    outline = Outline(text)
    assert ("html", "lang", "en") in outline.attributes
    assert {"header", "main", "nav", "footer"} <= set(outline.tags)
    heads = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert heads[0] == 1
    assert heads.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(heads)), "no level is skipped"
    assert outline.tags.count("svg") == outline.tags.count("figure") == 8
    assert sum(1 for a in outline.attributes if a == ("svg", "role", "img")) == 8
    for description in outline.words["desc"]:
        assert re.search(r"\d", description), f"no number in {description!r}"
    labelled = {i for tag, a, v in outline.attributes if a == "aria-labelledby" for i in v.split()}
    assert labelled <= set(outline.ids)
    assert "desc" in outline.tags
    assert '<a class="skip" href="#main">' in text
    assert ":focus-visible" in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert outline.tags.count("table") == text.count('class="scroll"'), "each table scrolls in a container of its own"


def test_the_verdict_comes_first_and_sections_follow_in_order(pages):
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", pages["easy"])
    assert heads == [
        "A tie",
        "Results",
        "Certificate",
        "Ranking: ROC and precision-recall",
        "The decision threshold",
        "Scores: distribution and reliability",
        "Largest weights",
        "Data and warnings",
        "How to reproduce it",
    ]
    assert "On the training rows, no model of this kind has an objective J below" in pages["easy"]


def test_names_of_strangers_are_text_and_nothing_else(pages):
    text = pages["degenerate"]
    assert "<script" not in text
    assert "&lt;script&gt;alert(" in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "$\\frac$" in text, "no formula was made of it"


def test_everything_that_comes_from_outside_is_escaped():
    given = dict.fromkeys(("evaluated_on", "created"), NASTY)  # its title and verdict hold it already
    given |= {
        "table": [{NASTY: NASTY, "b": NASTY}],
        "facts": [(NASTY, NASTY)],
        "warnings": [NASTY],
        "commands": [NASTY],
    }
    text = page_text(degenerate(**given, decisions={NASTY: np.linspace(-1.0, 1.0, 12)}))
    Outline(text)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 20


def test_class_names_are_escaped_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] > 0, "<script>yes", "<b>no")
    text = page_text(
        content_of(MeasureClassifier("f1"), {}, (X, y, X, y, [NASTY, "b"]), "t", "model", "v", table=[], facts=[])
    )
    assert "<script" not in text
    assert "<b>" not in text
    assert "called &lt;script&gt;yes" in text


def test_the_same_content_gives_the_same_bytes(pages, tmp_path):
    with matplotlib.rc_context({"font.size": 30.0, "axes.facecolor": "red", "svg.fonttype": "path"}):
        written = write_page(tmp_path / "again.html", easy()).read_bytes()
    assert written == pages["easy"].encode(), "nor does the user's style matter"


@for_each(("measure", "solver"), WITHOUT_CERTIFICATE)
def test_a_page_without_certificate_says_so(measure, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    clf = MeasureClassifier(measure, solver=solver)
    text = page_text(content_of(clf, {}, (X, y, X, y, None), "t", "model", "v", table=[], warnings=[], commands=[]))
    outline = Outline(text)
    assert "No certificate" in text
    assert f"the solver {solver} gives no lower bound" in text
    assert outline.tags.count("svg") == 6
    assert 'id="results"' not in text
    assert 'id="reproduce"' not in text


@pytest.mark.slow
@for_each(
    ("measure", "classes"),
    list(itertools.product(["prbep", "recall_at_precision", "accuracy"], [(0, 1), (0,), (1,)])),
)
def test_pages_of_other_measures_and_of_one_class(measure, classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    clf = MeasureClassifier(measure, scaling="standard", max_iter=3)
    rows = np.isin(y, classes)
    Outline(page_text(content_of(clf, {}, (X, y, X[rows], y[rows], None), "t", "model", "v")))


def test_a_fit_that_was_stopped_says_what_is_still_open():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    clf = MeasureClassifier("roc_auc", max_iter=3, tol=1e-9, alpha=1e-6)
    text = page_text(content_of(clf, {}, (X, y, X, y, None), "t", "model", "v", column_scale=None))
    assert clf.status_ == "max_iter"
    assert "The fit ended before the requested gap of" in text
    assert "it was stopped by max_iter" in text
    assert "Weights are in the units of their columns" in text


@pytest.mark.slow
def test_a_page_of_a_million_rows_is_small():
    rng = np.random.default_rng(0)
    truth = rng.random(1_000_000) < 0.02
    decisions = {f"model {k}": rng.standard_normal(1_000_000) + truth * k for k in range(1, 6)}
    content = easy(y_true=truth, decisions=decisions)
    assert len(page_text(content).encode()) < 500_000


def test_long_tables_are_folded():
    text = table([{"model": f"m{k}", "value": f"{k}.0"} for k in range(40)], "Models")
    assert "<summary>All 40 rows</summary>" in text
    Outline(text)


def test_wrong_content_is_refused():
    for changes, message in (
        ({"verdict_kind": "great"}, "verdict_kind='great' must be one of"),
        ({"decisions": {}}, "decisions must hold"),
        ({"decisions": {"a": np.zeros(3)}}, r"decisions\['a'\] must be a vector of 143 numbers .* got shape \(3,\)"),
        ({"decisions": {"a": np.full(143, np.inf)}}, r"decisions\['a'\] must be finite, got inf in row 0"),
        ({"y_true": np.zeros((143, 1))}, "y_true must be a vector"),
    ):
        with pytest.raises(ValueError, match=message):
            easy(**changes)
    fields = set(PageContent.__dataclass_fields__)
    assert {"title", "verdict", "verdict_kind", "table", "classifier", "y_true", "decisions", "evaluated_on"} <= fields


def test_a_page_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="4 numbers for 1 features"):
        write_page(path, degenerate(column_scale=np.ones(4)))
    assert path.read_text() == "old"


def contrast(first, second):
    """Return the contrast ratio of two colours as WCAG 2 defines it, from 1 to 21."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# WCAG 2 AA: 4.5 for text, 3 for what a figure draws.
TEXT = ["ink", "muted", "link", "good", "even", "bad"]
DRAWN = ["above", "below", *(f"model-{k}" for k in range(1, 7))]


@for_each("scheme", ["light", "dark"])
def test_contrast_of_the_colours_in_the_page(pages, scheme):
    sheet = pages["easy"].split("<style>")[1].split("</style>")[0]
    start = sheet.index(":root") if scheme == "light" else sheet.index("prefers-color-scheme: dark")
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", sheet[start : sheet.index("}", start + 5)]))
    assert colours == (LIGHT if scheme == "light" else DARK)
    for ground in ("paper", "panel"):
        for name in TEXT:
            assert contrast(colours[name], colours[ground]) >= 4.5, f"{name} on {ground}"
    for name in DRAWN:
        assert contrast(colours[name], colours["paper"]) >= 3.0, name
    unknown = set(re.findall(r"var\(--([\w-]+)\)", pages["easy"])) - set(colours) - {"tone"}
    assert not unknown


def test_figures_have_no_colour_of_their_own(pages):
    for text in pages.values():
        drawn = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.S))
        assert not re.findall(r'style="[^"]*#[0-9a-f]{6}', drawn), "every colour follows the scheme"


def test_words():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert clean(" a\n\x00b\u202e ") == "a b"
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert len(shorten("x" * 99, 24)) == 24
    assert [rate(v) for v in (1.0, 0.9996, 0.9999999, 0.5, 0.0, 1e-6)] == [
        "1.000",
        "0.99960",
        "above 0.99999",
        "0.500",
        "0.000",
        "1e-06",
    ]
    assert [percent(v) for v in (0.0, 1.0, 0.5, 0.0079, 0.9999, 1e-9)] == [
        "0 %",
        "100 %",
        "50.0 %",
        "0.79 %",
        "99.99 %",
        "less than 0.001 %",
    ]
    assert distinct_digits(0.44438812, 0.44438845) == ("0.4443881", "0.4443884")
