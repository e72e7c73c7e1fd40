"""One optimum, three ways to it: all rows from the start, samples first, batches that grow and skip rows.

python examples/batches.py [--rows 200000]
"""

import argparse

import numpy as np

from scoreline import MeasureClassifier
from scoreline.data import make_imbalanced

WAYS = {
    "newton, all rows": ("newton", {"init": "zero"}),
    "newton, samples first": ("newton", {"init": "samples"}),
    "hybrid": ("hybrid", {}),
    "hybrid, skipping rows": ("hybrid", {"shrink": "path"}),
}


def main(rows: int = 200_000) -> list[float]:
    """Print passes, time and the two bounds of each way; return the objectives."""
    X, y = make_imbalanced(n_samples=rows, n_features=30, positive_share=0.05, tail=8.0, random_state=0)
    kind = {"measure": "accuracy", "risk": "squared_hinge", "alpha": 1e-4, "tol": 1e-4, "scaling": "standard"}
    objectives = []
    print(f"smooth support vector machine, {rows:,} x 30, proved to {kind['tol']:g}")
    for name, (solver, options) in WAYS.items():
        MeasureClassifier(**kind, solver=solver, solver_params=options).fit(X[:5000], y[:5000])  # compile
        clf = MeasureClassifier(**kind, solver=solver, solver_params=options).fit(X, y)
        history, skipped = clf.history_, np.mean(clf.history_.get("skipped", [0.0]))
        bounds = f"{clf.lower_bound_:.6f} <= min J <= {clf.objective_:.6f}"
        print(
            f"  {name:<22} {clf.n_iter_:3d} iterations, {history['passes'][-1]:5.1f} passes, {history['seconds'][-1]:.3f} s, "
            f"{skipped:4.0%} of rows skipped, {bounds}"
        )
        objectives.append(clf.objective_)
    return objectives


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    main(parser.parse_args().rows)
