"""How the site is built; see `make docs`."""

import re
import socket
import sys
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import countless

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "countless"
author = "the countless developers"
release = version = countless.__version__
project_copyright = f"2026, {author}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "llms_txt",
    "mathml",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# The pages load nothing from elsewhere, and read the same offline.
html_math_renderer = "mathml"

# Docstrings are numpydoc; types stand in them, so signatures stay short.
napoleon_google_docstring = False
napoleon_use_ivar = True
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
templates_path = ["_templates"]

# Words of a docstring's types, such as n_clusters, are attributes of several classes: no link then.
suppress_warnings = ["ref.python"]

exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/**/*.ipynb"]
html_theme = "furo"
html_title = "countless"
html_static_path = ["_static"]
html_css_files = ["countless.css"]
html_copy_source = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False


def is_reachable(host: str) -> bool:
    """Say whether the index of another project can be asked for."""
    try:
        socket.create_connection((host, 443), timeout=3).close()
    except OSError:
        return False
    return True


# Links to the reference pages of other projects; without a network the site is built without them.
intersphinx_mapping = {
    name: (f"https://{host}/{path}", None)
    for name, host, path in (
        ("python", "docs.python.org", "3/"),
        ("numpy", "numpy.org", "doc/stable/"),
        ("scipy", "docs.scipy.org", "doc/scipy/"),
        ("sklearn", "scikit-learn.org", "stable/"),
    )
    if is_reachable(host)
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "",  # every program is run
    "subsection_order": ExplicitOrder(
        [
            f"../examples/{folder}"
            for folder in ("tables", "shapes", "groups", "uncertainty", "trees", "large")
        ]
    ),
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("countless",),
    "capture_repr": (),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "matplotlib_animations": False,
    "parallel": 2,
    "thumbnail_size": (400, 280),
}
# Programs draw without a window; sphinx-gallery's plt.show() then has nothing to show.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def skip_metadata_requests(app, what, name, obj, skip, options):
    """Leave out ``set_fit_request`` and its kind, which scikit-learn generates."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def keep_underscores(app, what, name, obj, options, lines):
    """Escape the end of names such as ``labels_``, which would be a reference otherwise."""
    lines[:] = [re.sub(r"^:(ivar|vartype) (\w+)_:", r":\1 \2\\_:", line) for line in lines]


def setup(app):
    """Register the hooks above; the second comes after napoleon's."""
    app.connect("autodoc-skip-member", skip_metadata_requests)
    app.connect("autodoc-process-docstring", keep_underscores, priority=600)
