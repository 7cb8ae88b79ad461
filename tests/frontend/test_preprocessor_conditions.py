"""Conditions after ``#if`` have the value that gcc gives them."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.frontend import load
from looptune.frontend.condition import evaluate_condition
from looptune.ir.nodes import Assign, Const, Loop

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

CONDITIONS = (
    r"'\377' < 0", r"'\400' == 0", "'ab' == 24930", "L'a' == 97", "u'a' - 98 > 0", r"'\'' == 39",
    "-7 % 3 == -1", "7 % -3 == 1", "-7 / 2 == -3", "(-9223372036854775807 - 1) / -1 < 0",
    "-9223372036854775807 % 10 == -7", "-1 > 0u", "-1u / 2 > 3", "0x8000000000000000 > 0", "0x7fffffffffffffff + 1 < 0",
    "0b11 == 3", "010 == 8", "(1 == 1u) - 2 < 0", "-1 < (1u == 1u)", "(-1 || 0u) > -1", "!0u - 2 < 0",
    "(1 ? -1 : 0u) > 0", "(0 ? 0u : -1) > 0", "-1 >> 1 == -1", "-8u >> 60 == 15", "1 << 64 == 0", "8 >> -1 == 16",
    "2 || 1 / 0", "(0 && 1 / 0) == 0", "(1 ? 2 : 1 / 0) == 2", "(0 && (1 || 1 / 0)) == 0", "(1, 2) == 2",
    "5 & 1 == 1", "1 | 2 ^ 3 & 4", "1 << 2 + 1 == 8", "3 > 2 > 1", "2 == 2 == 1", "UNKNOWN == 0",
    "1 ? 0 ? 5 : 0 : 7", "0 ? 1 : 0 ? 2 : 3", "- - 1 == 1", "-+~!0 == 2",
)  # fmt: skip


def random_condition(rng: random.Random, depth: int) -> str:
    """Any expression, without division by zero."""
    if depth == 0:
        number = rng.choice((0, 1, 2, 3, 7, 63, 255, 2**31, 2**63 - 1))
        return f"{number}{rng.choice(('', '', 'u', 'L', 'UL', 'll'))}"
    parts = [random_condition(rng, depth - 1) for _ in range(3)]
    form = rng.randrange(8)
    if form == 0:
        return f"{rng.choice('-+~!')} {parts[0]}"
    if form == 1:
        return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    if form == 2:
        return f"{parts[0]} {rng.choice('/%')} (({parts[1]}) | 1)"
    if form == 3:
        return f"({parts[0]}) {rng.choice(('<<', '>>'))} (({parts[1]}) & 31)"
    op = rng.choice(("*", "+", "-", "<", "<=", ">", ">=", "==", "!=", "&", "^", "|", "&&", "||"))
    return f"{parts[0]} {op} {parts[1]}" if form < 6 else f"({parts[0]} {op} {parts[1]})"


def by_gcc(conditions: Sequence[str]) -> list[int]:
    text = "\n".join(f"#if {c}\n1\n#else\n0\n#endif" for c in conditions)
    done = subprocess.run(["gcc", "-w", "-E", "-P", "-"], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@gcc
def test_conditions_have_the_value_that_gcc_gives_them() -> None:
    """Signs, widths, characters, remainders and what is skipped, in fixed conditions and in random ones."""
    rng = random.Random(5)
    conditions = [*CONDITIONS, *(random_condition(rng, rng.randint(1, 4)) for _ in range(500))]
    ours = [int(evaluate_condition(c, Span("", 0, 0)) != 0) for c in conditions]
    wrong = [c for c, got, want in zip(conditions, ours, by_gcc(conditions), strict=True) if got != want]
    assert not wrong


@pytest.mark.parametrize(
    "condition",
    ["defined A", "defined(A)", "defined ( A ) && !defined B", "IS_A", "A - -7 % 3 == 4", "A /* + 1 */ == 3",
     "F(2) == 4", "NEG -1 == 1", "!defined(F) || F(1) == 2"],
)  # fmt: skip
def test_macros_are_expanded_first(condition: str) -> None:
    """``defined`` asks before and after, and what macros expand to stays apart from what stands beside it."""
    head = f"#define A 3\n#define IS_A defined(A)\n#define F(x) x * 2\n#define NEG -\n#if {condition}\n#define K 1\n"
    text = f"{head}#else\n#define K 2\n#endif\nvoid f(int n, int a[n]) {{ for (int i = 0; i < n; i++) a[i] = K; }}\n"
    (loop,) = load(text).codelet.body
    assert isinstance(loop, Loop)
    (assignment,) = loop.body
    assert isinstance(assignment, Assign)
    assert assignment.value == Const(1)


@pytest.mark.parametrize(
    "condition",
    ["1 +", "(1", "1 2", "A(1)", "1.5 > 1", '"a"', "1 / 0", "defined", "defined(1)", "", "1 ? 2", "(" * 500],
)
def test_what_is_no_condition_is_refused(condition: str) -> None:
    """With the line that has it."""
    with pytest.raises(ParseError) as refused:
        load(f"#if {condition}\n#endif\nvoid f(int n, int a[n]) {{ for (int i = 0; i < n; i++) a[i] = 1; }}\n")
    assert refused.value.span.line == 1


def test_the_limits_of_integers_are_known() -> None:
    """Where the text includes limits.h, which is not read."""
    text = "#if CHAR_BIT == 8 && INT_MIN < -32767 && ULONG_MAX > 4294967295\n"
    text += "typedef double t;\n#else\ntypedef int t;\n#endif\n"
    text += "void f(int n, t a[n]) { for (int i = 0; i < n; i++) a[i] = 1; }\n"
    assert [p.dtype for p in load(f"#include <limits.h>\n{text}").codelet.params] == ["int32", "float64"]
    assert [p.dtype for p in load(text).codelet.params] == ["int32", "int32"]
