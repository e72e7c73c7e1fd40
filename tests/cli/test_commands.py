"""Every command does what its help says: text for people, one JSON object for programs, files where they were asked for."""

import csv
import sys

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from cases import for_each
from scoreline.classifier import load_model
from scoreline.cli.parser import COMMANDS
from scoreline.io import read_data
from tiers import TIER

TRAIN = ("train", "payments.csv", "--label", "outcome", "--positive", "fraud")


@for_each("command", COMMANDS)
def test_help_has_examples_of_the_command(scoreline, command):
    code, out, _ = scoreline(command, "--help")
    assert code == 0
    assert f"\n  scoreline {command} " in out


def test_every_example_of_the_help_is_a_valid_command_line():
    import importlib
    import shlex

    from scoreline.cli.parser import EPILOG, parse

    texts = [EPILOG, *(importlib.import_module(f"scoreline.cli.{command}").EXAMPLES for command in COMMANDS)]
    lines = [line.split(">")[0] for text in texts for line in text.splitlines() if line.startswith("  scoreline ")]
    assert len(lines) > 15
    for line in lines:
        options, _ = parse(shlex.split(line)[1:])
        assert options.run


def test_without_a_verb_it_prints_help(scoreline):
    code, out, err = scoreline()
    assert (code, out) == (2, "")
    assert "exit codes" in err


def test_version_and_completion(scoreline):
    from scoreline import __version__

    assert scoreline("--version") == (0, f"scoreline {__version__}\n", "")
    code, out, _ = scoreline("--completion", "bash")
    assert code == 0
    assert all(command in out for command in COMMANDS)
    assert "--measure-param" in out


def test_info_of_data(scoreline, as_json):
    _, out, err = scoreline("info", "payments.csv", "--label", "outcome")
    assert "fraud" in out
    assert err == ""
    found = as_json("info", "payments.csv", "--label", "outcome")
    labels = read_data("payments.csv", "outcome").y
    assert found["rows"] == 300
    assert found["positives"] == np.count_nonzero(labels == "fraud")


def test_info_of_libsvm_text(as_json):
    found = as_json("info", "two.svm")
    assert (found["rows"], found["features"]) == (200, 6)
    assert found["stored"] == read_data("two.svm").X.nnz


def test_train_saves_what_it_says(as_json, model):
    found = as_json(*TRAIN, "--measure", "average_precision", "--out", "ap.npz", "--test", "today.csv")
    clf = load_model("ap.npz")
    assert found["objective"] == clf.objective_
    assert found["lower_bound"] <= found["objective"]
    assert "country" in found["warnings"][0]  # CH is new
    today = read_data("today.csv", "outcome", encoding=clf.encoding_)
    assert found["test"] == pytest.approx(average_precision_score(today.y == "fraud", clf.decision_function(today.X)))


def test_info_of_a_model_has_numbers(scoreline, as_json, model):
    assert "certificate" in scoreline("info", model)[1]
    found = as_json("info", model)
    assert (found["features"], found["alpha"], found["classes"]) == (5, 1e-4, ["fine", "fraud"])


