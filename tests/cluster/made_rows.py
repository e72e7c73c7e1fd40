"""Rows that workers can make again, and clusters of processes to make them on."""

import numpy as np


def start(n_workers=2):
    """Worker processes with a nanny each, which starts a worker again that was killed."""
    import distributed

    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=0,
        silence_logs=50,
    )


def with_workers(client, n_workers=2, patience=30):
    """Wait for as many workers; ask for new ones where a nanny gave up (it tries once to start a killed worker again)."""
    import distributed

    try:
        client.wait_for_workers(n_workers, timeout=patience)
    except distributed.TimeoutError:
        cluster = client.cluster
        missing = n_workers - len(client.scheduler_info(n_workers=-1)["workers"])
        cluster.scale(len(cluster.worker_spec) + missing)
        client.wait_for_workers(n_workers, timeout=600)


def rows(seed, n, p):
    return np.random.default_rng(seed).standard_normal((n, p))


def labels(X, seed):
    p = X.shape[1]
    signal = X @ np.cos(np.arange(p)) / np.sqrt(p) + np.random.default_rng(1000 + seed).standard_normal(len(X))
    return np.where(signal > 1.2, 1, -1)
