"""Confidence intervals of measures on scored rows: DeLong for the ROC area, exact for rates, the bootstrap for the others."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv, expit, logit
from scipy.stats import beta, norm, t

from scoreline import kernels
from scoreline.measures.base import CountsBasedMeasure, Measure, RankingMeasure, checked_rows, ratio
from scoreline.measures.counts import Accuracy
from scoreline.measures.ranking import RocAuc
from scoreline.measures.registry import all_measures, get_measure
from scoreline.runtime.checks import check_level, check_number
from scoreline.runtime.registry import unknown_name
from scoreline.runtime.types import AnyArray, Counts, FloatArray

REPLICATES = 1000
BAND_DRAWS = 200  # at each threshold of a band
ENTRIES = 1 << 22  # numbers in an array of resamples: 32 MB
FINE_LEVELS = 2048  # so many different scores are resampled one by one
RESOLUTION = 512  # beyond, neighbouring scores are grouped: at most 1/512 of the rows of a class above them
MOST_WEIGHT = 2.0**53  # up to which floats hold all whole numbers
ADDED = 0.5  # rows that an interval adds to each class: without them, a perfect sample would have no width


class Interval(NamedTuple):
    """A value, the ends of its confidence interval, the level, and how the interval was made."""

    value: float
    low: float
    high: float
    level: float
    method: str

    def __str__(self) -> str:
        ends = f"{100 * self.level:g} % interval {self.low:.4f} to {self.high:.4f}"
        return f"{self.value:.4f} ({ends}, {self.method})"


class Difference(NamedTuple):
    """The value of scores b less that of scores a, the ends of its interval, the p-value of no difference, level, method."""

    difference: float
    low: float
    high: float
    p_value: float
    level: float
    method: str

    def __str__(self) -> str:
        ends = f"{100 * self.level:g} % interval {self.low:+.4f} to {self.high:+.4f}"
        return f"{self.difference:+.4f} ({ends}, p = {self.p_value:.2g}, {self.method})"


class Rate(CountsBasedMeasure):
    """A share of rows as a measure: successes among trials, both sums of counts."""

    summary = "a share of the rows"
    risks = ()

    def __init__(self, name: str, trials: Callable[..., tuple[Counts, Counts]]):
        self.name = name  # type: ignore[misc]  # of its own, where others have that of the class
        self.trials = trials

    def from_counts(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        """Return successes / trials, 0 without a trial."""
        return ratio(*self.trials(tp, fp, fn, tn))


RATES = {
    rate.name: rate
    for rate in (
        Rate("accuracy", lambda tp, fp, fn, tn: (tp + tn, tp + fp + fn + tn)),
        Rate("precision", lambda tp, fp, fn, tn: (tp, tp + fp)),
        Rate("recall", lambda tp, fp, fn, tn: (tp, tp + fn)),
        Rate("true_negative_rate", lambda tp, fp, fn, tn: (tn, tn + fp)),
    )
}


def interval(
    measure: str | Measure,
    y: Any,
    scores: Any,
    level: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    measure_params: dict[str, Any] | None = None,
    replicates: int = REPLICATES,
    random_state: int = 0,
) -> Interval:
    """Return a measure on scored rows with its confidence interval.

    The rows are taken as a random sample within each class; the shares of the classes count as given. Rates have the exact
    interval of Clopper and Pearson. The ROC area has the interval of DeLong on the logit scale, with t quantiles. Other
    count-based measures have percentiles under Jeffreys draws of the two rates, and other ranking measures those of a
    stratified bootstrap, to which half a row of each class is added. [The formulas](math/intervals.md) and the measured
    coverage are in the documentation.

    Parameters
    ----------
    measure : str or Measure
        Name or object. Beside the measures of `list_measures()`: "precision", "recall" and "true_negative_rate".
    y : array of n labels
        Positive where y > 0.
    scores : array of n floats
        Decision values; count-based measures and rates take rows with a score above 0 as predicted positive.
    level : float, default=0.95
        Share of samples whose interval contains the true value.
    sample_weight : array of n weights, optional
        Whole numbers count as repeated rows. Other weights are importance weights: rows stay the units of the sample.
    groups : array of n labels, optional
        Rows of one group (a patient, a customer) are dependent: whole groups are the units of the sample.
    measure_params : dict, optional
        Parameters of a measure given by name.
    replicates : int, default=1000
        Number of bootstrap samples.
    random_state : int, default=0
        Random seed of the bootstrap.

    Returns
    -------
    Interval
        value, low, high, level, method. O(n log n); with groups or importance weights the bootstrap costs O(replicates n).
        Memory is a few vectors of n numbers, and 200 MB at most.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline.measures import interval
    >>> y = np.array([0, 0, 1, 0, 1, 1, 0, 1])
    >>> scores = np.array([-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0])
    >>> print(interval("recall", y, scores))
    0.7500 (95 % interval 0.1941 to 0.9937, exact)
    >>> print(interval("roc_auc", y, scores))
    0.7500 (95 % interval 0.1430 to 0.9759, DeLong)
    """
    chosen = _measure(measure, measure_params)
    return intervals_of(
        [chosen], y, scores, level, sample_weight, groups, replicates=replicates, random_state=random_state
    )[0]


def intervals_of(
    measures: list[Measure], y: Any, scores: Any, level: float = 0.95, sample_weight: Any = None, groups: Any = None,
    *, replicates: int = REPLICATES, random_state: int = 0,
) -> list[Interval]:  # fmt: skip
    """Return the intervals of several measures on the same rows, which share the resamples; see `interval`."""
    _check_settings(level, replicates, random_state)
    sample = _Sample(y, [scores], sample_weight, groups)
    found: dict[int, Interval] = {}
    resampled: list[int] = []
    for place, measure in enumerate(measures):
        rate = RATES["accuracy"] if isinstance(measure, Accuracy) else measure
        if isinstance(measure, RocAuc):
            found[place] = _area_interval(sample, level)
        elif isinstance(rate, Rate) and sample.units is None:
            found[place] = _rate_interval(rate, sample.counts(0), level)
        else:
            resampled.append(place)
    replicated = _replicates([measures[place] for place in resampled], sample, replicates, random_state)
    for place, each in zip(resampled, replicated, strict=True):
        found[place] = _resampled_interval(measures[place], sample, each.values[0], level)
    return [found[place] for place in range(len(measures))]


def interval_band(
    measure: CountsBasedMeasure, tp: Counts, fp: Counts, fn: Counts, tn: Counts, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the intervals of a measure at many thresholds, from the counts at each; see `interval`.

    Each interval holds on its own. Rates have exact ends. Others have percentiles under Jeffreys draws, with the same draws
    at all thresholds, so that the band is smooth.
    """
    tp, fp, fn, tn = (np.atleast_1d(np.asarray(each, dtype=np.float64)) for each in (tp, fp, fn, tn))
    tail = 0.5 * (1.0 - level)
    if isinstance(measure, Rate):
        successes, trials = (np.broadcast_to(each, tp.shape) for each in measure.trials(tp, fp, fn, tn))
        misses = trials - successes
        low, high = np.zeros(tp.shape), np.ones(tp.shape)
        above_zero, below_one = successes > 0.0, misses > 0.0
        low[above_zero] = betaincinv(successes[above_zero], misses[above_zero] + 1.0, tail)
        high[below_one] = betaincinv(successes[below_one] + 1.0, misses[below_one], 1.0 - tail)
        return low, high
    rng = np.random.default_rng(0)
    first, second = ((rng.permutation(BAND_DRAWS) + 0.5) / BAND_DRAWS for _ in range(2))
    true = (tp + fn)[:, None] * betaincinv(tp[:, None] + 0.5, fn[:, None] + 0.5, first)
    false = (fp + tn)[:, None] * betaincinv(fp[:, None] + 0.5, tn[:, None] + 0.5, second)
    values = measure.from_counts(true, false, (tp + fn)[:, None] - true, (fp + tn)[:, None] - false)
    with np.errstate(invalid="ignore"):  # a measure of the user may be infinite
        low, high = np.quantile(np.asarray(values, dtype=np.float64), [tail, 1.0 - tail], axis=1)
    return low, high


