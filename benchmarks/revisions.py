"""Is a revision slower than another? The same cases in two processes, one for each revision, taking turns.

    python benchmarks/revisions.py --base origin/main [--head .] [--cases "risk;fit"] [--relative 1.10] [--absolute-ms 2.0]

Either revision is unpacked into a folder of its own and runs in a process of its own with its own compiled kernels; "." is the
working tree as it is now. The cases (`kernel_cases.py`) come from the head for both, so that both do the same. A base whose
modules had other names runs its own cases instead, matched by name, and the output says so. Rounds alternate (base head, head
base, ...), and the ratio is the median of those of the rounds: a disturbance of the machine hits both.

A case is "slower" only if its ratio exceeds --relative AND its difference exceeds --absolute-ms AND the interval of the ratio
(bootstrap, 95 %) lies above half of what --relative allows AND all of that happens again in two fresh processes. A short call
that has become 30 % slower thus passes, as does a long fit that has become 1 % slower. Exit status: 1 if a case is slower, 2 if
there was nothing to compare (the message says why), else 0. The table goes to bench-output/revisions.md and .json, too.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SUITE = "benchmarks/kernel_cases.py"
WORKING_TREE = "."
SCORES, REPEATS = 200_000, 15
BURST = 0.01  # seconds: shorter calls are repeated within a round, and the best of them counts
MOST_CALLS, LEAST_ROUNDS = 500, 5
PATIENCE = 10.0  # seconds for the rounds of one case: long fits get fewer rounds
RESAMPLES, CONFIDENCE = 2000, 0.95


class Problem(Exception):  # noqa: N818 - what the user is told, not a failure of the program
    """Why there is nothing to compare."""


class Limits(NamedTuple):
    """What a case may get slower by: a ratio, and seconds."""

    relative: float = 1.10
    absolute: float = 2e-3


class Compared(NamedTuple):
    """One line of the table; None where a revision has no such case."""

    case: str
    verdict: str  # slower, faster, same, new, gone
    base: float | None = None
    head: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def compare(case: str, base: Sequence[float], head: Sequence[float], limits: Limits) -> Compared:
    """Judge the seconds of the rounds of both revisions, round by round; an empty list is a case that a revision lacks."""
    if not (len(base) and len(head)):
        own = [float(np.median(side)) if len(side) else None for side in (base, head)]
        return Compared(case, "gone" if len(base) else "new", *own)
    a, b = np.asarray(base, dtype=float), np.asarray(head, dtype=float)
    ratio, difference = float(np.median(b / a)), float(np.median(b - a))
    low, high = interval(b / a)
    enough = 1.0 + 0.5 * (limits.relative - 1.0)
    verdict = "same"
    if ratio > limits.relative and difference > limits.absolute and low > enough:
        verdict = "slower"
    elif 1.0 / ratio > limits.relative and -difference > limits.absolute and 1.0 / high > enough:
        verdict = "faster"
    return Compared(case, verdict, float(np.median(a)), float(np.median(b)), ratio, low, high)


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """Return the bootstrap interval of the median, with the same draws in every run."""
    draws = np.random.default_rng(0).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    medians = np.median(ratios[draws], axis=1)
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return float(low), float(high)


def confirmed(first: Compared, second: Compared) -> Compared:
    """Return the second look at a case that seemed to have changed; one that looks otherwise then was disturbed."""
    return second if second.verdict == first.verdict else second._replace(verdict="same")


def git(repository: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise Problem("git is missing: revisions are read from its repository. Install git and try again.") from None
    if done.returncode != 0:
        raise Problem(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def commit_of(repository: Path, revision: str) -> str:
    """Return the hash of a revision."""
    git(repository, "rev-parse", "--git-dir")  # says so where there is no repository
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    except Problem:
        raise Problem(
            f"unknown revision {revision!r} in {repository}; `git fetch` may bring it. `git branch --all` lists branches; "
            f"{WORKING_TREE!r} is the working tree."
        ) from None


def check_head(repository: Path, head: str) -> None:
    """Refuse to measure a commit where changes that are not in it were likely meant."""
    if head == WORKING_TREE or commit_of(repository, head) != commit_of(repository, "HEAD"):
        return
    changed = git(repository, "status", "--porcelain", "--", "src", "benchmarks/*.py").decode().splitlines()
    if changed:
        raise Problem(
            f"the working tree differs from {head} ({len(changed)} files, among them {changed[0][3:]}), and {head} would be "
            f"measured without that. Give --head {WORKING_TREE} to measure the working tree, or commit or stash the changes."
        )


def unpack(repository: Path, revision: str, folder: Path) -> str:
    """Put the files of a revision into a folder; return what to call it."""
    if revision == WORKING_TREE:
        for name in ("src", "benchmarks"):
            ignored = shutil.ignore_patterns("__pycache__", "results", "*.egg-info")
            shutil.copytree(repository / name, folder / name, ignore=ignored)
        return "working tree"
    commit = commit_of(repository, revision)
    with tarfile.open(fileobj=io.BytesIO(git(repository, "archive", "--format=tar", commit))) as archive:
        archive.extractall(folder, filter="data")
    return f"{revision} ({commit[:10]})"


class Side:
    """One revision in a process of its own, which answers one JSON line for each that it is sent."""

    def __init__(self, name: str, tree: Path, suite: Path, cache: Path, scores: int):
        self.name = name
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(cache)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", str(suite), str(scores)],
            env=environment, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started = self.ask("start")
        if "error" in started:
            raise Problem(f"{name}: the cases do not load:\n{started['error']}")
        if not Path(started["package"]).is_relative_to(tree.resolve()):
            raise Problem(
                f"{name}: would have measured {started['package']}, which is another scoreline than that revision's"
            )
        self.cases: list[str] = started["cases"]
        if started["own_cases"]:
            print(f"{name}: cannot import the cases of the head, so it runs its own of the same names", flush=True)

    def ask(self, what: str, **details: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"what": what, **details}) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            raise Problem(f"{self.name}: its process ended, see above; asked for {what} {details or ''}") from None

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def answer_requests(suite: Path, scores: int) -> None:
    """Be one side: load the cases, then time what is asked for. Only answers go to the standard output."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")  # of fits that stop early: only their time counts here
    found: dict[str, Any] = {}
    work: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["what"] == "start":
                own = Path.cwd() / SUITE
                try:
                    found, own_cases = load(suite).cases(scores), False
                except (ImportError, AttributeError):  # modules that the two revisions name differently
                    if not own.exists() or own.resolve() == suite.resolve():
                        raise
                    found, own_cases = load(own).cases(scores), True
                answer = {"cases": list(found), "package": sys.modules["scoreline"].__file__, "own_cases": own_cases}
            elif request["what"] == "prepare":
                work = None  # the memory of the last one goes first
                work = found[request["case"]]()
                timed(work)  # compiles
                answer = {"seconds": min(timed(work) for _ in range(2))}
            else:
                answer = {"seconds": min(timed(work) for _ in range(request["calls"]))}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def load(suite: Path) -> Any:
    importlib.import_module("scoreline")
    sys.path.insert(0, str(suite.parent))  # before this file's own folder: the cases of the head, and what they import
    spec = importlib.util.spec_from_file_location("suite", suite)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timed(work: Any) -> float:
    start = time.perf_counter()
    result = work.run()
    return float(result) if work.own_clock else time.perf_counter() - start


