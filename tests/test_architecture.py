"""Imports only go down the list of layers, and optional packages stay in their files."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import scoreline
from scoreline.scores import ScoreSpace

ROOT = Path(scoreline.__file__).parent
# A module may import from its own layer and from layers further down.
LAYERS = [
    "testing",
    "__main__",
    "cli",
    "report",
    "export",
    "model_selection",
    "classifier",
    "fitting",
    "distributed",
    "gpu",
    "solvers",
    "objective",
    "risks",
    "measures",
    "scores",
    "io",
    "operators",
    "kernels",
    "runtime",
]
DOCUMENTED_ELSEWHERE = {"LinearMap"}  # by Operator
# Rooms that other rooms import inside of functions only, when Dask data or an array of a device come in.
ON_DEMAND = {"distributed", "gpu"}
# Arrows that point down and are forbidden all the same: X and labels meet in objective.py only.
SEPARATE = {("risks", "operators"), ("scores", "operators"), ("measures", "operators"), ("solvers", "operators")}
# Records of numbers and the contract of an operator: they know no storage.
NEUTRAL = {f"scoreline.operators.{name}" for name in ("linear_map", "moments", "statistics")}
# Where these names are annotated, their types say what is used of them; `Any` would get round SEPARATE.
TYPED_NAMES = {"operator", "risk", "objective", "space", "measure"}
TYPED_ROOMS = {"solvers", "risks", "scores", "measures", "objective"}
# Packages beyond the core, and the files that may import them at the top.
OPTIONAL = {
    "dask": {"distributed/dask_operator.py"},
    "distributed": {"distributed/dask_operator.py"},
    "torch": {"gpu/kernels_triton.py"},
    "triton": {"gpu/kernels_triton.py"},
    "cupy": set(),
    "array_api_compat": set(),
    **{
        name: set()
        for name in ("pandas", "polars", "pyarrow", "matplotlib", "joblib", "rich", "tqdm", "onnx", "skl2onnx")
    },
}
FILES = sorted(ROOT.rglob("*.py"))


def imported_modules(tree, top_only=False):
    nodes = tree.body if top_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only: they can be searched for"
            yield node.module
            if node.module == "scoreline":
                yield from (f"scoreline.{alias.name}" for alias in node.names)


def layer(parts):
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    relative = path.relative_to(ROOT)
    own = layer(relative.parts)
    if own == "__init__":
        return
    assert own in LAYERS, f"{relative}: new room {own}, give it a place in LAYERS"
    tree = ast.parse(path.read_text())
    at_the_top = set(imported_modules(tree, top_only=True))
    for module in imported_modules(tree):
        if not module.startswith("scoreline.") or module.split(".")[1].startswith("__"):
            continue
        target = module.split(".")[1]
        if module in NEUTRAL:
            continue
        assert (own, target) not in SEPARATE, f"{relative} imports {module}: {own} and {target} are kept apart"
        if target in ON_DEMAND and own != target:
            assert module not in at_the_top, f"{relative} imports {module} at the top, expected inside of a function"
            continue
        assert LAYERS.index(target) >= LAYERS.index(own), f"{relative} imports {module}: an upward arrow"


def is_any(annotation):
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left) or is_any(annotation.right)
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_operators_risks_and_spaces_have_types(path):
    relative = path.relative_to(ROOT)
    if layer(relative.parts) not in TYPED_ROOMS:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        assert not (name in TYPED_NAMES and is_any(node.annotation)), (
            f"{relative}:{node.lineno}: {name} is Any; use LinearMap, Risk ..."
        )


def test_every_public_method_has_a_docstring():
    """A method that overrides another one may inherit its docstring, which ruff's D102 does not know."""
    for path in FILES:
        relative = path.relative_to(ROOT).with_suffix("")
        if relative.parts[0] not in {"operators", "scores", "risks", "measures", "solvers"}:
            continue
        module = importlib.import_module(".".join(["scoreline", *relative.parts]))
        for _, owner in inspect.getmembers(module, inspect.isclass):
            if owner.__module__ != module.__name__ or owner.__name__ in DOCUMENTED_ELSEWHERE:
                continue
            for name in vars(owner):
                is_method = callable(getattr(owner, name)) or isinstance(vars(owner)[name], property)
                if is_method and not name.startswith("_"):
                    documented = inspect.getdoc(getattr(owner, name)) or getattr(
                        getattr(ScoreSpace, name, None), "__doc__", ""
                    )
                    assert documented, f"{module.__name__}.{owner.__name__}.{name} has no docstring"


def test_rooms_on_demand_are_not_imported_with_the_package():
    command = "import sys, scoreline; print([name for name in sys.modules if name.startswith('scoreline.')])"
    loaded = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert "scoreline.solvers" in loaded
    assert not any(f"scoreline.{room}" in loaded for room in ON_DEMAND)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_optional_packages_stay_in_their_files(path):
    relative = path.relative_to(ROOT).as_posix()
    tree = ast.parse(path.read_text())
    for module in imported_modules(tree, top_only=True):
        package = module.partition(".")[0]
        assert relative in OPTIONAL.get(package, {relative}), f"{relative} imports {module} at the top"


def test_the_layers_are_all_there():
    """A layer that was renamed must be renamed in the list too."""
    present = {layer(p.relative_to(ROOT).parts) for p in FILES} - {"__init__"}
    assert present <= set(LAYERS)
    assert {"operators", "risks", "solvers", "objective", "fitting"} <= present


SHORT_CALLS = ("classifier", "fitting", "model_selection")
PUBLIC = {"compare"}  # whose parameters are options of the user, like those of estimators


@pytest.mark.parametrize("room", SHORT_CALLS)
def test_functions_take_at_most_six_arguments(room):
    """More than that is a record that nobody has named yet."""
    long = []
    for path in FILES:
        if layer(path.relative_to(ROOT).parts) != room:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name not in {"__init__", *PUBLIC}:
                given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len([name for name in given if name not in ("self", "cls")]) > 6:
                    long.append(f"{path.name}: {node.name}")
    assert not long


def test_the_classifier_is_one_class():
    """What it does, it asks of objects: no mixins of its own."""
    own = [base.__module__ for base in scoreline.MeasureClassifier.__mro__ if base.__module__.startswith("scoreline.")]
    assert own == ["scoreline.classifier"]
