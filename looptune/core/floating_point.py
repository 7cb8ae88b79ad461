"""Floating-point semantics: those of C, and what the user allows or forbids in addition.

    reorder     the terms of a recognised sum or product may come in any order
    contract    a * b + c may round once: as the C compiler here does it ("cc"), wherever a device can ("fast"), never
                ("off")

Everything else is C's on every target: each operation rounds as IEEE 754 says, zeros have signs, nothing is divided by
a reciprocal.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from looptune.core import cache_folder
from looptune.core.errors import UsageError

Contract = Literal["cc", "fast", "off"]
CONTRACTS: tuple[Contract, ...] = get_args(Contract)

# (1 + 2^-27)^2 - 1 - 2^-26 is 2^-54: a product that is rounded on its own loses it.
_PROBE = """\
volatile double a = 1.0 + 0x1p-27, c = -1.0 - 0x1p-26;
__attribute__((noinline)) static double f(double x, double y) { return x * x + y; }
int main(void) { return f(a, c) != 0.0; }
"""
_ANSWER_S = 20.0
"""So long the compiler may take; one that takes longer counts as none."""


@dataclass(frozen=True, slots=True)
class Floats:
    """The floating-point transformations that are allowed: reordering of recognised sums, and contraction."""

    reorder: bool = True
    contract: Contract = "cc"

    @property
    def contracts_here(self) -> bool:
        """Return whether products are contracted with sums on this machine's processor."""
        return c_compiler_contracts() if self.contract == "cc" else self.contract == "fast"

    def options(self, target: str) -> dict[str, bool | str]:
        """Return the options on which a time on the target depends, as databases store them.

        ``contract`` only if it is not the default.
        """
        if target == "numba-cpu":
            contract, usual = ("fast" if self.contracts_here else "off"), "off"
        else:
            contract, usual = self.contract, ("cc" if self.reorder else "off")
        return {"reassociate": self.reorder, **({} if contract == usual else {"contract": contract})}


DEFAULT = Floats()
"""What holds where nothing is said."""
STRICT = Floats(reorder=False, contract="off")
"""What --no-reassociate says."""


def floats_of_options(*, strict: bool = False, contract: str | None = None) -> Floats:
    """Return the settings for ``--no-reassociate`` and ``--fp-contract``.

    Raises UsageError if they contradict each other.
    """
    if contract not in (None, *CONTRACTS):
        raise UsageError(f"unknown contraction {contract!r}: choose one of {', '.join(CONTRACTS)}")
    if strict and contract not in (None, "off"):
        raise UsageError(f"--no-reassociate rounds every operation on its own: leave out --fp-contract {contract}")
    found = next((c for c in CONTRACTS if c == contract), "off" if strict else "cc")
    return Floats(not strict, found)


def c_compiler_contracts() -> bool:
    """Return whether the C compiler of this machine (CC, else cc) contracts products with sums at -O2 and the CFLAGS.

    False if there is no compiler.
    """
    return _contracts(os.environ.get("CC", "cc"), os.environ.get("CFLAGS", ""))


@cache
def _contracts(compiler: str, flags: str) -> bool:
    try:
        command = [*shlex.split(compiler), "-O2", *shlex.split(flags)]
    except ValueError:  # a quotation that has no end
        return False
    with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
        source, program = Path(folder) / "probe.c", Path(folder) / "probe"
        source.write_text(_PROBE)
        try:
            subprocess.run(
                [*command, str(source), "-o", str(program)], check=True, capture_output=True, timeout=_ANSWER_S
            )
            return subprocess.run([str(program)], check=False, timeout=_ANSWER_S).returncode == 1
        except (OSError, subprocess.SubprocessError):
            return False
