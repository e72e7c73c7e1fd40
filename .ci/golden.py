"""Compare what two versions of the source compute, bit for bit: models, histories, and transcripts of the command line.

    python .ci/golden.py record FILE          write the record of the source on PYTHONPATH
    python .ci/golden.py compare FILE         record again, and print every difference; exit 1 if there is one
    python .ci/golden.py since COMMIT         record COMMIT in a worktree of its own, then compare the files here with it

A refactoring changes nothing here. Times are left out. Bits are those of one machine: a record is not kept in the repository.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.remove(str(Path(__file__).parent))  # where coverage.py is not the package that Numba looks for

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
ATTRIBUTES = (
    "coef_", "intercept_", "trained_intercept_", "n_passes_", "n_iter_", "status_", "solver_", "risk_", "objective_",
    "lower_bound_", "gap_", "cost_", "rejected_", "levels_", "level_bound_", "calibration_", "calibration_range_",
    "calibration_gain_", "moments_report_", "promise_", "l1_ratio_", "threshold_rank_error_", "classes_", "alpha_",
    "best_score_", "best_index_",
)  # fmt: skip
PENALTIES = {
    "elastic_net": {},
    "elastic_net lasso": {"penalty_params": {"l1_ratio": 1.0}},
    "group": {"penalty_params": {"groups": [[0, 1], [2], [3, 4]]}},
    "l2 weights": {"penalty_params": {"weights": [1.0, 0.5, 2.0, 1.0, 1.0]}},
    "l2 bounds": {"bounds": (0.0, 0.5)},
}


def table(n=160, p=5, seed=0):
    """Return a small table with a quarter of positives, tied values and a column of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 2] = np.round(X[:, 2])
    X[:, 3] *= rng.random(n) < 0.4
    X[:, -1] = 0.0
    y = X[:, 0] - 0.5 * X[:, 1] + 0.3 * X[:, 3] + 0.7 * rng.standard_normal(n) > 0.8
    return X, y.astype(int)


def plain(value):
    """Return a value as JSON: floats by their bits, arrays as lists."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (int, str)) else str(value)


def fitted(clf):
    """Return the fitted attributes and the history without times."""
    found = {name: plain(getattr(clf, name)) for name in ATTRIBUTES if hasattr(clf, name)}
    history = dict(getattr(clf, "history_", {}))
    history.pop("seconds", None)
    found["history_"] = hashlib.sha256(json.dumps(plain(history)).encode()).hexdigest()[:16]
    table = getattr(clf, "cv_results_", {})
    found["cv_results_"] = plain({name: values for name, values in table.items() if "time" not in name})
    return found


def outcome(make):
    """Return what a fit gives: attributes and warnings, or its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = fitted(make())
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
    found["warnings"] = sorted(f"{w.category.__name__}: {w.message}" for w in caught)
    return found


