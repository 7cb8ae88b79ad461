"""The exceptions that looptune raises for mistakes of the user.

* LooptuneError          one line with file:line:col, the source line and a caret, then notes; exit code 2
  * UsageError           an option, a file or a value given from outside the C text
  * ParseError           the C, a directive or a space file is malformed
  * UnsupportedError     valid C outside the language looptune accepts; says what to write instead
  * DirectiveError       a directive names a loop that is absent, or has a bad argument
  * IllegalTransform     the dependences forbid it; carries the witness
  * ResourceError        a kernel needs more than the device has; carries both numbers
  * TargetError          the target cannot run here; says what to install
  * StoreError           the results database cannot be read or written
  * PluginError          a package that brings a directive, a strategy or a target cannot be used
"""

from __future__ import annotations

from typing import Any

from looptune.core.source import NOWHERE, Span, caret


class LooptuneError(Exception):
    """A mistake of the user's: ``message`` is one line, ``span`` says where, ``notes`` are lines that say more."""

    def __init__(self, message: str, span: Span = NOWHERE, notes: tuple[str, ...] = ()) -> None:
        head = message if span == NOWHERE else caret(span, message)
        super().__init__("\n".join((head, *(f"  {note}" for note in notes))))
        self.message = message
        self.span = span
        self.notes = notes


class UsageError(LooptuneError):
    """The user's request is wrong: an option, an argument, or a file that does not fit."""


class NotCapturable(UsageError):
    """What cannot be recorded as a CUDA graph, since the host reads data to decide on its launches."""


class ParseError(LooptuneError):
    """The C text or a line of directives cannot be parsed."""


class UnsupportedError(LooptuneError):
    """The C text is valid but looptune does not support it."""


class DirectiveError(LooptuneError):
    """A directive is misspelt, misplaced, or has wrong arguments."""


class IllegalTransform(LooptuneError):
    """A directive would reverse a dependence."""


class ResourceError(LooptuneError):
    """A kernel exceeds a limit of the device."""


class TargetError(LooptuneError):
    """A target cannot be used, or cannot build a kernel."""


class StoreError(LooptuneError):
    """A results database cannot be read or written."""


class PluginError(LooptuneError):
    """A plug-in cannot be used."""


class InfeasibleDirective(Exception):
    """A loop that its directive does not fit, now that the nest is finished: the message says why.

    ``schedule`` makes it an error at the directive.
    """

    def __init__(self, loop: Any, why: str) -> None:
        super().__init__(why)
        self.loop = loop
