"""Scorers work where scikit-learn asks for one made by make_scorer."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV

from cases import fewer, for_each
from scoreline.measures import get_scorer


@for_each("measure", fewer(["f1", "gmean", "mcc", "recall_at_precision"], in_quick=["f1"]))
def test_the_threshold_tuner_takes_our_scorers(measure):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = (X[:, 0] + rng.standard_normal(600) > 1.2).astype(int)
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=get_scorer(measure), cv=3).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    score = get_scorer(measure)
    assert score(tuned, X, y) >= score(plain, X, y) - 0.05
    assert tuned.best_score_ > 0.0
