"""GEMM's space: every version compiles as C, a spread sample for a GPU, and they compute GEMM at odd sizes."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.codegen.python import ident
from looptune.frontend import Unit, load
from looptune.ir import c_printer
from looptune.ir.nodes import Codelet
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space.space import Configuration, parse
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH, ROOT

GEMM, SPACE = POLYBENCH / "gemm.c", ROOT / "pragmas" / "gemm.pragmas"
ODD = {"NI": 37, "NJ": 41, "NK": 43}
TINY = ({"ni": 5, "nj": 6, "nk": 7}, {"ni": 3, "nj": 3, "nk": 2})
CHUNKS = 16
SPREAD = 20
"""One in so many is compiled for a GPU, or runs in the simulator, whose threads are Python's."""

chunks = pytest.mark.parametrize("chunk", range(CHUNKS))
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


@cache
def configurations() -> tuple[Configuration, ...]:
    return tuple(parse(SPACE.read_text(), str(SPACE)))


@cache
def unit() -> Unit:
    return load(GEMM)


@cache
def analysis() -> Analysis:
    return Analysis(unit().codelet)


def transformed(configuration: Configuration) -> Codelet:
    return schedule(analysis(), parse_lines(configuration.lines), {}).codelet


def planned(configuration: Configuration) -> Plan:
    return lower(transformed(configuration))


@pytest.mark.wide
def test_the_space_is_worth_a_search() -> None:
    """At least as many versions as the paper tried on GEMM, no text twice, every one legal."""
    texts = [c.text for c in configurations()]
    assert len(texts) >= 254
    assert len({transformed(c) for c in configurations()}) > 200


# -- C --------------------------------------------------------------------------------------------

STRICT = ("-std=gnu11", "-O0", "-Wall", "-Werror", "-Wno-unknown-pragmas")


@pytest.mark.sampled(40, "wide")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@chunks
def test_every_version_is_the_same_program_in_c(chunk: int, tmp_path: Path) -> None:
    """The transformed file compiles without a warning and prints what the original prints, up to rounding.

    The versions of a chunk become one program: each version's body is a function of its own that ``main`` calls.
    """
    given = unit()
    before, after = given.text[: given.body[0]], given.text[given.body[1] :]
    head, _, signature = before.rpartition("static void gemm(")
    mine = configurations()[chunk::CHUNKS]
    bodies = "".join(
        f"static void gemm_{k}({signature}{{\n{c_printer.body(transformed(c), pragmas=True)}\n}}\n"
        for k, c in enumerate(mine)
    )
    table = ", ".join(f"gemm_{k}" for k in range(len(mine)))
    main = after.replace("int main(void)", "static void once(version gemm)").replace("return 0;", "return;")
    main = main.replace("return 1;", "exit(1);")
    text = f"""{head}{bodies}static void gemm_original({signature}{given.text[slice(*given.body)]}
typedef void (*version)({signature.rstrip().removesuffix(")")});
{main}
int main(void)
{{
    version all[] = {{gemm_original, {table}}};
    for (unsigned v = 0; v < sizeof all / sizeof *all; v++)
        once(all[v]);
    return 0;
}}
"""
    source, program = tmp_path / "gemm.c", tmp_path / "gemm"
    source.write_text(text)
    sizes = [f"-D{n}={v}" for n, v in ODD.items()]
    options = [*STRICT, "-DDATA_TYPE=double", "-DDUMP", *sizes]
    done = subprocess.run(["gcc", *options, source, "-lm", "-o", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:2000]
    printed = subprocess.run([program], check=True, capture_output=True, text=True, timeout=120).stdout
    lines = [x for x in printed.splitlines() if x[0].isdigit() or x[0] == "-"]
    values = np.array([[float(x) for x in line.split()] for line in lines]).reshape(len(mine) + 1, ODD["NI"], ODD["NJ"])
    for configuration, got in zip(mine, values[1:], strict=True):
        np.testing.assert_allclose(got, values[0], rtol=1e-8, err_msg=configuration.text)


# -- a GPU's code, without a GPU ------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.sampled(3)
@pytest.mark.wide
@cuda
@pytest.mark.parametrize("chunk", [c if c % 2 == 0 else pytest.param(c, marks=pytest.mark.long) for c in range(CHUNKS)])
def test_versions_compile_for_a_gpu(chunk: int) -> None:
    """PTX and cubin of kernels spread over the space; what a thread holds stays in registers."""
    for configuration in configurations()[chunk :: CHUNKS * SPREAD]:
        binary = targets.backend("numba-cuda", CACHE).build(planned(configuration))
        assert len(binary.objects) == len(binary.resources) > 0, configuration.text
        assert all(r.local_bytes == 0 for r in binary.resources), configuration.text
        assert all(r.registers > 0 for r in binary.resources), configuration.text


@pytest.mark.wide
@cuda
@pytest.mark.simulator
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_sample_computes_gemm_in_the_simulator(part: int, tmp_path: Path) -> None:
    """Versions spread over the space, at two tiny sizes, against the interpreter: the same bits.

    The inputs are small integers, so that the order of a sum changes nothing.
    """
    batch, expected = [], {}
    for begin, size in enumerate(TINY):
        given = cross_check.arguments(unit().codelet, {**size, "alpha": 2, "beta": 3})
        for name, array in cross_check.arrays(given).items():
            given[name] = np.rint(array)
        want = cross_check.interpreted(unit().codelet, given)
        for configuration in configurations()[begin + part * SPREAD :: 2 * SPREAD]:
            name = f"{configuration.text} at {size}"
            source = targets.backend("numba-cuda", CACHE).emit(planned(configuration))
            batch.append(cross_check.Emitted(name, source, ident(unit().codelet.name), given))
            expected[name] = want
    assert cross_check.misses(batch, expected, tmp_path) == {}


# -- the CPU --------------------------------------------------------------------------------------


@pytest.mark.wide
@pytest.mark.parametrize("chunk", [0, *(pytest.param(c, marks=pytest.mark.long) for c in range(1, 4))])
def test_a_sample_computes_gemm_on_the_cpu(chunk: int) -> None:
    """Twelve versions spread over the space, compiled, at odd sizes, against the interpreter."""
    every = configurations()
    sample = every[:: max(1, len(every) // 12)][chunk:12:4]
    given = cross_check.arguments(unit().codelet, {"ni": 13, "nj": 17, "nk": 19, "alpha": 1.5, "beta": 0.5})
    want = cross_check.interpreted(unit().codelet, given)
    backend = targets.backend("numba-cpu", CACHE)
    for configuration in sample:
        program = backend.load(backend.build(planned(configuration)))
        got = cross_check.copied(given)
        program.run(cross_check.arrays(got), cross_check.scalars(got))
        off = cross_check.off(want, cross_check.arrays(got), 1e-5)
        assert off is None, f"{configuration.text}\n{off}"
