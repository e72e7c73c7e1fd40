"""Make a release by one command: `make release VERSION=0.2.0`, on a clean clone of `main`.

    python .ci/release.py 0.2.0 [--checks "lint test"] [--no-sign]
    python .ci/release.py --tag v0.2.0

It sets the version and the dates, runs the checks, commits, and makes a signed tag. Nothing leaves this machine: the last
line is the command that pushes, and the pushed tag starts `.github/workflows/release.yml`, which publishes. If a check or
the signature fails, nothing is committed and the files are as before. `--tag` only compares a tag with the version.
"""

import argparse
import datetime
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, CITATION, CHANGES = "src/scoreline/__init__.py", "CITATION.cff", "CHANGELOG.md"
CHECKS = "lint test-all test-oldest docs dist"
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(?:a|b|rc)\d+)?")
UNRELEASED = re.compile(r"^## (?:\[?Unreleased\]?|\S+ \(unreleased\))$", re.MULTILINE)


def once(pattern, replacement, text):
    """Replace the only line that matches."""
    renewed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{count} lines match {pattern!r}, expected one")
    return renewed


def version_of(text):
    """Return the version in the text of the package."""
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]


def repository_of(project):
    """Return the address of the repository; raise if it is still the placeholder."""
    address = tomllib.loads(project)["project"]["urls"]["Repository"]
    if "/OWNER/" in address:
        raise ValueError("pyproject.toml has OWNER in its addresses; MAINTAINERS.md says how to set it")
    return address


def released_changes(text, version, day):
    """Return the changelog with what is unreleased under this version; raise if nothing is."""
    found = UNRELEASED.search(text)
    if found is None or not re.match(r"\s*(?!## )\S", text[found.end() :]):
        raise ValueError(f"{CHANGES} has no section 'Unreleased', or it is empty; say what is new")
    return text[: found.start()] + f"## {version} - {day}" + text[found.end() :]


def released_citation(text, version, day, address):
    """Return the citation file of this version."""
    text = once(r"^version: .*$", f"version: {version}", text)
    text = re.sub(r"^(?:date-released|repository-code): .*\n", "", text, flags=re.MULTILINE)
    added = f'version: {version}\ndate-released: "{day}"\nrepository-code: "{address}"\n'
    return text.replace(f"version: {version}\n", added, 1)


def renewed_files(version, day, root=ROOT):
    """Return {name: text} of the files that name the version or its date."""
    texts = {name: (root / name).read_text(encoding="utf-8") for name in (PACKAGE, CITATION, CHANGES, "pyproject.toml")}
    address = repository_of(texts["pyproject.toml"])
    return {
        PACKAGE: once(r'^__version__ = ".*"$', f'__version__ = "{version}"', texts[PACKAGE]),
        CITATION: released_citation(texts[CITATION], version, day, address),
        CHANGES: released_changes(texts[CHANGES], version, day),
    }


def git(*arguments):
    """Run git and return what it prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def check_clone(version):
    """Raise unless this is a clean clone on `main` without the tag."""
    if git("status", "--porcelain"):
        raise ValueError("there are changes that are not committed; commit or stash them")
    if (branch := git("branch", "--show-current")) != "main":
        raise ValueError(f"a release is made from main, and this is {branch or 'no branch'}")
    if git("tag", "--list", f"v{version}"):
        raise ValueError(f"the tag v{version} exists already; choose the next version")


def release(version, checks, sign):
    """Set the version, check, commit and tag."""
    if not VERSION.fullmatch(version or ""):
        raise ValueError(f"VERSION must look like 0.2.0 or 0.2.0rc1, got {version!r}")
    check_clone(version)
    renewed = renewed_files(version, datetime.date.today().isoformat())
    before = git("rev-parse", "HEAD")
    for name, text in renewed.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    try:
        for check in checks.split():
            print(f"make {check} ...", flush=True)
            subprocess.run(["make", check], cwd=ROOT, check=True)
        git("commit", "--message", f"Release {version}", *renewed)
        git("tag", "--sign" if sign else "--annotate", f"v{version}", "--message", f"scoreline {version}")
    except BaseException:
        git("reset", "--quiet", before)
        git("checkout", "--", *renewed)
        raise
    print(f"scoreline {version} is committed and tagged. To publish it:\n\n  git push origin main v{version}")


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?")
    parser.add_argument("--checks", default=CHECKS, help="make targets that must pass")
    parser.add_argument("--no-sign", action="store_true", help="a tag without a signature")
    parser.add_argument("--tag", help="only compare this tag with the version")
    options = parser.parse_args()
    try:
        if options.tag is None:
            release(options.version, options.checks, not options.no_sign)
        elif options.tag != f"v{(own := version_of((ROOT / PACKAGE).read_text(encoding='utf-8')))}":
            raise ValueError(f"the tag is {options.tag}, and the version of the package is {own}")
    except (ValueError, subprocess.CalledProcessError) as error:
        detail = (getattr(error, "stderr", None) or "").strip()
        sys.exit(f"no release: {error}{': ' + detail if detail else ''}")


if __name__ == "__main__":
    main()
