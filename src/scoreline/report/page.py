"""A page about a model: one HTML file without scripts and without requests to the network."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from scoreline.features.shapes import ShapeFunction, spread
from scoreline.io.files import atomic_file
from scoreline.measures import CountsBasedMeasure, OperatingPoint, check_counts, get_measure
from scoreline.report import html_parts as parts
from scoreline.report import wording
from scoreline.report.axes import Display
from scoreline.report.model_displays import ConvergenceDisplay, GapDisplay, WeightsDisplay
from scoreline.report.palette import DARK, LIGHT
from scoreline.report.score_displays import (
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdDisplay,
    check_scores,
    check_truth,
)
from scoreline.report.shape_display import ShapeDisplay
from scoreline.report.svg import draw
from scoreline.report.wording import clean, number, percent, rate
from scoreline.runtime.types import AnyArray, FloatArray

MOST_SHAPES = 8  # functions that are drawn
KINDS = {"pays": "Training for the measure pays", "tie": "A tie", "loses": "It does not pay here", "model": "The model"}


@dataclass(frozen=True)
class PageContent:
    """The content of a page.

    Attributes
    ----------
    title : str
        Heading of the page.
    verdict : str
        One plain sentence with the result.
    verdict_kind : {"pays", "tie", "loses", "model"}
        The result of a comparison, or "model" if nothing was compared.
    table : list of dict of str to str
        Rows of the comparison; keys are the columns. May be empty.
    classifier : MeasureClassifier
        The fitted classifier that the page is about.
    y_true : array of n bool
        Which of the evaluated rows are positive.
    decisions : dict of str to array of n numbers
        Decision values of each model on the evaluated rows; the first are those of `classifier`.
    evaluated_on : str
        A name for the evaluated rows, for example "143 test rows".
    names : list of str or None
        Names of the features.
    facts : list of (str, str)
        Facts about the data.
    warnings : list of str
        Warnings about the data and the fit.
    commands : list of str
        Commands that reproduce the result.
    column_scale : array of p numbers or None
        Standard deviations of the columns, by which the weights are multiplied.
    created : str
        Date and version.
    table_caption : str
        Caption of the table; by default it names the evaluated rows.
    second_verdict : str
        A sentence below the verdict that compares another kind of model. May be empty.
    shapes : list of ShapeFunction or None
        Functions of an additive model with their errors; by default those of `shape_functions()`, without.
    """

    title: str
    verdict: str
    verdict_kind: str
    table: list[dict[str, str]]
    classifier: Any
    y_true: AnyArray
    decisions: dict[str, FloatArray]
    evaluated_on: str
    names: list[str] | None
    facts: list[tuple[str, str]]
    warnings: list[str]
    commands: list[str]
    column_scale: AnyArray | None = None
    created: str = ""
    table_caption: str = ""
    second_verdict: str = ""
    shapes: list[ShapeFunction] | None = None

    def __post_init__(self) -> None:
        if self.verdict_kind not in KINDS:
            raise ValueError(f"verdict_kind={self.verdict_kind!r} must be one of {list(KINDS)}")
        if not self.decisions:
            raise ValueError("decisions must hold the decision values of the classifier")
        rows = len(check_truth(self.y_true))
        for name, values in self.decisions.items():
            check_scores(values, rows, f"decisions[{name!r}]")

    @property
    def scores(self) -> FloatArray:
        """Decision values of the classifier itself."""
        return np.asarray(next(iter(self.decisions.values())), dtype=np.float64)


def write_page(path: Any, content: PageContent) -> Path:
    """Write a page about a model as one self-contained HTML file, without scripts, external fonts or pictures.

    The file is written atomically, and the same content gives the same bytes.

    Parameters
    ----------
    path : path
        The file to write.
    content : PageContent
        The content of the page.

    Returns
    -------
    Path
        The file that was written.
    """
    target = Path(path)
    text = page_text(content)
    with atomic_file(target) as file:
        file.write(text.encode("utf-8"))
    return target


def page_text(content: PageContent) -> str:
    """Return the complete HTML document of a page."""
    caption = content.table_caption or f"On {content.evaluated_on}"
    known = parts.warning_list(content.warnings), parts.definitions(content.facts)
    sections = [
        ("results", "Results", parts.section("results", "Results", parts.table(content.table, caption, True))),
        ("proof", "Certificate", _proof_section(content)),
        ("curves", "Curves", _curve_section(content)),
        ("threshold", "Threshold", _threshold_section(content)),
        ("scores", "Scores", _score_section(content)),
        ("weights", "Weights", _weight_section(content)),
        ("data", "Data", parts.section("data", "Data and warnings", *known)),
        ("reproduce", "Reproduce", parts.section("reproduce", "How to reproduce it", parts.code(content.commands))),
    ]
    light, dark = (" ".join(f"--{name}: {value};" for name, value in scheme.items()) for scheme in (LIGHT, DARK))
    template = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
    return template.substitute(
        light=light,
        dark=dark,
        title=parts.escaped(content.title),
        evaluated_on=parts.escaped(content.evaluated_on),
        verdict_kind=content.verdict_kind,
        verdict_heading=KINDS[content.verdict_kind],
        verdict=parts.escaped(content.verdict),
        second_verdict=parts.paragraph(content.second_verdict),
        links="".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, body in sections if body),
        sections="\n".join(body for _, _, body in sections if body),
        created=parts.paragraph(content.created, "small"),
    )


def _figure(key: str, title: str, display: Display) -> str:
    words = display.describe()
    svg = draw(partial(display.plot, legend_at="below"), key, title, words, display.height)
    return f"<figure>\n{svg}\n<figcaption>{parts.escaped(words)}</figcaption>\n</figure>"


def _proof_section(content: PageContent) -> str:
    clf, drawn = content.classifier, ""
    bounds = ConvergenceDisplay.from_estimator(clf)
    if bounds.has_certificate:
        gap = GapDisplay.from_estimator(clf)
        drawn = parts.side_by_side(
            _figure("convergence", "Objective and lower bound", bounds), _figure("gap", "Duality gap", gap)
        )
    heading = "Certificate" if wording.has_certificate(clf) else "No certificate"
    words = parts.paragraph(wording.certificate(clf)) + parts.paragraph(wording.open_questions(clf), "small")
    return parts.section("proof", heading, words, drawn, parts.definitions(wording.fit_facts(clf)))


def _curve_section(content: PageContent) -> str:
    kinds = ("roc", RocDisplay), ("pr", PrecisionRecallDisplay)
    drawn = [_figure(key, kind.title, kind(content.y_true, content.decisions)) for key, kind in kinds]
    text = "Each curve shows all thresholds of a model's scores; the dot is the model's own threshold."
    return parts.section(
        "curves", "Ranking: ROC and precision-recall", parts.paragraph(text), parts.side_by_side(*drawn)
    )


def _threshold_section(content: PageContent) -> str:
    """Return the measure against the threshold, and the confusion table at the threshold."""
    clf, scores = content.classifier, content.scores
    measure = get_measure(clf.measure, clf.measure_params)
    display = ThresholdDisplay(content.y_true, scores, measure=measure)
    tp, fp, fn, tn = display.counts_at_threshold
    negative, positive = (clean(name) for name in clf.classes_)
    rows = [
        {"truth": positive, f"called {positive}": f"{tp:,.0f}", f"called {negative}": f"{fn:,.0f}"},
        {"truth": negative, f"called {positive}": f"{fp:,.0f}", f"called {negative}": f"{tn:,.0f}"},
    ]
    shares = [
        ("precision", _part_of(tp, tp + fp)),
        ("recall", _part_of(tp, tp + fn)),
        ("false positive rate", _part_of(fp, fp + tn)),
        ("flagged rows", _part_of(tp + fp, len(scores))),
    ]
    if isinstance(measure, OperatingPoint):
        met = measure.is_met(tp, fp, fn, tn)
        shares.insert(0, ("target", f"{measure.constraint()}: {'met' if met else 'missed'} on these rows"))
    promise = getattr(clf, "promise_", None)
    if promise is not None:
        test = check_counts(promise, *(int(each) for each in (tp, fp, fn, tn)))
        shares += [("promise", str(promise)), ("promise tested on these rows", str(test))]
    text = "The intercept includes the threshold, so the chosen threshold is 0. The curve shows the result of other thresholds."
    if not isinstance(measure, CountsBasedMeasure):
        truth = np.asarray(content.y_true, dtype=bool)
        value = measure.value(truth, scores) if 0 < truth.sum() < len(truth) else float("nan")
        text = (
            f"{measure.name} ({rate(value)} on these rows) measures the ranking and does not depend on the threshold; "
            "precision, recall and F1 do."
        )
    counts = f"<div>{parts.table(rows, 'Rows at the chosen threshold')}{parts.definitions(shares)}</div>"
    drawn = parts.side_by_side(_figure("threshold", "Measure against the threshold", display), counts)
    return parts.section("threshold", "The decision threshold", parts.paragraph(text), drawn)


def _score_section(content: PageContent) -> str:
    """Return the distribution of the scores, and the share of positives by score."""
    clf, scores = content.classifier, content.scores
    spread = ScoreDistributionDisplay(content.y_true, scores, class_names=[clean(name) for name in clf.classes_])
    calibrated = hasattr(clf, "calibration_")
    likely = clf.probability_of(scores) if calibrated else None
    reliable = ReliabilityDisplay(content.y_true, scores, probabilities=likely)
    drawn = parts.side_by_side(
        _figure("scores-of-classes", "Scores of both classes", spread),
        _figure("reliability", f"Share of positives by {'probability' if calibrated else 'score'}", reliable),
    )
    text = (
        "Scores are distances from the threshold, not probabilities. The second figure shows the share of positives by score, "
        "in bins of about equally many rows."
    )
    if calibrated:
        text = (
            "Scores are distances from the threshold. Probabilities were fitted to the scores of held-out rows. "
            "In the second figure, bins of about equally many rows should lie on the diagonal."
        )
    return parts.section("scores", "Scores: distribution and reliability", parts.paragraph(text), drawn)


def _weight_section(content: PageContent) -> str:
    """Return the largest weights, as a figure and as a table with full names."""
    if getattr(content.classifier, "feature_map_", None) is not None:
        return _shape_section(content)
    scale = content.column_scale
    many = WeightsDisplay.from_estimator(content.classifier, names=content.names, column_scale=scale, k=50)
    few = WeightsDisplay(many.weights[:15], many.names[:15], many.total, many.scaled)
    rows = [{"feature": clean(n), "weight": number(w)} for n, w in zip(many.names, many.weights, strict=True)]
    if many.scaled:
        caption = "Weights times standard deviation, by size"
        text = "Weights are per standard deviation of a column, so their sizes are comparable."
    else:
        caption = "Weights by size"
        text = "Weights are in the units of their columns, so their sizes are comparable only if the columns have one scale."
    drawn = parts.side_by_side(
        _figure("largest-weights", "Largest weights", few), f"<div>{parts.table(rows, caption)}</div>"
    )
    return parts.section("weights", "Largest weights", parts.paragraph(text), drawn)


def _shape_section(content: PageContent) -> str:
    """Return the functions of the most important columns and pairs, and a table of all."""
    shapes = content.classifier.shape_functions() if content.shapes is None else content.shapes
    shapes = sorted(shapes, key=lambda shape: -spread(shape.scores, shape.counts))
    drawn = [
        _figure(f"shape-{k}", clean(shape.name), ShapeDisplay(shape)) for k, shape in enumerate(shapes[:MOST_SHAPES])
    ]
    rows = [
        {"function": clean(shape.name), "standard deviation": number(spread(shape.scores, shape.counts))}
        for shape in shapes
    ]
    text = "The score is a sum of these functions. Each has the mean 0 over the training rows. Bars show where the rows are."
    if any(shape.errors is not None for shape in shapes):
        text += " Bands are two standard errors: how far a function moves where groups of rows are left out."
    table = parts.table(rows, "All functions, by their standard deviation over the training rows")
    return parts.section(
        "weights", "Shapes of the functions", parts.paragraph(text), parts.side_by_side(*drawn), f"<div>{table}</div>"
    )


def _part_of(part: float, total: float) -> str:
    return f"{part:,.0f} of {total:,.0f}" + (f", {percent(part / total)}" if total else "")
