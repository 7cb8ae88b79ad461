"""Packages that bring directives, strategies and targets, there without pip: their metadata in a folder on the path."""

from __future__ import annotations

import importlib
import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from looptune.core import plugins
from looptune.schedule import directives
from tests.helpers.paths import ROOT

EXAMPLES = ROOT / "examples"


def install(package: Path, site: Path) -> None:
    """What pip makes of ``pyproject.toml``, as far as it is looked at."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    points = {group: dict(named) for group, named in project["entry-points"].items()}
    declare(site, project["name"], points)
    for module in package.glob("*.py"):
        shutil.copy(module, site)


def declare(site: Path, name: str, points: dict[str, dict[str, str]]) -> None:
    """The metadata of a package with these entry points."""
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = (
        line for group, named in points.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in named.items()))
    )
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@contextmanager
def visible(site: Path) -> Iterator[None]:
    """Its packages are there in this process, and gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        _forget(site)
        yield
    _forget(site)


def _forget(site: Path) -> None:
    importlib.invalidate_caches()
    plugins.installed.cache_clear()
    directives.named.cache_clear()
    for module in site.glob("*.py"):
        sys.modules.pop(module.stem, None)
