"""``python -m looptune``."""

from __future__ import annotations

from looptune.cli.main import main

main()
