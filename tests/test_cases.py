"""A test over many cases runs each of them, names the one that fails, and leaves nothing behind."""

import os

import pytest

from cases import crossed, for_each, seeds
from tiers import TIER


def test_every_case_is_run_with_its_fixtures():
    calls = []

    @for_each("a, b", [(1, 2), (3, 4)])
    @for_each("c", ["x", "y"])
    def body(fixture, a, b, c):
        calls.append((fixture, a, b, c))

    body(fixture="f")
    assert calls == [("f", 1, 2, "x"), ("f", 1, 2, "y"), ("f", 3, 4, "x"), ("f", 3, 4, "y")]


def test_a_failure_names_its_case():
    @for_each("number", [1, 2, 3])
    def body(number):
        assert number != 2

    with pytest.raises(AssertionError) as caught:
        body()
    assert caught.value.__notes__ == ["case: number=2"]


def test_changes_are_undone_before_the_next_case(monkeypatch):
    @for_each("number", [1, 2])
    def body(monkeypatch, number):
        assert "SCORELINE_CASE" not in os.environ
        monkeypatch.setenv("SCORELINE_CASE", str(number))

    body(monkeypatch=monkeypatch)
    assert "SCORELINE_CASE" not in os.environ


def test_no_case_is_an_error():
    with pytest.raises(AssertionError, match="there is no case of number"):
        for_each("number", [])


def test_products_are_whole_in_every_tier_but_quick():
    cases = crossed([("a", 1), ("b", 2)], [True, False], [0, 1, 2], strength=1)
    assert {len(case) for case in cases} == {4}
    assert {case[0] for case in cases} == {"a", "b"}
    assert {case[3] for case in cases} == {0, 1, 2}
    assert len(cases) < 12 if TIER == "quick" else len(cases) == 12
    assert len(seeds(30)) == (3 if TIER == "quick" else 30)
