"""Arrays of structs whose fields have several types: one array for each field that is used.

struct cell { int id; double x; } *p, *q;           int *p_id, *q_id;  double *p_x, *q_x;
q = p + i;  q->x = p[0].x * q->id;          ==>     q_id = p_id + i;  q_x = p_x + i;
                                                    *q_x = p_x[0] * *q_id;
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_layout import NoField, leaf_type, with_leaf

Path = tuple[str, ...]


@dataclass(slots=True)
class FieldArrays:
    """The arrays for the fields of arrays of structs; ``paths`` are the fields that are used, by the struct's tag.

    ``types`` are those of all variables; ``node`` rewrites an expression, and ``array`` returns the variable that an
    array among the fields of an object is. ``made`` are the new variables by the old ones and the fields.
    """

    types: dict[str, c_ast.Type]
    node: Callable[[Any], Any]
    array: Callable[[c_ast.Field], str]
    paths: dict[str, dict[Path, c_ast.Type]] = field(default_factory=dict)
    made: dict[tuple[str, Path], str] = field(default_factory=dict)

    def of(self, name: str) -> dict[Path, c_ast.Type]:
        """Return the fields of the array or pointer that have arrays of their own; empty for other variables."""
        kind = self.types.get(name)
        leaf = None if kind is None else leaf_type(kind)
        if not isinstance(leaf, c_ast.Struct) or not isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
            return {}
        return self.paths.get(leaf.tag, {})

    def name(self, name: str, path: Path) -> str:
        """Return the variable for a field. Raises NoField where the field is none that is used."""
        kind = self.of(name).get(path)
        if kind is None:
            raise NoField
        if (name, path) not in self.made:
            taken = {base(n) for n in self.types}
            shown = "_".join((base(name), *(part for part in path if part != "[]")))
            while shown in taken:
                shown += "_"
            new = f"{shown}#e{len(self.made)}"
            self.made[name, path] = new
            self.types[new] = with_leaf(self.types[name], kind)
        return self.made[name, path]

    def column(self, e: Any, path: Path) -> c_ast.Expr:
        """Return an expression whose value is a struct or a pointer to one as that of a field.

        Raises NoField for an expression that is none of these.
        """
        match e:
            case c_ast.Name(name):
                return replace(e, name=self.name(name, path))
            case c_ast.Index(inner, index):
                return replace(e, base=self.column(inner, path), index=self.node(index))
            case c_ast.Unary("*" | "&", inner):
                return replace(e, arg=self.column(inner, path))
            case c_ast.Binary("+" | "-", lhs, rhs):
                if self.is_address(lhs):
                    return replace(e, lhs=self.column(lhs, path), rhs=self.node(rhs))
                return replace(e, lhs=self.node(lhs), rhs=self.column(rhs, path))
            case c_ast.Ternary(cond, then, other):
                return replace(e, cond=self.node(cond), then=self.column(then, path), other=self.column(other, path))
            case c_ast.Cast(c_ast.Pointer(c_ast.Struct()), inner):
                return self.column(inner, path)
            case c_ast.Field():
                return c_ast.Name(self.name(self.array(e), path), span=e.span)
        if e in (c_ast.Number("0"), c_ast.Name("NULL")):
            return e  # type: ignore[no-any-return]
        raise NoField

    def is_address(self, e: Any) -> bool:
        """Tell whether an expression is a pointer to structs whose fields have arrays of their own."""
        match e:
            case c_ast.Name(name):
                return bool(self.of(name))
            case c_ast.Unary("&", inner):
                return self.is_element(inner)
            case c_ast.Binary("+" | "-", lhs, rhs):
                return self.is_address(lhs) != self.is_address(rhs)
            case c_ast.Ternary(_, then, _):
                return self.is_address(then)
            case c_ast.Cast(c_ast.Pointer(c_ast.Struct()), inner):
                return self.is_address(inner)
            case c_ast.Field():
                try:
                    return bool(self.of(self.array(e)))
                except NoField:
                    return False
        return False

    def is_element(self, e: Any) -> bool:
        match e:
            case c_ast.Index(inner, _) | c_ast.Unary("*", inner):
                return self.is_address(inner) or self.is_element(inner)
        return False

    # -- statements ---------------------------------------------------------------------------------

    def statement(self, item: Any) -> tuple[Any, ...] | None:
        """Return a declaration or a setting of a pointer to structs for each field, None for other statements."""
        match item:
            case c_ast.Declare(name, _, init) if self.of(name):
                return tuple(self.declared(item, name, init))
            case c_ast.Evaluate(e):
                made = self.set(e)
                return None if made is None else tuple(replace(item, expr=part) for part in made)
        return None

    def declared(self, item: c_ast.Declare, name: str, init: Any) -> Iterator[c_ast.Declare]:
        for path in self.of(name):
            new = self.name(name, path)
            value = None if init is None else self.column(init, path)
            yield replace(item, name=new, type=self.types[new], init=value)

    def set(self, e: Any) -> tuple[c_ast.Expr, ...] | None:
        """Return an assignment to a pointer to structs, or a move of it, for each of the fields; None for others."""
        match e:
            case c_ast.Comma(parts):
                several = [self.set(part) for part in parts]
                if all(made is None for made in several):
                    return None
                return tuple(
                    n for part, made in zip(parts, several, strict=True)
                    for n in ((self.node(part),) if made is None else made)
                )  # fmt: skip
            case c_ast.Unary("++" | "--", c_ast.Name(name) as target) if self.of(name):
                return tuple(replace(e, arg=self.column(target, path)) for path in self.of(name))
            case c_ast.Assignment(op, c_ast.Name(name) as target, value) if self.of(name):
                return tuple(
                    replace(e, target=self.column(target, p), value=self.node(value) if op else self.column(value, p))
                    for p in self.of(name)
                )
        return None

    def compared(self, e: c_ast.Binary) -> c_ast.Expr | None:
        """Return a comparison or difference of two pointers to structs as one of pointers to a field."""
        if (
            e.op not in ("<", "<=", ">", ">=", "==", "!=", "-")
            or not self.is_address(e.lhs)
            or not self.is_address(e.rhs)
        ):
            return None
        for paths in self.paths.values():
            for path in paths:
                try:
                    return replace(e, lhs=self.column(e.lhs, path), rhs=self.column(e.rhs, path))
                except NoField:
                    continue
        return None
