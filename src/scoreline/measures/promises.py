"""Promises: thresholds that keep a floor or a ceiling on new rows with a chosen probability, for any sample size."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, binom

from scoreline.measures.base import ratio
from scoreline.measures.operating_points import OperatingPoint, PrecisionAtRecall, RecallAtPrecision
from scoreline.measures.thresholds import SortedScores, best_threshold
from scoreline.runtime.types import AnyArray, FloatArray

DESIGN_SHARE = 0.25  # of the held-out rows, where precision is promised: they fix the sequence of tests
STEP = 1.05  # from one tested threshold to the next, in flagged rows
MOST_ROWS = 10**9  # beyond which a promise is called out of reach
ORDER_STATISTICS = "Neyman-Pearson order statistic"
FIXED_SEQUENCE = "fixed sequence of exact binomial tests"


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
        Held-out rows that the proof is about: flagged ones for precision, those of one class for rates.
    theorem : str
        What proves it.
    reason : str
        Without a promise: why, and what would be needed. Otherwise empty.
    """

    holds: bool
    level: float
    constraint: str
    bound: float
    rows: int
    theorem: str
    reason: str = ""

    def __str__(self) -> str:
        start = f"{self.constraint} with probability {self.level:g}"
        if self.holds:
            return f"{start}: promised by {self.rows:,} held-out rows ({self.theorem})."
        return f"{start}: not promised. {self.reason}"


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

    The rows must be independent and new to the model. Rates take an order statistic of one class (eq. order-statistic).
    Precision takes a fixed sequence of exact binomial tests (eq. precision-test), whose thresholds come from other rows, or
    from a random quarter of these. Where no threshold is proved to keep the constraint, the threshold of precision and of the
    false positive rate is infinite: nothing is flagged. That of recall is minus infinity: all rows are flagged, which keeps
    any floor of recall.

    Parameters
    ----------
    measure : OperatingPoint
        "recall_at_precision", "precision_at_recall" or "tpr_at_fpr" with `guarantee`.
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Scores of rows that the model has not seen.
    sample_weight : array of n whole numbers, optional
        How many independent rows each row stands for.
    random_state : int or RandomState, default=0
        Random seed of the quarter.
    design : (labels, scores, weights or None), optional
        Rows that fix the thresholds to be tested for precision, for example the training rows. None of them may be among the
        held-out rows.

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
    if isinstance(measure, RecallAtPrecision):
        return _with_precision(measure, (np.asarray(y), np.asarray(scores), weight), design, random_state)
    return _with_rate(measure, SortedScores(y, scores, weight))


def allowed_errors(rows: int, rate: float, level: float) -> int:
    """Return the largest c with P(Bin(rows, rate) <= c) <= 1 - level, -1 if there is none (eq. order-statistic)."""
    c = int(binom.ppf(1.0 - level, rows, rate))  # the smallest c that exceeds or reaches it
    while c >= 0 and binom.cdf(c, rows, rate) > 1.0 - level:
        c -= 1
    return c


def _counts(sample_weight: Any) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if not (np.array_equal(weight, np.rint(weight)) and weight.min(initial=0.0) >= 0.0):
        raise ValueError(
            "a guarantee counts independent rows, so sample_weight must be whole numbers; leave other weights out."
        )
    return weight


def _with_rate(measure: OperatingPoint, scan: SortedScores) -> PromisedThreshold:
    """Return the least strict threshold with so few held-out errors that the rate is proved (eq. order-statistic)."""
    level = float(measure.guarantee or 0.0)
    of_recall = isinstance(measure, PrecisionAtRecall)
    limit = measure.recall if isinstance(measure, PrecisionAtRecall) else measure.fpr  # type: ignore[attr-defined]
    rate = 1.0 - limit if of_recall else limit
    rows = int(scan.positive if of_recall else scan.negative)
    allowed = allowed_errors(rows, rate, level) if rows else -1
    given = (level, measure.constraint(), float(limit), rows, ORDER_STATISTICS)
    if allowed < 0:
        kind = "positives" if of_recall else "negatives"
        needed = np.log1p(-level) / np.log1p(-rate) if 0.0 < rate < 1.0 else np.inf
        words = f"at least {int(np.ceil(needed)):,} held-out {kind}" if needed < MOST_ROWS else "another limit"
        done = "All rows are flagged" if of_recall else "No row is flagged"
        return PromisedThreshold(
            -np.inf if of_recall else np.inf,
            Promise(False, *given, f"There are {rows:,} held-out {kind}; it needs {words}. {done}."),
        )

    def value_of(tp: Any, fp: Any, fn: Any, tn: Any) -> FloatArray:
        errors = fn if of_recall else fp
        return np.where(errors <= allowed, 1.0 + measure.target(tp, fp, fn, tn), 0.0)

    _, (low, high, *_) = scan.best(lambda block: value_of(*block[2:]), measure)
    return PromisedThreshold(scan.threshold(low, high), Promise(True, *given))


