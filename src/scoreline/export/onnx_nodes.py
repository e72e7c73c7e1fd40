"""The nodes of a linear classifier in ONNX: sums in double, the cut, probabilities."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scoreline.export.fitted import Fitted
from scoreline.export.terms import CategoryTerm, NumberTerm, feature_terms, text_coefficients

DOUBLE, STRING, INT64, BOOL = 11, 8, 7, 9  # of onnx.TensorProto, whose numbers are part of the format
ML_DOMAIN = "ai.onnx.ml"

# Labels of rows without a finite score. NumPy and pandas write "not a time" with this integer, and R "not available".
NO_LABEL = {INT64: -(2**63), DOUBLE: math.nan, STRING: ""}


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
        """Add the sum of the terms of the features, X coef, in double whatever X is; return its name."""
        return self.squeezed(self.numbers(self.node("Cast", x, to=DOUBLE), feature_terms(model)))

    def column_sum(self, terms: Sequence[NumberTerm | CategoryTerm], missing_texts: Sequence[str]) -> str:
        """Add the sum of the terms of the columns of a table, inputs of their name and shape (rows, 1); return its name."""
        numbers = [term for term in terms if isinstance(term, NumberTerm)]
        found = [self.category(term, missing_texts) for term in terms if isinstance(term, CategoryTerm)]
        if numbers:
            casts = [self.node("Cast", term.name, to=DOUBLE) for term in numbers]
            found.insert(0, self.numbers(self.node("Concat", *casts, axis=1), numbers))
        return self.squeezed(self.node("Sum", *found))

    def squeezed(self, column: str) -> str:
        """Add a vector of a table with one column; return its name."""
        return self.node("Squeeze", column, self.constant("axes", INT64, [1]))  # runtimes refuse no rows times a vector

    def numbers(self, table: str, terms: Sequence[NumberTerm]) -> str:
        """Add the sum of the terms of numbers, the columns of a table of doubles; return its name, of shape (rows, 1)."""
        found = []
        if any(term.fill is not None for term in terms):
            gaps = self.node("IsNaN", table)
            # NaN stays NaN where missing values are an error, and so does the score.
            fills = [math.nan if term.fill is None else term.fill for term in terms]
            table = self.node("Where", gaps, self.constant("fill", DOUBLE, fills), table)
            indicators = [term.indicator for term in terms]
            if any(indicators):
                found.append(self.weighted(self.node("Cast", gaps, to=DOUBLE), "indicator", indicators))
        linear = [0.0 if term.knots is not None else term.coefficient for term in terms]
        # Also with coefficients of 0 for terms with knots: 0 * NaN and 0 * infinity are NaN, which clipping would hide.
        found.append(self.weighted(table, "coef", linear))
        found += self.interpolated(table, terms)
        return self.node("Sum", *found)

    def weighted(self, table: str, name: str, weights: Sequence[float]) -> str:
        """Add the sum of the columns of a table times their weights; return its name, of shape (rows, 1)."""
        return self.node("MatMul", table, self.constant(name, DOUBLE, [[weight] for weight in weights]))

    def interpolated(self, table: str, terms: Sequence[NumberTerm]) -> list[str]:
        """Add the terms that have knots, as sums of clipped segments; return their names, each of shape (rows, 1)."""
        at = [k for k, term in enumerate(terms) if term.knots is not None]
        if not at:
            return []
        if len(at) < len(terms):
            table = self.node("Gather", table, self.constant("mapped", INT64, at), axis=1)
        pieces = [(terms[k].coefficient, *terms[k].knots) for k in at]  # type: ignore[misc]
        constant = math.fsum(coefficient * float(y[0]) for coefficient, _, y in pieces)
        found = [self.constant("base", DOUBLE, [[constant]])]
        for segment in range(max(len(x) for _, x, _ in pieces) - 1):
            # A term with fewer knots has an empty segment, of weight 0.
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
        """Add the term of a column of categories: one lookup of the text; return its name, of shape (rows, 1)."""
        coefficients = text_coefficients(term, missing_texts)
        table = self.constant("texts", DOUBLE, [*coefficients.values(), term.other])
        index = self.node(
            "LabelEncoder",
            term.name,
            domain=ML_DOMAIN,
            keys_strings=list(coefficients),
            values_int64s=list(range(len(coefficients))),
            default_int64=len(coefficients),
        )
        return self.node("Gather", table, index)

    def score(
        self, model: Fitted, product: str, output: str | None = None, valid: str | None = None
    ) -> tuple[str, str]:
        """Add the score, NaN where it is not finite, and whether it is finite; return their names."""
        score = self.node("Add", product, self.constant("intercept", DOUBLE, model.intercept))
        size = self.node("Abs", score)
        valid = self.node("Less", size, self.constant("infinity", DOUBLE, math.inf), output=valid)
        return self.node("Where", valid, score, self.constant("nan", DOUBLE, math.nan), output=output), valid

    def label(self, classes: tuple[Any, Any], score: str, valid: str, output: str) -> None:
        """Add the class of each row: the second one where the score is positive, no class where it is not valid."""
        positive = self.node("Greater", score, self.constant("zero", DOUBLE, 0.0))
        if type(classes[0]) is bool:  # False and True, always: they are sorted
            self.node("Identity", positive, output=output)
            return
        kind = label_kind(classes)
        no, yes, none = (
            self.constant(name, kind, value)
            for name, value in zip(("negative", "positive", "none"), (*classes, NO_LABEL[kind]), strict=True)
        )
        self.node("Where", valid, self.node("Where", positive, yes, no), none, output=output)

    def probabilities(self, model: Fitted, score: str) -> tuple[str, str]:
        """Add the probabilities of both classes; return their names."""
        assert model.calibration is not None
        slope, offset, low, high = model.calibration
        if math.isfinite(low) and math.isfinite(high):
            above = self.node("Max", score, self.constant("low", DOUBLE, low))
            score = self.node("Min", above, self.constant("high", DOUBLE, high))
        scaled = self.node("Mul", score, self.constant("slope", DOUBLE, slope))
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
        return BOOL
    return {int: INT64, float: DOUBLE, str: STRING}[type(classes[0])]
