"""The C runtime of whole programs, on a libcuda that is none: every fault is defined, and no result is wrong."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.helpers.runtime_programs import FREED, Programs

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++")
COMPARE, NO_MEMORY, ALIASED, BAD_GRID = 1, 4, 5, 6


def test_call(programs: Programs) -> None:
    """A call sends what is read, launches, and fetches what is written; at exit all is freed; nothing is said."""
    ran = programs.right("call", "1000")
    assert ran.said == ""
    assert ran.count("to 4000") == 2
    assert ran.count("from 4000") == 1
    assert ran.count("launch axpy_tuned 8x1x1 128x1x1 65536") == 1
    assert ran.log[-1] == FREED


def test_no_elements(programs: Programs) -> None:
    """Arrays without elements have an address, and a grid without blocks is not launched."""
    ran = programs.right("call", "0")
    assert ran.count("to|from|launch") == 0


def test_large_arrays_through_pinned_memory(programs: Programs) -> None:
    """Arrays that are larger than the pinned memory go through it in parts, and scratch memory is zero."""
    ran = programs.right("call", "3000000", "steps", "2", LOOPTUNE_GRAPHS=0)
    assert ran.count("launch") == 6
    assert ran.count("set 12000000") == 2
    assert ran.count("from 4194304") == 4
    assert ran.count("allocate 12000256") == 3
    assert ran.log[-1] == FREED


def test_memory_is_used_again(programs: Programs) -> None:
    """Later calls allocate nothing and load no code."""
    ran = programs.right("call", "500", "steps", "4")
    assert ran.count("allocate") == 4
    assert ran.count("module") == 1


def test_barriers(programs: Programs) -> None:
    """Threads of a block meet at barriers, on the fake device as well."""
    assert programs.right("call", "1000", "turned").count("launch turn_blocks 16x1x1 64x1x1 0") == 2


def test_reading_twice(programs: Programs) -> None:
    """Arrays that are only read may overlap: equal ones share a copy, others have their own for the call."""
    ran = programs.right("twice", "1000")
    assert ran.count("to ") == 3
    assert ran.log[-1] == FREED


def test_memory_of_the_device_that_runs_out(programs: Programs) -> None:
    """Copies that no call has used for longest make room; what only the device has stays."""
    ran = programs.right("many", "1000", "axpy", "6", FAKE_CUDA_MEMORY=4 * 4096 + 256)
    assert "status 0" in ran.out
    assert ran.count("free 4096") > 4
    assert ran.count("from ") == 7


def test_no_room(programs: Programs) -> None:
    """Where the arrays do not fit, and what is there must stay, the original loops run."""
    ran = programs.right("many", "1000", "axpy", "2", FAKE_CUDA_MEMORY=2 * 4096 + 256)
    assert f"status {NO_MEMORY}" in ran.out
    assert ran.count("launch") == 1


def test_store_at_the_end(programs: Programs) -> None:
    """What is asked for when the device is closed already is lost with a message."""
    ran = programs.run("late")
    assert ran.code == 70, ran
    assert "lost (the program has ended)" in ran.said


def test_driver_that_has_ended_before(programs: Programs) -> None:
    """A driver that has shut down when the program ends is no failure, and the report is printed."""
    ran = programs.right("call", FAKE_CUDA_FAIL="cuCtxPushCurrent_v2:3=4", LOOPTUNE_VERBOSE=1)
    assert ran.count("fails: cuCtxPushCurrent_v2 4") == 1
    assert "failed" not in ran.said
    assert "calls on NVIDIA H200: 1" in ran.said


def test_large_results_that_are_lost_in_the_middle(programs: Programs) -> None:
    """Large arrays that were partly overwritten cannot be recomputed: the program ends; before that it goes on."""
    large = ("call", "5000000")
    programs.right(*large, FAKE_CUDA_FAIL="from:1=719")
    ran = programs.run(*large, FAKE_CUDA_FAIL="from:3=719")
    assert ran.code == 70, ran
    assert "an array that was partly copied to the host" in ran.said


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"driver": False}, "no libcuda: libcuda.so.1"),
        ({"FAKE_CUDA_DEVICES": 0}, r"no device: cuInit: CUDA_ERROR_NO_DEVICE \(100\)"),
        ({"FAKE_CUDA_FAIL": "cuDevicePrimaryCtxRetain:1=2"}, "no device: cuDevicePrimaryCtxRetain: "),
        ({"LOOPTUNE_DEVICE": "none"}, "LOOPTUNE_DEVICE is none"),
    ],
)
def test_without_a_device(programs: Programs, settings: dict[str, object], why: str) -> None:
    """Without libcuda, without a device or by choice, the original loops run, and the verbose line says why."""
    ran = programs.right("call", **settings)
    assert ran.said == ""
    assert ran.count("launch") == 0
    ran = programs.right("call", LOOPTUNE_VERBOSE=1, **settings)
    assert re.match(f"looptune: all codelets run on the host: {why}", ran.said)
    assert re.search(r"axpy \(app.c:5\): calls on the host: 1; the original loops [\d.]+ ms\n", ran.said)
    assert "status 2, right" in programs.right("plain", **settings).out


@pytest.mark.parametrize("text", ["two", "-1", "", "1x", "7"])
def test_device_that_is_none(programs: Programs, text: str) -> None:
    """What LOOPTUNE_DEVICE cannot mean is said once, and counts as none."""
    ran = programs.right("call", "1000", "axpy", "2", LOOPTUNE_DEVICE=text)
    assert ran.said.count("LOOPTUNE_DEVICE is") == ran.said.count("\n") == 1
    assert ran.count("launch") == 0


def test_second_device(programs: Programs) -> None:
    """LOOPTUNE_DEVICE chooses a device by its number."""
    assert programs.right("call", LOOPTUNE_DEVICE=1, FAKE_CUDA_DEVICES=2).count("launch") == 1


@pytest.mark.parametrize(
    ("sizes", "device", "cores", "capability", "level", "directives"),
    [
        ("1000", "NVIDIA H200", 132, 90, "exact", "tile i:128"),
        ("999", "NVIDIA H200", 132, 90, "same device", "tile i:128"),
        ("70000", "NVIDIA H200", 132, 90, "same device", "tile i:128, unroll 4"),
        ("64000", "NVIDIA H100", 132, 90, "exact", "tile i:64"),
        ("1000", "NVIDIA H200", 130, 90, "same capability", "tile i:128"),
        ("2000", "NVIDIA GH200", 132, 90, "same capability", "tile i:128"),
        ("1000", "NVIDIA A10", 84, 86, "same family", "tile i:16"),
        ("1001", "NVIDIA A10", 84, 86, "same family", "tile i:32"),
        ("1000", "NVIDIA T4", 40, 75, "default", ""),
    ],
)
def test_selection(
    programs: Programs, sizes: str, device: str, cores: int, capability: int, level: str, directives: str
) -> None:
    """The level of the match decides, then the distance of the sizes; what fits its sizes only runs at no others."""
    settings = {"FAKE_CUDA_NAME": device, "FAKE_CUDA_MULTIPROCESSORS": cores, "FAKE_CUDA_CAPABILITY": capability}
    said = programs.run("match", sizes, **settings).out
    assert said == f"{level}: {directives} (no error)\n"


@pytest.mark.parametrize(
    ("capability", "loaded"),
    [(90, "cubin 90"), (89, "cubin 86"), (86, "cubin 86"), (80, "cubin 80"), (100, "ptx 90"), (75, None)],
)
def test_best_image(programs: Programs, capability: int, loaded: str | None) -> None:
    """Machine code of the device, else of a lower minor capability, else the latest PTX; without any, the loops run."""
    ran = programs.right("call", FAKE_CUDA_CAPABILITY=capability, LOOPTUNE_VERBOSE=1)
    assert [line for line in ran.log if line.startswith("module")] == ([f"module {loaded}"] if loaded else [])
    assert ("no machine code of axpy is for sm_75" in ran.said) == (loaded is None)


def test_next_image(programs: Programs) -> None:
    """An image that the driver refuses is replaced by the next best one."""
    ran = programs.right("call", FAKE_CUDA_FAIL="cuModuleLoadDataEx:1=209")
    assert [line for line in ran.log if line.startswith("module")] == ["module ptx 90"]


def test_aliased(programs: Programs) -> None:
    """Arrays that overlap, one of which is written, are the caller's, also if the runtime could run the loops."""
    ran = programs.right("aliased", LOOPTUNE_VERBOSE=1)
    assert f"status {ALIASED}" in ran.out
    assert "x and y overlap" in ran.said


