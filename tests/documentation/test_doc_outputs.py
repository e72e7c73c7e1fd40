"""Pages that show outputs print what stands there, Python and commands.

`make update-docs` writes the outputs that differ again, with what differs between machines elided.
"""

import contextlib
import importlib.util
import io
import os
import re
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "quickstart.md",
    "imbalanced.md",
    "production.md",
    "set_threshold.md",
    "does_it_pay.md",
    "compare.md",
    "scorecards.md",
)
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)

spec = importlib.util.spec_from_file_location(
    "command_line_page", Path(__file__).parents[1] / "cli" / "test_command_line_page.py"
)
page_runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page_runner)


def run(text, names):
    """Return what a block of Python prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "page", "exec"), names)
    return out.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_what_happens(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page_runner.hide_what_depends_on_speed(monkeypatch.setattr)
    names, count = {}, 0
    for kind, text, expected in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        pairs = [(text, expected)] if kind == "python" else page_runner.commands(text)
        for what, shown in pairs:
            got = run(what, names) if kind == "python" else page_runner.printed(what)
            count += bool(got)
            if not page_runner.matches(shown, got):
                pytest.fail(f"{what}\nexpected:\n{shown}\ngot:\n{got}")
    assert count


def renewed(match, names):
    if match[1] == "python":
        got = run(match[2], names)
        if page_runner.matches(match[3] or "", got):
            return match[0]
        got = page_runner.elided(got) if "interval" in got else got
        return f"```python\n{match[2]}```" + (f"\n\n```text\n{got}```" if got else "")
    return f"```console\n{page_runner.renewed_commands(match[2])}```"


if __name__ == "__main__":
    page_runner.hide_what_depends_on_speed(setattr)
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            scope: dict = {}
            page = (DOCS / name).read_text(encoding="utf-8")
            (DOCS / name).write_text(
                BLOCK.sub(lambda match, scope=scope: renewed(match, scope), page), encoding="utf-8"
            )
