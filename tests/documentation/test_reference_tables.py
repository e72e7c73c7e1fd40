"""The reference pages have the tables that the code gives: options, measures, solvers."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
tables = runpy.run_path(str(DOCS / "tables.py"))


@pytest.mark.parametrize("page", sorted(tables["MADE"]))
def test_the_tables_are_those_of_the_code(page):
    assert (DOCS / page).read_text(encoding="utf-8") == tables["renewed"](page), "run: python docs/tables.py"


def test_every_measure_and_solver_is_listed():
    import scoreline

    for page, infos in {"measures.md": scoreline.list_measures(), "solvers.md": scoreline.list_solvers()}.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        assert not [info.name for info in infos if text.count(f"\n| `{info.name}` |") != 1], page
