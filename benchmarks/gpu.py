"""Training on a GPU: is it right, how far from what the memory allows, and how much faster than this machine's processor.

    python benchmarks/gpu.py [--parts check products scores fit csr sizes] [--rows 2e7] [--features 256] [--libraries torch]

Correctness comes first, on fresh random inputs beside the host in float64 (`gpu_checks.py`); nothing is timed if it fails.
Then the floor: what a copy on the device moves a second. Times are those of device events, the median of ten after two
warm-ups; fits are timed on the wall clock, from arrays that are on the device, with everything that `fit` does. The host's fit
uses the same entries on all cores of this machine. PyTorch makes the data. Needs PyTorch with CUDA (and CuPy for its column),
25 GB of device memory and 22 GB of host memory at full size.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpu_checks
from common import OUTPUT, Report, header
from scoreline import MeasureClassifier
from scoreline.gpu import kernels as device_kernels
from scoreline.gpu.csr_operator import CsrDeviceOperator
from scoreline.gpu.score_space import Space as DeviceSpace
from scoreline.gpu.vector import DeviceVector
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.runtime import parallel

NAME, TITLE = "gpu", "training on a GPU"
PARTS = ("check", "products", "scores", "fit", "csr", "sizes")
SIZES = ((1e4, 20), (1e5, 20), (1e6, 20), (1e7, 20), (1e4, 256), (1e5, 256), (1e6, 256), (5e6, 256))
MEASURES = ("roc_auc", "prbep", "accuracy", "f1", "average_precision")


def milliseconds(call: Callable[[], Any], repeats: int = 10) -> float:
    """Return the median time between two events of the device around a call."""
    import torch

    times = []
    for k in range(repeats + 2):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        if k >= 2:
            times.append(start.elapsed_time(stop))
    return float(np.median(times))


def as_library(x: Any, library: str) -> Any:
    """Return a PyTorch tensor as an array of a library, without a copy."""
    if library == "torch":
        return x
    import cupy

    return cupy.from_dlpack(x)


def copy_bandwidth() -> float:
    """Return the bytes read and written a second by a copy of 4 GB on the device."""
    import torch

    source = torch.empty(1 << 29, dtype=torch.float64, device="cuda").normal_()
    target = torch.empty_like(source)
    return 2.0 * source.numel() * 8 / milliseconds(lambda: target.copy_(source)) * 1e3


def make_rows(n: int, p: int, seed: int) -> tuple[Any, Any]:
    """Return float32 rows on the device and labels that they half explain, one positive in a hundred."""
    import torch

    made = torch.Generator(device="cuda").manual_seed(seed)
    X = torch.empty((n, p), device="cuda").normal_(generator=made)
    w = torch.empty(p, device="cuda").normal_(generator=made) / p**0.5
    signal = X @ w + torch.empty(n, device="cuda").normal_(generator=made)
    return X, (signal > 2.326 * 2**0.5).to(torch.int8)


def time_products(report: Report, X: Any, bandwidth: float, libraries: list[str]) -> None:
    """Report both products of a dense matrix as shares of the copy's bandwidth."""
    import torch

    n, p = X.shape
    w, u = torch.randn(p, dtype=torch.float64, device="cuda"), torch.randn(n, dtype=torch.float64, device="cuda")
    size = X.numel() * X.element_size()
    for library in libraries:
        matrix, right, left = (as_library(a, library) for a in (X, w, u))
        operator = as_operator(matrix, check_finite=False)
        own, backend = operator._kernels, operator.backend
        for name, call in (
            ("Xw", lambda o=own, b=backend, m=matrix, v=right: o.row_dots(b, m, v)),
            ("X'u", lambda o=own, b=backend, m=matrix, v=left: o.column_sums(b, m, v)),
        ):
            ms = milliseconds(call)
            share = size / ms * 1e3 / bandwidth
            report.add(f"{library}: {name}, share of the copy's bandwidth", share, "", ">= 0.6", f"{ms:.2f} ms")


def time_scores(report: Report, n: int, libraries: list[str]) -> None:
    """Report value and gradient of risks of n scores beside a sort of as many keys."""
    import torch

    z = torch.randn(n, dtype=torch.float64, device="cuda")
    for library in libraries:
        keys = as_library(z, library)
        backend = DeviceVector(keys).backend
        sort = milliseconds(lambda b=backend, k=keys: b.xp.sort(k))
        report.add(f"{library}: sort of {n:.3g} float64 keys", sort, "ms")
        for share in (0.01, 0.1, 0.5):
            sign = torch.where(torch.rand(n, device="cuda") < share, 1, -1).to(torch.int8)
            scores = DeviceVector(as_library(z + 0.5 * sign, library))
            for name in ("roc_area", "roc_area_squared", "prbep", "hinge", "logistic"):
                risk = get_risk(name).prepare(DeviceVector(as_library(sign, library)), None, DeviceSpace())
                mu = 0.05 / (risk.ramp_scale or 1.0) if risk.smoothable else 0.0
                ms = milliseconds(lambda r=risk, s=scores, m=mu: r.evaluate(s, m))
                target = "<= 2" if name == "roc_area" else ""
                label = f"{library}: {name}, {share:.0%} positive, over the sort"
                report.add(label, ms / sort, "", target, f"{ms:.2f} ms")


