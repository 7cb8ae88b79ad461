"""Where a program calls its codelets, and what its ``#pragma hmpp`` lines say of the transfers of these calls.

    #pragma hmpp f advancedload, args[A]                     A is copied to the device here
    #pragma hmpp f callsite, args[A].advancedload=true       and not at the call
    f(n, A, B);
    #pragma hmpp f delegatedstore, args[B]                   B is copied to the host here, and not after the call

In sequences and loops that consist of calls of codelets, and otherwise compute with numbers alone, arrays are resident
on the device: between these calls the host reads and writes none of them, so that none has to be copied.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import ParseError, UnsupportedError
from looptune.core.source import Span, caret
from looptune.frontend import c_ast, hmpp
from looptune.frontend.call_sites import Caller, CodeletEvent, call_events, callers
from looptune.frontend.codelet_selection import CodeletFunction, region
from looptune.frontend.source_layout import Layout, layout

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Token
    from looptune.frontend.program import Program

TRANSFERS = ("advancedload", "delegatedstore", "synchronize", "release")


@dataclass(frozen=True, slots=True)
class CodeletCallText:
    """A call in the text of the program's file: ``text[start:end]``, its arguments as they are written.

    ``parameters`` are the names of the function's parameters, in the order of the arguments; ``local`` are the names
    that the caller declares.
    ``present`` are the parameters whose contents are on the device already, ``deferred`` those that are not stored yet;
    ``asynchronous``: the program goes on while it runs. ``awaited`` are those deferred for a delegatedstore after it.
    """

    function: str
    start: int
    end: int
    arguments: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    local: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()
    asynchronous: bool = False
    awaited: frozenset[str] = frozenset()

    def argument(self, parameter: str) -> str:
        """Return the text that the call passes for a parameter, "" where it has none."""
        by_name = dict(zip(self.parameters, self.arguments, strict=False))
        return by_name.get(parameter, "")


@dataclass(frozen=True, slots=True)
class DataTransfer:
    """A transfer that a line of the file orders; ``at`` is where the line after it begins.

    ``verb`` is one of TRANSFERS. ``call`` is a call of the codelet whose parameters ``names`` it concerns, None for all
    of a group.
    """

    verb: str
    at: int
    call: CodeletCallText | None
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class ResidentCalls:
    """Statements ``text[start:end]`` between whose calls nothing is copied; ``calls`` is the number of these."""

    start: int
    end: int
    span: Span
    calls: int


@dataclass(frozen=True, slots=True)
class CodeletCalls:
    """The calls of a program's codelets; ``warnings`` are about lines that have no effect."""

    calls: tuple[CodeletCallText, ...] = ()
    transfers: tuple[DataTransfer, ...] = ()
    resident: tuple[ResidentCalls, ...] = ()
    warnings: tuple[str, ...] = ()


def codelet_calls(program: Program, members: Sequence[CodeletFunction]) -> CodeletCalls:
    """Return the calls of the ``members`` in the main file of a program."""
    return _Reader(program, members).read()


