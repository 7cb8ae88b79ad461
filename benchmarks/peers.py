"""Looptune's kernels beside cuBLAS, torch.compile, JAX and Triton, all measured in one run of one command.

    looptune run polybench/*.c --sweep --no-flush-cache --db FILE
    python benchmarks/peers.py --db FILE [--dtype float64] [--gemm 512,1000,4096] [--flush] [KERNEL ...]

For each kernel of polybench/ and each of its sizes in the database, and for GEMM at the sizes of --gemm besides:

    looptune        what ``looptune.compile(config="best")`` runs at these sizes
    library         calls of cuBLAS, cuDNN and cuSOLVER through torch, without TF32
    torch.compile   an expression of torch
    JAX             an expression of jax.numpy under jit, at the highest precision
    Triton          a kernel of the kind that its tutorials show, with the fastest of a few configurations

Each version is prepared in a process of its own (peers_process.py), many at once; one that fails or takes longer than
--prepare seconds is a note, and the others are not affected. They are then timed in turns, while all that is still
being prepared stands still: in each round, every version runs for at least 0.4 ms from a CUDA graph, behind other work
on the device, with the L2 as its last run left it (JAX: in a loop of its own, for 10 ms on the host's clock). With
--flush every single run follows a memset of twice the L2, and JAX is left out. Rounds end as those of a sweep's finals
do. All versions have the same data, and what each made of them at first is compared with looptune's results.

Writes a Markdown table, each row as soon as it is measured: medians and quartiles of the rounds in microseconds, how
many times looptune's time that is, and the largest relative difference of the results. --seconds ends the whole
command.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from peers_task import Task

from looptune.core.errors import LooptuneError, UsageError
from looptune.core.settings import DATABASE
from looptune.deploy.best_versions import best_versions
from looptune.frontend import load
from looptune.runtime import targets
from looptune.runtime.device import DEVICES, DeviceInfo, cores
from looptune.runtime.problem_sizes import integers
from looptune.runtime.timing import Summary, finals, summary
from looptune.tune.store.store import Store

FOLDER = Path(__file__).parent.parent / "polybench"
PROCESS = Path(__file__).parent / "peers_process.py"
OWN, OTHERS = "looptune", ("library", "torch.compile", "JAX", "Triton")
GEMM_SIZES = "512,1000,1024,1536,2048,4096,8192"
ANSWER_S = 60.0
"""A process that has been prepared and answers no request for so long is given up."""
SETTLED_S = 0.02
"""After which processes that were stopped have nothing on the device any more."""


class PeerFailed(Exception):
    """A process has ended, or does not answer; the text says why."""


@dataclass
class Peer:
    """A version in a process of its own. ``state``: "waiting", "preparing", "ready", "failed" or "missing"."""

    name: str
    task: Task
    log: Path
    state: str = "waiting"
    why: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    answers: queue.Queue[str | None] = field(default_factory=queue.Queue)
    spent_s: float = 0.0

    def start(self, environment: Mapping[str, str]) -> None:
        self.state = "preparing"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(PROCESS), self.name, json.dumps(asdict(self.task))], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                env={**os.environ, **environment},
            )  # fmt: skip
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def _read(self, output: TextIO) -> None:
        for line in output:
            self.answers.put(line)
        self.answers.put(None)

    def look(self, limit_s: float) -> None:
        """Take note of whether it has been prepared, or has taken longer than ``limit_s``."""
        try:
            line = self.answers.get_nowait()
        except queue.Empty:
            if self.spent_s > limit_s:
                self.give_up(f"not prepared in {limit_s:.0f} s")
            return
        try:
            self.facts, self.state = self._object(line), "ready"
        except PeerFailed as error:
            self.give_up(str(error))

    def _object(self, line: str | None) -> Mapping[str, Any]:
        if line is None:
            code = self.process.wait() if self.process is not None else None
            raise PeerFailed(f"the process ended with {code}")
        answer: Mapping[str, Any] = json.loads(line)
        if "missing" in answer:
            self.state = "missing"
            raise PeerFailed(answer["missing"])
        if "failed" in answer:
            raise PeerFailed(answer["failed"])
        return answer

    def send(self, **request: Any) -> None:
        assert self.process is not None, "it was started"
        assert self.process.stdin is not None, "it takes requests"
        with suppress(BrokenPipeError):  # what has ended gives no answer
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def answer(self) -> Mapping[str, Any]:
        """The answer to the last request. Raises PeerFailed if there is none."""
        try:
            return self._object(self.answers.get(timeout=ANSWER_S))
        except queue.Empty:
            raise PeerFailed(f"no answer in {ANSWER_S:.0f} s") from None

    def ask(self, **request: Any) -> Mapping[str, Any]:
        self.send(**request)
        return self.answer()

    def signal(self, number: int) -> None:
        """To the process and all that it has started, unless it has ended."""
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def give_up(self, why: str) -> None:
        self.state, self.why = "missing" if self.state == "missing" else "failed", why
        self.end()

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


@dataclass
class Row:
    """A kernel at one size, with a peer for each column."""

    task: Task
    peers: dict[str, Peer]
    times: dict[str, Summary] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def prepared(self) -> bool:
        return all(peer.state not in ("waiting", "preparing") for peer in self.peers.values())

    def ratio(self, name: str) -> float | None:
        """How many times looptune's time that of a peer with right results is."""
        if name in self.wrong or not {name, OWN} <= self.times.keys():
            return None
        return self.times[name].median_us / self.times[OWN].median_us


