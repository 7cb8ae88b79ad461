"""Loops that run statements in a new order, made by isl's AST generator and read back into the loop IR.

    S[t, i] at time (2*t + i, t)        for (int i = 1; i < 2 * T + n - 3; i++)
                                  ==>     for (int t = max(0, ...); t < min(T, ...); t++)
                                            S(t, i - 2 * t)

Source of the method: Grosser, Verdoolaege and Cohen, "Polyhedral AST generation is more than scanning polyhedra",
TOPLAS 37(4), 2015.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any

import islpy as isl

from looptune.ir.nodes import (
    Assign,
    Binary,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Loop,
    Node,
    Scalar,
    Stmt,
    Unary,
    Var,
)
from looptune.ir.rewrite import rewrite, rewrite_stmts, substitute, walk
from looptune.ir.simplify import add, div, fits, fold, max_of, min_of, mod, mul, sub
from looptune.poly.affine import name
from looptune.poly.coalesce import coalesce
from looptune.poly.domain import IterationDomains, Statement, scan
from looptune.poly.isl_limits import QUESTION, isl_operation_limit
from looptune.poly.isl_objects import Order, SchedulePiece, Space


class GenerationError(Exception):
    """The loops cannot be made; the message is a clause. It never leaves ``schedule``, which refuses the directive."""


SCANNED = 16
"""Of so many codelets the iteration domains are kept: each of their loops is looked at."""
Times = Mapping[str, isl.Map]
"""{ copy[loops of the nest] -> [time] } by copy of a statement, all of one length, the loops around as sizes."""


@dataclass(frozen=True, eq=False)
class LoopNest:
    """The statements under one loop of ``codelet``, each copy with a name of its own.

    ``numbered`` is the codelet with these names. ``outer`` is how many loops are around the loop, ``place`` how many
    precede it in the text.
    """

    codelet: Codelet
    numbered: Codelet
    place: int
    outer: int
    nest: IterationDomains
    copies: Mapping[str, Assign]

    @staticmethod
    def of(codelet: Codelet, loop: Loop) -> LoopNest:
        """Read the nest at ``loop``, which stands in ``codelet``."""
        numbered, originals, nest = _scanned(_SameBody(codelet))
        place = next(k for k, f in enumerate(n for n in walk(codelet.body) if isinstance(n, Loop)) if f is loop)
        inside = {id(n) for n in walk(loop) if isinstance(n, Assign)}
        copies = {c: n for c, n in originals.items() if id(n) in inside}
        return LoopNest(codelet, numbered, place, len(nest.ranges[place][1]), nest, copies)

    def loops(self, copy: str) -> tuple[Loop, ...]:
        """Return the loops of the nest around a statement, outermost first."""
        return tuple(f for f in self._statement(copy).loops[self.outer :] if isinstance(f, Loop))

    def _statement(self, copy: str) -> Statement:
        return self.nest.statements[copy]

    @cached_property
    def inexact(self) -> Statement | None:
        """A statement of which it is not known exactly where it runs, or None."""
        return next((s for s in map(self._statement, self.copies) if not s.exact), None)

    @cached_property
    def space(self) -> Space:
        return Space(self.nest, {})

    def generate(self, times: Times, single: Collection[int] = ()) -> tuple[Stmt, ...]:
        """Return statements that run every instance of the nest once, in the order of ``times``.

        Each of the entries ``single`` becomes one loop, with conditions where its statements run in other ranges; any
        other entry may become several loops, one after the other. A new loop takes the name of the innermost loop on
        which its entry depends. IslLimitExceeded where isl gives up, GenerationError where a bound is no sum, minimum
        or maximum, and where the loops do not run what ``times`` orders: isl loses iterations of some sets that hold
        remainders (``tests/poly/test_loop_generation.py``).
        """
        isl.DEFAULT_CONTEXT.set_ast_build_detect_min_max(1)
        try:
            with isl_operation_limit(QUESTION):
                made = _Generator(self, times, single).run()
        finally:
            isl.DEFAULT_CONTEXT.set_ast_build_detect_min_max(0)
        with isl_operation_limit(QUESTION):
            self._check(made, times)
        return rewrite_stmts(self._filled, made)

    def _filled(self, stmt: Stmt) -> Stmt | None:
        """Return the statement of the nest that one of the generated statements runs, in its instance."""
        if not isinstance(stmt, Assign):
            return None
        loops = self.loops(stmt.name)
        given = {f.var: fold(Cast(f.dtype, e)) for f, e in zip(loops, stmt.instance, strict=True)}
        made = substitute(self.copies[stmt.name], given)
        assert isinstance(made, Assign), "substitution keeps what a node is"
        return made

    def _check(self, made: tuple[Stmt, ...], times: Times) -> None:
        """Raise GenerationError unless the statements run each instance that has a time, and none twice."""
        around = (Scalar(f.var, f.dtype) for f in self.around)
        copies: dict[str, Assign] = {}
        codelet = replace(self.codelet, params=(*self.codelet.params, *around), body=made)
        space = Space(scan(_numbered(codelet, copies)), {})
        wanted = reduce(isl.UnionSet.union, (isl.UnionSet.from_set(t.domain()) for t in times.values()))
        runs = [isl.UnionMap.from_map(_instances(space, name_, assign)) for name_, assign in copies.items()]
        found = reduce(isl.UnionMap.union, runs, isl.UnionMap("{}")).intersect_params(self.context())
        if not found.is_injective() or not found.range().is_equal(wanted.intersect_params(self.context())):
            raise GenerationError("isl makes loops that do not run every iteration once")

    @property
    def around(self) -> tuple[Loop, ...]:
        """The loops around the nest, outermost first."""
        found = self._statement(next(iter(self.copies))).loops[: self.outer]
        return tuple(f for f in found if isinstance(f, Loop))

    def times_in(self, original: Space, order: Order, first: int) -> Times:
        """Return the times of ``order`` from entry ``first`` on, by copy, as ``generate`` takes them.

        ``order`` says when the instances of the statements of ``original`` run, of which the copies are made.
        """
        length = max(len(p.time) for mine in order.values() for p in mine) - first
        found = {}
        for copy, assign in self.copies.items():
            late = tuple(SchedulePiece(p.time[first:], p.when) for p in order[assign.name])
            at = instance_map(original, self.space, copy, assign.name)
            found[copy] = self.within(at.apply_range(original.time(assign.name, late, length)))
        return found

    def within(self, relation: isl.Map) -> isl.Map:
        """Return { copy[loops of the nest] -> anything } of { copy[loops] -> anything }, the loops around as sizes.

        The loops are restricted to those values with which the statement runs.
        """
        copy = relation.get_tuple_name(isl.dim_type.in_)
        found = relation.intersect_domain(self.space.domain(copy))
        return self._outer_as_sizes(found, isl.dim_type.in_, copy)

    def between(self, relation: isl.Map) -> isl.Map:
        """Return { copy[loops] -> copy[loops] } for one iteration of the loops around, which are sizes then."""
        first, then = (relation.get_tuple_name(t) for t in (isl.dim_type.in_, isl.dim_type.out))
        for k in range(self.outer):
            relation = relation.equate(isl.dim_type.in_, k, isl.dim_type.out, k)
        relation = relation.project_out(isl.dim_type.out, 0, self.outer).set_tuple_name(isl.dim_type.out, then)
        return self._outer_as_sizes(relation, isl.dim_type.in_, first)

    def _outer_as_sizes(self, relation: isl.Map, of: isl.dim_type, copy: str) -> isl.Map:
        sizes = relation.dim(isl.dim_type.param)
        relation = relation.move_dims(isl.dim_type.param, sizes, of, 0, self.outer)
        for k, dim in enumerate(self.nest.statements[copy].dims[: self.outer]):
            relation = relation.set_dim_name(isl.dim_type.param, sizes + k, dim)
        return relation.set_tuple_name(of, copy)

    def domain(self, copy: str) -> isl.Set:
        """Return { copy[loops of the nest] : it runs }; the loops around are parameters."""
        return self.within(isl.Map.identity(self.space.domain(copy).get_space().map_from_set())).domain()

    def context(self) -> isl.Set:
        """Return { : what holds of the sizes and the loops around whenever the nest is reached }."""
        _, dims, condition, _ = self.nest.ranges[self.place]
        names = ", ".join((*self.nest.parameters, *dims))
        given = " and ".join(f"({c})" for c in (*self.nest.context, condition) if c) or "true"
        return isl.Set(f"[{names}] -> {{ : {given} }}")


@dataclass(frozen=True, slots=True, eq=False)
class _SameBody:
    """A codelet that equals another with the very same statements: to compare trees takes longer."""

    codelet: Codelet

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _SameBody):
            return NotImplemented
        return self.codelet.body is other.codelet.body and self.codelet.params == other.codelet.params

    def __hash__(self) -> int:
        return id(self.codelet.body)


@lru_cache(SCANNED)
def _scanned(one: _SameBody) -> tuple[Codelet, Mapping[str, Assign], IterationDomains]:
    """Return the codelet with a name of its own for every assignment, the assignments by name, and its domains."""
    originals: dict[str, Assign] = {}
    numbered = _numbered(one.codelet, originals)
    return numbered, originals, scan(numbered)


def _numbered(codelet: Codelet, originals: dict[str, Assign]) -> Codelet:
    """Return the codelet with a name of its own for every assignment; ``originals`` gets what it was.

    A statement that stands once keeps its name.
    """
    names = Counter(n.name for n in walk(codelet.body) if isinstance(n, Assign))

    def rule(n: Node) -> Node | None:
        match n:
            case Assign(name=old):
                copy = old if names[old] == 1 else _unused(f"{old}_", {*names, *originals})
                originals[copy] = n
                return n if copy == old else replace(n, name=copy)
        return None

    return replace(codelet, body=rewrite(rule, codelet.body))


@dataclass(eq=False)
class _Generator:
    """``single`` are the time entries that become one loop each."""

    nest: LoopNest
    maps: Times
    single: Collection[int]
    templates: dict[str, tuple[Loop | None, ...]] = field(init=False)
    iterators: tuple[str, ...] = field(init=False)
    dtype: str = field(init=False)
    variables: dict[str, Expr] = field(init=False)

    def __post_init__(self) -> None:
        space = self.nest.nest
        length = next(iter(self.maps.values())).dim(isl.dim_type.out)
        taken = {*space.parameters, *(d for s in space.statements.values() for d in s.dims)}
        taken |= {p.name for p in self.nest.codelet.params} | {v.name for v in self.nest.codelet.locals}
        self.iterators = tuple(_unused(f"c{k}", taken) for k in range(length))
        around = self.nest.around
        sizes = [p for p in self.nest.codelet.params if isinstance(p, Scalar) and name(p.name) in space.parameters]
        loops = [*around, *(f for c in self.maps for f in self.nest.loops(c))]
        counted = {p.dtype for p in sizes} | {f.dtype for f in loops}
        self.dtype = "int32" if counted == {"int32"} else "int64"
        self.variables = {name(p.name): Var(p.name, p.dtype) for p in sizes}
        self.variables |= {name(f.var): Var(f.var, f.dtype) for f in around}
        self.variables |= space.terms.found
        self.templates = {c: _templates(self.nest.loops(c), m) for c, m in self.maps.items()}

    def run(self) -> tuple[Stmt, ...]:
        schedule = reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, self.maps.values()))
        build = isl.AstBuild.from_context(self.nest.context())
        build = build.set_iterators(_id_list(self.iterators)).set_options(self._options())
        return tuple(self._statements(build.node_from_schedule_map(schedule), {}, ()))

    def _options(self) -> isl.UnionMap:
        dims = ", ".join(f"i{k}" for k in range(len(self.iterators)))
        places = range(len(self.iterators)) if self.single else ()
        asked = (f"[{dims}] -> {'atomic' if k in self.single else 'unroll'}[{k}]" for k in places)
        return isl.UnionMap(f"{{ {'; '.join(asked)} }}")

    # -- isl's tree as statements, whose instances are the values of the nest's loops ------------------------------

    def _statements(self, node: isl.AstNode, values: Mapping[str, Expr], around: tuple[str, ...]) -> Iterator[Stmt]:
        """``values``: what isl's names of loops stand for; ``around``: the variables of the loops made so far."""
        match _kind(node.get_type()):
            case "block":
                children = node.block_get_children()
                for k in range(children.n_ast_node()):
                    yield from self._statements(children.get_at(k), values, around)
            case "for_":
                yield from self._loop(node, values, around)
            case "if_":
                other = self._statements(node.if_get_else_node(), values, around) if node.if_has_else_node() else ()
                then = tuple(self._statements(node.if_get_then_node(), values, around))
                yield If(self._expression(node.if_get_cond(), values), then, tuple(other))
            case "user":
                yield self._assignment(node.user_get_expr(), values)
            case kind:
                raise AssertionError(f"isl made a node of type {kind}")

    def _loop(self, node: isl.AstNode, values: Mapping[str, Expr], around: tuple[str, ...]) -> Iterator[Stmt]:
        iterator = node.for_get_iterator().get_id().get_name()
        lo = self._expression(node.for_get_init(), values)
        if node.for_is_degenerate():
            yield from self._statements(node.for_get_body(), {**values, iterator: lo}, around)
            return
        template = self._template(node, iterator, around)
        inside = {**values, iterator: Var(template.var, self.dtype)}
        body = tuple(self._statements(node.for_get_body(), inside, (*around, template.var)))
        step = int(node.for_get_inc().get_val().to_python())
        hi = self._end(node.for_get_cond(), values)
        yield Loop(template.var, lo, hi, body, step, number=template.number, directives=template.directives,
                   dtype=self.dtype, annotations=template.annotations, span=template.span)  # fmt: skip

    def _template(self, node: isl.AstNode, iterator: str, around: tuple[str, ...]) -> Loop:
        """Return the loop of which that of ``iterator`` takes the name: what most of its statements name.

        A new loop has isl's name where that is in use around it.
        """
        entry = self.iterators.index(iterator)
        counted = (self._counted(call, iterator, entry) for call in _calls(node.for_get_body()))
        found = [loop for loop in counted if loop is not None]
        new = Loop(iterator, Const(0), Const(0), ())
        if not found:
            return new
        template = max(found, key=lambda t: sum(t.var == other.var for other in found))
        return template if template.var not in around else replace(new, span=template.span)

    def _counted(self, call: isl.AstExpr, iterator: str, entry: int) -> Loop | None:
        """Return the loop that an iterator counts for a statement.

        If that differs between the pieces of the statement, it is the loop whose value the iterator is.
        """
        copy = call.get_op_arg(0).get_id().get_name()
        if self.templates[copy]:
            return self.templates[copy][entry]
        args = (call.get_op_arg(k) for k in range(1, call.get_op_n_arg()))
        named = (_kind(e.get_type()) == "id" and e.get_id().get_name() == iterator for e in args)
        return next((f for f, same in zip(self.nest.loops(copy), named, strict=True) if same), None)

    def _assignment(self, call: isl.AstExpr, values: Mapping[str, Expr]) -> Assign:
        copy = call.get_op_arg(0).get_id().get_name()
        args = tuple(self._expression(call.get_op_arg(k), values) for k in range(1, call.get_op_n_arg()))
        return replace(self.nest.copies[copy], name=copy, instance=args)

    def _end(self, cond: isl.AstExpr, values: Mapping[str, Expr]) -> Expr:
        """Return the exclusive upper bound of a loop."""
        op, hi = _kind(cond.get_op_type()), self._expression(cond.get_op_arg(1), values)
        assert op in ("lt", "le"), "isl's loops count upward"
        return hi if op == "lt" else add(hi, Const(1, self.dtype))

    def _expression(self, e: isl.AstExpr, values: Mapping[str, Expr]) -> Expr:
        match _kind(e.get_type()):
            case "int":
                value = int(e.int_get_val().to_python())
                if not fits(value, self.dtype):
                    raise GenerationError(f"its bounds have the constant {value}, which does not fit in {self.dtype}")
                return Const(value, self.dtype)
            case "id":
                named = e.get_id().get_name()
                return values[named] if named in values else fold(Cast(self.dtype, self.variables[named]))
        args = [self._expression(e.get_op_arg(k), values) for k in range(e.get_op_n_arg())]
        return _operation(_kind(e.get_op_type()), args)


