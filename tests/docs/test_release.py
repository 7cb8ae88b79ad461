"""What is published beside the code says the same as the code."""

from __future__ import annotations

import re

from looptune.core.version import __version__
from tests.helpers.paths import ROOT


def test_the_citation_names_this_version() -> None:
    """CITATION.cff cannot read it from the package."""
    assert re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE) == [__version__]
