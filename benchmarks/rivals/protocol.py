"""One protocol for all: the same rows, the same strengths, alpha chosen by the measure on the same inner rows.

A job is one data set, one split, one rival. The penalty is chosen among ALPHAS, strongest first, by fits at the default effort
on three quarters of the training rows, judged on the last quarter; then a fit for each effort on all training rows, judged on
the test rows. Where a rival sets no threshold, the best of its training scores is taken, on the clock. Rows in the form that a
library wants are made off the clock. Quick fits are timed three times, the best counts. A job that outruns its limit is
stopped: half of the limit is for choosing alpha, and strengths that were not reached, or at which a rival raises an error, do
not take part.
"""

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler

from rivals.base import RANKING, Linear, Rival
from scoreline.measures import get_measure
from scoreline.measures.thresholds import best_threshold

ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TEST_SHARE, INNER_SHARE = 0.3, 0.25
QUICK, REPEATS = 1.0, 3  # fits below so many seconds are timed so often


class Rows(NamedTuple):
    """Training and test rows (CSR), labels 1 and -1."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def split_of(X: Any, y: np.ndarray, split: int, most: int | None) -> Rows:
    """Return a stratified split of at most `most` rows, features divided by their largest magnitude in training."""
    if most is not None and len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=split)
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, stratify=y, random_state=split)
    scaler = MaxAbsScaler().fit(X)
    return Rows(_narrow(scaler.transform(X)), y, _narrow(scaler.transform(X_test)), y_test)


def _narrow(X: Any) -> Any:
    """Return CSR with 32-bit indices, which is all that some rivals take."""
    X = X.tocsr()
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def work(rows: Rows, rival: Rival, measures: list[str], limit: float, report: Callable[[dict[str, Any]], None]) -> None:
    """Do one job; every finding is told as soon as it is there."""
    warnings.simplefilter("ignore")  # loose tolerances and few iterations are among the efforts
    warm_up(rival, rows, measures)
    begin = time.perf_counter()
    groups = [[m] for m in measures] if rival.aware else [measures]
    chosen = choose_alphas(rival, rows, groups, 0.5 * limit)
    report({"kind": "tuned", "seconds": time.perf_counter() - begin, "alpha": chosen})
    prepared = rival.prepare(rows.X, rows.y)
    for effort in rival.efforts:
        for group in groups:
            for alpha in sorted({chosen[measure] for measure in group}):
                wanted = [measure for measure in group if chosen[measure] == alpha]
                for measure, seconds, value in _fitted(rival, prepared, rows, alpha, effort, wanted):
                    report(
                        {
                            "kind": "fit",
                            "measure": measure,
                            "alpha": alpha,
                            "effort": effort,
                            "seconds": seconds,
                            "value": value,
                        }
                    )


def choose_alphas(rival: Rival, rows: Rows, groups: list[list[str]], limit: float) -> dict[str, float]:
    """Return the strength of the penalty for each measure, chosen on inner rows; one fit serves a group of measures."""
    inner = Rows(*_inner(rows))
    part = rival.prepare(inner.X, inner.y)
    chosen: dict[str, float] = {}
    last = None
    for group in groups:
        start = time.perf_counter()  # a measure that takes long takes nothing from the others
        values: dict[str, dict[float, float]] = {measure: {} for measure in group}
        for alpha in ALPHAS:
            if time.perf_counter() - start > limit / len(groups) and values[group[0]]:
                break
            try:
                model = rival.fit(part, alpha, rival.default, group[0])
            except Exception as error:
                last = error
                continue
            for measure in group:
                complete = with_threshold(model, measure, inner.X, inner.y)
                values[measure][alpha] = value_on_test_rows(complete, measure, inner)
        if not values[group[0]]:
            raise RuntimeError(f"no strength of the penalty worked; the last error: {last}")
        chosen |= {measure: max(found, key=lambda a: (found[a], a)) for measure, found in values.items()}
    return chosen


def _fitted(
    rival: Rival, data: Any, rows: Rows, alpha: float, effort: Any, measures: list[str]
) -> list[tuple[str, float, float]]:
    """Return measure, seconds and test value; a fit serves all measures, the time of a threshold is added to its own."""
    seconds: list[float] = []
    while not seconds or (seconds[0] < QUICK and len(seconds) < REPEATS):
        begin = time.perf_counter()
        model = rival.fit(data, alpha, effort, measures[0])
        seconds.append(time.perf_counter() - begin)
    found = []
    for measure in measures:
        begin = time.perf_counter()
        complete = with_threshold(model, measure, rows.X, rows.y)
        extra = time.perf_counter() - begin
        found.append((measure, min(seconds) + extra, value_on_test_rows(complete, measure, rows)))
    return found


def with_threshold(model: Linear, measure: str, X: Any, y: np.ndarray) -> Linear:
    """Return the model with the best threshold of its training scores, unless it has its own or the measure needs none."""
    if model.threshold or measure in RANKING:
        return model
    scores = X @ model.w + model.b
    return Linear(model.w, model.b - best_threshold(y, scores, measure).threshold, threshold=True)


def value_on_test_rows(model: Linear, measure: str, rows: Rows) -> float:
    """Return the measure on the test rows."""
    return float(get_measure(measure).value(rows.y_test > 0, rows.X_test @ model.w + model.b))


def _inner(rows: Rows) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    X, X_test, y, y_test = train_test_split(rows.X, rows.y, test_size=INNER_SHARE, stratify=rows.y, random_state=0)
    return X, y, X_test, y_test


def warm_up(rival: Rival, rows: Rows, measures: list[str]) -> None:
    """Import and compile what a first fit would: on a few rows of either class."""
    some = np.concatenate([np.flatnonzero(rows.y == side)[:50] for side in (1, -1)])
    data = rival.prepare(rows.X[some], rows.y[some])
    for measure in measures if rival.aware else measures[:1]:
        with contextlib.suppress(Exception):  # so few rows may be too few; what fails on all rows is told there
            with_threshold(rival.fit(data, ALPHAS[-1], rival.efforts[0], measure), measure, rows.X[some], rows.y[some])
