"""Folds of a cross-validation: lists of rows of one X, their fits side by side, and what the held-out rows say."""

import numbers
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from scoreline.fitting.rows import TrainingRows
from scoreline.measures import CountsBasedMeasure, Measure, best_threshold, robust_threshold
from scoreline.risks.base import Risk
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, FloatArray

# Folds are repeated where the rarer class has fewer rows than this, if kinds of features are compared: the differences of
# three folds are noise there. On 12 small sets this gained 0.001 of AUC in the mean, and 0.011 on that with 22 positives.
FEW_ROWS = 250
REPEATS = 3


class Fold(NamedTuple):
    """What the fits of a fold gave for each alpha: scores of the held-out rows or the measure on them, and how they ended.

    `ends` are the models of the first and of the last alpha, from which fits for further alphas begin.
    """

    scores: FloatArray | None
    values: FloatArray | None
    passes: float
    converged: list[bool]
    degenerate: list[bool]
    ends: tuple[Any, Any]

    def extended(self, more: "Fold", stronger: bool) -> "Fold":
        """Return this fold with fits for stronger penalties (from weak to strong) before it, or for weaker ones after it."""

        def joined(own: Any, new: Any) -> Any:
            if own is None:
                return None
            parts = (new[::-1], own) if stronger else (own, new)
            return [*parts[0], *parts[1]] if isinstance(own, list) else np.concatenate(parts)

        ends = (more.ends[1], self.ends[1]) if stronger else (self.ends[0], more.ends[1])
        return Fold(
            joined(self.scores, more.scores), joined(self.values, more.values), self.passes + more.passes,
            joined(self.converged, more.converged), joined(self.degenerate, more.degenerate), ends,
        )  # fmt: skip


def make_splits(
    cv: Any, sign: AnyArray, groups: Any, weight: FloatArray | None, classes: AnyArray, repeat_if_few: bool = False
) -> list[tuple[AnyArray, AnyArray]]:
    """Return (training rows, held-out rows) of every fold, in the order of memory.

    Folds that are made here (cv is None or a number) are folds of the rows of positive weight: the others count for nothing.
    With `repeat_if_few` these are made three times where the rarer class has few rows.
    """
    from sklearn.model_selection import RepeatedStratifiedKFold, check_cv

    made_here = cv is None or isinstance(cv, numbers.Integral)
    eligible = np.arange(len(sign)) if weight is None or not made_here else np.flatnonzero(weight > 0.0)
    truth = (sign[eligible] > 0).astype(int)
    splitter = check_cv(cv, y=truth, classifier=True)
    fewest = int(min(np.count_nonzero(truth), np.count_nonzero(truth == 0)))
    if repeat_if_few and made_here and splitter.get_n_splits() <= fewest < FEW_ROWS:
        splitter = RepeatedStratifiedKFold(n_splits=splitter.get_n_splits(), n_repeats=REPEATS, random_state=0)
    try:
        made = list(splitter.split(np.zeros(len(eligible)), truth, groups))
    except ValueError as error:
        of_weight = "" if len(eligible) == len(sign) else " of positive weight"
        raise ValueError(
            f"cv={cv!r} cannot split {len(eligible)} rows{of_weight}, {fewest} of them of the rarer class: {error} "
            "Use fewer folds, at most as many as the rarer class has rows, or MeasureClassifier with an alpha of your own."
        ) from error
    splits = [(eligible[_rows(train, len(eligible))], eligible[_rows(test, len(eligible))]) for train, test in made]
    for k, (train, test) in enumerate(splits):
        if len(test) == 0:
            raise ValueError(f"fold {k} of cv={cv!r} holds no rows out, expected at least one: use fewer folds")
        counted = sign[train] if weight is None else sign[train][weight[train] > 0.0]
        for side, label in zip((-1, 1), np.asarray(classes).tolist(), strict=True):
            if side not in counted:
                found = "no rows" if side not in sign[train] else "only rows of weight 0"
                raise ValueError(
                    f"fold {k} of cv={cv!r} has {found} of class {label!r} to train on, expected at least one row of positive "
                    "weight. Pass a number of folds or StratifiedKFold(shuffle=True) as cv. A class with a single row cannot "
                    "be split: use MeasureClassifier with an alpha of your own."
                )
    return splits


def _rows(given: Any, n: int) -> AnyArray:
    """Return row numbers in the order of memory; masks and numbers from the end are understood."""
    rows = np.asarray(given)
    return (
        np.flatnonzero(rows) if rows.dtype == bool and len(rows) == n else np.sort(np.where(rows < 0, rows + n, rows))
    )


