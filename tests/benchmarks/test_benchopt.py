"""The benchopt benchmark: its solvers name adapters that exist, and it runs where benchopt is installed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from rivals.registry import all_rivals

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks/benchmark_measures"


def attributes(path):
    """Return the attributes of the class Solver in a file, which needs benchopt to be imported."""
    (solver,) = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    return {node.targets[0].id: ast.literal_eval(node.value) for node in solver.body if isinstance(node, ast.Assign)}


def test_solvers_name_adapters_and_packages():
    rivals = all_rivals()
    paths = sorted((FOLDER / "solvers").glob("*.py"))
    assert [path.stem for path in paths] == ["dlib", "liblinear", "scikit_learn", "scoreline"]
    for path in paths:
        found = attributes(path)
        assert set(found["parameters"]["variant"]) <= set(found["adapters"])
        for name in found["adapters"].values():
            assert found["requirements"] == [f"pip::{rivals[name].package}"]
            assert list(rivals[name].efforts) == sorted(rivals[name].efforts, reverse=True)


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path):
    pytest.importorskip("benchopt")
    pandas = pytest.importorskip("pandas")
    line = [
        sys.executable, "-m", "benchopt", "run", str(FOLDER), "-d", "breast-cancer",
        "-s", "scoreline", "-s", "scikit-learn[variant=lbfgs]", "-o", "test-measure[measure=roc_auc]", "-r", "1", "--no-cache",
        "--no-plot", "--output", "made_by_a_test",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    results = list((FOLDER / "outputs").glob("made_by_a_test*.parquet"))
    try:
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        table = pandas.read_parquet(results[0])
    finally:
        for path in results:
            path.unlink()
    last = table.groupby("solver_name").last()
    assert set(last.index) == {"scoreline[variant=default]", "scikit-learn[variant=lbfgs]"}
    assert (last["stop_val"] < 0.01).all()
    assert (last["objective_value"] < 0.1).all()
