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


@pytest.mark.slow
def test_the_demo_gives_verdicts_and_pages(tmp_path):
    lines = [line.strip() for line in (ROOT / "Makefile").read_text().splitlines() if "scoreline compare" in line]
    assert len(lines) == 2
    (tmp_path / "demo-output").mkdir()
    for line in lines:
        words = line.removeprefix("@$(BIN)/scoreline ").split()
        command = [sys.executable, "-c", "from scoreline.cli.main import entry; entry()", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "logistic regression" in done.stdout
        assert "interval" in done.stdout.splitlines()[-2], "the verdict comes last but one"
        page = tmp_path / words[-1]
        assert 30_000 < page.stat().st_size < 2_000_000


@pytest.mark.parametrize("script", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_example_runs(script, tmp_path):
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Warning" not in done.stderr
