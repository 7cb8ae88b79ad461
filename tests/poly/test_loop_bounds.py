"""Nests whose bounds depend on each other: permuted, blocked and jammed exactly, for all sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from looptune.core.errors import DirectiveError, IllegalTransform, LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer, interpreter
from looptune.ir.nodes import Codelet, Const, Loop, Stmt
from looptune.ir.rewrite import map_blocks, walk
from looptune.ir.simplify import add, sub
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, random_nests

SIZES = ((5, 4), (4, 6), (1, 1), (0, 3), (2, 5), (7, 8))

NESTS = {
    "upper": "for (int i = 0; i < n; i++) for (int j = i; j < n; j++) A[i][j] += i + 2 * j;",
    "lower": "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) A[i][j] += i + 2 * j;",
    "three": "for (int i = 0; i < n; i++) for (int j = i + 1; j < n; j++) for (int k = i; k < j; k++) "
             "A[i][j] += B[j][k];",
    "trapezoid": "for (int i = 0; i < n; i++) for (int j = i; j < i + m; j++) A[i][j] += j;",
    "steep": "for (int i = 0; i < n; i++) for (int j = 2 * i; j < m; j++) A[i][j] += j;",
    "flat": "for (int i = 0; i < n; i++) for (int j = 0; j < i / 2; j++) A[i][j] += j;",
    "negative": "for (int i = 0; i < n; i++) for (int j = -i; j < i - 2; j++) A[i][j + 8] += j;",
    "quarter": "for (int i = -5; i < n; i++) for (int j = -9; j < i / 3; j++) A[i + 6][j + 10] += j;",
    "two bounds": "for (int i = 0; i < n; i++) for (int j = 0; j < (i < m ? i : m); j++) A[i][j] += j;",
    "no convex": "for (int i = 0; i < n; i++) for (int j = 0; j < (i > m ? i : m); j++) A[i][j] += j;",
    "strides": "for (int i = 1; i < n; i += 2) for (int j = i; j < n; j += 3) A[i][j] += j;",
    "downward": "for (int i = n - 1; i >= 0; i--) for (int j = i; j > 0; j -= 2) A[i][j] += j;",
    "unsigned": "for (unsigned i = 0; i < n; i++) for (unsigned j = 0; j < n - i; j++) A[i][j] += j;",
    "wide": "for (long i = 0; i < n; i++) for (int j = i; j < n; j++) A[i][j] += j;",
    "in a loop": "for (int k = 0; k < n; k++) for (int i = k; i < n; i++) for (int j = k; j < i; j++) A[i][j] += k;",
    "sunk": "for (int i = 0; i < n; i++) { x[i] = 1; for (int j = 0; j <= i; j++) x[i] += A[i][j]; x[i] *= 2; }",
    "sunk in none": "for (int i = 0; i < n; i++) { x[i] = 1; for (int j = 0; j < i; j++) x[i] += A[i][j]; x[i] *= 2; }",
    "sunk twice": "for (int i = 0; i < n; i++) { x[i] = 1; for (int j = i; j < m; j++) { y[j] += 1; "
                  "for (int k = 0; k < j; k++) A[i][j] += k; } }",
    "rectangle in none": "for (int i = 0; i < n; i++) { x[i] = 1; for (int j = 0; j < m; j++) A[i][j] += x[i]; }",
    "guarded": "for (int i = 0; i < n; i++) { if (i > 2) { "
               "for (int j = 0; j < i; j++) A[i][j] += j; } else x[i] = 1; }",
    "steps apart": "for (int i = 0; i < n; i++) for (int j = i; j < m; j += 2) A[i][j] += j;",
    "steps alike": "for (int i = 0; i < n; i++) for (int j = 2 * i; j < m + i; j += 2) A[i][j] += j;",
}  # fmt: skip
PERMUTED = [name for name in NESTS if name not in ("guarded", "in a loop")]
THREE = ("three", "sunk twice")
LINES = {
    "order": [("three", "permute j, k, i")],
    "permute": [(n, "permute " + ("k, j, i" if n in THREE else "j, i")) for n in PERMUTED],
    "tile": [(n, "tile i:3, j:2" + (", k:2" if n in THREE else "")) for n in PERMUTED],
    "jam": [(n, f"unroll {u}, jam") for n in NESTS if n != "unsigned" for u in ("2", "3, guarded", "2, split")],
}  # fmt: skip


def codelet(body: str) -> Codelet:
    size = f"[{random_nests.SIZE}]"
    arrays = ", ".join(f"double {a}{size * (2 if a in 'AB' else 1)}" for a in "ABxyz")
    return load(f"void f(int n, int m, {arrays})\n{{\n{body}\n}}\n").codelet


@pytest.mark.sampled(2)
@pytest.mark.sampled(5, "wide")
@pytest.mark.parametrize(("name", "line"), [case for kind in LINES.values() for case in kind])
def test_a_nest_with_dependent_bounds_keeps_its_meaning(name: str, line: str) -> None:
    """Accepted, since any order is legal there: same bits, each instance once, proved for all sizes; or, where the
    bounds take isl too long, refused for that."""
    before = codelet(NESTS[name])
    number = 2 if name == "in a loop" else 1
    if (name, line.split()[0]) == ("no convex", "tile"):
        with pytest.raises(DirectiveError, match="too complex to analyse: isl gave up"):
            schedule(Analysis(before), parse_lines([f"loop {number}: {line}"]))
        return
    after = schedule(Analysis(before), parse_lines([f"loop {number}: {line}"])).codelet
    for n, m in SIZES:
        (want, ran), (got, runs) = random_nests.outcome(before, n, m), random_nests.outcome(after, n, m)
        assert cross_check.off(want, got) is None, f"n={n} m={m}"
        assert Counter(ran) == Counter(runs), f"n={n} m={m}"
    assert prove(before, after).verdict == "proved"


def test_no_block_is_before_the_first() -> None:
    """Where isl draws the blocks of a nest wider than they are, none has iterations that the loop has not."""
    before = load("""void f(unsigned char n, double C[4]) {
      for (short k = 0; k < n; k++) {
        for (int i = (n >> 1) - 1; i >= k % 3; i -= 3) C[1] += 1;
        for (int j = 0; j < n; j++) C[2] += 1;
      }
    }""").codelet
    after = schedule(Analysis(before), parse_lines(["loop k: tile k:2, i:8"])).codelet
    for n in range(9):
        want, got = {"C": np.zeros(4)}, {"C": np.zeros(4)}
        interpreter.run(before, want, {"n": n})
        interpreter.run(after, got, {"n": n})
        assert cross_check.off(want, got) is None, f"n={n}"


@pytest.mark.parametrize(
    ("name", "headers"),
    [("upper", ["j = 0; j < n", "i = 0; i < j + 1"]),
     ("three", ["k = 0; k < n - 1", "j = k + 1; j < n", "i = 0; i < k + 1"]),
     ("steep", ["j = 0; j < m", "i = 0; i < ((j + 2) / 2 < n ? (j + 2) / 2 : n)"]),
     ("trapezoid", ["j = 0; j < m + n - 1", "i = (j - m + 1 > 0 ? j - m + 1 : 0); i < (j + 1 < n ? j + 1 : n)"]),
     ("strides", ["j = 1; j < n", "i = 1 + (j - 1) % 3; i < j + 1; i += 3"])],
)  # fmt: skip
def test_bounds_are_tight(name: str, headers: list[str]) -> None:
    """No trip of the outer loops is for nothing, and no ``if`` asks what a bound can say."""
    line = dict(LINES["permute"])[name] if name != "three" else "permute k, j, i"
    text = c_printer.body(schedule(Analysis(codelet(NESTS[name])), parse_lines([f"loop 1: {line}"])).codelet)
    for header in headers:
        assert f"for (int {header}" in text, text
    assert text.count("if (") == (name == "strides"), text


def test_empty_blocks_are_skipped_by_the_bounds() -> None:
    """Of a lower triangle the blocks above the diagonal are not visited."""
    text = c_printer.body(schedule(Analysis(codelet(NESTS["lower"])), parse_lines(["loop i: tile i:4, j:4"])).codelet)
    assert "outer_j = 0; outer_j < outer_i + 1;" in text


def test_what_all_copies_do_is_jammed_without_conditions() -> None:
    """Of a lower triangle two rows share their columns up to the shorter one's end; the rest asks whose it is."""
    text = c_printer.body(schedule(Analysis(codelet(NESTS["lower"])), parse_lines(["loop i: unroll 2, jam"])).codelet)
    common, rest = text.split("for (int j = ")[1:3]
    assert common.startswith("0; j < 2 * i + 1;")
    assert "if" not in common
    assert common.count("A[") == 2
    assert rest.count("if (j < 2 * i + 1)") == 1


