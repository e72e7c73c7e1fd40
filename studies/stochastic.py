"""Stochastic gradient with a fixed step, which Friedlander and Schmidt (2012) compare with; by scikit-learn's SGDClassifier.

Its loss for the squared hinge is max(0, 1 - m)^2, without our 1/2: 2 J(w) = 2 alpha/2 |w|^2 + mean max(0, 1 - m)^2. So its
alpha is 2 alpha, and a step of length e along the gradient of J is one of e / 2 along that of 2 J. The logistic loss is ours.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier

from scoreline.runtime.types import AnyArray, FloatArray
from studies.datasets import SEED

STEPS = (10.0, 1.0, 0.1, 0.01, 0.001)  # over the mean of |x|^2
FIRST_EPOCH = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1.0)  # looked at within the first epoch
EPOCHS, DENSE_EPOCHS = 30, 10  # after so many epochs only every fifth is looked at
FACTORS = {"squared_hinge": 2.0, "logistic": 1.0}  # the loss of scikit-learn over ours
NAMES = {"squared_hinge": "squared_hinge", "logistic": "log_loss"}


def sgd(risk: str, alpha: float, step: float, **options: Any) -> SGDClassifier:
    """Return a classifier whose steps are those along the gradient of J."""
    factor = FACTORS[risk]
    return SGDClassifier(
        loss=NAMES[risk], penalty="l2", alpha=factor * alpha, learning_rate="constant", eta0=step / factor,
        fit_intercept=False, average=False, random_state=np.random.RandomState(SEED), **options,
    )  # fmt: skip


def stochastic(
    X: Any, y: AnyArray, risk: str, alpha: float, step: float, look: Callable[[float, FloatArray], bool]
) -> None:
    """Run 30 epochs; `look` is told passes and w, and ends the run by False (a run that diverges).

    An epoch reads every row for a score and for an update, and so counts as two passes, as a value and a gradient do.
    """
    order = np.random.default_rng(SEED).permutation(len(y))
    rows, signs, done = X[order], y[order], 0
    model = sgd(risk, alpha, step, shuffle=False)
    for share in FIRST_EPOCH:
        upto = max(done + 1, int(share * len(y)))
        model.partial_fit(rows[done:upto], signs[done:upto], classes=[-1, 1])
        if not look(2.0 * share, model.coef_.ravel()):
            return
        done = upto
    model.set_params(shuffle=True)
    for epoch in range(2, EPOCHS + 1):
        model.partial_fit(rows, signs)
        if (epoch < DENSE_EPOCHS or epoch % 5 == 0) and not look(2.0 * epoch, model.coef_.ravel()):
            return
