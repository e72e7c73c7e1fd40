"""Lines about the promise of a model: what it says, and whether labelled rows refute it."""

from typing import Any

import numpy as np

from scoreline.cli.output import Output
from scoreline.measures import Promise, check_counts


def print_promise(output: Output, promise: Promise | None) -> None:
    """Print the promise of a model, if it has one."""
    if promise is not None:
        output.results(promise=promise._asdict())
        output.text(f"promise: {promise}")


def print_promise_test(output: Output, promise: Promise | None, truth: Any, scores: Any) -> None:
    """Test the constraint of a promise on labelled rows that the model has not seen, and print the result."""
    if promise is None:
        return
    flagged = np.asarray(scores) > 0
    cells = (truth & flagged, ~truth & flagged, truth & ~flagged, ~truth & ~flagged)
    found = check_counts(promise, *(int(np.count_nonzero(each)) for each in cells))
    output.results(promise_test=found._asdict())
    output.text(f"promise tested on these rows: {found}")
