"""From an additive model to a scorecard: few bins, a certified fit on them, integer points by optimised rounding."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from scoreline.features.basis import column_basis, rotated
from scoreline.features.bins import ColumnBins
from scoreline.features.columns import Columns, columns_of
from scoreline.features.fitted import FittedFeatures, table_codes
from scoreline.features.shapes import spread
from scoreline.fitting.certified import with_cost
from scoreline.fitting.plan import measure_of_threshold
from scoreline.fitting.sigmoid import fit_robust_sigmoid
from scoreline.measures import best_threshold, get_measure
from scoreline.measures.intervals import intervals_of
from scoreline.monitoring.reference import score_bins
from scoreline.operators.codes import CODES, CodesOperator, Group
from scoreline.risks.base import Hessian, Risk
from scoreline.risks.registry import get_risk
from scoreline.runtime.checks import check_number, column_index
from scoreline.runtime.types import AnyArray, FloatArray, IntArray
from scoreline.scorecards.bins import category_lines, checked_edges, number_edges
from scoreline.scorecards.card import CardColumn, Scorecard, lines_of
from scoreline.scorecards.rounding import rounded_points
from scoreline.scorecards.selection import columns_on_path

# Bins are merged as long as that loses less than this share of the variance of the scores, per bin. See
# benchmarks/results/scorecards.md: 1e-4 loses up to 0.001 of AUC, and 2e-5 makes longer cards of the same AUC.
BIN_COST = 3e-5
LEAST_VARIANCE_SHARE = 1e-10  # of the largest variance of a function of the same column, below which it is rounding
LEAST_COLUMN_SHARE = 1e-6  # of the variance of the scores, below which a column is left out
KINK_WIDTH = 0.5  # of the ramp that the curvature of a risk with kinks is taken from
LEAST_SQUARES_WEIGHT = 1e6  # of the equations for the coefficients of points, relative to their size


class CardOptions(NamedTuple):
    """The scale of the points, and limits of the bins; see `MeasureClassifier.scorecard`."""

    points: float = 600.0
    pdo: float = 20.0
    base: float = 50.0
    max_bins: int = 15
    min_share: float = 0.005
    edges: Mapping[Any, Any] | None = None
    max_features: int | None = None

    def check(self) -> None:
        """Raise unless the options make sense."""
        check_number("points", self.points, least=-1e9)
        check_number("base", self.base, above=0)
        check_number("max_bins", self.max_bins, least=2, integer=True)
        check_number("min_share", self.min_share, least=0)
        if self.max_features is not None:
            check_number("max_features", self.max_features, least=1, integer=True)
        if not isinstance(self.pdo, (int, float)) or isinstance(self.pdo, bool) or not 0.0 < abs(self.pdo) < math.inf:
            raise ValueError(
                f"pdo={self.pdo!r} must be a number other than 0: points that double the odds of the negative class"
            )
        if self.min_share > 0.5:
            raise ValueError(f"min_share={self.min_share!r} must be at most 0.5: a bin cannot hold more of all columns")
        if self.edges is not None and not isinstance(self.edges, Mapping):
            raise ValueError(f"edges={self.edges!r:.100} must be a dict of column to a list of edges, or None")


class CardRows(NamedTuple):
    """The rows that a card is made of: X, which of them are positive, what they count, and what errors on them cost."""

    X: Any
    positive: AnyArray
    weight: FloatArray | None
    costs: FloatArray | None = None

    @property
    def counts(self) -> FloatArray:
        """The weight of each row."""
        return np.ones(len(self.positive)) if self.weight is None else self.weight

    @property
    def sign(self) -> IntArray:
        """Labels +1 and -1."""
        return np.where(self.positive, 1, -1)

    @property
    def measured(self) -> FloatArray | None:
        """The weight of each row in the measure: its sample weight times its cost."""
        return self.weight if self.costs is None else self.counts * self.costs


def make_scorecard(clf: Any, refit: Any, rows: CardRows, names: list[str], options: CardOptions) -> Scorecard:
    """Return the scorecard of a trained classifier.

    Parameters
    ----------
    clf : MeasureClassifier
        Trained with additive features.
    refit : MeasureClassifier
        Not trained yet, with the same measure, risk and alpha: it is trained on the bins of the card.
    rows : CardRows
        The training rows.
    names : list of str
        Names of the columns.
    options : CardOptions
        The scale, and limits of the bins.
    """
    options.check()
    features: FittedFeatures = clf.feature_map_
    table = columns_of(rows.X, [column.texts for column in features.columns])
    if table.shape[1] != features.n_columns:
        raise ValueError(f"X has {table.shape[1]} columns, the classifier was trained with {features.n_columns}")
    codes = table_codes(table, features.columns)
    model_scores = features.of_codes(codes).matvec(clf.coef_[0])
    measure = get_measure(clf.measure, clf.measure_params)
    weight = with_cost(rows.weight, rows.sign, clf.cost_)
    labels = np.array(clf.classes_)[rows.positive.astype(np.intp)]
    coef, detailed = clf.coef_[0], _detailed(features)
    if detailed.n_features > features.n_features:
        coef = refit.fit(detailed.of_codes(codes), labels, weight, cost_fp=rows.costs, cost_fn=rows.costs).coef_[0]
    used, operator = _card_features(detailed, coef, codes, rows, table, names, options)
    path: list[dict[str, Any]] = []
    if options.max_features is not None and options.max_features < len(used):
        places, path = columns_on_path(
            operator, prepared_risk(clf, rows, weight), options.max_features, clf.tol, clf.fit_intercept
        )
        for step in path:
            step["columns"] = [names[used[place]] for place in step["columns"]]
            step["measure"] = float(measure.value(rows.positive, step.pop("scores"), rows.measured))
        used, operator = _some_columns(used, operator, sorted(places))
    refit.fit(operator, labels, weight, cost_fp=rows.costs, cost_fn=rows.costs)
    card = _Rounding(refit, operator, rows, weight, options)
    points, base_points = card.points()
    total, cutoff = card.cutoff(points, base_points, measure_of_threshold(measure, clf.class_weight), clf.class_weight)
    events = [
        np.bincount(own, np.where(rows.positive, rows.counts, 0.0), column.size).astype(np.float64)
        for own, column in zip(operator.codes, operator.feature_map.columns, strict=True)
    ]
    population, positives = float(rows.counts.sum()), float(rows.counts[rows.positive].sum())
    columns = [
        CardColumn(names[j], j, bins, own, lines_of(bins, own, counts, positive, population))
        for j, bins, own, counts, positive in zip(
            used, operator.feature_map.columns, points, operator.feature_map.cell_counts(), events, strict=True
        )
        if own.any()  # equal points in all bins are part of the base
    ]
    if not columns:
        raise ValueError(f"pdo={options.pdo:g} is too small: all points of the card are 0. Pass a larger pdo.")
    sign = -1.0 if options.pdo > 0 else 1.0
    decided = sign * total - (sign * cutoff - 0.5)

    def value(scores: Any) -> float:
        return float(measure.value(rows.positive, scores, rows.measured))

    loss = {
        "measure": {
            "model": value(model_scores + float(clf.intercept_[0])),
            "bins": value(refit.decision_function(operator)),
            "card": value(decided),
        },
        "objective": {"model": clf.objective_, "bins": refit.objective_, "card": card.objective(points)},
        "lower_bound": refit.lower_bound_,
        "naive": card.objective(card.naive()),
    }  # fmt: skip
    edges, in_bins = score_bins(total.astype(np.float64))
    interval = intervals_of([measure], rows.positive, decided, sample_weight=rows.measured)[0]
    reference = {
        "edges": edges.tolist(), "counts": in_bins.tolist(), "measure": [interval.value, interval.low, interval.high],
        "evaluated_on": "the training rows",
    }  # fmt: skip
    columns.sort(key=lambda column: -int(np.ptp(column.points)))
    return Scorecard(
        tuple(columns), base_points, cutoff, tuple(np.asarray(clf.classes_).tolist()), float(options.points),
        float(options.pdo), float(options.base), features.n_columns, measure.name, population, positives / population,
        getattr(clf, "feature_names_in_", None) is not None, loss, tuple(path), reference, clf.measure_params,
    )  # fmt: skip


def _detailed(features: FittedFeatures) -> FittedFeatures:
    """Return the features of a model with functions of smaller variance, down to that of one row (eq. card-detail).

    The model leaves them out because they matter little for most columns. Steps that few of many rows are beyond need them.
    """
    groups = []
    for j, (column, sign, counts) in enumerate(
        zip(features.columns, features.signs, features.cell_counts(), strict=True)
    ):
        group = features.groups[j]
        if column.kind == "number" and not sign:
            total = max(float(counts.sum()), 1.0)
            basis = rotated(column_basis(column, counts, monotone=True), counts / total, 1.0 / total)
            group = group._replace(basis=basis) if basis.shape[1] > group.basis.shape[1] else group
        groups.append(group)
    return FittedFeatures("additive", features.columns, groups, features.counts, features.signs)


def _card_features(
    features: FittedFeatures,
    coef: FloatArray,
    codes: AnyArray,
    rows: CardRows,
    table: Columns,
    names: list[str],
    options: CardOptions,
) -> tuple[list[int], CodesOperator]:
    """Return the columns of the card, and the features of its bins."""
    tables, counts = features.tables(coef), features.cell_counts()
    given = {}
    for key, edges in (options.edges or {}).items():
        j = column_index(key, features.n_columns, names, "edges")
        if features.columns[j].kind != "number":
            raise ValueError(f"edges[{key!r}]: column {names[j]!r} holds categories, which have no edges")
        given[j] = checked_edges(key, edges)
    variance = sum(spread(own, weight) ** 2 for own, weight in zip(tables, counts, strict=True))
    used = [
        j
        for j, (own, weight) in enumerate(zip(tables, counts, strict=True))
        if j in given or spread(own, weight) ** 2 > LEAST_COLUMN_SHARE * variance
    ]
    if not used:
        raise ValueError("the classifier gives all rows the same score: a scorecard would have no columns")
    total = float(rows.counts.sum())
    limits: dict[str, Any] = {
        "least": options.min_share * total,
        "most": options.max_bins,
        "bin_cost": BIN_COST * variance * total,
    }
    cuts, lines, read = {}, {}, list(features.columns)
    for j in used:
        column = features.columns[j]
        weight: FloatArray = np.bincount(codes[j], rows.counts, column.size).astype(np.float64)
        if column.kind == "category":
            lines[j] = category_lines(tables[j], weight, **limits)
            continue
        cuts[j] = given[j] if j in given else number_edges(column, tables[j], weight, **limits)
        read[j] = _with_edges(column, cuts[j])
    own_codes = table_codes(table, read)[used]
    bins, groups, counts = [], [], []
    for place, j in enumerate(used):
        column = read[j]
        weight = np.bincount(own_codes[place], rows.counts, column.size).astype(np.float64)
        if column.kind == "category":
            basis = _category_functions(column, weight, lines[j])
        else:
            values = features.columns[j].centers[np.maximum(codes[j], 1) - 1]
            column = column._replace(centers=_centers(column, own_codes[place], values, rows.counts))
            code_of = np.concatenate([[0], 1 + np.searchsorted(cuts[j], np.append(column.values, np.inf))])
            basis = _number_functions(column, weight, code_of, bool(features.signs[j]))
            own_codes[place] = code_of[own_codes[place]]
            column = ColumnBins(column.name, "number", cuts[j], np.zeros(len(cuts[j]) + 1), None)
            weight = np.bincount(code_of, weight).astype(np.float64)
        bins.append(column)
        groups.append(Group.of_column(place, basis))
        counts.append(weight)
    card = FittedFeatures("additive", bins, groups, np.concatenate(counts), [features.signs[j] for j in used])
    return used, card.of_codes(own_codes)


def _with_edges(column: ColumnBins, edges: FloatArray) -> ColumnBins:
    """Return the bins of a column of the model with each edge of the card in place of the nearest cut point."""
    cuts = column.values
    while len(cuts) + len(edges) > CODES - 2:
        cuts = cuts[::2]
    nearest = np.abs(edges[:, None] - cuts).argmin(axis=1) if len(cuts) else []
    return column._replace(values=np.union1d(np.delete(cuts, nearest), edges))


def _centers(column: ColumnBins, codes: AnyArray, values: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the mean value of the rows in each bin; `values` are those of the rows, `counts` their weights."""
    known = codes > 0
    weight = np.bincount(codes[known] - 1, counts[known], column.size - 1)
    sums = np.bincount(codes[known] - 1, counts[known] * values[known], column.size - 1)
    low, high = np.append(-np.inf, column.values), np.append(column.values, np.inf)
    inside = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))  # of bins without rows
    return np.clip(np.divide(sums, weight, out=inside, where=weight > 0.0), low, high)


