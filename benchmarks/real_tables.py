"""Eight tasks on tables as they come: gaps, heavy tails, rare categories, few positives, text.

    SCORELINE_DATA=folder python benchmarks/real_tables.py [--tasks credit,text] [--out results.json]
    python benchmarks/real_tables.py --join before.json after.json

Each task is done as from the README, with the command line where it has the option. It returns numbers, and an error is one of
them ("error: ..."). The script therefore runs with older versions too: put their src folder into PYTHONPATH, and join the two
outputs into a table. Four tasks generate their data, and four need adult-raw, campaign, census-income and german.numer in
SCORELINE_DATA (docs/datasets.md); a task without its data says so. `--scalings` prints the AUC of three scalings on shared
sets.
"""

import argparse
import contextlib
import io
import json
import os
import sqlite3
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from scoreline import MeasureClassifier, load_model
from scoreline.cli.main import main as scoreline_main
from scoreline.io import convert, read_data

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
SCALINGS = ("standard", "robust", "quantile")
SCALING_SETS = "magic04,page-blocks0,annthyroid,satimage,shuttle,adult-raw,campaign,census-income"


class NoDataError(Exception):
    """A shared data set is not there."""


def command(*arguments):
    """Run a command line with --json in this process and return its object; a failure is an error with its message."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = scoreline_main([*map(str, arguments), "--json", "--quiet"])
    if code:
        message = json.loads(out.getvalue()).get("error") if out.getvalue() else None
        raise RuntimeError(message or err.getvalue().strip().splitlines()[-1])
    return json.loads(out.getvalue())


def attempt(function, *arguments, **options):
    """Return the value of a function, or its error as text, for versions that lack what it uses."""
    try:
        return function(*arguments, **options)
    except (Exception, SystemExit) as error:
        return f"error: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def shared(name):
    """Return the path of a shared data set."""
    folder = os.environ.get("SCORELINE_DATA")
    if folder is None:
        raise NoDataError(f"{name} is missing: set SCORELINE_DATA to a folder with it (docs/datasets.md)")
    for suffix in (".svm", ".svm.xz"):
        if Path(folder, name + suffix).exists():
            return Path(folder, name + suffix)
    raise NoDataError(f"{name}.svm and {name}.svm.xz are missing in SCORELINE_DATA (docs/datasets.md)")


def halves(X, y, folder, train_rows=None):
    """Write stratified training and test rows as two converted folders; return their paths."""
    from sklearn.model_selection import train_test_split

    size = {"test_size": 0.5} if train_rows is None else {"train_size": train_rows}
    A, B, a, b = train_test_split(X, y, stratify=y, random_state=0, **size)
    return convert((A, a), Path(folder, "train")), convert((B, b), Path(folder, "test"))


def write(frame, folder):
    """Write two thirds of the rows to train.csv and the others to test.csv; return the paths."""
    paths = Path(folder, "train.csv"), Path(folder, "test.csv")
    end = 2 * len(frame) // 3
    frame[:end].to_csv(paths[0], index=False)
    frame[end:].to_csv(paths[1], index=False)
    return paths


def labelled(risk, share, rng):
    """Return labels of which a share is positive, more often where the risk is high."""
    noisy = risk + rng.logistic(0.0, 1.0, len(risk))
    return np.where(noisy > np.quantile(noisy, 1.0 - share), "yes", "no")


def credit_table(rows=30_000, seed=0):
    """Return a table like that of a lender: 6.7 % defaults, ratios with heavy tails, codes 96 and 98, missing incomes."""
    rng = np.random.default_rng(seed)
    use, age, stress = (
        rng.beta(0.5, 1.2, rows),
        rng.normal(52.0, 15.0, rows).clip(21, 100).round(),
        rng.normal(size=rows),
    )
    late = [rng.poisson(np.exp(stress - 2.0 - k)) for k in range(3)]
    risk = 0.5 * use - 0.01 * age + 1.5 * sum(np.minimum(each, 3) for each in late)
    outlier = rng.random(rows)
    frame = pd.DataFrame({
        "utilisation": np.where(outlier < 0.002, use * rng.pareto(0.8, rows) * 1000.0, use),
        "age": age,
        "late_30": late[0], "late_60": late[1], "late_90": late[2],
        "debt_ratio": np.exp(rng.normal(-1.0, 1.0, rows) + (rng.random(rows) < 0.2) * rng.normal(8.0, 1.0, rows)),
        "income": rng.lognormal(8.6 - 0.1 * stress, 0.7, rows).round(),
        "lines": rng.poisson(8.5, rows),
        "loans": rng.poisson(1.0, rows),
        "dependents": rng.poisson(0.75, rows).astype(float),
    })  # fmt: skip
    coded = outlier > 0.998
    frame.loc[coded, ["late_30", "late_60", "late_90"]] = 98
    frame.loc[rng.random(rows) < 0.2, "income"] = np.nan
    frame.loc[rng.random(rows) < 0.026, "dependents"] = np.nan
    frame["default"] = labelled(risk, 0.067, rng)
    return frame


def bankruptcy_table(rows=9000, seed=0, columns=20):
    """Return ratios with Cauchy-like tails, 3 % bankrupt, and gaps that are more frequent in firms in trouble."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(rows, columns)) + 0.5 * rng.normal(size=(rows, 1))
    trouble = latent[:, :6].sum(axis=1) / 3.0 + rng.normal(size=rows)
    bankrupt = labelled(2.0 * trouble, 0.03, rng)
    ratios = np.sinh(2.5 * latent) * np.exp(
        rng.normal(size=columns)
    )  # tails like those of a ratio of two small numbers
    gap = rng.random((rows, columns)) < 0.02
    gap[:, -4:] |= rng.random((rows, 4)) < np.where(bankrupt == "yes", 0.4, 0.05)[:, None]
    ratios[gap] = np.nan
    frame = pd.DataFrame(ratios, columns=[f"ratio{k}" for k in range(columns)])
    frame["bankrupt"] = bankrupt
    return frame


