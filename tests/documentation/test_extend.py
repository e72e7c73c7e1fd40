"""The files of docs/extend.md, put into their packages: the registries find them, and they keep their contracts."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import scoreline.measures.registry
import scoreline.risks.registry
import scoreline.solvers.registry
from scoreline import MeasureClassifier, list_measures, list_solvers
from scoreline.testing import check_operator, check_risk, check_solver

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extend.md"
FILE = re.compile(r"^```python\n# new file: (\w+)/(\w+)\.py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TEXT = PAGE.read_text(encoding="utf-8")
FILES = {folder: (name, text) for folder, name, text in FILE.findall(TEXT)}
REGISTRIES = (
    scoreline.measures.registry.all_measures,
    scoreline.risks.registry.all_risks,
    scoreline.solvers.registry.all_solvers,
)


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Return a function that puts the page's file for a folder into that package and returns its module."""
    names = []

    def add(folder):
        name, text = FILES[folder]
        package = importlib.import_module(f"scoreline.{folder}")
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        names.append((package, name))
        for registry in REGISTRIES:
            registry.cache_clear()
        return importlib.import_module(f"scoreline.{folder}.{name}")

    yield add
    monkeypatch.undo()
    for package, name in names:
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)
    for registry in REGISTRIES:
        registry.cache_clear()


def test_the_page_has_one_file_of_each_kind():
    assert set(FILES) == {"measures", "risks", "solvers", "operators"}


def test_the_recipe_names_every_table_that_lists_all_count_measures():
    recipe = " ".join(TEXT.split("\n## A measure\n")[1].split("```")[0].split())
    places = {
        (table, path.relative_to(ROOT).as_posix())
        for path in (ROOT / "tests").rglob("test_*.py")
        for table in re.findall(r"^ +assert set\((\w+)\) == set\(COUNT", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(places) >= 2
    assert not [(table, path) for table, path in places if f"`{table}` of `{path}`" not in recipe]
    assert all((ROOT / path).is_file() for path in re.findall(r"`((?:tests|docs)/\S+\.\w+)`", recipe))


def test_measure(added):
    added("measures")
    assert "fowlkes_mallows" in {info.name for info in list_measures()}
    X, y = load_breast_cancer(return_X_y=True)
    clf = MeasureClassifier("fowlkes_mallows", scaling="standard").fit(X, y)
    found = clf.predict(X)
    precision, recall = y[found == 1].mean(), found[y == 1].mean()
    assert clf.score(X, y) == pytest.approx(np.sqrt(precision * recall), abs=1e-14)
    assert clf.score(X, y) > 0.97


def test_risk(added):
    module = added("risks")
    check_risk(module.RankedLogisticRisk())
    assert "ranked_logistic" in {info.name: info for info in list_solvers()}["lbfgs"].risks
    X, y = load_breast_cancer(return_X_y=True)
    clf = MeasureClassifier("roc_auc", risk="ranked_logistic", scaling="standard").fit(X, y)
    assert (clf.risk_, clf.status_) == ("ranked_logistic", "converged")


def test_solver(added):
    module = added("solvers")
    assert "conjugate" in {info.name for info in list_solvers()}
    check_solver(module.ConjugateSolver)
    X, y = load_breast_cancer(return_X_y=True)
    clf = MeasureClassifier("accuracy", risk="logistic", solver="conjugate", scaling="standard").fit(X, y)
    assert clf.status_ == "converged"


def test_storage(added):
    module = added("operators")
    codes = np.random.default_rng(0).integers(0, (3, 50, 7), size=(200, 3))
    operator = module.CategoriesOperator(codes, sizes=[3, 50, 7])
    check_operator(operator, np.hstack([np.eye(k)[column] for k, column in zip((3, 50, 7), codes.T, strict=True)]))


def test_nothing_is_left_behind():
    assert "fowlkes_mallows" not in {info.name for info in list_measures()}
    assert not {"conjugate"} & {info.name for info in list_solvers()}
