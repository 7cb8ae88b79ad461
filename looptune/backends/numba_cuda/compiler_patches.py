"""Faster replacements of the parts of Numba that are slow on large kernels; they produce the same code.

    the type of ``a + b``, tried over all overloads at each place     found once in a process
    a variable, compared by copies of all its fields                  by its name
    the statements of a block, searched for each of its variables     counted once a function
    all statements, rewritten for each variable that is assigned      the blocks that mention it
      more than once
    the place of a statement in its block, searched from the top      by a table of the block
    which variables are live where: of all, after each of its steps,  of those that blocks share, where it is asked,
      from the first block on                                          from the last block on
    the variables of a scope, completed for every block of it         for the scope

Numba has no settings for these, so its functions are replaced while a kernel of ours is compiled, and only then.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from numba.core.types.functions import BaseFunction
from numba.cuda.core import analysis, ir, ir_utils, ssa, transforms, untyped_passes
from numba.cuda.core.postproc import PostProcessor, VariableLifetime
from numba.cuda.lowering import Lower

MOST = 50_000
"""Answers kept; constants are types of their own, of which there is no end."""

NO_VARIABLES = frozenset({str, int, float, bool, type(None), ir.Loc, type(len)})
"""Of Numba's statements the fields that hold no variable; other fields are asked one by one."""

_known: dict[Hashable, Any] = {}


@contextlib.contextmanager
def patched_compiler(flags: Hashable) -> Iterator[None]:
    """Yield while Numba's compiler is patched.

    ``flags``: the options of the compiler; types found under other options are kept separately.
    """
    with (
        _replaced(BaseFunction, "get_call_type", _typed_once(flags, BaseFunction.get_call_type)),
        _replaced(ir.Var, "__eq__", _same_variable),
        _replaced(ir.Assign, "__eq__", _same_assignment(ir.Assign.__eq__)),
        _replaced(ir.Assign, "list_vars", _variables_of_assignment),
        _replaced(ir.Inst, "_rec_list_vars", _variables_in(ir.Inst._rec_list_vars)),
        _replaced(Lower, "_find_singly_assigned_variable", _find_singly_assigned),
        _replaced(ssa, "_run_ssa", _assigned_once(ssa._run_ssa, ssa._run_block_rewrite)),
        _replaced(ssa._FixSSAVars, "_stmt_index", _place_of_statement),
        _replaced(PostProcessor, "run", _processed(PostProcessor.run)),
        _replaced(analysis, "compute_live_map", _live_map),
        _replaced(untyped_passes, "fixup_var_define_in_scope", _define_in_scopes),
        _replaced(ir_utils, "compat_list_vars_stmt", _variables_of(ir_utils.compat_list_vars_stmt)),
    ):
        yield


@contextlib.contextmanager
def _replaced(of: type, name: str, by: Callable[..., Any]) -> Iterator[None]:
    own = vars(of).get(name)
    setattr(of, name, by)
    try:
        yield
    finally:
        if own is None:
            delattr(of, name)
        else:
            setattr(of, name, own)