def test_grid_that_is_too_large(programs: Programs) -> None:
    """A launch that is impossible is known before the first one runs; what was tuned is replaced by the default."""
    ran = programs.right("plain", "1000", "beyond")
    assert f"status {BAD_GRID}" in ran.out
    assert ran.count("launch") == 0
    ran = programs.right("plain", "1000", "saved", LOOPTUNE_VERBOSE=1)
    assert "status 0" in ran.out
    assert "what was tuned cannot run (axpy needs 1 x 65536 x 1 blocks" in ran.said
    assert ran.count("launch axpy_default") == 1


def test_blocks_at_one_time(programs: Programs) -> None:
    """Blocks that wait for each other are launched together, if as many fit."""
    assert programs.right("plain", "1000", "at_once").count("together axpy_tuned 264x1x1") == 1
    ran = programs.right("plain", "1000", "at_once", FAKE_CUDA_OCCUPANCY=1)
    assert f"status {BAD_GRID}" in ran.out


@pytest.mark.parametrize(
    "failure",
    ["cuMemAlloc_v2:2=2", "cuMemAlloc_v2:3=2", "cuMemAlloc_v2:4=2", "cuLaunchKernel:1=701", "cuLaunchKernel:2=701",
     "cuLaunchKernel:2=719", "kernel:1=719", "kernel:3=700", "to:1=719", "to:2=719", "from:1=719",
     "cuModuleGetFunction:1=500", "cuMemcpyHtoDAsync_v2:2=1", "cuMemcpyDtoHAsync_v2:1=1", "cuMemHostAlloc:1=2",
     "cuStreamSynchronize:1=999"],
)  # fmt: skip
def test_failures(programs: Programs, failure: str) -> None:
    """After any failure the host's arrays are untouched, and the original loops give the result; so do later calls."""
    programs.right("call", "1000", "steps", "3", FAKE_CUDA_FAIL=failure)


