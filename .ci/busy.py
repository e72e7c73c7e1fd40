"""Run the tests that involve threads, processes, signals and time limits on a busy machine, or at a fraction of its speed.

    python .ci/busy.py [--processes 4] [--speed 0.1] [-- pytest arguments]

Busy processes compete for the cores. With --speed, the tests and all processes that they start are stopped and continued every
half second, so that they run for that share of the time: clocks go on meanwhile, as on a slow or suspended machine.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
CYCLE = 0.5  # seconds between two stops: long compared with a time slice, short compared with every time-out
TESTS = (
    "tests/cli/test_processes.py", "tests/concurrency", "tests/data/test_named.py", "tests/estimators/test_checkpoints.py",
    "tests/estimators/test_early_stopping.py", "tests/kernels/test_kernel_parallel.py",
    "tests/kernels/test_kernel_processes.py", "tests/limits", "tests/risks/test_contingency_risk.py",
    "tests/benchmarks/test_revisions.py",
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4, help="that only consume processor time")
    parser.add_argument("--speed", type=float, default=1.0, help="share of the time that the tests may run")
    parser.add_argument("arguments", nargs="*", default=list(TESTS), help="of pytest")
    options = parser.parse_args()
    if not 0.0 < options.speed <= 1.0:
        parser.error(f"--speed must be above 0 and at most 1, got {options.speed}.")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.processes)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options.arguments]
    environment = {"SCORELINE_TIER": "all"} | os.environ  # most of these tests are slow ones
    # A process group of its own, to be stopped at once.
    tests = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        while tests.poll() is None:
            time.sleep(CYCLE * options.speed)
            if options.speed < 1.0 and tests.poll() is None:
                os.killpg(tests.pid, signal.SIGSTOP)
                time.sleep(CYCLE * (1.0 - options.speed))
                os.killpg(tests.pid, signal.SIGCONT)
    finally:
        for process in busy:
            process.kill()
        with suppress(ProcessLookupError):  # what an interrupted run leaves behind, stopped or not
            os.killpg(tests.pid, signal.SIGKILL)
    sys.exit(tests.wait())


if __name__ == "__main__":
    main()
