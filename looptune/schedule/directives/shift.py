"""Shift: a loop counts from another start.

    for i in 0..n: S(i)     ==>     for i in 3 .. n + 3: S(i - 3)          shift i by 3

The order is as before. Two loops whose iterations correspond at a distance have equal bounds afterwards, so that
``fuse`` joins them without conditions, and blocks of ``tile`` begin where they should.

Legal when: always; the bounds must be analysable. Gain: fewer conditions, aligned blocks. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from looptune.schedule.directives.base import Example
from looptune.schedule.directives.skew import Skew


@dataclass(frozen=True)
class Shift(Skew):
    name: ClassVar[str] = "shift"
    syntax: ClassVar[str] = "shift LOOP by SUM [, LOOP by SUM ...]"


_COPY = "for (int i = 1; i < n; i++)\n    B[i] = A[i];"

Shift.examples = {
    "shift i by -1": Example(_COPY, """\
for (int i = 0; i < n - 1; i++) {
  B[i + 1] = A[i + 1];
}"""),
    "shift i by n": Example(_COPY, """\
for (int i = n + 1; i < 2 * n; i++) {
  B[i - n] = A[i - n];
}"""),
    "shift i": Example(_COPY, refused="shift takes LOOP by SUM"),
}  # fmt: skip
