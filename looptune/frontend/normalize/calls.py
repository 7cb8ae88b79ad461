"""Calls of functions of the same program, replaced by their statements.

    double norm(int n, double *x) { double s = 0; for (…) s += …; return sqrt(s); }      y = norm(m, row);

    { n' = m; s' = 0; for (…) s' += …; value = sqrt(s'); }  y = value;

Parameters become variables that are initialised with the arguments; an array that is passed on keeps its name, and
``&x`` of a scalar ``x`` is ``x``. A function that only returns an expression is left to ``lower_expressions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from looptune.core.errors import ParseError, UnsupportedError
from looptune.frontend import c_ast, math_functions
from looptune.frontend.name_resolution import base, resolve, root_variable
from looptune.frontend.normalize.complex_numbers import mentions_complex
from looptune.frontend.normalize.library_calls import LibraryCalls, is_library_call, is_library_function
from looptune.frontend.normalize.library_effects import OTHERS, has_model, modelled
from looptune.frontend.pointer_settings import ALLOCATE
from looptune.frontend.symbol_table import check_gnu, refuse

Items = tuple[c_ast.Item, ...]
_VOID = c_ast.Basic("void")
_MOST = 2000
"""Calls that are inlined into one codelet."""
_MOST_ANALYSED = 100
"""Those inlined where nothing is compiled: of further ones only the effects count."""


@dataclass(slots=True)
class Calls:
    """Inlines the functions of a file.

    ``types`` are those of the variables around the calls, ``parameters`` the names of the codelet's own parameters.
    ``renamed`` are the names around the calls of the file's scalars that the codelet writes.
    ``moved`` are the pointers around the calls that are set there: an array that a call gets has another name.
    ``analysed_only``: calls of functions with effects that are not in the program become statements that have these
    effects.
    """

    file: c_ast.File
    types: dict[str, c_ast.Type]
    parameters: frozenset[str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    analysed_only: bool = False
    moved: frozenset[str] = frozenset()
    stack: tuple[str, ...] = ()
    stored: dict[str, frozenset[str]] = field(default_factory=dict)
    expressions: dict[str, bool] = field(default_factory=dict)
    callees: dict[str, frozenset[str]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def function(self, name: str) -> c_ast.Function | None:
        return next((f for f in self.file.functions if f.name == name), None)

    def is_inlined(self, call: c_ast.Call) -> bool:
        """Tell whether the call is replaced by statements."""
        function = self.function(call.name)
        if function is None:
            return is_library_call(call) or (self.analysed_only and _is_modelled(call))
        if self.is_modelled_recursion(function):
            return True
        pointers = any(
            _has_struct(p.type)
            or (not isinstance(p.type, c_ast.Basic) and not (isinstance(a, c_ast.Name) and a.name not in self.moved))
            for p, a in zip(function.params, call.args, strict=False)
        )
        if function.name not in self.expressions:
            self.expressions[function.name] = self.is_expression(function, ())
        return pointers or not self.expressions[function.name]

    def is_modelled_recursion(self, function: c_ast.Function) -> bool:
        """Tell whether the function calls itself, also through others, where only its effects count."""
        return self.analysed_only and function.name in self.all_callees(function.name)

    def is_pure(self, function: c_ast.Function) -> bool:
        """Tell whether the result depends on the numbers that are passed alone, and nothing else is changed."""
        for name in {function.name, *self.all_callees(function.name)}:
            own = self.function(name)
            if own is None:
                if math_functions.argument_count(name) is None:
                    return False
                continue
            named = {n.name for n in c_ast.walk(own.body) if isinstance(n, c_ast.Name)}
            variables = {d.name for d in self.file.globals if not d.const} - {p.name for p in own.params}
            if named & variables or not all(isinstance(p.type, c_ast.Basic) for p in own.params):
                return False
        return True

    def all_callees(self, name: str) -> frozenset[str]:
        """Return the functions that a function calls, and those that these call."""
        if name not in self.callees:
            found: set[str] = set()
            waiting = [name]
            while waiting:
                function = self.function(waiting.pop())
                if function is not None:
                    direct = {n.name for n in c_ast.walk(function.body) if isinstance(n, c_ast.Call)}
                    waiting += direct - found
                    found |= direct
            self.callees[name] = frozenset(found)
        return self.callees[name]

    def among(self, e: Any) -> bool:
        """Tell whether a call that is replaced by statements is in the expression."""
        return any(isinstance(n, c_ast.Call) and self.is_inlined(n) for n in c_ast.walk(e))

    def is_expression(self, function: c_ast.Function, around: tuple[str, ...]) -> bool:
        """Tell whether the function only returns an expression, whose operands may be calls of such functions."""
        if function.name in around:
            return True  # it calls itself, which is refused where it is lowered
        if not isinstance(function.result, c_ast.Basic) or function.result.dtype == "void":
            return False
        if self.read(function) or mentions_complex(function.body, self.types):
            return False
        nodes = list(c_ast.walk(function.body))
        effects = any(
            isinstance(n, c_ast.Assignment | c_ast.Comma)
            or (isinstance(n, c_ast.Unary) and n.op in ("++", "--"))
            for n in nodes
        )  # fmt: skip
        if effects or not _returns(function.body.items):
            return False
        called = {n.name for n in nodes if isinstance(n, c_ast.Call)} - {function.name}
        found = [f for f in map(self.function, called) if f is not None]
        for f in found:
            if f.name not in self.expressions:
                self.expressions[f.name] = self.is_expression(f, (*around, function.name))
        return all(self.expressions[f.name] for f in found)

    def written(self, call: c_ast.Call) -> frozenset[str]:
        """Return the variables and arrays around the call that the function may write."""
        function = self.function(call.name)
        if function is None:
            return frozenset()
        stored = self._stored_by(function)
        found = {self.renamed.get(n, n) for n in stored if n not in {p.name for p in function.params}}
        for p, arg in zip(function.params, call.args, strict=False):
            root = root_variable(arg.arg if isinstance(arg, c_ast.Unary) and arg.op == "&" else arg)
            if p.name in stored and not isinstance(p.type, c_ast.Basic) and root is not None:
                found.add(root)
        return frozenset(found)

    def fields_written(self, call: c_ast.Call) -> frozenset[str] | None:
        """Return the names of the fields that a function, or the functions it calls, may set, None for any fields."""
        found: set[str] = set()
        for name in {call.name, *self.all_callees(call.name)}:
            function = self.function(name)
            if function is None and (math_functions.argument_count(name) is None or name == call.name):
                return None
            for node in () if function is None else c_ast.walk(function.body):
                match node:
                    case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--" | "&", target):
                        found |= {n.name for n in c_ast.walk(target) if isinstance(n, c_ast.Field)}
                        if not isinstance(target, c_ast.Name) and not _has_field(target):
                            return None
        found |= {n.name for arg in call.args for n in c_ast.walk(arg) if isinstance(n, c_ast.Field)}
        return frozenset(found)

    def global_writes(self, call: c_ast.Call) -> frozenset[str]:
        """Return the variables of the file that the function may write, apart from those it gets as arguments."""
        function = self.function(call.name)
        return frozenset() if function is None else self._stored_by(function) - {p.name for p in function.params}

    def set_by(self, call: c_ast.Call) -> Iterator[c_ast.Item]:
        """Yield the assignments of results of a call to the scalars of the file that its function writes."""
        scalars = {d.name for d in self.file.globals if isinstance(d.type, c_ast.Basic)}
        for name in sorted(self.global_writes(call) & scalars & self.renamed.keys()):
            target = c_ast.Name(self.renamed[name], span=call.span)
            value = c_ast.Index(c_ast.Name(OTHERS, span=call.span), c_ast.Number("0"), span=call.span)
            yield c_ast.Evaluate(c_ast.Assignment("", target, value, span=call.span), span=call.span)

    def read(self, function: c_ast.Function) -> frozenset[str]:
        """Return the file's scalars written by the codelet that the statements of a function name."""
        if not self.renamed:
            return frozenset()
        body = resolve(function.body, {p.name: f"{p.name}#" for p in function.params})
        return frozenset(self.renamed[n.name] for n in c_ast.walk(body)
                         if isinstance(n, c_ast.Name) and n.name in self.renamed)  # fmt: skip

    def _stored_by(self, function: c_ast.Function) -> frozenset[str]:
        """Return the parameters whose elements a function may set, and the variables of the file that it may set."""
        if function.name not in self.stored:
            self.stored[function.name] = frozenset()  # of a function that calls itself, which is refused
            body = resolve(function.body, {})
            names = _stored(body, function.params)
            for n in c_ast.walk(body):
                if isinstance(n, c_ast.Call):
                    names |= self.written(n)
            self.stored[function.name] = frozenset(n for n in names if "#" not in n)
        return self.stored[function.name]

    def inlined(self, call: c_ast.Call, wants_value: bool) -> tuple[Items, c_ast.Expr | None]:
        """Return the statements of a call, and its value if it is wanted.

        Raises UnsupportedError for a function that calls itself, and for arguments that do not fit its parameters.
        """
        function = self.function(call.name)
        if function is None and is_library_call(call):
            try:
                return LibraryCalls(self.kind, self.types, self.parameters, self.numbers).statements(call, wants_value)
            except UnsupportedError:
                if not self.analysed_only:
                    raise
        number = 0 if function is None else next(self.numbers)
        many = self.analysed_only and number > _MOST_ANALYSED
        if function is None or many or self.is_modelled_recursion(function):
            pure = call.name in self.file.pure or (function is not None and self.is_pure(function))
            items, result = modelled(call, self.kind, self.file.results.get(call.name), is_pure=pure)
            return (*items, *(() if pure else self.set_by(call))), result if wants_value else None
        if number > _MOST:
            raise UnsupportedError(f"more than {_MOST:,} calls are inlined here: write loops", call.span)
        self._check(function, call, wants_value)
        mark = f"c{number}_"
        start, env, scalars = self._arguments(function, call, mark)
        body = resolve(_with_pointer_sizes(function), {**self.renamed, **env}, mark)
        self._check_names(function, body, call)
        for d in (n for n in c_ast.walk(body) if isinstance(n, c_ast.Declare)):
            self.types[d.name] = d.type
        items = tuple(_dereferenced(item, scalars) for item in body.items)
        value: c_ast.Name | None = None
        pointer = self.analysed_only and isinstance(function.result, c_ast.Pointer) and wants_value
        if pointer or (isinstance(function.result, c_ast.Basic | c_ast.Struct) and function.result != _VOID):
            value = c_ast.Name(f"{function.name}#{mark}", span=call.span)
            self.types[value.name] = function.result
        region = f"call{number}"
        items = _returned(items, value, region)
        if items and isinstance(items[-1], c_ast.Leave):
            items = items[:-1]
        if any(isinstance(n, c_ast.Leave) and n.name == region for n in c_ast.walk(c_ast.Block(items))):
            items = (c_ast.Region(region, items, span=call.span),)
        if value is not None:
            # Set before a loop or an `if` that may return, so that iterations of a loop around do not share it.
            zero = c_ast.Number("0", span=call.span)
            is_struct = isinstance(function.result, c_ast.Struct)
            blank = c_ast.InitializerList((), span=call.span) if is_struct else zero
            unsure = len(items) == 1 and (c_ast.has_loop(items[0]) or _may_go_on(items[0]))
            first = blank if unsure else None
            start = (*start, c_ast.Declare(value.name, function.result, first, span=call.span))
        body_calls = replace(self, stack=(*self.stack, function.name))
        done = (*start, _Called(items, body_calls, span=call.span))
        return done, value if wants_value else None

    def _check(self, function: c_ast.Function, call: c_ast.Call, wants_value: bool) -> None:
        if function.name in self.stack:
            raise refuse(f"{call.name}, which calls itself,", "a loop", call.span)
        check_gnu(function.body)
        want = len(function.params)
        if len(call.args) != want:
            raise ParseError(f"{call.name} takes {want} argument{'s' * (want != 1)}, not {len(call.args)}", call.span)
        match function.result:
            case c_ast.Basic(dtype) if dtype != "void" or not wants_value:
                return
            case c_ast.Struct():
                return
            case c_ast.Pointer() if self.analysed_only:
                return
            case c_ast.UnsupportedType("long double" as wide):
                raise refuse(wide, "double", function.span)
            case _ if wants_value:
                raise refuse(f"a call of {call.name}, which returns no number,", "its statements", call.span)

    def _check_names(self, function: c_ast.Function, body: c_ast.Block, call: c_ast.Call) -> None:
        """Raise UnsupportedError if the function uses a variable of the file that a parameter of the codelet hides."""
        own = {a.name for a in call.args if isinstance(a, c_ast.Name)}
        declared = {d.name for d in self.file.globals}
        used = {n.name for n in c_ast.walk(body) if isinstance(n, c_ast.Name) and "#" not in n.name}
        hidden = (used & declared & self.parameters) - own
        if hidden:
            name = min(hidden)
            raise UnsupportedError(f"{name} is a parameter, and {function.name}, which is called here, uses the "
                                   f"{name} of the file: rename one of them", call.span)  # fmt: skip

    def _arguments(
        self, function: c_ast.Function, call: c_ast.Call, mark: str
    ) -> tuple[Items, dict[str, str], dict[str, c_ast.Expr]]:
        """Return the variables for the parameters, their names, and what ``*p`` is of pointers to scalars."""
        written = _set_names(function.body)
        start: list[c_ast.Item] = []
        env: dict[str, str] = {}
        scalars: dict[str, c_ast.Expr] = {}
        for p, arg in zip(function.params, call.args, strict=True):
            name = f"{p.name}#{mark}"
            env[p.name] = name
            if not isinstance(p.type, c_ast.Basic) and p.name not in written:
                match arg:
                    case c_ast.Name(array) if self.is_array(array) and self.fits(function, p, array, call):
                        env[p.name] = array
                        continue
                    case c_ast.Unary("&", c_ast.Name(variable) as scalar) if self.is_scalar(variable):
                        scalars[name] = scalar
                        continue
            if self.analysed_only and isinstance(arg, c_ast.Unsupported) and arg.what == "a string":
                self.types[name] = c_ast.UnsupportedType(arg.what)
                continue
            kind = c_ast.Pointer(p.type.of) if isinstance(p.type, c_ast.ArrayOf) else p.type
            self.types[name] = kind
            start.append(c_ast.Declare(name, kind, arg, span=arg.span if arg.span.line else call.span))
        return tuple(start), env, scalars

    def kind(self, name: str) -> c_ast.Type | None:
        found = self.types.get(name)
        return self.types.get(base(name)) if found is None and name.endswith("#0") else found

    def is_scalar(self, name: str) -> bool:
        return isinstance(self.kind(name), c_ast.Basic | c_ast.Struct)

    def is_array(self, name: str) -> bool:
        return isinstance(self.kind(name), c_ast.Pointer | c_ast.ArrayOf)

    def fits(self, function: c_ast.Function, p: c_ast.Declare, array: str, call: c_ast.Call) -> bool:
        """Tell whether the array has the parameter's type, so that its name may stand for the parameter.

        Raises UnsupportedError where the rows of the two have different lengths, or may have.
        """
        mine, theirs = _inner(p.type), _inner(self.kind(array))
        if len(mine) != len(theirs):
            return False
        given = {q.name: a for q, a in zip(function.params, call.args, strict=True)}

        def put(node: Any) -> Any:
            if isinstance(node, c_ast.Name):
                return given.get(node.name, node)
            return c_ast.map_children(put, node)

        for own, other in zip(mine, theirs, strict=True):
            if own is None and other is None:
                continue
            if own is None or other is None or _plain(put(own)) != _plain(other):
                raise UnsupportedError(f"{function.name} takes {p.name} with other extents than {base(array)} has: "
                                       "declare both alike", call.span)  # fmt: skip
        return True


