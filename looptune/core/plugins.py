"""Directives, strategies and targets of other packages, found by the entry points in their metadata.

    [project.entry-points."looptune.directives"]
    mirror = "looptune_mirror:Mirror"                  the name is what a user writes

Only the metadata is read until a name is used. A package is refused if the name of its plug-in exists already, if it
cannot be imported, or if the plug-in is of another kind than declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, distributions
from typing import Any, Literal

from looptune.core.errors import PluginError

Kind = Literal["directive", "strategy", "target"]
GROUPS: dict[Kind, str] = {
    "directive": "looptune.directives", "strategy": "looptune.strategies", "target": "looptune.targets",
}  # fmt: skip

_IMPORTING = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What code that is imported may raise."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in: ``package`` provides the ``kind`` of object that is called ``name``."""

    kind: Kind
    name: str
    package: str
    version: str
    point: EntryPoint

    def error(self, why: str) -> PluginError:
        return PluginError(f"the {self.kind} {self.name} of the package {self.package} cannot be used: {why}")

    def load(self) -> Any:
        """Import the plug-in. Raises PluginError if it cannot be imported."""
        try:
            return self.point.load()
        except _IMPORTING as error:
            raise self.error(f"{self.point.value}: {type(error).__name__}: {error}") from error


@cache
def installed() -> tuple[Plugin, ...]:
    """Return all plug-ins, ordered by kind and name; a package that is found twice counts once."""
    found: dict[tuple[str, str, str], Plugin] = {}
    for package in distributions():
        for point in package.entry_points:
            for kind, group in GROUPS.items():
                if point.group == group:
                    made = Plugin(kind, point.name, package.metadata["Name"], package.version, point)
                    found.setdefault((kind, point.name, made.package), made)
    return tuple(found[key] for key in sorted(found))


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names of the installed plug-ins of this kind."""
    return tuple(dict.fromkeys(p.name for p in installed() if p.kind == kind))


def find_plugin(kind: Kind, name: str, *, built_in: bool) -> Plugin | None:
    """Return the plug-in of this name, or None if there is none.

    Raises PluginError if there are two, or if looptune has one itself.
    """
    here = [p for p in installed() if (p.kind, p.name) == (kind, name)]
    if here and built_in:
        raise here[0].error(f"looptune has a {kind} of this name itself; uninstall {here[0].package} or rename it")
    if len(here) > 1:
        raise here[0].error(f"the package {here[1].package} brings one of this name too; uninstall one of them")
    return here[0] if here else None


def versions() -> dict[str, str]:
    """Return the versions of the packages that affect measurements: those with directives and targets."""
    return {p.package: p.version for p in installed() if p.kind != "strategy"}
