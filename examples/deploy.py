"""
Score rows where there is no scoreline
======================================

A trained model can be exported in three formats: SQL for a database, ONNX for a runtime, and JSON for any language. This
example scores the same new payments, with categories and missing values, by all three and by the classifier itself.
"""

import json
import math
import re
import sqlite3
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scoreline import MeasureClassifier, load_model
from scoreline.export import to_json, to_onnx, to_sql
from scoreline.io import read_data
from scoreline.report.axes import label, tidy
from scoreline.report.palette import MODELS, MUTED


def make_payments(rows, seed):
    """Return made-up payments with categories and missing values."""
    rng = np.random.default_rng(seed)
    amount, country = rng.lognormal(3.0, 1.0, rows).round(2), rng.choice(["AT", "DE", "US"], rows)
    risk = -3.5 + 0.5 * np.log(amount) + 0.9 * (country == "US") + rng.logistic(0.0, 0.7, rows)
    frame = pd.DataFrame({"amount": amount, "country": country, "outcome": np.where(risk > 0.0, "fraud", "fine")})
    frame.loc[rng.random(rows) < 0.05, "amount"] = np.nan
    frame.loc[rng.random(rows) < 0.05, "country"] = None
    return frame


# %%
# How to score rows with the JSON document
# ----------------------------------------


def score(document: dict[str, Any], row: dict[str, Any]) -> float:
    """Return the score of a row: what a document of `to_json` means, in plain Python."""
    if "features" in document:
        return document["intercept"] + sum(number_term(each, row[each["name"]]) for each in document["features"])
    total = document["intercept"]
    for column in document["columns"]:
        value = row[column["name"]]
        if value is None or value != value or value in document["missing_texts"]:
            if column["missing"] is None:
                raise ValueError(f"{column['name']} is missing")
            total += column["missing"]
        elif column["kind"] == "number":
            total += number_term(column, float(value))
        else:
            total += column["coefficients"].get(shortest(value) if column["canonical"] else value, column["other"])
    return total


def number_term(column: dict[str, Any], value: float) -> float:
    """Return what a number adds to the score; a model for heavy tails first interpolates between knots."""
    knots = column.get("knots")
    if knots is not None:
        value = min(max(value, knots[0][0]), knots[-1][0])
        for (x, y), (next_x, next_y) in pairwise(knots):
            if x <= value <= next_x:
                return column["coefficient"] * (y + (value - x) * (next_y - y) / (next_x - x))
        value = knots[0][1]  # a column of one value has one knot
    return column["coefficient"] * value


def shortest(text: str) -> str:
    """Return 3 for 3.0, 1.5 for 1.50, 0 for -0, true for True."""
    if re.fullmatch(r"-?(0|[1-9][0-9]*)\.[0-9]*0", text):
        text = text.rstrip("0").rstrip(".")
    return {"-0": "0", "true": "true", "false": "false"}.get(text.lower(), text)


def probability(document: dict[str, Any], score: float) -> float:
    """Return the probability of the second class."""
    calibration = document["calibration"]
    if calibration["low"] is not None:
        score = min(max(score, calibration["low"]), calibration["high"])
    logit = calibration["slope"] * score + calibration["offset"]
    return 1.0 / (1.0 + math.exp(-max(logit, -700.0)))  # Python's exp raises an error where others return infinity


# %%
# Train, export, score
# --------------------


def main(rows=5000):
    """Train, export, and score the same new rows in four ways; return the scores."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as name:
        data = read_data(make_payments(rows, 0), "outcome", positive="fraud", impute="mean")
        clf = MeasureClassifier("f1", scaling="standard").fit(data.X, data.y)
        clf.save(Path(name, "model.npz"), data.encoding)
        clf = load_model(Path(name, "model.npz"))
    payments = make_payments(rows, 1)
    X = read_data(payments, encoding=clf.encoding_).X
    with sqlite3.connect(":memory:") as connection:
        payments.to_sql("payments", connection, index=False)
        statement = to_sql(clf, "payments", keep=["amount", "country"])
        print(statement)
        found = pd.read_sql_query(statement, connection)
    assert (found["prediction"] == clf.predict(X)).all()
    session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())
    predicted, scores = session.run(
        ["label", "score"], {name: payments[[name]].to_numpy() for name in ("amount", "country")}
    )
    assert (predicted == clf.predict(X)).all()
    document = json.loads(json.dumps(to_json(clf)))
    records = payments.astype(object).where(payments.notna(), None).to_dict("records")
    by_hand = np.array([score(document, row) for row in records])
    return clf.decision_function(X), {"SQLite": found["score"], "onnxruntime": scores, "JSON, plain Python": by_hand}


# %%
# Three programs, the same scores
# -------------------------------
# Every payment is on the diagonal three times: as a circle, a square and a cross. The differences are rounding errors.


def draw(expected, by_program):
    """Draw the scores of each program against those of the classifier."""
    ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")[1]
    ax.axline((0, 0), slope=1, color=MUTED, linewidth=1.0, linestyle=":")
    for (program, got), marker, size, colour in zip(by_program.items(), "osx", (13, 8, 5), MODELS, strict=False):
        print(difference := f"{program}: off by at most {np.abs(got - expected).max():.1g}")
        look = {"markersize": size, "markerfacecolor": "none", "color": colour, "linestyle": ""}
        ax.plot(expected[:40], got[:40], marker, **look, label=difference)
    tidy(ax, "both")
    label(ax, "score by scoreline, forty payments", "score by another program")
    ax.legend(frameon=False)
    plt.show()


if __name__ == "__main__":
    draw(*main())
