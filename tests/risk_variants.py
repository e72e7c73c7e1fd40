"""Every variant of every risk by name, with its measure and its parameters, and problems to try them on."""

import numpy as np

from scoreline.risks.registry import all_risks


def label(risk):
    """Return the name of a risk with its measure and its parameters."""
    measure = getattr(risk, "measure", None)
    parameters = vars(risk if measure is None else measure)
    given = [f"{key}={value}" for key, value in parameters.items() if key in ("beta", "sigma", "k", "max_fpr")]
    return "-".join([risk.name, *([] if measure is None else [measure.name]), *given])


RISKS = {label(risk): risk for _, kind in sorted(all_risks().items()) for risk in kind.variants()}


def problem(seed, n=60):
    """Return scores, labels and whole weights: Gaussian, on a grid, all equal, huge, with few of a class, by the seed."""
    rng = np.random.default_rng(seed)
    share = (0.5, 0.1, 0.9, 0.0, 1.0)[seed % 5]
    y = np.where(rng.random(n) < share, 1, -1)
    y[0], y[1] = 1, -1
    z = rng.standard_normal(n) * (1.0, 5.0, 0.1, 1.0)[seed % 4]
    if seed % 4 == 3:
        z = np.round(z)
    if seed == 6:
        z = np.zeros(n)
    if seed == 7:
        z *= 1e6
    s = rng.integers(0, 4, size=n).astype(float)
    s[:2] = 1.0
    return z, y, s
