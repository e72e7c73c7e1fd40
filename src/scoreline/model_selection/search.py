"""MeasureClassifierCV: the strength of the penalty chosen by cross-validation, at about the cost of a few fits."""

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from scoreline.classifier import MeasureClassifier
from scoreline.features.additive import linear_part
from scoreline.features.fitted import with_features
from scoreline.features.registry import AUTO, feature_kinds, feature_options
from scoreline.fitting.certified import with_cost
from scoreline.fitting.checks import (
    available_if,
    check_base_scores,
    check_costs,
    check_labels,
    check_weights,
    feature_source,
)
from scoreline.fitting.interim import Interim, fitting
from scoreline.fitting.job import on_device
from scoreline.fitting.model import CALIBRATION, all_at_once, set_model
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.penalty import trained_penalty
from scoreline.fitting.plan import Choice, Request, Shape, ThresholdRule, contenders
from scoreline.fitting.probabilities import calibration, center_of, cross_fitted_scores
from scoreline.fitting.promise import no_guarantee
from scoreline.fitting.rows import TrainingRows, mapped_columns
from scoreline.fitting.threshold import ScoredRows
from scoreline.measures import Measure, OperatingPoint, RankingMeasure
from scoreline.model_selection.folds import (
    Candidate,
    Fold,
    deviation_of,
    make_splits,
    pooled,
    results_table,
    run_folds,
    threshold_of,
    undefined_folds,
)
from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, Operator
from scoreline.operators.wrappers import scaled, unwrapped
from scoreline.penalties import BoundedPenalty, Penalty
from scoreline.penalties.elastic_net import check_ratio
from scoreline.penalties.registry import get_penalty
from scoreline.risks.on_base_scores import on_base_scores
from scoreline.runtime.checks import check_choice, check_flag, check_number
from scoreline.runtime.messages import warn_user
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.scores import space_for
from scoreline.solvers.common.base import Solver
from scoreline.solvers.common.cost_method import CostMethod
from scoreline.solvers.common.loop import Control
from scoreline.solvers.common.method import Method
from scoreline.solvers.common.path import alpha_max, solve_path
from scoreline.solvers.common.run_warnings import is_degenerate
from scoreline.solvers.cost_search import CostSearchSolver, costs_to_try

logger = logging.getLogger("scoreline")
DECADE = 2  # alphas of the grid per factor of ten
FEATURE_ALPHAS = tuple(float(f"{a:.3g}") for a in np.logspace(1, -4, 5 * DECADE + 1))  # of additive features and pairs
FIRST_ALPHAS = (
    3 * DECADE + 1
)  # of these; weaker penalties, which take the most passes, follow while the last alpha is the best
ALPHAS = tuple(float(f"{a:.3g}") for a in np.logspace(0, -6, 6 * DECADE + 1))
NEAR = 1  # places of the grid on either side of the best alpha so far: what all candidates but the first begin with
STRONGEST, WEAKEST = 1e3, 1e-9  # limits of the grid where it is widened
PATH_DECADES = 3  # of the grid below the smallest alpha without any feature, where the penalty has such
WITH_RATIO = ("elastic_net", "group")  # penalties with an l1_ratio
PAIRED_ERRORS = 0.5  # of the differences between two alphas over the folds, below which the stronger penalty is taken
OWN = ("alphas", "l1_ratios", "cv", "selection")  # parameters that MeasureClassifier has not


def _no_stream(estimator: Any) -> None:
    raise AttributeError("MeasureClassifierCV reads all rows many times; use MeasureClassifier for a stream")


