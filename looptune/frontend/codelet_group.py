"""Several codelets that a program runs one after the other, as one codelet.

f(n, A, tmp);  g(n, tmp, B);       codelet(n, A, tmp, B) { body of f, body of g }

The actual arguments at the calls determine which parameters are the same; without a call, the ``map`` and ``mapbyname``
lines of the group do, or else equal names. Loops keep their variables, so that directives still name them; parameters
and locals whose names clash get new names. An array that two codelets declare with different inner extents is indexed
by one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING, Literal

from looptune.core.errors import UnsupportedError
from looptune.frontend.call_sites import CodeletCall
from looptune.frontend.finalize import number_loops
from looptune.frontend.hmpp import io_of
from looptune.frontend.name_resolution import base
from looptune.frontend.renaming import Renaming, as_dtype, rename_variables
from looptune.frontend.shared_arguments import Key, Param, containing_array
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, Load, Local, Loop, Scalar, Stmt, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import max_of, mul
from looptune.ir.verify import verify

if TYPE_CHECKING:
    from looptune.core.source import Span

Io = Literal["in", "out", "inout"]


@dataclass(frozen=True, slots=True)
class Member:
    """A codelet as one run of it uses it. ``keys`` say what each parameter is; ``values`` what is known of scalars."""

    codelet_call: CodeletCall
    codelet: Codelet
    keys: Mapping[str, Key]
    values: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class MemberShare:
    """The part of a group that comes from one member: its statements, and its names for the group's variables.

    ``write_back_error`` says why the statements cannot be written back. ``params``: the group's names of the member's
    parameters; ``elements``: the parameters that are an element of an array of the group, which is named if it is the
    first one.
    """

    codelet_call: CodeletCall
    statements: frozenset[str]
    names: Mapping[str, str]
    write_back_error: str
    params: Mapping[str, str]
    elements: Mapping[str, str]


@dataclass(slots=True)
class _Slot:
    """One parameter of the whole: ``uses`` are the members' parameters that it is."""

    key: Key
    uses: list[tuple[int, Param]] = field(default_factory=list)
    name: str = ""
    flat: bool = False

    @property
    def first(self) -> Param:
        return self.uses[0][1]


def _directed(codelet: Codelet) -> tuple[Stmt, ...]:
    """Return the body with the directives of the function on its outermost loops.

    Such a loop may have one of that name.
    """

    def given(loop: Loop) -> Loop:
        own = {d.name.lower() for d in loop.directives}
        added = tuple(d for d in codelet.directives if d.name.lower() not in own)
        return replace(loop, directives=(*added, *loop.directives))

    return tuple(given(s) if isinstance(s, Loop) else s for s in codelet.body)


def merge_codelets(
    members: Sequence[Member], name: str, label: str
) -> tuple[Codelet, dict[str, int | float], list[MemberShare]]:
    """Return the members as one codelet, the known values of scalars, and which parts belong to which member.

    Raises UnsupportedError where they use one array in ways that cannot be told apart.
    """
    slots, handed = _slots(members)
    names = _Names({n.var for m in members for n in walk(m.codelet.body) if isinstance(n, Loop)})
    for slot in slots:
        slot.name = names.fresh(slot.first.name, _outside(slot.key))
    renames = [_renaming(k, m, slots, names) for k, m in enumerate(members)]
    for slot in slots:
        slot.flat = len({_inner(p, renames[k]) for k, p in slot.uses}) > 1
    bodies = [
        Renaming(renames[k], _flattened(k, slots, renames), _held(k, m, handed[k])).of(_directed(m.codelet))
        for k, m in enumerate(members)
    ]
    stmts = number_loops(tuple(stmt for body in bodies for stmt in body))
    params = tuple(_parameter(slot, renames, members) for slot in slots)
    locals_ = tuple(_local(v, renames[k]) for k, m in enumerate(members) for v in m.codelet.locals)
    whole = Codelet(name, params, locals_, stmts, label, span=members[0].codelet.span)
    known: dict[str, int | float] = {}
    for m, rename in zip(members, renames, strict=True):
        for own, value in m.values.items():
            known.setdefault(rename.get(own, own), value)
    scalars = {p.name for p in params if isinstance(p, Scalar)}
    ends = list(accumulate(len(body) for body in bodies))
    shares = [
        _share(m, stmts[end - len(body) : end], renames[k], handed[k], slots)
        for k, (m, body, end) in enumerate(zip(members, bodies, ends, strict=True))
    ]
    return verify(whole), {n: v for n, v in known.items() if n in scalars}, shares


