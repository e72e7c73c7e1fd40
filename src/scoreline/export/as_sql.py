"""SQL: one SELECT that scores the rows of a table where they are."""

from collections.abc import Iterable, Sequence
from typing import Any

from scoreline.data.columns import Column, names_of, twice
from scoreline.data.encoding import Encoding
from scoreline.export.as_json import category_coefficients, missing_category, missing_number
from scoreline.export.dialects import Dialect, get_dialect, number
from scoreline.export.fitted import Fitted, fitted

GROUP = 50  # terms that are added in one go: databases limit how deep an expression is (SQLite: 1000)
MOST = 32_767  # columns that a table can have in the databases we know
TRUTH = {"true", "false"}
OUTPUTS = ("score", "prediction", "probability")
SURE, NEVER = (
    40.0,
    -700.0,
)  # beyond, a sigmoid is 1 to the last bit, or exp would be no normal number: an error in some databases


def to_sql(
    clf: Any,
    table: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    keep: str | Sequence[str] = "*",
    outputs: Sequence[str] = OUTPUTS,
    dialect: str = "ansi",
    encoding: Encoding | None = None,
) -> str:
    """Return a SELECT statement that scores the rows of a table: score, prediction, and probability if there is one.

    The prediction is by the cut that serves the measure. With an encoding the statement reads the columns of the table as they
    are: categories become a CASE, missing values what they were in training; where they were an error, score and prediction are
    NULL. Features of coefficient 0 are not read. A statement holds one term per feature or category and reads up to 32,767
    columns; databases have their own limits (SQLite 2,000 columns). Wide sparse data belong into a table of (row, feature,
    value): docs/deploy.md has the statement for it.

    Parameters
    ----------
    clf : MeasureClassifier or MeasureClassifierCV
        A trained classifier.
    table : str or sequence of str
        Name of the table; ("sales", "payments") for a table of a schema.
    columns : sequence of str, optional
        Columns of the table, one for each feature, or for each column of the encoding. By default the names that training
        saw, or x0, x1, ...
    keep : str or sequence of str, default="*"
        Columns to have beside the results: all, or those named, like ["id"].
    outputs : sequence of str, default=("score", "prediction", "probability")
        Names of the results.
    dialect : {"ansi", "mysql", "bigquery"}, default="ansi"
        How names, texts and types are written. "ansi" is for SQLite, PostgreSQL and others near the standard.
    encoding : Encoding, optional
        How columns of a table became features, by default the one the classifier has from its file.

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
      CASE WHEN scored."score" > 0 THEN 'yes' WHEN scored."score" <= 0 THEN 'no' END AS "prediction"
    FROM (
      SELECT src."id",
        CAST(-0.25e0
          + 1.5e0 * src."pages"
          - 0.1e0 * src."age" AS DOUBLE PRECISION) AS "score"
      FROM "visits" AS src
    ) AS scored
    """
    words, model = get_dialect(dialect), fitted(clf, encoding)
    source = _table_columns(model, columns)
    results = names_of("outputs", outputs)
    if len(results) != len(OUTPUTS) or twice(name.casefold() for name in results):
        raise ValueError(f"outputs={outputs!r} must be three different names, for {', '.join(OUTPUTS)}")
    results = results[: 2 if model.calibration is None else 3]
    label = None if model.encoding is None else model.encoding.label
    kept = _kept(keep)
    _check_outputs(results, [*source, *([] if label is None else [label])] if kept is None else kept)
    terms = _plain_terms(model, source, words) if model.encoding is None else _terms(model, source, words)
    score, prediction = words.name(results[0]), words.name(results[1])
    inner = ["src.*"] if kept is None else [f"src.{words.name(name)}" for name in kept]
    outer = ["scored.*"] if kept is None else [f"scored.{words.name(name)}" for name in (*kept, results[0])]
    total = words.as_double(_sum([("+", number(model.intercept)), *terms], "    "))
    no, yes = (words.value(value) for value in model.classes)
    lines = [
        f"SELECT {', '.join(outer)},",
        f"  CASE WHEN scored.{score} > 0 THEN {yes} WHEN scored.{score} <= 0 THEN {no} END AS {prediction}",
    ]
    if model.calibration is not None:
        lines[-1] += ","
        lines += [f"  {line}" for line in _probability(model, f"scored.{score}")]
        lines[-1] += f" AS {words.name(results[2])}"
    lines += [
        "FROM (",
        f"  SELECT {', '.join(inner)}," if inner else "  SELECT",
        f"    {total} AS {score}",
        f"  FROM {_table(table, words)} AS src",
        ") AS scored",
    ]
    return "\n".join(lines)


def _table(table: Any, words: Dialect) -> str:
    parts = [table] if isinstance(table, str) else names_of("table", table)
    if not parts:
        raise ValueError(f"table={table!r} must be the name of a table, or several, like ['schema', 'table']")
    return ".".join(words.name(part) for part in parts)


def _table_columns(model: Fitted, columns: Any) -> list[str]:
    """Return the columns to read, one for each feature or for each column of the encoding."""
    known = model.names if model.encoding is None else [column.name for column in model.encoding.columns]
    given = known if columns is None else names_of("columns", columns)
    if len(given) != len(known):
        what = "features" if model.encoding is None else "columns"
        raise ValueError(f"columns has {len(given)} names, expected {len(known)}, one for each of the model's {what}")
    if twice(given):
        raise ValueError(f"column {twice(given)[0]!r} occurs more than once; pass columns=[...] with different names")
    return given


