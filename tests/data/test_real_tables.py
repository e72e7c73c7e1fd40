"""The tasks of benchmarks/real_tables.py on generated tables: gaps, heavy tails, rare categories, text."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import real_tables

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.slow
def test_the_command_line_and_python_train_the_same_model(tmp_path):
    found = real_tables.credit_once(tmp_path, rows=6000, seed=0)
    assert found["solver, command line"] == found["solver, Python"]
    assert found["same coefficients"]
    assert found["test F1, command line"] == pytest.approx(found["test F1, Python"], abs=1e-9)
    assert found["test F1, scaling robust"] > found["test F1, Python"] - 0.02


@pytest.mark.slow
def test_indicators_and_scalings_for_heavy_tails_help_on_ratios_with_gaps(tmp_path):
    found = real_tables.bankruptcy(tmp_path, rows=6000)
    assert found["test AP, default reading"] > found["test AP, no indicators"] + 0.1
    assert found["test AP, scaling robust"] > found["test AP, default reading"] + 0.1
    assert found["test AP, scaling quantile"] > found["test AP, default reading"] + 0.1
    for name, value in found.items():
        if name.startswith("log loss"):
            own, constant = map(float, value.rstrip(")").split(" (constant "))
            assert own < 0.8 * constant, name


@pytest.mark.slow
def test_a_folder_is_tested_on_a_csv_file_and_every_export_agrees(tmp_path):
    found = real_tables.codes_once(tmp_path, rows=4500, codes=2000, seed=0)
    assert found["features"] < 150
    assert found["train folder --test x.csv"] == "works"
    for export in ("ONNX with raw columns", "SQL", "JSON"):
        assert found[f"largest difference, {export}"] < 1e-12


@pytest.mark.slow
def test_text_is_trained_with_alpha_by_cross_validation(tmp_path):
    found = real_tables.text(tmp_path, rows=600, words=1200)
    assert found["test F1"] > 0.4  # a constant prediction has 0.33
    assert found["passes of the last fit"] > 0


def test_info_names_gaps_and_heavy_tails(tmp_path):
    train, _ = real_tables.write(real_tables.bankruptcy_table(900), tmp_path)
    found = real_tables.command("info", train, "--label", "bankrupt", "--positive", "yes")
    assert found["heavy_tailed_columns"] >= 15
    assert any("--scaling robust" in text for text in found["advice"])


def test_tables_have_the_traits_that_they_are_made_for():
    credit, ratios, codes = (
        real_tables.credit_table(3000), real_tables.bankruptcy_table(3000), real_tables.codes_table(3000, codes=2000),
    )  # fmt: skip
    assert np.mean(credit["default"] == "yes") == pytest.approx(0.067, abs=0.001)
    assert credit["income"].isna().mean() > 0.15
    assert np.mean(ratios["bankrupt"] == "yes") == pytest.approx(0.03, abs=0.001)
    gaps = ratios["ratio19"].isna().groupby(ratios["bankrupt"]).mean()
    assert gaps["yes"] > 3.0 * gaps["no"]
    assert np.median(codes["code"].value_counts()) <= 2
    pd.testing.assert_frame_equal(credit, real_tables.credit_table(3000))


def test_a_task_without_its_data_says_which_set_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("SCORELINE_DATA", raising=False)
    assert "german.numer is missing" in real_tables.run(["german"])["german"]["data"]
    monkeypatch.setenv("SCORELINE_DATA", str(tmp_path))
    assert "campaign.svm" in real_tables.run(["campaign"])["campaign"]["data"]
    capsys.readouterr()


def test_the_errors_of_older_versions_are_values():
    def failing():
        raise ValueError("scaling='robust' is unknown\nsecond line")

    assert real_tables.attempt(failing) == "error: scaling='robust' is unknown"
    assert real_tables.averaged([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]) == {"a": 1.5, "b": "x (1), y (1)"}
