"""What became of one directive of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from looptune.core.errors import LooptuneError
from looptune.ir.nodes import Directive
from looptune.poly.reassociation import ReorderedReduction


@dataclass(frozen=True, slots=True)
class AppliedDirective:
    """One directive as applied: ``proof`` is "proved", "asserted" (by ``assume``), "refused" or "" where it needs none.

    ``number`` and ``piece`` are its loop's; ``refusal`` the error where it is refused, which only ``keep_going`` leaves
    in a schedule. ``sums`` are those it reorders, where that was asked for; ``assumes`` what it says of the data.
    """

    text: str
    loop: str
    proof: str
    number: int
    directive: Directive
    refusal: LooptuneError | None = None
    piece: int = 0
    sums: tuple[ReorderedReduction, ...] = ()
    assumes: str = ""
