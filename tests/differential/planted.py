"""Known mistakes, built in on demand: a test that does not find them is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from looptune.backends.numba_cpu import functions
from looptune.frontend import c_types
from looptune.ir import c_printer
from looptune.ir.nodes import Loop
from looptune.schedule.analysis import Analysis
from looptune.schedule.directives.base import DirectiveSite, Rewrite
from looptune.schedule.directives.unroll import Unroll


@dataclass(frozen=True, slots=True)
class Bug:
    """``plant`` changes looptune in this process; ``target`` is where it shows, ``cases`` are numbers of seed 1 that
    show it, found by ``--cases 200 --seed 1 --plant NAME``. They change when the generator does."""

    target: str
    plant: Callable[[], None]
    cases: tuple[int, ...]


def _parentheses() -> None:
    """``a - (b - c)`` is printed without them."""
    usual = c_printer.expression_text
    c_printer.expression_text = lambda e, level=0: usual(e, level - 1 if level == c_printer._LEVEL["-"] + 1 else level)  # type: ignore[assignment]


def _remainder() -> None:
    """What an unrolled loop leaves over is not run."""
    usual = Unroll.apply

    def apply(self: Unroll, site: DirectiveSite) -> Rewrite:
        change = usual(self, site)
        loops = [s for s in change.body if isinstance(s, Loop)]
        return replace(change, body=change.body[:-1]) if len(loops) > 1 else change

    Unroll.apply = apply  # type: ignore[method-assign]


def _unsigned() -> None:
    """``unsigned`` is read as ``int``."""
    c_types._WORDS["unsigned"] = "int32"


def _legality() -> None:
    """Every order is legal."""
    Analysis.judge = lambda self, new, old, **_: None  # type: ignore[method-assign]


def _trips() -> None:
    """A loop that is shared out has an iteration too few."""
    usual = functions._trips
    functions._trips = lambda loop, writer: f"({usual(loop, writer)}) - 1"


BUGS: Mapping[str, Bug] = {
    "parentheses": Bug("transform", _parentheses, (30, 62)),
    "remainder": Bug("transform", _remainder, (22,)),
    "unsigned": Bug("front", _unsigned, (5, 12, 21)),
    "legality": Bug("interpreter", _legality, (5,)),
    "trips": Bug("numba-cpu", _trips, (5, 7)),
}