def codes_table(rows=18_000, seed=0, codes=5000):
    """Return a table with a column of thousands of codes, half of which occur once or twice, and gaps."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, codes + 1)
    code = rng.choice(codes, rows, p=share / share.sum())
    effect, amount, color = rng.normal(size=codes), rng.lognormal(3.0, 1.0, rows).round(2), rng.integers(0, 3, rows)
    risk = 1.5 * effect[code] * (code < 200) + 0.5 * np.log(amount) + color
    frame = pd.DataFrame({
        "code": [f"K{c:05d}" for c in code],
        "amount": amount,
        "color": np.array(["red", "green", "blue"])[color],
        "outcome": labelled(risk, 0.15, rng),
    })  # fmt: skip
    frame.loc[rng.random(rows) < 0.05, "amount"] = np.nan
    frame.loc[rng.random(rows) < 0.03, "color"] = None
    return frame


def text_rows(rows=4000, words=6000, seed=0):
    """Return tf-idf rows of documents whose words follow Zipf's law, and labels: 20 % are about the topic."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.2
    plain = 1.0 / np.arange(1, words + 1)
    topic = plain * np.exp(0.9 * rng.normal(size=words) * (rng.random(words) < 0.2))
    lengths = rng.poisson(80, rows) + 5
    indices = np.concatenate([
        rng.choice(words, length, p=(topic if t else plain) / (topic if t else plain).sum())
        for length, t in zip(lengths, y, strict=True)
    ])  # fmt: skip
    counts = sp.csr_array((np.ones(len(indices)), indices, np.concatenate([[0], np.cumsum(lengths)])), (rows, words))
    counts.sum_duplicates()
    counts.data = 1.0 + np.log(counts.data)
    found = np.bincount(counts.indices, minlength=words)
    counts = counts @ sp.diags_array(np.log((1.0 + rows) / (1.0 + found)) + 1.0)
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1.0 / length) @ counts), y.astype(int)


def averaged(results):
    """Return one dict of several: means of numbers, and texts with how often they occurred."""
    found = {}
    for name, first in results[0].items():
        values = [each[name] for each in results]
        if isinstance(first, float):
            found[name] = float(max(values) if name.startswith("largest") else np.mean(values))
        else:
            texts = list(map(str, values))
            found[name] = ", ".join(
                t if len(set(texts)) == 1 else f"{t} ({texts.count(t)})" for t in sorted(set(texts))
            )
    return found


def credit(folder, rows=30_000, seeds=5):
    """Train for F1 on the command line and in Python, on several tables."""
    return averaged([credit_once(folder, rows, seed) for seed in range(seeds)])


