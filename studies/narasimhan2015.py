"""Narasimhan, Kar and Jain (2015): updates after every row (SPADE, STAMP) beside cutting planes, plug-in and AMP."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from scoreline.classifier import MeasureClassifier
from scoreline.io import make_imbalanced
from scoreline.measures import best_threshold, get_measure
from scoreline.report.palette import ABOVE, BELOW, INK, MODELS, MUTED
from studies.datasets import COTTONWOOD, SEED, Split
from studies.mini_batch import ETAS, one_pass_mini_batch
from studies.regret import SOLVERS, by_epoch, gaps
from studies.study import Cell, Claim, Findings, Study, Table

SPADE, STAMP = {"qmean": "1", "min_tpr_tnr": "2"}, {"f1": "3", "jaccard": "4"}  # measure to its figure in the paper
TITLES = {"qmean": "Q-mean", "min_tpr_tnr": "min(TPR, TNR)", "f1": "F1", "jaccard": "Jaccard"}
FIGURES = SPADE | STAMP
SETS = ("ijcnn1", "mnist", COTTONWOOD)  # of the paper, as far as they are to be had
ABSENT = ("PPI", "KDD Cup 2008")  # of the paper; docs/datasets.md does not have them
OTHERS = ("letter", "a9a", "kddcup99", "census-income")  # at hand, not in the paper
ORDER = ("ijcnn1", COTTONWOOD, "mnist", "letter", "a9a", "kddcup99", "census-income")  # those of the paper first
REGRET = "distance to the optimum"
SLOWEST = -0.35  # exponent of that distance in the number of rows; -1/2 is proved
MADE = "made"  # a set that is drawn on the spot, for machines without data
ALPHAS, PASSES, SPLITS, TEST_SHARE = (1e-4, 1e-6), 25, 5, 0.3
NONZEROS = 2_000_000  # most training non-zeros of a set; half as many outside the paper
STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # c of the steps c / sqrt(t) of SPADE and STAMP as printed, chosen as alpha is
CLOSE = 1e-6  # relative gap to which L-BFGS solves the logistic regression of the plug-in method
WITHIN = 0.01
MOST = 0.9  # share of cells in which "generally" holds
REPEATS, SHORT = 3, 0.2  # the fit with the clock is done so often, or until this many seconds have passed
THINNING = 1.25  # the next point of a curve is that of an iteration so many times higher


class Method(NamedTuple):
    """How a method is run: its solver, further options, whether it is watched on its way, and how it is drawn."""

    solver: str
    options: dict[str, Any]
    watched: bool
    colour: str
    marker: str


METHODS = {
    "spade, printed": Method("spade", {"step": "paper"}, True, ABOVE, "s"),
    "stamp, printed": Method("stamp", {"step": "paper", "weights": "level"}, True, ABOVE, "s"),
    "plugin, lbfgs": Method("lbfgs", {}, False, BELOW, "^"),
    "bundle": Method("bundle", {}, True, INK, "v"),
    "1pmb": Method("1pmb", {}, True, MODELS[1], "X"),
    "spade": Method("spade", {}, True, ABOVE, "o"),
    "stamp": Method("stamp", {}, True, ABOVE, "o"),
    "amp": Method("amp", {}, False, MODELS[2], "P"),
    "cost_search": Method("cost_search", {}, False, MODELS[0], "D"),
    "plugin": Method("plugin", {}, True, BELOW, "o"),
    "bundle_ocas": Method("bundle_ocas", {}, True, INK, "o"),
}  # fmt: skip


class Protocol(NamedTuple):
    """Which methods are compared, and which of them get the threshold that is best on the training scores."""

    mine: dict[str, str]
    others: tuple[str, ...]
    plugin: str
    planes: str
    tuned: tuple[str, ...]


# In the paper only plug-in methods have a threshold of their own.
PRINTED = Protocol(
    {"spade": "spade, printed", "stamp": "stamp, printed"}, ("plugin, lbfgs", "bundle", "1pmb"), "plugin, lbfgs", "bundle",
    ("plugin, lbfgs",),
)  # fmt: skip
DEFAULTS = Protocol(
    {"spade": "spade", "stamp": "stamp"}, ("amp", "cost_search", "plugin", "bundle_ocas"), "plugin", "bundle_ocas",
    ("spade", "stamp", "amp", "cost_search", "plugin", "bundle_ocas"),
)  # fmt: skip


class Narasimhan2015(Study):
    """Figures 1 to 4: the measure on test rows against seconds of training."""

    name = "narasimhan2015"
    paper = "Narasimhan, Kar and Jain 2015, Optimizing non-decomposable performance measures: a tale of two classes"
    claim = "updates after every row reach the measures of plug-in and cutting planes in a fraction of the time"

    @property
    def _cap(self) -> float:
        return self.limit_of_a_fit(0.5, 3.0)

    @property
    def _names(self) -> list[str]:
        wanted = ("letter",) if self.quick else ORDER
        return [*(name for name in wanted if self.data.has(name)), MADE]

    def cells(self) -> list[Cell]:
        """Return a cell for each set and measure."""
        races = [Cell(_key(name, m), partial(self._race, name, m)) for name in self._names for m in FIGURES]
        sizes = (300, 3000, 30_000) if self.quick else (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
        return [Cell(REGRET, partial(_regret, sizes, 7 if self.quick else 12, 3 if self.quick else 10)), *races]

    def findings(self, results: Mapping[str, Any]) -> Findings:
        """Return measures and seconds beside the paper's, and what became of its claims."""
        findings = Findings(missing=[*ABSENT, *(name for name in (*SETS, *OTHERS) if not self.data.has(name))])
        regret, results = results.get(REGRET), {key: cell for key, cell in results.items() if key != REGRET}
        findings.tables = [_ends(results, tuned=False), _ends(results, tuned=True), _steps(results), _times(results)]
        findings.claims = claims(results, full=not self.quick)
        for measure in FIGURES:
            if any(_measure(key) == measure for key in results):
                findings.figures[measure.replace("_", "-")] = partial(self._draw, results, measure)
        if regret is not None:
            findings.claims += regret_claims(regret, full=not self.quick)
            findings.figures["regret"] = partial(_draw_regret, regret)
        return findings

    def _split(self, name: str, k: int) -> Split:
        if name != MADE:
            most = 2000 if self.quick else self._most_rows(name)
            return self.data.random_split(name, k, TEST_SHARE, most)
        rows = 2000 if self.quick else 20_000
        X, y = make_imbalanced(2 * rows, 30, positive_share=0.05, tail=5.0, random_state=SEED + k)
        y = np.where(y > 0, 1, -1)
        return Split(X[:rows], y[:rows], X[rows:], y[rows:])

    def _most_rows(self, name: str) -> int:
        X, _ = self.data.raw(name)
        return int(NONZEROS * (1.0 if name in SETS else 0.5) / max(X.nnz / X.shape[0], 1.0))

    def _race(self, name: str, measure: str) -> dict[str, Any]:
        """Train with all methods on five random splits.

        Alpha, and the steps of the printed methods and of 1PMB, are chosen by a fifth of the training rows of the first split,
        off the clock.
        """
        chosen: dict[str, dict[str, float]] = {}
        steps: dict[str, dict[str, float]] = {}
        splits: list[dict[str, Any]] = []
        for k in range(1 if self.quick else SPLITS):
            rows = self._split(name, k)
            few = np.sort(np.concatenate([np.flatnonzero(rows.y == side)[:150] for side in (-1, 1)]))
            runs: dict[str, Any] = {}
            for method in methods_for(measure):
                fit, cap = partial(_fit, method=method, measure=measure), self._cap
                if k == 0:
                    fit(rows.X[few], rows.y[few], alpha=1e-4, cap=1.0)  # compiled before the clock starts
                    trials = self._trials(rows, measure, method, fit)
                    chosen[method] = max(trials, key=lambda pair: pair[1])[0]
                    steps |= {method: _by_step(trials)} if "eta" in chosen[method] else {}
                points, status = self._timed(rows, partial(fit, cap=cap, **chosen[method]))
                runs[method] = {"curve": [[t, *_reached(measure, w, rows)] for t, w in points], "status": status}
            splits.append(runs)
        positives = int(np.sum(rows.y > 0))
        return {
            "rows": int(rows.X.shape[0]),
            "positives": positives,
            "chosen": chosen,
            "steps": steps,
            "splits": splits,
        }

    def _trials(self, rows: Split, measure: str, method: str, fit: Any) -> list[tuple[dict[str, float], float]]:
        """Return choices of alpha and of the step, each with the measure of its model on a fifth of the training rows."""
        etas: tuple[float, ...] = ETAS if method == "1pmb" else STEPS if method in PRINTED.mine.values() else ()
        alphas = ALPHAS[:1] if self.quick else ALPHAS
        options = [{"alpha": alpha} for alpha in alphas]
        if etas:
            options = [own | {"eta": eta} for own in options for eta in (etas[1::2] if self.quick else etas)]
        if len(options) == 1:
            return [(options[0], math.nan)]
        X, X_out, y, y_out = train_test_split(rows.X, rows.y, test_size=0.2, stratify=rows.y, random_state=SEED)
        part = Split(X, y, X_out, y_out)
        tuned = method in PRINTED.tuned + DEFAULTS.tuned
        # Cutting planes at the smaller alpha are far from their end when others have long arrived.
        cap = (1.0 if METHODS[method].solver.startswith("bundle") else 0.2) * self._cap
        values = [_reached(measure, fit(X, y, cap=cap, **own)[0][-1][1], part)[0 if tuned else 1] for own in options]
        return list(zip(options, values, strict=True))

    def _timed(self, rows: Split, fit: Any) -> tuple[list[tuple[float, Any]], str]:
        """Return the points with the least seconds of each over repeats, and how the fit ended."""
        runs, begin = [fit(rows.X, rows.y)], time.perf_counter()
        while not self.quick and len(runs) < REPEATS and time.perf_counter() - begin < SHORT:
            runs.append(fit(rows.X, rows.y))
        points, status = runs[0]
        same = [other for other, _ in runs if len(other) == len(points)]  # the same coefficients, in other time
        return [(min(other[k][0] for other in same), w) for k, (_, w) in enumerate(points)], status

    def _draw(self, results: Mapping[str, Any], measure: str, figure: Any) -> None:
        """Draw the measure on test rows of the first split against seconds, two panels for each set."""
        names = [name for name in self._names if _key(name, measure) in results]
        figure.set_size_inches(8.4, 2.7 * len(names) + 0.4)
        axes = figure.subplots(len(names), 2, squeeze=False)
        for line, name in zip(axes, names, strict=True):
            for ax, protocol in zip(line, (PRINTED, DEFAULTS), strict=True):
                _panel(ax, results[_key(name, measure)], name, measure, protocol)
            line[0].set_ylabel(f"{TITLES[measure]}, test rows", color=MUTED)
        figure.suptitle(f"{TITLES[measure]} (figure {FIGURES[measure]}): as printed, and by defaults", fontsize=10)


