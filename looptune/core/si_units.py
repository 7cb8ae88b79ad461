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


def energy_text(joules: float) -> str:
    """Return joules in a readable unit.

    >>> energy_text(0.0123), energy_text(3.5e-6), energy_text(1234.0)
    ('12.3 mJ', '3.5 uJ', '1.23 kJ')
    """
    return _small(joules, "J")


def edp_text(joule_seconds: float) -> str:
    """Return an energy-delay product in a readable unit.

    >>> edp_text(0.0123), edp_text(3.5e-11)
    ('12.3 mJ s', '35 pJ s')
    """
    return _small(joule_seconds, "J s")


def _small(number: float, unit: str) -> str:
    for scale, prefix in ((1e12, "p"), (1e9, "n"), (1e6, "u"), (1e3, "m")):
        if number * scale < 999.5:
            return f"{number * scale:.3g} {prefix}{unit}"
    return amount(number, unit)


def plain_number(value: float) -> str:
    """Return four digits of a number, or the whole number if it has more, without an exponent.

    >>> plain_number(17.8642), plain_number(9999.4), plain_number(36514.2)
    ('17.86', '9999', '36,514')
    """
    return f"{value:.4g}" if abs(value) < 9999.5 else f"{value:,.0f}"


def time_text(us: float) -> str:
    """Return microseconds in a readable unit.

    >>> time_text(17.52), time_text(999.6), time_text(1234.5), time_text(2_500_000)
    ('17.5 us', '1 ms', '1.23 ms', '2.5 s')
    """
    for scale, unit in ((1, "us"), (1e3, "ms")):
        shown = f"{us / scale:.3g}"
        if float(shown) < 1e3:
            return f"{shown} {unit}"
    return f"{us / 1e6:.3g} s"
