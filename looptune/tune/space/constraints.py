"""``where unroll(i) * unroll(j) <= 16``: a condition on the directives of one configuration.

    directive(loop)    its number: 4 for `unroll 4` on loop i and `tile i:4`; the words of `permute i, j`; 1 if absent
                       a loop goes by the name it has in the line: unroll(i), unroll(2), unroll(2.1)
    blocksize(0)       the block's x extent, blocksize(1) its y extent; other codelet directives are maxregs(codelet)
    + - * // %   == != < <= > >=   and or not   ( )   integers   "words" or words

The text is Python's expression grammar, read with ``ast`` and walked over a whitelist: nothing is executed.
ParseError says which part is outside of it, or which operands cannot be compared.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.ir.nodes import Arg
from looptune.schedule import directives as transforms
from looptune.schedule.directive_lines import DirectiveLine, subspan

Value = int | str
Facts = Mapping[tuple[str, str], Value]
"""(directive, loop) to what ``directive(loop)`` means."""

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    }
)
_TEXTS: Mapping[type[ast.AST], str] = MappingProxyType(
    {ast.Div: "/ (write //)", ast.Pow: "**", ast.Attribute: "a dot", ast.Subscript: "[ ]", ast.IfExp: "if"}
)
_LARGEST = 300
_PIECE = re.compile(r"\(\s*(\w+\.\d+)\s*\)")
_ORDER: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
    }
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on configurations; ``names`` are the (directive, loop) pairs that it reads."""

    text: str
    span: Span
    tree: ast.expr
    names: tuple[tuple[str, str], ...]

    def holds(self, facts: Facts) -> bool:
        return bool(_Meaning(self.span, facts).value(self.tree))


def parse(text: str, span: Span) -> Constraint:
    """Return the condition that ``text`` states; ``span`` is the place of the text.

    Raises ParseError if the text is not an expression of the grammar above.
    """
    quoted = _PIECE.sub(r'("\1")', text.strip())  # 2.1 would be a number to Python, i.2 no expression at all
    try:
        tree = ast.parse(quoted, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"`{text}` is not a condition", span) from error
    _check(tree, span)
    return Constraint(text, span, tree, tuple(_names(tree)))


def facts(directives: Iterable[DirectiveLine]) -> dict[tuple[str, str], Value]:
    """Return the value of ``directive(loop)`` for each directive.

    >>> from looptune.ir.nodes import Directive
    >>> facts([DirectiveLine("loop", "i", Directive("unroll", (Arg("", (4,)), Arg("jam"))))])
    {('unroll', 'i'): 4}
    """
    known: dict[tuple[str, str], Value] = {}
    for placed in directives:
        name = placed.directive.name.lower()
        at = placed.loop if placed.where != "codelet" else placed.where
        for arg in placed.directive.args:
            match arg:
                case Arg(word, numbers) if "blocksize" in (word.lower(), name):
                    known |= {("blocksize", str(axis)): n for axis, n in enumerate(numbers) if isinstance(n, int)}
                case Arg("", (int(number), *_)):
                    known.setdefault((name, at), number)
                case Arg(loop, (int(number),)):
                    known[name, loop] = number
                    known.setdefault((name, at), number)
        words = ", ".join(arg.key for arg in placed.directive.args if arg.key)
        known.setdefault((name, at), words if words else name)
    return known


def _names(tree: ast.expr) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(name), [argument], []):
                yield transforms.current_name(name.lower()), _loop(argument)


def _check_named(name: str, span: Span) -> None:
    """ParseError, with the nearest, where there is no directive of that name: it would be 1 everywhere."""
    known = ("blocksize", *transforms.names())
    if transforms.current_name(name.lower()) in known:
        return
    near = difflib.get_close_matches(name.lower(), known, 1)
    raise ParseError(f"unknown directive '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""), span)


def _check(tree: ast.expr, span: Span) -> None:
    """Refuse what ``_Meaning`` has no rule for, before any configuration is looked at."""
    nodes = list(ast.walk(tree))
    if len(nodes) > _LARGEST:
        raise ParseError(f"a condition has at most {_LARGEST} parts; write several `where` lines", span)
    for node in nodes:
        match node:
            case ast.Call(ast.Name(name), [ast.Name() | ast.Constant(int() | str())], []):
                _check_named(name, _span(node, span))
            case ast.Call():
                raise ParseError("a call is directive(loop), such as unroll(i) or blocksize(0)", _span(node, span))
            case ast.Constant(int() | str()) | ast.Compare() | ast.BoolOp() | ast.BinOp() | ast.Name() | ast.Load():
                pass
            case ast.UnaryOp(ast.Not() | ast.USub()) | ast.boolop() | ast.Not() | ast.USub():
                pass
            case _ if type(node) in _ARITHMETIC or type(node) in _ORDER:
                pass
            case _:
                text = _TEXTS.get(type(node), type(node).__name__)
                where = _span(node, span) if isinstance(node, ast.expr) else span
                raise ParseError(f"{text} is outside the language of conditions", where)


def _loop(argument: ast.expr) -> str:
    match argument:
        case ast.Name(name):
            return name
        case ast.Constant(value):
            return str(value)
    raise AssertionError("_check has seen every call")


def _span(node: ast.AST, span: Span) -> Span:
    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", span.width)
    return subspan(span, start, end - start)


@dataclass(frozen=True, slots=True)
class _Meaning:
    span: Span
    facts: Facts

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.BoolOp(ast.And(), parts):
                return all(self.value(part) for part in parts)
            case ast.BoolOp(ast.Or(), parts):
                return any(self.value(part) for part in parts)
            case ast.UnaryOp(ast.Not(), arg):
                return not self.value(arg)
            case ast.UnaryOp(ast.USub(), arg):
                return -self.number(arg)
            case ast.BinOp(lhs, op, rhs):
                return self.arithmetic(node, type(op), lhs, rhs)
            case ast.Compare(left, ops, rest):
                return self.compare(left, ops, rest)
            case ast.Call(ast.Name(name), [argument], []):
                return self.facts.get((transforms.current_name(name.lower()), _loop(argument)), 1)
            case ast.Constant(int() | str()) as constant:
                return _canonical(constant.value)
            case ast.Name(word):
                return word
        raise AssertionError(f"_check has refused {ast.dump(node)}")

    def number(self, node: ast.expr) -> int:
        match self.value(node):
            case int(value):
                return value
            case value:
                raise ParseError(f"`{value}` is not a number", _span(node, self.span))

    def arithmetic(self, node: ast.expr, op: type[ast.operator], lhs: ast.expr, rhs: ast.expr) -> int:
        a, b = self.number(lhs), self.number(rhs)
        if b == 0 and op in (ast.FloorDiv, ast.Mod):
            raise ParseError("division by zero", _span(node, self.span))
        return _ARITHMETIC[op](a, b)

    def compare(self, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]) -> bool:
        values = [self.value(x) for x in (left, *rest)]
        # A word is never below a number; an absent permute(i) is 1, so equality between kinds must stay defined.
        for op, a, b in zip(ops, values, values[1:], strict=False):
            if isinstance(a, str) != isinstance(b, str) and not isinstance(op, ast.Eq | ast.NotEq):
                raise ParseError(f"`{a}` and `{b}` cannot be compared", self.span)
        return all(_ORDER[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False))


def _canonical(value: object) -> Value:
    match value:
        case str():
            return ", ".join(" ".join(item.split()) for item in value.split(","))
        case int():
            return int(value)
    raise AssertionError("a constant is an int or a string here")
