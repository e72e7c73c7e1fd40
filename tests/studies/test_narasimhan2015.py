"""Row by row beside batch methods: times to a level, and claims that turn with the numbers."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import dump_svmlight_file

from scoreline import MeasureClassifier, kernels
from studies import narasimhan2015
from studies.datasets import COTTONWOOD, Datasets, Split
from studies.mini_batch import buffers, one_pass_mini_batch
from studies.narasimhan2015 import (
    DEFAULTS,
    FIGURES,
    METHODS,
    PRINTED,
    Narasimhan2015,
    claims,
    compared,
    methods_for,
    regret_claims,
    seconds_at,
    uncut,
)
from studies.regret import by_epoch, gaps

SPADE, STAMP, AHEAD, QUICK, DIGITS, STAMP_QUICK, SPADE_PLANES, STAMP_PLANES, PLANES, MINI, AMP, POOR = range(12)
OURS = ("spade, printed", "stamp, printed", "spade", "stamp")


def cell(measure, ours=0.85, others=0.8, planes=0.78, mini=0.7, at=1.0, other_at=70.0, planes_at=80.0, plain=0.1):
    """Return a cell in which ours is at 0.5, then at its end after `at` seconds, and others arrive after `other_at`."""
    runs = {}
    for method in methods_for(measure):
        end, seconds = (ours, at) if method in OURS else (others, other_at)
        if method in ("bundle", "bundle_ocas"):
            end, seconds = planes, planes_at
        end = mini if method == "1pmb" else end
        without = plain if method == "plugin, lbfgs" else end
        runs[method] = {
            "curve": [[0.1 * seconds, 0.5, 0.5], [seconds, end, without]], "status": "converged",
        }  # fmt: skip
    return {"rows": 1000, "positives": 20, "chosen": {}, "steps": {}, "splits": [runs, runs]}


def good(**change):
    return {f"{name}, {m}": cell(m, **change) for name in ("ijcnn1", "mnist") for m in FIGURES}


def verdicts(results, full=True):
    return [claim.holds for claim in claims(results, full)]


def test_methods():
    assert methods_for("qmean") == [
        "spade, printed", "spade", "plugin, lbfgs", "bundle", "cost_search", "plugin", "bundle_ocas",
    ]  # fmt: skip
    assert methods_for("f1")[:2] == ["stamp, printed", "stamp"]
    assert set(methods_for("f1")) == set(METHODS) - {"spade", "spade, printed"}
    assert "1pmb" not in methods_for("jaccard")


def test_all_claims_hold():
    assert verdicts(good()) == [True] * 12


CHANGES = [
    ((SPADE, STAMP, AHEAD, QUICK, DIGITS, STAMP_QUICK, SPADE_PLANES, STAMP_PLANES), {"ours": 0.75}),
    ((AHEAD,), {"ours": 0.81}),
    ((QUICK, STAMP_QUICK, DIGITS), {"other_at": 2.0}),
    ((DIGITS,), {"other_at": 50.0}),
    ((PLANES,), {"planes": 0.82}),
    ((SPADE_PLANES,), {"planes": 0.8, "planes_at": 9.0}),
    ((SPADE_PLANES, STAMP_PLANES), {"planes": 0.8, "planes_at": 2.0}),
    ((MINI,), {"mini": 0.845, "other_at": 1.5}),
    ((POOR,), {"plain": 0.82}),
]


def test_claims_turn_with_their_numbers():
    for which, change in CHANGES:
        found = claims(good(**change), True)
        for k in which:
            assert found[k].holds is False, (change, found[k])
            assert found[k].reason, change
        for k in {SPADE, STAMP} - set(which):
            assert found[k].holds is True, change
            assert not found[k].reason, change


def test_stamp_is_compared_with_amp_where_both_have_a_threshold():
    for method, holds in (("stamp, printed", False), ("stamp", True)):
        results = good()
        for key, each in results.items():
            if key.endswith("f1"):
                for runs in each["splits"]:
                    runs[method] = {"curve": [[1.0, 0.75, 0.85]], "status": "converged"}
        found = claims(results, True)
        assert found[AMP].holds is holds, "the defaults do not decide about what is printed"
        assert "ijcnn1, f1 -0.050" in (found[AMP].defaults if holds else found[AMP].reason)
        assert found[STAMP].holds is True


def test_small_problems_are_not_judged():
    assert verdicts(good(), full=False) == [None] * 12


def test_only_sets_of_the_paper_are_judged():
    results = {f"made, {m}": cell(m, ours=0.1) for m in FIGURES}
    found = claims(results, True)
    assert [claim.holds for claim in found[:AMP]] == [None] * AMP
    assert found[SPADE].defaults.startswith("0 of 2")
    assert verdicts(results | good())[SPADE] is True


def test_times_to_the_level():
    assert seconds_at([[1.0, 0.5], [2.0, 0.8], [3.0, 0.7]], 0.75) == 2.0
    assert seconds_at([[1.0, 0.5]], 0.75) is None
    pair = compared(cell("jaccard", ours=0.795, planes=0.7), PRINTED)
    # With a threshold plug-in is at 0.8, which is what it is judged by.
    assert (pair["mine"], pair["level"], pair["within"]) == ("stamp, printed", pytest.approx(0.79), True)
    assert pair["ahead"] == pytest.approx(-0.005)
    assert pair["ratio"] == pytest.approx(70.0)
    assert pair["seconds"]["bundle"] is None
    assert pair["planes"] == pytest.approx(80.0)  # to a level of their own, since they end below the other one
    assert pair["rivals"] == pytest.approx(-0.005)
    assert set(compared(cell("f1"), DEFAULTS)["ends"]) == {"stamp", "amp", "cost_search", "plugin", "bundle_ocas"}
    stuck = cell("f1")
    for runs in stuck["splits"]:
        runs["bundle"]["curve"] = [[1.0, 0.1, 0.1], [2.0, 0.1, 0.1]]
    assert compared(stuck, PRINTED)["planes"] is None  # nothing to reach
    late = compared(cell("f1", ours=0.7), PRINTED)
    assert (late["within"], late["ratio"], late["planes"]) == (False, 0.0, 0.0)
    late["ends"]["stamp, printed"], late["seconds"]["stamp, printed"] = 0.7, 0.5  # there once, but not at its end
    shown = [narasimhan2015._seconds(late, m) for m in ("stamp, printed", "plugin, lbfgs", "spade")]
    assert shown == ["0.5*", "70", "-"]
    assert uncut(cell("f1", plain=0.3)) == pytest.approx(0.3)
    assert narasimhan2015._middle([1.0, None, 3.0]) == 3.0
    assert narasimhan2015._middle([1.0, None, None]) is None


@pytest.mark.slow
def test_a_cell_is_plain_and_ours_has_a_point_for_each_pass(monkeypatch, tmp_path):
    monkeypatch.setenv("SCORELINE_CACHE", str(tmp_path))
    study = Narasimhan2015(Datasets(tmp_path), quick=True)
    found = study._race("made", "f1")
    (runs,) = found["splits"]
    assert list(runs) == methods_for("f1")
    for method in ("stamp", "stamp, printed", "1pmb"):
        curve = runs[method]["curve"]
        assert narasimhan2015.PASSES <= len(curve) <= 200
        assert curve == sorted(curve, key=lambda point: point[0])
    assert len(runs["amp"]["curve"]) == len(runs["plugin, lbfgs"]["curve"]) == 1
    assert uncut(found) < runs["plugin, lbfgs"]["curve"][-1][1]
    findings = study.findings({"made, f1": found})
    assert "PPI" in findings.missing
    assert [len(table.rows) for table in findings.tables] == [1, 1, 2, 2]
    assert found["steps"]["stamp, printed"].keys() == {"1", "100"}


def test_all_methods_choose_among_the_same_alphas_on_five_splits(monkeypatch, tmp_path):
    calls = {}

    def fit(X, y, method, measure, cap, alpha, eta=1.0):
        calls.setdefault(method, []).append((X.shape[0], alpha, eta))
        return [(0.0, np.zeros(4))], "max_iter"

    rng = np.random.default_rng(0)
    y = np.where(np.arange(100) % 5 == 0, 1, -1)
    rows = Split(rng.random((100, 3)), y, rng.random((100, 3)), y)
    monkeypatch.setattr(narasimhan2015, "_fit", fit)
    monkeypatch.setattr(narasimhan2015, "REPEATS", 1)
    monkeypatch.setattr(Narasimhan2015, "_split", lambda self, name, k: rows)
    found = Narasimhan2015(Datasets(tmp_path))._race("letter", "f1")
    assert len(found["splits"]) == 5
    for method, own in calls.items():
        choices = [(alpha, eta) for n, alpha, eta in own if n == 80]
        assert {alpha for alpha, _ in choices} == {1e-4, 1e-6}, method
        assert len(choices) == len(set(choices)), method


@pytest.mark.parametrize("eta", [1.0, 9.0])
def test_steps_of_any_length_are_those_of_the_algorithm(eta, monkeypatch):
    """SPADE for min(TPR, TNR) with steps of eta / sqrt(t), row by row, as algorithm 1 has it."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.4, 1, -1)
    X = rng.standard_normal((60, 3)) + 0.5 * y[:, None]
    monkeypatch.setattr(
        kernels.shuffle, "shuffled", lambda first, n, seed: np.arange(first, first + n, dtype=np.uint64)
    )
    monkeypatch.setattr(narasimhan2015, "PASSES", 1)
    points, _ = narasimhan2015._fit(X, y, "spade, printed", "min_tpr_tnr", 60.0, alpha=0.5, eta=eta)
    w, mean, duals, counts = np.zeros(4), np.zeros(4), np.array([0.5, 0.5]), np.zeros(2)
    for t, (x, sign) in enumerate(zip(np.column_stack([X, np.ones(60)]), y, strict=True), start=1):
        side = 0 if sign > 0 else 1
        counts[side] += 1.0
        share, margin = (counts[side] + 1.0) / (t + 2.0), sign * (x @ w)
        if margin < 1.0:
            w = w + eta / math.sqrt(t) * duals[side] / share * sign * x
            w *= min(1.0, math.sqrt(2.0 / 0.5) / np.linalg.norm(w))
        duals[side] -= min(1.0, margin) / share / math.sqrt(t)
        first = np.clip(0.5 * (1.0 + duals[0] - duals[1]), 0.0, 1.0)
        duals, mean = np.array([first, 1.0 - first]), mean + w / 60.0
    np.testing.assert_allclose(points[-1][1], mean, rtol=1e-9)


