"""Tensor: the tensor cores of a GPU compute a matrix product, a small product of matrices for each warp at a time.

    for i in 0..n:                                  each block: 64 x 64 elements of C, each warp: 32 x 32 of them
      for j in 0..m:                        ==>       for strips of 16 of k: the strips of A and B, in shared memory
        C[i][j] *= beta                                 each warp: sums += strip of A * strip of B, by tensor cores
        for k in 0..l:                                each element: C[i][j] *= beta; C[i][j] += sum
          C[i][j] += A[i][k] * B[k][j]

    tensor                   double: every product and sum is rounded as IEEE 754 prescribes, in another order
    tensor, warp 64x32       the elements of a warp; ``block`` are those of a block, ``strip`` the values of k
    tensor tf32x3            float: the sums of three products of parts of the factors, on cores that multiply 11 bits;
                             each strip's sums are added to floats, so that errors are no larger than those of floats
    tensor tf32, tolerance 1e-3   float: each factor is rounded to 11 bits, or with ``bf16`` to 8; the error that this
                             may make has to be said, and every version is judged by it
    tensor, stages 3         strips in shared memory at a time: one that is multiplied, and those on their way

Legal when: the loop carries only sums, each of products of which one factor depends on the row and one on the column;
not under --no-reassociate, since the terms are added in another order. The two loops of the grid are around it, its
bounds do not depend on them, and the kernel writes nothing that the products read. Gain: twice the multiplications of
double precision a second on GPUs that have such cores, with fewer instructions. Cost: shared memory; blocks at the
edges compute elements that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive, Loop
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    positive,
    statement_names,
    unknown_argument,
)

Sides = tuple[int, int]
DEFAULT_BLOCK, DEFAULT_WARP, DEFAULT_STRIP, DEFAULT_STAGES = (64, 64), (32, 32), 16, 4
MOST_SIDE, MOST_STRIP, MOST_STAGES = 256, 64, 8
SHAPES = ((16, 8, 16), (16, 8, 8), (16, 8, 4), (8, 8, 4))
"""Rows, columns and steps that one instruction computes; the last one also on devices of compute capability 8.0."""
DEFAULT_SHAPE = SHAPES[1]
"""Of the larger ones the fastest on an H200: with fewer steps, more is loaded while products are computed."""
MOST_WARPS = 32
WORDS = ("block", "warp", "strip", "stages", "shape", "tolerance")
SPLIT = "tf32x3"
"""Products of floats, by three products of their parts of 11 bits each."""
FORMS = {SPLIT: SHAPES[1:3], "tf32": (SHAPES[1], SHAPES[2]), "bf16": (SHAPES[0], SHAPES[1])}
"""What floats are for the cores, and the shapes that there are of it; the first one of ``bf16`` is its default."""
BITS = {"tf32": (11, "1e-3"), "bf16": (8, "1e-2")}
"""To so many bits a factor is rounded; a tolerance that most products keep, relative to the largest of their terms."""
TOLERANCE, MOST_TOLERANCE = "tolerance", 0.1


@dataclass(frozen=True, slots=True)
class TensorTile(Annotation):
    """Annotation of a loop whose sums of products tensor cores compute; ``inherited`` by the kernel.

    ``form``: "" for doubles, else a word of FORMS; ``tolerance``: the error allowed where factors are rounded.
    """

    word: ClassVar = "tensor"
    inherited: ClassVar = True

    block: Sides = DEFAULT_BLOCK
    warp: Sides = DEFAULT_WARP
    strip: int = DEFAULT_STRIP
    stages: int = DEFAULT_STAGES
    shape: tuple[int, int, int] = DEFAULT_SHAPE
    form: str = ""
    tolerance: float = 0.0

    @property
    def split(self) -> bool:
        """Return whether factors are sums of parts."""
        return self.form == SPLIT

    @property
    def rounded(self) -> str:
        """Return to what factors are rounded, or ""."""
        return self.form if self.form in BITS else ""

    def pragma(self) -> str:
        return f"#pragma looptune {self.text}"

    @property
    def text(self) -> str:
        """Return the directive with all that it says."""
        block, warp = ("x".join(map(str, sides)) for sides in (self.block, self.warp))
        shape = f", shape {_by(self.shape)}" if self.shape != _default_shape(self.form) else ""
        word = f"tensor {self.form}" if self.form else "tensor"
        allowed = f", {TOLERANCE} {self.tolerance:g}" if self.tolerance else ""
        return f"{word}, block {block}, warp {warp}, strip {self.strip}, stages {self.stages}{shape}{allowed}"

    def of_points(self) -> None:
        """Return None: the strips are the directive's own."""


