"""What a study is: cells that are computed one by one, and what they say beside the paper."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from studies.datasets import Datasets


class Cell(NamedTuple):
    """A piece of work with a name: what it returns is plain (dicts, lists, numbers, text), so that it can be kept."""

    key: str
    run: Callable[[], Any]


class Table(NamedTuple):
    """A table: cells are text, all columns but the first are aligned to the right."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


class Claim(NamedTuple):
    """What the paper says, what was found, whether it holds (None: not judged here), and why not.

    `found` is about the experiment as the paper prints it, and alone decides; `defaults` is the same with the defaults of this
    library, where they differ.
    """

    text: str
    paper: str
    found: str
    holds: bool | None
    reason: str = ""
    defaults: str = ""

    @property
    def verdict(self) -> str:
        """One word."""
        return {True: "reproduces", False: "does NOT reproduce", None: "not judged"}[self.holds]


@dataclass
class Findings:
    """What a study says: tables, claims, figures (functions that draw on a Matplotlib figure), what is missing.

    `missing` are data sets, `left` cells that a run with a limit of time did not come to, and `seconds` what the others took.
    """

    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    figures: dict[str, Callable[[Any], None]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def reproduces(self) -> bool | None:
        """Whether all judged claims hold; None if none was judged."""
        verdicts = [claim.holds for claim in self.claims if claim.holds is not None]
        return all(verdicts) if verdicts else None


class Study(ABC):
    """The tables and figures of one paper, by solvers of this library alone.

    Parameters
    ----------
    data : Datasets
        Where data sets come from.
    quick : bool
        Small problems: minutes become seconds, and figures change.
    limit : float, optional
        Seconds of one fit, instead of those of the study.

    Attributes
    ----------
    name : str
        The name of the paper here: zhang2012.
    paper : str
        Authors, year, title.
    claim : str
        One line: what it says.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    claim: ClassVar[str]

    def __init__(self, data: Datasets, quick: bool = False, limit: float | None = None):
        self.data, self.quick, self.limit = data, quick, limit

    def limit_of_a_fit(self, quick: float, full: float) -> float:
        """Return the seconds of one fit: those that were asked for, or those of a quick and of a full run."""
        if self.limit is not None:
            return self.limit
        return quick if self.quick else full

    @abstractmethod
    def cells(self) -> list[Cell]:
        """Return the work, in the order in which it is done."""

    @abstractmethod
    def findings(self, results: Mapping[str, Any]) -> Findings:
        """Return what the results (key of a cell to what it returned) say beside the paper; cells may be missing."""
