"""The launches of a call that is repeated are one graph: on a libcuda that is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.host_kernels import write_fake_driver
from tests.helpers.runtime_programs import FREED, Programs, Ran
from tests.helpers.whole_programs import Ran as ProgramRan
from tests.helpers.whole_programs import agrees, build

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++")
STEPS = ("call", "1000", "steps")
"""Three kernels and memory that is set, in each call."""


def test_a_call_that_is_repeated(programs: Programs) -> None:
    """The first call launches its kernels, the second captures them, later ones launch the graph; all is freed."""
    ran = programs.right(*STEPS, "4", LOOPTUNE_VERBOSE=1)
    assert (ran.count("launch"), ran.count("captured launch"), ran.count("captured set")) == (3, 3, 1)
    assert ran.count("graph 4") == 3
    assert "steps (app.c:9):   kernels launched as one graph, calls: 3" in ran.said
    assert ran.log[-1] == FREED
    assert ran.count("misuse") == 0


def test_a_call_of_few_kernels(programs: Programs) -> None:
    """The launch of a graph takes as long as that of two kernels: fewer are launched as they are."""
    assert programs.right("call", "1000", "axpy", "4").count("graph|captured") == 0


def test_by_choice(programs: Programs) -> None:
    """LOOPTUNE_GRAPHS=0 launches one kernel after the other, and checked calls do so too."""
    for settings in ({"LOOPTUNE_GRAPHS": 0}, {"LOOPTUNE_CHECK": 1}):
        assert programs.right(*STEPS, "4", **settings).count("graph|captured") == 0
    assert programs.right(*STEPS, "4", LOOPTUNE_GRAPHS=1).count("graph") == 3


def test_other_arguments(programs: Programs) -> None:
    """Calls on two arrays in turn have a graph each; what has changed is never launched with what was before.

    The memory of the first call's own array becomes that of z.
    """
    ran = programs.right("sequence", "1000", "t.tz.t.tz.t.tz.")
    assert (ran.count("launch"), ran.count("captured launch"), ran.count("graph")) == (9, 6, 3)
    assert programs.right("sequence", "1000", "t.tz.t.rt.zt.t.").log[-1] == FREED


def test_arguments_that_never_come_again(programs: Programs) -> None:
    """Nothing is captured where each call has other arrays."""
    ran = programs.right("many", "1000", "steps", "9")
    assert ran.count("captured") == 0


def test_asynchronous_calls_and_data_that_stay(programs: Programs) -> None:
    """What the directives leave on the device is what the graph works on."""
    ran = programs.right("sequence", "1000", "tk.tpk.tpa.wtp.tp.s")
    assert ran.count("graph") == 4
    assert ran.log[-1] == FREED


@pytest.mark.parametrize(
    "failure",
    ["cuThreadExchangeStreamCaptureMode:1=801", "cuStreamCreate:3=2", "cuStreamBeginCapture_v2:1=900",
     "cuLaunchKernel:5=901", "cuMemsetD8Async:4=906", "cuStreamEndCapture:1=901", "cuStreamEndCapture:1=904",
     "cuGraphInstantiateWithFlags:1=2", "cuGraphInstantiateWithFlags:1=1", "cuGraphLaunch:1=2", "cuGraphLaunch:2=801"],
)  # fmt: skip
def test_what_cannot_be_captured(programs: Programs, failure: str) -> None:
    """Where a graph is not possible, kernels are launched one after the other, and no later call tries again."""
    ran = programs.right(*STEPS, "5", FAKE_CUDA_FAIL=failure, LOOPTUNE_VERBOSE=1)
    assert ran.count("fails") == 1
    assert ran.said.count("steps (app.c:9): its launches are no graph (") == 1
    assert ran.count("launch") == (9 if failure == "cuGraphLaunch:2=801" else 12) + 3
    assert "calls on the host" not in ran.said
    assert ran.log[-1] == FREED


@pytest.mark.parametrize(
    "failure",
    ["cuStreamBeginCapture_v2:1=719", "cuLaunchKernel:5=719", "cuStreamEndCapture:1=700", "cuGraphLaunch:1=719",
     "cuGraphLaunch:2=999", "kernel:5=719", "kernel:8=700", "cuGraphInstantiateWithFlags:1=719"],
)  # fmt: skip
def test_a_device_that_is_lost(programs: Programs, failure: str) -> None:
    """The call runs on the host, and so do later ones, as after any other loss."""
    ran = programs.right(*STEPS, "5", FAKE_CUDA_FAIL=failure, LOOPTUNE_VERBOSE=1)
    assert "it is not used again" in ran.said
    assert "calls on the host" in ran.said


def test_memory_that_graphs_take(programs: Programs) -> None:
    """Where the device has no memory left, graphs are given up before copies of arrays."""
    room = 4 * 4096 + 256 + 4 * 256 - 1
    ran = programs.right("sequence", "1000", "t.t.t.tz.tz.t.t.", FAKE_CUDA_MEMORY=room)
    assert ran.count("graph") > 0
    assert ran.count("forget graph") > 0
    assert "status 0" in ran.out


def test_a_driver_without_graphs(programs: Programs, tmp_path: Path) -> None:
    """Older drivers lack the functions: kernels are launched one after the other."""
    write_fake_driver(tmp_path, "-DWITHOUT_GRAPHS")
    shutil.copy(programs.folder / "codelets", tmp_path)
    shutil.copy(programs.folder / "kernels.so", tmp_path)
    ran = Programs(tmp_path).right(*STEPS, "4")
    assert (ran.count("launch"), ran.count("graph|captured")) == (12, 0)


def test_threads_and_forks(programs: Programs) -> None:
    """Threads have graphs of their own arrays; a child of a process that has graphs runs the original loops."""
    ran = programs.run("threads")
    assert ran.out == "threads: wrong ones 0\n", ran
    assert ran.count("graph") > 0
    assert ran.log[-1] == FREED


def test_streams_of_a_caller(programs: Programs) -> None:
    """Calls on a caller's memory and stream are graphs too, and go into the caller's graph while it captures."""
    ran = programs.right("device", "1000", "steps", "4")
    assert (ran.count("launch"), ran.count("graph 4")) == (3, 3)
    assert ran.count("misuse") == 0
    ran = programs.right("captured", "1000", "axpy", "3")
    assert (ran.count("captured launch"), ran.count("graph 1")) == (1, 3)
    assert ran.count("misuse") == 0


def depths(ran: Ran | ProgramRan) -> list[int]:
    return [int(line.split()[1]) for line in ran.log if line.startswith("depth")]


def test_two_kernels_at_a_time(programs: Programs) -> None:
    """In a graph, the second of a pair waits for what the first one waits for, and what follows waits for both."""
    ran = programs.right("call", "2000", "pairs", "3")
    assert (depths(ran), ran.count("graph 8")) == ([1, 1, 2, 3, 4, 4, 5, 6], 2)
    assert (ran.log[-1], ran.count("misuse")) == (FREED, 0)


def test_without_the_first_of_a_pair(programs: Programs) -> None:
    """The second one waits for the launch before the pair."""
    ran = programs.right("call", "1000", "pairs", "3")
    assert (depths(ran), ran.count("graph 6")) == ([1, 2, 3, 4, 5, 6], 2)


@pytest.mark.parametrize(
    "failure",
    ["cuStreamCreate:4=2", "cuEventCreate:10=2", "cuStreamWaitEvent:3=900", "cuStreamWaitEvent:4=901",
     "cuEventRecord:10=901", "cuLaunchKernel:10=901"],
)  # fmt: skip
def test_a_pair_that_cannot_be_captured(programs: Programs, failure: str) -> None:
    ran = programs.right("call", "2000", "pairs", "4", FAKE_CUDA_FAIL=failure, LOOPTUNE_VERBOSE=1)
    assert ran.count("fails") == 1
    assert ran.said.count("pairs (app.c:65): its launches are no graph (") == 1
    assert "calls on the host" not in ran.said
    assert ran.log[-1] == FREED


@pytest.mark.wide
def test_a_program(tmp_path: Path, driver: Path) -> None:
    """What looptune cc writes says how large the parameters of kernels are, so that their launches can be a graph."""
    (tmp_path / "main.c").write_text("""#include <stdio.h>
