"""Common subexpression elimination in a run of assignments: indices and values are computed once.

    C[4*i*n + j]     = C[4*i*n + j] * b                   p = 4*i*n + j;   C[p] = C[p] * b
    C[4*i*n + j + 1] = C[4*i*n + j + 1] * b      ==>                       C[p + 1] = C[p + 1] * b

    s0 = s0 + a * x[i]; s1 = s1 + a * x[i] * y   ==>      v = a * x[i];    s0 = s0 + v; s1 = s1 + v * y

    s[j] = s[j] + a; s[j] = s[j] + b             ==>      v = s[j] + a;    s[j] = v + b

    y[j] = x[j] / a; y[k] = x[k] / a             ==>      v = x[k];        y[j] = x[j] / a; y[k] = v / a

A compiler would find most of them itself; Numba's type inference, which comes first, takes time in proportion to the
length of the text. Only values that no assignment of the run changes are shared. An element that is updated several
times in a row is stored once, since a compiler has to assume that a load in between reads it. For the same reason,
loads of arrays that the kernel stores elsewhere are moved before the first store of the run. Loads that follow a
division or a function call, which is a branch for compilers of GPUs, are moved before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in, referenced_names, written_names
from looptune.ir.intervals import affine_terms, may_wrap
from looptune.ir.nodes import Assign, Binary, Call, Cast, Const, Expr, Load, Node, Stmt, Unary, Var
from looptune.ir.rewrite import has_load, rewrite, walk
from looptune.ir.simplify import add, is_integer, mul
from looptune.lower.passes.address_split import lower_bound
from looptune.lower.passes.flat_arrays import flat_index, flatten_arrays
from looptune.lower.thread_code import ThreadWalk

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

PLACE, VALUE = "__at", "__once"
"""What the names of the variables end with."""
STRAIGHT = frozenset({"abs", "fabs", "fmin", "fmax", "floor", "ceil"})
"""The functions that are an instruction or two."""

Flat = Callable[[Load], Expr]
"""The place of an element in its array, in elements."""


def eliminate_in_kernel(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with this done in every run of assignments of its threads, and arrays with one subscript."""
    return flatten_arrays(_Elimination(kernel, plan).run(), plan)


class _Elimination(ThreadWalk):
    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        super().__init__(kernel, plan)
        self.used_names = {*kernel.arrays, *kernel.scalars, *referenced_names((*kernel.loops, *kernel.body))}
        self.numbers = count(1)
        self.stored = kernel.writes & frozenset(kernel.arrays)

    def assignments(self, run: tuple[Assign, ...]) -> tuple[Stmt, ...]:
        known, flat = self.known, partial(flat_index, plan=self.plan)
        found = eliminate_common_subexpressions(run, flat, self.fresh, known.nonnegative, known.least, self.stored)
        return tuple(found)

    def fresh(self, ending: str) -> str:
        name = next(c for k in self.numbers if (c := f"v{k}{ending}") not in self.used_names)
        if ending == PLACE:
            self.positions |= {name}
        else:
            self.values |= {name}
        return name


def eliminate_common_subexpressions(
    body: Sequence[Stmt], flat: Flat, fresh: Callable[[str], str], nonnegative: Collection[str],
    least: Mapping[str, int] = MappingProxyType({}), stored: Collection[str] = (),
) -> Iterator[Stmt]:  # fmt: skip
    """Yield the assignments with common subexpressions in variables, each set just before its first use.

    ``fresh`` returns a name with the given ending. What is not a run of assignments is unchanged. ``nonnegative``: the
    variables that are known not to be negative; ``least``: lower bounds of some of these; ``stored``: the arrays that
    the kernel stores to.

    A load whose place is held has one subscript: the place.
    """
    run = tuple(s for s in body if isinstance(s, Assign))
    if len(run) < len(body):
        yield from body
        return
    changed = written_names(run)
    made: set[str] = set()

    def new(suffix: str) -> str:
        name = fresh(suffix)
        made.add(name)
        return name

    placed = tuple(_placed(run, changed, lambda n: _split(flat(n), nonnegative, least), new))
    valued = tuple(_valued(placed, changed, new))
    forwarded = tuple(_forwarded(tuple(_stored_once(valued, new)), new, stored))
    yield from _loaded_before(forwarded, changed, new, made, stored)


