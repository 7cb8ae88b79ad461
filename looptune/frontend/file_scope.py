"""The declarations of a file at file scope as text that another file can have: what one function needs of its file.

    typedef double real;                          typedef double real;
    real scale;                                   extern real scale;
    static long calls;                      ─▶
    real half(real x) { return x / 2; }           static real half(real x) { return x / 2; }
    void f(int n, real *x) { … half(x[i]) … }     void f(int n, real *x) { … half(x[i]) … }
    long count(void) { return calls; }

Types, constant tables and functions are copied, the latter two as ``static``; variables stay those of the file. A
static variable that only the function uses moves with it. One that other functions use as well is visible in no other
file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from looptune.frontend.c_types import HEADERS_OF_TYPES
from looptune.frontend.declared_names import Part, declared_parts, free_names
from looptune.frontend.other_languages import is_cxx
from looptune.frontend.predefined_macros import COMPLEX, COMPLEX_HEADERS, TYPEOF
from looptune.frontend.token_text import OTHER_TYPE

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Preprocessed

_NAME = re.compile(r"[A-Za-z_]\w*")
_PRAGMA = re.compile(r"^[ \t]*#pragma (\d+)[ \t]*$", re.MULTILINE)
_OWN_PRAGMA = re.compile(
    r"^[ \t]*#[ \t]*pragma[ \t]+(?:hmpp|hmppcg|looptune|scop|endscop|once)\b(?:\\\n|[^\n])*\n?", re.MULTILINE
)
_OF_NEXT = ("omp", "acc")
"""Pragmas at file scope that belong to the declaration after them; the others hold until another one."""
_NO_CODE = re.compile(r"/\*.*?\*/|//(?:\\\n|[^\n])*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?!pragma\b)", re.MULTILINE)
_DEFINED = re.compile(r"[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)")
_TYPEOF = re.compile(rf"struct\s*\{{\s*char\s+{TYPEOF}\s*\[\s*sizeof\s*\((.*?)\)\s*\]\s*;\s*\}}", re.DOTALL)
_FEATURE = re.compile(r"_\w+_SOURCE|_USE_MATH_DEFINES|_FILE_OFFSET_BITS|NDEBUG|__STDC_\w+")
"""Macros that decide what the headers of the system declare."""


@dataclass(frozen=True, slots=True)
class OwnText:
    """A function with what it needs of its file; where ``hidden`` has static variables, the function alone.

    These belong to other functions as well, so that the text is for the function's place in the file.
    """

    text: str
    hidden: tuple[str, ...] = ()


class FileScope:
    """What a preprocessed file declares at file scope, in its order."""

    def __init__(self, source: Preprocessed) -> None:
        self.source = source

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the declarations in order."""
        return declared_parts(self.source)

    @cached_property
    def macros(self) -> frozenset[str]:
        """Return the names of the macros that the file defines."""
        found = filter(None, (_DEFINED.match(span.text) for span in self.source.defined))
        return frozenset(m[2] for m in found).union(self.source.macros)

    @property
    def headers(self) -> tuple[str, ...]:
        """Return the headers of the system that the file includes."""
        missing = {name for name, _ in self.source.missing}
        return tuple(name for name in dict.fromkeys(self.source.skipped) if name not in missing)

    def own_text(self, function: str) -> OwnText | None:
        """Return the function with all that it needs, None where the file does not define it in one place."""
        own = [p for p in self.parts if p.has_body and function in p.names]
        if len(own) != 1:
            return None
        needed = self._needed({function})
        hidden = self._shared(function)
        if hidden:
            return OwnText(f"{self._text(own[0])}\n", tuple(sorted(hidden)))
        return OwnText("".join(f"{line}\n" for line in (*self._head(needed), *self._lines(needed, function))))

    @cached_property
    def types(self) -> frozenset[str]:
        """Return the names of types and of enumeration constants, of types with a tag as ``struct s``."""
        tags = {n for p in self.parts if not p.has_body for n in p.names if " " in n}
        return frozenset(n for p in self.parts if p.is_type for n in p.names) | tags

    def unknown_names(self, text: str) -> frozenset[str]:
        """Return the names in the declaration of a parameter that are no types, neither of the file nor of C."""
        found = free_names(re.findall(r"\w+|[^\w\s]", text), self.types)
        return frozenset(found) - self.types - HEADERS_OF_TYPES.keys()

    def declarations(self, names: Iterable[str], function: str) -> tuple[tuple[str, ...], frozenset[str]]:
        """Return the declarations of types and variables for the function, and the names in them that headers have."""
        needed = self._needed(names)
        lines = tuple(self._lines(needed, function, self._shared(function)))
        others = {n for p in self._parts(needed) for n in p.uses} - {n for p in self.parts for n in p.names}
        if any(name in COMPLEX_HEADERS for name in self.headers):
            others |= {n for line in lines for n in _NAME.findall(line)} & COMPLEX.keys()
        return lines, frozenset(others)

    def private_variables(self, function: str) -> frozenset[str]:
        """Return the static variables and the tables of which a file with this function alone can have its own."""
        needed = self._needed({function})
        found = (p for p in self._parts(needed) if not (p.is_function or p.is_type) and self._is_copied(p))
        return (needed & frozenset(n for p in found for n in p.names)) - self._shared(function)

    def _needed(self, names: Iterable[str], but: str = "") -> frozenset[str]:
        """Return the names and all that their declarations need; that of the function ``but`` needs nothing."""
        found, waiting = set[str](), {*names}
        while waiting:
            found |= waiting
            waiting = {n for p in self.parts if p.names & waiting and but not in p.names for n in p.uses} - found
        return frozenset(found)

    def _parts(self, names: frozenset[str]) -> list[Part]:
        return [p for p in self.parts if p.names & names]

    def _shared(self, function: str) -> frozenset[str]:
        """Return what the function needs and other functions, of the file or of others, use too, if it has a state."""
        needed = self._needed({function})
        own = self._parts(needed)
        callable_ = [p for p in own if p.has_body and not p.is_static and function not in p.names]
        others = [p for p in self.parts if p not in own and not p.is_type] + callable_
        names = {n for p in others for n in p.uses | p.names} - {function}
        reached = self._needed(names, function) & needed - {function}
        return frozenset(n for p in own if self._has_state(p) for n in p.names & reached)

    def _is_copied(self, part: Part) -> bool:
        """Return whether the variables of a part may be there twice: static ones, and tables that it alone declares."""
        return part.is_static or (part.is_table and not any(p.names & part.names for p in self.parts if p != part))

    def _has_state(self, part: Part) -> bool:
        """Return whether two copies of it differ once the program runs: a static variable that may be set."""
        if part.has_body:
            words = self._words[part.start : part.end]
            inner = [k for k, word in enumerate(words) if word == "static" and "{" in words[:k]]
            return any("const" not in words[k : k + 3] for k in inner)
        return not (part.is_type or part.is_function or part.is_constant) and part.is_static

    def _head(self, needed: frozenset[str]) -> Iterator[str]:
        """Yield the lines that include the headers of the system which the file includes."""
        if self.headers:
            macros = self.source.macros
            yield from (f"#define {name} {macros[name]}".rstrip() for name in macros if _FEATURE.fullmatch(name))
            yield from (f"#include <{name}>" for name in self.headers)
            found = filter(None, (_DEFINED.match(span.text) for span in self.source.defined))
            gone = dict.fromkeys(m[2] for m in found if m[1] == "undef")
            yield from (f"#undef {name}" for name in gone if name in needed)
            yield ""

    def _lines(self, needed: frozenset[str], function: str, shared: Collection[str] = ()) -> Iterator[str]:
        """Yield the text of each part that declares one of the names, with the pragmas that it stands under."""
        parts = self._parts(needed)
        for part in self.parts if parts else ():
            for pragma in self._pragmas_before(part):
                if part in parts or pragma.split()[0] not in _OF_NEXT:
                    yield f"#pragma {pragma}"
            if part in parts:
                yield from ([""] if part.has_body else [])
                yield self._copy(part, function, needed, shared)

    def _pragmas_before(self, part: Part) -> Iterator[str]:
        tokens, at = self.source.tokens, part.start
        before = 0 if at == 0 else tokens[at - 1].offset + len(tokens[at - 1].text)
        for m in _PRAGMA.finditer(self.source.text, before, tokens[at].offset):
            said = self.source.pragmas[int(m[1])].content.text.strip()
            if said and not _OWN_PRAGMA.match(f"#pragma {said}"):
                yield said

    def _copy(self, part: Part, function: str, needed: frozenset[str], shared: Collection[str]) -> str:
        """Return the text of a part for another file: the function without ``static``, helpers and tables with it."""
        if part.is_type:
            return self._text(part)
        if function in part.names:
            return self._text(part, without=("static", "inline"))
        if part.is_function:
            defined = any(p.has_body and p.names & part.names for p in self.parts)
            return f"static {self._text(part, without=('static', 'extern'))}" if defined else self._text(part)
        others = self._others(part, needed)
        if self._is_copied(part) and not part.names & needed & frozenset(shared):
            return f"static {self._text(part, others, without=('static', 'extern'))}"
        return f"extern {self._text(part, others | self._initialisers(part), without=('static', 'extern'))}"

    # -- text -----------------------------------------------------------------------------------

    def _text(self, part: Part, but: Collection[int] = (), without: Collection[str] = ()) -> str:
        """Return the text of a part but for some tokens and words of storage: the file's, or with macros expanded."""
        left_out = {*but, *(k for k in self._specifiers(part) if self._words[k] in without)}
        text = self._raw(part, left_out)
        text = self._expanded(part, left_out) if text is None else text
        return _OWN_PRAGMA.sub("", text).strip()

    def _others(self, part: Part, needed: frozenset[str]) -> set[int]:
        """Return the tokens of variables that are declared together with needed ones, and the commas of these."""
        words = self._words
        left_out, last = set[int](), -1
        for start, name, end in reversed([*self._declarators(part)]):
            if words[name] not in needed:
                left_out |= {*range(start, end + (words[end] == ","))}
            elif last < 0 and words[end] == ",":
                left_out.add(end)
            last = last if words[name] not in needed else name
        return left_out

    def _declarators(self, part: Part) -> Iterator[tuple[int, int, int]]:
        """Yield the first token of each declared variable, that of its name, and the comma or semicolon after it."""
        words = self._words
        name, depth, braces, start = -1, 0, 0, -1
        for k in range(part.start, part.end):
            depth += (words[k] in "([{") - (words[k] in ")]}")
            braces += (words[k] == "{") - (words[k] == "}")
            if name < 0 and braces == 0 and words[k] in part.names:
                name = k
                while start < 0 or (words[start - 1] in "*(" and start > 0):
                    start = k if start < 0 else start - 1
            if depth == 0 and words[k] in ",;":
                yield start, name, k
                name, start = -1, k + 1

    def _specifiers(self, part: Part) -> Iterator[int]:
        """Yield the tokens of a declaration before its first bracket."""
        for k in range(part.start, part.end):
            if self._words[k] in "({[=":
                return
            yield k

    def _initialisers(self, part: Part) -> set[int]:
        """Return the tokens of the initial values of variables."""
        found, depth, inside = set[int](), 0, False
        for k in range(part.start, part.end):
            word = self._words[k]
            depth += (word in "([{") - (word in ")]}")
            inside = (inside or (word == "=" and depth == 0)) and not (word in ",;" and depth == 0)
            if inside:
                found.add(k)
        return found

    def _raw(self, part: Part, left_out: Collection[int]) -> str | None:
        """Return the text as the file has it, None where macros of the file or conditions decide what it is."""
        tokens = self.source.tokens[part.start : part.end]
        first, last = tokens[0], tokens[-1]
        file = first.span.file
        if first.place is None or last.place is None or is_cxx(file) or any(t.span.file != file for t in tokens):
            return None
        whole = self.source.sources[file]
        text = whole[first.place[0] : last.place[1]]
        code = _NO_CODE.sub(" ", text)
        if _DIRECTIVE.search(code) or self.macros & set(_NAME.findall(code)):
            return None
        out, at = "", first.place[0]
        for k in sorted(left_out):
            place = self.source.tokens[k].place
            if place is None:
                return None
            out += whole[at : place[0]].rstrip() if self._words[k] == "=" else whole[at : place[0]]
            at = place[1] + (whole[place[1] : place[1] + 1] == " ")
        return out + whole[at : last.place[1]]

    def _expanded(self, part: Part, left_out: Collection[int]) -> str:
        """Return the text with its macros expanded, its lines indented as the file has them, without empty ones."""
        out = ""
        for k in range(part.start, part.end):
            no_word = k in left_out or self._words[k] == OTHER_TYPE
            out += "" if no_word or k == part.start else self._gap(k)
            for said in self._omitted.get(k, ()):
                out = f"{out.rstrip(' ')} {said} "
            out += "" if no_word else self._words[k]
        return re.sub(r"~\(\s*(__real__|__imag__)\s*\)", r"\1", _TYPEOF.sub(r"__typeof__(\1)", out))

    def _gap(self, k: int) -> str:
        """Return what is between a token and the one before it: the end of a line with the pragmas, or blanks."""
        before, token = self.source.tokens[k - 1 : k + 1]
        gap = self.source.text[before.offset + len(before.text) : token.offset]
        if "\n" not in gap:
            return gap[:1]
        numbers = (int(m[1]) for m in _PRAGMA.finditer(gap))
        pragmas = "".join(f"\n#pragma {self.source.pragmas[n].content.text.strip()}" for n in numbers)
        indent = token.span.text[: len(token.span.text) - len(token.span.text.lstrip())]
        return f"{pragmas}\n{indent}"

    @cached_property
    def _words(self) -> list[str]:
        return [token.text for token in self.source.tokens]

    @cached_property
    def _omitted(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for k, said in self.source.omitted:
            found.setdefault(k, []).append(said)
        return found
