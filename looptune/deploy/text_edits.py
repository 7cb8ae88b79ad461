"""Edits of a function's text for a schedule: loops that do not change keep their text.

The original statements and the scheduled ones are compared from the outside in. If a loop has the same head, its body
is compared; otherwise the smallest sequence of statements that contains the differences is replaced by printed loops.
The rest of the text does not change: declarations, comments, ``return``s, preprocessor lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.core.source import NOWHERE, Span
from looptune.deploy.text_counters import Around, NotLocal, in_terms_of_the_text
from looptune.deploy.text_replacement import Edit
from looptune.frontend.heap_arrays import ALLOCATE, FREE
from looptune.frontend.other_languages import is_cxx
from looptune.frontend.pragma import LOOP_FAMILIES
from looptune.frontend.source_layout import Layout, Line, StatementRange
from looptune.frontend.unit import FunctionPart
from looptune.ir import c_printer
from looptune.ir.def_use import locals_declared_in, referenced_names
from looptune.ir.nodes import Assign, If, Load, Local, Loop, Node, Reduction, Stmt, Var, While
from looptune.ir.rewrite import renaming, rewrite, walk
from looptune.schedule import directives

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Token

_FOREIGN = ("omp", "acc", "gcc", "clang", "ivdep", "simd", "unroll", "nounroll", "vector", "novector", "loop")
"""Pragmas of other tools that say something of the loop after them."""
_DEFINES = ("define", "undef")
_CONDITIONS = ("if", "ifdef", "ifndef", "elif", "else", "endif")


@dataclass(frozen=True, slots=True)
class Version:
    """The statements of one function as the codelet has them, and its local variables."""

    body: tuple[Stmt, ...]
    locals: Mapping[str, Local]


Annotations = Mapping[int, tuple[object, ...]]
"""What directives say of each original loop, by its number."""


def find_edits(
    part: FunctionPart, layout: Layout | None, before: Version, after: Version, usual: Annotations,
    defined: Sequence[Span],
    warn: Callable[[Span, str], object],
) -> tuple[Edit, ...]:  # fmt: skip
    """Return the edits of ``part``'s file that turn ``before`` into ``after``; none if nothing differs.

    ``usual`` is how the loops run without the directives that were given from outside; ``defined`` the lines that
    define macros. UnsupportedError where what differs has no text of its own.
    """
    if is_unchanged(before, after, usual):
        return ()
    where = before.body[0].span
    if layout is None:
        raise UnsupportedError("a macro makes this function, which cannot be written back: "
                               "expand it, as gcc -E -P does", where)  # fmt: skip
    lines = {s.line for s in defined if s.file == part.path}
    splicer = _Splicer(part, layout, before, after, usual, lines, _macros(defined), warn)
    try:
        return tuple(splicer.aligned(before.body, after.body, ()))
    except NotLocal as apart:
        raise UnsupportedError(apart.why, apart.span if apart.span.line else where) from None


def _unwritten(layout: Layout, token: int) -> str:
    """Return why the statement that begins with the token has no text of its own."""
    macro, file = layout.tokens[token].macro, layout.tokens[token].span.file
    if file != layout.path:
        return f"this loop stands in {file}, which is included, and cannot be written back"
    made = f"this loop comes out of the macro {macro}" if macro else "a macro makes a part of this loop"
    return f"{made} and cannot be written back: expand it, as gcc -E -P does"


def is_unchanged(before: Version, after: Version, usual: Annotations) -> bool:
    """Tell whether the two compute the same in the same order, and their loops run in the default way."""
    return _same(before.body, after.body, usual)


def loop_annotations(body: tuple[Stmt, ...]) -> dict[int, tuple[object, ...]]:
    """Return the annotations of each original loop by its number, as ``ir/c_printer`` prints them."""
    return {n.number: _annotations(n) for n in walk(body) if isinstance(n, Loop) and n.number}


def _annotations(n: Loop) -> tuple[object, ...]:
    return (n.mode, n.thread_axis,
            *filter(None, (a.pragma() for a in n.annotations)))  # fmt: skip


def _same(a: tuple[Stmt, ...], b: tuple[Stmt, ...], usual: Annotations) -> bool:
    return len(a) == len(b) and all(
        _same_head(x, y, usual) and all(_same(p, q, usual) for p, q in zip(_blocks(x), _blocks(y), strict=True))
        for x, y in zip(a, b, strict=True)
    )


def _same_head(a: Stmt, b: Stmt, usual: Annotations) -> bool:
    """Tell whether the statements are one but for what is inside them."""
    match a, b:
        case Assign(), Assign():
            return (a.target, a.value) == (b.target, b.value)
        case Loop(), Loop():
            alike = (a.var, a.lo, a.hi, a.step, a.dtype) == (b.var, b.lo, b.hi, b.step, b.dtype)
            return alike and usual.get(b.number, _annotations(b)) == _annotations(b)
        case While(x), While(y):
            return x == y
        case If(x), If(y):
            return x == y
    return False


def _rewrites(stmt: Stmt) -> bool:
    """Tell whether a directive of the text changes more of the statement than how its loops run."""
    given = () if isinstance(stmt, Assign) else stmt.directives
    return any(directives.find(d).stage != "mode" for d in given)


def _blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    match stmt:
        case Loop() | While():
            return (stmt.body,)
        case If(_, then, other):
            return (then, other)
    return ()


def _ids(stmt: Stmt) -> frozenset[str]:
    return frozenset(n.name for n in walk(stmt) if isinstance(n, Assign) and n.name)


def _groups(
    before: tuple[Stmt, ...],
    after: tuple[Stmt, ...],
    homes: Sequence[int | None],
    known: frozenset[str],
    new_names: frozenset[str],
) -> Iterator[tuple[tuple[Stmt, ...], tuple[Stmt, ...]]]:
    """Yield the shortest runs of statements that hold the same original statements, in order.

    Statements of one home, which is a statement of the text, stay together. What holds no statement ``known`` in the
    text follows what is before it, unless that uses none of its ``new_names``.
    """
    prefixes: dict[frozenset[str], int] = {frozenset(): 0}
    seen: frozenset[str] = frozenset()
    for k, stmt in enumerate(before, 1):
        seen |= _ids(stmt)
        if k == len(before) or homes[k] is None or homes[k] != homes[k - 1]:
            prefixes[seen] = k
    left = [frozenset[str]()]
    for stmt in reversed(after):
        left.insert(0, left[0] | (_ids(stmt) & known))
    at = done = 0
    held: frozenset[str] = frozenset()
    for k, stmt in enumerate(after, 1):
        held |= _ids(stmt) & known
        cut = prefixes.get(held)
        ends = k < len(after) and (_ids(after[k]) & known or _opens(after[k], after[done:k], new_names))
        if cut is not None and cut > at and ends and not held & left[k]:
            yield before[at:cut], after[done:k]
            at, done = cut, k
    if at < len(before) or done < len(after):
        yield before[at:], after[done:]


def _opens(stmt: Stmt, before: tuple[Stmt, ...], new_names: frozenset[str]) -> bool:
    """Tell whether a statement is the first to use one of the new names, of those after ``before``."""
    mine = referenced_names((stmt,)) & new_names
    return bool(mine) and not mine & referenced_names(before)


@dataclass(frozen=True, slots=True)
class _Splicer:
    part: FunctionPart
    layout: Layout
    before: Version
    after: Version
    usual: Annotations
    defined: set[int]
    macros: Mapping[str, bool]
    warn: Callable[[Span, str], object]

    def aligned(self, before: tuple[Stmt, ...], after: tuple[Stmt, ...], around: Around) -> list[Edit]:
        """Return the changes of a block's statements, which stand in the loops ``around``."""
        made: list[Edit] = []
        known = frozenset().union(*map(_ids, self.before.body))
        homes = [self.first_token(stmt) for stmt in before]
        new_names = frozenset(self.after.locals.keys() - self.before.locals.keys())
        for old, new in _groups(before, after, homes, known, new_names):
            if not _same(old, new, self.usual):
                made += self.changed(old, new, around)
        return made

    def first_token(self, stmt: Stmt) -> int | None:
        """Return the first token of the statement of the text that it comes from."""
        k = self.token(stmt)
        run = None if k is None else self.layout.run(k, k)
        return None if run is None else run.tokens[0]

    def changed(self, old: tuple[Stmt, ...], new: tuple[Stmt, ...], around: Around) -> list[Edit]:
        inner: NotLocal | None = None
        if len(old) == len(new) and all(map(self.same_but_inside, old, new)):
            try:
                return [
                    edit
                    for x, y in zip(old, new, strict=True)
                    for a, b in zip(_blocks(x), _blocks(y), strict=True)
                    for edit in self.aligned(a, b, (*around, x) if isinstance(x, Loop) else around)
                ]
            except NotLocal as apart:
                # the whole may have what a part has not: a text of its own, names that mean one thing
                inner = apart
        try:
            return self.replaced(old, new, around)
        except NotLocal as apart:
            raise apart if inner is None else inner from None

    def same_but_inside(self, old: Stmt, new: Stmt) -> bool:
        """Only what is inside differs, and no pragma before the statement has made it differ: it would do so again."""
        if _same((old,), (new,), self.usual):
            return True
        return bool(_blocks(old)) and _same_head(old, new, self.usual) and not _rewrites(old)

    # -- where ----------------------------------------------------------------------------------

    def replaced(self, old: tuple[Stmt, ...], new: tuple[Stmt, ...], around: Around) -> list[Edit]:
        places = [k for stmt in old for n in walk(stmt) if (k := self.token(n)) is not None]
        span = next((s.span for s in old if s.span.line), NOWHERE)
        run = self.layout.run(min(places), max(places)) if places else None
        if run is None and self.is_called(span):
            raise NotLocal(
                "this loop stands in a function that is called here: transform that function with --kernel", span
            )
        if run is None:
            raise NotLocal(f"{self.layout.macro(span)} makes this loop and others, and cannot be written back: "
                         "expand it, as gcc -E -P does", span)  # fmt: skip
        run = self.with_operators(run)
        first, last = run.tokens
        inside = {n.name for n in walk(self.before.body)
                  if isinstance(n, Assign) and (k := self.token(n)) is not None and first <= k <= last}  # fmt: skip
        if not inside <= frozenset().union(*(_ids(s) for s in old)):
            raise NotLocal("there are statements between these that the schedule does not contain: "
                         "move them before the loops", span)  # fmt: skip
        self.check_jumps(run)
        self.check_memory(run)
        self.check_moved(run, around)
        start, end = self.layout.start(first), self.layout.end(last)
        if start is None or end is None or self.layout.tokens[first].span.file != self.part.path:
            raise NotLocal(_unwritten(self.layout, first), span)
        start, end = self.with_conditions(start, end, first, last)
        head = self.directives_before(first, start)
        text = self.spelled(self.text(run, old, new, start, around), span)
        head = [e for e in head if e.end <= start]
        return [*head, Edit(start, end, text + self.kept_lines(start, end))]

    def spelled(self, text: str, span: Span) -> str:
        """Return C as C++ in a file of that. Raises NotLocal where C++ demands types that C leaves out."""
        if not is_cxx(self.part.path):
            return text
        if "__builtin_malloc" in text:
            raise NotLocal("C++ does not convert what allocates the copies: write the function in C", span)
        return re.sub(r"\b_Bool\b", "bool", text)

    def is_called(self, span: Span) -> bool:
        """Tell whether a place of the file is outside of the text of the codelet."""
        lines = self.layout.text.split("\n")[: max(0, span.line - 1)]
        at = sum(len(line) + 1 for line in lines) + span.col - 1
        return span.file == self.part.path and not self.part.body[0] <= at < self.part.body[1]

    def token(self, n: object) -> int | None:
        loops = ("for", "while", "do")  # an if that comes of a loop says what follows from it
        words = {Loop: loops, While: loops, If: ("if", *loops), Assign: ()}.get(type(n))
        return None if words is None or not isinstance(n, Stmt) else self.layout.find(n.span, words)

    def with_operators(self, run: StatementRange) -> StatementRange:
        """Extend the run by the ``_Pragma``s before its first statement."""
        first = run.first
        while first and self.layout.tokens[run.block.statements[first - 1].first_token].text == "_Pragma":
            first -= 1
        return replace(run, first=first)

    def check_jumps(self, run: StatementRange) -> None:
        first, last = run.tokens
        tokens = self.layout.tokens[first : last + 1]
        for k, token in enumerate(tokens):
            if token.text == "goto" or (token.text == "return" and tokens[k + 1].text != ";"):
                raise NotLocal(f"this {token.text} stands among the statements that the schedule changes together: "
                             "write if (…) { … } around what it skips", token.span)  # fmt: skip

    def check_memory(self, run: StatementRange) -> None:
        """Raise NotLocal where statements allocate or free an array, of which the codelet says nothing."""
        if not any(v.on_heap for v in self.before.locals.values()):
            return
        first, last = run.tokens
        for token in self.layout.tokens[first : last + 1]:
            if token.text in (*ALLOCATE, *FREE):
                raise NotLocal(f"this {token.text} stands among the statements that the schedule changes together: "
                             "move it before or after them", token.span)  # fmt: skip

    def check_moved(self, run: StatementRange, around: Around) -> None:
        """Raise NotLocal where statements move a variable that the new ones do not have, and other text reads it."""
        first, last = run.tokens
        tokens, body = self.layout.tokens, self.layout.body.statements
        heads = [k for loop in around if (k := self.token(loop)) is not None]
        least = min(heads, default=first)
        for name in sorted(self.part.moved):
            places = [k for k in range(body[0].first_token, body[-1].last_token + 1) if tokens[k].text == name]
            moves = [k for k in places if first <= k <= last and _is_moved(tokens, k)]
            reads = [k for k in places if k > last or (least <= k < first and tokens[k + 1].text != "=")]
            if moves and reads:
                raise NotLocal(f"{name}, which these statements move, is used outside of them: transform the loops "
                                "that use it together", tokens[reads[0]].span)  # fmt: skip

    def with_conditions(self, start: int, end: int, first: int, last: int) -> tuple[int, int]:
        """Extend the range by the whole of each ``#if … #endif`` that stands partly inside."""
        for group in _conditionals(self.layout.lines):
            within = [start <= line.start < end for line in group]
            if any(within) and not all(within):
                start, end = min(start, group[0].start), max(end, group[-1].end)
        for k, token in enumerate(self.layout.tokens):
            outside = not first <= k <= last and self.layout.real(k) and token.place is not None
            if outside and token.place is not None and start <= token.place[0] < end:
                raise NotLocal("an #if stands around a part of the statements that change: "
                             "write it around whole loops", token.span)  # fmt: skip
        return start, end

    def directives_before(self, first: int, start: int) -> list[Edit]:
        """Return the pragmas in front of the run that say something of its first loop are gone."""
        place = self.layout.tokens[first - 1].place if self.layout.real(first - 1) else None
        at = place[1] if place is not None else start
        made: list[Edit] = []
        for line in self.layout.lines:
            family = (re.match(r"\s*(\w*)", line.rest) or [""] * 2)[1].lower()
            if line.word != "pragma" or not at <= line.start < start or family not in (*LOOP_FAMILIES, *_FOREIGN):
                continue
            if family in _FOREIGN:
                self.warn(self.span(line), "this pragma is removed, because the loop after it changes")
            opens = self.layout.text.rfind("\n", 0, line.start) + 1
            made.append(Edit(opens, min(line.end + 1, len(self.layout.text)), ""))
        return made

    def span(self, line: Line) -> Span:
        text = self.layout.text
        opens = text.rfind("\n", 0, line.start) + 1
        row = text[opens : (text + "\n").index("\n", opens)]
        width = min(line.end, opens + len(row)) - line.start
        return Span(self.part.path, text.count("\n", 0, opens) + 1, line.start - opens + 1, width, row)

    def kept_lines(self, start: int, end: int) -> str:
        """Return the definitions that the replaced text held, for what comes after it."""
        text = self.layout.text
        inside = (line for line in self.layout.lines if start <= line.start < end)
        kept = [line for line in inside if line.word in _DEFINES and self.span(line).line in self.defined]
        lines = "".join("\n" + text[line.start : line.end] for line in kept)
        return lines + ("\n" if lines and not text.startswith("\n", end) else "")

    # -- what -----------------------------------------------------------------------------------

    def text(
        self, run: StatementRange, old: tuple[Stmt, ...], new: tuple[Stmt, ...], start: int, around: Around
    ) -> str:
        """Return the new statements under the names of the text."""
        new_names = referenced_names(new) & self.after.locals.keys() - self.before.locals.keys()
        if new_names & _names_outside(self.after.body, new):
            raise NotLocal("statements around these use the same new variable", old[0].span)
        new, counters = in_terms_of_the_text(new, around)
        used, elsewhere = referenced_names(new), _names_outside(self.before.body, old)
        shared = {v for v in used & self.after.locals.keys() & self.before.locals.keys() if v in elsewhere}
        outer = self.outer(shared, used, old, new, counters)
        private = {v: self.after.locals[v] for v in self.after.locals if v in used and v not in shared}
        stmts, local = self.named(new, outer, private)
        opens = self.layout.text.rfind("\n", 0, start) + 1
        before = self.layout.text[opens:start]
        indent = before if not before.strip() else re.match(r"[ \t]*", before)[0] + "  "  # type: ignore[index]
        braced = bool(locals_declared_in(stmts, set(local))) or not (run.block.braced or _is_one(stmts))
        inner = indent + "  " if braced else indent
        body = c_printer.statements(stmts, dict(local), indent=inner, pragmas=True)
        self.check_macros(body, old)
        body = body if body.strip() else inner + ";"
        made = f"{{\n{body}\n{indent}}}" if braced else body.removeprefix(indent)
        hoisted = self.hoisted(run, old, shared, indent)
        if hoisted and self.layout.tokens[run.tokens[0] - 1].text == ":":
            hoisted = [";", *hoisted]  # before C23 no declaration follows a label
        made = f"\n{indent}".join([*hoisted, made])
        return f"\n{indent}{made}" if made.startswith("#") and before.strip() else made

    def check_macros(self, body: str, old: tuple[Stmt, ...]) -> None:
        """Check that the preprocessor leaves the new text unchanged, in which macros are expanded already."""
        code = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("#"))
        for m in re.finditer(r"\b([A-Za-z_]\w*)(\s*\()?", code):
            if m[1] in self.macros and (m[2] is not None or not self.macros[m[1]]):
                raise NotLocal(
                    f"{m[1]} stands in what these statements become, and is a macro too: rename one of them",
                    old[0].span,
                )

    def outer(
        self, shared: set[str], used: set[str], old: tuple[Stmt, ...], new: tuple[Stmt, ...],
        counters: Mapping[str, Loop],
    ) -> dict[str, str]:  # fmt: skip
        """Return the variables of the text that the new statements share with the rest of it, by the codelet's names.

        ``counters`` are those of the loops around.
        """
        found = {name: self.part.element_names[name] for name in used & self.part.element_names.keys()}
        found |= {name: loop.counter.name for name, loop in counters.items() if loop.counter is not None}
        for name in sorted(used & self.part.shadowed):
            raise NotLocal(
                f"a variable of the function hides the {name} that a function called here uses: rename one of them",
                old[0].span,
            )
        for name in sorted(shared):
            if name in self.part.flags:
                raise NotLocal(
                    "a jump leaves these statements, and what follows them depends on it: write if (…) { … } around "
                    "what it skips", old[0].span,
                )  # fmt: skip
            if name not in self.part.variables and self.before.locals[name].shape == ():
                raise NotLocal(
                    f"statements around these compute {name}, which has no variable in the text: transform them "
                    "together",
                    old[0].span,
                )
            if name not in self.part.variables:
                raise NotLocal(
                    "a variable of the function hides a constant array that is used here: rename one of them",
                    old[0].span,
                )
            found[name] = self.part.variables[name]
        others = [n for n in self.before.locals if n not in shared and n in _names_outside(self.before.body, old)]
        visible = [v for n, v in self.part.variables.items() if n in others]
        bound = {n.var for n in walk(new) if isinstance(n, Loop)}
        parameters = used - self.after.locals.keys() - self.part.element_names.keys() - bound - counters.keys()
        if self.part.moved:
            # an array that a pointer stands for need not be visible where the pointer is used
            self.check_visible(parameters, old)
        for name in found:
            if name in self.part.element_names:
                continue
            alike = [n for n in (*shared, *counters) if n != name and found.get(n) == found[name]]
            hidden = self.hides(counters[name]) if name in counters else found[name] in visible
            if alike or hidden or found[name] in parameters:
                raise NotLocal(f"two variables of the text are called {found[name]}: rename one of them", old[0].span)
        return found

    def check_visible(self, names: set[str], old: tuple[Stmt, ...]) -> None:
        for name in sorted(names & {*self.part.variables.values()}):
            raise NotLocal(f"two variables of the text are called {name}: rename one of them", old[0].span)

    def hides(self, loop: Loop) -> bool:
        """Tell whether a variable of the loop's name is declared inside of the loop."""
        head = self.token(loop)
        places = (self.layout.find(self.before.locals[n].span, ()) for n, text in self.part.variables.items()
                  if loop.counter is not None and text == loop.counter.name and n in self.before.locals)  # fmt: skip
        return head is None or any(place is not None and place > head for place in places)

    def named(
        self, new: tuple[Stmt, ...], outer: Mapping[str, str], private: Mapping[str, Local]
    ) -> tuple[tuple[Stmt, ...], dict[str, Local]]:
        """Return the statements with their own variables renamed where they would hide one of the text."""
        bound = {n.var for n in walk(new) if isinstance(n, Loop)} | private.keys()
        used = referenced_names(new)
        texts = {name: text for name, text in self.part.texts.items() if name in used and name not in bound}
        of_text = {*outer.values(), *(text.variable for text in texts.values())}
        taken = used | of_text
        rename = dict(outer)
        for name in sorted(bound - outer.keys()):
            if name in of_text:
                fresh = next(c for k in range(2, len(taken) + 3) if (c := f"{name}_{k}") not in taken)
                taken.add(fresh)
                rename[name] = fresh

        plain = renaming(rename)
        fields = {text: name for name, text in rename.items() if not text.isidentifier()}

        def rule(n: Node) -> Node | tuple[Node, ...] | None:
            match n:
                case Load(array, index) if array in texts:
                    text = texts[array].written([c_printer.expression_text(e) for e in index])
                    fields[text] = array
                    return Var(text, n.dtype, span=n.span)
                case Var(name) if name in texts and name not in rename:
                    return replace(n, name=texts[name].written(()))
                case Reduction(_, Var(text)) if text in fields:
                    return Reduction(n.op, Var(fields[text], n.target.dtype), span=n.span)
                case Load(array, _) if array in self.part.element_names:
                    return Var(rename[array], n.dtype, span=n.span)
                case Assign(Var(a), Var(b)) if a == b:
                    return ()
            return plain(n)

        local = {rename.get(name, name): replace(v, name=rename.get(name, name)) for name, v in private.items()}
        return rewrite(rule, new), local

    def hoisted(self, run: StatementRange, old: tuple[Stmt, ...], shared: set[str], indent: str) -> list[str]:
        """Return declarations among the replaced statements that the rest of the text needs."""
        kept = []
        computed = {k for stmt in old for n in walk(stmt) if (k := self.token(n)) is not None}
        gone = []
        for piece in run.statements:
            if any(piece.first_token <= k <= piece.last_token for k in computed):
                gone.append(piece)
                continue
            start, end = self.layout.start(piece.first_token), self.layout.end(piece.last_token)
            if start is None or end is None:
                raise NotLocal(_unwritten(self.layout, piece.first_token), self.layout.tokens[piece.first_token].span)
            if self.layout.text[start:end].strip(" ;"):
                kept.append(self.layout.text[start:end])
        for name in sorted(shared):
            k = self.layout.find(self.before.locals[name].span, ())
            if k is not None and any(p.first_token <= k <= p.last_token and not p.blocks for p in gone):
                local = replace(self.before.locals[name], name=self.part.variables[name])
                kept.append(f"{c_printer.declaration(local)};")
        return kept


