"""The declarations of a file at file scope, each with the names that it declares and uses, from the tokens.

    static real half(real x) { real y = x / two; return y; }      declares half; uses real and two

No parser is needed, so that what pycparser cannot read may stand among them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from looptune.frontend.token_text import OTHER_TYPE

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Preprocessed

_STORAGE = frozenset(("static", "extern", "typedef", "inline", "_Noreturn", "register", "auto", "_Thread_local"))
_QUALIFIERS = frozenset(("const", "volatile", "restrict", "_Atomic"))
_NUMBERS = frozenset(
    ("void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "_Complex", "__int128",
     "_Float16", "__bf16", "_Float32", "_Float64", "_Float128", "__float128")
)  # fmt: skip
_TAGGED = frozenset(("struct", "union", "enum"))
_WITH_GROUP = frozenset(("_Alignas", "_Static_assert"))
_OTHERS = frozenset(
    ("sizeof", "return", "if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", "goto")
)
_NO_NAMES = _STORAGE | _QUALIFIERS | _NUMBERS | _TAGGED | _WITH_GROUP | _OTHERS
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Part:
    """A declaration at file scope: the tokens from ``start`` to ``end``, of which ``names`` are declared.

    Types with a tag are named as ``struct s``. ``uses`` are the names in it that are declared elsewhere. ``is_type``:
    it declares neither variables nor functions. ``is_function`` is true of definitions and declarations of functions,
    ``has_body`` of the former. ``is_constant``: every variable is constant; ``is_initialised``: one has a value.
    """

    start: int
    end: int
    names: frozenset[str]
    uses: frozenset[str]
    storage: frozenset[str]
    is_type: bool
    is_function: bool
    has_body: bool
    is_constant: bool
    is_initialised: bool

    @property
    def is_static(self) -> bool:
        return "static" in self.storage

    @property
    def is_table(self) -> bool:
        """Return whether it has constants with their values, so that a copy is as good."""
        return not self.is_type and self.is_constant and self.is_initialised


def declared_parts(source: Preprocessed) -> tuple[Part, ...]:
    """Return the declarations and definitions at file scope in the order of the file."""
    words = [token.text for token in source.tokens]
    bounds = [b for b in _bounds(words) if b[1] - b[0] > 1]
    parts = [_part(words[slice(*b)], b) for b in bounds]
    types = frozenset(name for p in parts if p.is_type for name in p.names)
    attributes: dict[int, set[str]] = {}
    for k, said in source.omitted:
        attributes.setdefault(k, set()).update(_NAME.findall(said))
    found = []
    for p in parts:
        used = {*free_names(words[p.start : p.end], types)}.union(
            *(attributes.get(k, ()) for k in range(p.start, p.end))
        )
        found.append(replace(p, uses=frozenset(used) - p.names))
    return tuple(found)


def _bounds(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first token of each declaration and the one after its last."""
    found: list[tuple[int, int]] = []
    start = depth = 0
    is_body = False
    for k, word in enumerate(words):
        if word == "{" and depth == 0:
            is_body = k == start or words[k - 1] == ")"
            while start == k or (is_body and found and "(" not in words[start:k]):
                # as before C89: the types of the parameters stand after the parentheses
                if not found:
                    break
                start, _ = found.pop()
        depth += (word in "([{") - (word in ")]}")
        if depth == 0 and (word == ";" or (word == "}" and is_body)):
            found.append((start, k + 1))
            start, is_body = k + 1, False
    return found


def _closing(words: Sequence[str], k: int) -> int:
    """Return the place after the bracket that closes the one at ``k``."""
    depth = 0
    for end in range(k, len(words)):
        depth += (words[end] in "([{") - (words[end] in ")]}")
        if depth == 0:
            return end + 1
    return len(words)


def _is_name(word: str) -> bool:
    return _NAME.fullmatch(word) is not None and word not in _NO_NAMES


def _part(words: Sequence[str], bounds: tuple[int, int]) -> Part:
    at, before = _specifiers(words, 0)
    declared = list(_declarators(words, at, before))
    tags = {*_tags(words)} if words[-1] != "}" else set()
    is_function = bool(declared) and declared[0].is_function
    return Part(
        *bounds, frozenset({d.name for d in declared} | tags), frozenset(), frozenset(_STORAGE.intersection(before)),
        is_type="typedef" in before or not declared, is_function=is_function and "typedef" not in before,
        has_body=is_function and words[-1] == "}",
        is_constant=all(d.is_constant for d in declared) and "volatile" not in before,
        is_initialised=any(d.is_initialised for d in declared),
    )  # fmt: skip


