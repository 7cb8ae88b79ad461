"""Several devices: one sweep's versions shared among those of a model, and several models swept at once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import TargetError, UsageError
from looptune.runtime import targets
from looptune.runtime.device import Cpu, DeviceInfo
from looptune.runtime.outcome import Crashed, Outcome, TimedOut
from looptune.tune.execution import dask_members
from looptune.tune.execution.dask_members import ClusterWorker
from looptune.tune.execution.lab import Progress
from looptune.tune.execution.local_executor import LocalExecutor, LocalWorkers, open_executor
from looptune.tune.execution.process import ProcessCache
from looptune.tune.store.store import Store
from tests.helpers.fake_devices import SPACE, Lab, Learner, on, rows, runs, swept, together
from tests.helpers.paths import ROOT


@pytest.mark.wide
def test_devices_of_a_model_share_the_work(tmp_path: Path) -> None:
    """Each version runs once, on one of two processes that measure at the same time most of the time."""
    (result,) = swept(tmp_path, [Lab(tmp_path / "journal", measure_s=0.15, meet=True)], timeout_s=30.0)
    done = runs(tmp_path / "journal")
    assert sorted(run.number for run in done) == [n for n in range(1, 13) if n % 7]
    shares = Counter(run.pid for run in done)
    assert len(shares) == 2
    assert min(shares.values()) >= 3
    assert together(done) >= 7
    spent = result.spent
    assert spent.devices == 2
    whole = spent.launch + spent.verify + spent.measure + spent.failed + spent.waiting
    assert whole == pytest.approx(result.elapsed_s, rel=0.01)


@pytest.mark.wide
def test_one_device_measures_one_version_at_a_time(tmp_path: Path) -> None:
    """Neither process of two runs two versions at once."""
    swept(tmp_path, [Lab(tmp_path / "journal")])
    done = runs(tmp_path / "journal")
    for pid in {run.pid for run in done}:
        own = [run for run in done if run.pid == pid]
        assert all(a.end <= b.begin for a, b in pairwise(own))


@pytest.mark.wide
def test_two_devices_find_what_one_does(tmp_path: Path) -> None:
    """The strategy is asked and told the same in the same order, rows and counts are equal, and a sweep on one device
    goes on from one on two."""
    found = []
    for devices in (1, 2):
        folder = tmp_path / str(devices)
        folder.mkdir()
        learner = Learner(SPACE)
        (result,) = swept(folder, [Lab(folder / "journal", devices, 0.02)], [learner])
        found.append((learner.log, result.counts, result.times_us, rows(folder)))
    assert found[0] == found[1]
    (again,) = swept(tmp_path / "2", [Lab(tmp_path / "2" / "journal", 1)])
    assert again.resumed == again.counts["timed"] + again.counts["illegal"] == 12


@pytest.mark.sampled(3)
@pytest.mark.wide
@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("killed", Crashed("SIGKILL")),
        ("raises", Crashed("RuntimeError: the context is lost")),
        ("hangs", TimedOut(0.5)),
    ],
)
def test_a_fault_on_one_device_costs_one_version(tmp_path: Path, fault: str, outcome: Outcome) -> None:
    """The process that was measuring is replaced; the other device's measurements stand."""
    (result,) = swept(tmp_path, [Lab(tmp_path / "journal", fault=fault)], timeout_s=0.5)
    assert rows(tmp_path)["nowhere", 5] == outcome
    assert (result.counts["timed"], result.counts["illegal"]) == (10, 1)
    done = runs(tmp_path / "journal")
    assert sorted(run.number for run in done) == [1, 2, 3, 4, 6, 8, 9, 10, 11, 12]
    (culprit,) = re.findall(r"begin 5 (\d+) (.*)", (tmp_path / "journal").read_text())
    assert all(run.begin < float(culprit[1]) for run in done if run.pid == int(culprit[0]))


