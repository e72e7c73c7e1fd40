"""Train a model for a measure and save it.

Ctrl-C saves the best model so far.
"""

import argparse
import csv
import functools
import signal
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from scoreline.classifier import MeasureClassifier
from scoreline.cli import reading
from scoreline.cli.evaluate import words_of
from scoreline.cli.output import Output, Progress, as_options, reported, writing
from scoreline.cli.parser import UsageError, add_reading, add_training, check_measure, check_outputs, number
from scoreline.cli.promises import print_promise
from scoreline.cli.reading import (
    FILE_OPTIONS,
    classes_of,
    is_table,
    is_text,
    labels_of,
    read,
    scaling_of,
    two_classes,
    width_of,
)
from scoreline.fitting.plan import Request, Shape, plan
from scoreline.io import Dataset, read_columns
from scoreline.io.columns import listed
from scoreline.measures import OperatingPoint, get_measure
from scoreline.measures.intervals import intervals_of
from scoreline.model_selection import MeasureClassifierCV
from scoreline.monitoring import Reference
from scoreline.report.wording import LARGEST_USEFUL_GAP, SMALLER_GAP, gap_in_words, relative_gap
from scoreline.runtime.checks import column_index
from scoreline.solvers import Checkpoint
from scoreline.solvers import Progress as Iteration
from scoreline.solvers.moments import MomentsSolver
from scoreline.solvers.registry import get_solver

EXAMPLES = """examples:
  scoreline train payments.csv --label outcome --positive fraud --measure average_precision
  scoreline train a9a.svm --measure f1 --alpha 1e-3 --test a9a.t.svm --out a9a.npz --report a9a.html
  scoreline train payments.csv --label outcome --positive fraud --measure f1 --alpha auto --probability
  scoreline train clicks/ --measure roc_auc --max-time 600 --checkpoint clicks.ckpt
  scoreline train clicks/ --measure roc_auc --dask tcp://10.0.0.1:8786 --checkpoint clicks.ckpt
  scoreline train genes.parquet --label outcome --measure roc_auc --device cuda"""
