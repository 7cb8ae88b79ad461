"""The program's own text with an added function, which runs the codelet on given arrays and scalars.

    void f(int n, double A[n]) { … }            the text as it is, and at its end

    void looptune_entry(void **s, void **a, …) { f(*(int *)s[0], a[0]); }

A scop becomes a function of its own, in the place of the function around it, whose preprocessor lines stay:

    void f(…) { int i; double A[9]; …           void f(…) { }
    #pragma scop                                void looptune_entry(…) { double *A = a[0]; int i; …
      for (i = 0; i < 9; i++) A[i] = 0;    ─▶     for (i = 0; i < 9; i++) A[i] = 0;
    #pragma endscop … }                         }

Versions, which are made from the loop IR, are compared with its results. Only the names and kinds of parameters are
taken from the IR here, so that errors of the front end or of a generator are found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from looptune.frontend import c_ast
from looptune.frontend.codelet_selection import Region
from looptune.frontend.name_resolution import base, used_names
from looptune.frontend.normalize.field_variable import FieldVariable
from looptune.frontend.other_languages import as_compiled, is_cxx
from looptune.ir.c_printer import C_TYPES, expression_text
from looptune.ir.nodes import Array, Codelet, Node, Scalar, Var
from looptune.ir.rewrite import rewrite

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.frontend.preprocess import Preprocessed

ENTRY = "looptune_entry"

_IGNORED = r"/\*.*?\*/|//(?:\\\n|[^\n])*"
_QUOTED = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(?:define|undef|if|ifdef|ifndef|elif|else|endif)\b(?:\\\n|[^\n])*", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A program text that can be compiled and called.

    ``files``: all files that were read, by path; the first is compiled, and the entry is in it or in one that it
    includes. ``macros`` are given with -D. The entry takes the addresses of ``scalars`` and of ``arrays``, in this
    order.

    ``dtype``: the type that replaces float and double after the ``headers`` of the system; ``float_literals``:
    constants without a suffix are float.
    """

    files: Mapping[str, str]
    macros: Mapping[str, str]
    folders: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    arrays: tuple[Array, ...]
    headers: tuple[str, ...] = ()
    dtype: str | None = None
    float_literals: bool = False

    @property
    def main(self) -> str:
        return next(iter(self.files))


@dataclass(frozen=True, slots=True)
class CodeletText:
    """A function that is the codelet, or contains it.

    ``names`` maps its own parameters to the whole codelet's names where these differ; ``element_arrays`` are those of
    its scalars that are the first element of an array of the codelet; ``result`` is the array of the codelet that holds
    what the function returns, "" if it returns nothing. ``fields`` are those of structs that are parameters of the
    codelet. ``rows`` are the arrays that consist of pointers, with the dimensions to which these lead; ``row_lengths``
    are the parameters of the codelet that say how long rows are, which the text does not have.
    """

    function: c_ast.Function
    codelet: Codelet
    region: Region | None
    path: str
    body: tuple[int, int]
    names: Mapping[str, str] = field(default_factory=dict)
    element_arrays: Mapping[str, str] = field(default_factory=dict)
    result: str = ""
    fields: tuple[FieldVariable, ...] = ()
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    row_lengths: frozenset[str] = frozenset()

    @property
    def owners(self) -> frozenset[str]:
        """Return the structs of which the codelet has the fields."""
        return frozenset(base(f.owner) for f in self.fields)

    @property
    def parameters_outside(self) -> frozenset[str]:
        """Return the parameters of the codelet that are no variables of the text."""
        return self.row_lengths.union(base(f.declared.name) for f in self.fields)


def files(
    source: Preprocessed, globals_: Sequence[c_ast.Declare], runs: Sequence[CodeletText], whole: Codelet
) -> dict[str, str] | None:
    """Return all files, with the entry in one of them, or None if the text cannot be run with these parameters."""
    main = next(iter(source.sources))
    spelled = as_compiled if is_cxx(main) else str
    texts = {path: spelled(text) for path, text in source.sources.items()}
    scalars, arrays = parameters(whole)
    places = {p.name: f"looptune_a[{k}]" for k, p in enumerate(arrays)}
    places |= {p.name: f"*({C_TYPES[p.dtype]} *)looptune_s[{k}]" for k, p in enumerate(scalars)}
    tables = _tables(whole, runs[0].rows, places)
    places |= {name: f"{_TABLE}{name}" for name in runs[0].rows}
    region = runs[0].region
    try:
        if region is None:
            texts[main] += "\n" + _entry(tables, (line for run in runs for line in _call(run, globals_, places)))
        else:
            path = runs[0].path
            lines = _scop(runs[0], region, texts[path], globals_, places)
            texts[path] = _in_place(texts[path], runs[0], _entry(tables, lines))
    except _Unknown:
        return None
    return texts


