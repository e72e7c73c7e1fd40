"""A strong-Wolfe search along a line on which values and slopes cost no pass over X."""

import math
from collections.abc import Callable
from typing import NamedTuple


class Trial(NamedTuple):
    """A step with the value and the slope there."""

    step: float
    value: float
    slope: float


def strong_wolfe(
    line: Callable[[float], tuple[float, float]],
    value: float,
    slope: float,
    step: float,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    max_trials: int = 30,
) -> float:
    """Return a step a with f(a) <= f(0) + decrease a f'(0) and |f'(a)| <= curvature |f'(0)|, or 0.0 if there is none.

    Brackets the minimum and interpolates by cubics (Nocedal and Wright, section 3.5). Close to the optimum, where f(a)
    and f(0) agree to rounding, the slopes alone decide (as in the approximate Wolfe conditions of Hager and Zhang 2005).

    Parameters
    ----------
    line : callable
        Maps a step to (value, slope).
    value, slope : float
        At step 0; the slope must be negative.
    step : float
        First trial.
    decrease, curvature : float
        The two constants.
    max_trials : int
        Evaluations at most; the best step with a decrease is then returned.

    Returns
    -------
    float
        The step; it is the last one evaluated unless the trials ran out.
    """
    if not slope < 0.0:
        return 0.0
    noise = 1e-14 * max(abs(value), 1e-300)
    low, high = Trial(0.0, value, slope), None
    best = low
    for _ in range(max_trials):
        f, s = line(step)
        if math.isfinite(f) and math.isfinite(s):
            enough = f <= value + decrease * step * slope
            flat_enough = abs(s) <= -curvature * slope
            nearly_equal = abs(f - value) <= noise  # the decrease drowns in rounding: trust the slopes
            if flat_enough and (enough or nearly_equal):
                return step
            trial = Trial(step, f, s)
            if enough and f < best.value:
                best = trial
            if enough and s < 0.0:
                low = trial
            else:
                high = trial
        else:
            high = Trial(step, math.inf, math.inf)
        if high is None:
            step *= 4.0  # a trial is cheap, and a convex function that still falls wants a longer step
        else:
            step = _interpolate(low, high)
            if not low.step < step < high.step:  # the bracket is down to neighbouring numbers
                break
    return best.step


def _interpolate(low: Trial, high: Trial) -> float:
    """Return the minimum of the cubic through both ends, kept a tenth of the bracket away from each."""
    width = high.step - low.step
    if not math.isfinite(high.value):
        return low.step + 0.1 * width
    d1 = low.slope + high.slope - 3.0 * (high.value - low.value) / width
    root = d1 * d1 - low.slope * high.slope
    position = 0.5
    if root >= 0.0:
        d2 = math.sqrt(root)
        denominator = high.slope - low.slope + 2.0 * d2
        if denominator > 0.0:
            position = 1.0 - (high.slope + d2 - d1) / denominator
    return low.step + min(0.9, max(0.1, position)) * width
