"""J(w) = Omega(w) + R(Xw) of every risk without rounding: fractions, or 60 digits where there are logs and roots.

`exact_objective(risk, X, y, weight, w, alpha)` takes the floats of X, weight, w and alpha literally and returns a Fraction.
Omega is alpha/2 |w|^2, or that of a `BoundedPenalty`.
Each formula is the definition of docs/math, written a second time: pairs one by one, biases at every kink, worst labellings and
rankings by tables over all counts. For small n.

`exact_features(operator, X)` is the matrix that a wrapped operator stands for: (X - center) * scale and a constant column.
"""

import functools
from fractions import Fraction

import mpmath
import numpy as np
import scipy.sparse as sp

from scoreline.operators import InterceptOperator
from scoreline.operators.wrappers import ScaledOperator

DIGITS = 60
ZERO, ONE = Fraction(0), Fraction(1)


def fraction(value):
    """Return a number, a NumPy scalar or an mpf as a fraction, exactly."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, mpmath.mpf):
        sign, mantissa, exponent, _ = value._mpf_
        signed = -mantissa if sign else mantissa
        return Fraction(signed * 2**exponent) if exponent >= 0 else Fraction(signed, 2**-exponent)
    return Fraction(int(value)) if isinstance(value, (int, np.integer, np.bool_)) else Fraction(float(value))


def real(value):
    """Return a fraction as an mpf of DIGITS digits."""
    return mpmath.mpf(value.numerator) / value.denominator


def fractions(values):
    """Return a list of fractions."""
    return [fraction(v) for v in values]


def exact_features(operator, X):
    """Return the rows that the operator stands for as lists of fractions, its wrappers around X worked out exactly."""
    if isinstance(operator, InterceptOperator):
        value = fraction(operator.value)
        return [[*row, value] for row in exact_features(operator.inner, X)]
    if isinstance(operator, ScaledOperator):
        rows, scale = exact_features(operator.inner, X), fractions(operator.scale)
        center = [ZERO] * len(scale) if operator.center is None else fractions(operator.center)
        return [[(x - c) * s for x, c, s in zip(row, center, scale, strict=True)] for row in rows]
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    return [fractions(row) for row in dense]


def exact_objective(risk, rows, y, weight, w, alpha, penalty=None):
    """Return J(w) as a fraction; `rows` is a matrix or what `exact_features` returned."""
    rows = rows if isinstance(rows, list) else exact_features(None, rows)
    w = fractions(w)
    z = [sum((x * v for x, v in zip(row, w, strict=True) if x and v), ZERO) for row in rows]
    return fraction(alpha) * exact_penalty(w, penalty) + exact_risk(risk, z, y, weight)


def exact_penalty(w, penalty):
    """Return omega(w) as a fraction, 1/2 |w|^2 without a penalty; w lies within its bounds."""
    if penalty is None:
        return sum(v * v for v in w) / 2
    assert all(low <= v <= high for v, low, high in zip(w, penalty.lower, penalty.upper, strict=True))
    terms = zip(fractions(penalty.quadratic), fractions(penalty.absolute), w, strict=True)
    total = sum((q * v * v / 2 + a * abs(v) for q, a, v in terms), ZERO)
    if penalty.norms is not None:
        with mpmath.workdps(DIGITS):
            for g, norm in enumerate(fractions(penalty.norms)):
                total += norm * _root(sum((v * v for v, own in zip(w, penalty.groups, strict=True) if own == g), ZERO))
    return total


def exact_risk(risk, z, y, weight):
    """Return R(z) as a fraction (to DIGITS digits where the definition has logarithms or roots)."""
    s = [ONE] * len(z) if weight is None else fractions(weight)
    positive = [label > 0 for label in np.asarray(y).tolist()]
    with mpmath.workdps(DIGITS):
        return fraction(FORMULAS[risk.name](risk, fractions(z), positive, s))


def _sides(z, positive, s):
    """Return [(score, weight)] of the positives and of the negatives, rows of weight 0 left out."""
    weighted = [(v, q, p) for v, q, p in zip(z, s, positive, strict=True) if q]
    return [(v, q) for v, q, p in weighted if p], [(v, q) for v, q, p in weighted if not p]


def _copies(z, positive, s):
    """Return scores of the positives and of the negatives, a row of whole weight as that many."""
    sides = _sides(z, positive, s)
    assert all(q.denominator == 1 for side in sides for _, q in side), "weights that are copies are whole numbers"
    return [[v for v, q in side for _ in range(int(q))] for side in sides]


def _margins(z, positive):
    return [v if p else -v for v, p in zip(z, positive, strict=True)]


def _hinge(risk, z, positive, s):
    return sum(q * max(ZERO, 1 - m) for q, m in zip(s, _margins(z, positive), strict=True)) / sum(s)


def _squared_hinge(risk, z, positive, s):
    return sum(q * max(ZERO, 1 - m) ** 2 for q, m in zip(s, _margins(z, positive), strict=True)) / (2 * sum(s))


def _logistic(risk, z, positive, s):
    total = ZERO
    for q, m in zip(s, _margins(z, positive), strict=True):
        # log(1 + exp(-m)) = max(0, -m) + log(1 + exp(-|m|)); beyond 200 the last term is below 1e-86.
        small = mpmath.log1p(mpmath.exp(-real(abs(m)))) if abs(m) < 200 else mpmath.mpf(0)
        total += q * (max(ZERO, -m) + fraction(small))
    return total / sum(s)


def _balanced(z, positive, s, offset, scale):
    """Return scale min_tau sum_P s max(0, offset - z - tau) + sum_N s max(0, z + tau): the least is at a kink."""
    above, below = _sides(z, positive, s)
    kinks = {offset - v for v, _ in above} | {-v for v, _ in below}

    def at(tau):
        return sum(q * max(ZERO, offset - v - tau) for v, q in above) + sum(q * max(ZERO, v + tau) for v, q in below)

    return scale * min(at(tau) for tau in kinks)


def _free_intercept(risk, z, positive, s):
    return _balanced(z, positive, s, Fraction(2), 1 / sum(s))


def _prbep(risk, z, positive, s):
    plus = sum(q for q, p in zip(s, positive, strict=True) if p)
    return _balanced(z, positive, s, sum(s) / (2 * plus), 2 / sum(s))


def _pairs(above, below, power=1):
    return sum(p * q * max(ZERO, 1 - a + b) ** power for a, p in above for b, q in below)


def _roc_area(risk, z, positive, s):
    above, below = _sides(z, positive, s)
    return _pairs(above, below) / (sum(p for _, p in above) * sum(q for _, q in below))


def _roc_area_squared(risk, z, positive, s):
    above, below = _sides(z, positive, s)
    return _pairs(above, below, 2) / (2 * sum(p for _, p in above) * sum(q for _, q in below))


def _partial_roc(risk, z, positive, s):
    above, below = _sides(z, positive, s)
    minus, rate = sum(q for _, q in below), fraction(risk.max_fpr)
    if all(q.denominator == 1 for q in s):  # of all rows: those of weight 0 are whole too
        top = min(minus, max(ONE, Fraction((rate * minus + Fraction(1, 10**9)).__floor__())))
    else:
        top = min(minus, max(minus / sum(not p for p in positive), rate * minus))
    left, counted = top, []
    for v, q in sorted(below, reverse=True):
        counted.append((v, min(q, left)))
        left -= min(q, left)
    return _pairs(above, counted) / (sum(p for _, p in above) * top)


def _average_precision(risk, z, positive, s):
    """Return the largest value over all merges of the two orders (n+ positives at most n- negatives deep)."""
    f, g = (sorted(side, reverse=True) for side in _copies(z, positive, s))
    n, m = len(f), len(f) * len(g)
    passed = [ZERO]
    for v in g:
        passed.append(passed[-1] + v)
    after = [ZERO] * (len(g) + 1)  # the best of what follows when i positives and j negatives are ranked
    for i in range(n - 1, -1, -1):
        step = [
            after[j] + Fraction(j, (i + 1 + j) * n) - Fraction(2, m) * (j * f[i] - passed[j]) for j in range(len(g) + 1)
        ]
        for j in range(len(g) - 1, -1, -1):
            step[j] = max(step[j], step[j + 1])
        after = step
    return after[0]


def _ratio(a, b):
    return a / b if b else ZERO


def _root(value):
    return fraction(mpmath.sqrt(real(value)))


def _correlation(tp, fp, fn, tn):
    square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / _root(square) if square else ZERO


def exact_measure(measure, tp, fp, fn, tn):
    """Return the measure of fractions; one that is not written down here is taken as it computes itself."""
    tpr, tnr = _ratio(tp, tp + fn), _ratio(tn, tn + fp)
    beta2 = fraction(getattr(measure, "beta", 1.0)) ** 2
    sigma = fraction(getattr(measure, "sigma", 0.5))
    written = {
        "accuracy": lambda: (tp + tn) / (tp + fp + fn + tn),
        "balanced_accuracy": lambda: (tpr + tnr) / 2,
        "f1": lambda: _ratio(2 * tp, 2 * tp + fn + fp),
        "fbeta": lambda: _ratio((1 + beta2) * tp, (1 + beta2) * tp + beta2 * fn + fp),
        "jaccard": lambda: _ratio(tp, tp + fp + fn),
        "gower_legendre": lambda: _ratio(tp + tn, tp + tn + sigma * (fp + fn)),
        "gmean": lambda: _root(tpr * tnr),
        "hmean": lambda: _ratio(2 * tpr * tnr, tpr + tnr),
        "qmean": lambda: 1 - _root(((1 - tpr) ** 2 + (1 - tnr) ** 2) / 2),
        "min_tpr_tnr": lambda: min(tpr, tnr),
        "mcc": lambda: _correlation(tp, fp, fn, tn),
        "kappa": lambda: _ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)),
    }
    if measure.name in written:
        return written[measure.name]()
    return fraction(measure.from_counts(*(float(v) for v in (tp, fp, fn, tn))))


@functools.lru_cache(maxsize=256)
def _losses(measure, plus, minus, k):
    """Return [(b, c, loss)]: 1 - measure with b positives and c negatives flipped, where the measure knows such a labelling."""
    found = []
    for b in range(plus + 1):
        for c in range(minus + 1):
            if measure.name in ("prbep", "precision_at_k", "recall_at_k"):
                if plus - b + c == k:
                    found.append((b, c, 1 - Fraction(plus - b, k if measure.name == "precision_at_k" else plus)))
            else:
                counts = fractions((plus - b, c, b, minus - c))
                found.append((b, c, 1 - exact_measure(measure, *counts)))
    return found


def _contingency(risk, z, positive, s):
    name = risk.measure.name
    above, below = _sides(z, positive, s)
    plus, minus = sum(q for _, q in above), sum(q for _, q in below)
    h = 2 / (plus + minus)
    prices = {
        "accuracy": [(1 / (plus + minus), 1 / (plus + minus))],
        "balanced_accuracy": [(1 / (2 * plus), 1 / (2 * minus))],
        "min_tpr_tnr": [(1 / plus, ZERO), (ZERO, 1 / minus)],
    }
    if name in prices:  # every row decides alone, also one of a weight that is no whole number
        return max(
            sum(q * max(ZERO, p - h * v) for v, q in above) + sum(q * max(ZERO, r + h * v) for v, q in below)
            for p, r in prices[name]
        )
    f, g = _copies(z, positive, s)
    k = _rows_at_top(risk.measure, len(f), len(f) + len(g)) if name.endswith("_at_k") else len(f)
    gains = [ZERO], [ZERO]
    for gain, scores in zip(gains, ([-v for v in sorted(f)], sorted(g, reverse=True)), strict=True):
        for v in scores:
            gain.append(gain[-1] + h * v)
    values = [loss + gains[0][b] + gains[1][c] for b, c, loss in _losses(risk.measure, len(f), len(g), k)]
    return max(ZERO, max(values)) if risk.shift == "linear" else max(values)


def _rows_at_top(measure, plus, total):
    if measure.k is None:
        return plus
    return max(1, round(measure.k * total)) if isinstance(measure.k, float) else measure.k


def _entropy(risk, z, positive, s):
    """Return mu log sum over counts of exp(loss / mu) e_b(positives) e_c(negatives), e of exp(-+ 2 z / (n mu))."""
    f, g = _copies(z, positive, s)
    n = len(f) + len(g)
    fixed = risk.measure.name == "prbep"
    labellings = mpmath.log(mpmath.binomial(n, len(f))) if fixed else n * mpmath.log(2)
    mu = mpmath.mpf(risk.within) / labellings
    tables = []
    for scores in ([-v for v in f], g):
        symmetric = [mpmath.mpf(1)]
        for v in scores:
            factor = mpmath.exp(2 * real(v) / (n * mu))
            symmetric = [
                (symmetric[i] if i < len(symmetric) else 0) + (factor * symmetric[i - 1] if i else 0)
                for i in range(len(symmetric) + 1)
            ]
        tables.append(symmetric)
    total = mpmath.mpf(0)
    for b, c, loss in _losses(risk.measure, len(f), len(g), len(f)):
        total += mpmath.exp(real(loss) / mu) * tables[0][b] * tables[1][c]
    return mu * mpmath.log(total)


FORMULAS = {
    "average_precision": _average_precision,
    "contingency": _contingency,
    "contingency_entropy": _entropy,
    "hinge": _hinge,
    "hinge_free_intercept": _free_intercept,
    "logistic": _logistic,
    "partial_roc": _partial_roc,
    "prbep": _prbep,
    "roc_area": _roc_area,
    "roc_area_squared": _roc_area_squared,
    "squared_hinge": _squared_hinge,
}
