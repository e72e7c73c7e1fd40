"""Scorecards: what their integers are, what they cost, and how they read and write."""

import html
import io
import itertools
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from card_rows import lender, strange_rows, trained
from sklearn.metrics import balanced_accuracy_score

from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.features import Additive
from scoreline.scorecards import Scorecard


def by_hand(card, rows):
    """Return the points of the rows of a frame, from the lines alone."""
    total = np.full(len(rows), card.base_points)
    for column in card.columns:
        words = {line.label: line.points for line in column.lines}
        for i, value in enumerate(rows[column.name].tolist()):
            if value is None or value != value:
                total[i] += words["missing"]
            elif column.bins.kind == "category":
                own = [line.points for line in column.lines if value in line.label.split(", ")]
                total[i] += own[0] if own else words["all others"]
            else:
                edges = column.bins.values
                total[i] += column.points[1 + int(np.count_nonzero(edges < value))]
    return total


@pytest.mark.parametrize("measure", ["roc_auc", "f1"])
def test_a_card_ranks_as_its_model_does_and_is_monotone(measure):
    clf, rows, y = trained(measure)
    card = clf.scorecard(rows, y)
    loss = card.loss
    assert loss["measure"]["bins"] - loss["measure"]["card"] <= 1e-3 + 1e-2 * (measure == "f1")
    assert loss["measure"]["model"] - loss["measure"]["card"] <= 0.02
    assert loss["lower_bound"] <= loss["objective"]["bins"] <= loss["objective"]["card"] + 1e-9
    assert loss["objective"]["card"] <= loss["naive"] * (1.0 + 1e-10)  # the best intercept of each is found by a search
    income = next(column for column in card.columns if column.name == "income")
    assert (np.diff(income.points[1:]) >= 0).all(), "more points stand for a lower risk"
    new = strange_rows()
    points = card.predict(new)
    assert points.dtype == np.int64
    assert np.array_equal(points, by_hand(card, new))
    expected = np.where(points <= card.cutoff, clf.classes_[1], clf.classes_[0])
    assert np.array_equal(card.predict_class(new), expected)


def test_the_scale_is_that_of_the_odds():
    clf, rows, y = trained()
    card = clf.scorecard(rows, y, points=500, pdo=40, base=10)
    assert card.probability([500])[0] == pytest.approx(1 / 11)
    odds = 1 / card.probability([500, 540]) - 1
    assert odds[1] / odds[0] == pytest.approx(2.0)
    assert abs(card.probability(card.predict(rows)).mean() - y.mean()) < 0.01
    risk = clf.scorecard(rows, y, pdo=-20)
    assert np.corrcoef(risk.predict(rows), card.predict(rows))[0, 1] < -0.99
    for each in (card, risk):  # no other cutoff has a better balanced accuracy
        points = each.decision(each.predict(rows))
        found = [balanced_accuracy_score(y, points > cutoff) for cutoff in np.unique(points)]
        assert balanced_accuracy_score(y, each.predict_class(rows)) == pytest.approx(max(found))
    income = next(column for column in risk.columns if column.name == "income")
    assert (np.diff(income.points[1:]) <= 0).all()


@pytest.mark.parametrize("measure", ["roc_auc", "accuracy"])
def test_few_points_are_rounded_better_than_one_by_one(measure):
    clf, rows, y = trained(measure, risk="logistic")
    card = clf.scorecard(rows, y, points=0, pdo=2)
    assert card.loss["objective"]["card"] <= card.loss["naive"] + 1e-12
    assert max(int(np.ptp(column.points)) for column in card.columns) <= 12
    assert card.loss["objective"]["card"] - card.loss["lower_bound"] < 0.02 * card.loss["lower_bound"]


def test_the_objective_of_a_card_is_that_of_its_scores():
    """The risk of the points themselves, with the best intercept, is part of the objective; the rest is the penalty."""
    clf, rows, y = trained("accuracy", risk="logistic", alpha=1e-8, monotone=None)
    card = clf.scorecard(rows, y, pdo=5)
    points = card.predict(rows).astype(float)
    sign = np.where(y, 1.0, -1.0)
    values = [
        np.logaddexp(0, -sign * (factor * points + shift)).mean()
        for factor in -np.log(2) / 5 * np.linspace(0.8, 1.25, 91)
        for shift in np.linspace(-6, 12, 4)
    ]
    assert card.loss["objective"]["card"] >= card.loss["lower_bound"]
    best = min(
        min(np.logaddexp(0, -sign * (f * (points - points.mean()) + s)).mean() for s in np.linspace(-2, 2, 81))
        for f in -np.log(2) / 5 * np.linspace(0.8, 1.25, 46)
    )
    assert min(values) >= best - 1e-3
    assert card.loss["objective"]["card"] == pytest.approx(best, rel=5e-3)


