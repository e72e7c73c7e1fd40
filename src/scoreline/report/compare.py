"""Does direct training pay here? One data set, one measure, the same splits for our solvers and for plain baselines."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from scoreline._checks import check_number
from scoreline._typing import AnyArray, FloatArray
from scoreline.estimators import MeasureClassifier
from scoreline.estimators.validation import check_labels
from scoreline.measures import Measure, get_measure, get_scorer
from scoreline.operators import Operator
from scoreline.solvers.registry import all_solvers, get_solver

OURS, BASELINE = "scoreline", "baseline"
ALPHAS = (1e-2, 1e-4, 1e-6)
MOST_BYTES = 1 << 30  # of rows from disk that are compared on
LEVEL = 0.95  # of the intervals
LITTLE = 0.005  # a gain below this is hardly worth a change, however sure it is
PLAIN, BALANCED, TUNED = "logistic regression", "logistic regression, balanced", "logistic regression, tuned threshold"


@dataclass
class Contender:
    """A model in the comparison: its kind, its values and seconds on every split, the alphas that were chosen.

    `difference` to the best baseline is a mean with an interval (None for that baseline itself).
    """

    name: str
    kind: str
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    difference: tuple[float, float, float] | None = None
    failure: str | None = None

    @property
    def value(self) -> float:
        """Mean over the splits."""
        return float(np.mean(self.values)) if self.values else float("nan")


@dataclass
class Comparison:
    """What came out: the contenders, the verdict, and the models of the last split with their scores of its test rows."""

    measure: Measure
    contenders: list[Contender]
    verdict: str
    kind: str  # "pays", "tie", "loses"
    splits: int
    test_rows: int
    train_rows: int
    classifier: MeasureClassifier
    truth: AnyArray
    decisions: dict[str, FloatArray]

    @property
    def best(self) -> Contender:
        """The contender of ours that the verdict is about: solver="auto"."""
        return self.contenders[0]

    @property
    def baseline(self) -> Contender:
        """The baseline with the best mean."""
        return _best_baseline(self.contenders)


def compare(
    X: Any,
    y: Any,
    measure: str | Measure = "roc_auc",
    measure_params: dict[str, Any] | None = None,
    *,
    solvers: Sequence[str] | None = None,
    splits: int | None = None,
    test_share: float = 0.3,
    alphas: Sequence[float] = ALPHAS,
    scaling: str | None = "auto",
    max_rows: int = 200_000,
    random_state: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Train ours and plain baselines for a measure on the same splits, and say whether direct training pays.

    Every model gets the alpha that is best on a quarter of its training rows held out for that, and is then trained on all of
    them; logistic regression gets C = 1 / (n alpha). Differences are paired by split. Their intervals take account of the
    splits' sharing of rows (Nadeau and Bengio 2003): the variance of the mean of s differences is (1/s + test/train) times
    theirs, with Student's t on s - 1 degrees. The verdict compares solver="auto" with the baseline of the highest mean, which
    is a choice in the baselines' favour.

    Parameters
    ----------
    X : array, sparse matrix or Operator of shape (n, p)
        Examples in rows.
    y : array of n labels
        Two classes; the larger in sorted order is positive.
    measure : str or Measure
        What counts.
    measure_params : dict, optional
        Parameters of a measure given by name.
    solvers : sequence of str, optional
        Solvers of ours beside "auto"; by default those that are made for the measure, or take one pass.
    splits : int, optional
        Random stratified splits; by default 10, or 5 from 20000 rows on.
    test_share : float
        Share of the rows that every split holds out.
    alphas : sequence of float
        Strengths of the penalty to choose from.
    scaling : {"auto", None, "maxabs", "standard"}
        Of the features, for all models alike; "auto": standard for dense data, maxabs for sparse.
    max_rows : int
        A stratified sample of so many rows is taken if there are more.
    random_state : int
        Random seed of the splits and of every model.
    progress : callable, optional
        Called with (fits done, fits in all, what was fitted).

    Returns
    -------
    Comparison
        Contenders with values, seconds and paired differences, and the verdict in words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline.report import compare
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = compare(X, y, "f1", splits=2)
    >>> result.kind
    'tie'
    """
    chosen = get_measure(measure, measure_params)
    check_number("test_share", test_share, above=0)
    if test_share >= 1.0:
        raise ValueError(f"test_share={test_share!r} must be a number below 1, the share of the rows to test on")
    check_number("max_rows", max_rows, least=8, integer=True)
    if len(alphas) == 0:
        raise ValueError(f"alphas={alphas!r} must hold at least one number")
    for alpha in alphas:
        check_number("alphas", alpha, above=0)
    classes, sign = check_labels(y, X.shape[0])
    rng = np.random.RandomState(random_state)
    matrix, truth = _matrix(X, sign > 0, max_rows, rng)
    few = min(np.count_nonzero(truth), np.count_nonzero(~truth))
    if few < 4:
        where = f" among the max_rows={max_rows} sampled ones" if len(truth) < len(sign) else ""
        raise ValueError(
            f"compare needs at least four rows of each class, to train, to choose alpha and to test on; got {few}{where}"
        )
    splits = (5 if len(truth) >= 20_000 else 10) if splits is None else splits
    check_number("splits", splits, least=2, integer=True)
    if scaling == "auto":
        scaling = "maxabs" if sp.issparse(matrix) else "standard"
    contenders = _contenders(chosen, solvers)
    done, total = 0, len(contenders) * splits
    for split in range(splits):
        parts = _split(matrix, truth, test_share, rng)
        decisions: dict[str, FloatArray] = {}
        for contender in contenders:
            try:
                model, decision = _fitted(contender, chosen, alphas, scaling, parts, random_state, split)
                decisions[contender.name] = decision
                if contender is contenders[0]:
                    classifier = model
            except (ValueError, TypeError, MemoryError) as error:
                if contender is contenders[0]:
                    raise
                contender.failure = str(error)
            done += 1
            if progress is not None:
                progress(done, total, contender.name)
    train_rows, test_rows = len(parts[2]), len(parts[3])
    _differences(contenders, test_rows / train_rows)
    verdict, kind = _verdict(chosen, contenders)
    shown = {
        name: decisions[name] for name in (contenders[0].name, _best_baseline(contenders).name) if name in decisions
    }
    classifier.classes_ = classes  # it was trained on True and False
    return Comparison(chosen, contenders, verdict, kind, splits, test_rows, train_rows, classifier, parts[3], shown)


