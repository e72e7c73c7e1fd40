"""How databases write names, texts and numbers."""

from dataclasses import dataclass
from typing import Any

from scoreline.export.fitted import check_name, check_text
from scoreline.runtime.registry import unknown_name


@dataclass(frozen=True)
class Dialect:
    """How a database writes what standard SQL leaves open, or what it does otherwise.

    `backslash`: one in a text means something; `doubled`: a quote inside a text is written twice, not with a backslash;
    `double` and `varchar` are types of CAST, None where numbers with an exponent are doubles anyway; `trimmed` takes
    characters from the end of a text; `cast_compares_exactly`: a column cast to text is compared letter by letter, also if
    the column is.
    """

    quote: str
    backslash: bool
    doubled: bool
    double: str | None
    varchar: str
    trimmed: str
    cast_compares_exactly: bool

    def name(self, name: str) -> str:
        """Return an identifier, quoted so that nothing in it can end it."""
        check_name(name)
        if not self.doubled:
            return self.quote + _slashed(name, self.quote) + self.quote
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def text(self, text: str) -> str:
        """Return a literal, quoted so that nothing in it can end it."""
        check_text("a category or class", text)
        if not self.doubled:
            return "'" + _slashed(text, "'") + "'"
        return "'" + (text.replace("\\", "\\\\") if self.backslash else text).replace("'", "''") + "'"

    def value(self, value: Any) -> str:
        """Return a class as a literal."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.text(value)
        return number(value) if isinstance(value, float) else str(value)

    def as_double(self, expression: str) -> str:
        """Return an expression that is a double, also where its literals would be decimals."""
        return expression if self.double is None else f"CAST({expression} AS {self.double})"

    def as_text(self, expression: str) -> str:
        """Return a value as text."""
        return f"CAST({expression} AS {self.varchar})"

    def shortest(self, text: str) -> str:
        """Return a text without the zeros at its end if it is written like a number: 3.0 as 3, 1.50 as 1.5."""
        inner = self.trimmed.format(text=self.trimmed.format(text=text, end="'0'"), end="'.'")
        others = " ".join(f"AND {text} NOT LIKE '{pattern}'" for pattern in ("%.%.%", "%e%"))
        return f"CASE WHEN {text} LIKE '%.%0' {others} THEN {inner} ELSE {text} END"


def number(value: float) -> str:
    """Return a double that reads back to the same bits; the exponent makes it a double and no decimal."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def _slashed(text: str, quote: str) -> str:
    """Return text with backslashes before what would end it, and line ends, which may not occur, spelled."""
    for plain, escaped in (("\\", "\\\\"), (quote, "\\" + quote), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(plain, escaped)
    return text


RTRIM = "RTRIM({text}, {end})"
DIALECTS = {
    "ansi": Dialect('"', False, True, "DOUBLE PRECISION", "VARCHAR", RTRIM, True),
    "mysql": Dialect("`", True, True, None, "CHAR", "TRIM(TRAILING {end} FROM {text})", False),
    "bigquery": Dialect("`", True, False, None, "STRING", RTRIM, True),
}


def get_dialect(name: Any) -> Dialect:
    """Return a dialect by its name."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise unknown_name("dialect", name, list(DIALECTS))
    return DIALECTS[name]