def _number_functions(fine: ColumnBins, weight: FloatArray, code_of: IntArray, monotone: bool) -> FloatArray:
    """Return the functions of the model, averaged over the rows of each bin of the card (eq. card-basis)."""
    functions = column_basis(fine, weight, monotone=True)
    starts = np.flatnonzero(np.diff(code_of))
    share = np.bincount(code_of, weight)
    weight = weight[1:].copy()
    weight[np.add.reduceat(weight, starts)[code_of[1:] - 1] == 0.0] = (
        1.0  # a bin without rows has the mean of its parts
    )
    size = np.add.reduceat(weight, starts)
    # Functions rise or are constant. Above the first bin, sums of the same terms and their maxima keep that exactly.
    above = np.add.reduceat(weight[:, None] * (functions[1:] - functions[1]), starts, axis=0) / size[:, None]
    found = np.vstack([functions[0], functions[1] + np.maximum.accumulate(above, axis=0)])
    return found if monotone else rotated(found, share / max(float(share.sum()), 1e-300), LEAST_VARIANCE_SHARE)


def _category_functions(column: ColumnBins, weight: FloatArray, lines: list[list[int]]) -> FloatArray:
    """Return one function per group of categories, and one of missing values."""
    members = np.zeros((column.size, len(lines)))
    for k, group in enumerate(lines):
        members[group, k] = 1.0
    if weight[0] > 0.0:
        members = np.hstack([members, (np.arange(column.size) == 0)[:, None]])
    centred = members - (weight / max(float(weight.sum()), 1e-300)) @ members
    centred[weight == 0.0] = 0.0  # categories that no row has: the mean of all rows
    return centred