def _is_modelled(call: c_ast.Call) -> bool:
    """Tell whether a call of a function that the program does not define is one of no function of numbers."""
    known = math_functions.argument_count(call.name) is not None or math_functions.refusal(call) is not None
    return has_model(call.name) or not known


def written_by_calls(file: c_ast.File, items: Iterable[c_ast.Item]) -> frozenset[str]:
    """Return the scalars of the file that the functions called in the statements write."""
    scalars = {d.name for d in file.globals if isinstance(d.type, c_ast.Basic)}
    calls = Calls(file, {}, frozenset())
    called = [n for item in items for n in c_ast.walk(item) if isinstance(n, c_ast.Call)]
    return frozenset(n for call in called for n in calls.global_writes(call) if n in scalars)


def set_by_any_call(file: c_ast.File, node: Any) -> frozenset[str]:
    """Return the scalars of the file that the calls in a node may set: of functions of other files, all of them."""
    calls = Calls(file, {}, frozenset())
    found = [n for n in c_ast.walk(node) if isinstance(n, c_ast.Call | c_ast.PointerCall)]
    known = {n.name for n in found if isinstance(n, c_ast.Call)}
    known |= {inner for name in known for inner in calls.all_callees(name)}
    through = (node, *(f.body for f in file.functions if f.name in known))
    others = any(calls.function(n) is None and n not in file.pure and not _is_of_library(n) for n in known)
    if others or any(isinstance(n, c_ast.PointerCall) for body in through for n in c_ast.walk(body)):
        return frozenset(d.name for d in file.globals if isinstance(d.type, c_ast.Basic) and not d.const)
    return written_by_calls(file, (c_ast.Evaluate(call) for call in found))


