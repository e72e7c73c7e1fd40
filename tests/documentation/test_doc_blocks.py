"""The Python blocks of the documentation run, page by page and in order, with the names that a page takes for granted."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

DOCS = Path(__file__).parents[2] / "docs"
OTHER_TESTS = {
    "datasets.md": "downloads",
    "gpu.md": "needs PyTorch and a device; tests/device",
    "scale.md": "needs a cluster; tests/cluster",
    "command_line.md": "tests/cli/test_command_line_page.py",
    "deploy.md": "tests/export/test_export_json.py",
    "many_classes.md": "tests/estimators/test_classifier_many_classes.py",
    **dict.fromkeys(
        ("quickstart.md", "imbalanced.md", "production.md", "set_threshold.md", "does_it_pay.md", "compare.md"),
        "tests/documentation/test_doc_outputs.py",
    ),
}
NEEDS = {"boosting.md": ("lightgbm", "xgboost", "catboost"), "networks.md": ("torch",)}
PAGES = sorted(page.name for page in DOCS.glob("*.md") if "```python\n" in page.read_text(encoding="utf-8"))


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


LONG = {
    "alpha.md",
    "blend.md",
    "boosting.md",
    "networks.md",
    "cutting_planes.md",
    "extend.md",
    "rows.md",
    "stream.md",
}  # more than a second each


@pytest.mark.parametrize(
    "name",
    [pytest.param(page, marks=pytest.mark.slow if page in LONG else ()) for page in PAGES if page not in OTHER_TESTS],
)
def test_blocks_run(name, tmp_path, monkeypatch):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    import matplotlib

    matplotlib.use("Agg")
    from scoreline import MeasureClassifier

    monkeypatch.chdir(tmp_path)
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    amount, country = rng.lognormal(3, 1, 400), rng.choice(["AT", "DE", "US"], 400)
    fraud = np.where(np.log(amount) + (country == "US") + rng.logistic(0, 1, 400) > 4, "fraud", "fine")
    lines = [f"{a:.2f},{c},{f}" for a, c, f in zip(amount, country, fraud, strict=True)]
    for file in ("payments.csv", "today.csv"):
        (tmp_path / file).write_text("amount,country,outcome\n" + "\n".join(lines) + "\n")
    for file in ("clicks.parquet", "clicks_test.parquet"):
        pd.DataFrame({"age": amount, "clicked": fraud == "fraud"}).to_parquet(tmp_path / file)
    names = {
        "X": X[::2], "y": y[::2], "X_val": X[1::2], "y_val": y[1::2], "X_valid": X[1::2], "y_valid": y[1::2],
        "X_test": X[1::2], "y_test": y[1::2], "np": np, "MeasureClassifier": MeasureClassifier,
    }  # fmt: skip
    for block in blocks(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short data and few iterations: pages show calls, not results
            exec(compile(block, name, "exec"), names)


def test_the_list_of_other_places_is_right():
    assert set(OTHER_TESTS) <= set(PAGES)
    for place in OTHER_TESTS.values():
        for path in re.findall(r"tests/[\w/.]+", place):
            assert (DOCS.parent / path).exists(), path
