"""Additive features: bins, bases, and models of them, against direct computations."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.export import to_json
from scoreline.features import Additive, Pairs
from scoreline.features.basis import LEAST_VARIANCE_SHARE, LINEAR_WEIGHT, STEP_SCALE, column_basis
from scoreline.features.bins import category_bins, number_bins
from scoreline.io import convert, open_mapped
from scoreline.operators import as_operator
from scoreline.solvers import Checkpoint, EarlyStopping


def table(n=600, seed=0):
    """Return rows with a hump, a slope, categories in numbers, and missing values; labels."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-2, 2, n), rng.standard_normal(n), rng.integers(0, 5, n), rng.standard_normal(n)])
    score = np.abs(X[:, 0]) + 0.5 * X[:, 1] + 0.4 * (X[:, 2] == 3) + 0.3 * rng.standard_normal(n)
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, score > 1.2


def test_bins_of_numbers_are_quantiles_and_weights_are_copies():
    values = np.array([3.0, 1.0, np.nan, 2.0, 2.0, np.inf, -np.inf])
    bins = number_bins("x", values, np.ones(7), 10)
    assert bins.values.tolist() == [-np.inf, 1.5, 2.5, 3.0]
    rng = np.random.default_rng(0)
    values, weight = rng.standard_normal(500), rng.integers(0, 4, 500)
    weighed = number_bins("x", values[weight > 0], weight[weight > 0].astype(float), 8)
    copied = number_bins("x", np.repeat(values, weight), np.ones(weight.sum()), 8)
    assert np.array_equal(weighed.values, copied.values)
    np.testing.assert_allclose(weighed.centers, copied.centers, rtol=1e-12)
    share = np.histogram(np.repeat(values, weight), [-np.inf, *copied.values, np.inf])[0] / weight.sum()
    assert np.abs(share - 1 / 8).max() < 0.01  # a row weighs up to 3 of about 750


def test_codes_are_those_of_searchsorted():
    X, _ = table()
    for order in ("C", "F"):
        for dtype in (np.float64, np.float32):
            rows = np.asarray(X, dtype=dtype, order=order)
            operator = Additive(max_bins=16, categories=[2]).learn(rows)
            for j, column in enumerate(operator.feature_map.columns):
                values = rows[:, j].astype(float)
                expected = 1 + np.searchsorted(column.values, values)
                assert np.array_equal(operator.codes[j], np.where(np.isnan(values), 0, expected)), (order, dtype, j)


def test_the_basis_spans_steps_and_a_line_with_their_penalty():
    """Scores at the ridge optimum depend on B B' alone: that of steps and line, but for small directions."""
    values = np.random.default_rng(1).standard_normal(400)
    bins = number_bins("x", values, np.ones(400), 12)
    counts = np.concatenate([[0.0], np.bincount(np.searchsorted(bins.values, values), minlength=12)])
    basis, share = column_basis(bins, counts), counts[1:] / 400
    places = np.arange(12)
    steps = np.sqrt(min(STEP_SCALE / 11, 1.0)) * (places[:, None] > places[None, :-1])
    centred = bins.centers - share @ bins.centers
    full = np.column_stack([steps, LINEAR_WEIGHT * centred / np.sqrt(share @ centred**2)])
    full -= share @ full
    root = np.sqrt(share)[:, None]
    one, other = (root * each @ (root * each).T for each in (full, basis[1:]))
    # What is left out are directions of at most this variance.
    largest = np.linalg.eigvalsh(one).max()
    assert np.linalg.norm(one - other, 2) <= LEAST_VARIANCE_SHARE * largest * (1 + 1e-9)
    gram = (root * basis[1:]).T @ (root * basis[1:])
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12 * largest)
    assert (basis[0] == 0.0).all(), "missing values are at the mean"


