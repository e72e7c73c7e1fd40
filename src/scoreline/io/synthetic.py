"""Generated data: rare positives with heavy tails, and the problems on which cutting planes are provably slow."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scoreline.runtime.checks import check_number
from scoreline.runtime.types import AnyArray, FloatArray


def make_imbalanced(
    n_samples: int = 60_000,
    n_features: int = 40,
    positive_share: float = 0.01,
    n_kinds: int = 3,
    tail: float = 2.0,
    label_noise: float = 0.0005,
    random_state: int = 0,
) -> tuple[FloatArray, AnyArray]:
    """Return (X, y) with a rare positive class made of several kinds of rows.

    Features follow Student's t distribution, which has heavy tails, like amounts of money. Each kind of positive is shifted
    along its own sparse direction, with its own strength and frequency. A small share of all labels is flipped. The tails
    harm the log-loss more than the ranking, so training for AUC pays on this set.

    Parameters
    ----------
    n_samples : int
        Rows.
    n_features : int
        Columns.
    positive_share : float
        Share of positive rows before labels are flipped.
    n_kinds : int
        Kinds of positives; kind k is half as frequent as kind k - 1.
    tail : float
        Degrees of freedom; larger means lighter tails, and less to gain from training for AUC.
    label_noise : float
        Share of flipped labels.
    random_state : int
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        1 for positive rows, else 0.

    Examples
    --------
    >>> from scoreline.io import make_imbalanced
    >>> X, y = make_imbalanced(n_samples=1000, random_state=1)
    >>> X.shape, int(y.sum())
    ((1000, 40), 11)
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_t(tail, size=(n_samples, n_features))
    n_positive = max(1, round(positive_share * n_samples))
    rows = rng.permutation(n_samples)[:n_positive]
    frequency = 0.5 ** np.arange(n_kinds)
    kinds = rng.choice(n_kinds, size=n_positive, p=frequency / frequency.sum())
    for kind in range(n_kinds):
        direction = rng.standard_normal(n_features) * (rng.random(n_features) < 0.25)
        X[rows[kinds == kind]] += (0.8 + 0.5 * kind) * direction
    y = np.zeros(n_samples, dtype=np.int64)
    y[rows] = 1
    flipped = rng.random(n_samples) < label_noise
    y[flipped] = 1 - y[flipped]
    return X, y


@dataclass(frozen=True)
class HardExample:
    """A problem min_w alpha/2 |w|^2 + R(Xw) and the run of a cutting-plane method on it that a theorem describes.

    Attributes
    ----------
    name : str
        Paper and theorem.
    risk : str
        Name of the risk; `measure` is that of a contingency risk, else "".
    solver : str
        "bundle" or "bundle_ls", the method that the theorem is about.
    X, y, w0, alpha : ndarray, ndarray, ndarray, float
        Data, labels +1/-1, starting point, penalty.
    optimum : float
        min J, exactly.
    steps : int
        Iterations for which `objective` is proved.
    objective : callable
        k -> J(w_k), k = 1, 2, ..., with the tie rule "smallest" and no initial plane; None if only a rate is proved.
    point : callable
        k -> w_k, or None.
    """

    name: str
    risk: str
    measure: str
    solver: str
    X: FloatArray
    y: AnyArray
    w0: FloatArray
    alpha: float
    optimum: float
    steps: int
    objective: Callable[[int], float] | None
    point: Callable[[int], FloatArray] | None


def hard_for_cutting_planes(n: int = 8) -> list[HardExample]:
    """Return the counter-examples of Zhang, Saha and Vishwanathan (2010, 2012) with about n rows.

    On all of them the gap of the cutting-plane method after k iterations is of the order of 1/k up to k = n. With n = 1/eps
    it needs 1/eps iterations for a gap of eps, while `smoothed` needs of the order of 1/sqrt(eps). The oracle must break ties
    as in the theorems, for example `HingeRisk(ties="smallest")`. The papers do not give min J for PRBEP and F1; brute force
    for n = 3..9 confirmed these values.

    Parameters
    ----------
    n : int
        Size, at least 3.

    Returns
    -------
    list of HardExample
        2012 Theorem 4 (PRBEP), 2012 Theorem 5 (ROC area), 2010 Theorem 5 (hinge), 2010 Theorem 6 (F1), 2010 Theorem 2 (line
        search; always 4 rows).

    Examples
    --------
    >>> from scoreline.io import hard_for_cutting_planes
    >>> [example.risk for example in hard_for_cutting_planes(10)]
    ['prbep', 'roc_area', 'hinge', 'contingency', 'hinge']
    """
    check_number("n", n, least=3, integer=True)
    return [_prbep(n), _roc_area(n), _hinge(n), _f1(n), _line_search()]