def run_folds(
    prepare: Callable[[AnyArray, AnyArray, Any], Callable[[], Fold]], splits: list[Any], starts: list[Any], stop: Event,
    side_by_side: bool,
) -> list[Fold]:  # fmt: skip
    """Run the folds, each from its start, in turn or side by side with their shares of the threads; Ctrl-C ends them all."""
    threads = parallel.current_threads()
    workers = max(1, min(threads, len(splits))) if side_by_side else 1
    tasks = [(train, test, start) for (train, test), start in zip(splits, starts, strict=True)]
    if workers == 1:
        return [prepare(train, test, start)() for train, test, start in tasks]

    def run(call: Callable[[], Fold]) -> Fold:
        with parallel.thread_limit(max(1, threads // workers)):
            return call()

    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(run, prepare(train, test, start)) for train, test, start in tasks]
        try:
            return [each.result() for each in waiting]
        except BaseException:
            stop.set()  # after the iteration that each is in
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def pooled(folds: list[Fold], splits: list[Any], k: int) -> tuple[FloatArray, AnyArray]:
    """Return the held-out scores of all folds for one alpha, and their rows."""
    return (
        np.concatenate([fold.scores[k] for fold in folds]),  # type: ignore[index]  # folds whose scores were asked for
        np.concatenate([test for _, test in splits]),
    )


def threshold_of(measure: Measure, rows: TrainingRows, scores: FloatArray, listed: AnyArray) -> float:
    """Return the threshold that the scores of held-out rows give; class weights count, as in every threshold."""
    weight = None if rows.weight is None else rows.weight[listed]
    if isinstance(measure, CountsBasedMeasure):
        return robust_threshold(rows.sign[listed], scores, measure, weight).threshold
    return best_threshold(rows.sign[listed], scores, measure, weight).threshold


class Candidate(NamedTuple):
    """A risk and a solver with what their folds gave for each alpha, from the strongest penalty to the weakest.

    `values` is the measure on held-out rows (alphas from strong to weak by folds); folds that ran along a path of alphas have
    the scores of these rows, too. `cost` is the weight of a positive, None where each fit has its own.
    """

    risk: Risk
    solver: str
    along: bool
    alphas: list[float]
    folds: list[Fold]
    values: FloatArray
    cost: float | None = None
    features: str = "linear"
    l1_ratio: float | None = None

    def open_edge(self, decade: int) -> str | None:
        """Return "strong" or "weak" where the best alpha is the first or the last and the measure still grows there, else None.

        It grows if the gain over the alpha `decade` places further in is larger than its standard error.
        """
        best, last = int(np.argmax(self.means)), len(self.alphas) - 1
        if best not in (0, last) or last < decade:
            return None
        with np.errstate(invalid="ignore"):  # a function of the user's may be infinite
            gains = self.values[best] - self.values[decade if best == 0 else last - decade]
        known = gains[np.isfinite(gains)]
        error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else 0.0
        if len(known) == 0 or known.mean() <= error:
            return None
        return "strong" if best == 0 else "weak"

    @property
    def means(self) -> FloatArray:
        """Mean for each alpha over the folds that have a value; minus infinity where none has."""
        return np.nan_to_num(mean_of(self.values), nan=-np.inf)

    @property
    def degenerate(self) -> list[bool]:
        """For each alpha, whether a fold gave all its rows the same score."""
        return [any(flags) for flags in zip(*(fold.degenerate for fold in self.folds), strict=True)]

    def without_scores(self) -> "Candidate":
        """Return it without n scores for every alpha."""
        return self._replace(folds=[fold._replace(scores=None) for fold in self.folds])


def mean_of(values: FloatArray) -> FloatArray:
    """Return the means over the folds that have a value, NaN where none has."""
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore"):  # a function of the user's may be infinite, with either sign
        return np.where(count > 0, np.where(known, values, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def deviation_of(values: FloatArray) -> FloatArray:
    """Return the standard deviations over the folds that have a value (with n - 1), 0 where fewer than two have."""
    found = [row[~np.isnan(row)] for row in values]
    with np.errstate(invalid="ignore"):  # a function of the user's may be infinite: then this is NaN
        return np.array([row.std(ddof=1) if len(row) > 1 else 0.0 for row in found])


def undefined_folds(candidates: list[Candidate]) -> list[int]:
    """Return the folds whose held-out rows do not define the measure."""
    return np.flatnonzero(np.isnan(candidates[0].values).all(axis=0)).tolist()


def results_table(given: list[float] | None, candidates: list[Candidate]) -> dict[str, AnyArray]:
    """Return the table of the search: for every risk the alphas in the order in which they were given, or as they are."""
    orders = [[each.alphas.index(a) for a in (each.alphas if given is None else given)] for each in candidates]
    values = np.concatenate([each.values[order] for each, order in zip(candidates, orders, strict=True)])
    means = mean_of(values)
    ranks = 1 + np.array([int(np.count_nonzero(means > mean)) for mean in means])
    splits = {f"split{f}_test_score": values[:, f] for f in range(values.shape[1])}
    deviations, sizes = deviation_of(values), [len(order) for order in orders]
    return {
        "alpha": np.concatenate([np.take(each.alphas, order) for each, order in zip(candidates, orders, strict=True)]),
        "risk": np.repeat([each.risk.name for each in candidates], sizes),
        "features": np.repeat([each.features for each in candidates], sizes),
        "l1_ratio": np.repeat([np.nan if each.l1_ratio is None else each.l1_ratio for each in candidates], sizes),
        "cost": np.repeat([np.nan if each.cost is None else each.cost for each in candidates], sizes),
        "mean_test_score": means, "std_test_score": deviations, "rank_test_score": ranks, **splits,
    }  # fmt: skip
