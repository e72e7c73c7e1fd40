"""
Train a small network on rare positives
=======================================

One row in seventy is positive. A network is trained three times: for the log-loss, for the ROC area, and for average precision.
The last two losses compare positives with negatives. A batch of 256 rows has three or four positives, so ``memory=1000`` keeps
scores of earlier batches.

This example is not run when this page is built, because it needs PyTorch. Install it with ``pip install 'scoreline[torch]'``.
Then run ``python examples/small_network.py --seeds 5``.
"""

import argparse

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split

from scoreline.objectives import torch_loss

MEASURES = {"AUC": roc_auc_score, "average precision": average_precision_score}
RATES = (0.003, 0.02)


def make_data(seed):
    """Return columns of which two interact, and labels that follow them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20_000, 10)).astype(np.float32)
    risk = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) - 0.5 * X[:, 3]
    return X, (risk + rng.logistic(size=len(X)) > 6.0).astype(np.float32)


def values_after_training(loss, parts, seed, epochs):
    """Return the test values of each measure, for the learning rate and the epoch with the best validation value."""
    import torch

    X, X_valid, X_test, y, y_valid, y_test = parts
    best = dict.fromkeys(MEASURES, (0.0, 0.0))
    for rate in RATES:
        torch.manual_seed(seed)
        network = torch.nn.Sequential(
            torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1), torch.nn.Flatten(0)
        )
        optimiser = torch.optim.Adam(network.parameters(), lr=rate)
        for _ in range(epochs):
            for rows in torch.randperm(len(y)).split(256):
                optimiser.zero_grad()
                loss(network(X[rows]), y[rows]).backward()
                optimiser.step()
            with torch.no_grad():
                scores, valid = network(X_test).numpy(), network(X_valid).numpy()
            for name, measure in MEASURES.items():
                best[name] = max(best[name], (measure(y_valid, valid), measure(y_test, scores)))
    return [test for _, test in best.values()]


def main(seeds=1, epochs=30):
    """Print the means of both measures over the seeds, for each loss."""
    try:
        import torch
    except ImportError as error:
        print(f"this example cannot run: {error}. Install PyTorch: pip install 'scoreline[torch]'")
        return
    found = {}
    for seed in range(seeds):
        X, y = make_data(seed)
        X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=seed)
        X, X_valid, y, y_valid = train_test_split(X, y, stratify=y, random_state=seed)
        parts = [torch.tensor(each) for each in (X, X_valid, X_test, y, y_valid, y_test)]
        losses = {
            "log-loss": torch.nn.BCEWithLogitsLoss(),
            "torch_loss('roc_auc')": torch_loss("roc_auc", memory=1000),
            "torch_loss('average_precision')": torch_loss("average_precision", memory=1000),
        }
        for name, loss in losses.items():
            found.setdefault(name, []).append(values_after_training(loss, parts, seed, epochs))
    print(f"{'test rows, mean of ' + str(seeds):<34}" + "".join(f"{name:>20}" for name in MEASURES))
    for name, values in found.items():
        print(f"{name:<34}" + "".join(f"{value:>20.3f}" for value in np.mean(values, axis=0)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    main(**vars(parser.parse_args()))
