"""`compare` is fair: the same rows, scaling and choice of alpha for all models, and intervals as documented."""

import argparse
import importlib
import io
import shlex
import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_gaussian_quantiles
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from cases import for_each
from scoreline import MeasureClassifierCV, load_model
from scoreline.cli import output as cli_output
from scoreline.cli.compare import train_command
from scoreline.cli.parser import parse
from scoreline.io import convert, open_mapped
from scoreline.measures import get_measure
from scoreline.model_selection.baselines import BOOSTED, PLAIN, TUNED, baseline_model, decision_values, suitable_threads
from scoreline.model_selection.search import ALPHAS
from scoreline.model_selection.trials import (
    BASELINE,
    OURS,
    TREES,
    Contender,
    _set_differences,
    _tree_verdict,
    _verdict,
    compare,
    paired_difference,
)

module = importlib.import_module("scoreline.model_selection.trials")  # the package has a function of that name


@pytest.fixture(scope="module")
def cancer():
    """Every second row and ten columns, so that boosted trees are quick."""
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2, :10], y[::2]


@pytest.fixture(scope="module")
def found(cancer):
    return compare(*cancer, "roc_auc", solvers=["moments"], splits=3, alphas=(1e-2, 1e-4), random_state=3)


def test_intervals_are_those_of_the_docstring(found):
    best = found.baseline
    assert best.value == max(np.mean(c.values) for c in found.contenders if c.kind == BASELINE)
    assert best.difference is None
    s, ratio = found.splits, found.test_rows / found.train_rows
    assert found.methods == 2
    for c in found.contenders:
        if c is best:
            continue
        d = [a - b for a, b in zip(c.values, best.values, strict=True)]
        mean = sum(d) / s
        variance = sum((x - mean) ** 2 for x in d) / (s - 1)
        tail = 0.025 / (2 if c.kind == OURS else 1)
        reach = stats.t(s - 1).isf(tail) * np.sqrt((1 / s + ratio) * variance)
        assert c.difference == pytest.approx((mean, mean - reach, mean + reach))


@pytest.mark.slow
def test_logistic_regression_is_what_scikit_learn_gives(cancer, found):
    X, y = cancer
    rng = np.random.RandomState(3)
    plain = next(c for c in found.contenders if c.name == PLAIN)
    for split in range(found.splits):
        A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=rng)

        def auc(rows, labels, held, truth, alpha):
            scaler = StandardScaler().fit(rows)
            model = LogisticRegression(C=1.0 / (len(rows) * alpha), max_iter=1000).fit(scaler.transform(rows), labels)
            return roc_auc_score(truth, model.decision_function(scaler.transform(held)))

        folds = list(StratifiedKFold(5, shuffle=True, random_state=3 + split).split(A, a))
        means = [np.mean([auc(A[i], a[i], A[j], a[j], alpha) for i, j in folds]) for alpha in (1e-2, 1e-4)]
        alpha = (1e-2, 1e-4)[int(np.argmax(np.round(means, 12)))]  # roc_auc_score rounds: equal areas differ by 1e-16
        assert plain.alphas[split] == alpha
        assert plain.values[split] == pytest.approx(auc(A, a, B, b, alpha), abs=1e-9)


def test_every_model_is_trained_and_tested_on_the_same_rows(cancer, monkeypatch):
    calls_by_name = {}
    original = module.Trial.run

    def spy(trial, contender, part):
        rows = [part.X, part.X_test, part.y, part.y_test, *(rows for fold in part.folds for rows in fold)]
        calls_by_name.setdefault(contender.name, []).append(
            (*(each.tobytes() for each in rows), trial.random_state, trial.scaling, tuple(trial.grid))
        )
        return original(trial, contender, part)

    monkeypatch.setattr(module.Trial, "run", spy)
    compare(*cancer, "f1", solvers=["smoothed"], splits=2, alphas=(1e-2, 1e-3))
    assert len(calls_by_name) == 6
    assert len({tuple(calls) for calls in calls_by_name.values()}) == 1
    first, second = next(iter(calls_by_name.values()))
    assert first[:4] != second[:4]


