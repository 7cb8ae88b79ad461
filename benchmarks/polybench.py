"""The 30 kernels of PolyBench/C 4.2.1 with derived spaces, each within a short budget, in one table.

    python -m benchmarks.polybench --dtype float32,float64 --budget 30s                 on all GPUs of this machine
    python -m benchmarks.polybench --dtype float32 --target numba-cpu --beside 4        on four pairs of its cores

For each kernel it runs ``looptune run polybench/c/KERNEL.c --sweep --dataset LARGE``, one kernel at a time on each
GPU, or several side by side on cores of their own. Beside the tuned version stand, on a GPU, PPCG's best times on an
H200 in float, which were measured elsewhere, and what torch (cuBLAS, cuSOLVER) takes for the same task where it is
installed; on a CPU, ``gcc -O3 -march=native`` of the same file on one of the cores. Writes a Markdown table
for each type; a kernel without a result has a row that says why, and kernels of integers are run once, and stand in
each table. ``--seconds`` ends the whole command: what has not been run by then is listed as such.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

FOLDER = Path(__file__).parent.parent / "polybench" / "c"
INTEGERS = ("floyd-warshall", "nussinov")
"""Kernels whose type is no choice."""
LONGEST = (
    "floyd-warshall", "seidel-2d", "adi", "ludcmp", "lu", "nussinov", "gramschmidt", "cholesky", "doitgen", "symm",
)  # fmt: skip
"""Of the original loops: these kernels are run first, so that all devices end at about the same time."""
PPCG: Mapping[str, float] = MappingProxyType({
    "gemver": 173, "symm": 219, "trmm": 17_583, "doitgen": 130_981, "cholesky": 21_157, "lu": 29_791,
    "ludcmp": 31_340_777, "trisolv": 12_056, "durbin": 65_239, "deriche": 2_989, "nussinov": 181_498, "adi": 419_794,
    "heat-3d": 27_308, "jacobi-1d": 3_151, "jacobi-2d": 6_318, "seidel-2d": 57_712, "floyd-warshall": 40_000_000,
})  # fmt: skip
"""Microseconds on an H200, LARGE, float, by PPCG's code with the best of its options; Floyd-Warshall's is a bound."""
GRACE_S = 90.0
"""So much longer than its budget a run may take before it is stopped."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one run came to; ``beside_us``: the library or gcc."""

    kernel: str
    dtype: str
    record: Mapping[str, Any]
    why: str
    wall_s: float
    beside_us: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kernel is run: a GPU, or cores."""

    name: str
    prefix: tuple[str, ...]
    environment: Mapping[str, str]


def places(options: argparse.Namespace) -> list[Place]:
    """Return the GPUs of this machine, or groups of ``--cores`` of its cores."""
    cores = sorted(os.sched_getaffinity(0))
    if options.target != "numba-cpu":
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
        numbers = range(sum(line.startswith("GPU ") for line in listed.splitlines()))
        share = len(cores) // len(numbers)
        made = []
        for n in numbers:
            own = ",".join(map(str, cores[n * share : (n + 1) * share]))
            made.append(Place(listed.splitlines()[n], ("taskset", "-c", own), {"CUDA_VISIBLE_DEVICES": str(n)}))
        return made
    groups = [cores[k : k + options.cores] for k in range(0, len(cores) - options.cores + 1, options.cores)]
    groups = groups[: options.beside]
    names = [",".join(map(str, own)) for own in groups]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(options.cores))
    return [Place(f"cores {name}", ("taskset", "-c", name), threads) for name in names]


def run(kernel: str, dtype: str, place: Place, options: argparse.Namespace, folder: Path, end: float) -> Row:
    """Run one kernel; what fails is said in the row."""
    start, own = time.monotonic(), folder / f"{kernel}-{dtype}"
    command = [
        *place.prefix, sys.executable, "-m", "looptune", "run", str(FOLDER / f"{kernel}.c"), "--sweep", "--dataset",
        options.dataset, "--target", options.target, "--budget", options.budget, "--db", f"{own}.sqlite",
        "--reports", str(own), "--json", "--no-handwritten",
        *([] if kernel in INTEGERS else ["--dtype", dtype]),
    ]  # fmt: skip
    limit = min(GRACE_S + options.seconds_each, end - start)
    try:
        done = subprocess.run(
            command, env={**os.environ, **place.environment}, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return Row(kernel, dtype, {}, f"stopped after {limit:.0f} s", time.monotonic() - start)
    wall = time.monotonic() - start
    try:
        records = json.loads(done.stdout)
    except ValueError:
        return Row(kernel, dtype, {}, (done.stderr.strip().splitlines() or ["no output"])[-1][:120], wall)
    record = records[0] if isinstance(records, list) else records
    beside = by_gcc(kernel, dtype, place, options, folder, end) if options.target == "numba-cpu" else None
    counts = ", ".join(f"{n} {name}" for name, n in record["versions"].items() if n and name != "space")
    why = "" if record["tuned_us"] else f"no version in time ({counts or 'none run'})"
    return Row(kernel, dtype, record, why, wall, beside)


def by_gcc(
    kernel: str, dtype: str, place: Place, options: argparse.Namespace, folder: Path, end: float
) -> float | None:
    """Return the microseconds of the file's own program by gcc -O3 -march=native on the first of the cores."""
    program = folder / f"{kernel}-{dtype}.gcc"
    kind = [] if kernel in INTEGERS or dtype == "float64" else ["-DDATA_TYPE=float"]
    made = ["gcc", "-O3", "-march=native", "-DTIME", f"-D{options.dataset}_DATASET", *kind]
    subprocess.run([*made, str(FOLDER / f"{kernel}.c"), "-o", str(program), "-lm"], check=True, capture_output=True)
    found: list[float] = []
    while len(found) < 3 and sum(found) < 2.0 and time.monotonic() < end:
        first = place.prefix[2].split(",")[0]
        ran = subprocess.run(["taskset", "-c", first, str(program)], capture_output=True, text=True, check=True)
        found.append(float(ran.stderr.split()[0]))
    return median(found) * 1e6 if found else None


