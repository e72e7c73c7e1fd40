"""
Train on a Dask cluster
=======================

The rows stay on their workers, the solver runs in your process, and the certificate is the same. An iteration moves a few
numbers, neither the rows nor their scores.

This example is not run when this page is built, because it starts worker processes of its own. Install it with ``pip install
'scoreline[dask]'``. Then ``python examples/cluster.py --rows 24000 --workers 2`` prints::

    24000 rows in 8 blocks on 2 workers: ROC area 0.7532
    proved: 0.61586 <= min J <= 0.61604, 7 iterations
    moved in an iteration: 8 kB; gathering all scores once: 192 kB
    predictions are lazy: dask.array<_classes, shape=(24000,), dtype=int64, chunksize=(3000,), chunktype=numpy.ndarray>
    from folders on disk: the same optimum, 2.2e-16 apart, gaps 1.8e-04 and 1.8e-04
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from scoreline import MeasureClassifier
from scoreline.distributed import open_on_workers
from scoreline.io import convert, make_imbalanced

# sphinx_gallery_thumbnail_path = "gallery_cluster.svg"


def main(rows: int = 24_000, workers: int = 2) -> float:
    """Train from a Dask array and from folders on disk; return how far the two optima are apart."""
    import dask.array as da
    from distributed import Client

    X, y = make_imbalanced(n_samples=rows, tail=10.0, random_state=0)
    with (
        Client(n_workers=workers, threads_per_worker=1, dashboard_address=":0"),
        tempfile.TemporaryDirectory() as folder,
    ):
        blocks, labels = (
            da.from_array(X, chunks=(rows // 8, -1)),
            da.from_array(y, chunks=rows // 5),
        )  # threshold differently
        clf = MeasureClassifier("roc_auc", scaling="standard").fit(blocks, labels)
        moved, gathered = np.diff(clf.history_["bytes"]).min(), 8 * rows
        print(
            f"{rows} rows in {blocks.numblocks[0]} blocks on {workers} workers: ROC area {clf.score(blocks, labels):.4f}"
        )
        print(f"proved: {clf.lower_bound_:.5f} <= min J <= {clf.objective_:.5f}, {clf.n_iter_} iterations")
        print(f"moved in an iteration: {moved / 1e3:.0f} kB; gathering all scores once: {gathered / 1e3:.0f} kB")
        print(f"predictions are lazy: {clf.predict(blocks)!r}")

        paths = [Path(folder, f"part-{k}") for k in range(3)]
        for path, part in zip(paths, np.array_split(np.arange(rows), 3), strict=True):
            convert((X[part], y[part]), path)
        data = open_on_workers(paths)
        mapped = MeasureClassifier("roc_auc", scaling="standard").fit(data.X, data.y)
        difference = abs(mapped.objective_ - clf.objective_)
        print(
            f"from folders on disk: the same optimum, {difference:.1e} apart, gaps {clf.gap_:.1e} and {mapped.gap_:.1e}"
        )
        return difference


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rows", type=int, default=24_000)
    parser.add_argument("--workers", type=int, default=2)
    main(**vars(parser.parse_args()))