def compare_scores(
    y: Any,
    a: Any,
    b: Any,
    measure: str | Measure = "roc_auc",
    level: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    measure_params: dict[str, Any] | None = None,
    replicates: int = REPLICATES,
    random_state: int = 0,
) -> Difference:
    """Return the difference of a measure between two models on the same rows, with its interval and p-value.

    The ROC area has the paired test of DeLong, count-based measures have draws from the posterior of both models' predictions,
    and other ranking measures a paired bootstrap: each resample draws rows, with the scores of both models. All add half a row
    to each class, so that a perfect or a reversed ranking of few rows has an interval, too. Interval and p-value come from the
    same t distribution, so they agree. [The formulas](math/intervals.md) are in the documentation.

    Parameters
    ----------
    y : array of n labels
        Positive where y > 0.
    a, b : arrays of n floats
        Decision values of the two models on the same rows; the difference is the value of b less the value of a.
    measure, level, sample_weight, groups, measure_params, replicates, random_state
        As in `interval`.

    Returns
    -------
    Difference
        difference, low, high, p_value, level, method. O(n log n) for the ROC area, else O(replicates n).

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline.measures import compare_scores
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [100, 900])
    >>> b = y + rng.standard_normal(1000)
    >>> a = b + rng.standard_normal(1000)
    >>> print(compare_scores(y, a, b))
    +0.0878 (95 % interval +0.0462 to +0.1285, p = 5e-05, paired DeLong)
    """
    _check_settings(level, replicates, random_state)
    chosen = _measure(measure, measure_params)
    sample = _Sample(y, [a, b], sample_weight, groups)
    area = isinstance(chosen, RocAuc)
    ways = "paired DeLong" if area else "paired " + _method(chosen, sample)
    if np.array_equal(sample.scores[0], sample.scores[1]):
        return Difference(0.0, 0.0, 0.0, 1.0, level, ways)
    if area:
        difference, center, variance, freedom = _area_difference(sample)
    else:
        found = _replicates([chosen], sample, replicates, random_state)[0]
        difference, center = sample.value(chosen, 1) - sample.value(chosen, 0), found.centers[1] - found.centers[0]
        variance, freedom = _bootstrap_variance(found.values[1] - found.values[0], sample), sample.freedom
    error = float(np.sqrt(variance))
    if error == 0.0:  # no resample tells the models apart
        return Difference(difference, difference, difference, float(difference == 0.0), level, ways)
    most = chosen.range[1] - chosen.range[0]
    low, high = np.clip(center + error * float(t.ppf(0.5 + 0.5 * level, freedom)) * np.array([-1.0, 1.0]), -most, most)
    p_value = 2.0 * float(t.sf(abs(center) / error, freedom))
    return Difference(difference, min(float(low), difference), max(float(high), difference), p_value, level, ways)


