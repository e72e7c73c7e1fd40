"""ONNX export: a graph of a few nodes for any ONNX runtime, written here or by skl2onnx."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scoreline.export.model import (
    ESTIMATORS,
    Calibration,
    CategoryTerm,
    LinearModel,
    NumberTerm,
    check_name,
    column_terms,
    feature_terms,
    linear_model,
    text_coefficients,
)
from scoreline.io.encoding import Encoding
from scoreline.io.files import atomic_file
from scoreline.model_selection import ThresholdClassifier
from scoreline.runtime.checks import check_choice
from scoreline.runtime.optional import require
from scoreline.scorecards import Scorecard

OPSET, ML_OPSET, FORMAT = 15, 2, 8  # old enough for every runtime in use
ML_DOMAIN = "ai.onnx.ml"
INPUT = "X"
OUTPUTS = ("label", "score", "probabilities", "valid")
FLOAT, DOUBLE, STRING, INT64, BOOL = 1, 11, 8, 7, 9  # values of onnx.TensorProto, which are part of the format
DTYPES = {"float32": FLOAT, "float64": DOUBLE}
# Labels of rows without a finite score. NumPy and pandas write "not a time" with this integer, and R "not available".
NO_LABEL = {INT64: -(2**63), DOUBLE: math.nan, STRING: ""}
SKL2ONNX_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def to_onnx(
    clf: Any, path: Any = None, *, dtype: str | None = None, encoding: Encoding | None = None, inputs: str | None = None
) -> Any:
    """Return a trained classifier as an ONNX model, and write it to a file if a path is given.

    With an encoding, the model has one input per column of the table, of shape (rows, 1), under the name of the column:
    numbers with NaN for missing values, and texts with "" for missing values. Columns that cannot change the score are no
    inputs. Without an encoding, the only input `X` has one row per example and one column per feature, dense.

    The outputs are `label` (the class, by the threshold tuned for the measure), `score` (decision_function),
    `probabilities` of both classes if the classifier was trained with `probability=True`, and `valid`. An output with the
    name of a column gets an underscore: `score_`. Sums are computed in double precision for all types of input.

    `valid` is False for rows that `predict` would refuse: a missing value that was an error in training, or infinity. Their
    score and probabilities are NaN. Their label is not a class: "" for text, NaN for floats, the smallest 64-bit integer for
    integers. For Boolean classes it is False.

    Parameters
    ----------
    clf : MeasureClassifier, MeasureClassifierCV, ThresholdClassifier or Scorecard
        A trained classifier, or its scorecard: one input per column of the card, and the outputs points and prediction. The
        label of a ThresholdClassifier uses its `best_threshold_`. If its estimator is from another library, skl2onnx converts
        it: the outputs are `label` and `probabilities`, as `register_with_skl2onnx` describes them.
    path : path, optional
        The file to write, for example "model.onnx".
    dtype : {"float32", "float64"}, optional
        Type of the numbers of the input, by default "float64" for columns of a table and "float32" for features. Rows of
        float32 get the scores that `decision_function` gives the same rows of float32.
    encoding : Encoding, optional
        How columns of a table became features; by default the encoding that the classifier was saved with.
    inputs : {"columns", "features"}, optional
        Whether the inputs of the model are the columns of the table, the default with an encoding, or encoded features.

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
    if isinstance(clf, Scorecard):
        from scoreline.export.cards import card_onnx

        return card_onnx(clf, path)
    limit = None
    if isinstance(clf, ThresholdClassifier):
        check_is_fitted(clf, "estimator_")
        if not isinstance(clf.estimator_, ESTIMATORS):
            return _with_skl2onnx(clf, path, dtype, encoding, inputs)
        limit = _Limit(clf.best_threshold_, clf.response_method_ == "predict_proba")
        clf = clf.estimator_
    model = linear_model(clf, encoding)
    check_choice("inputs", inputs, (None, "columns", "features"))
    if inputs == "columns" and model.encoding is None:
        raise ValueError(
            "inputs='columns' needs to know how the columns of a table became features; pass encoding=read_data(...).encoding, "
            "or leave inputs out"
        )
    columns = model.encoding is not None and inputs != "features"
    check_choice("dtype", dtype, (None, *DTYPES))
    kind = DTYPES[dtype or ("float64" if columns else "float32")]
    proto = _onnx_model(require("onnx", "onnx", "to_onnx"), model, kind, columns, limit)
    return _written(proto, path)


