"""Encodings: what is learnt does not depend on the order of rows, survives JSON, and is applied row by row."""

import copy
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from cases import case
from scoreline import MeasureClassifier
from scoreline.io import read_data
from scoreline.io.columns import Column, label_values
from scoreline.io.encoding import Encoding
from tiers import examples


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def learn(*batches, **arguments):
    return Encoding.learn(lambda: iter(batches), **arguments)


def example(**arguments):
    first = batch(age=[1.5, 2.5], color=["red", "blue"], ok=[True, False], y=["a", "b"])
    second = batch(age=[3.5, 0.5], color=["red", "green"], ok=[True, True], y=["b", "c"])
    return learn(first, second, label="y", **arguments), (first, second)


def test_what_is_learnt():
    encoding, (first, second) = example()
    assert encoding.names == ["age", "color=blue", "color=green", "color=red", "ok"]
    assert encoding.n_features == 5
    assert encoding.rows == 4
    assert encoding.labels == ["a", "b", "c"]
    assert encoding.storage == "dense"
    assert encoding.columns[1] == Column("color", "category", ("blue", "green", "red"), None)
    assert encoding.encode(first).tolist() == [[1.5, 0, 0, 1, 1], [2.5, 1, 0, 0, 0]]
    assert encoding.encode(second).tolist() == [[3.5, 0, 0, 1, 1], [0.5, 0, 1, 0, 1]]
    assert encoding.encode(first.slice(1, 0)).shape == (0, 5)
    assert repr(encoding) == "Encoding(2 numbers, 1 categories, n_features=5)"


def test_the_order_of_rows_does_not_matter():
    encoding, (first, second) = example()
    assert learn(second, first, label="y") == encoding
    assert learn(pa.Table.from_batches([second, first]).combine_chunks().to_batches()[0], label="y") == encoding
    assert learn(first, label="y") != encoding


def test_impute_mean_and_zero():
    rows = batch(v=[1.0, None, float("nan"), 4.0], w=[1, 2, 3, 4], c=["a", None, "?", "b"])
    mean, zero = learn(rows, impute="mean"), learn(rows, impute="zero")
    assert [c.fill for c in mean.columns] == [2.5, 2.5, "?"]
    assert [c.fill for c in zero.columns] == [0.0, 0.0, "?"]
    assert mean.names == zero.names == ["v", "v is missing", "w", "c=?", "c=a", "c=b"]
    assert mean.encode(rows)[:, 0].tolist() == [1, 2.5, 2.5, 4]
    assert zero.encode(rows)[:, 0].tolist() == [1, 0, 0, 4]
    assert mean.encode(rows)[:, 1].tolist() == zero.encode(rows)[:, 1].tolist() == [0, 1, 1, 0]
    assert mean.encode(rows)[:, 3].tolist() == [0, 1, 1, 0]
    assert mean.filled == {}
    assert mean.encode(batch(v=pa.nulls(1), w=pa.nulls(1), c=pa.nulls(1))).tolist() == [[2.5, 1, 2.5, 1, 0, 0]]
    assert mean.filled == {"w": 1}
    mean.forget_unseen()
    assert mean.filled == {}


def test_missing_values_are_filled_by_default_or_refused():
    rows = batch(v=[1.0, None, 4.0], w=[1, 2, 3])
    assert learn(rows) == learn(rows, impute="mean")
    assert learn(rows, indicators=False).names == ["v", "w"]
    for impute in (None, "none"):
        with pytest.raises(ValueError, match="column 'v', row 2: the value is missing"):
            learn(rows, impute=impute)
        assert learn(rows.slice(2), impute=impute).impute is None


def test_what_was_done_about_missing_values_is_logged(caplog):
    caplog.set_level("INFO", "scoreline")
    rows = batch(v=[1.0, None, 4.0], w=[1, None, None], c=["a", "b", None])
    learn(rows)
    assert caplog.messages == [
        "3 columns have missing values: numbers are filled with the mean, and marked by an indicator feature; missing text is "
        "a category of its own: 'v' (1 row), 'w' (2 rows), 'c' (1 row)"
    ]
    caplog.clear()
    learn(rows.select(["v"]), impute="zero", indicators=False)
    assert caplog.messages == ["1 column has missing values: numbers are filled with 0: 'v' (1 row)"]


