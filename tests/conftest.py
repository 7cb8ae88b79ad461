"""What holds for every test: hypothesis sets no deadline, for a machine's load is no property of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("looptune", deadline=None)
settings.load_profile("looptune")
