"""What a table says of a version whose products are not those of floats: its largest error, as it was measured.

    tensor tf32x3                    emulated floats: the largest error is 7.1e-07, that of the loops 1.2e-06
    tensor tf32, tolerance 1e-3      rounded to tf32: the largest error is 0.00021, allowed is 0.001

An error is relative to an element and the median of its array, as in ``runtime.tolerance``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from looptune.lower.plan import Plan
    from looptune.runtime.verification import ReferenceComparison

EMULATED, ROUNDED = "emulated floats", "rounded to"
END = "; "
"""Between this and what versions are compared with."""


def float_accuracy(
    plan: Plan, judge: ReferenceComparison, fetched: Callable[[], Mapping[str, np.ndarray]]
) -> tuple[str, bool]:
    """Return what is said of a version, "" if it computes with floats as the loops do, and whether it may be used.

    ``fetched`` returns the results on the host. An emulation may not have larger errors than the original loops with
    fused multiply-adds; of rounded factors the user says what error they may make, by which every version is verified.
    """
    kinds, allowed = plan.rounded_factors
    if kinds:
        error = judge.error(fetched())
        found = "not measured" if error is None else f"{error:.2g}"
        return f"{ROUNDED} {kinds}: the largest error is {found}, allowed is {allowed:g}", True
    if not plan.emulates_floats:
        return "", True
    found_errors = judge.errors(fetched())
    if found_errors is None:
        return f"{EMULATED}, whose error was not measured", True
    own, loops = found_errors
    return f"{EMULATED}: the largest error is {own:.2g}, that of the loops {loops:.2g}", own <= loops
