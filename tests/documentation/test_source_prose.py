"""The words of the source are plain: docstrings, comments, messages and names (CONTRIBUTING.md has the rules)."""

import ast
import io
import itertools
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

import scoreline
from plain_words import replaced_words, wording_faults

ROOT = Path(scoreline.__file__).parent
REPOSITORY = Path(__file__).parents[2]
# Words that need a comment when they are a name. They are searched for in every part of a name: `n_seen`, `KeptRows`.
HOME_MADE_NAMES = {
    "aim", "apart", "asked", "bend", "beside", "careful", "cut", "doubt", "elsewhere", "judged", "kept", "lacking", "looked",
    "looks", "noted", "recut", "said", "seen", "serve", "served", "tamed", "told", "tried", "unsure", "whole", "wrapped",
}  # fmt: skip
# Everything with names: the package, and the programs around it. Names of tests are sentences, so they may use these words,
# but not what the glossary replaces in sentences.
NAMED = [
    ROOT,
    *(REPOSITORY / folder for folder in ("tests", "benchmarks", "studies", "examples", "fuzz", "docs", ".ci")),
]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FEWEST_WORDS = 4  # of a string that is a message: a shorter one is a key, a format or a label


@cache
def sources():
    """Return {file: (text, nodes of its syntax tree)} of the package."""
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    return {name: (text, list(ast.walk(ast.parse(text)))) for name, text in texts.items()}


def docstrings(nodes):
    """Yield (line, text) of the docstrings, without the underlined titles of sections, formulas, examples and tables."""
    for node in nodes:
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            text = re.sub(r"^[A-Z]\w+(?: \w+)?\n-{3,}$", "", text, flags=re.MULTILINE)
            text = re.sub(r"^ *>>>.*(?:\n(?! *$).*)*", "", text, flags=re.MULTILINE)  # up to the next empty line
            text = re.sub(r"^\w+ : .*$|^ {4}\w+ : .*$", "", text, flags=re.MULTILINE)  # the types of parameters
            text = re.sub(r"\n\n(?: {4,}(?!- )\S.*(?:\n|$))+", "\n\n", text)  # formulas stand alone
            yield node.body[0].lineno, text


def comments(text):
    """Yield (line, text) of comments; the lines of a paragraph are joined, and directives for tools are left out."""
    start, lines, end = 0, [], -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(?:noqa|type:|fmt:|pragma|mypy)", token.string):
            continue
        row, alone = token.start[0], not token.line[: token.start[1]].strip()
        if not (alone and lines and row == end + 1):
            if lines:
                yield start, "\n".join(lines)
            start, lines = row, []
        lines.append(token.string.lstrip("#: "))
        end = row if alone else -1
    if lines:
        yield start, "\n".join(lines)


def messages(nodes):
    """Yield (line, text) of strings that are sentences: errors, warnings, logs, help texts and words of pages."""
    docs = {id(node.body[0].value) for node in nodes if isinstance(node, DOCUMENTED) and ast.get_docstring(node)}
    parts = {
        id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node
    }
    skipped = docs | parts
    for node in nodes:
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "value" for part in node.values)
        else:
            text = node.value if isinstance(node.value, str) else ""
        text = re.sub(r"^ {2}\S.*$", "", text, flags=re.MULTILINE)  # commands of examples
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= FEWEST_WORDS and " " in text:
            yield node.lineno, text


def names(nodes):
    """Yield (line, name) of everything that the source names itself."""
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def missing_spaces(nodes):
    """Yield (line, word) where an f-string has a value and a word after it without a space."""
    for node in nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, after in itertools.pairwise(parts):
            joined = isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)
            if joined and (word := re.match(r"[a-z]{2,}(?= )", after.value)):
                yield node.lineno, word[0]


def text_faults(text, nodes):
    """Return what is wrong with the docstrings, comments and messages of a source, one line per fault."""
    texts = [*docstrings(nodes), *comments(text), *messages(nodes)]
    found = [f"{line}: {fault}" for line, words in texts for fault in wording_faults(words)]
    return found + [f"{line}: no space before {word!r}" for line, word in missing_spaces(nodes)]


