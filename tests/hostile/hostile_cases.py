"""What the tests of hostile files share: rows, a model, memory that a call takes, a process of its own."""

import io
import json
import os
import tracemalloc
import zipfile
from functools import cache

import numpy as np

from scoreline import MeasureClassifier
from scoreline.io.model_archive import HEADER


@cache
def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + rng.standard_normal(n) > 0.5).astype(int)


@cache
def fitted(probability=False):
    return MeasureClassifier("f1", max_iter=5, probability=probability, random_state=0).fit(*rows())


def peak_of(call):
    """Return the most memory that Python and NumPy had at a time during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def in_child(action, uid=None):
    """Run an action in a process of its own, as another user if asked; return its exit code, 7 for an exception."""
    child = os.fork()
    if child == 0:
        code = 7
        try:
            if uid is not None and os.geteuid() == 0:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def with_sparse(shapes):
    """Return an archive with a sparse array of one entry for each shape: a few hundred bytes."""
    file = io.BytesIO()
    content = {f"a{k}": {"$sparse": ["array0", "array1"], "shape": shape} for k, shape in enumerate(shapes)}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(HEADER, json.dumps({"format": "x", "version": 1, "content": content}))
        for k, array in enumerate((np.zeros(1, dtype=np.int64), np.ones(1))):
            raw = io.BytesIO()
            np.lib.format.write_array(raw, array)
            archive.writestr(f"array{k}.npy", raw.getvalue())
    return file.getvalue()
