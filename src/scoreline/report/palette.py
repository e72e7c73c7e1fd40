"""Colours of figures and pages, each for light and for dark paper."""

# The names are CSS variables of the page. Figures are drawn in the light colours, and in a page each colour is replaced by
# its variable, so that one figure fits both schemes. Two names that occur in figures must not have the same light colour.
LIGHT_AND_DARK = {
    "paper": ("#fdfcfa", "#14171a"),
    "panel": ("#f5f2ec", "#1d2125"),
    "line": ("#dddad2", "#3a3f45"),
    "ink": ("#222222", "#e9e7e2"),
    "muted": ("#5b6068", "#a9afb6"),
    "link": ("#175a94", "#86bff0"),
    "above": ("#c0392b", "#ff8a7a"),
    "below": ("#1f6fb2", "#6cb2eb"),
    "band": ("#e8e2d4", "#3b382f"),
    "grid": ("#dddddd", "#353a40"),
    "model-1": ("#0b7a5e", "#4cc9a4"),
    "model-2": ("#9a6200", "#e3ad52"),
    "model-3": ("#6b4fa1", "#b9a2ec"),
    "model-4": ("#a8326e", "#f08cbc"),
    "model-5": ("#33658a", "#8cbde2"),
    "model-6": ("#6f6a5c", "#bdb8a8"),
    "good": ("#0b6b4f", "#5fd3ae"),
    "even": ("#7a5200", "#e6b766"),
    "bad": ("#a93226", "#ff9486"),
}
LIGHT, DARK = ({name: pair[k] for name, pair in LIGHT_AND_DARK.items()} for k in (0, 1))
INK, MUTED, ABOVE, BELOW, BAND, GRID = (LIGHT[name] for name in ("ink", "muted", "above", "below", "band", "grid"))
# Models also differ by their dashes, because not everyone can tell the colours apart.
MODELS = tuple(LIGHT[f"model-{k}"] for k in range(1, 7))
DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 1.6), (1.4, 1.4), (6.0, 1.6, 1.4, 1.6), (9.0, 2.4), (3.0, 1.2))
