"""What the documents show is what happens: commands, their output, code, and the names of options."""

from __future__ import annotations

import shutil
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from looptune.cli.main import cli
from looptune.runtime import targets
from looptune.tune.space.space import parse
from tests.helpers import doc_blocks, doc_commands, doc_workspace
from tests.helpers.doc_blocks import Block, Command
from tests.helpers.paths import ROOT
from tests.helpers.plugin_packages import EXAMPLES, visible

SOON = ("README.md", "docs/directives.md")
"""What a reader tries first; the commands of other documents take minutes together."""
DOCUMENTS = [pytest.param(path, id=str(path.relative_to(doc_blocks.ROOT))) for path in doc_blocks.ALL]
FIRST = [pytest.param(*p.values, id=p.id, marks=() if p.id in SOON else pytest.mark.long) for p in DOCUMENTS]
needs_tools = pytest.mark.skipif(
    shutil.which("gcc") is None or not targets.cuda_installed(), reason="needs gcc and the package numba-cuda"
)
REFUSED = (1, 2)
"""Exit codes of a command whose output is shown and says so."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    doc_workspace.furnish(tmp_path)
    return tmp_path


@pytest.mark.wide
@needs_tools
@pytest.mark.parametrize("path", FIRST)
def test_commands_do_what_is_shown(path: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """In the order of the text, in one folder: files are written, commands and Python run, outputs compared."""
    names: dict[str, Any] = given()
    folder = tmp_path
    if path.name not in doc_commands.TO_THE_END:
        doc_workspace.furnish(folder)
    for block in doc_blocks.blocks(path.read_text()):
        where = f"{path.name}:{block.line}"
        if block.file and (ROOT / block.file).parent.parent == EXAMPLES:
            assert block.text == (ROOT / block.file).read_text(), f"{where}: {block.file} is another"
        elif block.file:
            (folder / block.file).write_text(block.text)
            if block.file.endswith(".pragmas"):
                assert parse(block.text, block.file).versions, where
        elif block.language == "python":
            execute(block, names, folder, where)
        for command in doc_blocks.commands(block):
            check(command, path.name, folder, pytestconfig)


def check(command: Command, document: str, folder: Path, config: pytest.Config) -> None:
    ran = doc_commands.act(command.text, document, folder, config)
    where = f"{document}:{command.line}: {command.text}"
    said = ran.out + ran.err
    refused = command.shown is not None and ("error:" in command.shown or "refused" in command.shown)
    assert ran.code in (REFUSED if refused else (0,)), f"{where}\n{said}"
    if command.shown is None:
        return
    if doc_commands.measures(command.text):
        assert doc_commands.shows(doc_commands.unmeasured(command.shown), doc_commands.unmeasured(ran.out)), (
            f"{where}\n{ran.out}"
        )
    else:
        assert doc_commands.shows(command.shown, said), f"{where}\n{said}"


def given() -> dict[str, Any]:
    """What examples in Python take as there."""
    rng = np.random.default_rng(0)
    made = {name: rng.random((12, 12), dtype=np.float32) for name in "ABC"}
    sizes = dict.fromkeys(("ni", "nj", "nk"), 12)
    return {**made, **sizes, "alpha": 1.5, "beta": 0.5, "stream": None, "numpy": np, "a": made["A"], "x": made["B"][0]}


def execute(block: Block, names: dict[str, Any], folder: Path, where: str) -> None:
    code = compile(block.text, where, "exec")
    if any(line in block.text for line in doc_commands.PYTHON_STOPS):
        return
    module = types.ModuleType("document")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(category=UserWarning, action="ignore"):
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.setitem(sys.modules, "document", module)
        names["__name__"] = "document"
        with visible(folder / "site"):
            exec(code, names)
    for name in (p.stem for p in folder.glob("*.py")):
        sys.modules.pop(name, None)


def every_option() -> set[str]:
    context = click.Context(cli)
    return {o for c in commands(cli, context) for p in c.params for o in (*p.opts, *p.secondary_opts)}


def commands(group: click.Group, context: click.Context) -> list[click.Command]:
    found: list[click.Command] = []
    for command in group.commands.values():
        found += commands(command, context) if isinstance(command, click.Group) else [command]
    return found


@pytest.mark.parametrize("path", DOCUMENTS)
def test_what_is_named_is_there(path: Path) -> None:
    """Commands of looptune in the text and in synopses, with their options; options named alone."""
    text = path.read_text()
    for named in doc_blocks.mentions(text):
        words = named.replace("[", " ").replace("]", " ").split()
        command: click.Command = cli
        for word in words[1:]:
            if isinstance(command, click.Group):
                assert word in command.commands, f"{path.name}: {named}"
                command = command.commands[word]
            elif word.startswith("--"):
                assert word in {o for p in command.params for o in (*p.opts, *p.secondary_opts)}, (
                    f"{path.name}: {named}"
                )
    missing = set(doc_blocks.options(text)) - every_option() - {*doc_commands.OTHERS_OPTIONS}
    assert not missing, f"{path.name}: {missing}"


@pytest.mark.wide
@needs_tools
@pytest.mark.parametrize(
    "line",
    [
        "looptune run polybench/gemm.c --sweeep",
        "looptune run polybench/gemm.c --sweep --strategy none",
        "looptune run polybench/none.c --sweep",
        "looptune run gemm.c --sweep --devices v100",
        "looptune run gemm.c --clusters tcp://head:8786",
        "looptune transform gemm.c --directive 'loop k: unrol 4'",
        "looptune reports",
        "python benchmarks/legality.py --proof",
        "python benchmarks/screening.py",
        "python -m pytest tests/test_none.py",
        "python -m pytest tests/properties/test_mutants.py --case 3",
        "make none",
        "pip install -e '.[plots]'",
        "dask worker tcp://head:8786 --nothreads 8",
        "gcc -c none.c",
    ],
)
def test_a_wrong_command_is_found(line: str, folder: Path, pytestconfig: pytest.Config) -> None:
    """A document that has an option, file, target or command that is not there does not pass."""
    with pytest.raises((AssertionError, ValueError, SystemExit, click.ClickException, pytest.fail.Exception)):
        check(Command(line, 1), "some.md", folder, pytestconfig)


def test_wrong_output_is_found() -> None:
    """Another line, another word: not what is shown; other numbers are, of what is measured."""
    assert doc_commands.shows("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not doc_commands.shows("a\n...\nd\n", "a\nb\nc\n")
    assert not doc_commands.shows("a\nb", "a\nc")
    shown, said = "gemm: 12 versions\ntuned  13.5 us  1.1x FAST\n", "gemm: 12 versions\ntuned  2 ms  1x SAME\n"
    assert doc_commands.shows(doc_commands.unmeasured(shown), doc_commands.unmeasured(said))
    for word, other in (("tuned", "default"), ("12", "7")):
        assert not doc_commands.shows(
            doc_commands.unmeasured(shown), doc_commands.unmeasured(said.replace(word, other))
        )


def test_each_stop_is_needed() -> None:
    """What is not run to its end stands in a document, and says why."""
    lines = [
        c.text for path in doc_blocks.ALL for b in doc_blocks.blocks(path.read_text()) for c in doc_blocks.commands(b)
    ]
    for stop in doc_commands.STOPS:
        assert stop.why
        assert any(doc_commands.stop_of(line) is stop for line in lines), stop.begins
