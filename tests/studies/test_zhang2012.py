"""Smoothing beside cutting planes: claims are judged by the method as printed, and turn with the numbers."""

import pytest

from studies.datasets import Datasets
from studies.zhang2012 import RISKS, Zhang2012, _growth, _key, _ratio

ALPHAS = (1e-2, 1e-4, 1e-6)
REACHES, FASTER, SLOWER, TEN, THOUSAND, ACCELERATED, LAMBDA = range(7)


def run(seconds, end=1.0, passes=100.0):
    return {
        "curve": [[0.0, 1.0, 9.0, 0.5], [seconds, passes, end, 0.8]],
        "objective": end,
        "passes": passes,
        "iterations": 9,
    }


def good(**change):
    """Return results in which all claims hold; `change` maps solvers to runs."""
    results = {}
    for risk in RISKS:
        for alpha in ALPHAS:
            planes = run(50.0, passes=1000.0 / alpha)
            runs = {"smoothed": run(0.1), "accelerated": run(3.0), "sms": run(1.0), "agm": run(9.0), "bundle": planes}
            results[_key("made", risk, alpha)] = {"optimum": 1.0, "lower_bound": 0.99, "runs": runs | change}
        results[f"made, {risk}, mu"] = {"1000": run(1.0, 1.5), "100": run(1.0), "10": run(1.0)}
    return results


@pytest.fixture
def study(tmp_path):
    return Zhang2012(Datasets(tmp_path))


def test_all_claims_hold(study):
    assert [claim.holds for claim in study.findings(good()).claims] == [True] * 7


CHANGES = [
    ((REACHES,), {"sms": run(1.0, 2.0)}),
    ((FASTER,), {"sms": run(10.0), "agm": run(20.0)}),
    ((ACCELERATED,), {"agm": run(0.5)}),
]


def test_claims_turn_with_their_numbers(study):
    for which, change in CHANGES:
        found = study.findings(good(**change)).claims
        for k in which:
            assert found[k].holds is False, change
        assert found[TEN].holds is True
    missed = good()
    missed["made, prbep, mu"]["10"] = run(1.0, 1.5)
    assert study.findings(missed).claims[TEN].holds is False


def test_what_the_limit_of_a_fit_decides_is_not_judged(study):
    stopped = study.findings(good(sms=run(10.0), bundle=run(30.0, 2.0))).claims  # 3 times, at least
    assert stopped[FASTER].holds is None
    assert "only a lower bound" in stopped[FASTER].found
    missed = good()
    missed["made, prbep, mu"]["10"] = {**run(30.0, 1.5), "seconds": 30.0}
    assert study.findings(missed).claims[TEN].holds is None
    small = good(sms=run(1.0, 2.0))
    for key, cell in small.items():
        if not key.endswith("mu"):
            cell["optimum"] = 0.01
    assert "On 6 of them 1 % of the minimum is less than epsilon" in study.findings(small).claims[REACHES].reason


def test_the_defaults_do_not_decide(study):
    found = study.findings(good(smoothed=run(1.0, 2.0), accelerated=run(0.01))).claims
    assert [claim.holds for claim in found] == [True] * 7
    assert found[REACHES].defaults == "0 of 6"


def test_passes_grow_with_the_penalty(study):
    results = good()
    races = {key: cell for key, cell in results.items() if "alpha" in key}
    assert _growth(races, "bundle", ALPHAS) == pytest.approx(100.0)
    assert _growth(races, "sms", ALPHAS) == 1.0
    for key, cell in races.items():
        if key.endswith("1e-06"):
            cell["runs"]["sms"] = run(9.0, 2.0, passes=1e9)  # never there
    assert _growth(races, "sms", ALPHAS) == pytest.approx(1e7)
    assert study.findings(results).claims[LAMBDA].holds is False


def test_sets_that_are_not_done_are_left_out(study):
    some = good()
    del some["made, prbep, mu"]
    findings = study.findings(some)
    assert findings.claims == []
    assert [table.rows for table in findings.tables] == [[], [], []]
    assert _ratio({"sms": 2.0, "bundle": None}, 30.0, "sms") == 15.0
    assert _ratio({"sms": None, "bundle": 1.0}, 30.0, "sms") is None
