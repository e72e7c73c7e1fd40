"""1PMB, the mini-batch method of Kar, Narasimhan and Jain (2014), with which SPADE and STAMP are compared."""

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from scoreline.risks import ContingencyRisk
from scoreline.runtime.types import AnyArray, FloatArray

BUFFER = 500  # rows of a buffer
ETAS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # with one positive in a buffer, scores have to be in the hundreds


def buffers(y: AnyArray, size: int, rng: np.random.Generator) -> Iterator[tuple[AnyArray, int]]:
    """Yield the rows of every buffer of one pass, positives first, and how many these are.

    Either class is shuffled and dealt out evenly, so that every buffer has the share of positives that the data have, and at
    least one row of either class: where there are more buffers than rows of a class, its rows come again.
    """
    count = max(1, round(len(y) / size))
    sides = [rng.permutation(np.flatnonzero(side)) for side in (y > 0, y <= 0)]
    dealt = [np.array_split(np.resize(rows, max(count, len(rows))), count) for rows in sides]
    for k in rng.permutation(count):
        positive, negative = dealt[0][k], dealt[1][k]
        yield np.concatenate([positive, negative]), len(positive)


def one_pass_mini_batch(
    X: Any, y: AnyArray, measure: str, *, alpha: float, eta: float, passes: int, cap: float, seed: int, size: int = BUFFER,
) -> tuple[list[tuple[float, FloatArray]], str]:  # fmt: skip
    """Return (processor time, coefficients with the intercept last) after every pass, and why the run ended.

    After every buffer comes one projected subgradient step of eta / sqrt(number of the buffer) on the structural surrogate of
    the measure on that buffer. The result is the mean of all iterates within |w| <= sqrt(2 / alpha).
    """
    points: list[tuple[float, FloatArray]] = []
    begin, status = time.process_time(), "max_iter"
    rng, risk = np.random.default_rng(seed), ContingencyRisk(measure)
    prepared: dict[tuple[int, int], Any] = {}
    radius, steps = math.sqrt(2.0 / alpha), 0
    w = np.zeros(X.shape[1] + 1)
    total = np.zeros_like(w)
    for _ in range(passes):
        for rows, positive in buffers(y, size, rng):
            counts = positive, len(rows)
            if counts not in prepared:  # positives come first, so their number says it all
                prepared[counts] = risk.prepare(np.where(np.arange(len(rows)) < positive, 1, -1))
            part = X[rows]
            _, slope = prepared[counts].value_grad(part @ w[:-1] + w[-1])
            steps += 1
            step = eta / math.sqrt(steps)
            w[:-1] -= step * (part.T @ slope)
            w[-1] -= step * slope.sum()
            length = math.sqrt(w @ w)
            if length > radius:
                w *= radius / length
            total += w
            if time.process_time() - begin > cap:
                status = "max_time"
                break
        points.append((time.process_time() - begin, total / steps))
        if status == "max_time":
            break
    return points, status
