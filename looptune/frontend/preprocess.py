"""Preprocess C text to one text, each token of which has a place in the files that it came from.

Only this module imports pcpp. ``<...>`` headers are read if a folder that the user named has them and skipped
otherwise; a ``"..."`` header that is missing is left out with a warning. A name given with -D keeps its value when the
text defines it again, so that the sizes of a published file can be set from outside.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pcpp

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.frontend.condition import LIMITS, evaluate_condition
from looptune.frontend.logical_lines import splice_lines
from looptune.frontend.other_languages import as_c, is_cxx
from looptune.frontend.other_languages import macros as cxx_macros
from looptune.frontend.pragma import Pragma, read
from looptune.frontend.predefined_macros import COMPLEX, COMPLEX_HEADERS, GNU, predefined
from looptune.frontend.source_text import decode, read_source
from looptune.frontend.token_text import OTHER_TYPE, LeftOut, place_of, would_glue

_NEED_NAME = ("define", "undef", "ifdef", "ifndef", "if", "elif", "include")
_DEEPEST = 50
"""Includes inside includes; gcc stops at 200, pcpp's recursion allows fewer."""
_MOST = 100_000
"""Tokens that the macros of a line make."""
_ASKED = ("__has_include", "__has_include_next", "__has_attribute", "__has_builtin", "__has_c_attribute",
          "__has_cpp_attribute", "__has_feature", "__has_extension")  # fmt: skip
_OF_SYSTEM = ("sys", "linux", "asm", "bits", "net", "netinet", "arpa", "machine")
"""The first folders of headers that are not the program's."""
_SYSTEM = ("/usr/local/include", "/usr/include")
_NUMBER = re.compile(r"0[xX](?:[pP][+-]|[\w.])*|\.?\d(?:[eE][+-]|[\w.])*", re.ASCII)
_FIRST_OF_NUMBER = frozenset(".0123456789")
_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*")


@dataclass(frozen=True, slots=True)
class Token:
    """A token at ``offset`` of the preprocessed text; ``macro`` is the innermost macro from which it comes.

    ``place`` has its begin and end in its file, None if it stands in the body of a macro.
    """

    text: str
    offset: int
    span: Span
    macro: str | None
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Include:
    """An ``#include`` of a file that was read: ``text[start:end]`` of ``file`` names ``path``, which is absolute."""

    file: str
    start: int
    end: int
    path: str


@dataclass(frozen=True, slots=True)
class Preprocessed:
    """A preprocessed text; the line ``#pragma k`` in it stands for ``pragmas[k]``.

    ``skipped`` names headers that were not read, ``missing`` those of them that the text has in quotes, with the place;
    ``defined`` are the lines that define or undefine a macro; ``ignored`` the errors that a tolerant reading ignored.
    ``includes`` are those of files that were found, also where a guard left their text out. ``attributes`` are those
    that make types others, by the index of the ``typedef`` that they stand in, or of the token in their place.
    ``omitted`` are the attributes and assembler names of GNU C, which ``text`` lacks, each with the index of the token
    before which it stands.
    """

    text: str
    tokens: tuple[Token, ...]
    pragmas: tuple[Pragma, ...]
    sources: Mapping[str, str]
    macros: Mapping[str, str]
    skipped: tuple[str, ...]
    starts: tuple[int, ...]
    missing: tuple[tuple[str, Span], ...] = ()
    defined: tuple[Span, ...] = ()
    ignored: tuple[ParseError, ...] = ()
    includes: tuple[Include, ...] = ()
    attributes: Mapping[int, str] = field(default_factory=dict)
    omitted: tuple[tuple[int, str], ...] = ()

    def token_at(self, line: int, col: int) -> int:
        """Return the index of the token at a position of ``text``, or of the last one before it.

        Lines and columns count from 1.
        """
        offset = self.starts[min(line, len(self.starts)) - 1] + col - 1
        return max(0, bisect_right(self.tokens, offset, key=lambda t: t.offset) - 1)

    def closing(self, brace: Span) -> Span:
        """Return the position of the ``}`` that closes the ``{`` at ``brace``."""
        return self.closing_token(next(k for k, t in enumerate(self.tokens) if t.span == brace)).span

    def closing_token(self, first: int) -> Token:
        """Return the ``}`` that closes the ``{`` that is this token.

        Raises ParseError where there is none: what was left out as unreadable may have held it.
        """
        depth = 0
        for token in self.tokens[first:]:
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return token
        raise ParseError("'}' is missing", self.tokens[first].span)


