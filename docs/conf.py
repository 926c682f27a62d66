"""How the site is built; see `make docs`."""

import countless

project = "countless"
author = "the countless developers"
release = version = countless.__version__
project_copyright = f"2026, {author}"

# Formulas are plain text, so that the pages load nothing from elsewhere and read the same offline.
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3

# Docstrings are numpydoc; types stand in them, so signatures stay short.
napoleon_google_docstring = False
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"

# Words of a docstring's types, such as n_clusters, are attributes of several classes: no link then.
suppress_warnings = ["ref.python"]

exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "countless"


def skip_metadata_requests(app, what, name, obj, skip, options):
    """Leave out ``set_fit_request`` and its kind, which scikit-learn generates."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app):
    """Register the hook above."""
    app.connect("autodoc-skip-member", skip_metadata_requests)
