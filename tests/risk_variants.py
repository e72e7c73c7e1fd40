"""Every variant of every risk by name, with its measure and its parameters."""

from scoreline.risks.registry import all_risks


def label(risk):
    """Return the name of a risk with its measure and its parameters."""
    measure = getattr(risk, "measure", None)
    parameters = vars(risk if measure is None else measure)
    given = [f"{key}={value}" for key, value in parameters.items() if key in ("beta", "sigma", "k", "max_fpr")]
    return "-".join([risk.name, *([] if measure is None else [measure.name]), *given])


RISKS = {label(risk): risk for _, kind in sorted(all_risks().items()) for risk in kind.variants()}
