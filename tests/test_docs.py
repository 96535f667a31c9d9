"""Pages of README.md and docs/: complete Python blocks run, commands and links name what exists."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import re

import pytest
from pages import FENCE, PAGES, ROOT, TABLE

from embodied_mem.errors import DataNotFoundError, MissingDependencyError
from embodied_mem.registry import names

_CODE = re.compile(r"`([^`\n]+)`")


def blocks(page: pathlib.Path) -> list[tuple[str, str]]:
    """(language, code) of the fenced blocks of a page."""
    return FENCE.findall(page.read_text())


def is_complete(language: str, code: str) -> bool:
    """Whether a block is Python that stands alone."""
    return language == "python" and code.startswith(("import ", "from "))


EXAMPLES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, (language, code) in enumerate(blocks(page), 1)
    if is_complete(language, code)
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_complete_python_blocks_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(code, "block", "exec"), {"__name__": "block"})
    except (DataNotFoundError, MissingDependencyError) as error:  # openenv and verifiers: tests/serve runs theirs
        pytest.skip(str(error))


def test_the_readme_has_examples_that_need_no_data():
    assert sum(is_complete(*block) for block in blocks(ROOT / "README.md")) == 2


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")


def broken_links(page: pathlib.Path) -> list[str]:
    """Relative links of a page whose file or heading does not exist, or which the site cannot follow: it has the pages
    of docs/ alone.
    """
    site = ROOT / "docs"
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (target.suffix == ".md" and site in page.parents and site not in target.parents):
            broken.append(link)
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", FENCE.sub("", target.read_text()), re.MULTILINE)
            broken += [] if anchor in {slug(heading) for heading in headings} else [link]
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    assert broken_links(page) == []


def test_a_broken_link_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One, two\n[a](page.md#one-two) [b](page.md#three) [c](gone.md) [d](https://example.org)\n")
    assert broken_links(page) == ["page.md#three", "gone.md"]


def test_a_link_that_leaves_the_site_is_seen(monkeypatch, tmp_path):
    monkeypatch.setattr("test_docs.ROOT", tmp_path)
    page, outside = tmp_path / "docs" / "page.md", tmp_path / "LOG.md"
    page.parent.mkdir()
    outside.touch()
    page.write_text("[the log](../LOG.md) [itself](page.md)\n")
    assert broken_links(page) == ["../LOG.md"]


def unknown_names(page: pathlib.Path) -> list[str]:
    """Files, modules, configurations and weights of ours that a page names in code and that do not exist."""
    text = TABLE.sub("", page.read_text())
    code = [code for _, code in FENCE.findall(text)] + _CODE.findall(FENCE.sub("", text))
    bases = [ROOT, ROOT / "embodied_mem", ROOT / "experiments", ROOT / "embodied_mem/worlds" / page.stem]
    unknown = []
    for piece in code:
        for name in re.findall(r"(?<![\w/.<>*$-])(?:[\w.]+/)+\w+\.(?:py|h|cpp|png)(?![\w/*])", piece):
            if not any((base / name).exists() for base in bases) and not name.startswith(_ELSEWHERE):
                unknown.append(name)
        for name in re.findall(r"--config[= ]([a-z]\w*)", piece):
            known = name in names("benchmark") or (ROOT / f"experiments/configs/{name}.py").exists()
            unknown += [] if known else [f"--config={name}"]
        for name in re.findall(
            r"\b(?:experiments/(?:weights|results)/\w+|csrc(?:/\w+)+|tests(?:/\w+)+)\b(?![.{*])", piece
        ):
            unknown += [] if (ROOT / name).exists() else [name]
        for name in re.findall(r"-m (embodied_mem(?:\.\w+)+)", piece) + re.findall(_DOTTED, piece):
            unknown += [] if exists(name) or name.endswith(".gguf") else [name]
    return unknown


_ELSEWHERE = ("runs/", "build/", "embodiedbench/")
"""Files that a command writes, and those of other programs."""

_PACKAGES = ("agents", "compiler", "evaluation", "language", "models", "parallel", "training", "worlds")
_DOTTED = re.compile(rf"^(?:embodied_mem\.)?((?:{'|'.join(_PACKAGES)})(?:\.\w+)+)(?:\(.*\))?$")


def exists(name: str) -> bool:
    """Whether a dotted name is a module of the package, or an attribute of one."""
    found, attributes = f"embodied_mem.{name.removeprefix('embodied_mem.')}", []
    while not _is_module(found):
        found, _, attribute = found.rpartition(".")
        attributes.insert(0, attribute)
    try:
        value = importlib.import_module(found)
    except MissingDependencyError:
        return True  # its names cannot be seen without the extra
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return value is not None


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_code_name_what_exists(page):
    assert unknown_names(page) == []


def test_an_unknown_name_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`experiments/train.py` `experiments/gone.py` `models.formats.gone`\n```\npython x --config=gone\n```\n"
    )
    assert unknown_names(page) == ["--config=gone", "experiments/gone.py", "models.formats.gone"]


def test_pages_that_the_code_names_exist():
    for folder in ("embodied_mem", "experiments", "tests", "csrc"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".h", ".cpp"):
                for name in re.findall(r"\bdocs/[\w/]+\.md", path.read_text()):
                    assert (ROOT / name).exists(), f"{path.relative_to(ROOT)}: {name}"