def _written(proto: Any, path: Any) -> Any:
    """Return a model, after writing it to a file if a path is given."""
    if path is not None:
        with atomic_file(os.fspath(path)) as file:
            file.write(proto.SerializeToString())
    return proto


def _with_skl2onnx(clf: Any, path: Any, dtype: str | None, encoding: Encoding | None, inputs: str | None) -> Any:
    """Return the model of a ThresholdClassifier whose estimator is of another library."""
    if encoding is not None or inputs not in (None, "features"):
        raise ValueError(
            f"the estimator of clf is a {type(clf.estimator_).__name__}, whose inputs are features; leave encoding and "
            "inputs='columns' out."
        )
    check_choice("dtype", dtype, (None, *DTYPES))
    if not hasattr(clf, "n_features_in_"):
        raise ValueError(
            "clf.estimator_ does not tell its number of features; call register_with_skl2onnx() and then "
            "skl2onnx.to_onnx(clf, X[:1])."
        )
    register_with_skl2onnx()
    types = require("skl2onnx.common.data_types", "onnx", "to_onnx")
    kind = types.DoubleTensorType if dtype == "float64" else types.FloatTensorType
    given = [(INPUT, kind([None, clf.n_features_in_]))]
    skl2onnx = require("skl2onnx", "onnx", "to_onnx")
    return _written(skl2onnx.to_onnx(clf, initial_types=given, options={id(clf): {"zipmap": False}}), path)


def register_with_skl2onnx() -> None:
    """Teach skl2onnx to convert MeasureClassifier, MeasureClassifierCV and ThresholdClassifier, alone or inside pipelines.

    Call it once, before `skl2onnx.to_onnx`. As for every classifier of skl2onnx, the outputs are the label and a table with
    one column per class. The label uses the threshold that was tuned for the measure. The table has probabilities if the
    classifier was trained with `probability=True`, and otherwise, or with the option `raw_scores`, -score and score. They
    have the type of the input; sums are computed in double precision. OneVsRestClassifier and other estimators derive classes
    from this table: docs/deploy.md says which options they need.

    The label of a ThresholdClassifier uses its `best_threshold_`, and its table is the response that is compared with it:
    probabilities, or -score and score. Its estimator must be one that skl2onnx converts. LightGBM and XGBoost need the
    converters of onnxmltools, registered with skl2onnx.

    Examples
    --------
    >>> import skl2onnx
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.export import register_with_skl2onnx
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), MeasureClassifier("f1")).fit(X, y)
    >>> register_with_skl2onnx()
    >>> model = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    >>> [output.name for output in model.graph.output]
    ['label', 'probabilities']
    """
    skl2onnx = require("skl2onnx", "onnx", "register_with_skl2onnx")
    for estimator in ESTIMATORS:
        alias = f"Scoreline{estimator.__name__}"
        skl2onnx.update_registered_converter(estimator, alias, _set_types, _convert, options=SKL2ONNX_OPTIONS)
    skl2onnx.update_registered_converter(
        ThresholdClassifier, "ScorelineThresholdClassifier", _set_threshold_types, _convert_threshold,
        options={"zipmap": [True, False, "columns"]},
    )  # fmt: skip


class _Limit(NamedTuple):
    """The threshold of a ThresholdClassifier, and whether it is one of probabilities."""

    threshold: float
    of_probabilities: bool


