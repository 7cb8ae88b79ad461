"""An end to what isl may take: some questions about a few loops would keep it busy for ever."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import islpy as isl


class TooInvolved(Exception):
    """isl gave up; never leaves ``poly``."""


@contextmanager
def limited(operations: int) -> Generator[None]:
    """No more ``operations`` of isl than these, of which it does some ten million a second; else TooInvolved."""
    context = isl.DEFAULT_CONTEXT
    context.set_max_operations(operations)
    context.reset_operations()
    try:
        yield
    except isl.Error as error:
        if _left():
            raise
        raise TooInvolved from error
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def _left() -> bool:
    """Whether the limit is not reached. Messages do not say: a parser that was stopped speaks of syntax."""
    try:
        isl.Set("{ [] }").is_empty()
    except isl.Error:
        return False
    return True
