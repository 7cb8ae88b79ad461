"""Tuned kernels on an H200 beside others' of the same loops: PolyBench-GPU's hand-written CUDA, PPCG's, libraries'.

    looptune run polybench/*.c --sweep [--no-flush-cache] [--dtype float64] --db FILE
    python benchmarks/peers.py [--dtype float64] FILE ...

``peers-nvidia-h200.csv`` has the others' microseconds, taken once and not by this script: medians of 20 on an H200,
float, launches queued ahead, inputs resident, the L2 warm; PolyBench-GPU's CUDA by nvcc -O3, PPCG's code with its
default options and with the best of them, the best of cuBLAS, cuDNN, torch and JAX (named where it is that), whose
times have eager launches in them, and a floor: the bytes at 4.2 TB/s or the operations at 60 TFLOP/s. Writes a Markdown
table with a column for each database, and of the last how many times as fast as each of the others its tuned kernels
are, and the floor as a share of their times; FDTD-2D's is that of one step after the other, which tiles of several
steps go below. In double, of which there are no others' times, floors are twice as high: twice the bytes, or 30
TFLOP/s.
Without --no-flush-cache the L2 is flushed before each run, which costs the short ones microseconds.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from looptune.core.errors import LooptuneError
from looptune.tune.results.result import Result, from_record
from looptune.tune.store.store import Store

PEERS = Path(__file__).parent / "peers-nvidia-h200.csv"
OTHERS = ("published", "ppcg", "ppcg_best", "library")
Key = tuple[str, int]


def measured(db: Path, dtype: str) -> dict[Key, Result]:
    """What the newest sweeps on an H200 came to, by kernel and the size that the table names it by."""
    found: dict[Key, Result] = {}
    with Store.read(db) as store:
        for held in sorted(store.conclusions().values(), key=lambda c: c.finished):
            result, _ = from_record(held.record)
            if result.dtype == dtype and "H200" in result.facts.name:
                sizes = {n: v for n, v in result.sizes.items() if n.upper() != "TMAX"}
                found[result.kernel, next(iter(sizes.values()))] = result
    return found


def tuned_us(result: Result | None) -> float | None:
    entries = () if result is None else result.entries
    return next((e.times.median_us for e in entries if e.name == "tuned" and e.times is not None), None)


def rows(
    peers: Sequence[Mapping[str, str]], runs: Sequence[Mapping[Key, Result]], others: Sequence[str], times: int
) -> Iterator[list[str]]:
    """``others`` are columns; floors are so many ``times`` as high."""
    over: dict[str, list[float]] = {name: [] for name in others if name != "ppcg"}
    for peer in peers:
        own = [tuned_us(run.get((peer["kernel"], int(peer["size"])))) for run in runs]
        if own[-1] is None:
            continue
        cells = [peer["kernel"], peer["size"]]
        for name in others:
            by = f" {peer['by']}" if name == "library" and peer["by"] else ""
            cells.append(f"{float(peer[name]):,.15g}{by}" if peer[name] else "-")
        floor = times * float(peer["floor"])
        cells.append(f"{floor:,.15g}")
        cells += ["-" if us is None else f"{us:,.{0 if us >= 1000 else 1}f}" for us in own]
        for name, found in over.items():
            ratio = float(peer[name]) / own[-1] if peer[name] else None
            found += [] if ratio is None else [ratio]
            cells.append("-" if ratio is None else f"{ratio:.3g}x")
        yield [*cells, f"{floor / own[-1]:.0%}"]
    if over:
        means = [math.exp(sum(map(math.log, found)) / len(found)) for found in over.values()]
        yield ["geometric mean", *[""] * (2 + len(others) + len(runs)), *(f"{mean:.3g}x" for mean in means), ""]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Tuned kernels beside others' on an H200.")
    parser.add_argument("databases", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    given = parser.parse_args(arguments)
    with PEERS.open() as file:
        peers = list(csv.DictReader(file))
    try:
        runs = [measured(db, given.dtype) for db in given.databases]
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    others, times = (OTHERS, 1) if given.dtype == "float32" else ((), 2)
    said = dict(zip(OTHERS, ("published CUDA", "PPCG", "PPCG, best", "library"), strict=True))
    own = [f"tuned, {db.stem}" for db in given.databases] if len(given.databases) > 1 else ["tuned"]
    over = [f"over {name}" for name in ("published", "PPCG's best", "library")] if others else []
    names = ["kernel", "size", *(said[name] for name in others), "floor", *own, *over, "floor of tuned"]
    beside = "others" if others else "what the device allows"
    print(f"# Beside {beside} on an NVIDIA H200, {given.dtype}, microseconds\n")
    print(f"| {' | '.join(names)} |\n|---|{'---:|' * (len(names) - 1)}")
    for cells in rows(peers, runs, others, times):
        print(f"| {' | '.join(cells)} |")
    print(f"\nCommand: `{' '.join(['python benchmarks/peers.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
