"""Every kernel's space: as large as the paper's, around the paper's best, of versions that are legal and right."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Arg, Codelet, Scalar
from looptune.ir.simplify import is_integer
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.binding import loops_at
from looptune.schedule.directive_lines import DirectiveLine, parse_lines
from looptune.tune.space.space import Configuration, parse
from tests.helpers import cross_check
from tests.helpers.suite_spaces import KERNELS, PROGRAMS, configurations, space_text

VERSIONS: Mapping[str, int] = {
    "2dconv": 198, "2mm": 163, "3dconv": 137, "3mm": 116, "atax": 130, "bicg": 490, "corr": 152, "covar": 145,
    "fdtd-2d": 177, "gemm": 254, "gesummv": 679, "gramschm": 725, "mvt": 125, "syr2k": 178, "syrk": 123,
}  # fmt: skip
"""How many versions the paper tried."""

BEST: Mapping[str, Sequence[str]] = {
    "2dconv": ("loop 2: unroll 2, guarded",),
    "2mm": ("loop 3: unroll 3, split, guarded", "loop 6: unroll 3, split, guarded"),
    "3dconv": ("nest i: permute i, k, j", "loop j: unroll 4, guarded"),
    "3mm": tuple(f"loop {k}: unroll 3, split, guarded" for k in (3, 6, 9)),
    "atax": ("loop 1: tile 4", "loop 2.1: tile 4", "nest 2.2: permute j, i"),
    "bicg": ("nest 2.2: permute j, i", *(f"loop {k}: tile 2" for k in ("2.2", "3.1", "2.3", "3.2"))),
    "corr": ("loop j1: noParallel", "loop j2: parallel", "loop 9: tile 4"),
    "covar": ("loop j1: noParallel", "loop j2: parallel", "loop 7: unroll 4, split, guarded"),
    "fdtd-2d": ("loop 4: unroll 2, split, guarded", "loop 8: unroll 4, split, guarded"),
    "gemm": ("loop k: unroll 3, split, guarded",),
    "gesummv": ("loop i: tile 4", "loop j: tile 2"),
    "gramschm": ("loop 5: unroll 3, split, guarded", "loop 6: unroll 3, split, guarded"),
    "mvt": ("loop 1: tile 2", "loop 2: tile 2", "loop 4: tile 2"),
    "syr2k": ("loop k: unroll 3, split",),
    "syrk": ("loop k: unroll 2, split, guarded",),
}
"""What the paper found best for CUDA, besides what the C files say."""

SPLITTING = {"unroll", "tile", "distribute"}
MOST = {"jiang-snir": 3000}
"""Versions of a space that is searched with a strategy; of the others 850, which a sweep tries all."""
SPREAD = 14
COMPUTED = 6
SIZES = (5, 7, 6, 4, 3)
STEPS = {"tmax": 2, "tsteps": 2}

kernels = pytest.mark.parametrize("kernel", KERNELS)


@cache
def analysis(kernel: str, dtype: str | None = None) -> Analysis:
    return Analysis(load(PROGRAMS[kernel], dtype=dtype).codelet)


def scheduled(known: Analysis, lines: Sequence[str]) -> Codelet:
    return schedule(known, parse_lines(lines)).codelet


def spread(every: Sequence[Configuration], count: int) -> list[Configuration]:
    return [every[k * len(every) // count] for k in range(min(count, len(every)))]


def sample(kernel: str, count: int) -> list[Configuration]:
    """Configurations spread over the space, then those that show a directive, a word or a number not yet seen."""
    every = configurations(kernel)
    chosen = spread(every, count)
    seen = {feature for c in chosen for feature in features(c)}
    for c in every:
        new = set(features(c)) - seen
        if new:
            chosen.append(c)
            seen |= new
    return chosen


def features(configuration: Configuration) -> Iterator[tuple[str, ...]]:
    for line in configuration.lines:
        place, _, text = line.partition(": ")
        yield place, re.sub(r"\b\d+", "N", text)
        yield from ((place, text.split()[0], number) for number in re.findall(r"\b\d+", text))


@kernels
def test_a_space_has_the_size_it_says(kernel: str) -> None:
    """The number in the first lines is that of different versions: enough, and few enough to try them all."""
    count = len({c.text for c in configurations(kernel)})
    assert f" {count} versions." in space_text(kernel).partition("\n\n")[0]
    on_a_gpu = {c.text for c in parse(space_text(kernel), kernel).on("gpu")}
    assert VERSIONS.get(kernel, 0) <= len(on_a_gpu) <= count <= MOST.get(kernel, 850)


@pytest.mark.parametrize("kernel", sorted(VERSIONS))
def test_the_paper_s_best_is_in_the_space(kernel: str) -> None:
    """Some version gives the very loops of the configuration that the paper found best."""
    known, best = analysis(kernel), BEST[kernel]
    want, alike = scheduled(known, best), kind(known.codelet, best)
    near = [c for c in configurations(kernel) if kind(known.codelet, c.lines) == alike]
    assert any(scheduled(known, c.lines) == want for c in near), f"{len(near)} versions have the same directives"


def kind(codelet: Codelet, lines: Sequence[str]) -> frozenset[tuple[str, str, tuple[int, ...]]]:
    """The directives that make other loops, each with its loop and numbers: a sieve, for scheduling takes longer."""
    return frozenset(
        (place, p.directive.name.lower(), tuple(numbers(p.directive.args)))
        for p in parse_lines(lines)
        if p.directive.name.lower() in SPLITTING
        for place in places(codelet, p)
    )


def places(codelet: Codelet, placed: DirectiveLine) -> list[str]:
    """The numbers of the loops; of a loop that only ``distribute`` makes, its name."""
    try:
        return [str(f.number) for f in loops_at(codelet, placed.where, placed.loop, placed.directive.span)]
    except DirectiveError:
        return [placed.loop]


def numbers(args: Sequence[int | str | Arg]) -> Iterator[int]:
    for arg in args:
        match arg:
            case int():
                yield arg
            case Arg(_, values):
                yield from numbers(values)


@pytest.mark.sampled(4, "wide")
@pytest.mark.sampled(2)
@kernels
@pytest.mark.parametrize("count", [SPREAD, pytest.param(2 * SPREAD, marks=pytest.mark.long)])
def test_versions_are_legal_or_judged_illegal(kernel: str, count: int) -> None:
    """No directive fails to fit its loop, every alternative tried; where dependences forbid a version, few are lost."""
    known, chosen, illegal = analysis(kernel), sample(kernel, count), []
    for c in chosen:
        try:
            scheduled(known, c.lines)
        except IllegalTransform as refusal:
            illegal.append(f"{c.text}\n  {refusal.message}")
        except DirectiveError as error:
            pytest.fail(f"{c.text}\n  {error.message}")
    assert len(illegal) <= 0.15 * len(chosen), "\n".join(illegal)


@pytest.mark.sampled(12, "wide")
@pytest.mark.sampled(2)
@kernels
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_versions_compute_what_the_kernel_computes(kernel: str, tmp_path: Path) -> None:
    """Some versions, printed as C and compiled, give the interpreter's results at sizes that no factor divides."""
    known = analysis(kernel, "float64")
    versions = []
    for c in spread(configurations(kernel), COMPUTED):
        try:
            versions.append((c, scheduled(known, c.lines)))
        except IllegalTransform:
            continue
    assert len(versions) > COMPUTED // 2
    named = [replace(version, name=f"version_{k}") for k, (_, version) in enumerate(versions)]
    library = cross_check.compiled("#include <math.h>\n" + "\n".join(map(c_printer.function, named)), tmp_path)
    given = cross_check.arguments(known.codelet, sizes(known.codelet))
    want = cross_check.interpreted(known.codelet, given)
    for (c, _), version in zip(versions, named, strict=True):
        off = cross_check.off(want, cross_check.called(library, version, given), 1e-9)
        assert off is None, f"{c.text}\n{off}"


def sizes(codelet: Codelet) -> dict[str, int]:
    names = [p.name for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]
    return {name: STEPS.get(name, SIZES[k % len(SIZES)]) for k, name in enumerate(names)}
