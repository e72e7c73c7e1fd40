"""The strong-Wolfe search."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cases import for_each
from scoreline.solvers.common.linesearch import strong_wolfe
from tiers import examples

DECREASE, CURVATURE = 1e-4, 0.9


class Recorder:
    """A function that remembers where it was asked."""

    def __init__(self, function):
        self.function, self.steps = function, []

    def __call__(self, a):
        self.steps.append(a)
        return self.function(a)


def quadratic(curvature, minimum):
    return lambda a: (0.5 * curvature * (a - minimum) ** 2, curvature * (a - minimum))


@for_each("curvature", [1e-6, 1.0, 1e6])
@for_each("minimum", [1e-3, 1.0, 1e3])
@for_each("first", [1e-5, 1.0, 1e5])
def test_quadratic(curvature, minimum, first):
    line = Recorder(quadratic(curvature, minimum))
    value, slope = line.function(0.0)
    a = strong_wolfe(line, value, slope, first)
    f, s = line.function(a)
    assert a > 0
    assert f <= value + DECREASE * a * slope
    assert abs(s) <= CURVATURE * abs(slope)
    assert line.steps[-1] == a


def test_quadratic_overshoot_is_interpolated_exactly():
    # The cubic through both ends of a quadratic is the quadratic: the second trial is its minimum.
    line = Recorder(quadratic(2.0, 1.0))
    a = strong_wolfe(line, *line.function(0.0), 2.5)
    assert len(line.steps) == 2
    assert a == pytest.approx(1.0, rel=1e-12)  # a dozen operations


def test_a_good_first_step_costs_one_evaluation():
    line = Recorder(quadratic(1.0, 1.0))
    assert strong_wolfe(line, *line.function(0.0), 0.9) == 0.9
    assert line.steps == [0.9]


@for_each("slope", [0.0, 1e-300, 3.0, math.inf, math.nan])
def test_a_slope_that_does_not_descend_returns_zero_without_a_trial(slope):
    line = Recorder(quadratic(1.0, -1.0))
    assert strong_wolfe(line, 0.5, slope, 1.0) == 0.0
    assert line.steps == []


@for_each("outside", [(math.inf, math.inf), (math.nan, math.nan), (math.inf, 1.0), (1.0, math.nan)])
@for_each("first", [0.2, 1.0, 7.0, 1e6])
def test_infinite_values_are_walls(outside, first):
    def barrier(a):  # -2a - log(1 - a): minimum at 1/2, wall at 1
        return (-2.0 * a - math.log1p(-a), -2.0 + 1.0 / (1.0 - a)) if a < 1.0 else outside

    value, slope = barrier(0.0)
    a = strong_wolfe(barrier, value, slope, first)
    assert 0.0 < a < 1.0
    f, s = barrier(a)
    assert f <= value + DECREASE * a * slope
    assert abs(s) <= CURVATURE * abs(slope)


def test_the_curvature_condition_holds_where_the_value_drops_a_lot():
    # The second trial, 0.66, has slope +0.96 |f'(0)| and a value far below f(0): the allowance for values that agree to
    # rounding (approximate Wolfe) has no business here.
    def barrier(a):
        return -2.0 * a - math.log1p(-a), -2.0 + 1.0 / (1.0 - a)

    a = strong_wolfe(barrier, 0.0, -1.0, 0.999)
    assert abs(barrier(a)[1]) <= CURVATURE


def test_a_wall_everywhere_returns_zero():
    line = Recorder(lambda a: (math.inf, math.inf))
    assert strong_wolfe(line, 1.0, -1.0, 1.0) == 0.0
    assert len(line.steps) <= 30


def test_a_slope_that_lies_returns_zero():
    # The function rises everywhere: no step decreases it, whatever the slope at 0 said.
    line = Recorder(lambda a: (1.0 + a, 1.0))
    assert strong_wolfe(line, 1.0, -1.0, 1.0) == 0.0


def test_max_trials_is_kept_and_the_best_step_returned():
    line = Recorder(lambda a: (-a, -1.0))  # falls for ever: no step is flat enough
    a = strong_wolfe(line, 0.0, -1.0, 1.0, max_trials=5)
    assert line.steps == [1.0, 4.0, 16.0, 64.0, 256.0]
    assert a == 256.0


def test_near_the_optimum_rounding_does_not_hide_the_decrease():
    # f(a) = 1 + 1e-20 (a - 1)^2 / 2 is 1.0 in floating point everywhere near: only the slopes know.
    a = strong_wolfe(lambda a: (1.0, 1e-20 * (a - 1.0)), 1.0, -1e-20, 0.5)
    assert a == 0.5


@examples(1000)
@given(
    data=st.lists(st.tuples(st.floats(-3, 3), st.floats(-5, 5), st.floats(0.01, 5)), min_size=1, max_size=6),
    curvature=st.floats(1e-4, 10),
    drift=st.floats(-5, 5),
    exponent=st.floats(-5, 5),
    smooth=st.booleans(),
)
def test_both_conditions_hold_on_convex_functions(data, curvature, drift, exponent, smooth):
    """Quadratic plus a mixture of softplus (or squared hinge) terms: convex with a continuous slope."""
    k, b, c = np.array(data).T

    def line(a):
        t = k * a + b
        if smooth:
            value, slope = np.logaddexp(0.0, t), k * np.exp(-np.logaddexp(0.0, -t))
        else:
            value, slope = 0.5 * np.maximum(t, 0) ** 2, k * np.maximum(t, 0)
        return float(c @ value + drift * a + 0.5 * curvature * a * a), float(c @ slope + drift + curvature * a)

    value, slope = line(0.0)
    assume(slope < -1e-3)
    a = strong_wolfe(line, value, slope, 10.0**exponent)
    f, s = line(a)
    assert a > 0.0
    # 1e-14 |f(0)| is the search's own allowance where values agree to rounding (approximate Wolfe).
    assert f <= value + DECREASE * a * slope + 1e-14 * abs(value)
    assert abs(s) <= CURVATURE * abs(slope)
