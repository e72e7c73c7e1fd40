"""What a newcomer runs: the demo and the examples, as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(script, folder):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / script)], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_demo_prints_a_table_and_draws_the_proof(tmp_path):
    done = run("demo.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    for word in (
        "breast cancer",
        "digits",
        "synthetic",
        "test AUC",
        "95 % interval",
        "seconds",
        "passes",
        "lower bound",
    ):
        assert word in done.stdout
    assert done.stdout.count("LogisticRegression") == 3
    picture = tmp_path / "demo-output" / "convergence.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 30_000, "an empty picture"
    gaps = [line.split()[-1] for line in done.stdout.splitlines() if line.strip().startswith("scoreline, roc_auc")]
    assert len(gaps) == 3
    assert all(float(gap.rstrip("%")) <= 1.0 for gap in gaps), "each fit proves 1 %"


@pytest.mark.parametrize("script", sorted(p.name for p in (ROOT / "examples").glob("*.py") if p.name != "demo.py"))
def test_example_runs(script, tmp_path):
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Warning" not in done.stderr