def _is_of_library(name: str) -> bool:
    """Tell whether a function that the program does not define sets no variable of it but through an address."""
    return math_functions.is_pure(name) or has_model(name) or is_library_function(name) or name in ALLOCATE


@dataclass(frozen=True, slots=True)
class _Called(c_ast.Block):
    """The statements of a function that was called, and what inlines its calls."""

    calls: Calls


def calls_of(block: c_ast.Block) -> Calls | None:
    """Return what inlines the calls of a block, if it is the body of a function that was called."""
    return block.calls if isinstance(block, _Called) else None


def _plain(e: Any) -> Any:
    """Return an expression in which variables have the names of the text."""
    if isinstance(e, c_ast.Name):
        return c_ast.Name(base(e.name) if e.name.endswith("#0") else e.name)
    return c_ast.map_children(_plain, e)


def _inner(kind: c_ast.Type | None) -> tuple[c_ast.Expr | None, ...]:
    """Return the extents of a type but for the first."""
    found: list[c_ast.Expr | None] = []
    while isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
        found.append(None if isinstance(kind, c_ast.Pointer) else kind.extent)
        kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of
    return tuple(found[1:])


def _stored(body: c_ast.Block, params: Sequence[c_ast.Declare]) -> set[str]:
    """Return the variables that the statements set, and the arrays and pointers of which they may set elements.

    A local pointer may point into any array of the parameters.
    """
    found: set[str] = set()
    for n in c_ast.walk(body):
        match n:
            case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)):
                if name not in {p.name for p in params}:
                    found.add(name)
            case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--" | "&", target):
                root = root_variable(target)
                found |= set() if root is None else {root}
            case c_ast.Declare(_, c_ast.Pointer()):
                found |= {p.name for p in params}
    return found


