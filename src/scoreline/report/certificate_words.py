"""The certificate of a fit in words."""

from typing import Any

import numpy as np

from scoreline.measures import get_measure
from scoreline.report.wording import apart, count, number, percent

USELESS = 1.0  # gap as a share of the lower bound above which a proof says too little
ENDINGS = {
    "max_iter": "it was stopped by max_iter",
    "max_time": "it was stopped by max_time",
    "interrupted": "it was interrupted",
    "early_stopping": "it was stopped early, by its validation rows",
    "stalled": "it could not make progress in floating point",
}


MORE_PROOF = "Raise max_iter or max_time, raise alpha, or scale the features for a closer one."


def has_certificate(clf: Any) -> bool:
    """Return whether the solver of a fitted classifier proves anything."""
    return getattr(clf, "objective_", None) is not None and getattr(clf, "lower_bound_", None) is not None


def relative_gap(clf: Any) -> float:
    """Return the gap as a share of the lower bound; infinite where nothing above 0 is proved."""
    return float(clf.gap_ / clf.lower_bound_) if clf.lower_bound_ > 0.0 else np.inf


def proof_so_far(gap: float) -> str:
    """Return what a gap, as a share of the lower bound, says of a fit that is under way."""
    return f"proved within {percent(gap)}" if gap <= USELESS else "no useful proof yet"


def what_was_proved(clf: Any) -> str:
    """Return what the certificate of a fitted classifier says of its training rows."""
    if not has_certificate(clf):
        return (
            f"Nothing was proved: the solver {clf.solver_} does not minimise one objective, so it has no lower bound. "
            "Whether the model is good is what the rows below say."
        )
    gap = relative_gap(clf)
    if not np.isfinite(gap):
        return f"The model found has J = {number(clf.objective_)}, and no lower bound above 0 was proved."
    low, high = apart(clf.lower_bound_, clf.objective_)
    if gap > USELESS:
        text = (
            f"There is no useful proof yet: the model found has J = {high}, and all that is known of the best one is that its "
            f"J is at least {low}. {MORE_PROOF}"
        )
    else:
        text = (
            f"Proved for the training rows: no linear model has an objective J below {low}. The model found has "
            f"J = {high}, so it is at most {percent(max(gap, 1e-5))} above the best there is, and neither another "
            "solver nor more patience can gain more than that."
        )
    if clf.status_ != "converged":
        why = ENDINGS.get(clf.status_, f"its status is {clf.status_}")
        text += f" The search ended before the gap of {percent(clf.tol)} that was asked for: {why}."
    return text


def what_was_not_proved(clf: Any) -> str:
    """Return what the certificate leaves open."""
    if not has_certificate(clf):
        return ""
    measure = get_measure(clf.measure, clf.measure_params).name
    return (
        f"Not proved: that {measure} itself is the best possible, since J holds a convex bound of the error "
        f"({clf.risk_}) and a penalty; nor anything about new rows, which is what the figures below are for."
    )


def fit_facts(clf: Any) -> list[tuple[str, str]]:
    """Return the numbers of the fit, named."""
    facts = [("solver and risk", f"{clf.solver_}, {clf.risk_}"), ("alpha", f"{clf.alpha:g}"), ("status", clf.status_)]
    if has_certificate(clf):
        low, high = apart(clf.lower_bound_, clf.objective_)
        facts += [("objective J", high), ("lower bound", low)]
        gap = relative_gap(clf)
        share = f", {percent(gap)} of the bound" if gap <= USELESS else ", no useful proof"
        facts.append(("gap", f"{number(clf.gap_)}{share}"))
    facts.append(("work", f"{count(clf.n_iter_, 'iteration')}, {count(clf.n_passes_, 'pass', 'passes')} over the data"))
    cost = getattr(clf, "cost_", 1.0)
    if cost != 1.0:
        facts.append(("weight of a positive", f"{cost:.4g} times a negative, chosen by the solver; J holds it"))
    return facts
