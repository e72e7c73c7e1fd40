"""What `kernels.py` times compared with the machine's limits and `revisions.py` times in two revisions: cases, found by name.

A case is a function without arguments that makes its data and returns a `Work`: what to time, and what that must move,
compute and sort at least. Risks, solvers and storages come from the package's own registries and folders, so a new one is a
new case here. scoreline is imported inside functions only: a revision that lacks something loses that case, not all.

Bytes count what has to cross the memory bus once: every input that is needed is read once, every result written once.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernel_storages import (
    COLUMNS,
    PER_ROW,
    SEED,
    SOME,
    VECTOR,
    Matrix,
    compressed,
    dense,
    gaussian_rows,
    host_operators,
    recipes,
    sparse_rows,
    without_recipe,
)

SHARE = 0.05  # of positives
LABEL = 1  # bytes of an int8 label; VECTOR are those of a float64 score
# Flops of a row by the polynomials of kernels/exponential.py: exp 13 fused steps and 9 more, log1p 17 and 4, 12 around them.
EXP, LOG1P = 35, 38
ROW_FLOPS = {"logistic": EXP + LOG1P + 12}
IMPORT = "import json, sys, time; t = time.perf_counter(); import scoreline; print(json.dumps(time.perf_counter() - t))"


class Work(NamedTuple):
    """A call to time, and the least it must do; `order` brings the keys in the order that the call needs, by NumPy.

    read, written : bytes
    flops : floating-point operations, a fused multiply and add counting as two
    span : bytes of the memory that what is read lies in, where that is more: rows here and there
    own_clock : the call returns its seconds itself
    keep : what must live as long as the case
    """

    run: Callable[[], Any]
    read: float = 0.0
    written: float = 0.0
    flops: float = 0.0
    order: Callable[[], Any] | None = None
    order_name: str = ""
    span: float = 0.0
    own_clock: bool = False
    keep: Any = None


Cases = dict[str, Callable[[], Work]]


def cases(n: int = 1_000_000) -> Cases:
    """Return all cases by name; `n` scores, matrices of n / 5 rows."""
    found: Cases = {}
    for group in (risk_cases, vector_cases, threshold_cases, storage_cases, second_order_cases, row_cases, fit_cases):
        try:
            found |= group(n)
        except (ImportError, AttributeError) as error:  # another revision of scoreline, which has no such thing
            print(f"no {group.__name__}: {error}", file=sys.stderr)
    return found


def labelled_scores(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    y = np.where(rng.random(n) < SHARE, 1, -1).astype(np.int8)
    y[:2] = 1, -1
    return rng.standard_normal(n) + (y > 0), y


def risk_cases(n: int) -> Cases:
    """Value and gradient of every risk, its smooth neighbour, and its second derivatives, where it has them."""
    from scoreline.risks.registry import all_risks

    found: Cases = {}
    for name, risk in all_risks().items():
        rows = min(
            n, getattr(risk, "most_rows", 5 * n // 2) * 2 // 5
        )  # less than it takes at most: it may be quadratic
        found[f"risk {name}"] = partial(_risk, name, rows, 0.0)
        if risk.smoothable:
            found[f"risk {name}, smoothed"] = partial(_risk, name, rows, 0.1)
        if risk.curved:
            found[f"curvature {name}"] = partial(_curvature, name, rows)
    return found


def _risk(name: str, n: int, width: float) -> Work:
    """Scores and labels are read, the gradient is written: 8 n + n and 8 n bytes."""
    from scoreline.risks.registry import get_risk

    z, y = labelled_scores(n)
    risk, out = get_risk(name).prepare(y), np.empty(n)
    mu = width / risk.ramp_scale if width else 0.0
    order, order_name = _order(name, z, y)
    flops = _entropy_flops(y) if name == "contingency_entropy" else ROW_FLOPS.get(name, 0.0) * n
    return Work(lambda: risk.evaluate(z, mu, out), (VECTOR + LABEL) * n, VECTOR * n, flops, order, order_name)


def _order(name: str, z: np.ndarray, y: np.ndarray) -> tuple[Callable[[], Any] | None, str]:
    """Return what NumPy takes for the order that a risk cannot do without; a risk that is not listed may need none."""
    above, below = z[y > 0], z[y < 0]
    if name in ("roc_area", "roc_area_squared"):
        return lambda: np.sort(above), "np.sort of the positives"
    if name == "partial_roc":  # the highest tenth of the negatives, and a sort of the smaller of both sides
        position = len(below) * 9 // 10
        return lambda: (
            np.partition(below, position),
            np.sort(above),
        ), "np.partition of the negatives, np.sort of the positives"
    if name == "contingency":
        return lambda: (np.sort(above), np.sort(below)), "np.sort of both classes"
    if name == "average_precision":
        return lambda: (np.argsort(above), np.argsort(below)), "np.argsort of both classes"
    if name in ("prbep", "hinge_free_intercept"):
        return lambda: np.partition(z, len(above)), "np.partition of all scores"
    return None, ""


def _entropy_flops(y: np.ndarray) -> float:
    """n^2 sums of logs (exp, log1p, 3) and half as many exps: forward and backward over both classes, and their product."""
    return (EXP + LOG1P + 3 + 0.5 * EXP) * float(len(y)) ** 2


def _curvature(name: str, n: int) -> Work:
    from scoreline.risks.registry import get_risk

    z, y = labelled_scores(n)
    risk = get_risk(name).prepare(y)
    flops = (EXP + 6) * n if name == "logistic" else 0.0
    return Work(lambda: risk.curvature(z), (VECTOR + LABEL) * n, VECTOR * n, flops)


def vector_cases(n: int) -> Cases:
    from scoreline.scores import HostSpace

    def make(name: str, read: int, written: int) -> Work:
        z, y = labelled_scores(n)
        x, out, space = z[::-1].copy(), np.empty(n), HostSpace()
        labels = space.labels(y)
        calls = {
            "dot": lambda: space.dot(z, x),
            "combine": lambda: space.combine(0.5, z, 0.5, x, out),
            "max_abs": lambda: space.max_abs(z, labels),
        }
        return Work(calls[name], VECTOR * read * n, VECTOR * written * n)

    sizes = {"dot": (2, 0), "combine": (2, 1), "max_abs": (1, 0)}  # vectors read and written
    return {f"vector {name}": partial(make, name, *moved) for name, moved in sizes.items()}


def threshold_cases(n: int) -> Cases:
    """The thresholds of two sorted classes, and the sort alone: np.sort of either class is what must be."""
    from scoreline.measures import best_threshold, get_measure, robust_threshold
    from scoreline.scores import HostSpace

    def make(name: str) -> Work:
        z, y = labelled_scores(n)
        positive, space, f1 = (y > 0).astype(np.int8), HostSpace(), get_measure("f1")
        weight, labels = np.random.default_rng(SEED).integers(1, 4, n).astype(float), space.labels(y)
        calls = {
            "threshold, exact": lambda: best_threshold(positive, z, f1),
            "threshold, exact, weights": lambda: best_threshold(positive, z, f1, weight),
            "threshold, robust": lambda: robust_threshold(positive, z, f1),
            "sort of the classes": lambda: space.class_scores(z, labels),
        }
        above, below = z[y > 0], z[y < 0]
        by, called = (np.argsort, "np.argsort") if "weights" in name else (np.sort, "np.sort")
        read = (VECTOR + LABEL) * n + (VECTOR * n if "weights" in name else 0)
        written = VECTOR * n if name.startswith("sort") else 0.0
        return Work(calls[name], read, written, 0.0, lambda: (by(above), by(below)), f"{called} of both classes")

    names = ("threshold, exact", "threshold, exact, weights", "threshold, robust", "sort of the classes")
    return {name: partial(make, name) for name in names}


def storage_cases(n: int) -> Cases:
    """Both products, the same on some of the rows, and column statistics, of every operator in every layout it is known in."""
    found: Cases = {}
    known = recipes()
    for name, kind in host_operators().items():
        layouts = known.get(name) or {"unknown layout": partial(without_recipe, kind)}
        for layout, make in layouts.items():
            for product in _products(make):
                found[f"{name} {layout}, {product}"] = partial(_product, make, n // 5, product)
    return found


def _products(make: Callable[[int], Matrix]) -> list[str]:
    """Return what an operator can do, asked of a small one; one that cannot be made keeps cases, which fail when they run."""
    try:
        extras = make(50).operator.capabilities
    except Exception:
        extras = frozenset()
    rows = ["Xw on rows", "X'u on rows"] if "rows" in extras else []
    return ["Xw", "X'u", *rows, *(["statistics"] if "statistics" in extras else [])]


def _product(make: Callable[[int], Matrix], n: int, product: str) -> Work:
    """X is read once; Xw writes 8 n bytes, X'u reads as many; 8 bytes for each row that is listed."""
    matrix = make(n)
    operator, rng = matrix.operator, np.random.default_rng(SEED)
    rows, width = operator.shape
    w, u = rng.standard_normal(width), rng.standard_normal(rows)
    listed = np.sort(rng.choice(rows, int(SOME * rows), replace=False)).astype(np.uint64)
    some = u[: len(listed)].copy()
    share = len(listed) / rows
    calls: dict[str, tuple[Callable[[], Any], float, float, float]] = {
        "Xw": (lambda: operator.matvec(w), matrix.total_bytes, VECTOR * rows, 1.0),
        "X'u": (lambda: operator.rmatvec(u), matrix.total_bytes + VECTOR * rows, 0.0, 1.0),
        "Xw on rows": (
            lambda: operator.matvec_rows(w, listed), matrix.some + VECTOR * len(listed), VECTOR * len(listed), share),
        "X'u on rows": (
            lambda: operator.rmatvec_rows(some, listed), matrix.some + 2 * VECTOR * len(listed), 0.0, share),
        "statistics": (lambda: operator.column_statistics(), matrix.total_bytes, 0.0, 1.0),
    }  # fmt: skip
    run, read, written, part = calls[product]
    return Work(run, read, written, matrix.flops * part, span=max(matrix.span, matrix.total_bytes), keep=matrix.keep)


