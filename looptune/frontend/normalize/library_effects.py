"""Calls with effects that no target computes, as statements on what they change: for analysis only.

    printf("%d\\n", a[i]);       input_output[0] = input_output[0] * 3 + 1 + a[i];
    x = rand();                 random_numbers[0] = random_numbers[0] * 3 + 1;  x = random_numbers[0];
    scanf("%d", &n);            input_output[0] = input_output[0] * 3 + 1 + n;  n = input_output[0];

``input_output``, ``random_numbers`` and ``allocated_memory`` stand for everything that such calls of the C library read
and change, ``other_functions`` for what functions do that the program does not define. A
loop with a call of them carries a dependence on one, so that it is found to be sequential; loops without such a call
are analysed as if it were not there. The statements read and write at least what the call does, and compute something
else: they are never compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from looptune.frontend import c_ast
from looptune.frontend.gnu_syntax import ASSEMBLY, JUMP
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
Kinds = Callable[[str], "c_ast.Type | None"]
"""The type of a variable, None if it is not known."""

INPUT_OUTPUT = "input_output"
RANDOM_NUMBERS = "random_numbers"
HEAP = "allocated_memory"
OTHERS = "other_functions"
STATES = (INPUT_OUTPUT, RANDOM_NUMBERS, HEAP, OTHERS)
"""The arrays of one element that stand for what the calls change."""
POINTERS = "tested_pointers"
"""An array that stands for which pointers are null."""


@dataclass(frozen=True, slots=True)
class _Effect:
    """What a function changes: a state, and the memory that its first argument or all of them point to.

    Without a state it depends on nothing but its arguments and the memory they point to.
    """

    state: str
    result: str = "int32"
    writes: Literal["nothing", "first", "all"] = "nothing"


def _of(names: str, effect: _Effect) -> dict[str, _Effect]:
    return dict.fromkeys(names.split(), effect)


_EFFECTS: Mapping[str, _Effect] = {
    **_of("printf fprintf vprintf vfprintf puts fputs putchar putc fputc putchar_unlocked perror fflush ferror feof "
          "clearerr rewind fseek fclose getchar getc fgetc getchar_unlocked ungetc exit abort _exit assert usleep "
          "sleep system", _Effect(INPUT_OUTPUT)),
    **_of("scanf fscanf sscanf", _Effect(INPUT_OUTPUT, writes="all")),
    **_of("sprintf snprintf vsprintf vsnprintf fgets gets", _Effect(INPUT_OUTPUT, writes="first")),
    **_of("fread", _Effect(INPUT_OUTPUT, "uint64", writes="first")),
    **_of("fwrite", _Effect(INPUT_OUTPUT, "uint64")),
    **_of("clock time ftell", _Effect(INPUT_OUTPUT, "int64")),
    **_of("omp_get_wtime MPI_Wtime", _Effect(INPUT_OUTPUT, "float64")),
    **_of("gettimeofday clock_gettime getrusage", _Effect(INPUT_OUTPUT, writes="all")),
    **_of("atoi strcmp strncmp strcasecmp memcmp isdigit isalpha isspace isalnum isupper islower toupper tolower",
          _Effect("")),
    **_of("omp_get_thread_num omp_get_num_threads omp_get_max_threads omp_get_num_procs", _Effect("")),
    **_of("free", _Effect(HEAP)),
    **_of("atol strtol", _Effect("", "int64")),
    **_of("atof strtod", _Effect("", "float64")),
    **_of("strlen offsetof", _Effect("", "uint64")),
    **_of("strcpy strncpy strcat strncat", _Effect("", writes="first")),
    **_of("rand srand srandom srand48", _Effect(RANDOM_NUMBERS)),
    **_of("random lrand48 mrand48", _Effect(RANDOM_NUMBERS, "int64")),
    **_of("drand48", _Effect(RANDOM_NUMBERS, "float64")),
    **_of("rand_r", _Effect(RANDOM_NUMBERS, writes="all")),
    **_of("erand48", _Effect(RANDOM_NUMBERS, "float64", writes="all")),
}  # fmt: skip
_ALLOCATE = ("malloc", "calloc", "realloc", "aligned_alloc", "memalign", "valloc")


def has_model(name: str) -> bool:
    """Tell whether the function is one of the C library's whose effects are described here."""
    return _plain(name) in _EFFECTS


def has_order(name: str) -> bool:
    """Tell whether calls of a function that is not in the program have to happen in the order of the text."""
    effect = _EFFECTS.get(_plain(name))
    return not name.startswith("__builtin_") and name not in (ASSEMBLY, JUMP) if effect is None else effect.state != ""


def _plain(name: str) -> str:
    return name.removeprefix("__builtin_")


