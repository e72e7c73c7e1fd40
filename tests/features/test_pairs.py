"""Pairs of columns: which are chosen, their functions, and models of them."""

import numpy as np
import pandas as pd
import pytest

from scoreline import MeasureClassifier, load_model
from scoreline.features import Additive, Pairs
from scoreline.features.basis import pair_basis
from scoreline.features.pairs import add_pairs, best_pairs
from scoreline.kernels import codes as kernels
from scoreline.solvers import EarlyStopping
from scoreline.testing import check_operator


def crossed(n=1500, seed=0):
    """Return rows whose label depends on a product of columns 0 and 2, with missing values and a category; labels."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, 4)), rng.integers(0, 3, n)])
    score = X[:, 0] * X[:, 2] + 0.4 * X[:, 1] + 0.1 * rng.standard_normal(n)
    X[rng.random(n) < 0.05, 2] = np.nan
    return X, score > 0


def test_gains_are_those_of_least_squares():
    """Row and column effects weighted by the cells, against a direct least-squares fit."""
    rng = np.random.default_rng(0)
    codes, u, weight = (
        rng.integers(0, 5, (2, 300)).astype(np.uint8),
        rng.standard_normal(300),
        rng.integers(1, 4, 300) * 1.0,
    )
    grid, gains = np.tile(np.arange(256, dtype=np.uint32), (2, 1)), np.zeros(1)
    arguments = np.array([5, 5]), np.array([[0, 1]]), u, weight, gains, np.array([0, 1], dtype=np.uint64)
    kernels.interactions(codes, grid, *arguments, 0, 1)
    sums, counts = (np.zeros((5, 5)) for _ in range(2))
    np.add.at(sums, (codes[0], codes[1]), u)
    np.add.at(counts, (codes[0], codes[1]), weight)
    design = np.array([np.r_[np.eye(5)[a], np.eye(5)[b]] for a in range(5) for b in range(5)])
    root = np.sqrt(counts.ravel())
    effects = np.linalg.lstsq(design * root[:, None], sums.ravel() / root, rcond=None)[0]
    left = sums.ravel() - counts.ravel() * (design @ effects)
    # Eight backfitting steps of a nearly balanced table: each takes off nine tenths of the error or more.
    assert abs(gains[0] - (left**2 / (counts.ravel() + 1)).sum()) < 1e-6 * gains[0]


def test_functions_of_a_pair_are_products_of_variance_1():
    counts = np.random.default_rng(1).integers(1, 20, (6, 4)).astype(float)
    basis, share = pair_basis(counts, ("number", "category"), (True, False)), counts.ravel() / counts.sum()
    np.testing.assert_allclose(share @ basis, 0.0, atol=1e-12)
    variance = float(share @ (basis**2).sum(axis=1))
    assert 0.95 < variance <= 1.0 + 1e-12, "small directions are left out"


def test_the_right_pair_is_found_and_its_operator_keeps_the_contract():
    X, y = crossed()
    options = Pairs(max_bins=16, categories=[4])
    operator = options.learn(X)
    slopes = np.where(y, -1.0, 1.0)
    ones = np.ones(len(y))
    assert best_pairs(operator, slopes, ones, 10)[0] == (0, 2)
    noise = np.random.default_rng(5).standard_normal(len(y))
    assert len(best_pairs(operator, noise, ones, 10)) <= 1, "shuffled slopes set the limit"
    assert best_pairs(operator, slopes, ones, 0) == []
    paired = add_pairs(operator.on_rows(np.arange(0, 1500, 7)), [(0, 2), (1, 4)], 5, np.ones(215))
    blocks = [block.data for block in paired.row_blocks()]
    # The features are products and rotations of numbers of size 10, summed in another order.
    check_operator(paired, np.vstack(blocks), rtol=1e-11)


@pytest.mark.parametrize("measure", ["roc_auc", "f1"])
def test_models_with_pairs_are_certified_and_beat_additive_ones(measure, tmp_path):
    X, y = crossed()
    clf = MeasureClassifier(measure, features=Pairs(max_bins=16, max_pairs=2), alpha=0.01).fit(X, y)
    plain = MeasureClassifier(measure, features=Additive(max_bins=16), alpha=0.01).fit(X, y)
    assert clf.status_ == "converged"
    assert clf.gap_ <= 0.01 * clf.lower_bound_
    assert clf.feature_map_.pairs[0] == (0, 2)
    assert clf.score(X, y) > plain.score(X, y) + 0.05
    assert abs(clf.objective(X, y) - clf.objective_) <= 1e-12 * clf.objective_
    clf.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert np.array_equal(loaded.decision_function(X), clf.decision_function(X))
    assert loaded.features == clf.features


def test_probabilities_frames_and_the_same_bits_for_any_number_of_threads():
    X, y = crossed()
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = MeasureClassifier("f1", features="pairs", alpha=0.01, probability=True, n_jobs=1).fit(frame, y)
    other = MeasureClassifier("f1", features="pairs", alpha=0.01, n_jobs=2).fit(frame, y)
    assert np.array_equal(clf.coef_, other.coef_)
    assert np.mean((clf.predict_proba(frame)[:, 1] > 0.5) == y) > 0.85


def test_pairs_need_a_certified_optimum():
    X, y = crossed(200)
    for options in ({"solver": "moments"}, {"solver_params": {"early_stopping": EarlyStopping(0.2)}}):
        with pytest.raises(ValueError, match="certified additive optimum"):
            MeasureClassifier(features="pairs", **options).fit(X, y)
