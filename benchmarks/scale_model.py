"""What an iteration on a cluster costs: bytes, rounds, steps and tasks as formulas, and a small simulator of rounds.

    python benchmarks/scale_model.py                      # the tables of docs/results.md, "A thousand workers"
    python benchmarks/scale_model.py --rows 1e9 --features 1e6 --nonzeros 100 --positives 1e6 --workers 1000 --risk roc_area

Bytes are those that `operator.traffic` counts: arrays and numbers, without protocol. `tests/blocks/test_scale_model.py`
compares them. An iteration is one of L-BFGS: a product Xw, a round for a scalar product, evaluations of the risk, a product
X'u. The simulator goes through its phases. A phase is a chain of tasks for each part that needs nothing of other parts, and
then an exchange. It takes as long as its slowest worker, plus the way through links, scheduler and client. Phases do not
overlap.

Seconds of rounds, steps, tasks and rows in `Machine` were measured on one machine of two cores that client, scheduler and two
workers shared: least squares over chains of 1 to 8 empty tasks on 2 to 32 parts, three runs (a round 17 to 20 ms, a step 1.1 to
1.9, a task 1.2 to 2.0), and one run of products and evaluations of 5e6 x 50 float32 by two threads. Links of 10 Gbit/s and
stragglers are assumed. Nothing here was run on more than 8 workers.
"""

import argparse
from math import ceil
from typing import NamedTuple

import numpy as np

from scoreline.distributed import balance as block_balance
from scoreline.distributed import best_threshold as block_cut
from scoreline.distributed import pairs as block_pairs
from scoreline.distributed import selection
from scoreline.distributed.blocks import MAX_DIRECT_PARTS, MAX_TASK_BYTES
from scoreline.distributed.dask_operator import MAX_PARTS, PART_BYTES

FAN_IN = 8  # of `Layout.folded`
OUTGOING = 50  # transfers that a Dask worker serves at once; who is refused asks for another copy
ROW_SECONDS = {"hinge": 7e-9, "roc_area": 42e-9, "prbep": 25e-9}
RISKS = tuple(ROW_SECONDS)


class Problem(NamedTuple):
    """Rows, features and what a row takes; `nonzeros` of a row, or None for dense rows of `itemsize` bytes an entry."""

    rows: float
    features: float
    positives: float
    nonzeros: float | None = None
    itemsize: float = 4.0

    @property
    def row_bytes(self):
        """Bytes of a row in memory: entries, in sparse rows four bytes for the column of each and eight for the row."""
        if self.nonzeros is None:
            return self.features * self.itemsize
        return self.nonzeros * (self.itemsize + 4.0) + 8.0

    @property
    def keys(self):
        """Rows of the smaller class."""
        return min(self.positives, self.rows - self.positives)


class Machine(NamedTuple):
    """Seconds and bytes per second; see the module for where they come from."""

    round: float = 0.019  # client to scheduler and back
    step: float = 0.001  # each task of a chain
    task: float = 0.002  # of client and scheduler, for every task of a phase
    link: float = 1.25e9  # of a worker
    client_link: float = 1.25e9  # of client and scheduler
    memory: float = 10e9  # a worker's reads of its rows, on one thread; of sparse rows it is less
    row_seconds: float | None = None  # of an evaluation, for a row, on one thread; None: what was measured for the risk
    threads: float = 1.0  # of a worker: so many times faster with its rows
    sigma: float = 0.0  # of the logarithm of each worker's time, drawn for every phase
    slow_share: float = 0.0  # of the workers that are always slow
    slow_factor: float = 1.0


class Shape(NamedTuple):
    """Workers, and parts of each."""

    workers: int
    each: int = 1

    @property
    def parts(self):
        """Parts of all workers."""
        return self.workers * self.each


