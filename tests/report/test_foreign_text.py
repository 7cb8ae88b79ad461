"""Texts of a database that somebody else made are shown as texts: in a terminal and in Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from looptune.core.errors import StoreError
from looptune.report import failure_table, search_table
from looptune.runtime.outcome import NotBuilt
from looptune.tune.replay import simulate
from looptune.tune.store.store import Store
from looptune.tune.strategies.random import Random
from tests.helpers.row_factory import CONTEXT, row, search

TITLE = "\x1b]0;title\x07"
TAG = "<script>alert(1)</script>"


def test_evidence_moves_no_cursor() -> None:
    """A message with a terminal's escape sequences is listed with them spelt out, line by line."""
    found = failure_table.collect([row("loop k: unroll 5", NotBuilt(f"{TITLE}no\n{TITLE}line"))], {})
    shown = failure_table.text(found)
    assert "\x1b" not in shown
    assert shown.count(r"\x1b]0;title\x07") == 2


@pytest.mark.parametrize("column", ["sizes", "options"])
def test_names_of_sizes_are_plain(column: str, tmp_path: Path) -> None:
    """A database whose sizes or options have names that colour what follows counts as damaged."""
    path = tmp_path / "d.sqlite"
    context = replace(CONTEXT, **{column: '{"n\\u001b[31m": 1}'})
    with Store.open(path) as store:
        store.begin(row("loop k: unroll 5", None, context, status="running"))
    with Store.read(path) as store, pytest.raises(StoreError, match="is not as looptune writes it"):
        list(store.rows())


def test_a_device_is_no_markup() -> None:
    """The page of strategies has the name of a device that is HTML as text."""
    compared = simulate.compare(search().recording, [Random], 2, 0, None)
    page = search_table.markdown([replace(compared, recording=replace(compared.recording, device=TAG))])
    assert any(line.startswith("## ") and "&lt;script>" in line.replace("&gt;", ">") for line in page.splitlines())
    assert not any(TAG in line for line in page.partition("## ")[2].splitlines())