def _some_columns(used: list[int], operator: CodesOperator, places: list[int]) -> tuple[list[int], CodesOperator]:
    """Return some of the columns of a card, and the features of their bins."""
    features: FittedFeatures = operator.feature_map
    counts = features.cell_counts()
    groups = [Group.of_column(new, features.groups[old].basis) for new, old in enumerate(places)]
    few = FittedFeatures(
        "additive", [features.columns[k] for k in places], groups, np.concatenate([counts[k] for k in places]),
        [features.signs[k] for k in places],
    )  # fmt: skip
    return [used[k] for k in places], few.of_codes(np.ascontiguousarray(operator.codes[places]))


def prepared_risk(clf: Any, rows: CardRows, weight: FloatArray | None) -> Risk:
    """Return the risk of a trained classifier, with the labels of these rows."""
    labels = np.array(clf.classes_)[rows.positive.astype(np.intp)]
    measure = get_measure(clf.measure, clf.measure_params)
    scored = clf._training_scores(np.zeros(len(labels)), labels, weight, measure, (rows.costs, rows.costs))
    return get_risk(clf.risk_, measure).prepare(scored.sign, scored.weight)


class _Rounding:
    """Integer points of a model on the bins of a card."""

    def __init__(
        self, refit: Any, operator: CodesOperator, rows: CardRows, weight: FloatArray | None, options: CardOptions
    ):
        self.refit, self.operator, self.rows, self.options = refit, operator, rows, options
        self.features: FittedFeatures = operator.feature_map
        self.tables = self.features.tables(refit.coef_[0])
        self.sizes = [len(table) for table in self.tables]
        z = operator.matvec(refit.coef_[0])
        self.z = np.asarray(z)
        found = fit_robust_sigmoid(rows.sign, self.z, rows.weight)
        self.factor = -options.pdo / math.log(2.0) * found.slope  # points per unit of the score
        offset = options.points - options.pdo / math.log(2.0) * math.log(options.base)
        self.constant = offset - options.pdo / math.log(2.0) * found.offset
        self.targets = np.concatenate(self.tables) * self.factor
        self.risk = prepared_risk(refit, rows, weight)
        self._naive: list[IntArray] = []

    def points(self) -> tuple[list[IntArray], int]:
        """Return the points of each code of each column, the smallest 0, and the points of every row."""
        curvature, slope = self._model()
        chains, start = [], 0
        rising = 1 if self.factor > 0.0 else -1
        for size, sign in zip(self.sizes, self.features.signs, strict=True):
            if sign:
                chains.append((np.arange(start + 1, start + size), sign * rising))
            start += size
        optimised = self._split(rounded_points(self.targets, slope, curvature, chains))
        self._naive = self._split(np.rint(self.targets).astype(np.int64))
        found = min((optimised, self._naive), key=self.objective)
        mean = sum(
            float(counts @ (own / self.factor - table))
            for own, table, counts in zip(found, self.tables, self.features.cell_counts(), strict=True)
        ) / float(self.rows.counts.sum())
        base = self.constant - self.factor * mean  # the mean of the log odds stays where it was
        lowest = [int(own.min()) for own in found]
        shifted = [own - low for own, low in zip(found, lowest, strict=True)]
        return shifted, round(base + sum(lowest))

    def naive(self) -> list[IntArray]:
        """Return each number rounded on its own."""
        return self._naive

    def _split(self, points: IntArray) -> list[IntArray]:
        return np.split(points, np.cumsum(self.sizes)[:-1])

    def _model(self) -> tuple[FloatArray, FloatArray]:
        """Return curvature and slope of the objective per point of each code (eq. card-rounding)."""
        cells = [Group.of_column(j, np.eye(size)) for j, size in enumerate(self.sizes)]
        counting = CodesOperator(self.operator.codes, cells)
        z = self.z + self.refit.trained_intercept_
        slope = counting.rmatvec(self.risk.value_grad(z)[1])
        hessian = self.risk.hessian(z, 0.0 if self.risk.smooth else KINK_WIDTH / self.risk.ramp_scale)
        if hessian is None:
            hessian = Hessian(self.rows.counts / float(self.rows.counts.sum()))
        diagonal = np.asarray(hessian.diagonal)
        curvature = counting.gram(diagonal)
        for direction, factor in hessian.rank_one:
            own = counting.rmatvec(np.asarray(direction))
            curvature += factor * np.outer(own, own)
        if self.risk.shift == "needed":  # a common change of all scores is made good by the points of every row
            own = counting.rmatvec(diagonal)
            curvature -= np.outer(own, own) / max(float(own[: self.sizes[0]].sum()), 1e-300)
        start = 0
        for group, table in zip(self.features.groups, self.tables, strict=True):
            part = slice(start, start + len(table))
            start = part.stop
            cost = self.refit.alpha * np.linalg.pinv(group.basis @ group.basis.T, rcond=1e-9, hermitian=True)
            curvature[part, part] += cost
            slope[part] += cost @ table
        return curvature / self.factor**2, slope / self.factor

    def objective(self, points: list[IntArray]) -> float:
        """Return J of the coefficients of least norm that have the scores of these points, with the best intercept."""
        coef = np.concatenate(
            [
                _coefficients(group.basis, own / self.factor, counts, sign)
                for group, own, counts, sign in zip(
                    self.features.groups, points, self.features.cell_counts(), self.features.signs, strict=True
                )
            ]
        )
        z = np.asarray(self.operator.matvec(coef))
        penalty = 0.5 * self.refit.alpha * float(coef @ coef)
        if self.risk.shift == "invariant":
            return float(penalty + self.risk.value(z))
        middle = self.refit.trained_intercept_
        found = minimize_scalar(lambda shift: float(self.risk.value(z + shift)), bracket=(middle - 0.1, middle + 0.1))
        return float(penalty + min(found.fun, self.risk.value(z + middle)))

    def cutoff(self, points: list[IntArray], base_points: int, measure: Any, class_weight: Any) -> tuple[IntArray, int]:
        """Return the points of all rows, and the last number of points that is classified as positive."""
        total = np.full(len(self.z), base_points)
        for own, codes in zip(points, self.operator.codes, strict=True):
            total = total + own[codes]
        sign = -1 if self.options.pdo > 0 else 1
        labels = np.array(self.refit.classes_)[self.rows.positive.astype(np.intp)]
        points_of_rows, costs = sign * total.astype(np.float64), (self.rows.costs, self.rows.costs)
        scored = self.refit._training_scores(points_of_rows, labels, self.rows.weight, measure, costs)
        threshold = best_threshold(scored.sign, scored.scores, measure, scored.weight).threshold
        low, high = float(scored.scores.min()) - 1.0, float(scored.scores.max()) + 1.0
        return total, sign * (math.floor(min(max(threshold, low), high)) + 1)


