"""The cache of compiled kernels: shared by processes, cut short, left by another version. It costs a compilation at most."""

import importlib.util
import itertools
import shutil
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from cases import for_each
from scoreline.runtime.compile import kernel
from tiers import TIER

SOURCE = "def total(x):\n    s = 0.0\n    for i in range(len(x)):\n        s += x[i]\n    return s{}\n"
# As many bytes: code for one reads the other without a word.
INTEGERS, REAL = np.array([1, 2, 3]), np.array([0.5, 0.25, 0.125])


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Return a function that makes the kernel as another process would: its own object, the same source, the same cache."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def make(more=""):
        path = tmp_path / "one_kernel.py"
        if not path.exists() or path.read_text() != SOURCE.format(more):
            path.write_text(SOURCE.format(more))
        module_spec = importlib.util.spec_from_file_location("one_kernel", path)
        module = importlib.util.module_from_spec(module_spec)
        monkeypatch.setitem(sys.modules, "one_kernel", module)  # where Numba looks for it once the first kernel is gone
        module_spec.loader.exec_module(module)
        return kernel(module.total)

    return make


def files(tmp_path, ending):
    return sorted((tmp_path / "cache").rglob(f"*.{ending}"))


def loaded(function):
    return sum(function.stats.cache_hits.values())


def test_what_one_process_compiles_another_loads(cached, tmp_path):
    assert (cached()(INTEGERS), cached()(REAL)) == (6.0, 0.875)
    again = cached()
    assert (again(INTEGERS), again(REAL)) == (6.0, 0.875)
    assert loaded(again) == 2
    assert len(files(tmp_path, "nbc")) == 2


def test_two_processes_that_write_at_once_do_not_get_each_others_code(cached):
    """Both find an empty cache, both took file number 1: then the index of B led to the code of A, made for other types."""
    a, b = cached(), cached()
    b._cache._cache_file._load_index = dict  # it looked before A had written anything
    write = a._cache._cache_file._save_data

    def meanwhile(name, data):
        assert b(REAL) == 0.875  # B writes all of its own before A's code is on the disk
        write(name, data)

    a._cache._cache_file._save_data = meanwhile
    assert a(INTEGERS) == 6.0
    for values, expected in ((REAL, 0.875), (INTEGERS, 6.0)):
        assert cached()(values) == expected


@pytest.mark.slow
def test_a_process_that_ends_while_it_writes_leaves_nothing_wrong(cached):
    """An index that was there before the code led to what lay under that number: code of an earlier version."""
    assert cached()(INTEGERS) == 6.0  # an earlier version, whose files stay
    changed = cached(" + 100.0")

    def killed(name, data):
        raise OSError("killed")

    changed._cache._cache_file._save_data = killed
    assert changed(INTEGERS) == 106.0
    assert cached(" + 100.0")(INTEGERS) == 106.0


DAMAGE = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "twenty bytes": lambda content: content[:20],
    "half": lambda content: content[: len(content) // 2],
    "nearly whole": lambda content: content[: int(0.99 * len(content))],
    "something else": lambda content: b"\x00" * 1000,
}


@for_each(("ending", "damage"), [("nbc", "half")] if TIER == "quick" else itertools.product(("nbi", "nbc"), DAMAGE))
def test_damaged_files_are_made_again(ending, damage, cached):
    folder = Path(numba.config.CACHE_DIR).parent  # of all cases
    shutil.rmtree(folder / "cache", ignore_errors=True)
    assert cached()(INTEGERS) == 6.0
    (path,) = files(folder, ending)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert cached()(INTEGERS) == 6.0
    assert loaded_after_a_call(cached) == 1, "it was not written again"


def loaded_after_a_call(cached):
    again = cached()
    assert again(INTEGERS) == 6.0
    return loaded(again)


@pytest.mark.slow
def test_a_file_that_is_gone_is_made_again(cached, tmp_path):
    assert cached()(INTEGERS) == 6.0
    files(tmp_path, "nbc")[0].unlink()
    assert cached()(INTEGERS) == 6.0
    assert loaded_after_a_call(cached) == 1


@pytest.mark.slow
def test_versions_do_not_pile_up(cached, tmp_path):
    for k in range(4):
        assert cached(f" + {k}.0")(INTEGERS) == 6.0 + k
    assert len(files(tmp_path, "nbc")) == 1
