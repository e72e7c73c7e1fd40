"""Nothing is fetched: importing every module, training, saving and the command line open no connection."""

import subprocess
import sys

import pytest

WATCHED = """
import importlib, pkgutil, sys, tempfile, warnings

def refuse(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        raise RuntimeError(f"{event} {arguments}")
    if event == "socket.__new__" and arguments[1] not in (1,):  # AF_UNIX stays on the machine
        raise RuntimeError(f"{event} {arguments}")

sys.addaudithook(refuse)
warnings.simplefilter("ignore")  # only connections matter here
import numpy as np
import scoreline

missing = []
for module in pkgutil.walk_packages(scoreline.__path__, "scoreline."):
    if module.name.endswith(("__main__", "kernels_triton", "torch_module")):  # the last two need PyTorch
        continue
    importlib.import_module(module.name)

from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.cli.main import main

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
y = X[:, 0] + rng.standard_normal(200) > 0.5
for measure in ("roc_auc", "f1"):
    clf = MeasureClassifier(measure, probability=True).fit(X, y)
MeasureClassifierCV(alphas=[1e-2, 1e-3], cv=2).fit(X, y)
with tempfile.TemporaryDirectory() as folder:
    clf.save(f"{folder}/model.npz")
    load_model(f"{folder}/model.npz").predict(X)
    assert main(["train", "demo:breast-cancer", "--quiet", "--out", f"{folder}/own.npz"]) == 0
    assert main(["info", f"{folder}/own.npz"]) == 0
print("done")
"""


@pytest.mark.slow
def test_no_connection_is_opened():
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("done\n")


@pytest.mark.slow
def test_the_watch_sees_connections():
    script = WATCHED.split("warnings.simplefilter")[0] + "import socket\nsocket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "RuntimeError: socket." in done.stderr
