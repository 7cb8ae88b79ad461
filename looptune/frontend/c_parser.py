"""Parse preprocessed text to ``c_ast.File``; pycparser is imported only here and in the three modules named below.

``c_lexer`` gives pycparser the tokens, ``parsable_text`` says what is left out of a file that it cannot read as a
whole, and ``parsed_nodes`` has what is asked of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pycparser import c_ast
from pycparser.c_generator import CGenerator

from looptune.core.errors import ParseError, UnsupportedError
from looptune.core.source import Span
from looptune.frontend import c_ast as s
from looptune.frontend import parsed_nodes as nodes
from looptune.frontend.c_types import as_attributed, enumerated_type, named_type
from looptune.frontend.gnu_syntax import LABEL, RANGE, REFUSED, SAME
from looptune.frontend.heap_arrays import declare_heap_arrays
from looptune.frontend.hint_calls import without_hints
from looptune.frontend.incomplete_structs import completed, named_fields
from looptune.frontend.initial_values import DESIGNATED, has_each, is_of_numbers, string_values
from looptune.frontend.lower_expressions import Expressions
from looptune.frontend.normalize.sizes import replace_sizeof
from looptune.frontend.other_languages import is_cxx
from looptune.frontend.parsable_text import parsed
from looptune.frontend.parsed_nodes import as_written
from looptune.frontend.pragma import Pragma, SourceText, classify, join_continued, span_over
from looptune.frontend.predefined_macros import TYPEOF
from looptune.frontend.scop_ends import with_pragmas
from looptune.frontend.statement_expressions import statement_expression
from looptune.frontend.symbol_table import Options, Scope
from looptune.frontend.types_of_expressions import with_known_types
from looptune.ir.nodes import Const, Expr
from looptune.ir.simplify import is_integer

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Preprocessed


def parse(source: Preprocessed, dtype: str | None, needed: Callable[[str, str], bool]) -> s.File:
    """Return the functions and variables of the file; ``float`` and ``double`` both become ``dtype`` if it is given.

    ``needed(name, text)`` says of a function pycparser cannot read whether to give up at it; otherwise it is left out.
    Raises ParseError at the first place that is no C.
    """
    tree, assumed, skipped, emptied = parsed(source, needed)
    complete, structs = _complete_structs(source, dtype, assumed, tree)
    file = _Reader(source, dtype, assumed, complete).file(tree)
    overloaded = nodes.overload_errors(file.functions) if is_cxx(next(iter(source.sources))) else {}
    braces = {t.span for t in source.tokens if t.offset in emptied and t.text == "{"}
    functions = tuple(f for f in file.functions if f.name not in overloaded and f.open not in braces)
    return replace(file, functions=functions, skipped=(*skipped, *overloaded.values()), structs=structs)


_MOST_PARTS = 65_536
"""Parts of an initialiser list with named elements."""


class _Reader:
    """pycparser's tree to ours.

    ``types`` holds the typedefs that are visible at the place being read, and under ``enum TAG`` the enumerated types;
    ``constants`` the enumeration constants that no declaration list has yet; ``numbers`` the values of those that are
    visible; ``targets`` the labels that the function's jumps name. ``complete`` holds the structs at file scope: those
    with a tag under ``struct TAG`` as well, for where it is named before its fields are listed.
    """

    def __init__(
        self, source: Preprocessed, dtype: str | None, assumed: Mapping[str, str], complete: Mapping[str, s.Type]
    ) -> None:
        self.complete = complete
        self.source = source
        self.dtype = dtype
        self.types: dict[str, s.Type] = {
            name: s.Basic(known) if known else s.UnsupportedType(name) for name, known in assumed.items()
        }
        self.constants: list[s.Declare] = []
        self.numbers: dict[str, Expr] = {}
        self.inner: list[str] = []
        self.own_functions: frozenset[str] = frozenset()
        self.targets: frozenset[str] = frozenset()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Yield a block of C: the types that it declares end with it."""
        outer, numbers = self.types, self.numbers
        self.types, self.numbers = dict(outer), dict(numbers)
        try:
            yield
        finally:
            self.types, self.numbers = outer, numbers

    def declared_constants(self) -> tuple[s.Declare, ...]:
        """Return the enumeration constants read since the last call."""
        found = tuple(self.constants)
        self.constants.clear()
        return found

    # -- places ---------------------------------------------------------------------------------

    def token(self, node: Any) -> int | None:
        if node.coord is None or node.coord.line < 2:
            return None
        return self.source.token_at(node.coord.line - 1, node.coord.column or 1)

    def span(self, node: Any, *parts: s.Syntax, closing: str = "") -> Span:
        """From the node's own token through its parts, and the bracket that closes it."""
        at = self.token(node)
        found = [] if at is None else [self.source.tokens[at].span]
        found += [p.span for p in parts if p.span.line]
        if not found:
            return Span("", 0, 0)
        whole = found[0]
        for part in found[1:]:
            whole = span_over(whole, part)
        rest = whole.text[whole.col - 1 + whole.width :]
        if closing and rest.lstrip().startswith(closing):
            whole = replace(whole, width=whole.width + len(rest) - len(rest.lstrip()) + 1)
        return whole

    # -- declarations ---------------------------------------------------------------------------

    def file(self, tree: Any) -> s.File:
        functions: list[s.Function] = []
        variables: list[s.Declare] = []
        marks: list[Pragma] = []
        names: dict[str, str] = {}
        self.own_functions = frozenset(n.decl.name for n in tree.ext if isinstance(n, c_ast.FuncDef))
        for node in tree.ext:
            match node:
                case c_ast.Pragma():
                    marks.append(self.pragma(node))
                case c_ast.FuncDef():
                    later = [self.pragma(d) for d in node.param_decls or () if isinstance(d, c_ast.Pragma)]
                    functions.append(self.function(node, join_continued([*marks, *later])))
                    marks = []
                case c_ast.Typedef():
                    # those of the prelude say only that the name is a type
                    if node.coord.line > 1:
                        kind, at = self.type(node.type), self.token(node) or 0
                        self.types[node.name] = as_attributed(kind, node.name, self.source, at)
                        self.name_struct(names, node.name, self.types[node.name])
                        self.name_struct(names, *self.tagged(node))
                case c_ast.Decl() if isinstance(node.type, c_ast.FuncDecl):
                    functions.append(self.prototype(node, join_continued(marks)))
                    marks = []
                case c_ast.Decl():
                    variables += self.declare(node)
                    self.name_struct(names, *self.tagged(node))
                case _:
                    continue
        declared = replace_sizeof(tuple(variables), {d.name: d.type for d in variables}, ())
        found = (*self.constants, *(d for d in declared if isinstance(d, s.Declare)))
        functions = [with_known_types(f, found) for f in functions]
        return s.File(nodes.merged_functions(functions), found, (), {f.name: f.result for f in functions}, names)

    def name_struct(self, names: dict[str, str], name: str, kind: s.Type | None) -> None:
        """Keep the first name under which a struct can be declared, by its tag."""
        if isinstance(kind, s.Struct):
            names.setdefault(kind.tag, name)

    def tagged(self, node: Any) -> tuple[str, s.Type | None]:
        """Return the struct with a tag that a declaration lists, under that name."""
        while isinstance(node, c_ast.Decl | c_ast.Typedef | c_ast.TypeDecl | c_ast.PtrDecl | c_ast.ArrayDecl):
            node = node.type
        listed = isinstance(node, c_ast.Struct) and node.name is not None and node.decls is not None
        name = f"struct {node.name}" if listed else ""
        return name, self.types.get(name)

    def prototype(self, node: Any, marks: tuple[Pragma, ...]) -> s.Function:
        return s.Function(node.name, (), self.type(node.type.type), s.Block(()), marks, span=self.span(node))

    def function(self, node: Any, marks: tuple[Pragma, ...]) -> s.Function:
        declaration = node.decl.type
        if not isinstance(declaration, c_ast.FuncDecl):
            raise ParseError(
                f"{node.decl.name} has no parameter list: write it here, not in a typedef", self.span(node.decl)
            )
        # as before C89: the types stand after the parentheses
        later = {d.name: d for d in node.param_decls or () if not isinstance(d, c_ast.Pragma)}
        self.inner = []
        result = self.type(declaration.type)
        outer, self.constants = self.constants, []
        self.targets = frozenset(nodes.goto_targets(node.body))
        with self.scope():
            listed = declaration.args.params if declaration.args else ()
            params = tuple(p for d in listed for p in self.parameter(later.get(getattr(d, "name", None), d)))
            body = declare_heap_arrays(without_hints(self.block(node.body), self.own_functions), self.own_functions)
        self.constants = outer
        first = self.token(node.body)
        assert first is not None, "a body has a place"
        opening, closing = self.source.tokens[first].span, self.source.closing_token(first).span
        span = self.span(node.decl)
        return s.Function(node.decl.name, params, result, body, marks, opening, closing, tuple(self.inner), span=span)

    def parameter(self, node: Any) -> tuple[s.Declare, ...]:
        match node:
            case c_ast.EllipsisParam():
                span = self.span(node)
                return (s.Declare("...", s.UnsupportedType("a variable or untyped parameter"), span=span),)
            case c_ast.ID():  # before C89, without a type after the parentheses
                return (s.Declare(node.name, s.Basic("int32"), c=(f"int {node.name}",) * 2, span=self.span(node)),)
            case _:
                kind = self.type(node.type)
                if kind == s.Basic("void") and node.name is None:
                    return ()
                name = node.name if node.name is not None else ""
                return (
                    s.Declare(
                        name,
                        kind,
                        const="const" in node.quals,
                        c=as_written(node),
                        span=self.span(node),
                    ),
                )

    def declare(self, node: Any) -> tuple[s.Declare, ...]:
        kind = self.type(node.type)
        if node.name is None:
            self.inner.append(CGenerator().visit(node))
            return ()
        init = None if node.init is None else self.initialiser(node.init, kind)
        if isinstance(kind, s.Struct) and isinstance(node.init, c_ast.InitList):
            init = self.struct_values(node.init, kind)
        static = "static" in node.storage
        const = "const" in node.quals or "constexpr" in node.storage
        if isinstance(kind, s.ArrayOf) and kind.extent is None and has_each(init, kind):
            assert isinstance(init, s.InitializerList)
            kind = replace(kind, extent=s.Number(str(len(init.parts))))
        return (s.Declare(node.name, kind, init, static, const, c=as_written(node), span=self.span(node)),)

    def in_order(self, exprs: Sequence[Any], of: s.Type) -> tuple[s.Expr | s.InitializerList, ...]:
        """Return the parts of the list of an array of ``of``, with zeros before those that name an element further on.

        Where the elements are rows, those before have braces of their own, as parts without them are not counted.
        """
        found: list[s.Expr | s.InitializerList] = []
        for e in exprs:
            named = e.name if isinstance(e, c_ast.NamedInitializer) else []
            counted = isinstance(of, s.Basic) or all(isinstance(part, s.InitializerList) for part in found)
            if counted and [type(n) for n in named] == [c_ast.ArrayDesignator]:
                value, span = self.initialiser(e.expr, of), self.span(named[0].expr)
                first, last = self.ends(named[0].expr)[1] or (-1, -1)
                if len(found) <= first <= last < _MOST_PARTS and (first == last or nodes.is_repeatable(value)):
                    blank = s.Number("0", span=span) if isinstance(of, s.Basic) else s.InitializerList((), span=span)
                    found += [blank] * (first - len(found)) + [value] * (last - first + 1)
                    continue
            found.append(self.initialiser(e, of))
        return tuple(found)

    def struct_values(self, node: Any, kind: s.Struct) -> s.InitializerList:
        """Return the values of a struct in the order of its fields, with zeros before those that name a field."""
        found: dict[str, s.Expr | s.InitializerList] = {}
        types = dict(kind.fields)
        names = list(types)
        at = 0
        for e in node.exprs or ():
            named = e.name if isinstance(e, c_ast.NamedInitializer) else []
            if [type(n) for n in named] == [c_ast.ID] and named[0].name in types:
                at, e = names.index(named[0].name), e.expr
            name = names[at] if at < len(names) else f"{at}"
            of = types.get(name)
            if isinstance(of, s.Struct) and isinstance(e, c_ast.InitList):
                found[name] = self.struct_values(e, of)
            else:
                found[name] = self.initialiser(e)
            at += 1
        last = max((k for k, name in enumerate(names) if name in found), default=-1)
        zero = s.Number("0", span=self.span(node))
        blank = s.InitializerList((), span=zero.span)
        every = [found.pop(n, zero if isinstance(types[n], s.Basic) else blank) for n in names[: last + 1]]
        return s.InitializerList((*every, *found.values()), span=self.span(node))

    def initialiser(self, node: Any, kind: s.Type | None = None) -> s.Expr | s.InitializerList:
        """Return what a variable, an element or a row of the type ``kind`` is initialised with."""
        if isinstance(node, c_ast.NamedInitializer):
            inner = self.initialiser(node.expr)
            return s.Unsupported(DESIGNATED, "the values in order, zeros included", (), span=inner.span)
        if isinstance(node, c_ast.InitList):
            exprs = node.exprs or ()
            of = kind.of if isinstance(kind, s.ArrayOf) and is_of_numbers(kind) else None
            parts = tuple(self.initialiser(e) for e in exprs) if of is None else self.in_order(exprs, of)
            return s.InitializerList(parts, span=self.span(node))
        if isinstance(node, c_ast.Constant) and node.type == "string":
            return string_values(node.value, kind, self.span(node)) or self.expr(node)
        return self.expr(node)

    def enumerated(self, node: Any) -> s.Type:
        """Return an enumerated type, whose constants are declared where it lists them.

        The type is gcc's: unsigned where no constant is negative.
        """
        tag = f"enum {node.name}"
        if node.values is None:
            return self.types.get(tag, s.Basic("uint32"))
        before = dict(self.numbers)
        listed: list[tuple[Any, int | s.Expr]] = []
        following: int | s.Expr = 0
        for item in (e for e in node.values.enumerators if isinstance(e, c_ast.Enumerator)):
            if item.value is not None:
                following = self.evaluated(self.expr(item.value))
            listed.append((item, following))
            if isinstance(following, int):
                self.numbers[item.name] = Const(following, "int64" if following < 2**63 else "uint64")
                following += 1
            else:
                following = s.Binary("+", following, s.Number("1"))
        known = [value for _, value in listed if isinstance(value, int)]
        made = s.Basic(enumerated_type(known))
        self.numbers = before
        for item, value in listed:
            kind = s.Basic("int32")
            if isinstance(value, int):
                kind = kind if -(2**31) <= value < 2**31 else made
                self.numbers[item.name] = Const(value, kind.dtype)
            init = s.Number(f"0x{value % 2**64:x}") if isinstance(value, int) else value
            self.constants.append(s.Declare(item.name, kind, init, True, True, span=self.span(item)))
        if node.name is not None:
            self.types[tag] = made
        return made

    def struct(self, node: Any) -> s.Type:
        """Return a struct type, "a struct" where its fields are not known or have no plain type."""
        tag = f"struct {node.name}"
        if node.decls is None:
            return self.types.get(tag, self.complete.get(tag, s.UnsupportedType(tag)))
        if node.name is not None:
            self.types[tag] = s.UnsupportedType(tag)
        match node.decls:
            case [c_ast.Decl(name=name, type=c_ast.ArrayDecl(dim=c_ast.UnaryOp() as of))] if name == TYPEOF:
                return self.type(of.expr) if isinstance(of.expr, c_ast.Typename) else s.TypeOf(self.expr(of.expr))
        fields = tuple((d.name, self.type(d.type)) for d in node.decls if isinstance(d, c_ast.Decl))
        own = f"{tag}@{node.coord.line}:{node.coord.column}"
        made: s.Type
        if any(getattr(d, "bitsize", None) is not None for d in node.decls):
            made = s.Overlapping("a struct with bit-fields", own, tuple(named_fields(fields)))
        elif all(name is not None for name, _ in fields):
            made = self.complete.get(own, s.Struct(own, fields))
        else:
            made = s.Overlapping("a struct", own, tuple(named_fields(fields)))
        if node.name is not None:
            self.types[tag] = made
        return made

    def union(self, node: Any) -> s.Type:
        tag = f"union {node.name}"
        if node.decls is None:
            return self.types.get(tag, s.UnsupportedType("a union" if node.name is None else tag))
        fields = tuple((d.name, self.type(d.type)) for d in node.decls if isinstance(d, c_ast.Decl))
        at = f"{node.coord.line}:{node.coord.column}"
        self.types[tag] = s.Overlapping("a union", f"{tag}@{at}", tuple(named_fields(fields)))
        return self.types[tag]

    def evaluated(self, e: s.Expr) -> int | s.Expr:
        """Return the value of an integer constant expression, or the expression where it is none that is read."""
        try:
            value = Expressions(Scope(s.File((), ()), Options(), bound=dict(self.numbers))).value(e)
        except (ParseError, UnsupportedError):
            return e
        return int(value.value) if isinstance(value, Const) and is_integer(value.dtype) else e

    def type(self, node: Any) -> s.Type:
        match node:
            case c_ast.TypeDecl():
                return self.type(node.type)
            case c_ast.Typename():
                return self.type(node.type)
            case c_ast.PtrDecl():
                return s.Pointer(self.type(node.type))
            case c_ast.ArrayDecl():
                return s.ArrayOf(self.type(node.type), None if node.dim is None else self.expr(node.dim))
            case c_ast.Enum():
                return self.enumerated(node)
            case c_ast.IdentifierType():
                return named_type(node.names, self.types, self.dtype)
            case c_ast.FuncDecl():
                return s.UnsupportedType("a function pointer")
            case c_ast.Struct():
                return self.struct(node)
            case c_ast.Union():
                return self.union(node)
            case _:
                return s.UnsupportedType("this type")

    # -- statements -----------------------------------------------------------------------------

    def pragma(self, node: Any) -> Pragma:
        if isinstance(node.string, str):
            if not node.string.strip().isdigit():
                raise ParseError("#pragma does not begin its line: write it on a line of its own", self.span(node))
            return self.source.pragmas[int(node.string)]
        at = self.span(node)
        return classify(SourceText.at(node.string.value[1:-1].replace('\\"', '"'), at))

    def block(self, node: Any) -> s.Block:
        """Return a statement as a block; pragmas that one ``&`` joins become one."""
        match node:
            case None:
                return s.Block(())
            case c_ast.Compound() if nodes.is_braceless(node):
                with self.scope():
                    return s.Block(self.items(node.block_items))
            case c_ast.Compound():
                with self.scope():
                    return s.Block(self.items(node.block_items or []), span=self.span(node))
            case _:
                with self.scope():
                    return s.Block(self.items([node]))

    def items(self, nodes: list[Any]) -> tuple[s.Item, ...]:
        found: list[s.Item] = []
        marks: list[Pragma] = []
        for node in nodes:
            if isinstance(node, c_ast.Pragma):
                marks.append(self.pragma(node))
                continue
            found = with_pragmas(found, join_continued(marks))
            marks = []
            made = self.item(node)
            found += [*self.declared_constants(), *made]
        return tuple(with_pragmas(found, join_continued(marks)))

    def item(self, node: Any) -> tuple[s.Item, ...]:
        span = self.span(node)
        match node:
            case c_ast.Decl() if isinstance(node.type, c_ast.FuncDecl):
                return ()
            case c_ast.Decl():
                return self.declare(node)
            case c_ast.DeclList():
                return tuple(d for n in node.decls for d in self.item(n))
            case c_ast.Typedef():
                self.types[node.name] = self.type(node.type)
                self.inner.append(CGenerator().visit(node))
                return ()
            case c_ast.EmptyStatement() | c_ast.StaticAssert():
                return ()
            case c_ast.Compound():
                return (self.block(node),)
            case c_ast.For():
                return (self.loop(node),)
            case c_ast.While() | c_ast.DoWhile():
                after = isinstance(node, c_ast.DoWhile)
                return (s.While(self.expr(node.cond), self.block(node.stmt), after, span=span),)
            case c_ast.If():
                then, other = self.block(node.iftrue), self.block(node.iffalse)
                return (s.If(self.expr(node.cond), then, other, span=span),)
            case c_ast.Return():
                return (s.Return(None if node.expr is None else self.expr(node.expr), span=span),)
            case c_ast.Continue() | c_ast.Break() | c_ast.Goto():
                return (s.Jump(type(node).__name__.lower(), getattr(node, "name", ""), span=span),)
            case c_ast.Switch():
                return (s.Switch(self.expr(node.cond), self.block(node.stmt), span=span),)
            case c_ast.Label():
                label = (s.Label(node.name, span=span),) if node.name in self.targets else ()
                return (*label, *self.items(nodes.labelled(node.stmt)))
            case c_ast.Case() | c_ast.Default():
                begin = self.case(node) if isinstance(node, c_ast.Case) else s.Case(None, span=span)
                return begin, *self.items([n for stmt in node.stmts or [] for n in nodes.labelled(stmt)])
            case _:
                expr = self.expr(node)
                return (s.Evaluate(expr, span=expr.span),)

    def case(self, node: Any) -> s.Case:
        """Return a label of a switch with its value, or with the first and the last of a range."""
        ends, known = self.ends(node.expr)
        return s.Case(ends[0], ends[1] if len(ends) > 1 else None, known, span=self.span(node))

    def ends(self, node: Any) -> tuple[tuple[s.Expr, ...], tuple[int, int] | None]:
        """Return a value, or the first and the last of a range, and the first and the last as numbers."""
        match node:
            case c_ast.FuncCall(name=c_ast.ID(name=name)) if name == RANGE:
                ends = tuple(map(self.expr, node.args.exprs))
            case _:
                ends = (self.expr(node),)
        match [self.evaluated(e) for e in ends]:
            case [int(first), *_, int(last)] | [int(first as last)]:
                return ends, (first, last)
        return ends, None

    def loop(self, node: Any) -> s.For:
        with self.scope():
            return self.for_(node)

    def for_(self, node: Any) -> s.For:
        match node.init:
            case None:
                init: tuple[s.Item, ...] = ()
            case c_ast.DeclList():
                init = tuple(d for n in node.init.decls for d in self.item(n))
            case _:
                init = self.item(node.init)
        cond = None if node.cond is None else self.expr(node.cond)
        step = None if node.next is None else self.expr(node.next)
        return s.For(init, cond, step, self.block(node.stmt), span=self.span(node))

    # -- expressions ----------------------------------------------------------------------------

    def expr(self, node: Any) -> s.Expr:
        match node:
            case c_ast.Constant():
                return self.constant(node)
            case c_ast.ID():
                at = self.token(node)
                macro = None if at is None else self.source.tokens[at].macro
                return s.Name(node.name, macro, span=self.span(node))
            case c_ast.ArrayRef():
                base, index = self.expr(node.name), self.expr(node.subscript)
                return s.Index(base, index, span=self.span(node, base, index, closing="]"))
            case c_ast.UnaryOp():
                return self.unary(node)
            case c_ast.BinaryOp():
                lhs, rhs = self.expr(node.left), self.expr(node.right)
                return s.Binary(node.op, lhs, rhs, span=self.span(node, lhs, rhs))
            case c_ast.TernaryOp():
                return self.ternary(node)
            case c_ast.Cast():
                arg = self.expr(node.expr)
                return s.Cast(self.type(node.to_type), arg, span=self.span(node, arg))
            case c_ast.StructRef():
                inner = self.expr(node.name)
                whole = span_over(self.span(node, inner), self.span(node.field))
                arrow = node.type == "->"
                if arrow and isinstance(inner, s.Unary) and inner.op == "&":
                    arrow, inner = False, inner.arg
                return s.Field(inner, node.field.name, arrow, span=whole)
            case c_ast.FuncCall(name=c_ast.ID(name=name)) if name == LABEL:
                return s.Unsupported("the address of a label, which is GNU C,", "a switch", span=self.span(node))
            case c_ast.FuncCall(name=c_ast.ID(name=name)):
                args = tuple(self.expr(a) for a in (node.args.exprs if node.args else ()))
                whole = self.span(node, *args, closing=")")
                return s.Call(name, args, span=self.span(node) if name in REFUSED else whole)
            case c_ast.Assignment():
                target, value = self.expr(node.lvalue), self.expr(node.rvalue)
                return s.Assignment(node.op[:-1], target, value, span=self.span(node, target, value))
            case c_ast.ExprList():
                parts = tuple(self.expr(e) for e in node.exprs)
                return s.Comma(parts, span=self.span(node, *parts))
            case _:
                return self.strange(node)

    def ternary(self, node: Any) -> s.Expr:
        """Return a condition with its two values; ``a ?: b`` has that of ``a``, which must have no effects."""
        cond, then, other = self.expr(node.cond), self.expr(node.iftrue), self.expr(node.iffalse)
        if isinstance(then, s.Call) and then.name == SAME:
            if not nodes.is_repeatable(cond):
                what = "`a ?: b`, which is GNU C, of an expression with effects"
                return s.Unsupported(what, "its value as a variable", (cond, other), span=then.span)
            then = cond
        return s.Ternary(cond, then, other, span=self.span(node, cond, then, other))

    def unary(self, node: Any) -> s.Expr:
        if node.op == "_Alignof":
            return s.Unsupported(node.op, "the number", span=self.span(node))
        if node.op == "sizeof":
            of = self.type(node.expr) if isinstance(node.expr, c_ast.Typename) else self.expr(node.expr)
            return s.SizeOf(node.op, "the number", (), of, span=self.span(node))
        arg = self.expr(node.expr)
        match arg:
            case s.Cast(s.UnsupportedType("__real__" | "__imag__" as part), of) if node.op == "~":
                return s.Field(of, part.strip("_")[:2], False, span=arg.span)
        if node.op == "*" and isinstance(arg, s.Unary) and arg.op == "&":
            return arg.arg
        op = node.op.removeprefix("p")
        prefix = op == node.op
        span = self.span(node, arg)
        return s.Unary(op, arg, prefix, span=nodes.operator_span(span, op) if prefix else span)

    def constant(self, node: Any) -> s.Expr:
        span = self.span(node)
        if node.type == "string":
            return s.Unsupported("a string", "numbers", span=span)
        return s.Number(node.value, span=span)

    def strange(self, node: Any) -> s.Unsupported:
        span = self.span(node)
        parts = tuple(map(self.expr, nodes.variables_within(node)))
        match node:
            case c_ast.CompoundLiteral():
                kind = self.type(node.type)
                if isinstance(kind, s.Struct):
                    init = self.struct_values(node.init, kind)
                    return s.StructLiteral("a compound literal", "a declared struct", (), kind, init, span=span)
                return s.Unsupported("a compound literal", "a declared array", parts, span=span)
            case c_ast.FuncCall():
                called = tuple(map(self.expr, (node.name, *(node.args.exprs if node.args else ()))))
                return s.PointerCall("a call through a pointer", "the function's name", called, span=span)
            case c_ast.Compound():
                return statement_expression(self.block(node), parts, span)
            case _:
                return s.Unsupported("this expression", "plain arithmetic", parts, span=span)


def _complete_structs(
    source: Preprocessed, dtype: str | None, assumed: Mapping[str, str], tree: Any
) -> tuple[Mapping[str, s.Type], Mapping[str, s.Type]]:
    """Return the structs at file scope, with the fields of those that the text names before it lists their fields.

    First as ``completed`` does, then those and unions by the words by which the text names them.
    """
    reader = _Reader(source, dtype, assumed, {})
    for node in (n for n in tree.ext if isinstance(n, c_ast.Typedef | c_ast.Decl) and n.coord.line > 1):
        kind = reader.type(node.type)
        if isinstance(node, c_ast.Typedef):
            reader.types[node.name] = kind
    complete = completed(reader.types)
    tagged = {n: k for n, k in reader.types.items() if isinstance(k, s.Struct | s.Overlapping) and " " in n}
    return complete, {name: complete.get(name, kind) for name, kind in tagged.items()}
