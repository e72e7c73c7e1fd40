"""Bad input: each error names the argument, what was got and what is expected, before anything is computed."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from cases import for_each
from scoreline import MeasureClassifier

N, P = 40, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P))
Y = (X[:, 0] + RNG.standard_normal(N) > 0).astype(int)
ONES = np.ones(N)


def with_entry(value, row=7, column=2):
    other = X.copy()
    other[row, column] = value
    return other


def text_column():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["b"] = "red"
    return frame


PARAMETERS = [
    ({"alpha": 0}, ["alpha=0", "greater than 0"]),
    ({"alpha": -1.0}, ["alpha=-1.0", "greater than 0"]),
    ({"alpha": np.nan}, ["alpha=nan", "finite number"]),
    ({"alpha": np.inf}, ["alpha=inf", "finite number"]),
    ({"alpha": "0.1"}, ["alpha='0.1'", "number"]),
    ({"alpha": True}, ["alpha=True", "number"]),
    ({"alpha": None}, ["alpha=None", "number"]),
    ({"alpha": np.array([1.0])}, ["alpha=array", "number"]),
    ({"alpha": 10**400}, ["alpha=1000", "finite number"]),
    ({"max_iter": 10**400}, ["max_iter=1000", "integer"]),
    ({"tol": 0}, ["tol=0", "greater than 0"]),
    ({"tol": -1e-3}, ["tol=-0.001", "greater than 0"]),
    ({"tol": "small"}, ["tol='small'", "number"]),
    ({"tol": np.nan}, ["tol=nan", "number"]),
    ({"max_iter": 0}, ["max_iter=0", "integer", "at least 1"]),
    ({"max_iter": -5}, ["max_iter=-5", "at least 1"]),
    ({"max_iter": 1.5}, ["max_iter=1.5", "integer"]),
    ({"max_iter": None}, ["max_iter=None", "integer"]),
    ({"max_time": 0}, ["max_time=0", "greater than 0"]),
    ({"max_time": -1.0}, ["max_time=-1.0", "greater than 0"]),
    ({"max_time": "1 s"}, ["max_time='1 s'", "number"]),
    ({"intercept_scaling": 0.0}, ["intercept_scaling=0.0", "greater than 0"]),
    ({"measure": "rocauc"}, ["measure='rocauc'", "expected one of", "Did you mean 'roc_auc'"]),
    ({"measure": "acuracy"}, ["measure='acuracy'", "Did you mean 'accuracy'"]),
    ({"measure": None}, ["measure=None", "'roc_auc'"]),
    ({"measure": 3}, ["measure=3", "'roc_auc'"]),
    ({"measure": ["roc_auc"]}, ["measure=['roc_auc']", "expected one of"]),
    ({"solver": "lbgfs"}, ["solver='lbgfs'", "Did you mean 'lbfgs'"]),
    ({"solver": "smooth"}, ["solver='smooth'", "Did you mean 'smoothed'"]),
    ({"solver": None}, ["solver=None", "'auto'"]),
    ({"risk": "hing"}, ["risk='hing'", "Did you mean 'hinge'"]),
    ({"risk": "rocarea"}, ["risk='rocarea'", "Did you mean 'roc_area'"]),
    ({"risk": None}, ["risk=None", "'hinge'"]),
    ({"scaling": "standart"}, ["scaling='standart'", "Did you mean 'standard'"]),
    ({"scaling": "max_abs"}, ["scaling='max_abs'", "Did you mean 'maxabs'"]),
    ({"scaling": True}, ["scaling=True", "'maxabs'"]),
    ({"threshold": "trian"}, ["threshold='trian'", "Did you mean 'train'"]),
    ({"threshold": None}, ["threshold=None", "'none'"]),
    ({"class_weight": "balance"}, ["class_weight='balance'", "Did you mean 'balanced'"]),
    ({"class_weight": [1, 2]}, ["class_weight=[1, 2]", "dict"]),
    ({"class_weight": {0: -1.0, 1: 1.0}}, ["class_weight={0: -1.0, 1: 1.0}", "positive"]),
    ({"class_weight": {0: 0.0, 1: 1.0}}, ["class_weight={0: 0.0, 1: 1.0}", "positive"]),
    ({"class_weight": {0: np.nan, 1: 1.0}}, ["class_weight={0: nan, 1: 1.0}", "positive"]),
    ({"class_weight": {0: 10**400, 1: 1.0}}, ["class_weight={0: 1000", "positive"]),
    ({"class_weight": {0: 1e-300, 1: 1e300}}, ["class_weight={0: 1e-300", "negligible", "ratio of at most 1e100"]),
    ({"class_weight": {5: 1.0}}, ["class_weight", "[0, 1]"]),
    ({"n_jobs": 0}, ["n_jobs=0", "positive", "-1"]),
    ({"n_jobs": 1.5}, ["n_jobs=1.5", "positive"]),
    ({"n_jobs": "2"}, ["n_jobs='2'", "positive"]),
    ({"solver_params": {"memmory": 5}}, ["solver_params={'memmory': 5}", "does not fit solver 'smoothed'"]),
    ({"solver_params": {"mu": 0.1}, "solver": "lbfgs"}, ["solver_params={'mu': 0.1}", "'lbfgs'"]),
    ({"solver_params": {"tol": 0.1}}, ["solver_params={'tol': 0.1}"]),
    ({"measure_params": {"beta": 2.0}}, ["measure_params={'beta': 2.0}", "'roc_auc'", "takes none"]),
    ({"measure_params": "beta"}, ["measure_params='beta'", "'roc_auc'"]),
    ({"solver": "lbfgs", "risk": "roc_area"}, ["solver='lbfgs'", "risk='roc_area'", "'logistic'", "'smoothed'"]),
    ({"solver": "smoothed", "risk": "logistic"}, ["solver='smoothed'", "risk='logistic'", "'hinge'", "'lbfgs'"]),
]


@for_each(("params", "parts"), PARAMETERS)
def test_parameters(params, parts):
    clf = MeasureClassifier(**params)  # scikit-learn's rule: nothing is checked before fit
    with pytest.raises(ValueError, match=re.escape(parts[0])) as caught:
        clf.fit(X, Y)
    for part in parts[1:]:
        assert part in str(caught.value)
    assert not hasattr(clf, "coef_")


DATA = {
    "one class": ((X, 0 * Y), ["y has one class only", "expected two"]),
    "three classes": ((X, np.arange(N) % 3), ["y has 3 classes", "Only binary", "OneVsRestClassifier"]),
    "y continuous": ((X, X[:, 0]), ["Unknown label type", "y", "two classes"]),
    "y NaN": ((X, np.where(np.arange(N) == 6, np.nan, Y)), ["y contains NaN", "row 6"]),
    "y inf": ((X, np.where(np.arange(N) == 6, np.inf, Y)), ["y contains NaN or infinity", "row 6"]),
    "y masked": ((X, np.ma.masked_array(Y, np.arange(N) == 6)), ["y has masked labels", "drop those rows"]),
    "y None": ((X, None), ["y", "None"]),
    "y too short": ((X, Y[:-1]), ["y has 39 labels", "expected 40"]),
    "y too long": ((X, np.r_[Y, 1]), ["y has 41 labels", "expected 40"]),
    "y two columns": ((X, np.column_stack([Y, Y])), ["y should be a 1d array", "(40, 2)"]),
    "y mixed": ((X, [None if v else "yes" for v in Y]), ["y"]),
    "X NaN": ((with_entry(np.nan), Y), ["X contains NaN", "row 7", "column 2", "expected finite"]),
    "X inf": ((with_entry(np.inf), Y), ["X contains NaN or infinity", "row 7", "column 2"]),
    "X -inf": ((with_entry(-np.inf, 0, 0), Y), ["X contains NaN or infinity", "row 0", "column 0"]),
    "X NaN float32": ((with_entry(np.nan).astype(np.float32), Y), ["row 7", "column 2"]),
    "X NaN Fortran": ((np.asfortranarray(with_entry(np.nan)), Y), ["row 7", "column 2"]),
    "X NaN strided": ((np.repeat(with_entry(np.nan), 2, axis=1)[:, ::2], Y), ["row 7", "column 2"]),
    "X NaN CSR": ((sp.csr_array(with_entry(np.nan)), Y), ["row 7", "column 2"]),
    "X NaN CSC": ((sp.csc_array(with_entry(np.nan)), Y), ["row 7", "column 2"]),
    "X NaN frame": ((pd.DataFrame(with_entry(np.nan)), Y), ["row 7", "column 2"]),
    "X no rows": ((X[:0], Y[:0]), ["0 sample(s)", "(0, 3)", "minimum of 1"]),
    "X no columns": ((X[:, :0], Y), ["0 feature(s)", "(40, 0)", "minimum of 1"]),
    "X no rows sparse": ((sp.csr_array((0, 3)), Y[:0]), ["0 sample(s)", "minimum of 1"]),
    "X one-dimensional": ((X[:, 0], Y), ["X has 1 dimension", "(40,)", "2"]),
    "X three-dimensional": ((X[:, :, None], Y), ["X has 3 dimension", "(40, 3, 1)", "2"]),
    "X scalar": ((1.0, Y), ["X has 0 dimension"]),
    "X words": ((np.full((N, P), "red"), Y), ["X has dtype", "not numbers", "red", "expected float"]),
    "X objects": ((np.full((N, P), "red", dtype=object), Y), ["X has dtype object", "not numbers", "red"]),
    "X frame with words": ((text_column(), Y), ["X is a frame", "not numeric", "red"]),
    "X complex": ((X + 1j, Y), ["X has dtype complex128", "expected float"]),
    "X dates": ((np.full((N, P), np.datetime64("2024-01-01")), Y), ["X has dtype datetime64", "expected float"]),
    "X ragged": (([[1.0, 2.0], [3.0]] * 20, Y), []),
    "weight too short": ((X, Y, ONES[:-1]), ["sample_weight", "(39,)", "(40,)"]),
    "weight two columns": ((X, Y, np.ones((N, 2))), ["ample weight", "(40, 2)", "1D"]),
    "weight negative": ((X, Y, np.r_[-0.5, ONES[1:]]), ["sample_weight", "negative", "-0.5"]),
    "weight NaN": ((X, Y, np.r_[np.nan, ONES[1:]]), ["sample_weight", "NaN", "expected finite"]),
    "weight inf": ((X, Y, np.r_[np.inf, ONES[1:]]), ["sample_weight", "infinity", "expected finite"]),
    "weight masked": ((X, Y, np.ma.masked_array(ONES, np.arange(N) == 6)), ["sample_weight", "masked", "drop"]),
    "weight scalar beyond floats": ((X, Y, 10**400), ["sample_weight", "infinity", "expected finite"]),
    "weight zero": ((X, Y, 0 * ONES), ["sample_weight is zero everywhere"]),
    "weight scalar zero": ((X, Y, 0.0), ["sample_weight is zero everywhere"]),
    "weight scalar negative": ((X, Y, -1.0), ["sample_weight", "negative"]),
    "weight zero for the positives": ((X, Y, 1.0 - Y), ["sample_weight is zero for all rows of a class"]),
    "weight zero for the negatives": ((X, Y, 1.0 * Y), ["sample_weight is zero for all rows of a class"]),
}  # fmt: skip


@for_each("name", DATA)
@for_each("measure", ["roc_auc", "accuracy"])
def test_data(name, measure):
    arguments, parts = DATA[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        MeasureClassifier(measure=measure).fit(*arguments)
    for part in parts:
        assert part in str(caught.value)


@pytest.fixture(scope="module")
def fitted():
    return MeasureClassifier().fit(X, Y)


@for_each("method", ["predict", "decision_function"])
def test_prediction(fitted, method):
    call = getattr(fitted, method)
    with pytest.raises(ValueError, match="X has 2 features, but MeasureClassifier is expecting 3"):
        call(X[:, :2])
    with pytest.raises(ValueError, match="X has 4 features, but MeasureClassifier is expecting 3"):
        call(sp.csr_array(np.ones((2, 4))))
    with pytest.raises(ValueError, match="row 7, column 2"):
        call(with_entry(np.nan))
    with pytest.raises(ValueError, match="2D array"):
        call(X[0])
    with pytest.raises(ValueError, match="0 sample"):
        call(X[:0])


@for_each("method", ["predict", "decision_function", "score", "objective"])
def test_before_fit(method):
    arguments = (X,) if method in ("predict", "decision_function") else (X, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(MeasureClassifier(), method)(*arguments)


def test_a_failed_first_fit_leaves_the_classifier_unfitted():
    clf = MeasureClassifier()
    with pytest.raises(ValueError, match="one class"):
        clf.fit(X, 0 * Y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_objective_refuses_what_fit_would_refuse(fitted):
    with pytest.raises(ValueError, match="y has 3 labels, expected 40"):
        fitted.objective(X, Y[:3])
    with pytest.raises(ValueError, match="one class"):
        fitted.objective(X, 0 * Y)
    with pytest.raises(ValueError, match="negative"):
        fitted.objective(X, Y, -ONES)


# ---- no bare exception from deep inside, no silent nonsense


@for_each("params", [{"memory": 0}, {"memory": -1}, {"memory": 1.5}, {"memory": "ten"}])
def test_memory_must_be_a_positive_integer(params):
    with pytest.raises((ValueError, TypeError), match="memory"):
        MeasureClassifier(solver_params=params, max_iter=20).fit(X, Y)


@for_each("mu", [0.0, -1.0, np.nan, "small"])
def test_mu_must_be_positive(mu):
    with pytest.raises((ValueError, TypeError), match="mu"):
        MeasureClassifier(solver_params={"mu": mu}, max_iter=20).fit(X, Y)


@for_each("abs_tol", [-1.0, np.nan, "small"])
def test_abs_tol_must_be_a_positive_number(abs_tol):
    with pytest.raises((ValueError, TypeError), match="abs_tol"):
        MeasureClassifier(solver_params={"abs_tol": abs_tol}, max_iter=20, tol=0.5).fit(X, Y)


@for_each("callbacks", [3, print, [3]])
def test_callbacks_must_be_a_list_of_functions(callbacks):
    with pytest.raises((ValueError, TypeError), match="callbacks"):
        MeasureClassifier(solver_params={"callbacks": callbacks}).fit(X, Y)


@for_each("solver_params", ["memory", 5, ["memory"]])
def test_solver_params_must_be_a_dict(solver_params):
    with pytest.raises((ValueError, TypeError), match="solver_params"):
        MeasureClassifier(solver_params=solver_params).fit(X, Y)


def test_weights_that_are_not_numbers_are_named():
    with pytest.raises((ValueError, TypeError), match="sample_weight"):
        MeasureClassifier().fit(X, Y, ["heavy"] * N)


def test_class_weights_that_are_not_numbers_are_named():
    with pytest.raises((ValueError, TypeError), match="class_weight"):
        MeasureClassifier(class_weight={0: "heavy", 1: 1.0}).fit(X, Y)


@for_each("measure", ["roc_auc", "accuracy"])
def test_score_with_labels_of_the_wrong_length(measure):
    clf = MeasureClassifier(measure=measure).fit(X, Y)
    with pytest.raises(ValueError, match=r"\by\b"):
        clf.score(X, Y[:5])


def test_score_with_masked_labels(fitted):
    with pytest.raises(ValueError, match=r"y has masked labels.*drop"):
        fitted.score(X, np.ma.masked_array(Y, np.arange(N) == 6))
    assert fitted.score(X, np.ma.masked_array(Y)) == fitted.score(X, Y)


@for_each("measure", ["roc_auc", "accuracy"])
@for_each("weight", [ONES[:5], -ONES, ONES * np.nan])
def test_score_with_bad_weights(measure, weight):
    clf = MeasureClassifier(measure=measure).fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight"):
        clf.score(X, Y, weight)


def test_objective_with_labels_that_fit_never_saw(fitted):
    with pytest.raises(ValueError, match="classes"):
        fitted.objective(X, Y + 5)


@for_each("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_all_text_columns_of_a_frame_are_named_in_fit_and_predict(make):
    numbers = pd.DataFrame({f"c{k}": np.arange(4.0) for k in range(8)})
    text = numbers.assign(**{f"c{k}": ["red", "blue", "red", "blue"] for k in range(1, 8)})
    clf = MeasureClassifier().fit(make(numbers), [0, 1, 0, 1])
    for call in (lambda X: MeasureClassifier().fit(X, [0, 1, 0, 1]), clf.predict, clf.decision_function):
        with pytest.raises(
            ValueError, match=r"7 columns that are not numeric: 'c1' of type .*'c5' of type \w+ and 2 more"
        ) as error:
            call(make(text))
        assert "scoreline.io.read_data(frame, label=...)" in str(error.value)
        assert "'c6'" not in str(error.value)
