"""Each file of tests/refused opens with the exact message it is refused with; FILE stands for its path.

A file may say how it is scheduled: ``/* with: -D n=7 --strict-float `loop i: parallel` */``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from looptune.errors import LooptuneError
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.schedule import Analysis
from looptune.suggest import advised

FOLDER = Path(__file__).parent / "refused"
FILES = sorted(FOLDER.glob("*.c"))


def refusal(path: Path) -> str:
    """What looptune says of a file; empty where it says nothing."""
    given = re.search(r"^/\* with: (.*?) \*/$", path.read_text(), re.MULTILINE)
    words = given[1] if given is not None else ""
    defines = dict(re.findall(r"-D (\w+)=(\d+)", words))
    lines = re.findall(r"`(.*?)`", words)
    try:
        unit = load(path, defines=defines)
        advised(Analysis(unit.codelet, "--strict-float" not in words), parse_lines(lines, "directives"), unit.values)
    except LooptuneError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_refused_file_gets_the_message_it_opens_with(path: Path) -> None:
    """The message is the expected one to the letter: place, reason, line and caret."""
    expected = re.match(r"/\* expect:\n(.*?)\n\*/\n", path.read_text(), re.DOTALL)
    assert expected is not None, f"{path} does not open with /* expect: … */"
    assert refusal(path).replace(str(path), "FILE") == expected[1]


def test_there_are_refused_files() -> None:
    """The folder is found, so the test above runs on something."""
    assert len(FILES) > 50
