"""Displays: the arrays are those of scikit-learn and of brute force, and any data can be drawn."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from matplotlib import pyplot
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.measures import all_measures, get_measure, interval
from scoreline.report import (
    ConvergenceDisplay,
    GapDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdDisplay,
    WeightsDisplay,
    plot_alpha_path,
)
from tiers import tiered

OF_SCORES = [RocDisplay, PrecisionRecallDisplay, ThresholdDisplay, ScoreDistributionDisplay, ReliabilityDisplay]
NAME = "$\\frac{<script>" + "a name of eighty letters " * 3 + "\x00_"


def sample(n=300, share=0.3, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    z = rng.standard_normal(n) + 1.5 * y - 1.0
    return y, np.round(z, 1) if ties else z


DATA = {
    "usual": sample(),
    "ties": sample(ties=True),
    "one positive": (np.arange(40) == 3, np.linspace(-1.0, 2.0, 40)),
    "one negative": (np.arange(40) != 3, np.linspace(-1.0, 2.0, 40)),
    "equal scores": (np.arange(40) < 10, np.zeros(40)),
    "equal scores far away": (np.arange(40) < 10, np.full(40, -1e9)),
    "two rows": (np.array([False, True]), np.array([-1.0, 1.0])),
    "two rows, wrong": (np.array([False, True]), np.array([3.0, 2.0])),
    "one row": (np.array([True]), np.array([0.5])),
    "no positive": (np.zeros(30, dtype=bool), np.linspace(-1.0, 2.0, 30)),
    "no negative": (np.ones(30, dtype=bool), np.linspace(-1.0, 2.0, 30)),
    "all below the threshold": (np.arange(50) % 5 == 0, np.linspace(-1e5, -1e5 + 1.0, 50)),
    "outlier": (np.arange(500) % 2 == 0, np.append(np.linspace(-1.0, 1.0, 499), 1e12)),
    "tiny scores": (np.arange(50) % 2 == 0, 1e-300 * np.linspace(-1.0, 1.0, 50)),
}


@for_each(("kind", "name"), tiered(product(OF_SCORES, DATA), strength=1))
@pytest.mark.filterwarnings("error")
def test_any_scores_can_be_drawn(kind, name):
    y, z = DATA[name]
    display = kind.from_predictions(y, z)
    assert display.plot() is display
    display.figure_.canvas.draw()
    _, ax = pyplot.subplots()
    assert display.plot(ax=ax).ax_ is ax
    words = display.describe()
    assert words.endswith(".")
    assert "nan" not in words.replace("nance", "")
    for line in ax.get_lines():
        assert np.isfinite(np.asarray(line.get_xydata(), dtype=float)).all()
    pyplot.close("all")


@for_each("kind", OF_SCORES)
@for_each(
    ("y", "z", "message"),
    [
        ([0, 1], [0.0, np.nan], "finite, got nan in row 1"),
        ([0, 1], [0.0], "vector of 2 numbers"),
        ([], [], "at least one label"),
        (["a", "b"], [0.0, 1.0], "pos_label"),
    ],
)
def test_bad_input_is_named(kind, y, z, message):
    with pytest.raises(ValueError, match=message):
        kind.from_predictions(y, z)


@for_each("ties", [False, True])
def test_curves_are_those_of_scikit_learn(ties):
    y, z = sample(ties=ties)
    roc, pr = RocDisplay.from_predictions(y, z), PrecisionRecallDisplay.from_predictions(y, z)
    fpr, tpr, _ = roc_curve(y, z, drop_intermediate=False)
    np.testing.assert_allclose(roc.curves["model"], (fpr, tpr), rtol=1e-14)
    assert roc.areas["model"] == pytest.approx(roc_auc_score(y, z), rel=1e-13)
    precision, recall, _ = precision_recall_curve(y, z)
    np.testing.assert_allclose(pr.curves["model"][0][1:], recall[:-1][::-1], rtol=1e-14)
    np.testing.assert_allclose(pr.curves["model"][1][1:], precision[:-1][::-1], rtol=1e-14)
    assert pr.areas["model"] == pytest.approx(average_precision_score(y, z), rel=1e-13)
    assert roc.points["model"] == (np.mean(z[~y] > 0), np.mean(z[y] > 0))
    assert pr.points["model"] == (np.mean(z[y] > 0), np.mean(y[z > 0]))


def test_bands_are_the_intervals_at_each_threshold():
    """The bands of curves are exact, and that of the threshold display is near the draws of `interval`."""
    rng = np.random.default_rng(3)
    y = np.repeat([1, -1], [30, 200])
    z = np.round(rng.standard_normal(230) + 1.5 * (y > 0), 1)
    for kind, rate in ((RocDisplay, "recall"), (PrecisionRecallDisplay, "precision")):
        x, low, high = kind(y, z).bands["model"]
        levels = np.unique(z)[::-1]
        for k in (0, 5, len(levels) - 1):
            expected = interval(rate, y, z - levels[k] + 0.01)
            assert (low[k], high[k]) == pytest.approx((expected.low, expected.high), abs=1e-9), (kind, k)
        assert len(x) == len(levels)
    display = ThresholdDisplay(y, z, measure="mcc")
    at, low, high = display.band
    for k in (0, len(at) // 2, len(at) - 1):
        expected = interval("mcc", y, z - at[k], replicates=4000)
        # 200 draws by strata know the ends of an interval within a tenth of its width.
        assert (low[k], high[k]) == pytest.approx(expected[1:3], abs=0.1 * (expected.high - expected.low) + 0.01)
    for drawn in (display, kind(y, {"a": z, "b": -z})):
        drawn.plot()
        labels = [text.get_text() for legend in drawn.figure_.legends for text in legend.get_texts()]
        assert "95 % interval at each threshold" in labels
        assert len(drawn.ax_.collections) == 1


def test_the_legend_has_areas_of_models_of_any_name():
    y, z = sample()
    display = RocDisplay.from_predictions(y, {"_hidden": z, NAME: -z, "$a$": z}).plot()
    display.figure_.canvas.draw()
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert texts[0].startswith("_hidden, area 0.8")
    assert "…" in texts[1]
    assert max(map(len, texts)) < 45
    assert texts[2].startswith("$a$")
    assert texts[3:] == ["95 % interval at each threshold", "chance: 0.500", "the threshold: decision > 0"]


COUNTED = sorted(name for name, kind in all_measures().items() if not kind.uses_order)


@for_each("ties", [False, True])
@for_each("measure", COUNTED)
def test_measure_at_each_threshold_is_the_measure_of_its_predictions(measure, ties):
    y, z = sample(n=80, ties=ties)
    display = ThresholdDisplay.from_predictions(y, z, measure=measure)
    judge = get_measure(measure)
    (values,) = display.values.values()
    brute = [judge.from_counts(*(float(np.sum((y == t) & ((z > threshold) == q)))
             for t, q in ((1, 1), (0, 1), (1, 0), (0, 0)))) for threshold in display.thresholds]  # fmt: skip
    np.testing.assert_allclose(values, brute, rtol=1e-12)
    assert display.at_threshold[judge.name] == pytest.approx(judge.value(y, z), rel=1e-12)
    assert display.best.value == pytest.approx(max(brute), rel=1e-12)


def test_rankings_show_precision_recall_and_f1():
    y, z = sample()
    display = ThresholdDisplay.from_predictions(y, z, measure="roc_auc")
    assert list(display.values) == ["precision", "recall", "f1"]
    assert display.main == "f1"
    assert display.at_threshold["recall"] == np.mean(z[y] > 0)


def test_a_measure_that_is_nowhere_defined_is_said_to_be():
    from scoreline import CountMeasure

    odd = CountMeasure(lambda tp, fp, fn, tn: np.where(tp + fn > 5.5, np.nan, tp), name="odd")
    y, z = sample()
    display = ThresholdDisplay.from_predictions(y, z, measure=odd).plot()
    assert display.best is None
    assert "not defined on these rows" in display.describe()


@pytest.mark.slow
@for_each("kind", OF_SCORES)
def test_a_million_rows_leave_a_small_picture(kind, tmp_path):
    y, z = sample(n=1_000_000, share=0.01)
    display = kind.from_predictions(y, z).plot()
    assert max((len(line.get_xdata()) for line in display.ax_.get_lines()), default=0) <= 2000
    display.figure_.savefig(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size < 150_000


def test_thinned_curves_stay_where_they_were():
    from scoreline.report.axes import thin

    y, z = sample(n=100_000, share=0.2)
    x, up = RocDisplay.from_predictions(y, z).curves["model"]
    keep = thin(800, x, up)
    assert keep[0] == 0
    assert keep[-1] == len(x) - 1
    # The curve has length 2: from one point that is kept to the next it goes 2 / 799 and at most one step further.
    before = keep[np.searchsorted(keep, np.arange(len(x)), side="right") - 1]
    step = (np.diff(x) + np.diff(up)).max()
    assert (x - x[before] + up - up[before]).max() <= 2.0 / 799 + step + 1e-12


def test_histograms_share_bins_and_single_rows_are_needles():
    y, z = sample()
    display = ScoreDistributionDisplay.from_predictions(y, z, class_names=("no", "yes"))
    inside = np.histogram(z[y], display.edges)[0].sum()
    assert inside >= 0.95 * y.sum()
    assert "class yes" in display.describe()
    few = ScoreDistributionDisplay.from_predictions(*DATA["one positive"]).plot()
    texts = [text.get_text() for text in few.figure_.legends[0].get_texts()]
    assert "class positive (1 row), one by one" in texts


def test_normals_have_the_mean_and_the_variance_of_their_class():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.1, "yes", "no")
    scores = rng.standard_normal(2000) + 2.0 * (y == "yes")
    display = ScoreDistributionDisplay.from_predictions(y, scores, pos_label="yes").plot(normals=True)
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert [text.startswith("normal") for text in texts] == [False, True, False, True, False]
    width = display.edges[1] - display.edges[0]
    for line, side in zip(display.ax_.get_lines(), (y == "no", y == "yes"), strict=False):
        x, share = line.get_data()
        own = scores[side]
        assert x[np.argmax(share)] == pytest.approx(own.mean(), abs=x[1] - x[0])  # one step of the grid
        assert share.max() == pytest.approx(
            100 * width / (own.std(ddof=1) * np.sqrt(2 * np.pi)), rel=1e-3
        )  # 400 points
    assert x[0] <= np.quantile(scores, 0.01)
    assert x[-1] >= np.quantile(scores[y == "yes"], 0.99), "the tail of the rare class belongs to the picture"
    for name in ("equal scores", "one positive", "no positive"):
        ScoreDistributionDisplay(*DATA[name]).plot(normals=True)


def test_bins_of_reliability_hold_all_rows_with_wilson_intervals():
    for name in ("usual", "ties", "one positive", "equal scores"):
        y, z = DATA[name]
        display = ReliabilityDisplay.from_predictions(y, z)
        assert display.rows.sum() == len(y)
        assert display.shares @ display.rows == pytest.approx(y.sum(), rel=1e-12)
        assert display.above_threshold @ display.rows == pytest.approx(np.sum(z > 0), rel=1e-12)
        for share, rows, low, high in zip(display.shares, display.rows, display.lower, display.upper, strict=True):
            interval = binomtest(round(share * rows), int(rows)).proportion_ci(0.95, "wilson")
            assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-6)  # z is 1.959964
    assert len(ReliabilityDisplay.from_predictions(*DATA["equal scores"]).rows) == 1


@for_each("name", ["usual", "ties", "one positive", "equal scores"])
def test_bins_stand_at_their_mean_probability(name):
    y, z = DATA[name]
    P = 1.0 / (1.0 + np.exp(-(0.5 * z - 1.0)))
    display, plain = (
        ReliabilityDisplay.from_predictions(y, z, probabilities=P),
        ReliabilityDisplay.from_predictions(y, z),
    )
    np.testing.assert_array_equal(display.shares, plain.shares)
    assert display.predicted @ display.rows == pytest.approx(P.sum(), rel=1e-12)
    ends = np.cumsum(display.rows).astype(int)
    ordered = np.sort(P)  # from the lowest bin to the highest, whatever the order within
    bins = [part.mean() for part in np.split(ordered, ends[:-1])]
    np.testing.assert_allclose(display.predicted, bins, rtol=1e-12)
    wanted = sum(r * abs(b - s) for r, b, s in zip(display.rows, bins, display.shares, strict=True)) / len(y)
    assert display.distance == pytest.approx(wanted)
    display.plot()
    with pytest.raises(ValueError, match="no probabilities"):
        _ = plain.distance
    with pytest.raises(ValueError, match="between 0 and 1"):
        ReliabilityDisplay.from_predictions(y, z, probabilities=P + 1.0)


def test_probabilities_of_a_classifier_are_drawn():
    clf, X, y = fitted("f1", probability=True)
    display = ReliabilityDisplay.from_estimator(clf, X, y)
    assert display.predicted @ display.rows == pytest.approx(clf.predict_proba(X)[:, 1].sum())
    assert "Probabilities are off by" in display.describe()
    assert ReliabilityDisplay.from_estimator(fitted("f1")[0], X, y).predicted is None


def fitted(measure="roc_auc", solver="auto", n=200, p=3, **params):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0.5, "yes", "no")
    return MeasureClassifier(measure, solver=solver, **params).fit(X, y), X, y


def test_estimators_and_their_labels_are_understood():
    clf, X, y = fitted("f1")
    z, truth = clf.decision_function(X), y == "yes"
    assert RocDisplay.from_estimator(clf, X, y).areas["MeasureClassifier"] == pytest.approx(roc_auc_score(truth, z))
    assert PrecisionRecallDisplay.from_estimator(clf, X, y, name="mine").positives == truth.sum()
    assert ThresholdDisplay.from_estimator(clf, X, y).at_threshold["f1"] == pytest.approx(clf.score(X, y))
    assert ScoreDistributionDisplay.from_estimator(clf, X, y).class_names == ("no", "yes")
    assert ReliabilityDisplay.from_estimator(clf, X, y, n_bins=5).base == truth.mean()


def test_convergence_is_drawn_from_the_history():
    clf, _, _ = fitted(tol=1e-4)
    display, gap = ConvergenceDisplay.from_estimator(clf), GapDisplay.from_estimator(clf)
    assert gap.tol == 1e-4
    for x in ("passes", "seconds", "iteration"):
        display.plot(x=x).figure_.canvas.draw()
        gap.plot(x=x).figure_.canvas.draw()
    assert display.has_certificate
    assert display.gap[-1] == pytest.approx(clf.gap_ / clf.lower_bound_, rel=1e-6)
    assert display.describe().startswith(f"After {clf.history_['passes'][-1]:.0f} passes over the data")
    assert "%" in gap.describe()
    with pytest.raises(ValueError, match="x='time'"):
        display.plot(x="time")


@for_each(("measure", "solver"), [("roc_auc", "moments"), ("gmean", "spade"), ("f1", "stamp")])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_certificate_is_said_in_words(measure, solver):
    clf, _, _ = fitted(measure, solver)
    display = ConvergenceDisplay.from_estimator(clf)
    assert not display.has_certificate
    assert f"solver {solver} gives no certificate" in display.describe()
    assert "no certificate" in display.plot().ax_.texts[0].get_text()
    gap = GapDisplay.from_estimator(clf)
    assert "no gap" in gap.plot().ax_.texts[0].get_text()
    assert "no gap" in gap.describe()


@for_each(
    "history",
    [
        {},
        {"iteration": [0], "seconds": [0.0], "passes": [1.0], "objective": [1.0], "lower_bound": [0.995]},
        {"iteration": [0], "seconds": [0.0], "passes": [1.0], "objective": [1.0], "lower_bound": [-np.inf]},
        {"iteration": [0, 1], "seconds": [0, 1], "passes": [1, 2], "objective": [1.0, 0.5], "lower_bound": [0.0, 0.5]},
        {"iteration": [0, 1], "seconds": [0, 1], "passes": [1, 2], "objective": [1.0, 0.0], "lower_bound": [0.0, 0.0]},
    ],
)
@pytest.mark.filterwarnings("error")
def test_any_history_can_be_drawn(history):
    for display in (ConvergenceDisplay(history), GapDisplay(history, tol=0.01)):
        display.plot().figure_.canvas.draw()
        assert "nan" not in display.describe()
    pyplot.close("all")


def test_long_histories_are_thinned():
    steps = np.arange(1, 50_001)
    history = dict.fromkeys(("iteration", "seconds", "passes"), steps)
    display = ConvergenceDisplay(history | {"objective": 1.0 + 1.0 / steps, "lower_bound": 1.0 - 1.0 / steps})
    display.plot()
    assert max(len(line.get_xdata()) for line in display.ax_.get_lines()) < 400


def test_largest_weights_come_first_with_their_names():
    clf, _, _ = fitted(p=4)
    clf.coef_ = np.array([[1.0, -3.0, 0.0, 2.0]])
    display = WeightsDisplay.from_estimator(clf, names=["a", "b", "c", "d"], k=2)
    assert display.names == ["b", "d"]
    assert display.weights.tolist() == [-3.0, 2.0]
    scaled = WeightsDisplay.from_estimator(clf, column_scale=[10.0, 1.0, 1.0, 1.0])
    assert scaled.names == ["x0", "x1", "x3"], "a weight of 0 is left out"
    assert scaled.weights.tolist() == [10.0, -3.0, 2.0]
    for bad in ({"names": ["a"]}, {"column_scale": [1.0]}):
        with pytest.raises(ValueError, match="4 features"):
            WeightsDisplay.from_estimator(clf, **bad)


@for_each("coef", [[0.0], [2.0], [-2.0], [1e-300, 0.0], list(np.linspace(-1, 1, 1000))])
@pytest.mark.filterwarnings("error")
def test_any_weights_can_be_drawn(coef):
    clf, _, _ = fitted()
    clf.coef_ = np.array([coef])
    display = WeightsDisplay.from_estimator(clf, names=[f"{NAME}{k}" for k in range(len(coef))]).plot()
    display.figure_.canvas.draw()
    assert max((len(text.get_text()) for text in display.ax_.get_yticklabels()), default=0) <= 24
    assert display.describe().endswith(".")
    pyplot.close("all")


def test_the_path_shows_means_errors_folds_and_the_choice():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = X[:, 0] + rng.standard_normal(300) > 0
    clf = MeasureClassifierCV(alphas=[1e-3, 1.0, 0.1], cv=3).fit(X, y)
    ax = plot_alpha_path(clf)
    lines = {line.get_label(): line.get_data() for line in ax.get_lines()}
    alphas, means = lines["mean of 3 folds"]
    np.testing.assert_array_equal(alphas, [1e-3, 0.1, 1.0])
    np.testing.assert_allclose(means, clf.cv_results_["mean_test_score"][[0, 2, 1]])
    assert len(ax.get_lines()) == 5  # three folds, their mean, the choice
    assert any(text.get_text() == f"alpha {clf.alpha_:.3g}" for text in ax.texts)
    assert ax.get_ylabel() == "roc_auc of held-out rows"


@pytest.mark.slow
def test_nothing_of_matplotlib_is_imported_before_a_figure_is_drawn():
    line = "import sys, scoreline.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line]).returncode == 0
