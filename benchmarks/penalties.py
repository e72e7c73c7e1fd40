"""Sparse and sign-constrained models to a proved 1e-3: time, compared with rivals; and whether a sparse model pays.

    SCORELINE_DATA=folder python benchmarks/penalties.py [--sets sector,hiva] [--cap 200] [--limit 500] [--out FILE.jsonl]
    SCORELINE_DATA=folder python benchmarks/penalties.py --pay [--splits 10] ...
    python benchmarks/penalties.py [--pay] --join FILE.jsonl [--table FILE.md]

Objectives are equal: alpha |w|_1 + mean log loss without an intercept, or alpha / 2 |w|^2 + mean log loss with w >= 0. A
rival is run again and again with smaller tolerances, or with more iterations (saga), and its time is that of the first run
whose J is within 1e-3 of our lower bound. Our time is that of one run, with the proof. Times are those of the processor, on
one thread, so that other work on the machine does not count. A rival that does not arrive within `--cap` seconds counts as
that. Each rival is measured beside our fit in one process. Celer, skglm and glum are optional. No rival minimises the ROC
area with absolute values: its line is ours alone.

With --pay, `MeasureClassifierCV("roc_auc")` chooses alpha under l2, and alpha with `l1_ratio` under the elastic net, on
stratified splits with 30 % test rows.
"""

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import cells
from common import header
from scoreline import MeasureClassifier, MeasureClassifierCV
from tuned_threshold import load

SETS = ("hiva", "reuters-mfx", "farm-ads", "sector", "mnist")
PAY_SETS = "hiva reuters-mfx page-blocks0 german.numer pcmac campaign adult-raw sylva farm-ads sector".split()
ALPHAS, WITHIN, CAP = (1e-3, 1e-4), 1e-3, 200.0
LIMIT = 300.0  # seconds of our fit, of the clock
TOLS = [10.0**-k for k in range(2, 9)]
EPOCHS = (10, 30, 100, 300, 1000, 3000, 10000)
RATIOS, MOST_ROWS = [0.5, 0.9, 1.0], 10_000
OPTIONAL = ("celer", "skglm", "glum")
TOO_WIDE_FOR_GLUM = ("farm-ads", "sector")  # a dense matrix of 55,000 features by 55,000 takes 24 GB


def log_loss(X, y, w):
    """Return the mean log loss of labels +1 and -1."""
    return float(np.logaddexp(0.0, -y * (X @ w)).mean())


def liblinear(X, y, alpha):
    """Yield what fits the lasso by scikit-learn's LIBLINEAR, more exactly every time."""
    for tol in TOLS:
        model = LogisticRegression(
            l1_ratio=1.0, solver="liblinear", C=1.0 / (len(y) * alpha), tol=tol, max_iter=10_000, fit_intercept=False,
            random_state=0,
        )  # fmt: skip
        yield lambda model=model: model.fit(X, y).coef_[0]


def saga(X, y, alpha):
    """Yield what fits the lasso by scikit-learn's saga, with more epochs every time."""
    for epochs in EPOCHS:
        model = LogisticRegression(
            l1_ratio=1.0, solver="saga", C=1.0 / (len(y) * alpha), tol=1e-12, max_iter=epochs, fit_intercept=False,
            random_state=0,
        )  # fmt: skip
        yield lambda model=model: model.fit(X, y).coef_[0]


def celer(X, y, alpha):
    """Yield what fits the lasso by Celer."""
    from celer import LogisticRegression as Celer

    columns = X.tocsc()
    for tol in TOLS:
        model = Celer(C=1.0 / (len(y) * alpha), tol=tol, max_iter=200, max_epochs=50_000)
        yield lambda model=model: model.fit(columns, y).coef_[0]


def skglm(X, y, alpha):
    """Yield what fits the lasso by skglm."""
    from skglm import SparseLogisticRegression

    columns = X.tocsc()
    for tol in TOLS:
        model = SparseLogisticRegression(alpha=alpha, tol=tol, fit_intercept=False, max_iter=200)
        yield lambda model=model: model.fit(columns, y).coef_[0]


def lbfgs_b(X, y, alpha):
    """Yield what fits w >= 0 by SciPy's L-BFGS-B."""
    p, start = X.shape[1], np.zeros(X.shape[1])

    def value(w):
        z = y * (X @ w)
        slope = -y * np.exp(-np.logaddexp(0.0, z)) / len(y)
        return np.logaddexp(0.0, -z).mean() + 0.5 * alpha * w @ w, X.T @ slope + alpha * w

    for tol in TOLS:
        options = {"gtol": 1e-2 * tol, "ftol": 0.0, "maxiter": 5000, "maxfun": 10_000}
        yield (
            lambda options=options: (
                minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * p, options=options).x
            )
        )


