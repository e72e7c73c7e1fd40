"""kill -9 at any moment: files are the old ones or the new ones, and what follows goes on as if nothing had happened."""

import mmap
import os
import signal
import threading
import time
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

from scoreline import MeasureClassifier, load_model
from scoreline.io import convert, open_mapped
from scoreline.io.mapped_folder import RowsWriter
from scoreline.solvers import Checkpoint
from tiers import TIER

pytestmark = pytest.mark.slow
if not hasattr(os, "fork"):
    pytest.skip("there is no fork here, which the tests kill", allow_module_level=True)
TRIALS = 50 if TIER == "soak" else 10
# The machine was busier when the work was timed than at a kill that comes too late, less busy than at one that comes before the
# first checkpoint: this share of the time is tried next.
TOO_LATE, TOO_EARLY = 0.6, 1.5


def started(work):
    """Run a function in a forked process; the process ends with it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def finished(child):
    """Wait; return True if the process did its work, False if it was killed."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), "the work failed"
    return code == 0


def killed(work, delay, begun=lambda: True):
    """Kill a function some seconds after it has begun; return whether it was still at work."""
    child = started(work)
    while not begun():
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return not finished(child)


def duration(work):
    """Return the seconds that a function takes in a process of its own."""
    begin = time.perf_counter()
    assert finished(started(work))
    return time.perf_counter() - begin


STEPS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "open")


def killed_at_step(work, number, after):
    """Kill a function before or after its n-th call that changes names or syncs; return whether there were so many."""

    def counted():
        left = [number]

        def watched(plain):
            def call(*args, **options):
                left[0] -= 1
                if left[0] == 0 and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                result = plain(*args, **options)
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return call

        for name in STEPS:
            setattr(os, name, watched(getattr(os, name)))
        work()

    return not finished(started(counted))


def everywhere(work):
    """Kill a function before and after each of its steps; yield after every kill."""
    number = 1
    while killed_at_step(work, number, after=False):
        yield number, "before"
        assert killed_at_step(work, number, after=True)
        yield number, "after"
        number += 1
    assert number > 3, "there were no steps to be killed at"


def enough(hits):
    """Raise if all kills came too late to tell anything: on a busy machine some do."""
    assert any(hits), f"none of {len(hits)} kills met the work"


# ------------------------------------------------------------------------------------------------------------------ convert


def libsvm(path, rows, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, 6)).round(4).astype(str).tolist()
    columns = (1 + 7 * np.arange(6) + rng.integers(0, 7, (rows, 6))).tolist()
    lines = (
        f"{'+1' if k % 3 else '-1'} " + " ".join(f"{c}:{v}" for c, v in zip(own, text, strict=True)) + "\n"
        for k, (own, text) in enumerate(zip(columns, values, strict=True))
    )
    path.write_text("".join(lines))
    return path


def files(folder):
    """Return all that a folder holds, but for the name of the source."""
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".") or path.name == "lock") == []
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def leftovers(parent):
    return sorted(path.name for path in parent.iterdir() if path.name.startswith("."))


def readable_content(folder, allowed):
    """Raise unless the folder is absent with a clear error, or complete and one of those that are allowed."""
    try:
        opened = open_mapped(folder, verify=True)
    except FileNotFoundError as error:
        message = str(error)
    else:
        assert opened.X.shape[0] == len(opened.y)
        assert files(folder) in allowed
        return True
    assert "there is no folder" in message
    assert not leftovers(folder.parent) or "was interrupted: wait for it, or run it again" in message
    return False