# ----------------------------------------------------------------- measuring


def measure(row: Row, finals_s: float) -> None:
    """Time all that could be prepared in turns; what fails meanwhile leaves the others to be timed anew."""
    while running := {name: peer for name, peer in row.peers.items() if peer.state == "ready"}:
        failed: dict[str, str] = {}
        found = finals(
            {name: sampler(peer, failed) for name, peer in running.items()}, 0, rounds=20, seconds=finals_s / 10,
            limit_s=finals_s, patience_s=2 * finals_s,
        )  # fmt: skip
        if not failed:
            row.times = {name: summary(times) for name, times in found.items()}
            return
        for name, why in failed.items():
            running[name].give_up(why)


def sampler(peer: Peer, failed: dict[str, str]) -> Callable[[], float]:
    """A peer that has failed takes no time from then on, and is noted."""

    def sample() -> float:
        if peer.name in failed:
            return 1.0
        try:
            return float(peer.ask(sample=True)["us"])
        except PeerFailed as error:
            failed[peer.name] = str(error)
            return 1.0

    return sample


def compare(row: Row, folder: Path) -> None:
    """Have looptune's results written, and all other peers compare their own with them, beside each other."""
    own, others = row.peers[OWN], [row.peers[name] for name in row.peers if name != OWN]
    if own.state != "ready":
        return
    try:
        own.ask(save=str(folder))
    except PeerFailed as error:
        own.give_up(str(error))
        return
    asked = [peer for peer in others if peer.state == "ready"]
    for peer in asked:
        peer.send(compare=str(folder))
    for peer in asked:
        try:
            answer = peer.answer()
        except PeerFailed as error:
            peer.give_up(str(error))
            continue
        row.errors[peer.name] = answer["error"]
        row.wrong |= {} if answer["wrong"] is None else {peer.name: answer["wrong"]}
    for file in folder.glob("*.npy"):
        file.unlink()


