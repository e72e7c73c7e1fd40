"""Optional packages: imported when needed; the error for a missing one says how to install it."""

import importlib
from typing import Any


def require(module: str, extra: str, purpose: str) -> Any:
    """Import and return `module`, or raise ImportError that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which is not installed. Install it with: pip install 'scoreline[{extra}]'"
        ) from error
