"""What each part of solver="smoothed" is worth: from the paper's way of smoothing to ours, one change at a time.

    SCORELINE_DATA=folder python benchmarks/ablation.py [--sets a9a,letter] [--alphas 1e-2,1e-6] [--cap 10] [--out FILE.json]
    python benchmarks/ablation.py --join bench-output/ablation-*.json --out bench-output/ablation.json

Seconds until J is within 1 % and 0.1 % of J*, on the data and by the clock of benchmarks/smoothing.py. The ladder: SciPy's
products and a risk in NumPy under SciPy's L-BFGS-B with the paper's mu ("paper"), our products, our risk kernels, our L-BFGS
(its line search on scores), mu chosen by the gap, the Hessian as starting matrix, growing samples of the rows as the start; and
the start at the class moments in place of those. Factors are geometric means over data sets, risks and alphas of the time of
the rung before over that of the rung; the cap counts for a side that never arrives. --join takes the files of several runs.
"""

import argparse
import contextlib
import json
import types
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from common import OUTPUT, standalone
from rivals_smoothing import BLAS, Track, paper_mu
from smoothing import LEVELS, RISKS, SETS, SURE, mean, ours, problem, race, rival
from smoothing_data import VARIABLE, load

NAME, TITLE = "ablation", "what each part of solver='smoothed' is worth; factors of time"
RUNGS = {
    "our L-BFGS, line search on scores": {"mu": "paper", "precondition": False, "init": "zero"},
    "mu by the gap": {"precondition": False, "init": "zero"},
    "Hessian": {"init": "zero"},
    "samples (default)": {},
    "moments in place of samples": {"init": "moments"},
}


def with_our_risk(data, risk, alpha, cap, target):
    """SciPy's L-BFGS-B on our smoothed objective with the paper's mu: two passes for every value it asks for."""
    objective = problem(data, risk, alpha)
    value = problem(data, risk, alpha).value
    mu = paper_mu(risk, int((data.y > 0).sum()), int((data.y < 0).sum()))
    track = Track(value, target, cap)

    def fun(w):
        result = objective.value_grad(w, mu)
        if objective.n_passes <= 2.0 and track.see(w, objective.n_passes):
            raise StopIteration
        return result

    def callback(w):
        if track.see(w, objective.n_passes):
            raise StopIteration

    options = {"maxcor": 10, "maxiter": 10**6, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-12}
    with contextlib.suppress(StopIteration), BLAS.limit(limits=1, user_api="blas"):
        minimize(fun, np.zeros(objective.n_features), jac=True, method="L-BFGS-B", callback=callback, options=options)
    return track.rows


def sides_of(data, risk, alpha, cap, target):
    """Return {rung: function that runs it until J is at most `target`}."""
    sides = {
        "paper": lambda: rival(data, risk, alpha, cap, target),
        "our products": lambda: rival(data, risk, alpha, cap, target, products=True),
        "our risk": lambda: with_our_risk(data, risk, alpha, cap, target),
    }
    mu = paper_mu(risk, int((data.y > 0).sum()), int((data.y < 0).sum()))
    for name, given in RUNGS.items():
        options = {key: mu if value == "paper" else value for key, value in given.items()}
        sides[name] = lambda options=options: ours(data, risk, alpha, SURE / 10.0, cap, target, **options).rows
    return sides


def main(report, names, alphas, cap):
    times = {level: {} for level in LEVELS}
    for name in names:
        data = load(name)
        if data is None:
            print(f"  {name} is MISSING in the folder that {VARIABLE} names")
            continue
        for risk in RISKS:
            for alpha in alphas:
                best = ours(data, risk, alpha, SURE, 4.0 * cap).result.objective
                targets = {level: (1.0 + level) * best for level in LEVELS}
                sides = sides_of(data, risk, alpha, cap, min(targets.values()))
                arrived = race(sides, list(targets.values()))
                for level, target in targets.items():
                    seconds = {s: cap if a[target] is None else min(cap, a[target][0]) for s, a in arrived.items()}
                    for side, value in seconds.items():
                        times[level].setdefault(side, []).append(value)
                    note = ", ".join(f"{side} {1e3 * value:.1f}" for side, value in seconds.items())
                    report.add(
                        f"{name} {risk} {alpha:g}, ms to {100 * level:g} %",
                        1e3 * seconds["samples (default)"],
                        "",
                        "",
                        note,
                    )
    summary(report, times)
    report.data = {str(level): those for level, those in times.items()}


def summary(report, times):
    """Factors from rung to rung, and from the first to each."""
    for level, those in times.items():
        before = None
        for side, seconds in those.items():
            if side.startswith("moments"):
                before = those["Hessian"]  # it replaces the last rung
            if before is not None:
                factor = mean(np.array(before) / np.array(seconds))
                speedup = mean(np.array(those["paper"]) / np.array(seconds))
                note = f"{speedup:.2f} from the start of the ladder, {len(seconds)} cells"
                report.add(f"to {100 * level:g} %: {side}", factor, "x", "", note)
            before = seconds


def join(report, files):
    """Put the cells of several files together."""
    times = {level: {} for level in LEVELS}
    for file in files:
        found = json.loads(Path(file).read_text())["results"][NAME]
        report.rows += [row for row in found["rows"] if ", ms to " in row.get("label", "")]
        for level, those in found["data"].items():
            for side, seconds in those.items():
                times[float(level)].setdefault(side, []).extend(seconds)
    summary(report, times)
    report.data = {str(level): those for level, those in times.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=SETS)
    parser.add_argument("--alphas", type=lambda text: [float(a) for a in text.split(",")], default=[1e-2, 1e-4, 1e-6])
    parser.add_argument("--cap", type=float, default=10.0)
    parser.add_argument("--join", nargs="+", default=None)
    parser.add_argument("--out", default=str(OUTPUT / "ablation.json"))
    options = parser.parse_args()
    run = lambda report: main(report, options.sets, options.alphas, options.cap)
    if options.join:
        run = lambda report: join(report, options.join)
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run), out=Path(options.out))
