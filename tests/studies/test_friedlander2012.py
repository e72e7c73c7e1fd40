"""Growing batches: passes to a level, and claims that turn with the numbers."""

import numpy as np

from studies import friedlander2012
from studies.datasets import Datasets
from studies.friedlander2012 import LEVELS, METHODS, SHRINKS, Friedlander2012, claims


def run(to, error=1.0, passes=None, skipped=(0.1, 0.5)):
    last = to[-1] if passes is None else passes
    return {"to": list(to), "to_error": error, "passes": last, "end": 1e-7, "skipped": list(skipped), "curve": []}


def good():
    """Return results in which all claims hold."""
    runs = {
        "lbfgs": run((5.0, 9.0, 30.0, 50.0), error=5.0), "hybrid, paper": run((0.1, 1.0, 12.0, 30.0), error=0.1),
        "shrink, sum": run((1.1, 2.0, 10.0, 20.0)), "shrink, path": run((1.1, 2.0, 9.0, 18.0), skipped=(0.1, 0.6)),
        "hybrid": run((0.1, 0.2, 3.0, 6.0)),
    }  # fmt: skip
    return {"some, squared_hinge": {"runs": runs, "same": dict.fromkeys(SHRINKS, True), "rows": 9, "features": 3}}


def verdicts(results, judged=True):
    return [claim.holds for claim in claims(results, judged)]


def test_all_claims_hold():
    assert verdicts(good()) == [True] * 8 + [None]


CHANGES = [
    (0, "hybrid, paper", {"to": [6.0, 7.0, 12.0, 30.0]}),
    (0, "hybrid, paper", {"to": [None, None, None, None]}),
    (1, "hybrid, paper", {"to_error": 5.5}),
    (2, "hybrid, paper", {"to": [0.1, 1.0, 12.0, 40.0]}),
    (3, "hybrid, paper", {"to": [0.1, 1.0, 42.0, 63.0]}),
    (4, "shrink, sum", {"to": [1.1, 2.0, 10.0, 31.0]}),
    (5, "shrink, sum", {"skipped": [0.5, 0.1]}),
    (6, "shrink, path", {"passes": 21.0}),
]


def test_a_claim_turns_with_its_numbers():
    for which, method, change in CHANGES:
        results = good()
        results["some, squared_hinge"]["runs"][method] |= change
        assert verdicts(results)[which] is False, (which, method, change)
        assert "some, squared_hinge" in claims(results, True)[which].reason, (which, method, change)


def test_small_problems_judge_only_what_is_proved():
    results = good()
    assert verdicts(results, judged=False) == [None] * 7 + [True, None]
    results["some, squared_hinge"]["same"][SHRINKS[0]] = False
    assert verdicts(results, judged=False)[7] is False


def test_one_that_never_arrives_is_behind():
    results = good()
    results["some, squared_hinge"]["runs"]["lbfgs"]["to"][-1] = None
    found = claims(results, True)
    assert [found[k].holds for k in (2, 3, 4)] == [None, None, True]  # no ratio to judge; skipping arrives alone
    results["some, squared_hinge"]["runs"]["shrink, sum"]["to"][-1] = None
    assert claims(results, True)[4].holds is False


def test_reasons_name_the_shape_of_a_set():
    results = good()
    results["some, squared_hinge"]["runs"]["hybrid, paper"]["to"][0] = 6.0
    assert claims(results, True)[0].reason == "not on some, squared_hinge (9 x 3)"


def test_where_zero_is_good_enough_there_is_no_progress_to_judge():
    results = good()
    for each in results["some, squared_hinge"]["runs"].values():
        each["to"][0] = 0.0
    assert verdicts(results)[0] is None
    results["some, squared_hinge"]["runs"]["hybrid, paper"]["to"][0] = 0.3
    assert verdicts(results)[0] is False


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
    assert set(cell["runs"]) == set(METHODS)
    ends = {method: run["iterations"] for method, run in cell["runs"].items()}
    assert ends["hybrid, paper"] == ends["shrink, sum"] == ends["shrink, path"]
    assert all(len(run["to"]) == len(LEVELS) for run in cell["runs"].values())
    assert cell["optimum"] <= min(np.min(np.array(run["curve"])[:, 1]) for run in cell["runs"].values())
