"""A search whose versions another compiler makes: the finalists are the target's own, and verified once more."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from looptune.backends.base import Backend
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.runtime.device import DeviceInfo
from looptune.runtime.outcome import COMPILER, Crashed, NotBuilt, OverLimit, Timed, WrongResult
from looptune.runtime.problem_sizes import sizes_text
from looptune.runtime.targets import Model, target
from looptune.tune.execution.lab import FINALS, PreparedVersion, SweepResult
from looptune.tune.execution.local_executor import HERE
from looptune.tune.measure.build_steps import Finalist
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.finalists import CHECKS, build_check, build_finalist
from looptune.tune.measure.finals_rounds import Finals, FinalsRequest, Times
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.session import experiment, finals
from looptune.tune.session.conclude import _unverified, finals_ahead
from looptune.tune.session.finals import schedule_finalist
from looptune.tune.session.prepare import PreparedRun, TuningRequest, prepare, prepare_all
from looptune.tune.session.search_lab import SearchLab
from looptune.tune.space.space import Configuration
from looptune.tune.store.store import Row, Store
from tests.helpers.fake_finals import Asked, match
from tests.helpers.fake_tasks import timed
from tests.helpers.other_compilers import ROWS, Fatal, OtherCpu, TooLarge, Unable, WrongElsewhere

KERNEL = """
void f(int n, int m, float A[n][m], float x[m], float y[n]) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < m; k++)
      y[i] += A[i][k] * x[k];
}
"""
UNROLL = "loop i: unroll 2"
CUDA = importlib.util.find_spec("numba_cuda") is not None


def request(folder: Path, **more: Any) -> TuningRequest:
    (folder / "f.c").write_text(KERNEL)
    (folder / "f.pragmas").write_text(f"{UNROLL}\n")
    return TuningRequest(
        folder / "f.c", defines={"n": str(ROWS), "m": "24"}, target="numba-cpu", accept_disturbed=True,
        db=folder / "db.sqlite", finals_s=0.2, jobs=1, space=folder / "f.pragmas", **more,
    )  # fmt: skip


def with_compilers(
    prepared: PreparedRun, own: type[NumbaCpu] = NumbaCpu, search: type[NumbaCpu] | None = OtherCpu
) -> PreparedRun:
    """The same with another compiler of the target, and one of its searches."""

    def made(kind: type[NumbaCpu] | None) -> Callable[[], Backend] | None:
        return None if kind is None else partial(kind, prepared.job.cache)

    changed = replace(prepared.job.target, backend=made(own), search_backend=made(search))
    return replace(prepared, job=replace(prepared.job, target=changed), model=replace(prepared.model, target=changed))


def lab_of(prepared: PreparedRun) -> KernelBuilder:
    return KernelBuilder(prepared.job, prepared.context)


def finalist(prepared: PreparedRun, text: str = "") -> Finalist:
    lab = lab_of(prepared)
    built = build_finalist(lab, schedule_finalist(lab, text).codelet, text)
    return built.load()  # type: ignore[union-attr, no-any-return]


def rows(store: Store, role: str) -> Mapping[str, Row]:
    return {row.directives: row for row in store.rows(role=role)}


def compiler(row: Row) -> object:
    assert isinstance(row.outcome, Timed), row.outcome
    return dict(row.outcome.facts).get(COMPILER, "own")


@pytest.mark.wide
def test_a_search_is_compiled_by_one_compiler_and_its_finals_by_another(tmp_path: Path) -> None:
    prepared = with_compilers(prepare(request(tmp_path, sweep=True)))
    with Store.open(prepared.request.db) as store:
        result = experiment.run(prepared, store, lambda _: None)
        searched, last = {**rows(store, "version"), **rows(store, "default")}, rows(store, "final")
    assert searched.keys() >= {"", UNROLL}
    assert {compiler(row) for row in searched.values()} == {"other-cpu"}
    assert last.keys() >= {"", UNROLL}
    assert {compiler(row) for row in last.values()} == {"own"}
    assert result.versions["timed"] == len(searched)
    assert all("timed as" not in entry.verified for entry in result.entries)


@pytest.mark.wide
def test_a_finalist_that_its_own_compiler_makes_wrong_is_no_winner(tmp_path: Path) -> None:
    """Its code is right at the sizes timed, and was never run at others."""
    prepared = with_compilers(prepare(request(tmp_path, sweep=True)), WrongElsewhere)
    with Store.open(prepared.request.db) as store:
        result = experiment.run(prepared, store, lambda _: None)
        last = rows(store, "final")
    for row in last.values():
        assert isinstance(row.outcome, WrongResult)
        assert row.outcome.message.startswith("y[")
        assert " at n=" in row.outcome.message
    assert result.versions["timed"] == 0
    assert result.versions["wrong"] == len(last) >= 2
    default = next(entry for entry in result.entries if entry.name == "default")
    assert default.verified.startswith("WRONG: y[")


@pytest.mark.long
def test_a_finalist_that_ends_its_process_is_no_winner(tmp_path: Path) -> None:
    """The finals go on with the others, in another process."""
    prepared = with_compilers(prepare(request(tmp_path)), Fatal, None)
    with Store.open(tmp_path / "other.sqlite") as store:
        (found,) = finals.run([match(prepared, store, "", UNROLL)], HERE, 1).finals
        last = rows(store, "final")
    crashed = last[UNROLL].outcome
    assert isinstance(crashed, Crashed)
    assert crashed.message.startswith("in the finals: exit code 3")
    assert found.refused == {UNROLL: crashed}
    assert [*found.us] == [*found.proofs] == [*found.sources] == [""]


@pytest.mark.sampled(2)
@pytest.mark.wide
@pytest.mark.parametrize(
    ("own", "kind", "said"),
    [
        (Unable, NotBuilt, "not built: RuntimeError: no code can be made of it"),
        (TooLarge, OverLimit, "over limit: f needs more blocks at once than the device holds"),
    ],
    ids=["not built", "over limit"],
)
def test_a_finalist_that_its_own_compiler_cannot_make_is_no_winner(
    own: type[NumbaCpu], kind: type, said: str, tmp_path: Path
) -> None:
    """Also where only the device knows that."""
    prepared = with_compilers(prepare(request(tmp_path, sweep=True)), own)
    with Store.open(prepared.request.db) as store:
        result = experiment.run(prepared, store, lambda _: None)
        last = rows(store, "final")
        again = experiment.run(prepared, store, lambda _: None)
    assert {type(row.outcome) for row in last.values()} == {kind}
    default = next(entry for entry in result.entries if entry.name == "default")
    assert default.verified == said
    assert again.entries == result.entries


def test_a_finalist_is_verified_again_only_where_it_is_built_anew(tmp_path: Path) -> None:
    usual = prepare(request(tmp_path))
    wrong = with_compilers(usual, WrongElsewhere)
    assert "y[" in str(MeasuringDevice(wrong.job).verify(finalist(wrong)))
    known = with_compilers(usual, WrongElsewhere, None)
    assert MeasuringDevice(known.job).verify(finalist(known)) is None
    right = with_compilers(usual)
    assert MeasuringDevice(right.job).verify(finalist(right)) is None


def test_finalists_compile_ahead_only_where_they_are_built_anew(tmp_path: Path) -> None:
    """In no budget of time, which the other kernels do not share, and not if the database has the finals."""
    prepared = with_compilers(prepare(request(tmp_path)))
    row = Row(prepared.context, "", "default", "s", outcome=timed(10.0))
    spent: Any = None
    searched = SweepResult("s", {}, (row,), (10.0,), 0, False, 1.0, spent)
    with Store.open(tmp_path / "other.sqlite") as store:

        def ahead(of: PreparedRun) -> Sequence[tuple[str, str]]:
            return finals_ahead(of, lab_of(of), store, searched)

        steps = [("prove", ""), ("build", ""), ("at_prime_sizes", ""), ("at_edge_sizes", "")]
        assert ahead(prepared) == steps
        assert ahead(with_compilers(prepared, search=None)) == []
        assert ahead(replace(prepared, job=replace(prepared.job, finals_end=True))) == []
        match(prepared, store, "").store_times(Times({"": (10.0,) * 30}, {}), {})
        assert ahead(prepared) == []


@pytest.mark.wide
def test_a_finalist_that_was_not_verified_at_prime_sizes_is(tmp_path: Path) -> None:
    """Also where the target's own compiler has compiled the search: it was slower than what is verified there."""
    one = with_compilers(prepare(request(tmp_path)), WrongElsewhere, None)
    one = replace(one, job=replace(one.job, target=replace(one.job.target, specializes_sizes=True)))
    said = f"against f.c at the sizes timed and at {sizes_text(one.job.prime_problem)}"  # type: ignore[arg-type]
    rows_of = [Row(one.context, text, outcome=replace(timed(10.0), verified=how))
               for text, how in (("", said), (UNROLL, "against f.c at the sizes timed"), ("far", ""))]  # fmt: skip
    spent: Any = None
    searched = SweepResult("s", {}, tuple(rows_of), (), 0, False, 1.0, spent)
    assert _unverified(one, searched, ("", UNROLL)) == {UNROLL}
    work = finals.finals_worker(one.job, one.context, {UNROLL})
    known, unknown = (work("build", text).load() for text in ("", UNROLL))  # type: ignore[union-attr]
    assert known.at_prime_sizes is None
    device = MeasuringDevice(one.job)
    assert device.verify(known) is None
    assert "y[" in str(device.verify(unknown))


