"""Promises: thresholds that keep a floor or a ceiling on new rows with a chosen probability, for any sample size."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, betabinom

from scoreline.measures.base import ratio
from scoreline.measures.operating_points import (
    OperatingPoint,
    PrecisionAtRecall,
    RecallAtAlarms,
    RecallAtCost,
    RecallAtPrecision,
    binomial_tail,
)
from scoreline.measures.registry import get_measure
from scoreline.measures.thresholds import SortedScores, best_threshold
from scoreline.runtime.checks import check_level
from scoreline.runtime.types import AnyArray, FloatArray

DESIGN_SHARE = 0.25  # of the held-out rows, where a sequence is tested: they fix it unless other rows do
STEP = 1.05  # from one tested threshold to the next, in flagged rows
MOST_ROWS = 10**9  # beyond which a promise is called out of reach
ORDER_STATISTIC = "Neyman-Pearson order statistic"
FIXED_SEQUENCE = "fixed sequence of exact binomial tests"
FIXED_BETS = "fixed sequence of tests by betting"


class Promise(NamedTuple):
    """What is promised of predictions on new rows like the held-out ones.

    Attributes
    ----------
    holds : bool
        Whether the promise is given. If not, the model makes no use of a threshold that may break it.
    level : float
        Least probability, over held-out samples, that the constraint holds for the distribution of the rows.
    constraint : str
        The constraint in words.
    bound : float
        The limit of the constraint.
    rows : int
        Held-out rows that the proof is about: flagged ones for precision, those of one class for rates, otherwise all.
    theorem : str
        What proves it.
    measure : str
        Name of the operating point.
    measure_params : dict
        Its parameters, with which `check_promise` tests the constraint on other rows.
    reason : str
        Without a promise: why, and what would be needed. Otherwise empty.
    """

    holds: bool
    level: float
    constraint: str
    bound: float
    rows: int
    theorem: str
    measure: str
    measure_params: dict[str, Any]
    reason: str = ""

    def __str__(self) -> str:
        start = f"{self.constraint} with probability {self.level:g}"
        if self.holds:
            return f"{start}: promised by {self.rows:,} held-out rows ({self.theorem})."
        return f"{start}: not promised. {self.reason}"


class PromiseCheck(NamedTuple):
    """What labelled rows say about a constraint that was promised.

    Attributes
    ----------
    broken : bool
        Whether the rows refute the constraint: `p_value` is at most 1 - level.
    constraint : str
        The constraint in words.
    bound : float
        The limit of the constraint.
    value : float
        What the constraint limits, on these rows: precision, say. NaN where no row is of this kind.
    rows : int
        Rows that `value` is about: flagged ones for precision, those of one class for rates, otherwise all.
    p_value : float
        Largest probability of a result as bad as this if the constraint holds. For a number of alarms in the next rows: if the
        new rows are like the held-out ones, over both samples.
    level : float
        Level of the test.
    """

    broken: bool
    constraint: str
    bound: float
    value: float
    rows: int
    p_value: float
    level: float

    def __str__(self) -> str:
        if self.rows == 0:
            return f"{self.constraint}: no row to test it on."
        verdict = "broken" if self.broken else "not refuted"
        return f"{self.constraint}: {verdict}; {self.value:.4g} on {self.rows:,} rows (p = {self.p_value:.2g})."


class PromisedThreshold(NamedTuple):
    """A threshold (positive means score > threshold), which may be infinite, and what it promises."""

    threshold: float
    promise: Promise


def promised_threshold(
    measure: OperatingPoint,
    y: AnyArray,
    scores: FloatArray,
    sample_weight: Any = None,
    random_state: Any = 0,
    design: tuple[Any, Any, Any] | None = None,
) -> PromisedThreshold:
    """Return a threshold that keeps the constraint of an operating point with probability `measure.guarantee`.

    The rows must be independent and new to the model. Rates and numbers of alarms take an order statistic (eq.
    order-statistic). Precision and costs take a fixed sequence of tests (eq. precision-test), whose thresholds come from other
    rows, or from a random quarter of these. Where no threshold is proved to keep the constraint, the threshold is infinite:
    nothing is flagged. That of recall is minus infinity: all rows are flagged, which keeps any floor of recall.

    Parameters
    ----------
    measure : OperatingPoint
        "recall_at_precision", "precision_at_recall", "tpr_at_fpr", "recall_at_alarms" or "recall_at_cost" with `guarantee`.
    y : array of n labels
        Positive where y > 0. Rows of one class are enough for a rate of that class.
    scores : array of n floats
        Scores of rows that the model has not seen.
    sample_weight : array of n whole numbers, optional
        How many independent rows each row stands for.
    random_state : int or RandomState, default=0
        Random seed of the quarter.
    design : (labels, scores, weights or None), optional
        Rows that fix the thresholds to be tested for precision and costs, for example the training rows. None of them may be
        among the held-out rows.

    Returns
    -------
    PromisedThreshold
        The threshold and the promise. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline.measures import TprAtFpr, promised_threshold
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], [200, 1000])
    >>> found = promised_threshold(TprAtFpr(0.05, guarantee=0.95), y, rng.standard_normal(1200) + 2 * y)
    >>> print(found.promise)
    false positive rate <= 0.05 with probability 0.95: promised by 1,000 held-out rows (Neyman-Pearson order statistic).
    """
    if measure.guarantee is None:
        raise ValueError(f"measure {measure.name!r} has no guarantee; pass guarantee=0.95.")
    weight = _counts(sample_weight)
    rows = (np.asarray(y), np.asarray(scores), weight)
    if measure.ordered:
        return _with_order_statistic(measure, *rows)
    return _with_sequence(measure, rows, design, random_state)


def check_counts(promise: Promise, tp: int, fp: int, fn: int, tn: int, level: float = 0.95) -> PromiseCheck:
    """Test the constraint of a promise on the confusion counts of labelled rows; see `check_promise`.

    Parameters
    ----------
    promise : Promise
        What was promised.
    tp, fp, fn, tn : int
        Counts of independent rows that are new to the model.
    level : float, default=0.95
        Level of the test.

    Returns
    -------
    PromiseCheck
        broken, constraint, bound, value, rows, p_value, level.
    """
    check_level(level)
    measure = get_measure(promise.measure, promise.measure_params)
    assert isinstance(measure, OperatingPoint)
    counts = (float(tp), float(fp), float(fn), float(tn))
    if isinstance(measure, RecallAtAlarms) and measure.rows is not None:
        p_value = _p_value_of_alarms(measure, promise, tp + fp, tp + fp + fn + tn)
    else:
        p_value = float(measure.p_value_if_met(*counts))
    value, rows = float(measure.limited(*counts)), int(measure.trials(*counts)[1])
    broken = rows > 0 and p_value <= 1.0 - level
    return PromiseCheck(broken, promise.constraint, promise.bound, value, rows, p_value, level)


def _p_value_of_alarms(measure: RecallAtAlarms, promise: Promise, flagged: int, rows: int) -> float:
    """Return the chance of so many alarms in rows that are like the held-out ones (eq. alarms-test)."""
    allowed = allowed_errors(measure, promise.rows, promise.level)
    if allowed < 0:  # nothing is flagged, whatever the rows
        return 1.0
    return float(betabinom.sf(flagged - 1, rows, allowed + 1.0, max(promise.rows - allowed, 1)))


def allowed_errors(measure: OperatingPoint, rows: int, level: float) -> int:
    """Return the largest number of errors among the rows that proves the constraint, -1 if there is none."""
    low, high = -1, rows  # errors = rows proves nothing, unless there is nothing to prove
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _proved(measure, middle, rows, level) else (low, middle)
    return rows if rows > 0 and _proved(measure, rows, rows, level) else low


def _proved(measure: OperatingPoint, errors: int, rows: int, level: float) -> bool:
    """Tell whether so many errors among the rows of an ordered point prove its constraint (eq. order-statistic)."""
    right = rows - errors
    counts = {
        "positives": (right, 0, errors, 0),
        "negatives": (0, errors, 0, right),
        "rows": (0, errors, 0, right),
    }[measure.proved_on]
    return bool(measure.proof(*counts) <= 1.0 - level)


def _counts(sample_weight: Any) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if not (np.array_equal(weight, np.rint(weight)) and weight.min(initial=0.0) >= 0.0):
        raise ValueError(
            "a guarantee counts independent rows, so sample_weight must be whole numbers; leave other weights out."
        )
    return weight


def _promise(measure: OperatingPoint, rows: int, theorem: str, reason: str = "") -> Promise:
    level, words = float(measure.guarantee or 0.0), measure.constraint()
    given = (words, measure.limit, rows, theorem, measure.name, measure.parameters())
    return Promise(not reason, level, *given, reason)


def _with_order_statistic(measure: OperatingPoint, y: AnyArray, z: FloatArray, weight: Any) -> PromisedThreshold:
    """Return the threshold with the most flagged rows (for recall the fewest) whose held-out errors prove the limit."""
    of_recall = isinstance(measure, PrecisionAtRecall)
    own = {"positives": y > 0, "negatives": y <= 0, "rows": np.ones(len(y), dtype=bool)}[measure.proved_on]
    rows = int(np.count_nonzero(own) if weight is None else weight[own].sum())
    allowed = allowed_errors(measure, rows, float(measure.guarantee or 0.0))
    if allowed < 0:
        needed = measure.rows_for_proof(float(measure.guarantee or 0.0))
        kind = measure.proved_on
        words = f"at least {int(np.ceil(needed)):,} held-out {kind}" if needed < MOST_ROWS else "another limit"
        done = "All rows are flagged" if of_recall else "No row is flagged"
        reason = f"There are {rows:,} held-out {kind}; it needs {words}. {done}."
        return PromisedThreshold(-np.inf if of_recall else np.inf, _promise(measure, rows, ORDER_STATISTIC, reason))

    def reach(tp: Any, fp: Any, fn: Any, tn: Any) -> FloatArray:
        wanted = fn + tn if of_recall else tp + fp
        return np.where(measure.errors(tp, fp, fn, tn) <= allowed, 1.0 + wanted, 0.0)

    scan = SortedScores(y, z, weight)
    _, (low, high, *_) = scan.best(lambda block: reach(*block[2:]), measure)
    return PromisedThreshold(scan.threshold(low, high), _promise(measure, rows, ORDER_STATISTIC))


def _with_sequence(
    measure: OperatingPoint, rows: tuple[Any, Any, Any], design: tuple[Any, Any, Any] | None, random_state: Any
) -> PromisedThreshold:
    """Return the last threshold of the sequence that passes; nothing is flagged where the first fails."""
    risk = 1.0 - float(measure.guarantee or 0.0)
    if design is None:
        chosen, given = _design_rows(rows[0], random_state), rows
        design, rows = _part(given, chosen), _part(given, ~chosen)
    positive, z, counts = _counted(*rows)
    theorem = FIXED_BETS if isinstance(measure, RecallAtCost) and not measure.one_cost else FIXED_SEQUENCE
    threshold, passed, first = np.inf, None, None
    for each in _sequence(measure, *_counted(*design), float(counts.sum())):
        above = z > each
        cells = [float(counts[part].sum()) for part in (above & positive, above & ~positive, positive & ~above)]
        cells.append(float(counts.sum()) - sum(cells))
        first = cells if first is None else first
        if not (cells[0] + cells[1] > 0.0 and float(measure.proof(*cells)) <= risk):  # (eq. precision-test)
            break
        threshold, passed = each, cells
    if passed is not None:
        return PromisedThreshold(threshold, _promise(measure, int(measure.trials(*passed)[1]), theorem))
    tested = 0 if first is None else int(measure.trials(*first)[1])
    reason = _needs(measure, first, len(z), risk) + " No row is flagged."
    return PromisedThreshold(np.inf, _promise(measure, tested, theorem, reason))


def _part(rows: tuple[Any, Any, Any], chosen: AnyArray) -> tuple[Any, Any, Any]:
    y, scores, weight = rows
    return y[chosen], scores[chosen], None if weight is None else weight[chosen]


def _counted(y: Any, scores: Any, weight: Any) -> tuple[AnyArray, FloatArray, FloatArray]:
    """Return which rows are positive, their scores, and how many rows each stands for."""
    z = np.asarray(scores, dtype=np.float64)
    return np.asarray(y) > 0, z, np.ones(len(z)) if weight is None else np.asarray(weight, dtype=np.float64)


def _design_rows(positive: AnyArray, random_state: Any) -> AnyArray:
    """Return a mask of a random quarter of the rows; labels have no part in it, so the other rows stay a random sample."""
    from sklearn.utils import check_random_state

    order = check_random_state(random_state).permutation(len(positive))
    design = np.zeros(len(positive), dtype=bool)
    design[order[: int(DESIGN_SHARE * len(positive))]] = True
    return design


def _sequence(measure: OperatingPoint, y: AnyArray, z: FloatArray, counts: FloatArray, tested: float) -> list[float]:
    """Return the thresholds to be tested in turn, from the one that most likely passes down, as the design rows say."""
    if not (counts.sum() > 0.0 and (np.asarray(y) > 0).any() and measure.rows_for_proof(0.5) < np.inf):
        return []
    scale = tested / float(counts.sum())

    def evidence(tp: Any, fp: Any, fn: Any, tn: Any) -> FloatArray:
        successes, trials, limit = measure.trials(tp, fp, fn, tn)
        expected = scale * trials * (successes + limit) / (trials + 1.0)  # one row more, at the limit
        tail = np.maximum(binomial_tail(expected, scale * trials, limit), np.finfo(float).tiny)
        return np.where(tp + fp > 0, -np.log(tail), 0.0)

    start = best_threshold(y, z, evidence, counts).threshold
    flagged = float(counts[z > start].sum())
    levels, place = np.unique(-z[z <= start], return_inverse=True)  # those below the start, from the highest
    sums = flagged + np.cumsum(np.bincount(place, counts[z <= start], len(levels)))
    steps = np.log(max(float(sums[-1]), 1.0) / max(flagged, 1.0)) / np.log(STEP) if len(sums) else 0.0
    targets = max(flagged, 1.0) * STEP ** np.arange(1, int(max(steps, 0.0)) + 1)
    ends = np.unique(np.searchsorted(sums, targets))
    ends = ends[ends < len(levels) - 1]
    return [float(start), *(-0.5 * levels[ends] - 0.5 * levels[ends + 1]).tolist()]


def _needs(measure: OperatingPoint, first: list[float] | None, rows: int, risk: float) -> str:
    """Say what would make a promise possible, as far as the first test tells."""
    if measure.rows_for_proof(0.5) == np.inf:
        return f"No number of rows proves {measure.constraint()}; change the limit."
    if first is None or measure.trials(*first)[1] == 0:
        return (
            f"Nothing can be proved on the {rows:,} held-out rows: no threshold to test flags any of them. Pass more rows, or "
            "change the limit."
        )
    successes, trials, limit = measure.trials(*first)
    value = float(measure.limited(*first))
    if isinstance(measure, RecallAtPrecision) and successes == 0.0:
        none = f"At the strictest threshold tested, 0 of {trials:,.0f} flagged held-out rows are positive."
        return f"{none} Ask for a lower precision, or improve the model."
    if isinstance(measure, RecallAtPrecision):
        reached = float(beta.ppf(risk, successes, trials - successes + 1.0))
        words = (
            f"At the strictest threshold tested, {successes:,.0f} of {trials:,.0f} flagged held-out rows are positive, which "
            f"proves a precision of {reached:.3g} there."
        )
        change = f"Ask for a precision nearer to {reached:.3g}"
    else:
        words = f"At the strictest threshold tested, the mean cost of {trials:,.0f} held-out rows is {value:.3g}."
        change = f"Raise the limit above {value:.3g}"
    if float(ratio(successes, trials)) <= limit:
        return f"{words} {change}, or improve the model."
    factor = 1
    while factor * trials < MOST_ROWS and float(measure.proof(*(factor * each for each in first))) > risk:
        factor *= 2
    return f"{words} If this rate stays the same, about {factor * rows:,} held-out rows are enough."
