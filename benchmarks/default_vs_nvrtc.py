"""The default GEMM against the same kernel in CUDA C: does Numba's code run as fast as nvcc's?

    python benchmarks/default_vs_nvrtc.py [N ...]        needs an NVIDIA GPU; writes a Markdown table to standard output

The CUDA C kernel is the plain one: one thread an element, 32 x 8 threads, the sum in a register, sizes as arguments and
as constants. Compiled by NVRTC for the GPU at hand, verified, and timed in turn with the default configuration.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.runtime.device import Run
from looptune.runtime.problem_sizes import problem
from looptune.runtime.targets import CACHE, resolve
from looptune.runtime.timing import finals, speedup, summary
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.measure.build_steps import Built
from looptune.tune.measure.evaluate import Job
from looptune.tune.measure.measuring_device import MeasuringDevice

SOURCE = """
extern "C" __global__ void gemm(SIZES float alpha, float beta, float *C, const float *A, const float *B)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= ni || j >= nj)
        return;
    float sum = C[i * nj + j] * beta;
    for (int k = 0; k < nk; k++)
        sum += alpha * A[i * nk + k] * B[k * nj + j];
    C[i * nj + j] = sum;
}
"""
ROOT = Path(__file__).parent.parent


def kernel(arch: str, constants: dict[str, int] | None) -> Any:
    """The CUDA C kernel, its sizes arguments or, where given, constants."""
    sizes = "int ni, int nj, int nk," if constants is None else ""
    defines = "" if constants is None else "".join(f"#define {n} {v}\n" for n, v in constants.items())
    program = Program(defines + SOURCE.replace("SIZES", sizes), "c++", ProgramOptions(arch=arch))
    return program.compile("cubin").get_kernel("gemm")


def launcher(made: Any, config: LaunchConfig, args: tuple[Any, ...]) -> Run:
    return lambda stream: launch(Stream.from_handle(int(stream)), config, made, *args)


def measure(n: int) -> list[str]:
    unit = load(ROOT / "polybench" / "gemm.c", defines={"NI": n, "NJ": n, "NK": n})
    target = resolve("numba-cuda", CACHE)
    bench = MeasuringDevice(Job(unit.codelet, problem(unit.codelet, unit.values), None, target, CACHE))
    done = schedule(Analysis(unit.codelet)).codelet
    default = Built(bench.backend.build(lower(specialize(done, unit.values))), None)
    runs = {"default, Numba": bench.run_of(default.timed)}
    Device().set_current()
    values = bench.job.problem.values
    pointers = [np.uint64(int(bench.arrays[a].pointer)) for a in "CAB"]
    floats = [np.float32(values["alpha"]), np.float32(values["beta"])]
    config = LaunchConfig(grid=(-(-n // 32), -(-n // 8)), block=(32, 8))
    for name, constants in (
        ("CUDA C, sizes as arguments", None),
        ("CUDA C, constant sizes", dict.fromkeys(("ni", "nj", "nk"), n)),
    ):
        made = kernel(bench.machine.facts.arch, constants)
        ints = [np.int32(n)] * 3 if constants is None else []

        runs[name] = launcher(made, config, (*ints, *floats, *pointers))
    samplers = {}
    for name, run in runs.items():
        bench.restore()
        bench.machine.time_once(run)
        wrong = bench.wrong()
        assert wrong is None, f"{name}: {wrong}"
        samplers[name] = bench.machine.sampler(run, bench.pairs())
    times = finals(samplers, 0)
    base = times["default, Numba"]
    rows = []
    for name, us in times.items():
        s, over = summary(us), speedup(base, us, 0)
        ratio = f"{over.ratio:.3f} [{over.low:.3f}, {over.high:.3f}]"
        rate = 2 * n**3 / s.median_us / 1e6
        spread = f"{s.q1_us:.1f} .. {s.q3_us:.1f}"
        rows.append(f"| {n} | {name} | {s.median_us:.1f} | {spread} | {s.n} | {rate:.2f} | {ratio} |")
    return rows


def main() -> None:
    sizes = [int(a) for a in sys.argv[1:]] or [512, 1024, 2048]
    tables = [row for n in sizes for row in measure(n)]
    facts = resolve("numba-cuda", CACHE).machine().facts
    print(f"# Default GEMM, float32, against CUDA C through NVRTC: {facts.name}, driver {facts.driver_name}\n")
    print("| N | kernel | median us | quartiles | n | TFLOP/s | default over it, 95 % interval |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(tables))
    print(f"\nCommand: `python benchmarks/default_vs_nvrtc.py {' '.join(map(str, sizes))}`")


main()
