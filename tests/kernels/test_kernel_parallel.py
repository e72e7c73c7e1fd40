"""Threads: the same bits for any number, limits that nest, errors that come through, several callers at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from scoreline import kernels
from scoreline.operators import as_operator
from scoreline.risks import LogisticRisk, RocAreaRisk
from scoreline.runtime import parallel
from tiers import examples


def test_unknown_kernel_modules_are_attribute_errors():
    with pytest.raises(AttributeError, match="nothing"):
        kernels.nothing  # noqa: B018 - the access itself raises


@examples(100)
@given(n=st.integers(1, 10**7), work=st.floats(0.01, 1e4), limit=st.integers(1, 64))
def test_chunk_bounds_rise_from_zero_to_n(n, work, limit):
    bounds = parallel.even_bounds(n, work, limit)
    assert bounds.dtype == np.uint64
    assert (bounds[0], bounds[-1]) == (0, n)
    assert (np.diff(bounds.astype(np.int64)) > 0).all()
    assert len(bounds) - 1 <= limit
    lengths = np.diff(bounds.astype(np.int64))
    assert lengths.max() - lengths.min() <= 1
    if len(bounds) > 2:
        assert lengths.min() * work >= 0.5 * parallel.MIN_CHUNK_WORK


def test_no_rows_make_one_empty_chunk():
    assert parallel.even_bounds(0, 1).tolist() == [0, 0]


@for_each("threads", [0, 1, 2, 3, 7])
@for_each("n_chunks", [1, 2, 3, 16, 64])
def test_every_chunk_is_run_once(n_chunks, threads):
    visited = []
    with parallel.thread_limit(threads):
        parallel.run_chunks(lambda _, first, last: visited.extend(range(first, last)), n_chunks, None)
    assert sorted(visited) == list(range(n_chunks))


def test_several_threads_really_work():
    """Two tasks wait for each other: with one thread alone this would time out."""
    barrier = threading.Barrier(2)
    names = set()

    def kernel(first, last):
        barrier.wait(timeout=600)
        names.add(threading.current_thread().name)

    with parallel.thread_limit(2):
        parallel.run_chunks(kernel, 2)
    assert len(names) == 2


@for_each("bad", [0, 9, 15])
def test_an_error_in_a_chunk_comes_through_and_the_pool_goes_on(bad):
    def kernel(first, last):
        if first <= bad < last:
            raise ZeroDivisionError(f"chunk {bad}")

    with parallel.thread_limit(3):
        with pytest.raises(ZeroDivisionError, match=f"chunk {bad}"):
            parallel.run_chunks(kernel, 16)
        done = []
        parallel.run_chunks(lambda first, last: done.extend(range(first, last)), 16)
    assert sorted(done) == list(range(16))


def test_thread_limits_nest_and_end():
    before = parallel.current_threads()
    with parallel.thread_limit(3):
        assert parallel.current_threads() == 3
        with parallel.thread_limit(1):
            assert parallel.current_threads() == 1
            with parallel.thread_limit(None):
                assert parallel.current_threads() == parallel.available_threads()
            assert parallel.current_threads() == 1
        assert parallel.current_threads() == 3
        with pytest.raises(KeyError), parallel.thread_limit(2):
            raise KeyError
        assert parallel.current_threads() == 3
    assert parallel.current_threads() == before


@for_each("missing", [0, 1, 100])
def test_negative_limits_count_from_all_threads(missing):
    with parallel.thread_limit(-1 - missing):
        assert parallel.current_threads() == max(1, parallel.available_threads() - missing)


def test_a_limit_belongs_to_its_python_thread():
    with parallel.thread_limit(5), ThreadPoolExecutor(1) as other:
        assert other.submit(parallel.current_threads).result() == parallel.available_threads()
        assert parallel.current_threads() == 5


def long_problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 60))
    y = np.where(rng.random(20_000) < 0.3, 1, -1)
    return X, y, rng.standard_normal(60), rng.random(20_000)


def all_results(X, y, w, s):
    """Run every kind of kernel and return what it gave."""
    out = []
    for storage in (X, np.asfortranarray(X), X.astype(np.float32), sp.csr_matrix(X), sp.csc_matrix(X), X[:, ::-1]):
        operator = as_operator(storage)
        z = operator.matvec(w)
        out += [z, operator.rmatvec(s - 0.5), *operator.column_statistics(s)]
    rows = np.arange(0, len(X), 2)
    out += [operator.matvec_rows(w, rows), operator.rmatvec_rows(s[rows], rows)]
    for risk in (RocAreaRisk(), LogisticRisk()):
        for weight in (None, s):
            prepared = risk.prepare(y, weight)
            mu = 0.1 / prepared.ramp_scale if risk.smoothable else 0.0
            result = prepared.evaluate(z, mu)
            out += [result.grad, np.array([result.value, result.hard, result.plane])]
    out.append(np.array([kernels.vectors.dot(z, s), kernels.vectors.max_abs(z)]))
    return out


def test_one_two_and_three_threads_give_the_same_bits():
    problem = long_problem()
    results = []
    for threads in (1, 2, 3):
        with parallel.thread_limit(threads):
            results.append(all_results(*problem))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a, b)


def test_several_python_threads_at_once_get_right_results():
    problem = long_problem()
    with parallel.thread_limit(1):
        expected = all_results(*problem)

    def call(threads):
        with parallel.thread_limit(threads):
            return all_results(*problem)

    with ThreadPoolExecutor(4) as callers:
        for got in callers.map(call, [1, 2, 3, 2, 4, 1]):
            for a, b in zip(expected, got, strict=True):
                assert np.array_equal(a, b)


def test_a_pool_that_another_thread_replaces_still_serves_its_caller(monkeypatch):
    """Thread A holds the pool of size 1, thread B then asks for 7 threads, then A hands over its tasks.

    The interleaving is forced: B's request happens between A's look at the pool and A's `submit`.
    """
    parallel._forget_pool()
    original = parallel._get_pool

    def get_pool_then_lose_it(size):
        pool = original(size)
        other = threading.Thread(target=original, args=(size + 6,))
        other.start()
        other.join(timeout=600)
        return pool

    monkeypatch.setattr(parallel, "_get_pool", get_pool_then_lose_it)
    done = []
    with parallel.thread_limit(2):
        parallel.run_chunks(lambda first, last: done.extend(range(first, last)), 8)
    assert sorted(done) == list(range(8))


def test_chunks_may_use_chunks_themselves():
    """A block of rows may be made by kernels: threads of one pool must not wait for each other."""

    done, both, local = np.zeros(8, dtype=int), threading.Barrier(2), threading.local()

    def inner(k, first, last):
        done[k] += last - first

    def outer(first, last):
        if not getattr(local, "before", False):
            local.before = True
            both.wait(600)  # so that both threads are inside at once
        for k in range(first, last):
            parallel.run_chunks(inner, 5, k)

    def run():
        with parallel.thread_limit(2):
            parallel.run_chunks(outer, 8)

    parallel._forget_pool()  # one that other tests have made larger has threads to spare
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=600)
    assert not thread.is_alive(), "the threads wait for each other"
    assert (done == 5).all()


def test_threads_have_the_callers_context():
    """What NumPy does about overflow is a part of it: a warning of a helper would come out of nowhere."""
    both, found = threading.Barrier(2), []

    def kernel(first, last):
        both.wait(600)  # so that each of the two threads has one
        found.append(np.geterr()["over"])

    with parallel.thread_limit(2), np.errstate(over="ignore"):
        parallel.run_chunks(kernel, 2)
    assert found == ["ignore", "ignore"]
