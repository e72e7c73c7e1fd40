"""What a data set is like: shape, balance, scale, constant columns, duplicate rows; and what to do about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scoreline.fitting.checks import check_labels
from scoreline.operators import Operator, as_operator
from scoreline.operators.column_maps import heavy_tailed
from scoreline.runtime.types import AnyArray

APART = 1e3  # ratio of the magnitudes of columns from which scaling is advised
BALANCED = 0.4  # share of the smaller class from which on accuracy tells a model from a constant prediction
MANY = 0.01  # share of duplicate rows that is worth a word


@dataclass(frozen=True)
class Facts:
    """Facts of a data set, as pairs (what, value) in words, and as numbers; warnings and advice as sentences."""

    lines: list[tuple[str, str]]
    numbers: dict[str, Any]
    warnings: list[str]
    advice: list[str]


def describe(X: Any, y: Any = None, names: list[str] | None = None, class_names: list[str] | None = None) -> Facts:
    """Look at a data set: three passes over X and a sample of its rows, a few vectors of n numbers.

    Duplicate rows are found by the scores of two random vectors, which are equal for equal rows and hardly ever for others.

    Parameters
    ----------
    X : array, sparse matrix, frame or Operator
        Examples in rows.
    y : array of labels, optional
        Their classes.
    names : list of str, optional
        Names of the features.
    class_names : list of str, optional
        What False and True stand for, where labels are these.

    Returns
    -------
    Facts
        What was found.
    """
    operator = as_operator(X)
    n, p = operator.shape
    numbers: dict[str, Any] = {}
    warnings: list[str] = []
    advice: list[str] = []
    lines = [("rows", f"{n:,}"), ("features", f"{p:,}")]
    numbers |= {"rows": n, "features": p}
    stored = _stored(X)
    if stored is not None:
        numbers["stored"], share = stored, stored / (n * p)
        lines.append(("stored entries", f"{stored:,} ({share:.2%} of all, {stored / n:.1f} a row)"))
    if y is not None:
        _labels(y, n, class_names, lines, numbers, warnings, advice)
    if "statistics" in operator.capabilities:
        _columns(operator, names, lines, numbers, warnings, advice)
    _tails(operator, names, lines, numbers, warnings, advice)
    if n > 1:
        _duplicates(operator, y, lines, numbers, warnings)
    if y is not None and numbers.get("classes") == 2:
        advice.append(_measure_advice(numbers))
    return Facts(lines, numbers, warnings, advice)


def _stored(X: Any) -> int | None:
    inner = getattr(X, "_X", X)
    return int(inner.nnz) if hasattr(inner, "nnz") else None


def _labels(
    y: Any, n: int, class_names: list[str] | None, lines: list[Any], numbers: dict[str, Any], warnings: list[str],
    advice: list[str],
) -> None:  # fmt: skip
    values = np.unique(np.asarray(y))
    numbers["classes"] = len(values)
    if len(values) != 2:
        lines.append(
            (
                "classes",
                f"{len(values)}: {', '.join(map(str, values[:5].tolist()))}{', ...' if len(values) > 5 else ''}",
            )
        )
        word = "one class only" if len(values) == 1 else f"{len(values)} classes"
        warnings.append(
            f"The labels have {word}; training needs two. --positive names the one to find against all others."
        )
        return
    classes, sign = check_labels(y, n)
    if class_names is not None and set(values.tolist()) == {False, True}:
        classes = np.array(class_names)
    positives = int(np.count_nonzero(sign > 0))
    numbers |= {"positives": positives, "positive_share": positives / n}
    lines.append(("positive class", f"{classes[1]!s}: {positives:,} rows, {positives / n:.2%}"))
    lines.append(("negative class", f"{classes[0]!s}: {n - positives:,} rows"))
    few = min(positives, n - positives)
    if few < 50:
        warnings.append(f"Only {few} rows of the rarer class: figures on new rows will be uncertain.")
    if positives > n / 2:
        advice.append(
            f"The positive class, {classes[1]!s}, is the more frequent one. If {classes[0]!s} is what you look for, name it "
            "with --positive."
        )


def _columns(
    operator: Operator,
    names: list[str] | None,
    lines: list[Any],
    numbers: dict[str, Any],
    warnings: list[str],
    advice: list[str],
) -> None:
    statistics = operator.column_statistics()
    largest = np.asarray(statistics.max_abs)
    constant = np.flatnonzero(np.asarray(statistics.variance) <= 0.0)
    numbers |= {"constant_columns": len(constant), "empty_columns": int(np.count_nonzero(largest == 0.0))}
    lines.append(
        ("constant columns", f"{len(constant):,}" + (f" ({_named(constant, names)})" if 0 < len(constant) else ""))
    )
    used = largest[largest > 0.0]
    if len(used):
        ratio = float(used.max() / used.min())
        numbers |= {"largest_magnitude": float(used.max()), "magnitude_ratio": ratio}
        lines.append(("magnitudes of columns", f"{used.min():.3g} to {used.max():.3g}"))
        if ratio >= APART:
            top = int(np.argmax(largest))
            warnings.append(
                f"Columns differ in scale by a factor of {ratio:.2g}; the largest is {_named([top], names)}."
            )
            advice.append("train and compare scale the features (--scaling auto); in Python pass scaling='standard'.")


def _tails(
    operator: Operator,
    names: list[str] | None,
    lines: list[Any],
    numbers: dict[str, Any],
    warnings: list[str],
    advice: list[str],
) -> None:
    heavy = heavy_tailed(operator)
    numbers["heavy_tailed_columns"] = len(heavy)
    if len(heavy):
        lines.append(("heavy-tailed columns", f"{len(heavy):,} ({_named(heavy, names)})"))
        warnings.append(
            f"Columns with heavy tails: {_named(heavy, names)}. A few extreme values make up most of their variance, so "
            "scaling and penalty work on them and not on the other rows."
        )
        advice.append(
            "For heavy tails use --scaling robust, which clips extreme values, or --scaling quantile, which replaces values by "
            "normal scores; in Python pass scaling='robust' or 'quantile'."
        )


def _named(columns: Any, names: list[str] | None) -> str:
    shown = [names[c] if names else f"column {c}" for c in list(columns)[:5]]
    return ", ".join(shown) + (", ..." if len(columns) > 5 else "")


def _duplicates(operator: Operator, y: Any, lines: list[Any], numbers: dict[str, Any], warnings: list[str]) -> None:
    rng = np.random.default_rng(0)
    weight = np.ones(operator.shape[1])
    if "statistics" in operator.capabilities:  # so that no column is lost in the rounding of another
        largest = np.asarray(operator.column_statistics().max_abs)
        weight = 1.0 / np.where(largest > 0.0, largest, 1.0)
    scores = [np.asarray(operator.matvec(weight * rng.standard_normal(len(weight)))) for _ in range(2)]
    order = np.lexsort(scores)
    same = np.ones(len(order) - 1, dtype=bool)
    for z in scores:
        same &= np.diff(z[order]) == 0.0
    count = int(np.count_nonzero(same))
    numbers["duplicate_rows"] = count
    lines.append(("rows that repeat another", f"{count:,} ({count / len(order):.2%})"))
    if y is not None and count:
        labels: AnyArray = np.asarray(y)[order]
        group = np.concatenate([[0], np.cumsum(~same)])  # of equal rows
        mixed = np.unique(group[1:][same & (labels[1:] != labels[:-1])])
        torn = int(np.bincount(group)[mixed].sum())
        numbers["contradicting_rows"] = torn
        if torn:
            warnings.append(f"{torn:,} rows equal another one but have another label: no model can tell them apart.")
    if count > MANY * len(order):
        warnings.append(
            f"{count / len(order):.1%} of the rows repeat another: with random splits, test rows are then known from training."
        )


def _measure_advice(numbers: dict[str, Any]) -> str:
    share = numbers["positive_share"]
    if min(share, 1.0 - share) < BALANCED:
        return (
            "Classes are imbalanced: predicting the larger class for every row has an accuracy of "
            f"{max(share, 1.0 - share):.1%}. Train for average_precision or recall_at_precision if you work down a list, f1 or "
            "mcc for decisions, roc_auc for ranking."
        )
    return "Classes are balanced, so accuracy is a fair measure; roc_auc for ranking, f1 if only the positive class matters."
