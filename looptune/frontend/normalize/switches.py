"""``switch`` as conditions.

    switch (x) { case 1: A; break;  case 2: B;  default: C; }

    v = x;  if (v == 1) A;  else { through = 0; if (v == 2) { through = 1; B } if (through || v is neither) C }

Cases that end in ``break`` become branches of one ``if``; those that fall through share a branch, in which a variable
says that the case before was entered. ``break`` leaves the whole, as a region. The ends of a range, ``case 1 ... 5`` of
GNU C, are compared with ``v``. Values of cases are converted to the type of ``v``, as in C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count, pairwise
from typing import Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.normalize.structured_jumps import ends_in_jump, leaving

Items = tuple[c_ast.Item, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    """The statements from some labels to the next ones; ``default`` is among the labels."""

    values: tuple[c_ast.Case, ...]
    default: bool
    items: Items


def replace_switches(items: Items, numbers: Iterator[int] | None = None) -> Items:
    """Return the statements without ``switch``.

    Raises UnsupportedError for a case inside of another statement, and for one that an earlier case contains.
    """
    numbers = count(1) if numbers is None else numbers

    def rule(node: Any) -> Any:
        if isinstance(node, c_ast.Switch):
            return _replaced(replace(node, body=rule(node.body)), next(numbers))
        return c_ast.map_children(rule, node)

    return tuple(rule(item) for item in items)


def _replaced(switch: c_ast.Switch, number: int) -> c_ast.Item:
    declared, sections = _sections(switch)
    name, region = f"chosen#v{number}", f"switch{number}"
    value = c_ast.Name(name, span=switch.cond.span)
    promoted = c_ast.Unary("+", switch.cond, span=switch.cond.span)
    held = c_ast.Declare(name, c_ast.TypeOf(promoted), promoted, span=switch.cond.span)
    known = [v for s in sections for v in s.values]
    _check_distinct(known)
    branches = [_Branch(value, chain, known, f"through#v{number}") for chain in _chains(sections)]
    ordered = sorted(branches, key=lambda b: b.default)
    chosen: Items = ()
    for branch in reversed(ordered):
        if branch.default:
            chosen = branch.items()
        else:
            rest = c_ast.Block(chosen)
            chosen = (c_ast.If(branch.condition(), c_ast.Block(branch.items()), rest, span=switch.span),)
    inner = leaving(chosen, "break", region)
    return c_ast.Block((*declared, held, c_ast.Region(region, inner, span=switch.span)), span=switch.span)


def _sections(switch: c_ast.Switch) -> tuple[Items, list[_Section]]:
    """Return the declarations before the first case, and the sections."""
    declared: list[c_ast.Item] = []
    sections: list[_Section] = []
    for item in switch.body.items:
        match item:
            case c_ast.Case(value):
                new = _Section(() if value is None else (item,), value is None, ())
                if sections and not sections[-1].items:
                    last = sections.pop()
                    new = _Section(last.values + new.values, last.default or new.default, ())
                sections.append(new)
            case _ if sections:
                sections[-1] = replace(sections[-1], items=(*sections[-1].items, item))
            case c_ast.Declare():
                declared.append(replace(item, init=None))
        nested = next((n for n in _below(item) if isinstance(n, c_ast.Case)), None)
        if nested is not None:
            raise UnsupportedError("a case inside of another statement of its switch is not accepted", nested.span)
    return tuple(declared), sections


def _check_distinct(cases: Sequence[c_ast.Case]) -> None:
    """Raise UnsupportedError at a case of which an earlier one has a value that no type of a switch changes."""
    known = [(case.known, k) for k, case in enumerate(cases) if case.known is not None]
    plain = sorted((ends, k) for ends, k in known if -(2**31) <= ends[0] <= ends[1] < 2**31)
    for (a, j), (b, k) in pairwise(plain):
        if b[0] <= a[1]:
            message = f"a case of the switch in line {cases[min(j, k)].span.line} has this value too"
            raise UnsupportedError(f"{message}: leave one of them out", cases[max(j, k)].span)


def _below(item: Any) -> Iterator[Any]:
    """Yield what is inside a statement, other switches apart."""
    for child in c_ast.children(item):
        if not isinstance(child, c_ast.Switch):
            yield child
            yield from _below(child)


def _chains(sections: Sequence[_Section]) -> Iterator[tuple[_Section, ...]]:
    """Yield the sections in groups that nothing enters from the section before."""
    chain: list[_Section] = []
    for section in sections:
        chain.append(section)
        if ends_in_jump(section.items):
            yield tuple(chain)
            chain = []
    if chain:
        yield tuple(chain)


@dataclass(frozen=True, slots=True)
class _Branch:
    value: c_ast.Name
    chain: tuple[_Section, ...]
    known: Sequence[c_ast.Case]
    through: str

    @property
    def default(self) -> bool:
        return any(s.default for s in self.chain)

    def condition(self) -> c_ast.Expr:
        return self.any_of(tuple(v for s in self.chain for v in s.values))

    def any_of(self, values: Sequence[c_ast.Case]) -> c_ast.Expr:
        return reduce(lambda a, b: c_ast.Binary("||", a, b, span=b.span), map(self.test, values))

    def test(self, case: c_ast.Case) -> c_ast.Expr:
        """Return whether the value is that of a case, or in the range of one."""
        assert case.value is not None, "the default is in no list of cases"
        kind = c_ast.TypeOf(self.value)
        ends = (case.value, case.value if case.last is None else case.last)
        first, last = (c_ast.Cast(kind, end, span=end.span) for end in ends)
        if case.last is None:
            return c_ast.Binary("==", self.value, first, span=first.span)
        least = c_ast.Binary(">=", self.value, first, span=first.span)
        return c_ast.Binary("&&", least, c_ast.Binary("<=", self.value, last, span=last.span), span=case.span)

    def entered(self, section: _Section) -> c_ast.Expr:
        if not section.default:
            return self.any_of(section.values)
        others = [v for v in self.known if v not in section.values]
        one = c_ast.Number("1", span=self.value.span)
        return c_ast.Unary("!", self.any_of(others), span=self.value.span) if others else one

    def items(self) -> Items:
        """Return the statements of the branch; of several sections each but the first asks whether it is reached."""
        if len(self.chain) == 1:
            return self.chain[0].items
        span = self.value.span
        through = c_ast.Name(self.through, span=span)

        def set_to(text: str) -> c_ast.Evaluate:
            return c_ast.Evaluate(c_ast.Assignment("", through, c_ast.Number(text, span=span), span=span), span=span)

        made: list[c_ast.Item] = [c_ast.Declare(self.through, c_ast.Basic("int32"), c_ast.Number("0"), span=span)]
        for section in self.chain:
            cond = c_ast.Binary("||", through, self.entered(section), span=span)
            made.append(c_ast.If(cond, c_ast.Block((set_to("1"), *section.items)), c_ast.Block(()), span=span))
        return tuple(made)
