"""The SELECT statement, run by SQLite, says what the classifier says."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from export_models import LABELS, encoded, made, probability, rows, run_sql, size, trained
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.export import to_json, to_sql
from scoreline.io import Encoding
from scoreline.io.columns import Column
from tiers import examples

X_NAMES = [f"x{k}" for k in range(5)]


def check(clf, X, found):
    """Scores and predictions are those of the classifier, but for scores that are 0 within rounding."""
    score, rounding = clf.decision_function(X), 1e-14 * size(clf, X)
    np.testing.assert_allclose(found["score"], score, rtol=0, atol=rounding)
    sure = np.abs(score) > rounding
    assert sure.sum() > 0.9 * len(score)
    assert np.array_equal(np.array(found["prediction"])[sure], clf.predict(X)[sure])
    assert found["prediction"] == clf.classes_[(np.array(found["score"]) > 0).astype(int)].tolist()


@for_each("calibrated", [False, True])
@for_each(("labels", "search"), [*((name, False) for name in LABELS), ("text", True)])
def test_labels_of_every_kind(labels, search, calibrated):
    clf, X = trained("f1", labels, search, calibrated)
    found = run_sql(to_sql(clf, "t"), "t", X_NAMES, X.tolist())
    check(clf, X, found)
    assert list(found) == [*X_NAMES, "score", "prediction", *(["probability"] if calibrated else [])]
    if calibrated:
        np.testing.assert_allclose(found["probability"], probability(clf, X), rtol=1e-12, atol=0)


@for_each("measure", ["roc_auc", "accuracy", "gmean", "average_precision", "prbep"])
def test_families_of_measures(measure):
    clf, X = trained(measure)
    check(clf, X, run_sql(to_sql(clf, "t"), "t", X_NAMES, X.tolist()))


def test_the_threshold_serves_the_measure():
    """Two measures, one model, other classes."""
    X, y = rows()
    clf = MeasureClassifier("f1", scaling="standard").fit(X, y)
    first = run_sql(to_sql(clf, "t"), "t", X_NAMES, X.tolist())
    clf.tune_threshold(X, y, "precision_at_recall", {"recall": 0.99})
    second = run_sql(to_sql(clf, "t"), "t", X_NAMES, X.tolist())
    check(clf, X, second)
    assert first["prediction"] != second["prediction"]


def test_a_score_of_zero_is_the_first_class_and_no_score_is_no_class():
    clf = made([2.0, -0.5, 0.0], 1.0, ("no", "yes"))
    values = [[0.0, 2.0, None], [0.0, np.nextafter(2.0, 0.0), 1.0], [None, 2.0, 1.0], [1.0, None, 1.0]]
    found = run_sql(to_sql(clf, "t"), "t", X_NAMES[:3], values)
    assert found["prediction"] == ["no", "yes", None, None]
    assert found["score"] == [0.0, 1.0 - 0.5 * np.nextafter(2.0, 0.0) + 0.0, None, None]
    assert "x2" not in to_sql(clf, "t")


def test_integers_are_multiplied_as_doubles():
    clf = made([0.1, 3.0], -1.0)
    found = run_sql(to_sql(clf, "t"), "t", ["x0", "x1"], [[3, 7], [1, 0]], ["INTEGER", "INTEGER"])
    np.testing.assert_allclose(found["score"], [20.3, -0.9], rtol=1e-15)


def test_probabilities_are_stable():
    clf = made([1.0], 3.0, calibration=[2.0, 6.0])
    values = [-1e4, -400.0, -300.0, -20.0, -3.0, 20.0, 300.0, 1e4, None]
    found = run_sql(to_sql(clf, "t"), "t", ["x0"], [[value] for value in values])["probability"]
    logits = 2.0 * np.array(values[:-1]) + 6.0
    np.testing.assert_allclose(found[:-1], np.exp(-np.logaddexp(0.0, -logits)), rtol=1e-12, atol=1e-304)
    assert found[-1] is None


@for_each("search", [False, True])
def test_predict_proba(search):
    X, y = rows()
    options = {"scaling": "standard", "probability": True, "random_state": 0}
    clf = MeasureClassifierCV("f1", alphas=[0.1], cv=3, **options) if search else MeasureClassifier("f1", **options)
    clf.fit(X, y)
    found = run_sql(to_sql(clf, "t"), "t", X_NAMES, X.tolist())
    np.testing.assert_allclose(found["probability"], clf.predict_proba(X)[:, 1], rtol=1e-11, atol=1e-300)


@for_each("number", [5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 1e22, 123456789.0, -1e-5, 2.0**-1074 * 3])
def test_numbers_read_back_to_the_same_double(number):
    assert run_sql(to_sql(made([0.0], number), "t"), "t", ["x0"], [[1.0]])["score"] == [number]
    assert run_sql(to_sql(made([number]), "t"), "t", ["x0"], [[1.0]])["score"] == [number]


@for_each("p", [49, 50, 51, 1500])
def test_wide_tables(p):
    """SQLite's expressions may be 1000 deep; its tables have 2000 columns."""
    rng = np.random.default_rng(0)
    clf, X = made(rng.standard_normal(p), 0.1, ("a", "b")), rng.standard_normal((30, p))
    check(clf, X, run_sql(to_sql(clf, "t", keep=[]), "t", [f"x{k}" for k in range(p)], X.tolist()))


