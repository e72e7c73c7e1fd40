"""The mathematics pages: code and pages cite equations that exist, the tables are complete, the formulas printed are right.

The definitions of the risks are checked in tests/risks against all labellings, rankings, sets and pairs. Here are the other
equations: bounds, identities and closed forms, transcribed as they are printed.
"""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from scoreline import list_measures
from scoreline.kernels.dual_regions import GMEAN, HMEAN, MIN, QMEAN, project_dual
from scoreline.kernels.rankings import _gain
from scoreline.measures import get_measure
from scoreline.measures.operating_points import RecallAtPrecision
from scoreline.objective import Objective
from scoreline.operators import as_operator
from scoreline.operators.column_maps import ColumnMap
from scoreline.risks.registry import all_risks, get_risk
from scoreline.solvers.amp import Losses, bound_from, weights_at
from scoreline.solvers.common.base import Result
from scoreline.solvers.registry import all_solvers
from tiers import TIER

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "math").glob("*.md"))}
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
LABELS = [
    (label, page) for page, text in PAGES.items() for label in re.findall(r"\$\$ \(([^)]+)\)$", text, re.MULTILINE)
]
CITED = {(label, path) for path, text in SOURCES.items() for label in re.findall(r"\(eq\.\s+([^)]*)\)", text)}
REFERRED = {label for text in PAGES.values() for label in re.findall(r"\{eq\}`([^`]+)`", text)}


# The pages and who cites them.


def test_labels_are_lower_case_words_and_unique():
    labels = [label for label, _ in LABELS]
    assert len(labels) > 100
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", label) for label in labels)
    assert len(set(labels)) == len(labels)


def test_every_displayed_equation_has_a_label():
    for page, text in PAGES.items():
        assert text.count("$$") == 2 * sum(where == page for _, where in LABELS), page


def test_citations_of_the_code_exist():
    unknown = {(label, str(path.relative_to(ROOT))) for label, path in CITED if label not in dict(LABELS)}
    assert not unknown
    # "eq." in another form would not be found
    assert not [path for path, text in SOURCES.items() if re.search(r"(?<!\()\beq\. |\(eq\.(?!\s)", text)]


def test_references_of_the_pages_exist():
    everywhere = [text for page in (ROOT / "docs").rglob("*.md") for text in [page.read_text(encoding="utf-8")]]
    referred = {label for text in everywhere for label in re.findall(r"\{eq\}`([^`]+)`", text)}
    assert not referred - set(dict(LABELS))


def test_every_equation_is_cited_by_the_code_or_referred_to_by_a_page():
    assert not set(dict(LABELS)) - {label for label, _ in CITED} - REFERRED


def test_a_reference_to_another_page_names_it():
    # Numbers begin again on every page: a reader must be told which page is meant, in the same paragraph.
    home = dict(LABELS)
    for page, text in PAGES.items():
        for paragraph in re.split(r"\n\n|\n(?=\| )", text):
            for label in re.findall(r"\{eq\}`([^`]+)`", paragraph):
                there = home[label]
                named = there == page or f"({there})" in paragraph or "there" in paragraph or "that page" in paragraph
                named |= there == "index.md" and "first page" in paragraph
                assert named, f"{page}: {label} is on {there}"


