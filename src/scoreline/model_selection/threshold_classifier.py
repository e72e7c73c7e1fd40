"""ThresholdClassifier: a decision threshold tuned for a measure, for any scikit-learn classifier."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch, _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from scoreline.fitting.checks import available_if, check_labels, check_sample_weight, check_truth
from scoreline.fitting.promise import PROMISE_SHARE, random_rows
from scoreline.fitting.threshold import ScoredRows, few_flagged, has_guarantee, target_missed
from scoreline.measures import (
    CountsBasedMeasure,
    Measure,
    OperatingPoint,
    best_threshold,
    get_measure,
    promised_threshold,
    robust_threshold,
)
from scoreline.model_selection.cross_fitting import (
    RESPONSES,
    are_probabilities,
    check_rows,
    check_share,
    response_method_of,
    response_of,
    routed_arguments,
    splits_of,
    trained,
)
from scoreline.runtime.checks import check_choice
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray

DESIGN_FOLDS = 5  # of the training rows, whose scores fix the thresholds to be tested, where cv is no number of folds
LEAST_PROBABILITY = 1e-12  # and 1 less it: the ends of probabilities whose logits are blurred


def _estimator_has(name: str) -> Callable[[Any], None]:
    """Return a check that raises the error of the estimator if it has no such method."""

    def check(clf: Any) -> None:
        getattr(getattr(clf, "estimator_", clf.estimator), name)

    return check


class ThresholdClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Any classifier for two classes, with a decision threshold tuned for a measure.

    The threshold is chosen on scores of rows that their model has not seen: cross-fitted scores, or all rows with
    cv="prefit". It is the robust threshold of `robust_threshold`, or the exact one of `best_threshold`. It takes the place of
    scikit-learn's TunedThresholdClassifierCV, which tries 100 thresholds in each fold and averages their values.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba` or `decision_function`: a scikit-learn classifier, a pipeline, LightGBM, XGBoost.
    measure : str or Measure, default="f1"
        The measure that the threshold maximises. Choose the one you report. Ranking measures do not depend on a threshold, so
        they take that of the balanced accuracy.
    measure_params : dict, default=None
        Parameters of a measure given by name, for example {"precision": 0.9} for "recall_at_precision".
    threshold : {"auto", "robust", "exact"}, default="auto"
        "robust" blurs the scores, so that the threshold does not depend on individual rows: choose it with few positives.
        "exact" is the best threshold of the cross-fitted scores: choose it with many. "auto" is "robust" for count-based
        measures and "exact" for ranking measures.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        The response that the threshold applies to. "auto" takes the first one that the estimator has.
    cv : int, float, splitter, iterable or "prefit", default=5
        Folds of the cross-fitting. A float is the share of rows in a single held-out set: choose it if fits are slow. "prefit"
        keeps an estimator that is already fitted, and needs rows that it was not trained on.
        With `guarantee`, a random half of the rows is held out to prove it, or the share `cv` if it is a float; for a rate of
        one class, of that class only. Folds of the other rows fix the thresholds to be tested. A splitter or an iterable must
        then have one split, whose held-out rows are a random sample.
    refit : bool, default=True
        Train the final model on all rows. False needs a single split, and keeps its model, which saves a fit. It has no effect
        with "prefit". With `guarantee`, the model of the single split is kept, because the promise is about that model.
    n_jobs : int, default=None
        Number of folds that are trained at the same time.
    random_state : int, RandomState or None, default=None
        Random seed of the held-out rows of a float `cv`.
    store_cv_results : bool, default=False
        Whether to keep the value of every threshold in `cv_results_`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (2,)
        The two classes; classes_[1] is positive.
    best_threshold_ : float
        `predict` returns classes_[1] where the response is larger.
    best_score_ : float
        The measure of the rows that the threshold was chosen on; NaN if a promise rests on rows of one class.
    promise_ : Promise or None
        With `guarantee` in measure_params: what is promised. Where it does not hold, a warning says why, and `predict` returns
        classes_[0] for every row (for a floor of recall classes_[1], which keeps it).
    cv_results_ : dict of ndarray
        With `store_cv_results`: "thresholds", the cross-fitted scores in rising order, and "scores", the measure of the rows
        that the threshold was chosen on, at each of them; for a ranking measure the balanced accuracy.
    response_method_ : str
        The response that is compared with the threshold.
    n_features_in_ : int
        Number of features, if the estimator tells it.
    feature_names_in_ : ndarray of str
        Names of the features, if the estimator tells them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scoreline import ThresholdClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ThresholdClassifier(LogisticRegression(max_iter=5000), "f1").fit(X, y)
    >>> round(clf.score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        estimator: Any,
        measure: str | Measure = "f1",
        measure_params: dict[str, Any] | None = None,
        *,
        threshold: str = "auto",
        response_method: str = "auto",
        cv: Any = 5,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        store_cv_results: bool = False,
    ):
        self.estimator = estimator
        self.measure = measure
        self.measure_params = measure_params
        self.threshold = threshold
        self.response_method = response_method
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store_cv_results = store_cv_results

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> "ThresholdClassifier":
        """Train the estimator and choose its threshold.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, p)
            Examples in rows, as the estimator takes them.
        y : array of n labels
            Two classes; the larger in sorted order is positive.
        sample_weight : array of n weights, optional
            Weights of the rows for the threshold, and for the estimator if its `fit` takes them.
        **params
            Further arguments of the estimator's `fit` and of the splitter, where scikit-learn routes metadata.

        Returns
        -------
        ThresholdClassifier
            The fitted classifier.
        """
        measure = self._checked_measure()
        design: list[_Scored] = []
        X, y, sample_weight = indexable(X, y, sample_weight)
        check_rows(X, y)
        routed = routed_arguments(self, {"estimator": self.estimator}, sample_weight, params)
        if self.cv == "prefit":
            try:
                check_is_fitted(self.estimator, "classes_")
            except NotFittedError:
                raise NotFittedError("cv='prefit' needs a fitted estimator; fit it first, on other rows.") from None
            model, classes = self.estimator, np.asarray(self.estimator.classes_)
            truth = check_truth(y, classes, len(y))
            method = response_method_of(model, self.response_method)
            rows = [_Scored(np.arange(len(truth)), response_of(model, method, X))]
        else:
            classes, sign = check_labels(y, len(y))
            truth = sign > 0
            y = np.asarray(y)
            splits = self._splits(X, y, sign, routed, measure)
            refit = self.refit and not has_guarantee(measure)  # a promise is about the model that was tested
            model = trained(self.estimator, X, y, routed.estimator.fit, None if refit else splits[0][0])
            method = response_method_of(model, self.response_method)
            rows = self._cross_fitted(X, y, routed, splits, method, None if refit else model)
            if isinstance(measure, OperatingPoint) and has_guarantee(measure) and not measure.ordered:
                training = splits[0][0]
                from sklearn.model_selection import check_cv

                folds = check_cv(self.cv if _is_count(self.cv) else DESIGN_FOLDS, y[training], classifier=True)
                inner = [(training[a], training[b]) for a, b in folds.split(np.zeros(len(training)), y[training])]
                design = self._cross_fitted(X, y, routed, inner, method, None)
        weight = check_sample_weight(sample_weight, len(truth))
        scored = _joined(rows, truth, weight)
        promise = None
        if isinstance(measure, OperatingPoint) and measure.guarantee is not None:
            fixed = _joined(design, truth, weight) if design else None
            threshold, promise = promised_threshold(measure, *scored, self.random_state, design=fixed)
        else:
            threshold = self._chosen(measure, scored, method)
        self.estimator_, self.classes_, self.response_method_ = model, classes, method
        of_one_class = (scored.sign == scored.sign[0]).all()  # where a rate of this class is promised
        self.best_threshold_ = threshold
        self.best_score_ = float("nan") if of_one_class else _value(measure, scored, threshold)
        self.promise_ = promise
        self.__dict__.pop("cv_results_", None)
        if self.store_cv_results:
            self.cv_results_ = _values_at_thresholds(measure, scored)
        if promise is not None and not promise.holds:
            warn_user(str(promise))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            else:
                self.__dict__.pop(name, None)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row: classes_[1] where the response is above `best_threshold_`.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of m labels
            The classes.
        """
        check_is_fitted(self, "estimator_")
        scores = response_of(self.estimator_, self.response_method_, X)
        return np.asarray(self.classes_[(scores > self.best_threshold_).astype(int)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure on (X, y).

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes.
        sample_weight : array of m weights, optional
            Rows count as often as their weight.

        Returns
        -------
        float
            The measure itself, larger is better.
        """
        check_is_fitted(self, "estimator_")
        scores = response_of(self.estimator_, self.response_method_, X)
        truth = check_truth(y, self.classes_, len(scores))
        weight = check_sample_weight(sample_weight, len(scores))
        rows = ScoredRows(np.where(truth, 1, -1), scores, weight)
        return _value(get_measure(self.measure, self.measure_params), rows, self.best_threshold_)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the estimator.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m, 2)
            One column for each class.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities of the estimator.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m, 2)
            One column for each class.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_log_proba(X))

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of the estimator, whose threshold is `best_threshold_` only if they are the response.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m,)
            The decision values.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(X))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go to the estimator and to the splitter.

        Returns
        -------
        MetadataRouter
            The routing of `fit`.
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self).add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _checked_measure(self) -> Measure:
        if not hasattr(self.estimator, "fit"):
            raise ValueError(f"estimator={self.estimator!r} has no fit; pass an object, not a class or a name.")
        check_choice("threshold", self.threshold, ("auto", "robust", "exact"))
        check_choice("response_method", self.response_method, ("auto", *RESPONSES))
        measure = get_measure(self.measure, self.measure_params)
        if self.threshold == "robust" and not isinstance(measure, CountsBasedMeasure):
            raise ValueError(
                f"threshold='robust' is for count-based measures, and {measure.name!r} is a ranking measure; use 'auto'."
            )
        return measure

    def _splits(
        self, X: Any, y: AnyArray, sign: AnyArray, routed: Bunch, measure: Measure
    ) -> list[tuple[AnyArray, AnyArray]]:
        """Return the training rows and the held-out rows of each fold; for a promise a single pair."""
        check_share(self.cv)
        if has_guarantee(measure) and (isinstance(self.cv, float) or _is_count(self.cv)):
            assert isinstance(measure, OperatingPoint)
            share = self.cv if isinstance(self.cv, float) else PROMISE_SHARE
            held = random_rows(measure, sign, share, self.random_state)
            return [(np.flatnonzero(~held), np.flatnonzero(held))]
        splits = splits_of(self.cv, X, y, routed.splitter.split, self.random_state)
        if has_guarantee(measure):
            self._check_split_of_promise(measure, splits)
            return splits
        if not self.refit and len(splits) > 1:
            raise ValueError(
                f"refit=False needs a single split, cv={self.cv!r} has {len(splits)}; pass a share, cv=0.2."
            )
        return splits

    def _check_split_of_promise(self, measure: Measure, splits: list[tuple[AnyArray, AnyArray]]) -> None:
        """Raise unless a splitter gives one split, whose held-out rows may be a random sample."""
        from sklearn.model_selection import StratifiedShuffleSplit

        other = "Pass the share of the held-out rows, cv=0.5."
        if len(splits) > 1:
            raise ValueError(
                f"a guarantee is about one model and needs a single split, cv={self.cv!r} has {len(splits)}. {other}"
            )
        assert isinstance(measure, OperatingPoint)
        if isinstance(self.cv, StratifiedShuffleSplit) and measure.proved_on not in ("positives", "negatives"):
            raise ValueError(
                f"cv={self.cv!r} holds out rows that are stratified by class, which are no random sample of the rows that "
                f"{measure.constraint()} is about. {other}"
            )

    def _cross_fitted(
        self, X: Any, y: AnyArray, routed: Bunch, splits: list[tuple[AnyArray, AnyArray]], method: str, model: Any
    ) -> list["_Scored"]:
        """Return the scores of the held-out rows of each fold; `model` is that of a single split, if it is there already."""

        def one(train: AnyArray, test: AnyArray) -> _Scored:
            fitted = trained(self.estimator, X, y, routed.estimator.fit, train) if model is None else model
            return _Scored(np.asarray(test), response_of(fitted, method, _safe_indexing(X, test)))

        return list(Parallel(n_jobs=self.n_jobs)(delayed(one)(*split) for split in splits))

    def _chosen(self, measure: Measure, rows: ScoredRows, method: str) -> float:
        """Return the threshold; warn where an operating point is out of reach."""
        if not ((rows.sign > 0).any() and (rows.sign < 0).any()):
            raise ValueError("the rows that the threshold is chosen on have one class only, expected both.")
        missed = target_missed(measure, rows)
        robust = self.threshold != "exact" and isinstance(measure, CountsBasedMeasure) and missed is None
        if robust:
            assert isinstance(measure, CountsBasedMeasure)
            # Logits of probabilities have no ends, so a blur of them has one width.
            probabilities = are_probabilities(method, rows.scores)
            clipped = np.clip(rows.scores, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
            z = logit(clipped) if probabilities else rows.scores
            found = robust_threshold(rows.sign, z, measure, rows.weight).threshold
            threshold = float(expit(found)) if probabilities else found
        else:
            threshold = best_threshold(rows.sign, rows.scores, measure, rows.weight).threshold
        message = missed or few_flagged(measure, rows, threshold)
        if message is not None:
            warn_user(message)
        return threshold


class _Scored(NamedTuple):
    """Which rows were held out of a fold, and their scores."""

    places: AnyArray
    scores: FloatArray


def _value(measure: Measure, rows: ScoredRows, threshold: float) -> float:
    decision = rows.scores if measure.uses_order else np.where(rows.scores > threshold, 1.0, -1.0)
    return measure.value(rows.sign, decision, rows.weight)


def _values_at_thresholds(measure: Measure, rows: ScoredRows) -> dict[str, FloatArray]:
    """Return the different scores in rising order, and the measure of the rows above each."""
    counted = measure if isinstance(measure, CountsBasedMeasure) else get_measure("balanced_accuracy")
    assert isinstance(counted, CountsBasedMeasure)
    thresholds, place = np.unique(rows.scores, return_inverse=True)
    weight = np.ones(len(place)) if rows.weight is None else rows.weight
    sides = (rows.sign > 0, rows.sign < 0)
    fn, tn = (np.cumsum(np.bincount(place, np.where(side, weight, 0.0))).astype(np.float64) for side in sides)
    tp, fp = fn[-1] - fn, tn[-1] - tn
    return {"thresholds": thresholds, "scores": np.asarray(counted.from_counts(tp, fp, fn, tn), dtype=np.float64)}


def _joined(folds: list[_Scored], truth: AnyArray, weight: FloatArray | None) -> ScoredRows:
    """Return the rows of all folds with their labels and weights."""
    places = np.concatenate([each.places for each in folds])
    scores = np.concatenate([each.scores for each in folds])
    return ScoredRows(np.where(truth[places], 1, -1), scores, None if weight is None else weight[places])


def _is_count(cv: Any) -> bool:
    """Tell whether `cv` is a number of folds."""
    return cv is None or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool))
