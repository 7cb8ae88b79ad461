"""Small databases for the tests of reports: a sweep of GEMM with times made up, so that every number is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from looptune.runtime.device import DeviceInfo
from looptune.runtime.outcome import CutOff, Illegal, Timed, WrongResult
from looptune.runtime.roofline import MinimumWork, Peaks, Rate, Roofline
from looptune.runtime.timing import Speedup, Summary
from looptune.tune.results import studies
from looptune.tune.results.result import Entry, Result, Sources, to_record
from looptune.tune.results.studies import KernelStudy
from looptune.tune.store.store import Context, Role, Row, Store, canonical_json

GPU = Context(
    "gemm_", "c0ffee", "7", "numba 0.68", "sm_90", "NVIDIA H200", "numba-cuda",
    canonical_json({"n": 512, "alpha": 1.5}), "float32", canonical_json({"cores": 132, "reassociate": True, "seed": 0}),
)  # fmt: skip
OTHER = replace(GPU, device="NVIDIA A100", capability="sm_80")
TIMES = {
    "": 100.0, "loop k: unroll 2": 80.0, "loop k: unroll 4": 60.0, "loop k: unroll 2, split": 90.0,
    "loop k: unroll 4, split, guarded": 40.0, "loop k: tile k:4": 125.0, "nest i: permute k, i, j": 200.0,
    "nest i: permute j, i, k": 50.0, "loop k: unroll 4\ncodelet: grid blocksize 32x4": 30.0,
    "codelet: grid blocksize 32x4": 75.0, "codelet: grid blocksize 16x16": 110.0,
}  # fmt: skip
"""Screening medians by directives, in microseconds; the default is 100."""
FINALS = {"": 100.0, "loop k: unroll 4\ncodelet: grid blocksize 32x4": 25.0, "hand-written abc": 20.0}
BEST = "loop k: unroll 4\ncodelet: grid blocksize 32x4"
FACTS = DeviceInfo("NVIDIA H200", "numba-cuda", "sm_90", 132, 2**37, 50_000_000, "13000")
PEAKS = Peaks(Rate(4000.0, 0.01), Rate(4200.0, 0.02), Rate(60_000.0, 0.01), Rate(30_000.0, 0.01))


def timed(us: float, rounds: int = 31) -> Timed:
    runs = tuple(us * (1 + 0.001 * (k % 3 - 1)) for k in range(rounds))
    return Timed(runs, us, us * 0.999, us * 1.001, "against the original loops", (("registers", 40),))


def fill(
    store: Store, context: Context = GPU, *, times: dict[str, float] = TIMES, finals: dict[str, float] = FINALS,
    sweep: str = "s1", file: str = "polybench/gemm.c",
) -> None:  # fmt: skip
    """A whole sweep with a failure of two kinds, an order that was cut off, a duplicate, and finals."""
    store.register_command(sweep, f"looptune run {file} --target numba-cuda")

    def row(text: str, role: Role = "version") -> Row:
        return Row(context, text, role, sweep, emitted=f"source of {text}")

    for text, us in times.items():
        store.record(row(text, "default" if text == "" else "version"), timed(us, 5))
    store.record(row("nest i: permute k, j, i"), CutOff(900.0, 60.0, 1, 1, "verified"))
    store.record(row("nest i: permute i, k, j"), Illegal("permute i, k, j is illegal: <b>(i=0)</b> & more"))
    store.record(row("loop k: unroll 3"), WrongResult("C[0][0]: got 1, expected 2"))
    store.record_duplicate(replace(row("loop k: tile k:2"), emitted="source of "), row("").key)
    for text, us in finals.items():
        store.record(row(text, "final"), timed(us))
    store.record(row("", "sequential"), timed(100_000.0, 5))


def result(**changes: object) -> Result:
    """What the sweep above came to."""

    def entry(name: str, us: float, ratio: float | None) -> Entry:
        over = None if ratio is None else Speedup(ratio, ratio * 0.99, ratio * 1.01, "FAST")
        return Entry(name, Summary(us, us * 0.999, us * 1.001, 31), over, "against the original loops")

    made = Result(
        kernel="gemm",
        facts=FACTS,
        target="numba-cuda",
        dtype="float32",
        sizes={"N": 512},
        entries=(entry("default", 100.0, None), entry("hand-written", 20.0, 5.0), entry("tuned", 25.0, 4.0)),
        directives=BEST,
        ties=("loop k: unroll 8",),
        proof="every directive proved; and so on",
        versions={"space": 40, "timed": 11},
        flops=2 * 512**3,
        command="looptune run polybench/gemm.c --sweep",
        seconds={"measure": 1.0},
        ceiling=Roofline(MinimumWork(2 * 512**3, 4 * 4 * 512**2, "float32"), PEAKS, 50_000_000, True),
        over_hand=Speedup(0.8, 0.79, 0.81, "SLOW"),
        status="proved",
        sums=("+:C (8:7)",),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


SOURCES = Sources("void gemm(int n) { /* </script> */ }\n", "void gemm(int n) { }\n", "@cuda.jit\ndef gemm(): 1 < 2\n")


def database(
    path: Path, contexts: Sequence[Context] = (GPU,), *, concluded: bool = False, sources: Sources = SOURCES
) -> Path:
    """A file with a sweep for each context; with what they came to where ``concluded``."""
    with Store.open(path) as store:
        for context in contexts:
            fill(store, context)
            if concluded:
                facts = replace(FACTS, name=context.device)
                store.save_conclusion(context, "s1", to_record(result(facts=facts), sources))
    return path


def one(path: Path) -> KernelStudy:
    """The only study of the file."""
    (found,) = studies.read([path])
    return found