def _onnx_model(onnx: Any, model: LinearModel, kind: int, columns: bool, limit: _Limit | None) -> Any:
    """Return the graph with its metadata; its inputs are the columns of a table, or features."""
    helper, nodes, constants, counts = onnx.helper, [], [], Counter[str]()
    terms: list[NumberTerm | CategoryTerm] = []
    if columns:  # only those that can change the score, or the first one, which tells the number of rows
        terms = [term for term in column_terms(model) if term.used] or column_terms(model)[:1]
        for term in terms:
            check_name(term.name)
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
    writer = _Nodes(add_node, add_constant, unique)
    if columns:
        assert model.encoding is not None
        kinds = [kind if isinstance(term, NumberTerm) else STRING for term in terms]
        inputs = [(term.name, each, ["rows", 1]) for term, each in zip(terms, kinds, strict=True)]
        product = writer.column_sum(terms, model.encoding.missing)
    else:
        inputs, product = [(INPUT, kind, ["rows", len(model.coef)])], writer.product(model, INPUT)
    writer.score(model.intercept, product, score, valid)
    outputs: list[Any] = [(label, _label_kind(model.classes), ["rows"]), (score, DOUBLE, ["rows"])]
    response = score
    if model.calibration is not None:
        no, yes = writer.probabilities(model.calibration, score)
        writer.columns(no, yes, output=probabilities)
        outputs.append((probabilities, DOUBLE, ["rows", 2]))
        response = yes if limit is not None and limit.of_probabilities else score
    threshold = 0.0 if limit is None else limit.threshold
    writer.label(model.classes, response, valid, label, threshold)
    outputs.append((valid, BOOL, ["rows"]))
    compared = score if response == score else "the probability"
    graph = helper.make_graph(
        nodes,
        "scoreline",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        constants,
        doc_string=f"label is the second class where {compared} > {threshold!r}, the first otherwise, and no class where valid "
        "is false",
    )
    proto = _with_versions(helper, graph, any(isinstance(term, CategoryTerm) for term in terms))
    helper.set_model_props(proto, _metadata(model, columns))
    onnx.checker.check_model(proto)
    return proto


def _with_versions(helper: Any, graph: Any, has_categories: bool) -> Any:
    from scoreline import __version__

    domains = [helper.make_opsetid("", OPSET)]
    if has_categories:
        domains.append(helper.make_opsetid(ML_DOMAIN, ML_OPSET))
    producer = {"producer_name": "scoreline", "producer_version": __version__}
    return helper.make_model(graph, opset_imports=domains, ir_version=FORMAT, **producer)


def _metadata(model: LinearModel, columns: bool) -> dict[str, str]:
    found = {"measure": model.measure, "features": json.dumps(model.names)}
    if model.encoding is not None:
        found["encoding"] = json.dumps(model.encoding.to_json(), allow_nan=False)
        found["input"] = (
            "columns of a table, each of shape (rows, 1): numbers, NaN where missing; texts, the empty text where missing"
            if columns
            else "features made of the columns of a table as encoding says; scoreline.io.Encoding.from_json reads it"
        )
    return found


def _classes(operator: Any, model: LinearModel) -> tuple[Any, Any]:
    """Return the labels for skl2onnx, which supports integers and text."""
    if operator.scope_inst.get_options(operator.raw_operator, {"nocl": False})["nocl"]:
        return 0, 1
    if isinstance(model.classes[0], str):
        return model.classes
    integers = (int(model.classes[0]), int(model.classes[1]))
    if integers != model.classes:
        raise ValueError(
            f"classes_ {list(model.classes)} are not whole, and labels of skl2onnx are integers or text; train with such "
            "labels, or export the classifier with scoreline.export.to_onnx"
        )
    return integers