#pragma hmpp steps codelet, args[x].io=inout, args[y].io=inout
static void steps(int n, int t, double a, double *x, double *y)
{
    for (int k = 0; k < t; k++) {
        for (int i = 1; i < n; i++)
            y[i] = x[i - 1] * a + k;
        for (int i = 1; i < n; i++)
            x[i] = y[i];
    }
}
int main(void)
{
    static double x[300], y[300];
    for (int i = 0; i < 300; i++) x[i] = i;
    for (int k = 0; k < 8; k++) {
#pragma hmpp steps callsite
        steps(k < 5 ? 300 : 200, 4, .5, x, y);
        printf("%g\\n", x[7]);
    }
}
""")
    program = build([tmp_path / "main.c"], tmp_path, driver)
    agrees(program)
    ran = program.on_device()
    assert (ran.count("launch") % 2, ran.count("graph")) == (0, 6)


@pytest.mark.wide
def test_a_program_with_pairs(tmp_path: Path, driver: Path) -> None:
    """The kernels of a ``concurrent`` loop and of the one before it have the same depth, unless one has no blocks."""
    (tmp_path / "main.c").write_text("""#include <stdio.h>
#pragma hmpp pairs codelet, args[x;y].io=inout
static void pairs(int n, int m, double *x, double *y)
{
#pragma hmppcg noParallel
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            x[i] += k + 1;
#pragma looptune concurrent
        for (int i = 0; i < m; i++)
            y[i] = y[i] * 2 + k;
        for (int i = 0; i < 9; i++)
            x[i] -= y[i];
    }
}
int main(void)
{
    static double x[300], y[300];
    for (int k = 0; k < 6; k++) {
#pragma hmpp pairs callsite
        pairs(k < 3 ? 300 : 0, 200, x, y);
        printf("%g %g\\n", x[7], y[8]);
    }
}
""")
    program = build([tmp_path / "main.c"], tmp_path, driver)
    agrees(program)
    assert depths(program.on_device()) == [1, 1, 2, 3, 3, 4, 1, 2, 3, 4]
