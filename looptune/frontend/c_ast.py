"""The syntax tree of the C that the front end reads, with typedefs resolved: the result of ``c_parser``.

    Function = name, parameters (Declare), body (Block)
    Item     = Declare | Evaluate | Block | For | While | If | Switch | Case | Label | Return | Jump | PragmaItem
             | Region | Leave | Unsupported
    Expr     = Number | Name | Index | Field | Unary | Binary | Ternary | Cast | Call | Assignment | Comma | Unsupported
    Type     = Basic | Pointer | ArrayOf | TypeOf | UnsupportedType

``Region`` and ``Leave`` are what ``normalize`` makes of jumps. ``Unsupported`` is valid C that looptune does not
support; it is refused only where the codelet needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from looptune.core.errors import ParseError
from looptune.core.source import NOWHERE, Span
from looptune.frontend.pragma import Pragma


@dataclass(frozen=True, slots=True)
class Syntax:
    """Base of the nodes of the C syntax tree."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number(Syntax):
    """A constant, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Name(Syntax):
    """A name; ``macro`` is the macro from which it comes, None if it stands in the text."""

    name: str
    macro: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Index(Syntax):
    """An element ``base[index]``."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Field(Syntax):
    """A field ``base.name``; of the struct to which ``base`` points, ``base->name``, where ``arrow``."""

    base: Expr
    name: str
    arrow: bool


@dataclass(frozen=True, slots=True)
class Unary(Syntax):
    """A unary operation; op: ``+ - ! ~ * &``, and ``++ --`` (``prefix`` says on which side)."""

    op: str
    arg: Expr
    prefix: bool = True


@dataclass(frozen=True, slots=True)
class Binary(Syntax):
    """An operation with two operands."""

    op: str
    lhs: Expr
    rhs: Expr


@dataclass(frozen=True, slots=True)
class Ternary(Syntax):
    """A conditional expression ``cond ? then : other``."""

    cond: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Cast(Syntax):
    """A cast."""

    type: Type
    arg: Expr


@dataclass(frozen=True, slots=True)
class Call(Syntax):
    """A call of a function."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Assignment(Syntax):
    """The assignment ``target = value`` if op is empty, else ``target op= value``."""

    op: str
    target: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Comma(Syntax):
    """Expressions separated by commas."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class InitializerList(Syntax):
    """An initialiser list."""

    parts: tuple[Expr | InitializerList, ...]


@dataclass(frozen=True, slots=True)
class Unsupported(Syntax):
    """A construct that is not supported.

    ``what`` names it, ``alternative`` says what to write instead, ``parts`` are its expressions and statements.
    """

    what: str
    alternative: str = ""
    parts: tuple[Expr | Item, ...] = ()


@dataclass(frozen=True, slots=True)
class SizeOf(Unsupported):
    """The size of a type or of an expression, which is read where an array is allocated."""

    of: Type | Expr | None = None


@dataclass(frozen=True, slots=True)
class StructLiteral(Unsupported):
    """A compound literal of a struct, which is a variable where it can be one."""

    of: Struct | None = None
    init: InitializerList | None = None


@dataclass(frozen=True, slots=True)
class StatementExpression(Unsupported):
    """Statements in parentheses, ``({ ... })`` of GNU C, whose value is that of the expression in the last one.

    Without a ``body`` they are not supported: a jump leaves them, for instance.
    """

    body: Block | None = None


