"""Products and look-ups of CuPy arrays by CUDA C, compiled when first used and kept by CuPy.

The same sums in the same places as in `kernels_triton.py`: float64, as many parts as the shape says, added in fixed order.
"""

from functools import cache
from typing import Any

import cupy

from scoreline.gpu.backend import Backend
from scoreline.gpu.kernels import PairRows, Ramp, Ranked, Segments, host_floats
from scoreline.gpu.kernels_generic import class_keys
from scoreline.runtime.types import AnyArray

__all__ = [
    "class_keys",
    "column_largest",
    "column_sums",
    "look_up",
    "ranked",
    "row_dots",
    "running_sums",
    "segment_dots",
]

THREADS = 256
MOST_PARTS, PART_ENTRIES = 4096, 1 << 20  # of partial sums

SOURCE = r"""
typedef long long Long;

__device__ double warp_sum(double x) {
    for (int k = 16; k > 0; k >>= 1) x += __shfl_down_sync(0xffffffffu, x, k);
    return x;
}

template <typename T> struct Four { T x, y, z, w; };
template <> struct __align__(16) Four<float> { float x, y, z, w; };
template <> struct __align__(16) Four<double> { double x, y, z, w; };

template <typename T>
__device__ double dot4(Four<T> a, const double* w) {
    return ((double)a.x * w[0] + (double)a.y * w[1]) + ((double)a.z * w[2] + (double)a.w * w[3]);
}

// z[part * n + i] = sum of X[i, j] w[j] over the columns of a part: a warp for each row, by scalars in any order of memory.
template <typename T>
__global__ void row_dots(
    const T* X, const double* w, double* z, Long n, Long p, Long row_step, Long column_step, Long share
) {
    Long i = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= n) return;
    Long first = blockIdx.y * share, last = min(first + share, p);
    const T* row = X + i * row_step;
    double a = 0.0;
    for (Long j = first + lane; j < last; j += 32) a += (double)row[j * column_step] * w[j];
    a = warp_sum(a);
    if (lane == 0) z[blockIdx.y * n + i] = a;
}

// The same for rows that lie in memory as fours of entries: a warp reads four rows at a time.
template <typename T>
__global__ void row_dots_by_four(const T* X, const double* w, double* z, Long n, Long p, Long row_step) {
    Long i = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / 32 * 4;
    int lane = threadIdx.x % 32;
    double a[4] = {0.0, 0.0, 0.0, 0.0};
    for (Long j = 4 * lane; j < p; j += 128) {
        Four<T> x[4];
        #pragma unroll
        for (int r = 0; r < 4; r++) x[r] = *(const Four<T>*)(X + min(i + r, n - 1) * row_step + j);
        double v[4] = {w[j], w[j + 1], w[j + 2], w[j + 3]};
        #pragma unroll
        for (int r = 0; r < 4; r++) a[r] += dot4(x[r], v);
    }
    #pragma unroll
    for (int r = 0; r < 4; r++) {
        double total = warp_sum(a[r]);
        if (lane == 0 && i + r < n) z[i + r] = total;
    }
}

// out[part * p + j] = sum of X[i, j] u[i] over the rows of a part: 64 columns by 4 rows of threads, in any order of memory.
template <typename T>
__global__ void column_sums(
    const T* X, const double* u, double* out, Long n, Long p, Long row_step, Long column_step, Long share
) {
    __shared__ double sums[4][64];
    Long j = blockIdx.y * 64LL + threadIdx.x;
    Long first = blockIdx.x * share, last = min(first + share, n);
    double a = 0.0;
    if (j < p)
        for (Long i = first + threadIdx.y; i < last; i += 4) a += (double)X[i * row_step + j * column_step] * u[i];
    sums[threadIdx.y][threadIdx.x] = a;
    __syncthreads();
    if (threadIdx.y == 0 && j < p)
        out[blockIdx.x * p + j] = (sums[0][threadIdx.x] + sums[1][threadIdx.x]) + (sums[2][threadIdx.x] + sums[3][threadIdx.x]);
}

// The same by fours: 32 lanes read 128 columns of a row, 8 warps read 8 rows, four of each at a time.
template <typename T>
__global__ void column_sums_by_four(const T* X, const double* u, double* out, Long n, Long p, Long row_step, Long share) {
    __shared__ double sums[8][128];
    Long j = blockIdx.y * 128LL + 4 * threadIdx.x;
    Long first = blockIdx.x * share, last = min(first + share, n);
    double a[4] = {0.0, 0.0, 0.0, 0.0};
    if (j < p)
        for (Long i = first + threadIdx.y; i < last; i += 32) {
            Four<T> x[4];
            double v[4];
            #pragma unroll
            for (int r = 0; r < 4; r++) {
                Long row = min(i + 8 * r, last - 1);
                x[r] = *(const Four<T>*)(X + row * row_step + j);
                v[r] = i + 8 * r < last ? u[row] : 0.0;
            }
            #pragma unroll
            for (int r = 0; r < 4; r++) {
                a[0] += (double)x[r].x * v[r];
                a[1] += (double)x[r].y * v[r];
                a[2] += (double)x[r].z * v[r];
                a[3] += (double)x[r].w * v[r];
            }
        }
    for (int k = 0; k < 4; k++) sums[threadIdx.y][4 * threadIdx.x + k] = a[k];
    __syncthreads();
    int column = threadIdx.y * 32 + threadIdx.x;
    if (column < 128 && blockIdx.y * 128LL + column < p) {
        double total = 0.0;
        for (int k = 0; k < 8; k++) total += sums[k][column];
        out[blockIdx.x * p + blockIdx.y * 128LL + column] = total;
    }
}

// out[part * p + j] = largest |X[i, j]| over the rows of a part, infinity where there is NaN.
template <typename T>
__global__ void column_largest(const T* X, double* out, Long n, Long p, Long row_step, Long column_step, Long share) {
    __shared__ double most[4][64];
    Long j = blockIdx.y * 64LL + threadIdx.x;
    Long first = blockIdx.x * share, last = min(first + share, n);
    double a = 0.0;
    if (j < p)
        for (Long i = first + threadIdx.y; i < last; i += 4) {
            double x = fabs((double)X[i * row_step + j * column_step]);
            a = x == x ? (x > a ? x : a) : 1.0 / 0.0;
        }
    most[threadIdx.y][threadIdx.x] = a;
    __syncthreads();
    if (threadIdx.y == 0 && j < p) {
        for (int k = 1; k < 4; k++) a = most[k][threadIdx.x] > a ? most[k][threadIdx.x] : a;
        out[blockIdx.x * p + j] = a;
    }
}

// Running sums in three steps: sums of blocks, those of all blocks before, and scans within blocks.
__global__ void block_scans(const double* x, const double* before, double* out, double* sums, Long n) {
    __shared__ double part[256];
    Long i = blockIdx.x * 256LL + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0;
    for (int k = 1; k < 256; k <<= 1) {
        __syncthreads();
        double add = threadIdx.x >= k ? part[threadIdx.x - k] : 0.0;
        __syncthreads();
        part[threadIdx.x] += add;
    }
    if (sums && threadIdx.x == 255) sums[blockIdx.x] = part[255];
    if (out && i < n) out[i] = (before ? before[blockIdx.x] : 0.0) + part[threadIdx.x];
}

// A warp for each segment.
template <typename T, typename I>
__global__ void segment_dots(
    const Long* starts, const Long* stops, const T* values, const I* indices, const double* v, double* out, Long n, bool gather
) {
    Long i = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= n) return;
    double a = 0.0;
    for (Long k = starts[i] + lane; k < stops[i]; k += 32) a += (double)values[k] * (gather ? v[indices[k]] : 1.0);
    a = warp_sum(a);
    if (lane == 0) out[i] = a;
}

__device__ Long search(const double* keys, Long size, double x, bool equal) {
    Long low = 0, high = size;
    while (low < high) {
        Long middle = (low + high) / 2;
        if (equal ? keys[middle] <= x : keys[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
}

__global__ void look_up(
    const double* z, const signed char* sign, const double* weight, const double* P, const double* P0, const double* P1,
    const double* N, const double* N0, const double* N1, double* out, double* partial, Long n, Long a, Long b, double margin,
    double width, const double* middle, double scale_p, double scale_n, double every, bool weighted, bool both, bool curved
) {
    Long i = blockIdx.x * (Long)blockDim.x + threadIdx.x;
    double centre = *middle;
    double smooth = 0.0, ramps = 0.0, hard = 0.0;
    bool positive = i < n && sign[i] > 0;
    if (i < n && (both || !positive)) {
        double f = z[i], key = f - margin, s = weighted ? weight[i] : 1.0;
        if (key == f && margin != 0.0) key = nextafter(f, -1.0 / 0.0);  // equal scores must not look right
        double x = positive ? key : f, distance = x - centre;
        const double* keys = positive ? N : P;
        const double* first = positive ? N0 : P0;
        const double* second = positive ? N1 : P1;
        Long size = positive ? b : a;
        Long place = search(keys, size, x, positive);
        double count = weighted ? (place ? first[place - 1] : 0.0) : (double)place, sums = place ? second[place - 1] : 0.0;
        double on = 0.0, result;
        hard = positive ? 0.0 : distance * count - sums;
        if (width > 0.0) {
            Long end = search(keys, size, positive ? key + width : f - width, positive);
            double end_count = weighted ? (end ? first[end - 1] : 0.0) : (double)end, end_sums = end ? second[end - 1] : 0.0;
            on = positive ? end_count - count : count - end_count;
            double moved = positive ? end_sums - sums : sums - end_sums;
            double part = (positive ? moved - distance * on : distance * on - moved) / width;
            part = part > 0.0 ? (part < on ? part : on) : (part == part ? 0.0 : part);
            result = part + (positive ? every - end_count : end_count);
            smooth = 0.5 * (positive ? -distance * result : distance * result + ((distance - width) * end_count - end_sums));
        } else {
            result = positive ? every - count : count;
            smooth = hard;
        }
        if (both) out[i] = (positive ? scale_p : scale_n) * s * (curved ? on : result);
        ramps = positive ? 0.0 : s * result;
        smooth *= s;
        hard *= s;
    }
    __shared__ double sums[3][8];
    double all[3] = {smooth, ramps, hard};
    for (int k = 0; k < 3; k++) {
        double total = warp_sum(all[k]);
        if (threadIdx.x % 32 == 0) sums[k][threadIdx.x / 32] = total;
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        double total = 0.0;
        for (int k = 0; k < 8; k++) total += sums[threadIdx.x][k];
        partial[3 * (Long)blockIdx.x + threadIdx.x] = total;
    }
}
"""


