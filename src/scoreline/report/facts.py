"""Facts about a data set, with warnings and advice: shape, balance, scale, constant columns, duplicate rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scoreline.fitting.checks import check_labels
from scoreline.operators import Operator, as_operator
from scoreline.operators.column_maps import heavy_tailed
from scoreline.runtime.types import AnyArray, FloatArray

MAGNITUDE_RATIO_TO_SCALE = 1e3  # columns that differ by this factor should be scaled
BALANCED_SHARE = 0.4  # least share of the smaller class at which accuracy is a useful measure
MIN_ROWS_PER_CLASS = 50  # with fewer rows the results on held-out rows are uncertain
MANY_DUPLICATES = 0.01  # share of the rows that is worth a warning


@dataclass(frozen=True)
class Facts:
    """Facts about a data set: pairs (name, value) as text, the same as numbers, and sentences with warnings and advice."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def describe(X: Any, y: Any = None, names: list[str] | None = None, class_names: list[str] | None = None) -> Facts:
    """Describe a data set, in three passes over X and with a few vectors of n numbers.

    Duplicate rows are found by their scores for two random vectors, which are equal for equal rows and almost never for
    others.

    Parameters
    ----------
    X : array, sparse matrix, frame or Operator
        One example per row.
    y : array of labels, optional
        Their classes.
    names : list of str, optional
        Names of the features.
    class_names : list of str, optional
        The classes that the labels False and True stand for.

    Returns
    -------
    Facts
        Facts, warnings and advice.
    """
    operator = as_operator(X)
    n, p = operator.shape
    facts = Facts([("rows", f"{n:,}"), ("features", f"{p:,}")], {"rows": n, "features": p})
    matrix = getattr(X, "_X", X)
    if hasattr(matrix, "nnz"):
        stored = facts.numbers["stored"] = int(matrix.nnz)
        facts.lines.append(("stored entries", f"{stored:,} ({stored / (n * p):.2%} of all, {stored / n:.1f} per row)"))
    if y is not None:
        _add_labels(facts, y, n, class_names)
    weight = np.ones(p)
    if "statistics" in operator.capabilities:
        statistics = operator.column_statistics()
        largest = np.asarray(statistics.max_abs)
        _add_columns(facts, largest, np.asarray(statistics.variance), names)
        weight = 1.0 / np.where(largest > 0.0, largest, 1.0)  # no column disappears in the rounding of another
    _add_tails(facts, operator, names)
    if n > 1:
        _add_duplicates(facts, operator, y, weight)
    if facts.numbers.get("classes") == 2:
        facts.advice.append(_measure_advice(facts.numbers["positive_share"]))
    return facts