def test_lost_device_is_not_used_again(programs: Programs) -> None:
    """After a kernel has failed no later call uses the device."""
    ran = programs.right("call", "1000", "axpy", "3", FAKE_CUDA_FAIL="kernel:1=719", LOOPTUNE_VERBOSE=1)
    assert ran.count("launch") == 1
    assert "the device failed: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (719); it is not used again" in ran.said


def test_verbose(programs: Programs) -> None:
    """At exit each codelet says where it ran, by which match, and how long the kernels and the transfers took."""
    ran = programs.right("call", "999", "axpy", "2", LOOPTUNE_VERBOSE=1)
    told, at_exit, level = ran.said.splitlines()
    here = "looptune: axpy (app.c:5): "
    assert told == (
        f"{here}nothing was tuned for NVIDIA H200, n=999: using what is best on NVIDIA H200 at n=1000 (same device)"
    )
    number = r"[\d.]+"
    pattern = (
        rf"calls on NVIDIA H200: 2; kernels 1.000 ms, to the device 0.016 MB in {number} ms, "
        rf"from it 0.008 MB in {number} ms"
    )
    assert re.fullmatch(re.escape(here) + pattern, at_exit)
    assert level == f"{here}  same device match, calls: 2; directives: tile i:128"
    # The device is busy while the launches of a call are queued, and none of that is a transfer of the program.
    words = [line.split(" ")[0] for line in ran.log]
    assert all(words[k - 2 : k] == ["to", "set"] for k, word in enumerate(words) if word == "launch")
    assert ran.count("to") > programs.right("call", "1000", "axpy", "2").count("to")


def test_fork(programs: Programs) -> None:
    """A child of a process that has used the GPU runs the original loops; one from before uses it as usual."""
    ran = programs.right("fork", "1000", "after", LOOPTUNE_VERBOSE=1)
    assert "child: status 0, right" in ran.out
    assert "wrong" not in ran.out
    assert "this process was forked by one that had used CUDA" in ran.said
    assert ran.count("launch") == 2
    ran = programs.right("fork", "1000", "before")
    assert "wrong" not in ran.out
    assert ran.count("launch") == 2
    assert ran.count(FREED) == 2


def test_fork_with_data_on_the_device(programs: Programs) -> None:
    """A child that needs what is only on the parent's device ends with a message; the parent goes on."""
    ran = programs.right("fork", "1000", "kept")
    assert "child: exit status 70\nparent: status 0, right\n" in ran.out
    assert "the contents of y were on the device only, and are lost" in ran.said


def test_threads(programs: Programs) -> None:
    """Threads that call codelets at the same time get their own results."""
    ran = programs.run("threads")
    assert ran.out == "threads: wrong ones 0\n", ran
    assert ran.log[-1] == FREED


@pytest.mark.parametrize(
    ("calls", "to", "back"),
    [
        ("..", 4, 2),  # all arrays each time
        (".p.", 2, 2),  # both are on the device
        (".x.", 3, 2),  # x is
        ("k.p.", 2, 1),  # y stays there
        ("k..", 3, 1),  # what is only there is the contents
        ("k.pk.ps.", 2, 2),
        ("lp.", 2, 1),  # loaded before
        ("l..", 6, 2),
        ("lpk.pk.s", 2, 1),
        ("k.s?", 2, 1),
        ("ss.", 2, 1),  # nothing to store
        ("k.ss", 2, 1),
        ("a.w", 2, 1),
        ("a.a.w", 3, 1),
        ("a.x.", 2, 1),  # the second call gets the first one's
        ("a.x.w", 2, 1),
        (".rp.", 3, 2),  # x was released
        (".Rp.", 4, 2),
        ("a.R", 2, 1),  # waits, and fetches
        ("k.h", 4, 2),  # a part of y is used: all of it is fetched
    ],
)
def test_transfers(programs: Programs, calls: str, to: int, back: int) -> None:
    """Data directives leave out the transfers that they say are not needed, and no others."""
    ran = programs.right("sequence", "1000", calls)
    assert (ran.count("to "), ran.count("from ")) == (to, back)
    assert "not there" not in ran.out
    assert ran.log[-1] == FREED


