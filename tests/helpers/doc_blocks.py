"""What README.md, CONTRIBUTING.md and docs/*.md hold: code, commands with the output shown, commands in the text.

A block ``sh`` is commands, one a line, each with a comment maybe; a block ``console`` has them after ``$``, and below
each what it prints. A block whose lead-in ends in a name and a colon (``blur.c``:) is that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.helpers.paths import ROOT

ALL = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

_LEAD_IN = re.compile(r"`([\w./-]+\.\w+)`:\s*$")
_INLINE = re.compile(r"`((?:looptune |db (?=[a-z])|export (?=--))[^`]+)`")
_OPTION = re.compile(r"`(--[a-z][\w-]*)")


@dataclass(frozen=True)
class Block:
    """``file``: the file it is, "" for none. ``language`` is "" of an indented one. ``line`` is that of its text."""

    language: str
    text: str
    line: int
    file: str = ""


@dataclass(frozen=True)
class Command:
    """``shown`` is the output below it, None where the document shows none."""

    text: str
    line: int
    shown: str | None = None


def blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = re.match(r"(```+)(.*)$", lines[at])
        if fence is not None:
            end = next(k for k in range(at + 1, len(lines)) if lines[k].strip() == fence[1])
            before = next((line for line in reversed(lines[:at]) if line.strip()), "")
            named = _LEAD_IN.search(before)
            yield Block(fence[2], "\n".join(lines[at + 1 : end]) + "\n", at + 2, named[1] if named else "")
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = next((k for k in range(at, len(lines)) if lines[k].strip() and lines[k][:4] != "    "), len(lines))
            yield Block("", "\n".join(line[4:] for line in lines[at:end]) + "\n", at + 1)
            at = end
        else:
            at += 1


def commands(block: Block) -> Iterator[Command]:
    """A line that ends in a backslash goes on in the next."""
    found: list[tuple[str, int, list[str]]] = []
    for number, text in enumerate(block.text.splitlines(), block.line):
        goes_on = bool(found) and found[-1][0].endswith("\\")
        if goes_on:
            found[-1] = (found[-1][0][:-1] + text.strip(), *found[-1][1:])
        elif block.language == "sh" and text.strip() and not text.startswith("#"):
            found.append((text, number, []))
        elif block.language == "console" and text.startswith("$ "):
            found.append((text[2:], number, []))
        elif block.language == "console":
            assert found, f"line {number}: output before the first command"
            found[-1][2].append(text)
    for text, number, shown in found:
        yield Command(text, number, "\n".join(shown) if shown else None)


def mentions(text: str) -> Iterator[str]:
    """The commands of looptune that are named in the text, and the synopses: not run, but there have to be such."""
    yield from (f"looptune {named.removeprefix('looptune ')}" for named in _INLINE.findall(text))
    for block in blocks(text):
        if not block.language:
            yield from (line.strip() for line in block.text.splitlines() if re.match(r"\s*looptune [a-z]", line))


def options(text: str) -> Iterator[str]:
    """The options that are named in the text without a command."""
    yield from _OPTION.findall(text)
