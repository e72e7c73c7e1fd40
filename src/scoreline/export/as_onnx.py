"""ONNX: a graph of a few nodes that any ONNX runtime computes, without Python and without scoreline."""

import json
import os
from collections import Counter
from typing import Any

from scoreline.export.fitted import Fitted, check_name, fitted
from scoreline.export.onnx_nodes import BOOL, DOUBLE, ML_DOMAIN, STRING, Nodes, label_kind
from scoreline.export.terms import CategoryTerm, NumberTerm, column_terms
from scoreline.io.encoding import Encoding
from scoreline.io.files import whole_file
from scoreline.runtime.checks import check_choice
from scoreline.runtime.optional import require

OPSET, ML_OPSET, FORMAT = 15, 2, 8  # old enough for every runtime of the last years
INPUT = "X"
OUTPUTS = ("label", "score", "probabilities", "valid")
DTYPES = {"float32": 1, "float64": DOUBLE}


def to_onnx(
    clf: Any,
    path: Any = None,
    *,
    dtype: str | None = None,
    encoding: Encoding | None = None,
    inputs: str | None = None,
) -> Any:
    """Return a trained classifier as an ONNX model, and write it to a file if a path is given.

    With an encoding, the model has one input per column of the table, of shape (rows, 1), under the name of the column:
    numbers with NaN for missing values, and texts with "" for missing values. Columns that cannot change the score are no
    inputs. Without an encoding, the only input `X` has one row per example and one column per feature, dense.

    The outputs are `label` (the class, by the threshold that serves the measure), `score` (decision_function),
    `probabilities` of both classes if the classifier was trained with `probability=True`, and `valid`. An output with the
    name of a column gets an underscore: `score_`. Sums are of doubles whatever the inputs are.

    `valid` is False for rows that `predict` would refuse: a missing value that was an error in training, or infinity. Their
    score and probabilities are NaN. Their label is no class: "" for text, NaN for floats, the smallest 64-bit integer for
    integers. Labels that are truth values have no such value and are False.

    Parameters
    ----------
    clf : MeasureClassifier or MeasureClassifierCV
        A trained classifier.
    path : path, optional
        The file to write, "model.onnx", say.
    dtype : {"float32", "float64"}, optional
        Type of the numbers of the input, by default "float64" for columns of a table and "float32" for features. Rows of
        float32 get the scores that `decision_function` gives the same rows of float32.
    encoding : Encoding, optional
        How columns of a table became features, by default the one the classifier has from its file.
    inputs : {"columns", "features"}, optional
        Whether the model takes the columns of the table, the default where there is an encoding, or the features that the
        encoding makes of them.

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
    ['label', 'score', 'valid']
    """
    model = fitted(clf, encoding)
    check_choice("inputs", inputs, (None, "columns", "features"))
    if inputs == "columns" and model.encoding is None:
        raise ValueError(
            "inputs='columns' needs to know how the columns of a table became features; pass encoding=read_data(...).encoding, "
            "or leave inputs out"
        )
    columns = model.encoding is not None and inputs != "features"
    check_choice("dtype", dtype, (None, *DTYPES))
    kind = DTYPES[dtype or ("float64" if columns else "float32")]
    proto = onnx_model(require("onnx", "onnx", "to_onnx"), model, kind, columns)
    if path is not None:
        with whole_file(os.fspath(path)) as file:
            file.write(proto.SerializeToString())
    return proto


def onnx_model(onnx: Any, model: Fitted, kind: int, columns: bool) -> Any:
    """Return the graph with its metadata; it takes the columns of a table, or features."""
    helper, nodes, constants, counts = onnx.helper, [], [], Counter[str]()
    terms = _inputs(model) if columns else []
    taken = {term.name for term in terms} if columns else {INPUT}

    def unique(name: str) -> str:
        found = name
        while found in taken:
            counts[name] += 1
            found = f"{name}_{counts[name]}"
        taken.add(found)
        return found

    def output(name: str) -> str:
        while name in taken:
            name += "_"
        return unique(name)

    def add_node(operator: str, inputs: Any, outputs: Any, attributes: dict[str, Any]) -> None:
        nodes.append(helper.make_node(operator, inputs, outputs, **attributes))

    def add_constant(name: str, element: int, shape: tuple[int, ...], values: list[Any]) -> None:
        content = [value.encode() for value in values] if element == STRING else values
        constants.append(helper.make_tensor(name, element, shape, content))

    label, score, probabilities, valid = map(output, OUTPUTS)
    writer = Nodes(add_node, add_constant, unique)
    if columns:
        assert model.encoding is not None
        kinds = [kind if isinstance(term, NumberTerm) else STRING for term in terms]
        inputs = [(term.name, each, ["rows", 1]) for term, each in zip(terms, kinds, strict=True)]
        product = writer.column_sum(terms, model.encoding.missing)
    else:
        inputs, product = [(INPUT, kind, ["rows", len(model.coef)])], writer.product(model, INPUT)
    finite = writer.score(model, product, score, valid)
    writer.label(model.classes, *finite, label)
    outputs: list[Any] = [(label, label_kind(model.classes), ["rows"]), (score, DOUBLE, ["rows"])]
    if model.calibration is not None:
        writer.columns(*writer.probabilities(model, score), output=probabilities)
        outputs.append((probabilities, DOUBLE, ["rows", 2]))
    outputs.append((valid, BOOL, ["rows"]))
    graph = helper.make_graph(
        nodes,
        "scoreline",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        constants,
        doc_string="label is the second class where score > 0, the first where score <= 0, and no class where valid is false",
    )
    from scoreline import __version__

    domains = [helper.make_opsetid("", OPSET)]
    if any(isinstance(term, CategoryTerm) for term in terms):
        domains.append(helper.make_opsetid(ML_DOMAIN, ML_OPSET))
    proto = helper.make_model(
        graph, opset_imports=domains, ir_version=FORMAT, producer_name="scoreline", producer_version=__version__
    )
    helper.set_model_props(proto, _metadata(model, columns))
    onnx.checker.check_model(proto)
    return proto


def _inputs(model: Fitted) -> list[NumberTerm | CategoryTerm]:
    """Return the terms of columns that are inputs: those that can change the score, or the first, for the number of rows."""
    terms = column_terms(model)
    used = [term for term in terms if term.used] or terms[:1]
    for term in used:
        check_name(term.name)
    return used


def _metadata(model: Fitted, columns: bool) -> dict[str, str]:
    found = {"measure": model.measure, "features": json.dumps(model.names)}
    if model.encoding is not None:
        found["encoding"] = json.dumps(model.encoding.to_json(), allow_nan=False)
        found["input"] = (
            "columns of a table, each of shape (rows, 1): numbers, NaN where missing; texts, the empty text where missing"
            if columns
            else "features made of the columns of a table as encoding says; scoreline.io.Encoding.from_json reads it"
        )
    return found
