"""Limits on the operations of isl, and the exception that is raised when one is reached.

Some questions about a few loops would take isl forever, and a few of its functions fail on valid sets. Either raises
``IslLimitExceeded``; the caller then takes the answer that is always safe: a dependence, a sequential loop.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import islpy as isl

QUESTION = 10**6
"""Operations of isl for one question about a codelet: a second or so."""
JUDGEMENT = 5 * 10**6
"""Operations for judging one order; of 64 copies, each with an order of its own, it takes three million."""
CODELET = 5 * 10**6
"""Operations for all the dependences of one codelet."""
_COUNTED = (10**4, 10**5, 10**6)
"""How many operations a question took is known as one of these."""


class IslLimitExceeded(Exception):
    """A limit on the operations of isl was reached; the message is a clause.

    It leaves ``poly`` only where there is no safe answer to give instead. ``between``: the statements that were asked
    about, if they are known.
    """

    def __init__(self, operations: int) -> None:
        self.between: tuple[str, ...] = ()
        super().__init__(f"isl gave up after {count_text(operations)} operations")


def count_text(operations: int) -> str:
    """Return a number of operations as text.

    >>> count_text(20_000_000)
    '20 million'
    """
    return f"{operations / 10**6:.3g} million"


@dataclass(slots=True)
class Effort:
    """The operations that several questions took together; questions that take few operations are not counted."""

    spent: int = 0

    @property
    def left(self) -> int:
        return min(QUESTION, CODELET - self.spent)


_limits: list[int] = []
"""Those in force. The outermost counts: what is asked within it has what it leaves."""


@contextmanager
def isl_operation_limit(operations: int, effort: Effort | None = None) -> Generator[None]:
    """Limit the operations of isl in the context; isl does some ten million a second.

    Raises IslLimitExceeded when the limit is reached, and when isl fails. ``effort`` is told how many operations were
    done. Inside another limit, only the outer one counts.
    """
    if _limits:
        try:
            yield
        except (isl.Error, TypeError) as error:
            if _ours(error):
                raise
            raise IslLimitExceeded(_limits[0]) from error
        return
    if operations <= 0:
        raise IslLimitExceeded(CODELET)
    context, spent = isl.DEFAULT_CONTEXT, operations
    _limits.append(operations)
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield
        spent = _done()
    except (isl.Error, TypeError) as error:
        if _ours(error):
            raise
        raise IslLimitExceeded(operations) from error
    finally:
        _limits.pop()
        if effort is not None:
            effort.spent += spent
        context.set_max_operations(0)
        context.reset_operations()


def _ours(error: Exception) -> bool:
    """No failure of isl: a number that it gives up on is None to islpy, and a TypeError, once the limit is reached."""
    if isinstance(error, isl.Error):
        return False
    try:
        isl.Set("{ [] }").is_empty()
    except isl.Error:
        return False
    return True


def _done() -> int:
    """How many operations were done, at least: 0 where they were few. isl says only whether a limit is reached."""
    least = 0
    for most in _COUNTED:
        isl.DEFAULT_CONTEXT.set_max_operations(most)
        try:
            isl.Set("{ [] }").is_empty()
        except isl.Error:
            least = most
        else:
            break
    return least
