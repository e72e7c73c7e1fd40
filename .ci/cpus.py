"""Run the fast tests as other processors would run them, one setting after another, and print a table of the results.

    python .ci/cpus.py [--cpus generic haswell ...] [tests/solvers ...]

A setting restricts the instructions that Numba, OpenBLAS or NumPy may use, or sets the number of threads. Each of these
changes the last digits of sums. A setting that this processor cannot run is skipped. The exit code is 1 if a test fails.

The settings share one cache of compiled kernels, because Numba keys its cache by the name and the features of the processor.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
AVX2 = {"avx2", "fma", "bmi1", "bmi2", "abm", "movbe", "f16c"}  # names of flags in /proc/cpuinfo
AVX512 = AVX2 | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}


def numba_target(name):
    """Return the variables that make Numba compile for a processor.

    With the name alone, Numba still uses every instruction of the host, except for "generic".
    """
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}


def without_numpy(prefixes):
    """Return the variable that switches off NumPy's loops for some instruction sets.

    The names depend on the version of NumPy. NumPy warns about a name that it does not know or that the processor lacks.
    """
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    names = [name for name in __cpu_dispatch__ if name.startswith(prefixes) and __cpu_features__[name]]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(names)}


def threads(count):
    """Return the variables that set the number of threads of the kernels and of BLAS."""
    return dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(count))


# Name: the flags that the processor needs, and the environment variables of the run.
SETTINGS = {
    "generic": (set(), numba_target("generic")),
    "haswell": (AVX2, numba_target("haswell")),
    "skylake-avx512": (AVX512, numba_target("skylake-avx512")),
    "znver3": (AVX2 | {"sse4a"}, numba_target("znver3")),
    "blas-prescott": ({"pni"}, {"OPENBLAS_CORETYPE": "Prescott"}),
    "blas-haswell": (AVX2, {"OPENBLAS_CORETYPE": "Haswell"}),
    "blas-zen": (AVX2, {"OPENBLAS_CORETYPE": "Zen"}),
    "blas-skylakex": (AVX512, {"OPENBLAS_CORETYPE": "SkylakeX"}),
    "numpy-no-avx512": (AVX512, without_numpy(("AVX512", "X86_V4"))),
    "numpy-no-avx2": (AVX2, without_numpy(("AVX", "FMA", "F16C", "X86_V3", "X86_V4"))),
    "threads-1": (set(), threads(1)),
    "threads-2": (set(), threads(2)),
    "threads-16": (set(), threads(16)),
}


def processor_flags():
    """Return the flags of the processor, or none where the system does not list them."""
    try:
        found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return set()
    return set(found[1].split()) if found else set()


def run_tests(variables, arguments):
    """Run pytest under the given variables; return its exit code and the numbers of passed and failed tests."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | variables  # as in `make test`
    with tempfile.TemporaryFile("w+") as output:
        code = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=output).returncode
        output.seek(0)
        text = output.read()
    summary = text.strip().splitlines()[-1] if text.strip() else ""
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", summary)}
    if code != 0:
        print(text)
    return code, counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="SETTING")
    parser.add_argument("tests", nargs="*", default=["tests"], help="what pytest runs")
    options = parser.parse_args()
    flags = processor_flags()
    rows, failed = [], False
    for name in options.cpus:
        needed, variables = SETTINGS[name]
        if not needed <= flags:
            missing = " ".join(sorted(needed - flags))
            rows.append(f"{name:16}  skipped: this processor does not report {missing}")
        else:
            print(f"{name}: {' '.join(f'{key}={value!r}' for key, value in variables.items())}", flush=True)
            begin = time.perf_counter()
            code, n_passed, n_failed = run_tests(variables, options.tests)
            rows.append(f"{name:16} {n_passed:7} {n_failed:7} {(time.perf_counter() - begin) / 60.0:8.1f}")
            failed = failed or code != 0
        print(rows[-1], flush=True)
    print(f"\n{'setting':16} {'passed':>7} {'failed':>7} {'minutes':>8}", *rows, sep="\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
