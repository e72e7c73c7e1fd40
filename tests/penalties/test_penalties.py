"""Penalties: value, proximal step, least of a line, limits; against SciPy, brute force and exact arithmetic."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier, load_model
from scoreline.penalties import BoundedPenalty, ElasticNetPenalty, GroupPenalty, L2Penalty
from scoreline.penalties.registry import all_penalties, get_penalty

P = 6
WEIGHTS = [1.0, 0.5, 2.0, 1.0, 3.0, 0.1]
KINDS = {
    "l2": L2Penalty(),
    "weights": L2Penalty(WEIGHTS),
    "elastic_net": ElasticNetPenalty(0.4, WEIGHTS),
    "lasso": ElasticNetPenalty(1.0),
    "group": GroupPenalty([[0, 1], [2, 3, 4], [5]], 0.7, WEIGHTS),
    "group_lasso": GroupPenalty([[0, 3], [1, 2], [4, 5]], 1.0),
}
BOUNDS = {
    "none": None,
    "signs": (0.0, None),
    "mixed": {0: (0, None), 1: (None, -0.1), 2: (-0.3, 0.2), 4: (0.05, 1.0)},
}


def prepared(kind, bounds):
    return BoundedPenalty.of(KINDS[kind], P, None, BOUNDS[bounds])


def points(penalty, rng, number, spread=2.0):
    """Return points within the bounds, some coordinates at 0 or at a bound."""
    found = rng.standard_normal((number, P)) * spread * 10.0 ** rng.uniform(-3, 0, (number, 1))
    found[rng.random(found.shape) < 0.3] = 0.0
    return np.clip(found, penalty.lower, penalty.upper)


@for_each("bounds", sorted(BOUNDS))
@for_each("kind", sorted(KINDS))
def test_prox_is_the_minimum(kind, bounds):
    """No point within the bounds is better, near by or far; nor is any other reached from it by its own formula."""
    rng, penalty = np.random.default_rng(1), prepared(kind, bounds)
    for _ in range(5):
        u, step, alpha = 2.0 * rng.standard_normal(P), 10.0 ** rng.uniform(-2, 1), 10.0 ** rng.uniform(-2, 1)

        def value(w, u=u, step=step, alpha=alpha):
            return float((w - u) @ (w - u)) / (2.0 * step) + penalty.value(w, alpha)

        w = penalty.prox(u, step, alpha)
        assert ((w >= penalty.lower) & (w <= penalty.upper)).all()
        near = np.clip(w + points(penalty, rng, 300, 0.5) - penalty.nearest(np.zeros(P)), penalty.lower, penalty.upper)
        others = min(value(x) for x in [*near, *points(penalty, rng, 300)])
        assert value(w) <= others * (1.0 + 1e-12)  # rounding of the two sums


def exact_terms(penalty, alpha, v, w):
    """Return <v, w> + Omega(w) as a fraction; norms of groups from below."""
    exact = [Fraction(float(x)) for x in w]
    total = sum(Fraction(float(a)) * b for a, b in zip(v, exact, strict=True))
    alpha = Fraction(alpha)
    for q, a, x in zip(penalty.quadratic, penalty.absolute, exact, strict=True):
        total += alpha * (Fraction(float(q)) * x * x / 2 + Fraction(float(a)) * abs(x))
    if penalty.norms is not None:
        for g, norm in enumerate(penalty.norms):
            square = sum(x * x for x, own in zip(exact, penalty.groups, strict=True) if own == g)
            root = Fraction(float(np.nextafter(np.nextafter(np.sqrt(float(square)), 0.0), 0.0)))
            total += alpha * Fraction(float(norm)) * (root if root * root <= square else Fraction(0))
    return total


@for_each("bounds", sorted(BOUNDS))
@for_each("kind", sorted(KINDS))
def test_least_is_below_every_point_in_exact_arithmetic_and_sharp(kind, bounds):
    rng, penalty = np.random.default_rng(2), prepared(kind, bounds)
    for _ in range(2):
        v, alpha = rng.standard_normal(P) * 10.0 ** rng.uniform(-2, 1), float(10.0 ** rng.uniform(-2, 1))
        uncertainty, reach = 10.0 ** rng.uniform(-6, -1) * rng.random(P), np.full(P, 3.0)
        bound = penalty.least(v, alpha, uncertainty, reach)
        exactly = penalty.least(v, alpha, np.zeros(P), reach)
        assert bound <= exactly + 1e-13 * (1.0 + abs(exactly))
        low, high = np.maximum(penalty.lower, -reach), np.minimum(penalty.upper, reach)
        best = penalty._minimum(v, alpha * penalty.quadratic, alpha, low, high)
        for w in [best, *np.clip(points(penalty, rng, 30), low, high)]:
            for slope in (v, v - uncertainty, v + uncertainty, v + uncertainty * rng.choice([-1.0, 1.0], P)):
                assert Fraction(bound) <= exact_terms(penalty, alpha, slope, w)
        # The minimum is attained: 1e-13 is the rounding of a few sums of numbers of this size.
        assert float(v @ best) + penalty.value(best, alpha) == pytest.approx(
            exactly, abs=1e-13 * (1.0 + np.abs(v).sum() * 3.0)
        )


@for_each("kind", sorted(KINDS))
def test_reach_contains_every_point_of_a_level(kind):
    rng, penalty = np.random.default_rng(3), prepared(kind, "none")
    for w in points(penalty, rng, 50):
        assert (np.abs(w) <= penalty.reach(penalty.value(w, 0.3), 0.3)).all()


@for_each("kind", sorted(KINDS))
def test_a_level_of_zero_limits_only_what_costs_something(kind):
    """0 / 0 made limits that are not numbers, and with them bounds, once J was 0 within the bounds."""
    penalty = BoundedPenalty.of(KINDS[kind], P, None, (-1.0, 2.0)).with_constant(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reach = penalty.reach(0.0, 0.3)
    assert np.array_equal(reach, [0.0] * P + [np.inf])


@for_each("bounds", sorted(BOUNDS))
@for_each("kind", sorted(KINDS))
def test_violation_is_zero_at_the_minimum_only(kind, bounds):
    rng, penalty = np.random.default_rng(4), prepared(kind, bounds)
    v = rng.standard_normal(P)
    w = penalty.minimum(v, 0.5, 1.0)  # of <v, w> + |w|^2 / 2 + Omega(w)
    assert penalty.violation(w, v + w, 0.5).max() <= 1e-12
    other = penalty.nearest(w + 0.1)
    if not np.array_equal(other, w):
        assert penalty.violation(other, v + other, 0.5).max() > 1e-3


def test_registry_and_parameters():
    assert sorted(all_penalties()) == ["elastic_net", "group", "l2"]
    assert get_penalty("elastic_net", {"l1_ratio": 0.25}).l1_ratio == 0.25
    own = L2Penalty(WEIGHTS)
    assert get_penalty(own) is own


@for_each(
    ("options", "words"),
    [
        ({"penalty": "l1"}, ["penalty='l1'", "elastic_net"]),
        ({"penalty": "elastic_net", "penalty_params": {"ratio": 1}}, ["key='ratio'", "l1_ratio"]),
        ({"penalty": "elastic_net", "penalty_params": {"l1_ratio": 1.5}}, ["l1_ratio=1.5", "at most 1"]),
        ({"penalty": "group"}, ["needs penalty_params", "'groups'"]),
        ({"penalty_params": {"weights": [1.0]}}, ["weights have shape (1,)", "(6,)"]),
        ({"penalty_params": {"weights": [1, 1, 1, 1, 1, -1]}}, ["at least 0", "-1.0", "feature 5"]),
        ({"penalty_params": {"weights": [0, 1, 1, 1, 1, 1]}}, ["column 0 has weight 0 and no bounds", "certificate"]),
        (
            {"penalty_params": {"weights": [1, 0, 1, 1, 1, 1]}, "bounds": (0.0, None)},
            ["column 1 has weight 0 and no upper bound", "both finite"],
        ),
        ({"penalty_params": {"weights": [1, 0, 1, 1, 1, 1]}, "bounds": {1: (None, 3)}}, ["no lower bound"]),
        ({"penalty": "group", "penalty_params": {"groups": [[0, 1], [1, 2, 3, 4, 5]]}}, ["overlap", "groups[0]"]),
        ({"penalty": "group", "penalty_params": {"groups": [[0, 1], [2, 3]]}}, ["2 of 6 columns", "4, 5"]),
        ({"penalty": "group", "penalty_params": {"groups": [[0, 9]]}}, ["column 9", "0 to 5"]),
        ({"bounds": (1.0, 0.0)}, ["lower 1, upper 0", "exclude"]),
        ({"bounds": {"age": (0, None)}}, ["column 'age'", "no column names"]),
        ({"bounds": {0: 3.0}}, ["bounds[0]=3.0", "pair"]),
        ({"bounds": 3.0}, ["bounds=3.0", "pair"]),
        ({"bounds": ([0.0, 1.0], None)}, ["shape (2,)", "(6,)"]),
        ({"bounds": (0.0, None), "solver": "bundle_ocas"}, ["'bounds'", "solver='auto'", "proximal"]),
        ({"penalty_params": {"weights": WEIGHTS}, "solver": "hybrid", "measure": "accuracy"}, ["'weights'", "newton"]),
    ],
)
def test_wrong_use_is_an_error_before_the_first_pass(options, words):
    X, y = np.random.default_rng(0).standard_normal((20, P)), np.arange(20) % 2
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are checked below
        MeasureClassifier(**options).fit(X, y)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_weights_are_scaled_features(tmp_path):
    """A weight k costs as much as a feature divided by sqrt(k): an independent way to the same model."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, P))
    y = (X[:, 0] - X[:, 4] + rng.standard_normal(200) > 0.5).astype(int)
    root = np.sqrt(WEIGHTS)
    for measure, risk in (("roc_auc", "auto"), ("accuracy", "logistic"), ("accuracy", "hinge")):
        options = {"risk": risk, "alpha": 1e-2, "tol": 1e-9}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = MeasureClassifier(measure, penalty_params={"weights": WEIGHTS}, **options).fit(X, y)
            other = MeasureClassifier(measure, **options).fit(X / root, y)
        assert own.objective_ == pytest.approx(other.objective_, rel=2e-8)
        np.testing.assert_allclose(own.coef_, other.coef_ / root, atol=2e-3)
        assert own.objective(X, y) == pytest.approx(own.objective_, rel=1e-11)
    own.set_params(penalty=L2Penalty(np.array(WEIGHTS)), penalty_params=None).fit(X, y).save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert np.array_equal(again.penalty.weights, WEIGHTS)
    assert np.array_equal(again.decision_function(X), own.decision_function(X))