class _Unknown(Exception):
    """A parameter of a function has no place."""


def parameters(codelet: Codelet) -> tuple[tuple[Scalar, ...], tuple[Array, ...]]:
    """Return the scalars and the arrays of a codelet, in the order in which the entry takes them."""
    scalars = tuple(p for p in codelet.params if isinstance(p, Scalar))
    return scalars, tuple(p for p in codelet.params if isinstance(p, Array))


def _entry(tables: Mapping[str, str], lines: Iterable[str]) -> str:
    """Return the entry; ``tables`` are the tables of pointers that it makes, each with its value."""
    takes = "void *const *looptune_s, void *const *looptune_a, const unsigned long long *looptune_bytes"
    made = "".join(f"  void **{name} = {value};\n" for name, value in tables.items())
    freed = "".join(f"  __builtin_free({name});\n" for name in tables)
    return f"{_TABLES if tables else ''}void {ENTRY}({takes})\n{{\n{made}{''.join(lines)}{freed}}}\n"


_TABLE = "looptune_rows_"
_TABLES = """static void **looptune_table(void *first, unsigned long long bytes, unsigned long long row)
{
  const unsigned long long count = row ? bytes / row : 0;
  void **table = __builtin_malloc((count + 4096) * sizeof *table);
  if (!table) __builtin_abort();
  for (unsigned long long k = 0; k < count + 4096; k++) table[k] = (char *)first + (k < count ? k * row : 0);
  return table;
}
"""
"""Pointers to rows of no elements are read too: those after the last one lead to the first row."""


def _tables(codelet: Codelet, rows: Mapping[str, tuple[int, ...]], places: Mapping[str, str]) -> dict[str, str]:
    """Return the tables of pointers for the arrays that consist of pointers, those that others lead to first."""
    made: dict[str, str] = {}

    def rule(n: Node) -> Node | None:
        return replace(n, name=f"({places[n.name]})") if isinstance(n, Var) else None

    def elements(p: Array, start: int, end: int, of: str) -> str:
        extents = [expression_text(rewrite(rule, e)) for e in p.shape[start:end] if e is not None]
        return "".join(f"(unsigned long long)({e}) * " for e in extents) + f"sizeof({of})"

    _, arrays = parameters(codelet)
    for k, p in enumerate(arrays):
        first, bytes_, of, end = f"looptune_a[{k}]", f"looptune_bytes[{k}]", C_TYPES[p.dtype], len(p.shape)
        for dimension in reversed(rows.get(p.name, ())):
            row = elements(p, dimension, end, of)
            name = f"{_TABLE}{p.name}{f'_{dimension}' if dimension > rows[p.name][0] else ''}"
            made[name] = f"looptune_table({first}, {bytes_}, {row})"
            first, bytes_, of, end = name, f"({row} ? {bytes_} / ({row}) * sizeof(void *) : 0)", "void *", dimension
    return made


def _call(run: CodeletText, globals_: Sequence[c_ast.Declare], places: Mapping[str, str]) -> Iterator[str]:
    params = {p.name: p for p in run.codelet.params}

    def place(name: str) -> str:
        if name in run.element_arrays:
            return f"*({C_TYPES[params[name].dtype]} *){places[run.element_arrays[name]]}"
        return _place(run.names.get(name, name), places)

    own = [d.name for d in run.function.params]
    before, after = _file_scope(run.codelet, (*own, run.result, *run.parameters_outside), globals_, place)
    yield from before
    for d in run.function.params:
        if any(o.name in run.owners and d.name in used_names((o.type,)) for o in run.function.params):
            yield f"  {d.c[0]} = {place(d.name)};\n"
        if d.name in run.owners:
            yield _object(d, _elements(run, d.name, "", places))
        elif d.name not in params and _is_object(d):
            yield f"  static {d.c[0]};\n"
    yield from _file_pointers(run, own, globals_, places)
    stored, fetched = _fields(run, places)
    yield from stored
    call = f"{run.function.name}({', '.join(_argument(run, d, place) for d in run.function.params)})"
    value = f"*(__typeof__({call}) *){places[run.result]} = " if run.result else ""
    yield f"  {value}{call};\n"
    yield from fetched
    yield from after


def _argument(run: CodeletText, d: c_ast.Declare, place: Callable[[str], str]) -> str:
    if d.name in run.owners:
        return d.name
    if any(p.name == d.name for p in run.codelet.params):
        return place(d.name)
    return d.name if _is_object(d) else "0"


