"""A sweep on a Dask cluster: the same results as here, and what becomes of it when its machines go away.

The machines are processes: a scheduler, and workers without a nanny, so that one that is killed stays dead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import TargetError, UsageError
from looptune.runtime.device import Cpu
from looptune.runtime.outcome import Crashed
from looptune.tune.execution import dask_members
from looptune.tune.execution.executor import measure_all
from looptune.tune.execution.lab import Progress, SweepResult
from looptune.tune.execution.local_executor import open_executor
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.session.budget import Budget
from looptune.tune.space.space import parse
from looptune.tune.store.store import Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers import local_sweep
from tests.helpers.fake_devices import SPACE, Lab, Learner, rows, runs, swept, together
from tests.helpers.paths import ROOT

pytest.importorskip("distributed", reason="needs the package distributed")

from looptune.tune.execution import dask_cluster  # Dask has to be there
from looptune.tune.execution.dask_executor import DaskExecutor, DaskWorkers


@dataclass
class Machines:
    """A scheduler and its workers, as processes."""

    folder: Path
    scheduler: subprocess.Popen[bytes] = field(init=False)
    address: str = field(init=False)
    workers: list[subprocess.Popen[bytes]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        where = self.folder / "scheduler.json"
        self.scheduler = self._started("dask_scheduler", "--port", "0", "--scheduler-file", str(where))
        deadline = time.monotonic() + 60
        while not where.exists() or not where.read_text().endswith("}"):
            assert time.monotonic() < deadline, "the scheduler starts"
            time.sleep(0.05)
        self.address = json.loads(where.read_text())["address"]

    def join(self, count: int = 1, resources: str = "MEASURE=1") -> None:
        given = ("--no-nanny", "--nthreads", "2", *(("--resources", resources) if resources else ()))
        self.workers += [self._started("dask_worker", self.address, *given) for _ in range(count)]

    def _started(self, module: str, *given: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *given, "--host", "127.0.0.1", "--no-dashboard"]
        log = (self.folder / "log").open("ab")
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            stdout=log,
            stderr=log,
        )

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def machines(folder: Path, *resources: str) -> Iterator[Machines]:
    made = Machines(folder / "machines")
    try:
        for one in resources:
            made.join(1, one)
        yield made
    finally:
        made.close()


@contextmanager
def connected(made: Machines, count: int) -> Iterator[dask_cluster.Cluster]:
    """With so many workers there."""
    with dask_cluster.connect(made.address, print) as cluster:
        cluster.client.wait_for_workers(count, timeout=60)
        cluster.wait_for("numba-cpu")
        yield cluster


def remote(cluster: dask_cluster.Cluster, folder: Path, lab: Lab, strategy: Any = None, **options: Any) -> SweepResult:
    """A sweep of one lab on the cluster."""
    limit_s = options.pop("timeout_s", 10.0)
    open_workers = partial(DaskWorkers, cluster=cluster, target="numba-cpu", models=(Cpu().facts,), timeout_s=limit_s)
    parts = [(lab, Exhaustive(SPACE) if strategy is None else strategy)]
    given: dict[str, Any] = {"budget": Budget(), "progress": lambda progress: None, "first": ()}
    with Store.open(folder / "store") as store:
        (result,) = local_sweep.swept(parts, store, open_workers, **{**given, **options})
    return result


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dask_cluster.Cluster]:
    """Two workers, which measure and compile."""
    folder = tmp_path_factory.mktemp("cluster")
    with machines(folder, "MEASURE=1", "MEASURE=1") as made, connected(made, 2) as cluster:
        yield cluster


@pytest.mark.long
def test_a_cluster_finds_what_one_machine_does(shared: dask_cluster.Cluster, tmp_path: Path) -> None:
    """Same questions, answers, rows and counts, also of a version that kills its process; the versions are shared by
    the workers that measure, each of which measures one at a time, and no worker is lost."""
    found, workers = [], set(shared.client.nthreads())
    for where in ("here", "there"):
        folder = tmp_path / where
        folder.mkdir()
        lab, learner = Lab(folder / "journal", 1, 0.1, fault="killed", meet=where == "there"), Learner(SPACE)
        if where == "here":
            (result,) = swept(folder, [lab], [learner])
        else:
            result = remote(shared, folder, lab, learner, timeout_s=30.0)
        found.append((learner.log, result.counts, result.times_us, rows(folder)))
    assert found[0] == found[1]
    assert found[1][3]["nowhere", 5] == Crashed("SIGKILL")
    assert set(shared.client.nthreads()) == workers
    done = runs(tmp_path / "there" / "journal")
    shares = Counter(run.pid for run in done)
    assert len(done) == 10
    assert len(shares) in (2, 3)
    assert together(done) >= 2
    assert all(a.end <= b.begin for pid in shares for a, b in pairwise([run for run in done if run.pid == pid]))


def children(cluster: dask_cluster.Cluster) -> int:
    """Processes that looptune has running inside the workers."""
    from psutil import Process

    code = "multiprocessing.spawn"
    return sum(
        any(code in word for word in child.cmdline())
        for pid in cluster.client.run(os.getpid).values()
        for child in Process(pid).children()
    )


@pytest.mark.long
def test_ctrl_c_on_a_cluster(shared: dask_cluster.Cluster, tmp_path: Path) -> None:
    """What is measured there is dropped and its processes end; it runs again, and nothing else does."""

    def interrupt(progress: Progress) -> None:
        if progress.done == 4:
            raise KeyboardInterrupt

    result = remote(shared, tmp_path, Lab(tmp_path / "journal", 1, 0.5), progress=interrupt)
    assert result.interrupted
    before = rows(tmp_path)
    assert all(outcome is not None and not isinstance(outcome, Crashed) for outcome in before.values())
    deadline = time.monotonic() + 10
    while children(shared) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert children(shared) == 0
    (again,) = swept(tmp_path, [Lab(tmp_path / "journal", 1, 0.0)])
    assert (again.resumed, again.counts["timed"], again.counts["crashed"]) == (len(before), 11, 0)


@pytest.mark.wide
def test_another_version_of_the_program_is_refused(
    shared: dask_cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler or workers with another numba than ours are an error that has both versions, before anything is
    measured; a worker that comes later is left out."""
    other = dask_members.versions() | {"numba": "0.1.2"}
    monkeypatch.setattr(
        dask_cluster, "version_mismatch", lambda ours, theirs: dask_members.version_mismatch(other, theirs)
    )
    heard: list[str] = []
    late = dask_cluster.Cluster(shared.client, shared.address, heard.append)
    with pytest.raises(TargetError, match=r"the scheduler at tcp://.*: numba .* \(here 0\.1\.2\); install the same"):
        late.wait_for("numba-cpu")
    monkeypatch.setattr(late, "_check_scheduler", lambda: None)
    with pytest.raises(TargetError, match=r"can be used: tcp://.* on .*: it has numba .* \(here 0\.1\.2\)"):
        late.wait_for("numba-cpu")
    first, second = sorted(shared.members)
    later = dask_cluster.Cluster(shared.client, shared.address, heard.append)
    later.members = {first: shared.members[first]}
    assert later.refresh() == ()
    assert later.members.keys() == {first}
    (said,) = heard
    assert said.startswith(f"a worker is not used: {second} on ")


