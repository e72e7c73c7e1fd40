"""The kernels (`kernels.Kernels`) for PyTorch tensors on CUDA, in Triton, which is part of PyTorch.

Both products read X once, in the order of memory, and add in float64. On an H200 they reach the bandwidth of a copy. The shape
determines the number of parts of a sum, and they are added in a fixed order, so every run gives the same bits.
"""

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from scoreline.gpu.backend import Backend
from scoreline.gpu.kernels import PairRows, Ramp, Ranked, Segments, host_floats
from scoreline.runtime.types import FloatArray

MAX_PARTS, PART_ENTRIES = 4096, 1 << 20  # limits of partial sums
MAX_BUCKETS = 1 << 22
SORTED_ROWS = 1 << 21  # keys from which on rows are looked up in the order of their scores


@triton.jit
def _row_dots(
    X, w, z, n, p, row_step, column_step, share, SPLIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1).to(tl.int64)
    first, last = 0, p
    if SPLIT:
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
def _column_largest(X, out, n, p, row_step, column_step, share, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    part = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    first, last = part * share, tl.minimum(part * share + share, n)
    most = tl.zeros([ROWS, COLUMNS], tl.float64)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        there = (row[:, None] < last) & (column[None, :] < p)
        x = tl.load(X + row[:, None] * row_step + column[None, :] * column_step, mask=there, other=0.0).to(tl.float64)
        most = tl.maximum(most, tl.where(x == x, tl.abs(x), float("inf")))
    tl.store(out + part * p + column, tl.max(most, axis=0), mask=column < p)


@triton.jit
def _entries(x, weight, centre, i, n, WEIGHTED: tl.constexpr, CENTRED: tl.constexpr):
    v = tl.load(x + i, mask=i < n, other=0.0)
    if CENTRED:
        v = tl.where(i < n, v - tl.load(centre), 0.0)
    if WEIGHTED:
        v *= tl.load(weight + i, mask=i < n, other=0.0)
    return v


@triton.jit
def _block_sums(x, weight, centre, sums, n, WEIGHTED: tl.constexpr, CENTRED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + tl.program_id(0), tl.sum(_entries(x, weight, centre, i, n, WEIGHTED, CENTRED), axis=0))


@triton.jit
def _sums_before(sums, n, BLOCK: tl.constexpr):
    """Replace the sums of blocks by the sums of all earlier blocks, in one program."""
    before = tl.zeros([], tl.float64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(sums + i, mask=i < n, other=0.0)
        tl.store(sums + i, before + tl.cumsum(v, axis=0) - v, mask=i < n)
        before += tl.sum(v, axis=0)


@triton.jit
def _block_scans(
    x,
    weight,
    centre,
    sums,
    out,
    n,
    WEIGHTED: tl.constexpr,
    CENTRED: tl.constexpr,
    PAIRS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = _entries(x, weight, centre, i, n, WEIGHTED, CENTRED)
    running = tl.load(sums + tl.program_id(0)) + tl.cumsum(v, axis=0)
    if PAIRS:  # (entry k, sum of the entries before it), and a final pair
        tl.store(out + 2 * i, tl.load(x + i, mask=i < n, other=float("inf")), mask=i <= n)
        tl.store(out + 2 * i + 3, running, mask=i < n)
        tl.store(out + 2 * i + 1, tl.zeros_like(v), mask=i == 0)
    else:
        tl.store(out + i, running, mask=i < n)


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
def _less(x, margin):
    """Return x - margin, or the next lower number if rounding loses the margin, so that equal scores are not ranked."""
    key = x - margin
    bits = x.to(tl.int64, bitcast=True)
    lower = tl.where(x > 0.0, bits - 1, bits + 1).to(tl.float64, bitcast=True)
    return tl.where((key == x) & (margin != 0.0), lower, key)


@triton.jit
def _class_keys(z, rows, numbers, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(z + tl.load(rows + i, mask=i < n, other=0), mask=i < n, other=0.0)
    tl.store(out + i, _less(x, tl.load(numbers)), mask=i < n)


@triton.jit
def _bucket(x, frame):
    """Return the bucket of x, which is monotone in x, because subtraction, product and rounding are."""
    b = (x - tl.load(frame)) * tl.load(frame + 1)
    return tl.minimum(tl.maximum(b, 0.0), tl.load(frame + 2))


@triton.jit
def _frame(keys, frame, n, buckets):
    """Set the lowest key, buckets over the distance to the highest, and the last bucket."""
    low, high = tl.load(keys), tl.load(keys + n - 1)
    inverse = buckets / (high - low)
    usable = (high > low) & (inverse < float("inf"))
    tl.store(frame, low)
    tl.store(frame + 1, tl.where(usable, inverse, 0.0))
    tl.store(frame + 2, tl.zeros([], tl.float64) + buckets - 1.0)


@triton.jit
def _bucket_of_keys(keys, frame, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, _bucket(tl.load(keys + i, mask=i < n, other=0.0), frame).to(tl.int32), mask=i < n)


@triton.jit
def _search(pairs, size, table, frame, x, there, BUCKETS: tl.constexpr, EQUAL: tl.constexpr):
    """Return the number of sorted keys below x (with EQUAL, or equal to it), by a bucket and bisection inside of it."""
    first = tl.zeros_like(x).to(tl.int64)
    last = tl.where(there, size, 0).to(tl.int64)
    if BUCKETS:
        bucket = _bucket(x, frame).to(tl.int64)
        first = tl.load(table + bucket, mask=there, other=0).to(tl.int64)
        last = tl.load(table + bucket + 1, mask=there, other=0).to(tl.int64)
    while tl.max(last - first, axis=0) > 0:
        open_ = first < last
        middle = (first + last) // 2
        key = tl.load(pairs + 2 * middle, mask=open_, other=0.0)
        further = (key <= x) if EQUAL else (key < x)
        first = tl.where(open_ & further, middle + 1, first)
        last = tl.where(open_ & (further == 0), middle, last)
    return first


@triton.jit
def _look_up(
    z, rows, weight, pairs, size, table, frame, counts, out, partial, numbers, middle, n, SORTED: tl.constexpr,
    BUCKETS: tl.constexpr, POSITIVE: tl.constexpr, WEIGHTED: tl.constexpr, RAMP: tl.constexpr, GIVE: tl.constexpr,
    CURVED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    margin, width, scale, centre = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2), tl.load(middle)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    row = tl.load(rows + i, mask=there, other=0)
    s = tl.where(there, 1.0, 0.0).to(tl.float64)
    every = tl.zeros([], tl.float64) + size
    if WEIGHTED:
        s = tl.load(weight + row, mask=there, other=0.0)
        every = tl.load(counts + size - 1)
    if SORTED:  # `z` has the scores in the order of `rows`, minus the margin
        x = tl.load(z + i, mask=there, other=0.0)
    else:
        x = tl.load(z + row, mask=there, other=0.0)
        if POSITIVE:
            x = _less(x, margin)
    distance = x - centre
    place = _search(pairs, size, table, frame, x, there, BUCKETS, POSITIVE)
    sum_ = tl.load(pairs + 2 * place + 1, mask=there, other=0.0)
    count = place.to(tl.float64)
    if WEIGHTED:
        count = tl.load(counts + place - 1, mask=place > 0, other=0.0)
    hard = distance * count - sum_  # of negatives
    on = tl.zeros_like(count)
    if RAMP:
        end = _search(pairs, size, table, frame, x + width if POSITIVE else x - width, there, BUCKETS, POSITIVE)
        end_sum = tl.load(pairs + 2 * end + 1, mask=there, other=0.0)
        end_count = end.to(tl.float64)
        if WEIGHTED:
            end_count = tl.load(counts + end - 1, mask=end > 0, other=0.0)
        if POSITIVE:
            on = end_count - count
            part = ((end_sum - sum_) - distance * on) / width
            result = every - end_count + tl.minimum(tl.maximum(part, 0.0), on)
            smooth = -0.5 * distance * result
        else:
            on = count - end_count
            part = (distance * on - (sum_ - end_sum)) / width
            result = end_count + tl.minimum(tl.maximum(part, 0.0), on)
            smooth = 0.5 * (distance * result + ((distance - width) * end_count - end_sum))
    elif POSITIVE:
        result, smooth = every - count, tl.zeros_like(count)
    else:
        result, smooth = count, hard
    if GIVE:
        tl.store(out + row, scale * s * (on if CURVED else result), mask=there)
    program = tl.program_id(0).to(tl.int64)
    tl.store(partial + 3 * program, tl.sum(s * smooth, axis=0))
    tl.store(partial + 3 * program + 1, 0.0 if POSITIVE else tl.sum(s * result, axis=0))
    tl.store(partial + 3 * program + 2, 0.0 if POSITIVE else tl.sum(s * hard, axis=0))


def row_dots(backend: Backend, X: Tensor, w: Tensor) -> Tensor:
    by_columns = X.stride(0) < X.stride(1)
    return _sums_of_columns(X.T, w) if by_columns else _dots_of_rows(X, w)


def column_sums(backend: Backend, X: Tensor, u: Tensor) -> Tensor:
    by_columns = X.stride(0) < X.stride(1)
    return _dots_of_rows(X.T, u) if by_columns else _sums_of_columns(X, u)


def _dots_of_rows(X: Tensor, w: Tensor) -> Tensor:
    n, p = X.shape
    parts = max(1, min(triton.cdiv(p, 4096), 2 * PART_ENTRIES // max(1, n)))  # a few long rows are split
    out = torch.empty((parts, n), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _row_dots[(triton.cdiv(n, 32), parts)](
            X, w, out, n, p, *X.stride(), triton.cdiv(p, parts), SPLIT=parts > 1, ROWS=32, COLUMNS=64, num_warps=4
        )
    return out[0] if parts == 1 else out.sum(0)


def _sums_of_columns(X: Tensor, u: Tensor) -> Tensor:
    n, p = X.shape
    parts = max(1, min(MAX_PARTS, PART_ENTRIES // max(1, p), triton.cdiv(n, 64)))
    out = torch.empty((parts, p), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _column_sums[(parts, triton.cdiv(p, 128))](
            X, u, out, n, p, *X.stride(), triton.cdiv(n, parts), ROWS=16, COLUMNS=128, num_warps=8
        )
    return out.sum(0)


def segment_dots(segments: Segments, vector: Tensor) -> Tensor:
    count, gather = len(segments), segments.indices is not None
    out = torch.empty(count, dtype=torch.float64, device=segments.values.device)
    rows, wide = (8, 32) if segments.mean_length < 512 else (4, 256)
    with torch.cuda.device(out.device):
        _segment_dots[(triton.cdiv(count, rows),)](
            segments.starts, segments.stops, segments.values, segments.indices if gather else segments.values,
            vector if gather else segments.values, out, count, GATHER=gather, ROWS=rows, WIDE=wide, num_warps=4,
        )  # fmt: skip
    return out


def column_largest(backend: Backend, X: Tensor) -> Tensor:
    n, p = X.shape
    parts = max(1, min(MAX_PARTS, PART_ENTRIES // max(1, p), triton.cdiv(n, 64)))
    out = torch.empty((parts, p), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _column_largest[(parts, triton.cdiv(p, 128))](
            X, out, n, p, *X.stride(), triton.cdiv(n, parts), ROWS=16, COLUMNS=128, num_warps=8
        )
    return out.amax(0)


def running_sums(
    backend: Backend, x: Tensor, weight: Tensor | None = None, centre: Tensor | None = None, pairs: bool = False
) -> Tensor:
    """Return the cumulative sums of weight * (x - centre); those of PyTorch itself are not reproducible.

    With `pairs` the result is an array of (x_k, sum of the entries before k) for k = 0 ... n, where the last x is infinity. A
    search then finds the sum next to the key that it has just read.
    """
    n, block = x.shape[0], 2048
    out = torch.empty(2 * (n + 1) if pairs else n, dtype=torch.float64, device=x.device)
    flags = {"WEIGHTED": weight is not None, "CENTRED": centre is not None, "BLOCK": block}
    weight, centre = x if weight is None else weight, x if centre is None else centre
    programs = triton.cdiv(n + 1 if pairs else n, block)
    sums = torch.empty(programs, dtype=torch.float64, device=x.device)
    with torch.cuda.device(x.device):
        _block_sums[(programs,)](x, weight, centre, sums, n, **flags)
        _sums_before[(1,)](sums, programs, BLOCK=block)
        _block_scans[(programs,)](x, weight, centre, sums, out, n, PAIRS=pairs, **flags)
    return out


def class_keys(backend: Backend, z: Tensor, rows: Tensor, margin: float) -> Tensor:
    n, block = rows.shape[0], 1024
    out = torch.empty(n, dtype=torch.float64, device=z.device)
    with torch.cuda.device(z.device):
        _class_keys[(triton.cdiv(n, block),)](z, rows, _numbers(margin, 0.0, 0.0, z.device), out, n, BLOCK=block)
    return out


def ranked(backend: Backend, scores: Tensor, weight: Tensor | None, rows: Tensor, centre: Tensor) -> Ranked:
    """Return the sorted scores of a class with cumulative sums (in pairs) and, for many rows, the index of each."""
    ordered, order = torch.sort(scores)
    places = order if len(order) >= SORTED_ROWS else None
    if weight is None:
        return Ranked(ordered, None, running_sums(backend, ordered, None, centre, pairs=True), places)
    s = weight.index_select(0, rows).index_select(0, order)
    return Ranked(ordered, running_sums(backend, s), running_sums(backend, ordered, s, centre, pairs=True), places)


def look_up(
    backend: Backend, rows: PairRows, positives: Ranked, negatives: Ranked | None, ramp: Ramp
) -> tuple[Tensor | None, FloatArray]:
    """Look up every row among the sorted scores of the other class (`kernels_generic.look_up`), with one kernel per class."""
    both = ramp.both and negatives is not None
    out = torch.empty_like(rows.z) if both else None
    sums = _one_class(rows, negatives, positives, ramp, False, out)
    if both:
        assert negatives is not None
        sums = sums + _one_class(rows, positives, negatives, ramp, True, out)
    return out, host_floats(backend, sums)


def _one_class(
    rows: PairRows, own: Ranked | None, keys: Ranked, ramp: Ramp, positive: bool, out: Tensor | None
) -> Tensor:
    """Look up the rows of one class among the keys of the other, write their results, and return three sums.

    If there are many keys, rows are processed in the order of their scores: neighbours then read the same keys, which is worth
    the scattered writes. A few keys fit into the cache, and rows are processed in their own order.
    """
    listed, z, weighted = rows.positive_rows if positive else rows.negative_rows, rows.z, rows.weight is not None
    n, size = len(listed), len(keys)
    in_order = own is not None and own.rows is not None and size >= SORTED_ROWS
    if in_order:
        assert own is not None
        listed, z = listed.index_select(0, own.rows), own.scores
    buckets = not in_order and 8 * n >= size
    table, frame = _buckets(keys.scores) if buckets else (keys.scores, keys.scores)
    numbers = _numbers(ramp.margin, ramp.width, ramp.scales[0 if positive else 1], z.device)
    block = 512
    programs = triton.cdiv(n, block)
    partial = torch.empty((programs, 3), dtype=torch.float64, device=z.device)
    with torch.cuda.device(z.device):
        _look_up[(programs,)](
            z, listed, rows.weight if weighted else z, keys.sums, size, table, frame, keys.weights if weighted else z,
            rows.z if out is None else out, partial, numbers, ramp.centre, n,
            SORTED=in_order, BUCKETS=buckets, POSITIVE=positive, WEIGHTED=weighted, RAMP=ramp.width > 0.0,
            GIVE=out is not None, CURVED=ramp.curved, BLOCK=block, num_warps=4,
        )  # fmt: skip
    return partial.sum(0)


@lru_cache(maxsize=64)
def _numbers(margin: float, width: float, scale: float, device: torch.device) -> Tensor:
    """Return numbers on the device, cached because a line search uses the same ones many times."""
    return torch.tensor([margin, width, scale], dtype=torch.float64, device=device)


def _buckets(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the keys of many equal intervals begin, and (low, 1 / width, last) of these intervals.

    There is about one key per interval, so most searches end immediately.
    """
    n = len(keys)
    count = min(MAX_BUCKETS, n)
    frame = torch.empty(3, dtype=torch.float64, device=keys.device)
    own = torch.empty(n, dtype=torch.int32, device=keys.device)
    with torch.cuda.device(keys.device):
        _frame[(1,)](keys, frame, n, count)
        _bucket_of_keys[(triton.cdiv(n, 1024),)](keys, frame, own, n, BLOCK=1024)
    return torch.searchsorted(own, _integers(count + 1, keys.device), out_int32=True), frame


@lru_cache(maxsize=2)
def _integers(count: int, device: torch.device) -> Tensor:
    return torch.arange(count, dtype=torch.int32, device=device)
