"""Scorecards for other programs, with the same integers: SQL with a CASE per column, ONNX, a scorer of one Python file."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.export.as_sql import DIALECTS, LARGEST, Dialect, number, sql_sum, sql_table
from scoreline.export.model import NULL_TEXTS, check_name, check_text
from scoreline.io.columns import names_of, twice
from scoreline.io.files import atomic_file
from scoreline.runtime.checks import check_choice
from scoreline.runtime.optional import require
from scoreline.scorecards import CardColumn, Scorecard

OPSET, ML_OPSET, FORMAT = 15, 2, 8
DOUBLE, STRING, INT64, BOOL = 11, 8, 7, 9  # values of onnx.TensorProto
OUTPUTS = ("points", "prediction")


def to_python(card: Scorecard, path: Any = None) -> str:
    """Return a Python program that scores rows by a scorecard without any package, and write it if a path is given.

    Parameters
    ----------
    card : Scorecard
        What `MeasureClassifier.scorecard` returned.
    path : path, optional
        The file to write, for example "card.py".

    Returns
    -------
    str
        The program. It has the functions `points(row)` and `predict(row)` of a dict, and prints the points of the rows of a
        CSV file: `python card.py rows.csv`.

    Examples
    --------
    >>> import numpy as np
    >>> from scoreline import MeasureClassifier
    >>> from scoreline.export import to_python
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> card = MeasureClassifier(features="additive", alpha=0.01).fit(X, X[:, 0] > 1).scorecard(X, X[:, 0] > 1)
    >>> scope = {"__name__": "card"}
    >>> exec(to_python(card), scope)
    >>> bool(scope["points"]({"x0": 0.3}) == card.predict([[0.3]])[0])
    True
    """
    columns = [
        {
            "name": column.name,
            "kind": column.bins.kind,
            "edges": column.bins.values.tolist() if column.bins.kind == "number" else [],
            "names": {} if column.bins.kind == "number" else _codes_of_names(column),
            "points": column.points.tolist(),
        }
        for column in card.columns
    ]
    content = {
        "base_points": card.base_points, "cutoff": card.cutoff, "falls": card.pdo > 0, "classes": _plain(card.classes),
        "columns": columns,
    }  # fmt: skip
    name = "card.py" if path is None else os.path.basename(os.fspath(path))
    text = json.dumps(content, indent=1, allow_nan=False).replace('"""', '\\"\\"\\"')
    scorer = Path(__file__).with_name("card_scorer.txt").read_text(encoding="utf-8")
    name = name if name.isprintable() and not set('"\\') & set(name) else "card.py"
    program = scorer.replace("{{name}}", name).replace("{{card}}", text)
    if path is not None:
        with atomic_file(os.fspath(path)) as file:
            file.write(program.encode())
    return program


def _codes_of_names(column: CardColumn) -> dict[str, int]:
    """Return the code of each category, as text: of whole numbers with and without a decimal point."""
    found: dict[str, int] = {}
    for code, value in enumerate(column.bins.values.tolist(), 1):
        if column.bins.texts is not None:
            found[column.bins.texts[int(value)]] = code
        else:
            found |= dict.fromkeys((f"{value!r}", f"{value:.15g}"), code)
    return found


def card_sql(
    card: Scorecard, table: str | Sequence[str], *, keep: str | Sequence[str] = "*", outputs: Sequence[str] = OUTPUTS,
    dialect: str = "ansi",
) -> str:  # fmt: skip
    """Return a SELECT statement with the points and the class of the rows of a table; see `to_sql`."""
    check_choice("dialect", dialect, tuple(DIALECTS))
    words, results = DIALECTS[dialect], names_of("outputs", outputs)
    if len(results) != len(OUTPUTS) or twice(name.casefold() for name in results):
        raise ValueError(f"outputs={outputs!r} must be two different names, for {' and '.join(OUTPUTS)}")
    others = None if isinstance(keep, str) and keep == "*" else names_of("keep", keep)
    if others is not None and twice(name.casefold() for name in others):
        raise ValueError(f"keep={keep!r} has a name twice")
    taken = {name.casefold() for name in ([column.name for column in card.columns] if others is None else others)}
    for name in results:
        if name.casefold() in taken:
            raise ValueError(f"the result {name!r} has the name of a column; choose others with outputs=[...]")
    terms = [("+", _case(column, f"src.{words.name(column.name)}", words)) for column in card.columns]
    points, prediction = (words.name(name) for name in results)
    inner = ["src.*"] if others is None else [f"src.{words.name(name)}" for name in others]
    outer = ["scored.*"] if others is None else [f"scored.{words.name(name)}" for name in (*others, results[0])]
    no, yes = (words.value(value) for value in _plain(card.classes))
    side = "<=" if card.pdo > 0 else ">="
    return "\n".join(
        [
            f"SELECT {', '.join(outer)},",
            f"  CASE WHEN scored.{points} {side} {card.cutoff} THEN {yes} ELSE {no} END AS {prediction}",
            "FROM (",
            f"  SELECT {', '.join(inner)}," if inner else "  SELECT",
            f"    {sql_sum([('+', str(card.base_points)), *terms], '    ')} AS {points}",
            f"  FROM {sql_table(table, words)} AS src",
            ") AS scored",
        ]
    )


