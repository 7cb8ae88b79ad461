"""Names are the field's terms, not participles and adverbs that only their author can read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import looptune

ROOT = Path(looptune.__file__).parent

WORDS = {
    *("abreast", "alike", "amiss", "anew", "apart", "asked", "asking", "asks", "bakes", "begun", "beside", "besides"),
    *("borrowed", "called", "dealt", "elsewhere", "evident", "given", "guest", "guests", "handed", "hastened", "held"),
    *("instead", "joined", "judged", "kept", "lasting", "lone", "misheld", "odd", "parted", "raced", "ran", "said"),
    *("says", "settled", "shown", "spared", "stands", "sure", "taken", "takes", "thrown", "together", "told", "turned"),
    *("unlike", "want", "wanted"),
}
"""Words that once named things here: ``held`` was an occupancy, ``odd`` a problem of prime sizes, ``told`` a guard."""

EXCEPTIONS = {
    "frontend.liveness.address_taken": "a variable whose address is taken is the term of compilers",
    "backends.numba_cpu.code_cache.kept": "emitted modules import it, and those that users have must go on working",
}
"""Names that have such a word, each with the reason."""


def words(name: str) -> set[str]:
    """Return the words of a name in lower case.

    >>> sorted(words("TeamReduce")), sorted(words("steps_per_launch"))
    (['reduce', 'team'], ['launch', 'per', 'steps'])
    """
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@cache
def public_names() -> tuple[tuple[str, str], ...]:
    """Return the public names of every module, each with its last part."""
    return tuple(
        found
        for path in sorted(ROOT.rglob("*.py"))
        for module in [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")]
        for found in ((module, module.rpartition(".")[2]), *_defined(module, ast.parse(path.read_text()).body))
    )


def _defined(scope: str, body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in body:
        match node:
            case ast.FunctionDef(name) if not name.startswith("_"):
                yield f"{scope}.{name}", name
            case ast.ClassDef(name) if not name.startswith("_"):
                yield f"{scope}.{name}", name
                yield from _defined(f"{scope}.{name}", node.body)
            case ast.AnnAssign(ast.Name(name)) if name.islower() and not name.startswith("_"):
                yield f"{scope}.{name}", name


def test_no_name_has_a_word_without_a_meaning_of_its_own() -> None:
    """Modules, classes, functions, methods and annotated variables."""
    names = public_names()
    assert len(names) > 3000
    assert {full for full, name in names if words(name) & WORDS} - EXCEPTIONS.keys() == set()


def test_the_exceptions_exist() -> None:
    """None has been renamed since, and each has such a word and a reason."""
    assert EXCEPTIONS.keys() <= {full for full, name in public_names() if words(name) & WORDS}
    assert all(EXCEPTIONS.values())
