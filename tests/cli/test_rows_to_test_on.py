"""Training rows and test rows from different kinds of files: tables, converted folders, arrays and text."""

import json
import shlex
import shutil

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier, load_model
from scoreline.cli.main import main
from scoreline.io import open_mapped, read_data

LABEL = ("--label", "outcome")


@pytest.fixture(scope="module")
def converted(written, tmp_path_factory):
    """Training folders with labels as text and with a positive class, and a test folder with an encoding of its own."""
    place = tmp_path_factory.mktemp("converted")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(written)
        for name, source, *options in (
            ("plain", "payments.csv"),
            ("marked", "payments.csv", "--positive", "fine"),
            ("other", "today.csv"),
        ):
            assert main(["convert", source, str(place / name), *LABEL, *options]) == 0
    return place


@pytest.fixture
def files(folder, converted):
    """The working folder with the converted folders."""
    return shutil.copytree(converted, folder, dirs_exist_ok=True)


def reached_by(as_json, *arguments):
    return as_json("train", *arguments)["test"]


def expected_test(**arguments):
    """Return the value of the measure on today.csv, by the library itself."""
    train = read_data("payments.csv", "outcome", **arguments)
    test = read_data("today.csv", "outcome", encoding=train.encoding, **arguments)
    return MeasureClassifier("roc_auc", scaling="standard", random_state=0).fit(train.X, train.y).score(test.X, test.y)


@pytest.mark.filterwarnings("ignore:today.csv. unseen categories")
@for_each("training", ["plain", "marked"])
def test_a_folder_tested_on_a_table_needs_no_option(files, as_json, training):
    expected = expected_test(**({"positive": "fine"} if training == "marked" else {}))
    assert reached_by(as_json, training, "--test", "today.csv") == pytest.approx(expected, abs=1e-9)
    assert reached_by(as_json, training, "--test", "today.csv", *LABEL) == pytest.approx(expected, abs=1e-9)


def test_options_are_for_the_test_table_if_a_folder_is_trained_on(files, as_json, scoreline):
    text = (files / "today.csv").read_text()
    (files / "renamed.csv").write_text(text.replace("outcome", "result", 1).replace(",", ";").replace("CH", "?"))
    expected = reached_by(as_json, "marked", "--test", "today.csv")
    given = ("--label", "result", "--separator", ";", "--missing", "?", "--positive", "fine")
    assert reached_by(as_json, "marked", "--test", "renamed.csv", *given) == pytest.approx(expected)
    code, _, err = scoreline("train", "marked", "--test", "today.csv", "--drop", "night")
    assert code == 1
    assert "--drop was chosen when marked was converted" in err
    code, _, err = scoreline("train", "marked", *LABEL)
    assert code == 1
    assert "--label was chosen when marked was converted" in err


@for_each("training", ["plain", "marked"])
def test_a_folder_tested_on_a_folder(files, converted, as_json, scoreline, training):
    shutil.copytree(converted / "other", files / "other", dirs_exist_ok=True)
    code, _, err = scoreline("train", training, "--test", "other")
    assert code == 1
    assert "other has other features than the model was trained with" in err
    command = shlex.split(err.partition("same encoding: ")[2])
    assert command == ["scoreline", "convert", "today.csv", "other", "--like", training, "--overwrite"]
    assert scoreline(*command[1:])[0] == 0
    expected = reached_by(as_json, training, "--test", "today.csv")
    assert reached_by(as_json, training, "--test", "other") == pytest.approx(expected)


def test_folders_of_which_one_has_a_positive_class(files, as_json, scoreline):
    assert scoreline("convert", "today.csv", "plain_test", "--like", "plain")[0] == 0
    assert scoreline("convert", "today.csv", "marked_test", "--like", "plain", "--positive", "fraud")[0] == 0
    assert open_mapped("marked_test").y.dtype == bool
    for training, test in (("plain", "marked_test"), ("marked", "plain_test")):
        expected = reached_by(as_json, training, "--test", "today.csv")
        assert reached_by(as_json, training, "--test", test) == pytest.approx(expected)


