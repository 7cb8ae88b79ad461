"""Steps of a time loop in overlapping tiles: they give what the loops give, bit for bit, and every refusal says why."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.codegen.kernel import check_capability, check_limits, dynamic_shared_bytes, shared_bytes
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.backends.numba_cpu.program import CpuProgram
from looptune.core.errors import DirectiveError, ResourceError
from looptune.frontend import load
from looptune.ir.nodes import Codelet
from looptune.lower.machine import Machine
from looptune.lower.passes import cpu_time_bands
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import HostLoop, count
from looptune.lower.plan_check import prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.cost_model import devices
from looptune.tune.cost_model.estimate import estimate
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.access_trace import EVERYTHING
from tests.helpers.kernel_cases import Case, Sizes, planned, sized
from tests.helpers.overlap_cases import CASES, CUBE, EDGES, FIELDS, LINE, PLANE, SHRINKING, SMALL
from tests.helpers.persistent_cases import STEPS

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")


@pytest.mark.wide
@compiler
@pytest.mark.parametrize("part", [0, *(pytest.param(p, marks=pytest.mark.long) for p in (1, 2))])
def test_what_the_loops_give(part: int, tmp_path: Path) -> None:
    """In CUDA C, for sizes that are constants or arguments in turn; and of random stencils."""
    cases, wants = [], {}
    every = [(name, case.text, case.lines, sizes) for name, case in CASES.items() for sizes in case.sizes]
    every += [(f"random {seed}", *stencil(seed)) for seed in range(16)]
    for seed, (name, text, lines, sizes) in list(enumerate(every))[part::3]:
        codelet = load(text).codelet
        given = cross_check.arguments(codelet, sizes, seed)
        known = sizes if seed % 2 else None
        key = f"{name} {sizes}{' as arguments' if known is None else ''}"
        wants[key] = cross_check.interpreted(codelet, given)
        cases.append(cuda_c_on_cpu.Case(key, planned(text, lines, known), codelet, given))
    found = cuda_c_on_cpu.run(cases, tmp_path)
    wrong = [key for key, want in wants.items() if not same(want, found[key])]
    assert not wrong


def same(want: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray]) -> bool:
    return all(np.array_equal(want[name], got[name], equal_nan=want[name].dtype.kind == "f") for name in want)


@pytest.mark.long
@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    """One size of every second case, in the simulator, whose threads run at once."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    for name, case in [*CASES.items()][::2]:
        codelet = load(case.text).codelet
        start = cross_check.arguments(codelet, case.sizes[-1])
        wants[name] = cross_check.interpreted(codelet, start)
        programs.append(cross_check.Emitted(name, NumbaCuda().emit(planned(case.text, case.lines)), "f", start))
    found = cross_check.simulated(programs, tmp_path)
    wrong = {name: got for name, want in wants.items() if isinstance(got := found[name], str) or not same(want, got)}
    assert not wrong