def test_columns_without_any_value_are_left_out_with_a_warning():
    rows = batch(v=[1.0, 2.0], w=pa.nulls(2), c=pa.array([None, None], pa.string()))
    for impute in ("mean", "zero"):
        with pytest.warns(UserWarning, match=r"column\(s\) 'w', 'c' hold no values at all and are left out"):
            encoding = learn(rows, impute=impute)
        assert encoding.names == ["v"]
        assert encoding.encode(batch(v=[3.0])).tolist() == [[3.0]]


def test_a_mean_that_overflows_is_no_error_where_nothing_is_missing():
    encoding = learn(batch(v=[1e308, 1e308]))
    assert encoding.columns == [Column("v", "number")]
    with pytest.raises(ValueError, match="column 'v', row 1: the value is missing"):
        encoding.encode(batch(v=pa.nulls(1)))


def test_rare_categories_of_a_column_with_many_are_one_feature(caplog):
    caplog.set_level("INFO", "scoreline")
    texts = [f"often{k}" for k in range(45) for _ in range(10)] + [f"rare{k}" for k in range(6) for _ in range(9)]
    first, second = batch(c=texts[::2]), batch(c=[*texts[1::2], None])
    encoding = learn(first, second)
    assert encoding.columns[0].categories == (*sorted(f"often{k}" for k in range(45)), "?")
    assert encoding.columns[0].other
    assert encoding.names[-2:] == ["c=?", "c=(other)"]
    assert encoding.storage == "csr"
    places = encoding.encode(batch(c=["rare0", "unseen", "often0", None])).toarray().nonzero()[1].tolist()
    assert places == [46, 46, 0, 45]
    assert encoding.unseen == {}
    message = "column 'c' has 51 categories: 6 of them have fewer than 10 rows and are grouped as one feature"
    assert message in caplog.messages
    assert learn(second, first) == encoding
    assert learn(first, second, min_category_rows=11).columns[0].categories == ("?",)
    assert learn(first, second, min_category_rows=1).n_features == 52
    fewer = batch(c=[text for text in texts if text != "rare0"])
    assert learn(fewer).n_features == 50
    assert not learn(fewer).columns[0].other


def test_numbers_as_categories_are_counted_in_their_shortest_form():
    numbers = [f"{k}{end}" for k in range(60) for end in (".0", "") for _ in range(5)]
    encoding = learn(batch(k=numbers), categories=["k"])
    assert encoding.columns == [Column("k", "category", tuple(map(str, range(60))))]
    mixed = batch(k=[*numbers, "x", "y"])
    encoding = learn(mixed, categories=["k"], min_category_rows=3)
    assert encoding.columns == [Column("k", "category", tuple(map(str, range(60))), other=True)]
    assert np.unique(encoding.encode(mixed).indices, return_counts=True)[1].tolist() == [10] * 60 + [2]


def test_a_column_of_row_names_is_one_feature_and_warns():
    with pytest.warns(UserWarning, match="column 'key' has 200 different values in 200 rows: if it names rows"):
        encoding = learn(batch(v=[1.0] * 200, key=[f"id{k}" for k in range(200)]))
    assert encoding.names == ["v", "key=(other)"]


def test_the_model_ranks_far_better_with_indicators():
    """The chance of a missing value depends on the label, and no value does: only the indicators tell the classes apart."""
    rng = np.random.default_rng(0)
    y = rng.random(4000) < 0.1
    columns = {
        f"v{k}": np.where(rng.random(4000) < np.where(y, 0.5, 0.05), np.nan, rng.normal(size=4000)) for k in range(4)
    }
    table = pa.table({**columns, "y": y})
    reached = {}
    for indicators in (True, False):
        data = read_data(table, "y", indicators=indicators)
        clf = MeasureClassifier("average_precision", scaling="standard").fit(data.X[:2000], data.y[:2000])
        reached[indicators] = average_precision_score(data.y[2000:], clf.decision_function(data.X[2000:]))
    assert reached[True] > 0.4
    assert reached[False] < 0.25


