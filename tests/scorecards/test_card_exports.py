"""SQL, ONNX and the Python file of a scorecard give the integers of `predict`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from card_rows import strange_rows, trained

from scoreline import MeasureClassifier
from scoreline.export import to_json, to_onnx, to_python, to_sql
from scoreline.features import Additive

sys.path.insert(0, str(Path(__file__).parents[1] / "export"))
from databases import DATABASES, MISSING

from tiers import TIER

ROWS = 300 if TIER == "quick" else 100_000
RUNS = DATABASES + [
    pytest.param(run, marks=pytest.mark.skip(reason=reason)) for run, reason in MISSING.items() if TIER != "quick"
]
TYPES = {"age": "DOUBLE PRECISION", "income": "DOUBLE PRECISION", "city": "VARCHAR(20)"}


def carded(**options):
    clf, rows, y = trained("f1")
    return clf.scorecard(rows, y, **options)


def cells(rows):
    """Return rows for a database, where NaN is NULL."""
    plain = rows.astype(object).where(rows.notna(), None)
    return plain.values.tolist()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("pdo", [20, -3])
def test_sql_gives_the_same_integers(run, pdo):
    card, rows = carded(pdo=pdo), strange_rows(ROWS)
    statement = to_sql(card, "loans", keep=["age"])
    found = run(statement, "loans", list(rows.columns), cells(rows), [TYPES[name] for name in rows.columns])
    assert np.array_equal(found["points"], card.predict(rows))
    assert np.array_equal(np.array(found["prediction"], dtype=bool), card.predict_class(rows))


def test_sql_reads_a_frame_in_duckdb_where_missing_numbers_are_not_null():
    duckdb = pytest.importorskip("duckdb")
    card, rows = carded(), strange_rows(ROWS)
    rows.loc[:5, "income"] = np.inf
    with duckdb.connect(":memory:") as connection:
        connection.register("loans", rows)
        found = connection.execute(to_sql(card, "loans")).fetchnumpy()
    assert np.array_equal(found["points"], card.predict(rows))


def test_sql_of_infinite_and_edge_values():
    card = carded()
    rows = strange_rows(60)
    edges = next(column.bins.values for column in card.columns if column.name == "income")
    rows.loc[: len(edges) - 1, "income"] = edges
    rows.loc[40:45, "income"] = np.inf
    rows.loc[46:50, "income"] = -np.inf
    found = DATABASES[0](
        to_sql(card, "t"), "t", list(rows.columns), cells(rows), [TYPES[name] for name in rows.columns]
    )
    assert np.array_equal(found["points"], card.predict(rows))


def test_onnx_gives_the_same_integers():
    onnxruntime = pytest.importorskip("onnxruntime")
    card, rows = carded(), strange_rows(ROWS)
    session = onnxruntime.InferenceSession(to_onnx(card).SerializeToString())
    text = rows["city"].where(rows["city"].notna(), "").astype(str).to_numpy(dtype=object)
    inputs = {name: rows[name].to_numpy(dtype=np.float64)[:, None] for name in ("age", "income")} | {
        "city": text[:, None]
    }
    points, prediction = session.run(["points", "prediction"], inputs)
    assert np.array_equal(points, card.predict(rows))
    assert np.array_equal(prediction, card.predict_class(rows))


def test_the_python_file_gives_the_same_integers(tmp_path):
    card, rows = carded(), strange_rows(ROWS)
    to_python(card, tmp_path / "card.py")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    command = [sys.executable, "-I", "-S", str(tmp_path / "card.py"), str(tmp_path / "rows.csv")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert np.array_equal(np.array(found, dtype=int), card.predict(rows))
    scope = {"__name__": "card"}
    exec((tmp_path / "card.py").read_text(), scope)
    record = rows.iloc[0].to_dict()
    assert scope["points"](record) == card.predict(rows.iloc[:1])[0]
    assert scope["predict"](record) == card.predict_class(rows.iloc[:1])[0]


def test_columns_of_numbers_that_are_categories_and_classes_of_text(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 400), rng.normal(size=400)]).astype(float)
    y = np.where((X[:, 0] == 2) + X[:, 1] > 0.5, "it's", "no")
    clf = MeasureClassifier("roc_auc", features=Additive(categories=[0]), alpha=0.01).fit(X, y)
    card = clf.scorecard(X, y)
    new = np.vstack([X[:50], [[7.0, 0.0], [np.nan, np.nan], [2.0, np.inf]]])
    values = [[None if value != value else value for value in row] for row in new.tolist()]
    found = DATABASES[0](to_sql(card, "t"), "t", ["x0", "x1"], values)
    assert np.array_equal(found["points"], card.predict(new))
    assert found["prediction"] == card.predict_class(new).tolist()
    scope = {"__name__": "card"}
    exec(to_python(card), scope)
    assert [scope["points"]({"x0": a, "x1": b}) for a, b in new.tolist()] == card.predict(new).tolist()
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(card).SerializeToString())
    inputs = {column.name: new[:, [column.position]] for column in card.columns}
    points, prediction = session.run(["points", "prediction"], inputs)
    assert np.array_equal(points, card.predict(new))
    assert prediction.tolist() == card.predict_class(new).tolist()
    assert to_json(card, tmp_path / "card.json")["format"] == "scoreline scorecard"


def test_wrong_names_are_refused():
    card = carded()
    with pytest.raises(ValueError, match="has the name of a column"):
        to_sql(card, "t", outputs=["age", "class"])
    with pytest.raises(ValueError, match="two different names"):
        to_sql(card, "t", outputs=["a", "b", "c"])
    assert '"p", ' not in to_sql(card, "t", outputs=["p", "c"], keep=[])
