"""Links, images, inclusions and paths of the documentation lead somewhere; every page is in a table of contents. No network."""

import functools
import re
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OTHERS = ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")
CONF = (DOCS / "conf.py").read_text(encoding="utf-8")
# Folders of docs/ that are filled when the pages are built: what lies there need not be in the repository.
GENERATED = {folder for line in re.findall(r"gallery_dirs\W+(.*)", CONF) for folder in re.findall(r"[\w/]+", line)}
GENERATED |= {"notebooks"}
MADE = ("docs/_build", "docs/gallery", "docs/notebooks")  # by `make docs`
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in DOCS.rglob("*.md")
    if not {"_build", *GENERATED} & set(page.relative_to(DOCS).parts)
)

FENCE = re.compile(r"^( *)(`{3,}|~{3,}|:{3,})(.*?)\n(.*?)^\1\2[`~:]* *$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(`+)(.+?)\1(?!`)", re.DOTALL)
ROLE = re.compile(r"\{(ref|doc|numref|download|any)\}`([^`]+)`")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
DEFINED = re.compile(r"^ *\[[^\]]+\]: *<?(\S+?)>? *$", re.MULTILINE)
BARE = re.compile(r"(?<![\w(<\[\"'=])https?:[^\s)>\]\"'`]*|<(https?:[^>]*)>")
LABEL = re.compile(r"^\(([\w-]+)\)= *$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.*?) *#* *$", re.MULTILINE)
FILE_DIRECTIVES = ("literalinclude", "include", "image", "figure")
FOLDERS = "src/scoreline|benchmarks|examples|tests|docs"
PATH = re.compile(rf"(?<![\w./~-])(?:{FOLDERS})/[\w./*-]*")
# `risks/hinge.py` and `solvers/` in prose are meant from the package on.
PARTS = sorted(p.name for p in (ROOT / "src" / "scoreline").iterdir() if p.is_dir() and not p.name.startswith("__"))
IN_PACKAGE = re.compile(rf"(?:{'|'.join(PARTS)})/(?:[\w/]+\.py)?")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def fences(text):
    """Return (info, body) of the fenced blocks."""
    return [(info.strip(), body) for _, _, info, body in FENCE.findall(text)]


def prose(text):
    """Return the text with code left out: fenced blocks, but for the words of notes and figures, and code in a line."""
    text = FENCE.sub(lambda m: m[4] if m[2].startswith(":") else "", text)
    return INLINE.sub("", ROLE.sub("", text))


def directives(text, names):
    """Return (name, argument, body) of MyST directives."""
    found = []
    for info, body in fences(text):
        match = re.fullmatch(r"\{([\w-]+)\} *(.*)", info)
        if match and match[1] in names:
            found.append((match[1], match[2], body))
        if info.startswith("{") and "toctree" not in info:
            found += directives(body, names)
    return found


