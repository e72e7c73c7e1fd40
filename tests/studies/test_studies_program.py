"""`make reproduce`: what it prints and writes, and its exit codes."""

import json
import sys

import pytest

from studies.__main__ import main
from studies.study import Cell, Claim, Findings, Study


@pytest.fixture
def program(tmp_path, monkeypatch, capsys):
    """Return a function that runs the program in a folder of its own and returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def test_a_study_is_printed_and_written(program, tmp_path):
    code, out, _ = program("zhang2010", "--quick", "--out", "z")
    assert code == 0
    assert "All claims that were judged reproduce" in out
    assert len(json.loads((tmp_path / "z.json").read_text())["claims"]) == 5
    page = (tmp_path / "z.md").read_text()
    assert page.startswith("# zhang2010")
    assert "`make reproduce NAME=zhang2010 ARGS=--quick`" in page
    assert (tmp_path / "z-curves.png").exists()
    code, out, _ = program("zhang2010", "--quick", "--json")
    assert code == 0
    assert json.loads(out)["reproduces"] is True


WRONG_USE = [
    (("nobody",), 2, "zhang2010"),
    (("zhang2010", "--fast"), 2, "unrecognized arguments: --fast"),
    (("zhang2010", "--quick", "--out", "no/x"), 1, "does not exist; make it first"),
    (("zhang2010", "--data", "nowhere"), 1, "is not a folder"),
]


def test_wrong_use(program, tmp_path):
    for arguments, code, words in WRONG_USE:
        found, out, err = program(*arguments)
        assert (found, out) == (code, ""), arguments
        assert words in err, arguments
        assert err.startswith("scoreline: error: ")
        assert not list(tmp_path.iterdir()), arguments


class Short(Study):
    """One cell, one claim."""

    paper = claim = "a paper"

    def cells(self):
        return [Cell("one", lambda: 1)]

    def findings(self, results):
        return Findings(claims=[Claim("one", "1", str(results.get("one")), True)])


@pytest.fixture
def two_studies(monkeypatch):
    studies = {name: type(name, (Short,), {"name": name}) for name in ("first", "second")}
    monkeypatch.setattr(sys.modules["studies.__main__"], "STUDIES", studies)
    monkeypatch.setattr(sys.modules["studies.__main__"], "get_study", studies.get)


@pytest.mark.usefixtures("two_studies")
def test_without_a_name_all_studies_run(program, tmp_path):
    code, out, _ = program("--out", "all")
    assert code == 0
    assert "== first" in out
    assert "== second" in out
    assert "The parts of all 2 studies took 0.0 minutes" in out
    for name in ("first", "second"):
        assert (tmp_path / f"all-{name}.md").read_text().startswith(f"# {name}")
    code, out, _ = program("--json")
    assert code == 0
    assert [study["study"] for study in json.loads(out)["studies"]] == ["first", "second"]
    code, _, err = program("--minutes", "0")
    assert code == 0
    assert err.count("not run, for lack of time: one") == 2


def test_help_names_the_studies(program):
    code, out, _ = program("--help")
    assert code == 0
    assert "make reproduce NAME=zhang2010" in out
    assert all(name in out for name in ("zhang2012", "ghanbari2018", "narasimhan2015", "friedlander2012"))


def test_a_full_disk_is_named(program, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules["studies.__main__"], "write", full)
    code, _, err = program("zhang2010", "--quick", "--out", "z")
    assert code == 1
    assert "z: No space left on device" in err
