"""The command line of a C compiler is read as gcc reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import UsageError
from looptune.deploy.program.command_line import is_question, parse


def test_a_usual_command() -> None:
    """Sources, libraries and objects keep their order; macros and folders are known to the preprocessor."""
    said = parse(
        [
            "app.c",
            "-O2",
            "-DN=5",
            "-D",
            "M",
            "util.o",
            "-I",
            ".",
            "-lm",
            "lib.a",
            "-o",
            "app",
            "-Wl,-s",
            "-march=native",
            "-std=c99",
            "-Wall",
            "-g",
        ]
    )
    assert said.sources == ("app.c",)
    assert said.inputs == ("app.c", "util.o", "-lm", "lib.a")
    assert said.include_dirs == (Path(),)
    assert (said.output, said.stops, said.linking) == ("app", "", ("-Wl,-s",))
    assert said.compiling == ("-O2", "-DN=5", "-DM", "-I.", "-march=native", "-std=c99", "-Wall", "-g")
    assert said.code_options == ("-O2", "-march=native", "-g")


def test_folders_of_headers(tmp_path: Path) -> None:
    """A folder may follow its option in the same word or in the next one."""
    for option in ("-I", "-isystem", "-iquote", "-idirafter"):
        for words in ([option, str(tmp_path)], [option + str(tmp_path)]):
            said = parse(["a.c", *words])
            assert said.include_dirs == (tmp_path,)
            assert said.code_options == ()


def test_options_with_values_that_look_like_inputs() -> None:
    """The value of an option is no input."""
    said = parse(["-c", "a.c", "-include", "pre.h", "-MF", "a.d", "-isystem", ".", "-x", "c", "-UN", "-DN", "-UN"])
    assert said.inputs == ("a.c",)
    assert (said.stops, said.dependencies, said.include_dirs) == ("-c", ("-MF", "a.d"), (Path(),))
    assert "pre.h" in said.compiling
    assert said.code_options == ()


@pytest.mark.parametrize("words", [["-o"], ["a.c", "-include"], ["-O2"], []])
def test_what_is_missing_is_refused(words: list[str]) -> None:
    """An option without its value, or a command without an input."""
    with pytest.raises(UsageError):
        parse(words)


def test_arguments_in_files(tmp_path: Path) -> None:
    """``@file`` stands for the arguments in the file, and -o may be written together with its value."""
    (tmp_path / "more").write_text("-DX='a b' 'my app.c'\n-o'the app' -MMD")
    said = parse(["./a.c", f"@{tmp_path}/more", "@none"])
    assert said.inputs == ("./a.c", "my app.c", "@none")
    assert said.sources == ("./a.c", "my app.c")
    assert (said.output, said.compiling, said.dependencies) == ("the app", ("-DX=a b",), ("-MMD",))


def test_commands_that_build_nothing() -> None:
    """What asks the compiler about itself, or for preprocessed text, is its own affair."""
    for words in (["--version"], ["-v"], ["-dumpmachine"], ["a.c", "-E", "-P"], ["-MM", "a.c"], ["-print-search-dirs"],
                  ["-fsyntax-only", "a.c"]):  # fmt: skip
        assert is_question(words), words
    for words in (["a.c", "-v"], ["a.c", "-Xlinker", "-E"], ["a.c", "-MMD", "-c"], []):
        assert not is_question(words), words


def test_the_language_of_inputs() -> None:
    """``-x`` is for the files behind it: C is read whatever its name, other languages stay as they are."""
    said = parse(["a.c", "-x", "c", "b.txt", "-", "-x", "c++", "d.c", "-x", "none", "e.c", "-xc", "f.txt"])
    assert said.sources == ("a.c", "b.txt", "e.c", "f.txt")
    assert said.inputs[2:10] == ("-x", "c", "-", "-x", "none", "-x", "c++", "d.c")
    assert said.compiling == ()
    assert said.arguments[1:4] == ("-x", "c", "b.txt")


def test_files_that_are_included_first(tmp_path: Path) -> None:
    """Those that a folder of the program has, and not those of the system, can be replaced by others."""
    (tmp_path / "a.h").write_text("")
    said = parse(["a.c", f"-I{tmp_path}", "-include", "a.h", "-includemath.h", "-O1", "-imacros", "m.h"])
    assert said.first_files == {"a.h": tmp_path / "a.h"}
    own = (f"-I{tmp_path}", "-include", "b.h", "-include", "math.h", "-O1", "-imacros", "m.h")
    assert said.with_first_files({"a.h": "b.h"}) == own
    assert said.with_first_files({"a.h": ""}) == (own[0], *own[3:])