@pytest.fixture(scope="module")
def nearly_ample():
    """Rows that are ample for amp, a hundred per feature, only if none is held out."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((550, 5))
    return X, (X[:, 0] + rng.logistic(0.0, 1.0, 550) > 1.5).astype(int)


@pytest.mark.slow
def test_methods_are_those_that_cross_validation_tries_on_all_rows(nearly_ample, monkeypatch):
    """On the 385 training rows of a split alone, solver="auto" would not take amp."""
    trained = []
    original = module.Trial.run

    def spy(trial, contender, part):
        model, decision = original(trial, contender, part)
        if contender.kind == OURS:
            trained.append((contender.solver, contender.risk, model.solver_, model.risk_))
        return model, decision

    monkeypatch.setattr(module.Trial, "run", spy)
    alphas = (1e-2, 1e-3)
    found = compare(*nearly_ample, "f1", solvers=(), splits=2, alphas=alphas)
    search = MeasureClassifierCV("f1", alphas=alphas, scaling="standard", random_state=0).fit(*nearly_ample)
    ours = [c for c in found.contenders if c.kind == OURS]
    assert [c.name for c in ours] == ["scoreline amp, hinge", "scoreline cost_search, logistic"]
    assert {c.risk for c in ours} == set(search.cv_results_["risk"].tolist())
    assert search.solver_ in [c.solver for c in ours]
    assert all(named == fitted for *named, solver, risk in trained for fitted in [[solver, risk]])


def test_a_sample_does_not_change_the_methods(nearly_ample):
    found = compare(*nearly_ample, "f1", solvers=(), splits=2, alphas=(1e-2,), max_rows=300)
    assert found.contenders[0].solver == "amp"


@pytest.mark.slow
def test_alphas_and_risks_are_those_of_the_cross_validated_classifier(cancer, monkeypatch):
    grids = []
    original = module.baselines.penalty_decisions

    def spy(X, y, held, alphas, *rest):
        grids.append(tuple(alphas))
        return original(X, y, held, alphas, *rest)

    searched = set()

    class Search(MeasureClassifierCV):
        def fit(self, *rows):
            searched.add(self.alphas)
            return super().fit(*rows)

    monkeypatch.setattr(module.baselines, "penalty_decisions", spy)
    monkeypatch.setattr(module, "MeasureClassifierCV", Search)
    found = compare(*cancer, "average_precision", splits=2)
    assert [c.risk for c in found.contenders if c.kind == OURS] == list(get_measure("average_precision").contenders)
    assert set(grids) == {ALPHAS}
    assert all(alpha in ALPHAS for c in found.contenders if c.kind == BASELINE for alpha in c.alphas)
    assert searched == {None}, "MeasureClassifierCV takes its own grid"


def test_the_same_seed_gives_the_same_values(cancer, found):
    again = compare(*cancer, "roc_auc", solvers=["moments"], splits=3, alphas=(1e-2, 1e-4), random_state=3)
    other = compare(*cancer, "roc_auc", solvers=["moments"], splits=3, alphas=(1e-2, 1e-4), random_state=4)
    assert [c.values for c in again.contenders] == [c.values for c in found.contenders]
    assert [c.values for c in other.contenders] != [c.values for c in found.contenders]


def verdict_of(found, *contenders):
    """Return the verdict on contenders given as (name, kind, values)."""
    made = [
        Contender(name, kind, values=list(values), seconds=[1.0] * len(values)) for name, kind, values in contenders
    ]
    _set_differences(made, 0.4)
    return made, *_verdict(found.measure, made), *_tree_verdict(made, 0.4)


@for_each(
    ("shift", "kind", "words"),
    [(0.0, "tie", "No clear difference"), (0.01, "pays", "pays here"), (-0.01, "loses", "does not pay")],
)
def test_verdicts(found, shift, kind, words):
    values = [0.7, 0.8, 0.75]
    ours = [v + shift for v in values]
    made, sentence, got, _, trees = verdict_of(found, ("scoreline a, b", OURS, ours), (PLAIN, BASELINE, values))
    assert got == kind
    assert words in sentence
    assert trees is None
    assert "corrected" not in sentence
    if kind == "tie":
        assert made[0].difference == (0.0, 0.0, 0.0)


def test_the_verdict_is_about_the_best_method(found):
    base = np.array([0.70, 0.80, 0.75, 0.72, 0.78])
    noise = np.array([0.01, -0.01, 0.0, 0.01, -0.01])
    made, sentence, kind, _, _ = verdict_of(
        found,
        ("scoreline first, a", OURS, base + noise),
        ("scoreline second, b", OURS, base + 0.06 + noise / 2),
        (PLAIN, BASELINE, base),
    )
    assert kind == "pays"
    assert "with scoreline second, b against" in sentence
    assert "corrected for choosing the best of 2 methods" in sentence
    assert made[1].difference == paired_difference(made[1].values, base, 0.4, 2)


def test_the_correction_makes_an_interval_wider(found):
    values, others = [0.8, 0.83, 0.79, 0.85], [0.77, 0.79, 0.78, 0.79]
    widths = [np.ptp(paired_difference(values, others, 0.4, m)[1:]) for m in (1, 2, 5)]
    assert widths == sorted(widths)
    assert widths[0] < widths[1]


@pytest.mark.slow
@for_each("methods", [1, 4])
def test_chance_rarely_makes_the_best_of_several_methods_differ(methods):
    """No method is better than the baseline; splits share rows, so that their differences are correlated."""
    trials, splits, ratio = 4000, 10, 0.3 / 0.7
    rng = np.random.default_rng(0)
    shared = ratio / (1.0 + ratio)  # correlation of two splits' differences, as Nadeau and Bengio assume
    d = np.sqrt(shared) * rng.standard_normal((trials, methods, 1))
    d = d + np.sqrt(1.0 - shared) * rng.standard_normal((trials, methods, splits))
    wrong, uncorrected = 0, 0
    for trial in d:
        best = trial[np.argmax(trial.mean(axis=1))]
        _, low, high = paired_difference(best, np.zeros(splits), ratio, methods)
        wrong += low > 0.0 or high < 0.0
        uncorrected += paired_difference(best, np.zeros(splits), ratio)[1] > 0.0
    error = 3.0 * np.sqrt(0.05 * 0.95 / trials)
    assert wrong / trials < 0.05 + error
    if methods > 1:
        assert uncorrected / trials > 0.05 + error, "the correction is needed"


@for_each(
    ("shift", "wins", "words"),
    [
        (0.1, True, "use them unless you need a linear model"),
        (0.0, False, "there is no clear difference to the linear model"),
        (-0.1, False, "the linear model is better here"),
    ],
)
def test_boosted_trees_have_a_sentence_of_their_own(found, shift, wins, words):
    base = np.array([0.70, 0.80, 0.75, 0.72, 0.78])
    noise = np.array([0.002, -0.002, 0.0, 0.001, -0.001])
    _, _, kind, sentence, trees_win = verdict_of(
        found,
        ("scoreline a, b", OURS, base + 0.05 + noise),
        (PLAIN, BASELINE, base),
        (BOOSTED, TREES, base + 0.05 + shift),
    )
    assert kind == "pays", "the trees do not change the verdict on linear models"
    assert trees_win is wins
    assert f"Boosted trees (HistGradientBoosting) reach {0.75 + 0.05 + shift:.4f} against 0.8000" in sentence
    assert sentence.endswith(f"{words}.")


@pytest.mark.slow
def test_boosted_trees_win_where_the_classes_are_rings(as_json, folder):
    X, y = make_gaussian_quantiles(n_samples=400, n_features=2, n_classes=2, random_state=0)
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X, y, strict=True)]
    (folder / "rings.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    given = (
        "compare",
        "rings.csv",
        "--label",
        "y",
        "--measure",
        "f1",
        "--splits",
        3,
        "--alphas",
        "1e-2",
        "--solvers",
        "auto",
    )
    found = as_json(*given, "--report", "r.html")
    assert found["trees_win"] is True
    assert found["kind"] in ("pays", "tie", "loses")
    assert found["contenders"][-1]["kind"] == TREES
    assert found["contenders"][-1]["alphas"] == []
    assert "Boosted trees" not in found["verdict"]
    assert found["tree_verdict"].startswith("Boosted trees (HistGradientBoosting) reach")
    assert "Boosted trees (HistGradientBoosting) reach" in (folder / "r.html").read_text()


def test_the_threshold_of_trees_is_tuned_for_count_based_measures_only(cancer):
    X, y = cancer
    ranking = baseline_model(BOOSTED, get_measure("roc_auc"), None, None, len(y), 0)
    assert isinstance(ranking, HistGradientBoostingClassifier)
    with suitable_threads(X):
        tuned = baseline_model(BOOSTED, get_measure("f1"), None, None, len(y), 0).fit(X, y == 1)
    np.testing.assert_array_equal(decision_values(tuned, X) >= 0.0, tuned.predict(X))


@for_each("features", [20, 1001])
def test_trees_are_left_out_for_many_sparse_features_and_that_is_said(features):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, features), density=0.1, format="csr", random_state=rng)
    y, notes = rng.integers(0, 2, 60), []
    found = compare(X, y, splits=2, alphas=(1e-2,), note=notes.append)
    assert (found.trees_win is None) == (features > 1000)
    assert [c.kind for c in found.contenders].count(TREES) == (features <= 1000)
    reason = "they need dense data, and there are 1,001 sparse features (at most 1,000 are converted)."
    assert notes == found.notes
    assert (notes == [f"Boosted trees are left out: {reason}"]) == (features > 1000)


@for_each("solvers", [None, ["stamp"]])
def test_slow_solvers_are_left_out_for_many_features_unless_named(solvers):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 1001), density=0.1, format="csr", random_state=rng)
    found = compare(X, rng.integers(0, 2, 60), "f1", solvers=solvers, splits=2, alphas=(1e-2,))
    ours = [c.solver for c in found.contenders if c.kind == OURS]
    line = "The solvers amp, stamp are left out: they are slow with 1,001 features."
    assert ours == (["cost_search"] if solvers is None else ["cost_search", "stamp"])
    assert (f"{line} Pass solvers=['amp', 'stamp'] to include them." in found.notes) == (solvers is None)


def test_a_tuned_threshold_is_judged_at_thresholds_of_other_folds():
    truth = np.array([True, True, False, False])
    shifted, mixed = np.array([5.0, 4.0, 3.0, 2.0]), np.array([1.0, -1.0, 1.0, -1.0])
    folds = [[mixed, shifted], [mixed, shifted]]
    f1 = get_measure("f1")
    means = module.baselines.mean_values(TUNED, f1, (1e-2, 1e-4), [truth, truth], folds)
    assert means[1e-4] == 1.0 > means[1e-2]


@pytest.mark.slow
def test_a_solver_that_fails_is_named_and_the_rest_goes_on(scoreline, as_json, folder):
    arguments = ("compare", "payments.csv", "--label", "outcome", "--measure", "mcc", "--solvers", "moments")
    code, out, err = scoreline(*arguments, "--splits", 2, "--alphas", "1e-3", "--report", "r.html")
    assert code == 0
    assert "moments" in err
    assert "failed" in out
    contenders = as_json(*arguments, "--splits", 2, "--alphas", "1e-3")["contenders"]
    failed = next(c for c in contenders if c["name"] == "scoreline moments")
    assert failed["values"] == []
    assert failed["value"] is None


def test_a_baseline_that_fails_on_one_split_is_not_the_best(cancer, monkeypatch):
    original, calls = module.Trial.run, []

    def sometimes(trial, contender, part):
        calls.append(contender.name)
        if contender.name == PLAIN and calls.count(PLAIN) == 2:
            raise ValueError("no luck")
        result = original(trial, contender, part)
        if contender.name == PLAIN:
            contender.values[-1] = 1.0
        return result

    monkeypatch.setattr(module.Trial, "run", sometimes)
    result = compare(*cancer, splits=3, alphas=(1e-3,))
    assert result.baseline.name != PLAIN
    assert next(c for c in result.contenders if c.name == PLAIN).difference is None


@for_each(
    ("kind", "why"),
    [
        (BASELINE, "every baseline failed: logistic regression: no luck"),
        (OURS, "every scoreline method failed: scoreline smoothed, roc_area: no luck"),
    ],
)
def test_all_models_of_a_kind_fail(cancer, monkeypatch, kind, why):
    original = module.Trial.run

    def never(trial, contender, part):
        if contender.kind == kind:
            raise ValueError("no luck")
        return original(trial, contender, part)

    with monkeypatch.context() as patch:
        patch.setattr(module.Trial, "run", never)
        with pytest.raises(ValueError, match=why):
            compare(*cancer, splits=2, alphas=(1e-3,))


@for_each("sparse", [False, True])
def test_a_mapped_folder_is_compared_like_memory(cancer, tmp_path, sparse):
    X, y = cancer
    X = sp.csr_matrix(np.where(X > np.median(X, axis=0), X, 0.0)) if sparse else X
    mapped = open_mapped(convert((X, y), tmp_path / ("sparse" if sparse else "dense")))
    for rows in (200_000, 200):
        one = compare(X, y, splits=2, alphas=(1e-3,), max_rows=rows)
        two = compare(mapped.X, mapped.y, splits=2, alphas=(1e-3,), max_rows=rows)
        assert one.train_rows + one.test_rows == min(rows, len(y))
        for a, b in zip(one.contenders, two.contenders, strict=True):
            assert a.values == pytest.approx(b.values, abs=1e-6)


HARD = ["few", "one column", "ten rows", "all equal"]


@pytest.mark.slow
@for_each(("measure", "case"), list(product(["roc_auc", "f1", "average_precision", "mcc"], HARD)))
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


def test_too_few_rows_in_the_sample():
    with pytest.raises(ValueError, match="got 1 among the max_rows=100 sampled"):
        compare(np.zeros((569, 2)), np.arange(569) < 5, max_rows=100)


@for_each(
    "wrong",
    [
        {"test_share": 1.0},
        {"alphas": ()},
        {"alphas": (1e-2, -1.0)},
        {"alphas": (1e-2, 1e-2)},
        {"max_rows": 3},
        {"max_time": 0.0},
        {"splits": 1},
    ],
)
def test_wrong_arguments(cancer, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        compare(*cancer, **wrong)


@pytest.mark.slow
@for_each(
    ("measure", "extra"),
    [
        ("f1", ()),
        ("average_precision", ()),
        ("roc_auc", ("--solvers", "moments,lbfgs")),
        ("accuracy", ("--seed", "7", "--alphas", "0.0123456789,0.0123456788")),
        ("fbeta", ("--measure-param", "beta=0.3", "--scaling", "maxabs", "--drop=-x")),
    ],
)
def test_the_train_command_trains_the_method_of_the_verdict(measure, extra, as_json, folder, monkeypatch):
    """The printed command gives the coefficients of compare's classifier, fitted on all rows with the same alpha.

    That holds whichever method is the best one.
    """
    compared = []

    def recording(*args, **options):
        compared.append((args[:2], compare(*args, **options)))
        return compared[0][1]

    monkeypatch.setattr("scoreline.cli.compare.compare", recording)
    lines = (folder / "payments.csv").read_text().splitlines()
    (folder / "x.csv").write_text("\n".join(f"{line},{'-x' if k == 0 else k}" for k, line in enumerate(lines)) + "\n")
    given = ("x.csv", "--label", "outcome", "--positive", "fraud", "--measure", measure, "--splits", "2", *extra)
    if "--alphas" not in extra:
        given += ("--alphas", "1e-2,1e-3")
    command = shlex.split(as_json("compare", *given)["train"])
    trained = as_json(*command[1:])
    (X, y), found = compared[0]
    again = clone(found.classifier).set_params(alpha=trained["alpha"]).fit(X, y)
    model = load_model("model.npz")
    np.testing.assert_array_equal(model.coef_, again.coef_)
    np.testing.assert_array_equal(model.intercept_, again.intercept_)
    assert trained["alpha"] in found.best.alphas
    options, _ = parse(["compare", *given])
    rest = [c for c in found.contenders if c.kind != OURS]
    for contender in found.contenders[: -len(rest)]:
        words = shlex.split(train_command(options, replace(found, contenders=[contender, *rest]), X.shape))
        trained = as_json(*words[1:])
        assert (trained["solver"], trained["risk"]) == (contender.solver, contender.risk)


def test_a_sample_is_announced(scoreline, as_json, folder):
    given = ("compare", "payments.csv", "--label", "outcome", "--splits", 2, "--alphas", "1e-2", "--max-rows", 200)
    code, out, err = scoreline(*given, "--report", "r.html")
    line = "Compared on a random sample of 200 of the 300 rows: --max-rows 200 is the limit."
    assert code == 0
    assert line in err.splitlines()
    assert "payments.csv: 300 rows (200 used)" in out
    page = (folder / "r.html").read_text()
    assert line in page
    assert "200 of 300" in page
    found = as_json(*given)
    assert (found["rows"], found["rows_used"], found["notes"]) == (300, 200, [line])
    full = as_json(*given[:-1], 300)
    assert (full["rows"], full["rows_used"], full["notes"]) == (300, 300, [])


def test_the_time_limit_ends_the_splits(cancer, monkeypatch):
    clock = iter(np.arange(1e6))
    monkeypatch.setattr(module, "_now", lambda: float(next(clock)))
    messages = []
    monkeypatch.setattr(module, "_seconds_per_split", lambda *_: 0.0)
    few = compare(*cancer, splits=9, alphas=(1e-2,), max_time=1.0, note=messages.append)
    assert (few.splits, few.splits_planned) == (2, 9)
    assert messages == few.notes == ["Only 2 of 9 splits were run, because of max_time=1."]
    assert all(len(c.values) == 2 for c in few.contenders)
    clock = iter(np.arange(1e6))
    assert compare(*cancer, splits=3, alphas=(1e-2,), max_time=1e5).splits == 3


@for_each(
    ("seconds", "words"), [(0.1, ""), (10.0, "about 20 seconds"), (75.0, "about 3 minutes"), (1e4, "about 5.6 hours")]
)
def test_the_estimated_time_is_told_beforehand(cancer, monkeypatch, seconds, words):
    events = []
    monkeypatch.setattr(module, "_seconds_per_split", lambda *_: seconds)
    compare(*cancer, splits=2, alphas=(1e-2,), note=events.append, progress=lambda done, *_: events.append(done))
    messages = [k for k, event in enumerate(events) if isinstance(event, str)]
    assert [events[k] for k in messages] == ([f"This will take {words}: 2 splits of 4 models."] if words else [])
    assert not any(events[:1] + events[: max(messages, default=0)][:1]), "it comes before the first fit"


def test_the_estimate_follows_the_number_of_rows_models_and_alphas(monkeypatch):
    """With fits of a millisecond per row, plus a constant."""
    monkeypatch.setattr(module.Trial, "seconds", lambda trial, contender, part: 0.5 + 1e-3 * len(part.y))
    X, truth = np.zeros((10_000, 3)), np.arange(10_000) % 2 == 0
    fit = 0.5 + 7.0
    contenders = [Contender("scoreline a, b", OURS), Contender(PLAIN, BASELINE), Contender(BOOSTED, TREES)]
    one = module.Trial(get_measure("f1"), [1e-2], None, 0)
    assert module._seconds_per_split(one, contenders, X, truth, 0.3) == pytest.approx(3 * fit)
    more = module._seconds_per_split(replace(one, alphas=[1e-2, 1e-3]), contenders, X, truth, 0.3)
    searches = 2 * module.WARM_START * 4.0 * 2  # five folds of four fifths of the rows, for two models
    assert more == pytest.approx((3 + searches + 1) * fit)


class Lines(io.StringIO):
    """Standard error that tells when a number of lines have been printed."""

    def __init__(self, expected):
        super().__init__()
        self.expected, self.complete = expected, threading.Event()

    def write(self, text):
        done = super().write(text)
        if self.getvalue().count("\n") >= self.expected:
            self.complete.set()
        return done


def ticking():
    return [thread for thread in threading.enumerate() if thread.name == "scoreline_progress"]


def test_progress_goes_on_within_a_long_fit(monkeypatch):
    monkeypatch.setattr(cli_output, "PROGRESS_SECONDS", 0.001)
    lines = Lines(3)
    monkeypatch.setattr("sys.stderr", lines)
    with cli_output.Output().progress("comparing", repeat=True) as progress:
        progress.update("boosted trees", 3, 20)
        assert lines.complete.wait(60.0), "the fit reports nothing itself"
    assert not ticking()
    printed = lines.getvalue().splitlines()
    assert all(line.startswith("comparing: boosted trees (3 of 20), ") and line.endswith(" s") for line in printed)


@for_each("error", [KeyboardInterrupt, ValueError])
def test_the_ticker_ends_with_the_work(monkeypatch, error):
    monkeypatch.setattr(cli_output, "PROGRESS_SECONDS", 0.001)
    monkeypatch.setattr("sys.stderr", Lines(1))

    def work():
        with cli_output.Output().progress("comparing", repeat=True) as progress:
            progress.update("boosted trees", 3, 20)
            assert ticking()
            raise error

    with pytest.raises(error):
        work()
    assert not ticking()


def test_quiet_has_no_ticker_and_no_notes(monkeypatch, scoreline):
    monkeypatch.setattr(cli_output, "PROGRESS_SECONDS", 0.001)
    monkeypatch.setattr(module, "_seconds_per_split", lambda *_: 1000.0)
    given = ("compare", "payments.csv", "--label", "outcome", "--splits", 2, "--alphas", "1e-2", "--max-rows", 200)
    assert scoreline(*given, "--quiet")[2] == ""
    code, out, err = scoreline(*given, "--json")
    assert code == 0
    assert out.startswith("{")
    assert "This will take about 34 minutes" in err


@pytest.mark.slow
@for_each("scaling", ["robust", "quantile"])
def test_scaling_for_heavy_tails_is_that_of_all_linear_models(scaling):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 3))
    y = Z @ [1.0, -1.0, 0.5] + rng.logistic(size=300) > 1.0
    X = np.exp(3.0 * Z)
    found = {kind: compare(X, y, splits=2, alphas=[1e-2, 1e-3], scaling=kind) for kind in ("standard", scaling)}
    for contender in ("scoreline", "logistic regression"):
        plain, mapped = (
            next(each.value for each in found[kind].contenders if each.name.startswith(contender))
            for kind in ("standard", scaling)
        )
        assert mapped > plain + 0.02  # 0.80 to 0.86 with quantile, and 0.83 with robust


@pytest.mark.slow
def test_the_grid_of_the_baselines_is_widened_at_its_edge():
    """A feature of size 1e-3 compared with one of size 1 needs a penalty far below 1e-6 where nothing is scaled."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 2))
    y = Z @ [1.0, 2.0] + 0.3 * rng.standard_normal(400) > 0.0
    found = compare(Z * [1.0, 1e-3], y, splits=2, scaling=None)
    baseline = next(each for each in found.contenders if each.name == "logistic regression")
    assert min(baseline.alphas) < 1e-6


@pytest.mark.slow
def test_a_cost_that_folds_choose_is_that_of_the_judged_model():
    rng = np.random.default_rng(0)
    n, p = 300, 1000
    y = rng.random(n) < 0.2
    X = sp.csr_array(
        sp.random_array((n, p), density=0.01, random_state=rng) + sp.csr_array((y[:, None] * 0.5) * (np.arange(p) < 5))
    )
    found = compare(X, y, "gmean", splits=2, alphas=(1e-1, 1e-2))
    ours = next(each for each in found.contenders if each.solver == "cost_search")
    assert len(ours.costs) == len(ours.alphas) == 2
    options = argparse.Namespace(
        file="d.svm", label=None, positive=None, categories=(), drop=(), missing=(), impute=None, min_category_rows=None,
        separator=None, measure="gmean", indicators=None, zero_based=None, measure_param=[], scaling="auto", seed=0,
    )  # fmt: skip
    rest = [each for each in found.contenders if each.kind != OURS]
    assert "--alpha auto" in train_command(options, replace(found, contenders=[ours, *rest]), (n, p))