SAME_NAMES = (
    "solver",
    "risk",
    "features",
    "probability",
    "tol",
    "max_iter",
    "max_time",
)  # as parameters of the classifier
COLUMN_MAPS = ("robust", "quantile")  # scalings that replace the values of columns
FEATURES = ("linear", "additive", "pairs", "auto")
CONFLICTS_OF_PAIRS = {
    "checkpoint": "pairs need two fits, and a checkpoint covers one",
    "early_stopping": "pairs are chosen at the optimum, which early stopping does not reach",
}
CONFLICTS_OF_ALPHA_AUTO = {
    "dask": "cross-validation is not supported on a cluster; give a number",
    "checkpoint": "a checkpoint covers one fit, and cross-validation makes many",
    "early_stopping": "both limit overfitting, and only one is needed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file", help="training data: CSV, Parquet, LIBSVM text and others, a folder made by convert, or demo:fraud"
    )
    parser.add_argument(
        "--out", metavar="MODEL", default="model.npz", help="where to save the model (default: model.npz)"
    )
    parser.add_argument("--test", metavar="FILE", help="test data to evaluate the model on")
    parser.add_argument("--report", metavar="HTML", help="also write an HTML page with plots and explanations")
    add_training(parser)
    add = parser.add_argument_group("solver").add_argument
    add("--solver", default="auto", help="solver; `scoreline measures --solvers` lists them (default: auto)")
    add("--risk", default="auto", help="convex surrogate to minimise; docs/solvers.md lists them (default: auto)")
    add(
        "--features",
        choices=FEATURES,
        default="linear",
        help="linear (default); additive learns a curve for each column; pairs adds pairs of columns; "
        "auto chooses by cross-validation and needs --alpha auto",
    )
    add(
        "--alpha",
        type=_alpha,
        default=1e-4,
        help="penalty strength: larger is simpler (default: 1e-4); auto chooses it by cross-validation",
    )
    add(
        "--penalty",
        choices=("l2", "elastic_net"),
        default="l2",
        help="kind of penalty (default: l2); elastic_net sets many coefficients to zero",
    )
    add(
        "--l1-ratio",
        type=number(least=0),
        metavar="SHARE",
        help="share of the L1 penalty in elastic_net (default: 0.5)",
    )
    add(
        "--bounds",
        metavar="FILE",
        help="CSV file with the columns feature, lower and upper: bounds of coefficients; leave a cell empty for no bound",
    )
    add(
        "--sign",
        action="append",
        type=_signed,
        metavar="COLUMN:+",
        help="force the coefficient of a feature to be at least 0 (COLUMN:+) or at most 0 (COLUMN:-); repeat for more",
    )
    add(
        "--monotone",
        action="append",
        type=direction,
        metavar="COLUMN:-",
        help="the score never falls (COLUMN:+) or never rises (COLUMN:-) with this column; repeat for more",
    )
    add(
        "--base-scores",
        metavar="COLUMN",
        help="column with the scores of an existing model, to which this model adds its own",
    )
    add(
        "--early-stopping",
        type=number(above=0),
        metavar="SHARE",
        help="hold out this share of the rows, and keep the iteration with the best measure on them",
    )
    add("--probability", action="store_true", help="calibrate the model, so that predict also writes probabilities")
    add(
        "--tol",
        type=number(above=0),
        default=1e-2,
        help="stop when the duality gap is this share of the lower bound (default: 0.01, which is 1 %%)",
    )
    add("--max-iter", type=number(least=1, integer=True), default=5000, help="iteration budget (default: 5000)")
    add("--max-time", type=number(above=0), metavar="SECONDS", help="time limit; the best model so far is saved")
    add(
        "--dask",
        metavar="ADDRESS",
        help="train on a Dask cluster; give the address of its scheduler, or local for workers on this machine",
    )
    add(
        "--device",
        metavar="NAME",
        help="train on a GPU: cuda or cuda:1 use PyTorch if it is installed, cupy uses CuPy",
    )
    add("--checkpoint", metavar="FILE", help="save the state of training here; if the file exists, resume from it")
    add_reading(parser)


def run(options: Any, output: Output) -> int:
    """Read, train, save, evaluate; 130 if Ctrl-C ended the training."""
    _check_options(options)
    if not options.dask:
        begin = time.perf_counter()
        return _train(options, output, read(options, output, excluded=_for_test_only(options)), begin)
    with reading.connected(options.dask, output) as client:
        begin = time.perf_counter()
        return _train(options, output, reading.read_on_cluster(options, output, client), begin)


def _train(options: Any, output: Output, data: Dataset, begin: float) -> int:
    """Train, save and evaluate, with rows here or on a cluster that were read since `begin`."""
    y = two_classes(data)
    if options.features == "linear" and getattr(data.X, "feature_map", None) is not None:
        raise UsageError(f"{options.file} holds codes of additive features: add --features additive, pairs or auto")
    output.note(f"read {data.X.shape[0]:,} rows, {width_of(data.X):,} features in {time.perf_counter() - begin:.1f} s")
    tested = test_rows(options, output, data)
    clf = _classifier(options, data)
    begin, reached = time.perf_counter(), None
    with Signals() as signals:
        try:
            with output.progress("training") as progress, output.messages():
                update = functools.partial(_update_if_ready, progress, clf)
                with reported(update):
                    _watch(clf, update)
                    try:
                        clf._column_names = data.names
                        clf.fit(data.X, y)
                        reached = clf.score(data.X, y)
                    finally:
                        signals.hold()
        except KeyboardInterrupt:
            if not hasattr(clf, "coef_") or (clf.status_ == "interrupted" and not np.any(clf.coef_)):
                raise KeyboardInterrupt("there is no model yet, and nothing is saved") from None
            clf.status_ = "interrupted"
        seconds = time.perf_counter() - begin
        clf.solver_params = None
        name_classes(clf, data)
        if clf.status_ != "interrupted" and not options.dask and is_table(options.file):
            clf.reference_ = _reference(options, clf, data, tested)
        with output.messages(), writing(options.out):
            clf.save(options.out, data.encoding)
    try:
        _summarize(options, output, clf, data, seconds, reached)
        if clf.status_ == "interrupted":
            output.note(f"interrupted: the best model so far is saved in {options.out}")
            return 130
        _print_value(output, clf, "the training rows", reached)
        _evaluate(options, output, clf, data, tested)
        return 0
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the model is saved in {options.out}") from None


