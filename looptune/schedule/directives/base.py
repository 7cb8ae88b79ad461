"""The interface of a transform: its arguments, the order it produces, and the tree it produces.

A directive is one file here: a frozen dataclass whose fields are the directive's arguments, and

    parse(directive)   arguments from the pragma text, or a DirectiveError that points at the mistake
    schedule(site)     the new execution order, judged by poly before anything is changed
    apply(site)        the new tree; called only when the order was judged legal, and never fails
    examples           its tests and its documentation
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from looptune.core.errors import DirectiveError
from looptune.core.source import Span
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Annotation, Arg, Assign, Const, Directive, Expr, Local, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import map_blocks, rewrite, substitute, walk, walk_stmts
from looptune.ir.simplify import add, ceil_div, div, mul, sub
from looptune.poly.affine import Least, lower_bound
from looptune.poly.domain import pass_condition_name
from looptune.poly.loop_context import LoopContext
from looptune.poly.scop import Order, SchedulePiece, name, to_isl

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet
    from looptune.poly.automatic_schedule import ScheduleOptions
    from looptune.poly.dependence_graph import Graph, Piece
    from looptune.poly.isl_objects import Space
    from looptune.poly.legality import Violation
    from looptune.poly.loop_generation import LoopNest, Times

ARRAYS = MappingProxyType({"A": "n", "B": "n", "D": "nm", "E": "m", "F": "mn", "G": "nn"})
"""The arrays of examples with their extents, all float."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a directive: ``code`` is the body of a C function, ``after`` the body that it becomes.

    ``refused`` is a part of the message where the directive is refused. The function has the parameters of ``ARRAYS``
    and ``int n, m``, as far as the code uses them; the elements of arrays are of type ``dtype``.
    """

    code: str
    after: str = ""
    refused: str = ""
    dtype: str = "float"

    def program(self, directive: str) -> str:
        """Return the complete C file, with the directive before the first loop unless the code places it."""
        pragma = f"#pragma hmppcg {directive}\n"
        before, loop, rest = self.code.partition("for (")
        code = self.code.lstrip() if pragma in self.code else f"{before}{pragma}  {loop}{rest}"
        arrays = [name for name in ARRAYS if re.search(rf"\b{name}\b", code)]
        extents = "".join(ARRAYS[name] for name in arrays)
        params = [f"int {size}" for size in "nm" if size in extents or re.search(rf"\b{size}\b", code)]
        params += [f"{self.dtype} {name}" + "".join(f"[{size}]" for size in ARRAYS[name]) for name in arrays]
        return f"void f({', '.join(params)})\n{{\n  {code}\n}}\n"


class DependenceQueries(Protocol):
    """The questions about dependences that a transform may ask; answers are cached."""

    def judge(self, new: NewSchedule, old: Order, *, partial: bool = False) -> Violation | None: ...

    def graph(self, names: frozenset[str], length: int, order: Order, private: frozenset[str]) -> Graph:
        """Return the statements that must precede others if the first ``length`` entries of the times are equal."""
        ...

    def piece_graph(self, order: Order, length: int) -> tuple[tuple[Piece, ...], frozenset[tuple[Piece, Piece]]]:
        """Return the pieces of ``order`` that have instances, and which must precede others; see ``poly``."""
        ...

    def fusion_shift(
        self, first: frozenset[str], then: frozenset[str], entry: int, order: Order, memory: bool
    ) -> int | None:
        """Return by how much the loop of ``then`` has to be shifted at least to be fused with the loop of ``first``.

        This is the maximum of the time entry ``entry`` of an instance of ``first`` minus that of a dependent instance
        of ``then``: 0 if there is no dependence, None if there is no bound. For locals, only flow dependences count, or
        with ``memory`` every two accesses to one element.
        """
        ...

    @property
    def space(self) -> Space:
        """Return the codelet's statements, in whose instances orders are written."""
        ...

    def find_schedule(self, nest: LoopNest, options: ScheduleOptions) -> Times:
        """Return times for the statements of a nest that isl finds; see ``poly.automatic_schedule``."""
        ...

    def times_of(self, codelet: Codelet, loop: Loop, body: tuple[Stmt, ...]) -> Order:
        """Return when ``codelet`` with ``body`` in place of ``loop`` runs each statement."""
        ...


