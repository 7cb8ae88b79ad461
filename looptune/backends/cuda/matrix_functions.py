"""The device functions of ``codegen.matrix_ops`` in CUDA C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.backends.codegen.matrix_ops import (
    LOAD_MATRICES,
    FragmentLoad,
    StepProduct,
    clear_name,
    gather_name,
    instruction,
    store_name,
)
from looptune.lower.fragments import GROUPS

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
_LOAD = """\
__device__ __forceinline__ void {name}({number} *held, const {number} *from)
{{
    const int places[{count}] = {{{places}}};
    #pragma unroll
    for (int k = 0; k < {count}; k++) {{
        held[k] = from[places[k]];
    }}
}}
"""
_MATRICES = """\
__device__ __forceinline__ void {name}(float *held, const float *from)
{{
    const int places[{count}] = {{{places}}};
    #pragma unroll
    for (int k = 0; k < {count}; k++) {{
        float *to = held + 4 * k;
        asm volatile("{load} {{%0, %1, %2, %3}}, [%4];"
                     : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                     : "r"((unsigned int)__cvta_generic_to_shared(from + places[k])) : "memory");
    }}
}}
"""
_MULTIPLY = """\
__device__ __forceinline__ void {name}(double *sums, const double *left, const double *right)
{{
    #pragma unroll
    for (int j = 0; j < {wide}; j++) {{
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            {multiply}(&sums[(i * {wide} + j) * {s}], &left[i * {l}], &right[j * {r}]);
        }}
    }}
}}
"""
_PART = """\
/* The first 11 bits of a float, rounded, and the rest. */
__device__ __forceinline__ void mma_part(float value, unsigned int *high, unsigned int *low)
{
    *high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
    *low = __float_as_uint(value - __uint_as_float(*high));
}
"""
_PARTS = """\
__device__ __forceinline__ void {name}(float *sums, const float *left, const float *right)
{{
    unsigned int rows[2][{high}][{l}], columns[2][{r}];
    #pragma unroll
    for (int i = 0; i < {high}; i++) {{
        #pragma unroll
        for (int x = 0; x < {l}; x++) {{
            mma_part(left[i * {l} + x], &rows[0][i][x], &rows[1][i][x]);
        }}
    }}
    #pragma unroll
    for (int j = 0; j < {wide}; j++) {{
        #pragma unroll
        for (int x = 0; x < {r}; x++) {{
            mma_part(right[j * {r} + x], &columns[0][x], &columns[1][x]);
        }}
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            {multiply}(&sums[(i * {wide} + j) * {s}], rows[1][i], columns[0]);
        }}
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            {multiply}(&sums[(i * {wide} + j) * {s}], rows[0][i], columns[1]);
        }}
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            {multiply}(&sums[(i * {wide} + j) * {s}], rows[0][i], columns[0]);
        }}
    }}
}}
"""
_ROUND = {
    "tf32": """\
/* A float rounded to 11 bits. */
__device__ __forceinline__ unsigned int mma_tf32(float value)
{
    unsigned int rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
}
""",
    "bf16": """\
/* Two floats rounded to 8 bits each, the first in the lower half. */
__device__ __forceinline__ unsigned int mma_bf16(float first, float second)
{
    unsigned int rounded;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rounded) : "f"(second), "f"(first));
    return rounded;
}
""",
}
_ROUNDED = """\
__device__ __forceinline__ void {name}(float *sums, const float *left, const float *right)
{{
    unsigned int rows[{high}][{pl}], column[{pr}];
    #pragma unroll
    for (int i = 0; i < {high}; i++) {{
{round_left}
    }}
    #pragma unroll
    for (int j = 0; j < {wide}; j++) {{
{round_right}
        #pragma unroll
        for (int i = 0; i < {high}; i++) {{
            {multiply}(&sums[(i * {wide} + j) * {s}], rows[i], column);
        }}
    }}
}}
"""
_GATHER = """\
__device__ __forceinline__ void {name}(float *sums, float *strip)
{{
    #pragma unroll
    for (int k = 0; k < {count}; k++) {{
        sums[k] += strip[k];
        strip[k] = 0;
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


def load(made: FragmentLoad) -> dict[str, str]:
    """Return the function that loads what a lane holds of a factor, by its name."""
    places = made.matrix_places() if made.matrices else made.places()
    text = (_MATRICES if made.matrices else _LOAD).format(
        name=made.name, number=C[made.dtype], count=len(places), places=", ".join(map(str, places)), load=LOAD_MATRICES,
    )  # fmt: skip
    return {made.name: text}


def multiply(product: StepProduct) -> dict[str, str]:
    """Return the functions for the product of a step, the last one first, by their names."""
    form, f = product.form, product.fragment
    fragment = f"mma_{f'{form}_' if form else ''}{f.name}"
    constants = {"name": product.name, "multiply": fragment, **product.constants}
    functions = {fragment: _fragment(product, fragment)}
    match form:
        case "":
            functions[product.name] = _MULTIPLY.format(**constants)
        case "parts":
            functions |= {product.name: _PARTS.format(**constants), "mma_part": _PART}
        case _:
            rounding = {
                "round_left": _rounding(product, "rows[i]", "left", "i", f.left_registers, f.rows // GROUPS),
                "round_right": _rounding(product, "column", "right", "j", f.right_registers, 1),
            }
            functions |= {product.name: _ROUNDED.format(**constants, **rounding), f"mma_{form}": _ROUND[form]}
    return functions


def _rounding(product: StepProduct, to: str, side: str, counter: str, registers: int, upper: int) -> str:
    """Return the lines that round what a lane holds of a fragment, one for each register of the instruction."""
    lines = []
    for number, held in enumerate(product.register_factors(registers, upper)):
        factors = ", ".join(f"{side}[{counter} * {registers} + {k}]" for k in held)
        lines.append(f"        {to}[{number}] = mma_{product.form}({factors});")
    return "\n".join(lines)


def gather(count: int) -> dict[str, str]:
    """Return the function that adds the sums of a strip to others, by its name."""
    return {gather_name(count): _GATHER.format(name=gather_name(count), count=count)}


def store(tiles: WarpTiles) -> dict[str, str]:
    """Return the function that stores sums, by its name."""
    shape, name = tiles.shape, store_name(tiles)
    f = shape.fragment
    return {name: _STORE.format(name=name, high=shape.high_fragments, wide=shape.wide_fragments, s=f.sum_registers,
                                m=f.rows, n=f.columns, groups=GROUPS, pitch=tiles.sum_pitch,
                                number=C[tiles.dtype])}  # fmt: skip


def _fragment(product: StepProduct, name: str) -> str:
    f, floats = product.fragment, bool(product.form)
    number, factor = ("f", "r") if floats else ("d", "d")
    held = (
        len(product.register_factors(n, upper))
        for n, upper in ((f.left_registers, f.rows // GROUPS), (f.right_registers, 1))
    )
    counts = (f.sum_registers, *held, f.sum_registers)
    numbers = iter(range(sum(counts)))
    sums, left, right, _ = ("{" + ", ".join(f"%{next(numbers)}" for _ in range(n)) + "}" for n in counts)
    factors = [f'"{factor}"({side}[{k}])' for side, n in (("left", counts[1]), ("right", counts[2])) for k in range(n)]
    added = ", ".join(f'"+{number}"(sums[{k}])' for k in range(f.sum_registers))
    return _FRAGMENT.format(name=name, types=("float", "unsigned int") if floats else ("double", "double"),
                            text=f"{instruction(f, product.form)} {sums}, {left}, {right}, {sums}", sums=added,
                            factors=", ".join(factors))  # fmt: skip
