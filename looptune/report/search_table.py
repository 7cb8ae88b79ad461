"""How soon searches came near the best: text, CSV and JSON of a comparison of strategies.

gemm float32, NVIDIA H200: 152 versions, best 53.7 us
strategy   within 5 %: evaluations   share   time    found   within 1 %: …
model      7 [7, 9]                  4.6 %   3.1 s   100 %   …
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, inf, isfinite, log
from typing import Any

from looptune.core.si_units import time_text
from looptune.report.table import Table, aligned, escape_markup, plain_columns
from looptune.tune.replay.simulate import LEVELS, Comparison, Quartiles, Score

HEADINGS = ("strategy", *(text for level in LEVELS for text in (
    f"within {level - 1:.0%}: evaluations", "share", "time", "found",
)))  # fmt: skip
COLUMNS = (
    "kernel", "device", "versions", "best_us", "strategy", "level", "searches", "found", "evaluations_median",
    "evaluations_q1", "evaluations_q3", "share", "seconds_median", "seconds_q1", "seconds_q3", "estimated",
)  # fmt: skip
AIM = 0.1
"""The share of the space a good search needs at most."""


def records(comparisons: Sequence[Comparison]) -> Iterator[dict[str, Any]]:
    """Yield one record for each recording, strategy and level; None where half of the searches never came that near."""
    for c in comparisons:
        for name in c.traces:
            for level in LEVELS:
                score = c.score(name, level)
                e, s = score.evaluations, score.seconds
                values = (
                    c.recording.name, c.recording.device, c.recording.versions, c.recording.best_us, name,
                    f"within {level - 1:.0%}", len(c.traces[name]), score.found, e.median, e.q1, e.q3, _share(c, score),
                    s.median, s.q1, s.q3, c.recording.estimated,
                )  # fmt: skip
                finite = (None if isinstance(v, float) and not isfinite(v) else v for v in values)
                yield dict(zip(COLUMNS, finite, strict=True))


def title(c: Comparison) -> str:
    """Return the title of a comparison: the recording, its number of versions and its best time."""
    r = c.recording
    device = f", {r.device}" if r.device else ""
    return f"{r.name}{device}: {r.versions} versions, best {time_text(r.best_us)}"


def plain(c: Comparison) -> str:
    """Return the table of one recording."""
    missing = c.recording.estimated
    note = [f"durations of {missing} of {c.recording.table.size} configurations are estimates"] if missing else []
    return "\n".join([title(c), *aligned([HEADINGS, *_rows(c)]), *note])


def _rows(c: Comparison) -> tuple[tuple[str, ...], ...]:
    return tuple(_row(c, name) for name in c.traces)


def summary(comparisons: Sequence[Comparison]) -> str:
    """Return the table of all strategies over all recordings, within the first level."""
    names = list(dict.fromkeys(name for c in comparisons for name in c.traces))
    rows = [("strategy", f"at most {AIM:.0%} of the space", "fewer than random", "share, geometric mean", "worst")]
    for name in names:
        having = [c for c in comparisons if name in c.traces]
        shares = [_share(c, c.score(name, LEVELS[0])) for c in having]
        against = [c for c in having if "random" in c.traces and name != "random"]
        fewer = sum(_median(c, name) < _median(c, "random") for c in against)
        mean = exp(sum(log(min(share, 1.0)) for share in shares) / len(shares))
        rows.append((
            name, f"{sum(share <= AIM for share in shares)} of {len(shares)}",
            f"{fewer} of {len(against)}" if against else "-", f"{mean:.1%}", _percent(max(shares)),
        ))  # fmt: skip
    within = f"within {LEVELS[0] - 1:.0%} of the best, medians over seeds"
    return "\n".join([f"{within}, {len(comparisons)} recordings; never counts as all", *aligned(rows)])


def markdown(comparisons: Sequence[Comparison]) -> str:
    """Return the summary and every table, as one page."""
    columns = plain_columns(HEADINGS)
    tables = [
        f"## {escape_markup(title(c))}\n\n{Table('searches', '', columns, _rows(c)).markdown()}" for c in comparisons
    ]
    return "\n".join(["# Search strategies compared", "", "```", summary(comparisons), "```", "", *tables])


def _row(c: Comparison, name: str) -> tuple[str, ...]:
    cells = [name]
    for level in LEVELS:
        score = c.score(name, level)
        cells += [_counts(score.evaluations), _percent(_share(c, score)), _time(score.seconds), f"{score.found:.0%}"]
    return tuple(cells)


def _share(c: Comparison, score: Score) -> float:
    return score.evaluations.median / c.recording.versions


def _median(c: Comparison, name: str) -> float:
    return c.score(name, LEVELS[0]).evaluations.median


def _counts(s: Quartiles) -> str:
    return f"{_count(s.median)} [{_count(s.q1)}, {_count(s.q3)}]"


def _count(value: float) -> str:
    return f"{value:.0f}" if value < inf else "never"


def _time(s: Quartiles) -> str:
    parts = [time_text(1e6 * v) if v < inf else "never" for v in (s.median, s.q1, s.q3)]
    return f"{parts[0]} [{parts[1]}, {parts[2]}]"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < inf else "-"