def _is_object(d: c_ast.Declare) -> bool:
    """Tell whether 0 is no value of a parameter, such as a union, that the codelet does not use."""
    return bool(d.c[0]) and not isinstance(d.type, c_ast.Basic | c_ast.Pointer | c_ast.ArrayOf)


def _object(d: c_ast.Declare, count: str) -> str:
    """Return the declaration of a struct, or of a pointer to ``count`` of them, whose fields are given."""
    if isinstance(d.type, c_ast.Pointer | c_ast.ArrayOf):
        return f"  {d.c[0]} = __builtin_calloc({count}, sizeof *{base(d.name)});\n"
    return f"  {d.c[0]}; __builtin_memset((void *)&{base(d.name)}, 0, sizeof {base(d.name)});\n"


def _file_pointers(
    run: CodeletText, own: Collection[str], globals_: Sequence[c_ast.Declare], places: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines that allocate structs to which pointers at file scope lead."""
    for name in sorted(run.owners - {*own}):
        if any(d.name == name and isinstance(d.type, c_ast.Pointer) for d in globals_):
            yield f"  {name} = __builtin_calloc({_elements(run, name, '', places)}, sizeof *{name});\n"


def _elements(run: CodeletText, owner: str, path: str, places: Mapping[str, str]) -> str:
    """Return how many structs are enough for the arrays of their fields, as C text."""
    counts = ["1"]
    for f in run.fields:
        if f.element and (base(f.owner), f.path) == (owner, path):
            counts.append(_count(f, places))
    return " + ".join(counts)


def _first(f: FieldVariable) -> str:
    """Return the first struct of an array, as C text."""
    return f"{base(f.owner)}{f.path}{'[0]' * f.rank}"


def _count(f: FieldVariable, places: Mapping[str, str]) -> str:
    place = _place(base(f.declared.name), places)
    return f"{place.replace('looptune_a', 'looptune_bytes')} / sizeof ({f.part}{_first(f)}{f.element})"


def _structs_on_the_way(f: FieldVariable) -> Iterator[str]:
    """Yield the fields that point to the structs through which the text gets to a field, outermost first."""
    parts = f"{base(f.owner)}{f.path}".split("->")
    yield from ("->".join(parts[:k]) for k in range(1, len(parts)) if k > 1 or "." in parts[0])


def _fields(run: CodeletText, places: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the lines that set the fields of structs, and those that fetch what the codelet writes into them."""
    before, after = [], []
    allocated: set[str] = set()
    for f in run.fields:
        for pointer in _structs_on_the_way(f):
            if pointer not in allocated:
                before.append(f"  *(void **)&{pointer} = __builtin_calloc(1, sizeof *{pointer});\n")
                allocated.add(pointer)
        place, there = _place(base(f.declared.name), places), f.text
        if f.element:
            there = f"{base(f.owner)}{f.path}"
            if f.path and there not in allocated and f.is_pointer:
                count = _elements(run, base(f.owner), f.path, places)
                before.append(f"  *(void **)&{there} = __builtin_calloc({count}, sizeof *{there});\n")
                allocated.add(there)
            own = f"({f.part}(&{_first(f)})[looptune_k]{f.element})"
            other = f"(char *){place} + looptune_k * sizeof {own}"
            head = f"  for (unsigned long long looptune_k = 0; looptune_k < {_count(f, places)}; looptune_k++) "
            before.append(f"{head}__builtin_memcpy((void *)&{own}, {other}, sizeof {own});\n")
            after.append(f"{head}__builtin_memcpy({other}, (void *)&{own}, sizeof {own});\n")
            continue
        match f.declared.type:
            case c_ast.Pointer():
                before.append(f"  *(void **)&{there} = {place};\n")
            case c_ast.Basic(dtype):
                before.append(f"  *({C_TYPES[dtype]} *)&{there} = {place};\n")
            case _:
                before.append(f"  __builtin_memcpy((void *)&{there}, {place}, sizeof {there});\n")
                after.append(f"  __builtin_memcpy({place}, (void *)&{there}, sizeof {there});\n")
    return before, after


def _place(name: str, places: Mapping[str, str]) -> str:
    if name not in places:
        raise _Unknown
    return places[name]


def _file_scope(
    codelet: Codelet, own: Collection[str], globals_: Sequence[c_ast.Declare], place: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Return the lines that set the codelet's variables at file scope, and those that fetch what is in its arrays."""
    before, after = [], []
    for p in (p for p in codelet.params if p.name not in own):
        declared = [d for d in globals_ if d.name == p.name]
        if not declared:
            raise _Unknown
        if isinstance(p, Array) and isinstance(declared[0].type, c_ast.Basic):
            element = f"*({C_TYPES[p.dtype]} *){place(p.name)}"
            before.append(f"  {p.name} = {element};\n")
            after.append(f"  {element} = {p.name};\n")
        elif isinstance(p, Scalar) or any(isinstance(d.type, c_ast.Pointer) for d in declared):
            before.append(f"  {p.name} = {place(p.name)};\n")
        else:
            before.append(f"  __builtin_memcpy({p.name}, {place(p.name)}, sizeof {p.name});\n")
            after.append(f"  __builtin_memcpy({place(p.name)}, {p.name}, sizeof {p.name});\n")
    return before, after


# -- a scop as a function ---------------------------------------------------------------------------


def _scop(
    run: CodeletText, region: Region, text: str, globals_: Sequence[c_ast.Declare], places: Mapping[str, str]
) -> Iterator[str]:
    """Yield the variables around it, each with what is given for it or with its own initial value, and the scop."""
    params = {p.name: p for p in run.codelet.params}
    inside = _declared(region)
    mentioned = {base(name) for name in used_names((*region.items, *inside))} | params.keys()
    around = {d.name: d for d in run.function.params if d.name in mentioned} | {base(d.name): d for d in inside}
    left_in = run.element_arrays
    own = {*around, *run.parameters_outside, *(array for variable, array in left_in.items() if variable in around)}
    before, after = _file_scope(run.codelet, own, globals_, partial(_place, places=places))
    yield from before
    stored, fetched = _fields(run, places)
    for name, d in around.items():
        if name in run.owners:
            yield _object(d, _elements(run, name, "", places))
            continue
        match params.get(left_in.get(name, name)):
            case Scalar():
                yield f"  {d.c[0]} = {places[name]};\n"
            case Array() if name in left_in and isinstance(d.type, c_ast.Basic):
                place = f"*({C_TYPES[d.type.dtype]} *){places[left_in[name]]}"
                yield f"  {_initialised(d, params[left_in[name]], params.get(name), places, place)};\n"
                after.append(f"  {place} = {name};\n")
            case Array():
                yield f"  {d.c[0]} = {places[name]};\n"
            case None:
                made = d.init is not None and any(
                    isinstance(n, c_ast.Call | c_ast.Unsupported | c_ast.Field) for n in c_ast.walk(d.init)
                )
                yield f"  {d.c[0 if made else 1]};\n"
    yield from _file_pointers(run, around.keys(), globals_, places)
    yield from stored
    yield "{\n" + text[slice(*run.body)] + "\n}\n"
    yield from fetched
    yield from after


def _initialised(
    d: c_ast.Declare, left_in: Array | Scalar, passed: Array | Scalar | None, places: Mapping[str, str], place: str
) -> str:
    """Return the declaration of a scalar that the codelet leaves in an array of one element, with its first value."""
    if isinstance(passed, Scalar):
        return f"{d.c[0]} = {places[passed.name]}"
    own = isinstance(left_in, Array) and left_in.io == "out"
    return d.c[1] if own else f"{d.c[0]} = {place}"


def _declared(region: Region) -> list[c_ast.Declare]:
    """Return what the scop names of the variables around it, and what these are made of."""
    wanted = set(used_names(region.items))
    for d in reversed(region.declared):
        if d.name in wanted:
            wanted |= set(used_names((d,)))
    return [d for d in region.declared if d.name in wanted]


def _in_place(text: str, run: CodeletText, entry: str) -> str:
    """Return the text with the entry in the place of the function around the scop."""
    start, end = run.body
    opening, closing = _offset(text, run.function.open), _offset(text, run.function.close)
    types = "".join(f"{t};\n" for t in run.function.types)
    before, after = directives(text[opening + 1 : start]), directives(text[end:closing])
    return f"{text[: opening + 1]}\n{before}}}\n{types}{entry}{after}{text[closing + 1 :]}"


def _offset(text: str, span: Span) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: span.line - 1]) + span.col - 1


def directives(text: str) -> str:
    """Return the lines that define macros, and those that decide which lines are read.

    >>> directives("int i;\\n#define N 3 /* x */\\n// #undef N\\ni = N;")
    '#define N 3  \\n'
    """
    plain = re.sub(f"({_QUOTED})|{_IGNORED}", lambda m: m[1] or " " + "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return "".join(m[0] + "\n" for m in _DIRECTIVE.finditer(plain))
