"""Wrong use: the right exit code, a message that names what is wrong, and nothing written."""

import os
import re

import pytest

from cases import for_each

TRAIN = ("train", "payments.csv", "--label", "outcome")
COMPARE = ("compare", "payments.csv", "--label", "outcome")

USAGE = [
    (("trian",), "did you mean train?"),
    (("train",), "file"),
    ((*TRAIN, "--mesure", "f1"), "did you mean --measure?"),
    ((*TRAIN, "--measure", "f11"), "Did you mean 'f1'?"),
    ((*TRAIN, "--solver", "smothed"), "Did you mean 'smoothed'?"),
    ((*TRAIN, "--measure", "mcc", "--solver", "moments"), "does not train for measure 'mcc'"),
    ((*TRAIN, "--measure", "f1", "--measure-param", "beta=2"), "takes none"),
    ((*TRAIN, "--solver", "moments", "--checkpoint", "m.ckpt"), "the solver moments does not support checkpoints"),
    ((*TRAIN, "--device", "gpu"), "--device gpu is not known"),
    ((*TRAIN, "--device", "cuda", "--dask", "local"), "leave one out"),
    ((*TRAIN, "--device", "cuda", "--measure", "gmean", "--solver", "spade"), "reads rows one by one on the host"),
    ((*TRAIN, "--measure-param", "beta"), "NAME=VALUE"),
    ((*TRAIN, "--measure", "fbeta", "--measure-param", "beta=x"), "greater than 0"),
    ((*TRAIN, "--measure", "recall_at_precision", "--measure-param", "precision=90"), "at most 1, got 90. Did you mean 0.9?"),
    ((*TRAIN, "--scaling", "foo"), "maxabs"),
    ((*TRAIN, "--out", "payments.csv"), "is also the file"),
    ((*TRAIN, "--out", "./payments.csv"), "is also the file"),
    ((*TRAIN, "--test", "today.csv", "--out", "today.csv"), "is also the test"),
    ((*TRAIN, "--report", "model.npz"), "is also --out"),
    ((*TRAIN, "--checkpoint", "model.npz"), "is also --out"),
    (("predict", "damaged.npz", "today.csv", "--out", "today.csv"), "is also the file"),
    (("convert", "payments.csv", "payments.csv", "--label", "outcome", "--overwrite"), "is also the file"),
    ((*COMPARE, "--solvers", "amp,foo"), "--solvers foo is unknown"),
    ((*COMPARE, "--test-share", "1"), "below 1"),
    (("reproduce", "zhang2010"), "is not a command"),
    (("--completion", "fish"), "bash"),
    *(((*TRAIN, option, value), option) for option in ("--alpha", "--tol", "--max-time") for value in ("-1", "0", "nan", "x")),
    *(((*TRAIN, option, value), option) for option, value in (("--max-iter", "0"), ("--max-iter", "1.5"), ("--seed", "-1"))),
    *(((*COMPARE, "--splits", value), "--splits") for value in ("1", "-1", "x")),
    *(((*COMPARE, "--alphas", value), "--alphas") for value in ("x", "-1", ",", "1e-2,nan")),
    *(((*COMPARE, "--test-share", value), "--test-share") for value in ("0", "nan", "-0.3")),
    *(((*COMPARE, "--max-rows", value), "--max-rows") for value in ("0", "-3", "7")),
]  # fmt: skip

