"""Run emitted CUDA modules in Numba's simulator.

NUMBA_ENABLE_CUDASIM=1 python -m tests.helpers.cuda_simulator PROGRAMS RESULTS
"""

from __future__ import annotations

import math
import pickle
import re
import sys
import traceback
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from numba import cuda, types

from looptune.ir.interpreter import FUNCTIONS
from tests.helpers.block_simulator import Thread
from tests.helpers.cross_check import Emitted


class Math:
    """C's math.h for a module's ``math``: Python's raises where C gives NaN or an infinity, and rounds to an int."""

    nan, inf = np.nan, np.inf

    def __getattr__(self, name: str) -> object:
        return FUNCTIONS[name] if name in FUNCTIONS else FUNCTIONS["tgamma"] if name == "gamma" else getattr(math, name)


def copy_16_bytes(to: np.ndarray, at: int, source: np.ndarray, place: int) -> None:
    """What the LLVM code of that name does; a GPU faults where a place is no multiple of 16 bytes."""
    count = 16 // source.itemsize
    assert at % count == place % count == 0, f"{at} and {place} are no multiples of {count}"
    to[at : at + count] = source[place : place + count]


class Ahead:
    """Copies that are on their way as long as they may be: each thread's own groups, made when they are awaited."""

    def copy(self, width: int) -> Callable[[np.ndarray, int, np.ndarray, int, bool], None]:
        def begun(to: np.ndarray, at: int, source: np.ndarray, place: int, there: bool) -> None:
            count = width // source.itemsize
            assert at % count == 0, f"{at} is no multiple of {count}"
            assert not there or place % count == 0 <= source.size - place - count, f"{place}, {count}, {source.size}"
            Thread.running.copies[-1].append((to, at, source, place, count if there else 0, count))

        return begun

    def begin(self) -> None:
        Thread.running.copies.append([])

    def awaited(self, left: int) -> Callable[[], None]:
        def arrive() -> None:
            groups = Thread.running.copies
            while len(groups) > left + 1:  # the last one has not been begun
                for to, at, source, place, read, count in groups.pop(0):
                    to[at : at + count] = source[place : place + read] if read else 0

        return arrive

    def names(self) -> dict[str, object]:
        copies: dict[str, object] = {"arrays_are_aligned": lambda: None, "array_is_aligned": lambda _: None}
        copies |= {f"copy_{width}_bytes_ahead": self.copy(width) for width in (4, 8, 16)}
        return {**copies, "begin_copies": self.begin, **{f"await_copies_{n}": self.awaited(n) for n in range(8)}}


def of_lanes(text: str) -> dict[str, object]:
    """What the operations of warps do in one thread, each by its name: a lane reads all that its sums need."""
    return {name: made for name in re.findall(r"^def (\w+)\(typingctx", text, re.MULTILINE) if (made := lane(name))}


FACTORS: dict[int, tuple[np.ndarray, np.ndarray]] = {}
"""What the sums of a lane need of a factor of a step, by the array in which the lane holds its own part of it."""


def rounded(bits: int) -> Callable[[np.ndarray], np.ndarray]:
    """To so many bits of a float's fraction; the interval between two numbers is rounded half up."""

    def made(factors: np.ndarray) -> np.ndarray:
        unit = np.uint32(2 ** (23 - bits))
        whole = factors.astype(np.float32).view(np.uint32)
        return ((whole + unit // np.uint32(2)) // unit * unit).view(np.float32).astype(np.float64)

    return made


ROUNDED: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tf32": rounded(10), "bf16": rounded(7), "": lambda a: a}
"""How factors are rounded, by the word in the name of a product."""


def lane(name: str) -> Callable[..., None] | None:
    """Of lane (g, q), the sums in row g + 8 * (x div 2) and column 2 * q + x mod 2 of each m x 8 of its warp."""
    form = next((form for form in ROUNDED if f"_{form}_" in name), "")
    kind, *numbers = name.partition("_")[0], *map(int, re.findall(r"\d+", name.replace(form, "")))
    own = lambda: divmod(Thread.running.thread_id % 32, 4)  # noqa: E731

    def load(held: np.ndarray, strips: np.ndarray, place: int) -> None:
        count, m, n, steps, side, step = numbers[:6]
        (g, q), right = own(), "_right_" in name
        every = product(range(count), range(2 if right else m // 8))
        rows = [n * i + 2 * q + x if right else m * i + g + 8 * x for i, x in every]
        thread = Thread.running.thread_id % 32
        if "matrices" in name:
            first = place - ((thread % 8 + thread // 16 * 8) if right else thread % 16) * side
            first -= (thread % 16 // 8 if right else thread // 16) * 4
        else:
            first = place - g * side - q * step
        found = np.array([[strips[first + r * side + k * step] for k in range(steps)] for r in rows], np.float64)
        FACTORS[id(held)] = found, held

    def multiply(sums: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        high, wide, m = numbers[:3]
        a, b = (ROUNDED[form](FACTORS[id(side)][0]) for side in (left, right))
        with np.errstate(over="ignore"):
            for x, (i, j, r) in enumerate(product(range(high), range(wide), range(m // 4))):
                sums[x] += sums.dtype.type(a[i * (m // 8) + r // 2] @ b[2 * j + r % 2])

    def gather(sums: np.ndarray, strip: np.ndarray) -> None:
        sums += strip
        strip[:] = 0

    def store(sums: np.ndarray, strips: np.ndarray, place: int) -> None:
        rows, columns, m, _, _, pitch, _ = numbers
        blocks = ((i, j) for i in range(0, rows, m) for j in range(0, columns, 8))
        for x, (i, j, r) in enumerate((i, j, r) for i, j in blocks for r in range(m // 4)):
            strips[place + (i + 8 * (r // 2)) * pitch + j + r % 2] = sums[x]

    def clear(sums: np.ndarray) -> None:
        sums[:] = 0

    found: dict[str, Callable[..., None]] = {
        "load": load, "multiply": multiply, "gather": gather, "store": store, "clear": clear,
    }  # fmt: skip
    return found.get(kind) if numbers else None


def wrapped(self: types.Integer, value: object) -> np.integer:
    """``uint32(value)`` as a GPU converts; NumPy raises where a Python integer does not fit."""
    number = int(value) % 2**self.bitwidth  # type: ignore[call-overload]
    return np.array(number, f"uint{self.bitwidth}").astype(self.name)[()]


types.Integer.cast_python_value = wrapped


def run(program: Emitted) -> dict[str, np.ndarray]:
    module: dict[str, object] = {"__name__": program.name}
    exec(compile(program.source.replace(", alignment=16", ""), program.name, "exec"), module)
    module |= {"math": Math(), "copy_16_bytes": copy_16_bytes, **Ahead().names(), **of_lanes(program.source)}
    type(cuda.to_device(np.zeros(1))).__cuda_array_interface__ = {"data": (0, False)}
    given = {n: cuda.to_device(a) if isinstance(a, np.ndarray) else a for n, a in program.arguments.items()}
    with np.errstate(all="ignore"):
        module[program.entry](*given.values())  # type: ignore[operator]
    return {n: given[n].copy_to_host() for n, a in program.arguments.items() if isinstance(a, np.ndarray)}


def main(given: Path, result: Path) -> None:
    found: dict[str, dict[str, np.ndarray] | str] = {}
    for program in pickle.loads(given.read_bytes()):
        try:
            found[program.name] = run(program)
        except Exception:
            found[program.name] = traceback.format_exc(limit=-3)
    result.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
