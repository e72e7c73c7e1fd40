"""The methods of benchmarks/rows.py: ours row by row, batch methods, and 1PMB; each leaves the curve of its coefficients.

A curve is a list of (seconds since `fit` was called, coefficients with the intercept last); copying coefficients for it is
off the clock. Row methods leave one point for each pass, `bundle_ocas` and `plugin` one for each iteration (thinned, about 30
for 5000), the others one at their end. No method thresholds its scores: benchmarks/rows.py does that, alike for all of them.

1PMB is the mini-batch method of Kar, Narasimhan and Jain (2014), "Online and stochastic gradient methods for non-decomposable
loss functions" (studies/mini_batch.py). Its step wants scaled features and has to be chosen.
"""

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # studies/ is not installed

from scoreline import MeasureClassifier
from scoreline.solvers.registry import all_solvers
from studies.mini_batch import one_pass_mini_batch

SPADE = ("qmean", "min_tpr_tnr", "hmean", "gmean")
STAMP = ("f1", "jaccard")
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
            threshold="train" if rows else "none",  # stamp looks at the threshold to choose its weights
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


def mini_batches(X: Any, y: np.ndarray, measure: str, settings: Settings) -> Run:
    """1PMB with `passes` passes instead of one."""
    own = {"alpha": settings.alpha, "eta": settings.eta, "passes": settings.passes, "cap": settings.cap}
    return Run(*one_pass_mini_batch(X, y, measure, seed=settings.seed, **own))


METHODS: dict[str, Callable[..., Run]] = {
    "spade": ours("spade", curve=True),
    "stamp": ours("stamp", curve=True),
    "1pmb": mini_batches,
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
