"""Directives for a codelet that was not tuned: of some versions of a derived space, the one predicted to be fastest.

    sections of the derived space ─▶ the first version of each ─▶ predicted time ─▶ the least, if below the default's

A derived space begins with the versions that win most often, see ``tune.space.derive``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from looptune.backends.codegen.kernel import check_capability, check_limits
from looptune.core.errors import DirectiveError, IllegalTransform, ParseError, ResourceError
from looptune.deploy.plans import default, size_independent
from looptune.ir.nodes import Assign, If, Loop, Scalar, While
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer
from looptune.ir.specialize import specialize
from looptune.lower.machine import MODEL
from looptune.lower.pipeline import finish, lower
from looptune.runtime.problem_sizes import integers
from looptune.runtime.work_bounds import least_flops
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.cost_model.devices import CHIPS, DEFAULT, Chip
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.space.derive import derive
from looptune.tune.space.space import Configuration, Section, parse

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.schedule.analysis import Analysis

SECTIONS = 10
"""Sections of which the first version is predicted."""
USUAL_SIZE = 1000
"""What a size is taken for that the program does not say."""
WORTHWHILE = 0.9
"""Of the time without directives; predictions are not more exact."""
DERIVE_S = 60.0
"""Seconds that a space may take to be derived: so many that even a busy machine finds all that it may find."""


LOOPS_PER_US = 1000
"""Operations that the original loops do in a microsecond on one core, or more."""
WORTH_SAYING_US = 1e5


@dataclass(frozen=True, slots=True)
class Guess:
    """Directives, and the predicted times with and without them in microseconds."""

    directives: str
    predicted_us: float
    default_us: float
    device: str


def guess(unit: Unit, analysis: Analysis, architectures: Sequence[str]) -> Guess | None:
    """Return directives that are predicted to be faster than none at the program's sizes.

    None if the file has directives of its own, or if none of those that were predicted is faster.
    """
    if unit.codelet.directives or any(_has_directives(n) for n in walk(unit.codelet.body)) or unit.choices:
        return None
    sizes = _sizes(unit)
    chip = _chip(architectures)
    before = _predicted_us(analysis, "", sizes, chip)
    found = [(_predicted_us(analysis, text, sizes, chip), text) for text in _candidates(analysis)]
    best = min(((us, text) for us, text in found if us is not None), default=None)
    if best is None or before is None or best[0] > WORTHWHILE * before:
        return None
    return Guess(best[1], best[0], before, chip.name)


def warning(unit: Unit, analysis: Analysis, directives: str, architectures: Sequence[str]) -> str:
    """Return what to say of a version that is predicted to be slower than the original loops, "" for a faster one.

    That is so for loops that are sequential in each version, where every operation is a launch, or one thread's.
    """
    sizes, chip = _sizes(unit), _chip(architectures)
    us, operations = _predicted_us(analysis, directives, sizes, chip), least_flops(unit.codelet.body, sizes)
    if us is None or not operations or us < max(WORTH_SAYING_US, operations / LOOPS_PER_US):
        return ""
    return (
        f"{unit.codelet.name} is predicted to take {us / 1e6:.2g} s on {chip.name} at the sizes of the program, longer "
        "than its loops on a core: tune it with looptune run, or run the program with LOOPTUNE_DEVICE=none"
    )


def _chip(architectures: Sequence[str]) -> Chip:
    return next((c for c in CHIPS if c.arch in architectures), DEFAULT)


def _has_directives(n: object) -> bool:
    match n:
        case Loop() | While() | If() | Assign():
            return bool(n.directives)
    return False


def _sizes(unit: Unit) -> dict[str, int]:
    whole = [p.name for p in unit.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]
    return dict.fromkeys(whole, USUAL_SIZE) | integers(unit.codelet, unit.values)


def _candidates(analysis: Analysis) -> Iterator[str]:
    space = parse(derive(analysis, DERIVE_S, device="gpu"), "<derived>")
    for section in islice(space.sections, SECTIONS):
        first = _first(section)
        if first is not None:
            yield size_independent(first.text)


def _first(section: Section) -> Configuration | None:
    return next((c for k in range(section.size) if (c := section.configuration(k)) is not None), None)


def _predicted_us(analysis: Analysis, text: str, sizes: Mapping[str, int], chip: Chip) -> float | None:
    """Return the predicted time of a version, None if it is illegal, or fits no GPU, at unknown sizes."""
    try:
        anywhere = finish(default(analysis, text, blocks=True), replace(MODEL, host_reads=False))
        check_limits(anywhere)
        check_capability(anywhere, chip.arch)
        done = schedule(analysis, parse_lines(text.splitlines(), "configuration"))
        planned = lower(specialize(done.codelet, sizes), blocks=True, host_reads=False)
        check_limits(finish(planned, MODEL))
    except (DirectiveError, IllegalTransform, ParseError, ResourceError):
        return None
    return estimate(planned, sizes, chip, registers={}).time_us
