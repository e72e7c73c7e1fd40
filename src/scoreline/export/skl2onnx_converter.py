"""The classifiers as steps of pipelines that skl2onnx converts."""

from typing import Any

from scoreline.export.fitted import ESTIMATORS, Fitted, fitted
from scoreline.export.onnx_nodes import DOUBLE, Nodes
from scoreline.runtime.optional import require

OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def register_with_skl2onnx() -> None:
    """Teach skl2onnx to convert MeasureClassifier and MeasureClassifierCV, alone or inside pipelines.

    Call it once, before `skl2onnx.to_onnx`. The outputs are those that skl2onnx gives every classifier: the label, by the
    cut that serves the measure, and a table with a column for each class: probabilities if the classifier was trained with
    `probability=True`, else (or with the option `raw_scores`) -score and score. They have the type of the input; sums
    are of doubles. skl2onnx's OneVsRestClassifier and others derive classes from this table: docs/deploy.md says what
    to pass for them.

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
        skl2onnx.update_registered_converter(estimator, alias, _set_types, _convert, options=OPTIONS)


def _classes(operator: Any, model: Fitted) -> tuple[Any, Any]:
    """Return the labels that skl2onnx puts out: its own kinds are integers and text."""
    if operator.scope_inst.get_options(operator.raw_operator, {"nocl": False})["nocl"]:
        return 0, 1
    if isinstance(model.classes[0], str):
        return model.classes
    whole = (int(model.classes[0]), int(model.classes[1]))
    if whole != model.classes:
        raise ValueError(
            f"classes_ {list(model.classes)} are not whole, and labels of skl2onnx are integers or text; train with such "
            "labels, or export the classifier with scoreline.export.to_onnx"
        )
    return whole


def _set_types(operator: Any) -> None:
    """Set types and shapes of both outputs."""
    types = require("skl2onnx.common.data_types", "onnx", "register_with_skl2onnx")
    utils = require("skl2onnx.common.utils", "onnx", "register_with_skl2onnx")
    kinds = (
        types.BooleanTensorType,
        types.DoubleTensorType,
        types.FloatTensorType,
        types.Int64TensorType,
        types.Int32TensorType,
    )
    utils.check_input_and_output_numbers(operator, input_count_range=1, output_count_range=2)
    utils.check_input_and_output_types(operator, good_input_types=list(kinds))
    rows = operator.inputs[0].get_first_dimension()
    text = isinstance(_classes(operator, fitted(operator.raw_operator))[0], str)
    operator.outputs[0].set_type((types.StringTensorType if text else types.Int64TensorType)([rows]))
    operator.outputs[1].type.shape = [rows, 2]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of the classifier."""
    types = require("skl2onnx.common.data_types", "onnx", "register_with_skl2onnx")
    model = fitted(operator.raw_operator)

    def add_node(kind: str, inputs: Any, outputs: Any, attributes: dict[str, Any]) -> None:
        container.add_node(kind, list(inputs), list(outputs), name=scope.get_unique_operator_name(kind), **attributes)

    def add_constant(name: str, element: int, shape: tuple[int, ...], values: list[Any]) -> None:
        content = [value.encode() if isinstance(value, str) else value for value in values]
        container.add_initializer(name, element, list(shape), content)

    writer = Nodes(add_node, add_constant, scope.get_unique_variable_name)
    score, valid = writer.score(model, writer.product(model, operator.inputs[0].full_name))
    writer.label(_classes(operator, model), score, valid, operator.outputs[0].full_name)
    raw = container.get_options(operator.raw_operator, {"raw_scores": False})["raw_scores"]
    if model.calibration is None or raw:
        both = writer.columns(writer.node("Neg", score), score)
    else:
        both = writer.columns(*writer.probabilities(model, score))
    asked = types.guess_proto_type(operator.outputs[1].type)
    writer.node("Cast", both, output=operator.outputs[1].full_name, to=DOUBLE if asked == DOUBLE else 1)
