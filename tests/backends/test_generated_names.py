"""Names that looptune makes in kernels are never those of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from looptune.backends.codegen import python
from looptune.core.errors import UnsupportedError
from looptune.frontend import load
from looptune.lower import mapping
from looptune.lower.pipeline import lower

ROOT = Path(python.__file__).parents[2]
FILES = [p for folder in ("backends", "lower") for p in (ROOT / folder).rglob("*.py")]
FRESH = ("__at", "__once")
"""Endings of names that are made as none that is taken."""
OF_C = ("__blocks", "__bytes", "any__flag")
"""What ``backends.codegen.identifiers`` tells from the program's own: the host's in C, and OpenCL's."""


def endings() -> Iterator[str]:
    """The texts in the sources that names with two underscores are made of."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Constant(str(word)) if re.fullmatch(r"[a-z]*__[a-z]*", word) and not re.match("__.*__", word):
                    yield word


def test_every_ending_is_told_from_the_programs_own() -> None:
    """What names are made with is among what is escaped or refused."""
    known = (*mapping.MADE, *python.MADE, *FRESH, *OF_C)
    assert [e for e in dict.fromkeys(endings()) if e != "__" and not e.endswith(known)] == []


@pytest.mark.parametrize("ending", [e if e.startswith("__") else f"__{e}" for e in mapping.MADE])
def test_a_variable_that_ends_so_is_refused(ending: str) -> None:
    """A parameter, a local or a loop's variable would be taken for one of a kernel."""
    name = f"x{ending}"
    for own in (f"int {name}, double a[n]) {{ for (int i = 0; i < n; i++) a[i] = {name};",
                f"double a[n]) {{ for (int {name} = 0; {name} < n; {name}++) a[{name}] = 1;",
                f"double {name}0[n]) {{ for (int i = 0; i < n; i++) {name}0[i] = 1;"):  # fmt: skip
        with pytest.raises(UnsupportedError, match=f"names that end in {ending.lstrip('_')}|in {ending}"):
            lower(load(f"void f(int n, {own} }}\n").codelet)
