"""Growing batches: passes to a level, and claims that turn with the numbers."""

import numpy as np

from studies import friedlander2012
from studies.datasets import Datasets
from studies.friedlander2012 import LEVELS, METHODS, SHRINKS, STOCHASTIC, Friedlander2012, claims
from studies.stochastic import sgd, stochastic

EARLY, CARELESS, RATE, LATE, GROWS, BETTER, EXACT = range(7)


def run(to, error=1.0, passes=None, skipped=(0.1, 0.5)):
    last = to[-1] if passes is None else passes
    return {"to": list(to), "to_error": error, "passes": last, "end": 1e-7, "skipped": list(skipped), "curve": []}


def good():
    """Return results in which all claims hold: a large sparse set, and a dense one that decides about little."""
    runs = {
        "lbfgs": run((5.0, 9.0, 30.0, 50.0), error=5.0), "hybrid, paper": run((1.0, 2.0, 12.0, 30.0), error=0.1),
        "shrink, sum": run((1.1, 2.0, 10.0, 20.0)), "shrink, path": run((1.1, 2.0, 9.0, 18.0), skipped=(0.1, 0.6)),
        "hybrid": run((0.1, 0.2, 3.0, 6.0)), "stochastic, 0.1": run((None, None, None, None)),
        "stochastic, 10": run((None, None, None, None)), "stochastic, 1": run((None, None, None, None)),
        "stochastic, 0.01": run((0.2, 1.0, None, None)), "stochastic, 0.001": run((8.0, 20.0, None, None)),
    }  # fmt: skip
    shape = {"same": dict.fromkeys(SHRINKS, True), "features": 3, "runs": runs}
    return {"some, squared_hinge": {**shape, "rows": 9000, "density": 0.01}}


def verdicts(results, full=True):
    return [claim.holds for claim in claims(results, full)]


def test_all_claims_hold():
    assert verdicts(good()) == [True] * 7
    small = good()
    small["some, squared_hinge"]["rows"] = 100
    assert verdicts(small) == [None, None, True, None, None, None, True], "the paper's set is large"
    dense = good()
    dense["some, squared_hinge"]["density"] = 1.0
    assert verdicts(dense) == verdicts(small)


def test_a_set_of_four_thousand_rows_is_large():
    results = good()
    results["some, squared_hinge"]["rows"] = 4143  # farm-ads
    assert verdicts(results) == [True] * 7
    for method in STOCHASTIC:
        results["some, squared_hinge"]["runs"][method]["to"] = [None] * 4
    assert verdicts(results)[EARLY] is False


CHANGES = [
    (EARLY, "stochastic, 0.01", {"to": [1.5, 2.0, None, None]}),
    (EARLY, "stochastic, 0.01", {"to": [None, None, None, None]}),
    (RATE, "shrink, sum", {"to": [1.1, 2.0, 10.0, 40.0]}),
    (LATE, "shrink, sum", {"to": [1.1, 2.0, 10.0, 31.0]}),
    (LATE, "stochastic, 0.01", {"to": [0.2, 1.0, 2.0, 3.0]}),
    (GROWS, "shrink, sum", {"skipped": [0.5, 0.1]}),
    (BETTER, "shrink, path", {"passes": 21.0}),
]


def test_a_claim_turns_with_its_numbers():
    for which, method, change in CHANGES:
        results = good()
        results["some, squared_hinge"]["runs"][method] |= change
        assert verdicts(results)[which] is False, (which, method, change)
        assert "some, squared_hinge (9,000 x 3)" in claims(results, True)[which].reason, (which, method, change)


def test_a_step_that_needs_no_care():
    results = good()
    for method in STOCHASTIC:
        results["some, squared_hinge"]["runs"][method]["to"][0] = 0.1
    assert verdicts(results)[CARELESS] is False