def test_predict(scoreline, as_json, model, folder):
    clf = load_model(model)
    expected = clf.decision_function(read_data("today.csv", encoding=clf.encoding_).X)
    _, out, err = scoreline("predict", model, "today.csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert [float(row["score"]) for row in rows] == expected.tolist()
    assert [row["prediction"] for row in rows] == ["fraud" if score > 0 else "fine" for score in expected]
    assert "unseen" in err
    assert scoreline("predict", model, "today.csv", "--out", "p.csv", "--quiet") == (0, "", "")
    assert (folder / "p.csv").read_text() == out
    assert as_json("predict", model, "today.csv")["scores"] == expected.tolist()
    (folder / "p.csv").unlink()
    assert as_json("predict", model, "today.csv", "--out", "p.csv")["out"] == "p.csv"
    assert (folder / "p.csv").read_text() == out


def test_predict_does_not_need_labels(scoreline, model, folder):
    text = (folder / "today.csv").read_text().splitlines()
    (folder / "bare.csv").write_text("\n".join(line.rpartition(",")[0] for line in text) + "\n")
    assert scoreline("predict", model, "bare.csv")[1] == scoreline("predict", model, "today.csv")[1]


def test_evaluate_counts(as_json, model):
    found = as_json("evaluate", model, "today.csv")
    clf = load_model(model)
    today = read_data("today.csv", "outcome", encoding=clf.encoding_)
    truth, called = today.y == "fraud", clf.decision_function(today.X) > 0
    pairs = {"tp": truth & called, "fp": ~truth & called, "fn": truth & ~called, "tn": ~truth & ~called}
    assert found["counts"] == {name: int(np.sum(rows)) for name, rows in pairs.items()}
    assert found["values"]["accuracy"] == pytest.approx(np.mean(truth == called))
    assert list(found["values"])[:3] == [clf.measure, "precision", "recall"]
    assert found["values"]["precision"] == pytest.approx(truth[called].mean())
    assert found["values"]["recall"] == pytest.approx(called[truth].mean())
    assert found["flagged"] == called.sum()


POINTS = [
    ("recall_at_precision", "precision=0.97", "recall at precision >= 0.97"),
    ("tpr_at_fpr", "fpr=0.02", "tpr at fpr <= 0.02"),
    ("precision_at_recall", "recall=0.3", "precision at recall >= 0.3"),
]


@for_each(("measure", "param", "label"), POINTS[: 1 if TIER == "quick" else None])
def test_operating_points_state_their_target(scoreline, as_json, folder, measure, param, label):
    options = ("--label", "outcome", "--positive", "fraud", "--measure", measure, "--measure-param", param)
    assert scoreline("train", "payments.csv", *options, "--out", "point.npz", "--report", "point.html")[0] == 0
    assert label.replace("<", "&lt;").replace(">", "&gt;") in (folder / "point.html").read_text()
    out = scoreline("evaluate", "point.npz", "today.csv")[1]
    lines = out.splitlines()
    assert lines[0].startswith(f"{label} (trained for): ")
    assert [line.split()[0] for line in lines[3:5]] == ["precision", "recall"]
    assert "rows flagged" in lines[5]
    found = as_json("evaluate", "point.npz", "today.csv")
    assert (found["target"], found["labels"][measure]) == (label, label)
    limit = float(param.partition("=")[2])
    tp, fp, fn, tn = found["counts"].values()
    values = {"recall_at_precision": (tp, tp + fp), "precision_at_recall": (tp, tp + fn), "tpr_at_fpr": (fp, fp + tn)}
    hits, total = values[measure]
    met = hits <= limit * total if measure == "tpr_at_fpr" else total > 0 and hits >= limit * total
    assert ("the target is missed" in out) == (not met)
    shown = as_json("info", "point.npz")
    assert (shown["target"], shown["measure"]) == (label, measure)
    assert shown["threshold"] == -load_model("point.npz").intercept_[0]
    assert label in scoreline("info", "point.npz")[1]


def test_training_says_that_the_target_is_missed(scoreline):
    target = ("--measure", "recall_at_precision", "--measure-param", "precision=1")
    out = scoreline("train", "payments.csv", "--label", "outcome", "--positive", "fraud", *target)[1]
    missed = [k for k, line in enumerate(out.splitlines()) if line.startswith("The target is missed: precision >= 1 ")]
    saved = [k for k, line in enumerate(out.splitlines()) if line.startswith("saved in ")]
    assert missed < saved


@for_each("positive", [(), ("--positive", "fraud")])
def test_a_converted_folder_serves_every_command(scoreline, as_json, model, positive):
    made = as_json("convert", "payments.csv", "payments", "--label", "outcome", *positive, "--overwrite")
    assert made["rows"] == 300
    assert as_json("info", "payments")["rows"] == 300
    assert as_json("train", "payments", "--out", "p.npz")["objective"] == load_model(model).objective_
    assert scoreline("predict", "p.npz", "payments")[0] == 0
    direct = as_json("evaluate", model, "payments.csv")
    assert as_json("evaluate", "p.npz", "payments")["counts"] == direct["counts"]
    assert as_json("evaluate", model, "payments")["counts"] == direct["counts"]
    assert as_json("evaluate", "p.npz", "payments.csv", "--positive", "fraud")["counts"] == direct["counts"]
    assert as_json("compare", "payments", "--splits", 2, "--alphas", "1e-3")["splits"] == 2
    assert scoreline("convert", "payments.csv", "payments", "--label", "outcome")[0] == 1
    assert scoreline("convert", "payments.csv", "payments", "--label", "outcome", "--overwrite", "--float32")[0] == 0


def test_a_folder_with_other_columns_is_refused(scoreline, model):
    scoreline("convert", "payments.csv", "less", "--label", "outcome", "--drop", "amount")
    code, _, err = scoreline("predict", model, "less")
    assert code == 1
    assert "other features" in err


def test_libsvm_text_through_all_commands(scoreline, as_json):
    train = as_json("train", "two.svm", "--measure", "f1", "--test", "two.svm", "--out", "two.npz")
    assert train["train"] == train["test"] == pytest.approx(as_json("evaluate", "two.npz", "two.svm")["values"]["f1"])
    predicted = {line.partition(",")[0] for line in scoreline("predict", "two.npz", "two.svm")[1].splitlines()[1:]}
    assert predicted == {"-1", "1"}


@for_each(
    ("negative", "positive"), [("0", "1"), ("False", "True"), ("no", "yes"), ("0.0", "1.0"), ("0", "1.5"), ("-1", "1")]
)
def test_labels_of_any_kind(scoreline, as_json, folder, negative, positive):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(60)
    lines = [f"{v},{positive if v + e > 0 else negative}" for v, e in zip(x, rng.standard_normal(60), strict=True)]
    (folder / "d.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    trained = as_json("train", "d.csv", "--label", "y", "--test", "d.csv", "--measure", "accuracy")
    found = as_json("evaluate", "model.npz", "d.csv")
    assert found["values"]["accuracy"] == pytest.approx(trained["test"])
    assert trained["train"] == trained["test"]


def test_measure_parameters(as_json):
    two = as_json(*TRAIN, "--measure", "fbeta", "--measure-param", "beta=2")
    half = as_json(*TRAIN, "--measure", "fbeta", "--measure-param", "beta=0.5", "--out", "half.npz")
    assert load_model("model.npz").measure_params == {"beta": 2}
    assert two["train"] != half["train"]


def test_measures(scoreline, as_json):
    names = [info["name"] for info in as_json("measures")["measures"]]
    assert {"f1", "roc_auc"} <= set(names)
    assert all(f"  {name} " in scoreline("measures")[1] for name in names)
    assert {"moments", "amp"} <= {info["name"] for info in as_json("measures", "--solvers")["solvers"]}


@for_each("arguments", [("measures",), ("measures", "--solvers")])
def test_research_is_listed_last(scoreline, as_json, arguments):
    (listed,) = as_json(*arguments).values()
    usual, research = scoreline(*arguments)[1].split("\n\n  research ")
    assert [line.split()[0] for line in usual.splitlines()[1:]] == [i["name"] for i in listed if not i["research"]]
    assert [line.split()[0] for line in research.splitlines()[1:]] == [i["name"] for i in listed if i["research"]]


@for_each("name", ["breast-cancer", "digits"])
def test_built_in_data(as_json, name):
    assert as_json("train", f"demo:{name}", "--out", "d.npz")["train"] > 0.9
    assert as_json("evaluate", "d.npz", f"demo:{name}")["values"]["roc_auc"] > 0.9


@pytest.mark.slow
def test_pages_have_no_script_whatever_the_names_are(scoreline, folder):
    rng = np.random.default_rng(0)
    path = folder / "größe[bold].csv"
    lines = [
        f"{v},{'</td>rot' if v < 0.2 else 'grün'},{'schön' if v + e > 0 else '<b>'}"
        for v, e in rng.normal(size=(60, 2))
    ]
    path.write_text("<script>alert(1)</script> 日本,farbe,ergebnis\n" + "\n".join(lines) + "\n")
    given = (path.name, "--label", "ergebnis", "--report", "r.html")
    for arguments in (("train", *given), ("compare", *given, "--splits", 2, "--alphas", "1e-3")):
        code, _, _ = scoreline(*arguments)
        page = (folder / "r.html").read_text()
        assert code == 0
        assert "<script" not in page
        assert "日本" in page
        (folder / "r.html").unlink()


def test_quiet_leaves_results_only(scoreline):
    code, out, err = scoreline(*TRAIN, "--test", "today.csv", "--quiet")
    assert (code, err) == (0, "")
    assert "saved in model.npz" in out


def test_max_time_warns_and_saves(as_json):
    found = as_json(*TRAIN, "--max-iter", 1, "--tol", "1e-9", "--alpha", "1e-7")
    assert found["status"] == "max_iter"
    assert found["warnings"]
    assert load_model("model.npz").status_ == "max_iter"


def test_train_on_a_device(as_json):
    """By PyTorch's CPU, which stands for a GPU here: the objective of the host, within both gaps."""
    pytest.importorskip("torch")
    there, here = as_json(*TRAIN, "--device", "cpu", "--out", "there.npz"), as_json(*TRAIN)
    assert abs(there["objective"] - here["objective"]) <= there["gap"] + here["gap"]
    assert there["train"] == pytest.approx(here["train"], abs=0.01)


def test_train_on_a_device_without_its_library(scoreline, monkeypatch):
    for name in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = scoreline(*TRAIN, "--device", "cuda")
    assert code != 0
    assert out == ""
    assert "pip install 'scoreline[gpu]' torch" in err
