"""Export a saved model for other programs: ONNX, SQL, JSON."""

import argparse
import json
from typing import Any

from scoreline.classifier import load_model
from scoreline.cli.output import Output, write_stdout, writing
from scoreline.cli.parser import UsageError, check_outputs, names
from scoreline.export import to_json, to_onnx, to_sql
from scoreline.export.as_sql import DIALECTS
from scoreline.io.files import atomic_file

EXAMPLES = """examples:
  scoreline export model.npz --to sql --table payments --keep id > score.sql
  scoreline export model.npz --to onnx --out model.onnx
  scoreline export model.npz --to json --out model.json"""
SHOWN = 20  # inputs in the note about a model
OPTIONS = {"sql": ("table", "keep", "booleans", "dialect"), "onnx": ("dtype", "inputs")}  # options of a single format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a model saved by train")
    parser.add_argument("--to", choices=("onnx", "sql", "json"), required=True, help="output format")
    parser.add_argument("--out", metavar="FILE", help="output file (default: standard output); required for onnx")
    add = parser.add_argument_group("sql").add_argument
    add("--table", metavar="NAME", help="table to score; SCHEMA.NAME if it is in a schema")
    add("--keep", type=names, metavar="A,B", help="columns to copy to the result (default: all)")
    add(
        "--dialect",
        choices=tuple(DIALECTS),
        help="SQL dialect (default: ansi, for PostgreSQL, SQLite, DuckDB and others)",
    )
    add("--booleans", type=names, metavar="A,B", help="columns that have the type BOOLEAN in the database")
    add = parser.add_argument_group("onnx").add_argument
    add(
        "--dtype",
        choices=("float32", "float64"),
        help="number type of the inputs (default: float64 for columns, float32 for features)",
    )
    add(
        "--inputs",
        choices=("columns", "features"),
        help="what the ONNX model reads: raw columns of a table (default if the model knows them), or encoded features",
    )


def run(options: Any, output: Output) -> None:
    """Load, export, write."""
    _check(options)
    check_outputs(options, ("out",), ("model",))
    clf = load_model(options.model)
    content: Any
    if options.to == "onnx":
        content = to_onnx(clf, dtype=options.dtype, inputs=options.inputs)
        written = content.SerializeToString()
        inputs, outputs = ([each.name for each in side] for side in (content.graph.input, content.graph.output))
        output.results(inputs=inputs, outputs=outputs)
        output.note(_signature(content.graph))
    elif options.to == "sql":
        given = {name: value for name in ("keep", "dialect", "booleans") if (value := getattr(options, name))}
        content = to_sql(clf, options.table.split("."), **given)
        written = f"{content};\n".encode()
    else:
        content = to_json(clf)
        written = (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    output.results(to=options.to, features=clf.n_features_in_)
    if options.out:
        with writing(options.out), atomic_file(options.out) as file:
            file.write(written)
        output.results(out=options.out)
        output.note(f"{options.to} of {clf.n_features_in_:,} features in {options.out}")
    elif output.json:
        output.results(**{options.to: content})
    else:
        write_stdout(written.decode())


def _signature(graph: Any) -> str:
    kinds = {1: "float32", 8: "text", 11: "float64"}
    inputs = [f"{each.name} ({kinds[each.type.tensor_type.elem_type]})" for each in graph.input]
    more = f" and {len(inputs) - SHOWN} more" if len(inputs) > SHOWN else ""
    columns = graph.input[0].type.tensor_type.shape.dim[1].dim_value
    outputs = ", ".join(each.name for each in graph.output)
    return f"inputs of shape (rows, {columns}): {', '.join(inputs[:SHOWN])}{more}; outputs: {outputs}"


def _check(options: Any) -> None:
    for owner, own in OPTIONS.items():
        for name in own:
            if getattr(options, name) is not None and options.to != owner:
                raise UsageError(f"--{name} is for --to {owner}, not for --to {options.to}; leave it out")
    if options.to == "sql" and not options.table:
        raise UsageError("--to sql needs the table whose rows are scored: --table NAME")
    if options.to == "onnx" and not options.out:
        raise UsageError("--to onnx is not text: name a file with --out")
