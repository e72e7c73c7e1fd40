"""Growing batches and starts on samples (`hybrid`, `newton`) compared with scikit-learn, and the figures of their paper.

    SCORELINE_DATA=folder python benchmarks/hybrid.py [--parts speed,skips,auc,figures] [--sets a9a,covtype] [--cap 20]
        [--alphas 1e-2,1e-4,1e-6] [--out bench-output/hybrid.json] [--to folder]
    python benchmarks/hybrid.py --join bench-output/hybrid-*.json --out bench-output/hybrid.json

J(w) = alpha/2 |w|^2 + R(Xw) without intercept, data maxabs-scaled. The set "dense" (1,000,000 x 50) is made on the spot.

speed: seconds until J <= (1 + 1e-4) J*, J* from `newton` with tol=1e-7 (where it does not get there, the lowest J of `newton`,
`lbfgs` and `hybrid`). Our time begins with X and y: operator and risk are made on the clock, a callback ends the run. scikit-
learn has no such callback: it runs with tol = 1e-1, 1e-2, ... 1e-8, and the time of the loosest tol that is good enough counts,
which nobody knows beforehand; its J is computed off the clock. That is generous to scikit-learn, as is that it runs with one
thread and with its own choice of threads, and the better time counts. Best of three; a side that does not arrive within the cap
counts the cap. Ratios are scikit-learn / ours: above 1 we are faster. LinearSVC has C = 1 / (2 n alpha), LogisticRegression C =
1 / (n alpha).

skips: the share of rows that `hybrid` skips with the squared hinge, mean over the iterations to tol=1e-4, and the passes.

auc: seconds until a model's ROC area on test rows (20 %) is that of LogisticRegression(C=1) less 1e-4: `smoothed` on the ROC
area for alpha = 1e-2, 1e-4, 1e-6 in turn, their times added up, and `newton` on LogisticRegression's own problem. The test rows
are looked at off the clock.

figures: objective and test error against passes for the squared hinge, into hybrid.png, see hybrid_figures.py.
"""

import argparse
import contextlib
import json
import signal
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from common import OUTPUT, SEED, SPIN, standalone
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import LogisticRisk, RocAreaRisk, SquaredHingeRisk
from scoreline.solvers import HybridSolver, LbfgsSolver, NewtonSolver, SmoothedSolver
from smoothing_data import VARIABLE, Data, load

NAME, TITLE = (
    "hybrid",
    "growing batches and starts on samples compared with scikit-learn; ratios are scikit-learn / ours",
)
PARTS = ("speed", "skips", "auc", "figures")
SETS = ("a9a", "covtype", "mnist", "census-income", "kddcup99", "sector", "dense")
RISKS = {"squared_hinge": SquaredHingeRisk, "logistic": LogisticRisk}
OURS = {
    "hybrid": lambda **o: HybridSolver(**o),
    "hybrid path": lambda **o: HybridSolver(shrink="path", **o),  # squared hinge alone
    "newton auto": lambda **o: NewtonSolver(init="auto", **o),
    "newton zero": lambda **o: NewtonSolver(init="zero", **o),
    "lbfgs zero": lambda **o: LbfgsSolver(init="zero", **o),
}
COMPARED = ("hybrid", "newton auto")
WITHIN = 1e-4  # of J*, relative
SURE, SURE_SECONDS = 1e-7, 60.0  # tol of the run that J* comes from, and how long it may take
NEVER = 1e-12  # tol of a run that its callback ends
TOLS = [10.0**-k for k in range(1, 9)]  # of scikit-learn
MOST_ITERATIONS = 10_000
REPEATS, SHORT = 3, 10.0  # repeat so often, or until this many seconds have passed; the best counts
SLOWER = 1.2
FEW_FEATURES = 1000  # newton-cholesky makes a Hessian
AREA_ALPHAS, AREA_SLACK = (1e-2, 1e-4, 1e-6), 1e-4