def _is_moved(tokens: Sequence[Token], k: int) -> bool:
    """Tell whether the variable that stands there is set or moved."""
    return tokens[k - 1].text in ("++", "--") or tokens[k + 1].text in ("=", "+=", "-=", "++", "--")


def _names_outside(body: tuple[Stmt, ...], inside: tuple[Stmt, ...]) -> set[str]:
    """Return the names that occur in the statements of ``body`` other than those ``inside``."""
    gone = {id(s) for s in inside}
    found: set[str] = set()

    def visit(stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            if id(stmt) in gone:
                continue
            blocks = _blocks(stmt)
            found.update(referenced_names((_hollow(stmt) if blocks else stmt,)))
            for block in blocks:
                visit(block)

    visit(body)
    return found


def _macros(defined: Sequence[Span]) -> dict[str, bool]:
    """Return the macros that the lines define, wherever they hold; True for those that take arguments alone."""
    found: dict[str, bool] = {}
    for span in defined:
        m = re.match(r"\s*(?:#|%:)\s*define\s+(\w+)(\()?(.*)", span.text)
        if m is not None and m[3].strip() != m[1]:
            found[m[1]] = m[2] is not None and found.get(m[1], True)
    return found


def _hollow(stmt: Stmt) -> Stmt:
    """Return the statement without what is inside it."""
    match stmt:
        case Loop() | While():
            return replace(stmt, body=())
        case If():
            return replace(stmt, then=(), other=())
    return stmt


def _is_one(stmts: tuple[Stmt, ...]) -> bool:
    return len(stmts) == 1 and isinstance(stmts[0], Loop | While | Assign)


def _conditionals(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the lines of each ``#if … #endif``."""
    done: list[list[Line]] = []
    open_: list[list[Line]] = []
    for line in lines:
        if line.word in ("if", "ifdef", "ifndef"):
            open_.append([line])
        elif line.word in _CONDITIONS and open_:
            open_[-1].append(line)
            if line.word == "endif":
                done.append(open_.pop())
    return done
