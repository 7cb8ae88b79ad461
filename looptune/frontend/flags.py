"""Flags that iterations only raise, as reductions: every order of the iterations leaves the same value.

    found = 0;                                      found = 0;
    for (i) if (a[i] > t) found = 1;       ==>      for (i) if (a[i] > t) found = found | 1;
    for (i) ok = ok && a[i] > t;                    for (i) ok = ok & (a[i] > t);
    for (i) if (ok && a[i] > t) ok = 0;             for (i) if (a[i] > t) ok = ok & 0;

    for (i) if (a[i] < 0) err[0] = -5;     ==>      any = 0; for (i) if (a[i] < 0) any = any | 1;  if (any) err[0] = -5;

The first form is for a local that is 0 or 1 wherever it is set. The second is for any variable or element that all
iterations set to one value. In both, the loop uses the variable in no other way, and data decide whether an iteration
sets it: what every iteration sets belongs to the iteration, and is no flag. What says that a jump of the text ended a
loop is none either: one thread leaves the loop there.

The terms of ``&&`` and ``||`` are then evaluated in each iteration, also where C would not look at them because of the
flag. So they may not divide by what may be 0, nor use subscripts that data decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.structured_jumps import FLAG
from looptune.ir.def_use import (
    assigned_targets,
    names_in,
    referenced_names,
    target_name,
    upward_exposed_uses,
    written_names,
)
from looptune.ir.intervals import is_total, may_be_one_place
from looptune.ir.nodes import (
    COMPARISONS,
    Assign,
    Binary,
    Cast,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import (
    conjunction,
    conjuncts,
    disjunction,
    has_load,
    map_blocks,
    renaming,
    rewrite,
    rewrite_stmts,
    walk,
    walk_stmts,
)
from looptune.ir.simplify import is_integer, truth

RAISED = "#flag"
"""Ends the name of a local that tells whether an iteration set a variable."""


def reduce_flags(stmts: tuple[Stmt, ...], locals_: Mapping[str, Local]) -> tuple[tuple[Stmt, ...], Mapping[str, Local]]:
    """Return the statements with flags as reductions, and the locals that they need in addition."""
    known = _truth_values(stmts, locals_)
    stmts = _with_one_name(stmts, known)
    finder = _Flags(locals_, known, frozenset(written_names(stmts)))
    return finder.block(stmts), finder.made


def _with_one_name(stmts: tuple[Stmt, ...], known: Collection[str]) -> tuple[Stmt, ...]:
    """Return the statements with one name for what is set twice: ``ok_2 = ok && a; ok = ok_2 && b``.

    ``known`` are the locals that are 0 or 1.
    """
    uses = Counter(n.name for n in walk(stmts) if isinstance(n, Var))
    between = {name for name, count in uses.items() if name in known and count == 2}

    def joined(first: Stmt, rest: list[Stmt]) -> Stmt:
        """Return the first statement with the name that is set next, which ``rest`` then has too."""
        match first:
            case Assign(Var(name) as target) if name in between:
                at = next((k for k, stmt in enumerate(rest) if name in referenced_names((stmt,))), len(rest))
                match rest[at:]:
                    case [Assign(Var() as flag, value) as then, *_] if _continues(target, flag, value, rest[:at]):
                        rest[at] = replace(then, value=rewrite(renaming({name: flag.name}), value))
                        return replace(first, target=flag)
        return first

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in reversed(body):
            out.insert(0, joined(map_blocks(block, stmt), out))
        return tuple(out)

    return block(stmts)


def _continues(target: Var, flag: Var, value: Expr, between: Sequence[Stmt]) -> bool:
    """Tell whether ``flag = value`` needs no other value of the flag than that of ``target``."""
    unused = flag.name not in referenced_names(between) | names_in(value)
    return target.dtype == flag.dtype and base(target.name) == base(flag.name) and target != flag and unused


def _truth_values(stmts: tuple[Stmt, ...], locals_: Mapping[str, Local]) -> frozenset[str]:
    """Return the integer locals that are 0 or 1 wherever they are set."""
    values: dict[str, list[Expr]] = {}
    for stmt in walk_stmts(stmts):
        match stmt:
            case Assign(Var(name), value):
                values.setdefault(name, []).append(value)
    found = frozenset(n for n, v in locals_.items() if not v.shape and is_integer(v.dtype) and n in values)
    while True:
        kept = frozenset(n for n in found if all(_is_truth_value(e, found) for e in values[n]))
        if kept == found:
            return found
        found = kept


def _is_truth_value(e: Expr, names: Collection[str]) -> bool:
    """Tell whether the expression is 0 or 1, if the variables ``names`` are."""
    match e:
        case Const(value):
            return value in (0, 1)
        case Var(name):
            return name in names or e.dtype == "bool"
        case Load():
            return e.dtype == "bool"
        case Unary("!"):
            return True
        case Binary(op, lhs, rhs):
            both = op in ("&", "|", "^", "min", "max") and all(_is_truth_value(x, names) for x in (lhs, rhs))
            return op in COMPARISONS or both
        case Select(_, then, other):
            return _is_truth_value(then, names) and _is_truth_value(other, names)
        case Cast(dtype, arg):
            return dtype == "bool" or (is_integer(arg.dtype) and _is_truth_value(arg, names))
    return False


@dataclass(slots=True)
class _Flags:
    """``truth_values`` are the locals that are 0 or 1, ``written`` all that the codelet writes."""

    locals: Mapping[str, Local]
    truth_values: frozenset[str]
    written: frozenset[str]
    made: dict[str, Local] = field(default_factory=dict)

    def block(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in stmts for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return the statement with the flags of a loop; an outer loop has them before one inside."""
        if not isinstance(stmt, Loop):
            return (map_blocks(self.block, stmt),)
        loop, before, after = stmt, list[Stmt](), list[Stmt]()
        targets = dict.fromkeys(n.target for n in walk_stmts(stmt.body) if isinstance(n, Assign))
        for target in (t for t in targets if not target_name(t).startswith(FLAG) and not _is_chosen(stmt, t)):
            raised = self.raised(loop, target)
            if raised is not None:
                loop = raised
                continue
            made = self.with_flag_of_its_own(loop, target)
            if made is not None:
                clear, loop, store = made
                before.append(clear)
                after.append(store)
        return (*before, map_blocks(self.block, loop), *after)

    def is_data(self, condition: Expr) -> bool:
        """Tell whether data decide the condition: it reads an element, or a variable that the codelet writes."""
        return has_load(condition) or not self.written.isdisjoint(names_in(condition))

    def raised(self, loop: Loop, target: Var | Load) -> Loop | None:
        """Return the loop in which a local that is 0 or 1 is a reduction, or None if it is none."""
        if not isinstance(target, Var) or target.name not in self.truth_values:
            return None
        for raising in (_Raising(target, "|", self), _Raising(target, "&", self)):
            made = raising.loop(loop, under_data=False)
            if made is not None and made is not loop:
                return made
        return None

    def with_flag_of_its_own(self, loop: Loop, target: Var | Load) -> tuple[Stmt, Loop, Stmt] | None:
        """Return what clears a new flag, the loop that raises it, and what then sets the target.

        None if not all that the loop does with the target is to set it to one value, where data decide.
        """
        name = target_name(target)
        stores = [n for n in walk_stmts(loop.body) if isinstance(n, Assign) and may_be_one_place(n.target, target)]
        first = stores[0]
        inside = {f.var for f in walk_stmts(loop) if isinstance(f, Loop)} | written_names(loop.body)
        index = target.index if isinstance(target, Load) else ()
        if any((n.target, n.value) != (first.target, first.value) for n in stores) or (
            has_load((first.value, index)) or names_in((first.value, index)) & inside
        ):
            return None
        accesses = [n for n in walk(loop) if isinstance(n, Var | Load) and target_name(n) == name]
        more = sum(may_be_one_place(n, target) for n in accesses) > len(stores)
        if more or not self.only_under_data(loop.body, target):
            return None
        own = f"{base(name)}_raised{RAISED}{len(self.made)}"
        self.made[own] = Local(own, "int32", span=first.span)
        flag = Var(own, "int32")

        def rule(n: Stmt) -> Stmt | None:
            match n:
                case Assign(to) if to == target:
                    return replace(n, target=flag, value=Binary("|", flag, Const(1)))
            return None

        body = rewrite_stmts(rule, loop.body)
        # all three are the loop of the text
        store = If(truth(flag), (replace(first, directives=(), span=loop.span),), span=loop.span)
        return Assign(flag, Const(0), span=loop.span), replace(loop, body=body), store

    def only_under_data(self, body: Sequence[Stmt], target: Var | Load) -> bool:
        """Tell whether data decide for each assignment to ``target`` if it runs."""
        for stmt in body:
            match stmt:
                case Assign(to) if to == target:
                    return False
                case If(cond, then, other) if not self.is_data(cond):
                    if not self.only_under_data((*then, *other), target):
                        return False
                case Loop(body=inner) if not self.decides(stmt):
                    if not self.only_under_data(inner, target):
                        return False
        return True

    def decides(self, loop: Loop) -> bool:
        """Tell whether data decide how often the loop runs."""
        return self.is_data(loop.lo) or self.is_data(loop.hi)


