"""The base of all solvers, certified or not: a name, options, and the supported risks and measures."""

import inspect
from collections.abc import Collection
from enum import StrEnum
from typing import ClassVar

from scoreline.measures import Measure
from scoreline.risks.base import Risk
from scoreline.runtime.checks import check_number
from scoreline.solvers.common.loop import Control

BASE_SCORES = "base_scores"  # a trait in addition to those of penalties


class When(StrEnum):
    """When solver="auto" may choose a method."""

    ALWAYS = "always"
    NEVER = "never"
    FALLBACK = "fallback"  # where no other serves the risk
    FEW_FEATURES = "few_features"  # before others, where features are few enough for a Hessian
    PER_MEASURE = "per_measure"  # before others, where risk="auto" too, so that what is trained may follow the measure


class Method:
    """A method that `MeasureClassifier(solver=...)` can name.

    Attributes
    ----------
    name : str
        The name used in `MeasureClassifier(solver=...)`.
    alpha_means : str
        What alpha does in this method, for `list_solvers()`.
    automatic : When
        When solver="auto" may choose it.
    ample : tuple of str
        Measures for which solver="auto" chooses it if risk="auto" and there are at least a hundred rows per feature.
    prefers : tuple of str
        Risks that risk="auto" takes before others when this method is asked for.
    measures : tuple of str
        Measures that it is made for; empty for all.
    penalties : tuple of str
        Penalties that it supports: "l2" (alpha/2 |w|^2), "weights" (a weight per feature, and a free intercept), "elastic_net",
        "group", "bounds".
    takes_base_scores : bool
        Whether it can add to the scores of an existing model (`fit(base_scores=...)`).
    certified : bool
        Whether it minimises J with a proof; a method that does not leaves objective_ and gap_ None.
    direct : bool
        Whether it optimises the measure itself, whatever its risk is.
    streams : bool
        Whether it can learn block by block (`partial_fit`).
    research : bool
        Whether it is only of scientific interest: lists show it last, and solver="auto" never chooses it.
    research_options : tuple of str
        Options of which the same is true.
    row_vectors, feature_vectors : float
        About how many vectors of float64 of n and of p a fit holds beyond X at its highest (`working_bytes`).
    """

    name: ClassVar[str]
    alpha_means: ClassVar[str] = "penalty alpha/2 |w|^2"
    automatic: ClassVar[str] = When.ALWAYS
    ample: ClassVar[tuple[str, ...]] = ()
    prefers: ClassVar[tuple[str, ...]] = ()
    reason: ClassVar[str] = "it was requested"  # why solver="auto" takes it
    measures: ClassVar[tuple[str, ...]] = ()
    penalties: ClassVar[tuple[str, ...]] = ("l2",)
    takes_base_scores: ClassVar[bool] = True
    certified: ClassVar[bool] = True
    direct: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    research: ClassVar[bool] = False
    research_options: ClassVar[tuple[str, ...]] = ()
    row_vectors: ClassVar[float] = 16.0
    feature_vectors: ClassVar[float] = 80.0
    trains_for: ClassVar[str] = "a measure of predictions at the threshold"  # where `trains` says no to some measures

    def __init__(self, tol: float = 1e-2, max_iter: int = 5000, max_time: float | None = None):
        check_number("tol", tol, above=0)
        check_number("max_iter", max_iter, least=1, integer=True)
        if max_time is not None:
            check_number("max_time", max_time, above=0)
        self.tol, self.max_iter, self.max_time = tol, max_iter, max_time

    def control(self) -> Control:
        """Return the control of a run that the options ask for."""
        return Control(self.max_time)

    def working_bytes(self, n: int, p: int) -> float:
        """Return an estimate of the peak memory beyond X of a fit of n rows and p features, in bytes."""
        return 8.0 * (self.row_vectors * n + self.feature_vectors * p)

    @classmethod
    def options(cls) -> list[str]:
        """Return the names of the options that the constructor takes."""
        names: set[str] = set()
        for base in cls.__mro__:
            if "__init__" in base.__dict__ and base is not object:
                names |= {n for n, p in inspect.signature(base).parameters.items() if p.kind is not p.VAR_KEYWORD}
        return sorted(names)

    @classmethod
    def serves(cls, risk: Risk | type[Risk]) -> bool:
        """Tell whether this method can train that risk (class or object)."""
        raise NotImplementedError

    @classmethod
    def takes(cls, traits: Collection[str]) -> bool:
        """Tell whether it knows everything that these traits say: of a penalty (`BoundedPenalty.traits`), of base scores."""
        return set(traits) <= {*cls.penalties, *(BASE_SCORES,) * cls.takes_base_scores}

    @classmethod
    def trains(cls, measure: Measure | type[Measure]) -> bool:
        """Tell whether this solver can train for that measure (class or object), given a risk that it serves."""
        return not cls.measures or getattr(measure, "name", "") in cls.measures
