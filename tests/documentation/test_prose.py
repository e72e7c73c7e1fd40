"""The documentation is plain: short sentences, wrapped lines, and the field's words (CONTRIBUTING.md has the rules)."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from plain_words import replaced_words, wording_faults

ROOT = Path(__file__).parents[2]
LONGEST_LINE = 100  # characters
LONGEST_NAME = 70  # characters of the name of a test


def pages():
    found = [*sorted(ROOT.glob("*.md")), ROOT / "paper/paper.md", ROOT / "benchmarks/README.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    found += sorted((ROOT / "examples").iterdir())
    return [page for page in found if not {"_build", "gallery", "__pycache__"} & set(page.relative_to(ROOT).parts)]


def text_of(page):
    """Return the text of a page; of an example its docstring and the comments between its cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        comments = [line.removeprefix("#").strip() if line.startswith("#") else "" for line in text.splitlines()]
        text = "\n".join([ast.get_docstring(ast.parse(text)) or "", "", *comments])
    if page.suffix == ".md":
        return text
    text = re.sub(r"::\n\n(?: {4,}.*\n|\n)+", ".\n", text)  # literal blocks
    return re.sub(r"^(?:[-=]{3,}|%%)$", "", text, flags=re.MULTILINE)


def faults(page):
    """Return what is wrong with a page, one line per fault."""
    text, found, inside = text_of(page), [], False
    for number, line in enumerate(text.splitlines(), 1):
        is_free = inside or line.startswith(("|", "$$"))  # code, formulas and tables cannot be wrapped
        if re.match(r" *(```|~~~)", line) or line.count("$$") == 1:
            inside = not inside
        elif page.suffix == ".md" and len(line) > LONGEST_LINE and not is_free:
            found.append(f"line {number} has {len(line)} characters")
    return found + wording_faults(text)


def test_pages_and_examples_are_plain():
    wrong = [f"{page.relative_to(ROOT)}: {fault}" for page in pages() for fault in faults(page)]
    assert len(pages()) > 60
    assert not wrong, "\n" + "\n".join(wrong)


def test_results_of_benchmarks_have_the_words_of_the_field():
    """Programs write these files: the records in them may be longer than sentences and lines of a page."""
    files = sorted((ROOT / "benchmarks/results").glob("*.md"))
    wrong = [f"{file.name}: {fault}" for file in files for fault in replaced_words(file.read_text(encoding="utf-8"))]
    assert files
    assert not wrong, "\n" + "\n".join(wrong)


def test_names_of_tests_are_short():
    found = {
        path: re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE) for path in ROOT.glob("tests/**/*.py")
    }
    assert sum(map(len, found.values())) > 1000
    long = [f"{path.name}: {name}" for path, names in found.items() for name in names if len(name) > LONGEST_NAME]
    assert not long, "\n" + "\n".join(long)


PARTS = ("Tutorials", "How-to guides", "Explanations", "Reference")
# A how-to guide says in its title what the reader does.
VERBS = {
    "Add",
    "Choose",
    "Classify",
    "Combine",
    "Deploy",
    "Find",
    "Migrate",
    "Predict",
    "Read",
    "Resume",
    "Set",
    "Train",
    "Work",
}


def test_the_documentation_has_four_parts():
    front = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^:caption: (.+)\n(?::.*\n)*\n((?:[\w/]+\n)+)", front, re.MULTILINE))
    assert tuple(parts) == PARTS
    assert len(parts["Tutorials"].split()) == 4
    guides = [ROOT / f"docs/{name}.md" for name in parts["How-to guides"].split() if name != "gallery/index"]
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in guides]
    assert not [title for title in titles if title.split()[0] not in VERBS]


def test_spelling():
    """Words that codespell does not know but are right are in pyproject.toml."""
    texts = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "paper", "examples", "src"]
    texts += [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    done = subprocess.run([sys.executable, "-m", "codespell_lib", *texts], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_page_is_found(tmp_path):
    page = tmp_path / "page.md"
    for text, fault in {
        "word\n" * 41: "41 words",
        "x" * 101: "line 1 has 101 characters",
        "One row a class.": "'row a class': use per",
        "It is three times as fast.": "'times as fast': use times faster",
    }.items():
        page.write_text(text, encoding="utf-8")
        assert [found[: len(fault)] for found in faults(page)] == [fault], text
    page.write_text(f"- **Bold.** {'word ' * 15}\n{'word ' * 15}\n{'word ' * 10}end. {'x' * 9}\n", encoding="utf-8")
    assert [found[:8] for found in faults(page)] == ["41 words"]  # without the bold sentence before
