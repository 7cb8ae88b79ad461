"""An HTML page that is one file: its style and its scripts are in it, and no other script may run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

_HERE = files("looptune.report.site")


def document(title: str, body: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the page. ``scripts`` names files of this folder, in the order in which they run; ``body`` is HTML."""
    texts = [_HERE.joinpath(name).read_text() for name in scripts]
    allowed = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
    style = _HERE.joinpath("page.css").read_text()
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">', '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>", f"<style>{style}</style>", "</head>", "<body>", *body,
        *(f"<script>{text}</script>" for text in texts), "</body>", "</html>", "",
    ])  # fmt: skip
