"""Every format says what predict says, for encodings and rows that are drawn at random."""

import json

import numpy as np
from databases import DATABASES, run_postgresql
from export_models import encoded, example, made, onnx_columns, probability, run_onnx
from hypothesis import given
from hypothesis import strategies as st

from scoreline.export import to_json, to_onnx, to_sql
from scoreline.io import Encoding
from scoreline.io.columns import Column
from scoreline.operators import as_operator
from scoreline.operators.column_maps import ColumnMap
from tiers import examples

DEPLOY = example()
QUICK_DATABASES = [run for run in DATABASES if run is not run_postgresql]  # whose sessions take a tenth of a second
WEIGHTS = st.sampled_from([0.0, 1.0, -2.5, 0.1, 1e3, -1e-3]) | st.floats(-100.0, 100.0).map(lambda x: round(x, 6))
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.5, 1e6, 0.1]) | st.floats(-1e4, 1e4)
WORDS = ("red", "it's", "Red", "", "?", "none", "nan", "007", "1.2.0", "ö")
PLAIN = ("0", "3", "1.5", "-2", "1e5", "12.25")
SPELLED = ("0.0", "-0", "-0.0", "3.0", "3.00", "1.50", "-2.0", "03", "3.000", "12.250", "1e50", "x", "300")
TRUTHS = ("true", "false")
SPELLED_TRUTHS = ("True", "FALSE", "1", "t")
VOCABULARIES = {WORDS: (), PLAIN: SPELLED, TRUTHS: SPELLED_TRUTHS, PLAIN + TRUTHS: SPELLED + SPELLED_TRUTHS}
UNLISTED = {"3.000", "12.250"}  # spellings that ONNX does not know, as docs/deploy.md says


@st.composite
def columns(draw, name, impute):
    """Draw a column, and a strategy for its cells."""
    if draw(st.booleans()):
        fill = draw(NUMBERS) if impute else None
        column = Column(name, "number", (), fill, indicator=impute and draw(st.booleans()))
        return column, (NUMBERS | st.none() if impute else NUMBERS)
    vocabulary = draw(st.sampled_from(list(VOCABULARIES)))
    texts = draw(st.lists(st.sampled_from(vocabulary), min_size=1, max_size=5, unique=True))
    fill = draw(st.sampled_from(["?", None])) if impute else None
    known = [text for text in texts if text != "?"] + ([fill] if fill else [])
    column = Column(name, "category", tuple(known), fill, other=not known or draw(st.booleans()))
    cells = st.sampled_from([*vocabulary, *VOCABULARIES[vocabulary], "new"])
    return column, (cells | st.none() if impute else cells)


@st.composite
def tables(draw):
    """Draw an encoding, coefficients and rows."""
    impute = draw(st.booleans())
    drawn = [draw(columns(name, impute)) for name in ("a", "b c", "it's")[: draw(st.integers(1, 3))]]
    options = {"impute": "mean", "missing": draw(st.sampled_from([(), ("none", "007")]))} if impute else {}
    encoding = Encoding([column for column, _ in drawn], **options)
    coef = draw(st.lists(WEIGHTS, min_size=encoding.n_features, max_size=encoding.n_features))
    rows = draw(st.lists(st.tuples(*(cells for _, cells in drawn)), min_size=1, max_size=8))
    kind = draw(st.sampled_from([None, "robust", "quantile"]))
    column_map = None
    if kind is not None:
        rounded = NUMBERS.map(lambda x: round(x, 2))  # knots that differ by denormal numbers have no finite slope
        training_row = st.lists(rounded, min_size=encoding.n_features, max_size=encoding.n_features)
        column_map = ColumnMap.learn(as_operator(np.array(draw(st.lists(training_row, min_size=1, max_size=6)))), kind)
    ends = np.array(draw(st.sampled_from([(-np.inf, np.inf), (-2.0, 3.0)])))
    model = {"coef": coef, "intercept": draw(WEIGHTS), "column_map_": column_map, "calibration_range_": ends}
    return encoding, model, rows


def missing_in_onnx(column, cell):
    """Tell whether ONNX cannot know a text: it stands for a missing value there, or is an unusual spelling."""
    if column.kind == "number" or cell is None:
        return False
    null = cell in ("", "None", "nan", "<NA>") and cell not in column.categories
    return null or (column.plain and cell in UNLISTED)


@examples(80)
@given(table=tables())
def test_all_formats_agree_with_predict(table):
    encoding, model, rows = table
    clf = made(**model, classes=("no", "yes"), calibration=[1e-4, 0.3], encoding_=encoding)
    X = encoded(encoding, [[None if cell in encoding.missing else cell for cell in row] for row in rows])
    expected = clf.decision_function(X)
    # Every program adds the same terms, of which each is rounded a few times, in an order of its own.
    # A map subtracts knots, so its rounding is that of values and knots, magnified by its steepest segment.
    mapped, steepest = np.abs(X), 1.0
    if clf.column_map_ is not None:
        x, y = clf.column_map_.x, clf.column_map_.y
        same = np.diff(np.repeat(np.arange(encoding.n_features), np.diff(clf.column_map_.starts))) == 0
        steepest += float(np.abs(np.diff(y)[same] / np.diff(x)[same]).max(initial=0.0))
        mapped = np.abs(clf.column_map_.transform(X)) + steepest * (np.abs(X) + np.abs(x).max()) + np.abs(y).max()
    rounding = 8 * np.finfo(float).eps * (mapped @ np.abs(clf.coef_[0]) + abs(clf.intercept_[0]))
    names = [column.name for column in encoding.columns]

    def check(scores, predictions, at=slice(None)):
        assert (np.abs(np.asarray(scores, dtype=float) - expected[at]) <= rounding[at]).all()
        sure = np.abs(expected[at]) > rounding[at]
        assert np.array_equal(np.asarray(predictions)[sure], clf.predict(X)[at][sure])

    document = json.loads(json.dumps(to_json(clf)))
    by_hand = [DEPLOY.score(document, dict(zip(names, row, strict=True))) for row in rows]
    check(by_hand, [document["classes"][int(score > 0)] for score in by_hand])
    chances = probability(clf, X)
    nearly = {"rtol": 1e-9, "atol": 1e-300}
    np.testing.assert_allclose([DEPLOY.probability(document, score) for score in by_hand], chances, **nearly)

    types = ["DOUBLE PRECISION" if column.kind == "number" else "TEXT" for column in encoding.columns]
    for run in QUICK_DATABASES:
        found = run(to_sql(clf, "t", keep=[]), "t", names, rows, types)
        check(found["score"], found["prediction"])
        np.testing.assert_allclose(found["probability"], chances, **nearly)

    at = [k for k, row in enumerate(rows) if not any(map(missing_in_onnx, encoding.columns, row))]
    found = run_onnx(to_onnx(clf), onnx_columns(encoding.columns, [rows[k] for k in at]))
    check(found["score"], found["label"], at)
    assert found["valid"].all()
    np.testing.assert_allclose(found["probabilities"][:, 1], chances[at], **nearly)