@dataclass(frozen=True)
class Tensor(Transform):
    name: ClassVar = "tensor"
    syntax: ClassVar = (
        "tensor [tf32x3 | tf32 | bf16] [, block ROWSxCOLUMNS] [, warp ROWSxCOLUMNS] [, strip NUMBER] "
        "[, stages NUMBER] [, shape MxNxK] [, tolerance NUMBER]"
    )
    stage: ClassVar = "mode"
    requires_reduction: ClassVar = True

    tile: TensorTile

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        said: dict[str, Arg] = {}
        for arg in directive.args:
            if arg.key not in (*WORDS, *FORMS):
                raise unknown_argument(cls, arg, (*WORDS, *FORMS))
            if arg.key in said or (arg.key in FORMS and arg.values):
                what = "is said twice" if arg.key in said else "takes no value"
                raise DirectiveError(f"tensor: {arg.key} {what} (syntax: {cls.syntax})", arg.span)
            said[arg.key] = arg
        form = _form(said)
        allowed = _tolerance(said, form, directive)
        shape = _shape(said["shape"], FORMS.get(form, SHAPES)) if "shape" in said else _default_shape(form)
        block = _sides(said["block"], "block", shape[:2]) if "block" in said else DEFAULT_BLOCK
        default = (min(DEFAULT_WARP[0], block[0]), min(DEFAULT_WARP[1], block[1]))
        warp = _sides(said["warp"], "warp", shape[:2]) if "warp" in said else default
        at = said.get("warp", said.get("block"))
        span = directive.span if at is None else at.span
        if block[0] % warp[0] or block[1] % warp[1]:
            raise DirectiveError(
                f"tensor: a block of {_by(block)} elements is not divided into warps of {_by(warp)}", span
            )
        warps = block[0] // warp[0] * (block[1] // warp[1])
        if warps > MOST_WARPS:
            raise DirectiveError(f"tensor: a block has {warps} warps, the limit is {MOST_WARPS}", span)
        strip = _number(said["strip"], "the strip", 16, MOST_STRIP) if "strip" in said else DEFAULT_STRIP
        if strip % 16:
            raise DirectiveError(f"tensor: the strip must be a multiple of 16, got {strip}", said["strip"].span)
        stages = _number(said["stages"], "the number of stages", 2, MOST_STAGES) if "stages" in said else DEFAULT_STAGES
        return cls(TensorTile(block, warp, strip, stages, shape, form, allowed), span=directive.span)

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        return (loop,)

    def regrouped_statements(self, loop: Loop) -> frozenset[str]:
        return statement_names(loop.body)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return Rewrite((site.loop.annotated(self.tile),))


def _form(said: Mapping[str, Arg]) -> str:
    """Return the word of FORMS that was said, or ""."""
    forms = [word for word in FORMS if word in said]
    if len(forms) > 1:
        raise DirectiveError(f"tensor: {forms[0]} and {forms[1]} exclude each other", said[forms[1]].span)
    return forms[0] if forms else ""


def _default_shape(form: str) -> tuple[int, int, int]:
    return FORMS[form][0] if form == "bf16" else DEFAULT_SHAPE


def _tolerance(said: Mapping[str, Arg], form: str, directive: Directive) -> float:
    """Return the error that a version may have whose factors are rounded; it has to be said, and only of such."""
    arg = said.get(TOLERANCE)
    if form not in BITS:
        if arg is not None:
            what = f"{form} is as exact as floats" if form else "doubles are rounded as in the loop"
            raise DirectiveError(f"tensor: {TOLERANCE} is for tf32 and bf16, which round the factors: {what}", arg.span)
        return 0.0
    bits, usual = BITS[form]
    if arg is None:
        raise DirectiveError(
            f"tensor {form} rounds each factor to {bits} bits, so that results differ from those of the loops by more "
            f"than floats do: say by how much they may, relative to an element, such as `tensor {form}, {TOLERANCE} "
            f"{usual}`, or use `tensor {SPLIT}`, which is as exact as floats", directive.span,
        )  # fmt: skip
    given = "nothing" if not arg.values else "x".join(map(str, arg.values))
    number = float(given) if re.fullmatch(r"[\d.]+([eE][-+]?\d+)?", given) else 0.0
    if not 0 < number <= MOST_TOLERANCE:
        raise DirectiveError(
            f"tensor: the {TOLERANCE} is a number over 0, at most {MOST_TOLERANCE}, such as {usual}, got {given}",
            arg.span,
        )
    return number


