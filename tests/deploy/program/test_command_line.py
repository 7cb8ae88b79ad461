"""The command line of a C compiler is read as gcc reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import UsageError
from looptune.deploy.program.command_line import parse


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
    assert said.sources == (Path("app.c"),)
    assert said.inputs == ("app.c", "util.o", "-lm", "lib.a")
    assert said.defines == {"N": "5", "M": None}
    assert said.include_dirs == (Path(),)
    assert (said.output, said.stops, said.linking) == ("app", "", ("-Wl,-s",))
    assert said.compiling == ("-O2", "-DN=5", "-DM", "-I.", "-march=native", "-std=c99", "-Wall", "-g")
    assert said.code_options == ("-O2", "-march=native", "-g")


def test_options_with_values_that_look_like_inputs() -> None:
    """The value of an option is no input."""
    said = parse(["-c", "a.c", "-include", "pre.h", "-MF", "a.d", "-isystem", ".", "-x", "c", "-UN", "-DN", "-UN"])
    assert said.inputs == ("a.c",)
    assert (said.stops, said.defines, said.include_dirs) == ("-c", {}, (Path(),))
    assert "pre.h" in said.compiling
    assert said.code_options == ()


@pytest.mark.parametrize("words", [["-o"], ["a.c", "-include"], ["-O2"], []])
def test_what_is_missing_is_refused(words: list[str]) -> None:
    """An option without its value, or a command without an input."""
    with pytest.raises(UsageError):
        parse(words)
