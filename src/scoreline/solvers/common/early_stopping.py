"""Early stopping: end a run where the measure on validation rows no longer grows, and keep the point where it was best."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scoreline.runtime.checks import check_number
from scoreline.runtime.types import FloatArray

STOPPED = "early_stopping"  # status of a run whose point is not the last one


@dataclass(frozen=True, eq=False)
class EarlyStopping:
    """End a fit by the measure on validation rows: `solver_params={"early_stopping": EarlyStopping(...)}`, or its share.

    After every iteration (or pass of "spade" and "stamp") that has lowered J, the measure is evaluated on the validation rows,
    for count-based measures at the best threshold there. `history_["validation"]` has the values. The coefficients with the
    best value are the result, even if the fit ends for another reason. objective_, lower_bound_ and gap_ belong to these
    coefficients and remain a valid certificate. status_ is "early_stopping" unless the last coefficients were the best. With
    threshold="auto" the threshold of count-based measures is tuned on the validation rows, and probabilities are fitted on
    them.

    Parameters
    ----------
    validation : float or tuple
        Share of the rows of either class to hold out, which are not trained on; or your own rows as (X, y) or
        (X, y, sample_weight), which are not copied.
    patience : int
        The fit ends after this many points in a row without a better value.
    least_gain : float
        Least increase over the best value that counts as better.
    """

    validation: Any = 0.1
    patience: int = 10
    least_gain: float = 0.0
    fingerprint: str = field(default="", init=False)  # of the user's rows, for checkpoints

    def __post_init__(self) -> None:
        check_number("patience", self.patience, least=1, integer=True)
        check_number("least_gain", self.least_gain, least=0)
        if isinstance(self.validation, (tuple, list)):
            if len(self.validation) not in (2, 3):
                raise ValueError(
                    f"validation has {len(self.validation)} parts, expected (X, y) or (X, y, sample_weight), or a share of rows"
                )
        else:
            check_number("validation", self.validation, above=0)
            if self.validation > 0.5:
                raise ValueError(f"validation={self.validation!r} must be a share of the rows, at most 0.5")

    @classmethod
    def of(cls, option: Any) -> "EarlyStopping | None":
        """Return the settings of an option `early_stopping`: an EarlyStopping, a share, True for a tenth, or None."""
        if option is None or option is False or isinstance(option, cls):
            return option or None
        if option is True:
            return cls()
        if isinstance(option, (float, np.floating)):
            return cls(float(option))
        shown = "a tuple; write EarlyStopping((X, y))" if isinstance(option, (tuple, list)) else f"{option!r:.100}"
        raise ValueError(f"early_stopping must be an EarlyStopping, a share of the rows like 0.1, or True, got {shown}")

    @property
    def share(self) -> float | None:
        """The share of rows to hold out; None for rows of the user."""
        return None if isinstance(self.validation, (tuple, list)) else float(self.validation)

    def __repr__(self) -> str:
        rows = f"{len(self.validation[1])} rows" if self.share is None else f"{self.share:g}"
        known = f", {self.fingerprint}" if self.fingerprint else ""
        return f"EarlyStopping({rows}, patience={self.patience}, least_gain={self.least_gain:g}{known})"

    def known_by(self, fingerprint: str) -> "EarlyStopping":
        """Return the same settings with a fingerprint of their rows."""
        same = EarlyStopping(self.validation, self.patience, self.least_gain)
        object.__setattr__(same, "fingerprint", fingerprint)
        return same

    def __deepcopy__(self, memo: dict[int, Any]) -> "EarlyStopping":
        """Return itself: it is immutable, and clones of an estimator must not copy X."""
        return self


class Watch:
    """Evaluates points of a run, and stores the best in a dict that is part of checkpoints."""

    def __init__(self, settings: EarlyStopping, value: Callable[[FloatArray], float]):
        self.settings, self.value = settings, value

    def see(self, known: dict[str, Any], w: FloatArray, objective: float) -> dict[str, Any]:
        """Return the state after w; a point with the objective of the last one is not new."""
        if known and known["seen"] == objective:
            return known
        value = float(self.value(w))
        if not known or value > known["best"] + self.settings.least_gain:
            return {"w": w.copy(), "objective": objective, "best": value, "seen": objective, "value": value, "tried": 0}
        return known | {"seen": objective, "value": value, "tried": known["tried"] + 1}

    def over(self, known: dict[str, Any]) -> bool:
        """Tell whether the run must end."""
        return bool(known) and known["tried"] >= self.settings.patience