def test_rare_categories_share_a_function():
    values = np.repeat([1.0, 5.0, 7.0, 9.0], [50, 40, 3, 2])
    bins = category_bins("c", values, np.ones(95), None)
    counts = np.array([0.0, 50, 40, 3, 2, 0])
    basis = column_basis(bins, counts)
    assert basis.shape == (6, 5)
    np.testing.assert_allclose(counts @ basis, 0.0, atol=1e-12)
    spread = basis - basis[-1]  # an unseen category has the shared function alone
    assert np.count_nonzero(np.abs(spread[3]) > 1e-12) == 1
    few = category_bins("c", np.arange(400.0), np.ones(400), None)
    assert few.size == 256


@pytest.mark.parametrize("measure", ["roc_auc", "f1"])
def test_models_are_certified_and_equal_those_of_the_expanded_matrix(measure):
    X, y = table()
    features = Additive(max_bins=12)
    clf = MeasureClassifier(measure, features=features, alpha=0.01, tol=1e-4).fit(X, y)
    assert clf.status_ == "converged"
    assert clf.gap_ <= 1e-4 * clf.lower_bound_
    expanded = next(features.learn(X).row_blocks(len(X))).data
    plain = MeasureClassifier(measure, alpha=0.01, tol=1e-4).fit(expanded, y)
    # Two proved objectives of one problem differ by at most the larger gap.
    assert abs(clf.objective_ - plain.objective_) <= max(clf.gap_, plain.gap_)
    if measure == "roc_auc":
        linear = MeasureClassifier(measure, scaling="standard").fit(np.nan_to_num(X), y)
        assert clf.score(X, y) > linear.score(np.nan_to_num(X), y) + 0.1


def test_sample_weights_are_copies_and_rows_of_weight_0_are_not_there():
    X, y = table()
    weight = np.random.default_rng(3).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighed = MeasureClassifier(features=Additive(max_bins=8), alpha=0.01, tol=1e-6).fit(X, y, weight)
    copied = MeasureClassifier(features=Additive(max_bins=8), alpha=0.01, tol=1e-6).fit(X[rows], y[rows])
    for one, other in zip(weighed.feature_map_.columns, copied.feature_map_.columns, strict=True):
        assert np.array_equal(one.values, other.values)
    assert abs(weighed.objective_ - copied.objective_) <= 2 * max(weighed.gap_, copied.gap_)


def test_storages_give_the_same_model(tmp_path):
    X, y = table()
    full = np.nan_to_num(X)
    convert((full, y.astype(float)), tmp_path / "rows")
    sources = {
        "f_order": np.asfortranarray(full), "lists": full.tolist(), "csr": sp.csr_array(full), "operator": as_operator(full),
        "folder": open_mapped(tmp_path / "rows").X, "frame": pd.DataFrame(full),
    }  # fmt: skip
    expected = MeasureClassifier(features="additive", alpha=0.01).fit(full, y)
    for name, source in sources.items():
        clf = MeasureClassifier(features="additive", alpha=0.01).fit(source, y)
        assert np.array_equal(clf.coef_, expected.coef_), name
        assert np.array_equal(clf.decision_function(source), expected.decision_function(full)), name


def test_frames_with_text_save_load_and_new_categories(tmp_path):
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"] = np.array(["Bonn", "Köln", "Ulm", "Kiel", "Jena"])[X[:, 2].astype(int)]
    frame.loc[3, "town"] = None
    clf = MeasureClassifierCV(features="additive", alphas=[0.1, 0.01], cv=3).fit(frame, y)
    assert clf.n_features_in_ == 5
    assert clf.feature_map_.columns[4].labels()[1:] == ["Bonn", "Jena", "Kiel", "Köln", "Ulm", "other"]
    assert clf.score(frame, y) > 0.9
    clf.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    new = frame.assign(town="Rom")
    for rows in (frame, new, frame.astype({"town": "category"})):
        assert np.array_equal(loaded.decision_function(rows), clf.decision_function(rows))
    assert loaded.get_params()["features"] == "additive"
    additive = MeasureClassifier(features=Additive(max_bins=9, categories=("c",)), alpha=0.1).fit(frame, y)
    additive.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").features == additive.features


