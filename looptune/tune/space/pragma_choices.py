"""The space in a C file itself: choices in braces in its pragmas.

    #pragma looptune unroll {1..8}, {contiguous, split}        loop 3: unroll {1..8}, {contiguous, split}
    for (int k = 0; k < n; k++)

A sweep tries the product of all of them. For a single program, each choice has to be decided from outside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Codelet, Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.schedule import directives
from looptune.schedule.binding import original_loops_at
from looptune.schedule.directive_lines import DirectiveLine, current_words
from looptune.tune.space import space, template

if TYPE_CHECKING:
    from looptune.frontend import PragmaChoices, Unit
    from looptune.schedule.directive_lines import DirectiveLine
    from looptune.tune.space.space import Space


def pragma_space(unit: Unit) -> Space | None:
    """Return the product of the choices, or None if the file holds none. Raises ParseError at the pragma."""
    if not unit.choices:
        return None
    return space.product((f"loop {c.loop}", c.text, c.span) for c in unit.choices)


def check_choices_decided(unit: Unit, placed: Sequence[DirectiveLine]) -> None:
    """Raise DirectiveError if a choice in the file's pragmas is decided by no directive of ``placed``.

    The message names a directive that takes the first alternative.
    """
    for c in unit.choices:
        if not any(_decides(p, c, unit.codelet) for p in placed):
            first = current_words(" ".join(template.parse(c.text, c.span).pick(0).split()))
            hint = f"--directive 'loop {c.loop}: {first}'" if first else f"a --directive for loop {c.loop}"
            raise DirectiveError(
                f"this pragma holds choices: pick one with {hint}, or measure all with --sweep", c.span
            )


def _decides(p: DirectiveLine, c: PragmaChoices, codelet: Codelet) -> bool:
    """Tell whether the directive applies to the loop of the choice and is of a kind that the choice selects."""
    try:
        addressed = tuple(original_loops_at(codelet, p.where, p.loop, p.directive.span))
    except DirectiveError:  # a loop that another directive makes
        return False
    inner = walk_stmts(addressed) if directives.find(p.directive).applies_to_nested else addressed
    on = any(f.number == c.loop for f in inner if isinstance(f, (Loop, While)))
    words = set(map(directives.current_name, re.findall(r"[a-z]+", c.text.lower())))
    return on and not words.isdisjoint(directives.replaced_names(p.directive))
