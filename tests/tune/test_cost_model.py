"""``looptune predict``: what is counted is what threads do, what is predicted orders what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, blocks
from looptune.runtime.outcome import CutOff, Timed
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.cost_model import devices
from looptune.tune.cost_model.cache_traffic import traffic
from looptune.tune.cost_model.estimate import ONE_PASS, estimate
from looptune.tune.cost_model.kernel_walk import count
from looptune.tune.cost_model.occupancy import occupancy
from looptune.tune.cost_model.ranking import spearman
from looptune.tune.cost_model.sector_counts import AffineAddress, sectors
from looptune.tune.session import predict
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Context, Row, Store, canonical_json
from tests.helpers.access_trace import EVERYTHING, trace
from tests.helpers.command_line import GEMM, looptune
from tests.helpers.paths import POLYBENCH

STENCIL = """
void blur(int n, int m, float x[n][m], float y[n][m]) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      y[i][j] = x[i - 1][j] + x[i][j - 1] + x[i][j + 1] + x[i + 1][j];
}
"""
TRIANGLE = """
void lower(int n, int m, double a[n][m], double c[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (j <= i)
        for (int k = j; k < m; k++)
          c[i][j] += a[i][k] * a[j][k];
}
"""
STRIDED = """
void strided(int n, float x[3 * n], float y[2 * n]) {
  for (int i = 0; i < n; i++) y[2 * i + 1] = x[3 * i] + x[3 * (n - 1 - i) + 1];
}
"""
PROGRAMS = {
    "product": (GEMM.read_text(), {"ni": 24, "nj": 48, "nk": 9}),
    "stencil": (STENCIL, {"n": 21, "m": 70}),
    "triangle": (TRIANGLE, {"n": 20, "m": 23}),
    "strided": (STRIDED, {"n": 100}),
}
CASES = [
    ("product", ()),
    ("product", ("codelet: grid blocksize 16x4",)),
    ("product", ("loop i: unroll 4, jam", "loop j: unroll 2, split, jam")),
    ("product", ("loop k: tile k:4", "loop i: unroll 4, split, guarded")),
    ("product", ("nest i: permute j, i, k",)),
    ("stencil", ()),
    ("stencil", ("loop i: unroll 4, contiguous, guarded, jam",)),
    ("stencil", ("loop j: unroll 3, contiguous", "codelet: grid blocksize 64x2")),
    ("triangle", ()),
    ("triangle", ("nest i: permute j, i", "codelet: grid blocksize 16x8")),
    ("strided", ()),
    ("strided", ("loop i: unroll 4, contiguous",)),
]


def subject(text: str, sizes: dict[str, int]) -> predict.PredictionInput:
    unit = load(text, defines={name.upper() if "NI" in text else name: str(v) for name, v in sizes.items()})
    return predict.prediction_input(unit, None, "h200")


def planned(program: str, lines: tuple[str, ...]) -> tuple[Plan, dict[str, int]]:
    what = subject(*PROGRAMS[program])
    return what.planned(parse_lines(lines, "test")), what.sizes


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(("program", "lines"), CASES)
def test_sectors_and_requests_are_those_of_all_threads(program: str, lines: tuple[str, ...]) -> None:
    """Of each access: lanes, and sectors of all warps, as when every thread is gone through by itself."""
    plan, sizes = planned(program, lines)
    for kernel in plan.kernels:
        counted, all_of = count(kernel, plan, sizes, EVERYTHING), trace(kernel, plan, sizes)
        found = counted.nest.every_use
        for key in {(u.load, u.write) for u in found}:
            mine = [u for u in found if (u.load, u.write) == key]
            size = mine[0].itemsize
            assert sum(u.threads for u in mine) == all_of.threads[key]
            assert sum(u.sectors for u in mine) == all_of.sectors(key, size)
            assert sum(u.requests for u in mine) == len(all_of.warps[key])
        assert {(u.load, u.write) for u in found} >= all_of.threads.keys()


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(("program", "lines"), CASES)
def test_unique_bytes_are_those_that_threads_touch(program: str, lines: tuple[str, ...]) -> None:
    """In whole sectors, of all of a kernel: exact where blocks are full, else no less; never more than the arrays."""
    plan, sizes = planned(program, lines)
    for kernel in plan.kernels:
        counted, all_of = count(kernel, plan, sizes, EVERYTHING), trace(kernel, plan, sizes)
        moved = traffic(kernel, counted, devices.DEFAULT, blocks(kernel, sizes), 4)
        exact = 32 * len({(a, at * counted.memory.itemsize[a] // 32) for touched in all_of.blocks.values()
                          for a, at in touched})  # fmt: skip
        whole = sum(-(-b // 32) * 32 for b in counted.memory.whole_bytes.values())
        assert exact <= moved.unique <= whole
        if program == "product" and "blocksize" in "".join(lines):
            assert moved.unique == exact
            first = {(a, at * counted.memory.itemsize[a] // 32) for a, at in all_of.blocks[0]}
            assert moved.block == 32 * len(first)


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 4)), min_size=1, max_size=4),
    st.dictionaries(st.sampled_from("ijk"), st.tuples(st.integers(-20, 20), st.integers(1, 7)), max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_sectors_are_those_of_a_set(bases: list[tuple[int, int]], counters: dict[str, tuple[int, int]]) -> None:
    """A union of intervals at strides is what listing every element gives."""
    terms = tuple((name, c) for name, (c, _) in counters.items() if c)
    counts = {name: float(n) for name, (_, n) in counters.items()}
    elements = {base + w for base, width in bases for w in range(width)}
    for name, c in terms:
        elements = {e + c * k for e in elements for k in range(counters[name][1])}
    found = sectors([AffineAddress(terms, base, width) for base, width in bases], counts, 4)
    assert found == len({e * 4 // 32 for e in elements})


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("path", sorted(POLYBENCH.glob("*.c")), ids=lambda p: p.stem)
def test_every_kernel_is_predicted_and_moves_what_it_must(path: Path) -> None:
    """Bytes only grow from those that are unique to those requested, and every launch takes some time."""
    what = predict.prediction_input(load(path, defines={"SMALL_DATASET": None}), None, "a100")
    made = estimate(what.planned(()), what.sizes, what.chip)
    assert made.launched
    assert made.bound
    for one in made.launched:
        assert one.moved.memory <= one.moved.l2 * 1.0001
        assert one.memory_bytes <= one.moved.memory * 1.0001
        assert one.moved.l2 <= one.moved.sectors * 1.0001
        assert one.times.time_us > max(one.times.bounds.values())
        assert all(u.requests <= u.threads <= 32 * u.requests for u in one.counted.nest.every_use)


@pytest.mark.parametrize(
    "lines", [(), ("loop i: unroll 4, jam", "loop j: unroll 4, jam", "loop k: tile k:16", "loop k: stage A, B")]
)
def test_a_sample_stands_for_all(lines: tuple[str, ...]) -> None:
    """Counts from a few warps and iterations are near those from all of them."""
    what = subject(GEMM.read_text(), {"ni": 128, "nj": 128, "nk": 64})
    plan = what.planned(parse_lines(lines, "test"))
    few, every = (estimate(plan, what.sizes, what.chip, sample=s) for s in (None, EVERYTHING))
    for a, b in zip(few.launched, every.launched, strict=True):
        for x, y in zip(a.counted.nest.every_use, b.counted.nest.every_use, strict=True):
            assert (x.load, x.place) == (y.load, y.place)
            assert x.requests == pytest.approx(y.requests)
            assert x.sectors == pytest.approx(y.sectors, rel=0.05)
            assert x.passes == pytest.approx(y.passes, rel=0.05)
        assert a.counted.nest.all_instructions.fp32 == pytest.approx(b.counted.nest.all_instructions.fp32)


def test_passes_of_a_while_are_counted_once() -> None:
    """Of the host and of a thread, so that versions compare."""
    text = """
void f(int n, double a[n], double t) {
  double e = 1;
  while (e > t) { e = 0; for (int i = 0; i < n; i++) a[i] = a[i] * 0.5; e = a[0]; }
}
"""
    made = lower(schedule(Analysis(load(text).codelet), []).codelet, blocks=True)
    found = estimate(made, {"n": 64}, devices.DEFAULT)
    assert [one.launches for one in found.launched] == [1.0, 1.0, 1.0, 1.0]
    assert {one.counted.notes[0] for one in found.launched} == {ONE_PASS}


@pytest.mark.parametrize("block", ["128x1", "32x2", "32x8"])
def test_blocks_past_the_bounds_count_as_what_is_in_them(block: str) -> None:
    """Whatever blocks cover 286 x 191 elements: a sample of them stands for as many threads."""
    what = subject(STENCIL, {"n": 288, "m": 193})
    (one,) = estimate(what.planned(parse_lines([f"codelet: grid blocksize {block}"])), what.sizes, what.chip).launched
    assert [u.threads for u in one.counted.nest.every_use] == pytest.approx([286 * 191] * 5)


def test_idle_blocks_that_are_left_out_are_not_in_the_grid() -> None:
    """Of 8 x 8 blocks of a triangle 36 work: 9 x 4. What they do is the same."""
    text = "void f(int n, float C[n][n])\n{ for (int i = 0; i < n; i++) for (int j = i; j < n; j++) C[i][j] += 1; }"
    what = subject(text, {"n": 64})
    lines = ("loop 1: gridify(i, j)", "codelet: grid blocksize 8x8")
    whole, packed = (
        estimate(what.planned(parse_lines((*lines, *more))), what.sizes, what.chip).launched[0]
        for more in ((), ("codelet: pack",))
    )
    assert (whole.grid, packed.grid) == ((8, 8, 1), (9, 4, 1))
    assert whole.counted.nest.every_use == packed.counted.nest.every_use


def test_operations_are_those_of_the_loops() -> None:
    """Of a product: a multiplication and a fused one for each term, and one for each element."""
    what = subject(GEMM.read_text(), {"ni": 64, "nj": 64, "nk": 16})
    (one,) = estimate(what.planned(()), what.sizes, what.chip).launched
    assert one.counted.nest.all_instructions.fp32 * 32 == 64 * 64 * (2 * 16 + 1)
    assert one.flops == 64 * 64 * (2 * 16 + 1)


def test_tiles_move_less_and_are_no_memory_of_the_devices() -> None:
    """Staging divides what is requested of memory by what the threads of a block share."""
    what = subject(GEMM.read_text(), {"ni": 64, "nj": 64, "nk": 64})
    plain, staged = (
        estimate(what.planned(parse_lines(lines, "test")), what.sizes, what.chip).launched[0]
        for lines in ((), ("loop k: tile k:16", "loop k: stage A, B"))
    )
    shared = [u for u in staged.counted.nest.every_use if u.shared]
    assert {u.load.array.split("_")[0] for u in shared} == {"A", "B"}
    ours = [u for u in staged.counted.nest.every_use if u.load.array in "AB" and not u.write]
    each = {a: sum(u.threads * u.width for u in ours if u.load.array == a) for a in "AB"}
    assert each == {"A": 64 * 64 * (64 // 32), "B": 64 * 64 * (64 // 8)}
    assert staged.moved.requested < plain.moved.requested / 4
    assert staged.occupancy.blocks <= plain.occupancy.blocks


def test_neighbours_are_accessed_at_once_where_rows_are_aligned() -> None:
    """Four columns a thread, from 1 on: of row i 0 .. 5 are read, four and two at once, of the others and of y 1 .. 4,
    the middle two at once; with rows of 70, never four."""
    lines = parse_lines(("loop j: vectorize 4, guarded",), "test")
    pairs = {("x", 2), ("x", 1), ("y", 2), ("y", 1)}
    for columns, widths in ((72, pairs | {("x", 4)}), (70, pairs)):
        what = subject(STENCIL, {"n": 21, "m": columns})
        kernel = (plan := what.planned(lines)).kernels[0]
        uses = count(kernel, plan, what.sizes, EVERYTHING).nest.every_use
        most = max(u.threads for u in uses)
        assert {(u.load.array, u.width) for u in uses if u.threads == most} == widths
        assert sum(u.threads * u.width for u in uses if u.write) == 19 * (columns - 2)


def test_occupancy_is_what_runs_out_first() -> None:
    """By hand for an H200: 2048 threads, 32 blocks, 65,536 registers, 228 KiB."""
    h200 = devices.named("h200")
    for threads, shared, registers, expected, by in (
        (256, 0, None, 8, "threads"), (32, 0, 32, 32, "blocks"), (256, 0, 64, 4, "registers"),
        (256, 0, 65, 3, "registers"), (128, 48 * 1024, 32, 4, "shared memory"), (1024, 0, 255, 0, "registers"),
    ):  # fmt: skip
        held = occupancy(h200, threads, shared, registers)
        assert (held.blocks, held.by) == (expected, by), (threads, shared, registers)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=20))
def test_rank_correlation_is_that_of_the_ranks(pairs: list[tuple[int, int]]) -> None:
    """Pearson's of the mean ranks; none where all of one side are equal."""
    a, b = ([p[k] for p in pairs] for k in (0, 1))
    found = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found is None
        return
    x, y = ([np.mean([i + 1 for i, w in enumerate(sorted(v)) if w == e]) for e in v] for v in (a, b))
    assert found == pytest.approx(np.corrcoef(x, y)[0, 1])


def measured(path: Path, times: dict[str, float], cut: str) -> Path:
    """A database that has these medians of GEMM at 24 x 24 x 24, and of one directive only that it is slower."""
    unit = load(GEMM, defines={"NI": "24", "NJ": "24", "NK": "24"})
    context = Context("gemm", source_hash(unit), "1", "{}", "sm_90", "NVIDIA H200", "numba-cuda",
                      canonical_json(unit.values), "float32")  # fmt: skip
    with Store.open(path) as store:
        for text, us in times.items():
            row = Row(context, text, "version" if text else "default", "s", f"source {text}")
            store.record(row, Timed((us,), us, us, us, "yes", (("registers", 40),)))
        store.record(Row(context, cut, "version", "s", "source"), CutOff(900.0, 60.0, 1, 1, "verified"))
    return path


SIZES = ("-D", "NI=24", "-D", "NJ=24", "-D", "NK=24")


def test_a_version_is_said_beside_its_measurement(tmp_path: Path) -> None:
    """As text and as JSON, the numbers of the estimate and the median of the database."""
    db = measured(tmp_path / "r.sqlite", {"": 7.0, "loop k: unroll 4": 5.0}, "loop k: unroll 8")
    one = ("predict", GEMM, *SIZES, "--db", db, "--directive", "loop k: unroll 4")
    said, record = looptune(*one, cwd=tmp_path), looptune(*one, "--json", cwd=tmp_path)
    held = json.loads(record.out)
    assert (said.code, record.code) == (0, 0), said.err
    assert held["measured_us"] == 5.0
    assert held["device"] == "NVIDIA H200"
    assert held["flops"] == 24 * 24 * (2 * 24 + 1)
    assert held["least_bytes"] == 3 * 24 * 24 * 4
    assert "measured  5 us: predicted / measured" in said.out
    assert "A[i][" in said.out
    (launch,) = held["launches"]
    assert launch["bytes"]["unique"] == 3 * 24 * 24 * 4
    assert launch["predicted_us"] > max(launch["bounds_us"].values())


def test_a_space_is_ranked_and_compared(tmp_path: Path) -> None:
    """Every version once by predicted time, measured or not; what was cut off counts in no correlation."""
    space = tmp_path / "s.pragmas"
    space.write_text("loop k: { | unroll {2, 4, 8} | unroll 3, noremainder }\n")
    db = measured(
        tmp_path / "r.sqlite", {"": 9.0, "loop k: unroll 2": 8.0, "loop k: unroll 4": 7.0}, "loop k: unroll 8"
    )
    ran = looptune("predict", GEMM, *SIZES, "--db", db, "--sweep", "--space", space, "--json", cwd=tmp_path)
    held = json.loads(ran.out)
    times = [v["predicted_us"] for v in held["versions"]]
    assert times == sorted(times)
    assert len(times) + held["refused"] == 5
    assert {v["directives"]: v["measured_us"] for v in held["versions"] if v["whole"]} == {
        "": 9.0, "loop k: unroll 2": 8.0, "loop k: unroll 4": 7.0,
    }  # fmt: skip
    assert held["correlation"] == spearman(
        [v["predicted_us"] for v in held["versions"] if v["whole"]],
        [v["measured_us"] for v in held["versions"] if v["whole"]],
    )
    said = looptune("predict", GEMM, GEMM, *SIZES, "--db", db, "--sweep", "--space", space, cwd=tmp_path)
    assert "rank correlation" in said.out
    assert "> " in said.out


def test_what_sizes_make_impossible_is_left_out_of_a_space(tmp_path: Path) -> None:
    """Of a space derived from the loops, versions that are no more what they were with sizes written in."""
    text = "void h(int n, int m, float a[n][m], float s[1]) {\n  for (int i = 0; i < n; i++)\n"
    text += "    for (int j = 0; j < m; j++) s[0] += a[i][j];\n}\n"
    (tmp_path / "h.c").write_text(text)
    ran = looptune("predict", "h.c", "-D", "n=64", "-D", "m=64", "--sweep", "--device", "a100", "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["versions"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "gtx 9999"), "no GPU known by the name 'gtx 9999'"),
        (("--device", "h200", "--directive", "loop z: unroll 4"), "z"),
        (("--device", "h200", "--directive", "loop i: parallel, split"), "split"),
        (("--sweep", "--directive", "loop k: unroll 4"), "leave out --sweep"),
        (("--space", "x.pragmas"), "--space needs --sweep"),
        (("--db", "missing.sqlite"), "missing.sqlite"),
        (("--directive", "codelet: grid blocksize 64x32"), "2048 threads"),
    ],
)
def test_mistakes_are_said_in_a_line(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    """Exit code 2, what is wrong, and no traceback."""
    ran = looptune("predict", GEMM, *SIZES, *options, cwd=tmp_path)
    assert ran.code == 2
    assert ran.out == ""
    assert "error: " in ran.err.splitlines()[0]
    assert message in ran.err