def test_small_problems_judge_only_what_is_proved():
    results = good()
    assert verdicts(results, full=False) == [None] * 6 + [True]
    results["some, squared_hinge"]["same"][SHRINKS[0]] = False
    assert verdicts(results, full=False)[EXACT] is False


def test_one_that_never_arrives_is_behind():
    results = good()
    results["some, squared_hinge"]["runs"]["lbfgs"]["to"][-1] = None
    assert [verdicts(results)[k] for k in (RATE, LATE)] == [None, True]  # no ratio to judge; skipping arrives alone
    results["some, squared_hinge"]["runs"]["shrink, sum"]["to"][-1] = None
    assert verdicts(results)[LATE] is False


def test_stochastic_steps_are_along_the_gradient():
    x, alpha, step = np.array([[0.3, -0.2]]), 0.1, 0.25
    slopes = {"squared_hinge": lambda m: -max(0.0, 1.0 - m), "logistic": lambda m: -1.0 / (1.0 + np.exp(m))}
    for risk, slope in slopes.items():
        model, w = sgd(risk, alpha, step), np.zeros(2)
        for _ in range(3):
            model.partial_fit(x, [1], classes=[-1, 1])
            w = w - step * (alpha * w + slope(float(x[0] @ w)) * x[0])
        # scikit-learn scales by 1 - step alpha, and adds its gradient at the same w.
        np.testing.assert_allclose(model.coef_.ravel(), w, rtol=1e-12)


def test_stochastic_runs_are_looked_at():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(512) < 0.5, 1, -1)
    X = rng.standard_normal((512, 3)) + y[:, None]
    observed = []
    stochastic(X, y, "squared_hinge", 1e-4, 0.01, lambda passes, w: observed.append((passes, w.copy())) is None)
    assert [passes for passes, _ in observed[:6]] == [2 / 256, 2 / 64, 2 / 16, 2 / 4, 2.0, 4.0]
    assert observed[-1][0] == 60.0
    assert np.mean(np.sign(X @ observed[-1][1]) == y) > 0.9
    observed.clear()
    stochastic(X, y, "logistic", 1e-4, 0.01, lambda passes, w: observed.append(passes))
    assert observed == [2 / 256], "a run that diverges ends"


def test_passes_are_those_from_which_on_it_stays_at_a_level():
    trace = [[0.5, 1.5, 0.3, 0.0], [1.0, 1.05, 0.2, 0.0], [2.0, 1.2, 0.1, 0.4], [4.0, 1.0 + 1e-5, 0.1, 0.6]]
    found = friedlander2012._summary(trace, 1.0, 0.1)
    assert found["to"] == [4.0, 4.0, 4.0, None]
    assert found["to_error"] == 2.0
    assert found["skipped"] == [0.0, 0.6]
    long = [[float(k), 1.0 + 1.0 / (k + 0.5), 0.1, 0.0] for k in range(2000)]
    found = friedlander2012._summary(long, 1.0, 0.1)
    assert len(found["curve"]) <= 200
    assert (found["curve"][0], found["curve"][-1]) == (long[0], long[-1])
    assert found["to"][1] == 100.0  # of all iterations, not of those that are kept


def test_skipping_rows_changes_passes_only(monkeypatch, tmp_path):
    monkeypatch.setenv("SCORELINE_CACHE", str(tmp_path))
    study = Friedlander2012(Datasets(tmp_path), quick=True)
    cell = study._race("made", "squared_hinge")
    assert cell["same"] == dict.fromkeys(SHRINKS, True)
    assert set(cell["runs"]) == set(METHODS) | set(STOCHASTIC)
    assert cell["density"] == 1.0
    ends = {method: run["iterations"] for method, run in cell["runs"].items()}
    assert ends["hybrid, paper"] == ends["shrink, sum"] == ends["shrink, path"]
    assert all(len(run["to"]) == len(LEVELS) for run in cell["runs"].values())
    assert cell["optimum"] <= min(np.min(np.array(run["curve"])[:, 1]) for run in cell["runs"].values())
