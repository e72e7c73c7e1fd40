"""The figures of Ghanbari and Scheinberg (2018), "Novel and efficient approximations for zero-one loss", made again.

    SCORELINE_DATA=folder python benchmarks/moments_figures.py [--figures 4.1 4.3] [--scaling range] [--out bench-output]

4.1, 4.2: scores of either class and their differences at the first and the last w of F_n01, beside the normal distributions
of the same moments. 4.3, 4.4: F_n01 and logistic loss beside the error, F_nrank and pairwise hinge loss beside 1 - AUC, on
the segment from where a training starts to where it stops; a printed line per set says how far they are apart.

Sets as in benchmarks/moments_tables.py, all rows. Logistic and hinge loss start at random, as in the paper; from w = 0 the
error would be the same all along. How long that w is the paper does not say: here its coordinates are standard normal. Much
depends on it, so there are five such starts: the one with the middle correlation is drawn, all are printed. Nor does the paper
list the sets of 4.3 and 4.4 (the text has svm3 and colon).
"""

import argparse
import os
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

import scoreline.solvers.moments as procedure
from common import OUTPUT, SEED
from moments_tables import OTHER_NAMES, Task, model_of, real_set
from scoreline.measures import get_measure
from scoreline.operators import as_operator
from scoreline.risks import LogisticRisk, RocAreaRisk
from scoreline.solvers.normal_model import Projected, error, ranking_error, shape_of_scores
from smoothing_data import VARIABLE

POINTS, PAIRS, BINS, STARTS = 100, 50_000, 45, 5
PLACES = np.linspace(0.0, 1.0, POINTS)
RED, BLUE, GREY = "#c0392b", "#1f6fb2", "#777777"
PATHS = ["fourclass", "svmguide3", "ijcnn1", "german.numer", "a9a", "colon-cancer", "segment", "covtype"]
SETS = {"4.1": ["a9a"], "4.2": ["diabetes", "poker", "svmguide3", "segment"], "4.3": PATHS, "4.4": PATHS}
# Measure, function of the moments, convex loss, its training in moments_tables.py, and what they stand for.
COMPARED = {
    "4.3": ("accuracy", "F_n01", LogisticRisk, "logistic", "error"),
    "4.4": ("roc_auc", "F_nrank", RocAreaRisk, "pairwise hinge", "1 - AUC"),
}


def ends_of_paper(moments, measure):
    """Return where the paper's procedure starts and stops; for accuracy the intercept is the last coordinate."""
    ends = []

    def watched(function, start, **options):
        found = minimize(function, start, **options)
        ends.extend([start, found.x])
        return found

    with mock.patch.object(procedure, "minimize", watched):
        procedure.MomentsSolver(method="paper", ridge=0.0).from_moments(moments, measure, (1.0, 1.0))
    return ends


def paths_of(figure, name, scaling):
    """Return (function of the moments, measured), and (convex loss, measured) from every start, in order of correlation."""
    measure, _, loss, method, _ = COMPARED[figure]
    X, y, _ = real_set(name, scaling)
    moments = as_operator(X).class_moments(y)
    prior, p = float(np.mean(y > 0)), X.shape[1]
    means, spreads = zip(*((m.mean, m.covariance) for m in (moments.positive, moments.negative)), strict=True)
    risk, report = loss().prepare(y), get_measure(measure).value

    def model(w, b, _):
        scores = Projected(*(float(m @ w) for m in means), *(max(0.0, float(w @ S @ w)) ** 0.5 for S in spreads))
        return error(scores, b, prior) if measure == "accuracy" else ranking_error(scores)

    def along(value, ends):
        points = ((1.0 - t) * ends[0] + t * ends[1] for t in PLACES)
        scores = ((v[:p], v[p:].sum(), X @ v[:p] + v[p:].sum()) for v in points)  # AUC has no intercept: 0
        return np.array([(value(w, b, z), 1.0 - report(y, z)) for w, b, z in scores]).T

    trained = model_of(method, measure, Task(name, X, y, None, None)).fit(X, y)
    stop = trained.coef_.ravel() if measure == "roc_auc" else np.append(trained.coef_, trained.intercept_)
    starts = np.random.default_rng(SEED).standard_normal((STARTS, len(stop)))
    convex = [along(lambda w, b, z: risk.value(z), (start, stop)) for start in starts]
    return along(model, ends_of_paper(moments, measure)), sorted(convex, key=correlation)


def correlation(pair):
    """Return Pearson's correlation, 0 with a constant."""
    return float(np.corrcoef(pair)[0, 1]) if min(map(np.ptp, pair)) > 0.0 else 0.0


