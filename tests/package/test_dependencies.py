"""What is needed and under which licence: the table of the documentation, pyproject.toml and the packages agree."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LARGE = {"boost", "torch"}  # gigabytes, which `all` leaves out
EXTRAS = ("boost", "cli", "dask", "gpu", "io", "onnx", "plot", "torch")
COPYLEFT = re.compile(r"\b(?:[AL]?GPL|GNU|EUPL|CDDL)\b", re.IGNORECASE)


def name_of(requirement):
    return re.match(r"[A-Za-z0-9_-]+", requirement).group()


def wanted():
    """Return every package that a user can be asked to install, and by what."""
    found = {name_of(line): {"the package"} for line in PROJECT["dependencies"]}
    for extra in EXTRAS:
        for line in PROJECT["optional-dependencies"][extra]:
            found.setdefault(name_of(line), set()).add(f"`scoreline[{extra}]`")
    return found


def table():
    rows = re.findall(
        r"^\| ([a-z][a-z0-9-]*) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/dependencies.md").read_text(), re.M
    )
    return {name: (set(by.split(", ")), licence) for name, by, licence in rows if name != "package"}


def test_the_table_is_that_of_the_project():
    assert {name: by for name, (by, _) in table().items()} == wanted()


@pytest.mark.slow
def test_licences_are_those_of_the_packages():
    installed = {each.name.lower().replace("_", "-"): each.metadata for each in importlib.metadata.distributions()}
    for name in wanted():
        package = installed.get(name)
        if package is None:
            continue  # extras need not be installed
        classifiers = [line for line in package.get_all("Classifier") or [] if line.startswith("License")]
        text = " ".join([package.get("License-Expression") or "", (package.get("License") or "")[:200], *classifiers])
        assert not COPYLEFT.search(text), name
        if Version(package["Version"]) == Version(lower_limits()[name]):
            continue  # the table is that of newer versions: packages change how they write their licence
        assert table()[name][1].casefold() in text.casefold(), (name, text)
    assert set(map(name_of, PROJECT["dependencies"])) <= set(installed)


def test_every_extra_is_of_a_user_or_of_a_developer():
    assert PROJECT["optional-dependencies"]["all"] == [f"scoreline[{','.join(sorted({*EXTRAS} - LARGE))}]"]
    assert set(PROJECT["optional-dependencies"]) - {*EXTRAS, "all"} == {
        "test",
        "doc",
        "rivals",
        "bench",
        "fuzz",
        "quality",
    }


@cache
def lower_limits():
    done = subprocess.run([sys.executable, str(ROOT / ".ci/oldest.py")], capture_output=True, text=True, check=True)
    return dict(line.split("==") for line in done.stdout.splitlines())


@pytest.mark.slow
def test_the_lower_limits_can_be_asked_for():
    pins = lower_limits()
    assert set(pins) == set(wanted()) | {"onnx", "pandas"}  # the two come with others, and must be of their time
    listed = re.sub(r"\[[^\]]*\]", "", " ".join(requirements()))
    assert all(f"{name}>={pins[name]}" in listed for name in wanted())


def requirements():
    return [*PROJECT["dependencies"], *(line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra])]
