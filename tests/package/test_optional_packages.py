"""Packages beyond the core are imported where they are used, and nowhere else; where one is missing, the install line."""

import subprocess
import sys

import numpy as np
import pytest

FIT = """
import sys
import numpy as np
import scoreline
assert "scoreline.solvers" in sys.modules
assert not {"scoreline.distributed", "scoreline.gpu"} & set(sys.modules)  # rooms on demand
import scoreline.io, scoreline.objectives, scoreline.operators, scoreline.solvers, scoreline.cli.main, scoreline.cli.train
X = np.random.default_rng(0).standard_normal((200, 3))
clf = scoreline.MeasureClassifier().fit(X, X[:, 0] > 0)
clf.score(X, X[:, 0] > 0)
beyond = {"dask", "distributed", "torch", "triton", "cupy", "array_api_compat", "lightgbm", "xgboost", "catboost"}
loaded = beyond & set(sys.modules)
print(sorted(loaded))
"""


@pytest.mark.slow
def test_a_fit_in_memory_imports_nothing_beyond_the_core():
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


IMPORT = """
import sys
import sklearn.base, sklearn.utils.validation
before = set(sys.modules)
from scoreline import MeasureClassifier, MeasureClassifierCV
print(sorted({name.split(".")[0] if "sklearn" not in name else ".".join(name.split(".")[:2])
              for name in set(sys.modules) - before} & {"numba", "llvmlite", "pandas", "matplotlib", "rich", "sklearn.ensemble",
              "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.preprocessing", "sklearn.svm"}))
"""


def test_the_import_loads_no_more_of_scikit_learn_than_its_base():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def without_distributed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)


def test_without_dask_the_install_line(without_distributed, tmp_path, capsys):
    import dask.array as da

    from scoreline import MeasureClassifier
    from scoreline.cli.main import main
    from scoreline.distributed import open_on_workers

    line = r"pip install 'scoreline\[dask\]'"
    with pytest.raises(ImportError, match=line):
        MeasureClassifier().fit(da.zeros((10, 2)), np.arange(10) % 2)
    with pytest.raises(ImportError, match=line):
        open_on_workers([tmp_path])
    assert main(["train", "demo:fraud", "--dask", "local", "--out", str(tmp_path / "m.npz")]) == 1
    assert "pip install 'scoreline[dask]'" in capsys.readouterr().err


def test_without_torch_the_install_line(monkeypatch):
    from scoreline.objectives import torch_loss

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'scoreline\[torch\]'"):
        torch_loss("roc_auc")