def _measure(measure: str | Measure, params: dict[str, Any] | None) -> Measure:
    if isinstance(measure, str) and measure in RATES and not params:
        return RATES[measure]
    if isinstance(measure, str) and measure not in all_measures():
        raise unknown_name("measure", measure, list(all_measures() | RATES))
    return get_measure(measure, params)


def _check_settings(level: float, replicates: int, random_state: int) -> None:
    check_level(level)
    check_number("replicates", replicates, least=100, integer=True)
    check_number("random_state", random_state, least=0, integer=True)


class _Sample:
    """Rows with the scores of one model or two: labels, weights, and what the units of the sample are.

    `units` is None where rows of whole weights are independent. Otherwise it has the unit of each row, which is resampled as
    a whole, and `strata` the kind of each unit: with rows of one class, the other, or both.
    """

    def __init__(self, y: Any, scores: list[Any], sample_weight: Any, groups: Any):
        columns = [checked_rows(y, np.asarray(each), sample_weight) for each in scores]
        positive = np.asarray(columns[0].positive)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        counted = slice(None) if weight is None or weight.all() else np.flatnonzero(weight)
        self.positive = positive[counted]
        self.scores = [np.asarray(each.scores, dtype=np.float64)[counted] for each in columns]
        self.weight = None if weight is None else weight[counted]
        for each in self.scores:
            if not np.isfinite(each).all():
                row = int(np.flatnonzero(~np.isfinite(each))[0])
                raise ValueError(f"scores must be finite, got {each[row]} in row {row}.")
        self.units, self.clustered = None, ""
        if groups is not None:
            codes = np.asarray(groups)
            if codes.shape != positive.shape:
                raise ValueError(f"groups has shape {codes.shape}, expected {positive.shape}: one label per row.")
            self.units, self.clustered = np.unique(codes[counted], return_inverse=True)[1], ", clustered"
        elif self.weight is not None and not (
            np.array_equal(self.weight, np.rint(self.weight)) and self.weight.sum() <= MOST_WEIGHT
        ):
            self.units = np.arange(len(self.positive))
        self._count_units()

    def _count_units(self) -> None:
        """Set the numbers of independent units of both classes, and the kinds of the units."""
        sides = (self.positive, ~self.positive)
        if self.units is None:
            self.sizes = [float(np.count_nonzero(s) if self.weight is None else self.weight[s].sum()) for s in sides]
        else:
            held = [np.bincount(self.units[s], minlength=int(self.units.max()) + 1) > 0 for s in sides]
            self.strata = held[0] + 2 * held[1].astype(np.int8)
            self.sizes = [float(np.count_nonzero(each)) for each in held]
        if min(self.sizes) < 2:
            what = "rows" if not self.clustered else "groups"
            raise ValueError(
                f"an interval needs at least two {what} of each class, got {self.sizes[0]:g} with positives and "
                f"{self.sizes[1]:g} with negatives."
            )

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a bootstrap: those of the smaller class."""
        return min(self.sizes) - 1.0

    def value(self, measure: Measure, k: int) -> float:
        """Return the measure of the scores of model k."""
        return measure.value(self.positive, self.scores[k], self.weight)

    def counts(self, k: int) -> FloatArray:
        """Return tp, fp, fn, tn of the predictions of model k."""
        kind = 2 * ~self.positive + (self.scores[k] <= 0.0)
        tp, fn, fp, tn = np.bincount(kind, self.weight, 4)
        return np.array([tp, fp, fn, tn], dtype=np.float64)


class _Placements(NamedTuple):
    """The ROC area, and what each row adds to its deviation: w (V - area) / W, V its placement, W the weight of its class."""

    area: float
    parts: FloatArray
    within: FloatArray  # the share of its own class below each row


def _placements(sample: _Sample, k: int) -> _Placements:
    """Return the placements of the rows by one sort (eq. placements)."""
    z, positive, weight = sample.scores[k], sample.positive, sample.weight
    parts, within = np.empty(len(z)), np.empty(len(z))
    totals = kernels.placements.place(np.argsort(z), z, positive, weight, parts, within)
    sides = (positive, ~positive)
    area = 0.0
    for side, own, other in zip(sides, totals, totals[::-1], strict=True):
        placed = parts[side] / other
        counted = None if weight is None else weight[side]
        area = float(np.average(placed, weights=counted))
        placed -= area
        parts[side] = (placed if counted is None else counted * placed) / own
        within[side] /= own
    return _Placements(area, parts, within)


def _variance(sample: _Sample, parts: FloatArray) -> tuple[float, float]:
    """Return the variance of a sum of parts over the rows, and its degrees of freedom (eq. delong-variance)."""
    if sample.clustered:
        count = int(sample.units.max()) + 1  # type: ignore[union-attr]  # groups have numbers
        sums = np.bincount(sample.units, parts, count)  # type: ignore[arg-type]  # as above
        return float(sums @ sums) * count / (count - 1.0), count - 1.0
    squares = parts * parts if sample.weight is None or sample.units is not None else parts * parts / sample.weight
    return _variance_of_sums(sample, [float(squares[side].sum()) for side in (sample.positive, ~sample.positive)])


def _variance_of_sums(sample: _Sample, squares: list[float]) -> tuple[float, float]:
    """Return the variance and its degrees of freedom from the sums of the squared parts of both classes."""
    variances = [each * size / (size - 1.0) for each, size in zip(squares, sample.sizes, strict=True)]
    total = sum(variances)
    spread = sum(each * each / (size - 1.0) for each, size in zip(variances, sample.sizes, strict=True))
    return total, total * total / spread if spread > 0.0 else sample.freedom


def _area_interval(sample: _Sample, level: float) -> Interval:
    if sample.weight is None and sample.units is None:
        sides = [np.sort(sample.scores[0][side]) for side in (sample.positive, ~sample.positive)]
        value, *squares = kernels.placements.spread(*sides)
        parts = [each / (size * size) for each, size in zip(squares, sample.sizes, strict=True)]
        variance, freedom = _variance_of_sums(sample, parts)
    else:
        value, parts_of_rows, _ = _placements(sample, 0)
        variance, freedom = _variance(sample, parts_of_rows)
    fewest = min(sample.sizes)
    center = (fewest * value + 0.5 * ADDED) / (fewest + ADDED)  # (eq. added-placement)
    variance += sum(ADDED * (0.5 - center) ** 2 / (size * size - ADDED * ADDED) for size in sample.sizes)
    reach = float(t.ppf(0.5 + 0.5 * level, freedom)) * np.sqrt(variance) / (center * (1.0 - center))
    low, high = (float(end) for end in expit(logit(center) + np.array([-reach, reach])))
    area = min(max(value, 0.0), 1.0)
    return Interval(area, min(low, area), max(high, area), level, "DeLong" + sample.clustered)


def _area_difference(sample: _Sample) -> tuple[float, float, float, float]:
    """Return the difference of two areas, the center of its interval, its variance and the degrees of freedom.

    The half row that is added to a class has the scores of a row of the other class, drawn at random (eq. added-difference).
    """
    placed = [_placements(sample, k) for k in range(2)]
    difference = placed[1].area - placed[0].area
    variance, freedom = _variance(sample, placed[1].parts - placed[0].parts)
    fewest = min(sample.sizes)
    center = fewest * difference / (fewest + ADDED)
    squares = (placed[1].within - placed[0].within) ** 2
    for side, size in zip((~sample.positive, sample.positive), sample.sizes, strict=True):
        square = float(np.average(squares[side], weights=None if sample.weight is None else sample.weight[side]))
        variance += ADDED * (square + center * center) / (size * size - ADDED * ADDED)
    return difference, center, variance, freedom


def _rate_interval(rate: Rate, counts: FloatArray, level: float) -> Interval:
    successes, trials = (float(each) for each in rate.trials(*counts))
    if trials == 0.0:
        return Interval(float("nan"), 0.0, 1.0, level, "exact")
    return Interval(successes / trials, *_binomial_ends(successes, trials, level), level, "exact")


def _binomial_ends(successes: float, trials: float, level: float) -> tuple[float, float]:
    """Return the ends of Clopper and Pearson (eq. clopper-pearson)."""
    tail, misses = 0.5 * (1.0 - level), trials - successes
    low = float(beta.ppf(tail, successes, misses + 1.0)) if successes > 0.0 else 0.0
    high = float(beta.ppf(1.0 - tail, successes + 1.0, misses)) if misses > 0.0 else 1.0
    return low, high


def _method(measure: Measure, sample: _Sample) -> str:
    drawn = isinstance(measure, CountsBasedMeasure) and sample.units is None
    return "Jeffreys draws" if drawn else "bootstrap" + sample.clustered


def _resampled_interval(measure: Measure, sample: _Sample, values: FloatArray, level: float) -> Interval:
    """Return percentiles of draws; those of a bootstrap lie further out, as t quantiles do (eq. expanded-percentiles)."""
    value, method = sample.value(measure, 0), _method(measure, sample)
    tail = 0.5 - 0.5 * level
    if method.startswith("bootstrap"):
        tail = float(norm.sf(t.isf(tail, sample.freedom) * np.sqrt(1.0 + 1.0 / sample.freedom)))
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [tail, 1.0 - tail]) if len(values) else (np.nan, np.nan)
    return Interval(value, min(float(low), value), max(float(high), value), level, method)


def _bootstrap_variance(values: FloatArray, sample: _Sample) -> float:
    """Return the variance of replicates; that of m rows resampled is (m - 1) / m of the variance of m rows."""
    smaller = min(sample.sizes)
    values = values[np.isfinite(values)]
    return float(values.var(ddof=1)) * smaller / (smaller - 1.0) if len(values) > 1 else float("nan")


class _Replicated(NamedTuple):
    """A measure on resamples, an array of shape (models, replicates), and on the rows with the added half rows."""

    values: FloatArray
    centers: FloatArray


def _replicates(measures: list[Measure], sample: _Sample, replicates: int, seed: int) -> list[_Replicated]:
    """Return the values of each measure on the same resamples.

    Count-based measures of independent rows are evaluated under posterior draws of the rates. Otherwise the rows are reduced to
    cells: a class and a level of the scores of each model. A level is one score, or neighbouring scores where there are very
    many. A ranking measure is evaluated on levels, and its replicates are moved by what that changes of its value on the rows
    as they are.
    """
    models = len(sample.scores)
    out = [_Replicated(np.empty((models, replicates)), np.empty(models)) for _ in measures]
    for counted in (False, True):
        own = [place for place, each in enumerate(measures) if isinstance(each, CountsBasedMeasure) == counted]
        if not own:
            continue
        if counted and sample.units is None:
            draws, center = _jeffreys_draws(sample, replicates, seed)
            for place in own:
                for k in range(models):
                    out[place].values[k] = _values(measures[place], *draws[k])
                    out[place].centers[k] = _values(measures[place], *center[k])[0]
            continue
        cells = _Cells(sample, counted)
        done = 0
        for block in cells.resamples(replicates, np.random.default_rng(seed)):
            for k in range(models):
                levels = cells.levels(block, k)
                for place in own:
                    out[place].values[k, done : done + len(block)] = _values(measures[place], *levels)
            done += len(block)
        for k in range(models):
            levels = cells.levels(np.array([cells.with_added, cells.weight]), k)
            for place in own:
                center, observed = _values(measures[place], *levels)
                out[place].centers[k] = center
                if cells.grouped:
                    shift = sample.value(measures[place], k) - observed
                    out[place].values[k] += shift
                    out[place].centers[k] += shift
    return out


def _jeffreys_draws(
    sample: _Sample, replicates: int, seed: int
) -> tuple[list[tuple[FloatArray, FloatArray]], list[tuple[FloatArray, FloatArray]]]:
    """Return (tp, fn) and (fp, tn) of each model under posterior draws of the rates, and under their means.

    The prior is that of Jeffreys for each model. Predictions of two models are drawn together (eq. jeffreys-draws).
    """
    models = len(sample.scores)
    kind = np.zeros(len(sample.positive), dtype=np.int64)
    for k, z in enumerate(sample.scores):
        kind += (z <= 0.0).astype(np.int64) << k
    rng = np.random.default_rng(seed)
    drawn, mean = [], []
    for side in (sample.positive, ~sample.positive):
        weight = None if sample.weight is None else sample.weight[side]
        counts = np.bincount(kind[side], weight, 1 << models) + 0.5**models
        total = float(counts.sum()) - 1.0
        drawn.append(total * rng.dirichlet(counts, replicates))
        mean.append(total * counts[None, :] / counts.sum())

    def of_model(k: int, classes: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
        below = (np.arange(1 << models) >> k & 1).astype(bool)
        above, under = (np.stack([each[:, ~below].sum(1), each[:, below].sum(1)], axis=1) for each in classes)
        return above, under

    return [of_model(k, drawn) for k in range(models)], [of_model(k, mean) for k in range(models)]


def _values(measure: Measure, positive: FloatArray, negative: FloatArray) -> FloatArray:
    if isinstance(measure, CountsBasedMeasure):
        (tp, fn), (fp, tn) = positive.T, negative.T
        return np.asarray(measure.from_counts(tp, fp, fn, tn), dtype=np.float64)
    assert isinstance(measure, RankingMeasure)
    return measure.from_levels(positive, negative)


class _Cells:
    """Rows reduced to what a resample needs: cells of a class and a level per model, with weights."""

    def __init__(self, sample: _Sample, counted: bool):
        self.sample, self.grouped = sample, False
        positive = sample.positive
        weight = np.ones(len(positive)) if sample.weight is None else sample.weight
        places = []
        for z in sample.scores:
            if counted:
                places.append((z <= 0.0).astype(np.int64))
                continue
            place, grouped = _levels(z, positive, weight)
            places.append(place)
            self.grouped |= grouped
        sizes = [2 if counted else int(place.max()) + 1 for place in places]
        self.widest = max(sizes)
        if sample.units is None:  # rows of one class and the same levels are exchangeable
            key = positive.astype(np.int64)
            for place, size in zip(places, sizes, strict=True):
                key = np.unique(key * size + place, return_inverse=True)[1] if len(places) > 1 else key * size + place
            _, first, cell = np.unique(key, return_index=True, return_inverse=True)
            positive, places = positive[first], [place[first] for place in places]
            weight = np.asarray(np.bincount(cell, weight), dtype=np.float64)
        # Cells of one class with the scores of the other, from which a resample takes the rows that are added.
        self.own = len(positive)
        positive, places = np.append(positive, ~positive), [np.append(place, place) for place in places]
        self.positive, self.weight = positive, np.append(weight, np.zeros(self.own))
        self.added = self._added()
        self.with_added = self.weight + ADDED * self.added
        self.sums = [
            [_summing(place, side, size) for side in (positive, ~positive)]
            for place, size in zip(places, sizes, strict=True)
        ]

    def levels(self, block: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the weights of both classes at the levels of model k, for resamples of the cells."""
        above, below = (np.asarray((matrix @ block.T).T) for matrix in self.sums[k])
        return above, below

    def resamples(self, replicates: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield the weights of the cells in some resamples at a time (eq. added-rows)."""
        units = self.sample.units
        at_a_time = max(1, ENTRIES // max(len(self.weight), self.widest))
        for first in range(0, replicates, at_a_time):
            count = min(at_a_time, replicates - first)
            block = np.empty((count, len(self.weight)))
            if units is not None:
                block[:, : self.own] = self._of_units(units, count, rng)
            for side in (self.positive, ~self.positive):
                if units is None:
                    total = self.weight[side].sum()
                    cells = np.flatnonzero(side[: self.own])
                    block[:, cells] = rng.multinomial(int(total), self.weight[cells] / total, size=count)
                self._add(block, self.own + np.flatnonzero(side[self.own :]), rng)
            yield block

    def _added(self) -> FloatArray:
        """Return the weights of one added row, or unit, of each class: on average it has the scores of the other class."""
        out = np.zeros(2 * self.own)
        sizes = self.sample.sizes
        for side, size, other in zip((self.positive, ~self.positive), sizes, sizes[::-1], strict=True):
            target, source = np.flatnonzero(side[: self.own]), np.flatnonzero(side[self.own :])
            out[self.own + source] = self.weight[target].sum() / size * self._shares(source, other)
        return out

    def _shares(self, cells: AnyArray, units: float) -> FloatArray:
        """Return the share of each cell of a class in it; with units, all units have the same share."""
        weight, names = self.weight[cells], self.sample.units
        if names is None:
            return np.asarray(weight / weight.sum())
        return np.asarray(weight / np.bincount(names[cells], weight)[names[cells]] / units)

    def _add(self, block: FloatArray, cells: AnyArray, rng: np.random.Generator) -> None:
        """Add rows of the other class to each resample, a Poisson number of mean ADDED."""
        names = self.sample.units
        members = cells if names is None else names[cells - self.own]
        place = np.unique(members, return_inverse=True)[1]
        shares = np.bincount(place, self.added[cells])
        drawn = rng.multinomial(rng.poisson(ADDED, len(block)), shares / shares.sum())
        block[:, cells] = drawn[:, place] * (self.added[cells] * shares.sum() / shares[place])

    def _of_units(self, units: AnyArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Return the weights of the rows where units are drawn with replacement within their kind."""
        drawn = np.empty((count, len(self.sample.strata)))
        for kind in np.unique(self.sample.strata):
            members = np.flatnonzero(self.sample.strata == kind)
            chosen = rng.integers(len(members), size=(count, len(members)))
            chosen += len(members) * np.arange(count)[:, None]
            drawn[:, members] = np.bincount(chosen.ravel(), minlength=chosen.size).reshape(chosen.shape)
        return np.asarray(drawn[:, units] * self.weight[: self.own])


def _summing(place: AnyArray, side: AnyArray, size: int) -> Any:
    """Return the matrix that sums the cells of one class by level."""
    cells = np.flatnonzero(side)
    return sparse.csr_array((np.ones(len(cells)), (place[cells], cells)), shape=(size, len(place)))


def _levels(z: FloatArray, positive: AnyArray, weight: FloatArray) -> tuple[AnyArray, bool]:
    """Return the level of each row, 0 for the highest scores, and whether levels are groups of scores."""
    order = np.argsort(-z)
    new = np.append(False, z[order][1:] != z[order][:-1])
    level: AnyArray = np.cumsum(new)
    grouped = bool(level[-1] >= FINE_LEVELS)
    if grouped:  # groups end where the rank among either class has grown by 1 + rank / RESOLUTION
        starts = np.flatnonzero(np.append(True, new[1:]))
        ends = np.zeros(len(starts), dtype=bool)
        for side in (positive, ~positive):
            above = np.cumsum(np.where(side, weight, 0.0)[order]) - np.where(side, weight, 0.0)[order]
            share = above / weight[side].mean()  # in rows
            step = np.floor(RESOLUTION * np.log1p(share[starts] / RESOLUTION))
            ends |= np.append(False, step[1:] != step[:-1])
        level = np.cumsum(ends)[level]
    out = np.empty(len(z), dtype=np.int64)
    out[order] = level
    return out, grouped