@contextmanager
def standing_still(rows: Sequence[Row]) -> Iterator[None]:
    """Stop everything that is being prepared, and let it go on afterwards."""
    preparing = [peer for row in rows for peer in row.peers.values() if peer.state == "preparing"]
    for peer in preparing:
        peer.signal(signal.SIGSTOP)
    try:
        time.sleep(SETTLED_S)
        yield
    finally:
        for peer in preparing:
            peer.signal(signal.SIGCONT)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """A process that is asked to end raises SystemExit, and so ends what it has started."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run(rows: Sequence[Row], options: argparse.Namespace, folder: Path, end: float) -> Iterator[Row]:
    """Prepare and measure, and return each row when it is done; at the ``end`` of the time what there is of it."""
    gpu = options.target != "numba-cpu"
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_COMPILE_THREADS": "1",
                   "TF_CPP_MIN_LOG_LEVEL": "2", **({} if gpu else {"TRITON_INTERPRET": "1"})}  # fmt: skip
    left, before = list(rows), time.monotonic()
    try:
        while left and time.monotonic() < end:
            peers = [peer for row in left for peer in row.peers.values()]
            alive = sum(peer.state in ("preparing", "ready") for peer in peers)
            for peer in [p for p in peers if p.state == "waiting"][: max(0, options.jobs - alive)]:
                peer.start(environment)
            now = time.monotonic()
            for peer in peers:
                if peer.state == "preparing":
                    peer.spent_s += now - before
                    peer.look(options.prepare)
            before = now
            done = next((row for row in left if row.prepared), None)
            if done is None:
                time.sleep(0.05)
                continue
            left.remove(done)
            compare(done, folder)
            with standing_still(left):
                measure(done, min(options.finals, max(0.1, end - now)))
            before = time.monotonic()
            for peer in done.peers.values():
                peer.end()
            yield done
        for row in left:
            for peer in row.peers.values():
                if peer.state not in ("failed", "missing"):
                    peer.give_up("not measured: the time of --seconds is over")
            yield row
    finally:
        for row in rows:
            for peer in row.peers.values():
                peer.end()


# --------------------------------------------------------------------- table


def cell(row: Row, name: str) -> str:
    if name in row.wrong:
        return "wrong"
    time_us = row.times.get(name)
    if time_us is None:
        return "-"
    ratio = row.ratio(name)
    of_own = "" if ratio is None or name == OWN else f" **{times(ratio)}**"
    return f"{us(time_us.median_us)} ({us(time_us.q1_us)} to {us(time_us.q3_us)}){of_own}"


def times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio >= 0.1 else f"{ratio:.2g}x"


def us(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def fastest(row: Row) -> tuple[str, float] | None:
    """The fastest of the others, and how many times looptune's time it takes."""
    ratios = {name: ratio for name in OTHERS if (ratio := row.ratio(name)) is not None}
    return min(ratios.items(), key=lambda item: item[1]) if ratios else None


def line(row: Row) -> str:
    sizes = " ".join(f"{n}={v}" for n, v in row.task.sizes.items())
    best = fastest(row)
    errors = " / ".join(f"{row.errors[name]:.1g}" if name in row.errors else "-" for name in OTHERS)
    cells = [row.task.kernel, sizes, *(cell(row, name) for name in (OWN, *OTHERS)),
             "-" if best is None else f"{times(best[1])} {best[0]}", errors]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def head() -> list[str]:
    names = ["kernel", "sizes", OWN, *OTHERS, "the fastest other", f"differences: {' / '.join(OTHERS)}"]
    return [f"| {' | '.join(names)} |", f"|---|---|{'---:|' * (len(names) - 2)}"]


def means(rows: Sequence[Row]) -> str:
    """The line of the geometric means, of the kernels that a peer has right results for."""
    cells = []
    for name in OTHERS:
        cells.append(mean([ratio for row in rows if (ratio := row.ratio(name)) is not None]))
    best = mean([found[1] for row in rows if (found := fastest(row)) is not None])
    return f"| geometric mean | | | {' | '.join([*cells, best])} | |"


def mean(ratios: Sequence[float]) -> str:
    if not ratios:
        return "-"
    return f"{times(math.exp(sum(map(math.log, ratios)) / len(ratios)))} of {len(ratios)}"


def notes(rows: Sequence[Row]) -> Iterator[str]:
    """What ran where the column does not say it, and why there is no time; equal notes once."""
    found: dict[str, list[str]] = {}
    for row in rows:
        size = ",".join(dict.fromkeys(str(v) for v in row.task.sizes.values()))
        for name, peer in row.peers.items():
            what = f"wrong: {row.wrong[name]}" if name in row.wrong else peer.why or str(peer.facts.get("by", ""))
            if what:
                found.setdefault(f"{name}: {what}", []).append(f"{row.task.kernel} {size}")
    for text, where in found.items():
        everywhere = len(where) == len(rows) > 1
        yield f"- {text.replace('|', '/')} ({'every row' if everywhere else ', '.join(where)})"


# ---------------------------------------------------------------------- main


