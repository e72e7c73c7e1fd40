"""Numba functions on 1-D arrays, one module per kind of work.

Importing Numba costs a third of a second and compiling costs more, so the modules below load on first use:
``from scoreline import kernels`` is free, ``kernels.csr.gather`` imports ``kernels/csr.py``.
"""

import importlib
from types import ModuleType

_MODULES = (
    "balance",
    "brackets",
    "columns",
    "contingency",
    "csr",
    "cuts",
    "dense",
    "dual_regions",
    "exponential",
    "gram",
    "marginals",
    "point_updates",
    "pointwise",
    "quantiles",
    "ramps",
    "rankings",
    "shuffle",
    "simplex",
    "vectors",
)


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
