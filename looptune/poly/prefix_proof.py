"""Whether a loop that was divided into parts is the prefix sum that it was: see ``prefix_sum`` for the three loops.

The tree is compared with what the loop needs, not with what the division made of it:

    sums    the same bounds as the rest, and in them the terms of the loop alone, from the identity
    scan    the value before each part is stored, and then the sum of the part is combined with it
    rest    each part begins with the value before it; all else is compared as copies are, see ``without_sums``

The arrays and the scalars of the parts are used nowhere else. That the terms depend on nothing that the loop changes is
judged on the loop itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from looptune.ir.def_use import referenced_names
from looptune.ir.nodes import Assign, Codelet, Load, Loop, PrefixDivision, Stmt, Var
from looptune.ir.rewrite import renaming, rewrite, rewrite_stmts, walk_stmts
from looptune.poly.prefix_sum import NoPrefixSum, PrefixLoop, blocks_of


def division_error(step: PrefixDivision) -> str | None:
    """Return what is wrong with the loops over the parts, or None."""
    try:
        prefix = PrefixLoop.of(step.text, step.number)
    except NoPrefixSum as reason:
        return f"a loop in parts is no prefix sum: {reason}"
    if prefix.codelet.body != step.before.body:
        return f"the scalars of loop {prefix.loop.var} in parts hold something else than its elements"
    if prefix.distinct != step.distinct:
        return f"loop {prefix.loop.var} may write an element twice"
    block = _block(step.after.body, step.loops[0])
    at = next((k for k, s in enumerate(block) if isinstance(s, Loop) and s.number == step.loops[0]), 0)
    found = block[at : at + 3]
    if tuple(getattr(s, "number", 0) for s in found) != step.loops:
        return f"the loops over the parts of loop {prefix.loop.var} do not follow each other"
    sums, scan, rest = (s for s in found if isinstance(s, Loop))
    same = (sums.lo, sums.hi, sums.step) == (scan.lo, scan.hi, scan.step) == (rest.lo, rest.hi, rest.step)
    if not same or sums.body != _sums(prefix, step, sums, rest) or scan.body != _scan(prefix, step, scan):
        return f"the sums of the parts of loop {prefix.loop.var} are not those of its terms"
    if rest.body[:-1] != _starts(prefix, step, rest):
        return f"the parts of loop {prefix.loop.var} do not begin with the value before them"
    others = rewrite_stmts(lambda s: () if s in (sums, scan, rest) else None, step.after.body)
    if referenced_names(others) & {name for names in step.names for name in names}:
        return f"the sums of the parts of loop {prefix.loop.var} are used elsewhere"
    return None


def without_sums(step: PrefixDivision) -> Codelet:
    """Return the codelet after the step with the loop over the rest alone, in the names of the codelet before it.

    Its statements are instances of those: the loop over the parts is none of their loops.
    """
    values = _values(step)
    renamed = {names[3]: value for names, value in zip(step.names, values, strict=True)}

    def rule(s: Stmt) -> Stmt | tuple[Stmt, ...] | None:
        match s:
            case Loop(number=number) if number in step.loops[:2]:
                return ()
            case Loop(number=number, var=part) if number == step.loops[2]:
                inner = rewrite(lambda n: _without(n, part) if isinstance(n, Assign) else None, s.body[-1:])
                return replace(s, body=rewrite(renaming(renamed), inner))
        return None

    return replace(step.after, body=rewrite_stmts(rule, step.after.body), derivation=None)


def _without(stmt: Assign, part: str) -> Assign:
    return replace(stmt, instance=tuple(e for e in stmt.instance if not (isinstance(e, Var) and e.name == part)))


def _values(step: PrefixDivision) -> tuple[str, ...]:
    """Return the scalars of the codelet before that the scan stores in the arrays of starts."""
    scan = next(s for s in walk_stmts(step.after.body) if isinstance(s, Loop) and s.number == step.loops[1])
    stored = {
        s.target.array: s.value.name
        for s in scan.body
        if isinstance(s, Assign) and isinstance(s.target, Load) and isinstance(s.value, Var)
    }
    return tuple(stored[names[1]] for names in step.names)


def _block(body: tuple[Stmt, ...], number: int) -> tuple[Stmt, ...]:
    """Return the block in which the loop of this number stands."""
    if any(isinstance(s, Loop) and s.number == number for s in body):
        return body
    blocks = (block for s in body for block in blocks_of(s))
    return next((found for block in blocks if (found := _block(block, number))), ())


def _sums(prefix: PrefixLoop, step: PrefixDivision, sums: Loop, rest: Loop) -> tuple[Stmt, ...]:
    """Return the body of the loop that sums up the parts, with bounds as in the rest."""
    inner, whole = sums.body[len(step.names)], rest.body[-1]
    if not isinstance(inner, Loop) or not isinstance(whole, Loop):
        return ()
    pairs = list(zip(prefix.values, step.names, strict=True))
    own = {v.var.name: names[2] for v, names in pairs} | {prefix.loop.var: inner.var}
    bounds = rewrite(renaming({rest.var: sums.var}), (whole.lo, whole.hi))
    terms = rewrite(renaming(own), prefix.terms)
    totals = [Var(names[2], v.var.dtype) for v, names in pairs]
    part = Var(sums.var, sums.dtype)
    return (
        *(Assign(total, v.identity) for total, (v, _) in zip(totals, pairs, strict=True)),
        replace(whole, var=inner.var, lo=bounds[0], hi=bounds[1], body=terms),
        *(Assign(Load(names[0], (part,), t.dtype), t) for t, (_, names) in zip(totals, pairs, strict=True)),
    )


def _scan(prefix: PrefixLoop, step: PrefixDivision, scan: Loop) -> tuple[Stmt, ...]:
    """Return the body of the loop over the values before the parts."""
    part = Var(scan.var, scan.dtype)
    pairs = list(zip(prefix.values, step.names, strict=True))
    return (
        *(Assign(Load(names[1], (part,), v.var.dtype), v.var) for v, names in pairs),
        *(v.plus(Load(names[0], (part,), v.var.dtype)) for v, names in pairs),
    )


def _starts(prefix: PrefixLoop, step: PrefixDivision, rest: Loop) -> Sequence[Stmt]:
    """Return what each part of the rest begins with."""
    part = Var(rest.var, rest.dtype)
    pairs = zip(prefix.values, step.names, strict=True)
    return tuple(Assign(Var(n[3], v.var.dtype), Load(n[1], (part,), v.var.dtype)) for v, n in pairs)