@contextlib.contextmanager
def both(trees: dict[str, Path], suite: Path, folder: Path, scores: int) -> Iterator[tuple[Side, Side]]:
    """Run base and head side by side."""
    with contextlib.ExitStack() as open_sides:
        sides = []
        for role, tree in trees.items():
            side = Side(role, tree, suite, folder / f"{role}-cache", scores)
            open_sides.callback(side.close)
            sides.append(side)
        yield sides[0], sides[1]


def rounds(base: Side, head: Side, case: str, repeats: int) -> tuple[list[float], list[float]]:
    """Return the seconds of every round; empty where a side does not have the case."""
    ready = {side: side.ask("prepare", case=case) for side in (base, head) if case in side.cases}
    if head in ready and "error" in ready[head]:
        raise Problem(f"{case}: fails in the head:\n{ready[head]['error']}")
    ready = {side: answer for side, answer in ready.items() if "error" not in answer}  # the base may lack what it needs
    if not ready:
        return [], []
    longest = max(answer["seconds"] for answer in ready.values())
    calls = min(MOST_CALLS, max(1, math.ceil(BURST / max(longest, 1e-9))))
    affordable = int(PATIENCE / (2.0 * calls * max(longest, 1e-9)))
    turns = min(repeats, max(LEAST_ROUNDS, affordable)) if len(ready) == 2 else 1
    seconds: dict[Side, list[float]] = {base: [], head: []}
    for turn in range(turns):
        for side in (base, head) if turn % 2 == 0 else (head, base):
            if side in ready:
                seconds[side].append(side.ask("time", calls=calls)["seconds"])
    return seconds[base], seconds[head]


