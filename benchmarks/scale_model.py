"""What an iteration costs on a cluster: bytes by formula, time by a small simulation of its rounds.

    python benchmarks/scale_model.py [--rows 1e9] [--features 1e6] [--nonzeros 100] [--positives 1e6] [--workers 1000]

Bytes are those that `history_["bytes"]` counts (tests compare the two); benchmarks/scale.py puts both beside what a network
device has moved. Times rest on the figures of `Machine`, most of which were measured on one small machine: read them as what
becomes large first, not as seconds.
"""

import argparse
import math
from dataclasses import dataclass, replace

import numpy as np

SMALL, DIRECT, FEW, FAN_IN = 1 << 18, 4, 4, 8  # of _blocks/layout.py and scorespace/block_pairs.py


@dataclass(frozen=True)
class Problem:
    """Rows, features, stored entries a row (None: dense), rows of the smaller class, bytes of an entry with its index."""

    rows: float
    features: float
    nonzeros: float | None = None
    positives: float = 0.0
    entry: float = 8.0

    @property
    def matrix_bytes(self) -> float:
        """Bytes of X."""
        return self.rows * self.entry * (self.features if self.nonzeros is None else self.nonzeros)


@dataclass(frozen=True)
class Machine:
    """A cluster. Defaults: 10 Gbit/s, memory read at 20 GB/s a worker; latencies and costs of a task as measured for Dask.

    `step` is what one task waits for another on the same worker, `trip` a round from the client and back, `task` what the
    scheduler works for each task, one after another. `spread` is the standard deviation of the logarithm of a worker's speed in
    a step; a share `slow` of the workers is `slowness` times as slow all the time.
    """

    workers: int
    parts: int = 1  # of a worker
    memory: float = 20e9
    link: float = 1.25e9
    step: float = 4.5e-3
    trip: float = 12e-3
    task: float = 0.5e-3
    lookup: float = 12e-9  # seconds a row and thread to look itself up among the keys
    spread: float = 0.0
    slow: float = 0.0
    slowness: float = 3.0

    @property
    def all_parts(self) -> int:
        """Parts of all workers."""
        return self.workers * self.parts


def tree_levels(workers: int) -> int:
    """Return how many times eight results become one."""
    return math.ceil(math.log(workers, FAN_IN) - 1e-12) if workers > 1 else 0


def matvec_bytes(problem: Problem, machine: Machine) -> float:
    """Return what Xw moves: w to every part, beyond 256 KB once to every worker."""
    size = 8.0 * problem.features
    small = size <= SMALL or machine.all_parts == 1
    return size * (machine.all_parts if small else machine.workers)


def rmatvec_bytes(problem: Problem, machine: Machine) -> float:
    """Return what X'u moves: a vector from every part, of more than four parts added in a tree."""
    size = 8.0 * problem.features
    return size * (machine.all_parts if machine.all_parts <= DIRECT else machine.workers)


def roc_bytes(problem: Problem, machine: Machine) -> float:
    """Return what an evaluation of the ROC area moves: keys to all workers, their sums back to all."""
    keys, others = 8.0 * problem.positives, machine.workers - 1
    if machine.all_parts <= FEW:
        return others * keys + others * machine.all_parts * keys
    return keys_up(keys, machine.workers) + others * keys + 2 * others * keys


def keys_up(keys: float, workers: int) -> float:
    """Return what merging the keys of all workers moves: at every level all of them but those that stay where they are."""
    moved, sizes = 0.0, [keys / workers] * workers
    while len(sizes) > 1:
        groups = [sizes[i : i + FAN_IN] for i in range(0, len(sizes), FAN_IN)]
        moved += sum(sum(group[1:]) for group in groups)
        sizes = [sum(group) for group in groups]
    return moved


def hinge_bytes(problem: Problem, machine: Machine) -> float:
    """Return what an evaluation of a mean of losses moves: a few numbers a part, there and back."""
    return 8.0 * machine.all_parts * 12


def gather_bytes(problem: Problem) -> float:
    """Return what bringing all scores here moves, and the gradient back."""
    return 16.0 * problem.rows


