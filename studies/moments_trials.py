"""Functions of class moments beside convex losses: fits that are timed, Gaussian sets, paths, and samples that grow."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from scoreline.classifier import MeasureClassifier
from scoreline.measures import get_measure
from scoreline.operators import as_operator
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers import MomentsSolver
from scoreline.solvers.normal_model import (
    Projected,
    best_intercept,
    best_ranking_direction,
    error,
    paper_start,
    ranking_error,
    shape_of_scores,
)
from studies.datasets import SEED, Split
from studies.ghanbari2018_paper import GaussianSet
from studies.ghanbari2018_rivals import (
    BATCH,
    LOSSES,
    SMALL_BATCHES,
    Linear,
    by_adam,
    by_lbfgs,
    random_start,
    with_penalty,
)

TINY_PENALTY = 1e-6  # of the library's solvers where the paper has 0: separable classes have no minimum then
TOL = 1e-3
POINTS, STARTS, PAIRS, BINS = 100, 5, 50_000, 40
GROWING = GaussianSet(10, 0, 0.3, 0.0)  # the set of which ever more rows are drawn
LENGTHS = (0.01, 0.1, 1.0, 10.0)  # deviations of random starts; the paper does not print its own
PRINTED, DEFAULTS = ("F", "rival"), ("ours", "ours_rival")
RATIOS = (1.0 / 3.0, 1.0, 3.0)  # of the deviations of the classes of Gaussian sets
STOPS = (2.0, math.inf)  # orders of the norm of the gradient by which L-BFGS stops
DEFAULT_RUNS = 5  # of the library's defaults, which stand beside; the paper's methods have all 20


class KnownSet(NamedTuple):
    """A Gaussian set with its exact moments; `roots` are those of the covariances, positive and negative."""

    size: GaussianSet
    truth: ClassMoments
    roots: tuple[FloatArray, FloatArray]


def penalty_of(measure: str, y: AnyArray) -> float:
    """Return the paper's penalty: 1/n for the logistic loss, 1/sqrt(n+ n-) for the pairwise hinge."""
    plus = np.count_nonzero(y > 0)
    return 1.0 / len(y) if measure == "accuracy" else 1.0 / math.sqrt(plus * (len(y) - plus))


def model_of(method: str, measure: str, y: AnyArray, cap: float, penalty: float) -> MeasureClassifier:
    """Return what the library fits by default: "ours" by moments, "ours_rival" the loss with penalty |w|^2.

    "ours" is the exact minimum with shrinkage; the losses are the logistic one and the smoothed pairwise hinge.
    """
    if method == "ours":
        # Moments and solution alone, which is what the paper times: no diagnostic pass, the intercept of the model.
        return MeasureClassifier(measure, solver="moments", solver_params={"diagnostics": False}, threshold="none")
    common: dict[str, Any] = {
        "threshold": "none",
        "tol": TOL,
        "max_time": cap,
        "alpha": 2.0 * max(penalty, TINY_PENALTY),
    }
    if measure == "accuracy":
        # The intercept is free: as the coefficient of 10 it is penalised a hundredth as much as the others.
        return MeasureClassifier(measure, solver="newton", risk="logistic", intercept_scaling=10.0, **common)
    return MeasureClassifier(measure, solver="smoothed", risk="roc_area", **common)


def paper_function(X: Any, y: AnyArray, measure: str, length_penalty: float, order: float = 2.0) -> Linear:
    """Return where the paper's procedure ends on F_n01 or F_nrank: no ridge, L-BFGS, its start and its stop."""
    solver = MomentsSolver(method="paper", ridge=0.0)
    solver.length_penalty, solver.gradient_norm = length_penalty, order
    found = solver.train(as_operator(X), y, None, measure, (1.0, 1.0))
    return Linear(found.w, found.intercept, found.n_iter)


