"""scoreline export: what it writes says of raw tables what scoreline predict says."""

import csv
import json
import sqlite3
import sys

import numpy as np
import onnx
import onnxruntime

from cases import for_each
from scoreline.classifier import load_model
from scoreline.io import read_data


def load_csv(connection, path, table, types, missing=()):
    """Put a CSV file into a table: empty cells are NULL, and so are texts for missing values where numbers are expected."""
    with open(path, newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    kinds = [types.get(name, "TEXT") for name in head]
    quoted = ['"' + name.replace('"', '""') + '"' for name in head]
    declared = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, kinds, strict=True))
    connection.execute(f'CREATE TABLE "{table}" ({declared})')
    values = [
        [
            None if cell == "" or (kind == "REAL" and cell in missing) else cell
            for cell, kind in zip(row, kinds, strict=True)
        ]
        for row in lines
    ]
    connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(head))})', values)


def check_sql(scoreline, model, path, types, missing=(), table="today"):
    """The statement on the raw table gives the classes and scores of `scoreline predict`."""
    code, statement, err = scoreline("export", model, "--to", "sql", "--table", table)
    assert (code, err) == (0, "")
    code, out, _ = scoreline("predict", model, path)
    assert code == 0
    expected = list(csv.DictReader(out.splitlines()))
    with sqlite3.connect(":memory:") as connection:
        load_csv(connection, path, table, types, missing)
        cursor = connection.execute(statement)
        names = [each[0] for each in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor]
    scores = np.array([float(row["score"]) for row in expected])
    np.testing.assert_allclose([row["score"] for row in found], scores, rtol=0, atol=1e-13 * np.abs(scores).max())
    assert [str(row["prediction"]) for row in found] == [row["prediction"] for row in expected]


def test_sql_on_the_raw_table(scoreline, model):
    """Today has a country that training has not seen."""
    check_sql(scoreline, model, "today.csv", {"amount": "REAL", "night": "INTEGER"})


@for_each("impute", ["mean", "zero"])
def test_sql_with_categories_numbers_as_texts_and_missing_values(scoreline, folder, impute):
    rng = np.random.default_rng(0)

    def write(name, rows, codes):
        lines = ['amount,"it\'s ""odd""",code,flag,outcome']
        for _ in range(rows):
            amount = rng.choice([f"{rng.lognormal(3.0, 1.0):.2f}", "", "?"], p=[0.9, 0.05, 0.05])
            color, code = rng.choice(["red", "O'Hara", "a\\b", "", "?", "größe"]), rng.choice(codes)
            flag = rng.choice(["True", "false", "TRUE", ""])
            risky = (color == "red") + (code in ("3", "3.0")) + rng.standard_normal() > 1.0
            lines.append(f"{amount},{color},{code},{flag},{'yes' if risky else 'no'}")
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    write("train.csv", 300, ["3", "3.0", "1.50", "-0.0", "7"])
    write("new.csv", 100, ["3", "3.00", "1.5", "0", "8", "03", "1.5.0"])
    options = ("--impute", impute, "--missing", "?", "--categories", "code,flag", "--measure", "f1")
    assert scoreline("train", "train.csv", "--label", "outcome", *options)[0] == 0
    check_sql(scoreline, "model.npz", "new.csv", {"amount": "REAL"}, missing=("?",))


@for_each(("negative", "positive"), [("0", "1"), ("False", "True"), ("no", "yes"), ("0", "1.5")])
def test_labels_of_any_kind(scoreline, folder, negative, positive):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(60)
    lines = [f"{v},{positive if v + e > 0 else negative}" for v, e in zip(x, rng.standard_normal(60), strict=True)]
    (folder / "d.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    assert scoreline("train", "d.csv", "--label", "y", "--measure", "accuracy")[0] == 0
    clf = load_model("model.npz")
    assert scoreline("export", "model.npz", "--to", "onnx", "--out", "m.onnx", "--quiet") == (0, "", "")
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(["label"], {"x": x[:, None]})[0], clf.predict(x[:, None]))