def row_allocation(e: c_ast.Expr, kind_of: Kinds) -> Items | None:
    """Return the statements of ``a[i] = malloc(n)``: the row is memory of its own. None for any other expression."""
    match e:
        case c_ast.Assignment("", c_ast.Index() as target, value) if isinstance(
            _Model(kind_of, c_ast.Number("0")).kind(target), c_ast.Pointer
        ):
            while isinstance(value, c_ast.Cast):
                value = value.arg
            if isinstance(value, c_ast.Call) and value.name in _ALLOCATE:
                args = (target.index, *value.args)
                return modelled(c_ast.Call("free", args, span=value.span), kind_of)[0]
    return None


def modelled(
    call: c_ast.Call, kind_of: Kinds, result: c_ast.Type | None = None, *, is_pure: bool = False
) -> tuple[Items, c_ast.Expr]:
    """Return the statements of a call, and its value.

    A function that is not described here may write all of the memory that its arguments point into, unless it
    ``is_pure``; ``result`` is the type that it is declared to return. Raises UnsupportedError where a call writes
    memory that is not a variable's or an array's.
    """
    unknown = _Effect("", _number_type(result)) if is_pure else _Effect(OTHERS, _number_type(result), "all")
    effect = _EFFECTS.get(_plain(call.name), unknown)
    span = call.span
    zero = c_ast.Number("0", span=span)
    state = c_ast.Index(c_ast.Name(effect.state or INPUT_OUTPUT, span=span), zero, span=span)
    model = _Model(kind_of, state, effect.state == OTHERS)
    # No reduction is of this form.
    total: c_ast.Expr = c_ast.Binary("*", state, c_ast.Number("3", span=span), span=span)
    total = c_ast.Binary("+", total, c_ast.Number("1", span=span), span=span)
    args = call.args if effect.state != HEAP else tuple(_subscripts(call.args))
    for arg in args:
        for read in model.read(arg):
            total = c_ast.Binary("+", total, read, span=span)
    value = state if effect.state else total
    items: list[c_ast.Item] = [_stored(state, total, span)] if effect.state else []
    written = {"nothing": (), "first": call.args[:1], "all": call.args}[effect.writes]
    items += [_stored(target, value, span) for arg in written for target in model.written(arg)]
    return tuple(items), c_ast.Cast(c_ast.Basic(effect.result), value, span=span)


def _number_type(kind: c_ast.Type | None) -> str:
    return kind.dtype if isinstance(kind, c_ast.Basic) and kind.dtype != "void" else "int32"


def _subscripts(args: tuple[c_ast.Expr, ...]) -> Iterator[c_ast.Expr]:
    """Yield the subscripts of pointers to memory of which nothing is read."""
    yield from (n.index for arg in args for n in c_ast.walk(arg) if isinstance(n, c_ast.Index))


def _stored(target: c_ast.Expr, value: c_ast.Expr, span: Span) -> c_ast.Evaluate:
    return c_ast.Evaluate(c_ast.Assignment("", target, value, span=span), span=span)


def type_of(e: c_ast.Expr, kind_of: Kinds) -> c_ast.Type | None:
    """Return the type of an expression as far as it is known."""
    return _Model(kind_of, c_ast.Number("0")).kind(e)


