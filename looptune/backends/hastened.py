"""What makes Numba slow on large kernels, done once or in one look: the same code comes out, sooner.

    the type of ``a + b``, tried over all overloads at each place     found once in a process
    a variable, compared by copies of all its fields                  by its name
    the statements of a block, searched for each of its variables     counted once a function

Numba has no settings for these, so its functions are replaced while a kernel of ours is compiled, and only then.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from numba.core.types.functions import BaseFunction
from numba.cuda.core import analysis, ir
from numba.cuda.lowering import Lower

MOST = 50_000
"""Answers kept; constants are types of their own, of which there is no end."""

_known: dict[Hashable, Any] = {}


@contextlib.contextmanager
def hastened(flags: Hashable) -> Iterator[None]:
    """``flags``: what the compiler was told; the types found under other flags are kept apart."""
    with (
        _replaced(BaseFunction, "get_call_type", _typed_once(flags, BaseFunction.get_call_type)),
        _replaced(ir.Var, "__eq__", _same_variable),
        _replaced(ir.Assign, "__eq__", _same_assignment(ir.Assign.__eq__)),
        _replaced(ir.Assign, "list_vars", _variables_of_assignment),
        _replaced(Lower, "_find_singly_assigned_variable", _find_singly_assigned),
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


def _find_singly_assigned(self: Any) -> None:
    """The variables that one statement assigns and that only its block reads: they need no place in memory. Kernels are
    no generators, and no statement of theirs asks for memory."""
    blocks = self.func_ir.blocks
    found = analysis.compute_use_defs(blocks)
    read_elsewhere = set().union(*found.usemap.values())
    assigned = Counter(s.target.name for b in blocks.values() for s in b.body if isinstance(s, ir.assign_types))
    in_one = Counter(name for names in found.defmap.values() for name in names)
    self._singly_assigned_vars = {n for n, k in in_one.items() if k == assigned[n] == 1 and n not in read_elsewhere}
    self._blk_local_varmap = {}
