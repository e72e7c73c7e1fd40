"""The documentation is plain: short sentences, wrapped lines, and the field's words (CONTRIBUTING.md has the rules)."""

import re
from pathlib import Path

from plain_words import wording_faults

ROOT = Path(__file__).parents[2]
LONGEST_LINE = 100  # characters
# Pages that are not rewritten yet. A page leaves the list when it follows the rules, and none may come back.
TO_BE_REWRITTEN = {
    "docs/datasets.md",
    "docs/math/accuracy.md",
    "docs/papers/friedlander2012.md",
    "docs/papers/ghanbari2018.md",
    "docs/papers/narasimhan2015.md",
    "docs/papers/zhang2012.md",
    "docs/results.md",
}


def pages():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not {"_build", "gallery"} & set(page.relative_to(ROOT).parts)]


def faults(page):
    """Return what is wrong with a page, one line per fault."""
    text, found, inside = page.read_text(encoding="utf-8"), [], False
    for number, line in enumerate(text.splitlines(), 1):
        is_free = inside or line.startswith(("|", "$$"))  # code, formulas and tables cannot be wrapped
        if re.match(r" *(```|~~~)", line) or line.count("$$") == 1:
            inside = not inside
        elif len(line) > LONGEST_LINE and not is_free:
            found.append(f"line {number} has {len(line)} characters")
    return found + wording_faults(text)


def test_rewritten_pages_are_plain():
    found = {str(page.relative_to(ROOT)): faults(page) for page in pages()}
    wrong = [f"{name}: {fault}" for name, list_ in found.items() if name not in TO_BE_REWRITTEN for fault in list_]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_list_of_pages_to_be_rewritten_only_shrinks():
    done = [name for name in sorted(TO_BE_REWRITTEN) if not (ROOT / name).exists() or not faults(ROOT / name)]
    assert not done, f"take these off TO_BE_REWRITTEN: {done}"
