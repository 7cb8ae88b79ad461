"""The report as one HTML page.

    head with counts and means · best configurations · times · figures · every version · sources of the winners

Text from files and directives is untrusted: it is escaped here, and the script sets it as text. The page's content
security policy permits no script but the one in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import inf
from typing import TYPE_CHECKING, Any

from looptune.core.si_units import time_text
from looptune.report import best_table, compiler_table, suite_table, transfer_table
from looptune.report.result_table import counts, directive_gain_lines, kernel_table, peak_texts
from looptune.report.site.document import document
from looptune.report.transfer_table import transfers
from looptune.runtime.outcome import Timed
from looptune.runtime.timing import ratio_text
from looptune.tune.results.studies import KernelStudy, comparable_groups, names_of
from looptune.tune.store.searches import Entry, entries

if TYPE_CHECKING:
    from looptune.tune.results.result import Result

_VERSIONS = (
    ("name", "kernel", ""), ("directives", "directives", "code"), ("outcome", "outcome", ""), ("us", "time", "number"),
    ("ratio", "over default", "number"), ("role", "role", "less"),
)  # fmt: skip
"""Fields of a version, their headings and the classes of their cells."""

_LINKS = (("best", "Best"), ("times", "Times"), ("figures", "Figures"), ("every", "Versions"), ("winners", "Sources"))

_INK = re.compile(r"#222222|#000000|\bblack\b")
_GONE = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<script.*?</script>|<title>.*?</title>", re.DOTALL
)
_ID = re.compile(r'\bid="([^"]*)"')
_REFERENCE = re.compile(r'(href="|url\()#')
_SIZE = re.compile(r'(<svg\b[^>]*?)\s+width="([\d.]+)pt"\s+height="[\d.]+pt"|(<svg\b[^>]*?)\s+height="[\d.]+pt"([^>]*?)'
                   r'\s+width="([\d.]+)pt"')  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with its SVG's text."""

    name: str
    title: str
    caption: str
    svg: str


def page(studies: Sequence[KernelStudy], pictures: Sequence[Picture], notes: Sequence[str]) -> str:
    """Return the page; ``notes`` say what is not on it, and why."""
    title = f"looptune on {best_table.devices(studies)}"
    body = [
        *_head(studies, title),
        "<main>", *_tables(studies), *_figures(pictures, notes), *_versions(studies), *_winners(studies), "</main>",
        "<footer><p>Times are medians; transfers are not included. Best configurations, speed-ups and verdicts are "
        "from the finals, figures of versions from the screening.</p></footer>",
        '<aside id="detail" role="tooltip" hidden></aside>',
        f'<script type="application/json" id="data">{_embedded({"versions": versions(studies)})}</script>',
    ]  # fmt: skip
    return document(title, body, ("tables.js", "page.js"))