_OPERATORS: Mapping[str, str] = {
    "and_": "&&", "and_then": "&&", "or_": "||", "or_else": "||", "eq": "==", "le": "<=", "lt": "<", "ge": ">=",
    "gt": ">", "add": "+", "sub": "-", "mul": "*",
}  # fmt: skip
"""Those of the IR by isl's names."""


def _operation(op: str, args: Sequence[Expr]) -> Expr:
    match op:
        case "add" | "sub" | "mul":
            return _sum(Binary(_OPERATORS[op], *args))
        case "minus":
            return _sum(Unary("-", *args))
        case "div" | "pdiv_q":
            return div(*args)
        case "pdiv_r" | "zdiv_r":
            return mod(*args)
        case "fdiv_q":
            return _floor(*args)
        case "max":
            return reduce(max_of, args)
        case "min":
            return reduce(min_of, args)
        case "select" | "cond":
            raise GenerationError("the bounds of its loops are no sums, minima and maxima")
    return Binary(_OPERATORS[op], *args)


def _kind(value: Any) -> str:
    """Return the name of one of isl's constants, of which islpy's stubs lack those that end in an underscore."""
    return str(value.name)


def _sum(e: Expr) -> Expr:
    """Return a sum with what is added first, then what is subtracted, then the constant.

    >>> from looptune.ir.c_printer import expression_text
    >>> i, j = Var("i"), Var("j")
    >>> expression_text(_sum(Binary("-", Binary("+", Unary("-", i), Binary("*", Const(2), j)), Const(1))))
    '2 * j - i - 1'
    """
    found: dict[Expr, int] = {}
    constant = _add_terms(e, 1, found)
    made: Expr | None = None
    for term, factor in sorted(found.items(), key=lambda item: item[1] < 0):
        part = mul(Const(abs(factor), e.dtype), term)
        if made is None:
            made = part if factor > 0 else sub(Const(constant, e.dtype), part)
            constant = constant if factor > 0 else 0
        elif factor:
            made = add(made, part) if factor > 0 else sub(made, part)
    rest = Const(constant, e.dtype)
    return rest if made is None else add(made, rest)


