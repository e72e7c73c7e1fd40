"""Compare scoreline with scikit-learn's models on one data set and one measure, on the same splits."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats

from scoreline.classifier import MeasureClassifier
from scoreline.fitting.checks import check_labels
from scoreline.fitting.plan import Request, Shape, contenders, plan
from scoreline.measures import Measure, get_measure
from scoreline.model_selection import MeasureClassifierCV, baselines
from scoreline.model_selection.baselines import BALANCED, BOOSTED, TUNED
from scoreline.model_selection.search import ALPHAS, DECADE, STRONGEST, WEAKEST, further
from scoreline.operators import Operator
from scoreline.runtime.checks import check_choice, check_number
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.registry import all_solvers, get_solver

OURS, BASELINE, TREES = "scoreline", "baseline", "trees"
MOST_BYTES = 1 << 30  # of rows on disk that are read into memory
LEVEL = 0.95  # of the intervals
LITTLE = 0.005  # a gain below this is hardly worth a change, even if it is certain
FEW_SPLITS = 5  # with fewer, the interval of a difference is too wide for any advice
LARGE_ROWS, LARGE_VALUES = 20_000, 500_000  # from either on, five splits are the default instead of ten
MOST_EXTRA_FEATURES = 1000  # beyond, amp and stamp took most of the time on text, and "auto" does not choose them there
TIMED_ROWS = (500, 2000)  # of the samples whose fits are timed for the estimate
WARM_START = 0.6  # time of a fit from the coefficients for the next larger alpha, relative to one from zero
MOST_FOLDED_VALUES = 200_000  # beyond, alpha is chosen on a held-out quarter of the training rows instead of five folds
LONG = 10.0  # seconds from which on the estimated time is told
LEAST_SPLITS = 2  # an interval needs two
FOLDS = 5  # as MeasureClassifierCV has by default


@dataclass
class Contender:
    """A model in the comparison, with its results on every split.

    `solver` and `risk` are the method of a scoreline model, and `automatic` says that `train` takes it without being told.
    `features` is what a scoreline model with other features is asked for, and `kinds` what it took on each split.
    `costs` are those that folds have chosen together with alpha (count-based measures with many features).
    `difference` to the best linear baseline is a mean with an interval; it is None for that baseline itself.
    """

    name: str
    kind: str
    solver: str | None = None
    risk: str | None = None
    automatic: bool = False
    features: str | None = None
    kinds: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    difference: tuple[float, float, float] | None = None
    failure: str | None = None

    @property
    def value(self) -> float:
        """Mean over the splits."""
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def complete(self) -> bool:
        """Whether it has a value for every split."""
        return self.failure is None and bool(self.values)


@dataclass
class Comparison:
    """The result of a comparison: contenders, verdict, and the models of the last split.

    `kind` is the verdict on the best scoreline method against the best linear baseline. `trees_win` tells whether boosted trees
    are better than the best linear model, and is None where they were left out. `rows` are those of the data, `rows_used` those
    that were compared on, and `splits_planned` is larger than `splits` if the time limit ended the comparison. `decisions`
    are those of the best models for the test rows of the last split, and `truth` says which of these rows are positive.
    """

    measure: Measure
    contenders: list[Contender]
    verdict: str
    kind: str  # "pays", "tie", "loses"
    tree_verdict: str  # empty where boosted trees were left out
    trees_win: bool | None
    splits: int
    splits_planned: int
    test_rows: int
    train_rows: int
    rows: int
    rows_used: int
    notes: list[str]
    classifier: MeasureClassifier
    truth: AnyArray
    decisions: dict[str, FloatArray]

    @property
    def best(self) -> Contender:
        """The scoreline method with the highest mean, which the verdict is about."""
        return _best(self.contenders, OURS)

    @property
    def baseline(self) -> Contender:
        """The linear baseline with the highest mean."""
        return _best(self.contenders, BASELINE)

    @property
    def methods(self) -> int:
        """The number of scoreline methods that the best was chosen from."""
        return len(_complete(self.contenders, OURS))


def compare(
    X: Any,
    y: Any,
    measure: str | Measure = "roc_auc",
    measure_params: dict[str, Any] | None = None,
    *,
    solvers: Sequence[str] | None = None,
    features: str | None = None,
    rivals: Sequence[str] = (),
    splits: int | None = None,
    test_share: float = 0.3,
    alphas: Sequence[float] | None = None,
    scaling: str | None = "auto",
    max_rows: int = 200_000,
    max_time: float | None = None,
    random_state: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> Comparison:
    """Train scoreline and scikit-learn's models on the same splits, and say whether direct training pays.

    The scoreline methods are those that `MeasureClassifierCV` would try on all rows of X, and those made for the measure. Their
    rivals are logistic regression (plain, balanced and, for count-based measures, with a tuned threshold) and scikit-learn's
    HistGradientBoostingClassifier, whose threshold is tuned likewise.

    Each linear model gets the alpha that is best in five-fold cross-validation of its training rows, and is then trained on all
    of them. From 200,000 stored numbers on, a held-out quarter of the training rows replaces the folds, and solvers that learn
    row by row use the first fold only. Logistic regression gets C = 1 / (n alpha).

    The verdict compares the scoreline method of the highest mean with the linear baseline of the highest mean. Differences are
    paired by split. The splits share rows, so the variance of the mean of s differences is (1/s + test/train) times theirs
    (Nadeau and Bengio 2003), with Student's t on s - 1 degrees of freedom. The best of m methods is ahead by chance more often
    than a single one. The intervals of scoreline methods therefore have the level 1 - 0.05/m (Bonferroni), which holds for all
    of them at once, however they are correlated. That the best baseline is chosen too only favours the baselines.

    Boosted trees are compared with the best of all linear models in the same way.

    Parameters
    ----------
    X : array, sparse matrix or Operator of shape (n, p)
        Examples in rows.
    y : array of n labels
        Two classes; the larger in sorted order is positive.
    measure : str or Measure
        The measure that you report.
    measure_params : dict, optional
        Parameters of a measure given by name.
    solvers : sequence of str, optional
        Solvers in addition to those of "auto"; by default those made for the measure, up to 1,000 features.
    features : {"additive", "pairs", "auto"}, optional
        Also compare a scoreline model with these features.
    rivals : sequence of {"lightgbm", "xgboost", "ebm"}
        Boosted trees of other packages, with their defaults, which must be installed.
    splits : int, optional
        Random stratified splits; by default 10, or 5 from 20,000 rows or 500,000 stored numbers on.
    test_share : float
        Share of the rows that every split holds out.
    alphas : sequence of float, optional
        Penalties to choose from; by default those of MeasureClassifierCV.
    scaling : {"auto", None, "maxabs", "standard", "robust", "quantile"}
        Scaling of the features for all linear models; "auto": standard for dense data, maxabs for sparse.
    max_rows : int
        If there are more rows, a stratified sample of this many is taken.
    max_time : float, optional
        Seconds after which no further split begins. Two splits are always taken.
    random_state : int
        Random seed of the splits and of every model.
    progress : callable, optional
        Called before and after each fit with (fits done, fits in all, name of the model).
    note : callable, optional
        Called with one sentence at a time: rows that were sampled, models that were left out, the estimated time.

    Returns
    -------
    Comparison
        Contenders with values, seconds and paired differences, and the verdict in words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline.model_selection import compare
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = compare(X, y, "f1", splits=2, alphas=[1e-2, 1e-3])
    >>> result.kind
    'tie'
    """
    begin = _now()
    chosen = get_measure(measure, measure_params)
    check_number("test_share", test_share, above=0)
    if test_share >= 1.0:
        raise ValueError(f"test_share={test_share!r} must be a number below 1, the share of the rows to test on")
    check_number("max_rows", max_rows, least=8, integer=True)
    if max_time is not None:
        check_number("max_time", max_time, above=0)
    MeasureClassifierCV(alphas=alphas)._checked_alphas()
    classes, sign = check_labels(y, X.shape[0])
    rng = np.random.RandomState(random_state)
    matrix, truth, sampled = _matrix(X, sign > 0, max_rows, rng)
    few = min(np.count_nonzero(truth), np.count_nonzero(~truth))
    if few < 4:
        where = f" among the max_rows={max_rows} sampled ones" if sampled else ""
        raise ValueError(
            f"compare needs at least four rows of each class, to train, to choose alpha and to test on; got {few}{where}"
        )
    if splits is None:
        splits = 5 if len(truth) >= LARGE_ROWS or _stored(matrix) >= LARGE_VALUES else 10
    check_number("splits", splits, least=LEAST_SPLITS, integer=True)
    if scaling == "auto":
        scaling = "maxabs" if sp.issparse(matrix) else "standard"
    contenders, notes = _contenders(chosen, solvers, features, rivals, X.shape, matrix)
    if sampled:
        notes.insert(0, sampled)
    trial = Trial(chosen, alphas, scaling, random_state)
    total = len(contenders) * splits

    def notify(done: int, name: str) -> None:
        if progress is not None:
            progress(done, total, name)

    if note is not None:
        for line in notes:
            note(line)
        notify(0, "estimating the time")
        estimate = splits * _seconds_per_split(trial, contenders, matrix, truth, test_share)
        if estimate >= LONG:
            note(f"This will take {_about(estimate)}: {splits} splits of {len(contenders)} models.")
    for split in range(splits):
        if max_time is not None and split >= LEAST_SPLITS and (_now() - begin) * (split + 1) / split > max_time:
            notes.append(f"Only {split} of {splits} splits were run, because of max_time={max_time:g}.")
            if note is not None:
                note(notes[-1])
            break
        part = Part(random_state + split, *_split(matrix, truth, test_share, rng))
        models, decisions = _run_split(trial, contenders, part, split * len(contenders), notify)
    test_rows, train_rows = len(part.y_test), len(part.y)
    _set_differences(contenders, test_rows / train_rows)
    verdict, kind = _verdict(chosen, contenders)
    tree_verdict, trees_win = _tree_verdict(contenders, test_rows / train_rows)
    ours = _best(contenders, OURS)
    shown = [ours, _best(contenders, BASELINE), *_complete(contenders, TREES)]
    classifier = models[ours.name]
    classifier.classes_ = classes  # it was trained on True and False
    return Comparison(
        chosen, contenders, verdict, kind, tree_verdict, trees_win, len(ours.values), splits, test_rows, train_rows, X.shape[0],
        len(truth), notes, classifier, part.y_test, {c.name: decisions[c.name] for c in shown},
    )  # fmt: skip


def _contenders(
    measure: Measure,
    solvers: Sequence[str] | None,
    features: str | None,
    rivals: Sequence[str],
    shape: tuple[int, int],
    matrix: Any,
) -> tuple[list[Contender], list[str]]:
    """Return scoreline methods, linear baselines and boosted trees, and a sentence for all that is left out."""
    notes = []
    extra = list(solvers or ())
    if solvers is None:
        extra = [s.name for s in all_solvers().values() if measure.name in (*s.measures, *s.ample)]
        if extra and shape[1] > MOST_EXTRA_FEATURES:
            notes.append(
                f"The solvers {', '.join(extra)} are left out: they are slow with {shape[1]:,} features. Pass "
                f"solvers={extra!r} to include them."
            )
            extra = []
    for name in rivals:
        baselines.check_rival(name)
    found = _methods(measure, extra, shape)
    if features is not None:
        check_choice("features", features, ("additive", "pairs", "auto"))
        found.append(Contender(f"{OURS}, features {features}", OURS, automatic=True, features=features))
    found += [Contender(name, BASELINE) for name in baselines.baseline_names(measure)]
    reason = baselines.reason_without_trees(matrix)
    if reason is None:
        found += [Contender(name, TREES) for name in (BOOSTED, *dict.fromkeys(rivals))]
    else:
        notes.append(f"Boosted trees are left out: {reason}.")
    return found, notes


def _run_split(
    trial: "Trial", contenders: list[Contender], part: "Part", done: int, notify: Callable[[int, str], None]
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Train every contender on one split; return models and test decision values by name."""
    models: dict[str, Any] = {}
    decisions: dict[str, FloatArray] = {}
    for k, contender in enumerate(contenders):
        notify(done + k, contender.name)
        try:
            models[contender.name], decisions[contender.name] = trial.run(contender, part)
        except (ValueError, TypeError, MemoryError) as error:
            contender.failure = str(error)
        notify(done + k + 1, contender.name)
    return models, decisions


