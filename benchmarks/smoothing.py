"""Objective against time and passes of solver="smoothed", compared with the paper's way of smoothing.

The rivals (rivals_smoothing.py) follow Zhang, Saha and Vishwanathan (2012), section 5.4: L-BFGS-B on the smoothed objective
with mu = 10 eps / D fixed, eps = 0.001, the risk in NumPy; once with SciPy's products ("paper") and once with ours ("paper
+ products"). What counts is the objective J without smoothing: seconds until it is within 1 % and 0.1 % of J*, the value of
a run with tol=1e-5. Rivals look at J with the clock stopped. Our time includes making the operator from X. A side that
never arrives counts the cap; where w = 0 is good enough it is a tie. Ratios are rival / ours: above 1 we are faster. Data are
maxabs-scaled, no intercept.
solver="accelerated" runs along for comparison.

    SCORELINE_DATA=folder python benchmarks/smoothing.py [--sets a9a,letter] [--alphas 1e-2,1e-6] [--risks prbep] [--cap 30]
        [--parts cells,mu,rows,work,planes,bounds] [--out bench-output/smoothing.json] [--figures folder]

The set "dense" (500,000 x 100) is made on the spot. --out also names the Markdown file beside it. All of it takes hours at
worst (66 cells, each at most ten times the cap); a9a and letter alone a few minutes.
"""

import argparse
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from common import OUTPUT, SEED, SPIN, standalone
from rivals_smoothing import Track, check, cutting_planes, paper_mu, paper_style
from scoreline.io import make_imbalanced
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.risks import PrbepRisk, RocAreaRisk
from scoreline.solvers import AcceleratedSolver, SmoothedSolver
from smoothing_data import VARIABLE, Data, load

NAME, TITLE = "smoothing", "solver='smoothed' compared with L-BFGS-B with a fixed smoothing; ratios are rival / ours"
SETS = "a9a ijcnn1 cod-rna covtype mnist census-income kddcup99 letter reuters-mfx sector dense".split()
PARTS = ("cells", "mu", "rows", "work", "planes")
RISKS = {"roc_area": RocAreaRisk, "prbep": PrbepRisk}
LEVELS = (1e-2, 1e-3)
PROVED, SURE = 1e-2, 1e-5  # tol of the certificate, tol of the run that J* comes from
REPEATS, SHORT = 3, 10.0  # repeat so often, or until this many seconds have passed; the best counts
SLOWER, NOTABLE = 1.2, 0.05  # list cells where we are this many times as slow and take longer than 50 ms
PLANES_CAP = 60.0


class Run(NamedTuple):
    """One run of ours: seconds to make the operator, the solver's result."""

    setup: float
    result: Any

    @property
    def rows(self):
        """(seconds, passes, J) of each iteration."""
        history = self.result.history
        return list(
            zip((self.setup + s for s in history["seconds"]), history["passes"], history["objective"], strict=True)
        )

    def proved(self, tol):
        """Return (seconds, passes, iterations) of the first certificate of that tol, or None."""
        history, floor = self.result.history, 1e-3 * self.result.state.problem["value_at_zero"]
        for k, (value, bound) in enumerate(zip(history["objective"], history["lower_bound"], strict=True)):
            if value - bound <= tol * max(bound, floor):
                return self.setup + history["seconds"][k], history["passes"][k], history["iteration"][k]
        return None


def problem(data, risk, alpha):
    return Objective(as_operator(data.X), RISKS[risk]().prepare(data.y), alpha)


def ours(data, risk, alpha, tol, cap, target=-np.inf, look=None, solver=SmoothedSolver, **options):
    """Train; stop at the proof, the cap, or when J is at most `target`."""

    def callback(progress):
        if look is not None:
            look((setup + progress.seconds, progress.passes, progress.objective), progress.w)
        return progress.objective <= target

    begin = time.perf_counter()
    objective = problem(data, risk, alpha)
    run = solver(tol=tol, max_time=cap, max_iter=10**6, callbacks=[callback], **options)
    setup = time.perf_counter() - begin
    return Run(setup, run.solve(objective))