def iteration_bytes(problem: Problem, machine: Machine, risk: str = "roc_area") -> float:
    """Return what an iteration with one evaluation moves."""
    evaluation = {"roc_area": roc_bytes, "hinge": hinge_bytes}[risk](problem, machine)
    return matvec_bytes(problem, machine) + rmatvec_bytes(problem, machine) + evaluation


def simulated(problem: Problem, machine: Machine, seed: int = 0) -> dict[str, float]:
    """Return the seconds of an iteration of L-BFGS for the ROC area with one evaluation, by what they go to.

    Every step waits for its slowest worker. Broadcasts double the workers that have a copy; sums go up a tree of eight at a
    time, over one link into each node. The scheduler handles tasks one after another while nobody else works.
    """
    rng, w = np.random.default_rng(seed), machine.workers
    always = np.where(np.arange(w) < round(machine.slow * w), machine.slowness, 1.0)

    def waited(seconds: float) -> float:
        return float((seconds * always * np.exp(machine.spread * rng.standard_normal(w))).max())

    rows, vector, keys = problem.rows / w, 8.0 * problem.features, 8.0 * problem.positives
    levels, doublings = tree_levels(w), math.ceil(math.log2(w)) if w > 1 else 0
    product = problem.matrix_bytes / w / machine.memory
    score_vector = 8.0 * rows / machine.memory
    tasks = 6 * machine.all_parts + 4 * sum(-(-w // FAN_IN**level) for level in range(1, levels + 1))
    return {
        "products": waited(product) + waited(product),
        "work on scores": waited(4 * score_vector)
        + waited(machine.lookup * rows + 4 * score_vector)
        + waited(6 * score_vector),
        "w to workers": vector / machine.link * doublings,
        "sum of X'u": vector / machine.link * FAN_IN * levels,
        "keys to workers": keys / machine.link * (1 + doublings),
        "sums of keys": keys / machine.link * (FAN_IN * levels + doublings),
        "latency": 3 * machine.trip + (5 + 3 * max(0, levels - 1)) * machine.step,
        "scheduler": tasks * machine.task,
    }


def table(problem: Problem, machines: list[Machine]) -> str:
    """Return a Markdown table: seconds of an iteration and its largest part for several clusters."""
    columns = [simulated(problem, machine) for machine in machines]
    lines = [
        "| workers | " + " | ".join(columns[0]) + " | all | bytes moved |",
        "| --- |" + " --- |" * (len(columns[0]) + 2),
    ]
    for machine, parts in zip(machines, columns, strict=True):
        most = max(parts, key=lambda name: parts[name])
        cells = [f"**{v:.3g}**" if name == most else f"{v:.2g}" for name, v in parts.items()]
        total, moved = sum(parts.values()), iteration_bytes(problem, machine)
        lines.append(f"| {machine.workers} | " + " | ".join(cells) + f" | {total:.3g} | {moved / 1e6:.3g} MB |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables of docs/scale.md, or the one that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--features", type=float, default=1e6)
    parser.add_argument("--nonzeros", type=float, default=100.0, help="stored entries a row; 0 for dense rows")
    parser.add_argument("--positives", type=float, default=1e6, help="rows of the smaller class")
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 10, 100, 1000])
    parser.add_argument("--task-ms", type=float, default=0.5, help="what the scheduler works for a task")
    options = parser.parse_args()
    sparse = options.nonzeros or None
    problem = Problem(options.rows, options.features, sparse, options.positives, 12.0 if sparse else 8.0)
    machines = [Machine(w, task=options.task_ms / 1e3) for w in options.workers]
    print(
        f"{options.rows:g} rows x {options.features:g} features, {options.positives:g} in the smaller class; seconds an iteration\n"
    )
    print(table(problem, machines))
    print("\nwith half of the rows in the smaller class\n")
    print(table(replace(problem, positives=options.rows / 2), machines))
    print("\nwith stragglers: speeds spread by 20 %, one worker in a hundred three times as slow\n")
    print(table(problem, [replace(m, spread=0.2, slow=0.01) for m in machines]))


if __name__ == "__main__":
    main()