def tasks(options: argparse.Namespace, device: DeviceInfo, gate: Path) -> Iterator[Task]:
    """What is to be measured: the sizes of the database on this device, or those of the file; and GEMM's others."""
    for kernel in options.kernels:
        file = FOLDER / f"{kernel}.c"
        unit = load(file, dtype=options.dtype)
        own = integers(unit.codelet, {n: v for n, v in unit.values.items() if v is not None})
        sizes = []
        if options.db is not None:
            with Store.read(options.db) as store:
                found = best_versions(store, unit, options.target)
            sizes = [dict(b.sizes) for b in found if (b.context.device, b.cores) == (device.name, device.cores)]
        sizes = sizes if sizes else [own]
        if kernel == "gemm":
            more = [dict.fromkeys(own, size) for size in options.gemm]
            sizes = [*sizes, *(size for size in more if size not in sizes)]
        for size in sizes:
            yield Task(str(file), options.dtype, size, options.target, str(options.db or ""), options.flush, str(gate))


def numbers(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",") if part]
    except ValueError:
        found = [0]
    if not all(n > 0 for n in found):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of sizes such as {GEMM_SIZES}")
    return found


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = sorted(path.stem for path in FOLDER.glob("*.c"))
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--db", type=Path, default=DATABASE)
    parser.add_argument("--untuned", action="store_true", help="without a database: looptune's default")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--gemm", type=numbers, default=[], metavar="SIZES", help=f"as {GEMM_SIZES}")
    parser.add_argument("--peers", default=",".join(OTHERS), help="of these, separated by commas")
    parser.add_argument("--flush", action="store_true", help="other data in the L2 before each run")
    parser.add_argument("--target", choices=("numba-cuda", "cuda-c", "numba-cpu"), default="numba-cuda")
    parser.add_argument("--prepare", type=float, default=90.0, metavar="S", help="for each version, to be compiled")
    parser.add_argument("--finals", type=float, default=2.0, metavar="S", help="for the rounds of each row")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="S", help="the end of the whole command")
    parser.add_argument("--jobs", type=int, default=max(6, cores()), help="processes at once")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep what the processes print, and their errors")
    parser.add_argument("-o", "--output", type=Path, help="write the table to this file as well")
    given = parser.parse_args(arguments)
    given.kernels = given.kernels if given.kernels else known
    given.peers = given.peers.split(",")
    given.db = None if given.untuned else given.db
    for name, of in ((n, known) for n in given.kernels):
        if name not in of:
            parser.error(f"no kernel '{name}': choose among {', '.join(of)}")
    for name in given.peers:
        if name not in OTHERS:
            parser.error(f"no peer '{name}': choose among {', '.join(OTHERS)}")
    given.jobs = max(given.jobs, 1 + len(given.peers))
    return given


def the_device(target: str) -> DeviceInfo:
    """The facts of the first device of the target. UsageError where there is none."""
    found = next((facts for facts in targets.devices() if facts.target == DEVICES[target]), None)
    if found is None:
        raise UsageError(f"no GPU for {target}: {targets.gpu_missing()}")
    return found


def report(options: argparse.Namespace, arguments: Sequence[str], say: Callable[[str], None]) -> None:
    device, end = the_device(options.target), time.monotonic() + options.seconds
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = folder if options.logs is None else options.logs
        logs.mkdir(parents=True, exist_ok=True)
        rows = [
            Row(
                task, {peer: Peer(peer, task, logs / f"{task.kernel}-{k}-{peer}.log") for peer in (OWN, *options.peers)}
            )
            for k, task in enumerate(tasks(options, device, folder / "gate"))
        ]
        cache = "the L2 flushed before each run" if options.flush else "the L2 warm"
        say(f"# Beside others on {device.name}, {options.dtype}\n")
        say(f"Microseconds, {cache}: medians of the rounds (and quartiles), and times looptune's time.\n")
        for text in head():
            say(text)
        with ended_in_order():
            for row in run(rows, options, folder, end):
                say(line(row))
        say(means(rows))
        packages = {p.facts["package"]: None for row in rows for p in row.peers.values() if "package" in p.facts}
        say(f"\n{', '.join(packages)}; driver: {device.driver_name}; {time.monotonic() - start:.0f} s in all.")
        say("Command: `" + shlex.join(["python", "benchmarks/peers.py", *arguments]) + "`\n")
        for text in notes(rows):
            say(text)


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    written: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        written.append(text)
        if options.output is not None:
            options.output.write_text("\n".join(written) + "\n")

    try:
        report(options, arguments, say)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