def test_thresholds_probabilities_and_early_stopping():
    X, y = table()
    clf = MeasureClassifier("f1", features="additive", alpha=0.01, probability=True).fit(X, y)
    assert np.mean((clf.predict_proba(X)[:, 1] > 0.5) == y) > 0.85
    stopping = EarlyStopping((X[:150], y[:150]))
    stopped = MeasureClassifier(features="additive", alpha=0.01, solver_params={"early_stopping": stopping})
    assert stopped.fit(X[150:], y[150:]).score(X[:150], y[:150]) > 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": "additiv"}, "Did you mean 'additive'"),
        ({"features": "auto"}, "use MeasureClassifierCV"),
        ({"features": Pairs(max_pairs=-1)}, "at least 0"),
        ({"features": Pairs(grid=100)}, "at most 64"),
        ({"features": 3}, "must be 'linear', 'additive'"),
        ({"features": Additive(max_bins=300)}, "at most 254"),
        ({"features": Additive(max_bins=1)}, "at least 2"),
        ({"features": Additive(categories="age")}, "a list of names or positions"),
        ({"features": Additive(categories=["age"])}, "does not have"),
        ({"features": Additive(categories=[9])}, "expected 0 to 3"),
        ({"features": "additive", "scaling": "standard"}, "Leave scaling=None"),
    ],
)
def test_wrong_options_say_what_is_expected(options, words):
    X, y = table(60)
    with pytest.raises(ValueError, match=words):
        MeasureClassifier(**options).fit(X, y)


def test_what_is_not_supported_is_an_error():
    X, y = table(100)
    clf = MeasureClassifier(features="additive", alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        clf.predict(X[:, :3])
    with pytest.raises(TypeError, match=r"needed in this process, got _?MatrixLinearOperator\. Pass"):
        clf.fit(aslinearoperator(X), y)
    with pytest.raises(ValueError, match="exports to ONNX, SQL and JSON"):
        to_json(clf)
    with pytest.raises(ValueError, match="partial_fit needs features='linear'"):
        MeasureClassifier(features="additive", solver="moments").partial_fit(X, y)
    with pytest.raises(ValueError, match="at most 5000 columns"):
        MeasureClassifier(features="additive").fit(sp.csr_array((100, 6000)), y)


def test_an_interrupted_fit_resumes_from_its_checkpoint(tmp_path):
    X, y = noisy_rows()
    record, calls = Checkpoint(tmp_path / "record.npz", every=2, seconds=0), []

    def stop(progress):
        calls.append(progress.iteration)
        if len(calls) == 7:
            raise OSError("the process ends")

    def classifier(**options):
        return MeasureClassifier("roc_auc", features="additive", alpha=1e-3, tol=1e-4, solver_params=options)

    steps = []
    other = Checkpoint(tmp_path / "whole.npz", every=2, seconds=0)  # at each one, scores are computed afresh
    uninterrupted = classifier(checkpoint=other, callbacks=[steps.append]).fit(X, y)
    with pytest.raises(OSError, match="the process ends"):
        classifier(checkpoint=record, callbacks=[stop]).fit(X, y)
    assert record.path.exists()
    resumed = classifier(checkpoint=record, callbacks=[calls.append]).fit(X, y)
    assert len(calls) - 7 < len(steps), "it did not start again"
    assert not record.path.exists()
    np.testing.assert_array_equal(resumed.coef_, uninterrupted.coef_)
    assert resumed.lower_bound_ == uninterrupted.lower_bound_


def test_pairs_refuse_a_checkpoint(tmp_path):
    """The model with pairs is the second of two fits, and a checkpoint holds one."""
    X, y = noisy_rows()
    options = {"checkpoint": str(tmp_path / "record.npz")}
    with pytest.raises(ValueError, match="leave early_stopping and checkpoint out"):
        MeasureClassifier("roc_auc", features="pairs", solver_params=options).fit(X, y)


def noisy_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (500, 3))
    return X, np.abs(X[:, 0]) + X[:, 1] + rng.standard_normal(500) > 1