def preprocess(
    text: str, path: str, defines: Mapping[str, str], include_dirs: Sequence[Path],
    begin: Mapping[str, str] | None = None, tolerant: bool = False, first: Sequence[Path] = (),
) -> Preprocessed:  # fmt: skip
    """Return ``text`` with its macros expanded.

    ``begin`` are the macros with which the file begins, those of the machine's compiler if it is None; unlike
    ``defines``, the text may redefine them. ``first`` are files that are included before the first line of the text.

    ``tolerant``: a header that no folder has under its path may be there under its name, an ``#error`` directive is
    ignored, and a condition that cannot be evaluated, such as the call of a
    macro of a missing header, is false.

    Raises ParseError at a malformed or ``#error`` directive.
    """
    machine = _Preprocessor(text, path, defines, include_dirs, begin, tolerant, first)
    machine.parse(machine.opened, path)
    return _write(machine)


class _Preprocessor(pcpp.Preprocessor):  # type: ignore[misc]  # pcpp has no types
    """pcpp, with each token of the source marked by its place: ``origin`` is (file, line, column)."""

    def __init__(
        self, text: str, path: str, defines: Mapping[str, str], include_dirs: Sequence[Path],
        begin: Mapping[str, str] | None, tolerant: bool, first: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        self.tolerant = tolerant
        self.first = first
        self.ignored: list[ParseError] = []
        self.main = path
        self.seen_main = False
        self.spelled: Callable[[str], str] = as_c if is_cxx(path) else str
        self.shown, self.opened = text, self.spelled(text)
        self.sources = {path: text}
        self.lines: dict[str, list[str]] = {}
        self.pragmas: list[Pragma] = []
        self.skipped: list[str] = []
        self.missing: list[tuple[str, Span]] = []
        self.includes: list[Include] = []
        self.defined: list[Span] = []
        self.expanding = Span(path, 1, 1)
        self.pinned: frozenset[str] = frozenset()
        self.numbered: dict[str, list[tuple[int, int]]] = {}
        usual = predefined()
        given = {} if begin is None else {n: v for n, v in begin.items() if n[0] != "_" and usual.get(n) != v}
        others = usual if begin is None else {n: v for n, v in begin.items() if n not in given}
        self.macros.update(_begun(tuple(others.items())))
        if is_cxx(path):
            self.macros.update(_begun(tuple(cxx_macros(text).items())))
        for name, value in (*given.items(), *defines.items()):
            self.define(f"{name} {value}")
        self.pinned = frozenset(defines)
        for folder in include_dirs:
            self.add_path(str(folder))

    @property
    def linemacro(self) -> int:
        """The value of ``__LINE__``, which ``#line`` directives change; pcpp sets it to the number in the file."""
        own = [(at, number) for at, number in self.numbered.get(self.expanding.file, ()) if at <= self.line_in_file]
        at, number = own[-1] if own else (0, 0)
        return self.line_in_file - at + number

    @linemacro.setter
    def linemacro(self, line: int) -> None:
        self.line_in_file = line

    def line_span(self, file: str, line: int) -> Span:
        """Return the whole of one line, its first non-blank column first."""
        if file not in self.lines:
            self.lines[file] = self.sources.get(file, "").split("\n")
        text = self.lines[file][line - 1] if 0 < line <= len(self.lines[file]) else ""
        return Span(file, line, len(text) - len(text.lstrip()) + 1, max(1, len(text.strip())), text)

    def group_lines(self, input: str, abssource: str) -> Iterator[list[Any]]:
        """Yield the tokens of each logical line.

        ``input`` has its trigraphs replaced, which gcc leaves as they are: the text as it was opened counts.
        """
        file = abssource if self.seen_main else self.main
        before = () if self.seen_main else self.first
        self.seen_main = True
        source = self.opened
        self.sources[file] = self.shown
        for path in before:
            yield list(self.including(path))
        breaks = [0, *(m.end() for m in re.finditer("\n", source))]
        whole = splice_lines(source)
        line: list[Any] = []
        for token in self.lexed(whole.text, file):
            at = whole.offset(token.lexpos)
            row = bisect_right(breaks, at)
            token.origin = (file, row, at - breaks[row - 1] + 1)
            token.place = (at, whole.offset(token.lexpos + token.width - 1) + 1)
            line.append(token)
            if token.type in self.t_WS and token.value == "\n":
                yield line
                line = []
        if line:
            last = copy(line[-1])
            last.type, last.value = self.t_NEWLINE, "\n"
            yield [*line, last]

    def including(self, path: Path) -> Iterator[Any]:
        """Yield the tokens of a directive before the first line, which no text has, that includes a file."""
        for token in self.lexed(f'#include "{path.absolute()}"\n', self.main):
            token.origin, token.place = (self.main, 1, 1), None
            yield token

    def lexed(self, text: str, file: str) -> Iterator[Any]:
        """Yield pcpp's tokens with each number as one, by C's rule for numbers before macros are replaced.

        pcpp ends the number before the letter in ``1E-20``, ``1.f`` and ``5ULL``, and a macro may have that name.
        ``width`` is in the text.
        """
        lexer = self.lexer.clone()
        lexer.input(text)
        lexer.lineno = 1
        while (token := lexer.token()) is not None:
            token.source = file
            whole = _NUMBER.match(text, token.lexpos) if token.value[0] in _FIRST_OF_NUMBER else None
            if whole is not None:
                lexer.lexpos = whole.end()
                is_integer = _INTEGER.fullmatch(whole[0]) is not None
                token.type = self.t_INTEGER if is_integer else "CPP_FLOAT"
                token.value = re.sub("ll", "l", whole[0], flags=re.IGNORECASE) if is_integer else whole[0]
            token.width = len(token.value) if whole is None else len(whole[0])
            yield token

    def define(self, tokens: Any) -> None:
        if isinstance(tokens, str):
            super().define(tokens)
            return
        takes_arguments = len(tokens) > 1 and tokens[1].value == "("
        if tokens[0].value in self.pinned and not takes_arguments:
            return
        if tokens[0].type != self.t_ID:
            raise ParseError("expected a macro name", self.line_span(*tokens[0].origin[:2]))
        body = [_copy(t) for t in tokens]
        self.defined.append(self.line_span(*tokens[0].origin[:2]))
        super().define(body)

    def undef(self, tokens: Any) -> None:
        if tokens[0].value not in self.pinned:
            self.defined.append(self.line_span(*tokens[0].origin[:2]))
            super().undef(tokens)
            # pcpp would not read a header again of which this is the guard
            for path in [path for path, guard in self.include_once.items() if guard == tokens[0].value]:
                del self.include_once[path]

    def on_error(self, file: str, line: int, msg: str) -> None:
        shown = file if file in self.sources else self.main
        words = " ".join(msg.split())
        raise ParseError(words[0].lower() + words[1:], self.line_span(shown, line))

    def on_file_open(self, is_system_include: bool, includepath: str) -> io.StringIO:
        if self.include_depth > _DEEPEST:
            last = self.lastdirective
            raise ParseError(f"#include is nested more than {_DEEPEST} deep", self.line_span(*last.origin[:2]))
        try:
            data = read_source(Path(includepath))
        except ParseError as error:
            raise ParseError(error.message, self.line_span(*self.lastdirective.origin[:2])) from None
        self.shown = decode(data, includepath)
        self.opened = self.spelled(self.shown)
        if is_cxx(self.main):
            self.macros.update(_begun(tuple(cxx_macros(self.shown).items())))
        return io.StringIO(self.opened)

    def include(self, tokens: list[Any], original_line: list[Any]) -> Iterator[Any]:
        """Yield the tokens of the file that a directive names, and note the directive."""
        comments = (self.t_COMMENT1, self.t_COMMENT2)
        words = [t for t in original_line if t.type not in self.t_WS and t.type not in comments][2:]
        path = self.found_path("".join(t.value for t in tokens).strip())
        if path is not None and words and words[0].place is not None:
            self.includes.append(Include(words[0].origin[0], words[0].place[0], words[-1].place[1], path))
        yield from super().include(tokens, original_line)

    def found_path(self, named: str) -> str | None:
        """Return the file that ``"file"`` or ``<file>`` names, by pcpp's rule: None if no folder has it."""
        folders = [*self.temp_path, *self.path] if named.startswith('"') else self.path
        paths = (Path(folder, named[1:-1]) for folder in folders)
        return next((str(Path(path).absolute()) for path in paths if path.is_file()), None)

    def on_include_not_found(self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str) -> str:
        where = self.line_span(*self.lastdirective.origin[:2])
        if is_malformed:
            raise ParseError('#include needs "file" or <file>', where)
        if not is_system_include and not self.has("__has_include", includepath):
            self.missing.append((includepath, where))
        self.skipped.append(includepath)
        if is_system_include and includepath in COMPLEX_HEADERS:
            self.define_complex()
        raise pcpp.OutputDirective(pcpp.Action.IgnoreAndRemove)

    def define_complex(self) -> None:
        """Define the macros of ``complex.h``, which are none of the text's own."""
        for name, value in COMPLEX.items():
            if name not in self.pinned:
                super().define(f"{name} {value}")
                self.macros[name].begun = True

    def on_directive_handle(self, directive: Any, toks: list[Any], ifpassthru: bool, precedingtoks: list[Any]) -> bool:
        self.lastdirective = directive
        name = directive.value
        values = [t.value for t in toks if t.type not in self.t_WS]
        if name == "pragma" and not values:
            raise pcpp.OutputDirective(pcpp.Action.IgnoreAndRemove)
        # pcpp looks at the words after "#if !defined" without asking whether there are any
        if name in _NEED_NAME and values in ([], ["!"], ["!", "defined"], ["!", "defined", "("]):
            raise ParseError(f"#{name} is incomplete", self.line_span(*directive.origin[:2]))
        if name in ("if", "elif"):
            toks[:] = self.evaluate_has(toks)
        if name == "include" and self.tolerant:
            self.include_by_name(toks)
        return True

    def include_by_name(self, toks: list[Any]) -> None:
        """Change the name of a header that no folder has to that of one which is installed in another folder."""
        named = re.fullmatch(r"""[<"](\w+)/(?:.*/)?([^/]+)[>"]""", "".join(t.value for t in toks).strip())
        if named is None or named[1] in _OF_SYSTEM:
            return
        path, name = named[0][1:-1], named[2]
        folders = [Path(p) for p in (*self.temp_path, *self.path)]
        here = any((folder / path).is_file() for folder in (*folders, *map(Path, _SYSTEM)))
        if not here and any((folder / name).is_file() for folder in folders):
            new = next(t for t in toks if t.type not in self.t_WS)
            new.type, new.value = self.t_STRING, f'"{name}"'
            toks[:] = [new]

    def expand_macros(self, tokens: list[Any], expanding_from: Sequence[str] = ()) -> list[Any]:
        """Return the tokens with their macros expanded.

        Raises ParseError where a line or a macro grows beyond what can be read.
        """
        before = len(tokens)
        named = next((t for t in tokens if getattr(t, "origin", None) is not None), None)
        self.expanding = self.expanding if named is None else self.line_span(*named.origin[:2])
        found: list[Any] = super().expand_macros(tokens, list(expanding_from))
        if len(found) - before > _MOST:
            raise ParseError(f"the macros here expand to more than {_MOST:,} tokens", self.expanding)
        return found

    def evalexpr(self, tokens: list[Any]) -> tuple[int, None]:
        """Return the value of the tokens after ``#if``."""
        where = self.line_span(*self.lastdirective.origin[:2])
        expanded = self.expand_macros(self.with_defined(self.expand_defined_macros(tokens, frozenset()), where))
        text = ""
        previous: Any = None
        for token in expanded:
            blank = token.type in (*self.t_WS, self.t_COMMENT1, self.t_COMMENT2)
            apart = blank or (previous is not None and would_glue(previous, token))
            text += " " * apart + ("" if blank else token.value)
            previous = None if blank else token
        try:
            return evaluate_condition(text, where, LIMITS if "limits.h" in self.skipped else {}), None
        except ParseError as error:
            self.fail(error)
            return 0, None

    def fail(self, error: ParseError) -> None:
        """Raise the error, or keep it in a tolerant reading."""
        if not self.tolerant:
            raise error
        self.ignored.append(error)

    def expand_defined_macros(self, tokens: list[Any], inside: frozenset[str]) -> list[Any]:
        """Return the tokens with the text of each macro that has ``defined`` in it.

        What it names is not to be expanded.
        """
        out: list[Any] = []
        for token in tokens:
            macro = self.macros.get(token.value)
            plain = macro is not None and macro.arglist is None and token.value not in inside
            named = out and "".join(t.value for t in out[-3:]).replace(" ", "").endswith(("defined", "defined("))
            text = (
                self.expand_defined_macros([_copy(t) for t in macro.value], inside | {token.value})
                if plain and not named
                else []
            )
            out += text if any(t.value == "defined" for t in text) else [token]
        return out

    def with_defined(self, tokens: list[Any], where: Span) -> list[Any]:
        """Return the tokens with 1 or 0 for each ``defined NAME``."""
        out: list[Any] = []
        rest = iter(tokens)
        for token in rest:
            if token.value != "defined":
                out.append(token)
                continue
            words: list[str] = []
            while len(words) < (3 if words[:1] == ["("] else 1):
                part = next(rest, None)
                if part is None:
                    break
                words += [] if part.type in self.t_WS else [part.value]
            name = "".join(words).removeprefix("(").removesuffix(")")
            if not name.isidentifier() or words not in ([name], ["(", name, ")"]):
                raise ParseError("expected a macro name after defined", where)
            new = copy(token)
            new.type, new.value = self.t_INTEGER, str(int(name in self.macros or name in _ASKED))
            out.append(new)
        return out

    def evaluate_has(self, toks: list[Any]) -> list[Any]:
        """Return the condition with 1 or 0 for each question such as ``__has_include(<x.h>)``."""
        out: list[Any] = []
        rest = iter(toks)
        for token in rest:
            out.append(token)
            if token.value not in _ASKED or any(t.value == "defined" for t in out[-4:-1]):
                continue
            asked, depth = "", 0
            for part in rest:
                depth += (part.value == "(") - (part.value == ")")
                asked += part.value
                if depth == 0 and asked.strip():
                    break
            new = copy(token)
            new.type, new.value = self.t_INTEGER, str(int(self.has(token.value, asked.strip()[1:-1].strip())))
            out[-1] = new
        return out

    def has(self, question: str, what: str) -> bool:
        """Whether there is such a header; attributes are all there and ignored, GNU C's own functions are not."""
        if question.startswith("__has_include"):
            folders = [Path(self.main).parent] if what.startswith('"') else []
            folders += [Path(p) for p in (*self.path, *_SYSTEM)]
            return any((folder / what.strip('<>"')).is_file() for folder in folders)
        return question.endswith("attribute")

    def on_directive_unknown(
        self, directive: Any, toks: list[Any], ifpassthru: bool, precedingtoks: list[Any]
    ) -> bool | None:
        where = self.line_span(*directive.origin[:2])
        if directive.value == "error":
            self.fail(ParseError(f"#error {''.join(t.value for t in toks)}", where))
            raise pcpp.OutputDirective(pcpp.Action.IgnoreAndRemove)
        values = [t.value for t in toks if t.type not in self.t_WS]
        said = (values[0] if values else "") if directive.value == "line" else directive.value
        if said.isdecimal():
            self.numbered.setdefault(where.file, []).append((where.line + 1, int(said)))
        if directive.value != "pragma":
            return True
        lines = [self.line_span(*precedingtoks[0].origin[:2])]
        while lines[-1].text.rstrip().endswith("\\"):
            lines.append(self.line_span(where.file, lines[-1].line + 1))
        precedingtoks[0].pragma = len(self.pragmas)
        self.pragmas.append(read(lines, self.objects(toks)))
        return None

    def objects(self, toks: list[Any]) -> dict[str, str]:
        """Return the text of each macro without arguments that the tokens name."""
        found: dict[str, str] = {}
        for token in toks:
            macro = self.macros.get(token.value)
            if macro is not None and macro.arglist is None and macro.value:
                expanded = self.expand_macros([_copy(t) for t in macro.value])
                found[token.value] = re.sub(r"^\((\w+)\)$", r"\1", "".join(t.value for t in expanded).strip())
        return found


@lru_cache(maxsize=4)
def _begun(macros: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
    """Return the macros that every file begins with, as pcpp has them."""
    machine = pcpp.Preprocessor()
    own = set(machine.macros)
    for name, value in (*macros, *GNU.items()):
        machine.define(f"{name} {re.sub(r'(?<=[0-9a-fA-FuU])(?:LL|ll)', 'L', value)}")
    for macro in machine.macros.values():
        macro.begun = True
    return {name: m for name, m in machine.macros.items() if name not in own}


def _copy(token: Any) -> Any:
    """Return the token as part of a macro's body: what it expands to stands where the macro is named."""
    new = type(token)()
    new.__dict__.update(token.__dict__)
    new.origin = new.place = None
    return new


class _Text:
    """The preprocessed text while it is written.

    A pragma in the middle of a declaration at file scope, as between the type and the name of a function or in an
    initializer, is written in front of it, where pycparser reads it.
    """

    def __init__(self) -> None:
        self.out: list[str] = []
        self.tokens: list[Token] = []
        self.offset = self.depth = 0
        self.opened_after = ""  # what is in front of the brace at file scope: ) or, as before C89, ; for a function
        self.declaration: tuple[int, int] | None = None  # how many texts and tokens are in front of it
        self.attributes: dict[int, str] = {}
        self.omitted: list[tuple[int, str]] = []

    def put(self, text: str) -> None:
        """Write a text that is no token."""
        self.out.append(text)
        self.offset += len(text)

    def put_token(self, text: str, span: Span, macro: str | None, place: tuple[int, int] | None) -> None:
        """Write a token, and note where the declaration begins that it is part of."""
        if self.depth == 0 and self.declaration is None:
            self.declaration = (len(self.out), len(self.tokens))
        if self.depth == 0 and text == "{":
            self.opened_after = self.tokens[-1].text if self.tokens else ""
        self.depth += (text == "{") - (text == "}")
        if self.depth == 0 and (text == ";" or (text == "}" and self.opened_after in (")", ";"))):
            self.declaration = None
        self.tokens.append(Token(text, self.offset, span, macro, place))
        self.put(text)

    def put_attribute(self, said: str, where: Span) -> None:
        """Keep an attribute that makes a type another with its ``typedef``, and elsewhere as what no parser reads."""
        first = len(self.tokens) if self.declaration is None else self.declaration[1]
        if not (self.tokens[first : first + 1] and self.tokens[first].text == "typedef"):
            first = len(self.tokens)
            self.put(" ")
            self.put_token(OTHER_TYPE, where, None, None)
        self.attributes[first] = self.attributes.get(first, "") + said

    def put_pragma(self, number: int) -> None:
        """Write the line that stands for a pragma."""
        if self.declaration is None or (self.depth > 0 and self.opened_after != "="):
            self.put(f"#pragma {number}")
            return
        texts, tokens = self.declaration
        line = f"\n#pragma {number}\n"
        self.out.insert(texts, line)
        self.offset += len(line)
        self.tokens[tokens:] = [replace(t, offset=t.offset + len(line)) for t in self.tokens[tokens:]]
        self.declaration = (texts + 1, tokens)


def _write(machine: _Preprocessor) -> Preprocessed:
    """Return the token stream as text. Macro bodies are kept apart where their characters would run together."""
    made = _Text()
    previous: Any = None
    dropping = False
    cursor = Span("", 0, 0)
    left_out = LeftOut()
    while (token := machine.token()) is not None:
        if not token.value:
            continue
        if token.type in machine.t_WS or token.value.isspace():
            dropping = dropping and "\n" not in token.value
            made.put("\n" if dropping is False and "\n" in token.value else " ")
            previous = None
            continue
        if dropping or left_out.skips(token, machine, made.put_attribute):
            made.omitted += [(len(made.tokens), left_out.texts.pop(0)) for _ in [*left_out.texts]]
            continue
        number = getattr(token, "pragma", None)
        if number is not None:
            made.put_pragma(number)
            dropping = True
            continue
        if previous is not None and would_glue(previous, token):
            made.put(" ")
        cursor, macro = place_of(machine, token, cursor)
        made.put_token(token.value, cursor, macro, getattr(token, "place", None))
        previous = token
    text = "".join(made.out) + "\n"
    starts = (0, *(m.end() for m in re.finditer("\n", text)))
    own = {name: m for name, m in machine.macros.items() if not hasattr(m, "begun") and m.arglist is None}
    macros = {name: "".join(t.value for t in m.value) for name, m in own.items()}
    return Preprocessed(
        text, tuple(made.tokens), tuple(machine.pragmas), machine.sources, macros, tuple(machine.skipped), starts,
        tuple(machine.missing), tuple(machine.defined), tuple(machine.ignored), tuple(machine.includes),
        made.attributes, tuple(made.omitted),
    )  # fmt: skip
