"""The directives: one file each, and one line each in ``ALL``. Packages may bring others, see ``plugins``."""

from __future__ import annotations

import difflib
import inspect
from functools import cache

from looptune import plugins
from looptune.errors import DirectiveError
from looptune.ir import Directive
from looptune.plugins import Plugin
from looptune.transforms.base import Transform
from looptune.transforms.box import Box
from looptune.transforms.distribute import Cut, Distribute
from looptune.transforms.factor import Factor
from looptune.transforms.fold import Fold
from looptune.transforms.fullunroll import FullUnroll
from looptune.transforms.fuse import Fuse
from looptune.transforms.grid import Grid
from looptune.transforms.gridify import Gridify
from looptune.transforms.launchbounds import LaunchBounds
from looptune.transforms.maxregs import MaxRegs
from looptune.transforms.nonan import NoNaN
from looptune.transforms.overlap import Overlap
from looptune.transforms.pack import Pack
from looptune.transforms.parallel import NoParallel, Parallel
from looptune.transforms.permute import Permute
from looptune.transforms.persistent import Persistent
from looptune.transforms.raster import Raster
from looptune.transforms.split import Split
from looptune.transforms.stage import Stage
from looptune.transforms.tile import Tile
from looptune.transforms.unroll import Unroll
from looptune.transforms.vectorize import Vectorize

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
    """Of all directives, those that packages bring last."""
    own = tuple(t.name for t in ALL)
    return (*own, *(n for n in plugins.names("directive") if n not in own))


@cache
def named(name: str) -> type[Transform] | None:
    """The transform of this name, in lower case; PluginError where the package that brings it cannot be used."""
    own = next((t for t in ALL if t.name == name), None)
    plugin = plugins.named("directive", name, built_in=own is not None)
    return own if plugin is None else _brought(plugin)


def _brought(plugin: Plugin) -> type[Transform]:
    """What a package brings, looked at as far as that is possible without a directive."""
    cls = plugin.load()
    if not (isinstance(cls, type) and issubclass(cls, Transform)):
        raise plugin.refused("it is no subclass of looptune.transforms.base.Transform")
    lacking = [a for a in ("name", "syntax", "stage", "examples") if not hasattr(cls, a)]
    if lacking or inspect.isabstract(cls):
        raise plugin.refused(f"it lacks {', '.join([*lacking, *sorted(cls.__abstractmethods__)])}")
    if cls.name != plugin.name:
        raise plugin.refused(f"it calls itself {cls.name}")
    return cls


def find(directive: Directive) -> type[Transform]:
    """The transform a directive asks for; a DirectiveError names the nearest where there is none of that name."""
    found = named(directive.name.lower())
    if found is not None:
        return found
    near = difflib.get_close_matches(directive.name.lower(), names(), 1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(names())}"
    raise DirectiveError(f"unknown directive '{directive.name}'{hint}", directive.span)
