"""Loop headers of every type and direction, and a codelet that counts how often each runs and keeps its last value."""

from __future__ import annotations

HEADERS = (
    # counter's type, start, condition, next
    ("unsigned", "n", "i > m", "i--"),
    ("unsigned", "n", "i >= m + 1", "i--"),
    ("unsigned", "n", "i > m", "i -= 2"),
    ("unsigned", "n + 1", "m < i", "i = i - 4"),
    ("unsigned", "m", "i < n", "i++"),
    ("unsigned", "m", "i <= n", "i += 3"),
    ("unsigned", "m + 1", "i + 1 < n", "i++"),
    ("unsigned", "n", "i + 1 > 0", "i--"),
    ("unsigned", "4294967290u", "i != 4u", "i++"),
    ("unsigned", "4u", "i != 4294967290u", "i--"),
    ("unsigned", "0", "i != n", "i++"),
    ("unsigned", "n", "i != 0", "i--"),
    ("unsigned", "n - 3", "i < n", "i++"),
    ("unsigned", "n", "i > n - 3", "i--"),
    ("unsigned", "0", "i < l", "i++"),
    ("unsigned", "9", "i > 1", "i += -1"),
    ("unsigned", "m", "i < n && i < 5", "++i"),
    ("unsigned", "n - 1", "i < n", "i--"),
    ("unsigned", "m", "i < n", "--i"),
    ("unsigned", "k - 1", "i < (unsigned)k", "i--"),
    ("size_t", "n", "i > m", "i--"),
    ("size_t", "n", "i >= 4", "i -= 4"),
    ("size_t", "1", "i < z - 1", "i++"),
    ("size_t", "z - 3", "i < z", "i++"),
    ("size_t", "z - 3", "i != z", "i++"),
    ("size_t", "z", "i > z - 3", "i--"),
    ("size_t", "z", "i > z - 3 && i > 1", "i--"),
    ("size_t", "z + 2", "i > z", "i--"),
    ("size_t", "z - 2", "i < z - 1", "i++"),
    ("size_t", "k", "i < z", "i++"),
    ("size_t", "0", "i + 1 < z", "i += 2"),
    ("size_t", "z - 1", "i < z", "i--"),
    ("size_t", "m", "i < z", "i += 3"),
    ("size_t", "z", "i > m", "i -= 3"),
    ("size_t", "0", "i != z", "++i"),
    ("size_t", "3", "i >= (size_t)(k + 9)", "i--"),
    ("size_t", "z - 3", "i <= z - 2", "i++"),
    ("size_t", "z - 1", "i <= z + 4", "i++"),
    ("size_t", "m", "i >= z - 1", "i--"),
    ("int", "-2", "i < m", "i++"),
    ("int", "k", "i < m", "i++"),
    ("int", "0", "i < m", "i++"),
    ("int", "k", "i < z", "i++"),
    ("int", "0", "i + 1 < z", "i++"),
    ("int", "5", "i > m", "i--"),
    ("int", "5", "i > z - 4", "i--"),
    ("int", "0", "i - 1 < n", "i++"),
    ("int", "-3", "i != m", "i++"),
    ("int", "k", "i < s", "i += s"),
    ("int", "1", "i > k", "i -= s"),
    ("int", "0", "i < -3000000000", "i++"),
    ("int", "k", "i < l", "i++"),
    ("int", "7", "i > l", "i--"),
    ("long", "-2", "i < m", "i++"),
    ("long", "-2", "i < z", "i++"),
    ("long", "l", "i <= 5", "i += 2"),
    ("unsigned char", "300", "i < 60", "i++"),
    ("unsigned char", "250", "i != 4", "i++"),
    ("unsigned char", "5", "i != 250", "i--"),
    ("unsigned char", "m", "i < 255", "i += 3"),
    ("unsigned char", "1", "i < 255", "i += 3"),
    ("unsigned char", "n", "i > 1", "i -= 3"),
    ("unsigned char", "n", "i > m", "i--"),
    ("unsigned char", "0", "i < n", "i++"),
    ("unsigned short", "65530", "i >= 10", "i += 7"),
    ("unsigned short", "n", "i != 3", "i--"),
    ("signed char", "120", "i != -120", "i++"),
    ("signed char", "-120", "i != 120", "i--"),
    ("signed char", "k", "i < 5", "i++"),
    ("short", "k + 65536", "i < 5", "i++"),
    ("short", "9", "i >= k", "i -= 2"),
)  # fmt: skip


def program() -> str:
    """Every header around two statements that show how often it runs and with which last value."""
    loops = "\n".join(
        f"  for ({kind} i = {start}; {cond}; {then}) {{ count[{k}] += 1; last[{k}] = (long)i; }}"
        for k, (kind, start, cond, then) in enumerate(HEADERS)
    )
    size = len(HEADERS)
    parameters = f"unsigned n, unsigned m, size_t z, int k, int s, long l, long count[{size}], long last[{size}]"
    return f"#include <stddef.h>\nvoid f({parameters})\n{{\n{loops}\n}}\n"


VALUES = (
    {"n": 9, "m": 3, "z": 7, "k": 1, "s": 2, "l": 6},
    {"n": 3, "m": 9, "z": 2, "k": 0, "s": 3, "l": 3},
    {"n": 4, "m": 4, "z": 4, "k": 5, "s": 1, "l": -4},
    {"n": 4, "m": 1, "z": 7, "k": 2, "s": -1, "l": 2},
    {"n": 3, "m": 7, "z": 3, "k": -3, "s": 1, "l": -1},
)
"""Sizes for which every loop ends, with loops that do not run."""
