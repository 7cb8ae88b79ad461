"""Find the parameters of a program's codelets that are the same array, or the same value.

f(n, A, tmp);  g(n, tmp, B);       f's 2nd and g's 1st array are the caller's tmp, both sizes its n

Variables are followed through the functions that pass them on, and through pointers that are set once. If a call is
missing, the ``map`` and ``mapbyname`` lines of the group decide, or else equal names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from looptune.frontend import c_ast
from looptune.frontend.call_sites import Caller, CodeletCall
from looptune.frontend.name_resolution import base, root_variable, singly_assigned, used_names
from looptune.ir.nodes import Array, Codelet, Scalar

if TYPE_CHECKING:
    from looptune.frontend.hmpp import Hmpp

_DEEPEST = 8
"""Functions that pass their own parameters on, one inside the other, that are followed."""

Key = tuple[object, ...]
"""What a parameter is: equal keys are one array, or one value."""

ELEMENT = "element"
"""Stands in the key of a scalar between the array it is an element of and the indices."""

Param = Array | Scalar


def containing_array(key: Key) -> tuple[Key, tuple[int, ...]]:
    """Return the array that would hold a scalar's value, and the indices.

    It is the variable itself, or the array of which it is an element.
    """
    if ELEMENT in key:
        at = key.index(ELEMENT)
        indices = key[at + 1]
        assert isinstance(indices, tuple), "the indices follow"
        return ("array", *key[1:at]), indices
    return ("array", *key[1:-1]), (0,)


def keys(
    runs: Sequence[CodeletCall], codelets: Sequence[Codelet], variables: Variables, maps: Sequence[Hmpp]
) -> list[dict[str, Key]]:
    """Return a key for each parameter of each run; equal keys mean the same array or value."""
    found = [_at_call(k, run, codelet, variables) for k, (run, codelet) in enumerate(zip(runs, codelets, strict=True))]
    classes = list(_classes(runs, codelets, maps))
    for k, codelet in enumerate(codelets):
        for p in codelet.params:
            if p.name not in found[k]:
                found[k][p.name] = _without_call(k, p, runs, codelets, found, classes)
    return found


def _at_call(index: int, run: CodeletCall, codelet: Codelet, variables: Variables) -> dict[str, Key]:
    """Return the parameters that a call or the file's scope decides."""
    found: dict[str, Key] = {}
    own = [p.name for p in run.callee.function.params]
    for p in codelet.params:
        if p.name not in own:
            found[p.name] = _kinded(p, ("global", p.name))
        elif run.call is not None and run.caller is not None and own.index(p.name) < len(run.call.args):
            arg = run.call.args[own.index(p.name)]
            match p:
                case Scalar():
                    key = variables.scalar(run.caller, arg)
                    made = ("scalar", "own", index, p.name) if key is None else _kinded(p, key)
                    # two sizes that are the same number in one call stay two parameters
                    again = made[1] == "value" and made in found.values()
                    found[p.name] = (*made, p.name) if again else made
                case Array():
                    key = variables.array(run.caller, arg)
                    if key is not None:
                        found[p.name] = _kinded(p, key)
    return found


def _kinded(p: Param, key: Key) -> Key:
    return ("array", *key) if isinstance(p, Array) else ("scalar", *key, p.dtype)


def _classes(
    runs: Sequence[CodeletCall], codelets: Sequence[Codelet], maps: Sequence[Hmpp]
) -> Iterator[frozenset[tuple[str, str]]]:
    """Yield the (label, parameter) pairs that one ``map`` clause, or one name of ``mapbyname``, makes one."""
    labels = {(r.callee.label, r.callee.group): c for r, c in zip(runs, codelets, strict=True)}
    for line in maps:
        inside = {label: {p.name for p in c.params} for (label, group), c in labels.items() if group == line.group}
        if line.verb == "mapbyname":
            for name in line.names:
                yield frozenset((label, name) for label, names in inside.items() if name in names)
            continue
        for clause in line.clauses:
            pairs = (n.partition("::")[::2] for n in clause.names)
            yield frozenset(
                (label, name)
                for wanted, name in ((w.strip(), n.strip()) for w, n in pairs)
                for label in (inside if wanted == "*" else (wanted,))
                if name in inside.get(label, ())
            )