def _placed(
    body: tuple[Assign, ...], changed: set[str], split: Callable[[Load], tuple[Expr, int]], fresh: Callable[[str], str]
) -> Iterator[Assign]:
    """``split``: returns the varying part of an element's place, and the constant that is added to it."""
    loads = Counter(n for n in walk(body) if isinstance(n, Load))
    places = {n: split(n) for n in loads}
    often: Counter[Expr] = Counter()
    for element, times in loads.items():
        often[places[element][0]] += times
    shared = {base for base, times in often.items() if times > 1 and _place(base, changed)}
    held: dict[Expr, Var] = {}
    moved: dict[Load, Load] = {}

    def rule(n: Node) -> Node | None:
        return moved.get(n) if isinstance(n, Load) else None

    for stmt in body if shared else ():
        for n in walk((stmt.target, stmt.value)):
            if isinstance(n, Load) and n not in moved and places[n][0] in shared:
                base, constant = places[n]
                if base not in held:
                    held[base] = Var(fresh(PLACE), "uint32")
                    yield Assign(held[base], base, span=stmt.span)
                moved[n] = replace(n, index=(add(held[base], Const(constant)),))
        target = rewrite(rule, stmt.target)
        assert isinstance(target, (Var, Load)), "the rule changes only subscripts"
        yield Assign(target, rewrite(rule, stmt.value), span=stmt.span)
    yield from () if shared else body


def _place(e: Expr, changed: set[str]) -> bool:
    """Tell whether it is worth a variable, and no assignment changes it."""
    loads = has_load(e)
    return not isinstance(e, (Const, Var)) and not loads and not names_in(e) & changed


def _split(e: Expr, nonnegative: Collection[str], least: Mapping[str, int]) -> tuple[Expr, int]:
    """Return the varying part and the constant that is added to it.

    The constant is 0 if a term may be negative, as the variable of a loop from -1 or a remainder, or if the sum wraps
    by C's rules: 32 bits would wrap before 64 bits are added to them.
    """
    if may_wrap(e, nonnegative):
        return e, 0
    terms, constant = affine_terms(e)
    below = ((at := lower_bound(term, nonnegative, least)) is None or at < 0 for term in terms)
    if any(factor < 0 for factor in terms.values()) or any(below):
        return e, 0
    base: Expr = Const(0)
    for term, factor in terms.items():
        base = add(base, mul(Const(factor), term))
    return base, constant


def _valued(body: tuple[Assign, ...], changed: set[str], fresh: Callable[[str], str]) -> Iterator[Assign]:
    often = Counter(e for s in body for e in walk(s.value) if isinstance(e, (Binary, Unary, Cast, Load)))
    shared = {e for e, times in often.items() if times > 1 and not names_in(e) & changed}
    held: dict[Node, Var] = {}
    for stmt in body:
        for e in _largest(stmt.value, shared) if shared else ():
            if e not in held:
                held[e] = Var(fresh(VALUE), e.dtype)
                yield Assign(held[e], e, span=stmt.span)
        yield Assign(stmt.target, _replaced(held, stmt.value), span=stmt.span)


def _largest(e: Expr, shared: Collection[Node]) -> list[Expr]:
    """Return the largest expressions that are ``shared``, of those that are computed whatever the values are."""
    if e in shared:
        return [e]
    match e:
        case Binary("&&" | "||"):
            return []
        case Binary(_, lhs, rhs):
            return [*_largest(lhs, shared), *_largest(rhs, shared)]
        case Unary(_, arg) | Cast(_, arg):
            return _largest(arg, shared)
    return []


def _replaced(by: Mapping[Node, Var], e: Expr) -> Expr:
    return rewrite(by.get, e) if by else e


def _stored_once(body: tuple[Assign, ...], fresh: Callable[[str], str]) -> Iterator[Assign]:
    """Elements that are updated several times in turn are variables until the last time."""
    at = 0
    while at < len(body):
        last = _last_update(body, at)
        if last == at:
            yield body[at]
        else:
            element = body[at].target
            env: dict[Node, Var] = {}
            for k in range(at, last + 1):
                stmt = body[k]
                value = _replaced(env, stmt.value)
                if stmt.target == element and k < last:
                    env = {element: Var(fresh(VALUE), element.dtype)}
                yield Assign(
                    env[element] if stmt.target == element and k < last else stmt.target, value, span=stmt.span
                )
        at = last + 1


def _last_update(body: tuple[Assign, ...], at: int) -> int:
    """Return the last of the updates of one element that begin there; between them only variables are set."""
    element, last = body[at].target, at
    if not isinstance(element, Load) or is_integer(element.dtype):
        return at
    for k in range(at, len(body)):
        stmt = body[k]
        others = (n for n in walk((stmt.value, element.index)) if isinstance(n, Load) and n != element)
        if any(n.array == element.array for n in others):
            break
        if stmt.target == element:
            if k > at and all(n != element for n in walk(stmt.value)):
                break
            last = k
        elif isinstance(stmt.target, Load) or stmt.target.name in names_in(element.index):
            break
    return last


