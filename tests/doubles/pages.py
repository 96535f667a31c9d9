"""The pages of the documentation, and what is code in them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"<!-- table: .*?<!-- end -->", re.DOTALL)  # names the commands of old results
