"""The wheel and the source archive: made from the clone, what is in them, and the wheel at work in an empty environment."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def run(*line, **options):
    done = subprocess.run([*map(str, line)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def build(folder):
    """Build the wheel and the source archive from a copy of what git has or would take; return their paths."""
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in files:
        if (ROOT / name).is_file():
            (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "clone" / name).write_bytes((ROOT / name).read_bytes())
    date = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "clone", env=date)
    wheel, source = sorted((folder / "dist").iterdir(), key=lambda path: path.suffix != ".whl")
    return wheel, source


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return build(tmp_path_factory.mktemp("made"))


def test_the_same_files_give_the_same_bytes(made, tmp_path):
    """In another folder, with other dates of the files."""
    again = build(tmp_path)
    assert [path.name for path in again] == [path.name for path in made]
    for first, second in zip(made, again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_the_wheel_holds_the_package_and_nothing_else(made):
    with zipfile.ZipFile(made[0]) as archive:
        names = archive.namelist()
    assert made[0].name.endswith("-py3-none-any.whl")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"scoreline"}
    assert (ROOT / "studies/zhang2012.py").is_file()
    assert not [name for name in names if "zhang2012" in name], "the studies stay in the repository"
    assert {"scoreline/py.typed", "scoreline/report/page.html", "scoreline/io/named_sets.csv"} <= set(names)
    tracked = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "src", "packaging/share", cwd=ROOT)
    version = made[0].name.split("-")[1]
    own = {f"scoreline-{version}.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    own.add(f"scoreline-{version}.dist-info/licenses/LICENSE")
    own |= {name.replace("packaging/share", f"scoreline-{version}.data/data/share") for name in tracked.split()}
    assert set(names) == {name.removeprefix("src/") for name in own}


def test_the_source_archive_can_be_built_from(made, tmp_path):
    with tarfile.open(made[1]) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert (folder / "LICENSE").is_file()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "again", folder)
    (again,) = (tmp_path / "again").iterdir()
    with zipfile.ZipFile(made[0]) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())


AT_WORK = """
import sys
import numpy as np
import scoreline
from scoreline import MeasureClassifier

assert "site-packages" in scoreline.__file__, scoreline.__file__
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 4))
y = X[:, 0] + rng.standard_normal(500) > 1
clf = MeasureClassifier("f1").fit(X, y)
print(clf.status_, scoreline.__version__, sorted({"pyarrow", "rich", "dask", "matplotlib"} & set(sys.modules)))
"""


# Runs the blocks of a page in one process, with the program of the same environment.
PAGE = """
import json, subprocess, sys
names = {}
for is_python, text in json.load(open("blocks.json")):
    if is_python:
        exec(text, names)
    else:
        subprocess.run(text, shell=True, check=True)
"""


def blocks_of(page):
    """Return (is it Python, text) of the blocks of Python and of the commands of a page, in their order."""
    found = re.findall(r"^```(python|console)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for kind, text in found:
        if kind == "python":
            yield True, text
        else:
            yield from ((False, command) for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE))


def test_the_wheel_works_in_an_empty_environment(made, tmp_path):
    """Only the wheel and what it asks for; extras that are missing are named with the line that installs them.

    With the extra of the command line, every command and every block of the quick start runs.
    """
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty/bin/python"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", made[0], env=clean)
    output = run(python, "-c", AT_WORK, cwd=tmp_path, env=clean)
    assert output.startswith("converged ")
    assert output.endswith("[]\n")
    program = tmp_path / "empty/bin/scoreline"
    run(program, "train", "demo:breast-cancer", "--measure", "f1", "--out", "model.npz", cwd=tmp_path, env=clean)
    run(program, "info", "model.npz", cwd=tmp_path, env=clean)
    assert "missing: pip install 'scoreline[cli]'" in run(program, "doctor", cwd=tmp_path, env=clean)
    share = tmp_path / "empty/share"
    assert (share / "man/man1/scoreline.1").is_file()
    assert (share / "bash-completion/completions/scoreline").is_file()
    (tmp_path / "rows.csv").write_text("a,label\n1,yes\n2,no\n")
    line = [str(program), "info", "rows.csv", "--label", "label"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=clean, check=False)
    assert done.returncode == 1
    assert "scoreline[io]" in done.stderr
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{made[0]}[cli]", env=clean)
    blocks = list(blocks_of((ROOT / "docs/quickstart.md").read_text(encoding="utf-8")))
    assert sum(not is_python for is_python, _ in blocks) >= 4
    (tmp_path / "blocks.json").write_text(json.dumps(blocks))
    environment = clean | {"PATH": f"{program.parent}{os.pathsep}{clean['PATH']}"}
    printed = run(python, "-c", PAGE, cwd=tmp_path, env=environment)
    assert "certificate: objective" in printed
    assert "F1 on new rows" in printed
    assert (tmp_path / "model.npz").is_file()
