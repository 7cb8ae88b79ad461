"""A batch of cases in one process: judged by looptune, compiled together where a compiler can, run and compared.

Before each step the process says which case it is at, and gets a limit of processor time for it; where it dies, the one
that started it knows of what.
"""

from __future__ import annotations

import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from looptune.core.errors import LooptuneError, ResourceError
from looptune.deploy import source_to_source
from looptune.deploy.build import as_c, as_python
from looptune.frontend import Unit, load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from tests.differential import cases, compiled, directives, runners
from tests.differential.cases import Case, Judged
from tests.differential.compiled import Ran, Text
from tests.differential.outcomes import Failure, Report

LIMIT_S = 60
"""Of processor time for one step of one case; alone, and a second time, five times as much."""
WAIT_S = 300
"""Of a GPU's work no processor time tells whether it ends."""
HEAVY = ("numba-cpu", "simulator", "cuda-c", "opencl", "built")
ON_GPU = {"gpu-numba": "numba-cuda", "gpu-c": "cuda-c"}
"""Of --device gpu: what is run on the device itself, with looptune's name of each target."""
PLANNED = ("numba-cpu", "simulator", "cuda-c", "opencl", *ON_GPU)
"""Those that get a plan, of which some have the first sizes as constants."""
EVERY = ("front", "transform", "interpreter", "built-c", *HEAVY)
Announce = Callable[[int, str], None]


