"""Figures are drawn without a window, and closed after each test."""

import matplotlib
import pytest
from matplotlib import pyplot

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    pyplot.close("all")
