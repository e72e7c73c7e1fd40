"""Is what the GPU computes right: every operation on fresh random inputs compared with the host in float64, for `gpu.py`."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline import MeasureClassifier
from scoreline.gpu import csr_operator as device_csr
from scoreline.gpu.score_space import Space as DeviceSpace
from scoreline.gpu.vector import DeviceVector
from scoreline.measures import best_threshold
from scoreline.operators import as_operator
from scoreline.risks.registry import get_risk
from scoreline.scores import HostSpace

RISKS = ("roc_area", "roc_area_squared", "prbep", "hinge", "squared_hinge", "logistic")
DEVICE = "cuda"
SHAPES = ((1, 1), (3, 7), (1000, 5), (257, 129), (60, 9000), (50_000, 64), (200_003, 33))


def sent(X: Any, library: str) -> Any:
    """Return a host array or CSR matrix as one of a library on the GPU."""
    if library == "torch":
        import torch

        if sp.issparse(X):
            parts = [torch.from_numpy(a) for a in (X.indptr, X.indices, X.data)]
            return torch.sparse_csr_tensor(*parts, size=X.shape).to(DEVICE)
        strides = np.argsort(X.strides)[::-1]  # the order of memory survives
        return (
            torch.from_numpy(np.ascontiguousarray(X.transpose(*strides)))
            .to(DEVICE)
            .permute(*np.argsort(strides).tolist())
        )
    import cupy
    import cupyx.scipy.sparse

    return cupyx.scipy.sparse.csr_matrix(X) if sp.issparse(X) else cupy.asarray(X)


def difference(got: Any, wanted: Any) -> float:
    """Return |got - wanted| / |wanted|, infinity if there is NaN."""
    got, wanted = np.asarray(got, dtype=float), np.asarray(wanted, dtype=float)
    error = float(np.linalg.norm(got - wanted) / max(float(np.linalg.norm(wanted)), 1e-15))
    return error if np.isfinite(error) else np.inf


def products(library: str, rng: Any) -> Iterator[tuple[str, float, float]]:
    """Yield what was compared, its error and the limit: a few roundings of float64, of sums of n terms."""
    for n, p in SHAPES:
        for dtype in (np.float32, np.float64):
            base = rng.standard_normal((n, p)).astype(dtype)
            orders = {"C": base, "F": np.asfortranarray(base)}
            for order, X in orders.items():
                yield from _both(f"{n} x {p} {np.dtype(dtype).name} {order}", as_operator(sent(X, library)), base, rng)
            if n > 2 and p > 2:
                part = sent(base, library)[::2, 1:]
                yield from _both(f"{n} x {p} {np.dtype(dtype).name} sliced", as_operator(part), base[::2, 1:], rng)
    for n, p, share in ((1, 1, 1.0), (2000, 300, 0.02), (70_000, 41, 0.3), (300, 20_000, 0.01), (5000, 50, 0.0)):
        for dtype in (np.float32, np.float64):
            X = sp.random(n, p, share, format="csr", dtype=np.float64, random_state=rng).astype(dtype)
            yield from _both(f"CSR {n} x {p} {np.dtype(dtype).name}", as_operator(sent(X, library)), X.toarray(), rng)
            large = device_csr.TILE_ROWS, device_csr.PIECE
            device_csr.TILE_ROWS, device_csr.PIECE = 1 + n // 5, 7  # as with many rows and long columns
            yield from _both(f"CSR in tiles {n} x {p}", as_operator(sent(X, library)), X.toarray(), rng)
            device_csr.TILE_ROWS, device_csr.PIECE = large


def _both(what: str, operator: Any, X: Any, rng: Any) -> Iterator[tuple[str, float, float]]:
    X = X.astype(np.float64)
    w, u, s = rng.standard_normal(X.shape[1]), rng.standard_normal(X.shape[0]), rng.random(X.shape[0])
    yield f"Xw {what}", difference(operator.matvec(w), X @ w), 1e-13
    yield f"X'u {what}", difference(operator.rmatvec(u), X.T @ u), 1e-12
    if X.shape[1] <= 300:
        yield f"gram {what}", difference(operator.gram(s), (X * s[:, None]).T @ X), 1e-12
        y = np.where(rng.random(X.shape[0]) < 0.3, 1, -1)
        found, host = operator.class_moments(y, s), as_operator(X).class_moments(y, s)
        for side in ("positive", "negative"):
            a, b = getattr(found, side), getattr(host, side)
            yield (
                f"moments {what}",
                max(difference(a.mean, b.mean), difference(a.scatter, b.scatter) if b.weight > 1 else 0.0),
                1e-11,
            )
    statistics = zip(operator.column_statistics(s), as_operator(X).column_statistics(s), strict=True)
    yield f"statistics {what}", max(difference(a, b) for a, b in statistics), 1e-11


def scores(library: str, rng: Any) -> Iterator[tuple[str, float, float]]:
    """Yield errors of risks, gradients, curvatures and thresholds."""
    host, device = HostSpace(), DeviceSpace()
    kinds = [(share, kind) for share in (0.5, 0.01, 0.97) for kind in ("normal", "ties", "equal", "far")]
    for share, kind in [*kinds, (0.5, "many"), (0.0, "normal"), (1.0, "ties")]:
        n = {"normal": 200_000, "many": 5_000_000}.get(kind, 20_011)
        y = np.where(rng.random(n) < share, 1, -1).astype(np.int8)
        y[0], y[1] = 1, -1
        z = rng.standard_normal(n) + 0.5 * y
        z = {"ties": np.round(z, 1), "equal": np.full(n, 0.25), "far": z + 1e6}.get(kind, z)
        copies = rng.integers(0, 4, n).astype(float)
        copies[:2] = 1.0
        for weight in (None,) if kind == "many" else (None, copies):
            what = f"{kind} {share} {'weights' if weight is not None else ''}".strip()
            there = DeviceVector(sent(z, library))
            for name in ("roc_area", "prbep") if kind == "many" else RISKS:
                a = get_risk(name).prepare(y, weight, host)
                sign = DeviceVector(sent(y, library))
                s = None if weight is None else DeviceVector(sent(weight, library))
                b = get_risk(name).prepare(sign, s, device)
                for mu in (0.0, 1e-3, 0.2718) if a.smoothable else (0.0,):
                    width = mu / (a.ramp_scale or 1.0)
                    one, other = a.evaluate(z, width), b.evaluate(there, width)
                    # A score of 1e6 is known to 1e-10, a part of the ramp.
                    size = 1e-12 * max(1.0, float(np.abs(z).max())) / min(1.0, mu or 1.0)
                    got = [other.value, other.hard, other.plane, other.mass]
                    yield f"{name} mu {mu} {what}", difference(got, [one.value, one.hard, one.plane, one.mass]), size
                    yield f"{name} gradient mu {mu} {what}", difference(other.grad, one.grad), 10.0 * size
                    hessians = a.hessian(z, width), b.hessian(there, width)
                    if hessians[0] is not None:
                        error = difference(hessians[1].diagonal, hessians[0].diagonal)
                        # Single rows at the end of a ramp may fall on either side.
                        yield f"{name} Hessian mu {mu} {what}", error, 1e-3 if kind == "far" else max(1e-9, size)
            for measure in ("f1", "prbep") if kind == "many" else ("f1", "accuracy", "min_tpr_tnr", "prbep"):
                a, b = best_threshold(y, z, measure, weight), best_threshold(sign, there, measure, s)
                yield f"threshold for {measure} {what}", max(difference(a.value, b.value), _other_side(z, a, b)), 1e-12


def _other_side(z: Any, a: Any, b: Any) -> float:
    """Return how many rows two thresholds put on different sides."""
    return float(np.count_nonzero((z > a.threshold) != (z > b.threshold)))


def fits(library: str, rng: Any, n: int = 60_000, p: int = 30) -> Iterator[tuple[str, float, float]]:
    """Yield, for each measure and risk, how far the first five iterations are from the host's, and J beyond both gaps."""
    w = rng.standard_normal(p)
    X = rng.standard_normal((n, p)).astype(np.float32)
    y = np.where(X @ w / np.sqrt(p) + rng.standard_normal(n) > 2.0, 1, 0)
    cases = (
        [("roc_auc", name) for name in RISKS[:2]] + [("prbep", "prbep")] + [("accuracy", name) for name in RISKS[3:]]
    )
    for sparse in (False, True):
        entries = np.where(rng.random((n, p)) < 0.3, X, 0.0).astype(np.float32) if sparse else X
        wide = entries.astype(np.float64)
        there, here = (sp.csr_matrix(entries), sp.csr_matrix(wide)) if sparse else (entries, wide)
        for measure, risk in cases:
            options = {"measure": measure, "risk": risk, "tol": 1e-3, "scaling": "standard", "random_state": 0}
            what = f"{measure} by {risk}{' CSR' if sparse else ''}"
            # From 0 without a Hessian: when one is made depends on what it costs, which differs.
            plain = {"init": "zero", **({"precondition": False} if risk in ("roc_area", "prbep", "hinge") else {})}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # five iterations do not converge
                first = [
                    MeasureClassifier(**options, solver="auto", solver_params=plain, max_iter=5).fit(X, y)
                    for X in (here, sent(there, library))
                ]
                a, b = (MeasureClassifier(**options).fit(X, y) for X in (here, sent(there, library)))
            objectives = [np.array(clf.history_["objective"]) for clf in first]
            yield f"five iterations of {what}", difference(*objectives), 1e-9
            yield f"J of {what}: difference over gaps", abs(a.objective_ - b.objective_) / (a.gap_ + b.gap_), 1.0
            yield (
                f"lower bound of {what} above J",
                max(0.0, max(a.lower_bound_, b.lower_bound_) - min(a.objective_, b.objective_)),
                0.0,
            )