@pytest.mark.wide
def test_ctrl_c_drops_what_every_device_measures(tmp_path: Path) -> None:
    """With two models, one of them on two devices: versions in progress are no crashes but run again; what was finished
    is not, on either model."""

    once = iter([KeyboardInterrupt])

    def interrupt(progress: Progress) -> None:
        if progress.done == 4:
            time.sleep(0.2)
            for pressed in once:
                raise pressed

    labs = [Lab(tmp_path / "journal", 2, 0.3), on(Lab(tmp_path / "journal", 1, 0.3), "other", 2.0)]
    assert [result.interrupted for result in swept(tmp_path, labs, progress=interrupt)] == [True, True]
    before = rows(tmp_path)
    assert all(outcome is not None and not isinstance(outcome, Crashed) for outcome in before.values())
    again = swept(tmp_path, [replace(lab, measure_s=0.0) for lab in labs])
    assert sum(result.resumed for result in again) == len(before)
    assert [(result.counts["timed"], result.counts["crashed"]) for result in again] == [(11, 0), (11, 0)]


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.helpers.fake_devices import Lab, swept
if __name__ == "__main__":
    swept(Path(sys.argv[2]), [Lab(Path(sys.argv[2]) / "journal", measure_s=1.0)])
"""


@pytest.mark.long
def test_kill_9_costs_what_was_being_measured(tmp_path: Path) -> None:
    """Killed while two devices measure: those two read as crashed, and the others run when it is repeated."""
    (tmp_path / "killed.py").write_text(KILLED)
    process = subprocess.Popen([sys.executable, str(tmp_path / "killed.py"), str(ROOT), str(tmp_path)])
    deadline = time.monotonic() + 60
    journal = tmp_path / "journal"
    while time.monotonic() < deadline and (not journal.exists() or journal.read_text().count("begin") < 4):
        time.sleep(0.02)
    time.sleep(0.1)
    process.kill()
    process.wait()
    (result,) = swept(tmp_path, [Lab(journal, measure_s=0.0)])
    assert (result.counts["timed"], result.counts["crashed"], result.counts["illegal"]) == (9, 2, 1)


@pytest.mark.wide
def test_models_are_swept_at_once_and_apart(tmp_path: Path) -> None:
    """Each of two models measures every version, learns its own times, and goes on where it stopped; the faster one
    does not wait for the slower."""
    fast = on(Lab(tmp_path / "j", 1, 0.02), "fast", 1.0)
    slow = on(Lab(tmp_path / "j", 1, 0.1), "slow", 3.0)
    learners = [Learner(SPACE), Learner(SPACE)]
    first, second = swept(tmp_path, [fast, slow], learners)
    assert [r.times_us[:3] for r in (first, second)] == [(1.0, 2.0, 3.0), (3.0, 6.0, 9.0)]
    assert first.counts == second.counts
    assert [text for text, _ in learners[0].log] == [text for text, _ in learners[1].log]
    assert ("tell loop k: unroll 2", 6.0) in learners[1].log
    assert runs(fast.journal)[-1].end < runs(slow.journal)[-1].begin
    assert first.elapsed_s < second.elapsed_s
    again = swept(tmp_path, [fast, slow])
    assert [result.resumed for result in again] == [12, 12]
    assert len(rows(tmp_path)) == 24


@pytest.mark.wide
def test_kernels_share_devices(tmp_path: Path, spares: ProcessCache) -> None:
    """Two kernels on the same two devices: both devices are used, for either kernel, and for one version at a time."""
    labs = [on(Lab(tmp_path / "j", 2, 0.4), name, 1.0) for name in "ab"]
    open_workers = partial(LocalWorkers, jobs=2, timeout_s=30.0, spares=spares, devices=(("0", "1"),) * 2)
    first, second = swept(tmp_path, labs, open_workers=open_workers)
    assert first.times_us == second.times_us
    assert len(first.times_us) == 11
    done = [run for lab in labs for run in runs(lab.journal)]
    assert len({run.pid for run in done}) == 4
    assert together(done) > 0
    for moment in (run.begin for run in done):
        assert sum(run.begin <= moment < run.end for run in done) <= 2


@pytest.mark.wide
def test_a_device_does_not_wait_for_a_kernel_that_sets_up(tmp_path: Path, spares: ProcessCache) -> None:
    """The other kernel's versions are all measured meanwhile, whichever was first to have one."""
    first, second = (on(Lab(tmp_path / "j", 1, 0.01), name, 1.0) for name in "ab")
    labs = [replace(first, after=second.journal), second]
    open_workers = partial(LocalWorkers, jobs=2, timeout_s=30.0, spares=spares, devices=(("0",),) * 2)
    assert [len(result.times_us) for result in swept(tmp_path, labs, open_workers=open_workers)] == [11, 11]
    assert runs(labs[1].journal)[-1].end < runs(labs[0].journal)[0].begin


