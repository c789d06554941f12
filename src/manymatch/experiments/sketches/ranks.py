"""Writes the best images of every sketch as a TREC run file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from manymatch.evaluation.ranking.ranks import Direction
from manymatch.evaluation.run_files import write_run
from manymatch.experiments.sketches.metrics import CUT

_QUERIES = 1024
"""The number of queries that are ranked at once."""


def write_ranks(
    target: Path, queries: Tensor, gallery: Tensor, names: tuple[list[str], list[str]]
) -> None:
    """Write the first 200 images of each query, which the metrics at 200 need.

    Args:
        queries, gallery: `(n, D)` and `(m, D)`, L2-normalised.
        names: the names of the queries and of the images in the gallery.
    """
    blocks = [
        torch.topk(block @ gallery.T, min(CUT, len(gallery))) for block in queries.split(_QUERIES)
    ]
    items = torch.cat([block.indices for block in blocks])
    scores = torch.cat([block.values for block in blocks])
    write_run(target, Direction(torch.empty(0), items, scores), *names, target.stem)


def named(labels: Tensor, classes: list[str]) -> list[str]:
    """The name CLASS/NUMBER of each row, from which other tools can read the positives."""
    return [f"{classes[label]}/{row}" for row, label in enumerate(labels.tolist())]