def slug(heading):
    """Return the anchor of a heading, as GitHub and MyST make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


@functools.cache
def anchors(path):
    text = path.read_text(encoding="utf-8")
    bare = FENCE.sub("", text)
    return {slug(heading) for heading in HEADING.findall(bare)} | set(LABEL.findall(bare))


@functools.cache
def labels():
    return {label for page in PAGES for label in LABEL.findall(text_of(page))}


def is_generated(path):
    return path.is_relative_to(DOCS) and path.relative_to(DOCS).parts[0] in GENERATED


def document(page, name):
    """Return the file of a document that a toctree or {doc} names, or None if there is none."""
    base = DOCS if name.startswith("/") else (ROOT / page).parent
    path = (base / name.lstrip("/")).resolve()
    for candidate in (path, path.with_name(path.name + ".md"), path.with_name(path.name + ".rst")):
        if candidate.is_file() or (is_generated(candidate) and candidate.suffix):
            return candidate
    return None


def toctree_entries(text):
    for _, _, body in directives(text, ("toctree",)):
        for line in body.splitlines():
            if line.strip() and not line.lstrip().startswith(":"):
                yield re.sub(r".*<(.+)>$", r"\1", line.strip())


def broken_links(page, text):
    text, here = prose(text), (ROOT / page).parent
    for target in LINK.findall(text) + DEFINED.findall(text):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue  # external, below
        name, _, anchor = target.partition("#")
        path = (here / name).resolve() if name else ROOT / page
        if not (path.exists() or is_generated(path)):
            yield f"{target}: no such file"
        elif path.suffix == ".md" and here.is_relative_to(DOCS) and not path.is_relative_to(DOCS):
            yield f"{target}: `make docs` builds no page from it, so name the file without a link"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{target}: no such heading or label; there are {sorted(anchors(path))}"


def broken_roles_and_inclusions(page, text):
    for role, content in ROLE.findall(FENCE.sub(lambda m: m[4] if m[2].startswith(":") else "", text)):
        target = re.sub(r".*<(.+)>$", r"\1", content, flags=re.DOTALL).strip()
        known = document(page, target) is not None if role in ("doc", "download") else target in labels()
        if not known:
            yield f"{{{role}}}`{content}`"
    for name, argument, _ in directives(text, FILE_DIRECTIVES):
        if not ((ROOT / page).parent / argument).resolve().is_file():
            yield f"{name} {argument}"
    for entry in toctree_entries(text):
        if document(page, entry) is None:
            yield f"toctree {entry}"


def malformed_urls(page, text):
    text = prose(text)
    urls = [t for t in LINK.findall(text) + DEFINED.findall(text) if re.match(r"[a-z][a-z0-9+.-]*:", t)]
    urls += [(match[1] or match[0]).rstrip(".,;:") for match in BARE.finditer(text)]
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        fine = parts.scheme == "https" and re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", host)
        if not fine or parts.username or re.search(r"[\s<>\"{}|\\^`]", url):
            yield url


def missing_paths(page, text):
    code = [body for info, body in fences(text) if not info.startswith("{")]
    spans = [match[2] for match in INLINE.finditer(FENCE.sub("", text))]
    named = {path.rstrip(".") for words in (*code, *spans) for path in PATH.findall(words)}
    named |= {f"src/scoreline/{span}" for span in spans if IN_PACKAGE.fullmatch(span)}
    for path in sorted(named):
        if path.startswith(MADE):
            continue
        if not (any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()):
            yield path


def wrong_on_all_pages(check):
    return [f"{page}: {what}" for page in (*PAGES, *OTHERS) for what in check(page, text_of(page))]


def test_links_lead_to_files_and_headings():
    assert not wrong_on_all_pages(broken_links)


def test_roles_and_inclusions_lead_somewhere():
    assert not wrong_on_all_pages(broken_roles_and_inclusions)


def test_external_links_are_https_and_well_formed():
    assert not wrong_on_all_pages(malformed_urls)


def test_paths_that_are_named_exist():
    assert not wrong_on_all_pages(missing_paths)


def test_every_page_is_in_a_table_of_contents():
    entries = [document(page, entry) for page in PAGES for entry in toctree_entries(text_of(page))]
    reached = {path for path in entries if path is not None}
    missing = [page for page in PAGES if page != "docs/index.md" and (ROOT / page).resolve() not in reached]
    assert not missing, missing
    twice = sorted({str(path.relative_to(ROOT)) for path in reached if entries.count(path) > 1})
    assert not twice, f"in a table of contents more than once: {twice}"
    home = set(toctree_entries(text_of("docs/index.md")))
    assert len(home) > 10, "the front page has a table of contents"


WRONG_LINES = {
    broken_links: (
        "[a](no-such-page.md)",
        "[a](choose.md#no-such-heading)",
        "![a picture](figures/no-such-picture.png)",
        "[a](../README.md)",
        "[see][a]\n\n[a]: no-such-page.md",
    ),
    broken_roles_and_inclusions: (
        "{ref}`no-such-label`",
        "{doc}`no-such-page`",
        "```{literalinclude} ../src/no_such_file.py\n:lines: 1-\n```",
        "```{toctree}\n:maxdepth: 1\n\nno-such-page\n```",
    ),
    malformed_urls: ("[a](http://example.org/page)", "see https://localhost/page", "<http://example.org>"),
    missing_paths: (
        "`benchmarks/no_such_script.py`",
        "`python examples/no_such_script.py --quick`",
        "`risks/no_such_file.py`",
        "```\npython benchmarks/no_such_script.py\n```",
    ),
}


def test_a_wrong_line_is_found():
    for check, lines in WRONG_LINES.items():
        for line in lines:
            assert len(list(check("docs/index.md", f"# Title\n\n{line}\n"))) == 1, line


def test_right_lines_are_not():
    line = "[a](choose.md), `benchmarks/run.py`, `risks/hinge.py`, <https://example.org/a>."
    for check in WRONG_LINES:
        assert not list(check("docs/index.md", f"# Title\n\n{line}\n")), check.__name__