class MeasureClassifierCV(MeasureClassifier):
    """MeasureClassifier with alpha chosen by cross-validation: the measure itself on rows that were left out.

    Each fold trains the alphas from the strongest penalty to the weakest, every fit from the end of the one before, with the
    planes it has proved (they bound J for any alpha). Folds are lists of rows of the one X, which is not copied; statistics of
    scaling come from the training rows of the fold. Count-based measures are evaluated at the threshold that the held-out rows
    of the other folds give. Then the model is trained on all rows with the chosen alpha, and its threshold is that of all
    held-out scores.

    Parameters
    ----------
    measure, measure_params : as in MeasureClassifier
        The measure you report. The folds choose by it, too.
    alphas : sequence of float, default=None
        Penalty strengths to choose from; None for 13 from 1 to 1e-6. The first cost of a positive, risk and method tries all
        of them; the others begin with the best one so far and its two neighbours. A grid is widened a decade at a time, to at
        most 1e3 and 1e-9, while the best alpha is at its edge and the measure still grows there by more than the standard
        error. All try each number of a list of your own, which is not widened. With penalties that leave no feature in the
        model above some alpha, the grid covers three decades below that one (`alpha_max`).
    l1_ratios : sequence of float, default=None
        Values of `l1_ratio` to choose from, for penalty="elastic_net" and "group"; None for that of `penalty_params`. Pass
        two or three, such as [0.5, 0.9, 1.0], if you do not know how sparse the model should be.
    cv : int, splitter or iterable, default=5
        Folds, as scikit-learn's `check_cv` understands them. A number means stratified folds of the rows of positive weight.
        Use a splitter such as GroupKFold if rows belong together, and 10 if positives are few. With features="auto" a number
        of folds is repeated three times with other folds, if the rarer class has fewer than 250 rows.
    selection : {"best", "paired", "one_standard_error"}, default="best"
        "best" takes the alpha with the best mean. "one_standard_error" takes the largest alpha whose mean is within a
        standard error of it: choose it if you prefer the simpler model. "paired" takes the largest alpha that the folds do not
        tell from the best one: its mean is lower by at most half the standard error of the differences fold by fold.
    solver : as in MeasureClassifier
        How J is minimised.
    risk : str or list of str, default="auto"
        As in MeasureClassifier, or several to choose among by the same folds; the one chosen is `risk_`. "auto" tries three
        for the measures of the top of a ranking, where none is always ahead: logistic and squared hinge in addition to ROC
        area for average_precision and partial_roc_auc, and in addition to PRBEP for prbep.
    solver_params, penalty, penalty_params, bounds, monotone, fit_intercept, intercept_scaling, scaling
        As in MeasureClassifier.
    threshold : {"auto", "train", "holdout", "none"}, default="auto"
        As in MeasureClassifier, except that "auto" tunes the threshold on the held-out scores of all folds.
    features : {"linear", "additive", "pairs", "auto"}, Additive or Pairs, default="linear"
        As in MeasureClassifier. "auto" chooses among a linear model, an additive one and one with pairs, all on the same bins:
        the simplest one that the best does not exceed by more than the standard error of the difference. Choose it for a
        table that you know little about. Bins are learnt once from all rows, without labels; pairs are chosen again on the
        training rows of each fold. For these features the alphas go from 10 to 0.01, and on to 1e-4 by steps of a decade while
        the last alpha is the best.
    class_weight, tol, max_iter, max_time, random_state, n_jobs, verbose : as in MeasureClassifier
        max_time is that of a single fit.
    probability : bool, default=False
        Calibrate a sigmoid for `predict_proba` on the scores of the held-out rows at the chosen alpha. This needs no further
        fits, except for amp, moments, spade and stamp, which need one more per fold.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    l1_ratio_ : float or None
        The share of absolute values that was chosen, or that of `penalty`; None for penalties without one.
    cv_results_ : dict of arrays
        One entry for each l1_ratio, risk, cost and alpha, in the order given, else from strong to weak: l1_ratio (NaN without
        l1_ratios), risk, cost (weight of a positive, NaN where each fit has its own), alpha, mean_test_score,
        std_test_score (with n - 1), rank_test_score, and split0_test_score, split1_test_score, ... Folds without a value
        are left out of means.
    features_ : str
        The kind of features that was trained: "linear", "additive" or "pairs".
    cv_passes_ : float
        Passes over X that all folds took together.
    coef_, intercept_, objective_, lower_bound_, gap_, history_, status_ and others
        Those of the final model, as in MeasureClassifier.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline import MeasureClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MeasureClassifierCV("roc_auc", alphas=[1e-1, 1e-2, 1e-3], scaling="standard").fit(X, y)
    >>> print(f"alpha {clf.alpha_:g}, AUC of held-out rows {clf.cv_results_['mean_test_score'].max():.2f}")
    alpha 0.1, AUC of held-out rows 1.00
    """

    def __init__(
        self,
        measure: str | Measure = "roc_auc",
        measure_params: dict[str, Any] | None = None,
        alphas: Sequence[float] | None = None,
        l1_ratios: Sequence[float] | None = None,
        cv: Any = 5,
        selection: str = "best",
        solver: str = "auto",
        risk: str | Sequence[str] = "auto",
        solver_params: dict[str, Any] | None = None,
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
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        probability: bool = False,
    ):
        self.measure = measure
        self.measure_params = measure_params
        self.alphas = alphas
        self.l1_ratios = l1_ratios
        self.cv = cv
        self.selection = selection
        self.solver = solver
        self.risk = risk  # type: ignore[assignment]  # may also be a list to choose from
        self.solver_params = solver_params
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.probability = probability

    def fit(  # type: ignore[override]  # groups of rows come before the base scores
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        base_scores: Any = None,
        cost_fp: Any = None,
        cost_fn: Any = None,
    ) -> "MeasureClassifierCV":
        """Choose alpha and train on all rows.

        Ctrl-C leaves the best model so far, with status_ "interrupted": the final one, or that of a fold, which was trained
        without the fold's held-out rows. It has no `cv_results_` then.

        Parameters
        ----------
        X : as in MeasureClassifier, of shape (n, p)
            Examples in rows; rows must be readable one by one, which those on a cluster are not.
        y : array of n labels
            Two classes; the larger in sorted order is positive.
        sample_weight : array of n weights, optional
            Used for training, scaling and the measure on held-out rows.
        groups : array of n labels, optional
            For splitters that keep groups together.
        base_scores : array of n numbers, optional
            Scores of an existing model, to which those of this one are added, as in MeasureClassifier.
        cost_fp, cost_fn : float or array of n floats, optional
            Cost of flagging each row if it is negative, and of missing it if it is positive, with measure="savings".

        Returns
        -------
        MeasureClassifierCV
            The fitted classifier.
        """
        alphas = self._checked_alphas()
        self._check_l1_ratios()
        check_choice("selection", self.selection, ("best", "paired", "one_standard_error"))
        check_flag("probability", self.probability)
        final = self._classifier(alphas[0])
        if hasattr(self, "_column_names"):
            final._column_names = self._column_names
        parameters = Parameters.of(final)
        no_guarantee(parameters.measure, "MeasureClassifierCV")
        refused = [name for name in ("checkpoint", "early_stopping") if parameters.options.get(name)]
        if refused:
            raise ValueError(
                f"solver_params: {refused[0]} belongs to one fit, and this makes many; use MeasureClassifier, or leave it out"
            )
        with fitting(self, X, sample_weight) as (operator, interim):
            operator = on_device(operator, parameters.device)
            operator.require("rows", "cross-validation: products restricted to rows")
            rows = self._rows(operator, y, sample_weight, base_scores, (parameters.measure, cost_fp, cost_fn))
            several = isinstance(self.features, str) and self.features == AUTO
            splits = make_splits(self.cv, rows.sign, groups, rows.copies, rows.classes, repeat_if_few=several)
            if self.selection != "best" and len(splits) < 2:
                raise ValueError(f"selection={self.selection!r} needs two folds or more, got one; use selection='best'")
            # The map of columns is that of all rows: it knows no labels.
            names = final._column_names = final._names_of(X)
            parameters.penalty_for(operator, names)  # raises before the first pass
            mapped = mapped_columns(operator, self.scaling, rows.copies, names)
            search = Search(self, parameters, rows._replace(operator=mapped), names, splits, interim)
            interim.keep = lambda: self._keep_interim(X, final, search)
            candidates, chosen = search.run(alphas)
            best = search.chosen_alpha(chosen)
            self._train(final, search, chosen, best, (y, sample_weight, base_scores, cost_fp, cost_fn))
        folds = [fold for each in candidates for fold in each.folds]
        undefined = undefined_folds(candidates)
        with all_at_once(self) as new:
            validate_data(new, feature_source(X), skip_check_array=True)
            for name in CALIBRATION:  # of an earlier fit with probability=True
                new.__dict__.pop(name, None)
            new.__dict__.update({k: v for k, v in vars(final).items() if _is_fitted(k)})
            new.features_ = chosen.features
            new.l1_ratio_ = getattr(search.penalty_at(chosen.l1_ratio), "l1_ratio", None)
            new.alpha_, new.cv_passes_ = final.alpha, float(sum(fold.passes for fold in folds))
            new.cv_results_ = results_table(self._given_alphas(), candidates)
        self._warn_at_edge(chosen, parameters.measure)
        if undefined:
            warn_user(
                f"{parameters.measure.name} is not defined on the held-out rows of fold {', '.join(map(str, undefined))} "
                "(one class only, or no weight): means are over the other folds"
            )
        ended = [done for fold in folds for done in fold.converged]
        unproved = ended.count(False)
        if unproved:
            warn_user(
                f"{unproved} of {len(ended)} fits of the folds stopped before they converged: raise "
                "max_iter, max_time or tol, leave out the smallest alphas, or scale the features (scaling='maxabs')",
                ConvergenceWarning,
            )
        return self

    def _rows(
        self, operator: Operator, y: Any, sample_weight: Any, base_scores: Any, costs: tuple[Measure, Any, Any]
    ) -> TrainingRows:
        """Return all rows, their labels and weights in the memory of this process."""
        classes, sign = check_labels(operator.aligned(y, "y"), operator.shape[0])
        sign = np.asarray(sign)
        if sample_weight is not None:
            sample_weight = np.asarray(operator.aligned(sample_weight, "sample_weight"))
        measure, *given = costs
        host = (np.asarray(operator.aligned(each, "cost")) if np.ndim(each) else each for each in given)
        cost = check_costs(measure, sign, *host)
        weights = check_weights(sample_weight, self.class_weight, classes, sign, cost)
        base = check_base_scores(operator.aligned(base_scores, "base_scores"), operator.shape[0])
        return TrainingRows(operator, sign, *weights, classes, None if base is None else np.asarray(base), cost)

    def _train(
        self, final: MeasureClassifier, search: "Search", chosen: Candidate, best: int, given: tuple[Any, ...]
    ) -> None:
        """Train the final model on all rows, with threshold and probabilities from the scores of the folds if they have any."""
        rows, parameters = search.rows, search.parameters
        operator, y = rows.operator, given[0]
        out_of_fold = chosen.along and self.threshold == "auto"
        final.alpha = chosen.alphas[best]
        # What the folds have judged is named: "auto" might take another for all rows.
        final.set_params(risk=chosen.risk.name, solver=chosen.solver)
        final.set_params(penalty_params=self._penalty_params(chosen.l1_ratio))
        final.set_params(features=self._features_for(chosen.features))
        if chosen.cost is not None:
            final.set_params(solver_params={**parameters.options, "cost": chosen.cost})
        final._plan_of_search = {} if search.reason is None else {"reason": search.reason}
        if out_of_fold:
            final.threshold = "none"
            final._plan_of_search["threshold"] = ThresholdRule.ALL_FOLDS
        final.fit(operator, *given)
        if chosen.along:
            scores, held_out_rows = pooled(chosen.folds, search.splits, best)
            center = 0.0
            if chosen.risk.shift != "needed":
                scored = with_features(operator, final.feature_map_)
                own = rows.full_scores(np.asarray(scored.matvec(final.coef_[0]))) + final.trained_intercept_
                center = center_of(own, rows.weight, chosen.risk)
            if out_of_fold:
                threshold = threshold_of(parameters.threshold_measure, rows, scores, held_out_rows)
                final.intercept_ = final.intercept_ - (center + threshold)
            held_out = ScoredRows(
                rows.sign[held_out_rows], scores, None if rows.copies is None else rows.copies[held_out_rows]
            )
        elif self.probability:
            tests = [test for _, test in search.splits]
            held_out, center = cross_fitted_scores(final, rows, y, chosen.risk, tests)
        if self.probability:
            final.__dict__.update(calibration(held_out, final.trained_intercept_ - center))

    @available_if(_no_stream)
    def partial_fit(self, *blocks: Any) -> None:
        """Not available: a search reads all rows many times."""

    merge = partial_fit

    @property
    def alpha(self) -> float:  # type: ignore[override]  # a parameter of the base class
        """The alpha of the final model."""
        return float(self.alpha_)

    @property
    def folds_chose_cost(self) -> bool:
        """Whether the folds have chosen the cost of a positive together with alpha."""
        return bool(np.isfinite(getattr(self, "cv_results_", {}).get("cost", np.nan)).any())

    def save(self, path: Any, encoding: Any = None) -> None:
        """Write the final model to a file that `load_model` reads, as a MeasureClassifier with the chosen alpha."""
        final = self._as_trained()
        final.__dict__.update({k: v for k, v in vars(self).items() if _is_fitted(k)})
        for name in ("alpha_", "l1_ratio_", "features_", "cv_results_", "cv_passes_"):
            final.__dict__.pop(name, None)
        final.save(path, encoding)

    def _as_trained(self) -> MeasureClassifier:
        """Return a classifier with what the folds chose, not fitted."""
        final = self._classifier(self.alpha_)
        final.set_params(probability=self.probability, risk=self.risk_, solver=self.solver_)
        final.set_params(features=self._features_for(self.features_))
        if self.l1_ratios is not None:
            final.set_params(penalty_params=self._penalty_params(getattr(self, "l1_ratio_", None)))
        if self.folds_chose_cost:
            final.set_params(solver_params={**(self.solver_params or {}), "cost": self.cost_})
        return final

    def _keep_interim(self, X: Any, final: MeasureClassifier, search: "Search") -> None:
        """Set the final model if Ctrl-C has come when it was there, or else the best one of the folds."""
        model: Any
        rows, measure = search.rows, search.parameters.threshold_measure
        if hasattr(final, "coef_"):
            model = {k: v for k, v in vars(final).items() if _is_fitted(k)} | {"alpha_": final.alpha}
            if final.threshold == "none" != self.threshold:  # the threshold of the folds may have been still to come
                z = np.asarray(with_features(rows.operator, final.feature_map_).matvec(final.coef_[0]))
                z = rows.full_scores(z)
                model["intercept_"] = -np.array([threshold_of(measure, rows, z, np.arange(len(z)))])
        else:
            model = search.interim.model(rows.operator, rows.sign, rows.weight, measure, rows.base_scores)
        if model is not None:
            self.__dict__.pop("cv_results_", None)
            own = {"classes_": rows.classes, "n_passes_": 0.0, "cv_passes_": rows.operator.n_passes}
            own["features_"] = search.kind or "linear"
            features = model.pop("feature_map_", None)
            set_model(self, X, with_features(rows.operator, features), model | own, rows.base_scores is not None)

    def _given_alphas(self) -> list[float] | None:
        return None if self.alphas is None else [float(a) for a in self.alphas]

    def _warn_at_edge(self, chosen: Candidate, measure: Measure) -> None:
        """Warn if the best alpha is at a limit of the widened grid; log it if it is at the edge of the user's own list."""
        edge = chosen.open_edge(min(DECADE, len(chosen.alphas) - 1)) if len(chosen.alphas) > 1 else None
        if edge is None:
            return
        which, alpha = ("largest", chosen.alphas[0]) if edge == "strong" else ("smallest", chosen.alphas[-1])
        if self.alphas is not None:
            logger.info("the best alpha, %g, is the %s of alphas; the best one may lie beyond", alpha, which)
            return
        hint = "features may be noise" if edge == "strong" else "the features may need scaling (scaling='standard')"
        warn_user(
            f"The best alpha, {alpha:g}, is the {which} of the grid, and {measure.name} on held-out rows still "
            f"improves in its direction: {hint}. Pass alphas of your own to look further."
        )

    def _checked_alphas(self) -> list[float]:
        """Return the alphas from the largest to the smallest."""
        given = ALPHAS if self.alphas is None else self.alphas
        if np.ndim(given) != 1 or len(given) == 0:
            raise ValueError(f"alphas={given!r} must be a list of one or more positive numbers")
        for alpha in given:
            check_number("alphas", alpha, above=0)
        if len(set(map(float, given))) != len(given):
            raise ValueError(f"alphas={given!r} has a number twice")
        return sorted(map(float, given), reverse=True)

    def _check_l1_ratios(self) -> None:
        """Raise unless these are shares that the penalty takes."""
        given = self.l1_ratios
        if given is None:
            return
        if np.ndim(given) != 1 or len(given) == 0 or len(set(given)) != len(given):
            raise ValueError(f"l1_ratios={given!r} must be a list of one or more different numbers from 0 to 1")
        if not isinstance(self.penalty, str) or self.penalty not in WITH_RATIO:
            raise ValueError(
                f"l1_ratios={given!r} needs a penalty by name, one of {', '.join(map(repr, WITH_RATIO))}, got "
                f"penalty={self.penalty!r:.100}"
            )
        for ratio in given:
            check_ratio(ratio)

    def _penalty_params(self, l1_ratio: float | None) -> dict[str, Any] | None:
        """Return the parameters of the penalty with this share; as they are for None."""
        return self.penalty_params if l1_ratio is None else {**(self.penalty_params or {}), "l1_ratio": l1_ratio}

    def _classifier(self, alpha: float) -> MeasureClassifier:
        options = {name: value for name, value in self.get_params(deep=False).items() if name not in OWN}
        if self.l1_ratios is not None:
            options["penalty_params"] = self._penalty_params(float(self.l1_ratios[0]))
        if not isinstance(self.risk, str):
            options["risk"] = "auto"  # until one of them is chosen
        options["probability"] = False  # the scores of the folds give them
        options["features"] = self._features_for("additive")
        return MeasureClassifier(alpha=alpha, **options)

    def _features_for(self, kind: str) -> Any:
        """Return the parameter `features` of a MeasureClassifier for features of this kind."""
        return kind if isinstance(self.features, str) and self.features == AUTO else self.features


