"""The entry of a vector on a device at which a running weight reaches a target: O(n), a sort of few entries."""

from typing import Any

import numpy as np

from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.backend import Backend
from scoreline.gpu.vector import DeviceVector

SAMPLE = 1 << 16  # entries that bracket it


def smallest_reaching(values: DeviceVector, weight: DeviceVector | None, target: float) -> float:
    """Return the smallest entry v such that the entries up to v weigh at least `target` together; the largest if none does."""
    x, s = values.array, None if weight is None else weight.array
    if s is not None:
        x, s = x[s > 0.0], s[s > 0.0]
    return selected(values.backend, x, s, target) if x.shape[0] else float("nan")


def selected(backend: Backend, x: Any, weight: Any, target: float) -> float:
    """Return the same for arrays without rows of weight 0.

    A sample brackets the entry, rows up to the bracket are counted, and those in it sorted. If the sample was misled, all are.
    """
    xp, n = backend.xp, x.shape[0]
    if n > 4 * SAMPLE:
        low, high = _bracket(backend, x, weight, target)
        before = _weight_of(backend, x <= low, weight)
        inside = (x > low) & (x <= high)
        if before < target <= before + _weight_of(backend, inside, weight):
            x, weight, target = x[inside], None if weight is None else weight[inside], target - before
    if weight is None:
        place = min(max(int(np.ceil(target)), 1), x.shape[0]) - 1
        return float(xp.sort(x)[place])
    order = xp.argsort(x)
    running = device_kernels.on(backend).running_sums(backend, backend.take(weight, order))
    place = int(xp.searchsorted(running, backend.full((1,), target * (1.0 - 1e-15)))[0])
    return float(x[int(order[min(place, x.shape[0] - 1)])])


def _bracket(backend: Backend, x: Any, weight: Any, target: float) -> tuple[float, float]:
    """Return ends that the entry lies between but for one case in ten thousand, if the rows come in no particular order."""
    xp, step = backend.xp, x.shape[0] // SAMPLE
    if weight is None:
        sample, count, share = xp.sort(x[::step]), x[::step].shape[0], target / x.shape[0]
        # Four deviations of a binomial count.
        slack = 4.0 * np.sqrt(max(share * (1.0 - share), 1.0 / count) / count)
        places = [int((share + side * slack) * count) for side in (-1.0, 1.0)]
    else:
        order = xp.argsort(x[::step])
        sample, s = backend.take(x[::step], order), backend.take(weight[::step], order)
        running, count, share = xp.cumulative_sum(s), order.shape[0], target / float(xp.sum(weight))
        total = float(running[-1])
        # The same for as many rows as the weights are worth.
        slack = 4.0 * np.sqrt(max(share * (1.0 - share), 1.0 / count) * float(xp.sum(s * s))) / total
        ends = backend.array(np.array([(share - slack) * total, (share + slack) * total]))
        places = backend.host(xp.searchsorted(running, ends)).tolist()
    low = float(np.nextafter(float(sample[places[0]]), -np.inf)) if places[0] > 0 else -np.inf
    return low, float(sample[places[1]]) if places[1] < count else np.inf


def _weight_of(backend: Backend, mask: Any, weight: Any) -> float:
    xp = backend.xp
    return float(xp.count_nonzero(mask)) if weight is None else float(xp.sum(weight[mask]))
