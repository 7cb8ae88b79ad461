"""The programs of the suite, each with its space of versions."""

from __future__ import annotations

from functools import cache

from looptune.tune.space.space import Configuration, parse
from tests.helpers.paths import POLYBENCH, ROOT

PROGRAMS = {
    **{path.stem: path for path in sorted(POLYBENCH.glob("*.c"))},
    "hall-carr-hart": POLYBENCH / "gemm.c",
    "jiang-snir": POLYBENCH / "gemm.c",
    "product": ROOT / "gatlas" / "product.c",
}
"""The C file that a space file is for."""
KERNELS = list(PROGRAMS)


def space_text(kernel: str) -> str:
    beside = PROGRAMS[kernel].with_name(f"{kernel}.pragmas")
    return (beside if beside.exists() else ROOT / "pragmas" / f"{kernel}.pragmas").read_text()


@cache
def configurations(kernel: str) -> tuple[Configuration, ...]:
    return tuple(parse(space_text(kernel), f"{kernel}.pragmas"))
