"""What ``load`` gives: a codelet, the text it comes from, and what the text leaves to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from looptune.core.source import NOWHERE, Span
from looptune.frontend.preprocess import Preprocessed
from looptune.frontend.reference_text import Excerpt
from looptune.frontend.signature import Head
from looptune.frontend.source_layout import Layout, layout
from looptune.ir.nodes import Codelet, Directive, Loop, Node, While
from looptune.ir.rewrite import rewrite, walk

CHOICE = "{}"
"""The name of a directive whose text holds choices in braces: its one argument is the text."""


@dataclass(frozen=True, slots=True)
class FunctionPart:
    """One function of the program (or the scop in it) as the file has it.

    ``text[body[0]:body[1]]`` of the file at ``path`` is its body with both braces, or what stands between the ``#pragma
    scop`` and ``#pragma endscop`` lines. ``statements`` are those the codelet has of it; ``names`` are the function's
    own names for the codelet's, where they differ; ``write_back_error`` says why the codelet's statements cannot be
    written back under these names, where they cannot. ``open`` is the place of the function's brace, and ``region``
    says whether the codelet is a part of it. ``variables`` are the text's names of the codelet's locals that stand in
    it; ``element_names`` those of variables that the codelet has as arrays of one element, by the array. ``shadowed``
    are names of the file that mean something else somewhere in the function.
    """

    function: str
    path: str
    body: tuple[int, int]
    statements: frozenset[str]
    names: Mapping[str, str]
    write_back_error: str = ""
    open: Span = NOWHERE
    region: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    element_names: Mapping[str, str] = field(default_factory=dict)
    shadowed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PragmaChoices:
    """A directive of the file with choices in braces, and the number of the loop it stands before."""

    loop: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Unit:
    """A codelet and the text it comes from.

    ``values`` is what is known of scalar parameters by name. ``path`` and ``text`` are the file the codelet stands in
    ("<source>" for text), unpreprocessed; ``parts`` are the functions it is made of, in the order they run: one, or
    every codelet of a group. ``warnings`` are what the file has wrong and looptune read all the same, each a message
    with its line and caret. ``sources`` are all files read, by path; ``known_values`` those of ``defines`` that are
    values of parameters, not macros. ``excerpt``: the text as it can be compiled and called. ``prepared`` is the text
    after the preprocessor. ``head`` declares the function that the codelet is, or says why it cannot; None where it is
    a part of one, or several.
    """

    codelet: Codelet
    values: Mapping[str, int | float]
    path: str
    text: str
    parts: tuple[FunctionPart, ...]
    defines: Mapping[str, str]
    choices: tuple[PragmaChoices, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    known_values: Mapping[str, int | float] = field(default_factory=dict)
    excerpt: Excerpt | None = field(default=None, compare=False, repr=False)
    prepared: Preprocessed | None = field(default=None, repr=False, compare=False)
    head: Head | str | None = field(default=None, repr=False, compare=False)

    @property
    def body(self) -> tuple[int, int]:
        """Where the first part's body stands in ``text``."""
        return self.parts[0].body

    def layout(self, part: FunctionPart) -> Layout | None:
        """Where the statements of a part stand; None where a macro or another file makes them."""
        if self.prepared is None:
            return None
        within = part.body if part.region else None
        return layout(part.path, self.sources[part.path], self.prepared.tokens, part.open, within)


def choices_of(codelet: Codelet) -> tuple[Codelet, tuple[PragmaChoices, ...]]:
    """Return the codelet without the directives that hold choices, and these directives, in textual order."""
    loops = [n for n in walk(codelet.body) if isinstance(n, Loop | While)]
    found = tuple(PragmaChoices(f.number, _text(d), d.span) for f in loops for d in f.directives if d.name == CHOICE)

    def rule(node: Node) -> Node | None:
        match node:
            case Loop() | While() if any(d.name == CHOICE for d in node.directives):
                return replace(node, directives=tuple(d for d in node.directives if d.name != CHOICE))
        return None

    return (replace(codelet, body=rewrite(rule, codelet.body)) if found else codelet), found


def _text(directive: Directive) -> str:
    return directive.args[0].key