class Setting(NamedTuple):
    """What a table says about its runs: penalty of the loss (None: by the number of rows), of the length of w, random seed."""

    penalty: float | None
    length_penalty: float
    seed: int
    cap: float


def trained(method: str, measure: str, X: Any, y: AnyArray, setting: Setting, start: FloatArray) -> Any:
    """Return a function from rows to scores."""
    penalty = penalty_of(measure, y) if setting.penalty is None else setting.penalty
    if method == "F":
        return paper_function(X, y, measure, setting.length_penalty).scores
    if method in ("rival", "rival_0"):
        return by_lbfgs(X, y, measure, penalty if method == "rival" else 0.0, start).scores
    model = model_of(method, measure, y, setting.cap, penalty)
    fit(model, X, y)
    return model.decision_function


def trials(methods: Iterable[str], measure: str, splits: Iterable[Split], setting: Setting) -> dict[str, Any]:
    """Return the test value and the processor time of every method on every split; of the defaults on the first five."""
    found: dict[str, Any] = {method: {"values": [], "seconds": []} for method in methods}
    for run, rows in enumerate(splits):
        start = random_start(rows.X, measure, 1.0, np.random.default_rng([setting.seed, run]))
        for method, own in found.items():
            if method in DEFAULTS and run >= DEFAULT_RUNS:
                continue
            begin = time.process_time()
            scores = trained(method, measure, rows.X, rows.y, setting, start)
            own["seconds"].append(time.process_time() - begin)
            own["values"].append(value(measure, rows.y_test, scores(rows.X_test)))
    return found


def start_lengths(measure: str, splits: Iterable[Split], penalties: Sequence[float | None]) -> dict[str, Any]:
    """Return mean test values and iterations of the rival by penalty ("1/n" for None) and length of the random start."""
    runs = list(splits)
    found: dict[str, Any] = {}
    for penalty in penalties:
        for length in LENGTHS:
            values, iterations = [], []
            for k, rows in enumerate(runs):
                start = random_start(rows.X, measure, length, np.random.default_rng([SEED, k]))
                own = penalty_of(measure, rows.y) if penalty is None else penalty
                end = by_lbfgs(rows.X, rows.y, measure, own, start)
                values.append(value(measure, rows.y_test, end.scores(rows.X_test)))
                iterations.append(end.iterations)
            key = f"{'by rows' if penalty is None else f'{penalty:g}'}, {length:g}"
            found[key] = {"value": float(np.mean(values)), "iterations": float(np.mean(iterations))}
    return found


def discriminant_and_adam(name: str, splits: Iterable[Split]) -> dict[str, Any]:
    """Return test accuracies of scikit-learn's LDA and of Adam, as in table 4.7.

    "excess" of Adam is how far the training objective of its end lies above that of L-BFGS, relative to the latter.
    """
    found: dict[str, Any] = {method: {"values": [], "seconds": []} for method in ("LDA", "Adam")}
    found["Adam"]["excess"] = []
    for run, rows in enumerate(splits):
        X, X_test = (each.toarray() if hasattr(each, "toarray") else each for each in (rows.X, rows.X_test))
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # repeated columns
            scores = LinearDiscriminantAnalysis().fit(X, rows.y).decision_function(X_test)
        found["LDA"]["seconds"].append(time.process_time() - begin)
        found["LDA"]["values"].append(value("accuracy", rows.y_test, scores))
        begin, batch = time.process_time(), SMALL_BATCHES.get(name, BATCH)
        penalty, rng = 1.0 / len(rows.y), np.random.default_rng([SEED, run])
        end = by_adam(X, rows.y, penalty, batch, rng)
        found["Adam"]["seconds"].append(time.process_time() - begin)
        found["Adam"]["values"].append(value("accuracy", rows.y_test, end.scores(X_test)))
        best = by_lbfgs(X, rows.y, "accuracy", penalty, np.zeros(X.shape[1] + 1))
        loss = with_penalty(X, rows.y, "accuracy", penalty)
        least, reached = (loss(np.append(own.w, own.intercept))[0] for own in (best, end))
        found["Adam"]["excess"].append(reached / least - 1.0)
    return found


