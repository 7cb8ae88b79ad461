"""``maxregs``: no thread of a kernel takes more registers, in a sweep's kernels, in files, and in what ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from looptune.backends.codegen.register_limits import max_registers
from looptune.cli.main import cli
from looptune.deploy import build
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, synthetic_database
from tests.helpers.built_modules import imported
from tests.helpers.paths import POLYBENCH

GEMM = POLYBENCH / "gemm.c"
SIZES = {"ni": 64, "nj": 64, "nk": 64}
MANY = ("loop i: unroll 8, jam", "loop j: unroll 4, jam")
"""As many sums as do not fit into what is allowed."""
TWO = """void f(int n, float a[n], float b[n])
{
    #pragma looptune maxregs 64
    for (int i = 0; i < n; i++)
        a[i] = a[i] * 2;
    for (int i = 0; i < n; i++)
        b[i] = b[i] * 2;
}
"""
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


def gemm(*lines: str) -> Plan:
    done = schedule(Analysis(load(GEMM).codelet), parse_lines((*MANY, *lines)), SIZES)
    return lower(specialize(done.codelet, SIZES), blocks=True)


def limits(*lines: str) -> list[int]:
    return [max_registers(k) for k in lower(schedule(Analysis(load(TWO).codelet), parse_lines(lines)).codelet).kernels]


@pytest.mark.wide
@cuda
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
def test_no_thread_takes_more(target: str) -> None:
    """What the linker says of the machine code; without the directive it takes what it likes."""
    backend = targets.backend(target, None)
    (free,) = backend.build(gemm()).resources
    (held,) = backend.build(gemm("codelet: maxregs 40")).resources
    assert free.registers > 40
    assert held.registers <= 40
    assert held.local_bytes > free.local_bytes == 0


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("numba-cuda", "@cuda.jit(max_registers=40)"),
        ("cuda-c", "__maxnreg__(40)"),
        ("opencl", None),
        ("numba-cpu", None),
    ],
)
def test_files_say_it(target: str, word: str | None) -> None:
    """Each in its language; on a CPU and in OpenCL nothing is different."""
    if target in ("numba-cuda", "cuda-c") and not cross_check.CUDA:
        pytest.skip("needs the package numba-cuda")
    text, plain = (targets.backend(target, None).emit(gemm(*lines)) for lines in (("codelet: maxregs 40",), ()))
    if word is None:
        assert text == plain
    else:
        assert text.count(word) == 1
        assert word not in plain


def test_each_nest_has_its_own() -> None:
    """A loop covers those inside; one from outside takes the place of those in the file."""
    assert limits() == [64, 0]
    assert limits("loop 2: maxregs 32") == [64, 32]
    assert limits("codelet: maxregs 48") == [48, 48]


def test_it_is_written_back(tmp_path: Path) -> None:
    """As a pragma, once for a nest; what is written so is read so."""
    path, again = tmp_path / "f.c", tmp_path / "g.c"
    path.write_text(TWO)
    line = ["transform", str(path), "--directive", "loop 2: maxregs 32"]
    said = CliRunner().invoke(cli, line)
    assert said.exit_code == 0, said.output
    assert re.findall(r"#pragma looptune maxregs (\d+)", said.output) == ["64", "32"]
    again.write_text(said.output)
    kernels = lower(schedule(Analysis(load(again).codelet), ()).codelet).kernels
    assert [max_registers(k) for k in kernels] == [64, 32]


@pytest.mark.wide
@cuda
def test_what_ships_has_it(tmp_path: Path) -> None:
    """A module's kernels are linked as the sweep's were."""
    unit = load(GEMM, defines=dict.fromkeys(("NI", "NJ", "NK"), "64"))
    best = "\n".join((*MANY, "codelet: maxregs 40"))
    db = synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, unit.values), {"": 9.0, best: 5.0})
    (tmp_path / "made.py").write_text(build.as_python(unit, db, "auto", ""))
    made = imported(tmp_path / "made.py")
    used = {
        k.targetoptions.get("max_registers"): registers(made.cubin(k, s, "sm_90")) for k, s in made.SIGNATURES.items()
    }
    assert used[40] <= 40


def registers(cubin: bytes) -> int:
    """EIATTR_REGCOUNT of its one kernel: format 4, attribute 0x2f, eight bytes, the symbol and the number."""
    (found,) = re.findall(rb"\x04\x2f\x08\x00.{4}(.{4})", cubin, re.DOTALL)
    return int.from_bytes(found, "little")