@pytest.fixture
def spares() -> Iterator[ProcessCache]:
    with ProcessCache() as spares:
        yield spares


# -- from the command line ------------------------------------------------------------------------------------------


class StandIn(Cpu):
    """The CPU under another name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.facts = replace(self.facts, name=name)


def stand_ins(name: str, cache: Path, devices: str | None = None, **options: Any) -> tuple[targets.Model, ...]:
    """Two of one model and one of another."""
    made = []
    for model, numbers in (("Model A", (0, 2)), ("Model B", (1,))):
        machine = partial(StandIn, model)
        target = replace(targets.resolve("numba-cpu", cache), machine=machine, others=(machine,) * (len(numbers) - 1))
        made.append(targets.Model(target, machine().facts, numbers))
    return tuple(made)


KERNEL = "void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += 2 * x[i]; }\n"


@pytest.mark.long
def test_two_models_give_two_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite on two models: per kernel a result, a report and a row for each, and commands that name the GPU."""
    finals: list[tuple[str, str]] = []
    opened = LocalExecutor.open

    def noted(
        executor: LocalExecutor, labs: Any, models: Any, jobs: int, timeout_s: float, **more: Any
    ) -> LocalWorkers:
        if more:
            machines = [lab.measure_setups[0].args[0].target.machine for lab in labs[: -more["baselines"]]]
            finals.extend((m.facts.name, machine().facts.name) for m, machine in zip(models, machines, strict=False))
        return opened(executor, labs, models, jobs, timeout_s, **more)

    monkeypatch.setattr(targets, "models", stand_ins)
    monkeypatch.setattr(LocalExecutor, "open", noted)
    monkeypatch.chdir(tmp_path)
    Path("f.c").write_text(KERNEL)
    Path("f.space").write_text("loop i: unroll {2..3}\n")
    line = "run f.c -D n=300 --sweep --space f.space --db db --reports r --devices all --json"
    done = CliRunner().invoke(cli, line.split(), standalone_mode=False)
    assert done.exception is None, done.output
    records = json.loads(done.stdout)
    assert [(r["kernel"], r["device"], r["versions"]["timed"]) for r in records] == [
        ("f", "Model A", 4),
        ("f", "Model B", 4),
    ], "two in the space, the default, and the version without threads"
    assert all(r["tuned_us"] is not None for r in records)
    assert finals == [("Model A", "Model A"), ("Model B", "Model B")]
    page = Path("r/models-float32.md").read_text()
    assert [row.split(" | ")[2] for row in page.splitlines() if row.startswith("| f ")] == [
        "[Model A](model-a/f.md)",
        "[Model B](model-b/f.md)",
    ]
    assert ", the mean of 2 devices: " in Path("r/model-a/f.md").read_text()
    assert "devices: " not in Path("r/model-b/f.md").read_text()
    with Store.read("db") as store:
        commands = set(store.commands().values())
        assert Counter(row.context.device for row in store.rows(role="version")) == {"Model A": 3, "Model B": 3}
    assert sorted("--devices 1" in command for command in commands) == [False, True]


