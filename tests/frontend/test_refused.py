"""Each file of tests/refused opens with the exact message it is refused with; FILE stands for its path.

A file may say what it is read and scheduled with: ``/* with: -D n=7 --kernel f --no-reassociate `loop i: parallel`
*/``.
Every kind of message that the sources hold is in one of the files, or in OTHERWISE with the reason why not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.suggest import schedule_with_suggestions
from tests.helpers.paths import TESTS
from tests.helpers.refusal_messages import Template, templates

FOLDER = TESTS / "refused"
FILES = sorted(FOLDER.glob("*.c"))

OTHERWISE: Mapping[str, str] = {
    "empty file: ": "a file that holds its own message is not empty: test_cli",
    "invalid dtype": "an option, not the file: test_frontend_load",
    "no such folder: ": "an option, not the file: test_frontend_load",
    "the source is empty: give ": "there is no text: test_load_files",
    "a folder, not a C file: ": "there is no file: test_cli",
    "no such file: ": "there is no file: test_cli",
    "cannot read ": "a file that cannot be read cannot hold its message: test_cli",
    "-D needs a name": "an option, not the file: test_frontend_load",
    "would count in \0 between bounds of": "a guard of the schedule's: the directives here convert or refuse",
    " must be an integer, got ": "a value of -D, not the file: test_bad_input",
    ", which \0 does not fit": "a value of -D, not the file: test_bad_input",
    " is a floating-point number: its value is too large": "a value of -D, not the file: test_bad_input",
    "not a text file: ": "its bytes are no text: test_cli",
    "the macros here expand to more than": "a macro of as many tokens: test_bad_input",
    "it is not a subclass of looptune.schedule": "of a package's directive: test_plugins",
    "it lacks ": "of a package's directive: test_plugins",
    "it calls itself ": "of a package's directive: test_plugins",
    "but \0 reduce nothing": "of several loops, as reduce_nothing.c is of one",
    "but \0 reduce \0": "of several loops, as reduce_other_op.c is of one",
    "which is volatile: C that is built here": "of build --c only: test_c_declaration",
    "has a parameter without a name": "of build --c only: test_c_declaration",
    "which C that is built here does not": "of build --c only: test_c_declaration",
    "at file scope, which C that is built": "of build --c only: test_c_declaration",
    "for which C that is built here has no array": "of build --c only: test_c_declaration",
    "which C that is built here cannot declare": "of build --c only: test_c_declaration",
    "whose type C that is built here": "of build --c only: test_c_declaration",
    "a pointer to a whole array: write": "of build --c only: test_c_declaration",
    "in a file that it includes cannot be a codelet": "needs a second file: test_whole_programs",
    "a struct (\0) is not accepted in a codelet: write one parameter": "a guard: a value or a pointer is refused first",
    "#include is nested more than": "needs a second file that includes itself: test_frontend_load",
    "'}' is missing": "for text left out as unreadable that holds the brace; no such text is known",
    "the file holds no C": "for a parser that complains of a file without C; pycparser does not",
    "\0 is not a constant": "for a parser that lets a malformed constant pass; pycparser does not",
    "several characters in one": "likewise",
    "more characters than an int has bytes": "likewise",
    "\0 may change \0, which bounds it": "jam: the front end makes such a loop a while, which jam refuses first",
    "\0 is \0, and looptune reads C: \0": "a file of another language: test_other_languages",
    "\0 is defined \0 times, which C++ tells apart": "a file of C++, likewise",
    "this nest, on which \0, cannot be analysed": "when isl gives up is no matter of one file: test_isl_limits",
    "the bounds of its loops are too complex to analyse": "likewise",
    "the loops are too complex to generate": "likewise",
    "the nest at loop \0 is too complex": "likewise",
    "the accesses to \0 are too complex to analyse": "likewise",
    "the accesses of loop \0 are too complex": "likewise",
    "counts in \0: it must be int or long": "a guard: the front end's loops count in these",
    "the analysis failed, which is an error in looptune": "an exception of ours: test_survey",
}  # fmt: skip
"""Messages without a file, by what they say, with the reason."""


def refusal(path: Path) -> str:
    """What looptune says of a file; empty where it says nothing."""
    given = re.search(r"^/\* with: (.*?) \*/$", path.read_text(), re.MULTILINE)
    words = given[1] if given is not None else ""
    defines = dict(re.findall(r"-D (\w+)=(\S+)", words))
    kernel = re.search(r"--kernel (\S+)", words)
    lines = re.findall(r"`(.*?)`", words)
    try:
        unit = load(path, kernel=kernel[1] if kernel is not None else None, defines=defines)
        placed = parse_lines(lines, "directives")
        done = schedule_with_suggestions(Analysis(unit.codelet, "--no-reassociate" not in words), placed, unit.values)
        lower(done.codelet, blocks=True)
    except LooptuneError as error:
        return str(error)
    return ""


def expected(path: Path) -> str:
    found = re.match(r"/\* expect:\n(.*?)\n\*/\n", path.read_text(), re.DOTALL)
    assert found is not None, f"{path} does not open with /* expect: … */"
    return found[1]


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_refused_file_gets_the_message_it_opens_with(path: Path) -> None:
    """The message is the expected one to the letter: place, reason, line and caret."""
    assert refusal(path).replace(str(path), "FILE") == expected(path)


@pytest.mark.wide
def test_every_kind_of_refusal_has_a_file() -> None:
    """No message of the front end, the analysis, the directives or the schedule lacks a file, but those listed."""
    messages = [expected(path) for path in FILES]
    missing = [t for t in templates() if not any(t.of(m) for m in messages) and not excused(t)]
    assert not missing, "no file in tests/refused for\n" + "\n".join(map(str, missing))


def excused(template: Template) -> bool:
    return any(said in template.text for said in OTHERWISE)


def test_what_is_listed_as_without_a_file_is_in_the_sources() -> None:
    """The list of exceptions names nothing that is not there, so that it cannot outlive what it excuses."""
    assert [said for said in OTHERWISE if not any(said in t.text for t in templates())] == []


def test_the_reader_of_messages_sees_the_sources() -> None:
    """Messages are found where they are raised, returned, assigned or chosen, and a text without them matches none."""
    assert len(templates()) > 150
    files = Counter(t.file.partition("/")[0] for t in templates())
    assert {"frontend", "poly", "schedule", "lower"} <= files.keys()
    said = "f.c:1:9: fuse: loop k counts in int64, loop i in int32"
    assert [t.file for t in templates() if t.of(said)] == ["schedule/directives/fuse.py"]
    assert not any(t.of("all is well") for t in templates())


def test_there_are_refused_files() -> None:
    """The folder is found, so the tests above run on something."""
    assert len(FILES) > 150
