"""A job: what a sweep tunes and for which target, as far as a worker process needs to know it. It can be pickled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from looptune.core.settings import FINALS_S
from looptune.ir.nodes import Codelet
from looptune.ir.rewrite import walk
from looptune.runtime.c_reference import CReference
from looptune.runtime.problem_sizes import Problem
from looptune.runtime.roofline import Roofline
from looptune.runtime.targets import Target

STRICTER = "--no-reassociate rounds every operation on floats as C does it: in its order, nothing contracted"
"""What a version that is wrong is told, where rounding may be why."""


@dataclass(frozen=True, slots=True)
class Job:
    """One codelet at one size on one target.

    ``prime_problem``: the prime sizes at which versions are verified, None if the codelet has none. ``screens``: a
    version is tried there first, since these sizes are large enough for a time and a slow version takes long at the
    user's sizes.

    ``threads``: cores that the original loops may use, because other kernels are swept meanwhile; None: all. A time
    that exceeds the ``ceiling`` is refused; that is None if the device's peaks are not known. Without ``cuts`` every
    version is measured whole, however slow it is. ``finals_s``: how long the finals wait for clear verdicts; with
    ``finals_end`` they end then, however few rounds were made.

    The finals are repeated where something disturbed the machine, and allow no verdict if it still does; with
    ``accept_disturbed`` this is not checked. ``energy``: the energy of the finalists is measured as well, for about
    ``energy_s`` seconds.

    ``text``: the program's own text, with which versions are compared; None if it cannot be compiled. If it takes more
    than ``reference_s`` seconds at the user's sizes, versions are compared with it at the prime sizes only.
    ``edge_problems``: sizes at which loops run once or not at all, for a target whose programs serve all sizes.
    """

    codelet: Codelet
    problem: Problem
    prime_problem: Problem | None
    target: Target
    cache: Path
    seed: int = 0
    reassociate: bool = True
    ceiling: Roofline | None = None
    screens: bool = False
    cuts: bool = True
    threads: int | None = None
    finals_s: float = FINALS_S
    finals_end: bool = False
    accept_disturbed: bool = False
    energy: bool = False
    energy_s: float = math.inf
    text: CReference | None = None
    reference_s: float | None = None
    edge_problems: tuple[Problem, ...] = ()

    @property
    def stricter(self) -> str:
        """Return the option that makes floats round as in C, or "" if they do or if there are none."""
        nodes = walk((self.codelet.params, self.codelet.locals, self.codelet.body))
        return STRICTER if self.reassociate and any("float" in getattr(n, "dtype", "") for n in nodes) else ""
