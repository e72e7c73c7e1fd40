"""`scoreline doctor` describes the installation and says what is missing."""

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import scoreline
from scoreline.cli import doctor
from scoreline.cli.main import main

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def found(capsys):
    assert main(["doctor", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_versions_and_packages_are_those_of_the_project(found):
    assert found["versions"]["scoreline"] == scoreline.__version__
    assert found["versions"]["python"].endswith(" ".join([sys.version.split()[0]]))
    for line in PROJECT["dependencies"]:
        assert found["versions"][line.partition(">")[0]] == metadata.version(line.partition(">")[0])
    lines = " ".join(
        line
        for extra in ("boost", "cli", "dask", "gpu", "io", "onnx", "plot", "torch")
        for line in PROJECT["optional-dependencies"][extra]
    )
    assert found["optional_packages"]
    assert all(name in lines for name in found["optional_packages"])
    assert found["optional_packages"]["matplotlib"] == metadata.version("matplotlib")
    assert int(found["processor"]["threads of a fit"]) >= 1
    assert "kernels" in found["caches"]["compiled kernels"]


def test_what_is_missing_and_wrong_is_said(monkeypatch, capsys):
    def version(name):
        if name in ("rich", "onnxruntime"):
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("SCORELINE_DATA", str(Path("~/secret").expanduser()))
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert "missing: pip install 'scoreline[cli]'" in output
    assert "missing: pip install 'scoreline[onnx]'" in output
    assert "NUMBA_DISABLE_JIT is set" in output
    assert "set NUMBA_CACHE_DIR" in output
    assert "not writable" in output
    assert "  ~/secret" in output


def test_a_damaged_package_is_a_finding(monkeypatch, capsys):
    def damaged():
        raise OSError("libcuda.so.1: file too short")

    monkeypatch.setattr(doctor, "_torch", damaged)
    assert main(["doctor"]) == 0
    assert "cannot be used: OSError: libcuda.so.1: file too short" in capsys.readouterr().out
