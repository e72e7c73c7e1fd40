"""Numba functions on 1-D arrays, one module per kind of work.

Importing Numba takes a third of a second and compiling takes longer, so the modules are loaded on first use:
``from scoreline import kernels`` is free, and ``kernels.csr.gather`` imports ``kernels/csr.py``.
"""

import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scoreline.kernels import balance as balance
    from scoreline.kernels import vectors as vectors


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