@dataclass(frozen=True, slots=True)
class PointerCall(Unsupported):
    """A call through a pointer; ``parts`` are the pointer and the arguments, which are ``expressions``."""

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Return the pointer and the arguments."""
        return tuple(e for e in self.parts if isinstance(e, Expr))


@dataclass(frozen=True, slots=True)
class Basic:
    """An arithmetic type, or void."""

    dtype: str
    """A NumPy name, or "void"."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer type."""

    to: Type


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array type; ``extent`` is None where it is open."""

    of: Type
    extent: Expr | None


@dataclass(frozen=True, slots=True)
class TypeOf:
    """The type of an expression, which is not computed: that of a variable that ``normalize`` makes."""

    of: Expr


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct type with its fields in order; ``tag`` is unique for each declaration, and so tells types apart."""

    tag: str
    fields: tuple[tuple[str, Type], ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class UnsupportedType:
    """A union, a function, ``long double``, a type nobody declared, ``struct TAG`` without fields."""

    what: str


@dataclass(frozen=True, slots=True)
class Overlapping(UnsupportedType):
    """A union, or a struct with bit-fields or fields without a name: several ``fields`` may share memory."""

    tag: str = ""
    fields: tuple[tuple[str, Type], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Declare(Syntax):
    """A declaration of a variable.

    ``c`` is its text after preprocessing, without storage class: as a parameter, where an array is a pointer, and with
    its initial value. ``on_heap``: an array that the text declares as a pointer to what it allocates.
    """

    name: str
    type: Type
    init: Expr | InitializerList | None = None
    static: bool = False
    const: bool = False
    on_heap: bool = False
    c: tuple[str, str] = field(default=("", ""), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Evaluate(Syntax):
    """An expression as a statement."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class Block(Syntax):
    """A block of declarations and statements."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class For(Syntax):
    """A ``for`` loop; ``until`` are flags of which each ends the loop before the next iteration where it is zero."""

    init: tuple[Item, ...]
    cond: Expr | None
    next: Expr | None
    body: Block
    until: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class While(Syntax):
    """A ``while`` or ``do`` loop."""

    cond: Expr
    body: Block
    after: bool = False
    """True for ``do``: the condition is looked at after the body."""


@dataclass(frozen=True, slots=True)
class If(Syntax):
    """A condition with its two branches."""

    cond: Expr
    then: Block
    other: Block


@dataclass(frozen=True, slots=True)
class Switch(Syntax):
    """A ``switch``, whose cases are among the statements of its body."""

    cond: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class Case(Syntax):
    """The place of a ``case``, or of ``default`` if the value is None.

    ``last`` is the last value of a range, ``case value ... last``; ``known`` are the first and the last as numbers.
    """

    value: Expr | None
    last: Expr | None = None
    known: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Label(Syntax):
    """The place of a label that a ``goto`` names."""

    name: str


@dataclass(frozen=True, slots=True)
class Return(Syntax):
    """A ``return`` statement."""

    value: Expr | None


@dataclass(frozen=True, slots=True)
class Jump(Syntax):
    """A jump; word: ``continue break goto``; ``label`` is where a ``goto`` goes."""

    word: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Region(Syntax):
    """Statements that a ``Leave`` of the same name ends."""

    name: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Leave(Syntax):
    """A jump to the end of the region of this name; ``word`` is the jump of the text."""

    name: str
    word: str


@dataclass(frozen=True, slots=True)
class PragmaItem(Syntax):
    """A pragma among statements."""

    pragma: Pragma


@dataclass(frozen=True, slots=True)
class Function(Syntax):
    """A function definition; ``pragmas`` precede it.

    ``open`` and ``close`` are the places of its braces; ``types`` is the text of the types that are declared inside.
    """

    name: str
    params: tuple[Declare, ...]
    result: Type
    body: Block
    pragmas: tuple[Pragma, ...] = ()
    open: Span = NOWHERE
    close: Span = NOWHERE
    types: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class File:
    """A parsed file.

    ``globals`` are the variables at file scope, and enumeration constants as const ints; ``skipped`` are the errors of
    the functions and declarations that the parser cannot read and that were not needed. ``results`` are the types that
    declared functions return, ``struct_names`` the names of structs at file scope by their tags; ``pure`` are functions
    that are said to have no effects; ``structs`` are structs and unions at file scope by ``struct TAG``, ``union TAG``.
    """

    functions: tuple[Function, ...]
    globals: tuple[Declare, ...]
    skipped: tuple[ParseError, ...] = ()
    results: Mapping[str, Type] = field(default_factory=dict)
    struct_names: Mapping[str, str] = field(default_factory=dict)
    pure: frozenset[str] = frozenset()
    structs: Mapping[str, Type] = field(default_factory=dict)


Expr = Number | Name | Index | Field | Unary | Binary | Ternary | Cast | Call | Assignment | Comma | Unsupported
Type = Basic | Pointer | ArrayOf | Struct | TypeOf | UnsupportedType
Item = (
    Declare | Evaluate | Block | For | While | If | Switch | Case | Label | Return | Jump | PragmaItem | Region | Leave
    | Unsupported
)  # fmt: skip


_NODES = (Syntax, Pointer, ArrayOf, TypeOf)


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class that can hold nodes."""
    return tuple(
        part.name
        for part in fields(kind)
        if part.name not in ("span", "text", "op", "macro", "c") and part.type not in ("str", "bool", "int")
    )


def children(node: Any) -> Iterator[Any]:
    """Yield the parts of a node in textual order, including the extents of declared types."""
    for part in _parts(node.__class__):
        value = getattr(node, part)
        if isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, _NODES))
        elif isinstance(value, _NODES):
            yield value


def walk(node: Any) -> Iterator[Any]:
    """Yield the node and all nodes below it, parents first."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        # as children(node), without a generator: analyses spend much of their time here
        below: list[Any] = []
        for part in _parts(node.__class__):
            value = getattr(node, part)
            if isinstance(value, tuple):
                below += [item for item in value if isinstance(item, _NODES)]
            elif isinstance(value, _NODES):
                below.append(value)
        below.reverse()
        waiting += below


def map_children(rule: Callable[[Any], Any], node: Any) -> Any:
    """Return the node with ``rule`` applied to each of its parts."""
    changed = {}
    for part in _parts(node.__class__):
        value = getattr(node, part)
        if isinstance(value, tuple):
            new: Any = tuple(rule(v) if isinstance(v, _NODES) else v for v in value)
            if all(v is w for v, w in zip(new, value, strict=True)):
                continue
        else:
            new = rule(value) if isinstance(value, _NODES) else value
        if new is not value:
            changed[part] = new
    return replace(node, **changed) if changed else node


def has_loop(node: Any) -> bool:
    """Tell whether the node contains a ``for`` or ``while`` loop."""
    return any(isinstance(n, For | While) for n in walk(node))
