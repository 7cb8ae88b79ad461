"""The version, in one place."""

from __future__ import annotations

__version__ = "0.1.0"

LOWERING = "4"
"""Changes whenever the same directives may give other machine code: results of another lowering are not comparable."""