def _reference(options: Any, clf: Any, data: Dataset, tested: Dataset | None) -> Reference:
    """Return what `scoreline monitor` compares new rows with: bins of the columns and scores, and the measure."""
    assert data.encoding is not None, "a table has an encoding"
    columns = read_columns(options.file, data.encoding, missing=options.missing, separator=options.separator)
    found = Reference.of(columns, clf.decision_function(data.X))
    rows, where = (data, "the training rows") if tested is None else (tested, "test rows")
    truth = np.asarray(labels_of(rows))
    truth = truth if truth.dtype == bool else words_of(truth) == words_of(clf.classes_)[1]
    if min(np.count_nonzero(truth), np.count_nonzero(~truth)) > 1:
        measure = get_measure(clf.measure, clf.measure_params)
        (interval,) = intervals_of([measure], truth, clf.decision_function(rows.X))
        found.measure, found.evaluated_on = [interval.value, interval.low, interval.high], where
    return found


def _summarize(options: Any, output: Output, clf: Any, data: Dataset, seconds: float, reached: float | None) -> None:
    """Print what was trained, and the certificate."""
    output.results(
        model=str(options.out), measure=clf.measure, solver=clf.solver_, risk=clf.risk_, status=clf.status_,
        objective=clf.objective_, lower_bound=clf.lower_bound_, gap=clf.gap_, iterations=clf.n_iter_, passes=clf.n_passes_,
        alpha=clf.alpha, seconds=seconds, rows=data.X.shape[0], features=width_of(data.X),
    )  # fmt: skip
    if options.dask:
        output.results(bytes=clf.history_.get("bytes", [None])[-1])
    if reached is not None:
        output.results(train=reached)
    if options.alpha == "auto" and clf.status_ != "interrupted":
        table = clf.cv_results_
        own = (table["alpha"] == clf.alpha_) & (table["features"] == clf.features_)
        value = max(table["mean_test_score"][own])
        if options.features == "auto":
            output.results(kind_of_features=clf.features_)
            output.text(f"{clf.features_} features by cross-validation")
        output.text(f"alpha {clf.alpha:g} has the best {clf.measure} in cross-validation: {value:.4f}")
    output.text(
        f"trained by {clf.solver_} with risk {clf.risk_}: {clf.status_} after {clf.n_iter_} iterations, {seconds:.2f} s"
    )
    if clf.rejected_ is not None:
        output.text(f"{clf.solver_} was kept: {clf.rejected_}")
    output.text(f"certificate: {_certificate(clf)}")
    print_promise(output, getattr(clf, "promise_", None))


def _evaluate(options: Any, output: Output, clf: Any, data: Dataset, tested: Dataset | None) -> None:
    """Print the result on test rows, and write the page."""
    if tested is not None:
        y = np.asarray(labels_of(tested))
        in_words = y.dtype == bool and clf.classes_.dtype != bool
        value = clf.score(tested.X, clf.classes_[y.astype(int)] if in_words else y)
        output.results(test=value)
        _print_value(output, clf, options.test, value)
    output.text(f"saved in {options.out}")
    if options.report:
        from scoreline.cli.pages import training_page

        training_page(options, output, clf, data, tested)