@dataclass(frozen=True, slots=True)
class _Model:
    """Finds what arguments read and write; ``somewhere`` is an index of which nothing is known.

    ``whole``: a pointer to an element may be used for all elements.
    """

    kind_of: Kinds
    somewhere: c_ast.Expr
    whole: bool = False

    def read(self, e: Any) -> Iterator[c_ast.Expr]:
        """Yield numbers that together read what an argument and the memory it points to may hold."""
        kind = self.kind(e)
        match kind, e:
            case c_ast.Basic("void"), _:
                return
            case c_ast.Basic(), _:
                yield e
            case _, c_ast.Unary("&", arg):
                yield from self.read(arg)
            case _, c_ast.Index(base, index) if _is_text(self.kind(base)):
                yield from self.read(index)
            case c_ast.Pointer() | c_ast.ArrayOf(), c_ast.Name() | c_ast.Index() | c_ast.Field():
                if not _is_text(kind):
                    yield from self.element(e, kind)
            case c_ast.Pointer(), c_ast.Binary("+" | "-", array, offset):
                yield from self.read(array)
                yield from self.read(offset)
            case _, c_ast.Syntax():
                for part in c_ast.children(e):
                    yield from self.read(part)

    def written(self, e: c_ast.Expr) -> Iterator[c_ast.Expr]:
        """Yield the variables, and elements of arrays, that the function may set through an argument."""
        kind = self.kind(e)
        match kind, e:
            case c_ast.Basic() | c_ast.UnsupportedType(), _:
                return
            case _, c_ast.Unsupported():
                return
            case _ if self.whole:
                yield from self.reachable(e, kind)
                return
            case _, c_ast.Unary("&", arg):
                match self.kind(arg):
                    case c_ast.Basic():
                        yield arg
                        return
                    case None | c_ast.UnsupportedType():
                        return
            case c_ast.Pointer() | c_ast.ArrayOf(), c_ast.Name():
                found = list(self.element(e, kind))
                if found or _is_foreign(kind):
                    yield from found
                    return
            case c_ast.Pointer() | c_ast.ArrayOf(), c_ast.Binary("+" | "-", array, _):
                yield from self.written(array)
                return
            case c_ast.Pointer() | c_ast.ArrayOf(), c_ast.Index() | c_ast.Field():
                found = list(self.element(e, kind))
                if found:
                    yield from found
                    return
        raise refuse("the memory that this call writes", "an array's name", e.span)

    def reachable(self, e: c_ast.Expr, kind: c_ast.Type | None) -> Iterator[c_ast.Expr]:
        """Yield elements that together stand for all memory that a function may reach through an argument."""
        match kind, e:
            case c_ast.Struct() as whole, _:
                for name, inner in whole.fields:
                    if not isinstance(inner, c_ast.Basic):
                        yield from self.element(c_ast.Field(e, name, False, span=e.span), inner)
            case _, c_ast.Cast(_, arg):
                yield from self.reachable(arg, self.kind(arg))
            case _, c_ast.Unary("&", arg):
                target = self.anywhere(arg)
                yield from self.element(target, self.kind(target))
            case _, c_ast.Binary("+" | "-", array, _):
                yield from self.reachable(array, self.kind(array))
            case _, c_ast.Name() | c_ast.Index() | c_ast.Field():
                yield from self.element(e, kind)
            case c_ast.Pointer() | c_ast.ArrayOf(), _:
                raise refuse("the memory that this call writes", "an array's name", e.span)

    def element(self, e: c_ast.Expr, kind: c_ast.Type | None) -> Iterator[c_ast.Expr]:
        while isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
            e = c_ast.Index(e, self.somewhere, span=e.span)
            kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of
        if isinstance(kind, c_ast.Struct | c_ast.Overlapping):
            for name, inner in kind.fields:
                yield from self.element(c_ast.Field(e, name, False, span=e.span), inner)
        if isinstance(kind, c_ast.Basic) and kind.dtype != "void":
            yield e

    def anywhere(self, e: c_ast.Expr) -> c_ast.Expr:
        """Return an element as one of which no subscript is known."""
        match e:
            case c_ast.Index(base, _):
                return replace(e, base=self.anywhere(base), index=self.somewhere)
            case c_ast.Field(base):
                return replace(e, base=self.anywhere(base))
        return e

    def kind(self, e: object) -> c_ast.Type | None:
        """Return the type of an expression as far as it is known: that of a number is any type of numbers."""
        match e:
            case c_ast.Name(name):
                return self.kind_of(name)
            case c_ast.Number():
                return c_ast.Basic("int32")
            case c_ast.Cast(kind):
                return kind
            case c_ast.Index(base) | c_ast.Unary("*", base):
                match self.kind(base):
                    case c_ast.Pointer(to):
                        return to
                    case c_ast.ArrayOf(of):
                        return of
            case c_ast.Field(base, name, arrow):
                whole = self.kind(base)
                inner = whole.to if arrow and isinstance(whole, c_ast.Pointer) else whole
                return dict(inner.fields).get(name) if isinstance(inner, c_ast.Struct) else None
            case c_ast.Unary("-" | "+" | "~" | "!" | "++" | "--", arg):
                return self.kind(arg)
            case c_ast.Binary(_, lhs, rhs):
                kinds = (self.kind(lhs), self.kind(rhs))
                return next((k for k in kinds if not isinstance(k, c_ast.Basic)), kinds[0])
            case c_ast.Ternary(_, then, other):
                return self.kind(then) if self.kind(other) is not None else None
            case c_ast.Assignment(_, target):
                return self.kind(target)
            case c_ast.Call():
                return c_ast.Basic("float64")
        return None


def _is_foreign(kind: c_ast.Type | None) -> bool:
    """Tell whether a pointer's target has a type that no codelet reads, such as FILE."""
    while isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
        kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of
    return isinstance(kind, c_ast.UnsupportedType)


def _is_text(kind: c_ast.Type | None) -> bool:
    """Tell whether it is a list of strings, such as ``argv``, which no codelet changes."""
    return isinstance(kind, c_ast.Pointer) and isinstance(kind.to, c_ast.Pointer)