def _forwarded(body: tuple[Assign, ...], fresh: Callable[[str], str], stored: Collection[str]) -> Iterator[Assign]:
    """Elements of ``stored`` arrays that are stored and used afterwards are used from variables."""
    held: dict[Node, Var] = {}
    for k, stmt in enumerate(body):
        target, value = stmt.target, _replaced(held, stmt.value)
        held = {e: v for e, v in held.items() if isinstance(e, Load) and not _overwrites(target, e)}
        fits = isinstance(target, Load) and target.array in stored and not is_integer(target.dtype)
        if isinstance(target, Load) and fits and _used_before_stored(target, body[k + 1 :]):
            held[target] = Var(fresh(VALUE), target.dtype)
            yield Assign(held[target], value, span=stmt.span)
            value = held[target]
        yield Assign(target, value, span=stmt.span)


def _overwrites(target: Var | Load, element: Load) -> bool:
    """Tell whether an assignment may change an element, or which one it is."""
    if isinstance(target, Var):
        return target.name in names_in(element.index)
    return target.array in names_in(element.index) or (
        target.array == element.array and not _differ(target.index, element.index)
    )


def _differ(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
    """Tell whether two subscripts are a constant apart."""
    if len(one) != len(other):
        return False
    sums = [(affine_terms(a), affine_terms(b)) for a, b in zip(one, other, strict=True)]
    return any(p == q and c != d for (p, c), (q, d) in sums)


def _used_before_stored(element: Load, later: Sequence[Assign]) -> bool:
    for stmt in later:
        if any(n == element for n in walk(stmt.value)):
            return True
        if _overwrites(stmt.target, element):
            return False
    return False


def _loaded_before(
    body: tuple[Assign, ...], changed: set[str], fresh: Callable[[str], str], made: Collection[str],
    stored: Collection[str],
) -> Iterator[Assign]:  # fmt: skip
    """Load what assignments after the first obstacle load of arrays that the run does not change, before it.

    An obstacle is a division or a function, or a store before loads of an array that is ``stored`` elsewhere.
    ``made``: the variables set once, before all their uses.
    """
    held_up = {k for k, s in enumerate(body) if any(map(_branches, walk(s.value)))}
    elsewhere = {k for k, s in enumerate(body) if any(n.array in stored and n.array not in changed
                                                      for n in walk(s.value) if isinstance(n, Load))}  # fmt: skip
    stores = (k for k, s in enumerate(body) if isinstance(s.target, Load) and s.target.array in stored)
    held_up |= {k for k in stores if k < max(elsewhere, default=0)}
    first = min(held_up, default=len(body))
    early: list[Assign] = []
    rest: list[Assign] = []
    later = set(changed)
    for stmt in body[first:]:
        if (
            isinstance(stmt.target, Var)
            and stmt.target.name in made
            and not names_in(stmt.value) & later
            and not any(map(_branches, walk(stmt.value)))
        ):
            early.append(stmt)
            continue
        rest.append(stmt)
        later |= {stmt.target.name} if isinstance(stmt.target, Var) else set()
    loads = (n for s in rest[1:] for n in _surely(s.value) if not names_in(n) & later)
    held: dict[Node, Var] = {n: Var(fresh(VALUE), n.dtype) for n in dict.fromkeys(loads)}
    yield from (*body[:first], *early, *(Assign(v, n) for n, v in held.items() if isinstance(n, Load)), *rest[:1])
    for stmt in rest[1:]:
        yield Assign(stmt.target, _replaced(held, stmt.value), span=stmt.span)


def _branches(e: Node) -> bool:
    match e:
        case Binary("/", dtype=dtype):
            return dtype.startswith("float")
        case Call(fn):
            return fn not in STRAIGHT
    return False


def _surely(e: Expr) -> Iterator[Load]:
    """Yield what is loaded whatever the values are."""
    match e:
        case Load():
            yield e
        case Binary("&&" | "||"):
            return
        case Binary(_, lhs, rhs):
            yield from (*_surely(lhs), *_surely(rhs))
        case Unary(_, arg) | Cast(_, arg):
            yield from _surely(arg)
        case Call(_, args):
            yield from (n for arg in args for n in _surely(arg))
