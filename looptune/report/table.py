"""A table, written as text, Markdown, CSV, LaTeX and HTML: headings, rows of texts, and the kind of each column.

Cells are untrusted: directives, names and messages may contain any characters, and each format escapes them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
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
_ENDS = re.compile(r"[|`\\]")
"""What may not stand between backquotes in a table."""
_MARKS = re.compile(r"[|*`\[\\]|(?<![^\W_])_|_(?![^\W_])")


@dataclass(frozen=True, slots=True)
class Column:
    """A column; ``key`` is its name in CSV and JSON, ``links`` are the pages to which its cells link in Markdown."""

    key: str
    heading: str
    kind: Kind = "text"
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table; ``rows`` hold one text for each column; ``label`` is the LaTeX label and the name of the files.

    With ``total`` the last row sums up the others: it follows a rule in text, and is bold in Markdown.
    """

    label: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    total: bool = False

    def text(self) -> str:
        """Return the table alone, columns two spaces apart, with a rule below the headings."""
        rows = [tuple(c.heading for c in self.columns)]
        rows += [tuple("; ".join(cell.splitlines()) for cell in row) for row in self.rows]
        rule = tuple("-" * max(map(len, cells)) for cells in zip(*rows, strict=True))
        end = len(rows) - self.total
        return "\n".join(aligned([rows[0], rule, *rows[1:end], *([rule] if self.total else []), *rows[end:]]))

    def markdown(self) -> str:
        """Return the caption, if there is one, and the table; lines of code are separated by ``<br>``."""
        rows = [[_markdown(cell, c.kind) for cell, c in zip(row, self.columns, strict=True)] for row in self.rows]
        for k, column in enumerate(self.columns):
            for row, page in zip(rows, column.links, strict=False):
                row[k] = f"[{row[k]}]({page})"
        if self.total:
            rows[-1] = [f"**{cell}**" if cell else "" for cell in rows[-1]]
        rule = "|" + "|".join("---:" if c.kind == "number" else "---" for c in self.columns) + "|"
        head, *body = (f"| {' | '.join(cells)} |" for cells in ([_markdown(c.heading) for c in self.columns], *rows))
        caption = [_markdown(self.caption), ""] if self.caption else []
        return "\n".join([*caption, head, rule, *body, ""])

    def csv(self) -> str:
        return csv_text([c.key for c in self.columns], self.rows)

    def latex(self) -> str:
        """Return a ``table*`` that needs the packages array and booktabs."""
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
        """Return a table whose headings the page's script turns into buttons that sort."""
        head = "".join(
            f'<th scope="col" class="{c.kind}"{" data-first" if c.key in _FIRST else ""}>{escape(c.heading)}</th>'
            for c in self.columns
        )
        rows = (
            "<tr>" + "".join(f'<td class="{c.kind}">{_html(x)}</td>' for x, c in zip(row, self.columns, strict=True))
            for row in self.rows
        )
        body = "</tr>\n".join(rows)
        return (
            f'<div class="wide" tabindex="0" role="region" aria-label="{escape(self.caption)}"><table class="sorted" '
            f'id="{escape(self.label)}"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tr></tbody></table></div>'
        )


_FIRST = ("time", "best")
"""Keys of the columns that stand first on a phone, where only two or three columns are seen."""


def plain_columns(headings: Iterable[str], numbers: Iterable[str] = ()) -> tuple[Column, ...]:
    """Return texts in aligned columns; those of ``numbers`` are aligned right."""
    right = set(numbers)
    return tuple(Column(heading, heading, "number" if heading in right else "text") for heading in headings)


def aligned(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Return a line of text for each row, its cells two spaces apart and below each other.

    >>> aligned([("loop", "line"), ("i", "12")])
    ['loop  line', 'i     12']
    """
    held = list(rows)
    widths = [max(map(len, cells)) for cells in zip(*held, strict=True)]
    return [(indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))).rstrip() for row in held]


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object] | Mapping[str, object]]) -> str:
    """Return a line for the columns and one for each row.

    For a mapping, the values of ``columns``, empty if missing.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(c, "") for c in columns] if isinstance(row, Mapping) else row for row in rows)
    return out.getvalue()


def tex(text: str) -> str:
    """Return the text for LaTeX: special characters escaped, other than ASCII replaced, line breaks as spaces.

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


def _markdown(text: str, kind: Kind = "text") -> str:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if kind == "code":
        return "<br>".join(f"<code>{escape_markup(x)}</code>" if not x or _ENDS.search(x) else f"`{x}`" for x in lines)
    return " ".join(map(escape_markup, lines))


def escape_markup(text: str) -> str:
    """Return the text with HTML and Markdown escaped, and without characters that end a table cell.

    >>> escape_markup("gemm_0 <b> *x*")
    'gemm_0 &lt;b&gt; &#42;x&#42;'
    """
    return _MARKS.sub(lambda match: f"&#{ord(match[0])};", escape(text, quote=False))


def _html(text: str) -> str:
    """Return the text as HTML; a verdict at its end has a class, by which the page colours it."""
    lines = "<br>".join(map(escape, text.splitlines()))
    verdict = text.rpartition(" ")[2]
    return lines.replace(verdict, f'<b class="{verdict}">{verdict}</b>') if verdict in _VERDICTS else lines
