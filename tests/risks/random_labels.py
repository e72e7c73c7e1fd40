"""Labels that tests of risks share."""

import numpy as np


def labels(rng, n, kind=0):
    """Return +1 and -1 in random order: as many of both, few positives or negatives, or one of them, by `kind`."""
    share = (0.5, 0.1, 0.9, 0.0, 1.0)[kind % 5]
    y = np.where(rng.random(n) < share, 1, -1)
    y[0], y[1] = 1, -1
    return y[rng.permutation(n)]
