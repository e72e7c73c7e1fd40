"""Run all benchmarks, or those named: `python benchmarks/run.py [products roc_area ...]`; an unknown name lists them."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

NAMES = (
    "products", "roc_area", "best_threshold", "memory", "startup", "parallel", "solvers", "cutting_planes", "projection",
    "kernels",
)  # fmt: skip


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise SystemExit(f"unknown benchmark {unknown}; there are {list(NAMES)}")
    common.standalone(*(importlib.import_module(name) for name in names or NAMES))


if __name__ == "__main__":
    main(sys.argv[1:])
