"""docs/api.md: ten names first, then groups; every name exists and stands once."""

import importlib
import re
from pathlib import Path

import pytest

import scoreline

PAGE = (Path(__file__).parents[1] / "docs/api.md").read_text(encoding="utf-8")
FIRST = (
    "MeasureClassifier", "MeasureClassifierCV", "load_model", "CountMeasure", "list_measures", "list_solvers",
    "get_scorer", "best_cut", "read_data", "compare",
)  # fmt: skip
GROUPS = {
    title: re.findall(r"^\.\. auto(?:class|function):: (\S+)$", text, re.MULTILINE)
    for title, _, text in (section.partition("\n") for section in PAGE.split("\n## ")[1:])
}
PATHS = [path for paths in GROUPS.values() for path in paths]


def documented(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_ten_names_come_first():
    assert tuple(path.rpartition(".")[2] for path in next(iter(GROUPS.values()))) == FIRST


def test_groups_and_their_order():
    names = ["Measures", "Risks", "Solvers", "Data", "Report", "Export", "Extending", "Research"]
    assert list(GROUPS)[1:] == names
    assert all(GROUPS.values())


@pytest.mark.parametrize("path", PATHS)
def test_a_name_exists_and_stands_once(path):
    assert documented(path).__doc__
    assert PATHS.count(path) == 1


def test_the_names_of_the_package_are_there():
    assert {f"scoreline.{name}" for name in scoreline.__all__ if not name.startswith("_")} <= set(PATHS)