def measure(trees: dict[str, Path], folder: Path, options: Any) -> list[Compared]:
    """Compare all cases, and those that seem slower or faster once more in fresh processes."""
    suite, limits = trees["head"] / SUITE, Limits(options.relative, options.absolute_ms / 1e3)
    if not suite.exists():
        raise Problem(f"the head has no {SUITE}: give a head that has the cases")
    found: dict[str, Compared] = {}
    with both(trees, suite, folder, options.scores) as (base, head):
        names = [c for c in dict.fromkeys([*head.cases, *base.cases]) if any(part in c for part in options.cases)]
        if not names:
            raise Problem(f"no case has {' or '.join(options.cases)} in its name; there are: {', '.join(head.cases)}")
        for name in names:
            found[name] = compare(name, *rounds(base, head, name, options.repeats), limits)
            print(line(found[name]), flush=True)
    doubtful = [name for name, row in found.items() if row.verdict in ("slower", "faster")]
    if doubtful:
        print(f"once more in fresh processes: {', '.join(doubtful)}", flush=True)
        with both(trees, suite, folder, options.scores) as (base, head):
            for name in doubtful:
                again = compare(name, *rounds(base, head, name, 2 * options.repeats), limits)
                found[name] = confirmed(found[name], again)
                print(line(found[name]), flush=True)
    return list(found.values())


def line(row: Compared) -> str:
    """Return a line of the table."""
    base, head = ("-" if s is None else f"{1e3 * s:.3f}" for s in (row.base, row.head))
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f} [{row.low:.3f}, {row.high:.3f}]"
    return f"| {row.case} | {base} | {head} | {ratio} | {row.verdict} |"


HEADING = "| case | base ms | head ms | head / base | verdict |\n|---|---:|---:|---:|---|"


def parsed(arguments: list[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="origin/main", help="what it was: any name that git knows")
    parser.add_argument("--head", default=WORKING_TREE, help="what it is now; '.' is the working tree")
    parser.add_argument("--cases", type=lambda text: text.split(";"), default=[""], help="parts of names, apart by ;")
    parser.add_argument("--relative", type=float, default=Limits().relative, help="ratio that a slower case exceeds")
    parser.add_argument("--absolute-ms", type=float, default=1e3 * Limits().absolute, help="and what it loses at least")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="rounds of a case")
    parser.add_argument("--scores", type=int, default=SCORES, help="scores; matrices have a fifth as many rows")
    parser.add_argument("--repository", type=Path, default=ROOT)
    parser.add_argument("--out", type=Path, default=ROOT / "bench-output" / "revisions.json")
    options = parser.parse_args(arguments)
    if options.relative < 1.0 or options.absolute_ms < 0.0 or options.repeats < LEAST_ROUNDS:
        parser.error(f"--relative is at least 1, --absolute-ms at least 0, --repeats at least {LEAST_ROUNDS}")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    try:
        check_head(options.repository, options.head)
        with tempfile.TemporaryDirectory(prefix="revisions-") as name:
            folder = Path(name)
            trees = {role: folder / role for role in ("base", "head")}
            called = {role: unpack(options.repository, getattr(options, role), tree) for role, tree in trees.items()}
            title = f"{called['head']} compared with {called['base']}: slower is more than {options.relative:g} times "
            title += f"and {options.absolute_ms:g} ms"
            print(f"{title}\n{HEADING}", flush=True)
            rows = measure(trees, folder, options)
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = {"title": title, "relative": options.relative, "absolute_ms": options.absolute_ms}
    options.out.write_text(json.dumps(results | {"rows": [row._asdict() for row in rows]}, indent=1) + "\n")
    options.out.with_suffix(".md").write_text("\n".join([title, "", HEADING, *map(line, rows)]) + "\n")
    counts = {
        verdict: sum(row.verdict == verdict for row in rows) for verdict in ("slower", "faster", "same", "new", "gone")
    }
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["slower"] else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        answer_requests(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(main())
