"""Lower a C function, or the scop in it, to one ``ir.Codelet``: its parameters, its locals, its statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast, hmpp
from looptune.frontend.c_types import pointer_dimensions
from looptune.frontend.codelet_selection import CodeletFunction, Region, nest_region, region
from looptune.frontend.directive_parser import parse_pragma
from looptune.frontend.field_texts import FieldText, named_texts
from looptune.frontend.finalize import (
    FINAL,
    array_direction,
    number_loops,
    remove_dead_finals,
    remove_empty_conditions,
    restore_names,
    scalars_in,
)
from looptune.frontend.flags import reduce_flags
from looptune.frontend.heap_arrays import allocated_pointers, allocated_rows
from looptune.frontend.induction import close_forms
from looptune.frontend.liveness import (
    address_taken,
    file_addresses,
    live_after,
    live_before,
    may_repeat,
)
from looptune.frontend.lower_expressions import Expressions
from looptune.frontend.lower_statements import Statements
from looptune.frontend.lowered_codelet import LoweredCodelet
from looptune.frontend.name_resolution import (
    assigned_names,
    base,
    only_dereferenced,
    resolve,
    singly_assigned,
    used_names,
    used_names_outside_unsupported,
)
from looptune.frontend.normalize import Surroundings, normalize
from looptune.frontend.normalize.calls import set_by_any_call, written_by_calls
from looptune.frontend.normalize.complex_numbers import with_parts
from looptune.frontend.normalize.pointer_offsets import moving_pointers
from looptune.frontend.normalize.results import result_name
from looptune.frontend.normalize.structured_jumps import FLAG
from looptune.frontend.overlaps import overlapping
from looptune.frontend.pointer_settings import has_pointer
from looptune.frontend.points_to import PointsTo
from looptune.frontend.pragma import LOOP_FAMILIES
from looptune.frontend.row_pointers import with_row_extents
from looptune.frontend.statement_facts import (
    declarations_in,
    is_opaque,
    reads_memory,
    spliced,
    variable_assignment,
    without_declarations,
    without_headers,
    writes_memory,
)
from looptune.frontend.surrounding_pointers import pointers_before, pointers_read_after
from looptune.frontend.symbol_table import Options, Scope, Storage, check_gnu, layout
from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, Load, Local, Scalar, Stmt, Var
from looptune.ir.simplify import is_integer
from looptune.ir.verify import verify

if TYPE_CHECKING:
    from looptune.frontend.normalize.field_variable import FieldVariable


def build(file: c_ast.File, chosen: CodeletFunction, options: Options) -> LoweredCodelet:
    """Return the codelet. Raises ParseError and UnsupportedError at the position in the C text."""
    builder = _Builder(file, chosen, options)
    codelet = builder.codelet()
    held = {p.name: base(name) for name, p in builder.results.items()}
    return LoweredCodelet(
        codelet, builder.region, builder.variables, held, builder.hidden, frozenset(builder.pointers()), builder.moved,
        builder.result, builder.flags, builder.fields, builder.has_structs, builder.rows, builder.row_lengths,
        builder.has_swaps, builder.has_choices, builder.texts, builder.nonnull,
    )  # fmt: skip


class _Builder:
    def __init__(self, file: c_ast.File, chosen: CodeletFunction, options: Options) -> None:
        self.file = file
        self.chosen = chosen
        self.function = chosen.function
        self.scope = Scope(file, options)
        marked = chosen.directive is not None
        own = self.part(self.function.body, marked)
        items = self.function.body.items if own is None else own.items
        self.by_calls = written_by_calls(file, items)
        self.written = assigned_names(self.with_own_names(items)) | self.by_calls
        self.moved: frozenset[str] = frozenset()
        env = {p.name: f"{p.name}#0" if self.is_copied(p) else p.name for p in self.function.params}
        self.set_globals = {f"{d.name}#0": d for d in file.globals if self.is_set(d) and d.name not in env}
        env |= {d.name: f"{d.name}#0" for d in file.globals if self.is_counter(d) and d.name not in env}
        env |= {d.name: name for name, d in self.set_globals.items()}
        self.struct_copies = tuple(self.copied_structs(env, own is None))
        env |= {base(d.name): d.name for d in self.struct_copies}
        self.body = resolve(self.function.body, env)
        self.region = self.part(self.body, marked)
        self.check_declared()
        check_gnu(c_ast.Block((self.body if self.region is None else self.region).items))
        self.result = self.result_array() if self.region is None else ""
        self.returned: tuple[Array, ...] = ()
        self.fields: tuple[FieldVariable, ...] = ()
        self.has_structs = self.has_swaps = self.has_choices = False
        self.texts: Mapping[str, FieldText] = {}
        self.nonnull: frozenset[str] = frozenset()
        self.items = self.normalized_items()
        self.starred = only_dereferenced((*self.items, *self.around()))
        self.outer: dict[str, Array | Scalar] = {}
        self.rows: dict[str, tuple[int, ...]] = {}
        self.row_lengths: frozenset[str] = frozenset()
        self.results = self.live_out_scalars()
        self.variables: Mapping[str, str] = {}
        self.hidden = self.flags = frozenset[str]()

    def with_own_names(self, items: Sequence[c_ast.Item]) -> Sequence[c_ast.Item]:
        """Return the items in which variables of the function have other names than those of the file and its own."""
        around = {d.name for d in (*self.file.globals, *self.function.params)}
        declared = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
        return resolve(c_ast.Block(tuple(items)), {}).items if declared & around else items

    def result_array(self) -> str:
        """Return the name of the array that holds what the function returns, or ""."""
        taken = frozenset((*(d.name for d in self.file.globals), *(f.name for f in self.file.functions)))
        name = result_name(self.function, taken)
        if name and self.chosen.directive is not None:
            message = f"{self.function.name} is a codelet of hmpp, which returns nothing: use a pointer for its value"
            raise UnsupportedError(message, self.function.span)
        return name

    def enter_result(self, types: Mapping[str, c_ast.Type]) -> None:
        """Make the array that holds what the function returns a parameter; a struct is a row of it."""
        if self.result:
            dtype, extents = layout(types[self.result], self.result, self.function.span)
            self.scope.arrays[self.result] = Storage(self.result, dtype, len(extents))
            exprs = Expressions(self.scope)
            shape = tuple(None if e is None else self.extent(exprs, e) for e in extents)
            self.returned = (Array(self.result, dtype, shape, span=self.function.span),)

    def copied_structs(self, taken: Mapping[str, str], whole: bool) -> Iterator[c_ast.Declare]:
        """Yield the variables for struct parameters that the codelet writes, and for constant structs of the file."""
        for p in self.function.params:
            if whole and isinstance(p.type, c_ast.Struct) and p.name in self.written:
                yield c_ast.Declare(f"{p.name}#0", p.type, c_ast.Name(p.name, span=p.span), span=p.span)
        used = used_names((self.function.body,))
        # where pointers are numbers, a struct of the file has its place in memory and any value
        for d in () if self.chosen.addresses else self.file.globals:
            if isinstance(d.type, c_ast.Struct) and d.const and d.init and d.name not in taken and d.name in used:
                yield replace(d, name=f"{d.name}#0", static=False)

    def part(self, body: c_ast.Block, marked: bool) -> Region | None:
        """Return the part of the function's body that is the codelet, or None if all of it is."""
        if self.chosen.nest is not None:
            return nest_region(body, self.chosen.nest)
        return None if marked else region(body, self.function.name, self.chosen.mark)

    def check_declared(self) -> None:
        """Raise UnsupportedError for a variable of the scop that is used after it, where a call would hide it."""
        after = frozenset() if self.region is None else used_names(self.region.after)
        for item in () if self.region is None else self.region.items:
            match item:
                case c_ast.Declare(name) if name in after:
                    raise UnsupportedError(f"{base(name)} is declared in this scop and used after it: declare it "
                                           "before #pragma scop", item.span)  # fmt: skip

    @property
    def is_nest(self) -> bool:
        return self.region is not None and self.region.kind == "nest"

    def normalized_items(self) -> tuple[c_ast.Item, ...]:
        """Return the codelet's statements after the passes of ``normalize``."""
        declared = (*self.file.globals, *self.function.params, *declarations_in(self.body))
        types = dict(self.file.structs) if self.chosen.addresses else {}
        types |= {d.name: d.type for d in (*declared, *self.struct_copies)}
        if self.result:
            types[self.result] = c_ast.ArrayOf(self.function.result, c_ast.Number("1"))
        before = () if self.region is None else tuple(pointers_before(self.region, self.body, types))
        own = frozenset(p.name for p in self.function.params)
        renamed = (*self.set_globals, *(d.name for d in self.struct_copies if base(d.name) not in own))
        renaming = {base(n): n for n in renamed}
        several = self.overlapping(before, types, renaming)
        text = (self.body if self.region is None else self.region).items
        items = (*self.struct_copies, *before, *self.own_structs(), *text)
        moved = moving_pointers(items, types)
        calls = any(isinstance(n, c_ast.Call) for item in items for n in c_ast.walk(item))
        read_after = (
            pointers_read_after(self.region, self.body, self.file, self.written) if moved or calls else frozenset()
        )
        around = Surroundings(self.file, types, self.region is None, read_after, self.result, own,
                              renaming, self.chosen.analysed_only,
                              frozenset(self.set_globals) | self.read_after(self.scalars_around()),
                              self.chosen.addresses, several)  # fmt: skip
        made = normalize(items, around)
        self.moved = frozenset(map(base, moved))
        self.has_swaps, self.has_choices = made.has_swaps, made.has_choices
        self.nonnull = frozenset(map(base, made.nonnull))
        self.enter_result(made.types)
        if made.has_structs:
            self.has_structs, self.fields, self.texts = True, made.fields, made.texts
            self.retype(made.types)
        return made.items

    def own_structs(self) -> Iterator[c_ast.Declare]:
        """Yield the structs that only the region of the function uses, and that no earlier run of it has set."""
        if self.region is None:
            return
        used, outside = used_names(self.region.items), used_names((self.region.outside,))
        for d in self.region.declared:
            own = isinstance(d.type, c_ast.Struct) and d.init is None and not d.static
            if own and d.name in used - outside and not may_repeat(self.body, self.region.items, d.name):
                yield d

    def overlapping(
        self, before: Iterable[c_ast.Item], types: Mapping[str, c_ast.Type], renamed: Mapping[str, str]
    ) -> frozenset[str]:
        """Return the names of memory that the codelet writes and names in two ways, after declarations ``before`` it.

        ``renamed`` are the names of variables of the file that have others in the codelet.

        Raises UnsupportedError if there is such memory, unless pointers are numbers.
        """
        region = self.region
        items, around = (self.body.items, c_ast.Block(())) if region is None else (region.items, region.outside)
        used = used_names(items)
        if not any(has_pointer(types[name]) for name in used if name in types):
            return frozenset()
        points_to = PointsTo.of(self.function.name, around, types, self.file, used, renamed)
        found = tuple(overlapping(items, before, points_to))
        if found and not self.chosen.addresses:
            raise found[0].refusal()
        return frozenset(name for overlap in found for name in overlap.names)

    def retype(self, types: Mapping[str, c_ast.Type]) -> None:
        """Give the variables from outside the types that they have without structs."""

        def all_of(several: Iterable[c_ast.Declare]) -> tuple[c_ast.Declare, ...]:
            return tuple(replace(d, type=types.get(d.name, d.type)) for d in several)

        self.function = replace(self.function, params=all_of(self.function.params))
        functions = frozenset(f.name for f in self.file.functions)
        listed = (with_parts(d, functions) for d in self.file.globals)
        self.file = replace(self.file, globals=all_of(listed))
        self.scope.file = self.file
        if self.region is not None:
            self.region = replace(self.region, declared=all_of(self.region.declared))

    def enter_fields(self) -> None:
        """Make the fields of structs from outside parameters."""
        for f in self.fields:
            d = f.declared
            dtype, extents = layout(d.type, base(d.name), d.span, rows=True)
            if extents:
                self.outer[d.name] = self.array(d.name, d, dtype, extents)
                continue
            self.outer[d.name] = Scalar(base(d.name), dtype, span=d.span)
            self.scope.bound[d.name] = Var(base(d.name), dtype, span=d.span)
            self.scope.fixed.add(base(d.name))

    def around(self) -> tuple[c_ast.Item, ...]:
        """Return the statements of the function without those of the codelet."""
        return () if self.region is None else self.region.outside.items

    def live_out_scalars(self) -> dict[str, Array]:
        """Scalars around the codelet that it writes and that are read afterwards, each as an array of one element.

        Under its own name, or that of a loop's variable or of a parameter with ``_last`` after it.
        """
        items = self.items if self.region is None else self.region.items
        kinds = self.scalars_around()
        read = (self.read_after(kinds) & assigned_names(items)) | self.set_globals.keys()
        counting = {n for f in c_ast.walk(c_ast.Block(items)) if isinstance(f, c_ast.For)
                    for n in assigned_names((*f.init, *(() if f.next is None else (f.next,))))}  # fmt: skip
        found: dict[str, Array] = {}
        for name, d in kinds.items():
            if name in read and isinstance(d.type, c_ast.Basic) and d.type.dtype != "void":
                renamed = name not in self.set_globals and (name in counting or name.endswith("#0"))
                shown = f"{base(name)}_last" if renamed else base(name)
                found[name] = Array(shown, d.type.dtype, (Const(1),), span=d.span)
        return found

    def scalars_around(self) -> dict[str, c_ast.Declare]:
        """Return the variables of the file and around a part of a function that the codelet may write."""
        kinds: dict[str, c_ast.Declare] = {f"{d.name}#0": d for d in self.file.globals if self.is_counter(d)}
        kinds |= self.set_globals
        if self.region is not None:
            kinds |= {d.name: d for d in self.region.declared if not (d.const and d.init is not None)}
            kinds |= {f"{p.name}#0": p for p in self.function.params if self.is_copied(p)}
        return kinds

    def read_after(self, kinds: Mapping[str, c_ast.Declare]) -> frozenset[str]:
        """Return the scalars that may be read once the codelet has run."""
        others = [f for f in self.file.functions if f.name != self.function.name]
        at_file = {n for n in kinds if n.endswith("#0") and n[:-2] not in {p.name for p in self.function.params}}
        by_others = frozenset(n for n in at_file if any(n[:-2] in live_before(f) for f in others)) if at_file else None
        if self.region is None:
            return by_others if by_others is not None else frozenset()
        statics = frozenset(name for name, d in kinds.items() if d.static) | at_file
        return (
            live_after(self.body, self.region.items, statics | (by_others or frozenset()))
            | (by_others or frozenset())
            | address_taken(self.region.outside)
        )

    def is_copied(self, p: c_ast.Declare) -> bool:
        return isinstance(p.type, c_ast.Basic) and p.name in self.written

    def is_counter(self, d: c_ast.Declare) -> bool:
        """Tell whether it is an integer at file scope that only ``for`` headers write.

        The loops count with a variable of their own.
        """
        if not isinstance(d.type, c_ast.Basic) or not is_integer(d.type.dtype) or d.name not in self.written:
            return False
        return d.name not in assigned_names(without_headers(self.function.body.items)) | self.by_calls

    def is_set(self, d: c_ast.Declare) -> bool:
        """Tell whether it is a scalar at file scope that the codelet writes, and that no pointer reaches."""
        if not isinstance(d.type, c_ast.Basic) or d.type.dtype == "void" or d.const or d.name not in self.written:
            return False
        return not self.is_counter(d) and not any(d.name in file_addresses(f) for f in self.file.functions)

    @cached_property
    def once(self) -> frozenset[str]:
        """The variables that are assigned in one place, which precedes every use, also that of a result at the end."""
        if self.region is None:
            body = c_ast.Block(self.items)
        else:
            body = spliced(self.body, self.region.items, self.items)
        at_top = {n.target.name for n in map(variable_assignment, self.items) if n is not None}
        return singly_assigned(body) - (self.results.keys() - at_top)

    def codelet(self) -> Codelet:
        params, prologue = self.parameters()
        self.enter_counters()
        prologue += self.enter_set_globals()
        self.enter_fields()
        prologue += self.surroundings()
        statements = Statements(self.scope, self.once)
        own = statements.block(self.items)
        tables = [stmt for d in self.scope.tables.values() for stmt in self.table(d)]
        body, more, replaced = close_forms((*prologue, *tables, *own, *self.epilogue(statements)), self.scope.locals)
        self.scope.locals |= more
        self.moved |= replaced
        body, _ = remove_dead_finals(body, frozenset())
        body = remove_empty_conditions(body)
        body, raised = reduce_flags(body, self.scope.locals)
        self.scope.locals |= raised
        results = (*self.results.values(), *self.returned)
        every: Sequence[Array | Scalar] = (
            *self.needed(params, body),
            *self.globals_used(),
            *self.outside_scalars(body),
            *results,
        )
        hiding = {p.name for p in self.function.params} | {d.name for d in declarations_in(self.function.body)}
        tables_hidden = [name for name in self.scope.tables if base(name) in hiding]
        names = restore_names(body, self.scope.locals, (p.name for p in every), tables_hidden)
        stmts, locals_, self.variables = names.stmts, names.locals, names.of_text
        self.texts, of_structs = named_texts(self.texts, names.renamed)
        self.variables = {**self.variables, **of_structs}
        self.flags = frozenset(new for old, new in names.renamed.items() if old.startswith(FLAG))
        self.hidden = frozenset(hiding & self.scope.globals_used.keys())
        stmts = number_loops(stmts)
        every, self.row_lengths = with_row_extents(every, stmts)
        directives = tuple(parse_pragma(p) for p in self.function.pragmas if p.family in LOOP_FAMILIES)
        codelet = Codelet(
            self.chosen.name,
            tuple(self.described(k, p, stmts) for k, p in enumerate(every)),
            locals_, stmts, self.chosen.label, directives, span=self.function.span,
        )  # fmt: skip
        return verify(codelet)

    # -- parameters -----------------------------------------------------------------------------

    def parameters(self) -> tuple[list[Array | Scalar], list[Stmt]]:
        """Return the function's parameters, and the copies of those it writes."""
        shapes: list[tuple[c_ast.Declare, str, tuple[c_ast.Expr | None, ...]]] = []
        prologue: list[Stmt] = []
        mentioned = used_names_outside_unsupported(self.items)
        for d in reversed(() if self.region is None else self.region.declared):
            # a pointer is an array of its own: what it is set to is not needed
            if d.name in mentioned and isinstance(d.init, c_ast.Expr) and not isinstance(d.type, c_ast.Pointer):
                mentioned |= used_names(() if is_opaque(d.init) else (d.init,))
        for p in self.function.params:
            try:
                dtype, extents = layout(p.type, p.name, p.span, rows=True)
            except UnsupportedError:
                if p.name in mentioned:
                    raise
                continue
            if extents and (self.is_nest or self.function.name == "main") and p.name not in mentioned:
                continue
            shapes.append((p, dtype, extents))
            if not extents:
                prologue += self.scalar(p, dtype)
        return [self.parameter(*shape) for shape in shapes], prologue

    def scalar(self, p: c_ast.Declare, dtype: str) -> list[Stmt]:
        if not self.is_copied(p):
            self.scope.scalars[p.name] = dtype
            self.scope.fixed.add(p.name)
            return []
        copy = f"{p.name}#0"
        if copy not in self.results and copy not in assigned_names(self.items):
            # each value that it is given has a name of its own
            self.scope.scalars[p.name] = dtype
            self.scope.fixed.add(p.name)
            self.scope.bound[copy] = Var(p.name, dtype)
            return []
        # The extents of other parameters mean the value passed, the body the copy.
        self.scope.bound[p.name] = Var(p.name, dtype)
        self.scope.fixed.add(p.name)
        self.scope.scalars[copy] = dtype
        self.scope.locals[copy] = Local(copy, dtype, span=p.span)
        return [Assign(Var(copy, dtype), Var(p.name, dtype), name=FINAL, span=p.span)]

    def parameter(self, p: c_ast.Declare, dtype: str, extents: tuple[c_ast.Expr | None, ...]) -> Array | Scalar:
        if not extents:
            return Scalar(p.name, dtype, span=p.span)
        return self.array(p.name, p, dtype, extents)

    def array(self, key: str, p: c_ast.Declare, dtype: str, extents: tuple[c_ast.Expr | None, ...]) -> Array:
        """Return an array under its own name; a pointer used as ``*x`` only is the thing it points to."""
        self.note_rows(p)
        starred = key in self.starred and isinstance(p.type, c_ast.Pointer) and base(p.name) not in self.rows
        if starred:
            extents = extents[1:] if len(extents) > 1 else (c_ast.Number("1"),)
        self.scope.arrays[key] = Storage(base(p.name), dtype, len(extents), starred, base(p.name) in self.rows)
        extents = self.known_extents(p, extents)
        exprs = Expressions(self.scope)
        shape = tuple(None if e is None else self.extent(exprs, e) for e in extents)
        return Array(base(p.name), dtype, shape, span=p.span)

    def note_rows(self, p: c_ast.Declare) -> None:
        if dimensions := pointer_dimensions(p.type):
            self.rows[base(p.name)] = dimensions

    def known_extents(self, p: c_ast.Declare, extents: tuple[c_ast.Expr | None, ...]) -> tuple[c_ast.Expr | None, ...]:
        """Return the extents, None for an outermost one that what stands around the codelet may change.

        Raises UnsupportedError if it may change an inner extent after the declaration.
        """
        names = [set() if e is None else used_names((e,)) & self.assigned_outside for e in extents]
        if changed := set().union(*names[1:]):
            name, array = base(min(changed)), base(p.name)
            message = (f"{name} is an extent of {array} and may have another value here than in its declaration: "
                       f"declare {array} with a variable that keeps its value")  # fmt: skip
            raise UnsupportedError(message, p.span)
        return (None, *extents[1:]) if names and names[0] else extents

    @cached_property
    def assigned_outside(self) -> frozenset[str]:
        """The variables that the function around a part of it assigns, and those of the file that its calls may."""
        if self.region is None:
            return frozenset()
        by_calls = set_by_any_call(self.file, self.region.outside)
        renamed = {name for name, d in self.set_globals.items() if d.name in by_calls}
        return assigned_names(without_declarations(self.region.outside.items)) | by_calls | renamed

    def extent(self, exprs: Expressions, e: c_ast.Expr) -> Expr:
        """Return the extent of an array dimension.

        It describes what the caller passed, so a parameter that the codelet writes counts with its first value.
        """
        return exprs.index(e)

    def described(self, position: int, p: Array | Scalar, stmts: tuple[Stmt, ...]) -> Array | Scalar:
        """Return the parameter with its direction, and the extents that only an hmpp clause gives."""
        if isinstance(p, Scalar):
            return p
        clauses = () if self.chosen.directive is None else self.chosen.directive.clauses
        found = array_direction(p.name, stmts)
        said: Any = hmpp.io_of(clauses, position, p.name)
        shape = p.shape
        sizes = hmpp.size_of(clauses, position, p.name)
        if shape[0] is None and len(sizes) == len(shape):
            shape = (self.size(sizes[0]), *shape[1:])
        # an array the codelet writes comes back, whatever the clause says
        io = found if said is None or (said == "in" and found != "in") else said
        return replace(p, io=io, shape=shape)

    def size(self, text: str) -> Expr | None:
        """Return the extent a clause names, where it is a number or a parameter."""
        if text.isdecimal() and len(text) < 19:
            return Const(int(text))
        dtype = self.scope.scalars.get(text)
        return Var(text, dtype) if dtype is not None and text in self.scope.fixed and is_integer(dtype) else None

    def table(self, d: c_ast.Declare) -> tuple[Stmt, ...]:
        """Return the assignments that fill a constant array of the file, where nothing of the function is visible."""
        statements = Statements(self.scope.inner(base(d.name)), frozenset())
        return statements.declare_array(d, *layout(d.type, base(d.name), d.span))

    def globals_used(self) -> list[Array | Scalar]:
        """Return what the codelet uses from file scope, in the order of the file, and then from around its scop."""
        for p in self.function.params:
            if p.name in self.scope.globals_used:
                raise UnsupportedError(f"{p.name} is a parameter, and a function that is called here uses the "
                                       f"{p.name} of the file: rename one of them", p.span)  # fmt: skip
        assert not {d.name for d in self.set_globals.values()} & self.scope.globals_used.keys(), "they have copies"
        order = [d.name for d in self.file.globals]
        found = sorted(self.scope.globals_used.items(), key=lambda item: order.index(item[0]))
        for name, _ in found:
            self.note_rows(next(d for d in self.file.globals if d.name == name))
        arrays = [p for p in self.outer.values() if isinstance(p, Array)]
        return [p for _, p in found] + arrays

    # -- what stands around a scop --------------------------------------------------------------

    def surroundings(self) -> list[Stmt]:
        """Variables declared around the scop enter it: with their initial value, or as parameters of the codelet."""
        if self.region is None:
            return []
        prologue: list[Stmt] = []
        wanted = set(used_names(self.items))
        for d in reversed(self.region.declared):
            if d.name in wanted:
                opaque = d.init is not None and is_opaque(d.init)
                wanted |= used_names((replace(d, init=None) if opaque else d,))
        written_outside = self.assigned_outside
        mentioned_outside = used_names((self.region.outside,))
        statements = Statements(self.scope, self.once)
        changed = assigned_names(self.region.items)
        stored = any(writes_memory(n) for n in c_ast.walk(self.region.outside))
        for d in (d for d in self.region.declared if d.name in wanted):
            dtype, extents = layout(d.type, base(d.name), d.span, rows=True)
            opaque = d.init is not None and (
                is_opaque(d.init)
                or bool(set(used_names((d.init,))) & written_outside)
                or (stored and reads_memory(d.init))
            )
            stays = (d.static and not d.const) or (
                d.name in changed and may_repeat(self.body, self.region.items, d.name)
            )
            if extents and (stays or d.name in mentioned_outside or isinstance(d.type, c_ast.Pointer)):
                self.outer[d.name] = self.array(d.name, d, dtype, extents)
            elif not extents and (
                stays or opaque or d.name in written_outside or (d.init is None and d.name not in changed)
            ):
                prologue += self.enters(d, dtype)
            else:
                prologue += statements.declare(d)
        return prologue

    def enter_counters(self) -> None:
        for d in self.file.globals:
            match d.type:
                case c_ast.Basic(dtype) if self.is_counter(d):
                    self.scope.scalars[f"{d.name}#0"] = dtype
                    self.scope.locals[f"{d.name}#0"] = Local(f"{d.name}#0", dtype, span=d.span)

    def enter_set_globals(self) -> list[Stmt]:
        """Return the assignments that give the scalars of the file which the codelet writes their first values."""
        made: list[Stmt] = []
        for name, d in self.set_globals.items():
            result = self.results[name]
            self.scope.scalars[name] = result.dtype
            self.scope.locals[name] = Local(name, result.dtype, span=d.span)
            first = Load(result.name, (Const(0),), result.dtype, span=d.span)
            made.append(Assign(Var(name, result.dtype), first, name=FINAL, span=d.span))
        return made

    def enters(self, d: c_ast.Declare, dtype: str) -> list[Stmt]:
        """Return a scalar with a value of its own when the scop begins."""
        assert self.region is not None, "only a scop has surroundings"
        name = base(d.name)
        if d.name in self.results:
            self.scope.scalars[d.name] = dtype
            self.scope.locals[d.name] = Local(d.name, dtype, span=d.span)
            first = Load(self.results[d.name].name, (Const(0),), dtype, span=d.span)
            return [Assign(Var(d.name, dtype), first, name=FINAL, span=d.span)]
        self.outer[d.name] = Scalar(name, dtype, span=d.span)
        if d.name not in assigned_names(self.region.items):
            self.scope.bound[d.name] = Var(name, dtype, span=d.span)
            self.scope.fixed.add(name)
            return []
        self.scope.scalars[d.name] = dtype
        self.scope.locals[d.name] = Local(d.name, dtype, span=d.span)
        return [Assign(Var(d.name, dtype), Var(name, dtype), name=FINAL, span=d.span)]

    def needed(self, params: list[Array | Scalar], body: tuple[Stmt, ...]) -> list[Array | Scalar]:
        """Return the parameters; of those of ``main``, and around a nest, only what the codelet uses."""
        if self.region is None or not (self.is_nest or self.function.name == "main"):
            return params
        read = scalars_in(body, *(p.shape for p in (*params, *self.outer.values()) if isinstance(p, Array)))
        return [p for p in params if isinstance(p, Array) or p.name in read]

    def outside_scalars(self, body: tuple[Stmt, ...]) -> list[Scalar]:
        """Those scalars around the scop whose value the scop needs."""
        read = scalars_in(body)
        return [p for p in self.outer.values() if isinstance(p, Scalar) and p.name in read]

    def pointers(self) -> Iterator[str]:
        """Yield the pointers among the arrays, apart from those whose memory is theirs alone."""
        yield from (p.name for p in self.function.params if not isinstance(p.type, c_ast.Basic))
        yield from (base(f.declared.name) for f in self.fields if not isinstance(f.declared.type, c_ast.Basic))
        declared = (*self.file.globals, *(() if self.region is None else self.region.declared))
        fresh, rows = allocated_pointers(self.body), allocated_rows(self.body)
        for d in declared:
            dimensions = pointer_dimensions(d.type)
            if (dimensions or isinstance(d.type, c_ast.Pointer)) and d.name not in (rows if dimensions else fresh):
                yield base(d.name)

    def epilogue(self, statements: Statements) -> list[Stmt]:
        """Return the assignments that store the scalars whose values leave the codelet."""
        made: list[Stmt] = []
        for name, result in self.results.items():
            value = statements.exprs.value(c_ast.Name(name, span=result.span))
            made.append(Assign(Load(result.name, (Const(0),), result.dtype), value, span=result.span))
        return made
