"""A real cluster of processes, started once: these tests are slow, and skipped by `make test`."""

import numpy as np
import pytest

distributed = pytest.importorskip("distributed")


def start(n_workers=2):
    """Worker processes with a nanny each, which starts a worker again that was killed."""
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=0,
        silence_logs=50,
    )


@pytest.fixture(scope="session")
def client():
    with start() as cluster, distributed.Client(cluster) as client:
        yield client


def rows(seed, n, p):
    """Rows that a worker can make again."""
    return np.random.default_rng(seed).standard_normal((n, p))


def labels(X, seed):
    p = X.shape[1]
    signal = X @ np.cos(np.arange(p)) / np.sqrt(p) + np.random.default_rng(1000 + seed).standard_normal(len(X))
    return np.where(signal > 1.2, 1, -1)