def rival(data, risk, alpha, cap, target=-np.inf, products=False, look=None, **options):
    """Return the rows of a paper-style run; J comes from scoreline, off the clock."""
    value = problem(data, risk, alpha).value
    track = Track(value, target, cap, look)
    return paper_style(data.X, data.y, risk, alpha, track, as_operator if products else None, **options)


def arrival(rows, target):
    """Return (seconds, passes) of the first row with J at most `target`, or None."""
    return next(((seconds, passes) for seconds, passes, value in rows if value <= target), None)


def race(sides, targets):
    """Return {side: {target: best (seconds, passes) or None}}; sides take turns, short races are repeated."""
    best = {name: dict.fromkeys(targets) for name in sides}
    begin = time.perf_counter()
    for _ in range(REPEATS):
        for name, side in sides.items():
            rows = side()
            time.sleep(SPIN)
            for target in targets:
                at, known = arrival(rows, target), best[name][target]
                best[name][target] = at if known is None else known if at is None else min(at, known)
        if time.perf_counter() - begin > SHORT:
            break
    return best


def mean(ratios):
    """Return the geometric mean, or None of nothing."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else None


def words(name, at, cap):
    return f"{name} never (counts {cap:g} s)" if at is None else f"{name} {at[0]:.3g} s {at[1]:.0f} passes"


def one_cell(report, data, risk, alpha, cap):
    """Race one data set, risk and alpha; return what the summary needs."""
    sure = ours(data, risk, alpha, SURE, 4.0 * cap).result  # what all are measured by: longer than any
    title = f"{data.name} {risk} {alpha:g}"
    note = f"{sure.status}, proved to {sure.gap / sure.objective:.1e}"
    report.add(f"{title}, J*", sure.objective, "", "", note)
    targets = {level: (1.0 + level) * sure.objective for level in LEVELS}
    last, at_zero = min(targets.values()), problem(data, risk, alpha).risk.value_at_zero()
    sides = {
        "ours": lambda: ours(data, risk, alpha, SURE / 10.0, cap, last).rows,
        "paper": lambda: rival(data, risk, alpha, cap, last),
        "paper + products": lambda: rival(data, risk, alpha, cap, last, products=True),
        "accelerated": lambda: ours(data, risk, alpha, SURE / 10.0, cap, last, solver=AcceleratedSolver).rows,
    }
    arrived = race(sides, list(targets.values()))
    cell = {"set": data.name, "risk": risk, "alpha": alpha, "J*": sure.objective, "gap": sure.gap, "levels": {}}
    for level, target in targets.items():
        at = {name: arrived[name][target] for name in sides}
        seconds = {name: cap if a is None else min(a[0], cap) for name, a in at.items()}
        if at_zero <= target:  # w = 0 is good enough, and all know J(0): a tie
            seconds = dict.fromkeys(at, min(seconds.values()))
        note = ", ".join(words(name, a, cap) for name, a in at.items())
        report.add(f"{title}, to {100 * level:g} %", seconds["paper"] / seconds["ours"], "x", "", note)
        cell["levels"][level] = {
            "seconds": seconds, "passes": {name: None if a is None else a[1] for name, a in at.items()},
            "arrived": [name for name, a in at.items() if a is not None],
        }  # fmt: skip
    runs = [ours(data, risk, alpha, PROVED, cap)]
    while len(runs) < REPEATS and runs[0].rows[-1][0] < SHORT / REPEATS:
        runs.append(ours(data, risk, alpha, PROVED, cap))
    proof = min((r.proved(PROVED) or (cap, None, None) for r in runs), key=lambda p: p[0])
    end = runs[0].result
    note = f"{proof[2]:.0f} iterations, {proof[1]:.0f} passes, " if proof[1] is not None else "no proof, "
    report.add(f"{title}, certificate of {PROVED:g}", proof[0], "s", "", note + end.status)
    return cell | {"proof": proof, "status": end.status} | independent(report, data, risk, alpha, end, cap)


def independent(report, data, risk, alpha, end, cap):
    """Let SciPy's L-BFGS-B on a narrow ramp run until it is as low as we: no optimum may lie below the proved bound."""
    other = min(value for _, _, value in rival(data, risk, alpha, cap, end.objective, c_mu=1.0))
    found = "inside" if end.lower_bound <= other <= end.objective else "above" if other > end.objective else "BELOW"
    note = f"{end.lower_bound:.6g} <= min J <= {end.objective:.6g}; it is {found}"
    report.add(f"{data.name} {risk} {alpha:g}, J of L-BFGS-B", other, "", "", note)
    return {"bounds": [end.lower_bound, end.objective], "other": other, "found": found}