# ---- the sets, and 1PMB


@pytest.mark.filterwarnings("ignore:.*is known with")
def test_cover_type_4_is_found_by_its_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (40, 54)).astype(float)
    X[:, 0] = np.arange(1, 41)
    types = np.where(np.arange(40) % 2 == 0, 1, -1)
    few = np.array([3, 8, 21])
    rest = np.flatnonzero(types > 0)[5:9]
    dump_svmlight_file(sparse.csr_matrix(X), types, str(tmp_path / "covtype.svm"), zero_based=False)
    ten = np.concatenate([X[rest][:, :10], X[few][:, :10]])
    dump_svmlight_file(
        sparse.csr_matrix(ten),
        np.repeat([-1, 1], [len(rest), len(few)]),
        str(tmp_path / "cover-4v2.svm"),
        zero_based=False,
    )
    data = Datasets(tmp_path)
    assert data.has(COTTONWOOD)
    found, y = data.raw(COTTONWOOD)
    np.testing.assert_array_equal(np.flatnonzero(y > 0), few)
    np.testing.assert_array_equal(found.toarray(), X)
    dump_svmlight_file(
        sparse.csr_matrix(ten + 100.0),
        np.repeat([-1, 1], [len(rest), len(few)]),
        str(tmp_path / "cover-4v2.svm"),
        zero_based=False,
    )
    with pytest.raises(ValueError, match="covtype has 0 rows that match the 3 positives of cover-4v2"):
        Datasets(tmp_path).raw(COTTONWOOD)