def cases():
    """Yield (name, function that returns a fitted classifier)."""
    from scoreline import CountMeasure, MeasureClassifier, MeasureClassifierCV, list_measures, list_solvers
    from scoreline.solvers import EarlyStopping

    X, y = table()
    weight = np.arange(len(y)) % 3 + 1.0
    risks_of = {info.name: info.risks for info in list_measures()}

    def fit(X=X, y=y, sample_weight=None, kind=MeasureClassifier, **params):
        params = {"random_state": 0, "max_iter": 60} | ({"alpha": 1e-2} if kind is MeasureClassifier else {}) | params
        return lambda: kind(**params).fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))

    names = ("roc_auc", "f1", "average_precision", "prbep", "precision_at_k", "accuracy", "gmean", "recall_at_precision",
             "partial_roc_auc")  # fmt: skip
    for solver in list_solvers():
        for risk in solver.risks:
            for measure in [m for m in names if m in solver.measures and risk in risks_of[m]][:2]:
                yield f"{solver.name} {risk} {measure}", fit(measure=measure, solver=solver.name, risk=risk)
    for measure in risks_of:
        yield f"auto {measure}", fit(measure=measure)
        yield f"auto {measure} weighted", fit(sample_weight=weight, measure=measure, scaling="standard")
    few = {"roc_auc": {}, "f1": {}, "accuracy": {}, "prbep": {}}
    X32, sparse = X.astype(np.float32), sp.csr_array(X)
    gaps = np.where(np.random.default_rng(5).random(X.shape) < 0.1, np.nan, X)
    for measure in few:
        yield f"float32 {measure}", fit(X32, measure=measure)
        yield f"csr {measure}", fit(sparse, measure=measure)
        yield (
            f"csr int64 {measure}",
            fit(
                sp.csr_array(
                    (sparse.data, sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)), shape=X.shape
                ),
                measure=measure,
            ),
        )
        yield f"fortran {measure}", fit(np.asfortranarray(X), measure=measure)
        for scaling in ("maxabs", "standard", "robust", "quantile"):
            yield f"{scaling} {measure}", fit(measure=measure, scaling=scaling)
            yield f"{scaling} csr {measure}", fit(sparse, measure=measure, scaling=scaling)
        for rule in ("train", "holdout", "none"):
            yield f"cut {rule} {measure}", fit(measure=measure, threshold=rule)
        yield f"balanced {measure}", fit(measure=measure, class_weight="balanced")
        yield f"classes {measure}", fit(measure=measure, class_weight={0: 1.0, 1: 3.0})
        yield f"no intercept {measure}", fit(measure=measure, fit_intercept=False)
        yield f"probability {measure}", fit(measure=measure, probability=True)
        yield f"text labels {measure}", fit(y=np.where(y > 0, "yes", "no"), measure=measure)
        yield f"tight {measure}", fit(measure=measure, tol=1e-6, max_iter=300)
        yield f"weak {measure}", fit(measure=measure, alpha=1e-6)
        yield f"CV {measure}", fit(kind=MeasureClassifierCV, measure=measure, cv=3)
        yield f"CV weighted {measure}", fit(kind=MeasureClassifierCV, measure=measure, cv=3, sample_weight=weight)
        stop = {"early_stopping": EarlyStopping((X[:60], y[:60]), patience=3)}
        yield f"stop {measure}", fit(measure=measure, solver_params=stop, probability=True)
        yield f"stop share {measure}", fit(measure=measure, solver_params={"early_stopping": 0.2})
        yield f"moments start {measure}", fit(measure=measure, solver_params={"init": "moments"})
        yield f"one feature {measure}", fit(X[:, :1], measure=measure)
        yield f"more rows {measure}", fit(*table(1200, 5, 3), measure=measure)
        yield f"more features {measure}", fit(*table(90, 40, 4), measure=measure, probability=True)
        yield f"time {measure}", fit(measure=measure, max_iter=1)
        for penalty, params in PENALTIES.items():
            yield f"{penalty} {measure}", fit(measure=measure, penalty=penalty.split()[0], **params)
        for features in ("additive", "pairs"):
            yield f"{features} {measure}", fit(gaps, measure=measure, features=features, alpha=0.1)
        yield f"monotone {measure}", fit(gaps, measure=measure, features="additive", monotone={0: 1, 1: -1}, alpha=0.1)
        yield f"CV elastic net {measure}", fit(kind=MeasureClassifierCV, measure=measure, penalty="elastic_net", cv=3)
        yield f"CV features {measure}", fit(kind=MeasureClassifierCV, measure=measure, features="auto", cv=3)
        yield (
            f"base scores {measure}",
            lambda measure=measure: MeasureClassifier(measure, alpha=1e-2).fit(X, y, base_scores=X[:, 1]),
        )
    many = table(1500, 5, 6)
    for measure, target in (
        ("recall_at_precision", "precision"),
        ("precision_at_recall", "recall"),
        ("tpr_at_fpr", "fpr"),
    ):
        promised = {target: 0.5, "guarantee": 0.8}
        yield f"guarantee {measure}", fit(*many, measure=measure, measure_params=promised)
    yield (
        "costs",
        lambda: MeasureClassifier("savings", alpha=1e-2).fit(X, y, cost_fp=1.0 + np.abs(X[:, 0]), cost_fn=4.0),
    )
    for solver in ("spade", "stamp"):
        for rule in ("auto", "holdout", "none"):
            yield (
                f"{solver} cut {rule}",
                fit(measure="gmean" if solver == "spade" else "f1", solver=solver, threshold=rule),
            )
        yield (
            f"{solver} stop",
            fit(measure="gmean" if solver == "spade" else "f1", solver=solver, solver_params={"early_stopping": 0.2}),
        )
        yield (
            f"{solver} csr weighted",
            fit(
                sparse,
                measure="gmean" if solver == "spade" else "f1",
                solver=solver,
                sample_weight=weight,
                class_weight="balanced",
            ),
        )
    yield "no diagnostics", fit(measure="roc_auc", solver="moments", solver_params={"diagnostics": False})
    yield "named measure", fit(measure=CountMeasure(lambda tp, fp, fn, tn: tp / (tp + fp + 2 * fn), name="mine"))
    yield "fbeta", fit(measure="fbeta", measure_params={"beta": 2.0})
    yield "bad alpha", fit(alpha=-1.0)
    yield "bad solver", fit(solver="newtown")
    yield "bad pair", fit(solver="newton", risk="roc_area")
    yield "bad option", fit(solver_params={"memry": 3})

    def streamed(solver, measure, **params):
        def make():
            clf = MeasureClassifier(measure, solver=solver, random_state=0, **params)
            for k in range(0, len(y), 40):
                clf.partial_fit(X[k : k + 40], y[k : k + 40], classes=[0, 1])
            return clf

        return make

    for solver, measure in (("spade", "gmean"), ("stamp", "f1"), ("moments", "roc_auc")):
        yield f"partial_fit {solver}", streamed(solver, measure)
        yield f"partial_fit {solver} balanced", streamed(solver, measure, class_weight={0: 1.0, 1: 2.0})
    yield "partial_fit moments standard", streamed("moments", "roc_auc", scaling="standard")

    def warm():
        clf = MeasureClassifier("f1", alpha=1e-3, random_state=0, warm_start=True).fit(X, y)
        return clf.set_params(alpha=1e-4).fit(X, y)

    yield "warm start", warm

    def tune_threshold():
        clf = MeasureClassifier("f1", alpha=1e-3, random_state=0).fit(X, y)
        clf.tune_threshold(X, y, measure="recall_at_precision", measure_params={"precision": 0.8})
        return clf

    yield "tune_threshold", tune_threshold

    def resumed():
        with tempfile.TemporaryDirectory() as folder:
            options = {"checkpoint": f"{folder}/c"}
            MeasureClassifier("roc_auc", alpha=1e-3, max_iter=3, solver_params=options).fit(X, y)
            return MeasureClassifier("roc_auc", alpha=1e-3, solver_params=options).fit(X, y)

    yield "checkpoint", resumed

    def saved():
        from scoreline import load_model

        with tempfile.TemporaryDirectory() as folder:
            MeasureClassifier("f1", alpha=1e-3, random_state=0, probability=True).fit(X, y).save(f"{folder}/m.npz")
            return load_model(f"{folder}/m.npz")

    yield "saved", saved
    with contextlib.suppress(ImportError):
        import dask.array as da
        from distributed import Client

        client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
        blocks = da.from_array(X, chunks=(40, 5)), da.from_array(y, chunks=40)
        for measure in ("roc_auc", "f1", "prbep"):
            yield f"dask {measure}", fit(*blocks, measure=measure)
        yield "dask moments", fit(*blocks, measure="roc_auc", solver="moments")
        yield "dask spade", fit(*blocks, measure="gmean", solver="spade")
        client.close()
    with contextlib.suppress(ImportError):
        import array_api_strict as xp

        for measure in ("roc_auc", "f1", "prbep"):
            yield f"array API {measure}", fit(xp.asarray(X), y, measure=measure)


