"""Failures by reason: refusals that differ only in numbers are one line with a count and one example.

    illegal  412 x  permute k, i, j is illegal: iteration (i=0, j=1, k=1) must run before (i=1, j=0, k=0) when n=2
             looptune run gemm.c --target numba-cpu --fresh --directive 'nest i: permute k, i, j'

The example is the shortest configuration with that reason; the command measures it again, alone.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from looptune.core.escape import printable
from looptune.runtime.outcome import CLASSES, Outcome, Timed
from looptune.tune.store.store import Context, Row

FAILED = tuple(status for status in CLASSES if status not in ("timed", "cut_off"))
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_SHOWN_LINES = 6


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason on one kernel, at one size, type and device.

    ``directives`` is the example's text, ``reason`` the message with N for each number, ``configurations`` how many
    share it.
    """

    context: Context
    status: str
    reason: str
    configurations: int
    evidence: str
    directives: str
    command: str

    def record(self) -> dict[str, Any]:
        c = self.context
        return {
            "kernel": c.kernel, "class": self.status, "configurations": self.configurations, "reason": self.reason,
            "evidence": self.evidence, "directives": self.directives, "command": self.command,
            "device": c.device, "target": c.target, "dtype": c.dtype, "sizes": c.sizes, "lowering": c.lowering,
        }  # fmt: skip


def collect(
    rows: Iterable[Row], commands: Mapping[str, str], classes: Collection[str] = FAILED, *, each: bool = False
) -> list[Failure]:
    """Return the failures among ``rows``, by kernel and class, with the number of rows that share each.

    If ``each``, no rows are merged.
    """
    groups: dict[tuple[object, ...], list[tuple[Row, Outcome]]] = {}
    for row in rows:
        match row.outcome:
            case None | Timed():
                continue
            case outcome if outcome.status in classes:
                own = row.directives if each else ""
                groups.setdefault((row.context, outcome.status, reason(outcome.message), own), []).append(
                    (row, outcome)
                )
    found = [_failure(members, commands) for members in groups.values()]
    order = {status: k for k, status in enumerate(FAILED)}
    return sorted(found, key=lambda f: (f.context.kernel, f.context.hash, order[f.status], -f.configurations))


def reason(message: str) -> str:
    """Return the part that messages of one cause share: the first line, without numbers.

    >>> reason("C[3][0]: got 1.5e-7, expected 2 (1 of 9 elements)")
    'C[N][N]: got N, expected N (N of N elements)'
    """
    lines = message.splitlines()
    return _NUMBER.sub("N", lines[0]) if lines else ""


def _failure(members: Sequence[tuple[Row, Outcome]], commands: Mapping[str, str]) -> Failure:
    row, outcome = min(members, key=lambda m: (len(m[0].directives), m[0].directives))
    assert not isinstance(outcome, Timed), "a timed version did not fail"
    # A database of an earlier version does not know the command.
    known = commands.get(row.sweep)
    command = f"{known if known else 'looptune run FILE'} --fresh"
    lines = "".join(f" --directive {shlex.quote(line)}" for line in row.directives.splitlines())
    return Failure(
        row.context, outcome.status, reason(outcome.message), len(members), outcome.message, row.directives,
        command + lines,
    )  # fmt: skip


def text(failures: Sequence[Failure]) -> str:
    """Return every reason with its count, the evidence of an example and a command.

    Each kernel and device has a heading.
    """
    lines: list[str] = []
    before: Context | None = None
    for f in failures:
        if f.context != before:
            lines += [*([""] if lines else []), heading(f.context), ""]
            before = f.context
        said = [printable(line) for line in f.evidence.splitlines()]
        more = [f"... {len(said) - _SHOWN_LINES} lines more, see --json"] if len(said) > _SHOWN_LINES else []
        lead = f"  {f.status.replace('_', ' '):10}  {f.configurations:>5} x  "
        shown = [*said[:_SHOWN_LINES], *more]
        lines += [lead + (shown[0] if shown else "")]
        lines += [" " * len(lead) + line for line in (*shown[1:], f.command)]
    return "\n".join(lines)


def heading(context: Context) -> str:
    """Return the heading of a context: ``gemm float32 n=512, NVIDIA H200 (numba-cuda)``."""
    sizes = "".join(f" {name}={value:g}" for name, value in json.loads(context.sizes).items())
    return f"{context.kernel} {context.dtype}{sizes}, {context.device} ({context.target})"
