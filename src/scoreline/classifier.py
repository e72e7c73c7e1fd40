"""MeasureClassifier: train a linear classifier for the measure you report."""

import logging
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from scoreline import kernels
from scoreline.fitting.catalog import Alternative, alternative, choose, counted_rows
from scoreline.fitting.early_stopping import ValidationRows, given_rows, held_rows, same_columns
from scoreline.fitting.interim import Interim, fitting
from scoreline.fitting.memory import check_memory
from scoreline.fitting.moments_training import MomentsTraining
from scoreline.fitting.persist import restored_model, save_model
from scoreline.fitting.probabilities import Probabilities, check_enough_rows, cross_fitted_scores
from scoreline.fitting.row_training import RowTraining
from scoreline.fitting.scoring import Scoring
from scoreline.fitting.streaming import Streaming
from scoreline.fitting.training import Problem, Trained, is_better, is_doubtful, train
from scoreline.fitting.validation import (
    as_counts,
    check_labels,
    check_sample_weight,
    check_weights,
    column_names,
    seen,
)
from scoreline.fitting.whole import all_at_once
from scoreline.fitting.wrapped import unwrapped, wrapped_again
from scoreline.io.encoding import Encoding
from scoreline.measures import AtKMeasure, CountsBasedMeasure, Measure, RankingMeasure, get_measure, steady_cut
from scoreline.operators import InterceptOperator, Operator
from scoreline.operators.column_maps import KINDS, heavy_tailed, with_mapped_columns
from scoreline.operators.wrappers import linear_scaling, scaled
from scoreline.risks.base import Risk
from scoreline.runtime.checks import check_choice, check_flag, check_number
from scoreline.runtime.registry import unknown_name
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.runtime.vectors import room_module
from scoreline.scores import space_for
from scoreline.solvers import MomentsSolver
from scoreline.solvers.common.row_method import RowMethod
from scoreline.solvers.common.run_warnings import warn_if_not_converged

logger = logging.getLogger("scoreline")


