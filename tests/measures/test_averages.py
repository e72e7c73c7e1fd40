"""Averages over classes and labels: every measure against its definition, and against scikit-learn where it has the same."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning

from cases import for_each
from scoreline import CountMeasure
from scoreline.measures import all_measures, class_average, get_measure
from tiers import examples

AVERAGES = ["macro", "weighted", "micro", "none"]
PROFIT = CountMeasure(lambda tp, fp, fn, tn: 5.0 * tp - 2.0 * fp - fn, name="profit")
EVERY = [*sorted(all_measures()), PROFIT]  # a new measure is tested by being there
COUNTS = [m for m in EVERY if not get_measure(m).uses_order]
RANKINGS = [m for m in EVERY if get_measure(m).uses_order]
PRECISION = CountMeasure(lambda tp, fp, fn, tn: tp / np.maximum(tp + fp, 1e-300), name="precision")
RECALL = CountMeasure(lambda tp, fp, fn, tn: tp / np.maximum(tp + fn, 1e-300), name="recall")


def named(measure):
    return measure if isinstance(measure, str) else measure.name


def spelled(average):
    return None if average == "none" else average


@st.composite
def labelled(draw, indicator=None):
    """True and predicted labels (or indicator matrices), scores of all classes with many ties, and weights."""
    seed, n, count = draw(st.integers(0, 10**6)), draw(st.integers(6, 30)), draw(st.integers(3, 5))
    indicator = draw(st.booleans()) if indicator is None else indicator
    rng = np.random.default_rng(seed)
    # Eighths that sum to 1: probabilities with exact ties, as roc_auc_score demands of many classes.
    scores = rng.multinomial(8, rng.dirichlet(np.ones(count)), n) / 8.0
    weight = rng.integers(1, 4, n).astype(float)
    if indicator:
        truth = rng.random((n, count)) < 0.4
        truth[0], truth[1] = True, False  # every label is there and is not
        return truth.astype(int), (scores > 0.25).astype(int), scores, weight
    names = np.array(["pear", "apple", "fig", "quince", "lime"]) if draw(st.booleans()) else np.array([3, -1, 7, 10, 2])
    names = np.sort(names[:count])
    truth = np.r_[np.arange(count), rng.integers(0, count, n - count)]
    return names[truth], names[rng.integers(0, count, n)], scores, weight


def same(got, expected):
    # Sums of 30 weights and of 5 classes in another order: rounding.
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@examples(60)
@given(labelled(), st.sampled_from(AVERAGES), st.booleans())
def test_counts_agree_with_scikit_learn(rows, average, weighted):
    y, predicted, _, weight = rows
    weight = weight if weighted else None
    options = {"average": spelled(average), "sample_weight": weight, "zero_division": 0}
    ours = {"average": average, "sample_weight": weight}
    same(class_average("f1", y, predicted, **ours), metrics.f1_score(y, predicted, **options))
    same(class_average("fbeta", y, predicted, beta=2.0, **ours), metrics.fbeta_score(y, predicted, beta=2.0, **options))
    same(class_average("jaccard", y, predicted, **ours), metrics.jaccard_score(y, predicted, **options))
    same(class_average(PRECISION, y, predicted, **ours), metrics.precision_score(y, predicted, **options))
    same(class_average(RECALL, y, predicted, **ours), metrics.recall_score(y, predicted, **options))


@examples(60)
@given(labelled(), st.sampled_from(AVERAGES), st.booleans())
def test_rankings_agree_with_scikit_learn(rows, average, weighted):
    y, _, scores, weight = rows
    options = {"average": spelled(average), "sample_weight": weight if weighted else None}
    ours = {"average": average, "sample_weight": options["sample_weight"]}
    area = metrics.roc_auc_score(y, scores, multi_class="ovr", **options)
    same(class_average("roc_auc", y, scores, **ours), area)
    same(class_average("average_precision", y, scores, **ours), metrics.average_precision_score(y, scores, **options))
    if y.ndim == 2:  # scikit-learn has the partial area of labels only
        area = metrics.roc_auc_score(y, scores, max_fpr=0.3, **options)
        same(class_average("partial_roc_auc", y, scores, max_fpr=0.3, **ours), area)


def columns(y, predicted, scores, measure):
    """Return the two-class problems, made in the plainest way."""
    if y.ndim == 1:
        classes = np.unique(y) if measure.uses_order else np.unique(np.r_[y, predicted])
        y, predicted = y[:, None] == classes, predicted[:, None] == classes
    return y, scores if measure.uses_order else np.where(predicted, 1.0, -1.0)


@for_each("name", EVERY)
@examples(12)
@given(rows=labelled(), weighted=st.booleans())
def test_every_measure_is_that_of_its_two_class_problems(name, rows, weighted):
    y, predicted, scores, weight = rows
    measure = get_measure(name)
    truth, decision = columns(y, predicted, scores, measure)
    row_weight = weight if weighted else None
    response = scores if measure.uses_order else predicted
    values = np.array([measure.value(t, z, row_weight) for t, z in zip(truth.T, decision.T, strict=True)])
    support = truth.T @ (weight if weighted else np.ones(len(y)))
    # Operating points jump where a rate meets its limit; whole weights keep the counts exact on both sides.
    same(class_average(name, y, response, "none", sample_weight=row_weight), values)
    same(class_average(name, y, response, None, sample_weight=row_weight), values)
    same(class_average(name, y, response, sample_weight=row_weight), values.mean())
    same(class_average(name, y, response, "weighted", sample_weight=row_weight), values @ support / support.sum())
    pooled = None if row_weight is None else np.repeat(row_weight, truth.shape[1])
    expected = measure.value(truth.ravel(), decision.ravel(), pooled)
    same(class_average(name, y, response, "micro", sample_weight=row_weight), expected)


@for_each("average", AVERAGES)
@for_each("name", EVERY)
@examples(6)
@given(rows=labelled(), seed=st.integers(0, 1000))
def test_weights_are_repeated_rows_and_no_weight_is_no_row(name, average, rows, seed):
    y, predicted, scores, _ = rows
    response = scores if get_measure(name).uses_order else predicted
    repeats = np.random.default_rng(seed).integers(0, 4, len(y))
    repeats[: y.shape[1] if y.ndim == 2 else len(np.unique(y))] += (
        1  # rankings keep their classes, and a column for each
    )
    index = np.repeat(np.arange(len(y)), repeats)
    got = class_average(name, y, response, average, sample_weight=repeats)
    same(got, class_average(name, y[index], response[index], average))


@for_each("name", RANKINGS)
def test_classes_name_the_columns_in_any_order(name):
    y = np.array(["b", "a", "c", "b", "a", "c", "c"])
    scores = np.random.default_rng(0).standard_normal((7, 3)).round(1)
    order = [2, 0, 1]
    plain = class_average(name, y, scores, "none")
    turned = class_average(name, y, scores[:, order], "none", classes=np.array(["a", "b", "c"])[order])
    same(turned, plain[order])
    for average in ("macro", "weighted", "micro"):
        turned = class_average(name, y, scores[:, order], average, classes=["c", "a", "b"])
        same(turned, class_average(name, y, scores, average))


@for_each("average", AVERAGES)
def test_classes_choose_what_counts_are_averaged_over(average):
    rng = np.random.default_rng(1)
    y, predicted = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    for classes in ([3, 1], [2], [0, 1, 2, 3, 9]):
        expected = metrics.f1_score(y, predicted, labels=classes, average=spelled(average), zero_division=0)
        same(class_average("f1", y, predicted, average, classes=classes), expected)


@for_each("name", RANKINGS)
def test_a_class_without_rows_has_no_ranking_and_is_left_out(name):
    """Where scikit-learn's macro ROC area is NaN and its average precision counts 0."""
    y, scores = np.array([0, 1, 0, 1, 1]), np.random.default_rng(0).standard_normal((5, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = class_average(name, y, scores, "none", classes=[0, 1, 2])
    assert np.isnan(values).tolist() == [False, False, True]
    with pytest.warns(UndefinedMetricWarning, match=rf"{name} is not defined for class 2 .*over the other 2"):
        assert class_average(name, y, scores, "macro", classes=[0, 1, 2]) == pytest.approx(values[:2].mean(), abs=1e-15)
    with pytest.warns(UndefinedMetricWarning, match="class 2"):
        assert class_average(name, y, scores, "weighted", classes=[0, 1, 2]) == pytest.approx(values[:2] @ [0.4, 0.6])
    # Pooled pairs of the absent class are wrong answers like others.
    pooled = get_measure(name).value((y[:, None] == [0, 1, 2]).ravel(), scores.ravel())
    same(class_average(name, y, scores, "micro", classes=[0, 1, 2]), pooled)


@for_each("average", ["macro", "weighted", "micro"])
@for_each("name", RANKINGS)
def test_labels_that_no_row_has_leave_nothing_to_average(name, average):
    with pytest.warns(UndefinedMetricWarning, match="class 0, 1.*no average"):
        assert np.isnan(class_average(name, np.zeros((4, 2)), np.arange(8.0).reshape(4, 2), average))
    assert np.isnan(class_average(name, np.zeros((4, 2)), np.arange(8.0).reshape(4, 2), None)).all()


def test_a_label_that_every_row_has_is_left_out_of_the_roc_area():
    Y = np.array([[1, 1], [1, 0], [1, 1]])
    scores = np.array([[0.1, 0.9], [0.2, 0.3], [0.3, 0.2]])
    with pytest.warns(UndefinedMetricWarning, match="class 'always'"):
        assert class_average("roc_auc", Y, scores, classes=["always", "some"]) == 0.5
    assert class_average("average_precision", Y, scores, "none")[0] == 1.0  # needs positives only


@for_each("average", AVERAGES)
def test_counts_of_absent_classes_are_those_of_scikit_learn(average):
    # Class 2 is predicted only, class 3 is true only; nobody speaks of class 4.
    y, predicted = np.array([0, 0, 1, 3]), np.array([0, 2, 1, 1])
    expected = metrics.f1_score(y, predicted, average=spelled(average), zero_division=0)
    same(class_average("f1", y, predicted, average), expected)
    Y, P = np.zeros((3, 2), int), np.array([[0, 1], [0, 0], [0, 1]])  # no positive anywhere
    for name, score in (("f1", metrics.f1_score), ("jaccard", metrics.jaccard_score)):
        expected = score(Y, P, average=spelled(average), zero_division=0)
        same(class_average(name, Y, P, average), expected)


@for_each("average", AVERAGES)
@for_each("name", EVERY)
def test_labels_in_columns_may_be_sparse(name, average):
    rng = np.random.default_rng(2)
    Y, scores = (rng.random((30, 4)) < 0.4).astype(int), rng.standard_normal((30, 4))
    response = scores if get_measure(name).uses_order else (scores > 0).astype(int)
    expected = class_average(name, Y, response, average, sample_weight=np.arange(30.0))
    for form in (sparse.csr_array, sparse.coo_matrix):
        got = class_average(name, form(Y), form(response), average, sample_weight=np.arange(30.0))
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(
        class_average(name, Y.astype(bool), response.tolist(), average), class_average(name, Y, response, average)
    )


@for_each("name", RANKINGS)
def test_equal_scores_and_a_single_row_of_a_class(name):
    y = np.array([0, 1, 1, 2, 2, 2])
    level = class_average(name, y, np.full((6, 3), 0.25), "none")
    chance = {"roc_auc": [0.5] * 3, "partial_roc_auc": [0.5] * 3}.get(name, [1 / 6, 2 / 6, 3 / 6])  # of k = n+ rows
    same(level, chance)
    best = np.eye(3)[y]
    assert class_average(name, y, best, "macro") == class_average(name, y, best, "micro") == 1.0


def test_measures_at_k_count_pairs_where_pairs_are_pooled():
    y, scores = np.array([0, 1, 2]), np.array([[0.9, 0.1, 0.0], [0.8, 0.7, 0.0], [0.2, 0.0, 0.1]])
    assert class_average("precision_at_k", y, scores, "none", k=1).tolist() == [1.0, 1.0, 1.0]
    # The two highest pairs: (row 0, class 0) right, (row 1, class 0) wrong.
    assert class_average("precision_at_k", y, scores, "micro", k=2) == 0.5
    # k = n+ of all pairs, 3: the third is (row 1, class 1), right.
    assert class_average("precision_at_k", y, scores, "micro") == pytest.approx(2 / 3, abs=1e-15)


def test_operating_points_are_judged_at_the_predictions():
    y, predicted = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 2])
    # class 0: precision 1, recall 2/3; class 1: precision 2/3, below 0.9; class 2: both 1
    same(class_average("recall_at_precision", y, predicted, "none"), [2 / 3, 0.0, 1.0])
    assert class_average("recall_at_precision", y, predicted, "micro") == 0.0  # 5 of 6 right
    assert class_average("recall_at_precision", y, predicted, "micro", precision=0.8) == pytest.approx(5 / 6)


