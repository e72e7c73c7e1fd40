"""Sphinx configuration."""

import logging
import re
import runpy
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import scoreline

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
NOT_RUN = "not run when this page is built"  # in the text of an example that needs a cluster or a device
logging.getLogger("scoreline").setLevel(logging.WARNING)  # a dependency of the theme lets all messages through
TOCTREE = re.compile(r"\.\. toctree::\n   :hidden:\n\n((?:   \w+\n)+)")

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
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3  # links such as results.md#cluster
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "furo"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_title = "scoreline"
exclude_patterns = ["_build"]
runpy.run_path(str(HERE / "notebooks.py"))[
    "write"
]()  # the tutorials as notebooks, which their pages offer for download

# examples/index.rst has the sections and their order; pages and pictures are made in docs/gallery. An example that has not
# changed is not run again: `make clean` before a release.
INDEX = (EXAMPLES / "index.rst").read_text(encoding="utf-8")
ORDER = [name for names in TOCTREE.findall(INDEX) for name in names.split()]
RUN_BY_HAND = [path.name for path in sorted(EXAMPLES.glob("*.py")) if NOT_RUN in path.read_text(encoding="utf-8")]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"/(?!{'|'.join(map(re.escape, RUN_BY_HAND)) or '$'})\w+\.py$",
    "copyfile_regex": r"index\.rst",
    "backreferences_dir": "gallery/backreferences",
    "minigallery_sort_order": ExplicitOrder([str(EXAMPLES / f"{name}.py") for name in ORDER]),
    "image_srcset": ["2x"],
    "capture_repr": (),
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_signature": False,
}


def escape_formulas(app, what, name, obj, options, lines):
    """Let docstrings say |w|^2 and coef_ in plain text: both mean something else in reStructuredText."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")) or " : " in line:
            continue
        line = re.sub(r"(?<!`)\b(\w*[A-Za-z0-9])_(?![\w`])", r"\1\\_", line)
        lines[i] = line.replace("|", "\\|")


def add_pictures(app, docname, source):
    """Show the pictures of a section of the gallery where its table of contents is."""
    if docname == "gallery/index":
        source[0] = TOCTREE.sub(lambda found: f"{pictures(found[1].split())}\n\n{found[0]}", source[0])


def pictures(names):
    """Return the directive that shows the examples of these names as pictures."""
    return "\n".join([".. minigallery::", "", *(f"   ../examples/{name}.py" for name in names)])


def setup(app):
    """Connect the escaping before numpydoc runs, and the pictures of the gallery."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)
    app.connect("source-read", add_pictures)
