"""The exact threshold of ten million scores against one np.argsort of them."""

import sys

import numpy as np

from common import SEED, Report, interleave, standalone
from scoreline.measures import best_threshold, get_measure, robust_threshold

NAME, TITLE = "best_threshold", "the best threshold of ten million scores, against np.argsort of them"
N = 10_000_000


def main(report: Report) -> None:
    rng = np.random.default_rng(SEED)
    positive = rng.random(N) < 0.05
    z = rng.standard_normal(N) + 2.0 * positive
    y, weight, measure = positive.astype(np.int8), rng.integers(1, 4, N).astype(float), get_measure("f1")
    for function in (best_threshold, robust_threshold):
        function(y[:10], z[:10], measure)  # compile
        function(y[:10], z[:10], measure, weight[:10])
    sides = {
        "argsort": lambda: np.argsort(z),
        "best_threshold": lambda: best_threshold(y, z, measure),
        "best_threshold, weights": lambda: best_threshold(y, z, measure, weight),
        "robust_threshold": lambda: robust_threshold(y, z, measure),
    }
    times = interleave(sides, 3)
    for name in list(sides)[1:]:
        target = "<= 1.5" if name == "best_threshold" else ""
        note = f"{times[name].best:.2f} s, np.argsort {times['argsort'].best:.2f} s"
        report.add(f"{name} / argsort", times[name].best / times["argsort"].best, "x", target, note)


if __name__ == "__main__":
    standalone(sys.modules[__name__])