def _with_precision(
    measure: RecallAtPrecision, rows: tuple[Any, Any, Any], design: tuple[Any, Any, Any] | None, random_state: Any
) -> PromisedThreshold:
    """Return the last threshold of the sequence that passes; nothing is flagged where the first fails."""
    floor, risk = measure.precision, 1.0 - float(measure.guarantee or 0.0)
    if design is None:
        chosen, given = _design_rows(rows[0], random_state), rows
        design, rows = _part(given, chosen), _part(given, ~chosen)
    positive, z, counts = _counted(*rows)
    thresholds = _sequence(*_counted(*design), float(counts.sum()), floor, risk)
    threshold, flagged, first = np.inf, 0, None
    for each in thresholds:
        above = z > each
        trials, true = int(counts[above].sum()), int(counts[above & positive].sum())
        first = (trials, true) if first is None else first
        if not (floor < 1.0 and trials > 0 and binom.sf(true - 1, trials, floor) <= risk):  # (eq. precision-test)
            break
        threshold, flagged = each, trials
    level = float(measure.guarantee or 0.0)
    given = (level, measure.constraint(), float(floor))
    if flagged:
        return PromisedThreshold(threshold, Promise(True, *given, flagged, FIXED_SEQUENCE))
    trials, true = first or (0, 0)
    reason = _precision_needs(trials, true, len(z), floor, risk) + " No row is flagged."
    return PromisedThreshold(np.inf, Promise(False, *given, trials, FIXED_SEQUENCE, reason))


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


def _sequence(y: AnyArray, z: FloatArray, counts: FloatArray, tested: float, floor: float, risk: float) -> list[float]:
    """Return the thresholds to be tested in turn, from the one that most likely passes down, as the design rows say."""
    if not (counts.sum() > 0.0 and (np.asarray(y) > 0).any() and floor < 1.0):
        return []
    scale = tested / float(counts.sum())

    def power(tp: Any, fp: Any, fn: Any, tn: Any) -> FloatArray:
        flagged = np.maximum(np.floor(scale * (tp + fp)), 0.0)
        precision = (tp + floor) / (tp + fp + 1.0)  # one row more, of the floor's precision
        needed = binom.isf(risk, np.maximum(flagged, 1.0), floor) + 1.0  # least number of true ones that passes
        return np.where(flagged > 0.0, binom.sf(needed - 1.0, flagged, precision), 0.0)

    start = best_threshold(y, z, power, counts).threshold
    flagged = float(counts[z > start].sum())
    levels, place = np.unique(-z[z <= start], return_inverse=True)  # those below the start, from the highest
    sums = flagged + np.cumsum(np.bincount(place, counts[z <= start], len(levels)))
    steps = np.log(max(float(sums[-1]), 1.0) / max(flagged, 1.0)) / np.log(STEP) if len(sums) else 0.0
    targets = max(flagged, 1.0) * STEP ** np.arange(1, int(max(steps, 0.0)) + 1)
    ends = np.unique(np.searchsorted(sums, targets))
    ends = ends[ends < len(levels) - 1]
    return [float(start), *(-0.5 * levels[ends] - 0.5 * levels[ends + 1]).tolist()]


def _precision_needs(trials: int, true: int, rows: int, floor: float, risk: float) -> str:
    """Say what would make a promise of precision possible, as far as the first test tells."""
    if floor >= 1.0:
        return "No number of rows proves a precision of 1; lower the floor."
    if trials == 0:
        return f"The {rows:,} held-out rows have nothing to test; give more rows, or lower the floor."
    reached = float(beta.ppf(risk, true, trials - true + 1)) if true else 0.0
    words = f"{true:,} of {trials:,} held-out rows above the first threshold are positive, which proves {reached:.3g}."
    share = float(ratio(true, trials))
    if share <= floor:
        return f"{words} Lower the floor below {share:.3g}, or improve the model."
    factor = 1
    while factor * trials < MOST_ROWS and binom.sf(factor * true - 1, factor * trials, floor) > risk:
        factor *= 2
    return f"{words} With the same share, up to {factor * rows:,} held-out rows would be needed."
