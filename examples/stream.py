"""Learn from a stream: G-mean on rows to come, after every block, with a model and a cut that never see a row twice.

python examples/stream.py [--blocks 20] [--rows 5000]
"""

import argparse

from scoreline import MeasureClassifier
from scoreline.data import make_imbalanced


def main(blocks: int = 20, rows: int = 5000) -> float:
    """Print the G-mean of each block before it is learnt from, and return the last."""
    X, y = make_imbalanced(n_samples=blocks * rows, random_state=0)
    clf = MeasureClassifier("gmean", solver="spade", random_state=0)
    value = 0.0
    for k in range(blocks):
        part = slice(k * rows, (k + 1) * rows)
        if k > 0:  # rows that the model has not seen
            value = clf.score(X[part], y[part])
            print(f"after {k * rows:7,} rows: G-mean of the next {rows:,} {value:.3f}, cut {-clf.intercept_[0]:+.3f}")
        clf.partial_fit(X[part], y[part], classes=[0, 1])
    print(f"rank error of the cut at most {100 * clf.cut_rank_error_:.2f} % of a class")
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--rows", type=int, default=5000)
    options = parser.parse_args()
    main(options.blocks, options.rows)
