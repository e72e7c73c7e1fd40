"""What solvers and data sets share. benchopt makes this folder importable; `benchmarks/` and `studies/` are added here."""

import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[2]
sys.path += [str(folder) for folder in (BENCHMARKS, BENCHMARKS.parent) if str(folder) not in sys.path]


def stored_sets() -> Any:
    """Return the data sets of the folder SCORELINE_DATA and of the cache; nothing is downloaded."""
    from studies.datasets import Datasets

    return Datasets()