def test_features_of_a_table_with_13707_categories_stay_few():
    """Most categories have one row: as features they would make a matrix that is nearly all columns."""
    texts = [f"name{k}" for k in range(13_707)] + [f"town{k % 20}" for k in range(6000)]
    with pytest.warns(UserWarning, match="13,727 different values"):
        assert learn(batch(c=texts)).n_features == 21


def test_a_missing_category_is_unseen_where_none_was_missing():
    encoding = learn(batch(c=["a", "b"], v=[1, 2]), impute="zero")
    assert encoding.encode(batch(c=["b", None, "z"], v=[1, None, 2])).tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 2]]
    assert encoding.unseen == {"c": 2}
    encoding.encode(batch(c=["x"], v=[1]))
    assert encoding.unseen == {"c": 3}
    encoding.forget_unseen()
    assert encoding.unseen == {}


def test_csr_is_canonical():
    rng = np.random.default_rng(0)
    codes, values = rng.integers(0, 40, 300), rng.integers(-1, 2, 300)
    rows = batch(v=values, c=[f"c{k:02d}" for k in codes], w=values * 0.5)
    encoding = learn(rows)
    X = encoding.encode(rows)
    assert encoding.storage == "csr"
    assert isinstance(X, sp.csr_array)
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert (X.data != 0).all()
    expected = np.column_stack([values, np.eye(40)[codes], values * 0.5])
    np.testing.assert_array_equal(X.toarray(), expected)


def test_storage_depends_on_the_share_that_can_be_filled():
    assert Encoding([Column("c", "category", ("a", "b", "c", "d"))]).storage == "dense"
    assert Encoding([Column("c", "category", ("a", "b", "c", "d", "e"))]).storage == "csr"
    assert Encoding([Column("v", "number")]).storage == "dense"


def test_numbers_as_categories_have_one_text():
    floats = [3.0, -0.0, 0.1, 1e10, 1e300, -2.5, float(2**60)]
    encoding = learn(batch(k=floats), categories=["k"])
    assert encoding.columns[0].categories == ("-2.5", "0", "0.1", "3", "10000000000", "1152921504606846976", "1e+300")
    assert learn(batch(k=[3, 0, 10**10, 2**60]), categories=["k"]).columns[0].categories == (
        "0",
        "3",
        "10000000000",
        "1152921504606846976",
    )
    hits = encoding.encode(batch(k=["3.00", "-0.0", "0.10", "1e+300", "3.01"])).toarray().nonzero()
    assert hits[1].tolist() == [3, 1, 2, 6]
    assert encoding.unseen == {"k": 1}
    truth = learn(batch(k=[True, False]), categories=["k"])
    assert truth.names == ["k=false", "k=true"]
    assert truth.encode(batch(k=["True", "FALSE"])).tolist() == [[0, 1], [1, 0]]


def test_dictionaries():
    words = pa.DictionaryArray.from_arrays(pa.array([1, 2, None, 1]), pa.array(["unused", "x", None, "z"]))
    encoding = learn(pa.record_batch([words, pa.array([1, 2, 3, 4])], names=["c", "v"]), impute="zero")
    assert encoding.columns[0] == Column("c", "category", ("x", "?"), "?")
    numbers = pa.array([5, 7, 5]).dictionary_encode()
    assert learn(pa.record_batch([numbers], names=["c"])).names == ["c=5", "c=7"]
    declared = pa.array(["5", "7"]).dictionary_encode()
    assert learn(pa.record_batch([declared], names=["c"])).names == ["c=5", "c=7"]
    with pytest.raises(ValueError, match="column 'c' has type list"):
        learn(pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[1]]))], names=["c"]))


def test_types_of_numbers():
    for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.decimal128(9, 2), pa.bool_()):
        rows = pa.record_batch([pa.array([0, 1, None], pa.int8()).cast(kind)], names=["v"])
        assert learn(rows, impute="zero").encode(rows).tolist() == [[0, 0], [1, 0], [0, 1]], kind