class _Reader:
    def __init__(self, program: Program, members: Sequence[CodeletFunction]) -> None:
        self.file, self.source = program.file, program.source
        self.path = next(iter(self.source.sources))
        self.text = self.source.sources[self.path]
        self.members = {m.function.name: m for m in members}
        self.resident = {name: m for name, m in self.members.items() if _is_all_of_its_function(m)}
        self.stays = _stays_on_device(program)
        self.around = callers(program.file, [m for m in members if _is_all_of_its_function(m)])
        self.warnings: list[str] = []
        self.tokens = [t for t in self.source.tokens if t.place is not None and t.span.file == self.path]
        self.numbers = {(t.span.line, t.span.col): k for k, t in enumerate(self.tokens)}

    def read(self) -> CodeletCalls:
        lines = [(caller, said) for caller in self.around for said in self._lines(caller)]
        orders = [(caller.function.name, said) for caller, said in lines]
        events = call_events(self.around, self.members, [])
        calls = [(e, one) for e in events if (one := self._call(e, orders)) is not None]
        transfers = [t for _, said in lines for t in self._transfers(said, calls)]
        calls = [(e, self._stored(e, one, transfers)) for e, one in calls]
        written = {t.verb for t in transfers} | {"call" for _, c in calls if c.present or c.deferred or c.asynchronous}
        resident = () if written else tuple(r for caller in self.around for r in self._resident(caller))
        return CodeletCalls(tuple(c for _, c in calls), tuple(transfers), resident, tuple(self.warnings))

    # -- the lines of the file ----------------------------------------------------------------------------------------

    def _lines(self, caller: Caller) -> Iterator[hmpp.Hmpp]:
        for node in c_ast.walk(caller.body):
            if isinstance(node, c_ast.PragmaItem) and node.pragma.family == "hmpp":
                try:
                    said = hmpp.parse(node.pragma)
                except (ParseError, UnsupportedError):
                    continue  # the survey of the file's pragmas has warned of it
                if said.verb in TRANSFERS:
                    yield said

    def _transfers(
        self, said: hmpp.Hmpp, calls: Sequence[tuple[CodeletEvent, CodeletCallText]]
    ) -> Iterator[DataTransfer]:
        """Yield what a line orders; one without a label concerns each codelet of its group that it covers."""
        if said.span.file != self.path:
            self._say(said, f"write it in {Path(self.path).name}")
            return
        at = self._next_line(said.span)
        if not self._separates(at):
            self._say(said, "put braces around the statement")
            return
        if not said.label and said.verb == "release":
            yield DataTransfer(said.verb, at, None, frozenset())
            return
        mine = [c for _, c in calls if self._concerns(said, self.members[c.function])]
        later = [c for c in mine if c.start >= at]
        usual = later if said.verb == "advancedload" else [c for c in mine if c.start < at][::-1]
        chosen = {c.function: c for c in reversed([*usual, *mine])}
        if not chosen:
            nothing = "no codelet that is called uses what it names"
            self._say(said, f"{said.label} is not called" if said.label else nothing)
        done: set[str] = set()
        for call in dict.fromkeys(chosen[c.function] for c in [*usual, *mine]):
            member = self.members[call.function]
            clauses = [c for c in said.clauses if c.names]
            names = {n for k, n in enumerate(self._names(member)) if not clauses or _covers(clauses, member, k, n)}
            if said.verb == "synchronize" or names - done:
                yield DataTransfer(said.verb, at, call, frozenset(names - done))
            done |= names

    def _say(self, said: hmpp.Hmpp, why: str) -> None:
        self.warnings.append(caret(said.span, f"this {said.verb} has no effect: {why}"))

    def _names(self, member: CodeletFunction) -> list[str]:
        """Return the parameters of a codelet in order, and then the resident variables that it uses."""
        used = {n.name for n in c_ast.walk(member.function.body) if isinstance(n, c_ast.Name)}
        own = [p.name for p in member.function.params]
        return [*own, *sorted(self.stays & used - {*own})]

    def _concerns(self, said: hmpp.Hmpp, member: CodeletFunction) -> bool:
        """Tell whether a line is about a codelet.

        It has its label, or it has none, and names something of the codelets of its group, or resident variables.
        """
        if said.label:
            return member.label.lower() == said.label.lower()
        clauses = [c for c in said.clauses if c.names]
        if said.group and said.group == member.group and not clauses:
            return True
        names = self._names(member)
        usable = names if said.group and said.group == member.group else [n for n in names if n in self.stays]
        return any(_covers(clauses, member, names.index(n), n) for n in usable)

    def _next_line(self, span: Span) -> int:
        """Return where the line after a pragma begins; lines that continue it may follow, which are none of C."""
        starts = [0, *(k + 1 for k, ch in enumerate(self.text) if ch == "\n"), len(self.text)]
        line = span.line
        while line < len(starts) - 1 and self.text[starts[line - 1] : starts[line]].rstrip().endswith("\\"):
            line += 1
        return starts[min(line, len(starts) - 1)]

    def _separates(self, at: int) -> bool:
        """Tell whether a statement can be added at a place: the token before it ends a statement or opens a block."""
        before = [t for t in self.tokens if t.place is not None and t.place[1] <= at]
        return bool(before) and before[-1].text in ("{", "}", ";")

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, event: CodeletEvent, orders: Sequence[tuple[str, hmpp.Hmpp]]) -> CodeletCallText | None:
        """Return the call; ``orders`` are the lines that order transfers, each with the name of its function."""
        found = self._arguments(event.call.span, event.call.name)
        if found is None:
            return None
        start, end, arguments = found
        member = self.members[event.call.name]
        own = () if member.directive is None else member.directive.clauses
        site = () if event.site is None else event.site.clauses
        clauses = (*own, *site)
        params = self._names(member)

        def those(holds: Callable[[int, str], bool]) -> frozenset[str]:
            return frozenset(name for k, name in enumerate(params) if holds(k, name))

        def has(keys: Sequence[str]) -> Callable[[int, str], bool]:
            return lambda k, name: any(
                c.covers(k, name) and f"{c.key}={c.value.lower()}" in keys for c in clauses
            )  # fmt: skip

        present = those(has(("noupdate=true", "transfer=manual", "transfer=atfirstcall", "const=true")))
        kept = those(has(("delegatedstore=true", "noupdate=true", "transfer=manual")))
        mine = [
            said for function, said in orders if function == event.caller.function.name and self._concerns(said, member)
        ]
        # Loaded somewhere in the same function: a clause alone would leave what the host has written since.
        loads = [c for said in mine if said.verb == "advancedload" for c in said.clauses]
        loaded = those(lambda k, name: _covers(loads, member, k, name))
        present |= loaded & those(has(("advancedload=true",)))
        # Stored later in the same function: other calls copy what they write.
        stores = [
            c for said in mine if said.verb == "delegatedstore" and said.span.line > event.call.span.line
            for c in said.clauses
        ]  # fmt: skip
        stored = those(lambda k, name: _covers(stores, member, k, name)) - kept - self.stays
        kept |= stored
        present |= self.stays & {*params}
        kept |= self.stays & {*params}
        asynchronous = any(c.key == "asynchronous" and not c.names for c in site)
        if asynchronous and not any(said.verb == "synchronize" for said in mine):
            asynchronous = False
            where = event.call.span if event.site is None else event.site.span
            self.warnings.append(caret(where, "this call is not asynchronous: no synchronize of it in this function"))
        own_names = tuple(p.name for p in member.function.params)
        function = event.caller.function
        declared = [*function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare))]
        local = frozenset(d.name for d in declared)
        return CodeletCallText(
            event.call.name, start, end, arguments, own_names, local, present, kept, asynchronous, stored
        )  # fmt: skip

    def _stored(self, event: CodeletEvent, call: CodeletCallText, transfers: Sequence[DataTransfer]) -> CodeletCallText:
        """Return the call, after which an array that no delegatedstore stores is copied to the host.

        A line stores the array that its own call passes, by the words of the call. Another call of the codelet may pass
        another array, or the same words may mean another one by then.
        """
        later = [t for t in transfers if t.verb == "delegatedstore" and t.at > call.start and t.call is not None]
        texts = {passed for t in later if t.call is not None for name in t.names if (passed := t.call.argument(name))}
        last = max((self.text.count("\n", 0, t.at) for t in later), default=0)
        changed = _reassigned(event, last, self.file.globals) if call.awaited else frozenset()
        others = {
            name for name in call.awaited
            if call.argument(name) not in texts or changed & {*re.findall(r"[A-Za-z_]\w*", call.argument(name))}
        }  # fmt: skip
        if others:
            names = ", ".join(sorted(others))
            why = "the delegatedstore after it is, or may be, of another array"
            self.warnings.append(caret(event.call.span, f"{names} is copied to the host after this call: {why}"))
        return replace(call, deferred=call.deferred - others)

    def _arguments(self, span: Span, name: str) -> tuple[int, int, tuple[str, ...]] | None:
        """Return where a call begins and ends, and its arguments; None if a macro makes a part of it."""
        k = self.numbers.get((span.line, span.col))
        if span.file != self.path or k is None or self.tokens[k].text != name or self.tokens[k + 1].text != "(":
            return None
        depth, cuts = 0, []
        end = k + 1
        for end in range(k + 1, len(self.tokens)):
            depth += (self.tokens[end].text in "([{") - (self.tokens[end].text in ")]}")
            if depth == 0 or (depth == 1 and self.tokens[end].text in ("(", ",")):
                cuts.append(end)
            if depth == 0:
                break
        if any(t.macro is not None for t in (self.tokens[k], *(self.tokens[c] for c in cuts))):
            return None
        places = [_place(self.tokens[c]) for c in cuts]
        texts = [self.text[a[1] : b[0]].strip() for a, b in itertools.pairwise(places)]
        return _place(self.tokens[k])[0], places[-1][1], tuple(t for t in texts if t)

    # -- calls between which the host touches no array ----------------------------------------------------------------

    def _resident(self, caller: Caller) -> Iterator[ResidentCalls]:
        function = caller.function
        if function.open.file != self.path:
            return
        laid = layout(self.path, self.text, self.source.tokens, function.open)
        if laid is not None:
            yield from self._resident_in(
                caller.body.items, _Quiet.of(function, caller.body, self.resident, self.file.globals), laid
            )

    def _resident_in(self, items: Sequence[c_ast.Item], quiet: _Quiet, laid: Layout) -> Iterator[ResidentCalls]:
        k = 0
        while k < len(items):
            if _is_of_threads(items[k]):
                k = next(
                    (j + 1 for j in range(k, len(items)) if not isinstance(items[j], c_ast.PragmaItem)), len(items)
                )
                continue
            end = k
            while end < len(items) and quiet.allows(items[end]):
                end += 1
            run = _trimmed(items[k:end], quiet)
            if run and (quiet.repeats(run) or sum(map(quiet.calls, run)) > 1):
                place = _extent(laid, run[0].span, run[-1].span)
                if place is not None and not any(isinstance(i, c_ast.Declare) for i in run):
                    yield ResidentCalls(*place, run[0].span, sum(map(quiet.calls, run)))
            if end == k:
                for block in _blocks(items[k]):
                    yield from self._resident_in(block.items, quiet, laid)
                end = k + 1
            k = end


