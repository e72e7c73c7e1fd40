"""What a newcomer runs: the demo and the examples, as they are."""

import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOT_RUN = "not run when this page is built"  # said by examples that need a cluster or a device
RUN_BY_HAND = [path for path in EXAMPLES if NOT_RUN in path.read_text(encoding="utf-8")]
LONG = {
    "does_it_pay",
    "fourier_features",
    "lower_bounds",
    "many_classes",
    "own_measure",
    "probabilities",
}  # a second or more each


def named(paths):
    return [pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in LONG else ()) for path in paths]


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
        verdict, command_to_train, report = done.stdout.splitlines()[-3:]
        assert "interval" in verdict
        assert command_to_train.startswith("on all rows: scoreline train demo:")
        assert report.startswith("report in")
        page = tmp_path / words[-1]
        assert 30_000 < page.stat().st_size < 2_000_000


@pytest.mark.parametrize("path", named(path for path in EXAMPLES if path not in RUN_BY_HAND))
def test_example_runs_and_draws(path, tmp_path, monkeypatch, capsys):
    """In this process, which has imported the library already: sixteen more imports would take as long as the examples."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            runpy.run_path(str(path), run_name="__main__")
    finally:
        plt.close("all")
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert shown, "an example has a picture"
    assert not [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


@pytest.mark.slow
@pytest.mark.parametrize("path", named(RUN_BY_HAND))
def test_example_that_the_documentation_does_not_run(path, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Warning" not in done.stderr
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


def test_the_gallery_has_every_example_once():
    index = (ROOT / "examples" / "index.rst").read_text(encoding="utf-8")
    listed = [name for names in re.findall(r":hidden:\n\n((?:   \w+\n)+)", index) for name in names.split()]
    assert sorted(listed) == [path.stem for path in EXAMPLES]


def test_every_example_begins_with_a_title():
    for path in EXAMPLES:
        first, title, line, empty = path.read_text(encoding="utf-8").splitlines()[:4]
        assert (first, line, empty) == ('"""', "=" * len(title), ""), path.name
