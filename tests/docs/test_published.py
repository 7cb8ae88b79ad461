"""What ``reports/`` publishes is small, shown, and what its databases say; ``make run`` leaves a checkout clean."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from looptune.report import best_table
from tests.helpers.built_modules import imported
from tests.helpers.command_line import looptune
from tests.helpers.paths import ROOT

REPORTS = ROOT / "reports"
MOST_BYTES = 4_000_000
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(REPORTS.rglob("*.md")))
needs_git = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs git and a checkout"
)


def git(*arguments: str, cwd: Path = ROOT) -> str:
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True).stdout


def tracked() -> list[Path]:
    """What git has of reports/, less what is deleted in the checkout."""
    paths = (ROOT / name for name in git("ls-files", "-z", "reports").split("\0") if name)
    return [path for path in paths if path.exists()]


@cache
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return imported(ROOT / "benchmarks" / "published.py")


@needs_git
def test_reports_are_small_and_of_few_kinds() -> None:
    """Text, pictures and packed databases, no pages and nothing that is made of the others."""
    assert sum(path.stat().st_size for path in tracked()) <= MOST_BYTES
    kinds = {"".join(path.suffixes) for path in tracked()}
    assert kinds <= {".md", ".csv", ".tsv", ".json", ".png", ".svg", ".sqlite.gz"}


@needs_git
def test_every_picture_is_shown() -> None:
    """By README.md, a page of docs/ or one of reports/."""
    shown = {(page.parent / link).resolve() for page in PAGES
             for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()) if "//" not in link}  # fmt: skip
    pictures = {path.resolve() for path in tracked() if path.suffix in (".png", ".svg")}
    assert pictures
    assert pictures - shown == set()


def test_what_documents_name_of_the_reports_is_there() -> None:
    """Files and folders in reports/ that are named in the text, but for patterns and what a command is yet to write."""
    named = {(page.name, name) for page in PAGES
             for name in re.findall(r"(?<![\w/])reports/(?:[a-z0-9-]+/)+[\w./-]*\w", page.read_text())}  # fmt: skip
    written = {"tutorial.md"}
    missing = {(page, name) for page, name in named if page not in written and not (ROOT / name).exists()}
    assert len(named) > 20
    assert missing == set()


@pytest.mark.wide
@pytest.mark.parametrize("packed", sorted(REPORTS.glob("*/results.sqlite.gz")), ids=lambda p: p.parent.name)
def test_tables_have_the_numbers_of_the_databases(packed: Path) -> None:
    """What is published is what ``make reports`` makes, but for the words of another version of looptune."""
    published = json.loads((packed.parent / "table-best.json").read_text())
    made = json.loads(json.dumps([best_table.record(study) for study in script().read(packed)]))
    keys = {"kernel", "device", "dtype", "sizes", "versions", "over_default", "over_handwritten"}
    keys |= {key for record in made for key in record if key.endswith("_us")}
    assert [{k: r.get(k) for k in keys} for r in made] == [{k: r.get(k) for k in keys} for r in published]


@pytest.mark.long
def test_make_reports_makes_pages_of_each_type(tmp_path: Path) -> None:
    """One for each kernel, under the folder of its device and type, and what several devices have together."""
    script().device(REPORTS / "nvidia-h100-80gb-hbm3" / "results.sqlite.gz", tmp_path)
    script().together(script().TOGETHER, tmp_path)
    folder = tmp_path / "nvidia-h100-80gb-hbm3"
    assert len(list((folder / "float32").glob("*.md"))) == 16
    assert (folder / "index.html").exists()
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "across"}
    assert (tmp_path / "across" / "transfer.md").exists()


def commands(target: str) -> list[list[str]]:
    """What ``make`` would run of looptune, as arguments."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (shlex.split(line) for line in done.stdout.splitlines() if "/looptune " in line)
    return [words[1:] for words in lines if words[0].endswith("/looptune")]


@pytest.mark.wide
@needs_git
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_run_leaves_a_checkout_clean(tmp_path: Path) -> None:
    """Its commands, of a small GEMM and two of its versions, write nothing that git would list, and say where."""
    for name in (".gitignore", "polybench/gemm.c", "pragmas/gemm.pragmas"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git("init", "-q", cwd=tmp_path)
    git("add", ".", cwd=tmp_path)
    before = git("status", "--porcelain", cwd=tmp_path)
    small = [
        "--target",
        "numba-cpu",
        "-D",
        "NI=24",
        "-D",
        "NJ=20",
        "-D",
        "NK=17",
        "--budget",
        "2",
        "--finals-timeout",
        "0.2",
    ]
    sweep, report = commands("run")
    for arguments in ([*sweep, *small], report):
        done = looptune(*arguments, cwd=tmp_path)
        assert done.code == 0, done.err
        assert "report: build/run/" in done.out
    assert list(tmp_path.glob("build/run/*/gemm.md"))
    assert git("status", "--porcelain", cwd=tmp_path) == before