def fit(model: MeasureClassifier, X: Any, y: AnyArray) -> None:
    """Fit; that a limit of time was reached is no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)


def value(measure: str, y: AnyArray, scores: FloatArray) -> float:
    """Return accuracy (of the sign) or AUC."""
    if measure == "accuracy":
        return float(np.mean((scores > 0.0) == (y > 0)))
    return float(get_measure(measure).value(y > 0, scores))


def known_set(seed: int, size: GaussianSet, accuracy: float, ratio: float = 1.0) -> KnownSet:
    """Return a Gaussian set whose best linear classifier is about that accurate.

    How moments were drawn the paper does not say. Here either class has A A'/d + 0.1 I with a Gaussian A of its own, and
    Gaussian means, as far apart as the accuracy wants it. Deviations of the positive class are multiplied by `ratio`.
    """
    d, share = size.columns, size.share
    rng = np.random.default_rng([SEED, seed])
    covariances = [A @ A.T / d + 0.1 * np.eye(d) for A in rng.standard_normal((2, d, d))]
    covariances[0] *= ratio**2
    means = rng.standard_normal((2, d))
    w = best_ranking_direction(means[0] - means[1], covariances[0] + covariances[1])
    spread = [math.sqrt(w @ S @ w) for S in covariances]

    def missing(log_size: float) -> float:  # of this direction: nearly the best one, at any length of the means
        scores = Projected(*(math.exp(log_size) * (means @ w)), *spread)
        return 1.0 - error(scores, best_intercept(scores, share), share) - accuracy

    means *= math.exp(brentq(missing, -15.0, 5.0, xtol=1e-6))
    parts = [
        Moments(n, mean, S * (n - 1.0))
        for n, mean, S in zip((1e4 * share, 1e4 * (1.0 - share)), means, covariances, strict=True)
    ]
    first, second = (np.linalg.cholesky(S) for S in covariances)
    return KnownSet(size, ClassMoments(*parts), (first, second))


def drawn(known: KnownSet, rows: int, rng: np.random.Generator) -> tuple[FloatArray, AnyArray]:
    """Return rows of a Gaussian set and their labels, in random order; the share of positives is exact."""
    y = np.where(rng.permutation(rows) < round(known.size.share * rows), 1, -1)
    X = np.empty((rows, known.size.columns))
    for sign, part, root in zip((1, -1), (known.truth.positive, known.truth.negative), known.roots, strict=True):
        there = np.flatnonzero(y == sign)
        X[there] = part.mean + rng.standard_normal((len(there), known.size.columns)) @ root.T
    return X, y


def gaussian_splits(known: KnownSet, seed: int, runs: int) -> Iterator[Split]:
    """Yield splits of rows drawn anew: 80 % to train on, some of their labels swapped, the others to test."""
    n = known.size.rows
    n_train = round(0.8 * n)
    for run in range(runs):
        rng = np.random.default_rng([SEED, seed, 1 + run])
        X, y = drawn(known, n, rng)
        noisy = y[:n_train].copy()
        noisy[rng.permutation(n_train)[: round(known.size.swapped * n_train)]] *= -1
        yield Split(X[:n_train], noisy, X[n_train:], y[n_train:])


def gaussian_trials(known: KnownSet, seed: int, measure: str, runs: int, cap: float) -> dict[str, Any]:
    """Return what `trials` does on a Gaussian set, and the same for exact moments, which make one classifier for all runs.

    The paper sets the regularization to 0 on these sets.
    """
    begin, solver = time.perf_counter(), MomentsSolver(method="paper", ridge=0.0)
    solver.length_penalty = 0.0
    best = solver.from_moments(known.truth, measure, (1.0, 1.0))
    seconds, values = time.perf_counter() - begin, []

    def splits() -> Iterator[Split]:
        for rows in gaussian_splits(known, seed, runs):
            values.append(value(measure, rows.y_test, rows.X_test @ best.w + best.intercept))
            yield rows

    found = trials((*PRINTED, *DEFAULTS), measure, splits(), Setting(0.0, 0.0, seed, cap))
    return {"exact": {"values": values, "seconds": [seconds] * runs}, **found}


def gaussian_choices(name: str, size: GaussianSet, measure: str, accuracy: float, runs: int) -> list[dict[str, Any]]:
    """Return means for every ratio of the deviations of the two classes and both ways to stop, none of which is printed.

    "F" and "rival" are test values, "iterations" those of F, and "exact" is what the exact moments predict.
    """
    seed, found = int(name[-1]), []
    for ratio in RATIOS:
        known = known_set(seed, size, accuracy, ratio)
        solver = MomentsSolver(ridge=0.0)
        exact = float(solver.from_moments(known.truth, measure, (1.0, 1.0)).predicted)
        ends: dict[float, list[tuple[float, float, int]]] = {order: [] for order in STOPS}
        for run, rows in enumerate(gaussian_splits(known, seed, runs)):
            start = random_start(rows.X, measure, 1.0, np.random.default_rng([seed, run]))
            for order, own in ends.items():
                mine = paper_function(rows.X, rows.y, measure, 0.0, order)
                other = by_lbfgs(rows.X, rows.y, measure, 0.0, start, order)
                first, second = (value(measure, rows.y_test, each.scores(rows.X_test)) for each in (mine, other))
                own.append((first, second, mine.iterations))
        for order, own in ends.items():
            F, rival, iterations = (float(each) for each in np.mean(own, axis=0))
            end = {"F": F, "rival": rival, "iterations": iterations}
            found.append({"ratio": ratio, "largest": math.isinf(order), "exact": exact, **end})
    return found


def projected(moments: ClassMoments) -> Callable[[FloatArray], Projected]:
    """Return a function of w: mean and deviation of the scores of either class."""
    means = moments.positive.mean, moments.negative.mean
    spreads = moments.positive.covariance, moments.negative.covariance

    def scores(w: FloatArray) -> Projected:
        stds = [math.sqrt(max(0.0, float(w @ S @ w))) for S in spreads]
        return Projected(float(means[0] @ w), float(means[1] @ w), stds[0], stds[1])

    return scores


def path(X: Any, y: AnyArray, measure: str, points: int = POINTS) -> dict[str, Any]:
    """Return the function of the moments, the loss and the measured error between start and stop of a training.

    The convex loss starts at random, as in the paper, which does not say how long that w is; standard normal here. There are
    five starts: `loss` and `loss_measured` belong to the one with the middle correlation.
    """
    moments = as_operator(X).class_moments(y)
    scores, prior, places = projected(moments), float(np.mean(y > 0)), np.linspace(0.0, 1.0, points)
    first, last = _ends(moments, measure, prior)
    z0, z1 = (X @ w + b for w, b in (first, last))
    model, measured = [], []
    for t in places:
        w, b = (1.0 - t) * first[0] + t * last[0], (1.0 - t) * first[1] + t * last[1]
        model.append(error(scores(w), b, prior) if measure == "accuracy" else ranking_error(scores(w)))
        measured.append(1.0 - value(measure, y, (1.0 - t) * z0 + t * z1))
    risk, rng, others = LOSSES[measure], np.random.default_rng(SEED), []
    starts = [random_start(X, measure, 1.0, rng) for _ in range(STARTS)]
    # The loss is convex: all starts lead to one minimum.
    z1_rival = by_lbfgs(X, y, measure, penalty_of(measure, y), starts[0]).scores(X)
    p = X.shape[1]
    for v in starts:
        z0_rival = X @ v[:p] + v[p:].sum()
        between = ((1.0 - t) * z0_rival + t * z1_rival for t in places)  # one at a time: there may be many rows
        pairs = [(risk(z, y)[0], 1.0 - value(measure, y, z)) for z in between]
        others.append(([loss for loss, _ in pairs], [observed for _, observed in pairs]))
    others.sort(key=lambda pair: correlation(*pair))
    shapes = {"start": _shapes(z0, y), "stop": _shapes(z1, y)}
    return {
        "model": model, "measured": measured, "correlation": correlation(model, measured),
        "apart": float(np.mean(np.abs(np.subtract(model, measured)))),
        "loss": others[STARTS // 2][0], "loss_measured": others[STARTS // 2][1],
        "loss_correlations": [correlation(*pair) for pair in others],
        "ks": {place: [own["ks"] for own in found] for place, found in shapes.items()}, "shapes": shapes,
    }  # fmt: skip


def _ends(
    moments: ClassMoments, measure: str, prior: float
) -> tuple[tuple[FloatArray, float], tuple[FloatArray, float]]:
    """Return w and intercept where the paper's procedure starts and stops, either of length 1 (rankings: w alone)."""
    a, b = moments.positive.mean, moments.negative.mean
    found = MomentsSolver(method="paper", ridge=0.0).from_moments(moments, measure, (1.0, 1.0))
    w = paper_start(a, b)
    if measure != "accuracy":
        return (w, 0.0), (found.w / np.linalg.norm(found.w), 0.0)
    intercept = best_intercept(projected(moments)(w), prior)
    start = np.append(w, intercept) if math.isfinite(intercept) else paper_start(np.append(a, 1.0), np.append(b, 1.0))
    start, stop = (v / np.linalg.norm(v) for v in (start, np.append(found.w, found.intercept)))
    return (start[:-1], float(start[-1])), (stop[:-1], float(stop[-1]))


