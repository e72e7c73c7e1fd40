"""`compare` is fair: same rows and scaling for all, alpha chosen alike, intervals as documented; and it does not crash."""

import importlib
import shlex

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from scoreline import load_model
from scoreline.data import convert, open_mapped
from scoreline.report.compare import BASELINE, PLAIN, Contender, _differences, _verdict, compare

module = importlib.import_module("scoreline.report.compare")  # the package has a function of that name


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def found(cancer):
    return compare(*cancer, "roc_auc", solvers=["moments"], splits=4, alphas=(1e-2, 1e-4), random_state=3)


def test_intervals_are_those_of_the_docstring(found):
    best = found.baseline
    assert best.value == max(np.mean(c.values) for c in found.contenders if c.kind == BASELINE)
    assert best.difference is None
    s, ratio = found.splits, found.test_rows / found.train_rows
    for c in found.contenders:
        if c is best:
            continue
        d = [a - b for a, b in zip(c.values, best.values, strict=True)]
        mean = sum(d) / s
        variance = sum((x - mean) ** 2 for x in d) / (s - 1)
        reach = stats.t(s - 1).isf(0.025) * np.sqrt((1 / s + ratio) * variance)
        assert c.difference == pytest.approx((mean, mean - reach, mean + reach))


def test_logistic_regression_is_what_scikit_learn_gives(cancer, found):
    X, y = cancer
    rng = np.random.RandomState(3)
    plain = next(c for c in found.contenders if c.name == PLAIN)
    for split in range(found.splits):
        A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=rng)
        inner = train_test_split(A, a, test_size=0.25, stratify=a, random_state=3 + split)

        def auc(rows, labels, new, truth, alpha):
            scaler = StandardScaler().fit(rows)
            model = LogisticRegression(C=1.0 / (len(rows) * alpha), max_iter=1000).fit(scaler.transform(rows), labels)
            return roc_auc_score(truth, model.decision_function(scaler.transform(new)))

        tried = [auc(inner[0], inner[2], inner[1], inner[3], alpha) for alpha in (1e-2, 1e-4)]
        alpha = (1e-2, 1e-4)[int(np.argmax(np.round(tried, 12)))]  # roc_auc_score rounds: equal areas differ by 1e-16
        assert plain.alphas[split] == alpha
        assert plain.values[split] == pytest.approx(auc(A, a, B, b, alpha), abs=1e-9)


def test_every_model_is_trained_and_tested_on_the_same_rows(cancer, monkeypatch):
    seen = {}
    original = module._fitted

    def spy(contender, measure, alphas, scaling, parts, seed, split):
        seen.setdefault(contender.name, []).append(
            (*(part.tobytes() for part in parts), seed, split, scaling, tuple(alphas))
        )
        return original(contender, measure, alphas, scaling, parts, seed, split)

    monkeypatch.setattr(module, "_fitted", spy)
    compare(*cancer, "f1", solvers=["smoothed"], splits=2, alphas=(1e-2, 1e-3))
    assert len(seen) == 5
    assert len({tuple(calls) for calls in seen.values()}) == 1
    first, second = next(iter(seen.values()))
    assert first[:4] != second[:4]


def test_the_same_seed_gives_the_same_values(cancer, found):
    again = compare(*cancer, "roc_auc", solvers=["moments"], splits=4, alphas=(1e-2, 1e-4), random_state=3)
    other = compare(*cancer, "roc_auc", solvers=["moments"], splits=4, alphas=(1e-2, 1e-4), random_state=4)
    assert [c.values for c in again.contenders] == [c.values for c in found.contenders]
    assert [c.values for c in other.contenders] != [c.values for c in found.contenders]


@pytest.mark.parametrize(
    ("shift", "kind", "words"),
    [(0.0, "tie", "No clear difference"), (0.01, "pays", "pays here"), (-0.01, "loses", "does not pay")],
)
def test_verdicts(found, shift, kind, words):
    values = [0.7, 0.8, 0.75]
    ours = Contender("scoreline auto", "scoreline", [v + shift for v in values], [1.0] * 3)
    rival = Contender(PLAIN, BASELINE, values, [1.0] * 3)
    _differences([ours, rival], 0.4)
    sentence, got = _verdict(found.measure, [ours, rival])
    assert got == kind
    assert words in sentence
    if kind == "tie":
        assert ours.difference == (0.0, 0.0, 0.0)


def test_a_solver_that_fails_is_named_and_the_rest_goes_on(scoreline, as_json, folder):
    arguments = ("compare", "payments.csv", "--label", "outcome", "--measure", "mcc", "--solvers", "moments")
    code, out, err = scoreline(*arguments, "--splits", 2, "--alphas", "1e-3", "--report", "r.html")
    assert code == 0
    assert "moments" in err
    assert "failed" in out
    failed = as_json(*arguments, "--splits", 2, "--alphas", "1e-3")["contenders"][1]
    assert failed["values"] == []
    assert failed["value"] is None


