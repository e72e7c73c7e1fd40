"""Describe the installation: versions, threads, memory, caches, devices, and what is missing."""

import argparse
import os
import platform
import re
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

from scoreline import kernels
from scoreline.cli.output import Output
from scoreline.io.download import cache_folder
from scoreline.runtime.memory import in_words, memory_left, memory_limit
from scoreline.runtime.parallel import available_threads

EXAMPLES = """examples:
  scoreline doctor
  scoreline doctor --json"""
VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
    "NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "SCORELINE_CACHE", "SCORELINE_DATA",
    "PYTHONIOENCODING", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip
LARGE = ("boost", "torch")  # extras for users that `all` leaves out
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:.*\bextra == ['\"](\w+)['\"])?")

Section = dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command: there are none."""


def run(options: Any, output: Output) -> None:
    """Print the sections, then what should be looked at."""
    advice: list[str] = []
    found = {
        "versions": _versions(),
        "optional packages": _optional(advice),
        "processor": _processor(),
        "environment variables": _variables(advice),
        "caches": _caches(advice),
        "devices": _devices(),
    }
    output.results(**{title.replace(" ", "_"): section for title, section in found.items()}, advice=advice)
    width = max(len(name) for section in found.values() for name in section)
    for title, section in found.items():
        output.text(title)
        for name, value in section.items():
            output.text(f"  {name:<{width}}  {value}")
    for line in advice or ["no problem was found; paste the lines above into an issue if you have one"]:
        output.text(f"advice: {line}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _requirements() -> tuple[list[str], dict[str, set[str]]]:
    """Return the packages that scoreline needs, and each optional package with the extras for users that install it."""
    extras = dict[str | None, set[str]]()
    for line in metadata.requires("scoreline") or []:
        found = REQUIREMENT.match(line)
        assert found is not None
        extras.setdefault(found[2], set()).add(found[1])
    needed = sorted(extras.pop(None, []))
    optional = extras.pop("all", set()).union(*(extras.get(name, ()) for name in LARGE))
    ours = {
        extra: names for extra, names in extras.items() if extra and names <= optional
    }  # the others: for developers
    return needed, {name: {extra for extra, names in ours.items() if name in names} for name in sorted(optional)}


def _versions() -> Section:
    section = {"scoreline": _version("scoreline") or "not installed as a package"}
    section["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    section["system"] = f"{platform.platform()}, {platform.machine()}"
    return section | {name: _version(name) or "missing" for name in _requirements()[0]}


def _optional(advice: list[str]) -> Section:
    section, missing = {}, set()
    for name, extras in _requirements()[1].items():
        section[name] = _version(name) or f"missing: pip install 'scoreline[{min(extras)}]'"
        if _version(name) is None:
            missing |= {"cli"} & extras
    if missing:
        advice.append("the command line lacks packages for tables, plots or completion: pip install 'scoreline[cli]'")
    return section


def _processor() -> Section:
    from llvmlite.binding import get_host_cpu_name
    from threadpoolctl import threadpool_info

    libraries = {
        f"{each['internal_api']} {each.get('version')}, {each['num_threads']} threads"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    return {
        "name for Numba": get_host_cpu_name(),
        "logical processors": str(os.cpu_count()),
        "threads of a fit": str(available_threads()),
        "BLAS": "; ".join(sorted(libraries)) or "unknown",
        "memory": f"{in_words(memory_limit())}, {in_words(memory_left())} left",
    }


def _variables(advice: list[str]) -> Section:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("0", ""):
        advice.append("NUMBA_DISABLE_JIT is set: kernels run uncompiled, hundreds of times slower; unset it")
    encoding = getattr(sys.stdout, "encoding", None) or "none"
    section = {name: _without_home(os.environ[name]) for name in VARIABLES if name in os.environ}
    return section | {"encoding of standard output": encoding}


def _caches(advice: list[str]) -> Section:
    """Say where compiled kernels and downloads are kept, and whether they can be."""
    stored = getattr(getattr(kernels.csr.gather, "stats", None), "cache_path", None)
    section = {"compiled kernels": "none: each process compiles again" if stored is None else _place(Path(stored))}
    if stored is None or not _is_writable(Path(stored)):
        advice.append("compiled kernels are not cached: set NUMBA_CACHE_DIR to a folder that can be written to")
    try:
        section["downloads"] = _place(cache_folder())
    except RuntimeError as error:
        section["downloads"] = str(error)
    return section


def _is_writable(folder: Path) -> bool:
    """Tell whether files can be made in a folder, which may have to be made first."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _place(folder: Path) -> str:
    state = "exists" if folder.is_dir() else "not made yet"
    return f"{_without_home(str(folder))} ({state}, {'writable' if _is_writable(folder) else 'not writable'})"


def _without_home(text: str) -> str:
    """Return a text without the name of the user's folder, which nobody wants to paste into an issue."""
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text


def _devices() -> Section:
    section = {}
    for name, look in (("PyTorch", _torch), ("CuPy", _cupy)):
        try:
            section[name] = look()
        except Exception as error:  # a damaged installation can raise anything, and that is a finding
            section[name] = f"cannot be used: {type(error).__name__}: {error}"
    return section


def _torch() -> str:
    if util.find_spec("torch") is None:
        return "not installed"
    import torch

    if not torch.cuda.is_available():
        return f"{torch.__version__}, without a GPU"
    names = ", ".join(torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count()))
    return f"{torch.__version__}, CUDA {torch.version.cuda}: {names}"


def _cupy() -> str:
    if util.find_spec("cupy") is None:
        return "not installed"
    import cupy

    return f"{cupy.__version__}, {cupy.cuda.runtime.getDeviceCount()} GPUs"