class _Track:
    """A callback that keeps coefficients and the processor time since it was made, and ends a fit at the limit.

    Processor time, unlike the time of day, does not depend on what else the machine does. What the callback does itself does
    not count.
    """

    def __init__(self, how: Method, cap: float):
        self.points: list[tuple[float, Any]] = []
        self.watched, self.thin = how.watched, how.solver not in ("spade", "stamp")
        self.cap, self.late = cap, False
        self.next, self.paused, self.begin = 1, 0.0, time.process_time()

    def seconds(self) -> float:
        return time.process_time() - self.begin - self.paused

    def __call__(self, progress: Any) -> bool:
        seconds, since = self.seconds(), time.process_time()
        if self.watched and progress.iteration >= self.next:
            self.points.append((seconds, np.array(progress.w)))
            self.next = max(progress.iteration + 1, math.ceil(THINNING * progress.iteration) if self.thin else 0)
        self.paused += time.process_time() - since
        self.late = seconds >= self.cap
        return self.late


def _regret(sizes: Sequence[int], epochs: int, draws: int) -> dict[str, Any]:
    observed, distances = by_epoch(epochs, 4 * draws)  # all draws at once, which is cheap
    found = {solver: gaps(measure, sizes, draws) for measure, solver in SOLVERS.items()}
    return {"rows": list(sizes), **found, "epochs": observed, "algorithm 3": distances}