def usual(problem, workers, each=None):
    """Return the shape that a Dask array of small blocks gets: a part for every PART_BYTES of a worker, MAX_PARTS at most."""
    size = problem.rows * problem.row_bytes / workers
    return Shape(workers, int(min(MAX_PARTS, max(1, size // PART_BYTES))) if each is None else each)


class Phase(NamedTuple):
    """A chain of tasks for every part, and what is exchanged at its end."""

    name: str
    steps: int  # tasks one after another
    tasks: int  # of all parts
    seconds: float = 0.0  # of a worker for its rows
    exchange: float = 0.0  # seconds of links between workers
    client: float = 0.0  # seconds of the link of the client
    waits: bool = False  # the client goes on when it is done


# ---- bytes, as `operator.traffic` counts them


def matvec_bytes(p, shape):
    """Xw: w to every task, or once it is large to every worker."""
    return 8.0 * p * (shape.parts if small(p, shape) else shape.workers)


def small(p, shape):
    """Tell whether w is sent along with every task."""
    return 8.0 * p <= MAX_TASK_BYTES or shape.parts == 1


def rmatvec_bytes(p, shape):
    """X'u: from every part, or added up in a tree."""
    return 8.0 * p * shape.parts if shape.parts <= MAX_DIRECT_PARTS else tree_bytes(8.0 * p, shape) + 8.0 * p


def dot_bytes(shape):
    """A scalar product of scores: a number from each part."""
    return 8.0 * shape.parts


def tree_bytes(size, shape, grows=False):
    """Combine what parts have at workers, `fan_in` at a time; with `grows` results are as large as what they are made of."""
    level, moved = [size * (shape.each if grows else 1)] * shape.workers, 0.0
    while len(level) > 1:
        groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
        moved += sum(sum(group[1:]) for group in groups)
        level = [sum(group) if grows else size for group in groups]
    return moved


def tree_levels(shape):
    """Dependent tasks of a tree, and all its tasks: those of a worker are combined first."""
    levels, tasks = (1, shape.workers) if shape.each > 1 else (0, 0)
    width = shape.workers
    while width > 1:
        levels, tasks, width = levels + 1, tasks + width // FAN_IN + (width % FAN_IN > 1), ceil(width / FAN_IN)
    return levels, tasks


def separable_bytes(shape, parents=2):
    """A loss of single rows (hinge, logistic): three numbers to each part, sums and products with the scores back."""
    return 8.0 * (3 + 6 + parents) * shape.parts


def roc_bytes(keys, shape, parents=2, weighted=False):
    """ROC area with its gradient: `keys` scores of the smaller class to all workers, and sums for them."""
    size = (16.0 if weighted else 8.0) * keys
    others = shape.workers - 1
    numbers = 8.0 * (2 + 5 + 6 + parents) * shape.parts
    if shape.parts <= block_pairs.MAX_DIRECT_PARTS:
        return others * (size + 8.0 * keys * shape.parts) + numbers
    moved = tree_bytes(size / shape.parts, shape, grows=True) + tree_bytes(8.0 * keys, shape)
    return moved + others * (size + 8.0 * keys) + numbers


class Round(NamedTuple):
    """One round of k-section: places or intervals that all parts send together, and numbers for each."""

    entries: float
    numbers: int


def prbep_rounds(rows, shape):
    """Rounds that are usual: counts in intervals, then single scores; sums in intervals, then single kinks. An upper bound."""
    few, kinks = (
        min(selection.MAX_SENT_ENTRIES, rows / shape.parts),
        min(block_balance.MAX_SENT_KINKS, rows / shape.parts),
    )
    wide = selection.INTERVALS
    return (
        [Round(wide * shape.parts, 1), Round(few * shape.parts, 2)],
        [Round(wide * shape.parts, 2), Round(kinks * shape.parts, 2)],
    )


def prbep_bytes(rows, shape, rounds=None, parents=2):
    """PRBEP with its gradient: a sample, k-section for the bias and for its shift, then sums."""
    bias, shift = prbep_rounds(rows, shape) if rounds is None else rounds
    own = rows / shape.parts
    sample = ceil(own / max(1, own // max(16, selection.SAMPLE // shape.parts)))
    moved = shape.parts * (8.0 + 24.0 + 16.0 * sample)
    moved += sum(shape.parts * (24.0 + 8.0) + 8.0 * one.numbers * one.entries for one in bias)
    moved += sum(shape.parts * (40.0 + 16.0) + 8.0 * one.numbers * one.entries for one in shift)
    # Offset, width and the six numbers of the balance down; four sums, the largest score and products by class up.
    return moved + 8.0 * shape.parts * (8 + 5 + 2 * (2 + parents))


def evaluation_bytes(risk, problem, shape, parents=2):
    """One evaluation of a risk with its gradient."""
    if risk == "hinge":
        return separable_bytes(shape, parents)
    if risk == "roc_area":
        return roc_bytes(problem.keys, shape, parents)
    return prbep_bytes(problem.rows, shape, None, parents)


def gathered_bytes(rows):
    """An evaluation of a risk that brings all scores here, and sends the gradient back."""
    return 16.0 * rows


def moments_bytes(p, shape):
    """Weight, mean and scatter of both classes: a tree, and the result here."""
    size = 16.0 * (p * p + p)
    return tree_bytes(size, shape) + size + 16.0


def inspect_bytes(p, shape):
    """The check of X before the first iteration: the largest magnitude of every column, compared in a tree."""
    return 8.0 * p * shape.workers


def robust_threshold_bytes(problem, shape):
    """A robust threshold: at most POINTS of a class from each part, with label, score and weight."""
    classes = problem.positives, problem.rows - problem.positives
    return 17.0 * shape.parts * sum(min(block_cut.POINTS, n / shape.parts) for n in classes)


def exact_threshold_bytes(shape, rounds=1):
    """An upper bound for an exact threshold: `rounds` rounds of EDGES thresholds, and single rows at the end."""
    edges = block_cut.EDGES + 2
    sample = 2.0 * 8.0 * max(16, block_cut.SAMPLE / shape.parts)
    rows = 17.0 * block_cut.MAX_GATHERED_ROWS
    return shape.parts * (40.0 + 8.0 + sample + rounds * 8.0 * (edges + 3 * (edges + 1)) + 16.0) + rows


def iteration_bytes(risk, problem, shape, evaluations=1.0, products=1.0):
    """All of an L-BFGS iteration."""
    p = problem.features
    moved = matvec_bytes(p, shape) + dot_bytes(shape) + products * rmatvec_bytes(p, shape)
    return moved + evaluations * evaluation_bytes(risk, problem, shape)


def memory_bytes(risk, problem, shape, evaluations=1.0):
    """Bytes through the memory of a worker in an iteration: rows twice, and vectors of scores.

    A vector is read or written 2 times by the products, 2 by the scalar product, and for an evaluation about 4 (hinge), 10 (ROC
    area) or 12 (PRBEP) times: counted in the kernels, not measured.
    """
    rows = problem.rows / shape.workers
    times = {"hinge": 4.0, "roc_area": 10.0, "prbep": 12.0}[risk]
    return rows * (2.0 * problem.row_bytes + 8.0 * (4.0 + times * evaluations))


def resident_bytes(risk, problem, shape):
    """Memory of a worker: its rows, about 12 vectors of scores, and what it gets of others."""
    rows = problem.rows / shape.workers
    keys = 8.0 * problem.keys * (2.0 + min(shape.parts, block_pairs.MAX_DIRECT_PARTS)) if risk == "roc_area" else 0.0
    return rows * (problem.row_bytes + 12.0 * 8.0 + 1.0) + keys + 2.0 * 8.0 * problem.features


# ---- seconds


def broadcast_seconds(size, workers, link):
    """One worker has it, all others fetch it: OUTGOING at a time from whoever has it, the others then ask again."""
    have, seconds = 1, 0.0
    while have < workers:
        takers = min(workers - have, OUTGOING * have)
        seconds += ceil(takers / have) * size / link
        have += takers
    return seconds


def tree_seconds(size, shape, link, grows=False):
    """Levels one after another; the link of whoever combines is what takes time."""
    own, width, seconds = size * (shape.each if grows else 1), shape.workers, 0.0
    while width > 1:
        members = min(FAN_IN, width)
        seconds += (members - 1) * own / link
        own, width = own * members if grows else own, ceil(width / FAN_IN)
    return seconds


def shared_phase(name, size, combined, problem, shape, machine, steps, seconds, grows):
    """What every worker needs of all parts: each from each, or in a tree and out again."""
    parts, link = shape.parts, machine.link
    if parts <= block_pairs.MAX_DIRECT_PARTS:
        exchange = (parts - shape.each) * size / link
        return Phase(name, steps, steps * parts, seconds, exchange)
    levels, tasks = tree_levels(shape)
    exchange = tree_seconds(size, shape, link, grows) + broadcast_seconds(combined, shape.workers, link)
    return Phase(name, steps + levels, steps * parts + tasks, seconds, exchange)


def evaluation_phases(risk, problem, shape, machine):
    """Phases of one evaluation; how its seconds of a row are shared out among phases does not change their sum."""
    parts, rows = shape.parts, problem.rows / shape.workers
    each = ROW_SECONDS[risk] if machine.row_seconds is None else machine.row_seconds
    work, back = each * rows / machine.threads, machine.client_link
    if risk == "hinge":
        return [Phase("sums", 1, parts, work, 0.0, separable_bytes(shape) / back, True)]
    if risk == "roc_area":
        keys = 8.0 * problem.keys
        numbers = 8.0 * 15 * parts / back
        return [
            shared_phase("keys", keys / parts, keys, problem, shape, machine, 1, 0.1 * work, True),
            shared_phase("sums of keys", keys, keys, problem, shape, machine, 2, 0.8 * work, False),
            Phase("sums", 1, parts, 0.1 * work, 0.0, numbers, True),
        ]
    bias, shift = prbep_rounds(problem.rows, shape)
    rounds = [Round(selection.SAMPLE, 2), *bias, *shift]
    found = [
        Phase("k-section", 1, parts, work / 6, 0.0, 8.0 * one.numbers * one.entries / back, True) for one in rounds
    ]
    return [*found, Phase("sums", 1, parts, work / 6, 0.0, 8.0 * 20 * parts / back, True)]


def phases(risk, problem, shape, machine, evaluations=1, products=1):
    """All phases of an iteration."""
    p, parts, rows = problem.features, shape.parts, problem.rows / shape.workers
    memory = machine.memory * machine.threads
    read = rows * (problem.row_bytes + 8.0) / memory
    dot = 16.0 * rows / memory
    if small(p, shape):
        found = [
            Phase("w to workers", 0, 0, 0.0, 0.0, 8.0 * p * parts / machine.client_link),
            Phase("Xw", 2, 2 * parts, read + dot, 0.0, 8.0 * parts / machine.client_link, True),
        ]
    else:
        out = broadcast_seconds(8.0 * p, shape.workers, machine.link)
        found = [
            Phase("w to workers", 1, 1, 0.0, out, 8.0 * p / machine.client_link),
            Phase("Xw", 2, 2 * parts, read + dot, 0.0, 8.0 * parts / machine.client_link, True),
        ]
    found += evaluations * evaluation_phases(risk, problem, shape, machine)
    if parts <= MAX_DIRECT_PARTS:
        last = Phase("X'u", 1, parts, read, 0.0, 8.0 * p * parts / machine.client_link, True)
        return found + products * [last]
    levels, tasks = tree_levels(shape)
    sums = tree_seconds(8.0 * p, shape, machine.link)
    return found + products * [
        Phase("X'u", 1, parts, read),
        Phase("X'u added up", levels, tasks, 0.0, sums, 8.0 * p / machine.client_link, True),
    ]


def counts(found):
    """Return rounds, dependent steps and tasks of phases."""
    return sum(phase.waits for phase in found), sum(phase.steps for phase in found), sum(phase.tasks for phase in found)


def closed_form(found, machine):
    """Return the seconds of an iteration without stragglers."""
    rounds, steps, tasks = counts(found)
    other = sum(phase.seconds + phase.exchange + phase.client for phase in found)
    return rounds * machine.round + steps * machine.step + tasks * machine.task + other


def simulate(found, shape, machine, repeats=100, seed=0):
    """Return seconds of an iteration by item, the mean over repeats; every phase waits for its slowest worker."""
    rng, items = np.random.default_rng(seed), {}
    always = np.where(np.arange(shape.workers) < round(machine.slow_share * shape.workers), machine.slow_factor, 1.0)

    def add(name, seconds):
        items[name] = items.get(name, 0.0) + seconds / repeats

    for _ in range(repeats):
        for phase in found:
            own = always * np.exp(machine.sigma * rng.standard_normal(shape.workers))
            slowest = phase.seconds * float(own.max())
            rows = "rows: products" if phase.name.startswith("X") else "rows: risk"
            add(rows, phase.seconds)
            add("waiting for the slowest worker", slowest - phase.seconds)
            add(f"network: {phase.name}", phase.exchange)
            add("network: client", phase.client)
            add("scheduler: tasks", phase.tasks * machine.task)
            add("latency: rounds and steps", phase.waits * machine.round + phase.steps * machine.step)
    return {name: seconds for name, seconds in items.items() if seconds}


# ---- tables


def table(risk, problem, shape, machine):
    """Print where the time of an iteration goes, and name the largest item."""
    found = phases(risk, problem, shape, machine)
    items = simulate(found, shape, machine)
    total = sum(items.values())
    rounds, steps, tasks = counts(found)
    print(f"\n{title(risk, problem, shape)}")
    moved = iteration_bytes(risk, problem, shape)
    print(f"{rounds} rounds, {steps} dependent steps, {tasks} tasks, {text(moved)}B over the network an iteration;")
    print(
        f"a worker holds {text(resident_bytes(risk, problem, shape))}B and reads or writes "
        f"{text(memory_bytes(risk, problem, shape))}B an iteration\n"
    )
    print("| item | seconds | share |\n| --- | ---: | ---: |")
    for name, seconds in sorted(items.items(), key=lambda item: -item[1]):
        print(f"| {name} | {seconds:.3g} | {seconds / total:.0%} |")
    print(f"| all | {total:.3g} | |")
    print(f"\nlargest item: {max(items, key=items.get)}")
    return items


def title(risk, problem, shape):
    """Describe a case."""
    entries = "dense" if problem.nonzeros is None else f"{problem.nonzeros:g} non-zeros per row"
    return (
        f"{risk}: {problem.rows:g} rows x {problem.features:g} features ({entries}), {problem.positives:g} positives, "
        f"{shape.workers} workers with {shape.each} part(s) each"
    )


def text(number):
    """Return a number of bytes with a prefix."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {prefix}"
    return f"{number:.3g} "


def what_if(problem, shape, machine):
    """Print the largest items of variations of a case."""
    one = Shape(shape.workers)
    cases = [
        (f"{shape.each} parts a worker, from blocks of {PART_BYTES >> 20} MiB or less", "roc_area", problem, shape),
        ("one part a worker, from one block", "roc_area", problem, one),
        ("100 workers, each 10 times as large and fast", "roc_area", problem, Shape(shape.workers // 10)),
        ("features hashed to 2^18", "roc_area", problem._replace(features=2.0**18), one),
        ("features hashed to 2^15", "roc_area", problem._replace(features=2.0**15), one),
        ("1e5 positives", "roc_area", problem._replace(positives=1e5), one),
        ("1e7 positives", "roc_area", problem._replace(positives=1e7), one),
        ("balanced classes", "roc_area", problem._replace(positives=problem.rows / 2), one),
        ("hinge", "hinge", problem, one),
        ("PRBEP", "prbep", problem, one),
        ("one part, and tasks of 0.5 ms", "roc_area", problem, one, machine._replace(task=5e-4)),
    ]
    print("\n| case | seconds | largest item | next | bytes moved | memory of a worker |")
    print("| --- | ---: | --- | --- | ---: | ---: |")
    for name, risk, own, form, *others in cases:
        own_machine = others[0] if others else None
        faster = (
            shape.workers / form.workers
        )  # fewer workers are larger ones: as much memory bandwidth and as many cores
        box = (own_machine or machine)._replace(threads=faster)
        items = simulate(phases(risk, own, form, box), form, box)
        first, second = sorted(items.items(), key=lambda item: -item[1])[:2]
        print(
            f"| {name} | {sum(items.values()):.3g} | {first[0]}, {first[1]:.3g} s | {second[0]}, {second[1]:.3g} s | "
            f"{text(iteration_bytes(risk, own, form))}B | {text(resident_bytes(risk, own, form))}B |"
        )


def once(problem, shape, machine):
    """Print what happens once in a fit, through the link of the client."""
    print("\n| once | bytes | seconds of the client's link |\n| --- | ---: | ---: |")
    for name, moved in (
        ("check of X (largest of every column, from each part)", inspect_bytes(problem.features, shape)),
        ("robust threshold (at most 65,536 of a class from each part)", robust_threshold_bytes(problem, shape)),
        ("exact threshold, two rounds", exact_threshold_bytes(shape, 2)),
        ("moments of the classes, all links", moments_bytes(problem.features, shape)),
        ("an evaluation that gathers all scores", gathered_bytes(problem.rows)),
    ):
        print(f"| {name} | {text(moved)}B | {moved / machine.client_link:.3g} |")


def growth(risk, problem, machine, workers=(2, 8, 32, 125, 500, 1000)):
    """Print seconds by number of workers."""
    print("\n| workers | all | rows | waiting | scheduler and latency | network |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for count in workers:
        shape = usual(problem, count)
        items = simulate(phases(risk, problem, shape, machine), shape, machine)
        sums = [
            sum(s for name, s in items.items() if name.startswith(head)) for head in ("rows", "waiting", "", "network")
        ]
        total = sums[2]
        left = total - sums[0] - sums[1] - sums[3]
        print(f"| {count} | {total:.3g} | {sums[0]:.3g} | {sums[1]:.3g} | {left:.3g} | {sums[3]:.3g} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float)
    parser.add_argument("--features", type=float, default=1e6)
    parser.add_argument("--nonzeros", type=float, default=None, help="of a row; dense rows without it")
    parser.add_argument("--itemsize", type=float, default=4.0, help="bytes of an entry")
    parser.add_argument("--positives", type=float, default=1e6)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--parts", type=int, help="of a worker; by default what a Dask array of small blocks gets")
    parser.add_argument("--risk", choices=RISKS, default="roc_area")
    for name, value in Machine()._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=None, help=f"({value})")
    options = parser.parse_args()
    given = {name: value for name in Machine._fields if (value := getattr(options, name)) is not None}
    if options.rows is not None:
        problem = Problem(options.rows, options.features, options.positives, options.nonzeros, options.itemsize)
        table(options.risk, problem, usual(problem, options.workers, options.parts), Machine(**given))
        return
    machine = Machine(**{"sigma": 0.2, "slow_share": 0.01, "slow_factor": 2.0, **given})
    print(", ".join(f"{name} {value}" for name, value in machine._asdict().items()))
    problem = Problem(1e9, 1e6, 1e6, 100.0)
    shape = usual(problem, 1000)
    for risk in RISKS:
        table(risk, problem, shape, machine)
    what_if(problem, shape, machine)
    once(problem, shape, machine)
    print("\nROC area, by workers:")
    growth("roc_area", problem, machine)


if __name__ == "__main__":
    main()
