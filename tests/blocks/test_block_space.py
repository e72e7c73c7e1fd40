"""Scores in blocks: every risk gives what it gives on the host, however the rows are cut into parts."""

from itertools import pairwise, product

import numpy as np
import pytest
from block_layouts import between, in_blocks, layout_of

from cases import for_each
from risk_variants import RISKS, problem
from scoreline.distributed.score_space import Space as BlockSpace
from tiers import TIER, tiered

SEEDS = (1, 3, 6, 7) if TIER == "quick" else range(9)  # scores on a grid, all equal, huge: see `problem`


def out_of_order(n):
    """Two parts of several spans each."""
    spans = list(pairwise([0, n // 5, n // 3, n // 2, n - 1, n]))
    return layout_of([(spans[3], spans[0], spans[2]), (spans[4], spans[1])])


LAYOUTS = {
    "one part": lambda n: layout_of(between([0, n])),
    "uneven": lambda n: layout_of(between([0, 1, 2, n // 2, n])),
    "many": lambda n: layout_of(between([0, *range(3, n, 5), n]), workers=3),
    "spans out of order": out_of_order,
}


@for_each(["risk", "split"], tiered(product(RISKS.values(), LAYOUTS), strength=1))
def test_risks_are_those_of_the_host(risk, split):
    for seed in SEEDS:
        z, y, s = problem(seed)
        layout = LAYOUTS[split](len(z))
        for weight in (None, s):
            here = risk.prepare(y, weight)
            there = risk.prepare(in_blocks(layout, y), in_blocks(layout, weight), BlockSpace())
            assert there.labels.positive == here.labels.positive
            assert there.labels.n_negative == here.labels.n_negative
            blocks, size = in_blocks(layout, z), max(1.0, np.abs(z).max())
            for mu in (0.0, 1e-4, 0.3) if risk.smoothable else (0.0,):
                mu /= here.ramp_scale or 1.0
                a, b = here.evaluate(z, mu), there.evaluate(blocks, mu)
                for name in ("value", "hard", "plane", "mass"):
                    assert getattr(b, name) == pytest.approx(getattr(a, name), abs=1e-12 * size, rel=1e-12), name
                assert b.hard == pytest.approx(there.evaluate(blocks, mu, grad=False).hard, abs=1e-13 * size)
                width = mu * here.ramp_scale
                tolerance = 1e-13 * size * risk.steepness / min(1.0, width or 1.0)
                np.testing.assert_allclose(np.asarray(b.grad), a.grad, atol=max(1e-15, tolerance), rtol=1e-9)
                hessians = here.hessian(z, mu), there.hessian(blocks, mu)
                assert (hessians[0] is None) == (hessians[1] is None)
                if hessians[0] is not None:
                    np.testing.assert_allclose(
                        np.asarray(hessians[1].diagonal),
                        hessians[0].diagonal,
                        rtol=1e-9,
                        atol=1e-15 * size / (width or 1),
                    )
            assert there.value_at_zero() == pytest.approx(here.value_at_zero(), abs=1e-13)
            assert there.intercept(blocks) == pytest.approx(here.intercept(z), abs=1e-12 * size)
