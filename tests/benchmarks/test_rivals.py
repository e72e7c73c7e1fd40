"""The rivals' adapters: every one that is installed ranks as it should, and equal objectives have equal minima."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score

from scoreline import MeasureClassifier

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from rivals import summary
from rivals.base import COUNTS, MEASURES, Binary, Linear, Rival
from rivals.protocol import Rows, split_of, work
from rivals.registry import all_rivals

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "side_by_side.py"
RIVALS = all_rivals()
THERE = [name for name, rival in RIVALS.items() if rival.missing() is None]
LOGISTIC = [name for name in THERE if "ogisti" in name and "snapml" not in name and "SGD" not in name]


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[rng.random(X.shape) < 0.3] = 0.0
    y = np.where(X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.logistic(0.0, 0.5, n) > 0.7, 1, -1)
    X = csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def test_every_rival_has_a_default_among_its_efforts():
    for rival in RIVALS.values():
        assert rival.default in rival.efforts, rival.name


def check_ranking(name):
    X, y = rows()
    rival = RIVALS[name]
    model = rival.fit(rival.prepare(X, y), 1e-3, rival.efforts[-1], rival.measures[0])
    assert roc_auc_score(y, X @ model.w + model.b) > 0.85


def test_it_ranks():
    for name in THERE:
        check_ranking(name)


def check_penalty(name):
    X, y = rows()
    rival, alpha = RIVALS[name], 1e-2
    found = rival.fit(rival.prepare(X, y), alpha, 1e-8, "roc_auc")
    wanted = MeasureClassifier("roc_auc", risk="logistic", alpha=alpha, tol=1e-9, threshold="none").fit(X, y)
    assert np.allclose(found.w, wanted.coef_.ravel(), rtol=2e-3, atol=2e-4), name


def test_the_penalty_is_the_same():
    for name in LOGISTIC:
        if "tuned" not in name and not name.startswith("scoreline"):
            check_penalty(name)


def check_tuned_threshold(measure):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import TunedThresholdClassifierCV

    from scoreline.measures import get_scorer

    X, y = rows()
    rival = RIVALS["LogisticRegression, tuned threshold"]
    model = rival.fit((X, y), 1e-3, 1e-4, measure)
    wanted = TunedThresholdClassifierCV(
        LogisticRegression(C=1.0 / (len(y) * 1e-3), max_iter=10_000),
        scoring=get_scorer(measure),
        response_method="decision_function",
    ).fit(X, y)
    assert model.threshold
    assert np.array_equal(X @ model.w + model.b >= 0, wanted.predict(X) > 0)


def test_the_tuned_threshold_is_in_the_intercept():
    for measure in COUNTS:
        check_tuned_threshold(measure)


class Plain(Rival):
    name, package, module = "plain", "scoreline", "scoreline"
    efforts = (1, 2)
    default = 2

    def fit(self, data, alpha, effort, measure):
        X, y = data
        if alpha > 1e-2:
            raise ValueError("too strong")
        return Linear(X.T @ (y - y.mean()) / len(y) + (2 - effort))


def test_protocol_tells_choice_and_fits():
    X, y = rows()
    reports = []
    work(split_of(X, y, 0, 300), Plain(), list(MEASURES), 10.0, reports.append)
    assert reports[0]["kind"] == "tuned"
    assert all(alpha <= 1e-2 for alpha in reports[0]["alpha"].values())  # stronger ones raised an error
    fits = reports[1:]
    assert sorted((f["measure"], f["effort"]) for f in fits) == sorted((m, e) for m in MEASURES for e in (1, 2))
    assert all(0.0 <= f["value"] <= 1.0 and f["seconds"] > 0.0 for f in fits)
    assert next(f for f in fits if f["effort"] == 2)["value"] > 0.8


def test_splits_are_the_same_and_scaled():
    X, y = rows()
    first, second = split_of(X, y, 1, 200), split_of(X, y, 1, 200)
    assert isinstance(first, Rows)
    assert np.array_equal(first.y, second.y)
    assert np.array_equal(first.X.toarray(), second.X.toarray())
    assert np.allclose(abs(first.X).max(axis=0).toarray(), 1.0)
    assert len(first.y) + len(first.y_test) == 200


def entry(name, rival, fits, split=0):
    findings = [{"kind": "fit", "measure": "roc_auc", "seconds": s, "value": v} for s, v in fits]
    return {"set": name, "split": split, "rival": rival, "rows": 10, "non_zeros": 20, "findings": findings}


def test_time_is_to_the_same_measure_on_either_side():
    entries = [
        entry("a", "scoreline", [(1.0, 0.80), (2.0, 0.90)]),
        entry("a", "other", [(4.0, 0.8995), (8.0, 0.95)]),  # its first effort already has what ours ends with
        entry("b", "scoreline", [(1.0, 0.80)]),  # the rival has not done this one
    ]
    ours, theirs = (summary.points_of(entries, r, "roc_auc") for r in ("scoreline", "other"))
    found = summary.compare(ours, theirs)
    assert list(found) == ["a"]
    assert found["a"]["lead"] == pytest.approx(-0.05)
    assert found["a"]["ratio"] == pytest.approx(2.0)
    text = summary.markdown({"date": "today"}, entries, ["roc_auc", "f1"], {"gone": "not installed: gone"})
    assert "other: lower on a (-0.0500)" in text
    assert "skipped: gone" in text
    assert "## f1" not in text


def test_interval_holds_the_mean():
    low, high = summary.interval([0.0, 0.1, 0.2, 0.3])
    assert low < 0.15 < high
    assert summary.interval([0.5, 0.5]) == (0.5, 0.5)


FAKE = """#!{python}
import sys
arguments = sys.argv[1:]
if not arguments:
    print({says!r})
    sys.exit(1)
