"""The storage of X, the order of its rows and their repetition do not change the model."""

import functools
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from cases import for_each
from scoreline import MeasureClassifier
from tiers import tiered


def make_data(n=300, p=12, seed=0):
    """Return sparse-like data whose entries are exact in float32, and labels."""
    rng = np.random.default_rng(seed)
    X = np.round(64 * rng.standard_normal((n, p))) / 64 * (rng.random((n, p)) < 0.5)
    y = (X @ rng.standard_normal(p) + rng.standard_normal(n) > 0.8).astype(int)
    return X, y


X, Y = make_data()


@functools.cache
def reference_fit(measure, tol=1e-9, max_iter=5, **params):
    """Return the fit on X as a C-ordered array, for several tests."""
    return fit(X, Y, measure=measure, tol=tol, max_iter=max_iter, **params)


STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32_F": lambda X: np.asfortranarray(X.astype(np.float32)),
    "every_other_column_of_a_larger_array": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed_rows_in_memory": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "read_only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "coo_array": sp.coo_array,
    "csr_float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "pandas": pd.DataFrame,
    "pandas_of_columns": lambda X: pd.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])}),
    "pandas_sparse": lambda X: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
    "LinearOperator": aslinearoperator,
    "nested_lists": lambda X: X.tolist(),
}
MEASURES = ["roc_auc", "accuracy", "prbep"]


