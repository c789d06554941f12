"""The scene graph of a caption in a result file."""

from __future__ import annotations

from pydantic import model_validator

from manymatch.results.base import Record


class Relation(Record):
    """`objects[subject] --label--> objects[object]`."""

    subject: int
    label: str
    object: int


class Graph(Record):
    """The fields of `scene_graphs.graph.SceneGraph`, checked: `attributes[i]` are the phrases
    attached to `objects[i]`."""

    objects: tuple[str, ...]
    names: tuple[str, ...]
    attributes: tuple[tuple[str, ...], ...]
    relations: tuple[Relation, ...]

    @model_validator(mode="after")
    def _check_objects(self) -> Graph:
        count = len(self.objects)
        ends = {end for edge in self.relations for end in (edge.subject, edge.object)}
        if len(self.attributes) != count or not ends <= set(range(count)):
            raise ValueError("attributes or relations of objects that the graph does not have")
        return self