def _add_terms(e: Expr, factor: int, found: dict[Expr, int]) -> int:
    """Add the terms of ``factor`` times ``e`` to ``found``; return the constant."""
    match e:
        case Const(int(value)):
            return factor * value
        case Binary("+", a, b):
            return _add_terms(a, factor, found) + _add_terms(b, factor, found)
        case Binary("-", a, b):
            return _add_terms(a, factor, found) + _add_terms(b, -factor, found)
        case Unary("-", a):
            return _add_terms(a, -factor, found)
        case Binary("*", Const(int(value)), a) | Binary("*", a, Const(int(value))):
            return _add_terms(a, factor * value, found)
    found[e] = found.get(e, 0) + factor
    return 0


def _floor(a: Expr, b: Expr) -> Expr:
    """Return floor(a / b) of a positive ``b``, where C's division goes toward zero."""
    return div(sub(a, mod(add(mod(a, b), b), b)), b)


def _unused(wanted: str, taken: set[str]) -> str:
    """Return ``wanted``, with as many underscores as make it a name that is not ``taken``, which it is then."""
    while wanted in taken:
        wanted += "_"
    taken.add(wanted)
    return wanted


def _id_list(names: Sequence[str]) -> isl.IdList:
    found = isl.IdList.alloc(isl.DEFAULT_CONTEXT, len(names))
    for each in names:
        found = found.add(isl.Id(each))
    return found


