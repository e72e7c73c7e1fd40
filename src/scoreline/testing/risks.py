"""Checks that a risk satisfies the contract of `risks/base.py`."""

from typing import Any

import numpy as np

from scoreline.risks.base import Risk
from scoreline.runtime.types import FloatArray


def check_risk(risk: Risk, *, n: int = 40, trials: int = 20, seed: int = 0) -> None:
    """Check a risk against its literal reference and against the properties that solvers rely on.

    Value and gradient must equal the reference, also with ties, one positive, n+ > n-, and weights. Integer weights must equal
    repeated rows. Gradients must match finite differences where the risk is smooth. Every evaluation must give a plane below
    the risk, and the smoothed risk must lie within `looseness` widths below it. The declared reaction to a shift of all scores
    must be true.

    Parameters
    ----------
    risk : Risk
        Not prepared yet.
    n : int
        Rows of the random problems.
    trials : int
        Number of random problems.
    seed : int
        Seed of the random problems.
    """
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        z, y, s = _problem(n, trial, rng)
        for weight in (None, s):
            _check_against_reference(risk, z, y, weight, rng)
        _check_weights_are_repeats(risk, z, y, s)
        _check_planes(risk, z, y, s, rng)
        _check_shift(risk, z, y)
    _check_differences(risk, n, rng)
    if risk.curved:
        _check_curvature(risk, n, rng)


def _problem(n: int, trial: int, rng: Any) -> tuple[FloatArray, Any, FloatArray]:
    """Return scores, labels and integer weights: Gaussian, tied, all equal, huge, one positive, mostly positive."""
    share = (0.5, 0.1, 0.9, 0.0, 1.0)[trial % 5]
    y = np.where(rng.random(n) < share, 1, -1)
    y[0], y[1] = 1, -1
    z = rng.standard_normal(n) * (1.0, 5.0, 0.1, 1.0)[trial % 4]
    if trial % 4 == 3:
        z = np.round(z)
    if trial == 6:
        z = np.zeros(n)
    if trial == 7:
        z = z * 1e6
    s = rng.integers(0, 4, size=n).astype(float)
    s[:2] = 1.0
    return z, y, s


def _mus(risk: Risk, prepared: Risk) -> list[float]:
    widths = (0.0, 1e-6, 0.3, 5.0) if risk.smoothable else (0.0,)
    return [w / prepared.ramp_scale if w else 0.0 for w in widths]


def _check_curvature(risk: Risk, n: int, rng: Any) -> None:
    """Compare second derivatives with differences of the gradient, away from the kink of its slope at margin 1."""
    y = np.where(rng.random(n) < 0.3, 1, -1)
    y[:2] = 1, -1
    z = rng.standard_normal(n) * 3.0
    z = np.where(np.abs(y * z - 1.0) < 1e-3, z + 0.1, z)
    step = 1e-5
    for weight in (None, rng.integers(0, 3, size=n) + (np.arange(n) < 2).astype(float)):
        prepared = risk.prepare(y, weight)
        difference = (prepared.value_grad(z + step)[1] - prepared.value_grad(z - step)[1]) / (2.0 * step)
        np.testing.assert_allclose(prepared.curvature(z), difference, atol=1e-10)  # step^2 of the third derivative


def _check_against_reference(risk: Risk, z: FloatArray, y: Any, weight: FloatArray | None, rng: Any) -> None:
    prepared = risk.prepare(y, weight)
    for mu in _mus(risk, prepared):
        got = prepared.evaluate(z, mu)
        value, grad, plane = risk.reference(z, y, weight, mu)
        size = max(1.0, np.abs(z).max(), value, abs(plane))
        assert abs(got.value - value) <= 1e-12 * size, f"{risk.name}: value {got.value}, reference {value}, mu {mu}"
        assert abs(got.hard - risk.reference(z, y, weight)[0]) <= 1e-12 * size, f"{risk.name}: hard value, mu {mu}"
        if risk.smooth or risk.smoothable:
            # The plane is made of gradient times scores, and a steep risk magnifies the rounding of scores in the gradient.
            loss = 1.0 if risk.steepness <= 1.0 else risk.steepness * size
            assert abs(got.plane - plane) <= 1e-12 * size * loss, (
                f"{risk.name}: plane {got.plane}, reference {plane}, mu {mu}"
            )
        else:  # several labellings may be the worst: any of them, but its plane must touch
            touching = abs(got.plane + float(np.dot(got.grad, z)) - value) <= 1e-12 * size
            assert touching, f"{risk.name}: the plane does not touch the risk, mu {mu}"
            assert abs(np.abs(got.grad).sum() - got.mass) <= 1e-12, f"{risk.name}: mass is the sum of |grad|"
        if mu > 0.0 or risk.smooth:
            # At a kink any subgradient is right, and a narrow ramp magnifies the rounding of scores.
            tolerance = 1e-13 * size * risk.steepness / min(1.0, mu * prepared.ramp_scale if mu else 1.0)
            np.testing.assert_allclose(got.grad, grad, atol=max(1e-14, tolerance), rtol=1e-9)
        assert prepared.value(z) == got.hard or abs(prepared.value(z) - got.hard) <= 1e-14 * size
        out = np.empty(len(z))
        assert prepared.evaluate(z, mu, out=out).grad is out, "the gradient must go into `out`"