def _set_names(body: c_ast.Block) -> frozenset[str]:
    """Return the variables that are assigned as such, their elements apart."""
    found: set[str] = set()
    for n in c_ast.walk(body):
        match n:
            case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--" | "&", c_ast.Name(name)):
                found.add(name)
    return frozenset(found)


def _dereferenced(item: Any, scalars: Mapping[str, c_ast.Expr]) -> Any:
    def rule(node: Any) -> Any:
        match node:
            case c_ast.Unary("*", c_ast.Name(name)) | c_ast.Index(c_ast.Name(name), c_ast.Number("0")) if (
                name in scalars
            ):
                return replace(scalars[name], span=node.span)
            case c_ast.Name(name) if name in scalars:
                return c_ast.Unary("&", replace(scalars[name], span=node.span), span=node.span)
        return c_ast.map_children(rule, node)

    return rule(item) if scalars else item


def _returned(items: Items, value: c_ast.Name | None, region: str) -> Items:
    """Return the statements with each ``return`` as an assignment of the value and a jump to the end."""
    made: list[c_ast.Item] = []

    def inside(part: Any) -> Any:
        return replace(part, items=_returned(part.items, value, region)) if isinstance(part, c_ast.Block) else part

    for item in items:
        match item:
            case c_ast.Return(result):
                if result is not None and value is not None:
                    stored = c_ast.Assignment("", value, result, span=item.span)
                    made.append(c_ast.Evaluate(stored, span=item.span))
                made.append(c_ast.Leave(region, "return", span=item.span))
            case c_ast.Block():
                made.append(inside(item))
            case c_ast.If() | c_ast.For() | c_ast.While() | c_ast.Switch():
                made.append(c_ast.map_children(inside, item))
            case _:
                made.append(item)
    return tuple(made)


