"""Classifiers to export, and other programs that run what was exported."""

import copy
import functools
import importlib.util
import sqlite3
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow as pa
from scipy.special import expit

from scoreline import MeasureClassifier, MeasureClassifierCV

CALIBRATION = np.array([0.7, -0.2])
LABELS = {
    "bool": (False, True),
    "int": (0, 1),
    "signs": (-1, 1),
    "int8": (np.int8(3), np.int8(7)),
    "large": (0, 2**62),
    "float": (0.0, 1.0),
    "fraction": (0.5, 1.5),
    "text": ("it's", 'ö "yes"'),
}


def rows(n=200, p=5, seed=0):
    """Return rows and which of them are positive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.logspace(-1, 2, p)
    return X, X[:, 0] * 10 + rng.standard_normal(n) > 0.8


def made(coef, intercept=0.0, classes=(0, 1), calibration=None, cls=MeasureClassifier, **attributes):
    """Return a classifier that was not trained, with the given numbers."""
    clf = cls("f1")
    clf.coef_ = np.array([coef], dtype=np.float64)
    clf.intercept_, clf.classes_ = np.array([float(intercept)]), np.array(classes)
    clf.n_features_in_, clf.uses_base_scores_ = len(coef), False
    if calibration is not None:
        clf.calibration_ = np.asarray(calibration)
    vars(clf).update(attributes)
    return clf


def trained(measure="f1", labels="text", search=False, calibrated=False, **measure_params):
    """Return a trained classifier and its rows."""
    clf = copy.copy(_trained(measure, labels, search, *measure_params.items()))
    if calibrated:
        clf.calibration_ = CALIBRATION
    return clf, rows()[0]


@functools.cache
def _trained(measure, labels, search, *measure_params):
    X, positive = rows()
    y = np.where(positive, *np.array(LABELS[labels])[::-1])
    given = {"measure_params": dict(measure_params) or None, "scaling": "standard"}
    if search:
        return MeasureClassifierCV(measure, alphas=[1e-1, 1e-2], cv=3, **given).fit(X, y)
    return MeasureClassifier(measure, **given).fit(X, y)


def probability(clf, X):
    """Return the probability of the positive class, as it is defined."""
    slope, offset = clf.calibration_
    low, high = getattr(clf, "calibration_range_", (-np.inf, np.inf))
    scores = clf.decision_function(np.asarray(X, dtype=np.float64)) - clf.intercept_[0]
    return expit(slope * np.clip(scores, low, high) + offset)


def size(clf, X):
    """Return how large the terms of the scores are: what rounding is relative to."""
    return float((np.abs(np.asarray(X, dtype=np.float64)) @ np.abs(clf.coef_[0])).max() + abs(clf.intercept_[0]))


def run_onnx(model, inputs):
    """Return the outputs of a model by name; inputs are those of several names, or the only one."""
    content = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    if not isinstance(inputs, dict):
        inputs = {session.get_inputs()[0].name: inputs}
    known = {each.name for each in session.get_inputs()}
    given = {name: values for name, values in inputs.items() if name in known}
    return dict(zip(names, session.run(None, given), strict=True))


def onnx_columns(columns, values):
    """Return rows of values as inputs of a model that takes columns: NaN and the empty text where they are missing."""
    found = {}
    for k, column in enumerate(columns):
        cells = [row[k] for row in values]
        if column.kind == "number":
            found[column.name] = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)[:, None]
        else:
            missing = "None" if "" in column.categories else ""  # the empty text can be a category of its own
            found[column.name] = np.array([missing if cell is None else cell for cell in cells], dtype=object)[:, None]
    return found


def encoded(encoding, values):
    """Return the features of rows of values."""
    arrays = [
        pa.array([row[k] for row in values], pa.float64() if column.kind == "number" else pa.large_string())
        for k, column in enumerate(encoding.columns)
    ]
    features = encoding.encode(pa.RecordBatch.from_arrays(arrays, [column.name for column in encoding.columns]))
    return features if isinstance(features, np.ndarray) else features.toarray()


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def run_sql(statement, table, columns, values, types=None):
    """Return the columns of the result by name, of a statement on a table with these rows."""
    types = ["REAL"] * len(columns) if types is None else types
    with sqlite3.connect(":memory:") as connection:
        declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(columns, types, strict=True))
        connection.execute(f"CREATE TABLE {quoted(table)} ({declared})")
        connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * len(columns))})", values)
        cursor = connection.execute(statement)
        found = cursor.fetchall()
        return {each[0]: [row[k] for row in found] for k, each in enumerate(cursor.description)}


def example():
    """Return the module examples/deploy.py, which has the evaluator of JSON documents."""
    path = Path(__file__).parents[2] / "examples" / "deploy.py"
    spec = importlib.util.spec_from_file_location("deploy_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
