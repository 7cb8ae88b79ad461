"""HIP C++: what is emitted is what Debian's hipcc compiles, for every kernel of the suite; nothing was run on a GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.backends.hip.writer import UNTESTED, file_text, machine
from looptune.core.errors import ResourceError, UsageError
from looptune.deploy import source_to_source
from looptune.lower.pipeline import finish
from looptune.lower.plan import Plan
from looptune.runtime import targets
from tests.helpers import expand_cases, reduction_cases, stage_cases
from tests.helpers.command_line import looptune
from tests.helpers.paths import POLYBENCH
from tests.helpers.suite_winners import winner

KERNELS = tuple(sorted(p.stem for p in POLYBENCH.glob("*.c")))
hipcc = pytest.mark.skipif(shutil.which("hipcc") is None, reason="needs hipcc")


def emitted(kernel: str, lines: list[str], defines: dict[str, str | None]) -> str:
    return source_to_source.emit(POLYBENCH / f"{kernel}.c", lines, target="hip", defines=defines)


def compile_hip(text: str, folder: Path, arch: str = "gfx90a") -> None:
    (folder / "made.hip").write_text(text)
    command = ["hipcc", f"--offload-arch={arch}", "-O1", "-Wall", "-Wno-unused-variable", "-Werror=return-type",
               "-Wno-unused-result", "-c", "made.hip", "-o", "made.o"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_text_is_of_hip_alone(kernel: str) -> None:
    """No name of CUDA's host library, no PTX and no header of NVIDIA; it says that nobody has run it."""
    lines, defines = winner(kernel)
    text = emitted(kernel, lines, defines)
    assert not re.search(r"\bcuda|\basm\b|__maxnreg__|_sync\(", text)
    assert "#include <hip/hip_runtime.h>" in text
    assert "hipStream_t stream)" in text
    assert UNTESTED in " ".join(text.split())


@hipcc
@pytest.mark.wide
@pytest.mark.parametrize("kernel", KERNELS)
def test_hipcc_compiles_the_suite(kernel: str, tmp_path: Path) -> None:
    """Each kernel under the directives that won on an H200."""
    compile_hip(emitted(kernel, *winner(kernel)), tmp_path)


def cases() -> list[Plan]:
    """Tiles filled ahead, parts of reductions, teams, and copies of variables."""
    plans = [stage_cases.planned(stage_cases.CASES[name]) for name in ("the next one ahead", "parts")]
    plans += [reduction_cases.planned(case.text, *case.lines) for case in list(reduction_cases.CASES.values())[::8]]
    return plans + [expand_cases.planned(name) for name in ("doitgen r q", "adi t", "data")]


@hipcc
@pytest.mark.wide
@pytest.mark.parametrize("arch", ["gfx90a", "gfx1030"])
def test_hipcc_compiles_what_directives_make(arch: str, tmp_path: Path) -> None:
    """For wavefronts of 64 and of 32, all in one file."""
    parts = []
    for number, plan in enumerate(cases()):
        text = file_text(finish(plan, machine("off"))).replace('extern "C" ', "")
        parts.append(f"namespace p{number} {{\n{text.replace('#include <hip/hip_runtime.h>', '')}}}\n")
    compile_hip("#include <hip/hip_runtime.h>\n" + "".join(parts), tmp_path, arch)


def test_tensor_cores_are_refused() -> None:
    """AMD's have other instructions."""
    with pytest.raises(ResourceError, match=r"needs tensor cores, which hip cannot use"):
        source_to_source.emit(POLYBENCH / "gemm.c", ["loop k: tensor"], target="hip", dtype="float64")


def test_hip_is_printed_and_not_measured(tmp_path: Path) -> None:
    """``run`` and ``compile`` name the command that prints it; ``emit`` has it, and no PTX of it."""
    (tmp_path / "f.c").write_text("void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] = 2 * x[i]; }\n")
    ran = looptune("run", "f.c", "-D", "n=9", "--target", "hip", cwd=tmp_path)
    assert (ran.code, "the target hip can only be printed: looptune emit FILE --target hip" in ran.err) == (2, True)
    ran = looptune("emit", "f.c", "--target", "hip", cwd=tmp_path)
    assert ran.code == 0
    assert "f_0<<<dim3(" in ran.out
    ran = looptune("emit", "f.c", "--target", "hip", "--ptx", cwd=tmp_path)
    assert (ran.code, "--ptx is for NVIDIA GPUs, and the target is hip" in ran.err) == (2, True)
    with pytest.raises(UsageError, match="can only be printed"):
        targets.check_name("hip")
