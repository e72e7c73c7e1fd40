"""One operator in several fits at once: each counts its own passes and gives the bits of a fit alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.io import convert, open_mapped
from scoreline.operators import ScaledOperator, as_operator
from scoreline.operators.base import Operator
from tiers import TIER


def rows(n=1000, p=12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    X[:, 3] *= 30.0
    return X, (X[:, 0] + rng.standard_normal(n) > 1.0).astype(int)


def mapped(X, y, folder):
    with (folder / "rows.svm").open("w") as file:
        for row, label in zip(X, y, strict=True):
            file.write(f"{label} " + " ".join(f"{k + 1}:{v!r}" for k, v in enumerate(row.tolist())) + "\n")
    convert(folder / "rows.svm", folder / "mapped")
    return open_mapped(folder / "mapped").X


@for_each("kind", ["scaled"] if TIER == "quick" else ["dense", "sparse", "scaled", "mapped"])
def test_fits_that_share_an_operator_give_the_same_bits(kind, tmp_path):
    X, y = rows()
    inner = as_operator(sp.csr_matrix(X) if kind == "sparse" else X)
    made = {
        "scaled": lambda: ScaledOperator(inner, np.linspace(0.5, 2.0, 12)),
        "mapped": lambda: mapped(X, y, tmp_path),
    }
    operator = made.get(kind, lambda: inner)()

    def fit(_=None):
        clf = MeasureClassifier(alpha=1e-5, tol=1e-6, n_jobs=1).fit(operator, y)
        return clf.coef_.tobytes(), clf.lower_bound_, clf.n_passes_, clf.history_["passes"]

    before = operator.n_passes
    alone = fit()
    assert operator.n_passes - before == pytest.approx(alone[2])  # the user's operator knows
    with ThreadPoolExecutor(4) as pool:
        assert all(found == alone for found in pool.map(fit, range(8)))


@for_each("sparse", [False, True])
def test_a_fit_on_a_mapped_operator_opens_no_file_again(sparse, tmp_path):
    tmp_path = tmp_path / f"sparse_{sparse}"
    tmp_path.mkdir()
    X, y = rows(500)
    convert((sp.csr_matrix(X) if sparse else X, y), tmp_path / "mapped")
    operator = open_mapped(tmp_path / "mapped").X
    before = MeasureClassifier(n_jobs=1).fit(operator, y).coef_
    (tmp_path / "mapped").rename(tmp_path / "elsewhere")
    own = operator.with_own_passes()
    assert own._files is operator._files
    assert own.scattered is operator.scattered
    assert own._last_list is not operator._last_list
    np.testing.assert_array_equal(MeasureClassifier(n_jobs=1).fit(operator, y).coef_, before)


def test_the_passes_of_a_search_and_of_a_fit_that_fails_are_counted():
    X, y = rows(300)
    operator = as_operator(X)
    MeasureClassifierCV(alphas=[1e-2, 1e-3], cv=2).fit(operator, y)
    assert operator.n_passes > 0.0
    before = operator.n_passes
    with pytest.raises(ValueError, match="y has 299 labels"):
        MeasureClassifier().fit(operator, y[1:])
    assert operator.n_passes == before


def test_an_operator_apart_shares_its_arrays():
    X, _ = rows(100)
    inner = as_operator(X)
    operator = ScaledOperator(inner, np.full(12, 2.0))
    operator.matvec(np.ones(12))
    own = operator.with_own_passes()
    assert isinstance(own, Operator)
    assert own.n_passes == own.inner.n_passes == 0.0
    assert own.inner is not inner
    assert own.inner._X is inner._X
    own.matvec(np.ones(12))
    assert operator.n_passes == inner.n_passes == 1.0
