"""The C compiler of this machine: its name, its version and its options."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

COMPILE_S = 300.0
"""Nothing that looptune can read takes a C compiler this long."""

OPTIMISED = ("-O3", "-fno-strict-aliasing")
"""Of the original loops: none of these changes what they compute."""


def floating_point_flags(contracts: bool, machine: str = platform.machine()) -> tuple[str, ...]:
    """Return the flags for this processor's vector instructions, and for or against contraction."""
    native = ("-march=native",) if machine in ("x86_64", "AMD64") else ()
    return (*native, f"-ffp-contract={'fast' if contracts else 'off'}")


_PROBE = """\
__attribute__((noinline)) static float product({kind} a, {kind} b) {{ return a * b; }}
int main(int argc, char **argv) {{ return product({near} * argc, {near}) == {rounded}; }}
"""
"""The square of 1 + e is 1 + 2e + e^2, of which a product that is rounded to 16 bits keeps two terms."""
_EPS = {"_Float16": 2.0**-10, "__bf16": 2.0**-7}


def half_flags(*texts: str) -> tuple[str, ...] | None:
    """Return the flags with which the compiler computes the floats of 16 bits that the texts name in float.

    None if there are no such flags. That is C23's FLT_EVAL_METHOD 0, and what gcc does by itself unless the processor
    has such arithmetic.
    """
    kinds = [kind for kind in _EPS if any(kind in text for text in texts)]
    for flags in ((), ("-mno-avx512fp16",)):
        if not any(_rounds_halves(kind, flags) for kind in kinds):
            return flags
    return None


@cache
def _rounds_halves(kind: str, flags: tuple[str, ...]) -> bool:
    """Tell whether the compiler rounds every operation on ``kind`` to that type, or does not take the flags.

    False if it has no such type: its own message says so of the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "probe.c", Path(folder) / "probe"
        near, twice = (f"{1 + k * _EPS[kind]!r}f" for k in (1, 2))
        source.write_text(_PROBE.format(kind=kind, near=near, rounded=twice))
        given = (*OPTIMISED, *floating_point_flags(False), *flags, "-w", str(source), "-o", str(program))
        if compile_error(given) is not None:
            return bool(flags)
        return subprocess.run([str(program)], check=False, timeout=COMPILE_S).returncode == 1


@cache
def compiler_command() -> tuple[str, ...]:
    """Return the command of the C compiler (CC, else cc, gcc or clang), or () if there is none."""
    given = os.environ.get("CC", "").split()
    commands = ([given] if given else []) + [["cc"], ["gcc"], ["clang"]]
    return next((tuple(command) for command in commands if shutil.which(command[0]) is not None), ())


@cache
def version() -> str:
    """Return the command with the version of the compiler, as ``cc 12.2.0``, or "" if there is none."""
    command = compiler_command()
    if not command:
        return ""
    name = Path(command[0]).name
    try:
        done = subprocess.run([*command, "-dumpfullversion", "-dumpversion"], capture_output=True, timeout=COMPILE_S)
    except (OSError, subprocess.TimeoutExpired):
        return name
    words = done.stdout.decode(errors="replace").split()
    return f"{name} {words[0]}" if done.returncode == 0 and words else name


def compile_error(arguments: Sequence[str]) -> str | None:
    """Run the compiler, and return None if it succeeds, else its first error in English."""
    command = compiler_command()
    if not command:
        return "there is no C compiler"
    name = Path(command[0]).name
    try:
        done = subprocess.run(["env", "LC_ALL=C", *command, *arguments], capture_output=True, timeout=COMPILE_S)
    except subprocess.TimeoutExpired:
        return f"{name} took more than {COMPILE_S:g} s"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    errors = [line for line in said if "error: " in line]
    first = (errors + said + [f"{name} ended with {done.returncode}"])[0]
    return f"{first}: gcc has this type from version 13 on" if "unknown type name '__bf16'" in first else first


def symbolic_flags() -> tuple[str, ...]:
    """Return linker flags for a library that calls its own functions, not equally named ones of the process."""
    return () if sys.platform == "darwin" else ("-Wl,-Bsymbolic",)


def allow_undefined_flags() -> tuple[str, ...]:
    """Return linker flags for a program of which one function is called; what the others need may be missing."""
    if sys.platform == "darwin":
        return ("-Wl,-undefined,dynamic_lookup",)
    # At a place of its own choice a program is refused by the loader.
    return ("-no-pie", "-Wl,--unresolved-symbols=ignore-all")
