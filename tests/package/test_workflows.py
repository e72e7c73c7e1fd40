"""The pipelines: each step is a target of the Makefile, so that what a pipeline runs can be run in a clone."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MATRIX = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def jobs():
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            yield pytest.param(job, id=f"{path.stem}-{name}")


def commands(job):
    """Return the command of each step, once per value of the matrix that it names."""
    for step in job["steps"]:
        if "run" in step:
            named = MATRIX.search(step["run"])
            values = job["strategy"]["matrix"][named[1]] if named else [""]
            yield from (MATRIX.sub(value, step["run"]) for value in values)


def test_targets_are_phony_and_explained():
    phony = set(re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)[1].replace("\\", "").split())
    assert phony == TARGETS
    explained = set(re.findall(r'@echo "make ([\w-]+)', MAKEFILE))
    assert TARGETS - explained <= {"help", "setup", "format", "soak-tests", "clean"}


@pytest.mark.parametrize("job", list(jobs()))
def test_every_step_is_a_target_of_the_makefile(job):
    for line in commands(job):
        program, *words = line.split()
        variables = {word.partition("=")[0] for word in words if "=" in word}
        targets = {word for word in words if "=" not in word}
        assert program == "make", line
        assert targets, line
        assert targets <= TARGETS, line
        assert all(f"$({name})" in MAKEFILE for name in variables), line


def test_pull_requests_run_what_the_project_runs_for_every_change():
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    needed = set(re.findall(r"^make [^.\n]+$", text, re.MULTILINE)) | set(re.findall(r'"(make [\w-]+)"', text))
    run = {line for job in jobs() if job.id.startswith("test-") for line in commands(job.values[0])}
    assert needed >= {"make lint", "make test", "make test-cpus CPUS=generic", "make test-extras"}
    assert needed <= run


@pytest.mark.parametrize("job", list(jobs()))
def test_jobs_have_limits_and_actions_are_pinned(job):
    assert job["timeout-minutes"] <= 350  # six hours are the most that the service allows
    assert "permissions" in job
    for step in job["steps"]:
        assert "uses" not in step or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step


def test_claimed_versions_of_python_are_tested():
    claimed = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", each)}
    (job,) = (job.values[0] for job in jobs() if job.id == "test-test")
    assert claimed <= set(job["strategy"]["matrix"]["python"])
    assert min(claimed, key=lambda version: int(version.partition(".")[2])) == PROJECT["requires-python"].removeprefix(
        ">="
    )


def test_the_account_is_named_in_one_place():
    """Until it is known, it is called OWNER, in pyproject.toml only."""
    address = PROJECT["urls"]["Repository"]
    assert all(url.startswith(address) for url in PROJECT["urls"].values())
    account = address.split("/")[-2]
    named = re.compile(rf"github\.com/{re.escape(account)}/|\bOWNER/")
    texts = [
        *ROOT.glob("*.*"),
        *(ROOT / ".github").rglob("*.*"),
        *(ROOT / "packaging").rglob("*"),
        *(ROOT / "docs").glob("*.md"),
    ]
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in texts
        if path.is_file() and path.suffix != ".png" and named.search(path.read_text(encoding="utf-8"))
    }
    assert naming - {"CITATION.cff"} == {"pyproject.toml"}  # the release writes it into the citation
