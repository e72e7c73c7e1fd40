"""Sequences on disk: the same bits as in memory, in bounded memory, and folders that are invalid."""

import pickle

import numpy as np
import pytest

from cases import for_each
from scoreline import MeasureClassifier
from scoreline.cli.main import main
from scoreline.io import convert, convert_sequences, open_mapped, open_sequences
from scoreline.operators import Sequences, StringOperator, as_operator

RNG = np.random.default_rng(0)
FIXED = ["".join(RNG.choice(list("ACGTN"), 30, p=[0.24] * 4 + [0.04])) for _ in range(300)]
RAGGED = [row[: RNG.integers(0, 30)] for row in FIXED]
Y = np.arange(300) % 3 == 0


def blocks(rows, size=70):
    for start in range(0, len(rows), size):
        yield rows[start : start + size], Y[start : start + size]


@for_each(("rows", "kind"), [(FIXED, "weighted_degree"), (FIXED, "spectrum"), (RAGGED, "spectrum")])
def test_products_have_the_bits_of_memory(rows, kind, tmp_path):
    folder = convert_sequences(blocks(rows), tmp_path / "dna")
    data = open_sequences(folder, verify=True)
    assert repr(data.X) == repr(Sequences(rows)).replace("Sequences", "MappedSequences")
    assert np.array_equal(data.y, Y)
    mapped, here = (StringOperator(X, degree=3, kind=kind, norm="l2") for X in (data.X, rows))
    w, u, lines = RNG.standard_normal(here.shape[1]), RNG.standard_normal(300), np.array([7, 250, 3])
    for operator in (mapped, pickle.loads(pickle.dumps(mapped))):
        assert np.array_equal(operator.matvec(w), here.matvec(w))
        assert np.array_equal(operator.rmatvec(u), here.rmatvec(u))
        assert np.array_equal(operator.matvec_rows(w, lines), here.matvec_rows(w, lines))
        assert np.array_equal(operator.rmatvec_rows(u[:3], lines), here.rmatvec_rows(u[:3], lines))
        assert np.array_equal(operator.largest, here.largest)
    part = StringOperator(open_sequences(folder, rows=(100, 180)).X, degree=3, kind=kind, norm="l2")
    assert np.array_equal(part.matvec(w), here.matvec(w)[100:180])
    first, second = (MeasureClassifier("roc_auc", alpha=1e-2).fit(X, Y) for X in (mapped, here))
    assert np.array_equal(first.coef_, second.coef_)


def test_blocks_are_read_ahead_and_single_rows_are_not(tmp_path):
    rows = open_sequences(convert_sequences((FIXED, Y), tmp_path / "dna")).X
    for lines in (None, np.arange(300), np.arange(40, 45), np.arange(299, 300)):
        assert rows.letters_for(lines) is rows.letters
    for lines in (np.array([3, 200]), np.array([5, 4, 3])):
        single = rows.letters_for(lines)
        assert single is not rows.letters
        assert np.array_equal(single, rows.letters)
    assert len(rows.letters_for(np.arange(0))) == 9000


def test_sequences_without_labels_and_in_one_block(tmp_path):
    folder = convert_sequences((RAGGED, None), tmp_path / "dna", alphabet="ACG")
    data = open_sequences(folder)
    assert data.y is None
    assert data.X.alphabet == "ACG"
    assert np.array_equal(data.X.letters, Sequences(RAGGED, "ACG").letters)
    convert_sequences((FIXED, Y), folder, overwrite=True)
    assert open_sequences(folder).X.length == 30


def test_wrong_folders_and_blocks_say_what_to_do(tmp_path, capsys):
    folder = convert_sequences((FIXED, Y), tmp_path / "dna")
    numbers = convert((np.eye(4), [0, 1, 0, 1]), tmp_path / "numbers")
    with pytest.raises(ValueError, match=r"holds sequences, which scoreline\.io\.open_sequences opens"):
        open_mapped(folder)
    with pytest.raises(ValueError, match=r"holds rows of numbers, which scoreline\.io\.open_mapped opens"):
        open_sequences(numbers)
    with pytest.raises(ValueError, match="make features of them first: StringOperator"):
        as_operator(open_sequences(folder).X)
    assert main(["train", str(folder), "--measure", "roc_auc", "--out", str(tmp_path / "m.npz")]) == 1
    assert "open_sequences opens" in capsys.readouterr().err
    for block, message in (
        ([FIXED], "a block is a list, expected a tuple"),
        ([(FIXED, [1, 2])], r"labels have shape \(2,\), expected one for each of 300 sequences"),
        ([("ACGT", [1])], "sequences is one str"),
        ([], "there are no rows"),
    ):
        with pytest.raises(ValueError, match=message):
            convert_sequences(block, tmp_path / "wrong")
        assert not (tmp_path / "wrong").exists()
    X = StringOperator(open_sequences(folder).X, degree=2)
    letters = folder / "letters.npy"
    with letters.open("r+b") as file:
        file.truncate(letters.stat().st_size - 10)
    with pytest.raises(ValueError, match="was changed while it was open"):
        X.matvec(np.ones(X.shape[1]))
    with pytest.raises(ValueError, match="is damaged"):
        open_sequences(folder)


def test_a_header_or_starts_that_lead_out_of_the_letters_are_refused(tmp_path):
    folder = convert_sequences((RAGGED, Y), tmp_path / "dna")
    starts = np.load(folder / "starts.npy")
    for wrong in (np.where(np.arange(301) == 300, 10**6, starts), starts[::-1]):
        np.save(folder / "starts.npy", wrong)
        with pytest.raises(ValueError, match=r"starts\.npy must rise"):
            open_sequences(folder)
    fixed = convert_sequences((FIXED, Y), tmp_path / "fixed")
    header = (fixed / "header.json").read_text()
    for old, new, message in (
        ('"length": 30', '"length": 31', "expected 9300"),
        ('"length": 30', '"length": -1', "cannot be"),
        ('"alphabet": "ACGT"', '"alphabet": "AA"', "alphabet"),
        ('"storage": "sequences of one length"', '"storage": "csr"', "damaged"),
    ):
        assert old in header
        (fixed / "header.json").write_text(header.replace(old, new))
        with pytest.raises(ValueError, match=message):
            open_sequences(fixed)