def _slots(members: Sequence[Member]) -> tuple[list[_Slot], list[dict[str, _Element]]]:
    """Return the parameters of the whole; and of each member, the scalars whose value an earlier one computes."""
    slots: dict[Key, _Slot] = {}
    handed: list[dict[str, _Element]] = []
    for k, m in enumerate(members):
        handed.append({})
        for p in m.codelet.params:
            key = m.keys[p.name]
            if isinstance(p, Scalar):
                held_by, indices = containing_array(key)
                computed = slots.get(held_by)
                if computed is not None and any(j < k and _writes(members[j], q.name) for j, q in computed.uses):
                    handed[k][p.name] = _Element(computed, indices)
                    continue
            slot = slots.setdefault(key, _Slot(key))
            if slot.uses and slot.first.dtype != p.dtype:
                message = f"{p.name} is {p.dtype} here and {slot.first.dtype} in another codelet of the group"
                raise UnsupportedError(f"{message}: give the array one type", _place(m, p))
            slot.uses.append((k, p))
    _check_parts(members, list(slots.values()))
    return list(slots.values()), handed


def _check_parts(members: Sequence[Member], slots: Sequence[_Slot]) -> None:
    """UnsupportedError for an array of which the group uses a part and something else too."""
    arrays = {slot.key for slot in slots if slot.key[0] == "array"}
    for slot in slots:
        if "part" not in slot.key:
            continue
        of = slot.key[: slot.key.index("part")]
        if any(other != slot.key and other[: len(of)] == of for other in arrays):
            k, p = slot.uses[0]
            message = f"{p.name} is a part of an array that the codelets use elsewhere too"
            raise UnsupportedError(f"{message}: pass the whole array, and where the part begins as an integer",
                                   _place(members[k], p))  # fmt: skip


def _place(m: Member, p: Param) -> Span:
    """Return the argument a parameter has at the call, else its declaration."""
    own = [d.name for d in m.codelet_call.callee.function.params]
    if m.codelet_call.call is not None and p.name in own and own.index(p.name) < len(m.codelet_call.call.args):
        return m.codelet_call.call.args[own.index(p.name)].span
    return p.span


def _writes(member: Member, array: str) -> bool:
    return array in written_names(member.codelet.body)


@dataclass(frozen=True, slots=True)
class _Element:
    """The element of an array that a scalar's value is in."""

    slot: _Slot
    indices: tuple[int, ...]


# -- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Names:
    used: set[str]

    def fresh(self, wanted: str, other: str | None = None) -> str:
        """Return ``wanted`` if it is free, else ``other``, else ``wanted_2`` and so on."""
        numbers = (f"{wanted}_{k}" for k in count(2))
        found = next(n for n in chain((wanted,), () if other is None else (other,), numbers) if n not in self.used)
        self.used.add(found)
        return found


def _outside(key: Key) -> str | None:
    """Return the variable's own name in the program, where it has one."""
    if key[1] == "global":
        return str(key[2])
    return base(str(key[3])) if key[1] == "local" and "part" not in key else None


def _renaming(index: int, m: Member, slots: Sequence[_Slot], names: _Names) -> dict[str, str]:
    """Return the group's name of each of a member's parameters and locals."""
    made = {p.name: slot.name for slot in slots for k, p in slot.uses if k == index}
    return made | {v.name: names.fresh(v.name) for v in m.codelet.locals}


def _local(v: Local, rename: Mapping[str, str]) -> Local:
    return replace(v, name=rename[v.name], shape=tuple(rename_variables(e, rename) for e in v.shape))


# -- arrays ---------------------------------------------------------------------------------------


def _held(index: int, m: Member, handed: Mapping[str, _Element]) -> dict[str, Load]:
    """Return the element each scalar is in that an earlier codelet computes."""
    made: dict[str, Load] = {}
    for name, element in handed.items():
        array = element.slot.first
        rank = len(array.shape) if isinstance(array, Array) and not element.slot.flat else 1
        indices = element.indices if len(element.indices) == rank else (0,) * rank
        written_here = any(k == index and _writes(m, p.name) for k, p in element.slot.uses)
        if written_here or (any(element.indices) and len(element.indices) != rank):
            place = _place(m, next(p for p in m.codelet.params if p.name == name))
            message = f"{name} is an element of an array that an earlier codelet computes"
            raise UnsupportedError(f"{message}: pass the array, and read the element in the codelet", place)
        made[name] = Load(element.slot.name, tuple(Const(i) for i in indices), array.dtype)
    return made


