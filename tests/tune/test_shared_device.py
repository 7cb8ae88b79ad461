"""One device for the kernels that are swept at once: a task that does work of its own leaves it to the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from looptune.tune.execution.executor import TaskReply
from looptune.tune.execution.local_executor import LocalWorkers
from looptune.tune.execution.process import Setup
from looptune.tune.execution.worker_loop import TaskResult
from tests.helpers.worker_tasks import setup


@dataclass(frozen=True)
class Lab:
    """Its processes run the tasks of ``worker_tasks``."""

    compile_setup: Setup = setup
    measure_setups: tuple[Setup, ...] = (setup,)


def test_a_task_leaves_the_device_to_others_while_it_does_work_of_its_own(tmp_path: Path) -> None:
    """It goes on when the other has ended, although its own work is done before; each has its own reply."""
    made, journal = tmp_path / "made", tmp_path / "journal"
    labs: Any = (Lab(), Lab(measure_setups=(partial(setup, 1),)))
    replies: list[TaskReply] = []
    with LocalWorkers(labs, 1, 30.0, devices=[("gpu 0",), ("gpu 0",)]) as workers:
        workers.get_ready((0, 1))
        assert workers.free(0)
        workers.measure(0, "first", "own until", made, journal)
        assert not workers.free(1), "the device is the first kernel's"
        while not workers.free(1):
            workers.sleep(30.0)
            replies += workers.replies()
        assert not workers.free(0), "its process is at work"
        workers.measure(1, "second", "meanwhile", made, journal)
        while len(replies) < 2:
            workers.sleep(30.0)
            replies += workers.replies()
        assert workers.free(0)
        assert workers.free(1)
    assert journal.read_text().split("\n") == ["done", "on again", ""]
    assert {r.key: r.reply for r in replies} == {"first": TaskResult(True), "second": TaskResult("meanwhile")}