def credit_once(folder, rows, seed):
    """Train for F1 on the command line and in Python."""
    train, test = write(credit_table(rows, seed), folder)
    model = Path(folder, "model.npz")
    found = command("train", train, "--label", "default", "--positive", "yes", "--measure", "f1", "--impute", "mean",
                    "--out", model)  # fmt: skip
    own = load_model(model)
    data = read_data(train, "default", positive="yes", impute="mean")
    new = read_data(test, "default", positive="yes", encoding=data.encoding)

    def fitted(scaling):
        return MeasureClassifier("f1", scaling=scaling).fit(data.X, data.y)

    clf = fitted("standard")
    return {
        "solver, command line": found["solver"],
        "solver, Python": clf.solver_,
        "same coefficients": bool(np.allclose(own.coef_, clf.coef_, rtol=1e-6)),
        "test F1, command line": own.score(new.X, np.where(new.y, "yes", "no")),
        "test F1, Python": clf.score(new.X, new.y),
        "test F1, scaling robust": attempt(lambda: fitted("robust").score(new.X, new.y)),
    }


def bankruptcy(folder, rows=9000):
    """Train for average precision with and without indicators and with three scalings; check the probabilities."""
    from sklearn.metrics import log_loss

    train, test = write(bankruptcy_table(rows), folder)
    reading = {"label": "bankrupt", "positive": "yes", "impute": "mean"}

    def precision(scaling="standard", **options):
        data = read_data(train, **reading, **options)
        new = read_data(test, "bankrupt", positive="yes", encoding=data.encoding)
        return MeasureClassifier("average_precision", scaling=scaling).fit(data.X, data.y).score(new.X, new.y)

    def without():
        try:
            return precision(indicators=False)
        except TypeError:  # an older version, which has no indicators
            return precision()

    found = {
        "test AP, default reading": attempt(precision),
        "test AP, no indicators": attempt(without),
        **{f"test AP, scaling {s}": attempt(precision, s) for s in SCALINGS[1:]},
    }
    for measure in ("f1", "average_precision"):
        for scaling in ("auto", "quantile"):

            def calibrated(measure=measure, scaling=scaling):
                model = Path(folder, "model.npz")
                command("train", train, "--label", "bankrupt", "--positive", "yes", "--measure", measure, "--impute", "mean",
                        "--probability", "--scaling", scaling, "--out", model)  # fmt: skip
                clf = load_model(model)
                new = read_data(test, "bankrupt", positive="yes", encoding=clf.encoding_)
                y = np.asarray(new.y)
                share = float(np.mean(np.asarray(read_data(train, **reading).y)))
                constant = log_loss(y, np.full(len(y), share))
                return f"{log_loss(y, clf.predict_proba(new.X)[:, 1]):.4f} (constant {constant:.4f})"

            found[f"log loss, {measure}, scaling {scaling}"] = attempt(calibrated)
    return found


def census(folder):
    """Train for AUC on adult-raw and compare with logistic regression and boosted trees."""
    train, test, model = shared("adult-raw"), shared("adult-raw.t"), Path(folder, "model.npz")
    command("train", train, "--measure", "roc_auc", "--out", model)
    found = {"test AUC": command("evaluate", model, test)["values"]["roc_auc"]}
    quantile = Path(folder, "quantile.npz")
    found["test AUC, scaling quantile"] = attempt(
        lambda: (
            command("train", train, "--measure", "roc_auc", "--scaling", "quantile", "--out", quantile)
            and command("evaluate", quantile, test)["values"]["roc_auc"]
        )
    )
    compared = command("compare", train, "--measure", "roc_auc", "--splits", 3, "--max-rows", 8000)
    return found | verdicts(compared)


def verdicts(compared):
    """Return what a comparison says about linear models and about trees."""
    return {
        "verdict": compared["verdict"].split(":")[0],
        "judged method": compared.get("best", "scoreline auto"),
        "trees": compared.get("tree_verdict", "not compared").replace("(HistGradientBoosting) ", ""),
    }


