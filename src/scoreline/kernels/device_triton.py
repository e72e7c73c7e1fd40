"""Products and look-ups of PyTorch tensors on CUDA by Triton, which comes with PyTorch.

Both products read X once, in the order of memory, and add up in float64: on an H200 at the bandwidth of a copy, float32 too.
Sums over rows have as many parts as the shape says, added in fixed order: the same bits in every run.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from scoreline._backend import Backend
from scoreline._typing import AnyArray
from scoreline.kernels.device import PairRows, Ramp, Ranked, Segments, host_floats

MOST_PARTS, PART_ENTRIES = 4096, 1 << 20  # of partial sums


@triton.jit
def _row_dots(X, w, z, n, p, row_step, column_step, share, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1).to(tl.int64)
    first, last = part * share, tl.minimum(part * share + share, p)
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    for start in range(first, last, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        there = (row[:, None] < n) & (column[None, :] < last)
        x = tl.load(X + row[:, None] * row_step + column[None, :] * column_step, mask=there, other=0.0)
        total += x.to(tl.float64) * tl.load(w + column, mask=column < last, other=0.0)[None, :]
    tl.store(z + part * n + row, tl.sum(total, axis=1), mask=row < n)


@triton.jit
def _column_sums(X, u, out, n, p, row_step, column_step, share, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    part = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    first, last = part * share, tl.minimum(part * share + share, n)
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        there = (row[:, None] < last) & (column[None, :] < p)
        x = tl.load(X + row[:, None] * row_step + column[None, :] * column_step, mask=there, other=0.0)
        total += x.to(tl.float64) * tl.load(u + row, mask=row < last, other=0.0)[:, None]
    tl.store(out + part * p + column, tl.sum(total, axis=0), mask=column < p)


@triton.jit
def _segment_dots(
    starts, stops, values, indices, v, out, n, GATHER: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    start = tl.load(starts + row, mask=row < n, other=0)
    stop = tl.load(stops + row, mask=row < n, other=0)
    total = tl.zeros([ROWS, WIDE], tl.float64)
    for k in range(0, tl.max(stop - start, axis=0), WIDE):
        entry = start[:, None] + k + tl.arange(0, WIDE)[None, :]
        there = entry < stop[:, None]
        x = tl.load(values + entry, mask=there, other=0.0).to(tl.float64)
        if GATHER:
            x *= tl.load(v + tl.load(indices + entry, mask=there, other=0), mask=there, other=0.0)
        total += x
    tl.store(out + row, tl.sum(total, axis=1), mask=row < n)


@triton.jit
def _search(P, N, a, b, x, positive, steps):
    """Return how many negatives are <= x (for positives), or how many keys of positives are < x (for negatives)."""
    low = tl.zeros_like(x).to(tl.int64)
    high = tl.where(positive, b, a).to(tl.int64)
    for _ in range(steps):
        open_ = low < high
        middle = (low + high) // 2
        above = tl.load(N + middle, mask=open_ & positive, other=0.0)
        below = tl.load(P + middle, mask=open_ & (positive == 0), other=0.0)
        further = tl.where(positive, above <= x, below < x)
        low = tl.where(open_ & further, middle + 1, low)
        high = tl.where(open_ & (further == 0), middle, high)
    return low


@triton.jit
def _prefix(of_positives, of_negatives, place, positive, there):
    there = there & (place > 0)
    above = tl.load(of_negatives + place - 1, mask=there & positive, other=0.0)
    below = tl.load(of_positives + place - 1, mask=there & (positive == 0), other=0.0)
    return tl.where(positive, above, below)


@triton.jit
def _look_up(
    z, sign, weight, P, P0, P1, N, N0, N1, out, partial, numbers, n, a, b, steps,
    WEIGHTED: tl.constexpr, RAMP: tl.constexpr, BOTH: tl.constexpr, CURVED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    margin, width, centre = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    scale_p, scale_n, every = tl.load(numbers + 3), tl.load(numbers + 4), tl.load(numbers + 5)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    f = tl.load(z + i, mask=i < n, other=0.0)
    y = tl.load(sign + i, mask=i < n, other=0)
    positive = y > 0
    there = (i < n) & ((y < 0) | BOTH)
    s = tl.where(there, 1.0, 0.0).to(tl.float64)
    if WEIGHTED:
        s = tl.load(weight + i, mask=there, other=0.0)
    key = f - margin
    # Where the margin is lost in rounding, the next lower number: equal scores must not look right.
    bits = f.to(tl.int64, bitcast=True)
    lower_bits = tl.where(f > 0.0, bits - 1, bits + 1)
    key = tl.where((key == f) & (margin != 0.0), lower_bits.to(tl.float64, bitcast=True), key)
    x = tl.where(positive, key, f)
    distance = x - centre
    place = _search(P, N, a, b, x, positive, steps)
    sums = _prefix(P1, N1, place, positive, there)
    count = place.to(tl.float64)
    if WEIGHTED:
        count = _prefix(P0, N0, place, positive, there)
    hard = distance * count - sums  # of negatives
    if RAMP:
        end = _search(P, N, a, b, tl.where(positive, key + width, f - width), positive, steps)
        end_sums = _prefix(P1, N1, end, positive, there)
        end_count = end.to(tl.float64)
        if WEIGHTED:
            end_count = _prefix(P0, N0, end, positive, there)
        on = tl.where(positive, end_count - count, count - end_count)
        moved = tl.where(positive, end_sums - sums, sums - end_sums)
        part = tl.where(positive, moved - distance * on, distance * on - moved) / width
        part = tl.minimum(tl.maximum(part, 0.0), on)
        result = part + tl.where(positive, every - end_count, end_count)
        smooth = 0.5 * tl.where(
            positive, -distance * result, distance * result + ((distance - width) * end_count - end_sums)
        )
    else:
        on = tl.zeros_like(count)
        result = tl.where(positive, every - count, count)
        smooth = tl.where(positive, 0.0, hard)
    if BOTH:
        given = on if CURVED else result
        tl.store(out + i, tl.where(positive, scale_p, scale_n) * s * given, mask=i < n)
    program = tl.program_id(0).to(tl.int64)
    tl.store(partial + 3 * program, tl.sum(s * smooth, axis=0))
    tl.store(partial + 3 * program + 1, tl.sum(tl.where(positive, 0.0, s * result), axis=0))
    tl.store(partial + 3 * program + 2, tl.sum(tl.where(positive, 0.0, s * hard), axis=0))


def row_dots(backend: Backend, X: Any, w: Any) -> Any:
    """Return Xw in float64."""
    if X.stride(0) < X.stride(1):  # stored by columns
        return _sums_of_columns(X.T, w)
    return _dots_of_rows(X, w)


def column_sums(backend: Backend, X: Any, u: Any) -> Any:
    """Return X'u in float64."""
    if X.stride(0) < X.stride(1):
        return _dots_of_rows(X.T, u)
    return _sums_of_columns(X, u)