WAVE = "for (int i = 1; i < n; i++) for (int j = i; j < m; j++) A[i][j] = A[i - 1][j + 1];"
REFUSED = {
    "permute j, i": (WAVE, "must run before"),
    "tile i:2, j:2": (WAVE, "must run before"),
    "unroll 2, jam": (WAVE, "must run before"),
    "permute j,i": ("for (int i = 0; i < n; i++) for (int j = 0; j < i * i; j++) A[i][0] += 1;", "cannot be analysed"),
    "tile i:2, j:3": ("for (int i = 0; i < n; i++) for (int j = 0; j < i * m; j++) x[i] += j;", "cannot be analysed"),
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_the_one_rule_holds_for_them_too(line: str) -> None:
    """A dependence the new order reverses, and bounds nothing is known of, are refused."""
    body, reason = REFUSED[line]
    with pytest.raises(LooptuneError, match=reason) as refused:
        schedule(Analysis(codelet(body)), parse_lines([f"loop i: {line}"]))
    assert isinstance(refused.value, IllegalTransform) == (reason == "must run before")


@pytest.mark.parametrize("line", ["permute j, i", "tile i:3, j:2", "unroll 2, jam"])
def test_a_bound_off_by_one_is_caught(line: str) -> None:
    """A loop that is one iteration short at either end leaves iterations out: proof says so."""
    before = codelet(NESTS["lower"])
    after = schedule(Analysis(before), parse_lines([f"loop i: {line}"])).codelet
    loops = [f for f in walk(after.body) if isinstance(f, Loop)]
    for k in range(len(loops)):
        for bound in ("lo", "hi"):
            found = prove(before, replace(after, body=_moved(after.body, loops[k], bound))).verdict
            assert found == "failed", f"loop {k} {loops[k].var}, {bound}"


def _moved(body: tuple[Stmt, ...], loop: Loop, bound: str) -> tuple[Stmt, ...]:
    """``loop`` one iteration shorter at that end."""
    shorter = replace(loop, lo=add(loop.lo, Const(1))) if bound == "lo" else replace(loop, hi=sub(loop.hi, Const(1)))
    return tuple(shorter if s is loop else map_blocks(lambda b: _moved(b, loop, bound), s) for s in body)


MIXED = """void f(int n, long m, short x[24][32])
{
  for (int i = 0; i < n; i++)
    for (long q = m; q < i + 1; q += 2)
      x[i][q] += 1;
}
"""


@pytest.mark.parametrize("line", ["loop q: box", "loop i: unroll 3, jam", "loop i: tile i:4, q:2"])
def test_bounds_have_the_type_that_their_loop_counts_in(line: str) -> None:
    """Bounds made of those of a loop around are converted where that changes no value."""
    before = load(MIXED).codelet
    after = schedule(Analysis(before), parse_lines([line])).codelet
    for n, m in ((7, 0), (5, 2), (0, 0), (1, 1)):
        left = []
        for codelet in (before, after):
            x = np.zeros((24, 32), np.int16)
            interpreter.run(codelet, {"x": x}, {"n": n, "m": m})
            left.append(x)
        assert (left[0] == left[1]).all()


NARROW = """void f(long m, short x[24][32])
{
  for (long q = 0; q < m; q++)
    for (int i = 0; i < q; i++)
      x[i][q] += 1;
}
"""


def test_a_bound_that_is_cut_to_fewer_bits_has_no_hull() -> None:
    """An int that counts to a long: nobody knows how far it goes, as the conversion may change the value."""
    with pytest.raises(DirectiveError, match="how far loop i goes in all iterations of the loops around is not known"):
        schedule(Analysis(load(NARROW).codelet), parse_lines(["loop i: box"]))
