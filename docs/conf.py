"""Sphinx configuration."""

import re

import scoreline

project = "scoreline"
author = "The scoreline developers"
release = version = scoreline.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "numpydoc",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "furo"
html_title = "scoreline"
exclude_patterns = ["_build"]


def escape_formulas(app, what, name, obj, options, lines):
    """Let docstrings say |w|^2 and coef_ in plain text: both mean something else in reStructuredText."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")) or " : " in line:
            continue
        line = re.sub(r"(?<!`)\b(\w*[A-Za-z0-9])_(?![\w`])", r"\1\\_", line)
        lines[i] = line.replace("|", "\\|")


def setup(app):
    """Connect the escaping before numpydoc runs."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)
