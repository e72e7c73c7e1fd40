"""Rows of a made-up lender: numbers, a category, missing values, and who did not pay back."""

import numpy as np
import pandas as pd

from scoreline import MeasureClassifier


def lender(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": np.exp(rng.normal(10, 1, n)),
            "city": rng.choice(list("abcde"), n, p=[0.4, 0.3, 0.2, 0.09, 0.01]),
        }
    )
    effect = {"a": 0, "b": 1, "c": -1, "d": 0.5, "e": 0}
    odds = -1.0 - (rows.age - 45) / 15 - 0.5 * (np.log(rows.income) - 10) + rows.city.map(effect)
    y = rng.random(n) < 1 / (1 + np.exp(-odds.to_numpy()))
    rows.loc[rng.random(n) < 0.1, "income"] = np.nan
    return rows, y


def trained(measure="roc_auc", n=1500, **options):
    rows, y = lender(n)
    given = {"features": "additive", "alpha": 0.01, "monotone": {"income": -1}} | options
    return MeasureClassifier(measure, **given).fit(rows, y), rows, y


def strange_rows(n=500, seed=1):
    """Return rows like those above with missing, unseen and extreme values in all columns."""
    rng = np.random.default_rng(seed)
    rows, _ = lender(n, seed)
    rows.loc[rng.random(n) < 0.1, "age"] = np.nan
    rows.loc[rng.random(n) < 0.05, "income"] = 1e300
    rows["city"] = np.where(rng.random(n) < 0.1, "zz", rows["city"])
    rows.loc[rng.random(n) < 0.1, "city"] = None
    return rows