class Search:
    """The search of MeasureClassifierCV: what the folds say of each method, cost and alpha."""

    def __init__(
        self,
        cv: MeasureClassifierCV,
        parameters: Parameters,
        rows: TrainingRows,
        names: Any,
        splits: list[Any],
        interim: Interim,
    ):
        self.cv, self.parameters, self.rows, self.splits, self.interim = cv, parameters, rows, splits, interim
        self.names = names
        self.l1_ratio: float | None = None  # in use; None for that of the parameters
        self.reason: str | None = None  # why the solver is the chosen one, if the user has not named it
        self.kind: str | None = None  # of the features in use; None for the columns of X
        self.additive_alpha = 0.0
        self._paired: dict[Any, Operator] = {}

    def run(self, alphas: list[float]) -> tuple[list[Candidate], Candidate]:
        """Return what was tried, and the best of it: of features, the simplest that is not clearly worse."""
        kinds, given = feature_kinds(self.cv.features), self.rows
        found: list[tuple[list[Candidate], Candidate, str | None, TrainingRows]] = []
        for kind in kinds:
            self.kind, self.rows = kind, given
            if kind == "linear":
                self.rows = given._replace(operator=linear_part(given.operator))
            elif kinds[0] == "linear":
                self.interim.folds = [] if kind == "additive" else self.interim.folds  # theirs have other coefficients
            own_grid = kind is not None and self.cv.alphas is None
            candidates, best = self._of_kind(list(FEATURE_ALPHAS) if own_grid else alphas)
            if kind == "additive":
                self.additive_alpha = best.alphas[self.chosen_alpha(best)]
            found.append((candidates, best, kind, self.rows))
        chosen = len(found) - 1
        if kinds[0] == "linear":
            chosen = self._simplest([best for _, best, _, _ in found])
        _, best, self.kind, self.rows = found[chosen]
        return [each for candidates, _, _, _ in found for each in candidates], best

    def _simplest(self, contenders: list[Candidate]) -> int:
        """Return the first that the best exceeds by no more than the standard error of their difference.

        Equation (eq. one-standard-error).
        """
        values = [each.values[self.chosen_alpha(each)] for each in contenders]
        top = max(range(len(contenders)), key=lambda k: self._merit(contenders[k]))
        for k in range(top):
            gains = values[top] - values[k]
            known = gains[np.isfinite(gains)]
            error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else 0.0
            if len(known) == 0 or known.mean() <= error:
                return k
        return top

    def _of_kind(self, alphas: list[float]) -> tuple[list[Candidate], Candidate]:
        """Return what was tried for the features in use, and the best of it."""
        found = [(self._of_ratio(ratio, alphas)) for ratio in self.cv.l1_ratios or (None,)]
        best = max((each for _, each in found), key=self._merit)  # the first of equal ones
        return [each if each is best else each.without_scores() for own, _ in found for each in own], best

    def _of_ratio(self, l1_ratio: float | None, alphas: list[float]) -> tuple[list[Candidate], Candidate]:
        """Return the same for one `l1_ratio`."""
        self.l1_ratio = None if l1_ratio is None else float(l1_ratio)
        self.parameters = self.parameters._replace(penalty=self.penalty_at(self.l1_ratio))
        risks = None if isinstance(self.cv.risk, str) else list(self.cv.risk)
        rows, measure = self.rows, self.parameters.measure
        shape = Shape.of(rows.sign, rows.copies, rows.operator.shape[1])
        plans = contenders(self._request(rows), risks, measure, shape)
        spare = plans[0].fallback
        if self.cv.solver == "auto":
            self.reason = plans[0].reason if len(plans) == 1 else "cross-validation chose it"
        queue = [(Choice(each.risk, each.solver), cost) for each in plans for cost in self._costs(each.solver)]
        # The best alpha so far says where the next candidate begins. The first one follows a path of alphas, if there is such:
        # that takes less time than whole fits.
        queue.sort(key=lambda each: not self._follows_path(*each))
        candidates: list[Candidate] = []
        best: Candidate | None = None
        for choice, cost in queue:  # which may grow below
            grid = self._grid(choice, alphas)
            if best is not None and self.cv.alphas is None and grid is alphas and self.kind is None:
                grid = around(best.alphas[self.chosen_alpha(best)], {*alphas, *best.alphas})
            candidates.append(self._candidate(choice, cost, grid))
            best = max(candidates, key=self._merit)  # the first of equal ones
            candidates = [each if each is best else each.without_scores() for each in candidates]
            if spare is not None and best.degenerate[self.chosen_alpha(best)]:
                queue.append((spare, None))
                spare = None
        if best is None or len(undefined_folds(candidates)) == len(self.splits):
            raise ValueError(f"{measure.name} is not defined on the held-out rows of any fold; use fewer folds")
        return candidates, best

    def penalty_at(self, l1_ratio: float | None) -> Penalty:
        """Return the penalty with this share of the absolute values; the user's own for None."""
        return get_penalty(self.cv.penalty, self.cv._penalty_params(l1_ratio))

    def _grid(self, choice: Choice, alphas: list[float]) -> list[float]:
        """Return the alphas to try: below the one from which on no feature is in the model, if there is such."""
        rows, risk = self.rows, choice.risk
        certain = risk.smooth or risk.name in ("hinge", "roc_area", "partial_roc")  # others have a kink at w = 0
        if self.cv.alphas is not None or not certain or self.kind not in (None, "linear"):
            return alphas
        if self._penalty_of(rows.operator).smooth:
            return alphas
        everything = np.arange(len(rows.sign)) if rows.copies is None else np.flatnonzero(rows.copies > 0.0)
        _, _, objective = self._problem(choice, rows.operator, rows.weight, everything, alphas[0])
        largest = alpha_max(objective)
        if not 0.0 < largest < np.inf:
            return alphas
        return [float(f"{a:.3g}") for a in 0.999 * largest * 10.0 ** (-np.arange(PATH_DECADES * DECADE + 1) / DECADE)]

    def chosen_alpha(self, candidate: Candidate) -> int:
        """Return which alpha is taken; of equal means the strongest penalty."""
        means, values = candidate.means, candidate.values
        best = int(np.argmax(means))
        if self.cv.selection == "best":
            return best
        if self.cv.selection == "paired":
            errors = deviation_of(values - values[best]) / np.sqrt(np.count_nonzero(~np.isnan(values[best])))
            return int(np.flatnonzero(means >= means[best] - PAIRED_ERRORS * errors)[0])
        error = float(deviation_of(values)[best] / np.sqrt(np.count_nonzero(~np.isnan(values[best]))))
        return int(np.flatnonzero(means >= means[best] - error)[0])

    def _merit(self, candidate: Candidate) -> tuple[float, bool]:
        """Return what contenders are compared by: the best mean, and among equal ones that the fits are not degenerate."""
        return float(candidate.means.max()), not candidate.degenerate[self.chosen_alpha(candidate)]

    def _costs(self, solver: type[Method]) -> Sequence[float | None]:
        """Return the costs of a positive for which the folds follow a path of alphas, or None where every fit has its own.

        The held-out rows of the folds choose the cost: a path needs no leave-one-out scores, by which a single fit chooses it.
        An operating point stays with the search on all rows, which says where its target is not reached.
        """
        if not issubclass(solver, CostSearchSolver):
            return (None,)
        if self.parameters.options.get("cost") is not None:
            return (float(self.parameters.options["cost"]),)
        if isinstance(self.parameters.measure, OperatingPoint):
            return (None,)
        return (1.0, *costs_to_try(self.rows.sign, self.rows.weight, self.rows.copies))

    def _follows_path(self, choice: Choice, cost: float | None) -> bool:
        """Tell whether a fold follows a path of alphas with one solver's run each, rather than make a whole fit for each."""
        return issubclass(choice.solver, Solver) and (cost is not None or not issubclass(choice.solver, CostMethod))

    def _candidate(self, choice: Choice, cost: float | None, alphas: list[float]) -> Candidate:
        """Return what the folds say of a method and a cost."""
        solver, given = choice.solver, self.cv.alphas is not None
        along, stop = self._follows_path(choice, cost), Event()

        def run(alphas: list[float], starts: list[Any]) -> list[Fold]:
            fold = self._path_fold(choice, cost, alphas, stop) if along else self._fit_fold(choice, alphas)
            # Whole fits change the filters of warnings, which threads share; rows of a device are copied for each fold.
            side_by_side = along and self.rows.operator.scores == "host"
            return run_folds(fold, self.splits, starts, stop, side_by_side=side_by_side)

        def candidate(alphas: list[float], folds: list[Fold]) -> Candidate:
            return Candidate(
                choice.risk, solver.name, along, alphas, folds, self._values(folds), cost, self.kind or "linear",
                self.l1_ratio,
            )  # fmt: skip

        first = alphas if given or self.kind is None else alphas[:FIRST_ALPHAS]
        found, rest = candidate(first, run(first, [None] * len(self.splits))), alphas[len(first) :]
        while rest and int(np.argmax(found.means)) == len(found.alphas) - 1:
            more, rest = rest[:DECADE], rest[DECADE:]
            new = run(more, [fold.ends[1] for fold in found.folds])
            folds = [old.extended(fold, False) for old, fold in zip(found.folds, new, strict=True)]
            found = candidate([*found.alphas, *more], folds)
        edge = None if given else found.open_edge(DECADE)
        while edge is not None and WEAKEST < found.alphas[-1] and found.alphas[0] < STRONGEST:
            stronger = edge == "strong"
            more = further(found.alphas[0] if stronger else found.alphas[-1], stronger)
            logger.info("the best alpha is at the edge of the grid: trying alphas up to %g", more[-1])
            new = run(more, [fold.ends[0 if stronger else 1] for fold in found.folds])
            folds = [old.extended(fold, stronger) for old, fold in zip(found.folds, new, strict=True)]
            found = candidate([*more[::-1], *found.alphas] if stronger else [*found.alphas, *more], folds)
            edge = found.open_edge(DECADE)
        return found

    def _path_fold(
        self, choice: Choice, cost: float | None, alphas: list[float], stop: Event
    ) -> Callable[[AnyArray, AnyArray, Any], Callable[[], Fold]]:
        """Return a function that prepares a fold and returns its fits. Folds are prepared in turn, and fits run in parallel."""
        rows, risk, parameters, measure = self.rows, choice.risk, self.parameters, self.parameters.measure
        weights = rows.weight if cost is None else with_cost(rows.weight, rows.sign, cost)

        def prepare(train: AnyArray, test: AnyArray, start: Any) -> Callable[[], Fold]:
            operator = rows.operator
            if self.kind == "pairs":
                operator = self._with_pairs(choice, cost, train)
            features, part, objective = self._problem(choice, operator, weights, train, alphas[0])
            left, own_risk, weight = features.on_rows(test), objective.risk, objective.risk.labels.weight
            base_left = left.aligned(rows.base_of(test), "base_scores")

            def unwrap(w: FloatArray) -> tuple[FloatArray, float]:
                return unwrapped(w, features, operator)

            def run() -> Fold:
                scores, converged, degenerate = np.empty((len(alphas), len(test))), [], []
                solver, newest = parameters.make_solver(choice.solver), self.interim.of_fold()
                callbacks = (*solver.callbacks, lambda progress: stop.is_set())
                control = Control(solver.max_time, callbacks, latest=newest)
                facts = {"solver_": solver.name, "risk_": risk.name, "cost_": 1.0 if cost is None else cost}
                if self.kind != "pairs":  # each fold has its own
                    newest.begin(unwrap, **facts, alpha_=alphas[0])
                ends: list[Any] = []
                for k, (_, result) in enumerate(solve_path(objective, alphas, solver, start, control)):
                    if result.interruption is not None:
                        raise result.interruption
                    ends = [*ends[:1], result.w]
                    shift = own_risk.intercept(result.z) - center_of(own_risk.full_scores(result.z), weight, risk)
                    z = left.matvec(result.w)
                    scores[k] = np.asarray(z if base_left is None else z + base_left) + shift
                    coef, intercept = unwrap(result.w)
                    judge = partial(_held_out_value, rows, measure, test, scores[k])
                    if self.kind != "pairs":
                        newest.finish(judge, coef, intercept + shift, **facts, alpha_=alphas[k])
                    converged.append(result.status == "converged")
                    degenerate.append(is_degenerate(result, objective))
                passes = (part.n_passes * len(train) + left.n_passes * len(test)) / rows.operator.shape[0]
                passes += parameters.scaling is not None
                return Fold(scores, None, passes, converged, degenerate, (ends[0], ends[-1]))

            return run

        return prepare

    def _problem(
        self, choice: Choice, operator: Operator, weights: FloatArray | None, train: AnyArray, alpha: float
    ) -> tuple[Operator, Operator, Objective]:
        """Return the features of all rows, scaled by those to train on, these rows of them, and the objective there."""
        rows, risk, parameters = self.rows, choice.risk, self.parameters
        features = scaled(operator, parameters.scaling, rows.counted(train))
        if parameters.fit_intercept and risk.shift == "needed":
            features = InterceptOperator(features, parameters.intercept_scaling)
        part = features.on_rows(train)
        sign = part.aligned(rows.sign[train])
        weight = None if weights is None else part.aligned(weights[train], "sample_weight")
        base = part.aligned(rows.base_of(train), "base_scores")
        prepared = on_base_scores(risk, base).prepare(sign, weight, space_for(rows.operator.scores))
        penalty = trained_penalty(self._penalty_of(operator), features, operator, choice.solver)
        return features, part, Objective(part, prepared, alpha, penalty)

    def _request(self, rows: TrainingRows) -> Request:
        """Return what the plans are made of."""
        return self.parameters.request(self._penalty_of(rows.operator), rows.base_scores)

    def _penalty_of(self, operator: Operator) -> BoundedPenalty:
        """Return the penalty of the columns of an operator."""
        return self.parameters.penalty_for(operator, self.names)

    def _with_pairs(self, choice: Choice, cost: float | None, train: AnyArray) -> Operator:
        """Return all rows with the features of the pairs that the slopes at the additive optimum of these rows choose."""
        key = id(train), choice.risk.name, cost
        if key not in self._paired:
            rows, operator = self.rows, self.rows.operator
            weights = rows.weight if cost is None else with_cost(rows.weight, rows.sign, cost)
            objective = self._problem(choice, operator, weights, train, self.additive_alpha)[2]
            result = self.parameters.make_solver(choice.solver).solve(objective)
            if result.interruption is not None:
                raise result.interruption
            options: Any = feature_options(self.cv.features)
            copies = None if rows.copies is None else rows.copies[train]
            paired = options.with_pairs(operator.on_rows(train), objective.risk.value_grad(result.z)[1], copies)
            self._paired[key] = with_features(operator, paired.feature_map)
        return self._paired[key]

    def _fit_fold(self, choice: Choice, alphas: list[float]) -> Callable[[AnyArray, AnyArray, Any], Callable[[], Fold]]:
        """Return the same for methods that are more than one solver's run: whole fits, each from the coefficients before."""
        rows, measure = self.rows, self.parameters.measure

        def prepare(train: AnyArray, test: AnyArray, start: Any) -> Callable[[], Fold]:
            part, left = rows.operator.on_rows(train), rows.operator.on_rows(test)
            labels, weight = rows.classes[(rows.sign > 0).astype(np.intp)], rows.copies

            def run() -> Fold:
                values, converged, degenerate = np.empty(len(alphas)), [], []
                clf = self.cv._classifier(alphas[0])
                clf._column_names = self.names
                clf.set_params(warm_start=True, risk=choice.risk.name, solver=choice.solver.name)
                clf.set_params(penalty_params=self.cv._penalty_params(self.l1_ratio))
                clf.set_params(features=self.cv._features_for(self.kind or "linear"))
                if self.kind == "additive":  # of pairs, the additive part
                    clf.set_params(features="additive")
                clf.__dict__.update(start or {})
                newest = self.interim.of_fold()
                ends: list[Any] = []

                def note(value: float) -> None:
                    if self.kind == "pairs":  # each fit has its own
                        return
                    facts = {"solver_": clf.solver_, "risk_": clf.risk_, "cost_": clf.cost_, "alpha_": clf.alpha}
                    newest.finish(lambda: (value, 0.0), clf.coef_[0], float(clf.intercept_[0]), **facts)

                for k, alpha in enumerate(alphas):
                    clf.set_params(alpha=alpha)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # told once, at the end
                        try:
                            own = None if weight is None else weight[train]
                            costs = rows.costs_of(train)
                            clf.fit(part, labels[train], own, rows.base_of(train), costs, costs)
                        except KeyboardInterrupt:
                            if hasattr(clf, "solver_"):  # a start from another fit sets coef_ alone
                                note(-np.inf)
                            raise
                    scored = with_features(left, clf.feature_map_)
                    decision = np.asarray(scored.matvec(clf.coef_[0])) + float(clf.intercept_[0])
                    if rows.base_scores is not None:
                        decision = decision + rows.base_scores[test]
                    values[k] = rows.value(measure, test, decision)
                    note(values[k])
                    ends = [*ends[:1], {name: getattr(clf, name) for name in ("coef_", "trained_intercept_")}]
                    converged.append(clf.gap_ is None or clf.status_ == "converged")
                    degenerate.append(bool(np.ptp(decision) == 0.0))
                passes = (part.n_passes * len(train) + left.n_passes * len(test)) / rows.operator.shape[0]
                return Fold(None, values, passes, converged, degenerate, (ends[0], ends[-1]))

            return run

        return prepare

    def _values(self, folds: list[Fold]) -> FloatArray:
        """Return the measure on the held-out rows, alphas by folds."""
        if folds[0].values is not None:
            return np.stack([np.asarray(fold.values) for fold in folds], axis=1)
        assert folds[0].scores is not None
        rows, splits, measure = self.rows, self.splits, self.parameters.measure
        values = np.empty((len(folds[0].scores), len(folds)))
        needs_threshold = not isinstance(measure, RankingMeasure)
        for k in range(len(values)):
            for f, (_, test) in enumerate(splits):
                decision = folds[f].scores[k]  # type: ignore[index]  # was asked for
                if needs_threshold:  # that of the other folds: these rows must not choose their own
                    others = [g for g in range(len(folds)) if g != f] or [f]
                    scores, held_out_rows = pooled([folds[g] for g in others], [splits[g] for g in others], k)
                    decision = decision - threshold_of(measure, rows, scores, held_out_rows)
                values[k, f] = rows.value(measure, test, decision)
        return values