def second_order_cases(n: int) -> Cases:
    """Gram matrices, quadratic forms of rows, and leave-one-out, which is made of both: flops by BLAS's best speed."""

    def gram(make: Callable[[int], Matrix], pairs: float, rows: int) -> Work:
        matrix = make(rows)
        weight = np.ones(rows)
        result = VECTOR * float(matrix.operator.shape[1]) ** 2
        return Work(lambda: matrix.operator.gram(weight), matrix.total_bytes + VECTOR * rows, result, pairs * rows)

    def left_out(make: Callable[[int], Matrix], pairs: float, rows: int) -> Work:
        from scoreline.objective import Objective
        from scoreline.risks.registry import get_risk
        from scoreline.solvers.common.leave_one_out import leave_one_out

        matrix = make(rows)
        z, y = labelled_scores(rows)
        objective = Objective(matrix.operator, get_risk("logistic").prepare(y), 1e-3)
        flops = 3.0 * pairs * rows  # one symmetric product, and one that is not
        return Work(lambda: leave_one_out(objective, z), 2.0 * matrix.total_bytes, VECTOR * rows, flops)

    rows = n // 5
    own, own_sparse = float(COLUMNS) ** 2, float(PER_ROW) ** 2  # flops of a row, half of the square at two flops each
    return {
        "gram dense": partial(gram, dense, own, rows),
        "gram CSR": partial(gram, compressed, own_sparse, rows // 4),
        "leave-one-out dense": partial(left_out, dense, own, rows),
    }


def row_cases(n: int) -> Cases:
    """partial_fit of a block by every solver that streams: its rows are read once."""
    from scoreline.solvers.registry import all_solvers

    def make(solver: str, measure: str, kind: str) -> Work:
        from scoreline import MeasureClassifier

        rows = n // 20
        X: Any = gaussian_rows(rows) if kind == "dense" else sparse_rows(rows)
        _, y = labelled_scores(rows)
        clf = MeasureClassifier(measure=measure, solver=solver)
        size = X.nbytes if kind == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        entries = rows * (COLUMNS if kind == "dense" else PER_ROW)
        each = COLUMNS if solver == "moments" else 4.0  # flops: a symmetric product, or score and length
        return Work(lambda: clf.partial_fit(X, y), size + LABEL * rows, 0.0, each * entries)

    found: Cases = {}
    for name, solver in all_solvers().items():
        if solver.streams:
            measure = solver.measures[0] if solver.measures else "roc_auc"
            for kind in ("dense",) if name == "moments" else ("dense", "CSR"):
                found[f"partial_fit {name}, {kind}"] = partial(make, name, measure, kind)
    return found


def fit_cases(n: int) -> Cases:
    """Whole fits, prediction and import: what a user waits for. They have no floor."""

    def fit(kind: str, options: dict[str, Any]) -> Work:
        from scoreline import MeasureClassifier

        rows = n // 20
        X: Any = gaussian_rows(rows) if kind == "dense" else sparse_rows(rows)
        rng = np.random.default_rng(SEED)
        y = np.where(X @ rng.standard_normal(X.shape[1]) + 6.0 * rng.standard_normal(rows) > 8.0, 1, -1)
        return Work(lambda: MeasureClassifier(**options).fit(X, y))

    def predict() -> Work:
        from scoreline import MeasureClassifier

        X, (_, y) = gaussian_rows(n // 5), labelled_scores(n // 5)
        clf = MeasureClassifier(measure="f1").fit(X[:2000], y[:2000])
        return Work(lambda: clf.predict(X), X.nbytes, VECTOR * len(X))

    def start() -> Work:
        call = [sys.executable, "-c", IMPORT]
        return Work(lambda: json.loads(subprocess.check_output(call, env=os.environ)), own_clock=True)

    return {
        "fit AUC, dense": partial(fit, "dense", {"measure": "roc_auc"}),
        "fit AUC, CSR": partial(fit, "CSR", {"measure": "roc_auc"}),
        "fit F1 by amp, dense": partial(fit, "dense", {"measure": "f1", "solver": "amp"}),
        "fit logistic by newton, dense": partial(
            fit, "dense", {"measure": "accuracy", "risk": "logistic", "solver": "newton"}
        ),
        "predict, dense": predict,
        "import scoreline": start,
    }