def test_a_class_whose_rows_weigh_nothing_is_not_there():
    y = np.array(["a", "b", "c"])
    assert class_average("f1", y, y, None, sample_weight=[1, 2, 0]).tolist() == [1.0, 1.0]
    assert class_average("f1", y, y, sample_weight=[1, 2, 0]) == 1.0
    assert np.isnan(class_average("roc_auc", y, np.eye(3), None, classes=y, sample_weight=[1, 2, 0])[2])


def test_a_warning_does_not_name_a_thousand_classes():
    with pytest.warns(UndefinedMetricWarning, match=r"class 2, 3, 4, 5, 6 and 993 more .*over the other 2$"):
        assert class_average("roc_auc", [0, 1], np.eye(1000)[:2], classes=np.arange(1000)) == 1.0


def test_two_classes_as_scikit_learn_sees_them():
    rng = np.random.default_rng(3)
    y, z = np.array(["no", "yes"])[rng.integers(0, 2, 40)], rng.standard_normal(40)
    predicted = np.where(z > 0, "yes", "no")
    for average in AVERAGES:
        same(class_average("f1", y, predicted, average), metrics.f1_score(y, predicted, average=spelled(average)))
        same(class_average("roc_auc", y, z, average), metrics.roc_auc_score(y, z, average=spelled(average)))
        expected = metrics.average_precision_score(y == "yes", z, average=spelled(average))
        same(class_average("average_precision", y, z, average), expected)
    both = class_average("average_precision", y, np.c_[-z, z], "none")
    same(both, [metrics.average_precision_score(y == "no", -z), metrics.average_precision_score(y == "yes", z)])


