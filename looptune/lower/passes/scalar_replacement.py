"""Scalar replacement: an array element that a sequential loop uses repeatedly is held in a local during the loop.

    for k: C[i][j] += A[i][k] * B[k][j]    ==>    C_r = C[i][j]; for k: C_r += A[i][k] * B[k][j]; C[i][j] = C_r

This is done for an element whose index does not change in the loop, that every iteration uses, and that no other access
in the loop can reach: parameters do not alias, and two indices of one array are distinct if they differ by a constant,
or by a multiple of an upper bound of a loop variable and a constant that is less than the multiple, or if the bounds of
the loops keep them apart (``poly.disjoint``). A loop that may not
run gets its loads and stores under ``if (lo < hi)``. An element that is used only under one condition, which the loop
does not change, is loaded and stored under that condition. So is one whose condition the loop changes in one direction:
``if (k < i)`` in ``for k in 0..n`` holds in some iteration if it holds in the first one, ``if (0 < i)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from looptune.ir.def_use import names_in, take_name, written_names
from looptune.ir.intervals import (
    Range,
    affine_terms,
    always_iterates,
    body_ranges,
    has_invariant_bounds,
    never_negative,
)
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Local, Loop, Node, Select, Stmt, Var, While
from looptune.ir.rewrite import conjunction, conjuncts, has_load, map_blocks, rewrite, walk, walk_stmts
from looptune.ir.simplify import add, div, mul, overflows_never, sub
from looptune.poly.disjoint import Surroundings, distinct_loops

Given = tuple[Expr, ...]
"""Conditions around a statement, outermost first."""


@dataclass(frozen=True, slots=True)
class _Signs:
    """``nonnegative``: loop variables that are 0 or more; ``positive``: what such a variable stays below.

    ``around``: the loops and conditions of which these are.
    """

    positive: frozenset[Expr] = frozenset()
    nonnegative: frozenset[str] = frozenset()
    around: Surroundings = field(default_factory=Surroundings)

    def inside(self, loop: Loop) -> _Signs:
        around = self.around.inside(loop)
        if not self.never_negative(loop.lo):
            return replace(self, around=around)
        return _Signs(self.positive | {loop.hi}, self.nonnegative | {loop.var}, around)

    def under(self, cond: Expr) -> _Signs:
        """Return what holds under a condition on loop variables and sizes, which nothing changes."""
        fixed = not has_load(cond)
        return replace(self, around=self.around.under(cond)) if fixed else self

    def never_negative(self, e: Expr) -> bool:
        match e:
            case Const(value):
                return value >= 0
            case Var(name):
                return name in self.nonnegative
            case Binary("*" | "+", lhs, rhs):
                return self.never_negative(lhs) and self.never_negative(rhs)
        return False


def never_alias(a: tuple[Expr, ...], b: tuple[Expr, ...], positive: frozenset[Expr]) -> bool:
    """Return whether no iteration makes the two indices equal: in one dimension their difference is never zero.

    >>> n, j = Var("n", "int32"), Var("j", "int32")
    >>> at = lambda k: (Binary("+", j, Const(k, "int32")),)
    >>> far = (Binary("+", j, Binary("*", Const(4, "int32"), n)),)
    >>> [never_alias(far, at(k), frozenset({n})) for k in (0, 3, 4)]
    [True, True, False]
    """
    for x, y in zip(a, b, strict=True):
        (p, c), (q, d) = affine_terms(x), affine_terms(y)
        terms = {t: k for t in (*p, *q) if (k := p.get(t, 0) - q.get(t, 0))}
        # A positive term is 1 at least: this is how near zero the difference comes, from above or from below.
        near = sum(terms.values()) + c - d
        sign = 1 if near > 0 else -1
        if near and terms.keys() <= positive and all(sign * k > 0 for k in terms.values()):
            return True
    return False


def replace_with_scalars(
    body: tuple[Stmt, ...], taken: set[str], around: Iterable[Loop] = ()
) -> tuple[tuple[Stmt, ...], tuple[Local, ...]]:
    """Return the statements of one thread with scalar replacement of its elements, and the new locals.

    ``taken`` are names in use (extended); ``around`` are loops that ``body`` stands in, outermost first.
    """
    made: list[Local] = []
    return _block(body, taken, reduce(_Signs.inside, around, _Signs()), made, {}, ()), tuple(made)


def replace_team_scalars(
    body: tuple[Stmt, ...], taken: set[str], around: Iterable[Loop] = ()
) -> tuple[tuple[Stmt, ...], tuple[Local, ...]]:
    """Return the statements of a team with elements replaced by locals, and these locals.

    An element is replaced if an original statement assigns it, a loop or a condition after it uses it, and nothing uses
    it before; it is stored once it has its final value.

        mean[j] = 0; for i: mean[j] += data[i][j]    ==>    mean_r = 0; for i: mean_r += data[i][j]; mean[j] = mean_r

    Arguments as for ``replace_with_scalars``.
    """
    changed = written_names(body)
    changing = changed | {f.var for f in walk(body) if isinstance(f, Loop)}
    used = dict.fromkeys(n for n in walk(body) if isinstance(n, Load))
    signs = reduce(_Signs.inside, around, _Signs())
    made: dict[Load, Local] = {}
    seen: set[Load] = set()
    for k, stmt in enumerate(body):
        before = seen | ({n for n in walk(stmt.value) if isinstance(n, Load)} if isinstance(stmt, Assign) else set())
        seen |= {n for n in walk(stmt) if isinstance(n, Load)}
        match stmt:
            case Assign(Load() as e, name=name) if (
                name
                and e not in before
                and _stays(e, changing)
                and _apart(e, used, signs)
                and any(n == e for s in body[k:] if not isinstance(s, Assign) for n in walk(s))
            ):
                made[e] = Local(take_name(f"{e.array}_r", taken), e.dtype)
    same: dict[Node, Var] = {e: Var(v.name, v.dtype) for e, v in made.items()}
    out: list[Stmt] = []
    for k, stmt in enumerate(body):
        later = _targets(body[k + 1 :])
        out.append(rewrite(same.get, stmt))
        out += (Assign(e, same[e]) for e in made if e in _targets((stmt,)) and e not in later)
    return tuple(out), tuple(made.values())


def _block(
    body: tuple[Stmt, ...],
    taken: set[str],
    signs: _Signs,
    made: list[Local],
    env: Mapping[str, Range],
    around: tuple[Loop, ...],
) -> tuple[Stmt, ...]:
    """``env``: the ranges of the loops ``around``, as far as they are known."""
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Loop(body=inner):
                here = signs.inside(stmt)
                within = (*around, stmt) if has_invariant_bounds(stmt) else around
                loop = replace(stmt, body=_block(inner, taken, here, made, body_ranges(stmt, env), within))
                out.extend(_loop(loop, taken, here, made, always_iterates(stmt, env, around)))
            case If(cond, then, other):
                yes = _block(then, taken, signs.under(cond), made, env, around)
                no = _block(other, taken, signs, made, env, around)
                out.append(replace(stmt, then=yes, other=no))
            case While(_, inner):
                out.append(replace(stmt, body=_block(inner, taken, signs, made, {}, ())))
            case _:
                out.append(stmt)
    return tuple(out)


def _loop(loop: Loop, taken: set[str], signs: _Signs, made: list[Local], sure: bool) -> tuple[Stmt, ...]:
    """``sure``: it runs whenever it is reached; ``signs``: what holds in it."""
    chosen = _candidates(loop, signs)
    if not chosen:
        return (loop,)
    env: dict[Load, Var] = {}
    same: dict[Node, Var] = {}
    of_inner = _of_inner_loops(loop.body, made)
    for element, _ in chosen:
        inner = of_inner.get(element, [])
        if not inner:
            made.append(Local(take_name(f"{element.array}_r", taken), element.dtype))
        env[element], *others = inner or [Var(made[-1].name, element.dtype)]
        same[element] = env[element]
        same |= dict.fromkeys(others, env[element])
    gone = {v.name for v in same if isinstance(v, Var)}
    made[:] = [local for local in made if local.name not in gone]
    targets = _targets(loop.body)
    inside_loop = _without_idle(rewrite(same.get, loop.body))
    loads = _under((Assign(env[e], e), given) for e, given in chosen)
    stores = _under((Assign(e, env[e]), given) for e, given in chosen if e in targets)
    around: tuple[Stmt, ...] = (*loads, replace(loop, body=inside_loop), *stores)
    if sure:
        return around
    return (If(Binary("<", loop.lo, loop.hi), around),)


def _under(moves: Iterable[tuple[Assign, Given]]) -> tuple[Stmt, ...]:
    """Each where what it is ``given`` with holds; those of one condition together."""
    found: dict[Given, list[Stmt]] = {}
    for move, given in moves:
        found.setdefault(given, []).append(move)
    return tuple(
        s for given, mine in found.items()
        for s in ((If(conjunction(given), tuple(mine)),) if given else mine)
    )  # fmt: skip


def _of_inner_loops(body: tuple[Stmt, ...], made: Sequence[Local]) -> dict[Load, list[Var]]:
    """Return the registers that loops in ``body`` keep an element in: outside of these they have its value, or none."""
    mine = {local.name for local in made}
    found: dict[Load, dict[Var, None]] = {}
    for n in walk_stmts(body):
        match n:
            case Assign(Var(name) as register, Load() as element) if name in mine:
                found.setdefault(element, {})[register] = None
    return {element: list(registers) for element, registers in found.items()}


def _without_idle(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Without moves of a register to itself; what the C assigns to itself stays, for the proof misses it else."""
    busy = (s for s in body if not (isinstance(s, Assign) and not s.name and s.target == s.value))
    cleared = (map_blocks(_without_idle, s) for s in busy)
    return tuple(s for s in cleared if not (isinstance(s, If) and not s.then and not s.other))