def _spread(fixed: FloatArray, first: int, total: float) -> Callable[[int], FloatArray]:
    """Return k -> w_k: the fixed entries, and the total shared equally by k entries from the first on."""

    def point(k: int) -> FloatArray:
        w = fixed.copy()
        w[first : first + k] = total / k
        return w

    return point


def _prbep(n: int) -> HardExample:
    q, p = np.sqrt(2.0) / 4.0, n + 2
    X, y = np.zeros((n, p)), -np.ones(n, dtype=int)
    X[0, 1], y[0] = q * n, 1
    for i in range(1, n):
        X[i, 2] = X[i, i + 2] = -q * n
    fixed, w0 = np.zeros(p), np.zeros(p)
    fixed[1:3], w0[:3] = 2.0 * q, (1.0, 2.0 * q, 2.0 * q)
    return HardExample(
        "Zhang et al. 2012, Theorem 4", "prbep", "prbep", "bundle", X, y, w0, 1.0, (n - 1) / (2 * n - 1), n - 1,
        lambda k: (2.0 + 1.0 / k) / 4.0, _spread(fixed, 3, 2.0 * q),
    )  # fmt: skip


def _roc_area(n: int) -> HardExample:
    p = n + 2
    X, y = np.zeros((n + 1, p)), -np.ones(n + 1, dtype=int)
    X[0, 1], y[0] = np.sqrt(n), 1
    for i in range(1, n + 1):
        X[i, i + 1] = -n
    fixed, w0 = np.zeros(p), np.zeros(p)
    fixed[1], w0[:2] = 1.0 / np.sqrt(n), (1.0, 1.0 / np.sqrt(n))
    return HardExample(
        "Zhang et al. 2012, Theorem 5", "roc_area", "", "bundle", X, y, w0, 1.0, 1.0 / (4 * n), n,
        lambda k: 0.5 * (1.0 / n + 1.0 / k), _spread(fixed, 2, 1.0),
    )  # fmt: skip


def _hinge(n: int) -> HardExample:
    y = np.where(np.arange(1, n + 1) % 2 == 0, 1, -1)
    X = np.zeros((n, n + 1))
    X[:, 0] = y * np.sqrt(n)
    X[np.arange(n), np.arange(n) + 1] = y * n
    w0 = np.zeros(n + 1)
    w0[0] = 1.0 / np.sqrt(n)
    return HardExample(
        "Zhang et al. 2010, Theorem 5", "hinge", "", "bundle", X, y, w0, 1.0, 1.0 / (4 * n), n,
        lambda k: 0.5 * (1.0 / n + 1.0 / k), _spread(w0, 1, 1.0),
    )  # fmt: skip


def _f1(n: int) -> HardExample:
    X, y = np.zeros((n, n + 1)), -np.ones(n, dtype=int)
    for i in range(n - 1):
        X[i, 0], X[i, i + 1] = -n / (2.0 * np.sqrt(3.0)), -n / 2.0
    X[n - 1, 0], X[n - 1, n], y[n - 1] = np.sqrt(3.0) * n / 2.0, n / 2.0, 1
    w0 = np.zeros(n + 1)
    w0[0] = 1.0 / np.sqrt(3.0)
    return HardExample(
        "Zhang et al. 2010, Theorem 6", "contingency", "f1", "bundle", X, y, w0, 1.0, (n + 8) / (6.0 * (n + 11)), n - 1,
        lambda k: 0.5 * (1.0 / 3.0 + 1.0 / k), _spread(w0, 1, 1.0),
    )  # fmt: skip


def _line_search() -> HardExample:
    X, y, w0 = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array([-1, -1, 1, 1]), np.zeros(1)
    return HardExample(
        "Zhang et al. 2010, Theorem 2", "hinge", "", "bundle_ls", X, y, w0, 1.0 / 16.0, 0.125, 10**9, None, None
    )
