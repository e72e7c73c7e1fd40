"""Features of sequences, k-mers at a position or anywhere, computed during the products from one byte per letter."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scoreline import kernels
from scoreline.operators.base import Operator, RowBlock
from scoreline.operators.block_sums import CsrRows, block_gram, block_quadratics
from scoreline.operators.sequences import Sequences
from scoreline.operators.sparse import SCATTER_CHUNKS, CompressedOperator
from scoreline.operators.statistics import ColumnStatistics, merge, with_zeros
from scoreline.runtime import parallel
from scoreline.runtime.checks import check_choice, check_number
from scoreline.runtime.memory import AdvisedMemoryError, in_words, memory_limit
from scoreline.runtime.types import Block, BoundsArray, FloatArray, Scores

KINDS, NORMS = ("weighted_degree", "spectrum"), (None, "l1", "l2")
COLUMN_VECTORS = 8  # of one number per feature, which training needs at least, in half of the memory
LETTER_WORK = 8  # scalar operations per letter
# Bytes of tables that a core has in its second cache, and letters that are read before the tables of other positions come.
SPAN_BYTES, TILE_LETTERS = 1 << 19, 1 << 23
SLAB_LETTERS = 1 << 26  # read from the disk once for all positions
BLOCK_ENTRIES = 1 << 22  # of rows that are made as CSR at a time


class Motif(NamedTuple):
    """A k-mer, the position of its first letter (from 0; None where any counts), and what one occurrence adds to a score."""

    letters: str
    position: int | None
    weight: float


class StringFeatures:
    """Which k-mers of sequences are features, their numbers and values: all that `StringOperator` takes but the rows.

    Columns are numbered by k, then by position, then by the k-mer as a number in base A, its first letter the most significant.
    Their number is p (eq. string-features).
    """

    def __init__(self, kind: str, degree: int, min_degree: int, alphabet: str, length: int | None, norm: str | None):
        self.kind, self.degree, self.min_degree = kind, int(degree), int(min_degree)
        self.alphabet, self.length, self.norm = alphabet, length, norm
        size, degrees = len(alphabet), range(self.min_degree, self.degree + 1)
        self.positions = {k: 1 if length is None else max(0, length - k + 1) for k in degrees}
        self.width = sum(self.positions[k] * size**k for k in degrees)
        if self.width == 0:
            raise ValueError(
                f"sequences of length {length} have no k-mers of {self.min_degree} letters and more; lower min_degree"
            )
        if 8.0 * self.width * COLUMN_VECTORS > 0.5 * memory_limit():
            raise AdvisedMemoryError(
                f"degree={self.degree} makes {self.width:,} features of {size} letters, and {COLUMN_VECTORS} vectors of "
                f"coefficients for them take {in_words(8.0 * self.width * COLUMN_VECTORS)}, more than half of the memory. "
                "Lower the degree."
            )
        # A degree beyond the length has no columns, but counts for the weights of the others.
        d = float(self.degree)
        self.values = {
            k: 1.0 if length is None else float(np.sqrt(2.0 * (d - k + 1.0) / (d * (d + 1.0)))) for k in degrees
        }
        self.first = {}
        column = 0
        for k in degrees:
            self.first[k] = column
            column += self.positions[k] * size**k

    def record(self) -> dict[str, Any]:
        """Return the features as arguments of `StringOperator`."""
        names = ("kind", "degree", "min_degree", "alphabet", "length", "norm")
        return {name: getattr(self, name) for name in names}

    def motif(self, column: int, weight: float) -> Motif:
        """Return the k-mer of a column with a weight."""
        k = max(k for k, first in self.first.items() if first <= column and self.positions[k])
        position, code = divmod(column - self.first[k], len(self.alphabet) ** k)
        letters = ""
        for _ in range(k):
            code, letter = divmod(code, len(self.alphabet))
            letters = self.alphabet[letter] + letters
        return Motif(letters, None if self.length is None else int(position), weight)


class StringOperator(Operator):
    """Features of sequences of letters that are computed during the products, from one byte per letter, and never stored.

    "weighted_degree" (eq. weighted-degree): a feature for every position and every k-mer that can begin there, k = 1..degree,
    whose value is sqrt(beta_k) with beta_k = 2 (degree - k + 1) / (degree (degree + 1)); all rows have the same length. Inner
    products are the weighted degree kernel (Sonnenburg, Raetsch, Rieck 2007). "spectrum" (eq. spectrum): how often each k-mer
    is in the row, anywhere, for rows of any length (Leslie, Eskin, Noble 2002). A k-mer with a letter outside the alphabet is
    no feature.

    A product costs one look-up per letter whatever the degree: a table has, for every k-mer of the highest degree, the sum of
    the coefficients of all that it ends with (docs/math/sequences.md). Beyond the letters, memory is a few vectors of p.

    Parameters
    ----------
    sequences : array of bytes or text, list of str, or Sequences
        One sequence per row; `scoreline.io.open_sequences` has those that stay on a disk.
    degree : int, default=8
        Letters of the longest k-mers.
    kind : {"weighted_degree", "spectrum"}, default="weighted_degree"
        Which features, see above.
    alphabet : str, default="ACGT"
        The letters. Not used for Sequences, which have theirs.
    min_degree : int, default=None
        Letters of the shortest k-mers; None means 1 for "weighted_degree" and `degree` for "spectrum".
    norm : {None, "l1", "l2"}, default=None
        Divide each row by the sum of its entries or by its Euclidean length; rows without features stay 0.
    length : int, default=None
        Length of every row that "weighted_degree" expects; None means that of the first row.

    Attributes
    ----------
    features : StringFeatures
        What the columns are; `StringOperator(new_rows, **clf.string_features_)` makes those that a model was trained on.

    Examples
    --------
    >>> from scoreline.operators import StringOperator
    >>> X = StringOperator(["ACGT", "ACCT", "TTGT"], degree=2, kind="spectrum")
    >>> X.shape, X.features.motif(1, weight=1.0).letters
    ((3, 16), 'AC')
    >>> float(X.rmatvec([1.0, 1.0, 1.0])[1])
    2.0
    """

    capabilities = frozenset({"row_blocks", "rows", "statistics"})

    def __init__(
        self,
        sequences: Any,
        degree: int = 8,
        kind: str = "weighted_degree",
        alphabet: str = "ACGT",
        min_degree: int | None = None,
        norm: str | None = None,
        length: int | None = None,
    ):
        check_options(degree, kind, min_degree, norm)
        rows = sequences if isinstance(sequences, Sequences) else Sequences(sequences, alphabet)
        lowest = (1 if kind == "weighted_degree" else degree) if min_degree is None else min_degree
        width = _common_length(rows, length) if kind == "weighted_degree" else None
        self.features = StringFeatures(kind, degree, lowest, rows.alphabet, width, norm)
        super().__init__((len(rows), self.features.width))
        self.string_features = self.features.record()
        self.sequences = rows
        self._prepare()
        self._scale: FloatArray | None = None
        self._learn()

    @classmethod
    def from_dask(cls, sequences: Any, client: Any = None, **options: Any) -> Operator:
        """Return the features of sequences that live in Dask: letters are coded on the workers and stay there.

        Parameters
        ----------
        sequences : Dask array of one dimension, Dask series or bag
            Blocks of bytes or text, one sequence per row.
        client : distributed.Client, optional
            By default the one that is active.
        **options
            As for `StringOperator`.

        Returns
        -------
        Operator
            The features, in parts on the workers; `fit` and `predict` take it as X.
        """
        from scoreline.distributed.string_parts import from_dask

        return from_dask(sequences, client, **options)

    def _prepare(self) -> None:
        """Make what the kernels need of the features: where tables begin, spans of positions, chunks of rows."""
        features, rows = self.features, self.sequences
        size, positional = len(features.alphabet), features.length is not None
        self._degree = max(k for k, count in features.positions.items() if count)
        offsets, strides = np.zeros((2, self._degree + 1), dtype=np.uint64)
        for k in range(features.min_degree, self._degree + 1):
            offsets[k], strides[k] = features.first[k], size**k if positional else 0
        self._where = (*map(np.uint64, (size, self._degree, features.min_degree)), offsets, strides)
        self._powers = np.array([size**k for k in range(self._degree + 1)], dtype=np.uint64)
        every = np.iinfo(np.uint64).max
        edges = [0, int(every)]
        if features.length is not None:
            count = int(np.clip(SPAN_BYTES // (8 * size**self._degree), self._degree, features.length))
            edges = [*range(0, features.length, count), features.length]
        self._spans = np.array(edges, dtype=np.uint64)
        n, letters = len(rows), rows.n_letters
        self._row_letters = letters / n
        self._tile = np.uint64(max(1, TILE_LETTERS // max(1, features.length or 1)))
        self._bounds = self._row_bounds(n, parallel.MAX_CHUNKS)
        # Private sums of X'u, of which there is at most one per 4 letters of a column.
        self._sum_chunks = max(1, min(SCATTER_CHUNKS, letters // (4 * self.shape[1])))

    def _row_bounds(self, n: int, most: int) -> BoundsArray:
        return parallel.even_bounds(n, 1.0 + LETTER_WORK * self._row_letters, most)

    def _learn(self) -> None:
        """Learn what each row is divided by, and the largest magnitude of each column."""
        features = self.features
        values = self._of_degrees(features.values)
        if features.norm == "l1" or (features.norm is not None and features.length is not None):
            sizes = self._gather(self._table(values if features.norm == "l2" else np.ones(self.shape[1])), None)
            self._scale = _inverse(np.sqrt(sizes) if features.norm == "l2" else sizes)
        if features.length is not None:
            self.largest = values if self._scale is None else values * self._scale.max(initial=0.0)
            return
        self.largest, scales = np.zeros(self.shape[1]), []
        for _, _, rows in self._entry_blocks():
            if features.norm == "l2":  # in the same pass: from a disk the rows should not be looked through twice
                scales.append(_inverse(_row_lengths(rows)))
                rows.data[:] *= np.repeat(scales[-1], np.diff(rows.indptr))
            block = CompressedOperator(rows)
            block.inspect()
            np.maximum(self.largest, np.asarray(block.largest), out=self.largest)
        if scales:
            self._scale = np.concatenate(scales)

    def _of_degrees(self, values: dict[int, float]) -> FloatArray:
        """Return a vector with a value for all columns of a degree."""
        out = np.empty(self.shape[1])
        for k, part in self._parts(out):
            part[:] = values[k]
        return out

    def _parts(self, vector: FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Yield the columns of each degree: views of shape (positions, k-mers)."""
        size = len(self.features.alphabet)
        for k in range(self.features.min_degree, self._degree + 1):
            first, count = self.features.first[k], self.features.positions[k]
            yield k, vector[first : first + count * size**k].reshape(count, -1)

    def _table(self, w: FloatArray) -> FloatArray:
        """Return, for every k-mer at a position, the sum of the terms of all k-mers that end with it (eq. kmer-table)."""
        table, size = self._valued(w.copy()), len(self.features.alphabet)
        for (_, shorter), (_, longer) in pairwise(self._parts(table)):
            heads = longer.reshape(len(longer), size, -1)  # by their first letter, which the shorter do not have
            heads += (shorter[1:] if self.features.length is not None else shorter)[:, None, :]
        return table

    def _valued(self, vector: FloatArray) -> FloatArray:
        """Multiply each column by the value of its degree, in place."""
        for k, part in self._parts(vector):
            if self.features.values[k] != 1.0:
                part *= self.features.values[k]
        return vector

    def _sums(self, u: FloatArray, lines: BoundsArray | None) -> FloatArray:
        """Return the sum of u over the occurrences of every k-mer (eq. kmer-sums): the transpose of `_table` without values."""
        table, size = self._scatter(u, lines), len(self.features.alphabet)
        for (_, longer), (_, shorter) in pairwise(list(self._parts(table))[::-1]):
            tails = shorter[1:] if self.features.length is not None else shorter
            tails += longer.reshape(len(longer), size, -1).sum(axis=1)
        return table

    def _rows(self, lines: BoundsArray | None) -> tuple[Any, ...]:
        """Return what kernels need to find rows."""
        rows = self.sequences
        return rows.letters_for(lines), rows.starts, np.uint64(rows.length or 0), lines

    def _gather(self, table: FloatArray, lines: BoundsArray | None) -> FloatArray:
        bounds = self._bounds if lines is None else self._row_bounds(len(lines), parallel.MAX_CHUNKS)
        out = np.empty(int(bounds[-1]))
        arguments = (*self._rows(lines), *self._where, table, self._spans, self._tile, out, bounds)
        parallel.run_chunks(kernels.strings.gather, len(bounds) - 1, *arguments)
        return out

    def _scatter(self, u: FloatArray, lines: BoundsArray | None) -> FloatArray:
        """Return the sums of u at the entries of the table: column by column at positions, else in private sums."""
        n, every = len(u), np.iinfo(np.uint64).max
        if self.features.length is None:
            bounds = self._row_bounds(n, self._sum_chunks)
            tables = np.zeros((len(bounds) - 1, self.shape[1]))
            self._scatter_tasks([(c, a, b, 0, every) for c, (a, b) in enumerate(pairwise(bounds))], u, lines, tables)
            return np.asarray(tables[0] if len(tables) == 1 else tables.sum(axis=0))
        # Positions are shared out, each has its own columns: one table, whose bits depend neither on threads nor on slabs.
        tables = np.zeros((1, self.shape[1]))
        slab = max(1, SLAB_LETTERS // self.features.length)
        edges = self._spans if n * self._row_letters * LETTER_WORK > parallel.MIN_CHUNK_WORK else self._spans[[0, -1]]
        for start in range(0, n, slab):
            stop = min(start + slab, n)
            self._scatter_tasks([(0, start, stop, a, b) for a, b in pairwise(edges)], u, lines, tables)
        return np.asarray(tables[0])

    def _scatter_tasks(
        self, tasks: Sequence[tuple[Any, ...]], u: FloatArray, lines: BoundsArray | None, tables: FloatArray
    ) -> None:
        arguments = (*self._rows(lines), *self._where, u, tables, np.array(tasks, dtype=np.uint64))
        parallel.run_chunks(kernels.strings.scatter, len(tasks), *arguments)

    def _scaled(self, vector: FloatArray, lines: BoundsArray | None) -> FloatArray:
        if self._scale is None:
            return vector
        return vector * (self._scale if lines is None else self._scale[lines])

    def _matvec(self, w: FloatArray) -> FloatArray:
        return self._scaled(self._gather(self._table(w), None), None)

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        return self._valued(self._sums(self._scaled(u, None), None))

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> FloatArray:
        return self._scaled(self._gather(self._table(w), lines), lines)

    def _rmatvec_rows(self, u: Scores, lines: BoundsArray) -> FloatArray:
        return self._valued(self._sums(self._scaled(u, lines), lines))

    def _entries(self, lines: BoundsArray) -> CsrRows:
        """Return the listed rows as CSR; their columns are in order of appearance, and named once."""
        rows, features = self.sequences, self.features
        if rows.starts is None:
            sizes = np.full(len(lines), rows.length, dtype=np.uint64)
        else:
            sizes = rows.starts[lines + np.uint64(1)] - rows.starts[lines]
        most = np.concatenate([[0], np.cumsum(sizes * np.uint64(self._degree - features.min_degree + 1))])
        bounds = parallel.even_bounds(len(lines), 1.0 + LETTER_WORK * self._row_letters, self._sum_chunks)
        room = most[bounds].astype(np.uint64)
        columns = np.empty(int(most[-1]), dtype=np.int32 if self.shape[1] < 2**31 else np.int64)
        counts, lengths = np.empty(len(columns)), np.empty(len(lines), dtype=np.int64)
        place = None if features.length is not None else np.zeros((len(bounds) - 1, self.shape[1]), dtype=np.int32)
        values = np.array([features.values.get(k, 0.0) for k in range(self._degree + 1)])
        letters, starts, length, _ = self._rows(lines)
        arguments = (
            letters, starts, length, lines, *self._where, self._powers, values, place, columns, counts, lengths, room, bounds,
        )  # fmt: skip
        parallel.run_chunks(kernels.strings.entries, len(bounds) - 1, *arguments)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        filled = [
            slice(int(a), int(a) + int(ends[j] - ends[i])) for a, (i, j) in zip(room, pairwise(bounds), strict=False)
        ]
        columns, counts = np.concatenate([columns[s] for s in filled]), np.concatenate([counts[s] for s in filled])
        if self._scale is not None:
            counts *= np.repeat(self._scale[lines], lengths)
        indptr = ends.astype(columns.dtype if len(columns) < 2**31 else np.int64)
        return CsrRows(counts, columns, indptr, (len(lines), self.shape[1]))

    def _entry_blocks(self) -> Iterator[tuple[int, int, CsrRows]]:
        """Yield all rows as CSR, a block of about BLOCK_ENTRIES entries at a time."""
        for start in range(0, self.shape[0], self._block_rows):
            stop = min(start + self._block_rows, self.shape[0])
            yield start, stop, self._entries(np.arange(start, stop, dtype=np.uint64))

    @property
    def _row_entries(self) -> float:
        """Entries of a row, at most, on average."""
        return max(1.0, self._row_letters * (self._degree - self.features.min_degree + 1))

    @property
    def _block_rows(self) -> int:
        return max(1, int(BLOCK_ENTRIES / self._row_entries))

    def _block(self, start: int, stop: int) -> Block:
        return self._listed(np.arange(start, stop, dtype=np.uint64))

    def _listed(self, lines: BoundsArray) -> Block:
        rows = self._entries(lines)
        block = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        block.sort_indices()
        return block

    def _sum_blocks(self) -> Iterator[RowBlock]:
        """Yield blocks of about BLOCK_ENTRIES entries: rows are sparse, however many columns there are."""
        return self._row_blocks(self._block_rows)

    @property
    def stores_zeros(self) -> bool:
        return False

    @property
    def row_bytes(self) -> float:
        return 12.0 * self._row_entries

    def __sizeof__(self) -> int:
        """Return the bytes of the letters, and of what each row is divided by."""
        return self.sequences.__sizeof__() + (0 if self._scale is None else self._scale.nbytes)

    def gram_passes(self) -> float:
        """Return about how many products a call of `gram` costs: blocks of rows are made, then the pairs of their entries."""
        n, p = self.shape
        entries = self._row_entries
        return 5.0 + 0.05 * entries**2 / max(1.0, self._row_letters) + (p * p + p**3 / 500.0) / (n * entries)

    def _gram(self, weight: FloatArray) -> FloatArray:
        return np.asarray(sum(block_gram(b.data, weight[b.start : b.stop]) for b in self._sum_blocks()))

    def _quadratics(self, matrix: FloatArray) -> FloatArray:
        return np.concatenate([block_quadratics(b.data, matrix) for b in self._sum_blocks()])

    def _square_rmatvec(self, u: FloatArray) -> FloatArray:
        if self.features.length is not None:  # every entry of a row is the value of its degree times the row's scale
            return self._valued(self._valued(self._sums(self._scaled(self._scaled(u, None), None), None)))
        return np.asarray(
            sum(CompressedOperator(rows)._square_rmatvec(u[start:stop]) for start, stop, rows in self._entry_blocks())
        )

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        if self.features.length is not None:
            return self._statistics_at_positions(weight)
        parts: list[ColumnStatistics] = []
        entries = np.zeros(self.shape[1], dtype=np.intp)
        for start, stop, rows in self._entry_blocks():
            part, count = CompressedOperator(rows)._stored_statistics(None if weight is None else weight[start:stop])
            parts = [merge([*parts, part])]  # at once: there may be many blocks of many columns
            entries += count
        return with_zeros(parts[0], entries, weight, self.shape[0])

    def _statistics_at_positions(self, weight: FloatArray | None) -> ColumnStatistics:
        """Return the statistics from sums of weights: all entries of a column are its value times the scale of their row."""
        n, values = self.shape[0], self._of_degrees(self.features.values)
        counted = np.ones(n) if weight is None else (weight > 0.0).astype(np.float64)
        entries = np.rint(self._sums(counted, None)).astype(np.intp)
        total = entries.astype(np.float64) if weight is None else self._sums(weight, None)
        mean, variance = np.ones(self.shape[1]), np.zeros(self.shape[1])
        if self._scale is not None:
            own = counted if weight is None else weight
            centre = float(own @ self._scale / own.sum())
            deviation = self._scale - centre
            means = [
                np.divide(self._sums(own * x, None), total, out=np.zeros_like(total), where=total > 0.0)
                for x in (deviation, deviation**2)
            ]
            mean, variance = centre + means[0], np.maximum(means[1] - means[0] ** 2, 0.0)
        here = entries > 0
        stored = ColumnStatistics(
            total, values * mean * here, values**2 * variance * here, np.asarray(self.largest) * here
        )
        return with_zeros(stored, entries, weight, n)


def check_options(degree: Any, kind: Any, min_degree: Any, norm: Any) -> None:
    """Raise unless the options of string features are what they should be."""
    check_choice("kind", kind, KINDS)
    check_number("degree", degree, least=1, integer=True)
    if min_degree is not None:
        check_number("min_degree", min_degree, least=1, integer=True)
        if min_degree > degree:
            raise ValueError(f"min_degree={min_degree!r} must be at most degree={degree!r}")
    if norm not in NORMS:
        raise ValueError(f"norm={norm!r} must be None, 'l1' or 'l2'")


def strongest_motifs(clf: Any, n: int = 10) -> list[Motif]:
    """Return the k-mers whose coefficients move the score most, the strongest first.

    Parameters
    ----------
    clf : MeasureClassifier
        Trained on a StringOperator.
    n : int
        How many.

    Returns
    -------
    list of Motif
        Letters, position of the first (from 0, None for "spectrum"), and what one occurrence adds to the score of a row; with
        `norm`, before the row is divided by its size. Motifs that overlap share what the model has learnt of a longer one.
    """
    record = getattr(clf, "string_features_", None)
    if record is None:
        raise ValueError("the classifier was not trained on a StringOperator, so its features are not k-mers")
    check_number("n", n, least=1, integer=True)
    features = StringFeatures(**record)
    added = np.array(clf.coef_[0])
    for k, first in features.first.items():
        added[first : first + features.positions[k] * len(features.alphabet) ** k] *= features.values[k]
    size = np.abs(added)
    strongest = np.argpartition(size, -min(n, len(size)))[-min(n, len(size)) :]
    order = strongest[np.lexsort((strongest, -size[strongest]))]
    return [features.motif(int(column), float(added[column])) for column in order]


def _common_length(rows: Sequences, length: int | None) -> int:
    """Return the length of every row, or say which row has another."""
    if length is not None:
        check_number("length", length, least=1, integer=True)
    if rows.length is not None:
        row, found, expected = 0, rows.length, rows.length if length is None else length
    else:
        assert rows.starts is not None
        sizes = np.diff(rows.starts)
        expected = int(sizes[0]) if length is None else length
        row = int(np.argmax(sizes != expected))
        found = int(sizes[row])
    if found != expected:
        raise ValueError(
            f"sequence {row} has {found} letters, expected {expected} as in the {'model' if length else 'first row'}: "
            "kind='weighted_degree' compares positions. Cut or align the sequences, or use kind='spectrum'."
        )
    return expected


def _inverse(sizes: FloatArray) -> FloatArray:
    """Return 1 / size, and 0 where the size is 0."""
    return np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)


def _row_lengths(rows: CsrRows) -> FloatArray:
    """Return the Euclidean length of every row."""
    line = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.sqrt(np.bincount(line, rows.data**2, rows.shape[0]))
