"""When a revision counts as slower than another: the decision alone, and two revisions of a package that only sleeps."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scoreline.operators import CompressedOperator, DenseOperator
from scoreline.risks.registry import all_risks
from scoreline.solvers.registry import all_solvers

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import kernel_cases
import kernel_storages
import revisions
from revisions import Compared, Limits, compare, confirmed, main

LIMITS = Limits(relative=1.10, absolute=2e-3)
ROUNDS = 15


def seconds(middle, spread=0.01, seed=0):
    return middle * (1.0 + spread * np.random.default_rng(seed).standard_normal(ROUNDS))


def test_both_limits_must_be_exceeded():
    for base, head, verdict in (
        (0.100, 0.130, "slower"),  # 30 % and 30 ms: both limits
        (0.001, 0.002, "same"),  # twice as long, but a millisecond
        (1.000, 1.050, "same"),  # 50 ms, but 5 %
        (0.100, 0.100, "same"),
        (0.130, 0.100, "faster"),
        (0.002, 0.001, "same"),
        (1.050, 1.000, "same"),
    ):
        found = compare("case", seconds(base), seconds(head, seed=1), LIMITS)
        assert found.verdict == verdict, (base, head)


def test_noise_is_not_slower():
    """The median may exceed both limits by chance: the interval of the ratio then reaches down to 1."""
    base, noise = seconds(0.1, 0.0), np.linspace(0.7, 1.6, ROUNDS)
    found = compare("case", base, base * noise, LIMITS)
    assert found.ratio > LIMITS.relative
    assert found.head - found.base > LIMITS.absolute
    assert found.low < 1.05
    assert found.verdict == "same"


def test_a_disturbance_of_a_few_rounds_is_not_slower():
    head = seconds(0.1, seed=1)
    head[:5] *= 4.0
    assert compare("case", seconds(0.1), head, LIMITS).verdict == "same"


def test_a_drift_that_hits_both_sides_is_not_slower():
    drift = np.linspace(1.0, 3.0, ROUNDS)
    assert compare("case", seconds(0.1) * drift, seconds(0.1, seed=1) * drift, LIMITS).verdict == "same"


def test_the_limits_are_those_given():
    pair = seconds(0.1), seconds(0.13, seed=1)
    assert compare("case", *pair, Limits(1.5, 2e-3)).verdict == "same"
    assert compare("case", *pair, Limits(1.1, 0.05)).verdict == "same"
    assert compare("case", *pair, Limits(1.0, 0.0)).verdict == "slower"


def test_a_case_of_one_revision_is_new_or_gone():
    assert compare("case", [], [0.1], LIMITS) == Compared("case", "new", None, 0.1)
    assert compare("case", [0.1], [], LIMITS) == Compared("case", "gone", 0.1, None)
    assert "| case | - | 100.000 | - | new |" == revisions.line(compare("case", [], [0.1], LIMITS))


def test_a_change_must_happen_twice():
    slow = compare("case", seconds(0.1), seconds(0.13), LIMITS)
    fast = compare("case", seconds(0.13), seconds(0.1), LIMITS)
    same = compare("case", seconds(0.1), seconds(0.1, seed=1), LIMITS)
    assert confirmed(slow, slow).verdict == "slower"
    assert confirmed(fast, fast).verdict == "faster"
    assert {confirmed(first, second).verdict for first, second in ((slow, same), (slow, fast), (fast, same))} == {
        "same"
    }


def test_the_interval_holds_the_median_and_is_the_same_in_every_run():
    ratios = np.random.default_rng(3).lognormal(0.0, 0.1, ROUNDS)
    low, high = revisions.interval(ratios)
    assert low < np.median(ratios) < high
    assert (low, high) == revisions.interval(ratios)


def test_limits_that_make_no_sense_are_refused():
    for given in (["--relative", "0.9"], ["--absolute-ms", "-1"], ["--repeats", "2"]):
        with pytest.raises(SystemExit) as stopped:
            revisions.parsed(given)
        assert stopped.value.code == 2, given


def test_every_risk_storage_and_streaming_solver_has_an_unlisted_case():
    names = list(kernel_cases.cases(1000))
    streaming = [f"partial_fit {name}" for name, solver in all_solvers().items() if solver.streams]
    for start in (*(f"risk {name}" for name in all_risks()), *kernel_storages.host_operators(), *streaming):
        assert any(name.startswith(start) for name in names), start


def test_an_operator_without_a_recipe_is_made_of_what_it_takes():
    dense = kernel_storages.without_recipe(DenseOperator, 20)
    assert dense.total_bytes == 20 * 8 * dense.operator.shape[1]
    assert kernel_storages.without_recipe(CompressedOperator, 20).operator.shape[0] == 20


SUITE = """
from types import SimpleNamespace