def _calls(node: isl.AstNode) -> Iterator[isl.AstExpr]:
    """Return the statements under a node, in the order of the text, as calls with the values of their loops."""
    found: list[isl.AstExpr] = []

    def visit(n: isl.AstNode) -> bool:
        if _kind(n.get_type()) == "user":
            found.append(n.user_get_expr())
        return True

    node.foreach_descendant_top_down(visit)
    return iter(found)


def times_of_tree(original: Space, codelet: Codelet) -> dict[str, tuple[SchedulePiece, ...]]:
    """Return when ``codelet``, which is made of the codelet of ``original``, runs each statement that ever runs.

    It is the inverse of what the copies of each statement say of themselves (``Assign.instance``). IslLimitExceeded
    where isl gives up, GenerationError where an instance is not affine.
    """
    copies: dict[str, Assign] = {}
    nest = scan(_numbered(codelet, copies))
    made = Space(nest, {})
    found: dict[str, list[SchedulePiece]] = {}
    with isl_operation_limit(QUESTION):
        for copy, assign in copies.items():
            found.setdefault(assign.name, []).extend(_pieces(original, made, copy, assign.name))
    return {statement: tuple(pieces) for statement, pieces in found.items() if pieces}


def instance_map(original: Space, made: Space, copy: str, statement: str) -> isl.Map:
    """Return { copy[loops] -> statement[loops in ``original``] : the copy runs that instance }.

    GenerationError where the instance is not an affine function of the loops.
    """
    s, c = original.nest.statements[statement], made.nest.statements[copy]
    instance = [made.nest.affine(e, c.dims) for e in c.assign.instance]
    if None in instance or len(instance) != len(s.dims):
        raise GenerationError(f"which iteration of {statement} a copy runs is not affine")
    everywhere = isl.Map(f"{made.prefix}{{ {made.instance(c)} -> {s.name}[{', '.join(map(str, instance))}] }}")
    return everywhere.intersect_domain(made.domain(copy))


