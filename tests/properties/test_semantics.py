"""Random C nests under random directives: accepted means the same arrays to the bit, refused means a message.

Arrays hold small integers in float64, so that any order of additions gives the same bits. The everyday run is small
and the same every time; a long one, with new examples each time, is

    python -m pytest tests/properties/test_semantics.py --hypothesis-profile=long
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer, interpreter
from looptune.ir.nodes import Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.ir.verify import verify
from looptune.lower.passes.scalar_replacement import replace_with_scalars
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, threaded_interpreter

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("long", max_examples=20000, deadline=None, suppress_health_check=_CHECKS)
EVERYDAY = settings(max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=_CHECKS)
"""Overridden by a profile given on the command line."""
usual = settings() if settings.get_current_profile_name() == "long" else EVERYDAY

VARS = ("i", "j", "k")
SIZE = 24
"""Extent of every dimension: indices stay inside for n, m < 9."""


@st.composite
def header(draw: st.DrawFn, var: str, around: tuple[str, ...]) -> str:
    """A ``for`` header over at most nine iterations: any direction, step, start, and triangular bounds."""
    step = draw(st.sampled_from((1, 1, 1, 2, 3)))
    ends = ["n", "m", "7", "n - 1", "m + 1", *(f"{v} + 1" for v in around), *(f"n - {v}" for v in around)]
    starts = ["0", "0", "0", "1", "2", *around]
    lo, hi = draw(st.sampled_from(starts)), draw(st.sampled_from(ends))
    match draw(st.sampled_from(("up", "up", "up", "inclusive", "down"))):
        case "down":
            return f"for (int {var} = {hi}; {var} > {lo}; {var} -= {step})"
        case "inclusive":
            return f"for (int {var} = {lo}; {var} <= {hi}; {var} += {step})"
    return f"for (int {var} = {lo}; {var} < {hi}; {var} += {step})"


@st.composite
def index(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    """An affine index between 0 and 23: loop variables are between -9 and 10, 8 is added."""
    term = draw(st.sampled_from(around)) if around else "1"
    narrow = f"(unsigned char)(256 * {term} + 9)"
    return draw(st.sampled_from((*(f"{term} + {k}" for k in (8, 9, 9, 10, 10)), f"12 - {term}", "5", narrow)))


@st.composite
def element(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    name = draw(st.sampled_from(("A", "A", "B", "x")))
    return f"{name}[{draw(index(around))}]" + (f"[{draw(index(around))}]" if name != "x" else "")


@st.composite
def statement(draw: st.DrawFn, around: tuple[str, ...], scalar: bool) -> str:
    target, source = draw(element(around)), draw(element(around))
    variable = around[-1] if around else "2"
    forms = [
        f"{target} = {source} + {variable};",
        f"{target} += {source};",
        f"{target} += 2 * {source} - {draw(element(around))};",
        f"{target} = {source} > 3 ? {source} - 5 : {variable};",
        f"if ({variable} % 2 == 0) {target} = {source} - 1; else {target} += 1;",
    ]
    if scalar:
        forms += [f"t = {source}; {target} = t + 1;", f"t += {source};", f"{target} = t;"]
    return draw(st.sampled_from(forms))


@st.composite
def nest(draw: st.DrawFn, around: tuple[str, ...], scalar: bool, budget: int = 3) -> str:
    """A loop with one to three things in it, one of which may be a loop."""
    var = VARS[len(around)]
    inside = (*around, var)
    parts = [draw(statement(inside, scalar)) for _ in range(draw(st.integers(0, 2)))]
    if budget > 1 and draw(st.sampled_from((True, True, False))):
        parts.insert(draw(st.integers(0, len(parts))), draw(nest(inside, scalar, budget - 1)))
    if not parts:
        parts = [draw(statement(inside, scalar))]
    return f"{draw(header(var, around))} {{ {' '.join(parts)} }}"


@st.composite
def program(draw: st.DrawFn) -> str:
    scalar = draw(st.booleans())
    nests = "\n  ".join(draw(nest((), scalar)) for _ in range(draw(st.integers(1, 2))))
    last = "x[0] = t;" if scalar and draw(st.booleans()) else ""
    body = f"{'double t = 1;' if scalar else ''}\n  {nests}\n  {last}"
    params = f"int n, int m, double A[{SIZE}][{SIZE}], double B[{SIZE}][{SIZE}], double x[{SIZE}]"
    return f"void f({params})\n{{\n  {body}\n}}\n"


@st.composite
def directive(draw: st.DrawFn, loops: list[Loop]) -> str:
    """A directive for one of the loops, of any kind and with any arguments."""
    loop = draw(st.sampled_from(loops))
    inner = [f.var for f in walk(loop) if isinstance(f, Loop)]
    factor = draw(st.integers(1, 5))
    scheme = draw(st.sampled_from(("", ", split", ", contiguous")))
    rest = draw(st.sampled_from(("", ", guarded", ", remainder", ", noremainder")))
    jam = draw(st.sampled_from(("", ", jam", ", noJam")))
    sizes = ", ".join(f"{v}:{draw(st.integers(1, 5))}" for v in inner[: draw(st.integers(1, len(inner)))])
    order = draw(st.permutations(inner))[: draw(st.integers(2, max(2, len(inner))))]
    text = draw(
        st.sampled_from((
            f"unroll {factor}{scheme}{rest}{jam}", f"unroll {factor}{scheme}{rest}{jam}", f"tile {sizes}",
            f"permute {', '.join(order)}", "parallel", "noParallel", f"gridify({', '.join(inner[:2])})",
            "grid blocksize 16x4",
        ))
    )  # fmt: skip
    return f"loop {loop.number}: {text}"


def outcome(codelet: Codelet, n: int, m: int) -> tuple[dict[str, np.ndarray], list[tuple[str, tuple[int, ...]]]]:
    """The arrays, and every statement instance in the order run."""
    rng = np.random.default_rng(n * 31 + m)
    arrays = {
        name: rng.integers(-4, 9, (SIZE,) * rank).astype(np.float64) for name, rank in (("A", 2), ("B", 2), ("x", 1))
    }
    order: list[tuple[str, tuple[int, ...]]] = []
    interpreter.run(codelet, arrays, {"n": n, "m": m}, lambda name, at: order.append((name, at)))
    return arrays, order


def fits(lines: list[str]) -> bool:
    """No directive asserts something that may be false at the sizes run."""
    return not any("noremainder" in line for line in lines)


@pytest.mark.wide
@usual
@given(data=st.data(), text=program())
def test_an_accepted_schedule_keeps_every_bit(data: st.DataObject, text: str) -> None:
    """Accepted: same arrays, every statement instance exactly once, at several sizes. Refused: one line."""
    original = load(text).codelet
    loops = [f for f in walk(original.body) if isinstance(f, Loop)]
    lines = data.draw(st.lists(directive(loops), min_size=1, max_size=3, unique_by=lambda x: x.split(":")[0]))
    note(text)
    note("\n".join(lines))
    done = scheduled(original, lines)
    if isinstance(done, str):
        event("refused")
        assert done
        assert "\n" not in done
        return
    event("accepted")
    changed = verify(done)
    note(c_printer.body(changed, pragmas=True))
    if not fits(lines):
        return
    for n, m in ((5, 7), (8, 4), (1, 1), (0, 3)):
        (want, instances), (got, traced) = outcome(original, n, m), outcome(changed, n, m)
        assert cross_check.off(want, got) is None, f"n={n} m={m}"
        assert Counter(instances) == Counter(traced), f"n={n} m={m}"
        assert cross_check.off(want, outcome(planned(changed), n, m)[0]) is None, f"registers, n={n} m={m}"


def scheduled(original: Codelet, lines: list[str]) -> Codelet | str:
    """The codelet transformed, or why it is not."""
    try:
        return schedule(Analysis(original), parse_lines(lines)).codelet
    except LooptuneError as error:
        return error.message


def planned(codelet: Codelet) -> Codelet:
    """The codelet with every element in a register that a kernel would keep there."""
    taken = {p.name for p in codelet.params} | {v.name for v in codelet.locals}
    taken |= {f.var for f in walk(codelet.body) if isinstance(f, Loop)}
    body, made = replace_with_scalars(codelet.body, taken)
    return replace(codelet, body=body, locals=codelet.locals + made)


@pytest.mark.wide
@usual
@given(data=st.data(), text=program(), seed=st.integers(0, 99))
def test_parallel_iterations_may_run_in_any_order(data: st.DataObject, text: str, seed: int) -> None:
    """Loops left or made parallel give the same arrays when their iterations are shuffled and own their locals."""
    original = load(text).codelet
    loops = [f for f in walk(original.body) if isinstance(f, Loop)]
    lines = data.draw(st.lists(directive(loops), max_size=2, unique_by=lambda x: x.split(":")[0]))
    changed = scheduled(original, lines)
    if isinstance(changed, str):
        return
    note(text)
    note(c_printer.body(changed, pragmas=True))
    event("some parallel" if any(isinstance(f, Loop) and f.mode == "parallel" for f in walk(changed.body)) else "none")
    if not fits(lines):
        return
    for n, m in ((5, 7), (8, 4)):
        want, _ = outcome(original, n, m)
        rng = np.random.default_rng(n * 31 + m)
        arrays = {
            name: rng.integers(-4, 9, (SIZE,) * rank).astype(np.float64)
            for name, rank in (("A", 2), ("B", 2), ("x", 1))
        }
        threaded_interpreter.run(changed, arrays, {"n": n, "m": m}, seed=seed)
        assert cross_check.off(want, arrays) is None, f"n={n} m={m}"


@pytest.mark.wide
@usual
@given(text=program())
def test_every_program_maps_to_kernels(text: str) -> None:
    """Any accepted program has a plan, and printing the scheduled codelet gives C that computes the same."""
    codelet = schedule(Analysis(load(text).codelet)).codelet
    assert lower(codelet).kernels
    again = load(c_printer.function(codelet)).codelet
    for n, m in ((5, 7), (2, 3)):
        assert cross_check.off(outcome(codelet, n, m)[0], outcome(again, n, m)[0]) is None
