"""scoreline train --dask: the same model as without, from folders, folders of folders and files."""

import json
import subprocess
import sys

import numpy as np
import pytest

from scoreline import load_model
from scoreline.cli.main import main
from scoreline.io import convert, make_imbalanced

pytestmark = pytest.mark.slow


def trained(capsys, *words):
    assert main(["train", *map(str, words), "--measure", "roc_auc", "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_same_model_from_every_kind_of_data(client, tmp_path, capsys):
    X, y = make_imbalanced(random_state=0)
    X, y = X[:6000], y[:6000]
    convert((X, y), tmp_path / "whole")
    (tmp_path / "many").mkdir()
    for k in range(3):
        convert((X[2000 * k : 2000 * k + 2000], y[2000 * k : 2000 * k + 2000]), tmp_path / "many" / f"part-{k}")
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    out = tmp_path / "model.npz"
    here = trained(capsys, tmp_path / "whole", "--out", out)
    expected = load_model(out)
    for data in ("whole", "many", "rows.npz"):
        there = trained(capsys, tmp_path / data, "--out", out, "--dask", client.scheduler.address)
        assert abs(there["objective"] - here["objective"]) <= there["gap"] + here["gap"]
        assert there["rows"] == 6000
        assert there["bytes"] > 0
        assert there["train"] == pytest.approx(here["train"], abs=5e-3)
        assert load_model(out).coef_.shape == expected.coef_.shape


def test_additive_features_of_a_folder(client, tmp_path, capsys):
    X, y = make_imbalanced(random_state=0)
    convert((X[:3000], y[:3000]), tmp_path / "rows")
    words = [tmp_path / "rows", "--features", "additive", "--alpha", "0.1"]
    here = trained(capsys, *words, "--out", tmp_path / "here.npz")
    there = trained(capsys, *words, "--out", tmp_path / "there.npz", "--dask", client.scheduler.address)
    assert abs(there["objective"] - here["objective"]) <= there["gap"] + here["gap"]
    models = [load_model(tmp_path / f"{name}.npz") for name in ("here", "there")]
    assert models[1].feature_map_.has_bins_of(models[0].feature_map_)


def test_words_for_classes_and_rows_to_test_on(client, tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{a:.4f},{b:.4f},{'fraud' if a + b > 1 else 'fine'}" for a, b in rng.standard_normal((500, 2))]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,outcome", *lines]))
    out = tmp_path / "model.npz"
    words = [tmp_path / "rows.csv", "--label", "outcome", "--positive", "fraud", "--test", tmp_path / "rows.csv"]
    found = trained(capsys, *words, "--out", out, "--dask", client.scheduler.address)
    assert found["train"] == pytest.approx(found["test"], abs=1e-12)
    assert load_model(out).classes_.tolist() == ["fine", "fraud"]


def test_wrong_use(client, tmp_path, capsys):
    assert main(["train", "demo:fraud", "--dask", "local", "--report", str(tmp_path / "r.html")]) == 2
    assert "--report" in capsys.readouterr().err
    assert main(["train", "demo:fraud", "--dask", "tcp://127.0.0.1:1", "--out", str(tmp_path / "m.npz")]) == 1
    assert "no Dask scheduler answers" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["train", str(tmp_path / "empty"), "--dask", client.scheduler.address]) == 1
    assert "header.json" in capsys.readouterr().err


def test_workers_on_this_machine(tmp_path):
    command = [sys.executable, "-c", "from scoreline.cli.main import entry; entry()"]
    done = subprocess.run(
        [*command, "train", "demo:breast-cancer", "--measure", "f1", "--dask", "local", "--out", str(tmp_path / "m.npz")],
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "workers with" in done.stderr
    assert "saved in" in done.stdout
