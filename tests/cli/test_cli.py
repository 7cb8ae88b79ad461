"""The command line: what the commands print and leave behind."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import looptune as looptune_api
from looptune.cli.main import cli
from looptune.core.errors import LooptuneError
from looptune.report.result_table import COLUMNS
from looptune.tune.results.result import SHARES, VERSIONS
from looptune.tune.store.store import Store
from tests.helpers import cross_check
from tests.helpers.command_line import SMALL, Ran, alone, filled, looptune


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("cli"))


SWEEP = (
    "run", "gemm.c", *SMALL, "--sweep", "--budget", "6", "--finals-timeout", "0.3", "--db", "s/db.sqlite",
    "--reports", "s", "--json",
)  # fmt: skip


def rows(database: Path) -> int:
    with sqlite3.connect(database) as db:
        return int(db.execute("select count(*) from runs").fetchone()[0])


@dataclass(frozen=True)
class Swept:
    """A sweep of six versions of a small GEMM, then the same command again; the rows in the database after each."""

    first: Ran
    second: Ran
    folder: Path
    rows: tuple[int, int]


@pytest.fixture(scope="module")
def swept(here: Path) -> Swept:
    database = here / "s" / "db.sqlite"
    first = alone(*SWEEP, cwd=here)
    after = rows(database)
    second = alone(*SWEEP, cwd=here)
    return Swept(first, second, here / "s", (after, rows(database)))


KEYS = [
    "kernel", "device", "target", "dtype", "sizes", "sequential_us", "default_us", "handwritten_us", "tuned_us",
    "tuned_q1_us", "tuned_q3_us", *SHARES, "directives", "asserted", "versions", "seconds", "earned", "guests",
    "kernels", "disturbed", "energy", "objective", "saving",
]  # fmt: skip
ENERGY = ["objective", "default_joules", "tuned_joules", "saving"]
"""The last columns of the CSV."""


@pytest.mark.wide
def test_json_is_the_contract(swept: Swept) -> None:
    """One object with exactly these keys; every version of the budget is accounted for."""
    assert swept.first.code == 0, swept.first.err
    record = json.loads(swept.first.out)
    assert list(record) == KEYS
    assert (record["kernel"], record["target"], record["dtype"]) == ("gemm", "numba-cpu", "float32")
    assert {n.lower(): v for n, v in record["sizes"].items()} == {"ni": 24, "nj": 20, "nk": 17}
    assert list(record["versions"]) == list(VERSIONS)
    assert sum(v for k, v in record["versions"].items() if k != "space") >= 6
    assert record["versions"]["wrong"] == record["versions"]["crashed"] == 0
    assert 0 < record["tuned_q1_us"] <= record["tuned_us"] <= record["tuned_q3_us"]
    assert record["default_us"] > 0
    slow = record["tuned_us"] > 1.5 * record["default_us"]
    assert record["disturbed"] or not slow, "the default is a candidate in the finals too"
    assert record["sequential_us"] > 0
    assert all(0 < record[name] < 200 for name in SHARES if not name.startswith("handwritten"))
    assert record["seconds"].keys() == {
        "judge", "compile", "launch", "verify", "measure", "failed", "waiting", "own", "proofs", "finals",
        "sequential",
    }  # fmt: skip
    always = ("judge", "compile", "verify", "measure", "proofs", "finals", "sequential")
    assert all(record["seconds"][part] > 0 for part in always)
    assert record["asserted"] == [], "no directive of the space trusts"


@pytest.mark.wide
def test_the_csv_has_the_same_names(swept: Swept) -> None:
    """reports/<device>/gemm.csv: the keys as columns, the counts of versions beside them, sizes as NAME=VALUE."""
    (path,) = swept.folder.glob("*/gemm.csv")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert reader.fieldnames == list(COLUMNS) == [*KEYS[: KEYS.index("versions")], *VERSIONS, *ENERGY]
    assert len(rows) == 1, "the second run takes the place of the first"
    assert rows[0]["sizes"].lower() == "ni=24 nj=20 nk=17"
    assert float(rows[0]["tuned_us"]) == json.loads(swept.second.out)["tuned_us"]


@pytest.mark.wide
def test_the_same_command_resumes(swept: Swept) -> None:
    """A second run measures nothing again: no row more in the database, the same winner and the times kept."""
    assert swept.rows[0] == swept.rows[1] >= 6
    first, second = json.loads(swept.first.out), json.loads(swept.second.out)
    times = [key for key in KEYS if key.endswith("_us")]
    # Shares of a peak change where the peak was disturbed: it is measured again.
    same = [key for key in KEYS if key not in (*times, "seconds", "disturbed") and not key.endswith("_percent")]
    assert [first[k] for k in same] == [second[k] for k in same]
    assert [second[k] for k in times] == [v if v is None else pytest.approx(v, rel=0.05) for v in map(first.get, times)]


@pytest.mark.wide
def test_the_winner_can_be_taken_on(swept: Swept, here: Path, tmp_path: Path) -> None:
    """``--config REPORT`` gives the program of the winning directives, and it compiles and runs."""
    (report,) = swept.folder.glob("*/gemm.json")
    record = json.loads(swept.second.out)
    ran = looptune("transform", "gemm.c", "--config", report, "-o", tmp_path / "tuned.c", cwd=here)
    assert (ran.code, ran.out) == (0, "")
    text = (tmp_path / "tuned.c").read_text()
    for line in record["directives"].splitlines():
        assert line in text
    emitted = looptune("emit", "gemm.c", "--config", report, "--target", "numba-cpu", cwd=here)
    assert all(line in emitted.out for line in record["directives"].splitlines())
    if shutil.which("gcc") is not None:
        subprocess.run(["gcc", "-O1", "-w", "tuned.c", "-lm", "-o", "tuned"], cwd=tmp_path, check=True, timeout=60)


@pytest.mark.wide
@pytest.mark.long
def test_files_without_a_sweep(here: Path, swept: Swept) -> None:
    """--json with two files prints a list of two objects, one version each and no winner; then, a table or nothing."""
    options = ["-D", "n=50", *SMALL, "--db", "s/db.sqlite", "--reports", "r"]
    several = looptune("run", "plain.c", "gemm.c", *options, "--json", cwd=here)
    assert several.code == 0, several.err
    records = json.loads(several.out)
    assert [r["kernel"] for r in records] == ["plain", "gemm"]
    assert [r["tuned_us"] for r in records] == [None, None]
    assert [r["directives"] for r in records] == ["", ""]
    pages = {page.stem: page.read_text() for page in (here / "r").glob("*/*.md")}
    assert "looptune run plain.c -D" in pages["plain"], "the command that measures this file alone"
    assert "looptune run plain.c gemm.c -D" in pages["summary-float32"]
    table = looptune("run", "plain.c", *options, cwd=here)
    assert table.code == 0, table.err
    assert "default" in table.out
    assert "tuned" not in table.out
    assert re.search(r"\ntime: [\d.]+ s: .*measure [\d.]+.*; meanwhile, of all processes: judge .*compile", table.out)
    assert "list the failures" not in table.out
    quiet = looptune("run", "plain.c", *options, "--quiet", cwd=here)
    assert (quiet.code, quiet.out) == (0, "")
    (report,) = (here / "r").glob("*/plain.json")
    report.write_text("not json")
    refused = looptune("run", "plain.c", *options, cwd=here)
    assert refused.code == 2, "a file that is no report is the user's"
    assert f"{report.relative_to(here)} is not a report" in refused.err
    assert report.read_text() == "not json"


@pytest.mark.wide
def test_a_damaged_database_is_kept_aside(here: Path, tmp_path: Path) -> None:
    """The run goes on with a new one and says where the old one is."""
    Store.open(tmp_path / "db").close()
    whole = (tmp_path / "db").read_bytes()
    (tmp_path / "db").write_bytes(whole[: len(whole) // 2])
    ran = looptune("run", "plain.c", "-D", "n=50", "--target", "numba-cpu", "--db", tmp_path / "db", "--reports",
                   tmp_path / "r", cwd=here)  # fmt: skip
    assert ran.code == 0, ran.err
    assert "warning: " in ran.err
    assert len(list(tmp_path.glob("db.corrupt-*"))) == 1


# -- check ----------------------------------------------------------------------------------------


def test_check_exits_by_what_is_refused(here: Path) -> None:
    """0 where every directive is legal, 1 where one is not, 2 for a mistake; the message is that of transform."""
    assert looptune("check", "gemm.c", cwd=here).code == 0
    refused, transformed = looptune("check", "illegal.c", cwd=here), looptune("transform", "illegal.c", cwd=here)
    assert (refused.code, refused.err) == (1, "")
    said = "".join(f"      {line}\n" for line in transformed.err.replace(" error:", "", 1).splitlines())
    assert said in refused.out
    for arguments in (["syntax.c"], ["unknown.c"], ["absent.c"], ["gemm.c", "--directive", "loop q: parallel"]):
        ran = looptune("check", *arguments, cwd=here)
        assert (ran.code, ran.out, "error: " in ran.err) == (2, "", True)
        assert "Traceback" not in ran.err


def test_check_tells_programs_what_it_tells_people(here: Path) -> None:
    """One JSON object on standard output, with all options of the analysis; no escape codes in a pipe."""
    options = ("-D", "NI=64", "--directive", "loop k: parallel", "--legal-space", "--no-reassociate")
    plain = looptune("check", "gemm.c", *options, cwd=here)
    made = json.loads(looptune("check", "gemm.c", *options, "--json", cwd=here).out)
    assert plain.code == 1
    assert "\x1b" not in plain.out
    assert [f["verdict"] for f in made["loops"]] == ["parallel", "parallel", "sequential"]
    assert made["strict_float"]
    assert (made["sizes"]["ni"], made["runs"]["launches"]) == (64, 1)
    assert [d["verdict"] for d in made["directives"]] == ["proved", "refused"]
    assert all(p["line"] in plain.out for p in made["permitted"]["permutations"])
    assert "k  sequential" not in plain.out
    assert "sequential  flow on C" in plain.out


# -- emit, devices, doctor, help ------------------------------------------------------------------


def test_emit_is_a_module(here: Path) -> None:
    """Both targets: Python that compiles and opens with its directives; --ptx has an entry for each kernel."""
    for target in ("numba-cpu", "numba-cuda") if cross_check.CUDA else ("numba-cpu",):
        ran = looptune("emit", "gemm.c", "--target", target, "--directive", "loop k: unroll 4", cwd=here)
        assert ran.code == 0, ran.err
        compile(ran.out, "emitted", "exec")
        assert f"gemm for {target}" in ran.out.splitlines()[0]
        assert "loop k: unroll 4" in ran.out
    if cross_check.CUDA:
        ptx = looptune("emit", "gemm.c", "--ptx", "--arch", "sm_80", cwd=here)
        assert ptx.code == 0
        assert ptx.out.count(".visible .entry") == 1
        assert ".target sm_80" in ptx.out


def test_emit_prints_cuda_c(here: Path) -> None:
    """A whole file: its directives, a kernel, and a host function that a C program can call; --ptx is NVRTC's."""
    ran = looptune("emit", "gemm.c", "--target", "cuda-c", "--directive", "loop k: unroll 4", cwd=here)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("/* gemm for cuda-c")
    assert "loop k: unroll 4" in ran.out.partition("*/")[0]
    assert 'extern "C" __global__ void __launch_bounds__(256)\ngemm_0(float *__restrict__ C' in ran.out
    assert 'extern "C" cudaError_t gemm(int ni, int nj, int nk, float alpha, float beta, float *C' in ran.out
    large = looptune("emit", "gemm.c", "--target", "cuda-c", "--directive", "codelet: grid blocksize 64x32", cwd=here)
    assert (large.code, large.out) == (2, "")
    assert "gemm_0 needs 2048 threads per block, the limit is 1024" in large.err
    if cross_check.CUDA:
        ptx = looptune("emit", "gemm.c", "--target", "cuda-c", "--ptx", "--arch", "sm_80", cwd=here)
        assert ".visible .entry gemm_0(" in ptx.out
        assert ".target sm_80" in ptx.out


