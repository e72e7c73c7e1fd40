"""Features on the command line, and on the page of a model."""

from pathlib import Path

import numpy as np
import pytest

from scoreline import load_model
from scoreline.cli.main import main
from scoreline.model_selection import baselines, compare


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
        assert "Bands are two standard errors" in page
        assert "dose" in page
    assert "pairs features by cross-validation" in capsys.readouterr().out
    assert main(["info", "model.npz"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--features", "auto"), "add --alpha auto"),
        (("--features", "pairs", "--checkpoint", "c"), "Leave --checkpoint out"),
        (
            ("--features", "additive", "--scaling", "robust"),
            "--scaling robust works only with --features linear: binned features need no scaling",
        ),
    ],
)
def test_options_that_do_not_go_together(table, capsys, options, words):
    assert main([*table, *options]) == 2
    assert words in capsys.readouterr().err


def test_compare_takes_features_and_rivals_that_are_installed(table, capsys, monkeypatch):
    rows = ["compare", "rows.csv", "--label", "out", "--splits", "2", "--alphas", "0.1,0.01", "--quiet"]
    assert main([*rows, "--features", "auto"]) == 0
    out = capsys.readouterr().out
    assert "scoreline, features auto" in out
    assert "on all rows: scoreline train rows.csv" in out
    assert "--features pairs" in out
    assert "model" in out.splitlines()[-2], "boosted trees are judged too"
    assert main([*rows, "--with", "catboost"]) == 2
    assert "expected one of 'lightgbm', 'xgboost', 'ebm'" in capsys.readouterr().err
    monkeypatch.setitem(baselines.RIVALS, "ebm", ("no_such_package", "Model", {}))
    assert main([*rows, "--with", "ebm"]) == 2
    assert "pip install interpret-core" in capsys.readouterr().err


def test_rivals_are_compared_on_the_same_splits(monkeypatch):
    """A model of scikit-learn stands for a package that may not be installed."""
    monkeypatch.setitem(baselines.RIVALS, "lightgbm", ("sklearn.tree", "DecisionTreeClassifier", {"max_depth": 3}))
    monkeypatch.setattr(baselines.importlib.util, "find_spec", lambda name: name)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    y = X[:, 0] * X[:, 1] > 0
    for measure in ("roc_auc", "f1"):
        found = compare(X, y, measure, features="pairs", rivals=["lightgbm"], splits=2, alphas=[0.01])
        tree = next(each for each in found.contenders if each.name == "lightgbm")
        assert len(tree.values) == 2
        assert found.best.features == "pairs"
        assert found.best.value > 0.9
