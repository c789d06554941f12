"""The scene graph of a caption: objects, their attributes, and labelled directed relations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

MAX_OBJECTS, MAX_TOKENS, MAX_ATTRIBUTES, MAX_RELATIONS = 13, 8, 4, 13
"""CORA's limits: objects and relations per caption, tokens per phrase, attributes per object."""


@dataclass(frozen=True)
class Relation:
    """`objects[subject] --label--> objects[object]`; the label is lower-case words."""

    subject: int
    label: str
    object: int


@dataclass(frozen=True)
class SceneGraph:
    """The scene graph of a caption.

    Attributes:
        objects: surface phrases in lower case ("two dogs" -> "dogs").
        names: the same phrases with a lemmatised head ("dog").
        attributes: for each object, the phrases that describe it.
        relations: the labelled edges between objects.
    """

    objects: tuple[str, ...]
    names: tuple[str, ...]
    attributes: tuple[tuple[str, ...], ...]
    relations: tuple[Relation, ...]

    def to_dict(self) -> dict[str, Any]:
        # `asdict` would copy every phrase, and shards hold half a million graphs.
        return {**vars(self), "relations": tuple({**vars(relation)} for relation in self.relations)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "SceneGraph":
        return cls(
            tuple(value["objects"]),
            tuple(value["names"]),
            tuple([tuple(phrases) for phrases in value["attributes"]]),
            tuple([Relation(**relation) for relation in value["relations"]]),
        )


NO_GRAPH = SceneGraph((), (), (), ())
"""The graph of a caption for a method that reads no graphs."""
PARSER = b"parser"
"""The key in the metadata of a table of graphs: the spaCy model that parsed the captions."""
SCHEMA = pa.schema(
    [
        ("caption_id", pa.string()),
        ("objects", pa.list_(pa.string())),
        ("names", pa.list_(pa.string())),
        ("attributes", pa.list_(pa.list_(pa.string()))),
        (
            "relations",
            pa.list_(
                pa.struct([("subject", pa.int8()), ("label", pa.string()), ("object", pa.int8())])
            ),
        ),
    ]
)
"""`data/scene_graphs/DATASET.parquet`: one row per caption, in the order of the caption table."""