def load_or_make(name):
    """Return the data set, None without its file; "dense" is not the one of smoothing.py."""
    if name != "dense":
        return load(name)
    rng = np.random.default_rng(SEED)
    X, w = rng.standard_normal((1_000_000, 50)), rng.standard_normal(50)
    z = X @ w / np.linalg.norm(w) + 0.5 * rng.standard_normal(len(X))
    return Data(name, X, np.where(z > np.quantile(z, 0.7), 1, -1))


def problem(data, risk, alpha):
    return Objective(as_operator(data.X), RISKS[risk]().prepare(data.y), alpha)


def geometric(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else None


@contextlib.contextmanager
def alarm(seconds):
    """Raise TimeoutError after so many seconds; compiled code that never returns to Python (liblinear) runs to its end."""

    def ring(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def ours(data, risk, alpha, name, target, cap):
    """Return (seconds, passes) when J was first at most `target`, or None, and the lowest J."""
    begin = time.perf_counter()
    objective = problem(data, risk, alpha)
    options = {"tol": NEVER, "max_time": cap, "max_iter": 10**6}
    solver = OURS[name](callbacks=[lambda progress: progress.objective <= target], **options)
    setup = time.perf_counter() - begin
    history = solver.solve(objective).history
    rows = zip(history["seconds"], history["passes"], history["objective"], strict=True)
    at = next(((setup + seconds, passes) for seconds, passes, value in rows if value <= target), None)
    return at if at is not None and at[0] <= cap else None, min(history["objective"])


def rivals(risk, shape):
    """Return {name: function of (C's alpha times n, tol) that makes the estimator} for this risk."""
    fixed = {"fit_intercept": False, "max_iter": MOST_ITERATIONS}
    if risk == "squared_hinge":
        return {"LinearSVC": lambda na, tol: LinearSVC(dual=False, C=0.5 / na, tol=tol, random_state=SEED, **fixed)}
    found = {"lr lbfgs": lambda na, tol: LogisticRegression(solver="lbfgs", C=1.0 / na, tol=tol, **fixed)}
    if shape[0] >= shape[1] and shape[1] <= FEW_FEATURES:
        found["lr newton-cholesky"] = lambda na, tol: LogisticRegression(
            solver="newton-cholesky", C=1.0 / na, tol=tol, **fixed
        )
    return found


def fit(data, make, alpha, tol, cap):
    """Return (seconds, w) of the better of two fits of scikit-learn, with one thread and with its own choice, or None.

    Where another process keeps a core busy, OpenBLAS's threads wait for each other: a fit of sector took 0.85 s, not 0.05.
    """
    fits = [fit_once(data, make, alpha, tol, cap, threads) for threads in (1, None)]
    return min(filter(None, fits), key=lambda f: f[0], default=None)


def fit_once(data, make, alpha, tol, cap, threads):
    """Return (seconds, w) of a fit with so many threads of BLAS and OpenMP, or None where it takes longer than the cap."""
    estimator = make(alpha * data.X.shape[0], tol)
    begin = time.perf_counter()
    try:
        with threadpool_limits(threads), alarm(cap):
            estimator.fit(data.X, data.y)
    except TimeoutError:
        return None
    finally:
        time.sleep(SPIN)  # its threads spin on
    seconds = time.perf_counter() - begin - SPIN
    return (seconds, estimator.coef_.ravel()) if seconds <= cap else None


def loosest(data, make, alpha, objective, target, cap):
    """Return the loosest tol whose J is at most `target`, or None, and the lowest J seen."""
    lowest = np.inf
    for tol in TOLS:
        found = fit_once(data, make, alpha, tol, cap, 1) or fit_once(data, make, alpha, tol, cap, None)
        if found is None:
            break
        lowest = min(lowest, objective.value(found[1]))
        if lowest <= target:
            return tol, lowest
    return None, lowest


def optimum(objective):
    """Return the end of `newton`; where it proves less than it should, of `lbfgs` or `hybrid` if J is lower there."""
    ends = []
    for solver in (NewtonSolver, LbfgsSolver, HybridSolver):
        ends.append(solver(tol=SURE, init="zero", max_time=SURE_SECONDS, max_iter=10**6).solve(objective))
        if ends[-1].status == "converged":
            break
    return min(ends, key=lambda end: end.objective)


def one_cell(report, data, risk, alpha, cap):
    """Race one data set, risk and alpha."""
    objective, title = problem(data, risk, alpha), f"{data.name} {risk} {alpha:g}"
    best = optimum(objective)
    target, values = (1.0 + WITHIN) * best.objective, {}
    names = [n for n in OURS if n != "hybrid path" or risk == "squared_hinge"]
    others, tols = rivals(risk, data.X.shape), {}
    for name, make in others.items():
        try:
            tols[name], values[name] = loosest(data, make, alpha, objective, target, cap)
        except (TypeError, ValueError) as error:
            report.say(f"{title}: {name} refuses these data: {error}")
    at = dict.fromkeys((*names, *tols))
    begin = time.perf_counter()
    for _ in range(REPEATS):
        for name in names:
            found, values[name] = ours(data, risk, alpha, name, target, cap)
            at[name] = min(filter(None, (at[name], found)), default=None)
        for name, tol in tols.items():
            found = None if tol is None else fit(data, others[name], alpha, tol, cap)
            at[name] = min(filter(None, (at[name], found and (found[0], None))), default=None)
        if time.perf_counter() - begin > SHORT:
            break
    seconds = {name: cap if a is None else a[0] for name, a in at.items()}
    cell = {
        "set": data.name, "risk": risk, "alpha": alpha, "J*": best.objective, "status": best.status,
        "gap": best.gap / best.objective, "seconds": seconds, "tol": tols,
        "passes": {n: at[n][1] for n in names if at[n] is not None}, "arrived": [n for n in at if at[n] is not None],
        "lowest": min(values.values()) / best.objective - 1.0,
    }  # fmt: skip
    words = [f"{n} {'never' if at[n] is None else f'{at[n][0]:.3g} s {at[n][1]:.1f} passes'}" for n in names]
    words += [f"{n} {'never' if at[n] is None else f'{at[n][0]:.3g} s at tol {tols[n]:g}'}" for n in tols]
    quickest = min(tols, key=seconds.get)
    for name in COMPARED:
        note = ", ".join(words) if name == COMPARED[0] else f"{quickest} {seconds[quickest]:.3g} s"
        report.add(f"{title}: best rival / {name}", seconds[quickest] / seconds[name], "x", "", note)
    return cell | {"quickest": quickest}


def summary(report, cells):
    """Geometric means over all cells, and the cells where we are slower."""
    found = {}

    def add(label, pairs):
        found[label] = geometric([a / b for a, b in pairs])
        note = f"{len(pairs)} cells, {sum(a < b for a, b in pairs)} of them below 1"
        report.add(f"geometric mean, {label}", found[label], "x", "", note)

    for name in COMPARED:
        add(f"best rival / {name}", [(c["seconds"][c["quickest"]], c["seconds"][name]) for c in cells])
        for other in sorted({n for c in cells for n in c["tol"]}):
            some = [c["seconds"] for c in cells if other in c["seconds"]]
            add(f"{other} / {name}", [(s[other], s[name]) for s in some])
    for a, b in (
        ("newton zero", "newton auto"),
        ("newton auto", "hybrid"),
        ("lbfgs zero", "hybrid"),
        ("hybrid", "hybrid path"),
    ):
        add(f"{a} / {b}", [(c["seconds"][a], c["seconds"][b]) for c in cells if b in c["seconds"]])
    for name in COMPARED:
        slow = []
        for c in cells:
            own, other = c["seconds"][name], c["seconds"][c["quickest"]]
            if own > SLOWER * other:
                slow.append(f"{c['set']} {c['risk']} {c['alpha']:g}: {own:.3g} s, {c['quickest']} {other:.3g} s")
        report.say(f"{name} slower than {SLOWER:g} times the best rival: {'; '.join(slow) or 'nowhere'}")
    every = sorted({n for c in cells for n in c["seconds"]})
    missing = {n: sum(n in c["seconds"] and n not in c["arrived"] for c in cells) for n in every}
    report.say("never arrived: " + (", ".join(f"{n} in {k} cells" for n, k in missing.items() if k) or "none"))
    for c in cells:
        if c["gap"] > 0.1 * WITHIN or c["lowest"] < -0.1 * WITHIN:
            where = f"{c['set']} {c['risk']} {c['alpha']:g}"
            report.say(
                f"{where}: J* is proved to {c['gap']:.1e} only ({c['status']}); the lowest J is {c['lowest']:+.1e} off"
            )
    return found


def skips(report, data, alpha, cap):
    """Return what each way of skipping saves to tol=1e-4."""
    found = {}
    for shrink in ("none", "sum", "path"):
        begin = time.perf_counter()
        end = HybridSolver(shrink=shrink, tol=1e-4, max_time=cap).solve(problem(data, "squared_hinge", alpha))
        share = float(np.mean(end.history["skipped"]))
        found[shrink] = {
            "skipped": share, "passes": end.n_passes, "iterations": end.n_iter, "status": end.status,
            "seconds": time.perf_counter() - begin, "objective": end.objective,
        }  # fmt: skip
    for shrink in ("sum", "path"):
        f, plain = found[shrink], found["none"]
        note = f"{f['passes']:.1f} passes, {plain['passes']:.1f} without; {f['seconds']:.3g} s, {plain['seconds']:.3g} without"
        note += f"; {f['iterations']} and {plain['iterations']} iterations, {f['status']}"
        report.add(f"{data.name} {alpha:g}: rows skipped by {shrink!r}", 100.0 * f["skipped"], "%", "", note)
    return {"set": data.name, "alpha": alpha} | found


def area_run(X, y, area, level, cap, risk, alphas, make):
    """Return (seconds until the test ROC area is at least `level`, the alpha) or (seconds, None), and the best area."""
    best, total = 0.0, time.perf_counter()
    operator, prepared = as_operator(X), risk().prepare(y)
    total = time.perf_counter() - total

    def look(progress):
        nonlocal best
        best = max(best, area(progress.w))
        return best >= level

    for alpha in alphas:
        end = make(max_time=max(1e-3, cap - total), callbacks=[look]).solve(Objective(operator, prepared, alpha))
        total += end.history["seconds"][-1]
        if best >= level or total >= cap:
            break
    return min(total, cap), alpha if best >= level else None, best


def areas(report, data, cap):
    """Time to the test ROC area of LogisticRegression."""
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.2, stratify=data.y, random_state=SEED)
    area = lambda w: float(roc_auc_score(y_test > 0, X_test @ w))
    train, n = Data(data.name, X, y), X.shape[0]
    make = lambda *_: LogisticRegression(C=1.0, max_iter=1000, fit_intercept=False)
    fits = [fit(train, make, 1.0 / n, None, 10.0 * cap)]
    if fits[0] is None:
        report.say(f"{data.name}: LogisticRegression takes longer than {10.0 * cap:g} s")
        return None
    reached = area(fits[0][1])
    while len(fits) < REPEATS and fits[0][0] < SHORT / REPEATS:
        fits.append(fit(train, make, 1.0 / n, None, 10.0 * cap))
    seconds = min(f[0] for f in fits)
    sides = {
        "roc_area, smoothed": (RocAreaRisk, AREA_ALPHAS, lambda **o: SmoothedSolver(**o)),
        "logistic, newton": (LogisticRisk, (1.0 / n,), lambda **o: NewtonSolver(init="auto", tol=NEVER, **o)),
    }
    cell = {"set": data.name, "area": reached, "seconds": {"LogisticRegression": seconds}, "alpha": {}, "best": {}}
    for name, side in sides.items():
        runs = [area_run(X, y, area, reached - AREA_SLACK, cap, *side)]
        while len(runs) < REPEATS and runs[0][0] < SHORT / REPEATS:
            runs.append(area_run(X, y, area, reached - AREA_SLACK, cap, *side))
        cell["seconds"][name], cell["alpha"][name], cell["best"][name] = min(runs, key=lambda r: r[0])
        alpha, own = cell["alpha"][name], cell["seconds"][name]
        end = "never met" if alpha is None else f"met at alpha {alpha:.3g}"
        note = f"{end}, area {cell['best'][name]:.5f} in {own:.3g} s, not {reached:.5f} in {seconds:.3g} s"
        report.add(f"{data.name}: LogisticRegression / {name}", seconds / own, "x", "", note)
    return cell


def warm_up(parts):
    """Compile everything, wake the libraries."""
    rng = np.random.default_rng(SEED)
    dense, y = rng.random((4000, 5)), np.where(np.arange(4000) % 5, -1, 1)
    wide = sp.random_array((4000, 1200), density=0.01, format="csr", random_state=SEED)
    for X in (dense, sp.csr_array(dense), wide):
        data = Data("tiny", X, y)
        for risk in RISKS:
            for name in OURS:
                if name != "hybrid path" or risk == "squared_hinge":
                    ours(data, risk, 1e-4, name, 0.0, 1.0)
            for make in rivals(risk, X.shape).values():
                with contextlib.suppress(TypeError, ValueError):
                    fit(data, make, 1e-4, 1e-4, 10.0)
        if "auc" in parts:
            SmoothedSolver(max_time=1.0).solve(Objective(as_operator(X), RocAreaRisk().prepare(y), 1e-4))


def main(report, options):
    warnings.simplefilter("ignore", ConvergenceWarning)  # the figures say it
    warm_up(options.parts)
    cells, skipped, reached = [], [], []
    report.data = {"speed": cells, "skips": skipped, "auc": reached}
    if set(options.parts) & {"speed", "skips", "auc"}:
        for name in options.sets:
            data = load_or_make(name)
            if data is None:
                report.say(
                    f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names"
                )
                continue
            shape = f"{data.X.shape[0]} x {data.X.shape[1]}, {getattr(data.X, 'nnz', data.X.size)} non-zeros"
            report.say(f"{name}: {shape}, {np.mean(data.y > 0):.1%} positive")
            for risk in RISKS if "speed" in options.parts else ():
                cells += [one_cell(report, data, risk, alpha, options.cap) for alpha in options.alphas]
            if "skips" in options.parts:
                skipped += [skips(report, data, alpha, options.cap) for alpha in options.alphas]
            if "auc" in options.parts:
                reached += [areas(report, data, options.cap)]
    means(report)
    if "figures" in options.parts:
        import hybrid_figures as drawing  # needs matplotlib

        report.data["curves"] = drawing.figure(report, options.sets, options.to, options.cap)


def means(report):
    """Add the geometric means over what the data hold."""
    if report.data["speed"]:
        report.data["means"] = summary(report, report.data["speed"])
    done = [c for c in report.data["auc"] if c]
    for name in done[0]["alpha"] if done else ():
        ratios = [c["seconds"]["LogisticRegression"] / c["seconds"][name] for c in done]
        missed = [c["set"] for c in done if c["alpha"][name] is None]
        note = f"{len(done)} sets; never met: {', '.join(missed) or 'nowhere'}"
        report.add(f"geometric mean, LogisticRegression / {name}", geometric(ratios), "x", "", note)


def join(report, files):
    """Put the cells of several files together."""
    report.data = {"speed": [], "skips": [], "auc": []}
    for file in files:
        found = json.loads(Path(file).read_text())["results"][NAME]
        report.rows += [row for row in found["rows"] if not row.get("label", "geometric").startswith("geometric")]
        for part, those in report.data.items():
            those += found["data"].get(part, [])
    means(report)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--parts", type=names, default=list(PARTS))
    parser.add_argument("--sets", type=names, default=list(SETS))
    parser.add_argument("--alphas", type=lambda text: [float(a) for a in text.split(",")], default=[1e-2, 1e-4, 1e-6])
    parser.add_argument("--cap", type=float, default=20.0, help="seconds after which a side has not arrived")
    parser.add_argument("--out", type=Path, default=OUTPUT / "hybrid.json")
    parser.add_argument("--join", nargs="+", default=None, help="files of several runs, to be put together")
    parser.add_argument("--to", type=Path, default=OUTPUT, help="folder for the figure")
    return parser.parse_args()


if __name__ == "__main__":
    options = parsed()
    run = lambda report: join(report, options.join) if options.join else main(report, options)
    standalone(SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run), out=options.out)
