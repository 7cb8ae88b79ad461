"""Parallel loops that reduce: on the CPU and in the CUDA simulator they give what the loops in their order give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError, ResourceError
from looptune.frontend import load
from looptune.ir.def_use import assigned_targets
from looptune.ir.nodes import Codelet, Loop, Node, Scalar
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH
from tests.helpers.reduction_cases import CASES, agrees_on_cpu, analysis, drawn, given, planned, scheduled
from tests.helpers.team_reduction_cases import COLUMNS, NORM, ROWS, TWO, Case

pytestmark = pytest.mark.sampled(2)

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


KERNELS: Mapping[str, tuple[str, ...]] = {
    "atax": ("loop 3: parallel", "loop 2.2: parallel"),
    "bicg": ("loop 3.2: parallel", "loop 2.2: parallel"),
    "gesummv": ("loop j: parallel",),
    "mvt": ("loop 2: parallel", "loop 3: gridify(j, i)"),
    "gramschm": ("loop 2: parallel", "loop 4: gridify(i, j)"),
    "corr": ("loop 1: gridify(i, j)", "loop 3: gridify(i, j)", "loop 7: noParallel", "loop 8: gridify(i, j2)"),
    "covar": ("loop 1: gridify(i, j)", "loop 5: noParallel", "loop 6: gridify(i, j2)"),
}
"""What the kernels' spaces ask of teams."""


each = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@each
def test_who_shares_what(case: Case) -> None:
    """The outer of two loops is on y and the inner on x, one alone has the whole block; the rest is in the thread."""
    assert drawn(planned(case.text, *case.lines)) == case.runs


@each
def test_the_tree_is_proved(case: Case) -> None:
    """Translation validation accepts every such tree, conditions on data included, and none that has forgotten what its
    loops reduce, so that threads would race."""
    done, original = scheduled(case.text, *case.lines), analysis(case.text).codelet
    assert {s.proof for s in done.steps} <= {"proved", ""}
    assert prove(original, done.codelet).verdict == "proved"
    threads = any(isinstance(n, Loop) and n.reductions and n.mode == "parallel" for n in walk(done.codelet.body))
    assert not threads or prove(original, forgetful(done.codelet)).verdict != "proved"
    assert prove(original, done.codelet, reassociate=False).verdict != "proved"


@pytest.mark.sampled(12, "wide")
@each
def test_the_plan_is_proved(case: Case) -> None:
    """So is what is launched: blocks, lanes, phases and guards; not under --no-reassociate, where the sums are kept.

    How much of a loop each of several parts is depends on the sizes by more than an affine expression: at the sizes.
    """
    original, tree = analysis(case.text).codelet, scheduled(case.text, *case.lines).codelet
    for sizes in case.sizes if "rfactor" in str(case.lines) else ({},):
        for blocks in (True, False):
            done = lower(specialize(tree, sizes), blocks=blocks)
            proof = prove_plan(original, done, sizes, blocks=blocks)
            assert proof.verdict == "proved", proof.reason
            empty = 0 in sizes.values()
            assert empty or prove_plan(original, done, sizes, blocks=blocks, reassociate=False).verdict != "proved"


def forgetful(codelet: Codelet) -> Codelet:
    def rule(n: Node) -> Node | None:
        return replace(n, reductions=()) if isinstance(n, Loop) else None

    return rewrite(rule, codelet)


@pytest.mark.sampled(27, "wide")
@pytest.mark.parametrize("name", [*CASES][::2])
def test_cpu(name: str, tmp_path: Path) -> None:
    """On the CPU every second one's arrays are those of the loops in their order, whatever the number of trips."""
    case = CASES[name]
    agrees_on_cpu(planned(case.text, *case.lines), case.text, case.sizes, tmp_path)


