"""Command lines that once ended in a traceback, and hostile files where memory is short."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_cases import with_sparse

from cases import case
from scoreline.cli.main import main

# -------------------------------------------------------------------------------------------------------- command line

HUGE = "1" + "0" * 400
LINES = {
    "a number that no float holds": ["train", "rows.svm", "--alpha", HUGE],
    "a number of 5000 digits": ["train", "rows.svm", "--alpha", "9" * 5000],
    "a whole number that no float holds": ["train", "rows.svm", "--max-iter", HUGE],
    "a time that no float holds": ["train", "rows.svm", "--max-time", HUGE],
    "a parameter that no float holds": ["train", "rows.svm", "--measure", "fbeta", "--measure-param", f"beta={HUGE}"],
    "penalties that no float holds": ["compare", "rows.svm", "--alphas", f"1,{HUGE}"],
    "a damaged archive": ["info", "bad.npz"],
    "an index of 2^59": ["train", "wide.svm"],
    "NUL in a path": ["info", "a\0b"],
    "half of a surrogate pair": ["info", "\ud800"],
    "a long path": ["info", "a" * 5000],
}


def test_command_lines_that_once_ended_in_a_traceback(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("1 1:1\n-1 2:1\n" * 4)
    Path("wide.svm").write_text(f"1 {2**59}:1\n-1 2:1\n" * 4)
    Path("bad.npz").write_bytes(b"PK\x05\x06" + b"\xff" * 18)
    before = sorted(Path().iterdir())
    for name, words in LINES.items():
        with case(name):
            assert main(words) in (1, 2)
            assert "scoreline: error: " in capsys.readouterr().err
            assert sorted(Path().iterdir()) == before


def test_names_in_a_file_do_not_speak_to_the_terminal(tmp_path, capsys):
    """Was: a column named by an escape sequence was printed as it is."""
    path = tmp_path / "table.csv"
    path.write_text("\x1b[2Ja,b\x9b31m,y\n1,\x07,\x1b]0;title\x07\n2,x,no\n" * 1)
    for words in (
        ["info", path, "--label", "y"],
        ["info", path, "--label", "\x1b[2Jz"],
        ["train", path, "--label", "y", "--out", tmp_path / "model.npz"],
    ):
        main([*map(str, words)])
        out, err = capsys.readouterr()
        assert not set(out + err) & {"\x1b", "\x07", "\x9b"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are those of Linux")
@pytest.mark.parametrize("kind", ["model", "text", "npz"])
def test_hostile_files_are_refused_where_memory_is_short(kind, tmp_path):
    """With 1.5 GB beyond what the interpreter has: an error of ours, no MemoryError from somewhere, no crash."""
    if kind == "model":
        (tmp_path / "file").write_bytes(with_sparse([[2**27 - 1]] * 3))
        call = "from scoreline import load_model as read"
    elif kind == "text":
        (tmp_path / "file").write_bytes(b"1 4294967296:1\n-1 1:1\n")
        call = "from scoreline.io import convert\nread = lambda path: convert(path, path + '.mapped')"
    else:
        np.savez_compressed(tmp_path / "file.npz", X=np.zeros((1 << 15, 1 << 12)))
        call = "from scoreline.io import read_data as read"
    path = next(tmp_path.iterdir())
    code = f"""
import resource, scoreline.cli.train
{call}
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (3 << 29), resource.RLIM_INFINITY))
try:
    read({str(path)!r})
except ValueError as error:
    assert {path.name!r} in str(error)
    print("refused")
"""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "refused", done.stderr[-2000:]
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
