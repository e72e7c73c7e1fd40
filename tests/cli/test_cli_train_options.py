"""train: alpha by cross-validation, early stopping, probabilities."""

import csv
import io
from pathlib import Path

import numpy as np

from cases import for_each
from scoreline import MeasureClassifierCV, load_model
from scoreline.io import read_data

TRAIN = ("train", "payments.csv", "--label", "outcome", "--positive", "fraud")


def test_alpha_is_chosen_by_the_folds(as_json, folder):
    found = as_json(*TRAIN, "--measure", "roc_auc", "--alpha", "auto")
    data = read_data("payments.csv", label="outcome")
    own = MeasureClassifierCV("roc_auc", scaling="standard", random_state=0).fit(data.X, data.y == "fraud")
    assert found["alpha"] == own.alpha_
    model = load_model("model.npz")
    assert model.alpha == own.alpha_
    np.testing.assert_array_equal(model.coef_, own.coef_)


def test_the_choice_is_told(scoreline):
    code, out, _ = scoreline(*TRAIN, "--measure", "average_precision", "--alpha", "auto", "--report", "page.html")
    assert code == 0
    assert out.startswith("alpha ")
    assert "has the best average_precision in cross-validation: 0." in out.splitlines()[0]


def test_predictions_have_probabilities_where_the_model_has(scoreline, as_json):
    assert scoreline(*TRAIN, "--measure", "f1", "--probability", "--report", "page.html")[0] == 0
    assert "Probabilities are off by" in Path("page.html").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(scoreline("predict", "model.npz", "payments.csv")[1])))
    clf = load_model("model.npz")
    X = read_data("payments.csv", label="outcome").X
    np.testing.assert_allclose([float(row["probability"]) for row in rows], clf.predict_proba(X)[:, 1], rtol=1e-12)
    found = as_json("predict", "model.npz", "payments.csv")
    np.testing.assert_allclose(found["probabilities"], clf.predict_proba(X)[:, 1], rtol=1e-12)
    assert scoreline(*TRAIN)[0] == 0
    assert scoreline("predict", "model.npz", "payments.csv")[1].startswith("prediction,score\n")


def test_early_stopping(as_json):
    found = as_json(*TRAIN, "--early-stopping", "0.3", "--alpha", "1e-6", "--tol", "1e-6")
    assert found["status"] in ("early_stopping", "converged")
    assert load_model("model.npz").history_["validation"]


def test_a_sparse_and_signed_model(as_json, folder):
    names = read_data("payments.csv", label="outcome").names
    Path("limits.csv").write_text(f"feature,lower,upper\n{names[1]},-0.01,\n", encoding="utf-8")
    found = as_json(
        *TRAIN, "--penalty", "elastic_net", "--l1-ratio", "0.7", "--sign", f"{names[0]}:-", "--bounds", "limits.csv"
    )
    assert found["solver"] == "proximal"
    clf = load_model("model.npz")
    assert clf.bounds == {names[0]: (None, 0.0), names[1]: (-0.01, None)}
    assert clf.coef_[0, 0] <= 0.0
    assert clf.coef_[0, 1] >= -0.01


def test_base_scores_are_a_column_whose_coefficient_is_1(as_json, scoreline, folder):
    data = read_data("payments.csv", label="outcome")
    column = data.names[0]
    for more in ((), ("--penalty", "elastic_net", "--sign", f"{data.names[1]}:+"), ("--alpha", "auto")):
        found = as_json(*TRAIN, "--base-scores", column, *more)
        assert found["solver"] == "proximal"
        clf = load_model("model.npz")
        assert clf.coef_[0, 0] == 1.0
        assert clf.coef_[0, 1:].any()
    assert scoreline("predict", "model.npz", "payments.csv")[0] == 0
    sql = scoreline("export", "model.npz", "--to", "sql", "--table", "payments")[1]
    assert column in sql
    code, _, err = scoreline(*TRAIN, "--base-scores", "nothing")
    assert code == 1
    assert "--base-scores names column 'nothing'" in err


@for_each(
    ("options", "message"),
    [
        (("--base-scores", "amount", "--scaling", "quantile"), "--base-scores keeps a column as it is"),
        (("--base-scores", "amount", "--features", "additive"), "--features linear"),
        (("--l1-ratio", "0.5"), "--penalty elastic_net"),
        (("--sign", "amount"), "COLUMN:+"),
        (("--bounds", "nowhere.csv"), "no such file"),
        (("--alpha", "auto", "--dask", "local"), "--alpha auto and --dask"),
        (("--alpha", "auto", "--checkpoint", "c"), "--alpha auto and --checkpoint"),
        (("--alpha", "auto", "--early-stopping", "0.1"), "--alpha auto and --early-stopping"),
        (("--early-stopping", "0.7"), "at most 0.5"),
        (("--early-stopping", "0"), "greater than 0"),
        (("--alpha", "best"), "'best' must be a finite number"),
        (("--solver", "moments", "--early-stopping", "0.1"), "moments"),
    ],
)
def test_options_that_do_not_go_together(options, message, capsys, scoreline):
    try:
        code, _, err = scoreline(*TRAIN, *options)
    except SystemExit as end:
        code, err = end.code, capsys.readouterr().err
    assert code == 2
    assert message in err


@for_each("alpha", ["1e-3", "auto"])
def test_heavy_tails_are_named_by_column(scoreline, folder, alpha):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 2))
    rows[:, 1] = np.exp(4.0 * rows[:, 1])
    lines = [f"{a:.4f},{b:.4f},{int(a + c > 0.5)}" for (a, b), c in zip(rows, rng.standard_normal(400), strict=True)]
    (folder / "tails.csv").write_text("\n".join(["height,income,outcome", *lines]))
    _, _, err = scoreline("train", "tails.csv", "--label", "outcome", "--alpha", alpha)
    assert "Column 'income' has heavy tails" in err
    assert "--scaling robust" in err
    assert "scaling='robust'" not in err
    _, _, err = scoreline("train", "tails.csv", "--label", "outcome", "--alpha", alpha, "--scaling", "quantile")
    assert "heavy tails" not in err
