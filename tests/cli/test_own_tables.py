"""Tables as people have them: gaps, keys, labels in words; every message names the options that repair it."""

import csv
import io
import shlex

import numpy as np
import pytest

from cases import for_each
from scoreline import load_model
from scoreline.cli.output import as_options

LABEL = ("--label", "chargeback")


@pytest.fixture
def orders(folder):
    rng = np.random.default_rng(3)
    lines = ["key,amount,country,age,chargeback"]
    for k in range(200):
        amount, country = rng.lognormal(3.0, 1.0), rng.choice(["AT", "DE", "US"])
        late = "yes" if amount + 30 * (country == "US") + rng.normal(0, 10) > 60 else "no"
        age = "" if k % 10 == 4 else f"{rng.integers(18, 90)}"
        lines.append(f'"o,{k}",{amount:.2f},{"" if k % 25 == 7 else country},{age},{late}')
    (folder / "orders.csv").write_text("\n".join(lines) + "\n")
    return "orders.csv"


def test_all_gaps_are_named_at_once_with_the_options_that_repair_them(scoreline, orders):
    code, _, err = scoreline("train", orders, *LABEL, "--drop", "key", "--impute", "none")
    assert code == 1
    assert "columns 'country' (8 rows), 'age' (20 rows), row 5: values are missing" in err
    assert "orders.csv, line 6" in err
    assert "--impute mean" in err
    assert "--drop country,age" in err
    assert "impute=" not in err
    assert "drop=" not in err
    for repair in ((), ("--impute", "mean"), ("--impute", "zero"), ("--no-indicators",)):
        assert scoreline("train", orders, *LABEL, "--drop", "key", *repair)[0] == 0
    assert scoreline("train", orders, *LABEL, "--drop", "key,country,age", "--impute", "none")[0] == 0


def test_missing_values_are_filled_and_marked_and_a_note_says_so(scoreline, as_json, orders):
    note = (
        "2 columns have missing values: numbers are filled with the mean, and marked by an indicator feature; missing text is "
        "a category of its own: 'country' (8 rows), 'age' (20 rows)"
    )
    for command in ("train", "info"):
        code, _, err = scoreline(command, orders, *LABEL, "--drop", "key")
        assert code == 0
        assert err.count(f"note: {note}\n") == 1
        assert as_json(command, orders, *LABEL, "--drop", "key")["notes"] == [note]
        assert "note" not in scoreline(command, orders, *LABEL, "--drop", "key", "--quiet")[2]
    assert load_model("model.npz").encoding_.names[-2:] == ["age", "age is missing"]
    err = scoreline("convert", orders, "with_zero", *LABEL, "--drop", "key", "--impute", "zero", "--no-indicators")[2]
    assert "numbers are filled with 0; missing text is" in err


def test_the_drop_hint_names_all_columns_with_gaps(scoreline, folder):
    names = [f"c{k}" for k in range(49)]
    rows = [",".join(["1"] * 49 + ["0"]), ",".join([""] * 49 + ["1"])]
    (folder / "gaps49.csv").write_text(",".join([*names, "y"]) + ",last\n" + "".join(f"{row},3\n" for row in rows))
    _, _, err = scoreline("train", "gaps49.csv", "--label", "y", "--impute", "none")
    assert "'c19' (1 rows) and 29 more" in err
    hint = err[err.index("--drop") :].split()[:2]
    assert hint == ["--drop", ",".join(names)]
    assert scoreline("train", "gaps49.csv", "--label", "y", "--impute", "none", *hint)[0] == 0


def test_rare_categories_are_grouped_and_a_note_says_so(scoreline, folder):
    towns = [f"rare{k}" for k in range(60)] + ["big"] * 100
    (folder / "towns.csv").write_text("town,v,y\n" + "".join(f"{t},{k % 7},{k % 2}\n" for k, t in enumerate(towns)))
    code, _, err = scoreline("train", "towns.csv", "--label", "y")
    assert code == 0
    assert (
        "note: column 'town' has 61 categories: 60 of them have fewer than 10 rows and are grouped as one feature"
        in err
    )
    assert load_model("model.npz").encoding_.names == ["town=big", "town=(other)", "v"]
    assert scoreline("train", "towns.csv", "--label", "y", "--min-category-rows", "1")[0] == 0
    assert load_model("model.npz").n_features_in_ == 62


def test_info_goes_on_where_values_are_missing(scoreline, as_json, orders):
    code, out, err = scoreline("info", orders, *LABEL, "--drop", "key", "--impute", "none")
    assert code == 0
    assert "rows" in out
    assert "warning: orders.csv, line 6: columns 'country' (8 rows)" in out
    assert "are missing" not in err
    found = as_json("info", orders, *LABEL, "--drop", "key", "--impute", "none")
    assert found["rows"] == 200
    assert any("--impute mean" in text for text in found["warnings"])


def test_info_still_fails_for_other_reasons(scoreline, orders):
    code, _, err = scoreline("info", orders, "--label", "charge")
    assert code == 1
    assert "charge" in err


