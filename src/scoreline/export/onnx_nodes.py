"""The nodes of a linear classifier in ONNX: sums in double, the cut, probabilities."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scoreline.export.fitted import Fitted

DOUBLE, STRING, INT64 = 11, 8, 7  # of onnx.TensorProto, whose numbers are part of the format


class Nodes:
    """Writes nodes and constants wherever they are collected.

    Parameters
    ----------
    add_node : callable
        Takes (operator, names of inputs, names of outputs, attributes).
    add_constant : callable
        Takes (name, type of its elements, shape, flat list of values).
    unique : callable
        Makes a name that nothing else has.
    """

    def __init__(
        self,
        add_node: Callable[[str, Sequence[str], Sequence[str], dict[str, Any]], None],
        add_constant: Callable[[str, int, tuple[int, ...], list[Any]], None],
        unique: Callable[[str], str],
    ):
        self.add_node, self.add_constant, self.unique = add_node, add_constant, unique

    def constant(self, name: str, kind: int, values: Any) -> str:
        """Add a constant; return its name."""
        name, values = self.unique(name), np.asarray(values, dtype=object)
        self.add_constant(name, kind, values.shape, values.reshape(-1).tolist())
        return name

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output; return its name."""
        output = self.unique(operator.lower()) if output is None else output
        self.add_node(operator, inputs, (output,), attributes)
        return output

    def product(self, model: Fitted, x: str) -> str:
        """Add X coef, in double whatever X is; its name."""
        doubles = self.node("Cast", x, to=DOUBLE)
        column = self.node("MatMul", doubles, self.constant("coef", DOUBLE, model.coef.reshape(-1, 1)))
        return self.node("Squeeze", column, self.constant("axes", INT64, [1]))  # runtimes refuse no rows times a vector

    def score(self, model: Fitted, product: str, output: str | None = None) -> str:
        """Add the score; return its name."""
        return self.node("Add", product, self.constant("intercept", DOUBLE, model.intercept), output=output)

    def label(self, classes: tuple[Any, Any], score: str, output: str) -> None:
        """Add the class of each row: the second one where the score is positive."""
        positive = self.node("Greater", score, self.constant("zero", DOUBLE, 0.0))
        if type(classes[0]) is bool:  # False and True, always: they are sorted
            self.node("Identity", positive, output=output)
            return
        kind = label_kind(classes)
        no, yes = (
            self.constant(name, kind, value) for name, value in zip(("negative", "positive"), classes, strict=True)
        )
        self.node("Where", positive, yes, no, output=output)

    def probabilities(self, model: Fitted, product: str) -> tuple[str, str]:
        """Add the probabilities of both classes; return their names."""
        assert model.calibration is not None
        slope, offset = model.calibration
        scaled = self.node("Mul", product, self.constant("slope", DOUBLE, slope))
        logit = self.node("Add", scaled, self.constant("offset", DOUBLE, offset))
        # exp may be infinite, and then 1 / (1 + exp) is the 0 that it should be; no 1 - p: it would lose the digits of small p.
        one, minus = self.constant("one", DOUBLE, 1.0), self.node("Neg", logit)
        no, yes = (self.node("Reciprocal", self.node("Add", one, self.node("Exp", each))) for each in (logit, minus))
        return no, yes

    def columns(self, no: str, yes: str, output: str | None = None) -> str:
        """Add the table with two columns; return its name."""
        axes = self.constant("axes", INT64, [1])
        both = (self.node("Unsqueeze", each, axes) for each in (no, yes))
        return self.node("Concat", *both, output=output, axis=1)


def label_kind(classes: tuple[Any, Any]) -> int:
    """Return the type of the labels."""
    if type(classes[0]) is bool:
        return 9
    return {int: INT64, float: DOUBLE, str: STRING}[type(classes[0])]
