"""Standard output that is closed, full, or interrupted: an exit code and a message, within this process."""

import errno
import io
import os
import sys

from cases import for_each
from scoreline.cli.main import main

TRAIN = ("train", "payments.csv", "--label", "outcome")
COMMANDS_THAT_PRINT = {
    "predict": ("predict", "model.npz", "payments.csv"),
    "export": ("export", "model.npz", "--to", "json"),
    "evaluate": ("evaluate", "model.npz", "payments.csv", "--label", "outcome"),
    "info": ("info", "payments.csv", "--label", "outcome"),
    "measures": ("measures",),
}


@for_each("command", ["evaluate", "info", "measures", "export"])
def test_results_need_a_standard_output(model, monkeypatch, capsys, command):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert main([*COMMANDS_THAT_PRINT[command], "--json"]) == 1
    assert "standard output is closed" in capsys.readouterr().err


class FullDisk(io.RawIOBase):
    """A raw stream that takes some bytes, the last of them by a short write, and then no more."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def writable(self):
        return True

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(len(data), self.room)
        self.room -= taken
        return taken


@for_each("options", [(), ("--json",)])
@for_each("command", COMMANDS_THAT_PRINT)
def test_a_short_write_to_standard_output_is_an_error(model, monkeypatch, capsys, command, options):
    # As PYTHONUNBUFFERED=1 makes it: text straight to a raw stream, whose short writes Python ignores.
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(FullDisk(10), "utf-8", write_through=True))
        assert main([*COMMANDS_THAT_PRINT[command], *options]) == 1
        assert not sys.stdout.closed  # it belongs to the caller
    err = capsys.readouterr().err
    assert "standard output: No space left" in err
    assert "predictions" not in err


def test_a_write_that_fails_when_the_file_is_closed_is_an_error(monkeypatch, capsys, folder):
    def full(handle):
        really(handle)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    really = os.close
    with (folder / "out.csv").open("w") as file, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", file)
        patch.setattr("scoreline.cli.output.os.close", full)
        assert main(["measures"]) == 1
    assert f"standard output: {os.strerror(errno.EDQUOT)}" in capsys.readouterr().err


def test_ctrl_c_while_reading_leaves_nothing(folder, scoreline, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("scoreline.cli.reading.read_data", pressed)
    code, out, err = scoreline(*TRAIN)
    assert (code, out, err) == (130, "", "scoreline: error: interrupted\n")
    assert not (folder / "model.npz").exists()
