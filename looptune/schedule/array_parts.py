"""How many copies of an array the parts of a loop may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.ir.def_use import private_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from looptune.ir.nodes import Local

MOST_COPY_BYTES = 2**30
"""Of the copies of an array whose size is constant."""


def parts_that_fit(most: int, arrays: Iterable[Local]) -> int:
    """Return the largest number of parts whose copies of the arrays fit, ``most`` halved as often as necessary.

    Arrays whose sizes are not constant count as if they were small.

    >>> from looptune.ir.nodes import Const, Local
    >>> parts_that_fit(4096, [Local("h", "float32", (Const(512), Const(512)))])
    1024
    """
    largest = max((private_bytes(a) or 1 for a in arrays), default=1)
    while most > 1 and most * largest > MOST_COPY_BYTES:
        most //= 2
    return most
