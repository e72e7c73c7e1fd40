"""Studies: cells are kept as they are done, a run that was killed goes on, and pages say what was found."""

import json
from typing import ClassVar

import pytest

from studies import STUDIES, Cell, Claim, Findings, Study, Table, get_study, reproduce
from studies.datasets import Datasets
from studies.pages import grid, write


class Small(Study):
    name, paper, claim = "small2026", "Nobody 2026, Nothing", "nothing"
    calls: ClassVar[list[str]] = []
    fails_at = ""

    def cells(self):
        return [Cell(key, lambda key=key: self.compute(key)) for key in ("a", "b", "c")]

    def compute(self, key):
        if key == self.fails_at:
            raise KeyboardInterrupt
        self.calls.append(key)
        return {"value": len(self.calls)}

    def findings(self, results):
        table = Table("Values", ("key", "value"), [(k, str(v["value"])) for k, v in results.items()])
        claims = [
            Claim("one is one", "1", str(results["a"]["value"]), results["a"]["value"] == 1),
            Claim("x", "", "", None),
        ]
        return Findings([table], claims, {"line": lambda figure: figure.subplots().plot([1, 2])}, ["nowhere"])


@pytest.fixture
def study():
    made = Small(Datasets(), quick=True)
    made.calls.clear()
    made.fails_at = ""
    return made


def test_cells_run_once_and_in_order(study):
    announced = []
    findings, results = reproduce(study, announce=announced.append)
    assert study.calls == ["a", "b", "c"]
    assert [text.split(": ")[1] for text in announced] == ["a", "b", "c"]
    assert results["c"] == {"value": 3}
    assert findings.reproduces is True


def test_a_run_that_was_killed_goes_on(study, tmp_path):
    record = tmp_path / "s.jsonl"
    study.fails_at = "c"
    with pytest.raises(KeyboardInterrupt):
        reproduce(study, record)
    study.fails_at = ""
    _, results = reproduce(study, record)
    assert study.calls == ["a", "b", "c"]
    assert results == {"a": {"value": 1}, "b": {"value": 2}, "c": {"value": 3}}
    reproduce(study, record)
    assert study.calls == ["a", "b", "c"]
    reproduce(study, record, fresh=True)
    assert study.calls == ["a", "b", "c"] * 2


def test_a_line_that_was_cut_off_is_done_again(study, tmp_path):
    record = tmp_path / "s.jsonl"
    reproduce(study, record)
    complete = record.read_text()
    for missing in (1, 10, 30):
        record.write_text(complete[:-missing])
        _, results = reproduce(study, record)
        assert set(results) == {"a", "b", "c"}, missing
        keys = [json.loads(line)["key"] for line in record.read_text().splitlines()[1:]]
        assert keys == ["a", "b", "c"], missing


def test_a_file_of_another_run_is_refused(study, tmp_path):
    record = tmp_path / "s.jsonl"
    reproduce(study, record)
    other = Small(Datasets(), quick=False)
    with pytest.raises(ValueError, match=r"another run.*--fresh"):
        reproduce(other, record)
    record.write_text("")
    with pytest.raises(ValueError, match="another run"):
        reproduce(study, record)


def test_two_cells_of_one_name_are_a_mistake(study):
    study.cells = lambda: [Cell("a", dict), Cell("a", dict)]
    with pytest.raises(ValueError, match="'a' twice"):
        reproduce(study)


def test_results_that_are_not_plain_are_a_mistake(study):
    study.cells = lambda: [Cell("a", lambda: {"value": float("nan")})]
    with pytest.raises(ValueError, match="JSON"):
        reproduce(study)


def test_pages(study, tmp_path):
    findings, results = reproduce(study)
    assert write(tmp_path / "s", study, findings, results) == []
    page = (tmp_path / "s.md").read_text()
    assert page.startswith("# small2026\n\nNobody 2026, Nothing.")
    for text in (
        "| one is one | 1 | 1 | - | reproduces |",
        "| x |  |  | - | not judged |",
        "![line](s-line.png)",
        "nowhere",
        "Quick run",
    ):
        assert text in page
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["reproduces"] is True
    assert content["cells"] == results
    assert (tmp_path / "s-line.png").stat().st_size > 1000
    assert grid(Table("t", ("a|b",), [("c|d",)])).splitlines()[0] == r"| a\|b |"


def test_a_limit_of_a_fit_is_kept_and_printed(tmp_path):
    study = Small(Datasets(tmp_path), limit=2.0)
    assert study.limit_of_a_fit(1.0, 9.0) == 2.0
    assert Small(Datasets(tmp_path)).limit_of_a_fit(1.0, 9.0) == 9.0
    findings, results = reproduce(study, tmp_path / "s.jsonl")
    write(tmp_path / "s", study, findings, results)
    page = (tmp_path / "s.md").read_text()
    assert 'ARGS="--limit 2"' in page
    assert "every fit had at most 2 s" in page
    with pytest.raises(ValueError, match="belongs to another run"):
        reproduce(Small(Datasets(tmp_path)), tmp_path / "s.jsonl")


def test_data_sets(tmp_path):
    rows = "".join(f"{'+1' if k % 3 == 0 else '-1'} 1:{k} 2:{k % 5}\n" for k in range(60))
    (tmp_path / "own.svm").write_text(rows)
    data = Datasets(tmp_path)
    assert data.has("own")
    assert not data.has("own.t")
    split = data.split("own", most=30)
    assert (split.X.shape, split.X_test.shape) == ((30, 2), (12, 2))
    assert abs(split.X).max() == 1.0
    assert set(split.y) == {1, -1}
    (tmp_path / "own.t.svm").write_text("".join(rows.splitlines(keepends=True)[:20]))
    assert data.split("own").X.shape == (60, 2)
    with pytest.raises(ValueError, match="is not a folder"):
        Datasets(tmp_path / "nowhere")


def test_names():
    assert set(STUDIES) == {study.name for study in STUDIES.values()}
    with pytest.raises(ValueError, match="zhang2010"):
        get_study("zhang2011")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_study_runs_without_data(name, tmp_path, monkeypatch):
    """What needs data sets that are not there is left out, and named."""
    monkeypatch.delenv("SCORELINE_DATA", raising=False)
    monkeypatch.setenv("SCORELINE_CACHE", str(tmp_path))
    study = get_study(name)(Datasets(), quick=True)
    findings, results = reproduce(study, tmp_path / "s.jsonl")
    assert results
    assert findings.tables
    assert findings.claims
    assert all(len(row) == len(table.head) for table in findings.tables for row in table.rows)
    assert write(tmp_path / "s", study, findings, results) == []
    again, same = reproduce(study, tmp_path / "s.jsonl")
    assert same == results
    assert again.claims == findings.claims
