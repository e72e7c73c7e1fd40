"""What `info` says about data, compared with counts by plain Python."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.io import convert, open_mapped
from scoreline.report.facts import describe
from scoreline.report.wording import certificate, fit_facts, gap_in_words


def counted(X, y):
    """Count repeated rows, and rows that equal another one with another label, by a dictionary."""
    groups = defaultdict(list)
    for row, label in zip(np.asarray(X, dtype=np.float64) + 0.0, y, strict=True):
        groups[row.tobytes()].append(label)
    again = sum(len(labels) - 1 for labels in groups.values())
    return again, sum(len(labels) for labels in groups.values() if len(set(labels)) > 1)


def tables():
    rng = np.random.default_rng(0)
    yield "few values", rng.integers(0, 3, (500, 4)).astype(float)
    yield "many columns", rng.standard_normal((300, 301))[rng.integers(0, 300, 1000)]
    yield "fractions", rng.integers(0, 4, (1000, 5)) / 10.0
    yield "scales apart", rng.integers(0, 3, (500, 3)) * np.array([1.0, 1e12, 1e-12]) + np.array([0.0, 1e17, 0.0])
    yield (
        "constant",
        np.column_stack([np.full(400, 0.1), np.zeros(400), rng.integers(0, 2, 400), np.full(400, 1e8 + 0.1)]),
    )
    yield "one column", rng.integers(0, 50, (200, 1)).astype(float)
    yield "distinct", rng.standard_normal((400, 3))


STORAGES = ["dense", "fortran", "csr", "mapped", "mapped csr"]
TABLES = dict(tables())


@for_each(("name", "storage"), list(product(TABLES, STORAGES)))
def test_counts(tmp_path, name, storage):
    X = TABLES[name]
    y = np.random.default_rng(1).integers(0, 2, len(X))
    given = {"fortran": np.asfortranarray, "csr": sp.csr_matrix, "mapped csr": sp.csr_matrix}.get(storage, np.asarray)(
        X
    )
    if storage.startswith("mapped"):
        given = open_mapped(convert((given, y), tmp_path / f"{name} {storage}")).X
    numbers = describe(given, y).numbers
    again, torn = counted(X, y)
    assert numbers["duplicate_rows"] == again
    assert numbers.get("contradicting_rows", 0) == torn
    assert numbers["constant_columns"] == np.count_nonzero(X.min(axis=0) == X.max(axis=0))
    assert numbers["empty_columns"] == np.count_nonzero((X == 0).all(axis=0))
    assert numbers["largest_magnitude"] == np.abs(X).max()
    assert (numbers["rows"], numbers["features"], numbers["positives"]) == (*X.shape, np.count_nonzero(y))
    assert numbers.get("stored") == (np.count_nonzero(X) if "csr" in storage else None)


def test_labels_that_contradict_do_not_depend_on_the_order():
    X = np.ones((4, 2))
    assert [describe(X, y).numbers["contradicting_rows"] for y in ([0, 1, 0, 1], [0, 0, 1, 1])] == [4, 4]


def test_warnings_and_advice():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(100), 1e6 * rng.standard_normal(100)])
    found = describe(X, np.arange(100) > 4, ["small", "large"])
    assert any("the largest is large" in text for text in found.warnings)
    assert any("Only 5 rows" in text for text in found.warnings)
    assert any("more frequent" in text for text in found.advice)
    assert any("imbalanced" in text for text in found.advice)
    assert describe(X, np.arange(100) % 3).numbers["classes"] == 3
    assert describe(X[:1]).numbers["rows"] == 1


def test_heavy_tails_are_named_with_the_scaling_to_use(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(1000), rng.standard_cauchy(1000), rng.integers(0, 2, 1000)])
    y = rng.integers(0, 2, 1000)
    for given in (X, sp.csr_matrix(X), open_mapped(convert((X, y), tmp_path / "d")).X):
        found = describe(given, y, ["age", "ratio", "member"])
        assert found.numbers["heavy_tailed_columns"] == 1
        assert ("heavy-tailed columns", "1 (ratio)") in found.lines
        assert any("heavy tails: ratio." in text for text in found.warnings)
        assert any("--scaling robust" in text and "--scaling quantile" in text for text in found.advice)
    light = describe(X[:, [0, 2]], y)
    assert light.numbers["heavy_tailed_columns"] == 0
    assert not any("heavy" in text for text in light.warnings + light.advice)


@for_each(
    ("positives", "word"),
    [(11, "accuracy of 89.0%"), (30, "accuracy of 70.0%"), (45, "are balanced"), (60, "are balanced")],
)
def test_advice_states_the_accuracy_of_a_constant_where_classes_differ(positives, word):
    X = np.random.default_rng(0).standard_normal((100, 2))
    advice = describe(X, np.arange(100) < positives).advice
    assert any(word in text for text in advice)
    assert not any("balanced enough" in text for text in advice)


def test_a_gap_above_its_bound_is_not_called_a_certificate():
    X, y = np.random.default_rng(0).standard_normal((200, 3)), np.arange(200) % 2
    with pytest.warns(ConvergenceWarning):
        clf = MeasureClassifier("roc_auc", alpha=1e-3, max_iter=1, solver="bundle", tol=1e-6).fit(X, y)
    clf.lower_bound_ = 0.4 * clf.objective_
    clf.gap_ = clf.objective_ - clf.lower_bound_
    assert certificate(clf).startswith("The certificate is not useful yet")
    assert "max_iter" in certificate(clf)
    assert dict(fit_facts(clf))["gap"].endswith("more than the bound itself")
    assert [gap_in_words(gap) for gap in (0.012, 1.2, np.inf)] == ["gap 1.2 %", *2 * ["gap above 100 %"]]
