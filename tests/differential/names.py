"""Names that C allows and that a generator of Python, CUDA C or OpenCL C may trip over."""

from __future__ import annotations

import random

PLAIN = ("a", "b", "c", "d", "x", "y", "z", "u", "v", "w", "acc", "data", "buf", "A", "B", "C", "S", "res", "tmp")
COUNTERS = ("i", "j", "k", "l", "p", "q", "ii", "jj")
NASTY = (
    "c_div", "c_mod", "c_", "c_x", "int64", "int32", "float32", "float64", "uint8", "uintp", "range", "lane", "block",
    "i__end", "i_r", "x_r", "s_r", "start", "stop", "cores", "chunk", "first", "last", "trips", "np", "math", "cuda",
    "njit", "prange", "lambda_", "lambda", "def", "None", "True", "pass", "is", "in", "from", "import", "global",
    "with", "as", "assert", "del", "try", "and", "or", "not", "threadIdx", "blockIdx", "blockDim", "half", "kernel",
    "local", "get_global_id", "new", "class", "template", "this", "delete", "operator", "sum", "len", "print", "abs_",
    "outer_i", "outer_j", "tile", "x__blocks", "s__team", "stream", "min_int32", "max_int64", "l", "O", "self", "type",
    "thread", "team", "grid", "part", "told", "options", "OPTIONS", "void_", "value", "a__own", "i1", "j_1", "_", "__x",
    "int_", "float4", "dim3", "size", "shape", "trunc_div", "j__end", "shared", "warp", "e", "E", "min2", "i_", "_i",
)  # fmt: skip


class Names:
    """Gives names that are not taken yet."""

    def __init__(self, rng: random.Random, nasty: float) -> None:
        self.rng = rng
        self.nasty = nasty
        self.taken: set[str] = set()

    def new(self, usual: tuple[str, ...] = PLAIN) -> str:
        for _ in range(30):
            name = self.rng.choice(NASTY if self.rng.random() < self.nasty else usual)
            if name not in self.taken:
                break
        else:
            name = f"{self.rng.choice(usual)}{len(self.taken)}"
        self.taken.add(name)
        return name
