"""Statements in SQLite, DuckDB and PostgreSQL: types of columns, missing values, NaN, any text."""

import math

import numpy as np
import pytest
import sqlglot
from databases import DATABASES, MISSING, run_duckdb, run_postgresql
from export_models import encoded, made, run_sql
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline.export import to_sql
from scoreline.io import Encoding
from scoreline.io.columns import Column
from tiers import examples

in_duckdb, in_postgresql = (
    pytest.mark.skipif(run in MISSING, reason=MISSING.get(run, "")) for run in (run_duckdb, run_postgresql)
)
NAN, INF = math.nan, math.inf
FILLED = Encoding([Column("a", "number", (), 2.0)], impute="mean")
CODES = Encoding([Column("a", "category", ("0", "1.5", "3", "?"), "?")], impute="mean")
TRUTHS = Encoding([Column("a", "category", ("false", "true", "?"), "?")], impute="mean")
TEXTS = Encoding([Column("a", "category", ("x", "yy", "?"), "?")], impute="mean", missing=("none",))
DATES = Encoding([Column("a", "category", ("2020-01-31", "2021-12-01", "?"), "?")], impute="mean")


@pytest.mark.slow
def test_every_database_is_there():
    if MISSING:
        pytest.skip("; ".join(MISSING.values()))


def scores(database, encoding, coef, kind, values, **options):
    """Return the scores of a table with one column of the given type."""
    statement = to_sql(made(coef, 0.5, encoding_=encoding), "t", keep=[], **options)
    return database(statement, "t", ["a"], [(value,) for value in values], [kind]).get("score", [])


@for_each("database", DATABASES)
@for_each(
    ("kind", "values", "expected"),
    [
        ("INTEGER", [0, 3, None], [0.5, 5.0, 3.5]),
        ("INTEGER", [-(2**31)], [0.5 - 1.5 * 2**31]),
        ("BIGINT", [2**40, -(2**40)], [0.5 + 1.5 * 2**40, 0.5 - 1.5 * 2**40]),
        ("DECIMAL(8, 2)", [0.25, -3.5, None], [0.875, -4.75, 3.5]),
        ("REAL", [0.25, -3.5, None], [0.875, -4.75, 3.5]),
        ("DOUBLE PRECISION", [0.25, -3.5, -0.0, None], [0.875, -4.75, 0.5, 3.5]),
    ],
)
def test_types_of_numbers(database, kind, values, expected):
    assert scores(database, FILLED, [1.5], kind, values) == expected


@for_each("database", DATABASES)
def test_truth_values(database):
    """BOOLEAN in the table, numbers or categories in training."""
    given = [True, False, None]
    assert scores(database, FILLED, [1.5], "BOOLEAN", given, booleans=["a"]) == [2.0, 0.5, 3.5]
    assert scores(database, TRUTHS, [1.0, 2.0, 4.0], "BOOLEAN", given, booleans=["a"]) == [2.5, 1.5, 4.5]
    strict = Encoding([Column("a", "number")])
    assert scores(database, strict, [1.5], "BOOLEAN", given, booleans=["a"]) == [2.0, 0.5, None]


def test_booleans_must_be_columns_of_truth_values():
    with pytest.raises(ValueError, match="booleans holds 'b', which is not a column that the model reads"):
        to_sql(made([1.0], encoding_=FILLED), "t", booleans=["b"])
    with pytest.raises(ValueError, match="booleans holds 'a', whose categories are not only true and false"):
        to_sql(made([1.0] * 4, encoding_=CODES), "t", booleans=["a"])
    with pytest.raises(ValueError, match="must be a list of strings"):
        to_sql(made([1.0], encoding_=FILLED), "t", booleans="a")


