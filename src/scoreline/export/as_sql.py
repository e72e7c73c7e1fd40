"""SQL export: one SELECT that scores the rows of a table inside the database, in the syntax of several databases."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from scoreline.export.model import (
    CategoryTerm,
    Knots,
    LinearModel,
    NumberTerm,
    check_name,
    check_text,
    column_terms,
    feature_terms,
    linear_model,
)
from scoreline.io.columns import names_of, twice
from scoreline.io.encoding import Encoding
from scoreline.runtime.checks import check_choice
from scoreline.scorecards import Scorecard

TERMS_PER_SUM = 50  # databases limit the depth of an expression (SQLite: 1000)
MAX_COLUMNS = 32_767  # the highest limit of the supported databases
TRUTH = {"true", "false"}
OUTPUTS = ("score", "prediction", "probability")
LARGEST = sys.float_info.max
# Above the first logit a sigmoid is 1 to the last bit. Below the second, exp would underflow, an error in PostgreSQL.
MAX_LOGIT, MIN_LOGIT = 40.0, -700.0


@dataclass(frozen=True)
class Dialect:
    """The syntax of a family of databases where it differs from standard SQL.

    `name_escapes` and `text_escapes` replace characters inside a quoted name or text. `double` and `varchar` are types for
    CAST; `double` is None if numbers with an exponent are doubles without a cast. `trimmed` removes characters from the end of
    a text. If `cast_compares_exactly`, a text column that is cast to text is still compared letter by letter.
    """

    quote: str
    name_escapes: dict[str, str]
    text_escapes: dict[str, str]
    double: str | None
    varchar: str
    trimmed: str
    cast_compares_exactly: bool

    def name(self, name: str) -> str:
        """Return an identifier, quoted so that nothing in it can end it."""
        check_name(name)
        return _quoted(name, self.quote, self.name_escapes)

    def text(self, text: str) -> str:
        """Return a literal, quoted so that nothing in it can end it."""
        check_text("a category or class", text)
        return _quoted(text, "'", self.text_escapes)

    def value(self, value: Any) -> str:
        """Return a class as a literal."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.text(value)
        return number(value) if isinstance(value, float) else str(value)

    def as_double(self, expression: str) -> str:
        """Return an expression of type double, even if its literals are decimals."""
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
    """Return a literal that reads back to the same bits; its exponent makes it a double, not a decimal."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def _quoted(text: str, quote: str, escapes: dict[str, str]) -> str:
    return quote + "".join(escapes.get(letter, letter) for letter in text) + quote


RTRIM = "RTRIM({text}, {end})"
SLASHES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}  # BigQuery allows no line ends inside quotes
DIALECTS = {
    "ansi": Dialect('"', {'"': '""'}, {"'": "''"}, "DOUBLE PRECISION", "VARCHAR", RTRIM, True),
    "mysql": Dialect(
        "`", {"`": "``"}, {"'": "''", "\\": "\\\\"}, None, "CHAR", "TRIM(TRAILING {end} FROM {text})", False
    ),
    "bigquery": Dialect("`", {**SLASHES, "`": "\\`"}, {**SLASHES, "'": "\\'"}, None, "STRING", RTRIM, True),
}


def to_sql(
    clf: Any,
    table: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    keep: str | Sequence[str] = "*",
    outputs: Sequence[str] = OUTPUTS,
    dialect: str = "ansi",
    encoding: Encoding | None = None,
    booleans: Sequence[str] = (),
) -> str:
    """Return a SELECT statement that scores the rows of a table: score, prediction, and probability if available.

    The prediction uses the threshold that was tuned for the measure. With an encoding the statement reads the original
    columns of the table. Categories become a CASE, and missing values (NULL, and NaN in a number column) are filled as in
    training. If they were an error in training, or if the score is infinite, prediction and probability are NULL. Features
    with coefficient 0 are not read.

    A statement has one term per feature or category and reads up to 32,767 columns. Databases have lower limits: SQLite
    allows 2,000. Wide sparse data belong in a table of (row, feature, value); docs/deploy.md has the statement for it.

    Parameters
    ----------
    clf : MeasureClassifier, MeasureClassifierCV or Scorecard
        A trained classifier, or its scorecard: then the results are points, a whole number, and prediction.
    table : str or sequence of str
        Name of the table; ("sales", "payments") for a table in a schema.
    columns : sequence of str, optional
        Columns of the table, one per feature, or one per column of the encoding. By default the names in the training data, or
        x0, x1, ...
    keep : str or sequence of str, default="*"
        Columns to keep next to the results: all, or a list like ["id"].
    outputs : sequence of str, default=("score", "prediction", "probability")
        Names of the results.
    dialect : {"ansi", "mysql", "bigquery"}, default="ansi"
        How names, texts and types are written. Use "ansi" for SQLite, PostgreSQL, DuckDB and other databases that follow the
        standard.
    encoding : Encoding, optional
        How columns of a table became features; by default the encoding that the classifier was saved with.
    booleans : sequence of str, default=()
        Columns of type BOOLEAN that training read as the numbers 1 and 0, or as the categories true and false. PostgreSQL
        and DuckDB cannot multiply Booleans, and SQLite and MySQL write them as 1 and 0.

    Returns
    -------
    str
        The statement, without a semicolon.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.export import to_sql
    >>> clf = MeasureClassifier().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    >>> clf.coef_, clf.intercept_ = np.array([[1.5, -0.1]]), np.array([-0.25])
    >>> print(to_sql(clf, "visits", columns=["pages", "age"], keep=["id"]))
    SELECT scored."id", scored."score",
      CASE WHEN scored."score" BETWEEN -1.7976931348623157e+308 AND 0 THEN 'no'
        WHEN scored."score" BETWEEN 0 AND 1.7976931348623157e+308 THEN 'yes' END AS "prediction"
    FROM (
      SELECT src."id",
        CAST(-0.25e0
          + 1.5e0 * src."pages"
          - 0.1e0 * src."age" AS DOUBLE PRECISION) AS "score"
      FROM "visits" AS src
    ) AS scored
    """
    if isinstance(clf, Scorecard):
        from scoreline.export.cards import card_sql

        own = {} if tuple(outputs) == OUTPUTS else {"outputs": outputs}
        return card_sql(clf, table, keep=keep, dialect=dialect, **own)
    model = linear_model(clf, encoding)
    check_choice("dialect", dialect, tuple(DIALECTS))
    words = DIALECTS[dialect]
    source = _table_columns(model, columns)
    results = names_of("outputs", outputs)
    if len(results) != len(OUTPUTS) or twice(name.casefold() for name in results):
        raise ValueError(f"outputs={outputs!r} must be three different names, for {', '.join(OUTPUTS)}")
    results = results[: 2 if model.calibration is None else 3]
    others = None if isinstance(keep, str) and keep == "*" else names_of("keep", keep)
    if others is not None and twice(name.casefold() for name in others):
        raise ValueError(f"keep={keep!r} has a name twice")
    label = [] if model.encoding is None or model.encoding.label is None else [model.encoding.label]
    taken = {name.casefold() for name in ([*source, *label] if others is None else others)}
    for name in results:  # databases ignore case in names
        if name.casefold() in taken:
            raise ValueError(f"the result {name!r} has the name of a column; choose others with outputs=[...]")
    terms = _terms(model, source, words, names_of("booleans", booleans))
    score, prediction = words.name(results[0]), words.name(results[1])
    inner = ["src.*"] if others is None else [f"src.{words.name(name)}" for name in others]
    outer = ["scored.*"] if others is None else [f"scored.{words.name(name)}" for name in (*others, results[0])]
    total = words.as_double(sql_sum([("+", number(model.intercept)), *terms], "    "))
    no, yes = (words.value(value) for value in model.classes)
    lines = [
        f"SELECT {', '.join(outer)},",
        f"  CASE WHEN scored.{score} BETWEEN {number(-LARGEST)} AND 0 THEN {no}",
        f"    WHEN scored.{score} BETWEEN 0 AND {number(LARGEST)} THEN {yes} END AS {prediction}",
    ]
    if model.calibration is not None:
        lines[-1] += ","
        lines += [f"  {line}" for line in _probability(*model.calibration, f"scored.{score}")]
        lines[-1] += f" AS {words.name(results[2])}"
    lines += [
        "FROM (",
        f"  SELECT {', '.join(inner)}," if inner else "  SELECT",
        f"    {total} AS {score}",
        f"  FROM {sql_table(table, words)} AS src",
        ") AS scored",
    ]
    return "\n".join(lines)


def sql_table(table: Any, words: Dialect) -> str:
    """Return the name of a table, quoted."""
    parts = [table] if isinstance(table, str) else names_of("table", table)
    if not parts:
        raise ValueError(f"table={table!r} must be the name of a table, or several, like ['schema', 'table']")
    return ".".join(words.name(part) for part in parts)


def _table_columns(model: LinearModel, columns: Any) -> list[str]:
    known = model.names if model.encoding is None else [column.name for column in model.encoding.columns]
    given = known if columns is None else names_of("columns", columns)
    if len(given) != len(known):
        what = "features" if model.encoding is None else "columns"
        raise ValueError(f"columns has {len(given)} names, expected {len(known)}, one for each of the model's {what}")
    if twice(given):
        raise ValueError(f"column {twice(given)[0]!r} occurs more than once; pass columns=[...] with different names")
    return given


def _terms(model: LinearModel, source: list[str], words: Dialect, booleans: list[str]) -> list[tuple[str, str]]:
    """Return sign and text of the terms."""
    known = feature_terms(model) if model.encoding is None else column_terms(model)
    marks = () if model.encoding is None else model.encoding.missing
    absent = set(booleans) - set(source)
    if absent:
        raise ValueError(f"booleans holds {min(absent)!r}, which is not a column that the model reads; leave it out")
    terms = []
    for term, name in zip(known, source, strict=True):
        place = f"src.{words.name(name)}"
        if not term.used:
            continue
        if name in booleans:
            terms.append(("+", _boolean(term, place)))
        elif isinstance(term, NumberTerm):
            terms.append(_number(term, place))
        else:
            terms.append(("+", _category(term, place, marks, words)))
    if len(terms) > MAX_COLUMNS:
        raise ValueError(
            f"the model reads {len(terms)} columns, and tables have {MAX_COLUMNS} at most; keep such data in a table of (row, "
            "feature, value), as docs/deploy.md shows, or train with fewer features"
        )
    return terms


def _boolean(term: NumberTerm | CategoryTerm, place: str) -> str:
    if isinstance(term, NumberTerm):
        yes, no = term.at(1.0), term.at(0.0)
    elif set(term.coefficients) - {term.fill} <= TRUTH:
        yes, no = (term.coefficients.get(text, term.other) for text in ("true", "false"))
    else:
        raise ValueError(
            f"booleans holds {term.name!r}, whose categories are not only true and false; leave it out of booleans"
        )
    return f"CASE WHEN {place} THEN {number(yes)} WHEN NOT {place} THEN {number(no)} ELSE {_missing(term)} END"


def _missing(term: NumberTerm | CategoryTerm) -> str:
    return "NULL" if term.missing is None else number(term.missing)


def _number(term: NumberTerm, place: str) -> tuple[str, str]:
    value = place if term.knots is None else _interpolated(term.knots, place)
    if term.missing is None:
        return "-" if term.coefficient < 0.0 else "+", f"{number(abs(term.coefficient))} * {value}"
    # One of the two holds for every number. Neither holds for NULL, or for NaN, whether NaN sorts last or is not comparable.
    present = f"{place} <= 0 OR -1.0e0 * {place} <= 0"
    return "+", f"CASE WHEN {present} THEN {number(term.coefficient)} * {value} ELSE {_missing(term)} END"


def _interpolated(knots: Knots, place: str) -> str:
    """Return the linear interpolation between knots, NULL for missing values."""
    x, y = (side.tolist() for side in knots)
    lines = [f"CASE WHEN {place} BETWEEN {number(-LARGEST)} AND {number(x[0])} THEN {number(y[0])}"]
    for k in range(len(x) - 1):
        slope = (y[k + 1] - y[k]) / (x[k + 1] - x[k])
        lines.append(
            f"WHEN {place} <= {number(x[k + 1])} THEN {number(y[k])} + {number(slope)} * ({place} - {number(x[k])})"
        )
    lines.append(f"WHEN {place} BETWEEN {number(x[-1])} AND {number(LARGEST)} THEN {number(y[-1])} END")
    return "\n        ".join(lines)


def _category(term: CategoryTerm, place: str, marks: Sequence[str], words: Dialect) -> str:
    """Return the term of a category, a CASE over its texts, in which all other texts have the same value."""
    # Without the cast PostgreSQL would read the texts as dates or numbers to compare them with such a column.
    text = words.as_text(place) if term.canonical or words.cast_compares_exactly else place
    lost = f"{place} IS NULL"
    if marks:
        lost += f" OR {words.as_text(place)} IN ({', '.join(words.text(mark) for mark in marks)})"
    texts = {text: value for text, value in term.coefficients.items() if value != term.other}
    if term.canonical:
        values = set(term.coefficients) - {term.fill}
        if values & TRUTH:
            text = f"LOWER({text})"
        if values - TRUTH:
            text = words.shortest(text)
        if "0" in texts:
            texts["-0"] = texts["0"]
    head = f"CASE WHEN {lost} THEN {_missing(term)} ELSE"
    if not texts:
        return f"{head} {number(term.other)} END"
    lines = [f"  WHEN {words.text(category)} THEN {number(value)}" for category, value in texts.items()]
    return "\n      ".join([f"{head} CASE {text}", *lines, f"  ELSE {number(term.other)} END END"])


def sql_sum(terms: list[tuple[str, str]], indent: str) -> str:
    """Return the sum of terms; more than TERMS_PER_SUM become a sum of sums, so that the expression is never deep."""
    while len(terms) > TERMS_PER_SUM:
        groups = [terms[at : at + TERMS_PER_SUM] for at in range(0, len(terms), TERMS_PER_SUM)]
        terms = [("+", f"({sql_sum(group, indent + '  ')})") for group in groups]
    (sign, first), *rest = terms
    return ("-" if sign == "-" else "") + first + "".join(f"\n{indent}  {sign} {text}" for sign, text in rest)


def _probability(slope: float, offset: float, low: float, high: float, score: str) -> list[str]:
    """Return the sigmoid as a CASE in which no exp is too large or too small."""
    logit = f"({number(slope)} * {score} + {number(offset)})"
    clipped = [
        f"WHEN {score} BETWEEN {first} AND {last} THEN {number(float(expit(slope * end + offset)))}"
        for end, first, last in ((low, number(-LARGEST), number(low)), (high, number(high), number(LARGEST)))
        if math.isfinite(end)
    ]
    cases = [
        *clipped,
        f"WHEN {logit} BETWEEN {number(MAX_LOGIT)} AND {number(LARGEST)} THEN 1.0e0",
        f"WHEN {logit} BETWEEN 0 AND {number(MAX_LOGIT)} THEN 1.0e0 / (1.0e0 + EXP(-{logit}))",
        f"WHEN {logit} BETWEEN {number(MIN_LOGIT)} AND 0 THEN EXP({logit}) / (1.0e0 + EXP({logit}))",
        f"WHEN {logit} BETWEEN {number(-LARGEST)} AND {number(MIN_LOGIT)} THEN 0.0e0 END",
    ]
    return [f"CASE {cases[0]}", *(f"  {case}" for case in cases[1:])]
