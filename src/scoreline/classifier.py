"""MeasureClassifier: train a linear classifier for the measure you report."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from scoreline.features.fitted import FittedFeatures
from scoreline.features.registry import pair_options
from scoreline.features.shapes import ShapeFunction, shape_functions
from scoreline.fitting.bands import shape_errors
from scoreline.fitting.certified import CertifiedFit, with_cost
from scoreline.fitting.checks import (
    available_if,
    check_base_scores,
    check_costs,
    check_labels,
    check_same_use,
    check_sample_weight,
    check_string_features,
    check_truth,
    check_weights,
    feature_source,
)
from scoreline.fitting.interim import fitting
from scoreline.fitting.job import Job, on_device
from scoreline.fitting.model import Model, set_model, unchanged_on_error
from scoreline.fitting.moments import MomentsFit
from scoreline.fitting.pairs import with_pairs
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.persist import restored_model, save_model
from scoreline.fitting.plan import measure_of_threshold, plan
from scoreline.fitting.probabilities import calibration, cross_fitted_scores, has_probabilities, sigmoid_of
from scoreline.fitting.promise import no_guarantee, promised, rows_of_promise
from scoreline.fitting.row_by_row import RowFit
from scoreline.fitting.rows import GivenRows
from scoreline.fitting.streaming import can_merge, can_stream, merge, process_rows
from scoreline.fitting.threshold import ScoredRows, target_missed, threshold_with_margin
from scoreline.io.encoding import Encoding
from scoreline.measures import CountsBasedMeasure, Measure, OperatingPoint, get_measure, robust_threshold
from scoreline.operators import Operator, as_operator
from scoreline.operators.column_maps import ColumnMap, mapped_like
from scoreline.operators.convert import checked_scores
from scoreline.penalties import Penalty
from scoreline.risks.on_base_scores import on_base_scores
from scoreline.risks.registry import get_risk
from scoreline.runtime import parallel
from scoreline.runtime.array_types import is_dask, library_of
from scoreline.runtime.memory import memory_advice
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import RemoteVector, room_module
from scoreline.scorecards.card import Scorecard
from scoreline.scorecards.make import CardOptions, CardRows, make_scorecard
from scoreline.scores import space_of
from scoreline.solvers import MomentsSolver
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.registry import get_solver

logger = logging.getLogger("scoreline")


class MeasureClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier trained for a measure, with a certificate of how close to optimal the training is.

    Minimises J(w) = alpha omega(w) + R(Xw), where R is a convex surrogate of the measure's error and omega(w) = |w|^2 / 2 by
    default, without the intercept. Training stops when the duality gap objective_ - lower_bound_ is at most tol times the
    larger of lower_bound_ and J(0)/1000. Then the decision threshold is tuned for the measure. The certificate is about J on
    the training rows: no linear classifier has a smaller J. It does not say that none has a better measure on new rows.

    Parameters
    ----------
    measure : str or Measure, default="roc_auc"
        The measure you report. Choose "roc_auc" for rankings, "f1" or "mcc" for decisions about rare positives, and
        "recall_at_precision" if you need a precision. `list_measures()` returns all names.
    measure_params : dict, default=None
        Parameters of a measure given by name, for example {"beta": 2.0} for "fbeta" or {"precision": 0.9} for
        "recall_at_precision".
    solver : str, default="auto"
        The algorithm that minimises J. Keep "auto", except for streams ("spade", "stamp", "moments") and experiments.
        `list_solvers()` returns the names.
    risk : str, default="auto"
        The convex surrogate R. Keep "auto", which takes the one that was best for the measure in benchmarks. Name one to
        reproduce another tool, such as "logistic" or "squared_hinge". The one used is `risk_`.
    solver_params : dict, default=None
        Options of the solver. Most fits need none.

        - For all: "abs_tol" (stop at an absolute gap), "callbacks" (functions of a Progress), "checkpoint" (a file to resume
          from, see `scoreline.solvers.Checkpoint`), "init" ("moments": start at the class moments).
        - For all but moments: "early_stopping" (stop by the measure on validation rows, see `scoreline.solvers.EarlyStopping`).
        - For all but spade, stamp and hybrid: "device" ("cuda", "cuda:1", "cupy": move X there first).
        - L-BFGS: "memory" (pairs kept). smoothed: "mu" or "c_mu" (fix the smoothing), "precondition" (False for plain L-BFGS).
        - moments: "ridge", "method", "diagnostics". bundle, bundle_ocas: "max_planes", "zero_plane".
        - spade, stamp: "passes", "step", "weights", "first_epoch". amp: "level", "level_tol", "rounds".
        - cost_search: "cost" (a fixed weight of positives).
    alpha : float, default=1e-4
        Strength of the penalty. Larger values give simpler models and suit few rows: 1 to 0.01 for hundreds of rows, 1e-4 to
        1e-6 for many. `MeasureClassifierCV` chooses it. scikit-learn's C is 1 / (n alpha) for LogisticRegression.
    penalty : {"l2", "elastic_net", "group"} or Penalty, default="l2"
        What alpha multiplies. Keep "l2" unless you need a sparse model: "elastic_net" selects features, and "group" selects
        groups of features together.
    penalty_params : dict, default=None
        Parameters of a penalty given by name. "weights": the cost of each feature (default 1; less for features you trust).
        "l1_ratio": share of the L1 or group part (default 0.5; 1 is the lasso). "groups": list of lists of columns, by name
        or number.
    bounds : tuple or dict, default=None
        Lower and upper bounds of coef_, if you know signs or limits: (0, None) for coefficients of at least 0, or
        {column: (lower, upper)} with names or numbers. None is no bound.
    monotone : dict, default=None
        Use it if the score must not fall ({column: +1}) or not rise ({column: -1}) with a column, given by name or number. It
        holds exactly, and the certificate is about all such models. With features="pairs" these columns are in no pair.
        Missing values and categories have no order.
    fit_intercept : bool, default=True
        Train an intercept where the risk needs one. Use False if the rows are centred and the model must pass through 0.
    intercept_scaling : float, default=1.0
        Only for solvers that penalise the intercept (bundle, bundle_ls, bundle_ocas, hybrid, accelerated, spade, stamp): the
        value of the constant feature. Use a larger value to penalise the intercept less.
    scaling : {None, "maxabs", "standard", "robust", "quantile"}, default=None
        How features are scaled before the penalty applies. Use "standard" for dense data, "maxabs" for sparse data, and
        "robust" or "quantile" for columns with heavy tails.

        - "maxabs" (x / max|x|) and "standard" ((x - mean) / standard deviation) are applied during the products. X is not
          copied, and coef_ is in original units.
        - "robust" clips each column to limits around its median, six times the median distance on either side. coef_ is per
          unit of the clipped values.
        - "quantile" replaces values by the normal scores of their ranks, interpolated between 21 knots. coef_ is per unit of
          these scores.

        The last two standardise the mapped columns if X is dense and divide them by max|x| if it is sparse. They make a
        float64 copy of X in memory, map rows on disk when they are read, and keep zeros of sparse X.
    threshold : {"auto", "train", "holdout", "none"}, default="auto"
        How the decision threshold is tuned. Keep "auto" unless you have a reason. `tune_threshold` sets it again on other rows.

        - "auto": for count-based measures trained with the logistic or squared hinge loss, a robust threshold on leave-one-out
          scores, without a further fit. With early stopping it uses the validation rows. For other risks it does as "holdout"
          with fewer than ten rows per feature (and at least fifty rows of each class), otherwise as "train". For ranking
          measures it does as "train".
        - "train": the best threshold for the measure on the training scores. Choose it with very many rows.
        - "holdout": the best threshold on a stratified fifth of the rows, held out of a first fit. Choose it with many
          positives and a flexible model. It costs one more fit.
        - "none": the trained intercept stays. Choose it for log-odds, or to set the threshold yourself.
    features : {"linear", "additive", "pairs"}, Additive or Pairs, default="linear"
        What the score is a linear function of. Try "additive" on tables of numbers and categories.

        - "linear": the columns of X. Choose it for text, sparse or very many features.
        - "additive": a smooth function of each column, made of bins that are learnt from X alone, see
          `scoreline.features.Additive`. Missing values (NaN) and columns of text in a frame are allowed. Choose alpha by
          `MeasureClassifierCV`: the best values lie between 0.001 and 10.
        - "pairs": functions of pairs of columns, too. An additive model is trained first and finds the pairs that can lower J,
          see `scoreline.features.Pairs`. Choose it if effects depend on each other. The certificate is about the model with
          the chosen pairs.
    class_weight : dict, "balanced" or None, default=None
        Weights of the two classes, multiplied with sample_weight. Leave it out for rare positives: the threshold is tuned
        anyway. For the ROC area the weights cancel and move only the threshold.
    tol : float, default=1e-2
        Stop when gap_ <= tol * max(lower_bound_, J(0) / 1000). The default certifies the model within 1 % of the optimum.
        Choose 1e-3 or less to compare objectives that are nearly equal.
    max_iter : int, default=5000
        Iteration budget.
    max_time : float, default=None
        Time limit in seconds, checked after every iteration. Fits of folds (`probability`) have the same limit each.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, to fit a path of alphas quickly. No effect for "spade" and "stamp".
    random_state : int, RandomState or None, default=None
        Random seed of the order of rows (spade, stamp), of held-out rows, and of probes of leave-one-out beyond 1000 features.
        Pass an integer for reproducible results.
    n_jobs : int, default=None
        Number of threads. None means all that this process may use: cores, limits of containers, of joblib, `OMP_NUM_THREADS`
        and `NUMBA_NUM_THREADS` are respected, and a worker of `multiprocessing.Pool` or Dask uses one. Results have the same
        bits for any number. BLAS has one thread during a fit, because its bits depend on how many it has.
    verbose : int, default=0
        1 logs what was done, 2 logs every iteration, to the logger "scoreline".
    probability : bool, default=False
        Calibrate a sigmoid for `predict_proba` on held-out or leave-one-out scores. Use it only if you need probabilities:
        risks other than the logistic and the squared hinge loss take five more fits, unless early stopping has validation rows.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients in the units of X, or of the features that `feature_map_` makes.
    intercept_ : ndarray of shape (1,)
        Intercept after the threshold was tuned: `predict` is decision_function > 0.
    uses_base_scores_ : bool
        Whether the model was trained with base scores, which its own scores are added to.
    trained_intercept_ : float
        Intercept that objective_ and gap_ belong to, before the threshold was tuned.
    calibration_ : ndarray of shape (2,)
        With probability=True: slope a > 0 and offset b of P(classes_[1]) = 1 / (1 + exp(-(a z + b))), where z is X coef_
        clipped to calibration_range_.
    calibration_range_ : ndarray of shape (2,)
        With probability=True: where z is clipped. It is infinite unless outlying scores would flatten the sigmoid.
    calibration_gain_ : float
        With probability=True: by how much the log loss of held-out rows is below that of the share of positives.
    classes_ : ndarray of shape (2,)
        The two classes; classes_[1] is positive.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a data frame.
    solver_, risk_ : str
        The solver and the risk that were used.
    plan_ : str
        What was decided before the fit, and why, in one sentence; `verbose=1` shows it.
    rejected_ : str or None
        With risk="auto" and solver="auto": the method that was trained first and rejected, and why; None if there is none.
    cost_ : float
        Weight of a positive relative to a negative that `solver="cost_search"` or "amp" chose. It is 1 if the plain fit was
        kept, and for other solvers.
    levels_, level_bound_ : list of float, float or None
        With solver="amp": the level of each fit, and an upper bound of all levels (None for level="measure").
    n_iter_ : int
        Iterations of the fit that was kept, as in `history_`; `n_passes_` counts all fits of a search.
    n_passes_ : float
        Passes over X: products with it, and its column statistics if it is scaled. The check for NaN is one more read.
    objective_, lower_bound_, gap_ : float
        J at the solution, a lower bound of the minimum of J, and their difference. None for "moments", "spade" and "stamp".
    moments_report_ : dict
        With solver="moments": predicted and empirical measure, and the shape of the scores of both classes.
    threshold_rank_error_ : float
        After `partial_fit` row by row: the largest share of a class by which the rank of the threshold may be off.
    feature_map_ : FittedFeatures or None
        With features="additive" or "pairs": bins and bases of the columns. coef_ applies to the features that they make.
    column_map_ : ColumnMap or None
        With scaling="robust" or "quantile": the knots of the function of each column. coef_ applies to the mapped values.
    string_features_ : dict or None
        If X was a `StringOperator`: its options, with which `StringOperator(new_rows, **clf.string_features_)` makes the same
        features of other sequences.
    promise_ : Promise
        With `guarantee` in measure_params: what is promised about new rows. The promise is proved by a random half of the rows,
        which `fit` holds out, or by the rows of `tune_threshold`. Where nothing can be promised, a warning says what would be
        needed, and no row is flagged (with a floor of recall, all rows are flagged).
    history_ : dict of lists
        iteration, seconds, passes, objective, lower_bound: the best so far after each iteration. On a cluster also bytes, what
        has moved over the network so far. With early stopping also validation, the measure on the validation rows.
    status_ : str
        "converged", "max_iter" (also the regular end of "spade" and "stamp"), "max_time", "interrupted", "stalled" or
        "early_stopping".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline import MeasureClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MeasureClassifier(measure="roc_auc", scaling="standard").fit(X, y)
    >>> clf.status_, round(clf.score(X, y), 2)
    ('converged', 1.0)
    """

    def __init__(
        self,
        measure: str | Measure = "roc_auc",
        measure_params: dict[str, Any] | None = None,
        solver: str = "auto",
        risk: str = "auto",
        solver_params: dict[str, Any] | None = None,
        alpha: float = 1e-4,
        penalty: str | Penalty = "l2",
        penalty_params: dict[str, Any] | None = None,
        bounds: Any = None,
        monotone: dict[Any, int] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        scaling: str | None = None,
        threshold: str = "auto",
        features: Any = "linear",
        class_weight: dict[Any, float] | str | None = None,
        tol: float = 1e-2,
        max_iter: int = 5000,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        probability: bool = False,
    ):
        self.measure = measure
        self.measure_params = measure_params
        self.solver = solver
        self.risk = risk
        self.solver_params = solver_params
        self.alpha = alpha
        self.penalty = penalty
        self.penalty_params = penalty_params
        self.bounds = bounds
        self.monotone = monotone
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.threshold = threshold
        self.features = features
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.probability = probability

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        base_scores: Any = None,
        cost_fp: Any = None,
        cost_fn: Any = None,
    ) -> "MeasureClassifier":
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix, frame, Dask array or dataframe, PyTorch tensor, CuPy array, LinearOperator or Operator (n, p)
            Examples in rows; see `scoreline.operators.as_operator`.
        y : array of n labels
            Two classes; the larger in sorted order is positive. With X in Dask it may be there too.
        sample_weight : array of n weights, optional
            Non-negative; an integer weight equals that many copies of the row.
        base_scores : array of n numbers, optional
            Scores of an existing model, to which those of this one are added: it learns what is missing. Predictions then
            need the base scores of their rows, too.
        cost_fp, cost_fn : float or array of n floats, optional
            Cost of flagging each row if it is negative, and of missing it if it is positive, with measure="savings". They
            weigh the rows in the loss, in the threshold and in the measure.

        Returns
        -------
        MeasureClassifier
            The fitted classifier.
        """
        parameters = Parameters.of(self)
        with fitting(self, X, sample_weight) as (operator, interim):
            operator = on_device(operator, parameters.device)
            passes_before = operator.n_passes
            rows = GivenRows.of(X, operator, y, sample_weight, base_scores)
            costs = (operator.aligned(each, "cost") if np.ndim(each) else each for each in (cost_fp, cost_fn))
            rows = rows._replace(costs=check_costs(parameters.measure, rows.sign, *costs))
            held = rows_of_promise(parameters, rows)
            given = rows if held is None else rows.without(held)
            given = given.mapped(self.scaling, self._names_of(X))
            penalty = parameters.penalty_for(given.operator, self._names_of(X))
            decided = plan(parameters.request(penalty, given.base_scores), parameters.measure, given.shape)
            decided = decided._replace(**getattr(self, "_plan_of_search", {}))
            logger.info("plan for %s", decided)
            earlier = self._earlier(given.operator.shape[1])
            job = Job.of(parameters, decided, given, penalty, interim, earlier)
            options = pair_options(self.features, given.operator)
            if options is not None:
                job = with_pairs(job, options)
            interim.keep = lambda: self._keep(job, X)
            model = _fit_path(job).fit()
            self._set(X, job, model, passes_before)
            if job.validation is not None:
                self._use_validation_rows(job)
            elif self.probability:
                self._calibrate(job, model, given.y)
            if held is not None:
                self._promise(job, rows, held, model.loo_scores)
            self.n_passes_ = job.rows.operator.n_passes - passes_before
        return self

    def decision_function(self, X: Any, base_scores: Any = None) -> Any:
        """Return the score of each row: X coef_ + intercept_, positive where `predict` says classes_[1].

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.

        Returns
        -------
        ndarray of shape (m,)
            The scores; one pass over X. Of X in Dask a Dask array, which is not computed yet; of X on a device an array there.
        """
        check_is_fitted(self, "coef_")
        if is_dask(X):
            validate_data(self, feature_source(X), reset=False, skip_check_array=True)
            dask = room_module("blocks", "dask_operator")
            check_same_use(self.uses_base_scores_, base_scores)
            lazy = dask.lazy_scores(X, self.coef_[0], float(self.intercept_[0]), self._column_map, self._features)
            return lazy if base_scores is None else lazy + base_scores
        z = self._scored(X, base_scores=base_scores)[0]
        if getattr(z, "scores", None) == "device":
            return z.array + float(self.intercept_[0])
        return np.asarray(z) + float(self.intercept_[0])

    def predict(self, X: Any, base_scores: Any = None) -> Any:
        """Return the class of each row: classes_[1] where decision_function > 0.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.

        Returns
        -------
        ndarray of shape (m,)
            The classes. For X in Dask, a lazy Dask array. For X on a device, an array there if
            the classes are numbers.
        """
        decision = self.decision_function(X, base_scores)
        if is_dask(decision):
            return room_module("blocks", "dask_operator").lazy_classes(decision, self.classes_)
        if library_of(decision) is not None:
            positive = room_module("device", "vector").DeviceVector(decision) > 0.0
            if self.classes_.dtype.kind in "biuf":
                return np.where(positive, self.classes_[1], self.classes_[0]).array
            decision = np.asarray(positive)
        return self.classes_.take(decision > 0)

    @available_if(has_probabilities)
    def predict_proba(self, X: Any, base_scores: Any = None) -> FloatArray:
        """Return the probabilities of both classes, with `probability=True`.

        P(classes_[1]) = 1 / (1 + exp(-(a z + b))), (a, b) = calibration_, a > 0, where z is X coef_ clipped to
        calibration_range_. Probabilities never contradict the ranking of the scores: scores outside of the range, and those
        that round to the same number, have equal ones. `predict` uses the threshold that was tuned for the measure, not 1/2.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.

        Returns
        -------
        ndarray of shape (m, 2)
            P(classes_[0]) and P(classes_[1]), on the host wherever X is.
        """
        z = self._scored(X, base_scores=base_scores)[0]
        return sigmoid_of(self).probability(np.asarray(z, dtype=np.float64))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any, base_scores: Any = None) -> FloatArray:
        """Return the logarithms of `predict_proba`, which stay distinct where probabilities round to 1.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.

        Returns
        -------
        ndarray of shape (m, 2)
            log P(classes_[0]) and log P(classes_[1]).
        """
        z = self._scored(X, base_scores=base_scores)[0]
        return sigmoid_of(self).log_probability(np.asarray(z, dtype=np.float64))

    def probability_of(self, decision: Any) -> FloatArray:
        """Return P(classes_[1]) of rows whose decision values are known, with `probability=True`.

        Parameters
        ----------
        decision : array of m numbers
            The output of `decision_function`.

        Returns
        -------
        ndarray of shape (m,)
            The probabilities.
        """
        has_probabilities(self)
        raw = np.asarray(decision, dtype=np.float64) - float(self.intercept_[0])
        return sigmoid_of(self).probability(raw.ravel())[:, 1].reshape(raw.shape)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        base_scores: Any = None,
        cost_fp: Any = None,
        cost_fn: Any = None,
    ) -> float:
        """Return the measure on (X, y).

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes.
        sample_weight : array of m weights, optional
            Rows count as often as their weight.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.
        cost_fp, cost_fn : float or array of m floats, optional
            Cost of flagging each row if it is negative, and of missing it if it is positive, with measure="savings". As in
            `fit`.

        Returns
        -------
        float
            The measure itself, larger is better.
        """
        z, y, sample_weight, *costs = self._scored(X, y, sample_weight, cost_fp, cost_fn, base_scores=base_scores)
        decision, measure = z + float(self.intercept_[0]), get_measure(self.measure, self.measure_params)
        truth = check_truth(y, self.classes_, len(decision))
        weight = check_sample_weight(sample_weight, len(decision))
        cost = check_costs(measure, truth, *costs)
        if cost is not None:
            weight = cost if weight is None else cost * weight
        return measure.value(truth, decision, weight)

    def objective(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        base_scores: Any = None,
        cost_fp: Any = None,
        cost_fn: Any = None,
    ) -> float:
        """Return J = alpha omega(w) + R of the trained coefficients on (X, y); on the training data it is objective_.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes, both of them.
        sample_weight : array of m weights, optional
            As in `fit`; class_weight is applied too.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.
        cost_fp, cost_fn : float or array of m floats, optional
            As in `fit`.

        Returns
        -------
        float
            J of `risk_`, without smoothing; one pass over X.
        """
        z, y, sample_weight, *costs = self._scored(X, y, sample_weight, cost_fp, cost_fn, base_scores=base_scores)
        z = z + self.trained_intercept_
        check_labels(y, len(z))  # both classes must be there
        measure = get_measure(self.measure, self.measure_params)
        rows = self._training_scores(z, y, sample_weight, measure, costs)
        weight = with_cost(rows.weight, rows.sign, self.cost_)
        risk = get_risk(self.risk_, measure)
        return float(self._penalty + risk.prepare(rows.sign, weight, space_of(z)).value(z))

    def tune_threshold(
        self,
        X: Any,
        y: Any,
        measure: str | Measure | None = None,
        measure_params: dict[str, Any] | None = None,
        sample_weight: Any = None,
        base_scores: Any = None,
        cost_fp: Any = None,
        cost_fn: Any = None,
    ) -> "MeasureClassifier":
        """Set the intercept again: the best threshold on these rows, for the classifier's measure or for another one.

        The coefficients stay. Rows that the fit has not seen give a threshold that is less optimistic; another operating point
        (`measure="recall_at_precision", measure_params={"precision": 0.95}`) costs one pass over X and no training.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            Examples in rows.
        y : array of m labels
            Their classes.
        measure : str or Measure, default=None
            The measure that the threshold is tuned for; None keeps the classifier's own measure. `score` continues to report
            that one.
        measure_params : dict, default=None
            Parameters of a measure given by name.
        sample_weight : array of m weights, optional
            As in `fit`; class_weight is applied too.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.
        cost_fp, cost_fn : float or array of m floats, optional
            As in `fit`, if the threshold is to serve "savings".

        Returns
        -------
        MeasureClassifier
            The classifier with the new `intercept_`.
        """
        z, y, sample_weight, *costs = self._scored(X, y, sample_weight, cost_fp, cost_fn, base_scores=base_scores)
        named = (self.measure, self.measure_params) if measure is None else (measure, measure_params)
        target = measure_of_threshold(get_measure(*named), self.class_weight)
        rows = self._training_scores(z + self.trained_intercept_, y, sample_weight, target, costs)
        if isinstance(target, OperatingPoint) and target.guarantee is not None:
            rows = rows._replace(weight=check_sample_weight(sample_weight, len(rows.sign)))  # class weights are no rows
            self.__dict__.update(promised(target, rows, self.trained_intercept_))
            return self
        self.__dict__.pop("promise_", None)
        self.intercept_ = np.array([self.trained_intercept_ - threshold_with_margin(target, rows)])
        missed = target_missed(target, rows)
        if missed is not None:
            warn_user(missed)
        return self

    def shape_functions(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        base_scores: Any = None,
        *,
        bands: bool = False,
    ) -> list[ShapeFunction]:
        """Return what each column, and each pair of columns, adds to the score; the most important first.

        Parameters
        ----------
        X, y : as in `score`, optional
            Rows that importance is measured on: how far the measure falls where the function is replaced by its mean, 0.
            Without rows it is the standard deviation of the function over the training rows.
        sample_weight : array of m weights, optional
            Rows count as often as their weight.
        base_scores : array of m numbers, optional
            Base scores of these rows, needed if the model was trained with base scores.
        bands : bool, default=False
            Also estimate the standard error of every value (`errors`), by a jackknife: the model is trained again 30 times,
            without one of 30 groups of rows each time. X and y must be the training rows. The bins, the pairs and alpha stay
            as they are, so the errors do not include the choice of these.

        Returns
        -------
        list of ShapeFunction
            columns, labels of the bins, scores, counts of the training rows, importance, errors.
        """
        check_is_fitted(self, "coef_")
        features = getattr(self, "feature_map_", None)
        if features is None:
            raise ValueError("shape_functions needs features='additive' or 'pairs'; a linear model has coef_")
        known = getattr(self, "feature_names_in_", [each.name for each in features.columns])
        names = [str(name) for name in getattr(self, "_column_names", None) or known]
        found = shape_functions(features, self.coef_[0], names)
        if X is not None:
            check_same_use(self.uses_base_scores_, base_scores)
            operator = self._operator_of(X)
            truth = check_truth(y, self.classes_, operator.shape[0])
            weight = check_sample_weight(sample_weight, operator.shape[0])
            measure, start = get_measure(self.measure, self.measure_params), 0
            base = check_base_scores(base_scores, operator.shape[0])
            decision = operator.matvec(self.coef_[0]) + float(self.intercept_[0]) + (0.0 if base is None else base)
            value = measure.value(truth, decision, weight)
            for k, group in enumerate(features.groups):
                part = np.zeros(features.n_features)
                own = slice(start, start + group.basis.shape[1])
                part[own], start = self.coef_[0][own], own.stop
                without = measure.value(truth, decision - operator.matvec(part), weight)
                found[k] = found[k]._replace(importance=float(value - without))
            if bands:
                rows = self._training_scores(decision, y, sample_weight, measure, (None, None))
                model = self.coef_[0], self.trained_intercept_, on_base_scores(get_risk(self.risk_, measure), base)
                weight = with_cost(rows.weight, rows.sign, self.cost_)
                parameters, solver = Parameters.of(self._as_trained()), get_solver(self.solver_)
                with parallel.thread_limit(self.n_jobs):
                    errors = shape_errors(parameters, operator, rows.sign, weight, (*model, solver))
                found = [
                    shape._replace(errors=own.reshape(shape.scores.shape))
                    for shape, own in zip(found, errors, strict=True)
                ]
        elif bands:
            raise ValueError("bands need the training rows: pass X and y")
        return sorted(found, key=lambda shape: -shape.importance)

    def scorecard(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        points: float = 600.0,
        pdo: float = 20.0,
        base: float = 50.0,
        max_bins: int = 15,
        min_share: float = 0.01,
        edges: Mapping[Any, Any] | None = None,
        max_features: int | None = None,
        cost_fp: Any = None,
        cost_fn: Any = None,
    ) -> Scorecard:
        """Return the model as a scorecard: integer points for a few bins of each column.

        Needs features="additive". The function of each column is cut into the few bins that lose least of it, at edges with
        few digits. A certified fit on these bins gives the points before rounding. Coordinate descent over whole numbers then
        minimises the quadratic model of the objective, penalty included. The card says what bins and rounding cost (`loss`).
        Columns of `monotone` stay monotone.

        Parameters
        ----------
        X, y : as in `fit`
            The training rows, or others like them.
        sample_weight : array of m weights, optional
            As in `fit`.
        points, base : float, default=600, 50
            A row with these points has odds of `base` to 1 for the negative class.
        pdo : float, default=20
            Points that double these odds. A negative number lets points rise with the positive class.
        max_bins : int, default=15
            Largest number of bins of a column, apart from those of missing and unseen values.
        min_share : float, default=0.01
            Least share of the rows in a bin.
        edges : dict, default=None
            Edges of the bins of a column of numbers, by name or number: {"age": [25, 30, 35]}. Others are found.
        max_features : int, default=None
            Largest number of columns. A path of certified fits, with a penalty on whole columns, chooses them (`path`).
        cost_fp, cost_fn : float or array of m floats, optional
            As in `fit`, for "savings". They weigh the fit on the bins, the rounding, the cutoff, and the measure of the card.
            The lines count rows, and the scale is that of the odds, without costs.

        Returns
        -------
        Scorecard
            The card: `predict` returns points, `to_html`, `to_markdown`, `to_latex`, `to_json` and `to_frame` write it.
        """
        check_is_fitted(self, "coef_")
        features = getattr(self, "feature_map_", None)
        if features is None or features.kind == "pairs":
            raise ValueError(
                f"scorecard needs features='additive', got features={self.features!r}: a card has one table per column. "
                "Train with features='additive'."
            )
        truth = np.asarray(check_truth(y, self.classes_, len(y)))
        weight = check_sample_weight(sample_weight, len(truth))
        costs = check_costs(get_measure(self.measure, self.measure_params), truth, cost_fp, cost_fn)
        known = getattr(self, "feature_names_in_", [column.name for column in features.columns])
        names = [str(name) for name in getattr(self, "_column_names", None) or known]
        refit = MeasureClassifier(
            self.measure, self.measure_params, risk=self.risk_, alpha=self.alpha, class_weight=self.class_weight,
            fit_intercept=self.fit_intercept, threshold="train", features="additive", tol=self.tol, max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        options = CardOptions(points, pdo, base, max_bins, min_share, edges, max_features)
        with parallel.thread_limit(self.n_jobs):
            return make_scorecard(self, refit, CardRows(X, truth, weight, costs), names, options)

    @available_if(can_stream)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, base_scores: Any = None
    ) -> "MeasureClassifier":
        """Learn from more rows, with a solver for streams: "moments", "spade" or "stamp". `fit` starts again.

        "moments": the moments of all rows so far give the same model as one `fit`, in any order of the blocks; memory is two
        p x p matrices. The threshold and the predicted measure come from the model of normal scores. A call costs one pass
        over its rows and a solve of order p^3.

        "spade" and "stamp": each row causes one step, in random order within the block, fixed by random_state. Shares of the
        classes and units of the features are those of the rows so far; steps do not decrease to 0. The threshold is tuned on
        the scores of the later half of the stream, each from the model after its block. Sketches store these scores in at most
        10 MB. They shift the rank of the threshold by at most a share of `threshold_rank_error_` of a class, below 0.5 % up to
        a billion rows. A call costs three passes over its rows and a few milliseconds for the threshold, so blocks of thousands
        of rows are best.

        Parameters
        ----------
        X : as in `fit`, of shape (m, p)
            More examples; for "moments" at most 4096 features.
        y : array of m labels
            Their classes; a block may have one class only, if `classes` was given.
        classes : array of the two classes, optional
            Needed with the first block unless it has both.
        sample_weight : array of m weights, optional
            Taken as numbers of rows.
        base_scores : array of m numbers, optional
            As in `fit`, with every block or with none; for "spade" and "stamp".

        Returns
        -------
        MeasureClassifier
            The classifier; without `coef_` until both classes have been seen.
        """
        no_guarantee(get_measure(self.measure, self.measure_params), "partial_fit")
        with unchanged_on_error(self):  # a block that fails, or Ctrl-C: as if it had not come
            process_rows(self, X, y, classes, sample_weight, base_scores)
        return self

    @available_if(can_merge)
    def merge(self, other: "MeasureClassifier") -> "MeasureClassifier":
        """Add the rows that another classifier has seen by `partial_fit`: the model of all rows, as if seen by one.

        Parameters
        ----------
        other : MeasureClassifier
            With solver="moments", the same classes and features. It is not changed.

        Returns
        -------
        MeasureClassifier
            This classifier.
        """
        merge(self, other)
        return self

    def save(self, path: Any, encoding: Encoding | None = None) -> None:
        """Write the classifier to a file that `load_model` reads: an .npz with a JSON header, without pickle.

        All parameters and fitted attributes are kept, and what `partial_fit` needs to go on. What is code is not: callbacks,
        and the function of a CountMeasure (its name is). The file replaces an older one only when it is complete.

        Parameters
        ----------
        path : path
            The file, "model.npz", say.
        encoding : Encoding, optional
            How columns of a table became features (`read_data(...).encoding`), to be kept with the model as `encoding_`; by
            default the one it has from an earlier file.
        """
        save_model(self, path, encoding)

    def _earlier(self, p: int) -> tuple[FloatArray, float] | None:
        """Return coefficients and intercept of an earlier fit with as many features."""
        if not hasattr(self, "coef_") or self.coef_.shape[1] != p:
            return None
        return self.coef_[0], self.trained_intercept_

    def _set(self, X: Any, job: Job, model: Model, passes_before: float) -> None:
        """Set the fitted attributes; raise Ctrl-C again if it has ended the fit, or warn of what there is to warn of."""
        operator = job.rows.operator
        own = {"classes_": job.rows.classes, "plan_": str(job.plan), "n_passes_": operator.n_passes - passes_before}
        set_model(self, X, operator, own | model.attributes(), job.rows.base_scores is not None)
        if model.interruption is not None:
            signal, model.interruption, model.finish = model.interruption, None, None
            raise signal  # which the model in the frame of `fit` no longer knows: that circle would keep X alive
        if model.finish is not None:
            model.finish()

    def _keep(self, job: Job, X: Any) -> None:
        """Set the best model of a fit that Ctrl-C has ended before it had one of its own."""
        measure = None if self.threshold == "none" else job.plan.threshold_measure
        operator, rows = job.rows.operator, job.rows
        model = job.interim.model(operator, rows.sign, rows.weight, measure, rows.base_scores)
        if model is not None:
            own = {"classes_": rows.classes, "plan_": str(job.plan), "n_passes_": operator.n_passes}
            set_model(self, X, operator, own | model, rows.base_scores is not None)

    def _use_validation_rows(self, job: Job) -> None:
        """Take threshold and probabilities from validation rows: leave-one-out scores would need an optimum."""
        validation, measure = job.validation, job.plan.threshold_measure
        assert validation is not None
        scores, sign = validation.scores(self.coef_[0], self.trained_intercept_), validation.sign
        if self.threshold == "auto" and isinstance(measure, CountsBasedMeasure):
            _, weight = check_weights(validation.weight, self.class_weight, self.classes_, sign)
            self.intercept_ = np.array(
                [self.trained_intercept_ - robust_threshold(sign, scores, measure, weight).threshold]
            )
        if self.probability:
            self.__dict__.update(calibration(ScoredRows(sign, scores, validation.weight), self.trained_intercept_))
        if validation.held is not None:
            job.rows.operator._count(validation.rows_read / job.rows.operator.shape[0])

    def _promise(self, job: Job, given: GivenRows, held: AnyArray, loo_scores: Any) -> None:
        """Take the threshold from the rows that were held out for it, and set `promise_`.

        Scores of training rows are too good to say which thresholds will pass, so leave-one-out scores do where there are any.
        """
        measure = job.parameters.measure
        assert isinstance(measure, OperatingPoint)
        scores = np.asarray(job.rows.full_scores(job.rows.operator.matvec(self.coef_[0]))) + self.trained_intercept_
        weight = check_sample_weight(given.sample_weight, len(held))
        tested, design = (
            ScoredRows(given.sign[part], own[part], None if weight is None else weight[part])
            for part, own in ((held, scores), (~held, scores if loo_scores is None else loo_scores))
        )
        self.__dict__.update(promised(measure, tested, self.trained_intercept_, design))

    def _calibrate(self, job: Job, model: Model, y: Any) -> None:
        """Learn the sigmoid from leave-one-out scores, or from five more fits."""
        rows, center = ScoredRows(job.rows.sign, model.loo_scores, job.rows.copies), 0.0
        if model.loo_scores is None:
            risk = get_risk(self.risk_, job.plan.measure)
            rows, center = cross_fitted_scores(self, job.rows, y, risk)
        self.__dict__.update(calibration(rows, self.trained_intercept_ - center))

    def _names_of(self, X: Any) -> Any:
        """Return the names of the columns for messages, if they are known; the command line knows them from the table."""
        known = getattr(X, "column_names", getattr(X, "columns", None))  # of pyarrow, of pandas and polars
        return getattr(self, "_column_names", known)

    @property
    def _column_map(self) -> ColumnMap | None:
        return getattr(self, "column_map_", None)

    @property
    def _features(self) -> FittedFeatures | None:
        return getattr(self, "feature_map_", None)

    def _as_trained(self) -> "MeasureClassifier":
        """Return a classifier whose parameters are those that the model was trained with."""
        return self

    def _scored(self, X: Any, *rows: Any, base_scores: Any = None) -> tuple[Any, ...]:
        """Return X coef_ with base scores added, and labels and weights where the rows are."""
        check_is_fitted(self, "coef_")
        check_string_features(self, X)
        check_same_use(self.uses_base_scores_, base_scores)
        with parallel.thread_limit(self.n_jobs), memory_advice():
            if is_dask(X):  # blocks are scored one by one and let go: X need not fit the memory of the workers
                validate_data(self, feature_source(X), reset=False, skip_check_array=True)
                dask = room_module("blocks", "dask_operator")
                lazy = dask.lazy_scores(X, self.coef_[0], 0.0, self._column_map, self._features)
                operator: Any = dask.from_dask(lazy[:, None])
                z = operator.matvec(np.ones(1))
            else:
                operator = self._operator_of(X)
                z = checked_scores(X, operator, self.coef_[0])
            base = check_base_scores(operator.aligned(base_scores, "base_scores"), operator.shape[0])
            aligned = (operator.aligned(each) if np.ndim(each) else each for each in rows)
            return z if base is None else z + base, *aligned

    def _operator_of(self, X: Any) -> Operator:
        """Return rows to be scored as an operator, with the columns mapped or coded as those of the training rows."""
        if self._features is None:
            operator = as_operator(X, check_finite=False)
            validate_data(self, X, reset=False, skip_check_array=True)
            return mapped_like(operator, self._column_map)
        if not (isinstance(X, Operator) and X.feature_map is not None):
            validate_data(self, feature_source(X), reset=False, skip_check_array=True)
        return self._features.applied(X)

    def _training_scores(self, z: Any, y: Any, sample_weight: Any, measure: Measure, costs: Any) -> ScoredRows:
        """Return scores with labels +1 and -1 where the scores are, and weights with those of the classes and with costs."""
        sign: Any = np.where(check_truth(y, self.classes_, len(z)), 1, -1)
        sign = z.like(sign) if isinstance(z, RemoteVector) else sign  # labels that were text have stayed here
        cost = check_costs(measure, sign, *costs)
        _, weight = check_weights(sample_weight, self.class_weight, self.classes_, sign, cost)
        return ScoredRows(sign, z, weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _fit_path(job: Job) -> CertifiedFit | MomentsFit | RowFit:
    """Return what trains by the solver of the plan."""
    if isinstance(job.solver, MomentsSolver):
        return MomentsFit(job)
    return RowFit(job) if isinstance(job.solver, RowMethod) else CertifiedFit(job)


def load_model(path: Any, measure: Measure | None = None) -> MeasureClassifier:
    """Read a classifier that `save` has written; it predicts, scores and goes on with `partial_fit` as before.

    Parameters
    ----------
    path : path
        The file.
    measure : Measure, optional
        The measure, where it was a function of yours (CountMeasure), which the file does not hold. Without it the classifier
        predicts, and `score` asks for it.

    Returns
    -------
    MeasureClassifier
        The classifier.

    Raises
    ------
    ValueError
        If the file is damaged, not a model, or written by a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline import MeasureClassifier, load_model
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.npz")
    >>> MeasureClassifier("f1", scaling="standard").fit(X, y).save(path)
    >>> clf = load_model(path)
    >>> clf.measure, clf.predict(X[:3]).tolist()
    ('f1', [0, 0, 0])
    """
    clf: MeasureClassifier = restored_model(MeasureClassifier, path, measure)
    return clf