class MeasureClassifier(
    Scoring, Probabilities, Streaming, MomentsTraining, RowTraining, ClassifierMixin, BaseEstimator
):
    """Linear classifier trained for a measure, with a proof of how close to optimal the training is.

    Minimises J(w) = alpha/2 |w|^2 + R(Xw), where R is a convex bound of the measure's error, until the proved gap
    objective_ - lower_bound_ is at most tol times the larger of lower_bound_ and J(0)/1000; then sets the intercept so
    that `predict` serves the measure. The proof is about J on the training rows: it says that no linear classifier has a
    smaller J, not that none has a better measure on new rows.

    Parameters
    ----------
    measure : str or Measure, default="roc_auc"
        What you report; `list_measures()` has the names.
    measure_params : dict, default=None
        Parameters of a measure given by name.
    solver : str, default="auto"
        How J is minimised; `list_solvers()` has the names.
    risk : str, default="auto"
        The convex bound R; "auto" takes the one that served the measure best in tests (docs/choose.md). The one used is
        `risk_`.
    solver_params : dict, default=None
        Options of the solver: "abs_tol" (stop at an absolute gap), "callbacks" (functions of a Progress), "checkpoint" (a file
        that a fit which was killed goes on from; see `scoreline.solvers.Checkpoint`), "memory"
        (L-BFGS pairs), "mu" or "c_mu" (smoothed: fix the smoothing), "precondition" (smoothed: False for plain L-BFGS),
        "init" ("moments": begin where the class moments point), "ridge", "method" and "diagnostics" (moments),
        "max_planes" and "zero_plane" (bundle, bundle_ocas), "passes", "step", "weights" and "first_epoch" (spade, stamp),
        "level", "level_tol" and "rounds" (amp), "cost" (cost_search: a fixed weight of positives).
        "early_stopping" (not for moments): end by the measure on validation rows, see
        `scoreline.solvers.EarlyStopping`. "device" ("cuda", "cuda:1", "cupy"; not for spade, stamp and hybrid): move X
        there first, block by block.
    alpha : float, default=1e-4
        Strength of the penalty. scikit-learn's C is 1 / (n alpha) for LogisticRegression.
    fit_intercept : bool, default=True
        Train an intercept where the risk needs one, as the coefficient of a constant feature.
    intercept_scaling : float, default=1.0
        Value of that feature; larger values penalise the intercept less.
    scaling : {None, "maxabs", "standard", "robust", "quantile"}, default=None
        How features are scaled. alpha penalises the coefficients of scaled features. "maxabs" (x / max|x|) and "standard"
        ((x - mean) / standard deviation) are applied during the products, without copying X, and coef_ is in original units.
        The other two are for heavy tails. "robust" clips each column to limits around its median, six times the median
        distance on either side; coef_ is per unit of the clipped values. "quantile" replaces values by the normal scores of
        their ranks, interpolated between 21 knots; coef_ is per unit of these scores. The mapped columns are standardised if
        X is dense and divided by max|x| if it is sparse. Both make a float64 copy of X in memory, map rows on disk when they
        are read, and keep zeros of sparse X.
    cut : {"auto", "train", "holdout", "none"}, default="auto"
        How `intercept_` is set. "train": the best cut for the measure on the training scores. "holdout": on a stratified
        fifth of the rows that a first fit did not see (one more fit). "none": not at all, the trained intercept stays.
        "auto": for measures of counts trained with the logistic or squared hinge loss, a steady cut on leave-one-out
        scores (no further fit), or with early stopping on its validation rows, which serves new rows better, above all with
        few positives; for other risks "holdout" where there are fewer than ten rows a feature (and fifty of each class), else
        "train"; "train" for rankings. `recut` sets it anew on other rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the two classes, multiplied with sample_weight. They cancel out of the ROC area and then move only the
        cut, which becomes the one with the best class-weighted accuracy.
    tol : float, default=1e-2
        Stop when gap_ <= tol * max(lower_bound_, J(0) / 1000): 1e-2 is proved within 1 % of the optimum, or within
        J(0) / 100000 where the optimum is below J(0) / 1000.
    max_iter : int, default=5000
        Iterations at most.
    max_time : float, default=None
        Seconds at most, looked at after every iteration. Fits of folds (`probability`) have as many each.
    warm_start : bool, default=False
        Start from the coefficients of the last fit; no effect for "spade" and "stamp".
    random_state : int, RandomState or None, default=None
        Seed of the order of rows (spade, stamp), of held-out rows, and of probes of leave-one-out beyond 1000 features.
    n_jobs : int, default=None
        Threads; None means all that this process may use: cores, limits of containers, of joblib, `OMP_NUM_THREADS` and
        `NUMBA_NUM_THREADS` respected, one in a worker of `multiprocessing.Pool` or Dask. Results have the same bits for any
        number. BLAS has one thread during a fit, because its bits depend on how many it has.
    verbose : int, default=0
        1 reports what was done, 2 every iteration, through the logger "scoreline".
    probability : bool, default=False
        Learn a sigmoid from scores of left-out rows, for `predict_proba`. Logistic and squared hinge losses that are near their
        optimum have leave-one-out scores at the cost of a few passes, early stopping has validation rows; other risks and
        solvers take five more fits.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients in the units of X.
    intercept_ : ndarray of shape (1,)
        Intercept after the cut: `predict` is decision_function > 0.
    trained_intercept_ : float
        Intercept that objective_ and gap_ belong to, before the cut.
    calibration_ : ndarray of shape (2,)
        With probability=True: slope a > 0 and offset b of P(classes_[1]) = 1 / (1 + exp(-(a z + b))), where z is X coef_
        clipped to calibration_range_.
    calibration_range_ : ndarray of shape (2,)
        With probability=True: where z is clipped; infinite unless outlying scores would flatten the sigmoid.
    calibration_gain_ : float
        With probability=True: by how much the log loss of held-out rows is below that of the share of positives.
    classes_ : ndarray of shape (2,)
        The two classes; classes_[1] is positive.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a frame.
    solver_, risk_ : str
        What was used.
    rejected_ : str or None
        With risk="auto" and solver="auto": the method that was trained first and not kept, and why; None if there is none.
    cost_ : float
        Weight of a positive relative to a negative that `solver="cost_search"` or "amp" chose; 1 if it kept the plain fit,
        and for other solvers.
    levels_, level_bound_ : list of float, float or None
        With solver="amp": the level of each fit, and what no level exceeds (None for level="measure").
    n_iter_ : int
        Iterations of the fit that was kept, as `history_`; `n_passes_` counts all fits of a search.
    n_passes_ : float
        Products with X (and its column statistics, if scaled); looking for NaN first is one more read.
    objective_, lower_bound_, gap_ : float
        J at the solution, what was proved of its minimum, and their difference; None for "moments", "spade" and "stamp".
    moments_report_ : dict
        With solver="moments": predicted and empirical measure, and the shape of the scores of both classes.
    cut_rank_error_ : float
        After `partial_fit` row by row: the share of a class by which the rank of the cut may be off, at most.
    column_map_ : ColumnMap or None
        With scaling="robust" or "quantile": the knots of the function of each column. coef_ applies to the mapped values.
    history_ : dict of lists
        iteration, seconds, passes, objective, lower_bound: best so far after each iteration. On a cluster also bytes: what has
        been moved over the network so far, and with early stopping validation: the measure on the validation rows.
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
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        scaling: str | None = None,
        cut: str = "auto",
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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.cut = cut
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.probability = probability

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MeasureClassifier":
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix, frame, Dask array or dataframe, PyTorch tensor, CuPy array, LinearOperator or Operator (n, p)
            Examples in rows; see `scoreline.operators.as_operator`.
        y : array of n labels
            Two classes; the larger in sorted order is positive. With X in Dask it may be there too.
        sample_weight : array of n weights, optional
            Non-negative; an integer weight equals that many copies of the row.

        Returns
        -------
        MeasureClassifier
            The fitted classifier.
        """
        measure = self._check_parameters()
        interim, begun = Interim(), None

        def keep() -> None:
            if begun is not None:
                self._keep_interim(interim, *begun)

        with fitting(self, X, interim, keep) as operator:
            operator = self._where_asked(operator)
            passes_before = operator.n_passes
            y, sample_weight = operator.aligned(y, "y"), operator.aligned(sample_weight, "sample_weight")
            classes, sign = check_labels(y, operator.shape[0])
            sign = operator.aligned(sign, "y")  # labels that were text
            counts = as_counts(check_sample_weight(sample_weight, operator.shape[0]))
            operator = self._mapped(X, operator, counts)
            shape = counted_rows(operator.shape[0], counts), operator.shape[1]
            risk, solver_class = choose(measure, self.risk, self.solver, shape)
            solver = self._make_solver(solver_class)
            check_memory(solver, operator)
            other = alternative(measure, self.risk, self.solver, self._options(), (risk, solver_class), shape[1])
            seed = self._seed(solver, other)
            validation, held = self._validation_rows(X, solver, operator, classes, sign, sample_weight, measure, seed)
            if held is not None:  # before anything is made of the weights
                sample_weight = np.where(held, 0.0, 1.0 if sample_weight is None else sample_weight)
            weight, training_weight = check_weights(sample_weight, self.class_weight, classes, sign)
            if self.probability and validation is None:
                check_enough_rows(sign, weight)
            rows = X, operator, classes, sign, weight, measure, solver, training_weight
            begun = rows
            unseen: Any = None
            there: Any = slice(None)
            if isinstance(solver, MomentsSolver):
                self._fit_moments(*rows)
            elif isinstance(solver, RowMethod):
                if operator.scores == "device":
                    raise TypeError(room_module("device", "operator").ON_DEVICE.format(solver=solver.name))
                self._fit_rows(*rows, validation, interim)
            else:
                unseen, risk = self._fit_certified(*rows, risk, other, seed, validation, interim)
            if validation is not None:
                self._serve(validation)
            elif self.probability:
                center = 0.0
                if unseen is None:
                    unseen, there, center = cross_fitted_scores(self, operator, y, sign, weight, risk)
                counts = None if weight is None else np.asarray(weight)[there]
                self._calibrate(np.asarray(sign)[there], np.asarray(unseen)[there], counts, center)
            if held is not None and validation is not None:
                operator._count(validation.rows_read / operator.shape[0])
            self.n_passes_ = operator.n_passes - passes_before
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

    def _fit_certified(
        self, X: Any, operator: Operator, classes: AnyArray, sign: AnyArray, weight: FloatArray | None, measure: Measure,
        solver: Any, training_weight: FloatArray | None, risk: Risk, other: Alternative | None, seed: Any,
        validation: ValidationRows | None, interim: Interim,
    ) -> tuple[Any, Risk]:  # fmt: skip
        """Minimise J, prove it and cut; return scores of left-out rows (None if they would cost a fit), and the risk."""
        if risk.shift == "linear" and linear_scaling(operator, self.scaling) != "standard":
            warnings.warn(
                f"risk {risk.name!r} for measure {measure.name!r} falls as all scores rise or fall together, which "
                "features of a mean other than 0 allow without ranking: use scaling='standard', or risk='logistic'",
                UserWarning,
                stacklevel=3,
            )
        before, begin = operator.n_passes, time.perf_counter()
        base, cut, seconds = scaled(operator, self.scaling, weight), self._own_cut(validation), self.max_time

        def run(risk: Risk, solver: Any, seed: Any, has_fallback: bool) -> tuple[Problem, Trained]:
            wrapped = base
            if self.fit_intercept and risk.shift == "needed":
                wrapped = InterceptOperator(base, self.intercept_scaling)
            if validation is not None:
                solver.watch = validation.watch(solver.early_stopping, lambda w: unwrapped(w, wrapped, operator))
            solver.latest = interim
            interim.begin(lambda w: unwrapped(w, wrapped, operator), solver_=solver.name, risk_=risk.name)
            if seconds is not None:
                solver.max_time = max(1e-9, seconds - (time.perf_counter() - begin))
            problem = Problem(
                wrapped, space_for(operator.scores), sign, training_weight, weight, risk, self.alpha, measure,
                self._cut_measure(measure),
            )  # fmt: skip
            first, left_out = self._first_w(wrapped, operator), self.probability and validation is None
            return problem, train(problem, solver, cut, seed, first, left_out, has_fallback)

        problem, trained = run(risk, solver, seed, other is not None)
        rejected = None
        ended = trained.interruption is not None or trained.result.status in ("interrupted", "max_time")
        if other is not None and not ended and (trained.degenerate or (other.rival and is_doubtful(problem, trained))):
            if solver.journal is not None:
                seed = solver.journal.seeded(solver, seed)
                solver.journal.remove()  # also where it ended by max_iter: the alternative has a record of its own
            second_solver = self._make_solver(other.solver)
            check_memory(second_solver, operator)
            second_solver.early_stopping = solver.early_stopping
            second_problem, second = run(other.risk, second_solver, seed, not trained.degenerate)
            if trained.degenerate:
                rejected = f"{solver.name} with risk {risk.name} gave all rows the same score (a degenerate fit)"
            elif second.interruption is not None or second.result.status == "interrupted":
                trained = trained.interrupted(second.interruption)
            elif seconds is None or time.perf_counter() - begin < seconds:
                solver.max_time = None if seconds is None else seconds - (time.perf_counter() - begin)
                try:
                    if self._is_better(problem, solver, trained, second, validation):
                        rejected = f"{solver.name} with risk {risk.name} had a lower {measure.name} on held-out rows"
                except KeyboardInterrupt as signal:
                    trained = trained.interrupted(signal)
            if rejected is not None:
                risk, solver, problem, trained = other.risk, second_solver, second_problem, second
                logger.info("%s: %s with risk %s is kept", rejected, solver.name, risk.name)
            elif second_solver.journal is not None and trained.interruption is None:
                second_solver.journal.remove()
        result = trained.result

        coef, intercept = unwrapped(result.w, problem.operator, operator)
        if trained.interruption is not None and not np.any(coef) and interim.ready:
            raise trained.interruption  # a run before, on a sample of the rows perhaps, has a model that tells rows apart
        with all_at_once(self) as new:
            validate_data(new, seen(X), skip_check_array=True)
            new.classes_, new.column_map_ = classes, operator.column_map
            new.n_features_in_ = operator.shape[1]
            new.solver_, new.risk_, new.cost_, new.rejected_ = solver.name, risk.name, trained.cost, rejected
            new.coef_ = np.array(coef).reshape(1, -1)
            new.trained_intercept_ = float(intercept) + trained.intercept
            new.intercept_ = np.array([float(intercept) - trained.threshold])
            new._penalty = 0.5 * self.alpha * kernels.vectors.dot(result.w, result.w)
            new.n_iter_, new.n_passes_ = result.n_iter, operator.n_passes - before
            new.objective_, new.lower_bound_, new.gap_ = result.objective, result.lower_bound, result.gap
            new.history_, new.status_ = result.history, result.status
            new._end_stream()  # a fit ends what partial_fit began
            new.__dict__.update(trained.levels)
        if trained.interruption is not None:
            raise trained.interruption
        warn_if_not_converged(result, solver)
        if trained.missed is not None:
            warnings.warn(trained.missed, UserWarning, stacklevel=3)
        return (None if trained.unseen is None else trained.unseen + trained.intercept), risk

    def _keep_interim(
        self, interim: Interim, X: Any, operator: Operator, classes: AnyArray, sign: AnyArray, weight: Any, measure: Measure,
        solver: Any, training_weight: Any,
    ) -> None:  # fmt: skip
        """Set the best model of a fit that Ctrl-C has ended before it had one of its own."""
        served = None if self.cut == "none" else self._cut_measure(measure)
        model = interim.model(operator, sign, training_weight, served)
        if model is None:
            return
        with all_at_once(self) as new:
            validate_data(new, seen(X), skip_check_array=True)
            new._end_stream()
            new.__dict__.update(model, classes_=classes, n_passes_=operator.n_passes)

    def _is_better(
        self, problem: Problem, solver: Any, first: Trained, second: Trained, validation: ValidationRows | None
    ) -> bool:
        """Tell whether the second of two models serves the measure better, on rows that neither was trained on."""
        if validation is None:
            return is_better(problem, solver, first, second, self.random_state)
        one, other = (max(each.result.history["validation"], default=-np.inf) for each in (first, second))
        return bool(other > one)

    def _own_cut(self, validation: ValidationRows | None) -> str:
        """Return how a fit sets its cut: the one of validation rows comes later, and needs no rows held out before."""
        return "train" if validation is not None and self.cut == "auto" else self.cut

    def _serve(self, validation: ValidationRows) -> None:
        """Take cut and probabilities from validation rows, which the model has not seen: leave-one-out needs an optimum."""
        scores, sign, measure = (
            validation.scores(self.coef_[0], self.trained_intercept_),
            validation.sign,
            validation.measure,
        )
        served = self._cut_measure(measure)
        if self.cut == "auto" and isinstance(served, CountsBasedMeasure):
            _, weight = check_weights(validation.weight, self.class_weight, self.classes_, sign)
            self.intercept_ = np.array([self.trained_intercept_ - steady_cut(sign, scores, served, weight).threshold])
        if self.probability:
            self._calibrate(sign, scores, validation.weight)

    def _seed(self, solver: Any, other: Alternative | None) -> Any:
        """Return random_state, or the seed of a checkpoint that the alternative has left.

        The first method is then trained anew, without a record.
        """
        journal = getattr(solver, "journal", None)
        left = None if journal is None or other is None else journal.left_by(other.solver.name)
        if left is None:
            return self.random_state
        solver.journal = None
        return self.random_state if left.get("seed") is None else left["seed"]

    def _validation_rows(
        self, X: Any, solver: Any, operator: Operator, classes: AnyArray, sign: AnyArray, sample_weight: Any, measure: Measure,
        seed: Any,
    ) -> tuple[ValidationRows | None, AnyArray | None]:  # fmt: skip
        """Return the rows of early stopping, and a mask of those that must not be trained on."""
        settings = getattr(solver, "early_stopping", None)
        if settings is None:
            return None, None
        if settings.share is None:
            rows = given_rows(settings, classes, operator, measure, self._options().get("device"))
            same_columns(X, settings.validation[0])
            if solver.journal is not None:
                solver.early_stopping = settings.known_by(rows.fingerprint())
            return rows, None
        weight = check_sample_weight(sample_weight, operator.shape[0])
        if solver.journal is not None:
            seed = solver.journal.seeded(solver, seed)
        return held_rows(settings, operator, sign, weight, measure, seed)

    def _check_parameters(self) -> Measure:
        check_number("alpha", self.alpha, above=0)
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, least=1, integer=True)
        if self.max_time is not None:
            check_number("max_time", self.max_time, above=0)
        check_number("intercept_scaling", self.intercept_scaling, above=0)
        if not 1e-50 <= self.intercept_scaling <= 1e50:
            raise ValueError(f"intercept_scaling={self.intercept_scaling!r} must lie between 1e-50 and 1e50")
        for name in ("fit_intercept", "warm_start", "probability"):
            check_flag(name, getattr(self, name))
        check_number("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, least=0)
        check_choice("scaling", self.scaling, (None, "maxabs", "standard", *KINDS))
        check_choice("cut", self.cut, ("auto", "train", "holdout", "none"))
        if self.n_jobs is not None and (not isinstance(self.n_jobs, (int, np.integer)) or self.n_jobs == 0):
            raise ValueError(f"n_jobs={self.n_jobs!r} must be None, a positive number of threads, or -1 for all")
        return get_measure(self.measure, self.measure_params)

    def _mapped(self, X: Any, operator: Operator, weight: Any) -> Operator:
        """Return the operator with the columns that the scaling maps; warn of heavy tails, once, if it maps none."""
        if self.scaling not in KINDS and not operator.tails_checked:
            operator.tails_checked = True
            heavy = heavy_tailed(operator, weight)
            if len(heavy):
                warnings.warn(
                    f"{column_names(self._names_of(X), heavy)} heavy tails: a few extreme values make up most of the variance, "
                    "so the scaled values of all other rows are nearly equal. Use scaling='robust', which clips such "
                    "values, or scaling='quantile', which replaces values by normal scores.",
                    UserWarning,
                    stacklevel=3,
                )
        return with_mapped_columns(operator, self.scaling, weight)

    def _names_of(self, X: Any) -> Any:
        """Return the names of the columns for messages, if they are known; the command line knows them from the table."""
        known = getattr(X, "column_names", getattr(X, "columns", None))  # of pyarrow, of pandas and polars
        return getattr(self, "_column_names", known)

    def _where_asked(self, operator: Operator) -> Operator:
        """Return the operator on the device that solver_params asks for, if it does."""
        device = self._options().get("device")
        return operator if device is None else room_module("device", "convert").moved(operator, device)

    def _options(self) -> dict[str, Any]:
        if self.solver_params is not None and not isinstance(self.solver_params, dict):
            raise ValueError(f"solver_params={self.solver_params!r} must be a dict of options of the solver, or None")
        return dict(self.solver_params or {})

    def _make_solver(self, solver_class: Any) -> Any:
        params = self._options()
        params.pop("device", None)  # is about X, not about the solver
        own = {"tol", "max_iter", "max_time"} & set(params)
        if own:
            raise ValueError(
                f"solver_params={params!r} sets {sorted(own)}, which are parameters of MeasureClassifier itself"
            )
        known = solver_class.options()
        for name in params:
            if name not in known:
                hint = unknown_name("key", name, known)
                raise ValueError(f"solver_params={params!r} does not fit solver {solver_class.name!r}: {hint}")
        try:
            return solver_class(tol=self.tol, max_iter=self.max_iter, max_time=self.max_time, **params)
        except TypeError as error:
            raise ValueError(f"solver_params={params!r} does not fit solver {solver_class.name!r}: {error}") from None

    def _first_w(self, wrapped: Operator, operator: Operator) -> FloatArray | None:
        """Return the coefficients of the last fit as coefficients of the wrapped features, if there are any to reuse."""
        if not (self.warm_start and hasattr(self, "coef_") and self.coef_.shape[1] == operator.shape[1]):
            return None
        return wrapped_again(self.coef_[0], self.trained_intercept_, wrapped, operator)

    def _cut_measure(self, measure: Measure) -> Measure:
        """Return what the cut serves: the measure, or class-weighted accuracy for rankings with class weights."""
        if (
            self.class_weight is not None
            and isinstance(measure, RankingMeasure)
            and not isinstance(measure, AtKMeasure)
        ):
            return get_measure("accuracy")
        return measure

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


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
