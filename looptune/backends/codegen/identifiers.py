"""Names of a C program in generated text: renamed if they are words of the dialect or names that are generated."""

from __future__ import annotations

from collections.abc import Collection

from looptune.backends.codegen import half
from looptune.backends.codegen.python import MADE
from looptune.ir.interpreter import FUNCTIONS


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_C = _words(
    "auto bool break case char const continue default do double else enum extern float for goto if inline int long",
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while",
    "asm linux unix lane slot live copy__tile",
)
_CPP = _words(
    "alignas alignof and and_eq bitand bitor catch char16_t char32_t class compl concept consteval constexpr",
    "constinit const_cast decltype delete dynamic_cast explicit export false friend main mutable namespace new",
    "noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert",
    "static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq",
)
_MATH = frozenset(FUNCTIONS) | {f"{fn}f" for fn in FUNCTIONS} | {"min", "max", "abs", "llabs", "half"}
_HELPERS = frozenset(
    {f"{op}_{sign}int{bits}" for op in ("min", "max") for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {f"{op}_float{bits}" for op in ("min", "max") for bits in (32, 64)}
    | {f"copy_{width}_bytes{ahead}" for width in (4, 8, 16) for ahead in ("", "_ahead")}
    | {f"await_copies_{groups}" for groups in range(4)}
    | {*half.NAMES}
    | {"begin_copies", "any_of_block", "all_blocks_meet", "block_leaves", "launch_together"}
)
_SCALARS = _words("char uchar short ushort int uint long ulong longlong ulonglong float double half")
_VECTORS = frozenset(f"{kind}{n}" for kind in _SCALARS for n in (1, 2, 3, 4, 8, 16))
_OWN = _C | _MATH | _HELPERS | _VECTORS

CUDA_NAMES = _OWN | _CPP | _words(
    "threadIdx blockIdx blockDim gridDim warpSize stream launched dim3 size_t cudaError_t cudaStream_t",
    "__popcll __clzll hipError_t hipStream_t",
)  # fmt: skip
OPENCL_NAMES = _OWN | _words(
    "kernel global local constant private generic read_only write_only read_write uniform pipe complex imaginary",
    "uchar ushort uint ulong half quad size_t ptrdiff_t intptr_t uintptr_t image2d_t image3d_t sampler_t event_t",
    "barrier dot cross length distance normalize clamp mix step sign smoothstep degrees radians select mad rotate",
    "hadd isnan isinf any all shuffle printf vload4 vstore4 get_local_id get_group_id NAN INFINITY any__flag",
)


def avoid_reserved(name: str, reserved: Collection[str]) -> str:
    """Return the name, with an underscore appended if it would shadow one; different names remain different.

    >>> avoid_reserved("float4", CUDA_NAMES), avoid_reserved("float4_", CUDA_NAMES), avoid_reserved("gemm", CUDA_NAMES)
    ('float4_', 'float4__', 'gemm')
    """
    taken = name.rstrip("_") in reserved or name.endswith((*MADE, "__blocks", "__bytes"))
    return f"{name}_" if taken else name
