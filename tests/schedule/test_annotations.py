"""What directives say of loops: kept by rewriting, compared or not, and known to few files."""

from __future__ import annotations

import ast
import pickle
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest

import looptune
from looptune.ir.nodes import Annotation, Annotations, Const, Directive, Loop, Node, Var
from looptune.ir.rewrite import substitute
from looptune.schedule import directives
from looptune.schedule.directives import base
from looptune.schedule.directives.maxregs import MaxRegisters
from looptune.schedule.directives.overlap import TimeTile
from looptune.schedule.directives.rfactor import ReductionParts
from looptune.schedule.directives.stage import StagedTiles
from looptune.schedule.directives.swizzle import BlockSwizzle

LOOPTUNE = Path(looptune.__file__).parent
LOOP = Loop("i", Const(0), Var("n"), ())
INCLUDES = {"grid": {"schedule/directives/gridify.py"}, "factor": {"schedule/directives/fold.py"}}
"""Directives that say what another one says among other things: gridify a block size, fold that sums are regrouped."""
AMBIGUOUS = {"grid", "pack", "resident", "stage"}
"""Words that mean something else too: the grid of a kernel, pragmas of gcc and HMPP, and the stage of a directive."""


def classes() -> dict[str, type[Annotation]]:
    """The annotation of each directive that has one, by the directive's name."""
    return {cls.word: cls for cls in Annotation.__subclasses__() if cls.__module__.startswith("looptune.schedule.")}


def named(path: Path) -> set[str]:
    """The identifiers of a file, the modules that it imports from, and its texts, each in quotes."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    pieces = {id(part) for n in nodes if isinstance(n, ast.JoinedStr) for part in n.values}
    found: set[str] = set()
    for n in nodes:
        match n:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ImportFrom(module=str(module)):
                found.add(module)
            case ast.Constant(value=str(text)) if id(n) not in pieces:
                found.add(f"'{text}'")
    return found


@cache
def names_by_file() -> dict[str, set[str]]:
    return {str(path.relative_to(LOOPTUNE)): named(path) for path in LOOPTUNE.rglob("*.py")}


@pytest.mark.wide
@pytest.mark.parametrize("word", sorted(classes().keys() - {"distribute"}))
def test_at_most_three_files_name_a_directive(word: str) -> None:
    """Its own, the pass or code generator that acts on it, and the list of all.

    A file names a directive where it has the class of its annotation as an identifier, imports from its file, or has
    its word as a text of its own. Prose does not count, nor do whole lines of directives, which are what users write:
    spaces are made of these. An identifier that is the word means something else. ``distribute`` acts on no kernel: its
    annotation tells loops apart while directives are applied.
    """
    own = next(t for t in directives.ALL if t.name == word).__module__
    names = {classes()[word].__name__, own} | ({f"'{word}'"} if word not in AMBIGUOUS else set())
    files = {
        path for path, found in names_by_file().items() if names & found or path == f"{own.replace('.', '/')[9:]}.py"
    }
    files -= INCLUDES.get(word, set())
    assert 2 <= len(files) <= 3, sorted(files)


@pytest.mark.parametrize("word", ["gridify", "permute", "reverse", "shift", "splitat", "wavefront"])
def test_two_files_name_a_directive_without_annotation(word: str) -> None:
    """Its own and the list of all: what is offered in place of a refused one, too, is in its own file."""
    own = next(t for t in directives.ALL if t.name == word)
    names = {own.__module__, own.__name__, f"'{word}'"}
    files = {path for path, found in names_by_file().items() if names & found}
    assert files <= {f"schedule/directives/{word}.py", "schedule/directives/__init__.py"}


def test_binding_names_no_directive() -> None:
    """A class says which directives exclude each other, and which are for while loops."""
    assert not names_by_file()["schedule/binding.py"] & {f"'{t.name}'" for t in directives.ALL}
    assert directives.replaced_names(Directive("Tile", ())) == {"fullunroll", "tile", "unroll"}
    assert directives.replaced_names(Directive("permute", ())) == {"permute"}


def test_a_loop_has_few_fields() -> None:
    """Those of what all loops have: what belongs to one directive is an annotation."""
    assert len(fields(Loop)) - len(fields(Node)) <= 14


def test_annotations_are_frozen_and_found_by_their_class() -> None:
    loop = LOOP.annotated(MaxRegisters(64), BlockSwizzle(4)).annotated(MaxRegisters(32))
    assert loop.annotation(MaxRegisters) == MaxRegisters(32)
    assert loop.annotation(TimeTile) is None
    assert loop.without(MaxRegisters).annotations == Annotations((BlockSwizzle(4),))
    assert LOOP.without(MaxRegisters) is LOOP
    with pytest.raises(AttributeError):
        loop.annotations[0].max_registers = 1  # type: ignore[attr-defined]


def test_the_order_of_directives_is_none_of_annotations() -> None:
    """Those for the loop alone come first, then those that nested loops inherit, each by its word."""
    both = [MaxRegisters(64), TimeTile(4, 1), BlockSwizzle(4), StagedTiles(("A",))]
    assert LOOP.annotated(*both).annotations == LOOP.annotated(*reversed(both)).annotations
    assert [a.word for a in LOOP.annotated(*both).annotations] == ["overlap", "stage", "maxregs", "swizzle"]


def test_only_what_changes_the_order_of_things_is_compared() -> None:
    """Loops that differ in a hint to a compiler are equal and hash alike; tuples of annotations differ."""
    hinted, tiled = LOOP.annotated(MaxRegisters(64)), LOOP.annotated(TimeTile(4, 1))
    assert (hinted == LOOP, hash(hinted) == hash(LOOP), tuple(hinted.annotations) == ()) == (True, True, False)
    assert tiled != LOOP


def test_rewriting_keeps_them() -> None:
    loop = LOOP.annotated(StagedTiles(("A",), 2), ReductionParts(4))
    made: Loop = substitute(loop, {"n": Const(8)})
    assert (made.hi, tuple(made.annotations)) == (Const(8), tuple(loop.annotations))
    assert pickle.loads(pickle.dumps(loop)) == loop
    assert tuple(replace(loop, mode="sequential").annotations) == tuple(loop.annotations)


def test_every_annotation_belongs_to_a_directive() -> None:
    """Its word is a directive's name, it has one class, and its class is in a file of directives. A pass of lowering
    may leave one for the writers of text: directives are applied by then."""
    ours = [cls for cls in Annotation.__subclasses__() if cls.__module__.startswith("looptune.")]
    found = {(cls.word, cls.__qualname__) for cls in ours if not cls.__module__.startswith("looptune.lower.")}
    assert len(found) == len(classes())
    assert classes().keys() <= {t.name for t in directives.ALL}
    assert {cls.__module__.rpartition(".")[0] for cls in classes().values()} == {base.__name__.rpartition(".")[0]}