def _set_types(operator: Any) -> None:
    types = require("skl2onnx.common.data_types", "onnx", "register_with_skl2onnx")
    utils = require("skl2onnx.common.utils", "onnx", "register_with_skl2onnx")
    kinds = [getattr(types, f"{name}TensorType") for name in ("Boolean", "Double", "Float", "Int64", "Int32")]
    utils.check_input_and_output_numbers(operator, input_count_range=1, output_count_range=2)
    utils.check_input_and_output_types(operator, good_input_types=kinds)
    rows = operator.inputs[0].get_first_dimension()
    text = isinstance(_classes(operator, linear_model(operator.raw_operator))[0], str)
    operator.outputs[0].set_type((types.StringTensorType if text else types.Int64TensorType)([rows]))
    operator.outputs[1].type.shape = [rows, 2]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    types = require("skl2onnx.common.data_types", "onnx", "register_with_skl2onnx")
    model = linear_model(operator.raw_operator)

    def add_node(kind: str, inputs: Any, outputs: Any, attributes: dict[str, Any]) -> None:
        container.add_node(kind, list(inputs), list(outputs), name=scope.get_unique_operator_name(kind), **attributes)

    def add_constant(name: str, element: int, shape: tuple[int, ...], values: list[Any]) -> None:
        content = [value.encode() if isinstance(value, str) else value for value in values]
        container.add_initializer(name, element, list(shape), content)

    writer = _Nodes(add_node, add_constant, scope.get_unique_variable_name)
    score, valid = writer.score(model.intercept, writer.product(model, operator.inputs[0].full_name))
    writer.label(_classes(operator, model), score, valid, operator.outputs[0].full_name)
    raw = container.get_options(operator.raw_operator, {"raw_scores": False})["raw_scores"]
    if model.calibration is None or raw:
        both = writer.columns(writer.node("Neg", score), score)
    else:
        both = writer.columns(*writer.probabilities(model.calibration, score))
    wanted = types.guess_proto_type(operator.outputs[1].type)
    writer.node("Cast", both, output=operator.outputs[1].full_name, to=DOUBLE if wanted == DOUBLE else FLOAT)


def _set_threshold_types(operator: Any) -> None:
    types = require("skl2onnx.common.data_types", "onnx", "register_with_skl2onnx")
    rows = operator.inputs[0].get_first_dimension()
    text = np.asarray(operator.raw_operator.classes_).dtype.kind in "OSU"
    operator.outputs[0].set_type((types.StringTensorType if text else types.Int64TensorType)([rows]))
    operator.outputs[1].type.shape = [rows, 2]