def _specifiers(words: Sequence[str], k: int) -> tuple[int, list[str]]:
    """Return where the declarators begin, and the words of storage and the qualifiers before them."""
    found: list[str] = []
    has_type = False
    while k < len(words):
        word, following = words[k], words[k + 1 : k + 3]
        if word in _TAGGED:
            k += 2 if following and _is_name(following[0]) else 1
            k = _closing(words, k) if words[k : k + 1] == ["{"] else k
            has_type = True
            continue
        if word in _WITH_GROUP:
            k = _closing(words, k + 1)
            continue
        if word in _STORAGE | _QUALIFIERS or word == OTHER_TYPE:
            found.append(word)
        elif word not in _NUMBERS and (has_type or not _is_name(word) or _is_called(following)):
            break
        else:
            has_type = True
        k += 1
    return k, found


def _is_called(following: Sequence[str]) -> bool:
    """Tell whether a name with these words after it is that of a function, whose type is an implicit int."""
    return following[:1] == ["("] and following[1:] != ["*"]


class _Declarator(NamedTuple):
    name: str
    is_function: bool
    is_constant: bool
    is_initialised: bool


def _declarators(words: Sequence[str], k: int, before: Collection[str]) -> Iterator[_Declarator]:
    """Yield what is declared from ``k`` to the end of the declaration or of the brackets around it."""
    depth, stars, expected = 0, "", True
    for at in range(k, len(words)):
        word = words[at]
        depth += (word in "([{") - (word in ")]}")
        if depth < 0 or (depth == 0 and word == ";") or (word == "{" and depth == 1 and words[at - 1] == ")"):
            return
        if expected and _is_name(word):
            constant = stars.rpartition("*")[2] if "*" in stars else before
            end = _value(words, at + 1)
            yield _Declarator(word, words[at + 1 : at + 2] == ["("], "const" in constant, words[end : end + 1] == ["="])
            expected = False
        elif expected:
            stars += f" {word}"
        elif depth == 0 and word == ",":
            stars, expected = "", True


def _value(words: Sequence[str], k: int, ends: Collection[str] = ("=", ",", ";")) -> int:
    """Return where one of ``ends`` is after a declarator."""
    while k < len(words) and words[k] not in ends:
        k = _closing(words, k) if words[k] in "([{" else k + 1
    return k


def _tags(words: Sequence[str]) -> Iterator[str]:
    """Yield the structs, unions and enumerations that are declared with a tag, and the constants of the latter."""
    for k, word in enumerate(words):
        if word not in _TAGGED:
            continue
        tag = words[k + 1] if _is_name(words[k + 1]) else ""
        after = words[k + 2] if tag else words[k + 1]
        if tag and (after == "{" or words[k + 2 :] == [";"]):
            yield f"{word} {tag}"
        if word == "enum" and after == "{":
            at = words.index("{", k)
            yield from (words[j + 1] for j in range(at, _closing(words, at) - 1)
                        if words[j] in "{," and _is_name(words[j + 1]))  # fmt: skip


def free_names(words: Sequence[str], types: Collection[str]) -> Iterator[str]:
    """Yield the names in a declaration that are neither fields nor declared inside of it.

    >>> [*free_names("double f ( real x ) { int y = x + n ; return y ; }".split(), {"real"})]
    ['f', 'real', 'n']
    """
    inside = {*_declared_inside(words, types)}
    for k, word in enumerate(words):
        before = words[k - 1] if k else ""
        if before in _TAGGED and _is_name(word):
            yield f"{before} {word}"
        elif before not in (".", "->") and _is_name(word) and word not in inside:
            yield word


def _declared_inside(words: Sequence[str], types: Collection[str]) -> Iterator[str]:
    """Yield the parameters and the variables of a function, and the fields of a struct."""
    for k in range(1, len(words)):
        is_statement = words[k - 1] in "{};" or (words[k - 1] == "(" and words[k - 2] == "for")
        if (is_statement or words[k - 1] in "(,") and _begins_declaration(words, k, types):
            at, before = _specifiers(words, k)
            end = len(words) if is_statement else _value(words, at, ("=", ",", ")"))
            yield from (d.name for d in _declarators(words[:end], at, before))


def _begins_declaration(words: Sequence[str], k: int, types: Collection[str]) -> bool:
    word, following = words[k], words[k + 1] if k + 1 < len(words) else ""
    if word in _STORAGE | _QUALIFIERS | _NUMBERS | _TAGGED:
        return True
    is_type = word in types or word.endswith("_t")
    return _is_name(word) and (_is_name(following) or following in _QUALIFIERS or (is_type and following == "*"))
