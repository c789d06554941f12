"""Logical forms of captions, and whether a form is true of a scene.

A form states that there are pairwise different objects, each with a noun (kind or hypernym) and
optionally a colour, size and state, that have certain relations in front of a certain background.
An object with count n stands for n different objects with the same attributes and relations, so a
count means "at least n". A form is true of a scene if and only if an injective mapping of the
form's objects to the scene's objects satisfies all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from manymatch.scenes.kinds import is_a

ATTRIBUTES = ("colour", "size", "state")


@dataclass
class FormObject:
    """What a caption says about one object, or about `count` similar objects."""

    noun: str
    colour: str | None = None
    size: str | None = None
    state: str | None = None
    count: int = 1


@dataclass
class Form:
    """What a caption says: the background, objects, and relations (subject, name, object)."""

    background: str | None = None
    objects: list[FormObject] = field(default_factory=list)
    relations: list[tuple[int, str, int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "background": self.background,
            "objects": [vars(item) for item in self.objects],
            "relations": [list(relation) for relation in self.relations],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Form:
        return cls(
            value["background"],
            [FormObject(**item) for item in value["objects"]],
            [(s, name, o) for s, name, o in value["relations"]],
        )


def fits(wanted: FormObject, thing: dict[str, Any]) -> bool:
    """Return whether an object of a scene graph has the noun and attributes of `wanted`."""
    return is_a(thing["kind"], wanted.noun) and all(
        getattr(wanted, name) in (None, thing[name]) for name in ATTRIBUTES
    )


class Pattern:
    """A form with one node per object of a count; the search for a mapping fails early."""

    def __init__(self, form: Form):
        self.background = form.background
        copies = [range(item.count) for item in form.objects]
        nodes = [(i, copy) for i, numbers in enumerate(copies) for copy in numbers]
        index = {node: k for k, node in enumerate(nodes)}
        self.wanted = [form.objects[i] for i, _ in nodes]
        self.checks: list[list[tuple[int, str, int]]] = [[] for _ in nodes]
        for s, name, o in form.relations:
            for s_copy in copies[s]:
                for o_copy in copies[o]:
                    a, b = index[s, s_copy], index[o, o_copy]
                    self.checks[max(a, b)].append((a, name, b))

    def true_of(
        self,
        background: str,
        things: Sequence[dict[str, Any]],
        relations: frozenset[tuple[int, str, int]],
    ) -> bool:
        """Return whether the form can be mapped into the scene graph."""
        if self.background not in (None, background):
            return False
        choices = [[k for k, t in enumerate(things) if fits(item, t)] for item in self.wanted]
        return all(choices) and self._embeds(choices, relations, [])

    def _embeds(
        self,
        choices: list[list[int]],
        relations: frozenset[tuple[int, str, int]],
        mapped: list[int],
    ) -> bool:
        depth = len(mapped)
        if depth == len(choices):
            return True
        for candidate in choices[depth]:
            if candidate in mapped:
                continue
            mapped.append(candidate)
            related = all(
                (mapped[a], name, mapped[b]) in relations for a, name, b in self.checks[depth]
            )
            if related and self._embeds(choices, relations, mapped):
                return True
            mapped.pop()
        return False
