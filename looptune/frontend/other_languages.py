"""Files of other languages: the C in C++ is read, and what else stands there is refused by its name.

    extern "C" void f(const float &a, float *x)          void f(const float  a, float *x)
    x[i] = std::max(x[i], static_cast<float>(n))    ─▶   x[i] = std__max(x[i],            (float)(n))

What C++ spells differently is rewritten in place, so that each token keeps its column. No front end of C++ is used:
tree-sitter's has no types, and libclang's types would be a second front end beside that of C. A reference that is
written to, a container, a template, a class or a lambda needs types that C does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from looptune.core.errors import UsageError

CXX_SOURCES = frozenset({".cpp", ".cc", ".cxx", ".c++", ".C"})
_CXX = CXX_SOURCES | {".hpp", ".hh", ".hxx", ".H"}
_LANGUAGES = MappingProxyType({
    **dict.fromkeys((".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".F", ".F90"), "Fortran"),
    **dict.fromkeys((".cu", ".cuh"), "CUDA"), ".cl": "OpenCL", ".py": "Python", ".jl": "Julia", ".rs": "Rust",
    ".m": "MATLAB or Objective-C", ".java": "Java", ".go": "Go",
})  # fmt: skip
_WHAT_HELPS = MappingProxyType({
    "Fortran": "write the loops as a C function, which Fortran calls through iso_c_binding",
    "CUDA": "give it the sequential loops that the kernels were written from",
    "OpenCL": "give it the sequential loops that the kernels were written from",
})  # fmt: skip


def check_language(path: Path) -> None:
    """Raise UsageError for a file whose name says that it holds another language than C or C++."""
    language = _LANGUAGES.get(path.suffix)
    if language is not None:
        helps = _WHAT_HELPS.get(language, "write the loops as a C function")
        raise UsageError(f"{path} is {language}, and looptune reads C: {helps}")


def is_cxx(path: str) -> bool:
    """Tell whether the name of a file is one of C++."""
    return Path(path).suffix in _CXX


_OVERLOADED = MappingProxyType({
    "max": ("(a, b)", "((a) < (b) ? (b) : (a))"), "min": ("(a, b)", "((b) < (a) ? (b) : (a))"),
    "abs": ("(a)", "((a) <= 0 ? 0 - (a) : (a))"),
})  # fmt: skip
"""Functions of ``std`` for integers and floats; 0 - a has the sign of |a| also where a is -0.0."""
_MACROS = MappingProxyType({
    "bool": "_Bool", "true": "1", "false": "0", "nullptr": "((void *)0)",
    **{f"std__{word}{given}": value for word, (given, value) in _OVERLOADED.items()},
    **{f"{word[:2]}_{given}": value for word, (given, value) in _OVERLOADED.items()},
})  # fmt: skip
"""What C++ defines, and its overloaded functions under the names that ``as_c`` gives them."""

_ALOUD = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
"""Comments and literals."""
_WORD = r"[A-Za-z_]\w*"
_NUMBER = r"(?:unsigned\s+|signed\s+|long\s+|short\s+)*(?:int|float|double|char|long|short|unsigned|bool|\w+_t)"
_TYPE = rf"(?:{_NUMBER}|{_WORD})"
_SAME_IN_C = (
    "acos|acosh|asin|asinh|atan|atan2|atanh|cbrt|ceil|copysign|cos|cosh|erf|erfc|exp|exp2|expm1|fabs|fdim|floor|fma|"
    "fmax|fmin|fmod|hypot|ldexp|lgamma|log|log10|log1p|log2|lround|nearbyint|pow|remainder|rint|round|sin|sinh|sqrt|"
    "tan|tanh|tgamma|trunc|isnan|isinf|isfinite|signbit|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|printf|memset|memcpy|"
    "malloc|free|exit|rand|srand"
)
_RULES: tuple[tuple[str, str], ...] = (
    (rf"\b(?:std)?::(?=(?:{_SAME_IN_C})\b)", ""),
    (rf"\busing\s+(?:namespace\s+)?{_WORD}(?:::{_WORD})*\s*;", ""),
    (r"\bconstexpr\b", "const"),
    (rf"\bauto(?=\s+{_WORD}\s*=\s*[-+]?\d+\s*[;,])", "int"),
    (rf"(?<=[(,])(\s*const\s+{_TYPE}|\s*{_TYPE}\s+const)(\s*)&(?=\s*{_WORD}\s*[,)])", r"\1\2 "),
    (rf"(?<=[(,])(\s*(?:const\s+)?{_TYPE}(?:\s+const)?\s*)\(\s*&(\s*{_WORD}\s*)\)(?=\s*\[)", r"\1  \2 "),
    (rf"\b(?:static|reinterpret|const)_cast\s*<(\s*{_NUMBER}\s*(?:const\s*)?\**\s*)>", r"(\1)"),
    (r'\bextern\s+"C"(?!\s*\{)', ""),
    (r'\bstd::c(?:out|err|log)\b(?:"(?:\\.|[^"\\\n])*"|[^;"{}])*;', 'puts("");'),
    (rf"\bdelete\b\s*(?:\[\s*\])?\s*({_WORD})\s*;", r"free(\1);"),
)  # fmt: skip
"""What stands there, and what is written in its place, with blanks before it up to the same length.

