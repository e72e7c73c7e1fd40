"""Row by row beside batch methods: times to a level, and claims that turn with the numbers."""

import pytest

from studies import narasimhan2015
from studies.datasets import Datasets
from studies.narasimhan2015 import BATCH, FIGURES, Narasimhan2015, claims, compared, methods_for, seconds_at

SPADE, QUICK, DIGITS, STAMP, SPADE_PLANES, STAMP_PLANES = 0, 3, 4, 1, 6, 7


def cell(measure, ours=0.85, others=0.8, planes=0.78, at=1.0, other_at=70.0, planes_at=80.0, uncut=0.1):
    """Return a cell in which ours is at 0.5, then at its end after `at` seconds, and others arrive after `other_at`."""
    runs = {}
    for method in methods_for(measure):
        end, seconds = (ours, at) if method in ("spade", "stamp") else (others, other_at)
        if method == "bundle_ocas":
            end, seconds = planes, planes_at
        runs[method] = {"curve": [[0.1 * seconds, 0.5], [seconds, end]], "alpha": 1e-4, "status": "converged"}
    return {"rows": 1000, "positives": 20, "uncut": uncut, "runs": runs}


def good(**change):
    return {f"{name}, {m}": cell(m, **change) for name in ("ijcnn1", "mnist") for m in FIGURES}


def verdicts(results, judged=True):
    return [claim.holds for claim in claims(results, judged)]


def test_methods():
    assert methods_for("qmean") == ["spade", "cost_search", "plugin", "bundle_ocas"]
    assert methods_for("f1") == ["stamp", *BATCH]


def test_all_claims_hold():
    assert verdicts(good()) == [True] * 11


CHANGES = [
    ((SPADE, STAMP, 2, QUICK, DIGITS, 5, SPADE_PLANES, STAMP_PLANES, 9), {"ours": 0.7}),
    ((2,), {"ours": 0.81}),
    ((QUICK, 5, DIGITS), {"other_at": 2.0}),
    ((DIGITS,), {"other_at": 50.0}),
    ((8,), {"planes": 0.82}),
    ((SPADE_PLANES,), {"planes": 0.8, "planes_at": 9.0}),
    ((SPADE_PLANES, STAMP_PLANES), {"planes": 0.8, "planes_at": 2.0}),
    ((10,), {"uncut": 0.79}),
]


def test_claims_turn_with_their_numbers():
    for which, change in CHANGES:
        found = claims(good(**change), True)
        for k in which:
            assert found[k].holds is False, (change, found[k])
            assert found[k].reason, change
        for k in {SPADE, STAMP, 9} - set(which):
            assert found[k].holds is True, change
            assert not found[k].reason, change


def test_small_problems_are_not_judged():
    assert verdicts(good(), judged=False) == [None] * 11


def test_claims_about_sets_that_are_not_there_are_not_judged():
    results = {f"made, {m}": cell(m) for m in FIGURES}
    assert [k for k, holds in enumerate(verdicts(results)) if holds is None] == [2, DIGITS]


def test_the_h_mean_has_no_figure_and_is_not_judged():
    results = good()
    results["mnist, hmean"] = cell("hmean", ours=0.1)
    assert verdicts(results) == [True] * 11


def test_times_to_the_level():
    assert seconds_at([[1.0, 0.5], [2.0, 0.8], [3.0, 0.7]], 0.75) == 2.0
    assert seconds_at([[1.0, 0.5]], 0.75) is None
    pair = compared(cell("f1", ours=0.795, planes=0.7))
    assert (pair["mine"], pair["level"], pair["within"]) == ("stamp", pytest.approx(0.79), True)
    assert pair["ahead"] == pytest.approx(-0.005)
    assert pair["ratio"] == pytest.approx(70.0)
    assert pair["seconds"]["bundle_ocas"] is None
    assert pair["planes"] == pytest.approx(80.0)  # to a level of their own, since they end below the other one
    assert pair["rivals"] == pytest.approx(-0.005)
    stuck = cell("f1")
    stuck["runs"]["bundle_ocas"]["curve"] = [[1.0, 0.1], [2.0, 0.1]]
    assert compared(stuck)["planes"] is None  # nothing to reach
    assert claims({"made, f1": stuck, "made, qmean": cell("qmean")}, True)[STAMP_PLANES].holds is None
    late = compared(cell("f1", ours=0.7))
    assert (late["within"], late["ratio"], late["planes"]) == (False, 0.0, 0.0)
    late["ends"]["stamp"], late["seconds"]["stamp"] = 0.7, 0.5  # there once, but not at its end
    assert [narasimhan2015._seconds(late, m) for m in ("stamp", "amp", "spade")] == ["0.5*", "70", "-"]
    assert "it does not end there on 4" in claims(good(ours=0.7), True)[QUICK].found


def test_a_cell_is_plain_and_ours_has_a_point_for_each_pass(monkeypatch, tmp_path):
    monkeypatch.setenv("SCORELINE_CACHE", str(tmp_path))
    study = Narasimhan2015(Datasets(tmp_path), quick=True)
    found = study._race("made", "f1")
    assert list(found["runs"]) == methods_for("f1")
    curve = found["runs"]["stamp"]["curve"]
    assert narasimhan2015.PASSES <= len(curve) <= 200
    assert curve == sorted(curve, key=lambda point: point[0])
    assert len(found["runs"]["amp"]["curve"]) == 1
    assert found["uncut"] < found["runs"]["plugin"]["curve"][-1][1]
    assert "PPI" in study.findings({f"made, {m}": cell(m) for m in FIGURES}).missing