def cases(n):
    import scoreline
    names = [name for name in ("work", "fresh", "old") if hasattr(scoreline, name)]
    return {name: lambda name=name: SimpleNamespace(run=getattr(scoreline, name), own_clock=True) for name in names}
"""


def package(milliseconds, *others):
    """Return a package whose functions say how long they took, so that a busy machine does not change the verdict."""
    times = {"work": milliseconds / 1e3} | dict.fromkeys(others, 1e-3)
    return "".join(f"def {name}(): return {seconds}\n" for name, seconds in times.items())


class Repository:
    """A repository whose package has one function."""

    def __init__(self, folder):
        self.folder, self.out = folder, folder.parent / "out" / "revisions.json"
        (folder / "src" / "scoreline").mkdir(parents=True)
        (folder / "benchmarks").mkdir()
        (folder / "benchmarks" / "kernel_cases.py").write_text(SUITE)
        self.git("init", "--quiet")

    def git(self, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.folder, *identity, *arguments], check=True, capture_output=True)

    def write(self, text):
        (self.folder / "src" / "scoreline" / "__init__.py").write_text(text)

    def commit(self, text, tag):
        self.write(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", tag)
        self.git("tag", tag)

    def compare(self, *arguments):
        return main(["--repository", str(self.folder), "--out", str(self.out), "--repeats", "7", *arguments])


@pytest.fixture
def repository(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    return Repository(tmp_path / "repository")


def test_an_unknown_revision_is_named(repository, capsys):
    repository.commit(package(1), "first")
    assert repository.compare("--base", "no-such-branch") == 2
    assert "unknown revision 'no-such-branch'" in capsys.readouterr().err


def test_a_commit_is_not_measured_where_the_working_tree_may_be_meant(repository, capsys):
    repository.commit(package(1), "first")
    repository.write(package(2))
    assert repository.compare("--base", "first", "--head", "HEAD") == 2
    error = capsys.readouterr().err
    assert "--head ." in error
    assert "src/scoreline/__init__.py" in error


def test_a_folder_without_repository_and_a_machine_without_git_are_told(tmp_path, capsys, monkeypatch):
    assert main(["--repository", str(tmp_path), "--base", "HEAD"]) == 2
    assert "git" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--repository", str(tmp_path), "--base", "HEAD"]) == 2
    assert "git is missing" in capsys.readouterr().err


@pytest.mark.slow
def test_a_slow_head_fails_and_an_equal_one_passes(repository, capsys):
    repository.commit(package(10, "old"), "first")
    repository.commit(package(30, "fresh"), "second")
    assert repository.compare("--base", "first", "--head", "second") == 1
    printed = capsys.readouterr().out
    assert "1 slower, 0 faster, 0 same, 1 new, 1 gone" in printed
    assert repository.out.with_suffix(".md").read_text().count("| slower |") == 1
    assert repository.compare("--base", "second", "--head", "first") == 0
    assert "1 faster" in capsys.readouterr().out
    assert repository.compare("--base", "second", "--head", ".") == 0
    assert "0 slower, 0 faster, 2 same" in capsys.readouterr().out
    assert repository.compare("--base", "first", "--head", "second", "--absolute-ms", "100") == 0


@pytest.mark.slow
def test_a_head_that_fails_is_an_error_and_no_verdict(repository, capsys):
    repository.commit(package(1), "first")
    repository.commit("def work(): raise RuntimeError('broken')\n", "second")
    assert repository.compare("--base", "first", "--head", "second") == 2
    assert "broken" in capsys.readouterr().err
    assert repository.compare("--base", "first", "--cases", "nothing-like-that") == 2
    assert "there are: work" in capsys.readouterr().err


@pytest.mark.slow
def test_a_base_with_other_names_runs_its_own_cases(repository, capsys):
    """The cases of the head import what the base does not have under that name."""
    suite = repository.folder / "benchmarks" / "kernel_cases.py"
    repository.commit(package(10), "first")
    suite.write_text("from scoreline import renamed\n" + SUITE)
    repository.commit(package(10) + "renamed = 1\n", "second")
    assert repository.compare("--base", "first", "--head", "second") == 0
    printed = capsys.readouterr().out
    assert "base: cannot import the cases of the head" in printed
    assert "0 slower, 0 faster, 1 same" in printed
