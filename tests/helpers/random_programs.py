"""Random C programs: codelets on one-dimensional and two-dimensional arrays, and a main that calls them anyhow.

Every result is exact in any order: arrays of doubles are not summed up, sums are of unsigned integers. Accesses stay in
the arrays, of ELEMENTS each, for all sizes and offsets that are passed; arguments may overlap, sizes may be 0 or less.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

ELEMENTS = 700
BEFORE = 40
"""Elements before the place that a call passes."""
SIZES = (0, 1, 2, 5, 7, 11, -1)
DOUBLES, UNSIGNED = ("A", "B", "C"), ("U", "V")


@dataclass(frozen=True)
class RandomCodelet:
    """``arrays`` are the types of its arrays, of which the first is written; ``stored``: by a line after each call."""

    name: str
    text: str
    arrays: tuple[str, ...]
    stored: bool = False


def random_program(seed: int) -> str:
    """Return the text of a program, which prints its arrays now and then and at the end."""
    rng = random.Random(seed)
    directives = rng.random() < 0.3
    codelets = [_codelet(rng, f"f{k}", directives and rng.random() < 0.5) for k in range(rng.randint(3, 6))]
    main = "\n".join(_statement(rng, codelets, 0) for _ in range(rng.randint(8, 16)))
    helper = "\n".join(_statement(rng, codelets, 1, plain=True) for _ in range(rng.randint(2, 4)))
    declared = "".join(f"static double {a}[{ELEMENTS}];\n" for a in DOUBLES)
    declared += "".join(f"static unsigned {a}[{ELEMENTS}];\n" for a in UNSIGNED)
    fill = "".join(
        f"        {a}[i] = (i * {rng.randint(3, 90)} + {k}) % 61;\n" for k, a in enumerate(DOUBLES + UNSIGNED)
    )
    shown = "".join(f"        s += {a}[i] * (i % {k + 5} + 1);\n" for k, a in enumerate(DOUBLES))
    shown += "".join(f"        u = u * 31 + {a}[i];\n" for a in UNSIGNED)
    return (
        f"#include <stdio.h>\n{declared}{''.join(c.text for c in codelets)}"
        f"static void show(void)\n{{\n    double s = 0;\n    unsigned u = 0;\n"
        f"    for (int i = 0; i < {ELEMENTS}; i++) {{\n"
        f'{shown}    }}\n    printf("%.17g %u\\n", s, u);\n}}\n'
        "static void helper(int n, int m, double *p, double *q, unsigned *u, unsigned *v)\n"
        f"{{\n    double *t;\n    (void)t;\n{helper}\n}}\n"
        "int main(void)\n{\n    int n = 5, m = 7;\n"
        f"    double *p = A + {BEFORE}, *q = B + {BEFORE}, *t;\n    unsigned *u = U + {BEFORE}, *v = V + {BEFORE};\n"
        f"    for (int i = 0; i < {ELEMENTS}; i++) {{\n{fill}    }}\n    (void)t;\n"
        f"{main}\n    helper(5, 6, q, p, v, u);\n    show();\n    return 0;\n}}\n"
    )


# -- codelets ---------------------------------------------------------------------------------------------------------


def _codelet(rng: random.Random, name: str, stored: bool) -> RandomCodelet:
    kind = rng.choice(("double", "double", "unsigned"))
    names = ("x", "y", "z")[: rng.randint(1, 3)]
    style = rng.choice(("plain", "rows", "flat"))
    params = ", ".join(
        (f"{kind} {a}[n][m]" if style == "rows" else f"{'const ' * (k > 0)}{kind} *{a}") for k, a in enumerate(names)
    )
    loops = "\n".join(_nest(rng, kind, names, style) for _ in range(rng.randint(1, 2)))
    clauses = f", args[{';'.join(names[1:])}].io=in" if len(names) > 1 and rng.random() < 0.3 else ""
    text = (
        f"#pragma hmpp {name} codelet, args[x].io=inout{clauses}\n"
        f"static void {name}(int n, int m, {kind} f, {params})\n{{\n{loops}\n}}\n"
    )
    return RandomCodelet(name, text, (kind,) * len(names), stored)


def _nest(rng: random.Random, kind: str, names: tuple[str, ...], style: str) -> str:
    if style == "plain":
        return _one_loop(rng, kind, names)
    at = (lambda a, i, j: f"{a}[{i}][{j}]") if style == "rows" else (lambda a, i, j: f"{a}[({i}) * m + {j}]")
    outer = rng.choice(("for (int i = 0; i < n; i++)", "for (int i = 1; i < n - 1; i++)",
                        "for (int i = n - 1; i >= 0; i--)"))  # fmt: skip
    inner = rng.choice(("for (int j = 0; j < m; j++)", "for (int j = 1; j < m; j += 2)",
                        "for (int j = 0; j <= i && j < m; j++)",
                        "for (int j = m - 1; j > 0; j--)"))  # fmt: skip
    down, guard = rng.choice((("i - 1", "i > 0"), ("i + 1", "i < n - 1"), ("i", ""), ("i", "j > i")))
    value = at(rng.choice(names), down, "j")
    other = at(rng.choice(names), "i", "j")
    target = at("x", "i", "j")
    if guard and rng.random() < 0.5:
        body = f"{target} = {guard} ? {_mixed(rng, kind, value, other)} : {other};"
    else:
        body = f"{f'if ({guard}) ' if guard else ''}{target} = {_mixed(rng, kind, value, other)};"
    if kind == "unsigned" and rng.random() < 0.4:
        first = at("x", "i", "0")
        return (f"    for (int i = 0; i < n; i++) {{\n        unsigned s = f;\n"
                f"        for (int j = 0; j < m; j++) s += {other};\n"
                f"        if (m > 0) {first} = s;\n    }}")  # fmt: skip
    return f"    {outer}\n        {inner}\n            {body}"


def _one_loop(rng: random.Random, kind: str, names: tuple[str, ...]) -> str:
    loop = rng.choice((
        "for (int i = 0; i < n; i++)", "for (int i = n - 1; i >= 0; i--)", "for (int i = 2; i < n + m; i += 3)",
        "for (int i = -3; i < n; i++)", "for (int i = 0; i < n * m; i++)", "for (int i = m; i < n; i++)",
    ))  # fmt: skip
    lower = -3 if "-3" in loop else 0
    shift = rng.randint(0, 3) if rng.random() < 0.5 else -lower
    value = f"{rng.choice(names)}[i + {shift}]" if rng.random() < 0.7 else f"{rng.choice(names)}[2 * i + 6]"
    other = f"{rng.choice(names)}[i {rng.choice('+++-')} {rng.randint(0, 3)}]"
    target = rng.choice((f"x[i + {shift}]", "x[i]", "x[i + 4]", "x[i + 1]"))
    body = f"{target} = {_mixed(rng, kind, value, other)};"
    pick = rng.random()
    if pick < 0.2:
        body = f"if (i % 3 == 1 && {other} > {value}) {body} else x[i] = {value};"
    elif pick < 0.35:
        body = f"{{ {kind} t[2]; t[0] = {value}; t[1] = {other}; {target} = t[i & 1]; }}"
    elif pick < 0.5:
        body = f"{target} = i > 0 && i < n - 1 ? {_mixed(rng, kind, value, other)} : x[i];"
    elif pick < 0.6:
        body = f"{{ if (i == 5) continue; {body} }}"
    elif pick < 0.7:
        body = f"{{ if ({other} > 40) break; {body} }}"
    elif pick < 0.85 and kind == "unsigned":
        return f"    {{\n        unsigned s = 0;\n        {loop} s += {value};\n        x[1] = s;\n    }}"
    return f"    {loop}\n        {body}"


def _mixed(rng: random.Random, kind: str, value: str, other: str) -> str:
    if kind == "unsigned":
        return rng.choice(
            (f"{value} + f", f"{value} ^ {other}", f"{value} * 3 + {other}", f"{value} % 7 + i", f"f - {other}")
        )
    return rng.choice((f"0.5 * ({value} + {other})", f"{value} + f", f"f - {other}", f"{value} > {other} ? {value} : f",
                       f"0.25 * {value} + i"))  # fmt: skip


# -- main -------------------------------------------------------------------------------------------------------------


def _statement(rng: random.Random, codelets: list[RandomCodelet], depth: int, *, plain: bool = False) -> str:
    pick = rng.random()
    if pick < 0.15 and depth < 2:
        body = "\n".join(_statement(rng, codelets, depth + 1, plain=plain) for _ in range(rng.randint(1, 3)))
        r = f"r{depth}"
        return f"    for (int {r} = 0; {r} < {rng.randint(1, 3)}; {r}++) {{\n{body}\n    }}"
    if pick < 0.25 and not plain:
        return f"    {rng.choice(DOUBLES)}[{BEFORE + rng.randint(0, 30)}] += 3;"
    if pick < 0.3 and not plain:
        return "    show();"
    if pick < 0.35:
        return "    t = p; p = q; q = t;"
    if pick < 0.42:
        return f"    n = {rng.choice(SIZES)}; m = {rng.choice(SIZES)};"
    if pick < 0.46 and not plain:
        return f"    if (p[3] > {rng.randint(0, 40)}) {{\n{_call(rng, codelets)}\n    }}"
    if pick < 0.5 and not plain:
        return f"    helper({rng.choice(SIZES)}, {rng.choice(SIZES)}, {rng.choice('pq')}, q, u, v);"
    return _call(rng, codelets)


def _call(rng: random.Random, codelets: list[RandomCodelet]) -> str:
    c = rng.choice(codelets)
    sizes = [rng.choice((name, name, str(rng.choice(SIZES)))) for name in "nm"]
    own = {"double": ("p", "q", f"C + {BEFORE}"), "unsigned": ("u", "v")}
    rows = "[n][m]" in c.text
    passed = []
    for k, kind in enumerate(c.arrays):
        place = rng.choice(own[kind])
        place += f" + {rng.randint(1, 9)}" if rng.random() < 0.25 else ""
        passed.append(f"(void *)({place})" if rows else place)
        if k == 0 and len(own[kind]) > 1 and rng.random() < 0.85:
            own = {**own, kind: tuple(p for p in own[kind] if not place.startswith(p))}
    call = f"    {c.name}({', '.join([*sizes, str(rng.randint(0, 9)), *passed])});"
    if not c.stored:
        return call
    return f"#pragma hmpp {c.name} callsite\n{call}\n#pragma hmpp {c.name} delegatedstore, args[x]"
