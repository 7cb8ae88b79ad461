"""``python -m looptune``."""

from __future__ import annotations

from looptune.cli import main

main()