def test_random_splits_differ(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(100) < 0.3, 1, -1)
    dump_svmlight_file(sparse.csr_matrix(rng.random((100, 3))), y, str(tmp_path / "own.svm"), zero_based=False)
    first, second = (Datasets(tmp_path).random_split("own", k, 0.3) for k in range(2))
    assert (first.X.shape, first.X_test.shape) == ((70, 3), (30, 3))
    assert np.abs(first.X.toarray()).max() == 1.0
    assert not np.array_equal(first.y, second.y)


def test_mini_batches():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1000) < 0.1, 1, -1)
    X = rng.standard_normal((1000, 4)) + (y > 0)[:, None]
    observed = [rows for rows, _ in buffers(y, 100, rng)]
    assert len(observed) == 10
    np.testing.assert_array_equal(np.sort(np.concatenate(observed)), np.arange(1000))
    assert all((y[rows[:positive]] > 0).all() for rows, positive in buffers(y, 100, rng))
    points, status = one_pass_mini_batch(X, y, "f1", alpha=1e-4, eta=1.0, passes=20, cap=math.inf, seed=0, size=100)
    assert (len(points), status) == (20, "max_iter")
    scores = X @ points[-1][1][:-1] + points[-1][1][-1]
    assert np.mean(scores[y > 0]) > np.mean(scores[y < 0])
    assert one_pass_mini_batch(X, y, "f1", alpha=1e-4, eta=1.0, passes=20, cap=0.0, seed=0)[1] == "max_time"


