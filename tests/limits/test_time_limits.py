"""max_time: whatever is trained, however many fits that takes, the clock stops it within one iteration."""

import time
import warnings
from contextlib import nullcontext

import numpy as np
from limited_fits import SOME, classifier, rows

from cases import for_each
from scoreline.fitting import interim
from scoreline.operators import as_operator

END = 10.0  # passes beyond iterations: the start (2), the proof (1), leave-one-out or the threshold of row methods (up to 7)


def fitted(case, monkeypatch, **options):
    """Return the classifier and the passes that its fit took; a second of its clock is a pass over the rows."""
    X, y = rows()
    operator = as_operator(X)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(interim, "own_operator", nullcontext)  # the clock reads the passes of this one
        patch.setattr(time, "perf_counter", lambda: operator.n_passes)
        clf = classifier(case, **options).fit(operator, y)
    return clf, operator.n_passes


@for_each("case", SOME)
def test_a_fit_ends_within_an_iteration_of_its_time(case, monkeypatch):
    """An iteration is what the whole fit takes for its longest."""
    unlimited, all_passes = fitted(case, monkeypatch)
    iteration = float(np.diff(unlimited.history_.get("seconds", [])).max(initial=1.0))
    for share in (0.01, 0.3, 0.6):
        limit = share * all_passes
        clf, passes = fitted(case, monkeypatch, max_time=limit)
        assert np.isfinite(clf.coef_).all()
        assert passes <= limit + END + iteration, (
            f"{passes} passes of {all_passes}, {limit} asked for, {iteration} an iteration"
        )
