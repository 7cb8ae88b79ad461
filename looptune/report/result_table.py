"""Results as text, Markdown, CSV and JSON, and the folder of a device that keeps them.

``reports/<device>/<kernel>.csv`` has one row per kernel, size and type: a new result replaces the row of its own size.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.core.cache_file import replace_text
from looptune.core.errors import UsageError
from looptune.core.si_units import amount, edp_text, energy_text, time_text
from looptune.report.table import Column, Table, aligned, csv_text, plain_columns
from looptune.runtime.energy import SECONDS
from looptune.runtime.objective import QUANTITIES
from looptune.runtime.timing import Speedup, ratio_text, times_text, without_verdict
from looptune.tune.results.result import SHARES, VERSIONS, Entry, KernelOccupancy, Result

if TYPE_CHECKING:
    from looptune.core.settings import Objective
    from looptune.runtime.energy import Energy
    from looptune.runtime.roofline import Peaks

HEADINGS = ("version", "time", "spread", "GFLOP/s", "of FMA peak", "of copy", "over default", "verified")
ENERGY_HEADINGS = ("energy", "power", "clock")
"""Columns that stand before the last one where the energy was measured."""
COLUMNS = (
    "kernel", "device", "target", "dtype", "sizes", "sequential_us", "default_us", "handwritten_us", "tuned_us",
    "tuned_q1_us", "tuned_q3_us", *SHARES, "directives", "asserted", *VERSIONS, "objective", "default_joules",
    "tuned_joules", "saving",
)  # fmt: skip

TIMELINE = ("launch", "verify", "measure", "failed", "waiting", "finals", "ablation", "sequential")
"""What one second after the other was spent on; see ``tune.lab.Spent``."""

MEANWHILE = ("judge", "compile", "proofs")
"""What other processes did in these seconds."""

SLOWER = 1.05
"""Times of the sequential loops, which are timed apart."""

NOTE = """\
Times are medians of paired rounds with first and third quartile; transfers are not included. GFLOP/s counts the
additions, multiplications and divisions of the original loops; a factor that can be taken out of a sum is not counted.
"of FMA peak" and "of copy" compare with what the device was measured to do: with its peak of multiply-adds, and, each
array element that has to be touched being counted once, with its bandwidth in copying; above 100 % a cache held some of
them, or a version made fewer operations than the loops have or made them on tensor cores, which are faster.
"""


def row(result: Result, entry: Entry) -> tuple[str, ...]:
    """Return one line of the table: a text for each of HEADINGS."""
    if entry.times is None:
        return entry.display_name, *["-"] * (len(HEADINGS) - 2), entry.verified
    spread = f"{time_text(entry.times.q1_us)} .. {time_text(entry.times.q3_us)}, n={entry.times.n}"
    rate = result.gflops(entry)
    over = "-" if entry.speedup is None else str(entry.speedup)
    return (
        entry.display_name,
        time_text(entry.times.median_us),
        spread,
        "-" if rate is None else f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}",
        _share(result.fma_share(entry)),
        _share(result.copy_share(entry)),
        over,
        entry.verified,
    )


def energy_missing(result: Result) -> str:
    """Return which timed versions of a run with --energy have no energy, "" for none; the original loops never have."""
    missing = [e.name for e in result.entries if e.energy is None and e.times is not None and e.name != "sequential"]
    if not missing:
        return ""
    return (
        f"{result.kernel}: no energy of {', '.join(missing)}: the counter stood still, restoring the arrays took "
        "nearly all of the time, the runs took more than twice their time in the finals, the budget of time was too "
        "short, or there were no finals"
    )


def time_decided(result: Result, objective: Objective) -> str:
    """Return that the time chose the version although ``objective`` was to choose it, "" where it did not."""
    if result.objective == objective or not result.versions.get("timed"):
        return ""
    return f"{result.kernel}: the energy of no version is known: this is the fastest, not that with the least energy"


def energy_cells(energy: Energy | None) -> tuple[str, ...]:
    """Return a text for each of ENERGY_HEADINGS.

    >>> from looptune.runtime.energy import Energy
    >>> energy_cells(Energy(0.0123, 412.3, 1755.0)), energy_cells(None)
    (('12.3 mJ', '412 W', '1,755 MHz'), ('-', '-', '-'))
    """
    if energy is None:
        return ("-",) * len(ENERGY_HEADINGS)
    clock = "-" if energy.mhz is None else f"{energy.mhz:,.0f} MHz"
    return (
        energy_text(energy.joules),
        f"{energy.watts:.3g} W" if energy.watts < 999.5 else f"{energy.watts:,.0f} W",
        clock,
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def slower(result: Result) -> str:
    """Return the first line of a result if one core is faster than the best version, or else ""."""
    alone = result.median_us("sequential")
    best = result.median_us("tuned") if result.entry("tuned") is not None else result.median_us("default")
    if alone is None or best is None or best <= SLOWER * alone or result.disturbed:
        return ""
    return f"slower than the sequential loops on one core: {times_text(best / alone)} times"


def title(result: Result) -> str:
    """Return the title of a result: kernel, type, sizes and device."""
    sizes = "".join(f" {n}={v}" for n, v in result.sizes.items())
    return f"{result.kernel} {result.dtype}{sizes}, {result.facts.name} ({result.target})"


def counts(result: Result) -> str:
    """Return the numbers of versions by outcome, as text."""
    parts = [f"{result.versions.get(n, 0)} {n.replace('_', ' ')}" for n in VERSIONS[1:] if result.versions.get(n)]
    same = result.versions.get("duplicate", 0)
    parts += [f"{same} the same as another"] if same else []
    where = f"{result.versions['space']} in the space" if result.versions.get("space") else "as annotated"
    return f"{where}: {', '.join(parts) if parts else 'none measured'}"


def time_spent(result: Result) -> str:
    """Return one line on how the seconds of the measuring worker were spent, or "" where this is not known."""
    return timeline("time", result.seconds, result.devices) if result.seconds else ""


def timeline(name: str, seconds: Mapping[str, float], devices: int) -> str:
    """Return ``time: 6.3 s: launch 2.1, measure 4.2; meanwhile, …``, in the order of TIMELINE."""
    line = [f"{k} {seconds[k]:.1f}" for k in TIMELINE if seconds.get(k, 0.0) >= 0.05 or k == "measure"]
    whole = sum(seconds.get(k, 0.0) for k in TIMELINE)
    each = f", the mean of {devices} devices" if devices > 1 else ""
    others = ", ".join(f"{k} {seconds[k]:.1f}" for k in MEANWHILE if k in seconds)
    return (
        f"{name}: {whole:.1f} s{each}: {', '.join(line)}; meanwhile, of all processes: {others}; "
        f"looptune itself {seconds['own']:.1f}"
    )


def directive_gains(result: Result) -> tuple[tuple[str, str], ...]:
    """Return each directive of the winner, and how much faster the winner is with it."""
    return tuple((e.line, e.why if e.speedup is None else str(e.speedup)) for e in result.directive_gains)


def directive_gain_lines(result: Result) -> str:
    """Return the same as lines of text."""
    return "\n".join(aligned(directive_gains(result), "  "))


def transfer_rows(result: Result) -> tuple[tuple[str, str, str], ...]:
    """Return the table of transferred configurations.

    Their origin, the directives, and the time relative to the winner or the reason why there is none.
    """
    return tuple((g.of, g.directives, g.why if g.speedup is None else str(g.speedup)) for g in result.transfers)


def transfer_lines(result: Result) -> str:
    """Return the same as lines of text."""
    return "\n".join(
        f"  {of}: {how}\n    {'; '.join(text.splitlines()) if text else '(none)'}"
        for of, text, how in transfer_rows(result)
    )


def kernel_table(result: Result) -> Table:
    """Return the table of the winner's kernels on a GPU."""
    headings = ("kernel", "threads a block", "registers", "shared memory", "spilled", "occupancy")
    rows = (
        (h.kernel, str(h.threads), str(h.registers), f"{h.shared_bytes:,} B", f"{h.local_bytes:,} B", _occupancy(h))
        for h in result.occupancy
    )
    return Table("kernels", "", plain_columns(headings), tuple(rows))


