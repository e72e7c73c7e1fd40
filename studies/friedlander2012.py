"""Friedlander and Schmidt (2012): growing batches begin like a stochastic method and end like L-BFGS; rows that are skipped."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS, MUTED
from scoreline.risks import LogisticRisk, SquaredHingeRisk
from scoreline.runtime.types import FloatArray
from scoreline.solvers import HybridSolver, LbfgsSolver, NewtonSolver, Solver
from studies.datasets import SEED, Split
from studies.stochastic import STEPS, stochastic
from studies.study import Cell, Claim, Findings, Study, Table
from studies.watched import POINTS

RISKS: dict[str, Any] = {"squared_hinge": SquaredHingeRisk, "logistic": LogisticRisk}
PAPER: dict[str, Any] = {"growth": "paper", "precondition": False, "first_rows": 1}
METHODS: dict[str, Callable[[], Solver]] = {
    "lbfgs": lambda: LbfgsSolver(init="zero"),
    "hybrid, paper": lambda: HybridSolver(**PAPER),
    "shrink, sum": lambda: HybridSolver(shrink="sum", **PAPER),
    "shrink, path": lambda: HybridSolver(shrink="path", **PAPER),
    "hybrid": lambda: HybridSolver(),
}
SHRINKS = ("shrink, sum", "shrink, path")  # for the squared hinge alone
STOCHASTIC = {f"stochastic, {step:g}": step for step in STEPS}
SETS = (
    "a9a",
    "w8a",
    "farm-ads",
    "reuters-mfx",
    "sector",
    "census-income",
    "kddcup99",
    "covtype",
)  # none is the paper's
LARGE, SPARSE = 1000, 0.15  # rows from which on a set is large, and share of non-zeros up to which it is sparse
ABSENT = "spam (TREC 2005)"  # the set of the paper's figures
MADE = "made"  # a set that is drawn on the spot, for machines without data
ALPHA = 1e-4
LEVELS = (1e-1, 1e-2, 1e-4, 1e-6)  # of J / J* - 1
CLOSE, SURE = 1e-7, 1e-9  # where curves end; tol of the run that J* comes from
DIVERGED = 1e6  # times the optimum, where a stochastic run is given up
NEAR = 0.005  # test error above that of the optimum which counts as being there
FEW_FEATURES = 1000  # up to here Newton's method has a whole Hessian
MOST = 0.9  # share of cells in which "generally" holds
SLOWER = 1.25  # times as many passes that still are "the same rate"
LEFT, WINDOW = (
    1e-3,
    9,
)  # of the figures: passes at the left edge, points that the share of skipped rows is averaged over
STYLES = {  # colour, width, style: skipping changes passes only, so that curves lie close to each other
    "lbfgs": (INK, 1.4, "-"), "hybrid, paper": (BELOW, 3.2, "-"), "shrink, sum": (MODELS[0], 1.6, "-"),
    "shrink, path": (MODELS[2], 1.4, "--"), "hybrid": (ABOVE, 1.6, "-"),
    "stochastic, 10": (MODELS[1], 1.2, "-"), "stochastic, 1": (MODELS[1], 1.2, "--"), "stochastic, 0.1": (MUTED, 1.2, "-"),
    "stochastic, 0.01": (MUTED, 1.2, "--"), "stochastic, 0.001": (MUTED, 1.2, ":"),
}  # fmt: skip


class Friedlander2012(Study):
    """Figures 1 and 2 of the supplement: objective, test error and rows skipped against passes through the data."""

    name = "friedlander2012"
    paper = "Friedlander and Schmidt 2012, Hybrid deterministic-stochastic methods for data fitting (supplement)"
    claim = (
        "growing batches that skip rows outperform L-BFGS, and at last a stochastic method with a well-chosen step, too"
    )

    @property
    def _cap(self) -> float:
        return self.limit_of_a_fit(1.0, 60.0)

    @property
    def _most_passes(self) -> float:
        return 300.0 if self.quick else 2000.0

    @property
    def _names(self) -> list[str]:
        return [MADE, *(name for name in (SETS[:1] if self.quick else SETS) if self.data.has(name))]

    def cells(self) -> list[Cell]:
        """Return a cell for each set and risk."""
        return [Cell(_key(name, risk), partial(self._race, name, risk)) for name in self._names for risk in RISKS]

    def findings(self, results: Mapping[str, Any]) -> Findings:
        """Return passes to each level, rows skipped, and what became of the paper's claims."""
        findings = Findings(missing=[ABSENT, *(name for name in SETS if not self.data.has(name))])
        findings.tables = [self._passes(results), self._skips(results)]
        findings.claims = claims(results, full=not self.quick)
        for name in self._names:
            if all(_key(name, risk) in results for risk in RISKS):
                findings.figures[name] = partial(self._draw, results, name)
        return findings

    def _split(self, name: str) -> Split:
        most = 4000 if self.quick else None
        if name != MADE:
            return self.data.split(name, most)
        rows = most or 60_000
        rng = np.random.default_rng(SEED)
        X, w = rng.standard_normal((rows + rows // 4, 50)), rng.standard_normal(50)
        z = X @ w / np.linalg.norm(w) + 0.5 * rng.standard_normal(len(X))
        y = np.where(z > np.quantile(z, 0.7), 1, -1)
        return Split(X[:rows], y[:rows], X[rows:], y[rows:])

    def _race(self, name: str, risk: str) -> dict[str, Any]:
        """Run all methods from w = 0 to 1e-7 of the optimum, or to a limit."""
        rows = self._split(name)
        watch = _Watch(rows, risk, 10.0 * self._cap)
        traces = {
            method: self._trace(watch, make())
            for method, make in METHODS.items() if risk == "squared_hinge" or method not in SHRINKS
        }  # fmt: skip
        size = float(rows.X.multiply(rows.X).sum() if issparse(rows.X) else np.sum(rows.X**2)) / rows.X.shape[0]
        traces |= {method: _stochastic_trace(watch, step / size) for method, step in STOCHASTIC.items()}
        best = min([watch.best, *(row[1] for trace in traces.values() for row in trace)])
        stored = rows.X.nnz if issparse(rows.X) else rows.X.size
        plain = [row[1] for row in traces["hybrid, paper"]]
        return {
            "optimum": best, "lower_bound": watch.lower_bound, "error": watch.error, "rows": int(rows.X.shape[0]),
            "features": int(rows.X.shape[1]), "density": stored / float(np.prod(rows.X.shape)),
            "runs": {method: _summary(trace, best, watch.error) for method, trace in traces.items()},
            "same": {
                m: all(a == row[1] for a, row in zip(plain, traces[m], strict=False)) for m in SHRINKS if m in traces
            },
        }  # fmt: skip

    def _trace(self, watch: "_Watch", solver: Solver) -> list[list[float]]:
        """Return rows (passes, J, test error, share of rows skipped) of w = 0 and all iterations."""
        objective, begin = watch.problem(), time.process_time()
        found = [[0.0, *watch.look(np.zeros(objective.n_features)), 0.0]]
        for state in solver.iterates(objective, np.zeros(objective.n_features)):
            shares = state.history.get("skipped")
            value, error = watch.look(state.w)
            found.append([objective.n_passes, value, error, shares[-1] if shares else 0.0])
            late = objective.n_passes > self._most_passes or time.process_time() - begin > self._cap
            if late or value <= (1.0 + CLOSE) * watch.best:
                break
        return found

    def _passes(self, results: Mapping[str, Any]) -> Table:
        rows = []
        for key, cell in results.items():
            gap = (cell["optimum"] - (cell["lower_bound"] or 0.0)) / cell["optimum"]
            for method, run in cell["runs"].items():
                shown = [_number(passes) for passes in run["to"]]
                end = f"{run['end']:.0e} after {run['passes']:.0f}"
                rows.append((key, method, *shown, _number(run["to_error"]), end, f"{gap:.0e}"))
        head = (
            "data, risk", "method", *(f"to {level:g}" for level in LEVELS), "to the test error", "end", "J* proved within",
        )  # fmt: skip
        note = (
            f"The number of passes over the data after which J / J* - 1 stays at or below the level, with alpha {ALPHA:g} and "
            "a start at w = 0. A product with a part of the rows counts as that part of a pass. The test error is reached when "
            f"it is within {NEAR:g} of the error at the optimum. Computing J and the test error is not counted. "
            '"hybrid, paper": the first batch has one row, and each step multiplies the batch by 1.1 and adds 1. "shrink": the '
            'same, with rows skipped by bound (1) ("sum") or by the better bound ("path"), after a pass for the lengths of the '
            'rows. "hybrid": the defaults of the library. "stochastic": one row at a time (SGDClassifier), with five fixed '
            "steps over the mean of |x|^2, and 30 epochs of 2 passes. The paper has three steps and does not print them. The "
            "paper prints no numbers."
        )
        return Table("Figures 1 and 2: passes", head, rows, note)

    def _skips(self, results: Mapping[str, Any]) -> Table:
        rows = [
            (key, *(f"{100 * share:.1f} %" for m in SHRINKS for share in cell["runs"][m]["skipped"]))
            for key, cell in results.items() if cell["same"]
        ]  # fmt: skip
        head = ("data, risk", *(f"{m[8:]}: {part}" for m in SHRINKS for part in ("first quarter", "last quarter")))
        return Table(
            "Rows of the batch that are skipped", head, rows, "The mean share over a quarter of the iterations."
        )

    def _draw(self, results: Mapping[str, Any], name: str, figure: Any) -> None:
        """Draw objective, test error and rows skipped against passes, a column for each risk."""
        figure.set_size_inches(4.6 * len(RISKS), 8.0)
        axes = figure.subplots(3, len(RISKS), squeeze=False, sharex="col")
        for column, risk in zip(axes.T, RISKS, strict=True):
            cell = results[_key(name, risk)]
            for method, run in cell["runs"].items():
                colour, width, style = STYLES[method]
                curve = np.array(run["curve"], dtype=float)[1:]  # w = 0 costs no pass, and has no place on the axis
                look = {"color": colour, "linewidth": width, "linestyle": style, "label": method}
                passes = curve[:, 0]
                column[0].plot(passes, np.maximum(curve[:, 1] / cell["optimum"] - 1.0, 0.5 * CLOSE), **look)
                column[1].plot(passes, 100.0 * curve[:, 2], **look)
                if method in SHRINKS:
                    column[2].plot(passes, 100.0 * _smooth(curve[:, 3]), **look)
            column[0].set(xscale="log", yscale="log", ylim=(CLOSE, 30.0))
            column[0].set_xlim(left=LEFT)
            column[1].set_ylim(*_window(cell))
            column[1].axhline(100.0 * cell["error"], color=INK, linewidth=0.8, linestyle=":", label="at the optimum")
            column[0].set_title(f"{risk}: {cell['rows']:,} rows, {cell['features']:,} features", fontsize=9)
            if cell["same"]:
                column[2].set_ylim(0.0, 100.0)
            else:
                column[2].set_yticks([])
                column[2].text(0.5, 0.5, "no row is skipped", color=MUTED, ha="center", transform=column[2].transAxes)
            column[2].set_xlabel("passes through the data", color=MUTED)
        for ax in axes.flat:
            ax.grid(color="#dddddd", linewidth=0.5)
            ax.tick_params(labelsize=8)
        for ax, what in zip(axes[:, 0], ("J / J* - 1", "test error, %", "rows skipped, %, mean of 9"), strict=True):
            ax.set_ylabel(what, color=MUTED)
        figure.legend(
            *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
        )
        figure.suptitle(name, fontsize=10)


def _stochastic_trace(watch: "_Watch", step: float) -> list[list[float]]:
    """Return rows (passes, J, test error, 0) of w = 0 and of what was looked at; a run that diverges ends there."""
    found = [[0.0, *watch.look(np.zeros(watch.rows.X.shape[1])), 0.0]]

    def look(passes: float, w: FloatArray) -> bool:
        with np.errstate(all="ignore"):
            value, error = watch.look(w)
        fine = bool(np.isfinite(value) and value <= DIVERGED * watch.best)
        if fine:
            found.append([passes, value, error, 0.0])
        return fine

    stochastic(watch.rows.X, watch.rows.y, watch.risk, ALPHA, step, look)
    return found


class _Watch:
    """Looks at w off the count of passes; knows the optimum."""

    def __init__(self, rows: Split, risk: str, cap: float):
        self.rows, self.risk = rows, risk
        self.test, self.fresh_objective = as_operator(rows.X_test), self.problem()
        solver = NewtonSolver if rows.X.shape[1] <= FEW_FEATURES else LbfgsSolver
        result = solver(tol=SURE, init="zero", max_time=cap, max_iter=10**6).solve(self.problem())
        self.best = float(result.objective)
        self.lower_bound = None if result.lower_bound is None else float(result.lower_bound)
        self.error = self.look(result.w)[1]

    def problem(self) -> Objective:
        return Objective(as_operator(self.rows.X), RISKS[self.risk]().prepare(self.rows.y), ALPHA)

    def look(self, w: Any) -> tuple[float, float]:
        """Return J and the share of wrong signs on the test rows."""
        wrong = (self.test.matvec(w) > 0) != (self.rows.y_test > 0)
        return float(self.fresh_objective.value(w)), float(np.mean(wrong))


def claims(results: Mapping[str, Any], full: bool) -> list[Claim]:
    """Return what the results say about the paper's claims; `full` is False for small problems.

    The supplement is about the squared hinge on one large sparse set, so those sets decide; the hybrid method of this library,
    with its defaults, stands beside.
    """
    base, mine, default = "lbfgs", "hybrid, paper", "hybrid"
    hinge = {key: cell["runs"] for key, cell in results.items() if SHRINKS[0] in cell["runs"]}
    large = {
        key: runs for key, runs in hinge.items()
        if results[key]["rows"] >= LARGE and results[key]["density"] <= SPARSE
    }  # fmt: skip
    shapes = {key: f"{cell['rows']:,} x {cell['features']:,}" for key, cell in results.items()}

    def share(good: Mapping[str, bool], least: float = MOST) -> bool | None:
        return sum(good.values()) >= least * len(good) if good and full else None

    def others(good: Mapping[str, bool]) -> str:
        missed = [f"{key} ({shapes[key]})" if key in shapes else key for key, holds in good.items() if not holds]
        return f"not on {'; '.join(missed)}" if missed else ""

    def ahead(runs: Mapping[str, Any], method: str, rivals: tuple[str, ...], level: int) -> bool:
        return all(_before(runs[method]["to"][level], runs[rival]["to"][level]) for rival in rivals)

    early = {key: any(ahead(runs, m, (base, mine), 0) for m in STOCHASTIC) for key, runs in large.items()}
    early_default = {key: any(ahead(runs, m, (base, default), 0) for m in STOCHASTIC) for key, runs in large.items()}
    careless = {key: any(not ahead(runs, m, (base,), 0) for m in STOCHASTIC) for key, runs in large.items()}
    rates = {key: rate for key, runs in hinge.items() if (rate := _rate(runs, SHRINKS[0], base)) is not None}
    own_rates = {key: rate for key, runs in hinge.items() if (rate := _rate(runs, default, base)) is not None}
    shrunk = {key: ahead(runs, SHRINKS[0], (base, mine, *STOCHASTIC), -1) for key, runs in large.items()}
    own = {key: ahead(runs, default, (base, mine, *STOCHASTIC), -1) for key, runs in large.items()}
    grows = {key: runs[SHRINKS[0]]["skipped"][1] > runs[SHRINKS[0]]["skipped"][0] for key, runs in large.items()}
    better = {key: runs[SHRINKS[1]]["passes"] <= runs[SHRINKS[0]]["passes"] for key, runs in large.items()}
    saved = _middle([1.0 - runs[SHRINKS[1]]["passes"] / runs[SHRINKS[0]]["passes"] for runs in large.values()])
    exact = {f"{key}, {m}": holds for key, cell in results.items() for m, holds in cell["same"].items()}
    good = {key: ratio <= SLOWER for key, ratio in rates.items()}
    middle = _middle(list(rates.values()))
    return [
        Claim(
            f"stochastic gradient with the best of {len(STEPS)} steps outperforms L-BFGS and the hybrid method early on (to "
            f"{LEVELS[0]:g})",
            "spam: yes", f"{_of(early)} large sparse sets", share(early, 0.5), others(early), _of(early_default),
        ),
        Claim(
            f"and performs poorly without one: a step of the {len(STEPS)} is behind L-BFGS there (to {LEVELS[0]:g})",
            "spam: yes", _of(careless), share(careless, 0.5), others(careless),
        ),
        Claim(
            "growing batches that skip rows have a linear rate, as L-BFGS: passes from "
            f"{LEVELS[-2]:g} to {LEVELS[-1]:g} over those of L-BFGS", "about 1",
            f"median {middle:.2f}, at most {SLOWER:g} on {_of(good)}", middle <= SLOWER if rates and full else None,
            others(good), f"median {_middle(list(own_rates.values())):.2f}",
        ),
        Claim(
            f"skipping rows eventually outperforms all other methods ({LEVELS[-1]:g})", "spam: yes", _of(shrunk),
            share(shrunk, 0.5), others(shrunk), _of(own),
        ),
        Claim(
            "skipping has a greater effect the longer the method runs", "spam: yes", _of(grows), share(grows), others(grows),
        ),
        Claim(
            "the better bound gives a further small improvement", "small",
            f"{_of(better)}, median {100 * saved:.1f} % fewer passes", share(better), others(better),
        ),
        Claim(
            "skipping changes no iterate", "proved", f"J the same, bit for bit, on {_of(exact)}", all(exact.values()),
            others(exact),
        ),
    ]  # fmt: skip


def _key(name: str, risk: str) -> str:
    return f"{name}, {risk}"


def _summary(trace: list[list[float]], best: float, error: float) -> dict[str, Any]:
    """Return the passes to every level, the end, the shares of rows skipped, and about 200 points of the curve."""
    picked = trace
    if len(trace) > POINTS:
        picked = [trace[k] for k in np.unique(np.geomspace(1, len(trace), POINTS).astype(int) - 1)]
    excess = [row[1] / best - 1.0 for row in trace]
    quarter = max(1, len(trace) // 4)
    return {
        "curve": [[float(value) for value in row] for row in picked],
        "to": [_for_good(trace, [e <= level for e in excess]) for level in LEVELS],
        "to_error": _for_good(trace, [row[2] <= error + NEAR for row in trace]),
        "end": float(excess[-1]), "passes": float(trace[-1][0]), "iterations": len(trace),
        "skipped": [float(np.mean([row[3] for row in part])) for part in (trace[:quarter], trace[-quarter:])],
    }  # fmt: skip


def _for_good(trace: list[list[float]], there: list[bool]) -> float | None:
    """Return the passes from which on all iterations are there: J of all rows jumps up and down while batches are small."""
    last = max((k for k, yes in enumerate(there) if not yes), default=-1)
    return None if last + 1 == len(trace) else float(trace[last + 1][0])


def _before(passes: float | None, others: float | None) -> bool:
    """Tell whether a method arrived, and with fewer passes than the other one or alone."""
    return passes is not None and (others is None or passes < others)


def _ratio(runs: Mapping[str, Any], method: str, base: str, level: int) -> float | None:
    """Return the passes of a method over those of another one to a level; None if one of them did not arrive."""
    own, other = runs[method]["to"][level], runs[base]["to"][level]
    return None if own is None or other is None else own / max(other, 1e-9)


def _rate(runs: Mapping[str, Any], method: str, base: str) -> float | None:
    """Return the same for the passes between the last two levels, which the start has no part in."""
    ends = [runs[m]["to"][level] for m in (method, base) for level in (-2, -1)]
    if None in ends:
        return None
    return float((ends[1] - ends[0]) / max(ends[3] - ends[2], 1.0))


def _middle(values: list[float]) -> float:
    return float(np.median(values)) if values else float("nan")


def _of(good: Mapping[str, bool]) -> str:
    return f"{sum(good.values())} of {len(good)}"


def _number(passes: float | None) -> str:
    return "never" if passes is None else f"{passes:.1f}" if passes >= 1.0 else f"{passes:.3f}"


def _smooth(values: Any) -> Any:
    """Return means over the iterations around each, fewer at the ends: single ones jump up and down."""
    ones = np.ones(min(WINDOW, len(values)))
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


def _window(cell: dict[str, Any]) -> tuple[float, float]:
    """Return the range of test errors that is worth looking at: around the optimum, up to where L-BFGS begins."""
    ends = [100.0 * run["curve"][-1][2] for run in cell["runs"].values()]
    error, top = 100.0 * cell["error"], max(100.0 * row[2] for row in cell["runs"]["lbfgs"]["curve"])
    spread = max(top - error, 0.25 * error, 0.1)
    return min([error, *ends]) - 0.1 * spread, error + 1.2 * spread