def _inner(p: Param, rename: Mapping[str, str]) -> tuple[int, tuple[Expr, ...]]:
    """Return the rank and the inner extents: what an index means."""
    shape = p.shape if isinstance(p, Array) else ()
    return len(shape), tuple(rename_variables(e, rename) for e in shape[1:] if e is not None)


def _flattened(index: int, slots: Sequence[_Slot], renames: Sequence[Mapping[str, str]]) -> dict[str, tuple[Expr, ...]]:
    """Return the inner extents of a member's arrays that are indexed by one number."""
    uses = ((k, p) for slot in slots if slot.flat for k, p in slot.uses)
    return {p.name: _inner(p, renames[k])[1] for k, p in uses if k == index}


def _parameter(slot: _Slot, renames: Sequence[Mapping[str, str]], members: Sequence[Member]) -> Param:
    first = slot.first
    if isinstance(first, Scalar):
        return replace(first, name=slot.name)
    uses = [(k, p) for k, p in slot.uses if isinstance(p, Array)]
    for k, p in uses:
        _check_extents(members[k], p, renames[k])
    outer = [_extent(p, renames[k], slot.flat) for k, p in uses]
    extent: Expr | None = None
    for e in (e for e in outer if e is not None):
        dtype = e.dtype if extent is None or extent.dtype == e.dtype else "int64"
        extent = e if extent is None or extent == e else max_of(as_dtype(extent, dtype), as_dtype(e, dtype))
    inner = () if slot.flat else _inner(first, renames[uses[0][0]])[1]
    return Array(slot.name, first.dtype, (extent, *inner), _io(members, uses), span=first.span)


def _check_extents(m: Member, p: Array, rename: Mapping[str, str]) -> None:
    missing = {n.name for n in walk(tuple(e for e in p.shape if e is not None)) if isinstance(n, Var)} - set(rename)
    if missing:
        message = f"the extent {min(missing)} of {p.name} is computed by a codelet before this one"
        raise UnsupportedError(f"{message}: write a constant or a parameter", _place(m, p))


def _extent(p: Array, rename: Mapping[str, str], flat: bool) -> Expr | None:
    """Return the first extent, or all elements where the array is indexed by one number."""
    if p.shape[0] is None:
        return None
    sizes = [rename_variables(e, rename) for e in (p.shape if flat else p.shape[:1]) if e is not None]
    dtype = "int32" if all(e.dtype == "int32" for e in sizes) else "int64"
    return reduce(mul, (as_dtype(e, dtype) for e in sizes))


def _io(members: Sequence[Member], uses: Sequence[tuple[int, Array]]) -> Io:
    """First use in, any write out.

    Where the first codelet only writes, and its clause does not say that it writes all, what it leaves is as it was
    before.
    """
    said = [p.io for _, p in uses]
    if all(io == "in" for io in said):
        return "in"
    if all(io == "out" for io in said):
        return "out"
    k, first = uses[0]
    m = members[k]
    own = [d.name for d in m.codelet_call.callee.function.params]
    clauses = () if m.codelet_call.callee.directive is None else m.codelet_call.callee.directive.clauses
    by_clause = first.name in own and io_of(clauses, own.index(first.name), first.name) == "out"
    return "out" if by_clause else "inout"


def _share(
    m: Member,
    stmts: tuple[Stmt, ...],
    rename: Mapping[str, str],
    handed: Mapping[str, _Element],
    slots: Sequence[_Slot],
) -> MemberShare:
    names = frozenset(n.name for n in walk(stmts) if isinstance(n, Assign))
    back = {new: old for old, new in reversed(list(rename.items())) if new != old}
    flat = next((p.name for slot in slots if slot.flat for _, p in slot.uses if rename.get(p.name) == slot.name), None)
    apart = ""
    if flat is not None:
        apart = f"the codelets declare {flat} with different extents"
    elif handed:
        apart = f"{min(handed)} is computed by a codelet before this one"
    elements = {name: "" if any(e.indices) else e.slot.name for name, e in handed.items()}
    return MemberShare(m.codelet_call, names, back, apart, dict(rename), elements)