def _targets(body: tuple[Stmt, ...]) -> set[Load]:
    return {n.target for n in walk_stmts(body) if isinstance(n, Assign) and isinstance(n.target, Load)}


def _candidates(loop: Loop, signs: _Signs) -> list[tuple[Load, Given]]:
    """Return the elements to keep in registers, in the order of their first use, with the conditions of their use.

    None stands for unconditional use.
    """
    changed = written_names(loop.body)
    changing = changed | {loop.var} | {f.var for f in walk(loop.body) if isinstance(f, Loop)}
    used = dict.fromkeys(n for n in walk(loop.body) if isinstance(n, Load))
    targets, stored, certain = _targets(loop.body), _certain(loop.body, _stores), _certain(loop.body, _uses)
    sometimes = _conditional(loop, changing)
    inner = distinct_loops([f for f in walk(loop.body) if isinstance(f, Loop)], {f.var for f in signs.around.loops})
    chosen = []
    for element in used:
        always = element in certain and (element not in targets or element in stored)
        if not always and element not in sometimes:
            continue
        if _stays(element, changing) and (element.array not in changed or _apart(element, used, signs, inner)):
            chosen.append((element, () if always else sometimes[element]))
    return chosen


def _stays(element: Load, changing: set[str]) -> bool:
    """Tell whether it is one and the same all the time."""
    return not names_in(element.index) & changing and not has_load(element.index)


