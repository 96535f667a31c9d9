"""Puts data into one HTML file that needs no network and runs no script but ours.

    page({"kind": "memory", ...}, "ann")

Texts of a memory are not to be trusted. In the file they stand as JSON in which `<`, `>` and `&` are escapes,
the script shows them as text only, and the page's policy allows the one script and the one style by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
from typing import Any

_DATA = '<script type="application/json" id="data">'
_ESCAPES = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def page(data: Any, title: str) -> str:
    """Return the file's text; `data` is anything that JSON can hold."""
    files = importlib.resources.files(__package__)
    script, style = ((files / name).read_text("utf-8") for name in ("view.js", "view.css"))
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n<body><main></main>\n"
        f"{_DATA}{payload}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
