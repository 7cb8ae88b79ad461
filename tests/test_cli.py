"""The command line: what is said of every mistake, and what the commands print and leave behind.

A mistake is one message with its place on standard error, "error:" once, exit code 2, and no traceback.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import oracle
import pytest

from looptune import targets
from looptune.cli import main
from looptune.report.result import SHARES, VERSIONS
from looptune.report.tables import COLUMNS

GEMM = Path(__file__).parent.parent / "polybench" / "gemm.c"
SMALL = ("-D", "NI=24", "-D", "NJ=20", "-D", "NK=17", "--target", "numba-cpu")

FILES = {
    "plain.c": "void f(int n, float x[n]) {\n  for (int i = 0; i < n; i++) x[i] += 1;\n}\n",
    "syntax.c": "void f(int n, float x[n]) {\n  for (int i = 0; i < n; i++) x[i] = 1 +;\n}\n",
    "unknown.c": "void f(int n, float x[n]) {\n#pragma hmppcg unrol 4\n  for (int i = 0; i < n; i++) x[i] = 1;\n}\n",
    "argument.c": "void f(int n, float x[n]) {\n#pragma hmppcg unroll 4, splitt\n"
    "  for (int i = 0; i < n; i++) x[i] = 1;\n}\n",
    "illegal.c": "void f(int n, float x[n]) {\n#pragma hmppcg parallel\n"
    "  for (int i = 1; i < n; i++) x[i] = x[i - 1];\n}\n",
    "empty.c": "",
    "blank.c": " \n\n",
    "noloop.c": "int main(void) { return 0; }\n",
    "open.space": "loop k: unroll {1..\n",
    "words.space": "something else\n",
    "notes.json": '{"notes": []}',
    "broken.json": "{",
    "regular": "",
}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def alone(*arguments: str | Path, cwd: Path) -> Ran:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "looptune", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


def looptune(*arguments: str | Path, cwd: Path) -> Ran:
    """The command in this process, which has loaded what it needs; an exception is the test's."""
    out, err, term = StringIO(), StringIO(), signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["looptune", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
    signal.signal(signal.SIGTERM, term)
    return Ran(int(end.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file for every mistake."""
    folder = tmp_path_factory.mktemp("cli")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "binary.c").write_bytes(b"\x00\xff\xfe\x01")
    (folder / "binary.space").write_bytes(b"\xff\xfe\x00")
    (folder / "folder.c").mkdir()
    shutil.copy(GEMM, folder / "gemm.c")
    return folder


RUN = ("--target", "numba-cpu", "--db", "db.sqlite", "--reports", "reports")

MISTAKES = {
    "no such file": (["transform", "absent.c"], "no such file: absent.c"),
    "a folder": (["transform", "folder.c"], "a folder, not a C file: folder.c"),
    "an empty file": (["transform", "empty.c"], "empty file: empty.c"),
    "a blank file": (["transform", "blank.c"], "empty file: blank.c"),
    "no text": (["transform", "binary.c"], "not a text file: binary.c"),
    "a syntax error": (
        ["transform", "syntax.c"],
        "syntax.c:2:41: syntax error before ';'\n    for (int i = 0; i < n; i++) x[i] = 1 +;\n" + " " * 42 + "^",
    ),
    "an unknown directive": (
        ["transform", "unknown.c"],
        "unknown.c:2:16: unknown directive 'unrol'; did you mean 'unroll'?\n  #pragma hmppcg unrol 4\n"
        "                 ^^^^^^^",
    ),
    "an unknown directive, run": (["run", "unknown.c", "-D", "n=9", *RUN], "unknown.c:2:16: unknown directive 'unrol'"),
    "a misspelt argument": (
        ["transform", "argument.c"],
        "argument.c:2:26: unroll has no argument 'splitt'; did you mean 'split'? (syntax: unroll U [, contiguous | "
        "split] [, remainder | guarded | noremainder] [, jam | noJam])\n  #pragma hmppcg unroll 4, splitt\n"
        "                           ^^^^^^",
    ),
    "an illegal directive": (["transform", "illegal.c"], "illegal.c:2:16: parallel is illegal: loop i carries a dep"),
    "an illegal directive, run": (["run", "illegal.c", "-D", "n=9", *RUN], "parallel is illegal: loop i carries a dep"),
    "no such loop": (
        ["transform", "gemm.c", "--with", "loop q: unroll 2"],
        "directives:1:9: no loop q in gemm; its loops are i (1), j (2), k (3)\n  loop q: unroll 2\n          ^^^^^^^^",
    ),
    "no such loop, run": (
        ["run", "gemm.c", *RUN, "--with", "loop q: unroll 2"],
        "no loop q in gemm; its loops are i (1), j (2), k (3)",
    ),
    "unroll 0": (
        ["transform", "gemm.c", "--with", "loop k: unroll 0"],
        "directives:1:16: unroll factor must be at least 1, got 0\n  loop k: unroll 0\n                 ^",
    ),
    "tile -1": (
        ["transform", "gemm.c", "--with", "loop i: tile i:-1"],
        "directives:1:14: tile size of i must be at least 1, got -1\n  loop i: tile i:-1\n               ^^^^",
    ),
    "a directive alone": (["transform", "gemm.c", "--with", "unroll 2"], "directives:1:1: expected `loop NAME"),
    "an unknown one": (["emit", "gemm.c", "--with", "loop k: tyle k:2"], "unknown directive 'tyle'; did you mean"),
    "another reduction": (
        ["emit", "gemm.c", "--with", "loop k: parallel, reduce(min:C)"],
        "min:C is not what is reduced: loop k reduces +:C",
    ),
    "an unparsable space": (
        ["run", "gemm.c", "--sweep", "--space", "open.space", *RUN],
        "open.space:1:16: this { is not closed\n  loop k: unroll {1..\n                 ^",
    ),
    "a space of words": (["run", "gemm.c", "--sweep", "--space", "words.space", *RUN], "words.space:1:1: expected"),
    "a space of bytes": (
        ["run", "gemm.c", "--sweep", "--space", "binary.space", *RUN],
        "cannot read the space file binary.space: it is no text",
    ),
    "no such space": (
        ["run", "gemm.c", "--sweep", "--space", "absent.space", *RUN],
        "cannot read the space file absent.space: No such file or directory",
    ),
    "-D without a name": (["run", "gemm.c", "-D", "=3", *RUN], "-D =3: expected NAME or NAME=VALUE, got no name"),
    "-D with a bad name": (["emit", "gemm.c", "-D", "3=4"], "-D 3=4: expected NAME or NAME=VALUE, got the name '3'"),
    "-D of no number": (["run", "gemm.c", "-D", "NI=abc", *RUN], "gemm.c:48:22: -D NI=abc gives ni no number"),
    "-D of a parameter that is no number": (
        ["run", "plain.c", "-D", "n=abc", *RUN],
        "-D n=abc: the value of the parameter n is a number",
    ),
    "a size that is not given": (
        ["run", "plain.c", *RUN],
        "plain.c:1:12: the value of n is not known: give it with -D n=VALUE\n",
    ),
    "a negative size": (["run", "plain.c", "-D", "n=-3", *RUN], "an extent of x is -3"),
    "an unknown dataset": (["transform", "gemm.c", "--dataset", "huge"], "unknown dataset 'huge': choose one of MINI"),
    "no such codelet": (["run", "gemm.c", "--kernel", "no", *RUN], "no codelet no in gemm.c: it has gemm, init, print"),
    "no loops": (["transform", "noloop.c"], "noloop.c"),
    "an unknown target": (
        ["run", "gemm.c", "--target", "gpu"],
        "unknown target 'gpu': choose one of auto, numba-cuda, numba-cpu",
    ),
    "an unknown target, emit": (["emit", "gemm.c", "--target", "opencl"], "unknown target 'opencl': choose one of"),
    "an unknown strategy": (
        ["run", "gemm.c", "--sweep", "--strategy", "magic", *RUN],
        "unknown strategy 'magic': choose one of exhaustive, random, sampling",
    ),
    "a simulation of nothing": (["simulate"], "cannot read .looptune/results.sqlite: No such file or directory"),
    "a simulation of C": (["simulate", "gemm.c"], "gemm.c is neither a results database nor JSON"),
    "a simulation of other JSON": (
        ["simulate", "notes.json"],
        "notes.json is neither T4 results, a Kernel Tuner cache nor Kernel Launcher wisdom",
    ),
    "a bad budget": (
        ["run", "gemm.c", "--budget", "lots", *RUN],
        "`lots` is no budget: write a number of configurations (60) or a time (90s, 10m, 1h)",
    ),
    "no budget at all": (["run", "gemm.c", "--budget", "0", *RUN], "`0` is no budget"),
    "reports that cannot be written": (
        ["run", "gemm.c", "--target", "numba-cpu", "--reports", "regular/reports"],
        "cannot write reports to regular/reports: Not a directory; choose another folder with --reports",
    ),
    "a database that cannot be made": (["run", "gemm.c", *RUN, "--db", "regular/db.sqlite"], "regular/db.sqlite: "),
    "no place for the output": (["transform", "gemm.c", "-o", "regular/out.c"], "cannot write regular/out.c: Not a"),
    "no such configuration": (["emit", "gemm.c", "--config", "absent.json"], "cannot read absent.json: No such file"),
    "a configuration that is no JSON": (["transform", "gemm.c", "--config", "broken.json"], "broken.json is no JSON: "),
    "a configuration of something else": (
        ["transform", "gemm.c", "--config", "notes.json"],
        "notes.json holds no result with directives",
    ),
    "no such folder": (["transform", "gemm.c", "-I", "nowhere"], "no such folder: nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message(here: Path, mistake: str) -> None:
    """The message begins as expected, stands once after "error:", and nothing else is said; exit code 2."""
    arguments, message = MISTAKES[mistake]
    ran = looptune(*arguments, cwd=here)
    said = [line for line in ran.err.splitlines() if not line.startswith("warning:")]
    assert ran.code == 2, ran.err
    assert said[0].startswith("error: ")
    assert ran.err.count("error: ") == 1
    assert message.rstrip("\n") in ran.err
    assert "Traceback" not in ran.err
    assert all(line.startswith("  ") for line in said[1:])
    assert all(re.match(r"  (flow|anti|output) on |  instead: ", line) for line in said[3:])


@pytest.mark.parametrize(
    "arguments", [[], ["run"], ["nonsense"], ["run", "gemm.c", "--jobs", "0"], ["emit", "gemm.c", "--wat"]], ids=str
)
def test_wrong_usage_shows_the_usage(here: Path, arguments: list[str]) -> None:
    """click's own refusals end with code 2 and the usage, never a traceback."""
    ran = looptune(*arguments, cwd=here)
    assert ran.code == 2
    assert "Usage: " in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_a_gpu_that_is_not_there(here: Path) -> None:
    """Asking for a GPU where there is none says why."""
    if not targets.gpu_missing():
        pytest.skip("there is a GPU")
    ran = looptune("run", "gemm.c", "--target", "numba-cuda", cwd=here)
    assert ran.code == 2
    assert ran.err.startswith("error: the target numba-cuda needs an NVIDIA GPU: ")


@pytest.mark.skipif(not oracle.CUDA, reason="needs the package numba-cuda")
def test_an_unknown_architecture(here: Path) -> None:
    """PTX for what is no architecture: the message lists those there are."""
    ran = looptune("emit", "gemm.c", "--ptx", "--arch", "sm_9", cwd=here)
    assert ran.code == 2
    assert ran.err.startswith("error: unknown GPU architecture 'sm_9': choose one of ")
    assert "sm_90" in ran.err


# -- run ------------------------------------------------------------------------------------------


SWEEP = ("run", "gemm.c", *SMALL, "--sweep", "--budget", "6", "--db", "s/db.sqlite", "--reports", "s", "--json")


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
    "tuned_q1_us", "tuned_q3_us", *SHARES, "directives", "asserted", "versions", "seconds",
]  # fmt: skip


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
    assert record["tuned_us"] <= 1.01 * record["default_us"], "the default is a candidate in the finals too"
    assert record["sequential_us"] > 0
    assert all(0 < record[name] < 200 for name in SHARES if not name.startswith("handwritten"))
    assert record["seconds"].keys() == {
        "judge", "compile", "launch", "verify", "measure", "failed", "waiting", "own", "proofs", "finals",
        "sequential",
    }  # fmt: skip
    always = ("judge", "compile", "verify", "measure", "proofs", "finals", "sequential")
    assert all(record["seconds"][part] > 0 for part in always)
    assert record["asserted"] == [], "no directive of the space trusts"


def test_the_csv_has_the_same_names(swept: Swept) -> None:
    """reports/<device>/gemm.csv: the keys as columns, the counts of versions beside them, sizes as NAME=VALUE."""
    (path,) = swept.folder.glob("*/gemm.csv")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert reader.fieldnames == list(COLUMNS) == [*KEYS[:-2], *VERSIONS]
    assert len(rows) == 1, "the second run takes the place of the first"
    assert rows[0]["sizes"].lower() == "ni=24 nj=20 nk=17"
    assert float(rows[0]["tuned_us"]) == json.loads(swept.second.out)["tuned_us"]


def test_the_same_command_resumes(swept: Swept) -> None:
    """A second run measures nothing again: no row more in the database, the same winner and the times kept."""
    assert swept.rows[0] == swept.rows[1] >= 6
    first, second = json.loads(swept.first.out), json.loads(swept.second.out)
    times = [key for key in KEYS if key.endswith(("_us", "_percent"))]
    same = [key for key in KEYS if key not in (*times, "seconds")]
    assert [first[k] for k in same] == [second[k] for k in same]
    assert [second[k] for k in times] == [v if v is None else pytest.approx(v, rel=0.05) for v in map(first.get, times)]


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
    assert "what failed" not in table.out
    quiet = looptune("run", "plain.c", *options, "--quiet", cwd=here)
    assert (quiet.code, quiet.out) == (0, "")
    (report,) = (here / "r").glob("*/plain.json")
    report.write_text("not json")
    refused = looptune("run", "plain.c", *options, cwd=here)
    assert refused.code == 2, "a file that is no report is the user's"
    assert f"{report.relative_to(here)} is no report" in refused.err
    assert report.read_text() == "not json"


def test_a_damaged_database_is_kept_aside(here: Path, tmp_path: Path) -> None:
    """The run goes on with a new one and says where the old one is."""
    (tmp_path / "db").write_text("this is no database, and it is long enough to be looked at as one " * 40)
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
    said = "".join(f"      {line}\n" for line in transformed.err.removeprefix("error: ").splitlines())
    assert said in refused.out
    for arguments in (["syntax.c"], ["unknown.c"], ["absent.c"], ["gemm.c", "--with", "loop q: parallel"]):
        ran = looptune("check", *arguments, cwd=here)
        assert (ran.code, ran.out, ran.err[:7]) == (2, "", "error: ")
        assert "Traceback" not in ran.err


def test_check_tells_programs_what_it_tells_people(here: Path) -> None:
    """One JSON object on standard output, with -D, --with, --all and --strict-float; no escape codes in a pipe."""
    options = ("-D", "NI=64", "--with", "loop k: parallel", "--all", "--strict-float")
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
    for target in ("numba-cpu", "numba-cuda") if oracle.CUDA else ("numba-cpu",):
        ran = looptune("emit", "gemm.c", "--target", target, "--with", "loop k: unroll 4", cwd=here)
        assert ran.code == 0, ran.err
        compile(ran.out, "emitted", "exec")
        assert f"gemm for {target}" in ran.out.splitlines()[0]
        assert "loop k: unroll 4" in ran.out
    if oracle.CUDA:
        ptx = looptune("emit", "gemm.c", "--ptx", "--arch", "sm_80", cwd=here)
        assert ptx.code == 0
        assert ptx.out.count(".visible .entry") == 1
        assert ".target sm_80" in ptx.out


def test_devices(here: Path) -> None:
    """The CPU is always there, last; --json has the facts by name."""
    plain, as_json = looptune("devices", cwd=here), looptune("devices", "--json", cwd=here)
    found = json.loads(as_json.out)
    assert found[-1]["target"] == "numba-cpu"
    assert found[-1]["cores"] >= 1
    assert found[-1]["name"] in plain.out


def test_doctor(here: Path) -> None:
    """Every requirement is found here, and the exit code says so."""
    ran = looptune("doctor", cwd=here)
    assert ran.code == 0, ran.out
    assert "numba" in ran.out


@pytest.mark.parametrize("command", ["run", "transform", "emit", "devices", "doctor", "check", "failures"])
def test_help_says_what_each_option_does(here: Path, command: str) -> None:
    """Every option of every command has a help text."""
    ran = looptune(command, "--help", cwd=here)
    assert ran.code == 0
    options = [line for line in ran.out.splitlines() if line.startswith("  -")]
    assert options
    blocks = ran.out.partition("Options:")[2].split("\n  -")[1:]
    assert all(len(block.split("  ", 1)) == 2 and block.split("  ", 1)[1].strip() for block in blocks)


def test_ctrl_c_before_anything_is_measured(here: Path) -> None:
    """Also within an exec, which Python remembers: 130, and no word but ours."""
    code = (
        "import sys, click\nfrom looptune import cli\n"
        "@click.command()\ndef stuck() -> None:\n    exec('raise KeyboardInterrupt')\n"
        "cli.cli.add_command(stuck)\nsys.argv = ['looptune', 'stuck']\ncli.main()\n"
    )
    (here / "stuck.py").write_text(code)
    done = subprocess.run([sys.executable, "-m", "stuck"], cwd=here, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stderr.strip() == "stopped; what was measured is kept, the same command goes on from here"
