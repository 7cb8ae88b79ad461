"""Every loop nest of a C file, as a codelet or with the reason why it is none: what ``looptune scan`` looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from looptune.core import recursion
from looptune.core.errors import LooptuneError, ParseError, UnsupportedError
from looptune.core.source import Span
from looptune.frontend import c_ast, nests
from looptune.frontend.analysed_file import analysed_file
from looptune.frontend.codelet_extent import codelet_extent
from looptune.frontend.codelet_selection import CodeletFunction, nest_region
from looptune.frontend.lower_codelet import build
from looptune.frontend.program import Program, Value, read_program
from looptune.frontend.text_order import TextOrder, text_order
from looptune.ir.nodes import Codelet, While

if TYPE_CHECKING:
    from pathlib import Path

    from looptune.frontend.preprocess import Preprocessed


@dataclass(frozen=True, slots=True)
class SurveyedNest:
    """A loop nest: ``depth`` counts the loops that are inside each other.

    ``codelet`` is None where looptune does not support the nest, for the reason ``refusal``; where there are both, it
    can be analysed and not compiled. Of such a nest, and of a loop that cannot be counted, the nests inside it that
    can be compiled, at the places ``inner``, are nests of their own. ``inside``: it is one of these, or part of a nest
    that is not supported. ``names`` are the text's names of the codelet's
    variables, where they differ; ``flags`` its variables that say whether a jump was taken. ``order``: why the
    iterations of the outermost loop have an order, where there is no codelet and the text shows it.
    """

    function: c_ast.Function
    span: Span
    depth: int
    codelet: Codelet | None
    refusal: LooptuneError | None
    inside: bool
    names: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    inner: frozenset[Span] = frozenset()
    order: TextOrder | None = None

    @property
    def kernel(self) -> str:
        """Return its name for --kernel: the function's where the codelet is the whole function."""
        whole = self.codelet is not None and self.codelet.name == self.function.name
        return self.function.name if whole else f"{self.function.name}:{self.span.line}"


@dataclass(frozen=True, slots=True)
class Survey:
    """The nests of a file in textual order: the outermost loops, and for those that are not supported the inner ones.

    ``skipped`` are the errors of functions and declarations that cannot be read, and of directives that are ignored.
    """

    program: Program
    nests: tuple[SurveyedNest, ...]

    @property
    def skipped(self) -> tuple[ParseError, ...]:
        return (*self.program.source.ignored, *self.program.file.skipped)

    @property
    def missing(self) -> tuple[tuple[str, Span], ...]:
        """Return the headers that were not found, with the places that name them."""
        return self.program.source.missing

    def extent(self, nest: SurveyedNest) -> tuple[int, int] | None:
        """Return the offsets of a nest in the text of its file, or None for a loop that a macro makes."""
        region = nest_region(nest.function.body, nest.span)
        try:
            return codelet_extent(self.program.source, nest.function.open.file, nest.function, region)
        except UnsupportedError:
            return None


def survey(
    path: Path,
    *,
    function: str | None = None,
    defines: Mapping[str, Value] | None = None,
    include_dirs: Sequence[str | Path] = (),
    tolerant: bool = False,
) -> Survey:
    """Return the loop nests of a C file, or of one ``function`` of it.

    Functions that cannot be parsed are skipped; ``tolerant`` ignores directives of the preprocessor as ``preprocess``
    says. Raises UsageError for a file that is not there or an invalid option,
    and ParseError for a text that cannot be preprocessed.
    """
    recursion.raise_recursion_limit()
    try:
        program = read_program(path, _none_needed, defines=defines, include_dirs=include_dirs, tolerant=tolerant)
        return Survey(program, tuple(_nests(program, function)))
    except RecursionError as error:
        raise UnsupportedError(recursion.TOO_DEEP) from error


def _none_needed(_source: Preprocessed) -> Callable[[str, str], bool]:
    return lambda _name, _text: False