@dataclass(frozen=True, slots=True)
class DirectiveSite:
    """The place of a directive: its loop in the current tree, and the order of the statements in it.

    ``depth`` is the place of the loop's dimension in the time tuples of ``order``. ``private`` are the locals of which
    each iteration has a copy, ``locals`` these and the copies made of them. A new loop or local must not have one of
    the ``used_names``. ``nonempty`` are the numbers of the loops known to run, ``values`` the sizes known already.
    ``enclosing_loops`` are the loops around it, outermost first; ``block`` is the body of the last of them, or the
    codelet's. ``sizes`` are the integer parameters; ``loop_context`` is what holds on every entry to the loop.
    """

    loop: Loop
    order: Order
    depth: int
    private: frozenset[str]
    locals: tuple[Local, ...]
    used_names: frozenset[str]
    nonempty: Collection[int]
    values: Mapping[str, int | float]
    span: Span
    enclosing_loops: tuple[Loop | While, ...]
    block: tuple[Stmt, ...]
    sizes: frozenset[str]
    queries: DependenceQueries
    loop_context: LoopContext
    generated: list[object] = field(default_factory=list, compare=False, repr=False)
    """What the directive generated here for its new order, for ``apply`` to take."""

    def refuse(self, message: str) -> DirectiveError:
        return DirectiveError(message, self.span)

    @property
    def relative(self) -> bool:
        """Return whether the loop begins at a value that depends on a loop around it."""
        return bool(names_in(self.loop.lo) & {f.var for f in self.enclosing_loops if isinstance(f, Loop)})

    @property
    def least(self) -> Least:
        """Return the constants that the sizes and the loops around are never below, where they are known.

        C's division of what is never negative is one piece, of anything else two.
        """
        found = dict(self.queries.space.nest.least)
        for f in self.enclosing_loops:
            if isinstance(f, Loop):
                bound = lower_bound(f.lo, found)
                found = {v: b for v, b in found.items() if v != f.var} | ({} if bound is None else {f.var: bound})
        return found

    def bound(self, e: Expr, piece: SchedulePiece, inner: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return the loop bound ``e`` as isl text over the iterations of the statement that ``piece`` schedules.

        ``e`` may use the variables of the enclosing loops; ``inner`` maps the isl names of variables further inside to
        their values. Raises DirectiveError if ``e`` is not affine, since the loop cannot be reordered then.
        """
        affine = to_isl(self.queries.space.nest.terms.replaced(e), self.least)
        if affine is None:
            raise self.refuse(f"loop {self.loop.var} cannot be reordered: its bounds cannot be analysed")
        entry = {name(f.var): piece.time[2 * d + 1] for d, f in enumerate(self.enclosing_loops) if isinstance(f, Loop)}
        entry |= inner
        return re.sub(r"[A-Za-z_]\w*", lambda word: entry.get(word[0], word[0]), affine)


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """The new order of the statements under a loop.

    Entries of the times from ``cut`` on are as before and are not judged. ``expanded`` are the locals of which
    ``apply`` gives each copy of the body its own, so that copies may interleave. ``also_moved`` is the order of
    statements that only get new position numbers and run when they did before. ``interleaved``: several iterations run
    in one iteration of the inner loops, which may then carry the dependences that the loop carried.
    """

    order: Order
    cut: int | None = None
    expanded: frozenset[str] = frozenset()
    also_moved: Order = field(default_factory=dict)
    interleaved: bool = False

    @property
    def truncated_order(self) -> dict[str, tuple[SchedulePiece, ...]]:
        """Return the part of the order that is judged."""
        return {n: tuple(SchedulePiece(p.time[: self.cut], p.when) for p in pieces) for n, pieces in self.order.items()}


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The statements that replace a loop and the statements after it, and the locals that these need.

    ``replaced_statements`` counts the loop and the statements after it that are replaced, at least 1. ``copies`` maps a
    new local to the local it stands for in a copy of the body. ``fused_loops`` are other loops that became part of the
    loop.
    """

    body: tuple[Stmt, ...]
    locals: tuple[Local, ...] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    replaced_statements: int = 1
    fused_loops: tuple[Loop, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """A variant of a refused directive: ``directive`` for the loop called ``loop``; "" is the loop of the refused one.

    ``text`` is the sentence of the message; "" stands for "... is legal".
    """

    directive: Directive
    loop: str = ""
    text: str = ""


Stage = Literal["division", "storage", "split", "nest", "join", "mode", "loop"]
"""In this order. division: loops become others of other statements · storage: variables get copies, and dependences are
found anew · split: a loop becomes several, and directives for it go to each · nest: the order of whole nests · join:
several loops become one · mode: how loops run · loop: one loop, innermost first."""
FIRST_STAGES: tuple[Stage, ...] = ("division", "storage", "split")
"""Those after which the loops are known to which the other directives apply."""


@dataclass(frozen=True)
class Transform(ABC):
    """A directive that transforms loops: a frozen dataclass whose fields are the directive's arguments."""

    name: ClassVar[str]
    syntax: ClassVar[str]
    stage: ClassVar[Stage]
    examples: ClassVar[Mapping[str, Example]]
    requires_reduction: ClassVar[bool] = False
    """It is for a loop that reduces."""
    copies_arrays: ClassVar[bool] = False
    """Iterations may reduce into different elements of an array, of which there are copies."""
    first_of_loop: ClassVar[bool] = False
    """Of several directives for one loop it is the first, whichever line stands first."""
    exclusive_group: ClassVar[str] = ""
    """A loop takes one directive of a group; one that is given outside of the file replaces that of the file."""
    fits_while: ClassVar[bool] = False
    """It is for ``while`` loops too."""
    applies_to_nested: ClassVar[bool] = False
    """It is for the loops in its loop too, where they have none of their own."""
    assumes: ClassVar[str] = ""
    """What it takes the user's word for, about the data."""
    former: ClassVar[Mapping[str, str]] = {}
    """Words of the release before, which still have their meaning, each with the present one: that of the directive, or
    one among its arguments."""
    span: Span = field(kw_only=True, compare=False, repr=False)

    @classmethod
    @abstractmethod
    def parse(cls, directive: Directive) -> Self: ...

    @classmethod
    def is_word(cls, arg: Arg, directive: Directive) -> bool:
        """Tell whether the key of an argument is a word of the language, not the user's name of a loop or an array."""
        return True

    @classmethod
    def per_loop(cls, directive: Directive) -> tuple[tuple[str, Directive], ...]:
        """Return the directive for several loops as one for each, by loop name; "" is the loop it precedes."""
        return (("", directive),)

    def schedule(self, site: DirectiveSite) -> NewSchedule | None:
        """Return the new order, or None if every statement keeps its place in time."""
        return None

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        """Return the loops, at or in ``loop``, that threads shall run; no dependence may be carried by them."""
        return ()

    def claimed_loops(self, loop: Loop) -> tuple[Loop, ...]:
        """Return further loops in ``loop`` to which this directive applies: they take no other of its kind."""
        return ()

    def regrouped_statements(self, loop: Loop) -> frozenset[str]:
        """Return the names of the statements whose reduction this directive re-associates.

        Under --no-reassociate, the directive is refused if there are any.
        """
        return frozenset()

    def reductions(self) -> Arg | None:
        """Return the clause ``reduce(OP:VARIABLE, ...)``, if the directive has one."""
        return None

    def responsible_directive(self, site: DirectiveSite, refused: Violation) -> Directive | None:
        """Return the directive that caused an illegal order, if it is another than this one."""
        return None

    @classmethod
    def alternatives(cls, directive: Directive, loop: Loop | While) -> Iterator[Alternative]:
        """Yield variants of a refused directive, the nearest first; what is shown of them was judged to be legal."""
        yield from ()

    @property
    def copies(self) -> int:
        """Return how many copies of the loop's body it makes."""
        return 1

    @property
    def grouped_iterations(self) -> tuple[tuple[str, int], ...]:
        """Return how many iterations of which loop it combines; "" is the loop that it precedes."""
        return ()

    @property
    def threads(self) -> int:
        """Return the threads of a block that it sets, or 0 if it sets none."""
        return 0

    @abstractmethod
    def apply(self, site: DirectiveSite) -> Rewrite: ...


def for_one_loop(directive: Directive, loops: Sequence[Arg]) -> Iterator[Directive]:
    """Yield the directive for each of the loops alone, which are several of its arguments; the others stay."""
    others = tuple(a for a in directive.args if a not in loops)
    return (replace(directive, args=(a, *others)) for a in loops if len(loops) > 1)


def unknown_argument(cls: type[Transform], arg: Arg, words: Collection[str]) -> DirectiveError:
    """Return the error for an argument that ``cls`` does not know, with the nearest known one.

    If it is one of the known ``words``, the directive has it twice, or with a value that it does not take.
    """
    if arg.key in words:
        what = f"{arg.key} is there twice, or has a value that it does not take"
        return DirectiveError(f"{cls.name}: {what} (syntax: {cls.syntax})", arg.span)
    given = arg.key or " ".join(str(v) for v in arg.values)
    near = difflib.get_close_matches(given.lower(), [w.lower() for w in words], 1)
    hint = next((f"; did you mean '{w}'?" for w in words if near and w.lower() == near[0]), "")
    return DirectiveError(f"{cls.name} has no argument '{given}'{hint} (syntax: {cls.syntax})", arg.span)


def reject_arguments(directive: Directive) -> None:
    """Raise DirectiveError if the directive has arguments."""
    if directive.args:
        arg = directive.args[0]
        given = arg.key or " ".join(str(v) for v in arg.values)
        raise DirectiveError(f"{directive.name} takes no argument, got '{given}'", arg.span)


def annotate_nest(site: DirectiveSite, *annotations: Annotation, **said: Any) -> Rewrite:
    """Return the site's loop and those inside it, each with these annotations and fields."""

    def rule(n: Node) -> Node | None:
        return replace(n, **said).annotated(*annotations) if isinstance(n, Loop) else None

    return Rewrite((rewrite(rule, site.loop),))


GPU_THREADS = 1024
"""Threads of a block at most, on all of NVIDIA's GPUs since compute capability 2.0 and most others."""
MOST_COPIES = 1024
"""Of one loop's body."""
MOST_STATEMENTS = 8192
"""A kernel of more statements compiles for minutes."""


def check_copies(transform: Transform, said: str, loop: Loop) -> None:
    """Raise DirectiveError if a directive makes too many copies or statements.

    The limits keep analysis and compilation within minutes.
    """
    copies, inside = transform.copies, sum(isinstance(s, Assign) for s in walk(loop.body))
    if copies > MOST_COPIES:
        raise DirectiveError(
            f"{said} of loop {loop.var} makes {copies:,} copies, the limit is {MOST_COPIES:,}", transform.span
        )
    if copies > 1 and copies * inside > MOST_STATEMENTS:
        raise DirectiveError(
            f"{said} of loop {loop.var} makes {copies * inside:,} statements out of {inside:,}, "
            f"the limit is {MOST_STATEMENTS:,}", transform.span,
        )  # fmt: skip


def positive(arg: Arg, what: str) -> int:
    """Return the single positive integer of an argument such as ``4`` or ``i:4``."""
    match arg.values:
        case (int(value),) if value >= 1:
            return value
        case (int(value),):
            raise DirectiveError(f"{what} must be at least 1, got {value}", arg.span)
        case (value,):
            raise DirectiveError(f"{what} must be a whole number, got '{value}'", arg.span)
    raise DirectiveError(f"{what} is missing", arg.span)


def trip_count(loop: Loop) -> Expr:
    """Return the trip count of ``loop`` if it runs at all: ``ceil((hi - lo) / step)``."""
    return ceil_div(sub(loop.hi, loop.lo), loop.step)


def iteration_body(loop: Loop, trip: Expr) -> tuple[Stmt, ...]:
    """Return the body of the iteration that is ``trip`` steps from the start of the loop."""
    value = add(loop.lo, mul(Const(loop.step, loop.dtype), trip))
    body: tuple[Stmt, ...] = loop.body
    return body if value == Var(loop.var, loop.dtype) else substitute(body, {loop.var: value})


def round_up_to_step(loop: Loop, least: Expr) -> Expr:
    """Return the first value of the loop that is at least ``least``, which is not below the start of the loop."""
    if loop.step == 1:
        return least
    step = Const(loop.step, loop.dtype)
    return add(loop.lo, mul(div(add(sub(least, loop.lo), sub(step, Const(1, loop.dtype))), step), step))


def fresh_name(name: str, taken: Collection[str]) -> str:
    """Return ``name``, or ``name_2``, ``name_3``, ... if it is taken."""
    candidates = (name if k == 1 else f"{name}_{k}" for k in range(1, len(taken) + 3))
    return next(c for c in candidates if c not in taken)


def isl_conjunction(when: str, condition: str) -> str:
    """Return the conjunction of two isl conditions; "" is true."""
    return f"({when}) and ({condition})" if when and condition else when or condition


def statement_names(body: Stmt | tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of the original statements in a tree, and of those that evaluate conditions of ``while``."""
    return frozenset(statement_name(n) for n in walk_stmts(body) if isinstance(n, Assign | While))


def statement_name(stmt: Assign | While) -> str:
    """Return the name of an assignment, or of the statement that evaluates the condition of a ``while``."""
    return stmt.name if isinstance(stmt, Assign) else pass_condition_name(stmt)


def restrict_schedule(order: Order, names: Collection[str]) -> dict[str, tuple[SchedulePiece, ...]]:
    """Return the order of the statements ``names`` alone."""
    return {n: pieces for n, pieces in order.items() if n in names}


def splice(body: tuple[Stmt, ...], loop: Loop | While, change: Rewrite) -> tuple[Stmt, ...]:
    """Return ``body`` with the change in place of the loop and of the statements after it that it includes."""
    k = next((k for k, s in enumerate(body) if s is loop), None)
    if k is not None:
        return (*body[:k], *change.body, *body[k + change.replaced_statements :])
    return tuple(map_blocks(lambda block: splice(block, loop, change), s) for s in body)
