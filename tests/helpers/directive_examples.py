"""The examples of every directive, and what they become."""

from __future__ import annotations

import pytest

from looptune.ir.nodes import Codelet
from looptune.schedule import directives
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule

EXAMPLES = [pytest.param(text, example, id=text) for cls in directives.ALL for text, example in cls.examples.items()]


def transformed(codelet: Codelet) -> Codelet:
    return schedule(Analysis(codelet)).codelet