def glum(X, y, alpha):
    """Yield what fits w >= 0 by glum."""
    from glum import GeneralizedLinearRegressor

    columns, zero = X.tocsc(), np.zeros(X.shape[1])
    for tol in TOLS:
        model = GeneralizedLinearRegressor(
            family="binomial", link="logit", alpha=alpha, l1_ratio=0.0, lower_bounds=zero, fit_intercept=False,
            gradient_tol=1e-2 * tol, max_iter=1000, solver="irls-cd",
        )  # fmt: skip
        yield lambda model=model: model.fit(columns, (y > 0).astype(float)).coef_


LASSO = {"penalty": "elastic_net", "penalty_params": {"l1_ratio": 1.0}}
PROBLEMS = {
    "sparse logistic": ({"measure": "accuracy", "risk": "logistic", **LASSO}, (liblinear, saga, celer, skglm)),
    "w >= 0, logistic": ({"measure": "accuracy", "risk": "logistic", "bounds": (0.0, None)}, (lbfgs_b, glum)),
    "sparse AUC": ({"measure": "roc_auc", **LASSO}, ()),
}
RIVALS = {rival.__name__: rival for _, rivals in PROBLEMS.values() for rival in rivals}


def prepare(rival):
    """Compile the kernels of both sides once in every process."""
    rng = np.random.default_rng(0)
    X, y = np.abs(rng.standard_normal((300, 5))), np.where(np.arange(300) % 3, 1.0, -1.0)
    from scipy.sparse import csr_matrix

    for options, _ in PROBLEMS.values():
        for rows in (X, csr_matrix(np.tile(X, (1, 300)))):
            MeasureClassifier(**options, alpha=1e-3).fit(rows, y)
    if rival is not None:
        for fit in list(RIVALS[rival](csr_matrix(X), y, 1e-2))[:2]:
            fit()


def timed(call):
    """Return what a call gives, and the seconds of the processor that it took."""
    begin = time.process_time()
    found = call()
    return found, time.process_time() - begin


def time_to_proof(cell):
    """Return our fit and the first run of the rival that arrives."""
    name, problem, alpha, rival, cap = cell
    warnings.simplefilter("ignore")
    X, y = cells.DATA[name]
    y = np.where(y > 0, 1.0, -1.0)
    options = PROBLEMS[problem][0]
    prepare(rival)
    runs = []
    for _ in range(3):
        clf, seconds = timed(
            lambda: MeasureClassifier(
                **options, alpha=alpha, tol=WITHIN, fit_intercept=False, threshold="none", max_time=LIMIT
            ).fit(X, y)
        )
        runs.append(seconds)
        if seconds > 20.0:
            break
    found = {
        "shape": X.shape, "seconds": min(runs), "status": clf.status_, "gap": clf.gap_ / clf.objective_,
        "features": int(np.count_nonzero(clf.coef_)), "passes": clf.n_passes_,
    }  # fmt: skip
    if rival is None:
        return found
    target = clf.lower_bound_ * (1.0 + WITHIN)
    bounded, spent = "bounds" in options, 0.0
    for fit in RIVALS[rival](X, y, alpha):
        w, seconds = timed(fit)
        w = np.maximum(w, 0.0) if bounded else w
        penalty = 0.5 * alpha * w @ w if bounded else alpha * np.abs(w).sum()
        spent += seconds
        if log_loss(X, y, w) + penalty <= target:
            again, first = seconds, seconds
            if first < 5.0:
                again = min(timed(fit)[1] for _ in range(2))
            return found | {"rival": min(first, again)}
        if spent > cap:
            break
    return found | {"rival": None, "spent": spent}


def pays(cell):
    """Return test AUC, number of features and seconds of l2 and of the elastic net, alphas chosen by cross-validation."""
    name, split = cell
    warnings.simplefilter("ignore")
    X, y = cells.DATA[name]
    rows = min(MOST_ROWS, len(y))
    keep = np.random.default_rng(split).permutation(len(y))[:rows]
    X_train, X_test, y_train, y_test = train_test_split(
        X[keep], y[keep], test_size=0.3, random_state=split, stratify=y[keep]
    )
    found = {}
    for title, options in (("l2", {}), ("elastic_net", {"penalty": "elastic_net", "l1_ratios": RATIOS})):
        clf, seconds = timed(
            lambda options=options: MeasureClassifierCV("roc_auc", cv=3, random_state=0, **options).fit(
                X_train, y_train
            )
        )
        found[title] = (clf.score(X_test, y_test), int(np.count_nonzero(clf.coef_)), seconds)
    return found


def shown(seconds):
    return "not reached" if seconds is None else f"{seconds:.2f}"