def _convert_threshold(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of the estimator, and the label by the threshold of its response."""
    skl2onnx = require("skl2onnx", "onnx", "register_with_skl2onnx")
    clf = operator.raw_operator
    last = clf.estimator_
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    wanted = {"zipmap": False, "raw_scores": clf.response_method_ == "decision_function"}
    for place in (scope, container):
        allowed = container._get_allowed_options(last)
        place.add_options(id(last), {name: value for name, value in wanted.items() if name in allowed})
    if wanted["raw_scores"] and "raw_scores" not in allowed:
        raise ValueError(
            f"skl2onnx converts no decision_function of {type(last).__name__}; use response_method='predict_proba'."
        )
    inner = scope.declare_local_operator(skl2onnx.get_model_alias(type(clf.estimator_)), clf.estimator_)
    inner.inputs = operator.inputs
    outputs = [
        scope.declare_local_variable(name, type(each.type)(each.type.shape))
        for name, each in zip(("label_of_estimator", "response"), operator.outputs, strict=True)
    ]
    inner.outputs.extend(outputs)
    response = outputs[1].full_name

    def add_node(kind: str, inputs: Any, outputs: Any, attributes: dict[str, Any]) -> None:
        container.add_node(kind, list(inputs), list(outputs), name=scope.get_unique_operator_name(kind), **attributes)

    def add_constant(name: str, element: int, shape: tuple[int, ...], values: list[Any]) -> None:
        content = [value.encode() if isinstance(value, str) else value for value in values]
        container.add_initializer(name, element, list(shape), content)

    writer = _Nodes(add_node, add_constant, scope.get_unique_variable_name)
    one, axis = writer.constant("one", INT64, 1), 1
    positive = writer.node("Cast", writer.node("Gather", response, one, axis=axis), to=DOUBLE)
    valid = writer.node("Equal", positive, positive)
    no, yes = (each if isinstance(each, str) else int(each) for each in clf.classes_.tolist())
    writer.label((no, yes), positive, valid, operator.outputs[0].full_name, clf.best_threshold_)
    writer.node("Identity", response, output=operator.outputs[1].full_name)


class _Nodes:
    """Adds nodes and constants to a graph; the methods return the names of their results.

    `add_node` takes (operator, names of inputs, names of outputs, attributes), `add_constant` takes (name, element type,
    shape, flat list of values), and `unique` returns a name that is not in use.
    """

    def __init__(self, add_node: Callable[..., None], add_constant: Callable[..., None], unique: Callable[[str], str]):
        self.add_node, self.add_constant, self.unique = add_node, add_constant, unique

    def constant(self, name: str, kind: int, values: Any) -> str:
        name, values = self.unique(name), np.asarray(values, dtype=object)
        self.add_constant(name, kind, values.shape, values.reshape(-1).tolist())
        return name

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = self.unique(operator.lower()) if output is None else output
        self.add_node(operator, inputs, (output,), attributes)
        return output

    def product(self, model: LinearModel, x: str) -> str:
        """Add the sum of the terms of the features, X coef, in double precision."""
        return self.squeezed(self.numbers(self.node("Cast", x, to=DOUBLE), feature_terms(model)))

    def column_sum(self, terms: Sequence[NumberTerm | CategoryTerm], missing_texts: Sequence[str]) -> str:
        """Add the sum of the terms of the columns of a table, inputs of their name and shape (rows, 1)."""
        numbers = [term for term in terms if isinstance(term, NumberTerm)]
        found = [self.category(term, missing_texts) for term in terms if isinstance(term, CategoryTerm)]
        if numbers:
            casts = [self.node("Cast", term.name, to=DOUBLE) for term in numbers]
            found.insert(0, self.numbers(self.node("Concat", *casts, axis=1), numbers))
        return self.squeezed(self.node("Sum", *found))

    def squeezed(self, column: str) -> str:
        return self.node("Squeeze", column, self.constant("axes", INT64, [1]))  # runtimes reject a product without rows

    def numbers(self, table: str, terms: Sequence[NumberTerm]) -> str:
        """Add the sum of the terms of numbers, the columns of a table of doubles, of shape (rows, 1)."""
        found = []
        if any(term.fill is not None for term in terms):
            gaps = self.node("IsNaN", table)
            # If missing values are an error, NaN stays NaN, and the score becomes NaN.
            fills = [math.nan if term.fill is None else term.fill for term in terms]
            table = self.node("Where", gaps, self.constant("fill", DOUBLE, fills), table)
            indicators = [term.indicator for term in terms]
            if any(indicators):
                found.append(self.weighted(self.node("Cast", gaps, to=DOUBLE), "indicator", indicators))
        linear = [0.0 if term.knots is not None else term.coefficient for term in terms]
        # Terms with knots are included with coefficient 0: 0 * NaN and 0 * infinity are NaN, which clipping would hide.
        found.append(self.weighted(table, "coef", linear))
        found += self.interpolated(table, terms)
        return self.node("Sum", *found)

    def weighted(self, table: str, name: str, weights: Sequence[float]) -> str:
        return self.node("MatMul", table, self.constant(name, DOUBLE, [[weight] for weight in weights]))

    def interpolated(self, table: str, terms: Sequence[NumberTerm]) -> list[str]:
        """Add the terms that have knots, as sums of clipped segments, each of shape (rows, 1)."""
        at = [k for k, term in enumerate(terms) if term.knots is not None]
        if not at:
            return []
        if len(at) < len(terms):
            table = self.node("Gather", table, self.constant("mapped", INT64, at), axis=1)
        pieces = [(terms[k].coefficient, *terms[k].knots) for k in at]  # type: ignore[misc]  # those at `at` have knots
        constant = math.fsum(coefficient * float(y[0]) for coefficient, _, y in pieces)
        found = [self.constant("base", DOUBLE, [[constant]])]
        for segment in range(max(len(x) for _, x, _ in pieces) - 1):
            # A term with fewer knots gets an empty segment of weight 0.
            low, high = ([float(x[min(segment + k, len(x) - 1)]) for _, x, _ in pieces] for k in (0, 1))
            rises = [float(y[segment + 1] - y[segment]) if segment + 1 < len(y) else 0.0 for _, _, y in pieces]
            weights = [
                coefficient * rise / (end - start) if end > start else 0.0
                for (coefficient, *_), rise, start, end in zip(pieces, rises, low, high, strict=True)
            ]
            bottom = self.constant("low", DOUBLE, low)
            clipped = self.node("Min", self.node("Max", table, bottom), self.constant("high", DOUBLE, high))
            found.append(self.weighted(self.node("Sub", clipped, bottom), "rise", weights))
        return found

    def category(self, term: CategoryTerm, missing_texts: Sequence[str]) -> str:
        """Add the term of a column of categories: one lookup of the text, of shape (rows, 1)."""
        coefficients = text_coefficients(term, missing_texts)
        table = self.constant("texts", DOUBLE, [*coefficients.values(), term.other])
        known: dict[str, Any] = {"keys_strings": list(coefficients), "values_int64s": list(range(len(coefficients)))}
        index = self.node("LabelEncoder", term.name, domain=ML_DOMAIN, default_int64=len(coefficients), **known)
        return self.node("Gather", table, index)

    def score(
        self, intercept: float, product: str, output: str | None = None, valid: str | None = None
    ) -> tuple[str, str]:
        """Add the score, NaN where it is not finite, and whether it is finite."""
        score = self.node("Add", product, self.constant("intercept", DOUBLE, intercept))
        size = self.node("Abs", score)
        valid = self.node("Less", size, self.constant("infinity", DOUBLE, math.inf), output=valid)
        return self.node("Where", valid, score, self.constant("nan", DOUBLE, math.nan), output=output), valid

    def label(self, classes: tuple[Any, Any], response: str, valid: str, output: str, threshold: float = 0.0) -> None:
        """Add the class of each row: the second one where the response is above the threshold, none where it is not valid."""
        positive = self.node("Greater", response, self.constant("threshold", DOUBLE, threshold))
        if type(classes[0]) is bool:  # False and True, always: they are sorted
            self.node("Identity", positive, output=output)
            return
        kind = _label_kind(classes)
        labels = {"negative": classes[0], "positive": classes[1], "none": NO_LABEL[kind]}
        no, yes, none = (self.constant(name, kind, value) for name, value in labels.items())
        self.node("Where", valid, self.node("Where", positive, yes, no), none, output=output)

    def probabilities(self, calibration: Calibration, score: str) -> tuple[str, str]:
        """Add the probabilities of both classes."""
        slope, offset, low, high = calibration
        if math.isfinite(low) and math.isfinite(high):
            above = self.node("Max", score, self.constant("low", DOUBLE, low))
            score = self.node("Min", above, self.constant("high", DOUBLE, high))
        scaled = self.node("Mul", score, self.constant("slope", DOUBLE, slope))
        logit = self.node("Add", scaled, self.constant("offset", DOUBLE, offset))
        # If exp is infinite, 1 / (1 + exp) is correctly 0. Computing 1 - p instead would lose the digits of a small p.
        one, minus = self.constant("one", DOUBLE, 1.0), self.node("Neg", logit)
        no, yes = (self.node("Reciprocal", self.node("Add", one, self.node("Exp", each))) for each in (logit, minus))
        return no, yes

    def columns(self, no: str, yes: str, output: str | None = None) -> str:
        axes = self.constant("axes", INT64, [1])
        both = (self.node("Unsqueeze", each, axes) for each in (no, yes))
        return self.node("Concat", *both, output=output, axis=1)


def _label_kind(classes: tuple[Any, Any]) -> int:
    return {bool: BOOL, int: INT64, float: DOUBLE, str: STRING}[type(classes[0])]