def _without_call(
    index: int,
    p: Param,
    runs: Sequence[CodeletCall],
    codelets: Sequence[Codelet],
    found: Sequence[Mapping[str, Key]],
    classes: Sequence[frozenset[tuple[str, str]]],
) -> Key:
    """Return the parameter that ``map`` joins with ``p``, else the first of its name and type, else ``p`` itself."""
    mapped = {pair for c in classes if (runs[index].callee.label, p.name) in c for pair in c}
    for by_map in (True, False):
        for k, (run, codelet) in enumerate(zip(runs, codelets, strict=True)):
            for q in codelet.params:
                same = (run.callee.label, q.name) in mapped if by_map else not mapped and q.name == p.name
                if k != index and same and q.name in found[k] and type(q) is type(p) and q.dtype == p.dtype:
                    return found[k][q.name]
    return _kinded(p, ("alone", index, p.name))


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables that are arguments of calls, followed through the functions that pass them on."""

    file: c_ast.File
    callers: tuple[Caller, ...]
    runs: tuple[CodeletCall, ...]

    def array(self, caller: Caller, e: c_ast.Expr) -> Key | None:
        """Return the array that an argument denotes, or None if it is no variable.

        The key of a part of an array contains the expression.
        """
        name = _whole(e)
        if name is not None:
            return self.variable(caller, name)
        name = root_variable(e)
        return None if name is None else (*self.variable(caller, name), "part", repr(e))

    def scalar(self, caller: Caller, e: c_ast.Expr) -> Key | None:
        """Return the value that an argument denotes, or None if it may differ between calls."""
        while isinstance(e, c_ast.Cast):
            e = e.arg
        names = used_names((e,))
        if names & self.changing(caller) or any(
            isinstance(n, c_ast.Call | c_ast.Unsupported | c_ast.Field) for n in c_ast.walk(e)
        ):
            return None
        match e:
            case c_ast.Name(name) if not self.is_constant(name):
                return self.variable(caller, name)
        element = _element(e)
        if element is not None:
            return (*self.variable(caller, element[0]), ELEMENT, element[1])
        return ("value", repr(e)) if not names else ("value", caller.function.name, repr(e))

    def is_constant(self, name: str) -> bool:
        return any(d.name == name and d.const for d in self.file.globals)

    def variable(self, caller: Caller, name: str, depth: int = 0) -> Key:
        """Return the variable behind a name: the argument of a parameter of the caller, or the target of a pointer."""
        if depth > _DEEPEST:
            return ("local", caller.function.name, name)
        if name in caller.parameters:
            passed = [
                (other, n.args[caller.parameters.index(name)])
                for other in self.callers
                for n in c_ast.walk(other.body)
                if isinstance(n, c_ast.Call)
                and n.name == caller.function.name
                and len(n.args) == len(caller.parameters)
            ]
            target = _whole(passed[0][1]) if len(passed) == 1 else None
            if target is not None:
                return self.variable(passed[0][0], target, depth + 1)
            return ("local", caller.function.name, name)
        if "#" not in name:
            return ("global", name)
        pointed = _pointed(caller, name)
        return ("local", caller.function.name, name) if pointed is None else self.variable(caller, pointed, depth + 1)

    def changing(self, caller: Caller) -> frozenset[str]:
        """Return the variables that are written between the first and the last call of a codelet in the caller."""
        calls = [id(r.call) for r in self.runs if r.caller is caller]
        nodes = list(c_ast.walk(caller.body))
        at = [k for k, n in enumerate(nodes) if id(n) in calls]
        if not at:
            return frozenset()
        found = (_written(n) for n in nodes[at[0] : at[-1] + 1])
        return frozenset(name for name in found if name is not None)


def _element(e: Any) -> tuple[str, tuple[int, ...]] | None:
    """Return the variable and the indices of ``A[2][0]`` and ``*p``."""
    match e:
        case c_ast.Name(name):
            return name, ()
        case c_ast.Unary("*", inner):
            found = _element(inner)
            return None if found is None else (found[0], (*found[1], 0))
        case c_ast.Index(inner, c_ast.Number(text)) if text.isdecimal():
            found = _element(inner)
            return None if found is None else (found[0], (*found[1], int(text)))
        case _:
            return None


def _written(node: Any) -> str | None:
    match node:
        case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--", target):
            return root_variable(target)
        case _:
            return None


def _whole(e: Any) -> str | None:
    """Return the variable of ``A``, ``*A``, ``&A[0][0]``, ``(float *)A``: from its first element on."""
    match e:
        case c_ast.Name(name):
            return name
        case c_ast.Unary("*" | "&", inner) | c_ast.Cast(_, inner) | c_ast.Index(inner, c_ast.Number("0")):
            return _whole(inner)
        case _:
            return None


def _pointed(caller: Caller, name: str) -> str | None:
    """Return the variable a pointer is set to, where it is set once: ``float *p = A``, ``p = &A[0]``."""
    if name not in singly_assigned(caller.body):
        return None
    for value in _settings(caller, name):
        target = _whole(value)
        return target if target is not None and base(target) != base(name) else None
    return None


def _settings(caller: Caller, name: str) -> Iterator[c_ast.Expr]:
    pointers = {
        n.name for n in c_ast.walk(caller.body) if isinstance(n, c_ast.Declare) and isinstance(n.type, c_ast.Pointer)
    }
    for node in c_ast.walk(caller.body) if name in pointers else ():
        match node:
            case c_ast.Declare(own, _, init) if (
                own == name and init is not None and not isinstance(init, c_ast.InitializerList)
            ):
                yield init
            case c_ast.Assignment("", c_ast.Name(own), value) if own == name:
                yield value