def test_five_thousand_features_that_are_columns_of_a_view():
    """As many terms in one expression, of a hundred columns."""
    clf = made(np.ones(5000))
    names = [f"c{k % 100}" for k in range(5000)]
    statement = to_sql(clf, "t", columns=[f"{k}" for k in range(5000)], keep=[])
    for k, name in reversed(list(enumerate(names))):
        statement = statement.replace(f'src."{k}"', f'src."{name}"')
    found = run_sql(statement, "t", [f"c{k}" for k in range(100)], [[1.0] * 100])
    assert found["score"] == [5000.0]


def test_columns_beyond_every_database():
    with pytest.raises(ValueError, match=r"reads 40000 columns.*\(row, feature, value\)"):
        to_sql(made(np.ones(40_000)), "t")
    assert to_sql(made(np.r_[np.ones(3), np.zeros(50_000)]), "t").count('src."x') == 3


def test_a_long_table_of_sparse_rows():
    """The statement of docs/deploy.md."""
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text()
    statement = page.partition("```sql\n")[2].partition("```")[0]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5000)) * (rng.random((40, 5000)) < 0.01)
    X[7] = 0.0
    clf = made(rng.standard_normal(5000), 0.2, ("fine", "fraud"))
    document = to_json(clf)
    coefficients = [(each["name"], each["coefficient"]) for each in document["features"]]
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE payments (id INTEGER)")
        connection.execute("CREATE TABLE payment_values (id INTEGER, feature TEXT, value REAL)")
        connection.execute("CREATE TABLE coefficients (feature TEXT PRIMARY KEY, coefficient REAL)")
        connection.executemany("INSERT INTO payments VALUES (?)", [(k,) for k in range(40)])
        entries = [(int(i), f"x{j}", float(X[i, j])) for i, j in np.argwhere(X != 0.0)]
        connection.executemany("INSERT INTO payment_values VALUES (?, ?, ?)", [*entries, (0, "unknown", 5.0)])
        connection.executemany("INSERT INTO coefficients VALUES (?, ?)", coefficients)
        found = connection.execute(statement, {"intercept": document["intercept"]}).fetchall()
    found.sort()
    np.testing.assert_allclose([row[1] for row in found], clf.decision_function(X), rtol=1e-12)
    assert [row[2] for row in found] == clf.predict(X).tolist()


def check_encoded(encoding, values, coef):
    """The statement on the columns says what the classifier says of their features."""
    clf = made(coef, 0.3, ("no", "yes"), encoding_=encoding)
    types = ["REAL" if column.kind == "number" else "TEXT" for column in encoding.columns]
    names = [column.name for column in encoding.columns]
    found = run_sql(to_sql(clf, "t", keep=[]), "t", names, values, types)
    np.testing.assert_allclose(found["score"], clf.decision_function(encoded(encoding, values)), rtol=0, atol=1e-13)


COLORS = ("blue", "it's", "red", "?")


