"""The best model of a fit that is under way, so that Ctrl-C at any moment leaves one that can be used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from scoreline.features.registry import featured
from scoreline.fitting.model import Model, interruption_recorded
from scoreline.measures import Measure, best_threshold
from scoreline.operators import Operator
from scoreline.operators.convert import own_operator
from scoreline.runtime import parallel
from scoreline.runtime.memory import memory_advice
from scoreline.runtime.messages import verbosity
from scoreline.runtime.types import AnyArray, FloatArray
from scoreline.solvers.common.loop import Latest

Unwrap = Callable[[FloatArray], tuple[FloatArray, float]]
MOST_BYTES = 1 << 24  # of coefficients of finished fits that a fold keeps


class Finished(NamedTuple):
    """A fit of a fold: what judges it on held-out rows (measure, threshold), coefficients, intercept, and what it is."""

    judge: Callable[[], tuple[float, float]]
    coef: FloatArray
    intercept: float
    facts: dict[str, Any]


class Interim(Latest):
    """What solvers report while they run, and what turns it into a model.

    A solver reports its best coefficients after every iteration, on a sample of the rows or on all of them. Each fold of a
    cross-validation has an Interim of its own, which takes in finished fits, too: of all folds, the one with the best measure
    on its held-out rows becomes the model.
    """

    def __init__(self) -> None:
        self.unwrap: Unwrap | None = None
        self.facts: dict[str, Any] = {}
        self.newest: tuple[FloatArray, Unwrap, dict[str, Any]] | None = None
        self.finished: list[Finished] = []
        self.folds: list[Interim] = []
        self.keep: Callable[[], None] | None = None  # sets the best model so far, as soon as rows and labels are known

    def of_fold(self) -> "Interim":
        """Return one for a fold, which this one knows."""
        self.folds.append(Interim())
        return self.folds[-1]

    def begin(self, unwrap: Unwrap, **facts: Any) -> None:
        """Note that a run begins: what makes coefficients of X and an intercept of its w, and what it is (solver_, risk_)."""
        self.unwrap, self.facts = unwrap, facts

    def see(self, w: FloatArray) -> None:
        """Take in the best coefficients so far, unless they tell no rows apart."""
        if self.unwrap is not None and np.any(self.unwrap(w)[0]):
            self.newest = w, self.unwrap, self.facts

    def finish(
        self, judge: Callable[[], tuple[float, float]], coef: FloatArray, intercept: float, **facts: Any
    ) -> None:
        """Take in a fit that is over; `judge` returns its measure on held-out rows, and a threshold from them."""
        if len(self.finished) * coef.nbytes > MOST_BYTES:
            self.finished.clear()
        if np.any(coef):
            self.finished.append(Finished(judge, coef, intercept, facts))

    def forget(self) -> None:
        """Let go of X, which functions here know: Python would find that circle only when it looks for such."""
        self.keep = self.unwrap = self.newest = None
        self.finished, self.folds = [], []

    def store_model(self) -> None:
        """Set the best model so far, if rows and labels are known."""
        if self.keep is not None:
            self.keep()

    @property
    def ready(self) -> bool:
        """Whether there is a model that tells rows apart."""
        return bool(self.finished) or self.newest is not None or any(fold.ready for fold in self.folds)

    def model(
        self, operator: Operator, sign: AnyArray, weight: Any, measure: Measure | None, base_scores: Any = None
    ) -> dict[str, Any] | None:
        """Return the attributes of the best model so far, without a proof; None if there is none. One pass.

        The threshold is tuned for the measure; without one, the trained intercept stays.
        """
        values = [(*each.judge(), each) for part in (self, *self.folds) for each in part.finished]
        newest = next((part.newest for part in (self, *self.folds) if part.newest is not None), None)
        if values:
            _, threshold, best = max(values, key=lambda each: each[0])
            coef, intercept, facts = best.coef, best.intercept, best.facts
        elif newest is not None:
            w, unwrap, facts = newest
            coef, intercept = unwrap(w)
            threshold = 0.0
            if measure is not None:
                z = operator.matvec(coef) + intercept
                z = z if base_scores is None else z + base_scores
                threshold = best_threshold(sign, z, measure, weight).threshold
        else:
            return None
        model = Model(coef, float(intercept), intercept - threshold, "", "", 0.0, 0, "interrupted", {})
        return model.attributes() | facts


@contextmanager
def fitting(estimator: Any, X: Any, sample_weight: Any) -> Iterator[tuple[Operator, Interim]]:
    """Yield X, or its features, as an operator while an estimator is fitted, and what keeps a model.

    It uses the threads and the verbosity of the estimator. Meanwhile others can see whether there is a model yet
    (`estimator._interim.ready`). At Ctrl-C, `Interim.keep` sets the best model so far where the fit has set none.
    """
    interim = Interim()
    threads, recorded = parallel.thread_limit(estimator.n_jobs), interruption_recorded(estimator, interim.store_model)
    estimator._interim = interim
    try:
        with verbosity(estimator.verbose), threads, memory_advice(), recorded:
            names = getattr(estimator, "_column_names", None)
            made = featured(estimator.features, X, sample_weight, estimator.monotone, names)
            with own_operator(made) as operator:
                yield operator, interim
    finally:
        estimator.__dict__.pop("_interim", None)
        interim.forget()