def _dots_of_rows(X: Any, w: Any) -> Any:
    n, p = X.shape
    parts = max(1, min(triton.cdiv(p, 4096), 2 * PART_ENTRIES // max(1, n)))  # long rows are cut where there are few
    out = torch.empty((parts, n), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _row_dots[(triton.cdiv(n, 32), parts)](
            X, w, out, n, p, *X.stride(), triton.cdiv(p, parts), ROWS=32, COLUMNS=64, num_warps=4
        )
    return out[0] if parts == 1 else out.sum(0)


def _sums_of_columns(X: Any, u: Any) -> Any:
    n, p = X.shape
    parts = max(1, min(MOST_PARTS, PART_ENTRIES // max(1, p), triton.cdiv(n, 64)))
    out = torch.empty((parts, p), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _column_sums[(parts, triton.cdiv(p, 128))](
            X, u, out, n, p, *X.stride(), triton.cdiv(n, parts), ROWS=16, COLUMNS=128, num_warps=8
        )
    return out.sum(0)


def segment_dots(segments: Segments, vector: Any) -> Any:
    """Return the sum of values times vector[indices] over each segment."""
    count, gather = len(segments), segments.indices is not None
    out = torch.empty(count, dtype=torch.float64, device=segments.values.device)
    rows, wide = (8, 32) if segments.mean_length < 512 else (4, 256)
    with torch.cuda.device(out.device):
        _segment_dots[(triton.cdiv(count, rows),)](
            segments.starts, segments.stops, segments.values, segments.indices if gather else segments.values,
            vector if gather else segments.values, out, count, GATHER=gather, ROWS=rows, WIDE=wide, num_warps=4,
        )  # fmt: skip
    return out


def look_up(
    backend: Backend, rows: PairRows, positives: Ranked, negatives: Ranked | None, ramp: Ramp
) -> tuple[Any, AnyArray]:
    """Let every row find itself among the sorted scores of the other class (`device_generic.look_up`), in one kernel."""
    z, both = rows.z, ramp.both and negatives is not None
    other = negatives if negatives is not None else positives
    n, weighted = z.shape[0], rows.weight is not None
    every = float(len(other)) if not weighted else float(other.weights[-1])
    numbers = torch.tensor([ramp.margin, ramp.width, ramp.centre, *ramp.scales, every], dtype=torch.float64).to(
        z.device
    )
    out = torch.empty_like(z) if both else z
    block = 512
    programs = triton.cdiv(n, block)
    partial = torch.empty((programs, 3), dtype=torch.float64, device=z.device)
    longest = max(len(positives), len(other) if both else 0)
    with torch.cuda.device(z.device):
        _look_up[(programs,)](
            z, rows.sign, rows.weight if weighted else z,
            positives.scores, positives.weights if weighted else positives.sums, positives.sums,
            other.scores, other.weights if weighted else other.sums, other.sums,
            out, partial, numbers, n, len(positives), len(other), longest.bit_length(),
            WEIGHTED=weighted, RAMP=ramp.width > 0.0, BOTH=both, CURVED=ramp.curved, BLOCK=block, num_warps=4,
        )  # fmt: skip
    return out if both else None, host_floats(backend, partial.sum(0))
