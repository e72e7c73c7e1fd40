"""Features on the command line, and on the page of a model."""

from pathlib import Path

import numpy as np
import pytest

from scoreline import load_model
from scoreline.cli.main import main


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Make a table with a hump and a product, and work in its folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (500, 3)).round(3)
    y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(500) > 1
    lines = [f"{a},{b},{c},{'yes' if label else 'no'}" for (a, b, c), label in zip(X, y, strict=True)]
    Path("rows.csv").write_text("\n".join(["dose,age,size,out", *lines]) + "\n")
    return ("train", "rows.csv", "--label", "out", "--positive", "yes", "--quiet")


def test_train_predict_and_the_page(table, capsys):
    for features, alpha in (("additive", "0.01"), ("pairs", "0.01"), ("auto", "auto")):
        assert main([*table, "--features", features, "--alpha", alpha, "--report", "page.html"]) == 0
        clf = load_model("model.npz")
        assert clf.feature_map_.kind == ("pairs" if features == "auto" else features)
        assert main(["predict", "model.npz", "rows.csv", "--quiet"]) == 0
        page = Path("page.html").read_text(encoding="utf-8")
        assert "Shapes of the functions" in page
        assert "dose" in page
    assert "pairs features by cross-validation" in capsys.readouterr().out
    assert main(["info", "model.npz"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--features", "auto"), "add --alpha auto"),
        (("--features", "pairs", "--checkpoint", "c"), "Leave --checkpoint out"),
        (("--features", "additive", "--dask", "local"), "Leave --dask out"),
        (("--features", "additive", "--scaling", "robust"), "bins have a scale"),
    ],
)
def test_options_that_do_not_go_together(table, capsys, options, words):
    assert main([*table, *options]) == 2
    assert words in capsys.readouterr().err