def _now() -> float:
    return time.perf_counter()


def _matrix(X: Any, truth: AnyArray, max_rows: int, rng: Any) -> tuple[Any, AnyArray, str]:
    """Return at most `max_rows` rows of X as an array that scikit-learn can split, and a sentence if that is a sample."""
    from sklearn.model_selection import train_test_split

    n, limit, why = X.shape[0], max_rows, f"max_rows={max_rows} is the limit"
    if isinstance(X, Operator):  # its rows are read into memory
        fitting = max(1000, int(MOST_BYTES / max(1.0, X.row_bytes)))
        if fitting < limit:
            limit, why = fitting, f"more would take over {MOST_BYTES >> 30} GiB of memory"
    rows = np.arange(n)
    if n > limit:
        rows, _ = train_test_split(rows, train_size=limit, stratify=truth, random_state=rng)
        rows = np.sort(rows)
    sampled = f"Compared on a random sample of {limit:,} of the {n:,} rows: {why}." if n > limit else ""
    if isinstance(X, Operator):
        X.require("rows", "comparing with other libraries, which need its rows")
        return X._listed(X._row_list(rows)), truth[rows], sampled
    matrix = X.tocsr() if sp.issparse(X) else np.asarray(X)
    return (matrix, truth, sampled) if len(rows) == n else (matrix[rows], truth[rows], sampled)


