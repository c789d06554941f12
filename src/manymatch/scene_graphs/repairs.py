"""Repairs of a parse before the rules read it.

The small parser was trained on news and telephone talk. What it gets wrong in captions again and
again is mended here and in its neighbours, each fault by one function, so that the rules may trust
the tree: first the words that act as one, then single words, then what hangs where.
"""

from __future__ import annotations

from manymatch.scene_graphs.attachment import ATTACHMENTS
from manymatch.scene_graphs.joining import join_hyphens, join_spatial
from manymatch.scene_graphs.retagging import RETAGGINGS
from manymatch.scene_graphs.tree import Tree


def repair(tree: Tree) -> Tree:
    """`tree`, changed in place."""
    join_hyphens(tree)
    join_spatial(tree)
    for mend in (*RETAGGINGS, *ATTACHMENTS):
        for token in range(len(tree)):
            mend(tree, token)
    return tree
