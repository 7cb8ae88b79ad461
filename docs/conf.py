"""How Sphinx makes the site: `make docs`. The pages of the directives are written first, from the code."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import pages  # noqa: E402

from looptune.core.version import __version__  # noqa: E402

project = "looptune"
version = release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "looptune"
html_show_copyright = False
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
highlight_language = "none"
# C with arrows and dots in it is meant for people.
suppress_warnings = ["misc.highlighting_failure"]

pages.write(HERE / "directives")
