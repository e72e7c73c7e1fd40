"""Public docstrings follow numpydoc."""

import importlib
import inspect

from numpydoc.validate import validate

PUBLIC = ["scoreline", "scoreline.risks", "scoreline.solvers", "scoreline.operators", "scoreline.measures"]
PUBLIC += [
    "scoreline.objective",
    "scoreline.testing",
    "scoreline.report",
    "scoreline.io",
    "scoreline.export",
    "scoreline.objectives",
]
# Codes of numpydoc.validate that hold for every public name: there is a one-line summary that ends with a period and
# does not start with a blank line; parameters that are documented exist, are all there and in order; sections are known
# and in order.
CODES = {"GL01", "GL02", "GL03", "GL06", "GL07", "GL08", "SS01", "SS02", "SS03", "SS04", "SS05", "SS06"}
CODES |= {"PR01", "PR02", "PR03", "PR05", "PR09", "PR10", "RT02", "RT03", "RT05", "YD01"}
# A class says what it is; the first line of a docstring of ours may begin with a formula.
EXEMPT = {"SS05", "GL01", "GL02", "GL03"}


def public_objects():
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        for name in names:
            value = getattr(module, name)
            if name.startswith("__") or not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            if value.__module__.startswith("scoreline"):
                yield f"{value.__module__}.{value.__qualname__}"


# Parameters and returns are demanded where users look: the estimators, their methods, and the functions.
def needs_sections(path):
    value = importlib.import_module(path.rpartition(".")[0])
    value = getattr(value, path.rpartition(".")[2])
    return inspect.isfunction(value) or path.startswith(("scoreline.classifier", "scoreline.model_selection"))


def violations(path, codes):
    return [f"{path}: {code}: {text}" for code, text in validate(path)["errors"] if code in codes]


def test_docstrings_of_public_names():
    wrong = []
    for path in sorted(set(public_objects())):
        wrong += violations(path, CODES - EXEMPT if needs_sections(path) else CODES - EXEMPT - {"PR01"})
    assert not wrong


def test_docstrings_of_estimator_methods():
    wrong = []
    for method in ("fit", "predict", "decision_function", "score", "objective", "tune_threshold"):
        wrong += violations(f"scoreline.classifier.MeasureClassifier.{method}", (CODES - EXEMPT) | {"RT01"})
    assert not wrong
