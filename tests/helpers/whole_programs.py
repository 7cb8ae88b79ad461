"""Programs that ``looptune cc`` builds, run without libcuda, and on a libcuda that is none."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.command_line import looptune
from tests.helpers.host_kernels import environment, write_kernels


@dataclass(frozen=True)
class Ran:
    """What a program printed; ``log`` is what the driver was asked for."""

    code: int
    out: str
    said: str
    log: tuple[str, ...] = ()

    def count(self, word: str) -> int:
        """How many lines of the log begin with a word."""
        return sum(line.split(" ")[0] == word for line in self.log)


@dataclass(frozen=True)
class WholeProgram:
    """A program in a folder: ``plain`` as the compiler makes it, ``accelerated`` as looptune does."""

    folder: Path
    driver: Path
    said: str

    def plain(self, *arguments: str, **settings: object) -> Ran:
        return _run([self.folder / "plain", *arguments], environment(None, None, **settings))

    def on_host(self, *arguments: str, **settings: object) -> Ran:
        return _run([self.folder / "accelerated", *arguments], environment(None, None, **settings))

    def on_device(self, *arguments: str, **settings: object) -> Ran:
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        own = environment(self.driver, self.folder / "kernels.so", FAKE_CUDA_LOG=log, **settings)
        ran = _run([self.folder / "accelerated", *arguments], own)
        return Ran(ran.code, ran.out, ran.said, tuple(log.read_text().splitlines()) if log.exists() else ())

    def generated(self, pattern: str) -> list[Path]:
        return sorted((self.folder / "generated").glob(pattern))


def build(
    sources: Sequence[Path], folder: Path, driver: Path, options: Sequence[str] = (), ours: Sequence[str] = (),
    *, kernels: bool = True,
) -> WholeProgram:  # fmt: skip
    """Build a program twice, and its kernels for the host; ``ours`` are options of looptune, not of the compiler."""
    names = [str(path) for path in sources]
    subprocess.run(["gcc", "-w", "-O2", *options, *names, "-lm", "-o", str(folder / "plain")], check=True)
    arch = "sm_90" if kernels else "none"
    own = ["--arch", arch, "--keep", str(folder / "generated"), *ours]
    made = looptune("cc", "-w", "-O2", *options, *names, "-lm", "-o", folder / "accelerated", *own, cwd=folder)
    assert made.code == 0, made.out + made.err
    if kernels:
        write_kernels(kernels_of(folder / "generated"), folder)
    return WholeProgram(folder, driver, made.err)


def kernels_of(folder: Path) -> str:
    """The kernels of a folder of generated files; each file has functions of its own.

    A kernel that several codelets of a source file share stands in the files of all of them.
    """
    texts = [path.read_text() for path in sorted(folder.glob("*.cu"))]
    seen: set[str] = set()
    for k, text in enumerate(texts):
        named = set(re.findall(r"__global__[^(]*(?:__launch_bounds__\([^)]*\)[^(]*)?\b(\w+)\(", text))
        for symbol in named & seen:
            texts[k] = re.sub(rf"\b{symbol}\b", f"{symbol}_again_{k}", texts[k])
        seen |= named
    return "\n".join(f"namespace file_{k} {{\n{text}}}\nusing namespace file_{k};" for k, text in enumerate(texts))


def _run(command: Sequence[object], env: object) -> Ran:
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=300)  # type: ignore[call-overload]
    return Ran(done.returncode, done.stdout, done.stderr)


def agrees(program: WholeProgram, *arguments: str) -> None:
    """Assert that it prints the same everywhere, and that every call that is compared agrees."""
    plain = program.plain(*arguments)
    host = program.on_host(*arguments)
    device = program.on_device(*arguments)
    eager = program.on_device(*arguments, FAKE_CUDA_EAGER=1)
    checked = program.on_device(*arguments, LOOPTUNE_CHECK=1)
    for ran in (host, device, eager, checked):
        assert (ran.code, ran.out) == (plain.code, plain.out), ran
    assert not host.said
    assert device.count("launch") + device.count("together") > 0
    assert "differ" not in checked.said
    assert "all calls agree" in checked.said