def _apart(element: Load, used: Iterable[Load], signs: _Signs, inner: Sequence[Loop] = ()) -> bool:
    """None of the others is it; ``inner``: loops in which they may stand."""
    others = (o for o in used if o.array == element.array and o.index != element.index)
    return all(
        never_alias(element.index, o.index, signs.positive) or signs.around.never_equal(element.index, o.index, inner)
        for o in others
    )


def _conditional(loop: Loop, changing: set[str]) -> dict[Load, Given]:
    """Return the elements that are used under the same conditions wherever they are.

    With the conditions under which some iteration uses them.
    """
    found: dict[Load, set[Given]] = {}
    certain: set[Load] = set()
    for element, given, sure in _used(loop.body, ()):
        found.setdefault(element, set()).add(given)
        certain |= {element} if sure else set()
    same = {e: next(iter(mine)) for e, mine in found.items() if len(mine) == 1 and e in certain}
    met = {e: _in_some_iteration(given, loop, changing) for e, given in same.items() if given}
    return {e: given for e, given in met.items() if given is not None}


def _in_some_iteration(given: Given, loop: Loop, changing: set[str]) -> Given | None:
    """Return conditions that hold if those given hold in some iteration of the loop.

    None if that cannot be said, or if they hold in none.

    Those that hold up to some value of the loop's variable have to hold in its first iteration, and those that hold
    from some value on in the last one, which is the last one of the others as well.
    """
    if not _changes(given, changing):
        return given
    every = dict.fromkeys(c for cond in given for c in conjuncts(cond))
    here = Var(loop.var, loop.dtype)
    moving = {c: _form(c) for c in every if _changes((c,), changing)}
    lasts: list[Terms] = [_less(end, 1) for end in _ends_of(loop.hi)]
    from_some: dict[Expr, Terms] = {}
    up_to_some: dict[Expr, Expr] = {}
    for cond, terms in moving.items():
        factor = 0 if terms is None else terms[0].get(here, 0)
        if terms is None or not factor or _changes(tuple(t for t in terms[0] if t != here), changing):
            return None
        if factor < 0:
            from_some[cond] = terms
            continue
        up_to_some[cond] = _negative(_at(terms, here, affine_terms(loop.lo)))
        below = _less(({t: -k for t, k in terms[0].items() if t != here}, -terms[1]), 1)
        lasts.append(below if factor == 1 else ({div(_sum(below), Const(factor)): 1}, 0))
    divided = any(t is not None and t[0].get(here, 0) > 1 for t in moving.values())
    if from_some and (loop.step != 1 or (divided and not never_negative(loop.lo, ()))):
        return None  # a division of a negative number rounds up
    # In the order of the text: the first ones may be what lets the others be evaluated, as a divisor that is not 0.
    found: list[Expr] = []
    for cond in every:
        end = from_some.get(cond)
        at_ends = [up_to_some.get(cond, cond)] if end is None else [_negative(_at(end, here, last)) for last in lasts]
        found += at_ends
    open_ones = tuple(c for c in dict.fromkeys(found) if c != TRUE)
    return None if FALSE in open_ones or _changes(open_ones, changing) else open_ones


