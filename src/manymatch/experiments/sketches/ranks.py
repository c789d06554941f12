"""The best images of every sketch, as a run file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from manymatch.evaluation.ranking.ranks import Direction
from manymatch.evaluation.run_files import write_run
from manymatch.experiments.sketches.metrics import CUT

_QUERIES = 1024
"""Queries ranked at once."""


def write_ranks(
    target: Path, queries: Tensor, gallery: Tensor, names: tuple[list[str], list[str]]
) -> None:
    """The first 200 images of each query, which the metrics that are cut need; `names` of the
    queries `(n, D)` and of the gallery `(m, D)`, which are L2-normalised."""
    best = [
        torch.topk(block @ gallery.T, min(CUT, len(gallery))) for block in queries.split(_QUERIES)
    ]
    items = torch.cat([found.indices for found in best])
    scores = torch.cat([found.values for found in best])
    write_run(target, Direction(torch.empty(0), items, scores), *names, target.stem)


def named(labels: Tensor, classes: list[str]) -> list[str]:
    """CLASS/NUMBER of each row, which a tool can tell the right images by."""
    return [f"{classes[label]}/{row}" for row, label in enumerate(labels.tolist())]