@for_each("database", DATABASES)
@for_each(
    ("encoding", "kind", "values", "expected"),
    [
        (CODES, "INTEGER", [0, 3, 7, None], [1.0, 4.0, 0.0, 8.0]),
        (CODES, "DECIMAL(8, 2)", [0.0, 1.5, 3.0, None], [1.0, 2.0, 4.0, 8.0]),
        (CODES, "DOUBLE PRECISION", [0.0, -0.0, 1.5, 3.0, None], [1.0, 1.0, 2.0, 4.0, 8.0]),
        (CODES, "REAL", [1.5, 3.0], [2.0, 4.0]),
        (CODES, "TEXT", ["3.00", "-0", "03", "1.50", "", None], [4.0, 1.0, 0.0, 2.0, 0.0, 8.0]),
        (CODES, "VARCHAR(5)", ["3.0", "1.5"], [4.0, 2.0]),
        (TRUTHS, "TEXT", ["true", "True", "FALSE", "1", None], [2.0, 2.0, 1.0, 0.0, 4.0]),
        (TEXTS, "TEXT", ["x", "none", "X", "", None], [1.0, 4.0, 0.0, 0.0, 4.0]),
        (TEXTS, "CHAR(2)", ["yy", None], [2.0, 4.0]),
        (DATES, "DATE", ["2020-01-31", "2020-01-30", None], [1.0, 0.0, 4.0]),
        (DATES, "TEXT", ["2021-12-01", "?"], [2.0, 4.0]),
    ],
)
def test_types_of_categories(database, encoding, kind, values, expected):
    coef = [1.0, 2.0, 4.0, 8.0][: encoding.n_features]
    assert scores(database, encoding, coef, kind, values) == [0.5 + value for value in expected]


@pytest.mark.slow
@in_postgresql
def test_padded_text_of_postgresql():
    """CHAR(5) holds "x    "; as text it is "x"."""
    assert scores(run_postgresql, TEXTS, [1.0, 2.0, 4.0], "CHAR(5)", ["x", "none"]) == [1.5, 4.5]


@for_each("database", DATABASES)
def test_nan_is_missing_where_null_is(database):
    assert scores(database, FILLED, [1.5], "DOUBLE PRECISION", [1.0, NAN, None]) == [2.0, 3.5, 3.5]
    indicator = Encoding([Column("a", "number", (), 2.0, indicator=True)], impute="mean")
    assert scores(database, indicator, [1.5, 10.0], "DOUBLE PRECISION", [1.0, NAN, None]) == [2.0, 13.5, 13.5]


@for_each("database", DATABASES)
def test_a_score_that_is_no_finite_number_has_no_prediction(database):
    """NaN is larger than any number in PostgreSQL and DuckDB, so that it was predicted positive."""
    clf = made([1.0], 0.5, ("no", "yes"), calibration=[1.0, 0.0])
    values = [[value] for value in (1.0, NAN, INF, -INF, None, -0.5, -2.0)]
    found = database(to_sql(clf, "t", keep=[]), "t", ["x0"], values, ["DOUBLE PRECISION"])
    assert found["prediction"] == ["yes", None, None, None, None, "no", "no"]
    assert [value is None for value in found["probability"]] == [False, True, True, True, True, False, False]


@for_each("database", DATABASES)
def test_probabilities_do_not_underflow(database):
    """EXP of less than -745 is an error in PostgreSQL."""
    clf = made([1.0], 3.0, calibration=[2.0, 6.0])
    values = [-1e4, -400.0, -354.0, -352.0, -300.0, -20.0, -3.0, 20.0, 300.0, 1e4]
    found = database(to_sql(clf, "t", keep=[]), "t", ["x0"], [[value] for value in values])["probability"]
    logits = 2.0 * np.array(values) + 6.0
    np.testing.assert_allclose(found, np.exp(-np.logaddexp(0.0, -logits)), rtol=1e-12, atol=1e-303)


@for_each("database", DATABASES)
def test_wide_tables_and_long_names(database):
    """PostgreSQL cuts names off after 63 bytes, in the table as in the statement."""
    rng = np.random.default_rng(0)
    names = [*(f"x{k}" for k in range(899)), "n" * 80]
    clf, X = made(rng.standard_normal(900), 0.1), rng.standard_normal((20, 900))
    clf.feature_names_in_ = np.array(names, dtype=object)
    found = database(to_sql(clf, "t", keep=[]), "t", names, X.tolist())
    np.testing.assert_allclose(found["score"], X @ clf.coef_[0] + 0.1, rtol=0, atol=1e-12)