def table(found, sets):
    """Return the lines of the table of times: one per set, problem and alpha."""
    rivals = [rival for rival in RIVALS if any(each["cell"][3] == rival for each in found)]
    lines = [
        f"| data | shape | problem | alpha | status | scoreline | {' | '.join(rivals)} | gap | features | passes |",
        "|---" * (9 + len(rivals)) + "|",
    ]
    ratios = {rival: {} for rival in rivals}
    for name in sets:
        for problem in PROBLEMS:
            for alpha in ALPHAS:
                own = [e for e in found if e["cell"][:3] == [name, problem, alpha] and e["found"]]
                if not own:
                    continue
                one, times = own[0]["found"], {}
                for each in own:
                    rival, its = each["cell"][3], each["found"]
                    if rival is not None:
                        times[rival] = (
                            f"{shown(its['rival'])} ({(its['rival'] or each['cell'][4]) / its['seconds']:.1f})"
                        )
                        ratios[rival].setdefault(problem, []).append((its["rival"] or each["cell"][4]) / its["seconds"])
                seconds = np.median([each["found"]["seconds"] for each in own])
                cells_ = " | ".join(times.get(rival, "") for rival in rivals)
                lines.append(
                    f"| {name} | {one['shape'][0]} x {one['shape'][1]} | {problem} | {alpha:g} | {one['status']} | "
                    f"{seconds:.3f} | {cells_} | {one['gap']:.1e} | {one['features']} | {one['passes']:.0f} |"
                )
    lines.append("")
    for rival, per_problem in ratios.items():
        for problem, every in per_problem.items():
            mean = np.exp(np.mean(np.log(every)))
            lines.append(
                f"- {problem}, {rival}: the geometric mean of its time over ours is {mean:.2f} (least {min(every):.2f}, "
                f"largest {max(every):.2f}, {len(every)} problems; the cap where it does not arrive)."
            )
    return lines


def pay_table(found, sets):
    """Return the lines of the table of test AUC and features."""
    lines = [
        "| data | splits | AUC l2 | AUC elastic net | difference | features l2 | features elastic net | seconds of both |",
        "|---|---|---|---|---|---|---|---|",
    ]
    means = []
    for name in sets:
        own = [each["found"] for each in found if each["cell"][0] == name and each["found"]]
        if len(own) < 2:
            continue
        plain, net = (np.array([each[title] for each in own]) for title in ("l2", "elastic_net"))
        gains = net[:, 0] - plain[:, 0]
        means.append(gains.mean())
        lines.append(
            f"| {name} | {len(own)} | {plain[:, 0].mean():.4f} | {net[:, 0].mean():.4f} | {gains.mean():+.4f} ± "
            f"{1.96 * gains.std(ddof=1) / np.sqrt(len(own)):.4f} | {np.median(plain[:, 1]):.0f} | "
            f"{np.median(net[:, 1]):.0f} | {plain[:, 2].mean():.2f}, {net[:, 2].mean():.2f} |"
        )
    if len(means) > 1:
        spread = 1.96 * np.std(means, ddof=1) / np.sqrt(len(means))
        lines += ["", f"Mean difference over {len(means)} sets: {np.mean(means):+.4f} ± {spread:.4f}."]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=None)
    parser.add_argument("--pay", action="store_true", help="test AUC and features of l2 and of the elastic net")
    parser.add_argument("--cap", type=float, default=CAP, help="seconds of the processor that a rival may take")
    parser.add_argument("--rivals", default=None, help="only cells of these")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--table", type=Path, default=None, help="write the table to this file")
    cells.add_options(parser, "penalties")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = options.sets.split(",") if options.sets else (PAY_SETS if options.pay else SETS)
    missing = [name for name in OPTIONAL if find_spec(name) is None]
    if options.pay:
        wanted = [[name, split] for split in range(options.splits) for name in sets]
        found = cells.run(options, wanted, pays, load, list(sets))
        lines = pay_table(found, sets)
    else:
        wanted = [
            [name, problem, alpha, rival, options.cap]
            for alpha in ALPHAS
            for problem, (_, rivals) in PROBLEMS.items()
            for name in sets
            for rival in ([each.__name__ for each in rivals if each.__name__ not in missing] or [None])
            if not (rival == "glum" and name in TOO_WIDE_FOR_GLUM)
            and (options.rivals is None or rival in options.rivals.split(","))
        ]
        wanted.sort(key=lambda cell: (cell[3] == "saga", cell[0] == "mnist"))  # the slowest last
        found = cells.run(options, wanted, time_to_proof, load, list(sets))
        lines = table(found, sets)
    text = [
        "# Sparse and sign-constrained models" if not options.pay else "# Does a sparse model pay?",
        "",
        "`python benchmarks/penalties.py" + (" --pay`: " if options.pay else "`: ")
        + (
            "test AUC, alpha (and l1_ratio) chosen by three folds, at most 10,000 rows."
            if options.pay
            else "seconds of the processor to within 1e-3 of the optimum on one thread, in brackets the rival's over ours."
        ),
        "Columns are divided by max|x|; at most 50,000 rows.",
        "",
        *(f"- {key}: {value}" for key, value in header().items()),
        *(f"- {each['cell']}: {each['error']}" for each in found if "error" in each),
        "",
        *lines,
    ]  # fmt: skip
    print("\n".join(text))
    if options.table:
        options.table.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
