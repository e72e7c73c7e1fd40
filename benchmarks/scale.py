"""Rows on worker processes beside rows in memory: seconds, bytes, rounds, steps and tasks of an iteration, and the model's.

    python benchmarks/scale.py [--rows 5e6] [--features 50,100,200] [--workers 2,4,8] [--out benchmarks/results/scale.md]
    python benchmarks/scale.py --quick

Workers are processes of one thread on this machine. Times are comparable with those in memory, on as many threads, only while
there are as many cores as workers; with more of them only bytes, rounds, steps and tasks are of interest. Sides take turns
(in memory, in blocks in one process, on workers) and the median of the repeats counts. Before each repeat the script waits, up
to a minute, until other processes keep less than 0.15 cores busy, and says how many they kept busy meanwhile.

"Threads" is what workers do, done by threads of this process without scheduler or protocol. The seconds of the model are these
plus what it says of rounds, steps, tasks and bytes, with figures of this machine that the script measures first.
"""

import argparse
import os
import platform
import statistics
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

import scale_model as model
from scoreline._blocks import Layout, Parts, Ref
from scoreline._cluster import Cluster, Home
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.operators.dask import DaskCluster
from scoreline.operators.parts import PartsOperator
from scoreline.risks.registry import get_risk
from scoreline.scorespace import BlockSpace
from scoreline.solvers.smoothed import SmoothedSolver

EVALUATIONS = {"hinge": "_point_numbers", "roc_area": "_pair_numbers", "prbep": "_balance_numbers"}
LINES = []


def say(*texts):
    """Print lines, and keep them for the file."""
    for text in texts:
        LINES.append(text)
        print(text, flush=True)


# ---- the machine


def busy_cores():
    """Return seconds of all cores that were busy, since the start of the system."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = list(map(int, file.readline().split()[1:9]))
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Return processor seconds of this process and its workers."""
    found = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found += times.user + times.system
    return found


def own_memory():
    """Return the resident bytes of this process and its workers."""
    found = 0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            found += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return found


class Others:
    """How many cores other processes keep busy, from the making of this object on."""

    def __init__(self):
        self.start = time.perf_counter(), busy_cores(), own_seconds()

    def cores(self):
        """Return the mean so far."""
        now = time.perf_counter(), busy_cores(), own_seconds()
        wall, busy, own = (b - a for a, b in zip(self.start, now, strict=True))
        return max(0.0, (busy - own) / wall)


