"""The site: it builds without a warning, its links lead somewhere, each directive has a page made of its own file."""

from __future__ import annotations

import html
import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

from looptune.schedule import directives
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"
MISSING = [m for m in ("sphinx", "myst_parser", "furo") if importlib.util.find_spec(m) is None]
needs_sphinx = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}: pip install -e '.[docs]'")


def the_pages() -> ModuleType:
    """``docs/pages.py``, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pages"] = module
    spec.loader.exec_module(module)
    return module


pages = the_pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make docs`` makes; a warning, such as a link that leads nowhere, is an error."""
    out = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-n",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        out / "trees",
        DOCS,
        out / "html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return out / "html"


class Loaded(HTMLParser):
    """What a browser would load for a page by itself: sources of scripts and pictures, style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        is_sheet = tag == "link" and "stylesheet" in (named.get("rel") or "")
        self.found += [url for url in (named.get("src"), named.get("href") if is_sheet else None) if url]


TITLES = {f.stem: f.read_text().splitlines()[0].removeprefix("# ") for f in DOCS.glob("*.md")}
TITLES |= {f"directives/{t.name}": pages.word(t) for t in directives.ALL}
"""Of every page that people read."""


@pytest.mark.sampled(2)
@pytest.mark.wide
@needs_sphinx
def test_every_page_is_there_and_needs_no_network(site: Path) -> None:
    """Each Markdown file of docs/ and each directive is a page, and all that a page loads lies in the site."""
    for name, title in TITLES.items():
        page = site / f"{name}.html"
        text = page.read_text()
        assert re.search(rf"<h1>\s*{re.escape(html.escape(title))}\s*<", re.sub("</?(code|span)[^>]*>", "", text)), name
        loaded = Loaded(text).found
        assert loaded
        assert all((page.parent / url.partition("?")[0]).resolve().is_file() for url in loaded), f"{name}: {loaded}"


@pytest.mark.wide
@needs_sphinx
def test_every_page_can_be_reached(site: Path) -> None:
    """The list of contents on the first page has all of them."""
    link = r'toctree-l\d[^>]*><a class="reference internal" href="([^"#]*)"'
    listed = set(re.findall(link, (site / "index.html").read_text()))
    assert {f"{name}.html" for name in TITLES} - listed == {"index.html"}


@pytest.mark.sampled(4, "wide")
@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("cls", directives.ALL, ids=lambda c: c.name)
def test_a_directive_says_what_its_page_needs(cls: type[directives.Transform]) -> None:
    """When it is legal, what it gains and costs, a section in the language; each example is shown with its result."""
    assert {"Legal when", "Gain", "Cost"} <= set(pages.said(cls).topics)
    assert f"\n## {pages.section(cls).replace('-', ' ')}".lower() in (DOCS / "directives.md").read_text().lower()
    text = pages.page(cls)
    assert text.count("`looptune transform example.c`") == len(cls.examples)
    for example in cls.examples.values():
        assert example.refused in text
        shown = without_pragmas(text)
        assert not example.after or any(without_pragmas(c) in shown for c in (example.after, example.code))


def without_pragmas(text: str) -> str:
    """The text with its pragmas, indents and braces left out: a file keeps those that it has."""
    lines = (line.strip(" {}") for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#pragma"))
