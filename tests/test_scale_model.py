"""The cost model of docs/scale.md: its bytes are those that are counted, its seconds behave."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from scoreline._blocks import Layout, Ref
from scoreline._cluster import Home, InlineCluster
from scoreline.operators import as_operator
from scoreline.operators.parts import PartsOperator
from scoreline.risks.registry import get_risk
from scoreline.scorespace import BlockSpace

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import scale_model as model


def in_parts(n, p, workers, parts):
    X = np.random.default_rng(0).standard_normal((n, p))
    spans = list(pairwise(np.linspace(0, n, workers * parts + 1).astype(int).tolist()))
    cluster = InlineCluster()
    homes = [Home(f"worker-{k // parts}", 1) for k in range(len(spans))]
    layout = Layout(cluster, homes, [(span,) for span in spans])
    refs = [Ref(cluster.submit(as_operator, X[a:b], home=home)) for (a, b), home in zip(spans, homes, strict=True)]
    return PartsOperator(layout, refs)


@pytest.mark.parametrize(("workers", "parts"), [(1, 1), (2, 1), (4, 1), (2, 2), (8, 1), (2, 4), (20, 1)])
@pytest.mark.parametrize("p", [50, 50_000])
def test_bytes_are_those_counted(workers, parts, p):
    """But for single numbers that go with every task: 30 of them, or half a kilobyte, a part and operation."""
    n = 400 if p > 100 else 8000
    operator = in_parts(n, p, workers, parts)
    y = np.where(np.arange(n) % 10 == 0, 1, -1)
    problem, machine = model.Problem(n, p, None, np.count_nonzero(y > 0)), model.Machine(workers, parts)
    slack = 240.0 * machine.all_parts

    def counted(call):
        before = operator.traffic
        call()
        return operator.traffic - before

    w = np.cos(np.arange(p))
    assert counted(lambda: operator.matvec(w)) == pytest.approx(model.matvec_bytes(problem, machine), abs=slack)
    z = operator.matvec(w)
    assert counted(lambda: operator.rmatvec(z)) == pytest.approx(model.rmatvec_bytes(problem, machine), abs=slack)
    labels = operator.aligned(y)
    for name, formula in (("roc_area", model.roc_bytes), ("hinge", model.hinge_bytes)):
        risk = get_risk(name).prepare(labels, None, BlockSpace())
        moved = counted(lambda risk=risk: risk.evaluate(z, 0.1 / risk.ramp_scale))
        assert moved == pytest.approx(formula(problem, machine), abs=slack), name


def test_a_twentieth_of_the_scores():
    """Two workers, one positive in a hundred: what was asked of an evaluation of the ROC area."""
    problem = model.Problem(5e6, 100, None, 5e4)
    assert model.roc_bytes(problem, model.Machine(2)) <= 8 * problem.rows / 20


def test_simulated_seconds_behave():
    problem, machine = model.Problem(1e9, 1e6, 100, 1e6, 12.0), model.Machine(100)
    base = sum(model.simulated(problem, machine).values())
    for change in ({"link": 2.5e9}, {"memory": 40e9}, {"step": 1e-3}, {"task": 1e-4}, {"trip": 1e-3}):
        assert sum(model.simulated(problem, replace(machine, **change)).values()) < base
    for change in ({"spread": 0.3}, {"slow": 0.05}, {"parts": 4}):
        assert sum(model.simulated(problem, replace(machine, **change)).values()) > base
    alone = model.simulated(problem, model.Machine(1))
    assert alone["products"] == pytest.approx(2 * problem.matrix_bytes / 20e9)
    assert alone["w to workers"] == alone["sum of X'u"] == 0.0
    text = model.table(problem, [model.Machine(w) for w in (2, 1000)])
    assert len(text.splitlines()) == 4
