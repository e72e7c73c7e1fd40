"""Which branches of the package the tests take: every test file compiled, then those of kernels with the compiler off.

Numba's functions are invisible to a tracer, so a second run calls them as Python. Test files run side by side, the longest
first, each with a limit of time in the second run, where large cases would take for ever; what a file has done until then
counts. The exit code is 1 below LEAST, or where a test fails in the first run.

    python .ci/coverage.py [--jobs 2] [--seconds 300] [--out folder]
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEAST = 95.0
SLOW = ("cluster",)  # folders whose slow tests are the only ones of a part of the package
PLAIN = (
    "kernels", "risks", "measures", "operators", "scorespace", "blocks", "solvers", "data", "torture", "export", "device",
)  # fmt: skip


def test_files(folders=None):
    """Return the test files, the longest first; those that run in processes of their own have nothing to trace."""
    found = [path for path in (ROOT / "tests").rglob("test_*.py") if folders is None or path.parent.name in folders]
    return sorted(found, key=lambda path: -path.stat().st_size)


def traced(path, data, compiled, seconds):
    """Run a test file under coverage; return its name, exit code, seconds and last line."""
    environment = os.environ | {
        "COVERAGE_FILE": str(data / "data"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "SCORELINE_TIER": "all" if path.parent.name in SLOW else "quick",
    }
    if not compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
    line = [sys.executable, "-m", "coverage", "run", "--parallel-mode", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*line, str(path)], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # what was traced is written
        try:
            output, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    last = output.strip().splitlines()[-1] if output.strip() else ""
    return path.relative_to(ROOT), process.returncode, time.perf_counter() - begin, last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300.0, help="of a file with the compiler off")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of a compiled file")
    parser.add_argument("--out", type=Path, help="where to put report.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coverage-") as folder:
        data = Path(folder)
        failed = []
        tasks = [(path, True, options.limit) for path in test_files()]
        tasks += [(path, False, options.seconds) for path in test_files(PLAIN)]
        with ThreadPoolExecutor(options.jobs) as pool:
            done = pool.map(lambda task: (task[1], *traced(task[0], data, *task[1:])), tasks)
            for compiled, path, code, duration, last in done:
                print(f"{duration:6.0f} s  {'compiled' if compiled else 'plain   '}  {path}: {last}", flush=True)
                if compiled and code not in (0, 5):  # 5: all tests of the file are slow
                    failed.append(str(path))
        environment = os.environ | {"COVERAGE_FILE": str(data / "data")}
        run = [sys.executable, "-m", "coverage"]
        subprocess.run([*run, "combine", "-q", str(data)], cwd=ROOT, env=environment, check=True)
        report = subprocess.run(
            [*run, "report", "--precision=1"], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        print(report.stdout)
        if options.out is not None:
            (options.out / "report.txt").write_text(report.stdout)
            subprocess.run([*run, "json", "-q", "-o", str(options.out / "coverage.json")], cwd=ROOT, env=environment)
    total = float(report.stdout.strip().splitlines()[-1].split()[-1].rstrip("%"))
    for path in failed:
        print(f"failed: {path}")
    sys.exit(total < LEAST or bool(failed))


if __name__ == "__main__":
    main()
