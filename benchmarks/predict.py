"""predict of a million rows compared with the product Xw alone: what checks, threshold and labels cost.

python benchmarks/predict.py [--rows 1000000]
"""

import argparse

import numpy as np
import scipy.sparse as sp

from common import interleave
from scoreline import MeasureClassifier
from scoreline.operators import as_operator


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n, rng = parser.parse_args().rows, np.random.default_rng(0)
    print("| X | product | GB/s | decision_function | predict | predict_proba | predict over product |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, p in (("float64", 10), ("float64", 100), ("float32", 100), ("CSR, 20 a row", 1000)):
        if kind.startswith("float"):
            X = rng.standard_normal((n, p)).astype(kind)
            size = X.nbytes
        else:
            X = sp.random(n, p, density=20 / p, format="csr", random_state=0)
            size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        clf = MeasureClassifier("f1", probability=True).fit(X[:2000], rng.random(2000) < 0.3)
        operator, w = as_operator(X), clf.coef_[0]
        sides = {
            "product": lambda operator=operator, w=w: operator.matvec(w),
            "decision": lambda clf=clf, X=X: clf.decision_function(X),
            "predict": lambda clf=clf, X=X: clf.predict(X),
            "proba": lambda clf=clf, X=X: clf.predict_proba(X),
        }
        t = {name: timing.best for name, timing in interleave(sides).items()}
        cells = [f"{1e3 * t[name]:.1f} ms" for name in ("decision", "predict", "proba")]
        print(
            f"| {kind} x {p} | {1e3 * t['product']:.1f} ms | {size / t['product'] / 1e9:.1f} | {' | '.join(cells)} | "
            f"{t['predict'] / t['product']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
