"""The words of the source are plain: docstrings, comments, messages and names (CONTRIBUTING.md has the rules)."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import scoreline
from plain_words import wording_faults

ROOT = Path(scoreline.__file__).parent
# Words that need a comment when they are a name. They are searched for in every part of a name: `n_seen`, `KeptRows`.
HOME_MADE_NAMES = {
    "apart", "asked", "judged", "kept", "looked", "seen", "serve", "served", "tamed", "tried", "whole", "wrapped",
}  # fmt: skip
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


def test_docstrings_comments_and_messages_are_plain():
    wrong = []
    for name, (text, nodes) in sources().items():
        for line, words in [*docstrings(nodes), *comments(text), *messages(nodes)]:
            wrong += [f"src/scoreline/{name}:{line}: {fault}" for fault in wording_faults(words)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_names_are_words_of_the_field():
    wrong = []
    for path, (_, nodes) in sources().items():
        for line, name in [*((1, part) for part in path.with_suffix("").parts), *names(nodes)]:
            parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
            wrong += [f"src/scoreline/{path}:{line}: {name}" for _ in parts & HOME_MADE_NAMES]
    assert not wrong, "names that need a comment:\n" + "\n".join(wrong)
