"""Predictions as text and as JSON; see ``predict``.

kernel gemm_0: 16 x 64 x 1 blocks of 32 x 8 threads
  occupancy     64 of 64 warps, 8 blocks, limited by threads
  bytes         1.08 GB requested, 674 MB in sectors, 204 MB from L2, 4.19 MB from memory
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from looptune.core.si_units import amount, time_text
from looptune.ir.c_printer import expression_text
from looptune.report.table import aligned
from looptune.tune.cost_model.sector_counts import SECTOR
from looptune.tune.cost_model.warp_samples import LANE

if TYPE_CHECKING:
    from looptune.tune.cost_model.devices import Chip
    from looptune.tune.cost_model.estimate import Estimate, LaunchEstimate
    from looptune.tune.cost_model.ranking import Prediction, Ranking, Version
    from looptune.tune.cost_model.warp_program import AccessCount

HEAD = ("access", "", "stride", "sectors", "used")


def text(p: Prediction) -> str:
    """Return the prediction as text."""
    chip, made = p.estimate.chip, p.estimate
    lines = [_title(p.kernel, p.path, p.sizes), *(f"  {line}" for line in p.directives or ("no directives",)), ""]
    lines += [f"on {_chip(chip)}", f"work: {_work(p)}", ""]
    for alike in _alike(made.launched):
        lines += [*_launched(alike, p.registers.get(alike[0].kernel.name)), ""]
    lines += _total(made)
    lines.append(f"predicted {time_text(made.time_us)}, bound by {made.bound}" if made.bound else "nothing is launched")
    if p.measured_us is not None:
        lines.append(f"measured  {time_text(p.measured_us)}: predicted / measured {made.time_us / p.measured_us:.2f}")
    lines += [f"note: {note}" for note in dict.fromkeys(n for one in made.launched for n in one.counted.notes)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _total(made: Estimate) -> Iterator[str]:
    """Yield the line with the totals of all launches, if there are several."""
    if made.launches > 1:
        t = made.total
        yield (f"in all {made.launches:,.0f} launches, {amount(t.float_warps, '').strip()} + "
               f"{amount(t.other_warps, '').strip()} instructions, {amount(t.requested, 'B')} requested, "
               f"{amount(t.l2, 'B')} from L2, {amount(t.memory, 'B')} from memory")  # fmt: skip


def _title(kernel: str, path: str, sizes: Mapping[str, int | float]) -> str:
    return f"{kernel}  {path}  {', '.join(f'{n}={v:g}' for n, v in sizes.items())}"


def _chip(chip: Chip) -> str:
    fp32, fp64 = (2e9 * chip.ghz * chip.multiprocessors * rate for rate in (chip.fp32, chip.fp64))
    return (f"{chip.name}: {amount(fp32, 'FLOP/s')} in float, {amount(fp64, 'FLOP/s')} in double, "
            f"{amount(chip.memory_gbs * 1e9, 'B/s')}, L2 of {chip.l2_bytes // 2**20} MiB")  # fmt: skip


def _work(p: Prediction) -> str:
    data = f"{amount(p.least_bytes, 'B')} where each element counts once"
    if p.flops is None:
        return f"operations depend on data, {data}"
    intensity = f": {amount(p.flops / p.least_bytes, 'FLOP/B')}" if p.least_bytes else ""
    return f"{amount(p.flops, 'FLOP')}, {data}{intensity}"


def _alike(launched: Sequence[LaunchEstimate]) -> list[list[LaunchEstimate]]:
    """Return launches of one kernel that differ in nothing that is said are put together."""
    found: dict[object, list[LaunchEstimate]] = {}
    for one in launched:
        key = (one.kernel.name, one.grid, one.memory_bytes, one.times.time_us, one.counted.nest.all_instructions)
        found.setdefault(key, []).append(one)
    return list(found.values())


def _launched(alike: Sequence[LaunchEstimate], registers: int | None) -> Iterator[str]:
    one, launches = alike[0], sum(a.launches for a in alike)
    k, moved, held = one.kernel, one.moved, one.occupancy
    times = f", {launches:,.0f} launches" if launches != 1 else ""
    host = " and ".join(", ".join(f"{n}={a.at[n]}" for n in a.around) for a in alike if a.around)
    yield (f"kernel {k.name}: {' x '.join(map(str, one.grid))} blocks of {k.block[0]} x {k.block[1]} threads{times}"
           f"{f' like {host}' if host else ''}")  # fmt: skip
    given = f"{registers} registers a thread" if registers is not None else "registers not known"
    yield f"  occupancy     {held.warps} of {held.most} warps, {held.blocks} blocks, limited by {held.by}; {given}"
    whole = one.counted.nest.all_instructions
    parts = (("float", whole.fp32), ("double", whole.fp64), ("other", whole.other))
    made = ", ".join(f"{amount(count, '').strip()} {what}" for what, count in parts if count)
    yield f"  instructions  {amount(whole.total, '').strip()} of warps, estimated: {made}"
    yield (f"  bytes         {amount(moved.requested, 'B')} requested, {amount(moved.sectors, 'B')} in sectors, "
           f"{amount(moved.l2, 'B')} from L2, {amount(one.memory_bytes, 'B')} from memory")  # fmt: skip
    yield f"  unique        {amount(moved.unique, 'B')} in all, {amount(moved.block, 'B')} a block"
    yield f"  FLOP/B        {_intensity(one)}"
    yield from aligned((HEAD, *_accesses(one)), "  ")
    bounds = sorted(one.times.bounds.items(), key=lambda b: -b[1])
    yield "  bounds        " + ", ".join(f"{name} {time_text(us)}" for name, us in bounds if us)
    yield f"  predicted     {time_text(one.times.time_us)} a launch"


def _intensity(one: LaunchEstimate) -> str:
    operations = one.flops
    if operations is None:
        return "not known"
    moved = one.moved
    at = (("requested", moved.requested), ("L2", moved.l2), ("memory", one.memory_bytes), ("unique", moved.unique))
    return ", ".join(f"{operations / count:.3g} {name}" for name, count in at if count)


def _accesses(one: LaunchEstimate) -> Iterator[tuple[str, ...]]:
    """Yield the accesses, with equal ones joined."""
    found: dict[tuple[str, ...], list[AccessCount]] = {}
    for u in one.counted.nest.every_use:
        found.setdefault((u.load.array, *_shape(u)), []).append(u)
    for (_, *shape), uses in found.items():
        more = f" and {len(uses) - 1} more" if len(uses) > 1 else ""
        yield f"{expression_text(uses[0].load)}{more}", *shape


def _shape(u: AccessCount) -> tuple[str, ...]:
    kind = "write" if u.write else "read"
    if u.shared:
        return f"{kind} shared", "-", f"{u.passes / max(u.requests, 1e-9):.3g} passes", "-"
    fetched = u.sectors * SECTOR
    used = f"{min(1.0, u.requested_bytes / fetched):.0%}" if fetched else "-"
    return kind, stride(u), f"{u.sectors / max(u.requests, 1e-9):.3g}", used


def stride(u: AccessCount) -> str:
    """Return the elements between neighbouring threads, or "data" if that depends on data."""
    if u.place is None:
        return "data"
    if any(name not in (LANE["x"], LANE["y"]) and name.startswith("fill ") for name, _ in u.place.terms):
        return "tile"
    return str(u.place.step_of(LANE["x"]))


def record(p: Prediction) -> dict[str, Any]:
    """Return the prediction as a JSON object."""
    made = p.estimate
    return {
        "kernel": p.kernel, "file": p.path, "sizes": dict(p.sizes), "directives": "\n".join(p.directives),
        "device": made.chip.name, "flops": p.flops, "least_bytes": p.least_bytes, "predicted_us": made.time_us,
        "bound": made.bound, "measured_us": p.measured_us,
        "total": {"launches": made.launches, **asdict(made.total)},
        "launches": [_launched_record(one, p.registers.get(one.kernel.name)) for one in made.launched],
    }  # fmt: skip


def _launched_record(one: LaunchEstimate, registers: int | None) -> dict[str, Any]:
    moved, whole, resident = one.moved, one.counted.nest.all_instructions, one.occupancy
    return {
        "kernel": one.kernel.name, "launches": one.launches, "grid": list(one.grid), "block": list(one.kernel.block),
        "flops": one.flops,
        "instructions": {"float": whole.fp32, "double": whole.fp64, "other": whole.other},
        "bytes": {"requested": moved.requested, "sectors": moved.sectors, "l2": moved.l2, "memory": one.memory_bytes,
                  "unique": moved.unique, "block": moved.block},
        "occupancy": {"blocks": resident.blocks, "warps": resident.warps, "of": resident.most, "by": resident.by,
                      "registers": registers},
        "accesses": [_use_record(u) for u in one.counted.nest.every_use],
        "bounds_us": dict(one.times.bounds), "bound": one.times.bound, "predicted_us": one.times.time_us,
        "notes": list(one.counted.notes),
    }  # fmt: skip


def _use_record(u: AccessCount) -> dict[str, Any]:
    return {
        "access": expression_text(u.load),
        "write": u.write,
        "shared": u.shared,
        "stride": stride(u) if not u.shared else None,
        "requests": u.requests,
        "threads": u.threads,
        "sectors": u.sectors,
        "passes": u.passes,
        "bytes": u.requested_bytes,
    }


def ranking_text(r: Ranking) -> str:
    """Return the versions of a space, and how well they are ordered."""
    rows = [("predicted", "measured", "bound", "directives"), *(_version(v) for v in r.versions)]
    return (
        "\n".join([_title(r.kernel, r.path, r.sizes), f"on {_chip(r.chip)}", "", *aligned(rows), "", verdict(r)]) + "\n"
    )


def _version(v: Version) -> tuple[str, ...]:
    measured = "-" if v.measured_us is None else f"{'' if v.is_complete else '> '}{time_text(v.measured_us)}"
    return time_text(v.predicted_us), measured, v.bound, "; ".join(v.directives.splitlines()) or "no directives"


def verdict(r: Ranking) -> str:
    """Return one line on how well a space is ordered."""
    refused = f", {r.refused} refused" if r.refused else ""
    said = f"{r.kernel}: {len(r.versions)} versions{refused}"
    rho, first = r.correlation, r.slowdown_of_best(FIRST)
    if rho is None or first is None:
        return f"{said}, too few measured to compare: measure with `looptune run FILE --sweep`"
    return (f"{said}, {len(r.timed)} measured: rank correlation {rho:.3f}; "
            f"the best of the first {FIRST} takes {first:.2f} of the best")  # fmt: skip


FIRST = 10
"""Versions of a ranking that one might measure."""


def ranking_record(r: Ranking) -> dict[str, Any]:
    """Return the ranking as a JSON object."""
    versions = [
        {"directives": v.directives, "predicted_us": v.predicted_us, "bound": v.bound, "measured_us": v.measured_us,
         "whole": v.is_complete}
        for v in r.versions
    ]  # fmt: skip
    return {
        "kernel": r.kernel, "file": r.path, "sizes": dict(r.sizes), "device": r.chip.name, "refused": r.refused,
        "correlation": r.correlation, "first": {"count": FIRST, "over_best": r.slowdown_of_best(FIRST)},
        "versions": versions,
    }  # fmt: skip