def _shape(arg: Arg, shapes: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    found = next((shape for shape in shapes if shape == arg.values), None)
    if found is None:
        raise DirectiveError(f"tensor: the shapes are {', '.join(map(_by, shapes))}", arg.span)
    return found


def _by(sides: Sequence[int]) -> str:
    return "x".join(map(str, sides))


def _sides(arg: Arg, what: str, unit: Sides) -> Sides:
    """Return the rows and columns of ``block 64x64``, multiples of what an instruction computes."""
    match arg.values:
        case (int(rows), int(columns)) if rows > 0 < columns and not (rows % unit[0] or columns % unit[1]):
            if max(rows, columns) > MOST_SIDE:
                raise DirectiveError(f"tensor: {what} {_by((rows, columns))}: a side is at most {MOST_SIDE}", arg.span)
            return rows, columns
    given = "x".join(map(str, arg.values)) or "nothing"
    raise DirectiveError(f"tensor: {what} needs rows that are a multiple of {unit[0]} and columns that are one of "
                         f"{unit[1]}, such as 64x64, got {given}", arg.span)  # fmt: skip


def _number(arg: Arg, what: str, least: int, most: int) -> int:
    number = positive(arg, what)
    if not least <= number <= most:
        raise DirectiveError(f"tensor: {what} must be {least} to {most}, got {number}", arg.span)
    return number


_LOOPS = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++)\n      #pragma hmppcg {}\n      "
_PRODUCT = "for (int k = 0; k < m; k++)\n        G[i][j] += D[i][k] * F[k][j];"
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"


def _example(text: str, loop: str = _PRODUCT, refused: str = "", dtype: str = "double") -> Example:
    return Example(_LOOPS.format(text) + loop, refused=refused, dtype=dtype)


Tensor.examples = {
    "tensor": replace(_example("tensor"), after="""\
#pragma hmppcg parallel
for (int i = 0; i < n; i++) {
  #pragma hmppcg parallel
  for (int j = 0; j < n; j++) {
    #pragma hmppcg noParallel
    #pragma looptune tensor, block 64x64, warp 32x32, strip 16, stages 4
    for (int k = 0; k < m; k++) {
      G[i][j] += D[i][k] * F[k][j];
    }
  }
}"""),
    "Tensor": _example("Tensor", refused="it adds products of doubles, and here is a float32", dtype="float"),
    "TENSOR": Example(_COPY, refused="loop i reduces nothing"),
    "tensor, stages 3": _example("tensor, stages 3", "for (int k = 0; k < m; k++)\n        G[i][j] += D[i][k];",
                                 "a term is no product of a factor with i and one with j"),
    "tensor, stages 2": _example("tensor, stages 2",
                                 "for (int k = 0; k <= i / 2; k++)\n        G[i][j] += E[k] * D[i][k];",
                                 "its bounds depend on i, a loop of the grid"),
    "tensor, strip 32": _example("tensor, strip 32",
        "for (int k = 0; k < m; k++)\n        G[i][j] *= D[i][k] * F[k][j];",
                                 "it does more than to add products"),
    "tensor, block 32x32, warp 48x16": _example("tensor, block 32x32, warp 48x16",
                                                refused="not divided into warps of 48x16"),
    "tensor, block 60x32": _example("tensor, block 60x32", refused="needs rows that are a multiple of 16"),
    "tensor, block 256x256, warp 16x8": _example("tensor, block 256x256, warp 16x8",
                                                 refused="a block has 512 warps, the limit is 32"),
    "tensor, strip 24": _example("tensor, strip 24", refused="the strip must be a multiple of 16, got 24"),
    "tensor, stages 9": _example("tensor, stages 9", refused="the number of stages must be 2 to 8, got 9"),
    "tensor, shape 8x8x8": _example("tensor, shape 8x8x8",
                                    refused="the shapes are 16x8x16, 16x8x8, 16x8x4, 8x8x4"),
    "tensor, rows 4": _example("tensor, rows 4", refused="tensor has no argument 'rows'"),
    "tensor tf32": _example("tensor tf32", dtype="float",
                            refused="say by how much they may, relative to an element, such as `tensor tf32, "),
    "tensor bf16, tf32": _example("tensor bf16, tf32, tolerance 0.01", dtype="float",
                                  refused="tf32 and bf16 exclude each other"),
    "tensor tf32x3, tolerance 0.01": _example("tensor tf32x3, tolerance 0.01", dtype="float",
                                              refused="tf32x3 is as exact as floats"),
    "tensor tf32, tolerance 0.1, tolerance 0.01": _example("tensor tf32, tolerance 0.1, tolerance 0.01", dtype="float",
                                                           refused="tolerance is said twice"),
    "tensor tf32 3": _example("tensor tf32:3, tolerance 0.01", dtype="float", refused="tf32 takes no value"),
    "tensor bf16, tolerance 2": _example("tensor bf16, tolerance 2", dtype="float",
                                         refused="the tolerance is a number over 0, at most 0.1, such as 1e-2, got 2"),
}  # fmt: skip