def instances_run(original: Space, nest: LoopNest, statement: str) -> isl.Set:
    """Return { statement[loops in ``original``] : the nest runs it }. GenerationError where that is not known."""
    copies = (copy for copy, assign in nest.copies.items() if assign.name == statement)
    maps = (instance_map(original, nest.space, copy, statement) for copy in copies)
    return reduce(isl.Set.union, (m.range() for m in maps)).coalesce()


def _instances(made: Space, copy: str, assign: Assign) -> isl.Map:
    """Return { copy[loops] -> statement[values of the loops of the nest] } of a generated statement."""
    c = made.nest.statements[copy]
    values = [made.nest.affine(e, c.dims) for e in assign.instance]
    if None in values or not c.exact:
        raise GenerationError("the conditions of its loops cannot be analysed")
    everywhere = isl.Map(f"{made.prefix}{{ {made.instance(c)} -> {assign.name}[{', '.join(map(str, values))}] }}")
    return everywhere.intersect_domain(made.domain(copy))


def _pieces(original: Space, made: Space, copy: str, statement: str) -> Iterator[SchedulePiece]:
    domain = original.domain(statement)
    back = coalesce(instance_map(original, made, copy, statement).reverse().intersect_domain(domain))
    for k, dim in enumerate(original.nest.statements[statement].dims):
        back = back.set_dim_name(isl.dim_type.in_, k, dim)
    pieces: list[tuple[isl.Set, isl.MultiAff]] = []
    isl.PwMultiAff.from_map(back).foreach_piece(lambda where, values: pieces.append((where, values)))
    c = made.nest.statements[copy]
    for where, values in pieces:
        env = {dim: _text(values.get_at(k).to_str()) for k, dim in enumerate(c.dims)}
        time = tuple(env.get(entry, entry) for entry in c.time)
        for basic in where.gist(domain).get_basic_sets():
            yield SchedulePiece(time, "" if basic.plain_is_universe() else _condition(basic.to_str()))


