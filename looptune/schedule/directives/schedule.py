"""Schedule: isl finds an order for all statements of a nest, and loops that run them in it.

    for t, i, j: A[i][j] = f(A[i-1][j],         for j in 2 .. 2*T + 2*n - 5:
                             A[i][j-1],   ==>     for t in ...:                  parallel
                             A[i+1][j], ...)        for i in ...:                parallel

``parallel:outer`` makes the outermost loops parallel that can be, and what must be sequential a wave around parallel
loops; ``parallel:inner`` makes as few sequential loops as possible, around parallel ones; ``parallel:none`` makes loops
that can be tiled together. ``fuse:max`` has statements share loops as far as they can, ``fuse:min`` lets those share
none that do not depend on each other in a circle. A new loop has the name of the innermost loop of the text on which
its value depends, and directives for a loop of this name are for it.

Legal when: always, as the order is made of the dependences; the loops must be analysable. Gain: parallel loops where
the text has none. Cost: longer bounds and subscripts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self, cast

from looptune.core.errors import DirectiveError
from looptune.poly.automatic_schedule import Fusion, Parallel, ScheduleOptions
from looptune.poly.isl_limits import IslLimitExceeded
from looptune.schedule.directives.base import DirectiveSite, Example, NewSchedule, unknown_argument
from looptune.schedule.directives.generation import GeneratedNest, GeneratedTransform, generate, read_nest

if TYPE_CHECKING:
    from looptune.ir.nodes import Directive

_WORDS = {"parallel": ("outer", "inner", "none"), "fuse": ("max", "min")}


@dataclass(frozen=True)
class Schedule(GeneratedTransform):
    name: ClassVar = "schedule"
    syntax: ClassVar = "schedule [parallel:outer|inner|none] [, fuse:max|min]"
    stage: ClassVar = "split"

    options: ScheduleOptions = field(default_factory=ScheduleOptions)

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        said: dict[str, str] = {}
        for arg in directive.args:
            key = arg.key.lower()
            if key not in _WORDS:
                raise unknown_argument(cls, arg, tuple(_WORDS))
            if key in said:
                raise DirectiveError(f"schedule has {key} twice", arg.span)
            value = str(arg.values[0]).lower() if len(arg.values) == 1 else ""
            if value not in _WORDS[key]:
                raise DirectiveError(f"{key} of schedule is one of {', '.join(_WORDS[key])}", arg.span)
            said[key] = value
        parallel, fusion = cast("Parallel", said.get("parallel", "outer")), cast("Fusion", said.get("fuse", "max"))
        return cls(ScheduleOptions(parallel, fusion), span=directive.span)

    def generated(self, site: DirectiveSite) -> GeneratedNest:
        nest = read_nest(site, self.name)
        if not nest.copies:
            return GeneratedNest(NewSchedule({}), (site.loop,))
        try:
            times = site.queries.find_schedule(nest, self.options)
        except IslLimitExceeded as reason:
            raise site.refuse(f"schedule: the nest at loop {site.loop.var} is too complex: {reason}") from None
        return generate(site, nest, times, self.name)


_SEIDEL = "for (int i = 1; i < n; i++)\n    for (int j = 1; j < m; j++)\n      D[i][j] = D[i - 1][j] + D[i][j - 1];"

Schedule.examples = {
    "schedule": Example(_SEIDEL, """\
for (int j = 2; j < n + m - 1; j++) {
  for (int i = (1 > j - m + 1 ? 1 : j - m + 1); i < (n < j ? n : j); i++) {
    D[i][j - i] = D[i - 1][j - i] + D[i][j - i - 1];
  }
}"""),
    "schedule parallel:all": Example(_SEIDEL, refused="parallel of schedule is one of outer, inner, none"),
    "schedule fusion:max": Example(_SEIDEL, refused="schedule has no argument 'fusion'"),
}  # fmt: skip
