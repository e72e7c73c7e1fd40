"""Cutting planes: what the oracles cost, that they are right at near ties, F1 and ROC area to a duality gap, what pays.

    SCORELINE_DATA=folder python benchmarks/cutting_planes.py [--parts oracle,near_ties,f1,ocas,default] [--cap 600] [--long 60]
        [--problems 40000] [--sets a9a,letter] [--splits 3] [--resume] [--out bench-output/cutting_planes.json]

oracle: value and subgradient of a million scores beside np.argsort of them, in turn. near_ties: scores on a grid that losses
share, plus 0 or 1e-9, against the table of all counts; also how often a divide and conquer that is wrong for beta < 1 fails
there, which says how hard the problems are. f1: the first 12,000 rows of a9a.t, binary features, no intercept, to a proved
gap of 1e-3, beside a plain bundle method in NumPy (rivals_planes.py: O(n+ n-) oracle, Clarabel) that may take --cap
seconds; at alpha 1e-6 the gap after --long seconds. ocas: ROC area on a9a, time until J is within 1 % of min J. default
(default_risk.py): does the risk made for a measure pay on test rows, beside what "auto" takes? Without SCORELINE_DATA
oracle and near_ties run; benchmarks/run.py runs these two alone.
"""

import argparse
import importlib.util
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import default_risk
from common import OUTPUT, SEED, SPIN, interleave, standalone
from rivals_planes import AT_K, F1Table, by_falling_c, called_positive, loss_table, plain_bundle, tables
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import AveragePrecisionRisk, ContingencyRisk, PartialRocRisk
from scoreline.solvers import BundleOcasSolver, BundleSolver, SmoothedSolver
from smoothing import arrival, ours, words
from smoothing_data import VARIABLE, load, narrow, read

NAME, TITLE = (
    "cutting_planes",
    "cutting planes: oracles, exactness at near ties, time to a duality gap; ratios as named",
)
PARTS = ("oracle", "near_ties", "f1", "ocas", "default")
N, SHARES = 1_000_000, (0.05, 0.5)
MEASURES = "f1 fbeta jaccard gmean hmean qmean min_tpr_tnr gower_legendre precision_at_k".split()
ROWS, GAP = 12_000, 1e-3
QUOTED = {1e-2: 3.87, 1e-4: 37.3}  # seconds of SVM-perf 3.00, C = 1 and 100, -e 0.1; see what `f1` says of them
WITHIN, SURE = 1e-2, 1e-5
REPEATS, SHORT = 3, 10.0  # repeat so often, or until this many seconds have passed; the best counts
BATCH, MOST = 200, 10  # problems with the same labels; rows of the largest
WRONG = 1e-12


def oracle(report):
    """Value and subgradient beside np.argsort."""
    rng = np.random.default_rng(SEED)
    for share in SHARES:
        y = np.where(rng.random(N) < share, 1, -1)
        z = rng.standard_normal(N) + y
        risks = {name: ContingencyRisk(name, {"beta": 0.5} if name == "fbeta" else None) for name in MEASURES}
        risks |= {"average_precision": AveragePrecisionRisk(), "partial_roc": PartialRocRisk(0.1)}
        prepared = {name: risk.prepare(y) for name, risk in risks.items()}
        sides = {"argsort": lambda: np.argsort(z)}
        sides |= {name: (lambda risk: lambda: risk.value_grad(z))(risk) for name, risk in prepared.items()}
        seconds = interleave(sides, 5)
        for name in prepared:
            note = f"{1e3 * seconds[name].best:.0f} ms, np.argsort {1e3 * seconds['argsort'].best:.0f} ms"
            note += f"; medians {seconds[name].median / seconds['argsort'].median:.2f}"
            label = "fbeta, beta 0.5" if name == "fbeta" else name
            ratio = seconds[name].best / seconds["argsort"].best
            report.add(
                f"{100 * share:g} % positive, {label} / argsort", ratio, "x", "<= 3" if name == "f1" else "", note
            )


def label(risk):
    given = {k: v for k, v in vars(risk.measure).items() if k in ("beta", "sigma", "k") and v is not None}
    return risk.measure.name, given


