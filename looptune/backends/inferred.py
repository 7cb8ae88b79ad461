"""What Numba's type inference finds out for every call and operator of a kernel, found out once in a process.

``a + b`` of two float32 has one type wherever it stands, yet Numba tries the overloads of ``+`` anew for each: a third
of the time that a kernel takes to compile. Numba has no setting for this, so its look-up is wrapped while one of ours
is compiled, and only then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from typing import Any

from numba.core.types.functions import BaseFunction

MOST = 50_000
"""Answers kept; constants are types of their own, of which there is no end."""

_known: dict[Hashable, Any] = {}


@contextlib.contextmanager
def inferred_once(flags: Hashable) -> Iterator[None]:
    """``flags``: what the compiler was told; what is found under other flags is kept apart."""
    look_up = BaseFunction.get_call_type
    if len(_known) > MOST:
        _known.clear()

    def once(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = (flags, self, context, args, tuple(kws.items()))
        found = _known.get(key)
        # The function knows by the signature what to lower it to; an equal one may not know yet.
        if found is None or found.args not in self._impl_keys:
            found = _known[key] = look_up(self, context, args, kws)
        return found

    BaseFunction.get_call_type = once  # type: ignore[method-assign]
    try:
        yield
    finally:
        BaseFunction.get_call_type = look_up  # type: ignore[method-assign]
