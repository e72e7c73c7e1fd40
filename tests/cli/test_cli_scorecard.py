"""scoreline scorecard and scoreline monitor: what they write and say."""

import csv
import json
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from cases import for_each
from scoreline.classifier import load_model
from scoreline.scorecards import Scorecard


def write_loans(path, rows, seed, homes=("own", "rent", "family"), shift=0.0):
    """Write loans with a monotone income that is sometimes missing, and a category that looks like numbers."""
    rng = np.random.default_rng(seed)
    age, income, home = rng.integers(18, 80, rows), rng.lognormal(3 + shift, 1, rows).round(2), rng.choice(homes, rows)
    odds = 1.0 - age / 25 - 0.8 * (np.log(income) - 3) + (home == "rent") + rng.logistic(0, 1, rows)
    lines = [
        f"{a},{'' if rng.random() < 0.1 else i},{h},{'bad' if o > 0 else 'good'}"
        for a, i, h, o in zip(age, income, home, odds, strict=True)
    ]
    path.write_text("age,income,home,outcome\n" + "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    place = tmp_path_factory.mktemp("loans")
    write_loans(place / "loans.csv", 500, 0)
    write_loans(place / "new.csv", 300, 1, ("own", "rent", "boat"), shift=1.0)
    return place


@pytest.fixture
def made(loans, scoreline, tmp_path, monkeypatch):
    """A working folder with the files, and a card in all formats."""
    monkeypatch.chdir(tmp_path)
    for name in ("loans.csv", "new.csv"):
        (tmp_path / name).write_bytes((loans / name).read_bytes())
    outputs = [
        part for suffix in ("html", "md", "tex", "csv", "json", "sql", "py") for part in ("--out", f"card.{suffix}")
    ]
    options = ("--label", "outcome", "--alpha", "0.05", "--monotone", "income:-", "--table", "loans")
    code, out, err = scoreline("scorecard", "loans.csv", *options, "--positive", "bad", "--test", "new.csv", *outputs)
    assert code == 0, err
    return tmp_path, out, err


def test_every_format_has_the_same_card(made):
    folder, out, err = made
    card = Scorecard.from_json(folder / "card.json")
    assert card.classes == ("good", "bad")
    assert "filled with the mean" not in err, "missing values have a line of their own"
    assert "roc_auc of the card on new.csv" in out
    assert card.reference["evaluated_on"] == "test rows"
    income = next(column for column in card.columns if column.name == "income")
    assert (np.diff(income.points[1:]) >= 0).all()
    assert income.lines[-1].label == "missing"
    assert income.lines[-1].rows > 20
    assert (folder / "card.md").read_text() == card.to_markdown()
    assert (folder / "card.tex").read_text() == card.to_latex()
    assert (folder / "card.csv").read_text() == card.to_csv()
    assert "<title>Scorecard</title>" in (folder / "card.html").read_text()
    with open(folder / "new.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "card.py", "new.csv"], capture_output=True, text=True, check=True
    )
    points = [int(line) for line in done.stdout.split()]
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE loans (age REAL, income REAL, home TEXT)")
        values = [(float(row["age"]), float(row["income"]) if row["income"] else None, row["home"]) for row in rows]
        connection.executemany("INSERT INTO loans VALUES (?, ?, ?)", values)
        found = connection.execute((folder / "card.sql").read_text().strip().rstrip(";")).fetchall()
    assert [row[-2] for row in found] == points
    expected = ["bad" if score > 0 else "good" for score in card.decision(points).tolist()]
    assert [row[-1] for row in found] == expected


def test_the_path_is_printed(made, scoreline):
    options = ("--label", "outcome", "--alpha", "0.05", "--max-features", "2", "--json", "--edges", "age:30,50")
    code, out, _ = scoreline("scorecard", "loans.csv", *options)
    assert code == 0
    answer = json.loads(out)
    assert len(answer["columns"]) == 2
    assert answer["out"] == ["card.html"]
    assert [len(step["columns"]) for step in answer["path"]][-1] >= 2
    assert all(step["lower_bound"] <= step["objective"] for step in answer["path"])
    code, out, _ = scoreline("scorecard", "loans.csv", *options[:-3], "--edges", "age:30,50", "--pdo=-20")
    assert "lower bound" in out
    assert "entering" in out


def test_alpha_is_chosen_and_other_files_are_read(folder, scoreline):
    code, out, err = scoreline("scorecard", "two.svm", "--out", "card.json", "--max-features", "3", "--test", "two.svm")
    assert code == 0, err
    assert "card: 3 columns" in out
    code, out, err = scoreline("monitor", "card.json", "two.svm")
    assert code == 0, err
    assert "stable" in out
    assert "no clear change" in out


@for_each("model", ["card.json", "model.npz"])
def test_drift_is_found_and_the_measure_compared(made, scoreline, model):
    scoreline("train", "loans.csv", "--label", "outcome", "--positive", "bad", "--test", "new.csv", "--quiet")
    code, out, err = scoreline("monitor", model, "new.csv", "--label", "outcome", "--positive", "bad", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["changed"][0] == "home"
    assert answer["columns"]["income"] > 0.25
    assert answer["columns"]["age"] < 0.2
    assert answer["rows"] == 300
    assert answer["reference_rows"] == 500
    assert answer["value"] == pytest.approx(answer["expected"]), "the measure was taken on the same rows"
    assert answer["verdict"] == "no clear change"
    code, out, _ = scoreline("monitor", model, "loans.csv", "--label", "outcome")
    assert code == 0
    assert "changed" not in out
    assert out.count("stable") == 4


def test_rows_without_labels_have_no_measure(made, scoreline):
    folder = made[0]
    lines = [line.rpartition(",")[0] for line in (folder / "new.csv").read_text().splitlines()]
    (folder / "plain.csv").write_text("\n".join(lines) + "\n")
    code, out, _ = scoreline("monitor", "card.json", "plain.csv")
    assert code == 0
    assert "roc_auc" not in out


def test_the_reference_of_training_keeps_missing_values(made, scoreline):
    scoreline("train", "loans.csv", "--label", "outcome", "--quiet", "--out", "model.npz")
    reference = load_model("model.npz").reference_
    assert [column.name for column in reference.columns] == ["age", "income", "home"]
    assert reference.counts[1][0] > 20
    assert reference.evaluated_on == "the training rows"
    assert reference.measure[1] < reference.measure[0] < reference.measure[2]


@for_each(
    ("arguments", "words"),
    [
        (("--out", "card.pdf"), "the suffix chooses the format"),
        (("--out", "card.sql"), "--table NAME"),
        (("--table", "t"), "--table is for a file that ends in .sql"),
        (("--out", "a.md", "--out", "a.md"), "names a file twice"),
        (("--pdo", "0"), "--pdo 0"),
        (("--min-share", "0.7"), "at most 0.5"),
        (("--edges", "age"), "COLUMN:EDGE,EDGE"),
        (("--edges", "age:a,b"), "COLUMN:EDGE,EDGE"),
        (("--monotone", "income"), "COLUMN:-"),
        (("--measure", "auc"), "roc_auc"),
    ],
)
def test_wrong_use_is_refused(made, scoreline, arguments, words):
    code, _, err = scoreline("scorecard", "loans.csv", "--label", "outcome", *arguments)
    assert code == 2
    assert words in err


def test_what_is_no_card_is_refused(made, scoreline):
    folder = made[0]
    (folder / "other.json").write_text('{"format": "scoreline scorecard", "version": 1}')
    (folder / "broken.json").write_text("{")
    for name, words in (
        ("other.json", "is no scorecard"),
        ("broken.json", "is no scorecard"),
        ("none.json", "No such file"),
    ):
        code, _, err = scoreline("monitor", name, "new.csv")
        assert code == 1
        assert words in err
    scoreline("train", "loans.csv", "--label", "outcome", "--quiet")
    clf = load_model("model.npz")
    clf.reference_ = None
    clf.save("old.npz")
    code, _, err = scoreline("monitor", "old.npz", "new.csv")
    assert code == 1
    assert "does not know its training rows" in err
