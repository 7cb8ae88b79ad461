"""Foreign text in generated text: a database, a configuration or a name never becomes code."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptune.core import escape
from looptune.core.errors import ParseError
from looptune.deploy import c_source, python_module
from looptune.deploy.best_versions import best_versions
from looptune.deploy.runtime.lookup import Device
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime.outcome import NotBuilt, from_json, to_json
from looptune.runtime.targets import emit
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import canonical_text, parse_lines
from looptune.tune.results import studies
from looptune.tune.store.store import Store
from tests.helpers import synthetic_database
from tests.helpers.built_modules import AXPY, written
from tests.helpers.command_line import looptune

PYTHON = '# """;__import__("os").system("touch ran");"""'
C = "# */ int evil = 1; /*"
texts = st.text(st.sampled_from("\"\\\na/*\r\x00\udc80\u2028\x85{?'xuN# ")) | st.text()


@given(texts)
def test_a_docstring_or_a_literal_holds_its_text(text: str) -> None:
    """Python reads back what was put in, and nothing of it ends the string."""
    whole = f'"""Of {escape.docstring(text)}"""'
    assert [ast.literal_eval(whole), ast.literal_eval(escape.quote(text))] == [f"Of {text}", text]
    assert (whole + escape.quote(text)).encode()


@given(texts)
def test_a_comment_of_c_has_one_end(text: str) -> None:
    """It closes nowhere, and is opened nowhere again, whatever lines are joined by backslashes or trigraphs."""
    made = escape.comment(text)
    joined = re.sub(r"(\\|\?\?/)\s*\n", "", made)
    assert not any(mark in place for mark in ("*/", "/*") for place in (made, joined))
    assert made.encode().count(b"\n") == text.count("\n")


@pytest.mark.parametrize("target", ["numba-cpu", "numba-cuda", "cuda-c", "opencl"])
def test_a_note_stays_a_note(target: str, tmp_path: Path) -> None:
    """What a plan is said to be made of adds nothing to the kernels, on any target."""
    unit = load(AXPY)
    done = schedule(Analysis(unit.codelet))
    named = [emit(target, lower(done.codelet, note, blocks=True), tmp_path) for note in ("loop i: x", PYTHON + C)]
    if target.startswith("numba"):
        plain, other = (ast.dump(ast.Module(ast.parse(text).body[1:], [])) for text in named)
    else:
        plain, other = (text[text.index("*/") :] for text in named)
    assert plain == other


def test_a_tuned_module_is_data(tmp_path: Path) -> None:
    """Names, commands and directives of a database that hold quotes and code stand in it as they are."""
    unit = load(AXPY)
    device = f'A """ B\\ {PYTHON}'
    where = replace(synthetic_database.context(unit, {"n": 8}), device=device, target="numba-cpu", capability='"""')
    db = synthetic_database.keep(tmp_path / "db", where, {f"loop i: parallel {PYTHON}": 3.0, "": 5.0}, sweep='s"""')
    with Store.open(db) as store:
        store.connection.execute("UPDATE sweeps SET command = ?", (f"looptune '{PYTHON}'",))
        rows = best_versions(store, unit, "numba-cpu")
    text = python_module.text(python_module.ModuleRequest(replace(unit, path=f"{PYTHON}.c"), "numba-cpu", rows, PYTHON))
    tree = ast.parse(text)
    said = ast.get_docstring(tree, clean=False)
    assert said is not None
    assert f"\nMade by: {PYTHON}" in said
    assigned = {ast.unparse(n.targets[0]): n.value for n in tree.body if isinstance(n, ast.Assign)}
    [row] = ast.literal_eval(assigned["CONFIGURATIONS"])
    assert (row["device"], row["directives"]) == (device, "loop i: parallel")
    comment = c_source.text(python_module.ModuleRequest(unit, "numba-cpu", rows, C), Device(device, 1, "x86"), {"n": 8})
    assert "evil" not in comment.partition("*/")[2]


def test_a_configuration_file_brings_directives_only(tmp_path: Path) -> None:
    """What closes the header's comment is spelt apart, from a file and from the command line."""
    (tmp_path / "f.c").write_text(AXPY)
    (tmp_path / "best.json").write_text(json.dumps({"directives": f"loop i: unroll 2 {C}"}))
    for option in (("--config", "best.json"), ("--directive", f"loop i: unroll 2 {C}")):
        assert looptune("transform", "f.c", *option, "-o", "o.c", cwd=tmp_path).code == 0
        subprocess.run(["gcc", "-c", "o.c"], cwd=tmp_path, check=True)
        assert "evil" not in subprocess.run(["nm", "o.o"], cwd=tmp_path, capture_output=True, text=True).stdout


def test_directives_of_another_database_are_read_before_they_are_used(tmp_path: Path) -> None:
    """Guests of a sweep have no comments; what is no directive is an error of the user's."""
    unit = load(AXPY)
    where = synthetic_database.context(unit, {"n": 8})
    good = synthetic_database.keep(tmp_path / "good", where, {f"loop i: parallel {PYTHON}": 2.0}, "version")
    assert [s.result.directives for s in studies.best_of_databases((good,))] == ["loop i: parallel"]
    bad = synthetic_database.keep(tmp_path / "bad", where, {"import os": 2.0}, "version")
    with pytest.raises(ParseError, match="expected `loop NAME"):
        studies.best_of_databases((bad,))


def test_canonical_directives_mean_the_same() -> None:
    """Comments and space are all that is left out."""
    text = '  loop  i :  unroll   4,  split # a\n\n# b\ncodelet: gridify(i,j), blocksize "32 x 4"\n'
    made = canonical_text(text, "x")
    assert made == 'loop i: unroll 4, split\ncodelet: gridify(i,j), blocksize "32 x 4"'
    assert parse_lines(made.splitlines()) == parse_lines(text.splitlines())


def test_what_is_built_for_anyone_is_ascii_clean_source(tmp_path: Path) -> None:
    """A module of a file whose name is no UTF-8 is Python all the same."""
    path = written(tmp_path, AXPY, None, "numba-cpu", default=True)
    unit = load(tmp_path / "source.c")
    text = python_module.text(
        python_module.ModuleRequest(replace(unit, path=os.fsdecode(b"a\xff.c")), "numba-cpu", (), "looptune")
    )
    assert path.exists()
    assert ast.parse(text.encode())


def test_names_that_are_no_utf8_are_spelt_out() -> None:
    """What is stored of them is text, and reads back as that."""
    name = os.fsdecode(b"ok\xff.c")
    assert escape.utf8(name) == "ok\\xff.c"
    assert from_json(to_json(NotBuilt(name))) == NotBuilt("ok\\udcff.c")
    assert from_json(to_json(NotBuilt("\u201cplain\u201d \U0001f600"))) == NotBuilt("\u201cplain\u201d \U0001f600")