def stencil(seed: int) -> tuple[str, tuple[str, ...], Sizes]:
    """A time loop of nests that read each other's arrays, up to two elements away."""
    rng = random.Random(seed)
    rank, arrays = rng.choice((1, 2, 2, 3)), "ABC"[: rng.randint(2, 3)]
    sizes = {"steps": rng.randint(1, 9), **{n: rng.randint(5, (60, 30, 12)[rank - 1]) for n in "nml"[:rank]}}
    variables, extents = "ijk"[:rank], "nml"[:rank]
    nests = []
    for _ in range(rng.randint(2, 4)):
        target = rng.choice(arrays)
        shift = tuple(rng.randint(-1, 1) for _ in range(rank))
        reads = [
            (array, tuple(s + rng.choice((-2, -1, 0, 0, 1)) * (array != target) for s in shift))
            for array in rng.choices(arrays, k=rng.randint(1, 3))
        ]
        away = [shift, *(at for _, at in reads)]
        loops = "".join(
            f"for (int {v} = {max(0, -min(a[d] for a in away)) + rng.randint(0, 1)}; "
            f"{v} < {e} - {max(0, max(a[d] for a in away)) + rng.randint(0, 1)}; {v}++) "
            for d, (v, e) in enumerate(zip(variables, extents, strict=True))
        )
        value = " + ".join(f"{rng.choice(('0.5f', '0.25f', '-1'))} * {_element(a, variables, at)}" for a, at in reads)
        nests.append(f"    {loops}{_element(target, variables, shift)} = {value};")
    shape = "".join(f"[{e}]" for e in extents)
    params = ", ".join([*(f"int {s}" for s in sizes), *(f"float {a}{shape}" for a in arrays)])
    text = f"void f({params}) {{\n  for (int t = 0; t < steps; t++) {{\n" + "\n".join(nests) + "\n  }\n}\n"
    for steps in (rng.randint(1, 3), 1):
        rows, columns = 1 if rank == 1 else rng.randint(1, 4), rng.choice((1, 1, 2, 3)) if rank < 3 else 1
        lines = [f"loop 1: overlap {steps}, rows {rows + 8 * (rank == 3)}, columns {columns}"]
        lines += [*([f"loop 1: persistent {rng.choice((1, 9))}"] * rng.randint(0, 1)), "codelet: grid blocksize 32x16"]
        try:
            planned(text, lines)
        except DirectiveError:
            continue
        return text, tuple(lines), sizes
    return stencil(seed + 1000)


def _element(array: str, variables: str, at: Sequence[int]) -> str:
    return array + "".join(f"[{v} {'-' if a < 0 else '+'} {abs(a)}]" for v, a in zip(variables, at, strict=True))


@pytest.mark.sampled(10, "wide")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.wide) if n == "fields" else n for n in CASES])
def test_it_is_proved_and_compiles(name: str) -> None:
    """The loops that the launches stand for, by the same proof as any; a launch for so many steps; of every third one
    machine code whose threads keep everything in registers, and as much shared memory as was counted."""
    case = CASES[name]
    original = load(case.text).codelet
    sizes = case.sizes[0]
    done = planned(case.text, case.lines, sizes)
    proof = prove_plan(original, done, sizes)
    assert proof.verdict == "proved", proof.reason
    tiled = [k for k in done.kernels if k.time_tile is not None]
    assert len(tiled) in (2, 4)
    if cross_check.CUDA and name in [*CASES][::3]:
        from looptune.backends.numba_cuda.backend import NumbaCuda

        built = NumbaCuda().build(done)
        for kernel, used in zip(built.plan.kernels, built.resources, strict=True):
            assert used.local_bytes == 0
            if kernel.time_tile is not None:
                assert used.shared_bytes <= shared_bytes(kernel)


def test_launches() -> None:
    """Two for every eight steps, where four are one launch."""
    done = planned(FIELDS, ("loop 1: overlap 4, rows 4",))
    assert isinstance(done.steps[0], HostLoop)
    assert [count(done.steps, {"steps": t, "n": 50, "m": 50}) for t in (0, 1, 8, 9, 500)] == [0, 2, 2, 4, 126]


@pytest.mark.parametrize(
    ("lines", "halo", "core"),
    [
        (("loop 1: overlap 1, rows 8",), ((1, 1), (1, 1)), (62, 30)),
        (("loop 1: overlap 4, rows 8",), ((4, 4), (4, 4)), (56, 24)),
        (("loop 1: overlap 4, rows 8", "codelet: grid blocksize 64x8"), ((4, 4), (4, 4)), (56, 56)),
    ],
)
def test_tiles_overlap_as_far_as_the_steps_reach(
    lines: tuple[str, ...], halo: tuple[tuple[int, int], ...], core: tuple[int, ...]
) -> None:
    """By hand: in each step of FIELDS one element on each side."""
    kernel = planned(FIELDS, lines).kernels[0]
    assert kernel.time_tile is not None
    assert (kernel.time_tile.halo, kernel.time_tile.core) == (halo, core)


