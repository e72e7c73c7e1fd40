"""exp and log1p in the range of the logistic loss, as polynomials that the compiler can vectorise.

The mathematical library computes one number per call. These loops compute four or eight numbers at once and take a fifth of
the time. Both are accurate to about one unit in the last place.
"""

import math

import numpy as np

from scoreline.runtime.compile import kernel

LOWEST = -745.0  # exp of it is the smallest float
LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts. The first ends in zeros, so that its product with k is exact.
LOG2_HIGH = 0.6931471803691238
LOG2_LOW = 1.9082149292705877e-10
POWERS = np.ldexp(1.0, np.arange(-1100, 1))  # of two


@kernel(reorder=True)
def exp_of_negative(x):
    """Return exp(x) for x <= 0, by x = k log 2 + r with |r| <= log(2) / 2 and Taylor's series of exp(r)."""
    x = x if x > LOWEST else LOWEST  # also for NaN, so that the index below is inside the table
    k = math.floor(x * LOG2_E + 0.5)
    r = (x - k * LOG2_HIGH) - k * LOG2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * POWERS[np.uint64(np.int64(k) + 1100)]


@kernel(reorder=True)
def log1p_of_share(e):
    """Return log(1 + e) for 0 <= e <= 1, as 2 artanh(s) = 2 s (1 + s^2/3 + s^4/5 + ...) with s = e / (2 + e) <= 1/3."""
    s = e / (2.0 + e)
    q = s * s
    p = 2.0 / 35.0
    p = p * q + 2.0 / 33.0
    p = p * q + 2.0 / 31.0
    p = p * q + 2.0 / 29.0
    p = p * q + 2.0 / 27.0
    p = p * q + 2.0 / 25.0
    p = p * q + 2.0 / 23.0
    p = p * q + 2.0 / 21.0
    p = p * q + 2.0 / 19.0
    p = p * q + 2.0 / 17.0
    p = p * q + 2.0 / 15.0
    p = p * q + 2.0 / 13.0
    p = p * q + 2.0 / 11.0
    p = p * q + 2.0 / 9.0
    p = p * q + 2.0 / 7.0
    p = p * q + 2.0 / 5.0
    p = p * q + 2.0 / 3.0
    p = p * q + 2.0
    return p * s
