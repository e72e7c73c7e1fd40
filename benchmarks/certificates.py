"""Are certificates proofs? Random problems of every risk, solver and option: the bound against J without rounding.

    python benchmarks/certificates.py [--penalties] [--problems 10000] [--first 0] [--exact 1] [--jobs 1] [--out FILE]

A problem is a number: data, weights, scaling, risk, solver, tolerance, start and options follow from it
(tests/torture/certificate_trials.py), so a violation names what repeats it. Each is solved once more by another solver,
tightly, and the bound must not lie above J of either solution, of points between and beside them, or of w = 0; J is computed
in fractions, or with 60 digits (tests/torture/exact_objectives.py), for every `--exact`-th problem.

With --penalties, every problem has a penalty (l2, weights, elastic net, lasso, groups), bounds (none, signs, boxes, some that
exclude 0, free coefficients within a box) and, for most risks that need an intercept, one without a penalty
(tests/torture/penalty_trials.py). Points to compare with lie within the bounds.
"""

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "torture"))

import certificate_trials
import penalty_trials

from common import header

RESULTS = Path(__file__).resolve().parent / "results"
EVERY = 500  # problems between two lines of progress


def one(task: tuple[int, bool, bool]) -> dict:
    """Return the figures of one problem, as plain values."""
    number, exact, penalties = task
    if penalties:
        *words, risk = penalty_trials.CASES[number % len(penalty_trials.CASES)]
        group = ", bounds ".join(words)
    else:
        group, risk = certificate_trials.PAIRS[number % len(certificate_trials.PAIRS)]
    try:
        outcome = (penalty_trials if penalties else certificate_trials).run(number, exact)
    except Exception:  # a crash is a violation too, and the others still run
        return {"number": number, "group": group, "risk": risk, "wrong": [traceback.format_exc(limit=-3)]}
    return {
        "number": number, "group": group, "risk": risk, "solver": outcome.trial.solver,
        "wrong": outcome.wrong, "status": outcome.status,
        "slack": outcome.slack, "error": outcome.error, "gap": outcome.gap, "exact": outcome.exact,
    }  # fmt: skip


def run(numbers: range, every: int, jobs: int, penalties: bool) -> list[dict]:
    """Return the figures of all problems; progress and violations are printed as they come."""
    tasks = [(k, every > 0 and k % every == 0, penalties) for k in numbers]
    rows, wrong, start = [], 0, time.perf_counter()
    pool = multiprocessing.get_context("spawn").Pool(jobs) if jobs > 1 else None
    try:
        for row in map(one, tasks) if pool is None else pool.imap_unordered(one, tasks, chunksize=20):
            rows.append(row)
            if row["wrong"]:
                wrong += 1
                print(f"VIOLATION problem {row['number']}: {row['group']}, {row['risk']}: {row['wrong']}", flush=True)
            if len(rows) % EVERY == 0:
                print(f"{len(rows)} problems, {wrong} violations, {time.perf_counter() - start:.0f} s", flush=True)
    finally:
        if pool is not None:
            pool.terminate()
    return rows


def table(rows: list[dict], *by: str) -> list[str]:
    """Return the lines of the table, one for each combination of these values, and the sums."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row.get(name, "crashed") for name in by)].append(row)
    lines = [
        f"| {' | '.join(by)} | problems | violations | in exact arithmetic | converged | smallest slack | useful bounds "
        "| largest error of J |",
        "|---" * len(by) + "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for key, group in [*sorted(groups.items()), (("all",) * len(by), rows)]:
        ran = [row for row in group if "status" in row]
        slack = [row["slack"] for row in ran if np.isfinite(row["slack"])]
        useful = np.mean([row["slack"] < 0.999 for row in ran]) if ran else 0.0
        lines.append(
            f"| {' | '.join(key)} | {len(group)} | {sum(bool(row['wrong']) for row in group)} "
            f"| {sum(row['exact'] for row in ran)} | {np.mean([row['status'] == 'converged' for row in ran] or [0.0]):.0%} "
            f"| {min(slack, default=np.nan):.1e} | {useful:.0%} | {max((row['error'] for row in ran), default=0.0):.1e} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--exact", type=int, default=1, help="compute J exactly for every so many-th problem; 0: none")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--penalties", action="store_true", help="problems with penalties, bounds and free intercepts")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    penalties = arguments.penalties
    out = arguments.out or RESULTS / ("certificates_penalties.md" if penalties else "certificates.md")
    head, start = header() | {"seed": str(certificate_trials.SEED)}, time.perf_counter()
    rows = run(range(arguments.first, arguments.first + arguments.problems), arguments.exact, arguments.jobs, penalties)
    gaps = sorted(row["gap"] for row in rows if "gap" in row)
    wrong = [row for row in rows if row["wrong"]]
    lines = [
        "# Certificates are proofs" + (", with penalties and bounds, too" if penalties else ""),
        "",
        f"Made by `python benchmarks/certificates.py{' --penalties' if penalties else ''} --problems {arguments.problems} "
        f"--exact {arguments.exact}`. Each problem is solved by one solver with random options, and again tightly by another. "
        "A violation: the bound lies above J of any point tried (in floating point beyond the rounding of J itself, in exact "
        "arithmetic at all), above the reported "
        "objective, or a run is called converged with a larger gap than asked for; the reported objective is off by more than "
        "8 eps sqrt(max(n, p)) (J + L (1 + sum_j |w_j| max_i |x_ij|)), L being 4, or 2 (1 + 2 max |z|) for squared risks; or "
        "an exception or a warning.",
        "",
        *(f"- {key}: {value}" for key, value in head.items() if key != "load"),
        f"- seconds: {time.perf_counter() - start:.0f}",
        "",
        f"{len(rows)} problems, {len(wrong)} violations. Least J found and best bound are "
        f"{gaps[len(gaps) // 2]:.1e} J(0) apart in the median: so sharp is the comparison.",
        "",
        "Slack: exact J at the best point less the bound, over J(0). Useful bounds: slack below 0.999. Error of J: its share "
        "of what is allowed.",
        "",
        *(
            [*table(rows, "group"), "", *table(rows, "risk"), "", *table(rows, "solver")]
            if penalties
            else table(rows, "risk", "group")
        ),
    ]
    if wrong:
        lines += ["", "## Violations", "", *(f"- problem {row['number']}: {row['wrong']}" for row in wrong)]
    out.write_text("\n".join(lines) + "\n")
    print(f"{len(rows)} problems, {len(wrong)} violations; written to {out}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