def timed_fit(X: Any, y: Any, options: dict[str, Any]) -> tuple[float, MeasureClassifier]:
    """Return the seconds of a fit, and the fit."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = MeasureClassifier(**options).fit(X, y)
    return time.perf_counter() - start, clf


def describe(clf: MeasureClassifier, seconds: float) -> str:
    """Return what a fit did, in a line."""
    return f"{seconds:.3f} s, {clf.n_iter_} iterations, {clf.n_passes_:.1f} passes, J {clf.objective_:.6g}, gap {clf.gap_:.2g}"


def time_fits(
    report: Report, X: Any, y: Any, libraries: list[str], cases: list[dict[str, Any]], what: str, target: str
) -> None:
    """Report fits on the device beside the host's; X of the device is let go before the host begins."""
    import torch

    for library in libraries:  # compiled
        for options in cases:
            timed_fit(as_library(X, library)[:20_000], as_library(y, library)[:20_000], options)
    found: dict[tuple[int, str], tuple[float, MeasureClassifier]] = {}
    for k, options in enumerate(cases):
        for library in libraries:
            runs = [timed_fit(as_library(X, library), as_library(y, library), options) for _ in range(3)]
            found[k, library] = sorted(runs, key=lambda run: run[0])[1]
            same = len({run[1].coef_.tobytes() for run in runs}) == 1
            report.say(
                f"{library}, {what} {options}: {describe(found[k, library][1], found[k, library][0])}; same bits: {same}"
            )
    here, labels = X.cpu().numpy(), y.cpu().numpy()
    del X, y
    torch.cuda.empty_cache()
    parallel.even_bounds(10, 1)
    for k, options in enumerate(cases):
        timed_fit(here[:20_000], labels[:20_000], options)
        seconds, clf = timed_fit(here, labels, options)
        report.say(f"host, {what} {options}: {describe(clf, seconds)}")
        for library in libraries:
            own, there = found[k, library]
            difference = abs(there.objective_ - clf.objective_)
            assert difference <= there.gap_ + clf.gap_, f"J differs by {difference}, more than both gaps"
            label = f"{library}: {what}, {options['measure']} alpha {options['alpha']:g}, times faster"
            report.add(label, seconds / own, "", target)


def time_csr(report: Report, n: int, bandwidth: float, libraries: list[str], host: bool) -> None:
    """Report products and a fit of a CSR matrix with 50 entries per row, columns of very different length."""
    import torch

    p, each = 100_000, 50
    size = n * each
    indices = torch.empty(size, dtype=torch.int32, device="cuda")
    for start in range(0, size, 1 << 27):
        part = indices[start : start + (1 << 27)]
        part.copy_((torch.rand(len(part), device="cuda") ** 3 * p).to(torch.int32).clamp_(max=p - 1))
    values = torch.empty(size, device="cuda").normal_()
    starts = torch.arange(0, size + 1, each, dtype=torch.int64, device="cuda")
    w = torch.randn(p, dtype=torch.float64, device="cuda")
    bytes_read = size * 8.0
    y = None
    for library in libraries:
        arrays = [as_library(a, library) for a in (values, indices, starts)]
        operator = CsrDeviceOperator(*arrays, (n, p), DeviceVector(arrays[0]).backend)
        begin = time.perf_counter()
        z = operator.matvec(w.cpu().numpy())
        operator.rmatvec(z)
        torch.cuda.synchronize()
        report.say(
            f"{library}: {size:.3g} entries, first two products with the sorting by column {time.perf_counter() - begin:.2f} s"
        )
        if y is None:
            threshold = float(torch.quantile(torch.as_tensor(z.array[:1_000_000], device="cuda"), 0.97))
            noise = 0.5 * float(torch.as_tensor(z.array[:1_000_000], device="cuda").std())
            y = (torch.as_tensor(z.array, device="cuda") + noise * torch.randn(n, device="cuda") > threshold).to(
                torch.int8
            )
        right, left = as_library(w, library), z.array
        own = device_kernels.on(operator.backend)
        for name, call in (
            ("Xw", lambda o=operator, k=own, v=right: k.segment_dots(o._by_row, v)),
            ("X'u", lambda o=operator, v=left: o._column_dots(v)),
        ):
            ms = milliseconds(call, 5)
            share = bytes_read / ms * 1e3 / bandwidth
            report.add(f"{library}: CSR {name}, share of the copy's bandwidth", share, "", "", f"{ms:.1f} ms")
        options = {"measure": "roc_auc", "alpha": 1e-4, "tol": 1e-2}
        labels = as_library(y, library)
        seconds, clf = timed_fit(operator, labels, options)
        seconds, clf = timed_fit(operator, labels, options)
        report.say(f"{library}, CSR {options}: {describe(clf, seconds)}")
        del operator, z, labels
    if host:
        from scipy.sparse import csr_array

        X = csr_array((values.cpu().numpy(), indices.cpu().numpy(), starts.cpu().numpy()), shape=(n, p))
        labels = y.cpu().numpy()
        timed_fit(X[:20_000], labels[:20_000], options)
        there, other = timed_fit(X, labels, options)
        report.say(f"host, CSR {options}: {describe(other, there)}")
        difference = abs(other.objective_ - clf.objective_)
        assert difference <= other.gap_ + clf.gap_, f"J differs by {difference}, more than both gaps"
        report.add("CSR fit, times faster than the host", there / seconds, "")


