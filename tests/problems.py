"""Made problems that tests of many rooms share: rows with labels, and objectives on them."""

import numpy as np
from sklearn.datasets import make_classification

from scoreline.objective import Objective
from scoreline.operators import InterceptOperator, as_operator
from scoreline.risks.registry import get_risk


def linear_rows(n, p, seed=0, noise=1.0, shift=0.0):
    """Return normal rows and labels -1 and +1: where a linear score with noise is above the shift. Both labels occur."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X @ rng.standard_normal(p) + noise * rng.standard_normal(n) > shift, 1, -1)
    y[:2] = 1, -1
    return X, y


def overlapping_rows(n, p, seed=0, informative=3, redundant=0, share=0.3, separation=0.6, flipped=0.1):
    """Return rows of two classes, 0 and 1, in clusters that overlap; some labels are wrong."""
    return make_classification(
        n,
        p,
        n_informative=informative,
        n_redundant=redundant,
        weights=[1.0 - share],
        class_sep=separation,
        flip_y=flipped,
        random_state=seed,
    )


def made_objective(X, y, risk, alpha, weight=None, intercept=False, storage=as_operator):
    """Return the objective of a risk, by name or object; `intercept=None` adds a constant feature where the risk needs one."""
    operator, risk = storage(X), get_risk(risk) if isinstance(risk, str) else risk
    if risk.shift == "needed" if intercept is None else intercept:
        operator = InterceptOperator(operator)
    return Objective(operator, risk.prepare(y, weight), alpha)