PRODUCTS = ("row_dots", "row_dots_by_four", "column_sums", "column_sums_by_four", "column_largest")


@cache
def _kernel(name: str, device: int) -> Any:
    """Return a function of the source, compiled for a device."""
    names = [f"{f}<{t}>" for f in PRODUCTS for t in ("float", "double")]
    names += [f"segment_dots<{t}, {i}>" for t in ("float", "double") for i in ("int", "Long")]
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=(*names, "block_scans", "look_up"))
    return module.get_function(name)


def _type(x: Any) -> str:
    return {"float32": "float", "float64": "double", "int32": "int", "int64": "Long"}[x.dtype.name]


def _called(name: str, device: Any, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
    with device:
        _kernel(name, device.id)(grid, block, arguments)


def _steps(X: Any) -> tuple[int, int]:
    return X.strides[0] // X.itemsize, X.strides[1] // X.itemsize


def row_dots(backend: Backend, X: Any, w: Any) -> Any:
    """Return Xw in float64."""
    return _sums_of_columns(X.T, w) if X.strides[0] < X.strides[1] else _dots_of_rows(X, w)


def column_sums(backend: Backend, X: Any, u: Any) -> Any:
    """Return X'u in float64."""
    return _dots_of_rows(X.T, u) if X.strides[0] < X.strides[1] else _sums_of_columns(X, u)


def _by_four(X: Any) -> bool:
    """Tell whether every row lies in memory as fours of entries."""
    row, column = _steps(X)
    return bool(column == 1 and X.shape[1] % 4 == 0 and row % 4 == 0 and X.data.ptr % 16 == 0)


def _dots_of_rows(X: Any, w: Any) -> Any:
    n, p = X.shape
    parts = max(1, min(-(-p // 4096), 2 * PART_ENTRIES // max(1, n)))  # long rows are cut where there are few
    out, warps = cupy.empty((parts, n)), THREADS // 32
    if parts == 1 and _by_four(X):
        grid = (-(-n // (4 * warps)),)
        _called(f"row_dots_by_four<{_type(X)}>", X.device, grid, (THREADS,), (X, w, out, n, p, _steps(X)[0]))
    else:
        arguments = (X, w, out, n, p, *_steps(X), -(-p // parts))
        _called(f"row_dots<{_type(X)}>", X.device, (-(-n // warps), parts), (THREADS,), arguments)
    return out[0] if parts == 1 else out.sum(axis=0)


def _sums_of_columns(X: Any, u: Any) -> Any:
    n, p = X.shape
    parts = max(1, min(MOST_PARTS, PART_ENTRIES // max(1, p), -(-n // 64)))
    out, share = cupy.empty((parts, p)), -(-n // parts)
    if _by_four(X):
        arguments: tuple[Any, ...] = (X, u, out, n, p, _steps(X)[0], share)
        _called(f"column_sums_by_four<{_type(X)}>", X.device, (parts, -(-p // 128)), (32, 8), arguments)
    else:
        arguments = (X, u, out, n, p, *_steps(X), share)
        _called(f"column_sums<{_type(X)}>", X.device, (parts, -(-p // 64)), (64, 4), arguments)
    return out.sum(axis=0)


def column_largest(backend: Backend, X: Any) -> Any:
    """Return the largest magnitude of each column, infinity where there is NaN."""
    n, p = X.shape
    parts = max(1, min(MOST_PARTS, PART_ENTRIES // max(1, p), -(-n // 64)))
    out = cupy.empty((parts, p))
    arguments = (X, out, n, p, *_steps(X), -(-n // parts))
    _called(f"column_largest<{_type(X)}>", X.device, (parts, -(-p // 64)), (64, 4), arguments)
    return out.max(axis=0)


def running_sums(backend: Backend, x: Any) -> Any:
    """Return the sums of the first 1, 2, ... entries; CuPy's own change from run to run."""
    n, x = x.shape[0], cupy.ascontiguousarray(x)
    blocks = -(-n // THREADS)
    out, none = cupy.empty(n), 0
    if blocks == 1:
        _called("block_scans", x.device, (1,), (THREADS,), (x, none, out, none, n))
        return out
    sums = cupy.empty(blocks)
    _called("block_scans", x.device, (blocks,), (THREADS,), (x, none, none, sums, n))
    before = running_sums(backend, sums) - sums
    _called("block_scans", x.device, (blocks,), (THREADS,), (x, before, out, none, n))
    return out


def ranked(backend: Backend, scores: Any, weight: Any, rows: Any, centre: Any) -> Ranked:
    """Return the scores of a class sorted, with running sums."""
    if weight is None:
        ordered = cupy.sort(scores)
        return Ranked(ordered, None, running_sums(backend, ordered - centre))
    order = cupy.argsort(scores)
    ordered, s = scores[order], weight[rows][order]
    return Ranked(ordered, running_sums(backend, s), running_sums(backend, s * (ordered - centre)))


def segment_dots(segments: Segments, vector: Any) -> Any:
    """Return the sum of values times vector[indices] over each segment."""
    count, gather, values = len(segments), segments.indices is not None, segments.values
    out = cupy.empty(count)
    indices = segments.indices if gather else segments.starts
    arguments = (segments.starts, segments.stops, values, indices, vector if gather else out, out, count, gather)
    name = f"segment_dots<{_type(values)}, {_type(indices)}>"
    _called(name, values.device, (-(-count // (THREADS // 32)),), (THREADS,), arguments)
    return out


def look_up(
    backend: Backend, rows: PairRows, positives: Ranked, negatives: Ranked | None, ramp: Ramp
) -> tuple[Any, AnyArray]:
    """Let every row find itself among the sorted scores of the other class (`kernels_generic.look_up`), in one kernel."""
    z, both = rows.z, ramp.both and negatives is not None
    other = negatives if negatives is not None else positives
    n, weighted = z.shape[0], rows.weight is not None
    every = float(len(other)) if not weighted else float(other.weights[-1])
    out = cupy.empty_like(z) if both else z
    blocks = -(-n // THREADS)
    partial = cupy.empty((blocks, 3))
    arguments = (
        z, rows.sign, rows.weight if weighted else z,
        positives.scores, positives.weights if weighted else positives.sums, positives.sums,
        other.scores, other.weights if weighted else other.sums, other.sums,
        out, partial, n, len(positives), len(other), ramp.margin, ramp.width, ramp.centre, *ramp.scales, every,
        weighted, both, ramp.curved,
    )  # fmt: skip
    _called("look_up", z.device, (blocks,), (THREADS,), arguments)
    return out if both else None, host_floats(backend, partial.sum(axis=0))
