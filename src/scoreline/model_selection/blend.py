"""Blend: a non-negative linear blend of the scores of any models, trained for a measure on cross-fitted scores."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch, _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from scoreline.fitting.checks import available_if, check_labels, check_sample_weight, check_truth
from scoreline.fitting.promise import no_guarantee
from scoreline.measures import Measure, get_measure
from scoreline.model_selection.cross_fitting import (
    RESPONSES,
    are_probabilities,
    check_rows,
    response_method_of,
    response_of,
    routed_arguments,
    splits_of,
    trained,
)
from scoreline.model_selection.search import MeasureClassifierCV
from scoreline.objectives.surrogate import best_value
from scoreline.runtime.checks import check_choice, check_flag
from scoreline.runtime.types import AnyArray, FloatArray

ALPHAS = (10.0, 1.0, 0.1, 0.01, 0.001)  # of the blend; the strongest penalty weights members by their class means
INNER_FOLDS = 5  # that choose alpha where cross-fitting has one split only


class Scorer(NamedTuple):
    """A fitted model and how its responses become scores: log-odds, or responses in standard deviations."""

    model: Any
    method: str
    probabilities: bool
    rounding: float
    center: float
    scale: float

    @classmethod
    def of(cls, name: str, model: Any, wanted: str, X: Any, weight: FloatArray | None) -> "Scorer":
        """Return the scorer of a model; the unit of decision values is their standard deviation over all rows of X."""
        method = response_method_of(model, wanted)
        response = response_of(model, method, X)
        if not np.isfinite(response).all():
            raise ValueError(f"estimator {name!r} returned scores that are not finite; expected a number for each row.")
        if are_probabilities(method, response):
            return cls(model, method, True, 0.5 / len(response), 0.0, 1.0)
        center = float(np.average(response, weights=weight))
        scale = float(np.sqrt(np.average((response - center) ** 2, weights=weight)))
        return cls(model, method, False, 0.0, center, scale if scale > 0.0 else 1.0)

    def __call__(self, X: Any) -> FloatArray:
        """Return the scores of rows. Probabilities of 0 and 1 have finite log-odds, and the order of all is kept."""
        response = response_of(self.model, self.method, X)
        if self.probabilities:
            return np.asarray(logit((response + self.rounding) / (1.0 + 2.0 * self.rounding)))
        return (response - self.center) / self.scale


def _has_probabilities(clf: Any) -> None:
    """Raise the error of a missing attribute unless probabilities were asked for."""
    if not clf.probability:
        raise AttributeError("predict_proba needs probability=True.")


class Blend(ClassifierMixin, BaseEstimator):
    """A non-negative linear blend of the scores of any classifiers, trained for a measure, with a certificate.

    The members are trained on folds, and score the rows that they have not seen. The blend is a linear model of these
    scores with coefficients of at least 0, trained for the measure by `MeasureClassifierCV`. Its certificate says that no
    non-negative blend of the same scores has a smaller training objective. Probabilities become log-odds. Decision values
    are standardised by their mean and standard deviation over all rows of X.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The members: classifiers with `predict_proba` or `decision_function`. "drop" in place of a classifier leaves it
        out, as in scikit-learn's StackingClassifier.
    measure : str or Measure, default="roc_auc"
        The measure you report. `list_measures()` returns all names.
    measure_params : dict, default=None
        Parameters of a measure given by name, for example {"precision": 0.9} for "recall_at_precision".
    risk : str, default="auto"
        The convex surrogate of the measure, as in `MeasureClassifierCV`.
    alphas : sequence of float, default=(10, 1, 0.1, 0.01, 0.001)
        Strengths of the penalty to choose from, by the measure on the folds. The strongest weights each member by how far
        apart its mean scores of the two classes are, which is close to equal weights of good members. Weak penalties
        leave members out that others make superfluous.
    cv : int, float, splitter, iterable or "prefit", default=5
        Folds of the cross-fitting. A float is the share of rows in a single held-out set. "prefit" keeps members that are
        already fitted, and needs rows that they were not trained on.
    refit : bool, default=True
        Train the final members on all rows. False keeps the models of the folds: a member's score is their mean, which
        saves a fit, takes as many predictions as there are folds, and is often better for models that vary much.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        The response of the members. "auto" takes the first one that a member has.
    probability : bool, default=False
        Calibrate a sigmoid for `predict_proba` on held-out scores of the blend.
    tol : float, default=1e-3
        Tolerance of the certificate, as in `MeasureClassifier`.
    n_jobs : int, default=None
        Number of fits of members that run at the same time.
    random_state : int, RandomState or None, default=None
        Random seed of the held-out rows of a float `cv`.

    Attributes
    ----------
    blend_ : MeasureClassifierCV
        The linear model of the scores: its `coef_` and `intercept_` apply to `member_scores(X)`.
    weights_ : ndarray of n_members
        Shares of the members: coefficients times standard deviations of the cross-fitted scores, with the sum 1.
    objective_, lower_bound_, gap_, status_ : float, float, float, str
        The certificate of `blend_`.
    alpha_ : float
        The strength of the penalty that was chosen.
    member_values_ : ndarray of n_members
        The measure of each member on the cross-fitted scores; a count-based measure at its best threshold.
    names_ : list of str
        Names of the members that were not dropped.
    estimators_ : list of classifiers, or of lists of them
        The fitted members; with refit=False the models of the folds of each.
    named_estimators_ : Bunch
        The same by name.
    classes_ : ndarray of shape (2,)
        The two classes; classes_[1] is positive.
    n_features_in_ : int
        Number of features, if the first member tells it.
    feature_names_in_ : ndarray of str
        Names of the features, if the first member tells them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from scoreline import Blend, MeasureClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> members = [("linear", MeasureClassifier(scaling="standard", alpha=0.1)), ("forest", RandomForestClassifier(20))]
    >>> clf = Blend(members, "roc_auc").fit(X, y)
    >>> bool(clf.weights_.min() >= 0.0), round(clf.score(X, y), 1)
    (True, 1.0)
    """

    def __init__(
        self,
        estimators: Any,
        measure: str | Measure = "roc_auc",
        measure_params: dict[str, Any] | None = None,
        *,
        risk: str | Sequence[str] = "auto",
        alphas: Sequence[float] = ALPHAS,
        cv: Any = 5,
        refit: bool = True,
        response_method: str = "auto",
        probability: bool = False,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.estimators = estimators
        self.measure = measure
        self.measure_params = measure_params
        self.risk = risk
        self.alphas = alphas
        self.cv = cv
        self.refit = refit
        self.response_method = response_method
        self.probability = probability
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> "Blend":
        """Train the members on folds, blend their scores, and train the final members.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, p)
            Examples in rows, as the members take them.
        y : array of n labels
            Two classes; the larger in sorted order is positive.
        sample_weight : array of n weights, optional
            Weights of the rows for the blend, and for members whose `fit` takes them.
        **params
            Further arguments of the members' `fit` and of the splitter, where scikit-learn routes metadata.

        Returns
        -------
        Blend
            The fitted classifier.
        """
        measure = get_measure(self.measure, self.measure_params)
        no_guarantee(measure, "Blend")
        members = self._members()
        X, y, sample_weight = indexable(X, y, sample_weight)
        check_rows(X, y)
        if self.cv == "prefit":
            classes = _common_classes(members)
            sign = np.where(check_truth(y, classes, len(y)), 1, -1)
        else:
            classes, sign = check_labels(y, len(y))
        weight = check_sample_weight(sample_weight, len(sign))
        routed = routed_arguments(self, members, sample_weight, params)
        if self.cv == "prefit":
            splits = [(np.arange(0), np.arange(len(sign)))]
            final = [[Scorer.of(name, each, self.response_method, X, weight)] for name, each in members.items()]
            scores = np.column_stack([one(X) for (one,) in final])
        else:
            y = np.asarray(y)
            splits = splits_of(self.cv, X, y, routed.splitter.split, self.random_state)
            final, scores = self._cross_fitted(members, X, y, weight, routed, splits)
        rows = np.concatenate([test for _, test in splits])
        of_rows = None if weight is None else weight[rows]
        blend = self._blended(scores, classes[(sign[rows] > 0).astype(int)], of_rows, splits)
        self.blend_, self.classes_, self.names_ = blend, classes, list(members)
        self._scorers = final
        models = [[each.model for each in own] for own in final]
        self.estimators_ = [own[0] for own in models] if self.refit or self.cv == "prefit" else models
        self.named_estimators_ = Bunch(**dict(zip(members, self.estimators_, strict=True)))
        center = np.average(scores, axis=0, weights=of_rows)
        parts = blend.coef_[0] * np.sqrt(np.average((scores - center) ** 2, axis=0, weights=of_rows))
        self.weights_ = parts / parts.sum() if parts.any() else np.full(len(parts), 1.0 / len(parts))
        self.member_values_ = np.array([best_value(measure, sign[rows], own, of_rows) for own in scores.T])
        self.alpha_, self.status_ = blend.alpha_, blend.status_
        self.objective_, self.lower_bound_, self.gap_ = blend.objective_, blend.lower_bound_, blend.gap_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(models[0][0], name):
                setattr(self, name, getattr(models[0][0], name))
            else:
                self.__dict__.pop(name, None)
        return self

    def _members(self) -> dict[str, Any]:
        """Return the members by name, or raise."""
        check_choice("response_method", self.response_method, ("auto", *RESPONSES))
        check_flag("refit", self.refit)
        given = _pairs(self.estimators)
        if not given:
            raise ValueError(f"estimators must be a list of (name, classifier), got {self.estimators!r}.")
        names = [name for name, _ in given]
        taken = set(super().get_params(deep=False))
        wrong = [name for name in names if not isinstance(name, str) or "__" in name or name in taken]
        if wrong or len(set(names)) < len(names):
            raise ValueError(
                f"names of estimators must be different strings without '__', and no parameters of Blend; got {names}."
            )
        members = {name: each for name, each in given if not (isinstance(each, str) and each == "drop")}
        if not members:
            raise ValueError("estimators has no classifier, expected at least one (name, classifier).")
        for name, each in members.items():
            if not hasattr(each, "fit"):
                raise ValueError(f"estimator {name!r} is {each!r}, which has no fit; pass an object or 'drop'.")
        return members

    def _cross_fitted(
        self,
        members: dict[str, Any],
        X: Any,
        y: AnyArray,
        weight: FloatArray | None,
        routed: Bunch,
        splits: list[tuple[AnyArray, AnyArray]],
    ) -> tuple[list[list[Scorer]], FloatArray]:
        """Return the final scorers of each member, and a column per member with the scores of the held-out rows."""

        def one(name: str, train: AnyArray | None, test: AnyArray | None) -> tuple[Scorer, FloatArray | None]:
            model = trained(members[name], X, y, routed[name].fit, train)
            scorer = Scorer.of(name, model, self.response_method, X, weight)
            return scorer, None if test is None else scorer(_safe_indexing(X, test))

        tasks: list[tuple[str, Any, Any]] = [(name, *split) for name in members for split in splits]
        if self.refit:
            tasks += [(name, None, None) for name in members]
        done = Parallel(n_jobs=self.n_jobs)(delayed(one)(*task) for task in tasks)
        of_folds = [done[k : k + len(splits)] for k in range(0, len(members) * len(splits), len(splits))]
        scores = np.column_stack([np.concatenate([held for _, held in own]) for own in of_folds])
        if self.refit:
            return [[scorer] for scorer, _ in done[-len(members) :]], scores
        return [[scorer for scorer, _ in own] for own in of_folds], scores

    def _blended(
        self, scores: FloatArray, labels: AnyArray, weight: FloatArray | None, splits: list[tuple[AnyArray, AnyArray]]
    ) -> MeasureClassifierCV:
        """Return the linear model of the scores; the folds that made them also choose alpha."""
        ends = np.cumsum([0] + [len(test) for _, test in splits])
        places = np.arange(ends[-1])
        folds = [(np.delete(places, np.s_[a:b]), places[a:b]) for a, b in pairwise(ends)]
        blend = MeasureClassifierCV(
            self.measure, self.measure_params, alphas=self.alphas, cv=folds if len(folds) > 1 else INNER_FOLDS,
            risk=self.risk, bounds=(0.0, None), scaling="standard", tol=self.tol, probability=self.probability,
        )  # fmt: skip
        return blend.fit(scores, labels, weight)

    def member_scores(self, X: Any) -> FloatArray:
        """Return the scores of the members, which the blend weights.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m, n_members)
            Log-odds of members with probabilities, otherwise standardised decision values.
        """
        check_is_fitted(self, "blend_")
        return np.column_stack([np.mean([one(X) for one in own], axis=0) for own in self._scorers])

    def decision_function(self, X: Any) -> FloatArray:
        """Return the blended scores; `predict` returns classes_[1] where they are positive.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of m floats
            The scores.
        """
        scores = self.member_scores(X)
        return np.asarray(self.blend_.decision_function(scores))

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of m labels
            The classes.
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0.0).astype(int)])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities of both classes, by the sigmoid of held-out scores.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.

        Returns
        -------
        ndarray of shape (m, 2)
            One column for each class.
        """
        scores = self.member_scores(X)
        return np.asarray(self.blend_.predict_proba(scores))

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
        scores = self.member_scores(X)
        return float(self.blend_.score(scores, y, sample_weight))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also the members by name, and their parameters as name__parameter.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of the members.

        Returns
        -------
        dict
            Parameters and values.
        """
        out: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, each in _pairs(self.estimators):
                out[name] = each
                own = each.get_params(deep=True) if hasattr(each, "get_params") else {}
                out.update({f"{name}__{key}": value for key, value in own.items()})
        return out

    def set_params(self, **params: Any) -> "Blend":
        """Set parameters, members by name, and parameters of members as name__parameter.

        Parameters
        ----------
        **params
            Parameters and values.

        Returns
        -------
        Blend
            This classifier.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        given = _pairs(self.estimators)
        replaced = {name: params.pop(name) for name, _ in given if name in params}
        if replaced:
            self.estimators = [(name, replaced.get(name, each)) for name, each in given]
        super().set_params(**params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go to the members and to the splitter.

        Returns
        -------
        MetadataRouter
            The routing of `fit`.
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, each in self._members().items():
            router.add(method_mapping=to_fit, **{name: each})
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = [get_tags(each) for _, each in _pairs(self.estimators) if hasattr(each, "fit")]
        tags.input_tags.sparse = all(each.input_tags.sparse for each in inner)
        tags.input_tags.allow_nan = all(each.input_tags.allow_nan for each in inner)
        return tags


def _pairs(estimators: Any) -> list[tuple[Any, Any]]:
    """Return (name, classifier) of each member; nothing if that is not what was given."""
    if not isinstance(estimators, (list, tuple)):
        return []
    if not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in estimators):
        return []
    return [(name, each) for name, each in estimators]


def _common_classes(members: dict[str, Any]) -> AnyArray:
    """Return the classes of fitted members, or raise."""
    found = []
    for name, each in members.items():
        try:
            check_is_fitted(each, "classes_")
        except NotFittedError:
            raise NotFittedError(
                f"cv='prefit' needs fitted members, and estimator {name!r} is not; fit it first, on other rows."
            ) from None
        found.append((name, np.asarray(each.classes_)))
    first, classes = found[0]
    for name, own in found:
        if not np.array_equal(own, classes) or len(own) != 2:
            raise ValueError(
                f"estimators {first!r} and {name!r} know the classes {classes.tolist()} and {own.tolist()}, expected the "
                "same two."
            )
    return classes