def test_lines_count_rows_and_events():
    clf, rows, y = trained()
    card = clf.scorecard(rows, y, min_share=0.05)
    codes = card.codes(rows)
    for column, own in zip(card.columns, codes, strict=True):
        assert sum(line.rows for line in column.lines) == len(rows)
        assert min(int(np.ptp(column.points)), 0) == 0 == column.points.min()
        for line in column.lines:
            inside = np.isin(own, line.codes)
            assert line.rows == inside.sum()
            assert line.share == pytest.approx(inside.mean())
            assert inside.sum() == 0 or line.event_rate == pytest.approx(y[inside].mean())
            if column.bins.kind == "number" and line.label != "missing":
                assert line.share >= 0.045
        values = [line.points for line in column.lines if line.label not in ("missing", "all others")]
        assert all(a != b for a, b in itertools.pairwise(values)), "neighbours with equal points are one line"


def test_given_edges_are_kept():
    clf, rows, y = trained()
    card = clf.scorecard(rows, y, edges={"age": [30, 40.5]})
    age = next(column for column in card.columns if column.name == "age")
    assert age.bins.values.tolist() == [30.0, 40.5]
    assert [line.label for line in age.lines] == ["up to 30", "30 to 40.5", "above 40.5", "missing"]


@pytest.mark.parametrize("monotone", [None, {1: 1}])
def test_bins_that_merge_nothing_have_the_optimum_of_the_model(monotone):
    """The penalty of a function of the card is that of the same function of the model, whatever its shape."""
    rng = np.random.default_rng(0)
    values = np.array([0.0, 1.0, 2.0, 3.0, 10.0, 50.0])
    X = np.column_stack([rng.choice(values, 500), rng.choice(values, 500)])
    X[rng.random(500) < 0.1, 0] = np.nan
    y = rng.random(500) < 1 / (1 + np.exp(1 - 0.04 * X[:, 1] - (np.nan_to_num(X[:, 0], nan=2.0) == 2.0)))
    clf = MeasureClassifier(
        "accuracy", risk="logistic", features="additive", alpha=0.01, tol=1e-8, monotone=monotone
    ).fit(X, y)
    edges = 0.5 * (values[1:] + values[:-1])
    card = clf.scorecard(X, y, edges={0: edges, 1: edges})
    assert card.loss["objective"]["bins"] == pytest.approx(clf.objective_, rel=1e-6)
    assert card.loss["lower_bound"] == pytest.approx(clf.objective_, rel=1e-6)


def test_an_effect_of_few_rows_has_bins_of_its_own():
    """The model leaves out functions of so small a variance; bins of what is left mix these rows with others."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(8000) < 0.94, 0, rng.integers(1, 101, 8000)).astype(float)
    X = np.column_stack([gain, rng.uniform(0, 1, 8000)])
    y = rng.random(8000) < np.where((gain > 40) & (gain <= 55), 0.95, 0.05 + 0.3 * X[:, 1])
    card = MeasureClassifier("roc_auc", features="additive", alpha=1e-3).fit(X, y).scorecard(X, y)
    column = next(column for column in card.columns if column.position == 0)
    assert column.lines[0].label == "up to 0"
    assert max(line.event_rate for line in column.lines if line.rows) > 0.9


def test_edges_within_one_bin_of_the_model_and_beyond_all_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 1, 900), rng.normal(size=900)])
    y = rng.random(900) < 0.2 + 0.6 * (X[:, 0] > 0.3)
    clf = MeasureClassifier("roc_auc", features=Additive(max_bins=4), alpha=1e-3).fit(X, y)
    card = clf.scorecard(X, y, edges={0: [-5.0, 0.27, 0.3, 0.33, 7.0]})
    column = next(column for column in card.columns if column.position == 0)
    assert column.points[4] < column.points[2] - 20, "the step at 0.3 is within a bin of the model"
    assert sum(line.rows for line in column.lines) == 900


@pytest.mark.parametrize("sign", [1, -1, 0])
def test_a_monotone_column_that_goes_the_other_way_leaves_the_card(sign):
    """Its best monotone function is constant, and has one bin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] - X[:, 1] + rng.normal(size=400) > 0
    monotone = {0: 1, 1: sign} if sign else None
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01, monotone=monotone).fit(X, y)
    card = clf.scorecard(X, y)
    assert [column.name for column in card.columns].count("x1") == (sign != 1)
    assert (np.diff(card.columns[0].points[1:]) <= 0).all() or not sign
    with pytest.raises(ValueError, match="pdo=1e-06 is too small"):
        clf.scorecard(X, y, pdo=1e-6)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_few_columns_are_those_that_enter_the_path_first(most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    y = 3 * X[:, 2] + 1.5 * X[:, 0] + 0.2 * X[:, 4] + rng.normal(size=800) > 0
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01, monotone={2: 1}).fit(X, y)
    card = clf.scorecard(X, y, max_features=most)
    names = [column.name for column in card.columns]
    if most == 5:
        assert not card.path, "all columns are wanted, so nothing is chosen"
        return
    assert names == ["x2", "x0"][:most]
    assert card.path[-1]["columns"][:most] == names
    alphas = [step["alpha"] for step in card.path]
    assert alphas == sorted(alphas, reverse=True)
    for step in card.path:
        assert step["objective"] - step["lower_bound"] <= clf.tol * step["objective"] + 1e-12
    sizes = [len(step["columns"]) for step in card.path]
    assert all(size < most for size in sizes[:-1])
    assert sizes[-1] >= most
    assert (np.diff(next(column for column in card.columns if column.name == "x2").points[1:]) <= 0).all()
    assert Scorecard.from_json(card.to_json()).path == card.path