def _check_weights_are_repeats(risk: Risk, z: FloatArray, y: Any, s: FloatArray) -> None:
    rows = np.repeat(np.arange(len(z)), s.astype(int))
    weighted, repeated = risk.prepare(y, s), risk.prepare(y[rows])
    assert np.isclose(weighted.ramp_scale, repeated.ramp_scale, rtol=1e-14)
    for mu in _mus(risk, weighted):
        a, b = weighted.evaluate(z, mu), repeated.evaluate(z[rows], mu)
        size = max(1.0, np.abs(z).max(), a.value)
        assert abs(a.value - b.value) <= 1e-12 * size, (
            f"{risk.name}: weights differ from repeats by {a.value - b.value}"
        )
        summed = np.zeros(len(z))
        np.add.at(summed, rows, b.grad)
        tolerance = 1e-13 * size * risk.steepness / min(1.0, mu * weighted.ramp_scale if mu else 1.0)
        np.testing.assert_allclose(a.grad, summed, atol=max(1e-14, tolerance), rtol=1e-9)


def _check_planes(risk: Risk, z: FloatArray, y: Any, s: FloatArray, rng: Any) -> None:
    prepared = risk.prepare(y, s)
    for mu in _mus(risk, prepared):
        got = prepared.evaluate(z, mu)
        width = mu * prepared.ramp_scale
        size = max(1.0, np.abs(z).max(), got.hard)
        lowest = got.hard - prepared.looseness * width - 1e-12 * size
        assert lowest <= got.value <= got.hard + 1e-12 * size, "R - looseness * width <= R_mu <= R"
        assert got.hard >= 0.0, "risks must not be negative: (0, 0) is used as a plane"
        for other in (z, np.zeros_like(z), -z, z + rng.standard_normal(len(z)), 10.0 * z):
            value = prepared.value(other)
            slack = value - got.plane - float(np.dot(got.grad, other))
            scale = max(size, np.abs(other).max(), value, abs(got.plane))  # rounding is relative to what is added
            assert slack >= -1e-12 * scale, f"{risk.name}: plane lies {-slack:.3g} above the risk (mu {mu})"


def _check_shift(risk: Risk, z: FloatArray, y: Any) -> None:
    prepared = risk.prepare(y)
    size = max(1.0, np.abs(z).max())
    changed = abs(prepared.value(z + 3.0) - prepared.value(z)) > 1e-12 * size
    if risk.shift == "invariant":
        assert not changed, f"{risk.name} says it is invariant to a shift of all scores, and is not"


def _check_differences(risk: Risk, n: int, rng: Any) -> None:
    """Central differences of the smooth (or smoothed) risk along random directions; error O(h^2) plus rounding / h."""
    z, y, s = _problem(n, 0, rng)
    prepared = risk.prepare(y, s)
    mu = 0.5 / prepared.ramp_scale if risk.smoothable else 0.0
    h = 1e-5
    for _ in range(10):
        d = rng.standard_normal(n)
        slope = float(np.dot(prepared.evaluate(z, mu).grad, d))
        difference = (prepared.evaluate(z + h * d, mu).value - prepared.evaluate(z - h * d, mu).value) / (2 * h)
        assert abs(slope - difference) <= 1e-6 * max(1.0, abs(slope)), f"{risk.name}: {slope} against {difference}"