def _embedded(value: Any) -> str:
    """Return JSON that cannot end the HTML element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _head(studies: Sequence[KernelStudy], title: str) -> list[str]:
    tried = sum(s.result.tried for s in studies)
    timed = sum(s.result.versions.get("timed", 0) for s in studies)
    kernels = len({s.kernel for s in studies})
    tiles = [(str(kernels), "kernel" if kernels == 1 else "kernels")]
    tiles += [(f"{tried:,}", "version" if tried == 1 else "versions"), (f"{timed:,}", "timed")]
    for what, same in comparable_groups(studies).items():
        tiles += _means([s.result for s in same], what)
    items = "".join(f"<li><strong>{escape(value)}</strong> {escape(what)}</li>" for value, what in tiles)
    links = "".join(f'<a href="#{anchor}">{name}</a>' for anchor, name in _LINKS)
    return [
        "<header>", f"<h1>{escape(title)}</h1>",
        *(f'<p class="faint">{escape(line)}</p>' for line in _facts(studies)), f'<ul class="tiles">{items}</ul>',
        f"<nav>{links}</nav>", "</header>",
    ]  # fmt: skip


def _means(results: Sequence[Result], what: str) -> list[tuple[str, str]]:
    found = ((name, suite_table.mean(results, "default", name)) for name in ("tuned", "hand-written"))
    return [
        (ratio_text(mean), f"{name} over default, {what}, geometric mean of "
                           f"{sum(suite_table.ratio(r, 'default', name) is not None for r in results)}")
        for name, mean in found if mean is not None
    ]  # fmt: skip


def _facts(studies: Sequence[KernelStudy]) -> list[str]:
    """Return a line for each device: what it is, and what it was measured to do."""
    lines = {}
    for s in studies:
        f = s.result.facts
        driver = f", driver {f.driver_name}" if f.driver else ""
        peaks = s.result.ceiling.peaks if s.result.ceiling is not None else None
        able = "; ".join(f"{name} {rate}" for name, rate in peak_texts(peaks).items()) if peaks is not None else ""
        lines[s.device] = f"{f.name}, {f.arch}, {f.cores} cores{driver}" + (f"; {able}" if able else "")
    return list(lines.values())


def _tables(studies: Sequence[KernelStudy]) -> list[str]:
    grids = [("Best configurations", best_table.best(studies)), ("Times", best_table.times(studies))]
    pairs = compiler_table.compare_compilers(studies)
    grids += [("Compilers", compiler_table.grid(pairs))] if pairs else []
    taken = transfers(studies)
    if taken:
        grids += [("The best elsewhere", transfer_table.means(taken)), ("Each elsewhere", transfer_table.grid(taken))]
    return [part for heading, grid in grids for part in (f"<h2>{heading}</h2>", grid.html())]


def _figures(pictures: Sequence[Picture], notes: Sequence[str]) -> list[str]:
    made = [
        f'<figure id="figure-{escape(p.name)}"{_width_class(p)}><h3>{escape(p.title)}</h3>'
        f'<div class="drawn">{inline_svg(p)}</div><figcaption>{escape(p.caption)}</figcaption></figure>'
        for p in pictures
    ]
    said = [f'<p class="faint">{escape(note)}</p>' for note in notes]
    return ['<h2 id="figures">Figures</h2>', '<div class="figures">', *made, "</div>", *said]


SMALL_POINTS = 460.0
"""A picture that was drawn no wider than this stands beside others."""


def _width_class(picture: Picture) -> str:
    size = _SIZE.search(picture.svg)
    points = inf if size is None else float(size[2] if size[2] is not None else size[5])
    return "" if points <= SMALL_POINTS else ' class="whole"'


def inline_svg(picture: Picture) -> str:
    """Return the ``<svg>`` element, at most as wide as it was drawn."""
    own = f"{re.sub('[^a-z0-9]', '', picture.name.lower())}-"
    text = _GONE.sub("", picture.svg).strip()
    text = _ID.sub(lambda m: f'id="{own}{m[1]}"', text)
    text = _REFERENCE.sub(lambda m: f"{m[1]}#{own}", text)
    text = _INK.sub("currentColor", text).replace("fill: #ffffff", "fill: none")
    label = f'role="img" aria-label="{escape(picture.title)}"'
    return _SIZE.sub(lambda m: _sized(m, label), text, count=1)


def _sized(match: re.Match[str], label: str) -> str:
    """Make an SVG fill its column, at most as wide as drawn: at 72 points an inch, which is 4/3 in CSS."""
    points = float(match[2] if match[2] is not None else match[5])
    start = match[1] if match[1] is not None else f"{match[3]}{match[4]}"
    return f'{start} {label} style="max-width: {points * 4 / 3:.0f}px"'


def _versions(studies: Sequence[KernelStudy]) -> list[str]:
    head = "".join(
        f'<th scope="col" data-field="{field}" class="{kind}"{" data-first" if field == "us" else ""}>{heading}</th>'
        for field, heading, kind in _VERSIONS
    )
    return [
        '<h2 id="every">Every version</h2>', '<div class="controls">',
        '<label>filter: words and whole numbers that occur<input id="filter" type="search" autocomplete="off" '
        'placeholder="unroll rfactor gemm"></label>',
        _choice("kernel", "kernel", names_of(studies)),
        _choice("outcome", "outcome", sorted({row.status for s in studies for row in s.rows})),
        '<span id="count" role="status"></span></div>',
        "<noscript><p>This table needs the page's script; `looptune db dump` prints the rows.</p></noscript>",
        f'<div class="wide box"><table id="versions"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>',
    ]  # fmt: skip


def _choice(identity: str, label: str, values: Sequence[str]) -> str:
    options = "".join(f'<option value="{escape(v)}">{escape(v.replace("_", " "))}</option>' for v in values)
    return f'<label>{label}<select id="{identity}"><option value="">all</option>{options}</select></label>'


def versions(studies: Sequence[KernelStudy]) -> list[dict[str, Any]]:
    """Return a record for every row, the fastest of a study first.

    A duplicate has the times of the row that it repeats.
    """
    return [record for study, name in zip(studies, names_of(studies), strict=True) for record in _records(study, name)]


def _records(study: KernelStudy, name: str) -> list[dict[str, Any]]:
    base = study.default_us
    made = [_version(entry, name, base) for entry in entries(study.rows)]
    return sorted(made, key=lambda v: inf if v["us"] is None else v["us"])


def _version(entry: Entry, name: str, base_us: float | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name, "directives": entry.own.directives, "outcome": entry.own.status, "role": entry.own.role,
        "us": None, "q1": None, "q3": None, "runs": [], "ratio": None, "facts": "", "message": "",
    }  # fmt: skip
    match entry.row.outcome:
        case Timed(times_us, median_us, q1_us, q3_us, verified, facts):
            said = [f"verified {verified}"] if verified else []
            said += [f"{fact} {value}" for fact, value in facts if not isinstance(value, float)]
            ratio = None if base_us is None or not median_us else base_us / median_us
            made |= {"us": median_us, "q1": q1_us, "q3": q3_us, "runs": list(times_us[:12]), "ratio": ratio,
                     "facts": "; ".join(said)}  # fmt: skip
        case None:
            pass
        case other:
            made["message"] = other.message
    return made


def _winners(studies: Sequence[KernelStudy]) -> list[str]:
    made = [_winner(study, name) for study, name in zip(studies, names_of(studies), strict=True)]
    return ['<h2 id="winners">Sources of the winners</h2>', *made]


def _winner(study: KernelStudy, name: str) -> str:
    result = study.result
    tuned = best_table.tuned_entry(result)
    time = "" if tuned is None or tuned.times is None else f", {time_text(tuned.times.median_us)}"
    lines = [
        ("Directives", result.directives if result.directives else "(none)"),
        ("What each directive earns", directive_gain_lines(result)),
        ("Kernels", kernel_table(result).text() if result.occupancy else ""),
        ("As fast", "\n\n".join(result.ties)),
        ("Legality", result.proof), ("Versions", counts(result)),
        ("Command", result.command),
    ]  # fmt: skip
    said = "".join(f'<h3>{h}</h3><pre class="wrap">{escape(text)}</pre>' for h, text in lines if text)
    return f"<details><summary>{escape(name + time)}</summary>{said}{_sources(study)}</details>"


def _sources(study: KernelStudy) -> str:
    if study.sources is None:
        return '<p class="faint">The sources are not in this database: a sweep of this looptune keeps them.</p>'
    s = study.sources
    texts = (("C as given", s.original), ("C transformed", s.transformed), ("Kernels as emitted", s.emitted))
    parts = "".join(f'<div><h3>{heading}</h3><pre tabindex="0">{escape(text)}</pre></div>' for heading, text in texts)
    return f'<div class="texts">{parts}</div>'
