"""Projection onto a box with one equality: time against n, and compared with a version that sorts all kinks.

    python benchmarks/projection.py [--most 10000000]

The rival is NumPy: x = clip(v - nu y, 0, 1) is balanced at a root of a piecewise linear function of nu with two kinks a row; it
sorts all of them and adds up slopes. Both give the same point. The exponent is that of a line through log(seconds) over log(n).
"""

import argparse

import numpy as np

from common import SEED, interleave, standalone
from scoreline.risks import project_balanced

NAME, TITLE = "projection", "projection onto a box with one equality: growth with n, and against sorting all kinks"
SIZES, MOST = (10_000, 100_000, 1_000_000, 10_000_000), 10_000_000


def by_sorting(v, y):
    """Return the projection from a sort of all kinks: sum y clip(v - nu y, 0, 1) falls with nu, as fast as rows are inside."""
    kinks = (
        np.where(y > 0, v - 1.0, -v),
        np.where(y > 0, v, 1.0 - v),
    )  # where a row enters the inside of the box, and leaves
    places = np.concatenate(kinks)
    order = np.argsort(places)
    places = places[order]
    inside = np.cumsum(np.where(order < len(v), 1.0, -1.0))
    # Far to the left positives are at 1 and negatives at 0.
    falls = np.concatenate([[0.0], np.cumsum(inside[:-1] * np.diff(places))])
    target = float(np.count_nonzero(y > 0))
    k = int(np.searchsorted(falls, target, side="right")) - 1
    nu = places[k] + (target - falls[k]) / inside[k] if inside[k] > 0 else places[k]
    return np.clip(v - nu * y, 0.0, 1.0)


def main(report, most=MOST):
    rng = np.random.default_rng(SEED)
    sizes, seconds = [n for n in SIZES if n <= most], []
    for n in sizes:
        y = np.where(rng.random(n) < 0.3, 1, -1)
        v = 0.5 + rng.standard_normal(n)
        difference = float(np.abs(project_balanced(v, y) - by_sorting(v, y)).max())
        sides = {"ours": lambda: project_balanced(v, y), "sorting": lambda: by_sorting(v, y)}
        best = interleave(sides, 3 if n > 10**6 else 7)
        seconds.append(best["ours"].best)
        note = f"{1e3 * best['ours'].best:.2f} ms, sorting {1e3 * best['sorting'].best:.2f} ms; differs by {difference:.1e}"
        target = ">= 3" if n == MOST else ""
        report.add(f"n = {n:,}: sorting / ours", best["sorting"].best / best["ours"].best, "x", target, note)
    if len(sizes) > 1:
        exponent = float(np.polyfit(np.log(sizes[1:]), np.log(seconds[1:]), 1)[0])
        report.add(f"exponent of n, from {sizes[1]:,} on", exponent, "", "<= 1.1")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=MOST)
    options = parser.parse_args()
    import types

    standalone(types.SimpleNamespace(NAME=NAME, main=lambda report: main(report, options.most), TITLE=TITLE))
