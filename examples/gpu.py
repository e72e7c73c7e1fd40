"""
Train on a GPU
==============

The estimator accepts tensors on a GPU, and the certificate is the same. It can also move data from the host for the fit.

This example is not run when this page is built, because it needs a GPU. Install it with ``pip install 'scoreline[gpu]' torch``.
Then run ``python examples/gpu.py --rows 60000 --device cuda``. Without a GPU, PyTorch's CPU tensors run the same code.
"""

import argparse
import time

from scoreline import MeasureClassifier
from scoreline.io import make_imbalanced

# sphinx_gallery_thumbnail_path = "gallery_gpu.svg"


def main(rows: int = 60_000, device: str | None = None) -> None:
    """Train from tensors, from host data that are moved, and on the host."""
    try:
        import array_api_compat  # noqa: F401 - what tensors are read by
        import torch
    except ImportError as error:
        print(f"this example cannot run: {error}. Install PyTorch and the extra: pip install 'scoreline[gpu]' torch")
        return
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    X, y = make_imbalanced(n_samples=rows, random_state=0)
    tensors, labels = torch.tensor(X, dtype=torch.float32, device=device), torch.tensor(y, device=device)
    options = {"measure": "roc_auc", "scaling": "standard"}
    fits = {
        f"tensors on {device}": (MeasureClassifier(**options), tensors, labels),
        f"host data moved to {device}": (MeasureClassifier(**options, solver_params={"device": device}), X, y),
        "on the host": (MeasureClassifier(**options), X, y),
    }
    for name, (clf, rows_, truth) in fits.items():
        clf.fit(rows_, truth)  # compiled
        begin = time.perf_counter()
        clf.fit(rows_, truth)
        seconds = time.perf_counter() - begin
        proved = f"{clf.lower_bound_:.5f} <= min J <= {clf.objective_:.5f}"
        print(f"{name:<28} {seconds:6.3f} s   AUC {clf.score(rows_, truth):.4f}   proved: {proved}")
    scores = fits[f"tensors on {device}"][0].decision_function(tensors)
    print(
        f"scores stay on the device: {type(scores).__name__} of {scores.dtype} on {scores.device}; coef_ is a NumPy array"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--device", default=None)
    main(**vars(parser.parse_args()))