def _split(X: Any, truth: AnyArray, share: float, rng: Any) -> Any:
    """Return a stratified split with both classes on both sides, or raise and say what to change."""
    from sklearn.model_selection import train_test_split

    try:
        parts = train_test_split(X, truth, test_size=share, stratify=truth, random_state=rng)
        fits = all(part.any() and not part.all() for part in parts[2:])
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"a split of {len(truth):,} rows, {np.count_nonzero(truth):,} of them positive, with a share of {share:g} to test "
            "on leaves one class only on one side; change test_share, or use more rows"
        )
    return parts


def _methods(measure: Measure, solvers: Sequence[str], shape: tuple[int, int]) -> list[Contender]:
    """Return the scoreline methods: those that `train --alpha auto` would try on all rows first, then the other solvers.

    The method may depend on the number of rows per feature, so it is resolved once, for all rows. A single automatic method
    keeps the name "auto" in its fits: it may go on with the logistic loss where its own fit is degenerate.
    """
    automatic = contenders(Request(), None, measure, Shape(*shape))
    found = [_method(each.solver.name, each.risk.name, len(automatic) == 1) for each in automatic]
    for name in dict.fromkeys(solvers):
        if name == "auto":
            continue
        get_solver(name)
        try:
            own = plan(Request(solver=name), measure, Shape(*shape))
        except ValueError as error:
            found.append(Contender(f"{OURS} {name}", OURS, failure=str(error)))
            continue
        if (own.solver.name, own.risk.name) not in [(c.solver, c.risk) for c in found]:
            found.append(_method(own.solver.name, own.risk.name, False))
    return found


