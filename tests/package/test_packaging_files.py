"""The files that other services read: they parse, and what they name exists."""

import re
import tomllib
from pathlib import Path

import jinja2  # comes with distributed
import pytest
import yaml

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
COMMANDS = {path.stem for path in (ROOT / "src/scoreline/cli").glob("*.py")}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def steps_of_image():
    """Return (instruction, arguments) of each line of the Dockerfile."""
    lines = [line for line in read("packaging/Dockerfile").splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_image_runs_the_demo_without_the_rights_of_root():
    steps = steps_of_image()
    last = max(k for k, (name, _) in enumerate(steps) if name == "FROM")
    final = dict(steps[last:])
    assert re.fullmatch(r"python:3\.\d+-slim", final["FROM"])
    assert final["USER"] not in ("root", "0")
    users = [k for k, (name, _) in enumerate(steps) if name == "USER"]
    assert not [text for name, text in steps[users[-1] :] if name in ("ADD", "COPY")]
    assert f"--uid {final['USER']} " in " ".join(text for _, text in steps[last : users[-1]])
    assert final["ENTRYPOINT"] == '["scoreline"]'
    assert yaml.safe_load(final["CMD"])[:2] == ["compare", "demo:breast-cancer"]
    assert "compare" in COMMANDS


def test_the_image_is_built_from_files_and_extras_that_exist():
    (line,) = (text for _, text in steps_of_image() if "pip install" in text)
    assert re.search(r'"\.\[(\w+)\]"', line)[1] in PROJECT["optional-dependencies"]
    context = [line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")]
    assert all((ROOT / name).exists() for name in context)
    build = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", *PROJECT["license-files"], *build["packages"], *build["shared-data"]}
    hooks = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]
    needed |= {each["path"] for each in hooks["fancy-pypi-readme"]["fragments"]}
    assert all(any(name == each or name.startswith(f"{each}/") for each in context) for name in needed)


def test_the_conda_recipe_has_what_the_project_needs():
    folder = ROOT / "packaging/conda"

    def table(name, from_recipe_dir):
        assert from_recipe_dir
        return tomllib.loads((folder / name).read_text(encoding="utf-8"))

    def found(name, pattern, from_recipe_dir):
        assert from_recipe_dir
        return re.search(pattern, (folder / name).read_text(encoding="utf-8"))

    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(read("packaging/conda/meta.yaml"))
    recipe = yaml.safe_load(template.render(load_file_data=table, load_file_regex=found, PYTHON="python"))
    assert recipe["package"]["name"] == PROJECT["name"]
    assert f'__version__ = "{recipe["package"]["version"]}"' in read("src/scoreline/__init__.py")
    assert (folder / recipe["source"]["path"] / "pyproject.toml").is_file()
    assert (ROOT / recipe["about"]["license_file"]).is_file()

    def plain(line):
        return line.replace(" ", "")

    listed = {plain(line) for line in recipe["requirements"]["run"]}
    needed = {f"python{PROJECT['requires-python']}", *PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]}
    assert listed == needed
    assert set(PYPROJECT["build-system"]["requires"]) <= {plain(line) for line in recipe["requirements"]["host"]}
    assert {line.split()[1] for line in recipe["test"]["commands"]} <= COMMANDS


@pytest.mark.parametrize("name", [".pre-commit-config.yaml", ".readthedocs.yaml"])
def test_the_services_run_targets_of_the_makefile(name):
    content = yaml.safe_load(read(name))
    if "repos" in content:
        lines = [hook["entry"] for repo in content["repos"] for hook in repo["hooks"]]
        assert all(line.startswith("make ") for line in lines)
    else:
        lines = [line for line in content["build"]["commands"] if line.startswith("make ")]
        version = content["build"]["tools"]["python"]
        assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
        assert "_build/html" in " ".join(content["build"]["commands"])
    assert lines
    assert {target for line in lines for target in line.split()[1:]} <= TARGETS


def test_updates_are_asked_for_where_versions_are_named():
    updates = yaml.safe_load(read(".github/dependabot.yml"))["updates"]
    files = {"github-actions": ".github/workflows", "pip": "pyproject.toml", "docker": "Dockerfile"}
    for each in updates:
        assert (ROOT / each["directory"].strip("/") / files[each["package-ecosystem"]]).exists()
    assert {each["package-ecosystem"] for each in updates} == set(files)
