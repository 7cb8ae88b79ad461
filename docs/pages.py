"""A page for each directive, made of its file: docstring, syntax and examples, which looptune runs.

    looptune/schedule/directives/unroll.py  ─▶  docs/directives/unroll.md

The pages are made when the site is built and are not kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from looptune.core.errors import LooptuneError
from looptune.core.source import with_severity
from looptune.deploy import source_to_source
from looptune.frontend import load
from looptune.report.check.explanation import explain
from looptune.schedule import directives
from looptune.schedule.directives.base import Example, Transform

LANGUAGE = Path(__file__).parent / "directives.md"
STAGES = {
    "division": "first: it makes other statements, and all other directives apply to the loops that result",
    "storage": "after `prefix`: the dependences are found anew after it, and all other directives are judged by them",
    "split": "after `expand`: it splits loops, and the directives for a loop apply to every piece",
    "nest": "after `distribute`: it orders the loops of a nest",
    "join": "after `permute`: it merges several loops into one",
    "mode": "after the directives that reorder loops and before those that tile them: it determines how loops run",
    "loop": "last, innermost loop first",
}
_TOPICS = re.compile(r"\b(Legal when|Gain|Cost|Source):\s")


@dataclass(frozen=True, slots=True)
class Said:
    """What a transform's file says: in one sentence, the text below it, and what is legal, gained and paid."""

    summary: str
    text: str
    topics: dict[str, str]


def word(cls: type[Transform]) -> str:
    """The directive's name as people write it: noParallel."""
    return cls.syntax[: len(cls.name)]


def said(cls: type[Transform]) -> Said:
    docstring = sys.modules[cls.__module__].__doc__
    assert docstring, f"{cls.__module__} has a docstring"
    first, _, rest = docstring.partition("\n\n")
    text, *parts = _TOPICS.split(rest)
    topics = {t: " ".join(words.split()) for t, words in zip(parts[::2], parts[1::2], strict=True)}
    # A dataclass without a docstring of its own has its signature for one.
    own = cls.__doc__ if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}(") else ""
    summary = " ".join((own if own else first.partition(": ")[2]).split())
    return Said(summary[0].upper() + summary[1:], text.rstrip(), topics)


def section(cls: type[Transform]) -> str:
    """The anchor of the directive's section in the description of the language."""
    headings = re.findall(r"^## (.*)$", LANGUAGE.read_text(), re.MULTILINE)
    heading = next(h for h in headings if cls.name in h.lower().split())
    return heading.lower().replace(" ", "-")


def page(cls: type[Transform]) -> str:
    """The whole page, as Markdown."""
    told = said(cls)
    beside = [t for t in directives.ALL if t.__module__ == cls.__module__ and t is not cls]
    lines = [f"# {word(cls)}", "", told.summary, "", "```", cls.syntax, "```", ""]
    lines += [f"[{word(t)}]({t.name}.md) belongs to it, and is described here too.\n" for t in beside]
    lines += [markdown(told.text), ""]
    lines += [f"- **{topic}:** {markdown(words)}" for topic, words in told.topics.items()]
    lines += [f"- **Takes effect:** {STAGES[cls.stage]}.", ""]
    lines += [f"[The language](../directives.md#{section(cls)}) has every rule and more examples.", ""]
    lines += ["## Examples", ""]
    shown = [part for directive, example in cls.examples.items() for part in example_text(cls, directive, example)]
    return "\n".join([*lines, *shown])


def example_text(cls: type[Transform], directive: str, example: Example) -> Iterator[str]:
    """One example: the C, and the C that it becomes or the message that refuses it, as ``looptune transform`` says."""
    spelt = word(cls) + directive[len(cls.name) :]
    yield f"### `{spelt}`{', refused' if example.refused else ''}\n"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "example.c"
        file.write_text(example.program(directive).replace(f"hmppcg {directive}\n", f"hmppcg {spelt}\n"))
        yield f"```c\n{file.read_text()}```\n"
        became, message = transformed(file)
        assert bool(message) == bool(example.refused), f"{spelt}: {message}"
        if message:
            yield f"`looptune transform example.c` prints\n\n```\n{message}\n```\n"
            return
        yield f"`looptune transform example.c` prints\n\n```c\n{became}```\n"
        if cls.stage == "mode":
            *picture, kernels = explain(load(file)).runs.outline
            runs = "\n".join(picture)
            yield f"On a GPU it runs as {kernels}:\n\n```\n{runs}\n```\n"


def transformed(file: Path) -> tuple[str, str]:
    """What ``looptune transform`` prints of the file, and of its refusal; one of them is empty."""
    try:
        return source_to_source.transform(file), ""
    except LooptuneError as error:
        return "", with_severity("error", str(error)).replace(f"{file.parent}/", "")


def markdown(text: str) -> str:
    """A docstring's text: what would be markup outside of code stands for itself."""
    parts = re.split(r"(``[^`]*``|^    [^\n]*$)", text, flags=re.MULTILINE)
    return "".join(p if k % 2 else re.sub(r"([*_<\[|])", r"\\\1", p) for k, p in enumerate(parts))


def contents() -> str:
    """The page that lists the directives."""
    rows = [f"| [{word(t)}]({t.name}.md) | {markdown(said(t).summary)} |" for t in directives.ALL]
    return "\n".join([
        "# One page for each directive", "",
        "Each page is made from the file that implements the directive, in `looptune/schedule/directives/`: from its",
        "documentation and its examples, which were run when this site was built. [The language](../directives.md)",
        "describes all directives on one page.", "",
        "| directive | what it does |", "|---|---|", *rows, "",
        "```{toctree}", ":hidden:", "", *[t.name for t in directives.ALL], "```", "",
    ])  # fmt: skip


def write(folder: Path) -> None:
    """All pages, and nothing else. A page that is as it was is not touched, so that Sphinx passes over it."""
    made = {"index.md": contents()} | {f"{t.name}.md": page(t) for t in directives.ALL}
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)