def test_what_takes_longer_to_compile_than_a_budget_has_is_raced_as_it_was_searched(tmp_path: Path) -> None:
    """And the tables say so, today's and those of the stored finals."""
    prepared = with_compilers(prepare(request(tmp_path)), WrongElsewhere)
    short = replace(prepared, job=replace(prepared.job, finals_end=True, finals_s=1e-6))
    made = finalist(short)
    assert made.timed.target == "other-cpu"
    build_check(lab_of(short), schedule_finalist(lab_of(short), "").codelet, "", "at_prime_sizes")
    long = replace(prepared, job=replace(prepared.job, finals_end=True, finals_s=60.0))
    assert finalist(long).timed.target == "numba-cpu"
    times = Finals(MeasuringDevice(short.job)).run(
        FinalsRequest({"": finals.finals_worker(short.job, short.context)("build", "")}, None, 0, "")  # type: ignore[dict-item]
    )
    assert times.compilers == {"": "other-cpu"}
    with Store.open(tmp_path / "other.sqlite") as store:
        one = match(short, store, "")
        assert one.store_times(times, {}).compilers == {"": "other-cpu"}
        found = one.earlier()
    assert found is not None
    assert found.compilers == {"": "other-cpu"}


def test_the_database_tells_searches_by_their_compilers_apart(tmp_path: Path) -> None:
    facts = DeviceInfo("NVIDIA H200", "numba-cuda", "sm_90", 132, 2**36, 2**26, "13010")
    if not CUDA:
        pytest.skip("needs numba-cuda")
    model = Model(target("numba-cuda", facts, (0,), tmp_path), facts, (0,))

    class Pretended(Asked):
        def models(self, *_: Any, **__: Any) -> tuple[Model, ...]:
            return (model,)

        def start_processes(self, *_: Any) -> None:
            pass

    kinds = {"nvrtc": True, "own": True, "plain": False}
    usual = replace(request(tmp_path), target="numba-cuda")
    asked = {
        name: replace(usual, sweep=sweep, search_compiler="own" if name == "own" else "nvrtc")
        for name, sweep in kinds.items()
    }
    made = {name: prepare_all(one, Pretended())[0] for name, one in asked.items()}
    assert {name: one.job.target.search_backend is not None for name, one in made.items()} == {
        "nvrtc": True, "own": False, "plain": False,
    }  # fmt: skip
    assert made["own"].context == made["plain"].context
    assert made["own"].context.hash != made["nvrtc"].context.hash
    assert '"the search\'s": "cuda-c"' in made["nvrtc"].context.toolchain