def _matrix(X: Any, truth: AnyArray, max_rows: int, rng: Any) -> tuple[Any, AnyArray]:
    """Return X as an array that scikit-learn can split, at most `max_rows` rows of it."""
    n = X.shape[0]
    if isinstance(X, Operator):  # its rows are read into memory
        max_rows = min(max_rows, max(1000, int(MOST_BYTES / max(1.0, X.row_bytes))))
    rows = np.arange(n)
    if n > max_rows:
        rows, _ = train_test_split(rows, train_size=max_rows, stratify=truth, random_state=rng)
        rows = np.sort(rows)
    if isinstance(X, Operator):
        X.require("rows", "comparing with other libraries, which need its rows")
        return X._listed(X._row_list(rows)), truth[rows]
    matrix = X.tocsr() if sp.issparse(X) else np.asarray(X)
    return (matrix, truth) if len(rows) == n else (matrix[rows], truth[rows])


def _split(X: Any, truth: AnyArray, share: float, rng: Any) -> Any:
    """Return a stratified split with both classes on both sides, or raise and say what to change."""
    try:
        parts = train_test_split(X, truth, test_size=share, stratify=truth, random_state=rng)
        fits = all(part.any() and not part.all() for part in parts[2:])
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"a split of {len(truth):,} rows, {np.count_nonzero(truth):,} of them positive, with a share of {share:g} to test "
            "on has one class only on one side; change test_share, or take more rows"
        )
    return parts


def _contenders(measure: Measure, solvers: Sequence[str] | None) -> list[Contender]:
    """Return what is compared, ours with solver="auto" first."""
    if solvers is None:
        fitting = [s for s in all_solvers().values() if measure.name in (*s.measures, *s.ample)]
        solvers = [s.name for s in fitting]
    for name in solvers:
        if name != "auto":
            get_solver(name)
    ours = [Contender(f"{OURS} {name}", OURS) for name in ("auto", *[s for s in dict.fromkeys(solvers) if s != "auto"])]
    rivals = [PLAIN, BALANCED] if measure.uses_order else [PLAIN, BALANCED, TUNED]
    return ours + [Contender(name, BASELINE) for name in rivals]


