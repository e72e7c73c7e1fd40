"""Frames of pandas and polars as Arrow tables, without importing either."""

import re
from typing import Any

from scoreline.io.columns import arrow, twice


def from_frame(source: Any) -> Any:
    """Return a frame as a `pyarrow.Table`, without importing pandas or polars."""
    package = type(source).__module__.partition(".")[0]
    pa: Any = arrow() if package in ("pandas", "polars", "pyarrow") else None
    if package == "pyarrow" and isinstance(source, pa.Table):
        return source
    if package == "pyarrow" and isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if package == "polars" and hasattr(source, "to_arrow") and hasattr(source, "columns"):
        try:
            return source.to_arrow()
        except Exception as error:  # polars has its own errors, which cannot be named without importing it
            raise ValueError(f"the frame cannot be converted to Arrow ({error}); drop columns of objects") from error
    if package == "pandas" and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        if twice(names):
            raise ValueError(f"the frame has the column {twice(names)[0]!r} more than once; rename one")
        for name, dtype in zip(names, source.dtypes, strict=True):
            if type(dtype).__name__ == "SparseDtype" or getattr(dtype, "kind", "") == "c":
                raise ValueError(
                    f"column {name!r} has dtype {dtype}, expected real numbers or text that is not sparse; convert it with "
                    "astype, or for sparse features pass a matrix of scipy.sparse instead of a table"
                )
        try:
            return pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            said = "; ".join(map(str, error.args))
            found = re.search(r"Conversion failed for column (.*) with type", said, re.S)
            where = f"column {found[1]!r}" if found else "the frame"
            raise ValueError(f"{where} mixes types or holds objects ({said}); convert it with astype") from error
    hint = "; call collect() first" if type(source).__name__ == "LazyFrame" else ""
    raise ValueError(
        f"source is a {type(source).__name__}, expected a path, a pandas or polars frame, or a pyarrow table{hint}"
    )
