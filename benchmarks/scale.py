"""Training on a Dask cluster of this machine compared with training in memory: seconds and bytes of an iteration.

    python benchmarks/scale.py [--rows 5e6] [--features 50 100 200] [--workers 2] [--risks roc_area hinge prbep] [--quick]

Float32 rows, one positive in about a hundred. Workers have one thread each; in memory as many threads are used, and the two
take turns. L-BFGS from 0 without a Hessian, so that all iterations do the same: two products, and the evaluations of a line
search. Bytes are those counted, those of the cost model (benchmarks/scale_model.py) for as many evaluations, and those that the
loopback device moved, which has the protocol and what Dask itself says on top.
"""

import argparse
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

import scale_model as model
from scoreline.distributed.score_space import Space as BlockSpace
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.runtime import parallel
from scoreline.solvers.smoothed import SmoothedSolver

NAME, TITLE = "scale", "training on a cluster compared with training in memory"
ITERATIONS, TURNS = 8, 3


def rows(seed: int, n: int, p: int) -> Any:
    """Return a block of rows."""
    return np.random.default_rng(seed).standard_normal((n, p), dtype=np.float32)


def labels(X: Any, seed: int) -> Any:
    """Return labels that a linear model half explains, one positive in about a hundred."""
    w = np.random.default_rng(7).standard_normal(X.shape[1]).astype(np.float32)
    signal = X @ (w / np.sqrt(X.shape[1])) + np.random.default_rng(1000 + seed).standard_normal(len(X))
    return np.where(signal > 3.29, 1, -1).astype(np.int8)


def loopback() -> float:
    """Return the bytes that the loopback device has moved; 0 where that is not known."""
    path = Path("/proc/net/dev")
    lines = path.read_text().splitlines() if path.exists() else []
    return float(next((line.split(":")[1].split()[0] for line in lines if line.strip().startswith("lo:")), 0.0))


def seconds(objective: Objective, threads: int | None = None) -> tuple[float, Any]:
    """Return the median seconds of an iteration after the first, and the result."""
    solver = SmoothedSolver(tol=1e-12, init="zero", max_iter=ITERATIONS, precondition=False)
    with parallel.thread_limit(threads):
        result = solver.solve(objective)
    return float(np.median(np.diff(result.history["seconds"])[1:])), result


def measured(n: int, p: int, risk: str, workers: int) -> dict[str, float]:
    """Return the figures of one case."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    blocks = 2 * workers
    size = n // blocks
    pieces = [rows(k, size, p) for k in range(blocks)]
    y = np.concatenate([labels(piece, k) for k, piece in enumerate(pieces)])
    X = np.concatenate(pieces)
    del pieces
    here = Objective(as_operator(X), get_risk(risk).prepare(y), 1e-5)
    seconds(here, workers)  # compiled
    own = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
        "memory_limit": 0,
    }
    with LocalCluster(**own) as cluster, Client(cluster):
        made = [da.from_delayed(dask.delayed(rows)(k, size, p), (size, p), dtype=np.float32) for k in range(blocks)]
        operator = as_operator(da.concatenate(made))
        there = Objective(operator, get_risk(risk).prepare(operator.aligned(y), None, BlockSpace()), 1e-5)
        seconds(there)
        memory, remote = [], []
        for _ in range(TURNS):  # in turns: a machine is not equally fast all the time
            memory.append(seconds(here, workers)[0])
            before, counted = loopback(), operator.traffic
            remote.append(seconds(there)[0])
            wire, counted = loopback() - before, operator.traffic - counted
        result = seconds(there)[1]
        z = operator.matvec(result.w)
        once = operator.traffic
        begin = time.perf_counter()
        there.risk.evaluate(z, 0.03 / (there.risk.ramp_scale or 1.0))
        evaluation, once = time.perf_counter() - begin, operator.traffic - once
    problem = model.Problem(float(len(y)), p, float(np.count_nonzero(y > 0)))
    return {
        "positives": float((y > 0).mean()), "memory s": float(np.median(memory)), "cluster s": float(np.median(remote)),
        "ratio": float(np.median(remote) / np.median(memory)), "lowest ratio": float(min(remote) / min(memory)),
        "evaluation s": evaluation, "bytes of an evaluation": once,
        "model": model.evaluation_bytes(risk, problem, model.Shape(workers)), "share of 8n": once / (8.0 * len(y)),
        "bytes of a run": counted, "wire": wire,
    }  # fmt: skip


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=5e6)
    parser.add_argument("--features", type=int, nargs="*", default=[50, 100, 200])
    parser.add_argument("--workers", type=int, nargs="*", default=[2])
    parser.add_argument("--risks", nargs="*", default=["roc_area", "hinge", "prbep"])
    parser.add_argument("--quick", action="store_true", help="few rows, one case: does it run?")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.features, options.workers, options.risks = 2e5, [20], [2], ["roc_area"]
    import distributed

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{options.rows:g} rows of float32, {cores} cores, {platform.machine()}, Python {platform.python_version()}, NumPy "
          f"{np.__version__}, distributed {distributed.__version__}\n")  # fmt: skip
    header = None
    for workers in options.workers:
        for p in options.features:
            for risk in options.risks:
                found = measured(int(options.rows), p, risk, workers)
                if header is None:
                    header = ["workers", "features", "risk", *found]
                    print("| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
                cells = [f"{v:.3g}" for v in found.values()]
                print("| " + " | ".join([str(workers), str(p), risk, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
