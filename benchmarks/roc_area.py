"""The ROC area risk with its gradient against NumPy, where its time goes, and the time of ten million scores."""

import sys
import time
from collections import defaultdict

import numba
import numpy as np

from common import SEED, Report, interleave, standalone
from scoreline import kernels
from scoreline.risks import RocAreaRisk, SquaredRocAreaRisk
from scoreline.runtime import parallel

NAME, TITLE = "roc_area", "value and gradient of the ROC area risk, a million rows, against vectorised NumPy"
N, MANY = 1_000_000, 10_000_000


def numpy_search(z, positive):
    """Sort both classes; each looks its place up in the other (searchsorted of sorted needles runs along the cache)."""
    a, b = z[positive] - 1.0, z[~positive]  # a pair counts where b > a
    order_a, order_b = np.argsort(a), np.argsort(b)
    sorted_a, sorted_b = a[order_a], b[order_b]
    above = len(b) - np.searchsorted(sorted_b, sorted_a, side="right")
    below = np.searchsorted(sorted_a, sorted_b, side="left")
    return _finish(z, positive, sorted_a, sorted_b, order_a, order_b, above, below)


def numpy_merge(z, positive):
    """Sort all rows together once; running counts of either class give both looks-up."""
    shifted = np.where(positive, z - 1.0, z)
    order = np.argsort(shifted)
    ordered, side = shifted[order], positive[order]
    # Rows of equal place: a pair counts only where b > a, so take counts at the ends of each group.
    ends = np.append(ordered[1:] != ordered[:-1], True)
    n_pos = np.cumsum(side)
    group = np.cumsum(ends) - ends
    last = np.flatnonzero(ends)
    total_pos = n_pos[last]
    total = last + 1
    pos_before = np.concatenate([[0], total_pos[:-1]])[group]
    neg_after = (len(z) - n_pos[-1]) - (total - total_pos)[group]
    count = np.where(side, -neg_after, pos_before)
    pairs = int(n_pos[-1]) * (len(z) - int(n_pos[-1]))
    grad = np.empty(len(z))
    grad[order] = count / pairs
    return float(count @ ordered) / pairs, grad


def numpy_small_sort(z, positive):
    """Sort the smaller class only; each of the other rows looks itself up, counts come back through bincount."""
    a, b = z[positive] - 1.0, z[~positive]
    order_a = np.argsort(a)
    sorted_a = a[order_a]
    below = np.searchsorted(sorted_a, b, side="left")
    hits = np.bincount(below, minlength=len(a) + 1)
    above_sorted = np.cumsum(hits[::-1])[::-1][1:]
    pairs = len(a) * len(b)
    grad = np.empty(len(z))
    of_a = np.empty(len(a))
    of_a[order_a] = above_sorted
    grad[positive], grad[~positive] = -of_a / pairs, below / pairs
    return float(below @ b - above_sorted @ sorted_a) / pairs, grad


def _finish(z, positive, sorted_a, sorted_b, order_a, order_b, above, below):
    pairs = len(sorted_a) * len(sorted_b)
    of_a, of_b = np.empty(len(sorted_a)), np.empty(len(sorted_b))
    of_a[order_a], of_b[order_b] = above, below
    grad = np.empty(len(z))
    grad[positive], grad[~positive] = -of_a / pairs, of_b / pairs
    return float(below @ sorted_b - above @ sorted_a) / pairs, grad


RIVALS = (numpy_search, numpy_merge, numpy_small_sort)


class StageClock:
    """Adds up the time of each stage of HostSpace.pair_sums by standing in for the kernels that it calls.

    All of them must have been compiled before: kernels that call kernels find each other when they are compiled.
    """

    def __init__(self):
        self.seconds = defaultdict(float)

    def __enter__(self):
        functions = vars(kernels.ramps).items()
        self._originals = {name: f for name, f in functions if isinstance(f, numba.core.dispatcher.Dispatcher)}
        self._run = parallel.run_chunks
        for name, kernel in self._originals.items():
            setattr(kernels.ramps, name, self._timed(name, kernel))
        parallel.run_chunks = self._timed_chunks
        return self

    def __exit__(self, *_):
        for name, kernel in self._originals.items():
            setattr(kernels.ramps, name, kernel)
        parallel.run_chunks = self._run

    def _timed(self, name, kernel):
        def timed(*arguments):
            start = time.perf_counter()
            result = kernel(*arguments)
            self.seconds[name] += time.perf_counter() - start
            return result

        timed.kernel, timed.stage = kernel, name
        return timed

    def _timed_chunks(self, timed, *arguments):
        kernel = getattr(timed, "kernel", timed)
        start = time.perf_counter()
        self._run(kernel, *arguments)
        self.seconds[getattr(timed, "stage", "others")] += time.perf_counter() - start