def _covers(clauses: Sequence[hmpp.Clause], member: CodeletFunction, position: int, name: str) -> bool:
    """Tell whether clauses name a parameter of a codelet: plainly, as ``label::NAME`` or as ``*::NAME``."""
    labels = ("", "*", member.label.lower())
    own = (
        replace(c, names=tuple(n for n in c.names if n.rpartition("::")[0].strip().lower() in labels)) for c in clauses
    )
    return any(c.covers(position, name) for c in own)


def _stays_on_device(program: Program) -> frozenset[str]:
    """Return the variables at file scope that an ``hmpp resident`` line stands before."""
    lines: list[Span] = []
    for pragma in program.source.pragmas:
        if pragma.family == "hmpp":
            try:
                said = hmpp.parse(pragma)
            except (ParseError, UnsupportedError):
                continue  # the survey of the file's pragmas has warned of it
            lines += [said.span] if said.verb == "resident" else []
    found: set[str] = set()
    for line in lines:
        after = [d for d in program.file.globals if d.span.file == line.file and d.span.line > line.line]
        first = min((d.span.line for d in after), default=0)
        found |= {d.name for d in after if d.span.line == first}
    return frozenset(found)


def _reassigned(event: CodeletEvent, last: int, globals_: Sequence[c_ast.Declare]) -> frozenset[str]:
    """Return the variables and fields that may have other values at a line after a call, or when it is made again.

    These are the ones that the statements until the line set, and those in loops around the call, or that are pointers
    whose addresses they take.
    """
    function, call = event.caller.function, event.call.span
    loops = [
        n for n in c_ast.walk(function.body)
        if isinstance(n, c_ast.For | c_ast.While) and any(_same_call(c, event.call) for c in c_ast.walk(n))
    ]  # fmt: skip
    declared = [*globals_, *function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare))]
    pointers = {d.name for d in declared if isinstance(d.type, c_ast.Pointer)}
    between = [
        n for n in c_ast.walk(function.body)
        if isinstance(n, c_ast.Syntax) and (call.line, call.col) < (n.span.line, n.span.col) < (last + 1, 0)
    ]  # fmt: skip
    found: set[str] = set()
    for node in (*between, *(n for loop in loops for n in c_ast.walk(loop))):
        match node:
            case c_ast.Assignment(_, c_ast.Name(name) | c_ast.Field(_, name)):
                found.add(name)
            case c_ast.Unary("++" | "--", c_ast.Name(name) | c_ast.Field(_, name)):
                found.add(name)
            case c_ast.Unary("&", c_ast.Name(name)) if name in pointers:
                found.add(name)
            case c_ast.Declare(name, init=init) if init is not None:
                found.add(name)
    return frozenset(found)


