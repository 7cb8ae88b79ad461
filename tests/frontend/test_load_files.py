"""``load`` with options, encodings and headers: what they do, and which it cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError, ParseError, UsageError
from looptune.frontend import load
from looptune.ir.nodes import Const, Loop
from tests.helpers.codelets import nest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "no.c"}, "no such file: no.c"),
        ({"source": " "}, "the source is empty: give C text with a function, or the path of a C file"),
        ({"source": "."}, "a folder, not a C file: ."),
        ({"source": " \n"}, "empty file: <source>"),
        ({"source": nest(""), "defines": {"": "1"}}, "-D needs a name"),
        ({"source": nest(""), "defines": {"2N": "1"}}, "-D needs a name: '2N' is not an identifier"),
        ({"source": nest(""), "dtype": "half"}, "invalid dtype half: choose float32 or float64"),
        ({"source": nest(""), "include_dirs": ["nowhere"]}, "no such folder: nowhere"),
        ({"source": nest("")}, "no loop in <source>"),
    ],
)
def test_usage_errors(arguments: dict, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wrong file or option is a UsageError of one line."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        load(**arguments)
    assert str(error.value) == message


def test_text_of_one_line_is_no_path() -> None:
    """A string with a brace is C, with or without a newline."""
    text = "void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }"
    assert load(text).codelet == load(text + "\n").codelet


def test_encodings(tmp_path: Path) -> None:
    """UTF-8 with a mark, Latin-1 and carriage returns are read; a binary file is refused."""
    body = nest("for (int i = 0; i < n; i++) x[i] = 1; // é")
    for data in (b"\xef\xbb\xbf" + body.encode(), body.encode("latin-1"), body.replace("\n", "\r\n").encode()):
        (tmp_path / "a.c").write_bytes(data)
        assert load(tmp_path / "a.c").codelet.name == "f"
    (tmp_path / "a.c").write_bytes(b"\x7fELF\0\0\1")
    with pytest.raises(UsageError, match="not a text file"):
        load(tmp_path / "a.c")


def test_a_define_that_is_no_number_is_named_where_it_is_used() -> None:
    """The message points at the use and names the macro."""
    with pytest.raises(LooptuneError) as error:
        load(nest("for (int i = 0; i < N; i++) x[i] = 1;"), defines={"N": "abc"})
    assert error.value.message == "N is defined as abc, which is neither a number nor a variable"
    assert error.value.span.line == 2


def test_a_header_that_includes_itself_is_refused(tmp_path: Path) -> None:
    """Endless includes end in a message, not in a crash."""
    (tmp_path / "a.h").write_text('#include "a.h"\nint x;\n')
    (tmp_path / "a.c").write_text('#include "a.h"\n' + nest("for (int i = 0; i < n; i++) x[i] = 1;"))
    with pytest.raises(ParseError, match="nested more than"):
        load(tmp_path / "a.c")


def test_an_error_in_a_header_names_the_header(tmp_path: Path) -> None:
    """Spans follow the text into the file it comes from."""
    (tmp_path / "body.h").write_text("for (int i = 0; i < n; i++)\n  x[i] = missing;\n")
    (tmp_path / "a.c").write_text(nest('#include "body.h"'))
    with pytest.raises(ParseError) as error:
        load(tmp_path / "a.c")
    assert error.value.span.file.endswith("body.h")
    assert (error.value.span.line, error.value.span.col) == (2, 10)


def test_a_define_beats_the_files_own() -> None:
    """-D N changes the size of a published file that defines N unconditionally."""
    text = "#define N 512\n" + nest("for (int i = 0; i < N; i++) x[i] = N;")
    (loop,) = load(text, defines={"N": 9}).codelet.body
    assert isinstance(loop, Loop)
    assert loop.hi == Const(9)


def test_a_header_of_the_system_may_stand_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(
        '#include "math.h"\n#include "own.h"\n' + nest("for (int i = 0; i < n; i++) x[i] = 1;")
    )
    (warning,) = load(tmp_path / "f.c").warnings
    assert "own.h was not found and is skipped: add its folder with -I" in warning