def near_ties(report, problems):
    """Count the problems where the oracle misses the largest of all counts, or its plane is that of no labelling."""
    begin, failures = time.perf_counter(), 0
    risks = [*ContingencyRisk.variants(), *(ContingencyRisk("fbeta", {"beta": beta}) for beta in (0.05, 0.5))]
    for risk in risks:
        name, given = label(risk)
        rng, wrong, fooled, ties, worst = np.random.default_rng(SEED), 0, 0, 0, 0.0
        for batch in range(-(-problems // BATCH)):
            n_above, n_below = class_sizes(rng, batch)
            y = np.repeat([1, -1], (n_above, n_below))[rng.permutation(n_above + n_below)]
            k = called_positive(name, given, n_above, len(y))
            loss, size = loss_table(name, given, n_above, n_below, k), min(BATCH, problems - batch * BATCH)
            z = scores(rng, loss, y, size, batch)
            V = tables(loss, z, y > 0)
            best = V.reshape(size, -1).max(axis=1)
            ties += int(((V >= best[:, None, None] - 1e-7).sum(axis=(1, 2)) > 1).sum())
            if name in ("f1", "fbeta"):
                fooled += int((by_falling_c(V) < best - WRONG).sum())
            if name in AT_K and name != "prbep":
                best = np.maximum(best, 0.0)  # what is trained
            errors = deviations(risk.prepare(y), z, y, loss, best)
            wrong, worst = wrong + int((errors > WRONG).sum()), max(worst, errors.max())
        failures += wrong
        text = ", ".join([name, *(f"{key} {value:g}" for key, value in given.items())])
        note = f"largest error {worst:.1e}; {ties} problems have a runner-up within 1e-7"
        report.add(f"{text}: failures of {problems}", wrong, "", "<= 0", note)
        if given.get("beta", 1.0) < 1.0:
            report.add(f"{text}: failures of the wrong method", fooled, "", ">= 1", "best c not rising with b")
        elif name in ("f1", "fbeta"):
            report.add(f"{text}: failures of that method", fooled, "", "<= 0", "it is right for beta >= 1")
    seconds = time.perf_counter() - begin
    report.add("failures, all variants", failures, "", "<= 0", f"{len(risks)} variants, {seconds:.0f} s")


def class_sizes(rng, batch):
    """Return n+ and n-: any, one positive, one negative, more positives than negatives."""
    n = int(rng.integers(2, MOST + 1))
    kind = batch % 5
    if kind == 0:
        return 1, n - 1
    if kind == 1:
        return n - 1, 1
    n_above = int(rng.integers(n // 2 + 1, n)) if kind == 2 and n > 2 else int(rng.integers(1, n))
    return n_above, n - n_above


def scores(rng, loss, y, size, batch):
    """Return scores that make labellings (nearly) equally bad, problem by problem.

    Multiples of a grid that is the same for all losses, or of n/2 times steps of this loss from one pair of counts to the next,
    by which flips gain just what the loss changes. Mostly on the right side, where gains and losses are of one size.
    """
    n, grids = len(y), (0.25, 0.5, 1.0 / len(y), 0.5 * len(y))
    finite = np.where(np.isfinite(loss), loss, np.nan)
    steps = np.concatenate([np.diff(finite, axis=0).ravel(), np.diff(finite, axis=1).ravel()])
    if not np.isfinite(steps).any():  # k is fixed: from one pair to the next on the diagonal
        steps = np.diff(loss[np.isfinite(loss)])
    steps = 0.5 * n * np.abs(steps[np.isfinite(steps)])
    z = rng.integers(0, 6, (size, n)) * np.array(grids)[rng.integers(0, len(grids), (size, 1))]
    if len(steps):
        own = rng.choice(steps, (size, n)) * rng.choice([0.5, 1.0, 1.0, 1.0, 2.0], (size, n))
        z = np.where(rng.random((size, 1)) < 0.7, own, z)
    z *= np.where(rng.random((size, n)) < rng.choice([0.0, 0.1, 0.5], (size, 1)), -y, y)
    return z + 1e-9 * rng.standard_normal((size, n)) * (rng.random((size, 1)) < 0.5)


def deviations(prepared, z, y, loss, best):
    """Return by how much value, plane and loss of the labelling found deviate, problem by problem."""
    n, errors = len(y), np.empty(len(z))
    for k in range(len(z)):
        got = prepared.evaluate(z[k])
        flips = -0.5 * n * got.grad * y
        b, c = flips[y > 0].sum(), flips[y < 0].sum()
        off = np.abs(flips - np.rint(flips)).max()
        if got.plane != 0.0 or b + c > 0.0:  # else max(0, R): the plane (0, 0)
            off = max(off, abs(got.plane - loss[round(b), round(c)]))
        errors[k] = max(off, abs(got.value - best[k]), abs(got.plane + got.grad @ z[k] - got.value))
    return np.where(np.isnan(errors), np.inf, errors)


def f1(report, cap, long):
    """F1 to an absolute gap of 1e-3, beside the plain bundle method."""
    found = read("a9a.t")
    if found is None:
        report.say(f"f1: a9a.t is MISSING: neither a9a.t.svm nor a9a.t.svm.xz in the folder that {VARIABLE} names")
        return
    X, y = narrow(found[0][:ROWS]), np.where(found[1][:ROWS] > 0, 1, -1)
    report.say(f"a9a.t, first {len(y)} rows: {X.shape[1]} features, {int((y > 0).sum())} positives")
    z = np.random.default_rng(SEED).standard_normal(len(y)) + 0.5 * y
    np.testing.assert_allclose(F1Table(y)(z)[0], ContingencyRisk("f1").prepare(y).value(z), rtol=1e-12)  # the same risk
    rival = importlib.util.find_spec("clarabel") is not None
    if not rival:
        report.say("f1: clarabel is MISSING (pip install clarabel): no plain bundle method to compare with")
    for alpha in (1e-2, 1e-4):
        best, notes = {}, {}
        for solver in (BundleOcasSolver, BundleSolver):
            best[solver.name], end = quickest(solver, X, y, alpha)
            notes[solver.name] = f"{end.n_iter} iterations, gap {end.gap:.2e}, J {end.objective:.5f}, {end.status}"
        for name, taken in best.items():
            report.add(f"F1 {alpha:g}, {name} to a gap of {GAP:g}", taken, "s", "", notes[name])
        if rival:
            compare_with_plain(report, X, y, alpha, cap, best)
        note = (
            f"QUOTED, not run here: C = {1 / (100 * alpha):g}, -e 0.1, with file reading; another machine, rows unknown"
        )
        report.add(f"F1 {alpha:g}, SVM-perf", QUOTED[alpha], "s", "", note)
    for solver in (BundleOcasSolver, BundleSolver):
        end = train(solver, X, y, 1e-6, max_time=long)[1]
        note = f"{end.n_iter} iterations, J {end.objective:.5f}, {end.status} after {end.history['seconds'][-1]:.0f} s"
        report.add(f"F1 1e-06, gap of {solver.name} after {long:g} s at most", end.gap, "", "", note)
    report.say(
        "SVM-perf's seconds are quoted: version 3.00, one run each on another machine, on a subset of a9a with 12,000 rows; "
        "which rows is not recorded. That alpha is 1 / (100 C) and -e 0.1 a gap of 1e-3 was checked for ROC area only. So no "
        "ratio is given."
    )


def compare_with_plain(report, X, y, alpha, cap, best):
    """Time the plain bundle method, and divide by ours."""
    time.sleep(SPIN)
    runs = [plain_bundle(X, y, alpha, GAP, cap)]
    while len(runs) < REPEATS and sum(rows[-1][0] for rows in runs) < SHORT:  # as often as ours
        runs.append(plain_bundle(X, y, alpha, GAP, cap))
    rows = min(runs, key=lambda rows: rows[-1][0])
    seconds, value, bound = rows[-1]
    arrived = value - bound <= GAP
    note = (
        f"{len(rows)} iterations, gap {value - bound:.2e}, J {value:.5f}{'' if arrived else ', NOT there at the cap'}"
    )
    report.add(f"F1 {alpha:g}, plain bundle in NumPy", seconds, "s", "", note)
    for name, taken in best.items():
        target = ">= 10" if name == "bundle_ocas" else ""
        note = "" if arrived else "at least: the rival was cut off"
        report.add(f"F1 {alpha:g}, plain bundle / {name}", seconds / taken, "x", target, note)


def train(solver, X, y, alpha, **options):
    """Return seconds (the operator made anew) and the end of a run."""
    begin = time.perf_counter()
    objective = Objective(as_operator(X), ContingencyRisk("f1").prepare(y), alpha)
    end = solver(abs_tol=GAP, max_iter=10**6, **options).solve(objective)
    return time.perf_counter() - begin, end


def quickest(solver, X, y, alpha):
    train(solver, X[:500], y[:500], alpha)  # compile
    runs = [train(solver, X, y, alpha)]
    while len(runs) < REPEATS and sum(seconds for seconds, _ in runs) < SHORT:
        runs.append(train(solver, X, y, alpha))
    return min(runs, key=lambda run: run[0])


def ocas(report, cap):
    """ROC area on a9a: time until J is within 1 % of its minimum."""
    data = load("a9a")
    if data is None:
        report.say(f"ocas: a9a is MISSING: neither a9a.svm nor a9a.svm.xz in the folder that {VARIABLE} names")
        return
    solvers = {s.name: s for s in (BundleSolver, BundleOcasSolver, SmoothedSolver)}
    for solver in solvers.values():
        ours(data._replace(X=data.X[:500], y=data.y[:500]), "roc_area", 1e-2, 1e-1, 1.0, solver=solver)  # compile
    for alpha in (1e-4, 1e-2, 1e-6):
        sure = ours(data, "roc_area", alpha, SURE, 4.0 * cap).result
        target = (1.0 + WITHIN) * sure.objective
        report.add(f"ROC area {alpha:g}, J*", sure.objective, "", "", f"{sure.status}, gap {sure.gap:.1e}")
        at, begin = dict.fromkeys(solvers), time.perf_counter()
        for _ in range(REPEATS):
            for name, solver in solvers.items():
                time.sleep(SPIN)
                run = ours(data, "roc_area", alpha, SURE / 10.0, cap, target, solver=solver)
                new = arrival(run.rows, target)
                at[name] = new if at[name] is None else at[name] if new is None else min(at[name], new)
            if time.perf_counter() - begin > SHORT:
                break
        seconds = {name: cap if a is None else a[0] for name, a in at.items()}
        note = ", ".join(words(name, a, cap) for name, a in at.items())
        label = f"ROC area {alpha:g}, to 1 %: bundle / "
        report.add(f"{label}bundle_ocas", seconds["bundle"] / seconds["bundle_ocas"], "x", target_at(alpha), note)
        report.add(f"{label}smoothed", seconds["bundle"] / seconds["smoothed"], "x")


def target_at(alpha):
    return ">= 3" if alpha == 1e-4 else ""


def main(report, options=None):
    warnings.simplefilter("ignore", ConvergenceWarning)  # the figures say it
    options = options or parsed(["--parts", "oracle,near_ties"])
    if "oracle" in options.parts:
        oracle(report)
    if "near_ties" in options.parts:
        near_ties(report, options.problems)
    if "f1" in options.parts:
        f1(report, options.cap, options.long)
    if "ocas" in options.parts:
        ocas(report, options.long)
    if "default" in options.parts:
        default_risk.run(report, options)


def parsed(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--parts", type=names, default=list(PARTS))
    parser.add_argument("--problems", type=int, default=40_000, help="near ties: problems for each loss")
    parser.add_argument("--cap", type=float, default=600.0, help="f1: seconds after which the rival is cut off")
    parser.add_argument("--long", type=float, default=60.0, help="f1 at alpha 1e-6, ocas: seconds at most")
    default_risk.add_options(parser)
    parser.add_argument("--out", type=Path, default=OUTPUT / "cutting_planes.json")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown part {unknown}; there are {list(PARTS)}")
    return options


if __name__ == "__main__":
    chosen = parsed()
    standalone(SimpleNamespace(NAME=NAME, TITLE=TITLE, main=lambda report: main(report, chosen)), out=chosen.out)
