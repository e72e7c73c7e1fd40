"""The held-out rows of a promise: drawn before anything is learnt, and asked for the threshold when the model is there."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from scoreline.fitting.checks import check_sample_weight, check_truth
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.rows import GivenRows
from scoreline.fitting.threshold import ScoredRows, has_guarantee
from scoreline.measures import Measure, OperatingPoint, PromiseCheck, check_counts, promised_threshold
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray
from scoreline.runtime.vectors import RemoteVector

PROMISE_SHARE = 0.5  # of the rows, see benchmarks/promises.py
FAR = 1e300  # an intercept that no score changes the sign of


def no_guarantee(measure: Measure, where: str) -> None:
    """Raise if the measure has a guarantee, which this way of training cannot give."""
    if has_guarantee(measure):
        raise ValueError(
            f"{where} cannot give a guarantee: it has no held-out rows of its own. Train without it, and call "
            "tune_threshold with the guarantee on rows that the model has not seen."
        )


def rows_of_promise(parameters: Parameters, given: GivenRows) -> AnyArray | None:
    """Return a mask of a random share of the rows if the measure has a guarantee.

    A rate of one class needs rows of that class only, and all others are trained on. For other constraints labels have no part
    in the draw: rows that are stratified by class are no random sample.
    """
    measure = parameters.measure
    if not has_guarantee(measure):
        return None
    assert isinstance(measure, OperatingPoint)
    if parameters.threshold != "auto":
        raise ValueError(
            f"threshold={parameters.threshold!r} cannot be combined with a guarantee; leave threshold='auto'."
        )
    if isinstance(given.sign, RemoteVector):
        raise TypeError(
            "a guarantee needs rows in the memory of this process. Train without it, and call tune_threshold with the "
            "guarantee on rows that the model has not seen."
        )
    # Probabilities need the shares of the classes, which a draw from one class would change.
    held = random_rows(measure, given.sign, PROMISE_SHARE, parameters.random_state, not parameters.probability)
    weight = check_sample_weight(given.sample_weight, len(held))
    rest = ~held if weight is None else ~held & (weight > 0.0)
    if not ((given.sign[rest] > 0).any() and (given.sign[rest] < 0).any()):
        raise ValueError(
            f"a guarantee holds out {held.sum()} of {len(held)} rows, and the others are of one class; give more rows."
        )
    return held


def random_rows(
    measure: OperatingPoint, sign: AnyArray, share: float, random_state: Any, of_one_class: bool = True
) -> AnyArray:
    """Return a mask of a random share of the rows that a promise is proved on: of one class for its rate, else of all."""
    order = check_random_state(random_state).permutation(len(sign))
    if of_one_class and measure.proved_on in ("positives", "negatives"):
        order = order[(sign[order] > 0) == (measure.proved_on == "positives")]
    held = np.zeros(len(sign), dtype=bool)
    held[order[: int(share * len(order))]] = True
    return held


def promised(
    measure: OperatingPoint, rows: ScoredRows, trained_intercept: float, design: ScoredRows | None = None
) -> dict[str, Any]:
    """Return the attributes `intercept_` and `promise_`; warn where nothing can be promised."""
    host = (np.asarray(rows.sign), np.asarray(rows.scores), rows.weight)
    threshold, promise = promised_threshold(measure, *host, design=design)
    if not promise.holds:
        warn_user(f"measure {measure.name!r}: {promise}")
    intercept = trained_intercept - threshold if np.isfinite(threshold) else -np.sign(threshold) * FAR
    return {"intercept_": np.array([intercept]), "promise_": promise}


def check_promise(model: Any, X: Any, y: Any, sample_weight: Any = None, level: float = 0.95) -> PromiseCheck:
    """Test on labelled new rows whether a model's constraint still holds.

    The test is exact for independent rows. It says "broken" of a constraint that holds with a probability of at most
    1 - level. Repeated looks at new rows add up: for twenty looks, use 1 - 0.05 / 20 as level.

    Parameters
    ----------
    model : MeasureClassifier or ThresholdClassifier
        With a `promise_`, also one that does not hold.
    X : as in `fit`, of shape (m, p)
        New rows.
    y : array of m labels
        Their classes.
    sample_weight : array of m whole numbers, optional
        How many independent rows each row stands for.
    level : float, default=0.95
        Level of the test.

    Returns
    -------
    PromiseCheck
        broken, constraint, bound, value, rows, p_value, level.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline import MeasureClassifier, check_promise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 2))
    >>> y = X[:, 0] + 0.3 * rng.standard_normal(4000) > 1.0
    >>> clf = MeasureClassifier("tpr_at_fpr", {"fpr": 0.05, "guarantee": 0.95}, random_state=0).fit(X[:3000], y[:3000])
    >>> check_promise(clf, X[3000:], y[3000:]).broken
    False
    """
    promise = getattr(model, "promise_", None)
    if promise is None:
        raise ValueError(
            "the model has no promise; train it with guarantee in measure_params, or call tune_threshold with it."
        )
    predicted = np.asarray(model.predict(X))
    truth = np.asarray(check_truth(y, model.classes_, len(predicted)))
    weight = check_sample_weight(sample_weight, len(predicted))
    kind = 2 * truth.astype(np.int8) + (predicted == model.classes_[1])
    tn, fp, fn, tp = (int(each) for each in np.bincount(kind, weight, 4))
    return check_counts(promise, tp, fp, fn, tn, level)
