"""The device functions of ``codegen.matrix_ops`` in CUDA C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.backends.codegen.matrix_ops import StripProduct, clear_name, constants, instruction, store_name
from looptune.lower.fragments import GROUPS, Fragment

if TYPE_CHECKING:
    from looptune.lower.warp_tiles import WarpTiles

_CLEAR = """\
__device__ __forceinline__ void {name}(double *sums)
{{
    #pragma unroll
    for (int k = 0; k < {count}; k++) {{
        sums[k] = 0;
    }}
}}
"""
_FRAGMENT = """\
__device__ __forceinline__ void {name}(double *sums, const double *left, const double *right)
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
_STORE = """\
__device__ __forceinline__ void {name}(const double *sums, double *to)
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


def clear(count: int) -> dict[str, str]:
    """Return the function that clears sums, by its name."""
    return {clear_name(count): _CLEAR.format(name=clear_name(count), count=count)}


def multiply(product: StripProduct) -> dict[str, str]:
    """Return the functions for the product of two strips, the last one first, by their names."""
    fragment = f"mma_{product.fragment.name}"
    text = _MULTIPLY.format(name=product.name, multiply=fragment, **constants(product))
    return {fragment: _fragment(product.fragment, fragment), product.name: text}


def store(tiles: WarpTiles) -> dict[str, str]:
    """Return the function that stores sums, by its name."""
    shape, name = tiles.shape, store_name(tiles)
    f = shape.fragment
    return {name: _STORE.format(name=name, high=shape.high_fragments, wide=shape.wide_fragments, s=f.sum_registers,
                                m=f.rows, n=f.columns, groups=GROUPS, pitch=tiles.sum_pitch)}  # fmt: skip


def _fragment(f: Fragment, name: str) -> str:
    counts = (f.sum_registers, f.left_registers, f.right_registers, f.sum_registers)
    numbers = iter(range(sum(counts)))
    sums, left, right, _ = ("{" + ", ".join(f"%{next(numbers)}" for _ in range(n)) + "}" for n in counts)
    factors = [f'"d"({side}[{k}])' for side, n in (("left", counts[1]), ("right", counts[2])) for k in range(n)]
    held = ", ".join(f'"+d"(sums[{k}])' for k in range(f.sum_registers))
    return _FRAGMENT.format(name=name, text=f"{instruction(f)} {sums}, {left}, {right}, {sums}", sums=held,
                            factors=", ".join(factors))  # fmt: skip