def again(source, folder, expected):
    """Convert once more; all traces of what was killed are gone."""
    convert(source, folder, overwrite=True)
    assert leftovers(folder.parent) == []
    assert readable_content(folder, [expected])


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Return two files and what conversions give that nobody disturbs: first small ones, then large ones."""
    folder = tmp_path_factory.mktemp("sources")
    found = {}
    for size in (200, 120_000):
        paths = [libsvm(folder / f"{size}-{seed}", size, seed) for seed in (0, 1)]
        complete = [files(convert(path, folder / f"{path.name}-whole")) for path in paths]
        found[size] = list(zip(paths, complete, strict=True))
    return found


def test_a_conversion_that_is_killed_leaves_nothing_or_all(sources, tmp_path):
    rng = np.random.default_rng(0)
    (old, before), (new, after) = sources[120_000]
    own = tmp_path / "own"
    own.mkdir()
    usual = duration(lambda: convert(new, tmp_path / "measured"))
    hits, folder = [], own / "data"
    for trial in range(TRIALS):
        replacing = trial % 2 == 1  # a folder that is there, or none
        if replacing:
            convert(old, folder, overwrite=True)
        early = rng.random() < 0.5
        delay = usual * (rng.uniform(0.0, 0.9) if early else rng.uniform(0.7, 1.0))
        hits.append(killed(lambda: convert(new, folder, overwrite=True), delay))
        usual *= 1.0 if hits[-1] else TOO_LATE
        there = readable_content(folder, [before, after] if replacing else [after])
        assert there or hits[-1]
        again(new, folder, after)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    enough(hits)


@pytest.mark.parametrize("replacing", [False, True])
def test_a_conversion_may_be_killed_at_each_of_its_steps(replacing, sources, tmp_path):
    (old, before), (new, after) = sources[200]
    folder = tmp_path / "data"
    if replacing:
        convert(old, folder)
    for _ in everywhere(lambda: convert(new, folder, overwrite=True)):
        readable_content(folder, [before, after] if replacing else [after])
        again(new, folder, after)
        if replacing:
            again(old, folder, before)
        else:
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()


def test_a_folder_is_never_lost_while_it_is_replaced(sources, tmp_path):
    """Where the old one has been moved away and the new one is not there yet, a conversion that fails brings it back."""
    (old, before), (new, after) = sources[200]
    folder = tmp_path / "data"
    convert(old, folder)
    missing = 0
    for _ in everywhere(lambda: convert(new, folder, overwrite=True)):
        if not folder.exists():
            missing += 1
            with pytest.raises((ValueError, OSError)):
                convert(tmp_path / "no such file", folder, overwrite=True)
        assert readable_content(folder, [before, after])
        again(old, folder, before)
    assert missing > 0


def test_a_conversion_that_begins_where_another_ends_does_not_harm_it(sources, tmp_path, monkeypatch):
    """The second begins just before the first gives its folder the name, and is slow."""
    (one, first), (other, second) = sources[200]
    folder, rename, finish = tmp_path / "data", os.rename, RowsWriter.finish
    met, go = threading.Event(), threading.Event()

    def slow_finish(self, *args):
        met.set()
        go.wait(600)
        return finish(self, *args)

    def convert_other():
        with suppress(ValueError, OSError):  # the first is not done yet
            convert(other, folder)
        met.set()

    thread = threading.Thread(target=convert_other)

    def late_rename(source, target, **options):
        monkeypatch.setattr(os, "rename", rename)
        monkeypatch.setattr(RowsWriter, "finish", slow_finish)
        thread.start()
        met.wait(600)
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", late_rename)
    try:
        convert(one, folder)
        assert readable_content(folder, [first])
    finally:
        go.set()
        thread.join()
    assert readable_content(folder, [first, second])


# --------------------------------------------------------------------------------------------------------------------- save


@cache
def models():
    """Return two models whose files are large enough to take a while, and what they predict."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 30_000))
    y = (X[:, 0] + rng.standard_normal(60) > 0.3).astype(int)
    pair = [
        MeasureClassifier("balanced_accuracy", solver="lbfgs", alpha=alpha, threshold="train").fit(X, y)
        for alpha in (0.1, 1.0)
    ]
    return X, pair


def bits(clf):
    return clf.coef_.tobytes() + clf.intercept_.tobytes(), clf.alpha


def one_of(path):
    """Return which of the two models a file holds; raise if it is neither."""
    X, pair = models()
    loaded = load_model(path)
    which = [bits(clf) for clf in pair].index(bits(loaded))
    assert loaded.decision_function(X).tobytes() == pair[which].decision_function(X).tobytes()
    return which