def by_torch(dtype: str) -> dict[str, float]:
    """Return the microseconds that torch takes for the kernels that it has a function for; {} without torch."""
    try:
        import torch  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return {}
    kind, cuda = getattr(torch, dtype), torch.device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = False

    def new(*shape: int) -> Any:
        return torch.rand(*shape, dtype=kind, device=cuda)

    square = new(2000, 2000) + 4000 * torch.eye(2000, dtype=kind, device=cuda)
    definite = square @ square.T
    right, beta = new(2000, 1), 1.2
    gemm = new(1000, 1100), new(1000, 1200), new(1200, 1100)
    two = new(800, 1100), new(1100, 900), new(900, 1200), new(800, 1200)
    three = new(800, 1000), new(1000, 900), new(900, 1200), new(1200, 1100)
    syr = new(1200, 1200), new(1200, 1000), new(1200, 1000)
    symmetric = new(1000, 1000), new(1000, 1200), new(1000, 1200)
    four, rows = new(150 * 140, 160), new(160, 160)
    calls: dict[str, Callable[[], object]] = {
        "gemm": lambda: torch.addmm(gemm[0], gemm[1], gemm[2], beta=beta, alpha=1.5),
        "2mm": lambda: torch.addmm(two[3], two[0] @ two[1], two[2], beta=beta),
        "3mm": lambda: (three[0] @ three[1]) @ (three[2] @ three[3]),
        "syrk": lambda: torch.addmm(syr[0], syr[1], syr[1].T, beta=beta),
        "syr2k": lambda: torch.addmm(torch.addmm(syr[0], syr[1], syr[2].T, beta=beta), syr[2], syr[1].T),
        "symm": lambda: torch.addmm(symmetric[1], symmetric[0], symmetric[2], beta=beta),
        "trmm": lambda: symmetric[0] @ symmetric[1],
        "doitgen": lambda: four @ rows,
        "lu": lambda: torch.linalg.lu_factor(square, pivot=False),
        "ludcmp": lambda: torch.linalg.solve(square, right),
        "cholesky": lambda: torch.linalg.cholesky(definite),
        "trisolv": lambda: torch.linalg.solve_triangular(square, right, upper=False),
        "gramschmidt": lambda: torch.linalg.qr(new(1000, 1200)),
    }
    flushed = torch.empty(2**27, dtype=torch.uint8, device=cuda)

    def once(call: Callable[[], object]) -> float:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flushed.zero_()
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e3

    found = {}
    for name, call in calls.items():
        for _ in range(3):
            once(call)
        found[name] = median(once(call) for _ in range(20))
    return found