@for_each("command", ["info", "train"])
def test_a_column_that_names_rows_is_pointed_out(scoreline, orders, command):
    code, _, err = scoreline(command, orders, *LABEL, "--impute", "mean")
    assert code == 0
    assert "column 'key' has 200 different values in 200 rows" in err
    assert "--drop key" in err
    _, _, err = scoreline(command, orders, *LABEL, "--impute", "mean", "--drop", "key")
    assert "different values" not in err


def test_classes_keep_their_names(scoreline, orders):
    for options in ((), ("--positive", "yes"), ("--positive", "no")):
        _, out, _ = scoreline("info", orders, *LABEL, "--drop", "key", *options)
        assert "True" not in out
        assert f"positive class            {'no' if 'no' in options else 'yes'}:" in out


def test_compare_ends_with_the_command_that_trains_what_was_judged(scoreline, as_json, orders):
    given = (orders, *LABEL, "--positive", "yes", "--drop", "key", "--impute", "zero", "--measure", "fbeta")
    given = (*given, "--no-indicators", "--min-category-rows", "5")
    found = as_json(
        "compare", *given, "--measure-param", "beta=2", "--scaling", "maxabs", "--alphas", "1e-3,1e-5", "--splits", "2"
    )
    words = shlex.split(found["train"])
    assert words[:2] == ["scoreline", "train"]
    best = next(c for c in found["contenders"] if c["name"] == found["best"])
    alpha = words[words.index("--alpha") + 1]
    assert alpha == ("auto" if best["costs"] else str(sorted(best["alphas"])[1]))
    for option in ("--positive", "--impute", "--no-indicators", "--min-category-rows", "--measure-param", "--scaling"):
        assert option in words
    code, out, _ = scoreline(*words[1:])
    assert code == 0
    assert "saved in model.npz" in out


def test_predict_keeps_a_key(scoreline, as_json, orders, folder):
    assert scoreline("train", orders, *LABEL, "--drop", "key", "--impute", "mean", "--probability")[0] == 0
    code, out, err = scoreline("predict", "model.npz", orders, "--keep", "key,age")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["key", "age", "prediction", "score", "probability"]
    assert [row["key"] for row in rows] == [f"o,{k}" for k in range(200)]
    assert rows[4]["age"] == ""
    assert f"200 predictions, {sum(row['prediction'] == 'yes' for row in rows)} of them yes" in err
    plain = list(csv.DictReader(io.StringIO(scoreline("predict", "model.npz", orders)[1])))
    assert [row["score"] for row in plain] == [row["score"] for row in rows]
    assert scoreline("predict", "model.npz", orders, "--keep", "key", "--out", "scores.csv")[0] == 0
    assert (folder / "scores.csv").read_text().startswith('key,prediction,score,probability\n"o,0",')
    found = as_json("predict", "model.npz", orders, "--keep", "key")
    assert found["key"][:2] == ["o,0", "o,1"]


@for_each(("keep", "why"), [("kex", "Did you mean 'key'"), ("score", "rename it"), ("key,nothing", "nothing")])
def test_what_cannot_be_kept_is_said(scoreline, orders, folder, keep, why):
    text = (folder / orders).read_text().replace("age", "score", 1)
    (folder / "other.csv").write_text(text)
    file = "other.csv" if keep == "score" else orders
    columns = "key,score" if keep == "score" else "key,age"
    assert scoreline("train", file, *LABEL, "--drop", columns, "--impute", "mean")[0] == 0
    code, _, err = scoreline("predict", "model.npz", file, "--keep", keep)
    assert code == 1
    assert why in err


def test_text_without_columns_has_no_key(scoreline, folder):
    assert scoreline("train", "two.svm")[0] == 0
    code, _, err = scoreline("predict", "model.npz", "two.svm", "--keep", "key")
    assert code == 1
    assert "--keep copies columns of a table" in err


def test_words_of_the_library_become_options():
    for text, expected in (
        ("pass drop=['a', 'b c'] or missing=['?']", "pass --drop 'a,b c' or --missing '?'"),
        ("impute='mean', or label='y'; n=3", "--impute mean, or --label y; n=3"),
        ("drop=('a',) and missing=[...], or separator=...", "--drop a and --missing, or --separator"),
        ("pass separator=';' or separator='\\t'?", "pass --separator ';' or --separator $'\\t'?"),
        ("label=None, expected", "no --label, expected"),
        ("folder='x y' exists; pass overwrite=True", "x y exists; pass --overwrite"),
        ("zero_based=False; pass zero_based='auto'", "--no-zero-based; leave --no-zero-based out"),
        ("measure_params={'beta': 2} or scaling=None", "--measure-param beta=2 or --scaling none"),
        ("random_state=3, alpha=1e-05, without device=", "--seed 3, --alpha 1e-05, without --device"),
        ("Raise max_iter; change test_share", "Raise --max-iter; change --test-share"),
        ("in.put/label=3/x.csv, 'test_share', my_max_iter", "in.put/label=3/x.csv, 'test_share', my_max_iter"),
    ):
        assert as_options(text) == expected