def _same_call(node: object, call: c_ast.Call) -> bool:
    return isinstance(node, c_ast.Call) and node.span == call.span


def _is_all_of_its_function(member: CodeletFunction) -> bool:
    """Tell whether a function does nothing but the codelet that it is, or contains."""
    if member.nest is not None:
        return False
    part = region(member.function.body, member.function.name, member.mark)
    rest = () if part is None else part.outside.items
    return all(isinstance(i, c_ast.PragmaItem) or (isinstance(i, c_ast.Declare) and i.init is None) for i in rest)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """What of a function touches no memory of arrays besides calls of codelets.

    ``numbers`` are its variables that hold numbers or pointers, and whose addresses it does not take; ``arrays`` are
    those that arguments may name, the variables at file scope included.
    """

    numbers: frozenset[str]
    arrays: frozenset[str]
    members: Mapping[str, CodeletFunction]

    @classmethod
    def of(
        cls, function: c_ast.Function, body: c_ast.Block, members: Mapping[str, CodeletFunction],
        globals_: Sequence[c_ast.Declare],
    ) -> _Quiet:  # fmt: skip
        declared = [*function.params, *(n for n in c_ast.walk(body) if isinstance(n, c_ast.Declare))]
        taken = {n.arg.name for n in c_ast.walk(body)
                 if isinstance(n, c_ast.Unary) and n.op == "&" and isinstance(n.arg, c_ast.Name)}  # fmt: skip
        plain = {d.name for d in declared if isinstance(d.type, c_ast.Basic | c_ast.Pointer) and not d.static}
        arrays = {d.name for d in (*globals_, *declared) if isinstance(d.type, c_ast.Pointer | c_ast.ArrayOf)}
        return cls(frozenset(plain - taken), frozenset(arrays), members)

    def allows(self, item: c_ast.Item) -> bool:
        match item:
            case c_ast.Evaluate(c_ast.Call(name, args)) if name in self.members:
                return all(map(self._is_passed, args))
            case c_ast.Evaluate(expr):
                return self._counts(expr)
            case c_ast.Declare(init=init):
                return isinstance(item.type, c_ast.Basic) and (init is None or self._counts(init))
            case c_ast.For(init, cond, after, body):
                heads = [e for e in (cond, after) if e is not None]
                return (
                    all(map(self.allows, init)) and all(map(self._counts, heads)) and all(map(self.allows, body.items))
                )
            case c_ast.While(cond, body):
                return self._counts(cond) and all(map(self.allows, body.items))
            case c_ast.If(cond, then, other):
                return self._counts(cond) and all(map(self.allows, (*then.items, *other.items)))
            case c_ast.Block(items):
                return all(map(self.allows, items))
            case c_ast.PragmaItem():
                return not _is_of_threads(item)
        return False

    def _is_passed(self, e: c_ast.Expr) -> bool:
        """Tell whether an argument is a number, a variable or its address: nothing is read from an array."""
        match e:
            case c_ast.Name(name) if name in self.arrays:
                return True
            case c_ast.Unary("&", c_ast.Name()):
                return True
        return self._counts(e)

    def _counts(self, e: object) -> bool:
        """Tell whether an expression computes with numbers and pointers alone."""
        match e:
            case c_ast.Number():
                return True
            case c_ast.Name(name):
                return name in self.numbers
            case c_ast.Unary(op, arg) if op not in "*&":
                return self._counts(arg)
            case c_ast.Binary(_, lhs, rhs) | c_ast.Assignment(_, lhs, rhs):
                return self._counts(lhs) and self._counts(rhs)
            case c_ast.Ternary(a, b, c):
                return all(map(self._counts, (a, b, c)))
            case c_ast.Comma(parts):
                return all(map(self._counts, parts))
            case c_ast.Cast(_, arg):
                return self._counts(arg)
        return False

    def calls(self, item: object) -> int:
        return sum(isinstance(n, c_ast.Call) and n.name in self.members for n in c_ast.walk(item))

    def repeats(self, items: Sequence[c_ast.Item]) -> bool:
        """Tell whether a loop calls a codelet."""
        loops = (n for i in items for n in c_ast.walk(i) if isinstance(n, c_ast.For | c_ast.While))
        return any(self.calls(loop) for loop in loops)


