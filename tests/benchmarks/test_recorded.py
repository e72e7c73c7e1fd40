"""Recorded results of benchmarks can be read by the scripts that made them."""

import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_recorded_lines_of_additive_features_can_be_joined():
    command = [sys.executable, BENCHMARKS / "additive.py", "--join", BENCHMARKS / "results" / "additive.jsonl"]
    path = os.pathsep.join([str(BENCHMARKS.parent / "src"), str(BENCHMARKS)])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    for line in ("auto less linear", "the better of LightGBM and XGBoost", "largest duality gap"):
        assert line in done.stdout
    recorded = (BENCHMARKS / "results" / "additive.md").read_text(encoding="utf-8")
    tables = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert all(line in recorded for line in tables), "the table is that of the recorded lines"
