"""The result of ``load``: a codelet, the text that it comes from, and the choices in that text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from looptune.core.source import NOWHERE, Span
from looptune.frontend.field_texts import FieldText
from looptune.frontend.hmpp import Hmpp
from looptune.frontend.preprocess import Preprocessed
from looptune.frontend.reference_text import Excerpt
from looptune.frontend.signature import Head
from looptune.frontend.source_layout import Layout, layout
from looptune.frontend.worksharing import WorksharingLoop
from looptune.ir.nodes import Codelet, Directive, Loop, Node, While
from looptune.ir.rewrite import rewrite, walk

CHOICE = "{}"
"""The name of a directive whose text holds choices in braces: its one argument is the text."""


@dataclass(frozen=True, slots=True)
class FunctionPart:
    """One function of the program, or the scop in it, as the file has it.

    ``text[body[0]:body[1]]`` of the file at ``path`` is its body with both braces, or the text between the ``#pragma
    scop`` and ``#pragma endscop`` lines. ``statements`` are the statements of the codelet that come from it; ``names``
    maps names of the codelet to names of the function where they differ; ``write_back_error`` says why the statements
    cannot be written back under these names, if they cannot. ``open`` is the place of the function's brace, and
    ``region`` says whether the codelet is a part of the function. ``variables`` are the names in the text of the
    codelet's locals; ``element_names`` those of variables that are arrays of one element in the codelet, by the array.
    ``shadowed`` are names of the file that mean something else somewhere in the function. ``pointers``
    are the arrays, by their names in the text, that may be the memory of others. ``moved`` are the pointers of the text
    that the codelet does not have, because it has their arrays and offsets. ``has_structs``: the text names fields of
    structs, for which the codelet has arrays and scalars.
    ``flags`` are the codelet's locals that say whether a jump of the text was taken. ``bare``: a scop outside of every
    function, around which one was written. ``result`` is the array of the
    codelet that holds what the function returns, "" if it returns nothing. ``rows`` are the arrays that consist of
    pointers, with the dimensions to which these lead. ``has_swaps``: the text swaps pointers in a loop, which the
    codelet does not; ``has_choices``: a condition chooses among arrays, and the codelet has the statements that follow
    twice. ``scalar_fields`` are the fields of structs, as the text reads them through pointers, that are
    scalars of the codelet. ``row_lengths`` are scalars of the codelet that the text lacks, see ``row_pointers``.
    ``texts`` say how the text writes variables of the codelet that are fields of structs. ``directive`` is the ``hmpp
    codelet`` line of the function, if it has one. ``nonnull`` are the pointers of the text that it tests for being
    null, and that the codelet assumes not to be.
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
    pointers: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    has_structs: bool = False
    flags: frozenset[str] = frozenset()
    bare: bool = False
    result: str = ""
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    has_swaps: bool = False
    has_choices: bool = False
    scalar_fields: tuple[str, ...] = ()
    row_lengths: frozenset[str] = frozenset()
    texts: Mapping[str, FieldText] = field(default_factory=dict)
    directive: Hmpp | None = None
    nonnull: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PragmaChoices:
    """A directive of the file with choices in braces, and the number of the loop after it."""

    loop: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Unit:
    """A codelet and the text that it comes from.

    ``values`` has the known values of scalar parameters by name. ``path`` and ``text`` are the codelet's file
    ("<source>" for text), not preprocessed; ``parts`` are the functions that it is made of, in the order in which they
    run: one, or every codelet of a group. ``warnings`` are mistakes of the file that did not prevent reading it, each a
    message with its line and a caret. ``sources`` are all files read, by path; ``known_values`` those of ``defines``
    that are values of parameters, not macros. ``excerpt``: the text as it can be compiled and called. ``prepared`` is
    the preprocessed text. ``head`` is the declaration of the function that is the codelet, or the reason why there is
    none; None if the codelet is a part of a function, or several functions. ``worksharing`` are the loops of its
    function that OpenMP or OpenACC pragmas run in parallel.
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
    worksharing: tuple[WorksharingLoop, ...] = field(default=(), repr=False, compare=False)

    @property
    def names(self) -> dict[str, str]:
        """Return the names in the text of the codelet's locals and of the scalars that it leaves in arrays."""
        found: dict[str, str] = {}
        for part in self.parts:
            found |= {**part.element_names, **part.variables}
        return found

    @property
    def rows(self) -> Mapping[str, tuple[int, ...]]:
        """Return the arrays that consist of pointers, with the dimensions to which these lead."""
        return self.parts[0].rows

    @property
    def body(self) -> tuple[int, int]:
        """Return the begin and the end of the first part's body in ``text``."""
        return self.parts[0].body

    def layout(self, part: FunctionPart) -> Layout | None:
        """Return the layout of the statements of a part, or None if a macro or another file makes them."""
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