def _is_of_threads(item: c_ast.Item) -> bool:
    """Tell whether a pragma has the statement after it run by several threads."""
    return isinstance(item, c_ast.PragmaItem) and item.pragma.family in ("omp", "acc")


def _trimmed(items: Sequence[c_ast.Item], quiet: _Quiet) -> Sequence[c_ast.Item]:
    """Return the items from the first to the last that calls a codelet."""
    calling = [k for k, item in enumerate(items) if quiet.calls(item)]
    return items[calling[0] : calling[-1] + 1] if calling else ()


def _extent(laid: Layout, first: Span, last: Span) -> tuple[int, int] | None:
    """Return where statements begin and end in the text, None if macros make them."""
    tokens = [laid.find(first, ()), laid.find(last, ())]
    if tokens[0] is None or tokens[1] is None:
        return None
    run = laid.run(tokens[0], tokens[1])
    if run is None or not run.block.braced:
        return None
    before = laid.tokens[run.tokens[0] - 1].text if run.tokens[0] else ""
    if before not in ("{", "}", ";") or laid.tokens[run.tokens[0]].text == ":":
        return None  # a label is before it
    start, end = laid.start(run.tokens[0]), laid.end(run.tokens[1])
    return None if start is None or end is None else (start, end)


def _blocks(item: object) -> Iterator[c_ast.Block]:
    if isinstance(item, c_ast.Block):
        yield item
        return
    for child in c_ast.children(item):
        yield from _blocks(child)


def _place(token: Token) -> tuple[int, int]:
    assert token.place is not None, "only tokens of the file were kept"
    return token.place
