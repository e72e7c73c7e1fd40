"""Workers that die, clusters that go away, clients that are killed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
import pytest
from made_rows import labels, rows, start, with_workers

from scoreline import MeasureClassifier
from scoreline.distributed.cluster import ClusterError
from scoreline.operators import as_operator

pytestmark = pytest.mark.slow

N, P, K = 40_000, 5, 4


def there():
    """Rows that are made on the workers: a block that is lost can be made again."""
    from dask import delayed

    return da.concatenate([da.from_delayed(delayed(rows)(k, N // K, P), (N // K, P), dtype=float) for k in range(K)])


def truth():
    return np.concatenate([labels(rows(k, N // K, P), k) for k in range(K)])


def fitted(X, y, measure="roc_auc", callbacks=(), **options):
    params = {"init": "zero", "callbacks": callbacks}
    clf = MeasureClassifier(measure, alpha=1e-5, tol=1e-5, max_iter=30, solver_params=params, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y)


@pytest.mark.parametrize("run", [0, 1, 2, *(pytest.param(run, marks=pytest.mark.soak) for run in range(3, 10))])
def test_a_worker_that_dies_costs_its_blocks_and_nothing_else(client, run):
    """Killed at another iteration in every run: the same bits as without."""
    with_workers(client)
    y, measure = truth(), ("roc_auc", "prbep", "f1")[run % 3]
    X = as_operator(there())  # the same parts for both: bits depend on them
    quiet = fitted(X, y, measure)
    killed = []

    def kill(now):
        if now.iteration == 1 + run % 4 and not killed:
            pids = client.run(os.getpid)
            victim = sorted(pids.items())[run % 2]
            os.kill(victim[1], signal.SIGKILL)
            killed.append(victim)

    disturbed = fitted(X, y, measure, [kill])
    assert killed
    np.testing.assert_array_equal(disturbed.coef_, quiet.coef_)
    assert disturbed.intercept_ == quiet.intercept_
    assert (disturbed.objective_, disturbed.gap_) == (quiet.objective_, quiet.gap_)
    here = fitted(np.concatenate([rows(k, N // K, P) for k in range(K)]), y, measure)
    assert abs(disturbed.objective_ - here.objective_) <= disturbed.gap_ + here.gap_


def test_all_workers_may_die_one_after_another(client):
    with_workers(client)
    y, X = truth(), as_operator(there())
    quiet = fitted(X, y)
    iterations = []

    def kill(now):
        if now.iteration in (2, 5):
            pids = sorted(client.run(os.getpid).items())
            os.kill(pids[len(iterations) % len(pids)][1], signal.SIGKILL)
            iterations.append(now.iteration)
            with_workers(client)

    disturbed = fitted(X, y, callbacks=[kill])
    assert iterations == [2, 5]
    np.testing.assert_array_equal(disturbed.coef_, quiet.coef_)


def test_a_lost_cluster_is_an_error_that_says_what_to_do():
    with start(1) as cluster, distributed.Client(cluster) as client:
        y = truth()

        def close(now):
            if now.iteration == 2:
                cluster.close()

        with pytest.raises(ClusterError, match="checkpoint"):
            fitted(there(), y, callbacks=[close])
        assert client is not None


def test_a_worker_that_nobody_starts_again_is_replaced():
    """What the tests above rely on where a nanny gives up."""
    with start(2) as cluster, distributed.Client(cluster) as client:
        nanny = next(iter(cluster.workers.values()))
        nanny.auto_restart = False
        os.kill(nanny.pid, signal.SIGKILL)
        while len(client.scheduler_info(n_workers=-1)["workers"]) == 2:
            time.sleep(0.05)
        with_workers(client, patience=2)
        assert len(client.run(os.getpid)) == 2


def test_no_client_and_no_workers():
    X = there()
    with pytest.raises(ValueError, match=r"Client\(\)"), without_client():
        MeasureClassifier().fit(X, truth())
    with start(0) as cluster, distributed.Client(cluster), pytest.raises(ClusterError, match="no workers"):
        MeasureClassifier().fit(X, truth())


class without_client:  # noqa: N801 - reads like a function
    """No client is active within, even where the session has one."""

    def __enter__(self):
        self._get = distributed.get_client
        distributed.get_client = self._missing

    def __exit__(self, *error):
        distributed.get_client = self._get

    @staticmethod
    def _missing(*arguments, **options):
        raise ValueError("No global client found and no address provided")


SCRIPT = """
import sys, time, warnings
sys.path.insert(0, {folder!r})
import numpy as np
from distributed import Client
from test_dask_faults import there, truth
from scoreline import MeasureClassifier
from scoreline.solvers import Checkpoint
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with Client({address!r}):
        params = {{"init": "zero", "checkpoint": Checkpoint({path!r}, every=2, seconds=0.0)}}
        if {slow}:
            params["callbacks"] = [lambda now: time.sleep(600.0 if now.iteration >= 4 else 0.0)]
        clf = MeasureClassifier("roc_auc", alpha=1e-5, tol=1e-5, max_iter=12, solver_params=params, threshold="none")
        clf.fit(there(), truth())
        np.save({out!r}, clf.coef_)
"""


def test_a_client_that_is_killed_leaves_a_checkpoint(client, tmp_path):
    """kill -9 halfway; the next client goes on and ends where one ends that was never killed, whose parts may differ."""
    with_workers(client)
    address = client.scheduler.address

    def script(name, slow):
        text = SCRIPT.format(
            folder=str(Path(__file__).parent), address=address, path=str(tmp_path / f"{name}.ckpt"),
            out=str(tmp_path / f"{name}.npy"), slow=slow,
        )  # fmt: skip
        return [sys.executable, "-c", textwrap.dedent(text)]

    subprocess.run(script("whole", False), check=True, timeout=1800)
    process = subprocess.Popen(script("killed", True))
    while not (tmp_path / "killed.ckpt").exists():
        assert process.poll() is None, "the fit ended before its first checkpoint"
        time.sleep(0.1)
    process.kill()  # in the fourth iteration at the latest, where its callback sleeps
    process.wait()
    assert not (tmp_path / "killed.npy").exists()
    assert (tmp_path / "killed.ckpt").exists()
    subprocess.run(script("killed", False), check=True, timeout=1800)
    killed, complete = (np.load(tmp_path / f"{name}.npy") for name in ("killed", "whole"))
    np.testing.assert_allclose(killed, complete, rtol=0, atol=1e-12 * np.abs(complete).max())  # sums in another order
