"""scikit-learn's own checks, without expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from scoreline import MeasureClassifier


@parametrize_with_checks(
    [
        MeasureClassifier(),
        # check_sample_weight_equivalence compares decision values at rtol 1e-7 on 15 x 30 separable rows. With a small
        # alpha L-BFGS takes 30 to 60 iterations there, and a difference of 1e-17 between weighted and repeated rows grows
        # to 1e-4; with this alpha the problem is conditioned well enough for the comparison to mean something.
        MeasureClassifier(measure="accuracy", alpha=0.1),
        MeasureClassifier(solver="lbfgs"),
        MeasureClassifier(scaling="standard"),
        MeasureClassifier(measure="accuracy", risk="squared_hinge", alpha=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
