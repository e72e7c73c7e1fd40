"""Run the targets: guided by coverage where atheris is installed, else by changing seeds at random.

    python fuzz/run.py                                  # every target, 60 seconds each
    python fuzz/run.py --target libsvm --seconds 600 --corpus /tmp/corpus
    python fuzz/run.py --target model_file --compiled   # with the compiled kernels: a fault is a crash of the process

Kernels run as plain Python functions unless --compiled is given, so that coverage sees them and an index out of range is an
IndexError. A failing input is written to the corpus folder (default: the working folder) as crash-...; its target and bytes
make a test: tests/hostile/test_fuzz_targets.py has a table of such.
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("train", "predict", "evaluate", "compare", "export", "convert", "info", "measures")
MODULES = (
    *(f"kernels.{name}" for name in ("csr", "dense", "point_updates")),
    *(f"io.{name}" for name in ("libsvm_kernels", "encoding", "tables")),
    *(f"cli.{command}" for command in COMMANDS),
)


def main() -> int:
    """Run what was asked for; 1 if an input failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="name of a target (all); may be given again")
    parser.add_argument("--seconds", type=int, default=60, help="time for each target (60)")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, in place of a time")
    parser.add_argument(
        "--corpus", help="folder for inputs that reached something new, one folder in it for each target"
    )
    parser.add_argument("--memory", type=int, default=2048, help="megabytes that a target may take (2048)")
    parser.add_argument("--timeout", type=int, default=20, help="seconds that one input may take (20)")
    parser.add_argument("--compiled", action="store_true", help="compile the kernels")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        return run_here(options)
    if not options.compiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.path.insert(0, str(ROOT))
    from fuzz.targets import TARGETS

    unknown = sorted(set(options.target or ()) - set(TARGETS))
    if unknown:
        parser.error(f"--target {unknown[0]}: expected one of {', '.join(TARGETS)}")
    failed = []
    for name in options.target or TARGETS:  # a process each: a crash or the memory of one is not that of another
        given = [word for word in sys.argv[1:] if word != "--target" and word not in (options.target or ())]
        print(f"=== {name}", flush=True)
        if subprocess.run([sys.executable, __file__, *given, "--target", name, "--inner"], check=False).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "no failures")
    return int(bool(failed))


def run_here(options: argparse.Namespace) -> int:
    """Run one target in this process."""
    try:
        import atheris
    except ImportError:
        print(
            "atheris is not installed (pip install 'scoreline[fuzz]', Linux): seeds are changed at random, without coverage"
        )
        atheris = None
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(ROOT))
    name = options.target[0]
    corpus = Path(options.corpus or ".", name if options.corpus else "")
    corpus.mkdir(parents=True, exist_ok=True)
    if atheris is None:
        from fuzz.targets import TARGETS

        return run_random(TARGETS[name].run, list(TARGETS[name].seeds()), options, corpus)
    with atheris.instrument_imports(include=["scoreline"], exclude=["scoreline.kernels"] if options.compiled else []):
        from fuzz.targets import TARGETS

        for module in MODULES:  # which are imported when they are first used
            importlib.import_module(f"scoreline.{module}")
    begin = corpus / "seeds" if options.corpus else None
    words = [
        sys.argv[0],
        f"-timeout={options.timeout}",
        f"-rss_limit_mb={options.memory}",
        f"-artifact_prefix={corpus}/",
    ]
    words += ["-max_len=8192", "-len_control=10", "-print_final_stats=1"]
    words += [f"-runs={options.runs}" if options.runs > 0 else f"-max_total_time={options.seconds}"]
    if begin is None:
        import tempfile

        begin = Path(tempfile.mkdtemp(prefix="fuzz-seeds"))
    begin.mkdir(exist_ok=True)
    for k, raw in enumerate(TARGETS[name].seeds()):
        (begin / f"seed{k}").write_bytes(raw)
    if options.corpus:
        (corpus / "found").mkdir(exist_ok=True)
        words.append(str(corpus / "found"))
    words.append(str(begin))
    atheris.Setup(words, TARGETS[name].run)
    atheris.Fuzz()
    return 0


def run_random(run: Callable[[bytes], None], seeds: list[bytes], options: argparse.Namespace, corpus: Path) -> int:
    """Change seeds at random until the time is over, or an input fails."""
    from fuzz.changes import mutations

    limit_memory(options.memory)
    end, number = time.monotonic() + options.seconds, 0
    for raw in seeds:
        run(raw)
    while (number < options.runs) if options.runs > 0 else (time.monotonic() < end):
        number += 1
        raw = mutations(seeds, number)
        try:
            run(raw)
        except BaseException:
            path = corpus / f"crash-{number}"
            path.write_bytes(raw)
            print(f"input {number} failed; it is in {path}: {raw!r:.300}")
            raise
    print(f"{number} inputs, none failed")
    return 0


def limit_memory(megabytes: int) -> None:
    """Let this process have so much memory beyond what it has mapped; more is a MemoryError."""
    import resource

    mapped = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
    )
    if mapped:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + (megabytes << 20), resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.exit(main())