def _coefficients(basis: FloatArray, table: FloatArray, counts: FloatArray, sign: int) -> FloatArray:
    """Return the coefficients of least norm whose function is the table but for a constant, in the codes that occur.

    With a sign, those of functions that rise are at least 0, or at most 0.
    """
    if basis.shape[1] == 0:  # one bin; nnls of SciPy 1.17 corrupts memory without columns
        return np.zeros(0)
    share = counts / max(float(counts.sum()), 1e-300)
    present = counts > 0.0
    rows, wanted = basis[present], (table - share @ table)[present]
    if not sign:
        return np.asarray(np.linalg.lstsq(rows, wanted, rcond=1e-12)[0], dtype=np.float64)
    free = np.ptp(basis[1:], axis=0) == 0.0
    own = np.hstack([sign * rows[:, ~free], rows[:, free], -rows[:, free]])
    scale = LEAST_SQUARES_WEIGHT / max(float(np.abs(own).max()), 1e-300)
    found = nnls(np.vstack([scale * own, np.eye(own.shape[1])]), np.append(scale * wanted, np.zeros(own.shape[1])))[0]
    coef = np.empty(basis.shape[1])
    count, extra = int((~free).sum()), int(free.sum())
    coef[~free] = sign * found[:count]
    coef[free] = found[count : count + extra] - found[count + extra :]
    return coef