def regret_claims(found: Mapping[str, Any], full: bool) -> list[Claim]:
    """Return whether the distance to the optimum falls with the rows as theorems 4 and 9 say."""
    texts, slopes, reasons = {}, {}, {}
    for who, rows in (("spade", "rows"), ("algorithm 3", "epochs"), ("stamp", "rows")):
        half = len(found[rows]) // 2
        scaled = np.array(found[who][half:]) * np.sqrt(found[rows][half:])
        reasons[who] = f"there the distance times sqrt(T) lies between {scaled.min():.2g} and {scaled.max():.2g}"
        logs = np.log(found[rows][half:]), np.log(np.maximum(found[who][half:], 1e-12))
        slopes[who] = float(np.polyfit(*logs, 1)[0])
        texts[who] = f"exponent {slopes[who]:.2f} over the later half, {found[who][0]:.4f} to {found[who][-1]:.4f}"
    verdicts = {who: slope <= SLOWEST if full else None for who, slope in slopes.items()}
    return [
        Claim(
            "theorem 4: SPADE is within O(T^-1/2) of the optimum after T rows", "exponent -0.5", texts["spade"],
            verdicts["spade"], reasons["spade"] if verdicts["spade"] is False else "",
        ),
        Claim(
            "theorem 9: STAMP, algorithm 3, is within O(T^-1/2) of the optimum after T rows", "exponent -0.5",
            texts["algorithm 3"], verdicts["algorithm 3"],
            reasons["algorithm 3"] if verdicts["algorithm 3"] is False else "",
            f"{texts['stamp']}: the level is the measure of the predictions, as in the paper's experiments",
        ),
    ]  # fmt: skip