def _case(column: CardColumn, place: str, words: Dialect) -> str:
    """Return the points of a column as a CASE; lines of equal points are one."""
    points = column.points.tolist()
    head = f"CASE WHEN {place} IS NULL THEN {points[0]}"
    if column.bins.kind == "number":
        lines = []
        for edge, own, after in zip(column.bins.values.tolist(), points[1:-1], points[2:], strict=True):
            if own != after:
                lines.append(f"WHEN {place} <= {number(edge)} THEN {own}")
        # NaN is larger than all numbers in PostgreSQL and DuckDB, and the reciprocal of infinity is 0.
        lines += [f"WHEN {place} <= {number(LARGEST)} THEN {points[-1]}"]
        lines += [f"WHEN 1.0e0 / {place} = 0 THEN {points[-1]} ELSE {points[0]} END"]
        return "\n        ".join([head, *lines])
    if column.bins.texts is None:
        known = {number(value): own for value, own in zip(column.bins.values.tolist(), points[1:-1], strict=True)}
        text = place
    else:
        known = {
            words.text(column.bins.texts[int(value)]): own
            for value, own in zip(column.bins.values.tolist(), points[1:-1], strict=True)
        }
        text = words.as_text(place) if words.cast_compares_exactly else place
    lines = [f"  WHEN {each} THEN {own}" for each, own in known.items() if own != points[-1]]
    if not lines:
        return f"{head} ELSE {points[-1]} END"
    return "\n      ".join([f"{head} ELSE CASE {text}", *lines, f"  ELSE {points[-1]} END END"])


def card_onnx(card: Scorecard, path: Any = None) -> Any:
    """Return a scorecard as an ONNX model with one input per column, of shape (rows, 1); see `to_onnx`."""
    onnx = require("onnx", "onnx", "to_onnx")
    helper, nodes, constants = onnx.helper, [], []
    names = [column.name for column in card.columns]
    for name in names:
        check_name(name)

    def unique(name: str) -> str:
        while name in names:
            name += "_"
        names.append(name)
        return name

    def constant(kind: int, shape: tuple[int, ...], values: list[Any]) -> str:
        name = unique("constant")
        content = [value.encode() for value in values] if kind == STRING else values
        constants.append(helper.make_tensor(name, kind, shape, content))
        return name

    def node(operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = unique(operator.lower()) if output is None else output
        nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    one, minus_one = constant(INT64, (1,), [1]), constant(INT64, (1,), [-1])
    zero, flat = constant(INT64, (1,), [0]), minus_one
    total, inputs, has_texts = constant(INT64, (1,), [card.base_points]), [], False
    for column in card.columns:
        values, last = column.bins.values.tolist(), column.bins.size - 1
        if column.bins.texts is not None:
            has_texts = True
            inputs.append((column.name, STRING, ["rows", 1]))
            known = {column.bins.texts[int(value)]: k for k, value in enumerate(values, 1)}
            for text in known:
                check_text("a category", text)
            texts = {**dict.fromkeys(NULL_TEXTS, 0), **known}
            encoded = node(
                "LabelEncoder", column.name, domain="ai.onnx.ml", keys_strings=list(texts),
                values_int64s=list(texts.values()), default_int64=last,
            )  # fmt: skip
            code = node("Reshape", encoded, flat)
        else:
            inputs.append((column.name, DOUBLE, ["rows", 1]))
            plain = node("Reshape", column.name, flat)
            missing = node("IsNaN", plain)
            if not values:
                counted = node("Where", missing, zero, one)
            elif column.bins.kind == "number":
                above = node("Cast", node("Greater", column.name, constant(DOUBLE, (1, len(values)), values)), to=INT64)
                counted = node("Add", node("ReduceSum", above, one, keepdims=0), one)
            else:
                same = node("Cast", node("Equal", column.name, constant(DOUBLE, (1, len(values)), values)), to=INT64)
                places = constant(INT64, (1, len(values)), list(range(1, len(values) + 1)))
                found = node("ReduceSum", node("Mul", same, places), one, keepdims=0)
                unknown = node("Equal", found, zero)
                counted = node("Where", unknown, constant(INT64, (1,), [last]), found)
            code = node("Where", missing, zero, counted)
        table = constant(INT64, (len(column.points),), column.points.tolist())
        total = node("Add", total, node("Gather", table, code))
    points, prediction = (unique(name) for name in OUTPUTS)
    node("Identity", total, output=points)
    positive = node("LessOrEqual" if card.pdo > 0 else "GreaterOrEqual", points, constant(INT64, (1,), [card.cutoff]))
    classes = _plain(card.classes)
    kind = {str: STRING, bool: BOOL, int: INT64, float: DOUBLE}[type(classes[0])]
    if kind == BOOL:  # False and True, in this order
        node("Identity", positive, output=prediction)
    else:
        yes, no = (constant(kind, (1,), [value]) for value in classes[::-1])
        node("Where", positive, yes, no, output=prediction)
    outputs = [(points, INT64, ["rows"]), (prediction, kind, ["rows"])]
    graph = helper.make_graph(
        nodes, "scorecard", [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs], constants,
    )  # fmt: skip
    domains = [helper.make_opsetid("", OPSET)] + [helper.make_opsetid("ai.onnx.ml", ML_OPSET)] * has_texts
    proto = helper.make_model(graph, opset_imports=domains, ir_version=FORMAT, producer_name="scoreline")
    onnx.checker.check_model(proto)
    if path is not None:
        with atomic_file(os.fspath(path)) as file:
            file.write(proto.SerializeToString())
    return proto


def _plain(classes: Any) -> list[Any]:
    return [value.item() if isinstance(value, np.generic) else value for value in classes]
