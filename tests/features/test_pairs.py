"""Pairs of columns: which are chosen, their functions, and models of them."""

import numpy as np
import pandas as pd
import pytest

from scoreline import MeasureClassifier, load_model
from scoreline.features import Additive, Pairs
from scoreline.features.basis import pair_basis
from scoreline.features.pairs import add_pairs, best_pairs, pair_gains
from scoreline.kernels import codes as kernels
from scoreline.operators.codes import PackedCodes
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
    codes = rng.integers(0, 5, (2, 300)).astype(np.uint8)
    u, weight = rng.standard_normal(300), rng.integers(1, 4, 300) * 1.0
    gain = pair_gains(
        PackedCodes.plain(codes), np.arange(300, dtype=np.uint64), [np.arange(5, dtype=np.uint32)] * 2, u, weight
    )[0, 1]
    sums, counts = (np.zeros((5, 5)) for _ in range(2))
    np.add.at(sums, (codes[0], codes[1]), u)
    np.add.at(counts, (codes[0], codes[1]), weight)
    design = np.array([np.r_[np.eye(5)[a], np.eye(5)[b]] for a in range(5) for b in range(5)])
    root = np.sqrt(counts.ravel())
    effects = np.linalg.lstsq(design * root[:, None], sums.ravel() / root, rcond=None)[0]
    left = sums.ravel() - counts.ravel() * (design @ effects)
    # Eight backfitting steps of a nearly balanced table: each takes off nine tenths of the error or more.
    assert abs(gain - (left**2 / (counts.ravel() + 1)).sum()) < 1e-6 * gain


def test_gains_of_all_pairs_are_those_of_tables():
    """Blocks of columns, and cells that follow from the others, against one table for each pair."""
    rng = np.random.default_rng(1)
    p, n, cells = 40, 500, 3
    codes = (rng.random((p, n)) < rng.uniform(0.02, 0.9, (p, 1))).astype(np.uint8) * rng.integers(1, cells, (p, n))
    codes, u, weight = codes.astype(np.uint8), rng.standard_normal(n), rng.integers(1, 3, n) * 1.0
    lines = np.flatnonzero(rng.random(n) < 0.8).astype(np.uint64)
    own, mass = u[lines], weight[lines]
    gains = pair_gains(PackedCodes.plain(codes), lines, [np.arange(cells, dtype=np.uint32)] * p, own, mass)
    for j, k in ((0, 1), (3, 39), (31, 32), (35, 38)):
        table, counts = np.zeros((cells, cells)), np.zeros((cells, cells))
        np.add.at(table, (codes[j, lines], codes[k, lines]), own)
        np.add.at(counts, (codes[j, lines], codes[k, lines]), mass)
        a, b = np.zeros(cells), np.zeros(cells)
        for _ in range(kernels.BACKFITTING_STEPS):
            a = (table - counts * b).sum(axis=1) / (counts.sum(axis=1) + 1e-300)
            b = (table - counts * a[:, None]).sum(axis=0) / (counts.sum(axis=0) + 1e-300)
        expected = (np.square(table - counts * (a[:, None] + b)) / (counts + 1.0)).sum()
        assert abs(gains[j, k] - expected) < 1e-9 * max(expected, 1.0), (j, k)


def test_noise_alone_makes_a_pair_about_once_in_all_pairs():
    rng = np.random.default_rng(2)
    operator = Additive(max_bins=16).learn(rng.standard_normal((2000, 12)))
    taken = [len(best_pairs(operator, rng.standard_normal(2000), np.ones(2000), 60)) for _ in range(40)]
    assert 0.3 < np.mean(taken) < 2.0


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
    assert len(best_pairs(operator, noise, ones, 10)) <= 2, "the variance of the slopes sets the limit"
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


def test_listed_pairs_are_those_of_the_model(tmp_path):
    X, y = crossed()
    frame = pd.DataFrame(X, columns=list("abcde"))
    listed = Pairs(pairs=[("c", "a"), ("b", 4), ("a", "c")])
    clf = MeasureClassifier("roc_auc", features=listed, alpha=0.01).fit(frame, y)
    assert clf.feature_map_.pairs == [(0, 2), (1, 4)]
    chosen = MeasureClassifier("roc_auc", features=Pairs(max_pairs=1), alpha=0.01).fit(frame, y)
    assert chosen.feature_map_.pairs == [(0, 2)]
    clf.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model.npz").decision_function(frame), clf.decision_function(frame)
    )
    none = MeasureClassifier("roc_auc", features=Pairs(pairs=[]), alpha=0.01).fit(frame, y)
    assert none.feature_map_.pairs == []


@pytest.mark.parametrize(
    ("pairs", "options", "words"),
    [
        ("ab", {}, "must be a list of pairs"),
        ([("a", "b", "c")], {}, "must be a list of pairs"),
        ([("a", "a")], {}, "one column twice"),
        ([("a", "zip")], {}, "'zip'"),
        ([("a", "b")], {"monotone": {"b": 1}}, "column 'b' of monotone"),
    ],
)
def test_wrong_pairs_are_refused(pairs, options, words):
    X, y = crossed(300)
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.raises(ValueError, match=words):
        MeasureClassifier("roc_auc", features=Pairs(pairs=pairs), alpha=0.01, **options).fit(frame, y)
    with pytest.raises(ValueError, match="leave one out"):
        Pairs(pairs=[("a", "b")], max_pairs=3).check()
