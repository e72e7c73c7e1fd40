"""The style sheet of a page: light and dark, phone and desk, screen and paper."""

from string import Template

from scoreline.report.palette import DARK, LIGHT, css_variables

_SHEET = Template("""\
:root { color-scheme: light dark; $light }
@media (prefers-color-scheme: dark) { :root { $dark } }
@media print { :root { color-scheme: light; $light --paper: #ffffff; } }
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
  overflow-wrap: break-word;
}
.wrap { max-width: 70rem; margin: 0 auto; padding: 0 clamp(1rem, 4vw, 2.5rem); }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: .5rem; padding: .5rem 1rem; background: var(--paper); z-index: 1; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 3px; border-radius: 2px; }
a { color: var(--link); text-underline-offset: .2em; }
header.wrap { padding-top: clamp(1.5rem, 5vw, 3.5rem); }
.kicker { margin: 0; color: var(--muted); font-size: .875rem; letter-spacing: .08em; text-transform: uppercase; }
h1 { margin: .25rem 0 .5rem; font-size: clamp(1.5rem, 1.1rem + 2vw, 2.25rem); line-height: 1.2; letter-spacing: -.01em;
  overflow-wrap: anywhere; text-wrap: balance; }
h2 { margin: 0 0 .5rem; font-size: clamp(1.2rem, 1.05rem + .8vw, 1.5rem); line-height: 1.3; letter-spacing: -.005em; }
h3 { margin: 1.5rem 0 .25rem; font-size: 1.0625rem; line-height: 1.4; }
p { margin: .5rem 0; max-width: 44rem; text-wrap: pretty; }
.meta, figcaption, .small { color: var(--muted); font-size: .9375rem; line-height: 1.5; }
.verdict { margin: 1.75rem 0 0; padding: clamp(1rem, 3vw, 1.75rem); background: var(--panel);
  border-left: .35rem solid var(--tone); border-radius: .25rem; }
.verdict p { margin: .35rem 0 0; max-width: 50rem; font-size: clamp(1.2rem, 1rem + 1.1vw, 1.6rem); line-height: 1.4;
  overflow-wrap: anywhere; }
.verdict h2 { margin: 0; color: var(--tone); font-size: .9375rem; letter-spacing: .06em; text-transform: uppercase; }
.pays { --tone: var(--good); } .tie { --tone: var(--even); } .loses { --tone: var(--bad); } .model { --tone: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1.25rem 0 0; padding: 0; list-style: none;
  font-size: .9375rem; }
nav a { display: inline-block; padding: .25rem 0; }
section { padding: 2.25rem 0; border-bottom: 1px solid var(--line); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1.75rem 2.5rem;
  margin-top: 1.25rem; align-items: start; }
.figures > * { min-width: 0; }
figure { margin: 0; max-width: 34rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg * { stroke-linejoin: round; }
figure text { font-family: inherit; fill: var(--ink); }
figcaption { margin-top: .5rem; }
/* A shade at the edge beyond which there is more; the covers of the paper's colour travel with the table and hide it. */
.scroll { overflow-x: auto; margin: 1rem 0; background:
  linear-gradient(90deg, var(--paper) 30%, transparent) left / 2.5rem 100% no-repeat local,
  linear-gradient(270deg, var(--paper) 30%, transparent) right / 2.5rem 100% no-repeat local,
  linear-gradient(90deg, var(--line), transparent) left / .9rem 100% no-repeat scroll,
  linear-gradient(270deg, var(--line), transparent) right / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .9375rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
.caption { margin: 1rem 0 0; color: var(--muted); font-size: .9375rem; }
.caption + .scroll { margin-top: .35rem; }
.figures .caption:first-child { margin-top: 0; }
th, td { padding: .4rem 1.5rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: .25rem; }
thead th { font-weight: 600; white-space: nowrap; border-bottom: 2px solid var(--muted); }
tbody th { font-weight: 400; min-width: min(11rem, 48vw); max-width: 22rem; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; }
td.number, td.short { white-space: nowrap; }
td { min-width: 4rem; }
tbody tr.first th, tbody tr.first td { font-weight: 600; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: .3rem 1.5rem; margin: 1rem 0;
  max-width: 50rem; font-size: .9375rem; line-height: 1.5; }
dt { color: var(--muted); max-width: 14rem; overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.warnings { margin: 1rem 0; padding: 0; list-style: none; max-width: 50rem; }
.warnings li { margin: .5rem 0; padding: .6rem .9rem; background: var(--panel); border-left: .25rem solid var(--even);
  border-radius: .25rem; overflow-wrap: anywhere; }
.warnings strong { color: var(--even); }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--link); padding: .25rem 0; width: fit-content; }
pre { margin: 1rem 0; padding: .9rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel);
  border-radius: .25rem; font-size: .875rem; line-height: 1.55; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
footer.wrap { padding-top: 0; padding-bottom: 3rem; }
@media (max-width: 30rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; }
  th, td { padding-right: 1rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print {
  html { font-size: 9.5pt; } .skip, nav { display: none; } .wrap { max-width: none; padding: 0; }
  section { padding: 1rem 0; } figure, .verdict, tr, pre { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; gap: 1rem; } .scroll, pre { overflow: visible; }
  td.number, td.short { white-space: normal; } tbody th { min-width: 0; }
  .verdict, .warnings li, figure { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
""")


def style_sheet() -> str:
    """Return the CSS of a page."""
    return _SHEET.substitute(light=css_variables(LIGHT), dark=css_variables(DARK))