COMMANDS = (
    "--help", "measures", "measures --solvers", "train --help", "compare --help",
    "train small.csv --label y --measure f1 --out m.npz --quiet",
    "train small.csv --label y --measure roc_auc --alpha auto --out auc.npz",
    "train small.csv --label y --measure f1 --probability --out p.npz --scaling robust",
    "predict m.npz small.csv", "evaluate m.npz small.csv --label y", "predict p.npz small.csv",
    "info small.csv --label y", "info m.npz", "convert small.csv mapped --label y", "info mapped",
    "train mapped --measure gmean --out g.npz", "train small.svm --measure roc_auc --out s.npz --json",
    "train small.csv --label y --test small.csv --measure average_precision --out t.npz --early-stopping 0.2",
    "export p.npz --to json", "export m.npz --to sql --table t",
    "compare small.csv --label y --measure f1 --splits 2 --quiet",
    "train small.csv --label y --measure roc_auc --features additive --alpha 0.1 --out b.npz",
    "train small.csv --label y --measure roc_auc --penalty elastic_net --sign a:+ --alpha 0.01 --out l.npz",
    "scorecard small.csv --label y --monotone a:+ --alpha 0.1 --out card.md", "monitor m.npz small.csv",
    "train missing.csv", "train small.csv --label nothing", "train small.csv --label y --measure f2",
)  # fmt: skip