# ---- theorem 4 with its constants


def rewards(X, y, w):
    """Return P and N: the mean of min(1, y w'x) over either class."""
    reward = np.minimum(1.0, y * (X @ w))
    return float(reward[y > 0].mean()), float(reward[y < 0].mean())


def test_theorem_4_with_its_constants():
    """One pass of SPADE with steps of 1/sqrt(t) over T independent rows is as near to the optimum as appendix B says.

    Rows come from a finite distribution, so P and N are exact. L_r is the largest |x|, R_W the radius, B_r the largest reward,
    1/min(p, 1 - p) in front; min(TPR, TNR) has L = 1 and delta(e) = e.
    """
    rng = np.random.default_rng(0)
    y = np.where(np.arange(400) % 2 == 0, 1, -1)  # p = 1/2
    X = rng.standard_normal((400, 3)) + 0.8 * y[:, None]
    X /= np.abs(np.column_stack([X, np.ones(400)])).max() * 2.0
    rows = np.column_stack([X, np.ones(400)])  # the constant feature is one of the coordinates
    longest, radius = float(np.linalg.norm(rows, axis=1).max()), 2.0
    best = max(
        -minimize(lambda w: -min(rewards(rows, y, w)), start, method="SLSQP",
                  constraints={"type": "ineq", "fun": lambda w: radius**2 - w @ w}).fun
        for start in 0.5 * rng.standard_normal((10, 4))
    )  # fmt: skip
    gaps, bounds = [], []
    for T in (10_000, 400_000):
        chosen = rng.integers(0, 400, T)
        model = MeasureClassifier(
            "min_tpr_tnr", solver="spade", alpha=2.0 / radius**2, threshold="none", random_state=0,
            solver_params={"step": "paper", "passes": 1},
        ).fit(X[chosen], y[chosen])  # fmt: skip
        w = np.append(model.coef_, model.trained_intercept_)
        largest, confidence = 2.0 * (1.0 + longest * radius), math.log(1.0 / 0.05)
        bound = 2.0 * math.sqrt(2.0 * largest**2 / T * confidence)  # delta(e) = e, and L = 1: two terms are the same
        bound += (1.0 + 4.0 * largest**2 + (2.0 * longest) ** 2 + radius**2) / (2.0 * math.sqrt(T))
        gaps.append(best - min(rewards(rows, y, w)))
        bounds.append(bound)
    assert all(gap <= bound for gap, bound in zip(gaps, bounds, strict=True)), (gaps, bounds)
    assert bounds[-1] < best - min(rewards(rows, y, np.zeros(4))), "the bound says something for so many rows"
    assert gaps[-1] <= 0.5 * gaps[0] + 1e-3, "and the gap falls with the rows"


def test_regret():
    rows = [100, 1000, 10_000, 100_000]
    for power, holds in ((-0.5, True), (-0.1, False)):
        falls = [0.5 * n**power for n in rows]
        curves = {"rows": rows, "epochs": rows, "spade": falls, "algorithm 3": falls, "stamp": [1.0] * 4}
        found = regret_claims(curves, True)
        assert [claim.holds for claim in found] == [holds] * 2
    for measure in ("min_tpr_tnr", "f1"):
        early, late = gaps(measure, (300, 10_000), 3)
        assert 0.0 <= late < early, "nothing is better than the optimum of the ball"
    observed, distances = by_epoch(7, 3)
    assert observed[:3] == [200, 600, 1400]
    assert 0.0 <= distances[-1] < 0.2 * distances[0]