@pytest.mark.wide
def test_a_cluster_without_a_device(shared: dask_cluster.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker declares a GPU: the message has the command that starts one that does."""
    monkeypatch.setattr(dask_cluster, "APPEAR_S", 0.5)
    with pytest.raises(TargetError, match=r"declares GPU: there are 2; .* dask worker tcp://.* --resources GPU=1"):
        shared.wait_for("numba-cuda")
    assert shared.wait_for("auto") == "numba-cpu"


@pytest.mark.wide
def test_a_file_that_only_we_have(shared: dask_cluster.Cluster, tmp_path: Path) -> None:
    """What measuring needs and a worker lacks is an error beforehand; what it has is none."""
    (tmp_path / "data.npz").touch()
    shared.require([tmp_path / "data.npz"], "numba-cpu")
    (tmp_path / "data.npz").unlink()
    with pytest.raises(TargetError, match=r"has no .*data\.npz"):
        shared.require([tmp_path / "data.npz"], "numba-cpu")


@pytest.mark.long
def test_a_worker_that_dies_gives_its_configuration_back(tmp_path: Path) -> None:
    """The only worker dies of a version, and one that has joined meanwhile measures it and all that is left."""

    def join(made: Machines, progress: Progress) -> None:
        if progress.done == 1:
            made.join()

    lab = Lab(tmp_path / "journal", 1, 0.05, fault="machine dies once")
    with machines(tmp_path, "MEASURE=1") as made, connected(made, 1) as cluster:
        result = remote(cluster, tmp_path, lab, progress=partial(join, made))
    assert (result.counts["timed"], result.counts["illegal"], result.counts["crashed"]) == (11, 1, 0)
    assert lab.journal.read_text().count("begin 5 ") == 2


@pytest.mark.long
def test_finals_outlive_a_worker(tmp_path: Path) -> None:
    """A task that needs a device for itself runs again on a worker that joins."""
    lab = Lab(tmp_path / "journal", 1, 0.05, fault="machine dies once")
    model: Any = SimpleNamespace(target=SimpleNamespace(name="numba-cpu"), facts=Cpu().facts)
    with machines(tmp_path, "MEASURE=1") as made, connected(made, 1) as cluster:
        executor = DaskExecutor(cluster)
        with executor.open([lab, lab], [model, model], 1, 30.0, exclusive=True, baselines=1) as workers:
            made.join()
            replies = dict(measure_all(workers, {0: (5, None), 1: (2, None)}))
    assert {n: reply.value.median_us for n, reply in replies.items() if isinstance(reply, TaskResult)} == {0: 5, 1: 2}
    assert lab.journal.read_text().count("begin 5 ") == 2


@pytest.mark.long
def test_a_version_that_two_workers_die_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is crashed, and names both; with no worker left and none to come the sweep ends in an error that says so, and
    what was measured is kept."""
    monkeypatch.setattr("looptune.tune.execution.dask_executor.DESERTED_S", 2.0)
    lab = Lab(tmp_path / "journal", 1, 0.1, fault="machine dies")
    many = Exhaustive(parse("loop k: unroll {1..100}", "s"))
    with machines(tmp_path, "MEASURE=1", "MEASURE=1") as made, connected(made, 2) as cluster:
        there = {member.named for member in cluster.members.values()}
        with pytest.raises(TargetError, match="the workers left in the cluster cannot go on: for 2 s"):
            remote(cluster, tmp_path, lab, many)
    found = rows(tmp_path)
    outcome = found["nowhere", 5]
    assert isinstance(outcome, Crashed)
    assert all(name in outcome.message for name in there)
    assert lab.journal.read_text().count("begin 5 ") == 2
    assert [found["nowhere", n].__class__.__name__ for n in (1, 2, 3, 4)] == ["Timed"] * 4


@pytest.mark.long
def test_the_scheduler_goes_away(tmp_path: Path) -> None:
    """One message; all that was measured is in the database, nothing is in doubt, and a sweep here goes on from it."""

    def end(made: Machines, progress: Progress) -> None:
        if progress.done == 5:
            made.scheduler.kill()

    lab = Lab(tmp_path / "journal", 1, 0.1)
    away = pytest.raises(TargetError, match=r"the scheduler at tcp://\S+ went away; the measurements are saved")
    with machines(tmp_path, "MEASURE=1") as made, connected(made, 1) as cluster, away:
        remote(cluster, tmp_path, lab, progress=partial(end, made))
    before = rows(tmp_path)
    assert len(before) >= 5
    assert all(outcome is not None and not isinstance(outcome, Crashed) for outcome in before.values())
    (again,) = swept(tmp_path, [lab])
    assert (again.resumed, again.counts["timed"]) == (len(before), 11)


KERNEL = "void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += 2 * x[i]; }\n"


@pytest.mark.long
def test_run_on_a_local_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`looptune run --cluster local:1`: the real laboratory from kernel to finals, in processes of the cluster."""
    monkeypatch.chdir(tmp_path)
    Path("f.c").write_text(KERNEL)
    line = "run f.c -D n=300 --target numba-cpu --cluster local:1 --db db --reports r --json"
    done = CliRunner().invoke(cli, line.split(), standalone_mode=False)
    assert done.exception is None, done.output
    record = json.loads(done.stdout)
    assert (record["device"], record["versions"]["timed"]) == (Cpu().facts.name, 1)
    assert record["default_us"] is not None
    assert record["sequential_us"] is not None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("local:0", "expected local or local:N"),
        ("local:x", "expected local or local:N"),
        ("nowhere", "expected a scheduler's address"),
        ("bar://host:1", "expected a scheduler's address"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_addresses_that_are_none(address: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nonsense and silence are one message each, that quotes the address."""
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 0.5)
    with pytest.raises((UsageError, TargetError)) as found, open_executor(address, None, print):
        pass
    assert message in found.value.message