def test_devices(here: Path) -> None:
    """The CPU is always there, last; --json has the facts by name."""
    plain, as_json = looptune("devices", cwd=here), looptune("devices", "--json", cwd=here)
    found = json.loads(as_json.out)
    assert found[-1]["target"] == "numba-cpu"
    assert found[-1]["cores"] >= 1
    assert found[-1]["name"] in plain.out


@pytest.mark.wide
def test_doctor(here: Path) -> None:
    """Every requirement is found here, and the exit code says so."""
    ran = looptune("doctor", cwd=here)
    assert ran.code == 0, ran.out
    assert "numba" in ran.out


def every_command(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("command", [*every_command()], ids=" ".join)
def test_help_says_what_each_option_does(here: Path, command: tuple[str, ...]) -> None:
    """Every option of every command has a help text, and every command has examples that its parser accepts."""
    ran = looptune(*command, "--help", cwd=here)
    assert ran.code == 0
    shown, _, examples = ran.out.partition("\nExamples:\n")
    options = [line for line in shown.splitlines() if line.startswith("  -")]
    assert options
    blocks = shown.partition("Options:")[2].split("\n  -")[1:]
    assert all(len(block.split("  ", 1)) == 2 and block.split("  ", 1)[1].strip() for block in blocks)
    assert examples
    for line in examples.splitlines():
        words = shlex.split(line.partition(" > ")[0])
        assert tuple(words[1 : len(command) + 1]) == command
        named: click.Command = cli
        for word in command:
            assert isinstance(named, click.Group)
            named = named.commands[word]
        named.make_context(words[0], words[len(command) + 1 :])


RENAMED = {
    "run": "--also --transfer-from, --cut-off --early-stop, --no-cut-off --no-early-stop, --with --directive, "
           "--strict-float --no-reassociate, --warm-l2 --no-flush-cache, --finals --finals-timeout, "
           "--run-main --inputs-from-main",
    "check": "--all --legal-space, --space --derive-space, --with --directive, --strict-float --no-reassociate",
    "predict": "--with --directive, --strict-float --no-reassociate",
    "build": "--default --untuned, --strict-float --no-reassociate",
    "devices": "--fresh --remeasure",
    "db failures": "--each --no-group, --class --status",
    "db prune": "--class --status",
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "old", "new"), [(c, *pair.split()) for c, pairs in RENAMED.items() for pair in pairs.split(", ")]
)
def test_former_names_of_options(here: Path, command: str, old: str, new: str) -> None:
    """They do as the new ones do, are not in the help, and one line on standard error names the new one."""
    words = command.split()
    named: click.Command = cli
    for word in words:
        assert isinstance(named, click.Group)
        named = named.commands[word]
    (option,) = (p for p in named.params if new in (*p.opts, *p.secondary_opts))
    assert isinstance(option, click.Option)
    values = [] if option.is_flag else ["crashed" if new == "--status" else "7"]
    needed = ["gemm.c"] if any(isinstance(p, click.Argument) for p in named.params) else []
    err = StringIO()
    with redirect_stderr(err):
        before = named.make_context(command, [*needed, old, *values]).params
    assert err.getvalue() == f"warning: {old} is now {new}\n"
    with redirect_stderr(err):
        after = named.make_context(command, [*needed, new, *values]).params
        plain = named.make_context(command, [*needed]).params
    assert err.getvalue().count("\n") == 1
    assert before == after
    assert after != plain or new == "--early-stop"
    assert old not in looptune(*words, "--help", cwd=here).out.split()


