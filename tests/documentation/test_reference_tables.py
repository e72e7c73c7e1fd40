"""Reference pages, the man page and completions are what the code gives: options, measures, solvers."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
RENEW = "run: make update-docs"
tables = runpy.run_path(str(DOCS / "tables.py"))


@pytest.mark.parametrize("page", sorted(tables["MADE"]))
def test_the_tables_are_those_of_the_code(page):
    assert (DOCS / page).read_text(encoding="utf-8") == tables["renewed"](page), RENEW


def test_every_measure_and_solver_is_listed():
    import scoreline

    for page, infos in {"measures.md": scoreline.list_measures(), "solvers.md": scoreline.list_solvers()}.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        assert not [info.name for info in infos if text.count(f"\n| `{info.name}` |") != 1], page


def test_the_man_page_is_that_of_the_parser():
    assert (tables["SHARE"] / tables["MAN_PAGE"]).read_text(encoding="utf-8") == tables["man_page"](), RENEW
    if program := shutil.which("groff"):
        done = subprocess.run(
            [program, "-man", "-ww", "-z", str(tables["SHARE"] / tables["MAN_PAGE"])],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert not done.stderr


@pytest.mark.parametrize("shell", sorted(tables["COMPLETIONS"]))
def test_completions_know_every_option(shell):
    """Not compared to the character: versions of shtab differ."""
    text = (tables["SHARE"] / tables["COMPLETIONS"][shell]).read_text(encoding="utf-8")
    part = {"bash": r"_option_strings=\((.*?)\)$", "zsh": r"_options=\((.*?)^\)$"}[shell]
    parser = tables["make_parser"](list(tables["COMMANDS"]))
    for name, command in next(each.choices for each in parser._actions if each.nargs == "A...").items():
        found = re.search(rf"^_shtab_scoreline_{name}{part}", text, re.DOTALL | re.MULTILINE)
        own = {option for _, each in tables["options_of"](command) for option in each.option_strings}
        assert found is not None, f"{name} is missing; {RENEW}"
        words = set(re.findall(r"--[\w-]+", found[1])) - {"--help"}
        assert own <= words if shell == "zsh" else own == words, f"{name}; {RENEW}"  # zsh has the help texts


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("tra", "train"),
        ("train --pen", "--penalty"),
        ("train --penalty e", "elastic_net"),
        ("info pay", "payments.csv"),
    ],
)
def test_bash_completes(typed, offered, tmp_path):
    program = shutil.which("bash")
    if program is None:
        pytest.skip("there is no bash")
    (tmp_path / "payments.csv").write_text("")
    words = ["scoreline", *typed.split()]
    lines = [
        f"source {tables['SHARE'] / tables['COMPLETIONS']['bash']}",
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}",
        f"_shtab_scoreline scoreline {words[-1]} {words[-2]}",
        'echo "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(
        [program, "--norc", "-c", "\n".join(lines)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == [offered]
