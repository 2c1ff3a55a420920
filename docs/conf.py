"""Sphinx: how the documentation is built."""  # noqa: INP001 - Sphinx reads this file, nothing imports it

from __future__ import annotations

from django_workqueue import __version__

project = "django_workqueue"
author = "The django_workqueue authors"
release = version = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"django_workqueue {version}"
html_show_copyright = False
