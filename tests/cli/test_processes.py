"""The program in a process of its own: closed pipes and files, full disks, Ctrl-C, kill -9."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from cases import for_each
from scoreline.classifier import load_model

pytestmark = pytest.mark.slow
COMMANDS_THAT_PRINT = {
    "predict": ("predict", "model.npz", "payments.csv"),
    "export": ("export", "model.npz", "--to", "json"),
    "info": ("info", "payments.csv", "--label", "outcome"),
}
PATIENCE = 600.0  # seconds, so that a busy machine fails no test; only a process that hangs takes as long
TRAIN = ("train", "payments.csv", "--label", "outcome")
LONG = ("train", "large.npz", "--alpha", "1e-9", "--tol", "1e-12", "--max-iter", "1000000")
# A million slow steps, which no processor does before the signal comes; `smoothed` ends by rounding after some seconds.
ENDLESS = (*LONG, "--solver", "accelerated")


@pytest.fixture
def begun(program, folder):
    """Begin a command line; returns the process. What still runs at the end of the test is killed."""
    start, environment = program
    processes = []

    def run(*arguments, **options):
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment, "text": True, **options}
        processes.append(subprocess.Popen([*start, *arguments], **given))
        return processes[-1]

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def large(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(20_000, 30))
    np.savez(
        folder / "large.npz", X=X, y=np.where(X[:, :10].sum(axis=1) + 10 * rng.standard_normal(20_000) > 10, 1, -1)
    )


def waited_for(process, path=None, seconds=PATIENCE):
    """Wait until training is under way: until it has said what it has read, or a file is there."""
    if path is None:
        assert "read 20,000 rows" in process.stderr.readline()
        while "iteration" not in (line := process.stderr.readline()):  # progress is told every few seconds
            assert line, "the program has ended"
        return
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)


def test_a_reader_that_leaves_early_is_no_error(begun, model):
    for arguments in (("predict", "model.npz", "payments.csv"), ("measures",), ("--help",)):
        process = begun(*arguments)
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert "rror" not in process.stderr.read()


def test_messages_that_nobody_reads_do_not_stop_the_work(begun, folder):
    process = begun(*TRAIN, "--test", "today.csv")
    process.stderr.close()
    assert process.wait(PATIENCE) == 0
    assert (folder / "model.npz").exists()


@for_each("closed", [0, 1, 2])
def test_closed_streams(begun, folder, closed):
    (folder / "model.npz").unlink(missing_ok=True)
    process = begun(*TRAIN, "--test", "today.csv", "--json", preexec_fn=lambda: os.close(closed))
    out, err = process.communicate(timeout=PATIENCE)
    if process.returncode and closed == 2:
        bare = [sys.executable, "-c", "import numpy.f2py"]
        if subprocess.run(bare, preexec_fn=lambda: os.close(2), check=False).returncode:
            pytest.skip("this NumPy, and SciPy with it, cannot be imported without standard error")
    assert process.returncode == 0
    assert "Traceback" not in err
    assert load_model(folder / "model.npz").coef_.shape[1] == 5
    if closed != 1:
        assert json.loads(out)["model"] == "model.npz"


def test_predictions_to_a_closed_standard_output_fail(begun, model):
    process = begun("predict", "model.npz", "payments.csv", preexec_fn=lambda: os.close(1))
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "--out" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@for_each("unbuffered", ["", "1"])
def test_standard_output_on_a_full_disk(begun, model, program, unbuffered):
    for command in ("predict", "export"):
        with open("/dev/full", "w") as full:
            process = begun(
                *COMMANDS_THAT_PRINT[command], stdout=full, env={**program[1], "PYTHONUNBUFFERED": unbuffered}
            )
            err = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 1
        assert "standard output: No space left" in err
        assert "Traceback" not in err
        assert "Exception" not in err


@for_each("unbuffered", ["", "1"])
def test_classes_that_the_encoding_of_standard_output_lacks(begun, scoreline, folder, program, unbuffered):
    text = (folder / "payments.csv").read_text().replace("fraud", "Betrügerei")
    (folder / "payments.csv").write_text(text, encoding="utf-8")
    scoreline(*TRAIN)
    env = {**program[1], "PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": unbuffered}
    for command in ("predict", "export"):  # programs read these: an escape would be another class
        process = begun(*COMMANDS_THAT_PRINT[command], env=env)
        err = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 1
        assert "standard output has the encoding ascii, which has no 'ü'" in err.replace("\\xfc", "ü")
        assert "PYTHONIOENCODING=utf-8, or name a file with --out" in err
    process = begun(*COMMANDS_THAT_PRINT["info"], env=env)  # people read this
    out = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0
    assert "Betr\\xfcgerei" in out
    process = begun(*COMMANDS_THAT_PRINT["predict"], "--out", "out.csv", env=env)
    assert process.wait(PATIENCE) == 0
    assert "Betrügerei" in (folder / "out.csv").read_text(encoding="utf-8")


def test_all_of_an_unbuffered_standard_output_is_written(begun, scoreline, program, model):
    process = begun(*COMMANDS_THAT_PRINT["predict"], env={**program[1], "PYTHONUNBUFFERED": "1"})
    assert process.communicate(timeout=PATIENCE)[0] == scoreline(*COMMANDS_THAT_PRINT["predict"])[1]
    assert process.returncode == 0


@for_each("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_the_best_model_so_far(begun, folder, large, number):
    (folder / "model.npz").unlink(missing_ok=True)
    process = begun(*ENDLESS)
    waited_for(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the best model so far is saved in model.npz" in err
    assert "interrupted after" in out
    clf = load_model(folder / "model.npz")
    assert clf.status_ == "interrupted"
    assert clf.lower_bound_ <= clf.objective_


def test_kill_and_run_again_ends_with_the_same_bits(begun, folder, large):
    # Iterations: enough for the first checkpoint, which is written after ten seconds at most.
    fit = (*LONG[:-1], "1000")
    assert begun(*fit, "--out", "whole.npz", "--checkpoint", "whole.ckpt").wait(PATIENCE) == 0
    process = begun(*fit, "--out", "killed.npz", "--checkpoint", "killed.ckpt")
    waited_for(process, folder / "killed.ckpt")
    process.kill()
    process.wait(PATIENCE)
    assert not (folder / "killed.npz").exists()
    assert begun(*fit, "--out", "killed.npz", "--checkpoint", "killed.ckpt").wait(PATIENCE) == 0
    uninterrupted, killed = load_model(folder / "whole.npz"), load_model(folder / "killed.npz")
    assert np.array_equal(uninterrupted.coef_, killed.coef_)
    assert np.array_equal(uninterrupted.intercept_, killed.intercept_)
    assert uninterrupted.n_iter_ == killed.n_iter_


@pytest.fixture
def small_disk(tmp_path_factory):
    """A file system of 64 kB, almost full."""
    place = tmp_path_factory.mktemp("disk")
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False).returncode
    ):
        pytest.skip("mounting is not permitted")
    try:
        (place / "old").write_text("old")
        with suppress(OSError), (place / "fill").open("wb", buffering=0) as file:
            for _ in range(1000):
                file.write(bytes(1024))
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_leaves_what_was_there(small_disk, scoreline, model):
    disk = small_disk
    for arguments in (
        (*TRAIN, "--out", disk / "old"),
        (*TRAIN, "--report", disk / "old"),
        ("predict", "model.npz", "today.csv", "--out", disk / "old"),
        ("convert", "payments.csv", disk / "folder", "--label", "outcome"),
    ):
        code, _, err = scoreline(*arguments)
        assert code == 1
        assert "No space left" in err
        assert str(disk) in err
        assert sorted(path.name for path in disk.iterdir()) == ["fill", "old"]
        assert (disk / "old").read_text() == "old"


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "scoreline", "measures"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "roc_auc" in done.stdout