@dataclass(frozen=True, slots=True)
class _Raising:
    """The reduction by ``op`` of the variable ``flag``, in a loop that uses it in no other way.

    Its methods return what they are given with the flag as a reduction, the same where it is not used, and None where
    it is used in another way. ``under_data``: data decide whether the statement runs.
    """

    flag: Var
    op: str
    flags: _Flags

    def uses(self, tree: object) -> bool:
        return self.flag.name in names_in(tree)

    def loop(self, loop: Loop, under_data: bool) -> Loop | None:
        body = None if self.uses((loop.lo, loop.hi)) else self.block(loop.body, under_data)
        return None if body is None else loop if body is loop.body else replace(loop, body=body)

    def block(self, body: tuple[Stmt, ...], under_data: bool) -> tuple[Stmt, ...] | None:
        made = [self.stmt(stmt, under_data) for stmt in body]
        if None in made:
            return None
        return body if all(a is b for a, b in zip(made, body, strict=True)) else tuple(s for s in made if s is not None)

    def stmt(self, stmt: Stmt, under_data: bool) -> Stmt | None:
        if not self.uses(stmt):
            return stmt
        match stmt:
            case Assign(target, value):
                return self.set(stmt, value, under_data) if target == self.flag else None
            case Loop():
                return self.loop(stmt, under_data or self.flags.decides(stmt))
            case While(cond, body):
                inner = None if self.uses(cond) else self.block(body, under_data=True)
                return None if inner is None else replace(stmt, body=inner)
            case If(cond, then, other) if self.uses(cond):
                return self.tested(stmt)
            case If(cond, then, other):
                data = under_data or self.flags.is_data(cond)
                yes, no = self.block(then, data), self.block(other, data)
                return None if yes is None or no is None else replace(stmt, then=yes, other=no)
        return None

    def set(self, stmt: Assign, value: Expr, under_data: bool) -> Stmt | None:
        """Return the assignment; ``flag = c ? 1 : flag`` is one under a condition."""
        match value:
            case _ if stmt.directives:
                return self.assigned(stmt, value, under_data)
            case Select(cond, then, other) if other == self.flag and not self.uses(cond):
                return self.stmt(If(cond, (replace(stmt, value=then),), span=stmt.span), under_data)
            case Select(cond, then, other) if then == self.flag and not self.uses(cond):
                return self.stmt(If(Unary("!", cond), (replace(stmt, value=other),), span=stmt.span), under_data)
        return self.assigned(stmt, value, under_data)

    def assigned(self, stmt: Assign, value: Expr, under_data: bool) -> Assign | None:
        """Return ``flag = flag op e`` for this, ``flag = 1`` or ``flag = flag || e``, or the same with 0 and ``&&``."""
        plain = _uncast(value)
        match value:
            case Const(int(constant)) if constant == (self.op == "|") and under_data:
                return self.accumulating(stmt, Const(constant))
            case _ if self.accumulates(plain):
                return stmt
        terms = self.terms(plain)
        if self.flag not in terms:
            return None
        others = [e for e in terms if e != self.flag]
        if not others or not all(self.is_evaluable(e) for e in others):
            return None
        return self.accumulating(stmt, truth((conjunction if self.op == "&" else disjunction)(others)))

    def accumulates(self, value: Expr) -> bool:
        match value:
            case Binary(op, lhs, rhs) if op == self.op:
                mine = [_uncast(e) == self.flag for e in (lhs, rhs)]
                return (mine == [True, False] and not self.uses(rhs)) or (mine == [False, True] and not self.uses(lhs))
        return False

    def tested(self, stmt: If) -> Stmt | None:
        """Return ``if (e) flag = 1`` as it is without a test of the flag, as in ``if (!flag && e) flag = 1``."""
        match stmt:
            case If(cond, (Assign(target, value) as only,), ()) if target == self.flag:
                asked = conjuncts(cond)
                rest = [e for e in asked if not self.is_test(e)]
                if len(rest) == len(asked) or not all(self.is_evaluable(e) for e in rest):
                    return None
                made = self.assigned_under_test(only, value, any(map(self.flags.is_data, rest)))
                return made if made is None or not rest else replace(stmt, cond=conjunction(rest), then=(made,))
            case If(cond, (If(inner, then, (), directives=()),), ()):
                return self.tested(replace(stmt, cond=conjunction((cond, inner)), then=then))
        return None

    def assigned_under_test(self, stmt: Assign, value: Expr, under_data: bool) -> Assign | None:
        """Return the assignment for one that runs only while the flag is not yet what it becomes."""
        if isinstance(value, Const) or self.uses(value):
            return self.assigned(stmt, value, under_data)
        plain = _uncast(value)
        known = _is_truth_value(plain, ()) and self.is_evaluable(plain)
        return self.accumulating(stmt, truth(plain)) if known else None

    def is_test(self, e: Expr) -> bool:
        """Tell whether the condition only says that the flag is not yet what it becomes."""
        match e:
            case Unary("!", arg) | Binary("==", arg, Const(0)):
                return self.op == "|" and _uncast(arg) == self.flag
            case Binary("!=", arg, Const(0)) | Binary("==", arg, Const(1)):
                return self.op == "&" and _uncast(arg) == self.flag
        return self.op == "&" and _uncast(e) == self.flag

    def terms(self, e: Expr) -> tuple[Expr, ...]:
        """Return the operands of a chain of ``&&`` or ``||``, in their order."""
        match e:
            case Binary("&&" | "||" as op, lhs, rhs) if op == self.op * 2:
                return (*self.terms(lhs), *self.terms(rhs))
        return (e,)

    def is_evaluable(self, e: Expr) -> bool:
        """Tell whether a term may be evaluated whatever the flag is: it has a value, and data decide no subscript."""
        indices = [n.index for n in walk(e) if isinstance(n, Load)]
        return not self.uses(e) and is_total(e) and not any(map(self.flags.is_data, (i for at in indices for i in at)))

    def accumulating(self, stmt: Assign, e: Expr) -> Assign:
        """Return ``flag = flag op e``, in the type in which C computes it."""
        dtype = self.flag.dtype
        wide = dtype if dtype in ("int32", "uint32", "int64", "uint64") else "int32"
        combined = Binary(self.op, _cast(wide, self.flag), _cast(wide, e))
        return replace(stmt, value=_cast(dtype, combined))


def _is_chosen(loop: Loop, target: Var | Load) -> bool:
    """Tell whether a condition on other variables that the loop carries decides on the target, as for an argmin."""
    carried = (upward_exposed_uses(loop.body) & written_names(loop.body)) - {target_name(target)}
    scalars = {n.name for n in walk(loop.body) if isinstance(n, Var)} & carried
    guards = (n for n in walk_stmts(loop.body) if isinstance(n, If) and target in assigned_targets((n,)))
    return any(scalars & names_in(guard.cond) for guard in guards)


def _cast(dtype: str, e: Expr) -> Expr:
    if isinstance(e, Const):
        return replace(e, dtype=dtype)
    return e if e.dtype == dtype else Cast(dtype, e)


def _uncast(e: Expr) -> Expr:
    """Return the integer that casts of a truth value keep."""
    match e:
        case Cast(dtype, arg) if is_integer(dtype) and is_integer(arg.dtype):
            return _uncast(arg)
    return e
