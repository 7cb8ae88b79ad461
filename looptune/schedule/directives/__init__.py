"""The directives: one file each, and one line each in ``ALL``. Packages may add others, see ``core/plugins``."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.core import plugins
from looptune.core.errors import DirectiveError
from looptune.schedule.directives.argreduce import ArgReduce
from looptune.schedule.directives.base import Transform
from looptune.schedule.directives.block import Block
from looptune.schedule.directives.box import Box
from looptune.schedule.directives.concurrent import Concurrent
from looptune.schedule.directives.distribute import Cut, Distribute
from looptune.schedule.directives.expand import Expand
from looptune.schedule.directives.factor import Factor
from looptune.schedule.directives.fold import Fold
from looptune.schedule.directives.fullunroll import FullUnroll
from looptune.schedule.directives.fuse import Fuse
from looptune.schedule.directives.grid import Grid
from looptune.schedule.directives.gridify import Gridify
from looptune.schedule.directives.launchbounds import LaunchBounds
from looptune.schedule.directives.maxregs import MaxRegs
from looptune.schedule.directives.nnan import Nnan
from looptune.schedule.directives.overlap import Overlap
from looptune.schedule.directives.pack import Pack
from looptune.schedule.directives.parallel import NoParallel, Parallel
from looptune.schedule.directives.permute import Permute
from looptune.schedule.directives.persistent import Persistent
from looptune.schedule.directives.prefix import Prefix
from looptune.schedule.directives.resident import Resident
from looptune.schedule.directives.reverse import Reverse
from looptune.schedule.directives.rfactor import RFactor
from looptune.schedule.directives.schedule import Schedule
from looptune.schedule.directives.shift import Shift
from looptune.schedule.directives.skew import Skew
from looptune.schedule.directives.snapshot import Snapshot
from looptune.schedule.directives.splitat import SplitAt
from looptune.schedule.directives.stage import Stage
from looptune.schedule.directives.swizzle import Swizzle
from looptune.schedule.directives.tensor import Tensor
from looptune.schedule.directives.tile import Tile
from looptune.schedule.directives.unroll import Unroll
from looptune.schedule.directives.vectorize import Vectorize
from looptune.schedule.directives.wavefront import Wavefront

if TYPE_CHECKING:
    from looptune.core.plugins import Plugin
    from looptune.ir.nodes import Directive

ALL: tuple[type[Transform], ...] = (
    Prefix,
    Expand,
    Snapshot,
    ArgReduce,
    Schedule,
    Distribute,
    Cut,
    SplitAt,
    Block,
    Skew,
    Shift,
    Reverse,
    Permute,
    Wavefront,
    Fold,
    Fuse,
    Box,
    Tile,
    Unroll,
    FullUnroll,
    Parallel,
    NoParallel,
    RFactor,
    Tensor,
    Factor,
    Gridify,
    Grid,
    Swizzle,
    Pack,
    MaxRegs,
    LaunchBounds,
    Vectorize,
    Stage,
    Overlap,
    Resident,
    Persistent,
    Concurrent,
    Nnan,
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
    plugin = plugins.find_plugin("directive", name, built_in=own is not None or name in _renamed())
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
    near = difflib.get_close_matches(directive.name.lower(), (*names(), *_renamed()), 1)
    hint = f"; did you mean '{current_name(near[0])}'?" if near else f"; there are {', '.join(names())}"
    raise DirectiveError(f"unknown directive '{directive.name}'{hint}", directive.span)


def replaced_names(directive: Directive) -> frozenset[str]:
    """Return the names of the directives of which a loop takes one, this one or another; mostly its own alone."""
    return _exclusive(find(directive))


@cache
def _exclusive(cls: type[Transform]) -> frozenset[str]:
    group = cls.exclusive_group
    return frozenset(t.name for t in ALL if group and t.exclusive_group == group) or frozenset({cls.name})


@cache
def _renamed() -> Mapping[str, str]:
    """Return the former names of directives, each with the present one."""
    return MappingProxyType({old: t.name for t in ALL for old, new in t.former.items() if new == t.name})


def current_name(name: str) -> str:
    """Return the present name of a directive that had another one in the release before; else ``name`` itself.

    >>> current_name("split"), current_name("tile")
    ('rfactor', 'tile')
    """
    return _renamed().get(name.lower(), name)


def current(directive: Directive) -> Directive:
    """Return the directive in present words, the same object where all of them are."""
    name = current_name(directive.name)
    cls = next((t for t in ALL if t.name == name.lower()), None)
    return directive if cls is None else _respelled(cls, directive, name, cls.former)


def formerly(directive: Directive) -> Directive:
    """Return the directive in the words of the release before, as far as these were others."""
    cls = next((t for t in ALL if t.name == directive.name.lower()), None)
    if cls is None:
        return directive
    old = {new: word for word, new in cls.former.items()}
    return _respelled(cls, directive, old.get(cls.name, directive.name), old)


def _respelled(cls: type[Transform], directive: Directive, name: str, words: Mapping[str, str]) -> Directive:
    """Return the directive with this name, and with ``words`` among its arguments replaced."""
    args = tuple(
        replace(a, key=words[a.key.lower()])
        if a.key.lower() in words and words[a.key.lower()] != name and cls.is_word(a, directive)
        else a
        for a in directive.args
    )
    same = name == directive.name and args == directive.args
    return directive if same else replace(directive, name=name, args=args)


def renamed_words(directive: Directive) -> tuple[str, ...]:
    """Return a sentence for each word of the release before that the directive has.

    >>> from looptune.ir.nodes import Arg, Directive
    >>> renamed_words(Directive("stage", (Arg("A"), Arg("turned", ("A",)))))
    ('turned of stage is now transposed',)
    """
    now = current(directive)
    pairs = zip(directive.args, now.args, strict=True)
    found = [f"{old.key} of {now.name} is now {new.key}" for old, new in pairs if old.key != new.key]
    return (*([f"the directive {directive.name} is now {now.name}"] if now.name != directive.name else []), *found)
