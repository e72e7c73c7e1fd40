"""Sums of outer products of sparse rows, and their quadratic forms, for second-order methods."""

import numpy as np

from scoreline.runtime.compile import kernel


@kernel
def csr_gram(data, indices, indptr, weight, partial, bounds, first, last):
    """partial[c] + partial[c]' = sum over the rows i of chunk c of weight[i] x_i x_i'; rows of weight 0 are not read.

    Each pair of entries of a row is added once, on one side of the diagonal. Squares are halved, so that adding the transpose
    gives the complete sum, even if a row has duplicate entries.
    """
    for c in range(first, last):
        acc = partial[c]
        acc[:] = 0.0
        for i in range(bounds[c], bounds[c + 1]):
            if weight[i] == 0.0:
                continue
            for a in range(indptr[i], indptr[i + 1]):
                value = weight[i] * data[a]
                line = acc[indices[a]]
                for b in range(indptr[i], a):
                    line[indices[b]] += value * data[b]
                line[indices[a]] += 0.5 * value * data[a]


@kernel
def csr_quadratics(data, indices, indptr, matrix, out, bounds, first, last):
    """out[i] = x_i' M x_i for a symmetric M."""
    for i in range(bounds[first], bounds[last]):
        total = 0.0
        for a in range(indptr[i], indptr[i + 1]):
            line = matrix[indices[a]]
            part = 0.5 * line[indices[a]] * data[a]
            for b in range(indptr[i], a):
                part += line[indices[b]] * data[b]
            total += 2.0 * part * data[a]
        out[i] = total


@kernel
def csr_leverages(data, indices, indptr, diagonal, weight, out, bounds, first, last):
    """out[i] = sum_j x_ij^2 / (diagonal[j] - weight[i] x_ij^2)."""
    for i in range(bounds[first], bounds[last]):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            square = np.float64(data[k]) * np.float64(data[k])  # float() would keep float32
            entry = diagonal[indices[k]]
            total += square / max(entry - weight[i] * square, 1e-12 * entry)  # rounding must not make it 0
        out[i] = total


@kernel
def gather_squares(data, indices, indptr, lines, v, out, bounds, first, last):
    """out[r] = sum_k data[k]^2 * v[indices[k]] over line r: `csr.gather` of the squares (lines is None)."""
    for r in range(bounds[first], bounds[last]):
        total = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            total += v[indices[k]] * data[k] * data[k]  # from the left, so that float32 entries become float64 first
        out[r] = total


@kernel
def scatter_squares(data, indices, indptr, lines, u, partial, bounds, first, last):
    """partial[c] = sum over the lines r of chunk c of u[r] * squares of line r: `csr.scatter` of the squares."""
    for c in range(first, last):
        acc = partial[c]
        acc[:] = 0.0
        for r in range(bounds[c], bounds[c + 1]):
            if u[r] == 0.0:
                continue
            for k in range(indptr[r], indptr[r + 1]):
                acc[indices[k]] += u[r] * data[k] * data[k]


@kernel
def centred_rows(block, rows, weight, origin, out, sums):
    """out[r] = root of weight[r] * (row rows[r] of the block - origin), and their weighted sum is added to `sums`."""
    for r in range(len(rows)):
        line, target = block[rows[r]], out[r]
        root = 1.0 if weight is None else np.sqrt(weight[r])
        for j in range(len(origin)):
            value = (line[j] - origin[j]) * root
            target[j] = value
            sums[j] += value * root