def _add_labels(facts: Facts, y: Any, n: int, class_names: list[str] | None) -> None:
    values = np.unique(np.asarray(y))
    facts.numbers["classes"] = len(values)
    if len(values) != 2:
        shown = ", ".join(map(str, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
        facts.lines.append(("classes", f"{len(values)}: {shown}"))
        word = "one class only" if len(values) == 1 else f"{len(values)} classes"
        facts.warnings.append(
            f"The labels have {word}; training needs two. --positive names the positive class; all others become negative."
        )
        return
    classes, sign = check_labels(y, n)
    if class_names is not None and set(values.tolist()) == {False, True}:
        classes = np.array(class_names)
    positives = int(np.count_nonzero(sign > 0))
    facts.numbers.update(positives=positives, positive_share=positives / n)
    facts.lines.append(("positive class", f"{classes[1]!s}: {positives:,} rows, {positives / n:.2%}"))
    facts.lines.append(("negative class", f"{classes[0]!s}: {n - positives:,} rows"))
    few = min(positives, n - positives)
    if few < MIN_ROWS_PER_CLASS:
        facts.warnings.append(f"Only {few} rows of the rarer class: results on held-out rows will be uncertain.")
    if positives > n / 2:
        facts.advice.append(
            f"The positive class, {classes[1]!s}, is the more frequent one. If you want to detect {classes[0]!s}, pass it "
            "as --positive."
        )


def _add_columns(facts: Facts, largest: AnyArray, variance: AnyArray, names: list[str] | None) -> None:
    constant = np.flatnonzero(variance <= 0.0)
    facts.numbers.update(constant_columns=len(constant), empty_columns=int(np.count_nonzero(largest == 0.0)))
    which = f" ({_named(constant, names)})" if len(constant) else ""
    facts.lines.append(("constant columns", f"{len(constant):,}{which}"))
    used = largest[largest > 0.0]
    if len(used) == 0:
        return
    ratio = float(used.max() / used.min())
    facts.numbers.update(largest_magnitude=float(used.max()), magnitude_ratio=ratio)
    facts.lines.append(("magnitudes of columns", f"{used.min():.3g} to {used.max():.3g}"))
    if ratio >= MAGNITUDE_RATIO_TO_SCALE:
        top = _named([int(np.argmax(largest))], names)
        facts.warnings.append(f"Columns differ in scale by a factor of {ratio:.2g}; the largest is {top}.")
        facts.advice.append("train and compare scale the features (--scaling auto); in Python pass scaling='standard'.")


def _add_tails(facts: Facts, operator: Operator, names: list[str] | None) -> None:
    heavy = heavy_tailed(operator)
    facts.numbers["heavy_tailed_columns"] = len(heavy)
    if len(heavy) == 0:
        return
    facts.lines.append(("heavy-tailed columns", f"{len(heavy):,} ({_named(heavy, names)})"))
    facts.warnings.append(
        f"Columns with heavy tails: {_named(heavy, names)}. A few extreme values make up most of their variance, so "
        "scaling and penalty work on them and not on the other rows."
    )
    facts.advice.append(
        "For heavy tails use --scaling robust, which clips extreme values, or --scaling quantile, which replaces values by "
        "normal scores; in Python pass scaling='robust' or 'quantile'."
    )


def _named(columns: Any, names: list[str] | None) -> str:
    shown = [names[c] if names else f"column {c}" for c in list(columns)[:5]]
    return ", ".join(shown) + (", ..." if len(columns) > 5 else "")


def _add_duplicates(facts: Facts, operator: Operator, y: Any, weight: FloatArray) -> None:
    rng = np.random.default_rng(0)
    scores = [np.asarray(operator.matvec(weight * rng.standard_normal(len(weight)))) for _ in range(2)]
    order = np.lexsort(scores)
    same = (np.diff(scores[0][order]) == 0.0) & (np.diff(scores[1][order]) == 0.0)
    count, share = int(np.count_nonzero(same)), float(np.count_nonzero(same) / len(order))
    facts.numbers["duplicate_rows"] = count
    facts.lines.append(("rows that repeat another", f"{count:,} ({share:.2%})"))
    if y is not None and count:
        labels = np.asarray(y)[order]
        group = np.concatenate([[0], np.cumsum(~same)])  # the number of a row's group of equal rows
        mixed = np.unique(group[1:][same & (labels[1:] != labels[:-1])])
        conflicting = facts.numbers["contradicting_rows"] = int(np.bincount(group)[mixed].sum())
        if conflicting:
            facts.warnings.append(
                f"{conflicting:,} duplicate rows have conflicting labels: no model can separate them."
            )
    if share > MANY_DUPLICATES:
        facts.warnings.append(
            f"{share:.1%} of the rows are duplicates: with random splits, some test rows also occur in training."
        )


def _measure_advice(share: float) -> str:
    if min(share, 1.0 - share) < BALANCED_SHARE:
        return (
            "Classes are imbalanced: predicting the larger class for every row has an accuracy of "
            f"{max(share, 1.0 - share):.1%}. Train for average_precision or recall_at_precision if you work down a list, f1 or "
            "mcc for decisions, roc_auc for ranking."
        )
    return "Classes are balanced, so accuracy is a fair measure; roc_auc for ranking, f1 if only the positive class matters."