def _model(contender: Contender, measure: Measure, alpha: float, scaling: str | None, n: int, seed: int) -> Any:
    """Return the model to be fitted on n rows."""
    if contender.kind == OURS:
        solver = contender.name.removeprefix(f"{OURS} ")
        # As `scoreline train` builds it: compare ends with the command that trains this model on all rows.
        return MeasureClassifier(measure, solver=solver, alpha=alpha, scaling=scaling, random_state=seed)
    weight = "balanced" if contender.name == BALANCED else None
    logistic: Any = LogisticRegression(C=1.0 / (n * alpha), max_iter=1000, class_weight=weight)
    scaler = {"standard": StandardScaler, "maxabs": MaxAbsScaler, None: lambda: "passthrough"}[scaling]()
    model = make_pipeline(scaler, logistic)
    return TunedThresholdClassifierCV(model, scoring=get_scorer(measure), cv=5) if contender.name == TUNED else model


def _fitted(
    contender: Contender,
    measure: Measure,
    alphas: Sequence[float],
    scaling: str | None,
    parts: Any,
    seed: int,
    split: int,
) -> tuple[Any, FloatArray]:
    """Choose alpha on held-out rows, train on all, and note value and seconds on the test rows."""
    X, X_test, y, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not converged shows in its value
        alpha = float(alphas[0])
        if len(alphas) > 1:
            inner = _split(X, y, 0.25, seed + split)
            tried = []
            for each in alphas:
                model = _model(contender, measure, each, scaling, len(inner[2]), seed).fit(inner[0], inner[2])
                tried.append(measure.value(inner[3], _decision(model, inner[1], measure)))
            alpha = float(alphas[int(np.argmax(tried))])
        begin = time.perf_counter()
        model = _model(contender, measure, alpha, scaling, len(y), seed).fit(X, y)
        contender.seconds.append(time.perf_counter() - begin)
    decision = _decision(model, X_test, measure)
    contender.values.append(float(measure.value(y_test, decision)))
    contender.alphas.append(alpha)
    return model, decision


def _decision(model: Any, X: Any, measure: Measure) -> FloatArray:
    """Return decision values; of a tuned threshold those above it are positive."""
    if isinstance(model, TunedThresholdClassifierCV):
        return np.asarray(model.estimator_.decision_function(X)) - _logit(model)
    return np.asarray(model.decision_function(X), dtype=np.float64)


def _logit(model: Any) -> float:
    """Return the tuned threshold as one of the decision function: scikit-learn tunes that of probabilities."""
    threshold = float(np.clip(model.best_threshold_, 1e-300, 1.0 - 1e-16))
    return float(np.log(threshold) - np.log1p(-threshold))


def _best_baseline(contenders: list[Contender]) -> Contender:
    """Return the baseline of the highest mean among those that came through all splits."""
    rivals = [c for c in contenders if c.kind == BASELINE]
    through = [c for c in rivals if c.failure is None and c.values]
    if not through:
        raise ValueError("every baseline failed: " + "; ".join(f"{c.name}: {c.failure}" for c in rivals))
    return max(through, key=lambda c: c.value)


def _differences(contenders: list[Contender], ratio: float) -> None:
    """Set the paired differences to the best baseline."""
    best = _best_baseline(contenders)
    for contender in contenders:
        if contender is best or contender.failure is not None:
            continue
        d = np.array(contender.values) - np.array(best.values)
        error = float(np.sqrt((1.0 / len(d) + ratio) * d.var(ddof=1)))
        reach = float(stats.t.ppf(0.5 + LEVEL / 2, len(d) - 1)) * error
        contender.difference = float(d.mean()), float(d.mean()) - reach, float(d.mean()) + reach


def _verdict(measure: Measure, contenders: list[Contender]) -> tuple[str, str]:
    """Return the verdict in words, and its kind."""
    ours, best = contenders[0], _best_baseline(contenders)
    assert ours.difference is not None
    mean, low, high = ours.difference
    figures = (
        f"on new rows {measure.name} {ours.value:.4f} against {best.value:.4f} by {best.name} ({mean:+.4f}, "
        f"{100 * LEVEL:.0f} % interval {low:+.4f} to {high:+.4f})"
    )
    faster = np.mean(best.seconds) / max(1e-9, float(np.mean(ours.seconds)))
    speed = (
        f"; it takes {1 / faster:.1f} times as long"
        if faster < 1 / 1.2
        else f", {faster:.1f} times as fast"
        if faster > 1.2
        else ""
    )
    if low > 0.0:
        return f"Direct training pays here{', a little' if mean < LITTLE else ''}: {figures}{speed}.", "pays"
    if high < 0.0:
        return f"Direct training does not pay here: {figures}{speed}. Use {best.name}.", "loses"
    return f"No clear difference here: {figures}{speed}. Use either.", "tie"