def wait_until_quiet(limit=60.0):
    """Wait until others keep less than 0.15 cores busy."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < limit:
        others = Others()
        time.sleep(1.0)
        if others.cores() < 0.15:
            return


def loopback():
    """Return bytes that the loopback device has moved."""
    with open("/proc/net/dev", encoding="ascii") as file:
        return int(next(line for line in file if line.strip().startswith("lo:")).split()[1])


# ---- rows


def block(seed, rows, p):
    """Return rows that a worker can make by itself."""
    return np.random.default_rng(seed).standard_normal((rows, p), dtype=np.float32)


def make(rows, p, blocks):
    """Return X and labels of this process: 1 % positives, blocks as workers make them."""
    X = np.empty((rows, p), dtype=np.float32)
    edges = [rows * k // blocks for k in range(blocks + 1)]
    for k in range(blocks):
        X[edges[k] : edges[k + 1]] = block(k, edges[k + 1] - edges[k], p)
    w = np.random.default_rng(7).standard_normal(p)
    signal = as_operator(X).matvec(w / np.linalg.norm(w)) + np.random.default_rng(8).standard_normal(rows)
    return X, np.where(signal > np.quantile(signal, 0.99), 1, -1).astype(np.int8), edges


def started(workers):
    """Start worker processes of one thread."""
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0, silence_logs=50
    )


def on_workers(edges, p):
    """Return the rows as an operator on the workers, made there."""
    pieces = [
        da.from_delayed(
            dask.delayed(block)(k, edges[k + 1] - edges[k], p), (edges[k + 1] - edges[k], p), dtype=np.float32
        )
        for k in range(len(edges) - 1)
    ]
    return as_operator(da.concatenate(pieces))


class Threads(Cluster):
    """Workers that are threads of this process: what workers do, without scheduler, protocol and copies."""

    def __init__(self, workers):
        super().__init__()
        self.pools = {worker: ThreadPoolExecutor(1) for worker in workers}

    def submit(self, function, *arguments, home):
        """Queue a call; what it waits for was queued before."""
        return self.pools[home.worker].submit(self._call, function, arguments)

    def collect(self, futures):
        """Wait."""
        return [future.result() for future in futures]

    @staticmethod
    def _call(function, arguments):
        return function(*[a.result() if isinstance(a, Future) else a for a in arguments])


def in_blocks_here(X, edges, workers):
    """Return the rows in this process, in as many parts as edges say, shared out among threads."""
    spans = list(pairwise(edges))
    homes = [Home(f"thread-{k * workers // len(spans)}", 1) for k in range(len(spans))]
    cluster = Threads({home.worker for home in homes})
    refs = [Ref(cluster.submit(as_operator, X[a:b], home=home)) for (a, b), home in zip(spans, homes, strict=True)]
    return PartsOperator(Layout(cluster, homes, [(span,) for span in spans]), refs)


# ---- one solve


class Trace:
    """Counts of what a cluster is asked for: rounds, dependent steps, tasks by name."""

    def __init__(self, cluster):
        self.cluster, self.counts, self.depth = cluster, Counter(), {}
        self.submit, self.collect = cluster.submit, cluster.collect
        cluster.submit, cluster.collect = self.submitted, self.collected

    def submitted(self, function, *arguments, home):
        """Count a task."""
        name = arguments[0][0].__name__ if function.__name__ == "run" else function.__name__
        self.counts[name] += 1
        self.counts["tasks"] += 1
        future = self.submit(function, *arguments, home=home)
        self.depth[id(future)] = 1 + max((self.depth.get(id(a), 0) for a in arguments), default=0)
        return future

    def collected(self, futures):
        """Count a round."""
        self.counts["rounds"] += 1
        self.counts["steps"] += max(self.depth.get(id(f), 0) for f in futures)
        self.depth.clear()
        return self.collect(futures)

    def done(self):
        """Count no more."""
        self.cluster.submit, self.cluster.collect = self.submit, self.collect


def solved(objective, iterations, cluster=None):
    """Solve, and return means of an iteration, the first two left out."""
    marks, trace = [], None if cluster is None else Trace(cluster)

    def mark(_):
        counts = {} if trace is None else dict(trace.counts)
        marks.append(
            {**counts, "seconds": time.perf_counter(), "bytes": getattr(cluster, "bytes", 0.0), "wire": loopback()}
        )

    SmoothedSolver(tol=1e-9, init="zero", max_iter=iterations, precondition=False, callbacks=[mark]).solve(objective)
    if trace is not None:
        trace.done()
    first, last = marks[1], marks[-1]
    return {name: (last[name] - first.get(name, 0)) / (len(marks) - 2) for name in last}


def objective_of(operator, y, risk):
    """Return the objective of a risk, in memory or in blocks."""
    space = (None, BlockSpace()) if hasattr(operator, "layout") else ()
    labels = operator.aligned(y) if space else y
    return Objective(operator, get_risk(risk).prepare(labels, *space), 1e-5)


def median(runs, name):
    """Return the median of a figure over runs."""
    return statistics.median(run[name] for run in runs)


# ---- figures of this machine


def calibrated(client, repeats=15):
    """Return seconds of a round, a step and a task by least squares over chains of empty tasks, and bytes/s of a link."""
    cluster, workers = DaskCluster(client), sorted(client.nthreads())
    lines, seconds, used = [], [], 0.0
    for parts in (2, 8, 32):
        homes = [Home(workers[k % len(workers)], 1) for k in range(parts)]
        layout = Layout(cluster, homes, [((k, k + 1),) for k in range(parts)])
        anchors = [Ref(client.submit(np.zeros, 1, workers=[home.worker], pure=False)) for home in homes]
        for steps in (1, 2, 4, 8):
            times, start = [], time.process_time()
            for _ in range(repeats):
                begin = time.perf_counter()
                refs = anchors
                for _ in range(steps):
                    refs = layout.each(np.sum, Parts(refs))
                cluster.collect([ref.future for ref in refs])
                times.append(time.perf_counter() - begin)
            used = (time.process_time() - start) / (repeats * steps * parts)
            lines.append([1.0, steps, steps * parts])
            seconds.append(statistics.median(times))
    found, *_ = np.linalg.lstsq(np.array(lines), np.array(seconds), rcond=None)
    error = np.abs(np.array(lines) @ found - seconds)
    times = []
    for size in (8, 40_000_000):
        own = []
        for _ in range(5):
            here = client.submit(np.zeros, size // 8, workers=[workers[0]], pure=False)
            here.result() if size < 100 else client.submit(len, here, workers=[workers[0]], pure=False).result()
            begin = time.perf_counter()
            client.submit(len, here, workers=[workers[-1]], pure=False).result()
            own.append(time.perf_counter() - begin)
        times.append(statistics.median(own))
    link = 4e7 / max(1e-9, times[1] - times[0])
    return *found.tolist(), link, float(np.median(error)), used


# ---- tables


def compared(rows, p, workers, blocks, risks, repeats, iterations, figures):
    """Measure all sides for some risks; return lines of both tables."""
    X, y, edges = make(rows, p, blocks * workers)
    times, moved = [], []
    with started(workers) as local, Client(local):
        there = on_workers(edges, p)
        shape = model.Shape(workers, there.layout.n_parts // workers)
        own = [rows * k // shape.parts for k in range(shape.parts + 1)]
        operators = {"memory": as_operator(X), "here": in_blocks_here(X, own, workers), "workers": there}
        if workers > os.cpu_count():
            repeats = 1
        for risk in risks:
            sides = {name: objective_of(operator, y, risk) for name, operator in operators.items()}
            runs = {name: [] for name in sides}
            busy = []
            for repeat in range(repeats + 1):
                wait_until_quiet()
                others = Others()
                for name, side in sides.items():
                    cluster = getattr(operators[name], "layout", None) and operators[name].layout.cluster
                    run = solved(side, iterations, cluster)
                    if repeat:  # the first compiles
                        runs[name].append(run)
                busy.append(others.cores())
            found = runs["workers"]
            here, memory, seconds = (median(runs[name], "seconds") for name in ("here", "memory", "workers"))
            ratios = [a["seconds"] / b["seconds"] for a, b in zip(found, runs["memory"], strict=True)]
            counts = {name: median(found, name) for name in ("rounds", "steps", "tasks", "bytes", "wire")}
            predicted = here + sum(
                counts[name] * figure for name, figure in zip(("rounds", "steps", "tasks"), figures, strict=False)
            )
            predicted += counts["bytes"] / figures[3]
            times.append(
                f"| {risk} | {p} | {workers} | {shape.parts} | {memory:.3f} | {here:.3f} | {seconds:.3f} | {predicted:.3f} | "
                f"{seconds / memory:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {max(busy[1:]):.2f} |"
            )
            moved.append(bytes_line(risk, rows, p, shape, y, found, counts))
        evaluated = evaluation_line(there, y, operators, rows, shape) if "roc_area" in risks else None
        peak = own_memory()
    return times, moved, evaluated, peak


def bytes_line(risk, rows, p, shape, y, found, counts):
    """Return a line of the table of bytes: counted, by the model, on the wire."""
    problem = model.Problem(rows, p, float((y > 0).sum()))
    each = {name: median(found, name) / shape.parts for name in ("_matvec", "_rmatvec", EVALUATIONS[risk])}
    dots = statistics.median(run.get("dot", 0.0) for run in found) / shape.parts
    evaluations = each[EVALUATIONS[risk]]
    own = each["_matvec"] * model.matvec_bytes(p, shape) + each["_rmatvec"] * model.rmatvec_bytes(p, shape)
    own += dots * model.dot_bytes(shape) + evaluations * model.evaluation_bytes(risk, problem, shape)
    machine = model.Machine()
    ideal = model.counts(model.phases(risk, problem, shape, machine))
    return (
        f"| {risk} | {p} | {shape.workers} | {shape.parts} | {evaluations:.2f} | {counts['rounds']:.1f} ({ideal[0]}) | "
        f"{counts['steps']:.1f} ({ideal[1]}) | {counts['tasks']:.0f} ({ideal[2]}) | {counts['bytes'] / 1e3:.1f} | "
        f"{own / 1e3:.1f} | {counts['wire'] / 1e3:.0f} | {counts['bytes'] / (8 * rows):.2%} |"
    )


def evaluation_line(there, y, operators, rows, shape):
    """Return a line about one evaluation of ROC area: its bytes against those of all scores."""
    objective = objective_of(there, y, "roc_area")
    w = np.random.default_rng(7).standard_normal(there.shape[1]).astype(np.float64)
    z = there.matvec(w)
    objective.risk.evaluate(z, 0.03 / objective.risk.ramp_scale).grad.there().sum()
    moved, wire = there.traffic, loopback()
    repeats = 5
    for _ in range(repeats):
        objective.risk.evaluate(z, 0.03 / objective.risk.ramp_scale).grad.there()
    there.matvec(w).sum()  # what is described above is made first
    moved = (there.traffic - moved - model.matvec_bytes(there.shape[1], shape)) / repeats
    wire = (loopback() - wire) / repeats
    own = model.roc_bytes(float((y > 0).sum()), shape, 0)
    return (
        f"| {there.shape[1]} | {shape.workers} | {shape.parts} | {moved / 1e3:.1f} | {own / 1e3:.1f} | {wire / 1e3:.0f} | "
        f"{moved / (8 * rows):.2%} | {8 * rows / moved:.1f} |"
    )


def heading(options):
    """Say where and with what this was run."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.processor())
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "dask", "distributed"))
    say(
        "# Rows on workers beside rows in memory",
        "",
        f"{options.date}, {os.cpu_count()} cores ({cpu}), Python {platform.python_version()}, {packages}.",
        "",
        "```",
        f"python benchmarks/scale.py --rows {options.rows:g} --features {options.features} --workers {options.workers}"
        f" --repeats {options.repeats} --iterations {options.iterations}",
        "```",
        "",
        f"n = {options.rows:g} rows of float32, 1 % positives. `smoothed` from w = 0, not preconditioned, {options.iterations}",
        f"iterations of which the first two do not count, medians of {options.repeats} runs that take turns.",
        "",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=5e6)
    parser.add_argument("--features", default="50,100,200")
    parser.add_argument("--workers", default="2,4,8", help="times count for the first of them")
    parser.add_argument("--risks", default="roc_area,hinge,prbep")
    parser.add_argument("--parts", default="empty,rates,iterations", help="what to measure")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    parser.add_argument("--quick", action="store_true", help="few rows, one repeat")
    parser.add_argument("--out", type=Path, help="where to write the tables")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.features, options.workers, options.repeats = 2e5, "20", "2,4", 1
    rows, risks = int(options.rows), options.risks.split(",")
    features, workers = (list(map(int, text.split(","))) for text in (options.features, options.workers))
    heading(options)
    parts = options.parts.split(",")
    figures = latencies(workers[0]) if "empty" in parts or "iterations" in parts else None
    if "rates" in parts:
        rates(rows, features[0])
    if "iterations" in parts:
        iterations(options, rows, features, workers, risks, figures)
    if options.out:
        options.out.write_text("\n".join(LINES) + "\n")


