"""Statements of GNU C that pycparser does not read, as C that it does: what it reads in place of which tokens.

    case 1 ... 5:                                    case __looptune_range(1, 5):
    int t[4] = {[0 ... 3] = 1};                      int t[4] = {[__looptune_range(0, 3)] = 1};
    asm("add %1, %0" : "+r"(x) : "r"(y) : "cc");     __looptune_asm(&(x), (y));
    asm goto("jc %l1" : : "r"(y) : : out);           { if (__looptune_volatile_asm((y))) goto out; }
    x = a ?: b;                                      x = a ? __looptune_same() : b;
    __auto_type x = e;                               __typeof__(e) x = e;
    struct point p = {x: 1, y: 2};                   struct point p = {.x = 1, .y = 2};
    k = va_arg(arguments, int);                      k = (*(int *) va_arg((arguments)));
    void *p = &&out;                                 void *p = __looptune_label(out);
    goto *p;                                         { __looptune_jump(p); goto __looptune_anywhere; }

Assembly is a call of a function of which nothing is known, which gets its inputs and the addresses of its outputs: it
may change what any call may. A nest that contains it is refused. It is volatile, and has to be executed in the order of
the text, if it says so or has no outputs. A register of a variable, which a call would change, is not read: ``register
int x asm("r8")``.

A computed ``goto`` may lead to each label whose address the function takes: these are kept, as the labels are that a
``goto`` names, and a nest with a computed ``goto`` or with one of them is refused.

The text and its tokens stay as they are. ``c_lexer`` gives pycparser the other tokens at the places of those that they
replace, and ``c_parser`` knows the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from looptune.frontend.predefined_macros import TYPEOF

RANGE = "__looptune_range"
"""The function whose arguments are the ends of a range of cases, or of elements in a list."""
SAME = "__looptune_same"
"""The function that stands for the value of a condition."""
ASSEMBLY, VOLATILE = "__looptune_asm", "__looptune_volatile_asm"
"""The functions that stand for assembly."""
ASSEMBLY_WORDS = ("asm", "__asm__", "__asm")
LABEL, JUMP, ANYWHERE = "__looptune_label", "__looptune_jump", "__looptune_anywhere"
"""What stands for the address of a label and for a computed ``goto``, and where the latter leads."""
REFUSED = {
    ASSEMBLY: "inline assembly is not supported: write C instead",
    VOLATILE: "inline assembly is not supported: write C instead",
    JUMP: "a computed goto is not supported: write a switch instead",
}
"""Why a call of these functions is refused."""
_TYPES = ("*", "long", "int", "unsigned", "signed", "char")
"""Words that end a type in front of the address of a label, ``(void *) &&out``."""
_SPELLINGS = {"__alignof__": "_Alignof", "__alignof": "_Alignof", "__builtin_offsetof": "offsetof"}
_ARGUMENT = ("va_arg", "__builtin_va_arg")
_QUALIFIERS = ("volatile", "inline", "goto", "const")
_OUTPUTS, _INPUTS, _LABELS = 1, 2, 4
"""The numbers of colons before the parts of assembly."""


def replaced_tokens(words: Sequence[str]) -> Mapping[int, str]:
    """Return the texts that are read in place of tokens, by the indices of these.

    >>> replaced_tokens("switch ( c ) { case 'a' . . . 'z' : return 1 ; }".split())
    {5: 'case __looptune_range(', 7: ',', 11: '):'}
    """
    found: dict[int, str] = {}
    labels = {word for word, after in pairwise(words) if after == ":"}
    found |= _named_fields(words) if labels else {}
    for k, (word, after) in enumerate(pairwise(words)):
        if word == "case":
            found |= _range(words, k, _colon(words, k))
        elif word == "[":
            found |= _range(words, k, next((j for j in range(k, len(words)) if words[j] in "];"), k))
        elif word in ASSEMBLY_WORDS:
            found |= _assembly(words, k)
        elif (word, after) == ("?", ":"):
            found[k] = f"? {SAME}()"
        elif word in _SPELLINGS:
            found[k] = _SPELLINGS[word]
        elif word == "__auto_type":
            found |= _of_value(words, k)
        elif word in _ARGUMENT and after == "(":
            found |= _argument(words, k)
        elif word == "&&" and after in labels and _is_unary(words, k):
            found |= {k: f"{LABEL}(", k + 1: f"{after})"}
        elif (word, after) == ("goto", "*"):
            end = next((j for j in range(k, len(words)) if words[j] == ";"), k)
            found |= {k: f"{{ {JUMP}(", k + 1: "", end: f"); goto {ANYWHERE}; }}"}
    return found


def _of_value(words: Sequence[str], at: int) -> dict[int, str]:
    """Return what replaces ``__auto_type`` in front of a variable: the type of its initial value."""
    end = next((k for k in _outside_brackets(words, at) if words[k] in (";", ",")), at)
    value = words[at + 3 : end]
    if not value or words[at + 2] != "=" or words[end] != ";":
        return {}
    others = replaced_tokens(value)
    text = " ".join(others.get(k, word) for k, word in enumerate(value))
    return {at: f"struct {{ char {TYPEOF}[sizeof({text})]; }}"}


def _outside_brackets(words: Sequence[str], first: int) -> Iterator[int]:
    """Yield the indices of the tokens from one on that are in no brackets which open after it."""
    depth = 0
    for k in range(first, len(words)):
        depth -= words[k] in (")", "]", "}")
        if depth == 0:
            yield k
        depth += words[k] in ("(", "[", "{")


def _named_fields(words: Sequence[str]) -> dict[int, str]:
    """Return what replaces ``field:`` in the braces of lists, in which no label can stand."""
    found: dict[int, str] = {}
    lists: list[bool] = []
    for k, word in enumerate(words):
        if word == "{":
            lists.append(_begins_list(words, k, bool(lists) and lists[-1]))
        elif word == "}":
            lists = lists[:-1]
        elif word == ":" and lists and lists[-1] and words[k - 2] in ("{", ",") and words[k - 1].isidentifier():
            found |= {k - 1: f".{words[k - 1]} =", k: ""}
    return found


def _begins_list(words: Sequence[str], at: int, inside: bool) -> bool:
    """Tell whether a brace begins the list of an initialiser or of a compound literal, ``inside`` of one or not."""
    before = words[at - 1] if at else ""
    if before == ")":
        opening = _opening(words, at - 1)
        return opening > 0 and words[opening - 1] in ("=", "(", ",", "return", "+", "-", "*", "/", "?", ":", "&")
    return before == "=" or (inside and before in ("{", ",", ":", "="))


def _opening(words: Sequence[str], closing: int) -> int:
    """Return the index of the parenthesis that opens one."""
    depth = 0
    for k in range(closing, -1, -1):
        depth += (words[k] == ")") - (words[k] == "(")
        if depth == 0:
            return k
    return 0


def _is_unary(words: Sequence[str], at: int) -> bool:
    """Tell whether ``&&`` is before its only operand: none is in front of it, a type in parentheses apart."""
    before = words[at - 1]
    if before == ")":
        return words[at - 2] in _TYPES
    return re.fullmatch(r"[\w\]\"'.]+", before[-1:]) is None or before == "return"


def _range(words: Sequence[str], first: int, end: int) -> dict[int, str]:
    """Return what replaces the tokens of a range, as in ``case A ... B:``, between the token before and that after it.

    pycparser reads the three dots as one token.
    """
    dots = next((k for k in range(first, end) if words[k : k + 3] == [".", ".", "."]), None)
    return {} if dots is None else {first: f"{words[first]} {RANGE}(", dots: ",", end: f"){words[end]}"}


def _colon(words: Sequence[str], first: int) -> int:
    """Return the index of the ``:`` that ends a label, ``first`` where none does."""
    conditions = 0
    for k in range(first, len(words)):
        if words[k] in (";", "{", "}"):
            break
        if words[k] == ":" and conditions == 0:
            return k
        conditions += (words[k] == "?") - (words[k] == ":")
    return first


def _argument(words: Sequence[str], first: int) -> dict[int, str]:
    """Return what replaces the tokens of ``va_arg(e, type)``, nothing where a ``*`` after the type makes no pointer."""
    closing = _closing(words, first + 1)
    comma = next((k for k in _at_depth_one(words, first + 1, closing) if words[k] == ","), closing)
    kind = words[comma + 1 : closing]
    if not kind or not all(re.fullmatch(r"[A-Za-z_]\w*|\*", word) for word in kind):
        return {}
    left_out = dict.fromkeys(range(comma, closing), "")
    return {first: f"(*({' '.join(kind)} *) {words[first]}(", **left_out, closing: ")))"}


# -- assembly ---------------------------------------------------------------------------------------


def _assembly(words: Sequence[str], first: int) -> dict[int, str]:
    """Return what replaces the tokens of assembly, nothing where it is no statement that is read."""
    opening = next((k for k in range(first + 1, len(words)) if words[k] not in _QUALIFIERS), len(words))
    closing = _closing(words, opening)
    text = [word[0] for word in words[opening : opening + 2]]
    if text != ["(", '"'] or words[closing + 1 : closing + 2] != [";"] or not _begins_statement(words, first):
        return {}
    made = dict.fromkeys(range(first, closing), "")
    colons = 0
    separator = ""
    labels: list[str] = []
    for k in _at_depth_one(words, opening, closing):
        colons += words[k] == ":"
        if words[k] == "(" and words[k - 1].startswith('"') and colons in (_OUTPUTS, _INPUTS):
            made |= {j: words[j] for j in range(k, _closing(words, k) + 1)}
            made[k] = f"{separator}{'&' if colons == _OUTPUTS else ''}("
            separator = ","
        elif colons == _LABELS and words[k] not in (":", ","):
            labels.append(words[k])
    has_outputs = any(text.endswith("&(") for text in made.values())
    made[first] = f"{ASSEMBLY if has_outputs and 'volatile' not in words[first:opening] else VOLATILE}("
    if "goto" in words[first:opening]:
        jumps = f" else if ({VOLATILE}()) ".join(f"goto {label};" for label in labels)
        made |= {first: f"{{ if ({VOLATILE}(", closing: f")) {jumps}", closing + 1: "}"}
    return {k: text for k, text in made.items() if text != words[k]}


def _begins_statement(words: Sequence[str], first: int) -> bool:
    """Tell whether a statement begins at a token: not so where a name, or the parentheses of a function, are before."""
    before = words[first - 1] if first else ""
    if before == ")":
        depth = 0
        for k in range(first - 1, 0, -1):
            depth += (words[k] == ")") - (words[k] == "(")
            if depth == 0:
                return words[k - 1] in ("if", "for", "while", "switch")
    return before in ("{", "}", ";", ":", "else", "do")


def _closing(words: Sequence[str], opening: int) -> int:
    """Return the index of the parenthesis that closes one, that of the last token where none does."""
    depth = 0
    for k in range(opening, len(words)):
        depth += (words[k] == "(") - (words[k] == ")")
        if depth == 0:
            return k
    return len(words) - 1


def _at_depth_one(words: Sequence[str], opening: int, closing: int) -> Iterator[int]:
    """Yield the indices of the tokens inside of parentheses that are in no others, and of those that open others."""
    depth = 0
    for k in range(opening, closing):
        if depth == 1:
            yield k
        depth += (words[k] == "(") - (words[k] == ")")