@for_each("impute", ["mean", "zero"])
def test_categories_and_missing_values(impute):
    columns = [
        Column("size", "number", (), 2.5),
        Column("color", "category", COLORS, "?"),
        Column("kind", "category", ("a", "b")),
    ]
    encoding = Encoding(columns, impute=impute, missing=("none", "-"))
    values = [
        (1.0, "red", "a"),
        (None, "it's", "b"),
        (3.0, None, None),
        (4.0, "green", "c"),
        (5.0, "?", "A"),
        (0.0, "blue", "a "),
    ]
    check_encoded(encoding, values, [1.5, 0.7, -0.1, 0.0, 2.0, -3.0, 4.0])
    check_encoded(encoding, values, [0.0, 0.0, 0.0, 0.0, 0.0, -3.0, 0.0])
    clf = made([1.5, 0.7, -0.1, 0.9, 2.0, -3.0, 4.0], encoding_=encoding)
    marked = [(1.0, "none", "-"), (1.0, None, None)]
    found = run_sql(to_sql(clf, "t", keep=[]), "t", ["size", "color", "kind"], marked, ["REAL", "TEXT", "TEXT"])
    assert found["score"][0] == found["score"][1]


@for_each("coef", [[1.0, 2.0, 3.0], [1.0, 0.0, 3.0]])
def test_missing_values_that_were_an_error_have_no_score(coef):
    encoding = Encoding([Column("size", "number"), Column("color", "category", ("blue", "red"))])
    clf = made(coef, encoding_=encoding)
    values = [(1.0, "red"), (None, "red"), (1.0, None), (1.0, "green")]
    found = run_sql(to_sql(clf, "t"), "t", ["size", "color"], values, ["REAL", "TEXT"])
    assert found["score"] == [4.0, None, None, 1.0]
    assert found["prediction"] == [1, None, None, 1]


NUMBERS = [
    "3",
    "3.0",
    "3.00",
    "03",
    "03.0",
    "3.",
    ".0",
    "-0",
    "-0.0",
    "0",
    "0.0",
    "1.5",
    "1.50",
    "1.2.0",
    "1.20",
    "1e5",
    "1.5e10",
]
NUMBERS += [
    "1.5e1",
    "1e5.0",
    "-2",
    "-2.0",
    "abc",
    "abc.0",
    "",
    "+3",
    " 3",
    "300",
    "30",
    "true",
    "True",
    "TRUE",
    "?",
    None,
]


@for_each(
    "categories",
    [
        ("0", "3", "1.5", "1e5"),
        ("-2", "1.2", "30", "300", "1.5e1"),
        ("false", "true"),
        ("0", "1.5", "false", "true"),
        (),
    ],
)
@for_each("fill", ["?", None])
@for_each("other", [False, True])
def test_texts_that_are_written_like_numbers(categories, fill, other):
    """3.0 is the category 3 and True is true, but codes like 03 and 1.2.0 are texts."""
    if not categories and fill is None and not other:
        categories = ("-0.5",)
    known = (*categories, "?") if fill else categories
    encoding = Encoding([Column("code", "category", known, fill, other=other)], impute="mean")
    check_encoded(encoding, [(text,) for text in NUMBERS], np.arange(1.0, encoding.n_features + 1.0))


@for_each("coef", [[2.0, 0.5, -1.0, 0.0, 8.0], [0.0, -0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0, 3.0]])
def test_indicators_and_other_texts(coef):
    columns = [Column("size", "number", (), 2.5, indicator=True)]
    columns += [Column("color", "category", ("blue", "?"), "?", other=True)]
    values = [(1.0, "blue"), (None, "red"), (0.0, None), (-3.0, ""), (None, "?")]
    check_encoded(Encoding(columns, impute="mean"), values, coef)


@for_each("kind", ["INTEGER", "REAL", "TEXT"])
def test_codes_that_the_database_holds_as_numbers(kind):
    clf = made([1.0, 2.0, 4.0], encoding_=Encoding([Column("code", "category", ("0", "3", "1.5"))]))
    values = [0, 3, 7] if kind == "INTEGER" else [0.0, 3.0, 7.0]
    assert run_sql(to_sql(clf, "t"), "t", ["code"], [[v] for v in values], [kind])["score"] == [1.0, 2.0, 0.0]