def fit(X, y, **params):
    """Fit without a warning about too few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MeasureClassifier(**params).fit(X, y)


@for_each(("storage", "measure"), tiered(itertools.product(STORAGES, MEASURES), strength=1))
def test_the_first_iterations_agree(storage, measure):
    options = {"measure": measure, "tol": 1e-9, "max_iter": 5}
    if storage == "LinearOperator":  # it has no blocks of rows to make a Hessian of
        options["solver_params"] = {"precondition": False}
    reference = fit(X, Y, **options) if "solver_params" in options else reference_fit(measure)
    other = fit(STORAGES[storage](X), Y, **options)
    assert other.n_iter_ == reference.n_iter_ == 5
    # The magnitudes of its columns are not known, so each limit of a free intercept takes two products with its transpose.
    more = other.n_passes_ - reference.n_passes_
    assert more == 0 or (storage == "LinearOperator" and measure == "accuracy" and more in (2, 4, 6))
    # Sums in another order: 1e-16 relative in the products, magnified by five iterations. The entries are exact in
    # float32 and sums are float64 for every storage, so float32 has to agree as well.
    np.testing.assert_allclose(other.coef_, reference.coef_, rtol=1e-8)
    np.testing.assert_allclose(other.intercept_, reference.intercept_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(other.history_["objective"], reference.history_["objective"], rtol=1e-10)
    # The allowance for rounding differs where the largest magnitudes are not known: by 2e-12 at these sizes, n eps of J(0).
    bounds = [clf.history_["lower_bound"] for clf in (other, reference)]
    np.testing.assert_allclose(*bounds, rtol=1e-8, atol=2e-12)


@for_each(("storage", "measure"), tiered(itertools.product(STORAGES, MEASURES), strength=1))
def test_the_objectives_agree_within_the_gaps(storage, measure):
    reference = reference_fit(measure, tol=1e-3, max_iter=5000)
    other = fit(STORAGES[storage](X), Y, measure=measure, tol=1e-3)
    assert reference.status_ == other.status_ == "converged"
    assert abs(other.objective_ - reference.objective_) <= other.gap_ + reference.gap_
    assert other.lower_bound_ <= reference.objective_
    assert reference.lower_bound_ <= other.objective_
    # Scores of the same coefficients, whatever X is stored in: rounding of 12 products.
    decision = reference.decision_function(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # frames have feature names, the reference has none
        np.testing.assert_allclose(reference.decision_function(STORAGES[storage](X)), decision, rtol=1e-12, atol=1e-13)


@for_each(
    ("storage", "scaling", "measure"),
    tiered(
        itertools.product([s for s in STORAGES if s != "LinearOperator"], ["maxabs", "standard"], MEASURES), strength=1
    ),
)
def test_scaled_first_iterations_agree(storage, scaling, measure):
    options = {"measure": measure, "scaling": scaling, "tol": 1e-9, "max_iter": 5}
    reference = reference_fit(measure, scaling=scaling)
    other = fit(STORAGES[storage](X), Y, **options)
    np.testing.assert_allclose(other.coef_, reference.coef_, rtol=1e-8)  # as above


@for_each("measure", MEASURES)
def test_data_that_float32_rounds(measure):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 8))
    y = (A @ rng.standard_normal(8) + rng.standard_normal(200) > 0.5).astype(int)
    reference = fit(A, y, measure=measure, tol=1e-9, max_iter=5)
    single = fit(A.astype(np.float32), y, measure=measure, tol=1e-9, max_iter=5)
    # The data are another matrix now, each entry changed by up to 6e-8 of itself; five iterations magnify that.
    np.testing.assert_allclose(single.coef_, reference.coef_, rtol=1e-4, atol=1e-6)
    assert single.objective_ == pytest.approx(reference.objective_, rel=1e-5)
    # What float32 data mean is exactly what they hold: the same numbers in float64 are the same problem.
    double = fit(A.astype(np.float32).astype(np.float64), y, measure=measure, tol=1e-9, max_iter=5)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-8)


@for_each(("storage", "measure"), tiered(itertools.product(["C", "csr_array", "LinearOperator"], MEASURES), strength=1))
def test_permuted_rows(storage, measure):
    order = np.random.default_rng(3).permutation(len(Y))
    make = STORAGES[storage]
    reference = fit(make(X), Y, measure=measure, tol=1e-9, max_iter=5)
    permuted = fit(make(X[order]), Y[order], measure=measure, tol=1e-9, max_iter=5)
    np.testing.assert_allclose(permuted.coef_, reference.coef_, rtol=1e-8)  # sums in another order, five iterations
    np.testing.assert_allclose(permuted.intercept_, reference.intercept_, rtol=1e-8, atol=1e-10)


@for_each("measure", MEASURES)
def test_permuted_columns_permute_the_coefficients(measure):
    order = np.random.default_rng(4).permutation(X.shape[1])
    reference = reference_fit(measure)
    permuted = fit(X[:, order], Y, measure=measure, tol=1e-9, max_iter=5)
    np.testing.assert_allclose(permuted.coef_, reference.coef_[:, order], rtol=1e-8)  # as for rows


@for_each(("storage", "measure"), tiered(itertools.product(["C", "csr_array", "LinearOperator"], MEASURES), strength=1))
def test_stacked_data_are_the_same_problem(storage, measure):
    make = STORAGES[storage]
    stacked, labels = np.vstack([X, X]), np.r_[Y, Y]
    reference = fit(make(X), Y, measure=measure, tol=1e-9, max_iter=5)
    twice = fit(make(stacked), labels, measure=measure, tol=1e-9, max_iter=5)
    # Risks are means, ramps have the same width in score units: the very same iterations, up to rounding.
    np.testing.assert_allclose(twice.coef_, reference.coef_, rtol=1e-8)
    np.testing.assert_allclose(twice.intercept_, reference.intercept_, rtol=1e-8, atol=1e-10)
    once, double = fit(make(X), Y, measure=measure, tol=1e-3), fit(make(stacked), labels, measure=measure, tol=1e-3)
    assert abs(once.objective_ - double.objective_) <= once.gap_ + double.gap_


@for_each("measure", ["roc_auc", "accuracy"])  # PRBEP looks at one class
def test_swapped_classes_mirror_the_model(measure):
    reference = reference_fit(measure)
    mirrored = fit(-X, 1 - Y, measure=measure, tol=1e-9, max_iter=5)
    assert mirrored.objective_ == pytest.approx(reference.objective_, rel=1e-10)  # the same numbers, other signs
    np.testing.assert_allclose(mirrored.coef_, reference.coef_, rtol=1e-8)
    assert mirrored.trained_intercept_ == pytest.approx(-reference.trained_intercept_, rel=1e-8, abs=1e-12)