@pytest.mark.long
@pytest.mark.wide
@simulator
def test_cuda(tmp_path: Path) -> None:
    """In the CUDA simulator too, for blocks that are no power of two as well, and so for PolyBench's kernels."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    for name, lines in KERNELS.items():
        codelet = load(POLYBENCH / f"{name}.c", dtype="float64").codelet
        sizes = {p.name: 3 + k for k, p in enumerate(p for p in codelet.params if isinstance(p, Scalar))}
        start = given(codelet, {**sizes, "eps": 0.1, "alpha": 2, "beta": 3}, 1)
        done = schedule(Analysis(codelet), parse_lines((*lines, "codelet: grid blocksize 4x3")))
        assert prove(codelet, done.codelet).verdict == "proved"
        wants[name] = cross_check.interpreted(codelet, start)
        programs.append(
            cross_check.Emitted(name, NumbaCuda().emit(lower(done.codelet, blocks=True)), codelet.name, start)
        )
    for name, case in CASES.items():
        tree = scheduled(case.text, *case.lines).codelet
        texts = {NumbaCuda().emit(lower(tree, blocks=blocks)): blocks for blocks in (False, True)}
        for seed, sizes, (source, blocks) in ((k, s, t) for k, s in enumerate(case.sizes) for t in texts.items()):
            start = given(analysis(case.text).codelet, sizes, seed)
            key = f"{name} {sizes}{' gathered' if blocks else ''}"
            wants[key] = cross_check.interpreted(analysis(case.text).codelet, start)
            programs.append(cross_check.Emitted(key, source, "f", start))
    assert cross_check.misses(programs, wants, tmp_path, 1e-12) == {}


REFUSED = {
    "under --no-reassociate": (
        ROWS,
        "loop j: parallel",
        "the reduction + of y[i], whose order --no-reassociate preserves",
    ),
    "a value read in between": (
        "void f(int n, float x[n], float y[n], float s[1])\n"
        "{ for (int i = 0; i < n; i++) { s[0] += x[i]; y[i] = s[0]; } }\n",
        "loop i: parallel", "iteration (i=0) must run before (i=1) when n=2"),
    "a part of it read": (
        "void f(int n, float x[n], float y[n], float s[1])\n"
        "{ for (int i = 0; i < n; i++) { if (i == 0) y[0] = s[0]; s[0] += x[i]; } }\n",
        "loop i: parallel", "iteration (i=0) must run before (i=1)"),
    "read where only one iteration writes it": (
        "void f(int n, float x[n], float y[n], float s[4])\n"
        "{ for (int i = 0; i < n; i++) { s[0] += x[i]; if (i == 2) { y[0] = s[0]; } } }\n",
        "loop i: parallel", "must run before"),
    "two targets that may be one": (
        "void f(int n, int k, float x[n], float s[9])\n"
        "{ for (int i = 0; i < n; i++) { s[0] += x[i]; s[k] *= x[i]; } }\n",
        "loop i: parallel", "iteration (i=0) must run before (i=1)"),
    "another element in another iteration": (
        "void f(int n, float x[n], float s[n])\n{ for (int i = 0; i < n; i++) s[i / 2] += x[i]; }\n",
        "loop i: parallel", "carries the reduction + of s[i / 2], whose element is not the same in all iterations"),
    "an element the data chooses": (
        "void f(int n, int b[n], int s[9])\n{ for (int i = 0; i < n; i++) s[b[i]] += 1; }\n",
        "loop i: parallel", "the reduction + of s[b[i]], whose element is not the same in all iterations"),
    "another use in the iteration that reduces it": (
        "void f(int n, float x[n], float y[n], float s[n + 2])\n"
        "{ for (int i = 0; i < n; i++) { for (int j = i; j < i + 2; j++) s[j] += x[i]; if (i == 0) y[0] = s[0]; } }\n",
        "loop i: parallel", "loop i reduces s by + and also uses it in another way"),
    "another op": (ROWS, "loop j: parallel, reduce(*:y)", "1:26: reduce names *:y, but loop j reduces +:y"),
    "another name": (ROWS, "loop j: parallel, reduce(+:x)", "1:26: reduce names +:x, but loop j reduces +:y"),
    "one of two": (TWO, "loop j: parallel, reduce(+:y)", "reduce must also name min:lo, which loop j reduces"),
    "none": (ROWS, "loop i: parallel, reduce(+:y)", "reduce names +:y, but loop i reduces nothing"),
    "parts of nothing": (ROWS, "loop i: rfactor 2", "1:9: rfactor 2: loop i reduces nothing"),
    "parts under --no-reassociate": (
        ROWS, "loop j: rfactor 2", "the reduction + of y[i], whose order --no-reassociate preserves"),
    "parts of a local": (
        "void f(int n, float A[n][n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) { float t = 0; for (int j = 0; j < n; j++) t += A[i][j]; y[i] = t; } }\n",
        "loop j: rfactor 2", "rfactor 2 of loop j: it reduces the local t: accumulate in an element of an array"),
    "parts of what changes": (
        "void f(int n, float A[n][n], float x[n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) { x[i] *= 2; for (int j = 0; j < n; j++) y[i] += A[i][j] * x[i]; } }\n",
        "loop j: rfactor 2", "x changes in the same iteration of the loops around it: distribute them"),
    "parts under a condition": (
        "void f(int n, float A[n][n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) if (A[i][0] > 2) { for (int j = 0; j < n; j++) y[i] += A[i][j]; } }\n",
        "loop j: rfactor 2", "only an if on loop variables and sizes may stand"),
    "parts where data say whether": (
        "void f(int n, float A[n][n], float y[n], float z[n])\n"
        "{ for (int i = 0; i < n; i++) { z[i] = 2 * z[n - 1 - i]; if (z[i] > 2) { for (int j = 0; j < n; j++) "
        "y[0] += A[i][j]; } } }\n",
        "loop j: rfactor 2", "whether or how often it runs depends on data, so that one thread runs all of it"),
    "parts of many sums": (
        COLUMNS, "loop i: rfactor 2", "rfactor 2 of loop i: loop j inside of it tells its sums apart"),
    "parts of sums told apart differently": (
        "void f(int n, float A[n][n], float x[n], float t[n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) t[i] += A[i][j] * x[j];\n"
        "for (int j = 0; j < n; j++) y[j] += A[i][j] * t[i]; } }\n",
        "loop 2: parallel\nloop 3: unroll 2, split\nloop 1: rfactor 2",
        "rfactor 2 of loop i: loops inside of it that run differently add to y[j]"),
    "strips of parts under a condition": (
        "void f(int n, float A[n][n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) if (A[i][0] > 2) { for (int j = 0; j < n; j++) y[i] += A[i][j]; } }\n",
        "loop j: rfactor 2\nloop j: tile 4", "only an if on loop variables and sizes may stand"),
    "the least of other numbers, under a condition": (
        "void f(int n, unsigned x[n], int s[1])\n{ for (int i = 0; i < n; i++) if (x[i] < s[0]) s[0] = x[i]; }\n",
        "loop i: parallel", "loop i carries a dependence"),
    "the least of other numbers": (
        "void f(int n, unsigned x[n], int s[1])\n"
        "{ for (int i = 0; i < n; i++) s[0] = x[i] < s[0] ? x[i] : s[0]; }\n",
        "loop i: rfactor 2", "loop i carries a dependence"),
    "the greatest by a part of its digits": (
        "void f(int n, int x[n], int s[1])\n"
        "{ for (int i = 0; i < n; i++) if ((signed char)x[i] > s[0]) s[0] = x[i]; }\n",
        "loop i: parallel", "loop i carries a dependence"),
    "a sum that is cut each time": (
        "void f(int n, int x[n], int s[1])\n{ for (int i = 0; i < n; i++) s[0] = (signed char)(s[0] + x[i]); }\n",
        "loop i: parallel", "loop i carries a dependence"),
    "parts behind parts": (
        "void f(int n, float A[n][n], float y[n], float z[n][n])\n"
        "{ for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) y[i] += A[i][j];\n"
        "for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) z[j][i] += A[i][k]; } }\n",
        "loop 2: rfactor 2\nloop 4: rfactor 2", "only an if on loop variables and sizes may stand"),
    "parts that a jam lets share an element": (
        "void f(int n, long A[n], long B[n][n], long D[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = i; j < n; j++) { D[j] += A[i]; B[0][0] += A[j]; } }\n",
        "loop 1: unroll 2, split, jam\nloop 2: unroll 2, split\nloop 2: rfactor 2",
        "loop j, with the directive rfactor, would carry a dependence"),
    "a sum that a jam lets threads share": (
        "void f(int n, long E[n], long B[1], long D[2 * n])\n"
        "{ for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) { B[0] += E[k]; D[i + k] += E[k]; } }\n",
        "loop 2: parallel\nloop 1: unroll 2, jam", "loop k, which is to be parallel, would carry a dependence"),
    "a sum that a jam of threads lets others share": (
        "void f(int n, long E[n], long B[1])\n"
        "{ for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) if (i == k) B[0] += E[k]; }\n",
        "loop 1: parallel\nloop 2: parallel\nloop 1: unroll 2, jam",
        "loop k, which is to be parallel, would carry a dependence"),
    "no number of parts": (ROWS, "loop j: rfactor", "rfactor needs one number of parts (syntax: rfactor [LOOP:]PARTS)"),
    "no parts": (ROWS, "loop j: rfactor 0", "the number of parts must be at least 1, got 0"),
    "too many parts": (ROWS, "loop j: rfactor 100000", "rfactor makes 65535 parts at most, not 100000"),
    "gridify": (ROWS, "nest i: gridify(i, j), reduce(*:y)", "reduce names *:y, but loop i and loop j reduce "),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_reduction_is_refused(text: str, line: str, message: str) -> None:
    """An order that counts, an element that changes or is used otherwise, and a clause that says another thing."""
    strict = "--no-reassociate" in message
    with pytest.raises(LooptuneError) as refusal:
        scheduled(text, *line.splitlines(), reassociate=not strict)
    assert message in str(refusal.value)


def test_copies_of_copies_are_known_to_be_reduced() -> None:
    """Of a loop whose copies hold copies, each in terms of the loop's own variable, all are what it reduces."""
    nest = "for (int i = 0; i < n; i++) for (int j = i; j < m; j++) e[j + 1] += i;"
    text = f"void f(int n, int m, long e[m + 1])\n{{ {nest} }}\n"
    done = scheduled(text, "loop 1: unroll 3, split", "loop 1: parallel", "loop 2: unroll 2, split").codelet
    for loop in (s for s in done.body if isinstance(s, Loop)):
        assert {r.target for r in loop.reductions} == assigned_targets(loop.body)