def _draw_regret(found: Mapping[str, Any], figure: Any) -> None:
    """Draw the distance to the optimum against rows."""
    figure.set_size_inches(5.2, 3.4)
    ax, rows = figure.subplots(), np.array(found["rows"], dtype=float)
    for who, places, colour, label in (
        ("spade", "rows", ABOVE, "SPADE, min(TPR, TNR)"),
        ("algorithm 3", "epochs", BELOW, "STAMP by epoch, F1, level of rewards"),
        ("stamp", "rows", MODELS[1], "STAMP, F1, level of predictions"),
    ):
        ax.plot(found[places], found[who], "o-", color=colour, linewidth=1.6, markersize=4, label=label)
    ax.plot(
        rows, found["spade"][0] * np.sqrt(rows[0] / rows), ":", color=MUTED, linewidth=1.0, label="falls as 1/sqrt(T)"
    )
    ax.set(xscale="log", yscale="log")
    ax.set_title("distance to the optimum of the rewards (theorems 4 and 9)", fontsize=9)
    ax.set_xlabel("rows T, one pass", color=MUTED)
    ax.grid(color="#dddddd", linewidth=0.5)
    ax.tick_params(labelsize=8)
    ax.legend(frameon=False, fontsize=8)


def methods_for(measure: str) -> list[str]:
    """Return the methods that train for a measure, the ones after every row first."""
    own = "spade" if measure in SPADE else "stamp"
    batch = [m for m in METHODS if METHODS[m].solver not in ("spade", "stamp")]
    left = {"1pmb"} if measure != "f1" else set()  # as in the paper
    left |= {"amp"} if measure in SPADE else set()
    return [f"{own}, printed", own, *(m for m in batch if m not in left)]


def _by_step(trials: Sequence[tuple[dict[str, float], float]]) -> dict[str, float]:
    """Return the best value by the factor of the steps."""
    found: dict[str, float] = {}
    for own, value in trials:
        key = f"{own['eta']:g}"
        found[key] = max(value, found.get(key, -math.inf))
    return found