def _text(aff: str) -> str:
    """Return an expression as isl text without its space.

    >>> _text("[n] -> { S[i, j] -> [(-1 + 2i + j)] }")
    '(-1 + 2*i + j)'
    """
    inner = aff[aff.rindex("[") + 1 : aff.rindex("]")]
    return re.sub(r"(\d)(?=[A-Za-z_(])", r"\1*", inner)


def _condition(basic: str) -> str:
    """Return a condition as isl text without its space.

    >>> _condition("[n] -> { S[i, j] : i >= n and 2i = j }")
    'i >= n and 2*i = j'
    """
    return re.sub(r"(\d)(?=[A-Za-z_(])", r"\1*", basic[basic.index(" : ") + 3 : basic.rindex("}")].strip())


def _templates(loops: Sequence[Loop], times: isl.Map) -> tuple[Loop | None, ...]:
    """Return for each entry of the times the innermost loop on which it depends, each loop at most once.

    Entries that depend on few loops choose first: of (2*t + i, t) the second takes t, the first i. Returns () if that
    is not the same for all pieces of the times.
    """
    found = {_templates_of_piece(loops, basic) for basic in times.get_basic_maps()}
    return found.pop() if len(found) == 1 else ()


def _templates_of_piece(loops: Sequence[Loop], times: isl.BasicMap) -> tuple[Loop | None, ...]:
    involved: list[set[int]] = [set() for _ in range(times.dim(isl.dim_type.out))]
    for c in times.get_constraints():
        if c.is_equality():
            mine = {k for k in range(len(loops)) if c.involves_dims(isl.dim_type.in_, k, 1)}
            entries = [k for k in range(len(involved)) if c.involves_dims(isl.dim_type.out, k, 1)]
            if len(entries) == 1:
                involved[entries[0]] |= mine
    found: list[Loop | None] = [None] * len(involved)
    left = set(range(len(loops)))
    for entry in sorted(range(len(involved)), key=lambda k: (len(involved[k]), k)):
        free = involved[entry] & left
        if free:
            found[entry] = loops[max(free)]
            left.discard(max(free))
    return tuple(found)