def test_exact_reductions_are_free_under_strict_float() -> None:
    """Sums of integers and maxima that pass over a NaN give one value in any order."""
    text = "void f(int n, int d[n], float x[n], int s[1], float m[1])\n" \
           "{ for (int i = 0; i < n; i++) { s[0] += d[i]; m[0] = fmaxf(m[0], x[i]); } }\n"  # fmt: skip
    done = scheduled(text, "loop i: parallel", reassociate=False)
    assert prove(analysis(text).codelet, done.codelet, reassociate=False).verdict == "proved"


def test_trust_is_for_what_cannot_be_analysed_alone() -> None:
    """A sum beside an assignment that ``assume`` vouches for is reduced, not raced for."""
    text = "void f(int n, int p[n], float x[n], float y[n], float s[1])\n" \
           "{ for (int i = 0; i < n; i++) { s[0] += x[i]; y[p[i]] = x[i]; } }\n"  # fmt: skip
    done = scheduled(text, "loop i: parallel, assume, reduce(+:s)")
    assert done.asserted
    unknown = text.replace("s[0] +=", "s[p[i]] +=")
    (loop,) = (f for f in walk(scheduled(unknown, "loop i: parallel, assume").codelet.body) if isinstance(f, Loop))
    assert (loop.mode, loop.reductions) == ("parallel", ())
    assert drawn(lower(done.codelet)) == ("reduction i 256",)


