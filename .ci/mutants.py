"""Do the tests notice changes of risks and measures? Each tier runs against the same random sample of mutants.

    make mutants ARGS="--sample 300 --seed 0 --tiers quick all --jobs 2"

mutmut changes single operators, constants and arguments in src/scoreline/risks and src/scoreline/measures, and writes all
mutants into the folder mutants/ at once. The variable MUTANT_UNDER_TEST chooses which of them is active. A mutant is killed
when a test fails, when the tests crash, or when they run ten times longer than without a mutant. Tiers are given from the
fastest to the slowest: a mutant that one of them kills counts as killed in those that follow, because they run the same tests
and more.

The table says how many mutants each tier kills; below it are the share of the first tier, with its 95 % interval (Wilson), and
the names of those that only a slower tier kills. The exit code is 1 where the first tier kills less than LEAST_SHARE of what
the last one kills, and 2 where the tests fail without a mutant. After --minutes no further mutant is begun, and the table is of
those that are finished. A run that was stopped can be repeated with the same --sample, --seed, --tests and --out: finished
mutants are read from there. Delete that file after a change of the tests or the source. A mutant that survives takes a whole
run of the tests in each tier.
A name ends with that of a function in mutants/src, which is the changed code.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

ROOT = Path(__file__).parents[1]
COPY = ROOT / "mutants" / "src"
MUTATED = ("risks", "measures")
TESTS = ("tests/risks", "tests/measures", "tests/torture", "tests/scorespace", "tests/solvers")
TIERS = ("quick", "all", "soak")
LEAST_SHARE = 0.85
SLOWEST = 10.0  # times as long as without a mutant: the mutant does not end
SHORTEST_LIMIT = 120.0  # seconds; kernels of a mutant may have to be compiled


def make_mutants():
    """Copy the source into mutants/, with all mutants of the mutated folders, and return the names of the mutants."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT / "src", COPY)  # with the compiled kernels: times of files are kept
    names = []
    for folder in MUTATED:
        for path in sorted((ROOT / "src" / "scoreline" / folder).rglob("*.py")):
            relative = path.relative_to(ROOT)
            mutated = mutate_file_contents(str(relative), path.read_text(encoding="utf-8"))
            (ROOT / "mutants" / relative).write_text(mutated.code, encoding="utf-8")
            names += [get_mutant_name(relative, name) for name in mutated.mutant_names]
    return names


def run_tests(tier, tests, mutant="", limit=None):
    """Return whether the tests pass in a tier with this mutant, and the seconds that they took."""
    tests = sorted(tests, key=lambda path: f".{Path(path).name}." not in f".{mutant}")  # those of its own room first
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    variables = {
        "MUTANT_UNDER_TEST": mutant, "SCORELINE_TIER": tier, "PYTHONPATH": str(COPY), "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    begin = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | variables, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that the tests started
        process.communicate()
        return False, time.monotonic() - begin
    if process.returncode and not mutant:
        print(output[-3000:])
    return process.returncode == 0, time.monotonic() - begin


def wilson(successes, trials, z=1.96):
    """Return the ends of the 95 % interval of a share."""
    share, rest = successes / trials, z**2 / trials
    middle = (share + rest / 2.0) / (1.0 + rest)
    half = z * math.sqrt(share * (1.0 - share) / trials + rest / (4.0 * trials)) / (1.0 + rest)
    return middle - half, middle + half


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample")
    parser.add_argument("--tiers", nargs="+", choices=TIERS, default=["quick", "all"], help="the fastest first")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are tested at the same time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no mutant is begun after that")
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="files and folders")
    parser.add_argument("--out", type=Path, default=ROOT / "mutants" / "results.jsonl", help="finished mutants")
    options = parser.parse_args()
    names = make_mutants()
    sample = random.Random(options.seed).sample(names, min(options.sample, len(names)))
    limits = {}
    for tier in options.tiers:
        passed, seconds = run_tests(tier, options.tests)
        if not passed:
            print(f"The tests fail in {tier} without a mutant.")
            sys.exit(2)
        limits[tier] = max(SHORTEST_LIMIT, SLOWEST * seconds)
        print(f"{tier}: {seconds:.0f} s without a mutant", flush=True)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = [json.loads(line) for line in lines]
    killers = {
        name: killer for name, killer, tiers in done if tiers == options.tiers
    }  # the fastest tier that kills it, or None

    begin = time.monotonic()

    def replay(name):
        if name in killers or time.monotonic() - begin > 60.0 * options.minutes:
            return
        killer = next((t for t in options.tiers if not run_tests(t, options.tests, name, limits[t])[0]), None)
        killers[name] = killer
        with options.out.open("a") as file:
            file.write(json.dumps([name, killer, options.tiers]) + "\n")
        print(f"{len(killers):5} {killer or 'survived':9} {name}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(replay, sample))
    sample = [name for name in sample if name in killers]
    found = [options.tiers.index(killers[name]) for name in sample if killers[name] is not None]
    killed = {tier: sum(at <= k for at in found) for k, tier in enumerate(options.tiers)}
    print(
        f"\n{len(sample)} of {len(names)} mutants, seed {options.seed}\n\n| tier | killed | survived |\n| --- | --: | --: |"
    )
    for tier, count in killed.items():
        print(f"| {tier} | {count} | {len(sample) - count} |")
    first, last = killed[options.tiers[0]], killed[options.tiers[-1]]
    if last:
        low, high = wilson(first, last)
        print(
            f"\n{options.tiers[0]} kills {first / last:.1%} of what {options.tiers[-1]} kills ({low:.1%} to {high:.1%})"
        )
    for tier in options.tiers[1:]:
        print(f"\nOnly from {tier} on:", *sorted(name for name in sample if killers[name] == tier), sep="\n  ")
    sys.exit(first < LEAST_SHARE * last)


if __name__ == "__main__":
    main()