@pytest.mark.wide
@pytest.mark.skipif(not CUDA, reason="needs numba-cuda")
def test_a_gpus_search_is_compiled_by_nvrtc_and_its_finalists_by_numba(tmp_path: Path) -> None:
    facts = DeviceInfo("NVIDIA H200", "numba-cuda", "sm_90", 132, 2**36, 2**26, "13010")
    prepared = prepare(request(tmp_path))
    job = replace(
        prepared.job, target=target("numba-cuda", facts, (0,), tmp_path / "cache"), finals_end=True, finals_s=5.0
    )
    lab = KernelBuilder(job, prepared.context, lambda _: 5.0)
    version = lab.prepare(Configuration((UNROLL,)))
    assert isinstance(version, PreparedVersion)
    built = lab.build(version.task.load())
    assert built.load().binary.target == "cuda-c"  # type: ignore[union-attr]
    codelet, cache = schedule_finalist(lab, UNROLL).codelet, tmp_path / "cache"
    compiling = SearchLab(KernelBuilder(replace(job, finals_end=False), prepared.context)).compile_setup()
    for name in CHECKS:
        assert compiling(FINALS, (name, UNROLL)) is None
    searched = len([*cache.glob("kernel-*.cubin")])
    ahead = compiling(FINALS, ("build", UNROLL)).load()
    assert len([*cache.glob("kernel-*.cubin")]) == searched + 1, "what it is verified with was built before"
    made = build_finalist(lab, codelet, UNROLL).load()  # type: ignore[union-attr]
    assert {b.target for b in (made.timed, made.at_prime_sizes, made.at_edge_sizes)} == {"numba-cuda"}
    assert len([*cache.glob("kernel-*.cubin")]) == searched + 1, "all of it was built before"
    assert ahead.sources == made.sources
    hasty = KernelBuilder(replace(job, finals_s=1e-6), prepared.context)
    assert build_finalist(hasty, codelet, UNROLL).load().timed.target == "cuda-c"  # type: ignore[union-attr]
