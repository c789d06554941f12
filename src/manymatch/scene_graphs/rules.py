"""From a parsed caption to its scene graph (CORA, section on scene graph parsing)."""

from __future__ import annotations

from spacy.tokens import Doc

from manymatch.scene_graphs.attributes import find_attributes
from manymatch.scene_graphs.graph import SceneGraph
from manymatch.scene_graphs.objects import find_objects
from manymatch.scene_graphs.relations import find_relations
from manymatch.scene_graphs.repairs import repair
from manymatch.scene_graphs.tree import Tree


def scene_graph(doc: Doc) -> SceneGraph:
    """The graph of a caption of at least one token, without limits; it has an object or more."""
    tree = repair(Tree.of(doc))
    objects = find_objects(tree)
    attributes = find_attributes(tree, objects.number, len(objects.phrases))
    return SceneGraph(
        objects=tuple(objects.phrases),
        names=tuple(objects.names),
        attributes=tuple(map(tuple, attributes)),
        relations=tuple(find_relations(tree, objects.number)),
    )