def test_a_source_whose_types_settle_is_read_again():
    settled = [False]

    def batches():
        yield batch(v=["1"] if settled[0] else [1.0])
        settled[0] = True
        yield batch(v=["x"])

    assert Encoding.learn(batches).names == ["v=1", "v=x"]
    with pytest.raises(ValueError, match="types of columns differ between batches"):
        learn(batch(v=[1.0]), batch(v=["x"]))


def test_learning_checks_its_arguments():
    rows = batch(v=[1], y=[0])
    for label, arguments, message in (
        ("z", {}, "label='z' is unknown"),
        ("y", {"drop": ["z"]}, "drop='z' is unknown"),
        ("y", {"categories": ["z"]}, "categories='z' is unknown"),
        ("y", {"categories": "v"}, "categories='v' must be a list"),
        ("y", {"categories": ["v"], "drop": ["v"]}, "column 'v' is named more than once"),
        ("y", {"drop": ["y"]}, "column 'y' is named more than once"),
        ("y", {"drop": ["v"]}, "no column is left"),
    ):
        with pytest.raises(ValueError, match=message):
            read_data(rows, label, **arguments)
    with pytest.raises(ValueError, match="no rows"):
        learn(rows.slice(0, 0))
    with pytest.raises(ValueError, match="no rows"):
        learn()


def test_rows_in_messages_count_from_the_first_batch():
    with pytest.raises(ValueError, match="column 'v', row 4: the value is missing"):
        learn(batch(v=[1.0, 2.0]), batch(v=[1.0, None]), impute=None)
    encoding = learn(batch(v=[1.0], y=[0]), label="y")
    with pytest.raises(ValueError, match="column 'v', row 12: got inf"):
        encoding.encode(batch(v=[1.0, np.inf]), first_row=10)
    with pytest.raises(ValueError, match="column 'y', row 11: the label is missing"):
        label_values("y", pa.array([None]), 10)
    with pytest.raises(ValueError, match="'v' are missing, the encoding was learnt with them; got columns 'y'"):
        encoding.encode(batch(y=[1.0]))


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
values = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6)


@examples(50)
@given(
    st.lists(
        st.tuples(st.none() | values, st.none() | names.map("t".__add__), st.integers(-3, 3)), min_size=1, max_size=15
    ),
    st.sampled_from(["mean", "zero"]),
)
def test_json_round_trip(rows, impute):
    v, c, y = (list(column) for column in zip(*rows, strict=True))
    table = pa.record_batch([pa.array([1.0, *v]), pa.array(["t", *c]), pa.array([0, *y])], names=["v", "c=", "y"])
    encoding = learn(table, label="y", impute=impute, missing=["?"])
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    assert again.names == encoding.names
    assert again.missing == ("?",)
    for other in (again, pickle.loads(pickle.dumps(encoding)), copy.deepcopy(encoding)):
        X, expected = other.encode(table), encoding.encode(table)
        assert type(X) is type(expected)
        np.testing.assert_array_equal(sp.csr_array(X).toarray(), sp.csr_array(expected).toarray())


def test_json_is_plain():
    content = example(impute="mean")[0].to_json()
    assert content["columns"][0] == {
        "name": "age", "kind": "number", "categories": [], "fill": 2.0, "indicator": False, "other": False,
    }  # fmt: skip
    assert json.loads(json.dumps(content)) == content


MIXED = Encoding(
    [
        Column("age", "number", fill=2.5, indicator=True),
        Column("color", "category", ("blue", "red", "?"), "?", other=True),
        Column("size", "number"),
    ],
    impute="mean",
)


def test_indicators_and_other_are_features():
    assert MIXED.names == ["age", "age is missing", "color=blue", "color=red", "color=?", "color=(other)", "size"]
    assert MIXED.n_features == 7
    rows = batch(age=[1.0, None, 4.0], color=["red", None, "pink"], size=[7.0, 8.0, 9.0])
    expected = [[1, 0, 0, 1, 0, 0, 7], [2.5, 1, 0, 0, 1, 0, 8], [4, 0, 0, 0, 0, 1, 9]]
    assert MIXED.encode(rows).tolist() == expected
    assert MIXED.unseen == {}


