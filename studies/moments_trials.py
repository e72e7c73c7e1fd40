"""Functions of class moments beside convex losses: fits that are timed, Gaussian sets, paths, and samples that grow."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from scoreline.classifier import MeasureClassifier
from scoreline.measures import get_measure
from scoreline.operators import as_operator
from scoreline.operators.moments import ClassMoments, Moments
from scoreline.risks import LogisticRisk, RocAreaRisk
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

TINY_PENALTY = 1e-6  # the paper's 0 on Gaussian sets, yet with a minimum where the classes are separable
TOL = 1e-3
POINTS, STARTS, PAIRS = 100, 5, 50_000
GROWING = GaussianSet(10, 0, 0.3, 0.0)  # the set of which ever more rows are drawn
LOSSES: dict[str, Any] = {"accuracy": LogisticRisk, "roc_auc": RocAreaRisk}


class KnownSet(NamedTuple):
    """A Gaussian set with its exact moments; `roots` are those of the covariances, positive and negative."""

    size: GaussianSet
    truth: ClassMoments
    roots: tuple[FloatArray, FloatArray]


def model_of(method: str, measure: str, y: AnyArray, cap: float, penalty: float | None = None) -> MeasureClassifier:
    """Return what is fitted.

    "F" is the paper's procedure, "ours" the exact minimum with shrinkage, "rival" logistic regression or the pairwise hinge:
    mean loss + penalty |w|^2, the penalty 1/n or 1/sqrt(n+ n-) as in the paper if none is given.
    """
    if method in ("F", "ours"):
        # Moments and solution alone, which is what the paper times: no diagnostic pass, the intercept of the model.
        options: dict[str, Any] = {"diagnostics": False}
        if method == "F":
            options |= {"method": "paper", "ridge": 0.0}
        return MeasureClassifier(measure, solver="moments", solver_params=options, threshold="none")
    n, plus = len(y), np.count_nonzero(y > 0)
    common: dict[str, Any] = {"threshold": "none", "tol": TOL, "max_time": cap}
    if measure == "accuracy":
        alpha = 2.0 * (1.0 / n if penalty is None else penalty)
        # The paper's intercept is free: as the coefficient of 10 it is penalised a hundredth as much as the others.
        return MeasureClassifier(
            measure, solver="newton", risk="logistic", alpha=alpha, intercept_scaling=10.0, **common
        )
    alpha = 2.0 * (1.0 / math.sqrt(plus * (n - plus)) if penalty is None else penalty)
    return MeasureClassifier(measure, solver="smoothed", risk="roc_area", alpha=alpha, **common)


def tried(
    methods: Iterable[str], measure: str, splits: Iterable[Split], cap: float, penalty: float | None = None
) -> dict[str, Any]:
    """Return the test value and the seconds of every method on every split."""
    found: dict[str, Any] = {method: {"values": [], "seconds": []} for method in methods}
    for rows in splits:
        for method, own in found.items():
            model = model_of(method, measure, rows.y, cap, penalty)
            begin = time.perf_counter()
            fit(model, rows.X, rows.y)
            own["seconds"].append(time.perf_counter() - begin)
            own["values"].append(value(measure, rows.y_test, model.decision_function(rows.X_test)))
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


def known_set(seed: int, size: GaussianSet, accuracy: float) -> KnownSet:
    """Return a Gaussian set whose best linear classifier is about that accurate.

    How moments were drawn the paper does not say. Here either class has A A'/d + 0.1 I with a Gaussian A of its own, and
    Gaussian means, as far apart as the accuracy wants it.
    """
    d, share = size.columns, size.share
    rng = np.random.default_rng([SEED, seed])
    covariances = [A @ A.T / d + 0.1 * np.eye(d) for A in rng.standard_normal((2, d, d))]
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
    cut = round(0.8 * n)
    for run in range(runs):
        rng = np.random.default_rng([SEED, seed, 1 + run])
        X, y = drawn(known, n, rng)
        noisy = y[:cut].copy()
        noisy[rng.permutation(cut)[: round(known.size.swapped * cut)]] *= -1
        yield Split(X[:cut], noisy, X[cut:], y[cut:])


def gaussian_tried(known: KnownSet, seed: int, measure: str, runs: int, cap: float) -> dict[str, Any]:
    """Return what `tried` does on a Gaussian set, and the same for exact moments, which make one classifier for all runs."""
    begin = time.perf_counter()
    best = MomentsSolver(ridge=0.0).from_moments(known.truth, measure, (1.0, 1.0))
    seconds = time.perf_counter() - begin
    values = [
        value(measure, rows.y_test, rows.X_test @ best.w + best.intercept)
        for rows in gaussian_splits(known, seed, runs)
    ]
    splits = gaussian_splits(known, seed, runs)
    found = tried(("F", "ours", "rival"), measure, splits, cap, TINY_PENALTY)
    return {"exact": {"values": values, "seconds": [seconds] * runs}, **found}


def projected(moments: ClassMoments) -> Callable[[FloatArray], Projected]:
    """Return a function of w: mean and deviation of the scores of either class."""
    means = moments.positive.mean, moments.negative.mean
    spreads = moments.positive.covariance, moments.negative.covariance

    def scores(w: FloatArray) -> Projected:
        stds = [math.sqrt(max(0.0, float(w @ S @ w))) for S in spreads]
        return Projected(float(means[0] @ w), float(means[1] @ w), stds[0], stds[1])

    return scores


def path(X: Any, y: AnyArray, measure: str, cap: float, points: int = POINTS) -> dict[str, Any]:
    """Return the function of the moments, the loss and the measured error between start and stop of a training.

    The convex loss starts at random, as in the paper, which does not say how long that w is; standard normal here. Much
    depends on it, so there are five starts: `loss` and `loss_measured` belong to the one with the middle correlation.
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
    rival, risk = model_of("rival", measure, y, cap), LOSSES[measure]().prepare(y)
    fit(rival, X, y)
    z1_rival = rival.decision_function(X)
    rng, others = np.random.default_rng(SEED), []
    for _ in range(STARTS):
        w = rng.standard_normal(X.shape[1] + 1)
        z0_rival = X @ w[:-1] + (w[-1] if measure == "accuracy" else 0.0)
        between = ((1.0 - t) * z0_rival + t * z1_rival for t in places)  # one at a time: there may be many rows
        pairs = [(float(risk.value(z)), 1.0 - value(measure, y, z)) for z in between]
        others.append(([loss for loss, _ in pairs], [seen for _, seen in pairs]))
    others.sort(key=lambda pair: correlation(*pair))
    return {
        "model": model, "measured": measured, "correlation": correlation(model, measured),
        "apart": float(np.mean(np.abs(np.subtract(model, measured)))),
        "loss": others[STARTS // 2][0], "loss_measured": others[STARTS // 2][1],
        "loss_correlations": [correlation(*pair) for pair in others],
        "ks": {"start": _distances(z0, y), "stop": _distances(z1, y)},
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


def _distances(z: FloatArray, y: AnyArray) -> list[float]:
    """Return Kolmogorov-Smirnov distances to normal: of positives, of negatives, of differences of random pairs."""
    rng, plus, minus = np.random.default_rng(SEED), z[y > 0], z[y < 0]
    pairs = rng.choice(minus, PAIRS) - rng.choice(plus, PAIRS)
    return [shape_of_scores(each, None)["ks"] for each in (plus, minus, pairs)]


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
