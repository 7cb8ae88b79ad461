"""Quantities with the prefixes of the SI."""

from __future__ import annotations


def amount(number: float, unit: str) -> str:
    """Return the number with three significant digits, an SI prefix and its unit.

    >>> amount(4_194_304, "B"), amount(85.3, "FLOP/B"), amount(62_170e9, "FLOP/s"), amount(999.9e9, "FLOP/s")
    ('4.19 MB', '85.3 FLOP/B', '62.2 TFLOP/s', '1 TFLOP/s')
    """
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * scale:
            shown = f"{number / scale:,.0f}" if number >= 999.5 * scale else f"{number / scale:.3g}"
            return f"{shown} {prefix}{unit}"
    return f"{number:.3g} {unit}"