def test_names_of_added_features_avoid_those_of_columns():
    columns = [
        Column("a", "number", fill=0.0, indicator=True),
        Column("a is missing", "number", fill=0.0, indicator=True),
        Column("c", "category", ("(other)",), other=True),
        Column("c=(other)_", "number"),
    ]
    assert Encoding(columns).names == [
        "a", "a is missing_", "a is missing", "a is missing is missing", "c=(other)", "c=(other)__", "c=(other)_",
    ]  # fmt: skip


def test_json_carries_indicators_and_other_as_dict_and_as_text():
    content = MIXED.to_json()
    for given_content in (content, json.dumps(content)):
        again = Encoding.from_json(given_content)
        assert again == MIXED
        assert again.columns == MIXED.columns


def test_documents_of_version_1_still_load():
    content = example(impute="mean")[0].to_json()
    old = {**content, "version": 1}
    old["columns"] = [{key: c[key] for key in ("name", "kind", "categories", "fill")} for c in content["columns"]]
    assert Encoding.from_json(old) == Encoding.from_json(content)


texts = st.none() | st.sampled_from(["a", "b", "c0", "c1", "c19", "1.0", "unlisted", "(other)", ""])
numbers_or_gaps = st.none() | st.sampled_from([0.0, -1.5, 3.0, float("nan")])


@st.composite
def encodings(draw):
    columns = []
    for k in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            columns.append(
                Column(f"n{k}", "number", fill=draw(st.sampled_from([0.0, 2.5])), indicator=draw(st.booleans()))
            )
        else:
            known = draw(st.sampled_from([(), ("a",), ("1", "3"), ("a", "b", "?"), tuple(f"c{i}" for i in range(20))]))
            fill = "?" if "?" in known else None
            other = draw(st.booleans()) or not known
            columns.append(Column(f"c{k}", "category", known, fill, other=other))
    return Encoding(columns, impute="mean")


def slow_row(encoding, row):
    """Return the features of a row, and which columns hold a category that is unseen: an independent reference."""
    features, unseen = [], []
    for column, value in zip(encoding.columns, row, strict=True):
        if column.kind == "number":
            lost = value is None or value != value
            features.append(column.fill if lost else value)
            features += [float(lost)] if column.indicator else []
            continue
        text = column.fill if value is None else value
        text = "1" if text == "1.0" and column.categories == ("1", "3") else text
        hit = [float(text == category) for category in column.categories]
        unlisted = text is not None and not any(hit)
        unseen += [column.name] if not any(hit) and not (unlisted and column.other) else []
        features += hit + ([float(unlisted)] if column.other else [])
    return features, unseen


@examples(200)
@given(encodings(), st.data())
def test_encode_equals_a_slow_reference(encoding, data):
    cell = [numbers_or_gaps if c.kind == "number" else texts for c in encoding.columns]
    all_missing = data.draw(st.booleans())
    rows = data.draw(st.lists(st.tuples(*(st.none() if all_missing else each for each in cell)), max_size=6))
    types = [pa.float64() if c.kind == "number" else pa.string() for c in encoding.columns]
    arrays = [pa.array([row[k] for row in rows], kind) for k, kind in enumerate(types)]
    table = pa.record_batch(arrays, names=[c.name for c in encoding.columns])
    X = encoding.encode(table)
    assert sp.issparse(X) == (encoding.storage == "csr")
    if sp.issparse(X):
        assert X.has_canonical_format
        assert (X.data != 0).all()
    expected = [slow_row(encoding, row) for row in rows]
    dense = np.array([features for features, _ in expected]).reshape(len(rows), encoding.n_features)
    np.testing.assert_array_equal(sp.csr_array(X).toarray(), dense)
    unseen = [name for _, names in expected for name in names]
    assert encoding.unseen == {name: unseen.count(name) for name in unseen}
    again = Encoding.from_json(json.dumps(encoding.to_json()))
    assert again == encoding
    assert again.n_features == len(set(again.names))


def changed(path, value):
    content = example(impute="mean")[0].to_json()
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


