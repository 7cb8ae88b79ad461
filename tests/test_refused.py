"""Each file of tests/refused opens with the exact message it is refused with; FILE stands for its path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from looptune.errors import LooptuneError
from looptune.frontend import load

FOLDER = Path(__file__).parent / "refused"
FILES = sorted(FOLDER.glob("*.c"))


def refusal(path: Path) -> str:
    """What looptune says of a file; empty where it says nothing."""
    try:
        load(path)
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