def campaign(folder):
    """Train for the recall at 90 % precision, and look at what training and evaluation say."""
    data = read_data(shared("campaign"))
    train, test = halves(data.X, data.y, folder)
    model = Path(folder, "model.npz")
    trained = command(
        "train", train, "--measure", "recall_at_precision", "--measure-param", "precision=0.9", "--out", model
    )
    found = command("evaluate", model, test)
    values = found["values"]
    return {
        "warning of train": (trained.get("warnings") or ["none"])[0],
        "first measures of evaluate": ", ".join(list(values)[:3]),
        "target": found.get("target", "not stated"),
        "test value": values["recall_at_precision"],
        "test precision": values.get("precision", "not shown"), "test recall": values.get("recall", "not shown"),
        "counts": str(found.get("counts", "not shown")),
    }  # fmt: skip


def income(folder):
    """Train for average precision with alpha by cross-validation: on census-income, and where heavy tails want a tiny one."""
    data = read_data(shared("census-income"))
    train, test = halves(data.X[:60_000], data.y[:60_000], folder, train_rows=8000)
    lender, lender_test = write(credit_table(), folder)
    label = ("--label", "default", "--positive", "yes")
    found = {}
    for name, rows, new, reading in (
        ("census-income", train, test, ()),
        ("credit", lender, lender_test, (*label, "--impute", "mean")),
    ):
        model = Path(folder, f"{name}.npz")
        trained = command("train", rows, "--measure", "average_precision", "--alpha", "auto", "--out", model, *reading)
        values = command("evaluate", model, new, *(label if reading else ()))["values"]
        found |= {f"alpha, {name}": trained["alpha"], f"test AP, {name}": values["average_precision"]}
    return found


def german(folder):
    """Compare the methods for F1 on 1,000 rows."""
    del folder
    return verdicts(command("compare", shared("german.numer"), "--measure", "f1", "--splits", 5))


def timed(function, repeats=3):
    """Return the value of a function and the least CPU seconds of several calls; the first one may compile.

    BLAS gets one thread, because idle threads of BLAS spin and count as CPU time.
    """
    from threadpoolctl import threadpool_limits

    seconds = []
    with threadpool_limits(1):
        for _ in range(repeats):
            begin = time.process_time()
            value = function()
            seconds.append(time.process_time() - begin)
    return value, min(seconds)


def text(folder, rows=4000, words=6000):
    """Train for F1 on text with alpha by cross-validation, and count passes and seconds."""
    from sklearn.linear_model import LogisticRegression

    X, y = text_rows(rows, words)
    train, test = halves(X, y, folder)
    model = Path(folder, "model.npz")
    found, seconds = timed(lambda: command("train", train, "--measure", "f1", "--alpha", "auto", "--out", model))
    half = rows // 2  # as many as train has
    _, baseline = timed(lambda: LogisticRegression(max_iter=1000).fit(X[:half], y[:half]))
    return {
        "solver": found["solver"], "alpha": found["alpha"], "passes of the last fit": found.get("passes"),
        "CPU seconds, --alpha auto": seconds,
        "CPU seconds, one LogisticRegression": baseline,
        "test F1": command("evaluate", model, test)["values"]["f1"],
    }  # fmt: skip


def codes(folder, rows=18_000, codes=5000, seeds=5):
    """Train on a converted folder, test on a CSV file, and export to ONNX, SQL and JSON, with several tables."""
    return averaged([codes_once(Path(folder), rows, codes, seed) for seed in range(seeds)])


def codes_once(folder, rows, codes, seed):
    """Train on a converted folder, test on a CSV file, and export to ONNX, SQL and JSON."""
    train, test = write(codes_table(rows, seed, codes), folder)
    model, label = folder / "model.npz", ("--label", "outcome", "--positive", "yes")
    frame = pd.read_csv(test)

    def tested(converted, *options):
        """Return the model of a converted folder and its F1 on the test rows, and whether train took them."""
        command("convert", train, converted, *label, "--impute", "mean", *options)
        training = ("train", converted, "--measure", "f1", "--out", model)
        found = attempt(command, *training, "--test", test)
        if isinstance(found, str):
            command(*training)
        clf = load_model(model)
        X = read_data(test, "outcome", positive="yes", encoding=clf.encoding_).X
        return clf, X, clf.score(X, frame["outcome"].to_numpy(dtype=str)), found if isinstance(found, str) else "works"

    clf, X, value, works = tested(folder / f"converted{seed}")
    score = clf.decision_function(X)
    ungrouped = attempt(lambda: tested(folder / f"apart{seed}", "--min-category-rows", 1))
    found = {
        "features": float(clf.n_features_in_),
        "train folder --test x.csv": works,
        "test F1": value,
        "test F1, --min-category-rows 1": value if isinstance(ungrouped, str) else ungrouped[2],
    }
    for name, scores_of in (("ONNX with raw columns", by_onnx), ("SQL", by_sql), ("JSON", by_json)):
        found[f"largest difference, {name}"] = attempt(
            lambda scores_of=scores_of: float(np.abs(scores_of(clf, frame) - score).max())
        )
    return found


