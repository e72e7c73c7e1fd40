"""Imports only go down the list of layers, and optional packages stay in their files."""

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

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
    "scorecards",
    "fitting",
    "objectives",
    "distributed",
    "gpu",
    "solvers",
    "objective",
    "penalties",
    "risks",
    "measures",
    "scores",
    "monitoring",
    "io",
    "features",
    "operators",
    "kernels",
    "runtime",
]
DOCUMENTED_BY_OTHERS = {"LinearMap"}  # by Operator
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
    "torch": {"gpu/kernels_triton.py", "objectives/torch_module.py"},
    "triton": {"gpu/kernels_triton.py"},
    "cupy": set(),
    "array_api_compat": set(),
    **{
        name: set()
        for name in (
            "pandas",
            "polars",
            "pyarrow",
            "matplotlib",
            "joblib",
            "rich",
            "tqdm",
            "onnx",
            "skl2onnx",
            "lightgbm",
            "xgboost",
            "catboost",
        )
    },
}


@cache
def trees():
    """Return {path: syntax tree} of the package."""
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


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


def wrong_arrows(own, tree):
    """Return what is wrong with the imports of a file in the room `own`."""
    at_the_top = set(imported_modules(tree, top_only=True))
    for module in imported_modules(tree):
        if not module.startswith("scoreline.") or module in NEUTRAL:
            continue
        target = module.split(".")[1]
        if target.startswith("__"):
            continue
        if (own, target) in SEPARATE:
            yield f"imports {module}, but {own} and {target} are kept apart"
        elif target in ON_DEMAND and own != target:
            if module in at_the_top:
                yield f"imports {module} at the top, expected inside a function"
        elif LAYERS.index(target) < LAYERS.index(own):
            yield f"imports {module}, which is further up"


def test_imports_go_down():
    wrong = [
        f"{path} {what}"
        for path, tree in trees().items()
        if layer(path.parts) != "__init__"
        for what in wrong_arrows(layer(path.parts), tree)
    ]
    assert not wrong


def test_wrong_imports_are_found():
    lines = {
        "risks": "from scoreline.solvers import LBFGSSolver",
        "solvers": "from scoreline.operators import as_operator",
        "fitting": "import scoreline.distributed",
    }
    for own, line in lines.items():
        assert len(list(wrong_arrows(own, ast.parse(line)))) == 1, line
    assert not list(wrong_arrows("fitting", ast.parse("def fit():\n    import scoreline.distributed")))


def is_any(annotation):
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left) or is_any(annotation.right)
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def annotated(tree):
    """Return (name, annotation) of all arguments and variables with a type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation


def test_operators_risks_and_spaces_have_types():
    wrong = [
        f"{path}:{annotation.lineno}: {name} is Any; use LinearMap, Risk ..."
        for path, tree in trees().items()
        if layer(path.parts) in TYPED_ROOMS
        for name, annotation in annotated(tree)
        if name in TYPED_NAMES and is_any(annotation)
    ]
    assert not wrong


def test_every_public_method_has_a_docstring():
    """A method that overrides another one may inherit its docstring, which ruff's D102 does not know."""
    for path in trees():
        if path.parts[0] not in {"operators", "scores", "risks", "measures", "solvers"}:
            continue
        module = importlib.import_module(".".join(["scoreline", *path.with_suffix("").parts]))
        for _, owner in inspect.getmembers(module, inspect.isclass):
            if owner.__module__ != module.__name__ or owner.__name__ in DOCUMENTED_BY_OTHERS:
                continue
            for name in vars(owner):
                is_method = callable(getattr(owner, name)) or isinstance(vars(owner)[name], property)
                if is_method and not name.startswith("_"):
                    documented = inspect.getdoc(getattr(owner, name)) or getattr(
                        getattr(ScoreSpace, name, None), "__doc__", ""
                    )
                    assert documented, f"{module.__name__}.{owner.__name__}.{name} has no docstring"


def test_optional_packages_stay_in_their_files():
    wrong = []
    for path, tree in trees().items():
        for module in imported_modules(tree, top_only=True):
            allowed = OPTIONAL.get(module.partition(".")[0])
            if allowed is not None and path.as_posix() not in allowed:
                wrong.append(f"{path} imports {module} at the top")
    assert not wrong


def test_the_layers_are_all_there():
    """A new room needs a place in LAYERS, and a renamed one its new name."""
    assert {layer(path.parts) for path in trees()} - {"__init__"} == set(LAYERS)


SHORT_CALLS = ("classifier", "fitting", "model_selection")
PUBLIC = {
    "compare",
    "scorecard",
    "fit",
    "tune_threshold",
}  # whose parameters are given by users, like those of estimators


def test_functions_take_at_most_six_arguments():
    """More than that is a record that nobody has named yet."""
    long = []
    for path, tree in trees().items():
        if layer(path.parts) not in SHORT_CALLS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in {"__init__", *PUBLIC}:
                given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len([name for name in given if name not in ("self", "cls")]) > 6:
                    long.append(f"{path}: {node.name}")
    assert not long


def test_the_classifier_is_one_class():
    """What it does, it asks of objects: no mixins of its own."""
    own = [base.__module__ for base in scoreline.MeasureClassifier.__mro__ if base.__module__.startswith("scoreline.")]
    assert own == ["scoreline.classifier"]
