"""Random C functions with several statements, imperfect, triangular and sibling nests, and directives for them.

Arrays hold small integers in float64, so that any order of additions gives the same bits; indices stay inside for
n, m <= 6. Some have ``cut``s before their statements, and a scalar that is private, carried or read at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

import islpy as isl
import numpy as np
from hypothesis import strategies as st

from looptune.ir import interpreter
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Array, Codelet, If, Loop, Stmt
from looptune.ir.rewrite import walk
from looptune.poly.scop import SchedulePiece

SIZE = 24
VARS = ("i", "j", "k", "l")
KINDS = (
    "distribute", "distribute", "fuse", "fuse", "fuse", "fuse 3", "permute ORDER", "permute ORDER", "fullunroll",
    "unroll FACTOR, jam", "unroll FACTORSCHEMERESTJAM", "unroll FACTORSCHEMERESTJAM",
    "unroll 4, split, vector 2RESTJAM", "tile BLOCKS", "tile BLOCKS",
    "parallel", "noParallel", "gridify(GRID)", "grid blocksize 4x2", "rfactor FACTOR", "box", "box FACTOR",
    "box FACTOR & unroll FACTOR, jam", "box & unroll FACTORSCHEMERESTJAM", "box & tile BLOCKS",
    "schedule", "schedule OPTIONS", "splitat VALUES", "skew INNER by AMOUNT", "shift INNER by FACTOR", "reverse",
    "wavefront ORDER", "skew INNER by AMOUNT & permute ORDER", "skew INNER by AMOUNT & tile BLOCKS",
    "expand VARIABLE", "expand VARIABLE", "expand VARIABLE & distribute", "expand VARIABLE & permute ORDER",
    "expand VARIABLE & schedule", "expand VARIABLE & fuse", "block FACTOR", "splitat VALUES & unroll FACTOR, jam",
    "snapshot VARIABLE", "snapshot VARIABLE & parallel", "snapshot VARIABLE & tile BLOCKS",
)  # fmt: skip
"""Every directive, its arguments to be filled in; several for one loop."""
INSIDE = 12
"""The largest loop variable for which every index is at least 0."""
SIZES = ((5, 4), (4, 6), (1, 1), (0, 3), (2, 5))

Trace = list[tuple[str, tuple[int, ...]]]


@st.composite
def header(draw: st.DrawFn, var: str, around: tuple[str, ...]) -> str:
    step = draw(st.sampled_from((1, 1, 1, 1, 2)))
    lo = draw(st.sampled_from(("0", "0", "0", "1", "2", *around)))
    ends = ("n", "n", "n", "m", "n - 1", "n + 1", "4", *(f"{v} + 1" for v in around), *(f"n - {v}" for v in around))
    hi = draw(st.sampled_from(ends))
    if draw(st.integers(0, 9)) == 0:
        return f"for (int {var} = {hi} - 1; {var} >= {lo}; {var} -= {step})"
    return f"for (int {var} = {lo}; {var} < {hi}; {var} += {step})"


@st.composite
def index(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    v = draw(st.sampled_from(around)) if around else "1"
    return draw(st.sampled_from((f"{v} + 8", f"{v} + 8", f"{v} + 9", f"{v} + 7", f"{v} + 6", f"12 - {v}", "9")))


@st.composite
def element(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    name = draw(st.sampled_from(("A", "B", "x", "y", "z")))
    return f"{name}[{draw(index(around))}]" + (f"[{draw(index(around))}]" if name in "AB" else "")


@st.composite
def statement(draw: st.DrawFn, around: tuple[str, ...], scalar: bool) -> str:
    target, source = draw(element(around)), draw(element(around))
    v = around[-1] if around else "2"
    forms = [f"{target} = {source} + {v};", f"{target} = 2 * {source};", f"{target} += {source};"]
    if target != source:
        forms += [
            f"{target} = {source} > {target} ? {source} : {target};",
            f"if ({source} > {target}) {target} = {source};",
        ]
    if scalar:
        forms += [f"t = {source};", f"{target} = t + 1;", f"t += {source};", f"{{ t = {source}; {target} = t; }}"]
    return draw(st.sampled_from(forms))


@st.composite
def condition(draw: st.DrawFn, around: tuple[str, ...], scalar: bool) -> str:
    """Half of them on data, some on both."""
    v = around[-1]
    affine = draw(st.sampled_from(("n > 3", f"{v} % 2 == 0", f"{v} < 2", f"{v} != n")))
    data = draw(st.sampled_from((f"{draw(element(around))} > 2", f"!({draw(element(around))} > {v})")))
    data = draw(st.sampled_from((data, data, "t > 1"))) if scalar else data
    return draw(st.sampled_from((affine, affine, affine, data, data, f"{affine} && {data}", f"{data} || {affine}")))


@dataclass
class Left:
    """How many loops and statements a program may still have."""

    loops: int
    statements: int


@st.composite
def block(draw: st.DrawFn, around: tuple[str, ...], scalar: bool, cutting: bool, left: Left) -> str:
    """One to three things; loops side by side, three deep at most."""
    out: list[str] = []
    free = [v for v in VARS if v not in around][:2]
    for k in range(draw(st.integers(1, 3))):
        if k and left.statements <= 0:
            break
        kinds = ["assign", "assign", "if"]
        kinds += ["loop", "loop"] if len(around) < 3 and left.loops > 0 else ["assign"]
        if cutting and draw(st.integers(0, 3)) == 0:
            out.append("\n#pragma hmppcg cut\n")
        match draw(st.sampled_from(kinds)):
            case "assign":
                left.statements -= 1
                out.append(draw(statement(around, scalar)))
            case "loop":
                left.loops -= 1
                var = draw(st.sampled_from(free))
                out.append(f"{draw(header(var, around))} {{ {draw(block((*around, var), scalar, cutting, left))} }}")
            case _:
                other = ""
                if left.statements > 1 and draw(st.booleans()):
                    left.statements -= 1
                    other = f" else {{ {draw(statement(around, scalar))} }}"
                cond = draw(condition(around, scalar))
                out.append(f"if ({cond}) {{ {draw(block(around, scalar, cutting, left))} }}{other}")
    return " ".join(out)


@st.composite
def program(draw: st.DrawFn) -> str:
    """One to four loops, around three statements or few more; one in four is larger."""
    scalar, cutting = draw(st.booleans()), draw(st.integers(0, 7)) == 0
    left = Left(4, 3) if draw(st.integers(0, 3)) else Left(9, 8)
    parts: list[str] = ["double t = 1;"] if scalar else []
    for k in range(draw(st.integers(1, 3))):
        if k and (left.loops <= 0 or left.statements <= 0):
            break
        left.loops -= 1
        var = draw(st.sampled_from(("i", "k")))
        parts.append(f"{draw(header(var, ()))} {{ {draw(block((var,), scalar, cutting, left))} }}")
        if draw(st.integers(0, 4)) == 0:
            parts.append(draw(statement((), scalar)))
    parts += ["x[0] = t;"] if scalar and draw(st.booleans()) else []
    return function("\n  ".join(parts))


def function(body: str) -> str:
    flat = ", ".join(f"double {name}[{SIZE}]" for name in "xyz")
    return f"void f(int n, int m, double A[{SIZE}][{SIZE}], double B[{SIZE}][{SIZE}], {flat})\n{{\n  {body}\n}}\n"


@st.composite
def with_own_array(draw: st.DrawFn) -> str:
    """One or two loops around a local array of four that is filled, passed over and used; declared in the innermost of
    them, or before all, and then perhaps filled there as well, for iterations to use what others left."""
    around = ("i", "j")[: draw(st.integers(1, 2))]
    v = around[-1]
    inside = draw(st.sampled_from((True, True, False)))
    source, target = (draw(element(around)) for _ in range(2))
    filled = draw(st.sampled_from((
        f"for (int p = 0; p < 4; p++) h[p] = A[p + 8][{v} + 8];",
        f"for (int p = 3; p >= 0; p--) h[p] = {source} + p;",
        f"h[0] = {source}; h[1] = {v}; h[2] = h[0]; h[3] = 2;",
        *(() if inside else (f"h[{draw(st.integers(0, 3))}] = {source};",)),
    )))  # fmt: skip
    passed = draw(st.sampled_from((
        "", "for (int p = 1; p < 4; p++) h[p] += h[p - 1];", "for (int p = 0; p < 3; p++) h[p] = h[p + 1];",
        "for (int p = 1; p < 4; p++) if (h[p - 1] > h[p]) h[p] = h[p - 1];", f"if ({source} > 2) h[1] = {v};",
    )))  # fmt: skip
    used = draw(st.sampled_from((
        f"{target} = h[1];", f"{target} += h[2] + h[3];", "for (int p = 0; p < 4; p++) x[p + 8] += h[p];",
        f"for (int p = 0; p < 4; p++) B[{v} + 8][p + 8] = h[p] + h[3 - p];",
        f"for (int p = 0; p < 4; p++) if (h[p] > 1) y[{v} + 8] = h[p];",
    )))  # fmt: skip
    body = f"{'double h[4];' if inside else ''} {filled} {passed} {draw(statement(around, scalar=False))} {used}"
    for k, var in reversed(list(enumerate(around))):
        body = f"{draw(header(var, around[:k]))} {{ {body} }}"
    first = "" if inside else "double h[4]; for (int p = 0; p < 4; p++) h[p] = p;"
    return function(f"{first} {body} {draw(statement((), scalar=False))}")


@st.composite
def with_scratch(draw: st.DrawFn) -> str:
    """The same with the first elements of a parameter array in place of the local one, or of a local one that is read
    after the loops, and then several loops that use it."""
    text = draw(with_own_array())
    if draw(st.booleans()):
        declared = "double h[4]; for (int p = 0; p < 4; p++) h[p] = p; "
        return text.replace(declared, "").replace("double h[4];", "").replace("h[", "z[")
    body = text.replace("double h[4];", "")
    start = body.index("{") + 1
    after = draw(st.sampled_from(("", "for (int p = 0; p < 4; p++) y[p] = h[p];", "y[3] += h[2];")))
    first, rest = "double h[4]; for (int p = 0; p < 4; p++) h[p] = 1;", body[start:].rstrip()[:-1]
    return f"{body[:start]}\n  {first} {rest} {after}\n}}\n"


EXPANSIONS = (
    "expand VARIABLE", "expand VARIABLE", "expand VARIABLE & parallel", "expand VARIABLE & schedule",
    "expand VARIABLE & distribute", "expand VARIABLE & permute ORDER", "expand VARIABLE & unroll FACTOR, jam",
    "expand VARIABLE & tile BLOCKS", "expand VARIABLE & fuse", "parallel", "unroll 2",
)  # fmt: skip
"""What is to be found legal after an expansion."""


@st.composite
def directives(draw: st.DrawFn, codelet: Codelet, cutting: bool, kinds: Sequence[str] = KINDS) -> list[str]:
    """Up to three lines, each for another loop, of ``kinds`` that have a chance to fit it."""
    loops = [f for f in walk(codelet.body) if isinstance(f, Loop)]
    followed = _followed(codelet.body)
    lines = ["loop 1: distribute"] if cutting else []
    chosen = draw(
        st.lists(st.sampled_from(loops), min_size=0 if cutting else 1, max_size=3, unique_by=lambda f: f.number)
    )
    for loop in chosen:
        inner = list(dict.fromkeys(f.var for f in walk(loop) if isinstance(f, Loop)))
        fits = [
            k for k in kinds if (loop.number in followed or "fuse" not in k) and (len(inner) > 1 or "ORDER" not in k)
        ]
        if not cutting or loop.number > 1:
            chosen_kinds = draw(st.sampled_from(fits)).split(" & ")
            written = sorted(written_names(loop.body))
            lines += (f"loop {loop.number}: {draw(filled(kind, inner, written))}" for kind in chosen_kinds)
    return lines


@st.composite
def filled(draw: st.DrawFn, kind: str, inner: Sequence[str], written: Sequence[str] = ("x",)) -> str:
    """The directive with arguments for a loop and the loops in it, ``inner``; ``written`` are the variables that it
    writes."""
    blocks = inner[: draw(st.integers(1, min(2, len(inner))))]
    words = {
        "ORDER": lambda: ", ".join(draw(st.permutations(inner))[:3]),
        "FACTOR": lambda: str(draw(st.integers(1, 4))),
        "SCHEME": lambda: draw(st.sampled_from(("", ", split", ", contiguous"))),
        "REST": lambda: draw(st.sampled_from(("", ", guarded", ", remainder"))),
        "JAM": lambda: draw(st.sampled_from(("", ", jam", ", noJam"))),
        "BLOCKS": lambda: ", ".join(f"{v}:{draw(st.integers(1, 4))}" for v in blocks),
        "OPTIONS": lambda: draw(
            st.sampled_from(("parallel:inner", "parallel:none", "fuse:min", "parallel:none, fuse:min"))
        ),
        "VALUES": lambda: draw(st.sampled_from(("1", "2", "1, 3", "n - 1", "1, n", "m"))),
        "INNER": lambda: draw(st.sampled_from(inner)),
        "VARIABLE": lambda: draw(st.sampled_from(written)),
        "AMOUNT": lambda: draw(st.sampled_from((inner[0], f"2*{inner[0]}", f"{inner[0]} + 1", "1", f"n - {inner[0]}"))),
        "GRID": lambda: ", ".join(inner[: draw(st.sampled_from((2, 2, 3)))]),
    }
    for word, made in words.items():
        if word in kind:
            kind = kind.replace(word, made())
    return kind


def _followed(body: Sequence[Stmt]) -> set[int]:
    """The numbers of the loops that another one follows in their block."""
    found = {f.number for f in [s for s in body if isinstance(s, Loop)][:-1]}
    for stmt in body:
        match stmt:
            case Loop(body=inner):
                found |= _followed(inner)
            case If(_, then, other):
                found |= _followed(then) | _followed(other)
    return found


def inputs(codelet: Codelet, n: int, m: int, size: int = SIZE) -> dict[str, np.ndarray]:
    """Small integers, the same ones for the same sizes."""
    rng = np.random.default_rng(n * 31 + m)
    params = [p for p in codelet.params if isinstance(p, Array)]
    return {p.name: rng.integers(-4, 9, (size,) * len(p.shape)).astype(np.float64) for p in params}


def outcome(codelet: Codelet, n: int, m: int) -> tuple[dict[str, np.ndarray], Trace]:
    """The arrays, and every statement instance in the order run."""
    arrays = inputs(codelet, n, m)
    trace: Trace = []
    interpreter.run(codelet, arrays, {"n": n, "m": m}, lambda name, at: trace.append((name, at)))
    return arrays, trace


def time_of(pieces: Sequence[SchedulePiece], env: Mapping[str, int]) -> tuple[int, ...]:
    """When the instance with the variables in ``env`` runs."""
    words = {**env, "floor": floor, "min": min, "max": max}
    (held,) = (p for p in pieces if not p.when or _holds(p.when, env))
    return tuple(eval(e.replace(" mod ", " % "), {}, dict(words)) for e in held.time)


def _holds(when: str, env: Mapping[str, int]) -> bool:
    """Whether an isl condition holds at these values."""
    given = " and ".join(f"{name} = {value}" for name, value in env.items())
    return not isl.Set(f"{{ [{', '.join(env)}] : {given} and ({when}) }}").is_empty()
