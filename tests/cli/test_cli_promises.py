"""Commands print the promise of a model, and test it on labelled rows."""

import numpy as np
import pandas as pd
import pytest

from scoreline import check_promise, load_model

PROMISED = ("--measure", "tpr_at_fpr", "--measure-param", "fpr=0.1", "--measure-param", "guarantee=0.9")
TRAIN = ("train", "many.csv", "--label", "outcome", *PROMISED, "--out", "model.npz", "--seed", "0")


def write(path, rows, seed, mistaken=0.0):
    """Write rows of one column; a share of the positives has the label of the negatives."""
    rng = np.random.default_rng(seed)
    value = rng.standard_normal(rows)
    bad = (value + 0.5 * rng.standard_normal(rows) > 0.8) & (rng.random(rows) >= mistaken)
    lines = [f"{v:.6f},{'bad' if b else 'good'}" for v, b in zip(value, bad, strict=True)]
    path.write_text("value,outcome\n" + "\n".join(lines) + "\n")


@pytest.fixture
def files(folder):
    write(folder / "many.csv", 1200, 0)
    write(folder / "new.csv", 600, 1)
    write(folder / "changed.csv", 600, 2, mistaken=0.9)
    return folder


def test_train_info_and_evaluate_print_the_promise(files, scoreline, as_json):
    found = as_json(*TRAIN, "--positive", "bad", "--report", "model.html")["promise"]
    promise = load_model(files / "model.npz").promise_
    assert found["holds"] is True
    assert (found["rows"], found["constraint"]) == (promise.rows, "false positive rate <= 0.1")
    assert str(promise).split(":")[0] in (files / "model.html").read_text().replace("&lt;", "<")
    assert as_json("info", "model.npz")["promise"] == found
    rows = ("new.csv", "--label", "outcome")
    evaluated = as_json("evaluate", "model.npz", *rows, "--positive", "bad")
    assert evaluated["promise"] == found
    assert evaluated["promise_test"]["broken"] is False
    for command in ((*TRAIN, "--positive", "bad"), ("info", "model.npz"), ("evaluate", "model.npz", *rows)):
        code, out, err = scoreline(*command)
        assert code == 0, err
        assert "promised by" in out + err, command


def test_monitor_tests_the_promise(files, scoreline, as_json):
    scoreline(*TRAIN, "--positive", "bad")
    for name, broken in (("new.csv", False), ("changed.csv", True)):
        found = as_json("monitor", "model.npz", name, "--label", "outcome", "--positive", "bad")["promise_test"]
        assert found["broken"] is broken, name
        _, out, _ = scoreline("monitor", "model.npz", name, "--label", "outcome", "--positive", "bad")
        assert ("promise tested on these rows: false positive rate <= 0.1: broken" in out) is broken
    clf = load_model(files / "model.npz")
    rows = pd.read_csv(files / "changed.csv")
    direct = check_promise(clf, rows[["value"]].to_numpy(), rows["outcome"])
    assert (direct.rows, direct.value) == (found["rows"], pytest.approx(found["value"]))


def test_a_promise_that_is_not_given_is_printed(files, scoreline):
    ask = (
        "--measure",
        "recall_at_precision",
        "--measure-param",
        "precision=0.999",
        "--measure-param",
        "guarantee=0.95",
    )
    code, out, err = scoreline(*TRAIN[:4], "--positive", "bad", *ask, "--out", "model.npz")
    assert code == 0, err
    assert "promise: precision >= 0.999 with probability 0.95: not promised" in out + err
    code, out, _ = scoreline("monitor", "model.npz", "new.csv", "--label", "outcome")
    assert "no row to test it on" in out
