"""docs/api.md: ten names first, then groups; what the code marks as research comes last, there and in all lists."""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import scoreline
from scoreline.measures import Measure, all_measures
from scoreline.risks.base import Risk
from scoreline.risks.registry import all_risks
from scoreline.solvers.common.method import Method
from scoreline.solvers.registry import all_solvers

PAGE = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
FIRST = (
    "MeasureClassifier", "MeasureClassifierCV", "load_model", "CountMeasure", "list_measures", "list_solvers",
    "get_scorer", "best_threshold", "read_data", "compare",
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
    names = [
        "Measures",
        "Features",
        "Scorecards and monitoring",
        "Thresholds for other classifiers",
        "Blends of classifiers",
        "Objectives for other libraries",
        "Risks",
        "Penalties",
        "Solvers",
        "Data",
        "Report",
        "Export",
        "Extending",
        "Research",
    ]
    assert list(GROUPS)[1:] == names
    assert all(GROUPS.values())


def test_every_name_exists_and_stands_once():
    assert not [path for path in PATHS if not documented(path).__doc__]
    assert not [path for path in PATHS if PATHS.count(path) > 1]


def test_the_names_of_the_package_are_there():
    assert {f"scoreline.{name}" for name in scoreline.__all__ if not name.startswith("_")} <= set(PATHS)


def marked():
    """Return the classes that the code marks as research."""
    known = [*all_solvers().values(), *all_risks().values(), *all_measures().values()]
    return {each for each in known if each.research}


def test_the_research_group_is_what_the_code_marks():
    named = {path: documented(path) for path in PATHS}
    kinds = {
        path: each
        for path, each in named.items()
        if inspect.isclass(each) and issubclass(each, (Method, Risk, Measure))
    }
    assert {kinds[path] for path in GROUPS["Research"] if path in kinds} == marked()
    assert not {kinds[path] for path in kinds if path not in GROUPS["Research"]} & marked()
    assert {each.name for each in marked()} == {
        "bundle", "bundle_ls", "accelerated", "excessive_gap", "contingency_entropy", "hinge_free_intercept", "gower_legendre",
    }  # fmt: skip


def test_the_research_group_names_the_options_that_the_code_marks():
    options = {(solver, option) for solver in all_solvers().values() for option in solver.research_options}
    prose = " ".join(PAGE.split("\n## Research\n")[1].split("```")[0].split())
    assert set(re.findall(r"`(\w+)` of `(\w+)`", prose)) == {(option, solver.__name__) for solver, option in options}
    assert options == {(all_solvers()["hybrid"], "shrink")}
    assert all(option in solver.options() for solver, option in options)


def test_every_other_solver_and_risk_is_on_the_page():
    classes = {documented(path) for path in PATHS}
    assert {*all_solvers().values(), *all_risks().values()} <= classes


def test_the_tables_of_the_mathematics_have_research_last():
    page = (Path(__file__).parents[2] / "docs/math/index.md").read_text(encoding="utf-8")
    for kind, known in {"Measures": all_measures, "Risks": all_risks, "Solvers": all_solvers}.items():
        usual, _, research = page.split(f"\n## {kind}\n")[1].split("\n## ")[0].partition("\n### Research")
        first, last = (
            {
                name
                for line in text.splitlines()
                if line.startswith("| `")
                for name in re.findall(r"`(\w+)`", line.split("|")[1])
            }
            for text in (usual, research)
        )
        change = f"change the tables of {kind.lower()} in docs/math/index.md: see docs/extend.md"
        assert last == {each.name for each in known().values() if each.research}, change
        assert first == {each.name for each in known().values() if not each.research}, change


def test_lists_tell_what_is_research():
    research = {info.name for info in [*scoreline.list_measures(), *scoreline.list_solvers()] if info.research}
    assert research == {each.name for each in marked() if not issubclass(each, Risk)}


def chosen(shape, measure, risk="auto"):
    """Return the names of the solver and the risk that a fit of few iterations chooses."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    y = X[:, 0] + rng.standard_normal(shape[0]) > 0.3
    clf = scoreline.MeasureClassifier(measure, risk=risk, max_iter=3).fit(X, y)
    return clf.solver_, clf.risk_


@pytest.mark.filterwarnings("ignore")  # three iterations do not converge
def test_auto_never_chooses_research():
    for measure in sorted(set(all_measures()) - {"gower_legendre"}):
        assert not any(all_risks()[name].research for name in all_measures()[measure].contenders), measure
        for shape in ((240, 2), (40, 6)):  # ample rows, few rows
            solver, risk = chosen(shape, measure)
            assert not all_solvers()[solver].research, (measure, shape)
            assert not all_risks()[risk].research, (measure, shape)


@pytest.mark.filterwarnings("ignore")  # three iterations do not converge
def test_auto_chooses_no_research_solver_for_any_risk():
    for wanted in sorted(all_risks()):
        measure = next(info.name for info in scoreline.list_measures() if wanted in info.risks)
        solver, risk = chosen((40, 3), measure, wanted)
        assert risk == wanted
        assert not all_solvers()[solver].research, wanted
