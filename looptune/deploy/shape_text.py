"""What a built module knows of its arrays, as Python: the shapes that C declares, and what the loops access.

def extents(ni, nj, nk):
    return ((ni, nj), (ni, nk), (nk, nj))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from looptune.backends.codegen.python import UNLIMITED, Writer, ident
from looptune.deploy.assembly import python_literal, tuple_text
from looptune.ir.def_use import integer_parameters
from looptune.ir.nodes import Array, Codelet, Load, Loop
from looptune.poly.reach_data import access_records
from looptune.runtime.size_relations import size_relations

if TYPE_CHECKING:
    from looptune.poly.delinearization import SizeRelation


class _Host(Writer):
    """Extents in plain Python."""

    def element(self, load: Load) -> str:
        raise AssertionError(f"{load.array} is no extent")

    def loop(self, loop: Loop, indent: str) -> Iterator[str]:
        raise AssertionError(f"a loop {loop.var} is no extent")

    def wide(self, text: str) -> str:
        return text

    def helper(self, name: str) -> str:
        return f"extent_{super().helper(name)}"


def extents_text(codelet: Codelet) -> str:
    """Return a function from the integer parameters to the shapes of the arrays."""
    writer = _Host()
    whole = integer_parameters(codelet)
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    shapes = [tuple_text("None" if e is None else writer.bound(e) for e in p.shape) for p in arrays]
    returned = tuple_text(shapes)
    checks = "".join(_relation(codelet, relation) for relation in size_relations(codelet))
    helpers = "".join(f"{UNLIMITED[h].replace(h, f'extent_{h}')}\n\n" for h in sorted(writer.used))
    return f'''{helpers}def extents({", ".join(map(ident, whole))}):
    """The shapes that the C text declares; None where it leaves one open."""
{checks}    return {returned}
'''


def _relation(codelet: Codelet, relation: SizeRelation) -> str:
    """Return the lines that check an assumption about sizes."""
    renamed = {p.name: ident(p.name) for p in codelet.params}
    test = re.sub(r"[A-Za-z_]\w*", lambda m: renamed.get(m[0], m[0]), str(relation))
    said = python_literal(f"{codelet.name} assumes {relation}, which does not hold")
    return f"    if not {test}:\n        raise ValueError({said})\n"


def accesses_text(codelet: Codelet) -> str:
    """Return the definition of what the loops access, see ``array_reach``."""
    said = "What the loops reach: of an array that is shorter a call says so."
    return f'ACCESSES = {python_literal(access_records(codelet))}\n"""{said}"""\n'