@pytest.mark.parametrize(
    ("measure", "risk"), [("accuracy", "logistic"), ("f1", "auto"), ("roc_auc", "roc_area_squared")]
)
def test_columns_are_chosen_for_any_risk(measure, risk):
    clf, rows, y = trained(measure, risk=risk)
    card = clf.scorecard(rows, y, max_features=1)
    assert len(card.columns) == 1
    assert len(card.path[0]["columns"]) <= len(card.path[-1]["columns"])


def test_drift_of_rows_counts_the_lines_of_the_card():
    clf, rows, y = trained()
    card = clf.scorecard(rows, y)
    same = card.drift(rows)
    assert max(same.columns.values()) == 0.0
    assert same.scores == 0.0
    assert (same.rows, same.reference_rows) == (len(rows), len(rows))
    moved = card.drift(rows.assign(age=rows.age + 30))
    assert next(iter(moved.columns)) == "age"
    assert moved.columns["age"] > 0.25
    assert moved.columns["city"] == 0.0
    assert moved.scores > 0.1
    read = Scorecard.from_json(card.to_json())
    assert read.drift(rows.assign(age=rows.age + 30)) == moved
    value, low, high = card.reference["measure"]
    assert low <= value <= high
    assert value == pytest.approx(card.loss["measure"]["card"])


def test_decisions_are_those_of_the_classes():
    clf, rows, y = trained()
    for pdo in (20, -20):
        card = clf.scorecard(rows, y, pdo=pdo)
        decided = card.decision(card.predict(rows))
        assert np.array_equal(decided > 0, card.predict_class(rows) == clf.classes_[1])
        assert card.loss["measure"]["card"] == pytest.approx(clf.score(rows, y), abs=0.03)
    assert card.with_classes(["good", "bad"]).predict_class(rows).tolist() == [
        "bad" if d > 0 else "good" for d in decided
    ]


def test_csv_reads_back():
    clf, rows, y = trained()
    card = clf.scorecard(rows, y)
    read = pd.read_csv(io.StringIO(card.to_csv()))
    pd.testing.assert_frame_equal(read, card.to_frame())


def test_weights_are_copies():
    rows, y = lender(400)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"features": Additive(max_bins=8), "alpha": 0.01, "tol": 1e-6, "risk": "logistic"}
    repeated = rows.loc[np.repeat(np.arange(len(y)), weight)].reset_index(drop=True)
    one = MeasureClassifier("roc_auc", **options).fit(rows, y, sample_weight=weight).scorecard(rows, y, weight)
    clf = MeasureClassifier("roc_auc", **options).fit(repeated, np.repeat(y, weight))
    other = clf.scorecard(repeated, np.repeat(y, weight))
    assert np.abs(one.predict(rows) - other.predict(rows)).max() <= 2
    assert [line.rows for column in one.columns for line in column.lines] == [
        line.rows for column in other.columns for line in column.lines
    ]


def test_costs_by_row_decide_the_cutoff_and_the_measure_but_not_the_lines():
    """The savings of the card are those of their definition, and no other cutoff saves more."""
    rows, y = lender(800)
    costs = {"cost_fp": 5.0, "cost_fn": np.random.default_rng(1).lognormal(2.5, 1.0, len(y))}
    own = np.where(y, costs["cost_fn"], 5.0)
    clf = MeasureClassifier("savings", features="additive", alpha=0.01).fit(rows, y, **costs)
    card = clf.scorecard(rows, y, max_features=2, **costs)
    points = card.predict(rows)

    def saved(cutoff):
        return 1.0 - own[(points <= cutoff) != y].sum() / min(own[y].sum(), own[~y].sum())

    found = [saved(cutoff) for cutoff in range(points.min() - 1, points.max() + 1)]
    assert saved(card.cutoff) == pytest.approx(max(found))
    assert card.loss["measure"]["card"] == pytest.approx(saved(card.cutoff))
    assert card.loss["measure"]["model"] == pytest.approx(clf.score(rows, y, **costs))
    assert card.loss["lower_bound"] <= card.loss["objective"]["bins"] <= card.loss["objective"]["card"] + 1e-9
    assert card.rows == sum(line.rows for line in card.columns[0].lines) == len(y)
    assert card.event_rate == pytest.approx(y.mean())
    plain = MeasureClassifier("savings", features="additive", alpha=0.01).fit(rows, y).scorecard(rows, y)
    assert max(found) > saved(plain.cutoff)
    with pytest.raises(ValueError, match="measure='savings'"):
        MeasureClassifier("f1", features="additive").fit(rows, y).scorecard(rows, y, **costs)


