"""More than 2^31 stored entries, in files that are holes for the most part: they take no space."""

import json
import os

import numpy as np
import pytest

from scoreline.io import open_mapped

pytestmark = pytest.mark.soak

ROWS, WIDTH, EACH = 2200, 1_000_000, 1_000_000  # 2.2e9 entries
LAST = 50  # rows that have entries other than 0, at the end of the file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write rows of a million entries; a row names every column once, which the mapped format promises."""
    folder = tmp_path_factory.mktemp("huge")
    entries, rng = ROWS * EACH, np.random.default_rng(0)
    indptr = np.arange(ROWS + 1, dtype=np.int64) * EACH
    # Indices of the rows before are all holes, 0: what is stored there is 0 too, in whatever column.
    for name, dtype in (("data", np.float32), ("indices", np.int32)):
        array = np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=(entries,))
        for row in range(ROWS - LAST, ROWS):
            at = slice(int(indptr[row]), int(indptr[row + 1]))
            array[at] = rng.standard_normal(EACH) if name == "data" else np.arange(EACH)
        del array
    np.save(folder / "indptr.npy", indptr)
    np.save(folder / "labels.npy", (np.arange(ROWS) % 2).astype(np.int8))
    np.save(folder / "largest.npy", np.full(WIDTH, 6.0))
    files = {path.name: {"bytes": path.stat().st_size, "crc32": 0} for path in folder.glob("*.npy")}
    header = {
        "format": "scoreline mapped data",
        "version": 1,
        "storage": "csr",
        "shape": [ROWS, WIDTH],
        "entries": entries,
    }
    rest = {"dtype": "float32", "classes": [-1, 1], "names": None, "encoding": None, "files": files}
    (folder / "header.json").write_text(json.dumps(header | rest))
    used = sum(os.stat(path).st_blocks * 512 for path in folder.glob("*.npy"))
    if used > 4 << 30:
        pytest.skip(f"this file system does not leave holes: {used >> 30} GiB are in use")
    return folder


def test_products_reach_beyond_two_to_the_31(folder):
    data = open_mapped(folder)
    assert data.X.shape == (ROWS, WIDTH)
    assert np.load(folder / "indptr.npy")[-1] > 2**31
    w = np.random.default_rng(1).standard_normal(WIDTH)
    values = np.load(folder / "data.npy", mmap_mode="r")
    expected = np.array([values[r * EACH : (r + 1) * EACH].astype(np.float64) @ w for r in range(ROWS - LAST, ROWS)])
    rows = np.arange(ROWS - LAST, ROWS)
    np.testing.assert_allclose(data.X.matvec_rows(w, rows), expected, rtol=1e-9, atol=1e-9)
    z = data.X.matvec(w)
    assert not z[: ROWS - LAST].any()
    assert np.array_equal(z[ROWS - LAST :], data.X.matvec_rows(w, rows))
    u = np.zeros(ROWS)
    u[-3:] = [1.0, -2.0, 0.5]
    expected = sum(u[r] * values[r * EACH : (r + 1) * EACH].astype(np.float64) for r in range(ROWS - 3, ROWS))
    np.testing.assert_allclose(data.X.rmatvec(u), expected, rtol=1e-12, atol=1e-12)
    block = data.X.on_rows(rows[-2:])
    np.testing.assert_allclose(block.matvec(w), z[-2:], rtol=1e-12)
