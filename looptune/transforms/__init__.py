"""The directives: one file each, and one line each in ``ALL``."""

from __future__ import annotations

import difflib

from looptune.errors import DirectiveError
from looptune.ir import Directive
from looptune.transforms.base import Transform
from looptune.transforms.box import Box
from looptune.transforms.distribute import Cut, Distribute
from looptune.transforms.fullunroll import FullUnroll
from looptune.transforms.fuse import Fuse
from looptune.transforms.grid import Grid
from looptune.transforms.gridify import Gridify
from looptune.transforms.parallel import NoParallel, Parallel
from looptune.transforms.permute import Permute
from looptune.transforms.split import Split
from looptune.transforms.stage import Stage
from looptune.transforms.tile import Tile
from looptune.transforms.unroll import Unroll

ALL: tuple[type[Transform], ...] = (
    Distribute,
    Cut,
    Permute,
    Fuse,
    Box,
    Tile,
    Unroll,
    FullUnroll,
    Parallel,
    NoParallel,
    Split,
    Gridify,
    Grid,
    Stage,
)


def find(directive: Directive) -> type[Transform]:
    """The transform a directive asks for; a DirectiveError names the nearest where there is none of that name."""
    found = next((t for t in ALL if t.name == directive.name.lower()), None)
    if found is not None:
        return found
    near = difflib.get_close_matches(directive.name.lower(), [t.name for t in ALL], 1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(t.name for t in ALL)}"
    raise DirectiveError(f"unknown directive '{directive.name}'{hint}", directive.span)