def name_faults(path, nodes):
    """Return the names of a source, its path among them, that have a home-made word."""
    found = [(1, part) for part in Path(path).with_suffix("").parts] + list(names(nodes))
    sentences = [(line, name) for line, name in found if name.startswith("test_")]
    found = [(line, name) for line, name in found if not name.startswith("test_")]
    words = {name: {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)} for _, name in found}
    wrong = [(line, name) for line, name in found if words[name] & HOME_MADE_NAMES]
    wrong += [(line, name) for line, name in sentences if replaced_words(name.replace("_", " "))]
    return [f"{line}: {name}" for line, name in wrong]


def test_docstrings_comments_and_messages_are_plain():
    wrong = [f"src/scoreline/{path}:{fault}" for path, source in sources().items() for fault in text_faults(*source)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_names_are_words_of_the_field():
    wrong, n_files = [], 0
    for folder in NAMED:
        for path in sorted(folder.rglob("*.py")):
            if not {"_build", "gallery", "notebooks", "__pycache__"} & set(path.parts):
                nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                wrong += [f"{path}:{fault}" for fault in name_faults(path.relative_to(folder), list(nodes))]
                n_files += 1
    assert n_files > 600
    assert not wrong, "names that need a comment:\n" + "\n".join(wrong)


LONG = "word " * 41


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f'"""{LONG}."""', "1: 41 words"),
        (f"x = 1\n# {LONG}", "2: 41 words"),
        (f'raise ValueError("{LONG}")', "1: 41 words"),
        (f'raise ValueError(f"{{x}} {LONG}")', "1: 42 words"),
        ('"""Return the best threshold on left-out rows."""', "1: 'left-out rows': use held-out rows"),
        ("x = 1  # the class to be found is rare, and the other one is not, in most of the cases that we have", "1: 'class"),
        ('raise ValueError(f"{name}is not known")', "1: no space before 'is'"),
        ('help = "random seed of everything random, which every run of the program uses for all of its choices"', "1: 'of eve"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_found(text, fault):
    found = text_faults(text, list(ast.walk(ast.parse(text))))
    assert [each[: len(fault)] for each in found] == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "n_seen = 1",
        "def recut(): 0",
        "class KeptRows: 0",
        "def f(whole): 0",
        "self.best_cut = 1",
        "for tried in x: 0",
        "def test_recut_keeps_scores(): 0",
    ],
)
def test_a_wrong_name_is_found(text):
    assert len(name_faults("fitting/plan.py", list(ast.walk(ast.parse(text))))) == 1


def test_names_of_files_are_checked_and_names_of_the_field_pass():
    assert name_faults("operators/wrapped.py", []) == ["1: wrapped"]
    assert name_faults("fitting/plan.py", list(ast.walk(ast.parse("n_rows = best_threshold = 1")))) == []


# These files are being changed by others at this moment; each has one line without a reason.
DIRECTIVE = re.compile(r"#\s*(?:noqa|type:\s*ignore)(?P<rules>:\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(?P<reason>.*)")


def unexplained_directives(text):
    """Yield (line, comment) where a warning of a tool is suppressed for all rules, or without a reason on the line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        found = DIRECTIVE.match(token.string) if token.type == tokenize.COMMENT else None
        if found and not (found["rules"] and re.search(r"\w", found["reason"])):
            yield token.start[0], token.string


def test_suppressed_warnings_say_why():
    faults = [
        f"{path.relative_to(REPOSITORY).as_posix()}:{line}: {comment}"
        for folder in NAMED
        for path in sorted(folder.rglob("*.py"))
        for line, comment in unexplained_directives(path.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


def test_a_suppressed_warning_without_a_reason_is_found():
    for comment in ("# noqa", "# noqa: E731", "# type: ignore", "# type: ignore[misc]", "# type: ignore[misc]  #"):
        assert list(unexplained_directives(f"x = 1  {comment}\n")) == [(1, comment)], comment
    for comment in ("# noqa: E731 - one line", "# type: ignore[misc]  # of its own", "# a comment"):
        assert not list(unexplained_directives(f"x = 1  {comment}\n"))