def tables():
    """Return the first cells of the three tables of the first page, and the pages that the second cells link to."""
    found = {}
    for name in ("Measures", "Risks", "Solvers"):
        section = PAGES["index.md"].split(f"\n## {name}\n")[1].split("\n## ")[0]
        rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
        found[name] = {
            entry: re.findall(r"\]\(([\w.]+)\)", row[1]) for row in rows for entry in re.findall(r"`(\w+)`", row[0])
        }
        assert len(found[name]) == sum(row[0].count("`") // 2 for row in rows), f"{name}: a name stands twice"
    return found


def test_the_tables_have_every_measure_risk_and_solver():
    found = tables()
    registered = {
        "Measures": {each.name for each in list_measures()},
        "Risks": set(all_risks()),
        "Solvers": set(all_solvers()),
    }
    for kind, names in registered.items():
        assert set(found[kind]) == names, (
            f"change the table of {kind.lower()} in docs/math/index.md: see docs/extend.md"
        )


def test_every_name_has_one_page_which_names_it():
    for name, pages in (row for table in tables().values() for row in table.items()):
        assert len(pages) == 1, name
        assert f"`{name}`" in PAGES[pages[0]], f"{pages[0]} does not name {name}"


def test_a_measure_is_announced_on_its_own_page_alone():
    for name, (home,) in tables()["Measures"].items():
        opening = {page: text.split("\n## ")[0] for page, text in PAGES.items() if page != "index.md"}
        announced = [page for page, text in opening.items() if re.search(rf"^Measures? .*`{name}`", text, re.MULTILINE)]
        assert announced == [home], name


def test_the_table_has_the_risks_that_a_measure_can_be_trained_with():
    section = PAGES["index.md"].split("\n## Measures\n")[1].split("\n## ")[0]
    rows = {row[1].strip(" `"): row for row in (line.split("|") for line in section.splitlines()) if len(row) > 4}
    for measure in list_measures():
        assert measure.name in rows, f"docs/math/index.md has no row for {measure.name}: see docs/extend.md"
        bounds, others = rows[measure.name][3], rows[measure.name][4].replace("as F1", rows["f1"][4])
        assert set(re.findall(r"`(\w+)`", bounds + others)) == set(measure.risks), measure.name


# What the equations say, as they are printed.


def problem(rng, n=8, ties=True):
    """Return scores, labels and whole weights of few rows, with ties."""
    y = rng.permutation(np.append([1, -1], rng.choice([1, -1], size=n - 2)))
    z = rng.normal(0.0, 1.5, size=n)
    return (np.round(2.0 * z) / 2.0 if ties else z), y, rng.integers(1, 4, size=n).astype(float)


BOUNDS = [
    ("roc_area", "roc_auc", {}, 1.0),
    ("roc_area_squared", "roc_auc", {}, 2.0),
    ("average_precision", "average_precision", {}, 1.0),
    ("prbep", "prbep", {}, 1.0),
    ("hinge", "accuracy", {}, 1.0),
    ("squared_hinge", "accuracy", {}, 2.0),
    ("logistic", "accuracy", {}, 1.0 / math.log(2.0)),
    *[("partial_roc", "partial_roc_auc", {"max_fpr": f}, 1.0 / (2.0 - f)) for f in (0.05, 0.3, 0.5, 1.0)],
]


def test_the_bounds():
    """1 - measure <= factor R: roc-bound, ap-bound, partial-bound, margin-bounds, and the text on the break-even point."""
    trials = 30 if TIER == "quick" else 300
    for risk, name, params, factor in BOUNDS:
        rng, measure = np.random.default_rng(1), get_measure(name, params)
        tight = np.inf
        for trial in range(trials):
            z, y, s = problem(rng, ties=trial % 3 > 0)
            s = None if trial % 2 else s
            slack = factor * get_risk(risk, measure).prepare(y, s).value(z) - (1.0 - measure.value(y, z, s))
            assert slack >= -1e-12, (risk, params, trial)
            tight = min(tight, slack)
        # The bound is not empty; few trials may miss a case where it is tight.
        assert tight < 0.4 or TIER == "quick", (risk, params)


def test_zero_scores_have_the_values_of_the_table():
    y, s = np.array([1, -1, -1, -1, 1, -1]), np.array([1.0, 2.0, 1.0, 3.0, 2.0, 1.0])
    plus, minus, total = 3.0, 7.0, 10.0
    expected = {
        "hinge": 1.0, "squared_hinge": 0.5, "logistic": math.log(2.0), "hinge_free_intercept": 2.0 * min(plus, minus) / total,
        "roc_area": 1.0, "roc_area_squared": 0.5, "partial_roc": 1.0, "prbep": min(plus, minus) / plus,
        "average_precision": 1.0 - sum(k / (k + minus) for k in (1, 2, 3)) / plus,
    }  # fmt: skip
    for name, value in expected.items():
        assert get_risk(name).prepare(y, s).value(np.zeros(6)) == pytest.approx(value, abs=1e-14), name


def test_rows_that_are_not_charged_for_each_other_have_fixed_prices():
    """fixed-prices, with the prices of accuracy, balanced accuracy and min(TPR, TNR); accuracy-contingency."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        z, y, s = problem(rng)
        s = s * rng.random(8)
        p, n, plus, minus, total = y > 0, y < 0, s[y > 0].sum(), s[y < 0].sum(), s.sum()

        def priced(a, b, z=z, s=s, p=p, n=n, plus=plus, minus=minus, total=total):
            positives = s[p] @ np.maximum(0.0, a / plus - 2.0 * z[p] / total)
            return positives + s[n] @ np.maximum(0.0, b / minus + 2.0 * z[n] / total)

        expected = {
            "accuracy": priced(plus / total, minus / total),
            "balanced_accuracy": priced(0.5, 0.5),
            "min_tpr_tnr": max(priced(1.0, 0.0), priced(0.0, 1.0)),
        }
        for name, value in expected.items():
            assert get_risk("contingency", get_measure(name)).prepare(y, s).value(z) == pytest.approx(value, abs=1e-12)
        assert expected["accuracy"] == pytest.approx(s @ np.maximum(0.0, 1.0 - 2.0 * y * z) / total, abs=1e-12)


CURVES = {
    "gmean": lambda x: (x / (1.0 - x) / 2.0, (1.0 - x) / x / 2.0, 0.0),
    "hmean": lambda x: (2.0 * x**2, 2.0 * (1.0 - x) ** 2, 0.0),
    "qmean": lambda x: (x / math.sqrt(2.0), np.sqrt((1.0 - x**2) / 2.0), 1.0),
}


def test_the_risk_of_a_mean_is_the_largest_over_its_tangents():
    """mean-tangents on a fine grid of the curve: with slopes (a, b) and Psi* the constant is 1 + Psi* - a - b."""
    rng = np.random.default_rng(3)
    for name, curve in [*CURVES.items()] * 5:
        z, y, _ = problem(rng)
        p, n, x = z[y > 0], z[y < 0], (np.arange(40000)[:, None] + 0.5) / 40000
        a, b, curved = curve(x)
        constant = 1.0 - a - b + curved * (a + b - 1.0)
        values = constant[:, 0] + np.maximum(0.0, a / len(p) - 2.0 * p / 8).sum(axis=1)
        largest = (values + np.maximum(0.0, b / len(n) + 2.0 * n / 8).sum(axis=1)).max()
        assert get_risk("contingency", get_measure(name)).prepare(y).value(z) == pytest.approx(largest, abs=1e-3), name


REGIONS = {"min_tpr_tnr": MIN, "hmean": HMEAN, "qmean": QMEAN, "gmean": GMEAN}


def check_least_of_linear_functions(name):
    """conjugate: on points that are projected onto the region (so hmean-cubic and gmean-quartic are on the way)."""
    rng, measure = np.random.default_rng(4), get_measure(name)
    points = np.array([project_dual(REGIONS[name], *pair, 3.0) for pair in rng.normal(0.5, 0.7, size=(20000, 2))])
    a, b = points.T
    inside = {
        "min_tpr_tnr": np.abs(a + b - 1.0),
        "qmean": a**2 + b**2 - 0.5,
        "hmean": math.sqrt(2.0) - np.sqrt(a) - np.sqrt(b),
        "gmean": 0.25 - a * b,
    }[name]
    assert min(a.min(), b.min()) >= 0.0
    assert inside.max() <= 1e-7
    for u, v in rng.uniform(0.1, 1.0, size=(30, 2)):
        least = (a * u + b * v - (a + b - 1.0 if name == "qmean" else 0.0)).min()
        assert measure.from_counts(u, 1.0 - v, 1.0 - u, v) == pytest.approx(least, abs=2e-3)


def test_a_mean_is_the_least_of_linear_functions():
    for name in REGIONS:
        check_least_of_linear_functions(name)


def test_the_gain_of_a_place_is_the_loss_of_precision():
    """ap-gain: with harmonic numbers, and as the sum of k / (k + a) - k / (k + a + 1)."""
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, 40.0)))
    for plus, a in itertools.product((1, 4, 9), (0, 1, 5, 12)):
        for i in range(plus + 1):
            direct = sum(k / (k + a) - k / (k + a + 1) for k in range(i + 1, plus + 1)) / plus
            printed = harmonic[plus + a + 1] - harmonic[i + a + 1]
            printed -= a * (plus - i) / ((plus + a + 1) * (i + a + 1))
            assert printed / plus == pytest.approx(direct, abs=1e-14)
            assert _gain(i, a, plus, harmonic, np.zeros(plus + 1), 0.0, 0.1) == pytest.approx(direct, abs=1e-14)


def check_weights_of_levels(name, beta):
    """level-set, for all counts of a small problem."""
    measure = get_measure(name, {"beta": beta} if name == "fbeta" else {})
    square, plus, minus = beta**2, 4, 7
    for tp, tn, level in itertools.product(range(plus + 1), range(minus + 1), (0.1, 0.37, 0.62, 0.9)):
        reached = bool(measure.from_counts(tp, minus - tn, plus - tp, tn) >= level)
        positive, negative = weights_at(measure, level)
        required = level * (plus + minus) if name == "jaccard" else level * (square * plus + minus)
        assert reached == (positive * tp + negative * tn >= required), (tp, tn, level)


def test_levels_are_weights_of_true_positives_and_negatives():
    for name, beta in (("fbeta", 0.5), ("fbeta", 2.0), ("f1", 1.0), ("jaccard", 1.0)):
        check_weights_of_levels(name, beta)


def check_level_of_rewards(name, beta):
    """reward-level and level-bound: no point of a grid exceeds what the minimum of J at any level proves."""
    rng, square = np.random.default_rng(5), beta**2
    measure = get_measure(name, {"beta": beta} if name == "fbeta" else {})
    x, y = rng.normal(0.0, 1.0, size=12), np.array([1] * 4 + [-1] * 8)
    x[:4] += 1.5
    plus, minus, alpha = 4.0, 8.0, 0.05
    hinges, best = [], 0.0
    for w in np.linspace(-3.0, 3.0, 241):
        loss, q = np.maximum(0.0, 1.0 - y * w * x), 0.5 * alpha * w**2
        above, below = loss[:4].sum(), loss[4:].sum()
        if name == "jaccard":
            top, bottom = plus - above - plus * q, plus + below + minus * q
        else:
            top = (1.0 + square) * (plus - above - plus * q)
            bottom = (1.0 + square) * plus - above + below + (minus - plus) * q
        level = max(0.0, top / bottom)
        assert Losses(above, below, (plus, minus), q).level(measure) == pytest.approx(level, abs=1e-14)
        hinges.append((above, below, q))
        best = max(best, level)
    assert best > 0.2
    for level in (0.05, 0.3, best, 0.8):
        positive, negative = (1.0, level) if name == "jaccard" else (1.0 + square - level, level)
        total = positive * plus + negative * minus
        least = min((positive * above + negative * below) / total + q for above, below, q in hinges)
        size = 1.0 if name == "jaccard" else 1.0 + square
        rest = size * (1.0 - level) * plus - total * least
        bound = level + max(0.0, rest) / (plus if name == "jaccard" else square * plus)
        fit = Result.__new__(Result)
        fit.lower_bound = least
        assert bound_from(measure, level, (plus, minus), fit) == pytest.approx(bound, abs=1e-13)
        assert bound >= best - 1e-12
        if level == best:
            assert bound == pytest.approx(best, abs=1e-12)


def test_the_level_of_rewards_and_its_bound():
    for name, beta in (("fbeta", 0.5), ("fbeta", 2.0), ("jaccard", 1.0)):
        check_level_of_rewards(name, beta)


def check_two_parts(name):
    """gap-parts, and with it plane and lower-bound; the allowance for rounding is rounding-allowance."""
    rng, alpha = np.random.default_rng(6), 0.3
    for mu_width in (0.05, 1.0):
        X = rng.normal(size=(8, 3)) + 1.0
        _, y, s = problem(rng)
        risk = get_risk(name).prepare(y, s)
        objective = Objective(as_operator(X), risk, alpha)
        w = rng.normal(size=3)
        z = X @ w
        point = objective.at(w, z, mu_width / risk.ramp_scale)
        u, c, v = point.risk.grad, point.risk.plane, X.T @ point.risk.grad
        J = 0.5 * alpha * w @ w + risk.value(z)
        bound = c - v @ v / (2.0 * alpha)
        parts = risk.value(z) - c - u @ z + ((alpha * w + v) ** 2).sum() / (2.0 * alpha)
        assert J - bound == pytest.approx(parts, abs=1e-12)
        assert bound <= J + 1e-12
        for other in rng.normal(0.0, 2.0, size=(50, 3)):
            assert objective.value(other) >= bound - 1e-12
            assert risk.value(X @ other) >= c + v @ other - 1e-12
        largest = objective.operator.largest
        if largest is not None:
            np.testing.assert_array_equal(largest, np.abs(X).max(axis=0))
        g, m, mass = 8.0 * np.finfo(float).eps * math.sqrt(8), np.abs(X).max(axis=0), np.abs(u).sum()
        first = J + abs(c) + v @ v / alpha + mass * np.abs(z).max()
        if largest is None:
            allowance = g * (first + mass * np.abs(z).max())
        else:
            allowance = g * (first + mass * (np.abs(v) @ m) / alpha) + (g * mass) ** 2 * (m @ m) / (2.0 * alpha)
        assert objective.rounding_allowance(point, v) == pytest.approx(allowance, rel=1e-9)


def test_the_gap_of_a_plane_has_two_parts():
    for name in sorted(name for name, risk in all_risks().items() if risk.smoothable):
        check_two_parts(name)


def test_the_chance_to_keep_a_limit_is_normal():
    """limit-chance, for precision: of m rows called positive a share of at least r is right."""
    for tp, fp in ((90.0, 5.0), (80.0, 20.0), (19.0, 1.0)):
        m, r = tp + fp, 0.9
        expected = 0.5 * math.erfc(-(tp - r * m) / math.sqrt(2.0 * r * (1.0 - r) * m) / math.sqrt(2.0))
        assert RecallAtPrecision(r).chance(tp, fp, 10.0, 50.0) == pytest.approx(expected, abs=1e-12)


def test_what_is_missing_from_the_partial_area_in_standard_units():
    """pauc: 1 - pAUC = (1 - A / f) / (2 - f), A by the trapezoids of a curve without ties."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        z, y, _ = problem(rng, ties=False)
        order = np.argsort(-z)
        steps = (y[order] > 0) / (y > 0).sum()
        for f in (0.2, 0.5, 1.0):
            missed = area = at = 0.0
            for gain, negative in zip(steps, y[order] < 0, strict=True):
                if negative:
                    share = min(1.0 / (y < 0).sum(), f - at)
                    area, at = area + share * missed, at + share
                missed += gain  # the true positive rate so far
            value = get_measure("partial_roc_auc", {"max_fpr": f}).value(y, z)
            assert 1.0 - value == pytest.approx((1.0 - area / f) / (2.0 - f), abs=1e-12)


def test_limits_and_normal_scores_of_columns():
    rng = np.random.default_rng(0)
    x = rng.standard_t(2, 1001) + 1.0  # an odd number of values on either side of the median has a unique median
    x = np.concatenate([x, [np.max(x) + 1.0, np.max(x) + 2.0]])
    m = np.median(x)
    low, high = m - 6.0 * np.median((m - x)[x < m]), m + 6.0 * np.median((x - m)[x > m])
    clipped = ColumnMap.learn(as_operator(x[:, None]), "robust").transform(x[:, None])[:, 0]
    low, high = max(low, x.min()), min(high, x.max())
    np.testing.assert_allclose(clipped, np.clip(x, low, high) - np.clip(0.0, low, high), rtol=1e-12)
    knots, scores = ColumnMap.learn(as_operator(x[:, None]), "quantile").knots(0)
    own = knots != 0.0  # 0 is a knot as well
    middle = np.array([np.mean(x < k) + 0.5 * np.mean(x == k) for k in knots[own]])
    expected = np.clip(ndtri(middle), -4.0, 4.0)
    np.testing.assert_allclose(np.diff(scores[own]), np.diff(expected), rtol=1e-9)
    assert own.sum() == 21
    assert scores[knots == 0.0].tolist() == [0.0]
