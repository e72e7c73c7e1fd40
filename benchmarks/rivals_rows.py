"""The methods of benchmarks/rows.py: ours row by row, batch methods, and 1PMB; each leaves the curve of its coefficients.

A curve is a list of (seconds since `fit` was called, coefficients with the intercept last); copying coefficients for it is
off the clock. Row methods leave one point for each pass, `bundle_ocas` and `plugin` one for each iteration (thinned, about 30
for 5000), the others one at their end. No method cuts its scores: benchmarks/rows.py does that, alike for all of them.

1PMB is the mini-batch method of Kar, Narasimhan and Jain (2014), "Online and stochastic gradient methods for non-decomposable
loss functions": after every buffer of rows one projected subgradient step on the structural surrogate of the measure on that
buffer, here `scoreline.risks.ContingencyRisk`. The step eta / sqrt(number of the buffer) wants scaled features, and eta has to
be chosen. The ball is that of the row methods, |w| <= sqrt(2 / alpha), and the mean of all iterates is the result.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from scoreline import MeasureClassifier
from scoreline.risks import ContingencyRisk
from scoreline.solvers.registry import all_solvers

SPADE = ("qmean", "min_tpr_tnr", "hmean", "gmean")
STAMP = ("f1", "jaccard")
BUFFER = 500  # rows of a buffer of 1PMB
ETAS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # with one positive in a buffer, scores have to be in the hundreds
THINNING = 1.25  # the next point is that of an iteration so many times higher


class Settings(NamedTuple):
    """What a fit is given; eta is for 1PMB alone."""

    alpha: float
    passes: int
    cap: float
    seed: int
    eta: float = 1.0


class Run(NamedTuple):
    """The points of a curve, and why the fit ended."""

    points: list[tuple[float, np.ndarray]]
    status: str


class Track:
    """A callback that keeps coefficients and seconds since it was made; what it does itself does not count."""

    def __init__(self, thin: bool):
        self.points: list[tuple[float, np.ndarray]] = []
        self.thin, self.next, self.paused, self.begin = thin, 1, 0.0, time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self.begin - self.paused

    def __call__(self, progress: Any) -> None:
        seconds, since = self.seconds(), time.perf_counter()
        if progress.iteration >= self.next:
            self.points.append((seconds, np.array(progress.w)))
            self.next = max(progress.iteration + 1, math.ceil(THINNING * progress.iteration) if self.thin else 0)
        self.paused += time.perf_counter() - since

    def ended(self, w: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """Return the points, with the end of the fit as the last unless the last has the same coefficients."""
        if not self.points or not np.array_equal(self.points[-1][1], w):
            self.points.append((self.seconds(), w))
        return self.points


def ours(solver: str, curve: bool = False, thin: bool = False, risk: str = "auto") -> Callable[..., Run]:
    """Return the method that fits MeasureClassifier with this solver; with `curve` it is watched on its way."""

    def fit(X: Any, y: np.ndarray, measure: str, settings: Settings) -> Run:
        track = Track(thin)
        params: dict[str, Any] = {"callbacks": [track]} if curve else {}
        rows = solver in ("spade", "stamp")
        if rows:
            params["passes"] = settings.passes
        model = MeasureClassifier(
            measure, solver=solver, risk=risk, solver_params=params, alpha=settings.alpha,
            threshold="train" if rows else "none",  # stamp looks at the cut to choose its weights
            max_iter=10**6, max_time=settings.cap, random_state=settings.seed,
        ).fit(X, y)  # fmt: skip
        return Run(track.ended(np.append(model.coef_, model.trained_intercept_)), model.status_)

    return fit


def logistic(X: Any, y: np.ndarray, measure: str, settings: Settings) -> Run:
    """scikit-learn's logistic regression, which knows nothing of the measure; it has no limit of time, but of iterations."""
    track = Track(False)
    model = LogisticRegression(C=1.0 / (len(y) * settings.alpha), max_iter=1000).fit(X, y)
    status = "converged" if model.n_iter_[0] < 1000 else "max_iter"
    return Run(track.ended(np.append(model.coef_, model.intercept_)), status)


def buffers(y: np.ndarray, size: int, rng: np.random.Generator) -> Any:
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


def one_pass_mini_batch(X: Any, y: np.ndarray, measure: str, settings: Settings, size: int = BUFFER) -> Run:
    """1PMB with `passes` passes instead of one: the mean of all iterates, within |w| <= sqrt(2 / alpha) as ours."""
    points: list[tuple[float, np.ndarray]] = []
    begin, paused, status = time.perf_counter(), 0.0, "max_iter"
    rng, risk, prepared = np.random.default_rng(settings.seed), ContingencyRisk(measure), {}
    radius, steps = math.sqrt(2.0 / settings.alpha), 0
    w = np.zeros(X.shape[1] + 1)
    total = np.zeros_like(w)
    for _ in range(settings.passes):
        for rows, positive in buffers(y, size, rng):
            counts = positive, len(rows)
            if counts not in prepared:  # positives come first, so their number says it all
                prepared[counts] = risk.prepare(np.where(np.arange(len(rows)) < positive, 1, -1))
            part = X[rows]
            _, slope = prepared[counts].value_grad(part @ w[:-1] + w[-1])
            steps += 1
            step = settings.eta / math.sqrt(steps)
            w[:-1] -= step * (part.T @ slope)
            w[-1] -= step * slope.sum()
            length = math.sqrt(w @ w)
            if length > radius:
                w *= radius / length
            total += w
            if time.perf_counter() - begin - paused > settings.cap:
                status = "max_time"
                break
        since = time.perf_counter()
        points.append((since - begin - paused, total / steps))
        paused += time.perf_counter() - since
        if status == "max_time":
            break
    return Run(points, status)


METHODS: dict[str, Callable[..., Run]] = {
    "spade": ours("spade", curve=True),
    "stamp": ours("stamp", curve=True),
    "1pmb": one_pass_mini_batch,
    "amp": ours("amp"),
    "cost_search": ours("cost_search"),
    "plugin": ours("plugin", curve=True, thin=True),
    "bundle_ocas": ours("bundle_ocas", curve=True, thin=True, risk="contingency"),
    "logistic": logistic,
}
ROW_METHODS = ("spade", "stamp")
BATCH = ("amp", "cost_search", "plugin", "bundle_ocas", "logistic")


def methods_for(measure: str) -> list[str]:
    """Return the methods that train for the measure, ours first."""
    mine = "spade" if measure in SPADE else "stamp"
    return [m for m in METHODS if m == mine or (m not in ROW_METHODS and (m != "amp" or measure in STAMP))]


def missing() -> list[str]:
    """Return the methods that this version of the package does not have."""
    return [m for m in METHODS if m not in ("1pmb", "logistic") and m not in all_solvers()]
