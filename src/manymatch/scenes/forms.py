"""Logical forms of captions, and when one is true of a scene.

A form says: there are objects, pairwise different, each of a noun (kind or hypernym) with given
colour, size and state, that stand in given relations, before a given background. An object with
count n stands for n different ones, each with all attributes and relations (so a count means
"at least"). The form is true of a scene exactly if such an injective mapping exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from manymatch.scenes.kinds import is_a

ATTRIBUTES = ("colour", "size", "state")


@dataclass
class FormObject:
    """What a caption says about one object, or about `count` like ones."""

    noun: str
    colour: str | None = None
    size: str | None = None
    state: str | None = None
    count: int = 1


@dataclass
class Form:
    """What a caption says."""

    background: str | None = None
    objects: list[FormObject] = field(default_factory=list)
    relations: list[tuple[int, str, int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "background": self.background,
            "objects": [vars(each) for each in self.objects],
            "relations": [list(relation) for relation in self.relations],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Form:
        return cls(
            value["background"],
            [FormObject(**each) for each in value["objects"]],
            [(s, name, o) for s, name, o in value["relations"]],
        )


def fits(wanted: FormObject, thing: dict[str, Any]) -> bool:
    """Whether one object of a scene graph is as the form says."""
    return is_a(thing["kind"], wanted.noun) and all(
        getattr(wanted, name) in (None, thing[name]) for name in ATTRIBUTES
    )


class Pattern:
    """A form with its counts spelled out, ordered so that the search for a mapping fails early."""

    def __init__(self, form: Form):
        self.background = form.background
        copies = [range(each.count) for each in form.objects]
        nodes = [(i, copy) for i, each in enumerate(copies) for copy in each]
        place = {node: k for k, node in enumerate(nodes)}
        self.wanted = [form.objects[i] for i, _ in nodes]
        self.checks: list[list[tuple[int, str, int]]] = [[] for _ in nodes]
        for s, name, o in form.relations:
            for s_copy in copies[s]:
                for o_copy in copies[o]:
                    a, b = place[s, s_copy], place[o, o_copy]
                    self.checks[max(a, b)].append((a, name, b))

    def true_of(
        self,
        background: str,
        things: Sequence[dict[str, Any]],
        relations: frozenset[tuple[int, str, int]],
    ) -> bool:
        """Whether the form can be embedded in the scene graph."""
        if self.background not in (None, background):
            return False
        choices = [[k for k, t in enumerate(things) if fits(each, t)] for each in self.wanted]
        return all(choices) and self._embeds(choices, relations, [])

    def _embeds(
        self,
        choices: list[list[int]],
        relations: frozenset[tuple[int, str, int]],
        chosen: list[int],
    ) -> bool:
        depth = len(chosen)
        if depth == len(choices):
            return True
        for candidate in choices[depth]:
            if candidate in chosen:
                continue
            chosen.append(candidate)
            related = all(
                (chosen[a], name, chosen[b]) in relations for a, name, b in self.checks[depth]
            )
            if related and self._embeds(choices, relations, chosen):
                return True
            chosen.pop()
        return False
