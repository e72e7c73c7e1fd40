"""Every target of fuzz/ on its seeds, on changed seeds, and on inputs that once failed: read, or refused by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.changes import Draw, changed, changed_bytes, mutations
from fuzz.table import refused
from fuzz.targets import TARGETS
from hypothesis import given
from hypothesis import strategies as st

from cases import case
from tiers import examples

ROOT = Path(__file__).parents[2]
COSTLY = {
    "arguments",
    "checkpoint_content",
    "mapped_header",
    "model_content",
    "csv",
}  # milliseconds each: fewer of them

# Inputs that failed once, as small as they could be made: what happened is in the comment.
FAILED = {
    # Text that is not UTF-8 in a row of the wrong length: the decoder's own error, without the name of the file.
    "csv not UTF-8, ragged": ("csv", b'a,y\n1,2\n"\xff",2,3\n'),
    # A name longer than file systems take: "File name too long" from deep inside.
    "a long name": ("named", b"a" * 300),
    "a name that is no text": ("named", b"\xff" * 3),
    # An array file without a byte: EOFError of NumPy.
    "an empty array file": ("mapped_content", b'\x13\xa1"S\x00\x00\x13\xa1'),
    # Indices in a column of one: taken, and the compiler of the kernels failed at the first product.
    "indices of two dimensions": ("mapped_content", b"ow)Zuz\x06\x85u:u"),
    # 2^31 as the only index: 34 GB for the largest magnitudes of columns that are not there, killed for want of memory.
    "an index of 2^31": ("libsvm_converted", b"1 2147483648:1\n-1 1:1\n"),
    "an index of 2^33 - 1": ("libsvm_converted", b"1 8589934591:1\n-1 1:1\n"),
}


def test_seeds_are_read_or_refused():
    for name, target in TARGETS.items():
        for raw in target.seeds():
            with case((name, raw)):
                target.run(raw)


def test_what_failed_once_does_not_fail_again():
    for story, (name, raw) in FAILED.items():
        with case(story):
            TARGETS[name].run(raw)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_seeds_are_read_or_refused(name):
    seeds = list(TARGETS[name].seeds())
    inputs = st.integers(0, 2**48).map(lambda number: mutations(seeds, number)) | st.binary(max_size=60)

    @examples(300 if name in COSTLY else 800)
    @given(raw=inputs)
    def check(raw):
        TARGETS[name].run(raw)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["libsvm", "libsvm_packed", "libsvm_converted", "mapped_content", "model_content"])
def test_kernels_stay_inside_their_arrays(name):
    """As plain Python functions, where an index out of range is an error and not a look at other memory."""
    code = (
        "from fuzz.targets import TARGETS\nfrom fuzz.changes import mutations\n"
        f"target = TARGETS[{name!r}]; seeds = list(target.seeds())\n"
        "for k in range(200): target.run(seeds[k] if k < len(seeds) else mutations(seeds, k))\nprint('all', k)"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "all 199"


# --------------------------------------------------------------------------------------------------------- the fuzzer itself


def test_a_target_that_fails_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match="does not name"), refused(tmp_path / "file"):
        raise ValueError("something is wrong")
    with pytest.raises(KeyError), refused(tmp_path):
        raise KeyError(str(tmp_path))
    with refused(tmp_path):
        raise ValueError(f"{tmp_path} is wrong")


@examples(100)
@given(raw=st.binary(max_size=60))
def test_decisions_end_whatever_the_bytes_are(raw):
    content = {"a": [1, 2.0, {"b": "c"}], "d": (), "e": None}
    changed(Draw(raw), content)
    changed_bytes(Draw(raw), b"some bytes")
    assert content == {"a": [1, 2.0, {"b": "c"}], "d": (), "e": None}, "a seed was changed"


@pytest.mark.slow
def test_the_runner_finds_inputs_without_atheris(tmp_path):
    hidden = {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    (tmp_path / "atheris.py").write_text("raise ImportError\n")
    options = ["--target", "named", "--runs", "20", "--corpus", str(tmp_path / "corpus")]
    words = [sys.executable, str(ROOT / "fuzz" / "run.py"), *options]
    done = subprocess.run(words, env=os.environ | hidden, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "atheris is not installed" in done.stdout
    assert "20 inputs, none failed" in done.stdout