def _occupancy(held: KernelOccupancy) -> str:
    if held.warps is None or not held.most:
        return "-"
    return f"{held.warps / held.most:.0%}, {held.warps} of {held.most} warps, limited by {held.by}"


def objective_headings(objective: Objective) -> tuple[str, ...]:
    """Return the headings of what chose a version, where that was not the time.

    >>> objective_headings("energy"), objective_headings("edp")
    (('less energy',), ('EDP', 'less EDP'))
    """
    return {"time": (), "energy": ("less energy",), "edp": ("EDP", "less EDP")}[objective]


def objective_cells(result: Result, entry: Entry | None) -> tuple[str, ...]:
    """Return a text for each of the headings: how many times less than the default, and the EDP before that."""
    known = result.cost(entry)
    ratio = None if entry is None or known is None else result.saving(entry)
    less = "-" if ratio is None else saving_text(without_verdict(ratio) if result.disturbed else ratio)
    match result.objective:
        case "time":
            return ()
        case "energy":
            return (less,)
        case "edp":
            return ("-" if known is None else edp_text(known.value), less)


def saving_text(saving: Speedup | None) -> str:
    """Return how many times less energy or EDP something has, with the verdict.

    >>> saving_text(Speedup(1.5, 1.4, 1.6, "FAST")), saving_text(Speedup(0.8, 0.7, 0.9, "SLOW"))
    ('1.5x LESS', '0.8x MORE')
    """
    if saving is None or saving.verdict == "disturbed":
        return "-" if saving is None else saving.verdict
    words = {"FAST": "LESS", "SLOW": "MORE"}
    return f"{ratio_text(saving.ratio)} {words.get(saving.verdict, saving.verdict)}"


