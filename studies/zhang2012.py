"""Zhang, Saha and Vishwanathan (2012): smoothing beside cutting planes for break-even point and ROC area."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from scoreline.io import make_imbalanced
from scoreline.measures import get_measure
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS, MUTED
from scoreline.risks import PrbepRisk, RocAreaRisk
from scoreline.solvers import AcceleratedSolver, BundleSolver, SmoothedSolver
from studies.datasets import SEED, Split
from studies.study import Cell, Claim, Findings, Study, Table
from studies.watched import passes_to, seconds_to, watched

RISKS: dict[str, Any] = {"prbep": PrbepRisk, "roc_area": RocAreaRisk}
MEASURES = {"prbep": "prbep", "roc_area": "roc_auc"}
# Table 2, seconds to 1 %: (cutting planes, smoothing) for PRBEP and ROC area, at the alpha of the best test measure.
TABLE_2 = {
    "a9a": ("adult9", {"prbep": (43.32, 0.40), "roc_area": (1.13, 0.19)}),
    "covtype": ("covertype", {"prbep": (36.24, 7.33), "roc_area": (42.73, 5.71)}),
    "kddcup99": ("kdd99", {"prbep": (63.5, 152.1), "roc_area": (204.9, 31.0)}),
}
OTHERS = ("letter", "ijcnn1", "cod-rna", "reuters-mfx", "census-income", "mnist")  # at hand, not in the paper
ORDER = (
    "a9a",
    "letter",
    "ijcnn1",
    "cod-rna",
    "reuters-mfx",
    "covtype",
    "kddcup99",
    "census-income",
    "mnist",
)  # small first
MADE = "made"  # a set that is drawn on the spot, for machines without data
CLOSE, SURE, EPSILON = 1e-2, 1e-5, 1e-3
FACTORS = (1000.0, 100.0, 10.0)  # c_mu of figures 27 to 29
PRINTED_FACTOR = 10.0  # c_mu of all other experiments of the paper
# "sms" is the method of the paper, with that fixed mu and no Hessian, and "agm" accelerated gradients with the same mu.
STYLES = {"sms": BELOW, "bundle": ABOVE, "agm": MODELS[0], "smoothed": MODELS[1], "accelerated": MODELS[2]}
PRINTED, DEFAULTS = ("sms", "bundle", "agm"), ("smoothed", "bundle", "accelerated")


class Zhang2012(Study):
    """Table 2 and its figures, the influence of mu, and smoothing beside accelerated gradients."""

    name = "zhang2012"
    paper = "Zhang, Saha and Vishwanathan 2012, Smoothing multivariate performance measures"
    claim = "smoothing reaches 1 % of the optimum 10 to 100 times faster than cutting planes where the penalty is weak"

    @property
    def _alphas(self) -> tuple[float, ...]:
        return (1e-2, 1e-4) if self.quick else (1e-2, 1e-4, 1e-6)

    @property
    def _cap(self) -> float:
        return self.limit_of_a_fit(2.0, 30.0)

    @property
    def _names(self) -> list[str]:
        wanted = ("a9a",) if self.quick else ORDER
        return [MADE, *(name for name in wanted if self.data.has(name))]

    def cells(self) -> list[Cell]:
        """Return a cell for each set, risk and alpha, and those of mu and of accelerated gradients at the smallest alpha."""
        found = []
        for name in self._names:
            for risk in RISKS:
                for alpha in self._alphas:
                    key = _key(name, risk, alpha)
                    found.append(Cell(key, partial(self._race, name, risk, alpha)))
                found.append(Cell(f"{name}, {risk}, mu", partial(self._fixed, name, risk)))
        return found

    def findings(self, results: Mapping[str, Any]) -> Findings:
        """Return the tables beside the paper's, and what became of its claims."""
        all_lines = [
            name for name in self._names if set(self._keys(name)) <= set(results)
        ]  # a run may end before all are done
        results = {key: results[key] for name in all_lines for key in self._keys(name)}
        missing = [name for name in (*TABLE_2, *OTHERS) if not self.data.has(name)]
        findings = Findings(missing=missing)
        findings.tables = [
            self._table_2(results, all_lines),
            self._all_cells(results, all_lines),
            self._mu_table(results, all_lines),
        ]
        findings.claims = self._claims(results)
        for name in all_lines:
            findings.figures[f"{name}-objective"] = partial(self._draw, results, name, 2, "J(w)")
            findings.figures[f"{name}-test"] = partial(self._draw, results, name, 3, "test measure")
        return findings

    def _keys(self, name: str) -> list[str]:
        races = [_key(name, risk, alpha) for risk in RISKS for alpha in self._alphas]
        return races + [f"{name}, {risk}, mu" for risk in RISKS]

    def _split(self, name: str) -> Split:
        most = 2000 if self.quick else None
        if name != MADE:
            return self.data.split(name, most)
        rows = most or 20_000
        X, y = make_imbalanced(2 * rows, 50, positive_share=0.3, random_state=SEED)
        y = np.where(y > 0, 1, -1)
        return Split(X[:rows], y[:rows], X[rows:], y[rows:])

    def _race(self, name: str, risk: str, alpha: float) -> dict[str, Any]:
        """Run both solvers to the optimum, or to the limit of time."""
        rows, measure = self._split(name), get_measure(MEASURES[risk])
        test = as_operator(rows.X_test)
        operator, prepared = as_operator(rows.X), RISKS[risk]().prepare(rows.y)

        def value(w: Any) -> float:
            return measure.value(rows.y_test > 0, test.matvec(w))

        def run(solver: Any, target: float, tol: float, cap: float, **options: Any) -> dict[str, Any]:
            objective = Objective(operator, prepared, alpha)
            return watched(solver, objective, {"tol": tol, "max_iter": 100_000} | options, value, target, cap)

        run(SmoothedSolver, -np.inf, 0.5, self._cap)  # compiled before the clock starts
        best = run(SmoothedSolver, -np.inf, SURE, 5.0 * self._cap)
        runs = {"smoothed": best}
        level = (1.0 + 0.1 * CLOSE) * best["objective"]
        for solver, kind in (("bundle", BundleSolver), ("accelerated", AcceleratedSolver)):
            runs[solver] = run(kind, level, SURE, self._cap)
        printed = {"c_mu": PRINTED_FACTOR, "abs_tol": EPSILON, "precondition": False}
        runs["sms"] = run(SmoothedSolver, level, SURE, self._cap, **printed)
        mu = PRINTED_FACTOR * EPSILON / prepared.prox_bound
        runs["agm"] = run(AcceleratedSolver, level, SURE, self._cap, mu=mu)
        optimum = min(each["objective"] for each in runs.values())
        return {
            "optimum": optimum,
            "lower_bound": best["lower_bound"],
            "at_zero": prepared.value_at_zero(),
            "runs": runs,
        }

    def _fixed(self, name: str, risk: str) -> dict[str, Any]:
        """Run with the paper's fixed smoothing at the smallest alpha."""
        rows, alpha = self._split(name), self._alphas[-1]
        operator, prepared = as_operator(rows.X), RISKS[risk]().prepare(rows.y)
        runs = {}
        for factor in FACTORS:
            options = {
                "c_mu": factor,
                "abs_tol": EPSILON,
                "max_iter": 100_000,
                "precondition": False,
            }
            runs[f"{factor:g}"] = watched(
                SmoothedSolver, Objective(operator, prepared, alpha), options, limit=self._cap
            )
        return runs

    def _race_times(self, cell: dict[str, Any]) -> dict[str, float | None]:
        """Return the seconds of each solver to 1 %."""
        level = (1.0 + CLOSE) * cell["optimum"]
        return {solver: seconds_to(run, level) for solver, run in cell["runs"].items()}

    def _best_alpha(self, results: Mapping[str, Any], name: str, risk: str) -> float:
        """Return the alpha with the best test measure, which the paper's table is about."""
        ends = {a: results[_key(name, risk, a)]["runs"]["smoothed"]["curve"][-1][3] for a in self._alphas}
        return max(ends, key=lambda alpha: ends[alpha])

    def _table_2(self, results: Mapping[str, Any], names: Sequence[str]) -> Table:
        rows = []
        for name in names:
            for risk in RISKS:
                alpha = self._best_alpha(results, name, risk)
                times = self._race_times(results[_key(name, risk, alpha)])
                there = TABLE_2[name][1][risk] if name in TABLE_2 else None
                paper = ("-", "-", "-") if there is None else (*map(str, there), f"{there[0] / there[1]:.1f}")
                shown = [_seconds(times[solver], self._cap) for solver in ("bundle", "sms", "smoothed")]
                ratios = [_ratio(times, self._cap, solver) for solver in ("sms", "smoothed")]
                more = "" if times["bundle"] is not None else "> "
                in_paper = ["-" if ratio is None else f"{more}{ratio:.1f}" for ratio in ratios]
                rows.append((name, risk, f"{alpha:g}", *paper, *shown, *in_paper))
        head = (
            "data", "risk", "alpha of the best test measure", "paper: BMRM, s", "paper: SMS, s", "paper: ratio", "bundle, s",
            "SMS as printed, s", "smoothed (default), s", "ratio as printed", "ratio, default",
        )  # fmt: skip
        note = (
            "Seconds of processor time until J is within 1 % of its minimum. As printed: mu = 10 epsilon / D, epsilon 0.001, "
            "and no Hessian. No constant feature is added, as in the paper: neither risk changes when all scores rise "
            "together, so the coefficient of such a feature would be 0. The paper's processors are of 2010: compare ratios."
        )
        return Table("Table 2", head, rows, note)

    def _all_cells(self, results: Mapping[str, Any], names: Sequence[str]) -> Table:
        rows = []
        for name in names:
            for risk in RISKS:
                for alpha in self._alphas:
                    cell = results[_key(name, risk, alpha)]
                    times = self._race_times(cell)
                    gap = (cell["optimum"] - (cell["lower_bound"] or 0.0)) / cell["optimum"]
                    end = cell["runs"]["smoothed"]["curve"][-1][3]
                    shown = [_seconds(times[s], self._cap) for s in ("sms", "bundle", "agm", "smoothed", "accelerated")]
                    rows.append(
                        (name, risk, f"{alpha:g}", *shown, f"{cell['optimum']:.5g}", f"{100 * gap:.1g}", f"{end:.4f}")
                    )
        head = (
            "data",
            "risk",
            "alpha",
            "SMS as printed, s",
            "bundle, s",
            "accelerated, the same mu, s",
            "smoothed (default), s",
            "accelerated (default), s",
            "minimum of J",
            "proved within, %",
            "test measure",
        )
        return Table("All cells: seconds to 1 %", head, rows)

    def _mu_table(self, results: Mapping[str, Any], names: Sequence[str]) -> Table:
        rows = []
        for name in names:
            for risk in RISKS:
                optimum = results[_key(name, risk, self._alphas[-1])]["optimum"]
                runs = results[f"{name}, {risk}, mu"]
                cells = [
                    f"{runs[f'{f:g}']['objective'] - optimum:.1e} ({runs[f'{f:g}']['iterations']})" for f in FACTORS
                ]
                rows.append((name, risk, *cells))
        head = ("data", "risk", *(f"c_mu = {factor:g}" for factor in FACTORS))
        note = f"J - min J at the end (iterations), alpha {self._alphas[-1]:g}, epsilon {EPSILON:g}, mu = c_mu epsilon / D."
        return Table("The influence of mu", head, rows, note)

    def _claims(self, results: Mapping[str, Any]) -> list[Claim]:
        races = {key: cell for key, cell in results.items() if not key.endswith(", mu")}
        if not races:
            return []
        times = {key: self._race_times(cell) for key, cell in races.items()}
        weakest = [key for key in races if key.endswith(f"alpha {self._alphas[-1]:g}")]
        full = not self.quick

        def late(solver: str) -> list[str]:
            return [key for key, each in times.items() if each[solver] is None]

        def known(solver: str) -> dict[str, float]:
            return {key: ratio for key in weakest if (ratio := _ratio(times[key], self._cap, solver)) is not None}

        def quick(solver: str) -> tuple[float, str]:
            ratios = list(known(solver).values())
            middle = float(np.median(ratios)) if ratios else np.nan
            return middle, f"median {middle:.1f}, {sum(r >= 10 for r in ratios)} of {len(ratios)} at least 10"

        def slower(solver: str) -> list[str]:
            return [key for key, ratio in known(solver).items() if ratio < 1.0]

        def beaten(pair: tuple[str, str]) -> int:
            return sum(_before(each[pair[0]], each[pair[1]]) for each in times.values())

        def growth(solver: str) -> float:
            return _growth(races, solver, self._alphas)

        (middle, text), (_, own) = quick("sms"), quick("smoothed")
        agm, agm_own = beaten(("sms", "agm")), beaten(("smoothed", "accelerated"))
        grows = {solver: growth(solver) for solver in ("sms", "agm", "bundle", "smoothed")}
        off = [
            f"{key} c_mu {factor}"
            for key, runs in results.items() if key.endswith(", mu")
            for factor, run in runs.items()
            if run["objective"] - results[_paired(key, self._alphas[-1])]["optimum"] > EPSILON
        ]  # fmt: skip
        at_10 = [text for text in off if text.endswith("c_mu 10")]
        stopped = {
            f"{key} c_mu 10" for key, runs in results.items()
            if key.endswith(", mu") and runs["10"].get("seconds", 0.0) >= self._cap
        }  # fmt: skip
        # Where cutting planes are stopped at the limit, the ratio is only a lower bound.
        bounds = [key for key, ratio in known("sms").items() if times[key]["bundle"] is None and ratio < 10.0]
        small = [key for key in late("sms") if CLOSE * races[key]["optimum"] < EPSILON]
        return [
            Claim(
                "smoothing reaches 1 % on every set, risk and alpha", "all",
                f"{len(times) - len(late('sms'))} of {len(times)}", not late("sms"), _with_small_minima(late("sms"), races),
                f"{len(times) - len(late('smoothed'))} of {len(times)}",
            ),
            Claim(
                f"at the weakest penalty ({self._alphas[-1]:g}) smoothing is often 10 to 100 times faster than cutting planes",
                "10 to 100", text + (f", of {len(bounds)} of the others only a lower bound is known" if bounds else ""),
                bool(middle >= 10.0) if full and (middle >= 10.0 or not bounds) else None,
                "" if middle >= 10.0 or bounds else "see table 2", own,
            ),
            Claim(
                "smoothing is never slower there", "all but two", f"slower on {len(slower('sms'))} of {len(weakest)}",
                len(slower("sms")) <= 2 if full else None, "; ".join(slower("sms")),
                f"slower on {len(slower('smoothed'))} of {len(weakest)}",
            ),
            Claim(
                f"mu = 10 epsilon / D gives an epsilon-accurate solution (epsilon {EPSILON:g})", "always",
                f"missed on {len(at_10)} of {len(weakest)}, {len(set(at_10) & stopped)} of them stopped at the limit",
                not at_10 if not self.quick and (not at_10 or set(at_10) - stopped) else None, "; ".join(at_10),
            ),
            Claim(
                "mu = 1000 epsilon / D does not always", "sometimes", f"missed on {sum(t.endswith('1000') for t in off)}",
                any(t.endswith("1000") for t in off) if not self.quick else None,
            ),
            Claim(
                "accelerated gradients are slower than L-BFGS on the same smoothed objective", "much slower",
                f"on {agm} of {len(times)}", agm >= 0.9 * len(times) if full else None,
                f"on {len(small)} cells L-BFGS stops at epsilon, which is more than 1 % of the minimum" if small else
                "see the table of all cells",
                f"on {agm_own} of {len(times)}",
            ),
            Claim(
                f"(7): from alpha {self._alphas[-2]:g} to {self._alphas[-1]:g} the passes to 1 % grow less than those of "
                "cutting planes", "at most 10 times, against 100",
                f"accelerated {grows['agm']:.2g}, SMS {grows['sms']:.2g}, cutting planes {grows['bundle']:.2g} (medians)",
                bool(max(grows["agm"], grows["sms"]) < grows["bundle"]) if full else None, "see the table of all cells",
                f"smoothed {grows['smoothed']:.2g}",
            ),
        ]  # fmt: skip

    def _draw(self, results: Mapping[str, Any], name: str, column: int, what: str, figure: Any) -> None:
        """Draw objective or test measure against seconds, a row for each risk and a panel for each alpha."""
        figure.set_size_inches(3.4 * len(self._alphas), 5.5)
        axes = figure.subplots(len(RISKS), len(self._alphas), squeeze=False)
        for line, risk in zip(axes, RISKS, strict=True):
            for ax, alpha in zip(line, self._alphas, strict=True):
                cell = results[_key(name, risk, alpha)]
                for solver, run in cell["runs"].items():
                    curve = np.array(run["curve"], dtype=float)
                    if len(curve):
                        ax.plot(
                            np.maximum(curve[:, 0], 1e-4),
                            curve[:, column],
                            color=STYLES[solver],
                            linewidth=1.5,
                            drawstyle="steps-post",
                            label=solver,
                        )
                if column == 2:
                    ax.axhline((1.0 + CLOSE) * cell["optimum"], color=INK, linewidth=0.8, linestyle=":", label="1 %")
                ax.set_xscale("log")
                ax.xaxis.set_minor_formatter("")  # on short axes their labels would run into each other
                ax.set_title(f"{risk}, alpha {alpha:g}", fontsize=9)
                ax.grid(color="#dddddd", linewidth=0.5)
                ax.tick_params(labelsize=8)
            line[0].set_ylabel(what, color=MUTED)
        for ax in axes[-1]:
            ax.set_xlabel("seconds", color=MUTED)
        handles = axes[0][0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
        figure.suptitle(name, fontsize=10)


def _key(name: str, risk: str, alpha: float) -> str:
    return f"{name}, {risk}, alpha {alpha:g}"


def _paired(key: str, alpha: float) -> str:
    """Return the key of the race of the same set and risk as a cell about mu."""
    name, risk, _ = key.split(", ")
    return _key(name, risk, alpha)


def _with_small_minima(late: Sequence[str], races: Mapping[str, Any]) -> str:
    """Name cells, and on how many of them 1 % of the minimum is less than the epsilon at which the paper's method stops."""
    small = sum(CLOSE * races[key]["optimum"] < EPSILON for key in late)
    return "; ".join(late) + (f". On {small} of them 1 % of the minimum is less than epsilon" if small else "")


def _before(first: float | None, second: float | None) -> bool:
    return first is not None and (second is None or first < second)


def _growth(races: Mapping[str, Any], solver: str, alphas: Sequence[float]) -> float:
    """Return the median ratio of passes to 1 % at the last alpha over those at the last but one, where both arrive.

    One that does not arrive at the last alpha has taken at least the passes of its run.
    """
    ratios = []
    for key, cell in races.items():
        name, risk, alpha = key.split(", ")
        if alpha != f"alpha {alphas[-1]:g}" or _key(name, risk, alphas[-2]) not in races:
            continue
        runs = [(cell, own) for cell in (races[_key(name, risk, alphas[-2])], cell) if (own := cell["runs"][solver])]
        passes = [passes_to(run, (1.0 + CLOSE) * each["optimum"]) for each, run in runs]
        if passes[0] is not None:
            last = runs[1][1]["passes"] if passes[1] is None else passes[1]
            ratios.append(max(last, 1.0) / max(passes[0], 1.0))
    return float(np.median(ratios)) if ratios else float("nan")


def _ratio(times: dict[str, float | None], cap: float, solver: str) -> float | None:
    """Return how many times as fast smoothing is, at least: cutting planes that did not arrive took the whole cap."""
    smoothed, bundle = times[solver], times["bundle"]
    if smoothed is None:
        return None
    return max(cap if bundle is None else bundle, 1e-4) / max(smoothed, 1e-4)


def _seconds(seconds: float | None, cap: float) -> str:
    return f"> {cap:g}" if seconds is None else f"{seconds:.3f}" if seconds < 1.0 else f"{seconds:.1f}"
