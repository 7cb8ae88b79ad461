"""Every command of the documents, acted on: run as it stands where that is cheap, else as far as it goes here.

``STOPS`` is the one list of what is not run to its end, with the reason; what stands in no line of it is run.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from looptune.cli.main import cli
from looptune.runtime import targets
from looptune.runtime.device import Cpu, slug
from looptune.tune.session import experiment
from tests.helpers.command_line import Ran, alone, looptune
from tests.helpers.paths import ROOT
from tests.helpers.plugin_packages import install, visible

DEVICE = "AMD EPYC"
"""The processor that the documents show."""
GPUS = [
    ("NVIDIA H100 80GB HBM3", "sm_90", 132),
    ("NVIDIA A100-SXM4-40GB", "sm_80", 108),
    ("NVIDIA H100 80GB HBM3", "sm_90", 132),
]


class Reached(Exception):
    """A command was about to do what the test does not want to wait for."""


def ends(*given: object, **named: object) -> None:
    raise SystemExit(0)


@dataclass(frozen=True)
class Stop:
    """Commands that begin like this are done by ``act``; ``why`` they are not run to their end here."""

    begins: str
    act: Callable[[Sequence[str], Path, pytest.Config], Ran]
    why: str


def measured_not(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """``looptune run`` up to the first version: the C, options, inputs, space, devices and database are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "run_all", ends)
        if "--devices" in words:
            pretended(patch)
        return looptune(*words[1:], cwd=folder)


def pretended(patch: pytest.MonkeyPatch) -> None:
    """Three GPUs of two models."""
    facts = [replace(Cpu().facts, name=name, target="numba-cuda", arch=arch, cores=n) for name, arch, n in GPUS]
    patch.setattr(targets, "_gpu", lambda: SimpleNamespace(count=lambda: len(facts), facts=facts.__getitem__, Gpu=Cpu))
    patch.setattr(targets, "gpu_missing", lambda: "")


