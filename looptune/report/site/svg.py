"""An SVG as a part of a page: ids are made unique, black becomes the page's ink, and nothing in it loads or runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

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