Terms = tuple[Mapping[Expr, int], int]
"""A sum of multiples of terms, and a constant."""


def _form(cond: Expr) -> Terms | None:
    """Return the sum that is negative where a comparison of integers holds that cannot overflow, or None."""
    match cond:
        case Binary("<" | "<=", less, more) | Binary(">" | ">=", more, less):
            if not (overflows_never(less.dtype) and overflows_never(more.dtype)):
                return None
            (low, c), (high, d) = affine_terms(less), affine_terms(more)
            terms = {t: k for t in (*low, *high) if (k := low.get(t, 0) - high.get(t, 0))}
            return terms, c - d - (cond.op in ("<=", ">="))
    return None


def _ends_of(e: Expr) -> list[Terms]:
    """Return what an end of a loop is the least of."""
    match e:
        case Binary("min", lhs, rhs):
            return [*_ends_of(lhs), *_ends_of(rhs)]
    return [affine_terms(e)]


def _less(terms: Terms, count: int) -> Terms:
    return terms[0], terms[1] - count


def _at(terms: Terms, variable: Var, value: Terms) -> Terms:
    """Return a sum with a value in place of a variable."""
    factor = terms[0][variable]
    added = {t: terms[0].get(t, 0) + factor * value[0].get(t, 0) for t in (*terms[0], *value[0]) if t != variable}
    return {t: k for t, k in added.items() if k}, terms[1] + factor * value[1]


TRUE, FALSE = Const(1), Const(0)


def _negative(terms: Terms) -> Expr:
    """Return the comparison that holds where a sum is negative, or whether it is if that is a number."""
    return Binary("<", *_sides(terms)) if terms[0] else Const(int(terms[1] < 0))


def _sum(terms: Terms) -> Expr:
    return sub(*_sides(terms))


def _sides(terms: Terms) -> tuple[Expr, Expr]:
    """Return what is added in a sum, and what is subtracted."""
    plus: Expr = Const(max(0, terms[1]))
    minus: Expr = Const(max(0, -terms[1]))
    for term, factor in terms[0].items():
        if factor > 0:
            plus = add(mul(Const(factor), term), plus)
        else:
            minus = add(mul(Const(-factor), term), minus)
    return plus, minus


def _changes(given: Given, changing: set[str]) -> bool:
    return bool(names_in(given) & changing) or has_load(given)


def _used(body: tuple[Stmt, ...], given: Given) -> Iterator[tuple[Load, Given, bool]]:
    """Each use of an element, the conditions it stands under, and whether it surely is used where they hold.

    In loops and under conditions that have an ``else``, as if it always were used.
    """
    for stmt in body:
        match stmt:
            case If(cond, then, ()):
                yield from ((n, (), False) for n in walk(cond) if isinstance(n, Load))
                yield from _used(then, (*given, cond))
            case Assign():
                sure = _uses(stmt)
                yield from ((n, given, n in sure) for n in walk(stmt) if isinstance(n, Load))
            case _:
                yield from ((n, (), False) for n in walk(stmt) if isinstance(n, Load))


def _certain(body: tuple[Stmt, ...], of: Callable[[Assign], set[Load]]) -> set[Load]:
    """Return the elements that every iteration uses (or stores).

    Those of inner loops do not count, and branches count if both use them.
    """
    found: set[Load] = set()
    for stmt in body:
        match stmt:
            case Assign():
                found |= of(stmt)
            case If(_, then, other):
                found |= _certain(then, of) & _certain(other, of)
    return found


def _uses(assign: Assign) -> set[Load]:
    lazy = {id(x) for n in walk(assign) for b in _branches(n) for x in walk(b)}
    return {n for n in walk(assign) if isinstance(n, Load) and id(n) not in lazy}


def _stores(assign: Assign) -> set[Load]:
    return {assign.target} if isinstance(assign.target, Load) else set()


def _branches(n: Node) -> tuple[Expr, ...]:
    """Return the parts of an expression that may not be evaluated."""
    match n:
        case Binary("&&" | "||", _, rhs):
            return (rhs,)
        case Select(_, then, other):
            return then, other
    return ()
