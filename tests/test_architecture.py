"""Imports only go down the list of layers, and optional packages stay in their files."""

import ast
from pathlib import Path

import pytest

import scoreline

ROOT = Path(scoreline.__file__).parent
# A module may import from its own layer and from layers further down.
LAYERS = [
    "testing",
    "__main__",
    "cli",
    "reproduce",
    "report",
    "export",
    "estimators",
    "solvers",
    "objective",
    "risks",
    "measures",
    "scorespace",
    "data",
    "operators",
    "moments",
    "_blocks",
    "_device_vector",
    "_vectors",
    "_cluster",
    "kernels",
    "model_file",
    "_memory",
    "_backend",
    "_optional",
    "_logging",
    "_checks",
    "_registry",
    "_files",
    "_npy",
    "_typing",
]
# Arrows that point down and are forbidden all the same: X and labels meet in objective.py only.
SEPARATE = {("risks", "operators"), ("scorespace", "operators"), ("measures", "operators"), ("solvers", "operators")}
# Packages beyond the core, and the files that may import them at the top.
OPTIONAL = {
    "dask": {"operators/dask.py", "scorespace/blocks.py"},
    "distributed": {"operators/dask.py", "scorespace/blocks.py"},
    "torch": {"kernels/device_triton.py"},
    "triton": {"kernels/device_triton.py"},
    "cupy": {"kernels/device_cuda.py"},
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
    tree = ast.parse(path.read_text())
    for module in imported_modules(tree):
        if not module.startswith("scoreline."):
            continue
        target = module.split(".")[1]
        if target.startswith("__") or own == "__init__":
            continue
        assert own in LAYERS, f"{relative}: new layer {own}, give it a place in LAYERS"
        assert LAYERS.index(target) >= LAYERS.index(own), f"{relative} imports {module}: an upward arrow"
        assert (own, target) not in SEPARATE, f"{relative} imports {module}: {own} and {target} are kept apart"


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
    assert {"operators", "risks", "solvers", "objective", "estimators"} <= present
