"""Which tests run in which tier: see tiers.py."""

import re

from tiers import TIER

LEFT_OUT = {"quick": ("slow", "soak"), "all": ("soak",), "soak": ()}[TIER]


def pytest_ignore_collect(collection_path, config):
    """Do not import files that are left out as a whole: their imports (Dask, ONNX, ...) take seconds.

    Files called conftest.py hold no doctests; pytest would import them a second time under the same name.
    """
    if collection_path.name == "conftest.py":
        return True
    if LEFT_OUT and collection_path.suffix == ".py":
        mark = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(), re.MULTILINE)
        return True if mark and mark[1] in LEFT_OUT else None
    return None


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in LEFT_OUT)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    # The longest files first: a long test that begins last would keep one process busy while the others wait.
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)
