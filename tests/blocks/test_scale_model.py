"""The cost model of docs/cluster_costs.md against bytes that are counted, and its simulator against what must hold."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from block_layouts import between

from cases import for_each
from scoreline.distributed import Layout, Ref
from scoreline.distributed.balance import Kinks
from scoreline.distributed.cluster import InlineCluster, Placement
from scoreline.distributed.parts_operator import PartsOperator
from scoreline.distributed.score_space import Space as BlockSpace
from scoreline.distributed.selection import Inside
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import scale_model as model

N, P, POSITIVES = 4800, 3, 480
SHAPES = [
    model.Shape(1),
    model.Shape(2),
    model.Shape(2, 2),
    model.Shape(4),
    model.Shape(8),
    model.Shape(2, 4),
    model.Shape(20),
]


class Recorded(InlineCluster):
    """Keeps what comes here, and how often."""

    def __init__(self):
        super().__init__()
        self.replies, self.tasks = [], 0

    def submit(self, function, *arguments, placement):
        self.tasks += 1
        return super().submit(function, *arguments, placement=placement)

    def collect(self, futures):
        self.replies.append(super().collect(futures))
        return self.replies[-1]


def operator_of(shape):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, P)), np.where(np.arange(N) % (N // POSITIVES) == 0, 1, -1)
    edges = [N * k // shape.parts for k in range(shape.parts + 1)]
    operator = in_parts(shape, edges, [X[a:b] for ((a, b),) in between(edges)])
    return operator, operator.aligned(y)


def in_parts(shape, edges, parts):
    placements = [Placement(f"worker-{k // shape.each}", 1) for k in range(shape.parts)]
    refs = [Ref(InlineCluster.Done(as_operator(X))) for X in parts]
    return PartsOperator(Layout(Recorded(), placements, between(edges)), refs)


def counted(operator, call):
    before = operator.traffic
    operator.layout.cluster.replies.clear()
    operator.layout.cluster.tasks = 0
    result = call()
    return operator.traffic - before, result


# 40,000 coefficients are sent to each worker once.
@for_each(["shape", "p"], [(shape, p) for shape in SHAPES for p in (P, 40_000) if p == P or shape.parts <= 8])
def test_bytes_of_products(shape, p):
    operator = operator_of(shape)[0] if p == P else wide_operator_of(shape, p)
    moved, z = counted(operator, lambda: operator.matvec(np.ones(p)))
    assert moved == model.matvec_bytes(p, shape)
    assert counted(operator, lambda: operator.rmatvec(z))[0] == model.rmatvec_bytes(p, shape)


def wide_operator_of(shape, p):
    rows = sp.csr_array(np.eye(2, p))
    return in_parts(shape, range(0, 2 * shape.parts + 1, 2), [rows] * shape.parts)


@for_each(["shape", "risk", "parents"], list(product(SHAPES, model.RISKS, [0, 2])))
def test_bytes_of_evaluations(shape, risk, parents):
    operator, y = operator_of(shape)
    made = get_risk(risk).prepare(y, None, BlockSpace())
    z = operator.matvec(np.array([1.0, -0.5, 0.25]))
    if parents:
        z = BlockSpace().combine(1.0, z, 0.1, operator.matvec(np.ones(P)))
    moved, _ = counted(operator, lambda: made.evaluate(z, 0.1 / made.ramp_scale))
    if risk == "prbep":
        rounds = rounds_of(operator.layout.cluster.replies)
        assert moved == model.prbep_bytes(N, shape, rounds, parents)
        assert all(len(kind) <= 2 for kind in rounds)
        assert moved <= model.prbep_bytes(N, shape, None, parents)
        return
    problem = model.Problem(N, P, POSITIVES)
    assert moved == model.evaluation_bytes(risk, problem, shape, parents)
    # Rounds and tasks, too.
    found = model.evaluation_phases(risk, problem, shape, model.Machine())
    rounds, _, tasks = model.counts(found)
    assert (len(operator.layout.cluster.replies), operator.layout.cluster.tasks) == (rounds, tasks)


def rounds_of(replies):
    """Return what rounds of k-section sent: for the bias, for the shift."""
    found = []
    for kind in (Inside, Kinks):
        rounds = [parts for parts in replies if isinstance(parts[0], kind)]
        sizes = [sum(np.size(a) for part in parts for a in part if isinstance(a, np.ndarray)) for parts in rounds]
        found.append([model.Look(size, 1) for size in sizes])
    return found


@for_each("shape", SHAPES)
def test_bytes_of_weighted_keys(shape):
    operator, y = operator_of(shape)
    weight = operator.aligned(np.ones(N))
    made = get_risk("roc_area").prepare(y, weight, BlockSpace())
    z = operator.matvec(np.ones(P))
    moved, _ = counted(operator, lambda: made.evaluate(z, 0.1 / made.ramp_scale))
    assert moved == model.roc_bytes(POSITIVES, shape, 0, weighted=True)


@for_each("shape", SHAPES)
def test_bytes_of_moments_and_the_look_through_x(shape):
    operator, y = operator_of(shape)
    assert counted(operator, lambda: operator.class_moments(y))[0] == model.moments_bytes(P, shape)
    moved, _ = counted(operator, operator.inspect)
    assert moved == model.inspect_bytes(P, shape)


def test_bytes_of_an_iteration_are_the_sum_of_its_parts():
    problem, shape = model.Problem(5e6, 50, 5e4), model.Shape(2)
    assert model.evaluation_bytes("roc_area", problem, shape) <= 8 * problem.rows / 20
    total = model.iteration_bytes("roc_area", problem, shape, evaluations=2)
    assert total > 2 * model.roc_bytes(5e4, shape)
    assert model.gathered_bytes(5e6) == 8e7


def test_trees():
    assert model.tree_levels(model.Shape(1)) == (0, 0)
    assert model.tree_levels(model.Shape(8)) == (1, 1)
    assert model.tree_levels(model.Shape(9)) == (2, 2)
    assert model.tree_levels(model.Shape(2, 4)) == (2, 3)
    assert model.tree_bytes(8.0, model.Shape(20)) == 8.0 * 19
    assert model.broadcast_seconds(1.0, 1, 1.0) == 0.0
    assert model.broadcast_seconds(1.0, 51, 1.0) == 50.0
    assert model.broadcast_seconds(1.0, 102, 1.0) == 51.0


CASES = [(risk, model.Shape(w, e)) for risk in model.RISKS for w, e in ((1, 1), (2, 1), (8, 1), (100, 4))]
PROBLEM = model.Problem(1e7, 1e5, 1e5, 50.0)
ROUGH = model.Machine(row_seconds=5e-8, sigma=0.3, slow_share=0.1, slow_factor=3.0)


def seconds(risk, shape, machine):
    return sum(model.simulate(model.phases(risk, PROBLEM, shape, machine), shape, machine, repeats=5).values())


@for_each(["risk", "shape"], CASES)
def test_without_stragglers_it_is_the_closed_form(risk, shape):
    machine = model.Machine(round=0.012, step=0.0045, task=0.0005, link=1e9, memory=5e9)
    expected = model.closed_form(model.phases(risk, PROBLEM, shape, machine), machine)
    assert seconds(risk, shape, machine) == pytest.approx(expected)


@for_each(["risk", "shape"], CASES)
def test_more_of_what_costs_is_never_faster(risk, shape):
    base = seconds(risk, shape, ROUGH)
    for name in ("round", "step", "task", "row_seconds", "slow_factor"):
        assert seconds(risk, shape, ROUGH._replace(**{name: 2.0 * getattr(ROUGH, name)})) >= base, name
    for name in ("round", "step", "task"):
        assert seconds(risk, shape, ROUGH._replace(**{name: 2.0 * getattr(ROUGH, name)})) > base, name
    for name in ("link", "client_link", "memory", "threads"):
        assert seconds(risk, shape, ROUGH._replace(**{name: 2.0 * getattr(ROUGH, name)})) <= base, name
    assert seconds(risk, shape, model.Machine(row_seconds=5e-8)) <= base


def test_the_command_names_the_largest_item(monkeypatch, capsys):
    words = ["--rows", "1e9", "--features", "1e6", "--nonzeros", "100", "--positives", "5e8", "--workers", "1000"]
    monkeypatch.setattr(sys, "argv", ["scale_model.py", *words])
    model.main()
    assert "largest item: network: sums of keys" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["scale_model.py"])
    model.main()
    assert "balanced classes" in capsys.readouterr().out
