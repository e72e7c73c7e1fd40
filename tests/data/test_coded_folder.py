"""Folders of codes: a byte per value, from which additive models are trained without coding again."""

import json

import numpy as np
import pandas as pd
import pytest

from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.cli.main import main
from scoreline.features import Additive
from scoreline.features import columns as columns_module
from scoreline.io import convert, open_mapped
from scoreline.operators.mapped import MappedCodes


def rows(n=800, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, (np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n) > 1).astype(int)


@pytest.mark.parametrize("features", ["additive", "pairs"])
def test_a_fit_has_the_bits_of_that_in_memory_and_codes_nothing(features, tmp_path, monkeypatch):
    X, y = rows()
    data = open_mapped(convert((X, y), tmp_path / "coded", features="additive"))
    assert isinstance(data.X, MappedCodes)
    files = {path.name: path.stat().st_size for path in (tmp_path / "coded").iterdir()}
    assert files["codes.npy"] == X.size + 128, "a byte per value, and the head of the file"
    assert "X.npy" not in files
    expected = MeasureClassifier("roc_auc", features=features, alpha=0.01).fit(X, y)
    z = expected.decision_function(X)

    def coded(*arguments):
        raise AssertionError("codes were made again")

    monkeypatch.setattr(columns_module, "_coded", coded)
    clf = MeasureClassifier("roc_auc", features=features, alpha=0.01).fit(data.X, data.y)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    np.testing.assert_array_equal(clf.decision_function(data.X), z)
    assert clf.n_features_in_ == 3
    assert clf.feature_map_.pairs == expected.feature_map_.pairs
    search = MeasureClassifierCV("roc_auc", features="auto", alphas=[0.1], cv=2).fit(data.X, data.y)
    assert search.score(data.X, data.y) > 0.9


def test_sparse_rows_parts_and_rows_like_others(tmp_path):
    X, y = rows()
    X[np.abs(X) < 1] = 0.0
    from scipy.sparse import csr_array

    folder = convert((csr_array(X), y), tmp_path / "coded", features=Additive(max_bins=16))
    data = open_mapped(folder)
    np.testing.assert_array_equal(data.X.codes, Additive(max_bins=16).learn(X).codes)
    part = open_mapped(folder, rows=(100, 300))
    w = np.arange(float(data.X.shape[1]))
    np.testing.assert_array_equal(part.X.matvec(w), data.X.matvec(w)[100:300])
    np.testing.assert_array_equal(part.y, y[100:300])
    more, truth = rows(200, seed=1)
    other = open_mapped(convert((more, truth), tmp_path / "other", features=data.X.feature_map))
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(data.X, data.y)
    np.testing.assert_array_equal(clf.decision_function(other.X), clf.decision_function(more))
    own = open_mapped(convert((more, truth), tmp_path / "own", features="additive"))
    with pytest.raises(ValueError, match="other bins"):
        clf.decision_function(own.X)
    with pytest.raises(ValueError, match="must be 'additive'"):
        convert((X, y), tmp_path / "wrong", features="pairs")


@pytest.mark.parametrize("name", ["codes.npy", "features.npz", "header.json"])
def test_damaged_folders_are_refused(name, tmp_path):
    X, y = rows(100)
    folder = convert((X, y), tmp_path / "coded", features="additive")
    path = folder / name
    raw = bytearray(path.read_bytes())
    if name == "header.json":
        header = json.loads(raw)
        header["shape"][1] = 2
        raw = json.dumps(header).encode()
    else:
        raw[-40:] = b"\xff" * 40  # codes that no bin has; a record with another checksum
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="is damaged"):
        open_mapped(folder)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("rows", 0), ("more", 1)):
        X, y = rows(400, seed)
        frame = pd.DataFrame(X, columns=["dose", "age", "size"])
        frame["town"] = np.where(X[:, 0] > 0.5, "Bonn", "Ulm")
        frame["out"] = np.where(y, "yes", "no")
        frame.to_csv(f"{name}.csv", index=False)
    given = ["--label", "out", "--positive", "yes", "--quiet"]
    assert main(["convert", "rows.csv", "coded", "--features", "additive", *given]) == 0
    assert main(["convert", "more.csv", "more", "--like", "coded", "--quiet"]) == 0
    assert isinstance(open_mapped("more").X, MappedCodes)
    words = ["train", "coded", "--features", "pairs", "--alpha", "0.01", "--quiet"]
    assert main([*words, "--test", "more", "--report", "page.html"]) == 0
    clf = load_model("model.npz")
    assert clf.feature_map_.pairs
    assert [column.name for column in clf.feature_map_.columns][:3] == ["dose", "age", "size"]
    for verb in (
        ["evaluate", "model.npz", "more"],
        ["predict", "model.npz", "more"],
        ["predict", "model.npz", "more.csv"],
    ):
        assert main([*verb, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["train", "coded", "--quiet"]) == 2
    assert "add --features additive" in capsys.readouterr().err
