"""The JSON document, evaluated by the plain Python of examples/deploy.py, says what the classifier says."""

import json
from pathlib import Path

import numpy as np
import pytest
from export_models import LABELS, example, made, probability, size, trained
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline import CountMeasure
from scoreline.export import to_json
from scoreline.io import Encoding
from scoreline.io.columns import Column, shorter
from tiers import examples

DEPLOY = example()


@for_each("calibrated", [False, True])
@for_each(("labels", "search"), [*((name, False) for name in LABELS), ("text", True)])
def test_features(tmp_path, labels, search, calibrated):
    clf, X = trained("f1", labels, search, calibrated)
    made_of = to_json(clf, tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert document == made_of
    assert [type(value) for value in document["classes"]] == [type(value) for value in clf.classes_.tolist()]
    assert [each["coefficient"] for each in document["features"]] == clf.coef_[0].tolist()
    scores = np.array([DEPLOY.score(document, {f"x{k}": v for k, v in enumerate(row)}) for row in X.tolist()])
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=0, atol=1e-14 * size(clf, X))
    assert [document["classes"][int(score > 0)] for score in scores] == clf.predict(X).tolist()
    assert ("probability" in document["formula"]) is calibrated
    if calibrated:
        assert document["version"] == 2
        assert "slope * score + offset" in document["formula"]["probability"]
        found = [DEPLOY.probability(document, value) for value in scores.tolist()]
        np.testing.assert_allclose(found, probability(clf, X), rtol=1e-12)
    else:
        assert document["calibration"] is None


def test_columns():
    columns = [Column("size", "number", (), 2.5), Column("color", "category", ("blue", "red", "?"), "?")]
    columns += [Column("code", "category", ("0", "3"))]
    clf = made([2.0, 0.5, -1.0, 0.25, 8.0, 16.0], 1.0, encoding_=Encoding(columns, impute="mean", missing=("none",)))
    document = json.loads(json.dumps(to_json(clf)))
    for row, expected in [
        ((1.0, "red", "3"), 2.0 - 1.0 + 16.0),
        ((None, "green", "3.00"), 5.0 + 16.0),
        ((0.0, None, "-0.0"), 0.25 + 8.0),
        ((0.0, "none", None), 0.25),
        ((0.0, "?", "03"), 0.25),
    ]:
        assert DEPLOY.score(document, dict(zip(("size", "color", "code"), row, strict=True))) == 1.0 + expected
    strict = made([1.0, 1.0], encoding_=Encoding([Column("size", "number"), Column("color", "category", ("red",))]))
    for row in ({"size": None, "color": "red"}, {"size": 1.0, "color": None}):
        with pytest.raises(ValueError, match="missing"):
            DEPLOY.score(to_json(strict), row)


def test_columns_with_an_indicator_and_other_texts():
    columns = [Column("size", "number", (), 2.5, indicator=True)]
    columns += [Column("color", "category", ("blue", "?"), "?", other=True)]
    clf = made([2.0, 0.5, -1.0, 0.25, 8.0], 1.0, encoding_=Encoding(columns, impute="mean"))
    document = json.loads(json.dumps(to_json(clf)))
    for value, color, expected in [(3.0, "blue", 5.0), (None, "red", 5.5 + 8.0), (0.0, None, 0.25)]:
        assert DEPLOY.score(document, {"size": value, "color": color}) == 1.0 + expected


@examples(100)
@given(st.lists(st.text("0123456789.-eTRUtrue+", max_size=6), max_size=20))
def test_the_shortest_text_is_that_of_the_encoding(texts):
    import pyarrow as pa

    assert [DEPLOY.shortest(text) for text in texts] == shorter(pa.array(texts, pa.large_string())).to_pylist()


def test_a_measure_of_the_user_is_kept_by_its_name():
    clf = made([1.0])
    clf.measure = CountMeasure(lambda tp, fp, fn, tn: tp - fp, "profit")
    assert to_json(clf)["measure"] == "profit"


def test_the_page_is_what_happens(tmp_path, monkeypatch):
    """Every Python block of docs/deploy.md runs, in order."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```python\n")[1:]]
    assert len(blocks) == 8
    namespace = {}
    for block in blocks:
        exec(compile(block, "docs/deploy.md", "exec"), namespace)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.npz", "model.onnx", "model.skops"]
    source = (Path(__file__).parents[2] / "examples" / "deploy.py").read_text(encoding="utf-8")
    line = 'total += column["coefficients"].get(shortest(value) if column["canonical"] else value, column["other"])'
    assert line in blocks[-1]
    assert line in source