def _fit(
    X: Any, y: Any, method: str, measure: str, cap: float, alpha: float, eta: float = 1.0
) -> tuple[list[tuple[float, Any]], str]:
    """Return (processor time, coefficients with the intercept last) on the way and at the end, and the status.

    Steps of eta / sqrt(t) in a ball |w| <= R are steps of 1 / sqrt(t) in a ball |w| <= R / sqrt(eta) for sqrt(eta) times the
    features, whose coefficients are those of the features divided by sqrt(eta).
    """
    how = METHODS[method]
    if how.solver == "1pmb":
        return one_pass_mini_batch(X, y, measure, alpha=alpha, eta=eta, passes=PASSES, cap=cap, seed=SEED)
    by_row, planes = how.solver in ("spade", "stamp"), how.solver.startswith("bundle")
    params: dict[str, Any] = ({"passes": PASSES} if by_row else {}) | how.options
    unit = math.sqrt(eta)
    rows = X if unit == 1.0 else X * unit
    model = MeasureClassifier(
        "accuracy" if how.solver == "lbfgs" else measure, solver=how.solver, alpha=alpha * eta, random_state=SEED,
        risk="contingency" if planes else "logistic" if how.solver == "lbfgs" else "auto",
        tol=CLOSE if how.solver == "lbfgs" else 1e-2,
        threshold="train" if by_row else "none",  # stamp looks at the threshold to choose its weights
        max_iter=10**6, intercept_scaling=unit,
    )  # fmt: skip
    track = _Track(how, cap)
    model.set_params(solver_params=params | {"callbacks": [track]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that ends at its limit says so in its status
        model.fit(rows, y)
    end = np.append(unit * model.coef_, model.trained_intercept_)
    points = [(seconds, unit * w) for seconds, w in track.points]
    if not points or not np.allclose(points[-1][1], end, rtol=1e-12, atol=0.0):
        points.append((track.seconds(), end))
    return points, "max_time" if track.late else model.status_


def _reached(measure: str, w: Any, rows: Split) -> tuple[float, float]:
    """Return the measure on the test rows with the best threshold on the training rows, and with none."""
    p = rows.X.shape[1]  # a risk without an intercept leaves no more coefficients than that
    z, z_test = (np.asarray(X @ w[:p] + w[p:].sum()) for X in (rows.X, rows.X_test))
    threshold = best_threshold(rows.y > 0, z, measure).threshold
    tuned, plain = (float(get_measure(measure).value(rows.y_test > 0, z_test - t)) for t in (threshold, 0.0))
    return tuned, plain


def seconds_at(curve: list[list[float]], level: float) -> float | None:
    """Return the seconds of the first point at the level, None if there is none."""
    return next((float(seconds) for seconds, value in curve if value >= level), None)


def compared(cell: Mapping[str, Any], protocol: Protocol) -> dict[str, Any]:
    """Return what one set and measure say by a protocol: ends, the best other method, seconds to 0.01 below it, and ratios.

    Ends are means over the splits, seconds medians (None: most of them never). `ratio` is the seconds of the quickest other
    method over ours, 0 where ours does not end there. `planes` is the same for cutting planes and a level of their own, 0.01
    below their end: their surrogate may lead elsewhere, and where w = 0 is its optimum (None) there is nothing to reach.
    `rivals` is how far ours ends above the better of plug-in and cutting planes.
    """
    splits = [_shown(runs, protocol) for runs in cell["splits"]]
    methods = list(splits[0])
    mine = next(own for own in protocol.mine.values() if own in methods)
    ends = {m: float(np.mean([curves[m][-1][1] for curves in splits])) for m in methods}
    best = max((m for m in methods if m != mine), key=lambda m: ends[m])
    seconds = {m: _middle([seconds_at(curves[m], curves[best][-1][1] - WITHIN) for curves in splits]) for m in methods}
    there = {
        m: _middle([seconds_at(curves[m], curves[protocol.planes][-1][1] - WITHIN) for curves in splits])
        for m in (mine, protocol.planes)
    }
    level, planes = ends[best] - WITHIN, ends[protocol.planes] - WITHIN
    others = [s for m, s in seconds.items() if m != mine and s is not None]
    flat = all(len({value for _, value in curves[protocol.planes]}) == 1 for curves in splits)
    return {
        "mine": mine, "ends": ends, "best": best, "level": level, "seconds": seconds, "within": ends[mine] >= level,
        "ahead": ends[mine] - ends[best], "rivals": ends[mine] - max(ends[protocol.plugin], ends[protocol.planes]),
        "ratio": _over(min(others), seconds[mine] if ends[mine] >= level else None) if others else None,
        "planes": None if flat else _over(there[protocol.planes] or 0.0, there[mine] if ends[mine] >= planes else None),
    }  # fmt: skip


def _shown(runs: Mapping[str, Any], protocol: Protocol) -> dict[str, list[list[float]]]:
    """Return the curves of the methods of a protocol: seconds, and the measure with or without a threshold of its own."""
    wanted = (*protocol.mine.values(), *protocol.others)
    return {
        method: [[point[0], point[1 if method in protocol.tuned else 2]] for point in runs[method]["curve"]]
        for method in wanted if method in runs
    }  # fmt: skip


def _middle(values: list[float | None]) -> float | None:
    """Return the median, None counting as never."""
    middle = float(np.median([math.inf if value is None else value for value in values]))
    return middle if math.isfinite(middle) else None


def uncut(cell: Mapping[str, Any]) -> float:
    """Return what logistic regression without a threshold of its own reaches, which the paper has for reference."""
    return float(np.mean([runs["plugin, lbfgs"]["curve"][-1][2] for runs in cell["splits"]]))


def _over(other: float, own: float | None) -> float:
    """Return the ratio of two times, 0 where ours is None."""
    return 0.0 if own is None else max(other, 1e-4) / max(own, 1e-4)


class _Group:
    """The cells of SPADE or of STAMP by one protocol."""

    def __init__(self, results: Mapping[str, Any], measures: Mapping[str, str], protocol: Protocol, only: bool):
        self.cells = {
            key: cell for key, cell in results.items() if _measure(key) in measures and (not only or _set(key) in SETS)
        }
        self.pairs = {key: compared(cell, protocol) for key, cell in self.cells.items()}

    def within(self) -> tuple[str, bool]:
        """Count cells that end within 0.01 of the best other method, or above it."""
        missed = [f"{key} {pair['ahead']:+.3f}" for key, pair in self.pairs.items() if not pair["within"]]
        good, n = len(self.pairs) - len(missed), len(self.pairs)
        return f"{good} of {n}" + (f", not {'; '.join(missed)}" if missed else ""), bool(n) and good >= MOST * n

    def faster(self, column: str, least: float) -> tuple[str, bool]:
        """Return the median of ratios of seconds."""
        ratios = [pair[column] for pair in self.pairs.values() if pair[column] is not None]
        if not ratios:
            return "-", False
        middle = float(np.median(ratios))
        never = f"it does not end there on {ratios.count(0.0)}, " if 0.0 in ratios else ""
        often = f"at least {least:g} on {sum(ratio >= least for ratio in ratios)} of {len(ratios)}"
        return f"median {_ratio(middle)}, {never}{often}", middle >= least

    def most(self, name: str) -> tuple[str, bool]:
        """Return the largest ratio on a set."""
        ratios = [pair["ratio"] or 0.0 for key, pair in self.pairs.items() if _set(key) == name]
        return (f"{_ratio(max(ratios))} times", max(ratios) >= 60.0) if ratios else ("-", False)

    def ahead(self, names: tuple[str, ...], least: float) -> tuple[str, bool]:
        """Return by how much it ends above plug-in and cutting planes."""
        values = {key: pair["rivals"] for key, pair in self.pairs.items() if _set(key) in names}
        text = ", ".join(f"{key} {value:+.3f}" for key, value in values.items())
        return text or "-", bool(values) and all(v >= least for v in values.values())

    def below(self, first: str, second: str, margin: float = 0.0) -> tuple[str, bool]:
        """Count cells in which one method ends below another one, by more than the margin."""
        pairs = {key: pair["ends"] for key, pair in self.pairs.items() if {first, second} <= set(pair["ends"])}
        good = [key for key, ends in pairs.items() if ends[first] < ends[second] - margin]
        left = [f"{key} {pairs[key][first] - pairs[key][second]:+.3f}" for key in pairs if key not in good]
        text = f"{len(good)} of {len(pairs)}" + (f", not {'; '.join(left)}" if left else "")
        return text, bool(pairs) and len(good) > 0.5 * len(pairs)


def claims(results: Mapping[str, Any], full: bool) -> list[Claim]:
    """Return what the results say about the paper's claims; `full` is False for small problems.

    Verdicts are about the sets of the paper, with its methods; beside them stand all sets with the defaults of this library.
    """
    groups = {
        (who, which): _Group(results, measures, protocol, which == "printed")
        for who, measures in (("SPADE", SPADE), ("STAMP", STAMP))
        for which, protocol in (("printed", PRINTED), ("defaults", DEFAULTS))
    }  # fmt: skip

    def made(text: str, paper: str, who: str, judge: Callable[[_Group], tuple[str, bool]], reason: str) -> Claim:
        (found, holds), (paired_rows, _) = (judge(groups[who, which]) for which in ("printed", "defaults"))
        there = bool(groups[who, "printed"].pairs) and found != "-"
        verdict = holds if there and full else None
        return Claim(text, paper, found if there else "-", verdict, reason if verdict is False else "", paired_rows)

    step = "with the best of five step lengths (see the table of steps), which the paper does not print"
    late = f"with at most {NONZEROS:,} training non-zeros; the table of seconds has every method"
    poor = {key: uncut(cell) for key, cell in groups["SPADE", "printed"].cells.items()}
    poor_ends = {key: max(pair["ends"].values()) for key, pair in groups["SPADE", "printed"].pairs.items()}
    very = {key: value < poor_ends[key] - 0.05 for key, value in poor.items()}
    mini, proved = groups["STAMP", "printed"], groups["STAMP", "defaults"]
    struggles = {
        key: pair["ends"]["1pmb"] < pair["ends"][pair["mine"]] - WITHIN
        or (pair["seconds"]["1pmb"] or math.inf) > 2.0 * (pair["seconds"][pair["mine"]] or math.inf)
        for key, pair in mini.pairs.items() if "1pmb" in pair["ends"]
    }  # fmt: skip
    behind = [key for key, holds in struggles.items() if not holds]
    amp, amp_default = (
        _compared_with_amp(group.cells, who) for group, who in ((mini, "stamp, printed"), (proved, "stamp"))
    )
    own = ", ".join(
        f"{key} {pair['ends']['1pmb']:.3f} against {pair['ends'][pair['mine']]:.3f}"
        for key, pair in mini.pairs.items() if key in struggles
    )  # fmt: skip
    return [
        made(f"SPADE ends within {WITHIN:g} of the best batch method, or above it", "in general", "SPADE", _Group.within, step),
        made(f"STAMP ends within {WITHIN:g} of the best batch method, or above it", "in general", "STAMP", _Group.within, step),
        made(
            "SPADE ends above plug-in and cutting planes on IJCNN and Covtype", "0.02 to 0.03", "SPADE",
            lambda group: group.ahead(("ijcnn1", COTTONWOOD), 0.02), "the better of the two comes nearer here",
        ),
        made(
            "SPADE: seconds of the quickest other method over its own", "3 to 4", "SPADE",
            lambda group: group.faster("ratio", 3.0), late,
        ),
        made(
            "SPADE finds the best solution on MNIST faster than any other method", "as much as 60 times", "SPADE",
            lambda group: group.most("mnist"), late,
        ),
        made(
            "STAMP: seconds of the quickest other method over its own", "at least 3 to 4", "STAMP",
            lambda group: group.faster("ratio", 3.0), step,
        ),
        made(
            f"SPADE: seconds of cutting planes to {WITHIN:g} below their end over its own to there", "at least 10", "SPADE",
            lambda group: group.faster("planes", 10.0), step,
        ),
        made(
            f"STAMP: seconds of cutting planes to {WITHIN:g} below their end over its own to there", "at least 3 to 4", "STAMP",
            lambda group: group.faster("planes", 3.0), step,
        ),
        made(
            "cutting planes end below plug-in for F1 and Jaccard", "in several works", "STAMP",
            lambda group: group.below(*(("bundle", "plugin, lbfgs") if group is mini else ("bundle_ocas", "plugin"))),
            "the surrogate is better than its reputation there",
        ),
        Claim(
            "1PMB ends below STAMP for F1, or is much slower", "struggles", own or "-",
            not behind if struggles and full else None,
            f"within {WITHIN:g} of STAMP's end in less than twice its time on {', '.join(behind)}" if behind else "",
        ),
        Claim(
            f"STAMP ends where AMP does, less {WITHIN:g}, or above it (theorem 9)", "proved for enough rows",
            f"{amp[0]}, both with the best threshold", amp[1] if mini.cells and full else None, "" if amp[1] else amp[2],
            amp_default[0] + (f", not {amp_default[2]}" if amp_default[2] else ""),
        ),
        Claim(
            "simple binary classification (logistic regression without a threshold) is very poor: 0.05 below the best",
            "in all cases", ", ".join(f"{key} {value:.3f} ({poor_ends[key]:.3f})" for key, value in poor.items()) or "-",
            all(very.values()) if very and full else None,
            "; ".join(f"not {key}" for key, holds in very.items() if not holds),
        ),
    ]  # fmt: skip


def _compared_with_amp(cells: Mapping[str, Any], method: str) -> tuple[str, bool, str]:
    """Count cells in which a method ends within 0.01 of AMP or above it, both with a threshold; name the others."""
    gaps = {
        key: float(np.mean([runs[method]["curve"][-1][1] - runs["amp"]["curve"][-1][1] for runs in cell["splits"]]))
        for key, cell in cells.items()
    }  # fmt: skip
    missed = [f"{key} {gap:+.3f}" for key, gap in gaps.items() if gap < -WITHIN]
    good = len(gaps) - len(missed)
    return f"{good} of {len(gaps)}", bool(gaps) and good >= MOST * len(gaps), "; ".join(missed)


def _ends(results: Mapping[str, Any], tuned: bool) -> Table:
    rows = []
    for key, cell in results.items():
        cells = []
        for method in METHODS:
            runs = [split[method] for split in cell["splits"] if method in split]
            values = [run["curve"][-1][1 if tuned else 2] for run in runs]
            late = any(run["status"] == "max_time" for run in runs)
            cells.append(f"{np.mean(values):.4f}" + (" (limit)" if late else "") if values else "-")
        rows.append((key, FIGURES[_measure(key)], _share(cell), str(len(cell["splits"])), *cells))
    head = ("data, measure", "figure", "positive", "splits", *METHODS)
    if tuned:
        note = "Plug-in is judged by this table as printed, and all methods of the library's defaults."
    else:
        note = (
            "SPADE, STAMP, cutting planes and 1PMB are judged by this table as printed: the paper gives a threshold to plug-in "
            'methods alone. "plugin, lbfgs" here is plain logistic regression.'
        )
    note += (
        ' "Printed" has steps of c / sqrt(t), and for STAMP the weights of the level. "plugin, lbfgs" is logistic regression '
        f"to a relative gap of {CLOSE:g}. Every method has at most 3 s of processor time (limit). Alpha is 1e-4 or 1e-6. "
        "It and c are chosen on a fifth of the training rows of the first split. There cutting planes have 3 s for each "
        "choice, and every other method has 0.6 s. Splits are random, with 70 % of the rows for training, or as many of "
        f"them as have {NONZEROS:,} non-zeros, for sets outside the paper {NONZEROS // 2:,}. The paper prints no tables."
    )
    return Table(
        f"The measure that is reached, {'with the best' if tuned else 'without a'} threshold", head, rows, note
    )


def _steps(results: Mapping[str, Any]) -> Table:
    names = [f"{eta:g}" for eta in sorted({*STEPS, *ETAS})]
    rows = [
        (key, method, *(f"{found[name]:.4f}" if name in found else "-" for name in names))
        for key, cell in results.items() for method, found in cell["steps"].items()
    ]  # fmt: skip
    note = (
        "The measure on held-out training rows by c, with the better alpha. Theorem 4 has c = 1. In its experiments the paper "
        "cross-validated parameters, without saying which and among which values. The largest value of a line is what the "
        "other tables have. Those of 1PMB are c / sqrt(number of the buffer)."
    )
    return Table("The steps c / sqrt(t)", ("data, measure", "method", *(f"c = {name}" for name in names)), rows, note)


def _times(results: Mapping[str, Any]) -> Table:
    rows = []
    for key, cell in results.items():
        for title, protocol in (("printed", PRINTED), ("defaults", DEFAULTS)):
            pair = compared(cell, protocol)
            texts = [f"{m} {_seconds(pair, m)}" for m in pair["seconds"] if m != pair["mine"]]
            rows.append((
                key, title, f"{pair['level']:.4f}", _seconds(pair, pair["mine"]), ", ".join(texts), _ratio(pair["ratio"]),
                _ratio(pair["planes"]), _text_of(key),
            ))  # fmt: skip
    head = (
        "data, measure", "methods", "level", "spade or stamp, s", "others, s", "quickest other / ours",
        "cutting planes / ours, to their end", "paper: other / ours",
    )  # fmt: skip
    note = (
        f"Seconds of processor time until the measure on test rows first is at most {WITHIN:g} below the best end of another "
        "method (* and ends further below); medians over splits. Cutting planes / ours: the same at 0.01 below their end. 0: "
        "ours does not end there; -: they stay at w = 0, or no other method arrives. Plug-in by L-BFGS, amp and cost_search "
        f"show themselves at their end alone, and count with their whole fit. Default steps fade over {PASSES} passes: a point "
        "on the way is not what fewer passes give."
    )
    return Table(f"Figures 1 to 4: seconds to within {WITHIN:g} of the best other method", head, rows, note)


def _panel(ax: Any, cell: Mapping[str, Any], name: str, measure: str, protocol: Protocol) -> None:
    """Draw the curves of one set; what lies far below the ends is cut off."""
    curves = _shown(cell["splits"][0], protocol)
    ends = [curve[-1][1] for curve in curves.values()]
    every = [value for curve in curves.values() for _, value in curve]
    spread = max(max(every) - min(ends), 3.0 * WITHIN)
    ax.set_ylim(max(min(every), max(every) - 3.0 * spread) - 0.05 * spread, max(every) + 0.1 * spread)
    for method, curve in curves.items():
        own = METHODS[method].solver in ("spade", "stamp")
        seconds, values = np.array(curve, dtype=float).T
        ax.plot(
            np.maximum(seconds, 1e-4), values, color=METHODS[method].colour, linewidth=2.0 if own else 1.4,
            marker=METHODS[method].marker, markersize=5, markevery=[0, len(values) - 1], label=method, zorder=5 if own else 3,
        )  # fmt: skip
    _log_seconds(ax, [seconds for curve in curves.values() for seconds, _ in curve])
    ax.set_title(f"{name}: {cell['rows']:,} rows, {_share(cell)} positive", fontsize=9)
    ax.set_xlabel("seconds", color=MUTED)
    ax.grid(color="#dddddd", linewidth=0.5)
    ax.tick_params(labelsize=8)
    ax.legend(frameon=False, fontsize=7)


def _log_seconds(ax: Any, shown: list[float]) -> None:
    """Make the axis of seconds logarithmic, with plain numbers: also 2 and 5 where it is short."""
    low, high = max(min(shown), 1e-4) / 1.3, max(shown) * 1.3
    digits = (1.0, 2.0, 5.0) if high < 60.0 * low else (1.0,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)


def _key(name: str, measure: str) -> str:
    return f"{name}, {measure}"


def _measure(key: str) -> str:
    return key.rsplit(", ", 1)[1]


def _set(key: str) -> str:
    return key.rsplit(", ", 1)[0]


def _text_of(key: str) -> str:
    """Return the paper's ratio of times for a set and measure."""
    name, measure = key.rsplit(", ", 1)
    if name not in SETS or FIGURES[measure] == "-":
        return "-"
    return "up to 60" if name == "mnist" and measure in SPADE else "3 to 4"


def _share(cell: Mapping[str, Any]) -> str:
    return f"{100 * cell['positives'] / cell['rows']:.2g} %"


def _seconds(pair: Mapping[str, Any], method: str) -> str:
    """Return the seconds to the level as text, with a star where the method ends below it again."""
    if method not in pair["seconds"]:
        return "-"
    seconds = pair["seconds"][method]
    return "never" if seconds is None else f"{seconds:.3g}" + ("" if pair["ends"][method] >= pair["level"] else "*")


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2g}" if ratio < 10.0 else f"{ratio:.0f}"