def test_a_measure_that_is_nan_for_a_class_is_left_out():
    hits = CountMeasure(lambda tp, fp, fn, tn: np.where(tp + fp > 0, tp - fp, np.nan), name="hits")
    y, predicted = ["a", "b", "c", "b"], ["a", "b", "b", "b"]
    np.testing.assert_array_equal(class_average(hits, y, predicted, None), [1.0, 1.0, np.nan])
    with pytest.warns(UndefinedMetricWarning, match="hits is not defined for class 'c'"):
        assert class_average(hits, y, predicted, "weighted") == 1.0


@for_each("arguments, message", [
        (("f1", [0, 1, 2], [0, 1, 2], "macros"), "average='macros' is unknown.*Did you mean 'macro'"),
        (("f2", [0, 1, 2], [0, 1, 2]), "measure='f2' is unknown"),
        (("f1", [0, 1, 2], [0, 1]), "y_true has 3 rows and y_pred 2"),
        (("f1", [], []), "at least one"),
        (("f1", [0, 1, 2], np.eye(3)), r"predicted labels, one per row; y_pred has shape \(3, 3\)"),
        (("f1", [0, 1, 2], ["a", "b", "c"]), "labels of both must be of one type"),
        (("f1", [0.0, np.nan, 2.0], [0.0, 1.0, 2.0]), "NaN or infinity"),
        (("f1", np.array([0, "a", None], dtype=object), np.array([0, "a", 1], dtype=object)), "labels of one type"),
        (("f1", np.eye(3), np.eye(3)[:, :2]), r"expected y_pred of that shape, got \(3, 2\)"),
        (("f1", np.eye(3), np.eye(3) - 0.5), "f1 needs predictions, 0 or 1"),
        (("f1", 2 * np.eye(3), np.eye(3)), "score outputs of several classes one by one"),
        (("f1", np.eye(3), np.eye(3), "macro", ["a", "b"]), "expected one for each of the 3 columns"),
        (("f1", [0, 1, 2], [0, 1, 2], "macro", [0, 0]), "must be different labels"),
        (("roc_auc", [0, 1, 2], [0, 1, 2]), r"one column per class; y_pred has shape \(3,\) and there are 3 classes"),
        (("roc_auc", [0, 1, 1], np.eye(3)), "pass decision values or probabilities, and classes="),
        (("roc_auc", [0, 1, 5], np.eye(3), "macro", [0, 1, 2]), r"y_true holds .*5.*none of the classes \[0, 1, 2\]"),
        (("roc_auc", [0, 1, 2], np.full((3, 3), np.nan)), "scores must be finite"),
        (("roc_auc", [0, 1, 2], np.full((3, 3), "a")), "scores must be numbers"),
        (("f1", [0, 1], [0, 1], "macro", None, [1.0]), r"sample_weight has shape \(1,\), expected \(2,\)"),
        (("f1", [0, 1], [0, 1], "macro", None, [1.0, -1.0]), "non-negative"),
        (("f1", [0, 1], [0, 1], "macro", None, [0.0, 0.0]), "positive somewhere"),
        (("f1", np.zeros((2, 2, 2)), np.zeros((2, 2, 2))), r"y_true has shape \(2, 2, 2\)"),
        (("f1", [[0, 1], [1]], [0, 1]), "y_true must be a vector or a matrix"),
    ])  # fmt: skip
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        class_average(*arguments)