def _typed_once(flags: Hashable, look_up: Callable[..., Any]) -> Callable[..., Any]:
    if len(_known) > MOST:
        _known.clear()

    def once(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = (flags, self, context, args, tuple(kws.items()))
        found = _known.get(key)
        # The function knows by the signature what to lower it to; an equal one may not know yet.
        if found is None or found.args not in self._impl_keys:
            found = _known[key] = look_up(self, context, args, kws)
        return found

    return once


def _same_variable(self: Any, other: Any) -> bool:
    return type(self) is type(other) and self.name == other.name


def _same_assignment(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def same(self: Any, other: Any) -> bool:
        return type(self) is type(other) and self.target.name == other.target.name and compare(self, other)

    return same


def _variables_of_assignment(self: Any) -> list[Any]:
    return [*self._rec_list_vars(self.value), self.target]


def _variables_in(look: Callable[[Any, Any], list[Any]]) -> Callable[[Any, Any], list[Any]]:
    """Return what most fields are is known by their types."""

    def listed(self: Any, value: Any) -> list[Any]:
        kind = type(value)
        if kind is ir.Var:
            return [value]
        if kind is not dict:
            return [] if kind in NO_VARIABLES else look(self, value)
        return [v for field in value.values() if type(field) not in NO_VARIABLES for v in listed(self, field)]

    return listed


def _find_singly_assigned(self: Any) -> None:
    """Find the variables that one statement assigns and that only its block reads: they need no memory.

    Kernels are no generators, and no statement of theirs asks for memory.
    """
    blocks = self.func_ir.blocks
    found = analysis.compute_use_defs(blocks)
    read_elsewhere = set().union(*found.usemap.values())
    assigned = Counter(s.target.name for b in blocks.values() for s in b.body if isinstance(s, ir.assign_types))
    in_one = Counter(name for names in found.defmap.values() for name in names)
    self._singly_assigned_vars = {n for n, k in in_one.items() if k == assigned[n] == 1 and n not in read_elsewhere}
    self._blk_local_varmap = {}


def _assigned_once(run: Callable[..., Any], rewrite: Callable[..., Any]) -> Callable[..., Any]:
    """One variable after the other is rewritten, to others whose names are new.

    So what a block mentions of the variables that are yet to come stays as it was at first.
    """

    def only_where_mentioned(blocks: Any, states: Any, handler: Any) -> Any:
        made: dict[int, Any] = {}
        for label, block in blocks.items():
            if states["varname"] in mentioned[label]:
                made |= rewrite({label: block}, states, handler)
            else:
                made[label] = ir.Block(block.scope, block.loc)
                made[label].body = block.body
        return made

    def once(blocks: Any) -> Any:
        mentioned.update((label, {v.name for s in b.body for v in s.list_vars()}) for label, b in blocks.items())
        with _replaced(ssa, "_run_block_rewrite", only_where_mentioned):
            return run(blocks)

    mentioned: dict[int, set[str]] = {}
    return once


def _place_of_statement(self: Any, statement: Any, block: Any, stop: int = -1) -> int:
    """Return the place of this object in the block before ``stop``, which counts as in a slice, else its length."""
    body = block.body
    if self.__dict__.get("_body") is not body:
        self._body, self._places = body, {id(s): place for place, s in enumerate(body)}
    place: int = self._places.get(id(statement), len(body))
    return place if place < (stop if stop >= 0 else len(body) + stop) else len(body)


def _processed(run: Callable[..., None]) -> Callable[..., None]:
    """Without what only generators need of it; what is live where is found by its first reader."""

    def once(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = self.func_ir
        if function.is_generator:
            run(self, emit_dels, extend_lifetimes)
            return
        function.blocks = transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = VariableLifetime(function.blocks)
        function.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    return once


def _live_map(cfg: Any, blocks: Any, used: Any, defined: Any) -> dict[int, set[str]]:
    """By block the variables that are live where it begins.

    Those it reads, and those live after it that come to it and that it does not define. What no block reads of
    another's is live nowhere.
    """
    read = set().union(*used.values())
    own = {at: names & read for at, names in defined.items()}
    come = {at: own[at] | used[at] for at in blocks}
    _settle(come, list(blocks), cfg.successors, lambda here, to: come[here])
    live = {at: set(used[at]) for at in blocks}
    _settle(live, list(blocks)[::-1], cfg.predecessors, lambda here, to: (live[here] & come[to]) - own[to])
    return live


def _settle(
    sets: dict[int, set[str]], order: Sequence[int], nexts: Callable[[int], Any], gives: Callable[[int, int], set[str]]
) -> None:
    """Each set is joined with what its neighbours give it, until none grows."""
    grown = True
    while grown:
        grown = False
        for here in order:
            for to, _ in nexts(here):
                before = len(sets[to])
                sets[to] |= gives(here, to)
                grown |= len(sets[to]) > before


def _define_in_scopes(blocks: Any) -> None:
    used: dict[str, Any] = {}
    for block in blocks.values():
        for statement in block.body:
            for variable in statement.list_vars():
                used.setdefault(variable.name, variable)
    for scope in {id(b.scope): b.scope for b in blocks.values()}.values():
        for name, variable in used.items():
            if name not in scope.localvars:
                scope.localvars.define(name, variable)


def _variables_of(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Only the statement that ends a variable's life lists none, and has its name."""
    return lambda statement: statement.list_vars() or look(statement)
