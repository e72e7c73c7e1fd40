"""StringOperator: k-mers of sequences, compared with features that are counted one by one."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from storages import kmer_features, random_rows

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV, load_model
from scoreline.export import to_json
from scoreline.operators import Sequences, StringOperator, as_operator, strongest_motifs
from scoreline.operators import strings as strings_module
from scoreline.risks import LogisticRisk
from scoreline.runtime import parallel
from scoreline.testing import check_operator
from tiers import TIER, tiered

OPTIONS = [
    (kind, degree, least, alphabet, norm)
    for kind, degree, least in (
        ("weighted_degree", 1, None),
        ("weighted_degree", 4, 2),
        ("weighted_degree", 7, None),  # longer than the sequences
        ("spectrum", 4, None),
        ("spectrum", 3, 1),
    )
    for alphabet in ("ab", "ACGT")
    for norm in (None, "l1", "l2")
    if degree < 5 or alphabet == "ab"
]


def planted(n=600, length=30, seed=0):
    """Return DNA whose positive rows have GATTAC from letter 10 on, and labels."""
    rng = np.random.default_rng(seed)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), size=(n, length))
    y = rng.random(n) < 0.4
    letters[y, 10:16] = np.frombuffer(b"GATTAC", np.uint8)
    return letters.view(f"S{length}").ravel(), y


@for_each(("kind", "degree", "min_degree", "alphabet", "norm"), tiered(OPTIONS, 1))
def test_features_are_those_counted_one_by_one(kind, degree, min_degree, alphabet, norm):
    options = {"degree": degree, "kind": kind, "alphabet": alphabet, "min_degree": min_degree, "norm": norm}
    rows = random_rows(alphabet, *((5, 5) if kind == "weighted_degree" else (0, 12)))
    operator, dense = StringOperator(rows, **options), kmer_features(rows, **options)
    check_operator(operator, dense)
    assert (operator.largest >= dense.max(axis=0) * (1.0 - 1e-15)).all()
    if norm is None and kind == "spectrum":
        assert np.array_equal(operator.largest, dense.max(axis=0)), "counts are whole numbers, known exactly"


def test_inner_products_are_the_weighted_degree_kernel():
    rows, d = random_rows(n=6), 4
    X = next(StringOperator(rows, degree=d).row_blocks(100)).data.toarray()
    for i, x in enumerate(rows):
        for j, z in enumerate(rows):
            beta = [2.0 * (d - k + 1) / (d * (d + 1)) for k in range(1, d + 1)]
            known = [(q, k) for k in range(1, d + 1) for q in range(len(x) - k + 1) if "." not in x[q : q + k]]
            kernel = sum(beta[k - 1] for q, k in known if x[q : q + k] == z[q : q + k])
            assert abs(X[i] @ X[j] - kernel) < 1e-13, (i, j)


def test_rows_are_taken_as_bytes_text_lists_and_series():
    rows = ["ACGT", "AC", "", "NACG", "GÄ\U0001f600T"]
    coded = Sequences(rows)
    assert coded.length is None
    assert coded.letters.tolist() == [0, 1, 2, 3, 0, 1, 255, 0, 1, 2, 2, 255, 255, 3]
    assert coded.starts.tolist() == [0, 4, 6, 6, 10, 14]
    plain = rows[:4]
    expected = Sequences(plain)
    for same in (
        np.array(plain), np.array(plain, dtype="S"), np.array(plain, dtype=object), tuple(plain), pd.Series(plain),
        [row.encode() for row in plain], np.array(plain).astype(">U4"), np.array([*plain, "A"])[::-1][1:][::-1],
    ):  # fmt: skip
        found = Sequences(same)
        assert np.array_equal(found.letters, expected.letters), type(same)
        assert np.array_equal(found.starts, expected.starts), type(same)
    assert Sequences(np.array(["ACG", "TTT"])).length == 3
    assert Sequences(["ACG", "TTT"]).starts is None


def test_letters_take_one_byte_each_and_blocks_bound_the_rest():
    n, length = 40_000, 200
    rows = (
        np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), size=(n, length)).view(f"S{length}").ravel()
    )
    StringOperator(rows[:10], degree=4)
    tracemalloc.start()
    operator = StringOperator(rows, degree=4)
    assert operator.sequences.letters.nbytes == n * length
    now, peak = tracemalloc.get_traced_memory()
    columns = 8 * operator.shape[1]
    assert now < n * length + 4 * columns + 100_000
    # Blocks of 4 MB are coded: masks, places in the table and codes of one take 60 bytes per letter at most.
    assert peak < n * length + 60 * (1 << 22)
    tracemalloc.reset_peak()
    operator.rmatvec(operator.matvec(np.ones(operator.shape[1])))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * length + 3 * 8 * n + 8 * columns + 200_000


@for_each("kind", ["weighted_degree", "spectrum"])
def test_bits_depend_on_neither_threads_nor_slabs_nor_a_list_of_all_rows(kind, monkeypatch):
    monkeypatch.setattr(parallel, "MIN_CHUNK_WORK", 1 << 10)
    monkeypatch.setattr(strings_module, "SPAN_BYTES", 1 << 10)
    rows, _ = planted(2000, 40)
    operator = StringOperator(rows, degree=4, kind=kind)
    rng = np.random.default_rng(0)
    w, u = rng.standard_normal(operator.shape[1]), rng.standard_normal(len(rows))
    z, g = operator.matvec(w), operator.rmatvec(u)
    lines = np.arange(len(rows))
    for threads in (1, 2, 5):
        with parallel.thread_limit(threads):
            assert np.array_equal(operator.matvec(w), z)
            assert np.array_equal(operator.rmatvec(u), g)
            assert np.array_equal(operator.matvec_rows(w, lines), z)
            assert np.array_equal(operator.rmatvec_rows(u, lines), g)
    monkeypatch.setattr(strings_module, "SLAB_LETTERS", 40 * 300)
    assert np.array_equal(operator.rmatvec(u), g)
    again = pickle.loads(pickle.dumps(operator))
    assert np.array_equal(again.matvec(w), z)


@for_each("kind", ["weighted_degree", "spectrum"])
def test_the_certificate_is_that_of_the_same_features_in_memory(kind):
    rows, y = planted()
    operator = StringOperator(rows, degree=3, kind=kind)
    dense = np.asarray(next(operator.row_blocks(len(rows))).data.toarray())
    mine, other = (MeasureClassifier("roc_auc", alpha=1e-3, tol=1e-4).fit(X, y) for X in (operator, as_operator(dense)))
    assert mine.status_ == other.status_ == "converged"
    assert mine.lower_bound_ <= other.objective_ + 1e-12
    assert other.lower_bound_ <= mine.objective_ + 1e-12
    assert abs(mine.objective(dense, y) - mine.objective_) < 1e-10


@for_each("measure", ["f1"] if TIER == "quick" else ["f1", "average_precision", "min_tpr_tnr", "precision_at_k"])
def test_measures_train_and_find_the_motif(measure):
    rows, y = planted()
    clf = MeasureClassifier(measure, alpha=1e-3).fit(StringOperator(rows[:400], degree=6), y[:400])
    test = StringOperator(rows[400:], **clf.string_features_)
    assert clf.score(test, y[400:]) > 0.95
    assert all(10 <= m.position <= 15 and "GATTAC"[m.position - 10 :].startswith(m.letters)
               for m in strongest_motifs(clf, 5))  # fmt: skip


def test_folds_weights_and_probabilities():
    rows, y = planted(300)
    X = StringOperator(rows, degree=3)
    clf = MeasureClassifierCV("f1", alphas=[1e-2, 1e-3], cv=3, probability=True).fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.string_features_ == X.string_features
    weight = np.random.default_rng(0).integers(1, 3, size=len(y))
    weighted = MeasureClassifier("roc_auc", risk="squared_hinge").fit(X, y, sample_weight=weight)
    repeated = MeasureClassifier("roc_auc", risk="squared_hinge").fit(
        StringOperator(np.repeat(rows, weight), degree=3), np.repeat(y, weight)
    )
    assert abs(weighted.objective_ - repeated.objective_) <= weighted.gap_ + repeated.gap_


def test_a_model_is_saved_with_its_features_and_refuses_others(tmp_path):
    rows, y = planted()
    clf = MeasureClassifier("roc_auc", alpha=1e-3).fit(StringOperator(rows, degree=3, kind="spectrum"), y)
    clf.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.string_features_ == clf.string_features_
    X = StringOperator(list(map(bytes.decode, rows[:50])), **loaded.string_features_)
    assert np.array_equal(loaded.decision_function(X), clf.decision_function(StringOperator(rows[:50], 3, "spectrum")))
    wrong = StringOperator(rows, degree=3, kind="spectrum", alphabet="TGCA")
    for call in (clf.predict, loaded.decision_function, lambda X: clf.score(X, y), lambda X: clf.tune_threshold(X, y)):
        with pytest.raises(ValueError, match="alphabet='TGCA', and the model was trained with alphabet='ACGT'"):
            call(wrong)
    with pytest.raises(ValueError, match="norm='l2', and the model was trained with norm=None"):
        clf.predict(StringOperator(rows, 3, "spectrum", norm="l2").on_rows(np.arange(9)))
    with pytest.raises(ValueError, match="an export has no such features"):
        to_json(clf)
    clf.fit(next(StringOperator(rows, degree=3).row_blocks(1000)).data, y)
    assert clf.string_features_ is None
    with pytest.raises(ValueError, match="not trained on a StringOperator"):
        strongest_motifs(clf)


def test_motifs_are_named_by_their_columns():
    for kind, alphabet in (("spectrum", "xyz"), ("weighted_degree", "ACGT")):
        row = "xzyyz" if alphabet == "xyz" else "ACCGT"
        X = StringOperator([row], degree=3, kind=kind, alphabet=alphabet, min_degree=2)
        entries = next(X.row_blocks(1)).data.indices
        found = {X.features.motif(int(column), 1.0)[:2] for column in entries}
        expected = {(row[q : q + k], q if kind == "weighted_degree" else None) for k in (2, 3) for q in range(6 - k)}
        assert found == expected


def test_wrong_input_says_what_to_do():
    good = ["ACGT", "ACGA"]
    cases = [
        ("ACGT", {}, "sequences is one str"),
        ([], {}, "0 sequences"),
        (["ACGT", None], {}, "sequence 1 is None .NoneType., expected str"),
        ([b"ACGT", "ACGT"], {}, "sequence 1 is 'ACGT' .str., expected bytes"),
        (np.zeros((2, 3)), {}, "2 dimensions"),
        (np.zeros(3), {}, "dtype float64"),
        (["ACGT", "ACG"], {}, "sequence 1 has 3 letters, expected 4 as in the first row"),
        (good, {"length": 5}, "sequence 0 has 4 letters, expected 5 as in the model"),
        (["", ""], {}, "length 0 have no k-mers"),
        (good, {"degree": 0}, "degree=0 must be an integer"),
        (good, {"degree": 2.5}, "degree=2.5 must be an integer"),
        (good, {"kind": "spectral"}, "kind='spectral'"),
        (good, {"norm": "max"}, "norm='max' must be None, 'l1' or 'l2'"),
        (good, {"min_degree": 3, "degree": 2}, "min_degree=3 must be at most degree=2"),
        (good, {"min_degree": 5}, "no k-mers of 5 letters and more"),
        (good, {"alphabet": "AAC"}, "must be a text of 2 to 255 different letters"),
        (good, {"alphabet": "A"}, "must be a text of 2 to 255 different letters"),
    ]
    for rows, options, message in cases:
        with pytest.raises(ValueError, match=message):
            StringOperator(rows, **options)
    with pytest.raises(MemoryError, match="more than half of the memory"):
        StringOperator(good, degree=30, kind="spectrum")
    with pytest.warns(UserWarning, match="No letter of the sequences is in the alphabet 'ACGT'"):
        assert not StringOperator(["acgt", "ccgt"], degree=2).matvec(np.ones(4 * 4 + 3 * 16)).any()


def test_rows_of_unknown_letters_and_empty_rows_score_the_intercept():
    rows, y = planted()
    X = StringOperator([*map(bytes.decode, rows), "", "N" * 30, "AC"], degree=3, kind="spectrum", norm="l2")
    clf = MeasureClassifier("roc_auc", alpha=1e-3).fit(X, [*y, False, True, False])
    assert np.array_equal(clf.decision_function(X)[-3:], np.repeat(clf.intercept_, 3))
    assert LogisticRisk().prepare(np.append(y, [False, True, False])).value(X.matvec(np.zeros(64))) > 0