def test_a_model_whose_saving_is_killed_is_the_old_or_the_new_one(tmp_path):
    rng, path, hits = np.random.default_rng([0, 1]), tmp_path / "model", []
    _, pair = models()
    saving = mmap.mmap(-1, 1)  # shared: 1 while a save is under way
    pair[0].save(path)

    def save_for_ever():
        for k in range(10**6):
            saving[0] = 1
            pair[(k + 1) % 2].save(path)
            saving[0] = 0

    for _ in range(TRIALS):
        saving[0] = 0
        assert killed(save_for_ever, rng.uniform(0.0, 0.1), begun=lambda: saving[0] == 1)
        hits.append(saving[0] == 1)
        one_of(path)
    enough(hits)
    pair[1].save(path)
    assert one_of(path) == 1


def test_a_save_may_be_killed_at_each_of_its_steps(tmp_path):
    path, (old, new) = tmp_path / "model", models()[1]
    old.save(path)
    found = []
    for _ in everywhere(lambda: new.save(path)):
        found.append(one_of(path))
        old.save(path)
    assert set(found) == {0, 1}
    assert found == sorted(found), "a later kill must not find an older model"


# -------------------------------------------------------------------------------------------------------------- checkpoints

FITS = {
    "smoothed": {"measure": "accuracy", "tol": 1e-3},
    "bundle_ocas": {"measure": "f1", "risk": "hinge", "tol": 1e-3},
    "cost_search": {"measure": "f1", "tol": 1e-9},
    "amp": {"measure": "f1", "tol": 1e-3},
    "stamp": {"measure": "f1"},
}


@cache
def rows():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2000, 20)) * np.logspace(0, 1, 20)
    return X, (X[:, 0] + X[:, 3] / 2 + 0.5 * rng.standard_normal(2000) > 1.5).astype(int)


def fitted(solver, path):
    options = {"checkpoint": Checkpoint(path, every=2, seconds=0)} | ({"passes": 100} if solver == "stamp" else {})
    clf = MeasureClassifier(solver=solver, solver_params=options, random_state=0, alpha=1e-4, **FITS[solver])
    return clf.fit(*rows())


def outcome(clf):
    numbers = clf.objective_, clf.lower_bound_, clf.n_iter_, clf.status_, clf.cost_
    return clf.coef_.tobytes(), clf.intercept_.tobytes(), repr(numbers)


@pytest.mark.parametrize("solver", FITS)
def test_training_that_is_killed_goes_on_to_the_same_bits(solver, tmp_path):
    rng = np.random.default_rng(len(solver))
    path = tmp_path / "own"
    expected = outcome(fitted(solver, tmp_path / "whole"))
    step = 1  # the first after which a checkpoint is there, however fast the machine is
    while not path.exists():
        assert killed_at_step(lambda: fitted(solver, path), step, after=True), "no step leaves a checkpoint"
        step += 1
    assert outcome(fitted(solver, path)) == expected
    usual, hits = duration(lambda: fitted(solver, path)), []
    for _ in range(TRIALS):
        hits.append(killed(lambda: fitted(solver, path), usual * rng.uniform(0.0, 0.8)))
        usual *= TOO_LATE if not hits[-1] else 1.0 if path.exists() else TOO_EARLY
        assert outcome(fitted(solver, path)) == expected
        assert not path.exists()
    enough(hits)


@pytest.mark.parametrize("solver", FITS)
def test_training_that_is_killed_again_and_again_comes_to_its_end(solver, tmp_path):
    path = tmp_path / "own"
    expected = outcome(fitted(solver, tmp_path / "whole"))
    usual = duration(lambda: fitted(solver, path))
    kills = 0
    for _ in range(6):
        hit = killed(lambda: fitted(solver, path), 0.3 * usual)
        kills, usual = kills + hit, usual * (1.0 if hit else TOO_LATE)
    assert kills > 0
    assert outcome(fitted(solver, path)) == expected


def test_training_may_be_killed_at_each_of_its_steps(tmp_path):
    path = tmp_path / "own"
    expected = outcome(fitted("cost_search", tmp_path / "whole"))
    for _ in everywhere(lambda: fitted("cost_search", path)):
        assert outcome(fitted("cost_search", path)) == expected
