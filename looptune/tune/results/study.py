"""All that is known of one kernel at one size on one device: what its sweep came to, and every version measured.

rows of a context, and its conclusion where the database has one ─▶ Study ─▶ tables, figures, page
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from looptune.runtime.device import slug
from looptune.runtime.outcome import Timed, WrongResult
from looptune.tune.results.record import Sources
from looptune.tune.results.result import Result
from looptune.tune.store.store import Context, Row

USUAL = ("numba-cuda", "numba-cpu")
"""The targets that "auto" may mean: reports name others."""


@dataclass(frozen=True, slots=True)
class KernelStudy:
    """``rows`` are the default and the versions, in the order they were tried.

    ``sources`` None: the database is of an earlier looptune, and ``result`` was put together from rows.
    """

    context: Context
    result: Result
    rows: tuple[Row, ...]
    sources: Sources | None = None
    finals_outcomes: Mapping[str, Timed | WrongResult] = field(default_factory=dict)
    """What became of each version in the newest finals, by directives."""

    @property
    def finals(self) -> dict[str, float]:
        """Return the medians of the finals by directives, in microseconds."""
        return {text: outcome.median_us for text, outcome in self.finals_outcomes.items() if isinstance(outcome, Timed)}

    @property
    def kernel(self) -> str:
        return self.result.kernel

    @property
    def device(self) -> str:
        return self.context.device

    @property
    def sizes(self) -> str:
        return sizes(self.result)

    @property
    def kind(self) -> str:
        """Return the type, and how it was measured if not in the usual way."""
        return ", ".join([self.result.dtype, *unusual_options(self.context)])

    @property
    def place(self) -> str:
        """Return where it was measured: the device, the target, the sizes."""
        return f"{self.device} ({self.context.target}), {self.sizes}"

    @property
    def title(self) -> str:
        return f"{self.kernel} {self.kind} {self.sizes}"

    def timed(self) -> dict[str, Timed]:
        """Return the screening by directives; a duplicate has the times of the version that it repeats."""
        known = {row.key: row.outcome for row in self.rows if isinstance(row.outcome, Timed)}
        found = {row.directives: known.get(row.key if row.same_as is None else row.same_as) for row in self.rows}
        return {text: outcome for text, outcome in found.items() if outcome is not None}

    def screened(self) -> dict[str, float]:
        """Return the medians of the screening by directives."""
        return {text: outcome.median_us for text, outcome in self.timed().items()}

    @property
    def default_us(self) -> float | None:
        """Return the time of the default in the screening, measured as the versions were."""
        rows = [row for row in self.rows if row.role == "default" and row.median_us is not None]
        plain = self.screened().get("") if not rows else None
        return rows[-1].median_us if rows else plain


def unusual_options(context: Context) -> list[str]:
    """Options that are not looptune's own, and another compiler than the usual one.

    >>> unusual_options(Context("f", "", "", "", "", "", "", "", "", '{"seed": 3, "reassociate": false, "warm": true}'))
    ['strict float', 'warm L2', 'seed 3']
    """
    options = json.loads(context.options)
    said = {
        "strict float": not options.get("reassociate", True),
        f"fp contract {options.get('contract')}": "contract" in options, "warm L2": options.get("warm", False),
        f"seed {options.get('seed', 0)}": options.get("seed", 0) != 0, "own data": "data" in options,
        context.target: bool(context.target) and context.target not in USUAL,
    }  # fmt: skip
    return [words for words, holds in said.items() if holds]


def by_device(studies: Iterable[KernelStudy]) -> dict[str, list[KernelStudy]]:
    """Return the studies of each device, by the name of its folder."""
    found: dict[str, list[KernelStudy]] = {}
    for study in studies:
        found.setdefault(slug(study.device), []).append(study)
    return found


def comparable_groups(studies: Sequence[KernelStudy]) -> dict[str, list[KernelStudy]]:
    """Return the studies that can be averaged, those of one type on one device.

    By the type, and by the device if there are several.
    """
    several = len({s.device for s in studies}) > 1
    found: dict[str, list[KernelStudy]] = {}
    for s in sorted(studies, key=lambda s: (s.device, s.result.dtype)):
        found.setdefault(f"{s.result.dtype}, {s.device}" if several else s.result.dtype, []).append(s)
    return found


def names_of(studies: Sequence[KernelStudy]) -> list[str]:
    """Kernels, with their sizes, types and devices where those tell two apart."""
    names = [s.kernel for s in studies]
    for more in ("sizes", "kind", "device"):
        twice = {name for name in names if names.count(name) > 1}
        told = {name: {getattr(s, more) for n, s in zip(names, studies, strict=True) if n == name} for name in twice}
        names = [
            f"{n} {getattr(s, more)}" if len(told.get(n, ())) > 1 else n for n, s in zip(names, studies, strict=True)
        ]
    return names


def sizes(result: Result) -> str:
    """Return one number if all sizes are the same, ``2048``, else ``NI=512 NJ=256``."""
    different = set(result.sizes.values())
    return str(different.pop()) if len(different) == 1 else " ".join(f"{n}={v}" for n, v in result.sizes.items())