def canvas(rows, height):
    """Return matplotlib.pyplot, writing files only, a figure and its panels in rows of four."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.titlesize": 9.5, "legend.frameon": False})
    return plt, *plt.subplots(rows, 4, figsize=(14, 0.6 + height * rows), layout="constrained", squeeze=False)


def save(fig, path):
    """Write the picture with 64 colours, a third of the size."""
    from PIL import Image  # matplotlib needs it, too

    fig.savefig(path, dpi=90)
    Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_paths(figure, names, scaling, path):
    """Two panels per set, two sets per row; print how far model and measured value are apart."""
    plt, fig, axes = canvas((len(names) + 1) // 2, 2.6)
    _, function, _, method, measured = COMPARED[figure]
    for name, (left, right) in zip(names, axes.reshape(-1, 2), strict=False):
        (model, own), convex = paths_of(figure, name, scaling)
        loss, other = convex[STARTS // 2]
        difference, title, twin = np.abs(model - own), OTHER_NAMES.get(name, name), right.twinx()
        agree, *others = (f"{correlation(pair):.2f}" for pair in ((model, own), *convex))
        line = f"{figure} {name:12} |{function} - ({measured})| mean {difference.mean():.4f}, largest {difference.max():.4f}, "
        line += f"correlation {agree}; stop {model[-1]:.4f}, {measured} {own[-1]:.4f} (least {own.min():.4f}); "
        print(line + f"{method} loss: correlation {' '.join(others)}; stop {measured} {other[-1]:.4f}", flush=True)
        for ax, values, colour in ((left, own, BLUE), (left, model, RED), (right, other, BLUE), (twin, loss, RED)):
            ax.plot(PLACES, values, "o-", color=colour, markersize=3.5, markevery=[0, POINTS - 1], clip_on=False)
            ax.set(xlabel="from start (0) to stop (1)", xlim=(0, 1))
        left.set(title=f"{title}: {function}, mean distance {difference.mean():.3f}", ylabel=f"{function}, {measured}")
        left.spines["right"].set_visible(False)
        right.set_title(f"{title}: {method} loss")
        right.set_ylabel(measured, color=BLUE)
        twin.set_ylabel(f"{method} loss", color=RED)
    for ax in axes.ravel()[2 * len(names) :]:
        ax.set_visible(False)
    labels = measured, f"{function} (left of each pair), {method} loss (right of each pair, axis of its own)"
    fig.legend([plt.Line2D([], [], color=c) for c in (BLUE, RED)], labels, ncols=2, loc="outside upper center")
    save(fig, path)


def draw_distributions(figure, names, scaling, path):
    """A row per set: scores of both classes and differences of random pairs, at the first and at the last w."""
    _, fig, axes = canvas(len(names), 2.7)
    for name, row in zip(names, axes, strict=True):
        X, y, _ = real_set(name, scaling)
        ends = ends_of_paper(as_operator(X).class_moments(y), "accuracy")
        for place, point, (classes, pairs) in zip(("start", "stop"), ends, row.reshape(2, 2), strict=True):
            z, rng = X @ point[: X.shape[1]], np.random.default_rng(SEED)
            plus, minus = z[y > 0], z[y < 0]
            differences = rng.choice(minus, PAIRS) - rng.choice(plus, PAIRS)
            draw_scores(classes, ("w'X+", plus, RED), ("w'X-", minus, BLUE))
            draw_scores(pairs, ("w'(X- - X+)", differences, GREY))
            for ax, label in ((classes, "w'X"), (pairs, f"w'(X- - X+), {PAIRS:,} pairs")):
                ax.set(title=f"{OTHER_NAMES.get(name, name)}, w at the {place}", xlabel=label, ylabel="density")
    fig.suptitle("Lines: normal, of the same mean and deviation; KS: Kolmogorov-Smirnov distance to it", size=9.5)
    save(fig, path)


def draw_scores(ax, *samples):
    """Histograms and the normal densities of their moments."""
    for label, z, colour in samples:
        shape = shape_of_scores(z, None)
        ax.hist(z, BINS, density=True, color=colour, alpha=0.35, label=f"{label}, KS {shape['ks']:.2f}")
        x = np.linspace(shape["mean"] - 4.0 * shape["std"], shape["mean"] + 4.0 * shape["std"], 200)
        ax.plot(x, norm.pdf(x, shape["mean"], shape["std"]), color=colour)
    ax.spines["right"].set_visible(False)
    ax.set_ylim(0.0, 1.35 * ax.get_ylim()[1])  # room for the legend
    ax.legend(fontsize=8, loc="upper left", handlelength=1.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--scaling", choices=("magnitude", "range", "none"), default="magnitude")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="folder")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    for figure in options.figures:
        there = [name for name in SETS[figure] if real_set(name, options.scaling) is not None]
        if missing := [name for name in SETS[figure] if name not in there]:
            print(f"{figure}: not in {VARIABLE}={os.environ.get(VARIABLE, '(not set)')}: {', '.join(missing)}")
        if there:
            draw = draw_paths if figure in COMPARED else draw_distributions
            draw(figure, there, options.scaling, path := options.out / f"moments-fig-{figure}.png")
            print(f"{figure}: {path}", flush=True)


if __name__ == "__main__":
    main()
