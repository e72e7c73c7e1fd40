"""Small files that the verbs are tried on, and the program itself as a function."""

import json
import os
import sys

import numpy as np
import pytest

from scoreline.cli.main import main


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with payments.csv, today.csv and two.svm."""
    monkeypatch.chdir(tmp_path)
    write_payments(tmp_path / "payments.csv", 300, 0)
    write_payments(tmp_path / "today.csv", 100, 1, ("DE", "US", "CH"))
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (200, 6))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(0, 0.7, 200) > 1.2, 1, -1)
    (tmp_path / "two.svm").write_text(
        "".join(
            f"{t:+d} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(x)) + "\n" for x, t in zip(X, y, strict=True)
        )
    )
    return tmp_path


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