rows = open({train}).read().splitlines()
assert len(rows) == 400, len(rows)
open({model}, "w").write({text!r})
open(sys.argv[0] + ".arguments", "w").write(" ".join(arguments))
"""
MODELS = {
    "SVM-perf": "SVM-light Version V6.20\n0.25 # threshold b, each following line is a SV\n2 1:1 2:-0.5 3:0.25 #\n",
    "liblinear-ranksvm": "solver_type L2R_L2LOSS_RANKSVM\nnr_feature 5\nw\n2 \n-1 \n0.5 \n0 \n0 \n",
    "sofia-ml": "-0.25 2 -1 0.5 0 0",
}


@pytest.mark.parametrize("name", [name for name, rival in RIVALS.items() if isinstance(rival, Binary)])
def test_programs_are_found_run_and_read(name, tmp_path, monkeypatch):
    rival = RIVALS[name]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rival.missing() == f"not on PATH: {rival.binary}"
    path = tmp_path / rival.binary
    places = {"train": "arguments[-2]", "model": "arguments[-1]"}
    if name == "sofia-ml":
        places = {
            k: f"arguments[arguments.index('--{o}') + 1]"
            for k, o in {"train": "training_file", "model": "model_out"}.items()
        }

    def write(says):
        path.write_text(FAKE.format(python=sys.executable, says=says, text=MODELS[name], **places))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    write("another program")
    assert "another program" in rival.missing()
    write(rival.says)
    assert rival.missing() is None
    X, y = rows()
    model = rival.fit(rival.prepare(X, y), 1e-3, rival.efforts[0], rival.measures[0])
    assert np.allclose(model.w, [2.0, -1.0, 0.5, 0.0, 0.0])
    assert model.b == {"SVM-perf": -0.25, "liblinear-ranksvm": 0.0, "sofia-ml": -0.25}[name]


def test_a_program_that_fails_says_so(tmp_path, monkeypatch):
    (tmp_path / "train").write_text(f"#!{sys.executable}\nimport sys\nprint('no memory')\nsys.exit(3)\n")
    (tmp_path / "train").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    rival = RIVALS["liblinear-ranksvm"]
    with pytest.raises(RuntimeError, match="no memory"):
        rival.fit(rival.prepare(*rows()), 1e-3, 0.1, "roc_auc")


def test_a_rival_that_was_stopped_says_which_rule_its_final_value_is_of():
    fits = [{"kind": "fit", "measure": "roc_auc", "effort": e, "seconds": 1.0, "value": 0.9} for e in (1.0, 0.1)]
    stopped = [*fits, {"kind": "failed", "why": "stopped after 80 s"}]
    entries = [
        {"set": "a", "split": 0, "rival": name, "rows": 1, "non_zeros": 1, "findings": findings}
        for name, findings in (("scoreline", fits), ("slow", stopped), ("none", stopped[2:]))
    ]
    page = summary.markdown({}, entries, ["roc_auc"], {})
    assert "slow: stopped after 80 s; its final value is of the last rule it finished: roc_auc 0.1\n" in page
    assert "none: stopped after 80 s\n" in page


@pytest.mark.slow
def test_side_by_side_runs_goes_on_and_names_what_is_missing(tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = rows(600)
    dump_svmlight_file(X, y, str(tmp_path / "letter.svm"), zero_based=False)
    line = [
        sys.executable, str(SCRIPT), "--sets", "letter,nothere", "--splits", "1", "--limit", "60",
        "--rivals", "scoreline,LogisticRegression lbfgs,LibAUC", "--measures", "roc_auc,f1", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    environment = {"SCORELINE_DATA": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    first = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert first.returncode == 0, first.stderr
    assert "no data for nothere" in first.stdout
    assert "skipped LibAUC" in first.stdout
    _, *entries = [json.loads(text) for text in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {e["rival"] for e in entries} == {
        "scoreline", "scoreline squared pairs", "scoreline logistic", "LogisticRegression lbfgs",
    }  # fmt: skip
    assert not [f for e in entries for f in e["findings"] if f["kind"] == "failed"]
    page = (tmp_path / "out.md").read_text()
    assert "## roc_auc" in page
    assert "## f1" in page
    with (tmp_path / "out.jsonl").open("a") as file:
        file.write('{"set": "letter", "cut off')
    again = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert again.returncode == 0, again.stderr
    assert "1 of 1: letter" not in again.stdout  # nothing was left to do
    other = subprocess.run([*line, "--rows", "300"], capture_output=True, text=True, env=environment, check=False)
    assert other.returncode == 1
    assert "is of another run" in other.stderr
