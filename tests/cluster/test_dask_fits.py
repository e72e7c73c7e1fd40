"""The same estimator on a cluster: same iterates, same certificate, whatever the blocks are."""

import os
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
import scipy.sparse as sp
from made_rows import labels, rows
from sklearn.metrics import roc_auc_score

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.distributed import open_on_workers
from scoreline.io import convert
from scoreline.solvers import EarlyStopping

pytestmark = pytest.mark.slow

P, LENGTHS = 6, (700, 1, 0, 1299, 2000)


def sets():
    """Uneven blocks, one of them empty, one with a single row: a class is missing there."""
    blocks = [rows(k, n, P) for k, n in enumerate(LENGTHS)]
    X = np.concatenate(blocks)
    return X, labels(X, 0), blocks


def dask_rows(blocks, known=True):
    if known:
        return da.concatenate([da.from_array(b, chunks=(max(1, len(b)), P)) for b in blocks if len(b)])
    return da.concatenate(
        [da.from_delayed(delayed_block(k, n), (np.nan, P), dtype=float) for k, n in enumerate(LENGTHS)],
        allow_unknown_chunksizes=True,
    )


def delayed_block(k, n):
    from dask import delayed

    return delayed(rows)(k, n, P)


def stored(kind, blocks, y, folder):
    """Return X and y of one storage on the cluster."""
    if kind == "dense":
        return dask_rows(blocks), da.from_array(y, chunks=999)  # labels cut unlike X
    if kind == "unknown sizes":
        return dask_rows(blocks, known=False), y
    if kind == "sparse":
        from dask import delayed

        pieces = [
            da.from_delayed(delayed(sp.csr_array)(b), b.shape, meta=sp.csr_array((0, 0))) for b in blocks if len(b)
        ]
        return da.concatenate(pieces), y
    if kind == "frame":
        import pandas as pd

        frame = pd.DataFrame(np.concatenate(blocks), columns=[f"c{k}" for k in range(P)])
        frame["y"] = np.where(y > 0, "yes", "no")
        frame = dd.from_pandas(frame, npartitions=3)
        return frame[[f"c{k}" for k in range(P)]], frame["y"]
    folders = []
    for k, b in enumerate(np.array_split(np.arange(len(y)), 3)):
        X = np.concatenate(blocks)[b]
        source = sp.csr_array(X) if kind == "mapped sparse" else X
        folders.append(convert((source, y[b]), folder / f"part-{k}"))
    data = open_on_workers(folders)
    return data.X, data.y


STORAGES = ["dense", "sparse", "unknown sizes", "frame", "mapped dense", "mapped sparse"]
CASES = [
    ("roc_auc", "roc_area", "smoothed"),
    ("prbep", "prbep", "smoothed"),
    ("accuracy", "hinge", "smoothed"),
    ("f1", "logistic", "newton"),
    ("roc_auc", "roc_area_squared", "lbfgs"),
]


def traced(X, y, measure, risk, solver, **options):
    """Fit, and return the classifier with the best coefficients after every iteration."""
    path = []
    params = {"callbacks": [lambda now: path.append(now.w.copy())], "init": "zero"}
    clf = MeasureClassifier(measure, risk=risk, solver=solver, solver_params=params, alpha=1e-3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y), path


@pytest.mark.parametrize("storage", STORAGES)
@for_each("case", CASES)
def test_iterates_are_those_in_memory(client, storage, case, tmp_path):
    X, y, blocks = sets()
    folder = tmp_path / "-".join(case)
    folder.mkdir()
    here, path = traced(sp.csr_array(X) if "sparse" in storage else X, y, *case, tol=1e-3)
    there, way = traced(*stored(storage, blocks, y, folder), *case, tol=1e-3)
    assert len(way) >= min(5, len(path))
    for a, b in zip(path[:5], way[:5], strict=False):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-8 * np.abs(a).max())
    assert abs(there.objective_ - here.objective_) <= here.gap_ + there.gap_
    assert there.lower_bound_ <= here.objective_ * (1 + 1e-12)
    assert there.history_["bytes"] == sorted(there.history_["bytes"])
    if storage == "frame":
        assert there.feature_names_in_.tolist() == [f"c{k}" for k in range(P)]
        assert there.classes_.tolist() == ["no", "yes"]
    assert there.intercept_ == pytest.approx(here.intercept_, abs=1e-7)