def transcripts():
    """Yield (command, exit code, output without times) of commands that run in a folder of their own."""
    from sklearn.datasets import dump_svmlight_file

    from scoreline.cli.main import main

    X, y = table(120, 5)
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            colours = np.array(["red", "green", "blue"])[np.arange(len(y)) % 3]
            rows = [",".join([*(f"{v:.6g}" for v in row), c, str(t)]) for row, c, t in zip(X, colours, y, strict=True)]
            Path("small.csv").write_text("\n".join(["a,b,c,d,e,colour,y", *rows]) + "\n")
            dump_svmlight_file(X, y, "small.svm")
            for command in COMMANDS:
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    try:
                        code = main(command.split())
                    except SystemExit as end:
                        code = end.code
                text = (out.getvalue() + "\n--\n" + err.getvalue()).replace(folder, "FOLDER")
                text = re.sub(r"\d+(\.\d+)? ?(ms|s|seconds|minutes|min|MB|GB|KB|kB|rows/s)\b", "TIME", text)
                text = re.sub(r'"seconds": [\d.e-]+', "TIME", text)
                if command.startswith("compare"):  # whose last column is seconds
                    text = re.sub(
                        r" +\d+\.\d{2,3}$| Training (is|takes) [^.]*(\.\d[^.]*)?\.", "", text, flags=re.MULTILINE
                    )
                yield command, code, re.sub(r" {2,}", "  ", text)
        finally:
            os.chdir(here)


def recorded(progress=True):
    """Return the record of the source that is imported."""
    import scoreline

    print(f"source: {Path(scoreline.__file__).parent}", file=sys.stderr)
    record = {name: outcome(make) for name, make in cases()}
    record |= {f"$ scoreline {command}": {"code": code, "text": text} for command, code, text in transcripts()}
    return record


def differences(before, now):
    """Yield a line for each difference."""
    for name in sorted(set(before) | set(now)):
        if name not in now or name not in before:
            yield f"{name}: only {'before' if name in before else 'now'}"
            continue
        for key in sorted(set(before[name]) | set(now[name])):
            one, other = before[name].get(key), now[name].get(key)
            if one != other:
                if key == "text":
                    import difflib

                    lines = difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0)
                    one, other = "", "\n    ".join(["", *list(lines)[3:15]])
                yield f"{name}: {key} was {str(one)[:200]}, is {str(other)[:1200]}"


def report(before, now):
    """Print the differences and return how many there are."""
    found = list(differences(before, now))
    print("\n".join(found) if found else f"{len(now)} outcomes are the same, bit for bit")
    return len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare", "since"])
    parser.add_argument("what", help="a file, or a commit")
    options = parser.parse_args()
    if options.action == "record":
        Path(options.what).write_text(json.dumps(recorded(), indent=1))
        return
    if options.action == "compare":
        sys.exit(report(json.loads(Path(options.what).read_text()), recorded()) > 0)
    with tempfile.TemporaryDirectory() as folder:
        tree, file = Path(folder, "tree"), Path(folder, "record.json")
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), options.what], cwd=ROOT, check=True)
        try:
            command = [sys.executable, __file__, "record", str(file)]
            subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tree / "src")}, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
        sys.exit(report(json.loads(file.read_text()), recorded()) > 0)


if __name__ == "__main__":
    main()
