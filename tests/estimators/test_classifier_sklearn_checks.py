"""scikit-learn's own checks of many configurations; a check that is expected to fail is listed with the reason."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from scoreline import MeasureClassifier, MeasureClassifierCV


def unequal_weights(reason):
    """Return the checks that compare weighted with repeated rows, with the reason why they fail."""
    return {f"check_sample_weight_equivalence_on_{storage}_data": reason for storage in ("dense", "sparse")}


LONG_STEP = "One step with a large weight is not several steps with a small one."
RANDOM_ROWS = "Held-out rows are drawn at random, so weighted and repeated rows are split differently."
ONE_ROW = "Probabilities need two rows of each class to leave one out, and a row of weight 3 is one row."
OWN_THRESHOLD = "predict uses the threshold that serves the measure, which is not a probability of 1/2."

# check_sample_weight_equivalence compares decision values at rtol 1e-7 on 15 x 30 separable rows. With a small alpha the
# solvers take 30 to 60 iterations there, and a difference of 1e-17 between weighted and repeated rows grows to 1e-4. With
# alpha=0.1 the problem is conditioned well enough for the comparison to mean something.
DEFAULTS = [MeasureClassifier(), MeasureClassifierCV(alphas=[1.0, 0.1], cv=2)]
CONFIGURATIONS = [
    (MeasureClassifier("accuracy", alpha=0.1), {}),
    (MeasureClassifier(solver="lbfgs"), {}),
    (MeasureClassifier(scaling="standard"), {}),
    (MeasureClassifier(scaling="robust"), {}),
    (MeasureClassifier("f1", scaling="quantile"), {}),
    (MeasureClassifier("accuracy", risk="squared_hinge", alpha=0.1), {}),
    (MeasureClassifier("f1", risk="squared_hinge"), {}),
    (
        MeasureClassifier("f1", solver="amp", alpha=0.1),
        {
            "check_class_weight_classifiers": "With weights of 1e7 to 1 a constant is the best score for the hinge, which a "
            "warning says, and F1 is then highest with all rows positive."
        },
    ),
    (MeasureClassifier("balanced_accuracy", class_weight="balanced", alpha=0.1), {}),
    (MeasureClassifier("average_precision"), {}),
    (MeasureClassifier("partial_roc_auc", alpha=0.1), {}),
    (MeasureClassifier(solver="bundle"), {}),
    (MeasureClassifier("accuracy", risk="hinge", solver="bundle", alpha=0.1), {}),
    (MeasureClassifier("prbep", alpha=0.1), {}),
    (
        MeasureClassifier("f1", risk="contingency", alpha=0.1),
        {
            "check_class_weight_classifiers": "The risk counts rows, so weights must be whole numbers, as the error says."
        },
    ),
    (
        MeasureClassifier("f1", threshold="holdout", alpha=0.1),
        unequal_weights(RANDOM_ROWS)
        | {"check_class_weight_classifiers": "A threshold above the few held-out negatives lets other negatives pass."},
    ),
    (
        MeasureClassifier(probability=True),
        unequal_weights(ONE_ROW) | {"check_classifiers_train": OWN_THRESHOLD},
    ),
    (
        MeasureClassifier("accuracy", risk="logistic", probability=True, alpha=0.1),
        unequal_weights(ONE_ROW) | {"check_classifiers_train": OWN_THRESHOLD},
    ),
    (
        MeasureClassifier("gmean", solver="spade"),
        unequal_weights(LONG_STEP)
        | {"check_class_weight_classifiers": "The G-mean does not depend on the weights of the classes."},
    ),
    (MeasureClassifier("f1", solver="stamp"), unequal_weights(LONG_STEP)),
    (MeasureClassifier(solver="moments"), {}),
    (MeasureClassifier("accuracy", solver="moments", scaling="standard"), {}),
    (MeasureClassifier(solver="moments", solver_params={"diagnostics": False}), {}),
    # Weights are repeats at the optimum: the Hessian of newton leaves out rows that matter little, each for itself.
    # Fits go on until rounding stops them: a gap of 1e-10 may leave scores 1e-7 apart, which is what scikit-learn allows.
    (MeasureClassifierCV("accuracy", alphas=[1.0, 0.1], cv=2, risk="squared_hinge", tol=1e-14), {}),
]


def check(estimator, reasons):
    """Run all checks: those with a reason must fail, the others must not."""
    results = check_estimator(estimator, expected_failed_checks=reasons, on_fail=None, on_skip=None)
    failures = {
        result["check_name"]: result["exception"] for result in results if result["status"] in ("failed", "xfail")
    }
    unexpected = {name: failure for name, failure in failures.items() if name not in reasons}
    assert not unexpected
    assert set(failures) == set(reasons), "a check that was expected to fail has passed"


@pytest.mark.parametrize("estimator", DEFAULTS, ids=str)
def test_defaults_pass_the_checks_of_scikit_learn(estimator):
    check(estimator, {})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:solver='moments' predicts")  # their data are not normal
@pytest.mark.parametrize(
    ("estimator", "reasons"), CONFIGURATIONS, ids=[" ".join(str(e).split()) for e, _ in CONFIGURATIONS]
)
def test_other_configurations_pass_the_checks_of_scikit_learn(estimator, reasons):
    check(estimator, reasons)
