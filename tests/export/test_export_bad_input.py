"""What cannot be exported: errors that name the argument, what was given, and the repair."""

import sys

import numpy as np
import pytest
from export_models import made
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.export import register_with_skl2onnx, to_json, to_onnx, to_sql
from scoreline.io import Encoding
from scoreline.io.columns import Column


def to_table(clf, **options):
    return to_sql(clf, "t", **options)


EXPORTS = [to_onnx, to_json, to_table]


@for_each("export", EXPORTS)
def test_not_trained(export):
    for clf in (MeasureClassifier(), MeasureClassifierCV()):
        with pytest.raises(NotFittedError):
            export(clf)


@for_each("export", EXPORTS)
@for_each("clf", [LogisticRegression(), make_pipeline(MeasureClassifier()), None])
def test_other_estimators(export, clf):
    with pytest.raises(TypeError, match=f"clf is a {type(clf).__name__}, expected .*register_with_skl2onnx"):
        export(clf)


@for_each("export", EXPORTS)
@for_each(
    ("classes", "words"),
    [
        (np.array([b"a", b"b"]), "b'a'"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), "2020"),
        (np.array([0, 2**63], dtype=np.uint64), "64 bits"),
        (np.array(["a", "b\ud800"], dtype=object), "not valid Unicode text"),
        (np.array(["a", "b\0c"], dtype=object), "NUL"),
    ],
)
def test_classes_that_others_do_not_have(export, classes, words):
    clf = made([1.0])
    clf.classes_ = classes
    with pytest.raises(ValueError, match=words):
        export(clf)


@for_each("export", EXPORTS)
def test_encodings(export):
    two = Encoding([Column("a", "number"), Column("b", "number")])
    with pytest.raises(ValueError, match="encoding has 2 features, the classifier 1"):
        export(made([1.0]), encoding=two)
    with pytest.raises(TypeError, match="encoding is a dict, expected an Encoding"):
        export(made([1.0]), encoding={})


@for_each(
    ("options", "words"),
    [
        ({"dialect": "mysq"}, "Did you mean 'mysql'"),
        ({"dialect": None}, "dialect"),
        ({"columns": ["a"]}, "columns has 1 names, expected 2"),
        ({"columns": ["a", "a"]}, "more than once"),
        ({"columns": "ab"}, "must be a list of strings"),
        ({"columns": ["a", 1]}, "columns holds 1, expected strings"),
        ({"columns": ["a", "b\0"]}, "NUL"),
        ({"columns": ["a", "b\ud800"]}, "not valid Unicode text"),
        ({"columns": ["a", ""]}, "a name is empty"),
        ({"columns": ["a", "Score"]}, r"'score' has the name of a column; choose others with outputs"),
        ({"keep": "id"}, "must be a list of strings"),
        ({"keep": ["id", "ID"]}, "has a name twice"),
        ({"keep": ["prediction"]}, "'prediction' has the name of a column"),
        ({"outputs": ["a", "b"]}, "three different names"),
        ({"outputs": ["a", "A", "b"]}, "three different names"),
        ({"table": []}, "name of a table"),
        ({"table": 3}, "must be a list of strings"),
        ({"table": ""}, "a name is empty"),
    ],
)
def test_sql_options(options, words):
    with pytest.raises(ValueError, match=words):
        to_sql(made([1.0, 2.0]), **{"table": "t", **options})


def test_names_of_features_that_occur_twice():
    clf = made([1.0, 2.0], feature_names_in_=np.array(["a", "a"], dtype=object))
    with pytest.raises(ValueError, match=r"column 'a' occurs more than once; pass columns="):
        to_sql(clf, "t")
    assert to_sql(clf, "t", columns=["a", "b"])


def test_the_column_of_labels_is_no_result():
    clf = made([1.0], encoding_=Encoding([Column("a", "number")], label="prediction"))
    with pytest.raises(ValueError, match="'prediction' has the name of a column"):
        to_sql(clf, "t")
    assert to_sql(clf, "t", keep=["a"])


def test_onnx_types_and_files(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'float32'"):
        to_onnx(made([1.0]), dtype="float23")
    for export in (to_onnx, to_json):
        with pytest.raises(OSError, match="cannot write"):
            export(made([1.0]), tmp_path / "no" / "m")


@for_each(("module", "call"), [("onnx", lambda: to_onnx(made([1.0]))), ("skl2onnx", register_with_skl2onnx)])
def test_packages_that_are_missing(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}.*pip install 'scoreline\[onnx\]'"):
        call()
