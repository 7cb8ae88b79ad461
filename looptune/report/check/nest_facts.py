"""What is found about each loop of a nest that is only analysed: loops of which too little is known are analysed alone.

Where a loop cannot be analysed in its nest, or isl gives up on the nest, the loop is analysed as a codelet of its own
(``poly/loop_alone``). If it carries a dependence because of a subscript that comes from data, it is sequential: its
arrays may hold data for which two iterations access one element. If isl gives up on the loop alone as well, what its
text shows is said (``facts_of_text``).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from looptune.core.errors import LooptuneError, UnsupportedError
from looptune.frontend.normalize.library_effects import POINTERS, STATES
from looptune.ir.def_use import names_in, target_name, upward_exposed_uses, written_names
from looptune.ir.nodes import Assign, Binary, Cast, Codelet, Expr, Load, Loop, Node, Unary, Var
from looptune.ir.rewrite import substitute, walk
from looptune.poly.affine import to_isl
from looptune.poly.domain import Unanalysable
from looptune.poly.loop_alone import LoopAlone, loop_alone
from looptune.report.check.loop_facts import LoopFacts, facts_of_loop, facts_of_text, nested_loops
from looptune.report.check.text_names import in_text_names
from looptune.schedule.analysis import Analysis
from looptune.schedule.directives.base import statement_names

if TYPE_CHECKING:
    from looptune.poly.access import Access
    from looptune.poly.legality import Violation


MOST_PAIRS = 20_000
"""Pairs of statements that access one array in a nest that is analysed as a whole: a second or so."""
ALONE_PAIRS = 100_000
"""Those in all loops of a nest that are analysed alone."""
SECONDS = 20.0
"""Time for the loops of one nest; the analysis of the nest as a whole, which comes first, takes some seconds more."""
MANY_PAIRS = 5_000
"""Pairs of statements in a loop alone that are not compared if its text shows that it is sequential."""
_ANYTHING = (*STATES, POINTERS)
"""Arrays whose elements are subscripts where nothing is known of the elements that a call accesses."""


def nest_facts(codelet: Codelet, analysis: Analysis | LooptuneError, flags: Collection[str]) -> Iterator[LoopFacts]:
    """Yield what is found about each loop of a nest, in textual order.

    ``analysis`` is that of the codelet, or the reason why there is none; ``flags`` are as in ``loop_facts``. When
    ``SECONDS`` are over, only the text of the rest is looked at.
    """
    effort = _Effort()
    found: dict[int, LoopFacts] = {}
    for loop, depth in nested_loops(codelet.body):
        if isinstance(loop, Loop):
            found[loop.number] = _in_nest(analysis, loop, depth, flags, effort)
        else:
            found[loop.number] = LoopFacts(loop.number, "while", depth, loop.span, "sequential")
    unknown = [f for f in found.values() if f.kind == "unknown"]
    alone = [(one, f) for f in unknown if (one := loop_alone(codelet, f.number, _ANYTHING)) is not None]
    # the simple ones first, for which the time suffices
    for one, f in sorted(alone, key=lambda pair: compared_pairs(pair[0].codelet)):
        own = _alone(codelet, one, f, flags, effort)
        found[f.number] = f if own is None else own
    yield from found.values()


@dataclass(slots=True)
class _Effort:
    """What the analysis of the loops of a nest may still take: pairs of statements to compare, and seconds."""

    pairs: int = ALONE_PAIRS
    ends: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def is_spent(self, share: float = 1) -> bool:
        """Tell whether this share of the time is over."""
        return time.monotonic() > self.ends - (1 - share) * SECONDS

    def may_compare(self, pairs: int) -> bool:
        """Tell whether so many pairs of accesses of a loop alone may be compared, which is then done."""
        if pairs > self.pairs or self.is_spent():
            return False
        self.pairs -= pairs
        return True


def compared_pairs(codelet: Codelet) -> int:
    """Return how many pairs of statements there are that access one array or scalar."""
    accessed = (names_in(n) | {target_name(n.target)} for n in walk(codelet.body) if isinstance(n, Assign))
    return sum(n * n for n in Counter(name for names in accessed for name in names).values())


def _in_nest(
    analysis: Analysis | LooptuneError, loop: Loop, depth: int, flags: Collection[str], effort: _Effort
) -> LoopFacts:
    try:
        if isinstance(analysis, LooptuneError):
            raise analysis
        if effort.is_spent(1 / 3):
            raise UnsupportedError(f"the other loops took {SECONDS / 3:.0f} s", loop.span)
        return facts_of_loop(analysis, loop, depth, flags)
    except LooptuneError as error:
        what = Unanalysable(f"this loop ({error.message})", loop.span)
        return LoopFacts(loop.number, loop.var, depth, loop.span, "unknown", unknown=what)


def _alone(
    codelet: Codelet, alone: LoopAlone, found: LoopFacts, flags: Collection[str], effort: _Effort
) -> LoopFacts | None:
    """Return what is found about a loop alone, None if that is nothing."""
    pairs = compared_pairs(alone.codelet)
    of_text = facts_of_text(_loop_of(codelet, found.number), found.depth, flags)
    if (of_text is not None and pairs > MANY_PAIRS) or not effort.may_compare(pairs):
        return of_text
    try:
        return _analysed_alone(alone, found, flags) or of_text
    except LooptuneError:
        less = loop_alone(codelet, found.number, _ANYTHING, conditions=False)
    if less is None or effort.is_spent():
        return of_text
    try:
        own = _analysed_alone(less, found, flags)
    except LooptuneError:
        return of_text
    # a dependence may need values that the conditions exclude
    return own if own is not None and own.kind in ("parallel", "reduction") else of_text


def _analysed_alone(alone: LoopAlone, found: LoopFacts, flags: Collection[str]) -> LoopFacts | None:
    """Return what is found about a loop alone, None if that is nothing.

    Raises LooptuneError where isl gives up.
    """
    analysis = Analysis(alone.codelet)
    loop = _loop_of(alone.codelet, found.number)
    own = facts_of_loop(analysis, loop, 0, flags)
    if own.kind == "unknown":
        own = _with_data(analysis, loop, own)
    elif own.kind == "sequential" and own.reason is not None and _needs_products(analysis, alone, own):
        return None
    return None if own.kind == "unknown" else replace(in_text_names(own, alone.terms), depth=found.depth)


def _loop_of(codelet: Codelet, number: int) -> Loop:
    """Return the counted loop of this number."""
    loop = next(f for f, _ in nested_loops(codelet.body) if f.number == number)
    assert isinstance(loop, Loop), "it is a counted loop"
    return loop


def _needs_products(analysis: Analysis, alone: LoopAlone, found: LoopFacts) -> bool:
    """Tell whether a dependence may need values of products that these do not have."""
    assert found.reason is not None, "only sequential loops are asked about"
    named = [(names_in(a.subscripts) & alone.products) for a in _conflicting(analysis, found.reason.dependence)]
    return any(mine != named[0] for mine in named)


def _conflicting(analysis: Analysis, d: Violation) -> list[Access]:
    """Return the two accesses of a dependence, and others of the array in the same statements."""
    statements = dict.fromkeys((d.first_statement, d.then_statement))
    return [a for s in statements for a in analysis.space.accesses[s] if a.array == d.array]


def _with_data(analysis: Analysis, loop: Loop, found: LoopFacts) -> LoopFacts:
    """Return a loop that cannot be analysed as sequential, if that is so for some data."""
    reason = analysis.explain_sequential(statement_names(loop.body), 1)
    about = reason.dependence.because
    open_ones = [a for a in _conflicting(analysis, reason.dependence) if None in a.index]
    if about is None or not about.what.startswith("subscript ") or not open_ones:
        return found
    values = _single_values(loop)
    every = [[substitute(e, values) for e, at in zip(a.subscripts, a.index, strict=True) if at is None]
             for a in open_ones]  # fmt: skip
    alike = all(mine == every[0] for mine in every) and len({a.subscripts for a in open_ones}) == 1
    if not all(_reads_data(e, loop) for mine in every for e in mine):
        return found
    if not (alike or all(len(mine) == 1 and _is_sum(mine[0], loop.var) for mine in every)):
        return found
    return replace(found, kind="sequential", reason=reason, unknown=None, data=about)


def _single_values(loop: Loop) -> dict[str, Expr]:
    """Return the scalars that each iteration sets once, before it uses them, to values that the loop leaves alone."""
    written, exposed = written_names((loop,)), upward_exposed_uses(loop.body)
    times = Counter(target_name(n.target) for n in walk(loop) if isinstance(n, Assign))
    return {
        n.target.name: n.value
        for n in loop.body
        if isinstance(n, Assign) and isinstance(n.target, Var) and times[n.target.name] == 1
        and n.target.name not in exposed and not names_in(n.value) & written
    }  # fmt: skip


def _reads_data(e: Expr, loop: Loop) -> bool:
    """Tell whether a subscript depends on the iteration only by elements that the loop reads and leaves alone."""
    loads = [n for n in walk(e) if isinstance(n, Load)]
    plain = [n.name for n in _outside_of_loads(e)]
    return bool(loads) and loop.var not in plain and any(loop.var in names_in(n.index) for n in loads) and (
        not names_in(e) & {*written_names((loop,)), *_ANYTHING}
    )  # fmt: skip


def _outside_of_loads(e: Node) -> Iterator[Var]:
    match e:
        case Var():
            yield e
        case Binary(_, lhs, rhs):
            yield from (*_outside_of_loads(lhs), *_outside_of_loads(rhs))
        case Cast(_, arg) | Unary(_, arg):
            yield from _outside_of_loads(arg)


def _is_sum(e: Expr, var: str) -> bool:
    """Tell whether an element in a subscript can give it any value."""
    match e:
        case Load(_, index):
            return var in names_in(index)
        case Cast(_, arg) | Unary("-", arg):
            return _is_sum(arg, var)
        case Binary("+" | "-", lhs, rhs):
            return any(_is_sum(a, var) and to_isl(b) is not None for a, b in ((lhs, rhs), (rhs, lhs)))
    return False