def table(rows: Sequence[Row], dtype: str, gpu: bool, libraries: Mapping[str, float]) -> list[str]:
    """Return the lines of the Markdown table of one type."""
    others = ["PPCG (us)", "over PPCG", "torch (us)"] if gpu else ["gcc -O3 (us)", "over gcc"]
    heads = ["kernel", "tuned (us)", "quartiles (us)", *others, "timed", "wall (s)", "note"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 2)}---|"]
    for row in sorted(rows, key=lambda r: r.kernel):
        tuned = row.record.get("tuned_us")
        low, high = row.record.get("tuned_q1_us"), row.record.get("tuned_q3_us")
        ppcg = PPCG.get(row.kernel) if dtype == "float32" or row.kernel in INTEGERS else None
        beside = ppcg if gpu else row.beside_us
        bound = "> " if gpu and row.kernel == "floyd-warshall" and ppcg else ""
        cells = [
            row.kernel, _us(tuned), f"{_us(low)} .. {_us(high)}" if low and high else "",
            f"{bound}{_us(beside)}", f"{bound}{_ratio(beside / tuned)}" if beside and tuned else "",
            *([_us(libraries.get(row.kernel))] if gpu else []), str(row.record.get("versions", {}).get("timed", 0)),
            f"{row.wall_s:.0f}", row.why or _slower(tuned, beside),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _slower(tuned: float | None, beside: float | None) -> str:
    return "slower" if tuned and beside and tuned > beside else ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the kernels, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="default: all 30")
    parser.add_argument("--target", default="numba-cuda")
    parser.add_argument("--dtype", default="float32", help="float32, float64, or both with a comma between them")
    parser.add_argument("--dataset", default="LARGE")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--cores", type=int, default=2, help="of each kernel on a CPU")
    parser.add_argument("--beside", type=int, default=1, help="kernels at once on a CPU, each on cores of its own")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the end of the whole command")
    parser.add_argument("--folder", type=Path, default=None, help="of the databases and reports; default: a new one")
    parser.add_argument("-o", "--output", type=Path, default=None)
    options = parser.parse_args(arguments)
    options.seconds_each = float(options.budget.rstrip("s"))
    end = time.monotonic() + options.seconds
    folder = Path(tempfile.mkdtemp()) if options.folder is None else options.folder
    folder.mkdir(parents=True, exist_ok=True)
    kernels = options.kernels or sorted(path.stem for path in FOLDER.glob("*.c"))
    types = options.dtype.split(",")
    waiting: queue.Queue[tuple[str, str]] = queue.Queue()
    for kernel in sorted(kernels, key=lambda k: LONGEST.index(k) if k in LONGEST else len(LONGEST)):
        for dtype in types[:1] if kernel in INTEGERS else types:
            waiting.put((kernel, dtype))
    rows: list[Row] = []

    def work(place: Place) -> None:
        while time.monotonic() < end - options.seconds_each:
            try:
                kernel, dtype = waiting.get_nowait()
            except queue.Empty:
                return
            row = run(kernel, dtype, place, options, folder, end)
            rows.append(row)
            print(f"{kernel}, {dtype}: {_us(row.record.get('tuned_us'))} us {row.why}", file=sys.stderr, flush=True)

    found = places(options)
    threads = [threading.Thread(target=work, args=(place,)) for place in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows += [Row(kernel, dtype, {}, "not run", 0.0) for kernel, dtype in waiting.queue]
    device = next((row.record["device"] for row in rows if row.record.get("device")), "")
    command = shlex.join(["python", "-m", "benchmarks.polybench", *(sys.argv[1:] if arguments is None else arguments)])
    gpu, lines = options.target != "numba-cpu", [f"{device}, {options.dataset}, {len(found)} at once: `{command}`"]
    for dtype in types:
        own = [row for row in rows if row.dtype == dtype or row.kernel in INTEGERS]
        lines += ["", f"{dtype}:", "", *table(own, dtype, gpu, by_torch(dtype) if gpu else {})]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output is not None:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