def test_a_table_tested_on_a_folder(files, as_json, scoreline):
    code, _, err = scoreline("train", "payments.csv", *LABEL, "--test", "other")
    assert code == 1
    assert "other has other features than the model was trained with; give today.csv itself" in err
    assert "scoreline convert today.csv other --like MODEL --overwrite" in err
    expected = reached_by(as_json, "payments.csv", *LABEL, "--test", "today.csv")
    assert scoreline("convert", "today.csv", "other", "--like", "model.npz", "--overwrite")[0] == 0
    assert reached_by(as_json, "payments.csv", *LABEL, "--test", "other") == pytest.approx(expected)


@for_each("training", ["payments.csv", "plain", "marked"])
def test_models_are_evaluated_on_and_predict_tables_and_folders(files, as_json, scoreline, training):
    assert scoreline("train", training, *(LABEL if training == "payments.csv" else ()))[0] == 0
    for command in ("evaluate", "predict"):
        code, _, err = scoreline(command, "model.npz", "other")
        assert code == 1
        command = shlex.split(err.partition("same encoding: ")[2])
        assert command == ["scoreline", "convert", "today.csv", "other", "--like", "model.npz", "--overwrite"]
    assert scoreline("convert", "today.csv", "encoded", "--like", "model.npz", "--overwrite")[0] == 0
    values = [as_json("evaluate", "model.npz", file)["values"]["roc_auc"] for file in ("today.csv", "encoded")]
    assert values[0] == pytest.approx(values[1])
    scores = [as_json("predict", "model.npz", file)["scores"] for file in ("today.csv", "encoded")]
    np.testing.assert_allclose(*scores)


def test_arrays_tested_on_a_table(files, as_json, scoreline):
    data = read_data("payments.csv", "outcome", drop=["country"])
    np.savez("arrays.npz", X=data.X, y=data.y)
    rows = [line.split(",") for line in (files / "today.csv").read_text().splitlines()]
    (files / "numbers.csv").write_text("".join(",".join((a, n, y)) + "\n" for a, n, _, y in rows))
    expected = reached_by(as_json, "payments.csv", *LABEL, "--drop", "country", "--test", "numbers.csv")
    assert reached_by(as_json, "arrays.npz", "--test", "numbers.csv", *LABEL) == pytest.approx(expected)
    code, _, err = scoreline("train", "arrays.npz", "--test", "today.csv", *LABEL)
    assert code == 1
    assert "--test today.csv has text in column(s) 'country', and arrays.npz does not say which features" in err


def test_rows_to_predict_are_converted_without_labels(files, scoreline):
    lines = (files / "today.csv").read_text().splitlines()
    (files / "unlabelled.csv").write_text("".join(line.rpartition(",")[0] + "\n" for line in lines))
    assert scoreline("convert", "unlabelled.csv", "unlabelled", "--like", "plain")[0] == 0
    data = open_mapped("unlabelled")
    assert data.y is None
    assert data.encoding == open_mapped("plain").encoding


def test_libsvm_text_like_a_folder_has_as_many_features(files, scoreline):
    assert scoreline("convert", "two.svm", "two")[0] == 0
    (files / "few.svm").write_text("+1 1:1\n-1 2:1\n")
    assert scoreline("convert", "few.svm", "few", "--like", "two")[0] == 0
    assert open_mapped("few").X.shape == (2, 6)
    assert scoreline("train", "two", "--test", "few")[0] == 0


def test_what_like_cannot_do_is_said(files, scoreline):
    assert scoreline("convert", "two.svm", "two")[0] == 0
    code, _, err = scoreline("convert", "today.csv", "new", "--like", "two", *LABEL)
    assert code == 1
    assert "--like two was not made from a table" in err
    for option in (("--drop", "night"), ("--impute", "zero"), ("--no-indicators",), ("--min-category-rows", "3")):
        code, _, err = scoreline("convert", "today.csv", "new", "--like", "plain", *option)
        assert code == 2
        assert f"{option[0]} and --like both say how columns become features; leave one of them out" in err
    assert not (files / "new").exists()


def test_a_folder_converted_by_an_earlier_version_still_loads(files, as_json):
    """Its encoding has version 1, without indicators and other."""
    expected = reached_by(as_json, "plain", "--test", "today.csv")
    header = json.loads((files / "plain" / "header.json").read_text())
    header["encoding"]["version"] = 1
    for column in header["encoding"]["columns"]:
        del column["indicator"], column["other"]
    (files / "plain" / "header.json").write_text(json.dumps(header))
    assert reached_by(as_json, "plain", "--test", "today.csv") == pytest.approx(expected)
    assert load_model("model.npz").encoding_ == open_mapped("plain").encoding
