"""The content of report pages."""

import datetime
import shlex
import sys
from typing import Any

import numpy as np

from scoreline import __version__
from scoreline.cli.compare import table, train_command
from scoreline.cli.output import Output, as_options, writing
from scoreline.cli.reading import labels_of
from scoreline.cli.train import name_classes
from scoreline.features import ShapeFunction
from scoreline.io import Dataset
from scoreline.measures import get_measure
from scoreline.model_selection.trials import Comparison
from scoreline.operators import as_operator
from scoreline.report import PageContent, write_page
from scoreline.report.facts import describe
from scoreline.risks.registry import get_risk

MOST_CELLS_FOR_BANDS = 1e7  # features times rows of an additive model, whose bands then take at most about ten seconds
MAX_COLUMNS_TO_SCALE = 100_000  # with more columns, their standard deviations would take as long as a fit


def training_page(options: Any, output: Output, clf: Any, data: Dataset, tested: Dataset | None) -> None:
    """Write the page of `train`, with the results on test rows, or else on the training rows."""
    rows = data if tested is None else tested
    decision = clf.decision_function(rows.X)
    y = np.asarray(labels_of(rows))
    truth = y if y.dtype == bool else y == np.unique(np.asarray(labels_of(data)))[-1]
    where = f"the {len(y):,} rows of {options.test}" if tested is not None else f"the {len(y):,} training rows"
    measure = get_measure(clf.measure, clf.measure_params).label
    value = clf.score(rows.X, clf.classes_[truth.astype(int)])
    trained_on = "All results are for the training rows; those on held-out rows will be worse. Use --test."
    _write(
        options,
        output,
        data,
        title=f"{measure} on {options.file}",
        verdict=f"{measure} is {value:.4f} on {where}. {_at_threshold(truth, decision > 0)}",
        verdict_kind="model",
        table=[],
        classifier=clf,
        y_true=truth,
        decisions={clf.solver_: decision},
        evaluated_on=where,
        warnings=[trained_on] if tested is None else [],
        shapes=_shapes(clf, data),
    )


def _shapes(clf: Any, data: Dataset) -> list[ShapeFunction] | None:
    """Return the functions of an additive model, with bands where these take seconds; None for another model."""
    features = getattr(clf, "feature_map_", None)
    risk = get_risk(clf.risk_, get_measure(clf.measure, clf.measure_params))
    if features is None:
        return None
    if data.X.shape[0] * features.n_features > MOST_CELLS_FOR_BANDS or not (risk.smooth or risk.smoothable):
        return None
    y = np.asarray(labels_of(data))
    truth = y if y.dtype == bool else y == np.unique(y)[-1]
    found: list[ShapeFunction] = clf.shape_functions(data.X, clf.classes_[truth.astype(int)], bands=True)
    return found


def _at_threshold(truth: Any, flagged: Any) -> str:
    """Return precision, recall and the number of flagged rows in words."""
    right, called, positives = (int(np.count_nonzero(rows)) for rows in (truth & flagged, flagged, truth))
    precision = f"{right / called:.4f}" if called else "not defined"
    return f"At its threshold: precision {precision}, recall {right / max(positives, 1):.4f}, {called:,} rows flagged."


def comparison_page(options: Any, output: Output, found: Comparison, data: Dataset) -> None:
    """Write the page of `compare`, with the table, and the models of the last split on its test rows."""
    head, *rows = table(found)
    name_classes(found.classifier, data)
    caption = f"Means over {found.splits} splits, and differences to the best linear baseline, paired by split"
    if found.methods > 1:
        caption += f". The intervals of the {found.methods} scoreline methods hold for all of them at once"
    _write(
        options,
        output,
        data,
        title=f"{found.measure.name} on {options.file}",
        verdict=found.verdict,
        verdict_kind=found.kind,
        second_verdict=found.tree_verdict,
        table=[dict(zip(head, row, strict=True)) for row in rows],
        classifier=found.classifier,
        y_true=found.truth,
        decisions=found.decisions,
        evaluated_on=f"the {found.test_rows:,} test rows of the last of {found.splits} splits",
        table_caption=caption,
        facts=[("rows compared on", f"{found.rows_used:,} of {found.rows:,}")],
        warnings=[*map(as_options, found.notes)],
        commands=[train_command(options, found, data.X.shape)],
    )


def _write(
    options: Any, output: Output, data: Dataset, facts: Any = (), warnings: Any = (), commands: Any = (), **content: Any
) -> None:
    """Write a page, with the common parts: facts about the data, the command, the date."""
    found = describe(data.X, data.y, data.names, data.class_names)
    operator = as_operator(data.X, check_finite=False)
    scaled = operator.shape[1] <= MAX_COLUMNS_TO_SCALE and "statistics" in operator.capabilities
    page = PageContent(
        names=data.names,
        facts=[*facts, *found.lines, *(("advice", text) for text in found.advice)],
        warnings=[*warnings, *found.warnings],
        commands=[shlex.join(["scoreline", *sys.argv[1:]]), *commands],
        column_scale=np.sqrt(operator.column_statistics().variance) if scaled else None,
        created=f"{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}, scoreline {__version__}",
        **content,
    )
    with writing(options.report):
        write_page(options.report, page)
    output.results(report=options.report)
    output.text(f"report in {options.report}")
