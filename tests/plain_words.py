"""The rules of plain text that pages and source share: the length of a sentence, and what the glossary replaces.

CONTRIBUTING.md has the tone guide. `tests/documentation/test_prose.py` reads the pages with these rules, and
`tests/documentation/test_source_prose.py` the docstrings, comments and messages of the source.
"""

import re

LONGEST_SENTENCE = 40  # words
# "One row a class" and the like: what is counted, and per what.
COUNTED = (
    r"(?:rows?|columns?|features?|class(?:es)?|splits?|folds?|fits?|passes|iterations?|seconds?|minutes|workers?|labels?"
    r"|bytes|numbers?|values?|comparisons?|look-ups?|products?|evaluations?|non-zeros|entries|threads?|blocks?|times|once|MB)"
)
UNIT = (
    r"(?:row|feature|class|fold|example|category|label|column|iteration|pass|fit|second|worker|split|step|part|block"
    r"|evaluation|entry)"
)
# What the glossary replaces, and by what.
HOME_MADE = {
    r"\brecut\b|\bbest_cut\b|\bsteady cut\b|\b(?:the|a|its) cut\b": "threshold",
    r"\bleft-out (?:rows|scores)\b|\brows left out\b": "held-out rows, or leave-one-out scores",
    r"\bclass to be found\b": "positive class",
    r"\bmeasures? of counts\b": "count-based measure",
    r"\btimes as fast\b": "times faster",
    r"\bhangs? on\b": "depend on",
    r"\bRead it soberly\b": "Caveats",
    r"\bwhat was proved\b": "certificate",
    r"\bproved gap\b": "duality gap",
    r"\banew\b": "again",
    r"\bbeside\b": "compared with, next to, or in addition to",
    r"\bof everything random\b": "random seed",
    r"\bclass to find\b": "positive class",
    rf"\b{COUNTED} an? {UNIT}\b": "per",
    r"\b(?:last|not yet) seen\b|\bseen rows?\b": "held-out, training or new rows, or the last computed value",
    r"(?<!infinite )\belsewhere\b": "on a worker, on the host, otherwise, or in another place",
}
ANY_HOME_MADE = re.compile("|".join(HOME_MADE), re.IGNORECASE)
WORD = re.compile(r"[\w+-]*\w[\w']*")


def prose(text):
    """Return the text with fenced blocks, formulas, comments and inline code left out; a piece of code counts as one word."""
    text = re.sub(r"^( *)(`{3,}|~{3,}|:{3,}).*?^\1\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$(?: *\([\w-]+\))?", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`+[^`]+`+|\$[^$]+\$", "code", text)


def sentences(text):
    """Return the sentences of paragraphs, list items and table cells."""
    blocks, current = [], []
    for line in [*prose(text).splitlines(), ""]:
        starts_block = re.match(r"\s*(?:[-*]|\d+\.) |\||#|>", line)
        if not line.strip() or starts_block:
            blocks.append(" ".join(current))
            current = []
        if line.startswith("|"):
            blocks += line.strip("|").split("|")
        elif line.strip():
            current.append(line.strip())
    return [s for block in blocks for s in re.split(r"(?<=[.!?])[*_]*\s+", block) if s.strip()]


def wording_faults(text):
    """Return the sentences that are too long and the words that the glossary replaces, one line per fault."""
    found = []
    for sentence in sentences(text) if len(text) > 2 * LONGEST_SENTENCE else ():  # a word has a letter and a space
        words = len(WORD.findall(sentence))
        if words > LONGEST_SENTENCE:
            found.append(f"{words} words: {sentence:.200}")
    return found + replaced_words(text)


def replaced_words(text):
    """Return the words that the glossary replaces, one line per fault."""
    words, found = prose(text), []
    if ANY_HOME_MADE.search(words):
        for pattern, instead in HOME_MADE.items():
            found += [f"{match[0]!r}: use {instead}" for match in re.finditer(pattern, words, re.IGNORECASE)]
    return found