def around(alpha: float, grid: Iterable[float]) -> list[float]:
    """Return the alphas of a grid that are at most NEAR places from one of them, from strong to weak."""
    alphas = sorted(grid, reverse=True)
    k = alphas.index(alpha)
    return alphas[max(0, k - NEAR) : k + NEAR + 1]


def further(edge: float, stronger: bool) -> list[float]:
    """Return the alphas of one decade beyond the edge of the grid, from the edge on."""
    steps = np.arange(1, DECADE + 1) / DECADE
    place = round(DECADE * math.log10(edge)) / DECADE
    exponent = place if float(f"{10.0**place:.3g}") == edge else math.log10(edge)  # 1, 0.316, 0.1, ... stay so
    return [float(f"{a:.3g}") for a in 10.0 ** (exponent + (steps if stronger else -steps))]


def _is_fitted(name: str) -> bool:
    """Tell whether an attribute is one that a fit sets."""
    return name.endswith("_") or name == "_penalty"


def _held_out_value(rows: TrainingRows, measure: Measure, test: AnyArray, scores: FloatArray) -> tuple[float, float]:
    """Return the measure on the held-out rows of a fold at their own best threshold, and that."""
    try:
        threshold = threshold_of(measure, rows, scores, test)
    except ValueError:  # rows of one class, or without weight
        return -np.inf, 0.0
    return float(np.nan_to_num(rows.value(measure, test, scores - threshold), nan=-np.inf)), threshold