def test_onnx_of_columns(scoreline, as_json, model):
    """The model takes the table as it is, also a country that training has not seen, and says so."""
    code, out, err = scoreline("export", model, "--to", "onnx", "--out", "m.onnx")
    assert (code, out) == (0, "")
    inputs = (
        "inputs of shape (rows, 1): amount (float64), night (float64), country (text); outputs: label, score, valid"
    )
    assert err == f"{inputs}\nonnx of 5 features in m.onnx\n"
    with open("today.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {
        name: np.array([[row[name]] for row in rows], dtype=object if name == "country" else np.float64)
        for name in ("amount", "country", "night")
    }
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    label, score = session.run(["label", "score"], columns)
    code, out, _ = scoreline("predict", model, "today.csv")
    expected = list(csv.DictReader(out.splitlines()))
    np.testing.assert_allclose(score, [float(row["score"]) for row in expected], rtol=1e-12)
    assert label.tolist() == [row["prediction"] for row in expected]
    assert as_json("export", model, "--to", "onnx", "--out", "n.onnx") == {
        "to": "onnx",
        "features": 5,
        "inputs": ["amount", "night", "country"],
        "outputs": ["label", "score", "valid"],
        "out": "n.onnx",
    }


def test_onnx_of_features(scoreline, model):
    code, _, err = scoreline("export", model, "--to", "onnx", "--out", "m.onnx", "--inputs", "features")
    assert code == 0
    assert "inputs of shape (rows, 5): X (float32)" in err
    clf = load_model(model)
    X = read_data("payments.csv", "outcome", encoding=clf.encoding_).X.astype(np.float32)
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    label, score = session.run(["label", "score"], {"X": X})
    np.testing.assert_allclose(score, clf.decision_function(X), rtol=0, atol=1e-12)
    assert np.array_equal(label, clf.predict(X))
    properties = {each.key: each.value for each in onnx.load("m.onnx").metadata_props}
    assert json.loads(properties["features"]) == clf.encoding_.names


def test_json_to_standard_output_and_to_a_file(scoreline, as_json, model, folder):
    code, out, err = scoreline("export", model, "--to", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert [column["name"] for column in document["columns"]] == ["amount", "night", "country"]
    assert document["classes"] == ["fine", "fraud"]
    assert scoreline("export", model, "--to", "json", "--out", "m.json", "--quiet") == (0, "", "")
    assert json.loads((folder / "m.json").read_text()) == document
    assert as_json("export", model, "--to", "json")["json"] == document


def test_sql_options(scoreline, as_json, model, folder):
    given = ("export", model, "--to", "sql", "--table", "sales.today", "--keep", "amount,night", "--dialect", "mysql")
    _, out, _ = scoreline(*given)
    assert "FROM `sales`.`today` AS src" in out
    assert out.startswith("SELECT scored.`amount`, scored.`night`, scored.`score`,")
    assert out.endswith(";\n")
    assert as_json(*given)["sql"] + ";\n" == out
    assert scoreline(*given, "--out", "s.sql", "--quiet") == (0, "", "")
    assert (folder / "s.sql").read_text() == out


@for_each(
    ("arguments", "code", "words"),
    [
        (("--to", "onnx"), 2, "name a file with --out"),
        (("--to", "sql"), 2, "--table NAME"),
        (("--to", "json", "--table", "t"), 2, "--table is for --to sql, not for --to json"),
        (("--to", "sql", "--table", "t", "--dtype", "float64"), 2, "--dtype is for --to onnx"),
        (("--to", "pmml"), 2, "'onnx'"),
        ((), 2, "--to"),
        (("--to", "json", "--out", "model.npz"), 2, "is also the model"),
        (("--to", "json", "--out", "no/m.json"), 1, "does not exist; create it first"),
        (("--to", "sql", "--table", "a..b"), 1, "a name is empty"),
        (("--to", "sql", "--table", "t", "--keep", "score"), 1, "'score' has the name of a column"),
    ],
)
def test_wrong_use(scoreline, model, folder, arguments, code, words):
    before = sorted(path.name for path in folder.iterdir())
    got, out, err = scoreline("export", model, *arguments)
    assert (got, out) == (code, "")
    assert words in err
    assert err.startswith("scoreline: error: ")
    assert sorted(path.name for path in folder.iterdir()) == before


def test_what_is_no_model(scoreline):
    assert "No such file" in scoreline("export", "no.npz", "--to", "json")[2]
    assert scoreline("export", "payments.csv", "--to", "json")[0] == 1


def test_without_onnx_the_install_line(scoreline, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    code, _, err = scoreline("export", model, "--to", "onnx", "--out", "m.onnx")
    assert code == 1
    assert "pip install 'scoreline[onnx]'" in err
