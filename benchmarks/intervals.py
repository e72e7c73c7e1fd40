"""Do the intervals of `scoreline.measures.interval` cover the true value? 20 settings, and 9 that are nearly perfect.

Every setting draws SAMPLES samples of rows and counts how many intervals contain the true value. The rows of simulated settings
come from two normal distributions, and the true value is computed from these. With SCORELINE_DATA, six settings draw rows with
replacement from the scores of a model on a data set, whose value on all rows is the true one. The exact intervals of rates may
cover more than their level. `--rows N` times the interval of the ROC area on so many rows, as a ratio to one
`np.argsort` of the scores in the same run.

    [SCORELINE_DATA=folder] python benchmarks/intervals.py [--samples 2000] [--jobs 16] [--limit 500] [--measure roc_auc] ...
    python benchmarks/intervals.py --rows 10000000
"""

import argparse
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import norm

import cells
from common import header
from scoreline.measures import compare_scores, get_measure, interval

SIMULATED = [
    *[("roc_auc", m, n, shift) for m, n, shift in ((30, 300, 1.0), (30, 3000, 2.5), (200, 200, 0.5), (500, 2000, 1.5))],
    *[("average_precision", m, n, shift) for m, n, shift in ((30, 300, 1.0), (30, 1000, 2.0), (200, 1000, 1.5))],
    ("partial_roc_auc", 30, 300, 1.5),
    ("prbep", 200, 1000, 1.5),
    *[(name, 30, 300, 1.5) for name in ("f1", "mcc", "gmean", "recall")],
    ("mcc", 200, 1000, 1.5),
    ("roc_auc, groups", 100, 100, 1.0),
    ("roc_auc, difference", 30, 300, 1.0),
]
MORE_SIMULATED = [
    ("partial_roc_auc", 200, 1000, 1.5),
    *[(name, 30, 300, 1.5) for name in ("balanced_accuracy", "accuracy")],
    ("f1", 200, 1000, 1.5),
]
NEARLY_PERFECT = [
    *[("average_precision", m, 300, shift) for m, shift in ((30, 2.0), (30, 3.0), (30, 4.0), (10, 3.0))],
    ("partial_roc_auc", 30, 300, 3.0),
    ("prbep", 30, 300, 3.0),
    ("roc_auc", 30, 300, 4.0),
    *[(f"{name}, difference", 30, 300, 3.0) for name in ("roc_auc", "average_precision")],
]
RESAMPLED = [
    ("roc_auc", 30, 300, "adult-raw"),
    ("roc_auc", 30, 1000, "letter"),
    ("average_precision", 30, 1000, "campaign"),
    ("average_precision", 200, 1000, "adult-raw"),
    ("f1", 30, 300, "campaign"),
    ("gmean", 30, 1000, "letter"),
]
THRESHOLD, GROUP_ROWS, NOISE, CHUNK = 1.0, 3, 1.0, 100


def load(name):
    """Return the labels of a data set and the scores of a logistic regression, with a threshold that flags the positives."""
    from sklearn.linear_model import LogisticRegression

    from tuned_threshold import load as rows

    X, y = rows(name)
    z = LogisticRegression(max_iter=1000).fit(X[::2], y[::2]).decision_function(X)
    return y > 0, z - np.quantile(z, 1.0 - y.mean())


@cache
def true_value(name, m, n, shift):
    """Return the value of the measure at the distributions, with the shares of the classes of the samples."""
    if isinstance(shift, str):
        y, z = cells.DATA[shift]
        return get_measure(name).value(y, z, np.where(y, m / y.sum(), n / (~y).sum()))
    t = np.linspace(-10.0, 10.0 + shift, 200_001)
    tpr, fpr = norm.sf(t - shift), norm.sf(t)
    name, difference, _ = name.partition(", difference")
    if difference:
        return true_value(name, m, n, shift / np.sqrt(1.0 + NOISE**2)) - true_value(name, m, n, shift)
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
    if isinstance(shift, str):
        labels, scores = cells.DATA[shift]
        z = np.concatenate([rng.choice(scores[labels], m), rng.choice(scores[~labels], n)])
    else:
        z = rng.standard_normal(m + n) + shift * (y > 0) - THRESHOLD
    if name == "roc_auc, groups":  # rows of a group share their class and a part of their score
        y, groups = np.repeat(y, GROUP_ROWS), np.repeat(np.arange(m + n), GROUP_ROWS)
        z = np.sqrt(0.5) * (rng.standard_normal(m + n)[groups] + rng.standard_normal(len(y))) + shift * (y > 0)
        found = interval("roc_auc", y, z, groups=groups)
    elif name.endswith(", difference"):
        noisy = z + NOISE * rng.standard_normal(m + n)
        found = compare_scores(y, z, noisy, name.partition(",")[0])
    else:
        found = interval(name, y, z)
    return found.low <= true <= found.high, found.method


def chunk(cell):
    """Return how many intervals of a chunk of samples cover the true value, and their method."""
    *setting, number = cell
    rng = np.random.default_rng([number, len(setting[0]), setting[1], setting[2]])
    hits = [covered(*setting, rng) for _ in range(CHUNK)]
    return [sum(bool(hit) for hit, _ in hits), hits[0][1]]


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
    return f"ROC area of {rows:,} rows, {own:.2f} s, argsort alone {sort:.2f} s, ratio {own / sort:.2f}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--measure", default="", help="only settings whose measure has this in its name")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--table", type=Path, default=None, help="write the table to this file")
    cells.add_options(parser, "intervals")
    options = parser.parse_args()
    if options.rows is not None:
        print(timing(options.rows))
        return
    data = "SCORELINE_DATA" in os.environ or options.join is not None
    settings = SIMULATED + (RESAMPLED if data else MORE_SIMULATED) + NEARLY_PERFECT
    settings = [each for each in settings if options.measure in each[0]]
    wanted = [[*each, number] for number in range(max(1, options.samples // CHUNK)) for each in settings]
    names = sorted({each[3] for each in settings if isinstance(each[3], str)})
    found = cells.run(options, wanted, chunk, load, names)
    lines = [
        "# Coverage of 95 % intervals",
        "",
        "`python benchmarks/intervals.py`; seeds 0, 1, ..., one for each 100 samples. A share of 2000 samples is known within "
        "1.0 percentage points.",
        "",
        *(f"- {key}: {value}" for key, value in header().items()),
        *(f"- {each['cell']}: {each['error']}" for each in found if "error" in each),
        "",
        "| measure | positives | negatives | shift, or resampled set | method | samples | covered |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    outside = 0
    for setting in settings:
        own = [each["found"] for each in found if each["cell"][:4] == list(setting) and each["found"]]
        if own:
            share = 100.0 * sum(hits for hits, _ in own) / (CHUNK * len(own))
            outside += not 93.0 <= share <= 97.0
            lines.append(f"| {' | '.join(map(str, setting))} | {own[0][1]} | {CHUNK * len(own)} | {share:.1f} % |")
    lines += ["", f"{outside} of {len(settings)} settings are outside of 93 to 97 %."]
    print("\n".join(lines))
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