def _kept(keep: Any) -> list[str] | None:
    """Return the columns to have beside the results, None for all of them."""
    if isinstance(keep, str) and keep == "*":
        return None
    names = names_of("keep", keep)
    if twice(name.casefold() for name in names):
        raise ValueError(f"keep={keep!r} has a name twice")
    return names


def _check_outputs(results: list[str], beside: list[str]) -> None:
    """Raise where a result would have the name of a column beside it; databases do not look at upper and lower case."""
    taken = {name.casefold() for name in beside}
    for name in results:
        if name.casefold() in taken:
            raise ValueError(f"the result {name!r} has the name of a column; choose others with outputs=[...]")


def _plain_terms(model: Fitted, source: list[str], words: Dialect) -> list[tuple[str, str]]:
    """Return sign and text of the terms of features that are columns themselves."""
    used = [(name, value) for name, value in zip(source, model.coef.tolist(), strict=True) if value != 0.0]
    _check_many(len(used))
    return [_product(value, f"src.{words.name(name)}") for name, value in used]


def _terms(model: Fitted, source: list[str], words: Dialect) -> list[tuple[str, str]]:
    """Return sign and text of the terms of the columns of an encoding."""
    assert model.encoding is not None
    terms = []
    for column, start, name in zip(model.encoding.columns, model.encoding.starts, source, strict=False):
        coef, place = model.coef[start : start + column.width].tolist(), f"src.{words.name(name)}"
        if not any(coef):
            continue
        if column.kind == "number" and column.indicator:
            lost, value = number(missing_number(column, coef) or 0.0), number(coef[0])
            terms.append(("+", f"CASE WHEN {place} IS NULL THEN {lost} ELSE {value} * {place} END"))
        elif column.kind == "number":
            filled = place if column.fill is None else f"COALESCE({place}, {number(float(column.fill))})"
            terms.append(_product(coef[0], filled))
        else:
            terms.append(("+", _category(column, coef, place, model.encoding, words)))
    _check_many(len(terms))
    return terms


def _check_many(count: int) -> None:
    if count > MOST:
        raise ValueError(
            f"the model reads {count} columns, and tables have {MOST} at most; keep such data in a table of (row, feature, "
            "value), as docs/deploy.md shows, or train with fewer features"
        )


def _product(value: float, place: str) -> tuple[str, str]:
    return "-" if value < 0.0 else "+", f"{number(abs(value))} * {place}"


def _category(column: Column, coef: list[float], place: str, encoding: Encoding, words: Dialect) -> str:
    """Return the term of a category: a CASE of its texts; all other texts add the same value, as in training."""
    missing = missing_category(column, coef, encoding.impute)
    lost, text = f"{place} IS NULL", place
    if encoding.missing:
        marks = ", ".join(words.text(mark) for mark in encoding.missing)
        lost += f" OR {words.as_text(place)} IN ({marks})"
    known, other = category_coefficients(column, coef)
    texts = {category: value for category, value in known.items() if value != other}
    if column.plain:
        values, text = set(column.categories) - {column.fill}, words.as_text(place)
        if values & TRUTH:
            text = f"LOWER({text})"
        if values - TRUTH:
            text = words.shortest(text)
        if "0" in texts:
            texts["-0"] = texts["0"]
    lines = [f"CASE WHEN {lost} THEN {'NULL' if missing is None else number(missing)} ELSE CASE {text}"]
    lines += [f"  WHEN {words.text(category)} THEN {number(value)}" for category, value in texts.items()]
    if not texts:
        return f"CASE WHEN {lost} THEN {'NULL' if missing is None else number(missing)} ELSE {number(other)} END"
    return "\n      ".join([*lines, f"  ELSE {number(other)} END END"])


def _sum(terms: Iterable[tuple[str, str]], indent: str) -> str:
    """Return the sum of terms; beyond fifty as a sum of sums, so that it is never deep."""
    terms = list(terms)
    while len(terms) > GROUP:
        groups = [terms[at : at + GROUP] for at in range(0, len(terms), GROUP)]
        terms = [("+", f"({_flat(group, indent + '  ')})") for group in groups]
    return _flat(terms, indent)


def _flat(terms: list[tuple[str, str]], indent: str) -> str:
    (sign, first), *rest = terms
    return ("-" if sign == "-" else "") + first + "".join(f"\n{indent}  {sign} {text}" for sign, text in rest)


def _probability(model: Fitted, score: str) -> list[str]:
    """Return the sigmoid as a CASE in which no exp is too large or too small."""
    assert model.calibration is not None
    slope, offset = model.calibration
    logit = f"({number(slope)} * {score} + {number(offset - slope * model.intercept)})"
    return [
        f"CASE WHEN {logit} > {number(SURE)} THEN 1.0e0",
        f"  WHEN {logit} >= 0 THEN 1.0e0 / (1.0e0 + EXP(-{logit}))",
        f"  WHEN {logit} >= {number(NEVER)} THEN EXP({logit}) / (1.0e0 + EXP({logit}))",
        f"  WHEN {logit} < {number(NEVER)} THEN 0.0e0 END",
    ]