@pytest.mark.long
def test_a_suite_is_swept_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three files on two devices, two at once: finals each on its own, then the third; progress names both kernels.
    Original loops are timed one after the other, the first of them while there are finals."""
    monkeypatch.setattr(LocalExecutor, "concurrency", lambda place, models: 2)
    waves: list[list[str]] = []
    slept = LocalWorkers.sleep

    def waited(workers: LocalWorkers, timeout_s: float | None) -> None:
        busy = sorted(workers._busy)
        if workers._exclusive and busy and (not waves or waves[-1] != busy):
            waves.append(busy)
        slept(workers, timeout_s)

    def model(name: str, cache: Path, devices: str | None = None, **options: Any) -> tuple[targets.Model, ...]:
        machine = partial(StandIn, "Model A")
        target = replace(targets.resolve("numba-cpu", cache), machine=machine, others=(machine,))
        return (targets.Model(target, machine().facts, (0, 1)),)

    monkeypatch.setattr(targets, "models", model)
    monkeypatch.setattr(LocalWorkers, "sleep", waited)
    monkeypatch.setattr(LocalExecutor, "overlaps_compilation", lambda place, target: True)
    monkeypatch.chdir(tmp_path)
    for name in "fgh":
        Path(f"{name}.c").write_text(KERNEL.replace("f(", f"{name}("))
    Path("s.space").write_text("loop i: unroll {2..3}\n")
    line = "run f.c g.c h.c -D n=300 --sweep --space s.space --db db --reports r --jobs 2"
    done = CliRunner().invoke(cli, line.split(), standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0), done.output
    assert waves[0] == ["compiling", "numba-cpu 0", "numba-cpu 1"]
    assert all(wave.count("compiling") <= 1 for wave in waves)
    raced = [own for wave in waves if (own := [kind for kind in wave if kind != "compiling"])]
    assert (raced[0], raced[-1]) == (["numba-cpu 0", "numba-cpu 1"], ["numba-cpu 0"])
    assert all(len(own) == 1 for own in raced if own != raced[0])
    said = [done.output.index(f"{name}: 2 versions, on 2 Model A") for name in "fgh"]
    assert said[1] < done.output.index("f float32 n=300") < done.output.index("g float32 n=300") < said[2]
    assert all(f"{name}: [4/4]" in done.output for name in "fg"), done.output
    assert "h: [" not in done.output
    whole = re.search(r"^time of all: ([\d.]+) s, the mean of 2 devices: launch", done.output, re.MULTILINE)
    assert whole is not None
    parts = sum(float(s) for s in re.findall(r"^time: ([\d.]+) s", done.output, re.MULTILINE))
    assert 0 < float(whole[1]) < parts + 5


# -- of a cluster, without Dask -------------------------------------------------------------------------------------


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """--cluster without Dask is one line with the command that installs it; --devices has no meaning there."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    needs = r"--cluster needs .* pip install 'looptune\[distributed\]'"
    with pytest.raises(TargetError, match=needs), open_executor("tcp://127.0.0.1:8786", None, print):
        pass
    with pytest.raises(UsageError, match="--devices selects GPUs of this machine"), open_executor("local", "0", print):
        pass


def member(address: str, *devices: DeviceInfo, **versions: str) -> ClusterWorker:
    return ClusterWorker(address, "host", 2, {"numba-cuda": devices, "numba-cpu": ()}, versions)


def test_a_cluster_has_the_models_of_its_workers() -> None:
    """Workers with one model share it; the number of its devices is that of the worker that has most."""
    big = DeviceInfo("NVIDIA H200", "numba-cuda", "sm_90", 132, 1, 1, "13000")
    small = DeviceInfo("NVIDIA A100", "numba-cuda", "sm_80", 108, 1, 1, "13000")
    there = [member("a", big, big), member("b", small), member("c", big), member("d")]
    assert dask_members.models(there, "numba-cuda") == ((small, 1), (big, 2))
    assert dask_members.models(there, "numba-cpu") == ()


def test_versions_that_differ_are_named() -> None:
    """Each package that is another one there, or missing on either side, with both versions."""
    ours = {"looptune": "0.1.0 (aa)", "numba": "0.68.1", "numpy": "2.4"}
    assert dask_members.version_mismatch(ours, dict(ours)) == ""
    theirs = {"looptune": "0.1.0 (bb)", "numba": "0.61.0", "islpy": "1"}
    assert dask_members.version_mismatch(ours, theirs) == (
        "looptune 0.1.0 (bb) (here 0.1.0 (aa)), numba 0.61.0 (here 0.68.1), numpy missing (here 2.4), "
        "islpy 1 (here missing)"
    )
