"""Tables of benchmarks/side_by_side.py: final measure with paired intervals, time to the same measure, losses by name."""

from collections.abc import Iterable
from typing import Any

import numpy as np

OURS = "scoreline"
SLACK = 0.001  # the same measure: not lower than both ends by more than this
NOTABLE = 0.002  # a difference worth counting
DRAWS = 10_000
# The columns of the tables of data sets; all others are in the overview, in the lists of losses and in the JSON lines.
SHOWN = (
    "scoreline squared pairs", "liblinear-ranksvm", "dlib rank", "SVM-perf", "LogisticRegression lbfgs",
    "LogisticRegression newton-cholesky", "LogisticRegression, tuned threshold", "LIBLINEAR logistic, primal", "LinearSVC",
)  # fmt: skip

Points = dict[tuple[str, int], list[tuple[float, float]]]


def points_of(entries: Iterable[dict[str, Any]], rival: str, measure: str) -> Points:
    """Return (seconds, test value) of every effort, loosest first, for each set and split."""
    found: Points = {}
    for entry in entries:
        if entry["rival"] == rival:
            fits = [f for f in entry["findings"] if f["kind"] == "fit" and f["measure"] == measure]
            if fits:
                found[entry["set"], entry["split"]] = [(f["seconds"], f["value"]) for f in fits]
    return found


def seconds_to(points: list[tuple[float, float]], level: float) -> float:
    """Return the seconds of the quickest effort that reaches a level."""
    return min(seconds for seconds, value in points if value >= level)


def compare(ours: Points, theirs: Points) -> dict[str, dict[str, Any]]:
    """Return for each set: mean lead of the final value over splits, its values, times to the level that both reach."""
    rows: dict[str, dict[str, Any]] = {}
    for key in sorted(ours.keys() & theirs.keys()):
        mine, its = ours[key], theirs[key]
        level = min(mine[-1][1], its[-1][1]) - SLACK
        row = rows.setdefault(key[0], {"leads": [], "ours": [], "theirs": [], "mine": [], "its": []})
        row["leads"].append(mine[-1][1] - its[-1][1])
        row["ours"].append(mine[-1][1])
        row["theirs"].append(its[-1][1])
        row["mine"].append(seconds_to(mine, level))
        row["its"].append(seconds_to(its, level))
    for row in rows.values():
        row["lead"] = float(np.mean(row["leads"]))
        row["ratio"] = float(np.exp(np.mean(np.log(row["its"]) - np.log(row["mine"]))))
    return rows


def interval(leads: list[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean, data sets drawn again."""
    values, rng = np.array(leads), np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (DRAWS, len(values)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def markdown(head: dict[str, str], entries: list[dict[str, Any]], measures: list[str], skipped: dict[str, str]) -> str:
    """Return all tables."""
    rivals = list(dict.fromkeys(entry["rival"] for entry in entries))
    lines = ["# Rivals side by side", "", *(f"- {key}: {value}" for key, value in head.items())]
    lines += [f"- skipped: {name} ({why})" for name, why in skipped.items()]
    lines += [
        "",
        f"Lead: final test measure of `{OURS}` less that of the rival, mean over data sets [95 % bootstrap interval]. Time: "
        f"seconds of the rival over ours until the test measure is within {SLACK} of the lower of the two final values, "
        "geometric mean; of several stopping rules that get there the quickest counts, on either side.",
    ]
    for measure in measures:
        ours = points_of(entries, OURS, measure)
        others = [(r, compare(ours, points_of(entries, r, measure))) for r in rivals if r != OURS]
        others = [(rival, rows) for rival, rows in others if rows]
        if not others:
            continue
        lines += [
            "",
            f"## {measure}",
            "",
            *_overview(others),
            "",
            *_sets(entries, ours, [other for other in others if other[0] in SHOWN]),
            "",
            *_losses(others),
        ]
    failures = [
        f"- {entry['set']}, split {entry['split']}, {entry['rival']}: {finding['why']}{_last_rule(entry)}"
        for entry in entries for finding in entry["findings"] if finding["kind"] == "failed"
    ]  # fmt: skip
    return "\n".join([*lines, *(["", "## Not finished", "", *failures] if failures else [])]) + "\n"


def _last_rule(entry: dict[str, Any]) -> str:
    """Return what the final value of a rival that was stopped comes from: a looser rule than its strictest."""
    efforts = {f["measure"]: f["effort"] for f in entry["findings"] if f["kind"] == "fit"}
    if not efforts:
        return ""
    return "; its final value is of the last rule it finished: " + ", ".join(f"{m} {e:g}" for m, e in efforts.items())


def _overview(others: list[tuple[str, dict[str, Any]]]) -> list[str]:
    lines = [
        "| rival | sets | lead | higher / lower by 0.002 | time over ours | slower than ours on |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for rival, rows in others:
        leads = [row["lead"] for row in rows.values()]
        low, high = interval(leads)
        ratios = np.array([row["ratio"] for row in rows.values()])
        lines.append(
            f"| {rival} | {len(rows)} | {np.mean(leads):+.4f} [{low:+.4f}, {high:+.4f}] | "
            f"{sum(x > NOTABLE for x in leads)} / {sum(x < -NOTABLE for x in leads)} | {np.exp(np.log(ratios).mean()):.1f} | "
            f"{int((ratios > 1).sum())} of {len(ratios)} |"
        )
    return lines


def _sets(entries: list[dict[str, Any]], ours: Points, others: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return the table of final values, a set a row, and in brackets how much longer the rival took."""
    names = list(dict.fromkeys(key[0] for key in ours))
    shape = {e["set"]: f"{e['rows']:,}, {e['non_zeros']:,}" for e in entries}
    lines = [
        f"| data (rows, non-zeros) | {OURS} | " + " | ".join(r for r, _ in others) + " |",
        "|---|--:|" + "--:|" * len(others),
    ]
    for name in names:
        mine = [points for key, points in ours.items() if key[0] == name]
        cells = [f"{np.mean([p[-1][1] for p in mine]):.4f}"]
        for _, rows in others:
            row = rows.get(name)
            cells.append("-" if row is None else f"{np.mean(row['theirs']):.4f} ({row['ratio']:.1f}x)")
        lines.append(f"| {name} ({shape[name]}) | " + " | ".join(cells) + " |")
    return [*lines, "", "Final test value (in brackets: the rival's time over ours to the same value)."]


def _losses(others: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return by name where ours is lower, or slower."""
    lines = ["Losses:", ""]
    for rival, rows in others:
        lower = [f"{name} ({row['lead']:+.4f})" for name, row in rows.items() if row["lead"] < -NOTABLE]
        slower = [f"{name} ({1 / row['ratio']:.1f}x)" for name, row in rows.items() if row["ratio"] < 1.0]
        if lower or slower:
            lines.append(f"- {rival}: lower on {', '.join(lower) or 'none'}; slower on {', '.join(slower) or 'none'}")
    return lines if len(lines) > 2 else ["No losses."]
