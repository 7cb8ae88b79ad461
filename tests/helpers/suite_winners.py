"""What won on an H200, of the committed table."""

from __future__ import annotations

import json

from tests.helpers.paths import ROOT


def winner(kernel: str) -> tuple[list[str], dict[str, str | None]]:
    """Return the directives and the sizes of the kernel's best version in the committed table."""
    table = json.loads((ROOT / "reports/nvidia-h200/table-best.json").read_text())
    row = next(r for r in table if r["kernel"] == kernel)
    return row["directives"].splitlines(), {name: str(size) for name, size in row["sizes"].items()}
