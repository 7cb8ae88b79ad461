"""Parts of a loop that accumulates into different elements of an array, as in a histogram, have copies of the array."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Codelet, Const, Load, Node
from looptune.ir.rewrite import rewrite
from looptune.lower.passes.split_reduction import expand_split_reductions
from looptune.lower.pipeline import lower
from looptune.lower.plan import with_kernels
from looptune.lower.plan_check import prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.all_targets import Case, wrong
from tests.helpers.mutants import mutants

HEAD = """void f(int n, unsigned char x[n], float w[n], int h[8], unsigned char c[8], short s[3][2], float v[8],
  long t[2], unsigned u[8], double d[8], _Bool b[8]) {"""
LOOP = "for (int i = 0; i < n; i++)"
BODIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "counts": (f"{LOOP} h[x[i] & 7]++;", ("loop i: rfactor 3",)),
    "narrow, wrapping": (f"{LOOP} {{ c[x[i] % 5] += 201; s[x[i] % 3][i % 2] -= 30000; u[x[i] & 7] *= x[i]; }}",
                         ("loop i: rfactor 20",)),
    "weights under a condition": (f"{LOOP} if (w[i] > 0) v[x[i] & 7] += w[i];", ("loop i: rfactor 4",)),
    "products": (f"{LOOP} u[x[i] & 7] *= x[i] | 1;", ("loop i: rfactor 3",)),
    "extremes": (f"{LOOP} {{ if (x[i] > h[i & 7]) h[i & 7] = x[i]; v[x[i] & 3] = fminf(v[x[i] & 3], w[i]); "
                 "d[x[i] % 7] = w[i] < d[x[i] % 7] ? w[i] : d[x[i] % 7]; }", ("loop i: rfactor 17",)),
    "bits": (f"{LOOP} {{ c[x[i] & 7] ^= x[i]; u[x[i] & 7] &= ~(unsigned)i; b[i & 7] |= x[i] > 7; }}",
             ("loop i: rfactor 16",)),
    "a scalar and an element beside it": (
        f"int a = t[0]; {LOOP} {{ int k = x[i] >> 1; a += k; h[k & 7] += k; h[2] -= i; t[1] += x[i]; }} t[0] = a;",
        ("loop i: rfactor 19",)),
    "loops inside": (f"{LOOP} for (int j = 0; j < 3; j++) {{ h[(x[i] + j) & 7] += j; u[j] += x[i]; }}",
                     ("loop i: rfactor 3",)),
    "bins of a loop inside": (f"{LOOP} for (int j = 0; j < 9; j++) h[j / 2] += x[i];", ("loop i: rfactor 3",)),
    "time steps, one launch": (f"for (int k = 0; k < 3; k++) {{ {LOOP} h[(x[i] + k) & 7] += k; h[k] += 1; }}",
                               ("loop 1: persistent", "loop 2: rfactor 5")),
    "time steps": (f"for (int k = 0; k < 3; k++) {{ {LOOP} h[(x[i] + k) & 7] += k; h[k] += 1; }}",
                   ("loop 2: rfactor 5",)),
    "zeroes before it": (f"for (int j = 0; j < 8; j++) h[j] = 0; {LOOP} h[x[i] & 7]++;", ("loop 2: rfactor 16",)),
    "unrolled": (f"{LOOP} h[x[i] & 7] += x[i] + 1;", ("loop i: rfactor 3", "loop i: unroll 4")),
    "tiled": (f"{LOOP} h[x[i] & 7] += i;", ("loop i: rfactor 3", "loop i: tile 4")),
    "downward, by 3": ("for (int i = n - 1; i >= 1; i -= 3) h[x[i] & 7] += i;", ("loop i: rfactor 4",)),
    "a sum for each": (f"{LOOP} {{ int a = 0; for (int j = 0; j < 9; j++) a += x[i] * j; h[x[i] & 7] += a; }}",
                       ("loop i: rfactor 4", "loop j: parallel")),
    "an array of its own": (f"{LOOP} {{ int a[3]; for (int j = 0; j < 3; j++) a[j] = x[i] >> j; h[a[1] & 7] += *a; }}",
                            ("loop i: rfactor 4",)),
    "if a size says so": (f"if (n > 5) {{ {LOOP} h[x[i] & 7] += i; }}", ("loop i: rfactor 4",)),
}  # fmt: skip


def given(n: int) -> cross_check.Arguments:
    rng = np.random.default_rng(n)
    x, w = rng.integers(0, 256, n).astype(np.uint8), rng.integers(-9, 9, n).astype(np.float32)
    h, c, s = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.uint8), np.ones((3, 2), np.int16)
    v, t, u = np.array([3, np.nan, -0.0, 1, 2, 5, 6, 7], np.float32), np.arange(2), np.arange(3, 11, dtype=np.uint32)
    d, b = np.array([3, -1, 2, 1, 2, 5, 6, 7.0]), np.zeros(8, np.bool_)
    return {"n": n, "x": x, "w": w, "h": h, "c": c, "s": s, "v": v, "t": t, "u": u, "d": d, "b": b}


def scheduled(name: str) -> tuple[Codelet, Codelet]:
    body, lines = BODIES[name]
    codelet = load(f"{HEAD} {body} }}\n").codelet
    return codelet, schedule(Analysis(codelet), parse_lines(lines)).codelet


def misses(original: Codelet, made: Codelet) -> bool:
    """Tell whether the loops leave other values than the original at one of the sizes."""
    for n in (0, 1, 9, 67):
        want, got = cross_check.interpreted(original, given(n)), given(n)
        try:
            interpreter.run(made, cross_check.arrays(got), cross_check.scalars(got))
        except AssertionError:  # outside an array
            return True
        if cross_check.off(want, cross_check.arrays(got)) is not None:
            return True
    return False


@pytest.mark.parametrize("name", BODIES)
def test_copies_are_added_up(name: str) -> None:
    """Values that are not finite, and integers that wrap, are those of the loops in their order."""
    original, done = scheduled(name)
    for blocks in (False, True):
        made = expand_split_reductions(done, blocks=blocks).codelet
        assert made != done
        assert not misses(original, made), blocks


def test_wrong_copies_leave_other_values() -> None:
    """Nothing that clears or combines copies can be left out; memory that is not cleared holds zeroes here."""
    original, done = scheduled("products")
    for blocks in (False, True):
        made = expand_split_reductions(done, blocks=blocks).codelet
        changed = [m for m in mutants(made.body) if "gone" in m.what or "sooner" in m.what]
        changed = [m for m in changed if m.what != "a guard gone"]  # an element times 1 is the element
        assert len(changed) > 8
        for m in changed:
            assert misses(original, replace(made, body=m.body)), m.what


@pytest.mark.parametrize("name", ["narrow, wrapping", "a sum for each"])
def test_the_plan_is_proved(name: str) -> None:
    original, done = scheduled(name)
    assert prove_plan(original, lower(done, blocks=True)).verdict == "proved"


@pytest.mark.parametrize("name", ["a scalar and an element beside it", "time steps"])
def test_threads_with_one_copy_are_not_proved(name: str) -> None:
    """The plan is proved, and not if threads accumulate into a copy that is not their own."""
    original, done = scheduled(name)
    plan = lower(done, blocks=True)
    assert prove_plan(original, plan).verdict == "proved"

    def rule(n: Node) -> Node | None:
        return replace(n, index=(*n.index[:-1], Const(0))) if isinstance(n, Load) and n.array == "h_parts" else None

    racing = replace(plan, steps=with_kernels(plan.steps, lambda k: replace(k, body=rewrite(rule, k.body))))
    assert prove_plan(original, racing).verdict != "proved"


CPU = ("narrow, wrapping",)
SIMULATED = ("weights under a condition", "a sum for each", "time steps")


@pytest.mark.wide
def test_copies_are_added_up_by_threads(tmp_path: Path) -> None:
    """Blocks of threads and cores leave what gcc makes of the text."""
    cases = [
        Case(name, f"{HEAD} {body} }}\n", [given(67)], lines,
             ("cuda-c", *(["cpu"] if name in CPU else []), *(["simulator"] if name in SIMULATED else [])))
        for name, (body, lines) in BODIES.items()
    ]  # fmt: skip
    assert not wrong(cases, tmp_path)


@pytest.mark.long
def test_copies_are_added_up_on_every_target(tmp_path: Path) -> None:
    cases = [
        Case(name, f"{HEAD} {b} }}\n", [given(n) for n in (0, 1, 67)], lines) for name, (b, lines) in BODIES.items()
    ]
    assert not wrong(cases, tmp_path)
