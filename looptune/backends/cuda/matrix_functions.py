"""The device functions of ``codegen.matrix_ops`` in CUDA C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.backends.codegen.matrix_ops import StripProduct, clear_name, constants, instruction, store_name
from looptune.lower.fragments import GROUPS, Fragment

if TYPE_CHECKING:
    from looptune.lower.warp_tiles import WarpTiles

_CLEAR = """\
__device__ __forceinline__ void {name}({number} *sums)
{{
    #pragma unroll
    for (int k = 0; k < {count}; k++) {{
        sums[k] = 0;
    }}
}}
"""
_FRAGMENT = """\
__device__ __forceinline__ void {name}({types[0]} *sums, const {types[1]} *left, const {types[1]} *right)
{{
    asm volatile("{text};"
                 : {sums} : {factors});
}}
"""
_MULTIPLY = """\
__device__ __forceinline__ void {name}(double *sums, const double *left, const double *right)
{{
    #pragma unroll
    for (int k = 0; k < {strip}; k += {steps}) {{
        double rows[{high}][{l}], columns[{r}];
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            #pragma unroll
            for (int x = 0; x < {l}; x++) {{
                rows[i][x] = left[({m} * i + {groups} * (x % {upper})) * {a0} + (k + {quads} * (x / {upper})) * {a1}];
            }}
        }}
        #pragma unroll
        for (int j = 0; j < {wide}; j++) {{
            #pragma unroll
            for (int x = 0; x < {r}; x++) {{
                columns[x] = right[{n} * j * {b0} + (k + {quads} * x) * {b1}];
            }}
            #pragma unroll
            for (int i = 0; i < {high}; i++) {{
                {multiply}(&sums[(i * {wide} + j) * {s}], rows[i], columns);
            }}
        }}
    }}
}}
"""
_PART = """\
__device__ __forceinline__ void mma_part(float value, unsigned int *parts)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(parts[0]) : "f"(value));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(parts[1]) : "f"(value - __uint_as_float(parts[0])));
}
"""
_PARTS = """\
__device__ __forceinline__ void {name}(float *sums, const float *left, const float *right)
{{
    unsigned int rows[{high}][{strip} / {steps}][2][{l}], columns[{strip} / {steps}][2][{r}], parts[2];
    #pragma unroll
    for (int k = 0; k < {strip}; k += {steps}) {{
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            #pragma unroll
            for (int x = 0; x < {l}; x++) {{
                int row = {m} * i + {groups} * (x % {upper}), step = k + {quads} * (x / {upper});
                mma_part(left[row * {a0} + step * {a1}], parts);
                rows[i][k / {steps}][0][x] = parts[0];
                rows[i][k / {steps}][1][x] = parts[1];
            }}
        }}
    }}
    #pragma unroll
    for (int j = 0; j < {wide}; j++) {{
        #pragma unroll
        for (int k = 0; k < {strip}; k += {steps}) {{
            #pragma unroll
            for (int x = 0; x < {r}; x++) {{
                mma_part(right[{n} * j * {b0} + (k + {quads} * x) * {b1}], parts);
                columns[k / {steps}][0][x] = parts[0];
                columns[k / {steps}][1][x] = parts[1];
            }}
        }}
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            float added[{s}] = {{}};
            #pragma unroll
            for (int k = 0; k < {strip} / {steps}; k++) {{
                {multiply}(added, rows[i][k][1], columns[k][0]);
                {multiply}(added, rows[i][k][0], columns[k][1]);
                {multiply}(added, rows[i][k][0], columns[k][0]);
            }}
            #pragma unroll
            for (int x = 0; x < {s}; x++) {{
                sums[(i * {wide} + j) * {s} + x] += added[x];
            }}
        }}
    }}
}}
"""
_STORE = """\
__device__ __forceinline__ void {name}(const {number} *sums, {number} *to)
{{
    #pragma unroll
    for (int i = 0; i < {high}; i++) {{
        #pragma unroll
        for (int j = 0; j < {wide}; j++) {{
            #pragma unroll
            for (int x = 0; x < {s}; x++) {{
                to[({m} * i + {groups} * (x / 2)) * {pitch} + {n} * j + x % 2] = sums[(i * {wide} + j) * {s} + x];
            }}
        }}
    }}
}}
"""


C = {"float64": "double", "float32": "float"}


def clear(count: int, dtype: str) -> dict[str, str]:
    """Return the function that clears sums, by its name."""
    name = clear_name(count, dtype)
    return {name: _CLEAR.format(name=name, count=count, number=C[dtype])}


def multiply(product: StripProduct) -> dict[str, str]:
    """Return the functions for the product of two strips, the last one first, by their names."""
    fragment = f"mma_{'parts_' * product.split}{product.fragment.name}"
    text = (_PARTS if product.split else _MULTIPLY).format(name=product.name, multiply=fragment, **constants(product))
    functions = {fragment: _fragment(product.fragment, fragment, product.split), product.name: text}
    return functions | ({"mma_part": _PART} if product.split else {})


def store(tiles: WarpTiles) -> dict[str, str]:
    """Return the function that stores sums, by its name."""
    shape, name = tiles.shape, store_name(tiles)
    f = shape.fragment
    return {name: _STORE.format(name=name, high=shape.high_fragments, wide=shape.wide_fragments, s=f.sum_registers,
                                m=f.rows, n=f.columns, groups=GROUPS, pitch=tiles.sum_pitch,
                                number=C[tiles.dtype])}  # fmt: skip


def _fragment(f: Fragment, name: str, split: bool) -> str:
    number, factor = ("f", "r") if split else ("d", "d")
    counts = (f.sum_registers, f.left_registers, f.right_registers, f.sum_registers)
    numbers = iter(range(sum(counts)))
    sums, left, right, _ = ("{" + ", ".join(f"%{next(numbers)}" for _ in range(n)) + "}" for n in counts)
    factors = [f'"{factor}"({side}[{k}])' for side, n in (("left", counts[1]), ("right", counts[2])) for k in range(n)]
    held = ", ".join(f'"+{number}"(sums[{k}])' for k in range(f.sum_registers))
    return _FRAGMENT.format(name=name, types=("float", "unsigned int") if split else ("double", "double"),
                            text=f"{instruction(f, split)} {sums}, {left}, {right}, {sums}", sums=held,
                            factors=", ".join(factors))  # fmt: skip
