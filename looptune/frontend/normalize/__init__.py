"""Rewrite the statements of a codelet into the C that ``lower_statements`` reads: one file for each pass.

Each pass takes and returns statements of ``c_ast`` in which one name is one variable (``name_resolution.resolve``), and
what they compute stays the same. A pass leaves alone what it cannot rewrite: ``lower_statements`` refuses it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from looptune.frontend import c_ast
from looptune.frontend.field_texts import FieldText, field_texts
from looptune.frontend.normalize.addresses import replace_memory
from looptune.frontend.normalize.allocations import declare_allocated
from looptune.frontend.normalize.calls import Calls
from looptune.frontend.normalize.complex_numbers import separate_parts
from looptune.frontend.normalize.copies import propagate_copies
from looptune.frontend.normalize.counting_conditions import move_counting
from looptune.frontend.normalize.do_loops import tested_first
from looptune.frontend.normalize.field_variable import FieldVariable
from looptune.frontend.normalize.library_effects import type_of
from looptune.frontend.normalize.live_ranges import split_live_ranges
from looptune.frontend.normalize.nonnull_pointers import assume_nonnull
from looptune.frontend.normalize.pointer_choices import split_choices
from looptune.frontend.normalize.pointer_ends import replace_ended_pointers
from looptune.frontend.normalize.pointer_offsets import moving_pointers, replace_pointers
from looptune.frontend.normalize.pointer_swaps import replace_swaps
from looptune.frontend.normalize.pointer_tests import replace_pointer_tests
from looptune.frontend.normalize.results import store_result
from looptune.frontend.normalize.side_effects import separate_effects
from looptune.frontend.normalize.sizes import replace_sizeof
from looptune.frontend.normalize.struct_fields import separate_fields
from looptune.frontend.normalize.structured_jumps import eliminate_jumps
from looptune.frontend.normalize.switches import replace_switches

Items = tuple[c_ast.Item, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the statements: the file, the types of the variables, and whether they are a whole body.

    ``read_after``: the pointers from outside whose value may be read after the statements. ``result`` is the array in
    which a whole body stores what it returns, "" if it returns nothing. ``parameters`` are those of the function.
    ``set_globals`` are the names here of the file's scalars that are written.
    ``live``: the scalars whose value may be read after the statements.
    ``analysed_only``: nothing is compiled, so that a jump out of the statements may end them; ``addresses``: pointers
    are numbers, as ``addresses`` makes them, where ``several_names`` lead to memory that has another name as well.
    """

    file: c_ast.File
    types: Mapping[str, c_ast.Type]
    is_body: bool
    read_after: frozenset[str] = frozenset()
    result: str = ""
    parameters: frozenset[str] = frozenset()
    set_globals: Mapping[str, str] = field(default_factory=dict)
    analysed_only: bool = False
    live: frozenset[str] = frozenset()
    addresses: bool = False
    several_names: frozenset[str] = frozenset()


Pass = Callable[[Items, Surroundings], Items]


def _results(items: Items, around: Surroundings) -> Items:
    return store_result(items, around.result) if around.result else items


def _swaps(items: Items, around: Surroundings) -> Items:
    return replace_swaps(items, _types(items, around), around.read_after)


def _choices(items: Items, around: Surroundings) -> Items:
    return split_choices(items, _types(items, around), around.read_after)


def _pointers(items: Items, around: Surroundings) -> Items:
    replaced = replace_ended_pointers if around.analysed_only else replace_pointers
    return replaced(items, _types(items, around), around.read_after)


def _types(items: Items, around: Surroundings) -> dict[str, c_ast.Type]:
    declared = {n.name: n.type for n in c_ast.walk(c_ast.Block(items)) if isinstance(n, c_ast.Declare)}
    return {**around.types, **declared}


def _allocations(items: Items, around: Surroundings) -> Items:
    return declare_allocated(items, [f.name for f in around.file.functions]) if around.is_body else items


