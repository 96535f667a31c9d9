"""Settings of the documentation's site.

pip install -e ".[docs]" && sphinx-build -W --keep-going docs docs/_build
"""

import embodied_mem

project = "embodied_mem"
author = "The embodied_mem authors"
release = embodied_mem.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"embodied_mem {release}"

myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {
    "members": True,
    "inherited-members": "tuple,dict,list,object,Exception,OSError,Protocol",
    "show-inheritance": True,
}
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # `object` is a type and a field of three classes


def _mark_code(app, what, name, obj, options, lines):
    """An indented block after a blank line is code, as every docstring here has it."""
    for number, line in reversed(list(enumerate(lines))):
        blank_before = number and not lines[number - 1].strip()
        depth = len(line) - len(line.lstrip())
        above = next((one for one in reversed(lines[:number]) if one.strip()), "")
        if line.strip() and blank_before and depth and not above.startswith(" ") and not above.endswith(":"):
            lines[number:number] = ["::", ""]


def setup(app):
    app.connect("autodoc-process-docstring", _mark_code, priority=100)