@for_each("database", DATABASES)
def test_many_categories(database):
    names = tuple(f"c{k}" for k in range(2000))
    values = ["c0", "c1999", "c7", "new", None]
    encoding = Encoding([Column("a", "category", names, other=True)], impute="mean")
    found = scores(database, encoding, np.arange(1.0, 2002.0), "TEXT", values)
    assert found == [1.5, 2000.5, 8.5, 2001.5, 0.5]


@for_each("database", DATABASES)
@for_each("classes", [(False, True), (0, 1), (0.5, 1.5), ("it's", 'ö "yes" \\')])
def test_classes(database, classes):
    found = database(to_sql(made([1.0], 0.0, classes), "t"), "t", ["x0"], [[1.0], [-1.0]])
    assert found["prediction"] == [classes[1], classes[0]]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
ODD = st.sampled_from(
    ["'", "''", '"', "\\", "\\'", "--", ";", "`", "');--", "%", "_", "NULL", "\\.", "{}", "$1", "?", ":a"]
)


@pytest.mark.slow
@in_duckdb
@examples(60)
@given(
    name=(TEXT | ODD).filter(bool),
    categories=st.lists(TEXT | ODD, min_size=1, max_size=4, unique=True),
    values=st.lists(TEXT | ODD | st.none(), max_size=6),
)
def test_any_text_is_only_text_in_duckdb(name, categories, values):
    check_any_text(run_duckdb, name, categories, values)


def check_any_text(database, name, categories, values):
    """The statement says of texts what the encoding says."""
    encoding = Encoding([Column(name, "category", tuple(categories))], impute="mean")
    clf = made(np.arange(1.0, len(categories) + 1.0), -1.5, ("\\'", "no"), encoding_=encoding)
    values = [[value] for value in (*values, *categories)]
    found = database(to_sql(clf, "t", keep=[]), "t", [name], values, ["TEXT"])
    expected = clf.decision_function(encoded(encoding, values))
    assert found["score"] == expected.tolist()
    assert found["prediction"] == [clf.classes_[int(score > 0)] for score in expected]


@pytest.mark.slow
@in_postgresql
def test_any_text_is_only_text_in_postgresql():
    """One statement for many texts, because a session of psql takes a tenth of a second."""
    odd = ["'", "''", '"', "\\", "\\'", "--", ";", "`", "');--", "%", "_", "NULL", "\\n", "{}", "$1", "?", ":a", ":'a'"]
    odd += ["\n", "\r\n", "\t", "ö", "\U0001d518", " ", "$$", "/*", "E'"]
    for name in odd[:12]:
        check_any_text(run_postgresql, name, odd, [None, "x", ""])


@pytest.mark.slow
@in_duckdb
@for_each("dialect", ["mysql", "bigquery"])
def test_other_dialects_are_read_as_they_are_meant(dialect):
    """No such database is at hand; sqlglot reads their grammar, and DuckDB runs what it translates."""
    columns = [
        Column("size", "number", (), 2.5, indicator=True),
        Column("it's `odd`\\", "category", ("a'b", "c\\d", "?"), "?"),
    ]
    columns += [Column("code", "category", ("0", "1.5"), other=True), Column("flag", "number")]
    encoding = Encoding(columns, impute="mean", missing=("n'one",))
    clf = made(np.arange(1.0, 10.0), -14.0, ("no'", "yes\\"), calibration=[0.5, 0.1], encoding_=encoding)
    values = [(1.0, "a'b", "0.00", 1.0), (None, "c\\d", "1.50", 0.0), (3.0, "n'one", "x", 1.0), (-1.0, "z", None, 0.0)]
    statement = to_sql(clf, "t", dialect=dialect, keep=[], booleans=["flag"])
    (translated,) = sqlglot.transpile(statement, read=dialect, write="duckdb", identify=True)
    names, types = [column.name for column in columns], ["DOUBLE", "TEXT", "TEXT", "BOOLEAN"]
    found = run_duckdb(translated, "t", names, [(*row[:3], bool(row[3])) for row in values], types)
    expected = run_sql(to_sql(clf, "t", keep=[]), "t", names, values, ["REAL", "TEXT", "TEXT", "REAL"])
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-14)
    assert found["prediction"] == expected["prediction"]
    np.testing.assert_allclose(found["probability"], expected["probability"], rtol=1e-13)
