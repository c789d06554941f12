"""From a parsed caption to its scene graph (CORA, section on scene graph parsing).

The small parser was trained on news and telephone conversations. Its frequent errors in captions
are repaired first, each by one function, so that the rules can rely on the tree: first phrases that
act as one word, then tags of single words, then attachments.
"""

from __future__ import annotations

from spacy.tokens import Doc

from manymatch.batch.scene_graph import SceneGraph
from manymatch.scene_graphs.actors import ACTORS
from manymatch.scene_graphs.attachment import ATTACHMENTS
from manymatch.scene_graphs.attributes import find_attributes
from manymatch.scene_graphs.counting import COUNTING
from manymatch.scene_graphs.joining import join_close_up, join_hyphens, join_spatial, join_sports
from manymatch.scene_graphs.negation import find_denied
from manymatch.scene_graphs.objects import find_objects
from manymatch.scene_graphs.relations import find_relations
from manymatch.scene_graphs.retagging import RETAGGINGS
from manymatch.scene_graphs.tree import Tree

_REPAIRS = (*RETAGGINGS, *COUNTING, *ATTACHMENTS, *ACTORS)


def scene_graph(doc: Doc) -> SceneGraph:
    """Return the graph of a caption with at least one token, without limits on its size.

    The graph has at least one object.
    """
    tree = Tree.of(doc)
    _repair(tree)
    objects, denied = find_objects(tree), find_denied(tree)
    number = {token: n for token, n in objects.number.items() if token not in denied}
    attributes = find_attributes(tree, number, len(objects.phrases), denied)
    return SceneGraph(
        objects=tuple(objects.phrases),
        names=tuple(objects.names),
        attributes=tuple(map(tuple, attributes)),
        relations=tuple(find_relations(tree, number, denied)),
    )


def _repair(tree: Tree) -> None:
    """Change `tree` in place."""
    join_hyphens(tree)
    join_close_up(tree)
    join_sports(tree)
    join_spatial(tree)
    words, tags, present = tree.words, tree.tags, set(tree.words)
    tokens = range(len(words))
    for mend, only_words, only_tags in _REPAIRS:
        if only_words is not None:
            if only_words.isdisjoint(present):
                continue
            selected = [t for t in tokens if words[t] in only_words]
        elif only_tags is not None:
            selected = [t for t in tokens if tags[t] in only_tags]
        else:
            selected = list(tokens)
        for token in selected:
            mend(tree, token)