def iterations(options, rows, features, workers, risks, figures):
    """Measure iterations of all cases, and say them."""
    times, moved, evaluated, peaks = [], [], [], []

    def take(*arguments):
        print(f"... {arguments[:5]}", flush=True)
        own = compared(*arguments, options.repeats, options.iterations, figures)
        for table, lines in zip((times, moved), own[:2], strict=True):
            table.extend(lines)
            print(*lines, sep="\n", flush=True)
        evaluated.append(own[2])
        peaks.append(own[3])

    for p in features:
        take(rows, p, workers[0], 2, risks)
    take(rows, features[-1], workers[0], 1, ["roc_area"])
    for count in workers[1:]:
        take(rows, features[0], count, 1, risks)
    tables(times, moved, evaluated, peaks)


def latencies(workers):
    """Measure and say the figures of this machine, with a client that reaches workers directly and one that does not."""
    say(
        "## Empty tasks",
        "",
        "Chains of 1 to 8 empty tasks on 2 to 32 parts: seconds = round + steps x step + tasks x task, by least squares.",
        "Client, scheduler and workers share the cores. CPU is what client and scheduler, one process here, take for a task",
        "with 32 parts. The link is that between two processes of this machine, for 40 MB.",
        "",
        "| client | round ms | step ms | task ms | median error ms | CPU of a task ms | link GB/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    )
    found = None
    with started(workers) as local:
        for direct in (False, True):
            with Client(local, direct_to_workers=direct) as client:
                calibrated(client, 3)
                wait_until_quiet()
                *own, link, error, used = calibrated(client)
                values = " | ".join(f"{1e3 * value:.2f}" for value in (*own, error, used))
                say(f"| {'direct_to_workers=True' if direct else 'as it is'} | {values} | {link / 1e9:.2f} |")
                found = found or (*own, link)
    say("")
    return found


def rates(rows, p, repeats=7):
    """Say how fast rows are read, and what an evaluation of a risk in blocks takes for a row, in this process."""
    X, y, _ = make(rows, p, 1)
    operator = in_blocks_here(X, [0, rows // 2, rows], 2)
    w = np.random.default_rng(7).standard_normal(p)
    z = operator.matvec(w / np.linalg.norm(w))
    calls = {"Xw": lambda: operator.matvec(w), "X'u": lambda: operator.rmatvec(z)}
    for risk in EVALUATIONS:
        made = objective_of(operator, y, risk).risk
        calls[risk] = lambda made=made: made.evaluate(z, 0.03 / made.ramp_scale).grad
    seconds = {name: [] for name in calls}
    wait_until_quiet()
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            found = call()
            if hasattr(found, "refs"):
                operator.layout.cluster.collect([ref.future for ref in found.there().refs])
            if repeat:
                seconds[name].append(time.perf_counter() - begin)
    say(
        "## Rows",
        "",
        f"{rows:g} x {p} in two parts, by two threads of this process: what a thread reads, or takes for a row.",
        "",
        "| | ms | a thread |",
        "| --- | ---: | ---: |",
    )
    for name, own in seconds.items():
        middle = statistics.median(own)
        rate = f"{2e9 * middle / rows:.0f} ns a row" if name in EVALUATIONS else f"{X.nbytes / middle / 2e9:.1f} GB/s"
        say(f"| {name} | {1e3 * middle:.0f} | {rate} |")
    say("")


def tables(times, moved, evaluated, peaks):
    """Say all of it."""
    say(
        "## Seconds of an iteration",
        "",
        "In memory on two threads; in the same parts as on workers, by threads of this process (no scheduler, no protocol); on",
        "workers of one thread; by the model: the second plus rounds, steps, tasks and bytes. More workers than cores: one",
        "repeat, not a comparison. Ranges are those of single runs, each over the run in memory just before it.",
        '"Others" is the largest number of cores that other processes kept busy during a repeat.',
        "",
        "| risk | p | workers | parts | in memory | threads | workers | model | workers / memory | others |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
        *times,
        "",
        "## Bytes, rounds, steps and tasks of an iteration",
        "",
        "In brackets those of the model for one evaluation and one product of each kind. Bytes of the model are for the",
        "counted numbers of evaluations and products; for PRBEP, whose rounds depend on the scores, they are an upper bound.",
        "The wire is the loopback device: protocol, task descriptions and heartbeats included, and what other processes send.",
        "",
        "| risk | p | workers | parts | evaluations | rounds | steps | tasks | kB counted | kB model | kB wire | of 8 n |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *moved,
        "",
        "## One evaluation of ROC area with its gradient",
        "",
        "| p | workers | parts | kB counted | kB model | kB wire | of 8 n | all scores / counted |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *[line for line in evaluated if line],
        "",
        f"Resident memory of this process and its workers at the end of a case: at most {max(peaks) / 1e9:.1f} GB; this",
        "process holds a second copy of the rows.",
    )


if __name__ == "__main__":
    main()
