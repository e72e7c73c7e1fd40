"""On a Dask cluster: rows stay on their workers, the solver runs here, the certificate is the same.

python examples/cluster.py [--rows 24000] [--workers 2]      needs: pip install 'scoreline[dask]'
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from scoreline import MeasureClassifier
from scoreline.data import convert, make_imbalanced, open_on_workers


def main(rows: int = 24_000, workers: int = 2) -> float:
    """Train from a Dask array and from folders on disk; return how far the two optima are apart."""
    import dask.array as da
    from distributed import Client

    X, y = make_imbalanced(n_samples=rows, random_state=0)
    with (
        Client(n_workers=workers, threads_per_worker=1, dashboard_address=None),
        tempfile.TemporaryDirectory() as folder,
    ):
        blocks, labels = da.from_array(X, chunks=(rows // 8, -1)), da.from_array(y, chunks=rows // 5)  # cut differently
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
        apart = abs(mapped.objective_ - clf.objective_)
        print(f"from folders on disk: the same optimum, {apart:.1e} apart, gaps {clf.gap_:.1e} and {mapped.gap_:.1e}")
        return apart


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=24_000)
    parser.add_argument("--workers", type=int, default=2)
    main(**vars(parser.parse_args()))
