"""``launchbounds``: by what a compiler is told of blocks it shares out the registers; in files, and in what ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from looptune.backends.codegen.register_limits import launch_bounds
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

COVAR = POLYBENCH / "covar.c"
SIZES = {"m": 64, "n": 64}
TWO = """void f(int n, float a[n], float b[n])
{
    #pragma looptune launchbounds 2
    for (int i = 0; i < n; i++)
        a[i] = a[i] * 2;
    for (int i = 0; i < n; i++)
        b[i] = b[i] * 2;
}
"""
THREADS = r"\.maxntid (\d+)"
BLOCKS = r"\.minnctapersm (\d+)"
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


def covar(*lines: str) -> Plan:
    done = schedule(Analysis(load(COVAR).codelet), parse_lines(lines), SIZES)
    return lower(specialize(done.codelet, SIZES), blocks=True)


def told(*lines: str) -> list[tuple[int, ...]]:
    done = schedule(Analysis(load(TWO).codelet), parse_lines(lines)).codelet
    return [launch_bounds(k) for k in lower(done).kernels]


@pytest.mark.wide
@cuda
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
@pytest.mark.parametrize(
    ("lines", "threads", "blocks"),
    [
        ((), ["256"] * 3, []),
        (("codelet: launchbounds 3",), ["256"] * 3, ["3"] * 3),
        (("codelet: launchbounds off",), [], []),
        (("codelet: grid blocksize 32x2",), ["64"] * 3, []),
        (("codelet: maxregs 32",), [], []),
    ],
)
def test_both_compilers_are_told_the_same(
    target: str, lines: tuple[str, ...], threads: list[str], blocks: list[str]
) -> None:
    text = targets.ptx(target, covar(*lines), "sm_90")
    assert re.findall(THREADS, text) == threads
    assert re.findall(BLOCKS, text) == blocks


@pytest.mark.wide
@cuda
def test_registers_are_shared_out_by_it() -> None:
    """Of the kernel that COVAR's time goes to: loads are begun early where a block's threads are known."""
    backend = targets.backend("numba-cuda", None)
    free, known, crowded = (
        backend.build(covar(*lines)).resources[-1].registers
        for lines in (("codelet: launchbounds off",), (), ("codelet: launchbounds 8",))
    )
    assert free < known
    assert crowded <= 65536 // 8 // 256


@cuda
@pytest.mark.parametrize(
    ("target", "two", "off"),
    [
        ("numba-cuda", "@cuda.jit(launch_bounds=(256, 2))", "@cuda.jit\n"),
        ("cuda-c", "__global__ void __launch_bounds__(256, 2)", "__global__ void\n"),
    ],
)
def test_files_say_it(target: str, two: str, off: str) -> None:
    texts = (
        targets.backend(target, None).emit(covar(*lines))
        for lines in (("codelet: launchbounds 2",), ("codelet: launchbounds off",))
    )
    assert [text.count(word) for text, word in zip(texts, (two, off), strict=True)] == [3, 3]


def test_each_nest_has_its_own() -> None:
    """A loop covers those inside; one from outside takes the place of those in the file."""
    assert told() == [(256, 2), (256,)]
    assert told("loop 2: launchbounds off") == [(256, 2), ()]
    assert told("codelet: launchbounds 4") == [(256, 4), (256, 4)]
    assert told("codelet: maxregs 32") == [(), ()]


def test_it_is_written_back(tmp_path: Path) -> None:
    """As a pragma, once for a nest; what is written so is read so."""
    path, again = tmp_path / "f.c", tmp_path / "g.c"
    path.write_text(TWO)
    said = CliRunner().invoke(cli, ["transform", str(path), "--directive", "loop 2: launchbounds off"])
    assert said.exit_code == 0, said.output
    assert re.findall(r"#pragma looptune launchbounds (\w+)", said.output) == ["2", "off"]
    again.write_text(said.output)
    kernels = lower(schedule(Analysis(load(again).codelet), ()).codelet).kernels
    assert [launch_bounds(k) for k in kernels] == [(256, 2), ()]


@pytest.mark.wide
@cuda
def test_what_ships_has_it(tmp_path: Path) -> None:
    """A module's kernels are compiled as the sweep's were."""
    unit = load(COVAR, defines=dict.fromkeys(("M", "N"), "64"))
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(unit, unit.values), {"": 9.0, "codelet: launchbounds 3": 5.0}
    )
    (tmp_path / "made.py").write_text(build.as_python(unit, db, "auto", ""))
    made = imported(tmp_path / "made.py")
    from looptune.deploy.runtime.devices import ptx

    found = {tuple(re.findall(f"{THREADS}|{BLOCKS}", ptx(k, s, "sm_90"))) for k, s in made.SIGNATURES.items()}
    assert found == {(("256", ""), ("", "3")), (("256", ""),)}
