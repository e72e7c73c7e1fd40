"""Names, numbers and the certificate of a fit as text for readers."""

from typing import Any

import numpy as np

from scoreline.measures import get_measure

LARGEST_USEFUL_GAP = 1.0  # as a share of the lower bound
SMALLER_GAP = "Raise max_iter or max_time, raise alpha, or scale the features for a smaller gap."
ENDINGS = {
    "max_iter": "it was stopped by max_iter",
    "max_time": "it was stopped by max_time",
    "interrupted": "it was interrupted",
    "early_stopping": "it was stopped early, by its validation rows",
    "stalled": "it could not make progress in floating point",
}


def clean(text: Any) -> str:
    """Return text without control characters, marks of text direction, and runs of spaces.

    Names can come from untrusted files, so characters that cannot be printed are removed from figures and pages.
    """
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def shorten(text: Any, length: int) -> str:
    """Return the cleaned text in at most `length` characters, without its middle, because names differ at both ends."""
    cleaned = clean(text)
    if len(cleaned) <= length:
        return cleaned
    head = length // 2
    return f"{cleaned[:head].rstrip()}…{cleaned[len(cleaned) - (length - 1 - head) :].lstrip()}"


def rate(value: float) -> str:
    """Return a number between 0 and 1 with three digits, or more if it would otherwise be rounded to 0 or 1."""
    if not np.isfinite(value):
        return "not defined"
    text = f"{value:.3f}"
    if text == "1.000" and value < 1.0:
        return f"{value:.5f}" if value < 0.999995 else "above 0.99999"
    if text in ("0.000", "-0.000"):
        return "0.000" if value == 0.0 else f"{value:.2g}"
    return text


def number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}" if np.isfinite(value) else "not defined"


def distinct_digits(low: float, high: float) -> tuple[str, str]:
    """Return two numbers with at least four digits, and as many as make them differ."""
    for digits in range(4, 13):
        texts = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def percent(share: float) -> str:
    """Return a share in percent with the digits that matter."""
    if not np.isfinite(share):
        return "not defined"
    hundred = 100.0 * share
    if 0.0 < hundred < 0.001:
        return "less than 0.001 %"
    if hundred == 0.0 or abs(hundred) >= 99.95:
        return f"{hundred:.3g} %" if hundred in (0.0, 100.0) else f"{hundred:.2f} %"
    return f"{hundred:.1f} %" if abs(hundred) >= 1.0 else f"{hundred:.2g} %"


def count(value: float, noun: str, plural: str | None = None) -> str:
    """Return "1 row", "12,000 rows"."""
    return f"{value:,.0f} {noun if value == 1 else plural or noun + 's'}"


def joined(parts: list[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def has_certificate(clf: Any) -> bool:
    """Tell whether a fitted classifier has a certificate."""
    return getattr(clf, "objective_", None) is not None and getattr(clf, "lower_bound_", None) is not None


def relative_gap(clf: Any) -> float:
    """Return the gap as a share of the lower bound; infinite if the bound is not above 0."""
    return float(clf.gap_ / clf.lower_bound_) if clf.lower_bound_ > 0.0 else np.inf


def gap_in_words(gap: float) -> str:
    """Return a gap that is given as a share of the lower bound."""
    return f"gap {percent(gap)}" if gap <= LARGEST_USEFUL_GAP else "gap above 100 %"


def certificate(clf: Any) -> str:
    """Return the certificate of a fitted classifier in words."""
    if not has_certificate(clf):
        return (
            f"There is no certificate: the solver {clf.solver_} gives no lower bound of an objective. "
            "The results below show how good the model is."
        )
    gap = relative_gap(clf)
    if not np.isfinite(gap):
        return f"This model has the objective J = {number(clf.objective_)}, and no lower bound above 0 was found."
    low, high = distinct_digits(clf.lower_bound_, clf.objective_)
    if gap > LARGEST_USEFUL_GAP:
        text = (
            f"The certificate is not useful yet: this model has the objective J = {high}, and the lower bound is only {low}. "
            f"{SMALLER_GAP}"
        )
    else:
        text = (
            f"On the training rows, no model of this kind has an objective J below {low}. This model has J = {high}, "
            f"which is at most {percent(max(gap, 1e-5))} above the best possible value. Neither another solver nor more "
            "time can gain more than that."
        )
    if clf.status_ != "converged":
        why = ENDINGS.get(clf.status_, f"its status is {clf.status_}")
        text += f" The fit ended before the requested gap of {percent(clf.tol)} was reached: {why}."
    return text


def open_questions(clf: Any) -> str:
    """Return in words what the certificate does not prove."""
    if not has_certificate(clf):
        return ""
    measure = get_measure(clf.measure, clf.measure_params).name
    return (
        f"The certificate does not prove that {measure} itself is the best possible, because J consists of a convex surrogate "
        f"({clf.risk_}) and a penalty. Nor does it say anything about held-out rows; see the figures below."
    )


def fit_facts(clf: Any) -> list[tuple[str, str]]:
    """Return the numbers of the fit, named."""
    facts = [("solver and risk", f"{clf.solver_}, {clf.risk_}"), ("alpha", f"{clf.alpha:g}"), ("status", clf.status_)]
    if hasattr(clf, "plan_"):
        facts.append(("plan", clf.plan_))
    if has_certificate(clf):
        low, high = distinct_digits(clf.lower_bound_, clf.objective_)
        facts += [("objective J", high), ("lower bound", low)]
        gap = relative_gap(clf)
        share = f", {percent(gap)} of the bound" if gap <= LARGEST_USEFUL_GAP else ", more than the bound itself"
        facts.append(("gap", f"{number(clf.gap_)}{share}"))
    facts.append(("work", f"{count(clf.n_iter_, 'iteration')}, {count(clf.n_passes_, 'pass', 'passes')} over the data"))
    cost = getattr(clf, "cost_", 1.0)
    if cost != 1.0:
        facts.append(("weight of a positive", f"{cost:.4g} times a negative, chosen by the solver; it is part of J"))
    return facts