def by_onnx(clf, frame):
    """Return the scores of a table by ONNX with its raw columns as inputs."""
    import onnxruntime

    from scoreline.export import to_onnx

    session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    if set(names) - set(frame):
        raise ValueError(f"the graph takes encoded features as {names[0]!r}, not the columns of the table")
    return session.run(["score"], {name: frame[[name]].to_numpy() for name in names})[0].ravel()


def by_sql(clf, frame):
    """Return the scores of a table in SQLite."""
    from scoreline.export import to_sql

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        frame.to_sql("rows", connection, index=False)
        return pd.read_sql_query(to_sql(clf, "rows", keep=[]), connection)["score"].to_numpy()


def by_json(clf, frame):
    """Return the scores of a table by the JSON document, in plain Python."""
    from deploy import score
    from scoreline.export import to_json

    document = json.loads(json.dumps(to_json(clf)))
    for column in document["columns"]:
        column.setdefault("other", 0.0)  # in older versions
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return np.array([score(document, row) for row in rows])


TASKS = {each.__name__: each for each in (credit, bankruptcy, census, campaign, income, german, text, codes)}


def run(names):
    """Run tasks one after the other; return their numbers and seconds by name."""
    results = {}
    for name in names:
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = TASKS[name](folder)
            except NoDataError as error:
                found = {"data": str(error)}
            except (Exception, SystemExit) as error:
                found = {"error": f"error: {error}"}
        results[name] = found
        print(f"\n{name} ({time.perf_counter() - begin:.1f} s)", flush=True)
        for what, value in found.items():
            print(f"  {what}: {shown(value)}", flush=True)
    return results


def shown(value):
    """Return a value as text with few digits."""
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0.0 or 1e-3 <= abs(value) < 1e4 else f"{value:.2g}"
    return str(value)


def join(before, after):
    """Print two results as one Markdown table."""
    print("| task | | before | after |\n| --- | --- | --- | --- |")
    first, second = (json.loads(Path(path).read_text(encoding="utf-8")) for path in (before, after))
    for task, numbers in second.items():
        for what, value in numbers.items():
            print(f"| {task} | {what} | {shown(first.get(task, {}).get(what, '-'))} | {shown(value)} |")


def scalings(names):
    """Print the AUC of three scalings on test rows of shared sets."""
    from sklearn.model_selection import train_test_split

    print(f"| data | {' | '.join(SCALINGS)} |\n| --- | ---: | ---: | ---: |")
    for name in names:
        data = read_data(shared(name))
        X, y = data.X, np.asarray(data.y)
        if len(y) > 20_000:
            X, _, y, _ = train_test_split(X, y, train_size=20_000, stratify=y, random_state=0)
        X = X.toarray()  # all three then standardise; sparse columns would be divided by their largest magnitude
        means = []
        for scaling in SCALINGS:
            values = []
            for seed in range(3):
                A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    values.append(MeasureClassifier("roc_auc", scaling=scaling).fit(A, a).score(B, b))
            means.append(float(np.mean(values)))
        print(f"| {name} | {' | '.join(f'{value:.4f}' for value in means)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--out", help="write the numbers to this JSON file")
    parser.add_argument("--join", nargs=2, metavar=("BEFORE", "AFTER"), help="print two such files as a table")
    parser.add_argument(
        "--scalings", nargs="?", const=SCALING_SETS, metavar="SETS", help="print the AUC of each scaling"
    )
    options = parser.parse_args()
    if options.join:
        join(*options.join)
    elif options.scalings:
        scalings(options.scalings.split(","))
    else:
        results = run(options.tasks.split(","))
        if options.out:
            Path(options.out).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