def _shapes(z: FloatArray, y: AnyArray) -> list[dict[str, Any]]:
    """Return histogram, mean, deviation and distance to normal of positives, negatives and differences of random pairs."""
    rng, plus, minus = np.random.default_rng(SEED), z[y > 0], z[y < 0]
    found = []
    for each in (plus, minus, rng.choice(minus, PAIRS) - rng.choice(plus, PAIRS)):
        shape, (counts, edges) = shape_of_scores(each, None), np.histogram(each, BINS)
        found.append({
            "ks": shape["ks"], "mean": shape["mean"], "std": shape["std"], "counts": counts.tolist(),
            "edges": [float(edges[0]), float(edges[-1])],
        })  # fmt: skip
    return found


def correlation(first: Any, second: Any) -> float:
    """Return Pearson's correlation; 0 with a constant."""
    if min(np.ptp(first), np.ptp(second)) <= 0.0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def growth(sizes: Sequence[int], draws: int) -> dict[str, Any]:
    """Return root mean squares of (estimate - truth) at one w by the number of Gaussian rows.

    Estimates are F_n01 and F_nrank by the moments of the rows, and error and 1 - AUC counted on the same rows.
    """
    known = known_set(0, GROWING, 0.9)
    best = MomentsSolver(ridge=0.0).from_moments(known.truth, "accuracy", (1.0, 1.0))
    exact = projected(known.truth)(best.w)
    truth = np.array([error(exact, best.intercept, GROWING.share), ranking_error(exact)] * 2)
    rng, found = np.random.default_rng(SEED), []
    for n in sizes:
        differences = []
        for _ in range(draws):
            X, y = drawn(known, n, rng)
            scores, z = projected(as_operator(X).class_moments(y))(best.w), X @ best.w + best.intercept
            counted = [1.0 - value(measure, y, z) for measure in ("accuracy", "roc_auc")]
            model = [error(scores, best.intercept, float(np.mean(y > 0))), ranking_error(scores)]
            differences.append([*model, *counted] - truth)
        found.append(np.sqrt(np.mean(np.square(differences), axis=0)).tolist())
    return {"rows": list(sizes), "distances": found}
