"""Common wordings of directives, loops and refusals in messages and logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from looptune.ir.nodes import Arg, Directive, Loop, While

if TYPE_CHECKING:
    from looptune.poly.legality import Violation
    from looptune.poly.reassociation import ReorderedReduction


def loop_name(loop: Loop | While) -> str:
    """Return the name of the loop in messages."""
    return loop.var if isinstance(loop, Loop) else "while"


def list_reductions(turned: Iterable[ReorderedReduction]) -> str:
    """Return the reductions as an enumeration."""
    return " and ".join(dict.fromkeys(f"the reduction {s.op} of {s.variable}" for s in turned))


def vectorised_sums_note(sums: Iterable[ReorderedReduction]) -> str:
    """Return the note on sums that a CPU's compiler may reorder."""
    return f"on a CPU, vectors add up {', '.join(map(str, sums))} in another order; --no-reassociate forbids it"


def explain_refusal(what: str, refused: Violation, *, lines: bool = False) -> str:
    """Return the refusal in one line.

    The witness, with the ``lines`` of its statements, or the reason why there is none.
    """
    return f"{what}: {refused.reason(lines=lines)}"


def directive_text(directive: Directive) -> str:
    """Return the directive's text in canonical spacing."""
    args = ", ".join(_shown(a) for a in directive.args)
    return f"{directive.name} {args}".rstrip()


def _shown(arg: Arg) -> str:
    values = ["x".join(_value(v) for v in arg.values)] if arg.key == "blocksize" else [_value(v) for v in arg.values]
    match arg.values:
        case ():
            return arg.key
        case (Arg("by", (amount,)),):
            return f"{arg.key} by {amount}"
    if arg.key in ("private", "reduce", "transposed"):
        return f"{arg.key}({', '.join(values)})"
    separator = " " if arg.key in ("blocksize", "buffers", "rows", "unroll", "vector") else ":" if arg.key else ""
    return f"{arg.key}{separator}{', '.join(values)}"


def _value(v: int | str | Arg) -> str:
    return _shown(v) if isinstance(v, Arg) else str(v)
