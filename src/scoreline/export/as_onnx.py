"""ONNX: a graph of a few nodes that any ONNX runtime computes, without Python and without scoreline."""

import json
import os
from typing import Any

from scoreline._checks import check_choice
from scoreline._files import whole_file
from scoreline._optional import require
from scoreline.data.encoding import Encoding
from scoreline.export.fitted import Fitted, fitted
from scoreline.export.onnx_nodes import DOUBLE, STRING, Nodes, label_kind

OPSET, FORMAT = 15, 8  # old enough for every runtime of the last years
INPUT = "X"
DTYPES = {"float32": 1, "float64": DOUBLE}


def to_onnx(clf: Any, path: Any = None, *, dtype: str = "float32", encoding: Encoding | None = None) -> Any:
    """Return a trained classifier as an ONNX model, and write it to a file if a path is given.

    The input `X` has one row per example and one column per feature, dense. The outputs are `label` (the class, by the cut
    that serves the measure), `score` (decision_function) and, if the classifier was trained with `probability=True`,
    `probabilities` of both classes. Sums are of doubles whatever the input is. Missing values (NaN) are not looked for: their
    score is NaN, and their label classes_[0].

    Parameters
    ----------
    clf : MeasureClassifier or MeasureClassifierCV
        A trained classifier.
    path : path, optional
        The file to write, "model.onnx", say.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input. Rows of float32 get the scores that `decision_function` gives the same rows of float32.
    encoding : Encoding, optional
        How columns of a table became features, by default the one the classifier has from its file. The model takes the encoded
        features; the encoding is kept in its metadata.

    Returns
    -------
    onnx.ModelProto
        The model. Its metadata_props have `features` (JSON list of names), `measure`, and `encoding` where there is one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.export import to_onnx
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MeasureClassifier("f1", scaling="standard").fit(X, y)
    >>> [output.name for output in to_onnx(clf).graph.output]
    ['label', 'score']
    """
    check_choice("dtype", dtype, tuple(DTYPES))
    model = fitted(clf, encoding)
    onnx = require("onnx", "onnx", "to_onnx")
    proto = _proto(onnx, model, DTYPES[dtype])
    if path is not None:
        with whole_file(os.fspath(path)) as file:
            file.write(proto.SerializeToString())
    return proto


def _proto(onnx: Any, model: Fitted, kind: int) -> Any:
    """Return the graph with its metadata."""
    helper, nodes, constants, taken = onnx.helper, [], [], {INPUT, "label", "score", "probabilities"}

    def unique(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def add_node(operator: str, inputs: Any, outputs: Any, attributes: dict[str, Any]) -> None:
        nodes.append(helper.make_node(operator, inputs, outputs, **attributes))

    def add_constant(name: str, element: int, shape: tuple[int, ...], values: list[Any]) -> None:
        content = [value.encode() for value in values] if element == STRING else values
        constants.append(helper.make_tensor(name, element, shape, content))

    writer = Nodes(add_node, add_constant, unique)
    product = writer.product(model, INPUT)
    writer.label(model.classes, writer.score(model, product, "score"), "label")
    outputs: list[Any] = [("label", label_kind(model.classes), ["rows"]), ("score", DOUBLE, ["rows"])]
    if model.calibration is not None:
        writer.columns(*writer.probabilities(model, product), output="probabilities")
        outputs.append(("probabilities", DOUBLE, ["rows", 2]))
    graph = helper.make_graph(
        nodes,
        "scoreline",
        [helper.make_tensor_value_info(INPUT, kind, ["rows", len(model.coef)])],
        [helper.make_tensor_value_info(*each) for each in outputs],
        constants,
        doc_string="label is the second class where score > 0, else the first",
    )
    from scoreline import __version__

    proto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=FORMAT,
        producer_name="scoreline",
        producer_version=__version__,
    )
    helper.set_model_props(proto, _metadata(model))
    onnx.checker.check_model(proto)
    return proto


def _metadata(model: Fitted) -> dict[str, str]:
    found = {"measure": model.measure, "features": json.dumps(model.names)}
    if model.encoding is not None:
        found["encoding"] = json.dumps(model.encoding.to_json(), allow_nan=False)
        found["input"] = (
            "features made of the columns of a table as encoding says; scoreline.data.Encoding.from_json reads it"
        )
    return found