def time_sizes(report: Report) -> None:
    """Report fits of other sizes and measures: on the device, with the way there, and on the host; device memory beyond X."""
    cases = [(int(n), p, "roc_auc") for n, p in SIZES] + [(2_000_000, 100, measure) for measure in MEASURES]
    for n, p, measure in cases:
        X, y = make_rows(n, p, 1)
        options = {"measure": measure, "alpha": 1e-4, "tol": 1e-2, "random_state": 0}
        here, labels = X.cpu().numpy(), y.cpu().numpy()
        moving = {**options, "solver_params": {"device": "cuda"}}
        timed_fit(X, y, options)
        timed_fit(here, labels, options)
        import torch

        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        there = sorted(timed_fit(X, y, options)[0] for _ in range(3))[1]
        peak = (torch.cuda.max_memory_allocated() - before) / (8.0 * n)
        host = sorted(timed_fit(here, labels, options)[0] for _ in range(3))[1]
        moved = sorted(timed_fit(here, labels, moving)[0] for _ in range(2))[0]
        note = f"device {there:.3f} s, host {host:.3f} s, from the host to the device and there {moved:.3f} s"
        report.add(
            f"{measure} {n:.0e} x {p}, times faster", host / there, "", "", f"{note}; memory {peak:.1f} vectors of n"
        )
        del X, y
        torch.cuda.empty_cache()


def main() -> None:
    """Run the parts asked for; exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--libraries", nargs="+", default=["torch", "cupy"], choices=["torch", "cupy"])
    parser.add_argument("--alphas", type=float, nargs="+", default=[1e-4, 1e-6])
    parser.add_argument("--seed", type=int, default=None, help="of the checks; fresh by default")
    parser.add_argument("--out", type=Path, default=OUTPUT / "gpu.json")
    given = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/gpu.py needs a CUDA device that PyTorch sees, and finds none")
    n, head = int(given.rows), {**header(), "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    print("\n".join(f"{name}: {value}" for name, value in head.items()), flush=True)
    report = Report(NAME, TITLE)
    if "check" in given.parts:
        seed = int(np.random.SeedSequence().entropy % 2**32) if given.seed is None else given.seed
        for library in given.libraries:
            begin = time.perf_counter()
            count, wrong = gpu_checks.all_right(library, seed)
            seconds = time.perf_counter() - begin
            report.say(
                f"{library}: {count} comparisons with the host, {len(wrong)} wrong, seed {seed}, {seconds:.0f} s"
            )
            if wrong:
                raise SystemExit("\n".join(wrong[:40]))
    bandwidth = copy_bandwidth()
    torch.cuda.empty_cache()
    report.add("copy on the device, bytes read and written", bandwidth / 1e12, "TB/s")
    if "scores" in given.parts:
        time_scores(report, n, given.libraries)
    if "products" in given.parts or "fit" in given.parts:
        X, y = make_rows(n, given.features, 0)
        if "products" in given.parts:
            time_products(report, X, bandwidth, given.libraries)
        if "fit" in given.parts:
            cases = [{"measure": "roc_auc", "alpha": alpha, "tol": 1e-2} for alpha in given.alphas]
            time_fits(report, X, y, given.libraries, cases, f"dense float32 {n:.3g} x {given.features}", ">= 15")
        del X, y
        torch.cuda.empty_cache()
    if "csr" in given.parts:
        time_csr(report, n, bandwidth, given.libraries, host=True)
    if "sizes" in given.parts:
        time_sizes(report)
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(json.dumps({"header": head, "rows": report.rows}, indent=1))


if __name__ == "__main__":
    main()
