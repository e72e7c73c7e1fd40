"""Pictures: what is drawn is what was given."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from scoreline import MeasureClassifierCV  # noqa: E402
from scoreline.report import plot_alpha_path, plot_score_distributions  # noqa: E402


def test_both_classes_and_their_normals_are_drawn():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.1, "yes", "no")
    scores = rng.standard_normal(2000) + 2.0 * (y == "yes")
    ax = plot_score_distributions(scores, y, positive="yes")
    labels = ax.get_legend_handles_labels()[1]
    assert sorted(labels) == ["negative rows", "normal of the negative", "normal of the positive", "positive rows"]
    for line, side in zip(ax.get_lines(), (y == "no", y == "yes"), strict=True):
        x, density = line.get_data()
        own = scores[side]
        assert x[np.argmax(density)] == pytest.approx(own.mean(), abs=x[1] - x[0])  # one step of the grid
        assert density.max() == pytest.approx(1.0 / (own.std(ddof=1) * np.sqrt(2 * np.pi)), rel=1e-3)  # 400 points
    assert x[0] <= np.quantile(scores, 0.01)
    assert x[-1] >= np.quantile(scores[y == "yes"], 0.99), "the tail of the rare class belongs to the picture"


@pytest.mark.parametrize(("scores", "y"), [([1.0, 2.0], [1, 1]), ([1.0], [0, 1]), ([1.0, 2.0], [0, 0])])
def test_one_class_is_refused(scores, y):
    with pytest.raises(ValueError, match="both classes"):
        plot_score_distributions(scores, y)


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
    assert ax.get_ylabel() == "roc_auc of rows left out"
