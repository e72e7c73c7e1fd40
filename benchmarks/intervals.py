"""Do the intervals of `scoreline.measures.interval` cover the true value? 20 settings of two normal distributions.

Every setting draws SAMPLES samples of rows and counts how many intervals contain the true value, which is computed from the
distributions. The exact intervals of rates may cover more than their level. The last line has the time of the interval of the
ROC area on ten million rows, as a ratio to one `np.argsort` of the scores in the same run.

    python benchmarks/intervals.py [--samples 1000] [--rows 10000000] [--out benchmarks/results/intervals.md]
"""

import argparse
import time
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import norm

from scoreline.measures import compare_scores, get_measure, interval

COUNTS = ("f1", "mcc", "gmean", "balanced_accuracy", "recall", "accuracy")
SETTINGS = [
    *[("roc_auc", m, n, shift) for m, n, shift in ((30, 300, 1.0), (30, 3000, 2.5), (200, 200, 0.5), (500, 2000, 1.5))],
    *[("average_precision", m, n, shift) for m, n, shift in ((30, 300, 1.0), (30, 1000, 2.0), (200, 1000, 1.5))],
    *[("partial_roc_auc", m, n, shift) for m, n, shift in ((30, 300, 1.5), (200, 1000, 1.5))],
    ("prbep", 200, 1000, 1.5),
    *[(name, 30, 300, 1.5) for name in COUNTS],
    ("f1", 200, 1000, 1.5),
    ("mcc", 200, 1000, 1.5),
    ("roc_auc, groups", 100, 100, 1.0),
    ("roc_auc, difference", 30, 300, 1.0),
]
THRESHOLD, GROUP_ROWS, NOISE = 1.0, 3, 1.0


@cache
def true_value(name, m, n, shift):
    """Return the value of the measure at the distributions, with the shares of the classes of the samples."""
    t = np.linspace(-10.0, 10.0 + shift, 200_001)
    tpr, fpr = norm.sf(t - shift), norm.sf(t)
    if name.startswith("roc_auc"):
        return norm.cdf(shift / np.sqrt(2.0))
    if name == "average_precision":
        precision = m * tpr / np.maximum(m * tpr + n * fpr, 1e-300)
        return np.trapezoid(precision * norm.pdf(t - shift), t)
    if name == "partial_roc_auc":
        inside = fpr <= 0.1
        area = np.trapezoid(tpr[inside] * norm.pdf(t[inside]), t[inside])
        return 0.5 * (1.0 + (area - 0.005) / 0.095)
    if name == "prbep":
        return tpr[np.argmin(np.abs(m * tpr + n * fpr - m))]
    tp, fp = m * norm.sf(THRESHOLD - shift), n * norm.sf(THRESHOLD)
    if name == "recall":
        return tp / m
    return float(get_measure(name).from_counts(tp, fp, m - tp, n - fp))


def covered(name, m, n, shift, rng):
    """Draw one sample and tell whether its interval contains the true value."""
    true = true_value(name, m, n, shift)
    y = np.repeat([1, -1], [m, n])
    z = rng.standard_normal(m + n) + shift * (y > 0) - THRESHOLD
    if name == "roc_auc, groups":  # rows of a group share their class and a part of their score
        y, groups = np.repeat(y, GROUP_ROWS), np.repeat(np.arange(m + n), GROUP_ROWS)
        z = np.sqrt(0.5) * (rng.standard_normal(m + n)[groups] + rng.standard_normal(len(y))) + shift * (y > 0)
        found = interval("roc_auc", y, z, groups=groups)
    elif name == "roc_auc, difference":
        noisy = z + NOISE * rng.standard_normal(m + n)
        true = norm.cdf(shift / np.sqrt(2.0 + 2.0 * NOISE**2)) - true
        found = compare_scores(y, z, noisy)
    else:
        found = interval(name, y, z)
    return found.low <= true <= found.high, found.method


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timing(rows):
    """Return the line on the interval of the area of many rows, in turns with a sort of them."""
    rng = np.random.default_rng(0)
    y = rng.random(rows) < 0.1
    z = rng.standard_normal(rows) + y
    interval("roc_auc", y[:1000], z[:1000])
    pairs = [(seconds(lambda: np.argsort(z)), seconds(lambda: interval("roc_auc", y, z))) for _ in range(3)]
    sort, own = (min(side) for side in zip(*pairs, strict=True))
    return f"ROC area of {rows:,} rows: {own:.2f} s, argsort alone {sort:.2f} s, ratio {own / sort:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [
        "# Coverage of 95 % intervals",
        "",
        f"`python benchmarks/intervals.py --samples {options.samples}`; seed 0, two normal distributions of deviation 1.",
        f"The share of {options.samples} samples is known within "
        f"{196 * np.sqrt(0.95 * 0.05 / options.samples):.1f} percentage points.",
        "",
        "| measure | positives | negatives | shift | method | covered |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for setting in SETTINGS:
        rng = np.random.default_rng(0)
        hits = [covered(*setting, rng) for _ in range(options.samples)]
        share = np.mean([hit for hit, _ in hits])
        lines.append(f"| {' | '.join(map(str, setting))} | {hits[0][1]} | {100 * share:.1f} % |")
        print(lines[-1], flush=True)
    lines += ["", timing(options.rows) + "."]
    print(lines[-1])
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