PENALISED = [
    ("roc_auc", "roc_area", {"penalty": "elastic_net", "penalty_params": {"l1_ratio": 0.8}}),
    ("accuracy", "logistic", {"penalty": "group", "penalty_params": {"groups": [[j, j + 1] for j in range(0, 30, 2)]}}),
    ("accuracy", "hinge", {"bounds": (0.0, None)}),
    ("prbep", "prbep", {"bounds": {0: (None, -0.1), 1: (0.1, 0.2)}}),
]


def penalised(library: str, rng: Any, n: int = 60_000, p: int = 30) -> Iterator[tuple[str, float, float]]:
    """Yield J beyond both gaps for penalties with kinks and for bounds."""
    X = rng.standard_normal((n, p)).astype(np.float32)
    y = np.where(X @ rng.standard_normal(p) / np.sqrt(p) + rng.standard_normal(n) > 1.0, 1, 0)
    for measure, risk, options in PENALISED:
        options = {"measure": measure, "risk": risk, "alpha": 0.01, "tol": 1e-3, **options}
        what = f"{measure} by {risk}, {', '.join(sorted(set(options) & {'penalty', 'bounds'}))}"
        a, b = (MeasureClassifier(**options).fit(rows, y) for rows in (X.astype(np.float64), sent(X, library)))
        yield f"J of {what}: difference over gaps", abs(a.objective_ - b.objective_) / (a.gap_ + b.gap_), 1.0
        proved, reached = max(a.lower_bound_, b.lower_bound_), min(a.objective_, b.objective_)
        yield f"lower bound of {what} above J", max(0.0, proved - reached), 0.0


def all_right(library: str, seed: int) -> tuple[int, list[str]]:
    """Return how many comparisons were made, and those that failed."""
    rng, count, wrong = np.random.default_rng(seed), 0, []
    for part in (products, scores, fits, penalised):
        worst: tuple[float, str] = (0.0, "")
        for what, error, limit in part(library, rng):
            count += 1
            if not error <= limit:
                wrong.append(f"{library}: {what}: {error:.3g}, expected at most {limit:.3g}")
            worst = max(worst, (error / limit if limit else 0.0, f"{what}: {error:.2g} of {limit:.2g}"))
        print(f"  {library} {part.__name__}: closest to its limit: {worst[1]}", flush=True)
    return count, wrong
