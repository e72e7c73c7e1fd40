"""F1 smoothed by entropy compared with the multivariate hinge by cutting planes and "auto": test F1 and time of a fit.

    SCORELINE_DATA=folder python benchmarks/entropy.py [--sets a9a,letter,ijcnn1] [--rows 2000] [--splits 3]

Training rows are few, because the entropy risk takes O(n^2); features are scaled by "maxabs", alpha is 1e-3 and 1e-4.
"""

import argparse
import time
import types
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from common import OUTPUT, SEED, standalone
from scoreline import MeasureClassifier
from smoothing_data import VARIABLE, read

NAME, TITLE = "entropy", "F1 smoothed by entropy: test F1 and seconds of a fit"
RISKS = {"auto": {}, "contingency": {"risk": "contingency"}, "entropy": {"risk": "contingency_entropy"}}
ALPHAS, TEST_ROWS = (1e-3, 1e-4), 10_000


def main(report, sets, rows, splits):
    warnings.simplefilter("ignore")
    differences, ratios = [], []
    for name in sets:
        found = read(name)
        if found is None:
            print(f"  {name} is MISSING: neither {name}.svm nor {name}.svm.xz in the folder that {VARIABLE} names")
            continue
        X, y = found[0], np.where(found[1] > 0, 1, -1)
        for split in range(splits):
            some = np.random.default_rng([SEED, split]).permutation(X.shape[0])[: rows + TEST_ROWS]
            parts = train_test_split(X[some], y[some], train_size=rows, random_state=split, stratify=y[some])
            for alpha in ALPHAS:
                cell = {}
                for kind, options in RISKS.items():
                    begin = time.perf_counter()
                    clf = MeasureClassifier(
                        "f1", alpha=alpha, scaling="maxabs", random_state=0, max_time=30.0, **options
                    )
                    clf.fit(parts[0], parts[2])
                    cell[kind] = time.perf_counter() - begin, clf.score(parts[1], parts[3])
                differences.append(cell["entropy"][1] - cell["contingency"][1])
                ratios.append(cell["entropy"][0] / cell["contingency"][0])
                note = ", ".join(f"{kind} {score:.3f} in {seconds:.3g} s" for kind, (seconds, score) in cell.items())
                report.add(
                    f"{name}, split {split}, alpha {alpha:g}: entropy - contingency", differences[-1], "", "", note
                )
    if differences:
        note = f"largest {np.abs(differences).max():.3f}, {len(differences)} cells"
        report.add("mean difference of F1, entropy - contingency", float(np.mean(differences)), "", "", note)
        report.add("time of a fit, entropy / contingency", float(np.exp(np.mean(np.log(ratios)))), "x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["a9a", "letter", "ijcnn1"])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUTPUT / "entropy.json")
    options = parser.parse_args()
    run = lambda report: main(report, options.sets, options.rows, options.splits)
    standalone(types.SimpleNamespace(NAME=NAME, TITLE=TITLE, main=run), out=options.out)
