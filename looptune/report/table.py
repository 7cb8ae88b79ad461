"""A table once, written as Markdown, CSV, LaTeX and HTML: headings, rows of texts, and what each column is.

Cells are untrusted: directives, names and messages may hold anything, and each format escapes them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Literal, get_args

from looptune.runtime.timing import Verdict

_VERDICTS = get_args(Verdict)
Kind = Literal["text", "number", "code", "prose"]
"""``code`` is set in a fixed width, its lines one below the other; ``prose`` may be broken anywhere."""

_TEX: Mapping[str, str] = MappingProxyType({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"{\char34}", "'": r"{\char39}", "`": r"\textasciigrave{}", "-": "{-}",
})  # fmt: skip
_WIDTHS: Mapping[Kind, str] = MappingProxyType({"code": "0.28", "prose": "0.09"})
"""Parts of the width of a line of text."""


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` names it in CSV and JSON."""

    key: str
    heading: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` hold one text a column; ``label`` is the LaTeX label, and names the files."""

    label: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The caption and the table; lines of code are set off by ``<br>``."""
        head = "| " + " | ".join(_markdown(c.heading, "text") for c in self.columns) + " |"
        rule = "|" + "|".join("---:" if c.kind == "number" else "---" for c in self.columns) + "|"
        body = [
            "| " + " | ".join(_markdown(cell, c.kind) for cell, c in zip(row, self.columns, strict=True)) + " |"
            for row in self.rows
        ]
        return "\n".join([_markdown(self.caption, "text"), "", head, rule, *body, ""])

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([c.key for c in self.columns])
        writer.writerows(self.rows)
        return out.getvalue()

    def latex(self) -> str:
        """A ``table*`` that needs the packages array and booktabs."""
        columns = "".join(_tex_column(c.kind) for c in self.columns)
        body = [" & ".join(map(_tex_cell, row, (c.kind for c in self.columns))) + r" \\" for row in self.rows]
        return "\n".join([
            r"% \usepackage{array,booktabs}", r"\begin{table*}",
            r"\centering\scriptsize\frenchspacing\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{tex(self.caption)}}}", rf"\label{{tab:{self.label}}}",
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule", " & ".join(tex(c.heading) for c in self.columns) + r" \\", r"\midrule", *body, r"\bottomrule",
            r"\end{tabular}", r"\end{table*}", "",
        ])  # fmt: skip

    def html(self) -> str:
        """A table whose headings the page's script turns into buttons that sort."""
        head = "".join(f'<th scope="col" class="{c.kind}">{escape(c.heading)}</th>' for c in self.columns)
        rows = (
            "<tr>" + "".join(f'<td class="{c.kind}">{_html(x)}</td>' for x, c in zip(row, self.columns, strict=True))
            for row in self.rows
        )
        body = "</tr>\n".join(rows)
        return (
            f'<div class="wide" tabindex="0" role="region" aria-label="{escape(self.caption)}"><table class="sorted" '
            f'id="{escape(self.label)}"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tr></tbody></table></div>'
        )


def tex(text: str) -> str:
    """Text in LaTeX: every special character escaped, what is not ASCII replaced, line breaks as spaces.

    >>> print(tex("50% of a_b {x} -- y"))
    50\\% of a\\_b \\{x\\} {-}{-} y
    """
    plain = " ".join(text.split()).encode("ascii", "replace").decode()
    return "".join(_TEX.get(ch, ch) for ch in plain if ch.isprintable())


def _tex_column(kind: Kind) -> str:
    if kind in _WIDTHS:
        return rf">{{\raggedright\arraybackslash}}p{{{_WIDTHS[kind]}\textwidth}}"
    return "r" if kind == "number" else "l"


def _tex_cell(text: str, kind: Kind) -> str:
    if kind == "code" and text.strip():
        return r"\texttt{" + tex("; ".join(text.splitlines())) + "}"
    return tex(text)


def _markdown(text: str, kind: Kind) -> str:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if kind == "code":
        return "<br>".join(f"<code>{inert(line)}</code>" for line in lines)
    return " ".join(map(inert, lines))


def inert(text: str) -> str:
    """Neither HTML nor Markdown, and no end of a cell."""
    marks = {"|": "&#124;", "*": "&#42;", "_": "&#95;", "`": "&#96;", "[": "&#91;", "\\": "&#92;"}
    return "".join(marks.get(ch, ch) for ch in escape(text, quote=False))


def _html(text: str) -> str:
    """A verdict is marked as what it is, for the page to colour."""
    lines = "<br>".join(map(escape, text.splitlines()))
    verdict = text.rpartition(" ")[2]
    return lines.replace(verdict, f'<b class="{verdict}">{verdict}</b>') if verdict in _VERDICTS else lines