def _method(solver: str, risk: str, automatic: bool) -> Contender:
    return Contender(f"{OURS} {solver}, {risk}", OURS, solver, risk, automatic)


@dataclass
class Part:
    """A split into training and test rows, with the folds of the training rows that choose alpha."""

    seed: int
    X: Any
    X_test: Any
    y: AnyArray
    y_test: AnyArray
    path_decisions: dict[bool, tuple[list[float], list[list[FloatArray]]]] = field(default_factory=dict)

    @cached_property
    def folds(self) -> list[tuple[AnyArray, AnyArray]]:
        """Pairs of rows to train on and rows held out: five, or a single one for large data or few rows of a class."""
        from sklearn.model_selection import StratifiedKFold

        few = min(np.count_nonzero(self.y), np.count_nonzero(~self.y))
        if _stored(self.X) >= MOST_FOLDED_VALUES or few < FOLDS:
            rows = _split(np.arange(len(self.y)), self.y, 0.25, self.seed)
            return [(rows[0], rows[1])]
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)
        return list(folds.split(np.zeros(len(self.y)), self.y))


def _stored(X: Any) -> int:
    return int(X.nnz if sp.issparse(X) else X.size)


@dataclass
class Trial:
    """How each contender is trained: alpha chosen on held-out rows, then all training rows, then the test rows."""

    measure: Measure
    alphas: Sequence[float] | None  # None: those of MeasureClassifierCV
    scaling: str | None
    random_state: int

    @property
    def grid(self) -> Sequence[float]:
        """The alphas to choose from."""
        return ALPHAS if self.alphas is None else self.alphas

    def run(self, contender: Contender, part: Part) -> tuple[Any, FloatArray]:
        """Train a contender, take note of its value and seconds, and return the model and its test decision values."""
        if contender.failure is not None:
            raise ValueError(contender.failure)
        X, X_test = part.X, part.X_test
        if contender.kind == TREES and sp.issparse(X):
            X, X_test = X.toarray(), X_test.toarray()
        with _silence(), nullcontext() if contender.kind == OURS else baselines.suitable_threads(X):
            alpha, cost = (None, None) if contender.kind == TREES else self.choose_alpha(contender, part)
            model = self.model(contender, alpha, cost, len(part.y))
            begin = _now()
            model.fit(X, part.y)
            seconds = _now() - begin
            decision = baselines.decision_values(model, X_test)
        contender.values.append(float(self.measure.value(part.y_test, decision)))
        contender.seconds.append(seconds)
        if alpha is not None:
            contender.alphas.append(alpha)
        if cost is not None:
            contender.costs.append(cost)
        return model, decision

    def seconds(self, contender: Contender, part: Part) -> float:
        """Return the seconds of a fit, and keep no results."""
        timed = replace(contender, values=[], seconds=[], alphas=[], costs=[], kinds=[])
        self.run(timed, part)
        return timed.seconds[0]

    def model(self, contender: Contender, alpha: float | None, cost: float | None, n: int) -> Any:
        """Return the unfitted model for n training rows."""
        if contender.kind != OURS:
            return baselines.baseline_model(contender.name, self.measure, alpha, self.scaling, n, self.random_state)
        # As `scoreline train` builds it: compare ends with the command that trains this model on all rows.
        assert alpha is not None
        if contender.features is not None:
            return MeasureClassifier(
                self.measure, alpha=alpha, features=contender.kinds[-1], random_state=self.random_state
            )
        params = None if cost is None else {"cost": cost}
        return MeasureClassifier(self.measure, alpha=alpha, solver_params=params, **self._method(contender))

    def choose_alpha(self, contender: Contender, part: Part) -> tuple[float, float | None]:
        """Return the alpha that is best on held-out training rows, and the cost if the same rows choose it."""
        if len(self.grid) == 1:
            if contender.features is not None:
                contender.kinds.append("pairs" if contender.features == "auto" else contender.features)
            return float(self.grid[0]), None
        if contender.features is not None:
            own = MeasureClassifierCV(
                self.measure,
                alphas=self.alphas,
                cv=part.folds,
                features=contender.features,
                random_state=self.random_state,
            )
            own.fit(part.X, part.y)
            contender.kinds.append(own.features_)
            return own.alpha_, None
        if contender.kind == OURS:
            # A solver that learns row by row gains nothing from the fit before, and would take most of the time.
            folds = part.folds[:1] if get_solver(str(contender.solver)).streams else part.folds
            search = MeasureClassifierCV(self.measure, alphas=self.alphas, cv=folds, **self._method(contender))
            search.fit(part.X, part.y)
            return search.alpha_, search.cost_ if search.folds_chose_cost else None
        evaluated, decisions = part.path_decisions.setdefault(
            contender.name == BALANCED, ([], [[] for _ in part.folds])
        )
        truths, new = [part.y[held] for _, held in part.folds], [a for a in self.grid if a not in evaluated]
        while True:
            evaluated.extend(new)
            for (train, held), found in zip(part.folds, decisions, strict=True):
                rows = part.X[train], part.y[train], part.X[held]
                found.extend(baselines.penalty_decisions(*rows, new, self.scaling, contender.name == BALANCED))
            means = baselines.mean_values(contender.name, self.measure, evaluated, truths, decisions)
            best = max(
                means, key=lambda alpha: (means[alpha], alpha)
            )  # of equal ones the largest, as MeasureClassifierCV
            order = sorted(means)
            inner = {order[0]: order[min(DECADE, len(order) - 1)], order[-1]: order[max(0, len(order) - 1 - DECADE)]}
            at_edge = best in inner and means[best] > means[inner[best]]
            if self.alphas is not None or not at_edge or best in (WEAKEST, STRONGEST):
                return best, None
            new = further(best, stronger=best == order[-1])  # as MeasureClassifierCV widens its grid

    def _method(self, contender: Contender) -> dict[str, Any]:
        named: dict[str, Any] = {"solver": contender.solver, "risk": contender.risk}
        if contender.automatic:
            named = {"solver": "auto", "risk": "auto"}
        return {**named, "scaling": self.scaling, "random_state": self.random_state}