def _print_value(output: Output, clf: Any, rows: str, value: float | None) -> None:
    """Print the measure, and say so if the target of an operating point is missed."""
    if value is None:
        return
    output.text(f"{clf.measure} on {rows}: {value:.4f}")
    measure = get_measure(clf.measure, clf.measure_params)
    if isinstance(measure, OperatingPoint) and value == 0.0 and not measure.guarantee:  # the promise says it by itself
        output.text(
            f"The target is missed: {measure.constraint()} does not hold on {rows}, so the measure is 0. "
            "`scoreline evaluate` prints precision and recall."
        )


def _update_if_ready(progress: Progress, clf: Any, text: str) -> None:
    """Show progress once there is a model: from the first line on, Ctrl-C saves one."""
    interim = getattr(clf, "_interim", None)
    if interim is not None and interim.ready:
        progress.update(text)


class Signals:
    """Raises KeyboardInterrupt for the first Ctrl-C or SIGTERM; later ones, and all after `hold`, are ignored in the block.

    After the first one a model is assembled and written, which must not be interrupted.
    """

    numbers = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.held = False
        self.before: list[Any] = []

    def hold(self) -> None:
        """Ignore signals from now on."""
        self.held = True

    def _handle(self, *_: object) -> None:
        if not self.held:
            self.held = True
            raise KeyboardInterrupt

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            self.before = [signal.signal(which, self._handle) for which in self.numbers]
        return self

    def __exit__(self, *_: object) -> None:
        for which, handler in zip(self.numbers, self.before, strict=False):
            signal.signal(which, signal.SIG_DFL if handler is None else handler)


def _alpha(text: str) -> Any:
    return text if text == "auto" else number(above=0)(text)


def _classifier(options: Any, data: Dataset) -> MeasureClassifier | MeasureClassifierCV:
    params = {name: value for name in ("checkpoint", "device", "early_stopping") if (value := getattr(options, name))}
    if options.checkpoint:
        params["checkpoint"] = Checkpoint(options.checkpoint)
    kind = MeasureClassifierCV if options.alpha == "auto" else functools.partial(MeasureClassifier, alpha=options.alpha)
    penalty_params: dict[str, Any] = {} if options.l1_ratio is None else {"l1_ratio": options.l1_ratio}
    bounds = _bounds(options)
    if options.base_scores is not None:  # a column like others, but that its coefficient is 1 and costs nothing
        column = column_index(_column(options.base_scores), data.X.shape[1], data.names, "--base-scores")
        penalty_params["weights"] = [float(k != column) for k in range(data.X.shape[1])]
        bounds = {**(bounds or {}), _column(options.base_scores): (1.0, 1.0)}
    return kind(
        options.measure,
        dict(options.measure_param) or None,
        solver_params=params or None,
        penalty=options.penalty,
        penalty_params=penalty_params or None,
        bounds=bounds,
        monotone=monotone_of(options),
        scaling=scaling_of(options, data.X) if options.features == "linear" else None,
        random_state=options.seed,
        **{name: getattr(options, name) for name in SAME_NAMES},
    )