def test_asynchronous_call_is_done_when_synchronized(programs: Programs) -> None:
    """The host gets the results of an asynchronous call when it waits for it, and not before."""
    assert "not there\ny is there\n" in programs.right("sequence", "1000", "a.?w?").out


@pytest.mark.parametrize("calls", ["k.p.", "k.s", "a.w", "k.R?", "k.x."])
def test_lost_data_ends_the_program(programs: Programs, calls: str) -> None:
    """Where only a device had the contents and is lost, the program ends with a message, and gives no wrong result."""
    failure = "kernel:1=719" if calls == "a.w" else "from:1=719" if calls == "k.s" else "kernel:2=719"
    ran = programs.run("sequence", "1000", calls, FAKE_CUDA_FAIL=failure)
    if calls == "k.R?":  # released on purpose
        assert ran.code == 1, ran
        return
    assert ran.code == 70, ran
    assert "the contents of y were on the device only, and are lost" in ran.said
    assert "LAUNCH_FAILED (719)): the program ends" in ran.said


def test_check(programs: Programs) -> None:
    """Under LOOPTUNE_CHECK the device's results are compared with the original loops', whose results stay."""
    ran = programs.right("call", "1000", "axpy", "2", LOOPTUNE_CHECK=1)
    assert f"status {COMPARE}, right" in ran.out
    assert "axpy (app.c:5): all calls agree with the original loops: 2; the largest error is 0" in ran.said
    ran = programs.right("call", "1000", "bad", "2", LOOPTUNE_CHECK=1)
    assert ran.said.count("y[7] is 21 on the device and 119 on the host, the tolerance is 0.000513 (1 of 1000 ele") == 1
    assert "bad (app.c:20): calls that differ from the original loops: 2 of 2\n" in ran.said
    assert ran.log[-1] == FREED


def test_check_of_results_that_move(programs: Programs) -> None:
    """Errors may be as large as the shifts of the default version if the inputs change by one rounding."""
    ran = programs.right("call", "1000", "moving", "2", LOOPTUNE_CHECK=1)
    assert (
        ran.said.count("elements of y are off by more than rounding usually takes, but not by more than 4 times") == 1
    )
    assert "moving (app.c:70): all calls agree with the original loops: 2; the largest error is 0." in ran.said
    assert ran.log[-1] == FREED


@pytest.mark.parametrize("codelet", ["unstable", "unsteady"])
def test_check_of_kernels_that_move_results(codelet: str, programs: Programs) -> None:
    """A tuned version that rounds more than the default is found, and a default that is not the same each time."""
    ran = programs.right("call", "1000", codelet, "2", LOOPTUNE_CHECK=1)
    assert "calls that differ from the original loops: 2 of 2\n" in ran.said
    assert "are off" not in ran.said


def test_check_of_calls_that_keep_data(programs: Programs) -> None:
    """A checked call takes its data from the host and leaves none on the device, whatever the directives say."""
    ran = programs.right("sequence", "1000", "lk.pk.a.ws", LOOPTUNE_CHECK=1)
    assert "all calls agree with the original loops: 3" in ran.said


@pytest.mark.parametrize("codelet", ["axpy", "steps"])
def test_call_on_the_callers_memory(programs: Programs, codelet: str) -> None:
    """A call on the caller's memory is queued on the caller's stream, in the caller's context, which stays current."""
    ran = programs.right("device", "1000", codelet)
    assert ran.out.startswith("y is as before\non the device: status 0, right\n")
    assert ran.out.endswith("; the context is the same\n")
    assert ran.count("to ") == 2
    # Memory of its own comes from a pool that keeps it, where a plan needs some.
    assert ran.count("pool 1 keeps 18446744073709551615") == (codelet == "steps")
    assert "left: 0 bytes, 0 pinned" in ran.log[-1]


@pytest.mark.parametrize(
    ("how", "message"),
    [("none", "there is no device"), ("same", "arrays overlap"), ("odd", "an array is not aligned to 16 bytes")],
)
def test_refused_call_on_the_callers_memory(programs: Programs, how: str, message: str) -> None:
    """Without a context, with arrays that overlap, or that are not aligned, nothing is queued."""
    ran = programs.run("device", "1000", how)
    assert message in ran.out
    assert ran.count("launch") == 0
