"""The package as a whole: names, version, files that ship, helpers without a folder of their own."""

import sys
from importlib import metadata, resources

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import scoreline
from scoreline.io import make_imbalanced
from scoreline.report import ConvergenceDisplay, GapDisplay
from scoreline.runtime.registry import unknown_name


def test_public_names_and_version():
    assert set(scoreline.__all__) == {
        "Blend",
        "CountMeasure",
        "MeasureClassifier",
        "MeasureClassifierCV",
        "ThresholdClassifier",
        "__version__",
        "check_promise",
        "list_measures",
        "list_solvers",
        "load_model",
    }
    assert all(hasattr(scoreline, name) for name in scoreline.__all__)
    assert metadata.version("scoreline") == scoreline.__version__


def test_typing_marker_ships():
    assert resources.files("scoreline").joinpath("py.typed").is_file()


def test_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"ConvergenceDisplay needs matplotlib.*scoreline\[plot\]"):
        ConvergenceDisplay({}).plot()


def test_unknown_name_suggests_the_nearest_and_nothing_far_away():
    assert "Did you mean 'roc_auc'?" in str(unknown_name("measure", "rocauc", ["accuracy", "roc_auc"]))
    assert "Did you mean" not in str(unknown_name("measure", "zzz", ["accuracy", "roc_auc"]))
    assert str(unknown_name("label", "outcom", ["income", "outcome"])).endswith("Did you mean 'outcome'?")
    assert str(unknown_name("label", "rates", ["rate_a", "rate_b"])).endswith("Did you mean 'rate_b' or 'rate_a'?")


def test_synthetic_data_is_repeatable_and_learnable():
    X, y = make_imbalanced(n_samples=5000, positive_share=0.05, random_state=3)
    again = make_imbalanced(n_samples=5000, positive_share=0.05, random_state=3)
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])
    assert 200 < y.sum() < 300
    clf = scoreline.MeasureClassifier(scaling="standard").fit(X, y)
    assert roc_auc_score(y, clf.decision_function(X)) > 0.7


def test_plot_shows_what_the_history_says():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    history = {
        "iteration": [0, 1, 2],
        "seconds": [0.0, 0.1, 0.2],
        "passes": [1, 3, 5],
        "objective": [1.0, 0.5, 0.4],
        "lower_bound": [0.0, 0.1, 0.39],
    }
    figure, (top, bottom) = plt.subplots(2)
    assert ConvergenceDisplay(history).plot(top).ax_ is top
    GapDisplay(history).plot(bottom)
    above, below = (line.get_ydata() for line in top.get_lines())
    assert list(above[:3]) == history["objective"]
    np.testing.assert_allclose(below[:3], history["lower_bound"], atol=1e-300)  # a bound of 0 is drawn below the figure
    gap = bottom.get_lines()[0].get_ydata()
    np.testing.assert_allclose(gap[:2], [400.0, 100 * 0.01 / 0.39])
    plt.close(figure)
    plt.close(ConvergenceDisplay(history).plot(x="seconds").figure_)
