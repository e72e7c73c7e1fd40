"""What all benchmarks share: interleaved timing, a report of figures compared with targets, Python in a child process."""

import datetime
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

SEED = 20240
SPIN = 0.2  # seconds until idle threads of other libraries have gone to sleep
OUTPUT = Path(__file__).resolve().parent.parent / "bench-output"
PACKAGES = ("scoreline", "numpy", "scipy", "scikit-learn", "numba", "llvmlite")


class Timing(NamedTuple):
    """Seconds of the best and of the middle repeat."""

    best: float
    median: float


def interleave(
    sides: dict[str, Callable[[], Any]], repeats: int = 7, spinning: Collection[str] = ()
) -> dict[str, Timing]:
    """Time every side `repeats` times, taking turns in one loop: a disturbance of the machine hits all sides.

    `spinning` names the sides that use OpenBLAS or OpenMP: their threads spin on after the work is done (OpenBLAS's for
    0.12 s) and would take a core from whichever side comes next, so the loop waits for them to fall asleep.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()  # compiled, caches and memory as in the repeats
    if spinning:
        time.sleep(SPIN)
    for _ in range(repeats):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
            if name in spinning:
                time.sleep(SPIN)
    return {name: Timing(min(s), sorted(s)[len(s) // 2]) for name, s in seconds.items()}


class Report:
    """The figures of one benchmark: printed as they come, kept for results.json and results.md."""

    def __init__(self, name: str, title: str):
        self.name, self.title = name, title
        self.rows: list[dict[str, Any]] = []
        self.data: Any = None  # what else the JSON should hold
        print(f"\n## {name}: {title}", flush=True)

    def add(self, label: str, value: float | None, unit: str, target: str = "", note: str = "") -> None:
        """Add a figure (None: there is none); `target` is "" (informational) or a limit such as ">= 1.4" or "< 15"."""
        verdict = _verdict(value, target)
        self.rows.append(
            {"label": label, "value": value, "unit": unit, "target": target, "verdict": verdict, "note": note}
        )
        print(_line(self.rows[-1]), flush=True)

    def say(self, text: str) -> None:
        """Add a remark."""
        self.rows.append({"remark": text})
        print(f"  {text}", flush=True)


def _verdict(value: float | None, target: str) -> str:
    if not target:
        return ""
    if value is None:
        return "MISSED"
    sign, limit = target.split()
    reached = {">=": value >= float(limit), "<": value < float(limit), "<=": value <= float(limit)}[sign]
    return "ok" if reached else "MISSED"


def _line(row: dict[str, Any]) -> str:
    if "remark" in row:
        return f"  {row['remark']}"
    wanted = f"target {row['target']:<8} {row['verdict']:<6}" if row["target"] else " " * 22
    return f"  {row['label']:<52} {_number(row['value']):>9} {row['unit']:<6} {wanted} {row['note']}".rstrip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def header() -> dict[str, str]:
    """Return versions, processor, threads, seed and date."""
    from scoreline.runtime.parallel import available_threads

    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} missing")
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": ", ".join(versions),
        "revision": _revision(),
        "cpu": _cpu(),
        "threads": str(available_threads()),
        "load": " ".join(f"{x:.1f}" for x in os.getloadavg()),
        "seed": str(SEED),
    }


def _revision() -> str:
    """Return the commit of the working tree, with "+" if src differs from it."""
    git = ["git", "-C", str(OUTPUT.parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        clean = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src"], capture_output=True, check=False)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("" if clean.returncode == 0 else "+")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()}, {os.cpu_count()} cores"
    except OSError:
        pass
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


class Neighbours:
    """How much of the machine others used since this object was made: figures from a busy machine say so."""

    def __init__(self):
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        """Return (seconds, processor seconds of all processes and of the hypervisor, processor seconds of our own)."""
        try:
            user, nice, system, _, _, irq, soft, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
        except (OSError, ValueError):
            return None
        own = os.times()
        busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, own.user + own.system + own.children_user + own.children_system

    def cores(self) -> float | None:
        """Return the cores that others kept busy, on average; None where the system does not tell."""
        now = self._now()
        if now is None or self._start is None:
            return None
        seconds, busy, own = (b - a for a, b in zip(self._start, now, strict=True))
        return max(0.0, busy - own) / seconds


def write(head: dict[str, str], reports: list[Report], out: Path = OUTPUT / "results.json") -> None:
    """Write the results as JSON to `out` and as Markdown next to it."""
    out.parent.mkdir(exist_ok=True)
    results = {r.name: {"title": r.title, "rows": r.rows} | ({"data": r.data} if r.data else {}) for r in reports}
    out.write_text(json.dumps({"header": head, "results": results}, indent=1) + "\n")
    lines = ["# Benchmarks", ""] + [f"- {key}: {value}" for key, value in head.items()]
    for report in reports:
        lines += ["", f"## {report.name}", "", report.title, ""]
        lines += ["| figure | value | unit | target | | note |", "|---|---:|---|---|---|---|"]
        figures = [row for row in report.rows if "remark" not in row]
        columns = ("label", "value", "unit", "target", "verdict", "note")
        for row in figures:
            cells = (_number(row[c]) if c == "value" else row[c].replace("|", "\\|") for c in columns)
            lines.append("| " + " | ".join(cells) + " |")
        remarks = [row["remark"] for row in report.rows if "remark" in row]
        lines += [""] + [f"- {remark}" for remark in remarks] if remarks else []
    out.with_suffix(".md").write_text("\n".join(lines) + "\n")


def child(code: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run Python code in a fresh process and return the JSON object on its last line of output."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"child process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def standalone(*modules: Any, out: Path = OUTPUT / "results.json") -> None:
    """Run benchmarks: print the header, run each `main(report)`, write the results."""
    head = header()
    for key, value in head.items():
        print(f"{key + ':':<10}{value}")
    reports: list[Report] = []
    failed: list[str] = []
    for module in modules:
        report = Report(module.NAME, module.TITLE)
        start, neighbours = time.perf_counter(), Neighbours()
        try:
            module.main(report)
        except Exception:  # the others still run; the exit code tells
            failed.append(module.NAME)
            report.say(f"FAILED\n{traceback.format_exc()}")
        report.say(f"took {time.perf_counter() - start:.0f} s")
        cores = neighbours.cores()
        if cores is not None:
            advice = ": do not trust the times" if cores > 0.1 else ""
            report.say(f"meanwhile other processes kept {cores:.2f} of {os.cpu_count()} cores busy{advice}")
        reports.append(report)
        write(head, reports, out)  # after each, so that an interrupted run leaves what it has
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")
