"""Generated data with the troubles of fraud and ad data: few positives of several kinds, heavy tails, wrong labels."""

import numpy as np

from scoreline._typing import AnyArray, FloatArray


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

    Features are Student t: heavy tails, like amounts of money. Each kind of positive is shifted along a sparse direction
    of its own, the kinds being of different strength and frequency; a small share of all labels is flipped. Log-loss
    suffers from the tails more than the ranking does, so this is a set on which training for AUC pays.

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
    >>> from scoreline.data import make_imbalanced
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
