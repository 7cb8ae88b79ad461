"""Directives of the stage ``storage``, which name variables and change where their values are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.schedule.directives.base import DirectiveSite, Rewrite, Transform

if TYPE_CHECKING:
    from looptune.ir.nodes import Arg, Directive


@dataclass(frozen=True)
class StorageTransform(Transform):
    """A directive with the names of ``variables``; it is applied to one after the other.

    ``noun``: what they are, with its article, in messages. ``change`` returns the loop with what replaces it.
    """

    stage: ClassVar = "storage"
    noun: ClassVar[str]

    variables: tuple[str, ...]

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        names: list[str] = []
        for arg in directive.args:
            if not arg.key or arg.values:
                takes = f"{cls.name} takes names of {cls.noun.split()[-1]}s"
                raise DirectiveError(f"{takes} (syntax: {cls.syntax})", arg.span)
            if arg.key in names:
                raise DirectiveError(f"{cls.name} names {arg.key} twice", arg.span)
            names.append(arg.key)
        if not names:
            raise DirectiveError(f"{cls.name} needs the name of {cls.noun} (syntax: {cls.syntax})", directive.span)
        return cls(tuple(names), span=directive.span)

    @classmethod
    def is_word(cls, arg: Arg, directive: Directive) -> bool:
        return False

    def schedule(self, site: DirectiveSite) -> None:
        """Judge the change. Raises DirectiveError or IllegalTransform, as a refusal."""
        (variable,) = self.variables
        site.generated.append(self.change(site, variable))

    def change(self, site: DirectiveSite, variable: str) -> Rewrite:
        raise NotImplementedError

    def apply(self, site: DirectiveSite) -> Rewrite:
        (change,) = site.generated
        assert isinstance(change, Rewrite), "a site is for one directive"
        return change
