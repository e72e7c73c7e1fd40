"""Colours of figures and pages: one table for light and one for dark, with the same names."""

# Names are CSS variables of the page. Figures are drawn in the light colours; in a page each of them becomes its variable,
# so that one figure serves both schemes. So no two names that a figure uses may share a light colour.
LIGHT = {
    "paper": "#fdfcfa",
    "panel": "#f5f2ec",
    "line": "#dddad2",
    "ink": "#222222",
    "muted": "#5b6068",
    "link": "#175a94",
    "above": "#c0392b",
    "below": "#1f6fb2",
    "band": "#e8e2d4",
    "grid": "#dddddd",
    "model-1": "#0b7a5e",
    "model-2": "#9a6200",
    "model-3": "#6b4fa1",
    "model-4": "#a8326e",
    "model-5": "#33658a",
    "model-6": "#6f6a5c",
    "good": "#0b6b4f",
    "even": "#7a5200",
    "bad": "#a93226",
}
DARK = {
    "paper": "#14171a",
    "panel": "#1d2125",
    "line": "#3a3f45",
    "ink": "#e9e7e2",
    "muted": "#a9afb6",
    "link": "#86bff0",
    "above": "#ff8a7a",
    "below": "#6cb2eb",
    "band": "#3b382f",
    "grid": "#353a40",
    "model-1": "#4cc9a4",
    "model-2": "#e3ad52",
    "model-3": "#b9a2ec",
    "model-4": "#f08cbc",
    "model-5": "#8cbde2",
    "model-6": "#bdb8a8",
    "good": "#5fd3ae",
    "even": "#e6b766",
    "bad": "#ff9486",
}
INK, MUTED, ABOVE, BELOW, BAND, GRID = (LIGHT[name] for name in ("ink", "muted", "above", "below", "band", "grid"))
# Models differ by dashes too: colour alone is not enough for everyone.
MODELS = tuple(LIGHT[f"model-{k}"] for k in range(1, 7))
DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 1.6), (1.4, 1.4), (6.0, 1.6, 1.4, 1.6), (9.0, 2.4), (3.0, 1.2))


def css_variables(colours: dict[str, str]) -> str:
    """Return the declarations that set every colour as a CSS variable."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours as WCAG 2 defines it, from 1 to 21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