def _signed(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """Return a column and the bounds that a sign stands for."""
    column, sign = direction(text)
    return column, (0.0, None) if sign > 0 else (None, 0.0)


def direction(text: str) -> tuple[str, int]:
    """Return a column and the sign after it."""
    column, _, sign = text.rpartition(":")
    if not column or sign not in ("+", "-"):
        raise argparse.ArgumentTypeError(f"{text!r} must be COLUMN:+ or COLUMN:-")
    return column, 1 if sign == "+" else -1


def monotone_of(options: Any) -> dict[Any, int] | None:
    """Return the parameter `monotone`; a column may be a name or a number."""
    return {int(name) if name.isdigit() else name: sign for name, sign in options.monotone or ()} or None


def _bounds(options: Any) -> dict[Any, Any] | None:
    """Return bounds by column: those of the file, then the signs. A column may be a name or a number."""
    found: dict[Any, Any] = {}
    if options.bounds:
        with open(options.bounds, newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if not {"feature", "lower", "upper"} <= set(rows.fieldnames or ()):
                raise UsageError(f"--bounds {options.bounds}: the first line must name feature, lower and upper")
            for number_of_row, row in enumerate(rows, 2):
                try:
                    ends = tuple(float(row[end]) if (row[end] or "").strip() else None for end in ("lower", "upper"))
                except ValueError:
                    raise UsageError(
                        f"--bounds {options.bounds}, line {number_of_row}: lower and upper must be numbers or empty, got "
                        f"{row['lower']!r} and {row['upper']!r}"
                    ) from None
                found[row["feature"]] = ends
    found |= dict(options.sign or ())
    return {_column(name): ends for name, ends in found.items()} or None


def _column(name: str) -> str | int:
    """Return a column by its number, where that is what was given."""
    return int(name) if name.isdigit() else name


def _watch(clf: Any, update: Callable[[str], None]) -> None:
    """Show the duality gap of every iteration, if the solver has callbacks."""
    if clf.solver != "auto" and issubclass(get_solver(clf.solver), MomentsSolver):
        return

    def show(now: Iteration) -> None:
        gap = (now.objective - now.lower_bound) / max(now.lower_bound, 1e-300)
        update(f"iteration {now.iteration}, {now.passes:.0f} passes over the data, {gap_in_words(gap)}")

    clf.solver_params = {**(clf.solver_params or {}), "callbacks": [show]}


def name_classes(clf: Any, data: Dataset) -> None:
    """Restore the names of the classes: with --positive the labels are True and False during training."""
    if data.class_names is not None and clf.classes_.dtype == bool:
        clf.classes_ = np.array(data.class_names)


def _certificate(clf: Any) -> str:
    if clf.gap_ is None:
        return f"none, the solver {clf.solver_} gives no lower bound"
    gap = relative_gap(clf)
    text = f"objective {clf.objective_:.6g}, lower bound {clf.lower_bound_:.6g} ({gap_in_words(gap)})"
    return f"{text}. {as_options(SMALLER_GAP)}" if gap > LARGEST_USEFUL_GAP else text


def _check_options(options: Any) -> None:
    """Raise before anything is read if options contradict each other, or the device does not exist."""
    check_measure(options, [options.solver])
    if options.features == "auto" and options.alpha != "auto":
        raise UsageError("--features auto needs cross-validation: add --alpha auto, or name the features")
    for name, why in CONFLICTS_OF_PAIRS.items() if options.features == "pairs" else ():
        if getattr(options, name):
            option = name.replace("_", "-")
            raise UsageError(f"--features {options.features} and --{option}: {why}. Leave --{option} out.")
    if options.features != "linear" and options.scaling not in ("auto", "none"):
        raise UsageError(
            f"--scaling {options.scaling} works only with --features linear: binned features need no scaling"
        )
    if not options.solver == options.risk == "auto":
        measure = get_measure(options.measure, dict(options.measure_param) or None)
        try:  # whatever the shape: it decides only what "auto" takes
            solver = plan(Request(options.risk, options.solver), measure, Shape(0, 1)).solver
        except ValueError as error:
            raise UsageError(str(error)) from None
        if options.solver != "auto" and options.checkpoint and "checkpoint" not in solver.options():
            raise UsageError(
                f"--checkpoint: the solver {solver.name} does not support checkpoints; "
                "leave the option out, or choose another solver"
            )
    if options.device:
        if options.dask:
            raise UsageError(
                "--device and --dask: rows are either on one device or on the workers of a cluster; leave one out"
            )
        if options.solver in ("spade", "stamp", "hybrid"):
            raise UsageError(
                f"--device: the solver {options.solver} reads rows one by one on the host; leave --device out, or --solver"
            )
        from scoreline.gpu.backend import named_device

        try:
            named_device(options.device)
        except ValueError as error:
            raise UsageError(str(error)) from None
    if options.l1_ratio is not None and options.penalty != "elastic_net":
        raise UsageError("--l1-ratio belongs to --penalty elastic_net; add it, or leave --l1-ratio out")
    if options.base_scores is not None and (options.features != "linear" or options.scaling in COLUMN_MAPS):
        raise UsageError(
            "--base-scores keeps a column as it is: use it with --features linear, and without --scaling robust or quantile"
        )
    if options.bounds and not Path(options.bounds).is_file():
        raise UsageError(f"--bounds {options.bounds}: there is no such file")
    if options.early_stopping and options.solver == "moments":
        raise UsageError(
            "--early-stopping: the solver moments has no iterations; leave it out, or choose another solver"
        )
    if options.early_stopping and options.early_stopping > 0.5:
        raise UsageError(f"--early-stopping {options.early_stopping:g} must be a share of the rows, at most 0.5")
    for name, why in CONFLICTS_OF_ALPHA_AUTO.items():
        if options.alpha == "auto" and getattr(options, name):
            raise UsageError(f"--alpha auto and --{name.replace('_', '-')}: {why}; leave one out")
    check_outputs(options, ("out", "report", "checkpoint"), ("file", "test"))
    if options.dask and options.report:
        raise UsageError(
            "--report is not supported with --dask. Leave --report out, and run scoreline evaluate on a sample"
        )


def _for_test_only(options: Any) -> Collection[str]:
    """Return the options of reading that apply only to the file of --test."""
    if not options.test or Path(options.test).is_dir():
        return ()
    if Path(options.file).is_dir():
        return FILE_OPTIONS
    arrays = Path(options.file).suffix.lower() == ".npz" or is_text(options.file)
    return ("label", "missing", "separator") if arrays and is_table(options.test) else ()


def _in_words_of(classes: Any, data: Dataset, tested: Dataset) -> Any:
    """Return the labels of test rows in the form of the training labels; one of the two may be converted by --positive."""
    labels = np.asarray(labels_of(tested))
    if data.class_names is not None and labels.dtype != bool:
        return words_of(labels) == data.class_names[1]
    if data.class_names is None and tested.class_names is not None and classes.dtype != bool:
        words = words_of(np.array(tested.class_names))[labels.astype(int)]
        place = {word: k for k, word in enumerate(words_of(classes).tolist())}
        if set(words.tolist()) <= set(place):
            return classes[[place[word] for word in words.tolist()]]
    return labels


def test_rows(options: Any, output: Output, data: Dataset) -> Dataset | None:
    """Read the test rows before training, so that errors in them show immediately."""
    if not options.test:
        return None
    p, classes = width_of(data.X), classes_of(data.y)
    given = argparse.Namespace(**vars(options))
    if not Path(options.test).is_dir():
        if given.label is None and data.encoding is not None:
            given.label = data.encoding.label
        if given.positive is None and data.class_names is not None:
            given.positive = data.class_names[1]
    if is_table(options.test) and data.encoding is None:
        given.impute = given.impute or "none"  # indicator features would not fit the training rows
    like = options.file if Path(options.file).is_dir() else None
    tested = read(given, output, options.test, encoding=data.encoding, n_features=p, like=like)
    if data.encoding is None and tested.encoding is not None:
        text = [column.name for column in tested.encoding.columns if column.kind == "category"]
        if text:
            raise ValueError(
                f"--test {options.test} has text in column(s) {listed(text)}, and {options.file} does not say which features "
                "they become; train from a table, or from a folder converted from one"
            )
    labels = _in_words_of(classes, data, tested)
    tested = tested._replace(y=labels)
    if width_of(tested.X) != p:
        raise ValueError(f"--test {options.test} has {width_of(tested.X):,} features, {options.file} has {p:,}")
    unknown = ~np.isin(labels, classes)
    if unknown.any() or len(np.unique(labels)) < 2:
        wrong = labels[np.argmax(unknown)].item()
        got = f"the label {wrong!r} in row {np.argmax(unknown) + 1:,}" if unknown.any() else f"{wrong!r} only"
        raise ValueError(f"--test {options.test} has {got}, expected both {' and '.join(map(repr, classes.tolist()))}")
    return tested