FAILURES = [
    (("train", "nofile.csv", "--label", "y"), "nofile.csv does not exist"),
    (("train", ".", "--label", "y"), "folder without header.json"),
    (("train", os.devnull), "is not a regular file"),
    (("train", "payments.csv", "--label", "outcom"), "Did you mean 'outcome'"),
    (("train", "payments.csv"), "expected the column of labels"),
    ((*TRAIN, "--drop", "amuont"), "amount"),
    ((*TRAIN, "--positive", "froud"), "which has 'fine', 'fraud'"),
    (("train", "one.csv", "--label", "y"), "one class only (x)"),
    (("train", "three.csv", "--label", "y"), "name the positive class with --positive"),
    (("compare", "three.csv", "--label", "y"), "name the positive class with --positive"),
    (("train", "empty.csv", "--label", "y"), "empty.csv is empty"),
    (("train", "empty.svm"), "holds no rows"),
    (("info", "head.csv", "--label", "y"), "no rows"),
    (("info", "demo:digit"), "Did you mean 'digits'?"),
    (("info", "damaged.npz"), "damaged"),
    (("predict", "damaged.npz", "today.csv"), "damaged"),
    (("predict", "today.csv", "today.csv"), "not a scoreline model"),
    (("predict", "nofile.npz", "today.csv"), "nofile.npz: No such file"),
    (("predict", ".", "today.csv"), "directory"),
    ((*TRAIN, "--out", "no/m.npz"), "does not exist; create it first"),
    ((*TRAIN, "--out", "."), "is a folder"),
    ((*TRAIN, "--report", "no/m.html"), "does not exist; create it first"),
    ((*TRAIN, "--checkpoint", "no/m.ck"), "does not exist; create it first"),
    ((*TRAIN, "--test", "no.csv"), "no.csv does not exist"),
    ((*TRAIN, "--test", "one.csv"), "'amount', 'night', 'country' are not there"),
    (("train", "three.csv", "--label", "y", "--positive", "x", "--test", "one.csv"), "expected both"),
    (("train", "pair.csv", "--label", "y", "--test", "three.csv"), "has the label 'w' in row 3"),
    ((*COMPARE, "--report", "no/r.html"), "does not exist; create it first"),
    ((*COMPARE, "--test-share", "0.001"), "change --test-share"),
    (("compare", "pair.csv", "--label", "y"), "at least four rows of each class"),
    (("convert", "nofile.csv", "x"), "error: nofile.csv does not exist"),
    (("train", "ragged.csv", "--label", "y"), "or pass --separator"),
    (("train", "semicolon.csv", "--label", "y"), "pass --separator ';'?"),
    (("train", "gaps.csv", "--label", "y", "--impute", "none"), "--impute mean, the default, takes"),
    (("train", "slip.csv", "--label", "y"), "pass --missing O if it stands"),
    (("train", "days.csv", "--label", "y"), "--drop day"),
    (("train", "two.svm", "--drop", "a,b"), "--drop a,b does not go with LIBSVM text, which takes --zero-based"),
    (("train", "payments.csv", "--zero-based", "--label", "outcome"), "--zero-based is for LIBSVM text"),
    (("train", "zero.svm", "--no-zero-based"), "leave --no-zero-based out"),
    (("train", "two.svm", "--test", "wide.svm"), "index 99, a model of 6 features is too small for it"),
    (("convert", "payments.csv", "no/x", "--label", "outcome"), "create it first"),
    (("convert", "payments.csv", "today.csv", "--label", "outcome"), "--overwrite"),
    (("convert", "payments.csv", "today.csv", "--label", "outcome", "--overwrite"), "is a file, which is not replaced"),
]


@pytest.fixture
def odd_files(folder):
    (folder / "empty.csv").touch()
    (folder / "empty.svm").touch()
    (folder / "head.csv").write_text("a,y\n")
    (folder / "one.csv").write_text("a,y\n1,x\n2,x\n")
    (folder / "pair.csv").write_text("a,y\n1,x\n2,z\n")
    (folder / "three.csv").write_text("a,y\n1,x\n2,z\n3,w\n")
    (folder / "ragged.csv").write_text("a,y\n1,x\n2,z,3\n")
    (folder / "semicolon.csv").write_text("a;y\n1;x\n2;z\n")
    (folder / "gaps.csv").write_text("a,y\n1,x\n,z\n")
    (folder / "slip.csv").write_text("a,y\n" + "".join(f"{k},x\n" for k in range(20)) + "O,z\n")
    (folder / "days.csv").write_text("day,y\n2024-01-01,x\n2024-01-02,z\n")
    (folder / "zero.svm").write_text("1 0:1\n-1 1:1\n")
    (folder / "wide.svm").write_text("1 99:1\n-1 1:1\n")
    (folder / "damaged.npz").write_bytes(b"PK\x03\x04 no archive")
    return folder


def state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@for_each(("arguments", "words"), USAGE)
def test_wrong_usage(odd_files, scoreline, arguments, words):
    before = state(odd_files)
    code, out, err = scoreline(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("scoreline: error: ")
    assert state(odd_files) == before


@for_each(("arguments", "words"), FAILURES)
def test_failures(odd_files, scoreline, arguments, words):
    before = state(odd_files)
    code, out, err = scoreline(*arguments)
    assert (code, out) == (1, "")
    assert words in err
    assert err.splitlines()[-1].startswith("scoreline: error: ")
    assert "np." not in err
    assert not re.search(r"(?<![-\w./'])[a-z_]+=", err)  # arguments of Python
    assert state(odd_files) == before


def test_a_model_meets_other_data(scoreline, folder):
    scoreline(*TRAIN, "--positive", "fraud")
    text = [line.split(",") for line in (folder / "today.csv").read_text().splitlines()]
    (folder / "less.csv").write_text("\n".join(",".join(line[1:]) for line in text) + "\n")
    (folder / "other.csv").write_text("\n".join(",".join(line).replace("fine", "good") for line in text) + "\n")
    (folder / "same.csv").write_text("\n".join(",".join(line).replace("fraud", "fine") for line in text) + "\n")
    for command in ("predict", "evaluate"):
        assert "'amount' are not there" in scoreline(command, "model.npz", "less.csv")[2]
        assert scoreline(command, "model.npz", "two.svm")[0] == 1
    assert "the model knows 'fine' and 'fraud'" in scoreline("evaluate", "model.npz", "other.csv")[2]
    assert "one class only" in scoreline("evaluate", "model.npz", "same.csv")[2]


def test_a_failed_training_keeps_the_old_model(scoreline, folder):
    (folder / "model.npz").write_text("old")
    assert scoreline(*TRAIN, "--test", "no.csv")[0] == 1
    assert (folder / "model.npz").read_text() == "old"
