"""What exact legality costs: dependences of each kernel, judging every configuration of its space, proving some.

    python benchmarks/legality.py [KERNEL ...] [--proofs N]      writes a Markdown table to standard output

All times are CPU time of one process, so that what else the machine does is no part of them. A configuration takes its
directives bound, judged and applied, those refused included, in the order of the space and with what earlier
configurations taught remembered, as in a sweep; how long its legality took to decide is told apart. A proof is that of
a sweep's winner at the sizes in the file: of the finished loops, and of the kernels launched, with grid, guards and
registers. N are proved, evenly over the space, the last legal configuration among them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir.nodes import Codelet, Loop, Scalar
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space.space import Configuration, parse

ROOT = Path(__file__).parent.parent


class Watched(Analysis):
    """An analysis that knows how long it was asked for: ``seconds`` of CPU time."""

    seconds = 0.0

    def judge(self, *given: Any) -> Any:
        return self._watched(super().judge, *given)

    def verdict(self, *given: Any) -> Any:
        return self._watched(super().verdict, *given)

    def fusion_shift(self, *given: Any) -> Any:
        return self._watched(super().fusion_shift, *given)

    def graph(self, *given: Any) -> Any:
        return self._watched(super().graph, *given)

    def _watched(self, question: Callable[..., Any], *given: Any) -> Any:
        start = time.process_time()
        answer = question(*given)
        self.seconds += time.process_time() - start
        return answer


@dataclass(frozen=True)
class Row:
    kernel: str
    statements: int
    loops: int
    dependences: int
    dependences_s: float
    configurations: int
    judging_s: float
    legality_s: float
    refused: int
    proofs_s: tuple[float, ...]
    verdicts: tuple[str, ...]

    def __str__(self) -> str:
        proved = sum(v == "proved" for v in self.verdicts)
        each_ms, legality_ms = (s / self.configurations * 1e3 for s in (self.judging_s, self.legality_s))
        cells = (
            self.kernel, self.statements, self.loops, self.dependences, f"{self.dependences_s * 1e3:.0f}",
            self.configurations, f"{legality_ms:.2f}", f"{each_ms:.2f}", f"{self.refused / self.configurations:.0%}",
            f"{proved} of {len(self.verdicts)}", f"{mean(self.proofs_s):.2f}", f"{max(self.proofs_s):.2f}",
        )  # fmt: skip
        return f"| {' | '.join(map(str, cells))} |"


def measured(kernel: str, proofs: int) -> Row:
    unit = load(ROOT / "polybench" / f"{kernel}.c")
    path = ROOT / "pragmas" / f"{kernel}.pragmas"
    space = tuple(parse(path.read_text(), path.name))
    start = time.process_time()
    analysis = Watched(unit.codelet)
    found = len(analysis.model.dependences)
    found_s = time.process_time() - start
    start = time.process_time()
    refused = len(space) - sum(1 for _ in _legal(analysis, space, unit.values))
    judging_s, legality_s = time.process_time() - start, analysis.seconds
    times, verdicts = [], []
    step = max(1, len(space) // proofs)
    for codelet in _legal(analysis, space[::-step], unit.values):
        start = time.process_time()
        verdicts.append(_verdict(unit.codelet, codelet, unit.values))
        times.append(time.process_time() - start)
    loops = sum(isinstance(n, Loop) for n in walk(unit.codelet.body))
    return Row(
        kernel, len(analysis.model.statements), loops, found, found_s, len(space), judging_s, legality_s, refused,
        tuple(times), tuple(verdicts),
    )  # fmt: skip


def _verdict(original: Codelet, finished: Codelet, values: dict[str, int | float]) -> str:
    """Of both proofs, the worse."""
    sizes = {p.name for p in original.params if isinstance(p, Scalar) and is_integer(p.dtype)} & values.keys()
    known = {n: int(values[n]) for n in sizes}
    loops = prove(original, finished, known).verdict
    return loops if loops != "proved" else prove_plan(original, lower(specialize(finished, values)), known).verdict


def _legal(analysis: Analysis, space: Sequence[Configuration], values: dict[str, int | float]) -> Iterator[Codelet]:
    for configuration in space:
        try:
            yield schedule(analysis, parse_lines(configuration.lines), values).codelet
        except LooptuneError:
            continue


def main() -> None:
    names = sorted(path.stem for path in (ROOT / "polybench").glob("*.c"))
    options = argparse.ArgumentParser(description="CPU time of dependences, judging and proofs")
    options.add_argument("kernels", nargs="*", metavar="KERNEL", choices=[[], *names])
    options.add_argument("--proofs", type=int, default=10, metavar="N")
    given = options.parse_args()
    print("| kernel | statements | loops | dependences | found, ms | configurations | legality, ms | in all, ms "
          "| refused | proved | a proof, s | worst, s |\n" + 12 * "|---" + "|")  # fmt: skip
    for kernel in given.kernels if given.kernels else names:
        print(measured(kernel, given.proofs), flush=True)
    print("\nCPU time, one process. Command: `python benchmarks/legality.py`")


if __name__ == "__main__":
    main()