def test_a_baseline_that_fails_on_one_split_is_not_the_best(cancer, monkeypatch):
    original, calls = module._fitted, []

    def sometimes(contender, *rest):
        calls.append(contender.name)
        if contender.name == PLAIN and calls.count(PLAIN) == 2:
            raise ValueError("no luck")
        result = original(contender, *rest)
        if contender.name == PLAIN:
            contender.values[-1] = 1.0
        return result

    monkeypatch.setattr(module, "_fitted", sometimes)
    result = compare(*cancer, splits=3, alphas=(1e-3,))
    assert result.baseline.name != PLAIN
    assert next(c for c in result.contenders if c.name == PLAIN).difference is None


def test_all_baselines_fail(cancer, monkeypatch):
    original = module._fitted

    def never(contender, *rest):
        if contender.kind == BASELINE:
            raise ValueError("no luck")
        return original(contender, *rest)

    monkeypatch.setattr(module, "_fitted", never)
    with pytest.raises(ValueError, match="every baseline failed: logistic regression: no luck"):
        compare(*cancer, splits=2, alphas=(1e-3,))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_mapped_folder_is_compared_like_memory(cancer, tmp_path, sparse):
    X, y = cancer
    X = sp.csr_matrix(np.where(X > np.median(X, axis=0), X, 0.0)) if sparse else X
    mapped = open_mapped(convert((X, y), tmp_path / "d"))
    for rows in (200_000, 300):
        one = compare(X, y, splits=2, alphas=(1e-3,), max_rows=rows)
        two = compare(mapped.X, mapped.y, splits=2, alphas=(1e-3,), max_rows=rows)
        assert one.train_rows + one.test_rows == min(rows, len(y))
        for a, b in zip(one.contenders, two.contenders, strict=True):
            assert a.values == pytest.approx(b.values, abs=1e-6)


@pytest.mark.parametrize("measure", ["roc_auc", "f1", "average_precision", "mcc"])
@pytest.mark.parametrize("case", ["few", "one column", "ten rows", "all equal"])
def test_hard_data_end_with_a_result(scoreline, folder, measure, case):
    rng = np.random.default_rng(5)
    n, p = (10, 2) if case == "ten rows" else (150, 1 if case == "one column" else 3)
    X = np.ones((n, p)) if case == "all equal" else rng.standard_normal((n, p))
    y = (
        np.arange(n) < 4 if case == "few" else np.arange(n) % 2 == 0
    )  # few: one positive to test on, one to choose alpha
    lines = [",".join(map(str, row)) + f",{int(label)}" for row, label in zip(X, y, strict=True)]
    (folder / "hard.csv").write_text(",".join([*(f"x{j}" for j in range(p)), "y"]) + "\n" + "\n".join(lines) + "\n")
    given = ("compare", "hard.csv", "--label", "y", "--splits", 2, "--alphas", "1e-2,1e-4", "--report", "r.html")
    code, out, _ = scoreline(*given, "--measure", measure)
    assert code == 0
    assert "nan" not in out
    assert " here: " in out
    assert (folder / "r.html").exists()


def test_too_few_rows_in_the_sample(cancer):
    X, y = cancer
    rare = np.arange(len(y)) < 5
    with pytest.raises(ValueError, match="got 1 among the max_rows=100 sampled"):
        compare(X, rare, max_rows=100)


@pytest.mark.parametrize(
    "wrong", [{"test_share": 1.0}, {"alphas": ()}, {"alphas": (1e-2, -1.0)}, {"max_rows": 3}, {"splits": 1}]
)
def test_wrong_arguments(cancer, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        compare(*cancer, **wrong)


@pytest.mark.parametrize(
    ("measure", "extra"),
    [
        ("f1", ()),
        ("accuracy", ("--seed", "7", "--alphas", "0.0123456789,0.0123456788")),
        ("fbeta", ("--measure-param", "beta=0.3", "--scaling", "maxabs", "--drop=-x")),
    ],
)
def test_the_train_command_trains_the_classifier_that_was_compared(measure, extra, as_json, folder, monkeypatch):
    """The printed command gives the coefficients of compare's classifier, fitted on all rows with the same alpha."""
    compared = []

    def noted(*args, **options):
        compared.append((args[:2], compare(*args, **options)))
        return compared[0][1]

    monkeypatch.setattr("scoreline.cli.compare.compare", noted)
    lines = (folder / "payments.csv").read_text().splitlines()
    (folder / "x.csv").write_text("\n".join(f"{line},{'-x' if k == 0 else k}" for k, line in enumerate(lines)) + "\n")
    given = ("x.csv", "--label", "outcome", "--positive", "fraud", "--measure", measure, "--splits", "2", *extra)
    command = shlex.split(as_json("compare", *given)["train"])
    trained = as_json(*command[1:])
    (X, y), found = compared[0]
    again = clone(found.classifier).set_params(alpha=trained["alpha"]).fit(X, y)
    model = load_model("model.npz")
    np.testing.assert_array_equal(model.coef_, again.coef_)
    np.testing.assert_array_equal(model.intercept_, again.intercept_)
    assert trained["alpha"] in found.contenders[0].alphas
