"""What other packages bring: the examples, installed and run; packages that cannot be used, refused with the reason."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import looptune as library
from looptune.cli import doctor
from looptune.core import plugins
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.lower.pipeline import lower
from looptune.poly.translation_validation import prove
from looptune.runtime import targets
from looptune.schedule import directives
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import Example
from looptune.tune import strategies
from looptune.tune.space.space import parse
from tests import programs
from tests.helpers import cross_check, report_database
from tests.helpers.command_line import FILES, Ran, alone, looptune
from tests.helpers.directive_examples import transformed
from tests.helpers.plugin_packages import EXAMPLES, declare, install, visible
from tests.programs.program import Program

PACKAGES = ("nofma", "mirror", "annealing", "gcc")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of examples/."""
    folder = tmp_path_factory.mktemp("site")
    for name in PACKAGES:
        install(EXAMPLES / name, folder)
    return folder


@pytest.fixture
def there(site: Path) -> Iterator[None]:
    with visible(site):
        yield


@pytest.mark.usefixtures("there")
def test_packages_bring_what_they_say() -> None:
    """Each is found with its package, the built-in ones come first, and the doctor can use all of them."""
    assert [(p.kind, p.name, p.package) for p in plugins.installed()] == [
        ("directive", "mirror", "looptune-mirror"),
        ("directive", "nofma", "looptune-nofma"),
        ("strategy", "annealing", "looptune-annealing"),
        ("target", "gcc", "looptune-gcc"),
    ]
    assert directives.names()[-2:] == ("mirror", "nofma")
    assert strategies.names()[-1] == "annealing"
    assert plugins.versions() == {
        "looptune-gcc": "0.1.0", "looptune-nofma": "0.1.0", "looptune-mirror": "0.1.0",
    }  # fmt: skip


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("name", ["nofma", "mirror"])
def test_a_directive_does_what_its_examples_show(name: str) -> None:
    """They become what is shown, or are refused; what is accepted is proved."""
    cls = directives.named(name)
    assert cls is not None
    examples: dict[str, Example] = dict(cls.examples)
    for text, example in examples.items():
        original = load(example.program(text)).codelet
        if example.refused:
            with pytest.raises(library.LooptuneError, match=example.refused):
                transformed(original)
            continue
        done = transformed(original)
        assert c_printer.body(done, indent="", pragmas="#pragma" in example.after) == example.after
        assert prove(original, done).verdict == "proved"


_TWO = """
void f(int n, float a[n], float b[n]) {
  #pragma looptune nofma
  for (int i = 0; i < n; i++) b[i] = a[i] * a[i] + b[i];
  for (int j = 0; j < n; j++) b[j] = a[j] * a[j] + b[j];
}
"""


@pytest.mark.usefixtures("there")
def test_a_directive_acts_on_kernels(tmp_path: Path) -> None:
    """Of two kernels the one of its loop rounds products on their own, also where the file was written by transform."""
    made = schedule(Analysis(load(_TWO).codelet), ()).codelet
    assert [k.no_contraction for k in lower(made).kernels] == [True, False]
    text = targets.emit("cuda-c", lower(made, blocks=True), None)
    products = re.findall(r"b\[(\w)\] = (__fmul_rn)?", text)
    assert products == [("i", "__fmul_rn"), ("j", "")]
    (tmp_path / "f.c").write_text(_TWO)
    written = looptune("transform", tmp_path / "f.c", cwd=tmp_path)
    assert written.code == 0, written.err
    assert written.out.count("#pragma looptune nofma") == 1
    again = schedule(Analysis(load(written.out).codelet), ()).codelet
    assert [k.no_contraction for k in lower(again).kernels] == [True, False]


