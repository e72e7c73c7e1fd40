"""A release is one command, which changes the version and the dates or nothing."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / ".ci/release.py"))
FILES = (SCRIPT["PACKAGE"], SCRIPT["CITATION"], SCRIPT["CHANGES"], "pyproject.toml", ".ci/release.py")


def git(folder, *arguments):
    own = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path):
    """Return a small repository with what a release reads, an account, and a Makefile whose checks pass or fail."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace("/OWNER/", "/somebody/"))
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-01\n")
    (tmp_path / "Makefile").write_text("good:\n\t@true\nbad:\n\t@false\n")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for name, value in (
        ("user.name", "A"),
        ("user.email", "a@b"),
        ("tag.gpgSign", "false"),
        ("commit.gpgSign", "false"),
    ):
        git(tmp_path, "config", name, value)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def release(folder, *arguments):
    line = [sys.executable, str(folder / ".ci/release.py"), *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_a_release_sets_version_and_dates(clone):
    done = release(clone, "7.1.0", "--checks", "good", "--no-sign")
    assert done.returncode == 0, done.stderr
    assert "git push origin main v7.1.0" in done.stdout
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "tag", "--list") == "v7.1.0"
    assert '__version__ = "7.1.0"\n' in (clone / SCRIPT["PACKAGE"]).read_text()
    citation = (clone / "CITATION.cff").read_text()
    assert "\nversion: 7.1.0\ndate-released: " in citation
    assert 'repository-code: "https://github.com/somebody/scoreline"' in citation
    changes = (clone / "CHANGELOG.md").read_text()
    assert "## 7.1.0 - 20" in changes
    assert "Unreleased" not in changes
    assert release(clone, "--tag", "v7.1.0").returncode == 0
    assert "version of the package is 7.1.0" in release(clone, "--tag", "v7.2.0").stderr
    again = release(clone, "7.1.0", "--checks", "good", "--no-sign")
    assert "the tag v7.1.0 exists" in again.stderr


def test_a_failed_check_leaves_everything_as_it_was(clone):
    before = git(clone, "rev-parse", "HEAD")
    done = release(clone, "7.1.0", "--checks", "good bad", "--no-sign")
    assert done.returncode != 0
    assert git(clone, "status", "--porcelain") == ""
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "tag", "--list")) == (before, "")


def test_a_failed_signature_leaves_everything_as_it_was(clone):
    git(clone, "config", "gpg.program", "false")
    before = git(clone, "rev-parse", "HEAD")
    done = release(clone, "7.1.0", "--checks", "good")
    assert done.returncode != 0
    assert git(clone, "status", "--porcelain") == ""
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "tag", "--list")) == (before, "")
    assert release(clone, "7.1.0", "--checks", "good", "--no-sign").returncode == 0


def test_a_release_is_refused_with_the_reason(clone):
    assert "must look like" in release(clone, "next").stderr
    with pytest.raises(ValueError, match="OWNER"):
        SCRIPT["repository_of"]((ROOT / "pyproject.toml").read_text().replace("/somebody/", "/OWNER/"))
    (clone / "notes").write_text("")
    assert "not committed" in release(clone, "7.1.0").stderr
    (clone / "notes").unlink()
    (clone / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-01-01\n")
    git(clone, "commit", "--all", "--quiet", "--message", "empty")
    assert "say what is new" in release(clone, "7.1.0").stderr
    git(clone, "checkout", "--quiet", "-b", "other")
    assert "made from main" in release(clone, "7.1.0").stderr


def test_the_changelog_of_today_can_be_released():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if SCRIPT["UNRELEASED"].search(text):
        assert "## 9.9.9 - 2030-01-01" in SCRIPT["released_changes"](text, "9.9.9", "2030-01-01")