def read(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """The options of a command of looptune alone."""
    command = cli.get_command(cli.make_context("looptune", ["run"], resilient_parsing=True), words[1])
    assert command is not None, f"no command {words[1]}"
    command.make_context(words[1], list(words[2:]))
    return Ran(0, "", "")


def arguments_read(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """A script up to where it has read its arguments."""
    parse = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, *given: object) -> None:
        parse(parser, *given)  # type: ignore[call-overload]
        raise Reached

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        patch.setattr(sys, "argv", list(words[1:]))
        patch.syspath_prepend((ROOT / words[1]).parent)  # where Python looks for a script's neighbours
        try:
            runpy.run_path(str(ROOT / words[1]), run_name="__main__")
        except Reached:
            return Ran(0, "", "")
        except ModuleNotFoundError as missing:
            if missing.name not in OTHERS_MODULES:
                raise
            return Ran(0, "", "")
    raise AssertionError(f"{words[1]} read no arguments")


def few_predicted(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """``looptune predict --sweep`` of three versions."""
    (folder / "few.pragmas").write_text("loop k: unroll {2, 4}\n")
    return looptune(*words[1:], "--space", "few.pragmas", cwd=folder)


def tests_named(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """Files of tests that are there, options that pytest has here."""
    for before, word in pairwise(words[2:]):
        if word.startswith("-"):
            config.getoption(word)
        elif not word.isdecimal() and before != "-m":
            assert (ROOT / word).exists(), word
    return Ran(0, "", "")


def few_programs(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """Two random programs, with the front end alone."""
    words = [*words[1:], "--cases", "2", "--targets", "front"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=300)
    return Ran(done.returncode, done.stdout, done.stderr)


def planned(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """``make -n``: there is such a target, and what it depends on."""
    done = subprocess.run([*words, "-n"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return Ran(done.returncode, "", done.stderr)


def extras_there(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """What is asked of looptune itself is one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {extra for word in words for extra in re.findall(r"^(?:\.|looptune)\[(.*)\]$", word)}
    missing = {e for each in asked for e in each.split(",")} - project["optional-dependencies"].keys()
    return Ran(len(missing), "", ", ".join(missing))


def brought(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """A package of examples/, as pip would install it."""
    install(ROOT / words[-1], folder / "site")
    return Ran(0, "", "")


def files_there(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """The source that is to be compiled was written."""
    missing = [w for w in words if w.endswith(".cu") and not (folder / w).exists()]
    return Ran(len(missing), "", ", ".join(missing))


def of_dask(words: Sequence[str], folder: Path, config: pytest.Config) -> Ran:
    """The options of Dask's own command."""
    worker = pytest.importorskip(f"distributed.cli.dask_{words[1]}")
    worker.main.make_context(words[1], list(words[2:]))
    return Ran(0, "", "")


OTHERS_MODULES = ("jsonschema", "kernel_tuner")
"""What scripts of benchmarks/ import from an environment of their own."""
STOPS = (
    Stop("looptune run .* tcp://", read, "there is no scheduler; tests/tune/test_distributed.py starts one"),
    Stop("looptune run .* local:", read, "starting a cluster takes seconds; tests/tune/test_distributed.py does"),
    Stop("looptune run .*--target (.*cuda|opencl)", read, "they need a GPU, or OpenCL; test_gpu, test_opencl"),
    Stop("looptune (build|report) .*--objective energy", read, "no energy was measured; test_objective enters some"),
    Stop("looptune run ", measured_not, "measuring takes seconds; the tutorial and test_cli measure"),
    Stop("looptune predict .*--sweep$", few_predicted, "254 versions take half a minute; test_cost_model does it"),
    Stop("python benchmarks/", arguments_read, "they measure for minutes"),
    Stop("python examples/stereo.py judge", arguments_read, "what it judges is not measured; test_stereo does"),
    Stop("python -m pytest ", tests_named, "these tests are run anyway"),
    Stop("python -m tests.differential ", few_programs, "thousands of programs take minutes; make test-wide runs some"),
    Stop("make ", planned, "they make an environment, and run this"),
    Stop("pip install -e examples/", brought, "installing builds a package; plugin_packages writes only metadata"),
    Stop("pip install ", extras_there, "it fetches packages"),
    Stop("hipcc ", files_there, "it is seldom there; test_hip compiles every kernel where it is"),
    Stop("nvcc ", files_there, "it is seldom there; test_cuda_c compiles every kernel where it is"),
    Stop("dask ", of_dask, "they serve until they are stopped"),
)
PYTHON_STOPS = ("from dask_jobqueue import", "from kernel_tuner", "stream=stream", "import torch", "import jax")
"""Of Python that needs what is seldom there (Slurm, a GPU, torch, JAX, Kernel Tuner): it is compiled and not run."""
OTHERS_OPTIONS = ("--version", "--hypothesis-seed", "--plant", "--only", "--every", "--targets")
"""Options of other programs that the text names."""
TO_THE_END = ("tutorial.md",)
"""Documents that begin in an empty folder, and whose commands are all run to their end: sweeps with ..."""
CUT_DOWN = ("--budget", "2", "--jobs", "1", "--target", "numba-cpu")
"""... which saves seconds, and works on a machine with a GPU too."""


def act(line: str, document: str, folder: Path, config: pytest.Config) -> Ran:
    """The command of this line in the folder, to its end or as far as ``STOPS`` says."""
    words = [w for word in shlex.split(line, comments=True) for w in globbed(word, folder)]
    while "=" in words[0]:
        del words[0]
    with visible(folder / "site"):
        return _act(line, words, document, folder, config)


def _act(line: str, words: Sequence[str], document: str, folder: Path, config: pytest.Config) -> Ran:
    stop = stop_of(line)
    if stop is not None and document not in TO_THE_END:
        return stop.act(words, folder, config)
    tokens = shlex.shlex(line, posix=True, punctuation_chars=True)
    tokens.whitespace_split = True
    if document in TO_THE_END and "--sweep" in words:
        return alone(*words[1:], *CUT_DOWN, cwd=folder)
    if words[0] == "looptune" and not any(set(token) <= set("|<>&;()") for token in tokens):
        return looptune(*words[1:], cwd=folder)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{folder / 'site'}:{ROOT}"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300, env=environment
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def stop_of(line: str) -> Stop | None:
    """Why the command is not run to its end; None where it is."""
    words = [w for k, w in enumerate(shlex.split(line, comments=True)) if k or "=" not in w]
    return next((s for s in STOPS if re.match(s.begins, " ".join(words))), None)


def measures(line: str) -> bool:
    """Its output has numbers that differ from run to run."""
    return re.match(r"looptune (run|report|devices|db show)\b", line) is not None


def globbed(word: str, folder: Path) -> list[str]:
    """As a shell does where a file fits."""
    found = sorted(str(p.relative_to(folder)) for p in folder.glob(word)) if "*" in word else []
    return found if found else [word]


def unmeasured(text: str) -> str:
    """``text`` without what depends on a measurement or the machine: numbers, verdicts, winners, the device."""
    facts = Cpu().facts
    for own, shown in ((facts.name, DEVICE), (facts.slug, slug(DEVICE))):
        text = text.replace(own, shown)
    text = re.sub(r"^time: .*", "time: PARTS", text, flags=re.MULTILINE)
    # who wins, which other programs ran meanwhile, and so what the winner's sums rest on
    text = re.sub(r"^slower than the sequential loops on one core: .*\n\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^disturbed while it was timed: .*\n", "", text, flags=re.MULTILINE)
    # where the default wins there are none
    text = re.sub(r"^winning directives .*\n(?:  .*\n)+\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=at these sizes); holds without reordering .*", "; SUMS", text)
    text = re.sub(r" in the space: .*", " in the space: OUTCOMES", text)
    text = re.sub(r"^  best .*", "  best DIRECTIVES", text, flags=re.MULTILINE)
    text = re.sub(r"^  \d+ timed\b.*", "  OUTCOMES", text, flags=re.MULTILINE)
    text = re.sub(r"\b1/(?=\d+x\b)", "", text)  # a ratio below a tenth
    text = re.sub(r"\b(FAST|SLOW|SAME|AMBIGUOUS)\b", "VERDICT", text)
    text = re.sub(r"(?<!\d)(?!\d+ versions\b)\d+(,\d{3})*(\.\d+)?(e[+-]?\d+)?( (us|ms|s)\b)?", "N", text)
    text = re.sub(r"^  (loop|nest|codelet)\b.*(\n  (loop|nest|codelet)\b.*)*", "  DIRECTIVES", text, flags=re.MULTILINE)
    # nothing where the default wins, and no verdict on a machine that is disturbed
    text = re.sub(r"\bNx VERDICT\b|\bdisturbed\b(?=  )", "-", text)
    return "\n".join(re.sub(r"-{3,}", "---", " ".join(line.split())) for line in text.splitlines())


def shows(shown: str, said: str) -> bool:
    """``said`` is what the document shows, where a line ``...`` stands for any lines."""
    parts = [re.escape(line) + "\n" if line.strip() != "..." else "(?:.*\n)*?" for line in shown.strip().splitlines()]
    return re.fullmatch("".join(parts), said.strip() + "\n") is not None