@pytest.mark.parametrize(
    ("old", "new"),
    [("model", "predict"), ("simulate", "replay"), ("failures", "db failures"), ("db export", "db dump")],
)
def test_former_names_of_commands(here: Path, old: str, new: str) -> None:
    """They are the new commands, with one line on standard error."""
    before, after = looptune(*old.split(), "--help", cwd=here), looptune(*new.split(), "--help", cwd=here)
    assert (before.code, before.out, before.err) == (0, after.out, f"warning: {old} is now {new}\n")
    assert not re.search(rf"^  {old.split()[-1]} ", looptune(*old.split()[:-1], "--help", cwd=here).out, re.M)


def test_former_names_of_arguments(here: Path) -> None:
    """``looptune.compile(strict_float=True)`` is ``reassociate=False``, with a warning."""
    given: dict[str, Any] = {"strict_float": True}
    with pytest.warns(DeprecationWarning, match="strict_float= is now reassociate="), pytest.raises(LooptuneError) as e:
        looptune_api.compile(here / "gemm.c", target="numba-cpu", directives="loop k: unroll 4, split", **given)
    assert "--no-reassociate" in str(e.value)


def test_ctrl_c_before_anything_is_measured(here: Path) -> None:
    """Also within an exec, which Python remembers: 130, and no word but ours."""
    code = (
        "import sys, click\nfrom looptune.cli import main as cli\n"
        "@click.command()\ndef stuck() -> None:\n    exec('raise KeyboardInterrupt')\n"
        "cli.cli.add_command(stuck)\nsys.argv = ['looptune', 'stuck']\ncli.main()\n"
    )
    (here / "stuck.py").write_text(code)
    done = subprocess.run([sys.executable, "-m", "stuck"], cwd=here, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stderr.strip() == "stopped"


def test_emit_without_a_target_prints_what_is_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA C, with a word, where numba-cuda is not installed; a target that was named is not another."""
    monkeypatch.setattr("looptune.runtime.targets.cuda_installed", lambda: False)
    done = CliRunner().invoke(cli, ["emit", str(here / "gemm.c")], catch_exceptions=False, standalone_mode=False)
    assert "numba-cuda is not installed: this is CUDA C" in done.stderr
    assert done.stdout.startswith("/* gemm for cuda-c")