def bounds_alone(report, data, risk, alpha, cap):
    """Return the bounds and J of a run of L-BFGS-B, of which `cap` may be long."""
    end = ours(data, risk, alpha, PROVED, cap).result
    cell = {"set": data.name, "risk": risk, "alpha": alpha, "status": end.status}
    return cell | independent(report, data, risk, alpha, end, cap)


def summary(report, cells, cap):
    """Geometric means over all cells, cost of a small alpha, and where we are slower."""
    for level in LEVELS:
        for name in ("paper", "paper + products", "accelerated"):
            both = [c["levels"][level] for c in cells if {"ours", name} <= set(c["levels"][level]["arrived"])]
            every = [c["levels"][level] for c in cells]
            ratio = [[s["seconds"][name] / s["seconds"]["ours"] for s in part] for part in (every, both)]
            missing = {n: sum(n not in s["arrived"] for s in every) for n in ("ours", name)}
            note = f"{_text(mean(ratio[1]))} over the {len(both)} where both arrive; " + ", ".join(
                f"{n} never arrives in {k}" for n, k in missing.items()
            )
            report.add(f"{name} / ours to {100 * level:g} %, {len(every)} cells", mean(ratio[0]), "x", "", note)
    proofs = {(c["set"], c["risk"], c["alpha"]): c["proof"][0] for c in cells}
    cost = [s / proofs[(*k[:2], 1e-2)] for k, s in proofs.items() if k[2] == 1e-6 and (*k[:2], 1e-2) in proofs]
    report.add("certificate at alpha 1e-6 over that at 1e-2", mean(cost), "x", "", f"{len(cost)} pairs")
    proved = sum(c["status"] == "converged" for c in cells)
    report.say(f"certificate of {PROVED:g} reached in {proved} of {len(cells)} cells")
    inside = [c["found"] for c in cells]
    report.say(
        f"J of L-BFGS-B lies between lower_bound_ and objective_ in {inside.count('inside')} cells; in "
        f"{inside.count('above')} it does not come as low in {cap:g} s; below the proved bound in {inside.count('BELOW')}"
    )
    for name in ("paper", "paper + products"):
        slow = []
        for c in cells:
            for level, s in c["levels"].items():
                own, other = s["seconds"]["ours"], s["seconds"][name]
                if own > NOTABLE and own > SLOWER * other:
                    slow.append(
                        f"{c['set']} {c['risk']} {c['alpha']:g} to {100 * level:g} %: {own:.3g} s, not {other:.3g}"
                    )
        report.say(f"slower than {SLOWER:g} times {name}, above 50 ms: {'; '.join(slow) or 'nowhere'}")
    loose = [f"{c['set']} {c['risk']} {c['alpha']:g}" for c in cells if c["gap"] > 0.1 * min(LEVELS) * c["J*"]]
    if loose:
        report.say(f"J* not proved to a tenth of the finer level within {4 * cap:g} s: {', '.join(loose)}")


def _text(value):
    return "-" if value is None else f"{value:.3g}"


def influence_of_mu(report, data, risks, cap):
    """Fixed mu = c eps / D with our solver, beside the automatic choice, at alpha = 1e-6 as in the paper."""
    n_positive, n_negative = int((data.y > 0).sum()), int((data.y < 0).sum())
    curves = {}
    for risk in risks:
        best = ours(data, risk, 1e-6, SURE, cap).result.objective
        for c_mu in (None, 1000.0, 100.0, 10.0):
            options = {} if c_mu is None else {"mu": paper_mu(risk, n_positive, n_negative, c_mu)}
            run = ours(data, risk, 1e-6, 1e-3, min(cap, 5.0), **options)
            end = run.result
            curves.setdefault(risk, {})[c_mu] = [(seconds, value / best - 1.0) for seconds, _, value in run.rows]
            note = "; ".join(
                f"{100 * level:g} %: " + ("never" if at is None else f"{at[0]:.3g} s, {at[1]:.0f} passes")
                for level in LEVELS
                for at in [arrival(run.rows, (1.0 + level) * best)]
            )
            label = f"{data.name} {risk} 1e-06, mu {'automatic' if c_mu is None else f'{c_mu:g} eps/D'}: J/J* - 1"
            report.add(
                label,
                end.objective / best - 1.0,
                "",
                "",
                f"{note}; {end.status}, proved to {end.gap / end.objective:.1e}",
            )
    return curves


