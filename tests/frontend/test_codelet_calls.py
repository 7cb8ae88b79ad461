"""Calls of codelets, the transfers that lines order, and statements between whose calls nothing has to be copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.frontend import load_each
from looptune.frontend.codelet_calls import CodeletCalls, codelet_calls

HEAD = """#pragma hmpp f codelet
void f(int n, float *a, float *b) { for (int i = 0; i < n; i++) b[i] = a[i]; }
#pragma hmpp g codelet
void g(int n, float *a) { for (int i = 0; i < n; i++) a[i] += 1; }
extern float norm(float *);
static int size, *flags;
"""


def calls(body: str, tmp_path: Path) -> tuple[CodeletCalls, str]:
    path = tmp_path / "a.c"
    text = f"{HEAD}void work(int n, int steps, float *a, float *b, float s)\n{{\n{body}\n}}\n"
    path.write_text(text)
    found = load_each(path)
    return codelet_calls(found.program, [c for c, _ in found.codelets]), text


HELD = {
    "two calls": ("f(n, a, b); g(n, b);", "f(n, a, b); g(n, b);"),
    "a loop": ("for (int t = 0; t < steps; t++) g(n, a);", "for (int t = 0; t < steps; t++) g(n, a);"),
    "pointers change places": (
        "float *c; while (steps-- > 0) { f(n, a, b); c = a; a = b; b = c; }",
        "while (steps-- > 0) { f(n, a, b); c = a; a = b; b = c; }",
    ),
    "what stands around is left out": (
        "steps++; f(n, a, b); steps--; g(n, a); steps++;", "f(n, a, b); steps--; g(n, a);"
    ),
    "conditions on numbers": ("f(n, a, b); if (steps > 3) { g(n, a); }", "f(n, a, b); if (steps > 3) { g(n, a); }"),
    "inside an if": ("if (norm(a)) { f(n, a, b); g(n, a); }", "f(n, a, b); g(n, a);"),
    "the halves around a read": ("g(n, a); g(n, b); s = a[0]; g(n, a); g(n, b);", "g(n, a); g(n, b);"),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_statements_that_touch_no_array_are_held(name: str, tmp_path: Path) -> None:
    """They reach from the first call to the last one."""
    body, expected = HELD[name]
    found, text = calls(body, tmp_path)
    assert {text[h.start : h.end] for h in found.resident} == {expected}


APART = {
    "one call": "g(n, a);",
    "an element is read": "g(n, a); s = a[0]; g(n, a);",
    "an element is passed": "f(n, a, b); g((int)a[0], b);",
    "a pointer is read": "g(n, a); s = *a; g(n, a);",
    "another function": "g(n, a); s = norm(a); g(n, a);",
    "a number at file scope, which a codelet may write": "g(size, a); g(size, b);",
    "a number whose address is taken": "float x; f(1, &x, b); s = x; g(n, b);",
    "a label": "again: g(n, a); g(n, b); if (steps-- > 0) goto again;",
    "a case": "switch (n) { case 3: g(n, a); g(n, b); }",
    "a return": "f(n, a, b); if (n > 3) return; g(n, b);",
    "a jump": "for (int t = 0; t < steps; t++) { g(n, a); if (t > 4) break; }",
    "a loop of OpenMP": "#pragma omp parallel for\nfor (int t = 0; t < steps; t++) g(n, a);",
}


@pytest.mark.parametrize("name", APART)
def test_other_statements_are_not(name: str, tmp_path: Path) -> None:
    """What the host may read has to be there."""
    found, _ = calls(APART[name], tmp_path)
    assert found.resident == ()


def test_lines_say_what_is_copied_where(tmp_path: Path) -> None:
    """Each line has a place after it, the call that it belongs to, and the parameters that it names."""
    found, text = calls(
        "#pragma hmpp f advancedload, args[a]\n#pragma hmpp f callsite, args[a].advancedload=true, asynchronous\n"
        "f(n, a, b);\n#pragma hmpp f synchronize\n#pragma hmpp f delegatedstore, args[b]\n#pragma hmpp f release",
        tmp_path,
    )
    assert [(t.verb, sorted(t.names)) for t in found.transfers] == [
        ("advancedload", ["a"]), ("synchronize", ["a", "b", "n"]), ("delegatedstore", ["b"]),
        ("release", ["a", "b", "n"]),
    ]  # fmt: skip
    (call,) = found.calls
    assert (text[call.start : call.end], call.arguments) == ("f(n, a, b)", ("n", "a", "b"))
    assert (call.present, call.deferred, call.asynchronous) == ({"a"}, {"b"}, True)
    assert text[found.transfers[0].at :].startswith("#pragma hmpp f callsite")
    assert found.resident == ()


def test_a_line_without_a_statement_list_has_no_effect(tmp_path: Path) -> None:
    """A statement added there would be the branch of the condition."""
    found, _ = calls("if (n > 3)\n#pragma hmpp f synchronize\nf(n, a, b);", tmp_path)
    assert found.transfers == ()
    assert ["put braces around" in w for w in found.warnings] == [True]


def test_clauses_of_the_codelet_hold_at_every_call(tmp_path: Path) -> None:
    """``transfer=manual`` is neither copied before nor after; ``const`` is copied once."""
    path = tmp_path / "a.c"
    path.write_text("#pragma hmpp f codelet, args[a].const=true, args[b].transfer=manual\n"
                    "void f(int n, float *a, float *b) { for (int i = 0; i < n; i++) b[i] = a[i]; }\n"
                    "void work(int n, float *a, float *b) { f(n, a, b); }\n")  # fmt: skip
    found = load_each(path)
    (call,) = codelet_calls(found.program, [c for c, _ in found.codelets]).calls
    assert (call.present, call.deferred) == ({"a", "b"}, {"b"})


def test_what_no_line_loads_is_copied(tmp_path: Path) -> None:
    """The host may have written it since the last call."""
    said = "#pragma hmpp f callsite, args[a].advancedload=true\nf(n, a, b);"
    (call,) = calls(said, tmp_path)[0].calls
    assert call.present == frozenset()
    (call,) = calls(f"#pragma hmpp f advancedload, args[a]\n{said}", tmp_path)[0].calls
    assert call.present == {"a"}


def test_lines_of_a_group_name_parameters_of_its_codelets(tmp_path: Path) -> None:
    """``label::NAME`` is a parameter of that codelet alone; a plain name is loaded once for all that have it."""
    path = tmp_path / "a.c"
    path.write_text("#pragma hmpp <p> f codelet\nvoid f(int n, float *a, float *b) { for (int i = 0; i < n; i++) "
                    "b[i] = a[i]; }\n#pragma hmpp <p> g codelet, args[a].io=inout\nvoid g(int n, float *a) { for (int "
                    "i = 0; i < n; i++) a[i] += 1; }\nvoid work(int n, float *a, float *b) {\n"
                    "#pragma hmpp <p> advancedload, args[a]\nf(n, a, b); g(n, a);\n"
                    "#pragma hmpp <p> delegatedstore, args[g::a]\n#pragma hmpp <q> delegatedstore, args[b]\n"
                    "#pragma hmpp <p> synchronize\n}\n")  # fmt: skip
    found = load_each(path)
    made = codelet_calls(found.program, [c for c, _ in found.codelets])
    assert [(t.verb, t.call and t.call.function, sorted(t.names)) for t in made.transfers] == [
        ("advancedload", "f", ["a"]), ("delegatedstore", "g", ["a"]), ("synchronize", "g", ["a", "n"]),
        ("synchronize", "f", ["b"]),
    ]  # fmt: skip
    assert [(c.function, sorted(c.deferred)) for c in made.calls] == [("f", []), ("g", ["a"])]
    assert ["this delegatedstore has no effect: no codelet" in w for w in made.warnings] == [True]


def test_a_call_that_no_line_waits_for_is_not_asynchronous(tmp_path: Path) -> None:
    """Its results would never be copied to the host."""
    found, _ = calls("#pragma hmpp f callsite, asynchronous\nf(n, a, b);", tmp_path)
    assert not found.calls[0].asynchronous
    assert ["this call is not asynchronous: no synchronize of it" in w for w in found.warnings] == [True]


def test_functions_that_contain_a_part_call_others(tmp_path: Path) -> None:
    """The codelets and the regions of other functions are found, and the calls around a region."""
    path = tmp_path / "a.c"
    path.write_text(
        f"{HEAD}int main(void) {{ float a[9] = {{1}}, b[9];\n#pragma hmpp f callsite\nf(9, a, b);\n"
        "#pragma hmpp r region\n{ for (int i = 0; i < 9; i++) a[i] = 2 * b[i]; }\n}\n"
    )
    found = load_each(path)
    assert [c.function.name for c, _ in found.codelets] == ["f", "g", "main"]
    assert [c.function for c in codelet_calls(found.program, [c for c, _ in found.codelets]).calls] == ["f"]


STORED = {
    "the array of the line": ("g(n, a); g(n, a);", [{"a"}, {"a"}]),
    "two arrays": ("g(n, b); g(n, a);", [set(), {"a"}]),
    "both have a line": ("f(n, b, a); f(n, a, b);\n#pragma hmpp f delegatedstore, args[a;b]\n", [{"a", "b"}] * 2),
    "pointers change places": ("for (int t = 0; t < n; t++) { float *c = a; g(n, a); a = b; b = c; }", [set()]),
    "a pointer moves on": ("g(n, a); a++;", [set()]),
    "a part in each step": ("for (int t = 0; t < n; t++) g(n, a + t);", [set()]),
    "a pointer may be changed by a function": ("extern void swap(float **); g(n, a); swap(&a);", [set()]),
    "elements are written": ("for (int t = 0; t < n; t++) { g(n, a); a[t] = 0; }", [{"a"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_what_a_delegatedstore_stores_is_that_of_its_own_call(name: str, tmp_path: Path) -> None:
    """Other calls copy what they write, with a warning: nothing else would."""
    body, expected = STORED[name]
    found, _ = calls(f"{body}\n#pragma hmpp g delegatedstore, args[a]\n", tmp_path)
    assert [c.deferred for c in found.calls] == expected
    assert sum("is copied to the host after this call" in w for w in found.warnings) == expected.count(set())