PENALISED = [
    ("roc_auc", "roc_area", {"penalty": "group", "penalty_params": {"groups": [[0, 1], [2, 3, 4], [5]]}}),
    ("accuracy", "logistic", {"bounds": {0: (None, 0), 1: (0.05, 0.1), 3: (0, None)}}),
    ("roc_auc", "roc_area", {"penalty": "elastic_net", "penalty_params": {"l1_ratio": 0.8}, "bounds": (-0.2, None)}),
]


@for_each("storage", ["dense", "sparse"])
@for_each("measure, risk, options", PENALISED)
def test_groups_and_bounds_on_a_cluster(client, storage, measure, risk, options, tmp_path):
    X, y, blocks = sets()
    options = {"risk": risk, "alpha": 0.02, "tol": 1e-3, **options}
    here = MeasureClassifier(measure, **options).fit(X, y)
    there = MeasureClassifier(measure, **options).fit(*stored(storage, blocks, y, tmp_path))
    assert (there.solver_, there.status_) == ("proximal", "converged")
    assert abs(there.objective_ - here.objective_) <= here.gap_ + there.gap_
    assert there.lower_bound_ <= here.objective_ * (1 + 1e-12)
    assert there.objective_ == pytest.approx(there.objective(X, y), rel=1e-10)
    coef = there.coef_[0]
    if "groups" in options.get("penalty_params", {}):
        assert len({coef[0] != 0.0, coef[1] != 0.0}) == len({*(coef[2:5] != 0.0)}) == 1
    elif "penalty" in options:
        assert -0.2 <= coef.min() < coef.max()
    else:
        assert coef[0] <= 0.0 <= coef[3]
        assert 0.05 <= coef[1] <= 0.1


def test_scores_of_a_dask_array_are_a_dask_array(client):
    X, y, blocks = sets()
    there, here = dask_rows(blocks), MeasureClassifier("f1").fit(X, y)
    decision, predicted = here.decision_function(there), here.predict(there)
    assert isinstance(decision, da.Array)
    np.testing.assert_allclose(decision.compute(), here.decision_function(X), rtol=1e-12)
    np.testing.assert_array_equal(predicted.compute(), here.predict(X))
    assert here.score(there, da.from_array(y, chunks=500)) == here.score(X, y)
    assert here.objective(there, y) == pytest.approx(here.objective(X, y), rel=1e-12)
    tuned = here.tune_threshold(there, y).intercept_
    assert tuned == pytest.approx(here.tune_threshold(X, y).intercept_, abs=1e-12)


def test_weights_in_dask(client):
    X, y, blocks = sets()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    here = MeasureClassifier("f1", random_state=0).fit(X, y, weight)
    there = MeasureClassifier("f1", random_state=0).fit(dask_rows(blocks), y, da.from_array(weight, chunks=777))
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-8)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-8)


