"""The space of configurations that a file describes: directives with choices, addressed from outside the C text.

    loop k: { unroll {2..8}, {contiguous, split} | tile k:{2..8} | }     14 + 7 + 1 = 22 choices
    nest i: permute {i, j | j, i}                                      x  2
    where unroll(k) <= 4                                               drops some, not counted
    or
    for gpu                                                            these only if it is tuned for a GPU
    codelet: grid blocksize {32x8, 64x4}                               +  2  =  46

A line may name several loops, ``loop 3, 6: unroll {2..8}``: each gets the chosen directive, as a line of its own. A
section is the product of its lines, the file the union of its sections, which a line ``or`` separates. Configurations
are numbered in the order written, the last choice changing fastest, and each is computed from its number: the product
is never stored. ParseError points at the line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

from looptune.core.errors import LooptuneError, ParseError
from looptune.core.source import Span, caret
from looptune.frontend import directive_parser
from looptune.schedule import directives
from looptune.schedule.directive_lines import Address, current_words, parse_address, parse_lines, split_lines, subspan
from looptune.tune.space import constraints as constraint
from looptune.tune.space import template
from looptune.tune.space.constraints import Constraint, Value
from looptune.tune.space.template import Choice, Template

Slots = tuple[tuple[str, Value | float], ...]

_WHERE = re.compile(r"where\b\s*", re.IGNORECASE)
_FOR = re.compile(r"for\b\s*", re.IGNORECASE)
_LOOPS = re.compile(r"(loop|nest)\s+([\w.]+(?:\s*,\s*[\w.]+)+)\s*:\s*", re.IGNORECASE)

DEVICES = ("cpu", "gpu")
"""What a section may be for."""
COUNTED = 20_000
"""Numbers of a section with a ``where`` that are looked at one by one to count: about a second."""


@dataclass(frozen=True, slots=True)
class Configuration:
    r"""Concrete directives, one a line, each of which is valid input; ``slots`` has the choices that made them.

    >>> Configuration(("loop k: unroll 4, split", "nest i: permute j, i")).text
    'loop k: unroll 4, split\nnest i: permute j, i'
    """

    lines: tuple[str, ...] = ()
    slots: Slots = field(default=(), compare=False)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


DEFAULT = Configuration()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a space file: its places, and its directive with choices."""

    addresses: tuple[Address, ...]
    template: Template
    span: Span


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a space file; ``device`` is the kind of device that it is for, "" for any."""

    lines: tuple[Line, ...]
    constraints: tuple[Constraint, ...]
    device: str = ""

    @property
    def size(self) -> int:
        return prod(line.template.size for line in self.lines)

    @property
    def launching(self) -> bool:
        """Return whether all lines are for the codelet, so that the section changes launches and no loop."""
        return all(address.where == "codelet" for line in self.lines for address in line.addresses)

    def configuration(self, index: int) -> Configuration | None:
        naming = _Naming()
        digits = []
        for line in reversed(self.lines):
            index, digit = divmod(index, line.template.size)
            digits.append(digit)
        picked = [naming.pick(line, digit) for line, digit in zip(self.lines, reversed(digits), strict=True)]
        lines = tuple(text for texts in picked for text in texts)
        if self.constraints:
            known = {name: value for line in lines for name, value in _facts(line)}
            if not all(condition.holds(known) for condition in self.constraints):
                return None
        return Configuration(lines, tuple(naming.slots))


@dataclass(frozen=True, slots=True)
class Space:
    """The sections of a space file; ``warnings`` are messages about lines that have no effect."""

    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()

    def on(self, device: str) -> Space:
        """Return the space without the sections for other devices."""
        return Space(tuple(s for s in self.sections if s.device in ("", device)), self.warnings)

    @property
    def size(self) -> int:
        """Return how many indices there are, before ``where`` and before equal texts are dropped."""
        return sum(section.size for section in self.sections)

    @property
    def versions(self) -> int:
        """Return how many configurations there are.

        The number is exact for sections of up to COUNTED indices; for larger sections ``where`` is not considered.
        """
        return sum(
            section.size
            if not section.constraints or section.size > COUNTED
            else sum(section.configuration(index) is not None for index in range(section.size))
            for section in self.sections
        )

    def __getitem__(self, index: int) -> Configuration | None:
        """Return configuration number ``index``, or None if a ``where`` forbids it."""
        if index < 0:
            raise IndexError(index)
        for section in self.sections:
            if index < section.size:
                return section.configuration(index)
            index -= section.size
        raise IndexError(index)

    def __iter__(self) -> Iterator[Configuration]:
        """Every allowed configuration in the fixed order."""
        for section in self.sections:
            for index in range(section.size):
                configuration = section.configuration(index)
                if configuration is not None:
                    yield configuration


def parse(text: str, file: str) -> Space:
    """Return the space ``text`` describes; ``file`` names it in messages."""
    written = [Section((), ())]
    for content, span in split_lines(text.splitlines(), file):
        section, where, only = written[-1], _WHERE.match(content), _FOR.match(content)
        if content.strip().lower() == "or":
            written.append(Section((), ()))
        elif where is not None:
            condition = content[where.end() :]
            asked = constraint.parse(condition, subspan(span, where.end(), len(condition)))
            written[-1] = replace(section, constraints=(*section.constraints, asked))
        elif only is not None:
            written[-1] = replace(section, device=_device(content, only.end(), section, span))
        else:
            written[-1] = replace(section, lines=(*section.lines, _line(content, span)))
    sections = tuple(written)
    return Space(sections, tuple(dict.fromkeys(message for section in sections for message in _examine(section))))


def product(lines: Iterable[tuple[str, str, Span]]) -> Space:
    """Return the space of one section: for each line the place, the directive with its choices, and its span."""
    read = tuple(Line((parse_address(f"{place}:", span)[0],), template.parse(text, span), span)
                 for place, text, span in lines)  # fmt: skip
    section = Section(read, ())
    return Space((section,), tuple(_examine(section)))


def _device(content: str, start: int, section: Section, span: Span) -> str:
    name = content[start:].strip().lower()
    if name not in DEVICES:
        raise ParseError(f"a section is for one of: {', '.join(DEVICES)}", subspan(span, start, len(content) - start))
    if section.device:
        raise ParseError(f"this section is for {section.device} already", span)
    return name


def _line(content: str, span: Span) -> Line:
    addresses, rest, after = _addresses(content, span)
    if not rest:
        raise ParseError(f"a directive is missing after `{addresses[-1]}:`", span)
    return Line(addresses, template.parse(rest, after), after)


def _addresses(content: str, span: Span) -> tuple[tuple[Address, ...], str, Span]:
    """Return the places a line opens with, what follows the colon, and the span of that."""
    found = _LOOPS.match(content)
    if found is None:
        address, rest, after = parse_address(content, span)
        return (address,), rest, after
    names = [name.strip() for name in found[2].split(",")]
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise ParseError(f"{found[1]} {twice} is listed twice", span)
    addresses = tuple(parse_address(f"{found[1]} {name}:", span)[0] for name in names)
    rest = content[found.end() :]
    return addresses, rest, subspan(span, found.end(), len(rest))


def _examine(section: Section) -> Iterator[str]:
    """Refuse a directive that does not parse, trying every alternative once.

    Warn of words of the release before, and of conditions on what nobody says.
    """
    said, former = set(), dict[str, None]()
    for line in section.lines:
        for index in line.template.cover():
            chosen = _canonical(line.template.pick(index))
            try:
                said |= {name for text in _concrete(line, chosen) for name, _ in _facts(text)}
                parsed = directive_parser.parse(chosen, line.span) if chosen else None
                former |= dict.fromkeys(directives.renamed_words(parsed)) if parsed is not None else {}
            except LooptuneError as error:
                detail = error.message if line.template.size == 1 else f"{error.message} (chosen: `{chosen}`)"
                raise ParseError(detail, line.span) from error
    yield from former
    for condition in section.constraints:
        for directive, loop in condition.names:
            if (directive, loop) not in said:
                yield caret(condition.span, f"{directive}({loop}) is always 1: no line of this section gives it")


@dataclass(frozen=True, slots=True)
class _Naming:
    """Names the slots of one configuration: ``unroll(k)``, the next choice of that directive ``unroll(k).2``."""

    slots: list[tuple[str, Value]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def pick(self, line: Line, index: int) -> tuple[str, ...]:
        return _concrete(line, line.template.pick(index, lambda choice, value: self._add(line, choice, value)))

    def _add(self, line: Line, choice: Choice, value: Value) -> None:
        name = slot(line, choice.directive)
        count = self.counts[name] = self.counts.get(name, 0) + 1
        self.slots.append((name if count == 1 else f"{name}.{count}", value))


def slot(line: Line, directive: str) -> str:
    """Return the name of a choice of the line: ``unroll(k)``, ``blocksize``, or its place if it selects a directive."""
    loop = ", ".join(address.loop for address in line.addresses)
    if not directive:
        return f"{line.addresses[0].where} {loop}".rstrip()
    name = directives.current_name(directive)
    return f"{name}({loop})" if loop else name


def _concrete(line: Line, text: str) -> tuple[str, ...]:
    """``loop k: unroll 4, split`` with canonical spacing, for each loop; nothing where no directive was chosen."""
    chosen = current_words(_canonical(text))
    return tuple(f"{address}: {chosen}" for address in line.addresses) if chosen else ()


def _canonical(text: str) -> str:
    """One blank after a comma, none before; items left empty by an optional part are gone."""
    items = [" ".join(item.split()) for item in text.split(",")]
    return re.sub(r"\s*:\s*", ":", ", ".join(item for item in items if item))


# Lines repeat all through a product, and reading one costs more than everything else about a configuration.
@lru_cache(maxsize=16384)
def _facts(line: str) -> tuple[tuple[tuple[str, str], Value], ...]:
    return tuple(constraint.facts(parse_lines((line,))).items())
