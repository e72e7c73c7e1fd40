"""`make test-cpus`: what it skips, what it prints, and when it fails."""

import importlib.util
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("cpus", Path(__file__).parents[2] / ".ci" / "cpus.py")
cpus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cpus)


def check_table(code, n_failed, monkeypatch, capsys):
    """A run that ends without a result, such as one with a wrong argument, fails as well."""
    monkeypatch.setattr(cpus, "processor_flags", lambda: cpus.AVX2)
    monkeypatch.setattr(cpus, "run_tests", lambda variables, arguments: (code, 7, n_failed))
    monkeypatch.setattr(sys, "argv", ["cpus.py", "--cpus", "generic", "haswell", "skylake-avx512"])
    with pytest.raises(SystemExit) as stopped:
        cpus.main()
    assert bool(stopped.value.code) == (code != 0)
    table = capsys.readouterr().out.rpartition("\n\n")[2].splitlines()
    assert [line.split()[:3] for line in table[1:3]] == [[name, "7", str(n_failed)] for name in ("generic", "haswell")]
    assert table[3].startswith("skylake-avx512    skipped: this processor does not report avx512bw")


def test_the_table_and_the_exit_code(monkeypatch, capsys):
    for code, n_failed in ((0, 0), (1, 3), (2, 0)):
        check_table(code, n_failed, monkeypatch, capsys)


@pytest.mark.slow
def test_counts_are_those_of_pytest(tmp_path, capsys):
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")
    assert cpus.run_tests({}, [str(tmp_path)]) == (1, 1, 1)
    assert "test_b" in capsys.readouterr().out
