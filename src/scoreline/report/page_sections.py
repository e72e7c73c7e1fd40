"""The sections of a page: each takes the content and returns HTML."""

from functools import partial
from typing import Any

import numpy as np

from scoreline.measures import CountsBasedMeasure, OperatingPoint, get_measure
from scoreline.report import html_parts as parts
from scoreline.report.certificate_words import fit_facts, has_certificate, what_was_not_proved, what_was_proved
from scoreline.report.curves import above_zero, check_scores
from scoreline.report.displays import (
    ConvergenceDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdDisplay,
    WeightsDisplay,
)
from scoreline.report.svg import draw
from scoreline.report.wording import clean, number, percent, rate


def proof_section(content: Any) -> str:
    """Return what was proved, with the figures of the proof."""
    clf = content.classifier
    display, drawn = ConvergenceDisplay.from_estimator(clf), ""
    if display.has_certificate:
        words = display.describe()
        main = draw(partial(display.plot, legend_at="below"), "convergence", "Objective and lower bound", words)
        gap = display.describe_gap()
        plot = partial(display.plot_gap, tol=float(clf.tol), legend_at="below")
        right = draw(plot, "gap", "Proved gap", gap)
        drawn = parts.figures(parts.figure(main, words), parts.figure(right, gap))
    heading = "What was proved" if has_certificate(clf) else "No certificate"
    words = parts.paragraph(what_was_proved(clf)) + parts.paragraph(what_was_not_proved(clf), "small")
    return parts.section("proof", heading, words, drawn, parts.definitions(fit_facts(clf)))


def curve_section(content: Any) -> str:
    """Return ROC and precision-recall curves of all models."""
    drawn = []
    for key, kind in (("roc", RocDisplay), ("pr", PrecisionRecallDisplay)):
        display = kind.from_predictions(content.y_true, content.decisions)
        words = display.describe()
        svg = draw(partial(display.plot, legend_at="below"), key, kind.title, words, display.height)
        drawn.append(parts.figure(svg, words))
    text = "Each curve goes through all cuts of a model's scores; the dot is the cut that the model makes."
    return parts.section("curves", "Ranking: ROC and precision-recall", parts.paragraph(text), parts.figures(*drawn))


def cut_section(content: Any) -> str:
    """Return the measure against the threshold, and the confusion table at the cut."""
    clf, scores = content.classifier, _own(content)
    measure = get_measure(clf.measure, clf.measure_params)
    display = ThresholdDisplay.from_predictions(content.y_true, scores, measure=measure)
    words = display.describe()
    svg = draw(partial(display.plot, legend_at="below"), "threshold", "Measure against the threshold", words)
    truth = np.asarray(content.y_true, dtype=bool)
    tp, fp = above_zero(truth, scores)
    positives = float(np.count_nonzero(truth))
    negatives = len(truth) - positives
    negative, positive = (clean(name) for name in clf.classes_)
    rows = [
        {"truth": positive, f"called {positive}": f"{tp:,.0f}", f"called {negative}": f"{positives - tp:,.0f}"},
        {"truth": negative, f"called {positive}": f"{fp:,.0f}", f"called {negative}": f"{negatives - fp:,.0f}"},
    ]
    shares = [
        ("precision", _of(tp, tp + fp)),
        ("recall", _of(tp, positives)),
        ("false positive rate", _of(fp, negatives)),
        ("flagged rows", _of(tp + fp, len(truth))),
    ]
    if isinstance(measure, OperatingPoint):
        held = measure.kept(tp, fp, positives - tp, negatives - fp)
        shares.insert(0, ("target", f"{measure.constraint()}: {'met' if held else 'missed'} on these rows"))
    counts = parts.table(rows, "Rows at the chosen cut") + parts.definitions(shares)
    text = "The intercept holds the cut, so the threshold is 0 here; another one would have given what the curve says."
    if not isinstance(measure, CountsBasedMeasure):
        value = measure.value(truth, scores) if positives and negatives else float("nan")
        text = (
            f"{measure.name} ({rate(value)} on these rows) judges the ranking and does not depend on the cut; precision, "
            "recall and F1 do."
        )
    return parts.section(
        "cut", "The cut", parts.paragraph(text), parts.figures(parts.figure(svg, words), f"<div>{counts}</div>")
    )


def score_section(content: Any) -> str:
    """Return the distribution of the scores, and the share of positives by score."""
    scores, names = _own(content), tuple(clean(name) for name in content.classifier.classes_)
    spread = ScoreDistributionDisplay.from_predictions(content.y_true, scores, class_names=names)
    calibrated = hasattr(content.classifier, "calibration_")
    likely = content.classifier.probability_of(scores) if calibrated else None
    reliable = ReliabilityDisplay.from_predictions(content.y_true, scores, probabilities=likely)
    drawn = []
    shown: list[tuple[str, str, Any]] = [
        ("scores-of-classes", "Scores of both classes", spread),
        ("reliability", f"Share of positives by {'probability' if calibrated else 'score'}", reliable),
    ]
    for key, title, display in shown:
        words = display.describe()
        svg = draw(partial(display.plot, legend_at="below"), key, title, words)
        drawn.append(parts.figure(svg, words))
    text = (
        "Scores are distances from the cut, not probabilities: the second figure says what share of positives a score has "
        "stood for, in bins of about equally many rows."
    )
    if calibrated:
        text = (
            "Scores are distances from the cut. Probabilities were learnt from scores of rows left out of the training: in the "
            "second figure, bins of about equally many rows should lie on the diagonal."
        )
    return parts.section("scores", "Scores: distribution and reliability", parts.paragraph(text), parts.figures(*drawn))


def weight_section(content: Any) -> str:
    """Return the largest weights, as a figure and as a table with whole names."""
    many = WeightsDisplay.from_estimator(
        content.classifier, names=content.names, column_scale=content.column_scale, k=50
    )
    few = WeightsDisplay(many.weights[:15], many.names[:15], many.total, many.scaled)
    words = few.describe()
    svg = draw(partial(few.plot, legend_at="below"), "largest-weights", "Largest weights", words, few.height)
    rows = [{"feature": clean(n), "weight": number(w)} for n, w in zip(many.names, many.weights, strict=True)]
    listed = parts.table(rows, "Weights times standard deviation, by size" if many.scaled else "Weights by size")
    text = (
        "Weights are per standard deviation of a column, so their sizes compare."
        if many.scaled
        else "Weights are in the units of their columns: sizes compare only where columns have one scale."
    )
    return parts.section(
        "weights", "Largest weights", parts.paragraph(text), parts.figures(parts.figure(svg, words), f"<div>{listed}</div>")
    )  # fmt: skip


def data_section(content: Any) -> str:
    """Return warnings and facts about the data."""
    if not (content.facts or content.warnings):
        return ""
    return parts.section(
        "data", "Data and warnings", parts.warning_list(content.warnings), parts.definitions(content.facts)
    )


def reproduce_section(content: Any) -> str:
    """Return the commands that make it again."""
    if not content.commands:
        return ""
    return parts.section("reproduce", "How to reproduce it", parts.code(content.commands))


def _of(part: float, whole: float) -> str:
    return f"{part:,.0f} of {whole:,.0f}" + (f", {percent(part / whole)}" if whole else "")


def _own(content: Any) -> Any:
    """Return the decision values of the classifier itself: the first."""
    name, values = next(iter(content.decisions.items()))
    return check_scores(values, len(content.y_true), f"decisions[{name!r}]")