def test_what_blocks_that_keep_their_tiles_exchange() -> None:
    """By hand: what each step first computes anew is not exchanged, unless something is read before or elsewhere."""
    kept = ("loop 1: persistent", "codelet: grid blocksize 32x16")
    for text, arrays in (
        (FIELDS, {"x", "y", "z"}), (PLANE, {"A"}), (PLANE.replace("B[i][j] = A", "B[i][j] = B[i][j] + A"), {"A", "B"}),
        (SHRINKING, {"A", "B"}), (EDGES, {"A", "B"}),
    ):  # fmt: skip
        tile = planned(text, ("loop 1: overlap 1, rows 4, columns 2", *kept)).kernels[0].time_tile
        assert tile is not None
        assert {*tile.exchanged} == arrays


LARGE_TILES = ("loop 1: overlap 1, rows 16", "loop 1: persistent 4", "codelet: grid blocksize 32x16")


def test_kept_tiles_may_take_what_a_launch_can_ask_for() -> None:
    """227 KiB on an H100, 48 KiB on older devices: two arrays of 16 x 16 x 32 floats."""
    ready = finish(planned(CUBE, LARGE_TILES, {"steps": 3, "n": 17, "m": 18, "l": 40}), Machine(blocks=True))
    (kernel,) = ready.compiled_kernels
    assert dynamic_shared_bytes(kernel) == shared_bytes(kernel) >= 2 * 16 * 16 * 32 * 4
    check_limits(ready)
    check_capability(ready, "sm_90")
    with pytest.raises(ResourceError, match="bytes of shared memory per block, the limit is 49152"):
        check_capability(ready, "sm_75")
    more = ("loop 1: overlap 1, rows 32", "loop 1: persistent", "codelet: grid blocksize 32x32")
    with pytest.raises(ResourceError, match="bytes of shared memory per block, the limit is 232448"):
        check_limits(finish(planned(CUBE, more), Machine(blocks=True)))


@pytest.mark.wide
@compiler
def test_large_kept_tiles_compute_what_the_loops_do(tmp_path: Path) -> None:
    """The arrays are parts of one memory, and each block keeps its tile: there are as many blocks as tiles."""
    case = Case(CUBE, LARGE_TILES, sized((5, 17, 18, 40), (2, 9, 30, 31)))
    assert not kernel_cases.wrong_in_c({"large": case}, tmp_path, (False, True), 1e-5)


@simulator
def test_kept_tiles_are_exchanged_in_vectors() -> None:
    """In PTX: four floats at once, neighbours in the warp by shuffles, and no element in local memory."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    lines = ("loop 1: overlap 4, rows 4, columns 4", "loop 1: persistent", "codelet: vectorize", SMALL)
    text = NumbaCuda().ptx(planned(STEPS, lines, {"steps": 9, "n": 40, "m": 64}))
    found = Counter(re.findall(r"\b(ld|st)\.(?:global\.)?v4\.f32|(shfl)\.sync", text))
    assert found == {("ld", ""): 8, ("st", ""): 8, ("", "shfl"): 8}
    assert ".local" not in text


def test_the_model_counts_what_a_tile_loads_and_stores() -> None:
    """By hand, at sizes whose blocks lie inside: each loads its tile of three fields and stores their cores; and the
    operations are the loops'. Of many steps it predicts less time than step by step."""
    sizes = {"steps": 8, "n": 24 * 5, "m": 24 * 4}
    lines = ("loop 1: overlap 4, rows 4", "codelet: grid blocksize 32x8")
    chip = devices.named("H200")
    first, back = estimate(planned(FIELDS, lines), sizes, chip, sample=EVERYTHING).launched
    grid = first.grid[0] * first.grid[1]
    assert first.grid == back.grid == (5, 6, 1)
    ours = [u for u in first.counted.nest.every_use if not u.shared]
    elements = {write: sum(u.threads * u.width for u in ours if u.write == write) for write in (False, True)}
    assert elements == {False: grid * 32 * 32 * 3, True: grid * 24 * 24 * 3}
    large = {"steps": 500, "n": 2048, "m": 2048}
    tiled, plain = (estimate(planned(FIELDS, x), large, chip).time_us for x in (lines, ()))
    assert tiled < plain