def test_many_categories():
    names = tuple(f"c{k}" for k in range(3000))
    encoding = Encoding([Column("id", "category", names)])
    check_encoded(encoding, [("c0",), ("c2999",), ("c7",), ("other",)], np.arange(1.0, 3001.0))


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
CODES = st.text("0123456789.-eE+", max_size=6)
ODD = st.sampled_from(["'", "''", '"', "\\", "\\'", "--", ";", "`", "');--", "%", "_", "[a]", "NULL", "score"])


@examples(120)
@given(
    name=(TEXT | ODD).filter(bool),
    table=(TEXT | ODD).filter(lambda text: text and not text.lower().startswith("sqlite_")),
    categories=st.lists(TEXT | ODD | CODES, min_size=1, max_size=4, unique=True),
    values=st.lists(TEXT | ODD | CODES | st.none(), max_size=6),
    classes=st.lists(TEXT | ODD, min_size=2, max_size=2, unique=True),
)
def test_any_text_is_only_text(name, table, categories, values, classes):
    encoding = Encoding([Column(name, "category", tuple(categories))], impute="mean")
    clf = made(np.arange(1.0, len(categories) + 1.0), -1.5, sorted(classes), encoding_=encoding)
    statement = to_sql(clf, table, keep=[])
    values = [*values, *categories]
    found = run_sql(statement, table, [name], [[value] for value in values], ["TEXT"])
    expected = clf.decision_function(encoded(encoding, [[value] for value in values]))
    assert found["score"] == expected.tolist()
    assert found["prediction"] == [clf.classes_[int(score > 0)] for score in expected]


@examples(60)
@given(text=TEXT | ODD)
def test_literals_of_other_dialects_end_where_they_should(text):
    from scoreline.export.as_sql import DIALECTS

    mysql, bigquery = DIALECTS["mysql"], DIALECTS["bigquery"]
    body = bigquery.text(text)[1:-1]
    back, at = "", 0
    while at < len(body):
        assert body[at] not in "'\n\r"
        step = 2 if body[at] == "\\" else 1
        back += {"\\n": "\n", "\\r": "\r", "\\\\": "\\", "\\'": "'"}[body[at : at + 2]] if step == 2 else body[at]
        at += step
    assert back == text
    body, at = mysql.text(text)[1:-1], 0
    while at < len(body):
        pair = body[at : at + 2]
        assert body[at] not in "'\\" or pair in ("''", "\\\\")
        at += 2 if body[at] in "'\\" else 1


def test_dialects():
    encoding = Encoding([Column("a`b", "category", ("1", "it's \\ x"))])
    clf = made([1.0, 2.0], classes=(False, True), calibration=[1.0, 0.0], encoding_=encoding)
    mysql, bigquery = to_sql(clf, ["s", "t"], dialect="mysql"), to_sql(clf, ["s", "t"], dialect="bigquery")
    assert "`s`.`t`" in mysql
    assert "src.`a``b`" in mysql
    assert "'it''s \\\\ x'" in mysql
    assert "src.`a\\`b`" in bigquery
    assert "'it\\'s \\\\ x'" in bigquery
    for text in (mysql, bigquery):
        assert "DOUBLE PRECISION" not in text
        assert '"' not in text
    plain = made([1.0], encoding_=Encoding([Column("a", "category", ("3",))]))
    assert "TRIM(TRAILING '0' FROM CAST(src.`a` AS CHAR))" in to_sql(plain, "t", dialect="mysql")
    assert "RTRIM(CAST(src.`a` AS STRING), '0')" in to_sql(plain, "t", dialect="bigquery")


def test_names_of_columns_and_results():
    clf = made([1.0, 2.0], calibration=[1.0, 0.0], feature_names_in_=np.array(["a", "b"], dtype=object))
    assert run_sql(to_sql(clf, "t"), "t", ["a", "b"], [[1.0, 2.0]])["score"] == [5.0]
    statement = to_sql(clf, "t", columns=["Score", "d"], keep=["Score"], outputs=["s", "p", "q"])
    found = run_sql(statement, "t", ["Score", "d"], [[1.0, 2.0]])
    assert list(found) == ["Score", "s", "p", "q"]
    assert found["s"] == [5.0]
    search = made([1.0], cls=MeasureClassifierCV)
    assert run_sql(to_sql(search, ("main", "t"), keep=("x0",)), "t", ["x0"], [[2.0]])["score"] == [2.0]
