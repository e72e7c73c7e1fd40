"""A kernel machine trained for AUC whose feature matrix never exists: random Fourier features, computed per block.

The raw rows are two interleaved spirals with 5 % positives: no linear model of the raw features can rank them.
"""

import numpy as np

from scoreline import MeasureClassifier
from scoreline.operators import RandomFourierFeatures


def spirals(n, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.05).astype(int)
    radius = rng.uniform(0.5, 3.0, n)
    angle = 2.0 * radius + np.pi * y
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)] + 0.3 * rng.standard_normal((n, 2)), y


def main():
    (X, y), (X_test, y_test) = spirals(20_000, 0), spirals(5_000, 1)
    linear = MeasureClassifier("roc_auc").fit(X, y)
    print(f"test AUC on the raw features:     {linear.score(X_test, y_test):.3f}")

    def features(rows):  # the same seed, width and gamma: the same features for new rows
        return RandomFourierFeatures(rows, n_features=300, gamma=2.0, random_state=0)

    kernel = MeasureClassifier("roc_auc", alpha=1e-4).fit(features(X), y)
    print(f"test AUC on 300 computed features: {kernel.score(features(X_test), y_test):.3f}")
    matrix = 8 * len(y) * 300 / 1e6
    print(f"{kernel.n_passes_:.0f} passes, proved gap {kernel.gap_ / kernel.lower_bound_:.1%}")
    print(f"the matrix of {matrix:.0f} MB was never made")


if __name__ == "__main__":
    main()