_NEST = """
void f(int n, int m, float D[n][m], float B[n]) {
  for (int i = n - 1; i >= 1; i -= 2) {
    B[i] = 0;
    for (int j = 0; j < m; j += 3) B[i] += D[i][j];
  }
}
"""


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("lines", [("mirror",), ("mirror", "unroll 2, jam"), ("mirror", "")])
def test_the_directive_works_with_others(lines: tuple[str, ...]) -> None:
    """Loops that step and count down, its own sum reordered; beside an unroll; among the directives of a choice."""
    placed = [f"loop {k}: {text}" for k, text in zip((2, 1), lines, strict=False) if text]
    original = load(_NEST).codelet
    done = schedule(Analysis(original), parse_lines(placed)).codelet
    assert prove(original, done).verdict == "proved"
    given = cross_check.arguments(original, {"n": 7, "m": 8})
    assert cross_check.off(cross_check.interpreted(original, given), cross_check.interpreted(done, given), 1e-5) is None
    assert parse("loop 2: {mirror, unroll 2, unroll 4}", "s").versions == 3


@pytest.mark.usefixtures("there")
def test_the_strategy_searches(tmp_path: Path) -> None:
    """By its name and among all of them, it finds the best of a recording; the same seed gives the same search."""
    database = report_database.database(tmp_path / "db.sqlite")
    ran = looptune("replay", database, "--strategy", "annealing", "--repeats", "5", "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    records = json.loads(ran.out)
    assert {r["strategy"] for r in records} == {"annealing"}
    assert (
        looptune("replay", database, "--strategy", "annealing", "--repeats", "5", "--json", cwd=tmp_path).out == ran.out
    )
    everyone = looptune("replay", database, "--repeats", "2", "--json", cwd=tmp_path)
    assert {"annealing", "random"} <= {r["strategy"] for r in json.loads(everyone.out)}


@pytest.mark.sampled(2, "wide")
@needs_gcc
@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("program", programs.ALL[::6], ids=lambda p: p.name.replace(" ", "-"))
def test_the_target_computes_what_the_loops_do(program: Program) -> None:
    """Compiled for the target gcc, programs of the language leave what the interpreter leaves."""
    kernel = library.compile(program.text, target="gcc")
    codelet = load(program.text).codelet
    given = cross_check.arguments(codelet, program.sizes)
    got = {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
    kernel(*got.values())
    arrays = {name: value for name, value in got.items() if isinstance(value, np.ndarray)}
    assert cross_check.off(cross_check.interpreted(codelet, given), arrays, max(program.tolerance, 1e-5)) is None
    assert "gcc -O3" in kernel.source


@pytest.mark.wide
@needs_gcc
def test_the_target_is_swept(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all three packages, in processes of their own: measured, verified, proved and reported."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(EXAMPLES.parent)]))
    (tmp_path / "f.c").write_text(FILES["plain.c"])
    (tmp_path / "f.pragmas").write_text("loop i: { | mirror }\n")
    options = (
        "-D",
        "n=2000",
        "--sweep",
        "--finals-timeout",
        "0.3",
        "--target",
        "gcc",
        "--strategy",
        "annealing",
        "--jobs",
        "1",
        "--json",
    )
    ran = alone("run", "f.c", *options, cwd=tmp_path)
    assert ran.code == 0, ran.err
    record = json.loads(ran.out)
    assert (record["target"], record["versions"]["timed"], record["versions"]["wrong"]) == ("gcc", 3, 0)
    assert record["tuned_us"] > 0


BROKEN = {
    "missing": ("directives", "odd", "no_such_module:Odd", "no_such_module:Odd: ModuleNotFoundError: No module named"),
    "raises": ("directives", "odd", "raising:Odd", "raising:Odd: ValueError: broken"),
    "absent": ("strategies", "odd", "module:Absent", "AttributeError"),
    "no class": (
        "directives",
        "odd",
        "module:number",
        "it is not a subclass of looptune.schedule.directives.base.Transform",
    ),
    "no strategy": ("strategies", "odd", "module:Lacking", "it is not a subclass of looptune.tune.strategies.base"),
    "lacking": ("directives", "odd", "module:Lacking", "it lacks examples, apply, parse"),
    "other name": ("strategies", "odd", "module:Even", "it calls itself even"),
    "no target": (
        "targets",
        "odd",
        "module:number",
        "module:number makes no looptune.runtime.targets.Target called odd",
    ),
    "own directive": ("directives", "tile", "module:Lacking", "looptune has a directive of this name itself"),
    "own strategy": ("strategies", "random", "module:Even", "looptune has a strategy of this name itself"),
    "own target": ("targets", "numba-cpu", "module:number", "looptune has a target of this name itself"),
}
MODULE = """
from looptune.schedule.directives.base import Transform
from looptune.tune.strategies.base import Sequential
number = 3
class Lacking(Transform):
    name = "odd"
    syntax = "odd"
    stage = "loop"
class Even(Sequential):
    name = "even"
    def search(self): yield 0
"""


def used(kind: str, name: str, folder: Path) -> Ran:
    """A command that asks for what the package brings."""
    match kind:
        case "directives":
            return looptune("transform", "plain.c", "--directive", f"loop i: {name} i:2", cwd=folder)
        case "strategies":
            return looptune("replay", "db.sqlite", "--strategy", name, cwd=folder)
    return looptune("emit", "plain.c", "--target", name, cwd=folder)


@pytest.mark.parametrize("case", BROKEN)
def test_a_package_that_cannot_be_used_is_refused(case: str, tmp_path: Path) -> None:
    """One line with the package and the reason, exit code 2, and a warning of the doctor's; all else works."""
    group, name, value, why = BROKEN[case]
    declare(tmp_path / "site", "looptune-broken", {f"looptune.{group}": {name: value}})
    (tmp_path / "site" / "module.py").write_text(MODULE)
    (tmp_path / "site" / "raising.py").write_text("raise ValueError('broken')\n")
    (tmp_path / "plain.c").write_text(FILES["plain.c"])
    with visible(tmp_path / "site"):
        ran = used(group, name, tmp_path)
        assert ran.code == 2, ran
        (first, *_) = ran.err.splitlines()
        assert f"{name} of the package looptune-broken cannot be used: " in first
        assert why in first
        assert looptune("transform", "plain.c", "--directive", "loop i: unroll 2", cwd=tmp_path).code == 0
        (probe,) = map(doctor.plugin_probe, plugins.installed())
    assert probe.name.endswith(name)
    assert "looptune-broken" in probe.mend


def test_the_doctor_says_what_is_wrong_with_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its finding is the refusal, and costs no other one."""
    declare(tmp_path, "looptune-broken", {"looptune.directives": {"odd": "no_such_module:Odd"}})
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(EXAMPLES.parent)]))
    with visible(tmp_path):
        (probe,) = map(doctor.plugin_probe, plugins.installed())
        finding = doctor.run_probe(probe)
    assert (finding.name, finding.status) == ("directive odd", "warn")
    assert "looptune-broken cannot be used: no_such_module:Odd: ModuleNotFoundError" in finding.found


def test_a_name_that_two_packages_bring_is_refused(tmp_path: Path) -> None:
    """Both are named."""
    for package in ("looptune-one", "looptune-two"):
        declare(tmp_path, package, {"looptune.strategies": {"odd": "module:Even"}})
    with visible(tmp_path):
        ran = looptune("replay", "db.sqlite", "--strategy", "odd", cwd=tmp_path)
    assert ran.code == 2
    assert "looptune-one cannot be used: the package looptune-two brings one of this name too" in ran.err


def test_what_is_brought_is_for_this_machine(site: Path, tmp_path: Path) -> None:
    """A target of another package is refused where looptune's own are meant: --devices, --cluster, build."""
    (tmp_path / "plain.c").write_text(FILES["plain.c"])
    with visible(site):
        devices = looptune("run", "plain.c", "-D", "n=9", "--target", "gcc", "--devices", "all", cwd=tmp_path)
        built = looptune("build", "plain.c", "--target", "gcc", "--untuned", cwd=tmp_path)
    assert (devices.code, built.code) == (2, 2)
    assert "--devices all selects GPUs, but the target is gcc" in devices.err
    assert "kernels are built for looptune's own targets, and not for gcc" in built.err