def test_mistakes_are_explained(client, tmp_path):
    X, y, blocks = sets()
    there = dask_rows(blocks)
    with pytest.raises(ValueError, match=r"X.rechunk\({1: -1}\)"):
        MeasureClassifier().fit(there.rechunk((1000, 2)), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MeasureClassifier().fit(there, y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of"):
        MeasureClassifier().fit(there, da.from_array(y[:-1], chunks=100))
    broken = X.copy()
    broken[2500, 3] = np.nan
    with pytest.raises(ValueError, match="row 2500, column 3"):
        MeasureClassifier().fit(da.from_array(broken, chunks=(900, P)), y)
    with pytest.raises(ValueError, match="expected 2"):
        MeasureClassifier().fit(da.from_array(X[:, 0], chunks=100), y)
    with pytest.raises(ValueError, match="0 sample"):
        MeasureClassifier().fit(da.empty((0, 3)), y)
    with pytest.raises(ValueError, match="one class only"):
        MeasureClassifier().fit(there, np.ones(len(y)))
    with pytest.raises(ValueError, match="3 classes"):
        MeasureClassifier().fit(there, da.from_array(np.arange(len(y)) % 3, chunks=100))
    folders = [convert((X[:, :k], y), tmp_path / str(k)) for k in (3, 4)]
    with pytest.raises(ValueError, match="differ in their features"):
        open_on_workers(folders)
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        open_on_workers(tmp_path / "no-such-folder")


def test_more_workers_than_rows_of_a_folder(client, tmp_path):
    X, _, _ = sets()
    data = open_on_workers(convert((X[:40], np.where(np.arange(40) % 3, -1, 1)), tmp_path / "few"))
    assert data.X.shape == (40, P)
    np.testing.assert_array_equal(np.asarray(data.y), np.where(np.arange(40) % 3, -1, 1))
    np.testing.assert_allclose(np.asarray(data.X.matvec(np.ones(P))), X[:40].sum(axis=1))


def test_counted_bytes_are_those_of_the_wire(client):
    """What is counted, against what the loopback device moved: protocol and heartbeats come on top."""
    X, y, _ = sets()
    big = da.from_array(np.tile(X, (50, 1)), chunks=(50_000, P)).persist()

    def moved():
        with open("/proc/net/dev", encoding="ascii") as file:
            line = next(line for line in file if line.strip().startswith("lo:"))
        return int(line.split()[1])

    from scoreline.distributed.score_space import Space as BlockSpace
    from scoreline.operators import as_operator
    from scoreline.risks.registry import get_risk

    operator = as_operator(big)
    risk = get_risk("roc_area").prepare(operator.aligned(np.tile(y, 50)), None, BlockSpace())
    z = operator.matvec(np.cos(np.arange(P)))
    risk.evaluate(z).grad.computed().sum()
    wire, counted = moved(), operator.traffic
    for _ in range(10):
        risk.evaluate(z, 0.1 / risk.ramp_scale).grad.computed().sum()
    wire, counted = moved() - wire, operator.traffic - counted
    assert counted <= wire <= 1.5 * counted + 10 * 100_000


def test_nothing_is_left_on_the_workers(client):
    """Vectors are let go with the objects that stand for them."""
    _, y, blocks = sets()
    MeasureClassifier(random_state=0).fit(dask_rows(blocks), y)
    import gc
    import time

    gc.collect()
    end = time.monotonic() + 600
    while True:
        left = [key for held in client.has_what().values() for key in held if "scoreline" in str(key)]
        if not left:
            return
        assert time.monotonic() < end, left
        time.sleep(0.1)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_scores_stay_on_the_workers(client):
    """ROC area over 2e6 rows with 1 % positives: an evaluation moves at most a twentieth of the scores."""
    n = 2_000_000
    there = da.from_array(np.random.default_rng(0).standard_normal((n, 2)), chunks=(500_000, 2)).persist()
    y = np.where(np.random.default_rng(1).random(n) < 0.01, 1, -1).astype(np.int8)
    clf = MeasureClassifier("roc_auc", max_iter=3, tol=1e-9, solver_params={"init": "zero"}, threshold="train")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(there, y)
    moved = np.diff(clf.history_["bytes"])
    assert moved.min() <= 8 * n / 20  # an iteration with one evaluation
    assert moved.max() <= 10 * 8 * n / 20


@for_each(["solver", "measure"], [("spade", "gmean"), ("stamp", "f1")])
def test_row_methods_send_workers_only_what_can_be_sent(client, solver, measure):
    """Those who watch a run (a model for Ctrl-C, early stopping, callbacks) stay here: they could not be pickled."""
    X, y, blocks = sets()
    passes = []
    stop = EarlyStopping((X[:300], y[:300]))
    params = {"callbacks": [lambda now: passes.append(now.passes)], "early_stopping": stop}
    clf = MeasureClassifier(measure, solver=solver, solver_params=params, random_state=0)
    clf.fit(dask_rows(blocks), da.from_array(y, chunks=999))
    assert passes
    assert roc_auc_score(y, clf.decision_function(X)) > 0.7
