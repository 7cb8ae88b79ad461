"""Keyword arguments of the Python interface that were renamed."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed_argument(old: str, new: str, translate: Callable[[Any], Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept the keyword ``old`` for one release: warn, and pass ``translate`` of its value as ``new``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            if old in given:
                warnings.warn(f"{old}= is now {new}=", DeprecationWarning, stacklevel=2)
                given[new] = translate(given.pop(old))
            return function(*args, **given)

        return called

    return decorate
