"""C text to loop IR: ``load`` reads a file and returns its codelet with everything that the text states about it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core import recursion
from looptune.core.errors import LooptuneError, ParseError, UnsupportedError, UsageError
from looptune.core.source import caret
from looptune.frontend import c_ast as s
from looptune.frontend import codelet_selection, constant_propagation, hmpp_warnings, nests, reference_text, signature
from looptune.frontend.call_sites import CodeletCall, call_order, callers
from looptune.frontend.codelet_extent import codelet_extent
from looptune.frontend.codelet_group import Member, merge_codelets
from looptune.frontend.codelet_selection import CodeletFunction
from looptune.frontend.hmpp import size_of
from looptune.frontend.lower_codelet import build
from looptune.frontend.name_resolution import base
from looptune.frontend.other_languages import is_cxx
from looptune.frontend.other_languages import macros as cxx_macros
from looptune.frontend.program import Program, Value, hinted, read_program
from looptune.frontend.reference_text import Excerpt
from looptune.frontend.shared_arguments import Variables, keys
from looptune.frontend.unit import FunctionPart, PragmaChoices, Unit, choices_of
from looptune.frontend.worksharing import worksharing_loops
from looptune.ir.def_use import referenced_names
from looptune.ir.nodes import Array, Assign, Codelet, Directive, If, Loop, Node, Scalar, Var, While
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.simplify import is_integer, wrap

if TYPE_CHECKING:
    from looptune.frontend.lowered_codelet import LoweredCodelet
    from looptune.frontend.preprocess import Preprocessed
    from looptune.frontend.signature import Head

__all__ = ["FunctionPart", "PragmaChoices", "ProgramCodelets", "Unit", "load", "load_each"]


def load(
    source: str | Path,
    *,
    kernel: str | None = None,
    defines: Mapping[str, Value] | None = None,
    include_dirs: Sequence[str | Path] = (),
    dtype: str | None = None,
    target: str | None = None,
    float_literals: bool = False,
) -> Unit:
    """Return the codelet of a C file, or of C text (a string that contains a newline or a brace).

    A file with several hmpp codelets is one program: they are run in call order, as one codelet. ``kernel`` names a
    function, an hmpp label, a group or one of its codelets (``group.label``). ``defines`` are -D macros, or values of
    parameters the text declares. ``dtype`` ("float32", "float64") replaces both float and double in declarations;
    constants keep C's types, unless ``float_literals`` makes the unsuffixed ones float. Directives written for another
    ``target`` are left out.

    Raises UsageError for a file, option or codelet that is not there, ParseError and UnsupportedError for the C.
    """
    recursion.raise_recursion_limit()
    try:
        program = read_program(
            source, lambda read: codelet_selection.must_be_parsed(read, kernel), defines=defines,
            include_dirs=include_dirs, dtype=dtype, float_literals=float_literals, target=target,
        )  # fmt: skip
    except RecursionError as error:
        raise UnsupportedError(recursion.TOO_DEEP) from error
    warnings = [caret(span, f"{name} was not found and is skipped: add its folder with -I")
                for name, span in program.source.missing]  # fmt: skip
    try:
        elsewhere = codelet_selection.external_codelets(program.source, program.file)
        if elsewhere and kernel is None and not codelet_selection.codelets(program.file):
            raise UnsupportedError(
                f"the codelet {elsewhere[0][0]} is defined in another file: give that file", elsewhere[0][1]
            )
        warnings += [
            caret(span, f"the codelet {name} is defined in another file and is skipped") for name, span in elsewhere
        ]
        warnings += hmpp_warnings.misspelt_pragmas(program.source.pragmas, program.source.sources)
        codelet_selection.check_scops(program.source, program.file)
        chosen = codelet_selection.select_codelets(program.file, kernel, program.path)
        warnings += hmpp_warnings.warnings(program.file, chosen)
        unit = (
            _function_or_nest(program, chosen[0], warnings) if len(chosen) == 1 else _group(program, chosen, warnings)
        )
    except (ParseError, UnsupportedError) as error:
        raise hinted(error, program.source) from None
    codelet, choices = choices_of(unit.codelet)
    return replace(unit, codelet=codelet, choices=choices, warnings=tuple(dict.fromkeys(warnings)))


@dataclass(frozen=True, slots=True)
class ProgramCodelets:
    """The codelets of a program: each function that is or contains one, with the codelet or why there is none.

    ``missing`` are why kernels that were named are not in it, ``unread`` why codelets cannot be parsed, by function;
    ``warnings`` are about lines of the file that belong to no codelet.
    """

    program: Program
    codelets: tuple[tuple[CodeletFunction, Unit | LooptuneError], ...]
    missing: Mapping[str, UsageError] = field(default_factory=dict)
    unread: Mapping[str, ParseError] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def load_each(
    source: str | Path,
    *,
    kernels: Sequence[str] = (),
    defines: Mapping[str, Value] | None = None,
    include_dirs: Sequence[str | Path] = (),
    begin: Mapping[str, str] | None = None,
    first: Sequence[Path] = (),
) -> ProgramCodelets:
    """Return every codelet of a C file by itself, in textual order.

    ``begin`` are the macros with which the compiler reads the file, see ``macros_of``; None for the usual ones.
    ``first`` are files that are included before its first line, as ``-include`` of a C compiler does.

    These are the functions and loops that ``kernels`` names (see ``load``), else the functions with an ``hmpp codelet``
    line and the parts of others that are a ``#pragma scop`` or an ``hmpp region``; none if the file has none of these.
    Raises UsageError for a file that is not there, ParseError and UnsupportedError for C that none of the codelets can
    be read without.
    """
    recursion.raise_recursion_limit()
    wanted: list[str] = []

    def needed(read: Preprocessed) -> Callable[[str, str], bool]:
        judge = _needed_by_any(read, kernels)
        wanted.clear()

        def gives_up(name: str, text: str) -> bool:
            is_needed = judge(name, text)
            wanted.append(name if is_needed else "")
            return is_needed and not name

        return gives_up

    try:
        program = read_program(source, needed, defines=defines, include_dirs=include_dirs, begin=begin, first=first)
    except RecursionError as error:
        raise UnsupportedError(recursion.TOO_DEEP) from error
    unread = {name: e for e, name in zip(program.file.skipped, wanted, strict=False) if name}
    found = [] if kernels else list(codelet_selection.marked_functions(program.file))
    missing: dict[str, UsageError] = {}
    for kernel in kernels:
        try:
            found += codelet_selection.select_codelets(program.file, kernel, program.path)
        except UsageError as error:
            if kernel.partition(":")[0] not in unread:
                missing[kernel] = error
    chosen = tuple({c.address: c for c in found}.values())
    warnings = hmpp_warnings.misspelt_pragmas(program.source.pragmas, program.source.sources)
    warnings += hmpp_warnings.warnings(program.file, chosen)
    return ProgramCodelets(
        program, tuple((one, _alone(program, one)) for one in chosen), missing, unread, tuple(dict.fromkeys(warnings))
    )


def _needed_by_any(read: Preprocessed, kernels: Sequence[str]) -> Callable[[str, str], bool]:
    judges = [codelet_selection.must_be_parsed(read, k) for k in kernels or (None,)]
    return lambda name, text: any(judge(name, text) for judge in judges)


def _alone(program: Program, chosen: CodeletFunction) -> Unit | LooptuneError:
    """Return the codelet without the others of its group, or why it is none."""
    warnings: list[str] = []
    try:
        unit = _function_or_nest(program, chosen, warnings)
    except (ParseError, UnsupportedError) as error:
        return hinted(error, program.source)
    codelet, choices = choices_of(unit.codelet)
    return replace(unit, codelet=codelet, choices=choices, warnings=tuple(dict.fromkeys(warnings)))


def _function_or_nest(program: Program, chosen: CodeletFunction, warnings: list[str]) -> Unit:
    """Return the codelet that is the function, or else the one loop nest of it that can be a codelet.

    A nest is taken if looptune does not support what stands outside of the loops, or if it is the only one that has
    directives. Raises UnsupportedError where that leaves none or several.
    """
    try:
        return _single(program, chosen)
    except UnsupportedError as error:
        if chosen.directive is not None or chosen.nest is not None or chosen.mark is not None:
            raise
        function = chosen.function
        found = _supported_nests(program, function)
        marked = nests.marked_loops(function.body)
        wanted = [nest for nest in found if nest.nest in marked]
        if not wanted and not nests.is_in_loop(function.body, error.span):
            wanted = found
        if not wanted:
            raise _with_nests(error, found) from None
        if len(wanted) > 1:
            raise _with_nests(error, wanted) from None
        warnings.append(caret(error.span, f"the codelet is the loop nest {wanted[0].address} only: {error.message}"))
        return _single(program, wanted[0])


def _supported_nests(program: Program, function: s.Function) -> list[CodeletFunction]:
    """Return the outermost loops of the function that can be codelets."""
    found: list[CodeletFunction] = []

    def search(loops: Iterable[nests.SourceLoop]) -> None:
        for loop in loops:
            nest = codelet_selection.CodeletFunction(function, None, loop.span)
            try:
                build(program.file, nest, program.options)
            except (ParseError, UnsupportedError):
                search(nests.outermost_loops(loop))
            else:
                found.append(nest)

    search(nests.outermost_loops(function.body))
    return found


def _with_nests(error: UnsupportedError, found: Sequence[CodeletFunction]) -> UnsupportedError:
    """Return the error, with the nests that can be chosen instead of the function."""
    if not found:
        return error
    words = f"--kernel chooses one of its loop nests: {', '.join(nest.address for nest in found)}"
    return UnsupportedError(error.message, error.span, (*error.notes, words))


def _single(program: Program, chosen: CodeletFunction) -> Unit:
    built = _built(program, chosen)
    codelet = built.codelet
    values = _file_values(program, chosen, codelet)
    values |= constant_propagation.parameter_values(
        program.file, chosen.function, program.options, program.known_values
    )
    part = _part(program, chosen, built)
    statements = frozenset(n.name for n in walk(codelet.body) if isinstance(n, Assign))
    known = _of_params(codelet, {**program.numbers, **values})
    left_in = {} if built.region is None else {variable: array for array, variable in built.element_names.items()}
    run = reference_text.CodeletText(
        chosen.function,
        codelet,
        built.region,
        part.path,
        part.body,
        {},
        left_in,
        built.result,
        built.fields,
        built.rows,
        built.row_lengths,
    )
    head = None if built.region is not None else _head(program, chosen, built)
    return Unit(codelet, known, part.path, program.source.sources[part.path],
                (replace(part, statements=statements),), program.defines,
                sources=program.source.sources, known_values=program.known_values, prepared=program.source,
                excerpt=_excerpt(program, [run], codelet), head=head,
                worksharing=worksharing_loops(chosen.function.body))  # fmt: skip


def _hidden_structs(built: LoweredCodelet) -> str:
    """Return the name of an array of structs that a variable of the codelet would hide in C that is built, or ""."""
    own = {*referenced_names(built.codelet.body), *(v.name for v in built.codelet.locals)}
    own |= {p.name for p in built.codelet.params}
    return next((name for f in built.fields if f.element and (name := base(f.owner)) in own), "")


def _head(program: Program, chosen: CodeletFunction, built: LoweredCodelet) -> Head | str:
    hidden = _hidden_structs(built)
    if hidden:
        return f"{chosen.function.name} has another variable that is called {hidden}, as its structs are: rename one"
    refused = _unchecked_rows(built)
    if refused:
        return f"{chosen.function.name} takes {refused}: pass one array"
    own = {p.name for p in chosen.function.params}
    for d in program.file.globals:
        if d.name in built.moved - own and isinstance(d.type, s.Pointer) and not d.static:
            return (
                f"{chosen.function.name} sets the pointer {d.name}, which C that is built here does not: make it static"
            )
    try:
        return signature.head(chosen.function, built, program.file, program.scope).in_type(program.dtype)
    except UsageError as error:
        return error.message


def _unchecked_rows(built: LoweredCodelet) -> str:
    """Return an array of pointers whose rows C that is built here cannot check, and why; "" if there is none."""
    for name, dimensions in built.rows.items():
        if dimensions != (1,):
            return f"{name}, whose rows consist of pointers, which C that is built here does not check"
    for name in sorted(built.row_lengths):
        return f"{name.partition('_row')[0]}, the length of whose rows does not follow from its parameters"
    return ""


def _group(program: Program, chosen: tuple[CodeletFunction, ...], warnings: list[str]) -> Unit:
    """All the codelets as one, in call order."""
    around = callers(program.file, chosen)
    order = call_order(around, chosen, warnings)
    built = {r.callee.function.name: _built(program, r.callee) for r in order}
    codelets = [built[r.callee.function.name].codelet for r in order]
    variables = Variables(program.file, around, order)
    keyed = keys(order, codelets, variables, hmpp_warnings.map_lines(program.file))
    members = [
        Member(run, codelet, own, _file_values(program, run.callee, codelet) | _call_values(program, run))
        for run, codelet, own in zip(order, codelets, keyed, strict=True)
    ]
    groups = list(dict.fromkeys(c.group for c in chosen if c.group))
    label = groups[0] if len(groups) == 1 else ""
    codelet, values, shares = merge_codelets(members, _name(program, order, label), label)
    parts = tuple(
        replace(_part(program, s.codelet_call.callee, built[s.codelet_call.callee.function.name]),
                statements=s.statements, names=s.names, write_back_error=s.write_back_error)
        for s in shares
    )  # fmt: skip
    path = parts[0].path
    known = _of_params(codelet, {**values, **program.known_values})
    for own in built.values():
        if own.fields:
            raise UnsupportedError(
                "a struct among the parameters of a group's codelet is not accepted: pass its fields", own.codelet.span
            )
        if own.rows:
            raise UnsupportedError(
                f"{min(own.rows)}, an array of pointers, is not accepted in a group of codelets: write one array",
                own.codelet.span,
            )
    functions = [s.codelet_call.callee.function for s in shares]
    texts = [
        reference_text.CodeletText(f, built[f.name].codelet, None, part.path, part.body, s.params, s.elements)
        for f, s, part in zip(functions, shares, parts, strict=True)
    ]
    return Unit(codelet, known, path, program.source.sources[path], parts, program.defines,
                sources=program.source.sources, known_values=program.known_values, prepared=program.source,
                excerpt=_excerpt(program, texts, codelet))  # fmt: skip


def _excerpt(program: Program, parts: Sequence[reference_text.CodeletText], codelet: Codelet) -> Excerpt | None:
    source, options = program.source, program.options
    texts = reference_text.files(source, program.file.globals, parts, codelet)
    if texts is None:
        return None
    folders = tuple(str(folder.resolve()) for folder in program.folders)
    scalars, arrays = reference_text.parameters(codelet)
    own = map(cxx_macros, source.sources.values() if is_cxx(program.path) else ())
    params = {p.name for p in codelet.params}  # such as those for fields, whose values the text does not name
    macros = {name: text for found in (*own, program.macros) for name, text in found.items() if name not in params}
    return Excerpt(
        texts, macros, folders, scalars, arrays, source.skipped, program.dtype, options.float_literals
    )  # fmt: skip


def _name(program: Program, order: Sequence[CodeletCall], label: str) -> str:
    """Return a C name for the whole: the file's, else the group's, else those of its codelets."""
    stem = re.sub(r"\W", "_", Path(program.path).stem)
    if program.path != "<source>" and re.fullmatch(r"[A-Za-z_]\w*", stem):
        return stem
    return label if label else "_".join(dict.fromkeys(r.callee.function.name for r in order))


def _built(program: Program, chosen: CodeletFunction) -> LoweredCodelet:
    built = build(program.file, chosen, program.options)
    target = program.target
    return built if target is None else replace(built, codelet=_for_target(built.codelet, target))


def _part(program: Program, chosen: CodeletFunction, built: LoweredCodelet) -> FunctionPart:
    function, region = chosen.function, built.region
    path = function.open.file
    body = codelet_extent(program.source, path, function, region)
    return FunctionPart(
        function.name, path, body, frozenset(), {}, open=function.open, region=region is not None,
        variables=built.variables, element_names=built.element_names, shadowed=built.shadowed,
        pointers=built.pointers,
        moved=built.moved, has_structs=built.has_structs,
        flags=built.flags, result=built.result, rows=built.rows, has_swaps=built.has_swaps,
        has_choices=built.has_choices,
        row_lengths=built.row_lengths, texts=built.texts,
        scalar_fields=tuple(f.text for f in built.fields if f.is_read_through_pointer),
        bare=function.name in program.bare, directive=chosen.directive, nonnull=tuple(sorted(built.nonnull)),
    )  # fmt: skip


def _file_values(program: Program, chosen: CodeletFunction, codelet: Codelet) -> dict[str, int | float]:
    """Return what the text says of the scalars apart from the calls."""
    scalars = {p.name: p for p in codelet.params if isinstance(p, Scalar)}
    own = {p.name for p in chosen.function.params}
    values = constant_propagation.initial_values(
        program.file, {n: p for n, p in scalars.items() if n not in own}, program.options
    )
    return values | _sizes(codelet, chosen)


def _call_values(program: Program, run: CodeletCall) -> dict[str, int | float]:
    """Return the constants that one call passes, those given with -D first."""
    found: dict[str, int | float] = {}
    if run.caller is not None and run.call is not None:
        around = constant_propagation.argument_values(
            program.file, run.caller.function, program.options, program.known_values
        )
        given = {**around, **program.known_values}
        exprs = constant_propagation.constant_variables(
            program.file, run.caller.function, run.caller.body, program.options, given
        )
        for param, arg in zip(run.callee.function.params, run.call.args, strict=False):
            value = constant_propagation.convert_constant(exprs, param.type, arg)
            if value is not None:
                found[param.name] = value
    return {**found, **program.known_values}


def _of_params(codelet: Codelet, values: Mapping[str, int | float]) -> dict[str, int | float]:
    scalars = {p.name: p for p in codelet.params if isinstance(p, Scalar)}
    return {name: _typed(scalars[name], value) for name, value in values.items() if name in scalars}


def _typed(param: Scalar, value: int | float) -> int | float:
    """Return a value as its parameter holds it; only -D can give an integer a value that is none."""
    if not is_integer(param.dtype):
        return _real(param.name, value)
    if not math.isfinite(value) or int(value) != value:
        raise UsageError(f"{param.name} must be an integer, got {value}")
    if wrap(int(value), param.dtype) != value:
        raise UsageError(f"{param.name} has the type {param.dtype}, which {value} does not fit")
    return int(value)


def _real(name: str, value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise UsageError(f"{name} is a floating-point number: its value is too large") from None


def _for_target(codelet: Codelet, target: str) -> Codelet:
    """Without the directives that are written for other targets."""

    def holds(directive: Directive) -> bool:
        wanted = directive.target
        return wanted is None or target.lower() in re.split(r"[\s:,;]+", wanted.lower())

    def rule(node: Node) -> Node | None:
        match node:
            case Assign() | Loop() | While() | If():
                kept = tuple(d for d in node.directives if holds(d))
                return node if len(kept) == len(node.directives) else replace(node, directives=kept)
        return None

    kept = tuple(d for d in codelet.directives if holds(d))
    return replace(codelet, body=rewrite(rule, codelet.body), directives=kept)


def _sizes(codelet: Codelet, chosen: CodeletFunction) -> dict[str, int]:
    """Parameters that are an array's declared extent, where an hmpp clause gives that extent as a number."""
    clauses = () if chosen.directive is None else chosen.directive.clauses
    found: dict[str, int] = {}
    for position, param in enumerate(codelet.params):
        sizes = size_of(clauses, position, param.name)
        if isinstance(param, Array) and len(sizes) == len(param.shape):
            for extent, text in zip(param.shape, sizes, strict=True):
                if isinstance(extent, Var) and text.isdecimal() and len(text) < 19:
                    found[extent.name] = int(text)
    return found