def test_arrays_and_sparse_matrices_score_like_frames():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    X[:, 1] = rng.integers(0, 2, 600)
    X[:, 3] = 1.0  # a column that no card reads
    y = X[:, 0] + X[:, 1] - X[:, 2] > 0.5
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(X, y)
    card = clf.scorecard(X, y)
    assert "x3" not in [column.name for column in card.columns]
    expected = card.predict(X)
    assert np.array_equal(card.predict(sp.csr_matrix(X)), expected)
    assert np.array_equal(card.predict(X.astype(np.float32).astype(float)), expected)
    with pytest.raises(ValueError, match="X has 2 columns, the card was made of 4"):
        card.predict(X[:, :2])


def test_frames_need_the_columns_of_the_card_only():
    clf, rows, y = trained()
    card = clf.scorecard(rows, y)
    expected = card.predict(rows)
    assert np.array_equal(card.predict(rows.assign(more="text")[["city", "more", "income", "age"]]), expected)
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    assert np.array_equal(card.predict(polars.from_pandas(rows)), expected)
    assert np.array_equal(card.predict(pyarrow.Table.from_pandas(rows)), expected)
    with pytest.raises(ValueError, match="no column 'age'"):
        card.predict(rows[["city", "income"]])


def test_a_search_makes_cards_with_the_chosen_alpha():
    rows, y = lender(500)
    clf = MeasureClassifierCV("f1", features="additive", alphas=[0.1, 0.01], cv=2).fit(rows, y)
    assert clf.scorecard(rows, y).columns


def test_json_reads_back(tmp_path):
    clf, rows, y = trained()
    card = clf.scorecard(rows, y)
    card.to_json(tmp_path / "card.json")
    new = strange_rows()
    for document in (tmp_path / "card.json", json.loads((tmp_path / "card.json").read_text())):
        read = Scorecard.from_json(document)
        assert np.array_equal(read.predict(new), card.predict(new))
        assert read.to_markdown() == card.to_markdown()
    with pytest.raises(ValueError, match="has format None"):
        Scorecard.from_json({})


def test_texts_of_the_table_are_escaped():
    rows, y = lender(600)
    rows = rows.rename(columns={"city": "ci<ty>|_&%"})
    rows["ci<ty>|_&%"] = rows["ci<ty>|_&%"].replace("a", "<b>a|</b>")
    clf = MeasureClassifier("roc_auc", features="additive", alpha=0.01).fit(rows, y)
    card = clf.scorecard(rows, y)
    page = card.to_html(title="A & B")
    assert "<title>A &amp; B</title>" in page
    assert "<b>a" not in page
    assert html.escape("ci<ty>|_&%") in page
    assert "http" not in page
    table = card.to_markdown().split("\n\n")[-1].strip().splitlines()
    assert {line.replace("\\|", "").count("|") for line in table} == {6}
    assert r"ci\textless{}ty\textgreater{}|\_\&\%" in card.to_latex()
    frame = card.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns)[:3] == ["column", "bin", "points"]
    assert card._repr_html_().count("<table>") == len(card.columns)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pdo": 0}, "pdo=0 must be a number other than 0"),
        ({"base": -1}, "base=-1"),
        ({"max_bins": 1}, "max_bins=1"),
        ({"max_features": 0}, "max_features=0"),
        ({"min_share": 0.7}, "at most 0.5"),
        ({"edges": {"age": [3, 2]}}, "must be increasing"),
        ({"edges": {"city": [3]}}, "holds categories"),
        ({"edges": {"zip": [3]}}, "'zip'"),
        ({"edges": [3]}, "must be a dict"),
    ],
)
def test_wrong_options_are_refused(options, words):
    clf, rows, y = trained(n=300)
    with pytest.raises(ValueError, match=words):
        clf.scorecard(rows, y, **options)


def test_other_models_have_no_card():
    rows, y = lender(300)
    numbers = rows[["age"]].to_numpy()
    with pytest.raises(ValueError, match="needs features='additive', got features='linear'"):
        MeasureClassifier("roc_auc").fit(numbers, y).scorecard(numbers, y)