def _versions(result: Result) -> Table:
    if all(e.energy is None for e in result.entries):
        return Table("versions", "", plain_columns(HEADINGS), tuple(row(result, e) for e in result.entries))
    headings = (*HEADINGS[:-1], *ENERGY_HEADINGS, *objective_headings(result.objective), HEADINGS[-1])
    cells = ((row(result, e), (*energy_cells(e.energy), *objective_cells(result, e))) for e in result.entries)
    return Table("versions", "", plain_columns(headings), tuple((*of[:-1], *own, of[-1]) for of, own in cells))


def plain(result: Result) -> str:
    """Return the table as lines of text."""
    first = [slower(result), ""] if slower(result) else []
    lines = (*chosen_line(result), *short_windows_line(result), *disturbance_line(result))
    return "\n".join([*first, title(result), "", _versions(result).text(), *lines])


def chosen_line(result: Result) -> tuple[str, ...]:
    """Return one line that says what the tuned version was chosen by, none where that is the time."""
    if result.objective == "time" or result.entry("tuned") is None or result.disturbed:
        return ()
    return (f"tuned: chosen for the least {QUANTITIES[result.objective]}, not for the least time",)


def short_windows_line(result: Result) -> tuple[str, ...]:
    """Return one line that says for how long energies were measured, where a budget made that short, else none."""
    windows = [e.energy.window_s for e in result.entries if e.energy is not None and e.energy.window_s is not None]
    if not windows:
        return ()
    return (f"energy: measured in windows of {min(windows):.2g} s instead of {SECONDS:g} s, for the budget of time",)


def disturbance_line(result: Result) -> tuple[str, ...]:
    """Return one line if the machine was disturbed during the finals, else none."""
    return (f"disturbed while it was timed: {result.disturbed}",) if result.disturbed else ()


def markdown(result: Result) -> str:
    """Return the result as a Markdown page."""
    won = result.directives if result.directives else "(none: the file as annotated)"
    ties = (
        [f"As fast within the measurement: {'; '.join(t.replace(chr(10), ', ') for t in result.ties)}", ""]
        if result.ties
        else []
    )
    device = result.facts
    notes = (*chosen_line(result), *short_windows_line(result), *disturbance_line(result))
    facts = (
        f"Legality: {result.proof}.",
        f"Versions: {counts(result)}.",
        *((f"{time_spent(result).capitalize()}.",) if result.seconds else ()),
        f"Device: {device.name}, {device.arch}, {device.cores} cores, driver {device.driver_name}.",
        *((_peaks(result.ceiling.peaks),) if result.ceiling is not None else ()),
        *(f"{line[:1].upper()}{line[1:]}." for line in notes),
        f"Command: `{result.command}`",
    )
    first = [f"**{slower(result).capitalize()}.**", ""] if slower(result) else []
    without = (Column("directive", "directive", "code"), Column("gain", "the winner over itself without it"))
    others = (Column("of", "best of"), Column("directives", "directives", "code"), Column("gain", "over the winner"))
    tables = (
        Table("gains", "", without, directive_gains(result)), kernel_table(result),
        Table("guests", "", others, transfer_rows(result)),
    )  # fmt: skip
    return "\n".join([
        f"# {title(result)}", "", *first, _versions(result).markdown(),
        "Winning directives:", "", "```", won, "```", "",
        *(table.markdown() for table in tables if table.rows), *ties, "  \n".join(facts), "", NOTE,
    ])  # fmt: skip