def stages(report: Report, risk, z, mu: float, title: str, repeats: int = 9) -> None:
    """Report the time of each stage in the fastest of a few calls."""
    best, split = np.inf, {}
    for _ in range(repeats):
        with StageClock() as clock:
            start = time.perf_counter()
            risk.evaluate(z, mu)
            total = time.perf_counter() - start
        if total < best:
            best, split = total, dict(clock.seconds)
    keys = z[risk.labels.sign == (1 if risk.labels.n_positive <= risk.labels.n_negative else -1)]
    sort = interleave({"sort": lambda: np.sort(keys)}, 5)["sort"].best
    rest = best - sum(split.values()) - sort
    parts = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in split.items())
    report.say(
        f"{title}: {1e3 * best:.1f} ms = {parts}, sort {1e3 * sort:.1f}, allocation and bin sums {1e3 * rest:.1f}"
    )


def compare(report: Report, share: float) -> None:
    rng = np.random.default_rng(SEED)
    positive = rng.random(N) < share
    z = rng.standard_normal(N) + positive
    risk = RocAreaRisk().prepare(np.where(positive, 1, -1))
    near = [z + 1e-6 * rng.standard_normal(N) for _ in range(2)]
    turn = [0]

    def barely_changed():
        turn[0] ^= 1
        return risk.value_grad(near[turn[0]])

    value, grad = risk.value_grad(z)
    for rival in RIVALS:
        other, other_grad = rival(z, positive)
        if not (np.isclose(value, other, rtol=1e-9) and np.allclose(grad, other_grad, rtol=1e-9, atol=0)):
            raise RuntimeError(f"{rival.__name__} computes something else: {value} and {other}")
    width = 0.1
    mu = width / risk.ramp_scale
    sides = {
        "ours": lambda: risk.value_grad(z),
        **{rival.__name__: (lambda rival=rival: rival(z, positive)) for rival in RIVALS},
        "ours again": barely_changed,
        "ours smoothed": lambda: risk.smoothed(z, mu),
    }
    times = interleave(sides, 9, spinning=[rival.__name__ for rival in RIVALS])
    name = min((rival.__name__ for rival in RIVALS), key=lambda r: times[r].best)
    rival, informational = times[name].best, share > 0.1
    title = f"{100 * share:.0f} % positives"
    report.say(
        title
        + ", ms (best, median): "
        + ", ".join(f"{k} {1e3 * t.best:.1f}, {1e3 * t.median:.1f}" for k, t in times.items())
    )
    note = f"rival {name} {1e3 * rival:.1f} ms"
    for label, side, target in (
        ("random order", "ours", ">= 3"),
        ("order barely changed", "ours again", ">= 5"),
        ("smoothed by 0.1, rival not", "ours smoothed", ""),
    ):
        limit = "" if informational else target
        report.add(f"{title}, {label}: numpy / ours", rival / times[side].best, "x", limit, note)
    stages(report, risk, z, 0.0, f"{title}, stages in ms")
    stages(report, risk, z, mu, f"{title}, smoothed, stages in ms")


def many_scores(report: Report) -> None:
    """Report seconds and processor seconds of value and gradient of ten million scores."""
    rng = np.random.default_rng(SEED)
    for share in (0.01, 0.1, 0.5):
        positive = rng.random(MANY) < share
        z = rng.standard_normal(MANY) + positive
        for risk in (RocAreaRisk(), SquaredRocAreaRisk()):
            prepared = risk.prepare(np.where(positive, 1, -1))
            seconds, processor = np.inf, np.inf
            for _ in range(4):
                start = time.perf_counter(), time.process_time()
                prepared.value_grad(z)
                seconds = min(seconds, time.perf_counter() - start[0])
                processor = min(processor, time.process_time() - start[1])
            title = f"{MANY:,} scores, {100 * share:.0f} % positives, {risk.name}: seconds"
            report.add(title, seconds, "s", "<= 0.5", f"{processor:.2f} s of processor time in all threads")


def main(report: Report) -> None:
    RocAreaRisk().prepare([1, -1, -1]).value_grad(np.array([0.0, 1.0, 2.0]))  # compile
    compare(report, 0.05)
    compare(report, 0.5)
    many_scores(report)


if __name__ == "__main__":
    standalone(sys.modules[__name__])
