"""The end of a sweep: what the finals are asked, what of them is kept, and what the winner is proved by."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from looptune.core.errors import TargetError
from looptune.core.source import Span
from looptune.frontend.directive_parser import parse
from looptune.ir.nodes import Const, Loop
from looptune.lower import plan_check
from looptune.poly.translation_validation import Proof
from looptune.runtime import c_reference
from looptune.runtime.outcome import Crashed, TimedOut
from looptune.schedule.applied import AppliedDirective
from looptune.tune.execution.local_executor import HERE, LocalExecutor
from looptune.tune.execution.worker_loop import TaskError, TaskResult
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.finals_rounds import Finals, FinalsRequest, Times
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.reference import ReferenceResult
from looptune.tune.session import experiment, finals
from looptune.tune.session import proof as proved
from looptune.tune.session.budget import Budget
from looptune.tune.session.experiment import COPIES, concurrent_groups
from looptune.tune.session.finals import schedule_finalist
from looptune.tune.session.prepare import PreparedRun, TuningRequest, prepare
from looptune.tune.store.store import Store
from looptune.tune.store.winners import winner
from tests.helpers.fake_finals import Asked, at, match

SPAN = Span("x", 1, 1)
UNROLL = "loop i: unroll 2"


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedRun:
    return at(tmp_path, 40)


def test_a_repeated_command_compares_the_same_rounds(prepared: PreparedRun, tmp_path: Path) -> None:
    """The finals give what the database keeps, paired by round, so that verdicts are the same when it is looked up."""
    place = Asked()
    with Store.open(tmp_path / "db") as store:
        (found,), (again,) = (
            finals.run([match(prepared, store, "", "loop k: unroll 2")], place, 1).finals for _ in range(2)
        )
    assert found.us == again.us
    assert {len(times) for times in found.us.values()} == {5000 // 3 + 1}
    assert found.us[""][1] == pytest.approx(10.0 + 3 % 7 / 3, abs=1e-3)
    assert len(place.lineups) == 1


def test_what_left_early_has_the_rounds_it_had(prepared: PreparedRun, tmp_path: Path) -> None:
    """Where some rounds are kept of many, they are the same ones of all; what left is no winner."""

    class Leaving(Asked):
        def measured(self, lab: int, lineup: FinalsRequest) -> Any:
            us = {t: tuple(20.0 - len(t) + k % 7 / 3 for k in range(3458 - 1528 * bool(t))) for t in lineup.finalists}
            return TaskResult(Times(us))

    with Store.open(tmp_path / "db") as store:
        (found,) = finals.run([match(prepared, store, "", "loop k: unroll 2")], Leaving(), 1).finals
    assert {text: len(us) for text, us in found.us.items()} == {"": 1729, "loop k: unroll 2": 965}
    assert all(a - b == pytest.approx(16.0) for a, b in zip(found.us[""], found.us["loop k: unroll 2"], strict=False))
    assert winner(found.us, [*found.us]) == ("", ())


def test_finals_know_what_all_are_compared_with(prepared: PreparedRun, tmp_path: Path) -> None:
    place = Asked(rounds=3)
    with Store.open(tmp_path / "db") as store:
        finals.run([match(prepared, store, "loop k: unroll 2", "", seed=7)], place, 1)
    (lineup,) = place.lineups
    assert (lineup.by_hand, lineup.seed, lineup.default) == (None, 7, "")
    assert [*lineup.finalists] == ["loop k: unroll 2", ""]


def test_what_is_proved_wrong_has_not_won(prepared: PreparedRun, tmp_path: Path) -> None:
    """It says why, and is looked up as such; the next has won, if it is proved, and who cannot win is not proved."""
    texts = ("loop i: unroll 2", "loop i: unroll 16", "loop k: unroll 128", "loop i: unroll 1024")
    place = Asked(rounds=3, wrong=texts[:1])
    with Store.open(tmp_path / "db") as store:
        kernel = replace(match(prepared, store, *texts), default=texts[2])
        (found,), (again,) = (finals.run([kernel], place, 1).finals for _ in range(2))
    assert len(place.lineups) == 1
    assert found.wrong == again.wrong == {texts[0]: "no"}
    assert found.us == again.us
    assert found.us.keys() == found.proofs.keys() | {texts[3]} == {*texts[1:]}
    assert place.proved == [[texts[0], texts[2]], [texts[1]], [texts[1], texts[2]]]
    assert [*found.sources] == [*again.sources] == [texts[1]]


def test_the_plainest_of_the_fastest_will_probably_win(prepared: PreparedRun, tmp_path: Path) -> None:
    """It is proved before the finals, by what the versions took when they were screened."""
    first, plain, slow = "loop i: unroll 2\nloop k: unroll 2", "loop k: unroll 3", ""
    us = {first: 100.0, plain: 100.9, slow: 101.5}
    with Store.open(tmp_path / "db") as store:
        kernel = match(prepared, store, first, plain, slow)
        assert kernel.likely_winners == (first, slow)
        assert replace(kernel, screened_us=us).likely_winners == (plain, slow)
        assert replace(kernel, screened_us=us, default=plain).likely_winners == (plain,)
        assert replace(kernel, screened_us=us, role="ablation").likely_winners == ()


def test_the_times_of_the_screening_stand_where_no_round_is_possible(prepared: PreparedRun, tmp_path: Path) -> None:
    """The winner is proved and written all the same."""
    text, place = "loop i: unroll 2", Asked(rounds=3)
    with Store.open(tmp_path / "db") as store:
        kernel = replace(match(prepared, store, text), screened_us={text: 9e6}, screening_is_final=True)
        (found,) = finals.run([kernel], place, 1).finals
    assert place.lineups == []
    assert found.us == {text: (9e6,)}
    assert [*found.proofs] == [*found.sources] == [text]


@pytest.mark.wide
def test_a_cpu_waits_for_the_original_loops_no_longer_than_a_budget_allows(tmp_path: Path) -> None:
    """Where they may take longer, versions are verified at sizes that show how fast they are."""
    (tmp_path / "f.c").write_text(
        "void f(int n, float A[n][n]) { for (int t = 0; t < n; t++)"
        " for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) A[i][j] += A[i - 1][j] * A[i][j - 1]; }"
    )
    request = TuningRequest(tmp_path / "f.c", defines={"n": "2000"}, target="numba-cpu", sweep=True, budget="40s")
    job = prepare(request).job
    assert (job.reference_s, job.screens) == (10.0, True)
    assert job.prime_problem is not None
    assert job.prime_problem.values == {"n": 251}
    small = prepare(replace(request, defines={"n": "100"})).job
    assert (small.reference_s, small.screens) == (10.0, False)
    unlimited = prepare(replace(request, budget=None)).job
    assert (unlimited.reference_s, unlimited.screens) == (None, False)


@pytest.mark.wide
def test_finals_of_several_kernels_are_run_together(tmp_path: Path) -> None:
    """Those that are known are not run again; what each took for all is shared out."""
    kernels = []
    for name in "fgh":
        (tmp_path / name).mkdir()
        kernels.append(at(tmp_path / name, 40 + len(kernels)))
    place = Asked(rounds=3)
    with Store.open(tmp_path / "db") as store:
        finals.run([match(kernels[1], store, "", "loop i: unroll 2")], place, 1)
        found = finals.run([match(k, store, "", "loop i: unroll 2") for k in kernels], place, 1).finals
    assert len(place.lineups) == 3
    assert [len(f.us) for f in found] == [2, 2, 2]
    assert [[*f.proofs] for f in found] == [[""]] * 3


@pytest.mark.wide
def test_what_fails_takes_no_other_finals_along(tmp_path: Path) -> None:
    """Those of other kernels are kept, and so are versions and hand-written kernels that do not fail by themselves."""

    class Failing(Asked):
        def measured(self, lab: int, lineup: FinalsRequest) -> Any:
            fails = UNROLL in lineup.finalists or lineup.by_hand is not None
            if lab == 1 and fails:
                return TimedOut(3.0) if lineup.by_hand is None else TaskError("no device", "")
            return super().measured(lab, lineup)

    kernels = []
    for name in "fgh":
        (tmp_path / name).mkdir()
        kernels.append(at(tmp_path / name, 40 + len(kernels)))
    by_hand = tmp_path / "hand.py"
    by_hand.write_text("")
    place = Failing(rounds=3)
    with Store.open(tmp_path / "db") as store:
        matches = [match(k, store, "", UNROLL, by_hand=by_hand if k is kernels[1] else None) for k in kernels]
        found = finals.run(matches, place, 1).finals
        again = finals.run(matches, Asked(rounds=3), 1).finals
    assert [[*one.us] for one in found] == [["", UNROLL], [""], ["", UNROLL]]
    assert found[1].refused == {UNROLL: TimedOut(3.0)}
    assert found[1].wrong == {"hand-written": "in the finals: no device"}
    assert [one.us for one in again] == [one.us for one in found]
    assert again[1].refused == found[1].refused


def test_what_was_done_before_the_finals_is_not_done_again(prepared: PreparedRun, tmp_path: Path) -> None:
    place, one = Asked(rounds=3), Asked(rounds=3)
    with Store.open(tmp_path / "db") as store:
        plain = match(prepared, store, "", UNROLL)
        one.open(None, None, 1, 1.0)
        done = {(step, ""): one.compiled(0, step, "") for step in ("prove", "build")}
        (found,) = finals.run([replace(plain, done=done)], place, 1).finals
    assert [*found.us] == ["", UNROLL]
    assert place.proved == [[], []]
    assert place.built == [UNROLL]
    assert found.proofs.keys() == {""}


@pytest.mark.wide
def test_finals_that_fail_although_no_version_does_end_the_command(tmp_path: Path) -> None:
    """Nothing is said of a version that does not fail alone, and the command that is repeated tries them again."""

    class Failing(Asked):
        def measured(self, lab: int, lineup: FinalsRequest) -> Any:
            return super().measured(lab, lineup) if lineup.trial else Crashed("SIGKILL")

    place = Asked(rounds=3)
    with Store.open(tmp_path / "db") as store:
        one = match(at(tmp_path, 40), store, "", UNROLL)
        with pytest.raises(TargetError, match="the finals did not end: SIGKILL"):
            finals.run([one], Failing(rounds=3), 1)
        assert [*finals.run([one], place, 1).finals[0].us] == ["", UNROLL]
    assert len(place.lineups) == 1


def test_a_trial_runs_what_it_does_not_time(prepared: PreparedRun) -> None:
    built = finals.finals_worker(prepared.job, prepared.context)("build", "")
    asked = FinalsRequest({"": built}, None, 0, "", trial=True)  # type: ignore[dict-item]
    assert Finals(MeasuringDevice(prepared.job)).run(asked) == Times({})


def test_a_library_may_use_tensor_cores(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """So its time may be as short as theirs; a version without them may not."""
    binary = finals.finals_worker(prepared.job, prepared.context)("build", "")
    bench = MeasuringDevice(prepared.job)
    path = prepared.request.file.with_name("by_hand.py")
    path.write_text("def library_cpu(dtype):\n    def f(n, m, A, x, y):\n        y += A @ x\n    return f\n")
    asked = []
    monkeypatch.setattr(MeasuringDevice, "impossible", lambda _, _us, matrix_rate: asked.append(matrix_rate))
    assert list(Finals(bench).run(FinalsRequest({"": binary}, path, 0, "")).us) == ["", "library"]
    assert asked == [1, 3]


@pytest.mark.wide
def test_a_hand_written_kernel_that_fails_is_named(prepared: PreparedRun) -> None:
    """With the line of its file; the versions, and the other kernel of the file, are timed all the same."""
    binary = finals.finals_worker(prepared.job, prepared.context)("build", "")
    bench = MeasuringDevice(prepared.job)
    path = prepared.request.file.with_name("by_hand.py")
    right = "def library_cpu(dtype):\n    def f(n, m, A, x, y):\n        y += A @ x\n    return f\n"
    for text, line, error in (
        ("def cpu(dtype):\n    def f(n, m, A, x, y):\n        y[0] = A.nothing\n    return f\n", 3, "AttributeError"),
        ("def cpu(dtype):\n    return dtype.nothing\n", 2, "AttributeError"),
        ("import nothing_of_that_name\n", 1, "ModuleNotFoundError"),
        ("def cpu(:\n", 1, "SyntaxError"),
    ):
        path.write_text(f"{text}{right}")
        times = Finals(bench).run(FinalsRequest({"": binary}, path, 0, ""))
        assert times.us[""]
        assert times.wrong["hand-written"].startswith(f"by_hand.py:{line} raised {error}: ")
        assert ("library" in times.us) == ("A.nothing" in text)


def test_a_finalist_is_built_and_proved(prepared: PreparedRun) -> None:
    """What the processes do beside each other: a program that runs, and the whole proof."""
    lab = KernelBuilder(prepared.job, prepared.context)
    work = finals.finals_worker(prepared.job, prepared.context)
    finalist, proof = (work(step, "loop i: unroll 2") for step in ("build", "prove"))
    arrays = prepared.job.problem.arrays(prepared.job.codelet, 0)
    want = arrays["y"] + arrays["A"] @ arrays["x"]
    lab.backend.load(finalist.load().timed).run(arrays, prepared.job.problem.values, None)
    np.testing.assert_allclose(arrays["y"], want, rtol=1e-4)
    assert "proved equivalent to the original loops" in proof.text
    assert proof.wrong == ""


def test_a_tree_that_is_wrong_is_condemned(prepared: PreparedRun) -> None:
    """Unless the user has asserted it, against the proof."""
    lab = KernelBuilder(prepared.job, prepared.context)
    done = schedule_finalist(lab, "")
    (loop,) = done.codelet.body
    assert isinstance(loop, Loop)
    bad = replace(done, codelet=replace(done.codelet, body=(replace(loop, lo=Const(1)),)))
    found = proved.prove_version(prepared.job, bad)
    assert "THE KERNELS AS LAUNCHED ARE WRONG" in found.wrong
    assert found.wrong in found.text
    assert found.status == "wrong"
    asserted = replace(bad, steps=(AppliedDirective("parallel", "1", "asserted", 1, parse("parallel, assume", SPAN)),))
    found = proved.prove_version(prepared.job, asserted)
    assert (found.wrong, found.status) == ("", "asserted")


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(
    ("directives", "order", "reassociate"),
    [
        ("", "holds without reordering any sum", False),
        ("loop i: unroll 2", "holds without reordering any sum", False),
        ("loop k: unroll 2, split", "rests on reordering +:y (5:7)", True),
    ],
)
def test_sums_stay_in_order_unless_a_directive_says_otherwise(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch, directives: str, order: str, reassociate: bool
) -> None:
    """One proof, of the plan, which lets sums reorder only where they are said to."""
    made = []

    def counted(*given: Any, reassociate: bool, **more: Any) -> Proof:
        made.append(reassociate)
        return plan_check.prove_plan(*given, reassociate=reassociate, **more)

    monkeypatch.setattr(proved, "prove_plan", counted)
    found = proved.prove_version(
        prepared.job, schedule_finalist(KernelBuilder(prepared.job, prepared.context), directives)
    )
    assert found.text.split("; ")[1:] == [
        "the kernels as launched (threads, registers) proved equivalent to the original loops at these sizes",
        order,
        "on a CPU, vectors add up +:y (5:7) in another order",
        "--no-reassociate forbids it",
    ]
    assert (found.wrong, made) == ("", [reassociate])
    assert (found.status, found.sums) == ("proved", ("+:y (5:7)",) if reassociate else ())


def test_loops_are_proved_where_the_plan_is_not_known(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proved, "prove_plan", lambda *given, **more: Proof("unknown", "too large"))
    found = proved.prove_version(prepared.job, schedule_finalist(KernelBuilder(prepared.job, prepared.context), ""))
    assert "the finished loops proved, the kernels as launched could not be compared (too large)" in found.text
    assert (found.wrong, found.status) == ("", "loops proved")


@pytest.mark.parametrize("end", [False, True])
def test_short_finals_have_short_proofs(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch, *, end: bool) -> None:
    """A budget of time limits that of proofs; without one they take what they need."""

    def slow(*given: object, **more: object) -> Proof:
        time.sleep(0.3)
        return Proof("proved")

    monkeypatch.setattr(proved, "prove_plan", slow)
    monkeypatch.setattr(proved, "LEAST_S", 0.1)
    job = replace(prepared.job, finals_s=0.1, finals_end=end)
    found = proved.prove_version(job, schedule_finalist(KernelBuilder(job, prepared.context), ""))
    assert found.status == ("directives proved" if end else "proved")
    assert ("could be compared in 0.1 s, which the budget leaves for it" in found.text) == end


@dataclass(frozen=True)
class Wide(LocalExecutor):
    """Two kernels at once."""

    def concurrency(self, models: Sequence[Any]) -> int:
        return 2


def test_files_are_taken_together_unless_their_time_is_limited(prepared: PreparedRun) -> None:
    """In the order given; what is measured as annotated is done one by one, too."""
    wide = replace(prepared, request=replace(prepared.request, sweep=True))
    files = [(replace(wide, notes=(str(n),)),) for n in range(5)]
    assert list(concurrent_groups(files, Wide())) == [tuple(files[:2]), tuple(files[2:4]), tuple(files[4:])]
    for narrow in (replace(wide, budget=Budget(seconds=5.0)), prepared):
        assert list(concurrent_groups([(narrow,)] * 2, Wide())) == [((narrow,),)] * 2
    assert list(concurrent_groups(files, HERE)) == [(file,) for file in files]
    small = replace(wide.model.facts, memory_bytes=COPIES * 2 * 4 * (30 * 40 + 40 + 30) - 1)
    tight = [(replace(wide, model=replace(wide.model, facts=small)),)] * 2
    assert list(concurrent_groups(tight, Wide())) == [(file,) for file in tight], "the arrays of two have no room"


def test_original_loops_share_the_cores_by_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones end with the small, and each has a core; of unknown work all have as many."""
    monkeypatch.setattr(experiment, "cores", lambda: 20)
    assert experiment.threads([8, 1, 1]) == (16, 2, 2)
    assert experiment.threads([10**12, 10**6]) == (19, 1)
    assert experiment.threads([10**12, None]) == (10, 10)
    assert experiment.threads([0, 0]) == (1, 1)
    assert experiment.threads([10**12]) == (None,)


def test_loops_are_in_doubt_when_a_version_differs(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rounding errors are estimated then, and once: until then the loops run once, also beside other kernels."""
    ran: list[str] = []

    def left(self: ReferenceResult, text: Any, codelet: Any, given: Any, how: str) -> c_reference.ProgramRun:
        ran.append(how)
        return c_reference.ProgramRun({"y": np.ones(30, np.float32)}, (1.0,))

    monkeypatch.setattr(ReferenceResult, "_by_text", left)
    loops = ReferenceResult(replace(prepared.job, threads=1), prepared.job.problem, 0)
    judge = loops.judge(loops.inputs())
    assert ran == [""]
    differs = {"y": np.full(30, 1.5, np.float32)}
    assert judge.wrong(differs) is not None
    assert judge.wrong(differs) is not None
    assert sorted(ran) == ["", "contracted", "moved", "wider"]