@dataclass
class Batch:
    """``cases``: their programs, and their directives where those are given; ``of``: the targets of each case."""

    seed: int
    cases: Sequence[Case]
    of: Callable[[int], Sequence[str]]
    folder: Path
    announce: Announce
    skip: frozenset[tuple[int, str]] = frozenset()
    given: bool = False
    limit_s: int = LIMIT_S
    report: Report = field(default_factory=Report)
    references: dict[int, dict[int, Ran]] = field(default_factory=dict)
    drawn: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def run(self) -> Report:
        self._reference()
        judged = [j for j in map(self._judged, self.cases) if j is not None]
        self._compiled(judged, "transform", _transform)
        self._compiled(judged, "built-c", _built_c)
        self._cuda_c([j for j in judged if "cuda-c" in self.of(j.case.index)])
        for j in judged:
            self._others(j)
        return self.report

    # The original text, as it stands ---------------------------------------------------------------

    def _reference(self) -> None:
        """What gcc's code leaves, where C defines it: only those calls are compared."""
        self._at(-1, "reference")
        if not compiled.usable():
            return
        texts = [Text(c.program, c.program.text, tuple(range(len(c.program.sizes)))) for c in self.cases]
        for c, found in zip(self.cases, compiled.run(texts, self.folder / "original", compiled.SANITIZED), strict=True):
            assert not isinstance(found, str), f"case {c.index}: {found}\n{c.program.text}"
            self.references[c.index] = {n: ran for n, ran in found.items() if not ran.failed}
            self.report.counts["calls that C does not define"] += sum(1 for ran in found.values() if ran.failed)

    def _reference_without_gcc(self, case: Case, unit: Unit) -> None:
        """On a device's machine without a C compiler: what the interpreter leaves, where it finds nothing undefined."""
        if case.index in self.references:
            return
        self.references[case.index] = {}
        for number in range(len(case.program.sizes)):
            held = runners.Between(case.program, number)
            try:
                runners.interpreted(unit.codelet, held)
            except AssertionError:
                continue
            floats = any(a.dtype.kind == "f" for a in held.arrays.values())
            self.references[case.index][number] = Ran(held.arrays, rounded=floats)

    def _judged(self, case: Case) -> Judged | None:
        """Accepted with its directives, or else with those that looptune takes."""
        self.report.counts["cases"] += 1
        path = self.folder / f"c{case.index}.c"
        path.write_text(case.program.text)
        made: list[Judged] = []

        def judge() -> None:
            unit = load(path)
            self._reference_without_gcc(case, unit)
            rng = random.Random(f"{self.seed}/{case.index}/directives")
            self.drawn[case.index] = case.lines if self.given else tuple(directives.lines(rng, unit.codelet))
            done, lines = cases.chosen(unit, self.drawn[case.index], suggesting=rng.random() < 0.1)
            self.report.counts["directives drawn"] += len(self.drawn[case.index])
            self.report.counts["directives taken"] += len(lines)
            made.append(Judged(Case(case.index, case.program, lines), unit, done))

        self._step(case, "looptune", judge)
        if not made:
            self.report.counts["refused"] += 1
            return None
        self.report.counts["accepted"] += 1
        self.report.counts["accepted with directives"] += bool(made[0].case.lines)
        return made[0]

    # Texts that a C compiler reads, many at once -----------------------------------------------------

    def _compiled(self, judged: Sequence[Judged], target: str, text_of: Callable[[Path, Judged], str]) -> None:
        texts: list[tuple[Judged, Text]] = []
        wanted = [j for j in judged if target in self.of(j.case.index)]
        for j in wanted:
            path = self.folder / f"c{j.case.index}.c"

            def write(j: Judged = j, path: Path = path) -> None:
                text = text_of(path, j)
                texts.append((j, Text(j.case.program, text, tuple(self.references[j.case.index]))))

            self._step(j.case, target, write)
        self._at(-1, target)
        found = compiled.run([t for _, t in texts], self.folder / target, compiled.PLAIN) if texts else []
        for (j, _), ran in zip(texts, found, strict=True):
            if isinstance(ran, str):
                self._failed(j.case, target, "text", ran)
                continue
            for number, one in ran.items():
                if one.failed:
                    kind = "hang" if one.failed == "signal 24" else "crash"
                    self._failed(j.case, target, kind, one.failed, number)
                elif one.touched:
                    self._failed(j.case, target, "canary", one.touched, number)
                else:
                    self._compare(j.case, target, number, one.arrays)

    def _cuda_c(self, judged: Sequence[Judged]) -> None:
        plans: dict[int, tuple[Judged, Plan]] = {}
        texts: dict[int, str] = {}
        for j in judged:

            def write(j: Judged = j) -> None:
                planned = self._plan(j, blocks=True)
                texts[j.case.index] = runners.cuda_c_text(planned)
                plans[j.case.index] = j, planned

            self._step(j.case, "cuda-c", write)
        if not texts:
            return
        self._at(-1, "cuda-c")
        functions, said = runners.cuda_c(texts, self.folder / "cuda-c")
        for k, what in said.items():
            self._failed(plans[k][0].case, "cuda-c", "text", what)
        for k, function in functions.items():
            j, planned = plans[k]
            self._calls(j, "cuda-c", lambda held, f=function, p=planned: runners.called(f, p.codelet, held))

    # One case after the other ---------------------------------------------------------------------

    def _others(self, j: Judged) -> None:
        wanted = self.of(j.case.index)
        if "front" in wanted:
            self._calls(j, "front", lambda held: runners.interpreted(j.unit.codelet, held))
        if "interpreter" in wanted:
            self._calls(j, "interpreter", lambda held: runners.interpreted(j.done.codelet, held))
        makers: dict[str, Callable[[], Callable[[runners.Between], None]]] = {
            "numba-cpu": lambda: runners.numba_cpu(
                self._plan(j, blocks=False), self.folder / "numba", threads=j.case.index % 16 == 0
            ),
            "built": lambda: runners.built(
                as_python(j.unit, Path("none"), "numba-cpu", "looptune build", default=True),
                self.folder / f"{j.case.program.name}_tuned.py",
                j.unit.codelet,
            ),
            "opencl": lambda: runners.on_device("opencl", self._plan(j, blocks=True), self.folder),
            **{
                own: lambda name=name: runners.on_device(name, self._plan(j, blocks=True), self.folder / "cache")
                for own, name in ON_GPU.items()
            },
            "simulator": lambda: runners.simulated(self._plan(j, blocks=True), j.case.program.name),
        }
        # NumPy keeps 8 and 16 bits where Numba computes in 64, so that the simulator is no judge of narrow sizes.
        narrow = any(not v.extents and v.type.bits < 32 for v in j.case.program.variables)
        for target, make in makers.items():
            if target in wanted and not (target == "simulator" and narrow):
                ready: list[Callable[[runners.Between], None]] = []
                self._step(j.case, target, lambda make=make, ready=ready: ready.append(make()))
                for run in ready:
                    self._calls(j, target, run)

    def _plan(self, j: Judged, *, blocks: bool) -> Plan:
        """As a target has it; now and then with the first sizes as constants, as in a sweep."""
        rng = random.Random(f"{self.seed}/{j.case.index}/plan")
        codelet = j.done.codelet
        if blocks:
            codelet = cases.small_blocks(codelet, rng)
        if self._baked(j.case):
            codelet = specialize(codelet, j.case.program.sizes[0])
        return lower(codelet, "\n".join(j.case.lines), j.done.asserted, blocks=blocks)

    def _baked(self, case: Case) -> bool:
        return case.index % 4 == 0

    def _numbers(self, case: Case, target: str) -> Iterable[int]:
        numbers = self.references[case.index]
        if self._baked(case) and target in PLANNED:
            return [n for n in numbers if n == 0]
        return list(numbers)

    def _calls(self, j: Judged, target: str, run: Callable[[runners.Between], None]) -> None:
        for number in self._numbers(j.case, target):
            held = runners.Between(j.case.program, number)
            done: list[bool] = []

            def call(held: runners.Between = held, done: list[bool] = done) -> None:
                run(held)
                done.append(True)

            self._step(j.case, target, call, number)
            if not done:
                return
            touched = held.touched()
            if touched:
                self._failed(j.case, target, "canary", touched, number)
                return
            if not self._compare(j.case, target, number, held.arrays):
                return

    def _compare(self, case: Case, target: str, number: int, got: runners.Arrays) -> bool:
        want = self.references[case.index][number]
        exact = not want.rounded or target == "front" or (not case.lines and target in ("transform", "interpreter"))
        if not exact and case.program.jumps:
            self.report.counts["not compared, as rounding decides"] += 1
            return True
        off = cases.differs(want.arrays, got, tolerance=not exact)
        self.report.counts[f"compared: {target}"] += 1
        if off:
            self._failed(case, target, "differs", off, number)
        return not off

    # Steps ----------------------------------------------------------------------------------------

    def _at(self, index: int, target: str) -> None:
        self.announce(index, target)
        signal.alarm(WAIT_S if target in ON_GPU else 0)
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime) + 1 + self.limit_s
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    def _step(self, case: Case, target: str, action: Callable[[], object], number: int = 0) -> None:
        """Do it; a refusal is counted, any other exception is a failure of the case."""
        if (case.index, target) in self.skip:
            return
        self._at(case.index, target)
        start = time.process_time()
        try:
            action()
        except ResourceError:
            self.report.counts[f"more than a device has: {target}"] += 1
        except LooptuneError as refusal:
            self.report.counts[
                f"{'text refused' if target == 'looptune' else f'refused by {target}'}: {refusal.message[:70]}"
            ] += 1
        except Exception:
            if target in ON_GPU:
                raise  # a GPU's context may be of no use from here on: the case is done without, the rest anew
            self._failed(case, target, "traceback", traceback.format_exc(limit=-6), number)
        self.report.counts[f"ms of processor time: {target}"] += round(1000 * (time.process_time() - start))

    def _failed(self, case: Case, target: str, kind: str, said: str, number: int = 0) -> None:
        lines = self.drawn[case.index] if target == "looptune" and case.index in self.drawn else case.lines
        self.report.failures.append(Failure(case.index, target, kind, said, lines, number))


def _transform(path: Path, j: Judged) -> str:
    """What ``looptune transform`` writes; read and judged anew in some cases only, as that takes longest."""
    if j.case.index % 5 == 0:
        return source_to_source.transform(path, j.case.lines)
    with (
        patch.object(source_to_source, "load", lambda *_, **__: j.unit),
        patch.object(source_to_source, "scheduled", lambda *_, **__: j.done),
    ):
        return source_to_source.transform(path, j.case.lines)


def _built_c(_: Path, j: Judged) -> str:
    """What ``looptune build --c --untuned`` writes, and the globals that the file itself has."""
    apart = (v for v in j.case.program.variables if v.apart)
    own = (f"{compiled.basic(v)} {v.name}{''.join(f'[{e}]' for e in v.extents)};\n" for v in apart)
    return as_c(j.unit, Path("none"), "numba-cpu", "looptune build", default=True) + "".join(own)
