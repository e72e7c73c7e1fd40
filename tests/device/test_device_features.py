"""Additive features and pairs of arrays on a device: the bins, the pairs and the optimum of the host."""

from pathlib import Path

import numpy as np
import pytest
from device_arrays import LIBRARIES, sent

from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.cli.main import main
from scoreline.features import Additive, Pairs
from scoreline.gpu.backend import backend_of
from scoreline.gpu.codes_operator import CodesDeviceOperator
from scoreline.operators.codes import CodesOperator

N = 1200


def table(seed=0):
    """Return rows with missing values and categories, labels and whole weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (N, 3)), rng.integers(0, 5, N)])
    X[rng.random(N) < 0.1, 1] = np.nan
    score = X[:, 0] * X[:, 2] + 0.5 * np.abs(np.nan_to_num(X[:, 1])) + 0.3 * (X[:, 3] == 2)
    return X, score + rng.normal(0, 0.2, N) > 0.3, rng.integers(0, 3, N).astype(float)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("features", [Additive(categories=[3]), Pairs(categories=[3]), Pairs(pairs=[(1, 3)])])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_that_of_the_host(features, weighted, library):
    X, y, weight = table()
    weight = weight if weighted else None
    clf = MeasureClassifier("roc_auc", features=features, alpha=0.01, tol=1e-4)
    host = clf.fit(X, y, weight)
    expected, objective, bound = host.feature_map_, host.objective_, host.lower_bound_
    clf.fit(sent(X, library), sent(y, library), None if weight is None else sent(weight, library))
    assert clf.feature_map_.has_bins_of(expected)
    assert clf.feature_map_.pairs == expected.pairs
    assert isinstance(features, Pairs) == bool(expected.pairs)
    np.testing.assert_allclose(clf.objective_, objective, rtol=1e-4)  # two points within tol of the same optimum
    np.testing.assert_allclose(clf.lower_bound_, bound, rtol=1e-4)
    there = clf.decision_function(sent(X, library))
    np.testing.assert_allclose(backend_of(there).host(there), clf.decision_function(X), rtol=1e-9, atol=1e-12)
    assert clf.score(sent(X, library), sent(y, library)) == pytest.approx(clf.score(X, y), abs=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_products_are_those_of_the_host(library):
    X, _, _ = table()
    X = np.column_stack([X, X[:, 3] == 1, X[:, 3] == 2])  # columns that share a line of bytes on the host
    here = Pairs(pairs=[(0, 2), (1, 3)]).with_pairs(Additive(categories=[3]).learn(X), np.zeros(N))
    options = Pairs(pairs=[(0, 2), (1, 3)])
    there = options.with_pairs(Additive(categories=[3]).learn(sent(X, library)), np.zeros(N))
    assert (type(here), type(there)) == (CodesOperator, CodesDeviceOperator)
    assert there.shape == here.shape
    rng = np.random.default_rng(1)
    w, u = rng.standard_normal(here.shape[1]), rng.standard_normal(N)
    scores, slopes = there.matvec(w), there.aligned(u, "u")
    np.testing.assert_allclose(np.asarray(scores), here.matvec(w), atol=1e-11)
    np.testing.assert_allclose(there.rmatvec(slopes), here.rmatvec(u), atol=1e-10)
    np.testing.assert_allclose(there.square_rmatvec(slopes), here.square_rmatvec(u), atol=1e-10)
    rows = np.array([3, 700, 41])
    codes = there.host_codes(rows)
    np.testing.assert_array_equal(codes, here.codes[:, rows])


@pytest.mark.parametrize("library", LIBRARIES)
def test_monotone_functions_and_cross_validation(library):
    X, y, _ = table()
    clf = MeasureClassifier("roc_auc", features="additive", monotone={0: 1}, alpha=0.01)
    clf.fit(sent(X, library), sent(y, library))
    rising = next(shape for shape in clf.shape_functions() if shape.name == "x0")
    assert (np.diff(rising.scores[1:]) >= 0.0).all()
    search = MeasureClassifierCV("roc_auc", features="auto", alphas=[0.1, 0.01], cv=3, random_state=0)
    host = search.fit(X, y)
    expected, chosen, means = host.features_, host.alpha_, host.cv_results_["mean_test_score"]
    search.fit(sent(X, library), sent(y, library))
    assert (search.features_, search.alpha_) == (expected, chosen)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, atol=5e-3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_with_another_number_of_columns_are_refused(library):
    X, y, _ = table()
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.1).fit(sent(X, library), sent(y, library))
    with pytest.raises(ValueError, match="3 features"):
        clf.decision_function(sent(X[:, :3], library))


def test_the_command_line_moves_codes_to_a_device(tmp_path, monkeypatch, capsys):
    """A device of array-api-strict stands for a GPU."""
    monkeypatch.chdir(tmp_path)
    strict = backend_of(sent(np.zeros(1), "array-api-strict"))
    for module in ("backend", "convert"):
        monkeypatch.setattr(f"scoreline.gpu.{module}.named_device", lambda name: strict)
    X, y, _ = table()
    rows = [",".join(["" if np.isnan(x) else f"{x:.3f}" for x in row]) for row in X]
    Path("rows.csv").write_text("\n".join(["a,b,c,d,out", *map("{},{:d}".format, rows, y)]) + "\n")
    for features, alpha in (("additive", "0.01"), ("pairs", "0.01"), ("auto", "auto")):
        train = ["train", "rows.csv", "--label", "out", "--positive", "1", "--quiet", "--features", features]
        made = []
        monkeypatch.setattr(CodesDeviceOperator, "_matvec", counted(CodesDeviceOperator._matvec, made))
        assert main([*train, "--alpha", alpha, "--device", "cuda"]) == 0
        assert made, "products are on the device"
        there = load_model("model.npz")
        assert main([*train, "--alpha", str(there.alpha), *(["--features", there.feature_map_.kind])]) == 0
        here = load_model("model.npz")
        assert here.feature_map_.pairs == there.feature_map_.pairs
        np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-2)  # tol of both


def counted(product, made):
    """Return a product that notes each call."""

    def counting_product(self, w):
        made.append(self.shape)
        return product(self, w)

    return counting_product