def _may_go_on(item: Any) -> bool:
    """Tell whether a branch of an ``if`` leaves the function only under a further condition."""
    branches = ((n.then, n.other) for n in c_ast.walk(item) if isinstance(n, c_ast.If))
    return any(_leaves(b) and not _ends(b) for pair in branches for b in pair)


def _leaves(item: Any) -> bool:
    return any(isinstance(n, c_ast.Leave) for n in c_ast.walk(item))


def _ends(item: Any) -> bool:
    """Tell whether what is after the statement never runs."""
    match item:
        case c_ast.Leave():
            return True
        case c_ast.Block(items):
            return bool(items) and _ends(items[-1])
        case c_ast.If(_, then, other):
            return _ends(then) and _ends(other)
    return False


def _with_pointer_sizes(function: c_ast.Function) -> c_ast.Block:
    """Return the body with the size of each parameter that is a pointer, also where it is declared as an array."""
    pointers = {p.name for p in function.params if not isinstance(p.type, c_ast.Basic | c_ast.Struct)}

    def rule(node: Any) -> Any:
        if isinstance(node, c_ast.SizeOf) and isinstance(node.of, c_ast.Name) and node.of.name in pointers:
            return c_ast.Number("8UL", span=node.span)
        return c_ast.map_children(rule, node)

    found: c_ast.Block = rule(function.body)
    return found


def _has_field(e: c_ast.Expr) -> bool:
    return any(isinstance(n, c_ast.Field) for n in c_ast.walk(e))


def _has_struct(kind: c_ast.Type) -> bool:
    match kind:
        case c_ast.Pointer(inner) | c_ast.ArrayOf(inner):
            return _has_struct(inner)
    return isinstance(kind, c_ast.Struct)


def _returns(items: Sequence[Any]) -> bool:
    """Tell whether the statements are declarations, conditions and returns of values alone."""
    for item in items:
        match item:
            case c_ast.Return(value):
                return value is not None
            case c_ast.Declare(_, c_ast.Basic(), init) if isinstance(init, c_ast.Expr):
                continue
            case c_ast.If(_, then, other):
                if not all(_returns(b.items) or not b.items for b in (then, other)):
                    return False
            case c_ast.Block(inner):
                if not _returns(inner):
                    return False
            case c_ast.PragmaItem():
                continue
            case _:
                return False
    return False
