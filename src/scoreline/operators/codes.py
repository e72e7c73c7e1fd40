"""Features that are functions of one-byte codes, of a column or of a pair of columns: nothing is ever expanded."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scoreline import kernels
from scoreline.operators.base import Operator
from scoreline.operators.statistics import ColumnStatistics
from scoreline.runtime import parallel
from scoreline.runtime.types import AnyArray, BoundsArray, FloatArray, IntArray

CODES = 256  # that one byte can hold
SUM_CHUNKS = 16  # private histograms of X'u
# Work of a pair, and of an entry of a joint histogram, in units of a look-up; measured by benchmarks/additive.py.
PAIR_WORK, JOINT_WORK = 2.0, 4.0
MOST_TABLE_SHARE_INVERSE = 4  # entries of a line's basis, at most this part of the rows
BLAS_FLOPS = 12.0  # of one thread in the time of a look-up


class Group(NamedTuple):
    """Features that are functions of the code of one column, or of the codes of two.

    `basis` has one line per cell and one column per feature. The cell of a row is near[code] for one column, and
    near[code] + far[other code] for a pair.
    """

    columns: tuple[int, int]  # the second is -1 for a group of one column
    near: AnyArray
    far: AnyArray
    basis: FloatArray

    @classmethod
    def of_column(cls, column: int, basis: FloatArray) -> "Group":
        """Return the group of a column: the cell is the code."""
        return cls((column, -1), np.arange(CODES, dtype=np.uint32), np.zeros(CODES, dtype=np.uint32), basis)


class PackedCodes(NamedTuple):
    """Codes of columns, one line of bytes for each column, or one line for columns whose codes occur in few combinations.

    The code of column j in row i is own[j, codes[line[j], i]]. Indicators of the same category share a line, for example.
    """

    codes: AnyArray
    line: IntArray
    own: AnyArray

    @classmethod
    def plain(cls, codes: AnyArray) -> "PackedCodes":
        """Return the codes with one line for each column."""
        p = len(codes)
        return cls(codes, np.arange(p), np.tile(np.arange(CODES, dtype=np.uint8), (p, 1)))

    @classmethod
    def packed(cls, codes: AnyArray) -> "PackedCodes":
        """Return the codes with one line for neighbouring columns whose codes occur in at most 256 combinations.

        Tables of combinations stay small compared with the rows: they are made again for each product.
        """
        p, n = codes.shape
        lines: list[AnyArray] = []
        line, own = np.zeros(p, dtype=np.int64), np.zeros((p, CODES), dtype=np.uint8)
        known = np.zeros((0, CODES), dtype=np.uint8)  # the codes of the columns of the last line, for each combination
        for j in range(p):
            values = np.flatnonzero(np.bincount(codes[j], minlength=CODES))
            joined = None
            if lines and len(values) * (len(known) + 1) * MOST_TABLE_SHARE_INVERSE <= n:
                both = lines[-1].astype(np.uint16) * np.uint16(CODES) + codes[j]
                found = np.flatnonzero(np.bincount(both, minlength=CODES * CODES))
                if len(found) <= CODES and len(found) * (len(known) + 1) * MOST_TABLE_SHARE_INVERSE <= n:
                    joined = found
            if joined is None:
                lines.append(codes[j])
                known = np.arange(CODES, dtype=np.uint8)[None, :]
            else:
                places = np.zeros(CODES * CODES, dtype=np.uint8)
                places[joined] = np.arange(len(joined))
                lines[-1] = places[both]
                before, new = joined // CODES, joined % CODES
                known = np.vstack([known[:, before], new.astype(np.uint8)[None, :]])
                known = np.hstack([known, np.zeros((len(known), CODES - len(joined)), dtype=np.uint8)])
            line[j] = len(lines) - 1
            own[j + 1 - len(known) : j + 1] = known
        if len(lines) == p:
            return cls.plain(codes)
        return cls(np.stack(lines), line, own)

    def column(self, j: int, rows: BoundsArray | None = None) -> AnyArray:
        """Return the codes of a column in the listed rows, or in all."""
        line = self.codes[self.line[j]]
        found: AnyArray = self.own[j][line if rows is None else line[rows]]
        return found

    def grouped(self, groups: "Sequence[Group]") -> "list[Group]":
        """Return the same features, in the same order, as groups of the lines; then those of pairs."""
        p, found = len(self.line), []
        sizes = [int(line.max(initial=0)) + 1 for line in self.codes]
        for q, size in enumerate(sizes):
            columns = np.flatnonzero(self.line == q).tolist()
            if len(columns) == 1:
                found.append(groups[columns[0]]._replace(columns=(q, -1)))
            else:
                bases = [groups[j].basis[self.own[j, :size]] for j in columns]
                found.append(Group.of_column(q, np.hstack(bases)))
        for group in groups[p:]:
            one, other = group.columns
            lines = int(self.line[one]), int(self.line[other])
            found.append(Group(lines, group.near[self.own[one]], group.far[self.own[other]], group.basis))
        return found


class CodesOperator(Operator):
    """X with X[i] = (basis of group 0 at the cell of row i, basis of group 1 at its cell, ...), from one byte per value.

    Xw is a look-up per column in the tables T_g = B_g w_g: z_i = sum_g T_g[cell of row i] (eq. code-scores). X'u is a
    histogram of u over the cells of every group, and B_g' times that (eq. code-sums). A Gram matrix consists of
    B_g' H B_h with the joint histogram H of two groups (eq. code-gram). A product costs one look-up per value and two per
    pair, whatever the number of features.

    Parameters
    ----------
    codes : uint8 array of shape (columns, n), or PackedCodes
        One line per column, or fewer.
    groups : sequence of Group
        First one group for every column, in their order, then pairs.
    lines : array of row numbers, optional
        The rows that the operator consists of; all by default.
    """

    capabilities = frozenset({"row_blocks", "rows", "statistics"})

    def __init__(self, codes: AnyArray | PackedCodes, groups: Sequence[Group], lines: BoundsArray | None = None):
        self.packed = codes if isinstance(codes, PackedCodes) else PackedCodes.plain(codes)
        columns, p = len(self.packed.line), len(self.packed.codes)
        places = np.array([group.columns for group in groups], dtype=np.int64)
        if not ((places[:columns, 0] == np.arange(columns)).all() and (places[:columns, 1] < 0).all()):
            raise ValueError("groups must begin with one group for each column, in the order of the columns")
        self.groups = groups = self.packed.grouped(groups)
        widths = [group.basis.shape[1] for group in groups]
        self._codes = self.packed.codes
        super().__init__((self._codes.shape[1] if lines is None else len(lines), sum(widths)))
        self.lines = lines
        self._columns = np.array([group.columns for group in groups], dtype=np.int64)
        self._near = np.stack([group.near for group in groups]).astype(np.uint32)
        self._far = np.stack([group.far for group in groups]).astype(np.uint32)
        self._cells = _starts([len(group.basis) for group in groups])
        self._features = _starts(widths)
        self._basis = np.concatenate([group.basis.ravel() for group in groups])
        self._basis_starts = _starts([group.basis.size for group in groups])[:-1]
        self._pairs = (self._columns[p:], self._near[p:], self._far[p:], self._cells[p:-1])
        self._work = p + PAIR_WORK * len(self._pairs[0])
        group_work = self._basis.size / len(groups)
        self._group_bounds = parallel.even_bounds(len(groups), group_work)
        self.largest = np.concatenate([np.abs(group.basis).max(axis=0, initial=0.0) for group in groups])
        self.tails_checked = True  # codes have no tails

    @property
    def codes(self) -> AnyArray:
        """The codes of all columns, one line for each, without the selection of rows."""
        return np.stack([self.packed.column(j) for j in range(len(self.packed.line))])

    def on_rows(self, rows: AnyArray) -> "CodesOperator":
        """Return the listed rows as an operator over the same codes, which counts its own passes."""
        return self._of_rows(self._row_list(rows))

    def _of_rows(self, rows: BoundsArray) -> "CodesOperator":
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.lines, part.n_passes = self._where(rows), 0.0
        part.shape = (len(rows), self.shape[1])
        return part

    def row_numbers(self, rows: AnyArray) -> BoundsArray:
        """Return where rows lie in the lines of codes."""
        return self._where(rows.astype(np.uint64))

    def cell_sums(self, pairs: Sequence[Group], u: FloatArray) -> FloatArray:
        """Return the sums of u over the cells of groups of pairs, one group after another, as `histograms` does."""
        if not pairs:
            return np.zeros(0)
        columns = [Group.of_column(j, np.zeros((CODES, 0))) for j in range(len(self.packed.line))]
        other = CodesOperator(self.packed, [*columns, *pairs], self.lines)
        return other._histograms(u, self.lines)[int(other._cells[len(self.packed.codes)]) :]

    def _where(self, rows: BoundsArray) -> BoundsArray:
        return rows if self.lines is None else self.lines[rows]

    def _matvec(self, w: FloatArray) -> FloatArray:
        return self._scores_of(self._tables(self._basis, w), self.lines, self.shape[0])

    def _rmatvec(self, u: FloatArray) -> FloatArray:
        return self._summed(self._basis, self._histograms(u, self.lines))

    def _matvec_rows(self, w: FloatArray, lines: BoundsArray) -> FloatArray:
        return self._scores_of(self._tables(self._basis, w), self._where(lines), len(lines))

    def _rmatvec_rows(self, u: FloatArray, lines: BoundsArray) -> FloatArray:
        return self._summed(self._basis, self._histograms(u, self._where(lines)))

    def _tables(self, basis: FloatArray, w: FloatArray) -> FloatArray:
        """Return the value of every cell of every group: its basis times its part of w."""
        tables = np.empty(int(self._cells[-1]))
        arguments = (basis, self._basis_starts, self._cells, self._features, w, tables, self._group_bounds)
        parallel.run_chunks(kernels.codes.tables_of, len(self._group_bounds) - 1, *arguments)
        return tables

    def _summed(self, basis: FloatArray, sums: FloatArray) -> FloatArray:
        """Return the basis of every group transposed times the sums of its cells."""
        out = np.empty(self.shape[1])
        arguments = (basis, self._basis_starts, self._cells, self._features, sums, out, self._group_bounds)
        parallel.run_chunks(kernels.codes.sums_of, len(self._group_bounds) - 1, *arguments)
        return out

    def _scores_of(self, tables: FloatArray, lines: BoundsArray | None, n: int) -> FloatArray:
        """Return the sum of the entries of the tables at the cells of each row."""
        out, bounds = np.empty(n), parallel.even_bounds(n, self._work)
        run, count = parallel.run_chunks, len(bounds) - 1
        run(kernels.codes.look_up, count, self._codes, self._cells, tables, lines, out, bounds)
        if len(self._pairs[0]):
            run(kernels.codes.look_up_pairs, count, self._codes, *self._pairs, tables, lines, out, bounds)
        return out

    def _histograms(self, u: FloatArray, lines: BoundsArray | None) -> FloatArray:
        """Return the sum of u over the rows of every cell of every group."""
        bounds = parallel.even_bounds(len(u), self._work, SUM_CHUNKS)
        run, count = parallel.run_chunks, len(bounds) - 1
        partial = np.zeros((count, int(self._cells[-1])))
        run(kernels.codes.histograms, count, self._codes, self._cells, lines, u, partial, bounds)
        if len(self._pairs[0]):
            run(kernels.codes.pair_histograms, count, self._codes, *self._pairs, lines, u, partial, bounds)
        return np.asarray(partial.sum(axis=0))

    def _each_pair_of_groups(self) -> list[tuple[int, int]]:
        """Return all pairs of groups that have features, each group with itself included."""
        own = [g for g, group in enumerate(self.groups) if group.basis.shape[1]]
        return [(g, h) for k, g in enumerate(own) for h in own[k:]]

    def _part(self, g: int) -> slice:
        return slice(int(self._features[g]), int(self._features[g + 1]))

    def _gram(self, weight: FloatArray) -> FloatArray:
        if self._dense_gram_is_cheaper:
            return super()._gram(weight)
        found, pairs = np.zeros((self.shape[1],) * 2), self._each_pair_of_groups()

        def work(first: int, last: int) -> None:
            for g, h in pairs[first:last]:
                one, other = self.groups[g].basis, self.groups[h].basis
                joint = np.zeros((len(one), len(other)))
                kernels.codes.joint_histogram(
                    self._codes, self._columns, self._near, self._far, g, h, self.lines, weight, joint
                )
                found[self._part(g), self._part(h)] = one.T @ joint @ other

        with parallel.one_blas_thread():
            parallel.run_chunks(work, len(pairs))
        upper = np.triu(found)
        return upper + np.triu(found, 1).T

    def _quadratics(self, matrix: FloatArray) -> FloatArray:
        out, bounds = np.zeros(self.shape[0]), parallel.even_bounds(self.shape[0], 2.0)
        with parallel.one_blas_thread():
            for g, h in self._each_pair_of_groups():
                one, other = self.groups[g].basis, self.groups[h].basis
                table = one @ matrix[self._part(g), self._part(h)] @ other.T * (1.0 if g == h else 2.0)
                arguments = (self._codes, self._columns, self._near, self._far, g, h, table, self.lines, out, bounds)
                parallel.run_chunks(kernels.codes.look_up_joint, len(bounds) - 1, *arguments)
        return out

    @property
    def _gram_work(self) -> tuple[float, float]:
        """Work of a Gram matrix by joint histograms, and by BLAS from dense blocks, in look-ups."""
        sizes = [(len(group.basis), group.basis.shape[1]) for group in self.groups if group.basis.shape[1]]
        count, (cells, width) = len(sizes), np.mean(sizes, axis=0).tolist()
        n, p = self.shape
        joint = 0.5 * count**2 * (JOINT_WORK * n + cells**2 * (1.0 + 2.0 * width / BLAS_FLOPS))
        return joint, n * p * (1.0 + p / BLAS_FLOPS)

    @property
    def _dense_gram_is_cheaper(self) -> bool:
        joint, dense = self._gram_work
        return dense < joint

    def gram_passes(self) -> float:
        """Return about how many products a call of `gram` costs and factoring it."""
        n, p = self.shape
        factor = p**3 / (3.0 * BLAS_FLOPS)
        return float((min(self._gram_work) + factor) / (n * self._work + self._basis.size))

    def _square_rmatvec(self, u: FloatArray) -> FloatArray:
        return self._summed(np.square(self._basis), self._histograms(u, self.lines))

    def row_norms(self) -> FloatArray:
        """Return the Euclidean length of every row. One pass."""
        self._count(1.0)
        squares = self._tables(np.square(self._basis), np.ones(self.shape[1]))
        return np.sqrt(self._scores_of(squares, self.lines, self.shape[0]))

    def _column_statistics(self, weight: FloatArray | None) -> ColumnStatistics:
        """Return the statistics of the features, from the weight of every cell."""
        sums = self._histograms(np.ones(self.shape[0]) if weight is None else weight, self.lines)
        total = float(self.shape[0] if weight is None else weight.sum())
        parts = []
        for g, group in enumerate(self.groups):
            own = sums[int(self._cells[g]) : int(self._cells[g + 1])]
            mean = own @ group.basis / total
            largest = np.abs(group.basis[own > 0.0]).max(axis=0, initial=0.0)
            parts.append((mean, own @ np.square(group.basis - mean) / total, largest))
        mean, variance, largest = (np.concatenate(each) for each in zip(*parts, strict=True))
        return ColumnStatistics(np.full(self.shape[1], total), mean, variance, largest)

    def _block(self, start: int, stop: int) -> AnyArray:
        return self._listed(np.arange(start, stop, dtype=np.uint64))

    def _listed(self, lines: BoundsArray) -> AnyArray:
        out = np.empty((len(lines), self.shape[1]))
        bounds = parallel.even_bounds(len(lines), float(self.shape[1]))
        arguments = (
            self._codes, self._columns, self._near, self._far, self._basis, self._basis_starts, self._features,
            self._where(lines), out, bounds,
        )  # fmt: skip
        parallel.run_chunks(kernels.codes.expand, len(bounds) - 1, *arguments)
        return out

    def __sizeof__(self) -> int:
        """Return about the bytes of the codes and the bases."""
        return object.__sizeof__(self) + self._codes.nbytes + self._basis.nbytes


def _starts(sizes: Sequence[int]) -> BoundsArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
