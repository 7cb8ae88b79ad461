"""The directives: one file each, and one line each in ``ALL``. Packages may bring others, see ``core/plugins``."""

from __future__ import annotations

import difflib
import inspect
from functools import cache
from typing import TYPE_CHECKING

from looptune.core import plugins
from looptune.core.errors import DirectiveError
from looptune.schedule.directives.base import Transform
from looptune.schedule.directives.box import Box
from looptune.schedule.directives.distribute import Cut, Distribute
from looptune.schedule.directives.factor import Factor
from looptune.schedule.directives.fold import Fold
from looptune.schedule.directives.fullunroll import FullUnroll
from looptune.schedule.directives.fuse import Fuse
from looptune.schedule.directives.grid import Grid
from looptune.schedule.directives.gridify import Gridify
from looptune.schedule.directives.launchbounds import LaunchBounds
from looptune.schedule.directives.maxregs import MaxRegs
from looptune.schedule.directives.nonan import NoNaN
from looptune.schedule.directives.overlap import Overlap
from looptune.schedule.directives.pack import Pack
from looptune.schedule.directives.parallel import NoParallel, Parallel
from looptune.schedule.directives.permute import Permute
from looptune.schedule.directives.persistent import Persistent
from looptune.schedule.directives.raster import Raster
from looptune.schedule.directives.split import Split
from looptune.schedule.directives.stage import Stage
from looptune.schedule.directives.tile import Tile
from looptune.schedule.directives.unroll import Unroll
from looptune.schedule.directives.vectorize import Vectorize

if TYPE_CHECKING:
    from looptune.core.plugins import Plugin
    from looptune.ir.nodes import Directive

ALL: tuple[type[Transform], ...] = (
    Distribute,
    Cut,
    Permute,
    Fold,
    Fuse,
    Box,
    Tile,
    Unroll,
    FullUnroll,
    Parallel,
    NoParallel,
    Split,
    Factor,
    Gridify,
    Grid,
    Raster,
    Pack,
    MaxRegs,
    LaunchBounds,
    Vectorize,
    Stage,
    Overlap,
    Persistent,
    NoNaN,
)


def names() -> tuple[str, ...]:
    """Return the names of all directives, those of packages last."""
    own = tuple(t.name for t in ALL)
    return (*own, *(n for n in plugins.names("directive") if n not in own))


@cache
def named(name: str) -> type[Transform] | None:
    """Return the transform of this name, in lower case.

    Raises PluginError if the package that provides it cannot be used.
    """
    own = next((t for t in ALL if t.name == name), None)
    plugin = plugins.find_plugin("directive", name, built_in=own is not None)
    return own if plugin is None else _brought(plugin)


def _brought(plugin: Plugin) -> type[Transform]:
    """Return what a package brings, looked at as far as that is possible without a directive."""
    cls = plugin.load()
    if not (isinstance(cls, type) and issubclass(cls, Transform)):
        raise plugin.error("it is not a subclass of looptune.schedule.directives.base.Transform")
    lacking = [a for a in ("name", "syntax", "stage", "examples") if not hasattr(cls, a)]
    if lacking or inspect.isabstract(cls):
        raise plugin.error(f"it lacks {', '.join([*lacking, *sorted(cls.__abstractmethods__)])}")
    if cls.name != plugin.name:
        raise plugin.error(f"it calls itself {cls.name}")
    return cls


def find(directive: Directive) -> type[Transform]:
    """Return the transform of a directive. Raises DirectiveError with the nearest name if there is none."""
    found = named(directive.name.lower())
    if found is not None:
        return found
    near = difflib.get_close_matches(directive.name.lower(), names(), 1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(names())}"
    raise DirectiveError(f"unknown directive '{directive.name}'{hint}", directive.span)