def _effects(items: Items, around: Surroundings) -> Items:
    moved = frozenset(moving_pointers(items, around.types))
    calls = Calls(
        around.file, _types(items, around), around.parameters, around.set_globals, around.analysed_only, moved
    )
    return separate_effects(items, calls)


def _complex(items: Items, around: Surroundings) -> Items:
    return separate_parts(items, _types(items, around), frozenset(f.name for f in around.file.functions))


def _tests(items: Items, around: Surroundings) -> Items:
    unknown = around.analysed_only and not around.addresses
    types = _types(items, around)

    def kind_of(name: str) -> c_ast.Type | None:
        return types.get(name, types.get(name.removesuffix("#0")))

    return replace_pointer_tests(items, lambda e: type_of(e, kind_of)) if unknown else items


def _switches(items: Items, around: Surroundings) -> Items:
    return replace_switches(items)


def _jumps(items: Items, around: Surroundings) -> Items:
    return eliminate_jumps(items, around.is_body, may_leave=around.analysed_only)


def _counting(items: Items, around: Surroundings) -> Items:
    shared = {*(d.name for d in around.file.globals), *around.set_globals.values()}
    return move_counting(tested_first(items, _types(items, around), shared))


def _ranges(items: Items, around: Surroundings) -> Items:
    types = _types(items, around)
    passed = {f"{name}#0": types[name] for name in around.parameters if name in types}
    return split_live_ranges(items, {**passed, **types}, around.live, passed)


def _sizes(items: Items, around: Surroundings) -> Items:
    return replace_sizeof(items, around.types, around.parameters)


PASSES: tuple[Pass, ...] = (_tests, _allocations, _results, _counting, _effects, _complex, _sizes)
"""Those for statements that may name structs."""
PASSES_WITHOUT_STRUCTS: tuple[Pass, ...] = (_switches, _jumps, _swaps, _choices, _pointers, _ranges)


@dataclass(frozen=True, slots=True)
class Normalized:
    """Statements that ``lower_statements`` reads.

    ``types`` are those of the variables, in which arrays of structs are arrays of more dimensions. ``fields`` are the
    fields of structs from outside that are variables of their own; ``has_structs``: the statements named structs;
    ``nonnull`` are the pointers that they test for being null, and that are assumed not to be;
    ``has_swaps``: they swapped pointers in a loop; ``has_choices``: a condition chose among arrays, so that statements
    of the text stand in both branches. ``texts`` say how the text writes what was fields of structs.
    """

    items: Items
    types: Mapping[str, c_ast.Type]
    fields: tuple[FieldVariable, ...]
    has_structs: bool
    has_swaps: bool = False
    has_choices: bool = False
    texts: Mapping[str, FieldText] = field(default_factory=dict)
    nonnull: frozenset[str] = frozenset()


def normalize(items: Items, around: Surroundings) -> Normalized:
    """Return the statements after all passes. Raises UnsupportedError at what a pass has to refuse."""
    for apply in PASSES:
        items = apply(items, around)
    nonnull = frozenset[str]()
    if not around.analysed_only:
        items, nonnull = assume_nonnull(items, around.types, around.parameters)
    types = _types(items, around)
    if around.addresses:
        separated = replace_memory(items, types, around.read_after, around.several_names)
    else:
        separated = separate_fields(items, types, around.analysed_only)
    has_structs = separated.items is not items
    items, around = separated.items, replace(around, types=separated.types)
    items = propagate_copies(items, separated.types) if has_structs else items
    changed = set[Pass]()
    for apply in PASSES_WITHOUT_STRUCTS:
        made = apply(items, around)
        changed |= {apply} if made is not items else set()
        items = made
    used = {n.name for item in items for n in c_ast.walk(item) if isinstance(n, c_ast.Name)}
    fields = tuple(f for f in separated.outside if f.declared.name in used)
    texts = field_texts((*fields, *separated.inside), types, separated.types) if has_structs else {}
    return Normalized(
        items, separated.types, fields, has_structs, _swaps in changed, _choices in changed, texts, nonnull
    )