A stream's output becomes another call with an effect, which the analysis keeps in order; nothing else is asked of it.
"""
_C_HEADERS = frozenset({
    "assert", "complex", "ctype", "errno", "float", "inttypes", "limits", "locale", "math", "setjmp", "signal",
    "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time",
})  # fmt: skip
_OPENING = re.compile(rf'\b(?:extern\s+"C"|(?:inline\s+)?namespace(?:\s+{_WORD}(?:::{_WORD})*)?)\s*\{{')


def macros(text: str) -> dict[str, str]:
    """Return what a C++ file begins with: the name of a struct is a type."""
    return {**_MACROS, **{name: f"struct {name}" for name in _structs(text)}}


def _structs(text: str) -> set[str]:
    return {found[1] for found in _aloud(re.compile(rf"\bstruct\s+({_WORD})\s*\{{"), text)}


def as_c(text: str) -> str:
    """Return the text of a C++ file with what C spells differently as C, each token where it was."""
    for name in _structs(text):
        text = _replaced(rf"\bstruct(?=\s+{name}\b)", "", text)
    text = _with_macros(text)
    for pattern, new in _RULES:
        text = _replaced(pattern, new, text)
    while (opening := next(_aloud(_OPENING, text), None)) is not None:
        end = _closing(text, opening.end())
        text = _blank(text, *opening.span())
        if end is not None:
            text = _blank(text, end, end + 1)
    return text


def _with_macros(text: str) -> str:
    """Return the text with the overloaded functions under the names of macros, which evaluate arguments twice.

    A call whose arguments may have effects keeps ``std::``, and without it gets a name that nothing defines.
    """
    places: list[tuple[int, int, str]] = []
    for word in _OVERLOADED:
        used = re.search(rf"\busing\s+(?:namespace\s+std|std::{word})\s*;", text)
        used = used or (_GLOBAL_ABS.search(text) if word == "abs" else None)
        own = re.search(rf"\b{word}\s*\([^()]*\)\s*\{{|#\s*define\s+{word}\b", text)
        for call in _aloud(re.compile(rf"\bstd::{word}\s*\("), text):
            if _is_plain(text, call.end()):
                places.append((call.start(), call.start() + 5, "std__"))
        for call in _aloud(re.compile(rf"(?<![\w:.>])\b{word}\s*\("), text) if used and not own else ():
            name = f"{word[:2]}_" if _is_plain(text, call.end()) else f"{word[:2]}0"
            places.append((call.start(), call.start() + 3, name))
    for start, end, name in places:
        text = text[:start] + name + text[end:]
    return text


_GLOBAL_ABS = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:math|stdlib)\.h[>\"]", re.MULTILINE)
"""With these headers, C++ has ``abs`` of integers and floats outside of ``std`` as well."""
_HAS_EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")


def _is_plain(text: str, start: int) -> bool:
    """Tell whether the arguments of a call, which begin at a place, change nothing."""
    depth, end = 1, start
    while depth and end < len(text):
        depth += (text[end] == "(") - (text[end] == ")")
        end += 1
    arguments = text[start : end - 1]
    known = re.compile(rf"(?:{_SAME_IN_C}|max|min|abs|sizeof)[fl]?")
    called = _CALLED.findall(arguments)
    return _HAS_EFFECT.search(arguments) is None and all(known.fullmatch(name) for name in called)


def as_compiled(text: str) -> str:
    """Return the text of a C++ file for a C compiler, with the headers of C; each token is where it was."""
    return re.sub(r"^([ \t]*#[ \t]*include)[ \t]*<(\w+)>", _header, as_c(text), flags=re.MULTILINE)


def _header(include: re.Match[str]) -> str:
    name = include[2].removeprefix("c")
    known = include[2] == f"c{name}" and name in _C_HEADERS
    return (f"{include[1]}<{name}.h>" if known else "").ljust(len(include[0]))


def _aloud(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches that begin in no comment and in no literal."""
    silent = [m.span() for m in _ALOUD.finditer(text)]
    for found in pattern.finditer(text):
        if not any(a <= found.start() < b for a, b in silent):
            yield found


def _replaced(pattern: str, new: str, text: str) -> str:
    out, at = [], 0
    for found in _aloud(re.compile(pattern), text):
        made = found.expand(new)
        lost = found.end() - found.start() - len(made)
        lines = "\n" * (found[0].count("\n") - made.count("\n"))
        out += [text[at : found.start()], lines, " " * (lost - len(lines)), made]
        at = found.end()
    return "".join((*out, text[at:]))


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def _closing(text: str, start: int) -> int | None:
    """Return the place of the brace that closes one before ``start``."""
    depth = 1
    for found in _aloud(re.compile(r"[{}]"), text[start:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return start + found.start()
    return None