def _nests(program: Program, only: str | None) -> Iterator[SurveyedNest]:
    analysed = replace(program, file=analysed_file(program.file))
    for function, twin in zip(program.file.functions, analysed.file.functions, strict=True):
        if only is not None and function.name != only:
            continue
        loops = tuple(nests.outermost_loops(function.body))
        found = list(_among(_Pair(program, function, analysed, twin), loops, inside=False))
        whole = _whole(program, function) if len(loops) == 1 and found[0].refusal is not None else None
        yield from found if whole is None else [whole]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A function of a program, and the same one of the program as it is analysed where it cannot be compiled."""

    program: Program
    function: c_ast.Function
    analysed: Program
    twin: c_ast.Function


def _whole(program: Program, function: c_ast.Function) -> SurveyedNest | None:
    """Return the only nest of a function as the codelet that the function is, or None if it is none.

    A nest that a ``return`` leaves is supported only together with its function.
    """
    (loop,) = nests.outermost_loops(function.body)
    try:
        return _supported(program, CodeletFunction(function, None), loop, inside=False)
    except LooptuneError:
        return None


def _among(
    pair: _Pair, loops: Iterable[nests.SourceLoop], inside: bool, analysed: bool = False
) -> Iterator[SurveyedNest]:
    """Yield the nests of which the loops are the outermost; ``analysed``: only those that can be compiled."""
    for loop in loops:
        try:
            found = _supported(pair.program, CodeletFunction(pair.function, None, loop.span), loop, inside)
        except LooptuneError as error:
            if analysed:
                yield from _among(pair, nests.outermost_loops(loop), True, analysed=True)
                continue
            found = _analysed(pair, loop, error, inside)
        if found.refusal is None and not _is_while(found):
            yield found
            continue
        inner = list(_among(pair, nests.outermost_loops(loop), True, found.codelet is not None))
        yield replace(found, inner=frozenset(n.span for n in inner))
        yield from inner


def _is_while(nest: SurveyedNest) -> bool:
    """Tell whether the outermost loop cannot be counted: the nests inside it are more than it is."""
    return nest.codelet is not None and any(isinstance(s, While) for s in nest.codelet.body)


def _analysed(pair: _Pair, loop: nests.SourceLoop, refusal: LooptuneError, inside: bool) -> SurveyedNest:
    """Return a nest that cannot be compiled, for the reason ``refusal``, analysed if that is possible."""
    chosen = CodeletFunction(pair.twin, None, loop.span, analysed_only=True)
    try:
        return replace(_supported(pair.analysed, chosen, loop, inside), refusal=refusal)
    except LooptuneError as error:
        why = error
    try:
        return replace(_supported(pair.analysed, replace(chosen, addresses=True), loop, inside), refusal=refusal)
    except LooptuneError:
        order = text_order(_twin(pair, loop), pair.twin, pair.analysed.file)
        return SurveyedNest(pair.function, loop.span, _depth(loop), None, why, inside, order=order)


def _twin(pair: _Pair, loop: nests.SourceLoop) -> nests.SourceLoop:
    """Return a loop of the function as it is in the one that is analysed."""
    return next(n for n in nests.all_loops(pair.twin.body) if n.span == loop.span)


def _supported(program: Program, chosen: CodeletFunction, loop: nests.SourceLoop, inside: bool) -> SurveyedNest:
    try:
        built = build(program.file, chosen, program.options)
    except LooptuneError:
        raise
    except RecursionError as error:
        raise UnsupportedError(recursion.TOO_DEEP, loop.span) from error
    except Exception as error:
        # an error of ours in one nest must not hide the others
        what = f"the analysis failed, which is an error in looptune: {type(error).__name__}: {error}"
        raise UnsupportedError(what, loop.span) from error
    names = {**built.element_names, **built.variables}
    return SurveyedNest(chosen.function, loop.span, _depth(loop), built.codelet, None, inside, names, built.flags)


def _depth(loop: nests.SourceLoop) -> int:
    return 1 + max((_depth(inner) for inner in nests.outermost_loops(loop)), default=0)