def growth(report, risks, cap):
    """Iterations and time to the certificate for 1e4, 1e5 and 1e6 rows of one distribution, and its exponent."""
    X, y = make_imbalanced(1_000_000, 20, positive_share=0.05, tail=5.0, random_state=SEED)
    sizes, times, slopes = (10_000, 100_000, 1_000_000), {}, {}
    for risk in risks:
        seconds = times[risk] = []
        for n in sizes:
            data = Data("rows", X[:n], np.where(y[:n] > 0, 1, -1))
            runs = [ours(data, risk, 1e-4, PROVED, cap) for _ in range(REPEATS)]
            at = min(r.proved(PROVED) or (cap, np.nan, np.nan) for r in runs)
            seconds.append(at[0])
            report.add(
                f"{n:,} x 20 {risk} 0.0001, certificate", at[0], "s", "", f"{at[2]:.0f} iterations, {at[1]:.0f} passes"
            )
        slopes[risk] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        report.add(f"{risk}: k in time ~ n^k", slopes[risk], "")
    return sizes, times, slopes


def score_space(report, data, risks, cap):
    """Time in risk evaluations, trials of the line search included, over time in Xw and X'u."""
    spent: dict[str, float]

    def timed(owner, method, key):
        inner = getattr(owner, method)

        def call(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                spent[key] += time.perf_counter() - begin

        setattr(owner, method, call)

    for risk in risks:
        runs = []
        for _ in range(REPEATS):  # the least disturbed counts
            objective = problem(data, risk, 1e-4)
            spent = {"risk": 0.0, "passes": 0.0}
            timed(objective.risk, "evaluate", "risk")
            timed(objective.operator, "matvec", "passes")
            timed(objective.operator, "rmatvec", "passes")
            begin = time.perf_counter()
            result = SmoothedSolver(tol=PROVED, max_time=cap).solve(objective)
            runs.append((time.perf_counter() - begin, spent["risk"], spent["passes"], result.n_iter))
        total, scores, passes, iterations = min(runs)
        share = 1.0 - (scores + passes) / total
        note = f"{scores:.3g} s over {passes:.3g} s, {iterations} iterations; {share:.0%} in neither"
        target = {"a9a": "<= 2.0", "mnist": "<= 0.3"}.get(data.name, "")
        report.add(f"{data.name} {risk}, scores / passes", scores / passes, "x", target, note)


def against_planes(report, data):
    """ROC area at alpha = 1e-6, to 1 %: ours and cutting planes."""
    best = ours(data, "roc_area", 1e-6, SURE, PLANES_CAP).result.objective
    target = (1.0 + LEVELS[0]) * best
    own = arrival(ours(data, "roc_area", 1e-6, SURE, PLANES_CAP, target).rows, target)
    rows = cutting_planes(problem(data, "roc_area", 1e-6), target, PLANES_CAP)
    at = arrival(rows, target)
    note = f"{words('ours', own, PLANES_CAP)}, {words('planes', at, PLANES_CAP)}, at {rows[-1][2] / best - 1:.2g} in the end"
    ratio = (PLANES_CAP if at is None else at[0]) / (PLANES_CAP if own is None else own[0])
    report.add(f"{data.name} roc_area 1e-06 to 1 %: cutting planes / ours", ratio, "x", "", note)


def figures(report, names, drawing, folder, risks, alpha, cap):
    """Draw J and the test measure against time for a9a and one other set."""
    limit = min(cap, 10.0)
    for name in (["a9a"] if "a9a" in names else []) + [n for n in names if n != "a9a"][:1]:
        data = load(name, test=True)
        curves = {}
        for risk in risks:
            value = test_measure(data, risk)
            sides = {
                "smoothed": lambda look: ours(data, risk, alpha, 1e-4, limit, look=look),
                "accelerated": lambda look: ours(data, risk, alpha, 1e-4, limit, look=look, solver=AcceleratedSolver),
                "paper": lambda look: rival(data, risk, alpha, limit, look=look),
                "paper + our products": lambda look: rival(data, risk, alpha, limit, products=True, look=look),
            }
            for side, run in sides.items():
                rows = curves.setdefault(risk, {}).setdefault(side, [])
                run(lambda row, w: rows.append((row[0], row[2], value(w))))
        drawing.draw_curves(curves, f"{name}, alpha {alpha:g}", folder / f"smoothing-{name}.png")
        report.say(f"drew smoothing-{name}.png")


def test_measure(data, risk):
    """Return the function that tells w's AUC or PRBEP on the test rows."""
    n_positive = int((data.y_test > 0).sum())

    def value(w):
        z = data.X_test @ w
        if risk == "roc_area":
            return roc_auc_score(data.y_test > 0, z)
        return float(np.mean(data.y_test[np.argsort(-z, kind="stable")[:n_positive]] > 0))

    return value


def main(report, options):
    warnings.simplefilter("ignore", ConvergenceWarning)  # the figures say it
    dense, tiny = np.random.default_rng(SEED).random((4000, 5)), np.where(np.arange(4000) % 5, -1, 1)
    for risk in options.risks:
        check(risk, RISKS[risk]().prepare(tiny), tiny, SEED)
        for X in (dense, sp.csr_array(dense)):
            ours(Data("tiny", X, tiny), risk, 1e-4, PROVED, 10.0)  # compile
            rival(Data("tiny", X, tiny), risk, 1e-4, 0.1)
    report.say("the NumPy risks of the rivals agree with ours to 1e-9")
    cells, alone, there = [], [], []
    report.data = {"cells": cells, "bounds": alone}
    folder = Path(options.figures or ".")
    if options.figures:
        import smoothing_figures as drawing  # needs matplotlib

        folder.mkdir(parents=True, exist_ok=True)
    for name in options.sets:
        data = load(name)
        if data is None:
            report.say(f"{name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        there.append(name)
        shape = f"{data.X.shape[0]} x {data.X.shape[1]}, {getattr(data.X, 'nnz', data.X.size)} non-zeros"
        report.say(f"{name}: {shape}, {np.mean(data.y > 0):.1%} positive")
        for risk in options.risks:
            check(risk, RISKS[risk]().prepare(data.y), data.y, SEED)
            for alpha in options.alphas if "cells" in options.parts else ():
                cells += [one_cell(report, data, risk, alpha, options.cap)]
            for alpha in options.alphas if "bounds" in options.parts else ():
                alone += [bounds_alone(report, data, risk, alpha, options.cap)]
        if name == "a9a" and "mu" in options.parts:
            curves = influence_of_mu(report, data, options.risks, options.cap)
            if options.figures:
                drawing.draw_mu(curves, "a9a, alpha 1e-6", folder / "smoothing-mu.png")
        if name in ("a9a", "mnist") and "work" in options.parts:
            score_space(report, data, options.risks, options.cap)
        if name == "a9a" and "planes" in options.parts:
            against_planes(report, data)
    if "rows" in options.parts:
        grown = growth(report, options.risks, options.cap)
        if options.figures:
            drawing.draw_growth(*grown, folder / "smoothing-rows.png")
    if cells:
        summary(report, cells, options.cap)
    if options.figures:
        figures(report, there, drawing, folder, options.risks, min(options.alphas), options.cap)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--sets", type=names, default=SETS)
    parser.add_argument("--alphas", type=lambda text: [float(a) for a in text.split(",")], default=[1e-2, 1e-4, 1e-6])
    parser.add_argument("--risks", type=names, default=list(RISKS))
    parser.add_argument("--parts", type=names, default=list(PARTS))
    parser.add_argument("--cap", type=float, default=30.0, help="seconds after which a side has not arrived")
    parser.add_argument("--out", type=Path, default=OUTPUT / "smoothing.json")
    parser.add_argument("--figures", help="folder for the figures; none are drawn without")
    return parser.parse_args()


if __name__ == "__main__":
    options = parsed()
    standalone(SimpleNamespace(NAME=NAME, TITLE=TITLE, main=lambda report: main(report, options)), out=options.out)