HOSTILE = [
    ([], "got list, expected a dict"),
    (None, "got NoneType, expected a dict"),
    ({}, "expected a dict with the keys 'columns', 'impute', 'label'"),
    (changed(["extra"], 1), "expected a dict with the keys"),
    (changed([3], 1), "expected a dict with the keys"),
    (changed(["version"], 3), "version=3, expected 1 to 2"),
    (changed(["version"], 1), r"columns\[0\]: got .*'indicator'"),
    (changed(["version"], True), "version: got True, expected int"),
    (changed(["columns"], {}), "columns: got dict, expected a list"),
    (changed(["columns"], []), "at least one column"),
    (changed(["columns"], ["age"]), "columns: got 'age', expected dict"),
    (changed(["columns", 0], {"name": "age"}), r"columns\[0\]: got .*expected a dict with the keys"),
    (changed(["columns", 0, "name"], 3), r"columns\[0\]: name and kind: got 3, expected str"),
    (changed(["columns", 0, "name"], "color"), "column 'color' occurs more than once"),
    (changed(["columns", 0, "name"], "color=red"), "feature 'color=red' occurs more than once"),
    (changed(["columns", 0, "name"], "y"), "column 'y' occurs more than once"),
    (changed(["columns", 0, "kind"], "text"), "kind of column 'age'='text' is unknown"),
    (changed(["columns", 0, "kind"], None), "got None, expected str"),
    (changed(["columns", 0, "fill"], float("nan")), r"columns\[0\]: fill: got nan"),
    (changed(["columns", 0, "fill"], float("inf")), r"columns\[0\]: fill: got inf"),
    (changed(["columns", 0, "fill"], 10**400), r"columns\[0\]: fill: got 1000.*, expected float"),
    (changed(["columns", 0, "fill"], "mean"), "column 'age': fill='mean' must be"),
    (changed(["columns", 0, "fill"], [1]), "fill: got .1., expected float"),
    (changed(["columns", 0, "fill"], True), "fill: got True, expected float"),
    (changed(["columns", 0, "categories"], ["a"]), "numbers have no categories"),
    (changed(["columns", 1, "categories"], "red"), r"columns\[1\]: categories: got str, expected a list"),
    (changed(["columns", 1, "categories"], ["a", 1]), r"columns\[1\]: categories: got 1, expected str"),
    (changed(["columns", 1, "categories"], ["a", "a"]), r"categories: 'a' occurs more than once"),
    (changed(["columns", 1, "fill"], "none"), "column 'color': fill='none' must be"),
    (changed(["columns", 1, "fill"], 1.0), "column 'color': fill=1.0 must be"),
    (changed(["columns", 0, "indicator"], 1), r"columns\[0\]: indicator and other: got 1, expected bool"),
    (changed(["columns", 1, "other"], None), r"columns\[1\]: indicator and other: got None, expected bool"),
    (changed(["columns", 0, "other"], True), "column 'age': other=True needs a category column"),
    (changed(["columns", 1, "indicator"], True), "column 'color': indicator=True needs a number column with a fill"),
    ("{", "the encoding is not valid JSON .*: got '{'"),
    ("[" * 100_000, "the encoding is not valid JSON"),
    ("[]", "got list, expected a dict"),
    (changed(["label"], 1), "label: got 1, expected str or NoneType"),
    (changed(["labels"], "ab"), "labels: got str, expected a list"),
    (changed(["labels"], [[1]]), "labels: got .1., expected bool"),
    (changed(["labels"], [1, 1]), "labels: 1 occurs more than once"),
    (changed(["labels"], [float("nan")]), "labels: got nan"),
    (changed(["rows"], "3"), "rows: got '3', expected int"),
    (changed(["rows"], -1), "rows=-1 must be"),
    (changed(["columns", 1, "categories"], ["\ud800"]), r"columns\[1\]: categories: got '.ud800'"),
    (changed(["missing"], [None]), "missing: got None, expected str"),
]


def test_hostile_json():
    for content, message in HOSTILE:
        with case(message), pytest.raises(ValueError, match=message):
            Encoding.from_json(content)