def test_a_block_does_what_stands_beside_its_sum() -> None:
    """One launch for the sum, what it begins with and what becomes of it; the next block size is another launch."""
    text = """
void f(int n, double x[n], double y[n], double s[3]) {
  double t = 0;
  for (int i = 0; i < n; i++) t += x[i];
  s[0] = sqrt(t);
  s[1] = 1;
  for (int j = 0; j < n; j++) s[1] *= x[j];
  s[2] = s[0] + s[1];
  for (int k = 0; k < n; k++) y[k] = x[k] / s[2];
}
"""
    lines = ("loop i: parallel", "loop j: parallel")
    tree, wider = (scheduled(text, *lines, *more).codelet for more in ((), ("loop j: grid blocksize 64x1",)))
    assert [len(lower(tree, blocks=b).kernels) for b in (False, True)] == [6, 2]
    assert len(lower(wider, blocks=True).kernels) == 3
    sizes = {"n": 9}
    for made in (tree, wider):
        gathered = lower(specialize(made, sizes), blocks=True)
        assert prove_plan(analysis(text).codelet, gathered, sizes).verdict == "proved"


def test_without_a_directive_sums_keep_their_order() -> None:
    """As in HMPP: only ``parallel`` or ``gridify`` makes a loop that carries a reduction parallel."""
    assert drawn(planned(NORM)) == ("one thread, in the thread i",)


@pytest.mark.wide
@simulator
def test_kernels_compile_without_local_memory() -> None:
    """Every such kernel becomes machine code with its accumulators in registers."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    for name in ("rows, six lanes", "columns", "kinds", "all", "softmax", "rounds", "chosen"):
        for used in NumbaCuda().build(planned(CASES[name].text, *CASES[name].lines)).resources:
            assert used.local_bytes == 0, name
            assert used.shared_bytes > 0, name


@simulator
def test_a_block_s_limits_are_errors_with_both_numbers() -> None:
    """Threads and shared memory beyond what a block may have."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    with pytest.raises(ResourceError, match="needs 2048 threads per block, the limit is 1024"):
        NumbaCuda().build(planned(NORM, "loop i: parallel", "codelet: grid blocksize 64x32"))
    wide = ("loop i: parallel", "loop j: parallel", "loop j: unroll 8, jam", "codelet: grid blocksize 32x32")
    text = COLUMNS.replace(
        "int i = 0; i < n; i++) for (int j = 0; j < m; j++)", "int j = 0; j < m; j++) for (int i = 0; i < n; i++)"
    )
    with pytest.raises(ResourceError, match="needs 65536 bytes of shared memory per block, the limit is 49152"):
        NumbaCuda().build(planned(text, *wide))