def _peaks(peaks: Peaks) -> str:
    return f"Measured on it: {'; '.join(f'{name} {rate}' for name, rate in peak_texts(peaks).items())}."


def peak_texts(peaks: Peaks) -> dict[str, str]:
    """Return ``1.23 TB/s (spread 2%)`` for each peak."""
    said = {"copy": ("copy", "B/s"), "read": ("read", "B/s"), "fma32": ("FMA float32", "FLOP/s"),
            "fma64": ("FMA float64", "FLOP/s")}  # fmt: skip
    named = ((*said[name], rate) for name, rate in peaks.rates.items())
    return {name: f"{amount(1e9 * rate.best, unit)} (spread {rate.spread:.0%})" for name, unit, rate in named}


def check_writable(folder: Path) -> None:
    """Raise UsageError, before anything is measured, if reports cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".looptune-probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"cannot write reports to {folder}: {error.strerror}; choose another folder with --reports"
        ) from error


def write(result: Result, reports: Path) -> Path:
    """Add the result to its device's folder; the path of the Markdown page."""
    folder = reports / result.facts.slug
    folder.mkdir(parents=True, exist_ok=True)
    record = result.record()
    _write_csv(folder / f"{result.kernel}.csv", _flat(record))
    _write_json(folder / f"{result.kernel}.json", record | {"page": markdown(result)})
    page = folder / f"{result.kernel}.md"
    replace_text(page, ("\n".join(r["page"] for r in _read_json(folder / f"{result.kernel}.json"))))
    return page


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    sizes = " ".join(f"{n}={v}" for n, v in record["sizes"].items())
    flat = {k: v for k, v in record.items() if k not in ("versions", "seconds")} | record["versions"]
    flat |= {"sizes": sizes, "asserted": " ".join(record["asserted"]), "saving": None}
    flat |= {f"{name}_joules": record["energy"].get(name, {}).get("joules") for name in ("default", "tuned")}
    flat |= {"saving": record["saving"]["tuned"]["ratio"]} if "tuned" in record["saving"] else {}
    return {c: "" if flat[c] is None else str(flat[c]) for c in COLUMNS}


_KEY = ("kernel", "device", "target", "dtype", "sizes")
"""What a result is of: a new one takes the place of the one with the same."""


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Tell whether both are of the same, and were chosen by the same: an earlier looptune chose by time."""
    first, second = (r.get("objective") or "time" for r in (a, b))
    return first == second and all(a[k] == b[k] for k in _KEY)


def _write_csv(path: Path, record: dict[str, Any]) -> None:
    rows: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as held:
            # A report of an earlier looptune lacks columns, which stay empty.
            rows = [r for r in csv.DictReader(held) if {*_KEY} <= set(r) and not _same(r, record)]
    replace_text(path, csv_text(COLUMNS, [*rows, record]))


def _read_json(path: Path) -> list[dict[str, Any]]:
    try:
        held = json.loads(path.read_text()) if path.exists() else []
    except ValueError as error:
        raise UsageError(f"{path} is not a report: move it away, or choose another folder with --reports") from error
    rows = held if isinstance(held, list) else [held]
    return [r for r in rows if isinstance(r, dict) and {*_KEY, "page"} <= r.keys()]


def _write_json(path: Path, record: dict[str, Any]) -> None:
    rows = [r for r in _read_json(path) if not _same(r, record)]
    replace_text(path, (json.dumps([*rows, record], indent=1) + "\n"))
