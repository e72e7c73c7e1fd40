"""The notebooks of the tutorials are valid, and run from top to bottom in an empty folder."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

DOCS = Path(__file__).parents[2] / "docs"
maker = runpy.run_path(str(DOCS / "notebooks.py"))
PAGES = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in maker["TUTORIALS"]}
# A cell as IPython would run it: a line that begins with ! goes to the shell.
RUNNER = """
import json, subprocess, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        continue
    if source.startswith("!"):
        for line in source.splitlines():
            subprocess.run(["bash", "-o", "pipefail", "-c", line[1:]], check=True)
    else:
        exec(compile(source, sys.argv[1], "exec"), names)
"""


def test_notebooks_are_valid_and_complete():
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    tutorials = re.search(r":caption: Tutorials\n(?::.*\n)*\n((?:\w+\n)+)", front)[1].split()
    assert tutorials == list(maker["TUTORIALS"])
    for name, page in PAGES.items():
        made = maker["notebook"](page)
        nbformat.validate(made)
        sources = ["".join(cell["source"]) for cell in made["cells"]]
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        shell = re.findall(r"^\$ (.*)$", page, re.MULTILINE)
        code = [source for source, cell in zip(sources, made["cells"], strict=True) if cell["cell_type"] == "code"]
        assert [source for source in code if not source.startswith("!")] == [block.strip("\n") for block in blocks], (
            name
        )
        assert [line for source in code if source.startswith("!") for line in source.splitlines()] == [
            f"!{line}" for line in shell
        ], name
        assert not [source for source in sources if re.search(r"\.md\b|\{download\}", source)], name
        assert f"notebooks/{name}.ipynb" in page, "the page offers its notebook"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PAGES))
def test_notebook_runs_from_top_to_bottom(name, tmp_path):
    file = tmp_path / f"{name}.ipynb"
    file.write_text(json.dumps(maker["notebook"](PAGES[name])), encoding="utf-8")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-c", RUNNER, str(file)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
