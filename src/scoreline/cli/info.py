"""Describe data or a model: shape, balance, scale, problems, advice."""

import argparse
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.classifier import load_model
from scoreline.cli.output import Output, as_options
from scoreline.cli.parser import add_reading
from scoreline.cli.reading import read
from scoreline.fitting.promise import FAR
from scoreline.io.columns import MissingValuesError
from scoreline.io.model_archive import HEADER
from scoreline.measures import get_measure
from scoreline.report.facts import describe

EXAMPLES = """examples:
  scoreline info payments.csv --label outcome
  scoreline info model.npz"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", help="a data file, a converted folder, or a saved model")
    add_reading(parser)


def run(options: Any, output: Output) -> None:
    """Describe the file."""
    show = _model if _is_model(Path(options.file)) else _data
    show(options, output)


def _is_model(path: Path) -> bool:
    """Tell whether a file is a model: an archive with our header."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return HEADER in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError):
        return False  # the reader of data explains what is wrong


def _data(options: Any, output: Output) -> None:
    problems = []
    try:
        data = read(options, output)
    except ValueError as error:  # missing values are a finding, not a reason to stop
        if not isinstance(error.__cause__, MissingValuesError):
            raise
        problems = [as_options(str(error))]
        options.impute = "mean"
        data = read(options, output)
    facts = describe(data.X, data.y, data.names, data.class_names)
    facts.warnings[:0] = problems
    output.results(**facts.numbers)
    output.results(warnings=output.content.get("warnings", []) + facts.warnings, advice=facts.advice)
    output.table([("", options.file), *facts.lines])
    for text in facts.warnings:
        output.text(f"warning: {text}")
    for text in facts.advice:
        output.text(f"advice: {text}")


def _threshold_in_words(threshold: float, positive: Any) -> str:
    if abs(threshold) >= FAR:
        return "above every score: no row is flagged" if threshold > 0.0 else "below every score: all rows are flagged"
    return f"{threshold:.6g}; predict subtracts it, so a score above 0 means {positive}"


def _model(options: Any, output: Output) -> None:
    clf = load_model(options.file)
    own = get_measure(clf.measure, clf.measure_params)
    measure, threshold = own.name, -float(clf.intercept_[0])
    used = int(np.count_nonzero(clf.coef_))
    numbers = {
        "measure": measure, "target": own.label, "measure_params": clf.measure_params, "threshold": threshold,
        "classes": clf.classes_, "features": clf.n_features_in_,
        "solver": clf.solver_, "risk": clf.risk_, "alpha": clf.alpha, "scaling": clf.scaling, "status": clf.status_,
        "nonzero_weights": used, "objective": clf.objective_, "lower_bound": clf.lower_bound_, "gap": clf.gap_,
    }  # fmt: skip
    rows = [
        ("measure", own.label),
        ("threshold", _threshold_in_words(threshold, clf.classes_[1])),
        ("classes", ", ".join(map(str, clf.classes_.tolist()))), ("features", f"{clf.n_features_in_:,}"),
        ("solver", f"{clf.solver_}, risk {clf.risk_}"), ("alpha", f"{clf.alpha:g}"), ("scaling", str(clf.scaling)),
        ("status", clf.status_), ("non-zero weights", f"{used:,}"),
    ]  # fmt: skip
    if clf.gap_ is not None:
        rows.append(("certificate", f"objective {clf.objective_:.6g}, lower bound {clf.lower_bound_:.6g}"))
    gain = getattr(clf, "calibration_gain_", None)
    if gain is not None:
        numbers["calibration_gain"] = gain
        rows.append(
            (
                "probabilities",
                f"log loss on held-out rows is {gain:.4g} lower than with the share of positives for every row",
            )
        )
    promise = getattr(clf, "promise_", None)
    if promise is not None:
        numbers["promise"] = promise._asdict()
        rows.append(("promise", str(promise)))
    output.results(**numbers)
    output.table([("", options.file), *rows])