@pytest.mark.wide
@pytest.mark.parametrize("part", [*range(3), *(pytest.param(p, marks=pytest.mark.long) for p in range(3, 15))])
def test_what_the_loops_give_on_a_cpu(part: int, tmp_path: Path) -> None:
    """In bands of rows, as many as there are cores, but for arrays of few rows; proved as the launches they are."""
    every = [(case.text, case.lines, case.sizes[-1]) for case in CASES.values()]
    every += [(LINE, ("loop 1: overlap 5",), {"steps": 8, "n": 3 * cpu_time_bands.ELEMENTS + 7})]
    every += [(FIELDS, ("loop 1: overlap 5, rows 5", "codelet: grid blocksize 16x3"), sized((13, 70, 9))[0])]
    every += [stencil(seed) for seed in range(2)]
    backend = NumbaCpu(tmp_path)
    for seed, (text, lines, sizes) in enumerate(every[part::15]):
        codelet = load(text).codelet
        done = lower(schedule(Analysis(codelet), parse_lines(lines)).codelet)
        assert prove_plan(codelet, done, {**sizes, "n": min(sizes["n"], 99)}, blocks=False).verdict == "proved"
        start = cross_check.arguments(codelet, sizes, seed)
        want = cross_check.interpreted(codelet, start)
        program = backend.load(backend.build(done))
        assert isinstance(program, CpuProgram)
        for cores in (1, 2, 3, 7):
            got = cross_check.copied(start)
            given = [got[p.name] for p in codelet.params]
            program.entry(*given, cores, *([np.zeros(2, np.int64)] if program.stops else []))
            assert cross_check.off(want, cross_check.arrays(got), 1e-5) is None, (cores, text, lines, sizes)


def test_a_row_is_a_few_rows_behind() -> None:
    """By hand: z needs y of the next row, so a step is one row behind, and a band leaves out one more at each edge."""
    tree = schedule(Analysis(load(FIELDS).codelet), parse_lines(["loop 1: overlap 4"])).codelet
    whole = lower(tree).kernels[0].time_tile
    assert whole is not None
    assert cpu_time_bands.row_lags(whole, 1, alone=False) == cpu_time_bands.RowLags((0, 0, 0, 1), 1)
    assert cpu_time_bands.row_lags(whole, 1, alone=True) == cpu_time_bands.RowLags((0, 0, 0, 1), 1)
    assert cpu_time_bands.row_lags(whole, -1, alone=True) == cpu_time_bands.RowLags((1, 1, 0, 1), 1)


def test_a_cpu_needs_no_tile() -> None:
    """More steps than a block's tile has rows: refused where there are blocks, at the loop."""
    tree = schedule(Analysis(load(FIELDS).codelet), parse_lines(["loop 1: overlap 32"])).codelet
    (loop,) = lower(tree).steps
    assert isinstance(loop, HostLoop)
    assert loop.step == 32
    with pytest.raises(
        DirectiveError, match="32 steps invalidate 64 elements at the edges of a tile, which has only 8 along y"
    ):
        lower(tree, blocks=True)


@simulator
def test_a_tile_too_large_is_an_error_with_both_numbers() -> None:
    from looptune.backends.numba_cuda.backend import NumbaCuda

    done = planned(FIELDS, ("loop 1: overlap 2, rows 32", "codelet: grid blocksize 64x16"))
    with pytest.raises(ResourceError, match="bytes of shared memory per block, the limit is 232448"):
        NumbaCuda().build(done)


def test_a_codelet_is_left_alone_without_it() -> None:
    codelet: Codelet = load(FIELDS).codelet
    assert lower(codelet, blocks=True).device_locals == ()
