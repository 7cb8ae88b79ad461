"""Parallel loops that reduce: on the CPU and in the CUDA simulator they give what the loops in their order give."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import oracle
import pytest

from looptune.analysis import Analysis
from looptune.backends.numba_cpu import NumbaCpu
from looptune.bake import bake
from looptune.errors import LooptuneError, ResourceError
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.ir import Codelet, Loop, Node, Scalar
from looptune.mapped import prove_plan
from looptune.mapping import plan
from looptune.outline import outline
from looptune.plans import Plan
from looptune.poly.proof import prove
from looptune.rewrite import rewrite, walk
from looptune.schedule import Scheduled, schedule

ROOT = Path(__file__).parent.parent
simulator = pytest.mark.skipif(not oracle.CUDA, reason="needs the package numba-cuda")


@dataclass(frozen=True)
class Case:
    """A codelet, directives, sizes to run it with; ``runs`` is how a GPU would, without the numbers."""

    text: str
    lines: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    runs: tuple[str, ...]


def sized(*counts: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(zip(("n", "m", "l"), c, strict=False)) for c in counts)


ROWS = """
void f(int n, int m, float A[n][m], float x[m], float y[n])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }
"""
COLUMNS = """
void f(int n, int m, double A[n][m], double r[n], double s[m])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s[j] -= r[i] * A[i][j]; }
"""
NORM = """
void f(int n, float x[n], float out[2]) {
  float s = out[0];
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  out[0] = s; out[1] = sqrt(s);
}
"""
KINDS = """
void f(int n, double x[n], float z[n], int d[n], unsigned char b[n],
       double o[4], float p[3], int q[4], unsigned char c[1]) {
  for (int i = 1; i < n; i += 2) {
    o[0] *= 1 + x[i] / 8;
    o[1] = x[i] < o[1] ? x[i] : o[1];
    o[2] = fmax(o[2], x[i]);
    if (x[i] > o[3]) o[3] = x[i];
    p[0] = z[i] + p[0];
    p[1] = fminf(p[1], z[i]);
    p[2] = p[2] < z[i] ? z[i] : p[2];
    q[0] += d[i];
    q[1] = d[i] < q[1] ? d[i] : q[1];
    if (q[2] < d[i]) q[2] = d[i];
    q[3] *= d[i];
    c[0] += b[i];
  }
}
"""
ALL = """
void f(int n, int m, double A[n][m], double out[1])
{ for (int i = 0; i < n; i++) for (int j = i; j < m; j++) out[0] += A[i][j]; }
"""
MATRIX = """
void f(int n, int m, int l, double C[n][m], double A[n][l], double B[l][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
}
"""
TRIANGLE = """
void f(int n, double L[n][n], double x[n], double y[n])
{ for (int i = 1; i < n; i++) for (int j = 0; j < i; j++) y[i] += L[i][j] * x[j]; }
"""
TWO = """
void f(int n, int m, float A[n][m], float y[n], float lo[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      float t = A[i][j] * 2;
      y[i] += t;
      if (t < lo[i]) lo[i] = t;
    }
}
"""
LONE_BLOCKS = ("codelet: grid blocksize 8x2",)
PERFECT = {
    "rows": Case(ROWS, ("loop j: parallel, reduce(+:y)", "codelet: grid blocksize 4x2"),
                 sized((3, 2), (5, 4), (4, 9), (1, 0), (0, 3)), ("grid i, reduction j 4x2",)),
    "rows, sum on y": Case(ROWS, ("nest i: gridify(j, i), blocksize 4x8",), sized((5, 11)),
                           ("grid i, reduction j 4x8",)),
    "rows, six lanes": Case(ROWS, ("loop j: parallel", "codelet: grid blocksize 6x3"), sized((4, 5), (3, 20)),
                            ("grid i, reduction j 6x3",)),
    "rows, one lane": Case(ROWS, ("loop j: parallel", "codelet: grid blocksize 1x4"), sized((5, 3)),
                           ("grid i, reduction j 1x4",)),
    "columns": Case(COLUMNS, ("loop i: parallel, reduce(+:s)", "loop j: parallel", "codelet: grid blocksize 4x3"),
                    sized((2, 3), (7, 6), (0, 5), (9, 4)), ("grid j, reduction i 4x3",)),
    "columns, sum on x": Case(COLUMNS, ("nest i: gridify(j, i), blocksize 4x2",), sized((7, 3)),
                              ("grid j, reduction i 4x2",)),
    "columns, host": Case(COLUMNS, ("nest i: permute j, i", "loop i: parallel", "loop j: noParallel", *LONE_BLOCKS),
                          sized((5, 2)), ("host j", "  reduction i 16")),
    "norm": Case(NORM, ("loop i: parallel, reduce(+:s)", *LONE_BLOCKS), sized((1,), (16,), (37,)),
                 ("one thread", "reduction i 16", "one thread")),
    "kinds": Case(KINDS, ("loop i: parallel, reduce(*:o, min:o, max:o, +:p, min:p, max:p, +:q, min:q, max:q, *:q, +:c)",
                          "codelet: grid blocksize 5x1"), sized((1,), (12,), (31,)), ("reduction i 5",)),
    "all": Case(ALL, ("loop i: parallel", "loop j: parallel", "codelet: grid blocksize 4x2"), sized((3, 2), (5, 7)),
                ("reduction i, j 4x2",)),
    "all, rows in a thread": Case(ALL, ("loop i: parallel", *LONE_BLOCKS), sized((3, 5)),
                                  ("reduction i 16, in the thread j",)),
    "matrix": Case(MATRIX, ("nest i: gridify(i, k), blocksize 4x2",), sized((3, 2, 5)),
                   ("grid i, reduction k 4x2, in the thread j",)),
    "matrix, k outside": Case(MATRIX, ("nest i: permute i, k, j", "nest i: gridify(k, j), blocksize 4x2"),
                              sized((2, 5, 7)), ("host i", "  grid j, reduction k 4x2")),
    "triangle": Case(TRIANGLE, ("loop j: parallel", "codelet: grid blocksize 4x2"), sized((7,)),
                     ("grid i, reduction j 4x2",)),
    "two": Case(TWO, ("loop j: parallel, reduce(+:y, min:lo), private(t)", "codelet: grid blocksize 4x2"),
                sized((3, 6)), ("grid i, reduction j 4x2",)),
    "unrolled": Case(ROWS, ("loop j: parallel", "loop j: unroll 3, split", "codelet: grid blocksize 4x2"),
                     sized((3, 14)), ("grid i, reduction j, j 4x2",)),
    "guarded": Case(ROWS, ("loop j: parallel", "loop j: unroll 2, guarded", "codelet: grid blocksize 4x2"),
                    sized((3, 13)), ("grid i, reduction j 4x2",)),
    "tiled": Case(ROWS, ("loop j: parallel", "loop j: tile j:3", "codelet: grid blocksize 4x2"), sized((3, 14)),
                  ("grid i, reduction outer_j 4x2, in the thread j",)),
    "rows tiled": Case(ROWS, ("loop j: parallel", "loop i: tile i:3", "codelet: grid blocksize 4x2"), sized((7, 6)),
                       ("grid outer_i, reduction j 4x2, in the thread i",)),
    "jammed": Case(ROWS, ("loop j: parallel", "loop i: unroll 2, jam", "codelet: grid blocksize 4x2"), sized((7, 6)),
                   ("grid i, reduction j 4x2", "grid i, reduction j 4x2")),
    "jammed under a guard": Case(ROWS, ("loop j: parallel", "loop i: unroll 2, guarded, jam",
                                        "codelet: grid blocksize 4x2"), sized((7, 6)), ("grid i, reduction j 4x2",)),
    "default block": Case(ROWS, ("loop j: parallel",), sized((9, 70)), ("grid i, reduction j 32x8",)),
}  # fmt: skip

MEAN = """
void f(int n, int m, double mean[m], double data[n][m]) {
  for (int j = 0; j < m; j++) {
    mean[j] = 0;
    for (int i = 0; i < n; i++) mean[j] += data[i][j];
    mean[j] /= n;
    for (int k = 0; k < n; k++) data[k][j] -= mean[j];
  }
}
"""
STEP = """
void f(int n, int m, int k, double R[n][n], double Q[m][n], double A[m][n]) {
  for (int j = k + 1; j < n; j++) {
    R[k][j] = 0;
    for (int i = 0; i < m; i++) R[k][j] += Q[i][k] * A[i][j];
    for (int i = 0; i < m; i++) A[i][j] -= Q[i][k] * R[k][j];
  }
}
"""
SOFTMAX = """
void f(int n, int m, double A[n][m]) {
  for (int i = 0; i < n; i++) {
    double most = A[i][0], sum = 0, scale;
    for (int j = 1; j < m; j++) most = A[i][j] > most ? A[i][j] : most;
    for (int j = 0; j < m; j++) { A[i][j] = exp(A[i][j] - most); sum += A[i][j]; }
    scale = 1 / sum;
    for (int j = 0; j < m; j++) A[i][j] *= scale;
  }
}
"""
ROUNDS = """
void f(int n, int m, int l, double A[n][m], double y[n]) {
  for (int i = 0; i < n; i++) {
    double d = 1;
    for (int t = 0; t < l + i; t++) {
      double s = 0;
      for (int j = 0; j < m; j++) s += A[i][j] * d;
      d = s > 4 || s < -4 ? 1 : s;
      for (int j = 0; j < m; j++) A[i][j] = A[i][j] / 2 + d;
    }
    y[i] = d;
  }
}
"""
CHOSEN = """
void f(int n, int m, double A[n][m], double y[n]) {
  for (int i = 0; i < n; i++) {
    double t = y[i];
    if (A[i][0] > 0) {
      y[i] = 1;
      for (int j = 0; j < m; j++) t += A[i][j];
      A[i][0] = t;
    } else {
      for (int j = 0; j < m; j++) y[i] += A[i][j];
    }
    if (i % 2) for (int j = 0; j < m; j++) A[i][j] *= t;
  }
}
"""
PAIRS = """
void f(int n, int m, double data[n][m], double S[m][m]) {
  for (int p = 0; p < m - 1; p++) {
    S[p][p] = 1;
    for (int q = p + 1; q < m; q++) {
      S[p][q] = 0;
      for (int i = 0; i < n; i++) S[p][q] += data[i][p] * data[i][q];
      S[q][p] = S[p][q];
    }
  }
}
"""
BOTH = """
void f(int n, int m, double A[n][m], double p[m], double r[n], double q[n], double s[m]) {
  for (int i = 0; i < n; i++) {
    q[i] = 0;
    for (int j = 0; j < m; j++) { s[j] += r[i] * A[i][j]; q[i] += A[i][j] * p[j]; }
  }
}
"""
IMPERFECT = {
    "mean": Case(MEAN, ("loop i: parallel", "codelet: grid blocksize 4x2"), sized((9, 3), (2, 4), (0, 3)),
                 ("grid j, reduction i, shared k 4x2",)),
    "mean, columns on x": Case(MEAN, ("nest j: gridify(i, j), blocksize 2x5", "loop k: parallel"), sized((9, 3)),
                               ("grid j, reduction i, shared k 2x5",)),
    "step": Case(STEP, ("nest j: gridify(i, j), blocksize 4x3",), ({"n": 6, "m": 5, "k": 1}, {"n": 3, "m": 7, "k": 2}),
                 ("grid j, reduction i, shared i 4x3",)),
    "softmax": Case(SOFTMAX, ("loop 2: parallel, reduce(max:most)", "loop 3: parallel, reduce(+:sum)",
                              "codelet: grid blocksize 4x2"), sized((3, 6), (1, 1)),
                    ("grid i, reduction j, j, shared j 4x2",)),
    "rounds": Case(ROUNDS, ("loop 3: parallel, reduce(+:s)", "codelet: grid blocksize 3x2"),
                   sized((3, 4, 2), (4, 2, 0)), ("grid i, reduction j, shared j 3x2, in the thread t",)),
    "chosen": Case(CHOSEN, ("loop 2: parallel", "loop 3: parallel", "codelet: grid blocksize 4x2"), sized((5, 6)),
                   ("grid i, reduction j, j, shared j 4x2",)),
    "pairs": Case(PAIRS, ("loop i: parallel", "codelet: grid blocksize 4x2"), sized((5, 4)),
                  ("grid p, reduction i 4x2, in the thread q",)),
    "pairs, a launch a row": Case(PAIRS, ("loop p: noParallel", "loop i: parallel", "codelet: grid blocksize 4x2"),
                                  sized((5, 4)), ("host p", "  one thread", "  grid q, reduction i 4x2")),
    "both": Case(BOTH, ("loop j: parallel, reduce(+:q)", "loop i: noParallel", *LONE_BLOCKS), sized((3, 5)),
                 ("host i", "  one thread", "  reduction j 16")),
}  # fmt: skip
SCALED = """
void f(int n, int m, int l, double C[n][m], double A[n][l], double B[l][m], double D[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= 3;
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
      C[i][j] = C[i][j] - D[i];
    }
}
"""
PRODUCTS = """
void f(int n, int m, double A[n][m], double S[m][m]) {
  for (int p = 0; p < m; p++)
    for (int q = p; q < m; q++) {
      S[p][q] = 0;
      for (int i = 0; i < n; i++) S[p][q] += A[i][p] * A[i][q];
    }
}
"""
STEPS = """
void f(int n, int m, double A[n][m], double R[m][m]) {
  for (int k = 0; k < m; k++) {
    for (int j = k + 1; j < m; j++)
      for (int i = 0; i < n; i++) R[k][j] += A[i][k] * A[i][j];
    for (int i = 0; i < n; i++) A[i][k] = R[k][k] - A[i][k];
  }
}
"""
SMALL = "codelet: grid blocksize 4x2"
DEALT = {
    "parts of rows": Case(
        ROWS,
        ("loop j: split 3", SMALL),
        sized((3, 2), (5, 9), (1, 0), (0, 3)),
        ("grid i, parts j_part 8, in the thread j", "grid i 8, in the thread j_part"),
    ),
    "parts of rows, by teams": Case(
        ROWS,
        ("nest i: split j:3", "loop j: parallel", SMALL),
        sized((3, 2), (5, 25)),
        ("grid i, reduction j, parts j_part 4x2", "grid i 8, in the thread j_part"),
    ),
    "parts of columns": Case(
        COLUMNS,
        ("nest i: permute j, i", "loop i: split 4", SMALL),
        sized((2, 3), (9, 7)),
        ("grid j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "parts of a norm": Case(
        NORM,
        ("loop i: split 4", "loop i: parallel", *LONE_BLOCKS),
        sized((1,), (37,), (0,)),
        ("one thread", "reduction i, parts i_part 16", "one thread, in the thread i_part"),
    ),
    "parts of every kind": Case(
        KINDS,
        ("loop i: split 3", "loop i: parallel", SMALL),
        sized((2,), (12,)),
        ("reduction i, parts i_part 8", "one thread, in the thread " + ", ".join(12 * ["i_part"])),
    ),
    "parts, unrolled": Case(
        MATRIX,
        ("loop k: split k:2", "loop k: unroll 2", "loop i: unroll 2, jam", SMALL),
        sized((3, 4, 5), (4, 2, 12)),
        (
            "grid i, j, parts k_part 4x2, in the thread k, k",
            "grid i, j 4x2, in the thread k_part, k_part",
            "grid i, j, parts k_part1 4x2, in the thread k, k",
            "grid i, j 4x2, in the thread k_part1",
        ),
    ),
    "parts, tiled": Case(
        MATRIX,
        ("loop k: split k:2", "loop k: tile 3", "loop j: tile 2", SMALL),
        sized((3, 5, 11)),
        (
            "grid i, outer_j, parts outer_k_part 4x2, in the thread j, outer_k, k",
            "grid i, outer_j 4x2, in the thread j, outer_k_part",
        ),
    ),
    "parts between statements": Case(
        SCALED,
        ("loop k: split k:3", SMALL),
        sized((3, 4, 5), (2, 2, 0)),
        ("grid i, j, parts k_part 4x2, in the thread k", "grid i, j 4x2, in the thread k_part"),
    ),
    "parts of copies, one column left over": Case(
        SCALED,
        ("loop j: unroll 2, split, jam", "loop k: split 3", SMALL),
        sized((3, 5, 5), (2, 4, 3)),
        (
            "grid i, j, parts k_part 4x2, in the thread k",
            "grid i, j 4x2, in the thread k_part, k_part",
            "grid i, j, parts k_part1 4x2, in the thread k",
            "grid i, j 4x2, in the thread k_part1",
        ),
    ),
    "parts, a launch a row": Case(
        SCALED,
        ("loop i: noParallel", "loop k: split k:3", SMALL),
        sized((3, 4, 5)),
        ("host i", "  grid j, parts k_part 8, in the thread k", "  grid j 8, in the thread k_part"),
    ),
    "parts of two": Case(
        TWO,
        ("loop j: split 2", SMALL),
        sized((3, 5)),
        ("grid i, parts j_part 8, in the thread j", "grid i 8, in the thread j_part, j_part"),
    ),
    "parts of products": Case(
        PRODUCTS,
        ("loop i: split 3", SMALL),
        sized((8, 5)),
        ("grid p, parts i_part 8, in the thread q, i", "grid p 8, in the thread q, i_part"),
    ),
    "parts of a triangle": Case(
        TRIANGLE,
        ("loop j: split 2", SMALL),
        sized((9,)),
        ("grid i, parts j_part 8, in the thread j", "grid i 8, in the thread j_part"),
    ),
    "parts, step by step": Case(
        STEPS,
        ("loop 3: split 2", SMALL),
        sized((7, 4)),
        ("host k", "  grid j, parts i_part 8, in the thread i", "  grid j 8, in the thread i_part", "  grid i 8"),
    ),
}
CASES = PERFECT | IMPERFECT | DEALT

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


@functools.cache
def analysis(text: str, reassociate: bool = True) -> Analysis:
    return Analysis(load(text).codelet, reassociate)


def scheduled(text: str, *lines: str, reassociate: bool = True) -> Scheduled:
    return schedule(analysis(text, reassociate), parse_lines(lines))


def planned(text: str, *lines: str) -> Plan:
    return plan(scheduled(text, *lines).codelet)


def given(codelet: Codelet, sizes: Mapping[str, int], seed: int) -> oracle.Arguments:
    return oracle.arguments(codelet, sizes, seed)


def drawn(done: Plan) -> tuple[str, ...]:
    """The outline as in ``Case.runs``."""
    lines = [line.replace(": blocks of", "").replace(" threads", "").replace(" x ", "x") for line in outline(done)[:-1]]
    return tuple(lines)


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
    threads = any(isinstance(n, Loop) and n.reduces and n.mode == "parallel" for n in walk(done.codelet.body))
    assert not threads or prove(original, forgetful(done.codelet)).verdict != "proved"
    assert prove(original, done.codelet, reassociate=False).verdict != "proved"


@each
def test_the_plan_is_proved(case: Case) -> None:
    """So is what is launched: blocks, lanes, phases and guards; not under --strict-float, where the sums are kept.

    How much of a loop each of several parts is depends on the sizes by more than an affine expression: at the sizes.
    """
    original, tree = analysis(case.text).codelet, scheduled(case.text, *case.lines).codelet
    for sizes in case.sizes if "split" in str(case.lines) else ({},):
        for blocks in (True, False):
            done = plan(bake(tree, sizes), blocks=blocks)
            proof = prove_plan(original, done, sizes, blocks=blocks)
            assert proof.verdict == "proved", proof.reason
            empty = 0 in sizes.values()
            assert empty or prove_plan(original, done, sizes, blocks=blocks, reassociate=False).verdict != "proved"


def forgetful(codelet: Codelet) -> Codelet:
    def rule(n: Node) -> Node | None:
        return replace(n, reduces=()) if isinstance(n, Loop) else None

    return rewrite(rule, codelet)


@each
def test_cpu(case: Case, tmp_path: Path) -> None:
    """On the CPU the arrays are those of the loops in their order, whatever the number of trips."""
    done = planned(case.text, *case.lines)
    backend = NumbaCpu(tmp_path)
    program = backend.load(backend.build(done))
    for seed, sizes in enumerate(case.sizes):
        start = given(analysis(case.text).codelet, sizes, seed)
        want, got = oracle.interpreted(analysis(case.text).codelet, start), oracle.copied(start)
        program.run(oracle.arrays(got), oracle.scalars(got))
        assert oracle.off(want, oracle.arrays(got), 1e-12) is None, sizes


@simulator
def test_cuda(tmp_path: Path) -> None:
    """In the CUDA simulator too, for blocks that are no power of two as well, and so for PolyBench's kernels."""
    from looptune.backends.numba_cuda import NumbaCuda

    programs, wants = [], {}
    for name, lines in KERNELS.items():
        codelet = load(ROOT / "polybench" / f"{name}.c", dtype="float64").codelet
        sizes = {p.name: 3 + k for k, p in enumerate(p for p in codelet.params if isinstance(p, Scalar))}
        start = given(codelet, {**sizes, "eps": 0.1, "alpha": 2, "beta": 3}, 1)
        done = schedule(Analysis(codelet), parse_lines((*lines, "codelet: grid blocksize 4x3")))
        assert prove(codelet, done.codelet).verdict == "proved"
        wants[name] = oracle.interpreted(codelet, start)
        programs.append(oracle.Emitted(name, NumbaCuda().emit(plan(done.codelet, blocks=True)), codelet.name, start))
    for name, case in CASES.items():
        tree = scheduled(case.text, *case.lines).codelet
        texts = {NumbaCuda().emit(plan(tree, blocks=blocks)): blocks for blocks in (False, True)}
        for seed, sizes, (source, blocks) in ((k, s, t) for k, s in enumerate(case.sizes) for t in texts.items()):
            start = given(analysis(case.text).codelet, sizes, seed)
            key = f"{name} {sizes}{' gathered' if blocks else ''}"
            wants[key] = oracle.interpreted(analysis(case.text).codelet, start)
            programs.append(oracle.Emitted(key, source, "f", start))
    found = oracle.simulated(programs, tmp_path)
    wrong = {}
    for key, want in wants.items():
        got = found[key]
        error = got if isinstance(got, str) else oracle.off(want, got, 1e-12)
        if error is not None:
            wrong[key] = error
    assert not wrong, "\n".join(f"{k}: {e}" for k, e in wrong.items())


REFUSED = {
    "under --strict-float": (ROWS, "loop j: parallel", "the reduction + of y[i], whose order --strict-float keeps"),
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
        "loop i: parallel", "carries the reduction + of s[i / 2], not one element for all of its iterations"),
    "an element the data chooses": (
        "void f(int n, int b[n], int s[9])\n{ for (int i = 0; i < n; i++) s[b[i]] += 1; }\n",
        "loop i: parallel", "the reduction + of s[b[i]], not one element for all of its iterations"),
    "another use in the iteration that reduces it": (
        "void f(int n, float x[n], float y[n], float s[n + 2])\n"
        "{ for (int i = 0; i < n; i++) { for (int j = i; j < i + 2; j++) s[j] += x[i]; if (i == 0) y[0] = s[0]; } }\n",
        "loop i: parallel", "loop i reduces s by + and uses it in another way as well"),
    "another op": (ROWS, "loop j: parallel, reduce(*:y)", "1:26: *:y is not what is reduced: loop j reduces +:y"),
    "another name": (ROWS, "loop j: parallel, reduce(+:x)", "1:26: +:x is not what is reduced: loop j reduces +:y"),
    "one of two": (TWO, "loop j: parallel, reduce(+:y)", "reduce lacks min:lo, which loop j reduces as well"),
    "none": (ROWS, "loop i: parallel, reduce(+:y)", "+:y is not what is reduced: loop i reduces nothing"),
    "parts of nothing": (ROWS, "loop i: split 2", "1:9: split 2: loop i reduces nothing"),
    "parts under --strict-float": (
        ROWS, "loop j: split 2", "the reduction + of y[i], whose order --strict-float keeps"),
    "parts of a local": (
        "void f(int n, float A[n][n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) { float t = 0; for (int j = 0; j < n; j++) t += A[i][j]; y[i] = t; } }\n",
        "loop j: split 2", "split 2 of loop j: it reduces the local t: accumulate in an element of an array"),
    "parts of what changes": (
        "void f(int n, float A[n][n], float x[n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) { x[i] *= 2; for (int j = 0; j < n; j++) y[i] += A[i][j] * x[i]; } }\n",
        "loop j: split 2", "x changes in the same iteration of the loops around it: distribute them"),
    "parts under a condition": (
        "void f(int n, float A[n][n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) if (i > 2) { for (int j = 0; j < n; j++) y[i] += A[i][j]; } }\n",
        "loop j: split 2", "does not stand directly in loops that are parallel"),
    "parts of many sums": (COLUMNS, "loop i: split 2", "split 2 of loop i: loop j inside of it tells its sums apart"),
    "strips of parts under a condition": (
        "void f(int n, float A[n][n], float y[n])\n"
        "{ for (int i = 0; i < n; i++) if (i > 2) { for (int j = 0; j < n; j++) y[i] += A[i][j]; } }\n",
        "loop j: split 2\nloop j: tile 4", "does not stand directly in loops that are parallel"),
    "no number of parts": (ROWS, "loop j: split", "split needs one number of parts (syntax: split [LOOP:]PARTS)"),
    "no parts": (ROWS, "loop j: split 0", "the number of parts must be at least 1, got 0"),
    "too many parts": (ROWS, "loop j: split 100000", "split into 100000 parts: at most 65535"),
    "gridify": (ROWS, "nest i: gridify(i, j), reduce(*:y)", "*:y is not what is reduced: loop i and loop j reduces"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_reduction_is_refused(text: str, line: str, message: str) -> None:
    """An order that counts, an element that changes or is used otherwise, and a clause that says another thing."""
    strict = "strict" in message
    with pytest.raises(LooptuneError) as refusal:
        scheduled(text, *line.splitlines(), reassociate=not strict)
    assert message in str(refusal.value)


def test_exact_reductions_are_free_under_strict_float() -> None:
    """Sums of integers and maxima that pass over a NaN give one value in any order."""
    text = "void f(int n, int d[n], float x[n], int s[1], float m[1])\n" \
           "{ for (int i = 0; i < n; i++) { s[0] += d[i]; m[0] = fmaxf(m[0], x[i]); } }\n"  # fmt: skip
    done = scheduled(text, "loop i: parallel", reassociate=False)
    assert prove(analysis(text).codelet, done.codelet, reassociate=False).verdict == "proved"


def test_trust_is_for_what_cannot_be_analysed_alone() -> None:
    """A sum beside an assignment that ``trust`` vouches for is reduced, not raced for."""
    text = "void f(int n, int p[n], float x[n], float y[n], float s[1])\n" \
           "{ for (int i = 0; i < n; i++) { s[0] += x[i]; y[p[i]] = x[i]; } }\n"  # fmt: skip
    done = scheduled(text, "loop i: parallel, trust, reduce(+:s)")
    assert done.asserted
    unknown = text.replace("s[0] +=", "s[p[i]] +=")
    (loop,) = (f for f in walk(scheduled(unknown, "loop i: parallel, trust").codelet.body) if isinstance(f, Loop))
    assert (loop.mode, loop.reduces) == ("parallel", ())
    assert drawn(plan(done.codelet)) == ("reduction i 256",)


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
    assert [len(plan(tree, blocks=b).kernels) for b in (False, True)] == [6, 2]
    assert len(plan(wider, blocks=True).kernels) == 3
    sizes = {"n": 9}
    for made in (tree, wider):
        gathered = plan(bake(made, sizes), blocks=True)
        assert prove_plan(analysis(text).codelet, gathered, sizes).verdict == "proved"


def test_without_a_directive_sums_keep_their_order() -> None:
    """As in HMPP: only ``parallel`` or ``gridify`` makes a loop that carries a reduction parallel."""
    assert drawn(planned(NORM)) == ("one thread, in the thread i",)


@simulator
def test_kernels_compile_without_local_memory() -> None:
    """Every such kernel becomes machine code with its accumulators in registers."""
    from looptune.backends.numba_cuda import NumbaCuda

    for name in ("rows, six lanes", "columns", "kinds", "all", "softmax", "rounds", "chosen"):
        for used in NumbaCuda().build(planned(CASES[name].text, *CASES[name].lines)).resources:
            assert used.local_bytes == 0, name
            assert used.shared_bytes > 0, name


@simulator
def test_a_block_s_limits_are_errors_with_both_numbers() -> None:
    """Threads and shared memory beyond what a block may have."""
    from looptune.backends.numba_cuda import NumbaCuda

    with pytest.raises(ResourceError, match="needs 2048 threads per block, the limit is 1024"):
        NumbaCuda().build(planned(NORM, "loop i: parallel", "codelet: grid blocksize 64x32"))
    wide = ("loop i: parallel", "loop j: parallel", "loop j: unroll 8, jam", "codelet: grid blocksize 32x32")
    text = COLUMNS.replace(
        "int i = 0; i < n; i++) for (int j = 0; j < m; j++)", "int j = 0; j < m; j++) for (int i = 0; i < n; i++)"
    )
    with pytest.raises(ResourceError, match="needs 65536 bytes of shared memory per block, the limit is 49152"):
        NumbaCuda().build(planned(text, *wide))
