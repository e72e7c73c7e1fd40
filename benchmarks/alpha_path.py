"""MeasureClassifierCV compared with GridSearchCV over the same estimator: passes, seconds, the choice, and memory.

    python benchmarks/alpha_path.py [--sets census-income a9a] [--alphas 20] [--folds 5] [--measures roc_auc] [--jobs 2]

Data sets come from the folder SCORELINE_DATA (see benchmarks/README.md). Both sides use the same folds, alphas and number of
jobs. The sum of the passes of cold fits is counted by fitting every fold and alpha from the start, which is what GridSearchCV
does.
"""

import argparse
import threading
import time
import warnings
from typing import Any

import numpy as np

from common import Report, header
from scoreline import MeasureClassifier, MeasureClassifierCV
from smoothing_data import load

NAME, TITLE = "alpha_path", "alpha by cross-validation"


class Peak:
    """The largest resident memory of this process while it is open, beyond that at the start."""

    def __enter__(self) -> "Peak":
        import psutil

        self._process, self._open = psutil.Process(), True
        self.before = self.most = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._open:
            self.most = max(self.most, self._process.memory_info().rss)
            time.sleep(0.005)

    def __exit__(self, *error: Any) -> None:
        self._open = False
        self._thread.join()

    @property
    def beyond(self) -> float:
        """Bytes."""
        return float(self.most - self.before)


def run(report: Report, name: str, measure: str, alphas: Any, folds: int, jobs: int) -> None:
    """Report one set and measure."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    data = load(name)
    if data is None:
        report.say(f"{name}: no {name}.svm or {name}.svm.xz in the folder that SCORELINE_DATA names")
        return
    X, y = data.X, data.y
    cv = StratifiedKFold(folds)
    own = {"measure": measure, "scaling": "maxabs", "random_state": 0}
    few = np.r_[np.flatnonzero(y == y.max())[:500], np.flatnonzero(y != y.max())[:1500]]
    MeasureClassifierCV(**own, alphas=alphas[:2], cv=2, n_jobs=jobs).fit(X[few], y[few])  # compiled
    with Peak() as memory:
        begin = time.perf_counter()
        found = MeasureClassifierCV(**own, alphas=alphas, cv=cv, n_jobs=jobs).fit(X, y)
        seconds = time.perf_counter() - begin
    with Peak() as single:
        MeasureClassifier(**own, alpha=found.alpha_, n_jobs=jobs).fit(X, y)
    begin = time.perf_counter()
    grid = GridSearchCV(MeasureClassifier(**own, n_jobs=1), {"alpha": list(alphas)}, cv=cv, n_jobs=jobs).fit(X, y)
    other = time.perf_counter() - begin
    cold = 0.0
    for train, _ in cv.split(X, y):
        part, labels = X[train], y[train]
        cold += sum(MeasureClassifier(**own, alpha=a).fit(part, labels).n_passes_ for a in alphas) * len(train) / len(y)
    what = f"{name} {X.shape[0]} x {X.shape[1]}, {measure}, {len(alphas)} alphas x {folds} folds"
    report.add(
        f"{what}: passes over those of cold fits",
        found.cv_passes_ / cold,
        "",
        "<= 0.5",
        f"{found.cv_passes_:.0f}, {cold:.0f}",
    )
    report.add(
        f"{what}: times faster than GridSearchCV", other / seconds, "", ">= 3", f"{seconds:.1f} s, {other:.1f} s"
    )
    means, theirs = found.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"]
    report.say(
        f"{what}: alpha {found.alpha_:.3g} and {grid.best_params_['alpha']:.3g}; best means {means.max():.5f} and "
        f"{theirs.max():.5f}; largest difference of a mean {np.abs(means - theirs).max():.1e}"
    )
    vectors = (memory.beyond - single.beyond) / (8.0 * X.shape[0])
    scores_note = f"{len(alphas)} are leave-one-out scores"
    report.say(f"{what}: memory beyond X and that of one fit: {vectors:.1f} vectors of n ({scores_note})")


def main() -> None:
    """Run the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["census-income"])
    parser.add_argument("--measures", nargs="+", default=["roc_auc"])
    parser.add_argument("--alphas", type=int, default=20)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    for name, value in header().items():
        print(f"{name}: {value}")
    report = Report(NAME, TITLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in given.sets:
            for measure in given.measures:
                run(report, name, measure, np.logspace(0, -6, given.alphas), given.folds, given.jobs)


if __name__ == "__main__":
    main()
