"""The identity of a program in the store: its loops and its directives, not the layout of its text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from looptune.ir import c_printer
from looptune.ir.nodes import Array, Assign, Directive, If, Loop
from looptune.ir.rewrite import walk
from looptune.schedule.directives import formerly

if TYPE_CHECKING:
    from looptune.frontend import Unit


def source_hash(unit: Unit) -> str:
    """Return a hash that is equal for texts that lead to one codelet with the same directives in the same places.

    Directives are in the words of the release before, so that what was measured then is found.
    """
    text = c_printer.function(unit.codelet) + repr([p.io for p in unit.codelet.params if isinstance(p, Array)])
    return hashlib.sha256("\n".join([text, *(repr(n) for n in _directives(unit))]).encode()).hexdigest()


def _directives(unit: Unit) -> list[tuple[int, tuple[Directive, ...]]]:
    nodes = list(walk(unit.codelet.body))
    loops = [(n.number, n.directives) for n in nodes if isinstance(n, Loop)]
    loops += [(0, unit.codelet.directives)] if unit.codelet.directives else []
    loops += [(k, n.directives) for k, n in enumerate(nodes) if isinstance(n, (Assign, If)) and n.directives]
    return [(number, tuple(map(formerly, said))) for number, said in loops]
