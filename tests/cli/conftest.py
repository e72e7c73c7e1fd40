"""Small files that the commands are tried on, and the program itself as a function."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

from scoreline.cli.main import main

TRAIN = ("train", "payments.csv", "--label", "outcome", "--positive", "fraud")


def write_payments(path, rows, seed, countries=("AT", "DE", "US")):
    rng = np.random.default_rng(seed)
    amount, night, country = (
        rng.lognormal(3.0, 1.0, rows).round(2),
        rng.integers(0, 2, rows),
        rng.choice(countries, rows),
    )
    risk = -3.5 + 0.5 * np.log(amount) + 1.2 * night + 0.9 * (country == "US") + rng.logistic(0.0, 0.7, rows)
    lines = [
        f"{a},{n},{c},{'fraud' if r > 0 else 'fine'}" for a, n, c, r in zip(amount, night, country, risk, strict=True)
    ]
    path.write_text("amount,night,country,outcome\n" + "\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Return a folder with payments.csv, today.csv and two.svm, of which tests get copies."""
    place = tmp_path_factory.mktemp("written")
    write_payments(place / "payments.csv", 300, 0)
    write_payments(place / "today.csv", 100, 1, ("DE", "US", "CH"))
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (200, 6))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(0, 0.7, 200) > 1.2, 1, -1)
    (place / "two.svm").write_text(
        "".join(
            f"{t:+d} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(x)) + "\n" for x, t in zip(X, y, strict=True)
        )
    )
    return place


@pytest.fixture(scope="session")
def trained(written, tmp_path_factory):
    """Return the path of a model of payments.csv that ranks fraud."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(written)
        path = tmp_path_factory.mktemp("trained") / "model.npz"
        assert main([*TRAIN, "--out", str(path), "--quiet"]) == 0
    return path


@pytest.fixture
def folder(written, tmp_path, monkeypatch):
    """A working folder with payments.csv, today.csv and two.svm."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder, trained):
    """The name of a model of payments.csv, in the working folder."""
    return shutil.copy(trained, folder / "model.npz").name


@pytest.fixture
def scoreline(folder, capsys):
    """Run a command line in the folder; returns (exit code, standard output, standard error)."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def as_json(scoreline):
    """Run a command line with --json; returns the one object that it prints, read strictly."""

    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    def run(*arguments, code=0):
        got, out, _ = scoreline(*arguments, "--json")
        assert got == code
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=refuse)

    return run


@pytest.fixture
def program():
    """The command line as another process: (arguments to begin with, environment)."""
    return [sys.executable, "-c", "from scoreline.cli.main import entry; entry()"], {
        **os.environ,
        "OMP_NUM_THREADS": "1",
    }
