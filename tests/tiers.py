"""The three tiers of the tests: `quick` (`make test`), `all` (`make test-all`) and `soak` (`make soak`).

The environment variable SCORELINE_TIER names the tier. A test marked `slow` runs from `all` on, one marked `soak` only in
`soak`. Tests of a product of cases take `tiered(cases)`, property tests `@examples(number)`: both do less in `quick`.
"""

import os
import random
from itertools import combinations

from hypothesis import HealthCheck, settings

TIERS = ("quick", "all", "soak")
TIER = os.environ.get("SCORELINE_TIER", "quick")
if TIER not in TIERS:
    raise ValueError(f"SCORELINE_TIER must be one of {', '.join(TIERS)}, got {TIER!r}.")
QUICK_SHARE = 10  # `quick` tries a tenth of the examples of `all`
FEWEST_EXAMPLES = 5
SOAK_FACTOR = 20


def examples(number):
    """Return the settings of a property test that tries `number` examples in the tier `all`.

    Examples are the same in every run, except in `soak`, where they are drawn again.
    """
    max_examples = {
        "quick": max(FEWEST_EXAMPLES, number // QUICK_SHARE),
        "all": number,
        "soak": SOAK_FACTOR * number,
    }[TIER]
    return settings(
        max_examples=max_examples,
        deadline=None,
        derandomize=TIER != "soak",
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )


def tiered(cases, strength=2):
    """Return the cases of this tier: all of them, or in `quick` enough to cover every combination of `strength` values.

    A case is a tuple (or a single value, where `strength` must be 1). With strength=2 each pair of values that occurs
    together in some case occurs in a case that is returned; with strength=1 each value does.
    """
    cases = list(cases)
    if TIER != "quick":
        return cases
    order = list(range(len(cases)))
    random.Random(0).shuffle(order)  # neighbours of a product share most of their values
    covered, chosen = set(), []
    for index in order:
        values = cases[index] if isinstance(cases[index], tuple) else (cases[index],)
        named = [(place, getattr(value, "__name__", None) or repr(value)) for place, value in enumerate(values)]
        new = set(combinations(named, min(strength, len(named)))) - covered
        if new:
            covered |= new
            chosen.append(index)
    return [cases[index] for index in sorted(chosen)]