@contextmanager
def _silence() -> Iterator[None]:
    """Hide warnings and messages of single fits: a fit that has not converged shows in its value."""
    logger = logging.getLogger("scoreline")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _seconds_per_split(trial: Trial, contenders: list[Contender], X: Any, truth: AnyArray, test_share: float) -> float:
    """Return an estimate of the seconds per split, from fits with one alpha on two samples of the rows.

    The time of a fit on all training rows is read off the line through the times on the samples. The faster of two fits
    counts, because the first one may include the compilation of kernels.
    """
    from sklearn.model_selection import train_test_split

    single = replace(trial, alphas=[trial.grid[len(trial.grid) // 2]])
    train_rows = (1.0 - test_share) * len(truth)
    parts = []
    for size in TIMED_ROWS:
        rows = np.arange(len(truth))
        if len(rows) > size:
            rows, _ = train_test_split(rows, train_size=size, stratify=truth, random_state=trial.random_state)
        parts.append(Part(trial.random_state, X[rows], X[rows[:100]], truth[rows], truth[rows[:100]]))
    folds = FOLDS * (1.0 - 1.0 / FOLDS) if train_rows / len(truth) * _stored(X) < MOST_FOLDED_VALUES else 0.75
    total = 0.0
    for contender in contenders:
        try:
            small, large = (min(single.seconds(contender, part) for _ in range(2)) for part in parts)
        except (ValueError, TypeError, MemoryError):
            continue  # it has failed already, or fails on a sample only
        sizes = [len(part.y) for part in parts]
        per_row = max(0.0, large - small) / max(1, sizes[1] - sizes[0])
        seconds = large + per_row * max(0.0, train_rows - sizes[1])
        fits = 1.0
        if len(trial.grid) > 1 and contender.kind != TREES and contender.name != TUNED:  # it shares the search of PLAIN
            fits += WARM_START * folds * len(trial.grid) + (contender.kind == OURS)
        total += fits * seconds
    return total


def _about(seconds: float) -> str:
    """Return a duration in words."""
    if seconds < 90.0:
        return f"about {10.0 * np.ceil(seconds / 10.0):.0f} seconds"
    if seconds < 5400.0:
        return f"about {np.ceil(seconds / 60.0):.0f} minutes"
    return f"about {seconds / 3600.0:.1f} hours"


def _complete(contenders: list[Contender], kind: str) -> list[Contender]:
    return [c for c in contenders if c.kind == kind and c.complete]


def _best(contenders: list[Contender], kind: str) -> Contender:
    """Return the contender of the highest mean among those of a kind that have a value for every split."""
    complete = _complete(contenders, kind)
    if not complete:
        what = "scoreline method" if kind == OURS else kind
        failures = "; ".join(f"{c.name}: {c.failure}" for c in contenders if c.kind == kind)
        raise ValueError(f"every {what} failed: {failures}")
    return max(complete, key=lambda c: c.value)


def paired_difference(
    values: Sequence[float], others: Sequence[float], ratio: float, choices: int = 1
) -> tuple[float, float, float]:
    """Return the mean difference of values paired by split, and its interval.

    `ratio` is that of test to training rows, which the splits share (Nadeau and Bengio 2003). If the better of the two was
    chosen among several `choices` by the same values, the interval is widened accordingly (Bonferroni).
    """
    d = np.asarray(values) - np.asarray(others)
    error = float(np.sqrt((1.0 / len(d) + ratio) * d.var(ddof=1)))
    reach = float(stats.t.isf((1.0 - LEVEL) / (2 * choices), len(d) - 1)) * error
    return float(d.mean()), float(d.mean()) - reach, float(d.mean()) + reach


def _set_differences(contenders: list[Contender], ratio: float) -> None:
    """Set the paired differences to the best linear baseline; intervals of scoreline methods hold for all of them at once."""
    best, methods = _best(contenders, BASELINE), len(_complete(contenders, OURS))
    for contender in contenders:
        if contender is not best and contender.complete:
            choices = methods if contender.kind == OURS else 1
            contender.difference = paired_difference(contender.values, best.values, ratio, choices)


def _verdict(measure: Measure, contenders: list[Contender]) -> tuple[str, str]:
    """Return the verdict on the best scoreline method against linear baselines in words, and its kind."""
    ours, best, methods = _best(contenders, OURS), _best(contenders, BASELINE), len(_complete(contenders, OURS))
    assert ours.difference is not None
    mean, low, high = ours.difference
    corrected = f", corrected for choosing the best of {methods} methods" if methods > 1 else ""
    figures = (
        f"{measure.name} on held-out rows is {ours.value:.4f} with {ours.name} against {best.value:.4f} with {best.name} "
        f"({mean:+.4f}, {_interval(low, high)}{corrected})."
    )
    faster = np.mean(best.seconds) / max(1e-9, float(np.mean(ours.seconds)))
    if faster > 1.2:
        figures += f" Training is {faster:.1f} times faster than {best.name}."
    elif faster < 1 / 1.2:
        figures += f" Training is {1 / faster:.1f} times slower than {best.name}."
    if low > 0.0:
        return f"Direct training pays here{', a little' if mean < LITTLE else ''}: {figures}", "pays"
    if high < 0.0:
        return f"Direct training does not pay here: {figures} Use {best.name}.", "loses"
    splits = len(ours.values)
    too_few = f"With {splits} splits the intervals are very wide: use at least {FEW_SPLITS}."
    advice = "Use either of the two." if splits >= FEW_SPLITS else too_few
    return f"No clear difference here: {figures} {advice}", "tie"


def _tree_verdict(contenders: list[Contender], ratio: float) -> tuple[str, bool | None]:
    """Return the comparison of boosted trees with the best linear model in words, and whether the trees win."""
    trees = _complete(contenders, TREES)
    if not trees:
        return "", None
    linear = _complete(contenders, OURS) + _complete(contenders, BASELINE)
    rival, best = (max(group, key=lambda c: c.value) for group in (linear, trees))
    mean, low, high = paired_difference(best.values, rival.values, ratio, len(linear) * len(trees))
    model = "the best linear model" if rival.features is None else rival.name
    compared = (
        f"{baselines.TREE_TITLES[best.name]} reach {best.value:.4f} against {rival.value:.4f} with {model} "
        f"({mean:+.4f}, {_interval(low, high)})"
    )
    short = "linear" if rival.features is None else "additive"
    advice = (
        f"use them unless you need {'a linear' if short == 'linear' else 'an additive'} model" if low > 0.0
        else f"the {short} model is better here" if high < 0.0
        else f"there is no clear difference to the {short} model"
    )  # fmt: skip
    return f"{compared}: {advice}.", low > 0.0


def _interval(low: float, high: float) -> str:
    return f"{100 * LEVEL:.0f} % interval {low:+.4f} to {high:+.4f}"
